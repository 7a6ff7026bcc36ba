"""A quadruped with springs in its joints hops forward: planned on the elastic model, driven by the planned torques.

    minimise    integral of |tau_m / limit|^2
    over        trunk (x, z, pitch), feet (x, z) and squeeze of the stance: polynomials, one per phase; durations
    subject to  standing at both ends, four times differentiable throughout,
                (theta, tau_m) = flat map of (q, .., q^(4), f, f', f''),  f: forces that fit the motion of the trunk,
                |tau_m|, |theta'|, |theta - q| and joints within limits, f in the friction cones, feet above in flight;
                flight: the equations of the trunk, at points.

While four feet stand, the robot is flat: any motion of its trunk has forces that fit, so that what drives it is exact.
In flight it is not: the momentum binds trunk and legs. There the polynomials obey at points alone, and the error that
this makes is bounded along the motion. Two simulations of the full elastic robot follow: open loop, and under the
planned torques and a PD loop on each motor with springs other than planned.
Robot: of the size and build of HyQ (Semini et al. 2011); springs, motors, limits and hop are ours.
Run:    python problems/quadruped_sea_hop.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass
from math import comb, perm

import casadi as ca
import numpy as np

import oc_dyn as od

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
HIP, THIGH, SHANK = (0.37, -0.08), 0.35, 0.33  # of od.robots.quadruped [m]
SQUEEZE = np.array([[1, 1, -1, -1], [0, 0, 0, 0], [0, 0, 0, 0]])  # front feet forward, hind feet backward
LEFT = [0, 1, 2, 6, 7, 8]  # motors of the left legs; those of the right do the same


@dataclass(frozen=True)
class Config:
    hop: float = 0.2  # forward [m]
    stiffness: float = 400.0  # [Nm/rad]
    motor_inertia: float = 0.05  # as seen at the joints [kg m2]
    friction: float = 0.6
    limits: tuple = (150.0, 14.0, 0.4)  # motor torque [Nm], motor speed [rad/s], deflection [rad]
    hip: float = 0.75  # standing angle of the hip about y [rad]; the knee bends back by twice as much
    durations: tuple = ((0.3, 0.6), (0.2, 0.35), (0.3, 0.6))  # push, flight, landing [s]
    degrees: tuple = (12, 12, 12)  # of the trunk's polynomials
    feet: int = 12  # degree of the feet's
    squeeze: int = 6  # degree of the squeeze's
    iterations: int = 60  # towards the optimum, before constraints are made to hold
    points: tuple = (20, 16, 20)  # of each phase, at which limits hold
    clearance: float = 0.04  # of the feet in the middle of the flight [m]
    margin: float = 0.04  # share of limits, for what is between points
    gains: tuple = (400.0, 10.0)  # of the motors [Nm/rad], [Nms/rad]
    softer: float = 0.03  # springs of the robot that is simulated with the loop, relative
    fps: int = 20


def legs(Y):
    """(4,) angles of front hip and knee, hind hip and knee from (x, z, pitch, front foot x z, hind foot x z)."""
    c, s, angles = ca.cos(Y[2]), ca.sin(Y[2]), []
    for sign, foot in ((1, Y[3:5]), (-1, Y[5:7])):
        dx, dz = foot[0] - Y[0], foot[1] - Y[1]
        dx, dz = c * dx - s * dz - sign * HIP[0], s * dx + c * dz - HIP[1]
        knee = -sign * ca.acos((dx**2 + dz**2 - THIGH**2 - SHANK**2) / (2 * THIGH * SHANK))
        hip = ca.atan2(dx, -dz) - ca.atan2(SHANK * ca.sin(knee), THIGH + SHANK * ca.cos(knee))
        angles += [hip, knee]
    return ca.vertcat(*angles)


def outputs_to_motion():
    """Function (Y, .., Y^(4)) -> q, v, dv, d2v, d3v of the robot, from outputs (7,) as of legs, and derivatives."""
    Y = [ca.SX.sym(f"Y{k}", 7) for k in range(5)]
    angles, (c, s) = legs(Y[0]), (ca.cos(Y[0][2]), ca.sin(Y[0][2]))
    rates = ca.jtimes(angles, Y[0], Y[1])
    q_legs, v_legs = (ca.vertcat(0, x[0], x[1], 0, x[0], x[1], 0, x[2], x[3], 0, x[2], x[3]) for x in (angles, rates))
    q = ca.vertcat(ca.cos(Y[0][2] / 2), 0, ca.sin(Y[0][2] / 2), 0, Y[0][0], 0, Y[0][1], q_legs)
    v = [ca.vertcat(0, Y[1][2], 0, c * Y[1][0] - s * Y[1][1], 0, s * Y[1][0] + c * Y[1][1], v_legs)]
    for _ in range(3):
        v.append(ca.cse(ca.jtimes(v[-1], ca.vertcat(*Y[:4]), ca.vertcat(*Y[1:]))))
    return ca.Function("motion", Y, [q, *v], [f"Y{k}" for k in range(5)], ["q", "v", "dv", "d2v", "d3v"])


def whole(elastic, Y, squeeze=None):
    """(q, v, .., d3v; f, df, d2f; theta, dtheta, d2theta, tau_m, tau_base) from outputs [Y, ..], and the squeeze and its
    derivatives (3,) of four feet that stand; None in flight."""
    motion = outputs_to_motion().call(Y)
    f = [ca.DM.zeros(3, 4)] * 3
    if squeeze is not None:
        wanted = [ca.DM(SQUEEZE) * squeeze[k] for k in range(3)]
        f = od.elastic.contact_forces(elastic, FEET).call([*motion, *wanted])
    return motion, f, od.elastic.contact_flat_map(elastic, FEET).call([*motion, *f])


def samples(elastic):
    """(stance, flight): Functions that give what has limits, of the left legs: motor torques, speeds, deflections,
    joints (6,) each; stance (trunk (3, 5), feet (4,), squeeze (3,)): forces (3, 2) besides; flight (Y (7, 5)): what is
    missing in the trunk's equations (wy, vx, vz) and its derivatives (3, 3)."""
    trunk, feet, squeeze = ca.SX.sym("trunk", 3, 5), ca.SX.sym("feet", 4), ca.SX.sym("squeeze", 3)
    Y, standing = ca.SX.sym("Y", 7, 5), [ca.vertcat(trunk[:, k], ca.SX(4, 1) if k else feet) for k in range(5)]
    out = []
    for outputs, inputs in ((standing, [trunk, feet, squeeze]), (ca.horzsplit(Y), [Y])):
        motion, f, (theta, dtheta, _, tau_m, _) = whole(elastic, outputs, squeeze if outputs is standing else None)
        rows = [x[LEFT] for x in (tau_m, dtheta, theta - motion[0][7:], motion[0][7:])]
        base = od.function(elastic.links, "inverse_dynamics", order=2).call(motion)
        rows.append(f[0][:, [0, 2]] if outputs is standing else ca.horzcat(*(x[[1, 3, 5]] for x in base)))
        out.append(ca.Function("sample", inputs, rows, {"cse": True}))
    return out


