"""The complete law of an elastic seven-joint arm as C99: the same torques as in Python, and the time of a step.

The law is feedback linearisation through the flat outputs: forward dynamics with its first derivative, inverse dynamics
with its second, motors and springs. One command writes it as C without allocation, with a header and a harness,
and compiles it. Checked: its torques at random states, and 1000 steps of it in a loop with the simulated arm, against
Python. Timed in one run: the compiled law, the same law on CasADi's virtual machine, and one on Pinocchio (if it is
installed), which has no time derivatives of its dynamics and takes differences: the jerk from two forward dynamics,
the second derivative of the torques from three inverse dynamics, on either side of the state. That one is called from
Python, so its library calls are timed alone as well; both times include the cost of calls through the bindings. If the
setting pinocchio names the program compiled from sea_pinocchio_law.cpp, the same law in C++ without Python is timed
too; if c names a folder, the C files stay there.
The arm: the Panda with a load and springs of 7000 Nm/rad, see sea_arm_tracking.py.
Run:    python problems/sea_codegen_controller.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from dataclasses import dataclass
from math import pi
from pathlib import Path

import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el

IN_PYTHON, IN_CPP = "Pinocchio and differences, in Python", "Pinocchio and differences, in C++"


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
    flags: tuple = el.FLAGS  # of the C compiler
    c: str = ""  # folder to keep the C files in; else they are deleted
    pinocchio: str = ""  # compiled sea_pinocchio_law.cpp, to be timed as well


def build(cfg):
    """(elastic robot, Controller, Reference)."""
    load = od.Inertia.from_com(cfg.load, (0.0, 0.0, 0.08), np.diag([0.01, 0.01, 0.008]))
    links = od.robots.panda().with_payload("panda_link8", load)
    arm = el.elastic_robot(links, cfg.stiffness, motor_inertia=cfg.motor_inertia)
    path = el.rest_to_rest(cfg.start, cfg.goal, cfg.moving, continuity=4, hold=cfg.hold)
    return arm, el.feedback_linearization(arm, cfg.pole), el.reference(arm, path)


def samples(cfg, arm):
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
        gaps = (q_ref - q, v_ref - v, dv_ref - a, d2v_ref - jerk)
        d3v = d3v_ref + sum(k[:, i] * gap for i, gap in enumerate(gaps))
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


def pinocchio_program(cfg, arm, points):
    """(torques, seconds of a step) of the same law in C++."""
    words = [arm.nv]
    for b in arm.links.bodies:
        i = b.inertia
        words += [*np.ravel(b.rotation), *b.translation, i.mass, *i.com, *np.ravel(i.tensor_com)]
    words += [*arm.links.gravity, *arm.linear_stiffness(), *np.diag(arm.motor_inertia)]
    words += [*el.pole_gains(cfg.pole, 4, 1)[0], cfg.step, cfg.calls, len(points), *np.ravel(points)]
    text = " ".join(f"{x:.17g}" for x in words)
    done = subprocess.run([cfg.pinocchio], input=text, capture_output=True, text=True, check=True)
    *rows, last = done.stdout.splitlines()
    return np.array([[float(x) for x in row.split(",")] for row in rows]), float(last.split(",")[0])


def times(cfg, law, generated, others, points):
    """{what: microseconds per step}, the best of five runs each."""
    row, torque = points[0], np.zeros(law.elastic.nv)
    inputs = [np.ascontiguousarray(x) for x in np.split(row, 9)]
    buffer, evaluate = law.function.buffer()  # no conversion of arguments; lives as long as it is called
    for i, x in enumerate(inputs):
        buffer.set_arg(i, memoryview(x))
    buffer.set_res(0, memoryview(torque))

    def best(call):  # of processor time, as the C harness counts it: other programs may be running
        number = max(1, cfg.calls // 100)
        return min(timeit.repeat(call, timer=time.process_time, number=number, repeat=5)) / number * 1e6

    out = {"generated C": min(generated.seconds_per_step(cfg.calls) for _ in range(5)) * 1e6}
    out["CasADi virtual machine"] = best(evaluate)
    if others:
        by_differences, calls = others
        out[IN_PYTHON] = best(lambda: by_differences(row))
        out["of that, the six library calls"] = best(lambda: calls(row))
    return out


def check(run, cfg, law, generated, others, points, spent, reference):
    torque, from_c = in_python(law, points), generated.values(points)
    size = np.abs(torque).max()
    error = np.abs(from_c - torque).max() / size
    run.check("C and Python at random states, relative", error, below=cfg.agreement)
    steps = round(reference.duration / cfg.sample_time)
    simulated = el.simulate(law.elastic, law, reference, sample_time=cfg.sample_time, dt=cfg.sample_time)
    t, states, commands = generated.loop(steps)
    run.check("C and Python in a loop, times [s]", np.abs(t - simulated.t).max(), below=1e-12)
    for k, name in enumerate(("q", "v", "theta", "dtheta")):
        mine, theirs = (x[:, 7 * k : 7 * k + 7] for x in (states, simulated.states))
        error = np.abs(mine - theirs).max() / np.abs(theirs).max()
        run.check(f"C and Python in a loop, {name}, relative", error, below=cfg.agreement)
    error = np.abs(commands - simulated.tau_m).max() / np.abs(simulated.tau_m).max()
    run.check("C and Python in a loop, torques, relative", error, below=cfg.agreement)
    off = np.abs(states[-1, :7] - np.array(cfg.goal)).max()
    run.check("C in a loop: distance from the goal at the end [rad]", off, below=1e-3)
    own = [f for f in generated.files if f.name.startswith(generated.name) and "loop" not in f.name]
    text = "\n".join(f.read_text() for f in own)
    words = sum(word in text for word in ("malloc(", "calloc(", "realloc(", "free("))
    run.check("calls that allocate memory in the C law", words, equals=0)
    run.check("time of a step of C, share of the deadline", spent["generated C"] / cfg.deadline, below=1)
    share = spent["generated C"] / spent["CasADi virtual machine"]
    run.check("time of C over that of the virtual machine", share, below=0.5)
    run.facts |= {"largest_torque": size, "largest_error_in_the_loop": simulated.largest_error}
    if others:
        by_differences = np.array([others[0](row) for row in points])
        error = run.facts["error_of_finite_differences"] = np.abs(by_differences - torque).max() / size
        run.check("law by differences and ours, relative", error, below=1e-2)
        run.check("time of C over that of Pinocchio and differences", spent["generated C"] / spent[IN_PYTHON], below=1)


def solve(run, cfg):
    if cfg.pinocchio and shutil.which(cfg.pinocchio) is None:
        raise od.SolveError(f"pinocchio: there is no program {cfg.pinocchio!r}; compile sea_pinocchio_law.cpp")
    arm, law, reference = build(cfg)
    with tempfile.TemporaryDirectory() as temporary:
        options = {"name": "sea_law", "sample_time": cfg.sample_time, "reference": reference, "flags": cfg.flags}
        generated = el.generate_controller(law, Path(cfg.c or temporary), **options)
        if generated.program is None:
            raise od.SolveError("no C compiler was found: nothing to compare or time")
        points, others = samples(cfg, arm), pinocchio_law(cfg, arm)
        spent = times(cfg, law, generated, others, points)
        if cfg.pinocchio:
            in_cpp, seconds = pinocchio_program(cfg, arm, points)
            spent[IN_CPP] = seconds * 1e6
        check(run, cfg, law, generated, others, points, spent, reference)
        if cfg.pinocchio:
            gap = np.abs(in_cpp - in_python(law, points)).max() / run.facts["largest_torque"]
            run.check("law by differences in C++ and ours, relative", gap, below=1e-2)
        lines = {f.name: len(f.read_text().splitlines()) for f in generated.files}
    fastest = spent["generated C"]
    for what, us in spent.items():
        run.say(f"{what:42} {us:8.2f} us a step, {us / fastest:6.1f} times the C law")
    run.facts |= {"flags": cfg.flags, "instructions": law.function.n_instructions(), "lines_of_c": lines}
    run.facts["microseconds"] = spent

    us = np.array(list(spent.values()))
    run.table("times.csv", {"law": list(spent), "time of a step [us]": us, "times the C law": us / fastest})
    title = "feedback linearisation of an elastic arm of seven joints"
    with run.figure("times.png", title, size=(8, 3), xlabel="time of a step [us]") as axis:
        names = list(spent)[::-1]
        bars = axis.barh(names, [spent[n] for n in names], color="C0")
        axis.bar_label(bars, [f"{spent[n]:.2f} us" for n in names], padding=3, fontsize="small")
        axis.axvline(cfg.deadline, color="C3", linewidth=1, label=f"{cfg.deadline:g} us")
        axis.set(xscale="log", xlim=(0.5 * min(spent.values()), 4 * max(*spent.values(), cfg.deadline)))


few = {"points": 50, "calls": 20_000, "flags": ("-std=c99", "-O1", "-ffp-contract=off")}
main = od.script(solve, Config(), quick=few)

if __name__ == "__main__":
    sys.exit(main())
