"""Functions as objects: saved, pickled, sent to processes, called from threads, and dropped without a trace."""

import concurrent.futures
import gc
import multiprocessing
import pickle
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from samples import random_ports

import oc_dyn as od

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "order 1": ("inverse_dynamics", {"order": 1}),
    "wrenches": ("inverse_dynamics", {"external_wrenches": True}),
    "parameters": ("joint_torque_regressor", {}),
    "hybrid": ("hybrid_dynamics", {"prescribed": ("joint2",)}),
    "sparse": ("inverse_dynamics_partials", {}),
    "calls of calls": ("inverse_dynamics_second_partials", {"method": "compact"}),
}


@pytest.fixture(scope="module")
def robot():
    return od.robots.chain(3)


def numbers(f, robot):
    """What a Function gives at a known point, as one array."""
    return np.concatenate([y.full().ravel() for y in f(**random_ports(f, robot)).values()])


def called(f, x):
    return np.concatenate([y.full().ravel() for y in f(**x).values()])


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_pickled_saved_and_loaded(robot, kind, tmp_path):
    quantity, options = KINDS[kind]
    f = od.function(robot, quantity, **options)
    expected = numbers(f, robot)
    again = pickle.loads(pickle.dumps(f))
    assert type(again) is type(f)
    assert np.array_equal(numbers(again, robot), expected)
    assert again.name_in() == f.name_in()
    assert again.name_out() == f.name_out()
    f.save(str(tmp_path / "f.casadi"))
    loaded = ca.Function.load(str(tmp_path / "f.casadi"))  # a plain one, whose ports are the same
    assert np.array_equal(numbers(loaded, robot), expected)
    text = ca.Function.deserialize(f.serialize())
    assert np.array_equal(numbers(text, robot), expected)


def test_a_pickled_function_still_checks(robot):
    f = pickle.loads(pickle.dumps(od.function(robot, "inverse_dynamics", external_wrenches=True)))
    with pytest.raises(od.ShapeError, match="joint1"):
        f(q=np.zeros(7))
    with pytest.raises(od.UnknownName, match="link1"):
        f(w_ext={"lnk1": np.zeros(6)})


def test_pickled_robots_give_the_same_functions(robot):
    again = pickle.loads(pickle.dumps(robot))
    f, g = (od.function(r, "forward_dynamics") for r in (robot, again))
    assert np.array_equal(numbers(f, robot), numbers(g, robot))
    assert str(again) == str(robot)


@pytest.mark.slow
def test_another_process_loads_what_was_pickled(robot, tmp_path):
    f = od.function(robot, "inverse_dynamics", order=1)
    x = random_ports(f, robot)
    (tmp_path / "f.pickle").write_bytes(pickle.dumps((f, robot, x)))
    code = """
import pickle, sys, numpy as np
f, robot, x = pickle.load(open(sys.argv[1], "rb"))
np.save(sys.argv[2], np.concatenate([y.full().ravel() for y in f(**x).values()]))
print(robot.name, type(f).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "f.pickle", tmp_path / "y.npy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [robot.name, type(f).__name__], done.stderr
    assert np.array_equal(np.load(tmp_path / "y.npy"), called(f, x))


@pytest.mark.slow
def test_a_pool_of_processes(robot):
    f = od.function(robot, "forward_dynamics")
    points = [random_ports(f, robot, seed) for seed in range(6)]
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(called, [f] * 6, points))
    assert all(np.array_equal(y, called(f, x)) for x, y in zip(points, found, strict=True))


def test_threads_that_call_one_function(robot):
    f = od.function(robot, "forward_dynamics")
    points = [random_ports(f, robot, seed) for seed in range(200)]
    expected = [called(f, x) for x in points]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = [list(part) for part in zip(*[pool.map(lambda x: called(f, x), points) for _ in range(4)], strict=True)]
    assert all(np.array_equal(y, e) for ys, e in zip(found, expected, strict=True) for y in ys)


@pytest.mark.slow
def test_threads_that_build_functions_of_one_robot():
    robot, found, start = od.robots.chain(4), [], threading.Barrier(4)

    def build():
        start.wait()
        found.append(numbers(od.function(robot, "inverse_dynamics", order=1), robot))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    assert all(np.array_equal(x, found[0]) for x in found)


def build_and_drop(times):
    for k in range(times):
        robot = od.robots.chain(2, seed=k % 5)
        od.function(robot, "forward_dynamics")(q=np.zeros(2))
        od.function(robot, "mass_matrix", order=1)
    gc.collect()


@pytest.mark.slow
def test_many_robots_leave_memory_flat():
    build_and_drop(10)
    tracemalloc.start()
    build_and_drop(5)
    before = tracemalloc.get_traced_memory()[0]
    build_and_drop(10)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000  # of Python, 2 kB a robot
    memory = resident()
    build_and_drop(50)
    assert memory is None or resident() - memory < 6_000_000  # of CasADi, too


def resident():
    """Bytes of memory that this process has, where the system tells."""
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    line = next(x for x in path.read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
