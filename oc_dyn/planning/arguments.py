"""Arguments of plan_point_to_point: what does not fit is named."""

from dataclasses import replace

import numpy as np

from ..errors import LimitError, ModelError, OrderError, ShapeError, UnknownName
from ..model.joints import GROUPS
from ..model.robot import check_robot as check_is_robot
from ..numbers import as_floats, shortened
from ..validation import number, one_of, options_of
from .followers import followers_of
from .limits import Limits, limits_of_followers
from .quantities import BY_NAME, KINEMATIC, order_name
from .trajectory import Trajectory

MOST_NODES = 10_000  # of a plan
SHORTEST, LONGEST = 1e-6, 1e9  # [s] durations that are planned


def check_robot(robot):
    """ModelError unless all joints have one coordinate each."""
    check_is_robot("planning", robot)
    unfit = [f"{j.name} ({j.kind})" for j in robot.joints if j.kind in GROUPS]
    if unfit or robot.nq == 0:
        problem = f"it has {', '.join(unfit)}" if unfit else "it has no moving joint"
        rule = "point-to-point planning is for joints with one coordinate each, whose rates are the velocities"
        raise ModelError(robot.name, [f"{rule}; {problem}"])


def chosen_limits(robot, limits, scale, ignore):
    """Limits of a plan: the robot's own unless given, scaled, and without those that are to be ignored."""
    limits = Limits.of(robot) if limits is None else limits
    if not isinstance(limits, Limits):
        raise ShapeError(f"limits: got {type(limits).__name__}, expected Limits, as Limits.of(robot)")
    if limits.joints != robot.coordinate_names:
        raise ShapeError(
            f"limits are of joints {', '.join(limits.joints)}, but {robot.name} has {', '.join(robot.coordinate_names)}"
        )
    ignore = (ignore,) if isinstance(ignore, str) else ignore
    if not isinstance(ignore, (tuple, list, set, frozenset)):
        raise ShapeError(f"ignore: got {shortened(ignore)}, expected names of limits")
    if limits.followers is None:
        limits = replace(limits, followers=limits_of_followers(robot))
    followers_of(robot, limits)
    return limits.scaled(**options_of("scale", scale)).without(*ignore)


def vector(what, value, names):
    """(n,) floats, one for each name."""
    value = as_floats(what, value).ravel()
    if value.size != len(names):
        raise ShapeError(f"{what}: got {value.size} values, expected {len(names)}: {', '.join(names)}")
    if not np.all(np.isfinite(value)):
        raise ShapeError(f"{what}: joint {names[int(np.argmin(np.isfinite(value)))]!r} is not a finite number")
    return value


def check_numbers(continuity, nodes, interior, refinements, smoothing, limits):
    """OrderError or the like for numbers of a plan out of their ranges."""
    inside = 0 if interior is None else interior
    ranges = {"continuity": (continuity, 2, 8), "nodes": (nodes, 1, MOST_NODES), "interior": (inside, 0, 20)}
    for what, (value, least, most) in {**ranges, "refinements": (refinements, 0, 10)}.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            why = "; below 2 the torque itself would jump" if what == "continuity" else ""
            raise OrderError(
                f"plan_point_to_point: {what} is {shortened(value)}, expected an integer of at least {least}{why}"
            )
        if value > most:
            raise OrderError(f"plan_point_to_point: {what} is {shortened(value)}, it goes up to {most}")
    if nodes < 2 * continuity + 2:
        raise OrderError(
            f"plan_point_to_point: {nodes} nodes cannot meet start and goal with continuity {continuity}; "
            f"give at least {2 * continuity + 2}"
        )
    if number("plan_point_to_point: smoothing", smoothing) < 0:
        raise OrderError(f"plan_point_to_point: smoothing is {smoothing!r}, expected a number of at least 0")
    check_smooth("plan_point_to_point", continuity, limits)


def check_smooth(where, continuity, limits):
    """OrderError for a limit of a derivative that does not exist, as the one below it jumps."""
    for name in KINEMATIC[continuity + 2 :]:
        if limits.bounded(name).any() or (limits.followers is not None and limits.followers.bounded(name).any()):
            jumps, needed = BY_NAME[KINEMATIC[continuity + 1]].title, BY_NAME[name].order - 1
            text = f"with continuity {continuity} the {jumps} jumps; limits of {name} need continuity {needed}"
            raise OrderError(f"{where}: {text}")


def end_state(where, q, given, continuity, names):
    """(k, n) the fixed derivatives at one end."""
    given = [None if x is None else vector(f"{order_name(k + 1)}_{where}", x, names) for k, x in enumerate(given)]
    if given[2] is not None and continuity < 3:
        raise OrderError(f"plan_point_to_point: d2v_{where} needs continuity 3 or more, with 2 the jerk jumps")
    if all(x is None or not np.any(x) for x in given):
        return np.array([q] + [np.zeros_like(q)] * continuity)
    last = 3 if given[2] is not None else 2
    return np.array([q] + [np.zeros_like(q) if x is None else x for x in given[:last]])


def checked_duration(objective, duration):
    """The duration for objective 'effort' [s], None for 'time'."""
    one_of("objective", objective, ("time", "effort"))
    if objective == "time":
        if duration is not None:
            raise ShapeError("objective 'time' finds the duration; leave it out, or use objective='effort'")
        return None
    if duration is None or number("duration", duration) <= 0:
        raise ShapeError(f"objective 'effort' needs a duration in seconds, got {duration!r}")
    if not SHORTEST <= float(duration) <= LONGEST:
        raise LimitError(f"duration is {float(duration):g} s; motions take from {SHORTEST:g} to {LONGEST:g} s")
    return float(duration)


def check_initial(initial, names):
    """ShapeError unless a first guess is a Trajectory of these joints."""
    if not isinstance(initial, Trajectory):
        raise ShapeError(f"initial: got {type(initial).__name__}, expected a Trajectory")
    if initial.joints != tuple(names):
        raise ShapeError(f"initial is of joints {', '.join(initial.joints)}, expected {', '.join(names)}")


def check_derivatives(solver, hessian, derivatives):
    """UnknownName for a Hessian or derivatives that there are not, or not with this solver."""
    if hessian not in ("exact", "limited_memory"):
        raise UnknownName("hessian", hessian, ("exact", "limited_memory"))
    if hessian == "limited_memory" and solver != "ipopt":
        raise UnknownName("solver for hessian='limited_memory'", solver, ("ipopt",))
    if derivatives not in ("ad", "analytic"):
        raise UnknownName("kind of derivatives", derivatives, ("ad", "analytic"))


def check_mesh(mesh, objective):
    """UnknownName for a mesh that there is not, or not with this objective."""
    if mesh not in ("uniform", "free"):
        raise UnknownName("mesh", mesh, ("uniform", "free"))
    if mesh == "free" and objective != "time":
        raise UnknownName("mesh for objective='effort'", mesh, ("uniform",))


def check_executor(executor):
    """Raise ShapeError for what oc_dyn.executors does not know."""
    if executor != "serial":
        from ..executors import checked  # multiprocessing when it is first needed

        checked(executor)
