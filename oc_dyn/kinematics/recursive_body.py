"""Motion of frames by body-fixed twists."""

from math import comb

import casadi as ca

from ..lie import se3
from ..lie.jets import total
from ..lie.leibniz import carry
from ..lie.so3 import skew
from ..lie.twist_conversion import convert_columns, convert_twists
from ..registry import method


@method("frame_pose", "recursive_body", kind="analytic", source="Kumar and Mueller 2021, section II; C' = C hat(V)")
def frame_pose(model, order, q, V, frame):
    """Derivatives 0..order of the homogeneous matrix of a frame in the root frame; see od.describe("frame_pose").

    Equation:  C^(k) = sum_l C(k-1,l) C^(l) hat(V^(k-1-l))
    """
    i, seen = frame_in_body(model, frame)
    C = [se3.homogeneous(se3.compose(body_poses(model, q)[i], seen))]
    if order:
        to_frame = se3.Ad_inv(seen)
        hats = [hat(to_frame @ x) for x in body_motion(model, order - 1, q, V, i)[0]]
    for k in range(1, order + 1):
        C.append(total(comb(k - 1, r) * (C[r] @ hats[k - 1 - r]) for r in range(k)))
    return C


@method("frame_twist", "recursive_body", kind="analytic", source="Kumar and Mueller 2021, eq. 15 and 18, recursively")
def frame_twist(model, order, q, V, frame, representation):
    """Derivatives 0..order of the twist of a frame; see od.describe("frame_twist")."""
    i, seen = frame_in_body(model, frame)
    twists = [se3.Ad_inv(seen) @ x for x in body_motion(model, order, q, V, i)[0]]
    return convert_twists("body", representation, se3.compose(body_poses(model, q)[i], seen), twists)


@method("frame_jacobian", "recursive_body", kind="analytic", source="Kumar and Mueller 2021, eq. 9 and 17, recursively")
def frame_jacobian(model, order, q, V, frame, representation):
    """Derivatives 0..order of the Jacobian of a frame, its columns the joint screws B; see
    od.describe("frame_jacobian").
    """
    i, seen = frame_in_body(model, frame)
    twists, B = body_motion(model, order, q, padded(model, V), i)
    to_frame = se3.Ad_inv(seen)
    J = [to_frame @ jacobian(model, {j: B[j][k] for j in B}) for k in range(order + 1)]
    twists = [to_frame @ x for x in twists[:order]]
    return convert_columns("body", representation, se3.compose(body_poses(model, q)[i], seen), twists, J)


def body_motion(model, order, q, V, i):
    """Derivatives 0..order of the twist of body i in its frame, and {j: those of the screw of joint j} on its path.

    Equation:  V_i = Ad_ip V_p + X_i v_i,  B_ij = Ad_ip B_pj,  Ad_ip' = -ad(X_i v_i) Ad_ip;  X_i may depend on q_i
    """
    X, q, v = model.subspaces(q, V, order), model.joint_q(q), [model.joint_v(x) for x in V]
    twist, B = [ca.DM.zeros(6)] * (order + 1), {}
    for j in model.support(i):
        S = [ca.DM.zeros(6, model.coordinates[j][3]) if x is None else x for x in X[j]]
        joint = [total(comb(k, r) * (S[k - r] @ v[r][j]) for r in range(k + 1)) for k in range(order + 1)]
        Ad, rates = se3.Ad_inv(model.placement(j, q[j])), [-se3.ad(x) for x in joint]
        twist = [x + y for x, y in zip(carry(Ad, rates, twist), joint, strict=True)]
        B = {above: carry(Ad, rates, x) for above, x in B.items()} | {j: S}
    return twist, B


def body_twists(model, order, q, V):
    """{body: derivatives 0..order of its twist in its canonical frame}; V holds as many of the robot's velocities.

    Equation:  V_i = Ad_ip V_p + X_i v_i,  Ad_ip' = -ad(X_i v_i) Ad_ip
    """
    X, joint_q, v = model.subspaces(q, V, order), model.joint_q(q), [model.joint_v(x) for x in V]
    twists = {0: [ca.DM(6, 1)] * (order + 1)}
    for i in model.bodies:
        joint = [
            total(comb(k, r) * (X[i][k - r] @ v[r][i]) for r in range(k + 1) if X[i][k - r] is not None)
            for k in range(order + 1)
        ]
        Ad, rates = se3.Ad_inv(model.placement(i, joint_q[i])), [-se3.ad(x) for x in joint]
        above = carry(Ad, rates, twists[model.parent[i]])
        twists[i] = [x + y for x, y in zip(above, joint, strict=True)]
    return twists


def jacobian(model, screws):
    """(6, nv) matrix with the columns {body: (6, nv_i)} of the joints; those of mimic joints add to their master's."""
    columns = [ca.DM.zeros(6)] * model.robot.nv
    if not columns:
        return ca.DM.zeros(6, 0)
    for i, S in screws.items():
        _, _, first, size = model.coordinates[i]
        for a in range(size):
            columns[first + a] = columns[first + a] + model.rule[i][0] * S[:, a]
    return ca.horzcat(*columns)


def padded(model, V):
    """Velocities and derivatives with a zero for the highest, which does not enter the screws."""
    return [*V, ca.DM.zeros(model.robot.nv)]


def body_poses(model, q):
    """{body: pose (R, p) of its canonical frame in the root frame} at q (nq,)."""
    q = model.joint_q(q)
    poses = {0: (ca.DM.eye(3), ca.DM.zeros(3))}
    for i in model.bodies:
        poses[i] = se3.compose(poses[model.parent[i]], model.placement(i, q[i]))
    return poses


def local_poses(model, q):
    """As body_poses, but seen from where the first body of each tree now is, in root axes.

    Dynamics do not depend on where a tree stands. Moments and inertias about this point keep the digits that a robot
    kilometres from the root's origin would lose about that one.
    """
    q = model.joint_q(q)
    poses = {0: (ca.DM.eye(3), ca.DM.zeros(3))}
    for i in model.bodies:
        R, p = model.placement(i, q[i])
        first = model.parent[i] == 0
        poses[i] = (R, ca.DM.zeros(3)) if first else se3.compose(poses[model.parent[i]], (R, p))
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
