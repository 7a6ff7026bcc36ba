"""Single precision: decimal digits that C in float loses, and how much faster it is than in double.

Both are compiled from the same instructions and read the same numbers, rounded to single precision. The error is the
largest difference of an output over its largest entry; digits lost are those of it beyond half a unit of the last
place of single precision. "inputs" is what the same rounding of the inputs alone changes, in double precision: what no
method can avoid. Torques of forward dynamics are those of random accelerations. Times are ratios float over double, in
rounds in which the two take turns. How digits go with the distance from the origin is the study precision.
"""

import tempfile
from pathlib import Path

import numpy as np

from ...errors import SolveError
from ...function import function
from ...ports import derivative_name
from ...registry import get_method
from ...runs.manifest import manifest, write_json
from ...runs.points import bar, named
from ...runs.stored_table import StoredTable
from ...text import in_columns
from .. import apart
from ..functions import TIMES, built, new_robot, steadied
from ..native import compiler
from .c_programs import Loaded, compiled, turns

ROBOTS, QUICK = ("panda", "quadruped", "humanoid", "chain:20"), ("double_pendulum",)
WAYS = {  # (quantity, order): methods
    ("inverse_dynamics", 0): ("taylor", "recursive_body", "recursive_spatial"),
    ("inverse_dynamics", 2): ("taylor", "recursive_spatial", "ad_taylor"),
    ("mass_matrix", 0): ("composite", "jacobian_sum"),
    ("forward_dynamics", 0): ("taylor", "articulated_body", "articulated_spatial"),
    ("forward_dynamics", 2): ("taylor", "articulated_spatial", "ad_taylor"),
    ("inverse_dynamics_adjoint", 0): ("composite", "ad"),
    ("inverse_dynamics_partials", 0): ("composite", "ad", "spatial_vector"),
    ("forward_dynamics_partials", 0): ("composite", "ad_via_inverse", "spatial_vector"),
    ("inverse_dynamics_lagrangian_hessian", 0): ("composite", "ad"),
}
SAMPLES, ROUNDS = 200, 21
MOST = 40_000  # instructions up to which a method is compiled
UNIT = 2.0**-24  # half a unit of the last place, relative
KEYS = ("robot", "quantity", "order", "method")
DIGITS = ("instructions", "error", "worst", "lost", "worst lost", "inputs", "lost by inputs", "condition")

CAPTIONS = {
    "single_precision.png": "Decimal digits that float loses, the median of random states; |: what rounding the inputs "
    "costs.",
    "digits.csv": "error, worst: median and largest relative error of float in random states; lost, worst lost: "
    "decimal digits of the 7.2 of single precision; inputs, lost by inputs: the median change, in double, where inputs "
    "change by up to half a unit of the last place; condition: of the mass matrix, median.",
    "times.csv": "Time of a call in float and its ratio to that in double, compiled C.",
}


def run(out, quick=False, progress=None):
    """Measure and draw; returns the table as a text.

    out: folder for digits.csv, times.csv (rows that the same code left there are not measured again),
    single_precision.png, manifest.json. quick: a double pendulum alone, few states. progress: show a bar on stderr;
    default on a terminal only. Raises SolveError without a C compiler.
    """
    from .figures import plot_digits

    if compiler() is None:
        raise SolveError("study single_precision: no C compiler was found: install gcc or clang")
    out, plan = Path(out), points(QUICK if quick else ROBOTS)
    digits = StoredTable(out / "digits.csv", KEYS, DIGITS, quick=quick)
    times = StoredTable(out / "times.csv", KEYS, TIMES, quick=quick)
    digits.begin()
    with bar(progress, len(plan), "single_precision") as shown:
        for keys in plan:
            shown.set_postfix_str(named(keys))
            known = digits.known(**keys), times.known(**keys)
            if None in known:
                known = measured(**keys, samples=20 if quick else SAMPLES, rounds=5 if quick else ROUNDS)
            for table, row in zip((digits, times), known, strict=True):
                if any(v for k, v in row.items() if k not in (*KEYS, "code")):
                    table.add(**{**row, **keys})
            shown.update()
    digits.close()
    times.close()
    plot_digits(digits.rows, out / "single_precision.png")
    command = apart.typed("single_precision", out, quick)
    there = [{k: str(x) for k, x in keys.items()} for keys in plan]
    missing = [keys for keys in there if all(any(row[k] != x for k, x in keys.items()) for row in digits.rows)]
    facts = {"samples": SAMPLES, "compiled_up_to": MOST, "left_out": [named(keys) for keys in missing]}
    write_json(out / "manifest.json", manifest(command, **facts))
    return report(digits.rows, times.rows)


