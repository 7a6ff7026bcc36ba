"""What becomes of a motion that exceeds a limit: a warning, an error, or nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..errors import CheckWarning, SolveError
from ..validation import one_of
from .report import Report

CHECKS = ("warn", "raise", "off")
TOLERANCE = 1e-3  # share of a limit


def checked_mode(check: str) -> str:
    """One of CHECKS; UnknownName for anything else."""
    return one_of("check", check, CHECKS)


def report_or_raise(
    where: str, report: Report, check: str, advice: str, trajectory: Any = None, stacklevel: int = 3,
) -> None:  # fmt: skip
    """Say what a Report exceeds by more than TOLERANCE, worst quantity alone: in one line, as a CheckWarning or, with
    check="raise", a SolveError that keeps the trajectory. advice: what to do."""
    if check == "off" or report.worst <= 1 + TOLERANCE:
        return
    text = f"{where}: {sentence(report)}; {advice}"
    if check == "raise":
        raise SolveError(text, "check", trajectory=trajectory)
    warnings.warn(text, CheckWarning, stacklevel=stacklevel)


def sentence(report: Report) -> str:
    """The worst row of a Report as a sentence: quantity, joint, value, time, limit."""
    row = max(report.rows, key=lambda r: r.share)
    if row.quantity == "clearance" and report.clearance:
        return report.clearance.complaint()
    if not np.isfinite(row.share):
        return f"{row.quantity} of joint {row.joint!r} is infinite at {row.time:.4g} s, its limit is {row.limit:.6g}"
    quantity, bound = row.quantity, "its limit"
    if quantity == "v_of_q":
        quantity, bound = "v", "its limit at this position of"
    return (
        f"{quantity} of joint {row.joint!r} is {row.value:.6g} at {row.time:.4g} s, {100 * (row.share - 1):.2g} % over "
        f"{bound} {row.limit:.6g}"
    )


def warn_unlimited(where: str, motion: Any, ignored: Any, stacklevel: int = 3) -> None:
    """CheckWarning for a fast motion under a robot's own limits where these say nothing of accelerations or jerks."""
    limits = motion.limits
    if {"dv", "d2v"} & set((ignored,) if isinstance(ignored, str) else ignored):
        return
    moving = np.ptp(motion.q, axis=0) > 0
    free = np.flatnonzero(moving & ~limits.bounded("dv") & ~limits.bounded("d2v"))
    if not free.size:
        return
    peaks = np.abs(motion.both_sides(motion.duration / 400).dv).max(axis=0)
    worst = free[int(np.argmax(peaks[free]))]
    missing = "accelerations, jerks or torques" if not limits.bounded("tau").any() else "accelerations or jerks"
    names = ", ".join(repr(motion.joints[i]) for i in free[:8]) + ("" if free.size <= 8 else ", ...")
    warnings.warn(
        f"{where}: the robot has no limits of {missing} of joints {names}: that of {motion.joints[worst]!r} gets to "
        f"{peaks[worst]:.4g} {motion.units[worst]}/s²; give some of dv or d2v, as "
        "limits=replace(Limits.of(robot), dv=...) or --dv",
        CheckWarning, stacklevel=stacklevel,
    )  # fmt: skip
