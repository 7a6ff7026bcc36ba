"""Second partials of forward dynamics over the number of bodies: Singh et al. 2023, figures 16, 17 and 20.

    spatial_vector        FDSVA-SO, both terms by products of matrices, as the paper has it up to 40 bodies
    chain_rule            of the articulated-body algorithm, line by line
    bicomplex             of the method taylor of forward dynamics
    finite_difference_1   of the same; finite_difference_2: of first partials by their default method
    composite             this toolkit's default; up to fewer bodies, as all is written out, as by
    ad, ad_symmetric      AD of its first partials, and the same with what is symmetric computed once

Operations are those of operation_counts, the same everywhere. Times are those of CasADi's virtual machine, where
products of matrices (most of chain_rule, a part of spatial_vector) are machine code and the rest is interpreted, and of
compiled C, which has no such bias, up to the sizes that compile in minutes. All ways take turns, ratios are to
spatial_vector in the same round; large ones are timed in fewer rounds, as the table says. Errors are against the
bicomplex step, which no difference of numbers enters.
"""

from functools import lru_cache

import casadi as ca
import numpy as np

from .. import robots
from ..codegen.split import split
from ..function import function
from ..model.canonical import canonical
from ..runs.points import fill
from ..runs.stored_table import StoredTable
from ..second_partials import numeric
from ..second_partials.differences import from_bicomplex, from_first_partials, from_values
from ..second_partials.forward_spatial_vector import fdsva_so
from . import parts
from .functions import TIMES, random_ports, steadied
from .native import compiled_runs, compiler, in_turns, interpreted, interpreted_runs
from .operation_counts import operations
from .second_order import FORWARD, METRICS, metrics

MOST = {  # ways, and the numbers of bodies up to which they are built in seconds, or evaluated within some
    "bicomplex": 40,
    "spatial_vector": 40,
    "chain_rule": 40,
    "finite_difference_1": 40,
    "finite_difference_2": 40,
    "composite": 12,
    "ad": 12,
    "ad_symmetric": 12,
}
OWN, REFERENCE = "spatial_vector", "bicomplex"
KINDS, SIZES, QUICK = ("chain", "tree"), (2, 4, 6, 8, 12, 16, 24, 40), (2, 3)
FIRST = 4  # bodies from which on slopes are fitted
_WRITTEN_OUT = ("composite", "ad", "ad_symmetric")  # long C
COMPILED = {m: 8 for m in MOST if m not in _WRITTEN_OUT}  # beyond, compilers take minutes
FLAGS = ("-O3", "-march=native")
ROUNDS, LONGEST = 15, 25.0  # LONGEST [s] that all rounds of one size may take, though there are at least FEWEST
FEWEST = 5
OF_OPERATIONS, TIME = "operations", "time"
_KEYS = ("robot", "bodies", "method")
_COUNTS, _TIMES, _COMPILED = "forward.csv", "forward_times.csv", "forward_compiled.csv"
PUBLISHED = {OWN: 4, "chain_rule": 3, "bicomplex": 3, "finite_difference_1": 3}  # section VII: leading powers of N
TITLE = "Second partials of forward dynamics (full: chains, dashed: binary trees)"


def plan(quick):
    """Points of forward.csv and of forward_times.csv, a list of {key: value}."""
    return [
        {"robot": kind, "bodies": n, "method": m}
        for kind in KINDS
        for n in (QUICK if quick else SIZES)
        for m, most in MOST.items()
        if n <= most
    ]


def plan_compiled(quick):
    """Points of forward_compiled.csv; none without a C compiler."""
    most = 2 if quick else max(SIZES)
    points = [keys for keys in plan(quick) if keys["bodies"] <= min(most, COMPILED.get(keys["method"], 0))]
    return points if compiler() else []


def measure(out, quick, of, executor, shown):
    """Measure rows of forward.csv of a robot, of = (kind, bodies); rows of others stay in the file."""
    table = StoredTable(out / _COUNTS, _KEYS, (OF_OPERATIONS, *METRICS))
    fill(table, _of(plan(quick), of), count, executor, shown)
    parts.close(table, table.before, plan(quick))


def measure_times(out, quick, of, compiled, shown):
    """Likewise of forward_times.csv, or of forward_compiled.csv."""
    points = plan_compiled(quick) if compiled else plan(quick)
    clock = StoredTable(out / (_COMPILED if compiled else _TIMES), _KEYS, (*TIMES, "rounds"), quick=quick)
    group = _of(points, of)
    stored = [clock.known(**keys) for keys in group]
    if None in stored:
        stored = _timed(*of, [keys["method"] for keys in group], compiled, quick)
    for keys, row in zip(group, stored, strict=True):
        clock.add(**{**row, **keys})
    shown.update(len(group))
    parts.close(clock, clock.before, points)


