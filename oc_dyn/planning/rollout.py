"""od.rollout, od.simulate, od.motion_report: what a robot does under given efforts."""

from __future__ import annotations

from typing import cast

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..friction import counts, friction_torques
from ..function import function
from ..model.quaternions import check_quaternions, quaternions
from ..model.robot import Robot, check_robot
from ..numbers import as_floats
from ..types import Array, Numbers
from ..validation import flag, number
from .followers import check_closed, check_closing

_STENCIL = np.array([3, -32, 168, -672, 0, 672, -168, 32, -3]) / 840  # central difference of order eight
_NEAR = 5  # steps from a kink within which the stencil would see it


def rollout(rate: ca.Function, x: Numbers, inputs: Numbers, h: float) -> Array:
    """(K + 1, nx) states of x' = rate(x, w), from x (nx,), by K Runge-Kutta steps of order four of h > 0 [s].

    rate: casadi.Function (x, w) -> x'. inputs (2 K + 1, nw): w at the start, the middle, the end of every step.
    Raises ShapeError for what does not fit.
    """
    x, inputs = as_floats("rollout: x", x).ravel(), as_floats("rollout: inputs", inputs)
    h = number("rollout: h", h, above=0)
    if not isinstance(rate, ca.Function) or rate.n_in() != 2 or rate.numel_in(0) != rate.numel_out(0):
        raise ShapeError(f"rollout: rate is {rate!r}, expected a casadi.Function (x, w) -> x'")
    if inputs.ndim != 2 or len(inputs) < 3 or len(inputs) % 2 == 0 or inputs.shape[1] != rate.numel_in(1):
        expected = f"(2 K + 1, {rate.numel_in(1)}), three rows or more: one every half step"
        raise ShapeError(f"rollout: inputs have shape {inputs.shape}, expected {expected}")
    if x.size != rate.numel_in(0):
        raise ShapeError(f"rollout: x has {x.size} values, expected {rate.numel_in(0)}")
    y, first, middle, last = ca.MX.sym("x", x.size), *(ca.MX.sym("w", inputs.shape[1]) for _ in range(3))
    k1 = rate(y, first)
    k2 = rate(y + h / 2 * k1, middle)
    k3 = rate(y + h / 2 * k2, middle)
    k4 = rate(y + h * k3, last)
    step = ca.Function("step", [y, first, middle, last], [y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    w = inputs.T
    states = step.mapaccum(w.shape[1] // 2)(x, w[:, :-2:2], w[:, 1:-1:2], w[:, 2::2])
    return np.vstack([x, states.full().T])


def simulate(
    robot: Robot, q: Numbers, v: Numbers, tau: Numbers, h: float, friction: bool = True,
) -> tuple[Array, Array]:  # fmt: skip
    """(q (K + 1, nq), v (K + 1, nv)): forward dynamics from q (nq,), v (nv,) under tau (2 K + 1, nv), without feedback.

    tau [Nm, N]: efforts at all joints, those of a free one included, one row every half step; h: the step [s], above 0.
    friction: whether the damping and the smoothed Coulomb friction of the robot's joints act.
    Quaternions start at unit length and are integrated as they are: their norm stays 1 as far as the steps are fine,
    and where it does not, rotations are those of the normalised ones. Raises ModelError, naming loops and time, where
    those of a robot open, or change their mode of assembly. See rollout.
    """
    check_robot("simulate", robot)
    n, h = robot.nq, number("simulate: h", h, above=0)
    x, w = ca.SX.sym("x", n + robot.nv), ca.SX.sym("w", robot.nv)
    friction = counts(robot, flag("simulate: friction", friction))
    dv = function(robot, "forward_dynamics", friction=friction)(x[:n], x[n:], w)
    dq = cast(ca.SX, robot.configuration_rate(x[:n], x[n:]))
    rate = ca.Function("rate", [x, w], [ca.vertcat(dq, dv)])
    start = [as_floats(f"simulate: {name}", value).ravel() for name, value in (("q", q), ("v", v))]
    if [s.size for s in start] != [n, robot.nv]:
        raise ShapeError(f"simulate: q and v have {start[0].size} and {start[1].size} values, expected {n}, {robot.nv}")
    check_quaternions("simulate", quaternions(robot), start[0])
    check_closed("simulate: q", robot, start[0])
    states = rollout(rate, np.concatenate(start), tau, h)
    known = int(np.isfinite(states).all(axis=1).sum())  # what is no number stays none
    check_closing("simulate", robot, np.linspace(0.0, h * (known - 1), known), states[:known, :n])
    return states[:, :n], states[:, n:]


def motion_report(
    robot: Robot, t: Numbers, q: Numbers, v: Numbers, tau: Numbers, kinks: Numbers = (), friction: bool = True,
) -> dict[str, float]:  # fmt: skip
    """{what: number} of how far a motion is from what the robot does under its efforts, zero for not at all.

    Forward dynamics under tau, without feedback, is that of simulate in steps of two of t. The rate of the energy, by
    a difference of order eight, is relative to the largest power; the work, by Simpson's rule, to what the energy
    changes at most.

    t (K,): equal steps, K odd, [s]; q (K, nq), v, tau (K, nv): tau are all efforts, those of a free joint included.
    friction: as of simulate; what it takes is not part of the energy.
    kinks: times at which tau has one; the rate of the energy is not looked at within five steps of them.
    Configurations differ by the largest entry of robot.difference [rad, m]; quaternions must be of unit length.
    Raises ShapeError for what does not fit.
    """
    check_robot("motion_report", robot)
    t, kinks = as_floats("motion_report: t", t).ravel(), as_floats("motion_report: kinks", kinks).ravel()
    if t.size < 11 or t.size % 2 == 0 or not np.ptp(np.diff(t)) <= 1e-6 * (t[-1] - t[0]) / t.size:
        raise ShapeError(f"motion_report: t has {t.size} times, expected an odd number of 11 or more at equal steps")
    if not t[-1] > t[0]:
        raise ShapeError(f"motion_report: t goes from {t[0]:g} to {t[-1]:g}, expected times that increase")
    q, v, tau = (as_floats(f"motion_report: {name}", x) for name, x in (("q", q), ("v", v), ("tau", tau)))
    for name, x, n in (("q", q, robot.nq), ("v", v, robot.nv), ("tau", tau, robot.nv)):
        if x.shape != (t.size, n):
            raise ShapeError(f"motion_report: {name} has shape {x.shape}, expected ({t.size}, {n})")
    check_quaternions("motion_report: q", quaternions(robot), q.T)
    check_closing("motion_report", robot, t, q)
    h, taken = (t[-1] - t[0]) / (t.size - 1), np.zeros(v.shape)
    if counts(robot, friction):
        speed = ca.SX.sym("v", robot.nv)
        taken = ca.Function("friction", [speed], friction_torques(robot, [speed]))(v.T).full().T
    power = np.sum((tau - taken) * v, axis=1)
    again = simulate(robot, q[0], v[0], tau, 2 * h, friction)
    E = function(robot, "kinetic_energy", normalize=True)(q.T, v.T).full().ravel()
    E = E + function(robot, "potential_energy", normalize=True)(q.T).full().ravel()
    off = np.abs(np.correlate(E, _STENCIL, "valid") / h - power[4:-4])
    for kink in kinks:
        off[np.abs(t[4:-4] - kink) <= _NEAR * h * (1 + 1e-9)] = 0
    work = h / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    missed = robot.difference_function().normalizing()(again[0].T, q[::2].T).full()  # q and -q are one rotation
    tiny = np.finfo(float).tiny
    return {
        "configuration given back by forward dynamics": float(np.abs(missed).max()),
        "velocities given back by forward dynamics": float(np.abs(again[1] - v[::2]).max()),
        "rate of the energy less the power, relative": float(off.max() / max(np.abs(power).max(), tiny)),
        "energy gained less work, relative": float(abs(work - (E[-1] - E[0])) / max(np.abs(E - E[0]).max(), tiny)),
    }
