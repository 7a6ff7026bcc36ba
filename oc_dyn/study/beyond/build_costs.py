"""What a method costs before its first call: time and memory to build it, size of its C, time and memory to compile it.

Every method is built, and compiled where it has not too many instructions, in a new process; seconds are those of the
processor. Calls are timed compiled and in CasADi's virtual machine, the methods of a quantity taking turns. A method
that is faster and takes longer to build has paid after so many calls (break_even.csv).
"""

import math
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import casadi as ca

from ...registry import get, get_method, methods
from ...runs.manifest import manifest, write_json
from ...runs.points import bar
from ...runs.stored_table import StoredTable
from ...text import in_columns
from .. import apart, parts
from ..functions import built, new_robot, random_ports, steadied
from ..memory import fresh, peak
from ..native import buffered, compiler
from .c_programs import Loaded, Program, calls_in_turns, compiled, turns

QUANTITIES = (  # and orders
    ("inverse_dynamics", 2),
    ("forward_dynamics", 2),
    ("inverse_dynamics_partials", 0),
    ("forward_dynamics_partials", 0),
    ("inverse_dynamics_lagrangian_hessian", 0),
    ("inverse_dynamics_second_partials", 0),
)
ROBOTS, QUICK = ("panda", "quadruped", "humanoid"), ("double_pendulum",)
LEFT_OUT = ("numeric", "closed_form")  # the latter are compared in kumar_mueller
COMPILED = 30_000  # instructions up to which a method is compiled
ROUNDS = 21
GROUP = ("robot", "quantity", "order")
COSTS = ("kind", "instructions", "build_seconds", "build_mb", "bytes", "compile_seconds", "compile_mb")
TIMES = ("microseconds", "ratio", "low", "high", "steady")  # compiled, over the default method
VM = tuple(f"interpreted {x}" for x in TIMES)  # in the virtual machine
SAME = "same time"
LEAST, BEST_AD = "least set-up", "best AD"
WAYS = {"compiled": "", "interpreted": "interpreted "}

CAPTIONS = {
    "build_costs.png": "Time of a call over the time until the first one, compiled; hollow: automatic differentiation.",
    "costs.csv": "Instructions; seconds of the processor and memory to build a Function, bytes of its C, seconds and "
    "memory of the compiler; time of a call compiled and in the virtual machine, ratios to the default method.",
    "break_even.csv": "set-up: seconds before the first call; ready, time: those and a call, over the other's; calls: "
    "after which a method has paid, beside the one that is ready first and the best AD; always "
    "and never: it is less, or more, from the first call on; up to: it is ready sooner and slower; same time: 1 lies "
    "between the 10th and 90th percentile of the ratio of a call.",
    "compiling.csv": "Calls after which compiling has paid, beside calls in the virtual machine.",
}


def run(out, quick=False, progress=None, only=None):
    """Measure and draw; returns the tables as a text.

    out: folder for costs.csv (rows that the same code left there are not measured again), break_even.csv,
    compiling.csv, build_costs.png, manifest.json. quick: a double pendulum alone. progress: show a bar on stderr;
    default on a terminal only. only: texts, with semicolons between them; of groups without one of them in "robot,
    quantity, order" what the file has stays. Needs a system of POSIX; without a C compiler nothing is compiled.
    """
    from .figures import plot_costs_of_building

    out, names = Path(out), QUICK if quick else ROBOTS
    groups = [dict(zip(GROUP, (name, q, r), strict=True)) for name in names for q, r in QUANTITIES]
    plan = [group | {"method": m} for group in groups for m in chosen(**group)]
    table = StoredTable(out / "costs.csv", (*GROUP, "method"), (*COSTS, *TIMES, *VM), quick=quick)
    table.begin()
    part = parts.chosen(groups, only)
    kept = parts.others(table, part, groups)
    with bar(progress, len(part), "build_costs") as shown:
        for group in part:
            of = [keys for keys in plan if all(keys[k] == group[k] for k in GROUP)]
            stored = [table.known(**keys) for keys in of]
            if None in stored:
                stored = _measured(of, 3 if quick else ROUNDS, shown)
            for keys, row in zip(of, stored, strict=True):
                table.add(**{**row, **keys})
            shown.update()
    parts.close(table, kept, plan)
    pairs = break_even(out / "break_even.csv", table.rows)
    compiling = _compiling(out / "compiling.csv", table.rows)
    ready = [row | {"set-up": set_up(row, "compiled")} for row in table.rows]
    plot_costs_of_building(ready, out / "build_costs.png")
    command = apart.typed("build_costs", out, quick, only=only)
    write_json(out / "manifest.json", manifest(command, compiled_up_to=COMPILED))
    return report(table.rows, pairs, compiling)


