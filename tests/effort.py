"""How much work something is, in function calls of Python and C rather than in seconds: the same on every machine."""

import cProfile
import pstats
from contextlib import contextmanager


@contextmanager
def counting():
    """with counting() as calls: ...; afterwards calls() is how many the block has made."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield lambda: pstats.Stats(profile).total_calls
    finally:
        profile.disable()


def function_calls(make):
    """How many make() takes."""
    with counting() as calls:
        make()
    return calls()
