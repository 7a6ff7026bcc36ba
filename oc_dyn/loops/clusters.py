"""Solving with the mass matrix of a robot with loops at a cost that is linear in its bodies: articulated inertias of
clusters, the bodies of loops that have joints in common.

A cluster hangs on one body p. With y the independent velocities of its joints, a body moves as V_i = X V_parent +
S_i G_i y. From the tips to p the kinetic energy of a body and what hangs on it is the form of [[I, K], [K^T, D]] in
(V_i, y); the cluster hands on I - K D^-1 K^T (Chignoli, Adrian, Kim, Wensing 2023, Recursive rigid-body dynamics
algorithms for systems with kinematic loops).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..forward_dynamics.mass_solver import factor_reversed, solve_reversed
from ..matrices.composite import composite
from ..model.cache import cached
from ..model.canonical import Canonical, canonical
from ..model.loops import LoopRobot
from ..subexpressions import merged
from ..working_axes.frames import body_placements


@dataclass(frozen=True)
class Cluster:
    """bodies: numbers in the canonical form, parents first. on: the body that it hangs on. own: rows of the robot's
    velocities."""

    bodies: tuple[int, ...]
    on: int
    own: tuple[int, ...]


def clusters_of(robot: LoopRobot) -> tuple[Cluster, ...]:
    """Clusters of a robot, those that others hang on first."""
    return cached(robot, ("clusters",), lambda: _clusters(robot))


def _clusters(robot: LoopRobot) -> tuple[Cluster, ...]:
    model = canonical(robot.tree)
    together = _Sets(model.bodies)
    masters: dict[int, int] = {}
    for i in model.bodies:  # several bodies of one joint, and joints that follow
        together.join([i, masters.setdefault(model.coordinates[i][2], i)])
    at = {j.name: masters[j.v_index] for j in robot.tree.joints if j.nv}
    for loop in robot.loops:
        a, b = (set(model.support(model.number[x])) for x in loop.bodies)
        together.join(a ^ b)
    for c in robot.couplings:
        together.join([at[name] for name in (c.joint, *c.of)])
    while _grow(model, together):
        pass
    rows = {row: k for k, row in enumerate(robot.rows("v", robot.independent))}
    found = []
    for bodies in together.sets():
        on = next(p for p in (model.parent[i] for i in bodies) if p not in bodies)
        used = {model.coordinates[i][2] + k for i in bodies for k in range(model.coordinates[i][3])}
        found.append(Cluster(tuple(sorted(bodies)), on, tuple(rows[r] for r in sorted(used) if r in rows)))
    return _sorted(found)


def _grow(model: Canonical, together: _Sets) -> bool:
    """Join a cluster that hangs on several bodies with those between them; False where there is none."""
    for bodies in together.sets():
        above = {model.parent[i] for i in bodies} - bodies
        if len(above) > 1:
            paths = [set(model.support(p)) for p in above]
            between = set.union(*paths) - set.intersection(*paths)
            together.join([*bodies, *between])
            return True
    return False


def _sorted(found: list[Cluster]) -> tuple[Cluster, ...]:
    done: set[int] = {0}
    out: list[Cluster] = []
    while found:
        ready = [c for c in found if c.on in done]
        out += ready
        done |= {i for c in ready for i in c.bodies}
        found = [c for c in found if c not in ready]
    return tuple(out)


class _Sets:
    """Disjoint sets of numbers."""

    def __init__(self, numbers: Any) -> None:
        self.of = {i: {i} for i in numbers}

    def join(self, numbers: Any) -> None:
        """Make one set of those that hold these."""
        joined: set[int] = set().union(*(self.of[i] for i in numbers))
        for i in joined:
            self.of[i] = joined

    def sets(self) -> list[set[int]]:
        """All of them."""
        return list({id(x): x for x in self.of.values()}.values())


class ClusterSolver:
    """`solve(b)` is (G^T M G)^-1 b, `product(x)` is M x of the tree; G (tree.nv, nv): that of the closed tree."""

    def __init__(self, robot: LoopRobot, model: Canonical, q: Any, G: Any) -> None:
        self.robot, self.model, self.clusters = robot, model, clusters_of(robot)
        parts = model.joint_q(q)
        self.frames = body_placements(model, parts)
        self.S: dict[int, Any] = {}
        self.turned: dict[int, Any] = {}  # S_i G_i of each body
        for c in self.clusters:
            for i in c.bodies:
                S = model.S[i] if model.S[i] is not None else model.subspace_function(i)(parts[i])
                self.S[i] = ca.sparsify(ca.SX(S))
                self.turned[i] = ca.sparsify(ca.mtimes(S, self._rates(i, G, c)))
        self._sweep(G)

    def _rates(self, i: int, G: Any, c: Cluster) -> Any:
        """(nv_i, rows of the cluster) the velocity of joint i from those of its cluster."""
        first, size = self.model.coordinates[i][2:]
        return self.model.rule[i][0] * G[first : first + size, list(c.own)]

    def _sweep(self, G: Any) -> None:
        """Articulated inertias, from the tips to the ground."""
        model = self.model
        A = {i: model.M[i][:3, :3] for i in model.bodies}
        H = {i: model.M[i][:3, 3:] for i in model.bodies}
        B = {i: model.M[i][3:, 3:] for i in model.bodies}
        self.D: list[Any] = []
        self.K: list[Any] = []
        self.passed: list[Any] = []
        for c in reversed(self.clusters):
            size = len(c.own)
            K: dict[int, Any] = {i: (ca.SX(3, size), ca.SX(3, size)) for i in (*c.bodies, c.on)}
            D = ca.SX(size, size)
            at = {c.on: (ca.SX(3, 3), ca.SX(3, 3), ca.SX(3, 3))}
            for i in reversed(c.bodies):
                T, N = self.turned[i], self._rates(i, G, c)
                U = A[i] @ T[:3, :] + H[i] @ T[3:, :], H[i].T @ T[:3, :] + B[i] @ T[3:, :]
                half = T.T @ ca.vertcat(*K[i])
                D = D + T.T @ ca.vertcat(*U) + half + half.T + N.T @ model.rotor(i) @ N
                p, frame = model.parent[i], self.frames[i]
                moved = frame.articulated(A[i], H[i], B[i])
                if p == c.on:
                    at[p] = tuple(x + y for x, y in zip(at[p], moved, strict=True))
                else:
                    A[p], H[p], B[p] = (x + y for x, y in zip((A[p], H[p], B[p]), moved, strict=True))
                K[p] = _sum(K[p], frame.wrench(K[i][0] + U[0], K[i][1] + U[1]))
            p, factors = c.on, factor(D) if size else None
            n, f = K[p]
            V = [solve(factors, x.T) if size else x.T for x in (n, f)]
            if p:
                a, h, b = at[p]
                handed = a - n @ V[0], h - n @ V[1], b - f @ V[1]
                A[p], H[p], B[p] = (x + y for x, y in zip((A[p], H[p], B[p]), handed, strict=True))
            self.D.append(factors)
            self.K.append(K[p])
            self.passed.append(V)
        for x in (self.D, self.K, self.passed):
            x.reverse()

    def solve(self, b: Any) -> Any:
        """(nv,) independent accelerations from generalised forces, both of the robot's own coordinates."""
        zero = ca.DM.zeros(3)
        n, f = ({i: zero for i in (0, *self.model.bodies)} for _ in range(2))
        wanted: list[Any] = []
        for c, V in zip(reversed(self.clusters), reversed(self.passed), strict=True):
            left = b[list(c.own)]
            carried = (zero, zero)
            for i in reversed(c.bodies):
                left = left - self.turned[i].T @ ca.vertcat(n[i], f[i])
                moved, p = self.frames[i].wrench(n[i], f[i]), self.model.parent[i]
                if p == c.on:
                    carried = _sum(carried, moved)
                else:
                    n[p], f[p] = n[p] + moved[0], f[p] + moved[1]
            if c.on:
                n[c.on] = n[c.on] + carried[0] + V[0].T @ left
                f[c.on] = f[c.on] + carried[1] + V[1].T @ left
            wanted.append(left)
        out = ca.SX(self.robot.nv, 1)
        w, u = {0: zero}, {0: zero}
        for k, c in enumerate(self.clusters):
            V = self.passed[k]
            free = solve(self.D[k], wanted[-1 - k]) if c.own else wanted[-1 - k]
            y = free - V[0] @ w[c.on] - V[1] @ u[c.on]
            out[list(c.own)] = y
            for i in c.bodies:
                x, z = self.frames[i].twist(w[self.model.parent[i]], u[self.model.parent[i]])
                step = self.turned[i] @ y
                w[i], u[i] = x + step[:3], z + step[3:]
        return out

    def product(self, x: Any) -> Any:
        """M x, x (tree.nv,), by one pass to the tips and one back."""
        model, zero = self.model, ca.DM.zeros(3)
        rates, w, u, n, f = model.joint_v(x), {0: zero}, {0: zero}, {0: zero}, {0: zero}
        for i in model.bodies:
            above, S = self.frames[i].twist(w[model.parent[i]], u[model.parent[i]]), self.S[i]
            w[i], u[i] = above[0] + S[:3, :] @ rates[i], above[1] + S[3:, :] @ rates[i]
            n[i] = model.M[i][:3, :3] @ w[i] + model.M[i][:3, 3:] @ u[i]
            f[i] = model.M[i][3:, :3] @ w[i] + model.M[i][3:, 3:] @ u[i]
        torques = {}
        for i in model.reversed_bodies:
            p = model.parent[i]
            torques[i] = self.S[i].T @ ca.vertcat(n[i], f[i]) + model.rotor(i) @ rates[i]
            if p:
                n[p], f[p] = _sum((n[p], f[p]), self.frames[i].wrench(n[i], f[i]))
        return model.stack(torques)


