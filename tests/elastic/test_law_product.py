"""Laws in C as products: parameters at run time, flags of saturation, anti-windup, single precision."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from elastic_arms import arm, swing, three

import oc_dyn as od
from oc_dyn import elastic as el

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
SHIM = """#include <string.h>
#include "arm.h"
static arm_t self;
void shim_init(void) { arm_init(&self); }
/* A step with parameters, which are `n` numbers; 0 leaves them. */
int shim_step(const double *x, const double *parameters, int n, double *out, int *saturated) {
    arm_in in;
    arm_out found;
    int status, i;
    for (i = 0; i < (int)(sizeof in / sizeof(IN_REAL)); ++i) ((IN_REAL *)&in)[i] = (IN_REAL)x[i];
    for (i = 0; i < n; ++i) ((arm_real *)&self.parameters)[i] = (arm_real)parameters[i];
    status = arm_step(&self, &in, &found);
    for (i = 0; i < OUTPUTS; ++i) out[i] = (double)((arm_real *)&found)[i];
    memcpy(saturated, found.saturated, sizeof found.saturated);
    return status;
}
void shim_memory(double *out) { int i; for (i = 0; i < MEMORY; ++i) out[i] = (double)self.memory[i]; }
"""


class Law:
    """A law in a library: an instance of its own."""

    def __init__(self, made, in_real="arm_real"):
        self.inputs, self.outputs = sum(made.inputs.values()), sum(made.outputs.values())
        self.motors, self.memory_size = made.outputs["tau_m"], made.memory
        text = SHIM.replace("IN_REAL", in_real).replace("OUTPUTS", str(self.outputs))
        (made.folder / "shim.c").write_text(text.replace("MEMORY", str(made.memory)))
        sources = [*map(str, made.sources), "shim.c"]
        words = ["gcc", "-std=c99", "-O1", "-fPIC", "-shared", "-o", "law.so", *sources, "-lm"]
        subprocess.run(words, cwd=made.folder, check=True)
        self.library = ctypes.CDLL(str(made.folder / "law.so"))
        self.library.shim_init()

    def step(self, x, parameters=()):
        out, flags = np.full(self.outputs, 7.0), np.full(self.motors, 7, np.int32)
        x, given = np.ascontiguousarray(x, float), np.ascontiguousarray(parameters, float)
        assert x.size == self.inputs
        places = [ctypes.c_void_p(y.ctypes.data) for y in (x, given, out, flags)]
        status = self.library.shim_step(places[0], places[1], given.size, *places[2:])
        return status, out, flags

    def memory(self):
        out = np.zeros(self.memory_size)
        self.library.shim_memory(ctypes.c_void_p(out.ctypes.data))
        return out


def in_python(law, x):
    ends = np.cumsum([law.function.size1_in(i) for i in range(law.function.n_in())])[:-1]
    found = law.function(*np.split(np.asarray(x, float), ends))
    return (found[0] if isinstance(found, tuple) else found).full().ravel()


LAWS = {
    "feedforward_pd": lambda a, k: el.feedforward_pd(a, 50 * k, 5 * k),
    "gravity_pd": lambda a, k: el.gravity_pd(a, 50 * k, 5 * k),
    "computed_torque": lambda a, k: el.computed_torque(a, 50 * k, 5 * k),
    "feedback_linearization": lambda a, k: el.feedback_linearization(a, 20.0 * k),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("which", LAWS)
def test_gains_are_parameters(which, tmp_path):
    """Gains written while the law runs give the law that has them from the start."""
    one, other = (LAWS[which](three(), k) for k in (1, 1.5))
    c = Law(el.generate_controller(one, tmp_path, name="arm", compiler="none"))
    x = 0.2 * np.random.default_rng(0).normal(size=c.inputs)
    gains = np.concatenate([g.ravel(order="F") for g in other.gains.values()])
    assert c.step(x)[1] == pytest.approx(in_python(one, x), rel=1e-10)
    assert c.step(x, gains)[1] == pytest.approx(in_python(other, x), rel=1e-10)
    assert np.abs(in_python(one, x) - in_python(other, x)).max() > 1e-3


@pytest.mark.slow
def test_limits_are_narrowed_at_run_time_and_never_widened(tmp_path):
    law = el.feedforward_pd(three(), 1e4, 10.0)
    options = {"torque_limit": [5, 6, 7], "safe_torque": 4, "compiler": "none", "measured_limits": None}
    c = Law(el.generate_controller(law, tmp_path, name="arm", **options))
    x = np.zeros(c.inputs)
    x[-6:-4] = -1.0, 1.0
    gains = np.concatenate([g.ravel(order="F") for g in law.gains.values()])

    def step(limit, safe=(4, 4, 4), x=x):
        return c.step(x, [*gains, *limit, *safe])

    status, out, flags = c.step(x)
    assert status == 0
    assert np.array_equal(out[:2], [5, -6])
    assert np.array_equal(flags[:2], [1, -1])
    status, out, flags = step([2, 100, 7])
    assert np.array_equal(out[:2], [2, -6])
    for bad in (np.nan, np.inf, -1.0):
        status, out, _ = step([bad, 6, 7])
        assert status == 5
        assert np.array_equal(out, [4, 4, 4])
    status, out, flags = step([1, 6, 7], x=np.where(np.arange(x.size) == 0, np.nan, x))
    assert status == 2
    assert np.array_equal(out, [1, 4, 4])  # safe torques are within limits, too
    assert np.array_equal(flags, [1, 0, 0])
    status, out, _ = step([5, 6, 7], safe=[np.nan, 100, 0])
    assert status == 5
    assert np.array_equal(out, [4, 4, 4])
    assert c.step(x, [np.nan, *gains[1:], 5, 6, 7, 4, 4, 4])[0] == 5
    assert step([5, 6, 7])[0] == 0


@pytest.mark.slow
def test_the_first_step_starts_the_memory(tmp_path):
    """Without a call of start, as with it; and again behind a reset, or a start that failed."""
    law = el.feedback_linearization(arm("mixed"), 20.0)
    c = Law(el.generate_controller(law, tmp_path, name="arm", compiler="none"))
    x = 0.1 * np.random.default_rng(0).normal(size=c.inputs)
    status, _, _ = c.step(np.where(np.arange(x.size) == 0, np.nan, x))
    assert status == 2
    assert np.array_equal(c.memory(), [0, 0])
    status, out, _ = c.step(x)
    assert status == 0
    names = [n for n in law.function.name_in() if n != "memory"]
    ports = dict(zip(names, np.split(x, np.cumsum([law.function.size1_in(n) for n in names])[:-1]), strict=True))
    first = law.first_memory(**{n: ports[f"{n}_ref"] for n in law.first_memory.name_in()})["memory"]
    found = law.function(**ports, memory=first)
    assert out == pytest.approx(found["tau_m"].full().ravel(), rel=1e-10)
    assert c.memory() == pytest.approx((first + 1e-3 * found["memory_rate"]).full().ravel(), rel=1e-10)


@pytest.mark.slow
def test_integrated_torques_do_not_wind_up(tmp_path):
    """The rigid motor is held at its limit for a while by an error of position that stays, in C as in Python."""
    law = el.feedback_linearization(arm("mixed"), 20.0)
    (torque, rate, motor), most = law.integrators[0], 8.0
    names = [n for n in law.function.name_in() if n != "memory"]
    away = np.zeros(sum(law.function.size1_in(n) for n in names))
    away[3 * names.index("q_ref") + 1] = 0.3
    runs = {}
    for wound in (False, True):
        options = {"name": "arm", "torque_limit": most, "compiler": "none", "anti_windup": not wound}
        c = Law(el.generate_controller(law, tmp_path / str(wound), **options))
        memory = []
        for k in range(400):
            status, _, flags = c.step(away if k < 200 else -away)
            memory.append([*c.memory(), flags[motor]])
            if status:
                break
        runs[wound] = np.array(memory)
    held, free = runs[False], runs[True]
    assert np.abs(free[:, torque]).max() > 5 * most
    assert np.abs(held[:, torque]).max() <= most
    assert held[199, 2] == 1
    assert len(held) == 400
    assert held[150, rate] == 0  # no speed is gathered at the limit
    back = [int(np.argmax(x[200:, torque] < 0)) if np.any(x[200:, torque] < 0) else 200 for x in (held, free)]
    assert back[0] < back[1]


def test_simulation_and_c_hold_back_alike(tmp_path):
    elastic = arm("mixed")
    reference = el.reference(elastic, swing(3), duration=0.3)
    law = el.feedback_linearization(elastic, 20.0)
    made = el.generate_controller(
        law, tmp_path, name="law", reference=reference, torque_limit=6.0, measured_limits=None,
        flags=("-std=c99", "-O1", "-ffp-contract=off"),
    )  # fmt: skip
    run = el.simulate(elastic, law, reference, sample_time=1e-3, dt=1e-3, torque_limit=6.0)
    _, states, _ = made.loop(300)
    assert np.abs(run.tau_m[:, 1]).max() == 6.0
    assert np.abs(states - run.states).max() < 1e-9 * np.abs(run.states).max()


@pytest.mark.sample(1)
@pytest.mark.parametrize("which", ["feedforward_pd", "feedback_linearization"])
def test_single_precision_keeps_small_differences_of_large_positions(which, tmp_path):
    """Stiff springs far from zero: deflections and errors of 1e-6 rad at 3 rad, which floats cannot tell from zero."""
    elastic = el.elastic_robot(od.robots.planar_arm(3), 2e4, motor_inertia=0.3)
    law = el.feedforward_pd(elastic, 1e5, 10) if which == "feedforward_pd" else el.feedback_linearization(elastic, 40.0)
    options = {"compiler": "none", "precision": "single", "measured_limits": None}  # positions jump in this test
    made = el.generate_controller(law, tmp_path, name="arm", **options)
    c, f, rng = Law(made, "double"), law.function, np.random.default_rng(1)
    names, worst = f.name_in(), [0.0, 0.0]
    for _ in range(20):
        q = 3 + 0.2 * rng.normal(size=3)
        ports = {n: np.zeros(f.size1_in(n)) for n in names}
        ports |= {"q": q, "q_ref": q + 1e-6 * rng.normal(size=3), "theta": q + 1e-6 * rng.normal(size=3)}
        x = np.concatenate([ports[n] for n in names])
        expected, rounded = in_python(law, x), in_python(law, x.astype(np.float32))
        status, out, _ = c.step(x)
        assert status == 0
        for k, found in enumerate((out, rounded)):
            worst[k] = max(worst[k], np.abs(found - expected).max())
    assert worst[0] < 1e-2 * worst[1]
    text = (tmp_path / "arm_law.c").read_text()
    assert not re.search(r"\bdouble\b|tgmath", text)


@pytest.mark.slow
def test_numbers_beyond_floats_are_bad_inputs(tmp_path):
    law = el.feedforward_pd(three(), 50, 5)
    c = Law(el.generate_controller(law, tmp_path, name="arm", compiler="none", precision="single"), "double")
    x = np.zeros(c.inputs)
    for bad in (1e39, -1e300, np.nan, np.inf):
        assert c.step(np.where(np.arange(x.size) == 4, bad, x))[0] == 2
    assert c.step(x)[0] == 0


def test_precision_is_checked(tmp_path):
    with pytest.raises(od.ShapeError, match="'half'.*'double', 'single'"):
        el.generate_controller(el.feedforward_pd(three(), 50, 5), tmp_path, precision="half")
    assert list(tmp_path.iterdir()) == []
