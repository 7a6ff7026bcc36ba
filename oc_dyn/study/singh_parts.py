"""Parts of second partials of forward dynamics over the number of bodies: Singh et al. 2023, figures 14, 15 and 18.

    d2dv/du dw = -M^-1 (d2ID/du dw + dM/dw ddv/du + (dM/du ddv/dw)^R)                     eq. 46

The inner term is what is in brackets, the outer one its product with -M^-1. Ways to compute them from what is known
before, the inverse of M, first partials of forward and second partials of inverse dynamics:

    dtm             products of matrices, dense ones
    dtm_sparse      the same without the zeros that the tree makes
    idfoza          inner: first partials of inverse dynamics at rest without gravity, for each column of ddv/du, eq. 52
    idfoza_shared   the same, what does not depend on the column computed once
    aza             outer: forward dynamics by articulated bodies at rest without gravity, for each column, eq. 50
    aza_shared      the same, articulated inertias computed once
    factors         outer: solved with the factors of M, known before as M^-1 is

Counted are operations (arithmetic ones of CasADi, no copies), the same everywhere; calls count as often as they are
made. Ways that share are counted only. Times are those of compiled C and of CasADi's virtual machine, where products of
matrices are machine code already and recursions are interpreted: it says little of the terms.
"""

from dataclasses import replace
from functools import lru_cache

import casadi as ca
import numpy as np

from ..codegen.split import split
from ..forward_dynamics.mass_solver import articulated, factor_reversed, solve_reversed
from ..function import function
from ..model.canonical import canonical
from ..partials.implicit import mass_matrix
from ..partials.spatial_vector import idsva
from ..runs.points import fill
from ..runs.stored_table import StoredTable
from ..second_partials.forward_spatial_vector import _articulated, _mass_partials, _times
from ..second_partials.tensor import swapped
from .functions import TIMES, new_robot, random_ports, steadied
from .native import compiled_runs, compiler, in_turns, interpreted, interpreted_runs
from .operation_counts import operations as operations_counted
from .operation_counts import product_operations
from .second_order import INVERSE

TERMS = {
    "inner": ("dtm", "dtm_sparse", "idfoza", "idfoza_shared"),
    "outer": ("dtm", "dtm_sparse", "aza", "aza_shared", "factors"),
}
COUNTED = ("idfoza_shared", "aza_shared")
REFERENCE = "dtm"
KINDS = ("chain", "tree")
SIZES, QUICK = (2, 4, 8, 12, 16, 24, 32, 48, 64), (2, 3)
FLAGS = {"-O3": ("-O3",), "-O3 native": ("-O3", "-march=native")}  # without, and with what this processor can do
MOST = {"interpreted": 48, "-O3": 32, "-O3 native": 32}  # bodies up to which each form is timed
BREAKDOWN = {"composite": 24, "spatial_vector": 16}  # first and second partials by, up to so many bodies
PARTS = ("first", "second", "inner", "outer", "mass")
TOLD = {
    "first": "first partials of forward dynamics",
    "second": "second partials of inverse dynamics",
    "inner": "inner term",
    "outer": "outer term",
    "mass": "partials of M^-1",
}
AGREE = 1e-9  # largest difference of two ways, relative to the largest value
TITLE = "Parts of the second partials of forward dynamics (full: chains, dashed: binary trees)"
_KEYS = ("term", "robot", "bodies", "way")


def plans(quick):
    """Points of terms.csv, term_times.csv and breakdown.csv: lists of {key: value}."""
    sizes = QUICK if quick else SIZES
    counted = [
        {"term": term, "robot": kind, "bodies": n, "way": way}
        for kind in KINDS
        for n in sizes
        for term, ways in TERMS.items()
        for way in ways
    ]
    forms = [form for form in MOST if form == "interpreted" or (compiler() and not (quick and form == "-O3"))]
    timed = [
        {"form": form, **keys}
        for keys in counted
        for form in forms
        if keys["way"] not in COUNTED and keys["bodies"] <= MOST[form]
    ]
    parts = [
        {"robot": kind, "bodies": n, "method": method, "part": part}
        for method, most in BREAKDOWN.items()
        for kind in KINDS
        for n in sizes
        if n <= most
        for part in PARTS
    ]
    return counted, timed, parts


