"""Elastic structure preserving control: damping and stiffness at the links, springs and inertias as they are."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ...errors import ShapeError
from ...function import function
from ...types import Named, Numbers
from ...validation import one_of
from ..controller import Controller
from ..controller import flat_torques as _flat
from ..controller import make_controller as _controller
from ..drives import accelerations, drive_torques
from ..model import ElasticRobot
from ..motor_side import at_motors, deflections, joint_torques, motor_friction, spring_torques
from .conditions import check_robot, positive_gains, symmetric


def esp(
    elastic: ElasticRobot, motor_stiffness: Named, motor_damping: Named, link_damping: Numbers, *,
    friction_speed: str = "measured",
) -> Controller:  # fmt: skip
    """Elastic structure preserving control: tracking with damping between links and reference.

    In the errors e = q - q_ref and new motor coordinates eta the closed loop is the robot again, without gravity:
        M(q) e'' + (C(q, v) + link_damping) e' = phi(eta - e)
        B eta'' + phi(eta - e) = -motor_stiffness eta - motor_damping eta'
    phi being the springs.

    motor_stiffness [Nm/rad], motor_damping [Nm s/rad]: above 0: numbers, {motor: value} or one per motor.
    link_damping [Nm s/rad]: a number, (v,) or a symmetric positive definite matrix (v, v); for what gives a damping
        ratio at a position see modal_damping.
    friction_speed: speed at which the motors' friction is compensated: "measured"; "reference", the flat map's, for
        sampled laws (see feedback_linearization); "none" leaves it.
    Exact along any reference four times differentiable. The energy 1/2 e' M e + 1/2 eta' B eta + springs + 1/2 eta'
    motor_stiffness eta (speeds in the first two) falls at the rate of the two dampers.
    The law reads positions and speeds of motors and links; the links' accelerations and their rates follow from them by
    the model without load. A load on the links is so taken for a wrong acceleration: the equations above hold with it
    on their right sides only where D and C are small; passivity_index tells what the port (load, v) is then.
    Raises ModelError for springs that are damped, variable or in pairs, rigid joints, the complete model; ShapeError.
    Source: Keppler, Lakatos, Ott, Albu-Schaeffer, Elastic structure preserving (ESP) control for compliantly actuated
    robots, IEEE T-RO 34 (2018).
    """
    gains = dict(zip(("motor_stiffness", "motor_damping"), positive_gains(
        "esp", elastic, motor_stiffness=motor_stiffness, motor_damping=motor_damping), strict=True))  # fmt: skip
    return _preserving("esp", elastic, gains, link_damping, 0.0, friction_speed)


def esp_i(
    elastic: ElasticRobot, link_stiffness: Numbers, link_damping: Numbers, motor_damping: Named, *,
    friction_speed: str = "measured",
) -> Controller:  # fmt: skip
    """Elastic structure preserving impedance control: a spring and a damper between links and reference.

    As esp, with the closed loop
        M(q) e'' + (C(q, v) + link_damping) e' + link_stiffness e = phi(eta - e)
        B eta'' + phi(eta - e) = -motor_damping eta'
    link_stiffness may be higher than that of the springs.

    link_stiffness [Nm/rad], link_damping [Nm s/rad]: numbers, (v,) or symmetric positive definite matrices (v, v).
    motor_damping [Nm s/rad]: above 0. friction_speed, conditions and errors: as of esp.
    Source: Keppler, Lakatos, Ott, Albu-Schaeffer, Elastic structure preserving impedance (ESpi) control for compliantly
    actuated robots, IROS 2018; here with the motors damped at rest, not at the links.
    """
    (damping,) = positive_gains("esp_i", elastic, motor_damping=motor_damping)
    zero = ca.DM.zeros(damping.shape)
    gains = {"motor_stiffness": zero, "motor_damping": damping}
    return _preserving("esp_i", elastic, gains, link_damping, link_stiffness, friction_speed)


def _preserving(
    name: str, elastic: ElasticRobot, gains: dict[str, Any], link_damping: Any, link_stiffness: Any,
    friction_speed: str,
) -> Controller:  # fmt: skip
    """The Controller of both: the springs carry phi(eta - e) + n, with n = M(q) dv_ref + C(q, v) v_ref + g(q) less what
    link dampers and springs take, from which eta and, by its second derivative, the motors' accelerations follow."""
    one_of("friction_speed", friction_speed, ("measured", "reference", "none"))
    check_robot(name, elastic, rigid=False, damped=False, variable=False)
    gains["link_damping"] = ca.DM(_definite(f"{name}: link_damping", link_damping, elastic.nv))
    if name == "esp_i":
        gains["link_stiffness"] = ca.DM(_definite(f"{name}: link_stiffness", link_stiffness, elastic.nv))
    tracking, forward = function(elastic.links, "slotine_li_torque", order=2), accelerations(elastic, 1)
    none = ca.DM(0, 1)

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        q, v, theta, dtheta = (state[n] for n in ("q", "v", "theta", "dtheta"))
        z = deflections(elastic, [q, v], [theta, dtheta])
        tau = spring_torques(elastic, 1, z, [none, none])
        a, j = forward.call([q, v, *(joint_torques(elastic, x) for x in tau)])
        e = [q - ref["q"], v - ref["v"], a - ref["dv"], j - ref["d2v"]]
        n = tracking(q=q, v=v, dv=a, d2v=j, vr=ref["v"], dvr=ref["dv"], d2vr=ref["d2v"], d3vr=ref["d3v"])
        n = [n[x] - gains["link_damping"] @ e[k + 1] for k, x in enumerate(("tau", "dtau", "d2tau"))]
        n = [x + y for x, y in zip(n, _taken(elastic, [q, v, a, j]), strict=True)]
        if "link_stiffness" in gains:
            n = [x - gains["link_stiffness"] @ e[k] for k, x in enumerate(n)]
        inner = [tau[k] - n[k] for k in range(2)]  # phi(eta - e) and its rate
        zeta = _bent(elastic, inner)
        eta = [zeta[k] + e[k] for k in range(2)]
        motors = -inner[0] - gains["motor_stiffness"] * eta[0] - gains["motor_damping"] * eta[1]
        zeta.append(ca.solve(ca.DM(elastic.motor_inertia), motors) - e[2])
        second = _second(elastic, zeta) + n[2]  # of the springs' torques, as wanted
        turned = [
            joint.spring.deflection(2, z[i], [tau[0][i], tau[1][i], second[i]], [])[0] + a[joint.v]
            for i, joint in enumerate(elastic.joints)
        ]
        torques = ca.DM(elastic.motor_inertia) @ ca.vertcat(*turned) + tau[0]
        if friction_speed != "none":
            speed = dtheta if friction_speed == "measured" else _flat(elastic, ref)["dtheta"]
            torques = torques + motor_friction(elastic, [at_motors(elastic, v, speed)])[0]
        return {"tau_m": torques}

    return _controller(name, elastic, law, gains=gains)


