"""Newton steps of a quadratic program by a Riccati recursion on its stages, as Functions of one stage and of all.

With weights D of the limits the step d solves minimise d'(H + C'DC) d / 2 + r'd over steps that keep the dynamics:
backward  S = H + C'DC + [A B]'P[A B] = [Sxx .; Sux Suu],  Suu = L diag(e) L',  W = L^-1 Sux,  P = Sxx - W' e^-1 W,
forward   du = -L^-T e^-1 (W dx + l),  where l = L^-1 (r_u + B'p),  p = r_x + A'p - W' e^-1 l of the stage behind it.
Structure that is known when it is built (zeros, constants of A and B) costs nothing. Source: Frison and Diehl, "HPIPM",
IFAC World Congress 2020, section 4; the factorisation is without square roots here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from .stage_program import Signature, StageProgram, stage_ends


@dataclass(frozen=True, eq=False)
class StageFunctions:
    """Functions of a stage. J, H: its entries that are no constants.

    times: (J, H, z, g) -> (H z + g, C z).
    transposed: (J, h, y) -> h + C'y.
    norms: J -> largest squares of the rows of C.
    shrink: (y, a, *limits) -> (y(z), weights of active limits) at a = C z, see stage_qp; limits: rho, lower, upper,
    price, whether equal.
    slope: (length, y, a, da, *limits) -> slope and curvature of the limits' part of the objective along da.
    factor: (J, H, D, eps, P) -> (factor, P).
    backward: (J, factor, r, p) -> (l, p).
    forward: (J, factor, l, c, x) -> (z, x).
    adjoint: (J, r, lam) -> (r + [A B]' lam, lam): residuals, whose entries of states are lam of the stage.
    """

    times: ca.Function
    transposed: ca.Function
    norms: ca.Function
    shrink: ca.Function
    slope: ca.Function
    factor: ca.Function
    backward: ca.Function
    forward: ca.Function
    adjoint: ca.Function


@lru_cache(maxsize=32)
def stage_functions(of: Signature) -> StageFunctions:
    """StageFunctions of a Signature."""
    J, H, AB, C, Q = _matrices(of)
    z, g, r = (ca.SX.sym(k, of.nz) for k in "zgr")
    y, D = ca.SX.sym("y", of.n_limits), ca.SX.sym("D", of.n_limits)
    full = Q + ca.triu(Q, False).T
    transposed = r + ca.mtimes(C.T, y)
    factor, parts, P, P_next = _factor(of, AB, C, Q, D, eps := ca.SX.sym("eps"))
    c, x, lam = ca.SX.sym("c", of.n_next), ca.SX.sym("x", len(of.states)), ca.SX.sym("lam", of.n_next)
    p = ca.SX.sym("p", of.n_next)
    l = ca.SX.sym("l", len(of.controls))
    residual = r + ca.mtimes(AB.T, lam)
    a, da, *rest = (ca.SX.sym(k, of.n_limits) for k in ("a", "da", "rho", "lower", "upper", "price", "equal"))
    length = ca.SX.sym("t")
    value, active = _shrunk(y, a + length * da, *rest)
    packed = ca.vertcat(*parts)
    return StageFunctions(
        _made("times", [J, H, z, g], [ca.mtimes(full, z) + g, ca.mtimes(C, z)]),
        _made("transposed", [J, r, y], [transposed]),
        _made("norms", [J], [ca.vertcat(*(_largest_square(C[i, :]) for i in range(of.n_limits)))]),
        _made("shrink", [y, a, *rest], list(_shrunk(y, a, *rest))),
        _made("slope", [length, y, a, da, *rest], [ca.dot(value, da), ca.dot(active, da**2)]),
        _made("factor", [J, H, D, eps, P_next], [factor, P]),
        _made("backward", [J, packed, r, p], _backward(of, AB, parts, r, p)),
        _made("forward", [J, packed, l, c, x], _forward(of, AB, parts, l, c, x)),
        _made("adjoint", [J, r, lam], [residual, residual[list(of.states)]]),
    )


def _made(name: str, inputs: list[Any], outputs: list[Any]) -> ca.Function:
    outputs = ca.cse([ca.densify(ca.SX(y)) for y in outputs])
    return ca.Function(name, inputs, outputs, {"never_inline": True})


def _matrices(of: Signature) -> tuple[Any, ...]:
    """(J, H, [A B], C, upper triangle of the Hessian)."""
    J, H = ca.SX.sym("J", of.n_varying), ca.SX.sym("H", len(of.hessian))
    AB, rows = ca.SX(of.n_next, of.nz), ca.SX(of.n_rows, of.nz)
    at = 0
    for i, j, value in of.jacobian:
        entry = J[at] if value is None else ca.SX(value)
        at += value is None
        if i < of.n_next:
            AB[i, j] = -entry  # J has those of x_next - (A x + B u)
        else:
            rows[i - of.n_next, j] = entry
    bounds = ca.SX(len(of.bounded), of.nz)
    for i, j in enumerate(of.bounded):
        bounds[i, j] = 1
    Q = ca.SX(of.nz, of.nz)
    for k, (i, j) in enumerate(of.hessian):
        Q[i, j] = H[k]
    return J, H, AB, ca.vertcat(bounds, rows), Q


def _shrunk(y: Any, a: Any, rho: Any, lower: Any, upper: Any, price: Any, equal: Any) -> tuple[Any, Any]:
    """(y(z), weights of the limits that are active): conditions rather than fmin and fmax, which C calls a library
    for."""
    t = y + rho * a
    over, under = t - rho * upper, t - rho * lower
    above, below = ca.if_else(over < price, over, price), ca.if_else(under > -price, under, -price)
    value = ca.if_else(over > 0, above, ca.if_else(under < 0, below, 0))
    inside = (value != 0) * (value < price) * (value > -price)
    return value, ca.if_else(ca.logic_or(inside, equal), rho, 0)


def _largest_square(row: Any) -> Any:
    out = ca.SX(0)
    for x in row.nonzeros():
        out = ca.fmax(out, x * x)
    return out


def _symmetric(entries: Any, n: int) -> Any:
    """(n, n) from the column of its upper triangle, column by column."""
    rows: list[list[Any]] = [[None] * n for _ in range(n)]
    at = 0
    for j in range(n):
        for i in range(j + 1):
            rows[i][j] = rows[j][i] = entries[at]
            at += 1
    return ca.vertcat(*(ca.horzcat(*row) for row in rows)) if n else ca.SX(0, 0)


def _factor(of: Signature, AB: Any, C: Any, Q: Any, D: Any, eps: Any) -> tuple[Any, list[Any], Any, Any]:
    """(factor, symbols of its parts W, L, 1 / e, P, symbols of the P behind it)."""
    n, m, k = len(of.states), len(of.controls), of.n_next
    P_next = ca.SX.sym("P", k * (k + 1) // 2)
    S = Q + ca.mtimes(C.T, ca.mtimes(ca.diag(D), C))
    S = ca.densify(S + ca.mtimes(AB.T, ca.mtimes(_symmetric(P_next, k), AB)))
    x, u = list(of.states), list(of.controls)

    def entry(i: int, j: int) -> Any:
        return S[min(i, j), max(i, j)] + (eps if i == j else 0)  # the upper triangle is whole

    L = np.zeros((m, m), object)
    inverse: list[Any] = []
    for j in range(m):
        v = [entry(u[j], u[i]) for i in range(j)]  # v_i = L_ji e_i
        for i in range(j):
            for t in range(i):
                v[i] = v[i] - v[t] * L[i, t]
        e = entry(u[j], u[j])
        for i in range(j):
            L[j, i] = v[i] * inverse[i]
            e = e - v[i] * L[j, i]
        inverse.append(1 / ca.fmax(e, eps))
    W = np.zeros((m, n), object)
    for b in range(n):
        for a in range(m):
            W[a, b] = entry(u[a], x[b])
            for t in range(a):
                W[a, b] = W[a, b] - L[a, t] * W[t, b]
    P = []
    for b in range(n):
        scaled = [W[a, b] * inverse[a] for a in range(m)]
        for c in range(b + 1):
            value = entry(x[c], x[b])
            for a in range(m):
                value = value - W[a, c] * scaled[a]
            P.append(value)
    below = [L[a, b] for a in range(m) for b in range(a)]
    factor = ca.vertcat(ca.SX(0, 1), *W.ravel().tolist(), *below, *inverse)
    parts = [ca.SX.sym(k, size) for k, size in (("W", m * n), ("L", m * (m - 1) // 2), ("e", m))]
    return factor, parts, ca.vertcat(ca.SX(0, 1), *P), P_next


def _below(L: Any, a: int, b: int) -> Any:
    """Entry of the factor L below its diagonal of ones."""
    return L[a * (a - 1) // 2 + b]


def _backward(of: Signature, AB: Any, parts: list[Any], r: Any, p: Any) -> list[Any]:
    """[l, p of the stage]."""
    n, m, (W, L, inverse) = len(of.states), len(of.controls), parts
    h = r + ca.mtimes(AB.T, p)
    l: list[Any] = []
    for a in range(m):
        value = h[of.controls[a]]
        for b in range(a):
            value = value - _below(L, a, b) * l[b]
        l.append(value)
    scaled = [l[a] * inverse[a] for a in range(m)]
    out = [h[of.states[b]] - sum((W[a * n + b] * scaled[a] for a in range(m)), start=ca.SX(0)) for b in range(n)]
    return [ca.vertcat(ca.SX(0, 1), *l), ca.vertcat(ca.SX(0, 1), *out)]


def _forward(of: Signature, AB: Any, parts: list[Any], l: Any, c: Any, x: Any) -> list[Any]:
    """[z, next x]."""
    n, m, (W, L, inverse) = len(of.states), len(of.controls), parts
    z: list[Any] = [None] * of.nz
    for i, j in enumerate(of.states):
        z[j] = x[i]
    for a in range(m - 1, -1, -1):
        value = l[a] + sum((W[a * n + b] * x[b] for b in range(n)), start=ca.SX(0))
        behind = sum((_below(L, b, a) * z[of.controls[b]] for b in range(a + 1, m)), start=ca.SX(0))
        z[of.controls[a]] = -inverse[a] * value - behind
    whole = ca.vertcat(ca.SX(0, 1), *z)
    return [whole, ca.mtimes(AB, whole) + c]


class Sweeps:
    """The Functions of all stages, as MX: columns of all stages in, columns of all stages out.

    data: [J of every run (entries, count)], [H of every run].
    """

    def __init__(self, program: StageProgram) -> None:
        self.runs = program.runs
        self.functions = [stage_functions(run.signature) for run in self.runs]
        self.n = int(program.first[-1])
        self.n_limits = sum(run.count * run.signature.n_limits for run in self.runs)
        self.n_next = sum(run.count * run.signature.n_next for run in self.runs)
        self.n_factor = sum(run.count * f.factor.size1_out(0) for run, f in zip(self.runs, self.functions, strict=True))

    def _blocks(self, column: Any, size: Any) -> list[Any]:
        """[(size, count) of every run] from a column of all stages; size: of a Signature."""
        sizes = [size(run, f) for run, f in zip(self.runs, self.functions, strict=True)]
        ends = stage_ends([a * run.count for a, run in zip(sizes, self.runs, strict=True)])
        parts = ca.vertsplit(column, ends)
        return [ca.reshape(x, a, run.count) for x, a, run in zip(parts, sizes, self.runs, strict=True)]

    def _mapped(self, which: str, *blocks: Any) -> list[Any]:
        """Columns of the outputs of a Function of a stage that needs no other stage."""
        outputs: list[Any] = []
        for k, (run, f) in enumerate(zip(self.runs, self.functions, strict=True)):
            one = getattr(f, which)
            every = one.map(run.count) if run.count > 1 else one
            outputs.append([ca.vec(y) for y in every.call([b[k] for b in blocks])])
        return [ca.vertcat(*some) for some in zip(*outputs, strict=True)]

    def of_unknowns(self, column: Any) -> list[Any]:
        """Blocks of a column of unknowns."""
        return self._blocks(column, lambda run, _: run.signature.nz)

    def of_limits(self, column: Any) -> list[Any]:
        """Blocks of a column of limits."""
        return self._blocks(column, lambda run, _: run.signature.n_limits)

    def times(self, J: Any, H: Any, z: Any, g: Any) -> list[Any]:
        """[H z + g, C z]."""
        return self._mapped("times", J, H, self.of_unknowns(z), self.of_unknowns(g))

    def transposed(self, J: Any, h: Any, y: Any) -> Any:
        """h + C'y."""
        return self._mapped("transposed", J, self.of_unknowns(h), self.of_limits(y))[0]

    def norms(self, J: Any) -> Any:
        """Largest squares of the entries of every row of C."""
        return self._mapped("norms", J)[0]

    def shrink(self, y: Any, a: Any, *limits: Any) -> list[Any]:
        """[y(z), weights]."""
        return self._mapped("shrink", *(self.of_limits(x) for x in (y, a, *limits)))

    def slope(self, t: Any, y: Any, a: Any, da: Any, *limits: Any) -> list[Any]:
        """[slope, curvature] of the limits' part a length t along da."""
        columns = [self.of_limits(x) for x in (y, a, da, *limits)]
        same = [ca.repmat(t, 1, run.count) for run in self.runs]
        return [ca.sum1(x) for x in self._mapped("slope", same, *columns)]

    def factor(self, J: Any, H: Any, D: Any, eps: Any) -> Any:
        """The column of factors."""
        weights, out, P = self._stages(self.of_limits(D)), [], ca.MX(0, 1)
        J, H = self._stages(J), self._stages(H)
        for k, f in self._backwards():
            factor, P = f.factor.call([J[k], H[k], weights[k], eps, P])
            out.append(factor)
        return ca.vertcat(*out[::-1])

    def backward(self, J: Any, factor: Any, r: Any) -> Any:
        """The column of l."""
        factors = self._stages(self._blocks(factor, lambda _, f: f.factor.size1_out(0)))
        r, J, out, p = self._stages(self.of_unknowns(r)), self._stages(J), [], ca.MX(0, 1)
        for k, f in self._backwards():
            l, p = f.backward.call([J[k], factors[k], r[k], p])
            out.append(l)
        return ca.vertcat(*out[::-1])

    def forward(self, J: Any, factor: Any, l: Any, c: Any, x: Any) -> Any:
        """The column of unknowns from the states x of the first stage."""
        factors = self._stages(self._blocks(factor, lambda _, f: f.factor.size1_out(0)))
        l = self._stages(self._blocks(l, lambda run, _: len(run.signature.controls)))
        c = self._stages(self._blocks(c, lambda run, _: run.signature.n_next))
        J, out = self._stages(J), []
        for k, f in self._in_order():
            z, x = f.forward.call([J[k], factors[k], l[k], c[k], x])
            out.append(z)
        return ca.vertcat(*out)

    def adjoint(self, J: Any, r: Any) -> Any:
        """r + [A B]' lam - lam of all stages but for lam of their states, which are those entries themselves."""
        r, J, out, lam = self._stages(self.of_unknowns(r)), self._stages(J), [], ca.MX(0, 1)
        for k, f in self._backwards():
            residual, lam = f.adjoint.call([J[k], r[k], lam])
            out.append(residual)
        return ca.vertcat(*out[::-1])

    def _stages(self, blocks: Sequence[Any]) -> list[Any]:
        return [
            x for b, run in zip(blocks, self.runs, strict=True) for x in (ca.horzsplit(b) if run.count > 1 else [b])
        ]

    def _in_order(self) -> list[Any]:
        every = [f for f, run in zip(self.functions, self.runs, strict=True) for _ in range(run.count)]
        return list(enumerate(every))

    def _backwards(self) -> list[Any]:
        return self._in_order()[::-1]
