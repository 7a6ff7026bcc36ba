"""Inverse dynamics of any order by Taylor coefficients: for every order one pass forward and one backward.

All quantities of a body are jets (lie/jets.py) in its canonical frame. With U = skew(w') + skew(w)^2, the matrix that
takes a fixed arm to its acceleration, a body of mass m, first moment h and second moment matrix P = integral r r^T dm
needs the force m a + U h and the moment h x a + vee(U P); w w^T in U is the only product of jets in it, the rest is
linear with constant coefficients. The angular acceleration costs nothing: its jet is that of w, differentiated.
"""

import casadi as ca

from ..kinematics.joint_jets import JointJet
from ..lie import jets
from ..lie.so3 import skew
from ..model.inertia import casadi_value
from ..registry import method
from ..working_axes.fields import acceleration_matrix_of, newton_euler
from ..working_axes.sums import second_moments
from .fluid import fluid_wrenches


@method(
    "inverse_dynamics",
    "taylor",
    kind="analytic",
    source="this toolkit; order 0: Newton-Euler with the acceleration matrix of Balafoutis and Patel 1991",
    regroup=True,
    fluid=True,
)
def taylor(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W. Cost O(n order^2)."""
    given, V = V, jets.from_derivatives(V)
    passes = Passes(model, q, V[0], None if W is None else jets.from_derivatives(W))
    if model.fluid:
        passes.push(fluid_wrenches(model, order, q, given))
    torques = []
    for k in range(order + 1):
        torques.append(passes.torque(V[k + 1]))
    return jets.to_derivatives(torques)


class Passes:
    """The two passes, coefficient by coefficient; `torque` takes the next coefficient of the joint acceleration.

    Jets by body: w angular velocity, a acceleration of the origin less gravity, y that of the child's origin as a
    point of the parent, c angular velocity of the parent, U acceleration matrix, f force, n moment, F force in
    the parent's axes.
    """

    def __init__(self, model, q, v, W=None):
        self.model, self.k = model, 0
        qs, vs = model.joint_q(q), model.joint_v(v)
        self.joint = {i: JointJet(model, i, qs[i]) for i in model.bodies}
        self.P = {i: _second_moments(model.inertia[i]) for i in model.bodies}
        self.applied = None if W is None else [model.wrenches(x) for x in W]
        zero = ca.DM.zeros(3)
        self.w, self.a, self.U = {0: [zero]}, {0: []}, {0: []}
        self.c, self.y, self.f, self.n, self.F = {}, {}, {}, {}, {}
        for i in model.bodies:
            self.joint[i].push(vs[i])
            self.c[i] = [self.joint[i].inward(self.w[model.parent[i]][0])]
            self.w[i] = [self.c[i][0] + self.joint[i].w[0]]
            self.a[i], self.y[i], self.U[i], self.f[i], self.n[i], self.F[i] = [], [], [], [], [], []

    def push(self, wrenches):
        """Let wrenches act, too: derivatives [{body: (6,) in its canonical frame}, ...]."""
        more = {i: jets.from_derivatives([x[i] for x in wrenches]) for i in self.model.bodies}
        old = self.applied or [dict.fromkeys(self.model.bodies, 0)] * len(wrenches)
        self.applied = [{i: x + more[i][k] for i, x in some.items()} for k, some in enumerate(old)]

    def torque(self, dv=None):
        """Coefficient k of the joint torques (nv,), k counting the calls, from coefficient k + 1 of the joint
        velocities; None counts as zero and must be followed by correct()."""
        model, k = self.model, self.k
        dv = None if dv is None else model.joint_v(dv)
        self.w[0].append(ca.DM.zeros(3))
        self.a[0].append(ca.DM.zeros(3) if k else -model.gravity)
        self.U[0].append(ca.DM.zeros(3, 3))
        for i in model.bodies:  # ground to tips
            self._move(i, k, None if dv is None else dv[i])
        tau = {}
        for i in model.reversed_bodies:
            tau[i] = self.joint[i].force(self.n[i], self.f[i], k)
            if dv is not None:
                tau[i] = tau[i] + model.armature[i] * ((k + 1) * dv[i])
            p = model.parent[i]
            if p:
                self.F[i].append(self.joint[i].outward_at(self.f[i], k))
                arm = jets.product_at(self.joint[i].p, self.F[i], k, ca.cross)
                self.f[p][k] = self.f[p][k] + self.F[i][k]
                self.n[p][k] = self.n[p][k] + self.joint[i].outward_at(self.n[i], k) + arm
        self.k += 1
        return model.stack(tau)

    def _move(self, i, k, dv):
        model, joint, p = self.model, self.joint[i], self.model.parent[i]
        if dv is not None:
            joint.push(dv)
            w, u = joint.w[k + 1], joint.u[k + 1]
        else:
            w, u = joint.known_at(k + 1)
        self.c[i].append(joint.inward_at(self.w[p], k + 1))
        self.w[i].append(self.c[i][k + 1] + w)
        self.y[i].append(self.a[p][k] + jets.product_at(self.U[p], joint.p, k, lambda A, x: A @ x))
        turning = [x + y for x, y in zip(self.c[i][: k + 1], self.w[i], strict=False)]
        coriolis = jets.product_at(turning, joint.u, k, ca.cross)
        self.a[i].append(joint.inward_at(self.y[i], k) + _times(k + 1, u) + coriolis)
        self.U[i].append(_acceleration_matrix(self.w[i], k))
        f, n = _newton_euler_of(model.inertia[i], self.P[i], self.a[i][k], self.U[i][k])
        if self.applied is not None:
            n, f = n - self.applied[k][i][:3], f - self.applied[k][i][3:]
        self.f[i].append(f)
        self.n[i].append(n)

    def correct(self, dv):
        """Put the coefficient of the joint velocities that torque() took as zero into all jets: it enters linearly."""
        model, k = self.model, self.k - 1
        dv = model.joint_v(dv)
        dw, da = {0: ca.DM.zeros(3)}, {0: ca.DM.zeros(3)}
        df, dn = {}, {}
        for i in model.bodies:
            joint, p = self.joint[i], model.parent[i]
            joint.push(dv[i])
            w, u = joint.twist(dv[i])
            dw[i] = joint.inward(dw[p]) + w
            da[i] = joint.inward(da[p] + ca.cross(_times(k + 1, dw[p]), joint.p[0])) + _times(k + 1, u)
            turn = skew(_times(k + 1, dw[i]))
            df[i], dn[i] = _newton_euler_of(model.inertia[i], self.P[i], da[i], turn)
            self.w[i][k + 1] = self.w[i][k + 1] + dw[i]
            self.c[i][k + 1] = self.c[i][k + 1] + joint.inward(dw[p])
            self.a[i][k] = self.a[i][k] + da[i]
            self.y[i][k] = self.y[i][k] + da[p] + ca.cross(_times(k + 1, dw[p]), joint.p[0])
            self.U[i][k] = self.U[i][k] + turn
        for i in model.reversed_bodies:
            p = model.parent[i]
            if p:
                force = self.joint[i].outward(df[i])
                self.F[i][k] = self.F[i][k] + force
                df[p] = df[p] + force
                dn[p] = dn[p] + self.joint[i].outward(dn[i]) + ca.cross(self.joint[i].p[0], force)
            self.f[i][k] = self.f[i][k] + df[i]
            self.n[i][k] = self.n[i][k] + dn[i]


def _times(number, x):
    return x if number == 1 else number * x


def _second_moments(inertia):
    return second_moments(inertia, casadi_value(inertia.tensor))


def _acceleration_matrix(w, k):
    """Coefficient k of U = skew(w') + skew(w)^2 from the jet of w."""
    x, y, z = ([c[i] for c in w] for i in range(3))
    xx, yy, zz = (jets.square_at(c, k) for c in (x, y, z))
    xy, xz, yz = (jets.product_at(b, c, k) for b, c in ((x, y), (x, z), (y, z)))
    turn = _times(k + 1, w[k + 1])
    return acceleration_matrix_of((xx, yy, zz, xy, xz, yz), turn)


def _newton_euler_of(inertia, P, a, U):
    return newton_euler(inertia.mass, casadi_value(inertia.moment), P, a, U)
