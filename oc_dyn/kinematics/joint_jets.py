"""Motion of one joint as Taylor coefficients, in canonical frames: what the Taylor methods read of a joint."""

from dataclasses import dataclass

import casadi as ca

from ..lie import jets, so3
from ..model import joints as jt


@dataclass(frozen=True)
class JointJet:
    """Motion of a body against its parent: rotation (outward/inward act on jets of vectors), position `p` of the
    body's origin in the parent's frame, and relative twist `w`, `v` in the body's frame (None where zero)."""

    rotation: object
    home: ca.DM
    p: list
    w: list
    v: list

    def outward(self, jet):
        """Jet of vectors of the body, in the parent's axes."""
        return [self.home @ x for x in self.rotation.outward(jet)]

    def inward(self, jet):
        """Jet of vectors of the parent, in the body's axes."""
        return self.rotation.inward([self.home.T @ x for x in jet])


class _NoRotation:
    def outward(self, jet):
        return jet

    inward = outward


def joint_jet(model, i, q, v):
    """JointJet of body i from its joint's coordinates q and Taylor coefficients v = [v0, v1, ...] of its velocity.

    Rotation and position are known to one order more than the velocity.
    """
    kind, pitch = model.kind[i], model.pitch[i]
    home, p0 = ca.DM(model.R[i]), ca.DM(model.p[i])
    if kind in ("revolute", "continuous", "prismatic", "helical"):
        angle = [q[0], *(x[0] / k if k > 1 else x[0] for k, x in enumerate(v, 1))]
        axis = [ca.vertcat(0, 0, x[0]) for x in v]
        slide = {"prismatic": 1.0, "helical": pitch}.get(kind)
        rotation = _NoRotation() if kind == "prismatic" else jets.PlaneRotation(angle)
        p = (
            [p0]
            if slide is None
            else [p0 + home[:, 2] * (slide * angle[0]), *(home[:, 2] * (slide * x) for x in angle[1:])]
        )
        return JointJet(
            rotation,
            home,
            p,
            None if kind == "prismatic" else axis,
            None if slide is None else [slide * x for x in axis],
        )
    if kind == "spherical":
        R = jets.rotation_from_body_rate(so3.quat_to_rot(q), v)
        return JointJet(jets.MatrixRotation(R), home, [p0], v, None)
    if kind == "planar":
        w = [ca.vertcat(0, 0, x[0]) for x in v]
        u = [ca.vertcat(x[1], x[2], 0) for x in v]
        rotation = jets.PlaneRotation([q[0], *(x[0] / k for k, x in enumerate(v, 1))])
        start = ca.vertcat(q[1], q[2], 0)
    elif kind == "free":
        w, u = [x[:3] for x in v], [x[3:] for x in v]
        rotation = jets.MatrixRotation(jets.rotation_from_body_rate(so3.quat_to_rot(q[:4]), w))
        start = q[4:7]
    else:
        raise NotImplementedError(kind)
    path = rotation.outward(u)  # velocity of the origin in the resting joint frame
    p = [p0 + home @ start, *(home @ x / k for k, x in enumerate(path, 1))]
    return JointJet(rotation, home, p, w, u)


KINDS = tuple(jt.KINDS)
