"""First and second derivatives of a stage as scalar instructions, by the way that takes the fewest.

Ways: AD of the stage written out, forwards or in reverse; and, where it calls Functions with registered derivatives,
the chain rule through these: with w the arguments of a call and y its results

    d out = out_z dz + out_y dy,    dy = J dw,    dw = w_z dz + w_y dy,
    H = (dw/dz)' (Hessian of lam' y by w) (dw/dz), lam from the reverse sweep, and that of what is between the calls.
"""

from dataclasses import dataclass

import casadi as ca

from ..interrupts import check_building
from ..subexpressions import merged

HESSIANS = ("exact", "gauss_newton")
SMALL = 500  # instructions of a stage up to which every way is tried with what is in it twice merged, which takes long
# above so many the chain rule takes fewer instructions than AD, as far as the tests have seen, where most of them are
# in the calls: then AD is not tried
LARGE = 1500
HUGE = 8000  # the same of first derivatives, which take less time
NEAR = 1.1  # how many instructions more may be fewer when merged
LONG = 20000  # instructions from which on merging takes a second and more: only the fewest are


@dataclass(frozen=True, eq=False)
class Derivatives:
    """What the Functions of a stage are made of, SX of z, p, s and lam = [lam_cost, lam_next, lam_rows]."""

    following: ca.SX
    rows: ca.SX
    cost: ca.SX
    jacobian: ca.SX
    gradient: ca.SX
    hessian: ca.SX
    gauss_newton: ca.SX


def derivatives(stage, lam, hessians=HESSIANS):
    """Derivatives of an Unrolled stage (z, p, s) -> [next, rows, cost, residuals]; Hessians that are not among
    `hessians` are empty."""
    z, p, s = stage.inputs
    following, rows, cost, residuals = merged([ca.densify(y) for y in stage.put_in(stage.outputs)])
    total = _total(cost, residuals)
    out = ca.vertcat(following, rows)
    known, multiplied = [z, p, s], [z, p, s, *lam]
    size = ca.Function("n", known, [out, total]).n_instructions()
    small, chain = size <= SMALL, _Chain(stage) if stage.calls else None
    chains = [chain] if chain else []
    others = not chain or size <= LARGE or chain.instructions < size / 2  # are worth a try
    jacobians, residual_jacobians, exact = [], [], []
    check_building()
    for way in chains:
        outputs, own = way.stage.outputs, way.stage.inputs
        J = way.jacobians(ca.vertcat(*outputs[:2]))
        R = way.jacobians(outputs[3]) if "gauss_newton" in hessians else []
        check_building()
        H = [way.hessian(_lagrangian(*outputs, lam), lam)] if "exact" in hessians else []
        found = ca.Function("way", [*own, *lam], [*J, *R, *H]).call(multiplied, True, False)
        jacobians += found[: len(J)]
        residual_jacobians += found[len(J) : len(J) + len(R)]
        exact += found[len(J) + len(R) :]
    check_building()
    if others or size <= HUGE:
        jacobians += _both_modes(out, z)
        residual_jacobians += _both_modes(residuals, z) if "gauss_newton" in hessians else []
    check_building()
    if others and "exact" in hessians:
        exact += _hessians(_lagrangian(following, rows, cost, residuals, lam), z, small)
    check_building()
    empty = ca.SX(z.numel(), z.numel())
    approximate = empty
    if "gauss_newton" in hessians:
        R = _fewest(residual_jacobians)
        approximate = ca.triu(lam[0] * (R.T @ R)) + _fewest(_hessians(lam[0] * cost, z, small))
    check_building()
    return Derivatives(
        following,
        rows,
        total,
        _least(jacobians, known, small),
        merged(ca.densify(ca.gradient(total, z))),
        _least(exact, multiplied, small) if "exact" in hessians else empty,
        merged(ca.sparsify(approximate)),
    )


def _total(cost, residuals):
    return cost + ca.sumsqr(residuals) / 2 if residuals.numel() else cost


def _lagrangian(following, rows, cost, residuals, lam):
    return lam[0] * _total(cost, residuals) + ca.dot(lam[1], following) + ca.dot(lam[2], rows)


def _least(ways, known, small):
    """The expression of fewest instructions, what is in it twice merged, which is tried for those that come near."""
    ways = [ca.sparsify(y) for y in ways]
    if small or len(ways) == 1:
        near = ways
    else:
        counts = [_count(y, known) for y in ways]
        least = min(counts)
        near = [y for y, n in zip(ways, counts, strict=True) if n <= NEAR * least]
        near = near if least < LONG else [ways[counts.index(least)]]
    check_building()
    near = [merged(y) for y in near]
    return min(near, key=lambda y: _count(y, known)) if len(near) > 1 else near[0]


