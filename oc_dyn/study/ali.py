"""Inverse and forward dynamics of a floating base with five branches: over the number of bodies, over the order, by AD.

Ali, Gabellieri and Franchi 2026, figures 4a to 4c: their recursions grow linearly with the bodies and quadratically
with the order, repeated directional derivatives by CasADi exponentially. AD is taken here as published, with common
subexpressions taken out after each order, and by Taylor series: of this toolkit's order 0, which is a shorter
formulation, and, for inverse dynamics, of the paper's own, on parameters as written and on base parameters (own.csv).
Counted are CasADi instructions; times are those of CasADi's virtual machine, as in the paper (no compilation), in
rounds in which the ways take turns. Figure 3, the higher-order dynamics of the aerial manipulator, is
problems/aerial_manipulator.py.
"""

import math
from itertools import pairwise
from pathlib import Path

import casadi as ca

from ..inverse_dynamics.recursive_spatial import recursive_spatial
from ..model.canonical import canonical
from ..runs.manifest import manifest, write_json
from ..runs.points import bar, fill
from ..runs.stored_table import StoredTable
from ..series.along import time_series
from ..subexpressions import merged
from . import apart
from .functions import TIMES, built, new_robot, timed
from .growth import Series, _measure, fit

WAYS = {  # the paper's recursion first, this toolkit's, AD as published, at its strongest by jtimes, and by series
    "inverse_dynamics": ("recursive_spatial", "taylor", "ad_time", "ad_jet_cse", "ad_taylor"),
    "forward_dynamics": ("articulated_spatial", "taylor", "ad_jet", "ad_via_inverse", "ad_taylor"),
}
ROBOT, SMALL = "branches", 21  # bodies of the sweep over the order in which AD takes part
LARGE = 101  # bodies in the paper, five branches of twenty
SIZES, ORDER = (6, 11, 21, 41, 61, 81, 101), 2
ORDERS, ORDERS_LARGE, ORDERS_TIMED = range(7), range(6), range(5)
QUICK = 6, range(4), (6, 11, 16, 21)  # bodies of the sweep over the order, orders, numbers of bodies
MOST = 300_000  # instructions beyond which a Function is not built; twice as many for the paper's sizes
OWN, PARAMETERS = 3, ("as written", "base parameters")  # orders of AD of the paper's order 0
OWN_WAYS = ("recursion", "series", "as published")
ROUNDS, CALLS = 21, 48  # 1000 calls, as in the paper

CAPTIONS = {
    "ali.png": "Instructions over bodies and over the order, and time of a call; dashed: automatic differentiation.",
    "bodies.csv": "Instructions over the number of bodies, order 2.",
    "orders.csv": "Instructions over the order, all ways.",
    "orders_large.csv": "Instructions over the order at the size of the paper, all ways.",
    "own.csv": "Instructions of inverse dynamics by the paper's recursion and by AD of its own order 0: Taylor series, "
    "and repeated directional derivatives as published.",
    "times.csv": "Time of a call by CasADi's virtual machine, and its ratio to the paper's recursion.",
}


