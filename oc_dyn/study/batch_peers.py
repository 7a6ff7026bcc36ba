"""Batches of points: od.batch on vectors beside the same loop one point a step, Pinocchio and MuJoCo.

Nanoseconds a point: the least of rounds in which ours take turns, of the processor's time on one thread, of the clock's
on two. The peers' routines are called from C++, one state after the other. Then what is exact: random programs of all
instructions against CasADi's virtual machine, and our sin, cos and tanh against long double.
"""

import time
from pathlib import Path

import numpy as np

from ..codegen.batch import NATIVE, Batch
from ..codegen.batch import batch as od_batch
from ..codegen.build import FLAGS, library, opened
from ..codegen.compiled_loop import CompiledLoop
from ..codegen.lanes import scalar_source
from ..errors import SolveError
from ..files import write_csv
from ..function import function
from ..runs.manifest import manifest, write_json
from ..runs.points import bar as progress_bar
from ..text import in_columns
from . import apart
from .peers import mujoco, native
from .peers.robots import pinocchio_model, robot
from .random_programs import errors_of_functions, numbers, one_by_one, program, same_bits

ROBOTS = ("panda", "ur5", "talos")
QUANTITIES = (  # quantity, order, routine of Pinocchio, of MuJoCo
    ("inverse_dynamics", 0, "rnea", "inverse_dynamics"),
    ("forward_dynamics", 0, "aba", "forward_dynamics"),
    ("mass_matrix", 0, "crba", "mass_matrix"),
    ("inverse_dynamics", 2, "", ""),
    ("inverse_dynamics_partials", 0, "rnea_derivatives", ""),
    ("forward_dynamics_partials", 0, "aba_derivatives", ""),
)
POINTS, ROUNDS, PROGRAMS = (4096, 8192), 31, 200  # points of a batch on one thread, on two
REPEATS, LONGEST = 4, 6.0  # calls of one after the other in a round; [s] for a row, but for its first round
EXACT = ("-O1", "-march=native", "-ffp-contract=off", "-DOC_DYN_LIBM")  # vectors, with the library's functions
FIELDS = ("robot", "quantity", "order", "instructions", "lanes", "scalar [ns]", "vectors [ns]", "ratio")
FIELDS += ("scalar, 2 threads [ns]", "vectors, 2 threads [ns]", "Pinocchio [ns]", "MuJoCo [ns]")
FIELDS += ("mj_inverse, mj_forward [ns]", "difference")
ACCURACY = ("function", "numbers", "error [ulp]", "error of the C library [ulp]", "distance [ulp]")

CAPTIONS = {
    "batch.csv": f"Nanoseconds a point, of {POINTS[0]} points on one thread and {POINTS[1]} on two: the least of "
    "calls. scalar: CasADi's C, one point a step, -O3; vectors: od.batch as it is. Pinocchio, MuJoCo: a call from C++, "
    "of MuJoCo the steps that the result needs or its function. difference: largest of vectors and scalar, over the "
    "largest entry of an output.",
    "programs.csv": "Random programs of all instructions, on numbers of which one in twenty is a special one: how many "
    "results have other bits than those of CasADi's virtual machine, with the C library's sin, cos and tanh.",
    "accuracy.csv": "Largest error of functions that od.batch does not leave to the C library, and the largest "
    "distance to that one's, in units of the last place, by range of numbers.",
}


def run(out, quick=False, progress=None):
    """Measure; returns the tables as a text.

    out: folder for batch.csv, programs.csv, accuracy.csv and manifest.json, see CAPTIONS. Peers that are not installed
    are left out, and the report says so. quick: inverse dynamics of a Panda without peers, and 5 programs.
    """
    out, notes, points = Path(out), [], (512, 512) if quick else POINTS
    names = [name for name in (ROBOTS[:1] if quick else ROBOTS) if robot(name)]
    plan = [(name, *what) for name in names for what in (QUANTITIES[:1] if quick else QUANTITIES)]
    seeds = range(5 if quick else PROGRAMS)
    with progress_bar(progress, len(plan) + len(seeds), "batch_peers", " steps") as bar:
        theirs = {name: {} if quick else _peers(name, notes) for name in names}
        rows = []
        for name, quantity, order, *routines in plan:
            rows.append(_row(name, quantity, order, routines, theirs[name], points))
            bar.update()
        checked = []
        for seed in seeds:
            checked.append(_program(seed))
            bar.update()
    accuracy = [ACCURACY, *errors_of_functions(10_000 if quick else 1_000_000)]
    write_csv(out / "batch.csv", [FIELDS, *rows])
    write_csv(out / "programs.csv", [("seed", "instructions", "points", "results", "finite", "other bits"), *checked])
    write_csv(out / "accuracy.csv", accuracy)
    totals = [sum(column) for column in zip(*checked, strict=True)]
    exact = (
        f"{len(checked)} random programs of {totals[1]} instructions: {totals[5]} of {totals[3]} results have other "
    )
    exact += f"bits than CasADi's; {totals[4]} are finite"
    command = apart.typed("batch_peers", out, quick)
    facts = {"compiler": native.compiler_version(), "flags": NATIVE, "flags_of_scalar": FLAGS, "left_out": notes}
    facts |= {"flags_beside_mujoco": "the wheel's own", "points": points, "rounds": ROUNDS, "programs": exact}
    write_json(out / "manifest.json", manifest(command, **facts))
    return "\n".join([in_columns([FIELDS, *rows]), "", exact, "", in_columns(accuracy), *notes])


