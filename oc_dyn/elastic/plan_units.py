"""Typical sizes of a plan's unknowns, and guesses of its deflections, from the motion that the search begins with."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ports import derivative_name
from .damped_along import DampedDeflections
from .damped_flat import damped_joints
from .drives import drive_torques
from .plan_costs import DRAWN, powers
from .plan_outputs import jets_of

_LEAST = 1e-2  # of the largest


@dataclass(frozen=True, eq=False)
class Units:
    """deflection [rad, rad/s, ..], gap [Nm, Nm/s, ..] of the damped springs and their derivatives, power [W] of the
    motors, speed: sizes of them. nodes: the deflections at the nodes, as if without dampers (nodes + 1, d orders)."""

    task: Any
    T: float
    deflection: np.ndarray
    gap: np.ndarray
    power: np.ndarray | None
    speed: float
    nodes: np.ndarray

    @classmethod
    def of(cls, task, T, guess):
        """Units of an ElasticTask with derivatives of q at the nodes."""
        damped, x = damped_joints(task.elastic), [np.asarray(y, float) for y in guess]
        found = task.outputs(x)
        nodes, torques = _springs(task, damped, found, x)
        power = _size(powers(task, found)) if task.objective in DRAWN else None
        speed = 1.0
        if task.objective == "speed":
            speed = max(abs(float(task.speed(x[0][-1], x[1][-1]))), 1e-3)
        orders = 3 + int(task.rate)
        return cls(task, T, _sizes(nodes, orders), _sizes(torques, orders), power, speed, nodes)

    def deflections(self, shares):
        """(K, d orders) guess over the unit, at shares (K,) of the time."""
        known = self.task.known
        if known is not None:
            jets = None if self.task.sigma is None else jets_of(self.task.sigma, int(self.task.rate))
            along = DampedDeflections(self.task.elastic, known, jets, self.task.kind == "periodic")
            count = 3 + int(self.task.rate)
            values = np.hstack(along.at(known.t[0] + np.asarray(shares) * known.duration)[:count])
            if np.isfinite(values).all():
                return values / self.deflection
        at = np.linspace(0, 1, len(self.nodes))
        columns = [np.interp(shares, at, x) for x in (self.nodes / self.deflection).T]
        return np.array(columns).T.reshape(len(shares), -1)

    def lag(self, task):
        """(d,) time [intervals] that each damped spring needs: damping / stiffness."""
        damping = np.array([j.spring.damping for j in damped_joints(task.elastic)])
        size = damping.size
        return damping * self.deflection[:size] / self.gap[:size] * task.nodes / self.T

    def held(self, q):
        """(d,) deflections of the damped springs that hold the links still at q."""
        found = self.task.outputs([np.asarray(q, float)[None]])
        return found["deflection"][0, [j.theta[0] for j in damped_joints(self.task.elastic)]]


def _springs(task, damped, found, x):
    """(z, z', .. (K, d orders); torques and their derivatives alike) of springs without dampers."""
    if not damped:
        return np.zeros((len(x[0]), 0)), np.zeros((len(x[0]), 0))
    rows, joints, orders = [j.theta[0] for j in damped], [j.v for j in damped], 3 + int(task.rate)
    position = [at[:, [j.q if k == 0 else j.v for j in damped]] for k, at in enumerate(x[:4])]
    theta = [found[derivative_name("theta", k)][:, rows] for k in range(orders)]
    z = [np.nan_to_num(a - b) for a, b in zip(theta, position, strict=False)]
    tau = drive_torques(task.elastic, orders - 1)(*(y.T for y in [*x, 0 * x[0]][: orders + 2]))
    return np.hstack(z), np.hstack([np.array(f).T[:, joints] for f in tau])


def _size(values):
    """(n,) largest of the columns, none far below the others of its kind."""
    each = np.abs(np.nan_to_num(values)).max(axis=0, initial=0.0)
    return np.maximum(each, _LEAST * each.max(initial=0.0) + 1e-6)


def _sizes(values, orders):
    """As _size, of columns that are those of several orders of a derivative."""
    return np.concatenate([_size(x) for x in np.hsplit(values, orders)]) if values.size else np.zeros(0)
