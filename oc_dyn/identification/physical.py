"""Inertial parameters that a body can have: those whose pseudo-inertia is positive definite.

The pseudo-inertia (4, 4) of a body is [[integral r r^T dm, h], [h^T, m]] with h the first moment and m the mass. It
is positive definite exactly if some density that is positive somewhere off every plane has these parameters (Wensing,
Kim and Slotine 2018). As U U^T, with U upper triangular and exponentials on its diagonal, it is so for all values of
its 10 log-Cholesky coordinates (Rucker and Wensing 2022): an unconstrained problem cannot leave the physical set.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..numbers import as_floats
from ..types import Array, Numbers

_TENSOR = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
SMALLEST_MASS = 1e-3  # [kg]
SMALLEST_RADIUS = 1e-3  # [m] radius of gyration in any direction


def pseudo_inertia(parameters: Numbers) -> Array:
    """(4, 4) pseudo-inertia of one body from its (10,) parameters."""
    x = as_floats("pseudo_inertia: parameters", parameters)
    T = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
    h = x[1:4, None]
    return np.block([[0.5 * np.trace(T) * np.eye(3) - T, h], [h.T, np.array([[x[0]]])]])


def _of_bodies(parameters: Numbers) -> Array:
    """(bodies, 10) floats."""
    x = as_floats("parameters", parameters)
    if x.size % 10:
        raise ShapeError(f"parameters: got {x.size} values, expected 10 for each body")
    if not np.isfinite(x).all():
        raise ShapeError(f"parameters: entry {int(np.argmin(np.isfinite(x.ravel())))} is not finite")
    return x.reshape(-1, 10)


def is_physical(parameters: Numbers) -> bool:
    """Whether each body of (10 bodies,) parameters has a positive definite pseudo-inertia."""
    bodies = _of_bodies(parameters)
    return all(np.linalg.eigvalsh(_balanced(pseudo_inertia(x))).min() > 0 for x in bodies)


def nearest_physical(parameters: Numbers) -> Array:
    """(10 bodies,) parameters with a positive definite pseudo-inertia, near the ones given: masses of at least
    SMALLEST_MASS, centres of mass as they are, principal radii of gyration of at least SMALLEST_RADIUS."""
    return np.concatenate([_repaired(x) for x in _of_bodies(parameters)])


def _repaired(x: Array) -> Array:
    if x[0] < SMALLEST_MASS:  # what is said of a body without mass means nothing
        x = np.concatenate([[SMALLEST_MASS], np.zeros(3), x[4:]])
    P = pseudo_inertia(x)
    m, c = P[3, 3], P[:3, 3] / P[3, 3]
    spread, axes = np.linalg.eigh(P[:3, :3] / m - np.outer(c, c))
    lowest = SMALLEST_RADIUS**2
    if spread.min() >= lowest:
        return x
    second = m * (axes @ np.diag(np.maximum(spread, lowest)) @ axes.T + np.outer(c, c))
    T = np.trace(second) * np.eye(3) - second
    return np.array([m, *(m * c), *(T[i, j] for i, j in _TENSOR)])


def coordinates(parameters: Numbers) -> Array:
    """(10 bodies,) log-Cholesky coordinates of physical parameters."""
    return np.concatenate([_coordinates(x) for x in _of_bodies(parameters)])


def _coordinates(x: Array) -> Array:
    P = pseudo_inertia(x)
    m, t = P[3, 3], P[:3, 3] / P[3, 3]
    C = P[:3, :3] / m - np.outer(t, t)
    L = np.linalg.cholesky(C[::-1, ::-1])[::-1, ::-1]  # upper triangular, L L^T = C
    return np.array([0.5 * np.log(m), *np.log(np.diag(L)), L[0, 1], L[1, 2], L[0, 2], *t])


def parameters_of(theta: Any) -> Any:
    """(10 bodies,) parameters of log-Cholesky coordinates, casadi."""
    return ca.vertcat(*(_parameters_of(theta[k : k + 10]) for k in range(0, theta.shape[0], 10)))


def _parameters_of(x: Any) -> Any:
    m, t = ca.exp(2 * x[0]), x[7:10]
    L = _factor(x)
    second = L @ L.T + t @ t.T
    T = ca.trace(second) * ca.DM.eye(3) - second
    return m * ca.vertcat(1, t, *(T[i, j] for i, j in _TENSOR))


def _factor(x: Any) -> Any:
    zero = ca.DM(1, 1)
    rows = [[ca.exp(x[1]), x[4], x[6]], [zero, ca.exp(x[2]), x[5]], [zero, zero, ca.exp(x[3])]]
    return ca.vertcat(*(ca.horzcat(*row) for row in rows))


def divergence(theta: Any, prior: Numbers) -> Any:
    """Distance of the bodies of coordinates theta (casadi) from those of `prior` (10 bodies,), which must be physical:
    sum of tr(P0^-1 P) - log det(P0^-1 P) - 4, which does not depend on units or frames (Lee, Wensing and Park 2020)."""
    total = 0
    for k, x in enumerate(np.asarray(prior, float).reshape(-1, 10)):
        own = theta[10 * k : 10 * k + 10]
        P0 = pseudo_inertia(x)
        second = ca.vertcat(ca.horzcat(_factor(own), own[7:10]), ca.DM([[0, 0, 0, 1]]))
        P = ca.exp(2 * own[0]) * (second @ second.T)
        volume = 2 * (4 * own[0] + own[1] + own[2] + own[3]) - np.linalg.slogdet(P0)[1]
        total = total + ca.trace(ca.DM(np.linalg.inv(P0)) @ P) - volume - 4
    return total


def _balanced(P: Array) -> Array:
    """The matrix with ones on its diagonal where that is positive, so that units do not decide on its sign."""
    d = np.diag(P)
    return P if d.min() <= 0 else P / np.sqrt(np.outer(d, d))
