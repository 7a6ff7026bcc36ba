"""Which method is the cheapest where: inverse and forward dynamics of chains and trees, over the order and the bodies.

A Function of order r computes orders 0..r. Counted are CasADi instructions of every method, analytic and by AD; times
are of compiled C, of those that need at most NEAR times the least instructions of a cell, in rounds in which they take
turns. A count grows with the order and with the bodies: a method that already needs more for fewer of them than the
cheapest of its kind, analytic or AD, needs here, is left out of the cell; beyond FEW bodies, so is one that needs more
than NEAR times the least of its kind at the size before. Cells beyond a bound of instructions are not
compiled. At order 0 AD has nothing to do.
"""

import math
import tempfile
from itertools import product
from pathlib import Path

from ...registry import get_method, methods
from ...runs.manifest import manifest, write_json
from ...runs.points import bar, named
from ...runs.stored_table import StoredTable
from ...text import in_columns
from .. import apart, parts
from ..functions import TIMES, built, count, new_robot, random_ports, steadied
from ..native import compiler
from .c_programs import Loaded, compiled, turns

QUANTITIES, KINDS = ("inverse_dynamics", "forward_dynamics"), ("chain", "tree")
SIZES, ORDERS = (2, 5, 10, 20, 50), (0, 1, 2, 4, 6, 8)
QUICK = (2, 3), range(3)
MOST = 100_000  # instructions to expect beyond which a Function is not built
NEAR = 1.5  # of the least instructions, up to which a method is timed
COMPILED = 60_000  # instructions of all methods of a cell together, up to which it is compiled
FEW = 5  # bodies
TIMED = (0, 2, 4, 8)
ROUNDS = 21
AD, ANALYTIC = "ad", "analytic"
CELL = ("quantity", "robot", "bodies", "order")
_LEFT_OUT = "left out: "

CAPTIONS = {
    "cheapest.png": "The cheapest method by order and bodies, above by instructions, below by time of compiled C; the "
    "numbers are the best analytic method over the best AD (below 1: the analytic one is cheaper; ~: not steady; "
    "=: 1 lies between the 10th and 90th percentile).",
    "cheapest.csv": "The best analytic method, the best AD, and the ratio of the first to the second, by instructions "
    "and by time; verdict: of the time.",
    "counts.csv": "Instructions of every method, and seconds to build it; note: why it is left out.",
    "times.csv": "Times of compiled C; ratios are to the AD of fewest instructions, at order 0 to the first method.",
}


def run(out, quick=False, progress=None, only=None):
    """Measure and draw; returns the table as a text.

    out: folder for counts.csv, times.csv (rows that the same code left there are not measured again), cheapest.csv,
    cheapest.png, manifest.json. quick: few orders and bodies. progress: show a bar on stderr; default on a terminal
    only. only: texts, with semicolons between them; of cells without one of them in "quantity, robot, bodies, order"
    what the files have stays. Without a C compiler there are no times.
    """
    from .figures import plot_map

    out, (sizes, orders) = Path(out), QUICK if quick else (SIZES, ORDERS)
    cells = [dict(zip(CELL, place, strict=True)) for place in product(QUANTITIES, KINDS, sizes, orders)]
    part = parts.chosen(cells, only)
    with bar(progress, 2 * len(part), "cheapest") as shown:
        counts = _counts(out / "counts.csv", part, cells, quick, shown)
        times = _times(out / "times.csv", part, cells, counts, quick, shown)
    rows = _cheapest(out / "cheapest.csv", cells, counts, times)
    plot_map(rows, out / "cheapest.png")
    command = apart.typed("cheapest", out, quick, only=only)
    bounds = {"most_instructions": MOST, "compiled_up_to": COMPILED, "near": NEAR, "timed_orders": TIMED}
    write_json(out / "manifest.json", manifest(command, **bounds, wins=wins(rows)))
    return report(rows)


def kind(quantity, method):
    """AD or ANALYTIC: closed forms count as the latter."""
    return AD if get_method(quantity, method).kind == "ad" else ANALYTIC


def able(cell):
    """Methods of a cell; chains and trees of all sizes have the same joints."""
    robot = new_robot(cell["robot"], 2)
    names = [m for m in methods(cell["quantity"]) if cell["order"] or kind(cell["quantity"], m) != AD]
    return [m for m in names if get_method(cell["quantity"], m).refusal(robot, cell["order"]) is None]


# -- counting --------------------------------------------------------------------------------------------------


