"""od.plan_point_to_point: the fastest, or least effort, motion between two configurations within all limits."""

import contextlib
import sys
import time
from dataclasses import dataclass, replace

import numpy as np

from ..codegen import compile
from ..errors import LimitError, SolveError
from ..friction import counts
from ..function import function
from ..interrupts import TIME_LIMIT, deadline, watched
from ..optimal_control.solver import checked_options, solve
from ..validation import flag
from .arguments import (
    MOST_NODES,
    check_derivatives,
    check_initial,
    check_mesh,
    check_numbers,
    check_robot,
    checked_duration,
    chosen_limits,
    end_state,
    vector,
)
from .feasibility import Task, refuse, shortest_time
from .guess import resampled, smooth_motion
from .motion import failure, solved, still
from .motion_problem import MARGINS, KindOfMotion, motion_problem
from .quantities import BOUNDED, RATES
from .verdict import checked_mode, report_or_raise

_TIGHTEN = 1.0008  # share of a limit between nodes from which its bound is tightened
_CLEAN = 1.005  # share up to which a motion counts as within a limit
_BULGE = 1.03  # share of a limit between nodes from which torques are bounded there, too
_ROUNDS = 8
_WARM = {
    "warm_start_init_point": "yes",
    "mu_init": 1e-6,
    "warm_start_bound_push": 1e-8,
    "warm_start_slack_bound_push": 1e-8,
    "warm_start_mult_bound_push": 1e-8,
}
_CAREFUL = {"mu_strategy": "monotone", "mu_init": 1e-2}


