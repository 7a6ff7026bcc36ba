"""Where the shapes of a scene are, as expressions of q: once for all pairs, with the screws of the joints."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ..errors import ShapeError
from ..kinematics.recursive_body import body_poses, frame_in_body
from ..lie import se3
from ..lie.quick import quick
from ..working_axes.rotations import cross
from .shapes import Shape


@dataclass(frozen=True, eq=False)
class Placed:
    """A shape with its pose (R, c) in the root frame, and the body that carries it, 0 for the world."""

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
        """Its z axis in the root frame."""
        return quick(self.R[:, 2])


@dataclass(frozen=True, eq=False)
class Joint:
    """Screws of a joint in the root frame, as columns: angular w, and velocity v of the point at the root's origin."""

    body: int
    w: object
    v: object

    @property
    def size(self):
        """How many velocities the joint has."""
        return self.w.shape[1]


def placed(model, scene, q, poses=None, t=None):
    """({name: Placed}, poses of the bodies) of a scene's shapes at q (nq,).

    poses (4, 4 m): homogeneous matrices of scene.moving side by side. t (1, 1): the time [s], if scene.timed.
    Raises UnknownName for a link that the robot does not have.
    """
    bodies = body_poses(model, q)
    out = {}
    for item in scene.items:
        if item.link is not None:
            i, seen = frame_in_body(model, model.robot.frame(item.link))
            own = ca.DM(item.matrix)
            inside = se3.compose(seen, (own[:3, :3], own[:3, 3]))
            R, c = se3.compose(bodies[i], tuple(_clean(x) for x in inside))
            out[item.name] = Placed(item.name, item.shape, quick(R), quick(c), i)
            continue
        C = _in_world(scene, item, poses, t)
        out[item.name] = Placed(item.name, item.shape, quick(C[:3, :3]), quick(C[:3, 3]))
    return out, bodies


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
        w, u = quick(R @ w), quick(R @ u)
        out[i] = Joint(i, w, quick(u + cross(quick(p), w)))
    return out


def chain(model, a, b):
    """[(body, sign)] of the joints between bodies a and b, along the way from a to b: of those towards the root, whose
    motion carries a, the sign is -1, of the others +1."""
    left, right = model.support(a), model.support(b)
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    return [(i, -1) for i in reversed(left)] + [(i, 1) for i in right]
