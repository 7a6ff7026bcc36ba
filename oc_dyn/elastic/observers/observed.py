"""A law of control fed by observers: again a law of control, with the memory of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError, ShapeError, UnknownName
from ...function import function
from ...numbers import HUGE
from ...subexpressions import merged
from ...types import Numbers
from ..closed_loop import cut_off
from ..controller import Controller
from ..drives import at_drives, drive_torques
from ..model import ElasticRobot
from ..motor_side import at_motors
from ..plant import plant
from ..torque_sensors import torque_sensors
from .observer import Observer, port_sizes

COMPENSATED = {"friction_torque": 1.0, "disturbance": -1.0}  # estimate: sign with which it is added to tau_m


def observed(
    controller: Controller, *observers: Observer, compensate: str | Sequence[str] = (),
    torque_limit: Numbers | None = None,
) -> Controller:  # fmt: skip
    """The Controller whose state ports are fed from observers' estimates, those being outputs besides.

    An estimate x_hat of an observer is what later observers and the law read as x; what nobody estimates is measured.
    compensate: estimates of torques at the motors that the law counters: "friction_torque" (added), "disturbance"
        (subtracted).
    torque_limit: (motors,) or a number [Nm]: what motors cut off at, so that observers know what acts on them; give
        the same to simulate and generate_controller.
    Observers start at the reference's state; their offsets there decay as they promise. Simulation and C are those of
    laws; memories move by an Euler step each sample: stable where sample_time times the fastest pole is below 2, which
    both check (longest_sample, for complex poles -2 Re p / |p|^2).
    Raises ModelError for observers of other robots or estimates that occur twice; UnknownName; ShapeError.
    """
    elastic = controller.elastic
    names = _checked(controller, observers)
    wanted = validation.names_of("observed: compensate", compensate)
    for n in wanted:
        if n not in COMPENSATED or n not in names:
            raise UnknownName("estimate that can be compensated", n, [x for x in COMPENSATED if x in names])
    limit = None if torque_limit is None else _limit(elastic, torque_limit)
    build = _Observed(controller, observers, wanted, limit)
    law = build.function(controller.function, {})
    gains = {n: ca.SX.sym(n, *x.shape) for n, x in controller.gains.items()}
    open_ = controller.with_gains and build.function(controller.with_gains, gains)
    memory = controller.memory + sum(o.memory for o in observers)
    start = _first(controller, observers) if memory else None
    longest = min(controller.longest_sample, *(o.longest_sample for o in observers))
    integrators = controller.integrators
    return Controller(law.name(), elastic, law, memory, start, controller.gains, open_, integrators, longest)


def _checked(controller: Controller, observers: Sequence[Observer]) -> list[str]:
    """Names of all estimates."""
    elastic, names = controller.elastic, list(controller.function.name_out())
    if "memory_next" in names:
        raise ModelError(
            elastic.name, [f"{controller.name} moves its memory by samples; observers move theirs by rates"]
        )
    if not observers:
        raise ShapeError("observed: no observer is given; expected at least one behind the controller")
    for o in observers:
        if not isinstance(o, Observer):
            raise ShapeError(f"observed: got {type(o).__name__}, expected an Observer such as momentum_observer(...)")
        if o.elastic.motor_names != elastic.motor_names or o.elastic.nv != elastic.nv:
            raise ModelError(elastic.name, [f"{o.name} is for {o.elastic.name}, with other motors"])
        twice = [n for n in o.estimates if n in names]
        if twice:
            raise ModelError(elastic.name, [f"{o.name} gives {twice[0]}, which is given before it"])
        names += o.estimates
    return names


def _limit(elastic: ElasticRobot, torque_limit: Numbers) -> Any:
    limit = validation.numbers("observed: torque_limit", torque_limit, len(elastic.motor_names))
    if not (limit > 0).all():
        raise ShapeError(f"observed: torque_limit is {limit.tolist()}, expected positive numbers")
    return ca.DM(np.minimum(limit, HUGE))  # an infinite one cuts nothing off, and is no number for C


@dataclass(frozen=True)
class _Observed:
    """Law and observers, of which the function is made once with and once without ports for gains."""

    controller: Controller
    observers: tuple[Observer, ...]
    compensate: tuple[str, ...]
    limit: Any

    def function(self, law: ca.Function, gains: dict[str, Any]) -> ca.Function:
        """casadi.Function (reference, what is measured, memory, gains) -> (tau_m, .., estimates, memory_rate)."""
        elastic = self.controller.elastic
        measured = {n: ca.SX.sym(n, k) for n, k in port_sizes(elastic).items() if n != "tau_m"}
        sizes = [self.controller.memory, *(o.memory for o in self.observers)]
        whole = ca.SX.sym("memory", sum(sizes))
        ends = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
        memories = ca.vertsplit(whole, ends)
        known: dict[str, Any] = dict(measured)
        estimates: dict[str, Any] = {}
        seen: list[dict[str, Any]] = []
        for o, m in zip(self.observers, memories[1:], strict=True):
            ports = {n: known[n] for n in o.measured if n != "tau_m"}
            seen.append(ports)
            out = _called(o, {**ports, "tau_m": ca.DM.zeros(len(elastic.motor_names))}, m)
            estimates |= {n: out[n] for n in o.estimates}
            known |= {n.removesuffix("_hat"): out[n] for n in o.estimates if n.removesuffix("_hat") in measured}
        refs = {n: ca.SX.sym(n, law.size1_in(n)) for n in law.name_in() if n.endswith("_ref")}
        ports = {**known, **refs, **gains, "memory": memories[0]}
        out = law(**{n: ports[n] for n in law.name_in()})
        for n in self.compensate:
            extra = at_motors(elastic, ca.DM.zeros(len(elastic.drives) or elastic.nv), estimates[n])
            out["tau_m"] = out["tau_m"] + COMPENSATED[n] * extra
        acting = out["tau_m"] if self.limit is None else cut_off(out["tau_m"], self.limit)
        rates = [out.pop("memory_rate")] if self.controller.memory else []
        for o, at, m in zip(self.observers, seen, memories[1:], strict=True):
            rates += [_called(o, {**at, "tau_m": acting}, m)["memory_rate"]] if o.memory else []
        out |= estimates
        out |= {"memory_rate": ca.vertcat(*rates)} if rates else {}
        outputs = merged([ca.densify(ca.SX(x)) for x in out.values()])
        read = [n for n, x in measured.items() if any(ca.depends_on(y, x) for y in outputs)]
        inputs = {**refs, **{n: measured[n] for n in read}, **({"memory": whole} if rates else {}), **gains}
        name = f"observed_{law.name()}".removeprefix("observed_observed_")
        return ca.Function(name, list(inputs.values()), outputs, list(inputs), list(out))


def _called(o: Observer, ports: dict[str, Any], memory: Any) -> dict[str, Any]:
    ports = {**ports, "memory": memory}
    return o.function(**{n: ports[n] for n in o.function.name_in()})


def _first(controller: Controller, observers: Sequence[Observer]) -> ca.Function:
    """casadi.Function of reference ports -> memories of law and observers at the reference's state."""
    law = controller.function
    ref = {n: ca.SX.sym(n, law.size1_in(f"{n}_ref")) for n in controller.reference_names}
    parts = []
    if controller.memory:
        f: Any = controller.first_memory
        parts.append(f(**{n: ref[n] for n in f.name_in()})["memory"])
    ports: dict[str, Any] = {}
    for o in observers:
        if o.memory:
            lacking = set(o.first_memory.name_in()) - {"q", "v"}
            ports = ports or reference_state(controller.elastic, ref, bool(lacking))
            parts.append(o.first_memory(**{n: ports[n] for n in o.first_memory.name_in()})["memory"])
    name = f"{law.name()}_observed_start"
    return ca.Function(name, list(ref.values()), [ca.densify(ca.SX(ca.vertcat(*parts)))], list(ref), ["memory"])


