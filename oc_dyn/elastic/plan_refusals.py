"""What plan_elastic refuses before it solves anything: ends that no motion can meet, a time that nothing bounds."""

import numpy as np

from ..errors import LimitError, ShapeError
from ..planning.feasibility import rest_to_rest, shortest_time
from ..planning.quantities import RATES
from .plan_outputs import OUTPUTS
from .reachable import refusal


def refuse(task):
    """Raise LimitError, naming limit and joint, for what no motion can do."""
    names = task.elastic.links.coordinate_names
    if task.limits.joints != names:
        raise ShapeError(f"limits are of the joints {task.limits.joints}, expected {names}")
    at_rest = task.ends if task.kind != "periodic" else []
    held = [_held(task, where, q) for where, q in zip(("q_start", "q_goal"), at_rest, strict=False)]
    if task.objective == "time":
        _refuse_unbounded(task)
    if task.kind == "rest":
        _refuse_short(task, held)


def _held(task, where, q):
    """Outputs of the flat map for holding still at q; LimitError where that cannot be."""
    elastic, limits, given = task.elastic, task.limits, task.given
    for i, name in enumerate(elastic.links.coordinate_names):
        if not limits.q[0][i] - 1e-9 <= q[i] <= limits.q[1][i] + 1e-9:
            bounds = f"{limits.q[0][i]:.6g} to {limits.q[1][i]:.6g}"
            raise LimitError(f"{where}: joint {name!r} is {q[i]:.6g}, outside its limits {bounds}")
    held = {k: x[0] for k, x in task.outputs([q[None]]).items()}
    still = {"q": q[:, None], "v": np.zeros((len(q), 1)), "dv": np.zeros((len(q), 1))}
    still |= {} if task.sigma is None else {"sigma": task.sigma[:, None]}
    error = refusal(elastic.undamped(), still, held["theta"][:, None])
    if error:
        raise LimitError(f"{where}: {error}")
    of_motors = [(what, elastic.motor_names) for what in ("motor_torque", "current", "voltage")]
    for what, of in (*of_motors, ("deflection", elastic.theta_names)):
        value = held[OUTPUTS[what]] if what in given else ()
        for i, name in enumerate(of) if what in given else ():
            if abs(value[i]) > given[what][i] * (1 + 1e-9):
                raise LimitError(
                    f"{where}: motor {name!r} needs {what} = {value[i]:.6g} for holding still, "
                    f"over its limit {given[what][i]:.6g}"
                )
    return held


def _refuse_unbounded(task):
    """Ends that are the same, and motions that nothing slows down."""
    limits, distance = task.limits, np.abs(task.ends[1] - task.ends[0])
    if distance.max() < 1e-12:
        raise LimitError("q_start and q_goal are the same: there is nothing to plan in the shortest time")
    bounded = np.any([limits.bounded(k) for k in RATES], axis=0) | (limits.v_of_q is not None)
    if not bounded[distance > 1e-12].any() and not any(np.isfinite(x).any() for x in task.given.values()):
        raise LimitError("nothing bounds the time: give motor_torque, motor_speed or another limit")


def _refuse_short(task, held):
    """A duration shorter than what limits of joints and motors ask for."""
    elastic, limits = task.elastic, task.limits
    least = rest_to_rest(limits, task.ends[1] - task.ends[0])
    needs = [("velocity, acceleration and jerk of joint", elastic.links.coordinate_names, least)]
    if "motor_speed" in task.given:
        far = np.abs(held[1]["theta"] - held[0]["theta"])
        never = np.full(len(far), np.inf)
        least = shortest_time(far, task.given["motor_speed"], never, never)
        needs.append(("motor_speed of", elastic.theta_names, least))
    for what, of, least in needs:
        for i, name in enumerate(of):
            if not np.isfinite(least[i]) or (task.duration and least[i] > task.duration * (1 + 1e-9)):
                allowed = "" if task.duration is None else f", and the duration is {task.duration:g} s"
                raise LimitError(f"the limits of {what} {name!r} ask for at least {least[i]:.6g} s{allowed}")
