"""What one unit of each inertial parameter of a body needs: momenta and wrenches (6, 10), in the author's frames."""

from math import comb

import casadi as ca

from ..lie import se3
from ..lie.jets import total
from ..lie.se3 import ad
from ..lie.so3 import skew
from ..working_axes.fields import newton_euler

_TENSOR = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def momentum_matrix(V):
    """A(V) (6, 10) with the momentum M V = A(V) parameters of a body, V (6,) its twist in its frame. Garofalo (8)-(12),
    angular part first and tensor xx xy yy xz yz zz."""
    w, u = V[:3], V[3:]
    x, y, z = (w[k] for k in range(3))
    turned = ca.blockcat([[x, y, 0, z, 0, 0], [0, x, y, 0, z, 0], [0, 0, 0, x, y, z]])  # (12)
    top = ca.horzcat(ca.DM(3, 1), -skew(u), turned)  # (11)
    return ca.sparsify(ca.vertcat(top, ca.horzcat(u, skew(w), ca.DM(3, 6))))  # (8), (10)


def wrench_columns(V, Vr, rate, k, coriolis):
    """Derivative k of the wrenches (6, 10) of unit parameters, M rate + T(V) Vr = columns @ parameters with T of
    matrices/coriolis_choice, from the derivatives of the body's twist V, the reference twist Vr and its rate.

    Equation:  garofalo: A(rate + ad(V) Vr) - ad(V)^T A(Vr)                                     Garofalo (13), (16)
               christoffel: that of points whose velocity field is Vr, carried along with V, so that their
               accelerations are a + U r, a = rate of its linear part + w x vr, U = skew(wr') + skew(w) skew(wr)
    """
    pairs = [(comb(k, l), V[l], Vr[k - l]) for l in range(k + 1)]
    if coriolis == "garofalo":
        alpha = rate[k] + total(c * (ad(x) @ y) for c, x, y in pairs)
        return momentum_matrix(alpha) - total(c * (ad(x).T @ momentum_matrix(y)) for c, x, y in pairs)  # (15)
    a = rate[k][3:] + total(c * ca.cross(x[:3], y[3:]) for c, x, y in pairs)
    U = skew(rate[k][:3]) + total(c * (skew(x[:3]) @ skew(y[:3])) for c, x, y in pairs)
    forces, moments = newton_euler_columns(a, U)
    return ca.vertcat(ca.horzcat(ca.DM(3, 1), moments), ca.horzcat(forces, ca.DM(3, 6)))


def torque_columns(V, rate, k):
    """The same with Vr = V: all choices agree, and ad(V) V = 0 saves a product."""
    bent = total(comb(k, l) * (ad(V[l]).T @ momentum_matrix(V[k - l])) for l in range(k + 1))
    return momentum_matrix(rate[k]) - bent


def newton_euler_columns(a, U):
    """(forces (3, 4), moments (3, 9)) of unit parameters from the acceleration a (3,) of the origin, less gravity, and
    the acceleration matrix U (3, 3). Forces: mass, moment; the tensor makes none. Moments: moment, tensor; a mass at
    the origin makes none."""
    tensors = []
    for i, j in _TENSOR:
        T = ca.DM(3, 3)
        T[i, j] = T[j, i] = 1.0
        P = 0.5 * ca.trace(T) * ca.DM.eye(3) - T
        tensors.append(newton_euler(0.0, ca.DM.zeros(3), P, a, U)[1])
    return ca.horzcat(a, U), ca.horzcat(-skew(a), *tensors)


def author_frames(model):
    """[(body of the robot from 0, its number here, pose of the canonical frame in the author's frame)]."""
    numbers = enumerate(model.number[1:])
    return [(b, i, tuple(ca.sparsify(ca.DM(x)) for x in model.to_body[i])) for b, i in numbers]


def to_author(pose):
    """(6, 6) that takes twists from a canonical frame to the author's."""
    return ca.sparsify(se3.Ad(pose))
