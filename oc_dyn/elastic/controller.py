"""The Controller, a law of control for an elastic robot, and how laws are made into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..function import function
from ..numbers import HUGE, are_sane, as_floats
from ..ports import derivative_name
from ..subexpressions import merged
from ..text import terminal
from ..types import Array
from .effects import refuse_effects
from .model import ElasticRobot

Law = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], dict[str, Any]]  # (reference, state, gains) -> outputs


@dataclass(frozen=True, eq=False)
class Controller:
    """A law of control. elastic: the model it was derived from. function: ports as above. memory: size of its state;
    first_memory: casadi.Function from the reference ports to that state at the start.

    gains: {name: values}; with_gains: the function with a port for each of them besides, for code that may change them.
    integrators: (entry of the memory, that of its rate, motor) of torques that are integrated; see anti_windup.
    longest_sample [s]: sample time below which the observers in it are stable.
    """

    name: str
    elastic: ElasticRobot
    function: ca.Function
    memory: int = 0
    first_memory: ca.Function | None = None
    gains: dict[str, Array] = field(default_factory=dict)
    with_gains: ca.Function | None = None
    integrators: tuple[tuple[int, int, int], ...] = ()
    longest_sample: float = inf

    @property
    def reference_names(self) -> tuple[str, ...]:
        """Names of the reference's ports, without "_ref"."""
        return tuple(n.removesuffix("_ref") for n in self.function.name_in() if n.endswith("_ref"))

    def __repr__(self) -> str:
        return f"<{self.name} of {terminal(self.elastic.name)}: {self.function.n_instructions()} instructions>"


def make_controller(
    name: str, elastic: ElasticRobot, law: Law, memory: int = 0, first: Callable[[dict[str, Any]], Any] | None = None,
    gains: Mapping[str, Any] | None = None, integrators: tuple[tuple[int, int, int], ...] = (),
    sensors: tuple[str, ...] = (),
) -> Controller:  # fmt: skip
    """The Controller of a law. memory: size of its state; first: reference ports -> that at the start; gains: what the
    law takes as such; integrators: as of Controller; sensors: which of tau and dtau it reads."""
    refuse_effects(name, elastic)
    if elastic.nq != elastic.nv:
        raise ModelError(elastic.name, [f"{name} is for robots with joints of one coordinate alone"])
    ref, state = reference_and_state(elastic, memory, sensors)
    ports: dict[str, Any] = {**{f"{n}_ref": x for n, x in ref.items()}, **state}
    values: dict[str, Any] = {n: ca.DM(x) for n, x in (gains or {}).items()}
    for n, x in values.items():
        if not are_sane(x.full()):
            raise ShapeError(f"{name}: {n} comes out as {x.full().tolist()}, expected finite numbers below {HUGE:g}")
    open_: dict[str, Any] = {n: ca.SX.sym(n, *x.shape) for n, x in values.items()}
    made = []
    for numbers in [values, open_] if values else [values]:
        out = law(ref, state, numbers)
        names = [n for n in ("tau_m", "tau_sigma", "memory_rate") if n in out]
        inputs = {**ports, **(numbers if numbers is open_ else {})}
        outputs = merged([ca.densify(ca.SX(out[n])) for n in names])
        made.append(ca.Function(name, list(inputs.values()), outputs, list(inputs), names))
    start = first and ca.Function(f"{name}_start", list(ref.values()), [first(ref)], list(ref), ["memory"])
    kept = {n: x.full() for n, x in values.items()}
    return Controller(name, elastic, made[0], memory, start, kept, made[-1] if values else None, integrators)


def reference_and_state(
    elastic: ElasticRobot, memory: int, sensors: tuple[str, ...] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """({port: symbol} of a reference, without "_ref"; the same of state and memory)."""
    n, motors, sigmas = elastic.nv, len(elastic.elastic_motors), len(elastic.sigma_names)
    ref = {derivative_name("v", k - 1) if k else "q": n for k in range(elastic.flat_order() + 1)}
    ref |= {derivative_name("sigma", k): sigmas for k in range(elastic.sigma_order + 1)} if sigmas else {}
    state = {"q": n, "v": n, "theta": motors, "dtheta": motors}
    state |= {"sigma": sigmas, "dsigma": sigmas} if elastic.stiffness_driven else {}
    state |= dict.fromkeys(sensors, len(elastic.joints))
    state |= {"memory": memory} if memory else {}
    made = [{name: ca.SX.sym(name, size) for name, size in part.items()} for part in (ref, state)]
    return made[0], made[1]


def flat_torques(elastic: ElasticRobot, ref: dict[str, Any]) -> dict[str, Any]:
    """Outputs of the flat map at a reference {port: expression}."""
    f = function(elastic, "elastic_flat_map")
    return f(**{name: ref[name] for name in f.name_in()})


def motor_gains(elastic: ElasticRobot, **gains: Any) -> list[Any]:
    """[column of one number per motor] of gains given as numbers, {motor: value} or one per motor."""
    out, names = [], elastic.motor_names
    for what, value in gains.items():
        if isinstance(value, dict):
            unknown = [n for n in value if n not in names]
            if unknown:
                raise ShapeError(f"{what}: no motor {unknown[0]!r}; motors: {', '.join(names)}")
            value = [value.get(n, 0.0) for n in names]
        value = as_floats(what, value).ravel()
        value = np.full(len(names), value[0]) if value.size == 1 else value
        if value.shape != (len(names),) or not are_sane(value) or np.any(value < 0):
            raise ShapeError(
                f"{what}: got {value.tolist()}, expected {len(names)} numbers of at least 0: {', '.join(names)}"
            )
        out.append(ca.DM(value))
    return out
