"""The real robot of which an elastic robot is the model: other masses, springs, motors, damping and friction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from .. import validation
from ..errors import ModelError, UnknownName
from ..model.inertia import Inertia
from ..model.loops import LoopRobot, close_tree
from ..model.robot import Robot, assemble, kept
from ..types import Named
from .effects import read_effects
from .potentials import Potential
from .read_friction import link_reader, on_velocities
from .read_motors import MotorReader
from .springs import NoSpring, Spring

ElasticRobot: TypeAlias = Any  # the model imports what is here


def with_errors(
    elastic: ElasticRobot, stiffness: float | Mapping[str, float], mass: float | Mapping[str, float],
    motor_inertia: float, damping: float, friction: float,
) -> ElasticRobot:  # fmt: skip
    """See ElasticRobot.with_errors."""
    names = [j.name for j in elastic.joints]
    stiffness_of_all = 1.0 if isinstance(stiffness, Mapping) else 1.0 + _error("stiffness", stiffness)
    stiffness = _factors("stiffness", stiffness, names, f"elastic joint of {elastic.name}")
    factor = {**dict.fromkeys(names, 1.0), **stiffness}
    shared = [j.name for j in elastic.joints if j.name in stiffness and isinstance(j.spring, NoSpring)]
    if shared and stiffness_of_all == 1.0:
        text = f"with_errors: {', '.join(shared)} has no spring of its own, but springs across joints; give stiffness"
        raise ModelError(elastic.name, [text + " as a number, for all springs"])
    m, d, f = (
        1.0 + _error(name, x)
        for name, x in (("motor_inertia", motor_inertia), ("damping", damping), ("friction", friction))
    )
    mass_of = _factors("mass", mass, list(elastic.links.description[0]), f"link of {elastic.name}")
    real = replace(
        elastic,
        joints=tuple(replace(j, spring=_damped(j.spring.scaled(factor[j.name]), d)) for j in elastic.joints),
        links=rebuilt(elastic.links, {n: m * x for n, x in _armature(elastic).items()}, mass_of),
        motor_inertia=m * elastic.motor_inertia,
        stiffness_inertia=m * elastic.stiffness_inertia,
        coupling=elastic.coupling and elastic.coupling.scaled(m),
        parallel=_scaled(elastic.parallel, stiffness_of_all),
        across=_scaled(elastic.across, stiffness_of_all),
        motor_damping=d * elastic.motor_damping,
        motor_friction=f * elastic.motor_friction,
        link_damping=d * elastic.link_damping,
        link_friction=f * elastic.link_friction,
    )
    if real.coupling:
        real.coupling.check_energy(real)
    return real


def with_friction(
    elastic: ElasticRobot, damping: Named | None, given: Mapping[str, Named | None], laws: Mapping[str, Any] | None,
) -> ElasticRobot:  # fmt: skip
    """See ElasticRobot.with_friction; damping: of springs; given: the other arguments."""
    problems: list[str] = []
    motors = MotorReader(elastic.name, elastic.motor_names, problems)
    names = elastic.drives or elastic.links.velocity_names
    links = link_reader(elastic.name, names, elastic.links, problems)
    own: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        reader = links if name.startswith("link") else motors
        smoothing = name.endswith("smoothing")
        read = reader.vector(name, value, **({"positive": True} if smoothing else {"lowest": 0.0}))
        own[name] = on_velocities(names, links.names, read, getattr(elastic, name)) if reader is links else read
    if damping is not None:
        joints = MotorReader(elastic.name, [j.name for j in elastic.joints], problems, "elastic joint")
        values = joints.vector("damping", damping, lowest=0.0)
        if not problems:
            pairs = zip(elastic.joints, values, strict=True)
            own["joints"] = tuple(replace(j, spring=replace(j.spring, damping=float(d))) for j, d in pairs)
    if laws is not None:
        own["effects"] = read_effects(elastic, laws, problems)
    if problems:
        raise ModelError(elastic.name, problems)
    return replace(elastic, **own)


def _armature(elastic: ElasticRobot) -> dict[str, float]:
    """{joint: inertia} of the motors of rigid joints, which is in the links."""
    names = elastic.drives or [j.name for j in elastic.links.joints for _ in range(j.nv)]
    tree = elastic.links.tree if isinstance(elastic.links, LoopRobot) else elastic.links
    found = {names[v]: tree.joint(names[v]).armature for v in elastic.rigid}
    return {name: x for name, x in found.items() if x}


def _scaled(potential: Potential | None, factor: float) -> Potential | None:
    return potential if potential is None or factor == 1 else potential.scaled(factor)


def _damped(spring: Spring, factor: float) -> Spring:
    """The spring with its damping times a factor."""
    return replace(spring, damping=factor * spring.damping) if factor != 1 and spring.damping else spring


def _factors(quantity: str, errors: float | Mapping[str, float], names: list[str], what: str) -> dict[str, float]:
    """{name: 1 + error}."""
    if not isinstance(errors, Mapping):
        error = _error(quantity, errors)
        return dict.fromkeys(names, 1.0 + error) if error else {}
    for name in errors:
        if name not in names:
            raise UnknownName(what, name, names)
    return {name: 1.0 + _error(f"{quantity} of {name}", x) for name, x in errors.items()}


def _error(quantity: str, value: float) -> float:
    """A relative error, above -1."""
    return validation.number(f"relative error of {quantity}", value, above=-1)


def rebuilt(
    robot: Robot,
    armature: Mapping[str, float] | None = None,
    mass_of: Mapping[str, float] | None = None,
) -> Robot:
    """The robot with other armatures {joint: value}, inertial parameters of links times factors {link: factor}."""
    if isinstance(robot, LoopRobot):
        tree = rebuilt(robot.tree, armature, mass_of)
        return robot if tree is robot.tree else close_tree(
            tree, robot.loops, robot.couplings, robot.independent, start=robot.home
        )  # fmt: skip
    links, raw, floating, held = robot.description
    armature, mass_of = armature or {}, mass_of or {}
    if all(robot.joint(n).armature == x for n, x in armature.items()) and not mass_of:
        return robot
    links = {name: x and _times(mass_of.get(name, 1.0), x) for name, x in links.items()}
    raw = tuple(replace(j, armature=armature[j.name]) if j.name in armature else j for j in raw)
    new = assemble(
        robot.name, links, raw, gravity=robot.gravity, floating_base=floating, lock=held, collisions=robot.collisions
    )
    return replace(new, **kept(robot))


def _times(factor: float, inertia: Inertia) -> Inertia:
    return Inertia.computed(factor * inertia.mass, factor * inertia.moment, factor * inertia.tensor)
