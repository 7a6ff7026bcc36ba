"""The Franka Research 3: the Panda's geometry with its own inertial parameters and velocity limits that depend on q."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..model.robot import Robot
from ..numbers import as_floats
from ..types import Array, ExpressionLike
from .panda import franka_arm

# mass [kg], centre of mass [m], tensor about it [kg m^2]: xx, xy, xz, yy, yz, zz; all in the link's frame
# fmt: off
_INERTIAS = (
    (2.9274653454, (0.0000004128, -0.0181251324, -0.0386035970),
     (0.023927316485107913, 1.3317903455714081e-05, -0.00011404774918616684,
      0.0224821613275756, -0.0019950320628240115, 0.006350098258530016)),
    (2.9355370338, (0.0031828864, -0.0743221644, 0.0088146084),
     (0.041938946257609425, 0.00020257331521090626, 0.004077784227179924,
      0.02514514885014724, -0.0042252158006570156, 0.06170214472888839)),
    (2.2449013699, (0.0407015686, -0.0048200565, -0.0289730823),
     (0.02410142547240885, 0.002404694559042109, -0.002856269270114313,
      0.01974053266708178, -0.002104212683891874, 0.019044494482244823)),
    (2.6155955791, (-0.0459100965, 0.0630492960, -0.0085187868),
     (0.03452998321913202, 0.01322552265982813, 0.01015142998484113,
      0.028881621933049058, -0.0009762833870704552, 0.04125471171146641)),
    (2.3271207594, (-0.0016039605, 0.0292536262, -0.0972965990),
     (0.051610278463662895, -0.005715173387783472, -0.0035673167625872135,
      0.04787729713371481, 0.010673985108535986, 0.016423625579357254)),
    (1.8170376524, (0.0597131221, -0.0410294666, -0.0101692726),
     (0.005412333594383447, 0.006193456360285834, 0.0014219289306117652,
      0.014058329545509979, -0.0013140753741120031, 0.016080817924212554)),
    (0.6271432862, (0.0045225817, 0.0086261921, -0.0161633251),
     (0.00021092389150104718, -2.433299114461931e-05, 4.564480393778983e-05,
      0.00017718568002411474, 8.744070223226438e-05, 5.993190599659971e-05)),
)
# fmt: on

_VELOCITY = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
_LIMITS = {
    "lower": (-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159),
    "upper": (2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159),
    "velocity": tuple(_VELOCITY),
    "acceleration": (10.0,) * 7,
    "jerk": (5000.0,) * 7,
    "effort": (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
    "effort_rate": (1000.0,) * 7,
}
_BOX = {  # the vendor's proposal for planners that want constant limits
    "lower": (-2.3093, -1.5133, -2.4937, -2.7478, -2.48, 0.8521, -2.6895),
    "upper": (2.3093, 1.5133, 2.4937, -0.4461, 2.48, 4.2094, 2.6895),
    "velocity": (2.0, 1.0, 1.5, 1.25, 3.0, 1.5, 3.0),
}

# velocity limit near the ends of the range: sqrt(gain * distance) - offset
_OFFSET = np.array([0.30, 0.20, 0.20, 0.30, 0.35, 0.35, 0.35])
_GAIN = np.array([12.0, 5.17, 7.0, 8.0, 34.0, 11.0, 34.0])
_UPPER_END = np.array([2.7501, 1.7918, 2.9065, -0.1458, 2.8101, 4.5205, 3.0196])
_LOWER_END = np.array([-2.7501, -1.7918, -2.9065, -3.0481, -2.8101, 0.54092, -3.0196])


def fr3(constant_limits: bool = False) -> Robot:
    """The Franka Research 3 arm; q = 0 is the vendor's zero.

    Joints fr3_joint1 .. 7, links fr3_link0 .. fr3_link7, frame fr3_link8 the flange. Its velocity limits depend on the
    position: `robot.velocity_limits` is fr3_velocity_limits. `constant_limits` takes instead the smaller box of
    positions and velocities that the vendor proposes, within which constant limits hold.
    Source: limits, the vendor's robot specification; geometry (the Panda's) and inertial parameters, the vendor's
    franka_description, robots/fr3 (kinematics.yaml, inertials.yaml). Tensors are about the centre of mass.
    """
    if constant_limits:
        return franka_arm("fr3", _INERTIAS, {**_LIMITS, **_BOX})
    return replace(franka_arm("fr3", _INERTIAS, _LIMITS), velocity_limits=fr3_velocity_limits)


def fr3_limits(constant_limits: bool = False) -> dict[str, Array]:
    """Limits of the FR3, {kind: (7,)}: lower, upper [rad], velocity, acceleration, jerk, effort [Nm], effort_rate."""
    limits = {**_LIMITS, **_BOX} if constant_limits else _LIMITS
    return {kind: np.array(values) for kind, values in limits.items()}


def fr3_velocity_limits(q: ExpressionLike) -> tuple[Any, Any]:
    """Velocity limits of the FR3 at a configuration.

    Equation:  upper = min(v_max, max(0, sqrt(max(0, k (b - q))) - c)), lower likewise from the other end.
    Args:      q (7,): joint angles [rad]; numpy, DM, SX or MX.
    Returns:   (lower, upper), each (7,) [rad/s], lower <= 0 <= upper; numpy arrays where q is numbers.
    Raises:    ShapeError.
    Source:    the vendor's robot specification of the Franka Research 3.
    """
    symbolic = isinstance(q, (ca.SX, ca.MX))
    q = q if isinstance(q, (ca.SX, ca.MX)) else ca.DM(as_floats("fr3_velocity_limits: q", q).reshape(-1))
    if q.numel() != 7:
        raise ShapeError(f"fr3_velocity_limits: got {q.numel()} angles, expected 7")
    q = ca.vec(q)
    upper = ca.fmin(ca.DM(_VELOCITY), _slope(ca.DM(_UPPER_END) - q))
    lower = ca.fmax(-ca.DM(_VELOCITY), -_slope(q - ca.DM(_LOWER_END)))
    return (lower, upper) if symbolic else (np.array(lower).ravel(), np.array(upper).ravel())


def _slope(distance: Any) -> Any:
    # max(0, sqrt(x) - c) is sqrt(max(c^2, x)) - c, whose derivative never meets the root of zero
    return ca.sqrt(ca.fmax(ca.DM(_OFFSET**2), ca.DM(_GAIN) * distance)) - ca.DM(_OFFSET)
