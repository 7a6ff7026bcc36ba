"""Observers of what a momentum's balance lacks: external torques, friction, disturbances.

Of a momentum p whose rate is  p' = known + d  the part d that the model does not know is found by
    order 1:  r = k0 (p - x),            x' = known + r                        r' = k0 (d - r)
    order 2:  r = k1 (p - x) + w,        x' = known + r,   w' = k0 (p - x)     r = (k1 s + k0) / (s^2 + k1 s + k0) d
so that r follows d linearly, with the poles asked for, each row apart from the others and whatever the motion.
Neither accelerations nor the inverse of an inertia are needed. Source: De Luca and Mattone 2003 (and 2005) for rigid
robots; De Luca, Albu-Schaeffer, Haddadin and Hirzinger 2006 and Haddadin, De Luca and Albu-Schaeffer 2017 for elastic
joints; Le Tien, Albu-Schaeffer, De Luca and Hirzinger 2008 for friction at the motors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError, ShapeError
from ...function import function
from ...types import Array, Numbers
from ..drives import drive_torques
from ..linear_errors import finite_poles, pole_gains
from ..model import ElasticRobot
from ..motor_side import at_motors, deflections, joint_torques, motor_friction, spring_damping, spring_torques
from .observer import Observer, admitted, observer

Balance = Callable[[dict[str, Any]], tuple[Any, Any]]  # measured -> (momentum, what is known of its rate)


def momentum_observer(
    elastic: ElasticRobot, poles: Numbers, *, order: int = 1, torque: str = "measured",
    threshold: Numbers | None = None,
) -> Observer:  # fmt: skip
    """external_torque (v,) [Nm, N] on the links, as of contacts and collisions, from the momentum's balance.

    poles [1/s]: a positive number g, all at -g; of order 1 one per joint (v,), of order 2 two, or (v, 2).
    torque: "measured": links alone, p = M(q) v, driven by the sensors' torque tau: reads q, v, tau, friction of motors
        plays no part; "motor": links and motors together, driven by tau_m less the friction of the model: reads q, v,
        dtheta, tau_m, no torque sensor, and what friction the model lacks counts as external.
    threshold (v,) or a number [Nm]: one more estimate, collision (1,): 1 where any external torque is above it, else 0.
    Promise: see the module: on the exact model r' = g (tau_ext - r) in each row; constant torques are found without
    error, a ramp of slope s to s / g (order 1) or without error (order 2).
    Rigid joints are driven by tau_m less friction in either case. Raises ShapeError, ModelError.
    """
    admitted("momentum_observer", elastic, one_motor=False)
    gains = _gains("momentum_observer", poles, order, elastic.nv)
    validation.one_of("torque of momentum_observer", torque, ("measured", "motor"))
    limit = None if threshold is None else _threshold(elastic, threshold)
    balance, measured = _links(elastic) if torque == "measured" else _whole(elastic)

    def law(ports: dict[str, Any], memory: Any) -> dict[str, Any]:
        r, rate = _residual(balance(ports), gains, memory)
        out = {"external_torque": r}
        if limit is not None:
            out["collision"] = ca.if_else(ca.mmax(ca.fabs(r) - limit) > 0, 1.0, 0.0)
        return {**out, "memory_rate": rate}

    return observer("momentum_observer", elastic, measured, law, gains.size, _first(balance, gains), gains)


def friction_observer(elastic: ElasticRobot, poles: Numbers, *, order: int = 1) -> Observer:
    """friction_torque (theta,) [Nm, N] that brakes each motor of an elastic joint, from theta', tau and tau_m:
    B theta'' = tau_m - tau - friction. poles, order, promise: as of momentum_observer.

    All friction of these motors counts, that of the model included: the law is to be without (friction_speed="none").
    observed(law, friction_observer(..), compensate="friction_torque") puts it back.
    """
    admitted("friction_observer", elastic)
    balance, measured = _motors(elastic, "measured", friction=False)
    gains = _gains("friction_observer", poles, order, len(elastic.joints))

    def law(ports: dict[str, Any], memory: Any) -> dict[str, Any]:
        r, rate = _residual(balance(ports), gains, memory)
        return {"friction_torque": -r, "memory_rate": rate}

    return observer("friction_observer", elastic, measured, law, gains.size, _first(balance, gains), gains)


def disturbance_observer(
    elastic: ElasticRobot, poles: Numbers, *, order: int = 1, torque: str = "springs",
) -> Observer:  # fmt: skip
    """disturbance (theta,) [Nm, N] at each motor of an elastic joint besides the model: B theta'' = tau_m + disturbance
    - springs - friction of the model; what it finds is errors of friction, of motors' torques and of the springs.

    torque: of the springs: "springs", by the model from theta, theta', q, v; "measured", by the sensors' tau.
    poles, order, promise: as of momentum_observer. observed(law, .., compensate="disturbance") counters it.
    """
    admitted("disturbance_observer", elastic, one_motor=torque == "measured")
    validation.one_of("torque of disturbance_observer", torque, ("springs", "measured"))
    balance, measured = _motors(elastic, torque, friction=True)
    gains = _gains("disturbance_observer", poles, order, len(elastic.elastic_motors))

    def law(ports: dict[str, Any], memory: Any) -> dict[str, Any]:
        r, rate = _residual(balance(ports), gains, memory)
        return {"disturbance": r, "memory_rate": rate}

    return observer("disturbance_observer", elastic, measured, law, gains.size, _first(balance, gains), gains)


def _links(elastic: ElasticRobot) -> tuple[Balance, list[str]]:
    """Momentum of the links, with what the coupling adds, and its rate under the measured torques."""

    def balance(p: dict[str, Any]) -> tuple[Any, Any]:
        momentum, free = _link_momentum(elastic, p)
        rigid = [_driving(elastic, p)[m] for m in elastic.rigid_motors]
        return momentum, free + joint_torques(elastic, _per_motor(elastic, p["tau"]), rigid)

    more = (["dtheta"] if elastic.coupling or elastic.rigid else []) + (["tau_m"] if elastic.rigid else [])
    return balance, ["q", "v", *more, "tau"]


def _whole(elastic: ElasticRobot) -> tuple[Balance, list[str]]:
    """Momentum of links and motors together, in which springs cancel, and its rate under the motors' torques."""

    def balance(p: dict[str, Any]) -> tuple[Any, Any]:
        momentum, free = _link_momentum(elastic, p)
        motors = _motor_momentum(elastic, p)
        driving = _driving(elastic, p)
        torques = ca.vertcat(*(driving[m] for m in elastic.elastic_motors))
        rigid = [driving[m] for m in elastic.rigid_motors]
        return momentum + joint_torques(elastic, motors), free + joint_torques(elastic, torques, rigid)

    return balance, ["q", "v", "dtheta", "tau_m"]


