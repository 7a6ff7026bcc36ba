"""What closes a loop: joints between two frames of a tree, and coordinates given as functions of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, UnknownName
from ..types import Array
from .read_only import ReadOnlyArrays
from .robot import Joint

KINDS: dict[str, tuple[str, ...]] = {  # directions in which the two frames of a loop cannot move apart
    "revolute": ("x", "y", "z", "rx", "ry"),  # about its axis z
    "position": ("x", "y", "z"),
    "weld": ("x", "y", "z", "rx", "ry", "rz"),
    "planar": ("z", "rx", "ry"),  # in the plane of x and y
    "cylindrical": ("x", "y", "rx", "ry"),
    "prismatic": ("x", "y", "rx", "ry", "rz"),
}
DIRECTIONS = KINDS["weld"]
_ONE_BY_ONE = ("revolute", "continuous", "prismatic", "helical", "cylindrical", "universal", "transform")


@dataclass(frozen=True, eq=False)
class Loop(ReadOnlyArrays):
    """A joint that closes a loop: frame a of one body and frame b of another cannot move apart in `directions`.

    Frames are given in the bodies (0 is the ground): rotation (3, 3), translation (3,) [m]. Directions are those of
    frame a: "x", "y", "z" of its origins, "rx", "ry", "rz" of turns about its axes.
    """

    name: str
    kind: str
    directions: tuple[str, ...]
    links: tuple[str, str]
    bodies: tuple[int, int]
    rotation_a: Array
    translation_a: Array
    rotation_b: Array
    translation_b: Array
    independent: tuple[str, ...] = ()  # joints that its author wants to be independent


@dataclass(frozen=True, eq=False)
class Coupling:
    """The coordinate of `joint` is function(coordinates of `of`, one below the other): a casadi.Function."""

    joint: str
    of: tuple[str, ...]
    function: ca.Function

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"coupling of {self.joint}"


def directions_of(where: str, kind: Any) -> tuple[str, ...]:
    """Directions that a kind of loop holds; a tuple of directions is a kind, too."""
    if isinstance(kind, str):
        if kind not in KINDS:
            raise UnknownName(f"{where}: kind", kind, KINDS)
        return KINDS[kind]
    try:
        found = tuple(kind)
    except TypeError:
        found = ()
    if not found or any(x not in DIRECTIONS for x in found) or len(set(found)) < len(found):
        raise ModelError(where, [f"kind is {kind!r}, expected one of {', '.join(KINDS)} or some of {DIRECTIONS}"])
    return tuple(x for x in DIRECTIONS if x in found)


def coupling(where: str, joint: str, of: Any, function: Any) -> Coupling:
    """Coupling from a casadi.Function, or from a callable of a column."""
    names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, (tuple, list)) else ()
    if not names or not all(isinstance(n, str) for n in names):
        raise ModelError(where, [f"coupling of {joint!r}: of is {of!r}, expected names of joints"])
    x = ca.SX.sym("x", len(names))
    try:
        value = ca.SX(function(x))
    except Exception as error:
        raise ModelError(
            where, [f"coupling of {joint!r}: function(x) with {len(names)} symbols fails: {error}"]
        ) from None
    if value.numel() != 1 or joint in names or len(set(names)) < len(names):
        problem = f"coupling of {joint!r}: function of {names} gives shape {value.shape}; expected one number of others"
        raise ModelError(where, [problem])
    foreign = [s.name() for s in ca.symvar(value) if s.name() not in {y.name() for y in ca.symvar(x)}]
    if foreign:
        raise ModelError(where, [f"coupling of {joint!r}: function(x) has other symbols: {', '.join(foreign)}"])
    made = ca.Function("coupling", [x], [value], ["x"], ["q"])
    if not np.isfinite([float(made(np.full(len(names), at))) for at in (0.0, 0.1)]).any():
        raise ModelError(where, [f"coupling of {joint!r}: function(x) is not finite at 0, nor at 0.1"])
    return Coupling(joint, names, made)


def may_depend(joint: Joint) -> bool:
    """Whether the coordinates of a joint may be dependent ones: their rates are its velocities."""
    return joint.kind in _ONE_BY_ONE
