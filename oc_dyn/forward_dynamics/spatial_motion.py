"""What the articulated-body recursions in {0} know of a motion, grown order by order as accelerations are found."""

from math import comb

import casadi as ca

from ..inverse_dynamics.recursive_spatial import bias, next_inertia, spatial_inertia
from ..kinematics.recursive_body import local_poses
from ..lie import se3
from ..lie.jets import total
from ..lie.leibniz import grow


class SpatialMotion:
    """Per body, as lists over the order: screws S, twists Vd and inertias M in {0}, which local_poses tells, joint
    velocities v (lists of {body: velocity}). Before order k: S and Vd to k, M to k; `next_bias` adds what order k
    needs besides, `push` its solution. Source: Ali et al. 2026, Algorithms 1 and 3, eq. 65 and 66."""

    def __init__(self, model, q, v, W=None):
        self.model, self.q, self.V = model, q, [v]
        self.v = [model.joint_v(v)]
        self.applied = None if W is None else [model.wrenches(x) for x in W]
        C = local_poses(model, q)
        X = model.subspaces(q, [], 0)
        self.S, self.M, self.Vd = {}, {}, {0: [ca.DM.zeros(6)]}
        self._Ad, self._Ad_dual, self._rows, self._wrenches, self._rates = {}, {}, {}, {}, {}
        for i in model.bodies:
            self._Ad[i], self._rows[i], self._wrenches[i] = se3.Ad(C[i]), [], []
            self._Ad_dual[i] = se3.Ad_inv(C[i]).T
            grow(self._rows[i], self._Ad[i], [], X[i][0])
            self.S[i] = self._rows[i][0]
            self.Vd[i] = [self.Vd[model.parent[i]][0] + self.S[i][0] @ self.v[0][i]]
            self._rates[i] = [se3.ad(self.Vd[i][0])]
            self.M[i] = [spatial_inertia(model.inertia[i], C[i])]

    def next_bias(self):
        """(zeta, p): what V_i^(k+1) - V_p^(k+1) - S_i v_i^(k+1) and W_i^(k) - M_i V_i^(k+1) - sum_c W_c^(k) are, by
        body."""
        model, k = self.model, len(self.v) - 1
        X = model.subspaces(self.q, self.V, k + 1)
        zeta, p = {}, {}
        for i in model.bodies:
            grow(self._rows[i], self._Ad[i], self._rates[i], X[i][k + 1])
            self.M[i].append(next_inertia(self.M[i], self.Vd[i]))
            zeta[i] = total(comb(k + 1, r) * (self.S[i][k + 1 - r] @ self.v[r][i]) for r in range(k + 1))  # (66)
            p[i] = bias(model, self.M[i], self.Vd[i], k)
            if self.applied is not None:
                rates = [-x.T for x in self._rates[i]]
                p[i] = p[i] - grow(self._wrenches[i], self._Ad_dual[i], rates, self.applied[k][i])  # (69)
        return zeta, p

    def push(self, dv, Vd):
        """Take v_i^(k+1) and V_i^(k+1), by body; returns v^(k+1) of the robot."""
        for i in self.model.bodies:
            self.Vd[i].append(Vd[i])
            self._rates[i].append(se3.ad(Vd[i]))
        self.v.append(dv)
        self.V.append(self.model.stack(dv))
        return self.V[-1]
