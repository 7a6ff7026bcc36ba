"""States on manifolds: unit quaternions, poses, configurations of a robot. They stay there by construction.

A state o of nq rows has a velocity w of nv, in the body's frame. On an interval a method integrates the step xi from
the state at its start, with as many rows as the velocity, so any method does and keeps its order:

    o = o_k (+) xi,  xi(0) = 0,  xi' = J(xi)^-1 w,  o_(k+1) = o_k (+) xi(h)

with o (+) xi = o exp(xi) of the groups of joints (model/joints.py) and J the right Jacobian. Steps turn less than 2 pi.
They keep the length of a quaternion, which is 1 at the start. On its way a solver may take them apart, which lets it
unwind guesses that wind the wrong way; what a Solution tells is of unit length to rounding.
Source: Munthe-Kaas 1999, in coordinates of the first kind on the right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from ..errors import LimitError, ShapeError
from ..lie import so3
from ..model import joints as jt
from ..model.quaternions import check_quaternions
from ..model.robot import Robot, check_robot
from ..numbers import as_floats, shortened
from ..validation import check_within, numbers, one_of
from .description import Constraint, Variable

NAMED = {"unit_quaternion": "spherical", "pose": "free"}  # whose coordinates are those of a joint of that kind
_PLAIN = "vector"  # of parts whose rates are their velocities


@dataclass(frozen=True)
class Manifold:
    """A product of groups: (kind of joint, or "vector", nq, nv) of each part, in the order of its rows."""

    parts: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        """Number of rows of a point, nq."""
        return sum(nq for _, nq, _ in self.parts)

    @property
    def tangent_size(self) -> int:
        """Number of rows of a velocity, nv."""
        return sum(nv for _, _, nv in self.parts)

    @property
    def quaternions(self) -> list[int]:
        """Rows where a quaternion begins."""
        starts = np.cumsum([0, *(nq for _, nq, _ in self.parts)])
        return [int(i) for i, (kind, *_) in zip(starts, self.parts, strict=False) if kind in jt.QUATERNIONS]

    def largest(self, sizes: np.ndarray) -> np.ndarray:
        """(nq,) sizes of the rows of points, the largest one for those that measure one thing in axes that turn: of a
        quaternion all four, of a position all of its own."""
        out, at = np.array(sizes, float), 0
        for kind, nq, _ in self.parts:
            turned = 4 if kind in jt.QUATERNIONS else 1 if kind == "planar" else nq
            if kind in jt.QUATERNIONS:
                out[at : at + turned] = out[at : at + turned].max()
            out[at + turned : at + nq] = out[at + turned : at + nq].max(initial=0.0)
            at += nq
        return out

    def neutral(self) -> np.ndarray:
        """(nq,) point without displacement."""
        return np.concatenate([jt.neutral(kind, nq) for kind, nq, _ in self.parts])

    def tangent_scale(self, scale: np.ndarray) -> np.ndarray:
        """(nv,) typical values of steps, from those (nq,) of points: positions are measured in turned axes, so that
        they share one."""
        out, at = [np.zeros(0)], 0
        for kind, nq, nv in self.parts:
            own, at = scale[at : at + nq], at + nq
            if kind in jt.QUATERNIONS:
                out.append(np.repeat([own[:4].max(), own[4:].max(initial=0.0)], [3, nv - 3]))
            else:
                out.append(np.array([own[0], *[own[1:].max()] * 2]) if kind == "planar" else own)
        return np.concatenate(out)


def chosen(what: str, manifold: Any) -> Manifold:
    """Manifold by name, or that of the configurations of a robot."""
    if isinstance(manifold, Manifold):
        return manifold
    if not isinstance(manifold, str):
        check_robot(f"{what}: manifold, which is {' or '.join(map(repr, NAMED))} or a robot", manifold)
        return of_robot(manifold)
    kind = NAMED[one_of(f"manifold of {what}", manifold, NAMED)]
    return Manifold(((kind, jt.NQ[kind], jt.NV[kind]),))


def of_robot(robot: Robot) -> Manifold:
    """Configurations of a robot: joints whose velocities are rates, side by side, are one part."""
    parts: list[tuple[str, int, int]] = []
    for j in robot.joints:
        if j.kind in jt.GROUPS:
            parts.append((j.kind, j.nq, j.nv))
        elif parts and parts[-1][0] == _PLAIN:
            parts[-1] = (_PLAIN, parts[-1][1] + j.nq, parts[-1][2] + j.nv)
        else:
            parts.append((_PLAIN, j.nq, j.nv))
    return Manifold(tuple(parts))


# -- formulas -------------------------------------------------------------------------------------------------


def _mismatch(kind, goal, q):
    """(nv,) zero where q is the goal, either sign of a quaternion being the same, and regular there: four times the
    modified Rodrigues parameters of the rotation between, about its rotation vector, and differences of the rest.

    Steps of Newton's method turn by at most the angle that is missing; by the vector part of the quaternion they would
    turn by the tangent of half of it, and solvers would end with more turns than it takes. It jumps at half a turn.
    Source: Schaub, Junkins 1996, with the shadow set.
    """
    if kind not in jt.QUATERNIONS:
        return q - goal
    Q = so3.quat_mul(so3.quat_conj(goal), q)
    sign = ca.if_else(Q[0] < 0, -1, 1)
    return ca.vertcat(4 * sign / (ca.sqrt(ca.dot(Q, Q)) + sign * Q[0]) * Q[1:4], q[4:] - goal[4:])


def _normalised(kind, q, _):
    if kind not in jt.QUATERNIONS:
        return q
    return ca.vertcat(q[:4] / ca.sqrt(ca.dot(q[:4], q[:4])), q[4:])


_FORMULAS: dict[str, tuple[Callable[..., Any], str, str]] = {  # with what they take: points (q) or tangents (v)
    "integrate": (jt.integrate, "q", "v"),
    "difference": (jt.difference, "q", "q"),
    "mismatch": (_mismatch, "q", "q"),
    "rate": (jt.rate, "q", "v"),
    "step_rate": (jt.step_rate, "v", "v"),
    "normalised": (_normalised, "q", ""),
}


@functools.cache
def formula(manifold: Manifold, name: str) -> ca.Function:
    """A formula of _FORMULAS as a Function of one or two columns."""
    of, *takes = _FORMULAS[name]
    sizes = {"q": [p[1] for p in manifold.parts], "v": [p[2] for p in manifold.parts], "": [0] * len(manifold.parts)}
    columns = [ca.SX.sym(f"x{k}", sum(sizes[t])) for k, t in enumerate(takes)]
    split = [ca.vertsplit(x, np.cumsum([0, *sizes[t]]).tolist()) for x, t in zip(columns, takes, strict=True)]
    values = [of(kind, a, b) for (kind, *_), a, b in zip(manifold.parts, *split, strict=True)]
    given = [x for x, t in zip(columns, takes, strict=True) if t]
    return ca.Function(name, given, [ca.densify(ca.vertcat(*values))])


def many(manifold: Manifold, name: str, *tables: np.ndarray) -> np.ndarray:
    """A formula at every row of tables of numbers."""
    f, count = formula(manifold, name), len(tables[0])
    if not count:
        return np.zeros((0, f.size1_out(0)))
    return f.map(count)(*(table.T for table in tables)).full().T


def unit_rows(variables: Sequence[Variable], table: np.ndarray) -> np.ndarray:
    """Rows (N, n) of numbers of variables with quaternions of unit length; those that are zero, infinite or no numbers
    stay."""
    at = 0
    for v in variables:
        for i in [] if v.manifold is None else v.manifold.quaternions:
            own = table[:, at + i : at + i + 4]
            with np.errstate(all="ignore"):
                lengths = np.linalg.norm(own, axis=1)
            fit = np.isfinite(lengths) & (lengths > 0)
            own[fit] /= lengths[fit, None]
        at += v.size
    return table


def signs(variables: Sequence[Variable], table: np.ndarray, start: dict[str, np.ndarray]) -> np.ndarray:
    """(N, n) of 1 and -1 for rows of a guess: what makes each quaternion like the one before, and the first like what
    start, {name: value}, fixes."""
    out, at = np.ones_like(table), 0
    for v in variables:
        own = table[:, at : at + v.size]
        if v.manifold is not None:
            fitting = alike(v.manifold, own, start.get(v.name))
            for i in v.manifold.quaternions:
                turned = np.any(fitting[:, i : i + 4] != own[:, i : i + 4], axis=1)
                out[turned, at + i : at + i + 4] = -1.0
        at += v.size
    return out


def alike(manifold: Manifold, table: np.ndarray, first: np.ndarray | None = None) -> np.ndarray:
    """Rows (N, nq), each quaternion with the sign that is nearer to the one before; the first to `first`."""
    table = np.array(table, float)
    for i in manifold.quaternions:
        before = table[0, i : i + 4] if first is None else first[i : i + 4]
        for row in table[:, i : i + 4]:
            row *= -1.0 if row @ before < 0 else 1.0
            before = row.copy()
    return table


# -- what a method integrates ---------------------------------------------------------------------------------


class Local:
    """What a method integrates of states with rates: plain ones themselves, of those on manifolds the step from the
    start of the interval. own: values of these states at its start, a list."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables
        self.ends = np.cumsum([0, *(v.rate_size for v in variables)]).tolist()
        scales = [v.scale if v.manifold is None else v.manifold.tangent_scale(v.scale) for v in variables]
        self.scale = np.concatenate([np.zeros(0), *scales])

        self._rows = np.cumsum([0, *(v.size for v in variables)]).tolist()

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.ends[-1])

    def start(self, own: list[Any], empty: Any) -> Any:
        """Column at the start of the interval; empty: a column without rows of the kind wanted."""
        known = zip(self.variables, own, strict=True)
        return ca.vertcat(empty, *(y if v.manifold is None else type(empty).zeros(v.rate_size) for v, y in known))

    def states(self, own: list[Any], local: Any) -> list[Any]:
        """Values of the states, from a column."""
        parts = zip(self.variables, own, ca.vertsplit(local, self.ends) if self.variables else [], strict=True)
        return [y if v.manifold is None else formula(v.manifold, "integrate")(x, y) for v, x, y in parts]

    def rates(self, local: Any, rates: list[Any]) -> list[Any]:
        """Rates of a column, from those of the states."""
        if all(v.manifold is None for v in self.variables):
            return rates
        parts = zip(self.variables, ca.vertsplit(local, self.ends), rates, strict=True)
        return [w if v.manifold is None else formula(v.manifold, "step_rate")(y, w) for v, y, w in parts]

    def values(self, starts: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Rows of the states from rows of numbers; starts: the states at the starts of their intervals."""
        return self._by_variable("integrate", starts, table, self.ends)

    def steps(self, starts: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Inverse of values."""
        return self._by_variable("difference", starts, table, self._rows)

    def guessed_steps(self, starts: np.ndarray, table: np.ndarray) -> np.ndarray:
        """The same for guesses: none where they turn by more than 1 rad, as random ones do, whose turns add up to whole
        ones that no solver undoes."""
        steps, at = self.steps(starts, table), 0
        for v in self.variables:
            for kind, _, nv in [] if v.manifold is None else v.manifold.parts:
                if kind in jt.QUATERNIONS:
                    steps[np.linalg.norm(steps[:, at : at + 3], axis=1) > 1, at : at + nv] = 0.0
                at += nv
            at += v.size if v.manifold is None else 0
        return steps

    def _by_variable(self, name, starts, table, ends):
        if all(v.manifold is None for v in self.variables):
            return table
        out = [np.zeros((len(table), 0))]
        for v, (a, b), (c, d) in zip(self.variables, pairwise(self._rows), pairwise(ends), strict=True):
            y = table[:, c:d]
            out.append(y if v.manifold is None else many(v.manifold, name, starts[:, a:b], y))
        return np.hstack(out)


# -- what is said of them -------------------------------------------------------------------------------------


def state(problem, name, size, lower, upper, scale, guess, manifold):
    """See Problem.state."""
    m = chosen(f"state {name!r}", manifold)
    if size not in (1, m.size):
        raise ShapeError(f"state {name!r}: size is {shortened(size)}, its manifold has {m.size} rows; leave it out")
    for side in (lower, upper):
        if isinstance(side, ca.MX):
            raise ShapeError(f"state {name!r}: bounds that are expressions are for plain states; use limit")
        bound = numbers(f"{name}: bound", side, m.size)
        for i in m.quaternions:
            if np.isfinite(bound[i : i + 4]).any():
                raise LimitError(
                    f"state {name!r}: rows {i} to {i + 3} are a quaternion, which has no bounds; give (-)inf for them, "
                    "and limit what is meant, as an angle"
                )
    guess = m.neutral() if m.quaternions and np.ndim(guess) == 0 and not callable(guess) and guess == 0 else guess
    symbol = problem._variable(problem._states, name, m.size, lower, upper, scale, checked_guess(name, m, guess))
    goal = ca.MX.sym(f"{name}_goal", m.size)
    problem._states[-1] = replace(problem._states[-1], manifold=m, goal=goal)
    return symbol


def checked_guess(name, manifold, guess):
    """A guess of points with quaternions of unit length, next to each other of the same sign; ShapeError for zero."""
    if callable(guess):
        return guess
    table = np.array(as_floats(f"guess of {name}", guess))
    if table.ndim and table.shape[-1] != manifold.size:
        raise ShapeError(f"guess of {name}: got shape {table.shape}, expected ({manifold.size},) for every node")
    whole = np.full(manifold.size, table) if table.ndim == 0 else table
    found = [(name, i) for i in manifold.quaternions]
    check_quaternions(f"guess of {name}", found, np.atleast_2d(whole).T, normalize=True)
    rows = np.atleast_2d(whole)
    for i in manifold.quaternions:
        rows[:, i : i + 4] /= np.linalg.norm(rows[:, i : i + 4], axis=1)[:, None]
    return alike(manifold, rows) if whole.ndim == 2 else rows[0]


def state_of(problem, symbol):
    """The state on a manifold that a symbol is, or None."""
    return next((v for v in problem._states if v.symbol is symbol and v.manifold is not None), None)


def end(problem, symbol, value, where, rows):
    """Whether it is a state on a manifold whose value at an end is said here. Numbers of the goal are parameters of its
    rows."""
    known = state_of(problem, symbol)
    if known is None:
        return False
    if isinstance(value, tuple) and len(value) == 2:
        _refuse_quaternions(known, value, where)
        return False
    if isinstance(value, ca.MX):
        rows.append(equation(known, value, where))
        problem._revision += 1
        return True
    what, m = f"{where} of {known.name}", known.manifold
    fixed = numbers(what, value, m.size)
    check_quaternions(what, [(known.name, i) for i in m.quaternions], fixed)
    fixed = unit_rows([known], fixed[None].copy())[0]
    check_within(where, known.name, fixed, known.lower, known.upper)
    ends = getattr(problem.numbers, where)
    if known.name not in ends:
        problem._revision += 1
        if where == "goal":
            rows.append(equation(known, known.goal, where))
    ends[known.name] = fixed
    return True


def _refuse_quaternions(known, value, where):
    """A pair of bounds of a state at an end, or a node, leaves its quaternions alone."""
    for bound in value:
        sides = np.full(known.size, np.inf) if isinstance(bound, ca.MX) else numbers(where, bound, known.size)
        if any(isinstance(bound, ca.MX) or np.isfinite(sides[i : i + 4]).any() for i in known.manifold.quaternions):
            raise LimitError(
                f"{where}: the pair (lower, upper) bounds a quaternion of {known.name!r}; give its value alone, or "
                "bound an expression of it, as an angle"
            )


def equation(known, value, where):
    """Constraint: a state on a manifold is there where the value is, either sign of a quaternion being the same."""
    m = known.manifold
    if isinstance(value, ca.MX):
        value = ca.vec(value)
        if value.numel() != m.size:
            raise ShapeError(f"{where} of {known.name}: got {value.numel()} rows, expected {m.size}")
        value = formula(m, "normalised")(value)
    else:
        value = numbers(f"{where} of {known.name}", value, m.size)
        check_quaternions(f"{where} of {known.name}", [(known.name, i) for i in m.quaternions], value)
    zero = np.zeros(m.tangent_size)
    return Constraint(formula(m, "mismatch")(value, known.symbol), zero, zero, f"{where} of {known.name}")
