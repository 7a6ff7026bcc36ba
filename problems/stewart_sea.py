"""A Gough-Stewart platform on six legs with series elastic drives follows a motion in all six directions.

1. Leg forces and their first and second time derivatives, which the drives' springs ask for: by the recursion embedded
   in the pose of the platform, by AD along all coordinates, and against explicit constraints of the tree cut open.
2. Ideal: the law inside the integration, exact model. The flat feedforward alone, with motor loops, and feedback
   linearisation follow to rounding; gravity compensation and the law of a rigid platform do not.
3. As in a laboratory: laws at 1 kHz, noise, force limits, stiffness and masses that differ from the model's.
4. Stiffness to infinity: the drives' forces tend to those of rigid legs with the drives' inertia, like 1 / K.
The platform is od.robots.gough_stewart, 12.8 kg; its drives are ours: springs of 2e4 N/m, 4 kg as seen at the legs.
Run:    python problems/stewart_sea.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el

LEGS = tuple(f"leg{k}" for k in range(1, 7))


@dataclass(frozen=True)
class Config:
    stiffness: float = 2e4  # of every leg [N/m]
    motor_inertia: float = 4.0  # of every drive, as seen at its leg [kg]
    motor_damping: float = 30.0  # [N s/m]
    amplitude: tuple = (0.05, 0.04, 0.05, 0.2, 0.12, 0.1)  # of q = home + a (1 - cos w t) [m, rad]
    frequency: tuple = (3.0, 3.5, 4.0, 2.5, 3.2, 2.8)  # [rad/s]
    duration: float = 1.5  # [s]
    pole: float = 20.0  # [1/s], four per coordinate
    kp: float = 2e4  # of the motor loops [N/m]
    kd: float = 4e2  # [N s/m]
    goal: tuple = (0.05, -0.04, 0.06, 0.25, 0.1, -0.1)  # from home, of the motion in the laboratory [m, rad]
    moving: float = 0.5  # its time [s]
    hold: float = 0.2  # rest after it [s]
    sample_time: float = 1e-3  # [s]
    force_limit: float = 200.0  # [N]
    noise_length: float = 2e-6  # standard deviation, of links and drives [m, rad]
    noise_speed: float = 2e-4  # [m/s, rad/s]
    stiffness_error: float = 0.05
    mass_error: float = -0.03
    seed: int = 1
    rtol: float = 1e-12
    points: int = 301  # of the motion, at which forces are compared
    factors: tuple = (1e0, 1e1, 1e2, 1e3)  # of the stiffness, on its way to infinity


def build(cfg, factor=1.0):
    """The elastic platform with its stiffness times a factor."""
    links = od.robots.gough_stewart(angles=True)
    drives = {"motor_inertia": cfg.motor_inertia, "motor_damping": cfg.motor_damping, "actuated": LEGS}
    return el.elastic_robot(links, factor * cfg.stiffness, **drives)


def smooth(cfg, platform):
    """Reference of the motion in all directions."""
    home, a, w = platform.links.neutral(), np.array(cfg.amplitude), np.array(cfg.frequency)
    return el.reference(platform, lambda t: home + a * (1 - ca.cos(w * t)), duration=cfg.duration)


def laws(cfg, platform):
    """{name: Controller}."""
    return {
        "flat feedforward": el.feedforward(platform),
        "flat feedforward, motor PD": el.feedforward_pd(platform, cfg.kp, cfg.kd),
        "feedback linearization": el.feedback_linearization(platform, cfg.pole),
        "gravity compensation, motor PD": el.gravity_pd(platform, cfg.kp, cfg.kd),
        "rigid computed torque, motor PD": el.computed_torque(platform, cfg.kp, cfg.kd),
    }


def laboratory(cfg, platform):
    """{law: el.Run}, sampled, with noise, force limits and errors of the model."""
    home = platform.links.neutral()
    goal = home + np.array(cfg.goal)
    path = el.rest_to_rest(home, goal, cfg.moving, continuity=platform.continuity("torque"), hold=cfg.hold)
    noise = {"q": cfg.noise_length, "theta": cfg.noise_length, "v": cfg.noise_speed, "dtheta": cfg.noise_speed}
    conditions = {"sample_time": cfg.sample_time, "torque_limit": cfg.force_limit, "noise": noise, "seed": cfg.seed}
    conditions |= {"stiffness_error": cfg.stiffness_error, "mass_error": cfg.mass_error, "start": "reference"}
    named = {k: x for k, x in laws(cfg, platform).items() if "PD" in k}
    reference = el.reference(platform, path)
    return {name: el.simulate(platform, law, reference, **conditions) for name, law in named.items()}


def leg_forces(cfg, platform, reference):
    """(times, [force, rate, second derivative] (6, K), largest differences: of the flat maps by recursion and AD, of
    accelerations by explicit constraints, of the rates' integral), relative."""
    links, times = platform.links, np.linspace(0, cfg.duration, cfg.points)
    at = reference.at(times)
    f = od.function(links, "inverse_dynamics", order=2, actuated=LEGS)
    forces = [x.full() for x in f(*(at[n] for n in ("q", "v", "dv", "d2v", "d3v")))]
    maps = [od.function(platform, "elastic_flat_map", method=m) for m in ("taylor", "ad")]
    both = [m(**{n: at[n] for n in m.name_in()}) for m in maps]
    apart = max(np.abs((both[0][n] - both[1][n]).full()).max() / np.abs(both[0][n].full()).max() for n in both[0])

    q, v, dv, *_ = od.function(links, "loop_closure", order=2)(at["q"], at["v"], at["dv"])
    tau = np.zeros((links.tree.nv, cfg.points))
    tau[links.rows("v", LEGS)] = forces[0]
    explicit = od.function(links, "constrained_dynamics")(q, v, tau)[0]
    constrained = np.abs((explicit - dv).full()).max() / np.abs(dv.full()).max()

    h = times[1] - times[0]
    simpson = h / 3 * (forces[2][:, 0] + 4 * forces[2][:, 1::2].sum(axis=1) + 2 * forces[2][:, 2:-1:2].sum(axis=1))
    integral = np.abs(simpson + h / 3 * forces[2][:, -1] - (forces[1][:, -1] - forces[1][:, 0])).max()
    counts = [m.n_instructions() for m in maps]
    return times, forces, (apart, constrained, integral / np.abs(forces[1]).max()), counts


def lengths(platform, q):
    """(K, 6) lengths of the legs beside those at home by geometry: from the feet on the ground to the balls on the
    platform at q (K, 6), which is turned by yaw, pitch and roll."""
    out = np.zeros((len(q), 6))
    for k, loop in enumerate(platform.links.loops):
        foot = platform.links.tree.joint(f"tilt{k + 1}").translation
        home = np.linalg.norm(np.array([0, 0, platform.links.neutral()[2]]) + loop.translation_b - foot)
        for i, (x, y, z, yaw, pitch, roll) in enumerate(q):
            cosines, sines = np.cos([yaw, pitch, roll]), np.sin([yaw, pitch, roll])
            R = np.eye(3)
            for axis, c, s in zip((2, 1, 0), cosines, sines, strict=True):
                turn, (a, b) = np.eye(3), [(1, 2), (2, 0), (0, 1)][axis]
                turn[a, a], turn[b, b], turn[a, b], turn[b, a] = c, c, -s, s
                R = R @ turn
            out[i, k] = np.linalg.norm(np.array([x, y, z]) + R @ loop.translation_b - foot) - home
    return out


def to_infinity(cfg):
    """Largest difference over the motion of the drives' forces and those of rigid legs [N], by factor."""
    platform = build(cfg)
    at = smooth(cfg, platform).at(np.linspace(0, cfg.duration, cfg.points))
    q = [at[n] for n in ("q", "v", "dv")]
    forces = od.function(platform.links, "inverse_dynamics", actuated=LEGS)(*q).full()
    _, v, dv, *_ = od.function(platform.links, "loop_closure", order=2)(*q)
    rows = platform.links.rows("v", LEGS)
    rigid = forces + cfg.motor_inertia * dv.full()[rows] + cfg.motor_damping * v.full()[rows]
    out = []
    for factor in cfg.factors:
        flat = od.function(build(cfg, factor), "elastic_flat_map")
        out.append(np.abs(flat(**{n: at[n] for n in flat.name_in()})["tau_m"].full() - rigid).max())
    return np.array(out)


def check(run, cfg, platform, exact, real, found, gaps):
    apart, constrained, integral = found
    run.check("flat map, recursion and AD: largest difference, relative", apart, below=1e-10)
    run.check("leg forces in the tree cut open: accelerations, relative", constrained, below=1e-9)
    run.check("integral of the second derivative: the rate, relative", integral, below=1e-5)
    *flat, gravity, rigid = exact
    for name in flat:
        run.check(f"ideal, {name}: largest error [m, rad]", exact[name].largest_error, below=1e-9)
    for name in (gravity, rigid):
        run.check(f"ideal, {name}: largest error [m, rad]", exact[name].largest_error, above=1e-4)
    for name, result in exact.items():
        balance = np.abs(result.energy_balance).max() / np.ptp(result.put_in)
        run.check(f"ideal, {name}: energy balance, relative", balance, below=1e-9)
    first = exact[flat[0]]
    off = np.abs(first.theta - first.deflection - lengths(platform, first.q)).max()
    run.check("legs by the loops and by geometry: largest difference [m]", off, below=1e-12)
    for name in (gravity, rigid):
        share = real["flat feedforward, motor PD"].largest_error / real[name].largest_error
        run.check(f"laboratory: largest error, flat feedforward over {name}", share, below=0.5)
    for name, result in real.items():
        share = np.abs(result.tau_m / cfg.force_limit).max()
        run.check(f"laboratory, {name}: share of the force limit", share, below=1 + 1e-12)
    slope = np.polyfit(np.log(cfg.factors), np.log(gaps), 1)[0]
    run.check("gap of drive force and rigid one over K: exponent", slope, equals=-1, within=0.02)


def solve(run, cfg):
    platform = build(cfg)
    run.say(str(platform))
    reference = smooth(cfg, platform)
    times, forces, found, counts = leg_forces(cfg, platform, reference)
    exact = {name: el.simulate(platform, law, reference, rtol=cfg.rtol) for name, law in laws(cfg, platform).items()}
    real, gaps = laboratory(cfg, platform), to_infinity(cfg)
    errors = run.facts["largest_errors"] = {}
    for part, runs in (("ideal", exact), ("laboratory", real)):
        for name, result in runs.items():
            errors[f"{part}, {name}"] = result.largest_error
            run.say(f"{part:10}  {name:32} largest error {result.largest_error:.2e} m or rad")
    run.facts["instructions_of_flat_maps"] = dict(zip(("recursion", "ad"), counts, strict=True))
    check(run, cfg, platform, exact, real, found, gaps)

    columns = {"t [s]": times}
    for what, values, unit in zip(("F", "dF", "d2F"), forces, ("N", "N/s", "N/s2"), strict=True):
        columns[tuple(f"{what}{k} [{unit}]" for k in range(1, 7))] = values.T
    run.table("forces.csv", columns)
    titles = ("forces of the legs [N]", "their rates [N/s]", "second time derivatives [N/s²]")
    with run.figure("forces.png", *titles, size=(12, 4), xlabel="t [s]") as axes:
        for axis, values in zip(axes, forces, strict=True):
            for k, row in enumerate(values, 1):
                axis.plot(times, row, label=f"leg {k}")
    detail = "flat feedforward in detail"
    el.plot_runs(exact, run.out / "ideal.png", title=f"ideal: {detail}")
    el.plot_runs(real, run.out / "laboratory.png", title="sampled, noisy, wrong model: flat feedforward, motor PD")


quick = {"duration": 0.15, "points": 51, "moving": 0.25, "hold": 0.0, "sample_time": 2e-3, "factors": (1e1, 1e3)}
main = od.script(solve, Config(), quick=quick)

if __name__ == "__main__":
    sys.exit(main())
