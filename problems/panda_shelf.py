"""A Panda fetches a load from between the boards of a shelf and stands it beside itself, each way in the shortest time.

    two motions, there and back, each:
    minimise    its duration, a little smoothed,
    subject to  q three times differentiable, at rest at both ends,
                |q'| <= v,  |q''| <= a,  |q'''| <= share of j,  |Q| <= tau,
                |Q'| <= share of dtau (back with the payload),
                every pair of shapes (links, hand, shelf, floor, stand, load) `clearance` apart, all the time.

On the way back the load is a shape on the hand (scene.attached), and its inertia counts. Limits are the maker's,
capsules of the links the package's; hand, scene and load are ours. The clearance is proven between nodes, and seen a
second way: distances of shapes as numbers, at samples.
Run:    python problems/panda_shelf.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
import time
from dataclasses import dataclass

import numpy as np

import oc_dyn as od

TOOL = "panda_link8"


@dataclass(frozen=True)
class Config:
    home: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    load: tuple = (0.03, 0.22, 1.0)  # a cylinder: radius, length [m], mass [kg]
    there: tuple = (0.56, 0.1, 0.635)  # its centre, 15 mm above the middle board, on pins that are not modelled [m]
    goal: tuple = (0.1, 0.6, 0.525)  # where it is put down, as far above a stand
    stand: tuple = (0.3, 0.3, 0.4)  # edges [m]
    grip: tuple = (0.115, 0.03)  # the load's centre ahead of the flange and below it [m]
    jerk: float = 0.1  # share of the limit
    rate: float = 0.05  # of torques, share of the limit: the load is not to swing
    clearance: float = 0.01  # [m]
    nodes: int = 30
    over: float = 1e-3  # of a limit, anywhere
    samples: int = 200
    fps: int = 20


def at(p, R=None):
    """Homogeneous matrix."""
    C = np.eye(4)
    C[:3, :3], C[:3, 3] = np.eye(3) if R is None else R, p
    return C


def towards(angle, roll):
    """Axes of a tool that points along the floor, turned about its own axis."""
    z, up = np.array([np.cos(angle), np.sin(angle), 0]), np.array([0, 0, 1.0])
    side = np.cross(z, up)
    x = np.cos(roll) * up + np.sin(roll) * side
    return np.column_stack([x, np.cross(z, x), z])


def model(cfg):
    """(robot, robot with the load, scene, scene with the load on the hand); the hand is upright in `held`."""
    robot, (radius, length, mass) = od.robots.panda(), cfg.load
    across, along = mass * (radius**2 / 4 + length**2 / 12), mass * radius**2 / 2
    # the axis of the load is along x of the flange, which points up
    held = at((-cfg.grip[1], 0, cfg.grip[0]), np.column_stack([(0, 0, -1.0), (0, 1.0, 0), (1.0, 0, 0)]))
    inertia = od.Inertia.from_com(mass, held[:3, 3], np.diag([along, across, across]))
    box, scene = od.shapes.Box, od.Scene.of(robot).join(od.scene.example("shelf"))
    scene = scene.attach("hand", TOOL, box(0.06, 0.2, 0.07), at((0, 0, 0.035)))
    scene = scene.attach("fingers", TOOL, box(0.02, 0.1, 0.045), at((0, 0, 0.0925)))
    # the hand turns before links 6 and 7, and the fingers hold the load
    wrist = [(part, f"panda_link{k}") for part in ("hand", "fingers") for k in (5, 6, 7)]
    scene = scene.leave_out(*wrist).add("stand", box(*cfg.stand), at((*cfg.goal[:2], cfg.stand[2] / 2)))
    scene = scene.add("load", od.shapes.Cylinder(radius, length), at(cfg.there)).leave_out(("fingers", "load"))
    return robot, robot.with_payload(TOOL, inertia), scene, scene.attached("load", TOOL, held)


def configurations(cfg, robot, scenes):
    """(q at the shelf, q over the stand), the load upright in both."""
    out = []
    for p, angle, scene in ((cfg.there, 0.0, scenes[0]), (cfg.goal, np.arctan2(*cfg.goal[1::-1]), scenes[1])):
        R = towards(angle, 0.0)
        flange = np.array(p) - cfg.grip[0] * R[:, 2] + cfg.grip[1] * R[:, 0]
        near = (cfg.home[0] + angle, *cfg.home[1:])
        out.append(od.inverse_kinematics(
            robot, TOOL, p=flange, R=R, q_start=near, starts=20, scene=scene, clearance=cfg.clearance + 1e-3
        ))  # fmt: skip
    return out


def apart(robot, scene, q):
    """Least distance [m], less margins, of all pairs at configurations (K, n): by numbers, not by the program's way."""
    return float((od.scene.exact_distances(robot, scene, q) - scene.margins).min())


