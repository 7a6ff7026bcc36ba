"""Joint torques of the Panda and their first three time derivatives along a given motion.

    q_i(t) = -(a_i / w_i) cos(w_i t),    Q = M(q) q'' + C(q, q') q' + g(q),    wanted: Q, Q', Q'', Q''' over 5 s,

by three independent methods, which must agree; the numerical derivative of Q^(k) must be Q^(k+1).
Source: Kumar and Mueller 2021, section IV-A, figures 1 to 5; a, w: the data set that its authors published. Read as:
seven joints, with gravity, the identified tensors about the centres of mass. The motion tests formulas and does not
suit the real arm: joints 1 and 2 exceed their velocity limit, joints 4 and 6 their range.
Run:    python problems/panda_third_order.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import numpy as np

import oc_dyn as od

ORDER, LABEL, JOINTS = 3, ("Q", "dQ", "d2Q", "d3Q"), range(1, 8)
UNITS, SYMBOL = ("Nm", "Nm/s", "Nm/s2", "Nm/s3"), ("$Q$", "$Q'$", "$Q''$", "$Q'''$")


@dataclass(frozen=True)
class Config:
    a: tuple = (2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5)  # amplitude of the velocity [rad/s]
    w: tuple = (  # angular frequency [rad/s]
        *(1.7073873117335832, 3.079992797637052, 2.1084514453622774, 3.5903916041026207),
        *(1.4183262544423447, 2.285625793808507, 5.927533308659986),
    )
    duration: float = 5.0  # [s]
    dt: float = 0.01  # between samples [s]
    methods: tuple = ("taylor", "recursive_body", "closed_form")
    step: float = 4e-3  # of the numerical differentiation [s]
    agreement: float = 1e-10  # of the methods, relative to the largest value over time
    differentiation: float = 1e-9  # of the numerical derivatives, likewise
    symmetry: float = 1e-12  # of what vanishes, likewise
    pinned: tuple = (  # Q, Q', Q'', Q''' at t = 1 s [Nm/s^k], from a separate Newton-Euler program and AD
        (3.7806, 36.8123, -8.4197, -9.6742, -1.3106, 1.5764, 0.0017),
        (-16.0530, 82.4014, -0.8767, -37.3180, -4.4552, -4.8666, 0.1194),
        (-189.404, -180.875, 196.772, -72.037, 22.913, -42.777, 2.084),
        (145.65, -2259.91, 534.37, 785.78, 291.85, 132.25, -4.50),
    )
    digits: tuple = (4, 4, 3, 2)  # decimals of these


def motion(cfg, t):
    """[q, v, v', ..., v^(4)], arrays (7, times): v_i^(k) = a_i w_i^k sin(w_i t + k pi/2), and q is v^(-1)."""
    a, w = (np.array(x)[:, None] for x in (cfg.a, cfg.w))
    return [a * w**k * np.sin(w * t + k * np.pi / 2) for k in range(-1, ORDER + 2)]


def torques(cfg, f, t):
    """Q, Q', Q'', Q''' as array (4, 7, times)."""
    return np.array([x.full() for x in f(*motion(cfg, t))])


def check(run, cfg, f, Q):
    """Errors are relative to the largest value over time, except those of pinned values; f: the first method's."""
    first, *others = cfg.methods
    scale = np.abs(Q[first]).max(axis=(1, 2))
    t = np.linspace(0, cfg.duration, Q[first].shape[2])
    stencil = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # central, of order 8
    h = cfg.step
    rate = sum(c * (torques(cfg, f, t + j * h) - torques(cfg, f, t - j * h)) for j, c in stencil.items()) / h
    at_zero, at_one = torques(cfg, f, np.array([0.0])), torques(cfg, f, np.array([1.0]))
    for k, name in enumerate(LABEL):
        for other in others:
            error = np.abs(Q[other][k] - Q[first][k]).max() / scale[k]
            run.check(f"{name}: {other} and {first}", error, below=cfg.agreement)
    for k, name in enumerate(LABEL[1:], 1):
        error = np.abs(rate[k - 1] - Q[first][k]).max() / scale[k]
        run.check(f"{name}: numerical derivative of {LABEL[k - 1]}", error, below=cfg.differentiation)
    for k, name in enumerate(LABEL):
        error = np.abs(at_one[k, :, 0] - cfg.pinned[k]).max()
        run.check(f"{name}: error of the pinned value at 1 s", error, below=0.51 * 10.0 ** -cfg.digits[k])
    for k in (1, 3):  # q is even in t
        run.check(f"{LABEL[k]} at 0 s, relative", np.abs(at_zero[k]).max() / scale[k], below=cfg.symmetry)


def solve(run, cfg):
    functions = {m: od.function(od.robots.panda(), "inverse_dynamics", order=ORDER, method=m) for m in cfg.methods}
    t = np.linspace(0, cfg.duration, round(cfg.duration / cfg.dt) + 1)
    Q = {method: torques(cfg, f, t) for method, f in functions.items()}
    first, *others = cfg.methods
    check(run, cfg, functions[first], Q)
    run.facts["instructions"] = {m: f.n_instructions() for m, f in functions.items()}

    q, v, *_ = motion(cfg, t)
    columns = {tuple(f"q{i} [rad]" for i in JOINTS): q.T}
    columns |= {tuple(f"{x}{i} [{u}]" for i in JOINTS): y.T for x, u, y in zip(LABEL, UNITS, Q[first], strict=True)}
    run.table("torques.csv", {"t [s]": t, **columns})
    joints = [f"joint {i}" for i in JOINTS]
    with run.figure("joint_trajectory.png", "q [rad]", "v [rad/s]", size=(9, 4)) as (angles, speeds):  # figure 1 there
        angles.plot(t, q.T, label=joints)
        speeds.plot(t, v.T)
    # figures 2 to 5 there
    titles = [f"{x} [{u}]" for x, u in zip(SYMBOL, UNITS, strict=True)]
    with run.figure("torques.png", *titles, f"relative difference from {first}", columns=3) as axes:
        for axis, x in zip(axes, Q[first], strict=False):
            axis.plot(t, x.T, label=joints if axis is axes[0] else None)
        for other, mark in zip(others, "ox+*", strict=False):
            for k, (x, y) in enumerate(zip(Q[other], Q[first], strict=True)):
                gap = np.abs(x - y).max(axis=0) / np.abs(y).max()
                axes[-1].semilogy(t, gap, mark, color=f"C{k}", markersize=2, label=f"{LABEL[k]}, {other}")
        axes[-1].set_ylim(1e-18, 1e-13)


main = od.script(solve, Config(), quick={"dt": 0.05})

if __name__ == "__main__":
    sys.exit(main())
