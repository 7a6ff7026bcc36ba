"""What keeps integrated torques from running away while a motor is at its limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import Array


def held_back(memory: Array, integrators: Any, limit: Any) -> Array:
    """The memory with its integrated torques within the limits of their motors, and no rate that leads beyond them.

    integrators: (entry, entry of its rate, motor) each; limit: (motors,) [Nm], None for none.
    """
    if limit is None or not integrators:
        return memory
    out = np.array(memory, float)
    for k, rate, motor in integrators:
        most = float(limit[motor])
        for sign in (1, -1):
            if sign * out[k] >= most:
                out[k] = sign * most
                out[rate] = sign * min(0.0, sign * out[rate])
    return out
