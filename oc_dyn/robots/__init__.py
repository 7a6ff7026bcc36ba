"""Robots that need no file."""

import re
from collections.abc import Callable

from ..errors import UnknownName
from ..model.robot import Robot
from .aerial_manipulator import aerial_manipulator, propeller_poses, propellers
from .chains import chain, double_pendulum, planar_2r, planar_arm, tree
from .fr3 import fr3, fr3_limits, fr3_velocity_limits
from .humanoid import humanoid
from .linkages import (
    differential_ankle,
    four_bar,
    gough_stewart,
    knee_linkage_leg,
    planar_3rrr,
    six_bar,
    slider_crank,
)
from .panda import panda, panda_limits
from .quadruped import quadruped

__all__ = [
    "aerial_manipulator",
    "by_name",
    "chain",
    "differential_ankle",
    "double_pendulum",
    "four_bar",
    "fr3",
    "fr3_limits",
    "fr3_velocity_limits",
    "gough_stewart",
    "humanoid",
    "knee_linkage_leg",
    "names",
    "panda",
    "panda_limits",
    "planar_2r",
    "planar_3rrr",
    "planar_arm",
    "propeller_poses",
    "propellers",
    "quadruped",
    "six_bar",
    "slider_crank",
    "tree",
]

_BUILT_IN = panda, fr3, aerial_manipulator, planar_2r, double_pendulum, humanoid, quadruped, chain, tree
_ROBOTS: dict[str, Callable[..., Robot]] = {f.__name__: f for f in _BUILT_IN}
_SIZED = ("chain", "tree")


def names() -> list[str]:
    """Names that by_name takes; chain and tree also with a number of joints, as in "chain:12"."""
    return list(_ROBOTS)


def by_name(name: str) -> Robot:
    """The embedded robot of this name, such as "panda" or "tree:20". UnknownName lists what there is."""
    plain, colon, size = str(name).partition(":")
    if plain not in _ROBOTS or (colon and (plain not in _SIZED or not re.fullmatch("0*[1-9][0-9]{0,5}", size))):
        raise UnknownName("embedded robot", name, names())
    return _ROBOTS[plain](int(size)) if colon else _ROBOTS[plain]()
