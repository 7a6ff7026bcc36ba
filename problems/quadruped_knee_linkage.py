"""A quadruped whose knees are four-bar linkages jumps forward: the drive of a knee turns a crank at the hip.

    minimise    integral of |tau / tau_max|^2 + small |v'|^2
    subject to  q+ = q (+) (h v + h^2/2 v'),  v+ = v + h v'     steps of the independent coordinates,
                G' (M v_tree' + h) - sum J_i' f_i = [0; tau]    all links move as the linkages have it, v_tree = G v
                on the ground: f_i in a pyramid within the friction cone, feet at rest;  in flight: f_i = 0, feet above;
                |tau| <= tau_max at hips and cranks,  standing at both ends, further on at the end.

Crank, rod and shank make a loop with the thigh. The angles of knee and rod follow from that of the crank in closed
form, as couplings; the same robot with its pins as loops, in all coordinates with multipliers, is the check.
Size and build of HyQ (Semini et al. 2011); linkage, masses, limits and jump are ours.
Run:    python problems/quadruped_knee_linkage.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

LEGS = {"LF": (1, 1), "RF": (1, -1), "LH": (-1, 1), "RH": (-1, -1)}  # signs of x and y of the hip
FEET = tuple(f"{leg}_foot" for leg in LEGS)
THIGH, SHANK = 0.35, 0.33  # [m]
HEIGHT, CRANK, LEVER = -0.03, 0.05, 0.04  # of the crank's axis below the hip's, its length, that of the shank [m]
BENT = 1.4  # of the knee where crank and lever are square to the thigh [rad]
ROD = float(np.hypot(CRANK - LEVER, THIGH + HEIGHT))


@dataclass(frozen=True)
class Config:
    jump: float = 0.4  # forward [m]
    friction: float = 0.7
    effort: float = 1.0  # share of the limits of torque that may be used
    nodes: tuple = (18, 14, 1, 18)  # of push, flight, touch-down, landing
    durations: tuple = ((0.2, 0.6), (0.15, 0.5), 0.02, (0.2, 0.6))  # [s]
    hip: float = 0.7  # standing angle of the hip about y [rad]
    crank: float = 0.0  # standing angle of the cranks [rad]
    margin: float = 0.06  # of joint limits at nodes, for what is between [rad]
    slip: float = 5e-3  # of feet between nodes [m]
    clearance: float = 0.05  # of the feet in the middle of the flight [m]
    fps: int = 20


def pin(x, crank):
    """(forward, up) of the pin between crank and rod, in the thigh's frame; x: 1 of a front leg, -1 of a hind leg."""
    return x * CRANK * ca.cos(crank), HEIGHT + x * CRANK * ca.sin(crank)


def knee(x, crank):
    """Angle of the knee: the pin, the knee and the end of the lever make a triangle of known sides."""
    forward, up = pin(x, crank)
    up = up + THIGH
    square = forward**2 + up**2
    between = ca.acos((square + LEVER**2 - ROD**2) / (2 * LEVER * ca.sqrt(square)))
    return ca.atan2(up, forward) - x * between - (BENT if x > 0 else np.pi - BENT)


def rod(x, crank):
    """Angle of the rod against the crank."""
    turned = knee(x, crank) + x * BENT
    (forward, up), end = pin(x, crank), (x * LEVER * ca.cos(turned), x * LEVER * ca.sin(turned) - THIGH)
    return ca.atan2(end[0] - forward, up - end[1]) - crank


