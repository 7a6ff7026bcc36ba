"""How many instructions inverse and forward dynamics take: over the order, and over the number of bodies.

A Function of order r computes orders 0..r, so that a cost that grows linearly from order to order adds up to a
quadratic one. Counted are CasADi instructions, the same on every machine; the time to build a Function, from the
robot's description on, is noted beside them.
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
from .functions import made
from .manifest import manifest, write_json
from .points import bar as _bar
from .points import measured, named
from .rows import Rows

QUANTITIES = ("inverse_dynamics", "forward_dynamics")
KEYS, VALUES = ("quantity", "method", "robot", "bodies", "order"), ("instructions", "seconds", "note")
ORDERS = range(11)
SIZES = (2, 5, 10, 20, 40, 60, 80, 100)
MOST = 300_000, 150_000  # instructions beyond which a Function is not built: over the order, over bodies
LONG = 20  # bodies from which on a line is fitted: short chains are solved in another way


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
    fits: dict = field(default_factory=dict)  # by degree, see fit()


def run(out, quick=False, progress=None, executor="serial"):
    """Measure, fit and draw; returns the report as a text.

    out: folder for growth.csv, bodies.csv (rows that the same code left there are not measured again), growth.png,
    bodies.png, manifest.json. quick: few orders and bodies. progress: show a bar on stderr; default on a terminal only.
    executor: where Functions are built, see oc_dyn.executors.
    """
    from .growth_figures import plot_bodies, plot_orders

    out = Path(out)
    orders, sizes, most, long = (range(4), (2, 4, 6), (9000, 3000), 0) if quick else (ORDERS, SIZES, MOST, LONG)
    plans = _over_orders(orders), _over_bodies(sizes)
    with _bar(progress, sum(len(points) for plan in plans for _, points in plan), "growth", " Functions") as bar:
        by_order = _measure(out / "growth.csv", plans[0], most[0], bar, executor)
        by_bodies = _measure(out / "bodies.csv", plans[1], most[1], bar, executor)
    for s in by_order:
        s.fits = {degree: fit(s.places, s.instructions, degree) for degree in (2, 3)}
    for s in by_bodies:
        s.fits = {degree: fit(s.places, s.instructions, degree, long) for degree in (1, 2)}
    plot_orders(by_order, out / "growth.png")
    plot_bodies(by_bodies, out / "bodies.png", long)
    command = ["oc-dyn", "study", "growth", *(["--quick"] if quick else []), "--out", out]
    facts = {"most_instructions": most, "lines_fitted_from_bodies": long}
    facts |= {"over_order": [_told_fits(s) for s in by_order], "over_bodies": [_told_fits(s) for s in by_bodies]}
    write_json(out / "manifest.json", manifest(command, **facts))
    return report(by_order, by_bodies, most, long)


# -- measuring ------------------------------------------------------------------------------------------------


def _over_orders(orders):
    """[(Series without numbers, [(bodies, order), ...]), ...] over the order."""
    panda, out = robots.panda(), []
    for quantity in QUANTITIES:
        for m in methods(quantity):
            able = [r for r in orders if get_method(quantity, m).refusal(panda, r) is None]
            if len(able) > 3:
                out.append((Series(quantity, m, "panda", None), [(panda.nv, r) for r in able]))
    return out


def _over_bodies(sizes):
    """The same over the number of bodies: chains, for the default method trees too; AD is no method of order 0."""
    out = []
    for quantity in QUANTITIES:
        for m in methods(quantity):
            found = get_method(quantity, m)
            for robot in ("chain", "tree") if m == get(quantity).default[0] else ("chain",):
                for r in (2,) if found.kind == "ad" else (0, 2):
                    if found.refusal(robots.by_name(robot), r) is None:
                        out.append((Series(quantity, m, robot, r), [(n, r) for n in sizes]))
    return out


def _measure(path, plan, most, bar, executor="serial"):
    """Fill the series of a plan; every row is written to the table at once. Series go side by side, where the executor
    has room, and each from one place to the next, which tells what the following one will cost."""
    table, tasks, whose = Rows(path, KEYS, VALUES), [], []
    table.begin()
    rest = [list(points) for _, points in plan]

    def go_on(number):
        """Take what is known or too large; have the next point of the series built."""
        s = plan[number][0]
        while rest[number]:
            bodies, order = rest[number].pop(0)
            row = _keys(s, bodies, order)
            known = table.known(**row)
            if _expected(s, _place(s, row)) > most:
                note(row, note=f"left out: more than {most} instructions to expect")
            elif known and known["instructions"]:
                keep(s, row, int(known["instructions"]), float(known["seconds"]))
            else:
                tasks.append((_build, row))
                whose.append(number)
                return

    def keep(s, row, count, seconds):
        note(row, instructions=count, seconds=f"{seconds:.3f}")
        s.places.append(_place(s, row))
        s.instructions.append(count)
        s.seconds.append(seconds)

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
            keep(plan[whose[k]][0], tasks[k][1], *found)
            go_on(whose[k])
    table.close([_keys(s, *point) for s, points in plan for point in points])
    return [s for s, _ in plan]


def _keys(s, bodies, order):
    return {"quantity": s.quantity, "method": s.method, "robot": s.robot, "bodies": bodies, "order": order}


def _place(s, row):
    return row["order"] if s.order is None else row["bodies"]


def _build(quantity, method, robot, bodies, order):
    """Instructions and build time [s] of a Function, on a robot made anew: Functions are kept with their robot."""
    robot = made(robot, bodies)
    start = time.perf_counter()
    f = function(robot, quantity, order=order, method=method)
    return f.n_instructions(), time.perf_counter() - start


def _expected(s, place):
    """Instructions to expect: by the factor of the last order, by the last power of the number of bodies; after a first
    Function three times as many with each order, and with the third power of the bodies."""
    if not s.places:
        return 0
    last, ratio = s.instructions[-1], s.instructions[-1] / s.instructions[-2] if len(s.places) > 1 else None
    if s.order is None:
        return last * (ratio or 3) ** (place - s.places[-1])
    power = math.log(ratio) / math.log(s.places[-1] / s.places[-2]) if ratio else 3
    return last * (place / s.places[-1]) ** power


# -- fitting and telling --------------------------------------------------------------------------------------


def fit(places, counts, degree, first=0):
    """Polynomial through the counts at places from `first` on; None where they are too few to tell.

    {"coefficients": constant first, "residual": largest, as a share of the largest count, "top_term": what the highest
    power has in the last count, as a share of it}.
    """
    kept = [(x, y) for x, y in zip(places, counts, strict=True) if x >= first]
    if len(kept) < degree + 2:
        return None
    x, y = np.array(kept, float).T
    p = np.polynomial.Polynomial.fit(x, y, degree)
    c = p.convert().coef
    top = c[-1] * x[-1] ** degree / y[-1]
    return {"coefficients": c, "residual": np.abs(p(x) - y).max() / y.max(), "top_term": top}


def _told_fits(s):
    kept = ("quantity", "method", "robot", "order", "fits")
    return {k: x for k, x in asdict(s).items() if k in kept and x is not None}


def report(by_order, by_bodies, most, long):
    """The table of counts and fits as a text."""
    heads = ("first", "", "last", "", "last/before", "off by", "next power", "fitted")
    lines = ["Instructions over the order r (Panda, a Function computes orders 0..r)", _row("", *heads)]
    lines += [_told(s, 2, "r") for s in by_order]
    lines += ["", f"Instructions over the number n of bodies (lines fitted from {long} bodies on)", _row("", *heads)]
    lines += [_told(s, 1, "n") for s in by_bodies]
    lines += [
        "",
        f"A method ends where more than {most[0]} (order) or {most[1]} (bodies) instructions are to be expected.",
        "Next power: the highest term of a polynomial of one degree more, as a share of the last count.",
        "Forward dynamics by taylor: small trees factorise the mass matrix, which costs bodies times depth; larger",
        "trees and chains take articulated inertias.",
    ]
    return "\n".join(lines)


def _told(s, degree, x):
    name = f"{s.quantity.split('_')[0]} {s.method}" + ("" if s.order is None else f", {s.robot}, order {s.order}")
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
    return f"{name:47}{a:>6}{b:>7}{c:>7}{d:>8}{''.join(f'{x:>{w}}' for x, w in cells)}  {rest[3]}".rstrip()
