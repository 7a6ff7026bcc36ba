"""Planning of elastic robots through the flat map: the links' motion is chosen, what springs and motors do follows.

The motion is a chain of integrators, q continuously differentiable as often as the motor torque needs; limits of motor
torque, its rate, motor speed and spring deflection are limits of the flat map's outputs. All hold at nodes and at
points between them, and are checked everywhere else.
"""

import warnings
from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

from ..errors import CheckWarning, LimitError, OrderError, ShapeError, SolveError
from ..function import function
from ..interrupts import TIME_LIMIT, deadline, watched
from ..numbers import as_floats
from ..optimal_control.polynomials import derivatives_at, hermite
from ..optimal_control.problem import Problem
from ..planning.arguments import vector
from ..planning.feasibility import shortest_time
from ..planning.limits import Limits, velocity_bounds
from ..planning.quantities import order_name
from ..validation import count, one_of
from .plan import OUTPUTS, ElasticPlan, deflected, flat_outputs
from .reachable import refusal

_TIGHTEN, _CLEAN, _ROUNDS = 1.001, 1.005, 8
# weights, one after the other, of the highest derivative, which would else be undetermined where no limit binds
_SMOOTH = (1e-7, 1e-9)


@dataclass(frozen=True, eq=False)
class FlatMotion:
    """Expressions of a problem: q (list of q and its derivatives), theta, dtheta, tau_m, dtau_m (None where the order
    was not asked for), deflection, one a row of theta; sigma and its derivatives, [] where no stiffness varies."""

    q: list
    theta: object
    dtheta: object
    tau_m: object
    dtau_m: object
    deflection: object
    sigma: list


def flat_motion(problem, elastic, *, continuity=4, rate=False, guess=0.0, scale=None, sigma=None):
    """FlatMotion of an elastic robot as states and controls of a Problem.

    continuity: of q; its derivative of order continuity + 1 is the control. rate: whether the rate of the motor torque
    is asked for. guess, scale: as of Problem.chain. sigma: expressions [sigma, dsigma, d2sigma, ...] of robots that
    vary their stiffness, for instance of a chain.
    Raises OrderError, naming the order needed, for a continuity that is too low.
    """
    wanted = elastic.continuity("torque_rate" if rate else "torque")
    if isinstance(continuity, bool) or not isinstance(continuity, (int, np.integer)) or continuity < wanted:
        what = "a bounded and continuous rate of the motor torque" if rate else "a continuous motor torque"
        raise OrderError(
            f"planning {elastic.name}: continuity is {continuity!r}, but {what} needs q {wanted} times continuously "
            f"differentiable; give continuity={wanted} or more"
        )
    if elastic.nq != elastic.nv:
        raise ShapeError(f"planning {elastic.name}: it is for joints of one coordinate, whose rates are the velocities")
    q = problem.chain("q", elastic.nq, continuity + 1, guess=guess, scale=scale)
    return flat_expressions(elastic, q, sigma, rate)


def flat_expressions(elastic, q, sigma=None, rate=False):
    """FlatMotion of expressions [q, v, ...] and [sigma, dsigma, ...]."""
    flat = function(elastic, "elastic_flat_map", order=int(rate))
    given = dict(zip([n for n in flat.name_in() if "sigma" not in n], q, strict=False))
    sigma = list(sigma or [])
    given |= dict(zip([n for n in flat.name_in() if "sigma" in n], sigma, strict=False))
    missing = [n for n in flat.name_in() if n not in given]
    if missing:
        raise ShapeError(f"planning {elastic.name}: the flat map needs {', '.join(missing)} besides; give sigma=[...]")
    out = flat(**given)
    deflection = out["theta"] - ca.vertcat(*(q[0][i] for i in deflected(elastic)))
    return FlatMotion(q, out["theta"], out["dtheta"], out["tau_m"], out["dtau_m"] if rate else None, deflection, sigma)


