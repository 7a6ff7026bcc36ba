"""Working axes: where quantities of a whole subtree are added up, and how they are taken from body to body.

A joint about z does not see its own turn: its screw is the same in the axes before the turn and after it. What is
added up for a subtree is therefore turned once, before anything is made of it, and the axes of parallel joints in a
row are not turned against each other at all.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..lie.so3 import skew
from ..model.inertia import casadi_value
from .step import Turn, cross

_ABOUT_Z = ("revolute", "continuous", "helical")
_FLIP = np.diag([1.0, -1.0, -1.0])


@dataclass(frozen=True)
class WorkingFrame:
    """Working axes of a body, at its origin.

    R, p: pose in the parent's axes that this hangs on: its working axes if `parallel`, else its body axes. turn: from
    the body's axes to the working axes, by `angle` (None: none). along_z: the joint's screw is along z.
    """

    R: object
    p: object
    angle: object
    turn: Turn
    parallel: bool
    along_z: bool

    def inward(self, X):
        """Columns given in the axes of the parent that this hangs on."""
        return self.R.T @ X

    def outward(self, X):
        """Columns given in the working axes, in those of the parent that this hangs on."""
        return self.R @ X

    def inertia(self, m, h, T):
        """[mass, first moment, tensor] of a body, as `outward`, about the parent's origin."""
        h, P = self.outward(h), skew(self.p)
        H = skew(h)
        T = self.R @ T @ self.R.T - P @ H - H @ P - m * (P @ P)
        return [m, h + m * self.p, ca.triu2symm(ca.triu(T))]

    def wrench(self, N, F):
        """Columns of moments and forces, as `outward`, about the parent's origin."""
        F = self.outward(F)
        return self.outward(N) + cross(self.p, F), F


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
        frames[i] = WorkingFrame(R, p, angle, Turn(angle), parallel, along_z)
    return frames


def hangs_on_parallel_axes(model, frames, i):
    """Whether body i turns and nothing hangs on its body axes: then its constants are best turned at once."""
    return frames[i].angle is not None and all(frames[k].parallel for k in model.children[i])


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
