"""Simulation of the full elastic state under a law of control, continuous in time or sampled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import CheckWarning, SolveError
from ..interrupts import watched
from ..planning.followers import check_closed
from ..types import Array, Numbers
from .closed_loop import ClosedLoop, check_is_reference, torque_limits
from .continuous import continuous
from .control import Controller
from .faults import faults_of
from .linear_errors import check_sample_time
from .model import ElasticRobot
from .open_loops import check_reference, up_to_open
from .reachable import refusal_along
from .reference import Reference
from .run import Run as Run
from .run import run_of
from .sampled import sampled, spread_of
from .sensor_effects import sensor_effects
from .simulation_settings import Settings, settings_of

_ENERGY = 1e-2  # share of the energies that moved by which the balance may be off without a warning


def simulate(
    elastic: ElasticRobot,
    controller: Controller,
    reference: Reference,
    *,
    duration: float | None = None,
    dt: float = 0.01,
    method: str | None = None,
    rtol: float = 1e-10,
    atol: float | None = None,
    stiffness_error: float | Mapping[str, float] = 0.0,
    mass_error: float | Mapping[str, float] = 0.0,
    motor_inertia_error: float = 0.0,
    start: str | Mapping[str, Numbers] | Numbers | None = None,
    torque_limit: Numbers | None = None,
    sample_time: float | None = None,
    substeps: int = 1,
    noise: Mapping[str, Numbers] | None = None,
    delay: int = 0,
    encoder_bits: int | Mapping[str, int] | None = None,
    velocity_filter: float | None = None,
    torque_noise: Numbers = 0.0,
    torque_bias: Numbers = 0.0,
    measured_limits: str | Mapping[str, Any] | None = None,
    safe_torque: str | Numbers = 0.0,
    wrong_samples: Mapping[int, Mapping[str, Numbers]] | None = None,
    seed: int = 0,
) -> Run:
    """Run of an elastic robot whose motors obey a Controller along a Reference.

    elastic: the real robot, from which the controller's model may differ. stiffness_error, mass_error,
        motor_inertia_error change the real robot by relative errors, see ElasticRobot.with_errors.
    duration [s]: default that of the reference. dt [s]: between the rows of the result.
    method: "dop853" (the default; explicit, order 8), "cvodes" or "idas" (stiff springs; idas takes the equations of
        motion as they stand, by inverse dynamics, with the accelerations as algebraic unknowns). rtol, atol: local
        errors; atol default rtol / 100. At rtol 1e-12 an arm of three joints is found to 2e-14 rad by dop853, to 4e-11
        by the other two, which at their tightest, 1e-14, come to 1e-12.
    start: {"q": offset, "v": .., "theta": .., "dtheta": ..} added to the state that the flat map of the real robot
        (without damping) asks for at the start; or "reference", the state that the controller's model asks for; or a
        whole state.
    torque_limit: (tau_m,) or a number [Nm] at which motor torques saturate, and, with a sample_time, those integrated.
    sample_time [s]: the law runs once in this time and its torques are held between; method is then "dop853"
        (`substeps` fixed steps per period), "collocation" (the same, implicit, for stiff springs) or "cvodes".
    noise: {"q", "v", "theta", "dtheta": standard deviation} of what a sampled law measures.
    delay: samples between measurement and torque; until the first torque comes, that of time zero acts.
    encoder_bits: of the encoders of q and theta, or {"q": bits, "theta": bits}: their steps are 2 pi / 2^bits at the
        joint, behind the gear. Speeds are then differences of what the encoders read.
    velocity_filter [Hz]: of a low-pass of first order through which these differences go, default none; given alone,
        speeds are filtered differences of exact angles.
    torque_noise, torque_bias: (elastic joints,) or a number [Nm]: standard deviation and mean error of torque sensors,
        for laws that read them (tau); their dtau is then a difference of what they read through the same low-pass.
    measured_limits: as of generate_controller, of sampled laws: at a sample beyond them the memory stays as it was, and
        safe_torque acts, (motors,) or a number [Nm], or "last": the torques of the sample before. Default None, no
        limits. facts["refused_samples"] counts them.
    wrong_samples: {number of the sample: {port: offset}}: errors of measurement at these samples, of q, v, theta,
        dtheta, sigma, dsigma, tau, dtau; speeds that are differences have those of their positions.
    seed: of the noise, and of where the steps of each encoder lie.
    Raises SolveError when the integration fails, with the Run up to there as its `trajectory`, or at once where springs
    are so stiff that the explicit method would not come to an end; LimitError where a spring cannot give the torque
    that the reference asks for; ModelError, naming loops and time, where those of a robot cannot follow it, SolveError
    where they open on the way; ShapeError for arguments that are no such numbers. Fixed steps that are too long are a
    ModelWarning, an energy balance far off a CheckWarning.
    """
    real = elastic.with_errors(stiffness_error, mass_error, motor_inertia_error)
    check_is_reference(reference)
    settings = settings_of(reference, duration, dt, method, rtol, atol, sample_time, substeps, seed)
    if settings.sample_time is not None:
        check_sample_time("simulate", settings.sample_time, controller)
    loop = ClosedLoop(real, controller, reference, torque_limits(controller, torque_limit), settings.sample_time)
    effects = sensor_effects("simulate", real, delay, encoder_bits, velocity_filter, torque_noise, torque_bias)
    faults = faults_of(loop, measured_limits, safe_torque, wrong_samples)
    check_reference("simulate: the reference", real, reference, settings.times)
    x0, spread = loop.first_state(start), spread_of(loop, noise)
    check_closed("simulate: start", real.links, x0[loop.plant.parts["q"]])
    error = refusal_along(controller.elastic, reference, settings.times)
    if error:
        raise type(error)(f"simulate: the reference cannot be followed: {error}")
    with watched():  # an integrator takes Ctrl-C for one more failure
        outcome: tuple[Any, ...] = (
            continuous(loop, settings, x0, spread, effects)
            if sample_time is None
            else sampled(loop, settings, x0, spread, effects, faults)
        )
    return _checked_run(loop, settings, *outcome)


def _checked_run(
    loop: ClosedLoop, settings: Settings, times: Array, states: Array, controls: Array | None,
    facts: dict[str, Any], failure: str | None,
) -> Run:  # fmt: skip
    """The Run of what was integrated; SolveError if the integration failed."""
    failure = up_to_open(loop, times, states, failure)
    finite = np.isfinite(states).all(axis=0)
    facts |= {"method": settings.method, "rtol": settings.rtol, "sample_time": settings.sample_time}
    run = run_of(loop, times[finite], states[:, finite], None if controls is None else controls[:, finite], facts)
    who = f"simulate {loop.elastic.name}, {loop.controller.name}"
    if failure:
        raise SolveError(f"{who}: {failure}", "failed", trajectory=run)
    _look_at_energy(run, who, settings.rtol)
    return run


def _look_at_energy(run: Run, who: str, rtol: float) -> None:
    """A CheckWarning where the energy balance is off, compared with the energies that moved."""
    moved = sum(np.ptp(x) for x in (*run.energies.values(), run.put_in, run.taken))
    there = max(np.abs(x).max() for x in run.energies.values())
    miss = float(np.abs(run.energy_balance).max())
    if miss > _ENERGY * moved + max(1e-8, rtol) * there:
        text = (
            f"{who}: the energy balance is off by {miss:.2g} J where {moved:.2g} J moved; give a smaller rtol and "
            "atol, or more substeps"
        )
        warnings.warn(text, CheckWarning, stacklevel=4)
