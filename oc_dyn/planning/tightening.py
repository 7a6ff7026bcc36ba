"""Limits that a problem holds at points, kept between them: solve, look everywhere, tighten, solve again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..numbers import as_floats, shortened
from ..types import Array, Numbers
from ..validation import count


@dataclass(frozen=True, eq=False)
class Tightened:
    """What tighten found. result: of the last solve. margins: {quantity: what its limits were multiplied by there}.
    shares: {quantity: shares of its limits that the result reaches}. rounds: number of solves."""

    result: Any
    margins: dict[str, Array]
    shares: Mapping[str, Numbers] | None
    rounds: int


def tighten(
    solve: Callable[[dict[str, Array], Any], Any], measure: Callable[[Any], Mapping[str, Numbers] | None],
    margins: Mapping[str, Numbers], *, within: float, above: float | None = None, excess: float = 1.0,
    rounds: int = 8, least: int = 1,
) -> Tightened | None:  # fmt: skip
    """Tightened: the first result whose shares of its limits are all `within` a bound; after all rounds, the last one.

    solve: function (margins, result before or None) -> result, with every limit multiplied by its margin; None ends
        the rounds with the result before.
    measure: function result -> {quantity: largest shares of the limits between the points, shaped as its margins}, 1
        being on the limit; quantities without margins may be among them. None: solve again with the same margins.
    margins: {quantity: array, or a number} to begin with. A margin is divided by its share, times `excess`, where that
        is over `above`, by default over `within`.
    rounds: of solving, at most. least: measured rounds before which there is no end.
    Raises ShapeError for shares that are no numbers, and for margins without shares.
    """
    rounds = count("tighten: rounds", rounds, 1)
    above = within if above is None else above
    now = {name: np.asarray(m, float) for name, m in margins.items()}
    last: Tightened | None = None
    measured = 0
    for number in range(1, rounds + 1):
        result = solve(now, last.result if last else None)
        if result is None:
            break
        shares = _checked(measure(result), now)
        last = Tightened(result, now, shares, number)
        if shares is None:
            continue
        measured += 1
        if worst(shares) <= within and measured >= least:
            break
        now = {name: _tighter(m, np.asarray(shares[name], float), above, excess) for name, m in now.items()}
    return last


def _checked(shares: Any, margins: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What was measured, which has to tell what becomes of every margin."""
    if shares is None:
        return None
    if not isinstance(shares, Mapping):
        raise ShapeError(f"tighten: measure gave {shortened(shares)}, expected {{quantity: shares of its limits}}")
    missing = [name for name in margins if name not in shares]
    if missing:
        raise ShapeError(f"tighten: measure gave no share of {missing[0]!r}, which has a margin")
    for name, share in shares.items():
        if np.isnan(as_floats(f"tighten: share of {name!r}", share)).any():
            raise ShapeError(f"tighten: a share of {name!r} is nan, expected numbers")
    return shares


def worst(shares: Mapping[str, Numbers]) -> float:
    """Largest of all shares; 0 if there are none."""
    return max((float(np.max(x, initial=0.0)) for x in shares.values()), default=0.0)


def _tighter(margin: Array, share: Array, above: float, excess: float) -> Array:
    return margin / np.where(share > above, share * excess, 1.0)
