"""Planning of elastic robots through the flat map: the links' motion is chosen, what springs and motors do follows.

The motion is a chain of integrators, q continuously differentiable as often as the motor torque needs; limits of motor
torque, its rate, motor speed and spring deflection are limits of the flat map's outputs. All hold at nodes and are
checked between them.
"""

from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

from ..errors import LimitError, OrderError, ShapeError, SolveError, UnknownName
from ..function import function
from ..planning.limits import Limits
from ..planning.polynomials import derivatives_at, hermite
from ..planning.problem import Problem
from ..planning.trajectory import Trajectory, joint_units

LIMITS = ("motor_torque", "motor_torque_rate", "motor_speed", "deflection")
_TIGHTEN, _ROUNDS = 1.002, 6


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
    flat = function(elastic, "elastic_flat_map", order=int(rate))
    given = dict(zip([n for n in flat.name_in() if "sigma" not in n], q, strict=False))
    sigma = list(sigma or [])
    given |= dict(zip([n for n in flat.name_in() if "sigma" in n], sigma, strict=False))
    missing = [n for n in flat.name_in() if n not in given]
    if missing:
        raise ShapeError(f"planning {elastic.name}: the flat map needs {', '.join(missing)} besides; give sigma=[...]")
    out = flat(**given)
    rows = [j.q for j in elastic.joints for _ in j.theta]
    deflection = out["theta"] - ca.vertcat(*(q[0][i] for i in rows))
    return FlatMotion(q, out["theta"], out["dtheta"], out["tau_m"], out["dtau_m"] if rate else None, deflection, sigma)


@dataclass(eq=False)
class ElasticPlan:
    """A planned motion of an elastic robot.

    motion: Trajectory of the links. objective, shares {limit: largest share between nodes}, info. Sampled by
    sample(dt): t (K,), q, v, dv, ... of the links, theta, dtheta, tau_m, dtau_m, deflection (K, ...).
    """

    elastic: object
    motion: Trajectory
    limits: dict
    objective: float
    info: dict

    @property
    def duration(self):
        return self.motion.duration

    def sample(self, dt=1e-3):
        """{"t": (K,), "q", "v", ..., "theta", "dtheta", "tau_m", "dtau_m", "deflection": (K, n)} every dt [s]."""
        t = self.motion.sample(dt).t
        return {"t": t, **outputs_along(self.elastic, self.motion, t)}

    def shares(self, dt=1e-3):
        """{limit: largest share that is reached} along the motion, every dt [s]."""
        return _shares(self.sample(dt), self.limits)

    def save(self, path, dt=1e-3):
        """Write a CSV of the samples: a column a joint or motor, SI units. The file appears complete or not at all."""
        from ..planning.files import write_text

        samples = self.sample(dt)
        names = {"q": self.elastic.links.coordinate_names, "motor": self.elastic.motor_names}
        header, columns = ["t [s]"], [samples["t"]]
        for quantity, values in samples.items():
            if quantity == "t":
                continue
            for k, column in enumerate(values.T):
                rows = {"theta": self.elastic.theta_names, "dtheta": self.elastic.theta_names}
                rows |= {"deflection": self.elastic.theta_names, "tau_m": names["motor"], "dtau_m": names["motor"]}
                header.append(f"{quantity} {rows.get(quantity, names['q'])[k]}")
                columns.append(column)
        lines = [",".join(header)] + [",".join(repr(float(x)) for x in row) for row in zip(*columns, strict=True)]
        write_text(path, "\n".join(lines) + "\n")


