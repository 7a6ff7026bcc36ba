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
from itertools import pairwise
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
    hop: float = 0.1  # forward [m]
    stiffness: float = 400.0  # [Nm/rad]
    motor_inertia: float = 0.05  # as seen at the joints [kg m2]
    friction: float = 0.6
    limits: tuple = (150.0, 14.0, 0.4)  # motor torque [Nm], motor speed [rad/s], deflection [rad]
    hip: float = 0.75  # standing angle of the hip about y [rad]; the knee bends back by twice as much
    durations: tuple = ((0.3, 0.6), (0.25, 0.4), (0.3, 0.6))  # push, flight, landing [s]
    degrees: tuple = (11, 22, 11)  # of the trunk's polynomials
    feet: int = 12  # degree of the feet's
    squeeze: int = 6  # degree of the squeeze's
    iterations: int = 40  # towards the optimum, before constraints are made to hold; see plan
    points: tuple = (16, 12, 20)  # of each phase, at which limits hold
    clearance: float = 0.04  # of the feet in the middle of the flight [m]
    smooth: float = 1.0  # weight of third differences of control points in flight
    margin: float = 0.04  # share of limits, for what is between points
    gains: tuple = (400.0, 10.0)  # of the motors [Nm/rad], [Nms/rad]
    softer: float = 0.03  # springs of the robot that is simulated with the loop, relative
    seen: int = 100  # intervals of each phase, at whose ends the plan is looked at
    missing: float = 10.0  # wrench at the trunk in flight, between points [N, Nm]
    astray: float = 0.02  # largest error of the state, of all units, at the end of the open loop
    dt: float = 0.01  # between rows of simulations [s]
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
    """(q, v, .., d3v; f, df, d2f; theta, dtheta, d2theta, tau_m, tau_base) from outputs [Y, ..], and the squeeze, with
    its derivatives (3,), of four feet that stand; None in flight."""
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
    """Values of Bernstein polynomials at tau in [0, 1], numbers or an expression, and of their derivatives:
    [(degree + 1, times), ..]."""
    numeric, D, found = not isinstance(tau, ca.SX), ca.DM.eye(degree + 1), []
    tau = np.atleast_1d(tau) if numeric else tau
    for k in range(order + 1):
        n = degree - k
        rows = [comb(n, i) * tau**i * (1 - tau) ** (n - i) for i in range(n + 1)]
        found.append(perm(degree, k) * D @ (ca.DM(np.array(rows)) if numeric else ca.vertcat(*rows)))
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
        A = np.concatenate([x.full().T / length**k for k, x in enumerate(low)])
        c = np.linalg.solve(A, np.concatenate([np.array([first[k], last[k]]) for k in range(3)]))
        tau = np.linspace(0, 1, n + 1)
        found.append(np.linalg.solve(basis(n, tau, 0)[0].full().T, basis(5, tau, 0)[0].full().T @ c).T)
    return found


@dataclass(frozen=True, eq=False)
class Hop:
    """The plan: durations (3,); control points of the trunk in each phase (3, .), of the feet in flight (4, .), of the
    squeeze in push and landing (1, .); facts: how the search ended."""

    T: np.ndarray
    trunk: list
    swing: np.ndarray
    squeeze: list
    facts: dict


