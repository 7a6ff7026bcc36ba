"""One joint, one state, one node, one point, one pair of way points go through the public surface like the rest."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od


@pytest.fixture(scope="module")
def pendulum():
    builder = od.RobotBuilder("pendulum")
    builder.add_link("base")
    builder.add_link("bob", mass=1.0, com=[0, 0, -0.5], inertia=np.diag([0.01, 0.01, 0.001]))
    limits = {"lower": -3, "upper": 3, "velocity": 4, "effort": 20, "acceleration": 30, "jerk": 400}
    builder.add_joint("hinge", "revolute", "base", "bob", axis=[0, 1, 0], **limits)
    return builder.build()


@pytest.mark.parametrize("continuity", [2, 3, 4])
@pytest.mark.parametrize("nodes", [10, 20])
def test_point_to_point(pendulum, continuity, nodes):
    plan = od.plan_point_to_point(pendulum, [0.0], [1.0], continuity=continuity, nodes=nodes)
    assert plan.q.shape == (len(plan.t), 1)
    assert plan.check().ok()
    assert plan.q[-1, 0] == pytest.approx(1.0)


def test_a_scalar_for_one_joint(pendulum):
    assert od.plan_point_to_point(pendulum, 0.0, 1.0).duration > 0


def test_along_one_pair_of_way_points(pendulum):
    path = od.plan_along_path(pendulum, [[0.0], [1.0]])
    assert path.check().ok()
    assert path.q[[0, -1], 0] == pytest.approx([0, 1], abs=1e-9)


def test_inverse_kinematics_and_a_path_of_poses(pendulum):
    pose = od.function(pendulum, "frame_pose", frame="bob")
    R = [pose(q=q)["R"].full() for q in (0.0, 0.7)]
    p = np.zeros((2, 3))
    assert od.inverse_kinematics(pendulum, "bob", R=R[1], p=p[1], q_start=[0.1]) == pytest.approx([0.7], abs=1e-6)


@pytest.mark.parametrize("nodes", [1, 3])
def test_model_predictive_control(nodes):
    ocp = od.Problem(nodes, 0.1 * nodes)
    x, u = ocp.state("x"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, u)
    ocp.start({x: ocp.parameter("x_now")})
    ocp.minimize(squares=ca.vertcat(x, 0.1 * u), terminal=10 * x**2)
    control = od.mpc(ocp, outputs={"u": u})
    assert float(np.squeeze(control.step({"x_now": 3.0})["u"])) == pytest.approx(-1, abs=1e-6)


def test_functions_in_c_and_in_batches(pendulum, tmp_path):
    f = od.function(pendulum, "inverse_dynamics", order=1)
    inputs = [0.3, -0.2, 0.5, 0.1]
    expected = [float(x) for x in f(*inputs)]
    compiled = od.compile(f, fallback=True)
    assert [float(x) for x in compiled(*inputs)] == pytest.approx(expected, rel=1e-14)
    assert [float(np.squeeze(x)) for x in od.numpy_call(f)(*inputs)] == pytest.approx(expected, rel=1e-14)
    one = od.batch(f, fallback=True)(*(np.full((1, 1), x) for x in inputs))
    assert [float(np.squeeze(x)) for x in one] == pytest.approx(expected, rel=1e-14)
    assert od.codegen([f], tmp_path / "code")


def test_identification(pendulum):
    motion = od.identification.exciting_motion(pendulum, harmonics=2, iterations=10)
    q, v, dv = (np.reshape(x, (1, -1)) for x in motion.sample(np.linspace(0, 10, 50)))
    tau = od.function(pendulum, "inverse_dynamics")(q, v, dv).full()
    found = od.identification.identify(pendulum, q, v, dv, tau)
    assert found.values.shape == (found.base.rank,)
    assert np.abs(found.predict(q, v, dv) - tau).max() < 1e-6


def sweep_of_one(x):
    return 2 * x


@pytest.mark.parametrize("executor", ["serial", "processes:1"])
def test_a_sweep_of_one_point(executor, tmp_path):
    for grid in ([{"x": 3}], {"x": [3]}):
        assert od.sweep(sweep_of_one, grid, executor=executor, out=tmp_path / "swept.csv").results == [6]


def test_rollouts_and_reports(pendulum):
    t = np.array([0.0, 0.1])
    motion = od.simulate(pendulum, [0.1], [0.0], np.zeros((3, 1)), t[1])
    assert np.isfinite(np.concatenate([np.ravel(x) for x in motion])).all()
