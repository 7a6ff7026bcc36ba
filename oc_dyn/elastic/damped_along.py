"""Deflections of damped springs along a planned motion of the links, by their own equation and its derivatives.

D z' + phi(z, sigma) = tau has one unknown a spring, and tau(t) is known. So have its derivatives z' and z'', each with
an equation of its kind. All are stepped by Radau's collocation, inside the pieces of the motion: stiffly accurate,
so that where D is small, z, z' and z'' are those of the undamped spring, and nothing is divided by D.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ..optimal_control.polynomials import derivatives_at, lagrange
from ..planning.trajectory import Trajectory
from ..types import Array
from .damped_flat import damped_joints, spring_rates
from .drives import drive_torques
from .model import ElasticRobot
from .springs import LinearSpring

DEGREE = 5  # of the collocation
_LEAST, _STEPS, _CYCLES, _SAME = 4, 400, 50, 1e-12  # steps in a piece, in all; turns until periodic, and when they are
_NEWTON = 60

Jets = Callable[[Array], list[Array]]


class DampedDeflections:
    """Deflections of the damped springs along a Trajectory of the links, from a start at rest, or periodic.

    sigma: function t (K,) -> [sigma, dsigma, d2sigma, ..] (K, n), of robots that vary their stiffness.
    """

    def __init__(
        self, elastic: ElasticRobot, motion: Trajectory, sigma: Jets | None = None, periodic: bool = False,
    ) -> None:  # fmt: skip
        damped, pieces = damped_joints(elastic), len(motion.pieces)
        self._count = max(_LEAST, -(-_STEPS // pieces))
        self._points = np.array([0.0, *ca.collocation_points(DEGREE, "radau")])
        lengths, steps = np.diff(motion.t) / self._count, pieces * self._count
        which, inner = np.repeat(np.arange(pieces), self._count), np.tile(np.arange(self._count), pieces)
        self._h, self._t = lengths[which], motion.t[which] + inner * lengths[which]
        shares = self._points[1:]
        local = ((inner[:, None] + shares) * self._h[:, None]).ravel()
        order = np.repeat(which, DEGREE)
        x = derivatives_at(motion.pieces[order], local, 5)
        known = [np.array(f).T for f in drive_torques(elastic, 2)(*(k.T for k in x))]
        rows = [j.v for j in damped]
        tau = np.array(known)[:, :, rows].reshape(3, steps, DEGREE, len(rows))
        times = motion.t[order] + local
        given = sigma(times)[:3] if sigma else [np.zeros((times.size, 0))] * 3
        self._sigma = np.array(given).reshape(3, steps, DEGREE, -1)
        self._damping = np.array([j.spring.damping for j in damped])
        self._law, self._tau = spring_rates(elastic).map(DEGREE), tau
        stiffness = [j.spring.stiffness for j in damped if isinstance(j.spring, LinearSpring)]
        self._stiffness = np.array(stiffness) if len(stiffness) == len(damped) else None
        self._inverses: dict[float, Array] = {}  # of steps of the same length, of linear springs
        self.values = np.zeros((3, steps, DEGREE + 1, len(rows)))  # of z, z', z'' at the points
        slopes = np.array([_slopes(self._points, s) for s in shares])
        self._start_slopes, self._slopes = slopes[:, 0], slopes[:, 1:]
        start = _at_start(elastic, motion, sigma)
        if not periodic:  # what is at rest stays so: jumps of tau'' reach z'' a little later
            start[1:] = 0.0
        for _ in range(_CYCLES if periodic else 1):
            end = self._march(start)
            if np.abs(end - start).max() <= _SAME * np.abs(self.values[0]).max():
                break
            start = end

    def _march(self, start: Array) -> Array:
        """(3, d) z, z', z'' at the end, from those at the start."""
        x = start
        for k, h in enumerate(self._h):
            self.values[:, k, 0] = x
            self._step(k, h, x)
            x = self.values[:, k, -1]
        return x

    def _step(self, k: int, h: float, start: Array) -> None:
        """Solve the equations of a step: Newton's method for z, linear ones for its derivatives."""
        sigma, zero, D = self._sigma[:, k], np.zeros(self._tau[0, k].shape), self._damping
        z = np.repeat(start[0][None], DEGREE, 0) if k == 0 else start[0] + h * self._points[1:, None] * start[1]
        for _ in range(_NEWTON):
            phi, _, _, slope = self._rates(z, zero, zero, sigma)
            change = self._solved(h, slope, self._tau[0, k] - phi - D / h * self._drawn(z, start[0]))
            z = z + change
            if self._stiffness is not None:
                break
            if not np.isfinite(z).all() or np.abs(change).max(initial=0) <= 1e-14 * (1e-3 + np.abs(z).max(initial=0)):
                break
        self.values[0, k, 1:] = z
        for order in (1, 2):
            first, second = [*self.values[1:order, k, 1:], zero, zero][:2]
            found = self._rates(z, first, second, sigma)
            wanted = self._tau[order, k] - found[order] - D / h * self._start_slopes[:, None] * start[order]
            self.values[order, k, 1:] = self._solved(h, found[3], wanted)

    def _rates(self, z: Array, dz: Array, d2z: Array, sigma: Array) -> list[Array]:
        """[torque of the springs, its derivatives, slope] at the points of a step."""
        if self._stiffness is not None:
            return [*(self._stiffness * x for x in (z, dz, d2z)), np.broadcast_to(self._stiffness, z.shape)]
        return [np.array(x).T for x in self._law(z.T, dz.T, d2z.T, *(x.T for x in sigma))]

    def _drawn(self, z: Array, start: Array) -> Array:
        return self._slopes @ z + self._start_slopes[:, None] * start

    def _solved(self, h: float, slope: Array, right: Array) -> Array:
        """(DEGREE, d) x of (D / h slopes + diag(slope)) x = right, each spring by itself."""
        if h in self._inverses:
            return (self._inverses[h] @ right.T[:, :, None])[:, :, 0].T
        A = self._damping[:, None, None] / h * self._slopes + slope.T[:, :, None] * np.eye(DEGREE)
        if self._stiffness is not None:
            self._inverses[h] = np.linalg.inv(A)
        return np.linalg.solve(A, right.T[:, :, None])[:, :, 0].T

    def at(self, t: Array) -> list[Array]:
        """[z, z', z'', z'''] (K, d) at times t (K,)."""
        k = np.clip(np.searchsorted(self._t, t, side="right") - 1, 0, len(self._t) - 1)
        s = np.clip((t - self._t[k]) / self._h[k], 0.0, 1.0)
        weights = lagrange(self._points, s)
        jets = [np.einsum("ik,kij->kj", weights, x[k]) for x in self.values]
        rates = _slopes(self._points, s)
        return [*jets, np.einsum("ik,kij->kj", rates, self.values[2][k]) / self._h[k, None]]