def chosen(robot, quantity, order):
    """Methods that are compared, the default one first."""
    r, default = new_robot(robot), get(quantity).default[0]
    names = [m for m in methods(quantity) if get_method(quantity, m).refusal(r, order) is None]
    names = [m for m in names if get_method(quantity, m).kind not in LEFT_OUT and not m.endswith("along_motion")]
    return sorted(names, key=lambda m: m != default)


# -- measuring -------------------------------------------------------------------------------------------------


def _measured(of, rounds, shown):
    """Rows of all methods of a quantity of a robot."""
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as folder:
        rows = []
        for keys in of:
            shown.set_postfix_str(", ".join(map(str, keys.values())))
            rows.append(fresh(one, **keys, folder=folder))
        functions = [ca.Function.load(row["saved"]) for row in rows]
        robot = new_robot(of[0]["robot"])
        ports = random_ports(robot, functions)
        interpreted = [buffered(f, ports) for f in functions]
        _add_times(rows, steadied(lambda: calls_in_turns(interpreted, rounds), [0] * len(rows))[0], "interpreted ")
        programs = [row for row in rows if row["program"]]
        loaded = [Loaded(Program(**row["program"])) for row in programs]
        for x in loaded:
            x.give(ports)
        if loaded:
            _add_times(programs, steadied(lambda: turns(loaded, rounds), [0] * len(loaded))[0], "")
    return [{k: row.get(k, "") for k in (*COSTS, *TIMES, *VM)} for row in rows]


def _add_times(rows, times, told):
    for row, found in zip(rows, times, strict=True):
        row |= {f"{told}{k}": found[k] for k in TIMES}


def one(robot, quantity, order, method, folder):
    """{field: number or text} of building and compiling a method, in a process that has done nothing else."""
    r, before, start = new_robot(robot), peak(), time.process_time()
    f = built(quantity, r, order, method, name=f"by_{method}")
    seconds, after = time.process_time() - start, peak()
    straight = f.is_a("SXFunction")  # what calls Functions has no instructions
    row = {"kind": "ad" if get_method(quantity, method).kind == "ad" else "analytic"}
    row["instructions"] = f.n_instructions() if straight else ""
    row |= {"build_seconds": f"{seconds:.3f}", "build_mb": "" if before is None else f"{after - before:.1f}"}
    row |= {"saved": str(Path(folder) / f"by_{method}.casadi"), "program": None}
    f.save(row["saved"])
    if compiler() and f.n_instructions() <= COMPILED:
        program = compiled(f, folder)
        row |= {"bytes": program.bytes, "compile_seconds": f"{program.seconds:.2f}"}
        row |= {"compile_mb": f"{program.peak_mb:.0f}", "program": asdict(program)}
    return row


# -- break-even ------------------------------------------------------------------------------------------------


def set_up(row, by):
    """Seconds before the first call of a method; None where it was not timed."""
    if not row[f"{WAYS[by]}microseconds"]:
        return None
    return float(row["build_seconds"]) + (float(row["compile_seconds"]) if by == "compiled" else 0.0)


