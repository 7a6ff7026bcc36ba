"""Two Pandas hand a load over and swap sides, each motion of both in the shortest time, without hitting each other.

    two motions of 14 joints, to the handover and away from it, each:
    minimise    its duration, a little smoothed,
    subject to  q twice differentiable, at rest at both ends, |q'| <= v,  |q''| <= a,  |q'''| <= share of j,
                |Q| <= tau (of the arm that holds the load, with it),
                every pair of shapes that can meet `clearance` apart, all the time: links of one arm with others of it
                and with all of the other's, the load with what does not hold it.

Arms, limits and capsules are the package's; the task is ours. The arms stand on pedestals: no floor counts. The
clearance is proven between nodes, and seen a second way: distances of shapes as numbers, at samples. Without the pairs
the arms hit each other.
Run:    python problems/two_arms_handover.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
import time
from dataclasses import dataclass
from itertools import product

import numpy as np

import oc_dyn as od

SIDES = ("left", "right")


@dataclass(frozen=True)
class Config:
    home: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    apart: float = 0.7  # of the arms' feet [m]
    load: tuple = (0.025, 0.2, 0.6)  # a rod: radius, length without caps [m], mass [kg]
    meet: tuple = (0.45, 0.0, 0.6)  # centre of the rod at the handover [m]
    pick: tuple = (0.45, -0.1, 0.25)  # flange of the left arm at the start, pointing down [m]
    wait: tuple = (0.45, -0.35, 0.6)  # of the right arm
    put: tuple = (0.45, 0.1, 0.25)  # of the right arm at the end
    leave: tuple = (0.45, 0.35, 0.6)  # of the left arm
    grip: float = 0.16  # from flange to the middle of the rod [m]
    jerk: float = 0.1  # share of the limit
    clearance: float = 0.01  # [m]
    nodes: int = 20
    over: float = 1e-3  # of a limit, anywhere
    samples: int = 120
    fps: int = 20


def both(cfg):
    """(robot of two Pandas, Scene of their capsules)."""
    arm = od.robots.panda()
    capsules = od.Scene.of(arm)
    b, scene = od.RobotBuilder("two_pandas"), od.Scene()
    b.add_link("floor")
    for side, sign in zip(SIDES, (1, -1), strict=True):
        b.add_joint(f"{side}_foot", "fixed", "floor", f"{side}_link0", xyz=(0, sign * cfg.apart / 2, 0))
        b.add_link(f"{side}_link0")
        for body in arm.bodies:
            i, joint, T = body.index, body.joint, body.inertia
            limits = {k: float(arm.limit(k)[i - 1]) for k in od.robots.panda_limits()}
            tensor = T.tensor_com[np.triu_indices(3)]
            b.add_body(
                f"{side}_link{i}", joint.kind, f"{side}_link{i - 1}", joint=f"{side}_joint{i}", mass=T.mass, com=T.com,
                inertia=tensor, rotation=body.rotation, xyz=body.translation, axis=joint.axis, **limits,
            )  # fmt: skip
        b.add_frame(f"{side}_flange", f"{side}_link7", xyz=arm.frame("panda_link8").translation)
        own = {x.name: x.link.replace("panda", side) for x in capsules.items}
        for x in capsules.items:
            scene = scene.attach(own[x.name], own[x.name], x.shape, x.matrix)
        count = {frozenset(pair) for pair in capsules.pairs}
        pairs = product(own, own)
        scene = scene.leave_out(*((own[a], own[c]) for a, c in pairs if a != c and frozenset((a, c)) not in count))
    return b.build(), scene


def towards(z):
    """Axes of a flange that points along z."""
    z = np.array(z, float)
    x = np.cross((0.0, 1.0, 0.0) if abs(z[1]) < 0.9 else (1.0, 0.0, 0.0), z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def model(cfg):
    """({side: robot with the load in the hand of that side}, {side: Scene}): the rod is along the flange's z axis."""
    robot, scene = both(cfg)
    radius, length, mass = cfg.load
    rod, C = od.shapes.Capsule(radius, length), np.eye(4)
    C[2, 3] = cfg.grip
    across = mass * (3 * radius**2 + length**2) / 12
    inertia = od.Inertia.from_com(mass, C[:3, 3], np.diag([across, across, mass * radius**2 / 2]))
    robots, scenes = {}, {}
    for side in SIDES:
        robots[side] = robot.with_payload(f"{side}_flange", inertia)
        held = scene.attach("rod", f"{side}_flange", rod, C)
        # both hold it at the handover, and the wrist of who holds it cannot get nearer
        holds = [("rod", f"{a}_link7") for a in SIDES] + [("rod", f"{side}_link{k}") for k in (5, 6)]
        scenes[side] = held.leave_out(*holds)
    return robot, robots, scenes


