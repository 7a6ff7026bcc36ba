"""Second partials of named robots: instructions, and times as machine code and in CasADi's virtual machine, against AD:
figures 10 and 19 of Singh et al. 2023. The paper's robots are a double pendulum, UR3, HyQ, Atlas and Talos; here are
the first, the Panda, UR5, HyQ, Talos, embedded ones, and a humanoid of as many degrees of freedom as Atlas.

spatial_vector is the paper's algorithm, IDSVA-SO and FDSVA-SO. ad is one Jacobian of first partials, those of the
method composite, and ad_symmetric the same with what is symmetric computed once, by which the others are measured;
ad_of_theirs is the Jacobian of the paper's own first partials (IDSVA), which the paper takes. ad_pure is AD of AD.
Functions that call others have no instructions.
"""

import shutil
from functools import lru_cache

import casadi as ca
import numpy as np

from .. import robots
from ..drawing import styled
from ..model.canonical import canonical
from ..model.robot import tangent_map
from ..partials.spatial_vector import idsva
from ..runs.points import fill
from ..runs.stored_table import StoredTable
from ..subexpressions import merged
from . import parts, singh_forward
from .functions import TIMES, built, random_ports, steadied
from .native import compiled_runs, in_turns, interpreted, interpreted_runs
from .second_order import FORWARD, INVERSE
from .second_order import humanoid as large_humanoid
from .second_order import robot as file_robot

THEIRS = "ad_of_theirs"
WAYS = {  # timed; the first one is the reference
    INVERSE: ("ad_symmetric", "ad", THEIRS, "spatial_vector", "composite", "compact"),
    FORWARD: ("ad_symmetric", "ad", "spatial_vector", "composite"),
}
COUNTED = {
    INVERSE: ("ad_symmetric", "ad", THEIRS, "ad_pure", "spatial_vector", "composite"),
    FORWARD: ("ad_symmetric", "ad", "composite"),
}
LARGE = "humanoid_36"  # Atlas has 36 degrees of freedom
ROBOTS, QUICK = ("double_pendulum", "panda", "quadruped", "humanoid", LARGE), ("double_pendulum",)
MORE = ("ur5", "hyq", "talos")  # counted, where the wheel example-robot-data is installed
COMPILERS = ("gcc", "clang")
LEFT_OUT = {
    (LARGE, COMPILERS[0]),  # compilers take tens of minutes, and hours for 3 million instructions
    *((name, COMPILERS[1]) for name in (LARGE, "quadruped", "humanoid")),
    (LARGE, THEIRS),
}
FLAGS = ("-O3", "-march=native")
MACHINE = "interpreted"  # CasADi's virtual machine
_KEYS = ("quantity", "robot", "method", "by")


def plan(quick):
    """Points of programs.csv, a list of {key: value}; those of compilers that are not installed are left out."""
    return [
        {"quantity": quantity, "robot": name, "method": m, "by": by}
        for quantity, ways in WAYS.items()
        for name in (QUICK if quick else ROBOTS)
        for by in (MACHINE, *installed())
        for m in ways
        if not {(quantity, name, m), (name, by), (name, m)} & LEFT_OUT
    ]


def counted(quick):
    """Points of robots.csv, likewise; robots whose files are missing are left out."""
    return [
        {"quantity": quantity, "robot": name, "method": m}
        for quantity, ways in COUNTED.items()
        for name in (QUICK if quick else (*ROBOTS, *(name for name in MORE if of_name(name))))
        for m in ways
        if (quantity, name, m) not in LEFT_OUT
    ]


def installed():
    """Compilers that are there."""
    return [name for name in COMPILERS if shutil.which(name)]


def count(out, quick, name, executor="serial", shown=None):
    """Rows of robots.csv of a robot: instructions; rows of the others stay."""
    points = counted(quick)
    table = StoredTable(out / "robots.csv", _KEYS[:3], ("dof", "instructions"), quick=quick)
    rows = fill(table, [keys for keys in points if keys["robot"] == name], _count, executor, shown)
    parts.close(table, table.before, points)
    return rows


def of_name(name):
    """A robot of the study; None if its file is missing."""
    if name == LARGE:
        return large_humanoid()
    return file_robot(name) if name in MORE else robots.by_name(name)


def _count(quantity, robot, method):
    f = made(quantity, robot, method)
    return {"dof": of_name(robot).nv, "instructions": f.n_instructions()}


def _instructions(f):
    return f.n_instructions() if f.is_a("SXFunction") else ""  # not of what calls Functions


@lru_cache(maxsize=8)  # complete: robots of these names are the same each time
def made(quantity, name, method, parted=False):
    """A Function that is measured, of the robot of a name, called as its method; parted: to be compiled."""
    robot = of_name(name)
    if method == THEIRS:
        return _of_theirs(robot)
    if quantity == FORWARD:
        return singh_forward.built(robot, method, parted)
    return built(quantity, robot, method=method, name=method)


def _of_theirs(robot):
    """casadi.Function (q, v, dv) -> second partials of inverse dynamics, one Jacobian of IDSVA's first partials."""
    model = canonical(robot, regroup=True)
    q, v, dv = (ca.SX.sym(*x) for x in (("q", robot.nq), ("v", robot.nv), ("dv", robot.nv)))
    by_q, by_v, M = merged(list(idsva(model, q, v, dv)))
    step = tangent_map(model.robot, q)
    pairs = (by_q, q), (by_v, v), (by_q, v), (M, q)
    qq, vv, qv, dM = (ca.jacobian(ca.vec(x), y) for x, y in pairs)
    tensors = [qq @ step, vv, qv, dM @ step]
    names = "d2tau_dqdq", "d2tau_dvdv", "d2tau_dqdv", "dM_dq"
    return ca.Function(THEIRS, [q, v, dv], merged(tensors), ["q", "v", "dv"], names)


