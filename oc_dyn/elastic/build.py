"""Making an ElasticRobot: what is given for joints and motors, read and checked."""

import warnings

import numpy as np

from ..errors import ModelError, ModelWarning, ShapeError, UnknownName
from ..friction import SMOOTHING
from ..model.robot import Robot
from ..numbers import as_floats
from .coupling import Coupling
from .model import ElasticJoint, ElasticRobot, rebuilt
from .springs import SPRINGS, LinearSpring

_ONE = ("revolute", "continuous", "prismatic", "helical")  # joints that may be elastic


def elastic_robot(
    robot,
    stiffness,
    *,
    damping=0.0,
    motor_inertia=None,
    rotor_inertia=None,
    gear_ratio=1.0,
    motor_damping=0.0,
    motor_friction=0.0,
    stiffness_inertia=None,
    coupling=None,
    friction_smoothing: float | list | dict = SMOOTHING,
    joint_friction: bool | None = None,
):
    """An ElasticRobot from a Robot on a fixed base.

    stiffness [Nm/rad, N/m]: a number for all joints, {joint: value}, or one a joint; a value is a number, inf for a
        rigid joint, or a spring (LinearSpring, NonlinearSpring, VariableSpring, AntagonisticSprings). In a dict, joints
        left out are rigid.
    damping [Nm s/rad, N s/m]: of the springs given as numbers: a number, {joint: value}, or one a joint, as stiffness.
    motor_inertia [kg m^2, kg]: of the motors as seen at the joints: a number for all, {motor: value}, one a motor, or a
        full matrix (motors, motors). Motors are called as their joints, or <joint>.agonist and <joint>.antagonist.
    rotor_inertia [kg m^2]: instead of motor_inertia, about the rotors' own axes; gear_ratio (number, {motor: value},
        one a motor, or a matrix N with motor speeds = N joint speeds) makes it N^T J N.
    motor_damping [Nm s/rad], motor_friction [Nm] (Coulomb, smoothed as in function(friction=True)): on the motors, as
        seen at the joints: a number, {motor: value}, or one a motor.
    stiffness_inertia: of the drives of sigma, of VariableSprings: a number, {joint: value}, or one a joint; None: sigma
        is prescribed.
    coupling: makes it the complete model: matrix S (v, theta) of the kinetic energy q'^T S theta' between links and
        motors, constant, or a casadi.Function or callable S(q); strictly upper triangular. See motor_coupling.
    friction_smoothing [rad/s, m/s]: speed at which a motor's Coulomb friction has reached tanh(1) = 76 % of its value:
        a number, {motor: value} or one a motor.
    joint_friction: what becomes of damping and friction that the robot's own joints have: True adds them to
        motor_damping and motor_friction of the joint's motor, as a gear's friction acts there; False leaves them out;
        None, the default, leaves them out with a ModelWarning that names the joints.
    An armature that the robot already has at an elastic joint is a motor's: it is taken as its motor_inertia, where
    none is given, and refused together with one. At rigid joints motor inertias add to it.
    Raises ModelError listing every problem; UnknownName.
    """
    if not isinstance(robot, Robot):
        raise ModelError("elastic_robot", [f"got {type(robot).__name__}, expected a Robot"])
    problems = []
    if "free" in robot.features:
        problems.append("it has a free joint; elastic robots stand on a fixed base")
    springs = _springs(robot, stiffness, damping, problems)
    if problems:
        raise ModelError(robot.name, problems)

    owners = [j for j in robot.joints for _ in range(j.nv)]
    joints, rigid, rigid_motors, motor_names = [], [], [], []
    for k, owner in enumerate(owners):
        spring = springs.get(owner.name)
        if spring is None:
            rigid.append(k)
            rigid_motors.append(len(motor_names))
            motor_names.append(robot.velocity_names[k])
            continue
        rows = tuple(range(len(motor_names), len(motor_names) + len(spring.motors)))
        before = sum(len(j.theta) for j in joints)
        theta = tuple(range(before, before + len(rows)))
        sigma = sum(j.sigma is not None for j in joints) if spring.variable else None
        joints.append(ElasticJoint(owner.name, owner.q_index, owner.v_index, spring, theta, rows, sigma))
        motor_names += [owner.name + suffix for suffix in spring.motors]

    reader = _Reader(robot.name, motor_names, problems)
    elastic = [m for j in joints for m in j.tau]
    gear = reader.matrix("gear_ratio", gear_ratio)
    if gear is not None and not abs(np.linalg.det(gear)) > 0:
        problems.append("gear_ratio is singular")
    inertia = _motor_inertia(robot, reader, joints, elastic, motor_inertia, rotor_inertia, gear)
    friction = [
        reader.vector(name, x, lowest=0.0)
        for name, x in (("motor_damping", motor_damping), ("motor_friction", motor_friction))
    ]
    _joint_friction(robot, reader, friction, joint_friction, problems)
    smoothing = reader.vector("friction_smoothing", friction_smoothing, positive=True, default=SMOOTHING)
    driven = [j.name for j in joints if j.spring.adjusted]
    sigma_inertia = np.zeros(0)
    if stiffness_inertia is not None:
        if not driven:
            problems.append("stiffness_inertia is given, but no joint has a VariableSpring")
        elif len(driven) < sum(j.sigma is not None for j in joints):
            problems.append("stiffness_inertia is given, but joints with AntagonisticSprings have no coordinate sigma")
        else:
            sigma_inertia = _Reader(robot.name, driven, problems).vector(
                "stiffness_inertia", stiffness_inertia, positive=True
            )
    if coupling is not None:
        coupling = _coupling(robot, joints, rigid, coupling, problems)
    if problems:
        raise ModelError(robot.name, problems)

    armature = {j.name: 0.0 for j in joints}
    for k, m in zip(rigid, rigid_motors, strict=True):
        if inertia[m, m]:
            armature[owners[k].name] = owners[k].armature + inertia[m, m]
    made = ElasticRobot(
        robot=robot,
        links=rebuilt(robot, armature=armature),
        joints=tuple(joints),
        rigid=tuple(rigid),
        rigid_motors=tuple(rigid_motors),
        motor_names=tuple(motor_names),
        motor_inertia=inertia[np.ix_(elastic, elastic)],
        gear=gear,
        motor_damping=friction[0],
        motor_friction=friction[1],
        friction_smoothing=smoothing,
        stiffness_inertia=sigma_inertia,
        coupling=coupling,
    )
    if coupling:
        coupling.check_energy(made)
    return made


