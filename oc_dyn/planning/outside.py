"""Words on a position outside its limits: their unit, and whether it was meant in degrees."""

import numpy as np

from .trajectory import joint_units

_TURN = 2 * np.pi  # beyond it people who think in radians seldom are


def outside(robot, limits, i, q):
    """Words like "outside its limits -2 to 2 rad (90 degrees are 1.571 rad)", of a position of joint i."""
    lower, upper = limits.q[0][i], limits.q[1][i]
    own = dict(zip(limits.joints, joint_units(robot), strict=False))  # followers stand behind
    unit = own.get(limits.joints[i], "")
    text = f"outside its limits {lower:.6g} to {upper:.6g} {unit}".strip()
    turned = np.deg2rad(q)
    meant = unit == "rad" and abs(q) > _TURN and lower <= turned <= upper
    return f"{text} ({q:.6g} degrees are {turned:.4g} rad)" if meant else text
