"""How many instructions inverse and forward dynamics take: over the order, and over the number of bodies.

A Function of order r computes orders 0..r, so that a cost that grows linearly from order to order adds up to a
quadratic one. Counted are CasADi instructions, the same on every machine, and how many numbers a Function keeps while
it runs; the time to build it, from the robot's description on, its size as a file, and, for the default methods and the
strongest AD, the memory that building takes are noted beside them.
"""

import math
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from .. import robots
from ..executors import completed
from ..function import function
from ..registry import get, get_method, methods
from ..runs.manifest import manifest, write_json
from ..runs.points import bar as _bar
from ..runs.points import measured, named
from ..runs.stored_table import StoredTable
from . import apart
from .functions import new_robot
from .memory import fresh, peak

QUANTITIES = ("inverse_dynamics", "forward_dynamics")
KEYS = ("quantity", "method", "robot", "bodies", "order")
VALUES = ("instructions", "seconds", "note")
WEIGHED = ("instructions", "work", "bytes", "seconds", "peak_mb", "note")
STRONGEST = dict.fromkeys(QUANTITIES, "ad_taylor")  # of the methods by AD
ORDERS = range(13)
SIZES = (2, 5, 10, 20, 50, 100, 150, 200)
MOST = 400_000, 150_000  # instructions beyond which a Function is not built: default methods, others
LONG = 20  # bodies from which on a line is fitted: short chains are solved in another way

_TABLE = "instructions of every Function; work: numbers it keeps while it runs; bytes: its size as a file; "
_TABLE += "seconds: to build it; peak_mb: by how much the memory of a new process grows meanwhile"
CAPTIONS = {
    "growth.png": "Instructions of Functions of orders 0 to r, Panda: above the default method and the strongest AD on "
    "plain axes, with the parabola fitted; below all methods.",
    "bodies.png": "Instructions over the number of bodies: above the default method on chains and trees, with "
    "lines fitted; below all methods on chains, order 2.",
    "memory.png": "Memory that building takes, size as a file, and numbers that a call keeps, over the instructions.",
    "growth.csv": f"Over the order: {_TABLE}.",
    "bodies.csv": f"Over the number of bodies: {_TABLE}.",
}


@dataclass
class Series:
    """Counts of one method, over the order (order is None) or over the number of bodies."""

    quantity: str
    method: str
    robot: str
    order: int | None
    places: list = field(default_factory=list)  # orders, or numbers of bodies
    instructions: list = field(default_factory=list)
    seconds: list = field(default_factory=list)
    work: list = field(default_factory=list)
    bytes: list = field(default_factory=list)
    peaks: list = field(default_factory=list)  # MB; None where it was not measured
    fits: dict = field(default_factory=dict)  # by degree, see fit()

    weigh: bool = False

    @property
    def weighed(self):
        """The memory that building takes is measured."""
        return self.weigh and self.method in (get(self.quantity).default[0], STRONGEST[self.quantity])

    def most(self, bounds):
        """Instructions beyond which its Functions are not built, of bounds as MOST, or of one for all."""
        if isinstance(bounds, int):
            return bounds
        return bounds[0 if self.method == get(self.quantity).default[0] else 1]


def run(out, quick=False, progress=None, executor="serial"):
    """Measure, fit and draw; returns the report as a text.

    out: folder for growth.csv, bodies.csv (rows that the same code left there are not measured again), growth.png,
    bodies.png, memory.png, manifest.json. Columns: work, the numbers that a Function keeps while it runs; bytes, its
    size as a file of CasADi; peak_mb, by how much the memory of a process grows when it is built. quick: few orders and
    bodies. progress: show a bar on stderr; default on a terminal only.
    executor: where Functions are built, see oc_dyn.executors.
    """
    from .growth_figures import plot_bodies, plot_memory, plot_orders

    out = Path(out)
    orders, sizes, most, long = (range(4), (2, 4, 6), (9000, 4000), 0) if quick else (ORDERS, SIZES, MOST, LONG)
    plans = _over_orders(orders, quick), _over_bodies(sizes, quick)
    with _bar(progress, sum(len(points) for plan in plans for _, points in plan), "growth", " Functions") as bar:
        by_order = _measure(out / "growth.csv", plans[0], most, bar, executor, WEIGHED)
        by_bodies = _measure(out / "bodies.csv", plans[1], most, bar, executor, WEIGHED)
    for s in by_order:
        s.fits = {degree: fit(s.places, s.instructions, degree) for degree in (2, 3)}
    for s in by_bodies:
        s.fits = {degree: fit(s.places, s.instructions, degree, long) for degree in (1, 2)}
    plot_orders(by_order, out / "growth.png")
    plot_bodies(by_bodies, out / "bodies.png", long)
    plot_memory(by_order, by_bodies, out / "memory.png")
    command = apart.typed("growth", out, quick)
    facts = {"most_instructions": most, "lines_fitted_from_bodies": long}
    series = {"over_order": by_order, "over_bodies": by_bodies}
    facts |= {name: [_fits_as_facts(s) for s in x] for name, x in series.items()}
    write_json(out / "manifest.json", manifest(command, **facts))
    return report(by_order, by_bodies, most, long)