def place(cfg, robot, scene, left, right):
    """Configuration with both flanges at (position, direction)."""
    q = np.array([*cfg.home, *cfg.home])
    for side, (p, z) in zip(SIDES, (left, right), strict=True):
        q = od.inverse_kinematics(robot, f"{side}_flange", p=p, R=towards(z), q_start=q, starts=20)
    return q


def configurations(cfg, robot):
    """Configurations (3, 14): at the start, at the handover, at the end."""
    down, (x, y, z) = (0, 0, -1), cfg.meet
    meet = [((x, y + cfg.grip, z), (0, -1, 0)), ((x, y - cfg.grip, z), (0, 1, 0))]
    ways = [[(cfg.pick, down), (cfg.wait, down)], meet, [(cfg.leave, down), (cfg.put, down)]]
    return np.array([place(cfg, robot, None, *way) for way in ways])


def apart(robot, scene, q):
    """Least distance [m] of all pairs at configurations (K, n): by numbers, not by the program's way."""
    return float(od.scene.exact_distances(robot, scene, q).min())


def solve(run, cfg):
    robot, robots, scenes = model(cfg)
    stops, below, hits = configurations(cfg, robot), 1 + cfg.over, []
    run.facts["pairs"] = len(scenes["left"].pairs)
    for name, side, ends in (("to the handover", "left", stops[:2]), ("away from it", "right", stops[1:])):
        arm, scene, begun = robots[side], scenes[side], time.process_time()
        common = {"limits": od.Limits.of(arm).scaled(d2v=cfg.jerk), "continuity": 2, "nodes": cfg.nodes}
        common |= {"ignore": ("dtau",), "check": "off", "progress": False}
        motion = od.plan_point_to_point(arm, *ends, scene=scene, clearance=cfg.clearance, **common)
        seconds = time.process_time() - begun
        report, fine = motion.check(), motion.sample(np.linspace(0, motion.duration, cfg.samples))
        proof = motion.clearance(scene, cfg.clearance)
        pair = " - ".join(proof.pair)
        run.facts[name] = {"duration [s]": motion.duration, "seconds": seconds, "nearest": pair}
        run.say(f"{name}: {motion.duration:.4f} s, nearest {pair}; {seconds:.1f} s to plan")
        for row in report.rows:
            run.check(f"{name}: {row.quantity}, share of its limit", row.share, below=below)
        run.check(f"{name}: jumps of q and its derivatives", max(report.jumps.values()), below=1e-6)
        run.check(f"{name}: clearance, proven [m]", proof.certified, above=cfg.clearance - 1e-9)
        seen = apart(arm, scene, fine.q)
        run.check(f"{name}: distances as numbers less what is proven [m]", seen - proof.certified, above=-1e-6)
        run.check(f"{name}: error at the ends [rad]", np.abs(fine.q[[0, -1]] - ends).max(), below=1e-9)
        alone = od.plan_point_to_point(arm, *ends, **common)
        run.facts[name]["without pairs [s]"] = alone.duration
        hits.append(alone.clearance(scene).met)
        motion.save(run.out / f"{side}.csv")
        motion.plot(run.out / f"{side}.png", scene=scene)
        motion.animate(run.out / f"{side}.gif", fps=cfg.fps, size=(360, 360), scene=scene)
    run.check("clearance without pairs [m]: there is something to avoid", min(hits), below=0.0)
    flange = {side: od.function(robot, "frame_pose", frame=f"{side}_flange")(q=stops[1]) for side in SIDES}
    rods = [np.array(x["p"]).ravel() + cfg.grip * np.array(x["R"])[:, 2] for x in flange.values()]
    run.check("handover: the rod in one hand less that in the other [m]", np.abs(rods[0] - rods[1]).max(), below=1e-8)


main = od.script(solve, Config(), quick={"nodes": 10, "over": 0.01, "samples": 30, "fps": 5})

if __name__ == "__main__":
    sys.exit(main())
