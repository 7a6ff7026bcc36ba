"""Obstacles whose poses are Functions of the time: what stands still of a scene, the scene from a later time on, and
when to pass along a way.

Source: path and velocity one after the other, Kant and Zucker 1986, Toward Efficient Trajectory Planning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..interrupts import expired
from ..model.cache import cached
from ..types import Array
from .obstacles import Obstacles, reduced
from .quick_looks import QuickLooks

_PLACES = 48  # of a way
_LONGEST = 32  # shortest times that a motion along a way may last
_SPARE = 0.03  # [m] that is kept besides where that leaves a way through


def still_part(around: Obstacles) -> Obstacles | None:
    """The pairs that do not depend on the time; None where there are none. Names of shapes are others."""
    still = ~around.timed
    if still.all():
        return around
    return Obstacles(around.robot, reduced(around.scene, still), around.clearance) if still.any() else None


def frozen(around: Obstacles, t: float) -> Obstacles:
    """With what moves where it is at a time."""
    scene = around.scene
    for x in scene.items:
        if isinstance(x.pose, ca.Function):
            scene = scene.released(x.name, np.array(x.pose(t), float))
    return Obstacles(around.robot, scene, around.clearance)


def from_then_on(around: Obstacles, seconds: float) -> Obstacles:
    """As seen by a clock that starts so many seconds later."""
    if not (around.scene.timed and seconds):
        return around
    items = tuple(
        replace(x, pose=_later(around, x.pose, seconds)) if isinstance(x.pose, ca.Function) else x
        for x in around.scene.items
    )
    return Obstacles(around.robot, replace(around.scene, items=items), around.clearance)


def _later(around: Obstacles, pose: ca.Function, seconds: float) -> ca.Function:
    def made() -> ca.Function:
        t: Any = ca.SX.sym("t") if pose.is_a("SXFunction") else ca.MX.sym("t")
        return ca.Function(pose.name(), [t], [pose(t + seconds)])

    return cached(around.robot, ("from_then_on", pose.serialize(), seconds), made)


def passage(
    around: Obstacles, way: Callable[[Array], Array], shortest: float, back: bool = True,
) -> tuple[Array, Array] | None:  # fmt: skip
    """(times t (K,) [s], places s (K,)) of the soonest passage along a way, s from 0 to 1 -> (K, nq), that keeps off
    what moves: no faster than a motion that takes `shortest` [s] at an even speed; waits, and ways `back`, as soon as
    can be. None where there is none. Cells of places and times are searched, step by step.
    """
    s, dt = np.linspace(0, 1, _PLACES), shortest / (_PLACES - 1)
    q = way(s)
    best: Any = None
    for spare in (0.0, _SPARE):
        moving = Obstacles(around.robot, reduced(around.scene, around.timed), around.clearance + spare)
        found = _soonest(QuickLooks(moving), q, dt, back)
        if found is None:
            break
        best = np.arange(float(len(found))) * dt, s[found]
    return best


def _soonest(looks: QuickLooks, q: Array, dt: float, back: bool) -> list[int] | None:
    """Places, one a step of time, of the soonest way from the first of q (K, nq) to the last through free cells, by one
    place a step at most."""
    count, rows = len(q), [np.arange(len(q)) == 0]
    q = np.tile(q, (count, 1))
    while not rows[-1][-1]:
        k = len(rows)
        if k > _LONGEST * count or not rows[-1].any() or expired():
            return None
        t = np.repeat((k + np.arange(count)) * dt, count)
        for free in looks.free(q, t).reshape(count, count):
            near = rows[-1].copy()
            near[1:] |= rows[-1][:-1]
            near[:-1] |= rows[-1][1:] & back
            rows.append(near & free)
            if rows[-1][-1]:
                break
    out = [count - 1]
    for before in rows[-2::-1]:
        i = out[-1]
        out.append(next(j for j in (i - 1, i, i + 1)[: 2 + back] if 0 <= j < count and before[j]))
    return out[::-1]


def smooth_law(t: Array, s: Array, over: float) -> Callable[[Array, int], Array]:
    """Function (at (K,), count) -> (count, K) of derivatives by time of the places along a way, from places s (K,) at
    equal times t (K,), changes of speed spread over some seconds."""
    fine = np.linspace(t[0] - 4 * over, t[-1] + 4 * over, 2001)
    step = fine[1] - fine[0]
    half = min(int(np.ceil(4 * over / step)), 1000)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) * step / over) ** 2)
    rough = np.pad(np.interp(fine, t, s), half, mode="edge")
    smoothed = np.convolve(rough, kernel / kernel.sum(), "valid")

    def law(at: Array, count: int) -> Array:
        out = [smoothed]
        for _ in range(count - 1):
            out.append(np.gradient(out[-1], step))
        return np.array([np.interp(at, fine, x) for x in out])

    return law