def outputs_along(elastic, motion, t, sigma=None):
    """Outputs of the flat map along a Trajectory of the links at times t (K,); sigma: [sigma, dsigma, ...] (K, n)."""
    order = 1 if motion.continuity >= elastic.continuity("torque_rate") - 1 else 0
    flat = function(elastic, "elastic_flat_map", order=order)
    derivatives = motion.sample(np.asarray(t, float)).derivatives
    names = [n for n in flat.name_in() if "sigma" not in n]
    zeros = np.zeros_like(derivatives[0])
    given = {n: (derivatives[k] if k < len(derivatives) else zeros).T for k, n in enumerate(names)}
    given |= {n: x.T for n, x in zip([n for n in flat.name_in() if "sigma" in n], sigma or [], strict=False)}
    found = flat(**given)
    out = {n: x for n, x in zip(names, derivatives, strict=False)}
    out |= {n: np.array(found[n]).T for n in ("theta", "dtheta", "tau_m", "dtau_m") if n in found}
    rows = [j.q for j in elastic.joints for _ in j.theta]
    out["deflection"] = out["theta"] - out["q"][:, rows]
    return out


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
    nodes=40,
    solver="ipopt",
    solver_options=None,
):
    """ElasticPlan of a motion from rest to rest.

    continuity: of q; default 4, for a continuous motor torque, or 5 with a limit of its rate (reduced model).
    objective: "time" for the shortest time; "energy" for the least integral of the squared motor torques, each divided
        by its limit, the loss in motors' windings, in the given `duration` [s].
    motor_torque [Nm], motor_torque_rate [Nm/s], motor_speed [rad/s], deflection [rad]: numbers or one a motor (one a
        row of theta for the last two), None for none. limits: Limits of the links, default those of the robot, without
        their torques.
    nodes: number of pieces. Limits hold at nodes; where they are exceeded between them by more than 0.2 % they are
        tightened and the problem solved again.
    Raises OrderError for a continuity that is too low, and for springs with damping, as the flat map does; LimitError
    before solving for ends that no motion can meet; SolveError.
    """
    rate = motor_torque_rate is not None
    continuity = elastic.continuity("torque_rate" if rate else "torque") if continuity is None else continuity
    names = elastic.links.coordinate_names
    ends = [_vector(what, x, len(names), names) for what, x in (("q_start", q_start), ("q_goal", q_goal))]
    given = {
        "motor_torque": _limit("motor_torque", motor_torque, elastic.motor_names),
        "motor_torque_rate": _limit("motor_torque_rate", motor_torque_rate, elastic.motor_names),
        "motor_speed": _limit("motor_speed", motor_speed, elastic.theta_names),
        "deflection": _limit("deflection", deflection, elastic.theta_names),
    }
    given = {k: x for k, x in given.items() if x is not None}
    limits = Limits.of(elastic.links) if limits is None else limits
    if objective not in ("time", "energy"):
        raise UnknownName("objective", objective, ("time", "energy"))
    if (objective == "energy") != (duration is not None):
        raise ShapeError("plan_elastic: give a duration with objective='energy', and with it alone")
    flat_motion(Problem(2, 1.0), elastic, continuity=continuity, rate=rate)  # refuses what cannot be, at once
    _refuse(elastic, ends, given, limits, objective)
    T, guess, scale = _smooth(elastic, ends, continuity, given, limits, duration)
    margins = {k: np.ones_like(x) for k, x in given.items()}
    initial, iterations = None, 0
    for round_ in range(_ROUNDS):
        ocp = Problem(nodes, duration if duration else (0.2 * T, 5 * T))
        flat = flat_motion(ocp, elastic, continuity=continuity, rate=rate, guess=guess, scale=scale)
        values = {"motor_torque": flat.tau_m, "motor_torque_rate": flat.dtau_m}
        values |= {"motor_speed": flat.dtheta, "deflection": flat.deflection}
        for k, bound in given.items():
            ocp.limit(-margins[k], values[k] / bound, margins[k])
        for order, bound in enumerate((limits.v, limits.dv, limits.d2v)):
            if np.isfinite(bound).any():
                ocp.limit(-1, flat.q[order + 1] / np.where(np.isfinite(bound), bound, 1e6), 1)
        if np.isfinite(limits.q).any():
            ocp.limit(limits.q[0], flat.q[0], limits.q[1])
        rest = {x: 0 for x in flat.q[1 : continuity + 1]}
        ocp.start({flat.q[0]: ends[0], **rest})
        ocp.goal({flat.q[0]: ends[1], **rest})
        unit = given.get("motor_torque", np.ones(len(elastic.motor_names)))
        smooth = 1e-6 * ca.sumsqr(flat.q[-1] / scale[-1]) / ocp.duration
        if objective == "time":
            ocp.minimize(terminal=ocp.duration, integral=smooth)
        else:
            ocp.minimize(integral=ca.sumsqr(flat.tau_m / unit) + smooth)
        found = ocp.solve(solver=solver, initial=initial, solver_options=solver_options, raises=False)
        iterations += found.iterations
        if not found.success:
            raise SolveError(f"planning {elastic.name}: the solver stopped with {found.status!r}", found.status)
        motion = _trajectory(elastic, found, flat, limits)
        plan = ElasticPlan(elastic, motion, given, found.objective, {"iterations": iterations, "rounds": round_ + 1})
        reached = _shares_by_row(plan.sample(min(1e-3, motion.duration / nodes / 8)), given)
        if all(np.max(x, initial=0) <= _TIGHTEN for x in reached.values()):
            break
        margins = {k: m / np.maximum(reached[k] * 1.0002, 1.0) for k, m in margins.items()}
        initial = found
    plan.info["shares"] = {k: float(np.max(x, initial=0)) for k, x in reached.items()}
    return plan


def _trajectory(elastic, found, flat, limits):
    """The links' motion as polynomial pieces."""
    pieces = np.stack([found[x][: len(found.t) - 1] for x in flat.q], axis=1)
    return Trajectory(
        found.t,
        pieces,
        joints=elastic.links.coordinate_names,
        units=joint_units(elastic.links),
        robot=elastic.links,
        limits=limits.without("tau", "dtau"),
        info={"robot": elastic.name, "solver_status": found.status, "iterations": found.iterations},
    )


