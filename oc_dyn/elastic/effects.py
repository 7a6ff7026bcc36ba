"""What laws of friction, hysteresis and backlash do in the plant: torques, rates of their memory, energy, power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from ..errors import ModelError, UnknownName
from ..numbers import shortened
from .drives import at_drives
from .friction_laws import LAWS, Backlash, FrictionLaw
from .motor_side import at_motors, elastic_torques

SIDES = ("motors", "links", "springs")


@dataclass(frozen=True, eq=False)
class Effect:
    """A law at a motor (row of tau_m), a link (row of v) or a spring (number of the elastic joint)."""

    law: FrictionLaw
    on: str
    row: int
    name: str


@dataclass(frozen=True, eq=False)
class Effects:
    """Of all laws at a state: torques on the links (drives,), on motors (tau_m,), at sensors (elastic joints,) and
    their rates where the laws are of springs; rate of the memory, stored energy [J], power that is taken [W]."""

    links: Any
    motors: Any
    sensed: Any
    sensed_rate: Any
    memory_rate: Any
    stored: Any
    taken: Any


def read_effects(elastic: Any, laws: Mapping[str, Any], problems: list[str]) -> tuple[Effect, ...]:
    """Effects of {"motors": {motor: law}, "links": {velocity: law}, "springs": {joint: law}}, or of a law for all."""
    names = {
        "motors": list(elastic.motor_names),
        "links": list(elastic.drives or elastic.links.velocity_names),
        "springs": [j.name for j in elastic.joints],
    }
    found = []
    if not isinstance(laws, Mapping):
        problems.append(
            f"laws is {shortened(laws)}, expected {{side: law, or {{name: law or list of laws}}}}, of the sides "
            + ", ".join(SIDES)
        )
        return ()
    for side, given in laws.items():
        if side not in SIDES:
            raise UnknownName("side for laws of friction", side, SIDES)
        for name, several in (given if isinstance(given, Mapping) else dict.fromkeys(names[side], given)).items():
            if name not in names[side]:
                raise UnknownName(f"name among the {side} of {elastic.name}", name, names[side])
            for law in several if isinstance(several, (tuple, list)) else (several,):
                effect = Effect(law, side, names[side].index(name), name)
                problem = _problem(elastic, effect)
                problems += [problem] if problem else []
                found.append(effect)
    plays = [e.name for e in found if isinstance(e.law, Backlash)]
    twice = sorted({name for name in plays if plays.count(name) > 1})
    if twice:
        problems.append(f"laws: {', '.join(twice)} has several Backlash laws; give one, whose gap is the sum of theirs")
    return tuple(found)


def _problem(elastic: Any, e: Effect) -> str | None:
    if not isinstance(e.law, LAWS):
        return f"laws: {e.name!r} of {e.on} has {e.law!r}, expected one of {', '.join(x.__name__ for x in LAWS)}"
    kind = type(e.law).__name__
    if e.on not in e.law.on:
        return f"laws: {kind} of {e.name!r} is not for {e.on}, but for {', '.join(e.law.on)}"
    if getattr(e.law, "load", 0) and _joint_of(elastic, e) is None:
        return f"laws: {kind} of {e.name!r} depends on the load of a spring, but the joint is rigid"
    if e.on == "springs" and len(elastic.joints[e.row].theta) > 1:
        return f"laws: {kind} of {e.name!r} is for a spring of one motor; that joint has two"
    if isinstance(e.law, Backlash) and elastic.joints[e.row].spring.variable:
        return f"laws: Backlash of {e.name!r} is for a spring of fixed law; that of the joint is variable"
    if isinstance(e.law, Backlash) and elastic.across is not None:
        return (
            f"laws: Backlash of {e.name!r} is for a spring of one joint; this robot has springs across joints, or a "
            "matrix of stiffness, of whose deflections play is not written"
        )
    return None


def _joint_of(elastic: Any, e: Effect) -> Any:
    """The elastic joint of a motor, a link or a spring; None if it is rigid."""
    if e.on == "springs":
        return elastic.joints[e.row]
    return next((j for j in elastic.joints if e.row in (j.tau if e.on == "motors" else (j.v,))), None)


def effects_at(elastic: Any, q: Any, v: Any, theta: Any, dtheta: Any, sigma: Any, memory: Any) -> Effects:
    """Effects at a state; memory: that of all laws, in their order."""
    position, speed = at_drives(elastic, [q, v])
    motor_speed = at_motors(elastic, speed, dtheta)
    links = [ca.SX(0)] * speed.numel()
    motors = [ca.SX(0)] * len(elastic.motor_names)
    sensed, sensed_rate = ([ca.SX(0)] * len(elastic.joints) for _ in range(2))
    loads = _loads(elastic, position, theta, sigma)
    rates: list[Any] = []
    stored, taken, first = ca.SX(0), ca.SX(0), 0
    for e in elastic.effects:
        j = _joint_of(elastic, e)
        own = memory[first : first + e.law.memory]
        first += e.law.memory
        if e.on == "springs":
            z, x = theta[j.theta[0]] - position[j.q], dtheta[j.theta[0]] - speed[j.v]
        else:
            z, x = None, (motor_speed if e.on == "motors" else speed)[e.row]
        if isinstance(e.law, Backlash):
            torque, rate, energy, torque_rate = _play(e.law, j.spring, z, x)
            power = ca.SX(0)
        else:
            load = loads[e.on][e.row] if getattr(e.law, "load", 0) else ca.SX(0)
            torque, rate, energy = e.law.torque(x, own, load)
            power = torque * x - ca.jtimes(energy, own, rate) if e.law.memory else torque * x
            torque_rate = ca.jtimes(torque, own, rate) if e.on == "springs" else ca.SX(0)
        rates.append(rate)
        stored, taken = stored + energy, taken + power
        if e.on != "springs":
            side = motors if e.on == "motors" else links
            side[e.row] = side[e.row] - torque
            continue
        motors[j.tau[0]] = motors[j.tau[0]] - torque
        links[j.v] = links[j.v] + torque
        sensed[e.row], sensed_rate[e.row] = sensed[e.row] + torque, sensed_rate[e.row] + torque_rate
    return Effects(
        links=ca.vertcat(*links),
        motors=ca.vertcat(*motors),
        sensed=ca.vertcat(*sensed),
        sensed_rate=ca.vertcat(*sensed_rate),
        memory_rate=ca.vertcat(ca.SX(0, 1), *rates),
        stored=stored,
        taken=taken,
    )


def _loads(elastic: Any, position: Any, theta: Any, sigma: Any) -> dict[str, list[Any]]:
    """{side: torques of the springs, with their play, without dampers and hysteresis}: "motors" what they take from
    each motor (tau_m,), "links" what they give each joint with a drive; zero at rigid joints."""
    if not any(getattr(e.law, "load", 0) for e in elastic.effects):
        return {}
    on_links, on_motors = (x[0] for x in elastic_torques(elastic, [position], [theta], [sigma]))
    links, motors = ca.vertsplit(ca.SX(on_links)), [ca.SX(0)] * len(elastic.motor_names)
    for m, torque in zip(elastic.elastic_motors, ca.vertsplit(on_motors), strict=True):
        motors[m] = torque
    for e in elastic.effects:
        if isinstance(e.law, Backlash):
            j = elastic.joints[e.row]
            play = _play(e.law, j.spring, theta[j.theta[0]] - position[j.q], ca.SX(0))[0]
            links[j.v], motors[j.tau[0]] = links[j.v] + play, motors[j.tau[0]] + play
    return {"links": links, "motors": motors}


def _play(law: Backlash, spring: Any, z: Any, speed: Any) -> tuple[Any, Any, Any, Any]:
    """(torque, no memory, energy, rate of the torque) that play adds to those of the spring."""
    x, none = ca.SX.sym("z"), ca.DM(0, 1)
    energy = spring.energy([law.left(x)], none) - spring.energy([x], none)
    torque = spring.torques([law.left(x)], none)[0] * ca.jacobian(law.left(x), x) - spring.torques([x], none)[0]
    f = ca.Function("play", [x], [torque, energy, ca.jacobian(torque, x)])
    found, stored, slope = f(z)
    return found, ca.SX(0, 1), stored, slope * speed


def refuse_effects(what: str, elastic: Any) -> None:
    """Raise ModelError where laws for simulation alone are there, for what does not know them."""
    if elastic.effects:
        names = ", ".join(sorted({f"{type(e.law).__name__} at {e.name}" for e in elastic.effects}))
        raise ModelError(
            elastic.name,
            [f"{what}: {names} are for simulation alone (plant, simulate); take without_laws() for what needs a model"],
        )
