"""od.mpc: the same as solving the Problem, C equal to Python and on its own, refusals."""

import casadi as ca
import numpy as np
import pytest
from controllers import H, needs_compiler, pendulum

import oc_dyn as od


@pytest.mark.slow
def test_a_step_is_the_solution_of_the_problem():
    ocp, tau, _, _ = pendulum()
    given = {"q_now": [0.1, -0.2], "v_now": 0.3, "r": np.linspace(0, 0.2, 32).reshape(16, 2)}
    for hessian in ("gauss_newton", "exact"):
        control = od.mpc(
            ocp, outputs={"tau": tau, "three": ocp.step * 3}, method="euler", hessian=hessian, iterations=100
        )
        made, found = control.step(given), ocp.solve(method="euler", parameters=given)
        assert made["objective"] == pytest.approx(found.objective, abs=1e-6)
        assert made["violation"] < 1e-9
        assert made["tau"] == pytest.approx(found[tau][0], rel=1e-2 if hessian == "exact" else 2e-4)
        assert made["three"] == pytest.approx(3 * H)


@pytest.mark.slow
def test_memory_makes_later_steps_shorter_and_can_be_forgotten():
    ocp, tau, plant, seen = pendulum()
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=1)
    best = od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=50)
    start = np.zeros(5)
    one, many = (c.closed_loop(plant, start, 25, {}, seen) for c in (control, best))
    # one quadratic program a step follows the converged solution
    assert np.abs(one.x - many.x)[10:].max() < 5e-3
    again = control.reset().closed_loop(plant, start, 25, {}, seen)
    assert np.array_equal(again.x, one.x)


@pytest.mark.few(2)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("qpsol", ["riccati", "qrqp", "osqp", "daqp"])
def test_c_closes_the_loop_as_python_does(qpsol, tmp_path):
    ocp, tau, plant, seen = pendulum(10)
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", qpsol=qpsol, iterations=4, name="arm")
    start, steps = np.array([0.2, -0.1, 0, 0, 0]), 40
    python = control.closed_loop(plant, start, steps, {}, seen)
    files = control.reset().codegen(tmp_path, plant, seen, x=start, steps=steps, rate=200)
    assert [f.name for f in files[:3]] == ["arm.c", "arm.h", "loop.c"]
    assert str(tmp_path) not in files[2].read_text()
    assert "oc_dyn" not in files[2].read_text()
    control.build(tmp_path, flags=("-O1", "-Wall", "-Werror=implicit-function-declaration"))
    c = control.run_in_c(tmp_path)
    for what in ("x", "u", "objective", "violation"):
        assert np.abs(getattr(c, what) - getattr(python, what)).max() < 1e-9
    again = control.reset().closed_loop_in_c(plant, start, steps, {}, seen, flags=("-O1",), folder=tmp_path / "again")
    assert np.array_equal(again.x, c.x)
    assert (tmp_path / "again" / "loop.c").exists()
    assert c.x.shape == (steps, 5)
    assert c.u.shape == (steps, 2)
    assert c.violation.max() < 1e-6
    wanted = np.column_stack([0.3 * np.sin(2 * c.x[:, 4]), -0.2 * np.sin(3 * c.x[:, 4])])
    assert np.abs(c.x[15:, :2] - wanted[15:]).max() < 0.1
    text = c.deadlines(1 / 200)
    assert f"{steps} steps" in text
    assert f"{int(np.sum(c.seconds > 1 / 200))} late" in text
    counts = [int(line.split()[4]) for line in text.splitlines()[2:]]
    assert sum(counts) == steps


def test_a_step_that_cannot_be_kept_says_so():
    ocp = od.Problem(5, 0.5)
    x, v, u = ocp.chain("x", 1, 2, bounds=(1.0, 1.0))
    ocp.start({x: ocp.parameter("x_now"), v: 0})
    ocp.limit(-1, x, 1)
    ocp.minimize(squares=ca.vertcat(x, 0.1 * u))
    control = od.mpc(ocp)
    assert control.step({"x_now": 0.5})["violation"] < 1e-8
    assert control.step({"x_now": 5.0})["violation"] > 0.1


