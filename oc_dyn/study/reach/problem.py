"""The reach: one discrete optimal-control problem, written with od.Problem, and a judge of anybody's solution.

State (q, v) and torque tau at N intervals of dt: v+ = v + dt a(q, v, tau), q+ = q + dt v+. Cost: half of

    dt sum( POSITION |q - goal|^2 + SPEED |v|^2 + TORQUE |tau / rated|^2 ) + END_POSITION |q - goal|^2 + END_SPEED |v|^2
"""

import time
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from ... import robots
from ...function import function
from ...optimal_control.problem import Problem, Solution
from ...optimal_control.solver import checked_options, solve
from ..solvers import GOAL, START

POSITION, SPEED, TORQUE, END_POSITION, END_SPEED = 1.0, 1.0, 1e2, 1e6, 1e4
DURATION, SHARE = 1.0, 0.6  # s; bounds of torque as a share of the rated ones
SPREAD = 0.1  # of goals about the first one, standard deviation [rad]
MOST = 1000  # iterations
TOLERANCE = 1e-6  # of all solvers, for costs of about 15; each measures something of its own by it
OPTIONS = {
    # what the end weighs makes ipopt scale the cost down to where its tolerance is coarse: 1e-5 of the cost, not 1e-8
    "ipopt": {"max_iter": MOST, "tol": TOLERANCE, "nlp_scaling_method": "none"},
    "fatrop": {"max_iter": MOST, "tolerance": TOLERANCE},
}


@dataclass(frozen=True)
class Way:
    """How the reach is solved. weight: of the penalty on velocities that stands in for their bounds."""

    library: str
    solver: str
    hessian: str
    control: str = "torque"
    compiled: bool = False
    weight: float | None = None

    @property
    def name(self):
        """What the way is called in tables."""
        parts = [self.solver, self.hessian.replace("_", "-")]
        parts += [f"by {self.control}"] if self.control != "torque" else []
        parts += ["compiled"] if self.compiled else []
        parts += [f"penalty {self.weight:g}"] if self.weight is not None else []
        return " ".join(parts)


@dataclass(frozen=True, eq=False)
class Reach:
    """nodes: intervals. torque, velocity: bounds (7,) of absolute values [Nm], [rad/s], or None."""

    nodes: int
    torque: np.ndarray | None = None
    velocity: np.ndarray | None = None
    robot: object = field(default_factory=robots.panda)

    @property
    def step(self):
        """Length of an interval [s]."""
        return DURATION / self.nodes

    @property
    def rated(self):
        """Rated torques (7,) [Nm]."""
        return self.robot.limit("effort")

    @property
    def holding(self):
        """Torque (7,) that holds the arm at its start: with the start at all nodes, the guess of both sides."""
        return np.array(function(self.robot, "inverse_dynamics")(START, np.zeros(7), np.zeros(7))).ravel()


def goals(count):
    """(count, 7) goals of the rounds: one and the same program may take a solver half or twice the iterations when
    nothing but the rounding changes."""
    away = SPREAD * np.random.default_rng(1).normal(size=(count, 7))
    away[0] = 0.0
    return GOAL + away


def written(reach, control="torque"):
    """(Problem with the parameter "goal", q, v, tau). control: "torque", or "acceleration" and inverse dynamics."""
    robot, rated = reach.robot, reach.rated
    ocp = Problem(reach.nodes, DURATION)
    goal = ocp.parameter("goal", 7)
    most = {} if reach.velocity is None else {"lower": -reach.velocity, "upper": reach.velocity}
    q, v = ocp.state("q", 7, guess=START), ocp.state("v", 7, scale=1.0, **most)
    if control == "torque":
        most = {} if reach.torque is None else {"lower": -reach.torque, "upper": reach.torque}
        tau = ocp.control("tau", 7, guess=reach.holding, scale=rated, **most)
        dv = function(robot, "forward_dynamics", derivatives="analytic")(q, v, tau)
    else:
        dv = ocp.control("dv", 7, scale=10.0)
        tau = function(robot, "inverse_dynamics", derivatives="analytic")(q, v, dv)
        if reach.torque is not None:
            ocp.limit(-1, tau / reach.torque, 1)
    following = v + ocp.step * dv
    ocp.next(v, following)
    ocp.next(q, q + ocp.step * following)
    ocp.start({q: START, v: 0})
    weighted = POSITION**0.5 * (q - goal), SPEED**0.5 * v, TORQUE**0.5 * tau / rated
    ocp.minimize(squares=ca.vertcat(*weighted))
    ocp.minimize(terminal=(END_POSITION * ca.sumsqr(q - goal) + END_SPEED * ca.sumsqr(v)) / 2)
    return ocp, q, v, tau


def prepared(reach, way, compiler):
    """(seconds from nothing to a solver at hand, function goal -> Outcome that solves from the guess)."""
    reach = Reach(reach.nodes, reach.torque, reach.velocity)  # a new robot: the old one keeps what was built of it
    begun = time.perf_counter()
    ocp, q, v, tau = written(reach, way.control)
    transcription = ocp.transcribed("euler", compiler if way.compiled else False)
    outer, inner = checked_options(way.solver, OPTIONS[way.solver], free_time=False)
    outer["record_time"] = True

    def solved(goal):
        parameters, guess = transcription.parameters({"goal": goal}), transcription.guess(None)
        inputs = {"p": parameters, **transcription.bounds, "x0": guess}
        begun = time.perf_counter()
        result = solve(transcription.assembly, way.solver, way.hessian, outer, inner, inputs)
        seconds = time.perf_counter() - begun
        solution = Solution(ocp, transcription, result, inputs)
        x = np.hstack([solution[q], solution[v]])
        outcome = Outcome(seconds, x, solution[tau], result.iterations, result.success)
        return outcome, result.seconds["total"]

    written_down = time.perf_counter() - begun
    first, solving = solved(GOAL)  # CasADi makes the solver here
    return written_down + first.seconds - solving, lambda goal: solved(goal)[0]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A solution: x (N + 1, 14), u (N, 7)."""

    seconds: float
    x: np.ndarray
    u: np.ndarray
    iterations: int
    success: bool


def judged(reach, outcome, goal):
    """{cost, gap, torque_excess, velocity_excess} of a solution, by the same few lines whoever found it.

    cost: without penalties. gap: largest error of a step from the start on [rad, rad/s]; excess: how far bounds are
    passed, of torque as a share of the bound, of velocity in rad/s; None where there is none.
    """
    (q, v), u, dt = np.split(outcome.x, 2, axis=1), outcome.u, reach.step
    dynamics = function(reach.robot, "forward_dynamics").map(reach.nodes)
    following = v[:-1] + dt * np.array(dynamics(q[:-1].T, v[:-1].T, u.T)).T
    gaps = [q[1:] - q[:-1] - dt * following, v[1:] - following, q[0] - START, v[0]]
    running = POSITION * np.sum((q[:-1] - goal) ** 2) + SPEED * np.sum(v[:-1] ** 2)
    running += TORQUE * np.sum((u / reach.rated) ** 2)
    end = END_POSITION * np.sum((q[-1] - goal) ** 2) + END_SPEED * np.sum(v[-1] ** 2)
    torque, velocity = reach.torque, reach.velocity
    return {
        "cost": (dt * running + end) / 2,
        "gap": max(np.abs(x).max() for x in gaps),
        "torque_excess": None if torque is None else max(0.0, float((np.abs(u) / torque).max() - 1)),
        "velocity_excess": None if velocity is None else max(0.0, float((np.abs(v) - velocity).max())),
    }
