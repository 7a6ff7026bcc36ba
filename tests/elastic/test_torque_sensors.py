"""Torque sensors between springs and links, as laws read them: tau and dtau."""

import shutil

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, sigma_of, swing

from oc_dyn import elastic as el
from oc_dyn.elastic.control import Controller
from oc_dyn.elastic.torque_sensors import torque_sensors


def reading_torques(elastic, *, kp=0.3, kd=0.01):
    """Feedforward of the springs' torques with feedback of the measured ones and of their rates; it has no use but to
    read them."""
    f = el.feedforward(elastic).function
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    joints = len(elastic.joints)
    torques = {"tau": ca.SX.sym("tau", joints), "dtau": ca.SX.sym("dtau", joints)}
    out = f(**ports)
    feedback = kp * torques["tau"] + kd * torques["dtau"]
    rows = ca.vertcat(*(feedback[k] for k, j in enumerate(elastic.joints) for _ in j.tau))
    motors = ca.DM(len(elastic.motor_names), rows.numel())
    for k, m in enumerate(elastic.elastic_motors):
        motors[m, k] = 1
    out["tau_m"] = out["tau_m"] - motors @ rows
    names = [n for n in ("tau_m", "tau_sigma") if n in out]
    law = ca.Function("law", [*ports.values(), *torques.values()], [out[n] for n in names], [*ports, *torques], names)
    return Controller("law", elastic, law)


@pytest.mark.parametrize(
    "name",
    ["linear", "mixed", "nonlinear", "direct", "pairs", "mixed_kinds", pytest.param("driven", marks=pytest.mark.slow)],
)
def test_rate_of_the_springs_torque_is_its_derivative_along_the_motion(name):
    """dtau against central differences of tau along the plant's own rates, and tau with the links' motion it causes."""
    elastic, rng = arm(name), np.random.default_rng(1)
    p, f = el.plant(elastic), torque_sensors(elastic)
    x, u = 0.1 * rng.normal(size=p.size), rng.normal(size=p.controls)
    count = len(elastic.sigma_names)
    sigma, dsigma = 400 + rng.uniform(size=count), rng.normal(size=count)
    if elastic.stiffness_driven:
        x[p.parts["sigma"]] = sigma
    dx = p.rates(x, u, np.r_[sigma, dsigma]).full().ravel()
    h = 1e-6
    ends = [f(x + s * h * dx, np.r_[sigma + s * h * dsigma, dsigma])[0].full() for s in (-1, 1)]
    tau, dtau = (y.full() for y in f(x, np.r_[sigma, dsigma]))
    assert tau.shape == dtau.shape == (len(elastic.joints), 1)
    assert np.abs((ends[1] - ends[0]) / (2 * h) - dtau).max() < 1e-7 * max(1, np.abs(dtau).max())


def test_dampers_count_in_the_torque_but_not_in_its_rate():
    damped = el.elastic_robot(arm("linear").robot, 400.0, motor_inertia=0.3, damping=2.0)
    bare = damped.undamped()
    x = np.random.default_rng(0).normal(size=12)
    (tau, dtau), (spring, rate) = (torque_sensors(e)(x, []) for e in (damped, bare))
    assert np.allclose(np.ravel(tau - spring), 2.0 * (x[9:] - x[3:6]), atol=1e-12)
    assert np.array_equal(dtau, rate)


@pytest.mark.parametrize("sampled", [{}, {"sample_time": 1e-3}])
def test_a_law_of_measured_torques_equals_that_of_deflections(sampled):
    """Feedback of the torque of linear springs is feedback of K (theta - q) and K (theta' - q')."""
    elastic = arm("linear")
    law = reading_torques(elastic)
    f, K = el.feedforward(elastic).function, ca.DM([500, 400, 300])
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    z, dz = ports["theta"] - ports["q"], ports["dtheta"] - ports["v"]
    same = ca.Function("law", [*ports.values()], [f(**ports)["tau_m"] - K * (0.3 * z + 0.01 * dz)], [*ports], ["tau_m"])
    reference = el.reference(elastic, swing(3), duration=0.1)
    a, b = (el.simulate(elastic, c, reference, **sampled) for c in (law, Controller("law", elastic, same)))
    assert np.abs(a.states - b.states).max() < 1e-10
    assert np.abs(a.tau_m - b.tau_m).max() < 1e-9


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", ["mixed", "direct"])
def test_the_harness_in_c_feeds_torque_sensors(name, tmp_path):
    elastic = arm(name)
    law = reading_torques(elastic)
    reference = el.reference(elastic, swing(3), duration=0.05, sigma=sigma_of(name))
    made = el.generate_controller(law, tmp_path, name="law", reference=reference, flags=("-O0",))
    _, states, _ = made.loop(50)
    run = el.simulate(elastic, law, reference, sample_time=1e-3, dt=1e-3)
    assert np.abs(states - run.states).max() < 1e-10 * np.abs(run.states).max()
    assert "tau[" in (tmp_path / "law.h").read_text()
