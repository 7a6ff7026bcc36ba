"""plan_along_path as a Problem, made once: grids and margins are parameters. Its nodes are places of the path.

States are s', ..., s^(c), controls s^(c+1) and the length of each interval in time.
"""

from math import factorial

import casadi as ca
import numpy as np

from ..errors import SolveError
from ..interrupts import TIME_LIMIT, building
from ..model.cache import cached
from ..optimal_control.avoid import distances
from ..optimal_control.polynomials import later
from ..optimal_control.problem import Problem
from .motion_problem import row_of
from .path_motion import PathMotion
from .path_task import terms
from .quantities import BY_NAME, ORDERS
from .trajectory import joint_units

_FASTEST = 1e6  # s' of a duration of 1 that is slow: no limit
_KEPT = 12  # templates of a robot
_WITHIN = 8  # points of an interval at which limits are looked at between nodes
_WITHIN_RUBBING = 96  # with Coulomb friction, whose smoothed jump is over within less than an interval

_FIRST, _FIRST_OF_CONTINUOUS = 0.5, 0.75  # shares of an interval at which the rate of torque is held at first besides
_MOVE, _SAME = 1.0005, 0.02  # share of a limit above which that moves; of an interval that is no move
_MOVES = 4  # rounds


class _Template:
    """What tasks of a kind have in common: their Problem with its symbols, in time over a duration T of each task.
    Numbers of a task come later."""

    def __init__(self, task, N, off):
        self.task = task
        c = task.continuity
        ocp = self.ocp = Problem(N, 1.0)
        # from the fourth derivative on they grow with N: it switches the third within an interval, and so on
        scales = [float(N ** max(0, j - 3)) for j in range(1, c + 1)]
        self.x = [ocp.state(f"d{j}s", lower=0.0 if j == 1 else -np.inf, scale=x) for j, x in enumerate(scales, 1)]
        top = 10.0 * (2 * N) ** max(0, c - 3)
        self.u = ocp.control("top", scale=top)
        self.h = ocp.control("h", lower=1e-3 / N, upper=1e2 / N, scale=1 / N)
        self.gap, self.top_speed = ocp.varying("gap"), ocp.varying("speed", 2)
        self.share = ocp.varying("share") if task.rubbing("dtau").size else None
        h, x = self.h, [*self.x, self.u]
        after, middle = later(x, h), later(x, h / 2)
        for state, value in zip(self.x, after, strict=False):
            ocp.next(state, value)
        passed = sum(x[j] * h ** (j + 1) / factorial(j + 1) for j in range(c + 1))
        ocp.limit(0, N * (passed - self.gap), 0)
        ocp.limit(-np.inf, ca.vertcat(x[0], middle[0]) / self.top_speed, 1)
        self.rows, self.slopes = {}, {}
        for k in (k for k in task.bounded if k != "v"):
            for side in sides(task, k):
                there = {"start": x, "before": x, "middle": middle, "end": after}.get(side)
                self._limit(k, side, later(x, self.share * h) if side == "worst" else there)
        if off is not None:
            self._keep_off(off, x)
        ocp.minimize(terminal=0 * self.x[0])
        ocp.minimize(integral=N * h + 1e-8 * (self.u / top) ** 2)

    def _keep_off(self, off, x):
        """Distances of the pairs of `off` at shares of the intervals, where the way between two nodes is straight."""
        ocp, h, n = self.ocp, self.h, self.task.robot.nq
        self.when = ocp.state("when", lower=0.0)
        ocp.next(self.when, self.when + h)
        ocp.start({self.when: 0.0})
        self.seconds, self.place = ocp.parameter("seconds"), ocp.varying("place", 2 * n)
        d = distances(self.task.robot, off.near)
        for share in off.shares:
            passed = sum(y * (share * h) ** j / factorial(j) for j, y in enumerate(x, 1))
            there = self.place[:n] + passed / self.gap * self.place[n:]
            found = d(there, self.seconds * (self.when + share * h))
            for k, (a, b) in enumerate(off.near.pairs):
                ocp.limit(0.0, found[k], np.inf, name=f"{row_of(a, b)} at {share:g}")

    def _limit(self, k, side, there):
        """Limit of a quantity on one side of the intervals, where s', s'', ... are `there`."""
        task, ocp = self.task, self.ocp
        y, finite = terms(k, there, task.friction), task.finite(k)
        F = self.rows[k, side] = ocp.varying(f"{k}_{side}", len(y) * len(finite))
        columns = ca.reshape(F, len(finite), len(y))
        value = sum(columns[:, j] * z for j, z in enumerate(y))
        m = len(task.rubbing(k))
        if m:
            S = self.slopes[k, side] = ocp.varying(f"{k}_{side}_slopes", 3 * m)
            turning = S[2 * m :] * task.turning(S[:m], S[m : 2 * m], there, ca.tanh)
            value = value + ca.DM(np.eye(len(finite))[:, np.searchsorted(finite, task.rubbing(k))]) @ turning
        lower, upper = task.ends(k)
        ocp.limit(lower, value, upper, name=f"limit of {k}_{side}")