def run(out, quick=False, progress=None, executor="serial"):
    """Measure, fit and draw; returns the report as a text.

    out: folder for orders.csv, bodies.csv, orders_large.csv (rows that the same code left there are not measured
    again), times.csv, ali.png, manifest.json. quick: few orders and bodies. executor: where Functions are built and
    counted; times are measured here.
    """
    from .paper_figures import plot_series

    out = Path(out)
    small, orders, sizes = QUICK if quick else (SMALL, ORDERS, SIZES)
    timed_orders = range(3) if quick else ORDERS_TIMED
    most = 120_000 if quick else MOST
    plans = [
        _plan(WAYS, None, [(small, r) for r in orders]),
        _plan(WAYS, ORDER, [(n, ORDER) for n in sizes]),
        [] if quick else _plan(WAYS, None, [(LARGE, r) for r in ORDERS_LARGE]),
    ]
    names = ("orders.csv", "bodies.csv", "orders_large.csv")
    own = [{"order": r, "parameters": x} for r in orders if r <= OWN for x in PARAMETERS]
    total = sum(len(points) for plan in plans for _, points in plan) + 2 + len(own)
    with bar(progress, total, "ali") as shown:
        over_order, over_bodies, large = (
            _measure(out / name, plan, most * (2 if name == names[2] else 1), shown, executor) if plan else []
            for name, plan in zip(names, plans, strict=True)
        )
        table = StoredTable(out / "own.csv", ("order", "parameters"), OWN_WAYS, quick=quick)
        fill(table, own, _own_smaller if quick else _own, executor, shown)
        table.close(own)
        times = _times(out / "times.csv", small, timed_orders, quick, shown)
    findings = _findings(over_order, over_bodies, large)
    plot_series(_panels(over_order, over_bodies, large, times, small), out / "ali.png", _TITLE)
    command = apart.typed("ali", out, quick)
    facts = {"bodies_of_order_sweep": small, "order_of_body_sweep": ORDER, "most_instructions": most}
    write_json(out / "manifest.json", manifest(command, **facts, findings=findings, times=times))
    return report(over_order, over_bodies, large, times, findings, small)


_TITLE = "A floating base with five branches (dashed: automatic differentiation)"


def _plan(ways, order, points):
    return [(Series(quantity, m, ROBOT, order), list(points)) for quantity, ms in ways.items() for m in ms]


