"""Geometric paths q(s), s from 0 to 1: splines through way points, and casadi Functions."""

import casadi as ca
import numpy as np

from ..errors import LimitError, OrderError, ShapeError
from ..numbers import as_floats
from ..optimal_control.polynomials import derivatives_at

_GRID = 400  # intervals a Function is looked at on
_FARTHEST = 1e9  # [rad or m]
_JUMP = 1e-3  # share of the range of a derivative that its integral may miss before it counts as a jump


class Spline:
    """Piecewise polynomial (pieces (M, degree + 1, n): derivatives by s at the breakpoints (M + 1,)), points_at the
    s of the way points."""

    def __init__(self, breaks, pieces, continuity, points_at):
        self.breaks, self.pieces, self.continuity, self.points_at = breaks, pieces, continuity, points_at
        self.knots = breaks[1:-1]

    @property
    def n(self):
        """Number of joints."""
        return self.pieces.shape[2]

    def at(self, s, count, before=False):
        """(count, K, n): q and its derivatives by s at s (K,); before: at a knot those in front of it."""
        side = "left" if before else "right"
        piece = np.clip(np.searchsorted(self.breaks, s, side=side) - 1, 0, len(self.pieces) - 1)
        return derivatives_at(self.pieces[piece], s - self.breaks[piece], count)


class FunctionCurve:
    """A casadi Function s -> q (n,) that can be differentiated."""

    knots = np.zeros(0)

    def __init__(self, function, continuity):
        if function.n_in() != 1 or function.n_out() != 1 or function.numel_in(0) != 1:
            raise ShapeError(f"path: {function} should take one number s from 0 to 1 and give q")
        self.function, self.continuity, self.n = function, continuity, function.numel_out(0)
        self.made = {}  # by the number of derivatives; a casadi.Function does not change

    def at(self, s, count, before=False):
        """As Spline.at; a Function is the same on both sides."""
        if count not in self.made:
            symbol = ca.MX.sym("s")
            out = [ca.densify(ca.vec(self.function(symbol)))]
            while len(out) < count:
                out.append(ca.densify(ca.jacobian(out[-1], symbol)))
            self.made[count] = ca.Function("path", [symbol], out)
        s = np.asarray(s, float)
        found = self.made[count].map(len(s))(s[None, :])
        return np.array([np.array(x).T for x in (found if count > 1 else [found])])


def spline(points, at=None, degree=3):
    """Spline of odd degree through way points (k, n), degree - 1 times continuously differentiable.

    at (k,): s of each, from 0 to 1; by default in proportion to the square roots of their distances, which avoids loops
    between way points that are close. The conditions at the ends: the highest derivative does not jump at the
    (degree - 1) / 2 way points next to each end. Fewer than degree + 1 way points are joined by one polynomial.
    """
    points = np.asarray(points, float)
    k = len(points)
    if not np.abs(points).max(initial=0.0) < _FARTHEST:
        raise LimitError(f"path: way points get to {np.abs(points).max():g}, they can be up to {_FARTHEST:g} rad or m")
    at = places_of(points, at)
    if k <= degree:
        degree = k - 1
    half = (degree + 1) // 2
    inner = at[half:-half] if k > degree + 1 else np.zeros(0)
    knots = np.concatenate([np.zeros(degree + 1), inner, np.ones(degree + 1)])
    control = np.linalg.solve(_basis(knots, degree, at), points)
    breaks = np.concatenate([[0.0], inner, [1.0]])
    pieces = []
    for d in range(degree + 1):
        pieces.append(_basis(knots, degree - d, breaks[:-1]) @ control)
        if d < degree:
            p = degree - d
            spans = knots[p + 1 : -1] - knots[1 : -p - 1]
            control = p * np.diff(control, axis=0) / spans[:, None]
            knots = knots[1:-1]
    return Spline(breaks, np.stack(pieces, axis=1), degree - 1 if len(inner) else np.inf, at)


