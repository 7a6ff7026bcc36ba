"""Dynamics with explicit constraints: the passes of the tree, order by order, and three ways to solve for the forces.

At order k all is known but for the acceleration a and the forces f of that order, which enter linearly:

    M a - J^T f = b,    J a = c,    so  (J M^-1 J^T) f = c - J M^-1 b,    a = M^-1 (b + J^T f).
"""

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..forward_dynamics.mass_solver import mass_solver
from ..inverse_dynamics.taylor import Passes
from ..lie import jets
from ..lie.jets import total
from ..matrices.composite import composite
from ..model.assembly import closed_places, closing_blocks, closing_rows, independent_rows, rank_of
from ..model.cache import cached
from ..model.canonical import canonical
from ..model.closure import body_poses, residual
from ..registry import method
from ..time_methods import in_time
from .jets import RowJets

MU, ROUNDS = 1e-6, 4  # of the proximal steps, relative to the trace of J M^-1 J^T


class _Delassus:
    """Solves for (a, f) by J M^-1 J^T; rows that say the same again have no force."""

    def __init__(self, given, J, kept=None):
        self.kept = _independent(given) if kept is None else kept
        self.J, self.count = J[self.kept, :], J.shape[0]
        self.solve = mass_solver(canonical(given.tree, True), given.q)
        self.W = _columns(self.solve, self.J.T)
        D = self.J @ self.W
        self.factors = ca.ldl(ca.densify(D), False)

    def __call__(self, b, c):
        a = self.solve(b)
        f = ca.ldl_solve(ca.densify(c[self.kept] - self.J @ a), *self.factors)
        forces = ca.SX(self.count, 1)
        forces[self.kept] = f
        return a + self.W @ f, ca.densify(forces)


class _Proximal:
    """As _Delassus with all rows, J M^-1 J^T + mu in its place and what that leaves open taken up again: redundant
    constraints share the forces, least in sum of squares."""

    def __init__(self, given, J):
        self.J = J
        self.solve = mass_solver(canonical(given.tree, True), given.q)
        self.W = _columns(self.solve, J.T)
        D = J @ self.W
        mu = MU * ca.trace(D) / given.count
        self.D, self.factors = D, ca.ldl(ca.densify(D + mu * ca.SX.eye(given.count)), False)

    def __call__(self, b, c):
        a = self.solve(b)
        f, left = 0, c - self.J @ a
        for _ in range(ROUNDS):
            step = ca.ldl_solve(ca.densify(left), *self.factors)
            f, left = f + step, left - self.D @ step
        return a + self.W @ f, f


class _Kkt:
    """Solves the equations as they stand, by QR."""

    def __init__(self, given, J, kept=None):
        self.kept = _independent(given) if kept is None else kept
        self.count, J = J.shape[0], J[self.kept, :]
        M, zero = composite(canonical(given.tree), given.q), ca.SX(len(self.kept), len(self.kept))
        self.Q, self.R = ca.qr(ca.densify(ca.blockcat([[M, -J.T], [J, zero]])))
        self.nv = given.tree.nv

    def __call__(self, b, c):
        x = ca.solve(self.R, self.Q.T @ ca.vertcat(b, c[self.kept]))
        forces = ca.SX(self.count, 1)
        forces[self.kept] = x[self.nv :]
        return x[: self.nv], ca.densify(forces)


class _Combined:
    """As another of these, of C^T J instead of J, coefficient by coefficient: forces are C g. Of overconstrained loops
    any choice of rows gets singular somewhere; these combinations only where the mechanism is. J: list of coefficients,
    which grows."""

    def __init__(self, given, solver, J):
        self.given, self.J, self.C = given, J, [combination(given, J[0])]
        rows = list(range(self.C[0].shape[1]))
        self.inner, self.g, self.left = solver(given, self.C[0].T @ J[0], rows), [], []

    def __call__(self, b, c):
        k = len(self.g)
        if k:
            self.C.append(combination(self.given, self.J[k], 0))
        C, J = self.C, self.J[0]
        lower = total([ca.SX(*c.shape), *(C[j] @ self.g[k - j] for j in range(1, k + 1))])
        right = total([C[0].T @ c, *(C[j].T @ self.left[k - j] for j in range(1, k + 1))])
        a, g = self.inner(b + J.T @ lower, right)
        self.g.append(g)
        self.left.append(c - J @ a)  # zero of velocities that the loops allow
        return a, ca.densify(C[0] @ g + lower)


