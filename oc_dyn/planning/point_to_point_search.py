"""How plan_point_to_point searches: solve, check between nodes, tighten and solve again, on finer pieces if need be."""

import time
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ModelError, SolveError
from ..interrupts import TIME_LIMIT, building
from ..optimal_control.solver import INSTEAD, ipopt_instead, safer, solve
from .arguments import MOST_NODES
from .feasibility import rest_to_rest, torque_can_wait
from .followers import check_motion, with_followers
from .guess import resampled, smooth_motion
from .motion import failure, solved
from .motion_problem import FOLLOWERS, MARGINS, KindOfMotion, motion_problem, split_margins
from .quantities import DYNAMIC, QUANTITIES
from .report import ReportRow, report
from .separate_joints import NAME as SEPARATE
from .separate_joints import SeparateMotion, covers, least_time, watch_of
from .tightening import tighten, worst

_TIGHTEN = 1.0008  # share of a limit between nodes from which its bound is tightened
_CLEAN = 1.005  # share up to which a motion counts as within a limit
_BULGE = 1.03  # share of a limit between nodes from which torques are bounded there, too
_ROUNDS = 8
# from a motion within the limits to the shortest time on equal pieces: multipliers by the barrier instead of 1, which
# sends the first ten iterations to three times the duration and back; two thirds of the iterations in all
_FASTEST = {
    "bound_mult_init_method": "mu-based",
    "mu_init": 1e-3,
    "adaptive_mu_globalization": "kkt-error",
    "alpha_for_y": "bound-mult",
    "fast_step_computation": "yes",  # 5 % of all time; where a step is not good enough the second try is without it
}
_WARM = {
    "warm_start_init_point": "yes",
    "mu_init": 1e-6,
    "warm_start_bound_push": 1e-8,
    "warm_start_slack_bound_push": 1e-8,
    "warm_start_mult_bound_push": 1e-8,
}
_CAREFUL = {"mu_strategy": "monotone", "mu_init": 1e-2}
_NEAR = {"mu_strategy": "monotone", "mu_init": 1e-4, "bound_mult_init_method": "mu-based"}  # another cost
_MOST_NEAR = 250
_SHARP, _LONGER = 1e-3, 5e-5  # share of the smoothing, of the time, see _sharpened
_SHARPENED, _POLISHED = "less smoothing", "polished at this time"
_WARM_START, _START, _SLOW_START = "warm start", "start", "slow start, safer options"  # names of tries


class PlanSolver:
    """The solver with its options, of which the caller `asked` for some, the bar it moves, and a log of what it did:
    iterations of every run, and tries, [name, status, iterations]."""

    def __init__(self, name, outer, inner, hessian, bar, asked=None):
        self.name, self.outer, self.inner, self.hessian, self.bar = name, outer, inner, hessian, bar
        self.asked = {str(key).removeprefix(f"{name}."): value for key, value in (asked or {}).items()}
        self.iterations, self.status, self.tries, self.replaced = [], None, [], False
        self.begun = time.perf_counter()

    def becomes_ipopt(self, status, free_time):
        """Whether ipopt goes on in place of fatrop, which has failed with a status, for all that follows."""
        another = ipopt_instead(self.name, status, self.asked, free_time)
        if another is None:
            return False
        self.name, self.replaced, (self.outer, self.inner) = "ipopt", True, another
        return True

    @property
    def seconds(self):
        """Since the search began."""
        return time.perf_counter() - self.begun

    def run(self, problem, guess, margins, multipliers=None, careful=False, near="", lengths=None):
        """(unknowns, multipliers) of the solution; raises SolveError. careful: the second try. near: name of a
        try from a solution of another cost. lengths (N,): of the pieces of a free mesh, relative, that are kept."""
        warm = multipliers is not None
        inner = self._options(problem, warm, careful)
        if near and self.name == "ipopt":
            inner = inner | _NEAR | {"max_iter": min(_MOST_NEAR, inner["max_iter"])}
        given = {"x0": guess, **problem.given(margins)}
        if lengths is not None:
            given |= {side: problem.with_lengths(given[side], lengths) for side in ("x0", "lbx", "ubx")}
        if warm:
            given |= dict(zip(("lam_x0", "lam_g0"), multipliers, strict=True))
        found = solve(problem.made.assembly, self.name, self.hessian, self.outer, inner, given, self.bar)
        self.status, self.seconds_of = found.status, found.seconds
        self.iterations.append(found.iterations)
        what = near or (_SLOW_START if careful else _WARM_START if warm else _START)
        what, self.replaced = INSTEAD if self.replaced else what, False
        self.tries.append([what, found.status, found.iterations])
        values = found.x
        done = found.success and np.all(np.isfinite(values))
        if not done or np.any(problem.unpack(values)[0] <= 0):
            raise failure(problem, values, self.status, self.iterations)
        return values, (found.lam_x, found.lam_g)

    def _options(self, problem, warm, careful):
        """Options of the solver; those that were asked for stay, but for ipopt's barrier of a warm start and of a
        second try."""
        inner, ipopt = self.inner, self.name == "ipopt"
        if careful:
            inner = next(iter(safer(self.name, inner, self.asked).values()), inner)
            return inner | _CAREFUL if ipopt else inner
        if not ipopt:
            return inner
        ours = _FASTEST if problem.kind.mesh == "uniform" else {}
        ours = {key: x for key, x in ours.items() if key not in self.asked}
        return inner | ours | (_WARM if warm else {})


