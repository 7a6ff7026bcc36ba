"""Elastic drives of robots with loops, at their own coordinates or at joints of the tree."""

import pickle

import casadi as ca
import numpy as np
import pytest
from loops.linkages import linkage

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic import elastic_robot
from oc_dyn.errors import ModelError, ShapeError, UnknownName

LEGS = tuple(f"leg{k}" for k in range(1, 7))
HARDER = el.NonlinearSpring(lambda z: 300 * z + 900 * z**3)
CASES = {  # robot, joints with drives, stiffness
    "rocker": ("four_bar", ("rocker",), {"rocker": 300.0}),
    "crank": ("four_bar", None, {"crank": 300.0}),
    "slide": ("slider_crank", ("slider",), {"slider": 2000.0}),
    "knee": (
        "knee_linkage_leg",
        ("hip", "knee"),
        {"hip": 200.0, "knee": HARDER},
    ),
    "rigid_hip": ("knee_linkage_leg", ("hip", "knee"), {"knee": 300.0}),
    "3rrr": ("planar_3rrr", ("drive1", "drive2", "drive3"), 400.0),
    "stewart": (None, LEGS, 2e4),
}


def build(case, **more):
    name, actuated, stiffness = CASES[case]
    robot = od.robots.gough_stewart(angles=True) if name is None else linkage(name)
    return elastic_robot(robot, stiffness, motor_inertia=0.2, motor_damping=0.05, actuated=actuated, **more)


def state(elastic, count, seed=0):
    """q near home, and so many derivatives."""
    rng = np.random.default_rng(seed)
    q = elastic.links.neutral() + 0.05 * rng.uniform(-1, 1, elastic.nq)
    return [q, *(0.4 * rng.uniform(-1, 1, elastic.nv) for _ in range(count))]


def largest(x, y):
    """Of the differences, relative where numbers are above 1."""
    pairs = [(np.array(a).ravel(), np.array(b).ravel()) for a, b in zip(x, y, strict=True)]
    return max(np.abs(a - b).max() / max(1.0, np.abs(b).max()) for a, b in pairs)


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.sample("rocker")
@pytest.mark.parametrize("case", CASES)
def test_flat_maps_by_recursion_and_by_ad(case):
    elastic = build(case)
    order = 0 if case == "stewart" else 1
    f = od.function(elastic, "elastic_flat_map", order=order)
    given = state(elastic, f.n_in() - 1)
    twin = od.function(elastic, "elastic_flat_map", order=order, method="ad")
    assert largest(f(*given), twin(*given)) < 1e-11


@pytest.mark.few(4)
@pytest.mark.sample("rocker")
@pytest.mark.parametrize("case", CASES)
def test_forward_dynamics_takes_the_torques_of_the_flat_map_back(case):
    elastic = build(case)
    f = od.function(elastic, "elastic_flat_map")
    given = state(elastic, f.n_in() - 1)
    flat = f(**dict(zip(f.name_in(), given, strict=True)))
    known = {"q": given[0], "v": given[1], "theta": flat["theta"], "dtheta": flat["dtheta"], "tau_m": flat["tau_m"]}
    for method in ("taylor", "motors_eliminated", "whole_matrix"):
        found = od.function(elastic, "elastic_forward_dynamics", method=method)(**known)
        assert largest([found["dv"], found["d2theta"]], [given[2], flat["d2theta"]]) < 1e-9


@pytest.mark.slow
def test_a_slide_of_a_slider_crank_in_closed_form():
    elastic = build("slide")
    press = elastic.links
    given = state(elastic, 4)
    angle, v = (x[0] for x in given[:2])
    root = np.sqrt(0.36 - (0.2 * np.sin(angle)) ** 2)
    position = 0.2 * np.cos(angle) + root
    slope = -0.2 * np.sin(angle) - 0.04 * np.sin(angle) * np.cos(angle) / root
    force = float(od.function(press, "inverse_dynamics")(*given[:3])) / slope
    flat = od.function(elastic, "elastic_flat_map")
    out = flat(**dict(zip(flat.name_in(), given, strict=True)))
    assert float(out["theta"]) == pytest.approx(position + force / 2000.0, abs=1e-12)

    def theta(t):  # along the motion with these derivatives
        q = [sum(given[k + j] * t**j / [1, 1, 2, 6, 24][j] for j in range(5 - k)) for k in range(5)]
        return float(flat(**dict(zip(flat.name_in(), q, strict=True)))["theta"])

    h = 1e-3
    rate = (theta(h) - theta(-h)) / (2 * h)
    second = (theta(h) - 2 * theta(0) + theta(-h)) / h**2
    assert float(out["dtheta"]) == pytest.approx(rate, abs=1e-4)
    assert float(out["tau_m"]) == pytest.approx(0.2 * second + force + 0.05 * rate, abs=1e-3)
    assert v != 0


def swing(elastic, size=0.1):
    """A smooth Reference near home."""
    home, rate = elastic.links.neutral(), 2.0 + 0.3 * np.arange(elastic.nq)
    return el.reference(elastic, lambda t: home + size * (1 - ca.cos(rate * t)), duration=0.6)