def _fewest(ways):
    """The expression of fewest instructions as it is."""
    ways = [ca.sparsify(y) for y in ways]
    return ways[0] if len(ways) == 1 else min(ways, key=lambda y: _count(y, ca.symvar(y)))


def _count(y, known):
    return ca.Function("n", known, [y]).n_instructions()


_REVERSE = {"helper_options": {"enable_forward": False}}  # CasADi's own choice counts directions alone


def _both_modes(y, z):
    return [ca.jacobian(y, z), ca.jacobian(y, z, _REVERSE)]


def _jacobian(y, z):
    return _fewest(_both_modes(y, z))


def _hessians(y, z, every):
    """Upper triangles, by every mode or those that are usually less."""
    gradient = ca.gradient(y, z)
    return [ca.triu(ca.jacobian(gradient, z, how)) for how in ({"symmetric": True}, _REVERSE, {})[: 2 + every]]


class _Chain:
    """Derivatives by the chain rule through the calls of an Unrolled stage."""

    def __init__(self, stage):
        self.stage, (self.z, *_) = stage, stage.inputs
        self.ys = [c.y for c in stage.calls]
        self.instructions = sum(c.of.value.n_instructions() for c in stage.calls)
        self.w = stage.put_in([c.w for c in stage.calls])
        self.J = [c.derivative(w) for c, w in zip(stage.calls, self.w, strict=True)]
        self.dw, self.dy = [], []
        for k, c in enumerate(stage.calls):
            check_building()
            self.dw.append(self._total_derivative(c.w, k))
            self.dy.append(ca.sparsify(self.J[k] @ self.dw[k]))

    def _total_derivative(self, y, calls):
        """By z, of an expression that depends on results of the first so many calls."""
        parts = self.stage.put_in([_jacobian(y, x) for x in (self.z, *self.ys[:calls])])
        return ca.sparsify(sum((d @ dy for d, dy in zip(parts[1:], self.dy, strict=False) if d.nnz()), parts[0]))

    def jacobians(self, y):
        """Of an expression of the stage's inputs and the results of calls, multiplied from the right, and from the
        left, which is less where y has fewer rows than the results."""
        return [self._total_derivative(y, len(self.ys)), self._in_reverse(y)]

    def _in_reverse(self, y):
        first, *by = self._put_in([_jacobian(y, x) for x in (self.z, *self.ys)])
        for k in reversed(range(len(by))):
            if by[k].nnz():
                by_w = ca.sparsify(by[k] @ self.J[k])
                along = self._put_in([_jacobian(self.stage.calls[k].w, x) for x in (self.z, *self.ys[:k])])
                first, *by[:k] = (a + by_w @ ca.sparsify(b) for a, b in zip([first, *by[:k]], along, strict=True))
        return ca.sparsify(first)

    def hessian(self, y, lam):
        """Upper triangle, of a scalar that depends on multipliers lam besides."""
        calls = self.stage.calls
        bars = [ca.SX.sym("bar", *c.w.shape) for c in calls]
        swept, values, seeds = y, [], []
        for k in reversed(range(len(calls))):
            (seed,) = self._put_in([ca.densify(ca.gradient(swept, self.ys[k]))], lam, bars[k + 1 :], values)
            seeds.insert(0, seed)
            values.insert(0, calls[k].gradient(self.w[k], seed))
            swept = swept + ca.dot(bars[k], calls[k].w)
        x = ca.vertcat(self.z, *self.ys)
        (outer,) = self._put_in([ca.triu2symm(_fewest(_hessians(swept, x, False)))], lam, bars, values)
        along = ca.vertcat(ca.SX.eye(self.z.numel()), *self.dy)
        H = _congruence(outer, along)
        for call, w, seed, dw in zip(calls, self.w, seeds, self.dw, strict=True):
            H = H + _congruence(call.curvature(w, seed), dw)
        return H

    def _put_in(self, expressions, lam=(), bars=(), values=()):
        return self.stage.put_in(expressions, [*lam, *bars], [*lam, *values])


def _congruence(H, D):
    """Upper triangle of D' H D."""
    return ca.triu(D.T @ ca.sparsify(ca.sparsify(H) @ D))
