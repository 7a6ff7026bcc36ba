"""Thrusts, torques and their time derivatives that move an aerial manipulator along a reference, there and back.

The base (free joint) flies once round a circle, from rest to rest, while it swings in yaw; the six joints of its two
arms follow q(t) = q(0) + s (1 - cos w t) / 2. Inverse dynamics of order 5 gives the wrench on the base and the joint
torques with their derivatives 0..5; the inverse allocation turns the wrench into the thrusts of six tilted propellers.
Thrusts and torques are fed to forward dynamics of order 5, which must give back the reference's accelerations and their
derivatives.
Base velocity: the twist [angular; linear] in the base's own axes, v = vee(C^-1 C') for the pose C(t); its derivatives
are componentwise and exact, from differentiating the formulas of the reference in t.
Source: Ali, Gabellieri, Franchi 2026, section 7, figure 3. The values of its table of parameters could not be
recovered: those of the robot (od.robots.aerial_manipulator) and of the reference below are ours.
Run:    python problems/aerial_manipulator.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    duration: float = 6.0  # [s]
    dt: float = 0.01  # between samples [s]
    radius: float = 0.8  # of the circle [m]
    height: float = 1.5  # of the circle [m]
    yaw_amplitude: float = 0.5  # [rad]
    yaw_frequency: float = 2.0  # [rad/s]
    start: tuple = (0.2, -0.4, 0.6, -0.2, 0.3, -0.5)  # joint angles at the start [rad]
    swing: tuple = (-0.5, 0.9, -1.1, 0.6, -0.8, 1.2)  # of the joints, to there and back [rad]
    swing_frequency: tuple = (1.6, 2.0, 2.4, 1.8, 2.2, 2.6)  # [rad/s]
    # of inverse and of forward dynamics: ours, and those of the paper
    methods: tuple = (("taylor", "taylor"), ("recursive_spatial", "articulated_spatial"))
    bound: float = 1e-8  # of the round trip, relative to the reference at the same time and order
    agreement: float = 1e-11  # of the methods of inverse dynamics, relative to the largest value over time
    table_step: int = 5  # samples between rows of the table


ORDER = 5
ARMS = tuple(f"{arm}_joint{i}" for arm in ("left", "right") for i in (1, 2, 3))


def name(x, k):
    """Name of the k-th derivative of a port."""
    return x if k == 0 else f"d{x}" if k == 1 else f"d{k}{x}"


# -- reference ------------------------------------------------------------------------------------------------


def reference(cfg, robot):
    """casadi.Function t -> (q, v, v', ..., v^(6), mismatch) of the motion; the last is what q' and v differ by."""
    t = ca.SX.sym("t")
    phase = np.pi * (1 - ca.cos(np.pi * t / cfg.duration))  # from 0 to 2 pi
    p = ca.vertcat(cfg.radius * ca.cos(phase), cfg.radius * ca.sin(phase), cfg.height)
    yaw = cfg.yaw_amplitude * ca.sin(cfg.yaw_frequency * t)
    c, s = ca.cos(yaw), ca.sin(yaw)
    R = ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    angles = ca.DM(cfg.start) + ca.DM(cfg.swing) * (1 - ca.cos(ca.DM(cfg.swing_frequency) * t)) / 2

    W = R.T @ ca.jacobian(ca.vec(R), t).reshape((3, 3))  # skew matrix of the angular velocity in the base
    twist = ca.vertcat(W[2, 1], W[0, 2], W[1, 0], R.T @ ca.jacobian(p, t))
    V = [ca.vertcat(twist, ca.jacobian(angles, t))]
    for _ in range(ORDER + 1):
        V.append(ca.cse(ca.jacobian(V[-1], t)))
    q = ca.vertcat(ca.cos(yaw / 2), 0, 0, ca.sin(yaw / 2), p, angles)
    mismatch = ca.jacobian(q, t) - robot.configuration_rate(q, V[0])
    return ca.Function("reference", [t], [ca.densify(x) for x in (q, *V, mismatch)])


# -- model and Functions --------------------------------------------------------------------------------------


def build(cfg):
    """(reference, {methods: (inverse dynamics, forward dynamics)}, allocation): Functions, and the matrix (6, 6) that
    turns six thrusts into the wrench on the base."""
    robot = od.robots.aerial_manipulator()
    quantities = "inverse_dynamics", "forward_dynamics"
    pairs = {
        pair: tuple(od.function(robot, x, order=ORDER, method=m) for x, m in zip(quantities, pair, strict=True))
        for pair in cfg.methods
    }
    return reference(cfg, robot), pairs, od.robots.propellers()


# -- there and back -------------------------------------------------------------------------------------------


def solve(cfg, model):
    """(t (N,), q (13, N), v (7, 12, N): v and its derivatives, {methods: (tau, thrust, dv)}): base wrench and joint
    torques (6, 12, N), thrusts (6, 6, N), accelerations given back (6, 12, N), each with derivatives 0..5."""
    motion, pairs, allocation = model
    t = np.linspace(0, cfg.duration, round(cfg.duration / cfg.dt) + 1)
    q, *v, _ = (x.full() for x in motion.map(t.size)(t.reshape(1, -1)))
    out = {}
    for pair, (inverse, forward) in pairs.items():
        tau = np.array([x.full() for x in inverse(q, *v)])
        thrust = np.linalg.solve(allocation, tau[:, :6])  # a constant matrix: derivatives likewise
        given = np.concatenate([allocation @ thrust, tau[:, 6:]], axis=1)
        dv = np.array([x.full() for x in forward(q, v[0], *given)])
        out[pair] = tau, thrust, dv
    return t, q, np.array(v), out


# -- checks ---------------------------------------------------------------------------------------------------


def round_trip(v, dv):
    """Errors (6, N) of the accelerations given back: largest difference over largest component, at each order and
    time."""
    return np.abs(dv - v[1:]).max(axis=1) / np.abs(v[1:]).max(axis=1)


def check(cfg, model, t, v, solution):
    """{what: (error, bound)}."""
    out = {"v and the rate of q": (float(np.abs(model[0].map(t.size)(t.reshape(1, -1))[-1].full()).max()), 1e-12)}
    for pair, (_, _, dv) in solution.items():
        for k, error in enumerate(round_trip(v, dv).max(axis=1)):
            out[f"order {k}: {' and '.join(pair)}, there and back"] = error, cfg.bound
    (one, (first, *_)), (two, (second, *_)) = list(solution.items())[:2]
    for k in range(ORDER + 1):
        error = np.abs(first[k] - second[k]).max() / np.abs(first[k]).max()
        out[f"order {k}: torques by {two[0]} and {one[0]}"] = error, cfg.agreement
    return out


# -- figures and table ----------------------------------------------------------------------------------------


def plot(cfg, t, q, v, solution, out):
    """reference.png, efforts.png, round_trip.png."""
    tau, thrust, dv = solution[cfg.methods[0]]
    xyz, arms = "xyz", ("left 1", "left 2", "left 3", "right 1", "right 2", "right 3")
    twist = [rf"$\omega_{c}$" for c in xyz] + [f"$u_{c}$" for c in xyz]
    yaw = 2 * np.arctan2(q[3], q[0])
    panels = [
        (np.vstack([q[4:7], yaw]), None, "base: position [m], yaw [rad]", [*xyz, "yaw"]),
        (q[7:], None, "joint angles [rad]", arms),
        (v[1][:6], dv[0][:6], "base: acceleration [rad/s$^2$, m/s$^2$]", twist),
        (v[1][6:], dv[0][6:], "joint accelerations [rad/s$^2$]", arms),
        (v[6][:6], dv[5][:6], "base: its 5th derivative [.../s$^7$]", twist),
        (v[6][6:], dv[5][6:], "their 5th derivatives [rad/s$^7$]", arms),
    ]
    _grid(t, panels, "Reference; dashed: what forward dynamics gives back", out / "reference.png")
    wrench = [f"$m_{c}$" for c in xyz] + [f"$f_{c}$" for c in xyz]
    propellers = [f"propeller {i}" for i in range(1, 7)]
    panels = []
    for k, per in enumerate(("", "/s")):
        d = "derivative of " * k
        panels.append((thrust[k], None, f"{d}thrusts [N{per}]", propellers))
        panels.append((tau[k][:6], None, f"{d}base wrench [Nm{per}, N{per}]", wrench))
        panels.append((tau[k][6:], None, f"{d}joint torques [Nm{per}]", arms))
    order = (0, 3, 1, 4, 2, 5)
    _grid(t, [panels[i] for i in order], "What the reference asks for, and its time derivative", out / "efforts.png")

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    for axes, (pair, (_, _, back)) in zip(figure.subplots(1, 2, sharey=True), solution.items(), strict=True):
        for k, error in enumerate(round_trip(v, back)):
            axes.semilogy(t, error, linewidth=0.8, label=f"order {k}")
        axes.axhline(cfg.bound, color="k", linestyle="--", linewidth=0.8)
        axes.set(title="\n".join(pair), xlabel="$t$ [s]", ylim=(1e-16, 1e-7))
        axes.grid(alpha=0.3)
        axes.margins(x=0)
    figure.axes[0].set_ylabel("relative error of the accelerations")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize="small")
    figure.suptitle("There and back: inverse dynamics, allocation, forward dynamics")
    figure.savefig(out / "round_trip.png", dpi=85)


def _grid(t, panels, title, path):
    figure = Figure(figsize=(11, 9), layout="constrained")
    for axes, (x, again, label, names) in zip(figure.subplots(3, 2).ravel(), panels, strict=True):
        axes.plot(t, x.T, linewidth=1.3, label=names)
        if again is not None:
            axes.plot(t, again.T, "k--", linewidth=0.7)
        axes.set(ylabel=label)
        axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))
        axes.grid(alpha=0.3)
        axes.margins(x=0)
        if axes.get_subplotspec().is_last_row():
            axes.set_xlabel("$t$ [s]")
    figure.suptitle(title)
    figure.savefig(path, dpi=75)


def write(cfg, t, q, v, solution, path):
    """Table of time, configuration, thrusts, wrench, torques, their derivatives 1..5, and the round trip's errors."""
    tau, thrust, dv = solution[cfg.methods[0]]
    header = ["t [s]", "qw", "qx", "qy", "qz", "x [m]", "y [m]", "z [m]", *(f"{j} [rad]" for j in ARMS)]
    header += [f"thrust{i} [N]" for i in range(1, 7)]
    rows = (*(f"wrench_{c}" for c in ("mx", "my", "mz", "fx", "fy", "fz")), *ARMS)
    for k in range(ORDER + 1):
        units = ["Nm"] * 3 + ["N"] * 3 + ["Nm"] * 6
        per = ("", "/s", "/s2", "/s3", "/s4", "/s5")[k]
        header += [f"{name('tau', k)} {r} [{u}{per}]" for r, u in zip(rows, units, strict=True)]
    header += [f"round trip {k}" for k in range(ORDER + 1)]
    table = np.vstack([t, q, thrust[0], *tau, round_trip(v, dv)]).T[:: cfg.table_step]
    np.savetxt(path, table, fmt="%.8g", delimiter=",", header=",".join(header), comments="")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/aerial_manipulator"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(dt=0.05, table_step=1) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    model = build(cfg)
    t, q, v, solution = solve(cfg, model)
    checks = check(cfg, model, t, v, solution)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:67} {error:8.1e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")
    thrust = solution[cfg.methods[0]][1][0]
    say(f"thrusts between {thrust.min():.2f} and {thrust.max():.2f} N")

    write(cfg, t, q, v, solution, options.out / "efforts.csv")
    plot(cfg, t, q, v, solution, options.out)
    command = ["python", "problems/aerial_manipulator.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "thrust_range": [thrust.min(), thrust.max()], "passed": passed}
    facts["instructions"] = {m: f.n_instructions() for m, (f, _) in zip(cfg.methods, model[1].values(), strict=True)}
    facts |= {"checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
