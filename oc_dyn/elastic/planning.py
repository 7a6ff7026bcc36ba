"""Planning of elastic robots through the flat map: the links' motion is chosen, what springs and motors do follows.

The motion is a chain of integrators, q continuously differentiable as often as the motor torque needs; limits of motor
torque, its rate, motor speed, spring deflection, current and voltage are limits of the flat map's outputs. Deflections
of damped springs follow from the motion by the dampers' equation, and are unknowns besides. All hold at nodes and at
points between them, and are checked everywhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from ..errors import CheckWarning, ModelError, OrderError, ShapeError, SolveError
from ..interrupts import deadline, watched
from ..numbers import as_floats, shortened
from ..optimal_control.problem import Problem
from ..planning.arguments import check_smooth, vector
from ..planning.limits import Limits
from ..planning.obstacles import obstacles_of
from ..planning.quantities import DYNAMIC
from ..scene import Scene
from ..types import Array, Numbers
from ..validation import count, flag, name_of, number, one_of
from .damped_flat import wanted_continuity
from .electrical import MotorElectrics
from .flat_motion import FlatMotion, check_flat, flat_expressions, flat_motion
from .model import ElasticRobot
from .plan import ElasticPlan
from .plan_among import search_among
from .plan_costs import OBJECTIVES
from .plan_refusals import refuse
from .plan_search import search
from .plan_stiffness import PlannedStiffness, stiffness_bounds
from .plan_task import ElasticTask, limit_of

__all__ = ["FlatMotion", "flat_expressions", "flat_motion", "plan_elastic"]


def plan_elastic(
    elastic: ElasticRobot,
    q_start: Numbers | None,
    q_goal: Numbers | None,
    *,
    continuity: int | None = None,
    objective: str = "time",
    duration: float | None = None,
    motor_torque: Numbers | None = None,
    motor_torque_rate: Numbers | None = None,
    motor_speed: Numbers | None = None,
    deflection: Numbers | None = None,
    electrical: MotorElectrics | None = None,
    limits: Limits | None = None,
    sigma: Numbers | PlannedStiffness | None = None,
    speed: ca.Function | None = None,
    periodic: bool = False,
    say: Callable[[Problem, FlatMotion], None] | None = None,
    way: Numbers | None = None,
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
    """ElasticPlan of a motion from rest to rest, from rest with a free end (q_goal=None), or of a periodic one.

    continuity: of q; default 4, for a continuous motor torque, or 5 with a limit of its rate (reduced model); one less
        where all springs are damped.
    objective: "time" for the shortest time; others in the given `duration` [s]: "energy" for the least integral of the
        squared motor torques, each divided by its limit, the loss in motors' windings where gears do not mix motors;
        "work" for the mechanical work [J] that motors do at their rotors, and "electrical_energy" for the energy [J]
        that they draw, by `electrical`, where what a motor gives back does not count; "speed" for the largest `speed`
        at the end, which is free.
    motor_torque [Nm], motor_torque_rate [Nm/s], motor_speed [rad/s], deflection [rad]: numbers or one a motor (one a
        row of theta for the last two), as seen at the joints, None for none. electrical: MotorElectrics, whose current,
        voltage and torque-speed curve are limits, too. limits: Limits of the links, default those of the robot; torques
        in them are left out, as the motors have their own.
    sigma: stiffnesses of the joints that vary theirs, held constant, or a PlannedStiffness, for those that are planned
        together with the motion.
    speed: casadi.Function (q, v) -> a number, for the objective "speed".
    periodic: whether the motion ends as it begins, with all derivatives, after `duration`; q_start is where, or None.
    say: function (problem, flat) that says more, before the problem is solved, in the words of od.Problem about the
        FlatMotion: such as problem.at({flat.q[0]: q}, fraction=0.5).
    way: configurations (k, n) at equal times through which the search begins, of motions with a free end or periodic
        ones; by default a swing.
    nodes: number of pieces. Limits hold at nodes and `interior` points inside each piece; where they are exceeded
        elsewhere by more than 0.1 % they are tightened and the problem is solved again.
    derivatives: of the links' torques, "analytic" or "ad".
    compiled: compile the functions of a stage, once for a robot and kind of task; needs a C compiler.
    check: what to do where the plan that was found is over a limit by more than 0.1 %, or is not what the robot does
        under its motor torques, by more than 0.1 % of the motion: "warn" gives a CheckWarning that names the worst,
        "raise" a SolveError with the plan as its `trajectory`, "off" nothing. See ElasticPlan.check.
    time_limit [s]: for all of it; the solver stops at its next iteration, and the status of SolveError is "time_limit".
    scene: od.Scene whose pairs of shapes, on the links and in the world, keep `clearance` [m] besides their margins on
        the whole motion, from rest to rest; see plan_point_to_point.
    Raises OrderError for a continuity that is too low; ModelError for damped pairs of springs, drives of stiffness and
    complete models, whose deflections no motion of the links gives; LimitError before solving for ends that no motion
    can meet or that are in collision, and where nothing bounds the time; SolveError if the solver fails, its trajectory
    the motion of the links of the last iterate.
    """
    _check_words(elastic, limits, say, objective, solver)
    rate = motor_torque_rate is not None
    continuity = wanted_continuity(elastic, "torque_rate" if rate else "torque") if continuity is None else continuity
    given = {
        "motor_torque": limit_of("motor_torque", motor_torque, elastic.motor_names),
        "motor_torque_rate": limit_of("motor_torque_rate", motor_torque_rate, elastic.motor_names),
        "motor_speed": limit_of("motor_speed", motor_speed, elastic.theta_names),
        "deflection": limit_of("deflection", deflection, elastic.theta_names),
    }
    given |= _electrical(elastic, electrical, objective)
    given = {k: x for k, x in given.items() if x is not None}
    limits = Limits.of(elastic.links) if limits is None else limits
    one_of("check", check, ("warn", "raise", "off"))
    one_of("kind of derivatives", derivatives, ("ad", "analytic"))
    limits, compiled = limits.without(*DYNAMIC), flag("plan_elastic: compiled", compiled)
    kind = _kind(objective, duration, q_goal, speed, flag("plan_elastic: periodic", periodic))
    ends = _ends(elastic, kind, q_start, q_goal)
    count("plan_elastic: interior", interior)
    count("plan_elastic: nodes", nodes)
    check_flat(elastic, continuity, rate)
    varied = stiffness_bounds(elastic, sigma) if isinstance(sigma, PlannedStiffness) else None
    held = _stiffnesses(elastic, sigma if varied is None else varied.typical)  # type: ignore[arg-type]
    task = ElasticTask(
        elastic, ends, int(continuity), rate, given, limits, objective, duration, held, nodes, interior, derivatives,
        kind=kind, electrical=electrical, stiffness=varied, speed=_speed(elastic, speed), say=say,
        way=_way(elastic, kind, way),
    )  # fmt: skip
    check_smooth("plan_elastic", task.continuity, limits)
    if nodes <= task.continuity:  # the highest derivative of each piece against what is fixed at the goal
        raise OrderError(
            f"plan_elastic: {nodes} nodes cannot meet start and goal with continuity {task.continuity}; "
            f"give at least {task.continuity + 1}"
        )
    refuse(task)
    around = _around(elastic, scene, clearance, task)
    with deadline(time_limit), watched():
        how = solver, solver_options, compiled
        plan = search(task, *how) if around is None else search_among(task, around, *how)
    plan.motion.scene = scene
    complaint = None if check == "off" else plan.check(task.grid(plan.motion)).complaint()
    if complaint:
        text = f"planning {elastic.name}: {complaint}; use more nodes or interior points"
        if check == "raise":
            raise SolveError(text, "check", trajectory=plan)
        warnings.warn(text, CheckWarning, stacklevel=2)
    return plan


def _check_words(elastic: Any, limits: Any, say: Any, objective: Any, solver: Any) -> None:
    if not isinstance(elastic, ElasticRobot):
        raise ShapeError(f"plan_elastic: got {type(elastic).__name__}, expected an ElasticRobot")
    one_of("objective", objective, OBJECTIVES)
    name_of("plan_elastic: solver", solver)
    if limits is not None and not isinstance(limits, Limits):
        raise ShapeError(f"plan_elastic: limits is {shortened(limits)}, expected od.Limits")
    if say is not None and not callable(say):
        raise ShapeError(f"plan_elastic: say is {shortened(say)}, expected a function (problem, flat)")


def _kind(objective: str, duration: Any, q_goal: Any, speed: Any, periodic: bool) -> str:
    """Kind of the ends of an ElasticTask; what does not go together is refused."""
    if (objective != "time") != (duration is not None):
        raise ShapeError(
            f"plan_elastic: give a duration with objective={objective!r}" if duration is None
            else "plan_elastic: give a duration with objective='energy', or another than 'time', and with it alone"
        )  # fmt: skip
    if duration is not None:
        number("plan_elastic: duration", duration, above=0)
    if (objective == "speed") != (speed is not None):
        raise ShapeError("plan_elastic: give speed=, a Function (q, v), with objective='speed', and with it alone")
    if periodic and (objective in ("time", "speed") or q_goal is not None):
        raise ShapeError(
            "plan_elastic: a periodic motion has a duration and no goal; give q_goal=None and objective='energy', "
            "'work' or 'electrical_energy'"
        )
    if objective == "speed" and q_goal is not None:
        raise ShapeError("plan_elastic: the end of a motion for the largest speed is free; give q_goal=None")
    if q_goal is None and not periodic and objective != "speed":
        raise ShapeError("plan_elastic: q_goal is None, which is for objective='speed' and for periodic=True")
    return "periodic" if periodic else "free" if q_goal is None else "rest"


def _ends(elastic: ElasticRobot, kind: str, q_start: Any, q_goal: Any) -> list[Array]:
    names, ends = elastic.links.coordinate_names, {"q_start": q_start}
    ends |= {"q_goal": q_goal} if kind == "rest" else {}
    if kind == "periodic" and q_start is None:
        return []
    return [vector(what, () if x is None else x, names) for what, x in ends.items()]


def _electrical(elastic: ElasticRobot, electrical: Any, objective: str) -> dict[str, Array | None]:
    """Limits that a motor's electrics set."""
    if electrical is None:
        if objective == "electrical_energy":
            raise ShapeError("plan_elastic: objective='electrical_energy' needs electrical=od.elastic.MotorElectrics")
        return {}
    if not isinstance(electrical, MotorElectrics):
        raise ShapeError(f"plan_elastic: electrical is {type(electrical).__name__}, expected MotorElectrics")
    electrical.check(elastic)
    return dict(electrical.limits(elastic))