def measure(out, quick, name, shown):
    """Rows of programs.csv of a robot; rows of the others stay."""
    points = plan(quick)
    table = StoredTable(out / "programs.csv", _KEYS, ("dof", "instructions", *TIMES), quick=quick)
    table.begin()
    for group in dict.fromkeys((keys["quantity"], keys["by"]) for keys in points if keys["robot"] == name):
        of = [keys for keys in points if (keys["quantity"], keys["by"], keys["robot"]) == (*group, name)]
        stored = [table.known(**keys) for keys in of]
        if None in stored:
            stored = _timed(name, *group, [keys["method"] for keys in of], quick)
        for keys, row in zip(of, stored, strict=True):
            table.add(**{**row, **keys})
        shown.update(len(of))
    rows = list(table.rows)
    parts.close(table, table.before, points)
    return rows, table.rows


def _timed(name, quantity, by, ways, quick):
    """Rows of all ways, which take turns; ratios are to AD by the same compiler, where there is AD."""
    robot = of_name(name)
    functions = [made(quantity, name, m, parted=quantity == FORWARD and by != MACHINE) for m in ways]
    ports, rounds = random_ports(robot, functions), 5 if quick else 21
    longest = interpreted(functions, ports, rounds=1, calls=1).max()
    calls = int(np.clip(5e-3 / longest, 1, 40))
    if by == MACHINE:
        runs = interpreted_runs(functions, ports)
    else:
        runs, calls = compiled_runs(functions, ports, FLAGS, by, split=True), 20 * calls
    found, _ = steadied(lambda: in_turns(runs, rounds, calls), [0] * len(functions))
    rows = [{"dof": robot.nv, "instructions": _instructions(f), **row} for f, row in zip(functions, found, strict=True)]
    return rows if ways[0] == WAYS[quantity][0] else [row | dict.fromkeys(("ratio", "low", "high"), "") for row in rows]


@styled()
def plot(rows, path):
    """Bars of times: a panel for each quantity, a colour for each method."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from .beyond.figures import MANY

    methods = list(dict.fromkeys(m for ways in WAYS.values() for m in ways))
    looks = {MACHINE: {"hatch": "//"}, COMPILERS[0]: {}, COMPILERS[-1]: {"alpha": 0.55}}
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    figure.suptitle("Second partials of robots: times of a call")
    for axes, quantity in zip(figure.subplots(1, len(WAYS)), WAYS, strict=True):
        of = [row for row in rows if row["quantity"] == quantity]
        shown = list(dict.fromkeys((row["robot"], row["dof"]) for row in of))
        bars = list(dict.fromkeys((row["by"], row["method"]) for row in of))
        for number, (by, m) in enumerate(bars):
            found = [row for row in of if (row["by"], row["method"]) == (by, m)]
            values = [float(row["microseconds"]) for row in found]
            places = np.array([shown.index((row["robot"], row["dof"])) for row in found], float)
            places += 0.8 * ((number + 0.5) / len(bars) - 0.5)
            look = {"color": MANY[methods.index(m)], "edgecolor": "white", **looks.get(by, {})}
            axes.bar(places, values, 0.8 / len(bars), **look)
        axes.set_xticks(range(len(shown)), [f"{name}\n({dof})" for name, dof in shown], fontsize="small")
        axes.set(title=quantity.replace("_", " "), ylabel="µs of a call", yscale="log")
        axes.grid(alpha=0.3, axis="y", which="both")
    named = [Patch(color=MANY[k], label=m) for k, m in enumerate(methods)]
    named += [Patch(facecolor="gray", edgecolor="white", label=by, **look) for by, look in looks.items()]
    figure.legend(handles=named, loc="outside lower center", ncols=len(named), fontsize="small")
    figure.savefig(path, dpi=85)


def report_counts(counts):
    """The table as lines of text."""
    lines = ["Second partials of robots: instructions, and over those of AD, what is symmetric once"]
    for row in counts:
        wanted = row["quantity"], row["robot"], "ad_symmetric"
        (ad,) = (x for x in counts if (x["quantity"], x["robot"], x["method"]) == wanted)
        head = f"{row['quantity'].split('_')[0]:9}{row['robot']:16}{row['dof']:>3} dof  {row['method']:22}"
        lines.append(f"{head}{row['instructions']:>10}{int(row['instructions']) / int(ad['instructions']):7.2f}")
    return lines


def report(rows):
    """The tables as lines of text."""
    lines = [f"Second partials of robots: time of a call, and over that of AD by the same means ({' '.join(FLAGS)})"]
    for row in rows:
        head = f"{row['quantity'].split('_')[0]:9}{row['robot']:16}{row['dof']:>3} dof  "
        head += f"{row['method']:16}{row['by']:12}"
        note = "" if row["steady"] == "yes" else "  not steady"
        ratio = f"{float(row['ratio']):7.2f}" if row["ratio"] else f"{'-':>7}"
        lines.append(f"{head}{float(row['microseconds']):10.2f} µs{ratio}{note}")
    missing = [name for name in COMPILERS if name not in installed()]
    if missing:
        lines.append(f"Not measured, as it is not installed: {', '.join(missing)}")
    return lines
