"""Five nonlinear programs by the Hessian that a solver is given and how it is built: seconds, iterations, optimum."""

import os
import statistics
import time

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn.optimal_control.solver import checked_options
from oc_dyn.optimal_control.solver import solve as solved

from . import robots
from .timing import quiet

READY = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
MIDDLE = np.array([1.05, -0.4927, -0.1, -2.0781, 0.65, 2.1854, 0.4927])
ACROSS = np.array([1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6])
MOST = 1000  # iterations
AGAIN, LONG = 15, 2.0  # solves of a process behind the first; fewer where all took more [s]


def line(a, b):
    """A guess: at rest at both ends of a straight line, smooth between."""
    return lambda s: a + (b - a) * s**3 * (10 - 15 * s + 6 * s**2)


def panda_least_time(derivatives, nodes):
    """A Panda between two configurations as fast as 0.7 of its torques and its speeds allow."""
    robot = od.robots.panda()
    ocp = od.Problem(nodes, (0.1, 5.0))
    guess = (line(READY, ACROSS), 0.0, 0.0)
    q, v, _, tau = ocp.rigid_body(robot, derivatives=derivatives, guess=guess, scale=(1.0, 1.0, 10.0))
    share = tau / robot.limit("effort")
    ocp.limit(robot.limit("lower"), q, robot.limit("upper"))
    ocp.limit(-1, v / robot.limit("velocity"), 1)
    ocp.limit(-0.7, share, 0.7)
    ocp.start({q: READY, v: 0})
    ocp.goal({q: ACROSS, v: 0})
    ocp.minimize(terminal=ocp.duration, mean=0.01 * ca.sumsqr(share))  # for joints that have time to spare
    return ocp, "rk4"


