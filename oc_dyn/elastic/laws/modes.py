"""Double diagonalisation of an inertia and a stiffness, in numbers and in expressions, and the damping it gives."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ShapeError
from ...numbers import are_sane, as_floats, shortened
from ...types import Array

_ROUNDING = 1e-9  # share of a matrix' size by which it may be asymmetric or indefinite
SWEEPS = 5  # of Jacobi's rotations: inertias and stiffnesses of arms of 7 joints to rounding


def modal_damping(inertia: Array, stiffness: Array, ratio: Any = 0.7) -> Array:
    """(n, n) damping D = 2 Q diag(ratio sqrt(k)) Q' with inertia M = Q Q' and stiffness K = Q diag(k) Q', for which
    every mode of M x'' + D x' + K x = 0 has this damping ratio: a number or (n,), by rising frequency.

    Raises ShapeError for an inertia that is not symmetric and positive definite, a stiffness that is not symmetric or
    has negative eigenvalues, and ratios below 0.
    Source: Albu-Schaeffer, Ott, Frese, Hirzinger, Cartesian impedance control of redundant robots: recent results with
    the DLR light-weight arms, ICRA 2003 (double diagonalisation).
    """
    M, K = _symmetric("inertia", inertia), _symmetric("stiffness", stiffness)
    if M.shape != K.shape:
        raise ShapeError(f"modal_damping: inertia {M.shape} and stiffness {K.shape}, expected the same shape")
    if not np.linalg.eigvalsh(M)[0] > 0:
        raise ShapeError(f"modal_damping: inertia is {M.tolist()}, expected positive eigenvalues")
    if np.linalg.eigvalsh(K)[0] < -_ROUNDING * np.abs(K).max():
        raise ShapeError(f"modal_damping: stiffness is {K.tolist()}, expected no negative eigenvalues")
    ratio = validation.finite_numbers("modal_damping: ratio", ratio, len(M))
    if np.any(ratio < 0):
        raise ShapeError(f"modal_damping: ratio is {ratio.tolist()}, expected numbers of at least 0")
    Q, k = modes(M, K)
    return (Q * (2 * ratio * np.sqrt(np.maximum(k, 0)))) @ Q.T


def _symmetric(what: str, value: Any) -> Array:
    """(n, n) finite symmetric matrix."""
    found = as_floats(f"modal_damping: {what}", value)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size or not are_sane(found):
        raise ShapeError(f"modal_damping: {what} is {shortened(value)}, expected a square matrix of finite numbers")
    if np.abs(found - found.T).max() > _ROUNDING * np.abs(found).max():
        raise ShapeError(f"modal_damping: {what} is {found.tolist()}, expected a symmetric matrix")
    return 0.5 * (found + found.T)


def modes(inertia: Array, stiffness: Array) -> tuple[Array, Array]:
    """(Q, k) with inertia = Q Q' and stiffness = Q diag(k) Q', k rising; the squares of the modes' frequencies."""
    L = np.linalg.cholesky(inertia)
    k, V = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, stiffness).T))
    return L @ V, k


def modes_of(inertia: Any, stiffness: Any) -> tuple[Any, Any]:
    """(Q, k (n, 1)) as modes, in any order, of expressions: Cholesky's factor and Jacobi's cyclic rotations."""
    n = inertia.size1()
    L = ca.chol(ca.densify(inertia)).T
    A = ca.solve(L, ca.solve(L, ca.densify(stiffness)).T)
    a = [[A[i, j] for j in range(n)] for i in range(n)]
    columns = [[L[i, j] for i in range(n)] for j in range(n)]
    size = ca.trace(A)
    for _ in range(SWEEPS if n > 2 else n - 1):
        for p, q in combinations(range(n), 2):
            # the share of the size keeps the angle's derivative finite where there is nothing to turn
            angle = 0.5 * ca.atan2(2 * a[p][q], a[q][q] - a[p][p] + 1e-14 * size)
            c, s = ca.cos(angle), ca.sin(angle)
            for row in a:
                row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
            a[p], a[q] = [[c * x - s * y for x, y in zip(a[p], a[q], strict=True)],
                          [s * x + c * y for x, y in zip(a[p], a[q], strict=True)]]  # fmt: skip
            columns[p], columns[q] = [[c * x - s * y for x, y in zip(columns[p], columns[q], strict=True)],
                                      [s * x + c * y for x, y in zip(columns[p], columns[q], strict=True)]]  # fmt: skip
    return ca.horzcat(*(ca.vertcat(*x) for x in columns)), ca.vertcat(*(a[i][i] for i in range(n)))
