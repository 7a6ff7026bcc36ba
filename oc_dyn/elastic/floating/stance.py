"""The elastic robot while points of it stand on the ground, and when they come down on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from ...errors import ModelError
from ...function import function
from ...subexpressions import merged
from ..effects import effects_at
from ..forward_dynamics import loaded_forces
from ..model import ElasticRobot
from ..plant import plant
from .flatness import check_floating, contact_names


def stance_rates(elastic: ElasticRobot, contacts: Sequence[str], method: str | None = None) -> ca.Function:
    """casadi.Function (x, u, gains) -> dx, f: rates of the state x (plant(elastic).parts) under motor torques u while
    the frames `contacts` are held to the ground as points, and the forces f (3 k,) on them in root axes.

    gains (2,) [1/s2, 1/s]: take back what is open, as in constrained_dynamics; of points that is their velocity, the
    second. method: of constrained_dynamics. Without contacts it is flight, f is empty. The rotors move by their springs
    alone (reduced model): contacts act on them through the links. Damping, friction, parallel springs and laws of
    with_friction count as in the plant.
    """
    check_held("stance_rates", elastic)
    contacts = contact_names("stance_rates", contacts)
    parts = plant(elastic).parts
    x, u, gains = ca.SX.sym("x", plant(elastic).size), ca.SX.sym("u", plant(elastic).controls), ca.SX.sym("gains", 2)
    s = {name: x[part] for name, part in parts.items()}
    at = s["q"], s["v"], s["theta"], s["dtheta"]
    extra = effects_at(elastic, *at, [], s.get("friction", ca.SX(0, 1)))
    link, motor = loaded_forces(elastic, *at, [], u + extra.motors)
    link = link + extra.links
    if contacts:
        held = function(
            elastic.links, "constrained_dynamics", contacts=tuple(contacts), baumgarte=True, method=method,
        )  # fmt: skip
        dv, f = held(s["q"], s["v"], link, gains)
    else:
        dv, f = function(elastic.links, "forward_dynamics")(s["q"], s["v"], link), ca.SX(0, 1)
    d2theta = ca.inv(ca.DM(elastic.motor_inertia)) @ motor
    rate: Any = elastic.links.configuration_rate(s["q"], s["v"])
    rates = ca.vertcat(rate, dv, s["dtheta"], d2theta, extra.memory_rate)
    return ca.Function("stance", [x, u, gains], merged([ca.densify(rates), ca.densify(f)]), _PORTS, ["dx", "f"])


_PORTS = ["x", "u", "gains"]


def touch_down(elastic: ElasticRobot, contacts: Sequence[str]) -> ca.Function:
    """casadi.Function x -> x after, impulse (3 k,): the points stop at once, inelastically. Springs let no impulse
    through: rotors keep their speeds, laws of friction their memory."""
    check_held("touch_down", elastic)
    parts = plant(elastic).parts
    x = ca.SX.sym("x", plant(elastic).size)
    q, v, rest = x[parts["q"]], x[parts["v"]], x[parts["v"].stop :]
    after, impulse = function(elastic.links, "impact", contacts=tuple(contacts))(q, v, 0)
    whole = ca.vertcat(q, after, rest)
    return ca.Function("touch_down", [x], [ca.densify(whole), ca.densify(impulse)], ["x"], ["x_after", "impulse"])


def check_held(what: str, elastic: ElasticRobot) -> None:
    """Refuse elastic robots whose stance is not written."""
    check_floating(what, elastic)
    odd: Any = elastic.adjusted or elastic.stiffness_driven
    if odd:
        raise ModelError(elastic.name, [f"{what} is for springs whose stiffness is no coordinate of its own"])
