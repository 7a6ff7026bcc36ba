"""Joints that move no inertia: no acceleration follows from their torque, and a mass matrix that cannot be inverted."""

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..lie.se3 import Ad_inv
from .cache import cached
from .canonical import canonical
from .inertia import SymbolicInertia

_ZERO = 1e-15  # of the largest entry of the inertias that a joint moves: rounding
_SINGULAR = 1e-13  # of a mass matrix with ones on its diagonal: an eigenvalue that is rounding


def require_inertia(model, what, known=()):
    """Raise ModelError, for the quantity `what`, if joints whose accelerations are wanted move no inertia.

    known: rows of v whose accelerations are given. Parameters that are symbols cannot be judged and pass.
    """
    symbolic = any(isinstance(x, SymbolicInertia) for x in model.inertia)
    if symbolic or any(isinstance(x, (ca.SX, ca.MX)) for x in model.armature):
        return
    robot, known = model.robot, tuple(known)
    # complete: masses are the robot's own (symbols have left above), and `known` are rows of its v
    problems = cached(robot, ("massless", known), lambda: _problems(robot, _generic(robot), known))
    if problems:
        raise ModelError(f"{what} of {robot.name}", problems)


def _generic(robot):
    """A configuration that nothing is special about: what is singular there is so everywhere."""
    return robot.integrate(robot.neutral(), np.random.default_rng(0).uniform(-1, 1, robot.nv))


def require_inertia_at(robot, q, what, known=()):
    """As require_inertia, at one configuration q (nq,): a robot may move no inertia at some of them alone, such as a
    stretched arm with all its mass in a point at the tip."""
    problems = _problems(robot, q, tuple(known))
    if problems:
        at = f"at q = {np.array2string(q, precision=6, separator=', ', threshold=20)}"
        raise ModelError(f"{what} of {robot.name}", [f"{at}, {p}" for p in problems])


def _problems(robot, q, known):
    rows = [k for k in range(robot.nv) if k not in known]
    if not rows:
        return ()
    M = mass_matrix(robot, q)[np.ix_(rows, rows)]
    size = np.abs(np.diag(M))
    alone = size <= _ZERO * moved(robot)[rows]
    cure = "give links that it carries a mass, give it an armature, or lock it"
    problems = [f"joint {name} moves no inertia; {cure}" for name in _joints(robot, rows, alone)]
    M[alone], M[:, alone] = 0, 0
    size[alone] = 1
    values, vectors = np.linalg.eigh(M / np.sqrt(np.outer(size, size)) + np.diag(1.0 * alone))
    lost = np.abs(values) < _SINGULAR
    if lost.any():
        names = _joints(robot, rows, np.abs(vectors[:, lost]).max(axis=1) > 1e-6)
        if len(names) == 1:
            problems.append(f"joint {names[0]} has a direction that moves no inertia; {cure}")
        else:
            cure = "give the links between them a mass, one of them an armature, or lock one"
            problems.append(f"joints {', '.join(names)} have a common motion that moves no inertia; {cure}")
    return tuple(problems)


def mass_matrix(robot, q):
    """Mass matrix (nv, nv) at q (nq,) as numpy array."""
    return _mass_matrix(canonical(robot), ca.DM(q))


def _mass_matrix(model, q):
    """Mass matrix (nv, nv) as numpy array: the sum of J^T M J of all bodies, quick for long chains, too."""
    q, nv = model.joint_q(q), model.robot.nv
    M, J = np.zeros((nv, nv)), {0: np.zeros((6, nv))}
    for i in model.bodies:
        S = model.S[i] if model.S[i] is not None else model.subspace_function(i)(q[i])
        _, _, first, size = model.coordinates[i]
        own, scale = slice(first, first + size), model.rule[i][0]
        J[i] = np.array(ca.DM(Ad_inv(model.placement(i, q[i])))) @ J[model.parent[i]]
        J[i][:, own] += scale * np.array(ca.DM(S))
        M += J[i].T @ np.array(ca.DM(model.M[i])) @ J[i]
        M[own, own] += scale**2 * np.array(ca.DM(model.rotor(i)))
    return M


def moved(robot):
    """(nv,) largest entry of the inertias beyond the joint of each velocity, about their links' frames."""
    out = np.zeros(robot.nv)
    largest = {}
    for b in reversed(robot.bodies):
        own = max(np.abs(b.inertia.parameters).max(), largest.get(b.index, 0.0))
        largest[b.parent] = max(own, largest.get(b.parent, 0.0))
        at = slice(b.joint.v_index, b.joint.v_index + b.joint.nv)
        out[at] = np.maximum(out[at], own)
    return out


def _joints(robot, rows, chosen):
    """Quoted names of the joints that own the chosen rows."""
    owner = {k: j.name for j in robot.joints for k in range(j.v_index, j.v_index + j.nv)}
    return list(dict.fromkeys(repr(owner[k]) for k, one in zip(rows, chosen, strict=True) if one))
