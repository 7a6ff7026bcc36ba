"""A law as C in single precision on a Cortex-M4F: its size, its steps, and what it does with what is no number."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..elastic.generate import law_code
from ..elastic.law_code import measured_places, recorded
from ..elastic.law_codegen import law_product
from . import cortex
from .cortex_cases import of_product
from .embedded import CLOCK, PERIOD, error_of

TARGET = "Cortex-M4F"
CODE_FIELDS = ("robot", "law", "operations", "text [B]", "of measured limits [B]", "instance [B]", "stack [B]")
CODE_FIELDS += ("instructions", "cycles", "of 1 ms at 168 MHz", "error", "not a number", "wild sample", "limits")
_BAD_INPUT, _BAD_MEASUREMENT = 2, 6
_SHARE, _SAFE = 0.7, 0.25  # limit and safe torque, of the largest torque in the recorded steps
_WILD = 1.0  # [rad] by which a measured angle is wrong, in one sample


def code_row(robot, name, law):
    """Cells of CODE_FIELDS."""
    code, _ = law_code(law, "law", 1e-3, measured="robot")
    motors = len(law.elastic.motor_names)
    limit = _SHARE * max(np.abs(x[:motors]).max() for x in recorded(code)[1])
    words = 1e-3, limit, _SAFE * limit
    code, texts = law_code(law, "law", *words, precision="single", measured="robot")
    with _product(code, texts) as case:
        size = cortex.size_of(case.folder, case.sources, ["law_step"], TARGET)
        bad, wild = _with_bad(case.given), _wild(code, case.given)
        steps, instance = cortex.steps_of(
            case.folder, case.sources, case.name, TARGET, np.concatenate([case.given, bad, wild]), wide=case.wide,
            header=case.header,
        )  # fmt: skip
    with _product(*law_code(law, "law", *words, precision="single")) as bare:
        without = cortex.size_of(bare.folder, bare.sources, ["law_step"], TARGET)
    ends = np.cumsum([len(case.given), len(bad)])
    good, bad, wild = steps[: ends[0]], steps[ends[0] : ends[1]], steps[ends[1] :]
    cycles = max(s.cycles for s in good)
    return (
        robot,
        name,
        code.law.n_instructions(),
        size.text,
        size.text - without.text,
        instance,
        size.stack["law_step"],
        max(s.instructions for s in good),
        cycles,
        f"{cycles / (CLOCK * PERIOD):.3f}",
        f"{error_of(case, good):.1e}",
        _safe_words(bad, motors, _SAFE * limit, _BAD_INPUT),
        _safe_words(wild, motors, _SAFE * limit, _BAD_MEASUREMENT) if wild else "measures nothing",
        _limit_words(good, case.expected[:, :motors], case.expected.shape[1], limit),
    )


@contextmanager
def _product(code, texts):
    """The case of a law, in a folder for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
        yield of_product(Path(place), law_product(code, texts))


def _with_bad(given):
    """Inputs in which one number is NaN or infinite: the first, the middle, the last."""
    rows = []
    for k, x in zip((0, given.shape[1] // 2, given.shape[1] - 1), (np.nan, np.inf, -np.inf), strict=True):
        row = np.array(given[-1])
        row[k] = x
        rows.append(row[None])
    return np.concatenate(rows)


def _wild(code, given):
    """Inputs with one wrong angle: none where a law measures none."""
    places = measured_places(code)[code.measured.grain > 0]  # those of positions
    rows = np.repeat(given[-1:], min(len(places), 1), axis=0)
    rows[:, places[:1]] += _WILD
    return rows


def _safe_words(steps, motors, safe, status):
    """What steps with bad inputs did; status: what they are to tell."""
    told = {s.status for s in steps}
    torques = np.array([np.frombuffer(s.out, "<f4")[:motors] for s in steps])
    safe_out = np.all(torques == np.float32(safe))
    words = "refused" if told == {status} else f"status {sorted(told)}"
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
