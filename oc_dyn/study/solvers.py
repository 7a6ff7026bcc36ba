"""Planning by solver, kind of Hessian and kind of derivatives: times as ratios to plain Opti with AD, in one run.

Problems: the fastest motion of the Panda between two configurations under kinematic limits, and with torque and torque
rate limits on top, as one program for all ways; a tracking problem with costs that are squares; a swing-up.
"""

import time
from pathlib import Path

import casadi as ca
import numpy as np

from .. import robots
from ..codegen.build import find_compiler
from ..errors import SolveError
from ..files import write_csv
from ..function import function
from ..interrupts import watched
from ..optimal_control.problem import Problem
from ..optimal_control.solver import checked_options, solve
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns

START = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
GOAL = np.array([1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6])
WAYS = [  # solver, hessian, derivatives, compiled
    ("ipopt", "exact", "analytic", False),
    ("ipopt", "exact", "ad", False),
    ("ipopt", "exact", "analytic", True),
    ("ipopt", "limited_memory", "analytic", False),
    ("ipopt", "gauss_newton", "analytic", False),
    ("fatrop", "exact", "analytic", False),
]
FIELDS = (
    "problem",
    "solver",
    "hessian",
    "derivatives",
    "compiled",
    "objective",
    "iterations",
    "build [s]",
    "solve [s]",
    "functions [s]",
    "build and solve over Opti with AD",
    "again over Opti with AD",
)
MOST = 400  # iterations


