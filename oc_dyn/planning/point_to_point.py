"""od.plan_point_to_point: the fastest, or least effort, motion between two configurations within all limits."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen import compile
from ..errors import LimitError
from ..friction import counts
from ..function import function
from ..interrupts import deadline, watched
from ..model.robot import Robot
from ..optimal_control.solver import checked_options
from ..scene import Scene
from ..types import Executor, Numbers
from ..validation import flag
from .among import blocked, clear, plan_clear
from .arguments import (
    check_derivatives,
    check_executor,
    check_initial,
    check_mesh,
    check_numbers,
    check_robot,
    checked_duration,
    chosen_limits,
    end_state,
    vector,
)
from .braking import braked, too_fast, with_braking
from .feasibility import Task, refuse
from .followers import check_motion, with_followers
from .limits import Limits
from .motion import still
from .moving_obstacles import from_then_on
from .obstacles import along, obstacles_of, told_of
from .point_to_point_search import PlanSolver, _State, plan  # noqa: F401, trajectories that were pickled name _State here
from .short_way import short_way as shortened_way
from .trajectory import Trajectory
from .verdict import checked_mode, report_or_raise, warn_unlimited


def plan_point_to_point(
    robot: Robot,
    q_start: Numbers,
    q_goal: Numbers,
    *,
    continuity: int = 3,
    objective: str = "time",
    duration: float | None = None,
    limits: Limits | None = None,
    scale: Mapping[str, Numbers] | None = None,
    ignore: Collection[str] = (),
    v_start: Numbers | None = None,
    dv_start: Numbers | None = None,
    d2v_start: Numbers | None = None,
    v_goal: Numbers | None = None,
    dv_goal: Numbers | None = None,
    d2v_goal: Numbers | None = None,
    nodes: int = 50,
    interior: int | None = None,
    mesh: str = "uniform",
    refinements: int = 2,
    smoothing: float = 1e-5,
    initial: Trajectory | None = None,
    solver: str = "ipopt",
    solver_options: Mapping[str, Any] | None = None,
    hessian: str = "exact",
    derivatives: str = "analytic",
    compiled: bool = False,
    progress: bool | None = None,
    friction: bool = True,
    check: str = "warn",
    time_limit: float | None = None,
    short_way: bool = False,
    scene: Scene | None = None,
    clearance: float = 0.0,
    executor: str | Executor = "serial",
) -> Trajectory:
    """Motion from q_start to q_goal within the limits of the robot, as a Trajectory.

    Args:
        robot: Robot whose velocities are the rates of its coordinates: no spherical, planar or free joints.
        q_start, q_goal (n,): positions [rad or m].
        continuity: c >= 2; q is c times continuously differentiable and its next derivative is constant on each of
            `nodes` equal pieces: 2 bounds the jerk, 3 makes it continuous and bounds the snap, and so on.
        objective: "time" for the shortest time; "effort" for the least integral of squared torque, each joint's
            divided by its limit, in the given `duration` [s].
        limits: Limits, default Limits.of(robot). scale: {"v": 0.5, "dtau": 0.3} factors of limits. ignore: names of
            limits to leave out: "q", "v", "dv", "d2v", "d3v", "tau", "dtau", "v_of_q".
        v_start, dv_start, d2v_start, v_goal, ... (n,): velocity, acceleration, jerk at the ends. An end that is given
            none is at rest, derivatives 1..c zero. An end given any has those up to dv fixed, zero where not given, and
            higher ones free within the limits unless given. A start that is faster than a limit brakes first, in the
            least time, all limits but that of its velocity held, and the plan keeps all limits from there on, the first
            time it can; joints that are not too fast keep their speed while others brake. info["braking"] tells how
            long and which joints, and the report counts their velocities from then on. The duration includes it. A
            start faster than a limit that depends on the position (v_of_q) is refused.
        nodes: number of pieces N. interior: points between nodes where torque and its rate are bounded, by default
            none, and two where torques of a motion of continuity 3 and more bulge between the nodes; they are also what
            the effort is summed over.
        mesh: "uniform" for pieces of equal length, "free" for lengths chosen with the motion, which then switches where
            it should: for the shortest time alone.
        refinements: how often the pieces may be halved where tightening does not get the motion within 0.5 % of its
            limits between nodes.
        smoothing: weight of mean squares against the objective, both scaled to about 1: of the accelerations, so that
            joints that have time to spare move calmly, and of the highest derivative, so that it does not chatter; for
            least effort of the latter alone. The time is up to a thousandth longer for it, from continuity 4
            on some percent where there are many pieces and no limit of the highest derivatives. On a free mesh with
            continuity 3 and more, where it would cost some percent, the time is sought again with a thousandth of it,
            and the motion then smoothed on pieces 5e-5 longer, if that succeeds. 0 leaves it out.
        initial: a Trajectory to start the solver from; by default a smooth motion within the limits. On a free mesh,
            where both may end in different optima, the solver starts from each, and the shorter motion is kept.
        solver, solver_options: an NLP solver of CasADi and its options, flat: {"max_iter": 100}. With
            neither, joints are solved for apart where they share nothing but the time: equal pieces, continuity 2 and
            3, or 4 with up to 100 pieces, without limits of torque or where those turn out to hold, and no v_of_q.
            With speeds at the ends the first time is sought that all joints can take. info["solver"] is "separate
            joints" then, and `initial` is not needed; where that finds no optimum, or no time at all, ipopt decides.
            info["tries"] tells of all, [[what, status, iterations]].
        hessian: "exact" or "limited_memory" (ipopt only).
        derivatives: of the torques, "analytic" or "ad".
        compiled: compile the functions of a stage, once for a robot and kind of task; needs a C compiler. It pays where
            the same robot is planned for again, see od.compile for where they are kept.
        progress: show a bar of iterations on stderr; default only on a terminal.
        friction: whether the friction of the robot's joints counts in torques: damping, and Coulomb friction, smoothed
            as in od.function in the search and of either sign where a joint turns round in what is checked.
        check: what to do about a motion that exceeds a limit by more than 0.1 %, anywhere: "warn", "raise", or "off".
            Unless it is off, a CheckWarning tells of a robot whose own limits leave accelerations to velocities and
            torques alone, as those of a URDF file do.
        time_limit [s]: for all of it; a solver stops at its next iteration, and the status of SolveError is
            "time_limit".
        short_way: continuous joints go the short way round, to q_goal and full turns: 0.28 rad from 3 to -3, not 6.
            info["wrapped"] and the report tell which, and by how many turns.
        scene: od.Scene whose pairs of shapes keep `clearance` [m] besides their margins on the whole motion, which is
            proven: info["clearance"] tells how far. The motion without a scene is the plan where it does; else pairs
            enter the program when they come near, and searches begin from ways round what is hit: sampled ones with
            pip install "oc-dyn[sampling]", else of our own trees. Obstacles may move: poses that
            are Functions of the time [s] since the start, until the motion ends. Then searches begin from the soonest
            passages along these ways, waits included, and from the motion that hits, and the best is taken.
        executor: that searches from the ways round obstacles run on: "serial", "processes:N", "dask:N" or any
            concurrent.futures.Executor, as of od.sweep. The plan does not depend on it.
    Returns:
        Trajectory; after solving, limits that hold at points only (tau, dtau, v_of_q) are checked every millisecond
        and, where one is exceeded by more than 0.08 %, its bound is tightened and the problem solved again.
    Raises:
        LimitError, before solving, for a motion that is impossible, a start that cannot brake in time, or an end in
        collision, with pairs and depths; SolveError,
        with the worst violations and the last iterate as its trajectory, if the solver fails, and with check="raise"
        for a motion that exceeds a limit;
        ShapeError, UnknownName, OrderError, ModelError for arguments that do not fit.
    Source: this toolkit; see motion_problem.py.
    """
    check_robot(robot)
    own_limits = limits is None
    limits = chosen_limits(robot, limits, scale, ignore)
    q_start, q_goal = (vector(k, x, limits.joints) for k, x in (("q_start", q_start), ("q_goal", q_goal)))
    wrapped: dict[str, int] = {}
    if flag("plan_point_to_point: short_way", short_way):
        (q_start, q_goal), wrapped = shortened_way(robot, limits, np.array([q_start, q_goal]))
    check_numbers(continuity, nodes, interior, refinements, smoothing, limits)
    start = end_state("start", q_start, (v_start, dv_start, d2v_start), continuity, limits.joints)
    goal = end_state("goal", q_goal, (v_goal, dv_goal, d2v_goal), continuity, limits.joints)
    task = _task(robot, limits, start, goal, continuity, checked_duration(objective, duration), friction)
    around = obstacles_of("plan_point_to_point", robot, scene, clearance)
    if around is not None:
        task = replace(task, around=around)
        around.refuse("plan_point_to_point: q_start", q_start)
        around.refuse("plan_point_to_point: q_goal", q_goal, task.duration)
    checked_mode(check)
    if progress is not None:
        flag("plan_point_to_point: progress", progress)
    _refuse_nothing(task)
    check_executor(executor)
    options = checked_options(solver, solver_options, free_time=objective == "time")
    if not too_fast(task).any():
        refuse(task)
        if not task.moving.any():
            return _kept_still(task)
    check_mesh(mesh, objective)
    check_derivatives(solver, hessian, derivatives)
    if initial is not None:
        check_initial(initial, limits.joints)
    settings = {
        "nodes": nodes,
        "interior": interior,
        "mesh": "fixed" if objective == "effort" else mesh,
        "smoothing": smoothing,
        "refinements": refinements,
        "derivatives": derivatives,
        "compiler": compile if compiled else None,
        "apart": solver == "ipopt" and hessian == "exact" and not solver_options,
    }
    outer, inner = options
    with deadline(time_limit), watched(), _bar(progress) as bar:
        engine = PlanSolver(solver, outer, inner, hessian, bar, solver_options)
        first, rest = braked(task, solver_options, solver)
        if first is not None:
            refuse(rest)
            rest = rest if around is None else replace(rest, around=from_then_on(around, first.duration))
        if around is None:
            motion, checked = plan(rest, settings, engine, initial)
        else:
            motion, checked = plan_clear(rest, settings, engine, initial, executor)
        if first is not None:
            motion = with_braking(first, motion, task)
            check_motion("plan_point_to_point", motion, 1e-3)
            checked = motion.check() if around is None else clear(motion, motion.check(), around)
    motion.scene = scene
    if wrapped:
        motion.info["wrapped"] = wrapped
    if own_limits and objective == "time" and check != "off":
        warn_unlimited("plan_point_to_point", motion, ignore)
    checked = _with_followers(motion, checked)
    report_or_raise("plan_point_to_point", checked, check, "use more nodes or interior points", motion)
    return motion


def _task(robot, limits, start, goal, continuity, duration, friction):
    friction = counts(robot, flag("plan_point_to_point: friction", friction))
    dynamics = function(robot, "inverse_dynamics", order=1, friction=friction)
    return Task(robot, limits, dynamics, start, goal, continuity, duration, friction)


def _with_followers(motion, checked):
    """The Report with rows of joints that follow; ModelError where loops open on the way."""
    if "followers" in checked.shares:  # the search has looked
        return checked
    check_motion("plan_point_to_point", motion, checked.dt)
    return with_followers(checked, motion, checked.dt)


def _kept_still(task):
    """The motion of a robot none of whose joints may move, in which nothing may hit it."""
    motion = still(task)
    if task.around is not None:
        seen = along(task.around, motion)
        if seen.short.any():
            raise LimitError(f"plan_point_to_point: no joint may move, and {blocked(task.around, seen)}")
        motion.info |= told_of(seen)
        motion.scene = task.around.scene
    return motion


def _refuse_nothing(task):
    """Raise LimitError where there is nothing to do in the shortest time."""
    if task.duration is None and task.rests and not np.any(task.distance):
        raise LimitError(
            "start and goal are the same and at rest: there is nothing to plan in the shortest time; "
            "to hold still, or to move and come back, give a duration and objective='effort'"
        )


@contextlib.contextmanager
def _bar(progress):
    """A bar of iterations on stderr, or None."""
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if not progress:
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc="planning", unit=" iterations", file=sys.stderr) as bar:
        yield bar
