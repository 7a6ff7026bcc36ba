"""Damping of robots of variable stiffness: poles of each mode of vibration, at the position and stiffness there are."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ... import validation
from ...function import function
from ...types import Numbers
from ..control import pole_gains
from ..controller import Controller
from ..controller import make_controller as _controller
from ..model import ElasticRobot
from ..motor_side import at_motors, deflections, sigma_forces
from .conditions import check_robot
from .flat_reference import flat_reference
from .modes import modes_of


def vsa_damping(
    elastic: ElasticRobot,
    damping_ratio: float = 0.7,
    *,
    motor_ratio: float = 3.0,
    motor_damping_ratio: float = 1.0,
    stiffness_poles: Numbers = 20.0,
) -> Controller:
    """State feedback that damps each mode of vibration, its gains scheduled by position and stiffness.

    With M(q) = Q Q' and the springs' stiffness K = Q diag(w^2) Q' every mode is a link and a motor on one spring. Its
    poles are set to those of (s^2 + 2 damping_ratio w s + w^2)(s^2 + 2 motor_damping_ratio c w s + c^2 w^2): the
    links' frequencies stay those of their springs, which the motors then stand still for, and are damped. Motors'
    positions and speeds and torques and their rates are fed back about the flat map, which is exact along a reference.
    It reads torque sensors.

    damping_ratio, motor_damping_ratio: above 0. motor_ratio c: above 0, of the frequencies of motor and links.
    stiffness_poles [1/s]: of the drives of sigma where there are such: a positive number, or two poles.
    The poles are exact where robot and reference rest; q and sigma should change slowly against them. With another
    stiffness than the model's, or without torque sensors that are worth it, use feedforward_pd.
    Raises ModelError for pairs of springs, rigid joints, damped springs, the complete model; ShapeError.
    Source: Petit and Albu-Schaeffer, State feedback damping control for a multi DOF variable stiffness robot arm, ICRA
    2011; here by rotations of Jacobi inside the law, and with poles for each mode in the ratio of its frequency.
    """
    name = "vsa_damping"
    check_robot(name, elastic, rigid=False, damped=False, variable=True)
    given = {"damping_ratio": damping_ratio, "motor_damping_ratio": motor_damping_ratio, "motor_ratio": motor_ratio}
    ratios = [validation.number(f"{name}: {n}", x, above=0) for n, x in given.items()]
    gains = {"shape": ca.DM(_shape(*ratios))}
    if elastic.stiffness_driven:
        placed = pole_gains(stiffness_poles, 2, len(elastic.sigma_names), f"{name}: stiffness_poles")
        gains["sigma_gains"] = ca.DM(placed)

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        sigma = state["sigma"] if elastic.stiffness_driven else ref.get("sigma", ca.DM(0, 1))
        flat = flat_reference(elastic, ref)
        stiffness = _slopes(elastic, state, sigma)
        e, e_dot = state["theta"] - flat.theta, state["dtheta"] - flat.dtheta
        e_tau, e_rate = state["tau"] - flat.tau, state["dtau"] - flat.dtau
        Q, squares = modes_of(function(elastic.links, "mass_matrix")(state["q"]), ca.diag(stiffness))
        w = ca.sqrt(squares)
        shape = gains["shape"]

        def fed(gain: Any, x: Any) -> Any:
            """Q'^-1 diag(gain) Q' x."""
            return ca.solve(Q.T, gain * (Q.T @ x))

        command = flat.d2theta - fed(shape[0] * squares, e) - fed(shape[1] * w, e_dot)
        command = command - fed(shape[2] * squares, e_tau / stiffness) - fed(shape[3] * w, e_rate / stiffness)
        motors = ca.DM(elastic.motor_inertia) @ command + state["tau"]
        out = {"tau_m": at_motors(elastic, ca.DM(elastic.nv, 1), motors) + flat.other}
        if elastic.stiffness_driven:
            out["tau_sigma"] = _drives(elastic, ref, state, gains["sigma_gains"])
        return out

    return _controller(name, elastic, law, gains=gains, sensors=("tau", "dtau"))


def _shape(z: float, zm: float, c: float) -> list[float]:
    """Gains of a mode at the frequency 1, of motor position, speed, deflection and its rate, with the characteristic
    equation s^4 + (kd + ks) s^3 + (kp + kt + 1) s^2 + kd s + kp, where the motor's acceleration is fed back."""
    a3, a2 = 2 * z + 2 * zm * c, 1 + c * c + 4 * z * zm * c
    a1, a0 = 2 * z * c * c + 2 * zm * c, c * c
    return [a0, a1, a2 - a0 - 1, a3 - a1]


def _slopes(elastic: ElasticRobot, state: dict[str, Any], sigma: Any) -> Any:
    """(theta,) stiffness of the springs at their deflections."""
    z = deflections(elastic, [state["q"]], [state["theta"]])
    out = []
    for e, j in enumerate(elastic.joints):
        x, s = ca.SX.sym("z"), ca.SX.sym("s", int(j.spring.adjusted))
        slope = ca.Function("slope", [x, s], [ca.jacobian(j.spring.torques([x], s)[0], x)])
        out.append(slope(z[e][0][0], sigma[j.sigma] if j.spring.adjusted else ca.DM(0, 1)))
    return ca.vertcat(*out)


def _drives(elastic: ElasticRobot, ref: dict[str, Any], state: dict[str, Any], gains: Any) -> Any:
    """(sigma,) forces of the drives of stiffness."""
    z = deflections(elastic, [state["q"]], [state["theta"]])
    wanted = ref["d2sigma"] + gains[:, 0] * (ref["sigma"] - state["sigma"])
    wanted = wanted + gains[:, 1] * (ref["dsigma"] - state["dsigma"])
    return ca.DM(elastic.stiffness_inertia) * wanted + sigma_forces(elastic, 0, z, [state["sigma"]])[0]
