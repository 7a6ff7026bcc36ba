"""Damped springs: the motors' motion from that of the links by the dampers' own, stable equation.

With a damper D beside a spring the link side reads D z' + phi(z, sigma) = tau, z = theta - q. Where D = 0 the
deflection z follows algebraically; where D > 0 it is the solution of this differential equation, which forgets its
start like exp(-t K / D), and the motor torque needs one derivative less of q (relative degree 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..ports import derivative_name
from ..subexpressions import merged
from ..types import Array, Numbers
from .dop853 import integrate
from .drives import at_drives, drive_torques
from .effects import refuse_effects
from .model import ElasticRobot
from .motor_side import at_motors, motor_friction
from .open_loops import check_reference
from .reference import Reference


@dataclass(frozen=True, eq=False)
class MotorMotion:
    """Motors along a motion of the links, rows are times: t [s]; theta, dtheta, d2theta (K, theta) of elastic joints;
    tau_m (K, motors) [Nm]."""

    t: Array
    theta: Array
    dtheta: Array
    d2theta: Array
    tau_m: Array


def damped_motion(
    elastic: ElasticRobot, reference: Reference, dt: float = 0.01, *, deflection: Numbers | None = None,
    rtol: float = 1e-10,
) -> MotorMotion:  # fmt: skip
    """MotorMotion of a robot with damped springs along a Reference, by integrating the dampers' equation.

    deflection (damped joints,): at the start; default that of the torques there without damping, exact for a start at
    rest. Times from 0 to the reference's duration, dt [s] apart.
    Raises ModelError for robots to which it does not apply: pairs of springs, the complete model; and where loops of
    one cannot follow the reference, which it names, and the time.
    """
    f, start = damped_map(elastic)
    times = np.append(np.arange(0.0, reference.duration - 1e-9 * dt, dt), reference.duration)
    check_reference("damped_motion: the reference", elastic, reference, times)
    t, z, none = ca.MX.sym("t"), ca.MX.sym("z", f.size1_in(0)), ca.MX.sym("p", 0)
    ref = dict(zip(reference.function.name_out(), reference.function.call([t]), strict=True))
    outputs = f(z=z, **{n: ref[n] for n in f.name_in()[1:]})
    rates = ca.Function("rates", [t, z, none], [outputs["dz"]])
    at = reference.at(times)
    if deflection is None:
        deflection = start(**{n: at[n][:, 0] for n in start.name_in()})["z"].full().ravel()
    z0 = np.asarray(deflection, float).ravel()
    if z0.size != f.size1_in(0):
        raise ShapeError(
            f"damped_motion: deflection has {z0.size} entries, expected {f.size1_in(0)}, one per damped joint"
        )
    states, _ = integrate(rates, times, z0, (), rtol, rtol / 100, reference.breaks)
    out = f.map(times.size)(z=states, **{n: at[n] for n in f.name_in()[1:]})
    return MotorMotion(times, *(out[n].full().T for n in ("theta", "dtheta", "d2theta", "tau_m")))


def damped_map(elastic: ElasticRobot) -> tuple[ca.Function, ca.Function]:
    """(map, start): casadi.Functions (z, reference ports) -> (dz, theta, dtheta, d2theta, tau_m), z being the
    deflections of the damped joints; and reference ports -> z without damping."""
    elastic.refuse_across("damped_map")
    refuse_effects("damped_motion", elastic)
    odd = [j.name for j in elastic.joints if j.spring.damping and len(j.theta) > 1]
    if elastic.coupling or odd or elastic.stiffness_driven:
        what = (
            "the complete model" if elastic.coupling else f"pairs of springs ({odd[0]})" if odd else "drives of sigma"
        )
        raise ModelError(elastic.name, [f"damped springs together with {what} cannot be integrated along a motion"])
    n, sigmas = elastic.nv, len(elastic.sigma_names)
    ref = {derivative_name("v", k - 1) if k else "q": ca.SX.sym("x", n) for k in range(elastic.flat_order() + 1)}
    ref |= {derivative_name("sigma", k): ca.SX.sym("s", sigmas) for k in range(3)} if sigmas else {}
    tau = drive_torques(elastic, 2).call([ref[k] for k in ("q", "v", "dv", "d2v", "d3v")])
    z = ca.SX.sym("z", len(elastic.damped))
    dz: list[Any] = []
    jets, at_start = [], []
    for j in elastic.joints:
        torque = [x[j.v] for x in tau]
        sigma = [ref[derivative_name("sigma", k)][j.sigma] for k in range(3)] if j.sigma is not None else []
        alone = j.spring.deflections(torque, sigma)
        if not j.spring.damping:
            jets += alone
            continue
        own = z[len(dz)]
        rate, second = _damper(j.spring, own, torque, sigma)
        jets.append([own, rate, second])
        dz.append(rate)
        at_start.append(alone[0][0])
    rows = [(j.q, j.v, j.v) for j in elastic.joints for _ in j.theta]
    drives = at_drives(elastic, [ref[k] for k in ("q", "v", "dv")])
    link = [ca.vertcat(*(x[i[k]] for i in rows)) for k, x in enumerate(drives)]
    theta = [x + ca.vertcat(*(jet[k] for jet in jets)) for k, x in enumerate(link)]
    springs = _spring_torques(elastic, tau[0], jets, ref)
    motors = ca.DM(elastic.motor_inertia) @ theta[2] + springs
    friction = motor_friction(elastic, [at_motors(elastic, drives[1], theta[1])])[0]
    outputs = [ca.vertcat(*dz), *theta, at_motors(elastic, tau[0], motors) + friction]
    names = ["dz", "theta", "dtheta", "d2theta", "tau_m"]
    inputs = [z, *ref.values()]
    f = ca.Function("damped_map", inputs, merged([ca.densify(x) for x in outputs]), ["z", *ref], names)
    return f, ca.Function("deflection", list(ref.values()), [ca.vertcat(*at_start)], list(ref), ["z"])


def _damper(spring: Any, z: Any, torque: Any, sigma: Any) -> tuple[Any, Any]:
    """(z', z'') from D z' + phi(z, sigma) = tau and its derivative."""
    x, dx = ca.SX.sym("x"), ca.SX.sym("dx")
    s, ds = (ca.SX.sym(name, len(sigma[:1])) for name in ("s", "ds"))
    phi = spring.torques([x], s)[0]
    f = ca.Function("spring", [x, s, dx, ds], [phi, ca.jtimes(phi, ca.vertcat(x, s), ca.vertcat(dx, ds))])
    stiffness = (sigma[0], sigma[1]) if sigma else (ca.DM(0, 1), ca.DM(0, 1))
    force, _ = f(z, stiffness[0], ca.DM(1, 1), ca.DM(*stiffness[1].shape))
    rate = (torque[0] - force) / spring.damping
    _, force_rate = f(z, stiffness[0], rate, stiffness[1])
    return rate, (torque[1] - force_rate) / spring.damping


def _spring_torques(elastic: ElasticRobot, tau: Any, jets: Any, ref: Any) -> Any:
    """(theta,) torque of each motor's spring and damper: the joint torque, shared out where two motors pull."""
    rows, k = [], 0
    for j in elastic.joints:
        if len(j.theta) == 1:
            rows.append(tau[j.v])
        else:
            rows += j.spring.torques([jets[k + i][0] for i in range(len(j.theta))], ca.DM(0, 1))
        k += len(j.theta)
    return ca.vertcat(*rows)
