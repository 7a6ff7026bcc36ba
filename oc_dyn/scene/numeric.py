"""Distances of shapes as numbers, exact to 1e-10, for one pose or many at once.

The same maximum over unit normals as in `smooth_support`, with so little smoothing at the end that it is below 1e-11 of
the shapes. It certifies itself: the support functions at n, which are exact, give a lower bound of the distance, and
the points on the shapes an upper one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..numbers import are_sane, as_floats
from ..types import Array, Indices, Numbers
from .segment_box import beside_cylinder, normal_and_place
from .segments import segments_apart
from .shapes import ROUND, Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Polytope, Shape, Sphere, ball, half_length

_LAST = 1e-11  # last smoothing, in sizes of the shapes
_STEPS, _MORE = 34, 8  # Newton steps, of them with the last smoothing
_AGAIN = 0.05  # smoothing, in sizes, from which steps start again where shapes overlap
_OFF = 1e-8  # between lower and upper bound, in sizes, above which more and smaller steps are tried
_LEAST = 1e-12
_AROUND, _BEST, _OF_POLYTOPES = 48, 6, 24  # directions besides axes, and starts, where shapes overlap
_START = np.array([0.48, 0.6, 0.64])  # n where there is no better one
_SHARE, _KEPT, _ROOT = 0.9, 0.1, 6  # as in smooth_support


def separation(shape_a: Shape, pose_a: Numbers, shape_b: Shape, pose_b: Numbers) -> tuple[Any, Array, Array, Array]:
    """(d, n, p_a, p_b): distance [m] of two shapes, unit vector n from a to b, and nearest points, in the common frame.

    pose_a, pose_b: homogeneous matrices (4, 4) of the shapes, or (k, 4, 4) of many; d is then (k,), the others (k, 3).
    d is a lower bound of the distance in any case, by the support functions at n, and exact to 1e-10 of the size of the
    shapes where they are apart. d < 0: minus the depth of penetration, from several directions, the best of which may
    not be the best of all where shapes overlap far; p_a, p_b are then the deepest points.
    Raises ShapeError for two half-spaces, and for matrices of another shape or with numbers that are not finite.
    """
    A, B = (_pose(f"separation: pose_{x}", pose) for x, pose in (("a", pose_a), ("b", pose_b)))
    single = A.ndim == B.ndim == 2
    A, B = (np.atleast_3d(x.reshape(-1, 4, 4)) for x in (A, B))
    count = max(len(A), len(B))
    if len(A) not in (1, count) or len(B) not in (1, count):
        raise ShapeError(f"separation: got {len(A)} poses of a and {len(B)} of b, expected as many, or one")
    A, B = (np.broadcast_to(x, (count, 4, 4)) for x in (A, B))
    (shape_a, A), (shape_b, B) = _thick(shape_a, A), _thick(shape_b, B)
    if isinstance(shape_a, HalfSpace) and isinstance(shape_b, HalfSpace):
        raise ShapeError("separation: two half-spaces have no distance")
    if isinstance(shape_a, HalfSpace):
        d, n, p_b, p_a = _against_plane(shape_b, B, shape_a, A)
        n = -n
    elif isinstance(shape_b, HalfSpace):
        d, n, p_a, p_b = _against_plane(shape_a, A, shape_b, B)
    else:
        d, n, p_a, p_b = _between(shape_a, A, shape_b, B)
    return (float(d[0]), n[0], p_a[0], p_b[0]) if single else (d, n, p_a, p_b)


def _thick(shape: Shape, poses: Array) -> tuple[Shape, Array]:
    """The same as a sphere or a capsule, which have closed forms, where it is a point or a segment."""
    if isinstance(shape, Cylinder) and not shape.radius:
        return Capsule(0.0, shape.length), poses
    if isinstance(shape, (Box, Ellipsoid)):
        full = [shape.x, shape.y, shape.z] if isinstance(shape, Box) else [2 * shape.a, 2 * shape.b, 2 * shape.c]
        if np.count_nonzero(full) <= 1:
            turn = np.eye(4)[:, {0: [1, 2, 0, 3], 1: [2, 0, 1, 3], 2: [0, 1, 2, 3]}[int(np.argmax(full))]]
            return Capsule(0.0, max(full)), poses @ turn
    if isinstance(shape, Polytope) and len(shape.points) == 1:
        place = np.eye(4)
        place[:3, 3] = shape.points[0]
        return Sphere(0.0), poses @ place
    return shape, poses


def support(shape: Shape, poses: Array, n: Array) -> tuple[Array, Array]:
    """(h, x): max n . x over the shape at poses (k, 4, 4) for directions n (k, 3), and a point x (k, 3) that has it.

    Exact. Raises ShapeError for a half-space.
    """
    R, c = poses[:, :3, :3], poses[:, :3, 3]
    m = np.einsum("kji,kj->ki", R, n)
    x = c + np.einsum("kij,kj->ki", R, farthest(shape, m))
    return np.einsum("ki,ki->k", n, x), x


def farthest(shape: Shape, m: Array) -> Array:
    """(k, 3) points of the shape in its frame that are farthest along m (k, 3)."""
    sign = np.where(m < 0, -1.0, 1.0)
    length = np.linalg.norm(m, axis=1, keepdims=True)
    if isinstance(shape, Sphere):
        return shape.radius * m / np.maximum(length, 1e-300)
    if isinstance(shape, Capsule):
        return shape.radius * m / np.maximum(length, 1e-300) + sign * [0, 0, shape.length / 2]
    if isinstance(shape, Box):
        return sign * [shape.x / 2, shape.y / 2, shape.z / 2]
    if isinstance(shape, Cylinder):
        across = m * [1, 1, 0]
        size = np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
        return shape.radius * across / size + sign * [0, 0, shape.length / 2]
    if isinstance(shape, Ellipsoid):
        y = m * [shape.a, shape.b, shape.c]
        return y * [shape.a, shape.b, shape.c] / np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1e-300)
    if isinstance(shape, Polytope):
        return shape.points[np.argmax(m @ shape.points.T, axis=1)]
    raise ShapeError(f"support: {shape!r} has no support function that is finite in all directions")


def _pose(what: str, pose: Numbers) -> Array:
    C = as_floats(what, pose)
    if C.shape[-2:] != (4, 4) or C.ndim not in (2, 3) or not are_sane(C):
        raise ShapeError(f"{what}: got shape {C.shape}, expected finite numbers (4, 4), or (k, 4, 4)")
    return C


def _against_plane(shape: Shape, A: Array, plane: HalfSpace, B: Array) -> tuple[Array, Array, Array, Array]:
    """(d, n, point of the shape, point of the plane) of a shape and a half-space; n from the shape to the plane."""
    n = -B[:, :3, :3] @ np.array(plane.normal)
    h, x = support(shape, A, n)
    d = np.einsum("ki,ki->k", n, B[:, :3, 3]) - plane.offset - h
    return d, n, x, x + d[:, None] * n


# -- maximum over n ------------------------------------------------------------------------------------------------


def _between(a: Shape, A: Array, b: Shape, B: Array) -> tuple[Array, Array, Array, Array]:
    if isinstance(a, ROUND) and isinstance(b, ROUND):
        return _segments(a, A, b, B)
    if isinstance(a, Box) and isinstance(b, ROUND):
        d, n, p_b, p_a = _segment_and_box(b, B, a, A)
        return d, -n, p_a, p_b
    if isinstance(a, ROUND) and isinstance(b, Box):
        return _segment_and_box(a, A, b, B)
    if isinstance(a, Cylinder) and isinstance(b, ROUND):
        d, n, p_b, p_a = _beside_cylinder(b, B, a, A)
        return d, -n, p_a, p_b
    if isinstance(a, ROUND) and isinstance(b, Cylinder):
        return _beside_cylinder(a, A, b, B)
    return _maximised(a, A, b, B)


def _maximised(a: Shape, A: Array, b: Shape, B: Array) -> tuple[Array, Array, Array, Array]:
    problem = _Problem(a, A, b, B)
    n, points = problem.maximised(_unit(problem.c))
    best = _Best(problem.value(n), n, *points)
    for steps in (3 * _STEPS, 10 * _STEPS):
        apart = np.linalg.norm(best.p_b - best.p_a, axis=1)
        core = best.d + ball(a) + ball(b)  # without the balls
        off = np.flatnonzero((core > 0) & (apart - core > _OFF * problem.size))
        if len(off):
            few = _Problem(a, A[off], b, B[off])
            best.improve(off, few, *few.maximised(_unit(few.c), steps=steps))
    deep = np.flatnonzero(best.d < -ball(a) - ball(b))  # without the balls, too
    if len(deep):
        starts = _starts(_Problem(a, A[deep], b, B[deep]))
        rows = np.repeat(deep, starts.shape[1])
        many = _Problem(a, A[rows], b, B[rows])
        n, points = many.maximised(starts.reshape(-1, 3), _AGAIN)
        last = many.value(n).reshape(starts.shape[:2]).argmax(axis=1) + starts.shape[1] * np.arange(len(deep))
        few = _Problem(a, A[deep], b, B[deep])
        best.improve(deep, few, n[last], (points[0][last], points[1][last]))
    return best.d, best.n, best.p_a + ball(a) * best.n, best.p_b - ball(b) * best.n


@dataclass
class _Best:
    """The best n so far, its value and its points."""

    d: Array
    n: Array
    p_a: Array
    p_b: Array

    def improve(self, rows: Indices, problem: _Problem, n: Array, points: tuple[Array, Array]) -> None:
        """Take n where it is better; problem: that of these rows."""
        d = problem.value(n)
        better = d > self.d[rows]
        for old, new in zip((self.d, self.n, self.p_a, self.p_b), (d, n, *points), strict=True):
            old[rows[better]] = new[better]


def _unit(x: Array) -> Array:
    size = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(size > 1e-9, x / np.maximum(size, 1e-300), _START)


def _segments(a: Shape, A: Array, b: Shape, B: Array) -> tuple[Array, Array, Array, Array]:
    """Spheres and capsules, by the nearest points of two segments."""
    h, k = half_length(a), half_length(b)
    u, w = A[:, :3, 2], B[:, :3, 2]
    d, n, s, t = segments_apart(B[:, :3, 3] - A[:, :3, 3], u, h, w, k)
    x_a, x_b = A[:, :3, 3] + s[:, None] * u, B[:, :3, 3] + t[:, None] * w
    return d - ball(a) - ball(b), n, x_a + ball(a) * n, x_b - ball(b) * n


def _segment_and_box(a: Shape, A: Array, b: Box, B: Array) -> tuple[Array, Array, Array, Array]:
    """(d, n, point of a, point of b) of a sphere or capsule and a box."""
    R, way, u = B[:, :3, :3], B[:, :3, 3] - A[:, :3, 3], A[:, :3, 2]
    c, axis = (np.einsum("kji,kj->ki", R, x) for x in (way, u))
    edges = np.array([b.x, b.y, b.z]) / 2
    m, t = normal_and_place(c, axis, half_length(a), edges)
    x = np.clip(t[:, None] * axis - c, -edges, edges)  # of the box, in its frame
    d = np.einsum("ki,ki->k", m, c) - np.abs(m) @ edges - half_length(a) * np.abs(np.einsum("ki,ki->k", m, axis))
    n = np.einsum("kij,kj->ki", R, m)
    deep = d <= 0
    if deep.any():  # the deepest points
        t = np.where(deep, half_length(a) * np.sign(np.einsum("ki,ki->k", m, axis)), t)
        x = np.where(deep[:, None], -np.sign(m) * edges, x)
    p_a = A[:, :3, 3] + t[:, None] * u + ball(a) * n
    return d - ball(a), n, p_a, B[:, :3, 3] + np.einsum("kij,kj->ki", R, x)


def _beside_cylinder(a: Shape, A: Array, b: Cylinder, B: Array) -> tuple[Array, Array, Array, Array]:
    """(d, n, point of a, point of b) of a sphere or capsule and a cylinder, by other ways where they meet."""
    R, way, u = B[:, :3, :3], B[:, :3, 3] - A[:, :3, 3], A[:, :3, 2]
    c, axis = (np.einsum("kji,kj->ki", R, x) for x in (way, u))
    m, t, apart = beside_cylinder(c, axis, half_length(a), b.radius, b.length / 2)
    n = np.einsum("kij,kj->ki", R, m)
    flat = half_length(a) * np.abs(np.einsum("ki,ki->k", m, axis))
    d = np.einsum("ki,ki->k", m, c) - b.radius * np.hypot(m[:, 0], m[:, 1]) - b.length / 2 * np.abs(m[:, 2]) - flat
    x = A[:, :3, 3] + t[:, None] * u
    out = d - ball(a), n, x + ball(a) * n, x + d[:, None] * n
    meet = np.flatnonzero(np.logical_not(apart))
    if meet.size:
        for old, new in zip(out, _maximised(a, A[meet], b, B[meet]), strict=True):
            old[meet] = new
    return out


def _starts(problem: _Problem) -> Array:
    """(k, _BEST or _OF_POLYTOPES, 3) directions from which the depth of penetration is looked for: of the axes of both
    shapes, their products, and others all around, those that are the shallowest way out."""
    RA, RB = problem.A[:, :3, :3], problem.B[:, :3, :3]
    axes = [R[:, :, k] for R in (RA, RB) for k in range(3)]
    axes += [np.cross(RA[:, :, i], RB[:, :, j]) for i in range(3) for j in range(3)]
    axes += [np.broadcast_to(x, problem.c.shape) for x in np.random.default_rng(0).normal(size=(_AROUND, 3))]
    n = np.array([_unit(sign * x) for x in axes for sign in (1, -1)])
    value = np.array([problem.value(x) for x in n])
    most = _OF_POLYTOPES if any(isinstance(x, Polytope) for x in (problem.a, problem.b)) else _BEST
    best = np.argsort(-value, axis=0, kind="stable")[:most]
    return np.swapaxes(n[best, np.arange(len(problem.c))], 0, 1)


@dataclass
class _Term:
    """A term of a support function: |M n|, or max of M n; M (k, rows, 3) in the common frame."""

    size: float
    M: Array
    corners: bool
    owner: int  # 0 of a, 1 of b

    def at(self, n: Array, s: float, dual: Array | None) -> tuple[Array, Array, Any]:
        """(gradient (k, 3), Hessian (k, 3, 3), function of a step that gives the multipliers), smoothed by s [m]."""
        y = np.einsum("kgi,ki->kg", self.M, n)
        if self.corners:
            return self._corners(y, s, dual)
        size = np.sqrt((y * y).sum(axis=1, keepdims=True) + s * s)
        unit = y / size
        L = unit if dual is None else dual
        inner = np.eye(y.shape[1]) - 0.5 * (L[:, :, None] * unit[:, None] + unit[:, :, None] * L[:, None])
        H = np.swapaxes(self.M, 1, 2) @ inner @ self.M / size[:, :, None]

        def renewed(z: Array) -> Array:
            dy = np.einsum("kgi,ki->kg", self.M, z)
            new = (y + dy - L * (unit * dy).sum(axis=1, keepdims=True)) / size
            return new / np.maximum(1, np.linalg.norm(new, axis=1, keepdims=True))

        return np.einsum("kgi,kg->ki", self.M, unit), H, renewed

    def _corners(self, y: Array, s: float, dual: Array | None) -> tuple[Array, Array, Any]:
        t = s / y.shape[1]
        below, over = y.max(axis=1, keepdims=True) - y, t
        for _ in range(_ROOT):
            shares = t / (over + below)
            total = shares.sum(axis=1, keepdims=True)
            over = over + total * (total - 1) * t / (shares * shares).sum(axis=1, keepdims=True)
        slack = over + below
        shares = t / slack
        L = shares if dual is None else dual
        weights = L / slack
        total = weights.sum(axis=1)
        middle = np.einsum("kg,kgi->ki", weights, self.M) / total[:, None]
        V = self.M - middle[:, None]
        H = np.einsum("kg,kgi,kgj->kij", weights, V, V)

        def renewed(z: Array) -> Array:
            return np.maximum(shares + weights * np.einsum("kgi,ki->kg", V, z), _KEPT * L)

        return np.einsum("kg,kgi->ki", shares, self.M), H, renewed


class _Problem:
    """Two shapes at k poses each: n . c minus the support functions about their centres."""

    def __init__(self, a: Shape, A: Array, b: Shape, B: Array) -> None:
        self.a, self.A, self.b, self.B = a, A, b, B
        self.centre_a, terms_a = _terms(a, A, 1.0, 0)
        self.centre_b, terms_b = _terms(b, B, -1.0, 1)
        self.c, self.terms = self.centre_b - self.centre_a, [*terms_a, *terms_b]
        self.size = max((x.size for x in self.terms), default=1.0)

    def value(self, n: Array) -> Array:
        """(k,) lower bounds of the distances, exact support functions at n (k, 3)."""
        low, high = support(self.b, self.B, -n)[1], support(self.a, self.A, n)[1]
        return np.einsum("ki,ki->k", n, low - high)

    def maximised(self, n: Array, first: float = 1.0, steps: int = _STEPS) -> tuple[Array, tuple[Array, Array]]:
        """n (k, 3) of a maximum, and the points of the shapes without their balls; smoothing starts at `first`."""
        duals: list[Array | None] = [None] * len(self.terms)
        for k in range(steps + 1):
            share = min(1.0, k / (steps - _MORE))
            s = first * (_LAST / first) ** share
            found = [x.at(n, s * x.size, dual) for x, dual in zip(self.terms, duals, strict=True)]
            points = self.centre_a + self._sum(found, 0), self.centre_b - self._sum(found, 1)
            if k == steps or not self.terms:
                return n, points
            g = points[1] - points[0]
            z = _step(sum((H for _, H, _ in found), np.zeros((len(n), 3, 3))), g, n)
            duals = [renewed(z) for _, _, renewed in found]
            n = n + z
            n = n / np.linalg.norm(n, axis=1, keepdims=True)
        raise AssertionError

    def _sum(self, found: Any, owner: int) -> Array:
        """(k, 3) gradients of the terms of one shape together."""
        own = [point for (point, _, _), x in zip(found, self.terms, strict=True) if x.owner == owner]
        return sum(own, np.zeros_like(self.c))


def _step(K: Array, g: Array, n: Array) -> Array:
    """Newton step across n, as smooth_support has it, in the plane across n."""
    helper = np.where(np.abs(n[:, :1]) < 0.6, [[1.0, 0, 0]], [[0, 1.0, 0]])
    e1 = np.cross(n, helper)
    e1 = e1 / np.linalg.norm(e1, axis=1, keepdims=True)
    E = np.stack([e1, np.cross(n, e1)], axis=2)  # (k, 3, 2)
    k = np.swapaxes(E, 1, 2) @ K @ E
    gap = np.einsum("ki,ki->k", n, g)
    half, b = (k[:, 0, 0] + k[:, 1, 1]) / 2, k[:, 0, 1]
    least = half - np.hypot((k[:, 0, 0] - k[:, 1, 1]) / 2, b)
    gap = np.maximum(gap, _LEAST - _SHARE * np.maximum(least, 0))
    a, c = k[:, 0, 0] + gap, k[:, 1, 1] + gap
    r = np.einsum("kia,ki->ka", E, g)
    det = np.maximum(a * c - b * b, 1e-18 * half * half + _LEAST**2)
    z = np.stack([c * r[:, 0] - b * r[:, 1], a * r[:, 1] - b * r[:, 0]], axis=1) / det[:, None]
    z = np.einsum("kia,ka->ki", E, z)
    return z / np.maximum(1, np.linalg.norm(z, axis=1, keepdims=True))


def _terms(shape: Shape, poses: Array, sign: float, owner: int) -> tuple[Array, list[_Term]]:
    """(centres (k, 3), terms of h(sign n) about them)."""
    R, c = poses[:, :3, :3], poses[:, :3, 3]
    if isinstance(shape, Polytope):
        points = shape.points
        middle = (points.max(axis=0) + points.min(axis=0)) / 2
        V = points - middle
        size = float(np.linalg.norm(V, axis=1).max())
        M = sign * np.einsum("kij,gj->kgi", R, V)
        return c + R @ middle, [_Term(size, M, True, owner)] if size else []
    axes: list[dict[int, float]] = []
    if isinstance(shape, Capsule):
        axes = [{2: shape.length / 2}]
    elif isinstance(shape, Box):
        axes = [{0: shape.x / 2}, {1: shape.y / 2}, {2: shape.z / 2}]
    elif isinstance(shape, Cylinder):
        axes = [{0: shape.radius, 1: shape.radius}, {2: shape.length / 2}]
    elif isinstance(shape, Ellipsoid):
        axes = [{0: shape.a, 1: shape.b, 2: shape.c}]
    terms = []
    for scales in axes:
        size = max(scales.values())
        if size:
            M = np.stack([sign * x * R[:, :, k] for k, x in scales.items() if x], axis=1)
            terms.append(_Term(size, M, False, owner))
    return np.array(c), terms
