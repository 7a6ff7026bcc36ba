"""Motion of one joint as Taylor coefficients, in canonical frames, grown coefficient by coefficient."""

from itertools import pairwise

import casadi as ca

from ..lie import jets
from ..lie.quick import quick
from ..lie.time_derivatives import time_derivatives


class JointJet:
    """Motion of body i against its parent.

    `push(v)` takes the next Taylor coefficient of the joint's velocity. After k + 1 pushes `w`, `u` hold
    coefficients 0..k of the relative angular and linear velocity of the body's origin, in the body's frame; rotation
    and position `p` of the body's origin in the parent's frame are known to coefficient k + 1.
    """

    def __init__(self, model, i, q):
        self.kind, self.pitch = model.kind[i], model.pitch[i]
        self.home, self.S = ca.DM(model.R[i]), model.S[i]
        self.w, self.u = [], []
        self.plane = self.kind in ("revolute", "continuous", "helical", "planar")
        R, p = model.placement(i, q)
        self.start, self.p = self.home if self.kind == "prismatic" else R, [p]
        if self.plane:
            self.c0, self.s0 = quick(ca.cos(q[0])), quick(ca.sin(q[0]))
        self.turn = jets.PlaneTurn() if self.plane else jets.NoTurn() if self.kind == "prismatic" else jets.MatrixTurn()
        self._seen = {}  # vectors already turned inward at time zero; each is held so that its id stays its own
        if self.kind == "transform":
            self._subspace = model.subspace_function(i)
            self._q, self._v, self.S_jet = [q], [], [self._subspace(q)]

    def twist(self, v):
        """(angular, linear) part of the relative twist S v, in the body's frame."""
        if self.kind in ("revolute", "continuous"):
            return ca.vertcat(0, 0, v[0]), ca.DM.zeros(3)
        if self.kind == "prismatic":
            return ca.DM.zeros(3), ca.vertcat(0, 0, v[0])
        if self.kind == "helical":
            return ca.vertcat(0, 0, v[0]), ca.vertcat(0, 0, self.pitch * v[0])
        if self.kind == "planar":
            return ca.vertcat(0, 0, v[0]), ca.vertcat(v[1], v[2], 0)
        if self.kind == "spherical":
            return v, ca.DM.zeros(3)
        if self.kind == "free":
            return v[:3], v[3:]
        V = self.S_jet[0] @ v
        return V[:3], V[3:]

    def push(self, v):
        """Take the next Taylor coefficient of the joint's velocity."""
        k = len(self.w)
        w, u = self.twist(v)
        if self.kind == "transform":
            known_w, known_u = self.known_at(k)
            w, u = w + known_w, u + known_u
            self._v.append(v)
        self.w.append(w)
        self.u.append(u)
        self.turn.push(w, k)
        if self.kind in ("prismatic", "helical"):
            self.p.append(self.home[:, 2] * u[2] / (k + 1))
        elif self.kind in ("planar", "free", "transform"):
            self.p.append(self.outward_at(self.u, k) / (k + 1))
        else:
            self.p.append(ca.DM.zeros(3))

    def inward_at(self, jet, k):
        """Coefficient k of vectors of the parent, seen in the body's axes."""
        return self.turn.inward_at([self.inward(x) for x in jet[: k + 1]], k)

    def outward_at(self, jet, k):
        """Coefficient k of vectors of the body, seen in the parent's axes."""
        return self.outward(self.turn.outward_at(jet, k))

    def inward(self, x):
        """One vector of the parent in the body's axes, at time zero."""
        if id(x) not in self._seen:
            if self.plane:
                y = quick(self.home.T @ x)
                turned = quick(ca.vertcat(self.c0 * y[0] + self.s0 * y[1], self.c0 * y[1] - self.s0 * y[0], y[2]))
            else:
                turned = quick(self.start.T @ x)
            self._seen[id(x)] = x, turned
        return self._seen[id(x)][1]

    def outward(self, x):
        """One vector of the body in the parent's axes, at time zero."""
        if self.plane:
            x = quick(x)
            turned = ca.vertcat(self.c0 * x[0] - self.s0 * x[1], self.s0 * x[0] + self.c0 * x[1], x[2])
            return quick(self.home @ turned)
        return quick(self.start @ x)

    def force(self, n, f, k):
        """Coefficient k of the joint's generalised force S^T W from jets of the body's moment n and force f."""
        if self.kind != "transform":
            return self.S.T @ ca.vertcat(n[k], f[k])
        return jets.total(self.S_jet[j].T @ ca.vertcat(n[k - j], f[k - j]) for j in range(k + 1))

    def known_at(self, k):
        """(angular, linear) part of coefficient k of the relative twist that lower velocities make."""
        if self.kind != "transform" or k == 0:
            return ca.DM.zeros(3), ca.DM.zeros(3)
        if len(self.S_jet) <= k:
            self._q.append(self._v[k - 1] / k)
            self.S_jet.append(function_jet(self._subspace, self._q))
        V = jets.total(self.S_jet[j] @ self._v[k - j] for j in range(1, k + 1))
        return V[:3], V[3:]


def function_jet(f, q):
    """Last Taylor coefficient of f(q(t)), f a casadi.Function of one input, from those of q."""
    order = len(q) - 1
    x = [ca.SX.sym("x", *q[0].shape) for _ in q]
    rates = time_derivatives(ca.vec(f(x[0])), order, list(pairwise(x)), cse=True)
    derivatives = jets.to_derivatives(q)
    return jets.from_derivatives([ca.Function("d", x, [r])(*derivatives) for r in rates])[-1].reshape(f.size_out(0))
