"""Inverse dynamics of any order of the Panda: recursive, closed form, written by hand, and by AD.

Kumar and Mueller 2021 report seconds for 10 000 evaluations of order 2 in Matlab; here they are ratios to their
recursion, within rounds in which the ways take turns: of compiled C, and of CasADi's virtual machine, which reads one
instruction after the other as Matlab does. Figures 1 to 5 of the paper, motion and torques with three derivatives,
are drawn again, and the ways compared there. Methods differ in whether they read the robot's parameters as written or
base parameters; models.csv has all of them on both.
"""

from pathlib import Path

import numpy as np

from .. import robots
from ..function import function
from ..registry import get_method
from ..runs.manifest import manifest, write_json
from ..runs.points import bar, fill
from ..runs.stored_table import StoredTable
from . import apart, native
from .functions import TIMES, count, count_on, timed

QUANTITY, ROBOT = "inverse_dynamics", "panda"
WAYS = {  # method: what it is there, seconds that the paper reports for 10 000 evaluations
    "recursive_body": ("recursive, any order", 117),
    "closed_form": ("closed form, any order", 124),
    "second_order_body": ("recursive, by hand for order 2", 24),
    "second_order_closed_form": ("closed form, by hand for order 2", 69),
    "recursive_spatial": ("recursive, spatial twists", None),
    "recursive_body_leibniz": ("recursive, from parent to body alone", None),
    "closed_form_vectors": ("closed form, no matrix formed", None),
    "taylor": ("this toolkit", None),
    "ad_jet": ("AD, order by order", None),
    "ad_jet_cse": ("AD, common subexpressions taken out after each order", None),
    "ad_taylor": ("AD, Taylor series through the instructions", None),
}
ORDERS, ORDER = range(6), 2
ROUNDS, CALLS = 25, 400  # 10 000 evaluations of each
# q_i(t) = -(a_i / w_i) cos(w_i t): the data set that the paper's authors published
AMPLITUDE = np.array([2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5])  # of the velocity [rad/s]
FREQUENCY = np.array(  # [rad/s]
    [
        *(1.7073873117335832, 3.079992797637052, 2.1084514453622774, 3.5903916041026207),
        *(1.4183262544423447, 2.285625793808507, 5.927533308659986),
    ]
)
DURATION, HIGHEST = 5.0, 3  # [s], order of the figures

CAPTIONS = {
    "orders.png": "Instructions of inverse dynamics over the order, by all ways.",
    "torques.png": "The paper's motion of the Panda and its torques, with three derivatives of both.",
    "agreement.csv": "Largest difference to the recursion along that motion, relative to the largest value.",
    "instructions.csv": "Instructions and time to build, by way and order.",
    "models.csv": "Instructions of order 2 on parameters as written and on base parameters, which fewer of are not 0; "
    "own: which of them Functions of the method have.",
    "times.csv": "Order 2: ratio to the recursion, compiled and by CasADi's virtual machine, beside the published one.",
}


def run(out, quick=False, progress=None, executor="serial"):
    """Measure and draw; returns the report as a text.

    out: folder for instructions.csv (rows that the same code left there are not measured again), models.csv, times.csv,
    agreement.csv, orders.png, torques.png, manifest.json. quick: orders up to 2, nothing is compiled. executor: where
    Functions are counted; times are measured here.
    """
    from .paper_figures import plot_torques, plot_ways

    out = Path(out)
    orders = ORDERS[: ORDER + 1] if quick else ORDERS
    plan = [{"method": m, "order": r} for m in WAYS for r in orders if not (m.startswith("second_order") and r > ORDER)]
    table = StoredTable(out / "instructions.csv", ("method", "order"), ("instructions", "seconds"))
    with bar(progress, len(plan) + 2, "kumar_mueller") as shown:
        counts = fill(table, plan, _count, executor, shown)
        table.close(plan)
        models = _models(out / "models.csv")
        times = _times(out / "times.csv", quick)
        shown.update()
        t = np.linspace(0, DURATION, 51 if quick else 501)
        torques, agreement = _agreement(out / "agreement.csv", t)
        shown.update()
    counts = [{"method": c["method"], "order": int(c["order"]), "instructions": int(c["instructions"])} for c in counts]
    plot_ways(counts, {m: told for m, (told, _) in WAYS.items()}, "order r", out / "orders.png", _TITLE)
    plot_torques(t, motion(t), torques, out / "torques.png")
    command = apart.typed("kumar_mueller", out, quick)
    facts = {"evaluations": ROUNDS * CALLS, "times": times, "agreement": agreement}
    write_json(out / "manifest.json", manifest(command, **facts))
    return report(counts, models, times, agreement)


_TITLE = "Instructions of a Function of inverse dynamics of orders 0 to r, Panda (dashed: AD)"


def _count(method, order):
    return count(QUANTITY, method, ROBOT, order)


