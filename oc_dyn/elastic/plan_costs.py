"""What plans of a given duration make small: losses, mechanical work, electrical energy; in the Problem and after it.

Work and electrical energy count where they are drawn, motor by motor: what a motor gives back is lost. With gears that
mix motors the power of each is that at its rotor, torque gear^-T tau_m times speed gear v. In the Problem that is a
slack above the power at Gauss-Lobatto's points of each interval.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..optimal_control.polynomials import lobatto
from ..types import Array
from .electrical import at_rotors
from .model import ElasticRobot
from .plan_outputs import motor_speeds

OBJECTIVES = ("time", "energy", "work", "electrical_energy", "speed")
DRAWN = ("work", "electrical_energy")
_POINTS = 3  # interior ones of an interval
_GAUSS, _PARTS = 4, 8  # points in parts of a piece, afterwards


def drawn_power(task: Any, tau_m: Any, speed: Any) -> Any:
    """(tau_m, K) power [W] of each motor that counts, of either sign."""
    if task.objective == "work":
        torque, turning = at_rotors(task.elastic, tau_m, speed)
        return torque * turning
    return task.electrical.power(task.elastic, tau_m, speed)


def say_cost(task: Any, problem: Any, flat_at: Any) -> None:
    """Add the cost of a task with a given duration to its Problem; flat_at: function share -> FlatMotion."""
    motors = len(task.elastic.motor_names)
    unit = problem.parameter("unit of loss", motors)
    flat = flat_at(0.0)
    if task.objective == "energy" and not task.elastic.damped:
        problem.minimize(integral=ca.sumsqr(flat.tau_m / unit), points=_POINTS)
        return
    shares, weights = lobatto(_POINTS)
    own = problem.control("drawn", motors * shares.size, scale=1.0)
    parts = ca.vertsplit(own, motors)
    for share, x in zip(shares, parts, strict=True):
        flat = flat_at(float(share))
        if task.objective == "energy":
            problem.limit(0, flat.tau_m / unit - x, 0, name=f"loss at {share:.3f}", at=[float(share)])
        else:
            power = drawn_power(task, flat.tau_m, flat.motor_speed) / unit
            problem.limit(0, x - power, np.inf, name=f"power at {share:.3f}", at=[float(share)])
            problem.limit(0, x, np.inf, name=f"drawn at {share:.3f}", at=[float(share)])
    terms = [ca.sumsqr(x) if task.objective == "energy" else ca.dot(x, unit) for x in parts]
    total = sum(float(w) * x for w, x in zip(weights, terms, strict=True))
    scale = 1.0 if task.objective == "energy" else problem.parameter("unit of energy")
    problem.minimize(integral=total / scale)


def loss_unit(elastic: ElasticRobot, given: dict[str, Array]) -> Array:
    """(tau_m,) torques that the loss is relative to: their limits, or 1."""
    unit = given.get("motor_torque", np.ones(len(elastic.motor_names)))
    return np.where(np.isfinite(unit), unit, 1.0)


def value_of(task: Any, plan: Any) -> float:
    """The objective of a plan, from its motion: time [s], loss, energy [J], or the speed at its end."""
    if task.objective == "time":
        return float(plan.duration)
    if task.objective == "speed":
        x = plan.motion.sample(plan.motion.t[-1:])
        return float(task.speed(x.q.T, x.v.T))
    points, weights = np.polynomial.legendre.leggauss(_GAUSS)
    h = np.diff(plan.motion.t)[:, None, None] / _PARTS
    times = plan.motion.t[:-1, None, None] + (np.arange(_PARTS)[:, None] + (1 + points) / 2) * h
    found = plan.outputs(times.ravel())
    if task.objective == "energy":
        rate = np.sum((found["tau_m"] / loss_unit(task.elastic, task.given)) ** 2, axis=1)
    else:
        rate = np.maximum(powers(task, found), 0).sum(axis=1)
    return float(np.broadcast_to(weights / 2 * h, times.shape).ravel() @ rate)


def powers(task: Any, outputs: dict[str, Array]) -> Array:
    """(K, tau_m) power [W] of each motor that counts."""
    tau_m, speed = ca.DM(outputs["tau_m"].T), ca.DM(motor_speeds(task.elastic, outputs))
    return np.array(ca.DM(drawn_power(task, tau_m, speed))).T
