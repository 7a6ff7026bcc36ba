"""Every NLP solver of this CasADi on the problems with known optima, on coarse meshes, beside ipopt.

Each run has a process of its own, so that a solver that crashes or hangs ends that alone. The cost of reference is that
of ipopt with a tolerance of 1e-10 on the same mesh from the same guess. A run is "solved" if the solver says so and its
cost is that one to 1e-5; "lower" and "higher" if the solver says so of another local optimum; else what it says.
"""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..errors import SolveError
from ..files import write_csv
from ..interrupts import command
from ..optimal_control.solver import INSTEAD, solvers
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import suite
from .apart import typed

LIMIT = 8.0  # [s] for one solve, which most solvers stop at by themselves; the process is ended after twice as long
TOLERANCE = 1e-5  # of the cost
PROGRAM = f"from {__name__} import main; main()"  # of a process
AT_A_TIME = 2  # processes; their seconds are those of the processor


def _sqp(plugin, **options):
    return "sqpmethod", {"qpsol": plugin, "qpsol_options": {"error_on_fail": False, **options}}


_QUIET_FATROP = {"structure_detection": "auto", "print_time": False, "fatrop": {"print_level": 0}}
WAYS = {  # name: (solver, options)
    "ipopt": ("ipopt", {}),
    "fatrop": ("fatrop", {}),
    "sqpmethod, piqp": _sqp("piqp"),
    "sqpmethod, hpipm": _sqp("hpipm"),
    "sqpmethod, fatrop": _sqp("fatrop", **_QUIET_FATROP),
    "sqpmethod, qrqp": _sqp("qrqp", print_iter=False, print_header=False, print_info=False),
    "sqpmethod, osqp": _sqp("osqp", osqp={"verbose": False}),
    "sqpmethod, daqp": _sqp("daqp"),
    "sqpmethod, qpoases": _sqp("qpoases", printLevel="none"),
    "sqpmethod, proxqp": _sqp("proxqp"),
    "uno, ipopt": ("uno", {"preset": "ipopt"}),
    "uno, filtersqp": ("uno", {"preset": "filtersqp"}),
    "uno, funnelsqp": ("uno", {"preset": "funnelsqp"}),
    "blocksqp": ("blocksqp", {}),
    "bonmin": ("bonmin", {}),
    "sleqp": ("sleqp", {}),
    "alpaqa": ("alpaqa", {}),
    "feasiblesqpmethod": ("feasiblesqpmethod", {"qpsol": "piqp", "qpsol_options": {"error_on_fail": False}}),
    "qrsqp": ("qrsqp", {"qpsol_options": {"error_on_fail": False, "print_iter": False, "print_header": False}}),
}
QUICK_WAYS = ("ipopt", "fatrop", "sqpmethod, piqp")
FIELDS = ("number", "name", "intervals", "solver", "outcome", "status", "iterations", "seconds", "cost", "error")
SUMMARY = ("solver", "solved", "of", "another optimum", "iterations over ipopt", "seconds over ipopt")
CAPTIONS = {
    "suite_solvers.csv": "Each solver on each problem: error is that of the cost against ipopt on the same mesh, "
    "relative to it where it is above 1; seconds: of the processor, to build and solve, in a process of its own.",
    "summary.csv": "How many problems each solver solves; the medians of its iterations and seconds over those of "
    "ipopt, where it solves them.",
}