def reference_state(elastic: ElasticRobot, ref: dict[str, Any], motors: bool = True) -> dict[str, Any]:
    """{q, v, and with motors theta, dtheta, tau, dtau, sigma, dsigma} of a reference {port: expression}, as if springs
    had no dampers."""
    sigma = [ref[n] for n in ("sigma", "dsigma")] if elastic.sigma_names else []
    state = {"q": ref["q"], "v": ref["v"], **dict(zip(("sigma", "dsigma"), sigma, strict=False))}
    if not motors:
        return state
    if elastic.coupling:
        f = function(elastic, "elastic_flat_map")
        out = f(**{n: ref[n] for n in f.name_in()})
        state |= {"theta": out["theta"], "dtheta": out["dtheta"]}
    else:
        torque = drive_torques(elastic, 1).call([ref["q"], ref["v"], ref["dv"], ref["d2v"]])
        drives, jets = at_drives(elastic, [ref["q"], ref["v"]]), []
        for j in elastic.joints:
            own = [x[j.sigma] for x in sigma] if j.sigma is not None else []
            for z in j.spring.deflections([x[j.v] for x in torque], own):
                jets.append([z[0] + drives[0][j.q], z[1] + drives[1][j.v]])
        state |= {n: ca.vertcat(*(x[k] for x in jets)) for k, n in enumerate(("theta", "dtheta"))}
    sensors = torque_sensors(elastic)
    given = ca.vertcat(*sigma) if sensors.numel_in(1) else ca.DM(0, 1)
    tau, dtau = sensors(ca.vertcat(*(state[n] for n in plant(elastic).parts)), given)
    return {**state, "tau": tau, "dtau": dtau}