def plan(task, settings, solver, initial):
    """(motion, its Report) of the search from `initial`.

    On a free mesh, whose program has many optima, some percent apart, that may end in a later one than the search from
    a smooth motion: both are made, and the shorter motion is kept.
    """
    if initial is None or settings["mesh"] != "free":
        return _searched(task, settings, solver, initial)
    found, errors = [], []
    for start in (initial, None):
        try:
            found.append(_searched(task, settings, solver, start))
        except SolveError as error:
            errors.append(error)
            if error.status == TIME_LIMIT:
                break
    if not found:
        raise errors[-1]
    motion, checked = min(found, key=lambda x: (x[1].worst > _CLEAN, x[0].duration))
    return told(motion, solver), checked


def _searched(task, settings, solver, initial):
    """(motion, its Report): solve, check between nodes, tighten and solve again.

    Limits of torque are the expensive part and often not what binds: the optimum is first sought without them, and if
    it keeps them it is the optimum. If not, it is a bad start for the search with torque (on the Panda three
    times the iterations of a smooth motion within the limits), so that begins from the same guess as this.
    """
    rest = rest_to_rest(task.limits, task.distance) if task.rests else [0.0]
    settings = {**settings, "shortest": float(np.max(rest))}
    found = []
    for kinematic in [True, False] if torque_can_wait(task, settings, initial) else [False]:
        motion, checked, doubt = _apart(task, settings, solver) if kinematic else (None, None, None)
        if motion is None:
            try:
                motion, checked = _tightened(task, settings, solver, kinematic, initial)
            except SolveError as error:
                if doubt is None or "infeasible" not in str(error.status).lower():
                    raise
                raise doubt from error  # both say so, this one by which joint
        if checked.worst <= _TIGHTEN:
            *within, held_up = _sharpened(task, settings, solver, motion, checked)
            found.append(within)
            if not (held_up and kinematic):
                break
    if found:
        return min(found, key=lambda x: x[0].duration)
    refinements = settings["refinements"]
    while checked.worst > _CLEAN and refinements > 0 and 2 * settings["nodes"] <= MOST_NODES:
        settings, refinements = {**settings, "nodes": 2 * settings["nodes"]}, refinements - 1
        motion, checked = _tightened(task, settings, solver, motion.solver_state.kinematic, motion)
    return _sharpened(task, settings, solver, motion, checked)[:2]


