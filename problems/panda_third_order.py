"""Joint torques of the Panda and their first three time derivatives along a given motion.

    q_i(t) = -(a_i / w_i) cos(w_i t),    Q = M(q) q'' + C(q, q') q' + g(q),    wanted: Q, Q', Q'', Q''' over 5 s,

by three independent methods, which must agree; the numerical derivative of Q^(k) must be Q^(k+1).
Source: Kumar and Mueller 2021, section IV-A, figures 1 to 5; a, w: the data set that its authors published. Read as:
seven joints, with gravity, the identified tensors about the centres of mass. The motion tests formulas and is not for
the real arm: joints 1 and 2 exceed their velocity limit, joints 4 and 6 their range.
Run:    python problems/panda_third_order.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


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


ORDER = 3
LABEL = ("Q", "dQ", "d2Q", "d3Q")
SYMBOL = ("$Q$ [Nm]", "$Q'$ [Nm/s]", "$Q''$ [Nm/s$^2$]", "$Q'''$ [Nm/s$^3$]")
JOINTS = range(1, 8)

# -- model and Functions --------------------------------------------------------------------------------------


def build(cfg):
    """{method: casadi.Function (q, v, v', ..., v^(4)) -> (Q, Q', Q'', Q''')} of the Panda."""
    panda = od.robots.panda()
    return {m: od.function(panda, "inverse_dynamics", order=ORDER, method=m) for m in cfg.methods}


# -- trajectory -----------------------------------------------------------------------------------------------


def motion(cfg, t):
    """[q, v, v', ..., v^(4)], arrays (7, times): v_i^(k) = a_i w_i^k sin(w_i t + k pi/2), and q is v^(-1)."""
    a, w = (np.array(x)[:, None] for x in (cfg.a, cfg.w))
    return [a * w**k * np.sin(w * t + k * np.pi / 2) for k in range(-1, ORDER + 2)]


# -- evaluation -----------------------------------------------------------------------------------------------


def torques(cfg, function, t):
    """Q, Q', Q'', Q''' as array (4, 7, times)."""
    return np.array([x.full() for x in function(*motion(cfg, t))])


def solve(cfg, functions):
    """Times (times,) and {method: torques}."""
    t = np.linspace(0, cfg.duration, round(cfg.duration / cfg.dt) + 1)
    return t, {method: torques(cfg, f, t) for method, f in functions.items()}


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, functions, t, Q):
    """{what: (error, bound)}; errors are relative to the largest value over time but for those of pinned values."""
    first, *others = cfg.methods
    f, scale = functions[first], np.abs(Q[first]).max(axis=(1, 2))
    stencil = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # central, of order 8
    h = cfg.step
    rate = sum(c * (torques(cfg, f, t + j * h) - torques(cfg, f, t - j * h)) for j, c in stencil.items()) / h
    at_zero, at_one = torques(cfg, f, np.array([0.0])), torques(cfg, f, np.array([1.0]))
    out = {}
    for k, name in enumerate(LABEL):
        for other in others:
            error = np.abs(Q[other][k] - Q[first][k]).max() / scale[k]
            out[f"{name}: {other} and {first}"] = error, cfg.agreement
    for k, name in enumerate(LABEL[1:], 1):
        error = np.abs(rate[k - 1] - Q[first][k]).max() / scale[k]
        out[f"{name}: numerical derivative of {LABEL[k - 1]}"] = error, cfg.differentiation
    for k, name in enumerate(LABEL):
        error = np.abs(at_one[k, :, 0] - cfg.pinned[k]).max()
        out[f"{name}: pinned value at 1 s"] = error, 0.51 * 10.0 ** -cfg.digits[k]
    for k in (1, 3):  # q is even in t
        out[f"{LABEL[k]}: zero at 0 s"] = np.abs(at_zero[k]).max() / scale[k], cfg.symmetry
    return out


# -- figures and table ----------------------------------------------------------------------------------------


def plot(cfg, t, Q, out):
    """joint_trajectory.png (figure 1 of the paper) and torques.png (figures 2 to 5, and what the methods differ by)."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    for axes, x, label in zip(figure.subplots(2), motion(cfg, t), ("$q$ [rad]", "$v$ [rad/s]"), strict=False):
        axes.plot(t, x.T, linewidth=1.3)
        axes.set(ylabel=label)
    _finish(figure, r"Motion of the Panda: $q_i(t) = -(a_i/\omega_i)\,\cos\omega_i t$", out / "joint_trajectory.png")

    first, *others = cfg.methods
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(3, 2, height_ratios=(3, 3, 2)).ravel()
    for axes, symbol, x in zip(panels, SYMBOL, Q[first], strict=False):
        axes.plot(t, x.T, linewidth=1.3)
        axes.set(ylabel=symbol)
    for axes, other in zip(panels[4:], others, strict=True):
        for name, x, y in zip(LABEL, Q[other], Q[first], strict=True):
            axes.semilogy(t, np.abs(x - y).max(axis=0) / np.abs(y).max(), ".", markersize=2, label=name)
        axes.set(ylabel="relative difference", title=f"{other} and {first}", ylim=(1e-18, 1e-13))
        axes.legend(fontsize="x-small", ncols=4, markerscale=4, loc="upper right")
    _finish(figure, f"Torques of the Panda and their time derivatives by the method {first}", out / "torques.png")


def _finish(figure, title, path):
    for axes in figure.axes:
        axes.grid(alpha=0.3)
        axes.margins(x=0)
        if axes.get_subplotspec().is_last_row():
            axes.set_xlabel("$t$ [s]")
    lines = figure.axes[0].lines
    figure.legend(lines, [f"joint {i}" for i in JOINTS], loc="outside lower center", ncols=7, fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=85)


def write(cfg, t, Q, path):
    """Table of time, joint angles, torques and their derivatives by the first method."""
    header = ["t [s]", *(f"q{i} [rad]" for i in JOINTS)]
    header += [
        f"{x}{i} [{unit}]" for x, unit in zip(LABEL, ("Nm", "Nm/s", "Nm/s2", "Nm/s3"), strict=True) for i in JOINTS
    ]
    table = np.vstack([t, motion(cfg, t)[0], *Q[cfg.methods[0]]]).T
    np.savetxt(path, table, fmt="%.9g", delimiter=",", header=",".join(header), comments="")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/panda_third_order"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(dt=0.05) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    functions = build(cfg)
    t, Q = solve(cfg, functions)
    checks = check(cfg, functions, t, Q)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:40} {error:8.1e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")

    write(cfg, t, Q, options.out / "torques.csv")
    plot(cfg, t, Q, options.out)
    command = ["python", "problems/panda_third_order.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "instructions": {m: f.n_instructions() for m, f in functions.items()}}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
