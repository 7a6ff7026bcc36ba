"""Robots of studies by name, and what it costs to build Functions of them: points that can be measured anywhere."""

import time

import numpy as np

from .. import robots
from ..errors import ShapeError
from ..function import _build, _settings, function
from ..model.builder import RobotBuilder
from ..model.canonical import canonical
from ..registry import get, get_method
from .native import in_turns, interpreted_runs

TIMES = ("microseconds", "ratio", "low", "high", "spread", "steady")
STEADY = 1.25  # spread up to which a time is taken to be steady
TRIES, PAUSE = 4, 2.0  # of a measurement that is not steady; [s] between them, since what disturbs lasts seconds
ENOUGH = 15  # rounds of what is worth another try; quick runs have fewer
_ARMS = 5  # of the tree of Ali et al. 2026, section 7.1


def new_robot(name, bodies=None):
    """A robot without stored Functions, by name: "branches" of so many bodies, or as by_name."""
    if name == "branches":
        return branches(bodies)
    sized = name in ("chain", "tree") and bodies is not None
    return robots.by_name(f"{name}:{bodies}" if sized else name)


def branches(bodies, seed=0):
    """A floating base that carries five branches of equal length, of revolute joints: 1 + 5 k bodies."""
    length, rest = divmod(bodies - 1, _ARMS)
    if rest or length < 1:
        raise ShapeError(f"branches: got {bodies} bodies, expected 1 + {_ARMS} k with k at least 1")
    rng, b = np.random.default_rng(seed), RobotBuilder("branches")
    b.add_link("base", mass=4.0, inertia=np.diag([0.08, 0.08, 0.1]))
    for arm in range(_ARMS):
        parent, angle = "base", 2 * np.pi * arm / _ARMS
        xyz = 0.2 * np.cos(angle), 0.2 * np.sin(angle), -0.05
        for k in range(length):
            axis, half = np.eye(3)[(arm + k) % 3], rng.uniform(0.05, 0.1)
            mass = rng.uniform(0.2, 0.6)
            inertia = mass * np.diag([half**2, half**2, 0.02**2])
            link = f"arm{arm + 1}_link{k + 1}"
            b.add_body(link, "revolute", parent, xyz=xyz, axis=axis, mass=mass, com=(0, 0, -half), inertia=inertia)
            parent, xyz = link, (0.0, 0.0, -2 * half)
    return b.build(floating_base=True)


def prescribed(robot):
    """Every other joint of one degree of freedom, for hybrid dynamics."""
    return tuple(joint.name for joint in robot.joints if joint.nv == 1)[::2]


def built(quantity, robot, order=0, method=None, name=None):
    """A Function; of hybrid dynamics, with every other joint prescribed."""
    options = {"prescribed": prescribed(robot)} if quantity.startswith("hybrid") else {}
    return function(robot, quantity, order=order, method=method, name=name, **options)


def count(quantity, method, robot, order=0, bodies=None):
    """{"instructions", "seconds"} of a Function, and the time to build it from the robot's description on [s]."""
    fresh_robot = new_robot(robot, bodies)
    start = time.perf_counter()
    f = built(quantity, fresh_robot, order, method)
    return {"instructions": f.n_instructions(), "seconds": f"{time.perf_counter() - start:.3f}"}


def count_on(base_parameters, quantity, method, robot, order):
    """Instructions of a method on a robot's parameters as written, or on base parameters, whichever it takes itself."""
    record, model = get(quantity), canonical(robot, regroup=base_parameters)
    chosen, settings = get_method(quantity, method), _settings(record, {})
    return _build(robot, record, chosen, order, settings, "counted", model=model).n_instructions()


def timed(robot, functions, reference=0, rounds=21, calls=40, runs_of=interpreted_runs):
    """[{"microseconds", "ratio", "low", "high", "spread", "steady"}] of Functions at random arguments, as texts.

    Medians over rounds in which all Functions take turns: of the time, and of its ratio within a round to that of the
    Function of number `reference`, or of one number for each; low and high: 10th and 90th percentile of the ratio.
    spread: 90th percentile of the time over the 10th. Machines that others use too change their speed for some rounds,
    and not by the same factor for all Functions: a row that is not steady says little, whatever its median. runs_of:
    native.interpreted_runs or compiled_runs.
    """
    runs = runs_of(functions, random_ports(robot, functions))
    references = [reference] * len(functions) if isinstance(reference, int) else reference
    return steadied(lambda: in_turns(runs, rounds, calls), references)[0]


def steadied(measure, reference):
    """(what summary says of them, (rounds, Functions) seconds) of the first measurement in which all rows are steady,
    or, of TRIES, of the one whose worst row is the calmest; of one of few rounds there is one."""
    best = None
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE)
        times = measure()
        rows = summary(times, reference)
        worst = max(max(float(row["spread"]), float(row["high"]) / float(row["low"])) for row in rows)
        if best is None or worst < best[0]:
            best = worst, rows, times
        if len(times) < ENOUGH or all(row["steady"] == "yes" for row in rows):
            break
    return best[1:]


def random_ports(robot, functions):
    """{port: numbers} for all ports of Functions of a robot."""
    ports, rng = {}, np.random.default_rng(0)
    for f in functions:
        ports |= {name: rng.normal(size=f.size_in(name)) for name in f.name_in() if name not in ports}
    return ports | ({"q": robot.random_configuration(0)} if "q" in ports else {})


def summary(times, reference):
    """What `timed` says of (rounds, Functions) seconds."""
    low, middle, high = np.percentile(times / times[:, reference], (10, 50, 90), axis=0)
    quick, slow = np.percentile(times, (10, 90), axis=0)
    return [
        {
            "microseconds": f"{1e6 * np.median(times[:, k]):.4g}",
            "ratio": f"{middle[k]:.4g}",
            "low": f"{low[k]:.4g}",
            "high": f"{high[k]:.4g}",
            "spread": f"{slow[k] / quick[k]:.3g}",
            "steady": "yes" if max(slow[k] / quick[k], high[k] / low[k]) <= STEADY else "no",
        }
        for k in range(times.shape[1])
    ]
