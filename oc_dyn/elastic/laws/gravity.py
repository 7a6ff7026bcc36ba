"""PD with gravity compensated at the motors' positions: Tomei's regulator with the links' position estimated."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ...errors import ModelError
from ...types import Named
from ..control import _pd, _resting
from ..controller import Controller
from ..controller import make_controller as _controller
from ..model import ElasticRobot
from ..motor_side import at_motors
from .conditions import at_links, check_robot, gravity_of, load_gradient_bound, motor_positions, positive_gains, softest


def online_gravity_pd(elastic: ElasticRobot, kp: Named, kd: Named, *, check: bool = True) -> Controller:
    """PD on each motor with the gravity torque at the position that the motor stands for:
    tau_m = g(theta - z) + kp (theta_g - theta) + kd (v_ref - dtheta), z the deflection under g(q_ref), theta_g = q_ref
    + z. On a rigid joint kp and kd act on q and v.

    kp [Nm/rad], kd [Nm s/rad]: above 0; numbers, {motor: value} or one per motor.
    check: refuse gains for which the equilibrium is not proven unique and stable. With a the bound of |dg/dq|, see
        gravity_gradient_bound, the smallest eigenvalue of [[K, -K], [-K, K + kp]] must be above a, kp of rigid joints
        above 2 a (Tomei's condition, which is sufficient, not necessary). Then 1/2 v' M v + 1/2 dtheta' B dtheta +
        springs + U(q) - U(theta - z) + 1/2 (theta_g - theta)' kp (theta_g - theta) falls at the rate dtheta' kd dtheta.
    It is a regulator: at rest at q_ref exactly, with an error of the order of v_ref and dv_ref along a motion. Springs
    of fixed law, their damping and the motors' do no harm; Coulomb friction leaves an error.
    Raises ModelError naming what the law cannot do or which condition fails and by how much; ShapeError for gains.
    Source: De Luca, Siciliano, Zollo, PD control with on-line gravity compensation for robots with elastic joints,
    Automatica 41 (2005); Tomei, A simple PD controller for robots with elastic joints, IEEE TAC 36 (1991).
    """
    name = "online_gravity_pd"
    check_robot(name, elastic, rigid=True, damped=True, variable=False)
    gains = dict(zip(("kp", "kd"), positive_gains(name, elastic, kp=kp, kd=kd), strict=True))
    if check:
        _check_tomei(name, elastic, gains["kp"].full().ravel())

    def law(ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        theta, _ = _resting(elastic, ref["q"], gravity_of(elastic, ref["q"]), [])
        bent = at_links(elastic, theta) - _only_elastic(elastic, ref["q"])
        g = gravity_of(elastic, motor_positions(elastic, state["q"], state["theta"]) - bent)
        speed = ca.vertcat(*(ref["v"][j.v] for j in elastic.joints))
        torques = at_motors(elastic, g, ca.vertcat(*(g[j.v] for j in elastic.joints)))
        return {"tau_m": torques + _pd(elastic, gains, ref, state, theta, speed)}

    return _controller(name, elastic, law, gains=gains)


def _only_elastic(elastic: ElasticRobot, q: Any) -> Any:
    """q, with zero where joints are rigid."""
    return at_links(elastic, ca.vertcat(*(q[j.q] for j in elastic.joints)))


def _check_tomei(name: str, elastic: ElasticRobot, kp: Any) -> None:
    bound, problems = load_gradient_bound(name, elastic), []
    for j, k in zip(elastic.joints, softest(elastic), strict=True):
        p = kp[j.tau[0]]
        least = np.linalg.eigvalsh([[k, -k], [-k, k + p]])[0]
        if not least > bound:  # (k - a)(k + p - a) > k^2 at the eigenvalue a
            need = f"kp above {k * k / (k - bound) + bound - k:.4g}" if k > bound else "a stiffer spring"
            problems.append(
                f"{name}: motor {elastic.motor_names[j.tau[0]]}: the smallest eigenvalue of [[K, -K], [-K, K + kp]] is "
                f"{least:.4g} at K = {k:.4g} and kp = {p:.4g}, expected above {bound:.4g}, the bound of |dg/dq|; it "
                f"takes {need} (or check=False for a law without proof)"
            )
    for m in elastic.rigid_motors:
        if not kp[m] > 2 * bound:
            problems.append(
                f"{name}: motor {elastic.motor_names[m]} of a rigid joint: kp is {kp[m]:.4g}, expected above "
                f"{2 * bound:.4g}, twice the bound of |dg/dq| (or check=False for a law without proof)"
            )
    if problems:
        raise ModelError(elastic.name, problems)