def quadruped(pinned):
    """Robot with linkages at its knees, either coupled in closed form or pinned, as loops that are followed."""
    b, start = od.RobotBuilder("quadruped_with_knee_linkages"), {}
    b.add_link("trunk", mass=50.0, com=(0.0, 0.0, 0.04), inertia=np.diag([1.5, 8.0, 9.0]))
    limits, turn = {"velocity": 14.0, "effort": 150.0}, {"axis": (0, -1, 0)}
    for leg, (x, y) in LEGS.items():
        hip = {"xyz": (0.37 * x, 0.2 * y, 0.0), "axis": (1, 0, 0), "lower": -1.0, "upper": 1.0}
        hip |= {"mass": 3.0, "com": (0, 0, -0.04), "inertia": np.diag([0.006, 0.006, 0.006])}
        b.add_body(f"{leg}_hip", "revolute", "trunk", joint=f"{leg}_haa", **hip, **limits)
        low, high = sorted((-0.8 * x, 1.6 * x))
        thigh = {"mass": 3.0, "com": (0, 0, -0.15), "inertia": np.diag([0.04, 0.04, 0.005])}
        thigh |= {"xyz": (0, 0, -0.08), "lower": low, "upper": high}
        b.add_body(f"{leg}_thigh", "revolute", f"{leg}_hip", joint=f"{leg}_hfe", **thigh, **turn, **limits)
        crank = {"mass": 0.3, "com": (0.02 * x, 0, 0), "inertia": np.diag([1e-4, 2e-4, 2e-4]), "armature": 0.01}
        crank |= {"xyz": (0, 0, HEIGHT), "lower": -0.7, "upper": 0.7}
        b.add_body(f"{leg}_crank", "revolute", f"{leg}_thigh", joint=f"{leg}_drive", **crank, **turn, **limits)
        bar = {"mass": 0.2, "com": (0, 0, -ROD / 2), "inertia": np.diag([1.7e-3, 1.7e-3, 2e-5])}
        b.add_body(f"{leg}_rod", "revolute", f"{leg}_crank", joint=f"{leg}_bar", xyz=(CRANK * x, 0, 0), **bar, **turn)
        shank = {"mass": 0.9, "com": (0, 0, -0.13), "inertia": np.diag([0.012, 0.012, 0.001])}
        b.add_body(f"{leg}_shank", "revolute", f"{leg}_thigh", joint=f"{leg}_knee", xyz=(0, 0, -THIGH), **shank, **turn)
        b.add_frame(f"{leg}_foot", f"{leg}_shank", xyz=(0, 0, -SHANK))
        ends = {"xyz_a": (0, 0, -ROD), "xyz_b": (LEVER * x * np.cos(BENT), 0, LEVER * np.sin(BENT)), "axis": (0, 1, 0)}
        if pinned:
            b.close_loop(f"{leg}_pin", f"{leg}_rod", f"{leg}_shank", **ends, independent=(f"{leg}_drive",))
        else:
            b.couple(f"{leg}_knee", f"{leg}_drive", lambda q, x=x: knee(x, q[0]))
            b.couple(f"{leg}_bar", f"{leg}_drive", lambda q, x=x: rod(x, q[0]))
        start |= {f"{leg}_knee": -BENT * x, f"{leg}_bar": float(rod(x, 0))}
    return b.build(floating_base=True, start=start)


def stand(cfg, robot):
    """(q at the start, at the goal, Limits of hips and cranks); LimitError if the robot cannot stand like that."""
    at, still, quarter = robot.neutral(), np.zeros(robot.nv), (0, 0, 9.81 * robot.total_mass / 4)
    at[7:] = np.ravel([(0, sign * cfg.hip, sign * cfg.crank) for sign in (1, 1, -1, -1)])
    at[6] = -od.contact_points(robot, FEET)(at, 0)[0].full()[2].mean()
    ends = robot.limit("lower")[7:] + cfg.margin, robot.limit("upper")[7:] - cfg.margin
    limits = od.Limits(robot.coordinate_names[7:], q=ends, tau=cfg.effort * robot.limit("effort")[6:])
    held = od.ContactMotion(robot, FEET, [0, 1], [at, at], [still, still], [still], [[quarter] * 4])
    limits.assert_within("standing", q=at[7:], tau=held.tau[0, 6:])
    if cfg.friction <= 0:
        raise od.LimitError(f"friction {cfg.friction:g}: the ground cannot push the robot ahead by {cfg.jump:g} m")
    return at, at + cfg.jump * np.eye(robot.nq)[4], limits


