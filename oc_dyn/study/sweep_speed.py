"""A sweep of plans in one process, in two, by Dask, and by threads of one worker of Dask.

CasADi holds the interpreter lock while it solves, so that two threads of one worker do not even do what one does, and
every worker is to have one. Of two processes, each starts, and builds what it solves, anew: what is lost against
twice the speed is seen in the processor time of all processes, which other work on the machine changes less. The last
row is of two processes that do the whole sweep each: its speed-up, of twice the plans, is what the machine has for two.
"""

import functools
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .. import robots
from ..files import write_csv
from ..planning.point_to_point import plan_point_to_point
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..runs.sweeps import sweep
from ..text import in_columns
from . import apart

HEAD = ("executor", "plans", "failed", "seconds", "speed-up", "processor seconds", "over serial", "seconds of points")
WAYS = ("serial", "processes:2", "dask:2", "dask, one worker of two threads")
APART = "two whole sweeps at once"
CAPTIONS = {
    "executors.csv": "A sweep of plans by each executor: seconds, processor time of all processes, ratios to serial.",
}


def run(out, quick=False, progress=None):
    """Measure executors.csv and manifest.json into the folder `out`; returns the table as a text.

    quick: few plans. progress: show a bar on stderr; default on a terminal only.
    """
    with bar(progress, len(WAYS) + 1, "sweep_speed", " executors") as shown:
        rows = speeds(quick, shown)
    table = [HEAD, *([row[k] for k in HEAD] for row in rows)]
    write_csv(Path(out) / "executors.csv", table)
    command = apart.typed("sweep_speed", out, quick)
    write_json(Path(out) / "manifest.json", manifest(command, executors=rows))
    return in_columns(table)


def speeds(quick=False, shown=None):
    """[{heading: value}] of WAYS and APART; those of Dask only where it is installed.

    Raises AssertionError if plans differ.
    """
    panda = robots.panda()
    plan = functools.partial(plan_point_to_point, panda, nodes=10 if quick else 50, scale={"dtau": 0.3})
    q = panda.random_configuration
    grid = [{"q_start": q(k), "q_goal": q(k + 1000)} for k in range(4 if quick else 40)]
    rows, first = [], None
    for way in WAYS:
        if way.startswith("dask") and not _dask_is_here():
            continue
        before, start = _processor_seconds(), time.perf_counter()
        with _where(way) as executor:
            found = sweep(plan, grid, executor=executor, progress=False)
        seconds = time.perf_counter() - start
        used = _processor_seconds() - before
        first = first or found
        assert found.errors == first.errors
        for a, b in zip(found.results, first.results, strict=True):
            assert a is b is None or np.array_equal(a.pieces, b.pieces), way
        serial = rows[0] if rows else {"seconds": seconds, "processor seconds": used}
        rows.append(dict(zip(HEAD, (
            way, len(grid), len(found.failed), round(seconds, 2), round(serial["seconds"] / seconds, 2),
            round(used, 2), round(used / serial["processor seconds"], 2), round(sum(found.seconds), 2),
        ), strict=True)))  # fmt: skip
        if shown is not None:
            shown.update()
    rows.append(_apart(plan, grid, rows[0]))
    if shown is not None:
        shown.update()
    return rows


def _apart(plan, grid, serial):
    before = _processor_seconds()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as two:
        asked = [two.submit(_whole, plan, grid) for _ in range(2)]
        seconds = [one.result() for one in asked]
    used, longest = _processor_seconds() - before, max(seconds)
    return dict(zip(HEAD, (
        APART, 2 * len(grid), "", round(longest, 2), round(2 * serial["seconds"] / longest, 2), round(used, 2),
        round(used / serial["processor seconds"] / 2, 2), round(sum(seconds), 2),
    ), strict=True))  # fmt: skip


def _whole(plan, grid):
    """Seconds of the serial sweep, without those of the start of its process."""
    start = time.perf_counter()
    sweep(plan, grid, progress=False)
    return time.perf_counter() - start


def _dask_is_here():
    try:
        import distributed  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def _where(way):
    """The executor of a way; its cluster, where it needs one, ends with the block."""
    if way in WAYS[:3]:
        yield way
        return
    from distributed import LocalCluster

    one = {"n_workers": 1, "threads_per_worker": 2, "processes": True}
    with LocalCluster(**one, dashboard_address=None, silence_logs=50) as cluster:
        yield f"dask:{cluster.scheduler_address}"


def _processor_seconds():
    """Of this process and of all that it has started and that have ended."""
    while multiprocessing.active_children():
        time.sleep(0.02)
    return sum(os.times()[:4])
