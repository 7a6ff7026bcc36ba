"""Quaternions among the coordinates that users give as numbers: they must be of unit length.

Formulas take a quaternion of any length but zero for the rotation of the normalised one (lie/so3.quat_to_rot), which is
what optimisation needs on its way. A number of another length is more likely a wrong order or a wrong joint.
"""

from math import sqrt

import numpy as np

from ..errors import ShapeError

TOLERANCE = 1e-6  # | |quaternion| - 1 | of numbers
_KINDS = ("spherical", "free")


def quaternions(robot):
    """((joint name, first of its four rows in q), ...)."""
    links = getattr(robot, "links", robot)  # of an elastic robot
    return tuple((j.name, j.q_index) for j in links.joints if j.kind in _KINDS)


def check_quaternions(where, found, q, normalize=False):
    """Raise ShapeError, which `where` begins, unless the quaternions of `found` in the columns of q, (nq,) or (nq, N),
    have unit length; with `normalize` any that has a direction. NaN passes: what comes out of it is NaN."""
    for name, row in found:
        if q.ndim == 1:
            w, x, y, z = q[row : row + 4].tolist()
            square = w * w + x * x + y * y + z * z
            if 1 - TOLERANCE < square < 1 + TOLERANCE:  # the common case, without a root
                continue
            column, norm = "", sqrt(square)
            wrong = norm <= TOLERANCE if normalize else abs(norm - 1) > TOLERANCE
        else:
            norms = np.sqrt(np.square(q[row : row + 4]).sum(axis=0))
            bad = norms <= TOLERANCE if normalize else np.abs(norms - 1) > TOLERANCE
            wrong = bad.any()
            k = int(np.argmax(bad)) if wrong else 0
            column, norm = f", column {k}" if len(bad) > 1 else "", norms[k]
        if wrong:
            at = f"{where}: joint {name}{column}: the quaternion q[{row}:{row + 4}] has norm {norm:.9g}"
            if norm <= TOLERANCE:
                raise ShapeError(f"{at}, which is no rotation; without displacement it is (1, 0, 0, 0)")
            raise ShapeError(
                f"{at}, expected 1 to {TOLERANCE:g}; give robot.normalized(q), or normalize=True to od.function"
            )


def normalized(where, found, q):
    """q, (nq,) or (nq, N), with quaternions of unit length, as a new array; ShapeError for those that are zero."""
    check_quaternions(where, found, q, normalize=True)
    q = np.array(q, float)
    for _, row in found:
        q[row : row + 4] /= np.linalg.norm(q[row : row + 4], axis=0)
    return q
