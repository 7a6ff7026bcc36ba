"""Motion of bodies and frames by spatial twists: all screws seen from the root frame {0}."""

from math import comb

import casadi as ca

from ..lie import se3
from ..lie.jets import total
from ..registry import method
from .recursive_body import body_poses, frame_in_body, hat


def forward_kinematics(model, order, q, V):
    """Poses C[i] and derivatives 0..order of joint screws S[i] and spatial twists Vd[i], as lists over the order.

    Equation:  S_i' = ad(V_i) S_i,  V_i^(k) = V_p^(k) + sum_r C(k,r) S_i^(k-r) v_i^(r)
    Source:    Ali et al. 2026, Algorithm 1. With several columns in S the twist of the body itself moves it; for
               one column the twist of the parent gives the same.
    """
    v = [model.joint_v(x) for x in V]
    C = body_poses(model, q)
    S, Vd = {}, {0: [ca.DM.zeros(6)] * (order + 1)}
    for i in model.bodies:
        S[i], Vd[i] = [se3.Ad(C[i]) @ model.S[i]], []
        for k in range(order + 1):
            if k:
                S[i].append(total(comb(k - 1, r) * (se3.ad(Vd[i][r]) @ S[i][k - 1 - r]) for r in range(k)))
            joint = total(comb(k, r) * (S[i][k - r] @ v[r][i]) for r in range(k + 1))
            Vd[i].append(Vd[model.parent[i]][k] + joint)
    return C, S, Vd


@method("frame_pose", "recursive_spatial", kind="analytic", source="Ali et al. 2026, Algorithm 1; C' = hat(V) C")
def frame_pose(model, order, q, V, frame):
    """Derivatives 0..order of the homogeneous matrix of a frame in the root frame; see the quantity."""
    i, seen = frame_in_body(model, frame)
    if order:
        C, _, Vd = forward_kinematics(model, order - 1, q, V)
        hats = [hat(x) for x in Vd[i]]
    else:
        C = body_poses(model, q)
    out = [se3.homogeneous(C[i]) @ se3.homogeneous(seen)]
    for k in range(1, order + 1):
        out.append(total(comb(k - 1, r) * (hats[r] @ out[k - 1 - r]) for r in range(k)))
    return out