def plan_elastic(
    elastic,
    q_start,
    q_goal,
    *,
    continuity=None,
    objective="time",
    duration=None,
    motor_torque=None,
    motor_torque_rate=None,
    motor_speed=None,
    deflection=None,
    limits=None,
    sigma=None,
    nodes=40,
    interior=2,
    solver="ipopt",
    solver_options=None,
    check: str = "warn",
    time_limit: float | None = None,
):
    """ElasticPlan of a motion from rest to rest.

    continuity: of q; default 4, for a continuous motor torque, or 5 with a limit of its rate (reduced model).
    objective: "time" for the shortest time; "energy" for the least integral of the squared motor torques, each divided
        by its limit, the loss in motors' windings, in the given `duration` [s].
    motor_torque [Nm], motor_torque_rate [Nm/s], motor_speed [rad/s], deflection [rad]: numbers or one a motor (one a
        row of theta for the last two), None for none. limits: Limits of the links, default those of the robot; torques
        in them are left out, as the motors have their own.
    sigma: stiffnesses of the joints that vary theirs, held constant; to plan them, too, use flat_motion in a Problem.
    nodes: number of pieces. Limits hold at nodes and `interior` points inside each piece; where they are exceeded
        elsewhere by more than 0.1 % they are tightened and the problem is solved again.
    check: what to do where the plan that was found is over a limit by more than 0.1 %, or is not what the robot does
        under its motor torques, by more than 0.1 % of the motion: "warn" gives a CheckWarning that names the worst,
        "raise" a SolveError with the plan as its `trajectory`, "off" nothing. See ElasticPlan.check.
    time_limit [s]: for all of it; the solver stops at its next iteration, and the status of SolveError is "time_limit".
    Raises OrderError for a continuity that is too low, and for springs with damping, as the flat map does; LimitError
    before solving for ends that no motion can meet and where nothing bounds the time; SolveError if the solver fails,
    its trajectory the motion of the links of the last iterate.
    """
    rate = motor_torque_rate is not None
    continuity = elastic.continuity("torque_rate" if rate else "torque") if continuity is None else continuity
    names = elastic.links.coordinate_names
    ends = [vector(what, x, names) for what, x in (("q_start", q_start), ("q_goal", q_goal))]
    given = {
        "motor_torque": _limit("motor_torque", motor_torque, elastic.motor_names),
        "motor_torque_rate": _limit("motor_torque_rate", motor_torque_rate, elastic.motor_names),
        "motor_speed": _limit("motor_speed", motor_speed, elastic.theta_names),
        "deflection": _limit("deflection", deflection, elastic.theta_names),
    }
    given = {k: x for k, x in given.items() if x is not None}
    limits = (Limits.of(elastic.links) if limits is None else limits).without("tau", "dtau")
    one_of("objective", objective, ("time", "energy"))
    one_of("check", check, ("warn", "raise", "off"))
    if (objective == "energy") != (duration is not None):
        raise ShapeError("plan_elastic: give a duration with objective='energy', and with it alone")
    count("plan_elastic: interior", interior)
    if sigma is not None or elastic.sigma_names:
        if sigma is None or not elastic.sigma_names:
            have = ", ".join(elastic.sigma_names) or "none"
            raise ShapeError(f"planning {elastic.name}: give sigma for the joints that vary their stiffness: {have}")
        sigma = vector("sigma", sigma, elastic.sigma_names)
    task = _Task(elastic, ends, int(continuity), rate, given, limits, objective, duration, sigma, nodes, interior)
    task.flat(Problem(2, 1.0), continuity=continuity)  # refuses what cannot be, at once
    _refuse(task)
    with deadline(time_limit), watched():
        plan = _rounds(task, solver, solver_options)
    complaint = None if check == "off" else plan.check(_grid(plan.motion, task) / 2).complaint()
    if complaint:
        text = f"planning {elastic.name}: {complaint}; use more nodes or interior points"
        if check == "raise":
            raise SolveError(text, "check", trajectory=plan)
        warnings.warn(text, CheckWarning, stacklevel=2)
    return plan


def _grid(motion, task):
    """Step [s] at which limits are looked at."""
    return min(1e-3, motion.duration / task.nodes / 8)


