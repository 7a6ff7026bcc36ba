"""Parallel springs and springs across joints as a user gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, UnknownName
from ..numbers import as_floats
from .callables import FAILURES, failure
from .potentials import Potential
from .read_motors import number_or_nan
from .read_springs import ONE_COORDINATE


def read_parallel(seen: Any, parallel: Any, problems: list[str]) -> Potential | None:
    """Potential of parallel springs; None if there are none, or it has problems, which are noted."""
    if parallel is None:
        return None
    joints = [j for j in seen.joints if j.kind in ONE_COORDINATE]
    if isinstance(parallel, Mapping):
        stiffness, rest = _by_joint(seen, [j.name for j in joints], parallel, problems)
        return _potential(seen, joints, 0, lambda x: ca.dot(stiffness, (x - rest) ** 2) / 2, "parallel", problems)
    if not callable(parallel):
        problems.append(f"parallel is {parallel!r}, expected {{joint: stiffness or (stiffness, rest)}} or an energy(q)")
        return None
    return _potential(seen, joints, 0, parallel, "parallel", problems)


def read_across(seen: Any, across: Any, motors: int, problems: list[str]) -> Potential | None:
    """Potential of springs across joints with so many motors, an energy(q, theta) or a stiffness matrix."""
    if across is None:
        return None
    joints = [j for j in seen.joints if j.kind in ONE_COORDINATE]
    return _potential(seen, joints, motors, across, "across", problems)


def matrix_energy(seen: Any, stiffness: Any, problems: list[str]) -> Any:
    """energy(q, theta) of a constant stiffness matrix between the motors and links of all joints of one coordinate."""
    n = sum(j.kind in ONE_COORDINATE for j in seen.joints)
    try:
        K = np.array(as_floats("stiffness", stiffness))
    except ShapeError as error:
        problems.append(str(error))
        return None
    if K.shape != (n, n) or not np.isfinite(K).all():
        problems.append(f"stiffness: got a matrix of shape {K.shape}, expected ({n}, {n}), finite")
    elif np.abs(K - K.T).max() > 1e-12 * np.abs(K).max():
        problems.append("stiffness: the matrix is not symmetric, as that of a potential is")
    elif np.linalg.eigvalsh(K).min() <= 0:
        problems.append("stiffness: the matrix is not positive definite")
    else:
        return lambda q, theta: ca.dot(theta - q, ca.DM(K) @ (theta - q)) / 2
    return None


def _by_joint(seen: Any, names: list[str], parallel: Mapping[str, Any], problems: list[str]) -> tuple[Any, Any]:
    """(stiffness, position at rest) of each joint of one coordinate."""
    stiffness, rest = np.zeros(len(names)), np.zeros(len(names))
    for name, value in parallel.items():
        if name not in names:
            raise UnknownName(f"joint of {seen.name} that can have a parallel spring (of one coordinate)", name, names)
        given = value if isinstance(value, (tuple, list)) else (value, 0.0)
        numbers = [number_or_nan(x) for x in given]
        if len(numbers) != 2 or not np.isfinite(numbers).all() or numbers[0] < 0:
            problems.append(
                f"parallel: joint {name!r} has {value!r}, expected a stiffness of at least 0, or (stiffness, position "
                "at rest)"
            )
            continue
        stiffness[names.index(name)], rest[names.index(name)] = numbers
    return ca.DM(stiffness), ca.DM(rest)


def _potential(seen: Any, joints: Any, motors: int, energy: Any, what: str, problems: list[str]) -> Potential | None:
    n = len(joints)
    x, theta = ca.SX.sym("x", n), ca.SX.sym("theta", motors)
    arguments = (x, theta) if motors else (x,)
    expected = f"energy({'q, theta' if motors else 'q'}), {n} joints" + (f" and {motors} motors" if motors else "")
    try:
        found = energy(*arguments)
        found = ca.SX(found[0] if isinstance(found, (tuple, list)) else found)
        made = ca.Function("energy", [x, theta], [ca.densify(found)])
        one = ca.sum1(ca.vec(found))
        at_zero = ca.Function("slope", [x, theta], [ca.gradient(one, ca.vertcat(x, theta))])(0, 0)
    except FAILURES as error:
        problems.append(f"{what}: expected {expected}: {failure(error)}")
        return None
    if found.shape != (1, 1) or not at_zero.is_regular():
        odd = f"shape {found.shape}" if found.shape != (1, 1) else "slopes at zero that are no numbers"
        problems.append(f"{what}: got {odd}, expected one number of {expected}")
        return None
    return Potential(made, tuple(j.q_index for j in joints), tuple(j.v_index for j in joints), len(seen.velocity_names))
