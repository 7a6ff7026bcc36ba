"""The same things by other packages. A package that is not there raises ImportError, which says so."""

from math import comb, factorial

import casadi as ca
import numpy as np

import oc_dyn as od

from . import plans, robots
from .timing import one, quiet, timed, twice


def opti(ends, kind, nodes, continuity=3):
    """The program of plan_point_to_point by hand in casadi.Opti, with ipopt and derivatives by AD, as first written.

    q is a chain of integrators, its highest derivative constant on each interval; torque and its rate are bounded at
    nodes, on both sides of them, q and its derivatives by Bernstein coefficients, as in ours.
    """
    quiet()
    r = robots.robot("panda")
    options = plans.KINDS[kind]
    limits = od.Limits.of(r).scaled(**options.get("scale", {})).without(*options.get("ignore", ()))
    dynamics = None if kind == "kinematic" else ca.Function(od.function(r, "inverse_dynamics", order=1)).expand()
    made = {}

    def work():
        if not made:
            made["opti"] = _opti(np.array(robots.ENDS[ends]), limits, dynamics, nodes, continuity)
        opti, T = made["opti"]
        found = opti.solve()
        return found.value(T), found.stats()["iter_count"]

    yield from twice(work, lambda found: f"T {found[0]:.6f} s, {found[1]} iterations")


def _opti(ends, limits, dynamics, N, continuity):
    """(Opti, T)."""
    opti, n, c = ca.Opti(), ends.shape[1], continuity
    T = opti.variable()
    h, scales = T / N, (1, 1, 10, 100, 1000)
    x = [scales[k] * opti.variable(n, N + (k <= c)) for k in range(c + 2)]
    first, last = [y[:, :N] for y in x], [y[:, 1:] for y in x[: c + 1]]
    for k in range(c + 1):
        after = sum((h**i / factorial(i) * y for i, y in enumerate(first[k:])), ca.MX(0))
        opti.subject_to([ca.vec(last[k] - after) == 0])
        opti.subject_to([x[k][:, 0] == ends[0] * (k == 0), x[k][:, -1] == ends[1] * (k == 0)])
    bounded = {"v": _coefficients(first[1:], h), "dv": _coefficients(first[2:], h), "d2v": _coefficients(first[3:], h)}
    if dynamics is not None:
        jerk = last[3] if c > 2 else first[3]
        (tau, dtau), (end, rate) = dynamics.map(N)(*first[:4]), dynamics.map(N)(*last[:3], jerk)
        bounded |= {"tau": ca.horzcat(tau, end[:, -1]), "dtau": ca.horzcat(dtau, rate)}
    for name, y in bounded.items():
        most = np.asarray(getattr(limits, name), float)
        rows = np.flatnonzero(np.isfinite(most))
        if rows.size:
            shares = y[rows.tolist(), :] / ca.repmat(most[rows], 1, y.shape[1])
            opti.subject_to(opti.bounded(-1, ca.vec(shares), 1))
    positions = _coefficients(first, h)
    lower, upper = (np.tile(side, positions.shape[1]) for side in limits.q)
    opti.subject_to(opti.bounded(lower, ca.vec(positions), upper))
    opti.subject_to(opti.bounded(0.1, T, 20))
    opti.set_initial(T, 2.0)
    opti.set_initial(x[0], np.linspace(*ends, N + 1).T)
    opti.minimize(T + 1e-5 * ca.sumsqr(x[2] / 10) / N)
    quiet_ipopt = {"print_level": 0, "sb": "yes", "mu_strategy": "adaptive"}
    opti.solver("ipopt", {"print_time": False, "detect_simple_bounds": True}, quiet_ipopt)
    return opti, T


def _coefficients(y, h):
    """Bernstein coefficients on every interval, side by side, from derivatives y at its start."""
    m, made = len(y) - 1, []
    for j in range(m + 1):
        made.append(sum((comb(j, i) / comb(m, i) * h**i / factorial(i) * y[i] for i in range(j + 1)), ca.MX(0)))
    return ca.horzcat(*made)


def ruckig(ends):
    """From rest to rest with limits of velocity, acceleration and jerk: the exact least time, which bounds ours."""
    import ruckig

    limits = od.Limits.of(robots.robot("panda"))
    n = len(limits.v)
    task, motion, otg = ruckig.InputParameter(n), ruckig.Trajectory(n), ruckig.Ruckig(n)
    task.current_position, task.target_position = map(list, robots.ENDS[ends])
    rest = [0.0] * n
    task.current_velocity = task.current_acceleration = task.target_velocity = task.target_acceleration = rest
    task.max_velocity, task.max_acceleration, task.max_jerk = list(limits.v), list(limits.dv), list(limits.d2v)
    yield timed("first", lambda: otg.calculate(task, motion), lambda _: f"T {motion.duration:.6f} s")[0]
    goals = [list(np.array(robots.ENDS[ends][1]) + x) for x in (0.0, 1e-3)]

    def work():
        for task.target_position in goals:
            otg.calculate(task, motion)

    yield one("again", work, 100, unit="s", told="no torques; jerk jumps", samples=2)


def toppra(points=100):
    """Along the path of plans.along_path with limits of velocity, acceleration and torque; jerk jumps."""
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    r = robots.robot("panda")
    limits, f = od.Limits.of(r), od.numpy_call(od.compile(od.function(r, "inverse_dynamics")))
    path = toppra.SplineInterpolator([0.0, 0.5, 1.0], np.array(plans.WAY))
    both = [np.c_[-x, x] for x in (limits.v, limits.dv, limits.tau)]
    rows = [constraint.JointVelocityConstraint(both[0]), constraint.JointAccelerationConstraint(both[1])]
    rows.append(constraint.JointTorqueConstraint(lambda q, v, a: np.ravel(f(q, v, a)), both[2], np.zeros(7)))

    def work():
        made = algorithm.TOPPRA(rows, path, gridpoints=np.linspace(0, 1, points + 1), parametrizer="ParametrizeSpline")
        return made.compute_trajectory(0, 0)

    yield from twice(work, lambda motion: f"T {motion.duration:.6f} s")


def pinocchio(robot):
    """Microseconds of a call of its inverse dynamics through its Python binding."""
    import pinocchio as pin

    from oc_dyn.study.peers.robots import pinocchio_model

    model = pinocchio_model(robot)
    data, given = model.createData(), list(np.random.default_rng(0).uniform(-1, 1, (3, model.nv)))
    yield one("numpy_call", lambda: pin.rnea(model, data, *given), 20_000, told="rnea")


def mujoco(robot):
    """Microseconds of a call of mj_inverse through its Python binding, contacts and limits off."""
    import mujoco as mj

    from oc_dyn.study.peers.mujoco import model

    made = model(robots.robot(robot))
    data = mj.MjData(made)
    data.qpos[:], data.qvel[:], data.qacc[:] = np.random.default_rng(0).uniform(-1, 1, (3, made.nv))
    yield one("numpy_call", lambda: mj.mj_inverse(made, data), 20_000, told="mj_inverse")
