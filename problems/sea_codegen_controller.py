"""The complete law of an elastic seven-joint arm as C99: the same torques as in Python, and what a step of it costs.

The law is feedback linearisation through the flat outputs: forward dynamics with its first derivative, inverse dynamics
with its second, motors and springs. One command writes it as C without allocation, with a header and a harness,
and compiles it. Checked: its torques at random states, and 1000 steps of it in a loop with the simulated arm, against
Python. Timed in one run: the compiled law, the same law on CasADi's virtual machine, and one on Pinocchio (if it is
installed), which has no time derivatives of its dynamics and takes differences: the jerk from two forward dynamics,
the second derivative of the torques from three inverse dynamics, on either side of the state. That one is called from
Python, so its library calls are timed alone as well: what a call through the bindings costs is in both. With
--pinocchio, the program that comes of sea_pinocchio_law.cpp is timed too, the same law in C++ without Python.
The arm: the Panda with a load and springs of 7000 Nm/rad, see sea_arm_tracking.py.
Run:    python problems/sea_codegen_controller.py [--quick] [--quiet] [--out DIR] [--c DIR] [--pinocchio PROGRAM]
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
import timeit
from dataclasses import asdict, dataclass
from math import pi
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.model.robot import Joint, assemble
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    stiffness: float = 7000.0  # [Nm/rad]
    motor_inertia: tuple = (0.5, 0.5, 0.4, 0.4, 0.2, 0.2, 0.15)  # [kg m2]
    load: float = 3.0  # at the flange [kg]
    pole: float = 40.0  # [1/s]
    start: tuple = (0.0, -pi / 4, 0.0, -3 * pi / 4, 0.0, pi / 2, pi / 4)  # [rad]
    goal: tuple = (0.8, -0.2, -0.5, -1.6, 0.5, 2.1, 0.3)  # [rad]
    moving: float = 0.8  # [s]
    hold: float = 0.2  # [s]
    sample_time: float = 1e-3  # [s]
    points: int = 200  # random states at which torques are compared
    calls: int = 200_000  # of the compiled law, to time it; a hundredth of the others
    step: float = 1e-4  # of the finite differences [s]
    agreement: float = 1e-10  # of C and Python, relative to the largest torque
    deadline: float = 20.0  # for a step [us]


# -- model and law --------------------------------------------------------------------------------------------


def build(cfg):
    """(elastic robot, Controller, Reference)."""
    panda = od.robots.panda()
    links, joints, _, _ = panda.description
    load = od.Inertia.from_com(cfg.load, (0.0, 0.0, 0.08), np.diag([0.01, 0.01, 0.008]))
    fixed = Joint("load_fixed", "fixed", "panda_link8", "load")
    robot = assemble("panda_with_load", {**links, "load": load}, (*joints, fixed), gravity=panda.gravity)
    arm = el.elastic_robot(robot, cfg.stiffness, motor_inertia=cfg.motor_inertia)
    path = el.rest_to_rest(cfg.start, cfg.goal, cfg.moving, continuity=4, hold=cfg.hold)
    return arm, el.feedback_linearization(arm, cfg.pole), el.reference(arm, path)


def samples(cfg, arm, law):
    """(points, inputs) random references, and states near them, in the order of the law's ports."""
    rng = np.random.default_rng(0)
    n, f = arm.nv, od.function(arm, "elastic_flat_map")
    rows = []
    for _ in range(cfg.points):
        ref = [arm.links.random_configuration(int(rng.integers(1 << 30))), *(rng.normal(size=n) for _ in range(4))]
        flat = f(*ref)
        measured = [ref[0], ref[1], flat[0].full().ravel(), flat[1].full().ravel()]
        state = [x + 1e-3 * rng.normal(size=n) for x in measured]
        rows.append(np.concatenate([*ref, *state]))
    return np.array(rows)


def in_python(law, points):
    """Torques (points, motors) of the law on CasADi's virtual machine."""
    f = law.function
    ends = np.cumsum([f.size1_in(i) for i in range(f.n_in())])[:-1]
    return f.map(len(points))(*np.split(points.T, ends)).full().T


# -- a law on Pinocchio ---------------------------------------------------------------------------------------


