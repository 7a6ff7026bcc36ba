"""Where the coordinates of a motion are in the middle of an interval of time, and bounds of their rates on all of it.

Pieces are polynomials, so Taylor's formula about the middle has finitely many terms, and the sum of their sizes is a
bound, exact as intervals get short.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any, TypeAlias

import numpy as np

from ..errors import ShapeError
from ..optimal_control.polynomials import derivatives_at
from ..scene.chains import Ranges
from ..scene.intervals import CurveBounds
from ..types import Array, Indices
from .curves import FunctionCurve

RangesOn: TypeAlias = Callable[[Indices, Array, Array], Ranges]  # pieces, middles after their starts, half lengths

_DEGREE = 9  # of splines at most
_AT_NODE = 1e-9  # share of the path that counts as none


def ranges_of(motion: Any) -> tuple[RangesOn, tuple[str, ...]]:
    """(Ranges on intervals, notes) of a Trajectory or PathMotion.

    Raises ShapeError for motions along a path whose knots are not among their breakpoints, and for what is no motion.
    """
    if hasattr(motion, "pieces"):
        return lambda piece, s, h: _of_polynomials(motion.pieces[piece], s, h), ()
    if hasattr(motion, "law"):
        return _of_path(motion)
    raise ShapeError(f"certify: got {motion!r}, expected a Trajectory or a PathMotion")


def _of_polynomials(pieces: Array, s: Array, h: Array) -> Ranges:
    count = max(pieces.shape[1], 3)
    D = np.array(derivatives_at(pieces, s, count))
    return Ranges(D[0], D[1], _largest(D, 1, h), _largest(D, 2, h))


def _largest(D: Array, k: int, h: Array) -> Array:
    """(K, n) bounds of the size of derivative k of polynomials whose derivatives in the middle are D (count, K, n)."""
    powers = [h**j / factorial(j) for j in range(len(D) - k)]
    return np.asarray(sum(np.abs(D[k + j]) * power[:, None] for j, power in enumerate(powers)))


def _of_path(motion: Any) -> tuple[RangesOn, tuple[str, ...]]:
    """By the chain rule, q' = q_s s' and q'' = q_ss s'^2 + q_s s''."""
    law, curve = motion.law, motion.curve
    ends = np.append(law[:, 0], 1.0)
    _refuse_knots_between(curve, ends)
    function = _function_inside(curve)
    if function is None:
        middle = (ends[:-1] + ends[1:]) / 2
        splines = curve.at(middle, _DEGREE + 1).swapaxes(0, 1)
        bounds = None
    else:
        bounds = CurveBounds(function.function)

    def ranges(piece: Indices, u: Array, h: Array) -> Ranges:
        L = np.array(derivatives_at(law[piece][:, :, None], u, max(law.shape[1], 3)))
        s, ds, reach = L[0, :, 0], L[1], _largest(L, 0, h) - np.abs(L[0])
        rate, change = _largest(L, 1, h), _largest(L, 2, h)
        if bounds is None:
            D = np.array(derivatives_at(splines[piece], s - middle[piece], _DEGREE + 1))
            q, dq, first, second = D[0], D[1], _largest(D, 1, reach[:, 0]), _largest(D, 2, reach[:, 0])
        else:
            q, dq = bounds.at(s)
            second = bounds.largest(s, reach[:, 0])
            first = np.abs(dq) + second * reach
        return Ranges(q, dq * ds, first * rate, second * rate**2 + first * change)

    told = "the path is a Function whose rates are bounded by samples: not a proof"
    return ranges, () if bounds is None or bounds.proven else (told,)


def _function_inside(curve: Any) -> FunctionCurve | None:
    """The FunctionCurve of a path that is one, or that is parted into stretches of one."""
    while not isinstance(curve, FunctionCurve):
        if hasattr(curve, "stretches"):
            curve = curve.stretches[0]
        elif hasattr(curve, "on"):
            curve = curve.on
        else:
            return None
    return curve


def _refuse_knots_between(curve: Any, ends: Array) -> None:
    """A polynomial of the path holds on all of every piece of the law."""
    for knot in curve.knots:
        if np.any((knot > ends[:-1] + _AT_NODE) & (knot < ends[1:] - _AT_NODE)):
            raise ShapeError(
                f"certify: the path has a knot at s = {knot:.6g}, which is no breakpoint of its motion; plan it with "
                "plan_along_path, which makes it one"
            )
