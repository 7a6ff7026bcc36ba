"""Planning of elastic robots through the flat map: the links' motion is chosen, what springs and motors do follows.

The motion is a chain of integrators, q continuously differentiable as often as the motor torque needs; limits of motor
torque, its rate, motor speed and spring deflection are limits of the flat map's outputs. All hold at nodes and at
points between them, and are checked everywhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..errors import CheckWarning, OrderError, ShapeError, SolveError
from ..interrupts import deadline, watched
from ..planning.arguments import check_smooth, vector
from ..planning.limits import Limits
from ..planning.obstacles import obstacles_of
from ..planning.quantities import DYNAMIC
from ..scene import Scene
from ..types import Array, Numbers
from ..validation import count, flag, one_of
from .flat_motion import FlatMotion, check_flat, flat_expressions, flat_motion
from .model import ElasticRobot
from .plan import ElasticPlan
from .plan_among import search_among
from .plan_refusals import refuse
from .plan_search import search
from .plan_task import ElasticTask, limit_of

__all__ = ["FlatMotion", "flat_expressions", "flat_motion", "plan_elastic"]


def plan_elastic(
    elastic: ElasticRobot,
    q_start: Numbers,
    q_goal: Numbers,
    *,
    continuity: int | None = None,
    objective: str = "time",
    duration: float | None = None,
    motor_torque: Numbers | None = None,
    motor_torque_rate: Numbers | None = None,
    motor_speed: Numbers | None = None,
    deflection: Numbers | None = None,
    limits: Limits | None = None,
    sigma: Numbers | None = None,
    nodes: int = 40,
    interior: int = 2,
    solver: str = "ipopt",
    solver_options: Mapping[str, Any] | None = None,
    derivatives: str = "analytic",
    compiled: bool = False,
    check: str = "warn",
    time_limit: float | None = None,
    scene: Scene | None = None,
    clearance: float = 0.0,
) -> ElasticPlan:
    """ElasticPlan of a motion from rest to rest.

    continuity: of q; default 4, for a continuous motor torque, or 5 with a limit of its rate (reduced model).
    objective: "time" for the shortest time; "energy" for the least integral of the squared motor torques, each divided
        by its limit, the loss in motors' windings, in the given `duration` [s].
    motor_torque [Nm], motor_torque_rate [Nm/s], motor_speed [rad/s], deflection [rad]: numbers or one a motor (one a
        row of theta for the last two), None for none. limits: Limits of the links, default those of the robot; torques
        in them are left out, as the motors have their own.
    sigma: stiffnesses of the joints that vary theirs, held constant; to plan them, too, use flat_motion in a Problem.
    nodes: number of pieces. Limits hold at nodes and `interior` points inside each piece; where they are exceeded
        elsewhere by more than 0.1 % they are tightened and the problem is solved again.
    derivatives: of the links' torques, "analytic" or "ad".
    compiled: compile the functions of a stage, once for a robot and kind of task; needs a C compiler.
    check: what to do where the plan that was found is over a limit by more than 0.1 %, or is not what the robot does
        under its motor torques, by more than 0.1 % of the motion: "warn" gives a CheckWarning that names the worst,
        "raise" a SolveError with the plan as its `trajectory`, "off" nothing. See ElasticPlan.check.
    time_limit [s]: for all of it; the solver stops at its next iteration, and the status of SolveError is "time_limit".
    scene: od.Scene whose pairs of shapes, on the links and in the world, keep `clearance` [m] besides their margins on
        the whole motion; see plan_point_to_point.
    Raises OrderError for a continuity that is too low, and for springs with damping, as the flat map does; LimitError
    before solving for ends that no motion can meet or that are in collision, and where nothing bounds the time;
    SolveError if the solver fails, its trajectory the motion of the links of the last iterate.
    """
    rate = motor_torque_rate is not None
    continuity = elastic.continuity("torque_rate" if rate else "torque") if continuity is None else continuity
    names = elastic.links.coordinate_names
    ends = [vector(what, x, names) for what, x in (("q_start", q_start), ("q_goal", q_goal))]
    given = {
        "motor_torque": limit_of("motor_torque", motor_torque, elastic.motor_names),
        "motor_torque_rate": limit_of("motor_torque_rate", motor_torque_rate, elastic.motor_names),
        "motor_speed": limit_of("motor_speed", motor_speed, elastic.theta_names),
        "deflection": limit_of("deflection", deflection, elastic.theta_names),
    }
    given = {k: x for k, x in given.items() if x is not None}
    limits = (Limits.of(elastic.links) if limits is None else limits).without(*DYNAMIC)
    one_of("objective", objective, ("time", "energy"))
    one_of("check", check, ("warn", "raise", "off"))
    one_of("kind of derivatives", derivatives, ("ad", "analytic"))
    compiled = flag("plan_elastic: compiled", compiled)
    if (objective == "energy") != (duration is not None):
        raise ShapeError("plan_elastic: give a duration with objective='energy', and with it alone")
    count("plan_elastic: interior", interior)
    count("plan_elastic: nodes", nodes)
    sigma = _stiffnesses(elastic, sigma)
    check_flat(elastic, continuity, rate)
    mesh = (nodes, interior, derivatives)
    task = ElasticTask(elastic, ends, int(continuity), rate, given, limits, objective, duration, sigma, *mesh)
    check_smooth("plan_elastic", task.continuity, limits)
    if nodes <= task.continuity:  # the highest derivative of each piece against what is fixed at the goal
        raise OrderError(
            f"plan_elastic: {nodes} nodes cannot meet start and goal with continuity {task.continuity}; "
            f"give at least {task.continuity + 1}"
        )
    refuse(task)
    around = obstacles_of("plan_elastic", elastic.links, scene, clearance)
    if around is not None:
        around.refuse("plan_elastic: q_start", ends[0])
        around.refuse("plan_elastic: q_goal", ends[1], duration)
    with deadline(time_limit), watched():
        how = solver, solver_options, compiled
        plan = search(task, *how) if around is None else search_among(task, around, *how)
    complaint = None if check == "off" else plan.check(task.grid(plan.motion)).complaint()
    if complaint:
        text = f"planning {elastic.name}: {complaint}; use more nodes or interior points"
        if check == "raise":
            raise SolveError(text, "check", trajectory=plan)
        warnings.warn(text, CheckWarning, stacklevel=2)
    return plan


def _stiffnesses(elastic: ElasticRobot, sigma: Numbers | None) -> Array | None:
    """(sigma,) of the joints that vary theirs; None where there is none."""
    if sigma is None and not elastic.sigma_names:
        return None
    if sigma is None or not elastic.sigma_names:
        have = ", ".join(elastic.sigma_names) or "none"
        raise ShapeError(f"planning {elastic.name}: give sigma for the joints that vary their stiffness: {have}")
    return vector("sigma", sigma, elastic.sigma_names)
