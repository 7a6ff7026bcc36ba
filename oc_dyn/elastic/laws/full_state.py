"""Full state feedback with torque sensors: a passive motor loop on torque feedback that shapes the motors' inertia."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError
from ...types import Named
from ..control import _pd, _resting
from ..controller import Controller
from ..controller import make_controller as _controller
from ..model import ElasticRobot
from ..motor_side import at_motors
from ..springs import LinearSpring
from .conditions import (
    at_elastic_motors,
    at_links,
    check_robot,
    gravity_of,
    load_gradient_bound,
    positive_gains,
    softest,
)
from .flat_reference import flat_reference
from .static_link import static_links, steps_of
from .truncation import check_iterations

GRAVITY = ("iterated", "reference")


def full_state_feedback(
    elastic: ElasticRobot,
    kp: Named,
    kd: Named,
    *,
    inertia: Named | None = None,
    torque_rate: Named = 0.0,
    feedforward: str = "flat",
    gravity: str = "iterated",
    iterations: int | None = None,
    check: bool = True,
) -> Controller:
    """Feedback of motor positions and speeds, joint torques and their rates; reads torque sensors.

    tau_m = B Bs^-1 (u - tau - Ds K^-1 dtau) + tau, after which the motors behave as if their inertia was Bs and the
    springs had the dampers Ds: Bs theta'' + tau + Ds K^-1 dtau = u, with
    u = kp (theta_ref - theta) + kd (dtheta_ref - dtheta) + what holds the robot. Rigid joints: kp, kd on q and v.

    kp [Nm/rad], kd [Nm s/rad]: above 0, as those of feedforward_pd; from poles, LQR or a rule by joint_gains.
    inertia [kg m^2]: Bs, of the motors of elastic joints: a number, {motor: value} or one per motor; default the
        diagonal of B, no shaping. Below B it makes the motors lighter and the springs' vibration is damped better.
    torque_rate [Nm s/rad]: Ds, of linear springs: a number, {motor: value} or one per motor of an elastic joint.
    feedforward: "flat": theta_ref is that of the flat map, and u has Bs theta_ref'' and the links' torque less
        gravity's besides, which follows motions exactly; "gravity": a regulator with the gravity torque alone,
        theta_ref = q_ref + z(g(q_ref)), dtheta_ref = v_ref, for damped springs as well.
    gravity: torque: "iterated": at q_bar(theta), where the springs balance it (and the other torques of the links);
        "reference": at q_ref. iterations: of q_bar; default what makes their error 1e-10 of its start.
    check: refuse what is not proven, and `iterations` that leave the stiffness at rest off by more than 0.1 % in any of
        200 configurations of the ranges, where all joints are elastic. With spring dampers D: kd D >= Ds^2 / 4 joint by
        joint (so that undamped springs need Ds = 0), and for "iterated" springs stiffer than the bound of |dg/dq|; for
        "reference" Tomei's condition.
    Then links and motors at Bs are passive at the port (external torque, v), with the storage 1/2 v' M v + 1/2 dtheta'
    Bs dtheta + springs + U(q) - U_bar(theta) + 1/2 e' kp e, U_bar(theta) = min over q of U(q) and the springs' energy.
    Raises ModelError naming what fails; ShapeError for gains.
    Source: Albu-Schaeffer, Ott, Hirzinger, A unified passivity-based control framework for position, torque and
    impedance control of flexible joint robots, IJRR 26 (2007), with the damper Ds and its condition added here.
    """
    name = "full_state_feedback"
    validation.one_of("feedforward", feedforward, ("flat", "gravity"))
    validation.one_of("gravity", gravity, GRAVITY)
    check_robot(name, elastic, rigid=True, damped=feedforward == "gravity", variable=False)
    gains = dict(zip(("kp", "kd"), positive_gains(name, elastic, kp=kp, kd=kd), strict=True))
    gains["inertia"] = ca.DM(at_elastic_motors(f"{name}: inertia", elastic, inertia, np.diag(elastic.motor_inertia)))
    damper = _damper(name, elastic, torque_rate)
    gains["torque_rate"] = ca.DM(damper)
    problems: list[str] = []
    if check:
        problems += _undamped(name, elastic, gains["kd"].full().ravel(), damper)
        problems += _too_soft(name, elastic, gravity, gains["kp"].full().ravel())
    if problems:
        raise ModelError(elastic.name, problems)
    steps = 0
    if gravity == "iterated":
        ratio = 0.0 if iterations else load_gradient_bound(name, elastic) / softest(elastic).min()
        steps = steps_of(name, elastic, iterations, ratio)
        if check and iterations is not None and not elastic.rigid:
            motors = gains["kp"].full().ravel()[list(elastic.elastic_motors)]

            def step(q: Any, theta: Any, q_ref: Any) -> Any:
                return static_links(elastic, q, theta, lambda x: gravity_of(elastic, x), q, 1)

            check_iterations(name, elastic, steps, lambda q, q_ref: gravity_of(elastic, q), step, motors)

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        theta, speed, acceleration, more, friction = (_along if feedforward == "flat" else _resting_at)(elastic, ref)
        at = ref["q"]
        if steps:
            at = static_links(
                elastic, state["q"], state["theta"], lambda q: gravity_of(elastic, q) + more, ref["q"], steps
            )
        wanted = theta, speed, acceleration, gravity_of(elastic, at) + more, friction
        return {"tau_m": shaped(elastic, gains, state, wanted, _pd(elastic, gains, ref, state, *wanted[:2]))}

    # rates of torques are read where they count alone: a sensor that is not there need not be
    sensors = ("tau", "dtau") if np.any(damper) else ("tau",)
    gains = gains if np.any(damper) else {n: x for n, x in gains.items() if n != "torque_rate"}
    return _controller(name, elastic, law, gains=gains, sensors=sensors)


def shaped(elastic: ElasticRobot, gains: dict[str, Any], state: dict[str, Any], wanted: Any, feedback: Any) -> Any:
    """(motors,) torques by torque feedback, from wanted = (theta, dtheta, theta'' (theta,), torques (v,), those of
    friction and of rigid joints along the reference (motors,)) and what acts on the motors besides (motors,)."""
    _, _, acceleration, torques, friction = wanted
    missing = ca.vertcat(*(torques[j.v] + feedback[j.tau[0]] for j in elastic.joints)) - state["tau"]
    if "torque_rate" in gains:
        stiffness = ca.vertcat(*(getattr(j.spring, "stiffness", 1.0) for j in elastic.joints))
        missing = missing - gains["torque_rate"] * state["dtau"] / stiffness
    motors = ca.DM(elastic.motor_inertia) @ (acceleration + missing / gains["inertia"]) + state["tau"]
    return friction + at_motors(elastic, torques + _rigid(elastic, feedback), motors)


def _rigid(elastic: ElasticRobot, motors: Any) -> Any:
    """(v,) column with what stands for rigid joints in a column (motors,)."""
    rows: list[Any] = [ca.DM(1, 1)] * elastic.nv
    for v, m in zip(elastic.rigid, elastic.rigid_motors, strict=True):
        rows[v] = motors[m]
    return ca.vertcat(*rows)


def _along(elastic: ElasticRobot, ref: dict[str, Any]) -> Any:
    """(theta, dtheta, theta'' (theta,), links' torque beside gravity's (v,), friction and torques of rigid joints
    (motors,)) of the flat map."""
    flat = flat_reference(elastic, ref)
    more = at_links(elastic, flat.tau) - gravity_of(elastic, ref["q"])
    return flat.theta, flat.dtheta, flat.d2theta, more, flat.other


def _resting_at(elastic: ElasticRobot, ref: dict[str, Any]) -> Any:
    """The same of a robot at rest."""
    theta, _ = _resting(elastic, ref["q"], gravity_of(elastic, ref["q"]), [])
    speed = ca.vertcat(*(ref["v"][j.v] for j in elastic.joints))
    return theta, speed, ca.DM(len(elastic.joints), 1), ca.DM(elastic.nv, 1), ca.DM(len(elastic.motor_names), 1)


def _damper(name: str, elastic: ElasticRobot, torque_rate: Any) -> Any:
    """(theta,) dampers Ds."""
    none = np.zeros(len(elastic.joints))
    damper = at_elastic_motors(f"{name}: torque_rate", elastic, torque_rate, none, above=-np.inf)
    odd = [j.name for j, d in zip(elastic.joints, damper, strict=True) if d and not isinstance(j.spring, LinearSpring)]
    if odd:
        raise ModelError(elastic.name, [f"{name}: torque_rate is for linear springs; that of {', '.join(odd)} is not"])
    return damper


def _undamped(name: str, elastic: ElasticRobot, kd: Any, damper: Any) -> list[str]:
    problems = []
    for j, ds in zip(elastic.joints, damper, strict=True):
        most = 2 * np.sqrt(kd[j.tau[0]] * j.spring.damping)
        if abs(ds) > most * (1 + 1e-12):
            problems.append(
                f"{name}: torque_rate of {elastic.motor_names[j.tau[0]]} is {ds:.4g} Nm s/rad; passivity is proven up "
                f"to {most:.4g}, 2 sqrt(kd D) with D the spring's damping (check=False for a law without proof)"
            )
    return problems


def _too_soft(name: str, elastic: ElasticRobot, gravity: str, kp: Any) -> list[str]:
    bound, problems = load_gradient_bound(name, elastic), []
    for j, k in zip(elastic.joints, softest(elastic), strict=True):
        p = kp[j.tau[0]]
        value, what = k, "the stiffness"
        if gravity == "reference":
            value, what = (
                np.linalg.eigvalsh([[k, -k], [-k, k + p]])[0],
                "the smallest eigenvalue of [[K, -K], [-K, K + kp]]",
            )
        if not value > bound:
            problems.append(
                f"{name}: joint {j.name}: {what} is {value:.4g}, expected above {bound:.4g}, the bound of |dg/dq| "
                "(check=False for a law without proof)"
            )
    least = bound if gravity == "reference" else 0.0
    for m in elastic.rigid_motors:
        if not kp[m] > least:
            problems.append(f"{name}: kp of {elastic.motor_names[m]} is {kp[m]:.4g}, expected above {least:.4g}")
    return problems
