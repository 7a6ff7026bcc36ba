"""Monte Carlo of laws under effects, and its table: rms and largest errors, and whether the loop is stable."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from ... import validation
from ...errors import ModelWarning, ShapeError, UnknownName
from ...executors import completed
from ...text import in_columns
from ...types import Array, Numbers
from ..closed_loop import ClosedLoop, torque_limits
from ..control import Controller
from ..linear_errors import check_sample_time
from ..model import ElasticRobot
from ..reference import Reference
from ..sampled import LONG_STEPS
from ..sensor_effects import sensor_effects
from .whole_run import whole_run

FILTER = 100.0  # [Hz] of the low-pass of speeds, in EFFECTS
_SENSORS = ("delay", "encoder_bits", "velocity_filter", "torque_noise", "torque_bias")
_ERRORS = {"stiffness_error": "stiffness", "mass_error": "mass", "motor_inertia_error": "motor_inertia"}
_FRICTION = ("damping", "link_damping", "link_friction", "motor_damping", "motor_friction")
_STANDING = 0.05  # share of the reference's top speed that joints may have in the last half of its rest
_BITS17 = {"encoder_bits": 17, "velocity_filter": FILTER}

Options = Mapping[str, Any]
EFFECTS: dict[str, Options | Sequence[Options]] = {
    "none": {},
    "delay of 1 sample": {"delay": 1},
    "delay of 2 samples": {"delay": 2},
    f"speeds by differences, {FILTER:g} Hz": {"velocity_filter": FILTER},
    "encoders of 20 bits": {"encoder_bits": 20, "velocity_filter": FILTER},
    "encoders of 17 bits": _BITS17,
    "link damping of 5 Nm s/rad": {"link_damping": 5.0},
    "stiffness 20 % off": [{"stiffness_error": 0.2}, {"stiffness_error": -0.2}],
    "torque noise of 0.1 Nm": {"torque_noise": 0.1, "velocity_filter": FILTER},
    "all together": [
        {**_BITS17, "delay": 1, "link_damping": 5.0, "torque_noise": 0.1, "stiffness_error": x} for x in (0.2, -0.2)
    ],
}


@dataclass(frozen=True)
class LaboratoryRow:
    """A law under an effect. runs: how many, over variants and seeds; stable: of these, how many are; rms, largest
    [rad]: error of the links, over all runs, NaN where one diverged; at_rest [rad/s]: largest speed of a link in the
    last half of the reference's rest, NaN where it has none."""

    law: str
    effect: str
    runs: int
    stable: int
    rms: float
    largest: float
    at_rest: float


@dataclass(frozen=True, eq=False)
class LaboratoryTable:
    """Rows of laws and effects, printed as a table."""

    robot: str
    rows: tuple[LaboratoryRow, ...]

    def row(self, law: str, effect: str) -> LaboratoryRow:
        """That of a law under an effect."""
        for row in self.rows:
            if (row.law, row.effect) == (law, effect):
                return row
        raise UnknownName("row of the table", f"{law}, {effect}", [f"{r.law}, {r.effect}" for r in self.rows])

    @property
    def table(self) -> list[tuple[str, ...]]:
        """Its cells, headings first."""
        return [HEAD, *(cells(r) for r in self.rows)]

    def __str__(self) -> str:
        return f"{self.robot}\n{in_columns(self.table)}"


HEAD = tuple(f.name.replace("_", " ") for f in fields(LaboratoryRow))


def cells(row: LaboratoryRow) -> tuple[str, ...]:
    """Texts of a row."""
    return tuple(f"{x:.2e}" if isinstance(x, float) else str(x) for x in astuple(row))


def laboratory_table(
    elastic: ElasticRobot, controllers: Mapping[str, Controller], reference: Reference, *,
    effects: Mapping[str, Options | Sequence[Options]] | None = None, seeds: int = 20, sample_time: float = 1e-3,
    substeps: int = 1, torque_limit: Numbers | None = None, executor: Any = "serial",
    compiled: bool = True,
) -> LaboratoryTable:  # fmt: skip
    """LaboratoryTable of laws {name: Controller} of a model along a reference, each under each effect.

    elastic: the robot without effects. effects: {name: options, or several that seeds take in turns}, default EFFECTS.
        Options are those of simulate (delay, encoder_bits, velocity_filter, torque_noise, torque_bias, and
        stiffness_error, mass_error, motor_inertia_error of the real robot), and what the law does not know of its
        damping and friction, as of elastic_robot: damping, link_damping, link_friction, motor_damping, motor_friction.
    seeds: 0 .. seeds - 1; options in which nothing depends on a seed run once. sample_time [s], substeps, torque_limit:
        as of simulate, whose numbers these are, to rounding; the start is that of the real robot on the reference.
    executor: as in oc_dyn.executors; a law under an effect is a point. compiled: laws and robots, where there is a
        compiler, which pays for long runs, and for many.
    Steps that are too long for the robot are a ModelWarning.
    A run is stable if its errors stay below the range of the reference, and if its links stand where the reference
    rests: slower, in the last half of this rest, than 5 % of the reference's top speed.
    Raises ShapeError, UnknownName, ModelError.
    """
    seeds = validation.count("laboratory_table: seeds", seeds, 1)
    sample_time = validation.number("laboratory_table: sample_time", sample_time, above=0)
    known = EFFECTS if effects is None else effects
    points = []
    for law, controller in controllers.items():
        check_sample_time("laboratory_table", sample_time, controller)
        for effect, options in known.items():
            variants = (options,) if isinstance(options, Mapping) else tuple(options)
            for one in variants:
                _checked(effect, one)
            setting = (reference, seeds, sample_time, substeps, torque_limit, compiled)
            points.append((elastic, law, controller, effect, variants, *setting))
    rows: dict[int, LaboratoryRow] = {}
    with closing(completed(laboratory_row, points, executor, lambda k: f"{points[k][1]}, {points[k][3]}")) as done:
        for number, row, error in done:
            if error is not None:
                raise error
            rows[number] = row
    return LaboratoryTable(elastic.name, tuple(rows[k] for k in range(len(points))))


