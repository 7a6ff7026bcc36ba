"""Derivatives of forward and hybrid dynamics of any order from those of inverse dynamics, order by order.

tau^(k) = ID_k(q, v, ..., v^(k+1)), k = 0, 1, ...: known in the rows of free joints, wanted in those of prescribed ones.
The highest acceleration enters by the mass matrix M, so the same factors serve every order and every direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from ..forward_dynamics.closed_form import closed_form
from ..friction import friction_torques, with_friction
from ..hybrid_dynamics.taylor import taylor
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..lie.jets import total
from ..model.robot import tangent_map
from ..subexpressions import merged, put_in
from .friction_terms import friction_curvature, friction_partials
from .implicit import inverse, mass_matrix, mass_solver, selected, vector_solver
from .part_ports import symmetric

Row = Sequence[Any]  # of partials of one torque or acceleration, by q, v, and what else it depends on


@dataclass(frozen=True)
class Given:
    """What forward and hybrid dynamics are given: q, v, and in lists with their time derivatives A, accelerations
    (nv,), right in the rows `prescribed`, T, torques (nv,), right in the others, and W, applied wrenches or None."""

    model: Any
    order: int
    q: Any
    v: Any
    A: list[Any]
    T: list[Any]
    prescribed: tuple[int, ...]
    W: list[Any] | None
    friction: bool

    @property
    def free(self) -> list[int]:
        """Rows of joints whose torques are given."""
        return [k for k in range(self.model.robot.nv) if k not in self.prescribed]

    def solved(self) -> tuple[list[Any], list[Any]]:
        """All accelerations and torques, ([dv, ...], [tau, ...])."""

        def run(T: list[Any]) -> tuple[list[Any], list[Any]]:
            if self.model.fluid:  # where all torques are given
                return closed_form(self.model, self.order, self.q, self.v, T, self.W), T
            return taylor(self.model, self.order, self.q, self.v, self.A, T, self.prescribed, self.W)

        return with_friction(self.model, self.v, self.T, run) if self.friction else run(self.T)

    def parts(self) -> list[Any]:
        """[q, v, A's rows, T's rows] that are given, one after the other."""
        p, f = list(self.prescribed), self.free
        return [self.q, self.v, *(a[p] for a in self.A), *(t[f] for t in self.T)]

    def at(self, function: Callable[[Given, list[Any]], list[Any]], more: Sequence[Any] = ()) -> list[Any]:
        """function(the same with symbols for all that is given, symbols for `more`), evaluated at the values."""
        given = [self.q, self.v, *self.A, *self.T, *(self.W or []), *more]
        s = [ca.SX.sym("x", *x.shape) for x in given]
        n = self.order + 1
        W = None if self.W is None else s[2 + 2 * n : 2 + 3 * n]
        other = Given(self.model, self.order, s[0], s[1], s[2 : 2 + n], s[2 + n : 2 + 2 * n], self.prescribed, W,
                      self.friction)  # fmt: skip
        return put_in(s, function(other, s[len(s) - len(more) :]), [ca.SX(x) for x in given])


def rows_of_inverse(given: Given, V: list[Any], rows: Callable[..., list[Row]]) -> list[list[Any]]:
    """Partials of tau, dtau, ... at the motion V, by q, v, dv, ..., with what friction adds; rows(model, order, q, V,
    W) -> [(by q, v, dv), (by q, v, dv, d2v), ...]."""
    sizes = [k + 3 for k in range(given.order + 1)]

    def flat(q: Any, V: list[Any], W: Any, _: Any) -> list[Any]:
        return [x for row in rows(given.model, given.order, q, V, W) for x in row]

    values = iter(on_symbols(given, V, flat))
    found = [[next(values) for _ in range(n)] for n in sizes]
    if given.friction:
        for row, extra in zip(found, friction_partials(given.model.robot, V[: given.order + 1]), strict=True):
            row[1 : 1 + len(extra)] = [x + y for x, y in zip(row[1:], extra, strict=False)]
    return found


def on_symbols(given: Given, V: list[Any], function: Callable[..., list[Any]], lams: Sequence[Any] = ()) -> list[Any]:
    """function(q, V, W, lams) of symbols, evaluated at the motion V: it may differentiate by its arguments."""
    values = [given.q, *V, *lams, *(given.W or [])]
    q, *rest = (ca.SX.sym("x", *x.shape) for x in values)
    m = len(V) + len(lams)
    W = rest[m:] if given.W is not None else None
    results = function(q, rest[: len(V)], W, rest[len(V) : m])
    return put_in([q, *rest], list(results), [ca.SX(x) for x in values])


def partials(given: Given, rows: Callable[..., list[Row]]) -> tuple[list[Row], list[Row]]:
    """Partials of the orders 0.. of (free accelerations, prescribed torques), each by q, v, the prescribed rows of dv,
    d2v, ..., the free ones of tau, dtau, ... of the orders up to its own."""
    V = [given.v, *given.solved()[0]]
    R = rows_of_inverse(given, V, rows)
    accelerations, torques = solved_rows(R, mass_matrix(given.model, given.q), given.prescribed)
    return [[x[given.free, :] for x in row] for row in accelerations], torques


def forward_partials(given: Given, rows: Callable[..., list[Row]]) -> list[Row]:
    """The same of forward dynamics: by q, v, tau, dtau, ..."""
    return [[*row[:2], *row[3 + k :]] for k, row in enumerate(partials(given, rows)[0])]


def solved_rows(R: list[list[Any]], M: Any, prescribed: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """Partials of (all accelerations, prescribed torques) from those of inverse dynamics and the mass matrix M.

    Equation:  M v^(k+1)_x = tau^(k)_x - ID_k,x - sum_{j<=k} ID_k,v^(j) v^(j)_x,  x an argument
    """
    nv, p = M.shape[0], list(prescribed)
    f = [k for k in range(nv) if k not in prescribed]
    P, F = selected(nv, p), selected(nv, f)
    solve = mass_solver(M[f, f])
    by_torque = F @ inverse(solve, len(f))
    by_motion = P - F @ solve(M[f, p]) if p and f else P
    moved: dict[tuple[str, int], list[Any]] = {("q", 0): [None], ("v", 0): [ca.SX.eye(nv)]}
    accelerations: list[Row] = []
    torques: list[Row] = []
    for k, row in enumerate(R):
        sides = {by: total(_terms(by, row, moved[by])) for by in moved}
        order = list(sides)
        stacked: Any = solve(ca.horzcat(*(sides[by][f, :] for by in order))) if f else None
        ends = [0]
        for by in order:
            ends.append(ends[-1] + sides[by].shape[1])
        found = ca.horzsplit(stacked, ends) if f else [ca.SX(0, sides[by].shape[1]) for by in order]
        of_torque = {}
        for by, x in zip(order, found, strict=True):
            moved[by].append(ca.sparsify(-(F @ x)))
            of_torque[by] = P.T @ (sides[by] + M @ moved[by][-1])
        nothing = [None] * (k + 1)
        moved["a", k], moved["t", k] = [*nothing, by_motion], [*nothing, by_torque]
        of_torque["a", k], of_torque["t", k] = P.T @ (M @ by_motion), P.T @ (M @ by_torque)
        names = [("q", 0), ("v", 0), *(("a", j) for j in range(k + 1)), *(("t", j) for j in range(k + 1))]
        accelerations.append([moved[by][-1] for by in names])
        torques.append([of_torque[by] for by in names])
    return accelerations, torques


def _terms(by: tuple[str, int], row: Row, moved: list[Any]) -> list[Any]:
    """Parts of the change of a torque by an argument but for that by the highest acceleration."""
    own = [row[0]] if by == ("q", 0) else []
    return own + [J @ x for J, x in zip(row[1:], moved, strict=False) if x is not None]


@dataclass(frozen=True)
class Multiplied:
    """m: multipliers (nv,) of tau, dtau, ... with which derivatives of F = sum of m' tau^(k) by q and the motion V are
    those of the sum of products with accelerations and torques. gradient: F by q, v, dv, ..."""

    V: list[Any]
    m: list[Any]
    gradient: list[Any]


def multiplied(given: Given, by_a: list[Any], by_t: list[Any], adjoint: Callable[..., list[Any]]) -> Multiplied:
    """From the multipliers by_a of the free accelerations and by_t of the prescribed torques, highest order first;
    adjoint(model, order, q, V, lams, W) -> [by q, v, dv, ...].

    Equation:  of prescribed joints m = by_t; of free ones, with F_v^(k+1) = M m_k + what m_k+1, ... make, from
               F_v^(k+1) = -by_a of the order k: then the unknown accelerations do not count
    """
    return multiplied_at(given, [given.v, *given.solved()[0]], by_a, by_t, adjoint)


def multiplied_at(given: Given, V: list[Any], by_a: list[Any], by_t: list[Any], adjoint: Any) -> Multiplied:
    """The same where the motion V = [v, dv, ...] is known."""
    model, order, p, f = given.model, given.order, list(given.prescribed), given.free
    P, F = selected(model.robot.nv, p), selected(model.robot.nv, f)
    M: Any = mass_matrix(model, given.q) if p else None
    solve = mass_solver(M[f, f]) if p else vector_solver(model, given.q)

    def gradient(m: list[Any]) -> list[Any]:
        def found(q: Any, V: list[Any], W: Any, lams: list[Any]) -> list[Any]:
            return _gradient(given, q, V, W, lams, adjoint)

        return on_symbols(given, V, found, m)

    m = [ca.DM.zeros(model.robot.nv)] * (order + 1)
    for k in reversed(range(order + 1)):
        m[k] = P @ by_t[k]
        slope = gradient(m)[2 + k] if k < order else M @ m[k] if p else m[k]
        m[k] = m[k] - F @ solve(by_a[k] + slope[f])
    return Multiplied(V, m, gradient(m))


def tangent(given: Given, V: list[Any], z: list[Any]) -> list[Any]:
    """Change of (q, v, dv, ...) at the motion V = [v, dv, ...], (nv,) each, of forward dynamics along z = [step of q,
    changes of v, tau, dtau, ...]."""
    model, n = given.model, given.order + 1
    solve = vector_solver(model, given.q)

    def torques(q: Any, V: list[Any], W: Any, y: list[Any]) -> list[Any]:
        tau = inverse_dynamics(model, given.order, q, V, W)
        if given.friction:
            tau = [x + r for x, r in zip(tau, friction_torques(model.robot, V[:n]), strict=True)]
        rates = ca.vertcat(tangent_map(model.robot, q) @ y[0], *y[1:])
        change = ca.jtimes(merged(ca.vertcat(*tau)), ca.vertcat(q, *V), rates)
        return ca.vertsplit(change, model.robot.nv)

    y = [z[0], z[1], *[ca.DM.zeros(model.robot.nv)] * n]
    for k in range(n):
        y[2 + k] = solve(z[2 + k] - on_symbols(given, V, torques, y)[k])
    return y


def _gradient(given: Given, q: Any, V: list[Any], W: Any, lams: list[Any], adjoint: Any) -> list[Any]:
    found = [ca.SX(x) for x in adjoint(given.model, given.order, q, V, lams, W)]
    if given.friction:
        for rows, lam in zip(friction_partials(given.model.robot, V[: given.order + 1]), lams, strict=True):
            found[1:-1] = [x + J.T @ lam for x, J in zip(found[1:-1], rows, strict=True)]
    return found


def adjoint_of_solved(
    given: Given, by_a: list[Any], by_t: list[Any], adjoint: Callable[..., list[Any]]
) -> tuple[Any, ...]:
    """Gradients by q, v, the prescribed rows of dv, d2v, ..., the free ones of tau, dtau, ..."""
    found = multiplied(given, by_a, by_t, adjoint)
    p, f = list(given.prescribed), given.free
    by_q, by_v, *rest = found.gradient
    return by_q, by_v, *(x[p] for x in rest), *(-x[f] for x in found.m)


def forward_adjoint(given: Given, lams: list[Any], adjoint: Callable[..., list[Any]]) -> tuple[Any, ...]:
    """The same of forward dynamics: by q, v, tau, dtau, ..."""
    by_q, by_v, *rest = adjoint_of_solved(given, lams, _none(given), adjoint)
    return by_q, by_v, *rest[given.order + 1 :]


def forward_hessian(given: Given, lams: list[Any], adjoint: Any, rows: Any, hessian: Any) -> Any:
    """Second derivatives of forward dynamics; see hessian_of_solved."""
    return hessian_of_solved(given, lams, _none(given), adjoint, rows, hessian)


def _none(given: Given) -> list[Any]:
    return [ca.DM.zeros(0, 1)] * (given.order + 1)


def hessian_of_solved(given: Given, by_a: list[Any], by_t: list[Any], adjoint: Any, rows: Any, hessian: Any) -> Any:
    """Second derivatives by all of these, one full symmetric matrix.

    Equation:  U' H U, H the second derivatives of F by q and the motion, U the partials of these
    """
    found, model = multiplied(given, by_a, by_t, adjoint), given.model
    places: list[tuple[int, int]] = []

    def of_inverse(q: Any, V: list[Any], W: Any, lams: list[Any]) -> list[Any]:
        blocks = hessian(model, given.order, q, V, lams, W)
        places.extend(blocks)
        return list(blocks.values())

    values = on_symbols(given, found.V, of_inverse, found.m)
    H: dict[tuple[int, int], Any] = dict(zip(places, values, strict=True))
    if given.friction:
        for (i, j), x in friction_curvature(model.robot, found.V[: given.order + 1], found.m).items():
            H[i + 1, j + 1] = H.get((i + 1, j + 1), 0) + x
    R = rows_of_inverse(given, found.V, rows)
    U = _columns(given, solved_rows(R, mass_matrix(model, given.q), given.prescribed)[0])
    full = ca.sparsify(symmetric(H, given.order + 3, model.robot.nv))
    return ca.triu2symm(ca.triu(ca.sparsify(U.T @ (full @ U))))


def _columns(given: Given, accelerations: list[Row]) -> Any:
    """Partials of (q, v, dv, ...) by all that is given, one sparse matrix."""
    nv, n = given.model.robot.nv, given.order + 1
    sizes = [nv, nv, *[len(given.prescribed)] * n, *[len(given.free)] * n]
    top = [[ca.SX.eye(nv) if i == j else ca.SX(nv, x) for j, x in enumerate(sizes)] for i in range(2)]
    below = []
    for k, row in enumerate(accelerations):
        by_q, by_v, *rest = row
        a, t = rest[: k + 1], rest[k + 1 :]
        later = [ca.SX(nv, x) for x in (sizes[2], sizes[-1])]
        gap = n - k - 1
        below.append([by_q, by_v, *a, *[later[0]] * gap, *t, *[later[1]] * gap])
    return ca.sparsify(ca.blockcat([*top, *below]))
