"""A wild but finite sample of a sensor is told, and does not move a law's memory, in simulations and in C."""

import ctypes
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from casadi import cos, sin, vertcat

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.measured_limits import Watch, measured_limits

BAD_INPUT, BAD_MEASUREMENT = 2, 6
LIMIT = [150.0, 60.0]


def arm(**options):
    """planar_2r: ranges of 2.97 rad, speeds of 3 rad/s, torques of 150 and 60 Nm."""
    return el.elastic_robot(od.robots.planar_2r(), [900.0, 700.0], motor_inertia=[0.3, 0.2], **options)


@cache
def linearizing():
    robot = arm(damping=[2.0, 0.0])
    law = el.feedback_linearization(robot, 20.0)
    assert (law.memory, law.integrators) == (1, ())
    return robot, law


@cache
def countered():
    robot = arm()
    law = el.feedforward_pd(robot, [270.0, 180.0], [18.0, 12.0])
    observer = el.disturbance_observer(robot, 50.0)
    return robot, el.observed(law, observer, compensate="disturbance", torque_limit=LIMIT)


@cache
def swing(case):
    return el.reference(case()[0], lambda t: vertcat(0.5 * (1 - cos(2 * t)), 0.3 * sin(2 * t)), duration=1.2)


def run_of(case, wrong, duration=0.15, **options):
    robot, law = case()
    given = {"wrong_samples": wrong, **options}
    limits = {"sample_time": 1e-3, "dt": 1e-3, "torque_limit": LIMIT}
    return el.simulate(robot, law, swing(case), duration=duration, **limits, **given)


@pytest.mark.parametrize("size", [pytest.param(1.0, marks=pytest.mark.slow), -1e6])
@pytest.mark.parametrize("case", [pytest.param(linearizing, marks=pytest.mark.slow), countered])
def test_a_wild_sample_is_as_if_torques_were_held(case, size):
    """With the last torques as the safe ones nothing is left of it but a sample's delay."""
    good = run_of(case, None, measured_limits="robot")
    assert good.facts["refused_samples"] == 0
    run = run_of(case, {100: {"theta": [0.0, size]}}, measured_limits="robot", safe_torque="last")
    assert run.facts["refused_samples"] == 1
    assert np.abs(run.q - good.q).max() < 3e-5
    assert run.tau_m[100] == pytest.approx(run.tau_m[99], abs=0)
    assert run.tau_m[101] != pytest.approx(run.tau_m[100], abs=0)


@pytest.mark.slow
@pytest.mark.parametrize("case", [linearizing, countered])
def test_what_a_wild_sample_costs(case):
    """The figures of docs/elastic-laboratory.md: not looked at, with the safe torque zero, the largest that passes."""
    wild = {100: {"theta": [0.0, 1.0]}}

    def error(wrong, **options):
        return np.abs(run_of(case, wrong, 1.2, **options).error).max()

    free, safe = error(wild), error(wild, measured_limits="robot")
    passing = error({100: {"theta": [0.0, 0.0185]}}, measured_limits="robot")
    zero = error(None, measured_limits="robot")
    bounds = {linearizing: (0.05, 0.02, 0.02, 2e-3), countered: (0.03, 5e-4, 2e-3, 1e-4)}[case]
    assert free > bounds[0]
    assert safe < bounds[1]
    assert passing < bounds[2]
    assert zero < bounds[3]


