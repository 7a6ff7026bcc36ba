"""Predictive control of a Panda within torques and speeds, in C, beside mim_solvers' CSQP; see tracking.py.

The same loop is closed with the same program by every solver, with one iteration a step and with iterations until it
has converged. Every loop is run several times, the solvers taking turns; the time of a step is its least.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import UnknownName
from ...files import write_csv
from ...runs.manifest import manifest, write_json
from ...runs.points import bar as progress_bar
from ...text import in_columns
from . import peer
from .tracking import FIRST, Setting, closed_loop_cost, controller, start, task, world

NODES, ROUNDS = (10, 20, 40), 5
FLAGS = ("-O3", "-march=native")
NEAR = 1e-4  # largest violation of a step that counts as solved
FIELDS = ("N", "solver", "iterations at most", "median [ms]", "99 % [ms]", "longest [ms]")
FIELDS += ("violation", "steps not solved", "closed-loop cost", "first optimum")
CAPTIONS = {
    "steps.csv": "Time of a step of 200, violation of the scaled constraints (the largest), steps whose violation is "
    f"above {NEAR:g} or that say that they are not solved, cost of the loop, and the optimum of the first step.",
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
    Way("mim_solvers CSQP, tight", 20, options=peer.TIGHT),
)


def run(out, quick=False, progress=None):
    """Measure; returns the tables as a text.

    out: folder for steps.csv and manifest.json. Where mim_solvers or a C compiler is not there the report says so.
    quick: one horizon, one round, fewer steps. progress: show a bar on stderr; default on a terminal only.
    """
    out, notes = Path(out), []
    settings = [Setting(nodes=n, steps=60 if quick else 200) for n in (NODES[:1] if quick else NODES)]
    rounds, rows, versions = 1 if quick else ROUNDS, [], None
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        return "a C compiler is not there: nothing is measured"
    there = peer.python() is not None
    if not there:
        notes.append(peer.MISSING)
    with progress_bar(progress, len(settings) * rounds, "mpc", " rounds") as bar:
        for setting in settings:
            found, versions = _steps(setting, rounds, there, quick, bar, notes)
            rows += found
    cells = [FIELDS, *([_cell(x) for x in row] for row in rows)]
    write_csv(out / "steps.csv", cells)
    command = ["oc-dyn", "study", "mpc", *(["--quick"] if quick else []), "--out", out]
    facts = {"flags": FLAGS, "rounds": rounds, "steps": [dict(zip(FIELDS, row, strict=True)) for row in rows]}
    write_json(out / "manifest.json", manifest(command, **facts, peers=versions, notes=notes))
    return "\n".join([in_columns(cells), *notes])


def _steps(setting, rounds, there, quick, bar, notes):
    """(rows of steps.csv of a setting, versions of the peer or None)."""
    flags = ("-O1",) if quick else FLAGS
    seconds, kept, versions = {}, {}, None
    with tempfile.TemporaryDirectory() as folder:
        made = {}
        for way in OURS:
            try:
                made[way] = _built(setting, way, Path(folder), flags)
            except UnknownName as error:
                if (note := f"{way.name}: {error}") not in notes:
                    notes.append(note)
        for _ in range(rounds):
            for way, (control, place) in made.items():
                loop = control.run_in_c(place)
                seconds.setdefault(way, []).append(loop.seconds)
                good = (loop.violation < NEAR) & (loop.status == 0)
                kept[way] = loop.x, loop.u, loop.violation, good, loop.objective
            if there:
                ways = [{"name": w.name, "iterations": w.iterations, "options": w.options} for w in THEIRS]
                found = peer.loops(task(setting, ways))
                versions = {k: found[k] for k in ("versions", "path", "acceleration")}
                for way, loop in zip(THEIRS, found["loops"], strict=True):
                    seconds.setdefault(way, []).append(loop["seconds"])
                    x, u, over, objective = (np.array(loop[k]) for k in ("x", "u", "violation", "objective"))
                    kept[way] = x, u, over, over < NEAR, objective
            bar.update()
    return [_row(setting, way, np.min(seconds[way], axis=0), *kept[way]) for way in seconds], versions


def _built(setting, way, folder, flags):
    """(PredictiveController, folder of its program)."""
    control = controller(setting, qpsol=way.qpsol, iterations=way.iterations)
    place = folder / f"{way.qpsol}_{way.iterations}"
    plant, measured = world(setting)
    control.codegen(place, plant, measured, {}, start(), setting.steps)
    control.build(place, flags)
    return control, place


def _row(setting, way, seconds, x, u, over, good, objective):
    times = np.percentile(1e3 * seconds, [50, 99, 100])
    cost = closed_loop_cost(setting, x, u)
    return [setting.nodes, way.name, way.iterations, *times, over.max(), int(np.sum(~good)), cost, objective[0]]


def _cell(x):
    return f"{x:.4g}" if isinstance(x, float) else x
