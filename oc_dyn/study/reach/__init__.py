"""A reach of the Panda in a fixed time, side by side with Crocoddyl: the same robot, program, guess and judge.

Without bounds both sides have the same optimum, with bounds of torque too; bounds of velocity are limits on this side
and penalties on the other.
"""

import csv
import io
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from ...codegen import compile
from ...codegen.build import find_compiler
from ...errors import SolveError
from ...files import write_csv
from ...runs.manifest import manifest, write_json
from ...runs.points import bar
from ...text import in_columns
from .. import apart
from . import crocoddyl, problem
from .problem import SHARE, Reach, Way, judged

NODES, ROUNDS = 50, 21
WEIGHTS = (1e2, 1e3, 1e4, 1e5)  # of the penalty on velocities
OURS = (
    Way("oc_dyn", "fatrop", "exact"),  # the first: costs are reported as differences from its own
    Way("oc_dyn", "fatrop", "gauss_newton"),
    Way("oc_dyn", "ipopt", "exact"),
    Way("oc_dyn", "ipopt", "gauss_newton"),
    Way("oc_dyn", "fatrop", "exact", compiled=True),
    Way("oc_dyn", "fatrop", "gauss_newton", compiled=True),
    Way("oc_dyn", "ipopt", "exact", compiled=True),
    Way("oc_dyn", "fatrop", "exact", "acceleration"),
    Way("oc_dyn", "fatrop", "exact", "acceleration", compiled=True),
)
QUICK = OURS[:3]
THEIRS = {
    "no bounds": (Way("crocoddyl", "SolverFDDP", "gauss_newton"),),
    "torque": (Way("crocoddyl", "SolverBoxFDDP", "gauss_newton"),),
    "torque and velocity": tuple(Way("crocoddyl", "SolverBoxFDDP", "gauss_newton", weight=w) for w in WEIGHTS),
}
FIELDS = (
    "case",
    "library",
    "way",
    "cost",
    "cost_difference",
    "gap",
    "torque_excess",
    "velocity_excess",
    "solved",
    "of",
)
FIELDS += ("iterations", "fewest", "most", "build_seconds", "milliseconds", "per_iteration", "ratio", "low", "high")

CAPTIONS = {
    "reach.png": "Above: median time to solve and iterations (fewest to most) of every way, by what is bounded; "
    "orange: Crocoddyl. Below, with bounds of torque and velocity: what cost, iterations and time go with how far "
    "velocities pass their bounds; Crocoddyl has penalties there.",
    "agreement.csv": "Largest relative difference of what both sides compute at random states.",
    "reach.csv": "Every way to solve: cost, errors of steps, how far bounds are passed, goals solved, times.",
}


def run(out, quick=False, progress=None):
    """Measure and draw; returns the report as a text.

    out: folder for
    - agreement.csv: largest relative differences of dynamics, of a step with its derivatives, and of costs, to
      Crocoddyl's and Pinocchio's;
    - reach.csv: of every way to solve, over the goals that it solved: cost without penalties (of the first goal), its
      largest relative difference to that of the first way here, largest error of a step, how far bounds are passed
      [share of the bound], [rad/s]; how many goals were solved, of how many; over all of them: iterations (median,
      fewest, most), median milliseconds to solve from the same guess, over iterations, and as ratio to Crocoddyl's, of
      its ways that solve most goals the fastest (median, tenth and ninetieth percentile of the ratios of a round, in
      which all ways take turns); seconds to build;
    - reach.png, manifest.json.
    Without Crocoddyl, or where its dynamics are not those of the robot, this side alone is measured; without a C
    compiler nothing compiled is; the report says so. quick: few nodes, ways and rounds. progress: show a bar on
    stderr; default on a terminal only.
    """
    from .figures import plot

    out, notes = Path(out), []
    nodes, rounds = (20, 3) if quick else (NODES, ROUNDS)
    cases = _cases(nodes)
    agreement, path = _agreement(cases["no bounds"], notes)
    ours = QUICK if quick else _possible(notes)
    rivals = {name: ways[-3:] if quick else ways for name, ways in THEIRS.items()} if path else {}
    plan = {name: [*rivals.get(name, ()), *ours] for name in cases}
    rows = []
    out.mkdir(parents=True, exist_ok=True)
    with bar(progress, sum(map(len, plan.values())) * (1 + rounds), "crocoddyl", " runs") as shown:
        for name, reach in cases.items():
            rows += _measured(name, reach, plan[name], path, rounds, shown)
    _write(out / "agreement.csv", ("quantity", "difference"), agreement)
    _write(out / "reach.csv", FIELDS, rows)
    plot(rows, out / "reach.png")
    command = apart.typed("crocoddyl", out, quick)
    facts = {
        "left_out": notes,
        "nodes": nodes,
        "rounds": rounds,
        "goals_spread_by": problem.SPREAD,
        "share_of_rated_torque": SHARE,
        "path": path,
    }
    facts |= {"largest_cost_difference": _largest(rows), "tolerance": problem.TOLERANCE, **_weights()}
    facts |= crocoddyl.versions() if crocoddyl.version() else {}
    write_json(out / "manifest.json", manifest(command, **facts))
    return _report(rows, agreement, path, notes)


def _cases(nodes):
    """{name: Reach}."""
    robot = Reach(nodes).robot
    torque, velocity = SHARE * robot.limit("effort"), robot.limit("velocity")
    bounds = {"no bounds": (None, None), "torque": (torque, None), "torque and velocity": (torque, velocity)}
    return {name: Reach(nodes, *both, robot) for name, both in bounds.items()}


