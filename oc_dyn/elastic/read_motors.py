"""Values of the motors of an elastic robot as a user gives them: by name, in a list or as a matrix."""

import numpy as np

from ..errors import ShapeError, UnknownName
from ..numbers import as_floats

MASKED = "{}: got a masked array, expected numbers without a mask"


class MotorReader:
    """Reads numbers, dicts, vectors and matrices by the names of motors; appends what is wrong to problems."""

    def __init__(self, robot, names, problems, kind="motor"):
        self.robot, self.names, self.problems, self.kind = robot, list(names), problems, kind

    def vector(self, what, value, lowest=-np.inf, positive=False, default=0.0):
        """(motors,) values from a number, {motor: value} (default for others) or one per motor."""
        n = len(self.names)
        if isinstance(value, dict):
            for name in value:
                if name not in self.names:
                    raise UnknownName(f"{self.kind} of {self.robot} for {what}", name, self.names)
            value = [value.get(name, default) for name in self.names]
        if isinstance(value, np.ma.MaskedArray):
            self.problems.append(MASKED.format(what))
            return np.zeros(n)
        inputs = np.ravel(np.asarray(value, object)).tolist()
        value = np.asarray([number_or_nan(x) for x in inputs])
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
            self.problems.append(f"{what}: got {inputs}, expected {wanted}")
        return value

    def matrix(self, what, value, default=1.0):
        """(motors, motors) matrix, diagonal if a vector is given; None if it has problems."""
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


def number_or_nan(x):
    """A float; NaN for what is no number, such as texts, truth values and masks, which float() would accept."""
    try:
        x = as_floats("", x)
    except ShapeError:
        return float("nan")
    return float(x.ravel()[0]) if x.size == 1 else float("nan")


def read_inertia(robot, reader, joints, motor_inertia, rotor_inertia, gear):
    """Motor inertia (motors, motors) as seen at the joints; None if it has problems."""
    problems = reader.problems
    armature = {j.name: robot.joint(j.name).armature for j in joints}
    if motor_inertia is not None and rotor_inertia is not None:
        problems.append("motor_inertia and rotor_inertia are both given; the first is as seen at the joint, give one")
        return None
    if motor_inertia is None and rotor_inertia is None:
        return _inertia_of_armature(reader, armature)
    twice = [f"{n!r} ({x:g} kg m^2)" for n, x in armature.items() if x]
    if twice:
        problems.append(
            f"a motor inertia is given, and the robot already has an armature at {', '.join(twice)}: it would count "
            "twice; omit motor_inertia to take the armature as such, or build the robot without"
        )
    if rotor_inertia is not None:
        J = reader.matrix("rotor_inertia", rotor_inertia, default=0.0)
        B = None if J is None or gear is None else gear.T @ J @ gear
    else:
        B = reader.matrix("motor_inertia", motor_inertia, default=0.0)
    if B is not None:
        elastic = [m for j in joints for m in j.tau]
        _check_elastic_inertia(reader, B, elastic)
        _check_rigid_inertia(robot, reader, B, [m for m in range(len(B)) if m not in elastic])
    return B


def _inertia_of_armature(reader, armature):
    """The motor inertia where only the robot's armature {elastic joint: value} is known."""
    without = [n for n, x in armature.items() if not x]
    if without:
        reader.problems.append(
            f"no motor inertia for {', '.join(without)}; give motor_inertia, or rotor_inertia and gear_ratio"
        )
        return None
    owners = (n.removesuffix(".agonist").removesuffix(".antagonist") for n in reader.names)
    return np.diag([armature.get(owner, 0.0) for owner in owners])


def _check_elastic_inertia(reader, B, elastic):
    """The whole matrix is symmetric, its part of the elastic joints positive definite."""
    if np.abs(B - B.T).max() > 1e-12 * np.abs(B).max():
        reader.problems.append("the motor inertia is not symmetric")
    low = [reader.names[m] for m in elastic if not B[m, m] > 0]
    if low:
        reader.problems.append(f"the motor inertia of {', '.join(low)} must be positive")
    elif np.linalg.eigvalsh(B[np.ix_(elastic, elastic)]).min() <= 0:
        reader.problems.append("the matrix of motor inertias is not positive definite")


def _check_rigid_inertia(robot, reader, B, others):
    """The motors of rigid joints, `others`, belong to joints of one coordinate."""
    if np.any(np.diag(B) < 0):
        reader.problems.append("motor inertias must not be negative")
    names = [j.name for j in robot.joints]
    several = [reader.names[m] for m in others if B[m, m] and reader.names[m] not in names]
    if several:
        reader.problems.append(
            f"{', '.join(several)} belong to joints of several coordinates and cannot have a motor inertia"
        )
