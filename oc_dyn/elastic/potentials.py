"""Springs that are not between one motor and its link: parallel ones, of links alone, and those across several joints.

Each is an energy: U(x) of parallel springs, x being the positions of the joints of one coordinate, and U(x, theta) of
springs across joints; torques are its slopes, with all time derivatives along a motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import casadi as ca

from ..lie.time_derivatives import time_derivatives
from .friction import link_friction, links_rub


@dataclass(frozen=True, eq=False)
class Potential:
    """Energy of springs on several joints.

    energy: casadi.Function (x, theta) -> [J]; theta is empty for parallel springs. q, v: rows of x, and of its rates,
    in positions and velocities of the drives; drives: how many velocities these have.
    """

    energy: ca.Function
    q: tuple[int, ...]
    v: tuple[int, ...]
    drives: int

    def positions(self, position: Sequence[Any]) -> list[Any]:
        """[x, x', ..] from [positions, velocities, ..] of the drives."""
        return [ca.vertcat(*(p[r] for r in (self.v if k else self.q))) for k, p in enumerate(position)]

    def on_drives(self, slope: Any) -> Any:
        """(drives,) column of torques from those at the rows of x."""
        rows = dict(zip(self.v, ca.vertsplit(slope), strict=True))
        return ca.vertcat(*(rows.get(k, ca.DM(1, 1)) for k in range(self.drives)))

    def value(self, position: Any, theta: Any = ()) -> Any:
        """Energy [J] at positions of the drives and theta."""
        return self.energy(self.positions([position])[0], theta if self.energy.size1_in(1) else ca.DM(0, 1))

    def slopes(self, position: Sequence[Any], theta: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
        """Derivatives 0.. of (the slope by x (drives,), that by theta), along jets of positions and theta of one
        length."""
        x = self.positions(position)
        n, m, order = len(self.q), self.energy.size1_in(1), len(x) - 1
        X, T = ([ca.SX.sym("x", size) for _ in x] for size in (n, m))
        energy = self.energy(X[0], T[0])
        slopes = ca.vertcat(ca.gradient(energy, X[0]), ca.gradient(energy, T[0]) if m else ca.SX(0, 1))
        rates = time_derivatives(slopes, order, [*pairwise(X), *pairwise(T)], cse=True)
        given = list(theta) if m else [ca.DM(0, 1)] * len(x)
        found = ca.Function("slopes", [*X, *T], rates).call([*x, *given])
        parts = [ca.vertsplit(s, [0, n, n + m]) for s in found]
        return [self.on_drives(p[0]) for p in parts], [p[1] for p in parts]

    def scaled(self, factor: float) -> Potential:
        """The same springs with their torques times a factor."""
        x, theta = (ca.SX.sym("x", self.energy.size1_in(k)) for k in (0, 1))
        energy = ca.Function("energy", [x, theta], [factor * self.energy(x, theta)])
        return Potential(energy, self.q, self.v, self.drives)


def links_loaded(elastic: Any) -> bool:
    """Whether friction or parallel springs act on the links alone."""
    return links_rub(elastic) or elastic.parallel is not None


def link_load(elastic: Any, position: Sequence[Any]) -> list[Any]:
    """Derivatives 0.. of the torques (drives,) that friction and parallel springs take from the links, one less than
    [x, x', ..] of the drives."""
    taken: list[Any] = [ca.DM(position[1].shape[0], 1)] * (len(position) - 1)
    if links_rub(elastic):
        taken = link_friction(elastic, position[1:])
    if elastic.parallel is not None:
        pull = elastic.parallel.slopes(position[:-1])[0]
        taken = [x + y for x, y in zip(taken, pull, strict=True)]
    return taken