# -- measuring ------------------------------------------------------------------------------------------------


def _over_orders(orders, quick=False):
    """[(Series without numbers, [(bodies, order), ...]), ...] over the order."""
    panda, out = robots.panda(), []
    for quantity in QUANTITIES:
        for m in methods(quantity):
            able = [r for r in orders if get_method(quantity, m).refusal(panda, r) is None]
            if len(able) > 3:
                weigh = not quick or m == get(quantity).default[0]
                out.append((Series(quantity, m, "panda", None, weigh=weigh), [(panda.nv, r) for r in able]))
    return out


def _over_bodies(sizes, quick=False):
    """The same over the number of bodies: chains, for the default method trees too; AD is no method of order 0."""
    out = []
    for quantity in QUANTITIES:
        for m in methods(quantity):
            record = get_method(quantity, m)
            for robot in ("chain", "tree") if m == get(quantity).default[0] else ("chain",):
                for r in (2,) if record.kind == "ad" else (0, 2):
                    if record.refusal(robots.by_name(robot), r) is None:
                        out.append((Series(quantity, m, robot, r, weigh=not quick), [(n, r) for n in sizes]))
    return out


def _measure(path, plan, most, bar, executor="serial", values=VALUES):
    """Fill the series of a plan; every row is written to the table at once. Series go side by side, where the executor
    has room, and each from one place to the next, which tells what the following one will cost."""
    table, tasks, whose = StoredTable(path, KEYS, values), [], []
    table.begin()
    rest = [list(points) for _, points in plan]

    def go_on(number):
        """Take what is known or too large; have the next point of the series built."""
        s = plan[number][0]
        while rest[number]:
            bodies, order = rest[number].pop(0)
            row = _keys(s, bodies, order)
            known = table.known(**row)
            if _expected(s, _place(s, row)) > s.most(most):
                note(row, note=f"left out: more than {s.most(most)} instructions to expect")
            elif known and known["instructions"] and (known.get("peak_mb") or not s.weighed or peak() is None):
                keep(s, row, known)
            else:
                tasks.append((_weighed if s.weighed else _unweighed, row))
                whose.append(number)
                return

    def keep(s, row, measured_row):
        note(row, **{k: measured_row[k] for k in values if k != "note"})
        s.places.append(_place(s, row))
        for k in ("instructions", "work", "bytes"):
            if k in values:
                getattr(s, k).append(int(measured_row[k]))
        s.seconds.append(float(measured_row["seconds"]))
        s.peaks.append(float(measured_row["peak_mb"]) if measured_row.get("peak_mb") else None)

    def note(row, **values):
        table.add(**row, **values)
        bar.set_postfix_str(named(row))
        bar.update()

    for number in range(len(plan)):
        go_on(number)
    with closing(completed(measured, tasks, executor, lambda k: named(tasks[k][1]))) as done:
        for k, found, error in done:
            if error is not None:
                raise error
            keep(plan[whose[k]][0], tasks[k][1], found)
            go_on(whose[k])
    table.close([_keys(s, *point) for s, points in plan for point in points])
    return [s for s, _ in plan]


def _keys(s, bodies, order):
    return {"quantity": s.quantity, "method": s.method, "robot": s.robot, "bodies": bodies, "order": order}


def _place(s, row):
    return row["order"] if s.order is None else row["bodies"]


def _build(quantity, method, robot, bodies, order):
    """What a Function is, and the time to build it [s], on a robot without stored Functions."""
    robot = new_robot(robot, bodies)
    before, start = peak(), time.perf_counter()
    f = function(robot, quantity, order=order, method=method)
    count = f.n_instructions()
    seconds, after = time.perf_counter() - start, peak()
    grown = "" if before is None else f"{after - before:.1f}"
    facts = {"instructions": count, "work": f.sz_w(), "bytes": len(f.serialize()), "seconds": f"{seconds:.3f}"}
    return facts | {"peak_mb": grown}


def _weighed(**keys):
    """The same in a new process, whose memory nothing else has used."""
    return fresh(_build, **keys)


def _unweighed(**keys):
    return _build(**keys) | {"peak_mb": ""}


