"""Numbers at which loops are open are refused by name, wherever numbers come in: a double rocker, which cannot turn
round, closes between two angles that are known in closed form."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.errors import ModelError, SolveError

CRANK, COUPLER, ROCKER, GROUND = 0.6, 0.3, 0.6, 1.0
FAR = 3.0  # an angle out of reach
ROD = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": np.eye(3) * 0.01, "axis": (0, 1, 0)}
# the pin of the crank is as far from the other hinge as the stretched rods reach
END = np.arccos((CRANK**2 + GROUND**2 - (COUPLER + ROCKER) ** 2) / (2 * CRANK * GROUND))


def double_rocker(mimic=None, **limits):
    b = od.RobotBuilder("rocks")
    b.add_link("base")
    b.add_body("a", "continuous", "base", joint="crank", **ROD)
    b.add_body("c", "continuous", "a", joint="coupler", xyz=(CRANK, 0, 0), **ROD)
    b.add_body("d", "continuous", "base", joint="rocker", xyz=(GROUND, 0, 0), **limits, **ROD)
    for name, of in (mimic or {}).items():
        b.add_body(name, "revolute", "base", joint=name, mimic=(of, 2.0), velocity=5.0, **ROD)
    ends = {"xyz_a": (COUPLER, 0, 0), "xyz_b": (ROCKER, 0, 0), "axis": (0, 1, 0), "independent": ("crank",)}
    b.close_loop("pin", "c", "d", **ends)
    return b.build(start={"crank": -1.0, "coupler": 1.0, "rocker": -2.0})


def mapped(f):
    """A batch without a compiler."""
    with pytest.warns(od.ModelWarning, match="not compiled"):
        return od.batch(f, threads=1, compiler=["no-such-compiler"])


@pytest.fixture(scope="module")
def robot():
    return double_rocker()


def test_the_reach_is_known(robot):
    f = od.function(robot, "potential_energy")
    assert np.isfinite(float(f(1e-3 - END)))
    with pytest.raises(ModelError, match="loops pin"):
        f(-1e-3 - END)


@pytest.mark.sample("mapped")
@pytest.mark.parametrize("way", ["compiled", "mapped"])
def test_batches_name_the_first_point_out_of_reach(robot, way):
    f = od.function(robot, "potential_energy")
    run = od.batch(f, threads=1) if way == "compiled" else mapped(f)
    q = np.array([[-1.0, -0.5, FAR, FAR]])
    with pytest.raises(ModelError, match="potential_energy_0: q, point 2: loops pin cannot be closed there"):
        run(q)
    assert np.abs(run(q[:, :2]) - np.array(f(q[:, :2]))).max() < 1e-13
    assert run(np.zeros((1, 0))).shape == (1, 0)
    out = np.full((1, 4), 7.0)
    with pytest.raises(ModelError, match="loops pin"):
        run(q, out=out)
    assert (out == 7.0).all()


def test_a_batch_with_a_guess_refuses_nothing(robot):
    f = od.function(robot, "loop_closure", q_guess=True)
    *_, residual = mapped(f)(np.array([FAR]), robot.home)
    assert np.abs(residual).max() > 0.1


def test_numpy_calls_refuse_what_functions_refuse(robot):
    run = od.numpy_call(od.function(robot, "potential_energy"))
    inside = run([-1.0]).copy()
    assert run.packed(np.array([-1.0])) == inside
    for call in (run, run.packed, run.copy()):
        with pytest.raises(ModelError, match="potential_energy_0: q: loops pin"):
            call(np.array([FAR]))
    assert np.isnan(run.packed(np.array([np.nan]))).all()


def test_several_points_of_a_call_and_none(robot):
    f = od.function(robot, "potential_energy")
    with pytest.raises(ModelError, match="q, point 1: loops pin"):
        f(np.array([[-1.0, FAR]]))
    assert np.isnan(float(f(np.nan)))
    assert f(np.zeros((1, 0))).shape == (1, 0)


def test_contact_points_are_looked_at(robot):
    f = od.contact_points(robot, ["c"])
    p = np.array(f(-1.0, 0.0)[0]).ravel()
    assert p == pytest.approx([CRANK * np.cos(1.0), 0, CRANK * np.sin(1.0)], abs=1e-12)
    with pytest.raises(ModelError, match="contact_points: q: loops pin"):
        f(FAR, 0.0)


def test_rigid_simulations_name_loops_and_time(robot):
    tau = np.zeros((2001, 1))
    with pytest.raises(ModelError, match="simulate: q: loops pin cannot be closed there"):
        od.simulate(robot, [FAR], [0.0], tau, 1e-3)
    with pytest.raises(ModelError, match=r"simulate: loops pin cannot be closed at t = 0\.0\d+ s"):
        od.simulate(robot, [-1.0], [-10.0], tau, 1e-3)
    t = np.linspace(0, 1, 11)[:, None]
    with pytest.raises(ModelError, match=r"motion_report: loops pin cannot be closed at t = 0\.6 s"):
        od.motion_report(robot, t, -1 + 4 * t, 4 + 0 * t, 0 * t)


def test_inverse_kinematics_names_its_start(robot):
    with pytest.raises(ModelError, match="inverse_kinematics: q_start: loops pin"):
        od.inverse_kinematics(robot, "c", p=[0, 0, 0.1], q_start=[FAR])


@pytest.mark.sample("limited")
@pytest.mark.parametrize("own", [{}, {"velocity": 2.0}], ids=["free", "limited"])
def test_refused_plans_name_what_is_open(own):
    robot = double_rocker(**own)
    limits = od.Limits(robot.coordinate_names, v=3, dv=30, d2v=300)
    for start, goal, what in ((-1.0, FAR, "q_goal"), (-2.0, -1.0, "q_start")):
        with pytest.raises(ModelError, match=f"plan_point_to_point: {what}: loops pin cannot be closed there"):
            od.plan_point_to_point(robot, [start], [goal], limits=limits)
    with pytest.raises(ModelError, match=r"plan_point_to_point: loops pin cannot be closed at t = \d"):
        od.plan_point_to_point(robot, [-1.0], [-1.0 + 2 * np.pi], limits=limits)


@pytest.mark.slow
def test_refused_plans_with_limits_of_torque_name_the_time(robot):
    limits = od.Limits(robot.coordinate_names, v=3, dv=30, d2v=300, tau=100)
    with pytest.raises(ModelError, match=r"plan_point_to_point: loops pin cannot be closed at t = \d"):
        od.plan_point_to_point(robot, [-1.0], [-1.0 + 2 * np.pi], limits=limits)


def test_motions_name_the_time(robot):
    motion = od.Trajectory([0.0, 1.0], [[[-1.0], [4.0], [0.0]]], joints=("crank",), units=("rad",), robot=robot)
    first = (END + 1.0) / 4.0  # when the rods are stretched
    for ask, what in ((motion.check, "check"), (lambda: motion.sample(0.01).tau, "torques")):
        with pytest.raises(ModelError, match=rf"{what}: loops pin cannot be closed at t = \d") as error:
            ask()
        assert float(str(error.value).split("t = ")[1].split()[0]) == pytest.approx(first, abs=0.011)


HOW = {"continuous": {}, "sampled": {"sample_time": 1e-2}, "cvodes": {"method": "cvodes", "rtol": 1e-6}}


def elastic_rocker(robot):
    return el.elastic_robot(robot, 300.0, motor_inertia=0.1)


def way(elastic, goal):
    return el.reference(elastic, el.rest_to_rest([-1.0], [goal], 0.4, continuity=4))


@pytest.mark.sample("sampled")
@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_elastic_simulations_refuse_references_out_of_reach(robot, how):
    elastic = elastic_rocker(robot)
    with pytest.raises(ModelError, match=r"simulate: the reference: loops pin cannot be closed at t = 0\.\d+ s"):
        el.simulate(elastic, el.feedforward(elastic), way(elastic, FAR), **how)


@pytest.mark.sample("sampled")
@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_elastic_simulations_stop_where_loops_open(robot, how):
    elastic = elastic_rocker(robot)
    with pytest.raises(SolveError, match=r"loops pin .* t = 0\.\d+ s") as error:
        el.simulate(elastic, el.feedforward(elastic), way(elastic, -0.9), start={"v": [-12.0]}, **how)
    run = error.value.trajectory
    assert 0 < len(run.t) < 41
    assert (np.abs(run.q) < END).all()


def test_elastic_simulations_refuse_a_start_out_of_reach(robot):
    elastic = elastic_rocker(robot)
    with pytest.raises(ModelError, match="simulate: start: loops pin"):
        el.simulate(elastic, el.feedforward(elastic), way(elastic, -0.9), start={"q": [4.0]})


def test_motors_with_damped_springs_refuse_references_out_of_reach(robot):
    elastic = el.elastic_robot(robot, 300.0, motor_inertia=0.1, damping=1.0)
    with pytest.raises(ModelError, match="damped_motion: the reference: loops pin"):
        el.damped_motion(elastic, way(elastic, FAR))


def test_print_tells_what_follows_and_what_closes():
    robot = double_rocker(mimic={"m": "crank", "n": "rocker"})
    lines = [x.split() for x in str(robot).splitlines()]
    column = {x[1]: x[5] for x in lines if len(x) == 10 and x[0].isdigit()}
    assert column == {"a": "0", "c": "-", "d": "-", "m": "*0", "n": "*-"}
    assert next(x for x in lines if x[:2] == ["1", "a"])[8] == "2.5"  # what the mimic leaves
    assert "loop pin: revolute, between c and d" in str(robot)
    assert "* mimic: n = 2 * rocker" in str(robot)


def test_print_tells_couplings():
    b = od.RobotBuilder("geared")
    b.add_link("base")
    b.add_body("a", "revolute", "base", joint="x", **ROD)
    b.add_body("c", "revolute", "a", joint="y", **ROD)
    b.couple("y", "x", lambda x: 2 * x)
    assert "coupling: y follows x" in str(b.build())
