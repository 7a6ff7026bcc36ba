"""Random quadratic programs on stages, and what tells whether one is solved."""

import casadi as ca
import numpy as np

from oc_dyn.control.stage_program import Shape, by_shapes
from oc_dyn.control.stage_qp import stage_qp

INF = np.inf


class Program:
    """Stages of sizes (nx, nu, rows) with dense blocks: matrices H, J, g, bounds lower and upper of [unknowns; rows]."""

    def __init__(self, rng, sizes, fixed=True, rank=None, unstable=1.0):
        n = sum(nx + nu for nx, nu, _ in sizes)
        self.first = np.cumsum([0, *(nx + nu for nx, nu, _ in sizes)])
        rows, shapes, at = [], [], 0
        self.H, self.g = np.zeros((n, n)), rng.normal(size=n)
        lower, upper = [], []
        for k, (nx, nu, ng) in enumerate(sizes):
            a, b = self.first[k], self.first[k + 1]
            root = rng.normal(size=(b - a if rank is None else min(rank, b - a), b - a))
            self.H[a:b, a:b] = root.T @ root
            n_next = sizes[k + 1][0] if k + 1 < len(sizes) else 0
            if n_next:
                block = np.zeros((n_next, n))
                block[:, a:b] = -rng.normal(size=(n_next, b - a)) * unstable / np.sqrt(max(nx, 1))
                block[:, b : b + n_next] += np.eye(n_next)
                rows.append(block)
                c = rng.normal(size=n_next)
                lower, upper = [*lower, *c], [*upper, *c]
            own = []
            if k == 0 and fixed:
                start = np.zeros((nx, n))
                start[:, :nx] = 2 * np.eye(nx)
                rows.append(start)
                value = rng.normal(size=nx)
                lower, upper = [*lower, *value], [*upper, *value]
                own = list(range(at + n_next, at + n_next + nx))
            C = np.zeros((ng, n))
            C[:, a:b] = rng.normal(size=(ng, b - a))
            rows.append(C)
            middle, width = rng.normal(size=ng), rng.uniform(0.1, 2, size=ng)
            lower, upper = [*lower, *(middle - width)], [*upper, *(middle + width)]
            own += list(range(at + n_next + len(own), at + n_next + len(own) + ng))
            shapes.append(Shape(nx, n_next, tuple(own)))
            at += n_next + len(own)
        self.J = np.vstack(rows)
        self.shapes, self.n, self.m = shapes, n, len(lower)
        self.lower = np.concatenate([np.full(n, -INF), lower])
        self.upper = np.concatenate([np.full(n, INF), upper])
        self.start = list(shapes[0].rows[: sizes[0][0]]) if fixed else []

    def controls(self):
        """Places of the controls."""
        return np.concatenate([np.arange(a + s.nx, b) for a, b, s in zip(self.first[:-1], self.first[1:], self.shapes, strict=True)])

    def bound(self, places, lower, upper):
        self.lower[places], self.upper[places] = lower, upper

    def made(self, price=1e4, **options):
        """StageQp and the prices of its limits."""
        constants = {(r, i): 2.0 for i, r in enumerate(self.start)}
        J, H = ca.DM(self.J).sparsity(), ca.DM(np.where(self.H == 0, 0, 1)).sparsity()
        J, H = ca.DM(np.where(self.J != 0, 1, 0)), ca.DM(np.where(self._pattern(), 1, 0))
        J, H = ca.sparsify(J).sparsity(), ca.sparsify(H).sparsity()
        b = {"lbx": self.lower[: self.n], "ubx": self.upper[: self.n], "lbg": self.lower[self.n :], "ubg": self.upper[self.n :]}
        stages = by_shapes(self.shapes, self.first, J, H, b, constants)
        equal = (self.lower == self.upper)[stages.limits]
        self.stages = stages
        return stage_qp("random", stages, J, H, np.where(equal, INF, price), equal, options), J, H

    def _pattern(self):
        out = np.zeros_like(self.H, bool)
        for a, b in zip(self.first[:-1], self.first[1:], strict=True):
            out[a:b, a:b] = True
        return out

    def solved(self, lam=None, price=1e4, **options):
        """(z, lam, error, beyond, factorisations, iterations)."""
        qp, J, H = self.made(price, **options)
        lam = np.zeros(self.n + self.m) if lam is None else lam
        prepared, _ = qp.prepare(ca.project(ca.DM(self.J), J), ca.project(ca.DM(self.H), H), self.g, lam)
        found = qp.solve(prepared, self.g, self.lower, self.upper, lam)
        return [np.array(x).ravel() for x in found[:2]] + [float(x) for x in found[2:]]

    def residuals(self, z, lam):
        """(stationarity, violation, complementarity): largest ones."""
        rows = np.concatenate([z, self.J @ z])
        stationary = self.H @ z + self.g + lam[: self.n] + self.J.T @ lam[self.n :]
        violation = np.maximum(np.maximum(self.lower - rows, rows - self.upper), 0)
        gap = np.where(lam > 0, np.minimum(np.abs(self.upper - rows), lam), np.minimum(np.abs(rows - self.lower), -lam))
        return np.abs(stationary).max(), violation.max(), np.abs(gap).max()

    def reference(self, solver="proxqp"):
        options = {"proxqp": {"proxqp": {"eps_abs": 1e-11, "max_iter": 20000}}, "qrqp": {"print_iter": False, "print_header": False, "print_info": False, "max_iter": 3000}}
        qp = ca.conic("reference", solver, {"h": ca.Sparsity.dense(self.n, self.n), "a": ca.Sparsity.dense(self.m, self.n)}, {**options[solver], "error_on_fail": False})
        found = qp(h=self.H, g=self.g, a=self.J, lba=self.lower[self.n :], uba=self.upper[self.n :], lbx=self.lower[: self.n], ubx=self.upper[: self.n])
        return np.array(found["x"]).ravel(), qp.stats()["success"]
