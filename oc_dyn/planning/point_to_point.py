"""od.plan_point_to_point: the fastest, or least effort, motion between two configurations within all limits."""

import contextlib
import sys
import time
import warnings
from dataclasses import dataclass
from math import factorial

import numpy as np

from ..errors import LimitError, ModelError, ModelWarning, OrderError, ShapeError, SolveError, UnknownName
from ..function import function
from .feasibility import Task, refuse, shortest_time
from .limits import Limits, order_name
from .polynomials import derivatives_at, hermite, shift
from .report import Violation, quantities
from .solver import checked_options
from .trajectory import Samples, Trajectory, joint_units
from .transcription import MARGINS, transcribe

_TIGHTEN = 1.002  # share of a limit between nodes from which its bound is tightened
_ROUNDS = 8
# measured on the Panda with the rate of torque at a tenth: the adaptive barrier takes 35 iterations where the monotone
# one takes 25 to 260, and from a solution whose bounds were tightened 3 to 20
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
    smoothing=1e-5,
    initial=None,
    solver="ipopt",
    solver_options=None,
    progress=None,
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
            limits to leave out: "q", "v", "dv", "d2v", "d3v", "tau", "dtau", "v_of_q".
        v_start, dv_start, d2v_start, v_goal, ... (n,): velocity, acceleration, jerk at the ends. An end that is given
            none is at rest, derivatives 1..c zero. An end given any has those up to dv fixed, zero where not given, and
            higher ones free within the limits unless given.
        nodes: number of pieces N. interior: points between nodes where torque and its rate are bounded, and that the
            effort is summed over; default 0, for the effort 1.
        smoothing: weight of the mean square of the highest derivative against the objective, both scaled to about
            1; it picks one motion for joints that have time to spare. 0 leaves it out.
        initial: a Trajectory to start the solver from; by default a smooth motion within the limits.
        solver, solver_options: an NLP solver of CasADi and its options, flat: {"max_iter": 100}.
        progress: show a bar of iterations on stderr; default only on a terminal.
    Returns:
        Trajectory; after solving, limits that hold at points only (tau, dtau, v_of_q) are checked every millisecond
        and, where one is exceeded by more than 0.2 %, its bound is tightened and the problem solved again.
    Raises:
        LimitError, before solving, for a motion that is impossible; SolveError, with the worst violations, if the
        solver fails; ShapeError, UnknownName, OrderError, ModelError for arguments that do not fit.
    """
    _check_robot(robot)
    names = robot.coordinate_names
    limits = _limits(robot, limits, scale, ignore)
    q_start, q_goal = (_vector(k, x, names) for k, x in (("q_start", q_start), ("q_goal", q_goal)))
    _check_numbers(continuity, nodes, interior, smoothing, limits)
    start = _end("start", q_start, (v_start, dv_start, d2v_start), continuity, names)
    goal = _end("goal", q_goal, (v_goal, dv_goal, d2v_goal), continuity, names)
    duration = _duration(objective, duration)
    task = Task(robot, limits, function(robot, "inverse_dynamics", order=1), start, goal, continuity, duration)
    if objective == "time" and task.rests and not np.any(task.distance):
        raise LimitError(
            "start and goal are the same and at rest: there is nothing to plan in the shortest time; "
            "to hold still, or to move and come back, give a duration and objective='effort'"
        )
    options = checked_options(solver, solver_options)
    refuse(task)
    if not task.moving.any():
        return _still(task)
    settings = {
        "nodes": nodes,
        "interior": (1 if objective == "effort" else 0) if interior is None else interior,
        "effort": objective == "effort",
        "smoothing": smoothing,
    }
    if initial is not None:
        _check_initial(initial, names)
    with _bar(progress) as bar:
        return _plan(task, settings, _Solver(solver, *options, bar), initial)


class _Solver:
    """The solver with its options, the bar it moves, and a log of what it did."""

    def __init__(self, name, outer, inner, bar):
        self.name, self.outer, self.inner, self.bar = name, outer, inner, bar
        self.iterations, self.status, self.objective = [], None, None
        self.begun = time.perf_counter()

    @property
    def seconds(self):
        return time.perf_counter() - self.begun

    def run(self, problem, guess, margins, multipliers=None, careful=False):
        """(unknowns, multipliers) of the solution; raises SolveError. careful: the second try of ipopt."""
        opti, inner = problem.opti, dict(self.inner)
        if self.name == "ipopt" and (multipliers is not None or careful):
            inner.update(_WARM if multipliers is not None else _CAREFUL)
        if problem.options != inner:  # the solver, with its Hessian, is built anew for new options
            opti.solver(self.name, dict(self.outer), inner)
            problem.options = inner
        if self.bar is not None:
            opti.callback(lambda i: self.bar.update())
        opti.set_value(problem.margin, margins)
        opti.set_initial(opti.x, guess)
        if multipliers is not None:
            opti.set_initial(opti.lam_g, multipliers)
        error = None
        try:
            opti.solve()
        except RuntimeError as caught:
            error = str(caught)
        try:
            stats = opti.stats()
        except RuntimeError:  # it did not even start
            reason = str(error).strip().splitlines()[-1]
            raise SolveError(f"solver {self.name!r} refused the problem or an option: {reason}") from None
        self.status = str(stats.get("return_status", stats.get("unified_return_status")))
        self.iterations.append(int(stats.get("iter_count", 0)))
        values = np.array(opti.debug.value(opti.x)).ravel()
        done = error is None and stats.get("success", False) and np.all(np.isfinite(values))
        if not done or problem.unpack(values)[0] <= 0:
            raise _failure(problem, values, self.status, self.iterations)
        self.objective = float(opti.value(opti.f))
        return values, np.array(opti.value(opti.lam_g)).ravel()


def _plan(task, settings, solver, initial):
    """Solve, check between nodes, tighten and solve again.

    Torque is the expensive part and often not what binds: a shortest time is first sought without it, and if that
    motion keeps all limits it is the optimum. If not, it is a bad start for the search with torque (on the Panda three
    times the iterations of a smooth motion within the limits), so that begins from the same guess as this.
    """
    rest = shortest_time(task.distance, task.limits.v, task.limits.dv, task.limits.d2v) if task.rests else [0.0]
    settings = {**settings, "shortest": float(np.max(rest))}
    for kinematic in [True, False] if _torque_can_wait(task, settings, initial) else [False]:
        motion = _rounds(task, settings, solver, kinematic, initial)
        shares = motion.info["shares"]
        if max(shares.values()) <= _TIGHTEN:
            return motion
    over = max(shares, key=shares.get)
    if shares[over] > 1.005:
        warnings.warn(
            f"between nodes {over} reaches {100 * shares[over]:.1f} % of its limit; use more nodes or interior points",
            ModelWarning,
            stacklevel=4,
        )
    return motion


def _torque_can_wait(task, settings, initial):
    limits = task.limits
    bounded = np.any([np.isfinite(getattr(limits, k)) for k in ("v", "dv", "d2v", "d3v")], axis=0)
    known = initial is not None and initial.solver_state is not None and not initial.solver_state.kinematic
    return not settings["effort"] and not known and bool(np.all(bounded[task.moving]))


@dataclass(frozen=True, eq=False)
class _State:
    """What a solved problem leaves for a warm start of one with the same shape."""

    shape: tuple
    kinematic: bool
    T: float  # that the unknowns are scaled by
    margins: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray


def _rounds(task, settings, solver, kinematic, initial):
    """The motion, its bounds tightened where limits that are held at points are exceeded between them."""
    n = len(task.names)
    shape = (n, task.continuity, kinematic, *settings.values(), task.duration)
    state = getattr(initial, "solver_state", None)
    if state is not None and state.shape[:-2] == shape[:-2]:  # shortest and duration may differ
        T, margins, guess, multipliers = state.T, state.margins, state.values, state.multipliers
    else:
        T, derivatives = _guess(task, settings, kinematic) if initial is None else _resampled(initial, task, settings)
        margins, guess, multipliers = np.ones(len(MARGINS) * n), None, None
    problem = transcribe(task, kinematic=kinematic, T=T, **settings)
    if guess is None:
        guess = problem.guess(derivatives, T)
    for _ in range(_ROUNDS):
        guess, multipliers = _patient_run(task, settings, solver, problem, guess, margins, multipliers)
        motion = _trajectory(task, problem, guess, solver)
        motion.solver_state = _State(shape, kinematic, T, margins, guess, multipliers)
        checked = motion.check(dt=min(1e-3, motion.duration / settings["nodes"] / 8))
        motion.info["shares"] = {row.quantity: row.share for row in checked.rows}
        reached = np.concatenate([checked.shares.get(k, np.zeros(n)) for k in MARGINS])
        if kinematic:
            reached[: 2 * n] = 0.0  # torque is not in this problem
        over = reached > _TIGHTEN
        if not over.any():
            break
        margins = margins / np.where(over, reached * 1.0002, 1.0)
    motion.info |= {"rounds": len(solver.iterations), "iterations": sum(solver.iterations), "seconds": solver.seconds}
    return motion


def _patient_run(task, settings, solver, problem, guess, margins, multipliers):
    """A run of the solver, and a second one from a slow guess where the first fails though a solution may exist."""
    try:
        return solver.run(problem, guess, margins, multipliers)
    except SolveError as error:
        if "infeasible" in str(error.status).lower() or error.status is None:
            raise
        T, derivatives = _guess(task, settings, problem.kinematic, slower=1.5)
        try:
            return solver.run(problem, problem.guess(derivatives, T), margins, careful=True)
        except SolveError as second:
            raise second from None


def _guess(task, settings, kinematic, slower=1.0):
    """(T, derivatives (c + 2, N + 1, n) at the nodes): a polynomial between the ends, just slow enough for the limits.

    Of a row of durations the first that keeps all limits is taken, else the one that exceeds them least.
    """
    T = task.duration or settings["shortest"]
    times = [T] if task.duration else T * 1.15 ** np.arange(30) if T > 0 else np.geomspace(0.02, 200.0, 60)
    best = (np.inf, None)
    for T in times:
        polynomial = hermite(*_smooth_ends(task), T)
        worst = _worst_share(task, _evaluated(polynomial, np.linspace(0, T, 41), 5), kinematic)
        if worst < best[0] * 0.999:
            best = (worst, T)
        if worst <= 1:
            break
    T = best[1] * (1.0 if task.duration else slower)
    polynomial = hermite(*_smooth_ends(task), T)
    return T, _evaluated(polynomial, np.linspace(0, T, settings["nodes"] + 1), task.continuity + 2)


def _smooth_ends(task):
    """Derivatives 0..c at the ends; those that are free count as zero."""
    shape = (task.continuity + 1, len(task.names))
    ends = np.zeros((2, *shape))
    for end, state in zip(ends, (task.start, task.goal), strict=True):
        end[: len(state)] = state
    return ends


def _evaluated(polynomial, t, count):
    """(count, K, n) derivatives of a polynomial by powers of t (k, n)."""
    derivatives = polynomial * np.array([factorial(j) for j in range(len(polynomial))])[:, None]
    return derivatives_at(np.repeat(derivatives[None], len(t), axis=0), t, count)


def _worst_share(task, derivatives, kinematic):
    """Largest share of a limit that a motion (5, K, n) reaches; without torque if kinematic."""
    t, robot = np.zeros(derivatives.shape[1]), None if kinematic else task.robot
    samples = Samples(t, list(derivatives), joints=task.names, units=(), robot=robot)
    return max(float(np.max(share)) for *_, share in quantities(samples, task.limits))


def _resampled(motion, task, settings):
    """(T, derivatives at the nodes) of a Trajectory, stretched to the duration where that is given."""
    T = task.duration or motion.duration
    samples = motion.sample(motion.t[0] + np.linspace(0, 1, settings["nodes"] + 1) * motion.duration)
    out = np.zeros((task.continuity + 2, *samples.q.shape))
    known = samples.derivatives[: len(out)]
    out[: len(known)] = known
    return T, out * (motion.duration / T) ** np.arange(len(out))[:, None, None]


def _trajectory(task, problem, values, solver):
    T, x, u = problem.unpack(values)
    pieces = _joined(task, T, *_continuous(task, T, x, u))
    info = {
        "robot": task.robot.name,
        "objective": "time" if problem.free_time else "effort",
        "objective_value": float(T) if problem.free_time else solver.objective,
        "solver": solver.name,
        "status": solver.status,
        "nodes": problem.nodes,
        "torque_limits_needed": not problem.kinematic,
        "request": {"start": task.start.tolist(), "goal": task.goal.tolist()},
    }
    return Trajectory(
        np.linspace(0.0, T, problem.nodes + 1),
        pieces,
        joints=task.names,
        units=joint_units(task.robot),
        robot=task.robot,
        limits=task.limits,
        info=info,
    )


def _joined(task, T, x, u):
    """Pieces (N, c + 2, n): q and its derivatives at the start of each, from Taylor coefficients."""
    h = T / len(u)
    pieces = np.concatenate([x[:-1], u[:, None]], axis=1)
    return pieces * np.array([factorial(j) / h**j for j in range(pieces.shape[1])])[None, :, None]


def _continuous(task, T, x, u):
    """The same x, u with the joins and both ends exact, which the solver meets to its tolerance: the smallest
    change of u that does it."""
    c, N = task.continuity, len(u)
    h = T / N
    A, b = shift(c + 1)[: c + 1, : c + 1], shift(c + 1)[: c + 1, c + 1]
    ends = (task.start, task.goal)
    start, goal = (np.array([s * h**j / factorial(j) for j, s in enumerate(state)]) for state in ends)
    x, u = x.copy(), u.copy()
    x[0, : len(start)] = start
    effect = np.zeros((N, c + 1))  # of u in each piece on the end
    effect[-1] = b
    for k in range(N - 2, -1, -1):
        effect[k] = A @ effect[k + 1]
    rows = float(N) ** np.arange(len(goal))
    for _ in range(3):
        for k in range(N):
            x[k + 1] = A @ x[k] + np.outer(b, u[k])
        miss = goal - x[-1, : len(goal)]
        u += np.linalg.lstsq(effect[:, : len(goal)].T * rows[:, None], miss * rows[:, None], rcond=None)[0]
    for k in range(N):
        x[k + 1] = A @ x[k] + np.outer(b, u[k])
    return x, u


def _still(task):
    """No joint may move: the motion that stays."""
    c = task.continuity
    pieces = np.zeros((1, c + 2, len(task.names)))
    pieces[0, 0] = task.start[0]
    info = {"robot": task.robot.name, "objective": "effort", "iterations": 0, "status": "held by limits of zero"}
    units = joint_units(task.robot)
    return Trajectory(
        [0.0, task.duration], pieces, joints=task.names, units=units, robot=task.robot, limits=task.limits, info=info
    )


def _failure(problem, values, status, iterations):
    """SolveError that tells what the last iterate, its pieces joined, violates, worst first."""
    task = problem.task
    message = f"the solver stopped with {status!r} after {sum(iterations)} iterations"
    T, x, u = problem.unpack(values)
    if not (np.all(np.isfinite(values)) and T > 0):
        return SolveError(f"{message}; the last iterate is no motion", status)
    motion = Trajectory(
        np.linspace(0.0, T, problem.nodes + 1),
        _joined(task, T, *_continuous(task, T, x, u)),
        joints=task.names,
        units=joint_units(task.robot),
        robot=task.robot,
        limits=task.limits,
    )
    found = _violations(motion)
    lines = "".join(f"\n  - {v}" for v in found[:8]) or "\n  none above 0.1 %: more iterations may help"
    message = f"{message}; largest violations of the last iterate (T = {T:.4g} s):{lines}"
    return SolveError(message, status, found, motion)


def _violations(motion):
    """Limits that a motion exceeds by more than 0.1 %, one Violation per joint and quantity, worst first."""
    samples = motion.both_sides(motion.duration / 400)
    out = []
    for quantity, value, low, high, _ in quantities(samples, motion.limits):
        over = np.maximum(value - high, low - value)
        for i, joint in enumerate(motion.joints):
            k = int(np.argmax(over[:, i]))
            limit = high[k, i] if value[k, i] > high[k, i] else low[k, i]
            share = over[k, i] / max(abs(limit), 1e-9)
            if over[k, i] > 0 and share > 1e-3:
                numbers = (float(x) for x in (samples.t[k], over[k, i], limit, share))
                out.append(Violation(joint, quantity, *numbers))
    return sorted(out, key=lambda v: -v.share)


# -- arguments --------------------------------------------------------------------------------------------------


def _check_robot(robot):
    unfit = [f"{j.name} ({j.kind})" for j in robot.joints if j.kind in ("spherical", "planar", "free")]
    if unfit or robot.nq == 0:
        problem = f"it has {', '.join(unfit)}" if unfit else "it has no moving joint"
        rule = "point-to-point planning is for joints with one coordinate each, whose rates are the velocities"
        raise ModelError(robot.name, [f"{rule}; {problem}"])


def _limits(robot, limits, scale, ignore):
    limits = Limits.of(robot) if limits is None else limits
    if not isinstance(limits, Limits):
        raise ShapeError(f"limits: got {type(limits).__name__}, expected Limits, as Limits.of(robot)")
    if limits.joints != robot.coordinate_names:
        raise ShapeError(
            f"limits are of joints {', '.join(limits.joints)}, but {robot.name} has {', '.join(robot.coordinate_names)}"
        )
    return limits.scaled(**(scale or {})).without(*((ignore,) if isinstance(ignore, str) else ignore))


def _vector(what, value, names):
    try:
        value = np.array(value, float).reshape(-1)
    except (TypeError, ValueError):
        raise ShapeError(f"{what}: got {value!r}, expected {len(names)} numbers") from None
    if value.size != len(names):
        raise ShapeError(f"{what}: got {value.size} values, expected {len(names)}: {', '.join(names)}")
    if not np.all(np.isfinite(value)):
        raise ShapeError(f"{what}: joint {names[int(np.argmin(np.isfinite(value)))]!r} is not a finite number")
    return value


def _check_numbers(continuity, nodes, interior, smoothing, limits):
    for what, value, least in (("continuity", continuity, 2), ("nodes", nodes, 1), ("interior", interior, 0)):
        if what == "interior" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            why = "; below 2 the torque itself would jump" if what == "continuity" else ""
            raise OrderError(f"plan_point_to_point: {what} is {value!r}, expected an integer of at least {least}{why}")
    if continuity > 8:
        raise OrderError(f"plan_point_to_point: continuity is {continuity}, it goes up to 8")
    if nodes < 2 * continuity + 2:
        raise OrderError(
            f"plan_point_to_point: {nodes} nodes cannot meet start and goal with continuity {continuity}; "
            f"give at least {2 * continuity + 2}"
        )
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise OrderError(f"plan_point_to_point: smoothing is {smoothing!r}, expected a number of at least 0")
    if continuity < 3 and np.isfinite(limits.d3v).any():
        raise OrderError("plan_point_to_point: with continuity 2 the jerk jumps; limits of d3v need continuity 3")


def _end(where, q, given, continuity, names):
    """(k, n) the fixed derivatives at one end."""
    given = [None if x is None else _vector(f"{order_name(k + 1)}_{where}", x, names) for k, x in enumerate(given)]
    if given[2] is not None and continuity < 3:
        raise OrderError(f"plan_point_to_point: d2v_{where} needs continuity 3 or more, with 2 the jerk jumps")
    if all(x is None or not np.any(x) for x in given):
        return np.array([q] + [np.zeros_like(q)] * continuity)
    last = 3 if given[2] is not None else 2
    return np.array([q] + [np.zeros_like(q) if x is None else x for x in given[:last]])


def _duration(objective, duration):
    if objective not in ("time", "effort"):
        raise UnknownName("objective", objective, ("time", "effort"))
    if objective == "time":
        if duration is not None:
            raise ShapeError("objective 'time' finds the duration; leave it out, or use objective='effort'")
        return None
    if duration is None or not (np.isfinite(duration) and duration > 0):
        raise ShapeError(f"objective 'effort' needs a duration in seconds, got {duration!r}")
    return float(duration)


def _check_initial(initial, names):
    if not isinstance(initial, Trajectory):
        raise ShapeError(f"initial: got {type(initial).__name__}, expected a Trajectory")
    if initial.joints != tuple(names):
        raise ShapeError(f"initial is of joints {', '.join(initial.joints)}, expected {', '.join(names)}")


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