def sides(task, quantity):
    """Where a quantity is held in every interval; "before": at its start, with the friction of joints that turn there
    as it was before; "worst": where it was the worst in the round before."""
    more = ["before"] if quantity == "tau" and len(task.turns) else ["worst"] if task.rubbing(quantity).size else []
    return ("start", "end" if jumps(task, quantity) else "middle", *more)


def jumps(task, quantity):
    """Whether a quantity jumps at nodes."""
    return BY_NAME[quantity].order == task.continuity + 1


class PathProblem:
    """The Problem of a PathTask with N intervals, about a duration T. iterations: of all solves so far.

    What is built for it, to the solver, stays with the robot from release() on for the next task of its kind. off:
    the KeptOff of what moves, if there is one.
    """

    def __init__(self, task, N, T, off=None):
        self.task, self.N, self.T, self.iterations = task, N, T, 0
        self.kept = cached(task.robot, ("planning", "path templates"), dict)
        # complete: paths, speeds and sizes of limits are numbers of the problem, but for friction that jumps, which is
        # in its expressions over the unit of the rate of torque
        unit = task.limits.unit("dtau")[task.rubbing("dtau")].tobytes()
        limited = tuple((k, np.isfinite(task.wide.bounds(k)).tobytes()) for k in task.bounded)
        moves = tuple(bool(v) for v in task.speeds)
        self.key = (task.continuity, N, limited, task.friction, unit, moves, bool(len(task.turns)))
        self.off = off
        self.key = self.key if off is None else (*self.key, off.near.key, off.shares)
        made = self.made = self.kept.pop(self.key, None) or _Template(task, N, off)  # another thread makes its own
        self.ocp, self.x, self.u, self.h, self.gap = made.ocp, made.x, made.u, made.h, made.gap
        self.top_speed, self.rows, self.slopes, self.share = made.top_speed, made.rows, made.slopes, made.share
        self.rounds = 0
        self.worst = None  # (shares (N,) of the intervals, places) of "worst"; from the first grid on
        for k, side in self.rows:
            self.ocp.bound(f"limit of {k}_{side}", *task.ends(k))
        for (a, b), least in zip(off.near.pairs, off.least, strict=True) if off is not None else ():
            for share in off.shares:
                self.ocp.bound(f"{row_of(a, b)} at {share:g}", least, np.inf)
        for fix, speed in zip((self.ocp.start, self.ocp.goal), task.speeds, strict=True):
            fix({self.x[0]: speed * T} if speed else dict.fromkeys(self.x, 0.0))

    def release(self):
        """Leave what was built to the next task; the latest few are kept."""
        self.kept[self.key] = self.made
        for old in list(self.kept)[:-_KEPT]:
            self.kept.pop(old, None)

    @property
    def margins(self):
        """{"speed", or quantity and side: what its limits are multiplied by at every node}, all 1."""
        sizes = {key: (self.N + 1, len(self.task.finite(key[0]))) for key in self.rows}
        return {key: np.ones(size) for key, size in {**sizes, "speed": (self.N + 1,)}.items()}

    def parameters(self, grid, margins):
        """{symbol: values} of the nodes of a grid."""
        _, places, middles = grid
        task = self.task
        at = {"start": places, "before": places, "middle": np.append(middles, 1.0), "end": np.append(places[1:], 1.0)}
        if self.share is not None:
            if self.worst is None:
                first = _FIRST if jumps(task, "dtau") else _FIRST_OF_CONTINUOUS
                self.worst = np.full(self.N, first), places[:-1] + first * np.diff(places)
            at["worst"] = np.append(self.worst[1], 1.0)
        speed = np.column_stack([task.speed(at["start"]), task.speed(at["middle"])])
        speed = np.minimum(speed * self.T, _FASTEST)  # it is infinite without limits of v, and where q' = 0
        p = {self.gap: np.append(np.diff(places), 1.0), self.top_speed: speed * margins["speed"][:, None]}
        if self.off is not None:
            q = task.on.at(places, 1)[0]
            steps = np.vstack([np.diff(q, axis=0), 0 * q[:1]])
            p |= {self.made.seconds: self.T, self.made.place: np.hstack([q, steps])}
        if self.share is not None:
            p[self.share] = np.append(self.worst[0], 0.5)
        for (k, side), symbol in self.rows.items():
            where, margin = at[side], margins[k, side]
            F = task.factors(k, where, before=side in ("end", "before")) / margin[:, None, :]
            if side == "before":  # elsewhere it is what holds at the start, which should not be there twice
                lower, upper = task.ends(k)
                F[~np.isin(places, task.turns)] *= np.where((lower < 0) & (upper > 0), 0.5, 1.0)
            F = F / (self.T ** _degrees(k, task))[:, None]
            p[symbol] = F.reshape(self.N + 1, -1)
            if (k, side) in self.slopes:
                columns = np.searchsorted(task.finite(k), task.rubbing(k))
                slopes = task.slopes(k, where, side == "end").reshape(self.N + 1, -1)
                p[self.slopes[k, side]] = np.hstack([slopes, 1 / margin[:, columns]]) / self.T
        return p

    def solve(self, grid, margins, guess, solver, options):
        """PathMotion on a grid. guess: {state or control: values}, or the PathMotion before."""
        unit = {"h": self.T, "top": self.T ** -(self.task.continuity + 1.0)}
        unit |= {f"d{j}s": self.T**-j for j in range(1, self.task.continuity + 1)}
        guess = guess if isinstance(guess, dict) else self._guess(guess)
        if self.off is not None:
            unit["when"] = self.T
            guess = {**guess, "when": np.append(0.0, np.cumsum(guess["h"]))[:, None]}
        self.ocp.guess({k: x / unit[k] for k, x in guess.items()})
        p, tries = self.parameters(grid, margins), [options]
        if solver == "ipopt":  # adaptive takes half the iterations of monotone, which solves some that the former fails
            tries = [{"mu_strategy": x, **(options or {})} for x in ("adaptive", "monotone")]
            tries = tries[:1] if {"mu_strategy", "max_iter"} & set(options or {}) else tries
        for given in tries:
            found = self._run(grid, guess, {"solver": solver, "parameters": p, "solver_options": given})
            self.iterations += found.iterations
            if found.success or found.status == TIME_LIMIT:
                break
        h = found[self.h][:, 0] * self.T
        t = np.concatenate([[0.0], np.cumsum(h)])
        x = [found[s][:-1, 0] * unit[f"d{j}s"] for j, s in enumerate(self.x, 1)]
        pieces = np.column_stack([grid[1][:-1], *x, found[self.u][:, 0] * unit["top"]])
        if not found.success:
            message = f"plan_along_path: the solver stopped with {found.status!r} after {self.iterations} iterations"
            moving = [k for k, x in zip(("speed_start", "speed_end"), self.task.speeds, strict=True) if x]
            advice = "; try another number of nodes" + (f", or a smaller {' or '.join(moving)}" if moving else "")
            advice = "" if found.status == TIME_LIMIT else advice
            last = _motion(self.task, t, pieces, found.status) if np.all(h > 0) else None
            raise SolveError(message + advice, found.status, trajectory=last)
        return _motion(self.task, t, pieces, "solved")

    def _run(self, grid, guess, how):
        """Solution from a guess."""
        try:
            with building():
                return self.ocp.solve(method="euler", raises=False, check="off", **how)
        except SolveError as error:
            if error.status != TIME_LIMIT:
                raise
        # there is no program yet, and so no iterate
        t = np.append(0.0, np.cumsum(guess["h"][:, 0]))
        x = [guess[f"d{j}s"][:-1, 0] for j in range(1, len(self.x) + 1)]
        pieces = np.column_stack([grid[1][:-1], *x, guess["top"][:, 0]])
        last = _motion(self.task, t, pieces, TIME_LIMIT)
        raise SolveError("plan_along_path: stopped by the limit of time while building", TIME_LIMIT, trajectory=last)

    def _guess(self, motion):
        guess, last = {"top": motion.law[:, -1:], "h": np.diff(motion.t)[:, None]}, motion.shares(motion.t[-1:])
        if not self.task.speeds[1]:
            last = 0 * last
        return guess | {f"d{j}s": np.append(motion.law[:, j], last[j])[:, None] for j in range(1, len(self.x) + 1)}

    def shares(self, motion):
        """{"speed", or quantity and side: largest shares of the limits between nodes, as margins have them}, and that
        of the rate of torque where it is to be held from now on, which needs no margin for that."""
        over, worst = between(self.task, motion)
        motion.info["shares"] = {"v" if k == "speed" else k: float(x.max(initial=0.0)) for k, x in over.items()}
        one = np.ones((1, 1))
        found = {"speed": _at_nodes(over["speed"][:, None], one)[:, 0]}
        if self.share is not None:
            found["moved"], over["dtau"] = over["dtau"], self._moved(motion, over["dtau"], worst)
        for k, side in self.rows:
            ones = np.ones((1, over[k].shape[1]))
            single = side == "worst" or jumps(self.task, k)
            found[k, side] = np.vstack([over[k], ones]) if single else _at_nodes(over[k], ones)
        return found

    def _moved(self, motion, over, worst):
        """Shares of the limits of the rate of torque (N, joints), 1 where the point at which it is held moves to the
        worst one."""
        u = worst[over.argmax(axis=1), np.arange(self.N)] if over.size else self.worst[0]
        move = (over.max(axis=1, initial=0.0) > _MOVE) & (np.abs(u - self.worst[0]) > _SAME) & (u > 0) & (u < 1)
        self.rounds += 1
        move &= self.rounds <= _MOVES  # from then on margins alone, as it may go to and fro
        u = np.where(move, u, self.worst[0])
        law = motion._law(np.arange(self.N), u * np.diff(motion.t), 1)
        self.worst = u, np.clip(law[0], motion.s[:-1], motion.s[1:])
        return np.where(move[:, None], np.minimum(over, 1.0), over)


