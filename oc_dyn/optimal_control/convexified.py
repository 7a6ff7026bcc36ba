"""A Hessian that consists of blocks of stages, made positive semidefinite block by block, for quadratic programs."""

import casadi as ca
import numpy as np

_FLOOR = 1e-8  # of the largest eigenvalue of a block


class Convexified(ca.Callback):
    """Upper triangle (n, n) -> symmetric (n, n) whose blocks have no eigenvalue below zero: what is negative is lifted.

    first: where blocks begin, and the end of the last. A shift of the whole diagonal, which is what CasADi's own
    "regularize" does, turns Newton's method into one of steepest descent where one block alone is indefinite.
    """

    def __init__(self, upper, first):
        super().__init__()
        self.upper = upper
        row, column = (np.array(x, int) for x in upper.get_triplet())
        sizes = np.diff(first)
        start = np.concatenate([[0], np.cumsum(sizes**2)])
        block = np.searchsorted(first, row, side="right") - 1
        i, j = row - first[block], column - first[block]
        if np.any(column >= first[block + 1]):
            raise ValueError("the Hessian couples stages")
        self.above, self.below = start[block] + i + sizes[block] * j, start[block] + j + sizes[block] * i
        self.length = int(start[-1])
        self.groups = []
        for size in np.unique(sizes[sizes > 0]):
            here = start[:-1][sizes == size]
            self.groups.append((size, (here[:, None] + np.arange(size**2)).ravel()))
        self.full = ca.diagcat(ca.Sparsity(0, 0), *(ca.Sparsity.dense(int(n), int(n)) for n in sizes))
        self.construct("convexified", {})

    def get_n_in(self):
        """For CasADi: one input, the Hessian."""
        return 1

    def get_n_out(self):
        """For CasADi: one output, the Hessian made convex."""
        return 1

    def get_sparsity_in(self, _):
        """For CasADi: the upper triangle."""
        return self.upper

    def get_sparsity_out(self, _):
        """For CasADi: both triangles."""
        return self.full

    def eval(self, arg):
        """For CasADi: [upper triangle] -> [both triangles, of blocks that are positive definite]."""
        values = np.zeros(self.length)
        values[self.above] = values[self.below] = arg[0].nonzeros()
        for size, places in self.groups:
            H = values[places].reshape(-1, size, size)
            if np.isfinite(H).all():
                eigenvalues, vectors = np.linalg.eigh(H)
                floor = _FLOOR * np.abs(eigenvalues).max(axis=1, keepdims=True)
                lifted = np.maximum(eigenvalues, floor)
                values[places] = ((vectors * lifted[:, None, :]) @ np.swapaxes(vectors, 1, 2)).ravel()
        return [ca.DM(self.full, values)]
