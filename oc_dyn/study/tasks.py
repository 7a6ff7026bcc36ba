"""Sixty random motions before and after: none lost, none slower, and every optimum that changed is told.

Tasks differ in robot (Panda, UR5, FR3, two Pandas on a base), limits (kinematic, of torque, of its rate), continuity,
nodes, mesh, objective and speeds at the ends; they are drawn by their numbers. Processes of an earlier checkout
(--against FOLDER) and of this one take turns. Least-time programs have several optima: one that changed is better or
worse, and the largest share of any limit, looked at between nodes, tells whether a better one keeps the limits.
"""

from collections import Counter
from pathlib import Path
from statistics import median

from ..files import write_csv
from ..runs.manifest import git_state, manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import apart
from .cases.tasks import drawn

TASKS, QUICK = 60, (0, 1)
RUNS = (False, True)  # whether what was built before is kept
CHANGED = 1e-4  # of the objective
SLOWER = 1.1  # of CPU seconds, where no time before was as long
ONCE = 1.25  # of those that are measured once
OF_TASK = ("robot", "kind", "continuity", "nodes", "mesh", "objective", "speeds")
SIDE = ("T", "objective value", "iterations", "CPU", "CPU longest", "first CPU", "later CPU", "worst", "nodes found")
SIDE += ("status",)
FIELDS = ("task", *OF_TASK, "verdict", "change", "ratio", "first ratio", "later ratio")
FIELDS += tuple(f"{who} {k}" for who in ("before", "now") for k in SIDE)
SHOWN = ("task", "robot", "kind", "continuity", "nodes", "mesh", "objective", "speeds", "before T", "now T")
SHOWN += ("before CPU", "now CPU", "ratio", "first ratio", "later ratio", "verdict")
CAPTIONS = {
    "tasks.csv": "T: duration [s]; CPU: least and longest seconds of the processor of a plan, once all is built; first "
    "CPU: of a process up to its first plan, with imports; later CPU: the same with what was built before; worst: "
    "largest share of a limit, at nodes and between; change: of the objective, relative; ratio, first ratio, later "
    "ratio: of CPU, now over before; slower: that is above 1.1, and the least time now longer than any before; slower "
    "at first, slower later: that is above 1.25.",
    "runs.csv": apart.RUNS,
}


def run(out, quick=False, progress=None, against=None, only=None):
    """Measure, and write runs.csv, tasks.csv and manifest.json to the folder `out`; returns what changed as a text.

    against: folder of an earlier checkout of the repository. only: texts with semicolons between them; tasks without
    any of them in their names, as "task 7: panda, kinematic", are left out. quick: two tasks. progress: show a bar on
    stderr; default on a terminal only. Raises ShapeError for a folder that is no checkout, and where no task is left.
    """
    out, earlier = Path(out), apart.checkout(against)
    numbers = apart.chosen_of(list(QUICK if quick else range(TASKS)), only, named)
    sides, rows = {"before": earlier, "now": None} if earlier else {"now": None}, []
    with bar(progress, len(numbers), "tasks", " tasks") as moved, apart.runs(out, earlier, quick) as one:
        for number in numbers:
            moved.set_postfix_str(named(number))
            turns = [(who, k) for k in range(len(RUNS)) for who in sides]
            told: dict[str, list] = {who: [] for who in sides}
            for who, k in turns:
                if not told[who] or told[who][-1].done:
                    case = apart.Case("tasks", "task", {"number": number}, kept=RUNS[k])
                    told[who].append(one(named(number), who, k, case, sides[who]))
            rows.append(compared(number, {who: summed(x) for who, x in told.items()}))
            moved.update()
    write_csv(out / "tasks.csv", [FIELDS, *([row.get(k, "") for k in FIELDS] for row in rows)])
    counts = counted(rows)
    facts = {"limit": apart.LIMIT, "against": None if earlier is None else git_state(earlier), "verdicts": counts}
    write_json(out / "manifest.json", manifest(apart.typed("tasks", out, quick, against=against, only=only), **facts))
    return report(rows, counts)


def named(number):
    """The name of a task."""
    own = drawn(number)
    return f"task {number}: {', '.join(str(own[k]) for k in OF_TASK)}"


def summed(runs):
    """{of SIDE: value} of a side's processes; a status that is not "done" is that of the first that failed."""
    plans = [p for run in runs for p in run.parts]
    first = next((p for p in plans if p["part"] == "first"), None)
    status = next((run.status for run in runs if not run.done), "done")
    if first is None:
        return {"status": status}
    firsts = [p["whole"] for p in plans if p["part"] == "first"]
    cpu = [p["cpu"] for p in plans if p["part"] == "again"] or [first["cpu"]]
    found = {"T": first["T"], "objective value": first["objective"], "iterations": first["iterations"]}
    found |= {"CPU": min(cpu), "CPU longest": max(cpu), **dict(zip(("first CPU", "later CPU"), firsts, strict=False))}
    return {**found, "worst": first["worst"], "nodes found": first["nodes"], "status": status}


def compared(number, sides):
    """Row of FIELDS of a task from what `summed` gives of its sides."""
    row = {"task": number, **drawn(number)}
    for who, side in sides.items():
        row |= {f"{who} {k}": _cell(x) for k, x in side.items()}
    verdicts = []
    if "before" in sides:
        before, now = sides["before"], sides["now"]
        solved = ["T" in side for side in (before, now)]
        if not all(solved):
            verdicts = ["both fail" if not any(solved) else "lost" if solved[0] else "gained"]
        else:
            change = (now["objective value"] - before["objective value"]) / max(abs(before["objective value"]), 1e-12)
            row["change"] = f"{change:.1e}"
            if abs(change) > CHANGED:
                verdicts.append("better" if change < 0 else "worse")
            row["ratio"] = f"{now['CPU'] / before['CPU']:.3g}"
            if now["CPU"] > max(SLOWER * before["CPU"], before["CPU longest"]):
                verdicts.append("slower")
            for when, verdict in (("first", "slower at first"), ("later", "slower later")):
                if f"{when} CPU" in before.keys() & now.keys():
                    ratio = now[f"{when} CPU"] / before[f"{when} CPU"]
                    row[f"{when} ratio"] = f"{ratio:.3g}"
                    verdicts += [verdict] if ratio > ONCE else []
    row["verdict"] = "; ".join(verdicts)
    return row


def counted(rows):
    """{verdict: how many rows have it}, "same" without any."""
    return dict(Counter(x for row in rows for x in (row["verdict"] or "same").split("; ")))


def report(rows, counts):
    """The rows with a verdict, and how many have each."""
    told = [row for row in rows if row["verdict"] not in ("", "both fail")] or rows[:10]
    table = in_columns([SHOWN, *([row.get(k, "") for k in SHOWN] for row in told)])
    ratios = [float(row["ratio"]) for row in rows if row.get("ratio")]
    middle = f"; CPU now over before: median {median(ratios):.3g}, largest {max(ratios):.3g}" if ratios else ""
    return f"{table}\n{len(rows)} tasks: {', '.join(f'{n} {what}' for what, n in counts.items())}{middle}"


def _cell(x):
    return f"{x:.7g}" if isinstance(x, float) else "" if x is None else x
