"""Frames of bodies in their parents': body frames, and working axes for what is summed over subtrees."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..lie.quick import quick
from ..lie.so3 import skew
from ..model.inertia import casadi_value
from .rotations import PlaneRotation, cross

_ABOUT_Z = ("revolute", "continuous", "helical")
_FLIP = np.diag([1.0, -1.0, -1.0])


@dataclass(frozen=True)
class Placement:
    """Pose (R, p) of axes of a body in axes of its parent."""

    R: object
    p: object

    def inward(self, X):
        """Columns given in the parent's axes, in the body's."""
        return quick(self.R.T @ X)

    def outward(self, X):
        """Columns given in the body's axes, in the parent's."""
        return quick(self.R @ X)

    def wrench(self, N, F):
        """Columns of moments and forces, as `outward`, about the parent's origin."""
        F = self.outward(F)
        return self.outward(N) + cross(self.p, F), F


@dataclass(frozen=True)
class BodyPlacement(Placement):
    """Placement of a body's frame in its parent's, R rest of the rotation after the `turn` about z."""

    turn: PlaneRotation

    def inward(self, X):
        """Columns of the parent's axes in the axes of the body."""
        return self.turn.inward(quick(self.R.T @ X))

    def outward(self, X):
        """Columns of the body's axes in the axes of the parent."""
        return quick(self.R @ self.turn.outward(X))

    def twist(self, w, u):
        """Columns of angular and linear parts of motions of the parent, of the body's origin in its axes."""
        # one column as the passes of taylor write it, so that CasADi sees what they share with a solver
        carried = u + ca.cross(w, self.p) if w.shape[1] == 1 else u - cross(self.p, w)
        return self.inward(w), self.inward(carried)

    def articulated(self, A, H, B):
        """Blocks of an articulated inertia [[A, H], [H', B]], about the parent's origin in its axes."""
        R, turn = self.R, self.turn
        A, H, B = R @ turn.symmetric(A) @ R.T, R @ turn.square(H) @ R.T, R @ turn.symmetric(B) @ R.T
        P = skew(self.p)
        moved = H + P @ B
        return upper_mirrored(A - H @ P + P @ moved.T), moved, B


def body_placements(model, q):
    """{body: BodyPlacement} at q = {body: joint coordinates}."""
    out = {}
    for i in model.bodies:
        R, p = model.placement(i, q[i])
        plane = model.kind[i] in (*_ABOUT_Z, "planar")
        R = ca.DM(model.R[i]) if plane or model.kind[i] == "prismatic" else R
        out[i] = BodyPlacement(R, p, PlaneRotation(q[i][0] if plane else None))
    return out


@dataclass(frozen=True)
class WorkingFrame(Placement):
    """Placement of a body's working axes, at its origin, in the axes of the parent that this hangs on: the parent's
    working axes if `parallel`, else its body axes.

    turn: from the body's axes to the working axes, by `angle` (None: none). along_z: the joint's screw is along z.
    drift: velocity that the body has for its parent's observer beyond that for its own one, in the axes that this hangs
    on, or twice it where the integrals are of twice the velocity; None where all have the same observer.
    """

    turn: PlaneRotation
    angle: object = None
    parallel: bool = False
    along_z: bool = False
    drift: object = None


def working_frames(model, q):
    """{body: WorkingFrame} at q = {body: joint coordinates}."""
    frames = {}
    for i in model.bodies:
        kind, above = model.kind[i], frames.get(model.parent[i])
        R, p = model.placement(i, q[i])
        p = sparse(p) if isinstance(p, ca.DM) else p
        along_z, angle = kind in (*_ABOUT_Z, "prismatic"), q[i][0] if kind in _ABOUT_Z else None
        parallel = along_z and above is not None and above.along_z and abs(model.R[i][2, 2]) == 1.0
        if parallel:
            turn, flip = _about_z(model.R[i])
            passed = -above.angle if flip is _FLIP and above.angle is not None else above.angle
            R, p, angle = ca.DM(flip), above.turn.outward(p), _sum(passed, angle, turn or None)
        elif along_z:
            R = ca.DM(model.R[i])
        R = ca.sparsify(R) if isinstance(R, ca.DM) else R
        frames[i] = WorkingFrame(R, p, PlaneRotation(angle), angle, parallel, along_z)
    return frames


def _about_z(home):
    """(angle, flip) of a rotation flip Rz(angle) that leaves the z axis where it is or turns it over."""
    flip = np.eye(3) if home[2, 2] > 0 else _FLIP
    turn = flip @ home
    return float(np.arctan2(turn[1, 0], turn[0, 0])), flip


def _sum(*angles):
    angles = [a for a in angles if a is not None]
    return sum(angles[1:], angles[0]) if angles else None


def sparse(x):
    """An array as a sparse casadi value, so that its zeros cost nothing."""
    return ca.sparsify(casadi_value(x))


def upper_mirrored(A):
    """A symmetric matrix from its upper half, so that the lower half costs nothing."""
    return quick(ca.triu2symm(ca.triu(A)))
