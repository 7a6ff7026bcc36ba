"""A closed loop of a controller and a plant, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