def _slopes(points: Array, s: Any) -> Array:
    """Weights of values at points in the derivative at s of the polynomial through them, (n,) or (n, M)."""
    powers = np.arange(len(points))
    low = np.maximum(powers - 1, 0)
    value = powers * np.asarray(s, float)[..., None] ** low
    return np.linalg.solve(np.vander(points, increasing=True).T, np.moveaxis(value, -1, 0))


def _at_start(elastic: ElasticRobot, motion: Trajectory, sigma: Jets | None) -> Array:
    """(3, d) z, z', z'' of the springs without damping at the start, exact for a start at rest."""
    x = derivatives_at(motion.pieces[:1], np.zeros(1), 5)
    tau = drive_torques(elastic, 2)(*(k.T for k in x))
    given = sigma(motion.t[:1]) if sigma else []
    jets = []
    for j in damped_joints(elastic):
        torque = [float(f[j.v]) for f in tau]
        own = [float(s[0, j.sigma]) for s in given[:3]] if j.sigma is not None else []
        error = j.spring.refusal(torque[0], own[:1])
        if error is not None:
            raise type(error)(f"{elastic.name}: joint {j.name!r} at the start: {error}")
        jets.append([float(z) for z in j.spring.deflections([ca.DM(f) for f in torque], [ca.DM(s) for s in own])[0]])
    return np.array(jets).T.reshape(3, -1)
