"""Springs of an elastic robot as a user gives them: numbers or springs, by name or in a list."""

import numpy as np

from ..errors import UnknownName
from ..model.sdf_read import Spring as SdfSpring
from .read_motors import MASKED, number_or_nan
from .springs import SPRINGS, LinearSpring, NoSpring

ONE_COORDINATE = ("revolute", "continuous", "prismatic", "helical")  # kinds of joints that may be elastic


def read_springs(robot, stiffness, damping, problems, across=False):
    """{joint: spring} of the elastic joints; across: whether there are springs across joints, so that one of stiffness
    zero is none of its own."""
    values = _by_joint(robot, stiffness, problems)
    if values is None:
        return {}
    dampings = _damping(robot, values, damping, problems)
    springs = {}
    for name, x in values.items():
        spring = x if isinstance(x, SPRINGS) else _linear(name, x, dampings.get(name, 0.0), problems, across)
        if spring is not None:
            springs[name] = spring
    for name, d in dampings.items():
        if name not in springs and (name not in values or number_or_nan(values[name]) == np.inf):
            raise UnknownName(f"elastic joint of {robot.name} for damping", name, springs)
        if isinstance(values[name], SPRINGS) and d != 0:
            problems.append(
                f"joint {name!r}: damping {d:g} is given beside a spring that has its own; give it to the spring"
            )
    if not springs and not problems:
        problems.append("no joint is elastic; a rigid robot needs no springs, use its inverse_dynamics")
    return springs


def _by_joint(robot, stiffness, problems):
    """{joint: number or spring}; None if it has problems."""
    elastic = [j.name for j in robot.joints if j.kind in ONE_COORDINATE]
    if isinstance(stiffness, dict):
        for name in stiffness:
            if name not in elastic:
                raise UnknownName(f"joint of {robot.name} that can be elastic (of one coordinate)", name, elastic)
        return dict(stiffness)
    if isinstance(stiffness, np.ma.MaskedArray):
        problems.append(MASKED.format("stiffness"))
        return None
    if isinstance(stiffness, (tuple, list)) and stiffness and all(isinstance(x, SdfSpring) for x in stiffness):
        return _of_file(robot, stiffness, problems)
    if isinstance(stiffness, SPRINGS) or np.ndim(stiffness) == 0:
        return dict.fromkeys(elastic, stiffness)
    values = _one_per_joint(robot, "stiffness", np.ravel(np.asarray(stiffness, object)), problems)
    if values is None:
        return None
    values = {n: x for n, x in values.items() if n in elastic or isinstance(x, SPRINGS) or number_or_nan(x) != np.inf}
    problems += [
        f"joint {n!r} has several coordinates and must be rigid: stiffness inf" for n in values if n not in elastic
    ]
    return values


def _of_file(robot, springs, problems):
    """{joint: stiffness} of od.sdf_springs; where a spring's reference stands is where its motor is, part of theta."""
    values = {}
    for spring in springs:
        if spring.joint in values:
            problems.append(f"joint {spring.joint!r} has two springs in the file; give their sum")
        values[spring.joint] = spring.stiffness
    return _by_joint(robot, values, problems)


def _one_per_joint(robot, what, values, problems):
    """{joint: value}; None if there are not as many values as joints."""
    names = [j.name for j in robot.joints if j.kind != "free"]  # which has no motor
    if len(values) != len(names):
        problems.append(
            f"{what}: got {len(values)} values, expected one for each of the {len(names)} joints: {', '.join(names)}"
        )
        return None
    return dict(zip(names, values, strict=True))


def _linear(name, stiffness, damping, problems, across):
    """The spring of a joint with these numbers; None if the joint is rigid, or the stiffness no positive number."""
    k = number_or_nan(stiffness)
    none = across and k == 0
    if not k > 0 and not none:
        problems.append(
            f"joint {name!r}: stiffness is {stiffness!r}, expected a positive number, inf if rigid, or a spring"
        )
    if not 0 <= damping < np.inf:
        problems.append(f"joint {name!r}: damping is {damping!r}, expected a finite number of at least 0")
        damping = 0.0
    if none:
        return NoSpring(damping)
    return LinearSpring(k, damping) if 0 < k < np.inf else None


def _damping(robot, stiffness, damping, problems):
    """{joint: damping} from a number for the springs given as numbers, {joint: value}, or one per joint."""
    if isinstance(damping, dict):
        return {name: number_or_nan(x) for name, x in damping.items()}
    if isinstance(damping, np.ma.MaskedArray):
        problems.append(MASKED.format("damping"))
        return {}
    values = np.ravel(np.asarray(damping, object))
    plain = [n for n, x in stiffness.items() if not isinstance(x, SPRINGS) and np.isfinite(number_or_nan(x))]
    if values.size == 1:
        return dict.fromkeys(plain, number_or_nan(values[0]))
    values = _one_per_joint(robot, "damping", values, problems)
    if values is None:
        return {}
    dampings = {name: number_or_nan(x) for name, x in values.items()}
    springs = [n for n, x in stiffness.items() if n in plain or isinstance(x, SPRINGS)]
    rigid = [n for n in dampings if n not in springs]
    problems += [
        f"joint {n!r}: damping {dampings[n]:g} is given, but the joint is rigid" for n in rigid if dampings[n] != 0
    ]
    return {n: x for n, x in dampings.items() if n in springs}
