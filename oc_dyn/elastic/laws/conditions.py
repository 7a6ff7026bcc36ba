"""What the laws ask of a robot, and numbers in their conditions: refusals by name, springs, gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from ...errors import LimitError, ModelError, ShapeError
from ...model.loops import LoopRobot
from ...numbers import are_sane
from ...types import Array, Named
from ..controller import motor_gains as _gains
from ..drives import drive_torques
from ..model import ElasticRobot
from ..springs import LinearSpring
from .gravity_gradient import gravity_gradient_bound, gravity_torque_bounds


def check_robot(name: str, elastic: ElasticRobot, *, rigid: bool, damped: bool, variable: bool) -> None:
    """Raise ModelError naming everything about a robot that a law cannot do; the flags say what it can."""
    problems = []
    if isinstance(elastic.links, LoopRobot):
        problems.append(f"{name} is for trees; for robots with loops use feedforward_pd or gravity_pd")
    if elastic.nq != elastic.nv:
        problems.append(f"{name} is for robots with joints of one coordinate alone")
    if elastic.coupling:
        problems.append(f"{name} is for the reduced model; use it for the law and keep the coupling in the simulation")
    pairs = [j.name for j in elastic.joints if len(j.theta) > 1]
    if pairs:
        problems.append(
            f"{name} is for joints with one motor; {', '.join(pairs)} has a pair, see feedback_linearization"
        )
    changing = [j.name for j in elastic.joints if j.sigma is not None and len(j.theta) == 1]
    if changing and not variable:
        problems.append(
            f"{name} is for springs of fixed law; that of {', '.join(changing)} is variable, see vsa_damping"
        )
    if elastic.rigid and not rigid:
        names = [elastic.motor_names[m] for m in elastic.rigid_motors]
        problems.append(f"{name} needs all joints elastic; rigid: {', '.join(names)}")
    if elastic.damped and not damped:
        problems.append(
            f"{name} is for springs without damping, here {', '.join(elastic.damped)}; take undamped() for the law and "
            "keep the damping in the simulation"
        )
    if getattr(elastic, "across", None) is not None:
        problems.append(f"{name} is for springs of one joint each; for springs across joints use feedforward_pd")
    if not elastic.joints:
        problems.append(f"{name}: no joint is elastic")
    if problems:
        raise ModelError(elastic.name, problems)


def load_gradient_bound(name: str, elastic: ElasticRobot) -> float:
    """Bound of |dg/dq| [Nm/rad] of a law's condition. ModelError where parallel springs load the links as well."""
    if getattr(elastic, "parallel", None) is not None:
        raise ModelError(
            elastic.name,
            [
                f"{name}: no bound is known of what parallel springs add to gravity's gradient; give check=False, and "
                "iterations= where the law has them"
            ],
        )
    return gravity_gradient_bound(elastic.links)


def positive_gains(name: str, elastic: ElasticRobot, **gains: Named) -> list[Any]:
    """[(motors, 1) DM] of gains that must be above 0 at every motor."""
    out = _gains(elastic, **gains)
    for what, x in zip(gains, out, strict=True):
        low = [m for m, value in zip(elastic.motor_names, x.full().ravel(), strict=True) if not value > 0]
        if low:
            raise ShapeError(f"{name}: {what} of {', '.join(low)} is 0, expected numbers above 0")
    return out


def at_elastic_motors(what: str, elastic: ElasticRobot, value: Any, default: Any, above: float = 0.0) -> Array:
    """(theta,) finite numbers above a bound of the motors of elastic joints, from a number, {motor: value}, one per
    motor of these, or None for the default (theta,)."""
    names = elastic.theta_names
    if value is None:
        return np.array(default, float)
    if isinstance(value, Mapping):
        unknown = [n for n in value if n not in names]
        if unknown:
            raise ShapeError(f"{what}: no motor {unknown[0]!r} of an elastic joint; these are: {', '.join(names)}")
        value = [value.get(n, d) for n, d in zip(names, default, strict=True)]
    try:
        found = np.asarray(value, float).ravel()
    except (TypeError, ValueError):
        found = np.zeros(0)
    found = np.full(len(names), found[0]) if found.size == 1 else found
    if found.shape != (len(names),) or not are_sane(found) or np.any(found <= above):
        more = "" if np.isinf(above) else f" above {above:g}"
        raise ShapeError(f"{what}: got {value!r}, expected a number or {len(names)}{more}: {', '.join(names)}")
    return found


def softest(elastic: ElasticRobot) -> Array:
    """(elastic joints,) smallest stiffness of each spring [Nm/rad, N/m]: of a NonlinearSpring over the torques that
    gravity can ask of its joint, at 201 torques evenly between."""
    torques, out = None, []
    for j in elastic.joints:
        spring = j.spring
        if isinstance(spring, LinearSpring):
            out.append(spring.stiffness)
            continue
        torques = gravity_torque_bounds(elastic.links) if torques is None else torques
        z, none = ca.SX.sym("z"), ca.DM(0, 1)
        slope = ca.Function("slope", [z], [ca.jacobian(spring.torques([z], none)[0], z)])
        wanted = np.linspace(-torques[j.v], torques[j.v], 201)
        try:
            out.append(min(float(slope(spring.deflections([ca.DM(x)], [])[0][0])) for x in wanted))
        except LimitError as error:
            asked = f"joint {j.name}: gravity can ask for {torques[j.v]:.4g} Nm of its spring, which cannot give it"
            raise ModelError(elastic.name, [f"{asked}: {error}"]) from None
    return np.array(out, float)


def gravity_of(elastic: ElasticRobot, q: Any) -> Any:
    """(v,) torques that hold the links at q."""
    zero = ca.DM.zeros(elastic.nv)
    return drive_torques(elastic)(q, zero, zero)


def motor_positions(elastic: ElasticRobot, q: Any, theta: Any) -> Any:
    """(v,) positions of the motors: theta, and q where joints are rigid."""
    rows = ca.vertsplit(q)
    for j in elastic.joints:
        rows[j.v] = theta[j.theta[0]]
    return ca.vertcat(*rows)


def at_links(elastic: ElasticRobot, motors: Any) -> Any:
    """(v,) column of what stands for each elastic joint (theta,), zero where joints are rigid."""
    rows: list[Any] = [ca.DM(1, 1)] * elastic.nv
    for j in elastic.joints:
        rows[j.v] = motors[j.theta[0]]
    return ca.vertcat(*rows)


def symmetric(what: str, value: Any, n: int) -> Array:
    """(n, n) symmetric positive semidefinite matrix from a number, (n,), or a matrix."""
    try:
        found = np.asarray(value, float)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if found.shape in ((), (1,)) or found.shape == (n,):
        found = np.diag(np.broadcast_to(found, (n,)))
    if found.shape != (n, n) or not are_sane(found):
        raise ShapeError(f"{what}: got {value!r}, expected a finite number, ({n},) or ({n}, {n})")
    size = np.abs(found).max()
    if np.abs(found - found.T).max() > 1e-9 * size or np.linalg.eigvalsh(found)[0] < -1e-9 * size:
        raise ShapeError(f"{what}: got {found.tolist()}, expected a symmetric matrix without negative eigenvalues")
    return 0.5 * (found + found.T)


def ranges(elastic: ElasticRobot) -> tuple[Array, Array]:
    """(lower, upper) of q; half a turn where there is none."""
    joints = elastic.links.joints
    low, high = (np.array([getattr(j, end) for j in joints]) for end in ("lower", "upper"))
    return np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
