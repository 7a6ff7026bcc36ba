"""Building an ElasticRobot from a Robot, its springs and its motors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..friction import SMOOTHING
from ..model.fluid import refuse_fluid
from ..model.loops import LoopRobot
from ..model.robot import Robot
from ..types import Named, Numbers
from .coupling import Coupling, Rows
from .drives import drive_joints
from .model import ElasticJoint, ElasticRobot
from .potentials import Potential
from .read_friction import Friction, read_friction
from .read_motors import MotorReader, read_inertia
from .read_potentials import matrix_energy, read_across, read_parallel
from .read_springs import read_springs
from .real import rebuilt
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
    link_damping: Named = 0.0,
    link_friction: Named = 0.0,
    link_smoothing: Named = SMOOTHING,
    joint_friction: bool | str | None = None,
    parallel: Mapping[str, Any] | Callable[..., Any] | None = None,
    across: Callable[..., Any] | None = None,
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
    coupling: for the complete model: matrix S (v, motors) of the kinetic energy q'^T S theta' between links and motors,
        constant, or a casadi.Function or callable S(q); strictly upper triangular, but for rows of rigid joints; with
        a column for each motor, those of rigid joints included. See motor_coupling. What a matrix gear_ratio couples of
        rigid joints with others counts there, too.
    friction_smoothing [rad/s, m/s]: speed at which a motor's Coulomb friction has reached tanh(1) = 76 % of its value:
        a number, {motor: value} or one per motor.
    link_damping [Nm s/rad, N s/m], link_friction [Nm, N], link_smoothing: the same on the links' side, between a link
        and the one before it, for elastic and rigid joints: a number for all joints but free ones, {velocity: value} or
        one per velocity, in loops per drive. The flat map differentiates link_friction twice: a smoothing that is small
        against the speeds of a motion makes large motor torques at standstill.
    joint_friction: damping and friction of the robot's joints, as its file gives them: "links" adds them on the links'
        side; "motors" or True adds them to those of their motors, as a gear's friction acts there; False ignores them;
        None, the default, ignores them with a ModelWarning that names the joints.
    parallel: springs between a link and the one before, beside the motors: {joint: stiffness, or (stiffness, position
        at rest)}, or a casadi.Function or callable q -> energy [J] of any springs of links alone, such as biarticular
        ones; q are the positions of the joints of one coordinate.
    across: springs across joints, besides those of `stiffness`, where 0 is none of the joint's own: a casadi.Function
        or callable (q, theta) -> energy [J], q as for parallel, theta of the elastic joints. With a symmetric matrix as
        stiffness it is (theta - q)^T stiffness (theta - q) / 2. The flat map solves for all theta together; not with
        loops, springs of variable stiffness or the complete model.
    actuated: of a robot with loops the joints of its tree that have the motors, one for each independent velocity,
        which are the joints above then; by default those of its own coordinates. q and v of the links stay those.
    An armature of the robot at an elastic joint is the inertia of its motor: it is used as motor_inertia if none is
    given, and refused together with one. At rigid joints motor inertias add to it.
    Raises ModelError listing every problem; UnknownName.
    """
    seen, drives, springs, across = _checked_springs(robot, stiffness, damping, actuated, across)
    refuse_fluid("an elastic robot", robot)
    layout = _layout(seen, springs)
    refuse_fluid("an elastic robot", robot)
    reader = MotorReader(robot.name, layout.motor_names, [])
    gear, inertia = _gear_and_inertia(seen, reader, layout.joints, gear_ratio, motor_inertia, rotor_inertia)
    at_motors = (motor_damping, motor_friction, friction_smoothing)
    on_links = (link_damping, link_friction, link_smoothing)
    friction = read_friction(robot, seen, reader, at_motors, on_links, joint_friction)
    sigma_inertia = _stiffness_inertia(robot, layout.joints, stiffness_inertia, reader.problems)
    coupling = _coupling(robot, layout, coupling, inertia, reader.problems)
    beside = read_parallel(seen, parallel, reader.problems)
    between = read_across(seen, across, sum(len(j.theta) for j in layout.joints), reader.problems)
    _check_across(layout, between, coupling, drives, reader.problems)
    if reader.problems:
        raise ModelError(robot.name, reader.problems)
    made = _assembled((robot, seen, drives), layout, gear, inertia, friction, sigma_inertia, coupling)
    return replace(made, parallel=beside, across=between) if beside or between else made


def _check_across(
    layout: _Layout, across: Potential | None, coupling: Any, drives: tuple[str, ...], problems: list[str],
) -> None:  # fmt: skip
    """Note what springs across joints are not for."""
    odd = [j.name for j in layout.joints if len(j.theta) > 1 or j.sigma is not None]
    for case, what in (
        (bool(odd), f"springs of variable stiffness ({', '.join(odd)})"),
        (coupling is not None, "the complete model (coupling)"),
        (bool(drives), "drives of robots with loops"),
    ):
        if across is not None and case:
            problems.append(f"across: springs across joints together with {what} are not there; leave one of them out")


