"""A controller in C that measures NaN: a status, the plan before moved on, and good steps again after it."""

import casadi as ca
import numpy as np
import pytest
from controllers import CStep, needs_compiler, pendulum

import oc_dyn as od

FLAGS = [("-O2",), ("-O3", "-ffast-math")]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(controller, folder of its C, parameters in order)."""
    ocp, tau, _, _ = pendulum(8)
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=3, name="arm")
    folder = tmp_path_factory.mktemp("arm")
    control.codegen(folder)
    return control, folder, control.values({"q_now": [0.1, -0.2], "v_now": 0.0, "r": np.zeros((9, 2))})


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_what_is_measured(flags, written):
    control, folder, values = written
    step, memory = CStep(folder, control, flags), control.reset().memory.copy()
    assert step(memory, values) == 0
    expected = control.function(memory, *values)
    assert step.out[0] == pytest.approx(np.array(expected[0]).ravel(), abs=1e-9)
    moved = step.out[1].copy()
    planned, later = (np.array(x).ravel() for x in control.fallback(moved, *values))
    for which, value in enumerate(values):
        for entry in range(np.size(value)):
            for bad in (np.nan, np.inf, -np.inf):
                wrong = [np.array(v, float) for v in values]
                wrong[which].flat[entry] = bad
                step.out[1][:] = 0
                assert step(moved, wrong) == 2
                assert step.out[0] == pytest.approx(planned, abs=1e-9)
                assert np.array_equal(step.out[1], later)  # the plan, moved on
    assert step(moved, values) == 0
    again = control.function(moved, *values)
    assert step.out[0] == pytest.approx(np.array(again[0]).ravel(), abs=1e-9)
    broken = moved.copy()
    broken[3] = np.nan
    assert step(broken, values) == 3
    assert step.out[0] == pytest.approx(np.array(control.fallback(control.start, *values)[0]).ravel(), abs=1e-9)
    assert step(step.out[1].copy(), values) == 0


@pytest.mark.slow
@needs_compiler
def test_a_loop_stops_where_the_plant_breaks(tmp_path):
    """After the fourth step the plant gives NaN; the loop says so rather than go on with it."""
    ocp, tau, _, seen = pendulum(8)
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", iterations=2, name="arm")
    x, u = ca.SX.sym("x", 5), ca.SX.sym("u", 2)
    broken = ca.Function("plant", [x, u], [ca.vertcat(x[0] + 1e-3 * ca.sqrt(2.5 - x[4]), x[1:4], x[4] + 1)])
    with pytest.raises(od.SolveError, match="status 3: step 4: arm_step returned 2, see arm.h"):
        control.closed_loop_in_c(broken, np.zeros(5), 10, {}, seen, flags=("-O1",), folder=tmp_path)


@pytest.mark.slow
@needs_compiler
def test_programs_of_two_controllers_keep_apart(tmp_path):
    ocp, tau, plant, seen = pendulum(6)
    one, two = (od.mpc(ocp, outputs={"tau": tau}, method="euler", name=name) for name in ("one", "two"))
    one.codegen(tmp_path, plant, seen, x=np.zeros(5), steps=2)
    with pytest.raises(od.ModelError, match="loop.c in it is not the program of the controller two"):
        two.codegen(tmp_path, plant, seen, x=np.zeros(5), steps=2)
    with pytest.raises(od.ModelError, match="not the program of the controller two"):
        two.run_in_c(tmp_path)
    names = "{0}.c {0}.h {0}.hpp {0}_example.c {0}_selftest.c {0}_targets.cmake CMakeLists.txt"
    assert {p.name for p in tmp_path.iterdir()} == {"loop.c", *names.format("one").split()}
    assert [p.name for p in two.codegen(tmp_path)] == names.format("two").split()


@pytest.mark.parametrize(
    "parameter, output, said",
    [
        ("q now", "a", "parameter 'q now' cannot name a port"),
        ("q*/", "a", "cannot name a port"),
        ("x_now", "tau 1", "output 'tau 1' cannot name a port"),
        ("memory", "a", "parameter 'memory' would be called like what every controller has"),
        ("x_now", "objective", "output 'objective' would be called like what every"),
        ("x_now", "x_now", "output 'x_now' would be called like the parameter"),
        ("casadi_real", "a", "parameter 'casadi_real' would be called like what CasADi's own code has"),
        ("x_now", "casadi_int", "output 'casadi_int' would be called like what CasADi"),
        ("mpc_in", "a", "parameter 'mpc_in' would be called like a type or macro of the controller mpc"),
        ("x_now", "mpc_real", "output 'mpc_real' would be called like a type or macro"),
        ("x_now", "mpc_PERIOD", "output 'mpc_PERIOD' would be called like a type or macro"),
        ("x_now", "mpc_fallback_SZ_W", "would be called like a type or macro"),
    ],
)
def test_names_of_ports(parameter, output, said):
    ocp = od.Problem(4, 0.4)
    x, v, u = ocp.chain("x", 1, 2)
    ocp.start({x: ocp.parameter(parameter), v: 0})
    ocp.minimize(squares=ca.vertcat(x, 0.1 * u))
    with pytest.raises(od.ShapeError, match=said.replace("*", r"\*")):
        od.mpc(ocp, outputs={output: u})


def test_names_that_meet_in_c():
    ocp = od.Problem(4, 0.4)
    x, v, u = ocp.chain("x", 1, 2)
    ocp.start({x: ocp.parameter("x_now"), v: 0})
    ocp.minimize(squares=ca.vertcat(x, 0.1 * u))
    with pytest.raises(od.ShapeError, match="bounds of outputs 'int' and 'int_' would both be called int_lower"):
        od.mpc(ocp, outputs={"int": u, "int_": u})
    with pytest.raises(od.ShapeError, match="'casadi' is taken.*CasADi's own code"):
        od.mpc(ocp, name="casadi")
    assert list(od.mpc(ocp, outputs={"mpc_tau": u}).outputs) == ["mpc_tau"]