def _springs(robot, stiffness, damping, problems):
    """{joint: spring} of the elastic joints."""
    can = [j.name for j in robot.joints if j.kind in _ONE]
    if isinstance(stiffness, dict):
        for name in stiffness:
            if name not in can:
                raise UnknownName(f"joint of {robot.name} that can be elastic (of one coordinate)", name, can)
        given = dict(stiffness)
    elif isinstance(stiffness, np.ma.MaskedArray):
        problems.append(_MASKED.format("stiffness"))
        return {}
    elif isinstance(stiffness, SPRINGS) or np.ndim(stiffness) == 0:
        given = dict.fromkeys(can, stiffness)
    else:
        values = list(np.ravel(np.asarray(stiffness, object)))
        if len(values) != len(robot.joints):
            problems.append(
                f"stiffness: got {len(values)} values, expected one for each of the {len(robot.joints)} joints: "
                f"{', '.join(j.name for j in robot.joints)}"
            )
            return {}
        given = {j.name: x for j, x in zip(robot.joints, values, strict=True)}
        given = {n: x for n, x in given.items() if n in can or isinstance(x, SPRINGS) or _number(x) != np.inf}
        problems += [
            f"joint {n!r} has several coordinates and must be rigid: stiffness inf" for n in given if n not in can
        ]
    springs, damping = {}, _damping(robot, given, damping, problems)
    for name, x in given.items():
        if isinstance(x, SPRINGS):
            springs[name] = x
            continue
        k, d = _number(x), damping.get(name, 0.0)
        if not k > 0:
            problems.append(
                f"joint {name!r}: stiffness is {x!r}, expected a positive number, inf if rigid, or a spring"
            )
        if not 0 <= d < np.inf:
            problems.append(f"joint {name!r}: damping is {d!r}, expected a finite number of at least 0")
        if 0 < k < np.inf:
            springs[name] = LinearSpring(k, d if 0 <= d < np.inf else 0.0)
    for name, d in damping.items():
        if name not in springs and (name not in given or _number(given[name]) == np.inf):
            raise UnknownName(f"elastic joint of {robot.name} for damping", name, springs)
        if isinstance(given[name], SPRINGS) and d != 0:
            problems.append(
                f"joint {name!r}: damping {d:g} is given beside a spring that has its own; give it to the spring"
            )
    if not springs and not problems:
        problems.append("no joint is elastic; a rigid robot needs no springs, use its inverse_dynamics")
    return springs