def _speed(elastic: ElasticRobot, speed: Any) -> ca.Function | None:
    if speed is None:
        return None
    n = elastic.nv
    if not isinstance(speed, ca.Function) or speed.n_in() != 2 or speed.n_out() < 1:
        raise ShapeError("plan_elastic: speed: expected a casadi.Function of q and v")
    if (speed.numel_in(0), speed.numel_in(1), speed.numel_out(0)) != (n, n, 1):
        raise ShapeError(
            f"plan_elastic: speed: its sizes are {speed.numel_in(0)}, {speed.numel_in(1)} -> {speed.numel_out(0)}, "
            f"expected {n}, {n} -> 1"
        )
    return speed


def _way(elastic: ElasticRobot, kind: str, way: Any) -> Array | None:
    if way is None:
        return None
    points = as_floats("plan_elastic: way", way)
    points = points[:, None] if points.ndim == 1 and elastic.nq == 1 else points
    if kind == "rest" or points.ndim != 2 or points.shape[1] != elastic.nq or len(points) < 3:
        raise ShapeError(
            f"plan_elastic: way is {points.shape} of a motion of kind {kind!r}; expected (at least 3, {elastic.nq}) of "
            "one with a free end, or a periodic one"
        )
    if not np.isfinite(points).all():
        raise ShapeError("plan_elastic: way: expected finite numbers")
    return points


def _around(elastic: ElasticRobot, scene: Any, clearance: float, task: ElasticTask) -> Any:
    around = obstacles_of("plan_elastic", elastic.links, scene, clearance)
    if around is None:
        return None
    if task.kind != "rest" or task.say is not None:
        raise ModelError(
            elastic.name, ["obstacles are kept off on motions from rest to rest; say others by problem.avoid in say="]
        )
    around.refuse("plan_elastic: q_start", task.ends[0])
    around.refuse("plan_elastic: q_goal", task.ends[1], task.duration)
    return around


def _stiffnesses(elastic: ElasticRobot, sigma: Numbers | None) -> Array | None:
    """(sigma,) of the joints that vary theirs; None where there is none."""
    if sigma is None and not elastic.sigma_names:
        return None
    if sigma is None or not elastic.sigma_names:
        have = ", ".join(elastic.sigma_names) or "none"
        raise ShapeError(f"planning {elastic.name}: give sigma for the joints that vary their stiffness: {have}")
    return vector("sigma", sigma, elastic.sigma_names)
