"""Records whose arrays cannot be written to."""

from __future__ import annotations

import numpy as np


class ReadOnlyArrays:
    """Base of the frozen records of this package: their numpy arrays cannot be written to either."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                value = np.array(value, float)
                value.flags.writeable = False
                object.__setattr__(self, name, value)