def fetch(cfg, robot, scene, ends):
    """(Trajectory, seconds of processor time)."""
    limits, begun = od.Limits.of(robot).scaled(d2v=cfg.jerk, dtau=cfg.rate), time.process_time()
    motion = od.plan_point_to_point(
        robot, *ends, limits=limits, scene=scene, clearance=cfg.clearance, nodes=cfg.nodes, check="off", progress=False,
    )  # fmt: skip
    return motion, time.process_time() - begun


def solve(run, cfg):
    robot, loaded, scene, carried = model(cfg)
    pick, put = configurations(cfg, robot, (scene, carried))
    home, below, motions = np.array(cfg.home), 1 + cfg.over, []
    for name, arm, among, ends in (("there", robot, scene, (home, pick)), ("back", loaded, carried, (pick, put))):
        motion, seconds = fetch(cfg, arm, among, ends)
        motions.append(motion)
        report, fine = motion.check(), motion.sample(np.linspace(0, motion.duration, cfg.samples))
        proof = motion.clearance(among, cfg.clearance)
        pair = " - ".join(proof.pair)
        run.facts[name] = {"duration [s]": motion.duration, "seconds": seconds, "nearest": pair}
        run.say(f"{name}: {motion.duration:.4f} s, nearest {pair}; {seconds:.1f} s to plan")
        for row in report.rows:
            run.check(f"{name}: {row.quantity}, share of its limit", row.share, below=below)
        run.check(f"{name}: jumps of q and its derivatives", max(report.jumps.values()), below=1e-6)
        run.check(f"{name}: clearance, proven [m]", proof.certified, above=cfg.clearance - 1e-9)
        seen = apart(arm, among, fine.q)
        run.check(f"{name}: distances as numbers less what is proven [m]", seen - proof.certified, above=-1e-6)
        off = np.abs(fine.q[[0, -1]] - ends).max()
        run.check(f"{name}: error at the ends [rad]", off, below=1e-9)
        run.check(f"{name}: speed at the ends [rad/s]", np.abs(fine.v[[0, -1]]).max(), below=1e-8)
    straight = od.plan_point_to_point(robot, home, pick, nodes=cfg.nodes, check="off", progress=False)
    run.facts["there, without the scene [s]"] = straight.duration
    hit = straight.clearance(scene).met
    run.check("there, without the scene: clearance [m], which it does not keep", hit, below=0.0)
    place = od.function(loaded, "frame_pose", frame=TOOL)
    for name, q, p in (("there", pick, cfg.there), ("back", put, cfg.goal)):
        C = np.array(place(q=q)["C"]) @ carried["load"].matrix
        run.check(f"{name}: error of the load's place [m]", np.abs(C[:3, 3] - p).max(), below=1e-8)
        run.check(f"{name}: the load's axis upright", C[2, 2], above=1 - 1e-9)
    for motion, among, name in zip(motions, (scene, carried), ("there", "back"), strict=True):
        motion.save(run.out / f"{name}.csv")
        motion.plot(run.out / f"{name}.png", scene=among)
        motion.animate(run.out / f"{name}.gif", fps=cfg.fps, size=(360, 360), scene=among)


main = od.script(solve, Config(), quick={"nodes": 12, "over": 0.01, "samples": 40, "fps": 5})

if __name__ == "__main__":
    sys.exit(main())
