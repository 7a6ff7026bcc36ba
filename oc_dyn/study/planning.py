"""Planning over the length of the horizon: seconds, iterations and memory on 20 to 400 nodes, with 6 to 30 joints.

A UR5, a Panda, two Pandas on a base and Talos without its grippers move from rest to rest in the least time, with
limits of velocity, acceleration and jerk alone, of torque besides, and of its rate. Each plan is measured in processes
of its own: the first one of a process, with all that is built for it (cold), the same once again (warm), and once again
with stages that were compiled (compiled). Where a plan takes too long, longer ones like it are left out.

Growth is that of a power of the number of nodes, fitted to the seconds of the processor by least squares of logarithms;
1 is linear. That of an iteration tells the solver's linear algebra from the number of its iterations.
"""

from pathlib import Path

import numpy as np

from ..files import write_csv
from ..runs.manifest import git_state, manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import apart
from .cases.planning import ROBOTS

NODES, KINDS, HOWS = (20, 50, 100, 200, 400), ("kinematic", "torque", "rate"), ("cold", "warm", "compiling", "compiled")
FITTED = 50  # nodes from which on growth is fitted
KEYS = ("side", "joints", "robot", "limits", "nodes", "how")
NUMBERS = ("seconds", "CPU", "iterations", "in functions", "in the solver", "outside", "share in functions", "peak MB")
FIELDS = (*KEYS, *NUMBERS, "T", "status")
FITS = ("side", "joints", "limits", "how", "points", "growth", "growth of an iteration", "longest", "CPU there")
CAPTIONS = {
    "planning.png": "Seconds of the processor over the number of nodes, by joints (colours), for each kind of limits; "
    "solid: warm, dashed: cold, dotted: compiled; black: linear growth.",
    "planning.csv": "Every plan: seconds, wall and of the processor; of the wall seconds those in the functions of the "
    "program, in the rest of a solver of CasADi, and outside of it, as where joints are solved apart; peak: of the "
    "process up to there; T: duration [s].",
    "growth.csv": "growth: exponent of nodes in the seconds of the processor, from 50 nodes on; that of an iteration.",
    "runs.csv": apart.RUNS,
}


def run(out, quick=False, progress=None, against=None, only=None):
    """Measure, fit and draw: runs.csv, planning.csv, growth.csv, planning.png, manifest.json in the folder `out`;
    returns the report as a text.

    against: folder of an earlier checkout of the repository, which is measured, too. only: texts, semicolons between
    them; series without any of them in their names, as "7 joints, rate", are left out. quick: a Panda on 10 and 20
    nodes. progress: show a bar on stderr; default on a terminal only. Raises ShapeError for a folder that is no
    checkout, and where no series is left.
    """
    from .planning_figures import plot

    out, earlier = Path(out), apart.checkout(against)
    dofs, kinds, nodes = ((7,), KINDS[:1], (10, 20)) if quick else (tuple(ROBOTS), KINDS, NODES)
    series = apart.chosen_of([(dof, kind) for dof in dofs for kind in kinds], only, named)
    sides, rows = {"before": earlier, "now": None} if earlier else {"now": None}, []
    with bar(progress, len(series) * len(nodes), "planning", " plans") as moved, apart.runs(out, earlier, quick) as one:
        for dof, kind in series:
            late: dict = {}
            for n in nodes:
                moved.set_postfix_str(f"{named((dof, kind))}, {n} nodes")
                for side, folder in sides.items():
                    rows += measured(one, side, folder, dof, kind, n, late)
                moved.update()
    fits = fitted(rows, 1 if quick else FITTED)
    write_csv(out / "planning.csv", [FIELDS, *([row.get(k, "") for k in FIELDS] for row in rows)])
    write_csv(out / "growth.csv", [FITS, *([row[k] for k in FITS] for row in fits)])
    plot(rows, out / "planning.png")
    facts = {"limit": apart.LIMIT, "against": None if earlier is None else git_state(earlier), "growth": fits}
    write_json(
        out / "manifest.json", manifest(apart.typed("planning", out, quick, against=against, only=only), **facts)
    )
    return report(rows, fits)