def break_even(path, costs):
    """Rows of break_even.csv of rows of costs.csv."""
    table = StoredTable(path, (*GROUP, "by", "method", "against"), FIELDS)
    for group in dict.fromkeys(tuple(row[k] for k in GROUP) for row in costs):
        for by, told in WAYS.items():
            of = [row for row in costs if tuple(row[k] for k in GROUP) == group and set_up(row, by) is not None]
            if not of:
                continue
            first = min(of, key=lambda row: set_up(row, by))
            ads = [row for row in of if row["kind"] == "ad"]
            best = min(ads, key=lambda row: float(row[f"{told}microseconds"]), default=None)
            for against, other in ((LEAST, first), (BEST_AD, best)):
                for row in of if other else ():
                    if row is not other:
                        keys = dict(zip(GROUP, group, strict=True)) | {"by": by, "method": row["method"]}
                        table.add(**keys, against=against, **compared(row, other, by))
    table.close()
    return table.rows


FIELDS = ("other", "set-up", "ready", "time", "verdict", "calls", "steady")


def compared(row, other, by):
    """{field: text} of a method beside another; ready, time: its set-up and a call, over those of the other."""
    told = WAYS[by]
    a, b = set_up(row, by), set_up(other, by)
    t, u = (1e-6 * float(x[f"{told}microseconds"]) for x in (row, other))
    low, high = (float(row[f"{told}{k}"]) / float(other[f"{told}ratio"]) for k in ("low", "high"))
    verdict, calls = (SAME, None) if low <= 1 <= high else paid(a, t, b, u)
    steady = "yes" if {row[f"{told}steady"], other[f"{told}steady"]} == {"yes"} else "no"
    facts = {"other": other["method"], "set-up": f"{a:.3f}", "ready": f"{a / b:.3f}", "time": f"{t / u:.3f}"}
    return facts | {"verdict": verdict, "calls": "" if calls is None else f"{calls:.3g}", "steady": steady}


def paid(a, t, b, u):
    """(verdict, calls) of a way of set-up a and t a call [s] beside one of b and u: "from" so many calls on it takes
    less in all, "up to" so many; "always" or "never", without a number."""
    if t < u:
        return ("always", None) if a <= b else ("from", float(math.ceil((a - b) / (u - t))))
    if a < b:
        return ("up to", float(math.floor((b - a) / (t - u)))) if t > u else ("always", None)
    return "never", None


def _compiling(path, costs):
    """Rows of compiling.csv."""
    table = StoredTable(path, (*GROUP, "method"), ("compile_seconds", "speed-up", "calls"))
    for row in costs:
        if row["microseconds"]:
            fast, slow = float(row["microseconds"]), float(row["interpreted microseconds"])
            _, calls = paid(float(row["compile_seconds"]), 1e-6 * fast, 0.0, 1e-6 * slow)
            facts = {"compile_seconds": row["compile_seconds"], "speed-up": f"{slow / fast:.1f}"}
            keys = {k: row[k] for k in (*GROUP, "method")}
            table.add(**keys, **facts, calls="" if calls is None else f"{calls:.3g}")
    table.close()
    return table.rows


# -- telling ---------------------------------------------------------------------------------------------------


def report(costs, pairs, compiling):
    """The tables as a text."""
    names = (*GROUP, "method", *COSTS[1:], "microseconds", "steady")
    lines = ["Seconds of the processor and MB to build and to compile; time of a call, compiled"]
    lines += [in_columns([names, *([row[k] for k in names] for row in costs)])]
    names = (*GROUP, "method", "other", "time", "verdict", "calls", "steady")
    shown = [r for r in pairs if r["by"] == "compiled" and r["against"] == BEST_AD]
    lines += ["", "Beside the best AD, compiled: time of a call over its, and from or up to how many calls it has paid"]
    lines += [in_columns([names, *([row[k] for k in names] for row in shown)])]
    calls = [float(row["calls"]) for row in compiling if row["calls"]]
    if calls:
        lines += ["", f"Compiling has paid after {min(calls):.3g} to {max(calls):.3g} calls"]
    return "\n".join(lines)
