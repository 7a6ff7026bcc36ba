"""What an estimate says against itself: values that nothing can have, torques that the model does not explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ModelWarning, warn
from ...types import Array

UNEXPLAINED = 0.2  # share of an equation's torques, left over, above which it is told
FAR = 30.0  # ratio to the robot that was given, above which a size is told: degrees for radians are 57
_POSITIVE = ("motor_damping", "motor_friction", "spring_damping", "link_damping", "link_friction", "transmission")
_SURE = 3.0  # intervals below zero: of many parameters that are zero some are by chance
_SHOWN = 4


def warn_of_doubts(eq: Any, names: Sequence[str], values: Array, half: Array, unexplained: Array) -> None:
    """ModelWarning that names what is doubtful, if anything is.

    names, values, half (p,): parameters and half widths of their intervals. unexplained (equations,): what each leaves
    of its torques, as a share, NaN where it is not used.
    """
    u = eq.unknowns
    found, sizes, start = [], _sizes(u), dict(zip(u.names, u.start, strict=True))
    for name, value, width in zip(names, values, half, strict=True):
        sure = 1.0 if name in sizes else _SURE if name.split()[0] in _POSITIVE else np.inf
        if value + sure * width < 0:
            found.append(f"{name} is {value:.3g} +- {width:.1g}, below zero")
        elif name in sizes and _far(value, width, start[name]):
            found.append(f"{name} is {value:.3g} +- {width:.1g}, of the robot given {start[name]:.3g}")
    for kind, name, share in zip(eq.kinds, eq.names, unexplained, strict=True):
        if share > UNEXPLAINED:
            found.append(f"the model leaves {100 * share:.0f} % of the torques of {kind} {name}")
    if not found:
        return
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    text = f"identify_elastic {u.elastic.name}: {'; '.join(found[:_SHOWN])}{more}. Check the recordings' units (dt in "
    text += "s, q and theta in rad or m, theta and tau_m as seen at the joints, torques in Nm or N) and signs, then "
    warn(ModelWarning(text + "what the robot given says of links, springs and friction"))


def _sizes(u: Any) -> set[str]:
    """Names of motor inertias and stiffnesses that are sizes by themselves: not factors of a law of several, nor
    inertias between motors."""
    springs = {u.names[rows[0]] for rows in u.spring_rows if len(rows) == 1}
    return springs | {u.names[row] for row, (i, k) in zip(u.rows["motor_inertia"], u.inertias, strict=True) if i == k}


def _far(value: float, width: float, start: float) -> bool:
    """Whether a size is not that of the robot given, by a factor, whatever the noise."""
    low, high = (start / FAR, start * FAR) if start > 0 else (0.0, np.inf)
    return abs(value) + width < low or abs(value) - width > high


def unexplained(count: int, halves: Sequence[Any], sizes: Sequence[Array]) -> Array:
    """(count,) rms of what equations leave over that of their torques `sizes`, of all recordings together, NaN for
    unused ones. What is left by even samples times what is left by odd ones: their encoders' noise does not count."""
    over, whole = np.zeros(count), np.zeros(count)
    for h, size in zip(halves, sizes, strict=True):
        rows, times = list(h.even.used), np.maximum(np.sum(h.even.moving, axis=1), 1.0)
        over[rows] += np.sum(h.even.left * h.odd.left, axis=1) / times
        whole[rows] += size**2
    return np.sqrt(np.maximum(over, 0.0) / np.where(whole > 0, whole, np.nan))
