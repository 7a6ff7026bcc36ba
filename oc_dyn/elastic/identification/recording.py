"""Recordings of an elastic robot: what encoders, torque sensors and the drives' electronics gave, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import validation
from ...errors import ShapeError
from ...model.read_only import ReadOnlyArrays
from ...numbers import as_floats
from ...types import Array, Numbers
from ..model import ElasticRobot
from ..simulate import Run


@dataclass(frozen=True, eq=False)
class Recording(ReadOnlyArrays):
    """Samples of an elastic robot, one per column, dt [s] apart.

    q (q, N), theta (theta, N): encoders of links and motors, these as seen at the joints (divide by the gear ratio).
    tau_m (motors, N) [Nm]: motor torques, commanded or measured, as seen at the joints; a number holds for all (0 for
        motors that are switched off); None where it is not known, as of motors held by brakes: nothing is then
        concluded from the motors' equations.
    tau (elastic joints, N) [Nm]: of torque sensors between springs and links; None without such sensors.
    by_hand: links were moved by hand, or touched something: nothing is concluded from the links' equations.
    held: tau_m was held from each sample to the next, as sampled controllers do; otherwise it is as smooth as q.
    """

    dt: float
    q: Array
    theta: Array
    tau_m: Array | None = None
    tau: Array | None = None
    by_hand: bool = False
    held: bool = True

    @property
    def duration(self) -> float:
        """Time [s] from the first sample to the last."""
        return float(self.dt * (self.q.shape[1] - 1))


def recording(
    run: Run, *, encoder_bits: int | None = None, torque_noise: Numbers = 0.0, sensor_noise: Numbers | None = None,
    by_hand: bool = False, held: bool | None = None, seed: int = 0,
) -> Recording:  # fmt: skip
    """Recording of a simulated Run with a constant time between its rows.

    encoder_bits: encoders of q and theta read in steps of 2 pi / 2^bits rad (at prismatic joints m), after the gear;
        where the zero of each lies within a step is drawn. torque_noise (motors,) [Nm]: standard deviation of what
        tau_m is measured with; sensor_noise (elastic joints,): that of torque sensors, None for none of these. seed:
        of all that is drawn. held: whether motor torques were held between rows; None: as the Run was simulated.
    """
    steps = np.diff(run.t)
    if run.t.size < 2 or np.ptp(steps) > 1e-6 * steps.mean():
        raise ShapeError(
            "recording: the rows of the run are not equally far apart in time; simulate with a dt that fits"
        )
    dt = float((run.t[-1] - run.t[0]) / (run.t.size - 1))
    held = _is_held(run, dt) if held is None else validation.flag("recording: held", held)
    rng = np.random.default_rng(validation.count("recording: seed", seed))
    q, theta, tau_m, tau = (np.array(x.T, float) for x in (run.q, run.theta, run.tau_m, run.tau))
    if encoder_bits is not None:
        step = 2 * np.pi / 2.0 ** validation.count("recording: encoder_bits", encoder_bits, 1, 62)
        q, theta = (step * np.round(x / step + rng.uniform(-0.5, 0.5, (len(x), 1))) for x in (q, theta))
    tau_m = tau_m + _spread("torque_noise", torque_noise, len(tau_m)) * rng.normal(size=tau_m.shape)
    if sensor_noise is None:
        return Recording(dt, q, theta, tau_m, None, by_hand, held)
    tau = tau + _spread("sensor_noise", sensor_noise, len(tau)) * rng.normal(size=tau.shape)
    return Recording(dt, q, theta, tau_m, tau, by_hand, held)


def _is_held(run: Run, dt: float) -> bool:
    """Whether the rows of a run are those of its sampled law."""
    sample_time = run.facts.get("sample_time")
    if sample_time is None:
        return False
    if abs(sample_time - dt) > 1e-6 * dt:
        raise ShapeError(
            f"recording: rows are {dt:g} s apart, but torques were held for {sample_time:g} s; simulate with "
            f"dt={sample_time:g}"
        )
    return True


def _spread(name: str, value: Any, size: int) -> Array:
    out = validation.numbers(f"recording: {name}", value, size)
    if not np.all(np.isfinite(out) & (out >= 0)):
        raise ShapeError(f"recording: {name} is {out.tolist()}, expected numbers of at least 0")
    return out[:, None]


def checked(elastic: ElasticRobot, recordings: Any) -> list[Recording]:
    """Recordings of a robot, each with arrays of the shapes that belong to it; ShapeError where they do not fit."""
    given = [recordings] if isinstance(recordings, Recording) else recordings
    if not isinstance(given, (tuple, list)) or not given or not all(isinstance(x, Recording) for x in given):
        raise ShapeError(
            "identify_elastic: recordings: expected a Recording or a list of them; see od.elastic.Recording"
        )
    return [_checked(elastic, f"identify_elastic: recording {k}", x) for k, x in enumerate(given)]


def _checked(elastic: ElasticRobot, where: str, x: Recording) -> Recording:
    dt = validation.number(f"{where}: dt", x.dt, above=0)
    by_hand, held = validation.flag(f"{where}: by_hand", x.by_hand), validation.flag(f"{where}: held", x.held)
    q = _samples(f"{where}: q", x.q, elastic.nq)
    N = q.shape[1]
    theta = _samples(f"{where}: theta", x.theta, len(elastic.elastic_motors), N)
    tau_m = None if x.tau_m is None else _samples(f"{where}: tau_m", x.tau_m, len(elastic.motor_names), N)
    tau = None if x.tau is None else _samples(f"{where}: tau", x.tau, len(elastic.joints), N)
    return Recording(dt, q, theta, tau_m, tau, by_hand, held)


def _samples(name: str, x: Any, rows: int, count: int | None = None) -> Array:
    x = as_floats(name, x)
    if x.size == 1 and count is not None:
        x = np.full((rows, count), x.ravel()[0])
    if x.ndim != 2 or x.shape[0] != rows or (count is not None and x.shape[1] != count):
        samples = "samples" if count is None else count
        raise ShapeError(f"{name}: got shape {x.shape}, expected ({rows}, {samples}), one sample per column")
    if not np.all(np.isfinite(x)):
        k = int(np.flatnonzero(~np.isfinite(x).all(axis=0))[0])
        raise ShapeError(
            f"{name}: sample {k} is not finite; samples must be equally far apart, so cut the record there"
        )
    return x