def _taken(elastic: ElasticRobot, motion: list[Any]) -> list[Any]:
    """[torques (v,), rates, second rates] of friction of the links and of parallel springs along [q, v, v', v'']."""
    rubbing = any(np.any(getattr(elastic, x, 0.0)) for x in ("link_damping", "link_friction"))
    if not rubbing and getattr(elastic, "parallel", None) is None:
        return [ca.DM(elastic.nv, 1)] * 3
    jets = [*motion, ca.DM(elastic.nv, 1)]  # the last derivative meets the inertia alone, which both have
    both = drive_torques(elastic, 2), function(elastic.links, "inverse_dynamics", order=2)
    return [x - y for x, y in zip(*(f.call(jets) for f in both), strict=True)]


def _bent(elastic: ElasticRobot, torques: list[Any]) -> list[Any]:
    """[z, z'] (theta,) of the springs under torques and their rates."""
    jets = [j.spring.deflections([x[i] for x in torques], [])[0] for i, j in enumerate(elastic.joints)]
    return [ca.vertcat(*(jet[k] for jet in jets)) for k in range(len(torques))]


def _second(elastic: ElasticRobot, zeta: list[Any]) -> Any:
    """Second derivative of the springs' torques (theta,) along deflections."""
    z = {i: [[x[i] for x in zeta]] for i in range(len(elastic.joints))}
    return spring_torques(elastic, 2, z, [ca.DM(0, 1)] * 3)[2]


def _definite(what: str, value: Any, n: int) -> Any:
    """(n, n) symmetric positive definite matrix; see symmetric."""
    found = symmetric(what, value, n)
    if not np.linalg.eigvalsh(found)[0] > 0:
        raise ShapeError(f"{what}: got {found.tolist()}, expected positive eigenvalues")
    return found
