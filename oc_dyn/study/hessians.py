"""When exact Hessians pay: five programs by ipopt, with Hessians by AD, analytic ones, Gauss-Newton's and quasi-Newton.

A swing-up of a cart-pole, the fastest motion of a Panda along a path and between two configurations, a UR5 with springs
in its joints, a quadruped in flight. First derivatives are those of the exact Hessian beside them: by AD with AD, else
analytic. Gauss-Newton is for costs that are squares; quasi-Newton is ipopt's limited-memory BFGS. Programs are built
with the Hessian that is asked for and no other, and interpreted, or compiled by -O3.

Every run is a process of its own, with an empty cache of compiled code, and ways take turns: in each round all ways of
a problem run one after the other. Seconds are of the processor, the compiler's included, and the least of all rounds:
the same program takes up to twice as long in some processes, and never less than it needs. Ratios are those of the
least; low and high are those with the second least of the one or the other. A row is steady where the second least of
a way and of AD, of a solve and of the first with building, exceeds the least by 10 % at most.
"""

from pathlib import Path

import numpy as np

from ..files import write_csv
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import apart

NODES = {"cart_pole": 50, "panda_path": 100, "panda_least_time": 50, "ur5_elastic": 25, "quadruped_flight": 20}
SQUARES = ("cart_pole", "ur5_elastic", "quadruped_flight")  # problems whose costs are
WAYS = {  # Hessian of the solver, derivatives
    "AD": ("exact", "ad"),
    "analytic": ("exact", "analytic"),
    "Gauss-Newton": ("gauss_newton", "analytic"),
    "quasi-Newton": ("limited_memory", "analytic"),
}
REFERENCE = ("AD", False)
QUICK = {"cart_pole": 15}
ROUNDS = 6
STEADY = 1.1  # second least of the seconds of all rounds, over the least
LIMIT = 400.0  # [s] of a process: quasi-Newton's iterations are many
SOLVES = (1, 10, 100, 1000, 10000)
SAME = 1e-6  # of objectives, relatively
KEYS = ("problem", "hessian", "compiled")
FACTS = ("status", "same optimum", "objective", "off", "iterations", "unknowns", "rows")
COUNTS = ("value", "Jacobian", "Hessian")  # instructions
TIMES = ("build", "solve", "once")
RATIOS = tuple(f"{k} over AD{what}" for k in TIMES for what in ("", " low", " high"))
FIELDS = (*KEYS, *FACTS, *COUNTS, "rounds", *(f"{k} [s]" for k in TIMES), "ms an iteration", "in functions", *RATIOS)
FIELDS += ("steady",)
CHOICES = ("problem", "solves", "way", "seconds", "AD", "over AD", "over AD, compiled or not", "best without exact")
CAPTIONS = {
    "hessians.csv": "Ways to each optimum: what they found, the same where objectives are to 1e-6 (off: unknowns along "
    "three random directions, from those of the best), instructions of an interval, seconds of building, of a "
    "solve once built, and of building and the first solve (once); in functions: share of the first solve; the least "
    "of all rounds; ratios to AD, interpreted, low and high with the second least of the one or the other.",
    "choices.csv": "The way that takes the fewest seconds for so many solves, building included, of those that found "
    "the same optimum; seconds of AD, interpreted, and ratios to it and to the better of AD compiled or not; the ratio "
    "of the best way without an exact Hessian.",
    "hessians.png": "Seconds of building and so many solves by each way that found the optimum; solid: compiled.",
    "runs.csv": apart.RUNS,
}


def run(out, quick=False, progress=None, rounds=ROUNDS):
    """Measure, summarise and draw: runs.csv, hessians.csv, choices.csv, hessians.png, manifest.json in the folder
    `out`; returns the report as a text.

    quick: the cart-pole on a coarse mesh, once. progress: show a bar on stderr; default on a terminal only. rounds: how
    often every way is measured.
    """
    out, nodes, rounds = Path(out), QUICK if quick else NODES, 1 if quick else rounds
    ways = {problem: ways_of(problem) for problem in nodes}
    total = rounds * sum(map(len, ways.values()))
    with bar(progress, total, "hessians", " processes") as moved, apart.runs(out, quick=quick, limit=LIMIT) as one:
        for number in range(rounds):
            for problem in nodes:
                for way in turned(ways[problem], number):
                    moved.set_postfix_str(f"{problem}, {named(way)}")
                    one(problem, named(way), number, case(problem, way, nodes[problem]))
                    moved.update()
    return summarise(out, nodes, rounds, apart.typed("hessians", out, quick))


def summarise(out, nodes, rounds, words):
    """Write tables, figure and manifest from runs.csv in the folder `out`; returns the report."""
    from .hessians_figures import plot

    found = apart.told(out)
    rows = []
    for problem in nodes:
        rows += rows_of(problem, {way: found[problem][named(way)] for way in ways_of(problem)})
    chosen = [row for problem in nodes for row in choices([r for r in rows if r["problem"] == problem])]
    write_csv(out / "hessians.csv", [FIELDS, *([shown(row.get(k, "")) for k in FIELDS] for row in rows)])
    write_csv(out / "choices.csv", [CHOICES, *([shown(row[k]) for k in CHOICES] for row in chosen)])
    plot(rows, out / "hessians.png")
    facts = {"nodes": nodes, "rounds": rounds, "same": SAME, "steady": STEADY}
    write_json(out / "manifest.json", manifest(words, **facts))
    return report(rows, chosen)


def ways_of(problem):
    """[(name of WAYS, whether compiled)]."""
    some = [name for name in WAYS if name != "Gauss-Newton" or problem in SQUARES]
    return [(name, compiled) for compiled in (False, True) for name in some]