def points(names):
    """[{key: value}] of what these robots can do."""
    out = []
    for name in names:
        robot = new_robot(name)
        for (quantity, order), ways in WAYS.items():
            able = [m for m in ways if get_method(quantity, m).refusal(robot, order) is None]
            out += [dict(zip(KEYS, (name, quantity, order, m), strict=True)) for m in able]
    return out


def measured(robot, quantity, order, method, samples, rounds):
    """(values of digits.csv, values of times.csv) of a method; without numbers where it is too long."""
    r = new_robot(robot)
    f = built(quantity, r, order, method, name="measured")
    if f.n_instructions() > MOST:
        return {}, {}
    states = states_of(r, f, samples)
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as folder:
        double, single = (Loaded(compiled(f, folder, precision)) for precision in ("double", "single"))
        facts = {"instructions": f.n_instructions()} | losses(r, double, single, states)
        for x in (double, single):
            x.give(states[0])
        (_, row), _ = steadied(lambda: turns([double, single], rounds), [0, 0])
    return facts, row


def losses(robot, double, single, states):
    """{field: text} of digits.csv of a program in both precisions, at states as single precision has them."""
    rng = np.random.default_rng(1)
    errors, changes = [], []
    for state in states:
        exact = double.values(state)
        errors.append(error(single.values(state), exact))
        changes.append(error(double.values({k: _moved(x, rng) for k, x in state.items()}), exact))
    mass = function(robot, "mass_matrix")
    condition = np.median([np.linalg.cond(np.array(mass(state["q"]))) for state in states])
    middle, worst, by_inputs = np.median(errors), np.max(errors), np.median(changes)
    return {
        "error": f"{middle:.2e}",
        "worst": f"{worst:.2e}",
        "lost": f"{lost(middle):.2f}",
        "worst lost": f"{lost(worst):.2f}",
        "inputs": f"{by_inputs:.2e}",
        "lost by inputs": f"{lost(by_inputs):.2f}",
        "condition": f"{condition:.3g}",
    }


def error(got, exact):
    """Largest difference of an output, over its largest entry; outputs of zeros alone do not count."""
    pairs = [(x, y) for x, y in zip(got, exact, strict=True) if y.any()]
    return max(np.abs(x - y).max() / np.abs(y).max() for x, y in pairs)


def lost(relative):
    """Decimal digits that an error takes of those of single precision."""
    return np.log10(max(relative, UNIT) / UNIT)


def _moved(x, rng):
    """Numbers that rounding to single precision may have come from."""
    return x * (1 + UNIT * rng.uniform(-1, 1, np.shape(x)))


def states_of(robot, f, samples):
    """[{port: numbers that single precision has}] at random; torques are those of random accelerations."""
    rng, out = np.random.default_rng(0), []
    names = [derivative_name("tau", k) for k in range(f.n_in()) if derivative_name("tau", k) in f.name_in()]
    inverse = function(robot, "inverse_dynamics", order=len(names) - 1) if names else None
    for k in range(samples):
        state = {n: rng.normal(size=f.size_in(n)) for n in f.name_in() if n != "q" and n not in names}
        state["q"] = robot.random_configuration(k)
        if inverse is not None:
            motion = {"q": state["q"], "v": state.get("v", rng.normal(size=robot.nv))}
            motion |= {n: rng.normal(size=robot.nv) for n in inverse.name_in() if n not in motion}
            torques = inverse(**motion)
            state |= {n: np.array(torques[n]) for n in names}
        out.append({n: np.asarray(x, np.float32).astype(float) for n, x in state.items()})
    return out


def report(digits, times):
    """The tables as a text."""
    fast = {tuple(row[k] for k in KEYS): row for row in times}
    lines = [f"Decimal digits lost of the {-np.log10(UNIT):.1f} of float, and time over that of double (~: not steady)"]
    table = [(*KEYS, "instructions", "lost", "worst lost", "lost by inputs", "condition", "float / double")]
    for row in digits:
        timed = fast[tuple(row[k] for k in KEYS)]
        told = timed["ratio"] + ("" if timed["steady"] == "yes" else " ~")
        table.append((*(row[k] for k in table[0][:-1]), told))
    return "\n".join([*lines, in_columns(table)])
