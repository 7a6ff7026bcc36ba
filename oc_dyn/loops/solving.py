"""Forward and hybrid dynamics of robots with loops, any order: inverse dynamics coefficient by coefficient.

At order k all is known but for the independent acceleration, which enters linearly: the passes of the tree give the
torques without it, G^T M G turns what is missing into it, and a linear pass puts it into the jets of the tree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca

from ..errors import OrderError
from ..forward_dynamics.mass_solver import factor_reversed, solve_reversed
from ..friction import friction_torques
from ..hybrid_dynamics import prescribed_rows
from ..inverse_dynamics.taylor import Passes
from ..lie import jets
from ..lie.jets import total
from ..model.canonical import canonical
from ..model.parameters import checked_parts, with_values
from ..ports import derivative_name
from .clusters import ClusterSolver, is_clustered
from .embedding import METHODS, WAYS, Embedded, mass
from .jets import LoopJets


def model_of(e: Embedded) -> Any:
    """The canonical form of the tree, with the values of the ports params and gravity where they are there."""
    parts = checked_parts("parameters", e.options.get("parameters"))
    model = canonical(e.robot.tree, "inertia" not in parts)
    model = with_values(model, parts, e.ports["params"]) if parts else model
    return replace(model, gravity=e.ports["gravity"]) if e.options.get("gravity") else model


class _Solver:
    """`next(tau, a)` gives coefficient k of (accelerations, torques), both (nv,), of the robot's own coordinates, where
    the rows `known` of the accelerations are given and the others of the torques. clustered: by articulated inertias,
    where none are given, at a cost linear in the bodies."""

    def __init__(self, e: Embedded, known: tuple[int, ...], clustered: bool = False) -> None:
        robot, order = e.robot, e.order
        self.free = [k for k in range(robot.nv) if k not in known]
        self.grown = LoopJets(robot, e.q)
        self.grown.push(e.own[0])
        G = self.grown.G[0]
        if clustered:
            solver = ClusterSolver(robot, model_of(e), e.q, G)
            self.inertia, self.own_M, self.solve = solver.product, ca.SX(robot.nv, robot.nv), solver.solve
        else:
            M = e.of_tree("mass_matrix", 0)["M"]
            self.inertia, self.own_M = (lambda x: M @ x), G.T @ M @ G
            factors = factor_reversed(self.own_M[self.free, self.free]) if self.free else None
            self.solve = lambda b: solve_reversed(factors, b)
        W = [e.ports[derivative_name("w_ext", k)] for k in range(order + 1)] if e.options["external_wrenches"] else None
        model = model_of(e)
        self.robot, self.viscous = robot, model.viscous
        self.passes = Passes(model, e.q, self.grown.v[0], None if W is None else jets.from_derivatives(W))
        self.tau: list[Any] = []
        self.order = order

    def friction(self) -> Any:
        """(nv,) coefficient k of the torques that friction of all joints takes, k the next coefficient of `next`."""
        k, G = len(self.tau), self.grown.G
        V = jets.to_derivatives(self.grown.v)
        taken = jets.from_derivatives(friction_torques(self.robot.tree, V, self.viscous))
        return total(G[j].T @ taken[k - j] for j in range(k + 1))

    def next(self, tau: Any, a: Any) -> tuple[Any, Any]:
        """tau, a: (nv,) coefficient k of both, zero in the rows that are not given."""
        k, G = len(self.tau), self.grown.G
        self.grown.complete(k + 1)
        rest = total(G[j] @ self.grown.vy[k + 1 - j] for j in range(1, k + 2))  # of coefficient k + 1 of v
        bare = self.passes.torque() + self.inertia((k + 1) * rest)
        lower = [G[j].T @ self.tau[k - j] for j in range(1, k + 1)]
        needed = total([G[0].T @ bare, *lower, self.own_M @ a])
        found = ca.SX(a)
        if self.free:
            found[self.free] = self.solve((tau - needed)[self.free])
        step = found / (k + 1)
        v = rest + G[0] @ step
        self.passes.correct(v)
        self.tau.append(bare + self.inertia((k + 1) * (G[0] @ step)))
        if k < self.order:
            self.grown.push(step)
        torques = total([G[0].T @ self.tau[k], *lower])
        return found, torques


def _forward(e: Embedded, method: str | None) -> dict[str, Any]:
    del method
    T = [e.ports[derivative_name("tau", k)] for k in range(e.order + 1)]
    rubs = e.options.get("friction")
    if rubs and e.options.get("motors"):
        raise OrderError("forward_dynamics: friction=True with actuated is not there; subtract it from tau")
    by_clusters = e.options.get("clustered")  # None: what takes fewer instructions
    solver = _Solver(e, (), is_clustered(e.robot) if by_clusters is None else by_clusters)
    none, motors = ca.SX(e.robot.nv, 1), e.options.get("motors")
    found = []
    T = jets.from_derivatives(T)
    for k, tau in enumerate(T):
        solver.grown.complete(k + 1)
        tau = tau - solver.friction() if rubs else tau
        found.append(solver.next(motors.forces(solver.grown.G, T, k) if motors else tau, none)[0])
    return {derivative_name("v", k + 1): x for k, x in enumerate(jets.to_derivatives(found))}


def _hybrid(e: Embedded, method: str | None) -> dict[str, Any]:
    del method
    rows, nv = prescribed_rows(e.robot, e.options), e.robot.nv
    others = [k for k in range(nv) if k not in rows]
    A, T = [], []
    for k in range(e.order + 1):
        a, tau = ca.SX(nv, 1), ca.SX(nv, 1)
        a[list(rows)], tau[others] = (
            e.ports[derivative_name("v", k + 1) + "_p"],
            e.ports[derivative_name("tau", k) + "_f"],
        )
        A.append(a)
        T.append(tau)
    solver, pairs = _Solver(e, rows), []
    for t, a in zip(jets.from_derivatives(T), jets.from_derivatives(A), strict=True):
        taken = solver.friction() if e.options.get("friction") else ca.SX(nv, 1)
        acceleration, torque = solver.next(t - taken, a)  # of t, rows that are given count alone
        pairs.append((acceleration, torque + taken))
    accelerations, torques = (jets.to_derivatives([p[n] for p in pairs]) for n in (0, 1))
    out = {}
    for k in range(e.order + 1):
        a, tau = derivative_name("v", k + 1), derivative_name("tau", k)
        out[a], out[tau] = accelerations[k], torques[k]
        out[a + "_f"], out[tau + "_p"] = accelerations[k][others], out[tau][list(rows)]
    return out


def _inverse(e: Embedded, method: str | None) -> dict[str, Any]:
    del method
    M = mass(e, 0)[0]
    return {"Minv": ca.solve(M, ca.SX.eye(e.robot.nv))}


_OWN = {"forward_dynamics": _forward, "hybrid_dynamics": _hybrid, "mass_matrix_inverse": _inverse}
WAYS |= _OWN
METHODS |= dict.fromkeys(_OWN, ("embedding",))