def free():
    ocp = od.Problem(5, (0.1, 1.0))
    x, v, _ = ocp.chain("x", 1, 2)
    ocp.start({x: 0, v: 0})
    return ocp


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: od.mpc(free()), od.ShapeError, "free duration"),
        (
            lambda: od.mpc(pendulum()[0], method="euler", outputs={"y": ca.MX.sym("other")}),
            od.UnknownName,
            "symbol in output 'y' 'other'",
        ),
        (lambda: od.mpc(pendulum()[0], method="euler", name="my controller"), od.ShapeError, "'my controller'"),
        (
            lambda: od.mpc(pendulum()[0], method="euler", solver_options={"max_itr": 3}),
            od.SolveError,
            "sqpmethod.*unknown option 'max_itr'; did you mean 'max_iter'",
        ),
        (
            lambda: od.mpc(pendulum()[0], method="euler").step({"q_now": [0, "a"], "v_now": 0, "r": np.zeros(2)}),
            od.ShapeError,
            "'q_now'",
        ),
        (
            lambda: od.mpc(pendulum()[0], method="euler", solver_options={"elastic_mode": True}),
            od.SolveError,
            "'elastic_mode' has no part",
        ),
        (lambda: od.mpc(pendulum()[0], method="euler", qpsol="piqp"), od.UnknownName, "'piqp'.*riccati"),
        (
            lambda: od.mpc(pendulum()[0], method="euler", solver_options={"qpsol_options": {"mu": 1}}),
            od.SolveError,
            "'riccati' has no option 'mu'",
        ),
        (
            lambda: od.mpc(pendulum()[0], method="euler", solver_options={"qpsol_options": {"tol": -1}}),
            od.SolveError,
            "tol is -1, expected a positive number",
        ),
        (
            lambda: od.mpc(pendulum()[0], method="euler", qpsol="hpipm").codegen("folder"),
            od.ModelError,
            "'hpipm'.*heap",
        ),
        (lambda: od.mpc(pendulum()[0], method="euler").react({"q_now": 0, "v_now": 0}), od.SolveError, "prepare"),
        (lambda: od.mpc(pendulum()[0], method="euler", measured=["r2"]), od.UnknownName, "'r2'"),
        (lambda: od.mpc(pendulum()[0], method="euler", iterations=0), od.ShapeError, "iterations"),
        (lambda: od.mpc(pendulum()[0], method="euler", shift=15), od.ShapeError, "shift"),
        (lambda: od.mpc(pendulum()[0], method="euler", outputs={}), od.ShapeError, "no outputs"),
        (lambda: od.mpc(pendulum()[0], method="euler", hessian="limited_memory"), od.UnknownName, "limited_memory"),
        (lambda: od.mpc(pendulum()[0], method="euler").step({"q_now": 0}), od.ShapeError, "'v_now' has no value"),
        (
            lambda: od.mpc(pendulum()[0], method="euler").step({"q_now": 0, "v_now": 0, "r": np.zeros((3, 2))}),
            od.ShapeError,
            r"expected \(16, 2\)",
        ),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.slow
def test_plants_and_measurements_are_checked():
    ocp, tau, plant, seen = pendulum()
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler")
    with pytest.raises(od.ShapeError, match="should take x and tau"):
        control.closed_loop(seen, np.zeros(5), 3, {}, seen)
    x = ca.SX.sym("x", 5)
    with pytest.raises(od.UnknownName, match="speed"):
        control.closed_loop(plant, np.zeros(5), 3, {}, ca.Function("m", [x], [x[2:4]], ["x"], ["speed"]))


def test_what_is_no_problem_is_named():
    with pytest.raises(od.ShapeError, match="got 3, expected an od.Problem"):
        od.mpc(3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("qpsol", ["qrqp", "osqp", "hpipm"])
def test_solvers_of_quadratic_programs_agree(qpsol):
    given = {"q_now": [0.1, -0.2], "v_now": 0.3, "r": np.full((9, 2), 0.8)}
    ocp, tau, _, _ = pendulum(8)
    found = [
        od.mpc(ocp, outputs={"tau": tau}, method="euler", qpsol=k, iterations=30).step(given)
        for k in ("riccati", qpsol)
    ]
    assert found[0]["status"] == found[1]["status"] == 0
    assert found[0]["tau"] == pytest.approx(found[1]["tau"], rel=1e-4)


@pytest.mark.slow
def test_a_step_is_its_two_halves():
    """What prepare is told of what is measured is not used; parameters of react are those of the start."""
    ocp, tau, plant, seen = pendulum()
    one, two = (od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=1) for _ in range(2))
    assert one.measured == ["q_now", "v_now"]
    x = np.array([0.2, -0.1, 0, 0, 0])
    for _ in range(12):
        given = dict(zip(seen.name_out(), (np.array(y).T for y in seen.call([x])), strict=True))
        whole = one.step(given)
        now = {k: given[k] for k in two.measured}
        halves = two.prepare({**given, "q_now": [5.0, 7.0], "v_now": 9.0}).react(now)
        assert halves["tau"] == pytest.approx(whole["tau"], abs=1e-12)
        assert halves["timings"].keys() == {"preparation", "feedback"}
        assert halves["status"] == 0
        x = np.array(plant(x, whole["tau"])).ravel()
    assert np.array_equal(one.memory, two.memory)
    with pytest.raises(od.UnknownName, match="'r'"):
        two.prepare(given).react({**now, "r": 0})
    with pytest.raises(od.ShapeError, match="'v_now' has no value"):
        two.react({"q_now": 0})


@pytest.mark.slow
def test_halves_measure_what_is_no_number():
    ocp, tau, _, _ = pendulum()
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=1)
    given = {"q_now": [0.1, -0.2], "v_now": 0.3, "r": np.zeros(2)}
    control.step(given)
    assert control.prepare(given).react({"q_now": [np.nan, 0], "v_now": 0})["status"] == 2
    assert control.prepare({**given, "r": np.inf}).react({"q_now": 0, "v_now": 0})["status"] == 2
    control.memory[3] = np.nan
    assert control.prepare(given).react({"q_now": 0, "v_now": 0})["status"] == 3
    assert control.step(given)["status"] == 0
