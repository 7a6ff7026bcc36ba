"""Motions along a path in time with what moves: when to wait, and when to pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import SolveError
from ..interrupts import TIME_LIMIT
from ..scene import Scene
from ..types import Array
from .among import MORE, NEAR, blocked
from .moving_obstacles import passage, smooth_law
from .obstacles import ROUNDING, SPARE, Obstacles, along, asked_more, course, reduced
from .path_guess import slow_enough
from .path_motion import PathMotion
from .path_task import PathTask

_SHARES = ((0.0, 0.5), (0.0, 0.25, 0.5, 0.75), tuple(np.arange(8) / 8))
_ROUNDS = 8
_SPREAD = 0.05  # share of the shortest time over which the guess changes its speed
_DEEP = 1e-3  # [m] that a pair may come too near between places until there are more of them


@dataclass(frozen=True, eq=False)
class KeptOff:
    """Pairs of `near` that keep `least` (P,) [m] at shares of the intervals; guess, function
    (places (K,), count) -> (count, K), times [s] and derivatives of the places, is what the search begins from."""

    near: Scene
    least: Array
    shares: tuple[float, ...]
    guess: Callable[[Array, int], Array]


def in_time(task: PathTask, around: Obstacles, fastest: Callable[[KeptOff | None], PathMotion]) -> PathMotion:
    """The motion by `fastest` that keeps off what moves; first it is sought without. Raises SolveError that names the
    pairs in the way."""
    motion = fastest(None)
    seen = along(around, motion)
    if not (seen.short & around.timed).any():
        return motion
    shortest = slow_enough(task)[0]
    found = passage(around, lambda s: task.on.at(s, 1)[0], 0.5 * shortest, back=False)
    if found is None:
        raise _blocked(around, seen, "no time was found at which the path is free", "blocked", motion)
    q, t = course(motion)
    near = (around.near(q, NEAR, t) | seen.short) & around.timed
    start = around.missing(task.on.at(np.zeros(1), 1)[0])[0]
    spare, shares = np.clip(-start - 2 * ROUNDING, 0.0, SPARE), 0
    begun = _smooth(*found, _SPREAD * shortest)
    for _ in range(_ROUNDS):
        off = KeptOff(reduced(around.scene, near), (around.wanted + spare)[near], _SHARES[shares], begun)
        try:
            motion = fastest(off)
        except SolveError as error:
            if error.status == TIME_LIMIT:
                raise
            raise _blocked(around, seen, f"the last search: {error}", error.status, error.trajectory) from error
        seen = along(around, motion)
        short = seen.short & around.timed
        if not short.any():
            return motion
        q, t = course(motion)
        if shares < len(_SHARES) - 1 and seen.missing[short].max() > _DEEP:
            shares += 1
        else:
            spare = asked_more(spare, short & near, seen)
        near = near | ((seen.short | around.near(q, MORE, t)) & around.timed)
    why = f"after {_ROUNDS} rounds the clearance is not kept; use more nodes"
    raise _blocked(around, seen, why, "clearance", motion)


def _smooth(t: Array, s: Array, over: float) -> Callable[[Array, int], Array]:
    """Function (places (K,), count) -> (count, K): the times at which they are passed, and derivatives by time there,
    of a law that rises everywhere a little."""
    law = smooth_law(t, s, over)
    fine = np.linspace(t[0], t[-1] + 4 * over, 2001)
    rising = law(fine, 1)[0] + np.linspace(0.0, 1e-6, len(fine))

    def at(places: Array, count: int) -> Array:
        times = np.interp(rising[0] + places * (rising[-1] - rising[0]), rising, fine)
        return np.concatenate([times[None], law(times, count)[1:]])

    return at


def _blocked(around: Obstacles, seen: Any, why: str, status: Any, motion: Any) -> SolveError:
    missing = np.where(around.timed, seen.missing, -np.inf)
    text = blocked(around, replace(seen, missing=missing))
    return SolveError(f"plan_along_path: in the way of what moves: {text}; {why}", status, trajectory=motion)
