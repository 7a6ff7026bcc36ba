"""Gradients, Hessian-vector products and Hessians of lam' tau and of lam' dv, over what the function itself costs.

Ways are the registered methods and forms of AD that are none: of the function by its default method a gradient by
forward mode, one direction after the other; products by forward over reverse (the registered `ad`), reverse over
forward, reverse over reverse; and what is easy to write: first partials times lam, the Hessian times the vector.
Counted are CasADi instructions over the number of bodies, over those of the function; times are of compiled C, over
that of the function, in rounds in which the ways take turns. Derivatives are by q, v and dv (or tau) together, of 3 n
directions.
"""

import itertools
import math
import tempfile
import time
from pathlib import Path

import casadi as ca
import numpy as np

from ...function import function
from ...registry import get, get_method, methods
from ...runs.manifest import manifest, write_json
from ...runs.points import bar, named
from ...runs.stored_table import StoredTable
from ...subexpressions import merged
from ...text import in_columns
from .. import apart, parts
from ..functions import TIMES, new_robot, random_ports, steadied
from ..native import compiler
from .c_programs import Loaded, compiled, turns

QUANTITIES, KINDS, SIZES = ("inverse_dynamics", "forward_dynamics"), ("chain", "tree"), (2, 5, 10, 20, 50)
QUICK = (2, 3)
PRODUCTS = {  # what is computed: the quantity behind a name
    "gradient": "_adjoint",
    "Hessian-vector product": "_lagrangian_hessian_product",
    "Hessian": "_lagrangian_hessian",
}
GRADIENT, PRODUCT, HESSIAN = PRODUCTS
OWN = {  # forms that are no registered methods
    GRADIENT: ("partials", "ad_forward"),
    PRODUCT: ("ad_reverse_over_forward", "ad_reverse_over_reverse", "hessian_times"),
    HESSIAN: (),
}
NAMES = {"ad": {GRADIENT: "ad (reverse)", PRODUCT: "ad (forward over reverse)", HESSIAN: "ad (Jacobian of reverse)"}}
MOST = 100_000  # instructions to expect beyond which a way is not built
COMPILED, NEAR = 18_000, 1.25  # instructions up to which a way is compiled; of the least of a product
ROUNDS = 21
CHECKED = 5  # bodies up to which values are compared
KEYS = ("quantity", "robot", "bodies", "product", "way")
COUNTS = ("instructions", "over function", "seconds", "difference", "note")
FUNCTION = "function"

CAPTIONS = {
    "gradients.png": "Instructions over those of the function, over the bodies; full: chains, dashed: trees.",
    "counts.csv": "Instructions, those over the function's, seconds to build, up to 5 bodies the largest difference "
    "to the first method, relative to the largest value; note: why a way is left out.",
    "times.csv": "Time of compiled C, and its ratio to that of the function, of ways of up to 1.25 times the least "
    "instructions of a product.",
}


def run(out, quick=False, progress=None, only=None):
    """Measure and draw; returns the table as a text.

    out: folder for counts.csv, times.csv (rows that the same code left there are not measured again), gradients.png,
    manifest.json. quick: two sizes. progress: show a bar on stderr; default on a terminal only. only: texts, with
    semicolons between them; of robots without one of them in "quantity, robot, bodies" what the files have stays.
    Without a C compiler there are no times.
    """
    from .figures import plot_shares

    out, sizes = Path(out), QUICK if quick else SIZES
    plan = [dict(zip(KEYS, (q, k, n, p, w), strict=True)) for q in QUANTITIES for k in KINDS for n in sizes
            for p, w in ((FUNCTION, FUNCTION), *((p, w) for p in PRODUCTS for w in ways(q, p)))]  # fmt: skip
    groups = [dict(zip(KEYS, place, strict=False)) for place in itertools.product(QUANTITIES, KINDS, sizes)]
    part = parts.chosen(groups, only)
    with bar(progress, 2 * len(part), "gradients") as shown:
        counts = _counts(out / "counts.csv", part, groups, plan, quick, shown)
        times = _times(out / "times.csv", part, groups, plan, counts, quick, shown)
    title = "Instructions over those of the function (full: chains, dashed: trees)"
    plot_shares(counts, list(PRODUCTS), "over function", out / "gradients.png", title)
    command = apart.typed("gradients", out, quick, only=only)
    write_json(out / "manifest.json", manifest(command, most_instructions=MOST, compiled_up_to=COMPILED, near=NEAR))
    return report(counts, times)


