"""What the flat map says of a reference: motors' motion, springs' torques, and what else motors give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from ..controller import flat_torques as _flat
from ..model import ElasticRobot
from ..motor_side import at_motors, deflections, spring_torques


@dataclass(frozen=True, eq=False)
class FlatReference:
    """theta, dtheta, d2theta of the motors of elastic joints; tau, dtau (theta,) of their springs; other (motors,):
    what motors give beside springs and their own inertia, that is friction, and the whole torques of rigid joints."""

    theta: Any
    dtheta: Any
    d2theta: Any
    tau: Any
    dtau: Any
    other: Any


def flat_reference(elastic: ElasticRobot, ref: dict[str, Any]) -> FlatReference:
    """FlatReference of a robot with one motor a joint, from the reference's ports."""
    flat = _flat(elastic, ref)
    z = deflections(elastic, [ref["q"], ref["v"]], [flat["theta"], flat["dtheta"]])
    sigma = [ref["sigma"], ref["dsigma"]] if elastic.sigma_names else [ca.DM(0, 1)] * 2
    tau, dtau = spring_torques(elastic, 1, z, sigma)
    motors = ca.DM(elastic.motor_inertia) @ flat["d2theta"] + tau
    other = flat["tau_m"] - at_motors(elastic, ca.DM(elastic.nv, 1), motors)
    return FlatReference(flat["theta"], flat["dtheta"], flat["d2theta"], tau, dtau, other)
