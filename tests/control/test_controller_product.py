"""Predictive controllers in C: preparation and feedback, bounds at run time, single precision, facts of the header."""

import ctypes
import re
import subprocess

import casadi as ca
import numpy as np
import pytest
from controllers import needs_compiler
from products import STRICT, controller, steps

import oc_dyn as od
from oc_dyn.control import Status
from oc_dyn.control.unsolved import going_on

pytestmark = needs_compiler
SHIM = """#include <string.h>
#include "arm.h"
static arm_t self[2];
static arm_in in;
static arm_out found;
static void numbers(double *out) {
  int i;
  for (i = 0; i < 2; ++i) out[i] = (double)found.tau[i];
  out[2] = (double)found.objective;
}
void shim_init(int which) { arm_init(&self[which]); }
void shim_reset(int which) { arm_reset(&self[which]); }
void shim_bounds(int which, double lower, double upper) {
  int i;
  for (i = 0; i < 2; ++i) {
    self[which].parameters.tau_lower[i] = (arm_real)lower;
    self[which].parameters.tau_upper[i] = (arm_real)upper;
  }
}
static const arm_in *of(const double *x) {
  int i;
  for (i = 0; x && i < (int)(sizeof in / sizeof(arm_real)); ++i) ((arm_real *)&in)[i] = (arm_real)x[i];
  return x ? &in : 0;
}
int shim_step(int which, const double *x, double *out) {
  int status = arm_step(&self[which], of(x), &found);
  numbers(out);
  return status;
}
int shim_prepare(int which, const double *x) { return arm_prepare(&self[which], of(x)); }
int shim_feedback(int which, const double *x, double *out) {
  int status = arm_feedback(&self[which], of(x), &found);
  numbers(out);
  return status;
}
"""


class Compiled:
    """Two instances of a controller in a library."""

    def __init__(self, control, folder, **options):
        control.codegen(folder, points=steps(2), **options)
        (folder / "shim.c").write_text(SHIM)
        words = ["gcc", "-std=c99", "-O1", "-fPIC", "-shared", "-o", "arm.so", "arm.c", "shim.c", "-lm"]
        subprocess.run(words, cwd=folder, check=True)
        self.library, self.control = ctypes.CDLL(str(folder / "arm.so")), control
        self.library.shim_bounds.argtypes = [ctypes.c_int, ctypes.c_double, ctypes.c_double]
        for which in range(2):
            self.library.shim_init(which)

    def call(self, what, values, which=0):
        """(status, [outputs, objective]); values: parameters, None where nothing is measured."""
        x = None
        if values is not None:
            x = np.concatenate([np.ravel(values[k]) for k in self.control.names]).astype(float)
        out = np.zeros(3)
        places = [None if y is None else ctypes.c_void_p(y.ctypes.data) for y in (x, out)]
        return getattr(self.library, f"shim_{what}")(which, places[0], *([] if what == "prepare" else places[1:])), out


def numbers(found):
    return np.array([*found["tau"], found["objective"]])


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("qpsol", ["riccati", "qrqp"])
@pytest.mark.parametrize("iterations", [1, 10])
def test_steps_and_halves_of_steps_are_those_of_python(iterations, qpsol, tmp_path):
    """Prepared with an older measurement, fed with a new one; NaN in either; nothing prepared; nothing measured."""
    control = controller(iterations=iterations, qpsol=qpsol)
    c, given = Compiled(control, tmp_path), steps(12)
    for k, values in enumerate(given):
        status, out = c.call("step", values)
        found = control.step(values)
        assert status == found["status"] == Status.OK
        assert out == pytest.approx(numbers(found), rel=1e-6, abs=1e-7), k
    wrong = {**given[3], "q_now": [np.nan, 0.1]}
    untrue = {**given[3], "r": np.full((7, 2), np.inf)}
    for older, new in ((2, given[3]), (4, given[5]), (1, wrong), (6, given[7]), (8, given[9])):
        status = c.call("prepare", given[older])[0]
        control.prepare(given[older])
        assert status == 0
        status, out = c.call("feedback", new)
        found = control.react({k: new[k] for k in control.measured})
        assert status == found["status"]
        assert out == pytest.approx(numbers(found), rel=1e-6, abs=1e-7)
    assert c.call("prepare", untrue)[0] == Status.BAD_MEASUREMENT
    control.prepare(untrue)
    status, out = c.call("feedback", given[3])
    found = control.react({k: given[3][k] for k in control.measured})
    assert status == found["status"] == Status.BAD_MEASUREMENT
    assert out == pytest.approx(numbers(found), rel=1e-6, abs=1e-7)
    status, out = c.call("feedback", given[3])
    assert status == Status.FALLBACK  # nothing was prepared
    assert np.all(np.abs(out[:2]) <= 200)
    assert c.call("step", None)[0] == Status.BAD_MEASUREMENT
    assert c.call("prepare", given[0])[0] == 0
    c.library.shim_reset(0)
    assert c.call("feedback", given[0])[0] == Status.FALLBACK
    assert c.call("step", given[0])[0] == 0


