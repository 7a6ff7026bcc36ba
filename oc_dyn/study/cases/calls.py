"""Calls of Functions: batches, single ones from Python; the demo, and motions planned side by side."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

import numpy as np

import oc_dyn as od

from . import robots
from .timing import one, quiet, timed

BATCHED = {  # quantity, order
    "inverse dynamics": ("inverse_dynamics", 0),
    "forward dynamics": ("forward_dynamics", 0),
    "inverse dynamics, order 2": ("inverse_dynamics", 2),
    "partials": ("inverse_dynamics_partials", 0),
}
RAD = 1.0  # of positions, velocities and all above: random numbers of this size


def arguments(f, samples, seed=0):
    """An array (rows, samples) for every port of a Function, of small numbers."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-RAD, RAD, (f.size1_in(k), samples)) for k in range(f.n_in())]


def batch(what, threads=1, samples=100_000, robot="panda"):
    """Nanoseconds a sample of od.batch, and the largest difference from the Function itself, relative to the largest
    value."""
    quiet()
    quantity, order = BATCHED[what]
    f = od.function(robots.robot(robot), quantity, order=order)
    built, run = timed("built and compiled", lambda: od.batch(f, threads=threads))
    given = arguments(f, samples)
    row = one("a sample", lambda: run(*given), 1, 9, "ns", samples=samples)
    few = [x[:, :50] for x in given]
    error = largest_difference(run(*few), [f(*(x[:, k] for x in few)) for k in range(50)])
    yield row | {"told": f"off by {error:.1e}"} | ({"cpu": None} if threads > 1 else {})
    yield built


def largest_difference(found, calls):
    """Of the results of a batch from those of calls, relative to the largest value of each."""
    found = found if isinstance(found, tuple) else (found,)
    worst = 0.0
    for k, y in enumerate(found):
        right = np.hstack([np.array(c[k] if isinstance(c, (tuple, list)) else c) for c in calls])
        worst = max(worst, np.abs(y - right).max() / max(np.abs(right).max(), 1e-300))
    return worst


def single(robot, quantity="inverse_dynamics"):
    """Microseconds of one call: CasADi's own of the same Function, that of a RobotFunction, numpy_call of its code."""
    quiet()
    f = od.function(robots.robot(robot), quantity)
    given = [x[:, 0] for x in arguments(f, 1)]
    import casadi as ca

    plain = ca.Function(f)
    for part, call, calls in (("numpy_call", None, 20_000), ("RobotFunction", f, 200), ("CasADi alone", plain, 200)):
        if call is None:
            call = od.numpy_call(od.compile(f))
        yield one(part, lambda call=call: call(*given), calls)


def demo():
    """`oc-dyn demo` as a command, and what is left of it without starting Python and importing the package."""
    with tempfile.TemporaryDirectory() as out:
        imported, _ = timed("import alone", partial(_python, "-c", "import oc_dyn.cli"))
        words = ("-m", "oc_dyn.cli", "demo", "--out", os.path.join(out, "demo"))
        whole, status = timed("whole command", partial(_python, *words))
    whole |= {"told": f"status {status}", "cpu": None}
    yield {**whole, "part": "after import", "value": whole["value"] - imported["value"]}
    yield whole
    yield imported | {"cpu": None}


def _python(*words):
    return subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=False).returncode


def side_by_side(executor, motions=16, nodes=30):
    """Motions of a Panda, by an executor, "dask:threads" a worker of Dask with two threads: seconds of a motion after
    the first two, when workers have what they need, and of all with the start of the workers."""
    quiet()
    r, times, failed = robots.robot("panda"), [], 0
    plan = partial(od.plan_point_to_point, nodes=nodes, check="off", progress=False, scale={"dtau": 0.3})
    points = [(r, *robots.ends(r, seed)) for seed in range(motions)]
    begun = time.perf_counter()
    with workers(executor) as there:
        for _, _, error in od.executors.completed(plan, points, there):
            times.append(time.perf_counter() - begun)
            failed += error is not None
    later = (times[-1] - times[1]) / (motions - 2)
    yield {"part": "a motion, later", "value": later, "unit": "s", "told": f"{failed} failed"}
    yield {"part": f"all {motions}", "value": times[-1], "unit": "s"}


@contextlib.contextmanager
def workers(executor):
    """What to give to `completed`."""
    if executor != "dask:threads":
        yield executor
        return
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client.get_executor()