def measure(out, quick, executor, shown):
    """(rows of terms.csv, of term_times.csv); steps of the bar `shown`: the lengths of the first two of plans()."""
    counted, timed, _ = plans(quick)
    table = StoredTable(out / "terms.csv", _KEYS, ("operations", "error"))
    counts = fill(table, counted, counted_term, executor, shown)
    table.close(counted)
    clock = StoredTable(out / "term_times.csv", ("form", *_KEYS), TIMES, quick=quick)
    _together(clock, timed, ("form", "term", "robot", "bodies"), _timed_terms, quick, shown)
    return counts, clock.rows


def measure_shares(out, quick, shown):
    """Rows of breakdown.csv; steps of the bar: the length of the last of plans()."""
    parts = plans(quick)[2]
    shares = StoredTable(out / "breakdown.csv", ("robot", "bodies", "method", "part"), _SHARES, quick=quick)
    _together(shares, parts, ("robot", "bodies", "method"), _broken_down, quick, shown)
    return shares.rows


def _together(table, plan, alike, found_of, quick, shown):
    """Fill a table with rows that are measured together where their keys `alike` are the same."""
    table.begin()
    for group in dict.fromkeys(tuple(keys[k] for k in alike) for keys in plan):
        points = [keys for keys in plan if tuple(keys[k] for k in alike) == group]
        stored = [table.known(**keys) for keys in points]
        if None in stored:
            stored = found_of(*group, points, quick)
        for keys, row in zip(points, stored, strict=True):
            table.add(**{**row, **keys})
        shown.update(len(points))
    table.close(plan)


# -- terms ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)  # complete: robot and state depend on these two alone
def terms_inputs(kind, bodies):
    """(canonical robot, {name: DM}) from which the terms are computed, at a random state."""
    robot = new_robot(kind, bodies)
    n, rng = robot.nv, np.random.default_rng(bodies)
    q, (v, dv) = robot.random_configuration(bodies), rng.normal(size=(2, n))
    partials = function(robot, "inverse_dynamics_partials", method="spatial_vector")  # of long chains soonest built
    by_q, by_v, M = (np.array(x) for x in partials.call([q, v, dv])[:3])
    Minv, model = np.linalg.inv(M), canonical(robot, regroup=True)
    at = {"q": ca.DM(q), "Minv": ca.DM(Minv), "dv_q": ca.DM(-Minv @ by_q), "dv_v": ca.DM(-Minv @ by_v)}
    at |= dict(zip(("qq", "vv", "qv", "dM"), function(robot, INVERSE, method="compact").call([q, v, dv]), strict=True))
    D, LT = _factors(model)(q)
    at |= {"D": ca.densify(D), "LT": LT}
    qq, qv = valued(model, at, "inner", "dtm_sparse")
    return model, at | {"inner_qq": ca.sparsify(qq), "inner_qv": ca.sparsify(qv)}