def basis(degree, tau, order=4):
    """Values of Bernstein polynomials at tau in [0, 1], and of their derivatives: [(degree + 1, times), ..]."""
    tau, D, found = np.atleast_1d(tau), np.eye(degree + 1), []
    for k in range(order + 1):
        n = degree - k
        if n < 0:
            found.append(np.zeros((degree + 1, len(tau))))
            continue
        found.append(perm(degree, k) * D @ np.array([comb(n, i) * tau**i * (1 - tau) ** (n - i) for i in range(n + 1)]))
        D = D @ (np.eye(n + 1, n, k=-1) - np.eye(n + 1, n))
    return found


def jets(points, degree, T, tau, order=4):
    """[x, x', ..] at tau in [0, 1] of a phase of length T, from control points (rows, degree + 1)."""
    return [points @ B / T**k for k, B in enumerate(basis(degree, tau, order))]


def standing(cfg):
    """(7,) outputs of the robot standing with its feet below its hips, at x = 0."""
    height = -HIP[1] + (THIGH + SHANK) * np.cos(cfg.hip)
    ahead = (THIGH - SHANK) * np.sin(cfg.hip)
    return np.array([0, height, 0, HIP[0] + ahead, 0, -HIP[0] - ahead, 0])


def guess(cfg, at, to, T):
    """Control points of the trunk in each phase: two joined jets per phase, in flight a parabola."""
    rise, g = 0.06, 9.81
    v = (cfg.hop / (T[0] / 2 + T[1] + T[2] / 2), g * T[1] / 2)
    off = np.array([[at[0] + v[0] * T[0] / 2, at[1] + rise, 0], [v[0], v[1], 0], [0, -g, 0]])
    down = np.array([[to[0] - v[0] * T[2] / 2, at[1] + rise, 0], [v[0], -v[1], 0], [0, -g, 0]])
    ends = [np.array([x[:3], np.zeros(3), np.zeros(3)]) for x in (at, to)]
    found = []
    for n, length, first, last in zip(cfg.degrees, T, (ends[0], off, down), (off, down, ends[1]), strict=True):
        low = basis(5, [0.0, 1.0], 2)
        A = np.concatenate([(x / length**k).T for k, x in enumerate(low)])
        c = np.linalg.solve(A, np.concatenate([np.array([first[k], last[k]]) for k in range(3)]))
        tau = np.linspace(0, 1, n + 1)
        found.append(np.linalg.solve(basis(n, tau, 0)[0].T, basis(5, tau, 0)[0].T @ c).T)
    return found