def _smooth(elastic, ends, continuity, given, limits, duration):
    """(T, guesses of q, dq, ... by the share of the time, scales of them): a polynomial near the limits."""
    shape = np.zeros((continuity + 1, len(ends[0])))
    start, goal = shape.copy(), shape.copy()
    start[0], goal[0] = ends
    s = np.linspace(0, 1, 41)
    count = continuity + 2

    def derivatives(T, at):
        polynomial = hermite(start, goal, T)
        d = polynomial * np.array([factorial(j) for j in range(len(polynomial))])[:, None]
        return derivatives_at(np.repeat(d[None], len(at), axis=0), at * T, count)

    best = (np.inf, None)
    for T in [duration] if duration else 0.2 * 1.2 ** np.arange(30):
        found = derivatives(T, s)
        worst = max((float(np.max(x)) for x in _along(elastic, found, given).values()), default=0.0)
        for order, bound in enumerate((limits.v, limits.dv, limits.d2v)):
            worst = max(worst, float(np.max(np.abs(found[order + 1]) / bound)))
        if worst < 0.999 * best[0]:
            best = (worst, T)
        if worst <= 1:
            break
    T = best[1]
    sizes = [np.maximum(np.abs(x).max(axis=0), 1e-2 * np.abs(x).max() + 1e-6) for x in derivatives(T, s)]
    return T, [lambda share, k=k: derivatives(T, np.array([share]))[k, 0] for k in range(count)], sizes


def _along(elastic, derivatives, given):
    """Shares of the limits by row along derivatives (count, K, n) of q."""
    flat = function(elastic, "elastic_flat_map", order=int("motor_torque_rate" in given))
    names = flat.name_in()
    zeros = np.zeros_like(derivatives[0])
    found = flat(**{n: (derivatives[k] if k < len(derivatives) else zeros).T for k, n in enumerate(names)})
    rows = [j.q for j in elastic.joints for _ in j.theta]
    out = {n: np.array(found[n]).T for n in ("theta", "dtheta", "tau_m", "dtau_m") if n in found}
    out["deflection"] = out["theta"] - derivatives[0][:, rows]
    return _shares_by_row(out, given)


_SAMPLED = dict(zip(LIMITS, ("tau_m", "dtau_m", "dtheta", "deflection"), strict=True))


def _shares_by_row(samples, given):
    return {k: np.abs(samples[_SAMPLED[k]]).max(axis=0) / bound for k, bound in given.items()}


def _shares(samples, given):
    return {k: float(np.max(x, initial=0)) for k, x in _shares_by_row(samples, given).items()}


def _refuse(elastic, ends, given, limits, objective):
    flat = function(elastic, "elastic_flat_map")
    for where, q in zip(("q_start", "q_goal"), ends, strict=True):
        for i, name in enumerate(elastic.links.coordinate_names):
            if not limits.q[0][i] - 1e-9 <= q[i] <= limits.q[1][i] + 1e-9:
                bounds = f"{limits.q[0][i]:.6g} to {limits.q[1][i]:.6g}"
                raise LimitError(f"{where}: joint {name!r} is {q[i]:.6g}, outside its limits {bounds}")
        held = flat(q=q)
        torque = np.array(held["tau_m"]).ravel()
        rows = [j.q for j in elastic.joints for _ in j.theta]
        bent = np.array(held["theta"]).ravel() - q[rows]
        for what, value, names in (
            ("motor_torque", torque, elastic.motor_names),
            ("deflection", bent, elastic.theta_names),
        ):
            for i, name in enumerate(names) if what in given else ():
                if abs(value[i]) > given[what][i] * (1 + 1e-9):
                    raise LimitError(
                        f"{where}: motor {name!r} needs {what} = {value[i]:.6g} for holding still, "
                        f"over its limit {given[what][i]:.6g}"
                    )
    if objective == "time" and np.abs(ends[1] - ends[0]).max() < 1e-12:
        raise LimitError("q_start and q_goal are the same: there is nothing to plan in the shortest time")


def _vector(what, value, size, names):
    value = np.asarray(value, float).ravel()
    if value.size != size or not np.all(np.isfinite(value)):
        raise ShapeError(f"{what}: got {value.tolist()}, expected {size} finite numbers: {', '.join(names)}")
    return value


def _limit(what, value, names):
    if value is None:
        return None
    value = np.asarray(value, float).ravel()
    if value.size not in (1, len(names)) or not np.all(value > 0):
        raise ShapeError(
            f"{what}: got {value.tolist()}, expected a positive number, or {len(names)}: {', '.join(names)}"
        )
    return np.array(np.broadcast_to(value, len(names)))
