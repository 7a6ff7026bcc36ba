"""Programs of robots on a free base, with exact Hessians: derivatives by AD and analytic ones, in turns.

A robot is thrown and is to reach a posture in flight: nothing acts on its base, the squared torques of its joints are
least. The state is on the robot's manifold; accelerations are the controls (inverse), or torques (forward). Both ways
begin with the same guess and solve the same program; instructions are those of one interval, times are of the
processor, the least of several.
"""

import time
from pathlib import Path

import casadi as ca
import numpy as np

from .. import robots
from ..files import write_csv
from ..optimal_control.problem import Problem
from ..optimal_control.solver import checked_options, solve
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns

ROBOTS = {"quadruped": robots.quadruped, "humanoid": lambda: robots.humanoid(floating_base=True)}
CASES = [  # transcription of the dynamics, method
    ("inverse", "euler"),
    ("inverse", "trapezoidal"),
    ("forward", "euler"),
]
WAYS = ("ad", "analytic")
NODES, DURATION = 20, 0.4  # intervals, [s]
REPEATS, CALLS = 3, 20
FIELDS = (
    "robot", "dynamics", "method", "derivatives", "status", "objective", "iterations", "value", "Jacobian", "Hessian",
    "build [s]", "solve [s]", "Jacobian [ms]", "Hessian [ms]", "solve over AD", "Hessian over AD",
)  # fmt: skip
CAPTIONS = {
    "floating_nlp.csv": "Postures in flight: instructions of value, Jacobian and Hessian of an interval; processor "
    "time of building, of solving, and of one Jacobian and Hessian of the whole program; ratios to those of AD."
}


def flight(robot, transcription, derivatives):
    """Problem of a robot that is thrown up and reaches a posture, at rest in its joints, when it is as high again."""
    n, T = robot.nv, DURATION
    start = robot.neutral()
    posture = start[7:] + np.random.default_rng(0).uniform(-0.5, 0.5, n - 6)
    ocp = Problem(NODES, T)
    q, v, dv, tau = ocp.rigid_body(
        robot, transcription, derivatives=derivatives, guess=(start, 0.0, 0.0), scale=(1.0, 5.0, 50.0)
    )
    ocp.limit(0, tau[:6] / 100, 0)
    ocp.start({q: start, v: np.r_[np.zeros(5), 9.81 * T / 2, np.zeros(n - 6)]})
    ocp.goal({q[7:]: posture, v[6:]: 0})
    ocp.minimize(integral=ca.sumsqr(tau[6:] / 100) + 1e-4 * ca.sumsqr(dv / 50))
    return ocp


def run(out, quick=False, progress=None):
    """Measure and write floating_nlp.csv and manifest.json to the folder `out`; returns the table as a text.

    quick: the quadruped by inverse dynamics and one method, once. progress: show a bar on stderr; default on a terminal
    only.
    """
    names, cases, repeats = (["quadruped"], CASES[:1], 1) if quick else (list(ROBOTS), CASES, REPEATS)
    rows = []
    with bar(progress, len(names) * len(cases), "floating_nlp", " programs") as shown:
        for name in names:
            robot = ROBOTS[name]()
            for case in cases:
                rows += _rows(name, robot, case, repeats)
                shown.update()
    write_csv(Path(out) / "floating_nlp.csv", [FIELDS, *rows])
    command = "oc-dyn study floating_nlp" + (" --quick" if quick else "")
    write_json(Path(out) / "manifest.json", manifest(command, nodes=NODES, duration=DURATION, repeats=repeats))
    return in_columns([FIELDS, *rows])


def _rows(name, robot, case, repeats):
    """A row of FIELDS for each of WAYS, which take turns."""
    best = {}
    for _ in range(repeats):
        for way in WAYS:
            facts, seconds = _measured(robot, *case, way)
            before = best.get(way)
            best[way] = facts, seconds if before is None else np.minimum(before[1], seconds)
    reference = best["ad"][1]
    out = []
    for way, (facts, seconds) in best.items():
        build, solving, jacobian, hessian = seconds
        times = f"{build:.2f}", f"{solving:.3f}", f"{1e3 * jacobian:.3f}", f"{1e3 * hessian:.3f}"
        ratios = f"{solving / reference[1]:.2f}", f"{hessian / reference[3]:.2f}"
        out.append([name, *case, way, *facts, *times, *ratios])
    return out


def _measured(robot, transcription, method, way):
    """((status, objective, iterations, instructions), array of seconds of build, solution, Jacobian and Hessian)."""
    begun = time.process_time()
    program = flight(robot, transcription, way).transcribed(method)
    build = time.process_time() - begun
    outer, inner = checked_options("ipopt", {"max_iter": 200}, False)
    start = program.guess(None)
    inputs = {"p": program.parameters({}), **program.bounds, "x0": start}
    begun = time.process_time()
    found = solve(program.assembly, "ipopt", "exact", outer, inner, inputs)
    solving = time.process_time() - begun
    kind = max((g.kind for g in program.assembly.groups), key=lambda k: k.hessian.n_instructions())
    counts = [f.n_instructions() for f in (kind.value, kind.jacobian, kind.hessian)]
    functions = program.assembly.cache("ipopt", "exact")
    multipliers = np.random.default_rng(1).normal(size=program.assembly.nlp["g"].numel())
    one = _seconds(functions["nlp_jac_g"], start, inputs["p"])
    two = _seconds(functions["nlp_hess_l"], start, inputs["p"], 1.0, multipliers)
    facts = found.status, f"{found.objective:.10g}", found.iterations, *counts
    return facts, np.array([build, solving, one, two])


def _seconds(f, *at):
    """Processor time of a call, the least of several."""
    least = np.inf
    for _ in range(CALLS):
        begun = time.process_time()
        f(*at)
        least = min(least, time.process_time() - begun)
    return least