def test_limits_of_the_robot():
    robot, law = linearizing()
    limits = measured_limits("here", law, "robot", 1e-3, LIMIT)
    assert limits.ports == (("q", 2), ("v", 2), ("theta", 2), ("dtheta", 2))
    end = robot.links.joints[0].upper
    assert limits.high[:2] == pytest.approx(2 * end)  # half the range more
    assert limits.low[:2] == pytest.approx(-2 * end)
    assert limits.high[[2, 3, 6, 7]] == pytest.approx(9.0)
    assert (limits.step + limits.grain)[[0, 1, 4, 5]] == pytest.approx(0.009 + 0.01)
    assert limits.deflection == pytest.approx([5 * 150 / 900, 5 * 60 / 700])
    assert limits.pairs.tolist() == [[4, 0], [5, 1]]
    own = measured_limits("here", law, {"dtheta": [1.0, 2.0], "q": 1.5, "deflection": None}, 1e-2, LIMIT)
    assert own.step[4:6] == pytest.approx([0.01, 0.02])
    assert own.high[:2] == pytest.approx(1.5)
    assert own.deflection.min() >= 1e30
    free = el.elastic_robot(od.robots.planar_arm(2), 500.0, motor_inertia=0.2)
    found = measured_limits("here", el.feedforward_pd(free, 10, 1), "robot", 1e-3)
    assert found.step[:2] == pytest.approx(0.1)  # no limits: 100 rad/s
    assert found.high[:2].min() >= 1e30


def test_a_robot_that_moved_on_is_taken_again():
    """Refused samples do not lock the law out: what may have moved meanwhile grows with their number."""
    _, law = linearizing()
    watch = Watch(measured_limits("here", law, "robot", 1e-3, LIMIT))
    x = np.zeros(8)
    assert watch.accepts(x)
    far = np.zeros(8)
    far[[0, 4]] = 0.1  # as after a dropped line: 0.1 rad on, at 9 rad/s at most 10 samples later
    assert [watch.accepts(far) for _ in range(11)] == [False] * 9 + [True] * 2
    assert watch.refused == 9


SIZES = [0.012, 0.03, 0.5, 1.0, -7.0, 10.0, 1e6, -1e30, 1e200, np.nan]
WRONG = {
    "measured_limits": [
        "all",
        3,
        np.ones(3),
        {"speed": 1.0},
        {"q": -1.0},
        {"q": np.nan},
        {"q": "a"},
        {"q": [1.0, 2.0, 3.0]},
    ],
    "wrong_samples": [3, {1.5: {}}, {-1: {}}, {3: {"speed": 1.0}}, {3: {"q": np.nan}}, {3: {"q": [1.0] * 3}}],
    "safe_torque": [np.nan, "first", 200.0, [1.0] * 3],
}


@pytest.mark.parametrize("name, wrong", [(n, x) for n, row in WRONG.items() for x in row], ids=str)
def test_arguments(name, wrong):
    with pytest.raises((od.ShapeError, od.UnknownName)):
        run_of(countered, None, 0.01, **{"measured_limits": "robot", name: wrong})


def test_they_belong_to_samples():
    robot, law = countered()
    still = el.reference(robot, lambda t: vertcat(0, 0), duration=0.1)
    with pytest.raises(od.ShapeError, match="give sample_time"):
        el.simulate(robot, law, still, measured_limits="robot")


needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def library(made, *flags):
    """(step, reset): calls of one instance; step(x) -> (status, tau_m, memory)."""
    name, outputs = made.name, sum(made.outputs.values())
    (made.folder / "shim.c").write_text(f"""#include "{name}.h"
static {name}_t self;
void reset(void) {{ {name}_init(&self); }}
int step(const double *x, double *tau, double *memory) {{
    {name}_out out;
    int i, status = {name}_step(&self, (const {name}_in *)x, &out);
    for (i = 0; i < {outputs}; ++i) tau[i] = (double)((const {name}_real *)&out)[i];
    for (i = 0; i < {made.memory}; ++i) memory[i] = (double)self.memory[i];
    return status;
}}
""")
    sources = [*(f.name for f in made.sources), "shim.c"]
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", *flags, "-fPIC"]
    subprocess.run(["gcc", *options, "-c", *sources], cwd=made.folder, check=True)
    objects = [f"{s.removesuffix('.c')}.o" for s in sources]
    subprocess.run(["gcc", "-shared", "-o", "law.so", *objects, "-lm"], cwd=made.folder, check=True)
    loaded = ctypes.CDLL(str(made.folder / "law.so"))

    def step(x):
        x, tau, memory = np.array(x, float), np.zeros(outputs), np.zeros(made.memory)
        status = loaded.step(*(ctypes.c_void_p(y.ctypes.data) for y in (x, tau, memory)))
        return status, tau, memory

    return step, loaded.reset


