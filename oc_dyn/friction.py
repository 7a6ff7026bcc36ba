"""Joint friction: viscous damping and smoothed Coulomb friction, off unless asked for."""

import casadi as ca

from .lie.along import time_derivatives
from .model.parameters import of_joints

SMOOTHING = 0.02  # [rad/s or m/s] velocity at which Coulomb friction has reached tanh(1) = 76 % of its value


def friction_torques(robot, V, viscous=None):
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
    rates = time_derivatives(ca.vertcat(ca.SX(0, 1), *torque), order, list(zip(v[:-1], v[1:], strict=True)), cse=True)
    own = of_joints(robot, "viscous") if viscous is None else viscous
    return ca.Function("friction", [damping, *v], rates).call([own, *V])