def named(series):
    """The name of a series, (joints, kind of limits)."""
    return f"{series[0]} joints, {series[1]}"


def measured(one, side, folder, dof, kind, nodes, late):
    """Rows of a plan. late: {(side, whether compiled): why longer ones are left out}, which grows."""
    rows = []
    for compiled in (False, True):
        given = {"dof": dof, "kind": kind, "nodes": nodes, "compiled": compiled}
        reason = late.get((side, compiled))
        if reason:
            told = apart.Told(reason, [], 0.0)
        else:
            name = f"{named((dof, kind))}, {nodes} nodes"
            told = one(
                name, f"{side}, {'compiled' if compiled else 'built'}", 0, apart.Case("planning", "plan", given), folder
            )
            if told.status.startswith("more than"):
                late[side, compiled] = f"left out: {told.status} on {nodes} nodes"
        keys = {"side": side, "joints": dof, "robot": ROBOTS[dof], "limits": kind, "nodes": nodes}
        parts = {p["part"]: p for p in told.parts}
        for how in HOWS[2:] if compiled else HOWS[:2]:
            found = numbers(parts[how]) | {"status": "done"} if how in parts else {"status": told.status}
            rows.append({**keys, "how": how, **found})
    return rows


def numbers(part):
    """{of NUMBERS, and T: number} of a part of cases.planning.plan."""
    whole, within, solver = part["value"], part["functions"], part["solver"]
    found = {"seconds": whole, "CPU": part["cpu"], "iterations": part["iterations"], "in functions": within}
    found |= {"in the solver": solver, "outside": whole - within - solver, "share in functions": within / whole}
    found = {k: round(x, 5) if isinstance(x, float) else x for k, x in found.items()}
    return found | {"peak MB": part["peak"] and round(part["peak"], 1), "T": f"{part['T']:.7g}"}


def fitted(rows, first=FITTED):
    """Rows of FITS; growth is None where fewer than three plans of at least `first` nodes ended (quick: two)."""
    fits, least = [], 3 if first > 1 else 2
    for key in dict.fromkeys(tuple(row[k] for k in ("side", "joints", "limits", "how")) for row in rows):
        own = [r for r in rows if tuple(r[k] for k in ("side", "joints", "limits", "how")) == key and "CPU" in r]
        there = [r for r in own if r["nodes"] >= first]
        fit = dict.fromkeys(("growth", "growth of an iteration"))
        if len(there) >= least:
            n, seconds = ([r[k] for r in there] for k in ("nodes", "CPU"))
            fit["growth"] = exponent(n, seconds)
            if all(r["iterations"] for r in there):
                each = [r["CPU"] / r["iterations"] for r in there]
                fit["growth of an iteration"] = exponent(n, each)
        last = own[-1] if own else {"nodes": None, "CPU": None}
        names = dict(zip(("side", "joints", "limits", "how"), key, strict=True))
        fits.append({**names, "points": len(there), **fit, "longest": last["nodes"], "CPU there": last["CPU"]})
    return fits


def exponent(n, y):
    """That of n in y, by least squares of logarithms; two digits."""
    return round(float(np.polyfit(np.log(n), np.log(y), 1)[0]), 2)


def report(rows, fits):
    """Seconds of the processor over the nodes, a line a series, with its growth, and how many plans did not end."""
    nodes = list(dict.fromkeys(row["nodes"] for row in rows))
    lines = [("side", "joints", "limits", "how", *map(str, nodes), "growth", "of an iteration")]
    for fit in fits:
        own = {r["nodes"]: r for r in rows if all(r[k] == fit[k] for k in ("side", "joints", "limits", "how"))}
        cells = [f"{own[n]['CPU']:.3g}" if "CPU" in own[n] else own[n]["status"][:16] for n in nodes]
        growth = ("" if fit[k] is None else fit[k] for k in ("growth", "growth of an iteration"))
        lines.append((*(fit[k] for k in ("side", "joints", "limits", "how")), *cells, *growth))
    missing = sum(row["status"] != "done" for row in rows)
    return f"{in_columns(lines)}\n{len(rows)} plans [s of the processor], {missing} without an end"
