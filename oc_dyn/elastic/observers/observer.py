"""Observers of elastic robots, and laws of control that read their estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError, ShapeError, UnknownName
from ...model.loops import LoopRobot
from ...numbers import are_sane, as_floats
from ...subexpressions import merged
from ...text import terminal
from ...types import Array, Numbers
from ..linear_errors import check_sample_time, longest_sample
from ..model import ElasticRobot
from ..ports import admit

MEASURED = ("q", "v", "theta", "dtheta", "sigma", "dsigma", "tau", "dtau", "tau_m")
Law = Callable[[dict[str, Any], Any], dict[str, Any]]  # (measured, memory) -> estimates and memory_rate


@dataclass(frozen=True, eq=False)
class Observer:
    """An observer: estimates from measurements and a memory that moves with them.

    elastic: the model it was derived from. function: casadi.Function (measured ports, any of MEASURED, and memory) ->
    (estimates by name, memory_rate). tau [Nm]: torque of each elastic joint on its link, by a sensor between spring
    and link; dtau: its rate without dampers; tau_m [Nm]: commanded motor torques, on which memory_rate alone depends.
    memory: size of its state; first_memory: casadi.Function of measured ports to that state at the start.
    estimates: names of the outputs: q_hat, v_hat, theta_hat, dtheta_hat for what the law reads as q, v, theta, dtheta;
    external_torque (v,), friction_torque (theta,), disturbance (theta,), collision (1,) and others.
    longest_sample [s]: sample time from which steps of its memory diverge, inf where that is not known.
    """

    name: str
    elastic: ElasticRobot
    function: ca.Function
    memory: int
    first_memory: ca.Function
    estimates: tuple[str, ...]
    longest_sample: float = inf

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of what it reads."""
        return tuple(n for n in self.function.name_in() if n != "memory")

    def replay(self, signals: Mapping[str, Numbers], sample_time: float) -> dict[str, Array]:
        """{estimate: (K, n)} along records {measured port: (K, n)}, one step of the memory each sample, as in C.

        sample_time [s]: between the rows. A Run has all ports as its attributes but dtau. Raises ShapeError for
        records that are missing, of other shapes or not finite.
        """
        h = validation.number("replay: sample_time", sample_time, above=0)
        check_sample_time("replay", h, self)
        rows = self._records(signals)
        memory = self.first_memory(**{n: rows[n][0] for n in self.first_memory.name_in()})["memory"]
        count = len(next(iter(rows.values())))
        found: dict[str, list[Array]] = {n: [] for n in self.estimates}
        for k in range(count):
            out = self.function(**{n: x[k] for n, x in rows.items()}, **({"memory": memory} if self.memory else {}))
            for n in self.estimates:
                found[n].append(out[n].full().ravel())
            memory = memory + h * out["memory_rate"] if self.memory else memory
        return {n: np.array(x) for n, x in found.items()}

    def _records(self, signals: Mapping[str, Numbers]) -> dict[str, Array]:
        rows = {}
        for n in self.measured:
            if n not in signals:
                raise ShapeError(f"{self.name}: the records lack {n}; needed: {', '.join(self.measured)}")
            x, size = as_floats(f"{self.name}: {n}", signals[n]), self.function.size1_in(n)
            if x.ndim != 2 or x.shape[1] != size or not len(x) or not are_sane(x):
                raise ShapeError(f"{self.name}: {n} has shape {x.shape}, expected (samples, {size}) of finite numbers")
            rows[n] = x
        if len({len(x) for x in rows.values()}) > 1:
            text = ", ".join(f"{n} {len(x)}" for n, x in rows.items())
            raise ShapeError(f"{self.name}: the records have different numbers of samples: {text}")
        return rows

    def __repr__(self) -> str:
        return f"<{self.name} of {terminal(self.elastic.name)}: {', '.join(self.estimates)}>"


def observer(
    name: str, elastic: ElasticRobot, measured: Sequence[str], law: Law, memory: int,
    first: Callable[[dict[str, Any]], Any] | None = None, gains: Numbers | None = None,
) -> Observer:  # fmt: skip
    """An Observer of one's own. measured: ports that it reads; law: ({port: symbol}, memory) -> {estimate: expression,
    "memory_rate": expression}; memory: size of its state; first: {port: symbol} -> memory at the start, by default
    zeros; gains (n, order): those of pole_gains of the poles of its error, if it has such, by which sample times are
    checked. Raises ModelError if an estimate, or the first memory, depends on tau_m."""
    sizes = port_sizes(elastic)
    for n in measured:
        if n not in sizes:
            raise UnknownName(f"measured port of {elastic.name}", n, list(sizes))
    ports = {n: ca.SX.sym(n, sizes[n]) for n in measured}
    state = ca.SX.sym("memory", memory)
    out = law(ports, state)
    estimates = tuple(n for n in out if n != "memory_rate")
    start = first(ports) if first and memory else ca.DM.zeros(memory)
    if "tau_m" in ports:
        # estimates come before the torques that they are for
        for what, x in [*((n, out[n]) for n in estimates), ("first memory", start)]:
            if ca.depends_on(ca.SX(x), ports["tau_m"]):
                raise ModelError(elastic.name, [f"{name}: {what} depends on tau_m, of which memory_rate alone may"])
    inputs = {**ports, **({"memory": state} if memory else {})}
    names = [*estimates, *(["memory_rate"] if memory else [])]
    outputs = merged([ca.densify(ca.SX(out[n])) for n in names])
    known = {n: x for n, x in ports.items() if n != "tau_m"}
    return Observer(
        name,
        elastic,
        ca.Function(name, list(inputs.values()), outputs, list(inputs), names),
        memory,
        ca.Function(f"{name}_start", list(known.values()), [ca.densify(ca.SX(start))], list(known), ["memory"]),
        estimates,
        inf if gains is None else longest_sample(gains),
    )


def port_sizes(elastic: ElasticRobot) -> dict[str, int]:
    """{port: rows} of what observers and laws may measure."""
    motors, joints = len(elastic.elastic_motors), len(elastic.joints)
    sizes = {"q": elastic.nq, "v": elastic.nv, "theta": motors, "dtheta": motors, "tau": joints, "dtau": joints}
    sizes |= {"sigma": len(elastic.sigma_names), "dsigma": len(elastic.sigma_names)} if elastic.stiffness_driven else {}
    return {**sizes, "tau_m": len(elastic.motor_names)}


def admitted(name: str, elastic: Any, *, one_motor: bool = True) -> None:
    """Refuse robots of which there is no such observer. one_motor: whether each elastic joint needs its own motor."""
    admit(name)(elastic)
    problems = []
    if elastic.nq != elastic.nv:
        problems.append(f"{name} is for robots with joints of one coordinate alone")
    if isinstance(elastic.links, LoopRobot):
        problems.append(f"{name} is for robots without loops: their momentum is not differentiated through the closing")
    pairs = [j.name for j in elastic.joints if len(j.theta) > 1]
    if one_motor and pairs:
        problems.append(f"{name}: joint {pairs[0]!r} has two motors, whose shares of the torque no sensor tells apart")
    if "across" in elastic.features:
        problems.append(f"{name} knows springs of one joint alone, not those across several")
    if problems:
        raise ModelError(elastic.name, problems)
