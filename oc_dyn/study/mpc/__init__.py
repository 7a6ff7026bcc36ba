"""Predictive control of a Panda within torques and speeds, in C, beside mim_solvers' CSQP; see tracking.py.

steps: the same loop is closed with the same program by every solver, with one iteration a step and with iterations
until it has converged. Every loop is run several times, the solvers taking turns; the time of a step is the least that
its thread was at work. feedback: of a step in two parts, what comes after the measurement. faults: a joint's velocity
is measured wrong once. singular: a UR5 whose Gauss-Newton Hessian is nearly singular. real time: a program at 1 kHz.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...files import write_csv
from ...runs.manifest import manifest, write_json
from ...runs.points import bar as progress_bar
from ...text import in_columns
from .. import apart
from . import faults as bad
from . import peer
from .stepper import Stepper, built
from .tracking import FIRST, Setting, closed_loop_cost, controller, start, task, world

NODES, ROUNDS = (10, 20, 40), 3
FLAGS = ("-O2", "-march=native")
NEAR = 1e-4  # largest violation of a step that counts as solved
FIELDS = ("N", "solver", "iterations at most", "median [ms]", "99 % [ms]", "longest [ms]", "feedback, median [ms]")
FIELDS += ("feedback, 99 % [ms]", "violation", "steps not solved", "closed-loop cost", "first optimum")
FAST = Setting(period=1e-3, steps=4000)  # at 1 kHz: one iteration in every period
FAST_RUNS = 5
OF_FAST = ("Panda, N = 20, 1 iteration", "steps", "late", "share in time")
OF_FAST += ("median [ms]", "99 % [ms]", "99.9 % [ms]", "longest [ms]")
CAPTIONS = {
    "steps.csv": "Processor time of a step of 200, violation of the scaled constraints (the largest), steps whose "
    f"violation is above {NEAR:g} or whose status is not 0, cost of the loop, and the optimum of the first step.",
    "faults.csv": "One of the velocities is measured wrong in one sample, the worst over the joints: statuses, torque, "
    "good samples until all are ok, and times of steps in medians of those before.",
    "singular.csv": "A UR5 on the way to a place, in steps of 10 ms: times on the way and at rest there, torque.",
    "real_time.csv": "A program at 1 kHz, by the clock: steps that took longer than the period are late. A machine "
    "that other programs use, or a virtual one whose host does, delays some: there are several runs.",
}


@dataclass(frozen=True, eq=False)
class Way:
    """A solver of quadratic programs here, or CSQP's options; and how many of them a step solves at most."""

    name: str
    iterations: int
    qpsol: str | None = None
    options: dict | None = None


OURS = tuple(Way(f"oc_dyn, {qpsol}", n, qpsol) for qpsol in ("riccati", "qrqp") for n in (1, 20))
THEIRS = (
    Way("mim_solvers CSQP", 1, options=peer.LOOSE),
    Way("mim_solvers CSQP", 20, options=peer.LOOSE),
)


def run(out, quick=False, progress=None):
    """Measure; returns the tables as a text.

    out: folder for steps.csv, faults.csv, singular.csv, real_time.csv and manifest.json. Where mim_solvers, the robot's
    file or a C compiler is not there the report says so. quick: one horizon, one round, fewer steps. progress: show a
    bar on stderr; default on a terminal only.
    """
    out, notes = Path(out), []
    settings = [Setting(nodes=n, steps=60 if quick else 200) for n in (NODES[:1] if quick else NODES)]
    rounds, rows, versions = 1 if quick else ROUNDS, [], None
    there = peer.python() is not None
    if not there:
        notes.append(peer.MISSING)
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        notes.append("a C compiler is not there: nothing is measured")
        settings = []
    flags, tables = ("-O1",) if quick else FLAGS, {}
    with progress_bar(progress, len(settings) * (rounds + 1) + 3, "mpc", " rounds") as bar:
        for setting in settings:
            found, versions = _steps(setting, rounds, there, flags, bar)
            rows += found
        if settings:
            tables = {"steps.csv": (FIELDS, rows), **_others(flags, quick, bar, notes)}
    for file, (head, cells) in tables.items():
        write_csv(out / file, [head, *([_cell(x) for x in row] for row in cells)])
    command = apart.typed("mpc", out, quick)
    facts = {k.removesuffix(".csv"): [dict(zip(h, x, strict=True)) for x in y] for k, (h, y) in tables.items()}
    facts |= {"flags": flags, "rounds": rounds, "known_first_optimum": FIRST, "peers": versions, "notes": notes}
    write_json(out / "manifest.json", manifest(command, **facts))
    shown = (in_columns([head, *([_cell(x) for x in row] for row in cells)]) for head, cells in tables.values())
    return "\n\n".join([*shown, *notes])


