"""Equations of motion of an elastic robot as functions of its parameters, at one sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...function import function
from ...model.canonical import canonical
from ...subexpressions import merged
from ...working_axes.assembly import armatures
from ..motor_side import joint_torques
from .unknowns import Unknowns

KINDS = ("motor", "link", "sensor")
_PORTS = ("q", "v", "dv", "theta", "dtheta", "d2theta", "sliding", "variance", "unseen", "x")


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations of all kinds, in the order KINDS: names; model (q, v, dv, theta, dtheta, d2theta, sliding,
    variance, unseen, x) -> [sides that
    equal what was measured (zero for a link with a spring); what is compared with it, a link's spring torque for those;
    derivative by the parameters asked for, its nonzeros]; sparsity of the last; links: rows whose measured side is
    zero."""

    unknowns: Unknowns
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    model: ca.Function
    sparsity: tuple[Any, Any]  # rows, columns of the nonzeros
    sprung: tuple[bool, ...]


def equations(unknowns: Unknowns) -> Equations:
    """Equations of a robot.

    motor:  rho_i (B theta'' + d theta' + f tanh(theta' / s) + phi(z) + D z' )_i + offset = tau_m_i
    link:   M(q) q'' + n(q, q') + d q' + f tanh(q' / s) + U'(q) - (phi(z) + D z') + offset = 0, or tau_m of a rigid
            joint, U the energy of parallel springs, which is known
    sensor: phi(z) + D z' + offset = tau,    z = rho theta - q, rho before theta everywhere; rho = 1 as a factor of
    the motors' equation where the encoder's side alone is in question. tanh: of the speeds `sliding`, whose noise has a
    variance, and what samples leave `unseen` of it.
    """
    e, u = unknowns.elastic, unknowns
    q, v, dv = (ca.SX.sym(n, e.nv) for n in _PORTS[:3])
    motors = [ca.SX.sym(n, len(e.elastic_motors)) for n in _PORTS[3:6]]
    x = ca.SX.sym("x", len(u.names))
    sliding, variance, unseen = (ca.SX.sym(n, e.nv + len(e.elastic_motors)) for n in _PORTS[6:9])
    rho = u.of(x, "transmission")
    theta, dtheta, d2theta = (rho * y for y in motors)
    springs = []
    for k, j in enumerate(e.joints):
        m = j.theta[0]
        z, dz = theta[m] - q[j.q] + u.of(x, "zero")[k], dtheta[m] - v[j.v]
        phi = sum((x[row] * f(z) for row, f in zip(u.spring_rows[k], u.bases[k], strict=True)), ca.SX(0))
        springs.append(phi + u.of(x, "spring_damping")[k] * dz)
    spring = ca.vertcat(*springs)
    damping, coulomb = u.of(x, "motor_damping"), u.of(x, "motor_friction")

    def friction(m: int, speed: Any, row: int, factor: Any = 1.0) -> Any:
        smoothing = float(e.friction_smoothing[m]) / factor
        return damping[m] * speed + coulomb[m] * (_sign(sliding[row], variance[row], smoothing) + unseen[row])

    B = u.motor_inertia(x)
    rows, offset = [], u.of(x, "motor_offset")
    for i, m in enumerate(e.elastic_motors):
        inertia = sum((B[i][k] * d2theta[k] for k in range(len(B))), ca.SX(0))
        torque = inertia + friction(m, dtheta[i], e.nv + i, rho[i]) + spring[i]
        rows.append((rho[i] if u.transmission == "gear" else 1) * torque + offset[i])
    names = list(e.theta_names)
    own = ca.vertcat(*rows)
    link = _links(u, q, v, dv, x)
    sign = [_sign(sliding[k], variance[k], float(e.link_smoothing[k])) + unseen[k] for k in range(e.nv)]
    link = link + u.of(x, "link_friction") * ca.vertcat(*sign)
    rigid = [-friction(m, v[k], k) for m, k in zip(e.rigid_motors, e.rigid, strict=True)]
    driving = joint_torques(e, ca.vertsplit(spring), rigid)
    sensor = spring + u.of(x, "sensor_offset")
    out = ca.vertcat(own, link - driving, sensor)
    compared = ca.vertcat(own, link - driving + joint_torques(e, ca.vertsplit(spring)), sensor)
    J = ca.jacobian(out, x[list(u.asked)])
    names += [*e.links.velocity_names, *(j.name for j in e.joints)]
    kinds = ["motor"] * len(rows) + ["link"] * e.nv + ["sensor"] * len(e.joints)
    sprung = [kind == "link" and k - len(rows) not in e.rigid for k, kind in enumerate(kinds)]
    ports = [q, v, dv, *motors, sliding, variance, unseen, x]
    entries: list[Any] = J.nonzeros()
    nonzeros = ca.vertcat(*entries) if entries else ca.SX(0, 1)
    outputs = merged([ca.densify(out), ca.densify(compared), nonzeros])
    f = ca.Function("equations", ports, outputs, list(_PORTS), ["r", "compared", "J"])
    found_rows, found_columns = (np.array(s) for s in J.sparsity().get_triplet())
    return Equations(u, tuple(names), tuple(kinds), f, (found_rows, found_columns), tuple(sprung))


def _sign(speed: Any, variance: Any, smoothing: Any) -> Any:
    """tanh(true speed / smoothing), but for terms of sixth order, in the mean over a speed's noise of a variance.

    In the mean, noise makes exp(variance D^2 / 2) f of a function f, D being d/dspeed; so f - variance D^2 f / 2 +
    variance^2 D^4 f / 8 has the mean f.
    """
    y, a = ca.tanh(speed / smoothing), variance / smoothing**2
    w = 1 - y**2
    return y + a * y * w + a**2 * y * w * (2 - 3 * y**2)


def _links(u: Unknowns, q: Any, v: Any, dv: Any, x: Any) -> Any:
    """Torques that the links' motion and parallel springs take, without Coulomb friction."""
    e = u.elastic
    friction = u.of(x, "link_damping") * v + u.of(x, "link_offset")
    if u.links == "unused":
        return friction
    if e.parallel is not None:
        friction = friction + e.parallel.slopes([q])[0][0]
    if u.base is None:
        return function(e.links, "inverse_dynamics")(q, v, dv) + friction
    rotors = ca.DM(armatures(canonical(e.links)))
    return u.base.regressor()(q, v, dv) @ u.of(x, "base") + rotors * dv + friction
