"""Distances of any convex shapes by smoothed support functions."""

from ..errors import ShapeError


def smooth_support(a, b):
    """Contact of two Placed shapes, and whether they changed places in it."""
    raise ShapeError(f"distances: {a.name!r}, a {a.kind}, and {b.name!r}, a {b.kind}: not yet")
