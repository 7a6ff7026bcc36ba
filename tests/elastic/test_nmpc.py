"""Predictive control on the elastic model: the flat map's torques on the exact model, limits kept."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, planar_arm, swing

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.dop853 import fixed_step
from oc_dyn.elastic.plant import plant, plant_rates
from oc_dyn.elastic.predictive import flat_states


def loop(e, control, reference, steps, period, interval, nodes):
    """(errors of q, torques less those of the flat map, torques) of the plant under the controller."""
    wanted, p = flat_states(e, reference), plant(e)
    step = fixed_step(plant_rates(e), 2)
    x = wanted(0).full().ravel()[: p.size]
    errors, off, torques = [], [], []
    for i in range(steps):
        t = i * period
        times = t + interval * np.minimum(np.arange(nodes + 1) + 0.5, nodes)
        out = control.step({"x_now": x, "wanted": wanted.map(nodes + 1)(times[None, :]).full().T})
        tau = np.ravel(out["tau_m"])
        now = wanted(t + period / 2).full().ravel()
        off.append(tau - now[p.size :])
        torques.append(tau)
        x = step(t, x, period, tau).full().ravel()
        errors.append(x[: e.nq] - wanted(t + period).full().ravel()[: e.nq])
    return np.array(errors), np.array(off), np.array(torques)


@pytest.mark.slow
def test_exact_model_is_followed_with_the_flat_maps_torques():
    e = el.elastic_robot(planar_arm(1), 300.0, motor_inertia=0.2)
    control = el.nmpc(e, 40.0, nodes=8, spring_limit=38.0, iterations=2)
    reference = el.reference(e, swing(1), duration=1.0)
    errors, off, _ = loop(e, control, reference, 60, 2e-3, 0.01, 8)
    assert np.abs(errors).max() < 1e-3
    assert np.abs(off[5:]).max() < 0.3  # of some 10 Nm
    narrow = el.nmpc(e, 4.0, nodes=8)
    _, _, torques = loop(e, narrow, reference, 20, 2e-3, 0.01, 8)
    assert np.abs(torques).max() == pytest.approx(4.0, abs=1e-9)


def test_flat_states_are_those_of_the_plant():
    """Their derivative by time is the plant's rate at them: flat map against forward dynamics."""
    e = arm("mixed")
    reference = el.reference(e, swing(3), duration=1.0)
    f, t, p = flat_states(e, reference), ca.MX.sym("t"), plant(e)
    rate = ca.Function("rate", [t], [ca.jacobian(f(t), t)])(0.4).full().ravel()[: p.size]
    y = f(0.4)
    assert rate == pytest.approx(p.rates(y[: p.size], y[p.size :], ca.DM(0, 1)).full().ravel(), abs=1e-8)


def test_refusals():
    e = arm("linear")
    with pytest.raises(od.ModelError, match="does not plan sigma"):
        el.nmpc(arm("direct"), 10.0)
    with pytest.raises(od.ShapeError, match="torque_limit is"):
        el.nmpc(e, -1.0)
    with pytest.raises(od.UnknownName, match="weight"):
        el.nmpc(e, 10.0, weights={"tau": 1.0})
    with pytest.raises(od.ShapeError, match="effort"):
        el.nmpc(e, 10.0, effort=0.0)
