"""Motion of frames by automatic differentiation of their pose alone."""

from itertools import pairwise

import casadi as ca

from ..lie import se3
from ..model.robot import tangent_map
from ..registry import method
from ..time_methods import JTIMES, by_jtimes, in_time
from .recursive_body import body_poses, frame_in_body

_SOURCE = "AD of the pose"


@in_time("frame_pose", source=_SOURCE)
def frame_pose(way, model, order, q, V, frame):
    """Derivatives 0..order of the homogeneous matrix of a frame in the root frame; see od.describe("frame_pose")."""
    R, p = _pose(model, q, frame)
    C = ca.SX(se3.homogeneous((R, p)))
    return [x.reshape((4, 4)) for x in way(ca.vec(C), order, _flow(model, q, V))]


@in_time("frame_twist", source=_SOURCE)
def frame_twist(way, model, order, q, V, frame, representation):
    """Derivatives 0..order of the twist of a frame; see od.describe("frame_twist")."""
    return way(_twist(model, q, V[0], frame, representation), order, _flow(model, q, V))


@in_time("frame_jacobian", source=_SOURCE)
def frame_jacobian(way, model, order, q, V, frame, representation):
    """Derivatives 0..order of the Jacobian of a frame; see od.describe("frame_jacobian")."""
    v = ca.SX.sym("v", model.robot.nv)
    J = ca.densify(ca.jacobian(_twist(model, q, v, frame, representation), v))
    rates = way(ca.vec(J), order, _flow(model, q, V))
    return [x.reshape((6, model.robot.nv)) for x in rates]


_PARTIALS = _SOURCE + JTIMES + ", then Jacobians on the tangent space"


@method("frame_acceleration_partials", "ad", kind="ad", source=_PARTIALS)
@method("frame_velocity_partials", "ad", kind="ad", source=_PARTIALS)
def frame_partials(model, order, q, V, frame, representation):
    """Partials of derivatives 0..order of the twist, [(by q, v), (by q, v, dv), ...]; see
    od.describe("frame_velocity_partials"), od.describe("frame_acceleration_partials").
    """
    twists = frame_twist(by_jtimes, model, order, q, V, frame, representation)
    T = tangent_map(model.robot, q)
    return [
        [ca.sparsify(ca.jacobian(x, q) @ T), *(ca.jacobian(x, y) for y in V[: k + 1])] for k, x in enumerate(twists)
    ]


def _pose(model, q, frame):
    i, seen = frame_in_body(model, frame)
    return se3.compose(body_poses(model, q)[i], seen)


def _twist(model, q, v, frame, representation):
    """The twist, from the rates of rotation matrix and origin."""
    R, p = _pose(model, q, frame)
    rate = model.configuration_rate(q, v)
    turn = ca.jtimes(ca.vec(ca.SX(R)), q, rate).reshape((3, 3))
    path = ca.jtimes(ca.SX(p), q, rate)
    W = R.T @ turn if representation == "body" else turn @ R.T
    w = ca.vertcat(W[2, 1], W[0, 2], W[1, 0])
    if representation == "body":
        path = R.T @ path
    if representation == "spatial":
        path = path - ca.cross(w, p)
    return ca.densify(ca.vertcat(w, path))


def _flow(model, q, V):
    """Pairs (symbol, its time derivative) of q and all of V but the last."""
    return [(q, model.configuration_rate(q, V[0])), *pairwise(V)] if V else []