def _models(path):
    """Rows of models.csv: instructions of order 2 on both models of the robot."""
    panda = robots.by_name(ROBOT)
    table = StoredTable(path, ("method",), ("own", "as written", "base parameters"))
    for m in WAYS:
        written, base = (count_on(x, QUANTITY, m, panda, ORDER) for x in (False, True))
        own = "base parameters" if get_method(QUANTITY, m).regroup else "as written"
        table.add(method=m, own=own, **{"as written": written, "base parameters": base})
    table.close()
    return table.rows


def _times(path, quick):
    """Rows of times.csv: of order 2, by all ways."""
    panda = robots.by_name(ROBOT)
    functions = [function(panda, QUANTITY, order=ORDER, method=m, name=f"by_{m}") for m in WAYS]
    rounds, calls = (5, 20) if quick else (ROUNDS, CALLS)
    summaries = {"interpreted": timed(panda, functions, rounds=rounds, calls=calls)}
    if not quick and native.compiler():
        summaries["compiled"] = timed(panda, functions, rounds=rounds, calls=calls, runs_of=native.compiled_runs)
    table = StoredTable(path, ("method",), _TIMES)
    for k, (m, (_, seconds)) in enumerate(WAYS.items()):
        row = {"instructions": functions[k].n_instructions()}
        if seconds:
            row |= {"published [s]": seconds, "published ratio": f"{seconds / WAYS['recursive_body'][1]:.3f}"}
        for how, rows in summaries.items():
            row |= {f"{how} {name}": x for name, x in rows[k].items()}
        table.add(method=m, **row)
    table.close()
    return table.rows


_TIMES = ("instructions", "published [s]", "published ratio")
_TIMES += tuple(f"{how} {x}" for how in ("compiled", "interpreted") for x in TIMES)


_TOLD = ("ratio", "microseconds", "steady")


def motion(t):
    """[q, v, dv, ...] (7, times): enough derivatives for torques of order 3."""
    a, w = AMPLITUDE[:, None], FREQUENCY[:, None]
    return [a * w**k * np.sin(w * t + k * np.pi / 2) for k in range(-1, HIGHEST + 2)]


def _agreement(path, t):
    """Torques (4, 7, times) by the recursion, and rows: largest differences to it, relative to the largest value."""
    panda, step = robots.by_name(ROBOT), 1e-3

    def by(m, times):
        return np.array([x.full() for x in function(panda, QUANTITY, order=HIGHEST, method=m)(*motion(times))])

    torques = by("recursive_body", t)
    others = {m: by(m, t) for m in ("closed_form", "closed_form_vectors", "taylor", "ad_jet_cse", "ad_taylor")}
    # of the order before, by a formula of fourth order
    around = [by("recursive_body", t + k * step) for k in (-2, -1, 1, 2)]
    slopes = (around[0] - 8 * around[1] + 8 * around[2] - around[3]) / (12 * step)
    table = StoredTable(path, ("order",), (*others, "numerical differentiation"))
    for r, x in enumerate(torques):
        size = np.abs(x).max()
        row = {m: f"{np.abs(y[r] - x).max() / size:.2e}" for m, y in others.items()}
        if r:
            row["numerical differentiation"] = f"{np.abs(slopes[r - 1] - x).max() / size:.2e}"
        table.add(order=r, **row)
    table.close()
    return torques, table.rows


def report(counts, models, times, agreement):
    """The tables as a text."""
    orders = sorted({c["order"] for c in counts})
    lines = ["Instructions of a Function of orders 0..r, Panda", f"{'':28}" + "".join(f"{f'r={r}':>9}" for r in orders)]
    for m in WAYS:
        of = {c["order"]: c["instructions"] for c in counts if c["method"] == m}
        lines.append(f"{m:28}" + "".join(f"{of.get(r, '-'):>9}" for r in orders))
    lines += ["", "Instructions of order 2 on parameters as written and on base parameters (*: what the method takes)"]
    names = "as written", "base parameters"
    for row in models:
        cells = "".join(f"{row[x] + ('*' if row['own'] == x else ' '):>18}" for x in names)
        lines.append(f"{row['method']:28}{cells}")
    heads = ("published", "compiled", "[us]", "steady", "interpreted", "[us]", "steady")
    lines += ["", "Time of order 2 as a ratio to recursive_body", f"{'':28}" + "".join(f"{x:>13}" for x in heads)]
    names = ["published ratio", *(f"{how} {x}" for how in ("compiled", "interpreted") for x in _TOLD)]
    lines += [f"{row['method']:28}" + "".join(f"{row[x] or '-':>13}" for x in names) for row in times]
    lines += ["", "Largest difference to recursive_body along the motion, relative to the largest torque"]
    fields = [k for k in agreement[0] if k not in ("order", "code")]
    lines.append(f"{'order':8}" + "".join(f"{x:>28}" for x in fields))
    lines += [f"{row['order']:8}" + "".join(f"{row[x] or '-':>28}" for x in fields) for row in agreement]
    return "\n".join(lines)
