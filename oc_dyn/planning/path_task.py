"""What plan_along_path is asked for, and the numbers of the path and the dynamics at places of it, whatever s(t) is."""

import numpy as np

from ..friction import SMOOTHING, coulomb
from ..function import function
from ..model.fluid import refuse_linear_drag
from ..model.parameters import of_joints
from .followers import followed, followers_of
from .limits import Limits, velocity_bounds
from .path_motion import bell
from .path_turns import turns
from .quantities import BOUNDED, BY_NAME, DYNAMIC, KINEMATIC
from .report import share_of_rate
from .stops import Joined

_STILL, _BESIDE = 1e-9, 1e-6  # share of the largest q' that is none; of the path, where its sign is then looked for


class PathTask:
    """What is asked, and what the path and the dynamics are at places of the path. speeds: ds/dt at start and end.

    wide: the limits, and behind them those of joints of a robot with loops that follow, whose way along the path is
    another one of the same kind, see at_all."""

    def __init__(self, robot, limits, on, continuity, friction=False, speeds=(0.0, 0.0)):
        self.friction, self.speeds = friction, speeds
        self.viscous, self.coulomb = np.zeros(robot.nv), np.zeros(robot.nv)
        if friction:
            self.viscous = of_joints(robot, "viscous")
            for i, _, torque in coulomb(robot):
                self.coulomb[i] += torque
        self.robot, self.limits, self.on, self.continuity = robot, limits, on, continuity
        self.followers = followers_of(robot, limits)
        self.wide = limits if self.followers is None else _widened(limits, self.followers.limits)
        self.bounded = [k for k in BOUNDED if BY_NAME[k].order <= continuity + 1 and self.wide.bounded(k).any()]
        if {"tau", "dtau"} & set(self.bounded):
            refuse_linear_drag("plan_along_path", robot)
        self.turns = np.zeros(0)  # places at which joints that rub turn round; those of a stretch alone are looked for
        if self.coulomb.any() and {"tau", "dtau"} & set(self.bounded) and not isinstance(on, Joined):
            self.turns = turns(on, np.flatnonzero(self.coulomb))
        self.dynamics = function(robot, "inverse_dynamics", order=1)

    def finite(self, quantity):
        """Indices of the joints for which a quantity has a limit."""
        return np.flatnonzero(self.wide.bounded(quantity))

    def at_all(self, s, count, before=False):
        """(count, K, n + m): derivatives by s of q and of the joints that follow, at places s."""
        P = self.on.at(s, count, before)
        if self.followers is None:
            return P
        theirs = followed(self.robot, self.followers.limits.joints, list(P), count - 1)
        return np.concatenate([P, np.array(theirs)], axis=2)

    def ends(self, quantity):
        """(lower, upper) of `values`: limits over their units."""
        kept = self.finite(quantity)
        return tuple(x[kept] / self.wide.unit(quantity)[kept] for x in self.wide.bounds(quantity))

    def shares(self, quantity, values):
        """(K, joints) shares of the limits that values (K, joints), over the units of the limits, use."""
        return share_of_rate(values, *(np.broadcast_to(x, values.shape) for x in self.ends(quantity)))

    def factors(self, quantity, s, before=False):
        """(K, terms, joints): what multiplies the terms of a quantity, over the unit of its limits, at places s."""
        kept = self.finite(quantity)
        order = BY_NAME[quantity].order
        P = (self.on.at if quantity in DYNAMIC else self.at_all)(s, order + 1, before)
        if quantity == "tau":
            rows = self._torque(P, self._signs(s, P[1], before) if self.friction else None)
        else:
            rows = self._rate(P) if quantity == "dtau" else P[1:]
        return np.moveaxis(rows[:, :, kept] / self.wide.unit(quantity)[kept], 0, 1)

    def _signs(self, s, slope, before):
        """(K, n) signs of q'; where it is zero, as a joint turns, those behind there, or before it."""
        still = np.abs(slope) <= _STILL * np.abs(slope).max(initial=0.0)
        if not still.any():
            return np.sign(slope)
        away = np.where(s < _BESIDE, 1.0, np.where(s > 1 - _BESIDE, -1.0, -1.0 if before else 1.0)) * _BESIDE
        return np.sign(np.where(still, self.on.at(s + away, 2, before)[1], slope))

    def _torque(self, P, signs):
        zero = np.zeros_like(P[0])
        g = self._at(P[0], zero, zero, zero)[0]
        a = self._at(P[0], zero, P[1], zero)[0] - g
        b = self._at(P[0], P[1], P[2], zero)[0] - g
        if not self.friction:
            return np.array([a, b, g])
        return np.array([a, b, g + self.coulomb * signs, self.viscous * P[1]])

    def _rate(self, P):
        def rate(x):
            B = bell(3, x)
            v, dv, d2v = (sum(P[j] * B[m][j - 1] for j in range(1, m + 1)) for m in (1, 2, 3))
            return self._at(P[0], v, dv, d2v)[1]

        a, one, two, both = (rate(x) for x in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0), (1.0, 1.0, 0.0)))
        d = (two - 2 * one) / 6
        rows = [a, both - one, d, one - d]
        return np.array([*rows, self.viscous * P[2], self.viscous * P[1]] if self.friction else rows)

    def slopes(self, quantity, s, before=False):
        """(K, 2, joints): q' and q'' at places s of joints that the smoothed jump of Coulomb friction counts for."""
        return np.moveaxis(self.on.at(s, 3, before)[1:, :, self.rubbing(quantity)], 0, 1)

    def rubbing(self, quantity):
        """Numbers, among those that are finite, of joints whose Coulomb friction counts in a quantity's rows."""
        return self.finite("dtau")[self.coulomb[self.finite("dtau")] > 0] if quantity == "dtau" else np.zeros(0, int)

    def turning(self, slope, bend, x, tanh=np.tanh):
        """Rates of Coulomb friction of the joints that rub, over their units, from q' and q'' there and [s', s'']."""
        i = self.rubbing("dtau")
        v, dv = slope * x[0], bend * x[0] ** 2 + slope * x[1]
        return self.coulomb[i] / self.limits.unit("dtau")[i] / SMOOTHING * (1 - tanh(v / SMOOTHING) ** 2) * dv

    def values(self, quantity, s, law, F, slopes=None):
        """(K, joints) of a quantity over its units, from its factors and the derivatives of s (.., K)."""
        y = sum(F[:, j] * np.reshape(x, (-1, 1)) for j, x in enumerate(terms(quantity, law[1:], self.friction)))
        rubbing = self.rubbing(quantity)
        if rubbing.size:
            slopes = self.slopes(quantity, s) if slopes is None else slopes
            turning = self.turning(slopes[:, 0], slopes[:, 1], law[1:3, :, None])
            y[:, np.searchsorted(self.finite(quantity), rubbing)] += turning
        return y

    def _at(self, *rows):
        return [np.array(x).T for x in self.dynamics(*(x.T for x in rows))]

    def speed(self, s):
        """(K,) largest s' that the limits of velocity allow at places s, those that depend on the position too."""
        P = self.at_all(s, 2)
        low, high = (np.tile(x, (len(s), 1)) for x in self.wide.bounds("v"))
        if self.limits.v_of_q is not None:
            n = len(self.limits.joints)
            found = [np.array(x).T for x in velocity_bounds(self.limits)(P[0, :, :n].T)]
            low[:, :n], high[:, :n] = np.maximum(low[:, :n], found[0]), np.minimum(high[:, :n], found[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(P[1] > 0, high / P[1], np.where(P[1] < 0, low / P[1], np.inf))
        return each.min(axis=1)


def _widened(limits, theirs):
    """Limits of all joints, those that follow behind the others."""
    found = {}
    for k in (*KINEMATIC, *DYNAMIC):
        found[k] = tuple(np.concatenate(x) for x in zip(limits.bounds(k), theirs.bounds(k), strict=True))
    return Limits((*limits.joints, *theirs.joints), **found)


def terms(quantity, x, friction=False):
    """Products of s', s'', ... that the rows of a quantity are sums of, in the order of PathTask.factors."""
    if quantity == "tau":
        return [x[1], x[0] ** 2, 1.0] + ([x[0]] if friction else [])
    if quantity == "dtau":
        return [x[2], x[0] * x[1], x[0] ** 3, x[0]] + ([x[0] ** 2, x[1]] if friction else [])
    return bell(BY_NAME[quantity].order, x)[-1]
