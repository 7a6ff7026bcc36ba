"""Motion of frames by body-fixed twists."""

from math import comb

import casadi as ca

from ..inverse_dynamics.recursive_body import forward_kinematics
from ..lie import se3
from ..lie.jets import total
from ..lie.so3 import skew
from ..registry import method


@method("frame_pose", "recursive_body", kind="analytic", source="Kumar and Mueller 2021, section II; C' = C hat(V)")
def frame_pose(model, order, q, V, frame):
    """Derivatives 0..order of the homogeneous matrix of a frame in the root frame; see the quantity.

    Equation:  C^(k) = sum_l C(k-1,l) C^(l) hat(V^(k-1-l))
    """
    i, seen = frame_in_body(model, frame)
    C = [se3.homogeneous(se3.compose(body_poses(model, q)[i], seen))]
    if order and i:
        _, _, _, twists = forward_kinematics(model, order - 1, q, V)
        to_frame = se3.Ad_inv(seen)
        hats = [hat(to_frame @ x) for x in twists[i]]
    for k in range(1, order + 1):
        C.append(total(comb(k - 1, r) * (C[r] @ hats[k - 1 - r]) for r in range(k)) if i else ca.DM.zeros(4, 4))
    return C


def body_poses(model, q):
    """{body: pose (R, p) of its canonical frame in the root frame} at q (nq,)."""
    q = model.joint_q(q)
    poses = {0: (ca.DM.eye(3), ca.DM.zeros(3))}
    for i in model.bodies:
        poses[i] = se3.compose(poses[model.parent[i]], model.placement(i, q[i]))
    return poses


def frame_in_body(model, frame):
    """(body, pose of a robot's frame in the body's canonical frame)."""
    i = model.number[frame.body]
    inward = se3.inverse(tuple(ca.DM(x) for x in model.to_body[i]))
    R, p = se3.compose(inward, (ca.DM(frame.rotation), ca.DM(frame.translation)))
    return i, (R, p)


def hat(V):
    """(4, 4) matrix of a twist: the rate of the homogeneous matrix it moves."""
    return ca.vertcat(ca.horzcat(skew(V[:3]), V[3:]), ca.DM.zeros(1, 4))
