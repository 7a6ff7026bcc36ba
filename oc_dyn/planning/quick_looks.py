"""Whether many configurations are free, quickly: what samplers ask thousands of times.

Spheres and capsules are rows of balls along their segments, which are compared with boxes, half-spaces, spheres and
capsules by formulas; other pairs are left to the quantity `distances`. Between two balls of a capsule a corner may get
deeper by about 2 mm: what is found here is looked at again, by the proof of the whole motion.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..scene.link_poses import link_poses
from ..scene.scene import Item
from ..scene.shapes import ROUND, Box, HalfSpace, Sphere, half_length
from ..types import Array
from .clearance import KEPT
from .obstacles import Obstacles, reduced

_SPACING = 0.04  # [m] between balls


def placed_at(item: Item, t: Array) -> Array:
    """(K, 4, 4) poses of a shape in the world at times (K,), (1, 4, 4) of one that stands still."""
    if not isinstance(item.pose, ca.Function):
        return np.asarray(item.matrix)[None]
    times, which = np.unique(t, return_inverse=True)
    found = np.array(item.pose.map(len(times))(times[None, :]), float)
    return found.reshape(4, len(times), 4).swapaxes(0, 1)[which]


class QuickLooks:
    """Looks at configurations of a robot among Obstacles."""

    def __init__(self, around: Obstacles) -> None:
        self.around, self.items = around, around.scene.items
        self._links = sorted({x.link for x in self.items if x.link is not None})
        number = {x.name: k for k, x in enumerate(self.items)}
        self._groups: dict[type, list[tuple[int, int, float]]] = {}
        left = np.zeros(len(around.wanted), bool)
        for p, (pair, wanted) in enumerate(zip(around.scene.pairs, around.wanted, strict=True)):
            i, j = (number[name] for name in pair)
            if not isinstance(self.items[i].shape, ROUND):
                i, j = j, i
            kind = type(self.items[j].shape)
            if isinstance(self.items[i].shape, ROUND) and kind in (Box, HalfSpace, *ROUND):
                self._groups.setdefault(Sphere if kind in ROUND else kind, []).append((i, j, float(wanted)))
            else:
                left[p] = True
        self._rest = None
        if left.any():
            self._rest = Obstacles(around.robot, reduced(around.scene, left), around.clearance)
        self._z = [np.linspace(-1, 1, self._balls(x.shape)) * half_length(x.shape) for x in self.items]

    def links(self, q: Array) -> dict[str, Array]:
        """{link: poses (K, 4, 4)} of the links that carry shapes, at configurations (K, nq)."""
        return link_poses(self.around.robot, self._links, q.T)

    def free(self, q: Array, t: Array | float = 0.0, on: dict[str, Array] | None = None) -> Any:
        """(K,) whether configurations (K, nq) keep what is wanted, at times (K,) or one; on: as `links` gives."""
        q = np.atleast_2d(q)
        t = np.broadcast_to(np.asarray(t, float), len(q))
        R, c = self._of_items(self.links(q) if on is None else on, t)
        out = np.ones(len(q), bool)
        for kind, pairs in self._groups.items():
            out &= self._kept(kind, pairs, R, c)
        if self._rest is not None and out.any():
            out[out] = self._rest.free(q[out], t[out], within=KEPT)
        return out

    # -- inside -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _balls(shape: Any) -> int:
        return 1 + 2 * int(np.ceil(half_length(shape) / _SPACING))

    def _of_items(self, on: dict[str, Array], t: Array) -> tuple[list[Array], list[Array]]:
        """Rotations (K, 3, 3) and positions (K, 3) of the shapes, (1, ...) of those in the world."""
        C = [placed_at(x, t) if x.link is None else on[x.link] @ x.matrix for x in self.items]
        return [x[:, :3, :3] for x in C], [x[:, :3, 3] for x in C]

    def _kept(self, kind: type, pairs: list[tuple[int, int, float]], R: list[Array], c: list[Array]) -> Any:
        out: Any = True
        a: Any
        b: Any
        for i, j, wanted in pairs:
            a, b = self.items[i].shape, self.items[j].shape
            x = c[i][:, None, :] + self._z[i][None, :, None] * R[i][:, None, :, 2]  # (K, M, 3) centres of balls
            y = np.einsum("kml,kln->kmn", x - c[j][:, None, :], R[j])  # in the frame of the other
            if kind is HalfSpace:
                d = y @ np.array(b.normal) - b.offset
            elif kind is Box:
                beyond = np.abs(y) - np.array([b.x, b.y, b.z]) / 2
                d = np.linalg.norm(np.maximum(beyond, 0), axis=2) + np.minimum(beyond.max(axis=2), 0)
            else:
                z = y[:, :, 2] - np.clip(y[:, :, 2], -half_length(b), half_length(b))
                d = np.sqrt(y[:, :, 0] ** 2 + y[:, :, 1] ** 2 + z**2) - b.radius
            out = out & (d.min(axis=1) - a.radius >= wanted - KEPT)
        return out
