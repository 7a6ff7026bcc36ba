"""Second partials over the number of bodies: slopes of time and instructions, size of the code, and differences.

Singh, Russell and Wensing 2023, Table III and figures 7 to 9 (inverse dynamics): time is fitted by log(t) = A log(N) +
B. Here t are microseconds of CasADi's virtual machine, so that B is another one than that of the paper's Fortran, and
instructions, the same everywhere. Figures 14, 15 and 18, the parts of second partials of forward dynamics, are in
singh_parts; 16, 17 and 20, all ways to them, in singh_forward; 10 and 19, times of robots, in singh_programs. The four
error metrics of inverse dynamics are the study second_order.
"""

from functools import partial
from pathlib import Path

import casadi as ca
import numpy as np

from .. import robots
from ..files import read_json
from ..function import function
from ..registry import get_method
from ..runs.manifest import manifest, write_json
from ..runs.points import bar, fill
from ..runs.stored_table import StoredTable
from . import apart, singh_forward, singh_parts, singh_programs
from .functions import random_ports, steadied
from .native import in_turns, interpreted_runs
from .parts import read_rows
from .second_order import FORWARD, INVERSE

MOST = {  # ways, and the numbers of bodies up to which they are built in seconds
    INVERSE: {
        "composite": 24,
        "compact": 32,
        "spatial_vector": 16,
        "chain_rule": 12,
        "ad": 12,
        "ad_symmetric": 12,
        "ad_pure": 12,
        "bicomplex": 24,
        "finite_difference_1": 24,
        "finite_difference_2": 32,
    },
    FORWARD: {"composite": 12, "ad": 8, "ad_symmetric": 8, "ad_pure": 8},
}
PUBLISHED = {  # Table III: (A of chains, A of trees)
    (INVERSE, "spatial_vector"): (3.08, 1.45),
    (INVERSE, "chain_rule"): (3.05, 3.17),
    (INVERSE, "bicomplex"): (2.98, 2.98),
    (INVERSE, "finite_difference_1"): (3.02, 3.03),
    (INVERSE, "finite_difference_2"): (2.38, 2.15),
}
KINDS, SIZES, QUICK = ("chain", "tree"), (2, 4, 6, 8, 12, 16, 24, 32), (2, 3)
ROUNDS, CALLS = 15, 4
FIRST = 4  # bodies from which on slopes are fitted: before, joints near the base save too much


def run(out, quick=False, progress=None, executor="serial", only=None):
    """Measure, fit and draw; returns the report as a text.

    out: folder for sizes.csv, times.csv, slopes.csv, singh.png (rows that the same code left there are not measured
    again); terms.csv, term_times.csv, breakdown.csv, terms.png; forward.csv, forward_times.csv, forward_slopes.csv,
    forward.png; robots.csv, programs.csv, programs.png; manifest.json. quick: up to three bodies,
    one robot. executor: where Functions are built, counted and compared; times are measured here. only: texts with
    semicolons between them, one of which is in the name of a part, one of parts(); what the others left there stays.
    Raises ShapeError where no part is left.
    """
    out = Path(out)
    every = parts(quick)
    chosen = apart.chosen_of(list(every), only, str)
    told = []
    with bar(progress, sum(every[name][0] for name in chosen), "singh") as shown:
        for number, name in enumerate(chosen):
            lines, found = every[name][1](out, quick, executor, shown)
            told += [*lines, ""] if lines else []
            of = manifest(apart.typed("singh", out, quick, only=only))
            facts = (_facts(out) if only or number else {}) | found
            kept = {k: x for k, x in facts.get("parts", {}).items() if k in every}
            facts["parts"] = kept | {name: {k: of[k] for k in ("command", "date", "git")}}
            write_json(out / "manifest.json", manifest(of["command"], **facts))
    if any("forward" in name for name in chosen):
        told += singh_forward.finish(out, quick)
    return "\n".join(told)


def _facts(out):
    """What an earlier run left in the manifest."""
    path = out / "manifest.json"
    return {k: x for k, x in read_json(path).items() if k in _FACTS} if path.exists() else {}


def _plan(quick):
    """Points of sizes.csv and times.csv, a list of {key: value}."""
    return [
        {"quantity": q, "robot": kind, "method": m, "bodies": n}
        for q, ways in MOST.items()
        for kind in KINDS
        for m, most in ways.items()
        for n in (QUICK if quick else SIZES)
        if n <= most
    ]


def _run_sizes(out, quick, executor, shown):
    from .paper_figures import plot_series

    plan = _plan(quick)
    table = StoredTable(
        out / "sizes.csv", ("quantity", "robot", "method", "bodies"), ("instructions", "bytes", "lines")
    )
    counts = fill(table, plan, _size, executor, shown)
    table.close(plan)
    times = _times(out / "times.csv", plan, quick, shown)
    slopes = _slopes(out / "slopes.csv", counts, times, 2 if quick else FIRST)
    plot_series(_panels(counts, times), out / "singh.png", _TITLE)
    return report(slopes, counts), {"slopes": slopes, "slopes_from_bodies": FIRST}


