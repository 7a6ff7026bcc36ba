"""Torques of a reference motion by Newton-Euler with two velocity fields, in Taylor coefficients.

The bodies move with v. The reference velocities vr give the points of a body another field of velocities, that of a
moving body, too: u + wr x r at r. Carried along with the body, which turns with w, it changes at the rate a + U r with
U = skew(wr') + skew(w) skew(wr), where a is the rate at the origin. Forces of these rates are M dvr + C vr, C that of
Christoffel symbols: a mass point at r adds m J^T (J dvr + J' vr). With vr = v it is inverse dynamics.
"""

import casadi as ca

from ..kinematics.joint_jets import JointJet
from ..lie import jets
from ..lie.so3 import skew
from ..model.inertia import casadi_value
from ..registry import method
from ..working_axes.fields import newton_euler
from ..working_axes.sums import second_moments


@method(
    "slotine_li_torque",
    "newton_euler",
    kind="analytic",
    source="this toolkit: Newton-Euler with the acceleration matrix of Balafoutis and Patel 1991, of points whose "
    "velocities are the reference ones; Coriolis matrix as Echeandia and Wensing 2021",
    regroup=True,
    coriolis=("christoffel",),
)
def newton_euler_with_reference(model, order, q, V, Vr, W, coriolis):
    """Derivatives 0..order of M dvr + C vr + g (nv,); see od.describe("slotine_li_torque"). Cost O(n order^2)."""
    v, vr = ([model.joint_v(x) for x in jets.from_derivatives(y)] for y in (V, Vr))
    applied = None if W is None else [model.wrenches(x) for x in jets.from_derivatives(W)]
    passes = _Passes(model, q)
    return jets.to_derivatives([passes.torque(k, v, vr, applied) for k in range(order + 1)])


class _Passes:
    """Both passes, coefficient by coefficient.

    Jets by body: w angular velocity; wr that of the reference field, above that of the parent's; u linear part of the
    joint's reference twist; a, U rate of the reference field, less gravity; y: that of the parent where the body's
    origin is; f force, n moment, F force in the parent's axes.
    """

    def __init__(self, model, q):
        self.model, joint_q = model, model.joint_q(q)
        self.joint = {i: JointJet(model, i, joint_q[i]) for i in model.bodies}
        self.P = {i: second_moments(x, casadi_value(x.tensor)) for i, x in enumerate(model.inertia) if i}
        self.w, self.wr, self.a, self.U = ({i: [] for i in (0, *model.bodies)} for _ in range(4))
        self.above, self.u, self.y, self.f, self.n, self.F = ({i: [] for i in model.bodies} for _ in range(6))

    def torque(self, k, v, vr, applied):
        """Coefficient k of the torques (nv,), from the coefficients of v up to k and of vr up to k + 1."""
        model = self.model
        zero = ca.DM.zeros(3)
        self.w[0].append(zero)
        self.wr[0] += [zero] if k else [zero, zero]
        self.a[0].append(zero if k else -model.gravity)
        self.U[0].append(ca.DM.zeros(3, 3))
        for i in model.bodies:
            self._move(i, k, [x[i] for x in v], [x[i] for x in vr])
            if applied is not None:
                self.n[i][k], self.f[i][k] = self.n[i][k] - applied[k][i][:3], self.f[i][k] - applied[k][i][3:]
        tau = {}
        for i in model.reversed_bodies:
            joint, p = self.joint[i], model.parent[i]
            tau[i] = joint.force(self.n[i], self.f[i], k) + model.armature[i] * _times(k + 1, vr[k + 1][i])
            if p:
                self.F[i].append(joint.outward_at(self.f[i], k))
                arm = jets.product_at(joint.p, self.F[i], k, ca.cross)
                self.f[p][k] = self.f[p][k] + self.F[i][k]
                self.n[p][k] = self.n[p][k] + joint.outward_at(self.n[i], k) + arm
        return model.stack(tau)

    def _move(self, i, k, v, vr):
        joint, p = self.joint[i], self.model.parent[i]
        joint.push(v[k])
        self.w[i].append(joint.inward_at(self.w[p], k) + joint.w[k])
        for l in range(len(self.wr[i]), k + 2):  # its rate is one coefficient ahead
            w, u = _reference_twist(joint, vr, l)
            self.above[i].append(joint.inward_at(self.wr[p], l))
            self.wr[i].append(self.above[i][l] + w)
            self.u[i].append(u)
        self.y[i].append(self.a[p][k] + jets.product_at(self.U[p], joint.p, k, lambda U, r: U @ r))
        coriolis = jets.product_at(self.w[i], self.u[i], k, ca.cross) + jets.product_at(
            self.above[i], joint.u, k, ca.cross
        )
        self.a[i].append(joint.inward_at(self.y[i], k) + _times(k + 1, self.u[i][k + 1]) + coriolis)
        turned = jets.product_at(self.w[i], self.wr[i], k, _double_cross)
        self.U[i].append(turned + skew(_times(k + 1, self.wr[i][k + 1])))
        inertia = self.model.inertia[i]
        f, n = newton_euler(inertia.mass, casadi_value(inertia.moment), self.P[i], self.a[i][k], self.U[i][k])
        self.f[i].append(f)
        self.n[i].append(n)


def _reference_twist(joint, vr, l):
    """(angular, linear) part of coefficient l of the joint's reference twist S vr."""
    if joint.kind != "transform":
        return joint.twist(vr[l])
    joint.known_at(l)  # makes S known so far
    V = jets.product_at(joint.S_jet, vr, l, lambda S, x: S @ x)
    return V[:3], V[3:]


def _double_cross(a, b):
    """Matrix of r -> a x (b x r)."""
    return b @ a.T - ca.dot(a, b) * ca.DM.eye(3)


def _times(number, x):
    return x if number == 1 else number * x
