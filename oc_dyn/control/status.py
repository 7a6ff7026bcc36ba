"""How a step of a controller ended; the C header has the same numbers."""

from enum import IntEnum


class Status(IntEnum):
    """0 is ok; the outputs are within their bounds whatever it is.

    OK: solved. ITERATION_LIMIT: the iterations ended before the constraints were met; the outputs are those found so
    far. BAD_MEASUREMENT: a number that was measured is NaN, infinite or beyond 1e12; the outputs are those of
    on_failure. FALLBACK: it could not be solved, or the memory was broken; the outputs are those of on_failure.
    INFEASIBLE_RELAXED: limits cannot all be kept from what was measured; the outputs exceed them as little as may be.
    BAD_PARAMETERS: in C alone, a bound that an instance was given is NaN, or a pair of them leaves nothing between.
    """

    OK = 0
    ITERATION_LIMIT = 1
    BAD_MEASUREMENT = 2
    FALLBACK = 3
    INFEASIBLE_RELAXED = 4
    BAD_PARAMETERS = 5
