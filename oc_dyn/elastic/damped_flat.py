"""The flat map of robots with damped springs: motors from the motion of the links and of the damped springs.

A damper D beside a spring makes the link side a differential equation, D z' + phi(z, sigma) = tau, z = theta - q. Given
z with its derivatives besides q, all else is algebraic. z and its derivatives each have an equation of this kind, the
next derivative of the first one, which remain those of the undamped spring where D is small; what is left of them are
the `gaps`. Motor torques need one derivative less of q where every spring is damped (De Luca, Farina, Lucibello 2005:
relative degree three).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import casadi as ca

from ..errors import ModelError
from ..lie.time_derivatives import time_derivatives
from ..model.cache import cached
from ..ports import derivative_name
from .drives import at_drives, drive_torques
from .model import ElasticJoint, ElasticRobot
from .motor_side import at_motors, motor_friction, spring_torques


def check_damped(elastic: ElasticRobot) -> None:
    """Refuse damped springs whose deflections no motion of the links determines: ModelError names them."""
    pairs = [j.name for j in elastic.joints if j.spring.damping and len(j.theta) > 1]
    if elastic.damped and (elastic.coupling or pairs or elastic.stiffness_driven):
        what = (
            "the complete model" if elastic.coupling else f"pairs of springs ({pairs[0]})" if pairs
            else "drives of the stiffness"
        )  # fmt: skip
        raise ModelError(elastic.name, [f"damped springs together with {what} are not planned; give damping=0 there"])


def damped_joints(elastic: ElasticRobot) -> list[ElasticJoint]:
    """Joints whose springs are damped, in the order of the deflections."""
    return [j for j in elastic.joints if j.spring.damping]


def wanted_continuity(elastic: ElasticRobot, of: str = "torque") -> int:
    """As elastic.continuity, one less where every spring is damped."""
    alone = bool(elastic.joints) and len(damped_joints(elastic)) == len(elastic.joints)
    return elastic.continuity(of) - int(alone)


def damped_flat_map(elastic: ElasticRobot, order: int = 0, derivatives: str = "ad") -> ca.Function:
    """casadi.Function: q, v, .., sigma, .., and z, dz, .. (damped springs,) -> theta, .., tau_m, ...

    Ports as of elastic_flat_map, with z to its derivative 2 + order besides. derivatives: "ad", or "analytic" for an MX
    graph with the registered ones of inverse dynamics.
    """
    check_damped(elastic)
    # complete: the method is the default one, which follows from the robot and the order
    return cached(elastic, ("damped_flat_map", order, derivatives), lambda: _build(elastic, order, derivatives))


def damped_gaps(elastic: ElasticRobot, order: int = 0, derivatives: str = "ad") -> ca.Function:
    """casadi.Function: q, v, .., sigma, .., z, dz, .., rate of z, rate of dz, .. -> gaps (3 + order) (damped springs,)
    [Nm, Nm/s, ..]: D times the rate + time derivative of phi(z) - that of tau. Ports as of damped_flat_map."""
    # complete: as damped_flat_map
    return cached(elastic, ("damped_gaps", order, derivatives), lambda: _gaps(elastic, order, derivatives))


def _gaps(elastic: ElasticRobot, order: int, derivatives: str) -> ca.Function:
    kind: Any = ca.MX if derivatives == "analytic" else ca.SX
    inputs = _ports(elastic, order, kind)
    damped, count = damped_joints(elastic), 3 + order
    motion = [inputs[n] for n in inputs if n[-1] in "qv"]
    sigma, z = ([inputs[n] for n in inputs if n.endswith(x)] for x in ("sigma", "z"))
    rates = [kind.sym(f"r{k}", len(damped)) for k in range(count)]
    tau = drive_torques(elastic, 2 + order, None, derivatives).call(motion)
    springs = spring_rates(elastic, 2 + order).call([*z, *(sigma or [ca.DM(0, 1)] * count)])
    D = ca.DM([j.spring.damping for j in damped])
    rows = [j.v for j in damped]
    gaps = [D * rates[k] + springs[k] - ca.vertcat(*(tau[k][v] for v in rows)) for k in range(count)]
    names = [*inputs, *(f"r{k}" for k in range(count))]
    return ca.Function(
        "damped_gaps", [*inputs.values(), *rates], [ca.densify(x) for x in gaps], names,
        [derivative_name("gap", k) for k in range(count)], {"cse": kind is ca.SX},
    )  # fmt: skip


def _ports(elastic: ElasticRobot, order: int, kind: Any) -> dict[str, Any]:
    """{port: symbol} of q and its derivatives, sigma's where the stiffness varies, and z's."""
    names = ["q", *(derivative_name("v", k) for k in range(elastic.flat_order(order)))]
    found = {name: kind.sym(name, elastic.nv) for name in names}
    more = {"z": len(elastic.damped)}
    more = {"sigma": len(elastic.sigma_names), **more} if elastic.sigma_names else more
    for name, size in more.items():
        found |= {derivative_name(name, k): kind.sym(derivative_name(name, k), size) for k in range(3 + order)}
    return found


def _build(elastic: ElasticRobot, order: int, derivatives: str) -> ca.Function:
    kind: Any = ca.MX if derivatives == "analytic" else ca.SX
    inputs = _ports(elastic, order, kind)
    damped = damped_joints(elastic)
    motion = [inputs[n] for n in inputs if n[-1] in "qv"]
    sigma, own = ([inputs[n] for n in inputs if n.endswith(x)] for x in ("sigma", "z"))
    undamped = len(damped) < len(elastic.joints)
    top = 2 + order if undamped else order
    tau = drive_torques(elastic, top, None, derivatives).call(motion[: top + 3])
    z: dict[int, Any] = {}
    for e, j in enumerate(elastic.joints):
        if j.spring.damping:
            row = damped.index(j)
            z[e] = [[x[row] for x in own]]
        else:
            given = [x[j.sigma] for x in sigma] if j.sigma is not None else []
            z[e] = j.spring.deflections([x[j.v] for x in tau], given)
    position = at_drives(elastic, motion[: 3 + order])
    rows = [(j, jet) for e, j in enumerate(elastic.joints) for jet in z[e]]
    theta = [ca.vertcat(*(jet[k] + position[k][j.v if k else j.q] for j, jet in rows)) for k in range(3 + order)]
    springs = spring_torques(elastic, order, z, sigma)
    dampers = [ca.vertcat(*(j.spring.damping * jet[k + 1] for j, jet in rows)) for k in range(order + 1)]
    friction = motor_friction(elastic, [at_motors(elastic, position[k + 1], theta[k + 1]) for k in range(order + 1)])
    out = {derivative_name("theta", k): x for k, x in enumerate(theta)}
    for k in range(order + 1):
        motors = ca.DM(elastic.motor_inertia) @ theta[k + 2] + springs[k] + dampers[k]
        out[derivative_name("tau_m", k)] = at_motors(elastic, tau[k], motors) + friction[k]
    return ca.Function(
        "damped_flat_map", list(inputs.values()), [ca.densify(x) for x in out.values()], list(inputs), list(out),
        {"cse": kind is ca.SX},
    )  # fmt: skip


def spring_rates(elastic: ElasticRobot, order: int = 2) -> ca.Function:
    """casadi.Function (z, dz, .., sigma, dsigma, ..), to derivative `order`, of the damped springs, a column each ->
    (torque, its time derivatives 1 .. order, slope by z), without dampers."""
    return cached(elastic, ("spring_rates", order), lambda: _rates(elastic, order))


def _rates(elastic: ElasticRobot, order: int) -> ca.Function:
    damped, sigmas = damped_joints(elastic), len(elastic.sigma_names)
    z = [ca.SX.sym("z", len(damped)) for _ in range(order + 1)]
    sigma = [ca.SX.sym("s", sigmas) for _ in range(order + 1)]
    given: list[Any] = [sigma[0][cast(int, j.sigma)] if j.spring.adjusted else ca.DM(0, 1) for j in damped]
    phi = ca.vertcat(*(j.spring.torques([z[0][k]], s)[0] for k, (j, s) in enumerate(zip(damped, given, strict=True))))
    flow = [*pairwise(z), *(pairwise(sigma) if sigmas else ())]
    rates = time_derivatives(phi, order, flow, cse=True)
    slope = ca.diag(ca.jacobian(phi, z[0]))
    return ca.Function("spring_rates", [*z, *sigma], [ca.densify(x) for x in (*rates, slope)])