def _run_terms(out, quick, executor, shown):
    terms, clock = singh_parts.measure(out, quick, executor, shown)
    crossed = singh_parts.crossovers(terms, clock)
    _plot_terms(out)
    return singh_parts.report_terms(terms, crossed), {"crossovers": crossed}


def _run_shares(out, quick, executor, shown):
    shares = singh_parts.measure_shares(out, quick, shown)
    _plot_terms(out)
    return singh_parts.report_shares(shares), {}


def _plot_terms(out):
    """terms.png, of the tables that are in the folder."""
    from .paper_figures import plot_series

    tables = (read_rows(out / name) for name in ("terms.csv", "term_times.csv", "breakdown.csv"))
    plot_series(singh_parts.panels(*tables), out / "terms.png", singh_parts.TITLE)


def _run_forward(of, out, quick, executor, shown):
    singh_forward.measure(out, quick, of, executor, shown)
    return [], {}


def _run_times(compiled, of, out, quick, executor, shown):
    singh_forward.measure_times(out, quick, of, compiled, shown)
    return [], {}


def _run_count(name, out, quick, executor, shown):
    return singh_programs.report_counts(singh_programs.count(out, quick, name, executor, shown)), {}


def _run_robot(name, out, quick, executor, shown):
    programs, every = singh_programs.measure(out, quick, name, shown)
    singh_programs.plot(every, out / "programs.png")
    return singh_programs.report(programs), {}


def parts(quick):
    """{name: (steps of the bar, what measures it)}."""
    return {
        "sizes": (2 * len(_plan(quick)), _run_sizes),
        "terms": (sum(map(len, singh_parts.plans(quick)[:2])), _run_terms),
        "breakdown": (len(singh_parts.plans(quick)[2]), _run_shares),
        **_of_sizes("forward", singh_forward.plan(quick), _run_forward),
        **_of_sizes("time of forward", singh_forward.plan(quick), partial(_run_times, False)),
        **_of_sizes("compiled forward", singh_forward.plan_compiled(quick), partial(_run_times, True)),
        **_of_robots("count", singh_programs.counted(quick), _run_count),
        **_of_robots("robot", singh_programs.plan(quick), _run_robot),
    }


def _of_sizes(what, points, run_one):
    of = singh_forward.groups(points)
    return {f"{what} {kind} {n}": (steps, partial(run_one, (kind, n))) for (kind, n), steps in of.items()}


def _of_robots(what, points, run_one):
    names = [keys["robot"] for keys in points]
    return {f"{what} {name}": (names.count(name), partial(run_one, name)) for name in dict.fromkeys(names)}


_FACTS = ("slopes", "slopes_from_bodies", "crossovers", "parts")
CAPTIONS = {
    "singh.png": "Instructions and times of second partials over the number of bodies; full: chains, dashed: trees.",
    "terms.png": "Terms of the second partials of forward dynamics, by products of matrices and by recursions, and "
    "what share its parts have (figures 14, 15, 18).",
    "forward.png": "Second partials of forward dynamics by every way: operations, times, both over those of the "
    "paper's algorithm, and errors (figures 16, 17, 20).",
    "programs.png": "Second partials of robots as machine code and in the virtual machine, beside AD (figures 10, 19).",
    "slopes.csv": "Fits of log(t) = A log(N) + B, and A as published (Table III).",
    "sizes.csv": "Instructions, bytes and lines of C.",
    "forward.csv": "Arithmetic operations of second partials of forward dynamics by every way (figure 16), and four "
    "metrics of the error against the bicomplex step (figure 20).",
    "forward_compiled.csv": "Their times as machine code; ratios likewise.",
    "forward_times.csv": "Their times in CasADi's virtual machine; ratios are to spatial_vector, the paper's algorithm "
    "(figures 16, 17).",
    "forward_slopes.csv": "Fits of log(y) = A log(N) + B, y their operations or steady times, and the paper's leading "
    "power.",
    "terms.csv": "Arithmetic operations of the inner and the outer term by every way.",
    "term_times.csv": "Their times; ratios are to dense products.",
    "breakdown.csv": "Operations and times of the parts of second partials of forward dynamics.",
    "robots.csv": "Instructions of robots.",
    "programs.csv": "Times of robots; ratios are to AD by the same means.",
    "times.csv": "Microseconds of a call in the virtual machine.",
}
_TITLE = "Second partials over the number of bodies (full: chains, dashed: binary trees)"


def _size(quantity, robot, method, bodies):
    """{"instructions", "bytes", "lines"} of a Function and its C code; no instructions where it calls Functions."""
    f = _built(quantity, robot, method, bodies)
    straight = get_method(quantity, method).graph == "sx"
    generator = ca.CodeGenerator("second_partials.c")
    generator.add(ca.Function(f))
    code = generator.dump()
    return {
        "instructions": f.n_instructions() if straight else "",
        "bytes": len(code.encode()),
        "lines": code.count("\n"),
    }


