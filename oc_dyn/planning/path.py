"""od.plan_along_path: the fastest motion along a geometric path within all limits.

Unknowns are the derivatives s', ..., s^(c) at nodes s_k of the path that are chosen beforehand, s^(c+1) and the
duration of every interval. As the nodes do not move, the path and the dynamics are numbers there,

    q^(m) = sum_j d^j q / ds^j  B_mj(s', s'', ...),
    tau   = a s'' + b s'^2 + g,    tau' = a s''' + e s' s'' + d s'^3 + f s',

with damping (c q' s' in tau) and Coulomb friction (its sign is that of q', as s' > 0) besides,
and the nonlinear program consists of short polynomials, whatever the robot.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..friction import counts
from ..interrupts import deadline, watched
from ..model.robot import Robot
from ..numbers import as_floats
from ..scene import Scene
from ..types import Array, Numbers
from ..validation import flag
from .arguments import check_robot, chosen_limits
from .followers import check_closing
from .limits import Limits
from .moving_obstacles import from_then_on
from .obstacles import Obstacles, obstacles_of
from .path_among import KeptOff, in_time
from .path_clear import refuse_hit, refuse_near
from .path_guess import nodes_of, slow_enough
from .path_motion import PathMotion, joined_motion
from .path_problem import PathProblem
from .path_refusals import check_numbers, refuse, refuse_one_way, replace_speeds
from .path_task import PathTask
from .short_way import short_way as shortened_way
from .stops import Joined, path_with_stops, shared_nodes
from .tightening import tighten
from .verdict import checked_mode, report_or_raise, warn_unlimited

_TIGHTEN, _ROUNDS = 1.00095, 8


def plan_along_path(
    robot: Robot, path: Numbers | ca.Function, *, at: Numbers | None = None, degree: int | None = None,
    continuity: int = 2, limits: Limits | None = None, scale: Mapping[str, Numbers] | None = None,
    ignore: Collection[str] = (), nodes: int = 100, solver: str = "ipopt",
    solver_options: Mapping[str, Any] | None = None, friction: bool = True, check: str = "warn",
    time_limit: float | None = None, speed_start: Numbers = 0.0, speed_end: Numbers = 0.0,
    stops: Numbers | None = None, short_way: bool = False, scene: Scene | None = None, clearance: float = 0.0,
) -> PathMotion:  # fmt: skip
    """Fastest motion along a path of the joints, from rest to rest or with given speeds at the ends, as a PathMotion.

    Args:
        robot: Robot whose velocities are the rates of its coordinates: no spherical, planar or free joints.
        path: way points (k, n) [rad or m], joined by a spline; or a casadi.Function s -> q (n,), s from 0 to 1.
        at (k,): where on the spline the way points are, from 0 to 1; by default by the square roots of their distances.
            degree: of the spline, odd; by default as low as the continuity allows: 3 for 2, 5 for 3 and 4.
        continuity: c from 2 to 5; q is c times continuously differentiable in time, s^(c+1) constant on each interval.
        limits: Limits, default Limits.of(robot). scale: {"v": 0.5, "dtau": 0.3} factors of limits. ignore: names of
            limits to leave out: "q", "v", "dv", ..., "tau", "dtau", "v_of_q".
        nodes: number of intervals. solver, solver_options: as those of Problem.solve.
        friction: whether the friction of the robot's joints counts in torques: damping, and Coulomb friction against
            the way that the path goes; in the rate of torques smoothed as in od.function.
        check: what to do about a motion that exceeds a limit by more than 0.1 %, anywhere: "warn", "raise", or "off".
        time_limit [s]: for all of it; the solver stops at its next iteration, and the status of SolveError is
            "time_limit".
        speed_start, speed_end: ds/dt at the ends [1/s], or velocities (n,) of the joints there, which have to be along
            the path. At an end that moves, derivatives above the velocity are free within the limits.
        stops: numbers of way points, or places s on a Function, at which to stop. A way point at which the path turns
            back is one without being named. At a stop all derivatives up to the continuity are zero, and the way points
            between two stops get a spline of their own; info["stops"] tells where. A Function may turn back by q'
            passing through zero, where the joints stand still for an instant.
        short_way: continuous joints go the short way round from way point to way point; see plan_point_to_point.
        scene: od.Scene whose pairs of shapes are to keep `clearance` [m] besides their margins. A path that does not is
            refused with pair and place, as it is fixed; of one that does it is proven: info["clearance"] tells how far.
            Obstacles may move: poses that are Functions of the time [s] since the start. The motion waits for them, or
            passes before; of a path with stops one stretch is planned after the other.
    Returns:
        PathMotion: sample(dt), check(), save(path), plot(path), animate(path), law, curve. Between nodes the motion is
        checked and, where a limit is exceeded by more than 0.095 %, tightened there and solved again.
    Raises:
        LimitError, before solving, for a path outside the limits of position, one in collision, one whose points cannot
        be held by the torques, or one that stands still; OrderError for a path that is not smooth enough; SolveError,
        with the last iterate as its trajectory, if the solver fails, and with check="raise" for a motion that exceeds a
        limit;
        ShapeError, UnknownName, ModelError for arguments that do not fit.
    Source: this toolkit; the quadratic form of torques along a path is that of Bobrow, Dubowsky and Gibson 1985.
    """
    begun = time.perf_counter()
    check_robot(robot)
    checked_mode(check)
    own_limits = limits is None
    limits = chosen_limits(robot, limits, scale, ignore)
    check_numbers(continuity, nodes, limits)
    wrapped: dict[str, int] = {}
    if flag("plan_along_path: short_way", short_way):
        path, wrapped = _shortened(robot, limits, path)
    on = path_with_stops(path, at, degree, continuity, limits.joints, stops)
    around = obstacles_of("plan_along_path", robot, scene, clearance)
    if around is not None:
        refuse_hit(around, on)
    friction = counts(robot, flag("plan_along_path: friction", friction))
    task = PathTask(robot, limits, on, continuity, friction)
    refuse(task)
    task = replace_speeds(task, speed_start, speed_end)
    refuse_one_way(task)
    with deadline(time_limit), watched():
        motion = _planned(task, around, nodes, solver, solver_options)
    if around is not None:
        refuse_near(around, motion)
    if check == "off":
        check_closing("plan_along_path", robot, motion.t, motion.q)
    else:
        report_or_raise("plan_along_path", motion.check(), check, "use more nodes", motion)
        if own_limits:
            warn_unlimited("plan_along_path", motion, ignore)
    motion.info |= {"seconds": time.perf_counter() - begun, "solver": solver}
    motion.scene = scene
    if wrapped:
        motion.info["wrapped"] = wrapped
    return motion


def _shortened(robot: Robot, limits: Limits, path: Any) -> tuple[Any, dict[str, int]]:
    """As short_way, of way points; what is wrong with them is told where they are joined."""
    if isinstance(path, ca.Function):
        raise ShapeError("plan_along_path: short_way is for way points; a Function says itself which way joints go")
    points = as_floats("path", path)
    if points.ndim != 2 or points.shape[1] != len(limits.joints) or not np.isfinite(points).all():
        return path, {}
    return shortened_way(robot, limits, points)


def _planned(
    task: PathTask, around: Obstacles | None, nodes: int, solver: str, solver_options: Mapping[str, Any] | None,
) -> PathMotion:  # fmt: skip
    """The motion of a task: of a path with stops, one stretch after the other."""
    moves = around is not None and around.scene.timed

    def found(task: PathTask, nodes: int, begun: float = 0.0) -> PathMotion:
        if around is None or not moves:
            return _fastest(task, nodes, solver, solver_options)
        then = from_then_on(around, begun)
        return in_time(task, then, lambda off: _fastest(task, nodes, solver, solver_options, off))

    if not isinstance(task.on, Joined):
        return found(task, nodes)
    motions: list[PathMotion] = []
    counts_ = shared_nodes(task.on.widths, nodes, 2 * task.continuity + 2)
    last = len(counts_) - 1
    for k, (on, width, N) in enumerate(zip(task.on.stretches, task.on.widths, counts_, strict=True)):
        speeds = (task.speeds[0] / width if k == 0 else 0.0, task.speeds[1] / width if k == last else 0.0)
        part = PathTask(task.robot, task.limits, on, task.continuity, task.friction, speeds)
        motions.append(found(part, N, sum(m.duration for m in motions)))
    return joined_motion(task.on, motions)


def _fastest(
    task: PathTask, nodes: int, solver: str, solver_options: Mapping[str, Any] | None, off: KeptOff | None = None,
) -> PathMotion:  # fmt: skip
    """The motion with these nodes, limits tightened where they are exceeded between nodes."""
    T, law = slow_enough(task)
    problem, grid = PathProblem(task, nodes, T, off), nodes_of(task.on, law, T, nodes, task.turns)
    guess = _guess(task, law, grid) if off is None else _guess_in_time(task, off, grid[1])

    def solve(margins: dict[str, Array], motion: Any) -> PathMotion:
        return problem.solve(grid, margins, motion or guess, solver, solver_options)

    try:
        found = tighten(solve, problem.shares, problem.margins, within=_TIGHTEN, rounds=_ROUNDS)
    finally:
        problem.release()
    assert found is not None  # solve gives a motion, or raises
    found.result.info |= {"rounds": found.rounds, "iterations": problem.iterations}
    return found.result


def _guess(task: PathTask, law: Any, grid: Any) -> dict[str, Array]:
    """{state or control: values} of a law at the nodes of a grid."""
    at = law(grid[0])
    guess = {f"d{j}s": at[j][:, None] for j in range(1, task.continuity + 1)}
    return guess | {"top": at[-1][:-1, None], "h": np.diff(grid[0])[:, None]}


def _guess_in_time(task: PathTask, off: KeptOff, places: Array) -> dict[str, Array]:
    """The same of the times at which the places (N + 1,) of the nodes are passed."""
    times, *x = off.guess(places, task.continuity + 2)
    h = np.maximum(np.diff(times), 1e-3 * times[-1] / len(times))
    out = {f"d{j}s": y[:, None] for j, y in enumerate(x[:-1], 1)}
    return out | {"top": x[-1][:-1, None], "h": h[:, None]}
