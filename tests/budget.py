"""How many cases a property is tried on: a fixed few by default, more and others where OC_DYN_FUZZ says how many times
as many."""

import os

from hypothesis import HealthCheck, settings

TIMES = float(os.environ.get("OC_DYN_FUZZ", "0"))


def examples(n):
    """Decorator: half of n cases, the same ones every time; n times OC_DYN_FUZZ where that is set."""
    return settings(
        max_examples=max(1, round(n * (TIMES or 0.5))),
        derandomize=not TIMES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
