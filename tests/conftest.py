"""Of a test marked sample(k), k of its cases are in the default run, spread evenly over them, of one marked
sample("a", "b") those with these ids; the others are slow. Of one marked few(k) no more than k are tried at all, drawn
once and for all, where OC_DYN_FUZZ is not set."""

import os
import random
import signal
import sys
import threading
from itertools import groupby
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as many processes as cores run the tests: threads would only compete
os.environ["OC_DYN_FUNCTION_CACHE"] = "off"  # what is tested is what this source builds

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # begun in the background: tests of Ctrl-C send it

if sys.dont_write_bytecode:  # every process that a test starts would compile all modules: kept apart, beside pytest's
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(config, items):
    _leave_few(config, items)
    marked = (item for item in items if item.get_closest_marker("sample"))
    for _, cases in groupby(marked, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(cases)
        if len(cases) == 1:
            continue  # asked for by its id
        chosen = _chosen(cases)
        for k, item in enumerate(cases):
            if k not in chosen:
                item.add_marker(pytest.mark.slow)


def _leave_few(config, items):
    marked = (item for item in items if item.get_closest_marker("few"))
    out = set()
    for name, cases in groupby(marked, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(cases)
        most, first = cases[0].get_closest_marker("few").args[0], cases[0].get_closest_marker("sample")
        free = [item for item in cases if first is None or item.callspec.id not in first.args]  # others are asked for
        if len(cases) > most:
            out.update(random.Random(name).sample(free, min(len(cases) - most, len(free))))
    if out and not os.environ.get("OC_DYN_FUZZ"):
        config.hook.pytest_deselected(items=list(out))
        items[:] = [item for item in items if item not in out]


def _chosen(cases):
    """Places of those that stay in the default run."""
    kept = cases[0].get_closest_marker("sample").args
    if isinstance(kept[0], str):
        return {k for k, item in enumerate(cases) if item.callspec.id in kept}
    most = min(kept[0], len(cases))
    return {round(k * (len(cases) - 1) / max(kept[0] - 1, 1)) for k in range(most)}