@pytest.mark.slow
def test_feedback_reads_what_is_measured_and_nothing_else(tmp_path):
    control = controller(iterations=1)
    assert control.measured == ["q_now", "v_now"]
    c, values = Compiled(control, tmp_path), steps(1)[0]
    outs = []
    for r in (np.full((7, 2), 0.1), np.full((7, 2), np.nan), np.full((7, 2), 1e9)):
        c.library.shim_reset(0)
        assert c.call("prepare", values)[0] == 0
        status, out = c.call("feedback", {**values, "r": r})
        assert status == 0
        outs.append(out)
    assert np.array_equal(outs[0], outs[1])
    assert np.array_equal(outs[0], outs[2])
    assert "reads q_now, v_now of `in`" in " ".join((tmp_path / "arm.h").read_text().replace("\n *", "").split())


@pytest.mark.slow
def test_bounds_of_an_instance_are_narrower_never_wider(tmp_path):
    control = controller(iterations=1)
    c, values = Compiled(control, tmp_path), steps(1)[0]
    free = c.call("step", values, 1)[1][:2]
    assert np.all(free > 20)
    for lower, upper, wanted, expected in (
        (-1.0, 2.0, [2, 2], Status.OK),
        (-np.inf, 2.0, [2, 2], Status.OK),
        (-1.0, np.inf, free, Status.OK),
        (50.0, np.inf, np.maximum(free, 50), Status.OK),
        (-np.inf, np.inf, free, Status.OK),
        (-1e9, 1e9, free, Status.OK),
        (np.nan, 2.0, [2, 2], Status.BAD_PARAMETERS),
        (-1.0, np.nan, free, Status.BAD_PARAMETERS),
        (300.0, 400.0, free, Status.BAD_PARAMETERS),
        (3.0, 2.0, free, Status.BAD_PARAMETERS),
        (np.inf, np.inf, free, Status.BAD_PARAMETERS),
        (-np.inf, -np.inf, free, Status.BAD_PARAMETERS),
    ):
        c.library.shim_reset(0)
        c.library.shim_bounds(0, lower, upper)
        status, out = c.call("step", values)
        assert status == expected, (lower, upper)
        assert out[:2] == pytest.approx(wanted, rel=1e-9)
    assert c.call("step", None)[0] == Status.BAD_MEASUREMENT  # which comes first
    c.library.shim_reset(1)
    assert c.call("step", values, 1)[1][:2] == pytest.approx(free, rel=1e-12)  # the other instance has its own


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-O1"], ["-O3", "-ffast-math"]])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_one_bound_that_is_none_leaves_the_others(precision, flags, tmp_path):
    """The first output has a bound that does not bind, or is none; the second keeps its own."""
    controller(iterations=1).codegen(tmp_path, precision=precision, points=steps(1))
    cases = {"INFINITY": 0, "NAN": 5, "1.f": 0, "-3.f": 5}
    rows = "".join(
        f"""
  arm_reset(&self);
  self.parameters.tau_lower[0] = -2; self.parameters.tau_upper[0] = {value};
  self.parameters.tau_lower[1] = -1; self.parameters.tau_upper[1] = 2;
  if (arm_step(&self, &in, &out) != {status} || !(out.tau[1] >= -1 && out.tau[1] <= 2)) return {k};
  if (!(out.tau[0] >= -200 && out.tau[0] <= 200)) return {k};"""
        for k, (value, status) in enumerate(cases.items(), 1)
    )
    text = '#include <math.h>\n#include "arm.h"\nint main(void) {\n  static arm_t self; arm_in in = {{0}};'
    (tmp_path / "bounds.c").write_text(f"{text} arm_out out;\n  arm_init(&self);{rows}\n  return 0;\n}}\n")
    subprocess.run(["gcc", "-std=c99", *STRICT, *flags, "-c", "arm.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-std=c99", "-o", "bounds", "bounds.c", "arm.o", "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "bounds"]).returncode == 0


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("qpsol", ["riccati", "qrqp"])
@pytest.mark.parametrize("iterations", [1, 10])
def test_single_precision_against_double(iterations, qpsol, tmp_path):
    control = controller(iterations=iterations, qpsol=qpsol)
    c, worst = Compiled(control, tmp_path, precision="single"), 0.0
    for values in steps(12):
        status, out = c.call("step", values)
        found = control.step(values)
        assert status == found["status"] == Status.OK
        worst = max(worst, np.abs(out[:2] - found["tau"]).max() / np.abs(found["tau"]).max())
    assert worst < 2e-3
    assert c.call("step", {**values, "q_now": [np.nan, 0]})[0] == Status.BAD_MEASUREMENT
    assert c.call("step", {**values, "q_now": [1e13, 0]})[0] == Status.BAD_MEASUREMENT
    text = (tmp_path / "arm.c").read_text()
    assert not re.search(r"\bdouble\b|tgmath", text)


@pytest.mark.slow
def test_what_the_header_says(tmp_path):
    control = controller()
    control.codegen(tmp_path, joints=["shoulder", "elbow"], units={"q_now": "rad", "tau": "Nm"}, measure=True)
    text = (tmp_path / "arm.h").read_text()
    assert "/* [rad]: shoulder, elbow */\n    arm_real q_now[2];" in text
    assert "#define arm_PERIOD 0.05" in text
    assert "Sample time: 0.05 s" in text
    assert re.search(r"Stack: arm_init \d+, arm_step \d+", text)
    told = int(re.search(r"takes about (\d+) bytes", text)[1])
    (tmp_path / "size.c").write_text(
        '#include <stdio.h>\n#include "arm.h"\nint main(void) { printf("%d", (int)sizeof(arm_t)); return 0; }\n'
    )
    subprocess.run(["gcc", "-o", "size", "size.c"], cwd=tmp_path, check=True)
    size = int(subprocess.run([tmp_path / "size"], capture_output=True, text=True).stdout)
    assert abs(size - told) <= 16
    with pytest.raises(od.UnknownName, match="'q_nov'.*q_now"):
        control.codegen(tmp_path, units={"q_nov": "rad"})
    with pytest.raises(od.ShapeError, match="expected their names in order"):
        control.codegen(tmp_path, joints="shoulder")
    with pytest.raises(od.ShapeError, match="expected a text"):
        control.codegen(tmp_path, units={"tau": 3})
    with pytest.raises(od.ShapeError, match="'half'"):
        control.codegen(tmp_path, precision="half")


@pytest.mark.parametrize("qpsol", ["qrqp", "osqp", "daqp"])
def test_c_that_is_not_as_expected_is_refused(qpsol):
    """Where CasADi writes another text than the one that is changed, a step would fail in C where Python goes on."""
    with pytest.raises(od.SolveError, match=f"writes for {qpsol} does not end as expected"):
        going_on("int main(void) { return 0; }", qpsol)
    assert going_on("anything", "riccati") == "anything"


@pytest.mark.slow
def test_recorded_steps_leave_the_controller_as_it_is(tmp_path):
    control, values = controller(), steps(2)
    control.step(values[0])
    before = control.memory.copy()
    control.codegen(tmp_path, points=values)
    assert np.array_equal(control.memory, before)


def chain(names=("q", "v", "r"), outputs=None, **options):
    """Controller of a double integrator; names: of its parameters, nothing where it has none."""
    ocp = od.Problem(5, 0.5)
    x, v, u = ocp.chain("x", 1, 2, bounds=(3.0, 1.0))
    q, dq, r = (ocp.parameter(names[0]), ocp.parameter(names[1]), ocp.varying(names[2])) if names else (0.3, 0, 0)
    ocp.start({x: q, v: dq})
    ocp.limit(-1, x, 1)
    ocp.minimize(squares=ca.vertcat(x - r, 0.1 * u))
    return od.mpc(ocp, name="arm", outputs={k: u for k in outputs} if outputs else None, **options)


ODD = {
    "nothing to measure": ((), None),
    "names that C keeps": (("double", "NULL", "class"), ["int", "linux", "iw"]),
    "names of the code": (("self", "given", "out"), ["in", "found", "u_lower"]),
}


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("which", ODD)
def test_odd_ports(which, precision, tmp_path):
    chain(*ODD[which]).codegen(tmp_path, precision=precision)
    for words in (
        ["gcc", "-std=c99", *STRICT, "-o", "selftest", "arm.c", "arm_selftest.c", "-lm"],
        ["gcc", "-std=c99", *STRICT, "-fsyntax-only", "arm_example.c"],
        ["g++", "-std=c++17", "-x", "c++", *STRICT, "-fsyntax-only", "arm_example.c"],
        ["./selftest"],
    ):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_self_test_is_of_numbers_that_say_something(tmp_path):
    """Of the last good step, or of small numbers."""

    def recorded(control):
        control.codegen(tmp_path)
        text = (tmp_path / "arm_selftest.c").read_text()
        rows = re.findall(r"given\[STEPS\].*? = \{(.*?)\};", text, re.DOTALL)[0]
        return np.array([float(x) for x in re.findall(r"-?\d[\d.e+-]*", rows)])

    control = chain()
    assert np.all(np.abs(recorded(control)) <= 0.1)
    assert np.any(recorded(control) != 0)
    control.step({"q": 0.25, "v": 0.5, "r": 0.125})
    assert {0.25, 0.5, 0.125} <= set(recorded(control))
    control.step({"q": 50.0, "v": 0.5, "r": 0.125})  # beyond what can be kept: the last good one counts
    assert 50.0 not in recorded(control)
    assert {0.25, 0.5, 0.125} <= set(recorded(control))