def _weights():
    names = ("POSITION", "SPEED", "TORQUE", "END_POSITION", "END_SPEED", "DURATION")
    return {name.lower(): getattr(problem, name) for name in names}


def _agreement(reach, notes):
    """(rows, path to take), path None where Crocoddyl cannot be measured; notes say why."""
    if crocoddyl.version() is None:
        notes.append("Crocoddyl is not installed, this side alone was measured: pip install 'oc-dyn[bench]'")
        return [], None
    try:
        rows, path = crocoddyl.agreement(reach)
    except SolveError as error:
        notes.append(f"nothing of Crocoddyl was measured: {error}")
        return [], None
    if path != crocoddyl.PATHS[0]:
        worst = next(row["difference"] for row in rows if row["quantity"] == f"acceleration, {crocoddyl.PATHS[0]}")
        pair = " beside ".join(f"{name} {version}" for name, version in crocoddyl.versions().items())
        notes.append(
            f"{pair}: accelerations as they come are off by {worst:.2g} of the largest; its path through the {path}, "
            "which is right, was taken instead"
        )
    return rows, path


def _possible(notes):
    try:
        find_compiler(None)
    except SolveError as error:
        notes.append(f"nothing was compiled: {error}")
        return [way for way in OURS if not way.compiled]
    return OURS


def _measured(name, reach, ways, path, rounds, shown):
    """Rows of a case: all ways are prepared, then take turns."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # nothing is compiled beforehand
        made = []
        for number, way in enumerate(ways):
            compiler = partial(compile, cache=Path(folder) / str(number))
            shown.set_postfix_str(f"{name}, {way.name}")
            made.append(
                crocoddyl.prepared(reach, way, path)
                if way.library == "crocoddyl"
                else problem.prepared(reach, way, compiler)
            )
            shown.update()
        outcomes, targets = [], problem.goals(rounds)
        for goal in targets:
            outcomes.append([solved(goal) for _, solved in made])
            shown.update(len(made))
    seconds, iterations, success = (
        np.array([[getattr(o, what) for o in each] for each in outcomes])
        for what in ("seconds", "iterations", "success")
    )
    judgements = [[judged(reach, o, goal) for o in each] for each, goal in zip(outcomes, targets, strict=True)]
    costs = np.array([[x["cost"] for x in each] for each in judgements])
    first = next(k for k, way in enumerate(ways) if way.library == "oc_dyn")
    differences = costs / costs[:, [first]] - 1
    rivals = [k for k, way in enumerate(ways) if way.library == "crocoddyl"]
    rival = min(rivals, key=lambda k: (-success[:, k].sum(), np.median(seconds[:, k])), default=None)
    rows = []
    for k, way in enumerate(ways):
        row = {"case": name, "library": way.library, "way": way.name, "cost": costs[0, k]}
        done = np.flatnonzero(success[:, k])  # where it gave up is not where it would be
        of = differences[done, k]
        row["cost_difference"] = of[np.argmax(np.abs(of))] if done.size else None
        for what in ("gap", "torque_excess", "velocity_excess"):
            values = [judgements[number][k][what] for number in done]
            row[what] = max((x for x in values if x is not None), default=None)
        row |= {"solved": int(success[:, k].sum()), "of": rounds, "build_seconds": made[k][0]}
        of = np.percentile(iterations[:, k], (50, 0, 100))
        row |= dict(zip(("iterations", "fewest", "most"), (int(x) for x in of), strict=True))
        row["milliseconds"] = 1e3 * float(np.median(seconds[:, k]))
        row["per_iteration"] = 1e3 * float(np.median(seconds[:, k] / np.maximum(1, iterations[:, k])))
        if rival is not None:
            of = np.percentile(seconds[:, k] / seconds[:, rival], (10, 50, 90))
            row |= dict(zip(("low", "ratio", "high"), of.tolist(), strict=True))
        rows.append(row)
    return rows


def _largest(rows):
    """Largest relative difference of costs, over the ways that solve the very same program."""
    same = [row for row in rows if "penalty" not in row["way"]]
    return max((abs(row["cost_difference"]) for row in same if row["solved"]), default=None)


def _write(path, fields, rows):
    write_csv(path, [fields, *([_shown(row.get(field)) for field in fields] for row in rows)])


def _shown(x, digits=9):
    if x is None:
        return ""
    return f"{x:.{digits}g}" if isinstance(x, float) else str(x)  # numpy's float is one


# -- the report ------------------------------------------------------------------------------------------------

TOLD = ("library", "way", "cost", "cost_difference", "gap", "torque_excess", "velocity_excess")
TOLD += ("solved", "of", "iterations", "fewest", "most", "build_seconds", "milliseconds", "ratio", "low", "high")


def _report(rows, agreement, path, notes):
    lines = [f"note: {note}" for note in notes]
    if agreement:
        used = [x for x in agreement if not x["quantity"].startswith("acceleration") or x["quantity"].endswith(path)]
        worst = max(used, key=lambda x: x["difference"])
        lines.append(f"both sides compute the same to {worst['difference']:.1e} of the largest ({worst['quantity']})")
    for name in dict.fromkeys(row["case"] for row in rows):
        here = [row for row in rows if row["case"] == name]
        table = [TOLD, *([_shown(row.get(k), 9 if k == "cost" else 3) for k in TOLD] for row in here)]
        lines += ["", f"bounds: {name.removeprefix('no bounds') or 'none'}", in_columns(table)]
    return "\n".join(lines)
