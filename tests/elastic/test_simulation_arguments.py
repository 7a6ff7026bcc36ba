"""Numbers that no simulation can be made with are refused by name, and energy from nowhere is told."""

import numpy as np
import pytest
from elastic_arms import planar_arm

import oc_dyn as od
from oc_dyn import elastic as el

_MADE = []


def parts():
    if not _MADE:
        e = el.elastic_robot(planar_arm(1), 300.0, motor_inertia=0.3)
        reference = el.reference(e, el.rest_to_rest([0.0], [0.5], 1.0))
        _MADE.append((e, el.feedforward_pd(e, 50.0, 5.0), reference))
    return _MADE[0]


SAMPLED = {"sample_time": 0.05}
WRONG = [
    ({"substeps": 0, **SAMPLED}, "substeps"),
    ({"substeps": 1.7, **SAMPLED}, "substeps"),
    ({"seed": "a"}, "seed"),
    ({"rtol": -1}, "rtol"),
    ({"rtol": np.nan}, "rtol"),
    ({"atol": -1}, "atol"),
    ({"dt": -0.1}, "dt"),
    ({"dt": 0}, "dt"),
    ({"dt": np.nan}, "dt"),
    ({"dt": 1e-12}, "dt"),
    ({"sample_time": 0}, "sample_time"),
    ({"sample_time": np.nan}, "sample_time"),
    ({"sample_time": -0.05}, "sample_time"),
    ({"duration": "a"}, "duration"),
    ({"noise": {"q": [1, 2, 3]}, **SAMPLED}, "noise of q"),
    ({"noise": {"q": -1.0}, **SAMPLED}, "noise of q"),
    ({"noise": {"q": np.nan}, **SAMPLED}, "noise of q"),
    ({"noise": 3, **SAMPLED}, "noise"),
    ({"torque_limit": [1, 2]}, "torque_limit"),
    ({"torque_limit": "a"}, "torque_limit"),
    ({"start": {"q": np.nan}}, "start, q"),
    ({"start": {"q": [1, 2]}}, "start, q"),
    ({"start": [0.0, 0.0, np.nan, 0.0]}, "start"),
    ({"stiffness_error": -2}, "stiffness"),
    ({"stiffness_error": {"joint1": -1}}, "stiffness of joint1"),
    ({"mass_error": -1.5}, "mass"),
    ({"mass_error": "a"}, "mass"),
    ({"motor_inertia_error": -1}, "motor_inertia"),
    ({"motor_inertia_error": np.nan}, "motor_inertia"),
]


@pytest.mark.parametrize("options, text", WRONG)
def test_wrong_numbers_are_refused_by_name(options, text):
    with pytest.raises(od.ShapeError, match=text):
        el.simulate(*parts(), **options)


@pytest.mark.parametrize("options", [{}, SAMPLED])
def test_rows_far_apart_are_the_start_and_the_end(options):
    run = el.simulate(*parts(), dt=1e9, **options)
    fine = el.simulate(*parts(), dt=0.05, **options)
    assert run.t.tolist() == pytest.approx([0.0, 1.0])
    assert run.q[:, 0] == pytest.approx(fine.q[[0, -1], 0], abs=1e-9)


@pytest.mark.parametrize("dt", [0.1, 0.3, 0.05, 1.0, 1 / 3])
def test_rows_are_dt_apart_and_the_end_is_one(dt):
    t = el.simulate(*parts(), dt=dt).t
    assert t == pytest.approx([*(dt * np.arange(np.ceil(1.0 / dt - 1e-9))), 1.0])


def test_energy_from_nowhere_is_told():
    with pytest.warns(od.errors.CheckWarning, match="energy balance is off by"):
        el.simulate(*parts(), start={"q": 0.5}, rtol=1.0, atol=1.0)


def test_a_coupling_too_large_for_lighter_links_is_refused():
    S = np.array([[0.0, 0.12], [0.0, 0.0]])
    whole = el.elastic_robot(planar_arm(2), 300.0, motor_inertia=0.1, coupling=S)
    with pytest.raises(od.ModelError, match="kinetic energy is not positive"):
        whole.with_errors(mass=-0.95)


@pytest.mark.slow
def test_a_plan_is_no_reference_and_the_error_says_how_it_becomes_one():
    arm = el.elastic_robot(od.robots.planar_arm(2), 300.0, motor_inertia=0.3)
    plan = el.plan_elastic(arm, [0, 0], [0.2, 0.1], motor_torque=60, motor_speed=6, nodes=8)
    law = el.feedforward(arm)
    with pytest.raises(od.ShapeError, match="for a plan its .motion"):
        el.simulate(arm, law, plan)
    assert el.simulate(arm, law, el.reference(arm, plan.motion)).largest_error < 1e-8
