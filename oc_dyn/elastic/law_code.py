"""What is written about a law in C: its inputs, outputs and parameters, and the steps of its self-test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..codegen.names import field_name
from ..codegen.product import Field, fields_of
from ..codegen.source import REALS
from ..ports import derivative_name
from ..types import Array
from .anti_windup import held_back
from .control import Controller
from .measured_limits import MeasuredLimits
from .torque_sensors import TORQUES

_UNITS = {"q": "rad or m", "v": "rad/s or m/s", "theta": "rad or m", "dtheta": "rad/s or m/s"}
_UNITS |= {derivative_name("v", k): f"rad/s{k + 1} or m/s{k + 1}" for k in range(1, 12)}
_UNITS |= {"tau": "Nm or N", "dtau": "Nm/s or N/s"}
_UNITS |= dict.fromkeys(("external_torque", "friction_torque", "disturbance"), "Nm or N")  # estimates of observers
_UNITS |= {"kp": "Nm/rad or N/m", "kd": "Nm s/rad or N s/m"}


class LawCode:
    """What is written about a law. law: the Function that moves its memory on; first: that of the first memory;
    limit, safe: (motors,), limit None where there is none; differences: pairs of inputs, see differences.py."""

    def __init__(
        self, controller: Controller, name: str, sample_time: float, law: ca.Function, first: ca.Function | None,
        limit: Any, safe: Array, precision: str, differences: Sequence[tuple[int, int]] = (), anti_windup: bool = True,
    ) -> None:  # fmt: skip
        self.controller, self.name, self.sample_time = controller, name, sample_time
        self.law, self.first, self.safe, self.precision = law, first, safe, precision
        self.limit = None if limit is None else limit.full().ravel()
        self.differences, self.real = differences, REALS[precision]
        self.wide = precision == "single"
        self.integrators = controller.integrators if anti_windup and limit is not None else ()
        self.measured: MeasuredLimits | None = None
        self.motors = len(controller.elastic.motor_names)
        apart = ("memory", "differences", *controller.gains)
        self.inputs = [_known(x, controller) for x in fields_of(law, "in", apart)]
        self.outputs = [_known(x, controller) for x in fields_of(law, "out", ("memory_next",))]

    @property
    def title(self) -> str:
        """What it is, in a line."""
        c = self.controller
        return f"{c.name} of {c.elastic.name}, {self.law.n_instructions()} operations a step"

    @property
    def flags(self) -> Field:
        """The member of outputs that tells which torques are at their limits."""
        words = "1 where a torque is at its limit, -1 where at the lower one"
        return Field("saturated", self.motors, words=words, labels=self.controller.elastic.motor_names, type="int")

    @property
    def parameters(self) -> list[Field]:
        """What may be changed while the law runs."""
        gains = [
            replace(Field(field_name(n), *x.shape), unit=_UNITS.get(n, "")) for n, x in self.controller.gains.items()
        ]
        names = self.controller.elastic.motor_names
        gains = [replace(x, labels=names) if x.rows == self.motors and x.columns == 1 else x for x in gains]
        gains = [replace(x, words=_GAINS.get(x.name, "")) for x in gains]
        return [
            *gains,
            Field("torque_limit", self.motors, unit="Nm or N", labels=names, words="narrower than the generated one"),
            Field("safe_torque", self.motors, unit="Nm or N", labels=names, words="where a step fails"),
        ]


_GAINS = {
    "gains": "k0, k1, .. of e^(r) + .. + k1 e' + k0 e = 0, of each joint",
    "integral_gains": "that of the integral of e, of each joint",
    "sigma_gains": "the same of sigma, of second order",
}


def _known(x: Field, controller: Controller) -> Field:
    """A member with its unit and the names of joints or motors."""
    elastic, name = controller.elastic, x.name.removesuffix("_ref").removesuffix("_hat")
    labels: Any = ()
    if name in ("theta", "dtheta", "friction_torque", "disturbance"):
        labels = tuple(elastic.motor_names[m] for m in elastic.elastic_motors)
    elif name == "tau_m":
        labels = elastic.motor_names
    elif name in TORQUES:
        labels = tuple(j.name for j in elastic.joints)
    elif name.endswith("sigma"):
        labels = elastic.sigma_names
    elif x.rows == len(elastic.links.velocity_names):
        labels = tuple(elastic.links.velocity_names)
    unit = "Nm or N" if name == "tau_m" else _UNITS.get(name, "")
    return replace(x, unit=unit, labels=tuple(labels) if len(labels) == x.rows else ())


def recorded(code: LawCode) -> tuple[list[Array], list[Array], list[int]]:
    """(inputs, outputs, statuses) of three steps from the start, in Python."""
    c, rng = code.controller, np.random.default_rng(0)
    limit = np.full(code.motors, np.inf) if code.limit is None else code.limit
    names = [n for n in c.function.name_in() if n != "memory"]
    count = sum(x.count for x in code.inputs)
    for k in range(20):  # until a law that is not defined everywhere has results
        rows = [rng.uniform(-0.5, 0.5, count).round(3) for _ in range(3)]
        rows = [_stiff(code, x, 10.0 ** (k % 4)) for x in rows] if k >= 4 else rows
        rows = tamed(code, rows)
        expected, statuses = _steps(code, names, rows, limit)
        if not any(statuses):
            break
    return rows, expected, statuses


def _stiff(code: LawCode, x: Array, size: float) -> Array:
    """Inputs with positive stiffnesses of this size, where laws of variable springs are defined."""
    at = 0
    for port in code.inputs:
        if port.name in ("sigma", "sigma_ref"):
            x[at : at + port.count] = (size * (1 + np.abs(x[at : at + port.count]))).round(3)
        at += port.count
    return x


def tamed(code: LawCode, rows: Sequence[Array]) -> list[Array]:
    """Inputs near those given whose measurements are within their limits."""
    if code.measured is None:
        return list(rows)
    places, out = measured_places(code), [np.array(x) for x in rows]
    for x, y in zip(out, code.measured.tamed([x[places] for x in out]), strict=True):
        x[places] = y
    return out


def measured_places(code: LawCode) -> Array:
    """(n,) places in the input of what MeasuredLimits bound."""
    starts, at = {}, 0
    for x in code.inputs:
        starts[x.name], at = at, at + x.count
    ports = code.measured.ports if code.measured else ()
    return np.concatenate([np.zeros(0, int), *(starts[field_name(n)] + np.arange(size) for n, size in ports)])


def moved_on(memory: Array, found: dict[str, Any], sample_time: float) -> Array:
    """The memory of the next sample, from the outputs of a law."""
    if "memory_next" in found:
        return found["memory_next"].full().ravel()
    return memory + sample_time * found["memory_rate"].full().ravel() if "memory_rate" in found else memory


def _steps(code: LawCode, names: list[str], rows: list[Array], limit: Array) -> tuple[list[Array], list[int]]:
    """(outputs, statuses) of steps from the start."""
    c, started, memory = code.controller, False, np.zeros(code.controller.memory)
    ends = np.cumsum([c.function.size1_in(n) for n in names])[:-1]
    expected: list[Array] = []
    statuses = []
    for row in rows:
        ports = dict(zip(names, np.split(row, ends), strict=True))
        if not started and c.first_memory is not None:
            first = c.first_memory(**{n: ports[f"{n}_ref"] for n in c.first_memory.name_in()})
            memory = first["memory"].full().ravel()
        started = bool(np.all(np.isfinite(memory)))
        found = c.function(**ports, **({"memory": memory} if c.memory else {}))
        moved = moved_on(memory, found, code.sample_time)
        outputs = {x.name: found[x.name].full().ravel() for x in code.outputs}
        good = started and all(np.all(np.isfinite(x)) for x in (moved, *outputs.values()))
        if not good:
            outputs = {n: code.safe if n == "tau_m" else np.zeros(x.size) for n, x in outputs.items()}
        outputs["tau_m"] = np.clip(outputs["tau_m"], -limit, limit)
        expected.append(np.concatenate(list(outputs.values())))
        statuses.append(0 if good else 4)
        memory = held_back(moved, code.integrators, code.limit) if good else memory
    return expected, statuses
