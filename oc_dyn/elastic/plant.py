"""The full elastic state as one column, its rates, and its energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import casadi as ca

from ..function import function
from ..subexpressions import merged
from .drives import accelerations, at_drives, generalised, speeds
from .effects import Effects, effects_at
from .forward_dynamics import forces, motors_eliminated
from .friction import link_friction
from .model import ElasticRobot
from .motor_side import (
    at_motors,
    deflections,
    elastic_torques,
    joint_torques,
    motor_friction,
    sigma_forces,
    spring_damping,
    spring_energy,
)
from .potentials import link_load

ENERGIES = ("kinetic_links", "kinetic_motors", "springs", "gravity")


@dataclass(frozen=True, eq=False)
class Plant:
    """An elastic robot as a system: parts {name: slice} of the state column, and Functions of it.

    rates (x, u, sigma): time derivative of the state; sigma and its rate, (2 rows of sigma), count where the
    stiffness is prescribed. u: tau_m, and tau_sigma where sigma has drives. powers (x, u, sigma): (what motors and
    drives put in, what friction and dampers take) [W]. energies (x, sigma): ENERGIES [J]; that of the coupling counts
    with the motors. springs (x, sigma): deflections theta - q (theta,) and torques (elastic joints,) of the springs
    with their dampers. residual (x, accelerations, u, sigma): equations of motion solved for nothing, zero at the
    accelerations.
    """

    parts: dict[str, slice]
    size: int
    controls: int
    rates: ca.Function
    powers: ca.Function
    energies: ca.Function
    springs: ca.Function
    residual: ca.Function


def plant_rates(elastic: ElasticRobot) -> ca.Function:
    """casadi.Function (t, x, p) -> dx of the robot alone, p = [u; prescribed sigma and its rate]: for
    collocation_equations, collocation_step and fixed_step. The parts of x are plant(elastic).parts."""
    p = plant(elastic)
    t, x, u = ca.MX.sym("t"), ca.MX.sym("x", p.size), ca.MX.sym("p", p.controls + p.rates.size1_in(2))
    parts = ca.vertsplit(u, [0, p.controls, u.numel()])
    return ca.Function("plant_rates", [t, x, u], [p.rates(x, *parts)], ["t", "x", "p"], ["dx"])


def plant(elastic: ElasticRobot) -> Plant:
    """Plant of an elastic robot."""
    if "plant" not in elastic._made:  # it depends on the robot alone, which does not change
        elastic._made["plant"] = _build(elastic)
    return elastic._made["plant"]


def _build(elastic: ElasticRobot) -> Plant:
    motors, sigmas = len(elastic.elastic_motors), len(elastic.sigma_names)
    sizes = {"q": elastic.nq, "v": elastic.nv, "theta": motors, "dtheta": motors}
    if elastic.stiffness_driven:
        sizes |= {"sigma": sigmas, "dsigma": sigmas}
    remembered = sum(e.law.memory for e in elastic.effects)
    sizes |= {"friction": remembered} if remembered else {}
    parts, size = {}, 0
    for name, n in sizes.items():
        parts[name] = slice(size, size + n)
        size += n
    controls = len(elastic.motor_names) + (sigmas if elastic.stiffness_driven else 0)
    x, u, given = ca.SX.sym("x", size), ca.SX.sym("u", controls), ca.SX.sym("sigma", 2 * sigmas)
    s = {name: x[part] for name, part in parts.items()}
    sigma, dsigma = (s["sigma"], s["dsigma"]) if elastic.stiffness_driven else (given[:sigmas], given[sigmas:])
    tau_m, tau_sigma = ca.vertsplit(u, [0, len(elastic.motor_names), controls])
    ports = {**s, "tau_m": tau_m, "sigma": sigma, "tau_sigma": tau_sigma}

    remembers = s.get("friction", ca.SX(0, 1))
    extra = effects_at(elastic, s["q"], s["v"], s["theta"], s["dtheta"], sigma, remembers)
    a = _accelerations(elastic, s, ports, extra)
    rates = [elastic.links.configuration_rate(s["q"], s["v"]), a["dv"], s["dtheta"], a["d2theta"]]
    rates += [dsigma, a["d2sigma"]] if elastic.stiffness_driven else []
    rates += [extra.memory_rate] if remembered else []

    z = deflections(elastic, [s["q"]], [s["theta"]])
    drive_speed = speeds(elastic, s["q"], s["v"])
    speed = at_motors(elastic, drive_speed, s["dtheta"])
    put_in = ca.dot(tau_m, speed)
    if elastic.adjusted:
        forces = tau_sigma if elastic.stiffness_driven else sigma_forces(elastic, 0, z, [sigma])[0]
        rows = [cast(int, j.sigma) for j in elastic.adjusted]
        put_in = put_in + ca.dot(forces, ca.vertcat(*(dsigma[k] for k in rows)))
    damping = spring_damping(elastic, drive_speed, s["dtheta"])
    link_speed = ca.vertcat(*(drive_speed[j.v] for j in elastic.joints for _ in j.theta))
    taken = ca.dot(motor_friction(elastic, [speed])[0], speed) + ca.dot(damping, s["dtheta"] - link_speed)
    taken = taken + ca.dot(link_friction(elastic, [drive_speed])[0], drive_speed) + extra.taken

    energies = _energies(elastic, s, sigma, dsigma, z, extra.stored)
    given_rates = ca.SX.sym("a", elastic.nv + motors + (sigmas if elastic.stiffness_driven else 0))
    residual = _residual(elastic, s, given_rates, ports, extra)
    state = [x, u, given]
    return Plant(
        parts,
        size,
        controls,
        ca.Function("plant", state, [merged(ca.densify(ca.vertcat(*rates)))], ["x", "u", "sigma"], ["dx"]),
        ca.Function("powers", state, [ca.vertcat(put_in, taken)]),
        ca.Function("energies", [x, given], [merged(ca.vertcat(*energies))]),
        ca.Function("springs", [x, given], _springs(elastic, s, sigma, z, extra.sensed)),
        ca.Function("residual", [x, given_rates, u, given], [merged(residual)]),
    )


def _accelerations(elastic: ElasticRobot, s: dict[str, Any], ports: dict[str, Any], extra: Effects) -> dict[str, Any]:
    """{"dv", "d2theta", "d2sigma"}; with laws that act on links, these are besides what motors do."""
    known = elastic.without_laws()
    ports = {**ports, "tau_m": ports["tau_m"] + extra.motors}
    f = function(known, "elastic_forward_dynamics")
    a = f(**{name: ports[name] for name in f.name_in()})
    if not any(e.on != "motors" for e in elastic.effects):
        return a
    sigma = [ports["sigma"]] if elastic.adjusted else []
    link, motor = forces(known, s["q"], s["v"], s["theta"], s["dtheta"], sigma, ports["tau_m"])
    link = link + extra.links
    if elastic.coupling:
        dv, d2theta = motors_eliminated(known, s["q"], s["v"], s["dtheta"], link, motor)
    else:
        dv, d2theta = accelerations(known)(s["q"], s["v"], link), ca.inv(ca.DM(elastic.motor_inertia)) @ motor
    return {**a, "dv": dv, "d2theta": d2theta}


def _energies(
    elastic: ElasticRobot, s: dict[str, Any], sigma: Any, dsigma: Any, z: Any, stored: Any,
) -> tuple[Any, ...]:  # fmt: skip
    links, v, dtheta = elastic.links, s["v"], s["dtheta"]
    M = function(links, "mass_matrix")(s["q"])
    motors = 0.5 * ca.dot(dtheta, ca.DM(elastic.motor_inertia) @ dtheta)
    if elastic.coupling:
        motors = motors + ca.dot(elastic.coupling.momentum(s["q"], v), dtheta)
        motors = motors + elastic.coupling.rigid_energy(s["q"], v)
    if elastic.stiffness_driven:
        motors = motors + 0.5 * ca.dot(ca.DM(elastic.stiffness_inertia), dsigma**2)
    height = ca.SX(0)
    for b in links.bodies:
        pose = function(links, "frame_pose", frame=b.name)(q=s["q"])
        moment = b.inertia.mass * pose["p"] + pose["R"] @ ca.DM(b.inertia.moment)
        height = height - ca.dot(ca.DM(links.gravity), moment)
    deflected = {e: [x[0] for x in jets] for e, jets in z.items()}
    springs, position = spring_energy(elastic, deflected, sigma) + stored, at_drives(elastic, [s["q"]])[0]
    for potential in (elastic.parallel, elastic.across):
        springs = springs + (0 if potential is None else potential.value(position, s["theta"]))
    return 0.5 * ca.dot(v, M @ v), motors, springs, height


def _springs(elastic: ElasticRobot, s: dict[str, Any], sigma: Any, z: Any, sensed: Any) -> list[Any]:
    deflection = ca.vertcat(*(jet[0] for jets in z.values() for jet in jets))
    drive_speed = speeds(elastic, s["q"], s["v"])
    on_links = elastic_torques(elastic, at_drives(elastic, [s["q"]]), [s["theta"]], [sigma])[0][0]
    joints = on_links + joint_torques(elastic, spring_damping(elastic, drive_speed, s["dtheta"]))
    return [deflection, ca.vertcat(*(joints[j.v] for j in elastic.joints)) + sensed]


def _residual(
    elastic: ElasticRobot, s: dict[str, Any], given_rates: Any, ports: dict[str, Any], extra: Effects,
) -> Any:  # fmt: skip
    """Left sides of the equations of motion at given accelerations, by inverse dynamics: nothing is solved for."""
    n, m = elastic.nv, len(elastic.elastic_motors)
    dv, d2theta, d2sigma = given_rates[:n], given_rates[n : n + m], given_rates[n + m :]
    sigma = [ports["sigma"]] if elastic.adjusted else []
    link, motor = forces(elastic, s["q"], s["v"], s["theta"], s["dtheta"], sigma, ports["tau_m"] + extra.motors)
    taken = link_load(elastic, at_drives(elastic, [s["q"], s["v"]]))[0]
    link = generalised(elastic, s["q"], link + extra.links - taken)
    link = function(elastic.links, "inverse_dynamics")(s["q"], s["v"], dv) - link
    motor = ca.DM(elastic.motor_inertia) @ d2theta - motor
    if elastic.coupling:
        link = link + elastic.coupling.forces(s["q"], s["v"], s["dtheta"], d2theta)
        link = link + elastic.coupling.rigid_forces(s["q"], s["v"], dv)
        momentum = elastic.coupling.momentum(s["q"], s["v"])
        motor = motor + ca.jtimes(momentum, ca.vertcat(s["q"], s["v"]), ca.vertcat(s["v"], dv))
    rows = [link, motor]
    if elastic.stiffness_driven:
        force = sigma_forces(elastic, 0, deflections(elastic, [s["q"]], [s["theta"]]), sigma)[0]
        rows.append(ca.DM(elastic.stiffness_inertia) * d2sigma + force - ports["tau_sigma"])
    return ca.vertcat(*rows)