def plan(cfg, elastic):
    """Hop, by IPOPT: a motion that keeps all limits, of a cost of 0.38 where the guess has 0.63, not the optimum.

    The search ends after so many iterations. Exact second derivatives and equations that are made orthonormal at the
    start go on from a cost of 0.325 to 0.273 in 27 iterations of 1.2 s, and do not converge in these: torques are
    fourth derivatives of control points, the norms of the equations' rows lie 1e6 apart, their condition is 8e8, and
    many steps are cut to hundredths.
    """
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
            Y = flying(cfg, T[k], trunk[k], swing, tau)
            x = flight.map(len(tau))(columns(Y, 7))
            height, middle = Y[0][[4, 6], :], swing[[1, 3], :] @ basis(feet, 0.5, 0)[0]
            opti.subject_to([ca.vec(height)[2:-2] >= 0, middle >= cfg.clearance])
            inner = (1 - np.cos(np.pi * (np.arange(cfg.degrees[1] - 7) + 0.5) / (cfg.degrees[1] - 7))) / 2
            for points, order in ((inner, 1), (np.array([0.0, 1.0]), 3)):
                r = flight.map(len(points))(columns(flying(cfg, T[k], trunk[k], swing, points), 7))[4]
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
    cost += cfg.smooth * sum(ca.sumsqr(ca.diff(x, 3, 1)) for x in (swing, trunk[1]))
    opti.subject_to(ca.vertcat(*map(ca.vec, equal)) == 0)
    T0 = np.mean(cfg.durations, axis=1)
    for x, value in zip((T, *trunk), (T0, *guess(cfg, at, to, T0)), strict=True):
        opti.set_initial(x, value)
    share = np.clip((np.arange(feet + 1) - 4) / (feet - 8), 0, 1)
    lift = cfg.clearance / basis(feet, 0.5, 0)[0].full()[5:-5].sum() * ((share > 0) & (share < 1))
    opti.set_initial(swing, at[3:, None] + np.outer([cfg.hop, 0, cfg.hop, 0], share) + np.outer([0, 1, 0, 1], lift))
    x, facts = optimised(opti, cost, equal, cfg.iterations)
    value = ca.Function("value", [opti.x], [T, *trunk, swing, *squeeze])
    T, *trunk, swing, first, last = (np.array(y) for y in value(x))
    return Hop(T.ravel(), trunk, swing, [first, last], facts)


def optimised(opti, cost, equal, iterations):
    """(variables after so many iterations towards the optimum, and then moved the least so that `equal` is zero; how
    the search ended)."""
    opti.minimize(cost)
    options = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": iterations}
    opti.solver("ipopt", {"print_time": False, "error_on_fail": False}, options)
    opti.solve_limited()
    x, equal = opti.debug.value(opti.x), ca.vertcat(*map(ca.vec, equal))
    f = ca.Function("equal", [opti.x], [equal, ca.jacobian(equal, opti.x)])
    for _ in range(8):
        miss, slope = (y.full() for y in f(x))
        x = x - np.linalg.lstsq(slope, miss.ravel(), rcond=1e-12)[0]
    costs = ca.Function("cost", [opti.x], [cost])
    ends = {"cost of the guess": float(costs(opti.debug.value(opti.x, opti.initial()))), "cost": float(costs(x))}
    stats = opti.stats()
    return x, {"IPOPT": stats["return_status"], "iterations": stats["iter_count"], **ends}


def flying(cfg, T, trunk, swing, tau):
    """[Y, ..] of trunk and feet in flight."""
    parts = jets(trunk, cfg.degrees[1], T, tau), jets(swing, cfg.feet, T, tau)
    return [ca.vertcat(x, y) for x, y in zip(*parts, strict=True)]


def columns(jets, rows):
    """(rows, 5 times): for each time the five columns of value and derivatives."""
    return ca.reshape(ca.vertcat(*jets), rows, 5 * jets[0].shape[1])


def joins(cfg, T, trunk, swing, squeeze, at, to):
    """What is to be zero: rest at both ends, four continuous derivatives between phases, feet that rest where they
    leave and come, no squeeze there."""
    ends = [jets(x, n, T[k], [0.0, 1.0]) for k, (x, n) in enumerate(zip(trunk, cfg.degrees, strict=True))]
    equal = []
    for k, size in enumerate(10.0 ** np.arange(5)):
        rest = [x[:3] * (k == 0) for x in (at, to)]
        equal += [(ends[0][k][:, 0] - rest[0]) / size, (ends[2][k][:, 1] - rest[1]) / size]
        equal += [(ends[i][k][:, 1] - ends[i + 1][k][:, 0]) / size for i in range(2)]
    for k in range(5):  # a Bernstein polynomial rests at an end where five control points are equal
        equal += [swing[:, k] - at[3:], swing[:, cfg.feet - k] - to[3:]]
    return equal + [squeeze[0][cfg.squeeze - k] / 100 for k in range(3)] + [squeeze[1][k] / 100 for k in range(3)]


