"""Numbers that are none, in the input, the memory or the result of a law in C: a status, and safe torques."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm

import oc_dyn as od
from oc_dyn import elastic as el

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
FLAGS = [("-O2",), ("-O3", "-ffast-math")]
QUICK = ("-std=c99", "-O1", "-ffp-contract=off")
NAMES = {"NaN": np.nan, "Inf": np.inf, "-Inf": -np.inf}
BAD_INPUT, BAD_MEMORY, BAD_OUTPUT = 2, 3, 4


SHIM = """#include <string.h>
#include "NAME.h"
/* A call of an instance that has this memory: 0 for step, 1 for step_or, 2 for start. */
int shim(int what, const double *x, double *memory, const double *safe, double *out) {
    static NAME_t self;
    NAME_in in;
    NAME_out found, own;
    int status;
    NAME_init(&self);
    memcpy(self.memory, memory, MEMORY * sizeof(double));
    self.started = 1;
    memcpy(&in, x, sizeof in);
    memset(&found, 0, sizeof found);
    memset(&own, 0, sizeof own);
    if (safe) memcpy(&own, safe, OUTPUTS * sizeof(double));
    status = what == 2 ? NAME_start(&self, &in)
        : what ? NAME_step_or(&self, &in, safe ? &own : 0, &found) : NAME_step(&self, &in, &found);
    memcpy(memory, self.memory, MEMORY * sizeof(double));
    memcpy(out, &found, OUTPUTS * sizeof(double));
    return status;
}
"""


class Law:
    """The C law in a library: step(x, memory) and the like return (status, outputs), and move the memory in place."""

    def __init__(self, made, flags):
        path = made.folder / "law.so"
        self.outputs, self.memory = sum(made.outputs.values()), made.memory
        self.inputs = sum(made.inputs.values())
        words = {"NAME": made.name, "MEMORY": str(made.memory), "OUTPUTS": str(self.outputs)}
        text = SHIM
        for word, value in words.items():
            text = text.replace(word, value)
        (made.folder / "shim.c").write_text(text)
        sources = [*map(str, made.sources), "shim.c"]
        subprocess.run(["gcc", "-std=c99", *flags, "-fPIC", "-c", *sources], cwd=made.folder, check=True)
        # without the flags: with -ffast-math all of this process would round small numbers to zero from here on
        objects = [made.folder / f"{Path(source).stem}.o" for source in sources]
        subprocess.run(["gcc", "-shared", "-o", path, *objects, "-lm"], cwd=made.folder, check=True)
        self.shim = ctypes.CDLL(str(path)).shim

    def step(self, x, memory):
        return self._call(0, x, memory)

    def step_or(self, x, memory, safe):
        return self._call(1, x, memory, safe)

    def start(self, x, memory):
        return self._call(2, x, memory)[0]

    def _call(self, what, x, memory, safe=None):
        out = np.full(self.outputs, 7.0)
        pointers = [None if y is None else ctypes.c_void_p(y.ctypes.data) for y in (x, memory, safe, out)]
        return self.shim(what, *pointers), out


@pytest.mark.sample("linear--O2")
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("kind", ["linear", "mixed", "driven"])
def test_every_input_is_looked_at(kind, flags, tmp_path):
    law = el.feedback_linearization(arm(kind), 20.0)
    made = el.generate_controller(law, tmp_path, name="arm", torque_limit=80.0, safe_torque=-1.5, compiler="none")
    c, rng = Law(made, flags), np.random.default_rng(1)
    x, memory = 0.1 * rng.normal(size=c.inputs), 0.1 * rng.normal(size=max(1, c.memory))
    moved = memory.copy()
    status, good = c.step(x, moved)
    assert status == 0
    assert np.all(np.isfinite(good))
    assert np.abs(good).max() <= 80.0
    assert np.any(moved != memory) == bool(c.memory)
    safe = {n: np.full(k, -1.5 if n == "tau_m" else 0.0) for n, k in made.outputs.items()}
    safe, own = np.concatenate(list(safe.values())), rng.normal(size=c.outputs)
    for k in range(c.inputs):
        for name, value in NAMES.items():
            wrong, kept = x.copy(), memory.copy()
            wrong[k] = value
            status, out = c.step(wrong, kept)
            assert status == BAD_INPUT, (k, name)
            assert np.array_equal(out, safe), (k, name)
            assert np.array_equal(kept, memory), (k, name)
            status, out = c.step_or(wrong, kept, own)
            assert status == BAD_INPUT, (k, name)
            assert np.array_equal(out, own), (k, name)
    for unsafe in (None, np.where(np.arange(c.outputs) == 0, np.nan, own)):
        status, out = c.step_or(wrong, kept, unsafe)
        assert np.array_equal(out, safe)
    status, out = c.step(x, kept)  # the next good sample is as if nothing had been
    assert status == 0
    assert np.array_equal(out, good)
    assert np.array_equal(kept, moved)


@pytest.mark.sample(1)
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_memory_and_start(flags, tmp_path):
    law = el.feedback_linearization(arm("mixed"), 20.0)
    made = el.generate_controller(law, tmp_path, name="arm", compiler="none")
    c = Law(made, flags)
    assert c.memory == 2
    x = np.full(c.inputs, 0.1)
    for k in range(c.memory):
        for value in NAMES.values():
            memory = np.array([0.1, 0.2])
            memory[k] = value
            status, out = c.step(x, memory)
            assert status == BAD_MEMORY
            assert np.array_equal(out, np.zeros(c.outputs))
    memory = np.ones(2)
    assert c.start(x, memory) == 0
    assert np.all(np.isfinite(memory))
    assert np.any(memory != 0)
    assert c.start(np.where(np.arange(c.inputs) == 0, np.nan, x), memory) == BAD_INPUT
    assert np.array_equal(memory, np.zeros(2))


@pytest.mark.slow
def test_an_overflow_does_not_become_the_torque_limit(tmp_path):
    """Finite measurements whose torques are none: the limit is not applied to what is no number."""
    law = el.feedback_linearization(arm("linear"), 20.0)
    made = el.generate_controller(law, tmp_path, name="arm", torque_limit=80.0, compiler="none", measured_limits=None)
    c = Law(made, ("-O2",))
    x = np.full(c.inputs, 1e200)
    assert not np.any(np.isfinite(law.function(*np.split(x, law.function.n_in())).full()))
    status, out = c.step(x, np.zeros(1))
    assert status == BAD_OUTPUT
    assert np.array_equal(out, np.zeros(c.outputs))


LAWS = {
    "feedforward": el.feedforward,
    "feedforward_pd": lambda a: el.feedforward_pd(a, 50, 5),
    "gravity_pd": lambda a: el.gravity_pd(a, 50, 5),
    "computed_torque": lambda a: el.computed_torque(a, 50, 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", LAWS)
def test_laws_that_do_not_read_a_sensor_refuse_it_too(which, tmp_path):
    law = LAWS[which](arm("linear"))
    made = el.generate_controller(law, tmp_path, name="arm", torque_limit=80.0, compiler="none")
    c = Law(made, ("-O2",))
    for k in (0, c.inputs - 1):
        x = np.zeros(c.inputs)
        x[k] = np.nan
        status, out = c.step(x, np.zeros(1))
        assert status == BAD_INPUT
        assert np.array_equal(out, np.zeros(c.outputs))


@pytest.mark.slow
def test_limits_differ_by_motor_and_may_be_infinite(tmp_path):
    law = el.feedforward_pd(arm("linear"), 1e4, 10.0)
    limit = [5.0, np.inf, 2.0]
    made = el.generate_controller(
        law, tmp_path, name="arm", torque_limit=limit, compiler="none", measured_limits={"deflection": None}
    )
    c, x = Law(made, ("-O2",)), np.zeros(1)
    assert [made.inputs[n] for n in ("theta", "dtheta")] == [3, 3]
    x = np.zeros(c.inputs)
    x[-6:-3] = -1.0, -1.0, 1.0
    free = law.function(*np.split(x, law.function.n_in())).full().ravel()
    assert np.all(np.abs(free) > 100)
    status, out = c.step(x, np.zeros(1))
    assert status == 0
    assert out == pytest.approx([5.0, free[1], -2.0], rel=1e-12)


@pytest.mark.slow
def test_the_harness_says_which_row_was_refused(tmp_path):
    law = el.feedforward(arm("linear"))
    made = el.generate_controller(law, tmp_path, flags=QUICK)
    rows = np.zeros((3, sum(made.inputs.values())))
    rows[1, 2] = np.nan
    with pytest.raises(od.SolveError, match="step 1 of the law has status 2, see feedforward.h"):
        made.values(rows)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, [1.0, 2.0], "much", 81.0])
def test_safe_torques_are_checked(wrong, tmp_path):
    law = el.feedforward(arm("linear"))
    with pytest.raises(od.ShapeError, match="safe_torque"):
        el.generate_controller(law, tmp_path, safe_torque=wrong, torque_limit=80.0)
    assert list(tmp_path.iterdir()) == []


def test_torques_that_are_no_numbers_are_not_cut_off_in_python_either():
    """The simulated law keeps NaN as NaN, so that a run says that it diverged; finite torques are as before."""
    from oc_dyn.elastic.closed_loop import cut_off

    tau, limit = ca.MX.sym("tau", 6), ca.DM([5.0, 5.0, 5.0, 5.0, 5.0, np.inf])
    f = ca.Function("f", [tau], [cut_off(tau, limit)])
    found = f([7.0, -7.0, 3.0, np.nan, -np.inf, 1e9]).full().ravel()
    assert np.array_equal(found, [5.0, -5.0, 3.0, np.nan, -5.0, 1e9], equal_nan=True)
