"""A robot with rotors in other libraries: text for MuJoCo, a model of Pinocchio."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ..errors import ModelError
from ..interop import quaternion_of
from ..model.robot import Body, Robot
from ..types import Array
from .springs import LinearSpring

_KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}


def mjcf(rotors: Any) -> str:
    """MJCF of a RotorRobot: bodies, joints with their armature, gravity; no limits, no friction, no geometry.

    Linear springs and their dampers are fixed tendons (theta - q), so that MuJoCo has them without help. Friction and
    damping of motors and links are left to the caller; other springs, parallel ones among them, and laws of friction
    are refused: apply `torques` to the model of `rotors.robot` instead.
    Raises ModelError for kinds of joints that MuJoCo does not have.
    """
    elastic, robot = rotors.elastic, rotors.robot
    other = [j.name for j in elastic.joints if not isinstance(j.spring, LinearSpring)]
    if other:
        raise ModelError(elastic.name, [f"mjcf: the spring of {other[0]} is not linear; tendons of MuJoCo are"])
    for there, what in ((elastic.parallel, "parallel springs"), (elastic.effects, "laws of friction")):
        if there:
            text = f"mjcf: {what} are not written; apply `torques` to the model of `rotors.robot` instead"
            raise ModelError(elastic.name, [text])
    _check_kinds("mjcf", robot, _KINDS)
    lines = [f"<mujoco model={quoteattr(robot.name)}>"]
    lines.append('<compiler angle="radian" autolimits="false" balanceinertia="false"/>')
    lines.append(f'<option gravity="{_text(robot.gravity)}"><flag contact="disable"/></option>')
    lines += ["<worldbody>", *_bodies(robot, 0), "</worldbody>", "<tendon>"]
    ratio = dict(zip(elastic.theta_names, rotors.ratio, strict=True))
    for j in elastic.joints:
        motor = elastic.theta_names[j.theta[0]]
        damping = f' damping="{_text(j.spring.damping)}"' if j.spring.damping else ""
        stiffness = _text(getattr(j.spring, "stiffness", 0.0))
        lines.append(
            f'<fixed name={quoteattr(motor + ".spring")} stiffness="{stiffness}"{damping} springlength="0">'
            f'<joint joint={quoteattr(motor + ".rotor")} coef="{_text(1 / ratio[motor])}"/>'
            f'<joint joint={quoteattr(j.name)} coef="-1"/></fixed>'
        )
    return "\n".join([*lines, "</tendon>", "</mujoco>", ""])


def _bodies(robot: Robot, parent: int) -> list[str]:
    lines = []
    for b in robot.bodies:
        if b.parent != parent:
            continue
        place = f'pos="{_text(b.translation)}" quat="{_text(quaternion_of(b.rotation))}"'
        lines.append(f"<body name={quoteattr(b.name)} {place}>")
        kind = _KINDS[b.joint.kind]
        axis = f' axis="{_text(b.joint.axis)}"' if kind in ("hinge", "slide") else ""
        armature = f' armature="{_text(b.joint.armature)}"' if b.joint.armature else ""
        lines.append(f'<joint name={quoteattr(b.joint.name)} type="{kind}"{axis}{armature}/>')
        mass, com, tensor = _about_centre(b)
        rows = [tensor[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        lines.append(f'<inertial mass="{_text(mass)}" pos="{_text(com)}" fullinertia="{_text(rows)}"/>')
        lines += [*_bodies(robot, b.index), "</body>"]
    return lines


def pinocchio_model(robot: Robot) -> Any:
    """pinocchio.Model (of `pin`) of a tree: joints and bodies of the same names, armature and gravity."""
    import pinocchio as pin

    axes: dict[str, Any] = {"prismatic": pin.JointModelPrismaticUnaligned}
    axes |= dict.fromkeys(("revolute", "continuous"), pin.JointModelRevoluteUnaligned)
    plain: dict[str, Any] = {"spherical": pin.JointModelSpherical, "free": pin.JointModelFreeFlyer}
    _check_kinds("pinocchio", robot, {**axes, **plain})
    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = np.array(robot.gravity)
    number = {0: 0}
    for b in robot.bodies:
        kind = b.joint.kind
        made = plain[kind]() if kind in plain else axes[kind](np.array(b.joint.axis))
        k = model.addJoint(number[b.parent], made, pin.SE3(np.array(b.rotation), np.array(b.translation)), b.joint.name)
        number[b.index] = k
        mass, com, tensor = _about_centre(b)
        model.appendBodyToJoint(k, pin.Inertia(mass, com, tensor), pin.SE3.Identity())
        if b.joint.armature:
            first = model.joints[k].idx_v
            armature = np.array(model.armature)
            armature[first : first + model.joints[k].nv] = b.joint.armature
            model.armature = armature
    return model


def _check_kinds(what: str, robot: Robot, known: Any) -> None:
    odd = [f"{j.name} ({j.kind})" for j in robot.joints if j.kind not in known]
    if odd or robot.mimics:
        names = ", ".join([*odd, *(f"{j.name} (follows another)" for j in robot.mimics)])
        raise ModelError(robot.name, [f"{what}: joints of kinds that are not written: {names}"])


def _about_centre(b: Body) -> tuple[float, Array, Array]:
    """(mass, centre of mass, tensor about it)."""
    mass = b.inertia.mass
    com = b.inertia.moment / mass if mass else np.zeros(3)
    return mass, com, b.inertia.tensor - mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))


def _text(x: Any) -> str:
    return " ".join(repr(float(y)) for y in np.ravel(x))
