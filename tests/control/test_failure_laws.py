"""Laws of on_failure act on what is good of a sample, in Python and C; the last good numbers stand for the rest."""

import subprocess

import numpy as np
import pytest
from controllers import CStep, needs_compiler, pendulum

import oc_dyn as od
from oc_dyn.control import Status

NOTHING = {"r": np.full((7, 2), np.nan)}
RESTING = np.zeros((7, 2))
SOLVED = (Status.OK, Status.ITERATION_LIMIT)  # one quadratic program ends before constraints are met


def arm(**options):
    """(controller of two links that brakes where it cannot make its step, its law, plant)."""
    robot = od.robots.planar_2r()
    ocp, tau, plant, _ = pendulum(6)
    brake = od.control.brake(robot)
    return od.mpc(ocp, outputs={"tau": tau}, method="euler", name="arm", on_failure=brake, **options), brake, plant


def moved(plant, q, v, tau):
    x = np.array(plant(np.concatenate([q, v, [0]]), tau)).ravel()
    return x[:2], x[2:4]


@pytest.mark.sample(1)
@pytest.mark.parametrize("iterations", [1, 3])
def test_a_brake_brakes_while_the_goal_is_no_number(iterations):
    control, brake, plant = arm(iterations=iterations)
    q, v = np.zeros(2), np.array([2.0, -1.5])
    for _ in range(3):
        found = control.step({"q_now": q, "v_now": v, "r": np.full((7, 2), 0.5)})
        assert found["status"] in SOLVED
        q, v = moved(plant, q, v, found["tau"])
    speeds = [np.linalg.norm(v)]
    for _ in range(20):
        found = control.step({"q_now": q, "v_now": v, **NOTHING})
        assert found["status"] == Status.BAD_MEASUREMENT
        assert found["tau"] == pytest.approx(np.array(brake(q, v)).ravel())
        q, v = moved(plant, q, v, found["tau"])
        speeds.append(np.linalg.norm(v))
    assert speeds[-1] < 1e-3 * speeds[0]
    assert np.all(np.diff(speeds) < 0)


@pytest.mark.slow
def test_before_any_good_step():
    control, brake, _ = arm()
    found = control.step({"q_now": [0.1, 0.2], "v_now": [1.0, -1.0], **NOTHING})
    assert found["tau"] == pytest.approx(np.array(brake([0.1, 0.2], [1, -1])).ravel())


@pytest.mark.sample(1)
@pytest.mark.parametrize("iterations", [1, 3])
def test_last_good_numbers_are_those_of_the_last_sample_in_which_they_were(iterations):
    control, brake, _ = arm(iterations=iterations)
    control.step({"q_now": [0.0, 0.0], "v_now": [0.5, 0.5], "r": RESTING})
    control.step({"q_now": [0.1, 0.2], "v_now": [0.6, -0.6], **NOTHING})
    found = control.step({"q_now": [0.3, np.inf], "v_now": [np.nan, -0.8], "r": RESTING})
    assert found["tau"] == pytest.approx(np.array(brake([0.3, 0.2], [0.6, -0.8])).ravel())
    assert control.step({"q_now": [0.1, 0.2], "v_now": [0.6, 0.6], "r": RESTING})["status"] == Status.OK


def test_what_is_measured_between_prepare_and_react():
    control, brake, _ = arm(iterations=1)
    control.step({"q_now": [0.2, 0.1], "v_now": [0.5, 0.4], "r": RESTING})
    known = {"q_now": np.zeros(2), "v_now": np.zeros(2)}
    for given, wanted in (
        ({"q_now": [0.3, 0.3], "v_now": [np.nan, 0.7]}, [0.5, 0.7]),  # the last one measured, not what prepare was told
        ({"q_now": [0.3, 0.3], "v_now": [0.9, np.nan]}, [0.9, 0.7]),
    ):
        found = control.prepare({**known, "r": RESTING}).react(given)
        assert found["status"] == Status.BAD_MEASUREMENT
        assert found["tau"] == pytest.approx(np.array(brake([0.3, 0.3], wanted)).ravel())
    found = control.prepare({**known, **NOTHING}).react({"q_now": [0.3, 0.2], "v_now": [0.4, 0.3]})
    assert found["status"] == Status.BAD_MEASUREMENT
    assert found["tau"] == pytest.approx(np.array(brake([0.3, 0.2], [0.4, 0.3])).ravel())


@pytest.mark.few(2)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("flags", [("-O1",), ("-O3", "-ffast-math")], ids=" ".join)
def test_c_takes_the_same_numbers(flags, iterations, tmp_path):
    control, brake, _ = arm(iterations=iterations)
    control.codegen(tmp_path)
    c, memory, rng = CStep(tmp_path, control, flags), control.start.copy(), np.random.default_rng(0)
    for k in range(12):
        values = [rng.uniform(-0.3, 0.3, 2), rng.uniform(-1, 1, 2), np.zeros((2, 7))]
        for _ in range(k % 3):
            part = values[rng.integers(3)]
            part.flat[rng.integers(part.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e300])
        found = control.step(dict(zip(control.names, [*values[:2], values[2].T], strict=True)))
        assert c(memory, values) == found["status"]
        assert c.out[0] == pytest.approx(found["tau"], abs=1e-9)
        memory = c.out[1].copy()
        assert memory == pytest.approx(control.memory, abs=1e-6)
        control.memory = memory.copy()


HALVES = """#include <math.h>
#include <stdio.h>
#include "arm.h"
static void said(int status, const arm_out *out) { printf("%d %.17g %.17g\\n", status, out->tau[0], out->tau[1]); }
int main(void) {
  static arm_t self; static arm_in in; static arm_out out;
  arm_init(&self);
  in.q_now[0] = .2; in.q_now[1] = .1; in.v_now[0] = .5; in.v_now[1] = .4;
  said(arm_step(&self, &in, &out), &out);
  in.q_now[0] = in.q_now[1] = in.v_now[0] = in.v_now[1] = 0;
  arm_prepare(&self, &in);
  in.q_now[0] = .3; in.q_now[1] = .3; in.v_now[0] = NAN; in.v_now[1] = .7;
  said(arm_feedback(&self, &in, &out), &out);
  in.v_now[0] = .9; in.r[3][0] = NAN;
  arm_prepare(&self, &in);
  in.v_now[1] = NAN;
  said(arm_feedback(&self, &in, &out), &out);
  said(arm_step(&self, 0, &out), &out);
  in.v_now[1] = .2; /* nothing is prepared */
  said(arm_feedback(&self, &in, &out), &out);
  return 0;
}
"""


@pytest.mark.slow
@needs_compiler
def test_halves_of_a_step_in_c(tmp_path):
    control, brake, _ = arm(iterations=1)
    control.codegen(tmp_path)
    (tmp_path / "halves.c").write_text(HALVES)
    subprocess.run(["gcc", "-std=c99", "-O1", "-o", "halves", "halves.c", "arm.c", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "halves"], capture_output=True, text=True, check=True)
    rows = np.array([[float(x) for x in line.split()] for line in done.stdout.splitlines()])
    assert rows[0, 0] in SOLVED
    assert rows[1:, 0].tolist() == [*[Status.BAD_MEASUREMENT] * 3, Status.FALLBACK]
    seen = [[0.5, 0.7], [0.9, 0.7], [0.9, 0.7], [0.9, 0.2]]
    for row, v in zip(rows[1:, 1:], seen, strict=True):
        assert row == pytest.approx(np.array(brake([0.3, 0.3], v)).ravel())