def combined(given):
    """Whether rows are combined."""
    return bool(given.loops or given.couplings) and not all(b.square for b in closing_blocks(given.robot))


def combination(given, J, one=1):
    """(rows, independent ones) C: of blocks that are not square their dependent columns of J (rows, nv), else ones."""
    kept = _independent(given)
    blocks = [b for b in closing_blocks(given.robot) if not b.square]
    kept = [k for k in kept if not any(k in b.rows for b in blocks)]
    columns = [ca.SX(given.count, len(kept))]
    for n, k in enumerate(kept):
        columns[0][k, n] = one
    for b in blocks:
        columns.append(ca.SX(given.count, len(b.columns)))
        columns[-1][b.rows, :] = J[b.rows, b.columns]
    return ca.horzcat(*columns)


def _made(given, solver, J):
    """A solver for J, a list of coefficients."""
    if solver is _Proximal or not combined(given):
        return solver(given, J[0])
    return _Combined(given, solver, J)


def _columns(solve, B):
    """M^-1 B; by articulated inertias one column after the other."""
    return ca.horzcat(*(solve(ca.densify(B[:, k])) for k in range(B.shape[1])))


def _independent(given):
    """Rows that determine the others at closed configurations, where no constraint is in a singular position."""
    key = ("independent rows", given.contacts)  # complete: loops and couplings are the robot's
    return cached(given.robot, key, lambda: _picked(given))


def jacobians_at_places(given):
    """Jacobians of the constraints at some configurations, closed ones where there are loops."""
    q = ca.SX.sym("q", given.tree.nq)
    f = ca.Function("J", [q], [jacobian_as_written(given, q)[0]])
    if given.loops or given.couplings:
        places = closed_places(given.robot)
    else:
        places = [given.tree.random_configuration(seed) for seed in range(5)]
    return [np.array(f(x)) for x in places]


def _picked(given):
    found = jacobians_at_places(given)
    if not any(map(rank_of, found)):
        names = ", ".join(repr(name) for name, _ in given.contacts)
        raise ModelError(given.tree.name, [f"contacts of {names} hold nothing: their origins do not move"])
    first = closing_rows(given.robot) if given.loops or given.couplings else []
    closed = sum(len(x.directions) for x in given.loops) + len(given.couplings)
    more = max(rank_of(J) - rank_of(J[:closed]) for J in found) if given.contacts else 0
    stacked = np.hstack(found)
    stacked[[k for k in range(closed) if k not in first]] = 0.0  # what loops add to each other is in `first`
    return independent_rows(stacked, len(first) + more, first)


def _by_passes(given, solver):
    """([dv, d2v, ...], [f, df, ...]), coefficient by coefficient."""
    rows = RowJets(given.tree, given.loops, given.couplings, given.q, given.contacts)
    W = None if given.W is None else jets.from_derivatives(given.W)
    passes = Passes(canonical(given.tree, True), given.q, given.v, W)
    J, V, A, F = [rows.next()], [given.v], [], []
    rows.push(given.v)
    solve = _made(given, solver, J)
    open_ = [] if given.gains is None else [given.residual()]  # jet of r: its rate is J v
    T, wanted = jets.from_derivatives(given.T), jets.from_derivatives(given.A)
    for k in range(given.order + 1):
        J.append(rows.next())
        c = wanted[k] - (k + 1) * total(J[j] @ V[k + 1 - j] for j in range(1, k + 2))
        if given.gains is not None:
            rate = total(J[j] @ V[k - j] for j in range(k + 1))
            c = c - given.gains[0] * open_[k] - given.gains[1] * rate
            open_.append(rate / (k + 1))
        b = T[k] - passes.torque() + total([ca.SX(given.tree.nv, 1), *(J[j].T @ F[k - j] for j in range(1, k + 1))])
        a, f = solve(b, c)
        A.append(a)
        F.append(f)
        V.append(a / (k + 1))
        if k < given.order:
            passes.correct(V[-1])
            rows.push(V[-1])
    return jets.to_derivatives(A), jets.to_derivatives(F)


_SOURCE = "this toolkit; order 0: Featherstone 2008, chapter 8"


@method("constrained_dynamics", "delassus", kind="analytic", source=_SOURCE)
def delassus(given):
    """([dv, ...], [f, ...]); see od.describe("constrained_dynamics")."""
    return _by_passes(given, _Delassus)


@method("constrained_dynamics", "proximal", kind="analytic", source="Carpentier et al. 2021 at order 0", tolerance=1e-6)
def proximal(given):
    """As delassus, for constraints that say the same twice; see od.describe("constrained_dynamics")."""
    return _by_passes(given, _Proximal)


