"""Controllers whatever is measured: outputs within bounds, a status, soon back with good samples, in C as in Python."""

import casadi as ca
import numpy as np
import pytest
from controllers import CStep, needs_compiler, pendulum

import oc_dyn as od
from oc_dyn.control import Status
from oc_dyn.study.mpc.fuzz import spring_mass

BACK = 5  # good samples after which a controller is itself again
H = 0.05


def mass(**options):
    """Controller of a mass with a nonlinear spring, limits of its speed and force."""
    return od.mpc(spring_mass(H), method="euler", name="mass", **options)


def after(x, v, u):
    return x + H * v, v + H * (u - np.sin(x))


def samples(steps, seed, good):
    """(steps, ...) of what is measured: `good`, a third of it spoilt, in bursts; and where it is."""
    rng = np.random.default_rng(seed)
    out, spoilt, left = [], [], 0
    for k in range(steps):
        left = left - 1 if left else int(rng.random() < 0.06) * int(rng.integers(1, 12))
        values = {name: np.array(value, float) for name, value in good(k).items()}
        if left:
            name = rng.choice(list(values))
            jump = rng.choice([1.0, 10.0, 1e3, 1e6, 1e9]) * rng.normal()
            bad = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, jump])
            values[name].flat[rng.integers(values[name].size)] = bad
        out.append(values)
        spoilt.append(bool(left))
    return out, np.array(spoilt)


def recovered(spoilt, status):
    """Whether every step with so many good samples before it is ok."""
    due = [k for k in range(len(status)) if k >= BACK and not spoilt[k - BACK : k + 1].any()]
    assert len(due) > 10
    return all(status[k] == Status.OK for k in due)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("on_failure", ["shifted", "zero"])
def test_a_small_controller_under_fuzz(on_failure, seed):
    control, wanted = mass(on_failure=on_failure), np.zeros(7)
    given, spoilt = samples(1000, seed, lambda k: {"x_now": 0.5 * np.sin(0.1 * k), "v_now": 0.05, "r": wanted})
    found = [control.step(values) for values in given]
    outputs, status = np.array([f["u"][0] for f in found]), [f["status"] for f in found]
    assert np.all(np.abs(outputs) <= 3)
    assert recovered(spoilt, status)
    assert {Status.BAD_MEASUREMENT, Status.INFEASIBLE_RELAXED} <= set(status)
    assert max(f["iterations"] for f in found) <= 30
    assert np.all(np.isfinite(control.memory))


@pytest.mark.slow
@needs_compiler
def test_c_does_what_python_does_under_fuzz(tmp_path):
    control = mass()
    control.codegen(tmp_path)
    c, memory = CStep(tmp_path, control), control.start.copy()
    given, _ = samples(300, 7, lambda k: {"x_now": 0.5 * np.sin(0.1 * k), "v_now": 0.05, "r": np.zeros(7)})
    for values in given:
        found = control.step(values)
        status = c(memory, [values[k].reshape(1, -1) for k in ("x_now", "v_now", "r")])
        memory = c.out[1].copy()
        assert status == found["status"]
        assert abs(c.out[0][0]) <= 3
        assert c.out[0] == pytest.approx(found["u"], abs=1e-6)
        control.memory = memory.copy()  # differences of rounding do not add up


@pytest.mark.slow
@needs_compiler
def test_c_from_numbers_beyond_all_bounds(tmp_path):
    control = mass(output_bounds={"u": (-0.5, 0.25)}, on_failure="zero")
    control.codegen(tmp_path)
    c, rng = CStep(tmp_path, control, ("-O3", "-ffast-math")), np.random.default_rng(0)
    choices = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e13, 1.0, 0.0])
    for _ in range(200):
        memory = np.where(rng.random(control.start.size) < 0.02, rng.choice(choices), control.start)
        c(memory, [rng.choice(choices, (1, 1)), rng.choice(choices, (1, 1)), rng.choice(choices, (1, 7))])
        assert -0.5 <= c.out[0][0] <= 0.25
        assert np.all(np.isfinite(c.out[1]))


@pytest.mark.slow
def test_outputs_keep_their_bounds_where_the_plant_leaves_its_own():
    """The mass is pushed far outside of its limits; the controller says so and brings it back."""
    control = mass()
    x, v, status, outputs = 0.0, 6.0, [], []
    for _ in range(150):
        found = control.step({"x_now": x, "v_now": v, "r": np.zeros(7)})
        status.append(found["status"])
        outputs.append(found["u"][0])
        x, v = after(x, v, found["u"][0])
    assert np.all(np.abs(outputs) <= 3)
    assert status[0] == Status.INFEASIBLE_RELAXED
    assert outputs[0] == pytest.approx(-3)
    assert status[-1] == Status.OK
    assert abs(x) < 2
    assert abs(v) < 1.05


