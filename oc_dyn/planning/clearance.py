"""What a certificate says of the shapes along a motion; see certificate.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..text import terminal

_SHOWN = 8  # pairs that fall short, when printed
_UNIT = 1e-3  # [m] short of a clearance that counts as all of a limit
KEPT = 1e-6  # [m] up to which less than a clearance, or a depth, is that clearance, or touching: rounding, and contact


@dataclass(frozen=True)
class PairClearance:
    """Of one pair of shapes, beyond the `margin` [m] of both. certified [m]: it is never less; a coarse bound where the
    pair stays farther apart than others. met [m]: the smallest that was met, at `time` [s]; both infinite where balls
    around the shapes alone tell that they stay farther apart."""

    pair: tuple[str, str]
    margin: float
    certified: float
    met: float
    time: float

    @property
    def hit(self) -> bool:
        """Whether the shapes were met inside each other, by more than a micrometre."""
        return self.met + self.margin < -KEPT

    @property
    def name(self) -> str:
        """Both names as text."""
        return f"{self.pair[0]} - {self.pair[1]}"

    def __str__(self) -> str:
        off = f" beyond its margin of {self.margin:.6g} m" if self.margin else ""
        at_least = f"at least {self.certified:.6g} m{off}"
        met = f", {self.met:.6g} m met at {self.time:.6g} s" if np.isfinite(self.met) else ""
        return f"{terminal(self.name)}: {at_least}{met}"


@dataclass(frozen=True)
class Clearance:
    """How far a whole motion keeps its pairs of shapes apart, beyond their margins. Print it for a summary.

    asked [m]. pairs: PairClearance of every pair, in the order of scene.pairs. intervals: of time, each for one pair,
    that were looked at. notes: what is bounded by samples, and so not proven. Lengths in m, times in s.
    """

    asked: float
    pairs: tuple[PairClearance, ...]
    intervals: int
    notes: tuple[str, ...] = ()

    @property
    def certified(self) -> float:
        """The whole motion keeps this clearance [m], up to rounding; infinite without pairs."""
        return min((x.certified for x in self.pairs), default=np.inf)

    @property
    def nearest(self) -> PairClearance | None:
        """The pair that came nearest, None without pairs."""
        return min(self.pairs, key=lambda x: x.met, default=None)

    @property
    def met(self) -> float:
        """The smallest clearance [m] that was met; infinite without pairs."""
        return self.nearest.met if self.nearest else np.inf

    @property
    def pair(self) -> tuple[str, str] | None:
        """Names of the pair that came nearest, None without pairs."""
        return self.nearest.pair if self.nearest else None

    @property
    def time(self) -> float:
        """When it did [s]; infinite without pairs."""
        return self.nearest.time if self.nearest else np.inf

    @property
    def free(self) -> bool:
        """Whether the clearance that was asked for is certified, but for a micrometre."""
        return self.certified >= self.asked - KEPT

    @property
    def hit(self) -> bool:
        """Whether shapes were met inside each other, by more than a micrometre."""
        return any(x.hit for x in self.pairs)

    @property
    def short(self) -> tuple[PairClearance, ...]:
        """The pairs of which the clearance asked for is not certified but for a micrometre, nearest first."""
        return tuple(sorted((x for x in self.pairs if x.certified < self.asked - KEPT), key=lambda x: x.met))

    @property
    def share(self) -> float:
        """As of a limit: 1 where the clearance is just kept, asked / certified where more is, 1 more for every
        millimetre that is missing. Where less than a millimetre is asked for, both have one added for the share."""
        missing = self.asked - self.certified
        if missing > 0:
            return float(1 + missing / _UNIT)
        unit = max(self.asked, _UNIT)
        return float(unit / (unit - missing))

    def complaint(self) -> str:
        """The worst in a line: which pair hits, is too near or is not proven to keep the clearance; "" if none is."""
        if self.free:
            return ""
        x = self.short[0]
        a, b = (repr(terminal(name)) for name in x.pair)
        others = len(self.short) - 1
        more = f"; {others} other pair{'s fall' if others > 1 else ' falls'} short, too" if others else ""
        off = f" besides a margin of {x.margin:.6g} m" if x.margin else ""
        if x.hit:
            return f"{a} and {b} hit each other, {-x.met - x.margin:.4g} m deep at {x.time:.4g} s{more}"
        if x.met < self.asked - KEPT:
            return f"clearance of {a} and {b} is {x.met:.6g} m at {x.time:.4g} s, {self.asked:.6g} m asked{off}{more}"
        return f"clearance of {a} and {b} is not proven beyond {x.certified:.6g} m, {self.asked:.6g} m asked{off}{more}"

    def __str__(self) -> str:
        lines = [f"clearance: at least {self.certified:.6g} m ({self.asked:.6g} m asked), {self.intervals} intervals"]
        lines += [f"  nearest {self.nearest}"] if self.nearest else ["  no pairs"]
        for x in self.short[:_SHOWN]:
            lines.append(f"  {'hit' if x.hit else 'too near' if x.met < self.asked - KEPT else 'not proven'}: {x}")
        lines += [f"  and {len(self.short) - _SHOWN} pairs more"] if len(self.short) > _SHOWN else []
        lines += [f"  note: {x}" for x in self.notes]
        return "\n".join([*lines, "clearance certified" if self.free else "clearance not certified"])
