"""Controllers of a double integrator at the edges of what a problem may be: equations, delays, phases, names."""

import subprocess

import casadi as ca
import numpy as np
import pytest
from controllers import needs_compiler

import oc_dyn as od
from oc_dyn.control import Status

H = 0.1


def integrator(more=None, squares=True, problem=None, **options):
    """Controller; more: (problem, x, v, u) -> None adds rows and costs."""
    ocp = problem or od.Problem(8, 8 * H)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-8, upper=8)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: ocp.parameter("x0"), v: ocp.parameter("v0")})
    if squares:
        ocp.minimize(squares=ca.vertcat(x - 1, u))
    if more:
        more(ocp, x, v, u)
    return od.mpc(ocp, **options)


def goal(ocp, x, v, _):
    ocp.goal({x: 0, v: 0})


def equation(ocp, _x, _v, u):
    ocp.limit(0, ocp.parameter("w") - u, 0)


def selftest(folder, name="mpc"):
    """How the self-test in a folder ends."""
    words = ["gcc", "-std=c99", "-O1", "-o", "selftest", f"{name}.c", f"{name}_selftest.c", "-lm"]
    subprocess.run(words, cwd=folder, check=True)
    return subprocess.run(["./selftest"], cwd=folder, capture_output=True, text=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("more", [goal, equation])
def test_equations_in_real_time(more):
    """A linear problem of squares is solved by one quadratic program."""
    given = {"x0": 0.1, "v0": 0.0, **({"w": 2.0} if more is equation else {})}
    control = integrator(more, iterations=1)
    for _ in range(2):
        found = control.step(given)
        assert found["status"] == Status.OK
        assert found["u"] == pytest.approx(integrator(more).step(given)["u"], abs=1e-6)
    assert np.all(np.isfinite(control.preparation.call([control.start, *given.values()])[0].full()))


@pytest.mark.few(2)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("more", [goal, equation])
def test_equations_in_real_time_in_c(more, precision, tmp_path):
    points = [{"x0": 0.1, "v0": 0.0, **({"w": 2.0} if more is equation else {})}] * 2
    integrator(more, iterations=1).codegen(tmp_path, precision=precision, points=points)
    done = selftest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def two_phases(duration, **options):
    def more(ocp, x, v, u):
        ocp.phase(4, duration)
        ocp.rate(x, v)
        ocp.rate(v, u)
        ocp.minimize(squares=ca.vertcat(x - 1, u))

    return integrator(more, problem=od.Problem(4, 4 * H), **options)


@pytest.mark.slow
def test_phases_of_other_intervals_do_not_move_into_each_other():
    """A plan moved on by an interval of 0.1 s may not be played in intervals of 0.4 s."""
    control = two_phases(16 * H)
    assert control.functions.shift == 0
    assert control.sample_time is None
    first = control.step({"x0": 0.0, "v0": 0.0})["u"]
    found = control.step({"x0": np.nan, "v0": 0.0})  # the plan, where it was
    assert found["status"] == Status.BAD_MEASUREMENT
    assert found["u"] == pytest.approx(first)
    assert two_phases(4 * H).functions.shift == 1
    with pytest.raises(od.ShapeError, match="equal length, in all phases; take shift=0"):
        two_phases(16 * H, shift=1)


def linear(ocp, x, _v, _u):
    ocp.minimize(terminal=-x)


def redundant(ocp, x, v, u):
    linear(ocp, x, v, u)
    for k in (1, 2, 3):
        ocp.limit(-0.5, k * x, 0.5 * k)


def nothing(ocp, x, _v, _u):
    ocp.minimize(terminal=0 * x)


def nothing_but_limits(ocp, x, v, u):
    nothing(ocp, x, v, u)
    ocp.limit(-0.5, x, 0.5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("iterations", [1, 10])
@pytest.mark.parametrize("squares", [False, True])
def test_far_away_bounds_of_a_control_are_kept(squares, iterations):
    """They can be, wherever it starts, with no objective, too: states of a thousand million are no excuse."""
    control = integrator(None if squares else nothing, squares=squares, iterations=iterations)
    starts = [(0.1, 0.0), (3e4, 7e4), (7e4, -5e4), (1e5, 1e5), (3e3, 8e4)]
    rng = np.random.default_rng(0)
    starts += [tuple(10.0**power * rng.uniform(-1, 1, 2)) for power in (5, 6, 7, 8, 9) for _ in range(5)]
    for sign in (1, -1):
        for x, v in starts:
            control.reset()
            found = control.step({"x0": sign * x, "v0": sign * v})
            assert found["status"] == Status.OK, (x, v)
            assert abs(found["u"][0]) <= 8
            rounding = 1e-14 * np.hypot(x, v)
            assert found["violation"] < 1e-6 + rounding


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("more", [linear, redundant, nothing_but_limits])
def test_objectives_without_curvature_in_single_precision(more, tmp_path):
    """As far as possible with all the force there is, or to where limits say the same three times."""
    rng = np.random.default_rng(1)
    points = [{"x0": rng.uniform(-0.16, 0.4), "v0": rng.uniform(-0.5, 0.5)} for _ in range(30)]
    points.append({"x0": 0.44, "v0": 0.9})
    control = integrator(more, squares=False, iterations=1)
    for point in points:
        found = control.step(point)
        assert found["status"] == Status.OK
        assert found["violation"] < 1e-6
        assert more is not linear or found["u"] == pytest.approx(8, abs=1e-6)
    control.codegen(tmp_path, precision="single", points=points)
    calls = "".join(
        f"  in.x0[0] = {p['x0']:.7f}f; in.v0[0] = {p['v0']:.7f}f; bad += mpc_step(&self, &in, &out) != 0;\n"
        + ("" if more is not linear else "  bad += !(out.u[0] > 7.99f);\n")
        for p in points
    )
    text = '#include "mpc.h"\nint main(void) {\n  static mpc_t self; mpc_in in; mpc_out out; int bad = 0;\n'
    (tmp_path / "steps.c").write_text(f"{text}  mpc_init(&self);\n{calls}  return bad;\n}}\n")
    subprocess.run(["gcc", "-std=c99", "-O1", "-o", "steps", "steps.c", "mpc.c", "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "steps"]).returncode == 0


def boxed(row, parameters=True, most=5.0, **options):
    """Controller of a mass to a place, with rows of its own."""
    h, ocp = 0.05, od.Problem(10, 0.5)
    q, v, u = ocp.state("q", scale=1), ocp.state("v", scale=1), ocp.control("u", lower=-most, upper=most, scale=1)
    q_now, v_now, wanted = ocp.parameter("q_now"), ocp.parameter("v_now"), ocp.varying("wanted")
    limit = ocp.parameter("most") if parameters else 1
    ocp.next(q, q + h * v + h * h / 2 * u)
    ocp.next(v, v + h * u)
    row(ocp, q, u, limit)
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=ca.vertcat(q - wanted, 0.1 * v, 0.05 * u))
    ocp.minimize(terminal=v**2)
    return od.mpc(ocp, outputs={"u": u}, method="euler", **options)


def box(ocp, _q, u, limit):
    ocp.limit(-limit, u, limit)


@pytest.mark.slow
def test_multipliers_of_the_wrong_sign_are_no_solution():
    """At this sample qrqp ends at the bound on the other side, with a multiplier whose sign is wrong."""
    given = {"q_now": 0.517998004564127, "v_now": -0.8492225226113046, "wanted": -0.2410269665956859}
    given["most"] = 1.1824890533736838
    own, other = (boxed(box, qpsol=k).step(given) for k in ("riccati", "qrqp"))
    assert other["objective"] == pytest.approx(own["objective"], rel=1e-6)
    assert other["u"] == pytest.approx(own["u"], abs=1e-5)


def test_a_limit_that_is_given_up_by_a_parameter_is_left():
    """What was the optimum at a limit is none where the limit has gone away, though residuals are zero there."""
    given = {"q_now": 0.0, "v_now": 0.0, "wanted": 3.0}
    control = boxed(box, shift=0)
    control.step({**given, "most": 1.0})
    warm, cold = control.step({**given, "most": 4.0}), boxed(box).step({**given, "most": 4.0})
    assert warm["u"] == pytest.approx(cold["u"], abs=1e-5)
    assert warm["objective"] == pytest.approx(cold["objective"], rel=1e-6)


def root(ocp, q, _u, _limit):
    ocp.limit(0.1, ca.sqrt(1 - q), 10)


@pytest.mark.slow
def test_limits_that_are_no_numbers_are_not_kept():
    """The root of what a plan makes negative is NaN: such a plan is not ok, and steps get shorter until it is one."""
    given = {"q_now": 0.0, "v_now": 0.0, "wanted": 3.0}
    assert boxed(root, parameters=False, most=50.0, iterations=1).step(given)["status"] == Status.FALLBACK
    control = boxed(root, parameters=False, most=50.0)
    found = control.step(given)
    plan = control.memory[: 10 * 3 : 3]
    assert found["status"] == Status.OK
    assert np.all(plan <= 0.99 + 1e-6)
    assert plan[-1] == pytest.approx(0.99, abs=1e-4)
