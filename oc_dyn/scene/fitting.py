"""Few-faced hulls and capsules that contain all points of a mesh, and how far they stick out of it.

Needs scipy, which comes with the extra `meshes`.
"""

from __future__ import annotations

import numpy as np

from ..types import Array


def capsule_around(points: Array) -> tuple[float, float, Array]:
    """(radius, length, matrix (4, 4)) of the capsule of the least volume that a local search finds around points (n, 3).

    All points are within, to rounding on the safe side.
    """
    from scipy.optimize import minimize

    centre = points.mean(axis=0)
    scale = float(np.abs(points - centre).max()) or 1.0
    local = (points - centre) / scale
    best = None
    for direction in _starts(local):
        found = minimize(
            lambda x, d=direction: _volume(*_capsule(local, d, x)),
            np.zeros(5),
            method="Nelder-Mead",
            options={"maxiter": 2000, "xatol": 1e-7, "fatol": 1e-9, "initial_simplex": 0.2 * np.eye(6, 5)},
        )
        if best is None or found.fun < best[0]:
            best = found.fun, _capsule(local, direction, found.x)
    assert best is not None
    radius, a, b, R, offset = best[1]
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, centre + scale * (R @ [*offset, (a + b) / 2])
    length = scale * (b - a)
    along = (points - T[:3, 3]) @ R[:, 2]
    off = points - T[:3, 3] - np.clip(along, -length / 2, length / 2)[:, None] * R[:, 2]
    return max(scale * radius, float(np.linalg.norm(off, axis=1).max())) * (1 + 1e-12), length, T


def _starts(points: Array) -> list[Array]:
    """Rotations whose z axes are tried first: the principal axes of the points, and those of the frame."""
    _, axes = np.linalg.eigh(points.T @ points)
    out = []
    for z in (*axes.T[::-1], *np.eye(3)):
        x = np.eye(3)[np.abs(z).argmin()]
        y = np.cross(z, x)
        y /= np.linalg.norm(y)
        out.append(np.column_stack([np.cross(y, z), y, z]))
    return out


def _capsule(points: Array, R: Array, x: Array) -> tuple[float, float, float, Array, Array]:
    """(radius, ends a and b along z, axes, offset in x and y) of the shortest capsule about the line that x (5,) tells:
    its tilts, its offset, and what its radius is above the least one."""
    sx, cx, sy, cy = np.sin(x[0]), np.cos(x[0]), np.sin(x[1]), np.cos(x[1])
    R = R @ np.array([[cy, sx * sy, cx * sy], [0.0, cx, -sx], [-sy, sx * cy, cx * cy]])
    local = points @ R
    off = np.sum((local[:, :2] - x[2:4]) ** 2, axis=1)
    radius = np.sqrt(off.max()) + abs(x[4])
    reach = np.sqrt(np.maximum(radius**2 - off, 0.0))
    a, b = float((local[:, 2] + reach).min()), float((local[:, 2] - reach).max())
    if a > b:  # a sphere does
        a = b = (a + b) / 2
    return float(radius), a, b, R, x[2:4]


def _volume(radius: float, a: float, b: float, *_: Array) -> float:
    return np.pi * radius**2 * (b - a + 4 / 3 * radius)