def term(model, at, name, way, parted=False):
    """casadi.Function: the inner term (qq, qv), the outer one (qq, vv, qv), or that of dM^-1/dq, "mass", as tensors.

    Its inputs are the nonzeros of those of `at` that the way needs, as ports() gives them. parted: long Functions that
    it calls are split, to be compiled.
    """
    n, cut = model.robot.nv, split if parted else lambda f: f
    read = stored(at, name, way)
    inputs = {k: ca.MX.sym(k, value.nnz()) for k, value in read.items()}
    x = {k: ca.MX(value.sparsity(), inputs[k]) for k, value in read.items()}
    if name == "mass":
        results = _outer(lambda columns: -(x["Minv"] @ columns), _times(x["dM"], x["Minv"]))
    elif name == "inner":
        if way == "idfoza":
            at_rest = cut(_mass_partials(model)).map(n)
            by = [at_rest(ca.repmat(x["q"], 1, n), x[k]) for k in ("dv_q", "dv_v")]
            by_q, by_v = (ca.vertcat(*ca.horzsplit(tensor, n)) for tensor in by)
        else:
            by_q, by_v = (_times(x["dM"], x[k]) for k in ("dv_q", "dv_v"))
        results = [x["qq"] + by_q + swapped(by_q), x["qv"] + swapped(by_v)]
    else:
        if way in ("aza", "factors"):
            solve = cut(_articulated(model) if way == "aza" else _solver(at)).map(n * n)
            known = [ca.repmat(inputs[k], 1, n * n) for k in ("q", "D", "LT") if k in inputs]

        def minus(columns):
            if way in ("aza", "factors"):
                return -solve(*known, ca.densify(columns))
            return -(x["Minv"] @ columns)

        results = _outer(minus, x["inner_qq"], x["vv"], x["inner_qv"])
    outputs = [f"y{k}" for k in range(len(results))]
    return ca.Function(f"{name}_{way}", list(inputs.values()), results, list(inputs), outputs)


def _outer(minus, *tensors):
    """What `minus` makes of all columns (nv, nv nv) of tensors, as tensors."""
    n = tensors[0].shape[1]
    return [ca.reshape(minus(ca.reshape(x, n, n * n)), n * n, n) for x in tensors]


_READ = {  # what the ways start from
    "inner": {"idfoza": ("q", "dv_q", "dv_v", "qq", "qv"), None: ("dM", "dv_q", "dv_v", "qq", "qv")},
    "outer": {
        "aza": ("q", "inner_qq", "vv", "inner_qv"),
        "factors": ("D", "LT", "inner_qq", "vv", "inner_qv"),
        None: ("Minv", "inner_qq", "vv", "inner_qv"),
    },
    "mass": {None: ("Minv", "dM")},
}


def stored(at, name, way):
    """{name: DM} what a way reads, dense for the one that knows no zeros."""
    read = _READ[name]
    return {x: ca.densify(at[x]) if way == "dtm" else at[x] for x in read.get(way, read[None])}


def ports(at, name, way):
    """{port: numbers} of a term's Function."""
    return {x: np.array(value.nonzeros()) for x, value in stored(at, name, way).items()}


def valued(model, at, name, way):
    """What a way finds, in numbers."""
    return term(model, at, name, way).call(list(ports(at, name, way).values()))


def _factors(model):
    """casadi.Function q -> factors (D, LT) of the mass matrix from the tips to the base."""
    q = ca.SX.sym("q", model.robot.nq)
    return ca.Function("factors", [q], list(factor_reversed(mass_matrix(model, q))[:2]))


def _solver(at):
    """casadi.Function (D, nonzeros of LT, b) -> M^-1 b."""
    D, b = ca.SX.sym("D", at["D"].numel()), ca.SX.sym("b", at["D"].numel())
    LT = ca.SX.sym("LT", at["LT"].nnz())
    factors = D, ca.SX(at["LT"].sparsity(), LT), list(range(D.numel()))
    return ca.Function("solver", [D, LT, b], [solve_reversed(factors, b)])


# -- operations ----------------------------------------------------------------------------------------------------


def counted_term(term, robot, bodies, way):
    """{"operations", "error"}: the latter against REFERENCE, of what is not only counted."""
    model, at = terms_inputs(robot, bodies)
    facts = {"operations": operations(model, at, term, way), "error": ""}
    if way not in (*COUNTED, REFERENCE):
        wanted, got = (np.concatenate([np.array(x) for x in valued(model, at, term, w)]) for w in (REFERENCE, way))
        facts["error"] = f"{np.abs(got - wanted).max() / np.abs(wanted).max():.2e}"
    return facts