def plan_point_to_point(
    robot,
    q_start,
    q_goal,
    *,
    continuity=3,
    objective="time",
    duration=None,
    limits=None,
    scale=None,
    ignore=(),
    v_start=None,
    dv_start=None,
    d2v_start=None,
    v_goal=None,
    dv_goal=None,
    d2v_goal=None,
    nodes=50,
    interior=None,
    mesh="uniform",
    refinements=2,
    smoothing=1e-5,
    initial=None,
    solver="ipopt",
    solver_options=None,
    hessian="exact",
    derivatives="analytic",
    compiled=False,
    progress=None,
    friction: bool = True,
    check: str = "warn",
    time_limit: float | None = None,
):
    """Motion from q_start to q_goal within the limits of the robot, as a Trajectory.

    Args:
        robot: Robot whose velocities are the rates of its coordinates: no spherical, planar or free joints.
        q_start, q_goal (n,): positions [rad or m].
        continuity: c >= 2; q is c times continuously differentiable and its next derivative is constant on each of
            `nodes` equal pieces: 2 bounds the jerk, 3 makes it continuous and bounds the snap, and so on.
        objective: "time" for the shortest time; "effort" for the least integral of squared torque, each joint's
            divided by its limit, in the given `duration` [s].
        limits: Limits, default Limits.of(robot). scale: {"v": 0.5, "dtau": 0.3} factors of limits. ignore: names of
            limits to leave out: "q", "v", "dv", ..., "tau", "dtau", "v_of_q".
        v_start, dv_start, d2v_start, v_goal, ... (n,): velocity, acceleration, jerk at the ends. An end that is given
            none is at rest, derivatives 1..c zero. An end given any has those up to dv fixed, zero where not given, and
            higher ones free within the limits unless given.
        nodes: number of pieces N. interior: points between nodes where torque and its rate are bounded, by default
            none, and two where torques of a motion of continuity 3 and more bulge between the nodes; they are also what
            the effort is summed over.
        mesh: "uniform" for pieces of equal length, "free" for lengths chosen with the motion, which then switches where
            it should: for the shortest time alone.
        refinements: how often the pieces may be halved where tightening does not get the motion within 0.5 % of its
            limits between nodes.
        smoothing: weight of the mean square of the highest derivative against the objective, both scaled to about
            1; it picks one motion for joints that have time to spare. 0 leaves it out.
        initial: a Trajectory to start the solver from; by default a smooth motion within the limits.
        solver, solver_options: an NLP solver of CasADi and its options, flat: {"max_iter": 100}.
        hessian: "exact" or "limited_memory" (ipopt only).
        derivatives: of the torques, "analytic" or "ad".
        compiled: compile the functions of a stage, once for a robot and kind of task; needs a C compiler. It pays where
            the same robot is planned for again, see od.compile for where they are kept.
        progress: show a bar of iterations on stderr; default only on a terminal.
        friction: whether the friction of the robot's joints counts in torques: damping, and Coulomb friction, smoothed
            as in od.function in the search and of either sign where a joint turns round in what is checked.
        check: what to do about a motion that exceeds a limit by more than 0.1 %, anywhere: "warn", "raise", or "off".
        time_limit [s]: for all of it; a solver stops at its next iteration, and the status of SolveError is
            "time_limit".
    Returns:
        Trajectory; after solving, limits that hold at points only (tau, dtau, v_of_q) are checked every millisecond
        and, where one is exceeded by more than 0.08 %, its bound is tightened and the problem solved again.
    Raises:
        LimitError, before solving, for a motion that is impossible; SolveError, with the worst violations and the last
        iterate as its trajectory, if the solver fails, and with check="raise" for a motion that exceeds a limit;
        ShapeError, UnknownName, OrderError, ModelError for arguments that do not fit.
    Source: this toolkit; see motion_problem.py.
    """
    check_robot(robot)
    names = robot.coordinate_names
    limits = chosen_limits(robot, limits, scale, ignore)
    q_start, q_goal = (vector(k, x, names) for k, x in (("q_start", q_start), ("q_goal", q_goal)))
    check_numbers(continuity, nodes, interior, refinements, smoothing, limits)
    start = end_state("start", q_start, (v_start, dv_start, d2v_start), continuity, names)
    goal = end_state("goal", q_goal, (v_goal, dv_goal, d2v_goal), continuity, names)
    duration = checked_duration(objective, duration)
    friction = counts(robot, flag("plan_point_to_point: friction", friction))
    dynamics = function(robot, "inverse_dynamics", order=1, friction=friction)
    task = Task(robot, limits, dynamics, start, goal, continuity, duration, friction)
    checked_mode(check)
    if objective == "time" and task.rests and not np.any(task.distance):
        raise LimitError(
            "start and goal are the same and at rest: there is nothing to plan in the shortest time; "
            "to hold still, or to move and come back, give a duration and objective='effort'"
        )
    options = checked_options(solver, solver_options, free_time=objective == "time")
    refuse(task)
    if not task.moving.any():
        return still(task)
    settings = {
        "nodes": nodes,
        "interior": interior,
        "mesh": "fixed" if objective == "effort" else mesh,
        "smoothing": smoothing,
        "refinements": refinements,
        "derivatives": derivatives,
        "compiler": compile if compiled else None,
    }
    check_mesh(mesh, objective)
    check_derivatives(solver, hessian, derivatives)
    if initial is not None:
        check_initial(initial, names)
    with deadline(time_limit), watched(), _bar(progress) as bar:
        motion, checked = _plan(task, settings, _Solver(solver, *options, hessian, bar), initial)
    report_or_raise("plan_point_to_point", checked, check, "use more nodes or interior points", motion)
    return motion


class _Solver:
    """The solver with its options, the bar it moves, and a log of what it did."""

    def __init__(self, name, outer, inner, hessian, bar):
        self.name, self.outer, self.inner, self.hessian, self.bar = name, outer, inner, hessian, bar
        self.iterations, self.status = [], None
        self.begun = time.perf_counter()

    @property
    def seconds(self):
        return time.perf_counter() - self.begun

    def run(self, problem, guess, margins, multipliers=None, careful=False):
        """(unknowns, multipliers) of the solution; raises SolveError. careful: the second try of ipopt."""
        inner = dict(self.inner)
        if self.name == "ipopt" and (multipliers is not None or careful):
            inner.update(_WARM if multipliers is not None else _CAREFUL)
        given = {"x0": guess, **problem.given(margins)}
        if multipliers is not None:
            given |= dict(zip(("lam_x0", "lam_g0"), multipliers, strict=True))
        found = solve(problem.made.assembly, self.name, self.hessian, self.outer, inner, given, self.bar)
        self.status, self.seconds_of = found.status, found.seconds
        self.iterations.append(found.iterations)
        values = found.x
        done = found.success and np.all(np.isfinite(values))
        if not done or np.any(problem.unpack(values)[0] <= 0):
            raise failure(problem, values, self.status, self.iterations)
        return values, (found.lam_x, found.lam_g)


