"""What torque sensors between springs and links measure."""

from __future__ import annotations

import casadi as ca

from ..subexpressions import merged
from .drives import at_drives
from .effects import effects_at
from .model import ElasticRobot
from .motor_side import elastic_torques
from .plant import plant

TORQUES = ("tau", "dtau")  # ports of laws that read torque sensors


def torque_sensors(elastic: ElasticRobot) -> ca.Function:
    """casadi.Function (x, sigma) -> (tau, dtau) (elastic joints,) at the state x of plant(elastic).

    tau: torque of each elastic joint on its link [Nm or N], of springs and dampers together; dtau: time derivative of
    the springs' part alone, as that of the dampers has the accelerations in it. sigma: where prescribed, with its rate.
    """
    if "torque_sensors" in elastic._made:
        return elastic._made["torque_sensors"]
    p = plant(elastic)
    x, given = ca.SX.sym("x", p.size), ca.SX.sym("sigma", p.springs.size1_in(1))
    s = {name: x[part] for name, part in p.parts.items()}
    if elastic.stiffness_driven:
        sigma = [s["sigma"], s["dsigma"]]
    else:
        sigma = ca.vertsplit(given, given.numel() // 2) if given.numel() else []
    drives = at_drives(elastic, [s["q"], s["v"]])
    rate = elastic_torques(elastic, drives, [s["theta"], s["dtheta"]], sigma)[0][1]
    dtau = ca.vertcat(*(rate[j.v] for j in elastic.joints))
    if elastic.effects:  # play and hysteresis beside the spring
        remembered = s.get("friction", ca.SX(0, 1))
        now = sigma[0] if sigma else ca.SX(0, 1)
        extra = effects_at(elastic, s["q"], s["v"], s["theta"], s["dtheta"], now, remembered)
        dtau = dtau + extra.sensed_rate
    outputs = merged([ca.densify(p.springs(x, given)[1]), ca.densify(dtau)])
    elastic._made["torque_sensors"] = ca.Function("torque_sensors", [x, given], outputs, ["x", "sigma"], [*TORQUES])
    return elastic._made["torque_sensors"]
