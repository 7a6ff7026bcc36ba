"""Thrusts, torques and their time derivatives of an aerial manipulator along a reference, checked by forward dynamics.

The base (free joint) flies once round a circle, from rest to rest, while it swings in yaw; the six joints of its two
arms follow q(t) = q(0) + s (1 - cos w t) / 2. Inverse dynamics of order 5 gives the wrench on the base and the joint
torques with their derivatives 0..5; the inverse allocation turns the wrench into the thrusts of six tilted propellers.
Forward dynamics of order 5 at these thrusts and torques must return the accelerations of the reference and their
derivatives.
Base velocity: the twist [angular; linear] in the base's own axes, v = vee(C^-1 C') for the pose C(t); its derivatives
are componentwise and exact, from differentiating the formulas of the reference in t.
Source: Ali, Gabellieri, Franchi 2026, section 7, figure 3. The values of its table of parameters could not be
recovered: those of the robot (od.robots.aerial_manipulator) and of the reference below are ours.
Run:    python problems/aerial_manipulator.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

ORDER = 5
ARMS = tuple(f"{arm}_joint{i}" for arm in ("left", "right") for i in (1, 2, 3))


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


def reference(cfg, robot):
    """casadi.Function t -> (q, v, v', ..., v^(6), mismatch) of the motion; the last is the difference of q' and v."""
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


def there_and_back(pair, allocation, q, v):
    """(tau, thrust, dv) by a pair of Functions, inverse and forward dynamics: base wrench and joint torques (6, 12, N),
    thrusts (6, 6, N), recovered accelerations (6, 12, N), each with derivatives 0..5."""
    inverse, forward = pair
    tau = np.array([x.full() for x in inverse(q, *v)])
    thrust = np.linalg.solve(allocation, tau[:, :6])  # a constant matrix: derivatives likewise
    efforts = np.concatenate([allocation @ thrust, tau[:, 6:]], axis=1)
    return tau, thrust, np.array([x.full() for x in forward(q, v[0], *efforts)])


def round_trip(v, dv):
    """Errors (6, N) of the recovered accelerations: largest difference over largest component, at each order and
    time."""
    return np.abs(dv - v[1:]).max(axis=1) / np.abs(v[1:]).max(axis=1)


def check(run, cfg, mismatch, v, solution):
    run.check("v and the rate of q", np.abs(mismatch).max(), below=1e-12)
    for pair, (_, _, dv) in solution.items():
        for k, error in enumerate(round_trip(v, dv).max(axis=1)):
            run.check(f"order {k}: {' and '.join(pair)}, there and back", error, below=cfg.bound)
    (one, (first, *_)), (two, (second, *_)) = list(solution.items())[:2]
    for k in range(ORDER + 1):
        error = np.abs(first[k] - second[k]).max() / np.abs(first[k]).max()
        run.check(f"order {k}: torques by {two[0]} and {one[0]}", error, below=cfg.agreement)


def write(run, cfg, t, q, v, solution):
    """Table of time, configuration, thrusts, wrench, torques, their derivatives 1..5, and the round trip's errors."""
    tau, thrust, dv = solution[cfg.methods[0]]
    columns = {"t [s]": t, ("qw", "qx", "qy", "qz", "x [m]", "y [m]", "z [m]", *(f"{j} [rad]" for j in ARMS)): q.T}
    columns[tuple(f"thrust{i} [N]" for i in range(1, 7))] = thrust[0].T
    rows = (*(f"wrench_{c}" for c in ("mx", "my", "mz", "fx", "fy", "fz")), *ARMS)
    units = ["Nm"] * 3 + ["N"] * 3 + ["Nm"] * 6
    for k, per in enumerate(("", "/s", "/s2", "/s3", "/s4", "/s5")):
        name = "tau" if k == 0 else "dtau" if k == 1 else f"d{k}tau"
        columns[tuple(f"{name} {r} [{u}{per}]" for r, u in zip(rows, units, strict=True))] = tau[k].T
    columns[tuple(f"round trip {k}" for k in range(ORDER + 1))] = round_trip(v, dv).T
    run.table("efforts.csv", {name: x[:: cfg.table_step] for name, x in columns.items()})


def draw(run, cfg, t, q, v, solution):
    tau, thrust, dv = solution[cfg.methods[0]]
    arms = ["left 1", "left 2", "left 3", "right 1", "right 2", "right 3"]
    twist, wrench = ([f"${x}_{c}$" for x in pair for c in "xyz"] for pair in ((r"\omega", "u"), "mf"))
    titles = "base [m], yaw [rad]", "joint angles [rad]", "acceleration of the base", "of the joints [rad/s2]"
    fifth = "its 5th derivative, base", "joints [rad/s7]; dashed: given back"
    with run.figure("reference.png", *titles, *fifth, columns=3) as axes:
        axes[0].plot(t, q[4:7].T, label=["x", "y", "z"])
        axes[0].plot(t, 2 * np.arctan2(q[3], q[0]), label="yaw")
        axes[1].plot(t, q[7:].T, label=arms)
        for k, (base, joints) in ((0, axes[2:4]), (5, axes[4:])):
            for axis, part, names in ((base, slice(0, 6), twist), (joints, slice(6, 12), arms)):
                axis.plot(t, v[k + 1][part].T, label=names)
                axis.plot(t, dv[k][part].T, "k--", linewidth=0.7)
    titles = "thrusts [N]", "wrench on the base [Nm, N]", "joint torques [Nm]"
    rates = "rates of thrusts [N/s]", "of the wrench [Nm/s, N/s]", "of joint torques [Nm/s]"
    with run.figure("efforts.png", *titles, *rates, columns=3) as axes:
        for k in range(2):
            axes[3 * k].plot(t, thrust[k].T, label=[f"propeller {i}" for i in range(1, 7)])
            axes[3 * k + 1].plot(t, tau[k][:6].T, label=wrench)
            axes[3 * k + 2].plot(t, tau[k][6:].T, label=arms)
    with run.figure("round_trip.png", *(", ".join(pair) for pair in solution), size=(9, 4.5)) as axes:
        for axis, (_, _, back) in zip(axes, solution.values(), strict=True):
            for k, error in enumerate(round_trip(v, back)):
                axis.semilogy(t, error, linewidth=0.8, label=f"order {k}")
            axis.axhline(cfg.bound, color="k", linestyle="--", linewidth=0.8)
            axis.set(ylabel="relative error of the accelerations", ylim=(1e-16, 1e-7))


def solve(run, cfg):
    robot, allocation = od.robots.aerial_manipulator(), od.robots.propellers()
    functions = {
        (a, b): (
            od.function(robot, "inverse_dynamics", order=ORDER, method=a),
            od.function(robot, "forward_dynamics", order=ORDER, method=b),
        )
        for a, b in cfg.methods
    }
    t = np.linspace(0, cfg.duration, round(cfg.duration / cfg.dt) + 1)
    q, *v, mismatch = (x.full() for x in reference(cfg, robot).map(t.size)(t.reshape(1, -1)))
    v = np.array(v)
    solution = {names: there_and_back(pair, allocation, q, v) for names, pair in functions.items()}
    check(run, cfg, mismatch, v, solution)
    thrust = solution[cfg.methods[0]][1][0]
    run.say(f"thrusts between {thrust.min():.2f} and {thrust.max():.2f} N")
    run.facts["thrust_range"] = [thrust.min(), thrust.max()]
    run.facts["instructions"] = {str(m): inverse.n_instructions() for m, (inverse, _) in functions.items()}
    write(run, cfg, t, q, v, solution)
    draw(run, cfg, t, q, v, solution)


main = od.script(solve, Config(), quick={"dt": 0.05, "table_step": 1})

if __name__ == "__main__":
    sys.exit(main())
