"""Monte Carlo of laws under effects: the numbers of simulate, its table, and what it calls stable."""

import warnings

import numpy as np
import pytest
from elastic_arms import arm, sigma_of, swing
from scipy.linalg import expm
from test_torque_sensors import reading_torques

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.closed_loop import ClosedLoop, torque_limits
from oc_dyn.elastic.laboratory.table import figures_of
from oc_dyn.elastic.laboratory.whole_run import whole_run
from oc_dyn.elastic.sensor_effects import sensor_effects

H = 1e-3
LENGTH, MASS, K, B = 0.4, 3.0, 300.0, 0.2
ALL = {"delay": 2, "encoder_bits": 17, "velocity_filter": 100.0, "torque_noise": 0.1, "torque_bias": 0.05}


def one_joint():
    return el.elastic_robot(od.robots.planar_arm(1, LENGTH, MASS), K, motor_inertia=B)


@pytest.mark.parametrize("name", ["linear", pytest.param("mixed", marks=pytest.mark.slow), "direct"])
def test_a_whole_run_is_that_of_simulate(name):
    """Of laws with and without memory, with torque sensors, limits of torque, and prescribed stiffness."""
    elastic = arm(name)
    law = el.feedback_linearization(elastic, 20.0) if name == "mixed" else reading_torques(elastic)
    reference = el.reference(elastic, swing(3), duration=0.05, sigma=sigma_of(name))
    run = el.simulate(elastic, law, reference, sample_time=H, dt=H, torque_limit=30.0, seed=3, **ALL)
    loop = ClosedLoop(elastic, law, reference, torque_limits(law, 30.0), H)
    states = whole_run(loop, sensor_effects("test", elastic, **ALL), H, 50, compiled=name == "linear").states(
        loop.first_state(None), 3
    )
    assert np.abs(states.T - run.states).max() < 1e-10 * np.abs(run.states).max()


def radius(delay, kp, kd):
    """Spectral radius of a hanging link on a spring, its motor under sampled PD late by so many samples: linear about
    its equilibrium, discretised by the exponential of a matrix."""
    inertia, weight = MASS * LENGTH**2 / 3, MASS * 9.81 * LENGTH / 2
    A = np.zeros((5, 5))
    A[0, 1] = A[2, 3] = 1
    A[1, :3] = [-(K + weight) / inertia, 0, K / inertia]
    A[3, [0, 2, 4]] = [K / B, -K / B, 1 / B]
    step = expm(A * H)
    whole = np.zeros((4 + delay, 4 + delay))
    whole[:4, :4] = step[:4, :4]
    feedback = np.zeros(4 + delay)
    feedback[2:4] = [-kp, -kd]
    if not delay:
        whole += np.outer(np.r_[step[:4, 4]], feedback)
    else:
        whole[:4, 4] = step[:4, 4]  # the torque that waits the longest acts
        for k in range(4, 3 + delay):
            whole[k, k + 1] = 1
        whole[3 + delay] = feedback
    return np.abs(np.linalg.eigvals(whole)).max()


@pytest.mark.slow
def test_stable_is_what_the_eigenvalues_say():
    """A motor under PD at each delay, at gains around the limit of stability."""
    elastic = one_joint()
    path = el.rest_to_rest([-np.pi / 2], [-np.pi / 2 + 0.1], 0.4, continuity=elastic.continuity("torque"), hold=0.8)
    reference = el.reference(elastic, path)
    laws = {str(kd): el.feedforward_pd(elastic, 500.0, kd) for kd in (20.0, 120.0, 450.0)}
    effects = {str(k): {"delay": k} for k in (0, 1, 3)}
    table = el.laboratory_table(elastic, laws, reference, effects=effects, compiled=False)
    told = {(r.law, r.effect): bool(r.stable) for r in table.rows}
    expected = {(kd, k): radius(int(k), 500.0, float(kd)) < 1 for kd in laws for k in effects}
    assert told == expected
    assert {True, False} == set(expected.values())
    assert "largest" in str(table)
    assert table.row("20.0", "0").runs == 1
    with pytest.raises(od.UnknownName, match="row of the table"):
        table.row("20.0", "7")