def operations(model, at, name, way):
    """Arithmetic operations of a term; those of products and sums where neither operand is known to be zero."""
    n, x = model.robot.nv, {k: ca.DM(v.sparsity(), 1) for k, v in stored(at, name, way).items()}
    if name == "mass":
        columns = _times(x["dM"], x["Minv"])
        return product_operations(columns) + _applied(x["Minv"], columns)
    if name == "inner":
        if way in ("idfoza", "idfoza_shared"):
            by_q = by_v = ca.DM.ones(n * n, n)
            cost = 2 * n * operations_counted(_mass_partials(model))
            if way == "idfoza_shared":
                cost = _shared(_several_mass_partials, model, 2 * n)
        else:
            by_q, by_v = (_times(x["dM"], x[k]) for k in ("dv_q", "dv_v"))
            cost = product_operations(by_q) + product_operations(by_v)
        by_q, by_v = (ca.DM(y.sparsity(), 1) for y in (by_q, by_v))
        sums = x["qq"] + by_q + ca.sparsify(swapped(by_q)), x["qv"] + ca.sparsify(swapped(by_v))
        return cost + sum(int(ca.sum1(ca.sum2(y))) - y.nnz() for y in sums)
    if way in ("dtm", "dtm_sparse"):
        return sum(_applied(x["Minv"], x[k]) for k in ("inner_qq", "vv", "inner_qv"))
    signs = 3 * n**3
    if way == "aza_shared":
        return signs + _shared(_several_solutions, model, 3 * n * n)
    solve = _articulated(model) if way == "aza" else _solver(at)
    return signs + 3 * n * n * operations_counted(solve)


def _applied(Minv, tensor):
    """Operations of -(Minv times all columns of a tensor)."""
    n = Minv.shape[0]
    product = Minv @ ca.reshape(ca.DM(tensor.sparsity(), 1), n, n * n)
    return product_operations(product) + product.nnz()


def _shared(several, model, columns):
    """Operations for so many columns: what the second one adds, all others do too."""
    one, two = (operations_counted(several(model, k)) for k in (1, 2))
    return one + (columns - 1) * (two - one)


def _several_mass_partials(model, columns):
    """casadi.Function (q, b) -> dM/dq b for columns b."""
    q, b, rest = ca.SX.sym("q", model.robot.nq), ca.SX.sym("b", model.robot.nv, columns), ca.DM.zeros(model.robot.nv)
    weightless = replace(model, gravity=ca.DM.zeros(3))
    partials = [ca.densify(idsva(weightless, q, rest, b[:, k])[0]) for k in range(columns)]
    return ca.Function("idfoza", [q, b], partials, {"cse": True})


def _several_solutions(model, columns):
    """casadi.Function (q, b) -> M^-1 b for columns b."""
    q, b = ca.SX.sym("q", model.robot.nq), ca.SX.sym("b", model.robot.nv, columns)
    solve = articulated(model, q)
    return ca.Function("aza", [q, b], [solve(b[:, k]) for k in range(columns)], {"cse": True})


# -- times ---------------------------------------------------------------------------------------------------------


def _timed_terms(form, term_name, kind, bodies, points, quick):
    """Rows of term_times.csv of all ways to a term, which take turns."""
    model, at = terms_inputs(kind, bodies)
    ways = [keys["way"] for keys in points]
    runs = [term(model, at, term_name, way, parted=form != "interpreted") for way in ways]
    reads = {}
    for f, way in zip(runs, ways, strict=True):  # the same port may be dense for one way and not for another
        reads |= {f"{f.name()}_{x}": values for x, values in ports(at, term_name, way).items()}
    return _steadied(form, [_own_ports(f) for f in runs], reads, [ways.index(REFERENCE)] * len(ways), quick)[0]


def _own_ports(f):
    """The Function with its name before those of its ports."""
    inputs = f.mx_in()
    return ca.Function(f.name(), inputs, f.call(inputs), [f"{f.name()}_{x}" for x in f.name_in()], f.name_out())


