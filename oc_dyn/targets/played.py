"""What a player plays: polynomial pieces with names, and a Function of their values; made of motions of all kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..elastic.plan import ElasticPlan
from ..elastic.plan_outputs import deflected, flat_outputs
from ..errors import ModelError, ShapeError, UnknownName
from ..friction import counts
from ..function import function
from ..numbers import shortened
from ..optimal_control.solution import Solution
from ..planning.path_motion import PathMotion
from ..planning.quantities import BY_NAME, order_name
from ..planning.trajectory import Motion, Trajectory
from ..ports import derivative_name, derivative_unit
from ..types import Array
from .path_function import path_function
from .solution_pieces import polynomial_pieces

_UNIT = re.compile(r"[A-Za-z]+(/s\d?)?")

Sampler = Callable[[Array], Mapping[str, Array]]


@dataclass(frozen=True)
class Channel:
    """Polynomials: pieces (M, orders, n) of a quantity and its time derivatives at the starts of the pieces, called
    `names`, of which the first `shown` come out; unit and name of every coordinate (n,)."""

    names: tuple[str, ...]
    shown: int
    pieces: Array
    units: tuple[str, ...]
    coordinates: tuple[str, ...]

    def unit(self, order: int) -> str:
        """Of a derivative, once where all coordinates share it."""
        return in_words(rate_of(x, order) for x in self.units)


@dataclass(frozen=True)
class Computed:
    """An output of the Function: its name, unit and the names of its rows."""

    name: str
    unit: str
    coordinates: tuple[str, ...]


@dataclass(frozen=True)
class Played:
    """A motion as a player has it. t (M + 1,): breakpoints [s]. function: of names of the channels, whose outputs
    `computed` tells of; None for none. sample: {name: (K, n)} at times (K,), by Python."""

    title: str
    t: Array
    channels: tuple[Channel, ...]
    function: ca.Function | None
    computed: tuple[Computed, ...]
    continuity: str
    sample: Sampler


def rate_of(unit: str, order: int) -> str:
    """Unit of a time derivative; nothing for what is no plain unit, as Trajectories may have."""
    return derivative_unit(unit, order) if _UNIT.fullmatch(unit) else "" if order else unit


def in_words(units: Iterable[str]) -> str:
    """One unit for all, or one each."""
    units = list(units)
    return units[0] if len(set(units)) == 1 else ", ".join(units)


def played(where: str, motion: Any, torques: bool, names: Any, derivatives: int | None) -> Played:
    """Played of a Trajectory, an ElasticPlan or a Solution; ShapeError for anything else."""
    if not isinstance(motion, Solution) and names is not None:
        raise ShapeError(f"{where}: names is {shortened(names)}, which is for a Solution; leave it out")
    if not isinstance(motion, Motion) and torques:
        raise ShapeError(f"{where}: torques=True is for a Trajectory; a {type(motion).__name__} has its own outputs")
    if isinstance(motion, Trajectory):
        return _of_trajectory(where, motion, torques, derivatives)
    if isinstance(motion, PathMotion):
        return _of_path(where, motion, torques, derivatives)
    if isinstance(motion, ElasticPlan):
        return _of_elastic(motion, derivatives)
    if isinstance(motion, Solution):
        return _of_solution(where, motion, names, derivatives)
    kinds = "a Trajectory, a PathMotion, an elastic.ElasticPlan or a Solution"
    raise ShapeError(f"{where}: got {shortened(motion)}, expected {kinds}")


def _orders(given: int | None, available: int) -> int:
    return available if given is None else min(available, given + 1)


def _links(motion: Trajectory, derivatives: int | None) -> Channel:
    count = motion.pieces.shape[1]
    names = tuple(order_name(k) for k in range(count))
    return Channel(names, _orders(derivatives, count), motion.pieces, motion.units, motion.joints)


def _inverse(where: str, motion: Motion) -> ca.Function:
    """Function q, v, dv, d2v -> tau, dtau of a motion's robot."""
    if motion.robot is None:
        raise ModelError(where, ["torques need the robot; load the file with robot=..."])
    return function(motion.robot, "inverse_dynamics", order=1, friction=counts(motion.robot, motion.friction))


def _torques(motion: Motion) -> tuple[Computed, ...]:
    return tuple(
        Computed(n, in_words(BY_NAME[n].unit_of(u) for u in motion.units), motion.joints) for n in ("tau", "dtau")
    )


def _sampler(motion: Motion, torques: bool) -> Sampler:
    def sample(times: Array) -> Mapping[str, Array]:
        samples = motion.sample(times)
        found = {order_name(k): x for k, x in enumerate(samples.derivatives)}
        return found | ({"tau": samples.tau, "dtau": samples.dtau} if torques else {})

    return sample


def _of_trajectory(where: str, motion: Trajectory, torques: bool, derivatives: int | None) -> Played:
    channel = _links(motion, derivatives)
    f, computed = None, ()
    if torques:
        inverse = _inverse(where, motion)
        f = _function("outputs", inverse, channel.pieces.shape[1], lambda out, _: {n: out[n] for n in ("tau", "dtau")})
        computed = _torques(motion)
    title = f"a planned motion of {motion.robot_name or 'a robot'}"
    smooth = f"{motion.continuity} times continuously differentiable"
    return Played(title, motion.t, (channel,), f, computed, smooth, _sampler(motion, torques))


