"""Problems with known optima, from public collections and closed forms, each solved and set beside its optimum.

They are the files of the repository's folder problems/known_optima, which is looked for beside this package, then in
the current folder. Each is solved from the guess and on the mesh that it states, to the tolerance that it states, by
Problem.solve. Errors are those of the cost that is minimised. They are estimated twice: by Solution.error, and by
solving once more with every interval in two. Notes tell where a run stopped early or on its limit, where a solution
fails its own check, and where the error is more than was asked for.
"""

import errno
import importlib.util
import time
from pathlib import Path

from ..errors import UnknownName
from ..files import write_csv
from ..optimal_control.integrators import METHODS
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import apart

FOLDER = Path("problems") / "known_optima"
QUICK = (1, 3, 6, 11, 33)
LIMIT = 300.0  # [s] for one solve
TOLERANCE = 1e-10  # of the solver: what it leaves of the error is not seen among errors of 1e-8
FIELDS = ("number", "name", "known", "computed", "error", "estimate", "by meshes", "asked", "tolerance", "method")
FIELDS += ("intervals", "rounds", "iterations", "seconds", "source", "note")
CAPTIONS = {
    "suite.csv": "known: the optimum by a closed form or as published; computed: on the last mesh; error: their "
    "difference; estimate: of it, by Solution.error of the last mesh alone; by meshes: of it, by solving again with "
    "every interval in two; asked: the largest error that was asked for; tolerance: of Problem.solve, where there is "
    "one; intervals: of the last mesh; iterations: of all rounds; seconds: to build and solve the problem, all rounds "
    "and starts.",
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
    table = [FIELDS, *([row[k] for k in FIELDS] for row in rows)]
    write_csv(Path(out) / "suite.csv", table)
    command = apart.typed("suite", out, quick)
    reached = sum(not row["note"] for row in rows)
    write_json(Path(out) / "manifest.json", manifest(command, solver_tolerance=TOLERANCE, rows=rows))
    return f"{in_columns(table)}\n{reached} of {len(rows)} reach what was asked, without a remark"


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
    """The module in a file of a problem: problem(nodes, ...) -> Problem; KNOWN or known(...), the optimum, and WITHIN,
    what that may be off by; METHOD, NODES, ASKED, SOURCE; where it has any, TOLERANCE and STARTS of Problem.solve;
    MESH, of Problem.with_mesh; VARIANTS, a tuple of further arguments; OPTIONS of the solver."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.METHOD not in METHODS:
        raise UnknownName(f"method of {path.name}", module.METHOD, METHODS)
    return module


def optimum(module, variant=None):
    """The known optimum of a problem."""
    return module.known(**(variant or {})) if hasattr(module, "known") else module.KNOWN


def measured(module, variant):
    """{field: number or text}: a row of the table, and what all starts led to."""
    known, begun = optimum(module, variant), time.perf_counter()
    found = solved(module, variant)
    seconds, rounds = time.perf_counter() - begun, found.rounds
    error, asked = found.objective - known, module.ASKED * (abs(known) or 1.0)
    by_meshes = found.two_meshes(**given(module)).objective if found.success else float("nan")
    name = " ".join([module.__name__[4:].replace("_", " "), *(f"{k}={x:.4g}" for k, x in variant.items())])
    return {
        "number": int(module.__name__[1:3]),
        "name": name,
        "known": f"{known:.12g}",
        "computed": f"{found.objective:.12g}",
        "error": f"{error:.1e}",
        "estimate": f"{found.error.objective:.1e}",
        "by meshes": f"{by_meshes:.1e}",
        "asked": f"{asked:.1e}",
        "tolerance": f"{module.TOLERANCE:.0e}" if hasattr(module, "TOLERANCE") else "",
        "method": module.METHOD,
        "intervals": len(found.t) - 1,
        "rounds": len(rounds) or 1,
        "iterations": sum(r.iterations for r in rounds) or found.iterations,
        "seconds": f"{seconds:.2f}",
        "source": module.SOURCE,
        "note": "; ".join(remarks(found, error, asked)),
        "optima of all starts": [objective for objective, status, _ in found.local_optima],
    }


def given(module):
    """Options of the solver and its limit of time, as arguments of Problem.solve."""
    return {"solver_options": {"tol": TOLERANCE, **getattr(module, "OPTIONS", {})}, "time_limit": LIMIT}


def solved(module, variant, nodes=None, **more):
    """Solution as the module states. nodes: in place of NODES; more: arguments of Problem.solve in place of its own."""
    how = {"method": module.METHOD, "tolerance": getattr(module, "TOLERANCE", None), **given(module)}
    how |= {"starts": getattr(module, "STARTS", 1), "raises": False, "check": "off", **more}
    ocp = module.problem(nodes or module.NODES, **variant)
    return (ocp.with_mesh(mesh=module.MESH) if hasattr(module, "MESH") else ocp).solve(**how)


def remarks(solution, error, asked):
    """Texts about what is not as it should be."""
    if not solution.success:
        yield f"stopped with {solution.status} after {solution.iterations} iterations"
    if not abs(error) <= asked:
        yield "error above what is asked"
    if abs(solution.error.objective) > asked:
        yield "estimate above what is asked"
    seen = solution.check()
    if not seen.ok():
        yield f"check: {seen.summary()}"
    if not abs(seen.objective - solution.objective) <= 1e-4 * max(1.0, abs(solution.objective)):
        yield f"the cost integrated along the motion is {seen.objective:.6g}"