def _steadied(form, functions, at, reference, quick):
    """functions.steadied of rounds of some milliseconds each."""
    rounds = 3 if quick else 15
    longest = interpreted(functions, at, rounds=1, calls=1).max()
    calls = int(np.clip(5e-3 / longest, 1, 40))
    if form == "interpreted":
        made = interpreted_runs(functions, at)
    else:
        made, calls = compiled_runs(functions, at, FLAGS[form], split=True), 4 * calls
    return steadied(lambda: in_turns(made, rounds, calls), reference)


_SHARES = ("operations", "share", "microseconds", "time share", "compiled microseconds", "compiled share", "steady")
COMPILED = {"composite": 16}  # bodies up to which the breakdown is compiled too


def _broken_down(kind, bodies, method, points, quick):
    """Rows of breakdown.csv of all parts, which take turns."""
    model, at = terms_inputs(kind, bodies)
    robot = new_robot(kind, bodies)
    first = function(robot, "forward_dynamics_partials", method=method, name="first")
    second = function(robot, INVERSE, method=method, name="second")
    terms = [term(model, at, name, "dtm_sparse") for name in PARTS[2:]]
    counts = [operations_counted(first), operations_counted(second)]
    counts += [operations(model, at, name, "dtm_sparse") for name in PARTS[2:]]
    reads = random_ports(robot, [first, second])
    for f, name in zip(terms, PARTS[2:], strict=True):
        reads |= {f"{f.name()}_{x}": values for x, values in ports(at, name, "dtm_sparse").items()}
    runs = [first, second, *map(_own_ports, terms)]
    rows = [{"operations": c, "share": f"{c / sum(counts):.4f}"} for c in counts]
    for form, micro, share in (
        ("interpreted", "microseconds", "time share"),
        ("-O3 native", "compiled microseconds", "compiled share"),
    ):
        if form != "interpreted" and (not compiler() or bodies > COMPILED.get(method, 0)):
            continue
        told, seconds = _steadied(form, runs, reads, list(range(len(runs))), quick)
        shares = np.median(seconds / seconds.sum(axis=1, keepdims=True), axis=0)
        for row, x, part in zip(rows, told, shares, strict=True):
            row |= {micro: x["microseconds"], share: f"{part:.4f}"}
            if form == "interpreted":
                row["steady"] = x["steady"]
    return rows


# -- telling -------------------------------------------------------------------------------------------------------


def crossover(sizes, reference, values):
    """Size from which on values stay below the reference, interpolated on logarithmic axes; None if they do not at the
    largest one, the smallest one if they always are."""
    above = np.log(np.asarray(values, float) / np.asarray(reference, float)) >= 0
    if above[-1]:
        return None
    if not above.any():
        return float(sizes[0])
    k = int(np.flatnonzero(above)[-1])
    before, after = np.log(np.asarray(values[k : k + 2], float) / np.asarray(reference[k : k + 2], float))
    return float(np.exp(np.interp(0, [-before, -after], np.log(sizes[k : k + 2]))))


def crossovers(counts, clock):
    """[{"term", "robot", "way", "against", "of", "crossover", "largest", "ratio"}]: from how many bodies on a way is
    less than `against`, a product of matrices, and its share of it at the largest number."""
    tables = {"operations": (counts, "operations")}
    tables |= {form: ([row for row in clock if row["form"] == form], "microseconds") for form in MOST}
    out = []
    for of, (rows, value) in tables.items():
        for kind in KINDS:
            for term_name, way, against in _COMPARED:
                at = {(row["way"], int(row["bodies"])): float(row[value]) for row in rows if _is(row, term_name, kind)}
                sizes = sorted(n for w, n in at if w == way)
                if not sizes:
                    continue
                reference, values = ([at[w, n] for n in sizes] for w in (against, way))
                row = {"term": term_name, "robot": kind, "way": way, "against": against, "of": of}
                row |= {"crossover": crossover(sizes, reference, values), "largest": sizes[-1]}
                out.append({**row, "ratio": values[-1] / reference[-1]})
    return out


_COMPARED = [  # term, way, the product that it is compared with
    (term_name, way, against)
    for against in (REFERENCE, "dtm_sparse")
    for term_name, ways in TERMS.items()
    for way in ways
    if way not in (REFERENCE, against)
]


