"""A law as C in single precision on a Cortex-M4F: its size, its steps, and what it does with what is no number."""

import tempfile
from pathlib import Path

import numpy as np

from ..elastic.generate import law_code
from ..elastic.law_code import recorded
from ..elastic.law_codegen import law_product
from . import cortex
from .cortex_cases import of_product
from .embedded import CLOCK, PERIOD, error_of

TARGET = "Cortex-M4F"
CODE_FIELDS = ("robot", "law", "operations", "text [B]", "instance [B]", "stack [B]", "instructions", "cycles")
CODE_FIELDS += ("of 1 ms at 168 MHz", "error", "not a number", "limits")
_BAD_INPUT = 2
_SHARE, _SAFE = 0.7, 0.25  # limit and safe torque, of the largest torque in the recorded steps


def code_row(robot, name, law):
    """Cells of CODE_FIELDS."""
    code, _ = law_code(law, "law", 1e-3)
    motors = len(law.elastic.motor_names)
    limit = _SHARE * max(np.abs(x[:motors]).max() for x in recorded(code)[1])
    code, texts = law_code(law, "law", 1e-3, limit, _SAFE * limit, precision="single")
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
        case = of_product(Path(place), law_product(code, texts))
        size = cortex.size_of(case.folder, case.sources, ["law_step"], TARGET)
        steps, instance = cortex.steps_of(
            case.folder, case.sources, case.name, TARGET, _with_bad(case.given), wide=case.wide, header=case.header
        )
    good, bad = steps[: len(case.given)], steps[len(case.given) :]
    cycles = max(s.cycles for s in good)
    return (
        robot,
        name,
        code.law.n_instructions(),
        size.text,
        instance,
        size.stack["law_step"],
        max(s.instructions for s in good),
        cycles,
        f"{cycles / (CLOCK * PERIOD):.3f}",
        f"{error_of(case, good):.1e}",
        _safe_words(bad, motors, _SAFE * limit),
        _limit_words(good, case.expected[:, :motors], case.expected.shape[1], limit),
    )


def _with_bad(given):
    """The recorded inputs, then one in which each number in turn is NaN or infinite: the first, middle, last."""
    rows = [given]
    for k, x in zip((0, given.shape[1] // 2, given.shape[1] - 1), (np.nan, np.inf, -np.inf), strict=True):
        row = np.array(given[-1])
        row[k] = x
        rows.append(row[None])
    return np.concatenate(rows)


def _safe_words(steps, motors, safe):
    """What steps with bad inputs did."""
    told = {s.status for s in steps}
    torques = np.array([np.frombuffer(s.out, "<f4")[:motors] for s in steps])
    safe_out = np.all(torques == np.float32(safe))
    words = "refused" if told == {_BAD_INPUT} else f"status {sorted(told)}"
    return f"{words}, {'safe torque' if safe_out else 'another torque'}"


def _limit_words(steps, expected, reals, limit):
    """Whether torques end at their limits, and whether the flags behind `reals` numbers say which."""
    own = np.array([np.frombuffer(s.out, "<f4")[: expected.shape[1]] for s in steps], float)
    flags = np.array([np.frombuffer(s.out, "<i4")[reals : reals + expected.shape[1]] for s in steps])
    at = np.sign(expected) * (np.abs(expected) >= limit * (1 - 1e-9))
    kept = np.abs(own).max() <= limit * (1 + 1e-6)
    return (
        f"{int(np.abs(at).sum())} of {at.size}, {'told' if kept and np.array_equal(flags, at) else 'not as in double'}"
    )
