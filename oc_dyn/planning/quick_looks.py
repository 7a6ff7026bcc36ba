"""Whether many configurations are free, quickly: what samplers ask thousands of times.

Spheres and capsules are compared with each other and with half-spaces by their closed forms; beside boxes and cylinders
they are rows of balls along their segments. It is one Function, kept with the robot; other pairs are left to the
quantity `distances`. Between two balls of a capsule a corner may get deeper by about 2 mm: what is found here is looked
at again, by the proof of the whole motion.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..lie.quick import quick
from ..model.cache import cached
from ..model.canonical import canonical
from ..scene.closed_forms import closed_form, has_closed_form
from ..scene.placed import placed, reference
from ..scene.shapes import ROUND, Box, Cylinder, half_length
from ..types import Array
from .clearance import KEPT
from .obstacles import Obstacles, reduced

_SPACING = 0.04  # [m] between balls
_BLOCK = 4  # configurations are looked at in multiples of it, so that there are few Functions of many


class QuickLooks:
    """Looks at configurations of a robot among Obstacles."""

    def __init__(self, around: Obstacles) -> None:
        self.around = around
        key = ("quick looks", around.scene.key, around.clearance)
        self._f, self._rest, self._blocks = cached(around.robot, key, lambda: _made(around))

    def free(self, q: Array, t: Array | float = 0.0) -> Any:
        """(K,) whether configurations (K, nq) keep what is wanted, at times (K,) or one."""
        q = np.atleast_2d(np.asarray(q, float))
        if not len(q):
            return np.ones(0, bool)
        t = np.broadcast_to(np.asarray(t, float), len(q))
        out = self._spare(np.column_stack([q, t])) >= -KEPT
        if self._rest is not None and out.any():
            out[out] = self._rest.free(q[out], t[out], within=KEPT)
        return out

    def _spare(self, q: Array) -> Array:
        """(K,) [m] that the nearest pair keeps besides what is wanted, at configurations and times (K, nq + 1)."""
        count = len(q)
        blocks = max(1, -(-count // _BLOCK))
        if blocks not in self._blocks:
            self._blocks[blocks] = self._f.map(blocks * _BLOCK)
        padded = np.concatenate([q, np.broadcast_to(q[-1:], (blocks * _BLOCK - count, q.shape[1]))])
        return np.array(self._blocks[blocks](padded.T)).ravel()[:count]


def _made(around: Obstacles) -> tuple[ca.Function, Obstacles | None, dict[int, ca.Function]]:
    """(Function (nq + 1,) of q and the time -> least distance beyond what is wanted, Obstacles with the pairs that it
    leaves out, Functions of blocks, to be filled)."""
    model, x = canonical(around.robot), quick(ca.SX.sym("x", around.robot.nq + 1))
    q, t = quick(x[:-1]), x[-1]
    shapes, _ = placed(model, around.scene, q, None, t, reference(model, around.scene))
    spare: Any = ca.inf
    left = np.zeros(len(around.wanted), bool)
    for p, (names, wanted) in enumerate(zip(around.scene.pairs, around.wanted.tolist(), strict=True)):
        a, b = (shapes[name] for name in names)
        found = _distances(a, b)
        left[p] = found is None
        for d in found or ():
            spare = ca.fmin(spare, d - wanted)
    rest = Obstacles(around.robot, reduced(around.scene, left), around.clearance) if left.any() else None
    return ca.Function("quick_looks", [x], [ca.densify(ca.SX(spare))], {"cse": True}), rest, {}


def _distances(a: Any, b: Any) -> list[Any] | None:
    """Expressions the least of which is the distance of two Placed shapes; None for pairs that are left out."""
    if isinstance(b.shape, ROUND):
        a, b = b, a
    if not (isinstance(a.shape, ROUND) and isinstance(b.shape, (Box, Cylinder))):  # whose balls are quicker
        return [closed_form(a, b)[0].d] if has_closed_form(a.shape, b.shape) else None
    half = half_length(a.shape)
    places = np.linspace(-half, half, 1 + 2 * int(np.ceil(half / _SPACING)))
    R = b.R if isinstance(b.R, ca.DM) else quick(b.R)
    c, u = quick(ca.SX(R.T @ (a.c - b.c))), quick(ca.SX(R.T @ a.axis))
    points = [[c[k] + t * u[k] for k in range(3)] for t in places.tolist()]
    if isinstance(b.shape, Box):
        return [_from_box(b.shape, y) - a.shape.radius for y in points]
    return [_from_cylinder(b.shape, y) - a.shape.radius for y in points]


def _from_box(shape: Box, y: list[Any]) -> Any:
    """Distance of a point y, three scalars, in the frame of a box."""
    return _beyond([ca.fabs(x) - size / 2 for x, size in zip(y, (shape.x, shape.y, shape.z), strict=True)])


def _from_cylinder(shape: Cylinder, y: list[Any]) -> Any:
    across = ca.sqrt(y[0] * y[0] + y[1] * y[1])
    return _beyond([across - shape.radius, ca.fabs(y[2]) - shape.length / 2])


def _beyond(by: list[Any]) -> Any:
    """Length of what is above 0 of some numbers, or the largest of them where none is."""
    square, most = 0, by[0]
    for x in by:
        over = ca.fmax(x, 0)
        square = square + over * over
    for x in by[1:]:
        most = ca.fmax(most, x)
    return ca.sqrt(square) + ca.fmin(most, 0)
