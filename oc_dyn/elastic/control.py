"""Laws of control for elastic robots, each a casadi.Function of reference and measured state.

All take the same ports, whether they read them or not: the reference q_ref, v_ref, dv_ref, .. (as many as the flat map
needs; sigma_ref, dsigma_ref, d2sigma_ref where the stiffness varies) and the state q, v, theta, dtheta (sigma, dsigma
where it has drives); and give tau_m (and tau_sigma). A law with a memory takes it as port memory and gives its rate.
A law may read torque sensors besides, as ports tau and dtau (elastic joints,); see torque_sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, OrderError, ShapeError
from ..function import function
from ..ports import derivative_name
from ..subexpressions import merged
from ..text import terminal
from ..types import Array, Named, Numbers
from ..validation import one_of
from .damping import damped_map
from .drives import accelerations, at_drives, drive_torques, speeds
from .model import ElasticRobot
from .motor_side import at_motors, deflections, joint_torques, motor_friction, sigma_forces, spring_torques
from .ports import admit_flat

Law = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], dict[str, Any]]  # (reference, state, gains) -> outputs


@dataclass(frozen=True, eq=False)
class Controller:
    """A law of control. elastic: the model it was derived from. function: ports as above. memory: size of its state;
    first_memory: casadi.Function from the reference ports to that state at the start.

    gains: {name: values}; with_gains: the function with a port for each of them besides, for code that may change them.
    integrators: (entry of the memory, that of its rate, motor) of torques that are integrated; see anti_windup.
    """

    name: str
    elastic: ElasticRobot
    function: ca.Function
    memory: int = 0
    first_memory: ca.Function | None = None
    gains: dict[str, Array] = field(default_factory=dict)
    with_gains: ca.Function | None = None
    integrators: tuple[tuple[int, int, int], ...] = ()

    @property
    def reference_names(self) -> tuple[str, ...]:
        """Names of the reference's ports, without "_ref"."""
        return tuple(n.removesuffix("_ref") for n in self.function.name_in() if n.endswith("_ref"))

    def __repr__(self) -> str:
        return f"<{self.name} of {terminal(self.elastic.name)}: {self.function.n_instructions()} instructions>"


def feedforward(elastic: ElasticRobot) -> Controller:
    """Motor torques of the flat map at the reference; the state is not read."""
    return _controller("feedforward", elastic, lambda ref, state, gains: _flat(elastic, ref))


def feedforward_pd(elastic: ElasticRobot, kp: Named, kd: Named, *, integrate_damping: bool = False) -> Controller:
    """Flat feedforward and a PD loop on each motor: tau_m = flat map + kp (theta_ref - theta) + kd (dtheta_ref -
    dtheta).

    kp [Nm/rad], kd [Nm s/rad]: numbers, {motor: value} or one per motor; on a rigid joint they act on q and v.
    integrate_damping: for damped springs, which have no algebraic flat map: the law integrates their deflections along
        the reference as its memory, by the equation D z' + phi(z) = tau; see damped_motion.
    """
    kp, kd = _gains(elastic, kp=kp, kd=kd)
    dynamic = integrate_damping and elastic.damped
    maps: Any = damped_map(elastic) if dynamic else (None, None)
    damped, start = maps

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        out = damped(z=state["memory"], **{n: ref[n] for n in damped.name_in()[1:]}) if dynamic else _flat(elastic, ref)
        tau_m = out["tau_m"] + _pd(elastic, gains, ref, state, out["theta"], out["dtheta"])
        return {**out, "tau_m": tau_m, **({"memory_rate": out["dz"]} if dynamic else {})}

    def first(ref: dict[str, Any]) -> Any:
        return start(**{n: ref[n] for n in start.name_in()})["z"]

    memory = len(elastic.damped) if dynamic else 0
    return _controller("feedforward_pd", elastic, law, memory, first if dynamic else None, {"kp": kp, "kd": kd})


def gravity_pd(elastic: ElasticRobot, kp: Named, kd: Named) -> Controller:
    """PD on each motor with the gravity torque g of the reference position: Tomei's regulator along the reference.

    tau_m = g(q_ref) + kp (theta_g - theta) + kd (v_ref - dtheta), theta_g = q_ref + the deflection under g(q_ref).
    """
    kp, kd = _gains(elastic, kp=kp, kd=kd)
    _without_drives("gravity_pd", elastic)

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        zero = ca.DM.zeros(elastic.nv)
        g = drive_torques(elastic)(ref["q"], zero, zero)
        position, drives = at_drives(elastic, [ref["q"], ref["v"]])
        sigma = [ref["sigma"]] if elastic.sigma_names else []
        theta, torques = _resting(elastic, position, g, sigma)
        speed = ca.vertcat(*(drives[j.v] for j in elastic.joints for _ in j.theta))
        return {"tau_m": at_motors(elastic, g, torques) + _pd(elastic, gains, ref, state, theta, speed)}

    return _controller("gravity_pd", elastic, law, gains={"kp": kp, "kd": kd})


