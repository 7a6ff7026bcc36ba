"""Second partials of named robots: instructions, and times as machine code and in CasADi's virtual machine, against AD:
figures 10 and 19 of Singh et al. 2023. The paper's robots are a double pendulum, UR3, HyQ, Atlas and Talos; counted
here are the first, the Panda, UR5, HyQ, Talos, embedded ones, and a humanoid of as many degrees of freedom as Atlas.

ad is one Jacobian of first partials, those of the method composite: the paper takes its own first partials, too.
ad_pure is AD of AD. spatial_vector is the paper's algorithm. Functions that call others have no instructions.
"""

import shutil

import numpy as np

from .. import robots
from ..drawing import styled
from ..runs.points import fill
from ..runs.stored_table import StoredTable
from .functions import TIMES, built, random_ports, summary
from .native import interpreted, times
from .second_order import FORWARD, INVERSE
from .second_order import humanoid as large_humanoid
from .second_order import robot as file_robot

WAYS = {  # timed; the first one is the reference
    INVERSE: ("ad", "spatial_vector", "composite", "compact"),
    FORWARD: ("ad", "composite"),
}
COUNTED = {INVERSE: ("ad", "ad_pure", "spatial_vector", "composite"), FORWARD: WAYS[FORWARD]}
LARGE = "humanoid_36"  # Atlas has 36 degrees of freedom
ROBOTS, QUICK = ("double_pendulum", "panda", "quadruped", "humanoid", LARGE), ("double_pendulum",)
MORE = ("ur5", "hyq", "talos")  # counted, where the wheel example-robot-data is installed
LEFT_OUT = {(FORWARD, LARGE), (FORWARD, "talos")}  # 4 million instructions: 100 MB of C, hours of a compiler
COMPILERS = ("gcc", "clang")
FLAGS = ("-O3", "-march=native")
MACHINE = "interpreted"  # CasADi's virtual machine
_KEYS = ("quantity", "robot", "method", "by")


def plan(quick):
    """Points of programs.csv, a list of {key: value}; those of compilers that are not installed are left out."""
    return [
        {"quantity": quantity, "robot": name, "method": m, "by": by}
        for quantity, ways in WAYS.items()
        for name in (QUICK if quick else ROBOTS)
        if (quantity, name) not in LEFT_OUT
        for by in (MACHINE, *installed())
        for m in ways
    ]


def installed():
    """Compilers that are there."""
    return [name for name in COMPILERS if shutil.which(name)]


def count(out, quick, executor="serial", shown=None):
    """Rows of robots.csv: instructions."""
    names = QUICK if quick else (*ROBOTS, *(name for name in MORE if of_name(name)))
    points = [
        {"quantity": quantity, "robot": name, "method": m}
        for quantity, ways in COUNTED.items()
        for name in names
        if (quantity, name) not in LEFT_OUT
        for m in ways
    ]
    table = StoredTable(out / "robots.csv", _KEYS[:3], ("dof", "instructions"), quick=quick)
    rows = fill(table, points, _count, executor, shown)
    table.close(points)
    return rows


def of_name(name):
    """A robot of the study; None if its file is missing."""
    if name == LARGE:
        return large_humanoid()
    return file_robot(name) if name in MORE else robots.by_name(name)


def _count(quantity, robot, method):
    r = of_name(robot)
    return {"dof": r.nv, "instructions": built(quantity, r, method=method).n_instructions()}


def measure(out, quick, shown):
    """Rows of programs.csv."""
    points = plan(quick)
    table = StoredTable(out / "programs.csv", _KEYS, ("dof", "instructions", *TIMES), quick=quick)
    table.begin()
    for group in dict.fromkeys((keys["quantity"], keys["robot"], keys["by"]) for keys in points):
        of = [keys for keys in points if (keys["quantity"], keys["robot"], keys["by"]) == group]
        stored = [table.known(**keys) for keys in of]
        if None in stored:
            stored = _timed(*group, quick)
        for keys, row in zip(of, stored, strict=True):
            table.add(**{**row, **keys})
        shown.update(len(of))
    table.close(points)
    return table.rows


