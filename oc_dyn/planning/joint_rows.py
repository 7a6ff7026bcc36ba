"""What the method of interior points of joint_program.py reads of joints: their numbers, and the limits as rows."""

from dataclasses import dataclass
from math import factorial

import numpy as np

SIGN = np.array([1.0, -1.0])[:, None, None, None]  # of upper and lower limits
_ROOM = 1.3  # over the limits, to begin with


@dataclass(frozen=True, eq=False)
class Joints:
    """Numbers of J joints, or of the same ones in several times.

    start (J, k), goal (J, l): q, v, ... that are fixed. lower, upper (J, r + 1): limits of q, v, .... reach (J,): scale
    of the way. weight (J,): of the roughness in the cost. blocks: their Blocks.
    """

    blocks: object
    start: np.ndarray
    goal: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    reach: np.ndarray
    weight: np.ndarray

    def of(self, which):
        """Some of them."""
        return Joints(
            self.blocks, *(getattr(self, k)[which] for k in ("start", "goal", "lower", "upper", "reach", "weight"))
        )


def power(joints):
    """The s of p."""
    limited = np.isfinite(joints.lower[:, 1:]) | np.isfinite(joints.upper[:, 1:])
    return 1 + int(np.max(np.flatnonzero(limited.any(axis=0)), initial=0))


class Rows:
    """Rows of joints in times T (J,): limit (2, J, m, R), upper and lower ones at p = 1, mask: those that there are,
    and the motion that meets the ends."""

    def __init__(self, joints, T):
        B, self.joints, self.T = joints.blocks, joints, T
        r = B.r
        unit = (T[:, None] / 2) ** np.arange(r + 1) / joints.reach[:, None]
        low, high = joints.lower.copy(), joints.upper.copy()
        low[:, 0], high[:, 0] = low[:, 0] - joints.start[:, 0], high[:, 0] - joints.start[:, 0]
        keep = B.rows & ~B.fixed
        with np.errstate(invalid="ignore"):
            low, high = ((x * unit)[:, B.order][:, None, :] for x in (low, high))
        both = np.broadcast_to(np.array([high, low]), (2, len(T), *keep.shape))
        self.mask = np.isfinite(both) & keep
        self.limit = np.where(self.mask, both, 0.0)
        self.signed = SIGN * self.limit
        ends, orders = [], []
        for state in (joints.start, joints.goal):
            j = np.arange(state.shape[1])
            value = state * (T[:, None] / 2) ** j / np.array([factorial(i) for i in j])
            value[:, 0] -= joints.start[:, 0]
            ends.append(value / joints.reach[:, None])
            orders.append(j)
        self.power = power(joints)
        self.ends, self.orders = np.concatenate(ends, axis=1), np.concatenate(orders)

    def motion(self, p):
        """(3, J, m, R): rows, their first and second derivatives by p, of the motion that meets the ends."""
        basic, e = self.joints.blocks.basic[0], self.orders / self.power
        values = self.ends * np.array([p**e, e * p ** (e - 1), e * (e - 1) * p ** (e - 2)])
        return np.tensordot(values, basic, 1)

    def roomy(self, by_time):
        """(J,) by what the time, or limits of all but q, are to be multiplied so that the motion that meets the ends,
        as these are now, has room to those limits."""
        order, most = self.joints.blocks.order, np.full(len(self.T), 1e-6)
        rho = np.tensordot(self.ends, self.joints.blocks.basic[0], 1)
        for sign, bound, keep in zip((1, -1), self.limit, self.mask, strict=True):
            keep = keep & (order > 0) & (bound != 0)
            share = np.where(keep, _ROOM * sign * rho / np.where(keep, sign * bound, 1.0), 0.0)
            most = np.maximum(most, np.max(share.clip(0) ** (1 / order.clip(1) if by_time else 1.0), axis=(1, 2)))
        return most
