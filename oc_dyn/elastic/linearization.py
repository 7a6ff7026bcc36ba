"""Feedback linearisation of elastic robots."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..errors import OrderError
from ..types import Numbers
from ..validation import one_of
from .controller import Controller
from .controller import flat_torques as _flat
from .controller import make_controller as _controller
from .drives import accelerations, at_drives, drive_torques, speeds
from .linear_errors import pole_gains
from .model import ElasticRobot
from .motor_side import at_motors, deflections, joint_torques, motor_friction, sigma_forces, spring_torques
from .ports import admit_flat


def feedback_linearization(
    elastic: ElasticRobot,
    poles: Numbers,
    *,
    stiffness_poles: Numbers | None = None,
    inverse_dynamics: str | None = None,
    forward_dynamics: str | None = None,
    friction_speed: str = "measured",
) -> Controller:
    """Feedback linearisation through the links' positions: each joint's error e obeys e'''' + k3 e''' + .. + k0 e = 0.

    poles [1/s]: of this equation: a positive number g for four at -g, four poles (complex in pairs) for all joints, or
        four per joint (v, 4). stiffness_poles: the same, two, for sigma where the stiffness is varied; default those of
    g. inverse_dynamics, forward_dynamics: methods.
    friction_speed: speed at which friction is compensated: "measured", exact for a law without delay; "reference", the
        motors' speeds of the flat map along the reference, for sampled laws: compensation of Coulomb friction at the
        measured speed makes motors chatter around standstill, as its sign comes too late; "none": no compensation.
    The derivatives of q up to the third come from the measured state by forward dynamics of order 1, the torques from
    inverse dynamics of order 2. With rigid joints the law is dynamic: their torques come through two integrators, the
    law's memory (De Luca 1998). Raises OrderError for the complete model, which no static feedback linearises.
    """
    admit_flat("feedback_linearization")(elastic)
    if elastic.coupling:
        raise OrderError(
            "feedback_linearization: no static feedback linearises the complete model; use feedforward_pd, or the law "
            "of the reduced model on it"
        )
    gains = {"gains": pole_gains(poles, 4, elastic.nv)}
    n_sigma = len(elastic.sigma_names)
    default = np.min(-np.real(np.asarray(poles))) if np.ndim(poles) else poles
    if n_sigma or stiffness_poles is not None:
        gains["sigma_gains"] = pole_gains(default if stiffness_poles is None else stiffness_poles, 2, n_sigma)
    inverse = drive_torques(elastic, 2, inverse_dynamics)
    forward = accelerations(elastic, 1, forward_dynamics)
    one_of("friction_speed", friction_speed, ("measured", "reference", "none"))

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        return _linearizing(elastic, inverse, forward, gains, friction_speed, ref, state)

    rigid = elastic.rigid

    def first(ref: dict[str, Any]) -> Any:
        tau = drive_torques(elastic, 1).call([ref["q"], ref["v"], ref["dv"], ref["d2v"]])
        return ca.vertcat(*(x[k] for x in tau for k in rigid))

    integrators = tuple((k, len(rigid) + k, m) for k, m in enumerate(elastic.rigid_motors))
    start = first if rigid else None
    return _controller("feedback_linearization", elastic, law, 2 * len(rigid), start, gains, integrators)


def _linearizing(
    elastic: ElasticRobot, inverse: ca.Function, forward: ca.Function, gains: dict[str, Any], friction_speed: str,
    ref: dict[str, Any], state: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """{output: expression} of feedback_linearization."""
    q, v, theta, dtheta = (state[name] for name in ("q", "v", "theta", "dtheta"))
    z, rigid = deflections(elastic, [q, v], [theta, dtheta]), len(elastic.rigid)
    sigma = _sigma_jet(elastic, ref, state, z, gains.get("sigma_gains"))
    springs = spring_torques(elastic, 1, z, sigma[:2])
    memory: list[Any] = [state["memory"][:rigid], state["memory"][rigid:]] if rigid else [None, None]
    a, j = forward.call([q, v, *(joint_torques(elastic, x, y) for x, y in zip(springs, memory, strict=True))])
    e = [ref["q"] - q, ref["v"] - v, ref["dv"] - a, ref["d2v"] - j]
    d3v = ref["d3v"] + sum(gains["gains"][:, k] * x for k, x in enumerate(e))
    tau = inverse.call([q, v, a, j, d3v])
    second = []  # derivatives of theta
    drives = at_drives(elastic, [q, v, a])
    for i, joint in enumerate(elastic.joints):
        own = [x[joint.sigma] for x in sigma] if joint.sigma is not None else []
        second += [x + drives[2][joint.v] for x in joint.spring.deflection(2, z[i], [x[joint.v] for x in tau], own)]
    motors = ca.DM(elastic.motor_inertia) @ ca.vertcat(*second) + springs[0]
    out = {"tau_m": at_motors(elastic, joint_torques(elastic, motors, memory[0]), motors)}
    if friction_speed != "none":
        moving = (drives[1], dtheta)
        if friction_speed == "reference":
            moving = (speeds(elastic, ref["q"], ref["v"]), _flat(elastic, ref)["dtheta"])
        out["tau_m"] = out["tau_m"] + motor_friction(elastic, [at_motors(elastic, *moving)])[0]
    if elastic.stiffness_driven:
        out["tau_sigma"] = ca.DM(elastic.stiffness_inertia) * sigma[2] + sigma_forces(elastic, 0, z, sigma[:1])[0]
    if rigid:
        out["memory_rate"] = ca.vertcat(memory[1], *(tau[2][k] for k in elastic.rigid))
    return out


def _sigma_jet(elastic: ElasticRobot, ref: dict[str, Any], state: dict[str, Any], z: Any, gains: Any) -> list[Any]:
    """[sigma, sigma', wanted sigma''] of each joint of variable stiffness: prescribed, measured, or that of a pair."""
    if not elastic.sigma_names:
        return []
    wanted = [ref[name] for name in ("sigma", "dsigma", "d2sigma")]
    rows = {}
    for i, j in enumerate(elastic.joints):
        if j.sigma is None:
            continue
        k = j.sigma
        if elastic.stiffness_driven:
            now = [state["sigma"][k], state["dsigma"][k]]
        elif j.spring.adjusted:
            now = [wanted[0][k], wanted[1][k]]
        else:
            spring: Any = j.spring
            now = spring.stiffness_jet(z[i])
        error = sum(gains[k, d] * (x[k] - y) for d, (x, y) in enumerate(zip(wanted[:2], now[:2], strict=True)))
        rows[k] = [*now, wanted[2][k] + error]
    return [ca.vertcat(*(rows[k][d] for k in sorted(rows))) for d in range(3)]