def places_of(points, at):
    """(k,) s of each way point (k, n), from what a caller gives; see spline. LimitError where two that follow each
    other are the same."""
    k, gaps = len(points), np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not gaps.all():
        i = int(np.argmin(gaps))
        raise LimitError(f"path: way points {i} and {i + 1} are the same; leave one out, or plan two paths")
    if at is None:
        at = np.concatenate([[0.0], np.cumsum(np.sqrt(gaps))])
        at = at / at[-1]
    at = as_floats("path: at", at)
    if at.shape != (k,) or at[0] != 0 or at[-1] != 1 or not np.all(np.diff(at) > 0):
        raise ShapeError(f"path: at is {at}, expected {k} rising numbers from 0 to 1, one for every way point")
    return at


def _basis(knots, degree, x):
    """(K, m) values of the B-splines of a degree at x (Cox and de Boor)."""
    last = len(knots) - degree - 2
    span = np.clip(np.searchsorted(knots, x, side="right") - 1, degree, last)
    B = np.zeros((len(x), len(knots) - 1))
    B[np.arange(len(x)), span] = 1.0
    for p in range(1, degree + 1):
        left, right = knots[p:-1] - knots[: -p - 1], knots[p + 1 :] - knots[1:-p]
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where(left > 0, (x[:, None] - knots[: -p - 1]) / left, 0.0)
            b = np.where(right > 0, (knots[p + 1 :] - x[:, None]) / right, 0.0)
        B = a * B[:, :-1] + b * B[:, 1:]
    return B


def curve(path, at, degree, continuity, names):
    """Spline or FunctionCurve of what a user gives as path; refuses what is not smooth enough for `continuity`."""
    if isinstance(path, ca.Function):
        if at is not None or degree is not None:
            raise ShapeError("path: a Function needs neither at nor degree")
        made = FunctionCurve(path, continuity)
    else:
        points = as_floats("path", path)
        if points.ndim != 2 or len(points) < 2 or points.shape[1] != len(names):
            raise ShapeError(f"path: got shape {points.shape}, expected (k, {len(names)}) with k of at least 2")
        if not np.all(np.isfinite(points)):
            k, i = np.argwhere(~np.isfinite(points))[0]
            raise ShapeError(f"path: way point {k}, joint {names[i]!r} is not a finite number")
        needed = continuity + 1 + continuity % 2
        degree = needed if degree is None else degree
        if isinstance(degree, bool) or not isinstance(degree, (int, np.integer)) or degree not in (1, 3, 5, 7, 9):
            raise OrderError(f"path: degree is {degree!r}, expected 3, 5, 7 or 9")
        if degree < continuity + 1 and len(points) > degree + 1:
            raise OrderError(
                f"path: a spline of degree {degree} is {degree - 1} times continuously differentiable, "
                f"continuity {continuity} needs degree {needed}"
            )
        made = spline(points, at, degree)
    if made.n != len(names):
        raise ShapeError(f"path: it gives {made.n} values, expected {len(names)}: {', '.join(names)}")
    if isinstance(made, FunctionCurve):
        _check_smooth(made, continuity)
    return made


def _check_smooth(made, continuity):
    """Refuse a Function whose derivative jumps: the integral of the next one misses what it changes by."""
    edges = np.linspace(0, 1, _GRID + 1)
    x, w = np.polynomial.legendre.leggauss(4)
    inner = (edges[:-1, None] + (x + 1) / 2 / _GRID).ravel()
    values, slopes = made.at(edges, continuity + 2), made.at(inner, continuity + 2)
    if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
        raise LimitError("path: it has values or derivatives that are not finite numbers")
    for d in range(continuity + 1):
        gained = (slopes[d + 1].reshape(_GRID, 4, -1) * (w / 2)[:, None]).sum(axis=1) / _GRID
        miss = np.abs(np.diff(values[d], axis=0) - gained).max(axis=1)
        scale = np.abs(values[d]).max() + np.abs(slopes[d + 1]).max() / _GRID
        k = int(np.argmax(miss))
        if miss[k] > _JUMP * max(scale, 1e-9) and miss[k] > 20 * np.median(miss):
            what = "it" if d == 0 else f"its derivative {d}"
            raise OrderError(
                f"path: {what} jumps near s = {(edges[k] + 0.5 / _GRID):.3g}; continuity {continuity} needs a path "
                f"that is {continuity} times continuously differentiable"
            )