def _plan(task, settings, solver, initial):
    """(motion, its Report): solve, check between nodes, tighten and solve again.

    Limits of torque are the expensive part and often not what binds: the optimum is first sought without them, and if
    it keeps them it is the optimum. If not, it is a bad start for the search with torque (on the Panda three
    times the iterations of a smooth motion within the limits), so that begins from the same guess as this.
    """
    rest = shortest_time(task.distance, task.limits.v, task.limits.dv, task.limits.d2v) if task.rests else [0.0]
    settings = {**settings, "shortest": float(np.max(rest))}
    for kinematic in [True, False] if _torque_can_wait(task, settings, initial) else [False]:
        motion, checked = _rounds(task, settings, solver, kinematic, initial)
        if checked.worst <= _TIGHTEN:
            return motion, checked
    refinements = settings["refinements"]
    while checked.worst > _CLEAN and refinements > 0 and 2 * settings["nodes"] <= MOST_NODES:
        settings, refinements = {**settings, "nodes": 2 * settings["nodes"]}, refinements - 1
        motion, checked = _rounds(task, settings, solver, motion.solver_state.kinematic, motion)
    return motion, checked


def _torque_can_wait(task, settings, initial):
    """Whether to try without limits of torque: not where nothing else bounds the time, where a warm start has them, or
    where they are sure to bind."""
    limits = task.limits
    bounded = np.any([np.isfinite(getattr(limits, k)) for k in RATES], axis=0)
    known = initial is not None and initial.solver_state is not None and not initial.solver_state.kinematic
    free = settings["mesh"] == "fixed" or bool(np.all(bounded[task.moving]))
    return free and not known and not _rate_binds(task, settings)


def _rate_binds(task, settings):
    """Whether the joint that needs longest, leaving at rest as fast as it may, exceeds its limit of the torque rate.

    From rest the rate of torque is M(q) times the jerk, which gets as high as a change of acceleration in a piece lets
    it. Only a guess of whether the search without torques is worth its time: both ways end in the same motion.
    """
    limits = task.limits
    if not task.rests or settings["mesh"] == "fixed" or task.continuity > 2:
        return False
    joint = int(np.argmax(shortest_time(task.distance, limits.v, limits.dv, limits.d2v)))
    jerk = min(limits.d2v[joint], limits.dv[joint] * settings["nodes"] / max(settings["shortest"], 1e-6))
    d2v = np.zeros(len(task.names))
    d2v[joint] = jerk if np.isfinite(jerk) else 0.0
    rest = np.zeros(len(task.names))
    rates = [np.abs(np.array(task.dynamics(state[0], rest, rest, d2v)[1])).ravel() for state in (task.start, task.goal)]
    return bool(max(rate[joint] for rate in rates) > limits.dtau[joint])


@dataclass(frozen=True, eq=False)
class _State:
    """What a solved problem leaves for a warm start of one like it."""

    shape: tuple
    kinematic: bool
    both_sides: bool
    interior: int
    ends: np.ndarray  # q at start and goal
    T: float  # that the unknowns are scaled by
    margins: np.ndarray
    values: np.ndarray
    multipliers: tuple


