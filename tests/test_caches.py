"""What is kept is kept under all that decides it: a change of any of it gives the new result."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from samples import robot

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.model.canonical import canonical
from oc_dyn.planning.trajectory import Trajectory
from oc_dyn.registry import get_method

START, GOAL = [-1.2, 0.5], [-0.5, -0.8]


def test_limits_of_velocity_that_change_behind_their_function():
    """The function is the same object; what it refers to is another. The old bounds would leave the motion slow."""
    bound = [0.5]

    def v_of_q(q):
        return [-bound[0]] * 2, [bound[0]] * 2

    arm = od.robots.planar_2r()
    limits = od.Limits(arm.coordinate_names, v=2.0, dv=20.0, d2v=200.0, v_of_q=v_of_q)
    reached = []
    for bound[0] in (0.5, 1.0):
        plan = od.plan_point_to_point(arm, START, GOAL, limits=limits, nodes=10, continuity=2)
        reached.append(np.abs(plan.sample(1e-3).v).max())
    assert reached == pytest.approx([0.5, 1.0], rel=5e-3)


def test_limits_of_velocity_that_cannot_be_hashed():
    class Bounds:
        def __eq__(self, other):
            return True

        def __call__(self, q):
            return [-0.7] * 2, [0.7] * 2

    arm = od.robots.planar_2r()
    limits = od.Limits(arm.coordinate_names, v=2.0, dv=20.0, d2v=200.0, v_of_q=Bounds())
    plan = od.plan_point_to_point(arm, START, GOAL, limits=limits, nodes=10, continuity=2)
    assert np.abs(plan.sample(1e-3).v).max() == pytest.approx(0.7, rel=5e-3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["spatial_vector", "spatial_vector_aza"])
def test_second_partials_of_two_models_of_one_robot(method):
    """Without gravity all accelerations at rest are zero, and so are their partials by q."""
    r = robot("small serial")
    f = get_method("forward_dynamics_second_partials", method).function
    q, rest = ca.DM(r.random_configuration(1)), ca.DM.zeros(r.nv)
    model = canonical(r, regroup=True)
    heavy, light = (f(m, 0, q, rest, [rest])[0][0] for m in (model, replace(model, gravity=ca.DM.zeros(3))))
    assert float(ca.norm_inf(ca.vec(heavy))) > 1
    assert float(ca.norm_inf(ca.vec(light))) < 1e-9


LAWS = [
    lambda: el.NonlinearSpring(lambda z: 100 * z + 500 * z**3),
    lambda: el.VariableSpring(lambda z, s: s * z + 500 * z**3),
    lambda: el.AntagonisticSprings(lambda z: 50 * ca.exp(4 * z)),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("make", LAWS, ids=["nonlinear", "variable", "antagonistic"])
def test_a_spring_made_from_another_leaves_that_one_alone(make):
    spring, z, sigma = make(), [ca.DM(0.2)] * 2, [ca.DM(300.0), ca.DM(0.0)]
    n = len(spring.motors)
    z = z[:n]
    jets = [[x, ca.DM(0.0)] for x in z]

    def seen(s):
        torques = [float(x) for x in s.torques(z, sigma[0])]
        return torques, float(s.energy(z, sigma[0])), [float(x) for x in s.deflection(1, jets, [1.0, 2.0], sigma)]

    before = seen(spring)
    twice = replace(spring, factor=2.0)
    assert seen(spring) == before
    assert np.allclose(seen(twice)[0], 2 * np.array(before[0]), rtol=1e-14)
    fresh = type(spring).scaled(spring, 2.0)
    assert np.allclose(seen(twice)[2], seen(fresh)[2], rtol=1e-12)


def test_a_motion_whose_arrays_the_caller_changes():
    pieces, t = np.zeros((2, 4, 2)), np.array([0.0, 1.0, 2.0])
    pieces[:, 0] = START
    motion = Trajectory(t, pieces, joints=("shoulder", "elbow"), units=("rad", "rad"), robot=od.robots.planar_2r())
    before = motion.tau.copy(), motion.q.copy(), motion.duration
    pieces[:], t[-1] = 1.0, 9.0
    samples = motion.sample([0.5])
    assert np.array_equal(samples.q[0], START)
    assert motion.duration == before[2] == 2.0
    assert np.array_equal(motion.tau, before[0])


@pytest.mark.parametrize("name", ["t", "pieces", "q", "v", "dv", "tau", "dtau"])
def test_arrays_of_a_motion_cannot_be_written_to(name):
    """Else torques, once computed, would be those of another motion."""
    motion = Trajectory(
        [0.0, 1.0], np.ones((1, 4, 2)), joints=("a", "b"), units=("rad", "rad"), robot=od.robots.planar_2r()
    )
    for x in (motion, motion.sample([0.5])):
        if hasattr(x, name):
            with pytest.raises(ValueError, match="read-only"):
                getattr(x, name)[...] = 0.0


def test_functions_that_differ_in_one_option():
    """Every pair of settings of a quantity gives Functions of their own, and the same ones when asked again."""
    r = robot("floating")
    settings = [
        {}, {"order": 1}, {"name": "other"}, {"method": "recursive_body"}, {"external_wrenches": True},
        {"friction": True}, {"representation": "spatial"}, {"representation": "hybrid"}, {"parameters": "symbolic"},
        {"parameters": ("inertia", "armature")},
    ]  # fmt: skip
    made = [od.function(r, "inverse_dynamics", **s) for s in settings]
    assert len({id(f) for f in made}) == len(settings)
    assert [od.function(r, "inverse_dynamics", **s) for s in settings] == made
    with pytest.raises(od.OrderError):
        od.function(r, "inverse_dynamics", order=True)


def test_functions_of_robots_that_differ():
    a = robot("floating")
    b = replace(a, gravity=np.zeros(3))
    q, rest = a.random_configuration(1), np.zeros(a.nv)
    heavy, light = (od.function(r, "inverse_dynamics")(q, rest, rest) for r in (a, b))
    assert float(ca.norm_inf(heavy)) > 1
    assert float(ca.norm_inf(light)) < 1e-9


def test_maps_of_a_batch_for_several_numbers_of_points(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    f = od.function(od.robots.planar_2r(), "inverse_dynamics")
    with pytest.warns(od.ModelWarning):
        run = od.batch(f, threads=2)
    rng = np.random.default_rng(0)
    for n in (1, 5, 1, 40, 5):
        x = rng.normal(size=(3, 2, n))
        one_by_one = np.hstack([f(*x[:, :, k]).full() for k in range(n)])
        assert np.allclose(run(*x), one_by_one, rtol=1e-13)
