"""Simulation of the full elastic state under a law of control, continuous in time or sampled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import casadi as ca
import numpy as np

from .. import validation
from ..errors import CheckWarning, ModelWarning, ShapeError, SolveError
from ..interrupts import watched
from ..numbers import are_sane
from ..planning.followers import check_closed
from ..types import Array, Numbers
from .anti_windup import held_back
from .closed_loop import ClosedLoop, torque_limits
from .collocation import collocation_step
from .control import Controller
from .dop853 import fixed_step, integrate
from .model import ElasticRobot
from .open_loops import check_reference, fault_of, looks, up_to_open
from .plant import ENERGIES
from .reachable import fastest, refusal_along
from .reference import Reference

METHODS = ("dop853", "cvodes", "idas")
SAMPLED = ("dop853", "collocation", "cvodes")
_METHOD = "method of this kind of simulation"
_SUNDIALS_STEPS = 10_000_000
_PHASE = 4.0  # [rad] that dop853 passes in a step at most, where a swing limits its steps
_USUAL_STEPS, _MOST_STEPS = 200_000, 1_000_000  # of the default method (half a minute), of a chosen one
_MOST_ROWS = 10_000_000
_ENERGY = 1e-2  # share of the energies that moved by which the balance may be off without a warning
_WRONG = 1e-3  # share of the state by which half as long steps may change it without a warning


@dataclass(frozen=True, eq=False)
class Run:
    """Result of a simulation, rows are times.

    t (K,) [s]; q, v (K, n) of the links, theta, dtheta of the motors of elastic joints; sigma; q_ref, v_ref; tau_m
    commanded motor torques, saturated; deflection theta - q and tau, the torques of the springs; energies
    {kinetic_links, kinetic_motors, springs, gravity: (K,)} [J]; put_in, taken (K,): work of motors and drives, and
    that of friction and dampers, since the start [J]; facts: method, tolerance, steps and more; states (K, size) whole.
    """

    t: Array
    q: Array
    v: Array
    theta: Array
    dtheta: Array
    q_ref: Array
    v_ref: Array
    tau_m: Array
    deflection: Array
    tau: Array
    energies: dict[str, Array]
    put_in: Array
    taken: Array
    states: Array
    sigma: Array | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> Array:
        """(K, n) q - q_ref."""
        return self.q - self.q_ref

    @property
    def largest_error(self) -> float:
        """Largest absolute error of any joint at any time [rad, m]."""
        return float(np.abs(self.error).max())

    @property
    def energy(self) -> Array:
        """(K,) total energy [J]."""
        return cast(Array, sum(self.energies.values()))

    @property
    def energy_balance(self) -> Array:
        """(K,) energy gained less work put in plus work taken [J]: zero but for errors of integration."""
        return self.energy - self.energy[0] - self.put_in + self.taken


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
    noise: {"q", "v", "theta", "dtheta": standard deviation} of what a sampled law measures; seed: of the noise.
    Raises SolveError when the integration fails, with the Run up to there as its `trajectory`, or at once where springs
    are so stiff that the explicit method would not come to an end; LimitError where a spring cannot give the torque
    that the reference asks for; ModelError, naming loops and time, where those of a robot cannot follow it, SolveError
    where they open on the way; ShapeError for arguments that are no such numbers. Fixed steps that are too long are a
    ModelWarning, an energy balance far off a CheckWarning.
    """
    real = elastic.with_errors(stiffness_error, mass_error, motor_inertia_error)
    settings = _settings(reference, duration, dt, method, rtol, atol, sample_time, substeps, seed)
    loop = ClosedLoop(real, controller, reference, torque_limits(controller, torque_limit))
    check_reference("simulate: the reference", real, reference, settings.times)
    x0, spread = loop.first_state(start), _spread(loop, noise)
    check_closed("simulate: start", real.links, x0[loop.plant.parts["q"]])
    error = refusal_along(controller.elastic, reference, settings.times)
    if error:
        raise type(error)(f"simulate: the reference cannot be followed: {error}")
    with watched():  # an integrator takes Ctrl-C for one more failure
        outcome = (_continuous if sample_time is None else _sampled)(loop, settings, x0, spread)
    return _checked_run(loop, settings, *outcome)


@dataclass(frozen=True)
class _Settings:
    """How a closed loop is integrated; times [s] are those of the rows, most_steps bounds those of dop853."""

    times: np.ndarray
    duration: float
    dt: float
    method: str
    rtol: float
    atol: float
    sample_time: float | None
    substeps: int
    seed: int
    most_steps: int