def computed_torque(elastic: ElasticRobot, kp: Named, kd: Named) -> Controller:
    """The law of a rigid robot, elasticity ignored: inverse dynamics and motor inertia at the reference, PD of the
    motors on q_ref. A baseline to compare with."""
    kp, kd = _gains(elastic, kp=kp, kd=kd)
    _without_drives("computed_torque", elastic)
    if any(len(j.theta) > 1 for j in elastic.joints):
        raise ModelError(elastic.name, ["computed_torque: a joint with two motors cannot be taken as rigid"])

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        tau = drive_torques(elastic)(ref["q"], ref["v"], ref["dv"])
        rows = [j.v for j in elastic.joints]
        jets = at_drives(elastic, [ref["q"], ref["v"], ref["dv"]])
        position, speed, rate = (ca.vertcat(*(x[k] for k in rows)) for x in jets)
        motors = ca.vertcat(*(tau[k] for k in rows)) + ca.DM(elastic.motor_inertia) @ rate
        return {"tau_m": at_motors(elastic, tau, motors) + _pd(elastic, gains, ref, state, position, speed)}

    return _controller("computed_torque", elastic, law, gains={"kp": kp, "kd": kd})


def feedback_linearization(
    elastic: ElasticRobot,
    poles: Numbers,
    *,
    stiffness_poles: Numbers | None = None,
    inverse_dynamics: str | None = None,
    forward_dynamics: str | None = None,
    friction_speed: str = "measured",
) -> Controller:
    """Feedback linearisation through the links' positions: each joint's error e obeys e'''' + k3 e''' + .. + k0 e = 0.

    poles [1/s]: of this equation: a positive number g for four at -g, four poles (complex in pairs) for all joints, or
        four per joint (v, 4). stiffness_poles: the same, two, for sigma where the stiffness is varied; default those of
    g. inverse_dynamics, forward_dynamics: methods.
    friction_speed: speed at which friction is compensated: "measured", exact for a law without delay; "reference", the
        motors' speeds of the flat map along the reference, for sampled laws: compensation of Coulomb friction at the
        measured speed makes motors chatter around standstill, as its sign comes too late; "none": no compensation.
    The derivatives of q up to the third come from the measured state by forward dynamics of order 1, the torques from
    inverse dynamics of order 2. With rigid joints the law is dynamic: their torques come through two integrators, the
    law's memory (De Luca 1998). Raises OrderError for the complete model, which no static feedback linearises.
    """
    admit_flat("feedback_linearization")(elastic)
    if elastic.coupling:
        raise OrderError(
            "feedback_linearization: no static feedback linearises the complete model; use feedforward_pd, or the law "
            "of the reduced model on it"
        )
    gains = {"gains": pole_gains(poles, 4, elastic.nv)}
    n_sigma = len(elastic.sigma_names)
    default = np.min(-np.real(np.asarray(poles))) if np.ndim(poles) else poles
    if n_sigma or stiffness_poles is not None:
        gains["sigma_gains"] = pole_gains(default if stiffness_poles is None else stiffness_poles, 2, n_sigma)
    inverse = drive_torques(elastic, 2, inverse_dynamics)
    forward = accelerations(elastic, 1, forward_dynamics)
    one_of("friction_speed", friction_speed, ("measured", "reference", "none"))

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        return _linearizing(elastic, inverse, forward, gains, friction_speed, ref, state)

    rigid = elastic.rigid

    def first(ref: dict[str, Any]) -> Any:
        tau = drive_torques(elastic, 1).call([ref["q"], ref["v"], ref["dv"], ref["d2v"]])
        return ca.vertcat(*(x[k] for x in tau for k in rigid))

    integrators = tuple((k, len(rigid) + k, m) for k, m in enumerate(elastic.rigid_motors))
    start = first if rigid else None
    return _controller("feedback_linearization", elastic, law, 2 * len(rigid), start, gains, integrators)


