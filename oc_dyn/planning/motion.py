"""From the unknowns of the solver to a Trajectory, or to what went wrong."""

from math import factorial

import numpy as np

from ..errors import SolveError
from .polynomials import lobatto, shift
from .report import Violation, quantities
from .trajectory import Trajectory, joint_units
from .transcription import effort_unit


def solved(task, problem, values, solver):
    """The Trajectory of a solution, its joins and ends exact."""
    T, x, u = problem.unpack(values)
    pieces = _joined(T, *_continuous(task, T, x, u))
    pieces[0, : len(task.start)] = task.start
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
        np.linspace(0.0, T, problem.nodes + 1),
        pieces,
        joints=task.names,
        units=joint_units(task.robot),
        robot=task.robot,
        limits=task.limits,
        info=info,
    )
    motion.info["objective_value"] = float(T) if problem.free_time else _effort(motion)
    return motion


def _effort(motion):
    """Integral of the squared torque, each divided by its limit."""
    points, weights = lobatto(3)
    h = motion.duration / len(motion.pieces)
    times = (motion.t[:-1, None] + points * h).ravel()
    share = motion.sample(times).tau / effort_unit(motion.limits)
    return float(np.tile(weights, len(motion.pieces)) @ np.sum(share**2, axis=1) * h)


def _joined(T, x, u):
    """Pieces (N, c + 2, n): q and its derivatives at the start of each, from Taylor coefficients."""
    h = T / len(u)
    pieces = np.concatenate([x[:-1], u[:, None]], axis=1)
    return pieces * np.array([factorial(j) / h**j for j in range(pieces.shape[1])])[None, :, None]


def _continuous(task, T, x, u):
    """The same x, u with the joins and both ends exact, which the solver meets to its tolerance: the smallest
    change of u that does it."""
    c, N = task.continuity, len(u)
    h = T / N
    A, b = shift(c + 1)[: c + 1, : c + 1], shift(c + 1)[: c + 1, c + 1]
    ends = (task.start, task.goal)
    start, goal = (np.array([s * h**j / factorial(j) for j, s in enumerate(state)]) for state in ends)
    x, u = x.copy(), u.copy()
    x[0, : len(start)] = start
    effect = np.zeros((N, c + 1))  # of u in each piece on the end
    effect[-1] = b
    for k in range(N - 2, -1, -1):
        effect[k] = A @ effect[k + 1]
    rows = float(N) ** np.arange(len(goal))
    for _ in range(3):
        for k in range(N):
            x[k + 1] = A @ x[k] + np.outer(b, u[k])
        miss = goal - x[-1, : len(goal)]
        u += np.linalg.lstsq(effect[:, : len(goal)].T * rows[:, None], miss * rows[:, None], rcond=None)[0]
    for k in range(N):
        x[k + 1] = A @ x[k] + np.outer(b, u[k])
    return x, u


def still(task):
    """No joint may move: the motion that stays."""
    c = task.continuity
    pieces = np.zeros((1, c + 2, len(task.names)))
    pieces[0, 0] = task.start[0]
    info = {"robot": task.robot.name, "objective": "effort", "iterations": 0, "status": "held by limits of zero"}
    units = joint_units(task.robot)
    return Trajectory(
        [0.0, task.duration], pieces, joints=task.names, units=units, robot=task.robot, limits=task.limits, info=info
    )


def failure(problem, values, status, iterations):
    """SolveError that tells what the last iterate, its pieces joined, violates, worst first."""
    task = problem.task
    message = f"the solver stopped with {status!r} after {sum(iterations)} iterations"
    T, x, u = problem.unpack(values)
    if not (np.all(np.isfinite(values)) and T > 0):
        return SolveError(f"{message}; the last iterate is no motion", status)
    motion = Trajectory(
        np.linspace(0.0, T, problem.nodes + 1),
        _joined(T, *_continuous(task, T, x, u)),
        joints=task.names,
        units=joint_units(task.robot),
        robot=task.robot,
        limits=task.limits,
    )
    found = _violations(motion)
    lines = "".join(f"\n  - {v}" for v in found[:8]) or "\n  none above 0.1 %: more iterations may help"
    message = f"{message}; largest violations of the last iterate (T = {T:.4g} s):{lines}"
    return SolveError(message, status, found, motion)


def _violations(motion):
    """Limits that a motion exceeds by more than 0.1 %, one Violation per joint and quantity, worst first."""
    samples = motion.both_sides(motion.duration / 400)
    out = []
    for quantity, value, low, high, _ in quantities(samples, motion.limits):
        over = np.maximum(value - high, low - value)
        for i, joint in enumerate(motion.joints):
            k = int(np.argmax(over[:, i]))
            limit = high[k, i] if value[k, i] > high[k, i] else low[k, i]
            share = over[k, i] / max(abs(limit), 1e-9)
            if over[k, i] > 0 and share > 1e-3:
                numbers = (float(x) for x in (samples.t[k], over[k, i], limit, share))
                out.append(Violation(joint, quantity, *numbers))
    return sorted(out, key=lambda v: -v.share)
