"""Design parameters: lengths, angles, masses of a robot as a number p that its dynamics can be differentiated by.

p is counted from the robot as it is: at 0 nothing changes. Parameters add and scale, so that one number may move
several things: link_length("elbow") + 2.0 * mass("forearm").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..errors import ModelError, ShapeError, UnknownName
from ..lie import se3
from ..model.inertia import Inertia
from ..model.robot import Joint, Robot, assemble, kept
from ..numbers import as_floats
from ..types import Array, Numbers
from .changes import Changes, described
from .drives import checked, driven, of_armature, of_damping, of_gear, of_spring

Vector: TypeAlias = tuple[float, ...]  # hashable, so that parameters can be keys


@dataclass(frozen=True)
class Parameter:
    """A design parameter; make it with the functions of this module. terms: (factor, function, its arguments)."""

    terms: tuple[tuple[float, Callable[..., Changes], tuple[Any, ...]], ...]

    def __add__(self, other: Parameter) -> Parameter:
        return Parameter(self.terms + other.terms) if isinstance(other, Parameter) else NotImplemented

    def __mul__(self, factor: float) -> Parameter:
        return Parameter(tuple((float(factor) * s, f, arguments) for s, f, arguments in self.terms))

    __rmul__ = __mul__

    def changes(self, robot: Robot) -> Changes:
        """The Changes that p = 1 stands for; UnknownName if a joint or link is not there."""
        total = Changes()
        for factor, function, arguments in self.terms:
            total.add(function(robot, *arguments), factor)
        return total


def link_length(joint: str, direction: Numbers | None = None, density: float = 0.0) -> Parameter:
    """Shifts the place of a joint on its parent link by p [m] along `direction` (3,) in the parent link's frame.

    Without a direction: away from the parent link's origin. density [kg/m]: the parent link gains a slender rod of this
    mass per length between the old place and the new one.
    """
    direction = None if direction is None else _unit("direction", direction)
    return _parameter(_shift, joint, direction, float(density))


def joint_rotation(joint: str, about: Numbers) -> Parameter:
    """Turns a joint, and all that it carries, by p [rad] about `about` (3,) through its origin, in its frame."""
    return _parameter(_rotation, joint, _unit("about", about))


def joint_axis(joint: str, about: Numbers) -> Parameter:
    """Tilts the axis of a joint by p [rad] about `about` (3,), in its frame; what it carries rests where it did."""
    return _parameter(_tilt, joint, _unit("about", about))


def pitch(joint: str) -> Parameter:
    """The pitch of a helical joint [m/rad]."""
    return _parameter(_pitch, joint)


def mass(link: str, at: Numbers | None = None) -> Parameter:
    """A point mass of p [kg] on a link, at `at` (3,) [m] in its frame; without it at the link's centre of mass."""
    return _parameter(_point_mass, link, None if at is None else _tuple(_vector("at", at)))


def inertial_parameter(link: str, index: int) -> Parameter:
    """One of the ten inertial parameters of a link, counted as in Robot.parameters: mass, moment x y z, tensor xx xy yy
    xz yz zz about its frame."""
    if index not in range(10):
        raise ShapeError(f"inertial_parameter of {link}: index {index!r}, expected 0 to 9")
    return _parameter(_one_parameter, link, int(index))


def armature(joint: str) -> Parameter:
    """Inertia of a joint's drive [kg m^2, or kg for prismatic joints], as the joint feels it."""
    return _parameter(of_armature, joint)


def gear_ratio(joint: str, rotor_inertia: float, ratio: float = 1.0) -> Parameter:
    """The ratio of a joint's gear, behind which a rotor of this inertia [kg m^2, or as seen by the joint divided by the
    ratio's square] turns: the armature rotor_inertia ratio^2, a part of the joint's, becomes rotor_inertia (ratio +
    p)^2. Raises ShapeError for a negative inertia."""
    inertia = checked("gear_ratio: rotor_inertia", rotor_inertia, 0.0)
    return _parameter(of_gear, joint, inertia, checked("gear_ratio: ratio", ratio))


def damping(joint: str) -> Parameter:
    """Viscous damping of a joint [Nm s/rad, N s/m]; of sensitivities with friction=True alone."""
    return _parameter(of_damping, joint)


def stiffness(joint: str, reference: float = 0.0) -> Parameter:
    """Stiffness [Nm/rad, N/m] of a spring between the links of a joint, at rest at this coordinate [rad, m]: the
    joint's torque has to be p (q - reference) larger. Robots have no such springs of their own, so that p is the
    stiffness, and changed() refuses it."""
    return _parameter(of_spring, joint, checked("stiffness: reference", reference))


def changed(robot: Robot, values: Mapping[Parameter, float]) -> Robot:
    """The robot with design parameters at other values than 0: {parameter: value}. All else is kept. Where several move
    or tilt one joint, the later one is seen in the frame as moved by the earlier ones.

    Raises UnknownName for joints and links that are not there, ModelError for locked joints and links of the ground.
    """
    links, joints, floating, lock = robot.description
    links, joints = dict(links), {j.name: j for j in joints}
    tilts: dict[str, Array] = {}
    for parameter, value in values.items():
        changes, value = parameter.changes(robot), float(value)
        for name, twist in changes.moves.items():
            (R, p), j = displacement(value * twist), joints[name]
            joints[name] = replace(j, rotation=j.rotation @ R, translation=j.rotation @ p + j.translation)
        for name, turn in changes.tilts.items():
            tilts[name] = tilts.get(name, np.eye(3)) @ displacement(np.r_[value * turn, 0.0, 0.0, 0.0])[0]
        for name, rate in changes.pitches.items():
            joints[name] = replace(joints[name], pitch=joints[name].pitch + value * float(rate))
        for (link, k), rates in changes.inertias.items():
            links[link] = (links[link] or Inertia.zero()) + from_parameters(value**k * rates)
        _change_drives(robot, changes, value, joints)
    for name, tilt in tilts.items():
        joints[name] = replace(joints[name], axis=tilt @ joints[name].axis)
    shapes = robot.collisions
    new = assemble(
        robot.name, links, joints.values(), gravity=robot.gravity, floating_base=floating, lock=lock, collisions=shapes
    )
    return replace(new, **kept(robot))