def ways(quantity, product):
    """Registered methods of order 0, then forms of AD and those that go by the whole derivative."""
    of, robot = quantity + PRODUCTS[product], new_robot("chain", 2)
    names = [m for m in methods(of) if get_method(of, m).refusal(robot, 0) is None]
    names = [m for m in names if not m.endswith(("along_motion", "ad_jet")) and m != "recursive_scalar"]
    names.sort(key=lambda m: m != get(of).default[0])
    return [*names, *OWN[product]]


# -- the ways --------------------------------------------------------------------------------------------------


def made(quantity, robot, product, way, name="made"):
    """casadi.Function of a way, with the ports of the registered quantity; or of the function itself."""
    if product == FUNCTION:
        return function(robot, quantity, name=name)
    record = quantity + PRODUCTS[product]
    if way not in OWN[product]:
        return function(robot, record, method=way, name=name)
    like = function(robot, record)
    ports = {n: ca.SX.sym(n, *like.size_in(n)) for n in like.name_in()}
    results = {"partials": _by_partials, "hessian_times": _by_hessian}.get(way, _by_ad)(quantity, robot, ports, way)
    return ca.Function(name, list(ports.values()), merged(results), like.name_in(), like.name_out())


def _by_partials(quantity, robot, ports, _):
    """[J' lam by each argument] by the default first partials."""
    first = function(robot, f"{quantity}_partials")
    return [ca.densify(J.T @ ports["lam"]) for J in first.call([ports[n] for n in first.name_in()])]


def _by_hessian(quantity, robot, ports, _):
    """[H z] by the default Hessian."""
    whole = function(robot, f"{quantity}_lagrangian_hessian")
    return [ca.densify(whole.call([ports[n] for n in whole.name_in()])[0] @ ports["z"])]


def _by_ad(quantity, robot, ports, way):
    """Derivatives of lam' times the function of the default method; joints are of one degree of freedom, so that a step
    of q is one of its coordinates."""
    f = function(robot, quantity)
    arguments = [ports[n] for n in f.name_in()]
    y, x = merged(ca.dot(ports["lam"], f.call(arguments)[0])), ca.vertcat(*arguments)
    if way == "ad_forward":
        every = ca.horzcat(*(ca.jtimes(y, x, ca.DM.eye(x.shape[0])[:, k]) for k in range(x.shape[0])))
        return ca.vertsplit(every.T, robot.nv)
    if way == "ad_reverse_over_forward":
        return [ca.gradient(ca.jtimes(y, x, ports["z"]), x)]
    return [ca.gradient(ca.dot(merged(ca.gradient(y, x)), ports["z"]), x)]  # reverse over reverse


# -- counting --------------------------------------------------------------------------------------------------


def _counts(path, part, groups, plan, quick, shown):
    """Rows of counts.csv of a plan that goes from few bodies to many; those of the part are counted."""
    table, sizes = StoredTable(path, KEYS, COUNTS, quick=quick), {}
    table.begin()
    kept = parts.others(table, part, groups)
    for row in kept:
        if row["instructions"]:
            key = row["quantity"], row["robot"], row["product"], row["way"]
            sizes.setdefault(key, []).append((int(row["bodies"]), int(row["instructions"])))
    for keys in (keys for keys in plan if {k: keys[k] for k in part[0]} in part):
        quantity, kind, bodies, product, way = keys.values()
        of = sizes.setdefault((quantity, kind, product, way), [])
        row = table.known(**keys)
        if row is None and expected(of, bodies) > MOST:
            row = {"note": f"left out: more than {MOST} instructions to expect"}
        row = row or _counted(quantity, kind, bodies, product, way)
        if row.get("instructions"):
            of.append((bodies, int(row["instructions"])))
            whole = dict(sizes[quantity, kind, FUNCTION, FUNCTION])[bodies]
            row = {**row, "over function": f"{int(row['instructions']) / whole:.3f}"}
        table.add(**{**row, **keys})
        shown.set_postfix_str(named(keys))
        shown.update(product == FUNCTION)
    parts.close(table, kept, plan)
    return table.rows