def _timed(quantity, name, by, quick):
    """Rows of all methods, which take turns; ratios are to AD by the same compiler."""
    robot = of_name(name)
    made = [built(quantity, robot, method=m, name=m) for m in WAYS[quantity]]
    ports, rounds = random_ports(robot, made), 5 if quick else 21
    longest = interpreted(made, ports, rounds=1, calls=1).max()
    calls = int(np.clip(5e-3 / longest, 1, 40))
    if by == MACHINE:
        seconds = interpreted(made, ports, rounds, calls)
    else:
        seconds = times(made, ports, rounds, 20 * calls, FLAGS, by, split=True)
    counts = [f.n_instructions() if f.is_a("SXFunction") else "" for f in made]  # not of what calls Functions
    rows = summary(seconds, [0] * len(made))
    return [{"dof": robot.nv, "instructions": c, **row} for c, row in zip(counts, rows, strict=True)]


@styled()
def plot(rows, path):
    """Bars of times: a panel for each quantity."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    figure.suptitle("Second partials of robots: times of a call (hatched: in CasADi's virtual machine)")
    for axes, (quantity, ways) in zip(figure.subplots(1, len(WAYS)), WAYS.items(), strict=True):
        of = [row for row in rows if row["quantity"] == quantity]
        names = list(dict.fromkeys((row["robot"], row["dof"]) for row in of))
        bars = list(dict.fromkeys((row["by"], row["method"]) for row in of))
        for number, (by, m) in enumerate(bars):
            values = [float(row["microseconds"]) for row in of if (row["by"], row["method"]) == (by, m)]
            places = np.arange(len(values)) + 0.8 * ((number + 0.5) / len(bars) - 0.5)
            look = {"color": f"C{ways.index(m)}", "edgecolor": "white", "hatch": "//" if by == MACHINE else None}
            look["alpha"] = 0.6 if by == COMPILERS[1] else 1.0
            axes.bar(places, values, 0.8 / len(bars), label=f"{m}, {by}", **look)
        axes.set_xticks(range(len(names)), [f"{name}\n({dof})" for name, dof in names], fontsize="small")
        axes.set(title=quantity.replace("_", " "), ylabel="µs of a call", yscale="log")
        axes.grid(alpha=0.3, axis="y", which="both")
        axes.legend(fontsize="x-small", framealpha=0.5)
    figure.savefig(path, dpi=85)


def report(rows, counts=()):
    """The tables as lines of text."""
    lines = ["Second partials of robots: instructions, and over those of AD of first partials"] if counts else []
    for row in counts:
        wanted = row["quantity"], row["robot"], "ad"
        (ad,) = (x for x in counts if (x["quantity"], x["robot"], x["method"]) == wanted)
        head = f"{row['quantity'].split('_')[0]:9}{row['robot']:16}{row['dof']:>3} dof  {row['method']:22}"
        lines.append(f"{head}{row['instructions']:>10}{int(row['instructions']) / int(ad['instructions']):7.2f}")
    lines += [f"Second partials of robots: time of a call, and over that of AD by the same means ({' '.join(FLAGS)})"]
    for row in rows:
        head = f"{row['quantity'].split('_')[0]:9}{row['robot']:16}{row['dof']:>3} dof  "
        head += f"{row['method']:10}{row['by']:12}"
        note = "" if row["steady"] == "yes" else "  not steady"
        lines.append(f"{head}{float(row['microseconds']):10.2f} µs{float(row['ratio']):7.2f}{note}")
    missing = [name for name in COMPILERS if name not in installed()]
    if missing:
        lines.append(f"Not measured, as it is not installed: {', '.join(missing)}")
    return lines
