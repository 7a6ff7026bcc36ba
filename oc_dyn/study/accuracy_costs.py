"""What accuracy costs: the check of a solution, the estimate of its errors, and refinement, beside a solve; and memory.

Problems are solved on 100 to 3200 intervals, each in a process of its own, which knows its peak of memory: once from
nothing, which builds the functions of the program, of the check and of the estimate, and once again from the guess,
where all is built. Refinement starts from a few intervals and ends where tolerance= is reached; beside it stands a
solve of the mesh that it ends on, from the guess.
"""

import time
from pathlib import Path

import casadi as ca
import numpy as np

from ..files import write_csv
from ..optimal_control.problem import Problem
from ..robots import panda
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import apart
from .memory import fresh, peak
from .suite import listed, load

INTERVALS, QUICK = (100, 200, 400, 800, 1600, 3200), (50, 100)
TOLERANCES, COARSE = (1e-4, 1e-6), 10
FIELDS = ("problem", "method", "intervals", "iterations", "solve", "check", "estimate", "check share", "estimate share")
FIELDS += ("again: solve", "check ", "estimate ", "check share ", "estimate share ", "peak MB", "kB per interval")
ROUNDS = ("problem", "method", "tolerance", "rounds", "intervals", "error of states", "estimate of objective")
ROUNDS += ("seconds", "of rounds before the last", "solve of the last mesh", "refinement over that solve")
CAPTIONS = {
    "accuracy_costs.csv": "Seconds and shares of a solve, once with all that is built for it and once again with that "
    "kept; peak of the memory of the process, and what each interval adds to it from one row to the next.",
    "refinement.csv": "solve(tolerance=...) from 10 intervals, and a solve of the mesh that it ends on from the guess, "
    "check and estimate left out, each in a process of its own.",
}


def cart_pole(nodes):
    """A pendulum on a cart swings up with least effort; 4 states, a control: problem 39 of known_optima."""
    return load(listed()[39]).problem(nodes)


def hypersensitive(nodes):
    """What happens, happens at the ends; a state, a control."""
    ocp = Problem(nodes, 25.0)
    x, u = ocp.state("x", guess=0.1), ocp.control("u")
    ocp.rate(x, -(x**3) + u)
    ocp.start({x: 1.5})
    ocp.goal({x: 1})
    ocp.minimize(integral=(x**2 + u**2) / 2)
    return ocp


def arm(nodes):
    """A Panda from rest to rest with little torque and acceleration; 14 states, 7 controls."""
    ocp = Problem(nodes, 1.5)
    q, v, dv, tau = ocp.rigid_body(panda(), "inverse")
    ocp.start({q: np.tile([0.0, 0.3, 0.0, -1.5, 0.0, 1.5, 0.0], 1), v: 0})
    ocp.goal({q: np.array([0.5, 0.6, 0.2, -1.2, 0.3, 1.8, 0.4]), v: 0})
    ocp.minimize(integral=1e-3 * ca.sumsqr(tau) + 1e-2 * ca.sumsqr(dv))
    return ocp


CASES = {"hypersensitive": hypersensitive, "cart pole": cart_pole, "arm": arm}
METHODS = {"hypersensitive": "radau", "cart pole": "hermite_simpson", "arm": "rk4"}