def _degrees(quantity, task):
    """(terms,) of the powers of 1 / time that its terms are."""
    x = [2.0**j for j in range(1, max(task.continuity + 1, ORDERS) + 1)]
    return np.log2(np.array(terms(quantity, x, task.friction)) / terms(quantity, np.ones(len(x)), task.friction))


def _at_nodes(share, one):
    """Of the intervals on both sides of every node the larger share."""
    return np.maximum(np.vstack([share, one]), np.vstack([one, share]))


def _motion(task, t, pieces, status):
    info = {"robot": task.robot.name, "nodes": len(pieces), "objective": "time", "status": status}
    return PathMotion(
        t, pieces, task.on, joints=task.limits.joints, units=joint_units(task.robot), robot=task.robot,
        limits=task.limits, info=info, friction=task.friction,
    )  # fmt: skip


def between(task, motion):
    """{"speed" or quantity: (N,) or (N, joints) largest share of its limit in every interval}, and where in the
    interval, from 0 to 1, that of the rate of torque is (joints, N), None without."""
    N, m = len(motion.law), (_WITHIN_RUBBING if task.coulomb.any() else _WITHIN) + 1
    u = np.linspace(0, 1, m)
    piece = np.repeat(np.arange(N), m)
    law = motion._law(piece, (np.diff(motion.t)[:, None] * u).ravel(), ORDERS)
    s = np.clip(law[0], 0, 1)
    worst = None
    over = {"speed": (law[1] / task.speed(s)).reshape(N, m).max(axis=1)}
    for k in (k for k in task.bounded if k != "v"):
        last = np.arange(N * m) % m == m - 1
        F = task.factors(k, s)
        ends = np.append(motion.law[1:, 0], 1.0)
        F[last] = task.factors(k, ends, before=True)
        F[::m] = task.factors(k, motion.law[:, 0])
        slopes = None
        if task.rubbing(k).size:
            slopes = task.slopes(k, s)
            slopes[last] = task.slopes(k, ends, before=True)
        found = task.shares(k, task.values(k, s, law, F, slopes)).reshape(N, m, -1)
        over[k] = found.max(axis=1)
        if k == "dtau":
            worst = u[found.argmax(axis=1)].T
    return over, worst