def _peers(name, notes):
    """{routine: nanoseconds of a call} of Pinocchio, and of MuJoCo with "mujoco " before."""
    out, r = {}, robot(name)
    try:
        rows = native.times(r, pinocchio_model(name), [])
        out |= {row["label"]: 1e3 * float(row["least_us"]) for row in rows}
    except (SolveError, ImportError) as error:
        notes.append(f"no Pinocchio for {name}: {error}")
    try:
        rows = mujoco.times(r, [])
        out |= {f"mujoco {row['label']}": 1e3 * float(row["least_us"]) for row in rows}
    except (SolveError, ImportError) as error:
        notes.append(f"no MuJoCo for {name}: {error}")
    return out


def _row(name, quantity, order, routines, theirs, points):
    r = robot(name)
    f = function(r, quantity, order=order)
    ports = [_given(r, f, n) for n in points]
    plain = opened(library({"oc_dyn.c": scalar_source(f)}, FLAGS))
    runs = [Batch(f, CompiledLoop(f, plain, threads, None)) for threads in (1, 2)]
    runs += [od_batch(f, threads=threads, fallback=False) for threads in (1, 2)]
    results = [_tuple(one(*ports[k % 2])) for k, one in enumerate(runs)]
    least = np.full(4, np.inf)
    end = time.perf_counter() + LONGEST
    for number in range(ROUNDS):
        for k in range(4 * REPEATS if number == 0 or time.perf_counter() < end else 0):
            least[k // REPEATS] = min(least[k // REPEATS], _seconds(runs, ports, results, k // REPEATS))
    nanoseconds = 1e9 * least / np.tile(points, 2)
    scalar, scalar2, vectors, vectors2 = (f"{x:.3g}" for x in nanoseconds)
    pairs = zip(results[0], results[2], strict=True)
    difference = max(np.abs(a - b).max() / max(np.abs(a).max(), 1e-300) for a, b in pairs)
    pinocchio, mj = routines
    calls = [theirs.get(x) for x in (pinocchio, f"mujoco {mj}", f"mujoco {mj}_whole")]
    peers = ["" if x is None else f"{x:.0f}" for x in calls]
    facts = (name, quantity, order, f.n_instructions(), runs[2].lanes, scalar, vectors)
    return (*facts, f"{nanoseconds[0] / nanoseconds[2]:.2f}", scalar2, vectors2, *peers, f"{difference:.1e}")


def _seconds(runs, ports, results, k):
    clock = time.perf_counter if k % 2 else time.process_time  # of one thread: not what others take of it
    start = clock()
    runs[k](*ports[k % 2], out=results[k])
    return clock() - start


def _tuple(results):
    return results if isinstance(results, tuple) else (results,)


def _given(r, f, points):
    """Random numbers for the ports, in Fortran order: a point's numbers side by side."""
    rng, out = np.random.default_rng(0), []
    for i, name in enumerate(f.name_in()):
        x = rng.uniform(-1, 1, (f.size1_in(i), f.size2_in(i) * points))
        out.append(np.column_stack([r.random_configuration(k) for k in range(points)]) if name == "q" else x)
    return [np.asfortranarray(x) for x in out]


def _program(seed):
    f, points = program(seed), 1 + seed % 40
    given = numbers(f, points, seed)
    got = _tuple(od_batch(f, threads=2, flags=EXACT, fallback=False)(*given))
    pairs = list(zip(got, one_by_one(f, given, points), strict=True))
    other = sum(int((~same_bits(*pair)).sum()) for pair in pairs)
    sizes = [
        sum(int(x) for x in column) for column in zip(*((b.size, np.isfinite(b).sum()) for _, b in pairs), strict=True)
    ]
    return seed, f.n_instructions(), points, *sizes, other