@dataclass(frozen=True, eq=False)
class _Task:
    """What is asked of plan_elastic."""

    elastic: object
    ends: list
    continuity: int
    rate: bool
    given: dict
    limits: Limits
    objective: str
    duration: float | None
    sigma: np.ndarray | None
    nodes: int
    interior: int

    @property
    def jets(self):
        """[sigma, 0, ...], None where no stiffness varies."""
        return None if self.sigma is None else [self.sigma] + [np.zeros_like(self.sigma)] * (2 + self.rate)

    def flat(self, problem, **options):
        """The FlatMotion in a problem."""
        jets = None if self.sigma is None else [ca.MX(ca.DM(x)) for x in self.jets]
        return flat_motion(
            problem, self.elastic, **{"rate": self.rate, "sigma": jets, "continuity": self.continuity, **options}
        )

    def outputs(self, derivatives):
        """Outputs of the flat map at derivatives of q (K, n)."""
        jets = self.jets and [np.tile(x, (len(derivatives[0]), 1)) for x in self.jets]
        return flat_outputs(self.elastic, derivatives, int(self.rate), jets)

    @property
    def of_links(self):
        """{quantity: (order of the derivative of q, limit)} of the links' finite limits."""
        found = {order_name(k): (k, getattr(self.limits, order_name(k))) for k in range(1, 5)}
        return {name: x for name, x in found.items() if np.isfinite(x[1]).any()}


def _rounds(task, solver, solver_options):
    """The plan, its bounds tightened where limits are exceeded between the points where they hold."""
    T, guess, scale = _smooth(task)
    span = (0.2 * T, 5 * T)
    margins, plan, ocp, initial, iterations, slower, settled = {}, None, None, None, 0, 1.0, 0
    for round_ in range(_ROUNDS):
        if ocp is None:
            ocp, flat, loss, parameters = _problem(task, task.duration or span, guess, scale)
            margins = margins or {name: np.ones(p.numel()) for name, p in parameters.items()}
        values = {parameters[name]: m for name, m in margins.items()} | {"smooth": _SMOOTH[min(settled, 1)]}
        found = ocp.solve(
            solver=solver, solver_options=solver_options, initial=initial, parameters=values, raises=False, check="off"
        )
        iterations += found.iterations
        if not found.success and plan is not None and max(plan.info["shares"].values()) <= _CLEAN:
            break  # a little smoother than it would have to be
        if not found.success:
            if slower > 2 or task.duration is not None or found.status == TIME_LIMIT:
                message = f"planning {task.elastic.name}: the solver stopped with {found.status!r}"
                raise SolveError(message, found.status, trajectory=_trajectory(task, found, flat))
            slower *= 1.6  # again from a slower guess
            _, guess, scale = _smooth(task, slower)
            ocp = initial = None
            continue
        motion = _trajectory(task, found, flat)
        objective = motion.duration if loss is None else float(np.sum(found[loss]))
        plan = ElasticPlan(task.elastic, motion, task.given, objective, {}, task.sigma)
        shares = plan.check(_grid(motion, task), dynamics=False).shares
        plan.info |= {"iterations": iterations, "rounds": round_ + 1}
        plan.info["shares"] = {k: float(np.max(x, initial=0)) for k, x in shares.items()}
        initial = found
        if task.duration is None and not 1.01 * span[0] < motion.duration < 0.99 * span[1]:
            span, ocp = (0.2 * motion.duration, 5 * motion.duration), None
            continue
        settled += 1
        if max(plan.info["shares"].values()) <= _TIGHTEN and settled > 1:
            break
        for name, m in margins.items():
            reached = shares[name]
            margins[name] = m / np.where(reached > _TIGHTEN, reached * 1.0002, 1.0)
    return plan


