"""od.plan_along_path: the fastest motion along a geometric path within all limits.

Unknowns are the derivatives s', ..., s^(c) at nodes s_k of the path that are chosen beforehand, s^(c+1) and the
duration of every interval. As the nodes do not move, the path and the dynamics are numbers there,

    q^(m) = sum_j d^j q / ds^j  B_mj(s', s'', ...),
    tau   = a s'' + b s'^2 + g,    tau' = a s''' + e s' s'' + d s'^3 + f s',

with damping (c q' s' in tau) and Coulomb friction (its sign is that of q', as s' > 0) besides,
and the nonlinear program consists of short polynomials, whatever the robot.
"""

import time
from math import factorial

import casadi as ca
import numpy as np

from ..errors import LimitError, OrderError, SolveError
from ..friction import SMOOTHING, coulomb, counts
from ..function import function
from ..interrupts import TIME_LIMIT, deadline, watched
from ..model.parameters import of_joints
from ..numbers import shortened
from ..optimal_control.polynomials import hermite, later
from ..optimal_control.problem import Problem
from ..validation import flag
from .arguments import MOST_NODES, check_robot, chosen_limits
from .curves import curve
from .feasibility import refuse_senseless
from .limits import QUANTITIES, velocity_bounds
from .path_motion import PathMotion, bell
from .trajectory import ORDERS, joint_units
from .verdict import checked_mode, report_or_raise

_TIGHTEN, _ROUNDS = 1.00095, 8
_WITHIN = 8  # points of an interval at which limits are looked at between nodes
_ORDER = {"v": 1, "dv": 2, "d2v": 3, "d3v": 4, "tau": 2, "dtau": 3}  # of the time derivative that a limit is of
_TINY = 1e-9


def plan_along_path(
    robot, path, *, at=None, degree=None, continuity=2, limits=None, scale=None, ignore=(), nodes=100, solver="ipopt",
    solver_options=None, friction: bool = True, check: str = "warn", time_limit: float | None = None,
):  # fmt: skip
    """Fastest motion from rest to rest along a path of the joints, as a PathMotion.

    Args:
        robot: Robot whose velocities are the rates of its coordinates: no spherical, planar or free joints.
        path: way points (k, n) [rad or m], joined by a spline; or a casadi.Function s -> q (n,), s from 0 to 1.
        at (k,): where on the spline the way points are, from 0 to 1; by default by the square roots of their distances.
            degree: of the spline, odd; by default as low as the continuity allows: 3 for 2, 5 for 3 and 4.
        continuity: c from 2 to 5; q is c times continuously differentiable in time, s^(c+1) constant on each interval.
        limits: Limits, default Limits.of(robot). scale: {"v": 0.5, "dtau": 0.3} factors of limits. ignore: names of
            limits to leave out: "q", "v", "dv", "d2v", "d3v", "tau", "dtau", "v_of_q".
        nodes: number of intervals. solver, solver_options: as those of Problem.solve.
        friction: whether the friction of the robot's joints counts in torques: damping, and Coulomb friction against
            the way that the path goes; in the rate of torques smoothed as in od.function.
        check: what to do about a motion that exceeds a limit by more than 0.1 %, anywhere: "warn", "raise", or "off".
        time_limit [s]: for all of it; the solver stops at its next iteration, and the status of SolveError is
            "time_limit".
    Returns:
        PathMotion: sample(dt), check(), save(path), plot(path), animate(path), law, curve. Between nodes the motion is
        checked and, where a limit is exceeded by more than 0.095 %, tightened there and solved again.
    Raises:
        LimitError, before solving, for a path outside the limits of position, one whose points cannot be held by the
        torques, or one that stands still; OrderError for a path that is not smooth enough; SolveError, with the last
        iterate as its trajectory, if the solver fails, and with check="raise" for a motion that exceeds a limit;
        ShapeError, UnknownName, ModelError for arguments that do not fit.
    Source: this toolkit; the quadratic form of torques along a path is that of Bobrow, Dubowsky and Gibson 1985.
    """
    begun = time.perf_counter()
    check_robot(robot)
    checked_mode(check)
    limits = chosen_limits(robot, limits, scale, ignore)
    _check_numbers(continuity, nodes, limits)
    on = curve(path, at, degree, continuity, limits.joints)
    _refuse(robot, limits, on)
    task = _Task(robot, limits, on, continuity, counts(robot, flag("plan_along_path: friction", friction)))
    with deadline(time_limit), watched():
        T, law = _slow_enough(task)
        problem = _Program(task, nodes, T)
        motion = _rounds(task, problem, _nodes(on, law, T, nodes), law, solver, solver_options)
    if check != "off":
        report_or_raise("plan_along_path", motion.check(), check, "use more nodes", motion)
    motion.info |= {"seconds": time.perf_counter() - begun, "iterations": problem.iterations, "solver": solver}
    return motion


