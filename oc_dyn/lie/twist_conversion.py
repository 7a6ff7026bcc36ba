"""Twists, their componentwise time derivatives, and wrenches, from one representation to another.

| representation | angular part | linear part                                    | elsewhere called          |
|----------------|--------------|------------------------------------------------|---------------------------|
| body           | body axes    | velocity of the body's origin, body axes       | LOCAL, left-invariant     |
| spatial        | root axes    | velocity of the body's point that passes the   | WORLD, right-invariant    |
|                |              | root's origin, root axes                       |                           |
| hybrid         | root axes    | velocity of the body's origin, root axes       | LOCAL_WORLD_ALIGNED, MIXED|

A wrench [moment; force] goes with its twist, so that their product is the power: body, moment about the body's origin
in body axes; spatial, about the root's origin in root axes; hybrid, about the body's origin in root axes. All
derivatives are exact: Leibniz sums, to any order. C is the pose (R (3, 3), p (3,)) of the body in the root frame;
lists hold the derivatives [x, x', x'', ...].
"""

import casadi as ca

from ..errors import ShapeError, UnknownName
from . import se3
from .leibniz import carry, grow

REPRESENTATIONS = ("body", "spatial", "hybrid")


def spatial_from_body(C, V):
    """Spatial twist and its derivatives from body ones: V_spatial = Ad(C) V_body. Ali et al. 2026, eq. 20."""
    return convert_twists("body", "spatial", C, V)


def body_from_spatial(C, V):
    """Body twist and its derivatives from spatial ones."""
    return convert_twists("spatial", "body", C, V)


def hybrid_from_body(C, V):
    """Hybrid twist and its derivatives from body ones."""
    return convert_twists("body", "hybrid", C, V)


def body_from_hybrid(C, V):
    """Body twist and its derivatives from hybrid ones."""
    return convert_twists("hybrid", "body", C, V)


def spatial_from_hybrid(C, V):
    """Spatial twist and its derivatives from hybrid ones."""
    return convert_twists("hybrid", "spatial", C, V)


def hybrid_from_spatial(C, V):
    """Hybrid twist and its derivatives from spatial ones."""
    return convert_twists("spatial", "hybrid", C, V)


def convert_twists(source, target, C, V):
    """Derivatives [V, V', ...] of a twist in representation `target`, from those in `source`."""
    if source == target:
        return list(V)
    A, rows, rates, out = _matrix(source, target, C), [], [], []
    for k, x in enumerate(V):
        out.append(grow(rows, A, rates, x))
        rates.append(_rate(source, target, V[k], out[k]))
    return out


def convert_columns(source, target, C, V, J):
    """As convert_twists, for a matrix whose columns are twists of the body: J, J', ... (6, n). V: derivatives of the
    body's own twist in `source`, at least one less than of J."""
    if source == target:
        return list(J)
    return carry(_matrix(source, target, C), _rates(source, target, C, V), J)


def convert_wrenches(source, target, C, V, W):
    """Derivatives [W, W', ...] of a wrench on the body in `target`, from those in `source`. V: derivatives of its
    twist in `source`, at least one less."""
    if source == target:
        return list(W)
    dual = [-x.T for x in _rates(source, target, C, V[: len(W) - 1])]
    return carry(_matrix(target, source, C).T, dual, W)


def checked_representation(where, name):
    """The name, if it is one of REPRESENTATIONS. Raises ShapeError if None, as results differ; UnknownName."""
    if name is None:
        raise ShapeError(
            f"{where}: give representation=..., one of 'body' (body axes, at the frame), 'spatial' (root axes, at the "
            "root's origin), 'hybrid' (root axes, at the frame)"
        )
    if not isinstance(name, str) or name not in REPRESENTATIONS:
        raise UnknownName("representation", name, REPRESENTATIONS)
    return name


def _matrix(source, target, C):
    """A with V_target = A V_source."""
    R, p = C
    turn, shift = (R, ca.DM.zeros(3)), (ca.DM.eye(3), p)
    return {
        ("body", "spatial"): lambda: se3.Ad(C),
        ("spatial", "body"): lambda: se3.Ad_inv(C),
        ("body", "hybrid"): lambda: se3.Ad(turn),
        ("hybrid", "body"): lambda: se3.Ad_inv(turn),
        ("hybrid", "spatial"): lambda: se3.Ad(shift),
        ("spatial", "hybrid"): lambda: se3.Ad_inv(shift),
    }[source, target]()


def _rate(source, target, V_source, V_target):
    """a with A' = a A for the A of _matrix; applies to derivatives of a as well, it being linear in the twists."""
    none = ca.DM.zeros(3)
    return {
        ("body", "spatial"): lambda: se3.ad(V_target),
        ("spatial", "body"): lambda: -se3.ad(V_target),
        ("body", "hybrid"): lambda: se3.ad(ca.vertcat(V_target[:3], none)),
        ("hybrid", "body"): lambda: -se3.ad(ca.vertcat(V_target[:3], none)),
        ("hybrid", "spatial"): lambda: se3.ad(ca.vertcat(none, V_source[3:])),
        ("spatial", "hybrid"): lambda: -se3.ad(ca.vertcat(none, V_target[3:])),
    }[source, target]()


def _rates(source, target, C, V):
    converted = convert_twists(source, target, C, V)
    return [_rate(source, target, x, y) for x, y in zip(V, converted, strict=True)]