def run(out, quick=False, progress=None):
    """Measure, and write accuracy_costs.csv, refinement.csv and manifest.json to the folder `out`; returns the tables.

    quick: few intervals. progress: show a bar on stderr; default on a terminal only.
    """
    sizes, tolerances = (QUICK, TOLERANCES[:1]) if quick else (INTERVALS, TOLERANCES)
    rows, rounds = [], []
    with bar(progress, len(CASES) * (len(sizes) + len(tolerances)), "accuracy_costs", " runs") as shown:
        for name in CASES:
            shown.set_postfix_str(name)
            for nodes in sizes:
                rows.append(_row(fresh(measured, name=name, nodes=nodes), rows))
                shown.update()
            for tolerance in tolerances:
                rounds.append(_round(fresh(refined, name=name, tolerance=tolerance), name))
                shown.update()
    cells = [[row[k] for k in FIELDS] for row in rows]
    cells_of_rounds = [[row[k] for k in ROUNDS] for row in rounds]
    write_csv(Path(out) / "accuracy_costs.csv", [FIELDS, *cells])
    write_csv(Path(out) / "refinement.csv", [ROUNDS, *cells_of_rounds])
    command = apart.typed("accuracy_costs", out, quick)
    write_json(Path(out) / "manifest.json", manifest(command, intervals=sizes, tolerances=tolerances))
    tables = ([[k.strip() for k in FIELDS], *cells], [ROUNDS, *cells_of_rounds])
    return "\n\n".join(map(in_columns, tables))


def measured(name, nodes):
    """{what: seconds, MB, number} of one case on so many intervals; for a process of its own."""
    problem = CASES[name](nodes)
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        solution = problem.solve(method=METHODS[name], check="off")
        solved = time.perf_counter()
        solution.check()
        checked = time.perf_counter()
        error = solution.error
        times.append((solved - begun, checked - solved, time.perf_counter() - checked))
    return {
        "name": name,
        "intervals": nodes,
        "iterations": solution.iterations,
        "times": times,
        "peak": peak(),
        "objective": solution.objective,
        "error": error.objective,
    }


def refined(name, tolerance):
    """What refinement to a tolerance takes, and a solve on its last mesh; for a process of its own."""
    begun = time.perf_counter()
    found = CASES[name](COARSE).solve(method=METHODS[name], tolerance=tolerance, check="off", raises=False)
    whole = time.perf_counter() - begun
    again = CASES[name](COARSE).with_mesh(len(found.t) - 1, mesh=found.description.phases[0].breakpoints)
    begun = time.perf_counter()
    again.solve(method=found.method, check="off", raises=False)
    return {
        "tolerance": tolerance,
        "rounds": len(found.rounds),
        "intervals": len(found.t) - 1,
        "error": found.error.states,
        "estimate": found.error.objective,
        "reached": found.success,
        "seconds": whole,
        "before": sum(r.seconds for r in found.rounds[:-1]),
        "last": time.perf_counter() - begun,
    }


def _row(told, before):
    """A row of FIELDS. before: the rows so far."""
    row = {"problem": told["name"], "method": METHODS[told["name"]]}
    row |= {"intervals": told["intervals"], "iterations": told["iterations"]}
    keys = (("solve", "check", "estimate"), ("again: solve", "check ", "estimate "))
    for (solve, *others), (first, *times) in zip(keys, told["times"], strict=True):
        row[solve] = f"{first:.3f}"
        for key, seconds in zip(others, times, strict=True):
            row[key] = f"{seconds:.3f}"
            row[key.strip() + " share" + key[len(key.strip()) :]] = f"{seconds / first:.1%}"
    row["peak MB"] = "" if told["peak"] is None else f"{told['peak']:.1f}"
    last = before[-1] if before and before[-1]["problem"] == told["name"] else None
    row["kB per interval"] = ""
    if last and told["peak"] is not None:
        added = told["peak"] - float(last["peak MB"])
        row["kB per interval"] = f"{1000 * added / (told['intervals'] - last['intervals']):.1f}"
    return row


def _round(told, name):
    """A row of ROUNDS."""
    values = [name, METHODS[name], f"{told['tolerance']:g}", told["rounds"], told["intervals"]]
    values += [f"{told['error']:.1e}", f"{told['estimate']:.1e}" + ("" if told["reached"] else " (not reached)")]
    values += [f"{told[key]:.3f}" for key in ("seconds", "before", "last")]
    return dict(zip(ROUNDS, [*values, f"{told['seconds'] / told['last']:.2f}"], strict=True))
