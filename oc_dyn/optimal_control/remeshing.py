"""Where a mesh is to be finer, and where coarser, from what its intervals are off by: numbers alone.

An interval is split where its own error, or what it adds to that of the objective, is above its share of the
tolerance: into as many parts as the order of the method lets hope for, two to four. Two neighbours are joined where
both are far below, and would be so together.
Sources: Betts, Practical Methods for Optimal Control, 2010, section 4.7; Doerfler, SIAM J. Numer. Anal. 33, 1996,
1106-1124 (which intervals make up an error).
"""

from dataclasses import dataclass

import numpy as np

MOST_PARTS = 4  # that an interval is split into at once
ROOM = 0.3  # of the tolerance, aimed at
FAR_BELOW = 0.05  # of the tolerance, after two intervals were joined


@dataclass(frozen=True, eq=False)
class Demand:
    """What the intervals of a phase are off by, over what they may be: 1 is just good enough.

    errors (N,): of the states, of order `order` in the length of an interval. losses (N,): in the objective, of order
    `loss_order`, zero where they may stay; all_losses (N,): the same of all, over an equal share of what they may add
    up to. kept: breakpoints that have to stay.
    """

    breakpoints: np.ndarray
    errors: np.ndarray
    losses: np.ndarray
    all_losses: np.ndarray
    order: float
    loss_order: float
    kept: tuple = ()

    def parts(self):
        """(N,) how many parts each interval is to be split into, 1 for none."""
        wanted = np.ones(len(self.errors))
        for ratio, order in ((self.errors, self.order), (self.losses, self.loss_order)):
            ratio = np.nan_to_num(ratio, nan=np.inf, posinf=1e300)
            wanted = np.maximum(wanted, np.where(ratio > 1, np.maximum((ratio / ROOM) ** (1 / order), 2.0), 1.0))
        return np.minimum(np.ceil(wanted - 1e-9), MOST_PARTS).astype(int)


def shares_of_losses(losses, allowed):
    """(N,) losses over what each may be, so that all of them add up to `allowed` at most: those that make up the rest
    of the sum, from the smallest on, may stay."""
    order = np.argsort(losses)
    sums = np.cumsum(losses[order])
    small = sums <= ROOM * allowed
    count = max(int((~small).sum()), 1)
    out = np.zeros(len(losses))
    large = order[~small]
    out[large] = np.maximum(losses[large] / (allowed / count), 1.0 + 1e-9)
    return out


def remeshed(demand, join=True):
    """Breakpoints of the next mesh."""
    parts, old = demand.parts(), demand.breakpoints
    joined = _joined(demand, parts) if join else np.zeros(len(parts), bool)
    out = [0.0]
    for k, count in enumerate(parts):
        if k and joined[k - 1]:
            out.pop()
        out += (old[k] + (old[k + 1] - old[k]) * np.arange(1, count + 1) / count).tolist()
    out[-1] = 1.0
    return np.array(out)


def halved(breakpoints):
    """The same with every interval in two."""
    middles = (breakpoints[1:] + breakpoints[:-1]) / 2
    return np.sort(np.concatenate([breakpoints, middles]))


def _joined(demand, parts):
    """(N,) whether an interval becomes one with the next."""
    N, h, out = len(parts), np.diff(demand.breakpoints), np.zeros(len(parts), bool)
    for k in range(N - 1):
        if (k and out[k - 1]) or parts[k] > 1 or parts[k + 1] > 1 or _near(demand.breakpoints[k + 1], demand.kept):
            continue
        longer = (h[k] + h[k + 1]) / min(h[k], h[k + 1])
        error = max(demand.errors[k], demand.errors[k + 1]) * longer**demand.order
        loss = (demand.all_losses[k] + demand.all_losses[k + 1]) * longer**demand.loss_order
        beside = max(parts[k - 1] if k else 1, parts[k + 2] if k + 2 < N else 1) > 1  # a graded mesh stays graded
        out[k] = max(error, loss) < FAR_BELOW and not beside
    return out


def _near(x, places):
    return any(abs(x - y) < 1e-9 for y in places)
