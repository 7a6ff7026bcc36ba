"""The least time that all joints can take where they start or end with speeds.

The times a joint can take may have gaps, then: it passes at once, or has to stop and come back. In a time T, let p(T)
be the least factor of all limits but those of q with which a joint gets there: it can where p <= 1. The search goes up
in T, by Newton's method where p falls, in small steps where it rises, and looks between two times where a p that has
fallen rises again.
"""

import numpy as np

from .joint_program import solve

_STEP, _LONGEST = 0.04, 0.25  # of the logarithm of the time
_WIDER = 1.05  # by so much steps grow that lead nowhere
_RIGHT, _GAP = 1e-5, 1e-6  # how near p has to get to 1, and how precisely it is known
_NEAR = 1e-3  # of the logarithm: the time that is found may be so much later than the least one
_EVALUATIONS, _ITERATIONS = 150, 40
_KEPT, _UNCLEAR = 1e-7, 1e-2  # by how much limits are off that are kept, though rounding hides the least p; that may be


class Search:
    """Least factors p of the limits at times. least (J,): seen so far. nearest: the least of the largest p
    and its motions. finished: whether all times were looked at. unclear (J,): joints of which rounding hid
    whether they get there in some time. doubt: whether a time was passed over for nothing else."""

    def __init__(self, joints, watch):
        self.joints, self.watch, self.count, self.nearest = joints, watch, 0, (np.inf, None)
        self.least, self.finished, self.doubt = np.full(len(joints.start), np.inf), False, False
        self.unclear = np.zeros(len(joints.start), bool)

    def at(self, log_time):
        """(p (J,), or a little more, slopes of p by the logarithm of the time (J,)); p is infinite where limits of q
        are in the way."""
        self.count += 1
        T = np.full(len(self.joints.start), np.exp(log_time))
        found = solve(self.joints, T, 1.0, "width", watch=self.watch, gap=_GAP, most=_ITERATIONS)
        known = found.success | (found.off <= _KEPT)
        p = np.where(known, found.widened, np.inf)
        blocked, unclear = p > 1 + _RIGHT, ~known & (found.off < _UNCLEAR)
        self.unclear |= unclear
        self.doubt = self.doubt or bool(blocked.any() and unclear[blocked].all())
        if np.isfinite(p).all() and p.max() < self.nearest[0]:
            self.nearest = p.max(), found
        self.least = np.minimum(self.least, p)
        return p, np.where(known, found.slope, 0.0)


def common_time(joints, shortest, latest, watch=None):
    """((a time, one a little later than the least that all joints can take), Search) within so long; None where none is
    found."""
    search, before = Search(joints, watch), None
    here, last = np.log(shortest), np.log(latest)
    while search.count < _EVALUATIONS and here < last:
        p, slope = search.at(here)
        if before is not None:
            turned = (before[1] > 1) & (p > 1 + _RIGHT) & (before[2] < 0) & (slope >= 0)
            dip = _dip(search, int(np.argmax(turned)), before[0], here) if turned.any() else None
            if dip is not None:
                here, before = dip, (before[0], before[1], np.zeros_like(p))
                continue
        if (p <= 1 + _RIGHT).all():
            between = (here, here) if before is None else _between(search, before, (here, p, slope))
            return None if search.doubt else tuple(np.exp(between)), search
        before = here, p, slope
        here = here + _ahead(p, slope, _STEP * _WIDER**search.count)
    search.finished = here >= last
    return None, search


def _ahead(p, slope, step):
    """How far to go on: as far as the joint that needs longest, if p falls as it does now."""
    steps = np.zeros(len(p))
    for i in np.flatnonzero(p > 1 + _RIGHT):
        falls = slope[i] < 0 and np.isfinite(p[i])
        steps[i] = np.clip(np.log(p[i]) * p[i] / -slope[i], 1e-7, _LONGEST) if falls else min(step, _LONGEST)
    return steps.max() + _NEAR / 2  # into the times that all can take


def _dip(search, i, low, high):
    """A time between two at which joint i can get there, or None: p falls at the lower and rises at the upper one."""
    for _ in range(25):
        middle = (low + high) / 2
        p, slope = search.at(middle)
        if p[i] <= 1:
            return middle
        low, high = (middle, high) if slope[i] < 0 else (low, middle)
        if high - low < 1e-6:
            return None
    return None


def _between(search, low, high):
    """(a time at which a joint cannot get there, one near after it at which all can), between two such times, each with
    its p and slopes."""
    for count in range(_EVALUATIONS):
        width = high[0] - low[0]
        if width <= _NEAR:
            break
        turn = _turn(low, high)
        if turn is None or count % 3 == 2:  # what it expects may be wrong, again and again
            here = (low[0] + high[0]) / 2
        else:
            ahead = high[0] - turn > turn - low[0]  # the end that is further away is moved next to it
            here = np.clip(turn + (0.4 if ahead else -0.4) * _NEAR, low[0] + width / 8, high[0] - width / 8)
        p, slope = search.at(here)
        if (p <= 1 + _RIGHT).all():
            high = here, p, slope
        else:
            low = here, p, slope
    return low[0], high[0]


def _turn(low, high):
    """Where between two times the largest p is 1, by Newton's method from the one at which it is nearer to 1; None
    where that leads elsewhere."""
    here, p, slope = min(low, high, key=lambda x: np.abs(np.log(x[1].max())))
    i = int(np.argmax(p))
    if not (np.isfinite(p[i]) and slope[i] < 0):
        return None
    turn = here + np.log(p[i]) * p[i] / -slope[i]
    return turn if low[0] < turn < high[0] else None