def _sharpened(task, settings, solver, motion, checked):
    """(motion, its Report, whether a shorter one exceeds a limit): shorter by what the smoothing costs on a free mesh.

    There the time is traded against the smoothing of the highest derivative, 0.4 to 7 % of it. So that is taken back to
    a thousandth from the solution, which is easier to find with it; and then the pieces are made 5e-5 longer and kept,
    and the motion on them is smoothed as asked for. What fails, or comes out no better, leaves the motion as it was.
    """
    state = motion.solver_state
    if settings["mesh"] != "free" or task.continuity < 3 or not settings["smoothing"] or state.values is None:
        return motion, checked, False
    held_up = False
    for sharp in (True, False):
        rounds = Rounds(task, settings, solver, state.kinematic, motion)
        if rounds.multipliers is None:
            break
        try:
            found = rounds.sharpen() if sharp else rounds.polish()
        except SolveError as error:
            if error.status == TIME_LIMIT:
                raise
            break
        allowed = motion.duration * (1.0 if sharp else 1 + 2 * _LONGER)
        if found[0].duration > allowed or found[1].worst > max(checked.worst, _TIGHTEN):
            held_up = sharp and found[0].duration < motion.duration
            break
        motion, checked = found
    return told(motion, solver), checked, held_up


def told(motion, solver):
    """The motion, with what the solver did in its info."""
    motion.info |= {"rounds": len(solver.iterations), "iterations": sum(solver.iterations), "seconds": solver.seconds}
    motion.info["tries"] = [list(x) for x in solver.tries]
    return motion


def _apart(task, settings, solver):
    """(motion, its Report, None) without limits of torque, joints apart; (None, None, None or the SolveError that says
    that there is none) where they share more than the time, where a solver was asked for, or where that fails.

    A search that finds no time proves nothing: it looks at some times alone, in each of which rounding may let it fail.
    """
    if not (settings["apart"] and covers(task, settings)):
        return None, None, None
    watch, count = watch_of(solver)
    try:
        found = least_time(task, settings, watch)
    except SolveError as error:
        solver.tries.append([SEPARATE, error.status, count[0]])
        solver.iterations.append(count[0])
        if error.status == TIME_LIMIT:  # its iterates are no motions: that from which it would have gone on by ipopt
            guess, pieces = smooth_motion(task, settings, kinematic=True), SeparateMotion(task, settings["nodes"])
            raise failure(pieces, np.append(*guess), TIME_LIMIT, count) from None
        return None, None, error if error.status == "infeasible" else None
    solver.status = "Solve_Succeeded"  # as ipopt says, whichever solves
    solver.tries.append([SEPARATE, solver.status, count[0]])
    solver.iterations.append(count[0])
    motion = solved(task, SeparateMotion(task, settings["nodes"]), np.append(*found), solver)
    motion.info["solver"] = SEPARATE
    ends = np.array([task.start[0], task.goal[0]])
    followers = _rows_of_followers(task)
    motion.solver_state = _State((), True, False, 0, ends, motion.duration, None, None, None, followers=followers)
    checked = _report(motion, settings)
    return told(motion, solver), checked, None


def _report(motion, settings):
    """The Report of a motion, whose shares its info tells."""
    dt = min(1e-3, motion.duration / settings["nodes"] / 8)
    try:
        check_motion("plan_point_to_point", motion, dt)
        checked = with_followers(report(motion, motion.limits, dt, unlimited=False), motion, dt)
    except ModelError:  # where loops open on the way another motion is looked for, with the limits of all joints
        if not motion.solver_state.kinematic or motion.solver_state.followers is None:
            raise
        open_ = ReportRow("q", np.inf, motion.joints[0], 0.0, 0.0, 0.0)
        checked = report(motion, motion.limits.without(*DYNAMIC), dt, unlimited=False)  # there are no torques
        checked = replace(checked, rows=(*checked.rows, open_))
    motion.info["shares"] = {}
    for row in checked.rows:
        motion.info["shares"][row.quantity] = max(row.share, motion.info["shares"].get(row.quantity, 0.0))
    motion.info["shares"] |= {k: 0.0 for k in DYNAMIC if k not in motion.info["shares"]}
    return checked


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
    apart: object = None  # what of a scene is in the problem
    followers: tuple | None = None  # limits of joints that follow, (quantity, number of the joint)