def _problem(task, duration, guess, scale):
    """(Problem, FlatMotion, loss of an interval or None, {quantity: parameter its bounds are multiplied by})."""
    elastic, limits, start, goal = task.elastic, task.limits, *task.ends
    ocp = Problem(task.nodes, duration)
    flat = task.flat(ocp, guess=guess, scale=scale)
    names = [OUTPUTS[k] for k in task.given] + list(task.of_links)
    names += ["q"] * bool(np.isfinite(limits.q).any()) + ["v_of_q"] * (limits.v_of_q is not None)
    sizes = {OUTPUTS[k]: len(x) for k, x in task.given.items()}
    margin = {name: ocp.parameter(f"margin of {name}", sizes.get(name, elastic.nv)) for name in names}
    bounds = limits.v_of_q and velocity_bounds(limits)

    def at(part):
        if part == 0:
            return flat
        return flat_expressions(elastic, ocp.between(flat.q, part), flat.sigma, task.rate)

    for part in np.arange(task.interior + 1) / (task.interior + 1):
        here = at(part)
        for name, bound in task.given.items():
            ocp.limit(-1, getattr(here, OUTPUTS[name]) / bound / margin[OUTPUTS[name]], 1)
        for name, (order, bound) in task.of_links.items():
            kept = np.flatnonzero(np.isfinite(bound))
            ocp.limit(-1, ca.vertcat(*(here.q[order][i] / margin[name][i] / max(bound[i], 1e-9) for i in kept)), 1)
        if "q" in margin:
            for i in np.flatnonzero(np.isfinite(limits.q).any(axis=0)):
                low, high = limits.q[0][i], limits.q[1][i]
                half = (high - low) / 2 if np.isfinite(high - low) else 1.0
                inset = half * (1 - margin["q"][i])  # never past the ends, which may lie at the limit
                top, bottom = max(start[i], goal[i]), min(start[i], goal[i])
                if np.isfinite(high):
                    ocp.limit(-np.inf, here.q[0][i] - ca.fmax(high - inset, top), 0)
                if np.isfinite(low):
                    ocp.limit(0, here.q[0][i] - ca.fmin(low + inset, bottom), np.inf)
        if bounds:
            low, high = bounds(here.q[0])
            for i in range(elastic.nv):
                ocp.limit(-np.inf, here.q[1][i] - margin["v_of_q"][i] * high[i], 0)
                ocp.limit(0, here.q[1][i] - margin["v_of_q"][i] * low[i], np.inf)
    rest = {x: 0 for x in flat.q[1 : task.continuity + 1]}
    ocp.start({flat.q[0]: start, **rest})
    ocp.goal({flat.q[0]: goal, **rest})
    smooth = ocp.parameter("smooth") * ca.sumsqr(flat.q[-1] / scale[-1]) / ocp.duration
    if task.objective == "time":
        ocp.minimize(terminal=ocp.duration, integral=smooth)
        return ocp, flat, None, margin
    unit = task.given.get("motor_torque", np.ones(len(elastic.motor_names)))
    unit = np.where(np.isfinite(unit), unit, 1.0)
    # within an interval the motion is a polynomial, whose values are known at the points of Gauss' rule, too
    points, weights = np.polynomial.legendre.leggauss(3)
    shares = zip((1 + points) / 2, weights / 2, strict=True)
    loss = sum(float(w) * ca.sumsqr(at(float(s)).tau_m / unit) for s, w in shares)
    ocp.minimize(integral=loss + smooth)
    return ocp, flat, ocp.step * loss, margin


def _trajectory(task, found, flat):
    """The links' motion as polynomial pieces."""
    # friction of the links' joints is none of the flat map's: elastic_robot says so, or counts it at the motors
    motion = found.trajectory(flat.q, task.elastic.links, task.limits, friction=False)
    ends = {
        side: [x.tolist()] + [[0.0] * len(x)] * task.continuity
        for side, x in zip(("start", "goal"), task.ends, strict=True)
    }
    motion.info |= {"robot": task.elastic.name, "request": ends}
    return motion


def _smooth(task, slower=1.0):
    """(T, guesses of q, dq, ... by the share of the time, scales of them): a polynomial near the limits."""
    shape = np.zeros((task.continuity + 1, len(task.ends[0])))
    start, goal = shape.copy(), shape.copy()
    start[0], goal[0] = task.ends
    s = np.linspace(0, 1, 41)
    count = task.continuity + 2

    def derivatives(T, at):
        polynomial = hermite(start, goal, T)
        d = polynomial * np.array([factorial(j) for j in range(len(polynomial))])[:, None]
        return derivatives_at(np.repeat(d[None], len(at), axis=0), at * T, count)

    best = (np.inf, task.duration)
    for T in [task.duration] if task.duration else 0.05 * 1.2 ** np.arange(40):
        found = derivatives(T, s)
        outputs = task.outputs(found)
        asked = [np.abs(outputs[OUTPUTS[k]] / x).max(initial=0) for k, x in task.given.items()]
        worst = max((x if np.isfinite(x) else np.inf for x in asked), default=0.0)
        worst = worst if np.isfinite(outputs["theta"]).all() else np.inf
        for order, bound in task.of_links.values():
            worst = max(worst, np.max(np.abs(found[order]) / np.maximum(bound, 1e-9)))
        if task.limits.v_of_q is not None:
            low, high = (np.array(x).T for x in velocity_bounds(task.limits)(found[0].T))
            worst = max(
                worst,
                np.max(np.where(found[1] >= 0, found[1] / np.maximum(high, 1e-9), found[1] / np.minimum(low, -1e-9))),
            )
        if worst < 0.999 * best[0]:
            best = (worst, T)
        if worst <= 1:
            break
    T = best[1] * slower if task.duration is None else best[1]
    sizes = [np.maximum(np.abs(x).max(axis=0), 1e-2 * np.abs(x).max() + 1e-6) for x in derivatives(T, s)]
    return T, [lambda share, k=k: derivatives(T, np.array([share]))[k, 0] for k in range(count)], sizes