def _expected(s, place):
    """Instructions to expect: by the factor of the last order, by the last power of the number of bodies; after a first
    Function three times as many with each order, which is the most that AD takes, and with the third power of the
    bodies."""
    if not s.places:
        return 0
    last, ratio = s.instructions[-1], s.instructions[-1] / s.instructions[-2] if len(s.places) > 1 else None
    if s.order is None:
        return last * min(ratio or 3, 3) ** (place - s.places[-1])
    power = math.log(ratio) / math.log(s.places[-1] / s.places[-2]) if ratio else 3
    return last * (place / s.places[-1]) ** power


# -- fitting and telling --------------------------------------------------------------------------------------


def fit(places, counts, degree, first=0):
    """Polynomial through the counts at places from `first` on; None where they are too few to tell.

    {"coefficients": constant first, "residual": largest, as a share of the largest count, "top_term": what the highest
    power has in the last count, as a share of it}.
    """
    points = [(x, y) for x, y in zip(places, counts, strict=True) if x >= first]
    if len(points) < degree + 2:
        return None
    x, y = np.array(points, float).T
    p = np.polynomial.Polynomial.fit(x, y, degree)
    c = p.convert().coef
    top = c[-1] * x[-1] ** degree / y[-1]
    return {"coefficients": c, "residual": np.abs(p(x) - y).max() / y.max(), "top_term": top}


def _fits_as_facts(s):
    names = ("quantity", "method", "robot", "order", "fits")
    return {k: x for k, x in asdict(s).items() if k in names and x is not None}


def report(by_order, by_bodies, most, long):
    """The table of counts and fits as a text."""
    heads = ("first", "", "last", "", "last/before", "off by", "next power", "fitted")
    lines = ["Instructions over the order r (Panda, a Function computes orders 0..r)", _row("", *heads)]
    lines += [_fit_as_text(s, 2, "r") for s in by_order]
    lines += ["", f"Instructions over the number n of bodies (lines fitted from {long} bodies on)", _row("", *heads)]
    lines += [_fit_as_text(s, 1, "n") for s in by_bodies]
    lines += [
        "",
        "The largest Functions of the default methods and the strongest AD: what building them takes, and running",
    ]
    lines.append(
        f"{'':50}{'instructions':>13}{'numbers kept':>14}{'file [MB]':>11}{'built in [s]':>14}{'peak [MB]':>11}"
    )
    lines += [_memory_as_text(s) for s in (*by_order, *by_bodies) if s.weighed and s.places]
    lines += [
        "",
        f"A method ends where more than {most[1]} instructions are to be expected, the default ones at {most[0]}.",
        "Numbers kept: of 8 bytes each, the memory of a call. Peak: by how much the memory of a process grows.",
        "Next power: the highest term of a polynomial of one degree more, as a share of the last count.",
        "Forward dynamics by taylor: small trees factorise the mass matrix, which costs bodies times depth; larger",
        "trees and chains take articulated inertias.",
    ]
    return "\n".join(lines)


def _memory_as_text(s):
    what = f"{_name(s)}{', r' if s.order is None else ', n'}={s.places[-1]}"
    peak_mb = "-" if s.peaks[-1] is None else f"{s.peaks[-1]:.0f}"
    line = f"{what:50}{s.instructions[-1]:13}{s.work[-1]:14}{s.bytes[-1] / 1e6:11.1f}{s.seconds[-1]:14.1f}"
    return f"{line}{peak_mb:>11}"


def _name(s):
    return f"{s.quantity.split('_')[0]} {s.method}" + ("" if s.order is None else f", {s.robot}, order {s.order}")


def _fit_as_text(s, degree, x):
    name = _name(s)
    counts, factor = s.instructions, f"{s.instructions[-1] / s.instructions[-2]:.2f}" if len(s.places) > 1 else "-"
    low, high = s.fits[degree], s.fits[degree + 1]
    if low is None:
        off, formula = "-", "-"
    else:
        terms = [f"{c:+.0f}{('', f' {x}', f' {x}^2')[k]}" for k, c in enumerate(low["coefficients"])]
        off, formula = f"{100 * low['residual']:.1f} %", " ".join(terms)
    beyond = f"{100 * high['top_term']:+.1f} %" if high else "-"
    ends = [f"{x}={p}" for p in (s.places[0], s.places[-1])]
    return _row(name, ends[0], counts[0], ends[1], counts[-1], factor, off, beyond, formula)


def _row(name, a, b, c, d, *rest):
    cells = zip(rest[:3], (12, 9, 11), strict=True)
    return f"{name:50}{a:>6}{b:>7}{c:>7}{d:>8}{''.join(f'{x:>{w}}' for x, w in cells)}  {rest[3]}".rstrip()