@dataclass(frozen=True)
class _Layout:
    """Elastic joints, coordinates without a spring, and the rows of all in the vectors of motors."""

    joints: tuple[ElasticJoint, ...]
    rigid: tuple[int, ...]  # velocity coordinates
    rigid_motors: tuple[int, ...]  # rows of their motors
    motor_names: tuple[str, ...]
    unactuated: tuple[int, ...]  # velocity coordinates of free joints


def _checked_springs(
    robot: Robot, stiffness: Any, damping: Any, actuated: Sequence[str] | None, across: Any,
) -> tuple[Any, tuple[str, ...], dict[str, Spring], Any]:  # fmt: skip
    """(robot, or the joints of it that have drives; their names, see drive_joints; {joint: spring}; energy of springs
    across joints), of a robot that can be elastic."""
    if not isinstance(robot, Robot):
        raise ModelError("elastic_robot", [f"got {type(robot).__name__}, expected a Robot"])
    problems: list[str] = []
    seen, drives = drive_joints(robot, actuated, problems)
    if problems:
        raise ModelError(robot.name, problems)
    if "free" in robot.features and isinstance(robot, LoopRobot):
        problems.append("it has loops and a free joint; elastic robots have the one or the other")
    if _is_matrix(stiffness):
        if across is not None:
            problems.append("stiffness is a matrix and across is given; give one of them")
        across, stiffness = matrix_energy(seen, stiffness, problems), 0.0
    springs = {} if problems else read_springs(seen, stiffness, damping, problems, across is not None)
    if isinstance(robot, LoopRobot):
        odd = [name for name, s in springs.items() if s.variable or len(s.motors) > 1]
        if odd:
            problems.append(
                f"joint {odd[0]!r} has a spring of variable stiffness, which is for robots without loops; give springs "
                "of fixed law"
            )
    if problems:
        raise ModelError(robot.name, problems)
    return seen, drives, springs, across


def _is_matrix(stiffness: Any) -> bool:
    """Whether a stiffness is a square matrix: numbers of one each are a list, or a column."""
    if isinstance(stiffness, (dict, np.ma.MaskedArray)) or np.ndim(stiffness) != 2:
        return False
    return np.shape(stiffness)[0] == np.shape(stiffness)[1] > 1


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


def _coupling(
    robot: Robot, layout: _Layout, coupling: Any, inertia: Any, problems: list[str],
) -> Coupling | None:  # fmt: skip
    """The complete model's coupling, with what a gear matrix couples of rigid joints; None without."""
    velocity = dict(zip(layout.rigid_motors, layout.rigid, strict=True))
    velocity |= {m: j.v for j in layout.joints for m in j.tau}
    elastic = tuple(m for j in layout.joints for m in j.tau)
    rows = Rows(robot.nv, tuple(velocity[m] for m in range(len(velocity))), elastic, layout.rigid_motors)
    geared = None if inertia is None else _geared(rows, inertia)
    if coupling is None and geared is None:
        return None
    if isinstance(robot, LoopRobot):
        problems.append("coupling: the complete model is for robots without loops; leave coupling out")
        return None
    if layout.unactuated:
        problems.append("coupling: the complete model is for fixed bases; with a free joint see od.elastic.with_rotors")
        return None
    if robot.nq != robot.nv:
        problems.append("coupling: the complete model is for robots with joints of one coordinate alone")
    if problems:
        return None
    if geared is None:
        return Coupling.of(rows, coupling, problems)
    own = Coupling.of(rows, np.zeros(geared.shape) if coupling is None else coupling, problems)
    return own and Coupling.of(rows, lambda q: own.full(q) + ca.DM(geared), problems)


def _geared(rows: Rows, inertia: Any) -> Any:
    """S (v, motors) of what a gear matrix couples of motors of rigid joints with others; None if nothing."""
    S = np.zeros((rows.nv, len(rows.columns)))
    for k, m in enumerate(rows.rigid):
        for other in (*rows.elastic, *rows.rigid[k + 1 :]):
            S[rows.columns[m], other] = inertia[m, other]
    return S if S.any() else None


def _assembled(
    of: tuple[Robot, Any, tuple[str, ...]], layout: _Layout, gear: Any, inertia: Any,
    friction: tuple[Friction, Friction], sigma_inertia: Any, coupling: Coupling | None,
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
        motor_damping=friction[0][0],
        motor_friction=friction[0][1],
        friction_smoothing=friction[0][2],
        link_damping=friction[1][0],
        link_friction=friction[1][1],
        link_smoothing=friction[1][2],
        stiffness_inertia=sigma_inertia,
        coupling=coupling,
        drives=drives,
        unactuated=layout.unactuated,
    )
    if coupling:
        coupling.check_energy(elastic)
    return elastic
