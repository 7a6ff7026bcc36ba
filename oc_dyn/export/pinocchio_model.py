"""A robot as pinocchio.Model, built joint by joint."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ModelError
from ..lie.so3 import axis_frame
from ..model import joints as jt
from ..model.fluid import in_fluid
from ..model.inertia import Inertia
from ..model.robot import Joint, Robot, check_robot
from ..types import Array


def pinocchio(robot: Robot) -> Any:
    """The robot as pinocchio.Model (of the wheel `pin`): joints, inertias, limits, gravity, armature, damping,
    friction, a frame for every link.

    od.interop.to_pinocchio(robot, model) converts coordinates and velocities. Continuous joints about x, y or z keep
    their angle as (cos, sin), as those that Pinocchio reads from URDF; about others they are revolute.
    Joints that follow another one are joints of their own, which the conversion fills by their rule and whose torques
    it adds to that of the owner. A cylindrical joint is "<joint>.angle" and "<joint>.distance", a universal one
    "<joint>.1" and "<joint>.2", with a body without mass between. Velocity limits that depend on the position, limits
    of acceleration, jerk and effort rate, and collision shapes are not carried over.
    Raises ModelError, naming the joint: a transform joint, a planar one whose axis is not z; forces of a fluid; where
    pin is not installed.
    """
    check_robot("export.pinocchio", robot)
    pin = _library(robot)
    problems = ["forces of a fluid have no place in a pinocchio.Model"] if in_fluid(robot) else []
    for j in robot.joints + robot.mimics:
        if j.kind == "transform":
            problems.append(f"joint {j.name!r} is {j.kind}; Pinocchio has no joint like it")
        if j.kind == "planar" and not np.allclose(j.axis / np.linalg.norm(j.axis), [0, 0, 1], atol=1e-9):
            problems.append(f"joint {j.name!r}: only planar joints with axis (0, 0, 1) can be converted")
    if problems:
        raise ModelError(f"export.pinocchio({robot.name})", problems)
    model = pin.Model()
    model.name, model.gravity.linear = robot.name, np.array(robot.gravity)
    if robot.base_parts.mass:
        model.appendBodyToJoint(0, _inertia(pin, robot.base_parts), pin.SE3.Identity())
    places = {0: 0}
    for b in robot.bodies:
        parent, at = places[b.parent], pin.SE3(np.array(b.rotation), np.array(b.translation))
        for name, kind, made in _parts(pin, b.joint):
            parent = model.addJoint(parent, made, at, name)
            model.addJointFrame(parent)
            at = pin.SE3.Identity()
            _facts(pin, model, b.joint, model.joints[parent], kind)
        places[b.index] = parent
        model.appendBodyToJoint(parent, _inertia(pin, b.inertia), pin.SE3.Identity())
    for f in robot.frames.values():
        joint = places[f.body]
        at = pin.SE3(np.array(f.rotation), np.array(f.translation))
        model.addFrame(pin.Frame(f.name, joint, model.getFrameId(model.names[joint]), at, pin.FrameType.BODY))
    return model


def _library(robot: Robot) -> Any:
    try:
        return importlib.import_module("pinocchio")
    except ImportError:
        raise ModelError(f"export.pinocchio({robot.name})", ["pinocchio is not installed; pip install pin"]) from None


def _inertia(pin: Any, inertia: Inertia) -> Any:
    """Their inertia; of a body without mass, its tensor about the origin."""
    return pin.Inertia(float(inertia.mass), np.array(inertia.com), np.array(inertia.tensor_com))


def _simple(pin: Any, kind: str, axis: Array) -> Any:
    """A joint about or along an axis (3,): of the class for x, y or z where it is one of these."""
    axis = axis / np.linalg.norm(axis)
    straight = {"revolute": "R", "prismatic": "P", "continuous": "RUB"}
    named = {"revolute": "Revolute", "prismatic": "Prismatic", "continuous": "Revolute"}  # Python has no other for it
    for letter, unit in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(axis, unit):
            return getattr(pin, f"JointModel{straight[kind]}{letter}")()
    return getattr(pin, f"JointModel{named[kind]}Unaligned")(axis)


def _parts(pin: Any, j: Joint) -> list[tuple[str, str, Any]]:
    """[(name, kind, their joint)] from the parent on."""
    whole: dict[str, Callable[[], Any]] = {
        "spherical": pin.JointModelSpherical, "free": pin.JointModelFreeFlyer, "planar": pin.JointModelPlanar,
    }  # fmt: skip
    axis = np.array(j.axis) / np.linalg.norm(j.axis) if j.kind not in jt.WITHOUT_AXIS else np.zeros(3)
    if j.kind in whole:
        return [(j.name, j.kind, whole[j.kind]())]
    if j.kind == "helical":
        return [(j.name, j.kind, pin.JointModelHelicalUnaligned(axis, j.pitch))]
    if j.kind == "cylindrical":
        kinds = (("angle", "revolute"), ("distance", "prismatic"))
        return [(f"{j.name}.{suffix}", kind, _simple(pin, kind, axis)) for suffix, kind in kinds]
    if j.kind == "universal":
        second = np.array(axis_frame(j.axis, 0.0), float)[:, 0]
        return [(f"{j.name}.{k}", "revolute", _simple(pin, "revolute", x)) for k, x in ((1, axis), (2, second))]
    return [(j.name, j.kind, _simple(pin, j.kind, axis))]


def _facts(pin: Any, model: Any, j: Joint, theirs: Any, kind: str) -> None:
    """Limits and drive of a joint of ours at the coordinates of one of theirs."""
    v = slice(theirs.idx_v, theirs.idx_v + theirs.nv)
    for names, value in (
        (("armature",), j.armature), (("damping",), j.damping),
        (("friction", "upperDryFrictionLimit"), j.friction), (("lowerDryFrictionLimit",), -j.friction),
        (("velocityLimit", "upperVelocityLimit"), j.velocity), (("lowerVelocityLimit",), -j.velocity),
        (("effortLimit", "upperEffortLimit"), j.effort), (("lowerEffortLimit",), -j.effort),
    ):  # fmt: skip
        for name in names:  # versions of pin differ in these
            array = getattr(model, name, None)
            if array is not None:
                array[v] = value
                setattr(model, name, array)
    if j.nq == 1 and theirs.nq == 1:
        for name, end in (("lowerPositionLimit", j.lower), ("upperPositionLimit", j.upper)):
            array = getattr(model, name)
            array[theirs.idx_q] = end
            setattr(model, name, array)
