"""Seconds of a piece of work as parts of a case."""

import time
import warnings

from . import BEGAN


def timed(part, work, told=None):
    """({"part", "value" [s], "unit", "cpu" [s], "told"}, result) of work(). told: a text from the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    row = {"part": part, "value": wall, "unit": "s", "cpu": cpu, "told": told(result) if told else ""}
    return row, result


def twice(work, told=None):
    """The parts of work() done once and once again, and between them what has passed since the process began: modules
    may be imported, and robots read, before the first or within it."""
    yield timed("first", work, told)[0]
    yield since_began("first, with imports")
    yield timed("again", work, told)[0]


def since_began(part):
    """The part of all that a process has done so far."""
    return {"part": part, "value": time.perf_counter() - BEGAN, "unit": "s", "cpu": time.process_time(), "told": ""}


def each(work, calls, rounds=7):
    """(least wall seconds, least seconds of the processor) of a call of work(), of so many rounds of so many calls."""
    work()
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            work()
        walls.append((time.perf_counter() - wall) / calls)
        cpus.append((time.process_time() - cpu) / calls)
    return min(walls), min(cpus)


def one(part, work, calls, rounds=7, unit="us", told="", samples=1):
    """The part of a call of work(), or of one of its samples, in us or ns; its cpu is in the same unit."""
    wall, cpu = (x * {"us": 1e6, "ns": 1e9, "s": 1.0}[unit] / samples for x in each(work, calls, rounds))
    return {"part": part, "value": wall, "unit": unit, "cpu": cpu, "told": told}


def quiet():
    """No warnings: they are of the motions, which other studies look at."""
    warnings.simplefilter("ignore")
