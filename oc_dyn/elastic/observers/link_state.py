"""Positions and velocities of links from motors and torque sensors."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ...errors import ModelError
from ...registry import choose
from ...types import Numbers
from ..forward_dynamics import QUANTITY
from ..linear_errors import pole_gains
from ..model import ElasticRobot
from ..motor_side import at_motors, joint_torques, motor_friction
from .observer import Observer, admitted, observer


def link_state_observer(elastic: ElasticRobot, poles: Numbers) -> Observer:
    """q_hat, v_hat (v,) of the links from theta, theta' and the torque sensors tau, without encoders at the links.

    The sensor's torque gives the spring's deflection, so the position y of the link, and drives the model of the link:
        x' = v_hat + k1 (y - x),   v_hat' = M(y)^-1 (tau - n(y, v_hat)) + k0 (y - x),   q_hat = x.
    poles [1/s]: two, as of pole_gains: a positive number g, (2,) or (v, 2).
    Promise: errors of q and v decay with these poles at rest, and in motion but for the Coriolis forces of the error,
    (C(q, v) + C(q, v_hat)) (v - v_hat), zero for a single joint; a constant external torque w leaves the position off
    by M^-1 w / k0, the velocity by k1 times that. A damper D of the spring moves y by D / phi' (v - v_hat), which the
    gains take into account (k1 less k0 D / phi'): poles stay, but for the change of n(y, .) over that distance.
    Rigid joints are read from q, and driven by tau_m less friction; the motors of the complete model by tau_m as well.
    Source: Luenberger observer on the link side: Tomei 1990, Nicosia and Tomei 1990; with torque sensors,
    Albu-Schaeffer and Hirzinger 2000. Raises ModelError for two motors at a joint, prescribed sigma, loops; ShapeError.
    """
    admitted("link_state_observer", elastic)
    adjusted = elastic.adjusted
    if adjusted and not elastic.stiffness_driven:
        raise ModelError(
            elastic.name,
            ["link_state_observer: sigma is prescribed, not measured: give stiffness_inertia, its drives' encoders"],
        )
    gains = pole_gains(poles, 2, elastic.nv, "link_state_observer: poles")
    acceleration = _acceleration(elastic)
    driven = bool(elastic.rigid or elastic.coupling)  # by torques of motors besides those of sensors

    def law(p: dict[str, Any], memory: Any) -> dict[str, Any]:
        n = elastic.nv
        x, v = memory[:n], memory[n:]
        y, softness = _seen(elastic, p, v)
        e = y - x
        speed = at_motors(elastic, v, p["dtheta"])
        driving: Any = p["tau_m"] - motor_friction(elastic, [speed])[0] if driven else None
        rigid = [driving[m] for m in elastic.rigid_motors]
        link = joint_torques(elastic, p["tau"], rigid)
        motor = ca.DM.zeros(len(elastic.elastic_motors))
        if elastic.coupling:
            motor = ca.vertcat(*(driving[m] for m in elastic.elastic_motors)) - p["tau"]
        dv = acceleration(y, v, p["dtheta"], link, motor)
        k0, k1 = ca.DM(gains[:, 0]), ca.DM(gains[:, 1])
        return {"q_hat": x, "v_hat": v, "memory_rate": ca.vertcat(v + (k1 - k0 * softness) * e, dv + k0 * e)}

    def first(p: dict[str, Any]) -> Any:
        v = _of_links(elastic, p.get("v", ca.DM.zeros(elastic.nv)), p["dtheta"])
        return ca.vertcat(_seen(elastic, p, v)[0], v)

    measured = ["q"] if elastic.rigid else []
    measured += ["theta", "dtheta", *(["sigma"] if adjusted else []), "tau", *(["tau_m"] if driven else [])]
    return observer("link_state_observer", elastic, measured, law, 2 * elastic.nv, first, gains)


def _acceleration(elastic: ElasticRobot) -> ca.Function:
    """casadi.Function (q, v, theta', torques on links, torques on motors) -> v'."""
    n, motors = elastic.nv, len(elastic.elastic_motors)
    x = [ca.SX.sym("x", size) for size in (n, n, motors, n, motors)]
    return ca.Function("acceleration", x, [choose(QUANTITY, elastic, 0).function(elastic, *x)[0]])


def _seen(elastic: ElasticRobot, p: dict[str, Any], v: Any) -> tuple[Any, Any]:
    """(positions of the links from sensors, D / phi' of their springs, zero at rigid joints)."""
    y, softness = [ca.SX(1, 1)] * elastic.nv, [ca.SX(1, 1)] * elastic.nv
    for k in elastic.rigid:
        y[k] = p["q"][k]
    for e, j in enumerate(elastic.joints):
        m, d = j.theta[0], j.spring.damping
        sigma = [p["sigma"][j.sigma]] if j.spring.adjusted else []
        torque = p["tau"][e] - d * (p["dtheta"][m] - v[j.v]) if d else p["tau"][e]
        z = j.spring.deflections([torque], sigma)[0][0]
        y[j.q] = p["theta"][m] - z
        if d:
            softness[j.v] = d / _slope(j.spring, z, sigma)
    return ca.vertcat(*y), ca.vertcat(*softness)


def _slope(spring: Any, z: Any, sigma: Any) -> Any:
    """phi'(z) of a spring with one motor."""
    x, s = ca.SX.sym("x"), ca.SX.sym("s", len(sigma))
    f = ca.Function("slope", [x, s], [ca.gradient(spring.torques([x], s)[0], x)])
    return f(z, ca.vertcat(*sigma) if sigma else ca.DM(0, 1))


def _of_links(elastic: ElasticRobot, links: Any, motors: Any) -> Any:
    """(v,) the motors' speeds as those of the links; rigid joints as in `links`."""
    rows = ca.vertsplit(ca.SX(links))
    for j in elastic.joints:
        rows[j.v] = motors[j.theta[0]]
    return ca.vertcat(*rows)