def _settings(
    reference: Reference, duration: float | None, dt: float, method: str | None, rtol: float, atol: float | None,
    sample_time: float | None, substeps: int, seed: int,
) -> _Settings:  # fmt: skip
    duration = validation.number("simulate: duration", reference.duration if duration is None else duration, above=0)
    if reference.breaks and duration > reference.duration * (1 + 1e-9):
        raise ShapeError(
            f"simulate: duration {duration:g} s, expected up to {reference.duration:g}, that of the reference"
        )
    dt = _interval("dt", dt, duration)
    rtol = validation.number("simulate: rtol", rtol, above=0)
    times = np.append(np.arange(0.0, duration * (1 - 1e-9), dt), duration)
    if times.size > 2 and times[-1] - times[-2] < 1e-6 * dt:  # a whole number of intervals, but for rounding
        times = np.delete(times, -2)
    return _Settings(
        times=times,
        duration=duration,
        dt=dt,
        method=validation.one_of(_METHOD, method or "dop853", METHODS if sample_time is None else SAMPLED),
        rtol=rtol,
        atol=rtol / 100 if atol is None else validation.number("simulate: atol", atol, above=0),
        sample_time=None if sample_time is None else _interval("sample_time", sample_time, duration),
        substeps=validation.count("simulate: substeps", substeps, 1),
        seed=validation.count("simulate: seed", seed, 0, 2**63 - 1),
        most_steps=_USUAL_STEPS if method is None else _MOST_STEPS,
    )


def _checked_run(
    loop: ClosedLoop, settings: _Settings, times: Array, states: Array, controls: Array | None,
    facts: dict[str, Any], failure: str | None,
) -> Run:  # fmt: skip
    """The Run of what was integrated; SolveError if the integration failed."""
    failure = up_to_open(loop, times, states, failure)
    finite = np.isfinite(states).all(axis=0)
    facts |= {"method": settings.method, "rtol": settings.rtol, "sample_time": settings.sample_time}
    run = _run(loop, times[finite], states[:, finite], None if controls is None else controls[:, finite], facts)
    who = f"simulate {loop.elastic.name}, {loop.controller.name}"
    if failure:
        raise SolveError(f"{who}: {failure}", "failed", trajectory=run)
    _look_at_energy(run, who, settings.rtol)
    return run


def _interval(name: str, value: float, duration: float) -> float:
    """Time [s] between rows, not so short that they would fill the memory."""
    value = validation.number(f"simulate: {name}", value, above=0)
    if duration / value > _MOST_ROWS:
        raise ShapeError(f"simulate: {name} is {value:g} s, expected at least {duration / _MOST_ROWS:g} s")
    return value


def _spread(loop: ClosedLoop, noise: Mapping[str, Numbers] | None) -> Array | None:
    """Standard deviations of what is measured (state of the robot,); None without noise."""
    spread, any_ = np.zeros(loop.plant.size), False
    for name, deviation in validation.options_of("simulate: noise", noise).items():
        validation.one_of("measured part of the state", name, loop.plant.parts)
        part = loop.plant.parts[name]
        deviation = validation.numbers(f"simulate: noise of {name}", deviation, part.stop - part.start)
        if not (are_sane(deviation) and np.all(deviation >= 0)):
            raise ShapeError(f"simulate: noise of {name} is {deviation.tolist()}, expected numbers of at least 0")
        spread[part], any_ = deviation, True
    return spread if any_ else None


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


def _refuse_endless(loop: ClosedLoop, x0: Array, duration: float, most: int) -> None:
    """Raise SolveError at once if springs swing so fast that an explicit method would take too many steps."""
    ref = loop.reference.at([0.0])
    x = {name: x0[part] for name, part in loop.plant.parts.items()}
    speed, motor = fastest(loop.elastic, x, x["sigma"] if "sigma" in x else ref.get("sigma", np.zeros(0)))
    steps = duration * speed / _PHASE
    if steps > most:
        raise SolveError(
            f"simulate {loop.elastic.name}: the spring of {motor!r} swings at {speed:.3g} rad/s, so that dop853 would "
            f"take about {steps:.2g} steps; give method='cvodes' with rtol=1e-6, which passes over swings that are not "
            "excited, or stiffness inf for a rigid joint",
            "steps",
        )