def _others(flags, quick, bar, notes):
    """{file: (heading, rows)} of what is measured on this side alone."""
    tables = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = [[1, *row] for row in bad.faults(folder / "faults", flags, quick, iterations=1)]
        tables["faults.csv"] = (("iterations at most", *bad.FIELDS), rows)
        bar.update()
        most = (1,) if quick else (1, 10)
        rows = [bad.singular(folder / f"ur5_{n}", flags, "riccati", quick, iterations=n) for n in most]
        if rows[0] is None:
            notes.append("the UR5 is not there: pip install example-robot-data")
        else:
            tables["singular.csv"] = (bad.SINGULAR, rows)
        bar.update()
        tables["real_time.csv"] = (OF_FAST, _real_time(folder / "fast", flags, quick))
        bar.update()
    return tables


def _steps(setting, rounds, there, flags, bar):
    """(rows of steps.csv of a setting, versions of the peer or None)."""
    seconds, feedback, kept, versions = {}, {}, {}, None
    with tempfile.TemporaryDirectory() as place:
        steppers = [_stepper(setting, w, Path(place) / f"{w.qpsol}_{w.iterations}", flags) for w in OURS]
        made = dict(zip(OURS, built(steppers), strict=True))
        bar.update()
        for _ in range(rounds):
            for way, stepper in made.items():
                steps, x = _loop(stepper, setting)
                seconds.setdefault(way, []).append([s.seconds for s in steps])
                u, over, objective = (np.array([getattr(s, k) for s in steps]) for k in _SHOWN)
                good = (over < NEAR) & np.array([s.status == 0 for s in steps])
                kept[way] = x, u, over, good, objective
                if way.iterations == 1:
                    steps, _ = _loop(stepper, setting, phases=True)
                    feedback.setdefault(way, []).append([s.feedback for s in steps])
            if there:
                ways = [{"name": w.name, "iterations": w.iterations, "options": w.options} for w in THEIRS]
                found = peer.loops(task(setting, ways))
                versions = {k: found[k] for k in ("versions", "path", "acceleration")}
                for way, loop in zip(THEIRS, found["loops"], strict=True):
                    seconds.setdefault(way, []).append(loop["seconds"])
                    x, u, over, objective = (np.array(loop[k]) for k in ("x", "u", "violation", "objective"))
                    kept[way] = x, u, over, over < NEAR, objective
            bar.update()
    return [_row(setting, way, seconds[way], feedback.get(way), *kept[way]) for way in seconds], versions


_SHOWN = ("outputs", "violation", "objective")


def _stepper(setting, way, folder, flags):
    return Stepper(controller(setting, qpsol=way.qpsol, iterations=way.iterations), folder, flags)


def _loop(stepper, setting, phases=False):
    """([Step], states (K, 15)) of a closed loop."""
    plant, measured = world(setting)
    stepper.begin()
    x, states, steps = start(), [], []
    for _ in range(setting.steps):
        q, v, r = (np.array(y) for y in measured(x))
        steps.append(stepper.step({"q_now": q.ravel(), "v_now": v.ravel(), "r": r.T}, phases))
        states.append(x)
        x = plant(x, steps[-1].outputs).full().ravel()
    return steps, np.array(states)


def _row(setting, way, seconds, feedback, x, u, over, good, objective):
    times = np.percentile(1e3 * np.min(seconds, axis=0), [50, 99, 100])
    after = np.percentile(1e3 * np.min(feedback, axis=0), [50, 99]) if feedback else (np.nan, np.nan)
    cost, wrong = closed_loop_cost(setting, x, u), int(np.sum(~good))
    return [setting.nodes, way.name, way.iterations, *times, *after, over.max(), wrong, cost, f"{objective[0]:.9f}"]


def _real_time(folder, flags, quick):
    """Rows of OF_FAST, one of each run and one of all: the program in C waits for the clock."""
    setting = Setting(period=FAST.period, steps=100 if quick else FAST.steps)
    plant, measured = world(setting)
    runs = {}
    for k in range(1 if quick else FAST_RUNS):
        control = controller(setting, iterations=1)
        loop = control.closed_loop_in_c(
            plant, start(), setting.steps, {}, measured, rate=1 / setting.period, flags=flags, folder=folder
        )
        runs[f"run {k + 1}"] = loop.seconds
    if len(runs) > 1:
        runs["all"] = np.concatenate(list(runs.values()))
    rows = []
    for name, seconds in runs.items():
        late = int(np.sum(seconds > setting.period))
        times = np.percentile(1e3 * seconds, [50, 99, 99.9, 100])
        rows.append([name, len(seconds), late, 1 - late / len(seconds), *times])
    return rows


def _cell(x):
    if isinstance(x, float):
        return "" if np.isnan(x) else f"{x:.4g}"
    return x