def _of_path(where: str, motion: PathMotion, torques: bool, derivatives: int | None) -> Played:
    count = len(motion.derivatives)
    shown = [order_name(k) for k in range(_orders(derivatives, count))]

    def more(found: dict[str, Any]) -> dict[str, Any]:
        return dict(zip(("tau", "dtau"), inverse.call([found[order_name(k)] for k in range(4)]), strict=True))

    if torques:
        inverse = _inverse(where, motion)
    f = path_function(where, motion, count, more if torques else lambda _: {})
    kept = [*shown, *(("tau", "dtau") if torques else ())]
    f = ca.Function("outputs", f.mx_in(), [f(*f.mx_in())[f.index_out(n)] for n in kept], f.name_in(), kept)
    computed = tuple(
        Computed(n, in_words(rate_of(u, k) for u in motion.units), motion.joints) for k, n in enumerate(shown)
    )
    law = tuple(derivative_name("s", k) for k in range(motion.law.shape[1]))
    channel = Channel(law, len(law), motion.law[:, :, None], ("1",), ("share of the path",))
    sample = _sampler(motion, torques)

    def with_share(times: Array) -> Mapping[str, Array]:
        shares = motion.shares(np.asarray(times))
        return {**sample(times), **{n: x[:, None] for n, x in zip(law, shares, strict=True)}}

    title = f"a motion of {motion.robot_name or 'a robot'} along a path"
    smooth = f"{motion.continuity} times continuously differentiable"
    return Played(title, motion.t, (channel,), f, computed + (_torques(motion) if torques else ()), smooth, with_share)


def _of_elastic(plan: ElasticPlan, derivatives: int | None) -> Played:
    elastic, motion, order = plan.elastic, plan.motion, plan._order
    if elastic.damped or isinstance(plan.sigma, Trajectory):
        what = "damped springs" if elastic.damped else "planned stiffnesses"
        raise ModelError(
            elastic.name, [f"a plan with {what} is not played whole; play plan.motion, or a table of plan.sample(dt)"]
        )
    flat = function(elastic, "elastic_flat_map", order=order)
    kept = ["theta", "dtheta", "tau_m", *(["dtau_m"] if order else [])]

    def outputs(out: Mapping[str, Any], ports: Mapping[str, Any]) -> dict[str, Any]:
        found = {n: out[n] for n in kept}
        return found | {"deflection": out["theta"] - ports["q"][deflected(elastic)]}

    held = plan.sigma
    sigma = {} if held is None else {n: held * (n == "sigma") for n in flat.name_in() if "sigma" in n}
    f = _function("outputs", flat, motion.pieces.shape[1], outputs, sigma)
    units = [motion.units[i] for i in deflected(elastic)]
    of_theta = {"theta": 0, "dtheta": 1, "deflection": 0}
    computed = tuple(
        Computed(n, in_words(rate_of(u, of_theta[n]) for u in units), elastic.theta_names)
        if n in of_theta
        else Computed(n, "Nm" if n == "tau_m" else "Nm/s", elastic.motor_names)
        for n in f.name_out()
    )

    def sample(times: Array) -> Mapping[str, Array]:
        samples = motion.sample(times)
        found = {order_name(k): x for k, x in enumerate(samples.derivatives)}
        return found | flat_outputs(elastic, samples.derivatives, order, plan._jets(samples.t))

    title = f"a planned motion of {elastic.name}, with its motors"
    smooth = f"{motion.continuity} times continuously differentiable"
    return Played(title, motion.t, (_links(motion, derivatives),), f, computed, smooth, sample)


def _function(
    name: str, f: ca.Function, orders: int, outputs: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]],
    constants: Mapping[str, Array] | None = None,
) -> ca.Function:  # fmt: skip
    """Function of q, v, ... as they are needed, zero from the order `orders` on, by a Function of a robot."""
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    known = [n for n in ports if n in {order_name(k) for k in range(orders)}]
    given = {n: x if n in known else ca.SX(*x.shape) for n, x in ports.items()}
    given |= {n: ca.SX(ca.DM(x)) for n, x in (constants or {}).items()}
    out = dict(zip(f.name_out(), f.call([given[n] for n in f.name_in()], True, False), strict=True))
    found = outputs(out, given)
    results = ca.cse([ca.densify(x) for x in found.values()])
    return ca.Function(name, [ports[n] for n in known], results, known, list(found))


def _of_solution(where: str, solution: Solution, names: Any, derivatives: int | None) -> Played:
    known = solution.named
    wanted = dict.fromkeys(known) if names is None else names
    if isinstance(wanted, str):
        wanted = [wanted]
    try:
        called = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
    except TypeError:
        raise ShapeError(f"{where}: names is {shortened(names)}, expected names, or {{name: name in C}}") from None
    for name in called:
        if name not in known:
            raise UnknownName("state or control of the problem that was solved", name, known)
    t, pieces = polynomial_pieces(where, solution, list(called))
    channels, taken = [], {called[n] or n for n in called}
    for name, table in pieces.items():
        c_name, n = called[name] or name, table.shape[2]
        orders = tuple(derivative_name(c_name, k) for k in range(table.shape[1]))
        until = next((k for k, x in enumerate(orders) if k and x in taken), len(orders))
        rows = (name,) if n == 1 else tuple(f"{name}[{i}]" for i in range(n))
        channels.append(Channel(orders, min(until, _orders(derivatives or 0, len(orders))), table, ("",) * n, rows))

    def sample(times: Array) -> Mapping[str, Array]:
        samples = solution.resample(times=times)
        return {called[n] or n: samples[n] for n in called}

    return Played("a solution of an optimal-control problem", t, tuple(channels), None, (), "smooth on each", sample)