def _continuous(loop: ClosedLoop, settings: _Settings, x0: Array, spread: Array | None) -> tuple[Any, ...]:
    """(times, states (size, times), None, facts, failure): the law inside the integration."""
    if spread is not None:
        raise ShapeError("simulate: noise is for a sampled law; give sample_time")
    times, method = settings.times, settings.method
    breaks = tuple(b for b in loop.reference.breaks if times[0] < b < times[-1])
    rates = loop.rates()
    if method == "dop853":
        _refuse_endless(loop, x0, settings.duration, settings.most_steps)
        try:
            allowed = np.append(np.full(loop.size - 2, settings.atol), [np.inf, np.inf])  # work is only looked at
            states, facts = integrate(rates, times, x0, (), settings.rtol, allowed, breaks, fault=fault_of(loop))
        except SolveError as error:
            return times, error.trajectory, None, {}, str(error)
        return times, states, None, facts, None
    failure, (times, rows) = None, looks(loop, times)
    states, x = np.full((x0.size, times.size), np.nan), x0
    states[:, 0] = x0
    edges = [times[0], *breaks, times[-1]]
    for a, b in pairwise(edges):
        inside = (times > a) & (times <= b)
        grid = [*times[inside], *([] if inside.any() and times[inside][-1] == b else [b])]
        try:
            result = _sundials(loop, rates, method, a, grid, settings.rtol, settings.atol)(x0=x)["xf"].full()
        except RuntimeError as error:
            failure = f"{method} failed between t = {a:.6g} and {b:.6g}: {_last_line(error)}"
            break
        states[:, inside] = result[:, : inside.sum()]
        x = result[:, -1]
    failure = up_to_open(loop, times, states, failure)
    return times[rows], states[:, rows], None, {}, failure


def _last_line(error: Exception) -> str:
    return [line for line in str(error).splitlines() if line.strip()][-1]


def _sundials(
    loop: ClosedLoop, rates: ca.Function, method: str, start: float, grid: Any, rtol: float, atol: float,
) -> ca.Function:  # fmt: skip
    options = {"reltol": rtol, "abstol": atol, "max_num_steps": _SUNDIALS_STEPS}
    t, x = ca.MX.sym("t"), ca.MX.sym("x", loop.size)
    if method == "cvodes":
        dae = {"t": t, "x": x, "ode": rates(t, x, ca.DM(0, 1))}
        return ca.integrator("simulation", "cvodes", dae, float(start), grid, options)
    p = loop.plant
    if "friction" in p.parts:
        raise ShapeError("simulate: method idas does not know memory of friction laws; give dop853 or cvodes")
    a = ca.MX.sym("a", p.residual.size1_in(1))
    ref = loop.reference_at(t)
    robot, memory = x[: p.size], x[p.size : p.size + loop.memory]
    u, memory_rate = loop.controls(ref, robot, memory)
    sigma = loop.sigma(ref)
    n, m = loop.elastic.nv, len(loop.elastic.elastic_motors)
    ode = [robot[p.parts["v"]], a[:n], robot[p.parts["dtheta"]], a[n : n + m]]
    ode += [robot[p.parts["dsigma"]], a[n + m :]] if loop.elastic.stiffness_driven else []
    ode = ca.vertcat(*ode, memory_rate, p.powers(robot, u, sigma))
    dae = {"t": t, "x": x, "z": a, "ode": ode, "alg": p.residual(robot, a, u, sigma)}
    return ca.integrator("simulation", "idas", dae, float(start), grid, {**options, "suppress_algebraic": True})