def panda_path(derivatives, nodes):
    """A Panda along a path of its joints as fast as speeds, torques and 0.3 of the rates of torques allow."""
    robot = od.robots.panda()
    ocp = od.Problem(nodes, (0.2, 10.0))
    smooth = [lambda x: x**3 * (10 - 15 * x + 6 * x**2), 1.0, 0.0, 0.0]
    s, ds, d2s, d3s = ocp.chain("s", 1, 3, scale=(1.0, 1.0, 10.0, 100.0), guess=smooth)
    q = READY * (1 - s) * (1 - 2 * s) + 4 * MIDDLE * s * (1 - s) + ACROSS * s * (2 * s - 1)
    one = READY * (4 * s - 3) + 4 * MIDDLE * (1 - 2 * s) + ACROSS * (4 * s - 1)
    two = 4 * READY - 8 * MIDDLE + 4 * ACROSS
    v, a, j = one * ds, one * d2s + two * ds**2, one * d3s + 3 * two * ds * d2s
    tau, dtau = od.function(robot, "inverse_dynamics", order=1, derivatives=derivatives)(q, v, a, j)
    ocp.limit(0, ds, np.inf)
    ocp.limit(-1, v / robot.limit("velocity"), 1)
    ocp.limit(-1, tau / robot.limit("effort"), 1)
    ocp.limit(-0.3, dtau / robot.limit("effort_rate"), 0.3)
    ocp.start({s: 0, ds: 0, d2s: 0})
    ocp.goal({s: 1, ds: 0, d2s: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp, "rk4"


def cart_pole(derivatives, nodes):
    """The swing-up of problems/cart_pole_swing_up.py: least squares of the force."""
    b = od.RobotBuilder("cart_pole")
    b.add_link("base")
    b.add_body("cart", "prismatic", "base", joint="rail", mass=1.0, axis=(1, 0, 0))
    b.add_body("pole", "revolute", "cart", joint="hinge", mass=0.3, com=(0, 0, -0.5), axis=(0, -1, 0))
    goal, ocp = np.array([1.0, np.pi]), od.Problem(nodes, 2.0)
    q = ocp.state("q", 2, lower=[-2, -np.inf], upper=[2, np.inf], guess=lambda s: s * goal)
    v, u = ocp.state("v", 2), ocp.control("u", lower=-20, upper=20)
    ocp.rate(q, v)
    ocp.rate(v, od.function(b.build(), "forward_dynamics", derivatives=derivatives)(q, v, ca.vertcat(u, 0)))
    ocp.start({q: 0, v: 0})
    ocp.goal({q: goal, v: 0})
    ocp.minimize(squares=np.sqrt(2) * u)
    return ocp, "hermite_simpson"


def ur5_elastic(derivatives, nodes):
    """A UR5 whose joints are springs, by flat outputs: least squares of the torques of its motors, which are limited
    and follow from two time derivatives of inverse dynamics."""
    robot = robots.robot("ur5")
    stiffness, inertia = np.array([3e3, 3e3, 2e3, 600, 600, 600]), np.array([1.0, 1.0, 0.6, 0.1, 0.1, 0.1])
    start, goal = np.array([0, -1.5, 1.2, -0.5, 0.5, 0]), np.array([1.2, -0.8, 0.4, 0.3, -0.6, 0.8])
    ocp = od.Problem(nodes, 1.0)
    guess = [line(start, goal), 0.0, 0.0, 0.0, 0.0]
    q, v, a, j, s = ocp.chain("q", 6, 4, scale=(1.0, 1.0, 10.0, 100.0, 1000.0), guess=guess)
    f = od.function(robot, "inverse_dynamics", order=2, derivatives=derivatives)
    tau, _, d2tau = f(q, v, a, j, s)
    share = (tau + inertia * (a + d2tau / stiffness)) / robot.limit("effort")
    ocp.limit(-1, v / robot.limit("velocity"), 1)
    ocp.limit(-1, share, 1)
    ocp.start({q: start, v: 0, a: 0, j: 0})
    ocp.goal({q: goal, v: 0, a: 0, j: 0})
    ocp.minimize(squares=np.sqrt(2) * share)
    return ocp, "rk4"


def quadruped_flight(derivatives, nodes):
    """A quadruped thrown up that reaches a posture in flight with the least squares of its torques, as in
    oc_dyn.study.floating_nlp: accelerations are the controls."""
    robot, T = od.robots.quadruped(), 0.4
    n, start = robot.nv, robot.neutral()
    posture = start[7:] + np.random.default_rng(0).uniform(-0.5, 0.5, n - 6)
    ocp = od.Problem(nodes, T)
    guess, scale = (start, 0.0, 0.0), (1.0, 5.0, 50.0)
    q, v, dv, tau = ocp.rigid_body(robot, derivatives=derivatives, guess=guess, scale=scale)
    ocp.limit(0, tau[:6] / 100, 0)
    ocp.start({q: start, v: np.r_[np.zeros(5), 9.81 * T / 2, np.zeros(n - 6)]})
    ocp.goal({q[7:]: posture, v[6:]: 0})
    ocp.minimize(squares=np.sqrt(2) * ca.vertcat(tau[6:] / 100, 1e-2 * dv / 50))
    return ocp, "euler"


PROBLEMS = {
    f.__name__: f for f in (cart_pole, panda_path, panda_least_time, ur5_elastic, quadruped_flight)
}  # by the size of their stages


def solve(problem, hessian, derivatives, compiled, nodes):
    """Parts "build": from a robot's description to a program, compiled or not; "first": the solution, with what the
    solver needs at first; "again": the same solve once more, the median of several. cpu counts the compiler, too."""
    quiet()
    begun = _now()
    ocp, method = PROBLEMS[problem](derivatives, nodes)
    counts: dict = {}
    made = ocp.transcribed(method, _counted(counts, compiled), hessian=hessian)
    options = checked_options("ipopt", {"max_iter": MOST}, ocp.description.free_time)
    yield {"part": "build", **_since(begun)}
    given = {"p": made.parameters({}), **made.bounds, "x0": made.guess(None)}
    begun = _now()
    found = solved(made.assembly, "ipopt", hessian, *options, given)
    yield {"part": "first", **_since(begun), **_facts(found), "instructions": counts}
    several: list = []
    while len(several) < AGAIN and sum(x["cpu"] for x in several) < LONG:
        begun = _now()
        solved(made.assembly, "ipopt", hessian, *options, given)
        several.append(_since(begun))
    yield {"part": "again", **{k: statistics.median(x[k] for x in several) for k in ("value", "cpu")}, "unit": "s"}


def _counted(counts, compiled):
    """A compiler of stages, or what passes them on; counts gets the instructions of the longest stage's Functions."""

    def functions(given):
        value, jacobian, *_, exact, approximate = (f.n_instructions() if f.nnz_out(0) else None for f in given)
        if value and value > counts.get("value", 0):
            counts.update(value=value, Jacobian=jacobian, Hessian=exact or approximate)
        return od.compile(given) if compiled else given

    return functions


def _facts(found):
    """What a solve found; seen: the unknowns along three random directions."""
    n = found.x.size
    return {
        "status": found.status,
        "success": found.success,
        "iterations": found.iterations,
        "objective": found.objective,
        "functions": sum(x for k, x in found.seconds.items() if k.startswith("nlp_")),
        "unknowns": n,
        "rows": found.lam_g.size,
        "seen": (np.random.default_rng(0).normal(size=(3, n)) @ found.x / np.sqrt(n)).tolist(),
    }


def _now():
    """(wall, of the processor) [s], programs that have ended included."""
    return time.perf_counter(), time.process_time() + _of_programs()


def _of_programs():
    try:
        import resource
    except ImportError:  # Windows
        times = os.times()
        return times.children_user + times.children_system
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _since(begun):
    wall, cpu = (b - a for a, b in zip(begun, _now(), strict=True))
    return {"value": wall, "unit": "s", "cpu": cpu}
