"""od.Problem: an optimal-control problem as it is written down, solved stage by stage.

ocp = od.Problem(nodes=50, duration=2.0)
q, v = ocp.state("q", 2, lower=-3, upper=3), ocp.state("v", 2)
tau = ocp.control("tau", 2, lower=-20, upper=20)
ocp.rate(q, v)
ocp.rate(v, forward_dynamics(q, v, tau))
ocp.start({q: q0, v: 0})
ocp.goal({q: q1, v: 0})
ocp.minimize(integral=ca.sumsqr(tau))
found = ocp.solve(method="collocation")
found[q]                                    # (51, 2)
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import compile
from ..errors import CheckWarning, LimitError, OrderError, ShapeError, SolveError, UnknownName
from ..friction import counts
from ..function import function
from ..interrupts import building, deadline
from ..kinematics.contact import contact_points
from ..model.joints import GROUPS
from ..model.robot import Robot, check_robot
from ..numbers import as_floats, shortened
from ..scene import Scene
from ..types import Executor, ExpressionLike, Guess, StrPath
from ..types import Numbers as Values
from ..validation import check_within, count, flag, name_of, numbers, one_of, options_of
from ..validation import expression as expression_of
from . import avoid as obstacles
from . import bernstein, chains, ends, manifolds, names, refinement, solution_file, words
from . import mesh as meshes
from .as_text import as_text
from .contact_motion import ContactBody, check_guess, of_problem
from .description import Body, Constraint, Description, Numbers, Parameter, Variable, Within
from .failures import explained
from .infeasible import first_contradiction
from .initial import begin
from .integrators import chosen_method
from .moving import movable
from .not_finite import refused
from .opti import ProblemOpti, found_by, opti_of
from .opti_symbols import OptiSymbols
from .packing import packed, packed_numbers, unpacked
from .polynomials import later
from .scaling import Scaling, report
from .solution import Solution
from .solver import and_then, checked_options, first_success, ipopt_instead, safer, solve, solvers
from .stage_derivatives import HESSIANS
from .starts import best_of
from .transcription import Transcribed, pattern

_FREE = re.compile(r"variables \[([^\]]*)\] are free")  # of CasADi's message


class Problem:
    """Optimal-control problem on `nodes` intervals; see the module for how it is written.

    duration: of the (first) phase [s], a number, or (lower, upper) for a free one. nominal: the duration that a free
    one is scaled by and guessed as, by default the geometric mean of its bounds, on a free mesh nearest to that where
    intervals can add up to both bounds, which are at most 40 apart for that.
    mesh: "uniform" for intervals of equal length. Breakpoints (nodes + 1,), increasing from 0 to 1: shares of the
    duration of the phase that have passed at its nodes. "free": each interval has a length of its own, 0.1 to 4 times
    that of the nominal duration, an unknown: what switches does so at a node, and no unknown couples all intervals. It
    is for one phase; bounds of the duration tighter than those of the intervals are kept by a state "clock", the share
    of the nominal duration that has passed.
    start_time: of the motion [s], a number, or (lower, upper) for a free one; what `time` begins at.
    reusable: durations are parameters of the stages, so that problems which with_mesh makes of this one, on other
    intervals or in other durations, share what is built and differentiated.
    Symbols are casadi.MX, and expressions of them may call any Function; the derivatives registered with those are
    used.
    It can be pickled, with its Solutions: symbols are made anew then, so that names stand for them on the other side,
    as in found["q"] and parameters={"mass": 2}. Guesses that are functions become tables of their values.
    """

    def __init__(
        self, nodes: int, duration: float | tuple[float, float], *, mesh: str | Values = "uniform",
        nominal: float | None = None, reusable: bool = False, start_time: float | tuple[float, float] = 0.0,
    ) -> None:  # fmt: skip
        self._states, self._controls, self._parameters, self._varying = [], [], [], []
        self._durations, self._phases, self._repeated = [], [], []
        self._share = ca.MX.sym("share")  # of a phase that an interval takes: stages do not depend on the number
        self._ahead = ca.MX.sym("ahead")  # zero; marks what is said at a node of a later time in its interval
        self._start_rows, self._goal_rows, self._terminal = [], [], []
        self._chains, self._splines, self._bodies, self._bernstein, self._named = [], [], [], [], {}
        kind, breakpoints = meshes.checked(mesh, ("uniform", "free"))
        self._relative_length = ca.MX.sym("relative_length") if kind == "free" else None
        self.numbers = Numbers()  # guesses and fixed ends, read at every solve
        self._revision, self._made = 0, {}  # whatever changes the description raises the revision
        meshes.begin(self, nodes, duration, nominal, flag("Problem: reusable", reusable), breakpoints)
        words.begin_time(self, start_time)

    # -- what there is --------------------------------------------------------------------------------------

    def state(
        self, name: str, size: int = 1, *, lower: ExpressionLike = -np.inf, upper: ExpressionLike = np.inf,
        scale: Values | None = None, guess: Guess = 0.0, manifold: str | Robot | None = None,
    ) -> ca.MX:  # fmt: skip
        """Symbol (size, 1) of a state. lower, upper: bounds at all nodes, numbers, or expressions of parameters and
        variables, which become limits of all phases. scale: size of a typical value, by default
        the larger bound, or 1. guess: (size,), (nodes + 1, size), or a function of the share of the time passed.

        manifold: "unit_quaternion" (w, x, y, z), whose rate is the angular velocity (3,) in the body's axes; "pose",
        quaternion and position (7,), whose rate is the body twist, angular and linear (6,); or a Robot, q (nq,) with
        the rate v (nv,). It stays there whatever the method, and a start or goal of it means a rotation, either sign of
        a quaternion being the same. Its guess is by default the point without displacement.
        """
        if manifold is not None:
            return manifolds.state(self, name, size, lower, upper, scale, guess, manifold)
        return self._variable(self._states, name, size, lower, upper, scale, guess)

    def control(
        self, name: str, size: int = 1, *, lower: ExpressionLike = -np.inf, upper: ExpressionLike = np.inf,
        scale: Values | None = None, guess: Guess = 0.0,
    ) -> ca.MX:  # fmt: skip
        """Symbol (size, 1) of what may be chosen freely on every interval, as state."""
        return self._variable(self._controls, name, size, lower, upper, scale, guess)

    def parameter(self, name: str, size: int = 1) -> ca.MX:
        """Symbol (size, 1) whose value is given to solve."""
        return self._symbol(self._parameters, "parameter", name, size)

    def varying(self, name: str, size: int = 1) -> ca.MX:
        """Symbol (size, 1) whose values (N + 1, size), or (size,) for all nodes, are given to solve with those of the
        parameters: one row for every node of all phases, that of an interval being the row of its start."""
        return self._symbol(self._varying, "varying", name, size)

    def chain(
        self, name: str, size: int, order: int, *, lower: Values = -np.inf, upper: Values = np.inf,
        bounds: Sequence[Values | None] = (), scale: Values | None = None,
        guess: Guess | Sequence[Guess] | None = None, basis: str = "taylor",
    ) -> list[ca.MX]:  # fmt: skip
        """[q, dq, ..., d^order q], q a polynomial on every interval whose derivative of that order is constant, stepped
        exactly. Rates of other states that read it hold its values constant over an interval; see rate.

        lower, upper: bounds of q. bounds: largest absolute values of dq, d2q, ..., None for none. scale: typical values
        of all, q first. guess: of q, or a list of those of q, dq, ...; see state.
        basis: "taylor": states are q and its derivatives at nodes, where their bounds hold; the last is a control.
        "b_spline": states are control points of a spline, and bounds hold for those of its derivatives, so everywhere;
        the guess is that of q, which has no bounds but by limit.
        "bernstein": states are Taylor coefficients of the intervals, stepped by a constant linear map however long
        these are, and bounds hold for Bernstein coefficients, so everywhere, but for what start and goal fix. For one
        phase. The scale is that of q, by default its way from start to goal; the guess by default the polynomial that
        joins what is fixed there. What it returns are no states, but can be used like them, in start and goal up to the
        order before the last, and limits on it may be held within intervals (at).
        """
        return chains.add(self, name, size, order, lower, upper, bounds, scale, guess, basis)

    def _step(self, chain):
        for x, after in zip(chain[:-1], self.between(chain, 1), strict=False):
            self.next(x, after)

    def between(self, chain: Sequence[ca.MX], share: float) -> list[ca.MX]:
        """[x, x', ...] of a chain ("taylor") a share of the interval behind its start, for limits and costs there."""
        if isinstance(share, (int, float)) and share == 0:
            return list(chain)
        return later(chain, share * self.step + self._ahead)

    def coefficients(self, chain: Sequence[ca.MX]) -> list[ca.MX]:
        """Unknowns of a bernstein chain, Taylor coefficients over their scales, about 1 on a typical motion.

        The last is constant on intervals. They are for costs that regularise."""
        for made in self._bernstein:
            if chain[0] is made.outputs[0]:
                return list(made.coefficients)
        raise UnknownName("bernstein chain", shortened(chain), [c.name for c in self._bernstein])

    def rigid_body(
        self, robot: Robot, transcription: str = "inverse", *, derivatives: str = "analytic", guess: Guess = 0.0,
        scale: Sequence[Values] | None = None, friction: bool = True,
    ) -> tuple[ca.MX, ca.MX, ca.MX, ca.MX]:  # fmt: skip
        """(q, v, dv, tau) of a robot whose v is the rate of q, as states, controls and the dynamics between them.

        transcription: "inverse": accelerations are the controls, tau an expression; "forward": torques are. The former
        usually takes fewer iterations and tolerates coarser grids. Bounds are for the caller to add by limit.
        With spherical, planar or free joints q (nq,) is a state on the robot's manifold, v (nv,) its velocity.
        scale: typical values of q, v and the control. derivatives: as those of od.function. friction: whether tau
        includes the damping and the smoothed Coulomb friction of the robot's joints.
        """
        check_robot("rigid_body", robot)
        friction = counts(robot, flag("rigid_body: friction", friction))
        manifold = robot if set(GROUPS) & robot.features else None
        n, scale = robot.nv, (None,) * 3 if scale is None else scale
        guesses = guess if isinstance(guess, (list, tuple)) else [guess, 0.0, 0.0]
        for what, some in (("guess", guesses), ("scale", scale)):
            if len(some) != 3:
                told = f"got {len(some)}; a guess of q alone is an array"
                raise ShapeError(f"rigid_body: {what}: expected three, of q, v and the control, {told}")
        q = self.state("q", 1 if manifold else n, guess=guesses[0], scale=scale[0], manifold=manifold)
        v = self.state("v", n, guess=guesses[1], scale=scale[1])
        self.rate(q, v)
        if transcription == "inverse":
            dv = self.control("dv", n, guess=guesses[2], scale=scale[2])
            tau = function(robot, "inverse_dynamics", derivatives=derivatives, friction=friction)(q, v, dv)
        elif transcription == "forward":
            tau = self.control("tau", n, guess=guesses[2], scale=scale[2])
            dv = function(robot, "forward_dynamics", derivatives=derivatives, friction=friction)(q, v, tau)
        else:
            raise UnknownName("transcription", transcription, ("inverse", "forward"))
        self.rate(v, dv)
        self._named |= {"dv": dv, "tau": tau}
        return q, v, dv, tau

    def contact_body(
        self, robot: Robot, frames: Sequence[str] = (), *, guess: Guess | Sequence[Guess] | None = None,
        scale: Sequence[float] = (1, 5, 50, 100),
    ) -> ContactBody:  # fmt: skip
        """ContactBody: q, v, dv, tau and forces f at the origins of frames, of a robot on joints of any kind.

        v' and f are the controls; q and v are stepped on the manifold, in the phases to come too. tau is an expression,
        to be limited to zero where there is no motor, and f where there is no contact.
        guess: of q, by default robot.neutral(), or a list of those of q, v, dv and f, column by column; see state.
        scale: typical values of these. Raises UnknownName for a frame.
        """
        contact_points(robot, frames)  # raises for what is wrong with the frames
        frames, guess = tuple(frames), robot.neutral() if guess is None else guess
        guesses = guess if isinstance(guess, (list, tuple)) else (guess, 0.0, 0.0, 0.0)
        if len(guesses) != 4 or np.shape(scale) != (4,):
            raise ShapeError("contact_body: expected four guesses and four scales, of q, v, dv and f")
        check_guess(robot, guesses[0])
        add = {"q": (self.state, robot.nq), "v": (self.state, robot.nv), "dv": (self.control, robot.nv)}
        add |= {"f": (self.control, 3 * len(frames))} if frames else {}
        made = [
            one(name, size, guess=guess, scale=typical)
            for (name, (one, size)), guess, typical in zip(add.items(), guesses, scale, strict=False)
        ]
        q, v, dv, f = made if frames else (*made, ca.MX(0, 1))
        body = ContactBody(robot, frames, q, v, dv, ca.reshape(f, 3, len(frames)), self)
        self._bodies.append(body)
        self._step_body(body)
        return body

    def _step_body(self, body):
        for state, after in zip((body.q, body.v), body.next(), strict=False):
            self.next(state, after)

    @property
    def duration(self) -> ca.MX | float:
        """Symbol or number: duration of the phase now described. OrderError for a free one on a free mesh, where it is
        the sum of the lengths of the intervals, which no symbol stands for: see time, and minimize(integral=1)."""
        meshes.check_duration(self)
        return self._durations[-1].value

    @property
    def nominal(self) -> ca.MX | float:
        """Symbol or number: what the duration of the phase now described is scaled by [s]."""
        return self._durations[-1].nominal

    @property
    def relative_step(self) -> ca.MX | float:
        """Length of an interval of the phase now described over that of an interval of the nominal duration."""
        if self._relative_length is not None:
            return self._relative_length
        duration = self._durations[-1]
        return duration.value / duration.nominal if duration.relative is None else duration.relative

    @property
    def step(self) -> ca.MX | float:
        """Length of an interval of the phase now described."""
        mean = self._durations[-1].mean_step(self._share)
        return mean if self._relative_length is None else mean * self._relative_length

    def phase(
        self, nodes: int, duration: float | tuple[float, float], *, nominal: float | None = None,
        mesh: str | Values = "uniform",
    ) -> Problem:  # fmt: skip
        """From here on rates, limits and costs are those of one more phase behind the ones there are.

        Chains and contact bodies go on as they are; all else that is to hold in this phase has to be said again. mesh:
        "uniform" or breakpoints, see Problem.
        """
        _, breakpoints = meshes.checked(mesh, ("uniform",))
        if self._splines:
            raise OrderError("Problem: a b_spline chain has knots at equal times, so it is for one phase; use taylor")
        if self._bernstein or self._relative_length is not None:
            what = "a bernstein chain is" if self._bernstein else "a free mesh is"
            advice = "use taylor and a uniform mesh, and with_mesh(mesh='free') in the end where nodes are to move"
            raise OrderError(f"Problem: {what} for one phase; {advice}")
        reusable = self._durations[0].nominal_step is not None
        meshes.add_phase(self, nodes, duration, nominal, reusable, breakpoints)
        for chain in self._chains:
            self._step(chain)
        for body in self._bodies:
            self._step_body(body)
        words.go_on(self)
        return self

    def variable(
        self, name: str, size: int = 1, *, lower: Values = -np.inf, upper: Values = np.inf,
        scale: Values | None = None, guess: Values = 0.0,
    ) -> ca.MX:  # fmt: skip
        """Symbol (size, 1) of an unknown with one value for the whole motion, as state. guess: (size,) or one."""
        return words.variable(self, name, size, lower, upper, scale, guess)

    @property
    def time(self) -> ca.MX:
        """Symbol of the time [s], from the start_time on, for rates, limits, costs and ends: a state "time" of rate 1,
        made when it is first asked for."""
        return words.time(self)

    def integral(
        self, expression: ExpressionLike, lower: ExpressionLike | None = None, upper: ExpressionLike | None = None,
        *, name: str | None = None, scale: Values | None = None, guess: Guess | None = None,
    ) -> ca.MX:  # fmt: skip
        """Symbol of the integral up to now of an expression (n, 1) over the phase now described, from 0 on: a state.

        lower, upper: bounds of its value at the end, numbers or expressions of parameters and variables. In other
        phases it keeps its value, unless its rate is said there. name: by default "integral", "integral_2", ...
        guess: as state, by default a straight line to its bound. What it reads of chains is as in rate.
        """
        return words.integral(self, expression, lower, upper, name, scale, guess)

    def periodic(self, *states: Any) -> None:
        """Let states, or expressions of them, end with the value that they start with: periodic(x, v), or
        periodic({x: shift}) where they end that much later; a shift may be an expression of parameters or variables.

        The q of a contact body ends at robot.integrate(q at the start, shift): quaternions mean the same with either
        sign."""
        words.periodic(self, *states)

    def at(self, values: dict[Any, Any], *, fraction: float | None = None, time: float | None = None) -> None:
        """{expression: value, or (lower, upper)} at one node of the phase now described, as start and goal.

        fraction: of its duration, on a free mesh of its intervals, 0 for its first node. time [s]: of that node, as
        solution.t, where durations are fixed. Raises ShapeError where there is no node, which names the nearest ones.
        """
        words.at(self, values, fraction, time)

    # -- what holds -----------------------------------------------------------------------------------------

    def rate(self, state: ca.MX, expression: ExpressionLike) -> None:
        """Time derivative of a state, of one on a manifold its velocity.

        States with a next value, as those of chains and contact bodies, keep the value of an interval's start in it
        until its end: what a rate makes of them is of order 1, whatever the method. Solution.check() tells how far it
        is off; on a uniform mesh the error shrinks with the intervals, on a free one OrderError is raised, as lengths
        would be chosen to make use of it. Write q, dq, ... by rates where others depend on them.
        """
        self._say("rates", state, expression)

    def next(self, state: ca.MX, expression: ExpressionLike) -> None:
        """Value of a state at the next node, instead of its rate: a step on a manifold, an exact step, a map."""
        self._say("steps", state, expression)

    def join(self, state: ca.MX, expression: ExpressionLike) -> None:
        """Value of a state at the start of the next phase, by default what it is at the end of this one."""
        self._say("join", state, expression)

    def limit(
        self, lower: ExpressionLike, expression: ExpressionLike, upper: ExpressionLike, *, name: str = "",
        at: float | Sequence[float] | None = None, last: float | Sequence[float] = (),
        soft: tuple[float, float] | None = None,
    ) -> ca.MX | None:  # fmt: skip
        """lower <= expression <= upper at every node of the phase, and where else controls that it depends on are free;
        at the last node of all if it is free of controls.

        Bounds are numbers or arrays, or expressions of parameters, variables or others, which are taken from what they
        bound: its rows are then those of the lower bounds, with 0 for them, above those of the upper ones. name: what
        messages and Solution.check() call it, and bound.
        soft: (linear, quadratic) lets it be broken by s, for a cost of the integral of linear s + quadratic s^2, with a
        row for every finite lower bound above those of the upper ones. Returns s, a control called "NAME_slack", or
        "slack", "slack_2", ... for limits without a name; where controls are constant on intervals, it is what is
        missing at their starts, and nothing is said of the last node.
        at: fraction or fractions of every interval where it holds instead, 0 its start and 1 its end, in front of what
        jumps there; last: those of the last interval alone, besides. That is for expressions of chains ("taylor",
        "bernstein"), contact bodies, the time, variables, parameters, and controls that are constant on intervals,
        which are known there; OrderError for others. Rows that bernstein chains decide by what is fixed at an end are
        left out.
        """
        x = expression_of("limit", expression)
        at, last = None if at is None else self._shares("at", at), self._shares("last", last)
        name = name_of("limit", name) if name != "" else ""
        x, lower, upper = words.moved("limit", x, lower, upper)
        low, high = self._bounds("limit", lower, upper, x.numel())
        row = Constraint(x, low, high, name)
        if name in names.quantities(self):
            raise ShapeError(f"limit: {name!r} is the name of a chain or its derivative; choose another")
        slack = None
        if soft is not None:
            row, slack = words.softened(self, row, soft)
        if at is None and not last:
            self._add("rows", row)
            return slack
        places = [(share, False) for share in at or ()]
        places += [(share, True) for share in last if share not in (at or ())]
        label = name or f"limit {len(self._phases[-1].within)}"
        self._add("within", *(Within(row, share, of_last, (label, share)) for share, of_last in places))
        return slack

    def avoid(
        self, scene: Scene, q: ExpressionLike, clearance: ExpressionLike = 0.0, *, robot: Robot | None = None,
        t: ExpressionLike | None = None, poses: ExpressionLike | Mapping[str, ExpressionLike] | None = None,
        method: str | None = None, soft: tuple[float, float] | None = None,
        at: float | Sequence[float] | None = None, last: float | Sequence[float] = (),
    ) -> ca.MX:  # fmt: skip
        """Keep the pairs of a scene apart by clearance [m] and their margins, in the phase now described, as limit.

        q (nq,): expression of the robot's coordinates. robot: by default that which the scene was read from. t: of
        obstacles whose poses are Functions of the time, by default `time`. poses: of those whose poses come in, as
        parameters of model-predictive control: (4, 4 m) in the order of scene.moving, or {name: (4, 4) or its columns
        one after the other (16,)}. method: of the quantity "distances". soft, at, last: as for limit.
        Returns the distances (pairs,) [m]. There is a limit for every pair, called "gripper - table" after its shapes,
        which bound changes. Derivatives are analytic but of transform joints.
        Raises ShapeError for what does not fit, UnknownName for links that the robot does not have, and for
        names of pairs left out that neither it nor the scene has.
        """
        limit = {"soft": soft, "at": at, "last": last}
        return obstacles.avoid(self, scene, q, clearance, robot, t, poses, method, limit)

    @staticmethod
    def _shares(what, given):
        """Fractions of an interval as a tuple of floats, from one or several."""
        values = as_floats(f"limit: {what}", given)
        if values.ndim > 1 or not np.all((values >= 0) & (values <= 1)):
            raise ShapeError(f"limit: {what} is {shortened(given)}, expected fractions of an interval from 0 to 1")
        return tuple(values.ravel().tolist())

    def bound(self, name: str, lower: Values, upper: Values) -> None:
        """New bounds of a limit, by its name, or of a bernstein chain, by that of q, d1q, ...; from the next solve on.
        What has a bound keeps one, and what has none gets none: that decides which constraints there are."""
        rows = [row for p in self._phases for row in (*p.rows, *(w.constraint for w in p.within if w.fixed is None))]
        known = {row.name: (row.lower, row.upper) for row in rows if row.name} | self.numbers.bounds
        if name not in known:
            raise UnknownName("limit or chain with bounds", name, sorted(known))
        old = known[name]
        if any(row.name == name and row.lower.size != old[0].size for row in rows):
            problem = f"several limits of different sizes are called {name!r}; give them names of their own"
            raise ShapeError(f"bound: {problem}")
        new = tuple(self._bounds(name, lower, upper, old[0].size))
        if any(np.any(np.isfinite(a) != np.isfinite(b)) for a, b in zip(old, new, strict=True)):
            raise ShapeError(f"bound: {name!r} is bounded elsewhere; give finite bounds for those that are finite now")
        for where in ("start", "goal") if name in names.quantities(self) else ():
            if (fixed := getattr(self.numbers, where).get(name)) is not None:
                check_within(where, name, fixed, new[0], new[1], relative=True)
        self.numbers.bounds[name] = new

    def start(self, values: dict[Any, Any]) -> None:
        """{state or expression: value, or (lower, upper)} at the first node; values may be parameters."""
        ends.said(self, values, self._start_rows, "start")

    def goal(self, values: dict[Any, Any]) -> None:
        """{state or expression: value, or (lower, upper)} at the last node; values may be parameters."""
        ends.said(self, values, self._goal_rows, "goal")

    def minimize(
        self, *cost: Any, integral: ExpressionLike | None = None, terminal: ExpressionLike | None = None,
        squares: ExpressionLike | None = None, mean: ExpressionLike | None = None, points: int | None = None,
        maximum: ExpressionLike | None = None,
    ) -> None:  # fmt: skip
        """Add to the cost: the integral of a rate, a cost of the last node, or the integral of half the sum of squares
        of `squares`, which hessian="gauss_newton" makes use of.

        points: of an integral, for expressions as those of limit(at=...): it is summed on every interval by a
        Gauss-Lobatto rule with so many interior points, on a uniform mesh what counts at the end counting at the start
        of the next. Without points the rule is that of the method, for which chains and contact bodies stay as they are
        at the start of an interval; on a free mesh integrals and squares of them get points of their own.
        mean: a cost at the starts of intervals, each counted with its share of the phase's duration, on a free mesh of
        their number; OrderError where it reads controls that change within intervals. maximum: of an expression, the
        largest value of its rows over the phase, where limits hold: a variable "maximum" above them."""
        if cost:
            raise ShapeError("minimize: say what kind of cost it is: integral=, terminal=, squares=, mean= or maximum=")
        if maximum is not None:
            words.keep_below(self, maximum)
        if mean is not None:
            self._add("means", self._scalar("mean", mean))
        if points is not None:
            points = count("minimize: points", points, 0, 20)
            self._add("sums", (self._scalar("integral", integral), points))
        elif integral is not None:
            self._add("integrals", self._scalar("integral", integral))
        if squares is not None:
            self._add("squares", expression_of("minimize squares", squares))
        if terminal is not None:
            self._terminal.append(self._scalar("terminal", terminal))
            self._revision += 1

    def guess(self, values: Mapping[Any, Guess]) -> None:
        """{state or control, or its name: guess}, as of state, or {q of a bernstein chain: guess}, as of chain; from
        the next solve on."""
        if not isinstance(values, dict):
            raise ShapeError(f"guess: got {shortened(values)}, expected {{state or control: guess}}")
        known = [*self._states, *self._controls]
        for key, guess in values.items():
            named = key if isinstance(key, str) else next((v.name for v in known if v.symbol is key), None)
            chain = next((c for c in self._bernstein if key is c.outputs[0] or key == c.name), None)
            if chain is not None:
                self.numbers.guess[chain.name] = bernstein.checked_guess(chain.name, guess, chain.order)
                continue
            if named not in [v.name for v in known]:
                raise UnknownName("state or control of the problem", shortened(key), [v.name for v in known])
            of = next(v for v in known if v.name == named)
            guess = self._guess(named, guess)
            self.numbers.guess[named] = manifolds.checked_guess(named, of.manifold, guess) if of.manifold else guess

    # -- solving --------------------------------------------------------------------------------------------

    def solve(
        self, *, method: Any = "rk4", solver: str = "ipopt", hessian: str = "exact",
        parameters: Mapping[Any, Values] | None = None, initial: Solution | None = None,
        solver_options: Mapping[str, Any] | None = None, compiled: bool | Callable[..., Any] = False,
        raises: bool = True, check: str = "warn", time_limit: float | None = None, starts: int = 1, seed: int = 0,
        executor: str | Executor = "serial", tolerance: float | None = None, rounds: int = 15, most_nodes: int = 5000,
    ) -> Solution:  # fmt: skip
        """Solution of the problem.

        method: "rk4", "euler", "collocation", "trapezoidal", "hermite_simpson", "radau", "gauss", "implicit",
        or one of integrators.py, as radau(degree=4).
        solver: "ipopt", which solves most; "uno" (its interior-point preset), "fatrop", "sqpmethod" (with piqp). Where
        fatrop fails, ipopt solves in its place, unless the caller's own max_iter ran out; info["tries"] says so. Other
        solvers of this CasADi can be named, too, with derivatives by AD, but most serve for few problems: see
        results/suite_solvers. hessian: "exact", "gauss_newton", "limited_memory" (ipopt only).
        parameters: {symbol or name: value}, those that vary along the nodes included. initial: a Solution to start
        from, of any mesh, method or number of phases: what has the same name is taken from it, a CheckWarning tells
        what has to be guessed; of the same problem and method with its multipliers.
        compiled: True compiles the stages by od.compile; or a function [Functions] -> [Functions] of one's own. raises:
        SolveError if the solver fails, which names what cannot hold together and the rows violated most, with the last
        iterate as its solution; or at once, with the status "infeasible", where bounds, ends and parameters rule out
        every motion by themselves.
        check: what happens if Solution.check() finds an error above 1e-3 of a scale, such as a limit that is broken
        between the nodes: "warn" (a CheckWarning), "raise" (SolveError, with the solution in it) or "off".
        time_limit [s]: of the solver, which it stops at the next iteration, with the status "time_limit"; od.deadline
        counts what is built before, too, and stops that where `raises`, with an error that has no solution.
        starts: from the guess, and from so many less one random ones about it, the same for the same seed: smooth in
        time, within bounds or as large as scales. The best solution is returned; its local_optima are the (objective,
        status, iterations) of all of them in order. executor: where they run, see oc_dyn.executors.
        tolerance: solve on one mesh after the other, each from the solution before, until Solution.error says that the
        states of all intervals are within it, relative to their scales, and the objective, relative to its size, or
        absolutely where that is below 1, and two meshes agree on it; where they contradict its estimate of the
        objective, what halving every interval changes counts alone. See refinement. The Solution is that of the last
        mesh, its problem one with that mesh, and `rounds` tell of all. Where `rounds`, most_nodes (intervals) or the
        time_limit, which is that of all rounds then, run out, it is the best one there is: its status begins with
        "tolerance not reached" and tells why and what is left, success is False, and a CheckWarning says so (an error
        with check="raise", nothing with "off"). raises: is about the solver, where not one round succeeds.
        """
        one_of("check", check, ("warn", "raise", "off"))
        one_of("hessian", hessian, ("exact", "gauss_newton", "limited_memory"))
        one_of("NLP solver", solver, solvers())
        if initial is not None and not isinstance(initial, Solution):
            raise ShapeError(f"initial: got {shortened(initial)}, expected a Solution of this or another Problem")
        how = {"method": method, "solver": solver, "hessian": hessian, "parameters": parameters, "initial": initial}
        how |= {"solver_options": solver_options, "compiled": compiled, "time_limit": time_limit}
        starts, seed = count("solve: starts", starts, 1, 10**6), count("solve: seed", seed)
        if raises:
            with building():
                made = self._program(method, compiled, hessian)
            self._refuse_infeasible(made, {} if parameters is None else parameters)

        def first(problem, how):
            if starts > 1:
                return best_of(problem, starts, seed, executor, how)
            return Solution(problem, *problem._found(**how))

        if tolerance is None:
            solution = first(self, how)
        else:
            asked = refinement.checked(self, tolerance, rounds, most_nodes, how)
            solution = refinement.refined(self, asked, how, first)
        if refinement.ran_out(solution):
            refinement.tell(solution, check)
            return solution
        if raises:
            self._refuse_failed(solution, solver, initial)
        if solution.success and check != "off":
            if told := meshes.at_an_end(self, solution):
                warnings.warn(f"Problem.solve: {told}", CheckWarning, stacklevel=2)
            seen = solution.check()
            if not seen.ok() and check == "raise":
                raise SolveError(f"the solution fails its check: {seen.summary()}", "check", solution=solution)
            if not seen.ok():
                how = "more nodes, another method, or tolerance= for a mesh that is refined"
                warnings.warn(f"Problem.solve: {seen.summary()}; {how}", CheckWarning, stacklevel=2)
        return solution

    def _refuse_failed(self, solution, solver, initial):
        """SolveError for a solution of a solver that failed."""
        if solution.success:
            return
        message = explained(solution, solver, solution.transcribed.guess(initial))
        if missed := meshes.out_of_reach(self):
            message += f"; {missed}"
        raise SolveError(message, solution.status, solution.worst_rows(), solution=solution)

    @staticmethod
    def _refuse_infeasible(made, parameters):
        """SolveError where bounds, ends and parameters contradict each other."""
        made.parameters(parameters)  # raises for what is wrong with them
        if told := first_contradiction(made, parameters):
            raise SolveError(f"no motion can keep what is asked for: {told}; nothing was solved", "infeasible")

    def _program(self, method, compiled, hessian):
        """What solve works on: without Hessians where the solver approximates them itself."""
        return self.transcribed(method, compiled, hessian=hessian if hessian == "limited_memory" else None)

    def _found(self, method, solver, hessian, parameters, initial, solver_options, compiled, time_limit):
        """(Transcribed, SolverResult, what the solver was given); see solve."""
        solver_options = options_of("solver_options", solver_options)
        made = self._program(method, compiled, hessian)
        free_time = made.description.free_time
        outer, inner = checked_options(solver, solver_options, free_time=free_time)
        p = made.parameters({} if parameters is None else parameters)
        given = {"p": p, **made.bounds}
        if initial is None:
            given["x0"] = made.guess(None)
        else:
            start, options = begin(made, initial, given, solver, solver_options)
            given = given | start
        if solver == "fatrop" and (found := refused(made, given)):
            return made, found, given
        with deadline(time_limit):
            tries = {"warm start": inner | options} if initial is not None and options else {}
            tries |= {"start": inner, **safer(solver, inner, solver_options)}
            run = partial(solve, made.assembly, solver, hessian, outer, given=given)
            found = first_success(run, tries)
            if not found.success and (another := ipopt_instead(solver, found.status, solver_options, free_time)):
                run = partial(solve, made.assembly, "ipopt", hessian, given=given)
                found = and_then(found, run, another)
            return made, found, given

    def opti(
        self, *, method: Any = "rk4", hessian: str = "exact", parameters: Mapping[Any, Values] | None = None,
        initial: Solution | None = None, solver_options: Mapping[str, Any] | None = None,
        compiled: bool | Callable[..., Any] = False,
    ) -> tuple[ProblemOpti, OptiSymbols]:  # fmt: skip
        """(opti, symbols): the same nonlinear program as a casadi.Opti, with ipopt set up, to be extended as one likes.

        opti, symbols = ocp.opti(method="collocation")
        opti.subject_to(ca.sumsqr(symbols["tau"][:, 3]) <= 5)      # columns are nodes
        opti.minimize(opti.f + 0.1 * ca.sumsqr(symbols[v][:, -1]))
        found = ocp.solution(opti.solve())

        symbols: see OptiSymbols. Bounds, guesses and values of parameters are set, as they are now; opti.set_initial
        and opti.set_value change them. Arguments as of solve. Derivatives: see ProblemOpti.
        """
        one_of("hessian", hessian, ("exact", "gauss_newton", "limited_memory"))
        if initial is not None and not isinstance(initial, Solution):
            raise ShapeError(f"initial: got {shortened(initial)}, expected a Solution of this or another Problem")
        made = self.transcribed(method, compiled)
        given = {"p": made.parameters({} if parameters is None else parameters), **made.bounds}
        options = options_of("solver_options", solver_options)
        return opti_of(self, made, hessian, {**given, "x0": made.guess(initial)}, options)

    def solution(self, opti_solution: Any) -> Solution:
        """Solution from what solve() of an Opti of opti() returned; of the last iterate from the Opti itself, or from
        its opti.debug, where it failed.

        The objective is that of the Opti; where the user has changed it, check() does not compare it with the costs of
        this Problem, and error tells nothing of it. Multipliers are those of the Problem's own bounds and rows.
        ShapeError for anything else.
        """
        program, result, given, changed = found_by(self, opti_solution)
        solution = Solution(self, program.made, result, given)
        solution.objective_changed, solution.constraints_changed = changed["objective"], changed["constraints"]
        return solution

    def load(self, path: StrPath, *, method: Any = None) -> Solution:
        """Solution of this problem from a file of Solution.save. On another mesh it is one of with_mesh of that mesh.

        method: the one it was solved by, where that is a function of one's own. Raises FileError for a file that is
        damaged, or of a problem with other names, sizes, bounds, scales or equations, which are named."""
        return solution_file.load(path, self, method, Solution, refinement.rounds_of)

    def with_mesh(
        self, nodes: int | Sequence[int | None] | None = None, duration: float | tuple[float, float] | None = None,
        nominal: float | None = None, *, mesh: str | Values | Sequence[Any] | None = None,
    ) -> Problem:  # fmt: skip
        """The same problem on other intervals, and in another duration: a Problem with ends, bounds and guesses of its
        own, which can be changed without those of this one. It shares its symbols, and what is built for it.

        nodes: number of intervals, by default as many as the mesh has; of several phases a list, one each, None for as
        before. mesh: "uniform", the default where nodes are given, or breakpoints as those of a Problem; of several
        phases a list. "free" lets nodes move within each phase of any problem but for bernstein and b_spline chains: an
        interval is 0.1 to 4 times as long as without, what switches does so at a node, and a state "clock" counts the
        phases, 1 each; nodes with values of their own stay, as do durations and their symbols. Lengths make use of
        errors of coarse meshes, too, which check() and error tell. duration: as it is by default, for one phase;
        nominal: of a free one, by default as that of a new Problem if the duration is given. Guesses that are tables
        are interpolated."""
        if isinstance(mesh, str) and mesh == "free":
            given = (nodes, duration, nominal)
            return movable(self if given == (None,) * 3 else meshes.with_mesh(self, *given, None))
        return meshes.with_mesh(self, nodes, duration, nominal, mesh)

    def transcribed(
        self, method: Any = "rk4", compiled: bool | Callable[..., Any] = False, graph: str = "mx",
        hessian: str | None = None,
    ) -> Transcribed:  # fmt: skip
        """The nonlinear program of the problem by a method of integration, made once; see solve.

        graph: "sx" builds stages scalar by scalar, which is quicker to build where no Function in use has registered
        derivatives. hessian: the one that solve will be asked for, if no other is to be built; a program that has all
        serves, too.
        """
        if hessian is not None:
            one_of("hessian", hessian, (*HESSIANS, "limited_memory"))
        compiled, method = compile if compiled is True else compiled or None, chosen_method(method)
        description = self.description
        # complete: a description is all that the stages are made of; ends, guesses and parameters are read at every
        # solve
        key = (method, compiled, self._revision, graph, pattern(description, self.numbers))
        hessians = HESSIANS
        if hessian is not None and key not in self._made:
            hessians = tuple(x for x in HESSIANS if x == hessian)
            key = (*key, hessians)
        if key not in self._made:
            try:
                self._made[key] = Transcribed(description, self.numbers, method, compiled, graph, hessians)
            except RuntimeError as error:  # CasADi knows which symbols are nobody's
                foreign = _FREE.search(str(error))
                if foreign is None:
                    raise
                raise ShapeError(
                    f"Problem: rates, limits or costs have symbols that are not this problem's: {foreign.group(1)}; "
                    "its own come from state, control, parameter, variable, varying and the like"
                ) from None
        return self._made[key]

    def describe(self) -> str:
        """The problem as mathematics, in plain text: costs, unknowns with their bounds, dynamics and limits of each
        phase, start and goal, parameters. Functions are called by their names; an expression that would be longer than
        a line is written f(x, u), of the symbols that it reads."""
        return as_text(self.description, self.numbers)

    def scaling(self, *, method: Any = "rk4", parameters: Mapping[Any, Values] | None = None) -> Scaling:
        """Scaling at the guess: for each state, control, limit, equation and the cost its scale, typical value and the
        largest derivative by scaled unknowns, with hints for what is off by more than 1000. Printing it gives a table;
        Solution.scaling() is the same at a solution."""
        made = self.transcribed(method)
        given = made.parameters({} if parameters is None else parameters)
        return report(made, made.guess(None), given, "the guess")

    @property
    def description(self) -> Description:
        """Description of the problem as it is now: the same value until something of it changes."""
        key = "description", self._revision  # complete: whatever changes a description raises the revision
        if key not in self._made:
            self._made = {key: self._described()}  # what was made of an earlier one is not asked for any more
        return self._made[key]

    # -- inside ---------------------------------------------------------------------------------------------

    def __getstate__(self):
        """What another process can read: Functions and numbers, without symbols, which are made anew there."""
        key = "packed", self._revision  # complete: whatever changes a description raises the revision
        description = self.description
        if key not in self._made:
            self._made[key] = packed(description)
        return {**self._made[key], "numbers": packed_numbers(self.numbers, description)}

    def __setstate__(self, state):
        self._take(unpacked(state), state["numbers"])
        # as it came: written anew it may be in another order, and no longer the same to a digest
        self._made["packed", self._revision] = {k: x for k, x in state.items() if k != "numbers"}

    def _take(self, description, numbers):
        """Be the Problem that a description is of: its tuples are lists here."""
        for f in (f for f in fields(description) if f.repr and f.name not in ("bodies", "fixed")):
            value = getattr(description, f.name)
            made = {tuple: list, MappingProxyType: dict}.get(type(value), lambda x: x)(value)
            setattr(self, f"_{f.name}", made)
        self._chains, self._splines = ([list(x) for x in some] for some in (self._chains, self._splines))
        self.numbers, self._revision, self._made = numbers, 0, {("description", 0): description}
        self._bodies = [of_problem(self, k) for k in range(len(description.bodies))]

    def as_described(self, description: Description) -> Problem:
        """The Problem that a description is of: this one, or another where this one has changed since."""
        if description is self.description:
            return self
        other = object.__new__(type(self))
        other._take(description, self.numbers)
        return other

    def _described(self):
        fixed = {where: frozenset(getattr(self.numbers, where)) for where in ("start", "goal")}
        return Description(
            states=tuple(self._states),
            controls=tuple(self._controls),
            parameters=tuple(self._parameters),
            varying=tuple(self._varying),
            durations=tuple(self._durations),
            phases=tuple(self._phases),
            share=self._share,
            ahead=self._ahead,
            start_rows=tuple(self._start_rows),
            goal_rows=tuple(self._goal_rows),
            terminal=tuple(self._terminal),
            chains=tuple(map(tuple, self._chains)),
            splines=tuple(map(tuple, self._splines)),
            bodies=tuple(Body(b.robot, b.frames, b.q, b.v, b.dv, b.f) for b in self._bodies),
            fixed=MappingProxyType(fixed),
            named=MappingProxyType(dict(self._named)),
            bernstein=tuple(self._bernstein),
            relative_length=self._relative_length,
            repeated=tuple(self._repeated),
            start_time=self._start_time,
        )

    def _add(self, what, *added):
        """More rows, integrals or squares of the phase now described."""
        self._phases[-1] = self._phases[-1].with_more(what, *added)
        self._revision += 1

    def _say(self, what, state, expression):
        """A rate, step or join of a state in the phase now described."""
        number = self._number(state)
        size = self._states[number].rate_size if what == "rates" else state.numel()
        self._phases[-1] = self._phases[-1].with_state(what, number, self._column(expression, state, size))
        self._revision += 1

    def _symbol(self, into, what, name, size):
        name, size = name_of(what, name), count(f"{what} {name!r}: size", size, 1)
        names.claim(self, what, name)
        self._revision += 1
        into.append(Parameter(name, ca.MX.sym(name, size)))
        return into[-1].symbol

    @staticmethod
    def _scalar(what, value):
        value = expression_of(f"minimize {what}", value)
        if value.numel() != 1:
            raise ShapeError(f"minimize: {what} has {value.numel()} values, expected one; squares takes several")
        return value

    def _variable(self, into, name, size, lower, upper, scale, guess):
        name, size = name_of("Problem", name), count(f"{name!r}: size", size, 1)
        names.claim(self, "state" if into is self._states else "control", name)
        if isinstance(lower, ca.MX) or isinstance(upper, ca.MX):
            return words.bounded(self, into, name, size, lower, upper, scale, guess)
        lower, upper = self._bounds(name, lower, upper, size)
        scaled = scale is not None
        if scale is None:
            larger = np.maximum(np.abs(lower), np.abs(upper))
            scale = np.where(np.isfinite(larger) & (larger > 0), larger, 1.0)
        scale = numbers(f"{name}: scale", scale, size)
        if not np.all((scale > 0) & np.isfinite(scale)):
            raise ShapeError(f"{name}: scale is {shortened(scale.tolist())}, expected positive numbers")
        self._revision += 1
        self.numbers.guess[name] = self._guess(name, guess)
        into.append(Variable(name, ca.MX.sym(name, size), lower, upper, scale, scaled))
        return into[-1].symbol

    @staticmethod
    def _guess(name, guess):
        return guess if callable(guess) else np.array(as_floats(f"guess of {name}", guess))  # a copy

    @staticmethod
    def _bounds(what, lower, upper, size):
        both = [numbers(f"{what}: {end} bound", b, size) for end, b in (("lower", lower), ("upper", upper))]
        if np.any(both[0] > both[1]) or np.any(np.isnan(both)):
            i = int(np.argmax(~(both[0] <= both[1])))
            raise LimitError(f"{what}: row {i} has the lower bound {both[0][i]:g} above the upper one {both[1][i]:g}")
        return both

    def _number(self, symbol):
        for k, v in enumerate(self._states):
            if v.symbol is symbol:
                return k
        raise UnknownName("state of the problem", shortened(symbol), [v.name for v in self._states])

    def _column(self, expression, state, size):
        expression = expression_of(str(state), expression)
        if expression.numel() == 1 and size > 1 and not ca.symvar(expression):
            expression = ca.repmat(expression, size, 1)
        if expression.numel() != size:
            of = "" if size == state.numel() else ", the velocity of its manifold in the body's axes"
            raise ShapeError(f"rate, next or join of {state}: got {expression.numel()} rows, expected {size}{of}")
        return expression


def load_solution(path: StrPath, problem: Problem, *, method: Any = None) -> Solution:
    """Solution of a Problem from a file of Solution.save; see Problem.load."""
    if not isinstance(problem, Problem):
        raise ShapeError(f"load_solution: got {shortened(problem)}, expected a Problem")
    return problem.load(path, method=method)