def jump(cfg, robot, at, to, limits):
    """(Solution, ContactMotion)."""
    weight, there = 9.81 * robot.total_mass, od.contact_points(robot, FEET)(to, 0)[0]
    flown = np.clip((np.arange(sum(cfg.nodes) + 1)[:, None] - cfg.nodes[0]) / cfg.nodes[1], 0, 1)  # share of the flight
    arc = 4 * flown * (1 - flown)
    ocp = od.Problem(cfg.nodes[0], cfg.durations[0])
    guess = [at + (to - at) * flown + 0.15 * arc * np.eye(robot.nq)[6], 0, 0, np.tile([0, 0, weight / 4], 4)]
    body = ocp.contact_body(robot, FEET, guess=guess, scale=(1, 5, 50, weight / 4))
    q, v, f, tau, height = body.q, body.v, body.f, body.tau, ocp.varying("height")
    for k, phase in enumerate(("push", "flight", "touch-down", "landing")):
        if k:
            ocp.phase(cfg.nodes[k], cfg.durations[k])
        ocp.limit(0, tau[:6] / 10, 0)
        ocp.limit(-1, tau[6:] / limits.tau, 1)
        ocp.limit(limits.q[0], q[7:], limits.q[1])
        if phase == "flight":
            ocp.limit(0, f / weight, 0)
            ocp.limit(-1e-6, body.p[2, :] - height, np.inf)
        else:
            ocp.limit(0, body.pyramid(cfg.friction) / weight, np.inf)
            ocp.limit(0, f[2, :] / weight, 4)
            ocp.limit(0, body.next()[3], 0)  # speeds of the feet at the next node
        if phase == "touch-down":
            ocp.limit(0, ca.horzcat(body.p - there, body.dp), 0)
        ocp.minimize(squares=ca.vertcat(tau[6:] / limits.tau, 0.01 * body.dv))
    ocp.start({q: at, v: 0})
    ocp.goal({q[1:7]: to[1:7], v[:6]: 0})  # of the trunk; the feet are at rest
    solution = ocp.solve(method="euler", parameters={height: cfg.clearance * arc}, solver_options={"tol": 1e-10})
    return solution, body.motion(solution)


def power(robot, x):
    """Largest difference at nodes between the rate of energy and the power of motors and ground, relative to that of
    the motors."""
    q, v, dv = x.q[:-1].T, x.v[:-1].T, x.dv.T
    rate = od.function(robot, "kinetic_energy", order=1)(q=q, v=v, dv=dv)["dT"].full()
    rate = rate + od.function(robot, "potential_energy", order=1)(q=q, v=v)["dU"].full()
    motors = (x.tau[:, 6:] * x.v[:-1, 6:]).sum(axis=1)
    feet = od.contact_points(robot, FEET)(q, v)[1].full().T.reshape(len(motors), 4, 3)
    return np.abs(rate.ravel() - motors - (x.f * feet).sum(axis=(1, 2))).max() / np.abs(motors).max()


def against_pins(x, inner):
    """(largest difference of an angle from where pins hold knees and rods [rad], of an acceleration from that of all
    links with multipliers at the pins, relative, forces of the pins (N, 4) [N])."""
    robot = quadruped(pinned=True)
    own, tau = robot.rows("v", robot.independent), np.zeros((robot.tree.nv, len(x.dv)))
    closed = od.function(x.robot, "loop_closure", order=1)
    found, pins = (od.function(r, "loop_closure") for r in (x.robot, robot))
    at = np.concatenate([x.q, *inner]).T
    off = np.abs(found(at)[0].full() - pins(at)[0].full()).max()
    q, v = x.q[:-1].T, x.v[:-1].T
    at, speeds = (y.full() for y in closed(q, v)[:2])
    tau[own[6:]] = x.tau[:, 6:].T
    push = od.contact_wrenches(robot, FEET)(q, x.f.reshape(-1, 3).T).full()
    dv, f = od.function(robot, "constrained_dynamics", external_wrenches=True)(at, speeds, tau, push)
    forces = f.full().T.reshape(len(x.dv), 4, 5)  # x y z rx ry of each pin, turns about z
    error = np.abs(dv.full()[own].T - x.dv).max() / np.abs(x.dv).max()
    return off, error, np.linalg.norm(forces[..., :2], axis=2)