_FEW = 6  # independent velocities, up to which the mass matrix is the better way


def is_clustered(robot: LoopRobot) -> bool:
    """Whether clusters take fewer instructions than factors of G^T M G, which branches of a robot leave sparse."""
    if robot.nv <= _FEW:
        return False
    return cached(robot, ("clustered",), lambda: operator.gt(*_counts(robot)))


def _counts(robot: LoopRobot) -> tuple[int, int]:
    """Instructions of what an order of forward dynamics takes, by the mass matrix and by clusters."""
    model, q, b = canonical(robot.tree), ca.SX.sym("q", robot.tree.nq), ca.SX.sym("b", robot.nv)
    G, x = _symbols(robot, model), ca.SX.sym("x", robot.tree.nv)
    M, solver = composite(model, q), ClusterSolver(robot, model, q, G)
    dense = solve_reversed(factor_reversed(G.T @ M @ G), b - G.T @ (M @ x))
    clustered = solver.solve(b - G.T @ solver.product(x))
    symbols = [q, b, x, *ca.symvar(G)]
    counts = (ca.Function("solve", symbols, [merged(y)]).n_instructions() for y in (dense, clustered))
    return next(counts), next(counts)


def _symbols(robot: LoopRobot, model: Canonical) -> Any:
    """(tree.nv, nv) symbols where G is neither zero nor one."""
    out = ca.SX(robot.tree.nv, robot.nv)
    own = {row: k for k, row in enumerate(robot.rows("v", robot.independent))}
    for c in clusters_of(robot):
        for i in c.bodies:
            first, size = model.coordinates[i][2:]
            for row in range(first, first + size):
                if row in own:
                    out[row, own[row]] = 1
                else:
                    out[row, list(c.own)] = ca.SX.sym(f"G{row}", 1, len(c.own))
    return out


def _sum(a: Any, b: Any) -> Any:
    return tuple(x + y for x, y in zip(a, b, strict=True))
