"""Closed loops with the law inside the integration."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, SolveError
from ..types import Array
from .closed_loop import ClosedLoop
from .dop853 import integrate
from .open_loops import fault_of, looks, up_to_open
from .reachable import fastest
from .sensor_effects import SensorEffects
from .simulation_settings import Settings

SUNDIALS_STEPS = 10_000_000
_PHASE = 4.0  # [rad] that dop853 passes in a step at most, where a swing limits its steps


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


def continuous(
    loop: ClosedLoop, settings: Settings, x0: Array, spread: Array | None, effects: SensorEffects,
) -> tuple[Any, ...]:  # fmt: skip
    """(times, states (size, times), None, facts, failure): the law inside the integration."""
    if spread is not None:
        raise ShapeError("simulate: noise is for a sampled law; give sample_time")
    if effects.names:
        raise ShapeError(
            f"simulate: {', '.join(effects.names)}: for a sampled law, as there are no samples inside an integration; "
            "give sample_time"
        )
    if loop.discrete:
        raise ShapeError(
            f"simulate: {loop.controller.name} moves its memory once in a sample (memory_next); give sample_time"
        )
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
            failure = f"{method} failed between t = {a:.6g} and {b:.6g}: {last_line(error)}"
            break
        states[:, inside] = result[:, : inside.sum()]
        x = result[:, -1]
    failure = up_to_open(loop, times, states, failure)
    return times[rows], states[:, rows], None, {}, failure


def last_line(error: Exception) -> str:
    """What an error says last."""
    return [line for line in str(error).splitlines() if line.strip()][-1]


def _sundials(
    loop: ClosedLoop, rates: ca.Function, method: str, start: float, grid: Any, rtol: float, atol: float,
) -> ca.Function:  # fmt: skip
    options = {"reltol": rtol, "abstol": atol, "max_num_steps": SUNDIALS_STEPS}
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