def solve(run, cfg):
    robot = quadruped(pinned=False)
    at, to, limits = stand(cfg, robot)
    solution, x = jump(cfg, robot, at, to, limits)
    run.facts |= {"durations": solution.durations, "iterations": solution.iterations}
    run.say(f"{solution.iterations} iterations, durations {', '.join(f'{T:.3f}' for T in solution.durations)} s")
    share, (times, inner, feet) = x.tau[:, 6:] / limits.tau, x.between(8)
    takeoff, touch = cfg.nodes[0], sum(cfg.nodes[:2])
    stance, there = (od.contact_points(robot, FEET)(q, 0)[0].full().T for q in (at, to))
    for (what, error), bound in zip(x.report(cfg.friction).items(), (1e-8, 1e-8, 1e-5, 1e-5, 1e-9, 1e-8), strict=True):
        run.check(what, error, below=bound)
    run.check("rate of energy less power of motors and ground, relative", power(robot, x), below=1e-9)
    off, error, pins = against_pins(x, inner)
    run.check("knees and rods off where pins hold them, at and between nodes [rad]", off, below=1e-9)
    run.check("accelerations off those with multipliers at the pins, relative", error, below=1e-8)
    run.facts["largest force of a pin [N]"] = float(pins.max())
    run.check("torque, share of its limit", np.abs(share).max(), below=1 + 1e-6)
    run.check("force of the ground in flight [N]", np.abs(x.f[takeoff:touch]).max(), below=1e-6)
    over = np.maximum(limits.q[0] - inner[..., 7:], inner[..., 7:] - limits.q[1]).max()
    run.check("excess of a joint over its limits between nodes [rad]", over, below=cfg.margin)
    run.check("feet slip while pushing, between nodes [m]", np.abs(feet[:takeoff] - stance).max(), below=cfg.slip)
    run.check("feet slip while landing, between nodes [m]", np.abs(feet[touch:] - there).max(), below=cfg.slip)
    run.check("least height of the feet in flight, between nodes [m]", feet[takeoff:touch, ..., 2].min(), above=-1e-3)
    run.check("distance of the trunk from its goal", np.abs(x.q[-1] - to)[:7].max(), below=1e-6)
    run.check("speed at the end", np.abs(x.v[-1]).max(), below=1e-6)
    names = ("qw", "qx", "qy", "qz", "x [m]", "y [m]", "z [m]", *(f"{name} [rad]" for name in limits.joints))
    forces = tuple(f"{foot}_{c} [N]" for foot in FEET for c in "xyz")
    run.table("jump.csv", {"t [s]": x.t, names: x.q, forces: np.vstack([x.f.reshape(-1, 12), np.zeros(12)])})
    titles = "trunk [m, rad]", "vertical forces [N]", "torques, share of limits", "forces of the pins [N]"
    with run.figure("jump.png", *titles) as axes:
        axes[0].plot(x.t, np.c_[x.q[:, [4, 6]], 2 * np.arcsin(x.q[:, 2])], label=["forward", "height", "pitch"])
        axes[1].step(x.t[:-1], x.f[..., 2], where="post", label=[foot[:2] for foot in FEET])
        axes[2].step(x.t[:-1], share, where="post", linewidth=0.8)
        axes[3].step(x.t[:-1], pins, where="post", label=list(LEGS))
        for axis in axes:
            axis.vlines(np.cumsum(solution.durations)[:2], *axis.get_ylim(), color="black", linewidth=0.6)
    whole = od.function(robot, "loop_closure")(np.concatenate(inner).T)[0].full().T
    od.animate(robot.tree, times.ravel(), whole, run.out / "jump.gif", fps=cfg.fps, size=(360, 360))


main = od.script(solve, Config(), quick={"nodes": (8, 6, 1, 8), "slip": 2e-2, "fps": 6})

if __name__ == "__main__":
    sys.exit(main())
