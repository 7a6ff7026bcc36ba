"""Contact forces of a quadruped by model-predictive control, every 25 ms: it trots, is pushed, stands and leans.

    every 25 ms:  minimise    over 16 steps the weighted squares of errors of the centre of mass c, of its velocity v,
                              of the trunk's angles and rates, and of forces less those that carry the weight,
                  subject to  m c'' = m g + sum f_i,   I w' + w x I w = R' sum (p_i - c) x f_i,
                              f_i in a pyramid within the friction cone,  0 <= f_iz <= most where foot i stands, else 0,
                              c, v, angles and rates as measured at the start.

The model is one rigid body with feet p_i that stand where they were set down (as in Di Carlo et al. 2018, without its
linearisation); when each foot stands is planned ahead. Two plants: that model trots, with a push from the side, in
Python and in generated C; then the whole robot of 18 degrees of freedom stands, its feet held by the ground, while its
trunk follows a motion, the forces become torques of the legs, and the ground's forces are what the whole dynamics give.
Run:    python problems/quadruped_mpc.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
PAIRS = ((0, 3), (1, 2))  # that stand in turn
WEIGHTS = (60.0, 60.0, 200.0, 40.0, 40.0, 20.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0)  # of the state's errors


@dataclass(frozen=True)
class Config:
    nodes: int = 16
    h: float = 0.025  # [s]
    friction: float = 0.6
    most: float = 1.0  # force of a foot, share of the weight
    effort: float = 0.03  # weight of forces, over the weight of the robot
    hip: float = 0.75  # standing angle [rad]
    speed: float = 0.5  # of the trot [m/s]
    stance: float = 0.2  # that a pair stands [s]
    trot: tuple = (0.4, 3.2)  # begin and end [s]
    push: tuple = (1.2, 1.3, 250.0)  # from the side: begin, end [s], force [N]
    duration: float = 4.5  # [s]
    lean: tuple = (0.03, 0.04, 0.03, 0.06, 0.06, 0.08)  # of the standing robot [m], [rad]
    leaning: float = 4.0  # [s]
    iterations: int = 10  # of a step, at most
    substeps: int = 50  # of the whole robot in a period
    flags: tuple = ("-O2",)
    of_period: float = 1.0  # that the median of a step may take
    fps: int = 20


class Body:
    """Facts of the robot as it stands: mass, inertia about its centre of mass, where that is, feet."""

    def __init__(self, cfg):
        self.robot = od.robots.quadruped()
        at = self.robot.neutral()
        at[7:] = np.ravel([(0, hip, -2 * hip) for hip in (cfg.hip, cfg.hip, -cfg.hip, -cfg.hip)])
        at[6] = -od.contact_points(self.robot, FEET)(at, 0)[0].full()[2].mean()
        self.at, self.mass = at, self.robot.total_mass
        self.com = od.function(self.robot, "com")(at).full().ravel()
        whole = od.function(self.robot, "mass_matrix")(at).full()[:3, :3]  # about the trunk's origin
        x = np.array(ca.skew(self.com - at[4:7]))
        self.inertia = whole + self.mass * x @ x
        self.feet = od.contact_points(self.robot, FEET)(at, 0)[0].full()
        self.weight = 9.81 * self.mass


def rates(body, c, angles, v, w, feet, f, push=0):
    """(c', angles', v', w'): a rigid body, its angles (roll, pitch, yaw), rates w in its own axes."""
    roll, pitch, yaw = ca.vertsplit(angles)
    R = turn(2, yaw) @ turn(1, pitch) @ turn(0, roll)
    sr, cr, tp = ca.sin(roll), ca.cos(roll), ca.tan(pitch)
    turning = ca.vertcat(
        w[0] + tp * (sr * w[1] + cr * w[2]), cr * w[1] - sr * w[2], (sr * w[1] + cr * w[2]) / ca.cos(pitch)
    )
    moment = sum(ca.cross(feet[3 * i : 3 * i + 3] - c, f[3 * i : 3 * i + 3]) for i in range(4))
    force = sum(f[3 * i : 3 * i + 3] for i in range(4)) + ca.vertcat(0, push, 0)
    inertia = ca.DM(body.inertia)
    dw = ca.solve(inertia, R.T @ moment - ca.cross(w, inertia @ w))
    return v, turning, force / body.mass - ca.DM([0, 0, 9.81]), dw


def turn(axis, angle):
    """Rotation about an axis."""
    s, c, one = ca.sin(angle), ca.cos(angle), ca.MX(1) if isinstance(angle, ca.MX) else ca.SX(1)
    rows = {0: (one, 0, 0, 0, c, -s, 0, s, c), 1: (c, 0, s, 0, one, 0, -s, 0, c), 2: (c, -s, 0, s, c, 0, 0, 0, one)}
    return ca.reshape(ca.vertcat(*rows[axis]), 3, 3).T


def balance(cfg, body):
    """(Problem, forces)."""
    ocp, most = od.Problem(cfg.nodes, cfg.nodes * cfg.h), cfg.most * body.weight
    c, angles = ocp.state("c", 3, guess=body.com, scale=0.1), ocp.state("angles", 3, scale=0.1)
    v, w = ocp.state("v", 3, scale=1), ocp.state("w", 3, scale=1)
    side = cfg.friction * most
    low, high = np.tile([-side, -side, 0], 4), np.tile([side, side, most], 4)
    f = ocp.control("f", 12, lower=low, upper=high, guess=np.tile([0, 0, body.weight / 4], 4), scale=body.weight / 4)
    now = [ocp.parameter(name, 3) for name in ("c_now", "angles_now", "v_now", "w_now")]
    wanted, feet, on = ocp.varying("wanted", 12), ocp.varying("feet", 12), ocp.varying("on", 4)
    dc, turning, dv, dw = rates(body, c, angles, v, w, feet, f)
    ocp.next(c, c + cfg.h * (dc + cfg.h / 2 * dv))
    ocp.next(angles, angles + cfg.h * turning)
    ocp.next(v, v + cfg.h * dv)
    ocp.next(w, w + cfg.h * dw)
    ocp.start(dict(zip((c, angles, v, w), now, strict=True)))
    for i in range(4):
        x, y, z = (f[3 * i + k] / body.weight for k in range(3))
        ocp.limit(0, ca.vertcat(*(cfg.friction / np.sqrt(2) * z + s for s in (x, -x, y, -y))), np.inf)
        ocp.limit(-np.inf, z - cfg.most * on[i], 0)
    error = np.sqrt(WEIGHTS) * (ca.vertcat(c, angles, v, w) - wanted)
    ocp.minimize(squares=ca.vertcat(error, np.sqrt(cfg.effort) * (f - carried(body, on)) / body.weight))
    ocp.minimize(terminal=0.2 * ca.sumsqr(error))
    return ocp, f


def carried(body, on):
    """Forces that carry the weight, feet that stand by the same share."""
    share = body.weight / ca.fmax(ca.sum1(on), 1)
    return ca.vertcat(*(ca.vertcat(0, 0, share * on[i]) for i in range(4)))


def gait(cfg, body, c, feet, t, ahead):
    """(what is wanted, where feet stand, which do) at a time ahead of t, from the place and feet now."""
    begin, end = cfg.trot
    later = t + ahead
    trots = ca.logic_and(later > begin - 1e-6, later < end - 1e-6)
    # steps begun, the last of which is to stand
    number, here = (ca.floor((ca.fmin(z, end) - begin + 1e-6) / cfg.stance) for z in (later, t))
    since = ca.fmin(ca.fmax(later - begin, 0), end - begin)
    on, places = [], []
    for i in range(4):
        first = i in PAIRS[0]
        stands = (ca.fmod(number, 2) == 0) if first else (ca.fmod(number, 2) == 1)
        on.append(ca.if_else(trots, stands, 1))
        # where the foot stands now, unless it is set down by then
        set_down = ca.logic_and(later > begin + cfg.stance - 1e-6, number > here)
        flown = cfg.stance * number + begin - t
        hips = ca.DM(body.feet[:2, i] - body.com[:2])
        ahead_of_hip = cfg.speed * (flown + ca.if_else(later < end - 1e-6, cfg.stance / 2, 0))
        place = ca.vertcat(c[0] + ahead_of_hip + hips[0], c[1] + hips[1], 0)
        places.append(ca.if_else(set_down, place, feet[3 * i : 3 * i + 3]))
    forward = cfg.speed * ca.logic_and(since > 0, later < end)
    wanted = ca.vertcat(body.com[0] + cfg.speed * since, body.com[1], body.com[2], 0, 0, 0, forward, 0 * t, 0, 0, 0, 0)
    return wanted, ca.vertcat(*places), ca.vertcat(*on)


def trotting(cfg, body):
    """Functions of the plant that trots, state [c; angles; v; w; feet; t], and of what is measured."""
    x, f = ca.SX.sym("x", 25), ca.SX.sym("f", 12)
    state, feet, t = x[:12], x[12:24], x[24]
    s, force = ca.SX.sym("s", 12), ca.SX.sym("force")
    parts = [s[3 * k : 3 * k + 3] for k in range(4)]
    rate = ca.Function("rate", [s, f, feet, force], [ca.vertcat(*rates(body, *parts, feet, f, force))])
    pushed = cfg.push[2] * ca.logic_and(t > cfg.push[0] - 1e-6, t < cfg.push[1] - 1e-6)
    held = ca.vertcat(f, feet, pushed)
    y, p = ca.SX.sym("y", 12), ca.SX.sym("p", 25)
    step = ca.simpleRK(ca.Function("r", [y, p], [rate(y, p[:12], p[12:24], p[24])]), 4)
    after, later = step(state, held, cfg.h), t + cfg.h
    # a foot is set down where its hip will be in the middle of its stance, further out for a velocity off that wanted
    begin, end = cfg.trot
    number = ca.floor((later - begin + 1e-6) / cfg.stance)
    new = ca.logic_and(number > ca.floor((t - begin + 1e-6) / cfg.stance), later > begin + cfg.stance - 1e-6)
    new = ca.logic_and(new, later < end + 1e-6)
    out = []
    for i in range(4):
        odd = ca.fmod(number, 2) == 1
        lands = ca.logic_and(new, (1 - odd) if i in PAIRS[0] else odd)
        lands = ca.if_else(later > end - 1e-6, new, lands)
        reach = ca.if_else(later < end - 1e-6, cfg.stance / 2, 0)
        place = after[:2] + after[6:8] * reach + 0.15 * (after[6:8] - ca.vertcat(cfg.speed, 0)) * (later < end - 1e-6)
        place += ca.DM(body.feet[:2, i] - body.com[:2])
        out.append(ca.if_else(lands, ca.vertcat(place, 0), feet[3 * i : 3 * i + 3]))
    plant = ca.Function("plant", [x, f], [ca.vertcat(after, *out, later)], ["x", "f"], ["x_next"])
    columns = [gait(cfg, body, x[:3], feet, t, cfg.h * k) for k in range(cfg.nodes + 1)]
    seen = [x[3 * k : 3 * k + 3] for k in range(4)]
    names = ["c_now", "angles_now", "v_now", "w_now", "wanted", "feet", "on"]
    measured = ca.Function(
        "measured", [x], [*seen, *(ca.horzcat(*z) for z in zip(*columns, strict=True))], ["x"], names
    )
    return plant, measured


def standing(cfg, body):
    """Functions of the whole robot on feet that the ground holds, state [q; v; t], and of what is measured.

    plant: (x, forces asked for) -> (x after a period, forces of the ground (12, substeps), torques of the legs). In
    each substep velocities and impulses of the ground solve M (v+ - v) = dt (tau - bias) + J' dt f, J v+ = 0.
    """
    robot, dt, nq, nv = body.robot, cfg.h / cfg.substeps, body.robot.nq, body.robot.nv
    q, v, tau = ca.MX.sym("q", nq), ca.MX.sym("v", nv), ca.MX.sym("tau", nv)
    points, mass = od.contact_points(robot, FEET), od.function(robot, "mass_matrix")(q)
    p, dp = points(q, v)
    J = ca.jacobian(ca.vec(dp), v)
    free = od.function(robot, "inverse_dynamics")(q, v, 0)
    drift = ca.vec(p) - ca.DM(body.feet.T.ravel())
    left = ca.blockcat([[mass, -J.T], [J, ca.MX(12, 12)]])
    right = ca.vertcat(mass @ v + dt * (tau - free), -0.1 / dt * drift)
    found = ca.solve(left, right, "qr")
    after = found[:nv]
    state = ca.vertcat(robot.integrate_function()(q, dt * after), after)
    step = ca.Function("step", [ca.vertcat(q, v), tau], [state, found[nv:] / dt])
    x, f = ca.MX.sym("x", nq + nv + 1), ca.MX.sym("f", 12)
    pushed = od.contact_wrenches(robot, FEET)(x[:nq], ca.reshape(f, 3, 4))
    inverse = od.function(robot, "inverse_dynamics", external_wrenches=True)
    efforts = ca.vertcat(ca.MX(6, 1), inverse(q=x[:nq], v=0, dv=0, w_ext=pushed)["tau"][6:])  # of robot at rest
    states, forces = step.mapaccum(cfg.substeps)(x[:-1], ca.repmat(efforts, 1, cfg.substeps))
    out = [ca.vertcat(states[:, -1], x[-1] + cfg.h), forces, efforts[6:]]
    plant = ca.Function("plant", [x, f], out, ["x", "f"], ["x_next", "forces", "tau"])
    now = whole_body(body, x)
    columns = [leaning(cfg, body, x[-1] + cfg.h * k) for k in range(cfg.nodes + 1)]
    feet, on = (ca.repmat(ca.DM(z), 1, cfg.nodes + 1) for z in (body.feet.T.ravel(), np.ones(4)))
    seen = [now[3 * k : 3 * k + 3] for k in range(4)]
    names = ["c_now", "angles_now", "v_now", "w_now", "wanted", "feet", "on"]
    return plant, ca.Function("measured", [x], [*seen, ca.horzcat(*columns), feet, on], ["x"], names)


def whole_body(body, x):
    """[c; angles; v; w] of the whole robot."""
    robot = body.robot
    q, v = x[: robot.nq], x[robot.nq : robot.nq + robot.nv]
    c, dc = od.function(robot, "com", order=1)(q, v)
    a, b, c_, d = ca.vertsplit(q[:4])
    roll = ca.atan2(2 * (a * b + c_ * d), 1 - 2 * (b * b + c_ * c_))
    pitch, yaw = ca.asin(2 * (a * c_ - b * d)), ca.atan2(2 * (a * d + b * c_), 1 - 2 * (c_ * c_ + d * d))
    return ca.vertcat(c, roll, pitch, yaw, dc, v[:3])


def leaning(cfg, body, t):
    """What is wanted of the robot that stands, (12,): it begins and ends at rest."""
    phase = np.array([2.0, 3.0, 1.0, 1.0, 2.0, 3.0]) * 2 * np.pi / cfg.leaning
    s = ca.MX.sym("s")
    fade = ca.sin(np.pi * s / cfg.leaning) ** 2
    way = ca.DM(cfg.lean) * fade * ca.sin(ca.DM(phase) * s)
    both = ca.Function("way", [s], [way, ca.jacobian(way, s)])
    place, rate = both(ca.fmin(t, cfg.leaning))
    moves = t < cfg.leaning
    return ca.vertcat(body.com + place[:3], place[3:], rate[:3] * moves, rate[3:] * moves)


def check_forces(run, cfg, body, name, f):
    """f (K, 4, 3) of the ground on the feet."""
    run.check(f"{name}: largest slope of a force", slope(f, body.weight), below=cfg.friction + 1e-4)
    run.check(f"{name}: least vertical force, share of the weight", f[..., 2].min() / body.weight, above=-1e-6)


def slope(f, weight):
    """Largest horizontal over vertical force, of feet that carry a thousandth of the weight or more."""
    carries = f[..., 2] > 1e-3 * weight
    return (np.hypot(f[..., 0], f[..., 1])[carries] / f[..., 2][carries]).max()


def check_trot(run, cfg, body, x, f, on):
    check_forces(run, cfg, body, "trot", f)
    flies = np.abs(f[on < 0.5]).max() / body.weight
    run.check("trot: force of a foot in the air, share of the weight", flies, below=1e-4)
    t, quarter = x[:, 24], np.tile([0, 0, body.weight / 4], (4, 1))
    run.check("standing still: forces less a quarter of the weight each [N]", np.abs(f[0] - quarter).max(), below=1e-3)
    rest = f[-1].sum(axis=0) - [0, 0, body.weight]
    run.check("standing again: sum of forces less the weight [N]", np.abs(rest).max(), below=0.5)
    steady = (t > cfg.push[0] - 2 * cfg.stance - 1e-6) & (t < cfg.push[0] - 1e-6)
    carried_ = f[steady].sum(axis=1)[:, 2].mean() / body.weight
    run.check("steady trot: mean vertical force, share of the weight", carried_, equals=1.0, within=5e-3)
    run.check("steady trot: mean speed [m/s]", x[steady, 6].mean(), equals=cfg.speed, within=0.02)
    run.check("trot: height less that wanted [m]", np.abs(x[:, 2] - body.com[2]).max(), below=0.01)
    run.check("trot: roll and pitch [rad]", np.abs(x[:, 3:5]).max(), below=0.05)
    pushed = np.abs(x[t > cfg.push[0], 1]).max()
    run.check("pushed aside [m]", pushed, above=0.02, below=0.1)
    later = np.abs(x[t > cfg.push[1] + 1.2, 1]).max()
    run.check("place aside, 1.2 s after the push [m]", later, below=0.01)


def check_whole(run, cfg, body, plant, measured, loop):
    steps = len(loop.x)
    x = ca.MX.sym("x", loop.x.shape[1])
    state = ca.Function("state", [x], [whole_body(body, x)]).map(steps)(loop.x.T).full().T
    wanted = measured.map(steps)(loop.x.T)[4].full()[:, :: cfg.nodes + 1].T
    _, forces, tau = (np.array(y) for y in plant.map(steps)(loop.x.T, loop.u.T))
    forces, asked = forces.T.reshape(steps, -1, 4, 3), loop.u.reshape(steps, 4, 3)
    check_forces(run, cfg, body, "whole robot", forces.reshape(-1, 4, 3))
    share = np.abs(tau / body.robot.limit("effort")[6:, None]).max()
    run.check("whole robot: torque, share of its limit", share, below=1.0)
    run.check("whole robot: place less that wanted [m]", np.abs(state - wanted)[:, :3].max(), below=2e-3)
    run.check("whole robot: angles less those wanted [rad]", np.abs(state - wanted)[:, 3:6].max(), below=0.01)
    difference = np.abs(forces - asked[:, None]).max() / body.weight
    run.check("whole robot: ground's forces less those asked for, share of the weight", difference, below=0.02)
    rest = asked[-1].sum(axis=0) - [0, 0, body.weight]
    run.check("whole robot, at rest again: sum of forces less the weight [N]", np.abs(rest).max(), below=0.05)
    places = od.contact_points(body.robot, FEET).map(steps)(loop.x[:, : body.robot.nq].T, 0)[0].full()
    slip = np.abs(places.reshape(3, steps, 4) - body.feet[:, None]).max()
    run.check("whole robot: feet slip [m]", slip, below=1e-4)
    return state, wanted


def check_optima(run, cfg, body, ocp, control, measured, x):
    """The first step from a place that is off, by other solvers."""
    off = np.array(x)
    off[:12] += [0.02, -0.03, -0.02, 0.05, -0.05, 0.1, 0.1, -0.2, 0.1, 0.2, -0.2, 0.1]
    values = {k: np.array(y).T for k, y in zip(measured.name_out(), measured(off), strict=True)}
    values = {k: y.ravel() if len(y) == 1 else y for k, y in values.items()}
    found = control.reset().step(values)["objective"]
    for solver, hessian in (("ipopt", "exact"), ("fatrop", "exact")):
        solution = ocp.solve(method="euler", solver=solver, hessian=hessian, parameters=values)
        run.check(f"{solver}: optimum of a first step less the controller's", solution.objective / found - 1,
                  equals=0.0, within=1e-5)  # fmt: skip
    control.reset()


def solve(run, cfg):
    body = Body(cfg)
    ocp, f = balance(cfg, body)
    plant, measured = trotting(cfg, body)
    control = od.mpc(ocp, outputs={"f": f}, method="euler", iterations=cfg.iterations)
    start, steps = np.concatenate([body.com, np.zeros(9), body.feet.T.ravel(), [0]]), round(cfg.duration / cfg.h)
    check_optima(run, cfg, body, ocp, control, measured, start)
    python = control.closed_loop(plant, start, steps, {}, measured)
    c = control.reset().closed_loop_in_c(plant, start, steps, {}, measured, flags=cfg.flags)
    for what in ("x", "u"):
        run.check(f"{what}: C less Python", np.abs(getattr(python, what) - getattr(c, what)).max(), below=1e-6)
    on = measured.map(steps)(c.x.T)[6].full()[:, :: cfg.nodes + 1].T
    check_trot(run, cfg, body, c.x, c.u.reshape(steps, 4, 3), on)
    run.check("trot: steps that are not solved", int(np.sum(c.status != 0)), equals=0)
    used = np.median(c.seconds) / cfg.h
    run.check("real time: median time of a step, share of the period", used, below=cfg.of_period)
    run.say(c.deadlines(cfg.h))
    run.facts["deadlines"] = c.deadlines(cfg.h).splitlines()
    whole, seen = standing(cfg, body)
    still = np.concatenate([body.at, np.zeros(body.robot.nv + 1)])
    loop = control.reset().closed_loop(whole, still, round((cfg.leaning + 1) / cfg.h), {}, seen)
    state, wanted = check_whole(run, cfg, body, whole, seen, loop)

    names = tuple(f"{foot}_{axis} [N]" for foot in FEET for axis in "xyz")
    columns = ("x [m]", "y [m]", "z [m]", "roll [rad]", "pitch [rad]", "yaw [rad]")
    run.table("trot.csv", {"t [s]": c.x[:, 24], columns: c.x[:, :6], names: c.u, "seconds": c.seconds})
    titles = "trot: place [m], angles [rad]", "trot: vertical forces [N]", "standing: place, angles; --: wanted"
    with run.figure("loops.png", *titles) as (trot, force, lean):
        trot.plot(c.x[:, 24], np.c_[c.x[:, 1:5] - [0, body.com[2], 0, 0]], label=["y", "z", "roll", "pitch"])
        force.step(c.x[:, 24], c.u[:, 2::3], where="post", label=[foot[:2] for foot in FEET])
        for k, color in zip((0, 2, 4, 5), ("C0", "C1", "C2", "C3"), strict=True):
            label = ("x", "y", "z", "roll", "pitch", "yaw")[k]
            shift = body.com[k] if k < 3 else 0
            lean.plot(loop.x[:, -1], state[:, k] - shift, color, label=label)
            lean.plot(loop.x[:, -1], wanted[:, k] - shift, f"{color}--")
    od.animate(
        body.robot, loop.x[:, -1], loop.x[:, : body.robot.nq], run.out / "stand.gif", fps=cfg.fps, size=(360, 360)
    )


quick = {
    "nodes": 12,
    "leaning": 2.5,
    "lean": (0.01, 0.01, 0.01, 0.02, 0.02, 0.03),
    "substeps": 20,
    "flags": ("-O0",),
    "of_period": 5.0,
    "fps": 5,
}
main = od.script(solve, Config(), quick=quick)

if __name__ == "__main__":
    sys.exit(main())