def point_to_point(derivatives, nodes=50, torque=True):
    """Panda, jerk constant on intervals, limits of velocity, acceleration, jerk, torque and 0.3 of the torque rate."""
    panda = robots.panda()
    v, a, j = (panda.limit(k) for k in ("velocity", "acceleration", "jerk"))
    T = 1.2
    ocp = Problem(nodes, (0.05, 10.0))

    def smooth(s):  # and its derivatives by time, from rest to rest
        return (
            START + (GOAL - START) * s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3),
            (GOAL - START) * 140 * s**3 * (1 - s) ** 3 / T,
            (GOAL - START) * 420 * s**2 * (1 - s) ** 2 * (1 - 2 * s) / T**2,
        )

    guess = [lambda s, k=k: smooth(s)[k] for k in range(3)] + [0.0]
    q, dq, ddq, jerk = ocp.chain("q", 7, 3, bounds=(v, a, j), scale=(1.0, 1.0, 1.0, 100.0), guess=guess)
    ocp.limit(panda.limit("lower"), q, panda.limit("upper"))
    if torque:
        f = function(panda, "inverse_dynamics", order=1, derivatives=derivatives)
        tau, dtau = f(q, dq, ddq, jerk)
        ocp.limit(-1, tau / panda.limit("effort"), 1)
        ocp.limit(-1, dtau / (0.3 * panda.limit("effort_rate")), 1)
    ocp.start({q: START, dq: 0, ddq: 0})
    ocp.goal({q: GOAL, dq: 0, ddq: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp, "rk4"


def tracking(derivatives, nodes=20):
    """Panda, accelerations chosen, towards a configuration with little torque: costs are squares."""
    panda = robots.panda()
    target = START + np.array([0.2, 0.1, -0.1, 0.2, 0.1, -0.2, 0.3])
    ocp = Problem(nodes, 0.4)
    q, v, dv = ocp.chain("q", 7, 2, guess=[START, 0.0, 0.0])
    share = function(panda, "inverse_dynamics", derivatives=derivatives)(q, v, dv) / panda.limit("effort")
    ocp.limit(-1, share, 1)
    ocp.limit(-2.1, v, 2.1)
    ocp.start({q: START, v: 0})
    ocp.minimize(squares=ca.vertcat(10 * (q - target), v, share))
    return ocp, "rk4"


def swing_up(derivatives, nodes=50):
    """Acrobot: two links, torque at the second joint alone, upright in 3 s with the least squared torque."""
    arm = robots.planar_2r()
    ocp = Problem(nodes, 3.0)
    hanging, upright = np.array([-np.pi / 2, 0]), np.array([np.pi / 2, 0])
    q = ocp.state("q", 2, guess=lambda s: hanging + s * (upright - hanging))
    v, u = ocp.state("v", 2, scale=3.0), ocp.control("u", lower=-60, upper=60, scale=20.0)
    ocp.rate(q, v)
    ocp.rate(v, function(arm, "forward_dynamics", derivatives=derivatives)(q, v, ca.vertcat(0, u)))
    ocp.start({q: hanging, v: 0})
    ocp.goal({q: upright, v: 0})
    ocp.minimize(integral=u**2)
    return ocp, "hermite_simpson"


PROBLEMS = {
    "panda kinematic": lambda d: point_to_point(d, torque=False),
    "panda torque rate": point_to_point,
    "panda tracking": tracking,
    "acrobot": swing_up,
}

CAPTIONS = {
    "solvers.csv": "Ways to solve the same problem; the last two columns are ratios to Opti with ipopt and AD in the "
    "same run: of building and solving, and of solving again.",
}


def run(out, quick=False, progress=None):
    """Measure and write solvers.csv and manifest.json to the folder `out`; returns the table as a text.

    Every problem is solved by Opti with ipopt and AD first: the reference of this run. build: from the problem written
    down to the solver at hand, solve: the first solution, again: a second one from the same guess. quick: the two
    small problems. progress: show a bar on stderr; default on a terminal only.
    """
    names = ["panda tracking", "acrobot"] if quick else list(PROBLEMS)
    ways = WAYS[:2] + WAYS[5:] if quick else WAYS
    rows = []
    with bar(progress, len(names) * (1 + len(ways)), "solvers", " runs") as shown:
        for name in names:
            reference = _reference(name)
            rows.append([name, "ipopt by Opti", "exact", "ad", "", *_numbers(reference), "1.00", "1.00"])
            shown.update()
            for way in ways:
                rows.append([name, *way[:3], "yes" if way[3] else "", *_row(name, way, reference)])
                shown.update()
    folder = Path(out)
    write_csv(folder / "solvers.csv", [FIELDS, *rows])
    command = "oc-dyn study solvers" + (" --quick" if quick else "")
    write_json(folder / "manifest.json", manifest(command, problems=names))
    return in_columns([FIELDS, *rows])


def _reference(name):
    """(objective, iterations, build, solve, functions) by Opti and ipopt, derivatives by AD of the whole program."""
    begun = time.perf_counter()
    ocp, method = PROBLEMS[name]("ad")
    transcription = ocp.transcribed(method)
    inputs = {"p": transcription.parameters({}), **transcription.bounds, "x0": transcription.guess(None)}
    opti = transcription.assembly.opti(inputs)
    outer, inner = checked_options("ipopt", {"max_iter": MOST}, ocp.description.free_time)
    opti.solver("ipopt", outer, inner)
    build = time.perf_counter() - begun
    with watched():
        solution = opti.solve_limited()
    total = time.perf_counter() - begun
    stats = solution.stats()
    functions = sum(x for k, x in stats.items() if k.startswith("t_wall_nlp_"))
    return float(solution.value(opti.f)), stats["iter_count"], build, total - build, functions


def _row(name, way, reference):
    solver, hessian, derivatives, compiled = way
    if compiled:
        try:
            find_compiler(None)
        except SolveError:
            return ["no compiler", *[""] * 6]
    begun = time.perf_counter()
    ocp, method = PROBLEMS[name](derivatives)
    transcription = ocp.transcribed(method, compiled)
    if hessian == "gauss_newton" and not any(p.squares for p in ocp.description.phases):
        return ["costs are no squares", *[""] * 6]
    outer, inner = checked_options(solver, {"max_iter": MOST}, ocp.description.free_time)
    inputs = {"p": transcription.parameters({}), **transcription.bounds, "x0": transcription.guess(None)}
    build = time.perf_counter() - begun
    result = solve(transcription.assembly, solver, hessian, outer, inner, inputs)
    total = time.perf_counter() - begun
    begun = time.perf_counter()
    solve(transcription.assembly, solver, hessian, outer, inner, inputs)
    again = time.perf_counter() - begun
    if not result.success:
        return [result.status, result.iterations, *[""] * 5]
    functions = sum(x for k, x in result.seconds.items() if k.startswith("nlp_"))
    measured = (result.objective, result.iterations, build, total - build, functions)
    shares = total / (reference[2] + reference[3]), again / reference[3]
    return [*_numbers(measured), *(f"{x:.2f}" for x in shares)]


def _numbers(measured):
    objective, iterations, *seconds = measured
    return [f"{objective:.9g}", iterations, *(f"{x:.3f}" for x in seconds)]