def _damping(robot, given, damping, problems):
    """{joint: damping} from a number for the springs given as numbers, {joint: value}, or one a joint."""
    if isinstance(damping, dict):
        return {name: _number(x) for name, x in damping.items()}
    if isinstance(damping, np.ma.MaskedArray):
        problems.append(_MASKED.format("damping"))
        return {}
    values = np.ravel(np.asarray(damping, object))
    plain = [n for n, x in given.items() if not isinstance(x, SPRINGS) and np.isfinite(_number(x))]
    if values.size == 1:
        return dict.fromkeys(plain, _number(values[0]))
    if values.size != len(robot.joints):
        problems.append(
            f"damping: got {values.size} values, expected one for each of the {len(robot.joints)} joints: "
            f"{', '.join(j.name for j in robot.joints)}"
        )
        return {}
    found = {j.name: _number(x) for j, x in zip(robot.joints, values, strict=True)}
    rigid = [n for n, x in found.items() if n not in given or (n not in plain and not isinstance(given[n], SPRINGS))]
    problems += [f"joint {n!r}: damping {found[n]:g} is given, but the joint is rigid" for n in rigid if found[n] != 0]
    return {n: x for n, x in found.items() if n not in rigid}


def _motor_inertia(robot, reader, joints, elastic, motor_inertia, rotor_inertia, gear):
    """(motors, motors) as seen at the joints."""
    problems = reader.problems
    armature = {j.name: robot.joint(j.name).armature for j in joints}
    if motor_inertia is not None and rotor_inertia is not None:
        problems.append("motor_inertia and rotor_inertia are both given; the first is as seen at the joint, give one")
        return None
    if motor_inertia is None and rotor_inertia is None:
        without = [n for n, x in armature.items() if not x]
        if without:
            problems.append(
                f"no motor inertia for {', '.join(without)}; give motor_inertia, or rotor_inertia and gear_ratio"
            )
            return None
        return np.diag(
            [armature.get(n.removesuffix(".agonist").removesuffix(".antagonist"), 0.0) for n in reader.names]
        )
    twice = [f"{n!r} ({x:g} kg m^2)" for n, x in armature.items() if x]
    if twice:
        problems.append(
            f"a motor inertia is given, and the robot already has an armature at {', '.join(twice)}: it would count "
            "twice; leave out motor_inertia to take the armature as such, or build the robot without"
        )
    if rotor_inertia is not None:
        J = reader.matrix("rotor_inertia", rotor_inertia, default=0.0)
        B = None if J is None or gear is None else gear.T @ J @ gear
    else:
        B = reader.matrix("motor_inertia", motor_inertia, default=0.0)
    if B is None:
        return None
    if np.abs(B - B.T).max() > 1e-12 * np.abs(B).max():
        problems.append("the motor inertia is not symmetric")
    part = B[np.ix_(elastic, elastic)]
    low = [reader.names[m] for m in elastic if not B[m, m] > 0]
    if low:
        problems.append(f"the motor inertia of {', '.join(low)} must be positive")
    elif np.linalg.eigvalsh(part).min() <= 0:
        problems.append("the matrix of motor inertias is not positive definite")
    others = [m for m in range(len(B)) if m not in elastic]
    if np.any(np.delete(B, others, axis=0)[:, others]) or np.any(
        B[np.ix_(others, others)] - np.diag(np.diag(B)[others])
    ):
        problems.append("the motor inertia couples a rigid joint with another; only elastic joints may be coupled")
    if np.any(np.diag(B) < 0):
        problems.append("motor inertias must not be negative")
    several = [reader.names[m] for m in others if B[m, m] and reader.names[m] not in [j.name for j in robot.joints]]
    if several:
        problems.append(f"{', '.join(several)} belong to joints of several coordinates and cannot have a motor inertia")
    return B