def _is(row, term_name, kind):
    return (row["term"], row["robot"]) == (term_name, kind)


def panels(counts, clock, shares):
    """Panels of plot_series: both terms by operations and by times, and the breakdown."""
    out = []
    tables = [(counts, "operations", "operations")]
    for form in MOST:
        rows = [row for row in clock if row["form"] == form]
        if rows:
            out_of = "CasADi's virtual machine" if form == "interpreted" else f"compiled, {form}"
            tables.append((rows, "microseconds", f"µs, {out_of}"))
    for rows, value, title in tables:
        for term_name in TERMS:
            lines = _lines_of_term(rows, value, term_name)
            out.append((f"{term_name} term: {title}", "bodies N", title.split(",")[0], "log", lines))
    tables = {"share": "operations", "compiled share": "compiled time", "time share": "interpreted time"}
    for value, title in tables.items():
        for kind in KINDS:
            lines = _lines_of_breakdown(shares, value, kind)
            if lines:
                out.append((f"{kind}: share of {title} (dashed: spatial_vector)", "bodies N", "share", "plain", lines))
    return out


def _lines_of_term(rows, value, term_name):
    """Lines of plot_series: a column of the rows over the bodies, of all ways to a term."""
    lines = []
    for number, way in enumerate(TERMS[term_name]):
        for kind, style in zip(KINDS, ("-", "--"), strict=False):
            points = [row for row in rows if row["way"] == way and _is(row, term_name, kind)]
            label = way if kind == KINDS[0] else None
            lines += _line(points, value, label, f"C{number}{style}")
    return lines


def _lines_of_breakdown(shares, value, kind):
    """Lines of plot_series: the share of each part over the bodies, of all methods."""
    lines = []
    for method, style in zip(BREAKDOWN, ("-", "--"), strict=False):
        rows = [row for row in shares if (row["robot"], row["method"]) == (kind, method) and row[value]]
        for number, part in enumerate(PARTS):
            points = [row for row in rows if row["part"] == part]
            lines += _line(points, value, TOLD[part] if style == "-" else None, f"C{number}{style}")
    return lines


def _line(rows, value, label, style):
    """[line of plot_series] of a column of the rows over their bodies; [] without rows."""
    points = [(int(row["bodies"]), float(row[value])) for row in rows]
    return [(label, *zip(*points, strict=True), style)] if points else []


def report_terms(counts, crossed):
    """The tables of terms as lines of text."""
    worst = max(float(row["error"]) for row in counts if row["error"])
    lines = [
        "Terms of the second partials of forward dynamics: from how many bodies on a way beats another, its share",
        f"{'':33}{'against':12}{'of':16}{'crossover':>10}{'share':>9}  at",
    ]
    for row in crossed:
        number = "none" if row["crossover"] is None else f"{row['crossover']:.1f}"
        head = f"{row['term']:7}{row['robot']:7}{row['way']:19}{row['against']:12}{row['of']:16}"
        lines.append(f"{head}{number:>10}{row['ratio']:9.2f}  {row['largest']}")
    lines.append(f"All ways agree to {worst:.0e} of the largest value")
    if worst > AGREE:
        lines[-1] += f": MORE THAN {AGREE:.0e}"
    return lines


def report_shares(shares):
    """The table of shares as lines of text."""
    lines = ["Shares of the parts: operations, time of the virtual machine, compiled; most bodies with all of them"]
    for kind in KINDS:
        for method in BREAKDOWN:
            rows = [row for row in shares if (row["robot"], row["method"]) == (kind, method)]
            told = [row for row in rows if row["compiled share"]] or rows
            for row in [row for row in told if row["bodies"] == told[-1]["bodies"]]:
                cells = "".join(f"{row[x] or '-':>9}" for x in ("share", "time share", "compiled share"))
                lines.append(f"{kind:7}{row['bodies']:>3}  {method:16}{TOLD[row['part']]:40}{cells}")
    return lines