@dataclass(frozen=True, eq=False)
class Hop:
    """The plan: durations (3,), and of each phase control points of trunk (3, .), feet (4, .) and squeeze (1, .)."""

    T: np.ndarray
    trunk: list
    feet: list
    squeeze: list


def plan(cfg, elastic):
    """Hop, by IPOPT."""
    opti, at, feet = ca.Opti(), standing(cfg), cfg.feet
    to = at + cfg.hop * np.array([1, 0, 0, 1, 0, 1, 0])
    T, swing = opti.variable(3), opti.variable(4, feet + 1)
    trunk = [opti.variable(3, n + 1) for n in cfg.degrees]
    squeeze = [100 * opti.variable(1, cfg.squeeze + 1) for _ in range(2)]
    equal = joins(cfg, T, trunk, swing, squeeze, at, to)
    stance, flight = samples(elastic)
    cost = 0
    for k in range(3):
        tau = (1 - np.cos(np.pi * np.linspace(0, 1, cfg.points[k]))) / 2
        Y = jets(trunk[k], cfg.degrees[k], T[k], tau)
        if k == 1:
            Y = [ca.vertcat(x, y) for x, y in zip(Y, jets(swing, feet, T[k], tau), strict=True)]
            x = flight.map(len(tau))(columns(Y, 7))
            arc = cfg.clearance * (4 * tau * (1 - tau)) ** 6
            opti.subject_to(ca.vec(Y[0][[4, 6], :] - np.tile(arc, (2, 1)))[2:-2] >= 0)
            inner = (1 - np.cos(np.pi * (np.arange(cfg.degrees[1] - 7) + 0.5) / (cfg.degrees[1] - 7))) / 2
            for points, order in ((inner, 1), (np.array([0.0, 1.0]), 3)):
                Y = [
                    ca.vertcat(x, y)
                    for x, y in zip(jets(trunk[k], cfg.degrees[k], T[k], points), jets(swing, feet, T[k], points), strict=True)
                ]
                r = flight.map(len(points))(columns(Y, 7))[4]
                equal += [r[:, i::3] / 10 ** (2 + i) for i in range(order)]
        else:
            s = jets(squeeze[k // 2], cfg.squeeze, T[k], tau, 2)
            standing_ = np.tile((to if k else at)[3:, None], (1, len(tau)))
            x = stance.map(len(tau))(columns(Y, 3), standing_, ca.vertcat(*s))
            F = x[4]
            for sign in (-1, 1):
                opti.subject_to(((1 - cfg.margin) * cfg.friction * F[2, :] + sign * F[0, :]).T / 100 >= 0)
        keep = 1 - cfg.margin
        for y, limit in zip(x[:3], cfg.limits, strict=True):
            opti.subject_to(opti.bounded(-keep, ca.vec(y / limit), keep))
        low, high = (elastic.links.limit(name)[7:][LEFT][[1, 2, 4, 5]] for name in ("lower", "upper"))
        low, high = (np.tile(y, len(tau)) for y in (low + cfg.margin, high - cfg.margin))
        opti.subject_to(opti.bounded(low, ca.vec(x[3][[1, 2, 4, 5], :]), high))
        weights = np.gradient(tau)
        cost += T[k] * ca.dot(ca.sum1((x[0] / cfg.limits[0]) ** 2).T, weights)
    opti.subject_to([opti.bounded(low, T[k], high) for k, (low, high) in enumerate(cfg.durations)])
    opti.subject_to(ca.vertcat(*map(ca.vec, equal)) == 0)
    T0 = np.mean(cfg.durations, axis=1)
    for x, value in zip((T, *trunk), (T0, *guess(cfg, at, to, T0)), strict=True):
        opti.set_initial(x, value)
    share = np.clip((np.arange(feet + 1) - 4) / (feet - 8), 0, 1)
    lift = 2 * cfg.clearance * ((share > 0) & (share < 1))
    opti.set_initial(swing, at[3:, None] + np.outer([cfg.hop, 0, cfg.hop, 0], share) + np.outer([0, 1, 0, 1], lift))
    x = optimised(opti, cost, equal, cfg.iterations)
    value = ca.Function("value", [opti.x], [T, *trunk, swing, *squeeze])
    T, *trunk, swing, first, last = (np.array(y) for y in value(x))
    feet = [at[3:, None], swing, to[3:, None]]
    return Hop(T.ravel(), trunk, feet, [first, last])


def optimised(opti, cost, equal, iterations):
    """Variables after so many iterations towards the optimum, and then moved the least so that `equal` is zero."""
    opti.minimize(cost)
    options = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": iterations}
    opti.solver("ipopt", {"print_time": False, "error_on_fail": False}, options)
    opti.solve_limited()
    x, equal = opti.debug.value(opti.x), ca.vertcat(*map(ca.vec, equal))
    f = ca.Function("equal", [opti.x], [equal, ca.jacobian(equal, opti.x)])
    for _ in range(8):
        miss, slope = (y.full() for y in f(x))
        x = x - np.linalg.lstsq(slope, miss.ravel(), rcond=1e-12)[0]
    return x


def columns(jets, rows):
    """(rows, 5 times): for each time the five columns of value and derivatives."""
    return ca.reshape(ca.vertcat(*jets), rows, 5 * jets[0].shape[1])


def joins(cfg, T, trunk, swing, squeeze, at, to):
    """What is to be zero: rest at both ends, four continuous derivatives between phases, feet that rest where they leave
    and come, no squeeze there."""
    ends = [jets(x, n, T[k], [0.0, 1.0]) for k, (x, n) in enumerate(zip(trunk, cfg.degrees, strict=True))]
    equal = []
    for k, size in enumerate(10.0 ** np.arange(5)):
        rest = [x[:3] * (k == 0) for x in (at, to)]
        equal += [(ends[0][k][:, 0] - rest[0]) / size, (ends[2][k][:, 1] - rest[1]) / size]
        equal += [(ends[i][k][:, 1] - ends[i + 1][k][:, 0]) / size for i in range(2)]
    for k in range(5):  # a Bernstein polynomial rests at an end where five control points are equal
        equal += [swing[:, k] - at[3:], swing[:, cfg.feet - k] - to[3:]]
    return equal + [squeeze[0][cfg.squeeze - k] / 100 for k in range(3)] + [squeeze[1][k] / 100 for k in range(3)]
