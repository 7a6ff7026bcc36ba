"""Inverse dynamics of any order by Taylor coefficients: one forward and one backward pass over jets.

All quantities of a body are jets (lie/jets.py) in its canonical frame. With U = skew(w') + skew(w)^2, the matrix that
takes a fixed arm to its acceleration, a body of mass m, first moment h and second moment matrix P = integral r r^T dm
needs the force m a + U h and the moment h x a + vee(U P); U is the only product of jets in it, the rest
is linear with constant coefficients. The angular acceleration costs nothing: its jet is that of w, differentiated.
"""

import casadi as ca
import numpy as np

from ..kinematics.joint_jets import joint_jet
from ..lie import jets
from ..registry import method


@method(
    "inverse_dynamics",
    "taylor",
    kind="analytic",
    source="this toolkit; order 0: Newton-Euler with the acceleration matrix of Balafoutis and Patel 1991",
    regroup=True,
)
def taylor(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see the quantity for q, V, W. Cost O(n order^2).

    Symbols: w angular velocity, a acceleration of the origin less gravity, U acceleration matrix, f force, n moment.
    """
    q = model.joint_q(q)
    v = {i: [] for i in model.bodies}
    for x in jets.from_derivatives(V):
        for i, part in model.joint_v(x).items():
            v[i].append(part)
    applied = None if W is None else [model.wrenches(x) for x in jets.from_derivatives(W)]

    w, U, a = {0: None}, {0: None}, {0: [-model.gravity] + [ca.DM.zeros(3)] * order}
    motion, f, n = {}, {}, {}
    for i in model.bodies:  # ground to tips
        p = model.parent[i]
        motion[i] = joint = joint_jet(model, i, q[i], v[i])
        carried = None if w[p] is None else joint.inward(w[p])
        w[i] = jets.add(carried, joint.w) if carried or joint.w else None
        a[i] = joint.inward(jets.add(a[p], _apply(U[p], joint.p, order)))
        if joint.v is not None:
            turning = jets.add(carried, w[i]) if carried and w[i] else carried or w[i]
            coriolis = None if turning is None else jets.product(turning, joint.v, ca.cross, order)
            a[i] = jets.add(a[i], jets.derivative(joint.v), coriolis)
        U[i] = None if w[i] is None else _acceleration_matrix(w[i], order)
        f[i], n[i] = _newton_euler(model.inertia[i], a[i], U[i])
        if applied is not None:
            n[i] = [x - applied[k][i][:3] for k, x in enumerate(n[i])]
            f[i] = [x - applied[k][i][3:] for k, x in enumerate(f[i])]

    tau = {}
    for i in model.tips_first:
        p = model.parent[i]
        St = model.S[i].T
        tau[i] = [St @ ca.vertcat(n[i][k], f[i][k]) for k in range(order + 1)]
        if model.armature[i]:
            tau[i] = jets.add(tau[i], [model.armature[i] * x for x in jets.derivative(v[i])])
        if p:
            force = motion[i].outward(f[i])
            arm = jets.product(motion[i].p, force, ca.cross, order)
            f[p] = jets.add(f[p], force)
            n[p] = jets.add(n[p], motion[i].outward(n[i]), arm)
    torques = [model.stack({i: tau[i][k] for i in model.bodies}) for k in range(order + 1)]
    return jets.to_derivatives(torques)


def _apply(U, p, order):
    return None if U is None else jets.product(U, p, lambda A, x: A @ x, order)


def _acceleration_matrix(w, order):
    """Jet of U = skew(w') + skew(w)^2 up to `order`, from the jet of w up to order + 1."""
    x, y, z = ([c[i] for c in w] for i in range(3))
    xx, yy, zz = (jets.square(c, order) for c in (x, y, z))
    xy, xz, yz = (jets.product(b, c, order=order) for b, c in ((x, y), (x, z), (y, z)))
    U = []
    for k, turn in enumerate(jets.derivative(w)):
        U.append(
            ca.vertcat(
                ca.horzcat(-(yy[k] + zz[k]), xy[k] - turn[2], xz[k] + turn[1]),
                ca.horzcat(xy[k] + turn[2], -(xx[k] + zz[k]), yz[k] - turn[0]),
                ca.horzcat(xz[k] - turn[1], yz[k] + turn[0], -(xx[k] + yy[k])),
            )
        )
    return U


def _newton_euler(inertia, a, U):
    """Jets of the force and, about the origin, the moment that move a body."""
    m, h = inertia.mass, ca.DM(inertia.moment)
    P = 0.5 * np.trace(inertia.tensor) * np.eye(3) - inertia.tensor
    f, n = [], []
    for k, x in enumerate(a):
        force, moment = m * x, ca.cross(h, x)
        if U is not None:
            force, moment = force + U[k] @ h, moment + _vee(U[k], P)
        f.append(force)
        n.append(moment)
    return f, n


def _vee(U, P):
    """vee(U P - (U P)^T) for symmetric P, equal factors collected."""
    return ca.vertcat(
        P[1, 1] * U[2, 1] - P[2, 2] * U[1, 2] + P[0, 1] * U[2, 0] - P[0, 2] * U[1, 0] + P[1, 2] * (U[2, 2] - U[1, 1]),
        P[2, 2] * U[0, 2] - P[0, 0] * U[2, 0] + P[1, 2] * U[0, 1] - P[0, 1] * U[2, 1] + P[0, 2] * (U[0, 0] - U[2, 2]),
        P[0, 0] * U[1, 0] - P[1, 1] * U[0, 1] + P[0, 2] * U[1, 2] - P[1, 2] * U[0, 2] + P[0, 1] * (U[1, 1] - U[0, 0]),
    )
