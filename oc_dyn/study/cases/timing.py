"""Seconds of a piece of work as parts of a case."""

import time
import warnings


def timed(part, work, told=None):
    """({"part", "value" [s], "unit", "cpu" [s], "told"}, result) of work(). told: a text from the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    row = {"part": part, "value": wall, "unit": "s", "cpu": cpu, "told": told(result) if told else ""}
    return row, result


def twice(work, told=None, parts=("first", "again")):
    """The parts of work() done once and once again."""
    for part in parts:
        yield timed(part, work, told)[0]


def each(work, calls, rounds=7):
    """Least seconds of a call of work(), of so many rounds of so many calls."""
    work()
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(calls):
            work()
        found.append((time.perf_counter() - begun) / calls)
    return min(found)


def quiet():
    """No warnings: they are of the motions, which other studies look at."""
    warnings.simplefilter("ignore")