@pytest.mark.slow
def test_limits_that_can_be_kept_are_exactly_kept():
    """The optimum is that of the Problem, solved by itself, with a limit of torque active."""
    given = {"q_now": [0.1, -0.2], "v_now": 0.3, "r": np.full((9, 2), 0.8)}
    ocp, tau, _, _ = pendulum(8)
    found = od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=50).step(given)
    alone = ocp.solve(method="euler", parameters=given)
    assert found["status"] == Status.OK
    assert found["violation"] < 1e-9
    assert found["objective"] == pytest.approx(alone.objective, rel=1e-6)


def test_the_plan_moves_on_while_nothing_is_measured():
    control, r = mass(), np.ones(7)
    good = {"x_now": 0.0, "v_now": 0.0, "r": r}
    control.step(good)
    plan = control.memory.copy()
    controls = plan[2::3]  # x, v, u of every stage, from the next one on; the last stage has no control
    for k in range(3):
        found = control.step({"x_now": np.nan, "v_now": np.nan, "r": r})
        assert found["status"] == Status.BAD_MEASUREMENT
        scale = control.made.u_scale[0]
        assert found["u"][0] == pytest.approx(np.clip(scale * controls[k], -3, 3))
    assert control.step(good)["status"] == Status.OK


@pytest.mark.slow
def test_laws_to_fall_back_to(tmp_path):
    robot = od.robots.planar_2r()
    inverse = od.function(robot, "inverse_dynamics")
    q, v = [0.4, -0.3], [1.0, 2.0]
    assert np.allclose(od.control.gravity(robot)(q), inverse(q, [0, 0], [0, 0]))
    assert np.allclose(od.control.brake(robot, time=0.2)(q, v), inverse(q, v, [-5, -10]))
    ocp, tau, _, _ = pendulum(8)
    for law in (od.control.gravity(robot), od.control.brake(robot)):
        control = od.mpc(ocp, outputs={"tau": tau}, method="euler", on_failure=law)
        good = {"q_now": [0.1, -0.2], "v_now": [0.3, 0.1], "r": np.zeros((9, 2))}
        assert control.step(good)["status"] == Status.OK
        # the number that is bad is not used: what was measured before it is
        found = control.step({**good, "q_now": [np.nan, 0.0]})
        given = [{**good, "q_now": [0.1, 0.0]}[k] for k in law.name_in()]
        assert found["tau"] == pytest.approx(np.array(law(*given)).ravel())


@pytest.mark.slow
def test_output_bounds():
    ocp, tau, _, _ = pendulum(6)
    given = {"q_now": [0.1, -0.2], "v_now": 0.3, "r": np.ones((7, 2))}
    free = od.mpc(ocp, outputs={"tau": tau}, method="euler").step(given)["tau"]
    bounds = (np.minimum(free, 0) - 1, np.maximum(free, 0) / 2)
    cut = od.mpc(ocp, outputs={"tau": tau}, method="euler", output_bounds={"tau": bounds}).step(given)
    assert np.array_equal(cut["tau"], np.clip(free, *bounds))
    assert np.any(cut["tau"] != free)


