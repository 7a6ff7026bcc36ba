"""From the unknowns of the solver to a Trajectory, or to what went wrong."""

from math import factorial

import numpy as np

from ..errors import ModelError, SolveError
from ..interrupts import TIME_LIMIT
from ..optimal_control.polynomials import lobatto
from .followers import followers_of
from .report import Violation, quantities
from .trajectory import Trajectory, joint_units


def solved(task, problem, values, solver):
    """The Trajectory of a solution, its joins and ends exact."""
    h, x, u = problem.unpack(values)
    pieces = _joined(*_continuous(task, h, x, u))
    pieces[0, : len(task.start)] = task.start
    T = float(h.sum())
    info = {
        "robot": task.robot.name,
        "objective": "time" if problem.free_time else "effort",
        "solver": solver.name,
        "status": solver.status,
        "nodes": problem.nodes,
        "torque_limits_needed": not problem.kinematic,
        "request": {"start": task.start.tolist(), "goal": task.goal.tolist()},
    }
    motion = Trajectory(
        _times(h),
        pieces,
        joints=task.names,
        units=joint_units(task.robot),
        robot=task.robot,
        limits=task.limits,
        info=info,
        friction=task.friction,
    )
    motion.info["objective_value"] = float(T) if problem.free_time else _effort(motion)
    return motion


def _effort(motion):
    """Integral of the squared torque, each divided by its limit."""
    points, weights = lobatto(3)
    h = np.diff(motion.t)
    times = (motion.t[:-1, None] + points * h[:, None]).ravel()
    share = motion.sample(times).tau / motion.limits.unit("tau")
    return float((weights * h[:, None]).ravel() @ np.sum(share**2, axis=1))


def _times(h):
    """Breakpoints; of equal pieces as linspace has them."""
    if np.ptp(h) == 0:
        return np.linspace(0.0, len(h) * h[0], len(h) + 1)
    return np.concatenate([[0.0], np.cumsum(h)])


def _joined(x, u):
    """Pieces (N, c + 2, n): q and its derivatives at the start of each."""
    return np.concatenate([x[:-1], u[:, None]], axis=1)


def _continuous(task, h, x, u):
    """The same x, u with the joins and both ends exact, which the solver meets to its tolerance: the smallest
    change of u that does it."""
    c, N, T = task.continuity, len(u), float(h.sum())
    # derivatives in units of T: what goes from piece to piece
    powers = [(h / T) ** j / factorial(j) for j in range(c + 2)]
    A, b = np.zeros((N, c + 1, c + 1)), np.zeros((N, c + 1))
    for i in range(c + 1):
        b[:, i] = powers[c + 1 - i]
        for j in range(i, c + 1):
            A[:, i, j] = powers[j - i]
    unit = T ** np.arange(c + 2.0)
    start, goal = (np.array([s * unit[j] for j, s in enumerate(state)]) for state in (task.start, task.goal))
    x, u = x * unit[: c + 1, None], u * unit[c + 1]
    x[0, : len(start)] = start
    effect = np.zeros((N, c + 1))  # of u in each piece on the end
    effect[-1] = b[-1]
    carry = np.eye(c + 1)
    for k in range(N - 2, -1, -1):
        carry = carry @ A[k + 1]
        effect[k] = carry @ b[k]
    for _ in range(3):
        for k in range(N):
            x[k + 1] = A[k] @ x[k] + np.outer(b[k], u[k])
        miss = goal - x[-1, : len(goal)]
        u += np.linalg.lstsq(effect[:, : len(goal)].T, miss, rcond=None)[0]
    for k in range(N):
        x[k + 1] = A[k] @ x[k] + np.outer(b[k], u[k])
    return x / unit[: c + 1, None], u / unit[c + 1]


def still(task):
    """No joint may move: the motion that stays."""
    c = task.continuity
    pieces = np.zeros((1, c + 2, len(task.names)))
    pieces[0, 0] = task.start[0]
    info = {"robot": task.robot.name, "objective": "effort", "iterations": 0, "status": "held by limits of zero"}
    units = joint_units(task.robot)
    return Trajectory(
        [0.0, task.duration], pieces, joints=task.names, units=units, robot=task.robot, limits=task.limits, info=info,
        friction=task.friction,
    )  # fmt: skip


def failure(problem, values, status, iterations):
    """SolveError that tells what the last iterate, its pieces joined, violates, worst first."""
    task = problem.task
    message = f"the solver stopped with {status!r} after {sum(iterations)} iterations"
    h, x, u = problem.unpack(values)
    T = float(h.sum())
    if not (np.all(np.isfinite(values)) and np.all(h > 0)):
        return SolveError(f"{message}; the last iterate is no motion", status)
    motion = Trajectory(
        _times(h),
        _joined(*_continuous(task, h, x, u)),
        joints=task.names,
        units=joint_units(task.robot),
        robot=task.robot,
        limits=task.limits,
        friction=task.friction,
    )
    try:
        found, open_ = _violations(motion), ""
    except ModelError as error:  # loops of the robot are open on its way
        found, open_ = [], f"\n  - {error}"
    lines = open_ or "".join(f"\n  - {v}" for v in found[:8]) or f"\n  {_none(problem, status)}"
    message = f"{message}; largest violations of the last iterate (T = {T:.4g} s):{lines}"
    return SolveError(message, status, found, motion)


def _none(problem, status):
    """Text where the last iterate exceeds no limit."""
    if status == TIME_LIMIT:
        return "none above 0.1 %: there was no time for more iterations"
    if problem.kind.near is not None:
        return "none above 0.1 %: it is the shapes that are in the way"
    return "none above 0.1 %: more iterations may help"


def _violations(motion):
    """Limits that a motion exceeds by more than 0.1 %, one Violation per joint and quantity, worst first."""
    samples = motion.both_sides(motion.duration / 400)
    out = []
    for quantity, value, low, high, _ in quantities(samples, motion.limits):
        named = [(quantity, joint) for joint in motion.joints]
        out += _exceeded(samples.t, named, value, low, high)
    followers = followers_of(motion.robot, motion.limits)
    if followers is not None:
        named = [(k, followers.limits.joints[i]) for k, i in followers.rows]
        bounds = np.array([[x[i] for x in followers.limits.bounds(k)] for k, i in followers.rows]).T
        values = followers.at(samples.derivatives)
        out += _exceeded(samples.t, named, values, *(np.broadcast_to(x, values.shape) for x in bounds))
    return sorted(out, key=lambda v: -v.share)


def _exceeded(t, named, value, low, high):
    """Violations of the columns of values (K, m) of (quantity, joint)."""
    out, over = [], np.maximum(value - high, low - value)
    for i, (quantity, joint) in enumerate(named):
        k = int(np.argmax(over[:, i]))
        limit = high[k, i] if value[k, i] > high[k, i] else low[k, i]
        if over[k, i] > 1e-3 * max(abs(limit), 1e-9):
            share = over[k, i] / max(abs(limit), 1e-9)
            numbers = (float(x) for x in (t[k], over[k, i], limit, share))
            out.append(Violation(joint, quantity, *numbers))
    return out