def _change_drives(robot: Robot, changes: Changes, value: float, joints: dict[str, Joint]) -> None:
    if changes.springs:
        named = ", ".join(name for name, _ in changes.springs)
        raise ModelError(robot.name, [f"joint {named}: a robot has no springs between its links; od.sensitivity has"])
    for (name, k), gain in changes.armatures.items():
        joints[name] = replace(joints[name], armature=joints[name].armature + value**k * float(gain))
    for name, rate in changes.dampings.items():
        joints[name] = replace(joints[name], damping=joints[name].damping + value * float(rate))
    for name in {*(name for name, _ in changes.armatures), *changes.dampings}:
        driven(joints[name], joints[name].armature, joints[name].damping, robot.name)


def displacement(twist: Numbers) -> tuple[Array, Array]:
    """Pose (R, p) exp(twist) as numpy arrays."""
    R, p = se3.exp_se3(twist)
    return np.array(R, float), np.array(p, float).reshape(3)


def from_parameters(x: Any) -> Inertia:
    """Inertia from its ten parameters."""
    tensor = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
    return Inertia.computed(float(x[0]), np.array(x[1:4], float), tensor)


def _parameter(function: Callable[..., Changes], *arguments: Any) -> Parameter:
    return Parameter(((1.0, function, arguments),))


def _shift(robot: Robot, joint: str, direction: Vector | None, density: float) -> Changes:
    j = described(robot, joint)
    if direction is None and not np.any(j.translation):
        raise ShapeError(f"link_length of {joint}: it sits on its parent link's origin; give a direction")
    r, along = j.translation, np.array(_unit("direction", j.translation if direction is None else direction))
    out = Changes(moves={joint: np.r_[0.0, 0.0, 0.0, j.rotation.T @ along]})
    if density:
        _on_a_body(robot, j.parent)
        # integrals of 1, r + s along, and its outer square over s = 0..p, by powers of p
        moments = {1: r, 2: along / 2, 3: np.zeros(3)}
        squares = {1: np.outer(r, r), 2: (np.outer(r, along) + np.outer(along, r)) / 2, 3: np.outer(along, along) / 3}
        for k, P in squares.items():
            tensor = np.trace(P) * np.eye(3) - P
            out.inertias[j.parent, k] = density * Inertia(float(k == 1), moments[k], tensor).parameters
    return out


def _rotation(robot: Robot, joint: str, about: Vector) -> Changes:
    return Changes(moves={described(robot, joint).name: np.r_[about, 0.0, 0.0, 0.0]})


def _tilt(robot: Robot, joint: str, about: Vector) -> Changes:
    return Changes(tilts={_with_one_axis(robot, joint).name: np.array(about)})


def _pitch(robot: Robot, joint: str) -> Changes:
    kind = described(robot, joint).kind
    if kind != "helical":
        raise ModelError(robot.name, [f"joint {joint} is {kind}: only helical joints have a pitch"])
    return Changes(pitches={joint: 1.0})


def _point_mass(robot: Robot, link: str, at: Vector | None) -> Changes:
    point = (_on_a_body(robot, link) or Inertia.zero()).com if at is None else at
    _on_a_body(robot, link)
    return Changes(inertias={(link, 1): Inertia.from_com(1.0, point).parameters})


def _one_parameter(robot: Robot, link: str, index: int) -> Changes:
    _on_a_body(robot, link)
    return Changes(inertias={(link, 1): np.eye(10)[index]})


def _with_one_axis(robot: Robot, name: str) -> Joint:
    j = described(robot, name)
    if j.kind not in ("revolute", "continuous", "prismatic", "helical", "cylindrical"):
        raise ModelError(robot.name, [f"joint {name} is {j.kind}: it has no axis to tilt"])
    return j


def _on_a_body(robot: Robot, name: str) -> Inertia | None:
    """Inertia, perhaps None, of a link that moves."""
    links = robot.description[0]
    if name not in links:
        raise UnknownName(f"link of {robot.name}", name, links)
    if robot.frames[name].body == 0:
        raise ModelError(robot.name, [f"link {name} is fixed to the ground: its inertia does not count"])
    return links[name]


def _vector(name: str, x: Any) -> Array:
    x = as_floats(name, x).reshape(-1)
    if x.size != 3 or not np.all(np.isfinite(x)):
        raise ShapeError(f"{name}: got {x.tolist()}, expected three finite numbers")
    return x


def _unit(name: str, x: Any) -> Vector:
    x = _vector(name, x)
    if not np.any(x):
        raise ShapeError(f"{name}: got zeros, expected a direction")
    return _tuple(x / np.linalg.norm(x))


def _tuple(x: Array) -> Vector:
    return tuple(float(y) for y in x)
