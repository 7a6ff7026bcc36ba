"""Where loops of an elastic robot are open: along a reference, which is refused, and on the way of a simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.loops import LoopRobot
from ..planning.followers import check_closing, first_open, open_at
from ..types import Array
from .model import ElasticRobot
from .reference import Reference

_LEAST = 201  # looks at a reference
_STEP, _MOST = 1e-3, 100_000  # [s] between looks at a simulation; looks


def check_reference(where: str, elastic: ElasticRobot, reference: Reference, times: Array) -> None:
    """ModelError, naming loops and time, where those of the robot cannot follow a Reference at times (K,) [s], or at
    others between them."""
    if isinstance(elastic.links, LoopRobot):
        times = np.union1d(times, np.linspace(times[0], times[-1], _LEAST))
        check_closing(where, elastic.links, times, reference.at(times)["q"].T)


def fault_of(loop: Any) -> Callable[[float, Array], str] | None:
    """Callable (t, x) -> what to say of loops that are open at the state x of a ClosedLoop, "" where none is; None for
    robots without loops."""
    robot, q = loop.elastic.links, loop.plant.parts["q"]
    if not isinstance(robot, LoopRobot):
        return None

    def told(t: float, x: Array) -> str:
        found = open_at(robot, x[q][None])
        return "" if found is None else found[1].format(f"t = {t:.6g} s")

    return told


def up_to_open(loop: Any, times: Array, states: Array, failure: str | None) -> str | None:
    """The failure of a ClosedLoop's integration, or what is to be said of loops that open on the way; states (size, K)
    from then on become NaN."""
    known = np.flatnonzero(np.isfinite(states).all(axis=0))
    found = first_open(loop.elastic.links, states[loop.plant.parts["q"]][:, known].T)
    if found is None:
        return failure
    k = int(known[found[0]])
    states[:, max(k, 1) :] = np.nan
    return found[1].format(f"t = {times[k]:.6g} s")


def looks(loop: Any, times: Array) -> tuple[Array, slice]:
    """(times [s] at which states are to be known, which of them are rows): of a robot with loops about a millisecond
    apart, for loops may be open between rows."""
    if not isinstance(loop.elastic.links, LoopRobot):
        return times, slice(None)
    every = int(np.clip(np.ceil(np.diff(times).max() / _STEP), 1, max(1, _MOST // len(times))))
    places = np.arange((len(times) - 1) * every + 1) / every
    return np.interp(places, np.arange(len(times)), times), slice(None, None, every)
