"""Collision shapes as a robot's description gives them: plain records, on links."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..lie.so3 import axis_frame
from ..numbers import are_sane, as_floats, shortened
from ..types import Array, Numbers

SIZES = {  # kind: names of its sizes
    "sphere": ("radius",),
    "box": ("x", "y", "z"),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("a", "b", "c"),
    "mesh": ("scale x", "scale y", "scale z"),
}
LEFT_OUT = "this collision shape is left out"  # what the report says of those that cannot be used


@dataclass(frozen=True)
class Collision:
    """A shape of a link, that collides or is only seen.

    name: as in the file, "" without one. kind: a key of SIZES; sizes [m]: in its order, full edges of a box, lengths
    of cylinders and capsules along z and without caps, semi-axes of an ellipsoid; scale [-] of a mesh, which may
    mirror. pose: first three rows of the homogeneous matrix of the shape in the link's frame. mesh: path or address,
    as written.
    """

    name: str
    link: str
    kind: str
    sizes: tuple[float, ...]
    pose: tuple[tuple[float, ...], ...]
    mesh: str = ""

    @property
    def matrix(self) -> Array:
        """Homogeneous matrix (4, 4) of the shape in the link's frame."""
        return np.vstack([np.array(self.pose), [0.0, 0.0, 0.0, 1.0]])


def pose_rows(R: Array, p: Array) -> tuple[tuple[float, ...], ...]:
    """The first three rows of a homogeneous matrix, from a rotation (3, 3) and a position (3,)."""
    return tuple(tuple(row) for row in np.column_stack([R, p]).tolist())


def capsule_between(start: Numbers, end: Numbers, radius: float) -> dict[str, Any]:
    """Arguments of RobotBuilder.add_collision for a capsule about the segment between two points (3,) [m]."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(b - a))
    R = np.array(axis_frame((b - a) / length, 0.0), float) if length else np.eye(3)
    return {"shape": ("capsule", radius, length), "xyz": (a + b) / 2, "rotation": R}


def checked_shape(where: str, shape: Any) -> tuple[str, tuple[float, ...], str]:
    """(kind, sizes, mesh) of a shape of od.shapes, or of a kind with its sizes, or of ("mesh", file) with or without
    scales. Raises ShapeError, which `where` begins, for anything else."""
    kind, values, mesh = None, [], ""
    if is_dataclass(shape) and not isinstance(shape, type):
        kind, values = type(shape).__name__.lower(), [getattr(shape, f.name) for f in fields(shape)]
    elif isinstance(shape, (tuple, list)) and shape and isinstance(shape[0], str):
        kind, values = shape[0], list(shape[1:])
    if kind == "mesh" and values and isinstance(values[0], str):
        mesh, values = values[0], values[1:] or [1.0, 1.0, 1.0]
    known = SIZES.get(kind or "", ())
    if len(values) != len(known) or not known or bool(mesh) != (kind == "mesh"):
        listed = ", ".join(f"({', '.join((k, *names))})" for k, names in SIZES.items() if k != "mesh")
        raise ShapeError(f"{where} is {shortened(shape)}, expected one of {listed}, or (mesh, file)")
    sizes = as_floats(where, values).reshape(-1)
    if sizes.size != len(known) or not are_sane(sizes) or (kind != "mesh" and sizes.min() < 0):
        raise ShapeError(f"{where} is {shortened(shape)}, expected finite lengths [m] of at least 0")
    return str(kind), tuple(sizes.tolist()), mesh
