"""Partial derivatives of the twist of a frame and of its time derivatives, from the variations of the motion."""

from math import comb

import casadi as ca

from ..lie import se3
from ..lie.jets import total
from ..lie.leibniz import product_derivative
from ..lie.so3 import skew
from ..lie.twist_conversion import convert_columns, convert_twists
from ..registry import method
from .recursive_body import body_poses, frame_in_body, jacobian, local_poses, padded
from .recursive_spatial import forward_kinematics
from .variations import variations

_SOURCE = "this toolkit: variations of spatial twists, any order; order 0 and 1 as in Carpentier and Mansard 2018"


@method("frame_acceleration_partials", "recursive_spatial", kind="analytic", source=_SOURCE)
@method("frame_velocity_partials", "recursive_spatial", kind="analytic", source=_SOURCE)
def frame_partials(model, order, q, V, frame, representation):
    """Partials of derivatives 0..order of the twist, [(by q, v), (by q, v, dv), ...]; see
    od.describe("frame_velocity_partials"), od.describe("frame_acceleration_partials"). Cost O(depth order^3).

    Equation:  with the variation xi and A what takes spatial twists to the representation, V varies by A xi' in the
               body's, by xi' - ad(V) xi in the spatial, and by A xi' + [w_xi x w; w_xi x v] in the hybrid one, w_xi the
               angular part of xi, w and v those of V
    """
    i, seen = frame_in_body(model, frame)
    poses = body_poses if representation == "spatial" else local_poses
    C, S, twists = forward_kinematics(model, order + 1, q, padded(model, V), poses)
    C = se3.compose(C[i], seen)
    spatial = twists[i][: order + 1]
    varied = {"body": _in_body, "spatial": _in_root, "hybrid": _in_both}[representation]
    found = {}
    for by in (None, *range(order + 1)):
        xi = variations(model, order, S, twists, by, model.support(i))
        columns = [jacobian(model, {j: x[k] for j, x in xi.items()}) for k in range(order + 2)]
        found[by] = varied(C, spatial, columns)
    return [[ca.sparsify(found[by][k]) for by in (None, *range(k + 1))] for k in range(order + 1)]


def _in_body(C, V, xi):
    return convert_columns("spatial", "body", C, V, xi[1:])


def _in_root(C, V, xi):
    brackets = [se3.ad(x) for x in V]
    return [xi[k + 1] - product_derivative(brackets, xi, k) for k in range(len(V))]


def _in_both(C, V, xi):
    moved = convert_columns("spatial", "hybrid", C, V, xi[1:])
    crossed = [ca.vertcat(skew(x[:3]), skew(x[3:])) for x in convert_twists("spatial", "hybrid", C, V)]
    turns = [x[:3, :] for x in xi]
    return [moved[k] - total(comb(k, l) * (crossed[l] @ turns[k - l]) for l in range(k + 1)) for k in range(len(V))]