def _rounds(task, settings, solver, kinematic, initial):
    """(motion, its Report), bounds tightened where limits that are held at points are exceeded between them."""
    n = len(task.names)
    shape = _shape(task, settings, kinematic)
    state = getattr(initial, "solver_state", None)
    ends = np.array([task.start[0], task.goal[0]])
    if state is not None and state.shape == shape and _near(task, state, ends):
        T, margins, guess, multipliers = state.T, state.margins, state.values, state.multipliers
    else:
        start = smooth_motion(task, settings, kinematic) if initial is None else resampled(initial, task, settings)
        T, derivatives = start
        margins, guess, multipliers = np.ones(len(MARGINS) * n), None, None
    both_sides = task.continuity == 2 and state is not None and state.both_sides
    interior = settings["interior"]
    if interior is None:
        interior = state.interior if state is not None and state.shape == shape else 0
    asked = {k: settings[k] for k in ("mesh", "smoothing", "derivatives")}
    kind = KindOfMotion(interior, kinematic, both_sides=both_sides, **asked)
    built = {"nodes": settings["nodes"], "T": T, "shortest": settings["shortest"], "compiler": settings["compiler"]}
    problem = motion_problem(task, kind, **built)
    if guess is None:
        guess = problem.guess(derivatives, T)
    for _ in range(_ROUNDS):
        guess, multipliers = _patient_run(task, settings, solver, problem, guess, margins, multipliers)
        motion = solved(task, problem, guess, solver)
        kept = shape, kinematic, kind.both_sides, kind.interior
        motion.solver_state = _State(*kept, ends, T, margins, guess, multipliers)
        checked = motion.check(dt=min(1e-3, motion.duration / settings["nodes"] / 8))
        motion.info["shares"] = {row.quantity: row.share for row in checked.rows}
        reached = np.concatenate([checked.shares.get(k, np.zeros(n)) for k in MARGINS])
        if kinematic:
            reached[: 2 * n] = 0.0  # torque is not in this problem
        over = reached > _TIGHTEN
        if not over.any():
            break
        if task.continuity == 2 and not (kinematic or kind.both_sides) and over[n : 2 * n].any():
            kind, before = replace(kind, both_sides=True), problem  # the rate jumps at nodes, too high in front of one
            problem = motion_problem(task, kind, **built)
            multipliers = problem.carried(multipliers, before)
            continue
        bulges = task.continuity > 2 and settings["mesh"] != "fixed" and reached[: 2 * n].max() > _BULGE
        if bulges and settings["interior"] is None and not kind.interior:
            kind, before = replace(kind, interior=2), problem  # a smaller bound at nodes would make it all slower
            problem = motion_problem(task, kind, **built)
            multipliers = problem.carried(multipliers, before)
            continue
        margins = margins / np.where(over, reached * 1.0002, 1.0)
    motion.info |= {"rounds": len(solver.iterations), "iterations": sum(solver.iterations), "seconds": solver.seconds}
    return motion, checked


def _near(task, state, ends):
    """Whether the multipliers of a solved problem are worth more than the motion alone."""
    reach = np.abs(task.distance).max()
    return task.duration in (None, state.T) and np.abs(ends - state.ends).max() <= 0.05 * reach


def _shape(task, settings, kinematic):
    """What makes unknowns and constraints the same in number and meaning."""
    limits = task.limits
    finite = np.isfinite([*limits.q, *(getattr(limits, k) for k in BOUNDED)])
    kept = tuple(settings[k] for k in ("nodes", "interior", "mesh"))
    ends = (len(task.start), len(task.goal), limits.v_of_q is None)
    return (task.continuity, kinematic, *kept, *ends, task.moving.tobytes(), finite.tobytes())


def _patient_run(task, settings, solver, problem, guess, margins, multipliers):
    """A run of the solver, and a second one from a slow guess where the first fails though a solution may exist."""
    try:
        return solver.run(problem, guess, margins, multipliers)
    except SolveError as error:
        if error.status in (None, TIME_LIMIT) or "infeasible" in str(error.status).lower():
            raise
        T, derivatives = smooth_motion(task, settings, problem.kinematic, slower=1.5)
        try:
            return solver.run(problem, problem.guess(derivatives, T), margins, careful=True)
        except SolveError as second:
            raise second from None


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