@method("constrained_dynamics", "kkt", kind="closed_form", source="the equations as they stand")
def kkt(given):
    """As delassus, by the whole matrix; see od.describe("constrained_dynamics")."""
    return _by_passes(given, _Kkt)


@in_time("constrained_dynamics", source="AD of kkt at order 0", cse=False)
def ad(way, given):
    """As delassus, derivatives by AD, J from poses as written; see od.describe("constrained_dynamics")."""
    tree, order = given.tree, given.order
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    T = [ca.SX.sym(f"T{k}", tree.nv) for k in range(order + 2)]
    W = None if given.W is None else [ca.SX.sym(f"W{k}", *given.W[0].shape) for k in range(order + 2)]
    A = [ca.SX.sym(f"A{k}", given.count) for k in range(order + 2)]
    J, r = jacobian_as_written(given, q)
    rates = tree.configuration_rate(q, v)
    passes = Passes(canonical(tree), q, v, None if W is None else [W[0]])
    c = A[0] - ca.jtimes(J @ v, q, rates)
    if given.gains is not None:
        c = c - given.gains[0] * r - given.gains[1] * (J @ v)
    a, f = _made(_At(given, q), _Kkt, [J])(T[0] - passes.torque(), c)
    flow = [(q, rates), (v, a)]
    flow += [(x[k], x[k + 1]) for x in (T, A, *([W] if W else [])) for k in range(order + 1)]
    found = way(ca.vertcat(a, f), order, flow)
    symbols = [q, v, *T[: order + 1], *A[: order + 1], *(W[: order + 1] if W else [])]
    values = [given.q, given.v, *given.T, *given.A, *(given.W or [])]
    found = ca.substitute(found, symbols, [ca.densify(ca.SX(x)) for x in values])
    return [x[: tree.nv] for x in found], [x[tree.nv :] for x in found]


class _At:
    """`given` at symbols of its own."""

    def __init__(self, given, q):
        self.robot, self.tree, self.q, self.count = given.robot, given.tree, q, given.count
        self.loops, self.couplings, self.contacts = given.loops, given.couplings, given.contacts


def jacobian_as_written(given, q):
    """(J, r) by AD of residuals, and of poses of frames in contact."""
    tree, rows, r = given.tree, [ca.SX(0, given.tree.nv)], ca.SX(0, 1)
    if given.loops or given.couplings:
        r, J, _ = residual(given.robot)(q)
        rows.append(J)
    v, poses = ca.SX.sym("v", tree.nv), body_poses(tree, q)
    rates = tree.configuration_rate(q, v)
    for name, kind in given.contacts:
        f = tree.frame(name)
        R, p = poses[f.body]
        moved = ca.jtimes(p + R @ ca.DM(f.translation), q, rates)
        if kind == "surface":
            W = ca.reshape(ca.jtimes(ca.vec(R), q, rates), 3, 3) @ R.T
            moved = ca.vertcat(W[2, 1], W[0, 2], W[1, 0], moved)
        rows.append(ca.jacobian(moved, v))
    return ca.vertcat(*rows), ca.vertcat(r, ca.SX(given.count - r.shape[0], 1))


@method("impact", "delassus", kind="analytic", source=_SOURCE)
def impact(given, restitution):
    """(v_after, impulse); see od.describe("impact")."""
    J = RowJets(given.tree, given.loops, given.couplings, given.q, given.contacts).next()
    return _after(_made(given, _Delassus, [J]), given, J, restitution)


@method("impact", "proximal", kind="analytic", source="as constrained_dynamics/proximal", tolerance=1e-6)
def impact_proximal(given, restitution):
    """As delassus, for constraints that say the same twice; see od.describe("impact")."""
    J = RowJets(given.tree, given.loops, given.couplings, given.q, given.contacts).next()
    return _after(_Proximal(given, J), given, J, restitution)


@method("impact", "kkt", kind="closed_form", source="the equations as they stand, J by AD", cse=False)
def impact_kkt(given, restitution):
    """As delassus, by the whole matrix; see od.describe("impact")."""
    J, _ = jacobian_as_written(given, given.q)
    return _after(_made(given, _Kkt, [J]), given, J, restitution)


def _after(solve, given, J, restitution):
    change, impulse = solve(ca.SX(given.tree.nv, 1), -(1 + restitution) * (J @ given.v))
    return given.v + change, impulse
