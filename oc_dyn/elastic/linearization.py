"""Feedback linearisation of elastic robots through the positions of their links.

How often q is differentiated until all motor torques appear: four times where a spring is elastic alone, three times
where all of them are damped (De Luca, Farina and Lucibello 2005), 2 (n + 1) times for the complete model.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..types import Numbers
from ..validation import flag, one_of
from .complete_linearization import CompleteLaw
from .controller import Controller
from .controller import flat_torques as _flat
from .controller import make_controller as _controller
from .drives import accelerations, at_drives, drive_torques, speeds
from .linear_errors import pole_gains, wanted_derivative
from .model import ElasticRobot
from .motor_side import (
    at_motors,
    deflections,
    joint_torques,
    motor_friction,
    sigma_forces,
    spring_damping,
    spring_torques,
)
from .ports import admit

_NAME = "feedback_linearization"


def feedback_linearization(
    elastic: ElasticRobot,
    poles: Numbers,
    *,
    stiffness_poles: Numbers | None = None,
    inverse_dynamics: str | None = None,
    forward_dynamics: str | None = None,
    friction_speed: str = "measured",
    integral: bool = False,
) -> Controller:
    """Feedback linearisation through the links' positions: each joint's error e obeys e'''' + k3 e''' + .. + k0 e = 0.

    poles [1/s]: of this equation: a positive number g for all at -g, as many as its order (complex in pairs) for all
        joints, or for each joint (v, order). The order is 4; 3 where all joints are elastic and their springs damped;
        linearization_order(elastic) tells it, for the complete model too. stiffness_poles: two, for sigma where the
        stiffness is varied; default those of g. inverse_dynamics, forward_dynamics: methods.
    friction_speed: speed at which friction is compensated: "measured", exact for a law without delay; "reference", the
        motors' speeds of the flat map along the reference, for sampled laws: compensation of Coulomb friction at the
        measured speed makes motors chatter around standstill, as its sign comes too late; "none": no compensation.
    integral: one pole more, and the integral of e fed back from the law's memory: constant torques that the model does
        not know leave no error. It runs on while motors are at their limits.
    The derivatives of q come from the measured state by forward dynamics, the torques from inverse dynamics.
    Rigid joints make the law dynamic: their torques come through two integrators, its memory (De Luca 1998).
    Damped springs, torque phi(z) + D z': the motors' accelerations follow from the torque's first derivative. If all
    are damped the law is static and leaves one state a joint, the deflection, which D z' + phi(z) = tau draws to that
    of its torque at the rate phi' / D: stable, and the faster the smaller D. Where others are not damped, or rigid, the
    rates of the damped joints' torques come through an integrator each, so that all appear in the fourth derivative.
    The complete model is linearised by a dynamic law; see complete_linearization.
    Raises ModelError for damped springs with two motors; ShapeError.
    """
    admit("feedback_linearization")(elastic)
    if "across" in elastic.features:
        problem = "feedback_linearization knows springs of one joint alone, not those across several"
        raise ModelError(elastic.name, [problem])
    order = linearization_order(elastic)
    one_of("friction_speed", friction_speed, ("measured", "reference", "none"))
    n, n_sigma = elastic.nv, len(elastic.sigma_names)
    k = pole_gains(poles, order + flag("feedback_linearization: integral", integral), n, f"{_NAME}: poles")
    gains = {"gains": k[:, 1:], "integral_gains": k[:, :1]} if integral else {"gains": k}
    default = np.min(-np.real(np.asarray(poles))) if np.ndim(poles) else poles
    if n_sigma or stiffness_poles is not None:
        chosen = default if stiffness_poles is None else stiffness_poles
        gains["sigma_gains"] = pole_gains(chosen, 2, n_sigma, f"{_NAME}: stiffness_poles")
    if elastic.coupling:
        made: Any = CompleteLaw(elastic, inverse_dynamics)
    else:
        made = _Law(elastic, order, inverse_dynamics, forward_dynamics)
    undamped = elastic.undamped()

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        memory = state["memory"] if made.memory or integral else ca.DM(0, 1)
        parts = ca.vertsplit(memory, [0, made.memory, made.memory + n * integral])
        gains = {**gains, "integral": parts[1] if integral else None}
        out = made.torques(ref, {**state, "memory": parts[0]}, gains)
        if friction_speed != "none":
            moving = (speeds(elastic, state["q"], state["v"]), state["dtheta"])
            if friction_speed == "reference":
                moving = (speeds(elastic, ref["q"], ref["v"]), _flat(undamped, ref)["dtheta"])
            out["tau_m"] = out["tau_m"] + motor_friction(elastic, [at_motors(elastic, *moving)])[0]
        rates = [out.pop("memory_rate")] if made.memory else []
        rates += [ref["q"] - state["q"]] if integral else []
        return {**out, **({"memory_rate": ca.vertcat(*rates)} if rates else {})}

    def first(ref: dict[str, Any]) -> Any:
        return ca.vertcat(made.first(ref) if made.memory else ca.DM(0, 1), ca.DM.zeros(n * integral))

    memory = made.memory + n * integral
    rigid = len(elastic.rigid)
    integrators = tuple((k, rigid + k, m) for k, m in enumerate(elastic.rigid_motors))
    return _controller("feedback_linearization", elastic, law, memory, first if memory else None, gains, integrators)


def linearization_order(elastic: ElasticRobot) -> int:
    """Order of the error equation of feedback_linearization: so many poles are its own."""
    if elastic.coupling:
        return max(elastic.motor_orders) + 2
    return 3 if len(elastic.damped) == len(elastic.joints) and not elastic.rigid else 4


class _Law:
    """The law of the reduced model. order: of its error equation; inverse, forward: methods for the links."""

    def __init__(self, elastic: ElasticRobot, order: int, inverse: str | None, forward: str | None) -> None:
        pairs = [j.name for j in elastic.joints if j.spring.damping and len(j.theta) > 1]
        if pairs:
            problem = f"the damped springs of {pairs[0]} have two motors; take undamped() for the law"
            raise ModelError(elastic.name, [f"feedback_linearization: {problem}"])
        self.elastic, self.order = elastic, order
        self.inverse = drive_torques(elastic, order - 2, inverse)
        self.forward = accelerations(elastic, order - 3, forward)
        self.delayed = [j.v for j in elastic.joints if j.spring.damping and order == 4]  # torque rates in the memory
        self.memory = 2 * len(elastic.rigid) + len(self.delayed)

    def first(self, ref: dict[str, Any]) -> Any:
        """The memory at the start of a reference."""
        tau = drive_torques(self.elastic, 1).call([ref["q"], ref["v"], ref["dv"], ref["d2v"]])
        rows = [x[k] for x in tau for k in self.elastic.rigid] + [tau[1][k] for k in self.delayed]
        return ca.vertcat(*rows)

    def torques(self, ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        """{output: expression}, friction apart."""
        elastic, rigid = self.elastic, len(self.elastic.rigid)
        q, v, theta, dtheta = (state[name] for name in ("q", "v", "theta", "dtheta"))
        memory = ca.vertsplit(state["memory"], [0, rigid, 2 * rigid, self.memory])
        z = deflections(elastic, [q, v], [theta, dtheta])
        sigma = _sigma_jet(elastic, ref, state, z, gains.get("sigma_gains"))
        springs = spring_torques(elastic, 1, z, sigma[:2])
        whole = springs[0] + spring_damping(elastic, speeds(elastic, q, v), dtheta)
        rates = ca.vertsplit(springs[1])
        for k, i in enumerate(self.delayed):
            rates[next(j.theta[0] for j in elastic.joints if j.v == i)] = memory[2][k]
        effort = [joint_torques(elastic, whole, memory[0])]
        effort += [joint_torques(elastic, ca.vertcat(*rates), memory[1])] if self.order == 4 else []
        jets = [q, v, *self.forward.call([q, v, *effort])[: self.order - 2]]
        jets.append(wanted_derivative(ref, jets, gains))
        tau = self.inverse.call(jets)
        wanted = tau[1] if self.order == 3 else effort[1]  # rates of the damped joints' torques
        second = self._accelerations(jets, z, sigma, tau, wanted, springs[1])
        motors = ca.DM(elastic.motor_inertia) @ ca.vertcat(*second) + whole
        out = {"tau_m": at_motors(elastic, effort[0], motors)}
        if elastic.stiffness_driven:
            out["tau_sigma"] = ca.DM(elastic.stiffness_inertia) * sigma[2] + sigma_forces(elastic, 0, z, sigma[:1])[0]
        if self.memory:
            out["memory_rate"] = ca.vertcat(memory[1], *(tau[2][k] for k in (*elastic.rigid, *self.delayed)))
        return out

    def _accelerations(self, jets: Any, z: Any, sigma: Any, tau: Any, wanted: Any, rates: Any) -> list[Any]:
        """theta'' of each motor that the wanted torques ask for; rates: of the springs' torques without dampers."""
        second = []
        links = at_drives(self.elastic, jets[:3])[2]
        for i, j in enumerate(self.elastic.joints):
            own = [x[j.sigma] for x in sigma] if j.sigma is not None else []
            if j.spring.damping:
                deflected = [(wanted[j.v] - rates[j.theta[0]]) / j.spring.damping]
            else:
                deflected = j.spring.deflection(2, z[i], [x[j.v] for x in tau], own)
            second += [x + links[j.v] for x in deflected]
        return second


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
