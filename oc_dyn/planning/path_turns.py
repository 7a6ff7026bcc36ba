"""Places of a path at which joints with Coulomb friction turn round: nodes for plan_along_path.

The friction's smoothed jump is steepest where the joint stands still, within less than an interval; only a node there
holds the rate of torque.
"""

import numpy as np

_GRID, _BISECTIONS = 4000, 50
_NEAR = 1e-9  # of the path, about a turn
_SHORTEST = 0.02  # of an interval, that a node at a turn may leave of it


def turns(on, joints):
    """Rising places (m,) of a curve, knots and ends left out, at which q' of one of the joints changes its sign."""
    edges = np.concatenate([[0.0], on.knots, [1.0]])
    s = np.unique(np.concatenate([np.linspace(0, 1, _GRID + 1), edges]))
    slope = on.at(s, 2)[1][:, joints]
    k, i = np.nonzero(slope[:-1] * slope[1:] < 0)
    low, high, rising = s[k], s[k + 1], slope[k + 1, i] > 0
    i, each = np.asarray(joints)[i], np.arange(len(k))
    for _ in range(_BISECTIONS if len(k) else 0):
        middle = (low + high) / 2
        above = (on.at(middle, 2)[1][each, i] > 0) == rising
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    places = np.unique((low + high) / 2)
    away = np.abs(places[:, None] - edges).min(axis=1, initial=1.0) > _NEAR
    places = places[away]
    return places[np.append(True, np.diff(places) > _NEAR)[: len(places)]]


def snapped(places, turning, knots):
    """The places (N + 1,) of nodes, of those that are no knots or ends the nearest moved to every turn, in order.

    Turns that would leave an interval much shorter than it was get none.
    """
    places, free = places.copy(), ~np.isin(places, knots)
    free[[0, -1]] = False
    for s in turning:
        k = int(np.searchsorted(places, s))
        near = [j for j in (k - 1, k) if free[j]]
        if near:
            j = min(near, key=lambda j: abs(places[j] - s))
            least = _SHORTEST * (places[k] - places[k - 1])
            if min(s - places[j - 1], places[j + 1] - s) > least:
                places[j], free[j] = s, False
    return places