def _times(path, bodies, orders, quick, shown):
    """Rows of times.csv: microseconds of a call, and ratios to the paper's recursion."""
    table = StoredTable(path, ("quantity", "order", "method"), ("bodies", *TIMES))
    robot = new_robot(ROBOT, bodies)
    for quantity, ways in WAYS.items():
        keys = [(r, m) for r in orders for m in ways]
        functions = [built(quantity, robot, r, m, f"by_{m}_{r}") for r, m in keys]
        rounds, calls = (3, 10) if quick else (ROUNDS, CALLS)
        first = [len(ways) * (k // len(ways)) for k in range(len(keys))]  # the paper's recursion of the same order
        for (r, m), row in zip(keys, timed(robot, functions, first, rounds, calls), strict=True):
            table.add(quantity=quantity, order=r, method=m, bodies=bodies, **row)
        shown.update()
    table.close()
    return table.rows


def _own(order, parameters, bodies=SMALL):
    """{way: instructions} of all orders of inverse dynamics, from the paper's formulation of order 0 or of all."""
    robot = new_robot(ROBOT, bodies)
    model = canonical(robot, regroup=parameters == PARAMETERS[1])
    q, V = ca.SX.sym("q", robot.nq), [ca.SX.sym(f"v{k}", robot.nv) for k in range(order + 2)]
    flow = [(q, model.configuration_rate(q, V[0])), *pairwise(V)]
    (torque,) = recursive_spatial(model, 0, q, V[:2])
    x, rates = (ca.vertcat(*some) for some in zip(*flow, strict=True))
    published = [torque]
    for _ in range(order):
        published.append(ca.jtimes(published[-1], x, rates))
    recursion, series = recursive_spatial(model, order, q, V), time_series(merged([torque])[0], order, flow)
    ways = merged(list(recursion)), merged(series), published
    counts = (ca.Function("f", [q, *V], found).n_instructions() for found in ways)
    return dict(zip(OWN_WAYS, counts, strict=True))


def _own_smaller(order, parameters):
    return _own(order, parameters, QUICK[0])


def _findings(over_order, over_bodies, large):
    """How counts grow: power of the bodies; residual of a parabola in the order, and the factor of the last order."""
    out = []
    for what, series in (("bodies", over_bodies), ("order", over_order), ("order", large)):
        for s in series:
            if len(s.places) < 2:
                continue
            row = {"over": what, "quantity": s.quantity, "method": s.method}
            last = s.instructions[-1] / s.instructions[-2]
            if what == "bodies":
                power = math.log(last) / math.log(s.places[-1] / s.places[-2])
                line = fit(s.places, s.instructions, 1)
                row |= {"largest": s.places[-1], "power": power, "off_line": line and line["residual"]}
            else:
                parabola = fit(s.places, s.instructions, 2)
                row |= {"largest": s.places[-1], "factor": last, "off_parabola": parabola and parabola["residual"]}
            out.append(row)
    return out


def _panels(over_order, over_bodies, large, times, small):
    def lines(series, quantity, style=None):
        return [
            (s.method, s.places, s.instructions, style or ("--" if s.method.startswith("ad") else "-"))
            for s in series
            if s.quantity == quantity and s.places
        ]

    panels = []
    for quantity in WAYS:
        title = quantity.replace("_", " ")
        panels.append((f"{title}, order {ORDER}", "bodies N", "instructions", "plain", lines(over_bodies, quantity)))
    for quantity in WAYS if large else ():
        title = quantity.replace("_", " ")
        panels.append((f"{title}, {LARGE} bodies", "order r", "instructions", "plain", lines(large, quantity)))
    for quantity in WAYS:
        title = quantity.replace("_", " ")
        panels.append((f"{title}, {small} bodies", "order r", "instructions", "log y", lines(over_order, quantity)))
    for quantity, ways in WAYS.items():
        shown = []
        for m in ways:
            rows = [row for row in times if (row["quantity"], row["method"]) == (quantity, m)]
            xs, ys = [int(row["order"]) for row in rows], [float(row["microseconds"]) for row in rows]
            shown.append((m, xs, ys, "--" if m.startswith("ad") else "-"))
        title = quantity.replace("_", " ")
        panels.append((f"{title}, {small} bodies, time", "order r", "µs of a call", "log y", shown))
    return panels


def report(over_order, over_bodies, large, times, findings, small):
    """The tables as a text."""
    lines = []
    for head, series in (
        (f"Instructions over the order r, {small} bodies", over_order),
        (f"Instructions over the number of bodies, order {ORDER}", over_bodies),
        (f"Instructions over the order r, {LARGE} bodies", large),
    ):
        places = sorted({x for s in series for x in s.places})
        if places:
            lines += [head, f"{'':38}" + "".join(f"{x:>9}" for x in places)]
        for s in series:
            of = dict(zip(s.places, s.instructions, strict=True))
            lines.append(f"{s.quantity.split('_')[0]:9}{s.method:29}" + "".join(f"{of.get(x, '-'):>9}" for x in places))
        lines.append("")
    lines.append("How they grow: with which power of the bodies; by which factor at the last order, and how far a")
    lines.append("parabola in the order is off, as a share of the largest count")
    for row in findings:
        if row["over"] == "bodies":
            growth = f"N^{row['power']:.2f} up to {row['largest']} bodies"
        else:
            off = "-" if row["off_parabola"] is None else f"{100 * row['off_parabola']:.1f} %"
            growth = f"factor {row['factor']:.2f} at order {row['largest']}, off a parabola by {off}"
        lines.append(f"{row['quantity'].split('_')[0]:9}{row['method']:22}{growth}")
    head = f"Time of a call without compilation, {small} bodies: microseconds, ratio to the paper's recursion"
    lines += ["", f"{head} (~: not steady)"]
    for quantity, ways in WAYS.items():
        for m in ways:
            rows = [row for row in times if (row["quantity"], row["method"]) == (quantity, m)]
            cells = "".join(
                f"{row['microseconds']:>10} ({float(row['ratio']):.2f}{'' if row['steady'] == 'yes' else '~'})"
                for row in rows
            )
            lines.append(f"{quantity.split('_')[0]:9}{m:22}{cells}")
    return "\n".join(lines)
