"""Random motions of arms: what they ask for is drawn by a number, the same for every version of the package."""

import time

import numpy as np

import oc_dyn as od

from . import robots
from .plans import KINDS
from .timing import quiet, since_began, timed

ROBOTS, OF_LIMITS, AGAIN = ("panda", "ur5", "fr3", "two_pandas"), ("kinematic", "torque", "rate"), 2
LONG = 90.0  # [s] for one plan
FAST = 0.3  # share of the limits of velocity that joints have at an end, at most


def drawn(number):
    """{"robot", "kind", "continuity", "nodes", "mesh", "objective", "speeds"} of a task."""
    rng = np.random.default_rng((19, number))
    own = {"robot": ROBOTS[number % 4], "kind": OF_LIMITS[number // 4 % 3]}
    own["continuity"] = 2 + (number // 4 + number // 12) % 3  # all three of each robot and kind
    own["nodes"] = int(rng.choice((15, 25, 40) if own["robot"] == "two_pandas" else (20, 35, 50, 80)))
    own["objective"] = "effort" if own["kind"] != "kinematic" and rng.random() < 0.2 else "time"
    if own["objective"] == "effort":  # whose torques are looked at inside pieces, too
        own["nodes"] = 15 if own["robot"] == "two_pandas" else min(own["nodes"], 25)
    own["mesh"] = "free" if own["objective"] == "time" and own["nodes"] <= 35 and rng.random() < 0.2 else "uniform"
    own["speeds"] = str(rng.choice(("none", "start", "goal", "both"), p=(0.6, 0.15, 0.15, 0.1)))
    return own


def asked(number):
    """(robot, start, goal, options) of a task for plan_point_to_point."""
    own, rng = drawn(number), np.random.default_rng((20, number))
    r = robots.robot(own["robot"])
    start, goal = robots.ends(r, (21, number))
    limits = robots.limits(r)
    options = {"limits": limits, "check": "off", "progress": False, "refinements": 0, "time_limit": LONG}
    options |= {k: own[k] for k in ("continuity", "nodes", "mesh", "objective")} | KINDS[own["kind"]]
    for end in ("start", "goal"):
        if own["speeds"] in (end, "both"):
            options[f"v_{end}"] = FAST * rng.uniform(-1, 1, r.nv) * np.minimum(limits.v, 3.0)
    if own["objective"] == "effort":
        options["duration"] = 1.0 + 3 * float(np.max(np.abs(goal - start) / np.minimum(limits.v, 3.0)))
    return r, start, goal, options


def task(number):
    """Seconds of a task, first and again, and the motion: T, its objective, the largest share of a limit anywhere."""
    quiet()
    r, start, goal, options = asked(number)
    row, motion = timed("first", lambda: od.plan_point_to_point(r, start, goal, **options))
    row["whole"] = since_began("first")["cpu"]
    info = motion.info
    facts = {"T": motion.duration, "iterations": info.get("iterations"), "status": str(info.get("status"))}
    facts |= {"objective": float(info.get("objective_value", motion.duration)), "nodes": len(motion.t) - 1}
    yield {**row, **facts, "worst": float(motion.check().worst)}
    begun = time.perf_counter()
    for _ in range(AGAIN):
        yield timed("again", lambda: od.plan_point_to_point(r, start, goal, **options))[0]
        if time.perf_counter() - begun > LONG / 9:
            break
