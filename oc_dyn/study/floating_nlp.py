"""Programs of robots on a free base, with exact Hessians: derivatives by AD and analytic ones, in turns.

A robot is thrown and is to reach a posture in flight: nothing acts on its base, the squared torques of its joints are
least. The state is on the robot's manifold; accelerations are the controls (inverse), or torques (forward). Both ways
begin with the same guess and solve the same program; instructions are those of one interval, times are of the
processor, the least of several but for building.
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
    programs = {way: _Program(robot, *case, way) for way in WAYS}
    best = {}
    for _ in range(repeats):
        for way, program in programs.items():
            best[way] = np.minimum(program.seconds(), best.get(way, np.inf))
    out = []
    for way, program in programs.items():
        solving, jacobian, hessian = best[way]
        times = f"{program.build:.2f}", f"{solving:.3f}", f"{1e3 * jacobian:.3f}", f"{1e3 * hessian:.3f}"
        ratios = f"{solving / best['ad'][0]:.2f}", f"{hessian / best['ad'][2]:.2f}"
        out.append([name, *case, way, *program.facts(), *times, *ratios])
    return out


class _Program:
    """One way to a case: build is the processor time that it took to build [s]."""

    def __init__(self, robot, transcription, method, way):
        begun = time.process_time()
        self.made = flight(robot, transcription, way).transcribed(method)
        self.build = time.process_time() - begun
        self.functions = self.made.assembly.cache("ipopt", "exact")
        self.options = checked_options("ipopt", {"max_iter": 200}, False)
        self.inputs = {"p": self.made.parameters({}), **self.made.bounds, "x0": self.made.guess(None)}

    def seconds(self):
        """(3,) processor time of a solution, a Jacobian and a Hessian."""
        begun = time.process_time()
        self.found = solve(self.made.assembly, "ipopt", "exact", *self.options, self.inputs)
        solving = time.process_time() - begun
        multipliers = np.random.default_rng(1).normal(size=self.made.assembly.nlp["g"].numel())
        at = self.inputs["x0"], self.inputs["p"]
        jacobian = _seconds(self.functions["nlp_jac_g"], *at)
        return np.array([solving, jacobian, _seconds(self.functions["nlp_hess_l"], *at, 1.0, multipliers)])

    def facts(self):
        """(status, objective, iterations, instructions of value, Jacobian and Hessian of an interval)."""
        kind = max((g.kind for g in self.made.assembly.groups), key=lambda k: k.hessian.n_instructions())
        counts = [f.n_instructions() for f in (kind.value, kind.jacobian, kind.hessian)]
        return self.found.status, f"{self.found.objective:.10g}", self.found.iterations, *counts


def _seconds(f, *at):
    """Processor time of a call, the least of several."""
    least = np.inf
    for _ in range(CALLS):
        begun = time.process_time()
        f(*at)
        least = min(least, time.process_time() - begun)
    return least
