"""Convex shapes: od.shapes.Sphere, Capsule, Box, Cylinder, Ellipsoid, HalfSpace and Polytope.

Shapes are values: equal ones are equal, they can be keys, and they travel to other processes. Lengths are in m, in the
frame of the shape, whose origin is the centre where nothing else is said. A length may be 0: a point is a sphere of
radius 0, a plate a box without thickness.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import ShapeError
from ..numbers import are_sane, as_floats
from ..types import Array, Numbers


@dataclass(frozen=True)
class Shape:
    """What all shapes have in common. bounded: whether it ends in every direction."""

    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field in fields(self):
            self._keep(field.name, _length(f"{type(self).__name__}: {field.name}", getattr(self, field.name)))

    def _keep(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def radius_about_origin(self) -> float:
        """Radius [m] of the smallest ball about the origin of its frame that contains the shape; infinite for a
        half-space."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sphere(Shape):
    """Ball of a radius [m]. Raises ShapeError for what is no finite length of at least 0, as all shapes do."""

    radius: float

    @property
    def radius_about_origin(self) -> float:
        """Its radius [m]."""
        return self.radius


@dataclass(frozen=True)
class Capsule(Shape):
    """All points within `radius` [m] of a segment along z; length [m]: of the segment, without the caps."""

    radius: float
    length: float

    @property
    def radius_about_origin(self) -> float:
        """Half the length, and the radius [m]."""
        return self.radius + self.length / 2


@dataclass(frozen=True)
class Box(Shape):
    """Box of full edges x, y, z [m] along the axes of its frame."""

    x: float
    y: float
    z: float

    @property
    def radius_about_origin(self) -> float:
        """Half its diagonal [m]."""
        return float(np.linalg.norm([self.x, self.y, self.z])) / 2


@dataclass(frozen=True)
class Cylinder(Shape):
    """Cylinder of a radius [m] and a full length [m] along z."""

    radius: float
    length: float

    @property
    def radius_about_origin(self) -> float:
        """Distance [m] of its rims from the origin."""
        return float(np.hypot(self.radius, self.length / 2))


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """Ellipsoid of semi-axes a, b, c [m] along x, y, z."""

    a: float
    b: float
    c: float

    @property
    def radius_about_origin(self) -> float:
        """Its longest semi-axis [m]."""
        return max(self.a, self.b, self.c)


@dataclass(frozen=True)
class HalfSpace(Shape):
    """All x with normal . x <= offset: ground is HalfSpace((0, 0, 1), 0).

    normal (3,) of any length but 0, which is kept with length 1, and the offset [m] divided by that length as well.
    Raises ShapeError for a normal that is zero or no three finite numbers.
    """

    normal: tuple[float, float, float]
    offset: float = 0.0
    bounded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        normal = as_floats("HalfSpace: normal", self.normal).ravel()
        size = float(np.linalg.norm(normal)) if normal.shape == (3,) and are_sane(normal) else 0.0
        size = 1.0 if abs(size - 1.0) < 1e-15 else size  # what was divided once stays as it is
        if not size > 1e-30:
            raise ShapeError(f"HalfSpace: normal is {normal.tolist()}, expected three finite numbers, not all zero")
        offset = as_floats("HalfSpace: offset", self.offset)
        if offset.size != 1 or not are_sane(offset):
            raise ShapeError(f"HalfSpace: offset is {offset.tolist()}, expected a finite number")
        self._keep("normal", tuple((normal / size).tolist()))
        self._keep("offset", float(offset.ravel()[0]) / size)

    @property
    def radius_about_origin(self) -> float:
        """Infinite."""
        return float("inf")


@dataclass(frozen=True)
class Polytope(Shape):
    """Convex hull of `vertices` (n, 3) [m], one or more; those inside the hull do no harm but cost time.

    Raises ShapeError for other shapes and for numbers that are not finite.
    """

    vertices: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        vertices = as_floats("Polytope: vertices", self.vertices)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or not len(vertices) or not are_sane(vertices):
            raise ShapeError(f"Polytope: vertices of shape {vertices.shape}, expected finite numbers of shape (n, 3)")
        self._keep("vertices", tuple(dict.fromkeys(tuple(x) for x in vertices.tolist())))

    @property
    def points(self) -> Array:
        """Its vertices (n, 3) [m]."""
        return np.array(self.vertices)

    @property
    def radius_about_origin(self) -> float:
        """Distance [m] of the farthest vertex from the origin of its frame."""
        return float(np.linalg.norm(self.points, axis=1).max())


KINDS: dict[str, type[Shape]] = {
    kind.__name__.lower(): kind for kind in (Sphere, Capsule, Box, Cylinder, Ellipsoid, HalfSpace, Polytope)
}

ROUND = (Sphere, Capsule)  # all points within a radius of a point or a segment


def half_length(shape: Shape) -> float:
    """Half the length [m] of a capsule's segment; 0 for other shapes."""
    return shape.length / 2 if isinstance(shape, Capsule) else 0.0


def ball(shape: Shape) -> float:
    """Radius [m] of the ball that sweeps a smaller shape: 0 but for spheres and capsules."""
    return shape.radius if isinstance(shape, (Sphere, Capsule)) else 0.0


def is_ball(shape: Shape) -> bool:
    """Whether every turn about its centre leaves it as it is."""
    return isinstance(shape, Sphere) or (isinstance(shape, Ellipsoid) and shape.a == shape.b == shape.c)


def is_turned(shape: Shape) -> bool:
    """Whether turns about its z axis leave it as it is."""
    same = isinstance(shape, Ellipsoid) and shape.a == shape.b
    return is_ball(shape) or same or isinstance(shape, (Capsule, Cylinder))


def _length(what: str, value: Numbers) -> float:
    x = as_floats(what, value)
    if x.size != 1 or not are_sane(x) or not x.ravel()[0] >= 0:
        raise ShapeError(f"{what} is {x.tolist()}, expected a finite length [m] of at least 0")
    return float(x.ravel()[0])