def _counts(path, part, cells, quick, shown):
    """{(*cell, method): row} of cells that go from few bodies to many, and from order to order; those of the part are
    counted."""
    table = StoredTable(path, (*CELL, "method"), ("instructions", "seconds", "note"), quick=quick)
    table.begin()
    kept = parts.others(table, part, cells)
    found = {(row["quantity"], row["robot"], int(row["bodies"]), int(row["order"]), row["method"]): row for row in kept}
    for point in part:
        cell, names, least = tuple(point.values()), able(point), dict.fromkeys((AD, ANALYTIC), math.inf)
        for m in sorted(names, key=lambda m: lower_bound(found, cell, m)):
            keys, group = _keys(cell, m), kind(cell[0], m)
            row = table.known(**keys) or _counted(keys, lower_bound(found, cell, m), least[group], far(found, cell, m))
            table.add(**{**row, **keys})
            found |= {(*cell, m): row}
            least[group] = min(least[group], int(row["instructions"] or MOST))
        shown.set_postfix_str(named(point))
        shown.update()
    parts.close(table, kept, [cell | {"method": m} for cell in cells for m in able(cell)])
    return found


def _keys(cell, method):
    return dict(zip((*CELL, "method"), (*cell, method), strict=True))


def lower_bound(found, cell, method):
    """Instructions that a method needs at least: those for fewer bodies, or a lower order, of the rows found so far."""
    quantity, robot, bodies, order = cell
    less = [
        int(row["instructions"])
        for (q, k, n, r, m), row in found.items()
        if (q, k, m) == (quantity, robot, method) and n <= bodies and r <= order and row["instructions"]
    ]
    return max(less, default=0)


def far(found, cell, method):
    """By how much a method is above the least of its kind at the size before, where that tells; else 1."""
    quantity, robot, bodies, order = cell
    before = max((n for q, k, n, r, _ in found if (q, k, r) == (quantity, robot, order) and n < bodies), default=0)
    if bodies <= FEW or not before:
        return 1.0
    of = {m: found.get((quantity, robot, before, order, m), _NOTHING)["instructions"] for m in methods(quantity)}
    built_there = {m: int(x) for m, x in of.items() if x and kind(quantity, m) == kind(quantity, method)}
    if method not in built_there:
        return math.inf if built_there else 1.0
    return built_there[method] / min(built_there.values())


def _counted(keys, bound, least, factor=1.0):
    """The row of a method; left out where it cannot be the cheapest of its kind, or is too large."""
    if factor > NEAR:
        return {"note": f"{_LEFT_OUT}not near the least for fewer bodies"} | _NOTHING
    if bound > least:
        return {"note": f"{_LEFT_OUT}{bound} instructions for less, {least} is the least here"} | _NOTHING
    if bound > MOST:
        return {"note": f"{_LEFT_OUT}more than {MOST} instructions"} | _NOTHING
    return count(keys["quantity"], keys["method"], keys["robot"], keys["order"], keys["bodies"]) | {"note": ""}


_NOTHING = {"instructions": "", "seconds": ""}


# -- timing ----------------------------------------------------------------------------------------------------


def _times(path, part, cells, counts, quick, shown):
    """{(*cell, method): row} of the cells that are compiled; those of the part are timed."""
    table = StoredTable(path, (*CELL, "method"), ("instructions", *TIMES), quick=quick)
    kept = parts.others(table, part, cells)
    out = {(row["quantity"], row["robot"], int(row["bodies"]), int(row["order"]), row["method"]): row for row in kept}
    for cell in (tuple(c.values()) for c in part):
        names = compared(cell, counts) if compiler() else []
        stored = [table.known(**_keys(cell, m)) for m in names]
        if None in stored:
            stored = _timed(cell, names, 5 if quick else ROUNDS)
        for m, row in zip(names, stored, strict=True):
            key = (*cell, m)
            out[key] = {**row, **_keys(cell, m), "instructions": counts[key]["instructions"]}
            table.add(**out[key])
        shown.update()
    parts.close(table, kept, [cell | {"method": m} for cell in cells for m in able(cell)])
    return out


def compared(cell, counts):
    """Methods of a cell that are timed, the AD of fewest instructions first; none where it is not compiled."""
    of = {key[-1]: int(row["instructions"]) for key, row in counts.items() if key[:-1] == cell and row["instructions"]}
    near = [m for m in of if of[m] <= NEAR * min(of.values())]
    best = [min((m for m in of if kind(cell[0], m) == group), key=of.get, default=None) for group in (AD, ANALYTIC)]
    names = sorted({*near, *best} - {None}, key=lambda m: (m != best[0], of[m], m))
    small = sum(of[m] for m in names) <= COMPILED
    return names if cell[-1] in TIMED and small else []