def _motors(elastic: ElasticRobot, torque: str, *, friction: bool) -> tuple[Balance, list[str]]:
    """Momentum of the motors of elastic joints and its rate; friction: whether the model's counts as known."""

    def balance(p: dict[str, Any]) -> tuple[Any, Any]:
        if torque == "measured":
            springs = _per_motor(elastic, p["tau"])
        else:
            sigma = [p["sigma"]] if elastic.adjusted else []
            z = deflections(elastic, [p["q"]], [p["theta"]])
            springs = spring_torques(elastic, 0, z, sigma)[0] + spring_damping(elastic, p["v"], p["dtheta"])
        driving = _driving(elastic, p) if friction else p["tau_m"]
        return _motor_momentum(elastic, p), ca.vertcat(*(driving[m] for m in elastic.elastic_motors)) - springs

    links = torque == "springs" or bool(elastic.coupling) or (friction and bool(elastic.rigid))
    measured = ["q", "v"] if links else []
    measured += ["theta", "dtheta"] if torque == "springs" else ["dtheta", "tau"]
    if torque == "springs" and elastic.adjusted:
        if not elastic.stiffness_driven:
            hint = "give stiffness_inertia, its drives' encoders, or torque='measured'"
            raise ModelError(elastic.name, [f"disturbance_observer: sigma is prescribed, not measured; {hint}"])
        measured.append("sigma")
    return balance, [*measured, "tau_m"]


def _link_momentum(elastic: ElasticRobot, p: dict[str, Any]) -> tuple[Any, Any]:
    """(momentum of the links, its rate without joint torques): C^T v - g, C^T v from M'v and inverse dynamics."""
    q, v = p["q"], p["v"]
    momentum = function(elastic.links, "mass_matrix")(q) @ v
    bias = drive_torques(elastic)(q, v, ca.DM(elastic.nv, 1))
    free = ca.jtimes(momentum, q, v) - bias
    if elastic.coupling:
        own = elastic.coupling.matrix(q) @ p["dtheta"]
        momentum, free = momentum + own, free + ca.gradient(ca.dot(v, own), q)
    return momentum, free


def _motor_momentum(elastic: ElasticRobot, p: dict[str, Any]) -> Any:
    """(theta,) momentum of the motors of elastic joints."""
    momentum = ca.DM(elastic.motor_inertia) @ p["dtheta"]
    return momentum + elastic.coupling.momentum(p["q"], p["v"]) if elastic.coupling else momentum


def _driving(elastic: ElasticRobot, p: dict[str, Any]) -> Any:
    """(motors,) torques of motors less their friction in the model."""
    if "tau_m" not in p:
        return []
    links = p["v"] if "v" in p else ca.DM.zeros(elastic.nv)
    return p["tau_m"] - motor_friction(elastic, [at_motors(elastic, links, p["dtheta"])])[0]


def _per_motor(elastic: ElasticRobot, tau: Any) -> Any:
    """(theta,) from torques (elastic joints,); all of a pair's at its first motor: for sums alone."""
    rows = [tau[e] if k == 0 else ca.DM(1, 1) for e, j in enumerate(elastic.joints) for k in range(len(j.theta))]
    return ca.vertcat(*rows)


def _residual(balance: tuple[Any, Any], gains: Array, memory: Any) -> tuple[Any, Any]:
    """(r, rate of the memory) of the module's equations; gains (n, order)."""
    momentum, known = balance
    n, order = gains.shape
    e = momentum - memory[:n]
    if order == 1:
        r = ca.DM(gains[:, 0]) * e
        return r, known + r
    r = ca.DM(gains[:, 1]) * e + memory[n:]
    return r, ca.vertcat(known + r, ca.DM(gains[:, 0]) * e)


def _first(balance: Balance, gains: Array) -> Callable[[dict[str, Any]], Any]:
    """The memory at which nothing is found yet."""
    n, order = gains.shape
    return lambda ports: ca.vertcat(balance(ports)[0], ca.DM.zeros((order - 1) * n))


def _gains(name: str, poles: Numbers, order: int, n: int) -> Array:
    validation.count(f"{name}: order", order, 1, 2)
    given = finite_poles(f"{name}: poles", poles)
    if order == 1 and given.shape == (n,):
        given = given.reshape(n, 1)
    return pole_gains(given, order, n, f"{name}: poles")


def _threshold(elastic: ElasticRobot, threshold: Numbers) -> Any:
    limit = validation.finite_numbers("momentum_observer: threshold", threshold, elastic.nv)
    if not np.all(limit > 0):
        raise ShapeError(f"momentum_observer: threshold is {limit.tolist()}, expected positive numbers")
    return ca.DM(limit)