def _sampled(loop: ClosedLoop, settings: _Settings, x0: Array, spread: Array | None) -> tuple[Any, ...]:
    """(times, states, controls, facts, failure): the law once in a sample time, its results held."""
    h: Any = settings.sample_time
    method = settings.method
    count = max(1, round(settings.duration / h))
    if abs(count * h - settings.duration) > 1e-6 * h:
        raise ShapeError(f"simulate: the duration {settings.duration:g} is not a multiple of sample_time {h:g}")
    every = max(1, round(settings.dt / h))  # sample time has a row
    rng = np.random.default_rng(settings.seed)
    law, step = loop.law(), _held_step(loop, settings, settings.substeps)
    times, states, controls = [], [], []
    x, robot, memory = x0, slice(0, loop.plant.size), slice(loop.plant.size, loop.plant.size + loop.memory)
    failure, miss, opened = None, 0.0, fault_of(loop)
    looked_at = set(np.linspace(0, count - 1, 10).astype(int)) if method != "cvodes" else ()
    finer: Any = _held_step(loop, settings, 2 * settings.substeps) if looked_at else None
    for i in range(count + 1):
        measured = x[robot] + spread * rng.standard_normal(loop.plant.size) if spread is not None else x[robot]
        u = law(i * h, measured, x[memory]).full().ravel()
        if i % every == 0 or i == count:
            times.append(i * h)
            states.append(x)
            controls.append(u[: loop.plant.controls])
        if i == count:
            break
        if not np.all(np.isfinite(u)):
            failure = f"the law gave no number at t = {i * h:.6g}"
            break
        try:
            x, before = step(i * h, x, u), x
            x[memory] = held_back(x[memory], loop.controller.integrators, loop.limit)
        except RuntimeError as error:
            failure = f"{method} failed after t = {i * h:.6g}: {_last_line(error)}"
            break
        if i in looked_at:
            with suppress(RuntimeError):  # the step was found all the same
                miss += np.abs(finer(i * h, before, u) - x)[robot].max() / max(np.abs(x[robot]).max(), 1e-9)
        failure = opened((i + 1) * h, x) if opened is not None and np.all(np.isfinite(x)) else None
        if failure:
            break
        if not np.all(np.isfinite(x)) or np.abs(x).max() > 1e6:
            failure = f"the motion diverged at t = {(i + 1) * h:.6g}"
            break
    miss *= count / max(len(looked_at), 1)
    if failure is None and miss > _WRONG:
        _warn_of_long_steps(loop, settings, miss)
    facts = {"steps": count * settings.substeps}
    return np.array(times), np.array(states).T, np.array(controls).T, facts, failure


def _warn_of_long_steps(loop: ClosedLoop, settings: _Settings, miss: float) -> None:
    text = (
        f"simulate {loop.elastic.name}: fixed steps of {settings.method}, {settings.substeps} in "
        f"{settings.sample_time:g} s, are too long: half as long ones change the state by {miss:.1e} of its size in "
        "all; give more substeps"
    )
    warnings.warn(text, ModelWarning, stacklevel=4)


def _held_step(loop: ClosedLoop, settings: _Settings, substeps: int) -> Callable[..., Any]:
    """Callable (t, x, u) -> x after a sample time at held controls u."""
    h: Any = settings.sample_time
    rates, method = loop.held_rates(), settings.method
    if method == "cvodes":
        t, x, u = (ca.MX.sym(n, rates.size1_in(i)) for i, n in enumerate("txu"))
        start = ca.MX.sym("start")
        dae = {"t": t, "x": x, "p": ca.vertcat(u, start), "ode": rates(start + t, x, u)}
        options = {"reltol": settings.rtol, "abstol": settings.atol, "max_num_steps": _SUNDIALS_STEPS}
        f = ca.integrator("hold", "cvodes", dae, 0.0, h, options)
        return lambda t, x, u: f(x0=x, p=np.append(u, t))["xf"].full().ravel()
    f = fixed_step(rates, substeps) if method == "dop853" else collocation_step(rates, degree=3, steps=substeps)
    return lambda t, x, u: f(t, x, h, u).full().ravel()


def _run(loop: ClosedLoop, times: Array, states: Array, controls: Array | None, facts: dict[str, Any]) -> Run:
    p, e = loop.plant, loop.elastic
    robot = states[: p.size]
    parts = {name: robot[part].T for name, part in p.parts.items()}
    ref = loop.reference.at(times)
    sigma = np.vstack([ref["sigma"], ref["dsigma"]]) if e.sigma_names else np.zeros((0, times.size))
    if controls is None:
        law = loop.law().map(times.size)
        controls = law(times.reshape(1, -1), robot, states[p.size : p.size + loop.memory]).full()[: p.controls]
    energies = p.energies.map(times.size)(robot, sigma).full()
    deflection, tau = (x.full().T for x in p.springs.map(times.size)(robot, sigma))
    return Run(
        t=times,
        q=parts["q"],
        v=parts["v"],
        theta=parts["theta"],
        dtheta=parts["dtheta"],
        q_ref=ref["q"].T,
        v_ref=ref["v"].T,
        tau_m=controls[: len(e.motor_names)].T,
        deflection=deflection,
        tau=tau,
        energies=dict(zip(ENERGIES, energies, strict=True)),
        put_in=states[-2],
        taken=states[-1],
        states=robot.T,
        sigma=parts.get("sigma", ref["sigma"].T if e.sigma_names else None),
        facts=facts,
    )