def _refuse(task):
    """Raise LimitError, naming limit and joint, for what no motion can do."""
    elastic, limits, given = task.elastic, task.limits, task.given
    names = elastic.links.coordinate_names
    if limits.joints != names:
        raise ShapeError(f"limits are of the joints {limits.joints}, expected {names}")
    held = []
    for where, q in zip(("q_start", "q_goal"), task.ends, strict=True):
        for i, name in enumerate(names):
            if not limits.q[0][i] - 1e-9 <= q[i] <= limits.q[1][i] + 1e-9:
                bounds = f"{limits.q[0][i]:.6g} to {limits.q[1][i]:.6g}"
                raise LimitError(f"{where}: joint {name!r} is {q[i]:.6g}, outside its limits {bounds}")
        held.append({k: x[0] for k, x in task.outputs([q[None]]).items()})
        still = {"q": q[:, None], "v": np.zeros((len(q), 1)), "dv": np.zeros((len(q), 1))}
        still |= {} if task.sigma is None else {"sigma": task.sigma[:, None]}
        error = refusal(elastic, still, held[-1]["theta"][:, None])
        if error:
            raise LimitError(f"{where}: {error}")
        for what, of in (("motor_torque", elastic.motor_names), ("deflection", elastic.theta_names)):
            value = held[-1][OUTPUTS[what]]
            for i, name in enumerate(of) if what in given else ():
                if abs(value[i]) > given[what][i] * (1 + 1e-9):
                    raise LimitError(
                        f"{where}: motor {name!r} needs {what} = {value[i]:.6g} for holding still, "
                        f"over its limit {given[what][i]:.6g}"
                    )
    distance = np.abs(task.ends[1] - task.ends[0])
    if task.objective == "time":
        if distance.max() < 1e-12:
            raise LimitError("q_start and q_goal are the same: there is nothing to plan in the shortest time")
        own = [getattr(limits, order_name(k)) for k in range(1, 5)]
        bounded = np.isfinite(own).any(axis=0) | (limits.v_of_q is not None)
        if not bounded[distance > 1e-12].any() and not any(np.isfinite(x).any() for x in given.values()):
            raise LimitError("nothing bounds the time: give motor_torque, motor_speed or another limit")
    needs = [
        ("velocity, acceleration and jerk of joint", names, shortest_time(distance, limits.v, limits.dv, limits.d2v))
    ]
    if "motor_speed" in given:
        far = np.abs(held[1]["theta"] - held[0]["theta"])
        never = np.full(len(far), np.inf)
        needs.append(("motor_speed of", elastic.theta_names, shortest_time(far, given["motor_speed"], never, never)))
    for what, of, least in needs:
        for i, name in enumerate(of):
            if not np.isfinite(least[i]) or (task.duration and least[i] > task.duration * (1 + 1e-9)):
                allowed = "" if task.duration is None else f", and the duration is {task.duration:g} s"
                raise LimitError(f"the limits of {what} {name!r} ask for at least {least[i]:.6g} s{allowed}")


def _limit(what, value, names):
    if value is None:
        return None
    value = as_floats(what, value).ravel()
    if value.size not in (1, len(names)) or not np.all(value > 0):
        raise ShapeError(
            f"{what}: got {value.tolist()}, expected a positive number, or {len(names)}: {', '.join(names)}"
        )
    return np.array(np.broadcast_to(value, len(names)))