def groups(points):
    """{(kind, bodies): number of points}."""
    names = [(keys["robot"], keys["bodies"]) for keys in points]
    return {name: names.count(name) for name in dict.fromkeys(names)}


def _of(points, of):
    return [keys for keys in points if (keys["robot"], keys["bodies"]) == of]


def finish(out, quick):
    """forward_slopes.csv and the figures of what is in the folder; the report as lines of text."""
    from .paper_figures import plot_series

    counts, clock, compiled = (parts.read_rows(out / name) for name in (_COUNTS, _TIMES, _COMPILED))
    if not counts:
        return []
    slopes = _slopes(out / "forward_slopes.csv", counts, clock, QUICK[0] if quick else FIRST)
    plot_series(_panels(counts, clock, compiled), out / "forward.png", TITLE)
    return _report(counts, clock, compiled, slopes)


def count(robot, bodies, method):
    """{"operations"} of a way, and its four metrics against the bicomplex step at a random state."""
    f = _function(robot, bodies, method)
    facts = {OF_OPERATIONS: operations(f), **dict.fromkeys(METRICS, "")}
    if method == REFERENCE:
        return facts
    found = metrics(_tensors(f, robot, bodies), _reference(robot, bodies))
    return facts | {k: f"{x:.3e}" for k, x in found.items()}


@lru_cache(maxsize=8)  # complete: the Function depends on these three alone
def _function(robot, bodies, method):
    return built(robots.by_name(f"{robot}:{bodies}"), method)


@lru_cache(maxsize=2)  # complete: robot and state depend on these two alone
def _reference(robot, bodies):
    return _tensors(_function(robot, bodies, REFERENCE), robot, bodies)


def _tensors(f, robot, bodies):
    """Tensors at a random state of so many bodies."""
    q = robots.by_name(f"{robot}:{bodies}").random_configuration(bodies)
    v, tau = np.random.default_rng(bodies).normal(size=(2, bodies))
    return [np.array(x) for x in f.call([q, v, tau])]


def built(robot, method, parted=False):
    """casadi.Function (q, v, tau) -> second partials of forward dynamics. parted: long Functions that it calls are
    split, to be compiled."""
    if not parted or method not in _PARTED:
        return function(robot, FORWARD, method=method, name=method)
    model = canonical(robot, regroup=True)
    ports = [ca.MX.sym(*x) for x in (("q", robot.nq), ("v", robot.nv), ("tau", robot.nv))]
    names = "d2dv_dqdq", "d2dv_dvdv", "d2dv_dqdv", "dMinv_dq"
    return ca.Function(method, ports, list(_PARTED[method](model, *ports)), ["q", "v", "tau"], names)


def _own(model, q, v, tau):
    return fdsva_so(model, q, v, tau, None, idfoza=False, aza=False, cut=split)[0][:4]


def _bicomplex(model, q, v, tau):
    f = numeric.dynamics(model, True, None)
    return from_bicomplex(f, model, q, v, tau, None, numeric.BICOMPLEX_STEP, _every(model), cut=split)


def _of_values(model, q, v, tau):
    f = split(numeric.dynamics(model, True, None))
    return from_values(f, model, q, v, tau, None, numeric.FIRST_STEP, _every(model))


def _of_first_partials(model, q, v, tau):
    f = split(numeric.first_partials(model, True, None))
    return from_first_partials(f, model, q, v, tau, None, numeric.SECOND_STEP, _every(model))


_PARTED = {
    OWN: _own,
    "bicomplex": _bicomplex,
    "finite_difference_1": _of_values,
    "finite_difference_2": _of_first_partials,
}


def _every(model):
    return ca.Sparsity.dense(model.robot.nv**2, model.robot.nv)


# -- times ---------------------------------------------------------------------------------------------------------


def _timed(kind, bodies, methods, compiled, quick):
    """Rows of all ways, which take turns; ratios are to the paper's algorithm."""
    robot = robots.by_name(f"{kind}:{bodies}")
    runs = [built(robot, m, parted=True) if compiled else _function(kind, bodies, m) for m in methods]
    ports = random_ports(robot, runs)
    once = interpreted(runs, ports, rounds=1, calls=1)[0]
    calls = int(np.clip(5e-3 / once.max(), 1, 40))
    rounds = 3 if quick else int(np.clip(LONGEST / (once.sum() * calls), FEWEST, ROUNDS))
    if compiled:
        made, calls = compiled_runs(runs, ports, FLAGS, split=True), 4 * calls
    else:
        made = interpreted_runs(runs, ports)
    found, _ = steadied(lambda: in_turns(made, rounds, calls), [methods.index(OWN)] * len(runs))
    return [{**row, "rounds": rounds} for row in found]


