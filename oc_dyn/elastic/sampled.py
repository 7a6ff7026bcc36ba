"""Closed loops whose law runs once in a sample time, its results held."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import casadi as ca
import numpy as np

from .. import validation
from ..errors import ModelWarning, ShapeError
from ..numbers import are_sane
from ..types import Array, Numbers
from .anti_windup import held_back
from .closed_loop import ClosedLoop
from .collocation import collocation_step
from .continuous import SUNDIALS_STEPS, last_line
from .dop853 import fixed_step
from .faults import Faults
from .open_loops import fault_of
from .sensor_effects import SensorEffects
from .sensors import Sensors
from .simulation_settings import Settings

LONG_STEPS = 1e-3  # share of the state by which half as long steps may change it without a warning


def spread_of(loop: ClosedLoop, noise: Mapping[str, Numbers] | None) -> Array | None:
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


def sampled(
    loop: ClosedLoop, settings: Settings, x0: Array, spread: Array | None, effects: SensorEffects, faults: Faults,
) -> tuple[Any, ...]:  # fmt: skip
    """(times, states, controls, facts, failure): the law once in a sample time, its results held."""
    h: Any = settings.sample_time
    method = settings.method
    count = max(1, round(settings.duration / h))
    if abs(count * h - settings.duration) > 1e-6 * h:
        raise ShapeError(f"simulate: the duration {settings.duration:g} is not a multiple of sample_time {h:g}")
    every = max(1, round(settings.dt / h))  # sample time has a row
    rng = np.random.default_rng(settings.seed)
    law, step = loop.measured_law(), held_step(loop, settings, settings.substeps)
    sensors = Sensors(loop, effects, h, settings.seed)
    waiting: deque[Array] = deque()  # torques on their way to the motors
    times, states, controls = [], [], []
    x, robot, memory = x0, slice(0, loop.plant.size), slice(loop.plant.size, loop.plant.size + loop.memory)
    commanded = np.zeros(loop.plant.controls)  # before the first sample
    failure, miss, opened = None, 0.0, fault_of(loop)
    looked_at = set(np.linspace(0, count - 1, 10).astype(int)) if method != "cvodes" else ()
    finer: Any = held_step(loop, settings, 2 * settings.substeps) if looked_at else None
    for i in range(count + 1):
        seen = x[robot] + spread * rng.standard_normal(loop.plant.size) if spread is not None else x[robot]
        read = faults.of_torques(i, sensors.read(i * h, x[robot], faults.of_state(i, seen)))
        if faults.accept(read):
            u = law(i * h, *read, x[memory]).full().ravel()
        else:
            u = np.concatenate([faults.safe(commanded), np.zeros(loop.memory)])
        waiting.extend([u[: loop.plant.controls]] * (1 if i else effects.delay + 1))
        commanded = u
        u = np.concatenate([waiting.popleft(), u[loop.plant.controls :]])
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
            failure = f"{method} failed after t = {i * h:.6g}: {last_line(error)}"
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
    if failure is None and miss > LONG_STEPS:
        _warn_of_long_steps(loop, settings, miss)
    facts = {"steps": count * settings.substeps, **sensors.facts, **faults.facts}
    return np.array(times), np.array(states).T, np.array(controls).T, facts, failure


def _warn_of_long_steps(loop: ClosedLoop, settings: Settings, miss: float) -> None:
    text = (
        f"simulate {loop.elastic.name}: fixed steps of {settings.method}, {settings.substeps} in "
        f"{settings.sample_time:g} s, are too long: half as long ones change the state by {miss:.1e} of its size in "
        "all; give more substeps"
    )
    warnings.warn(text, ModelWarning, stacklevel=4)


def held_step(loop: ClosedLoop, settings: Settings, substeps: int) -> Callable[..., Any]:
    """Callable (t, x, u) -> x after a sample time at held controls u."""
    h: Any = settings.sample_time
    rates, method = loop.held_rates(), settings.method
    if method == "cvodes":
        t, x, u = (ca.MX.sym(n, rates.size1_in(i)) for i, n in enumerate("txu"))
        start = ca.MX.sym("start")
        dae = {"t": t, "x": x, "p": ca.vertcat(u, start), "ode": rates(start + t, x, u)}
        options = {"reltol": settings.rtol, "abstol": settings.atol, "max_num_steps": SUNDIALS_STEPS}
        f = ca.integrator("hold", "cvodes", dae, 0.0, h, options)
        return lambda t, x, u: f(x0=x, p=np.append(u, t))["xf"].full().ravel()
    f = fixed_step(rates, substeps) if method == "dop853" else collocation_step(rates, degree=3, steps=substeps)
    return lambda t, x, u: f(t, x, h, u).full().ravel()
