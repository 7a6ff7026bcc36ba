"""Problems with known optima, from public collections and closed forms, each solved and set beside its optimum.

They are the files of the repository's folder problems/known_optima, which is looked for beside this package, then in
the current folder. Each is solved on a quarter, half and all of its intervals, from the guess that it states; where it
states several, the best solution is taken. Errors are those of the cost that is minimised. They are estimated twice:
by Solution.error, from costates and defects on all intervals, and from the three costs alone. Notes tell where a solver
stopped early, where a solution fails its own check, and where the error is more than was asked for.
"""

import errno
import importlib.util
import itertools
import time
from pathlib import Path

import numpy as np

from ..errors import UnknownName
from ..files import write_csv
from ..optimal_control.integrators import METHODS, order_of_cost
from ..runs.manifest import manifest, write_json
from ..runs.points import bar

FOLDER = Path("problems") / "known_optima"
QUICK = (1, 3, 6, 11, 33)
LIMIT = 600.0  # [s] for one solve
TOLERANCE = 1e-10  # of the solver: what it leaves of the error is not seen among errors of 1e-8
ORDERS = {name: order_of_cost(name) for name in METHODS}  # see README
FIELDS = ("number", "name", "known", "computed", "error", "estimate", "by meshes", "asked", "method", "intervals")
FIELDS += ("iterations", "seconds", "source", "note")
CAPTIONS = {
    "suite.csv": "known: the optimum by a closed form or as published; computed: on all intervals; error: their "
    "difference; estimate: of it, by costates on all intervals alone (Solution.error); by meshes: the size of it, from "
    "the costs on three meshes; asked: the largest error that was asked for; "
    "seconds: to build and solve the problem on all intervals, from all guesses.",
}


def run(out, quick=False, progress=None, problems=None):
    """Solve, and write suite.csv and manifest.json to the folder `out`; returns the table as a text.

    problems: the folder of the problems. quick: a few of them. progress: show a bar on stderr; default on a terminal
    only. Raises FileNotFoundError where there is no such folder.
    """
    modules = [load(path) for number, path in listed(problems).items() if not quick or number in QUICK]
    cases = [(module, variant) for module in modules for variant in getattr(module, "VARIANTS", ({},))]
    rows = []
    with bar(progress, len(cases), "suite", " problems") as shown:
        for module, variant in cases:
            shown.set_postfix_str(module.__name__)
            rows.append(measured(module, variant))
            shown.update()
    write_csv(Path(out) / "suite.csv", [FIELDS, *([row[k] for k in FIELDS] for row in rows)])
    command = ["oc-dyn", "study", "suite", *(["--quick"] if quick else []), "--out", out]
    reached = sum(not row["note"] for row in rows)
    write_json(Path(out) / "manifest.json", manifest(command, solver_tolerance=TOLERANCE, rows=rows))
    return f"{_table(rows)}\n{reached} of {len(rows)} reach what was asked, without a remark"


def listed(folder=None):
    """{number: path} of the problems in a folder, by default that of the repository."""
    places = [Path(__file__).resolve().parents[2] / FOLDER, Path.cwd() / FOLDER] if folder is None else [Path(folder)]
    for place in places:
        paths = {int(path.stem[1:3]): path for path in sorted(place.glob("p[0-9][0-9]_*.py"))}
        if paths:
            return paths
    problem = "no problems with known optima here; run this study in a clone of the repository, or give their folder"
    raise FileNotFoundError(errno.ENOENT, problem, str(places[-1]))


def load(path):
    """The module in a file of a problem: problem(nodes, ...) -> Problem, KNOWN or known(...), METHOD, NODES, ASKED,
    SOURCE; where it has any, VARIANTS and STARTS, tuples of further arguments; OPTIONS of the solver; EXPLAINED, to
    follow what the check says."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.METHOD not in ORDERS:
        raise UnknownName(f"method of {path.name}", module.METHOD, ORDERS)
    return module


def measured(module, variant, nodes=None):
    """{field: number or text}: a row of the table, and what all starts led to. nodes: in place of NODES."""
    nodes = nodes or module.NODES
    known = module.known(**variant) if hasattr(module, "known") else module.KNOWN
    coarse = [solutions(module, count, variant)[0] for count in (nodes // 4, nodes // 2)]
    begun = time.perf_counter()
    found = solutions(module, nodes, variant)
    seconds, best = time.perf_counter() - begun, found[0]
    error, asked = best.objective - known, module.ASKED * (abs(known) or 1.0)
    by_meshes = np.nan
    if all(solution.success for solution in (*coarse, best)):
        by_meshes = estimated([solution.objective for solution in (*coarse, best)], ORDERS[module.METHOD])
    name = " ".join([module.__name__[4:].replace("_", " "), *(f"{k}={x:.4g}" for k, x in variant.items())])
    return {
        "number": int(module.__name__[1:3]),
        "name": name,
        "known": f"{known:.12g}",
        "computed": f"{best.objective:.12g}",
        "error": f"{error:.1e}",
        "estimate": f"{best.error.objective:.1e}",
        "by meshes": f"{by_meshes:.1e}",
        "asked": f"{asked:.1e}",
        "method": module.METHOD,
        "intervals": len(best.t) - 1,
        "iterations": best.iterations,
        "seconds": f"{seconds:.2f}",
        "source": module.SOURCE,
        "note": "; ".join(remarks(best, error, asked, getattr(module, "EXPLAINED", ""))),
        "optima of all starts": [solution.objective for solution in found if solution.success],
    }


def solutions(module, nodes, variant):
    """[Solution] on so many intervals, from every start, the best first; those that failed last."""
    options = {"tol": TOLERANCE, **getattr(module, "OPTIONS", {})}
    given = {"method": module.METHOD, "solver_options": options, "time_limit": LIMIT}
    found = [
        module.problem(nodes, **variant, **start).solve(**given, raises=False, check="off")
        for start in getattr(module, "STARTS", ({},))
    ]
    return sorted(found, key=lambda solution: (not solution.success, solution.objective))


def estimated(costs, order):
    """Estimate of the error of the last of three costs, each on twice as many intervals as the one before.

    p is the order that their differences show, between 1 and that of the method. Of what the last difference says by
    Richardson, d2 / (2^p - 1), and what the first one does, d1 / 2^p / (2^p - 1), the larger one is taken: a
    difference that is small by chance does not pass for accuracy.
    """
    first, last = (max(abs(b - a), 1e-16) for a, b in itertools.pairwise(costs))
    ratio = 2 ** np.clip(np.log2(first / last), 1, order)
    return float(max(last, first / ratio) / (ratio - 1))


def remarks(solution, error, asked, explained=""):
    """Texts about what is not as it should be. explained: of what the check says."""
    if not solution.success:
        yield f"stopped with {solution.status} after {solution.iterations} iterations"
    if not abs(error) <= asked:
        yield "error above what is asked"
    seen = solution.check()
    if not seen.ok():
        yield f"check: {seen.summary()}{explained}"
    if not abs(seen.objective - solution.objective) <= 1e-4 * max(1.0, abs(solution.objective)):
        yield f"the cost integrated along the motion is {seen.objective:.6g}"


def _table(rows):
    cells = [[str(x) for x in line] for line in [FIELDS, *([row[k] for k in FIELDS] for row in rows)]]
    widths = [max(len(line[k]) for line in cells) for k in range(len(FIELDS))]
    return "\n".join("  ".join(x.ljust(w) for x, w in zip(line, widths, strict=True)).rstrip() for line in cells)
