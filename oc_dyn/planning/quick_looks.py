"""Whether many configurations are free, quickly: what samplers ask thousands of times.

Spheres and capsules are rows of balls along their segments, which are compared with boxes, half-spaces, spheres and
capsules by formulas; other pairs are left to the quantity `distances`. Between two balls of a capsule a corner may get
deeper by about 2 mm: what is found here is looked at again, by the proof of the whole motion.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..function import function
from ..scene.shapes import Box, Capsule, HalfSpace, Sphere
from ..types import Array
from .clearance import KEPT
from .obstacles import Obstacles, reduced

_ROUND = (Sphere, Capsule)
_SPACING = 0.04  # [m] between balls


class QuickLooks:
    """Looks at configurations of a robot among Obstacles. Obstacles stand still."""

    def __init__(self, around: Obstacles) -> None:
        self.around, self.items = around, around.scene.items
        self._links = sorted({x.link for x in self.items if x.link is not None})
        self._poses = self._placed()
        number = {x.name: k for k, x in enumerate(self.items)}
        self._groups: dict[type, list[tuple[int, int, float]]] = {}
        left = np.zeros(len(around.wanted), bool)
        for p, (pair, wanted) in enumerate(zip(around.scene.pairs, around.wanted, strict=True)):
            i, j = (number[name] for name in pair)
            if not isinstance(self.items[i].shape, _ROUND):
                i, j = j, i
            kind = type(self.items[j].shape)
            if isinstance(self.items[i].shape, _ROUND) and kind in (Box, HalfSpace, *_ROUND):
                self._groups.setdefault(Sphere if kind in _ROUND else kind, []).append((i, j, float(wanted)))
            else:
                left[p] = True
        self._rest = None
        if left.any():
            self._rest = Obstacles(around.robot, reduced(around.scene, left), around.clearance)
        self._z = [np.linspace(-1, 1, self._balls(x.shape)) * self._half(x.shape) for x in self.items]

    def free(self, q: Array) -> Any:
        """(K,) whether configurations (K, nq) keep what is wanted."""
        q = np.atleast_2d(q)
        R, c = self._of_items(q)
        out = np.ones(len(q), bool)
        for kind, pairs in self._groups.items():
            out &= self._kept(kind, pairs, R, c)
        if self._rest is not None and out.any():
            out[out] = self._rest.free(q[out], within=KEPT)
        return out

    # -- inside -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _half(shape: Any) -> float:
        return shape.length / 2 if isinstance(shape, Capsule) else 0.0

    def _balls(self, shape: Any) -> int:
        return 1 + 2 * int(np.ceil(self._half(shape) / _SPACING))

    def _placed(self) -> ca.Function:
        """Function q -> (12, links): rotation, column by column, and position of every link."""
        q = ca.SX.sym("q", self.around.robot.nq)
        found = [function(self.around.robot, "frame_pose", frame=name)(q=q) for name in self._links]
        return ca.Function("links", [q], [ca.horzcat(*(ca.vertcat(ca.vec(x["R"]), x["p"]) for x in found))])

    def _of_items(self, q: Array) -> tuple[list[Array], list[Array]]:
        """Rotations (K, 3, 3) and positions (K, 3) of the shapes, (1, ...) of those in the world."""
        K, n = len(q), len(self._links)
        found = np.array(self._poses.map(K)(q.T) if K > 1 else self._poses(q[0])).T.reshape(K, n, 12)
        R_of = found[:, :, :9].reshape(K, n, 3, 3).swapaxes(2, 3)
        R, c = [], []
        for x in self.items:
            C = x.matrix
            if x.link is None:
                R.append(C[None, :3, :3])
                c.append(C[None, :3, 3])
            else:
                k = self._links.index(x.link)
                R.append(R_of[:, k] @ C[:3, :3])
                c.append(R_of[:, k] @ C[:3, 3] + found[:, k, 9:])
        return R, c

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
                z = y[:, :, 2] - np.clip(y[:, :, 2], -self._half(b), self._half(b))
                d = np.sqrt(y[:, :, 0] ** 2 + y[:, :, 1] ** 2 + z**2) - b.radius
            out = out & (d.min(axis=1) - a.radius >= wanted - KEPT)
        return out
