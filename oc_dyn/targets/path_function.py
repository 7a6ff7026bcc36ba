"""A motion along a path as a Function of the share of the path passed and its time derivatives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import factorial
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..planning.curves import FunctionCurve, Spline
from ..planning.path_motion import PathMotion, bell
from ..planning.quantities import order_name
from ..planning.stops import Joined, Part
from ..ports import derivative_name


def path_function(where: str, motion: PathMotion, orders: int, more: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Function s, ds, ... -> q, v, ... (so many, orders), and what `more` makes of them by name."""
    count = motion.law.shape[1]
    names = [derivative_name("s", k) for k in range(count)]
    law = [ca.MX.sym(n) for n in names]
    path = [x for x in _derivatives(where, motion.curve, law[0], orders)]
    rates = [*law[1:], *([ca.MX(0)] * orders)]
    B = bell(orders - 1, rates)
    found = {"q": path[0]}
    for m in range(1, orders):
        terms = [path[j] * B[m][j - 1] for j in range(1, m + 1)]
        found[order_name(m)] = sum(terms[1:], terms[0])
    found = {n: ca.densify(x) for n, x in (found | more(found)).items()}
    return ca.Function("outputs", law, ca.cse(list(found.values())), names, list(found))


def _derivatives(where: str, curve: Any, s: ca.MX, count: int) -> list[ca.MX]:
    """[q, dq/ds, ...] of a curve, as its `at` has them."""
    if isinstance(curve, Joined):
        curve = _whole(where, curve)
    s = ca.fmin(ca.fmax(s, 0), 1)
    if isinstance(curve, FunctionCurve):
        curve.at(np.zeros(1), count)  # makes the Function
        return list(curve.made[count].call([s]))
    if not isinstance(curve, Spline):
        problem = f"its path is a {type(curve).__name__}, expected a spline through points, or a casadi.Function"
        raise ModelError(where, [problem])
    M, orders, n = curve.pieces.shape
    piece = ca.low(ca.DM(curve.breaks), s) if M > 1 else 0
    mine = ca.reshape(ca.MX(ca.DM(curve.pieces.reshape(M, -1).T))[:, piece], n, orders)
    u = s - ca.MX(ca.DM(curve.breaks))[piece]
    out = []
    for d in range(count):
        terms = [mine[:, j] * u ** (j - d) / factorial(j - d) for j in range(d, orders)]
        out.append(sum(terms[1:], terms[0]) if terms else ca.MX(n, 1))
    return out


def _whole(where: str, joined: Joined) -> Any:
    """The one curve that stretches at rest between them are parts of."""
    stretches = joined.stretches
    if all(isinstance(x, Part) for x in stretches) and len({id(x.on) for x in stretches}) == 1:
        return stretches[0].on
    if not all(isinstance(x, Spline) for x in stretches):
        raise ModelError(where, ["its path is of stretches of several kinds, expected splines, or one casadi.Function"])
    most = max(x.pieces.shape[1] for x in stretches)
    breaks, pieces = [joined.edges[:1]], []
    for x, (a, b) in zip(stretches, pairwise(joined.edges), strict=True):
        breaks.append(np.append(a + (b - a) * x.breaks[1:-1], b))
        scaled = x.pieces / ((b - a) ** np.arange(x.pieces.shape[1]))[:, None]
        pieces.append(np.pad(scaled, ((0, 0), (0, most - x.pieces.shape[1]), (0, 0))))
    return Spline(np.concatenate(breaks), np.concatenate(pieces), 0, joined.points_at)
