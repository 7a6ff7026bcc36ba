"""The Problem of a point-to-point motion: a chain of integrators with Bernstein bounds, limits of torque within pieces.

The motion has N pieces, polynomials of degree c + 1, c times continuously differentiable. Limits of q and its
derivatives hold everywhere; torque and torque rate are bounded at nodes, on both sides where they jump, and at points
between them. What differs between tasks on one robot, positions, limits and durations, are numbers, so that the stages
of a kind of task are built once a robot.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..function import function
from ..model.cache import cached
from ..optimal_control.avoid import distances
from ..optimal_control.mesh import LONGEST, SHORTEST
from ..optimal_control.polynomials import lobatto
from ..optimal_control.problem import Problem
from ..scene import Scene
from .limits import velocity_bounds
from .quantities import KINEMATIC, QUANTITIES

_OF_ACCELERATION, _OF_LAST = 5.0, 0.03  # of smoothing, in the shortest time: found by trying, see _roughness
_NEAR_END = 0.1  # [rad or m] from an end, in which what pairs keep grows to what is wanted
MARGINS = ("tau", "dtau", "v_of_q")  # bounds that can be tightened, as they are held at points only
FOLLOWERS = "followers"  # another one, of robots with loops: of the limits of joints that follow


@dataclass(frozen=True)
class KindOfMotion:
    """What decides the stages of a motion besides its robot, limits that there are, and joints that move.

    interior: points between nodes where torque is bounded. kinematic: leave limits of torque out. mesh: "uniform" or
    "free" pieces, the time minimised; or "fixed" ones in a given time, the squared torque minimised. smoothing: weight
    of the mean squares of Taylor coefficients, scaled to about 1, see _roughness. both_sides: with c = 2, where the
    torque rate jumps at nodes, bound it on both sides, not on the one behind them alone. derivatives: of the dynamics,
    "ad" or "analytic". near: None, or a Scene whose pairs are kept apart, at `places` of the pieces; eased: by less
    near the start and the goal, which keep less themselves. clock: whether the time is a state, as for what moves.
    """

    interior: int
    kinematic: bool
    mesh: str
    smoothing: float
    both_sides: bool
    derivatives: str
    near: Scene | None = None
    places: tuple = (0.0,)
    eased: bool = False
    clock: bool = False


@dataclass(eq=False)
class MotionProblem:
    """The Problem of a task, transcribed. nodes: number of pieces. chain: its ChainNumbers, of the joints that move.
    apart (P,) [m]: what the pairs of kind.near are to keep, None without. eased (2, P) [m]: how much less of it at the
    start and at the goal, if kind.eased."""

    task: object
    kind: KindOfMotion
    problem: Problem
    made: object
    chain: object
    apart: np.ndarray | None = None
    eased: np.ndarray | None = None

    nodes = property(lambda self: self.made.total)
    kinematic = property(lambda self: self.kind.kinematic)
    free_time = property(lambda self: self.kind.mesh != "fixed")
    holds_followers = property(lambda self: not self.kind.kinematic and self.task.followers is not None)

    def guess(self, derivatives, T):
        """Unknowns from derivatives (c + 2, N + 1, n) of q at equally spaced nodes of a motion of duration T."""
        nominal, free_mesh = self.chain.T, self.kind.mesh == "free"
        length = nominal / self.nodes if free_mesh else None
        x, u = self.chain.unknowns(derivatives[:, :, self.task.moving], T, length)
        x = x.reshape(len(x), -1)
        if self.kind.clock:
            x = np.column_stack([x, np.linspace(0, T, len(x))])
        return self.made.packed(x, u, [T], np.full(self.nodes, T / nominal))

    def with_lengths(self, values, lengths):
        """Unknowns, or bounds of them, with relative lengths (N,) of the pieces of a free mesh in place."""
        out = np.array(values, float)
        out[self.made.assembly.first[1:-1] - 1] = lengths
        return out

    def unpack(self, values):
        """(h (N,), x (N + 1, c + 1, n), u (N, n)): lengths of the pieces [s], derivatives 0..c of q at the nodes and
        the next one in the pieces."""
        task, m = self.task, int(self.task.moving.sum())
        own, controls, durations = self.made.values(values)
        own = own[:, : own.shape[1] - self.kind.clock]  # without the time
        h = self.made.steps(durations, self.made.relative_lengths(values))
        mean = self.chain.T / self.nodes if self.kind.mesh == "free" else h[0]
        found = self.chain.derivatives(own.reshape(len(own), -1, m), controls, mean)
        x = np.zeros((self.nodes + 1, task.continuity + 1, len(task.names)))
        u = np.zeros((self.nodes, len(task.names)))
        x[:, 0] = task.start[0]
        x[:, :, task.moving], u[:, task.moving] = found
        return h, x, u

    def given(self, margins):
        """{p, lbx, ubx, lbg, ubg} for margins: shares of the limits that may be used, as split_margins has them."""
        task = self.task
        use = split_margins(task, margins)
        values = {
            "held": task.start[0],
            "tau_unit": task.limits.unit("tau"),
            "dtau_unit": task.limits.unit("dtau"),
            "v_unit": task.limits.unit("v"),
            "v_use": use["v_of_q"],
        }
        if self.kind.eased:
            values |= {"arrival": task.goal[0], "eased": self.eased.ravel()}
        for name, quantities in (("torque", ("tau", "dtau")), ("torque rate", ("dtau",))):
            if any(w.label[0] == name for w in self.made.phases[0].within):
                ends = [[x * use[k] for x in _shares(task.limits, k)] for k in quantities]
                kept = [task.limits.bounded(k) for k in quantities]
                self.problem.bound(name, *(_rows([x[side] for x in ends], kept) for side in (0, 1)))
        if self.holds_followers:
            values["follower_unit"] = task.followers.unit()
            self.problem.bound(FOLLOWERS, *task.followers.bounds(use[FOLLOWERS]))
        if self.apart is not None:
            for (a, b), least in zip(self.kind.near.pairs, self.apart, strict=True):
                self.problem.bound(row_of(a, b), least, np.inf)
        return {"p": self.made.parameters(values), **self.made.bounds}

    def carried(self, multipliers, other):
        """Multipliers of another problem with the same unknowns as multipliers of this one, zero where rows are new."""
        return self.made.carried(multipliers, other.made)


def motion_problem(task, kind, *, nodes, T, shortest, compiler=None):
    """MotionProblem of a Task on so many pieces. T: duration, or one near the shortest, which is at least `shortest`.
    compiler: for the stage functions, [Functions] -> [Functions]."""
    limits, m = task.limits, task.moving
    v_of_q = None if limits.v_of_q is None else velocity_bounds(limits).serialize()
    # complete: numbers of the task are numbers of the problem; what else it reads is which limits there are, whether
    # friction counts, and the bounds of v_of_q, whose text is in the key, as a function may change by what it refers to
    key = ("planning", task.continuity, m.tobytes(), _present(limits), len(task.goal) <= task.continuity, v_of_q)
    key += () if task.followers is None else (task.followers.limits.joints, task.followers.rows)
    template = cached(task.robot, (*key, task.friction, kind), lambda: _template(task, kind))
    duration = {
        "fixed": T,
        "free": (SHORTEST * T, LONGEST * T),
        "uniform": (max(0.5 * shortest, 1e-4 * T), 1e4 * T),
    }[kind.mesh]
    ocp = template.with_mesh(nodes, duration, T)
    (chain,) = ocp.description.bernstein
    for name, (lower, upper) in zip(chain.names, motion_bounds(task), strict=False):
        if np.isfinite([lower, upper]).any():
            ocp.bound(name, lower, upper)
    ocp.start({s: x[m] for s, x in zip(chain.outputs, task.start, strict=False)})
    ocp.goal({s: x[m] for s, x in zip(chain.outputs, task.goal, strict=False)})
    torques = kind.mesh == "fixed" or not kind.kinematic
    registered = (torques and (kind.derivatives == "analytic" or task.followers is not None)) or kind.near is not None
    graph = "mx" if registered else "sx"
    made = ocp.transcribed("euler", compiler, graph)
    return MotionProblem(task, kind, ocp, made, made.chain_numbers[0])


def _template(task, kind):
    """The Problem of a kind of task, whose numbers are to be replaced."""
    limits, n, effort = task.limits, len(task.names), kind.mesh == "fixed"
    mesh = "free" if kind.mesh == "free" else "uniform"
    ocp = Problem(1, 1.0 if effort else (SHORTEST, LONGEST), mesh=mesh, nominal=1.0, reusable=True)
    (lower, upper), *rates = motion_bounds(task)
    sizes = [np.where(np.isfinite(pair).any(axis=0), 1.0, np.inf) for pair in rates]
    chain = ocp.chain(
        "q", int(task.moving.sum()), task.continuity + 1, lower=lower, upper=upper, bounds=sizes, basis="bernstein",
    )  # fmt: skip
    made = ocp.description.bernstein[0]
    for name, pair in zip(made.names[1:], rates, strict=False):
        if name in ocp.numbers.bounds:
            ocp.numbers.bounds[name] = pair  # which ends are finite is kept from here on
    time = ocp.time if kind.clock else None  # behind the states of the chain
    held, *units, v_use = (ocp.parameter(k, n) for k in ("held", "tau_unit", "dtau_unit", "v_unit", "v_use"))
    place = ca.DM(np.eye(n)[:, task.moving])
    q, *rates = (ca.mtimes(ca.sparsify(place), x) for x in chain)
    q = q + ca.DM(np.where(task.moving, 0.0, 1.0)) * held
    if limits.v_of_q is not None:
        _limit_velocity(ocp, task, q, rates[0], units[2], v_use)
    if kind.near is not None:
        d = distances(task.robot, kind.near)(q, *([time] if kind.near.timed else []))
        if kind.eased:
            d = d + _eased(ocp, q, held, len(kind.near.pairs))
        for k, (a, b) in enumerate(kind.near.pairs):
            ocp.limit(0.0, d[k], np.inf, name=row_of(a, b), at=kind.places)
    if effort or not kind.kinematic:
        limit_torque(ocp, task, kind, (q, *rates[:3]), units)
    if task.followers is not None and not kind.kinematic:
        _limit_followers(ocp, task, (q, *rates))
    if kind.mesh == "uniform":
        ocp.minimize(terminal=ocp.relative_step)
    elif kind.mesh == "free":
        ocp.minimize(mean=ocp.relative_step)
    if kind.smoothing:
        ocp.minimize(mean=kind.smoothing * _roughness(ocp.coefficients(chain), effort))
    return ocp


def _eased(ocp, q, held, pairs):
    """(P,) [m] that is taken off what pairs keep, at the start and the goal, and less and less away from them."""
    arrival, eased = ocp.parameter("arrival", q.numel()), ocp.parameter("eased", 2 * pairs)
    near = [ca.exp(-ca.sumsqr(q - end) / _NEAR_END**2) for end in (held, arrival)]
    return near[0] * eased[:pairs] + near[1] * eased[pairs:]


def row_of(a, b):
    """Name of the limit of a pair."""
    return f"clearance of {a} and {b}"


def _roughness(coefficients, effort):
    """What smoothing weighs: the mean square of the highest coefficient; where the time is least, of that of the
    acceleration, and a little of the highest one. The former calms joints that have time to spare, the latter ends
    chatter between nodes; more of it costs time where the highest derivative has no limit."""
    last = coefficients[-1]
    if effort:
        return ca.sumsqr(last) / last.numel()
    return (_OF_ACCELERATION * ca.sumsqr(coefficients[2]) + _OF_LAST * ca.sumsqr(last)) / last.numel()


def _limit_velocity(ocp, task, q, v, v_unit, v_use):
    """Limits of the velocity by the position, at the start of pieces and in their middle."""
    slowest, fastest = velocity_bounds(task.limits)(q)
    over = ca.horzcat(v - v_use * fastest, v - v_use * slowest) / ca.horzcat(v_unit, v_unit)
    over = ca.vec(over[np.flatnonzero(task.moving).tolist(), :].T)  # joint by joint
    lower, upper = (np.tile(x, over.numel() // 2) for x in ([-np.inf, 0.0], [0.0, np.inf]))
    ocp.limit(lower, over, upper, name="v_of_q", at=(0.0, 0.5))


def _limit_followers(ocp, task, motion):
    """Limits of joints that follow, at the start and in the middle of pieces, and at their end of what jumps there."""
    followers = task.followers
    unit = ocp.parameter("follower_unit", len(followers.rows))
    jumps = followers.order > task.continuity
    where = {"at": (0.0, 0.5, 1.0)} if jumps else {"at": (0.0, 0.5)}
    if len(task.goal) <= task.continuity and not jumps:
        where["last"] = (1.0,)
    lower, upper = followers.bounds()
    ocp.limit(lower, followers.values(motion) / unit, upper, name=FOLLOWERS, **where)


def split_margins(task, margins):
    """{quantity: share of its limits} from those of MARGINS, each (n,), and of joints that follow, in a row."""
    n = len(task.names)
    out = {k: margins[i * n : (i + 1) * n] for i, k in enumerate(MARGINS)}
    return out if task.followers is None else out | {FOLLOWERS: margins[len(MARGINS) * n :]}


def limit_torque(ocp, task, kind, motion, units):
    """Limits of torque and its rate at points of the pieces; the effort, if it is what is minimised."""
    f = function(task.robot, "inverse_dynamics", order=1, derivatives=kind.derivatives, friction=task.friction)
    shares = [y / unit for y, unit in zip(f(*motion), units[:2], strict=True)]
    ends = [_shares(task.limits, k) for k in ("tau", "dtau")]
    kept = [task.limits.bounded(k) for k in ("tau", "dtau")]
    finite = [np.flatnonzero(x).tolist() for x in kept]
    if not kind.kinematic:
        both = ca.vertcat(*(y[joints] for y, joints in zip(shares, finite, strict=True) if joints))
        points = lobatto(kind.interior)[0][:-1].tolist()  # the end is the start of the next piece, but for what jumps
        if both.numel():
            low, high = (_rows([x[side] for x in ends], kept) for side in (0, 1))
            ocp.limit(low, both, high, name="torque", at=points)
        if finite[1] and (kind.both_sides or len(task.goal) <= task.continuity):
            where = {"at": (1.0,)} if kind.both_sides else {"last": (1.0,)}
            ocp.limit(ends[1][0][kept[1]], shares[1][finite[1]], ends[1][1][kept[1]], name="torque rate", **where)
    if kind.mesh == "fixed":
        ocp.minimize(integral=ca.sumsqr(shares[0]), points=kind.interior)


def motion_bounds(task):
    """[(lower, upper)] of q, v, ... of the joints that move, up to the derivative that is constant in a piece."""
    limits, m = task.limits, task.moving
    return [tuple(bound[m] for bound in limits.bounds(k)) for k in KINEMATIC[: task.continuity + 2]]


def _present(limits):
    """Which limits there are: rows are built for those alone."""
    return np.isfinite([limits.bounds(k) for k in QUANTITIES]).tobytes()


def _shares(limits, quantity):
    """(lower, upper), each (n,), of a quantity over its unit."""
    return tuple(x / limits.unit(quantity) for x in limits.bounds(quantity))


def _rows(values, kept):
    """Entries that are kept of several arrays, one after the other."""
    return np.concatenate([x[which] for x, which in zip(values, kept, strict=True)])