def test_rows_of_seeds_and_variants():
    """Largest and rms errors over all runs of simulate, seed by seed; variants take turns."""
    elastic = one_joint()
    reference = el.reference(elastic, el.rest_to_rest([0.0], [0.3], 0.05, continuity=4, hold=0.05))
    law = el.feedforward_pd(elastic, 200.0, 10.0)
    variants = [{"encoder_bits": 12, "stiffness_error": 0.1}, {"encoder_bits": 12, "stiffness_error": -0.1}]
    row = el.laboratory_table(
        elastic, {"law": law}, reference, effects={"both": variants}, seeds=3, compiled=False
    ).rows[0]
    runs = [
        el.simulate(elastic, law, reference, sample_time=H, dt=H, seed=seed, **variants[seed % 2]) for seed in range(3)
    ]
    assert row.runs == 3
    assert row.largest == pytest.approx(max(r.largest_error for r in runs), rel=1e-9)
    assert row.rms == pytest.approx(np.sqrt(np.mean([r.error**2 for r in runs])), rel=1e-9)


@pytest.mark.slow
def test_steps_that_are_too_long_are_told():
    """Of a spring that the fixed steps do not follow, as simulate tells of them; more of them are silent."""
    elastic = el.elastic_robot(od.robots.planar_arm(1, LENGTH, MASS), 3e6, motor_inertia=B)
    reference = el.reference(elastic, el.rest_to_rest([0.0], [0.3], 0.05, continuity=4))
    laws, options = {"law": el.feedforward_pd(elastic, 200.0, 10.0)}, {"effects": {"none": {}}, "compiled": False}
    with pytest.warns(od.ModelWarning, match="too long.*give more substeps"):
        el.laboratory_table(elastic, laws, reference, **options)
    with pytest.warns(od.ModelWarning, match="too long"):
        el.simulate(elastic, laws["law"], reference, sample_time=H, dt=H)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        el.laboratory_table(elastic, laws, reference, substeps=8, **options)


@pytest.mark.slow
def test_processes_give_the_same_table():
    elastic = one_joint()
    reference = el.reference(elastic, el.rest_to_rest([0.0], [0.3], 0.05, continuity=4, hold=0.05))
    laws = {"pd": el.feedforward_pd(elastic, 200.0, 10.0), "linearization": el.feedback_linearization(elastic, 20.0)}
    effects = {"none": {}, "encoders": {"encoder_bits": 14}}
    here, there = (
        el.laboratory_table(elastic, laws, reference, effects=effects, seeds=2, executor=executor)
        for executor in ("serial", "processes:2")
    )
    assert here.rows == there.rows


def test_figures_of_motions_that_stand_swing_and_diverge():
    t = np.linspace(0, 1, 101)
    q = np.minimum(t, 0.5)[None]
    ref = {"q": q, "v": np.where(t < 0.5, 1.0, 0.0)[None]}
    square, largest, at_rest, stable = figures_of(q + 0.01, ref["v"], ref)
    assert (square, largest) == pytest.approx((1e-4, 0.01))
    assert (at_rest, stable) == (0.0, True)
    assert not figures_of(q, ref["v"] + 0.06, ref)[3]
    assert not figures_of(q + 0.6, ref["v"], ref)[3]
    *numbers, stable = figures_of(q * np.inf, ref["v"], ref)
    assert np.isnan(numbers).all()
    assert not stable


def test_what_is_refused():
    elastic = one_joint()
    law = {"law": el.feedforward(elastic)}
    reference = el.reference(elastic, el.rest_to_rest([0.0], [0.3], 0.0505, continuity=4))
    with pytest.raises(od.UnknownName, match="option of the effect 'late'"):
        el.laboratory_table(elastic, law, reference, effects={"late": {"delays": 1}})
    with pytest.raises(od.ShapeError, match="no multiple of sample_time"):
        el.laboratory_table(elastic, law, reference, effects={"none": {}})
    with pytest.raises(od.ShapeError, match="seeds"):
        el.laboratory_table(elastic, law, reference, seeds=0)