def _timed(cell, names, rounds):
    """What steadied says of the methods of a cell, as machine code; ratios are to the first."""
    quantity, kind_of_robot, bodies, order = cell
    robot = new_robot(kind_of_robot, bodies)
    made = [built(quantity, robot, order, m, name=f"by_{m}") for m in names]
    ports = random_ports(robot, made)
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as folder:
        loaded = [Loaded(compiled(f, folder)) for f in made]
        for x in loaded:
            x.give(ports)
        return steadied(lambda: turns(loaded, rounds), [0] * len(made))[0]


# -- telling ---------------------------------------------------------------------------------------------------


def _cheapest(path, cells, counts, times):
    """Rows of cheapest.csv."""
    table = StoredTable(path, CELL, FIELDS)
    for cell in cells:
        key = tuple(cell.values())
        of = {k[-1]: int(row["instructions"]) for k, row in counts.items() if k[:-1] == key and row["instructions"]}
        if not of:
            continue
        row = {"cheapest": min(of, key=of.get)} | _best(key[0], of, "")
        timed = {k[-1]: row for k, row in times.items() if k[:-1] == key}
        if timed:
            us = {m: float(x["microseconds"]) for m, x in timed.items()}
            ratio = {m: float(x["ratio"]) for m, x in timed.items()}
            row |= {"fastest": fastest(timed)} | _best(key[0], ratio, " by time")
            row["microseconds"] = f"{us[row['fastest']]:.4g}"
            row["verdict"] = verdict(timed, row["analytic by time"], row["AD by time"])
        table.add(**cell, **row)
    table.close()
    return table.rows


def fastest(timed):
    """Of times {method: row} the method of fewest instructions whose ratio may be the least."""
    least = min(float(row["ratio"]) for row in timed.values())
    return min((m for m in timed if float(timed[m]["low"]) <= least), key=lambda m: int(timed[m]["instructions"]))


def _best(quantity, values, told):
    """{"analytic", "AD", "ratio"} of {method: value}: the best of either kind, and the first over the second."""
    groups = {g: {m: x for m, x in values.items() if kind(quantity, m) == g} for g in (ANALYTIC, AD)}
    best = {g: min(of, key=of.get, default="") for g, of in groups.items()}
    both = all(best.values())
    ratio = f"{values[best[ANALYTIC]] / values[best[AD]]:.3f}" if both else ""
    return {f"analytic{told}": best[ANALYTIC], f"AD{told}": best[AD], f"ratio{told}": ratio}


FIELDS = ("cheapest", "analytic", "AD", "ratio", "fastest", "analytic by time", "AD by time", "ratio by time")
FIELDS += ("microseconds", "verdict")


def verdict(timed, analytic, ad):
    """Of the times of a cell {method: row}: which kind is faster, "none" where either may be, "not steady"."""
    if not (analytic and ad):
        return ""
    if "no" in (timed[analytic]["steady"], timed[ad]["steady"]):
        return "not steady"
    # ratios are to the AD of fewest instructions, so those of the best AD are about 1
    below, above = (float(timed[analytic][k]) / float(timed[ad]["ratio"]) for k in ("low", "high"))
    return ANALYTIC if above < 1 else AD if below > 1 else "none"


def wins(rows):
    """[{"quantity", "robot", "by", who: cells that it wins}] of instructions and of time."""
    out = []
    for quantity, robot in dict.fromkeys((row["quantity"], row["robot"]) for row in rows):
        of = [row for row in rows if (row["quantity"], row["robot"]) == (quantity, robot)]
        ratios = [float(row["ratio"]) for row in of if row["ratio"]]
        facts = {"cells": len(ratios), ANALYTIC: sum(x < 1 for x in ratios), AD: sum(x > 1 for x in ratios)}
        out.append({"quantity": quantity, "robot": robot, "by": "instructions", **facts})
        told = [row["verdict"] for row in of if row["verdict"]]
        facts = {"cells": len(told), **{x: told.count(x) for x in (ANALYTIC, AD, "none", "not steady")}}
        out.append({"quantity": quantity, "robot": robot, "by": "time", **facts})
    return out


def report(rows):
    """The table as a text."""
    names = (*CELL, "cheapest", "analytic", "AD", "ratio", "fastest", "ratio by time", "verdict")
    lines = ["The cheapest methods; ratio: of the best analytic method to the best AD, by instructions and by time"]
    lines += [in_columns([names, *([row[k] for k in names] for row in rows)])]
    lines += ["", "Cells in which either kind needs less"]
    lines += ["  ".join(f"{k}: {x}" for k, x in row.items()) for row in wins(rows)]
    return "\n".join(lines)
