"""Laws of control for elastic robots, each a casadi.Function of reference and measured state.

All take the same ports, whether they read them or not: the reference q_ref, v_ref, dv_ref, .. (as many as the flat map
needs; sigma_ref, dsigma_ref, d2sigma_ref where the stiffness varies) and the state q, v, theta, dtheta (sigma, dsigma
where it has drives); and give tau_m (and tau_sigma). A law with a memory takes it as port memory and gives its rate,
or, if it is for samples alone, memory_next.
A law may read torque sensors besides, as ports tau and dtau (elastic joints,); see torque_sensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..types import Named
from ..validation import one_of
from .controller import Controller as Controller
from .controller import Law as Law
from .controller import flat_torques as _flat
from .controller import make_controller as _controller
from .controller import motor_gains as _gains
from .damping import damped_map
from .drives import at_drives, drive_torques, speeds
from .linear_errors import pole_gains as pole_gains
from .linearization import feedback_linearization as feedback_linearization
from .model import ElasticRobot
from .motor_side import at_motors, motor_friction


def feedforward(elastic: ElasticRobot, *, friction_speed: str = "reference") -> Controller:
    """Motor torques of the flat map at the reference; the state is not read, but for friction_speed="measured".

    friction_speed: speed at which friction of the motors is compensated: "reference", that of the flat map; "measured";
        or "none": it is not.
    """
    flat = _flat_with_friction(elastic, friction_speed)
    return _controller("feedforward", elastic, lambda ref, state, gains: flat(ref, state))


def feedforward_pd(
    elastic: ElasticRobot, kp: Named, kd: Named, *, integrate_damping: bool = False, friction_speed: str = "reference",
    friction_smoothing: Named | None = None,
) -> Controller:  # fmt: skip
    """Flat feedforward and a PD loop on each motor: tau_m = flat map + kp (theta_ref - theta) + kd (dtheta_ref -
    dtheta).

    kp [Nm/rad], kd [Nm s/rad]: numbers, {motor: value} or one per motor; on a rigid joint they act on q and v.
    integrate_damping: for damped springs, which have no algebraic flat map: the law integrates their deflections along
        the reference as its memory, by the equation D z' + phi(z) = tau; see damped_motion.
    friction_speed: as of feedforward. friction_smoothing [rad/s, m/s]: speed over which the law smooths the change of
        sign of Coulomb friction, a number, {motor: value} or one per motor; default that of the robot. More of it keeps
        a law that compensates at the measured speed from chattering around standstill.
    """
    kp, kd = _gains(elastic, kp=kp, kd=kd)
    dynamic = integrate_damping and elastic.damped
    flat = _flat_with_friction(elastic, friction_speed, friction_smoothing, integrate=bool(dynamic))

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        out = flat(ref, state)
        tau_m = out["tau_m"] + _pd(elastic, gains, ref, state, out["theta"], out["dtheta"])
        return {**out, "tau_m": tau_m, **({"memory_rate": out["dz"]} if dynamic else {})}

    def first(ref: dict[str, Any]) -> Any:
        start = damped_map(elastic)[1]
        return start(**{n: ref[n] for n in start.name_in()})["z"]

    memory = len(elastic.damped) if dynamic else 0
    return _controller("feedforward_pd", elastic, law, memory, first if dynamic else None, {"kp": kp, "kd": kd})


def _flat_with_friction(
    elastic: ElasticRobot, speed: str, smoothing: Named | None = None, *, integrate: bool = False,
) -> Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]:  # fmt: skip
    """(reference, state) -> outputs of the flat map, or of the integrated one, with friction at the speed wanted."""
    one_of("friction_speed", speed, ("reference", "measured", "none"))
    smooth = elastic.friction_smoothing
    if smoothing is not None:
        smooth = _gains(elastic, friction_smoothing=smoothing)[0].full().ravel()
        if not np.all(smooth > 0):
            raise ShapeError(f"friction_smoothing is {smooth.tolist()}, expected positive numbers")
    rubbing = replace(elastic, friction_smoothing=smooth) if smoothing is not None else elastic
    none = np.zeros(len(elastic.motor_names))
    plain = speed == "reference"  # the flat map has friction at this speed
    model = rubbing if plain else replace(elastic, motor_damping=none, motor_friction=none)
    damped = damped_map(model)[0] if integrate else None

    def flat(ref: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        if damped is None:
            out = _flat(model, ref)
        else:
            out = damped(z=state["memory"], **{n: ref[n] for n in damped.name_in()[1:]})
        if speed == "measured":
            moving = at_motors(elastic, speeds(elastic, state["q"], state["v"]), state["dtheta"])
            out["tau_m"] = out["tau_m"] + motor_friction(rubbing, [moving])[0]
        return out

    return flat


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
    elastic.refuse_across("gravity_pd")
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