def _slopes(path, counts, clock, first):
    """Rows of forward_slopes.csv: A and B of log(y) = A log(N) + B for y operations or microseconds. unsteady: times
    that were left out, as they are not steady."""
    tables = {OF_OPERATIONS: (counts, OF_OPERATIONS), TIME: (clock, "microseconds")}
    names = ("smallest", "largest", "A", "B", "unsteady", "published order")
    table = StoredTable(path, ("of", "robot", "method"), names)
    for of, (rows, value) in tables.items():
        for kind in KINDS:
            for m in MOST:
                every = [row for row in rows if (row["robot"], row["method"]) == (kind, m)]
                every = [row for row in every if int(row["bodies"]) >= first]
                found = [row for row in every if row.get("steady") != "no"]
                if len(found) > 1:
                    sizes, y = ([float(row[x]) for row in found] for x in ("bodies", value))
                    A, B = np.polyfit(np.log(sizes), np.log(y), 1)
                    facts = {"smallest": int(sizes[0]), "largest": int(sizes[-1]), "A": f"{A:.2f}", "B": f"{B:.2f}"}
                    facts |= {"unsteady": len(every) - len(found), "published order": PUBLISHED.get(m, "")}
                    table.add(of=of, robot=kind, method=m, **facts)
    table.close()
    return table.rows


# -- telling -------------------------------------------------------------------------------------------------------


def _panels(counts, clock, compiled):
    """Panels of plot_series: operations and times, both over those of the paper's algorithm, and errors."""
    own = {(row["robot"], row["bodies"]): float(row[OF_OPERATIONS]) for row in counts if row["method"] == OWN}
    over = [
        {**row, "over": float(row[OF_OPERATIONS]) / own[row["robot"], row["bodies"]]}
        for row in counts
        if (row["robot"], row["bodies"]) in own
    ]
    wanted = [
        ("operations (figure 16)", "operations", counts, OF_OPERATIONS),
        ("operations over those of spatial_vector (figure 17)", "ratio", over, "over"),
        *_of_times("virtual machine", clock),
        *_of_times(f"compiled, {' '.join(FLAGS)}", compiled),
        ("error against the bicomplex step (figure 20)", "root mean square, relative", counts, "rms_rel"),
    ]
    return [(title, "bodies N", y, "log", _lines(rows, value)) for title, y, rows, value in wanted if rows]


def _of_times(how, clock):
    return [
        (f"time, {how} (figure 16)", "µs of a call", clock, "microseconds"),
        (f"time ratio, {how} (figure 17)", "ratio", clock, "ratio"),
    ]


def _lines(rows, value):
    lines = []
    for number, m in enumerate(MOST):
        for kind, style in zip(KINDS, ("-", "--"), strict=False):
            found = [row for row in rows if (row["method"], row["robot"]) == (m, kind)]
            points = [(int(row["bodies"]), float(row[value])) for row in found if float(row[value] or 0)]
            if points:
                lines.append((m if kind == KINDS[0] else None, *zip(*points, strict=True), f"C{number}{style}"))
    return lines


def _report(counts, clock, compiled, slopes):
    """The tables as lines of text."""
    lines = ["Second partials of forward dynamics: log(y) = A log(N) + B"]
    for row in slopes:
        head = f"{row['of']:13}{row['robot']:8}{row['method']:22}"
        note = f"  {row['unsteady']} not steady, left out" if int(row["unsteady"]) else ""
        told = f"  N^{row['published order']} published" if row["published order"] else ""
        lines.append(f"{head}{row['smallest']:>3} to{row['largest']:>3}{row['A']:>7}{row['B']:>8}{told}{note}")
    lines += ["", "Over spatial_vector: operations, time, time as C (? not steady); error: largest, root mean square"]
    times_of = [{tuple(row[k] for k in _KEYS): row for row in rows} for rows in (clock, compiled)]
    own = {(row["robot"], row["bodies"]): int(row[OF_OPERATIONS]) for row in counts if row["method"] == OWN}
    for row in counts:
        key = tuple(row[k] for k in _KEYS)
        cells = f"{int(row[OF_OPERATIONS]):>12}{int(row[OF_OPERATIONS]) / own.get(key[:2], np.nan):9.2f}"
        cells += "".join(_ratio(rows.get(key)) for rows in times_of)
        if row["max_rel"]:
            cells += f"{float(row['max_rel']):11.1e}{float(row['rms_rel']):9.1e}"
        lines.append(f"{row['robot']:7}{row['bodies']:>3}  {row['method']:22}{cells}")
    return lines


def _ratio(row):
    return f"{float(row['ratio']):9.2f}{' ' if row['steady'] == 'yes' else '?'}" if row else f"{'-':>9} "