@pytest.mark.sample("rocker")
@pytest.mark.parametrize("case", [x for x in CASES if x != "stewart"])
def test_motor_torques_of_the_flat_map_reproduce_the_motion(case):
    elastic = build(case)
    run = el.simulate(elastic, el.feedforward(elastic), swing(elastic), rtol=1e-12)
    assert run.largest_error < 1e-9
    assert np.abs(run.energy_balance).max() < 1e-8 * max(1.0, np.ptp(run.put_in))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["rocker", "knee", "rigid_hip"])
def test_feedback_linearization_follows_from_another_start(case):
    elastic = build(case)
    law = el.feedback_linearization(elastic, 30.0)
    reference = swing(elastic, 0.05)
    exact = el.simulate(elastic, law, reference, rtol=1e-11)
    assert exact.largest_error < 1e-9
    away = el.simulate(elastic, law, reference, start={"q": 1e-3, "theta": 1e-3 * (len(elastic.drives) == 1)})
    assert np.abs(away.error[-1]).max() < 0.05 * np.abs(away.error[0]).max()


@pytest.mark.slow
def test_damped_springs_are_integrated_along_the_motion():
    elastic = build("rocker", damping={"rocker": 2.0})
    law = el.feedforward_pd(elastic, 50.0, 5.0, integrate_damping=True)
    assert el.simulate(elastic, law, swing(elastic), rtol=1e-11).largest_error < 1e-9


@pytest.mark.slow
def test_gravity_is_held_at_rest():
    elastic = build("knee")
    still = el.rest_to_rest(elastic.links.neutral(), elastic.links.neutral() + 1e-12, 0.5)
    for law in (el.gravity_pd(elastic, 50.0, 5.0), el.feedforward(elastic)):
        assert el.simulate(elastic, law, el.reference(elastic, still)).largest_error < 1e-8


def test_what_has_no_theory_or_no_drive_is_refused():
    four_bar, leg = linkage("four_bar"), linkage("knee_linkage_leg")
    given = {"motor_inertia": 0.1}
    with pytest.raises(ShapeError, match="robots with loops"):
        elastic_robot(od.robots.panda(), 100.0, actuated=("panda_joint1",), **given)
    with pytest.raises(UnknownName, match="elbow"):
        elastic_robot(four_bar, 100.0, actuated=("elbow",), **given)
    with pytest.raises(ShapeError, match="expected names"):
        elastic_robot(four_bar, 100.0, actuated=3, **given)
    with pytest.raises(ModelError, match="twice"):
        elastic_robot(leg, 100.0, actuated=("hip", "hip"), **given)
    with pytest.raises(ModelError, match="names 2 joints, but 1 velocities"):
        elastic_robot(four_bar, 100.0, actuated=("crank", "rocker"), **given)
    with pytest.raises(ModelError, match="do not move all"):
        elastic_robot(leg, 100.0, actuated=("knee", "crank"), **given)
    with pytest.raises(ModelError, match="variable stiffness"):
        elastic_robot(four_bar, {"crank": el.VariableSpring()}, **given)
    with pytest.raises(ModelError, match="complete model is for robots without loops"):
        elastic_robot(four_bar, 100.0, coupling=[[0.0]], **given)
    with pytest.raises(UnknownName, match="rocker"):
        elastic_robot(four_bar, {"rocker": 100.0}, **given)
    with pytest.raises(ModelError, match="free joint"):
        elastic_robot(od.robots.knee_linkage_leg(floating_base=True), {"hip": 100.0}, **given)
    with pytest.raises(ModelError, match="plans of elastic robots are for trees"):
        el.plan_elastic(build("crank"), [-1.0], [-0.5])


def test_friction_of_joints_without_a_drive_is_told():
    b = od.RobotBuilder("rubs")
    b.add_link("base")
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": np.diag([0.01] * 3), "axis": (0, 1, 0)}
    b.add_body("a", "revolute", "base", **rod)
    b.add_body("c", "revolute", "a", xyz=(0.3, 0, 0), damping=0.1, **rod)
    b.couple("c_joint", "a_joint", lambda x: 0.5 * x)
    robot = b.build()
    with pytest.warns(od.ModelWarning, match="c_joint"):
        elastic_robot(robot, 100.0, motor_inertia=0.1)
    with pytest.raises(ModelError, match="no motor of its own"):
        elastic_robot(robot, 100.0, motor_inertia=0.1, joint_friction=True)


@pytest.mark.slow
def test_where_loops_do_not_close_numbers_are_refused():
    elastic = build("3rrr")
    f = od.function(elastic, "elastic_flat_map")
    with pytest.raises(ModelError, match="loops pin"):
        f([1.5, 0.0, 0.0], *[np.zeros(3)] * (f.n_in() - 1))


def test_an_elastic_robot_with_loops_is_kept():
    elastic = build("knee")
    again = pickle.loads(pickle.dumps(build("rocker")))
    assert again.drives == ("rocker",)
    assert "hip: stiffness 200" in str(elastic)
    real = build("rigid_hip").with_errors(mass=0.1, stiffness={"knee": -0.2})
    assert real.links.total_mass == pytest.approx(1.1 * elastic.links.total_mass)
    assert real.drives == ("hip", "knee")


def test_armature_of_a_drive_is_its_motor():
    robot = linkage("knee_linkage_leg")
    elastic = elastic_robot(robot, {"crank": 100.0}, actuated=("hip", "crank"))
    assert elastic.motor_inertia.tolist() == [[2e-3]]
    assert elastic.links.tree.joint("crank").armature == 0
