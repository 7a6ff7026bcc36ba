"""The closed loop of robot, law and reference, as casadi Functions for integrators and for C."""

import casadi as ca
import numpy as np

from .. import validation
from .._moved import renamed
from ..errors import ModelError, ShapeError
from ..function import function
from ..numbers import are_sane, as_floats, shortened
from .plant import plant
from .reachable import refusal
from .reference import Reference
from .torque_sensors import TORQUES, torque_sensors


class ClosedLoop:
    """The closed loop of real robot, law and reference; state [robot; memory; work put in; work taken].

    sample_time [s]: for laws that give memory_next, the memory of the next sample, instead of its rate.
    """

    def __init__(self, elastic, controller, reference, limit, sample_time=None):
        if controller.elastic.motor_names != elastic.motor_names or controller.elastic.nq != elastic.nq:
            raise ModelError(elastic.name, [f"the controller is for {controller.elastic.name}, with other motors"])
        check_is_reference(reference)
        missing = set(controller.reference_names) - set(reference.function.name_out())
        if missing:
            raise ShapeError(
                f"simulate: the reference lacks {', '.join(sorted(missing))}; make it for the controller's model"
            )
        self.elastic, self.controller, self.reference, self.limit = elastic, controller, reference, limit
        self.sample_time = sample_time
        self.plant = plant(elastic)
        self.memory = controller.memory
        self.size = self.plant.size + self.memory + 2

    @property
    def measures_torques(self):
        """Whether the law reads torque sensors."""
        return any(n in TORQUES for n in self.controller.function.name_in())

    def reference_at(self, t):
        """{port: value} of the reference at time t."""
        return dict(zip(self.reference.function.name_out(), self.reference.function.call([t]), strict=True))

    def sigma(self, ref):
        """Prescribed sigma and its rate; nothing where it is not prescribed."""
        if not self.elastic.sigma_names:
            return ca.DM(0, 1)
        return ca.vertcat(ref["sigma"], ref["dsigma"])

    @property
    def discrete(self):
        """Whether the law gives the next memory instead of a rate."""
        return "memory_next" in self.controller.function.name_out()

    def controls(self, ref, x, memory, torques=None):
        """(u, rate of the memory) of the law at measured robot state x; torques: what torque sensors measure, default
        exact."""
        state = {name: x[part] for name, part in self.plant.parts.items()}
        ports = {**{f"{n}_ref": ref[n] for n in self.controller.reference_names}, **state}
        if self.measures_torques:
            exact = torque_sensors(self.elastic)(x, self.sigma(ref)) if torques is None else torques
            ports |= dict(zip(TORQUES, exact, strict=True))
        if self.memory:
            ports["memory"] = memory
        out = self.controller.function(**{n: ports[n] for n in self.controller.function.name_in()})
        tau_m = out["tau_m"]
        if self.limit is not None:
            tau_m = cut_off(tau_m, self.limit)
        u = ca.vertcat(tau_m, out["tau_sigma"]) if "tau_sigma" in out else tau_m
        if self.discrete:  # held over a sample, this rate leads there
            return u, (out["memory_next"] - memory) / self.sample_time
        return u, out.get("memory_rate", ca.DM(0, 1))

    def rates(self):
        """casadi.Function (t, x, p) -> rates of the whole closed loop; p is empty."""
        t, x, p = ca.MX.sym("t"), ca.MX.sym("x", self.size), ca.MX.sym("p", 0)
        ref = self.reference_at(t)
        robot, memory = x[: self.plant.size], x[self.plant.size : self.plant.size + self.memory]
        u, memory_rate = self.controls(ref, robot, memory)
        arguments = [robot, u, self.sigma(ref)]
        dx = ca.vertcat(self.plant.rates(*arguments), memory_rate, self.plant.powers(*arguments))
        return ca.Function("rates", [t, x, p], [dx], ["t", "x", "p"], ["dx"])

    def held_rates(self):
        """casadi.Function (t, x, u) -> rates under held controls; the memory moves by the law's rates, held as well."""
        t, x = ca.MX.sym("t"), ca.MX.sym("x", self.size)
        u = ca.MX.sym("u", self.plant.controls + self.memory)
        # split, not sliced: the empty slice of a single control would be a row, 1 x 0
        tau, held = ca.vertsplit(u, [0, self.plant.controls, self.plant.controls + self.memory])
        arguments = [x[: self.plant.size], tau, self.sigma(self.reference_at(t))]
        dx = ca.vertcat(self.plant.rates(*arguments), held, self.plant.powers(*arguments))
        return ca.Function("rates", [t, x, u], [dx], ["t", "x", "p"], ["dx"])

    def law(self):
        """casadi.Function (t, x, memory) -> [u; rate of the memory]."""
        t, x, memory = ca.MX.sym("t"), ca.MX.sym("x", self.plant.size), ca.MX.sym("memory", self.memory)
        return ca.Function("law", [t, x, memory], [ca.vertcat(*self.controls(self.reference_at(t), x, memory))])

    def measured_law(self):
        """casadi.Function (t, x, tau, dtau, memory) -> [u; rate of the memory] of what is measured."""
        t, x, memory = ca.MX.sym("t"), ca.MX.sym("x", self.plant.size), ca.MX.sym("memory", self.memory)
        torques = [ca.MX.sym(n, len(self.elastic.joints)) for n in TORQUES]
        out = ca.vertcat(*self.controls(self.reference_at(t), x, memory, torques))
        return ca.Function("law", [t, x, *torques, memory], [out], ["t", "x", *TORQUES, "memory"], ["out"])

    def first_state(self, start):
        """Whole state at time zero."""
        ref = {n: np.ravel(x) for n, x in self.reference.at([0.0]).items()}
        if isinstance(start, str) and start != "reference":
            raise ShapeError(f'simulate: start is {start!r}, expected "reference", offsets by name, or a whole state')
        if start is not None and not isinstance(start, (dict, str)):
            robot = as_floats("simulate: start", start).ravel()
            if robot.shape != (self.plant.size,) or not are_sane(robot):
                raise ShapeError(f"simulate: start has {robot.size} entries, expected {self.plant.size}, all finite")
        else:
            model = self.controller.elastic if start == "reference" else self.elastic
            robot = self._flat_state(model, ref)
            for name, offset in start.items() if isinstance(start, dict) else ():
                part = self.plant.parts[validation.one_of("part of the state", name, self.plant.parts)]
                offset = validation.numbers(f"simulate: start, {name}", offset, part.stop - part.start)
                if not are_sane(offset):
                    raise ShapeError(f"simulate: start, {name} is {offset.tolist()}, expected finite numbers")
                robot[part] += offset
        memory = np.zeros(0)
        if self.memory:
            f = self.controller.first_memory
            memory = f(**{n: ref[n] for n in f.name_in()})["memory"].full().ravel()
        return np.concatenate([robot, memory, [0.0, 0.0]])

    def _flat_state(self, model, ref):
        f = function(model.undamped(), "elastic_flat_map")
        lacking = set(f.name_in()) - set(ref)
        if lacking:
            raise ShapeError(
                f"simulate: the reference lacks {', '.join(sorted(lacking))}, needed for the state at the start; make "
                "the reference for the real robot, or give the start"
            )
        flat = f(**{n: ref[n] for n in f.name_in()})
        error = refusal(model, {n: x.reshape(-1, 1) for n, x in ref.items()}, flat["theta"].full())
        if error:
            raise type(error)(f"simulate: at the start: {error}")
        parts = {**ref, "theta": flat["theta"].full(), "dtheta": flat["dtheta"].full()}
        parts["friction"] = np.zeros(sum(e.law.memory for e in self.elastic.effects))
        return np.concatenate([np.ravel(parts[n]) for n in self.plant.parts])


def check_is_reference(reference):
    """ShapeError that says how a plan becomes one, for what is no Reference."""
    if not isinstance(reference, Reference):
        raise ShapeError(
            f"simulate: the reference is {shortened(reference)}, expected a Reference: "
            "od.elastic.reference(elastic, motion), for a plan its .motion"
        )


def cut_off(tau, limit):
    """Torques (motors,) within limits (motors,); NaN stays NaN, of which fmin and fmax would make the limit."""
    return ca.if_else(tau > limit, limit, ca.if_else(tau < -limit, -limit, tau))


def torque_limits(controller, torque_limit, who="simulate"):
    """(motors,) from a number or one per motor; None for none. who: what messages begin with."""
    if torque_limit is None:
        return None
    limit = validation.numbers(f"{who}: torque_limit", torque_limit, len(controller.elastic.motor_names))
    if not np.all(limit > 0):
        raise ShapeError(f"{who}: torque_limit is {limit.tolist()}, expected positive numbers")
    return ca.DM(limit)


__getattr__ = renamed(__name__, {"Loop": "ClosedLoop"})
