"""Sensitivities of inverse, forward and hybrid dynamics by recursion, as Kim 2012 gives them, and by AD.

The paper states the recursions (Tables 5 to 7) without figures of cost. Compared here: all partials by q, v and dv (the
recursion applied to every unit direction), adjoints, and derivatives by design parameters. Counted are CasADi
instructions; times are those of CasADi's virtual machine as ratios to the recursion, in rounds in which the ways take
turns; errors are the largest difference to AD at a random state, relative to the largest value.
"""

import time
from pathlib import Path

import numpy as np

from .. import design, robots
from ..design.sensitivity import sensitivity
from ..registry import methods
from ..runs.manifest import manifest, write_json
from ..runs.points import bar, fill
from ..runs.stored_table import StoredTable
from . import apart
from .functions import TIMES, built, new_robot, timed

RECURSION, AD = "recursive_scalar", "ad"
PARTIALS = ("inverse_dynamics_partials", "forward_dynamics_partials", "hybrid_dynamics_partials")
ADJOINTS = ("inverse_dynamics_adjoint", "forward_dynamics_adjoint")
DESIGN = "_by_design"  # behind the name of a quantity: derivatives by parameters of od.design
ROBOTS, QUICK = ("panda", "tree:15", "humanoid"), ("double_pendulum",)
SMALL = "panda"  # the robot whose design is changed
ROUNDS, CALLS = 21, 40

CAPTIONS = {
    "kim.png": "Instructions of sensitivities by recursion, by AD and by this toolkit's own way.",
    "costs.csv": "Instructions, time to build, and largest difference to AD relative to the largest value.",
    "times.csv": "Time of a call by CasADi's virtual machine, and its ratio to the recursion.",
}


def run(out, quick=False, progress=None, executor="serial"):
    """Measure and draw; returns the report as a text.

    out: folder for costs.csv (rows that the same code left there are not measured again), times.csv, kim.png,
    manifest.json. quick: a double pendulum alone. executor: where Functions are built, counted and compared; times are
    measured here.
    """
    from .paper_figures import plot_costs

    out, names = Path(out), QUICK if quick else ROBOTS
    plan = [
        {"quantity": q, "robot": name, "method": m}
        for name in names
        for q in (*PARTIALS, *ADJOINTS)
        for m in methods(q)
        if not m.endswith("along_motion")
    ]
    small = QUICK[0] if quick else SMALL
    plan += [
        {"quantity": q + DESIGN, "robot": small, "method": m}
        for q in ("inverse_dynamics", "forward_dynamics")
        for m in (RECURSION, AD)
    ]
    table = StoredTable(out / "costs.csv", ("quantity", "robot", "method"), ("instructions", "seconds", "error"))
    with bar(progress, len(plan) + 1, "kim") as shown:
        costs = fill(table, plan, _cost, executor, shown)
        table.close(plan)
        times = _times(out / "times.csv", small, quick)
        shown.update()
    for row in costs:
        row["instructions"], row["error"] = int(row["instructions"]), float(row["error"])
    plot_costs(costs, out / "kim.png")
    command = apart.typed("kim", out, quick)
    facts = {"costs": costs, "times": times, "largest_error": max(row["error"] for row in costs)}
    write_json(out / "manifest.json", manifest(command, **facts))
    return report(costs, times)


def _made(quantity, robot, method, name=None):
    if not quantity.endswith(DESIGN):
        return built(quantity, robot, 0, method, name)
    joints = [joint.name for joint in robot.joints][:2]
    parameters = [design.joint_rotation(joint, (0, 1, 0)) for joint in joints]
    parameters += [design.link_length(joints[1], (0, 0, 1)), design.mass(robot.bodies[-1].name)]
    return sensitivity(robot, quantity.removesuffix(DESIGN), parameters, method=method)


def _cost(quantity, robot, method):
    """{"instructions", "seconds", "error"}: the error against AD, which is built as well."""
    r = new_robot(robot)
    start = time.perf_counter()
    f = _made(quantity, r, method)
    seconds = time.perf_counter() - start
    reference = f if method == AD else _made(quantity, r, AD)
    rng = np.random.default_rng(1)
    ports = {n: rng.normal(size=f.size_in(n)) for n in f.name_in() if n not in ("q", "p")}
    ports["q"] = r.random_configuration(1)
    got, want = f(**ports), reference(**ports)
    worst = max(np.abs(np.array(got[k] - want[k])).max() / max(1.0, np.abs(np.array(want[k])).max()) for k in got)
    return {"instructions": f.n_instructions(), "seconds": f"{seconds:.3f}", "error": f"{worst:.2e}"}


def _times(path, name, quick):
    """Rows of times.csv: microseconds of a call, and ratios to the recursion."""
    r = robots.by_name(name)
    table = StoredTable(path, ("quantity", "robot", "method"), TIMES)
    keys, first = [], []  # all take turns; the number of the recursion to the same quantity
    for quantity in (*PARTIALS, *ADJOINTS):
        ways = [RECURSION, *(m for m in methods(quantity) if m != RECURSION and not m.endswith("along_motion"))]
        first += [len(keys)] * len(ways)
        keys += [(quantity, m) for m in ways]
    functions = [_made(q, r, m, f"{q}_{m}") for q, m in keys]
    rounds, calls = (3, 10) if quick else (ROUNDS, CALLS)
    for (quantity, m), row in zip(keys, timed(r, functions, first, rounds, calls), strict=True):
        table.add(quantity=quantity, robot=name, method=m, **row)
    table.close()
    return table.rows


def report(costs, times):
    """The tables as a text."""
    lines = ["Instructions, as a ratio to Kim's recursion, and the largest difference to AD"]
    for row in costs:
        (reference,) = (
            x["instructions"]
            for x in costs
            if (x["quantity"], x["robot"], x["method"]) == (row["quantity"], row["robot"], RECURSION)
        )
        lines.append(
            f"{row['quantity']:29}{row['robot']:16}{row['method']:20}{row['instructions']:>9}"
            f"{row['instructions'] / reference:8.2f}{row['error']:10.1e}"
        )
    lines += ["", "Time of a call without compilation [us], and as a ratio to Kim's recursion (~: not steady)"]
    lines += [
        f"{row['quantity']:29}{row['robot']:16}{row['method']:20}{row['microseconds']:>9}{float(row['ratio']):8.2f}"
        f"{'' if row['steady'] == 'yes' else ' ~'}"
        for row in times
    ]
    return "\n".join(lines)
