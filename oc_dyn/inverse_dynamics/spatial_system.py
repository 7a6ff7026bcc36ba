"""Block matrices of the whole robot in spatial twists, after Proposition 1 of Ali et al. 2026: equation and rate."""

import casadi as ca

from ..kinematics.recursive_body import local_poses
from ..kinematics.recursive_spatial import forward_kinematics
from ..lie import se3
from ..lie.leibniz import carry
from ..working_axes.assembly import armatures, in_columns
from .recursive_spatial import next_inertia, spatial_inertia


class SpatialSystem:
    """The matrices of Table 2, and with them the terms of the equations of motion (10) and of their first rate (14).

    V: list [v, dv, ...], as many as the terms that are asked for need: S'' and M'' need v and dv. Lists hold what is
    stacked over the bodies and its derivatives: S[k] (6 bodies, nv) joint screws, M[k] (6 bodies, 6 bodies) inertias,
    a[k] ad of the bodies' twists. P (6 bodies, 6 bodies) has the identity at [i, j] for j = i and all bodies j between
    i and the ground, C = P^T those beyond: twists are P S v, and C adds up wrenches.
    Deviations: trees on any base; the base's velocities are those of its joint, so that the first entry of S is the
               joint's screw and its wrench a torque; joints of several velocities, S that depends on q; rotors;
               {0} is where the first body of a tree now is, or the root with poses=body_poses.
    """

    def __init__(self, model, q, V, order, poses=local_poses):
        self.model = model
        v = [*V, *[ca.DM.zeros(model.robot.nv)] * (order + 1 - len(V))]  # the highest enters no screw and no inertia
        self.pose, screws, twists = forward_kinematics(model, order, q, v, poses)
        bodies = list(model.bodies)
        ones = {i: [ca.DM.eye(6) if j in model.support(i) else ca.DM(6, 6) for j in bodies] for i in bodies}
        self.P = ca.sparsify(ca.vertcat(*(ca.horzcat(*ones[i]) for i in bodies)))
        self.C = self.P.T
        self.S = [ca.vertcat(*(in_columns(model, i, screws[i][k]) for i in bodies)) for k in range(order + 1)]
        inertias = {i: [spatial_inertia(model.inertia[i], self.pose[i])] for i in bodies}
        for _ in range(order):
            for i in bodies:
                inertias[i].append(next_inertia(inertias[i], twists[i]))  # (61)
        self.M = [_blocks(inertias[i][k] for i in bodies) for k in range(order + 1)]
        self.a = [_blocks(se3.ad(twists[i][k]) for i in bodies) for k in range(order)]
        self.G = ca.vertcat(*[ca.vertcat(0, 0, 0, model.gravity)] * len(bodies))
        self._twists = twists

    def mass(self):
        """(nv, nv) mass matrix S^T C M P S and rotors, (11)."""
        P, C, S, M = self.P, self.C, self.S, self.M
        return S[0].T @ (C @ (M[0] @ (P @ S[0]))) + ca.diag(armatures(self.model))

    def bias_matrix(self):
        """(nv, nv) whose product with v are the Coriolis and centrifugal torques, S^T C (M P S' + M' P S), (12)."""
        P, C, S, M = self.P, self.C, self.S, self.M
        return S[0].T @ (C @ (M[0] @ (P @ S[1]) + M[1] @ (P @ S[0])))

    def gravity(self):
        """(nv,) torques against gravity, -S^T C M G, (13)."""
        return -self.S[0].T @ (self.C @ (self.M[0] @ self.G))

    def applied(self, W):
        """(nv,) torques of applied wrenches, S^T C W, from stacked_wrenches, (13)."""
        return self.S[0].T @ (self.C @ W[0])

    def mass_rate(self):
        """S'^T C M P S + S^T C M' P S + S^T C M P S', (15)."""
        P, C, S, M = self.P, self.C, self.S, self.M
        half = S[0].T @ (C @ (M[0] @ (P @ S[1])))
        return half + half.T + S[0].T @ (C @ (M[1] @ (P @ S[0])))

    def bias_matrix_rate(self):
        """S'^T C (M P S' + M' P S) + S^T C (M P S'' + 2 M' P S' + M'' P S), (16), (17)."""
        P, C, S, M = self.P, self.C, self.S, self.M
        first = M[0] @ (P @ S[1]) + M[1] @ (P @ S[0])
        second = M[0] @ (P @ S[2]) + 2 * (M[1] @ (P @ S[1])) + M[2] @ (P @ S[0])
        return S[1].T @ (C @ first) + S[0].T @ (C @ second)

    def gravity_rate(self):
        """-(S'^T C M + S^T C M') G, (18)."""
        C, S, M = self.C, self.S, self.M
        return -(S[1].T @ (C @ (M[0] @ self.G)) + S[0].T @ (C @ (M[1] @ self.G)))

    def applied_rate(self, W):
        """S'^T C W + S^T C W', (19)."""
        return self.S[1].T @ (self.C @ W[0]) + self.S[0].T @ (self.C @ W[1])

    def coriolis(self):
        """(nv, nv) admissible Coriolis matrix S^T C (M P S' - ad(V)^T M P S), (21)."""
        return self.S[0].T @ (self.C @ self._admissible())

    def coriolis_rate(self):
        """Derivative of (21)."""
        P, S, M, a = self.P, self.S, self.M, self.a
        rate = M[1] @ (P @ S[1]) + M[0] @ (P @ S[2]) - a[1].T @ (M[0] @ (P @ S[0]))
        rate = rate - a[0].T @ (M[1] @ (P @ S[0]) + M[0] @ (P @ S[1]))
        return S[1].T @ (self.C @ self._admissible()) + S[0].T @ (self.C @ rate)

    def _admissible(self):
        P, S, M, a = self.P, self.S, self.M, self.a
        return M[0] @ (P @ S[1]) - a[0].T @ (M[0] @ (P @ S[0]))

    def stacked_wrenches(self, W):
        """[(6 bodies,), its rate, ...] in {0}, from w_ext and its derivatives, (67) to (70)."""
        applied, orders = [self.model.wrenches(x) for x in W], range(len(W))
        pushed = []
        for i in self.model.bodies:
            rates = [-se3.ad(x).T for x in self._twists[i][: len(W) - 1]]
            pushed.append(carry(se3.Ad_inv(self.pose[i]).T, rates, [F[i] for F in applied]))
        return [ca.vertcat(*(x[k] for x in pushed)) for k in orders]


def _blocks(matrices):
    return ca.diagcat(*(ca.sparsify(ca.SX(x)) for x in matrices))
