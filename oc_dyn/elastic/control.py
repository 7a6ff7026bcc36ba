"""Laws of control for elastic robots, each a casadi.Function of reference and measured state.

All take the same ports, whether they read them or not: the reference q_ref, v_ref, dv_ref, .. (as many as the flat map
needs; sigma_ref, dsigma_ref, d2sigma_ref where the stiffness varies) and the state q, v, theta, dtheta (sigma, dsigma
where it has drives); and give tau_m (and tau_sigma). A law with a memory takes it as port memory and gives its rate.
A law may read torque sensors besides, as ports tau and dtau (elastic joints,); see torque_sensors.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..errors import ModelError
from ..types import Named
from .controller import Controller as Controller
from .controller import Law as Law
from .controller import flat_torques as _flat
from .controller import make_controller as _controller
from .controller import motor_gains as _gains
from .damping import damped_map
from .drives import at_drives, drive_torques
from .linear_errors import pole_gains as pole_gains
from .linearization import feedback_linearization as feedback_linearization
from .model import ElasticRobot
from .motor_side import at_motors


def feedforward(elastic: ElasticRobot) -> Controller:
    """Motor torques of the flat map at the reference; the state is not read."""
    return _controller("feedforward", elastic, lambda ref, state, gains: _flat(elastic, ref))


def feedforward_pd(elastic: ElasticRobot, kp: Named, kd: Named, *, integrate_damping: bool = False) -> Controller:
    """Flat feedforward and a PD loop on each motor: tau_m = flat map + kp (theta_ref - theta) + kd (dtheta_ref -
    dtheta).

    kp [Nm/rad], kd [Nm s/rad]: numbers, {motor: value} or one per motor; on a rigid joint they act on q and v.
    integrate_damping: for damped springs, which have no algebraic flat map: the law integrates their deflections along
        the reference as its memory, by the equation D z' + phi(z) = tau; see damped_motion.
    """
    kp, kd = _gains(elastic, kp=kp, kd=kd)
    dynamic = integrate_damping and elastic.damped
    maps: Any = damped_map(elastic) if dynamic else (None, None)
    damped, start = maps

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        out = damped(z=state["memory"], **{n: ref[n] for n in damped.name_in()[1:]}) if dynamic else _flat(elastic, ref)
        tau_m = out["tau_m"] + _pd(elastic, gains, ref, state, out["theta"], out["dtheta"])
        return {**out, "tau_m": tau_m, **({"memory_rate": out["dz"]} if dynamic else {})}

    def first(ref: dict[str, Any]) -> Any:
        return start(**{n: ref[n] for n in start.name_in()})["z"]

    memory = len(elastic.damped) if dynamic else 0
    return _controller("feedforward_pd", elastic, law, memory, first if dynamic else None, {"kp": kp, "kd": kd})


def gravity_pd(elastic: ElasticRobot, kp: Named, kd: Named) -> Controller:
    """PD on each motor with the gravity torque g of the reference position: Tomei's regulator along the reference.

    tau_m = g(q_ref) + kp (theta_g - theta) + kd (v_ref - dtheta), theta_g = q_ref + the deflection under g(q_ref).
    """
    kp, kd = _gains(elastic, kp=kp, kd=kd)
    _without_drives("gravity_pd", elastic)

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        zero = ca.DM.zeros(elastic.nv)
        g = drive_torques(elastic)(ref["q"], zero, zero)
        position, drives = at_drives(elastic, [ref["q"], ref["v"]])
        sigma = [ref["sigma"]] if elastic.sigma_names else []
        theta, torques = _resting(elastic, position, g, sigma)
        speed = ca.vertcat(*(drives[j.v] for j in elastic.joints for _ in j.theta))
        return {"tau_m": at_motors(elastic, g, torques) + _pd(elastic, gains, ref, state, theta, speed)}

    return _controller("gravity_pd", elastic, law, gains={"kp": kp, "kd": kd})


def computed_torque(elastic: ElasticRobot, kp: Named, kd: Named) -> Controller:
    """The law of a rigid robot, elasticity ignored: inverse dynamics and motor inertia at the reference, PD of the
    motors on q_ref. A baseline to compare with."""
    kp, kd = _gains(elastic, kp=kp, kd=kd)
    _without_drives("computed_torque", elastic)
    if any(len(j.theta) > 1 for j in elastic.joints):
        raise ModelError(elastic.name, ["computed_torque: a joint with two motors cannot be taken as rigid"])

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        tau = drive_torques(elastic)(ref["q"], ref["v"], ref["dv"])
        rows = [j.v for j in elastic.joints]
        jets = at_drives(elastic, [ref["q"], ref["v"], ref["dv"]])
        position, speed, rate = (ca.vertcat(*(x[k] for k in rows)) for x in jets)
        motors = ca.vertcat(*(tau[k] for k in rows)) + ca.DM(elastic.motor_inertia) @ rate
        return {"tau_m": at_motors(elastic, tau, motors) + _pd(elastic, gains, ref, state, position, speed)}

    return _controller("computed_torque", elastic, law, gains={"kp": kp, "kd": kd})


def _pd(
    elastic: ElasticRobot, gains: dict[str, Any], ref: dict[str, Any], state: dict[str, Any], theta: Any, speed: Any,
) -> Any:  # fmt: skip
    """kp (wanted - measured) + kd (the same of the speeds), on motors, and on the links where they are rigid."""
    links = [ref["q"] - state["q"], ref["v"] - state["v"]]
    if elastic.drives and elastic.rigid:
        pairs = [at_drives(elastic, [x["q"], x["v"]]) for x in (ref, state)]
        links = [x - y for x, y in zip(*pairs, strict=True)]
    position = at_motors(elastic, links[0], theta - state["theta"])
    return gains["kp"] * position + gains["kd"] * at_motors(elastic, links[1], speed - state["dtheta"])


def _resting(elastic: ElasticRobot, q: Any, g: Any, sigma: list[Any]) -> tuple[Any, Any]:
    """Motor positions at rest under the joint torques g, and the springs' torques."""
    theta, torques = [], []
    for j in elastic.joints:
        s = [x[j.sigma] for x in sigma] if j.sigma is not None else []
        z = [jet[0] for jet in j.spring.deflections([g[j.v]], s)]
        theta += [x + q[j.q] for x in z]
        torques += j.spring.torques(z, s[0] if s else ca.DM(0, 1))
    return ca.vertcat(*theta), ca.vertcat(*torques)


def _without_drives(name: str, elastic: ElasticRobot) -> None:
    if elastic.stiffness_driven:
        raise ModelError(elastic.name, [f"{name} says nothing about the drives of sigma; use feedback_linearization"])
