"""Elastic plans check themselves: right ones pass, spoiled ones are flagged and named."""

import dataclasses
import re
import warnings

import numpy as np
import pytest
from elastic_arms import S3, cubic, planar_arm

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic import plan_check

START, GOAL = [-0.6, 0.3], [0.7, -0.9]
LIMITS = {"motor_torque": [60, 30], "motor_speed": 4.0, "nodes": 20}
ARMS = {
    "linear": (lambda a: el.elastic_robot(a, [500, 300], motor_inertia=[0.3, 0.2]), {}),
    "stiff": (lambda a: el.elastic_robot(a, [5e4, 3e4], motor_inertia=[0.3, 0.2]), {}),
    "friction": (lambda a: el.elastic_robot(a, 500.0, motor_inertia=0.3, motor_friction=1.0, motor_damping=0.5), {}),
    "mixed": (lambda a: el.elastic_robot(a, {"joint2": 300}, motor_inertia=[0.3, 0.2]), {}),
    "cubic": (lambda a: el.elastic_robot(a, el.NonlinearSpring(cubic), motor_inertia=[0.3, 0.2]), {}),
    "variable": (lambda a: el.elastic_robot(a, el.VariableSpring(), motor_inertia=[0.3, 0.2]), {"sigma": [500, 300]}),
    "complete": (
        lambda a: el.elastic_robot(a, [500, 300], motor_inertia=[0.3, 0.2], coupling=S3[:2, :2]),
        {"motor_speed": None},
    ),
}


@pytest.fixture(scope="module")
def plan():
    return el.plan_elastic(ARMS["linear"][0](planar_arm(2)), START, GOAL, **LIMITS, check="raise")


@pytest.mark.few(3)
@pytest.mark.sample("linear")
@pytest.mark.parametrize("name", ARMS)
def test_right_plans_pass(name):
    make, options = ARMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", od.CheckWarning)
        plan = el.plan_elastic(make(planar_arm(2)), START, GOAL, **LIMITS | options)
    report = plan.check()
    assert report.ok(1e-3)
    assert report.complaint() is None
    assert [row.quantity for row in report.defects] == ["q", "v", "theta", "dtheta"]
    assert max(row.share for row in report.defects) < 1e-8


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "error", [{"stiffness": 0.05}, {"mass": 0.02}, {"stiffness": {"joint2": -0.1}}, {"motor_inertia": -0.02}]
)
def test_another_robot_does_not_move_as_planned(plan, error):
    report = plan.check(robot=plan.elastic.with_errors(**error))
    assert not report.ok()
    assert "does not move as planned" in report.complaint()


def test_the_links_motion_is_certified_among_shapes(plan):
    links = plan.elastic.links
    hand, at = links.bodies[-1].name, np.eye(4)
    scene = od.Scene().attach("hand", hand, od.shapes.Sphere(0.1))
    _, _, p = od.function(links, "frame_pose", frame=hand)(plan.motion.sample([plan.duration / 2]).q[0])
    at[:3, 3] = np.array(p).ravel()
    report = plan.check(scene=scene.add("ball", od.shapes.Sphere(0.2), at), dynamics=False)
    assert report.clearance == plan.motion.clearance(scene.add("ball", od.shapes.Sphere(0.2), at))
    assert report.clearance.hit
    assert "'hand' and 'ball' hit each other" in report.complaint()
    at[:3, 3] = [0.0, 0.0, 10.0]
    report = plan.check(scene=scene.add("ball", od.shapes.Sphere(0.2), at), clearance=1.0, dynamics=False)
    assert report.clearance.free
    assert report.complaint() is None


def test_scaled_torques_are_flagged(plan, monkeypatch):
    right = plan_check.planned

    def scaled(*arguments):
        found = right(*arguments)
        return found | {"tau_m": 1.01 * found["tau_m"]}

    monkeypatch.setattr(plan_check, "planned", scaled)
    assert "does not move as planned" in plan.check().complaint()
    monkeypatch.setattr("oc_dyn.elastic.planning.search", lambda *_: plan)
    with pytest.warns(od.CheckWarning, match="planning arm_2r: the robot does not move as planned: .* of 'joint"):
        el.plan_elastic(plan.elastic, START, GOAL, **LIMITS)
    with pytest.raises(od.SolveError, match="does not move as planned") as caught:
        el.plan_elastic(plan.elastic, START, GOAL, **LIMITS, check="raise")
    assert caught.value.status == "check"
    assert caught.value.trajectory is plan
    with warnings.catch_warnings():
        warnings.simplefilter("error", od.CheckWarning)
        el.plan_elastic(plan.elastic, START, GOAL, **LIMITS, check="off")


def test_limits_that_are_exceeded_are_named(plan):
    lower = dataclasses.replace(plan, limits={"motor_torque": plan.limits["motor_torque"] * [1.0, 0.5]})
    assert re.fullmatch(r"tau_m of 'joint2' is \S+ at t = .* s, \d+ % over its limit -?15", lower.check().complaint())


@pytest.mark.slow
def test_torques_of_springs_count_where_they_have_a_range():
    spring = el.NonlinearSpring(cubic, torque_range=(-60.0, 60.0))
    arm = el.elastic_robot(planar_arm(2), spring, motor_inertia=[0.3, 0.2])
    with pytest.warns(od.CheckWarning, match="spring_torque of 'joint1' is .* over its limit -?60"):
        plan = el.plan_elastic(arm, START, GOAL, motor_torque=[60, 30], nodes=20)
    row = plan.check().springs[0]
    sample = plan.sample(1e-3)
    assert abs(row.value) == pytest.approx(np.abs(cubic(sample["deflection"][:, 0])).max(), rel=1e-3)


def test_unknown_ways_of_checking_are_refused(plan):
    with pytest.raises(od.UnknownName, match="check"):
        el.plan_elastic(plan.elastic, START, GOAL, **LIMITS, check="loudly")
