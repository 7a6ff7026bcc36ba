"""Where the shapes of a scene are, as expressions of q: once for all pairs, with the screws of the joints.

Distances and their derivatives are the same in every frame. `reference` chooses one in which expressions are short.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ..errors import ShapeError
from ..kinematics.recursive_body import frame_in_body
from ..lie import se3
from ..lie.quick import quick
from ..working_axes.rotations import cross
from .shapes import Shape, is_ball, is_turned

_ROUNDING = 1e-15  # of screws


@dataclass(frozen=True, eq=False)
class Placed:
    """A shape with its pose (R, c) in the frame of reference, and the body that it moves with, 0 for the world."""

    name: str
    shape: Shape
    R: object
    c: object
    body: int = 0

    @property
    def kind(self):
        """Name of the class of its shape."""
        return type(self.shape).__name__

    @property
    def axis(self):
        """Its z axis in the frame of reference."""
        return quick(self.R[:, 2])


@dataclass(frozen=True, eq=False)
class Joint:
    """Screws of a joint in the frame of reference, as columns: angular w, and velocity v of the point at its origin."""

    body: int
    w: object
    v: object

    @property
    def size(self):
        """How many velocities the joint has."""
        return self.w.shape[1]


ROOT = (0, ca.DM.zeros(3))


def reference(model, scene):
    """(body, point (3,) in its frame): a frame of reference with the axes of the body, about the point.

    That of the first body, if all pairs are of links, as distances between them do not depend on its joint. Else the
    root's axes about the middle of the first body, if its joint leaves that in place: axes of joints that go through
    it have v = 0.
    """
    first = [i for i in model.bodies if model.parent[i] == 0]
    in_pairs = {name for pair in scene.pairs for name in pair}
    if len(first) == 1 and all(x.link is not None for x in scene.items if x.name in in_pairs):
        return first[0], ROOT[1]
    if first:
        p = ca.SX(model.placement(first[0], model.joint_q(ca.SX.sym("q", model.robot.nq))[first[0]])[1])
        if p.is_constant():
            return 0, ca.DM(p)
    return ROOT


def seen_from(model, q, frame):
    """{body: pose (R, p) of its canonical frame} in a frame of `reference`."""
    base, point = frame
    q, poses = model.joint_q(q), {base: (ca.DM.eye(3), -point)}
    for i in reversed(model.support(base)):
        (R, p), (C, c) = poses[i], model.placement(i, q[i])
        above = R @ C.T
        poses[model.parent[i]] = (above, p - above @ c)
    for i in model.bodies:
        if i not in poses:
            poses[i] = se3.compose(poses[model.parent[i]], model.placement(i, q[i]))
    return poses


def placed(model, scene, q, poses, t, frame):
    """({name: Placed}, poses of the bodies) of a scene's shapes at q (nq,), in a frame of `reference`.

    poses (4, 4 m): homogeneous matrices of scene.moving side by side. t (1, 1): the time [s], if scene.timed.
    Raises UnknownName for a link that the robot does not have.
    """
    bodies, out = seen_from(model, q, frame), {}
    for item in scene.items:
        if item.link is not None:
            i, seen = frame_in_body(model, model.robot.frame(item.link))
            own = ca.DM(item.matrix)
            inside = se3.compose(seen, (own[:3, :3], own[:3, 3]))
            R, c = se3.compose(bodies[i], tuple(_clean(x) for x in inside))
            out[item.name] = Placed(
                item.name, item.shape, quick(R), quick(c), _moved_with(model, i, inside, item.shape)
            )
            continue
        C = _in_world(scene, item, poses, t)
        R, c = C[:3, :3], C[:3, 3]
        R, c = (R, c + bodies[0][1]) if frame[0] == 0 else se3.compose(bodies[0], (R, c))
        out[item.name] = Placed(item.name, item.shape, quick(R), quick(c))
    return out, bodies


def _moved_with(model, i, inside, shape):
    """The body that a shape on body i, with a pose in its frame, moves with: joints that turn it about an axis of
    symmetry leave it where it is, and are none of those on the way to it."""
    while i and _stays(model, i, inside, shape):
        i, inside = model.parent[i], se3.compose(model.placement(i, ca.DM(0)), inside)
    return i


def _stays(model, i, inside, shape):
    """Whether the joint of body i does not change where a shape with a pose in the frame of i is."""
    if model.kind[i] == "transform" or model.S[i].shape[1] != 1:
        return False
    S, (R, c) = ca.DM(model.S[i]), inside
    w, v = S[:3], S[3:] - ca.cross(c, S[:3])
    turned = 0 if is_ball(shape) else ca.cross(R[:, 2], w) if is_turned(shape) else w
    return float(ca.norm_inf(w)) > 0 and float(ca.norm_inf(ca.vertcat(v, turned))) < _ROUNDING


def _in_world(scene, item, poses, t):
    if item.fixed:
        return ca.DM(item.matrix)
    if isinstance(item.pose, str):
        k = scene.moving.index(item.name)
        return poses[:, 4 * k : 4 * k + 4]
    try:
        f = item.pose if item.pose.is_a("SXFunction") or not isinstance(t, ca.SX) else item.pose.expand()
        return f(t)
    except RuntimeError as e:
        problem = f"scene: pose of {item.name!r} over the time cannot be written out in scalars; make it of SX symbols"
        raise ShapeError(problem) from e


def _clean(x):
    """Constants with what is rounding for zero, so that products with it are left out."""
    return ca.sparsify(x, 1e-15)


def joint_screws(model, q, bodies):
    """{body: Joint} of all joints, from the poses of the bodies."""
    out, subspaces = {}, model.subspaces(q, [], 0)
    for i in model.bodies:
        R, p = bodies[i]
        S = subspaces[i][0]
        w, u = ca.sparsify(S[:3, :]), ca.sparsify(S[3:, :])
        at = _on_axis(model, i, q, bodies, w) if w.shape[1] == 1 and not u.nnz() else p
        w, u = quick(R @ w), quick(R @ u)
        out[i] = Joint(i, w, _sparse(u + cross(_sparse(at), w)))
    return out


def _on_axis(model, i, q, bodies, w):
    """A point on the axis w, in its body, of joint i: that of the body before, if it is one."""
    R, r = model.placement(i, model.joint_q(q)[i])
    axis, above = ca.SX(R @ w), bodies[model.parent[i]][1]
    if not axis.is_constant() or not ca.SX(r).is_constant():
        return bodies[i][1]
    return above if float(ca.norm_inf(ca.cross(ca.DM(axis), ca.DM(r)))) < 1e-15 else bodies[i][1]


def _sparse(x):
    """An expression that is quick, with structural zeros where it is constant."""
    return quick(ca.SX(ca.sparsify(ca.DM(x)))) if isinstance(x, ca.DM) or x.is_constant() else quick(x)


def chain(model, a, b):
    """[(body, sign)] of the joints between bodies a and b, along the way from a to b: of those towards the root, whose
    motion carries a, the sign is -1, of the others +1."""
    left, right = model.support(a), model.support(b)
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    return [(i, -1) for i in reversed(left)] + [(i, 1) for i in right]
