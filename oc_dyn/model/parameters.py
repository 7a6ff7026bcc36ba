"""Parameters of a robot that Functions take as the port params and that torques are linear in, in three parts.

inertia: 10 for each moving body, as robot.parameters; armature and viscous: one for each velocity, what the rotor and
the damping of a joint are for it, those of mimic joints included.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from ..errors import ShapeError
from .canonical import with_parameters

PARTS = ("inertia", "armature", "viscous")
_OF_JOINTS = {"armature": "armature", "viscous": "damping"}  # field of a joint


def checked_parts(where, parts):
    """Tuple of the parts named, in the order of PARTS; "symbolic" is the inertia, None nothing."""
    if parts is None:
        return ()
    given = (parts,) if isinstance(parts, str) or not np.iterable(parts) else tuple(parts)
    given = ("inertia",) if len(given) == 1 and isinstance(given[0], str) and given[0] == "symbolic" else given
    if not given or any(not isinstance(x, str) or x not in PARTS for x in given):
        raise ShapeError(f'{where} is {parts!r}, expected "symbolic" or some of {", ".join(map(repr, PARTS))}')
    return tuple(x for x in PARTS if x in given)


def values(robot, parts):
    """The robot's own parameters, part after part."""
    found = [robot.parameters if x == "inertia" else of_joints(robot, x) for x in parts]
    return np.concatenate([np.zeros(0), *found])


def names(robot, parts):
    """Names of `values`: "link1.mass", ..., "joint1.armature", ..., "joint1.viscous"."""
    rows = {"inertia": robot.parameter_names}
    rows |= {x: tuple(f"{name}.{x}" for name in robot.velocity_names) for x in _OF_JOINTS}
    return tuple(name for x in parts for name in rows[x])


def of_joints(robot, part):
    """(nv,) armature or viscous friction, as the robot's velocities feel them."""
    out = np.zeros(robot.nv)
    for body in robot.bodies:
        j = body.joint
        scale = j.mimic.multiplier if j.mimic else 1.0
        out[j.v_index : j.v_index + j.nv] += scale**2 * getattr(j, _OF_JOINTS[part])
    return out


def with_values(model, parts, params):
    """The canonical form, not regrouped if the inertia is among the parts, with casadi values for its parameters."""
    sizes = [len(names(model.robot, (x,))) for x in parts]
    given = dict(zip(parts, ca.vertsplit(params, np.cumsum([0, *sizes]).tolist()), strict=True))
    if "inertia" in given:
        model = with_parameters(model, given["inertia"])
    if "armature" in given:
        own = [None if rule is None else 0.0 for rule in model.rule]
        for i in _owners(model):
            _, _, first, size = model.coordinates[i]
            own[i] = given["armature"][first : first + size]
        model = replace(model, armature=tuple(own))
    return replace(model, viscous=given["viscous"]) if "viscous" in given else model


def _owners(model):
    """Bodies whose joints own their velocities: all but mimic joints."""
    mimics = {model.number[b.index] for b in model.robot.bodies if b.joint.mimic}
    return [i for i in model.bodies if i not in mimics]
