"""Motion of bodies and frames by spatial twists: all screws seen from the root frame {0}."""

from math import comb

import casadi as ca

from ..lie import se3
from ..lie.jets import total
from ..lie.leibniz import carry, grow
from ..lie.twist_conversion import convert_columns, convert_twists
from ..registry import method
from .recursive_body import body_poses, frame_in_body, hat, jacobian, local_poses, padded

_SOURCE = "Ali et al. 2026, Algorithm 1"


def forward_kinematics(model, order, q, V, poses=local_poses):
    """Poses C[i] and derivatives 0..order of joint screws S[i] and spatial twists Vd[i], as lists over the order; about
    the root's origin with poses=body_poses, else about the point that local_poses tells.

    Equation:  S_i = Ad(C_i) X_i,  Ad(C_i)' = ad(V_i) Ad(C_i),  V_i^(k) = V_p^(k) + sum_r C(k,r) S_i^(k-r) v_i^(r)
    Source:    Ali et al. 2026, Algorithm 1. With several columns in S the twist of the body itself moves it; for
               one column the twist of the parent gives the same. X may depend on the joint's coordinates.
    """
    v = [model.joint_v(x) for x in V]
    X = model.subspaces(q, V, order)
    C = poses(model, q)
    S, Vd = {}, {0: [ca.DM.zeros(6)] * (order + 1)}
    for i in model.bodies:
        Ad, rows, rates, Vd[i] = se3.Ad(C[i]), [], [], []
        for k in range(order + 1):
            grow(rows, Ad, rates, X[i][k])
            joint = total(comb(k, r) * (rows[0][k - r] @ v[r][i]) for r in range(k + 1))
            Vd[i].append(Vd[model.parent[i]][k] + joint)
            rates.append(se3.ad(Vd[i][k]))
        S[i] = rows[0]
    return C, S, Vd


@method("frame_pose", "recursive_spatial", kind="analytic", source=_SOURCE + "; C' = hat(V) C")
def frame_pose(model, order, q, V, frame):
    """Derivatives 0..order of the homogeneous matrix of a frame in the root frame; see od.describe("frame_pose")."""
    i, seen = frame_in_body(model, frame)
    here = se3.homogeneous(se3.compose(body_poses(model, q)[i], seen))
    if not order:
        return [here]
    C, _, Vd = forward_kinematics(model, order - 1, q, V)
    rates = carry(se3.homogeneous(C[i]), [hat(x) for x in Vd[i]], [se3.homogeneous(seen)] + [None] * order)
    return [here, *rates[1:]]


@method("frame_twist", "recursive_spatial", kind="analytic", source=_SOURCE)
def frame_twist(model, order, q, V, frame, representation):
    """Derivatives 0..order of the twist of a frame; see od.describe("frame_twist")."""
    i, seen = frame_in_body(model, frame)
    C, _, Vd = forward_kinematics(model, order, q, V, _poses(representation))
    return convert_twists("spatial", representation, se3.compose(C[i], seen), Vd[i])


@method("frame_jacobian", "recursive_spatial", kind="analytic", source=_SOURCE)
def frame_jacobian(model, order, q, V, frame, representation):
    """Derivatives 0..order of the Jacobian of a frame, its columns the joint screws; see
    od.describe("frame_jacobian").
    """
    i, seen = frame_in_body(model, frame)
    C, S, Vd = forward_kinematics(model, order, q, padded(model, V), _poses(representation))
    J = [jacobian(model, {j: S[j][k] for j in model.support(i)}) for k in range(order + 1)]
    return convert_columns("spatial", representation, se3.compose(C[i], seen), Vd[i][:order], J)


def _poses(representation):
    """About the root's origin where it is what the twists are asked for about."""
    return body_poses if representation == "spatial" else local_poses