class Rounds:
    """Rounds of solving for tighten: bounds are tightened where limits that are held at points are exceeded between."""

    more = ()  # of what makes problems alike
    within = _TIGHTEN

    def __init__(self, task, settings, solver, kinematic, initial):
        self.task, self.settings, self.solver, self.kinematic = task, settings, solver, kinematic
        self.initial, self.problem = initial, None
        self.shape = (*_shape(task, settings, kinematic), *self.more)
        self.ends = np.array([task.start[0], task.goal[0]])
        state = getattr(initial, "solver_state", None)
        alike = state is not None and state.shape == self.shape
        margins, self.guess, self.multipliers = np.ones(_margins(task)), None, None
        if alike and _near(task, state, self.ends):
            self.T, margins, self.guess, self.multipliers = state.T, state.margins, state.values, state.multipliers
        else:
            self.T, derivatives = self._begun(initial)
        self.margins = split_margins(task, margins)
        interior = settings["interior"]
        if interior is None:
            interior = state.interior if alike else 0
        both_sides = task.continuity == 2 and state is not None and state.both_sides
        asked = {k: settings[k] for k in ("mesh", "smoothing", "derivatives")}
        self.kind = KindOfMotion(interior, kinematic, both_sides=both_sides, **asked)
        self.problem = self._problem()
        if self.guess is None:
            self.guess = self.problem.guess(derivatives, self.T)

    def _begun(self, initial):
        """(T, derivatives) to begin with."""
        task, settings = self.task, self.settings
        return smooth_motion(task, settings, self.kinematic) if initial is None else resampled(initial, task, settings)

    def _problem(self):
        """The MotionProblem; a limit of time that passes meanwhile leaves the last motion, or what the search would
        have begun with."""
        settings = {k: self.settings[k] for k in ("nodes", "shortest", "compiler")}
        try:
            with building():
                return motion_problem(self.task, self.kind, T=self.T, **settings)
        except SolveError as error:
            if error.status != TIME_LIMIT:
                raise
            last = self.problem, self.guess
            if self.problem is None:
                last = SeparateMotion(self.task, settings["nodes"]), np.append(*self._begun(self.initial))
            raise failure(*last, TIME_LIMIT, self.solver.iterations) from None

    def _change(self, **what):
        """Go on with a problem of another kind, which has more rows."""
        self.kind, before = replace(self.kind, **what), self.problem
        self.problem = self._problem()
        self.multipliers = self.problem.carried(self.multipliers, before)

    def tightened(self):
        """(motion, its Report) of the last round."""
        limits = {"within": _TIGHTEN, "excess": 1.0002, "rounds": _ROUNDS}
        return tighten(self.solve, self.measure, self.margins, **limits).result

    def solve(self, margins, _):
        """(motion, its Report)."""
        margins = _in_a_row(margins)
        found = _patient_run(self.task, self.settings, self.solver, self.problem, self.guess, margins, self.multipliers)
        self.guess, self.multipliers = found
        return self._looked_at(margins)

    def _looked_at(self, margins):
        """(motion, its Report) of the unknowns that were found."""
        kind, found = self.kind, (self.guess, self.multipliers)
        motion = solved(self.task, self.problem, self.guess, self.solver)
        kept = self.shape, self.kinematic, kind.both_sides, kind.interior, self.ends, self.T
        motion.solver_state = _State(*kept, margins, *found, followers=_rows_of_followers(self.task))
        return motion, _report(motion, self.settings)

    def sharpen(self):
        """(motion, its Report) with next to no smoothing, from this one."""
        kept = self.kind
        self._change(smoothing=_SHARP * kept.smoothing)
        margins = _in_a_row(self.margins)
        try:
            self.guess, self.multipliers = self.solver.run(self.problem, self.guess, margins, near=_SHARPENED)
        except SolveError as error:
            if error.status == TIME_LIMIT:
                raise
            self.guess, self.multipliers = self.solver.run(self.problem, self.guess, margins, self.multipliers)
        found = self._looked_at(margins)
        return self.tightened() if found[1].worst > _TIGHTEN and not self.kinematic else found

    def polish(self):
        """(motion, its Report) on pieces that are a little longer and kept."""
        margins = _in_a_row(self.margins)
        lengths = self.problem.made.relative_lengths(self.guess) * (1 + _LONGER)
        given = {"near": _POLISHED, "lengths": lengths}
        self.guess, self.multipliers = self.solver.run(self.problem, self.guess, margins, **given)
        return self._looked_at(margins)

    def measure(self, result):
        """Shares of the limits that have margins; None where the problem has changed instead."""
        _, checked = result
        task, none = self.task, np.zeros(len(self.task.names))
        known = {k: checked.shares.get(k, none) for k in MARGINS}
        if task.followers is not None:
            known[FOLLOWERS] = checked.shares.get(FOLLOWERS, np.zeros(len(task.followers.rows)))
        if self.kinematic:
            less = {} if task.followers is None else {FOLLOWERS: 0 * known[FOLLOWERS]}
            return known | less | {"tau": none, "dtau": none}  # they are not in this problem
        if worst(known) <= _TIGHTEN:
            return known
        if task.continuity == 2 and not self.kind.both_sides and (known["dtau"] > _TIGHTEN).any():
            self._change(both_sides=True)  # the rate jumps at nodes, and is too high in front of one
            return None
        bulges = max(known["tau"].max(), known["dtau"].max()) > _BULGE
        may = task.continuity > 2 and self.kind.mesh != "fixed" and self.settings["interior"] is None
        if may and bulges and not self.kind.interior:
            self._change(interior=2)  # a smaller bound at nodes would make all of the motion slower
            return None
        return known


