"""Quaternions among the coordinates that users give as numbers: they must be of unit length.

Formulas take a quaternion of any length but zero for the rotation of the normalised one (lie/so3.quat_to_rot), which is
what optimisation needs on its way. A number of another length is more likely a wrong order or a wrong joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..numbers import HUGE
from ..types import Array, Numbers
from .joints import QUATERNIONS

TOLERANCE = 1e-6  # | |quaternion| - 1 | of numbers


def quaternions(robot: Any) -> tuple[tuple[str, int], ...]:
    """((joint name, first of its four rows in q), ...)."""
    links = getattr(robot, "links", robot)  # of an elastic robot
    return tuple((j.name, j.q_index) for j in links.joints if j.kind in QUATERNIONS)


def check_quaternions(where: str, found: Iterable[tuple[str, int]], q: Array, normalize: bool = False) -> None:
    """Raise ShapeError, which `where` begins, unless the quaternions of `found` in the columns of q, (nq,) or (nq, N),
    have unit length; with `normalize` any that has a direction, and squares that do not overflow. NaN passes: what
    comes out of it is NaN."""
    for name, row in found:
        if q.ndim == 1:
            w, x, y, z = q[row : row + 4].tolist()
            square = w * w + x * x + y * y + z * z
            if 1 - TOLERANCE < square < 1 + TOLERANCE:  # the common case, without a root
                continue
            column, norm = "", hypot(w, x, y, z)
            wrong = (norm <= TOLERANCE or norm >= HUGE) if normalize else abs(norm - 1) > TOLERANCE
        else:
            with np.errstate(over="ignore"):
                norms = np.sqrt(np.square(q[row : row + 4]).sum(axis=0))
            bad = (norms <= TOLERANCE) | (norms >= HUGE) if normalize else np.abs(norms - 1) > TOLERANCE
            if not bad.any():
                continue
            wrong, k = True, int(np.argmax(bad))
            column, norm = f", column {k}" if len(bad) > 1 else "", norms[k]
        if wrong:
            at = f"{where}: joint {name}{column}: the quaternion q[{row}:{row + 4}] has norm {norm:.9g}"
            if norm <= TOLERANCE:
                raise ShapeError(f"{at}, which is no rotation; without displacement it is (1, 0, 0, 0)")
            if normalize:
                raise ShapeError(f"{at}, which is too large for its square")
            raise ShapeError(
                f"{at}, expected 1 to {TOLERANCE:g}; give robot.normalized(q), or normalize=True to od.function"
            )


def normalized(where: str, found: Sequence[tuple[str, int]], q: Numbers) -> Array:
    """q, (nq,) or (nq, N), with quaternions of unit length, as a new array; ShapeError for those that are zero or
    infinite."""
    q = np.array(q, float)
    for _, row in found:
        largest = np.abs(q[row : row + 4]).max(axis=0)
        q[row : row + 4] /= np.where((largest > HUGE) & (largest < np.inf), largest, 1.0)
    check_quaternions(where, found, q, normalize=True)
    for _, row in found:
        q[row : row + 4] /= np.linalg.norm(q[row : row + 4], axis=0)
    return q


def check_rotation(where: str, R: Array) -> None:
    """Raise ShapeError, which `where` begins, unless R, numbers (3, 3), is a rotation matrix to TOLERANCE."""
    if R.shape != (3, 3):
        raise ShapeError(f"{where} has shape {R.shape}, expected (3, 3)")
    if not np.all(np.abs(R) < 2):
        raise ShapeError(f"{where} is {R.tolist()}, expected a rotation matrix")
    off = np.abs(R @ R.T - np.eye(3)).max()
    if off > TOLERANCE:
        raise ShapeError(f"{where} is not a rotation matrix: R R' differs from the unit matrix by {off:.3g}")
    if np.linalg.det(R) < 0:
        raise ShapeError(f"{where} is not a rotation matrix but a reflection: its determinant is -1")
