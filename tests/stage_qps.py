"""Random quadratic programs on stages, and what tells whether one is solved."""

import copy

import casadi as ca
import numpy as np

from oc_dyn.control.stage_program import Shape, by_shapes
from oc_dyn.control.stage_qp import stage_qp

INF = np.inf


class Program:
    """Stages of sizes (nx, nu, rows), dense blocks: matrices H, J, g, bounds lower and upper of [unknowns; rows]."""

    def __init__(self, rng, sizes, fixed=True, rank=None, unstable=1.0):
        n = sum(nx + nu for nx, nu, _ in sizes)
        self.first = np.cumsum([0, *(nx + nu for nx, nu, _ in sizes)])
        rows, shapes, at = [], [], 0
        self.H, self.g = np.zeros((n, n)), rng.normal(size=n)
        lower, upper = [], []
        for k, (nx, _, ng) in enumerate(sizes):
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
        return np.concatenate(
            [np.arange(a + s.nx, b) for a, b, s in zip(self.first[:-1], self.first[1:], self.shapes, strict=True)]
        )

    def bound(self, places, lower, upper):
        self.lower[places], self.upper[places] = lower, upper

    def made(self, price=1e4, **options):
        """StageQp and the prices of its limits."""
        constants = {(r, i): 2.0 for i, r in enumerate(self.start)}
        J, H = ca.DM(np.where(self.J != 0, 1, 0)), ca.DM(np.where(self._pattern(), 1, 0))
        J, H = ca.sparsify(J).sparsity(), ca.sparsify(H).sparsity()
        b = {
            "lbx": self.lower[: self.n],
            "ubx": self.upper[: self.n],
            "lbg": self.lower[self.n :],
            "ubg": self.upper[self.n :],
        }
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
        """(z, whether it was solved) by a solver that knows of no stages."""
        return _solved_by(solver, self.H, self.g, self.J, self.lower, self.upper)

    def repeated(self):
        """The same with every row that is no equation twice, the second time with twice the numbers."""
        out = copy.deepcopy(self)
        where, rows, shapes, at = np.cumsum([0, *(s.n_next + len(s.rows) for s in self.shapes)]), [], [], 0
        for k, s in enumerate(self.shapes):
            own = list(range(where[k], where[k + 1]))
            more = [r for r in s.rows if self.lower[self.n + r] != self.upper[self.n + r]]
            rows += [*((r, 1.0) for r in own), *((r, 2.0) for r in more)]
            count = len(own) + len(more)
            shapes.append(Shape(s.nx, s.n_next, tuple(range(at + s.n_next, at + count))))
            at += count
        places, scale = [r for r, _ in rows], np.array([x for _, x in rows])
        out.J, out.shapes, out.m = scale[:, None] * self.J[places], shapes, len(rows)
        for name in ("lower", "upper"):
            old = getattr(self, name)
            setattr(out, name, np.concatenate([old[: self.n], scale * old[self.n :][places]]))
        out.start = [i for i, (r, x) in enumerate(rows) if r in self.start and x == 1.0]
        return out

    def moved_apart(self, by):
        """Limits of rows moved out of what bounds of unknowns leave; places in [unknowns; rows]."""
        rows = self.n + np.flatnonzero(self.lower[self.n :] != self.upper[self.n :])
        self.lower[rows] += by * 10
        self.upper[rows] += by * 10
        return rows

    def with_slacks(self, price):
        """z of the program with slacks for all inequalities, at a price."""
        rows = np.vstack([np.eye(self.n), self.J])
        equal, k = self.lower == self.upper, self.n + self.m
        J = np.hstack([rows, np.diag(~equal * 1.0), -np.diag(~equal * 1.0)])
        kept = np.isfinite(self.lower) | np.isfinite(self.upper)
        H = np.zeros((self.n + 2 * k, self.n + 2 * k))
        H[: self.n, : self.n] = self.H
        g = np.concatenate([self.g, np.full(2 * k, price)])
        lower = np.concatenate([np.full(self.n, -INF), np.zeros(2 * k), self.lower[kept]])
        upper = np.concatenate([np.full(self.n + 2 * k, INF), self.upper[kept]])
        z, _ = _solved_by("proxqp", H, g, J[kept], lower, upper)
        return z[: self.n]


def _solved_by(solver, H, g, J, lower, upper):
    n, m = len(g), len(J)
    options = {
        "proxqp": {"proxqp": {"eps_abs": 1e-10, "max_iter": 20000}},
        "qrqp": {"print_iter": False, "print_header": False, "print_info": False, "max_iter": 3000},
    }[solver]
    shape = {"h": ca.Sparsity.dense(n, n), "a": ca.Sparsity.dense(m, n)}
    qp = ca.conic("reference", solver, shape, {**options, "error_on_fail": False})
    found = qp(h=H, g=g, a=J, lbx=lower[:n], ubx=upper[:n], lba=lower[n:], uba=upper[n:])
    return np.array(found["x"]).ravel(), qp.stats()["success"]


def feasible(sizes, case, seed):
    """Program with a place within all limits, some of them active there."""
    rng = np.random.default_rng(seed)
    p = Program(rng, sizes, case != "free start", 1 if case == "rank 1" else None, 3.0 if case == "unstable" else 1.0)
    equal = p.lower[p.n :] == p.upper[p.n :]
    E = p.J[equal]
    z = np.linalg.lstsq(E, p.lower[p.n :][equal], rcond=None)[0] if len(E) else np.zeros(p.n)
    space = np.linalg.svd(E)[2][len(E) :] if len(E) else np.eye(p.n)
    z = z + space.T @ rng.normal(size=len(space))
    rows, limits = np.concatenate([z, p.J @ z]), p.n + np.flatnonzero(~equal)
    p.bound(limits, rows[limits] - rng.uniform(0, 1, limits.size), rows[limits] + rng.uniform(0.01, 1, limits.size))
    free = np.arange(0 if case == "free start" else p.shapes[0].nx, p.n)
    if case in ("all bounded", "rank 1"):
        p.bound(free, z[free] - rng.uniform(0.01, 1, free.size), z[free] + rng.uniform(0.01, 1, free.size))
    if case == "equations":
        p.bound(limits[::3], rows[limits[::3]], rows[limits[::3]])
    if case == "goal" and len(sizes) > 1:
        last = np.arange(p.first[-2], p.n)
        p.bound(last, z[last], z[last])
    return p
