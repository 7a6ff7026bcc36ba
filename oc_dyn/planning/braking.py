"""Starts that are faster than a limit: a motion that brakes in the least time, from which a plan goes on within all
limits.

Joints that are too fast brake at once, all limits but theirs of the velocity held; the others keep their speed as far
as their limits let them. It ends, after the least time, where all velocities are within their limits and none that was
too fast gains speed; from continuity 3 on, derivatives above the acceleration are zero there, so that the limits can be
kept from then on.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from ..errors import LimitError, SolveError
from ..interrupts import TIME_LIMIT, expired
from ..optimal_control.problem import Problem
from .motion_problem import KindOfMotion, limit_torque, motion_bounds
from .quantities import BOUNDED
from .trajectory import Trajectory, of_solution

_NODES = 30
_INSIDE = 1 - 1e-6  # share of limits that is used, so that the plan can go on from what a solver leaves
_SHORTEST, _LONGEST = 0.02, 50.0  # durations, by the guess of it
_EXCESS, _CALM = 1e-2, 1e-4  # weights, against the time, of what is still too fast and of accelerations


def too_fast(task):
    """(n,) joints that start faster than a limit of their velocity; the sign of their velocity, 0 for the others."""
    if len(task.start) < 2:
        return np.zeros(len(task.names))
    (lower, upper), v = task.limits.bounds("v"), task.start[1]
    return np.where((v > upper * (1 + 1e-9)) | (v < lower * (1 + 1e-9)), np.sign(v), 0.0)


def braked(task, solver_options, solver):
    """(Trajectory that brakes, Task that goes on from its end, with the time that is left); (None, task) where no joint
    starts too fast. Raises LimitError where the limits do not let a joint brake."""
    sign = too_fast(task)
    if not sign.any():
        return None, task
    _refuse(task, sign)
    T = _guess(task, sign)
    if expired():  # building takes longer than solving
        raise _not_braked(task, sign, TIME_LIMIT)
    ocp, chain = _problem(task, sign, T)
    if expired():
        raise _not_braked(task, sign, TIME_LIMIT)
    found = ocp.solve(method="euler", solver=solver, solver_options=solver_options, raises=False, check="off")
    if not found.success:
        raise _not_braked(task, sign, found.status)
    moving = of_solution(found, chain)
    pieces = np.zeros((len(moving.pieces), task.continuity + 2, len(task.names)))
    pieces[:, 0] = task.start[0]
    pieces[:, :, task.moving] = moving.pieces
    pieces[0, : len(task.start)] = task.start
    motion = Trajectory(moving.t, pieces, joints=task.names, units=("",) * len(task.names))
    left = None if task.duration is None else task.duration - motion.duration
    if left is not None and left <= 0:
        raise LimitError(f"duration {task.duration:.6g} s is too short: braking alone takes {motion.duration:.6g} s")
    state = np.array([x[-1] for x in motion.derivatives[: task.continuity + 1]])
    motion.info["iterations"] = found.iterations
    return motion, replace(task, start=state, duration=left)


def _not_braked(task, sign, status):
    """SolveError of a solver that stopped, or did not begin."""
    names = ", ".join(repr(task.names[i]) for i in np.flatnonzero(sign))
    text = f"v_start of joints {names} is over their limits, and no motion was found that brakes within the others"
    advice = "" if status == TIME_LIMIT else "; start slower, or widen a limit"
    return SolveError(f"{text}: the solver stopped with {status!r}{advice}", status)


def with_braking(first, motion, task):
    """The Trajectory of braking and what goes on from there. task: that of both."""
    t = np.concatenate([first.t, first.duration + motion.t[1:]])
    info = dict(motion.info)
    names = [task.names[i] for i in np.flatnonzero(too_fast(task))]
    info["braking"] = {"until": first.duration, "joints": names}
    info["request"] = {"start": task.start.tolist(), "goal": task.goal.tolist()}
    info["iterations"] = info.get("iterations", 0) + first.info["iterations"]
    if info.get("objective") == "time":
        info["objective_value"] = float(t[-1])
    return Trajectory(
        t, np.concatenate([first.pieces, motion.pieces]), joints=motion.joints, units=motion.units, robot=motion.robot,
        limits=motion.limits, info=info, friction=motion.friction,
    )  # fmt: skip


def _refuse(task, sign):
    """LimitError for joints that nothing slows down, or that cannot stop in front of the end of their range."""
    limits, (q, v) = task.limits, task.start[:2]
    for i in np.flatnonzero(sign):
        name, slowing = task.names[i], _slowing(task, i, sign[i])
        if not task.moving[i]:
            raise LimitError(f"v_start: joint {name!r} has {v[i]:.6g}, but its limits allow no motion")
        if slowing == 0:
            raise LimitError(f"v_start: joint {name!r} has {v[i]:.6g}, over its limit, and its limits let it not brake")
        if not (np.isfinite(slowing) or limits.bounded("d2v")[i] or limits.bounded("tau")[i]):
            raise LimitError(
                f"v_start: joint {name!r} has {v[i]:.6g}, over its limit, and no limit says how hard it may brake; "
                "give one of dv, d2v or tau"
            )
        stop = q[i] + v[i] * abs(v[i]) / 2 / slowing
        if not limits.q[0][i] <= stop <= limits.q[1][i]:
            raise LimitError(
                f"v_start: joint {name!r} has {v[i]:.6g}, over its limit, and cannot stop before {stop:.6g}, outside "
                f"its limits {limits.q[0][i]:.6g} to {limits.q[1][i]:.6g}"
            )


def _slowing(task, i, sign):
    """Size of the largest acceleration of joint i against its velocity."""
    lower, upper = task.limits.bounds("dv")
    return -lower[i] if sign > 0 else upper[i]


def _excess(task, sign, v):
    """What velocities (n,) are over the limits, of the joints that are too fast; 0 or less within."""
    lower, upper = (np.where(np.isfinite(x), x, 0.0) for x in task.limits.bounds("v"))
    return [sign[i] * v[i] - float(upper[i] if sign[i] > 0 else -lower[i]) * _INSIDE for i in np.flatnonzero(sign)]


def _guess(task, sign):
    """A time [s] in which joints can brake, their acceleration growing in proportion to it."""
    limits, (q, v), zero = task.limits, task.start[:2], np.zeros(len(task.names))
    still, times = np.array(task.dynamics(q, zero, zero, zero)[0]).ravel(), []
    for i, over in zip(np.flatnonzero(sign), _excess(task, sign, v), strict=True):
        one = np.eye(len(zero))[i]
        inertia = np.array(task.dynamics(q, zero, one, zero)[0]).ravel()[i] - still[i]
        a = min(_slowing(task, i, sign[i]), limits.larger("tau")[i] / max(abs(inertia), 1e-12))
        times.append(max(2 * over / a, np.sqrt(2 * over / limits.smaller("d2v")[i])))
    return max(times)


def _problem(task, sign, T):
    """(Problem, its chain)."""
    inner = replace(task, limits=task.limits.scaled(**dict.fromkeys(BOUNDED, _INSIDE)))
    c, m, fast = task.continuity, task.moving, sign[task.moving] != 0
    ocp = Problem(_NODES, (_SHORTEST * T, _LONGEST * T), nominal=T)
    (lower, upper), *rates = motion_bounds(inner)
    rates[0] = tuple(np.where(fast, side, x) for side, x in zip((-np.inf, np.inf), rates[0], strict=True))
    sizes = [np.where(np.isfinite(pair).any(axis=0), 1.0, np.inf) for pair in rates]
    first = np.array(_excess(task, sign, task.start[1]))
    q, v, change = task.start[0][m], task.start[1][m], np.zeros(len(sign))
    change[sign != 0] = -first * sign[sign != 0]
    change = change[m]
    guess = [
        lambda s: q + T * (v * s + change * s**3 / 3),
        lambda s: v + change * s**2,
        lambda s: change * 2 * s / T,
        change * 2 / T**2,
    ]
    chain = ocp.chain("q", int(m.sum()), c + 1, lower=lower, upper=upper, bounds=sizes, basis="bernstein",
                      scale=np.where(fast, np.abs(change), np.abs(change).max()) * T, guess=guess)  # fmt: skip
    for name, pair in zip(ocp.description.bernstein[0].names[1:], rates, strict=False):
        if name in ocp.numbers.bounds:
            ocp.numbers.bounds[name] = pair
    place = ca.sparsify(ca.DM(np.eye(len(m))[:, m]))
    motion = [ca.mtimes(place, x) for x in chain]
    motion[0] = motion[0] + ca.DM(np.where(m, 0.0, task.start[0]))
    torques = inner.limits.bounded("tau").any() or inner.limits.bounded("dtau").any()
    kind = KindOfMotion(2, not torques, "uniform", 0.0, both_sides=True, derivatives="analytic")
    if torques:
        limit_torque(ocp, inner, kind, motion[:4], [ca.DM(inner.limits.unit(k)) for k in ("tau", "dtau")])
    ocp.start({s: x[m] for s, x in zip(chain, task.start, strict=False)})
    over = ca.vertcat(*_excess(task, sign, motion[1]))
    gaining = ca.vertcat(*(sign[i] * motion[2][i] for i in np.flatnonzero(sign)))
    ocp.limit(-np.inf, ca.vertcat(over, gaining), 0, last=(1.0,), name="braked")
    for x in chain[3 : c + 1]:
        ocp.limit(0, x, 0, last=(1.0,))
    calm = motion[2] * ca.DM(np.where(sign == 0, T / np.abs(v).max(), 0.0))
    ocp.minimize(terminal=ocp.duration / T)
    ocp.minimize(mean=_EXCESS * ca.sumsqr(ca.fmax(over / first, 0)) + _CALM * ca.sumsqr(calm))
    return ocp, chain
