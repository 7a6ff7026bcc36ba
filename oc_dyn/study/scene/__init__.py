"""Motions of the Panda among obstacles: how many tasks are solved, how long motions and planning take, what they keep.

Seeded tasks with self-collision: things on a table, boards of a shelf, posts of a cage; from one free configuration to
another. od.plan_point_to_point with every limit of the robot, with sampled starts (OMPL) and without; beside it
RRT-Connect of OMPL with its corners cut, timed by toppra (Pham and Pham 2018) under limits of velocity, acceleration
and torque alone, and RoboPlan, which does the same in C++ without limits of torque. Clearances of ours are certified
along the whole motion, those of the others the smallest of samples. First and again are processor seconds of the same
plan: functions of a scene are built by its first task.
"""

import time
from pathlib import Path

import numpy as np

from ...files import write_csv
from ...runs.manifest import manifest, write_json
from ...runs.points import bar
from ...text import in_columns
from .. import apart
from .planners import PLANNERS, installed, versions
from .tasks import KINDS, tasks

COUNT, QUICK_COUNT = 100, 3
NODES, QUICK_NODES = 50, 12
CLEARANCE = 0.01  # [m] asked of all
CAPTIONS = {
    "tasks.csv": "Every task by every planner: duration, processor time to plan at first and again, clearance.",
    "summary.csv": "Of all tasks: share solved, medians, the smallest clearance; times of those that all have solved.",
}
FIELDS = ("task", "kind", "planner", "solved", "duration [s]", "first [s]", "again [s]", "clearance [m]", "why not")
SUMMARY = (
    "planner", "tasks", "solved", "duration [s]", "longer than ours", "first [s]", "again [s]", "clearance [m]",
)  # fmt: skip


def run(out, quick=False, progress=None, count=None, seconds=None):
    """Plan all tasks; returns the report as a text.

    out: folder for tasks.csv, summary.csv and manifest.json. quick: one task of a kind, few nodes. count: of tasks, by
    default 100. seconds: after which no further task begins; the tables then tell of those that were done. progress:
    show a bar on stderr; default on a terminal only.
    """
    out, nodes = Path(out), QUICK_NODES if quick else NODES
    count = (QUICK_COUNT if quick else COUNT) if count is None else count
    rows, begun, wanted = [], time.monotonic(), count
    planners = {name: planner for name, planner in PLANNERS.items() if installed(name)}
    with bar(progress, wanted * len(planners), "scene", " plans") as moved:
        for task in tasks(wanted, CLEARANCE):
            if seconds is not None and time.monotonic() - begun > seconds:
                count = task.number
                break
            for name, planner in planners.items():
                moved.set_postfix_str(f"task {task.number + 1}, {task.kind}, {name}")
                rows.append({"task": task.number, "kind": task.kind, "planner": name, **planner(task, nodes)})
                moved.update()
    found = summary(rows)
    out.mkdir(parents=True, exist_ok=True)
    cells = [SUMMARY, *([_cell(row[k]) for k in SUMMARY] for row in found)]
    write_csv(out / "tasks.csv", [FIELDS, *([_cell(row[k]) for k in FIELDS] for row in rows)])
    write_csv(out / "summary.csv", cells)
    command = apart.typed("scene", out, quick)
    if wanted not in (COUNT, QUICK_COUNT) or seconds is not None:  # which the command line does not take
        call = f"scene.run('results/scene', quick={quick}, count={wanted}, seconds={seconds})"
        command = ["python", "-c", f"from oc_dyn.study import scene; {call}"]
    facts = {"nodes": nodes, "tasks": count, "tasks asked for": wanted, "stopped after [s]": seconds}
    facts |= {"kinds": list(KINDS), "clearance [m]": CLEARANCE}
    write_json(out / "manifest.json", manifest(command, **facts, summary=found, peers=versions()))
    text = f"{count} tasks, {CLEARANCE:g} m of clearance asked; durations and times are medians of what was solved:"
    missing = [name for name in PLANNERS if not installed(name)]
    left = [f"left out, as what they need is not installed: {', '.join(missing)}"] if missing else []
    return "\n".join([text, in_columns(cells), *left])


def summary(rows):
    """Rows of the table of all planners, from those of tasks. Solved: a motion that keeps the clearance, a micrometre
    for rounding. Longer than ours: the median of how much, of the tasks that both have solved."""
    found, ours = [], {row["task"]: row["duration [s]"] for row in rows if row["planner"] == _OURS and row["solved"]}
    for name in dict.fromkeys(row["planner"] for row in rows):
        own = [row for row in rows if row["planner"] == name]
        solved = [row for row in own if row["solved"]]
        medians = {k: _median(row[k] for row in solved) for k in ("duration [s]", "first [s]", "again [s]")}
        longer = _median(row["duration [s]"] / ours[row["task"]] - 1 for row in solved if row["task"] in ours)
        least = min((row["clearance [m]"] for row in solved), default=np.nan)
        counts = {"planner": name, "tasks": len(own), "solved": len(solved)}
        found.append({**counts, **medians, "longer than ours": longer, "clearance [m]": least})
    return found


_OURS = "plan_point_to_point"


def _median(values):
    values = list(values)
    return float(np.median(values)) if values else np.nan


def _cell(x):
    return x if isinstance(x, str) else str(x) if isinstance(x, (bool, int)) else f"{x:.4g}"
