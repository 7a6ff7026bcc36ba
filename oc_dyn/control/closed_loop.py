"""A closed loop of a controller and a plant, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, UnknownName
from ..numbers import as_floats, shortened
from ..types import Array


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A closed loop: states x (steps, nx), outputs u (steps, nu), objective, violation, seconds (steps,) of solving,
    status (steps,), see Status."""

    x: Array
    u: Array
    objective: Array
    violation: Array
    seconds: Array
    status: Array | None = None

    def deadlines(self, deadline: float, bins: int = 12) -> str:
        """Text: how long steps took against a deadline [s], with a histogram."""
        ms, late = 1e3 * self.seconds, int(np.sum(self.seconds > deadline))
        edges = np.geomspace(max(ms.min(), 1e-6), max(ms.max(), ms.min() * 1.01, 1e-5) * (1 + 1e-9), bins + 1)
        counts, _ = np.histogram(ms, edges)
        lines = [f"{len(ms)} steps, deadline {1e3 * deadline:g} ms, {late} late"]
        marks = zip(("median", "99 %", "longest"), np.percentile(ms, [50, 99, 100]), strict=True)
        lines.append(", ".join(f"{what} {x:.3f} ms" for what, x in marks))
        widest = max(counts.max(), 1)
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True):
            lines.append(f"{a:9.3f} to {b:9.3f} ms {n:6} {'#' * int(np.ceil(40 * n / widest))}")
        return "\n".join(lines)


def checked_loop(
    where: str, plant: Any, measured: Any, x: Any, outputs: Mapping[str, int], parameters: Mapping[str, int]
) -> tuple[ca.Function, ca.Function, Array]:
    """(plant, measured, x (nx,)) of a loop. outputs, parameters: {name: number of values}. Raises ShapeError and
    UnknownName for what does not fit them."""
    for what, f in (("plant", plant), ("measured", measured)):
        if not isinstance(f, ca.Function):
            raise ShapeError(f"{where}: {what} is {shortened(f)}, expected a casadi.Function")
    sizes = [plant.numel_in(k) for k in range(plant.n_in())]
    nx = plant.numel_out(0) if plant.n_out() else 0
    if sizes != [nx, *outputs.values()]:
        takes = ", ".join(f"{k} ({size},)" for k, size in outputs.items())
        raise ShapeError(f"{where}: plant: {plant} should take x and {takes}, and give the next x")
    if [measured.numel_in(k) for k in range(measured.n_in())] != [nx]:
        raise ShapeError(f"{where}: measured: {measured} should take x ({nx},), the state of the plant, alone")
    for k in measured.name_out():
        if k not in parameters:
            raise UnknownName("parameter of the problem that is measured", k, list(parameters))
        if measured.numel_out(k) != parameters[k]:
            got = measured.numel_out(k)
            raise ShapeError(f"{where}: measured: {k} has {got} values, expected {parameters[k]}")
    state = as_floats(f"{where}: x", x).ravel()
    if state.size != nx or not np.all(np.isfinite(state)):
        raise ShapeError(f"{where}: x is {shortened(x)}, expected {nx} finite numbers, as the plant takes")
    return plant, measured, state


def loop_of(rows: list[tuple[Any, ...]]) -> ClosedLoop | None:
    """ClosedLoop of its steps, None where there are none."""
    return ClosedLoop(*(np.array(y) for y in zip(*rows, strict=True))) if rows else None