def expected(sizes, bodies):
    """Instructions to expect of [(bodies, instructions)] of fewer: by the last power, of one alone by the third."""
    sizes = sorted(size for size in sizes if size[0] < bodies)
    if not sizes:
        return 0
    n, last = sizes[-1]
    power = math.log(last / sizes[-2][1]) / math.log(n / sizes[-2][0]) if len(sizes) > 1 else 3
    return last * (bodies / n) ** power


def _counted(quantity, kind, bodies, product, way):
    """{field of COUNTS: text} of a way."""
    robot = new_robot(kind, bodies)
    start = time.process_time()
    f = made(quantity, robot, product, way)
    row = {"instructions": f.n_instructions(), "seconds": f"{time.process_time() - start:.3f}", "note": ""}
    if product != FUNCTION and way != ways(quantity, product)[0] and bodies <= CHECKED:
        first = made(quantity, robot, product, ways(quantity, product)[0])
        ports = random_ports(robot, [f])
        got, want = f(**ports), first(**ports)
        errors = [np.abs(np.array(got[k] - want[k])).max() / max(1.0, np.abs(np.array(want[k])).max()) for k in got]
        row["difference"] = f"{max(errors):.2e}"
    return row


# -- timing ----------------------------------------------------------------------------------------------------


def _times(path, part, groups, plan, counts, quick, shown):
    """Rows of times.csv; those of the part are timed."""
    table = StoredTable(path, KEYS, ("instructions", *TIMES), quick=quick)
    kept = parts.others(table, part, groups)
    for group in part:
        of = [row for row in counts if all(row[k] == str(x) for k, x in group.items())]
        keys = [{k: row[k] for k in KEYS} for row in compared(of)] if compiler() else []
        stored = [table.known(**k) for k in keys]
        if None in stored:
            stored = _timed(keys, 5 if quick else ROUNDS)
        for k, row in zip(keys, stored, strict=True):
            table.add(**{**row, **k})
        shown.update()
    parts.close(table, kept, plan)
    return table.rows


def compared(of):
    """Rows of counts.csv that are timed: the function, and ways near the least of their product; none alone."""
    small = [row for row in of if row["instructions"] and int(row["instructions"]) <= COMPILED]
    least: dict = {}
    for row in small:
        least[row["product"]] = min(int(row["instructions"]), least.get(row["product"], COMPILED))
    near = [row for row in small if int(row["instructions"]) <= NEAR * least[row["product"]]]
    return near if len(near) > 1 and near[0]["product"] == FUNCTION else []


def _timed(keys, rounds):
    """What steadied says of ways of one robot, as machine code; ratios are to the first, the function."""
    robot = new_robot(keys[0]["robot"], int(keys[0]["bodies"]))
    functions = [made(k["quantity"], robot, k["product"], k["way"], f"way{i}") for i, k in enumerate(keys)]
    ports = random_ports(robot, functions)
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as folder:
        loaded = [Loaded(compiled(f, folder)) for f in functions]
        for x in loaded:
            x.give(ports)
        found, _ = steadied(lambda: turns(loaded, rounds), [0] * len(loaded))
    return [{"instructions": f.n_instructions(), **row} for f, row in zip(functions, found, strict=True)]


# -- telling ---------------------------------------------------------------------------------------------------


def report(counts, times):
    """The table as a text: instructions over those of the function, and times over its time."""
    sizes = list(dict.fromkeys(row["bodies"] for row in counts))
    timed = {tuple(row[k] for k in KEYS): row for row in times}
    lines = ["Over the function, by bodies: instructions (time of compiled C; ~: not steady)"]
    table = [("quantity", "robot", "product", "way", *sizes)]
    whole = {tuple(row[k] for k in KEYS): row for row in counts}
    for q, robot, product, way in dict.fromkeys((r["quantity"], r["robot"], r["product"], r["way"]) for r in counts):
        if product != FUNCTION:
            keys = [(q, robot, n, product, way) for n in sizes]
            cells = [_cell(whole.get(k), timed.get(k)) for k in keys]
            table.append((q, robot, product, NAMES.get(way, {}).get(product, way), *cells))
    return "\n".join([*lines, in_columns(table)])


def _cell(row, timed):
    if row is None or not row["instructions"]:
        return "-"
    told = "" if timed is None else f" ({float(timed['ratio']):.2f}{'' if timed['steady'] == 'yes' else ' ~'})"
    return f"{float(row['over function']):.2f}{told}"
