"""Impedance control of elastic robots: what the links show at rest is the stiffness that was asked for, exactly."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError, ShapeError
from ...function import function
from ...types import Array, Named, Numbers
from ..controller import Controller
from ..controller import make_controller as _controller
from ..model import ElasticRobot
from ..motor_side import at_motors
from .cartesian import CartesianSpring
from .conditions import (
    at_elastic_motors,
    at_links,
    check_robot,
    gravity_of,
    load_gradient_bound,
    ranges,
    softest,
    symmetric,
)
from .flat_reference import flat_reference
from .modes import modal_damping
from .static_link import static_links, steps_of
from .truncation import check_iterations

_SAMPLES = 200  # configurations at which the condition of a Cartesian stiffness is looked at
_IDLE = 2.0  # [1/s] rate at which motion that no Cartesian spring holds comes to rest, by default


def impedance(
    elastic: ElasticRobot,
    stiffness: Numbers,
    damping: Numbers | None = None,
    *,
    frame: str | None = None,
    damping_ratio: float = 0.7,
    inertia: Named | None = None,
    joint_stiffness: Numbers = 0.0,
    joint_damping: Numbers | None = None,
    at: Numbers | None = None,
    feedforward: str = "gravity",
    iterations: int | None = None,
    check: bool = True,
) -> Controller:
    """Joint impedance, or Cartesian impedance of a frame, on torque feedback that shapes the motors' inertia.

    tau_m = B Bs^-1 (u - tau) + tau, u = l(q_bar) - D (dtheta - v_ref), l(q) = g(q) - dV(q)/dq; q_bar(theta) solves
    K (theta - q_bar) = l(q_bar), so that at rest q_bar = q and a force on the links meets the potential V alone: the
    springs in series with the motor loop are made up for. Reads torque sensors.

    stiffness: of V. Without frame, joints: a number, (v,) or a matrix (v, v) [Nm/rad]: V = 1/2 e' stiffness e, e = q -
        q_ref. With frame, a name: (6,) rotations first [Nm/rad], then translations [N/m], or a matrix with these two
        blocks, all in world axes, about the frame's pose at q_ref: V = 1/2 p' K p + trace(G (1 - R R_ref')), which is
        1/2 r' K r for small rotation vectors r.
    damping: in the same forms; default by double diagonalisation at `at`, so that every mode there has damping_ratio.
    inertia [kg m^2]: Bs, a number, {motor: value} or one per motor; default the diagonal of B: no shaping.
    joint_stiffness, joint_damping: beside those of a frame, numbers or (v,), for what it leaves free. Default damping:
        such that free motion comes to rest at a rate of 2/s. at (q,): where inertias are taken; default the middle of
        the ranges, 0 where a range is infinite.
    feedforward: "gravity": the regulator above; "flat": l(q) has what the flat map's torque exceeds g(q_ref) by, u the
        motors' accelerations of the flat map, and motors are damped about its speeds: motions are followed exactly.
    iterations: of q_bar, default what makes their error 1e-10 of its start, by bounds that hold everywhere. Joint
        stiffness and linear springs are solved for, so that gravity and a frame's stiffness alone are iterated. Fewer
        show another stiffness at rest than was asked for, see check.
    check: refuse what is not proven: K - (d/dq)(dV/dq) must be above the bound of |dg/dq|, as no motor loop makes links
        stiffer than their springs; of a frame it is looked at in 200 configurations of the ranges, at its pose wanted.
        There, too, `iterations` must leave the stiffness at rest within 0.1 % of that asked for.
    Where the reference rests links and motors are passive at the port (external torque, v).
    Raises ModelError naming what fails; ShapeError; UnknownName for the frame.
    Source: Ott, Albu-Schaeffer, Kugi, Hirzinger, On the passivity-based impedance control of flexible joint robots,
    IEEE T-RO 24 (2008); damping: Albu-Schaeffer et al., ICRA 2003.
    """
    name = "impedance"
    validation.one_of("feedforward", feedforward, ("flat", "gravity"))
    check_robot(name, elastic, rigid=False, damped=feedforward == "gravity", variable=False)
    n, flat = elastic.nv, feedforward == "flat"
    where = _middle(elastic) if at is None else validation.finite_numbers(f"{name}: at", at, n)
    Bs = at_elastic_motors(f"{name}: inertia", elastic, inertia, np.diag(elastic.motor_inertia))
    _refuse_frames_arguments(name, frame, joint_stiffness, joint_damping)
    own = symmetric(
        f"{name}: joint_stiffness" if frame else f"{name}: stiffness", joint_stiffness if frame else stiffness, n
    )
    whole = function(elastic.links, "mass_matrix")(where).full() + np.diag(Bs)
    gains: dict[str, Any] = {"inertia": ca.DM(Bs)}
    spring = CartesianSpring.of(name, elastic.links, frame, stiffness) if frame else None
    ratio = validation.number(f"{name}: damping_ratio", damping_ratio, above=0)
    if spring:
        gains["damping"] = ca.DM(spring.damping(damping, whole, where, ratio))
        gains["joint_damping"] = ca.DM(
            np.diag(_IDLE * np.diag(whole)) + modal_damping(whole, own, ratio)
            if joint_damping is None
            else symmetric(f"{name}: joint_damping", joint_damping, n)
        )
    else:
        gains["joint_damping"] = ca.DM(
            modal_damping(whole, own, ratio) if damping is None else symmetric(f"{name}: damping", damping, n)
        )
    if check:
        _check_stiffness(name, elastic, own, spring)
    steps = _steps(name, elastic, iterations, own, spring)

    def loads(q: Any, q_ref: Any) -> Any:
        return gravity_of(elastic, q) - ca.DM(own) @ (q - q_ref) - (spring.force(q, q_ref) if spring else 0)

    if check and iterations is not None:

        def step(q: Any, theta: Any, q_ref: Any) -> Any:
            return _static(elastic, own, lambda x: loads(x, q_ref), q, q_ref, {"q": q, "theta": theta}, 1)

        check_iterations(name, elastic, steps, loads, step)

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        more, speed, acceleration, friction = _base(elastic, ref, flat)

        def load(q: Any) -> Any:
            return loads(q, ref["q"]) + more

        q = _static(elastic, own, load, ref["q"], ref["q"], state, steps)
        missing = speed - state["dtheta"]
        damped = gains["joint_damping"] @ missing
        if spring:
            J = spring.jacobian(q)
            damped = damped + J.T @ (gains["damping"] @ (J @ missing))
        u = load(q) + damped - state["tau"]
        motors = ca.DM(elastic.motor_inertia) @ (acceleration + u / gains["inertia"]) + state["tau"]
        return {"tau_m": friction + at_motors(elastic, ca.DM(n, 1), motors)}

    return _controller(name, elastic, law, gains=gains, sensors=("tau",))


def _refuse_frames_arguments(name: str, frame: str | None, joint_stiffness: Any, joint_damping: Any) -> None:
    """ShapeError for what stands beside a frame's impedance where there is no frame."""
    if frame is not None:
        return
    plain = isinstance(joint_stiffness, (int, float)) and joint_stiffness == 0
    for what, given, own in (
        ("joint_stiffness", not plain, "stiffness"),
        ("joint_damping", joint_damping is not None, "damping"),
    ):
        if given:
            raise ShapeError(f"{name}: {what} stands beside the impedance of a frame; without frame= give {own}")


def _base(elastic: ElasticRobot, ref: dict[str, Any], flat: bool) -> tuple[Any, Any, Any, Any]:
    """(torque beside gravity's, motors' speeds and accelerations, torque of friction) of the reference."""
    n = elastic.nv
    none = ca.DM(n, 1)
    if not flat:
        return none, ref["v"], none, none
    f = flat_reference(elastic, ref)
    return at_links(elastic, f.tau) - gravity_of(elastic, ref["q"]), f.dtheta, f.d2theta, f.other


def _static(elastic: ElasticRobot, own: Array, load: Any, start: Any, q_ref: Any, state: Any, steps: int) -> Any:
    """q_bar (v,): K (theta - q_bar) = load(q_bar), from `start`."""
    if not _is_linear(elastic):
        return static_links(elastic, state["q"], state["theta"], load, start, steps)
    K = np.diag(elastic.linear_stiffness())
    q, inverse = start, ca.DM(np.linalg.inv(K - own))
    for _ in range(steps):  # (K - own) q = K theta - own q_ref - the load without that of `own`
        q = inverse @ (ca.DM(K) @ state["theta"] - load(q) - ca.DM(own) @ q)
    return q


def _is_linear(elastic: ElasticRobot) -> bool:
    return all(hasattr(j.spring, "stiffness") for j in elastic.joints)


def _steps(name: str, elastic: ElasticRobot, iterations: int | None, own: Array, spring: Any) -> int:
    """Steps to q_bar, as given or from the ratio by which one shrinks errors."""
    if iterations is not None:
        return steps_of(name, elastic, iterations, 0.0)
    load = load_gradient_bound(name, elastic)
    most = max((np.linalg.norm(h, 2) for h in _hessians(elastic, spring)), default=0.0)
    if _is_linear(elastic):
        K = np.diag(elastic.linear_stiffness()) - own
        return steps_of(name, elastic, None, (load + most) / np.linalg.eigvalsh(K)[0])
    return steps_of(name, elastic, None, (load + most + np.linalg.norm(own, 2)) / softest(elastic).min())


def _hessians(elastic: ElasticRobot, spring: Any) -> list[Array]:
    """Stiffnesses at the joints (v, v) of a Cartesian spring at rest, in configurations of the ranges."""
    if spring is None:
        return []
    rng, low, high = np.random.default_rng(0), *ranges(elastic)
    q = rng.uniform(low, high, (_SAMPLES, elastic.nv))
    return [J.T @ spring.stiffness @ J for J in (spring.jacobian(x).full() for x in q)]


def _check_stiffness(name: str, elastic: ElasticRobot, own: Array, spring: Any) -> None:
    bound, K = load_gradient_bound(name, elastic), np.diag(softest(elastic))
    least = min(np.linalg.eigvalsh(K - own - h)[0] for h in [np.zeros_like(K), *_hessians(elastic, spring)])
    if not least > bound:
        raise ModelError(
            elastic.name,
            [
                f"{name}: the springs' stiffness less the wanted one has the smallest eigenvalue {least:.4g}, "
                f"expected above {bound:.4g}, the bound of |dg/dq|: links cannot be made as stiff as their springs; "
                "lower the stiffness (or check=False for a law without proof)"
            ],
        )


def _middle(elastic: ElasticRobot) -> Array:
    return np.mean(ranges(elastic), axis=0)
