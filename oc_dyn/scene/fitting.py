"""Few-faced hulls and capsules that contain all points of a mesh, and how far they stick out of it.

Needs scipy, which comes with the extra `meshes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import Array

_MOST = 500  # points, around which a capsule is looked for


def capsule_around(points: Array) -> tuple[float, float, Array]:
    """(radius, length, matrix (4, 4)) of the least capsule that a local search finds around points (n, 3), which it
    contains all, to rounding on the safe side.
    """
    from scipy.optimize import minimize

    centre = points.mean(axis=0)
    scale = float(np.abs(points - centre).max())
    if not scale:
        T = np.eye(4)
        T[:3, 3] = centre
        return 0.0, 0.0, T
    local = (_extreme(points) - centre) / scale
    local = local[:: len(local) // _MOST + 1]  # the radius is that of all points in the end
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


def _extreme(points: Array) -> Array:
    """The corners of the convex hull; all points where they are in a plane."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        return points


def hull_around(points: Array, most: int) -> tuple[Array, float]:
    """(vertices (m, 3), excess [m]) of a convex polytope of at most `most` vertices that contains points (n, 3): their
    convex hull itself where it has no more, else one that sticks out of it by no more than excess.

    The points that are farthest from the hull of those before them are taken, and the faces then moved outwards until
    none of the points is beyond them.
    """
    from scipy.spatial import ConvexHull, QhullError

    points = np.unique(points, axis=0)
    try:
        points = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # all in a plane, on a line, or one
        return _flat(points, most)
    if len(points) <= most:
        return points, 0.0
    centre, scale = points.mean(axis=0), float(np.ptp(points, axis=0).max())
    local = (points - centre) / scale
    corners = _grown(local, _farthest(local, most))
    excess = max(_nearest(local, x) for x in corners)
    return centre + scale * corners, scale * excess


def _farthest(points: Array, most: int) -> Array:
    """So many of the points, each the one farthest outside the hull of those before it."""
    from scipy.spatial import ConvexHull

    chosen, basis = [int(np.linalg.norm(points, axis=1).argmax())], np.zeros((3, 0))
    while len(chosen) < 4:
        away = points - points[chosen[0]]
        away = away - away @ basis @ basis.T
        chosen.append(int(np.linalg.norm(away, axis=1).argmax()))
        basis = np.column_stack([basis, away[chosen[-1]] / np.linalg.norm(away[chosen[-1]])])
    hull = ConvexHull(points[chosen], incremental=True)
    while len(chosen) < most:
        outside = _outside(points, hull).max(axis=1)
        chosen.append(int(outside.argmax()))
        hull.add_points(points[chosen[-1:]])
    return points[chosen]


def _grown(points: Array, corners: Array) -> Array:
    """The corners, moved outwards until all points, about the origin, are in their hull."""
    from scipy.spatial import ConvexHull

    for _ in range(60):
        corners = corners[ConvexHull(corners).vertices]
        hull = ConvexHull(corners)
        beyond = _outside(points, hull).max(axis=0)
        if beyond.max() < 1e-9:
            break
        moves = np.zeros_like(corners)
        for face, normal, way in zip(hull.simplices, hull.equations[:, :3], beyond, strict=True):
            for corner in face:
                moves[corner] += max(way - moves[corner] @ normal, 0.0) * normal if way > 0 else 0.0
        corners = corners + 0.7 * moves  # all of it overshoots, as neighbours move, too
    hull = ConvexHull(corners)
    share = (points @ hull.equations[:, :3].T / -hull.equations[:, 3]).max()
    return corners * max(share, 1.0) * (1 + 1e-9)  # above rounding


def _outside(points: Array, hull: Any) -> Array:
    """Signed distances (points, faces) from the planes of the faces."""
    return points @ hull.equations[:, :3].T + hull.equations[:, 3]


def _nearest(points: Array, x: Array) -> float:
    """Distance of x from the hull of points, from above: that of a point in it that is next to x."""
    from scipy.optimize import nnls

    heavy = 1e3  # of the row by which the weights add up to 1
    weights, _ = nnls(np.vstack([points.T, heavy * np.ones(len(points))]), np.append(x, heavy))
    return float(np.linalg.norm(x - points.T @ (weights / weights.sum())))


def _flat(points: Array, most: int) -> tuple[Array, float]:
    """Of points in a plane: themselves if they are few, else the corners of a rectangle along their principal axes."""
    if len(points) <= most:
        return points, 0.0
    centre = points.mean(axis=0)
    scale = float(np.ptp(points, axis=0).max())
    local = (points - centre) / scale
    _, axes = np.linalg.eigh(local.T @ local)
    turned = local @ axes
    low, high = turned.min(axis=0) - 1e-12, turned.max(axis=0) + 1e-12
    corners = np.array([(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    corners = corners @ axes.T
    return centre + scale * corners, scale * max(_nearest(local, x) for x in corners)


def excess_of(radius: float, length: float, T: Array, points: Array) -> float:
    """How far [m] a capsule sticks out of the hull of points (n, 3), looked at in a few thousand directions."""
    k = np.arange(4000) + 0.5
    z, angle = 1 - 2 * k / len(k), np.pi * (1 + 5**0.5) * k  # a spiral over the sphere
    n = np.column_stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z])
    own = n @ T[:3, 3] + length / 2 * np.abs(n @ T[:3, 2]) + radius
    points = _extreme(points)
    parts = np.array_split(n, 1 + len(points) // 1000)  # little memory
    return float((own - np.concatenate([(part @ points.T).max(axis=1) for part in parts])).max())