def _check_numbers(continuity, nodes, limits):
    if isinstance(continuity, bool) or not isinstance(continuity, (int, np.integer)) or not 2 <= continuity <= 5:
        raise OrderError(f"plan_along_path: continuity is {continuity!r}, expected an integer from 2 to 5")
    if isinstance(nodes, bool) or not isinstance(nodes, (int, np.integer)) or nodes < 2 * continuity + 2:
        least = 2 * continuity + 2
        raise OrderError(f"plan_along_path: nodes is {shortened(nodes)}, expected an integer of at least {least}")
    if nodes > MOST_NODES:
        raise OrderError(f"plan_along_path: nodes is {shortened(nodes)}, it goes up to {MOST_NODES}")
    if continuity < 3 and np.isfinite(limits.d3v).any():
        raise OrderError("plan_along_path: with continuity 2 the jerk jumps; limits of d3v need continuity 3")


class _Task:
    """What is asked, and what the path and the dynamics are at places of the path."""

    def __init__(self, robot, limits, on, continuity, friction=False):
        self.friction = friction
        self.viscous, self.coulomb = np.zeros(robot.nv), np.zeros(robot.nv)
        if friction:
            self.viscous = of_joints(robot, "viscous")
            for i, _, torque in coulomb(robot):
                self.coulomb[i] += torque
        self.robot, self.limits, self.on, self.continuity = robot, limits, on, continuity
        self.bounded = [
            k for k in QUANTITIES[1:] if _ORDER[k] <= continuity + 1 and np.isfinite(getattr(limits, k)).any()
        ]
        self.dynamics = function(robot, "inverse_dynamics", order=1)

    def finite(self, quantity):
        return np.flatnonzero(np.isfinite(getattr(self.limits, quantity)))

    def factors(self, quantity, s, before=False):
        """(K, terms, joints): what multiplies the terms of a quantity, divided by its limit, at places s."""
        kept = self.finite(quantity)
        order = _ORDER[quantity]
        P = self.on.at(s, order + 1, before)
        if quantity in ("tau", "dtau"):
            rows = self._torque(P) if quantity == "tau" else self._rate(P)
        else:
            rows = P[1:]
        return np.moveaxis(rows[:, :, kept] / getattr(self.limits, quantity)[kept], 0, 1)

    def _torque(self, P):
        zero = np.zeros_like(P[0])
        g = self._at(P[0], zero, zero, zero)[0]
        a = self._at(P[0], zero, P[1], zero)[0] - g
        b = self._at(P[0], P[1], P[2], zero)[0] - g
        if not self.friction:
            return np.array([a, b, g])
        return np.array([a, b, g + self.coulomb * np.sign(P[1]), self.viscous * P[1]])

    def _rate(self, P):
        def rate(x):
            B = bell(3, x)
            v, dv, d2v = (sum(P[j] * B[m][j - 1] for j in range(1, m + 1)) for m in (1, 2, 3))
            return self._at(P[0], v, dv, d2v)[1]

        a, one, two, both = (rate(x) for x in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0), (1.0, 1.0, 0.0)))
        d = (two - 2 * one) / 6
        rows = [a, both - one, d, one - d]
        return np.array(rows + [self.viscous * P[2], self.viscous * P[1]] if self.friction else rows)

    def slopes(self, quantity, s, before=False):
        """(K, 2, joints): q' and q'' at places s of joints that the smoothed jump of Coulomb friction counts for."""
        return np.moveaxis(self.on.at(s, 3, before)[1:, :, self.rubbing(quantity)], 0, 1)

    def rubbing(self, quantity):
        """Numbers, among those that are finite, of joints whose Coulomb friction counts in a quantity's rows."""
        return self.finite("dtau")[self.coulomb[self.finite("dtau")] > 0] if quantity == "dtau" else np.zeros(0, int)

    def turning(self, slope, bend, x, tanh=np.tanh):
        """Rates of Coulomb friction of the joints that rub, by their limits, from q' and q'' there and [s', s'']."""
        i = self.rubbing("dtau")
        v, dv = slope * x[0], bend * x[0] ** 2 + slope * x[1]
        return self.coulomb[i] / self.limits.dtau[i] / SMOOTHING * (1 - tanh(v / SMOOTHING) ** 2) * dv

    def _at(self, *rows):
        return [np.array(x).T for x in self.dynamics(*(x.T for x in rows))]

    def speed(self, s):
        """(K,) largest s' that the limits of velocity allow at places s, those that depend on the position too."""
        P = self.on.at(s, 2)
        high, low = np.tile(self.limits.v, (len(s), 1)), np.tile(-self.limits.v, (len(s), 1))
        if self.limits.v_of_q is not None:
            found = [np.array(x).T for x in velocity_bounds(self.limits)(P[0].T)]
            low, high = np.maximum(low, found[0]), np.minimum(high, found[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(P[1] > 0, high / P[1], np.where(P[1] < 0, low / P[1], np.inf))
        return each.min(axis=1)


def terms(quantity, x, friction=False):
    """Products of s', s'', ... that the rows of a quantity are sums of, in the order of _Task.factors."""
    if quantity == "tau":
        return [x[1], x[0] ** 2, 1.0] + ([x[0]] if friction else [])
    if quantity == "dtau":
        return [x[2], x[0] * x[1], x[0] ** 3, x[0]] + ([x[0] ** 2, x[1]] if friction else [])
    return bell(_ORDER[quantity], x)[-1]


def _refuse(robot, limits, on):
    """Raise LimitError for a path that no motion can follow."""
    s = np.unique(np.concatenate([np.linspace(0, 1, 2001), on.knots]))
    q, slope = on.at(s, 2)
    refuse_senseless(limits, [q.min(axis=0), q.max(axis=0)], limits.joints)
    lower, upper = limits.q
    slack = 1e-9 * np.maximum(1.0, np.abs(q))
    outside = (q < lower - slack) | (q > upper + slack)
    if outside.any():
        over = np.maximum(lower - q, q - upper)
        k, i = np.unravel_index(np.argmax(np.where(outside, over, -np.inf)), q.shape)
        raise LimitError(
            f"path: joint {limits.joints[i]!r} is {q[k, i]:.6g} at s = {s[k]:.4g}{_way_point(on, s[k])}, outside its "
            f"limits {lower[i]:.6g} to {upper[i]:.6g}; move it, change the limit, or leave it out by ignore=('q',)"
        )
    for quantity in QUANTITIES[1:]:
        limit = getattr(limits, quantity)
        for i in np.flatnonzero(limit == 0):
            if quantity in ("tau", "dtau") or np.any(slope[:, i]):
                raise LimitError(
                    f"path: joint {limits.joints[i]!r} has the limit 0 of {quantity}, which allows no motion; give a "
                    f"positive one, or leave it out by ignore=({quantity!r},)"
                )
    still = np.abs(slope).max(axis=1) < 1e-6 * np.abs(slope).max()
    if still.any():
        where = s[int(np.argmax(still))]
        raise LimitError(f"path: q does not change with s at s = {where:.4g}; give it another parameter there")
    if not np.isfinite(_bounds_of_motion(limits)[np.abs(slope).max(axis=0) > 0]).any():
        raise LimitError(
            "no limit bounds the speed along the path, so no shortest time exists; give a limit of v or dv"
        )
    if np.isfinite(limits.tau).any():
        zero = np.zeros_like(q)
        tau = np.array(function(robot, "inverse_dynamics", order=1)(q.T, zero.T, zero.T, zero.T)[0]).T
        k, i = np.unravel_index(np.argmax(np.abs(tau) / limits.tau), tau.shape)
        if abs(tau[k, i]) > limits.tau[i] * (1 + _TINY):
            raise LimitError(
                f"path: joint {limits.joints[i]!r} needs tau = {tau[k, i]:.6g} for holding still at s = {s[k]:.4g}, "
                f"over its limit {limits.tau[i]:.6g}"
            )
    if limits.v_of_q is not None:
        speed = _Task(robot, limits, on, 2).speed(s)
        if np.any(speed <= 0):
            k = int(np.argmin(speed))
            raise LimitError(f"path: the limits of velocity at the position at s = {s[k]:.4g} allow no motion along it")


def _way_point(on, s):
    """Words on the way point at s, or on those before and behind it."""
    at = getattr(on, "points_at", None)
    if at is None:
        return ""
    k = int(np.argmin(np.abs(at - s)))
    if abs(at[k] - s) < 1e-3:
        return f", way point {k}"
    k = int(np.searchsorted(at, s))
    return f", between way points {k - 1} and {k}"


def _bounds_of_motion(limits):
    return np.min([getattr(limits, k) for k in QUANTITIES[1:]], axis=0)


# -- laws of time: functions t -> (c + 2, K) derivatives of s ----------------------------------------------------


def _polynomial(continuity):
    ends = np.zeros((min(continuity, 2) + 1, 1))
    return hermite(ends, np.vstack([np.ones((1, 1)), ends[1:]]), 1.0)[:, 0]


def _slow_enough(task):
    """(T, law) of a smooth law s(t), just slow enough for the limits."""
    c = task.continuity
    p = np.polynomial.Polynomial(_polynomial(c))
    z = np.linspace(0, 1, 101)
    unit = np.array([p.deriv(k)(z) if k else p(z) for k in range(ORDERS)])
    s = np.clip(unit[0], 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        T = np.nanmax(np.where(unit[1] > 0, unit[1] / task.speed(s), 0.0))
    T = max(T, 1e-2)
    for _ in range(120):
        law = unit / T ** np.arange(ORDERS)[:, None]
        if _worst(task, s, law) <= 1:
            break
        T *= 1.12

    def at(t):
        x = np.asarray(t) / T
        return np.array([(p.deriv(k)(x) if k else p(x)) / T**k for k in range(c + 2)])

    return T, at


def _worst(task, s, law):
    shares = [0.0]
    for k in task.bounded:
        shares.append(np.abs(_values(task, k, s, law, task.factors(k, s))).max())
    return max(shares)


def _values(task, quantity, s, law, F, slopes=None):
    """(K, joints) of a quantity by its limits, from its factors and the derivatives of s (.., K)."""
    y = sum(F[:, j] * np.reshape(x, (-1, 1)) for j, x in enumerate(terms(quantity, law[1:], task.friction)))
    rubbing = task.rubbing(quantity)
    if rubbing.size:
        slopes = task.slopes(quantity, s) if slopes is None else slopes
        turning = task.turning(slopes[:, 0], slopes[:, 1], law[1:3, :, None])
        y[:, np.searchsorted(task.finite(quantity), rubbing)] += turning
    return y


def _nodes(on, law, T, N):
    """(times, places, places between) of N + 1 nodes at nearly equal times, the knots of the path among them."""
    t = np.linspace(0, T, 40 * N + 1)
    s = np.maximum.accumulate(np.clip(law(t)[0], 0, 1))
    rising = np.concatenate([[True], np.diff(s) > 0])
    knots = np.interp(on.knots, s[rising], t[rising])
    edges = np.concatenate([[0.0], knots, [T]])
    if N < 2 * (len(edges) - 1):
        raise OrderError(
            f"plan_along_path: {N} nodes for {len(edges) - 1} pieces of the path; give at least twice that"
        )
    share = np.diff(edges) / T * N
    counts = np.maximum(2, np.floor(share).astype(int))
    while counts.sum() != N:  # the largest remainders get what is left
        k = np.argmax(share - counts) if counts.sum() < N else np.argmin(np.where(counts > 2, share - counts, np.inf))
        counts[k] += 1 if counts.sum() < N else -1
    stretches = zip(edges[:-1], edges[1:], counts, strict=True)
    times = np.concatenate([*(np.linspace(a, b, n, endpoint=False) for a, b, n in stretches), [T]])
    places = np.clip(law(times)[0], 0, 1)
    at_knots = np.cumsum(counts)[:-1]
    places[at_knots], places[0], places[-1] = on.knots, 0.0, 1.0
    middles = np.clip(law((times[1:] + times[:-1]) / 2)[0], places[:-1], places[1:])
    return times, places, middles


# -- the program -------------------------------------------------------------------------------------------------


class _Program:
    """The nonlinear program, made once: grids and margins are parameters."""

    def __init__(self, task, N, T):
        self.task, self.N, self.iterations = task, N, 0
        c = task.continuity
        ocp = self.ocp = Problem(N, 1.0)
        self.x = [ocp.state(f"d{j}s", lower=0.0 if j == 1 else -np.inf, scale=T**-j) for j in range(1, c + 1)]
        self.u = ocp.control("top", scale=10 * T ** -(c + 1))
        self.h = ocp.control("h", lower=T / N * 1e-3, upper=1e2 * T / N, scale=T / N)
        self.gap, self.top_speed = ocp.varying("gap"), ocp.varying("speed", 2)
        h, x = self.h, [*self.x, self.u]
        after, middle = later(x, h), later(x, h / 2)
        for state, value in zip(self.x, after, strict=False):
            ocp.next(state, value)
        passed = sum(x[j] * h ** (j + 1) / factorial(j + 1) for j in range(c + 1))
        ocp.limit(0, N * (passed - self.gap), 0)
        ocp.limit(-np.inf, ca.vertcat(x[0], middle[0]) / self.top_speed, 1)
        self.rows, self.slopes = {}, {}
        for k in task.bounded:
            if k == "v":
                continue
            jumps = _ORDER[k] == c + 1
            for side in ("start", "end") if jumps else ("start", "middle"):
                there = {"start": x, "middle": middle, "end": after}[side]
                y = terms(k, there, task.friction)
                F = ocp.varying(f"{k}_{side}", len(y) * len(task.finite(k)))
                F_ = ca.reshape(F, len(task.finite(k)), len(y))
                value = sum(F_[:, j] * z for j, z in enumerate(y))
                rubbing = task.rubbing(k)
                if rubbing.size:
                    m = len(rubbing)
                    self.slopes[k, side] = S = ocp.varying(f"{k}_{side}_slopes", 3 * m)
                    turning = S[2 * m :] * task.turning(S[:m], S[m : 2 * m], there, ca.tanh)
                    at = np.searchsorted(task.finite(k), rubbing)
                    value = value + ca.DM(np.eye(len(task.finite(k)))[:, at]) @ turning
                ocp.limit(-1, value, 1)
                self.rows[k, side] = F
        ocp.start(dict.fromkeys(self.x, 0.0))
        ocp.goal(dict.fromkeys(self.x, 0.0))
        ocp.minimize(terminal=0 * self.x[0])
        ocp.minimize(integral=N * h / T + 1e-8 * (self.u / (10 * T ** -(c + 1))) ** 2)

    def solve(self, grid, margins, guess, solver, options):
        _, places, middles = grid
        task, ocp = self.task, self.ocp
        at = {"start": places, "middle": np.append(middles, 1.0), "end": np.append(places[1:], 1.0)}
        speed = np.column_stack([task.speed(at["start"]), task.speed(at["middle"])])
        p = {self.gap: np.append(np.diff(places), 1.0), self.top_speed: speed / margins["speed"][:, None]}
        for (k, side), symbol in self.rows.items():
            where = at[side]
            F = task.factors(k, where, before=side == "end") * margins[k, side][:, None, :]
            p[symbol] = F.reshape(self.N + 1, -1)
            if (k, side) in self.slopes:
                columns = np.searchsorted(task.finite(k), task.rubbing(k))
                slopes = task.slopes(k, where, side == "end").reshape(self.N + 1, -1)
                p[self.slopes[k, side]] = np.hstack([slopes, margins[k, side][:, columns]])
        ocp.guess(guess)
        if solver == "ipopt":  # half the iterations of the monotone barrier, and it fails less
            options = {"mu_strategy": "adaptive", **(options or {})}
        found = ocp.solve(
            method="euler", solver=solver, parameters=p, solver_options=options, raises=False, check="off"
        )
        self.iterations += found.iterations
        h = found[self.h][:, 0]
        x = [found[s][:, 0] for s in self.x]
        t = np.concatenate([[0.0], np.cumsum(h)])
        pieces = np.column_stack([places[:-1], *(y[:-1] for y in x), found[self.u][:, 0]])
        if not found.success:
            message = f"plan_along_path: the solver stopped with {found.status!r} after {found.iterations} iterations"
            advice = "" if found.status == TIME_LIMIT else "; try another number of nodes"
            last = _motion(task, t, pieces, found.status) if np.all(h > 0) else None
            raise SolveError(message + advice, found.status, trajectory=last)
        return t, pieces


def _rounds(task, program, grid, law, solver, options):
    """The motion with these nodes, limits tightened where they are exceeded between nodes."""
    N = program.N
    margins = {key: np.ones((N + 1, len(task.finite(key[0])))) for key in program.rows} | {"speed": np.ones(N + 1)}
    times, _, _ = grid
    at = law(times)
    guess = {f"d{j}s": at[j][:, None] for j in range(1, task.continuity + 1)}
    guess |= {"top": at[-1][:-1, None], "h": np.diff(times)[:, None]}
    for round_ in range(_ROUNDS):
        t, pieces = program.solve(grid, margins, guess, solver, options)
        motion = _motion(task, t, pieces, "solved")
        worst, over = _between(task, motion)
        motion.info |= {"shares": worst, "rounds": round_ + 1}
        if max(worst.values(), default=0.0) <= _TIGHTEN:
            break
        for key in margins:
            share = over["speed" if key == "speed" else key[0]]  # (N, joints) of the intervals
            share = np.where(share > _TIGHTEN, share, 1.0)
            if key == "speed":
                margins[key] *= np.maximum(np.append(share, 1.0), np.append(1.0, share))
            elif _ORDER[key[0]] == task.continuity + 1:
                margins[key][:-1] *= share
            else:
                one = np.ones((1, share.shape[1]))
                margins[key] *= np.maximum(np.vstack([share, one]), np.vstack([one, share]))
        guess = {"top": pieces[:, -1:], "h": np.diff(t)[:, None]}
        guess |= {f"d{j}s": np.append(pieces[:, j], 0.0)[:, None] for j in range(1, task.continuity + 1)}
    return motion


def _motion(task, t, pieces, status):
    info = {"robot": task.robot.name, "nodes": len(pieces), "objective": "time", "status": status}
    return PathMotion(
        t, pieces, task.on, joints=task.limits.joints, units=joint_units(task.robot), robot=task.robot,
        limits=task.limits, info=info, friction=task.friction,
    )  # fmt: skip


def _between(task, motion):
    """({quantity: largest share}, {quantity: (N, joints) largest share in every interval})."""
    N, m = len(motion.law), _WITHIN + 1
    u = np.linspace(0, 1, m)
    piece = np.repeat(np.arange(N), m)
    law = motion._law(piece, (np.diff(motion.t)[:, None] * u).ravel(), ORDERS)
    s = np.clip(law[0], 0, 1)
    over = {"speed": (law[1] / task.speed(s)).reshape(N, m).max(axis=1)}
    for k in task.bounded:
        if k == "v":
            continue
        last = np.arange(N * m) % m == m - 1
        F = task.factors(k, s)
        ends = np.append(motion.law[1:, 0], 1.0)
        F[last] = task.factors(k, ends, before=True)
        F[::m] = task.factors(k, motion.law[:, 0])
        slopes = None
        if task.rubbing(k).size:
            slopes = task.slopes(k, s)
            slopes[last] = task.slopes(k, ends, before=True)
        y = _values(task, k, s, law, F, slopes)
        over[k] = np.abs(y).reshape(N, m, -1).max(axis=1)
    worst = {"v" if k == "speed" else k: float(x.max(initial=0.0)) for k, x in over.items()}
    return worst, over
