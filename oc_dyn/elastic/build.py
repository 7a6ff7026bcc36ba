"""Building an ElasticRobot from a Robot, its springs and its motors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ModelError
from ..friction import SMOOTHING
from ..model.fluid import refuse_fluid
from ..model.loops import LoopRobot
from ..model.robot import Robot
from ..types import Named, Numbers
from .coupling import Coupling
from .drives import drive_joints
from .model import ElasticJoint, ElasticRobot, rebuilt
from .read_motors import MotorReader, read_friction, read_inertia
from .read_springs import read_springs
from .springs import Spring


def elastic_robot(
    robot: Robot,
    stiffness: float | Spring | Sequence[float | Spring] | Mapping[str, float | Spring],
    *,
    damping: Named = 0.0,
    motor_inertia: Named | None = None,
    rotor_inertia: Named | None = None,
    gear_ratio: Named = 1.0,
    motor_damping: Named = 0.0,
    motor_friction: Named = 0.0,
    stiffness_inertia: Named | None = None,
    coupling: Numbers | Callable[..., Any] | None = None,
    friction_smoothing: Named = SMOOTHING,
    joint_friction: bool | None = None,
    actuated: Sequence[str] | None = None,
) -> ElasticRobot:
    """An ElasticRobot from a Robot; a free joint of it has no motor.

    stiffness [Nm/rad, N/m]: a number for all joints, {joint: value} (joints omitted are rigid), or one per joint; a
        value is a number, inf for a rigid joint, or a spring (LinearSpring, NonlinearSpring, VariableSpring,
        AntagonisticSprings). Or the springs of an SDF file, od.sdf_springs(file): each is between its joint and a motor
        which stands at the spring's reference in the file; all other joints are rigid.
    damping [Nm s/rad, N s/m]: of the springs given as numbers: in the same forms.
    motor_inertia [kg m^2, kg]: of the motors as seen at the joints: a number for all, {motor: value}, one per motor, or
        a full matrix (motors, motors). Motors have the names of their joints, or <joint>.agonist and .antagonist.
    rotor_inertia [kg m^2]: instead of motor_inertia, about the rotors' own axes; gear_ratio (number, {motor: value},
        one per motor, or a matrix N with motor speeds = N joint speeds) makes it N^T J N.
    motor_damping [Nm s/rad], motor_friction [Nm] (Coulomb, smoothed as in function(friction=True)): of the motors, as
        seen at the joints: a number, {motor: value}, or one per motor.
    stiffness_inertia: of the drives of sigma, of VariableSprings: a number, {joint: value}, or one per joint; None:
        sigma is prescribed.
    coupling: for the complete model: matrix S (v, theta) of the kinetic energy q'^T S theta' between links and motors,
        constant, or a casadi.Function or callable S(q); strictly upper triangular. See motor_coupling.
    friction_smoothing [rad/s, m/s]: speed at which a motor's Coulomb friction has reached tanh(1) = 76 % of its value:
        a number, {motor: value} or one per motor.
    joint_friction: True adds damping and friction of the robot's joints to those of their motors, as a gear's friction
        acts there; False ignores them; None, the default, ignores them with a ModelWarning that names the joints.
    actuated: of a robot with loops the joints of its tree that have the motors, one for each independent velocity,
        which are the joints above then; by default those of its own coordinates. q and v of the links stay those.
    An armature of the robot at an elastic joint is the inertia of its motor: it is used as motor_inertia if none is
    given, and refused together with one. At rigid joints motor inertias add to it.
    Raises ModelError listing every problem; UnknownName.
    """
    seen, drives, springs = _checked_springs(robot, stiffness, damping, actuated)
    refuse_fluid("an elastic robot", robot)
    layout = _layout(seen, springs)
    refuse_fluid("an elastic robot", robot)
    reader = MotorReader(robot.name, layout.motor_names, [])
    gear, inertia = _gear_and_inertia(seen, reader, layout.joints, gear_ratio, motor_inertia, rotor_inertia)
    all_joints = robot.tree if isinstance(robot, LoopRobot) else robot
    friction = read_friction(all_joints, reader, motor_damping, motor_friction, joint_friction)
    friction.append(reader.vector("friction_smoothing", friction_smoothing, positive=True, default=SMOOTHING))
    sigma_inertia = _stiffness_inertia(robot, layout.joints, stiffness_inertia, reader.problems)
    coupling = None if coupling is None else _coupling(robot, layout, coupling, reader.problems)
    if reader.problems:
        raise ModelError(robot.name, reader.problems)
    return _assembled((robot, seen, drives), layout, gear, inertia, friction, sigma_inertia, coupling)


@dataclass(frozen=True)
class _Layout:
    """Elastic joints, coordinates without a spring, and the rows of all in the vectors of motors."""

    joints: tuple[ElasticJoint, ...]
    rigid: tuple[int, ...]  # velocity coordinates
    rigid_motors: tuple[int, ...]  # rows of their motors
    motor_names: tuple[str, ...]
    unactuated: tuple[int, ...]  # velocity coordinates of free joints


def _checked_springs(
    robot: Robot, stiffness: Any, damping: Any, actuated: Sequence[str] | None,
) -> tuple[Any, tuple[str, ...], dict[str, Spring]]:  # fmt: skip
    """(robot, or the joints of it that have drives; their names, see drive_joints; {joint: spring}), of a robot that
    can be elastic."""
    if not isinstance(robot, Robot):
        raise ModelError("elastic_robot", [f"got {type(robot).__name__}, expected a Robot"])
    problems: list[str] = []
    seen, drives = drive_joints(robot, actuated, problems)
    if problems:
        raise ModelError(robot.name, problems)
    if "free" in robot.features and isinstance(robot, LoopRobot):
        problems.append("it has loops and a free joint; elastic robots have the one or the other")
    springs = read_springs(seen, stiffness, damping, problems)
    if isinstance(robot, LoopRobot):
        odd = [name for name, s in springs.items() if s.variable or len(s.motors) > 1]
        if odd:
            problems.append(
                f"joint {odd[0]!r} has a spring of variable stiffness, which is for robots without loops; give springs "
                "of fixed law"
            )
    if problems:
        raise ModelError(robot.name, problems)
    return seen, drives, springs


def _layout(robot: Any, springs: dict[str, Spring]) -> _Layout:
    joints: list[ElasticJoint] = []
    motor_names: list[str] = []
    rigid, rigid_motors, unactuated = [], [], []
    owners = [j for j in robot.joints for _ in range(j.nv)]
    for k, owner in enumerate(owners):
        spring = springs.get(owner.name)
        if owner.kind == "free":
            unactuated.append(k)
            continue
        if spring is None:
            rigid.append(k)
            rigid_motors.append(len(motor_names))
            motor_names.append(robot.velocity_names[k])
            continue
        rows = tuple(range(len(motor_names), len(motor_names) + len(spring.motors)))
        before = sum(len(j.theta) for j in joints)
        theta = tuple(range(before, before + len(rows)))
        sigma = sum(1 for j in joints if j.sigma is not None) if spring.variable else None
        joints.append(ElasticJoint(owner.name, owner.q_index, owner.v_index, spring, theta, rows, sigma))
        motor_names += [owner.name + suffix for suffix in spring.motors]
    return _Layout(tuple(joints), tuple(rigid), tuple(rigid_motors), tuple(motor_names), tuple(unactuated))


def _gear_and_inertia(
    robot: Any, reader: MotorReader, joints: tuple[ElasticJoint, ...], gear_ratio: Any, motor_inertia: Any,
    rotor_inertia: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """(gear matrix, motor inertia as seen at the joints), both (motors, motors)."""
    gear = reader.matrix("gear_ratio", gear_ratio)
    if gear is not None and not abs(np.linalg.det(gear)) > 0:
        reader.problems.append("gear_ratio is singular")
    return gear, read_inertia(robot, reader, joints, motor_inertia, rotor_inertia, gear)


def _stiffness_inertia(
    robot: Robot, joints: tuple[ElasticJoint, ...], stiffness_inertia: Any, problems: list[str],
) -> Any:  # fmt: skip
    """Inertias of the drives of sigma; none if sigma is prescribed."""
    driven = [j.name for j in joints if j.spring.adjusted]
    if stiffness_inertia is None:
        return np.zeros(0)
    if not driven:
        problems.append("stiffness_inertia is given, but no joint has a VariableSpring")
        return None
    if len(driven) < sum(1 for j in joints if j.sigma is not None):
        problems.append("stiffness_inertia is given, but joints with AntagonisticSprings have no coordinate sigma")
        return None
    return MotorReader(robot.name, driven, problems).vector("stiffness_inertia", stiffness_inertia, positive=True)


def _coupling(robot: Robot, layout: _Layout, coupling: Any, problems: list[str]) -> Coupling | None:
    if isinstance(robot, LoopRobot):
        problems.append("coupling: the complete model is for robots without loops; leave coupling out")
        return None
    if layout.unactuated:
        problems.append("coupling: the complete model is for fixed bases; with a free joint see od.elastic.with_rotors")
        return None
    if layout.rigid:
        rigid = robot.velocity_names[layout.rigid[0]]
        problems.append(f"coupling: the complete model needs all joints elastic; {rigid} is rigid")
    odd = [j.name for j in layout.joints if len(j.theta) > 1 or j.sigma is not None]
    if odd:
        problems.append(f"coupling: the complete model is for springs of fixed law; that of {odd[0]} is variable")
    return None if problems else Coupling.of(robot, coupling, problems)


def _assembled(
    of: tuple[Robot, Any, tuple[str, ...]], layout: _Layout, gear: Any, inertia: Any, friction: Any, sigma_inertia: Any,
    coupling: Coupling | None,
) -> ElasticRobot:  # fmt: skip
    """The ElasticRobot; motor inertias of rigid joints become armature of its links. of: the robot, its joints with
    drives, and their names."""
    robot, seen, drives = of
    owners = [j for j in seen.joints for _ in range(j.nv)]
    armature = {j.name: 0.0 for j in layout.joints}
    for k, m in zip(layout.rigid, layout.rigid_motors, strict=True):
        if inertia[m, m]:
            armature[owners[k].name] = owners[k].armature + inertia[m, m]
    rows = [m for j in layout.joints for m in j.tau]
    elastic = ElasticRobot(
        robot=robot,
        links=rebuilt(robot, armature=armature),
        joints=layout.joints,
        rigid=layout.rigid,
        rigid_motors=layout.rigid_motors,
        motor_names=layout.motor_names,
        motor_inertia=inertia[np.ix_(rows, rows)],
        gear=gear,
        motor_damping=friction[0],
        motor_friction=friction[1],
        friction_smoothing=friction[2],
        stiffness_inertia=sigma_inertia,
        coupling=coupling,
        drives=drives,
        unactuated=layout.unactuated,
    )
    if coupling:
        coupling.check_energy(elastic)
    return elastic
