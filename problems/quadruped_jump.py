"""A quadruped jumps forward: it pushes off, flies, lands softly and comes to rest.

    minimise    integral of |tau / tau_max|^2 + small |v'|^2
    subject to  q+ = q (+) (h v + h^2/2 v'),  v+ = v + h v'     steps on the manifold of configurations,
                inverse dynamics (q, v, v') - sum J_i' f_i = [0; tau]      no wrench acts on the base itself,
                on the ground: f_i in a pyramid within the friction cone, feet at rest;  in flight: f_i = 0, feet above;
                |tau| <= tau_max,  joints within limits;  standing at both ends, further on at the end.

Accelerations and contact forces are the unknowns of every interval (inverse-dynamics transcription). Feet touch down
with zero velocity, so that velocities do not jump. Push, flight and landing have durations of their own.
Robot: of the size and build of HyQ (Semini et al. 2011), three joints per leg; masses, limits and jump are ours.
Run:    python problems/quadruped_jump.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")


@dataclass(frozen=True)
class Config:
    jump: float = 0.4  # forward [m]
    friction: float = 0.7
    effort: float = 1.0  # share of the limits of torque that may be used
    nodes: tuple = (18, 14, 1, 18)  # of push, flight, touch-down, landing
    durations: tuple = ((0.2, 0.6), (0.15, 0.5), 0.02, (0.2, 0.6))  # [s]
    hip: float = 0.75  # standing angle of the hip about y [rad]; the knee bends back by twice as much
    margin: float = 0.06  # of joint limits at nodes, for what is between [rad]
    slip: float = 5e-3  # of feet between nodes [m]
    clearance: float = 0.05  # of the feet in the middle of the flight [m]
    fps: int = 20


def stand(cfg, robot):
    """(q at the start, at the goal, Limits of the legs); LimitError if the robot cannot stand like that."""
    at, still, quarter = robot.neutral(), np.zeros(robot.nv), (0, 0, 9.81 * robot.total_mass / 4)
    at[7:] = np.ravel([(0, hip, -2 * hip) for hip in (cfg.hip, cfg.hip, -cfg.hip, -cfg.hip)])
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


def solve(run, cfg):
    robot = od.robots.quadruped()
    at, to, limits = stand(cfg, robot)
    solution, x = jump(cfg, robot, at, to, limits)
    run.facts |= {"durations": solution.durations, "iterations": solution.iterations}
    run.say(f"{solution.iterations} iterations, durations {', '.join(f'{T:.3f}' for T in solution.durations)} s")
    share, (times, inner, feet) = x.tau[:, 6:] / limits.tau, x.between(8)
    takeoff, touch = cfg.nodes[0], sum(cfg.nodes[:2])
    stance, there = (od.contact_points(robot, FEET)(q, 0)[0].full().T for q in (at, to))
    for (what, error), bound in zip(x.report(cfg.friction).items(), (1e-8, 1e-8, 1e-5, 1e-5, 1e-9, 1e-8), strict=True):
        run.check(what, error, below=bound)
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
    with run.figure("jump.png", "trunk [m, rad]", "vertical forces [N]", "torques, share of limits") as axes:
        axes[0].plot(x.t, np.c_[x.q[:, [4, 6]], 2 * np.arcsin(x.q[:, 2])], label=["forward", "height", "pitch"])
        axes[1].step(x.t[:-1], x.f[..., 2], where="post", label=[foot[:2] for foot in FEET])
        axes[2].step(x.t[:-1], share, where="post", linewidth=0.8)
        for axis in axes:
            axis.vlines(np.cumsum(solution.durations)[:2], *axis.get_ylim(), color="black", linewidth=0.6)
    od.animate(robot, times.ravel(), np.concatenate(inner), run.out / "jump.gif", fps=cfg.fps, size=(360, 360))


main = od.script(solve, Config(), quick={"nodes": (8, 6, 1, 8), "slip": 2e-2, "fps": 6})

if __name__ == "__main__":
    sys.exit(main())
