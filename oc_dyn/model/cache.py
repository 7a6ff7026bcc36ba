"""What is made of a robot once, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def cached(robot: Any, key: tuple[Any, ...], make: Callable[[], T]) -> T:
    """Value of make(), kept as long as the robot lives; what it makes may refer to the robot.

    The robot itself needs no place in the key: it does not change, and each one has memory of its own. The key holds
    all else that make() reads, as values or as objects that do not change either.
    """
    if key not in robot._made:
        robot._made[key] = make()
    return robot._made[key]
