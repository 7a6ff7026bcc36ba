"""od.batch on several threads: Ctrl-C, executors that are busy or closed, processes that fork."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.codegen.build import find_compiler

try:
    find_compiler()
except od.SolveError:
    pytest.skip("needs a C compiler", allow_module_level=True)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")


@pytest.fixture
def run():
    return long_batch()


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OC_DYN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def long_batch(**options):
    """Of a Function of which a few thousand points are worth two threads."""
    x = ca.SX.sym("x", 4)
    y = x
    for _ in range(60):
        y = ca.exp(-y * y) + ca.log(1 + y * y)
    return od.batch(ca.Function("f", [x], [y]), threads=2, fallback=False, flags=("-O1",), **options)


class SlowLoop:
    """In place of the loop in the library: it takes its time, and counts how many threads are in it."""

    def __init__(self):
        self.inside, self.calls = 0, 0

    def __call__(self, *args):
        self.inside, self.calls = self.inside + 1, self.calls + 1
        try:
            time.sleep(0.1)
        finally:  # C is not interrupted, but this is
            self.inside -= 1
        return 0


@pytest.mark.slow
@needs_timers
def test_ctrl_c_leaves_when_no_thread_computes_any_more(run, monkeypatch):
    """The arrays are freed then: the process crashed when threads went on to use them."""
    for signals in ([0.03], [0.03, 0.08]):  # the second one while it waits
        loop, times = SlowLoop(), iter(signals[1:])
        monkeypatch.setattr(run._compute, "loop", loop)

        def interrupt(*_, times=times):
            signal.setitimer(signal.ITIMER_REAL, next(times, 0.0))
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, signals[0])
            with pytest.raises(KeyboardInterrupt):
                run(np.zeros((4, 100_000)))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
        assert loop.inside == 0
        calls = loop.calls
        time.sleep(0.05)
        assert loop.calls == calls < 10


CTRL_C = """
import os, signal, sys, threading, time
import numpy as np
sys.path[:0] = [{tests!r}, {folder!r}]
from test_batch_threads import long_batch
run = long_batch()
x, out = np.full((4, 2_000_000), 0.3), np.zeros((4, 2_000_000))
run(x[:, :2000])
for options in ({{}}, {{"out": out}}):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        run(x + 0, **options)
    except KeyboardInterrupt:
        kept = out.copy()
        print("stopped", flush=True)
time.sleep(0.5)
print(np.array_equal(out, kept), 0 < np.count_nonzero(out) < out.size)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for one process")
def test_ctrl_c_in_a_process():
    folder = os.path.dirname(os.path.abspath(__file__))
    text = CTRL_C.format(tests=os.path.dirname(folder), folder=folder)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "stopped\nstopped\nTrue True\n"), done.stderr


@pytest.mark.slow
def test_an_error_in_another_thread_is_raised(run, monkeypatch):
    main = threading.current_thread()

    def loop(*_):
        if threading.current_thread() is main:
            time.sleep(0.02)
            return 0
        if error is not None:
            raise error
        return -1

    monkeypatch.setattr(run._compute, "loop", loop)
    for error in (OSError("of a thread"), None):
        with pytest.raises(OSError if error else MemoryError, match="of a thread|no memory"):
            run(np.zeros((4, 4_000)))


def test_all_points_are_computed_once(run):
    x = np.random.default_rng(0).normal(size=(4, 30_003))
    want = run.function.map(1003)(x[:, :1003]).full()
    got = run(x)
    assert np.allclose(got[:, :1003], want, rtol=1e-13)
    assert np.array_equal(got, long_batch(executor=None)(x))
    assert np.array_equal(got[:, 77:78], run(x[:, 77]))


def finished(work, seconds=20):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def test_jobs_of_an_executor_may_call_the_batch():
    """All of its threads waited for each other."""
    pool, found = ThreadPoolExecutor(2), []
    run, x = long_batch(executor=pool), np.random.default_rng(0).normal(size=(4, 20_000))
    want = long_batch()(x)
    jobs = [pool.submit(run, x) for _ in range(2)]
    assert finished(lambda: found.extend(job.result() for job in jobs))
    assert all(np.array_equal(y, want) for y in found)
    pool.shutdown()
    assert np.array_equal(run(x), want)  # in this thread


@pytest.mark.sample(1)
@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("own", [True, False])
def test_a_process_that_forks_has_threads_of_its_own(own):
    """The child waited for the threads of its parent."""
    run = long_batch(executor=None if own else ThreadPoolExecutor(2))
    x = np.random.default_rng(0).normal(size=(4, 20_000))
    want = run(x)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if np.array_equal(run(x), want) else 1)
        finally:
            os._exit(2)
    for _ in range(1000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (ended, status) == (child, 0)