def along(cfg, elastic, hop, phase):
    """Function t -> q, v, .. d3v, f, df, d2f, theta, dtheta, d2theta, tau_m, tau_base of a phase, t since its start."""
    t = ca.SX.sym("t")
    T, tau = hop.T[phase], t / hop.T[phase]
    if phase == 1:
        Y, s = flying(cfg, T, hop.trunk[1], hop.swing, tau), None
    else:
        feet = hop.swing[:, [0 if phase == 0 else -1]]
        trunk = jets(hop.trunk[phase], cfg.degrees[phase], T, tau)
        Y = [ca.vertcat(x, ca.SX(4, 1) if k else feet) for k, x in enumerate(trunk)]
        s = jets(hop.squeeze[phase // 2], cfg.squeeze, T, tau, 2)
    motion, f, flat = whole(elastic, Y, s)
    names = "q v dv d2v d3v f df d2f theta dtheta d2theta tau_m tau_base".split()
    return ca.Function("along", [t], [*motion, *f, *flat], ["t"], names, {"cse": True})


def sampled(f, times):
    """{name: (times, rows)} of a Function of time."""
    outputs = f.map(len(times))(times[None])
    shapes = [f.size_out(k) for k in range(f.n_out())]
    found = {}
    for name, x, (rows, width) in zip(f.name_out(), outputs, shapes, strict=True):
        found[name] = x.full().reshape(rows, len(times), width).transpose(1, 2, 0).reshape(len(times), -1)
    return found


def held_exactly(elastic, x):
    """Largest difference, relative, of accelerations and forces of the elastic robot held at its feet, under the motor
    torques of the flat map, from those of the motion."""
    state = np.hstack([x["q"], x["v"], x["theta"], x["dtheta"]]).T
    dx, f = od.elastic.stance_rates(elastic, FEET)(state, x["tau_m"].T, np.zeros((2, 1)))
    dx, f = dx.full().T, f.full().T
    pairs = (dx[:, 19:37], x["dv"]), (dx[:, 49:], x["d2theta"]), (f, x["f"])
    return [np.abs(a - b).max() / np.abs(b).max() for a, b in pairs]


def laws(cfg, motions, T, kp=0.0, kd=0.0):
    """Motor torques (t, x) of each phase: planned ones, and a PD loop on the motors."""
    found, begin = [], 0.0
    for f, length in zip(motions, T, strict=True):

        def law(t, x, f=f, begin=begin):
            ref = f(t=t - begin)
            return ref["tau_m"] + kp * (ref["theta"] - x[37:49]) + kd * (ref["dtheta"] - x[49:61])

        found.append(law)
        begin += length
    return found


def cones(cfg, forces):
    """(largest horizontal force over friction times vertical force, where feet press with 2 % of the weight or more;
    least vertical force [N])."""
    every = np.array(list(forces.values())).reshape(-1, 3)
    pressed = every[every[:, 2] > 12.0]
    return (np.hypot(*pressed[:, :2].T) / (cfg.friction * pressed[:, 2])).max(), every[:, 2].min()


def check_standing(cfg, elastic):
    """LimitError if the robot cannot stand as it is to."""
    robot, still = elastic.links, [np.zeros(7)] * 4
    motion, _, flat = whole(elastic, [standing(cfg), *still], np.zeros(3))
    q, tau = np.ravel(motion[0])[7:], np.ravel(flat[3])
    ends = robot.limit("lower")[7:], robot.limit("upper")[7:]
    limits = od.Limits(robot.coordinate_names[7:], q=ends, tau=np.full(12, cfg.limits[0]))
    limits.assert_within("standing", q=q, tau=tau)
    if cfg.friction <= 0:
        raise od.LimitError(f"friction {cfg.friction:g}: the ground cannot push the robot ahead by {cfg.hop:g} m")


def solve(run, cfg):
    robot = od.robots.quadruped()
    elastic = od.elastic.elastic_robot(robot, cfg.stiffness, motor_inertia=cfg.motor_inertia)
    check_standing(cfg, elastic)
    hop = plan(cfg, elastic)
    run.facts |= {"durations": hop.T, "search": hop.facts}
    run.say(f"durations {', '.join(f'{T:.3f}' for T in hop.T)} s")
    motions = [along(cfg, elastic, hop, k) for k in range(3)]
    times = [np.linspace(0, T, cfg.seen + 1) for T in hop.T]
    x = [sampled(f, t) for f, t in zip(motions, times, strict=True)]
    planned(run, cfg, elastic, x)
    state = [np.hstack([y[n] for n in ("q", "v", "theta", "dtheta")]) for y in x]
    error = od.elastic.motion_error(elastic, motions[1], hop.T[1])
    missing = np.abs(error.tau_base).max()
    run.check("flight: wrench missing at the trunk between points [N, Nm]", missing, below=cfg.missing)
    phases = [od.elastic.Phase(feet, T) for feet, T in zip((FEET, (), FEET), hop.T, strict=True)]
    free = od.elastic.simulate_contacts(elastic, phases, laws(cfg, motions, hop.T), state[0][0], dt=cfg.dt, rtol=1e-9)
    off = [open_error(free, k, motions, hop.T) for k in range(3)]
    bound = error.bound.max()
    run.facts |= {"flight: bound of the error": bound, "open loop: largest errors of phases": [float(y) for y in off]}
    run.check("open loop: error of the push, which is flat", off[0], below=1e-6)
    run.check("open loop: error of the flight over its bound", off[1] / (bound + 10 * off[0]), below=1)
    run.check("open loop: error of the landing, which is not stable", off[2], below=cfg.astray)
    share, least = cones(cfg, free.forces)
    run.check("open loop: share of the friction cones used", share, below=1)
    run.check("open loop: least vertical force of a foot [N]", least, above=-2.0)
    real = elastic.with_errors(stiffness=-cfg.softer)
    loop = od.elastic.simulate_contacts(
        real, phases, laws(cfg, motions, hop.T, *cfg.gains), state[0][0], dt=cfg.dt, rtol=1e-8
    )
    share, _ = cones(cfg, loop.forces)
    run.check("softer springs, loop on motors: share of the friction cones used", share, below=1)
    lost = np.abs(loop.q[-1, :7] - x[2]["q"][-1, :7]).max()
    run.check("softer springs, loop on motors: trunk off its place at the end", lost, below=0.1)
    written(run, cfg, robot, times, x, free, loop)


def planned(run, cfg, elastic, x):
    """Checks of the motion itself, at many times; x: samples of the phases."""
    robot = elastic.links
    for name, y in (("push", x[0]), ("landing", x[2])):
        run.check(f"{name}: wrench missing at the trunk [N, Nm]", np.abs(y["tau_base"]).max(), below=1e-9)
        for what, miss in zip(("links", "motors", "forces"), held_exactly(elastic, y), strict=True):
            run.check(f"{name}: flat map against dynamics held at the feet, {what}, relative", miss, below=1e-9)
        share, least = cones(cfg, feet_forces(y))
        run.check(f"{name}: share of the friction cones used", share, below=1)
        run.check(f"{name}: least vertical force of a foot [N]", least, above=-1e-3)
    q, *values = (np.concatenate([y[n] for y in x]) for n in ("q", "tau_m", "dtheta", "theta"))
    values[2] = values[2] - q[:, 7:]
    for what, value, limit in zip(("motor torque", "motor speed", "deflection"), values, cfg.limits, strict=True):
        run.check(f"{what}, share of its limit", np.abs(value).max() / limit, below=1)
    low, high = (robot.limit(n)[7:] for n in ("lower", "upper"))
    run.check("excess of a joint over its limits [rad]", np.maximum(low - q[:, 7:], q[:, 7:] - high).max(), below=0)
    for name in ("q", "v", "theta", "dtheta", "tau_m"):
        jump = max(np.abs(a[name][-1] - b[name][0]).max() for a, b in pairwise(x))
        run.check(f"largest jump of {name} between phases", jump, below=1e-6)
    heights = np.array([od.contact_points(robot, FEET)(y, np.zeros(18))[0].full()[2] for y in x[1]["q"]])
    run.check("least height of the feet in flight [m]", heights.min(), above=-1e-4)
    middle = heights[len(heights) // 2].min()
    run.check("height of the feet in the middle of the flight [m]", middle, above=0.99 * cfg.clearance)


def feet_forces(y):
    """{foot: (times, 3)} of the samples of a phase."""
    return dict(zip(FEET, y["f"].reshape(-1, 4, 3).transpose(1, 0, 2), strict=True))


def open_error(run, phase, motions, T):
    """Largest error of the state in a phase of a simulation."""
    rows, f = run.phase == phase, motions[phase]
    y = sampled(f, run.t[rows] - sum(T[:phase]))
    return np.abs(run.states[rows] - np.hstack([y[n] for n in ("q", "v", "theta", "dtheta")])).max()


def written(run, cfg, robot, times, x, free, loop):
    """Table, figure and film."""
    starts = np.cumsum([0.0] + [t[-1] for t in times[:-1]])
    t = np.concatenate([t + start for t, start in zip(times, starts, strict=True)])
    full = {n: np.concatenate([y[n] for y in x]) for n in ("q", "theta", "tau_m", "f")}
    joints = robot.coordinate_names[7:]
    names = ("qw", "qx", "qy", "qz", "x [m]", "y [m]", "z [m]", *(f"{name} [rad]" for name in joints))
    motors = tuple(f"{name} motor [rad]" for name in joints), tuple(f"{name} motor [Nm]" for name in joints)
    forces = tuple(f"{foot}_{c} [N]" for foot in FEET for c in "xyz")
    named = {"t [s]": t, names: full["q"], motors[0]: full["theta"], motors[1]: full["tau_m"]}
    run.table("hop.csv", {**named, forces: full["f"]})
    titles = "trunk [m, rad]", "motor torques, share of limit", "deflections [rad]", "vertical forces [N]"
    with run.figure("hop.png", *titles) as axes:
        trunk = np.c_[full["q"][:, [4, 6]], 2 * np.arcsin(full["q"][:, 2])]
        axes[0].plot(t, trunk, label=["forward", "height", "pitch"])
        axes[0].plot(loop.t, loop.q[:, [4, 6]], "k:", linewidth=0.8, label=["softer springs", None])
        axes[1].plot(t, full["tau_m"][:, [1, 2, 7, 8]] / cfg.limits[0], label=[joints[k] for k in (1, 2, 7, 8)])
        axes[2].plot(t, (full["theta"] - full["q"][:, 7:])[:, [1, 2, 7, 8]])
        axes[3].plot(t, full["f"][:, [2, 8]], label=["front foot", "hind foot"])
        axes[3].plot(loop.t, np.array([loop.forces[foot][:, 2] for foot in FEET[::2]]).T, "k:", linewidth=0.8)
        for axis in axes:
            axis.vlines(starts[1:], *axis.get_ylim(), color="black", linewidth=0.6)
    od.animate(robot, loop.t, loop.q, run.out / "hop.gif", fps=cfg.fps, size=(360, 360))


main = od.script(solve, Config(), quick={"seen": 40, "fps": 6, "dt": 0.02})

if __name__ == "__main__":
    sys.exit(main())