def panda(**options):
    """(controller of the arm as in problems/panda_nmpc.py with 8 nodes, limits of torque, what is measured at rest)."""
    robot, nodes, h = od.robots.panda("vendor"), 8, 0.02
    most = od.Limits.of(robot).tau
    home = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])
    ocp = od.Problem(nodes, nodes * h)
    q, v, a = ocp.state("q", 7, guess=home, scale=1), ocp.state("v", 7), ocp.control("a", 7)
    tau = od.function(robot, "inverse_dynamics", derivatives="analytic")(q, v, a)
    ocp.next(q, q + h * (v + h * a))
    ocp.next(v, v + h * a)
    ocp.limit(-1, tau / most, 1)
    ocp.limit(-2.1, v + h * a, 2.1)
    ocp.start({q: ocp.parameter("q_now", 7), v: ocp.parameter("v_now", 7)})
    ocp.minimize(squares=np.sqrt(2 / h) * ca.vertcat(q - ocp.varying("r", 7), v / 10, tau / most / 10))
    ocp.minimize(terminal=10 * ca.sumsqr(q - home) + ca.sumsqr(v))
    control = od.mpc(
        ocp, outputs={"tau": tau}, method="euler", name="panda", output_bounds={"tau": (-most, most)}, **options
    )
    return control, most, {"q_now": home, "v_now": np.zeros(7), "r": np.tile(home + 0.1, (nodes + 1, 1))}


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [1, 10])
def test_a_panda_that_seems_to_be_fast(iterations):
    """One sample of a speed far above its limit: torques within limits, back after one good sample, bounded work."""
    control, most, rest = panda(iterations=iterations)
    assert np.all([control.step(rest)["status"] == Status.OK for _ in range(3)])
    for speed in (4.0, 6.0, 8.0, 10.0, 15.0, 1e3, 1e6, 1e300, np.nan, np.inf):
        for sign in (np.ones(7), np.array([1, -1, 1, -1, 1, -1, 1])):
            found = control.step({**rest, "v_now": speed * sign})
            assert np.all(np.abs(found["tau"]) <= most)
            assert found["iterations"] <= iterations
            assert (found["status"] == Status.OK) <= (speed < 6)
            for _ in range(BACK):
                found = control.step(rest)
                assert np.all(np.abs(found["tau"]) <= most)
            assert found["status"] == Status.OK


@pytest.mark.slow
@needs_compiler
def test_a_panda_under_fuzz_in_python_and_c(tmp_path):
    control, most, rest = panda()
    control.codegen(tmp_path)
    c, memory, same = CStep(tmp_path, control), control.start.copy(), 0
    given, spoilt = samples(150, 3, lambda k: rest)
    status = []
    for values in given:
        found = control.step(values)
        status.append(c(memory, [values["q_now"], values["v_now"], values["r"].T]))
        memory = c.out[1].copy()
        assert np.all(np.abs(found["tau"]) <= most)
        assert np.all(np.abs(c.out[0]) <= most)
        same += status[-1] == found["status"]
        if status[-1] == Status.OK:
            assert c.out[0] == pytest.approx(found["tau"], abs=1e-6)
        control.memory = memory.copy()
    assert recovered(spoilt, status)
    assert same >= 0.95 * len(given)  # rounding decides where a jump of 1e9 overflows


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"output_bounds": {"force": (0, 1)}}, od.UnknownName, "'force'"),
        ({"output_bounds": {"u": (1, 0)}}, od.ShapeError, "not above the upper ones"),
        ({"output_bounds": {"u": (0, np.nan)}}, od.ShapeError, "not above the upper ones"),
        ({"output_bounds": {"u": ([0, 0], 1)}}, od.ShapeError, "of 1 numbers each"),
        ({"output_bounds": {"u": 3}}, od.ShapeError, "expected \\(lower, upper\\)"),
        ({"on_failure": "stop"}, od.UnknownName, "'stop'.*shifted"),
        ({"on_failure": od.control.gravity(od.robots.planar_2r())}, od.UnknownName, "'q_now'"),
        (
            {"on_failure": ca.Function("f", [ca.SX.sym("x", 2)], [ca.SX(1)], ["x_now"], ["u"])},
            od.ShapeError,
            "input x_now has shape",
        ),
    ],
)
def test_mistakes_of_bounds_and_fallbacks_are_named(options, error, words):
    with pytest.raises(error, match=words):
        mass(**options)


def test_mistakes_of_laws_are_named():
    with pytest.raises(od.ShapeError, match="gravity: got 3"):
        od.control.gravity(3)
    with pytest.raises(od.ShapeError, match="time is 0"):
        od.control.brake(od.robots.planar_2r(), time=0)


@pytest.mark.slow
def test_a_plan_that_is_worth_nothing_is_given_up():
    """Whatever plan a memory holds, single iterations are back within so many good samples, at the same torque."""
    control, _, rest = panda(iterations=1)
    for _ in range(3):
        wanted = control.step(rest)["tau"]
    good, n, rng = control.memory.copy(), control.functions.n, np.random.default_rng(0)
    for size in (0.3, 1.0, 3.0, 10.0):
        for _ in range(6):
            control.memory = good.copy()
            control.memory[:n] += size * rng.normal(size=n)
            found = [control.step(rest) for _ in range(BACK + 1)]
            assert found[BACK - 1]["status"] == found[BACK]["status"] == Status.OK
            assert found[BACK]["tau"] == pytest.approx(wanted, abs=1e-2)
