"""Criteria of how much a motion tells, by the Gram matrix of its rows, with their gradients, for optimisers."""

# ruff: noqa: D102 - what a ca.Callback must have

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ..types import Array


class GramCriterion(ca.Callback):
    """A criterion of W^T W by the coefficients (n, rows of a basis) of a motion, as a column, with its gradient.

    regressor: casadi.Function (q, v, dv, ...) -> rows (k, p) of one sample; bases: (rows, samples) of q, of v, of dv,
    ...: the coefficients times these are the samples. measure: Gram matrix (p, p) -> (value, derivative g by it,
    symmetric); the derivative of the value by the coefficients is that of sum(2 W g * W) with 2 W g held, so that it
    takes one reverse sweep over all samples.
    """

    def __init__(
        self, regressor: ca.Function, bases: tuple[Array, ...], measure: Callable[[Array], tuple[float, Array]]
    ) -> None:
        super().__init__()
        rows, count = bases[0].shape
        n, (k, p) = regressor.size1_in(0), regressor.size_out(0)
        self._size, self._shape, self._measure = n * rows, (k, count, p), measure
        x = ca.MX.sym("x", self._size)
        coefficients = ca.reshape(x, n, rows)
        W = regressor.map(count)(*(coefficients @ ca.DM(B) for B in bases))
        seed = ca.MX.sym("seed", *W.shape)
        self._rows = ca.Function("rows", [x], [W])
        self._sweep = ca.Function("sweep", [x, seed], [ca.jtimes(W, x, seed, True)])
        self.construct("criterion", {})

    def get_n_in(self) -> int:
        return 1

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(self._size, 1)

    def eval(self, arguments: Any) -> list[Any]:
        return [self._measured(arguments[0])[0]]

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(self, name: str, inputs: Any, outputs: Any, options: Any) -> ca.Function:
        self._slope = _Slope(name, self, options)
        return self._slope

    def gradient(self, x: Any) -> Any:
        """Gradient (1, coefficients)."""
        _, W, g = self._measured(x)
        k, count, p = self._shape
        seed = (2 * W @ g).reshape(k, count * p)
        return self._sweep(x, seed).T

    def _measured(self, x: Any) -> tuple[float, Array, Array]:
        """Value, rows (k samples, p), and the derivative by their Gram matrix."""
        W = np.array(self._rows(x)).reshape(-1, self._shape[2])
        value, g = self._measure(W.T @ W)
        return value, W, g


class _Slope(ca.Callback):
    def __init__(self, name: str, criterion: GramCriterion, options: Any) -> None:
        super().__init__()
        self._criterion = criterion
        self.construct(name, options)

    def get_n_in(self) -> int:
        return 2

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(self._criterion._size, 1) if i == 0 else ca.Sparsity(1, 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(1, self._criterion._size)

    def eval(self, arguments: Any) -> list[Any]:
        return [self._criterion.gradient(arguments[0])]
