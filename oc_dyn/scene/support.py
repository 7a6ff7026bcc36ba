"""Support functions of shapes: the point that is farthest in a direction, and the radii of curvature there.

h(n) = max n . x over the shape; its gradient is the point, its Hessian the radii of curvature, a matrix with n in its
kernel. Source: Rockafellar 1970, Convex Analysis, section 13 and 23.
"""

from __future__ import annotations

import casadi as ca

from ..lie.quick import dot, quick
from .shapes import ROUND, Box, Capsule, Cylinder, Ellipsoid, Polytope, Sphere

SMALL = 1e-9  # what lengths of directions are kept above, where they are divided by


def farthest(p, n):
    """The point of a Placed shape, in the root frame, that is farthest along n (3,); one of them, if there are more.
    Of spheres and capsules the surface counts."""
    shape = p.shape
    if isinstance(shape, Sphere):
        return quick(p.c + shape.radius * n)
    m = quick(p.R.T @ n)
    return quick(p.c + p.R @ _local(shape, m) + (shape.radius * n if isinstance(shape, Capsule) else 0))


def _local(shape, m):
    if isinstance(shape, Capsule):
        return ca.vertcat(0, 0, _sign(m[2]) * (shape.length / 2))
    if isinstance(shape, Box):
        return ca.vertcat(*(_sign(m[k]) * (x / 2) for k, x in enumerate((shape.x, shape.y, shape.z))))
    if isinstance(shape, Cylinder):
        scale = shape.radius / _length(m[0] ** 2 + m[1] ** 2)
        return ca.vertcat(scale * m[0], scale * m[1], _sign(m[2]) * (shape.length / 2))
    if isinstance(shape, Ellipsoid):
        A = ca.DM([shape.a**2, shape.b**2, shape.c**2])
        return A * m / _length(ca.dot(A * m, m))
    assert isinstance(shape, Polytope)
    best, point = None, None
    for vertex in shape.vertices:
        x = ca.DM(vertex)
        h = dot(x, m)
        point = x if best is None else ca.if_else(h > best, x, point)
        best = h if best is None else ca.fmax(h, best)
    return point


def curvature(p, n):
    """Radii of curvature (3, 3) in the root frame at the point farthest along n; None where all are 0, at corners."""
    shape = p.shape
    if isinstance(shape, ROUND):
        return shape.radius * (ca.DM.eye(3) - n @ n.T)
    if isinstance(shape, (Box, Polytope)):
        return None
    m = quick(p.R.T @ n)
    if isinstance(shape, Cylinder):
        size = _length(m[0] ** 2 + m[1] ** 2)
        across = quick(p.R @ ca.vertcat(-m[1], m[0], 0)) / size
        return shape.radius / size * (across @ across.T)
    A = ca.DM([shape.a**2, shape.b**2, shape.c**2])
    h = _length(ca.dot(A * m, m))
    x = A * m / h
    return p.R @ ((ca.diag(A) - x @ x.T) / h) @ p.R.T


def _sign(x):
    return ca.if_else(x < 0, -1, 1)


def _length(square):
    return ca.sqrt(ca.fmax(square, SMALL * SMALL))