def _checked(effect: str, options: Options) -> None:
    for name in options:
        validation.one_of(f"option of the effect {effect!r}", name, (*_SENSORS, *_ERRORS, *_FRICTION))


def laboratory_row(
    elastic: ElasticRobot, law: str, controller: Controller, effect: str, variants: Sequence[Options],
    reference: Reference, seeds: int, sample_time: float, substeps: int, torque_limit: Numbers | None,
    compiled: bool,
) -> LaboratoryRow:  # fmt: skip
    """A row of laboratory_table."""
    samples = max(1, round(reference.duration / sample_time))
    if abs(samples * sample_time - reference.duration) > 1e-6 * sample_time:
        raise ShapeError(
            f"laboratory_table: the reference takes {reference.duration:g} s, no multiple of sample_time "
            f"{sample_time:g}"
        )
    times: Array = sample_time * np.arange(samples + 1.0)
    ref = reference.at(times)
    figures, misses = [], []
    for k, options in enumerate(variants):
        real = real_robot(elastic, options)
        limit = torque_limits(controller, torque_limit, "laboratory_table")
        loop = ClosedLoop(real, controller, reference, limit, sample_time)
        sensors = {name: x for name, x in options.items() if name in _SENSORS}
        chosen = sensor_effects("laboratory_table", real, **sensors)
        run, x0 = whole_run(loop, chosen, sample_time, samples, substeps, compiled), loop.first_state(None)
        drawn = bool(chosen.steps) or (loop.measures_torques and bool(np.any(chosen.torque_noise)))
        for seed in range(k, seeds, len(variants)) if drawn else (k,):
            states, acting = run.motion(x0, seed)
            misses.append(run.miss(states, acting) if seed == k else 0.0)
            figures.append(figures_of(states[loop.plant.parts["q"]], states[loop.plant.parts["v"]], ref))
    if max(misses) > LONG_STEPS:
        text = f"{law}, {effect}: steps of {sample_time / substeps:g} s are too long for the robot: half as long ones "
        text += f"change the state by {max(misses):.1e} of its size in all; give more substeps"
        warnings.warn(text, ModelWarning, stacklevel=2)
    squares, largest, at_rest, stable = zip(*figures, strict=True)
    return LaboratoryRow(
        law,
        effect,
        runs=len(figures),
        stable=sum(stable),
        rms=float(np.sqrt(np.mean(squares))),
        largest=float(np.max(largest)),
        at_rest=float(np.max(at_rest)),
    )


def real_robot(elastic: ElasticRobot, options: Options) -> ElasticRobot:
    """The robot of options of an effect."""
    real = elastic.with_errors(**{argument: options[name] for name, argument in _ERRORS.items() if name in options})
    friction = {name: options[name] for name in _FRICTION if name in options}
    return real.with_friction(**friction) if friction else real


def figures_of(q: Array, v: Array, ref: Mapping[str, Array]) -> tuple[float, float, float, bool]:
    """(mean square of the error, its largest, largest speed at rest, stable) of q, v (n, times)."""
    error = q - ref["q"]
    with np.errstate(over="ignore", invalid="ignore"):
        square, largest = float(np.mean(error**2)), float(np.abs(error).max())
    top = np.abs(ref["v"]).max()
    moving = np.flatnonzero(np.abs(ref["v"]).max(axis=0) > 1e-9 * top)
    last = moving[-1] + 1 if moving.size else 0
    rest = v[:, (last + v.shape[1]) // 2 :] if last < v.shape[1] - 1 else v[:, :0]
    at_rest = float(np.abs(rest).max()) if rest.size else np.nan
    stands = not rest.size or at_rest < _STANDING * top
    if not np.isfinite(square):
        return np.nan, np.nan, np.nan, False
    return square, largest, at_rest, bool(stands and largest < np.ptp(ref["q"], axis=1).max())
