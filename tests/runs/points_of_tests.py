"""Points that the tests of executors and sweeps compute: functions of a module, so that workers find them."""

import math
import os
import signal
import threading
import time
from pathlib import Path

import casadi as ca

import oc_dyn as od
from oc_dyn.errors import UnknownName


def root(x):
    if not isinstance(x, float):
        raise TypeError(f"no number: {x!r}")
    if x < 0:
        raise ValueError(f"negative: {x}")
    return math.sqrt(x)


def row_of_root(x):
    return {"y": root(x)}


def not_of_nine(x):
    assert x != 9.0
    return {"y": root(x)}


def unknown(name):
    raise UnknownName("letter", name, "xyz")  # its exception cannot be unpickled


def killed_once(number, folder, deadly):
    """number^2; the first run of the deadly one kills its worker."""
    if number == deadly:
        mark = Path(folder) / str(number)
        if not mark.exists():
            mark.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def killer(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def environment(name):
    return os.environ.get(name)


def worker(seconds):
    """The process and thread that this runs in, and how many threads its libraries may use."""
    time.sleep(seconds)
    return os.getpid(), threading.get_ident(), os.environ.get("OMP_NUM_THREADS")


def slow(x):
    time.sleep(0.05)
    return x


def long_text(x):
    return f"{x}" * 300


def sum_of(a, b):
    return {"sum": a + b, "both": (a, b)}


def fails_without_file(path):
    if not Path(path).exists():
        raise FileNotFoundError(path)
    return 1


def an_object():
    return object()


def sliding_mass(mass, free=False):
    """Least squared force that moves a mass by 1 m in 1 s; free: the mass is a parameter of the problem."""
    ocp = od.Problem(nodes=10, duration=1.0)
    m = ocp.parameter("mass") if free else mass
    x, force = ocp.state("x", 2), ocp.control("force")
    ocp.rate(x, ca.vertcat(x[1], force / m))
    ocp.start({x: [0, 0]})
    ocp.goal({x: [1, 0]})
    ocp.minimize(integral=force**2)
    return ocp
