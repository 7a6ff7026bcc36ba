"""Compensation of a delay: the loop is the one without, later by as much."""

import subprocess

import casadi as ca
import numpy as np
import pytest
from controllers import needs_compiler
from products import STRICT

import oc_dyn as od

H = 0.1


def pulled(steps=False, **options):
    """Controller of a mass on a nonlinear spring, by a rate or by its values at the next node."""
    ocp = od.Problem(8, 8 * H)
    x, v, u = ocp.state("x", scale=2.0), ocp.state("v"), ocp.control("u", lower=-3, upper=3, scale=3.0)
    if steps:
        ocp.next(x, x + H * v)
        ocp.next(v, v + H * (u - ca.sin(x)))
    else:
        ocp.rate(x, v)
        ocp.rate(v, u - ca.sin(x))
    ocp.start({x: ocp.parameter("x_now"), v: ocp.parameter("v_now")})
    ocp.minimize(squares=ca.vertcat(x - 1, 0.3 * v, 0.1 * u))
    return od.mpc(ocp, method="euler" if steps else "rk4", **options)


def after(x, u, time):
    rate = lambda y: np.array([y[1], u - np.sin(y[0])])  # noqa: E731
    a = rate(x)
    b = rate(x + time / 2 * a)
    c = rate(x + time / 2 * b)
    return x + time / 6 * (a + 2 * b + 2 * c + rate(x + time * c))


def given(x):
    return {"x_now": x[0], "v_now": x[1]}


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [1, 20])
@pytest.mark.parametrize("delay", [0.3 * H, H, 1.4 * H, 2 * H])
def test_the_loop_is_the_one_without_delay(delay, iterations):
    plain, ahead = pulled(iterations=iterations), pulled(iterations=iterations, delay=delay)
    x, whole = np.zeros(2), int(delay / H + 1e-9)
    part, acting = delay - whole * H, [0.0] * (whole + 1)
    moved = x.copy()  # the state when the first output acts, under no force before it
    for time in [*[H] * whole, part]:
        moved = after(moved, 0.0, time)
    for k in range(15):
        u = float(ahead.step(given(x))["u"][0])
        alone = float(plain.step(given(moved))["u"][0])
        assert u == pytest.approx(alone, abs=1e-5), k  # an interval in two parts differs by what rk4 errs
        acting.append(u)
        # until the part of the interval has passed an earlier output acts
        x = after(after(x, acting[-2 - whole], part), acting[-1 - whole], H - part)
        moved = after(moved, alone, H)
    assert abs(u) < 3


def sent(x, outputs):
    """The state x after outputs, one after the other."""
    for u in outputs:
        x = after(x, u, H)
    return x


@pytest.mark.sample(1)
@pytest.mark.parametrize("iterations", [1, 20])
@pytest.mark.parametrize("on_failure", ["zero", "shifted", ca.Function("law", [], [0.5], [], ["u"])])
def test_what_was_sent_is_in_flight(on_failure, iterations):
    """Outputs that are cut off, and those of on_failure: the step after them is from where they lead."""
    options = {"iterations": iterations, "output_bounds": {"u": (-0.2, 0.3)}, "on_failure": on_failure}
    ahead, plain, x, out = pulled(delay=2 * H, **options), pulled(iterations=20), np.zeros(2), [0.0, 0.0]
    for k in range(5):
        bad = k in (2, 3)
        found = ahead.step(given(x * np.nan if bad else x))
        if not bad:
            plain.reset()
            alone = plain.step(given(sent(x, out[-2:])))["u"][0]
            assert found["u"][0] == pytest.approx(np.clip(alone, -0.2, 0.3), abs=1e-3), k
            assert alone > 0.3 or k > 2
        elif on_failure != "shifted":
            assert found["u"][0] == (0.0 if on_failure == "zero" else 0.3)
        out.append(float(found["u"][0]))
        assert ahead.memory[ahead.functions.sent[0][0]] == pytest.approx(out[-1] / 3)
        x = after(x, out[-3], H)


@pytest.mark.slow
@needs_compiler
def test_c_records_what_was_sent(tmp_path):
    points = [given(x) for x in ([0.0, 0.0], [0.0, 0.0], [0.9, 0.3], [1.1, 0.1])]
    bounds = {"u": (-0.2, 0.3)}
    pulled(delay=H, output_bounds=bounds, name="arm").codegen(tmp_path, points=points)
    words = ["gcc", "-std=c99", *STRICT, "-o", "selftest", "arm.c", "arm_selftest.c", "-lm"]
    subprocess.run(words, cwd=tmp_path, check=True)
    done = subprocess.run(["./selftest"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_steps_are_whole():
    control = pulled(True, delay=H, iterations=1)
    assert control.start.size == pulled(True, iterations=1).start.size + 1
    control.memory[-4] = 0.5  # in flight, over its scale
    found = control.step({"x_now": 0.1, "v_now": 0.2})
    alone = pulled(True, iterations=1).step({"x_now": 0.1 + H * 0.2, "v_now": 0.2 + H * (1.5 - np.sin(0.1))})
    assert found["u"] == pytest.approx(alone["u"])


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: pulled(delay=-1), "delay is -1"),
        (lambda: pulled(delay=np.nan), "delay is nan"),
        (lambda: pulled(True, delay=0.5 * H), "multiple of the interval, 0.1 s"),
        (lambda: pulled(delay=H, shift=0), "an interval apart, shift=1.*got shift=0"),
        (lambda: pulled(delay=H, shift=2), "an interval apart, shift=1.*got shift=2"),
        (lambda: pulled(delay=H, outputs={"tau": 1.0}), "control 'u' is no output"),
    ],
)
def test_mistakes_are_named(make, words):
    with pytest.raises(od.ShapeError, match=words):
        make()


def test_a_state_that_is_not_measured():
    ocp = od.Problem(4, 0.4)
    x, v, u = ocp.chain("x", 1, 2)
    ocp.start({x: ocp.parameter("x_now"), v: 0})
    ocp.minimize(squares=ca.vertcat(x, u))
    with pytest.raises(od.ShapeError, match="state .* is no parameter at the start"):
        od.mpc(ocp, delay=0.1)