def _linearizing(
    elastic: ElasticRobot, inverse: ca.Function, forward: ca.Function, gains: dict[str, Any], friction_speed: str,
    ref: dict[str, Any], state: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """{output: expression} of feedback_linearization."""
    q, v, theta, dtheta = (state[name] for name in ("q", "v", "theta", "dtheta"))
    z, rigid = deflections(elastic, [q, v], [theta, dtheta]), len(elastic.rigid)
    sigma = _sigma_jet(elastic, ref, state, z, gains.get("sigma_gains"))
    springs = spring_torques(elastic, 1, z, sigma[:2])
    memory: list[Any] = [state["memory"][:rigid], state["memory"][rigid:]] if rigid else [None, None]
    a, j = forward.call([q, v, *(joint_torques(elastic, x, y) for x, y in zip(springs, memory, strict=True))])
    e = [ref["q"] - q, ref["v"] - v, ref["dv"] - a, ref["d2v"] - j]
    d3v = ref["d3v"] + sum(gains["gains"][:, k] * x for k, x in enumerate(e))
    tau = inverse.call([q, v, a, j, d3v])
    second = []  # derivatives of theta
    drives = at_drives(elastic, [q, v, a])
    for i, joint in enumerate(elastic.joints):
        own = [x[joint.sigma] for x in sigma] if joint.sigma is not None else []
        second += [x + drives[2][joint.v] for x in joint.spring.deflection(2, z[i], [x[joint.v] for x in tau], own)]
    motors = ca.DM(elastic.motor_inertia) @ ca.vertcat(*second) + springs[0]
    out = {"tau_m": at_motors(elastic, joint_torques(elastic, motors, memory[0]), motors)}
    if friction_speed != "none":
        moving = (drives[1], dtheta)
        if friction_speed == "reference":
            moving = (speeds(elastic, ref["q"], ref["v"]), _flat(elastic, ref)["dtheta"])
        out["tau_m"] = out["tau_m"] + motor_friction(elastic, [at_motors(elastic, *moving)])[0]
    if elastic.stiffness_driven:
        out["tau_sigma"] = ca.DM(elastic.stiffness_inertia) * sigma[2] + sigma_forces(elastic, 0, z, sigma[:1])[0]
    if rigid:
        out["memory_rate"] = ca.vertcat(memory[1], *(tau[2][k] for k in elastic.rigid))
    return out


def pole_gains(poles: Numbers, order: int, n: int) -> Array:
    """(n, order) gains k0 .. of s^order + .. + k1 s + k0 with these poles; see feedback_linearization."""
    poles = np.asarray(poles)
    if poles.ndim == 0:
        poles = np.full(order, -abs(poles) if poles > 0 else poles)
    if poles.shape == (order,):
        poles = np.broadcast_to(poles, (n, order))
    if poles.shape != (n, order):
        raise ShapeError(f"poles: got shape {poles.shape}, expected a number, ({order},) or ({n}, {order})")
    gains = np.array([np.poly(row)[:0:-1] for row in poles]).reshape(n, order)
    if np.any(np.real(poles) >= 0):
        raise ShapeError(
            f"poles: got {poles.tolist()}, expected negative real parts (one positive number g: all at -g)"
        )
    if np.abs(np.imag(gains)).max(initial=0) > 1e-9 * np.abs(gains).max(initial=1):
        raise ShapeError(f"poles: {poles.tolist()}: complex poles must come in conjugate pairs")
    return np.real(gains)


def _controller(
    name: str, elastic: ElasticRobot, law: Law, memory: int = 0, first: Callable[[dict[str, Any]], Any] | None = None,
    gains: Mapping[str, Any] | None = None, integrators: tuple[tuple[int, int, int], ...] = (),
) -> Controller:  # fmt: skip
    if elastic.nq != elastic.nv:
        raise ModelError(elastic.name, [f"{name} is for robots with joints of one coordinate alone"])
    ref, state = _symbols(elastic, memory)
    ports: dict[str, Any] = {**{f"{n}_ref": x for n, x in ref.items()}, **state}
    values: dict[str, Any] = {n: ca.DM(x) for n, x in (gains or {}).items()}
    open_: dict[str, Any] = {n: ca.SX.sym(n, *x.shape) for n, x in values.items()}
    made = []
    for numbers in [values, open_] if values else [values]:
        out = law(ref, state, numbers)
        names = [n for n in ("tau_m", "tau_sigma", "memory_rate") if n in out]
        inputs = {**ports, **(numbers if numbers is open_ else {})}
        outputs = merged([ca.densify(ca.SX(out[n])) for n in names])
        made.append(ca.Function(name, list(inputs.values()), outputs, list(inputs), names))
    start = first and ca.Function(f"{name}_start", list(ref.values()), [first(ref)], list(ref), ["memory"])
    kept = {n: x.full() for n, x in values.items()}
    return Controller(name, elastic, made[0], memory, start, kept, made[-1] if values else None, integrators)


def _symbols(elastic: ElasticRobot, memory: int) -> tuple[dict[str, Any], dict[str, Any]]:
    n, motors, sigmas = elastic.nv, len(elastic.elastic_motors), len(elastic.sigma_names)
    ref = {derivative_name("v", k - 1) if k else "q": n for k in range(elastic.flat_order() + 1)}
    ref |= {derivative_name("sigma", k): sigmas for k in range(3)} if sigmas else {}
    state = {"q": n, "v": n, "theta": motors, "dtheta": motors}
    state |= {"sigma": sigmas, "dsigma": sigmas} if elastic.stiffness_driven else {}
    state |= {"memory": memory} if memory else {}
    made = [{name: ca.SX.sym(name, size) for name, size in part.items()} for part in (ref, state)]
    return made[0], made[1]


def _flat(elastic: ElasticRobot, ref: dict[str, Any]) -> dict[str, Any]:
    f = function(elastic, "elastic_flat_map")
    return f(**{name: ref[name] for name in f.name_in()})


def _pd(
    elastic: ElasticRobot, gains: dict[str, Any], ref: dict[str, Any], state: dict[str, Any], theta: Any, speed: Any,
) -> Any:  # fmt: skip
    """kp (wanted - measured) + kd (the same of the speeds), on motors, and on the links where they are rigid."""
    links = [ref["q"] - state["q"], ref["v"] - state["v"]]
    if elastic.drives and elastic.rigid:
        pairs = [at_drives(elastic, [x["q"], x["v"]]) for x in (ref, state)]
        links = [x - y for x, y in zip(*pairs, strict=True)]
    position = at_motors(elastic, links[0], theta - state["theta"])
    return gains["kp"] * position + gains["kd"] * at_motors(elastic, links[1], speed - state["dtheta"])


def _resting(elastic: ElasticRobot, q: Any, g: Any, sigma: list[Any]) -> tuple[Any, Any]:
    """Motor positions at rest under the joint torques g, and the springs' torques."""
    theta, torques = [], []
    for j in elastic.joints:
        s = [x[j.sigma] for x in sigma] if j.sigma is not None else []
        z = [jet[0] for jet in j.spring.deflections([g[j.v]], s)]
        theta += [x + q[j.q] for x in z]
        torques += j.spring.torques(z, s[0] if s else ca.DM(0, 1))
    return ca.vertcat(*theta), ca.vertcat(*torques)


def _sigma_jet(elastic: ElasticRobot, ref: dict[str, Any], state: dict[str, Any], z: Any, gains: Any) -> list[Any]:
    """[sigma, sigma', wanted sigma''] of each joint of variable stiffness: prescribed, measured, or that of a pair."""
    if not elastic.sigma_names:
        return []
    wanted = [ref[name] for name in ("sigma", "dsigma", "d2sigma")]
    rows = {}
    for i, j in enumerate(elastic.joints):
        if j.sigma is None:
            continue
        k = j.sigma
        if elastic.stiffness_driven:
            now = [state["sigma"][k], state["dsigma"][k]]
        elif j.spring.adjusted:
            now = [wanted[0][k], wanted[1][k]]
        else:
            spring: Any = j.spring
            now = spring.stiffness_jet(z[i])
        error = sum(gains[k, d] * (x[k] - y) for d, (x, y) in enumerate(zip(wanted[:2], now[:2], strict=True)))
        rows[k] = [*now, wanted[2][k] + error]
    return [ca.vertcat(*(rows[k][d] for k in sorted(rows))) for d in range(3)]


def _gains(elastic: ElasticRobot, **gains: Any) -> list[Any]:
    out, names = [], elastic.motor_names
    for what, value in gains.items():
        if isinstance(value, dict):
            unknown = [n for n in value if n not in names]
            if unknown:
                raise ShapeError(f"{what}: no motor {unknown[0]!r}; motors: {', '.join(names)}")
            value = [value.get(n, 0.0) for n in names]
        value = np.asarray(value, float).ravel()
        value = np.full(len(names), value[0]) if value.size == 1 else value
        if value.shape != (len(names),) or not np.all(np.isfinite(value)) or np.any(value < 0):
            raise ShapeError(
                f"{what}: got {value.tolist()}, expected {len(names)} numbers of at least 0: {', '.join(names)}"
            )
        out.append(ca.DM(value))
    return out


def _without_drives(name: str, elastic: ElasticRobot) -> None:
    if elastic.stiffness_driven:
        raise ModelError(elastic.name, [f"{name} says nothing about the drives of sigma; use feedback_linearization"])