def _built(quantity, robot, method, bodies):
    return function(robots.by_name(f"{robot}:{bodies}"), quantity, method=method, name="second_partials")


def _times(path, plan, quick, shown):
    """Rows of times.csv: microseconds of a call of every Function of the plan; all sizes of a way take turns, so that
    a machine that changes its speed does so for all of them."""
    names = ("microseconds", "spread", "steady")
    table = StoredTable(path, ("quantity", "robot", "method", "bodies"), names, quick=quick)
    for way in dict.fromkeys((keys["quantity"], keys["robot"], keys["method"]) for keys in plan):
        sizes = [keys for keys in plan if (keys["quantity"], keys["robot"], keys["method"]) == way]
        stored = [table.known(**keys) for keys in sizes]
        if None in stored:
            stored = _timed(sizes, 3 if quick else ROUNDS)
        for keys, row in zip(sizes, stored, strict=True):
            table.add(**keys, **{name: row[name] for name in names})
        shown.update(len(sizes))
    table.close(plan)
    return table.rows


def _timed(sizes, rounds):
    """What steadied says of Functions that differ in size, at random arguments of their own robots."""
    runs = [(_built(**keys), robots.by_name(f"{keys['robot']}:{keys['bodies']}")) for keys in sizes]
    ports = [random_ports(r, [f]) for f, r in runs]
    alone = [interpreted_runs([f], x)[0] for (f, _), x in zip(runs, ports, strict=True)]
    return steadied(lambda: in_turns(alone, rounds, CALLS), list(range(len(sizes))))[0]


def _slopes(path, counts, times, first):
    """Rows of slopes.csv: A and B of time, how many of its points are not steady, A of instructions and of bytes, and
    what the paper says of A."""
    names = ("largest", "A", "B", "unsteady", "published A", "A of instructions", "A of bytes")
    table = StoredTable(path, ("quantity", "robot", "method"), names)
    for key in dict.fromkeys((row["quantity"], row["robot"], row["method"]) for row in times):
        quantity, robot, method = key
        t, c = (
            [row for row in rows if (row["quantity"], row["robot"], row["method"]) == key] for rows in (times, counts)
        )
        facts = {"largest": max(int(row["bodies"]) for row in t)}
        facts["unsteady"] = sum(row["steady"] == "no" for row in t if int(row["bodies"]) >= first)
        for name, rows, value in (
            ("A", t, "microseconds"),
            ("A of instructions", c, "instructions"),
            ("A of bytes", c, "bytes"),
        ):
            points = [(int(row["bodies"]), float(row[value])) for row in rows if row[value]]
            points = [point for point in points if point[0] >= first]
            if len(points) > 1:
                A, B = np.polyfit(*np.log(np.array(points).T), 1)
                facts[name] = f"{A:.2f}"
                if name == "A":
                    facts["B"] = f"{B:.2f}"
        if (quantity, method) in PUBLISHED:
            facts["published A"] = PUBLISHED[quantity, method][KINDS.index(robot)]
        table.add(quantity=quantity, robot=robot, method=method, **facts)
    table.close()
    return table.rows


def _panels(counts, times):
    panels = []
    for quantity, ways in MOST.items():
        for rows, value, y in (
            (times, "microseconds", "µs of a call"),
            (counts, "instructions", "instructions"),
            (counts, "bytes", "bytes of C"),
        ):
            lines = []
            for number, m in enumerate(ways):
                for kind, style in zip(KINDS, ("-", "--"), strict=True):
                    of = [row for row in rows if (row["quantity"], row["method"], row["robot"]) == (quantity, m, kind)]
                    points = [(int(row["bodies"]), float(row[value])) for row in of if row[value]]
                    if points:
                        label = m if kind == KINDS[0] else None
                        lines.append((label, *zip(*points, strict=True), f"C{number}{style}"))
            told = quantity.replace("_", " ")
            panels.append((f"{told}: {y}", "bodies N", y, "log", lines))
    return panels


def report(slopes, counts):
    """The tables as lines of text."""
    names = ("largest", "A", "B", "unsteady", "published A", "A of instructions", "A of bytes")
    lines = [
        "Slopes: log(microseconds) = A log(N) + B; largest: bodies",
        f"{'':53}" + "".join(f"{x:>19}" for x in names),
    ]
    for row in slopes:
        head = f"{row['quantity'].split('_')[0]:9}{row['robot']:8}{row['method']:36}"
        lines.append(head + "".join(f"{row[x] or '-':>19}" for x in names))
    lines += ["", "C code: bytes of the largest Functions"]
    for quantity, ways in MOST.items():
        for m in ways:
            row = [x for x in counts if (x["quantity"], x["method"], x["robot"]) == (quantity, m, "chain")][-1]
            told = f"{int(row['bytes']) / 1e6:8.2f} MB, {row['lines']} lines"
            lines.append(f"{quantity.split('_')[0]:9}{m:24}chain of {row['bodies']:>3}{told}")
    return lines
