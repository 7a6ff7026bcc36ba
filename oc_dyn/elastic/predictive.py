"""Model-predictive control of an elastic robot on its own model: motors, springs and links as states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from .. import validation
from ..control.mpc import PredictiveController, mpc
from ..errors import ModelError, ShapeError
from ..function import function
from ..numbers import are_sane
from ..optimal_control.problem import Problem
from ..types import Array, Numbers
from .model import ElasticRobot
from .plant import plant
from .reference import Reference

WEIGHTS = {"q": 3e3, "v": 1.0, "theta": 1e3, "dtheta": 1.0}  # of squared errors, per rad, rad/s


def nmpc(
    elastic: ElasticRobot, torque_limit: Numbers, *, nodes: int = 20, interval: float = 0.01,
    weights: Mapping[str, Numbers] | None = None, effort: Numbers = 3e-3, terminal: float = 0.05,
    spring_limit: Numbers | None = None, soft: float = 10.0, **options: Any,
) -> PredictiveController:  # fmt: skip
    """od.mpc that follows a reference of the whole state: parameters x_now, as of plant(elastic), and wanted
    (state and tau_m, nodes + 1), output tau_m.

    torque_limit (motors,) [Nm]: hard. nodes, interval [s]: horizon.
    weights {"q", "v", "theta", "dtheta"}: of the squares of errors, numbers or one a row, default WEIGHTS; effort: of
        tau_m less that of the reference [1/Nm^2]; terminal: share with which errors count again at the end.
    spring_limit (elastic joints,) [Nm]: of the springs' torques, given way to at the price `soft` of its share.
    options: further ones of od.mpc; default iterations=1, shift=0, for samples shorter than an interval.
    wanted comes from flat_states. Raises ModelError where sigma varies; ShapeError.
    """
    if elastic.sigma_names:
        raise ModelError(elastic.name, ["nmpc is for springs of fixed law: it does not plan sigma"])
    if elastic.nq != elastic.nv:
        raise ModelError(elastic.name, ["nmpc is for robots with joints of one coordinate alone"])
    p, motors = plant(elastic), len(elastic.motor_names)
    most = _positive("torque_limit", torque_limit, motors)
    interval = validation.number("nmpc: interval", interval, above=0)
    ocp = Problem(validation.count("nmpc: nodes", nodes, 1), nodes * interval)
    states = {n: ocp.state(n, part.stop - part.start) for n, part in p.parts.items()}
    tau = ocp.control("tau_m", motors, lower=-most, upper=most, scale=most)
    x = ca.vertcat(*states.values())
    x_now, wanted = ocp.parameter("x_now", p.size), ocp.varying("wanted", p.size + motors)
    dx, start = p.rates(x, tau, ca.DM(0, 1)), {}
    for n, part in p.parts.items():
        ocp.rate(states[n], dx[part])
        start[states[n]] = x_now[part]
    ocp.start(start)
    if spring_limit is not None:
        bound = _positive("spring_limit", spring_limit, len(elastic.joints))
        ocp.limit(-1, p.springs(x, ca.DM(0, 1))[1] / ca.DM(bound), 1, soft=(soft, soft))
    error = ca.DM(np.sqrt(_weights(p.parts, weights))) * (x - wanted[: p.size])
    price = np.sqrt(_positive("effort", effort, motors))
    ocp.minimize(squares=ca.vertcat(error, ca.DM(price) * (tau - wanted[p.size :])))
    ocp.minimize(terminal=validation.number("nmpc: terminal", terminal, above=0) * ca.sumsqr(error))
    return mpc(ocp, outputs={"tau_m": tau}, **{"iterations": 1, "shift": 0, "name": "nmpc", **options})


def flat_states(elastic: ElasticRobot, reference: Reference) -> ca.Function:
    """casadi.Function t -> [state of plant(elastic); tau_m] along a reference, by the flat map; after its end as there.

    What nmpc takes as wanted: at t + interval (k + 1/2) for node k, over whose interval it is held.
    """
    t, flat = ca.MX.sym("t"), function(elastic, "elastic_flat_map")
    names = reference.function.name_out()
    ref = dict(zip(names, reference.function.call([ca.fmin(t, reference.duration)]), strict=True))
    out = flat(**{n: ref[n] for n in flat.name_in()})
    known = {**ref, **out}
    return ca.Function("flat_states", [t], [ca.vertcat(*(known[n] for n in (*plant(elastic).parts, "tau_m")))])


def _weights(parts: Mapping[str, slice], weights: Mapping[str, Numbers] | None) -> Array:
    for n in weights or {}:
        validation.one_of("state with a weight", n, parts)
    rows = []
    for n, part in parts.items():
        value = validation.numbers(f"nmpc: weight of {n}", {**WEIGHTS, **(weights or {})}[n], part.stop - part.start)
        if not are_sane(value) or np.any(value < 0):
            raise ShapeError(f"nmpc: weight of {n} is {value.tolist()}, expected numbers of at least 0")
        rows.append(value)
    return np.concatenate(rows)


def _positive(what: str, value: Numbers, size: int) -> Array:
    out = validation.numbers(f"nmpc: {what}", value, size)
    if not are_sane(out) or not np.all(out > 0):
        raise ShapeError(f"nmpc: {what} is {out.tolist()}, expected positive numbers")
    return out
