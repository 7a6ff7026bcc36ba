"""What closed loops and od.mpc refuse, by name, before anything is written or run."""

import casadi as ca
import numpy as np
import pytest
from controllers import pendulum

import oc_dyn as od

PLANT = ca.Function("plant", [ca.SX.sym("x", 5), ca.SX.sym("u", 2)], [ca.SX.zeros(5)])
SEEN = pendulum(4)[3]


@pytest.fixture(scope="module")
def control():
    ocp, tau, _, _ = pendulum(4)
    return od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=1)


def function(*sizes, out=5, name="f"):
    return ca.Function(name, [ca.SX.sym(f"x{k}", size) for k, size in enumerate(sizes)], [ca.SX.zeros(out)])


@pytest.mark.parametrize("way", ["closed_loop", "closed_loop_in_c"])
@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"x": [0.3]}, "x.*5"),
        ({"x": [np.nan, 0, 0, 0, 0]}, "x.*number"),
        ({"steps": -1}, "steps is -1, expected an integer of at least"),
        ({"steps": 2.5}, "steps is 2.5, expected an integer of at least"),
        ({"plant": "pl"}, "plant is 'pl', expected a casadi.Function"),
        ({"plant": function(5, 3)}, r"should take x and tau \(2,\), and give the next x"),
        ({"plant": function(5, 2, out=4)}, "give the next x"),
        ({"measured": None}, "measured is None, expected a casadi.Function"),
        ({"measured": function(4, out=2)}, r"measured: .* should take x \(5,\)"),
        ({"measured": ca.Function("f", [ca.SX.sym("x", 5)], [0], ["x"], ["q_now"])}, "q_now has 1 values, expected 2"),
    ],
)
def test_mistakes_of_loops(way, wrong, words, control):
    given = {"plant": PLANT, "x": np.zeros(5), "steps": 2, "parameters": {}, "measured": SEEN} | wrong
    with pytest.raises(od.ShapeError, match=f"{way}: .*{words}"):
        getattr(control, way)(**given)


def test_mistakes_of_programs(control, tmp_path):
    def write(**wrong):
        control.codegen(tmp_path, **({"plant": PLANT, "measured": SEEN, "x": np.zeros(5), "steps": 2} | wrong))

    for rate in (-5, np.inf, np.nan, "fast"):
        with pytest.raises(od.ShapeError, match="codegen: rate"):
            write(rate=rate)
    with pytest.raises(od.ShapeError, match="codegen: measured is None"):
        write(measured=None)
    with pytest.raises(od.ShapeError, match="closed_loop_in_c: steps is 0"):
        control.closed_loop_in_c(PLANT, np.zeros(5), 0, {}, SEEN)
    assert control.closed_loop(PLANT, np.zeros(5), 0, {}, SEEN) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"measured": 3}, od.ShapeError, "measured is 3, expected a list of names"),
        ({"measured": "q_now"}, od.ShapeError, "measured is 'q_now', expected a list of names"),
        ({"solver_options": {"qpsol_options": 5}}, od.ShapeError, "qpsol_options: got 5, expected {name: value}"),
        ({"solver_options": {"qpsol_options": {"max_iter": 2.5}}}, od.SolveError, "max_iter is 2.5, .*integer"),
        ({"solver_options": {"tol_pr": -1}}, od.SolveError, "tol_pr is -1, expected a number from 0 on"),
        ({"solver_options": {"beta": np.nan}}, od.SolveError, "beta is nan, expected a number from 0 to 1"),
        ({"solver_options": {"beta": 1.5}}, od.SolveError, "beta is 1.5, expected a number from 0 to 1"),
        ({"output_bounds": {"a": (np.inf, np.inf)}}, od.ShapeError, "expected lower bounds below inf"),
        ({"output_bounds": {"a": (-np.inf, -np.inf)}}, od.ShapeError, "upper ones above -inf"),
    ],
)
def test_mistakes_of_options(options, error, words):
    with pytest.raises(error, match=words):
        od.mpc(pendulum(4)[0], method="euler", **options)


@pytest.mark.sample(1)
@pytest.mark.parametrize("iterations", [1, 5])
def test_what_was_prepared_before_a_step_is_stale(iterations):
    """In C it is FALLBACK, see test_failure_laws; a reaction would lose what the step sent."""
    ocp, tau, _, _ = pendulum(4)
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=iterations)
    given = {"q_now": [0.1, 0.1], "v_now": [0.0, 0.0], "r": np.zeros((5, 2))}
    control.prepare(given)
    control.step(given)
    with pytest.raises(od.SolveError, match="nothing is prepared"):
        control.react({"q_now": [0.1, 0.1], "v_now": [0.0, 0.0]})