def run(out, quick=False, progress=None, problems=None):
    """Run, and write suite_solvers.csv, summary.csv and manifest.json to the folder `out`; returns the summary.

    problems: the folder of the problems. quick: a few of them, and three solvers. progress: show a bar on stderr;
    default on a terminal only. Raises FileNotFoundError where there is no such folder.
    """
    paths = {k: path for k, path in suite.listed(problems).items() if not quick or k in suite.QUICK}
    ways = {name: way for name, way in WAYS.items() if way[0] in solvers() and (not quick or name in QUICK_WAYS)}
    rows = []
    with bar(progress, len(paths) * len(ways), "suite_solvers", " runs") as shown:
        for number, path in paths.items():
            shown.set_postfix_str(path.stem)
            asked = [(path, "ipopt", {"tol": suite.TOLERANCE}), *((path, *way) for way in ways.values())]
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                reference, *told = pool.map(apart, *zip(*asked, strict=True))
            named = {"number": number, "name": path.stem[4:].replace("_", " ")}
            rows += [{**named, "solver": k, **judged(one, reference)} for k, one in zip(ways, told, strict=True)]
            shown.update(len(ways))
    summary = [summed(name, [r for r in rows if r["solver"] == name], rows) for name in ways]
    write_csv(Path(out) / "suite_solvers.csv", [FIELDS, *([_cell(row[k]) for k in FIELDS] for row in rows)])
    write_csv(Path(out) / "summary.csv", [SUMMARY, *summary])
    words = typed("suite_solvers", out, quick)
    facts = {"limit": LIMIT, "options": {name: {"solver": s, **o} for name, (s, o) in ways.items()}}
    write_json(Path(out) / "manifest.json", manifest(words, **facts))
    return in_columns([SUMMARY, *summary])


def apart(path, solver, options):
    """solved_once in another process; {"status"} alone where that crashes or does not end."""
    words = [sys.executable, "-c", PROGRAM, json.dumps([str(path), solver, options])]
    try:
        done = command(words, timeout=2 * LIMIT)
    except subprocess.TimeoutExpired:
        return {"status": f"did not end in {2 * LIMIT:.0f} s"}
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode or not last.startswith("{"):
        return {"status": f"the process ended with {done.returncode}"}
    return json.loads(last)


def main():
    """What a process of its own runs: solved_once of the arguments, printed as JSON."""
    path, solver, options = json.loads(sys.argv[1])
    print("\n" + json.dumps(solved_once(Path(path), solver, options)), flush=True)


def solved_once(path, solver, options):
    """{"success", "status", "iterations", "seconds", "cost", "intervals"} of one solve on the mesh that a problem
    begins with, of equal intervals, the first of its variants."""
    module = suite.load(path)
    arguments = getattr(module, "VARIANTS", ({},))[0]
    begun = time.process_time()
    ocp = module.problem(**arguments)
    how = {"method": module.METHOD, "solver": solver, "solver_options": options, "time_limit": LIMIT}
    try:
        found = ocp.solve(**how, raises=False, check="off")
    except SolveError as error:
        return {"status": str(error)}
    own = [x for x in found.info["tries"] if x[0] != INSTEAD]  # what ipopt finds in place of a solver does not count
    status, iterations = own[-1][1], sum(count for *_, count in own)
    told = {"success": found.success and own == found.info["tries"], "status": str(status), "iterations": iterations}
    return {**told, "seconds": time.process_time() - begun, "cost": found.objective, "intervals": len(found.t) - 1}


def judged(told, reference):
    """The outcome of a run beside that of reference; see the module."""
    row = {"intervals": reference.get("intervals"), **dict.fromkeys(("iterations", "seconds", "cost", "error")), **told}
    if not told.get("success"):
        return {**row, "outcome": "failed"}
    error = (told["cost"] - reference["cost"]) / max(1.0, abs(reference["cost"]))
    outcome = "solved" if abs(error) <= TOLERANCE else "lower" if error < 0 else "higher"
    return {**row, "outcome": outcome, "error": error}


def summed(name, own, rows):
    """Row of SUMMARY of one solver."""
    ipopt = {r["number"]: r for r in rows if r["solver"] == "ipopt"}
    good = [r for r in own if r["outcome"] == "solved" and ipopt[r["number"]]["outcome"] == "solved"]
    shares = []
    for k in ("iterations", "seconds"):
        ratios = sorted(r[k] / ipopt[r["number"]][k] for r in good if ipopt[r["number"]][k])
        shares.append(f"{ratios[len(ratios) // 2]:.2f}" if ratios else "")
    solved = sum(r["outcome"] == "solved" for r in own)
    return [name, solved, len(own), sum(r["outcome"] in ("lower", "higher") for r in own), *shares]


def _cell(value):
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else value