def _in_a_row(margins):
    return np.concatenate([margins[k] for k in (*MARGINS, FOLLOWERS) if k in margins])


def _margins(task):
    return len(MARGINS) * len(task.names) + (0 if task.followers is None else len(task.followers.rows))


def _rows_of_followers(task):
    return None if task.followers is None else task.followers.rows


def _tightened(task, settings, solver, kinematic, initial):
    """(motion, its Report)."""
    rounds = Rounds(task, settings, solver, kinematic, initial)
    motion, checked = rounds.tightened()
    return told(motion, solver), checked


def _near(task, state, ends):
    """Whether the multipliers of a solved problem are worth more than the motion alone."""
    reach = np.abs(task.distance).max()
    return task.duration in (None, state.T) and np.abs(ends - state.ends).max() <= 0.05 * reach


def _shape(task, settings, kinematic):
    """What makes unknowns and constraints the same in number and meaning."""
    limits = task.limits
    finite = np.isfinite([limits.bounds(k) for k in QUANTITIES])
    kept = tuple(settings[k] for k in ("nodes", "interior", "mesh"))
    ends = (len(task.start), len(task.goal), limits.v_of_q is None)
    return (task.continuity, kinematic, *kept, *ends, task.moving.tobytes(), finite.tobytes(), _rows_of_followers(task))


def _patient_run(task, settings, solver, problem, guess, margins, multipliers):
    """A run of the solver; where that fails though a solution may exist, of ipopt in place of fatrop, and one from a
    slow guess."""
    try:
        return solver.run(problem, guess, margins, multipliers)
    except SolveError as error:
        if error.status in (None, TIME_LIMIT) or "infeasible" in str(error.status).lower():
            raise
        if solver.becomes_ipopt(error.status, problem.free_time):
            return _patient_run(task, settings, solver, problem, guess, margins, None)
        T, derivatives = smooth_motion(task, settings, problem.kinematic, slower=1.5)
        try:
            return solver.run(problem, problem.guess(derivatives, T), margins, careful=True)
        except SolveError as second:
            raise second from None
