"""Joint friction: viscous damping and Coulomb friction, smoothed in functions and of exact sign in checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from .lie.time_derivatives import time_derivatives
from .model.parameters import of_joints
from .model.robot import Robot
from .types import Array

SMOOTHING = 0.02  # [rad/s or m/s] velocity at which Coulomb friction has reached tanh(1) = 76 % of its value
_STILL = 1e-10  # [rad/s or m/s] velocity that is none


def counts(robot: Robot, friction: bool = True) -> bool:
    """Whether friction is asked for and the robot has any: without, Functions are those of a robot without."""
    return bool(friction) and any(b.joint.damping or b.joint.friction for b in robot.bodies)


def coulomb(robot: Robot) -> list[tuple[int, float, float]]:
    """[(number of the velocity, factor to the joint's, Coulomb friction at the coordinate)] of joints that have any."""
    out = []
    for body in robot.bodies:
        j = body.joint
        scale = abs(j.mimic.multiplier) if j.mimic else 1.0
        if scale * j.friction:
            out += [(i, scale, scale * j.friction) for i in range(j.v_index, j.v_index + j.nv)]
    return out


def coulomb_bounds(robot: Robot, v: Array, in_order: bool) -> tuple[Array, Array]:
    """(low, high), each (K, nv): what to add to torques with smoothed Coulomb friction at velocities v (K, nv) for the
    exact one, which jumps where a joint turns round: there it is of either sign.

    in_order: whether rows follow each other in time, so that turns between two of them are seen. A joint that stands
    still before and after has none.
    """
    low, high = np.zeros(v.shape), np.zeros(v.shape)
    for i, scale, friction in coulomb(robot):
        x = v[:, i]
        sign = np.where(np.abs(x) <= max(_STILL, 1e-12 * np.abs(x).max(initial=0.0)), 0.0, np.sign(x))
        first, last = sign.copy(), sign.copy()
        if in_order and len(x) > 1:
            before, after = np.append(sign[:1], sign[:-1]), np.append(sign[1:], sign[-1:])
            first, last = (f.reduce([sign, before, after]) for f in (np.minimum, np.maximum))
            away = sign == 0  # at rest: the signs of what is before and after, not the zero between
            first = np.where(away & (first == 0), last, first)
            last = np.where(away & (last == 0), first, last)
            moving = ~away  # next to a rest, its own sign alone
            first = np.where(moving & (first == 0), sign, first)
            last = np.where(moving & (last == 0), sign, last)
        smooth = np.tanh(scale * x / SMOOTHING)
        low[:, i] += friction * (first - smooth)
        high[:, i] += friction * (last - smooth)
    return low, high


def friction_torques(robot: Robot, V: Sequence[Any], viscous: Any = None) -> list[Any]:
    """Derivatives 0.. of the torque that friction takes, one for each of V = [v, dv, ...], (nv,) each.

    Equation:  damping v + friction tanh(v / SMOOTHING), joint by joint; a torque against the motion, so inverse
    dynamics adds it and forward dynamics takes it off. Mimic joints act through their rule. viscous (nv,): damping that
    counts instead of the robot's.
    """
    order = len(V) - 1
    v = [ca.SX.sym("v", robot.nv) for _ in V]
    damping = ca.SX.sym("damping", robot.nv)
    torque = ca.vertsplit(damping * v[0]) if robot.nv else []
    for body in robot.bodies:
        j = body.joint
        scale = j.mimic.multiplier if j.mimic else 1.0
        for k in range(j.v_index, j.v_index + j.nv):
            speed = scale * v[0][k]
            torque[k] = torque[k] + scale * j.friction * ca.tanh(speed / SMOOTHING)
    rates = time_derivatives(ca.vertcat(ca.SX(0, 1), *torque), order, list(pairwise(v)), cse=True)
    own = of_joints(robot, "viscous") if viscous is None else viscous
    return ca.Function("friction", [damping, *v], rates).call([own, *V])


def with_friction(
    model: Any, v: Any, T: Sequence[Any], run: Callable[[list[Any]], tuple[list[Any], list[Any]]]
) -> tuple[list[Any], list[Any]]:
    """What run(torques less friction) -> (accelerations, torques) gives where joints have friction, each with its time
    derivatives, [(nv,), ...]: friction of an order depends on the accelerations of lower ones, put in one by one."""
    effort, found = ([ca.SX.sym(name, model.robot.nv) for _ in T] for name in ("effort", "found"))
    accelerations, torques = run(effort)
    taken = friction_torques(model.robot, [v, *found[:-1]], model.viscous)
    definitions = []
    for k, tau in enumerate(T):
        definitions += [(effort[k], tau - taken[k]), (found[k], ca.SX(accelerations[k]))]
    results = [*found, *(tau + x for tau, x in zip(torques, taken, strict=True))]
    _, results = ca.substitute_inplace([x for x, _ in definitions], [y for _, y in definitions], results)
    return results[: len(T)], results[len(T) :]