def turned(ways, number):
    """The ways in the order of a round: each comes first once."""
    k = number % len(ways)
    return [*ways[k:], *ways[:k]]


def named(way):
    """What a way is called."""
    return way[0] + (", compiled" if way[1] else "")


def case(problem, way, nodes):
    """The process of one run."""
    hessian, derivatives = WAYS[way[0]]
    given = {"problem": problem, "hessian": hessian, "derivatives": derivatives, "compiled": way[1], "nodes": nodes}
    return apart.Case("hessians", "solve", given)


def rows_of(problem, told):
    """Rows of FIELDS. told: {way: [Told of each round]}."""
    seconds = {way: np.array([seconds_of(t) for t in some]) for way, some in told.items()}
    best = optimum(told.values())
    rows = []
    for way, some in told.items():
        row = {"problem": problem, "hessian": way[0], "compiled": "yes" if way[1] else "no"}
        ended = next((t for t in some if not solved(t)), None)
        if ended is not None:
            rows.append({**row, "status": ended.status})
            continue
        parts = {p["part"]: p for p in some[0].parts}
        first = parts["first"]
        row |= {k: first[k] for k in ("status", "iterations", "unknowns", "rows")}
        row["rounds"] = len(some)
        row["objective"] = f"{first['objective']:.10g}"
        row |= {k: x or "" for k, x in first["instructions"].items()}
        row["same optimum"] = "yes" if all(same(t, best) for t in some) else "no"
        row["off"] = None if best is None else float(np.abs(np.subtract(first["seen"], best["seen"])).max())
        row |= timed(seconds[way], seconds.get(REFERENCE))
        row["ms an iteration"] = 1e3 * row["solve [s]"] / max(first["iterations"], 1)
        row["in functions"] = first["functions"] / first["value"]
        rows.append(row)
    return rows


def solved(told):
    """Whether a run came to the end of a solve."""
    return any(p["part"] == "first" for p in told.parts)


def seconds_of(told):
    """(3,) of TIMES, of one run; NaN where it did not end. One that was cut off when it solved again has the first."""
    if not solved(told):
        return [np.nan] * 3
    cpu = {p["part"]: p["cpu"] for p in told.parts}
    return [cpu["build"], cpu.get("again", cpu["first"]), cpu["build"] + cpu["first"]]


def timed(seconds, reference):
    """The least of (rounds, 3) seconds, ratios to those of the reference with their intervals, and whether all but
    those of building alone are steady, which a single round never is."""
    least, second = _two_least(seconds)
    row = {f"{k} [s]": x for k, x in zip(TIMES, least, strict=True)}
    spread = [*(second / least)[1:]]
    if reference is not None and np.isfinite(reference).all():
        of_reference, other = _two_least(reference)
        spread += [*(other / of_reference)[1:]]
        ratio, low, high = least / of_reference, least / other, second / of_reference
        for k, name in enumerate(TIMES):
            row |= {f"{name} over AD": ratio[k], f"{name} over AD low": low[k], f"{name} over AD high": high[k]}
    return {**row, "steady": "yes" if max(spread) <= STEADY else "no"}


def _two_least(seconds):
    """The two least of each column; infinity for the second of one row."""
    return np.sort(np.vstack([seconds, np.full(seconds.shape[1], np.inf)]), axis=0)[:2]


def optimum(told):
    """The part "first" of the best objective of all runs that succeeded, or None."""
    parts = [p for some in told for t in some for p in t.parts if p["part"] == "first" and p["success"]]
    return min(parts, key=lambda p: p["objective"], default=None)


def same(told, best):
    """Whether a run found the optimum, by its objective: where that is flat, unknowns may differ."""
    part = next(p for p in told.parts if p["part"] == "first")
    if best is None or not part["success"]:
        return False
    return bool(abs(part["objective"] - best["objective"]) <= SAME * abs(best["objective"]))


def choices(rows):
    """Rows of CHOICES of a problem's rows."""
    right = [r for r in rows if r.get("same optimum") == "yes"]
    ad = [r for r in right if r["hessian"] == "AD"]
    plain = [r for r in ad if r["compiled"] == "no"]
    out = []
    for n in SOLVES if plain else ():
        best = min(right, key=lambda r: total(r, n))
        reference, least = total(plain[0], n), total(best, n)
        other = [total(r, n) for r in right if r["hessian"] not in ("AD", "analytic")]
        out.append({
            "problem": best["problem"], "solves": n, "way": named((best["hessian"], best["compiled"] == "yes")),
            "seconds": least, "AD": reference, "over AD": least / reference,
            "over AD, compiled or not": least / min(total(r, n) for r in ad),
            "best without exact": min(other) / reference if other else "",
        })  # fmt: skip
    return out


def total(row, solves):
    """Seconds of building and so many solves."""
    return row["once [s]"] + (solves - 1) * row["solve [s]"]


def shown(x):
    """A cell of a table."""
    return f"{x:.10g}" if isinstance(x, float) and abs(x) >= 1e4 else f"{x:.4g}" if isinstance(x, float) else x


def report(rows, chosen):
    """What was found, a line a way, and the choices."""
    told = (*KEYS, "status", "same optimum", "iterations", "build [s]", "solve [s]", "solve over AD", "once [s]")
    told += ("once over AD", "steady")
    tables = []
    for some, fields in ((rows, told), (chosen, ("problem", "solves", "way", "over AD"))):
        tables.append(in_columns([fields, *([shown(r.get(k, "")) for k in fields] for r in some)]))
    return "\n\n".join(tables)