def pinocchio_law(cfg, arm):
    """(law (row of inputs) -> torques, library calls alone (row) -> None), by finite differences; None without it."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    model = pin.Model()
    for b in arm.links.bodies:  # all axes are z
        placement = pin.SE3(np.array(b.rotation), np.array(b.translation))
        joint = model.addJoint(b.parent, pin.JointModelRZ(), placement, b.joint.name)
        i = b.inertia
        model.appendBodyToJoint(joint, pin.Inertia(i.mass, np.array(i.com), np.array(i.tensor_com)), pin.SE3.Identity())
    model.gravity.linear = np.array(arm.links.gravity)
    data, n, h = model.createData(), arm.nv, cfg.step
    K, B = arm.linear_stiffness(), np.diag(arm.motor_inertia)
    k = el.pole_gains(cfg.pole, 4, n)

    def law(row):
        q_ref, v_ref, dv_ref, d2v_ref, d3v_ref, q, v, theta, dtheta = row.reshape(-1, n)
        tau, rate = K * (theta - q), K * (dtheta - v)
        a = pin.aba(model, data, q, v, tau).copy()
        ahead = pin.aba(model, data, q + h * v + h * h / 2 * a, v + h * a, tau + h * rate).copy()
        jerk = (ahead - pin.aba(model, data, q - h * v + h * h / 2 * a, v - h * a, tau - h * rate)) / (2 * h)
        d3v = (
            d3v_ref
            + k[:, 3] * (d2v_ref - jerk)
            + k[:, 2] * (dv_ref - a)
            + k[:, 1] * (v_ref - v)
            + k[:, 0] * (q_ref - q)
        )
        torque = []
        for t in (h, 0.0, -h):
            moved = q + t * v + t**2 / 2 * a + t**3 / 6 * jerk + t**4 / 24 * d3v
            speed = v + t * a + t**2 / 2 * jerk + t**3 / 6 * d3v
            torque.append(pin.rnea(model, data, moved, speed, a + t * jerk + t**2 / 2 * d3v).copy())
        second = (torque[0] - 2 * torque[1] + torque[2]) / h**2
        return B * (a + second / K) + tau

    def calls(row):
        q, v, tau = row.reshape(-1, n)[5:8]
        for _ in range(3):
            pin.aba(model, data, q, v, tau)
            pin.rnea(model, data, q, v, tau)

    return law, calls


def pinocchio_program(cfg, arm, program, points):
    """(torques, seconds of a step) of the same law in C++."""
    words = [arm.nv]
    for b in arm.links.bodies:
        words += [
            *np.ravel(b.rotation),
            *b.translation,
            b.inertia.mass,
            *b.inertia.com,
            *np.ravel(b.inertia.tensor_com),
        ]
    words += [
        *arm.links.gravity,
        *arm.linear_stiffness(),
        *np.diag(arm.motor_inertia),
        *el.pole_gains(cfg.pole, 4, 1)[0],
    ]
    words += [cfg.step, cfg.calls, len(points), *np.ravel(points)]
    text = " ".join(f"{x:.17g}" for x in words)
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True)
    *rows, last = done.stdout.splitlines()
    return np.array([[float(x) for x in row.split(",")] for row in rows]), float(last.split(",")[0])


# -- times ----------------------------------------------------------------------------------------------------


def times(cfg, law, generated, others, points):
    """{what: microseconds a step}, the best of five runs each."""
    row = points[0]
    inputs = [np.ascontiguousarray(x) for x in np.split(row, 9)]
    torque = np.zeros(law.elastic.nv)
    buffer, evaluate = law.function.buffer()  # no conversion of arguments; lives as long as it is called
    for i, x in enumerate(inputs):
        buffer.set_arg(i, memoryview(x))
    buffer.set_res(0, memoryview(torque))
    number = max(1, cfg.calls // 100)
    out = {
        "generated C": min(generated.seconds_per_step(cfg.calls) for _ in range(5)) * 1e6,
        "CasADi virtual machine": _best(evaluate, number),
    }
    if others:
        by_differences, calls = others
        out["Pinocchio and differences, in Python"] = _best(lambda: by_differences(row), number)
        out["of that, the six library calls"] = _best(lambda: calls(row), number)
    return out


def _best(call, number):
    """Microseconds of processor time a call takes, as the C harness counts them: other programs may be running."""
    return min(timeit.repeat(call, timer=time.process_time, number=number, repeat=5)) / number * 1e6


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, law, generated, others, points, spent, reference):
    """({what: (error, bound)}, figures)."""
    torque, from_c = in_python(law, points), generated.values(points)
    size = np.abs(torque).max()
    out = {"C and Python at random states, relative": (np.abs(from_c - torque).max() / size, cfg.agreement)}
    steps = round(reference.duration / cfg.sample_time)
    run = el.simulate(law.elastic, law, reference, sample_time=cfg.sample_time, dt=cfg.sample_time)
    t, states, commands = generated.loop(steps)
    out["C and Python in a loop, times [s]"] = np.abs(t - run.t).max(), 1e-12
    for name, part in (("q", slice(0, 7)), ("v", slice(7, 14)), ("theta", slice(14, 21)), ("dtheta", slice(21, 28))):
        gap = np.abs(states[:, part] - run.states[:, part]).max()
        out[f"C and Python in a loop, {name}, relative"] = gap / np.abs(run.states[:, part]).max(), cfg.agreement
    out["C and Python in a loop, torques, relative"] = (
        np.abs(commands - run.tau_m).max() / np.abs(run.tau_m).max(),
        cfg.agreement,
    )
    out["the loop follows its reference [rad]"] = np.abs(states[-1, :7] - np.array(cfg.goal)).max(), 1e-3
    text = "\n".join(
        f.read_text() for f in generated.files if f.name.startswith(generated.name) and "loop" not in f.name
    )
    out["words of the C law that allocate"] = (
        float(sum(w in text for w in ("malloc(", "calloc(", "realloc(", "free("))),
        0.5,
    )
    out["share of the deadline that a step of C takes"] = spent["generated C"] / cfg.deadline, 1.0
    out["C over the virtual machine, time"] = spent["generated C"] / spent["CasADi virtual machine"], 0.5
    figures = {"largest_torque": size, "largest_error_in_the_loop": run.largest_error}
    if others:
        by_differences = np.array([others[0](row) for row in points])
        figures["error_of_finite_differences"] = np.abs(by_differences - torque).max() / size
        out["law by differences and ours, relative"] = figures["error_of_finite_differences"], 1e-2
        out["C over Pinocchio and differences, time"] = (
            spent["generated C"] / spent["Pinocchio and differences, in Python"],
            1.0,
        )
    return out, figures


# -- figures and files ----------------------------------------------------------------------------------------


def plot(cfg, spent, path):
    """Time of a step, logarithmic."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    axis = figure.subplots()
    names = list(spent)[::-1]
    bars = axis.barh(names, [spent[n] for n in names], color="C0")
    axis.bar_label(bars, [f"{spent[n]:.2f} us" for n in names], padding=3, fontsize="small")
    axis.axvline(cfg.deadline, color="C3", linewidth=1, label=f"{cfg.deadline:g} us")
    axis.set(
        xscale="log", xlabel="time of a step [us]", title="feedback linearisation of an elastic arm of seven joints"
    )
    axis.set_xlim(0.5 * min(spent.values()), 4 * max(*spent.values(), cfg.deadline))
    axis.legend(fontsize="small")
    axis.grid(alpha=0.3, axis="x")
    figure.savefig(path, dpi=100)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/sea_codegen_controller"), help="folder (%(default)s)")
    parser.add_argument("--c", type=Path, help="folder to keep the C files in; else they are deleted")
    parser.add_argument("--pinocchio", type=Path, help="compiled sea_pinocchio_law.cpp, to be timed as well")
    parser.add_argument("--quick", action="store_true", help="fewer calls, shorter motion, less optimised C")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(points=50, calls=20_000) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    arm, law, reference = build(cfg)
    flags = ("-std=c99", "-O1", "-ffp-contract=off") if options.quick else el.FLAGS
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.c or Path(temporary)
        generated = el.generate_controller(
            law, folder, name="sea_law", sample_time=cfg.sample_time, reference=reference, flags=flags
        )
        if generated.program is None:
            say("no C compiler was found: nothing to compare or time")
            return 1
        points = samples(cfg, arm, law)
        others = pinocchio_law(cfg, arm)
        spent = times(cfg, law, generated, others, points)
        if options.pinocchio:
            in_cpp, seconds = pinocchio_program(cfg, arm, options.pinocchio, points)
            spent["Pinocchio and differences, in C++"] = seconds * 1e6
        checks, figures = check(cfg, law, generated, others, points, spent, reference)
        if options.pinocchio:
            gap = np.abs(in_cpp - in_python(law, points)).max() / figures["largest_torque"]
            checks["law by differences in C++ and ours, relative"] = gap, 1e-2
        lines = {f.name: len(f.read_text().splitlines()) for f in generated.files}
    passed = all(error < bound for error, bound in checks.values())
    fastest = spent["generated C"]
    for what, us in spent.items():
        say(f"{what:42} {us:8.2f} us a step, {us / fastest:6.1f} times the C law")
    for what, (error, bound) in checks.items():
        say(f"{what:55} {error:8.1e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")

    with open(options.out / "times.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["law", "time of a step [us]", "times the C law"])
        out.writerows([what, f"{us:.3f}", f"{us / fastest:.2f}"] for what, us in spent.items())
    plot(cfg, spent, options.out / "times.png")
    command = ["python", "problems/sea_codegen_controller.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "flags": flags, "instructions": law.function.n_instructions(), "lines_of_c": lines}
    facts |= {"microseconds": spent, **figures}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