@pytest.mark.sample(1)
@needs_gcc
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("flags", [("-O1",), pytest.param(("-O3", "-ffast-math"), marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", [linearizing, countered])
def test_c_refuses_what_the_simulation_refuses(case, flags, precision, tmp_path):
    """Random samples, a third of them wild, lost ones among them, against the watch in Python."""
    _, law = case()
    made = el.generate_controller(
        law, tmp_path, name="law", torque_limit=LIMIT, safe_torque=-1.5, precision=precision, compiler="none"
    )
    step, reset = library(made, *flags)
    limits = measured_limits("here", law, "robot", 1e-3, LIMIT)
    names = [n for n in law.function.name_in() if n != "memory"]
    at = {n: 2 * k for k, n in enumerate(names)}
    first, count = 2 * sum(n.endswith("_ref") for n in names), 2 * len(names)
    rng, counted = np.random.default_rng(3), {0: 0, BAD_INPUT: 0, BAD_MEASUREMENT: 0}
    reset()
    watch, memory, x = Watch(limits), None, np.zeros(count)
    for k in range(300):
        x[at["q"] : at["q"] + 2] += 0.002 * rng.uniform(-1, 1, 2)
        x[at["theta"] : at["theta"] + 2] = x[at["q"] : at["q"] + 2] + 0.004 * rng.uniform(-1, 1, 2)
        y = x.copy()
        if k and rng.uniform() < 0.3:
            y[first + rng.integers(count - first)] += rng.choice(
                [0.012, 0.03, 0.5, 1.0, -7.0, 10.0, 1e6, -1e30, 1e200, np.nan]
            )
        status, tau, moved = step(y)
        lost = not np.all(np.abs(y) < (1e39 if precision == "single" else np.inf))
        expected = BAD_INPUT if lost else 0 if watch.accepts(y[first:]) else BAD_MEASUREMENT
        if lost:
            watch._samples += 1
        assert status == expected, (k, y[first:])
        counted[status] += 1
        if status:
            assert tau[:2] == pytest.approx([-1.5, -1.5], abs=0)
            assert np.array_equal(moved, memory)
        else:
            assert np.all(np.isfinite(moved))
            memory = moved
    assert min(counted.values()) > 1
    x[at["q"]] += 1.0  # after a reset the first sample is taken where it is, within its range
    x[at["theta"]] += 1.0
    assert step(x)[0] == BAD_MEASUREMENT
    reset()
    assert step(x)[0] == 0


@needs_gcc
def test_no_limits(tmp_path):
    """Without limits every finite sample is taken, and nothing of them is in the code."""
    _, law = countered()
    made = el.generate_controller(law, tmp_path, name="law", measured_limits=None, compiler="none")
    assert "is_wild" not in (tmp_path / "law.c").read_text()
    step, reset = library(made, "-O0")
    reset()
    x = np.zeros(sum(made.inputs.values()))
    assert step(x)[0] == 0
    x[-4:] = 1e6
    assert step(x)[0] == 0


def test_recorded_steps_of_a_law_that_needs_positive_stiffness():
    """The self-test of such a law has results, not three refused steps."""
    from oc_dyn.elastic.generate import law_code
    from oc_dyn.elastic.law_code import recorded

    robot = el.elastic_robot(od.robots.planar_arm(1), el.VariableSpring(), motor_inertia=0.3, stiffness_inertia=0.01)
    code, _ = law_code(el.vsa_damping(robot), "law", measured="robot")
    _, expected, statuses = recorded(code)
    assert statuses == [0, 0, 0]
    assert np.abs(np.concatenate(expected)).max() > 0