def _joint_friction(robot, reader, friction, counts, problems):
    """Adds the friction of the robot's joints to that of their motors, or says that it is left out."""
    if counts is not None and not isinstance(counts, (bool, np.bool_)):
        problems.append(f"joint_friction is {counts!r}, expected True, False or None")
        return
    names = [j.name for j in robot.joints if j.damping or j.friction]
    if names and counts is None:
        text = (
            f"elastic_robot {robot.name}: damping and friction of the joints {', '.join(names)} are left out; give "
            "joint_friction=True to count them at the motors, or False if they are not meant"
        )
        warnings.warn(text, ModelWarning, stacklevel=3)
    for name in names if counts else ():
        rows = [m for m, x in enumerate(reader.names) if x == name]
        if len(rows) != 1:
            problems.append(
                f"joint_friction: joint {name!r} has no motor of its own to bear its friction; give motor_damping and "
                "motor_friction instead"
            )
            continue
        friction[0][rows[0]] += robot.joint(name).damping
        friction[1][rows[0]] += robot.joint(name).friction


def _coupling(robot, joints, rigid, coupling, problems):
    if rigid:
        problems.append(
            f"coupling: the complete model needs all joints elastic; {robot.velocity_names[rigid[0]]} is rigid"
        )
    odd = [j.name for j in joints if len(j.theta) > 1 or j.sigma is not None]
    if odd:
        problems.append(f"coupling: the complete model is for springs of fixed law; that of {odd[0]} is variable")
    return None if problems else Coupling.of(robot, coupling, problems)


class _Reader:
    """Reads numbers, dicts and vectors by the names of motors; notes what is wrong."""

    def __init__(self, robot, names, problems):
        self.robot, self.names, self.problems = robot, list(names), problems

    def vector(self, what, value, lowest=-np.inf, positive=False, default=0.0):
        n = len(self.names)
        if isinstance(value, dict):
            for name in value:
                if name not in self.names:
                    raise UnknownName(f"motor of {self.robot} for {what}", name, self.names)
            value = [value.get(name, default) for name in self.names]
        if isinstance(value, np.ma.MaskedArray):
            self.problems.append(_MASKED.format(what))
            return np.zeros(n)
        given = np.ravel(np.asarray(value, object)).tolist()
        value = np.asarray([_number(x) for x in given])
        if value.size == 1:
            value = np.full(n, value[0])
        if value.shape != (n,):
            self.problems.append(f"{what}: got {value.size} values, expected {n}: {', '.join(self.names)}")
            return np.zeros(n)
        if not np.all(np.isfinite(value)) or np.any(value < lowest) or (positive and not np.all(value > 0)):
            wanted = (
                "positive numbers"
                if positive
                else "finite numbers" + (f" of at least {lowest:g}" if lowest > -np.inf else "")
            )
            self.problems.append(f"{what}: got {given}, expected {wanted}")
        return value

    def matrix(self, what, value, default=1.0):
        n, before = len(self.names), len(self.problems)
        if isinstance(value, (dict, np.ma.MaskedArray)) or np.ndim(value) != 2 or np.shape(value) == (n, 1):
            value = np.diag(self.vector(what, value, default=default))
            return value if len(self.problems) == before else None
        try:
            value = np.array(as_floats(what, value))
        except ShapeError as error:
            self.problems.append(str(error))
            return None
        if value.shape != (n, n) or not np.all(np.isfinite(value)):
            self.problems.append(
                f"{what}: got a matrix of shape {value.shape}, expected ({n}, {n}), finite: {', '.join(self.names)}"
            )
            return None
        return value


_MASKED = "{}: got a masked array, expected numbers without a mask"


def _number(x):
    """A float; not a number for what is none, as texts, truth values and masks, which float() would take."""
    try:
        x = as_floats("", x)
    except ShapeError:
        return float("nan")
    return float(x.ravel()[0]) if x.size == 1 else float("nan")
