"""Simulation as in a laboratory: delay, encoders, filtered differences, torque sensors."""

import shutil

import casadi as ca
import numpy as np
import pytest
from elastic_arms import swing

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.control import Controller
from oc_dyn.elastic.sensor_effects import sensor_effects

H = 1e-3
LENGTH, MASS, K, B = 0.4, 3.0, 300.0, 0.2
GAINS = {"q": -20.0, "v": 0.5, "theta": 150.0, "dtheta": 8.0}  # of states; they damp with all of the effects below


def one_joint(**options):
    return el.elastic_robot(od.robots.planar_arm(1, LENGTH, MASS), K, motor_inertia=B, **options)


def law_of(elastic, outputs):
    """Controller with tau_m = outputs(ports), ports q_ref, v_ref, q, v, theta, dtheta, tau, dtau."""
    n, m = elastic.nv, len(elastic.joints)
    sizes = {"q_ref": n, "v_ref": n, "q": n, "v": n, "theta": m, "dtheta": m, "tau": m, "dtau": m}
    ports = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    f = ca.Function("law", [*ports.values()], [outputs(ports)], [*ports], ["tau_m"])
    return Controller("law", elastic, f)


def linear_law(elastic):
    def outputs(p):
        error = {"q": p["q_ref"] - p["q"], "v": p["v_ref"] - p["v"]}
        error |= {"theta": p["q_ref"] - p["theta"], "dtheta": p["v_ref"] - p["dtheta"]}
        return sum(k * error[name] for name, k in GAINS.items())

    return law_of(elastic, outputs)


def by_hand(steps, delay, bits, hz, zeros, limit, x0, path):
    """(q, v, theta, dtheta) at the samples, in numpy alone: a slender rod on a spring, by Runge-Kutta of order 4."""
    inertia, moment = MASS * LENGTH**2 / 3, MASS * 9.81 * LENGTH / 2

    def rates(x, u):
        q, v, theta, dtheta = x
        spring = K * (theta - q)
        return np.array([v, (spring - moment * np.cos(q)) / inertia, dtheta, (u - spring) / B])

    step = 2 * np.pi / 2**bits
    share = np.exp(-2 * np.pi * hz * H)
    x, sent, rows = np.array(x0), [], []
    speeds, last = x[[1, 3]], None
    for i in range(steps + 1):
        reading = zeros + step * np.floor((x[[0, 2]] - zeros) / step + 0.5)
        if last is not None:
            speeds = share * speeds + (1 - share) * (reading - last) / H
        last = reading
        ref, dref = path(i * H)
        u = GAINS["q"] * (ref - reading[0]) + GAINS["theta"] * (ref - reading[1])
        u += GAINS["v"] * (dref - speeds[0]) + GAINS["dtheta"] * (dref - speeds[1])
        sent.append(np.clip(u, -limit, limit))
        rows.append(x)
        acting = sent[max(i - delay, 0)]
        for _ in range(8):
            h = H / 8
            k1 = rates(x, acting)
            k2 = rates(x + h / 2 * k1, acting)
            k3 = rates(x + h / 2 * k2, acting)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rates(x + h * k3, acting))
    return np.array(rows)


@pytest.mark.parametrize("delay, bits, hz", [(0, 14, 80.0), (1, 17, 200.0), (2, 12, 50.0)])
def test_one_joint_equals_a_simulation_by_hand(delay, bits, hz):
    elastic = one_joint()
    reference = el.reference(elastic, lambda t: 0.3 * (1 - ca.cos(4 * t)), duration=0.1)
    options = {"delay": delay, "encoder_bits": bits, "velocity_filter": hz, "torque_limit": 5.0}
    run = el.simulate(elastic, linear_law(elastic), reference, sample_time=H, dt=H, **options)
    rows = by_hand(
        100, delay, bits, hz, run.facts["encoder_zeros"], 5.0, run.states[0],
        lambda t: (0.3 * (1 - np.cos(4 * t)), 1.2 * np.sin(4 * t)),
    )  # fmt: skip
    assert np.abs(run.states - rows).max() < 1e-9
    assert np.abs(run.tau_m).max() == 5.0  # the limit acted


def test_speeds_are_filtered_differences_of_exact_angles():
    """Without encoders; the law gives what it measures, and the motion is that of a robot without torque."""
    elastic = one_joint()
    law = law_of(elastic, lambda p: 1e-9 * p["dtheta"])
    reference = el.reference(elastic, lambda t: 0.3 * (1 - ca.cos(4 * t)), duration=0.05)
    run = el.simulate(elastic, law, reference, sample_time=H, dt=H, velocity_filter=30.0, start={"dtheta": 1.0})
    share, expected = np.exp(-2 * np.pi * 30.0 * H), [run.dtheta[0, 0]]
    for difference in np.diff(run.theta[:, 0]) / H:
        expected.append(share * expected[-1] + (1 - share) * difference)
    assert np.allclose(1e9 * run.tau_m[:, 0], expected, atol=1e-8)


def test_encoders_read_multiples_of_their_step():
    elastic = el.elastic_robot(od.robots.planar_arm(2), 300.0, motor_inertia=0.2)
    law = law_of(elastic, lambda p: 1e-6 * p["theta"])
    reference = el.reference(elastic, swing(2), duration=0.02)
    run = el.simulate(elastic, law, reference, sample_time=H, dt=H, encoder_bits={"theta": 10, "q": 12}, seed=3)
    step, zeros = 2 * np.pi / 2**10, run.facts["encoder_zeros"][2:]
    counts = (1e6 * run.tau_m - zeros) / step
    assert np.abs(counts - np.round(counts)).max() < 1e-6
    assert np.abs(1e6 * run.tau_m - run.theta).max() <= step / 2 * (1 + 1e-6)
    assert np.abs(zeros).max() <= step / 2


@pytest.mark.slow
def test_noise_and_bias_of_torque_sensors():
    """The law's output is its reading: 400 of them have the mean and deviation asked for."""
    elastic = one_joint()
    law = law_of(elastic, lambda p: p["tau"])
    reference = el.reference(elastic, lambda t: 0.0 * t, duration=0.4)
    options = {"sample_time": H, "dt": H, "start": {"theta": 0.01}}
    exact = el.simulate(elastic, law, reference, **options)
    assert np.abs(exact.tau_m - exact.tau).max() < 1e-12
    runs = [
        el.simulate(elastic, law, reference, torque_noise=0.2, torque_bias=0.5, seed=s, **options) for s in (1, 1, 2)
    ]
    error = runs[0].tau_m - runs[0].tau
    assert abs(error.mean() - 0.5) < 4 * 0.2 / np.sqrt(error.size)
    assert abs(error.std() - 0.2) < 4 * 0.2 / np.sqrt(2 * error.size)
    assert np.array_equal(runs[0].states, runs[1].states)
    assert not np.array_equal(runs[0].states, runs[2].states)


def test_rates_of_measured_torques_are_filtered_differences():
    elastic = one_joint(damping=0.5)
    law = law_of(elastic, lambda p: 1e-9 * p["dtau"])
    reference = el.reference(elastic.undamped(), lambda t: 0.3 * (1 - ca.cos(4 * t)), duration=0.05)
    run = el.simulate(elastic, law, reference, sample_time=H, dt=H, velocity_filter=30.0, start={"theta": 0.02})
    share, expected = np.exp(-2 * np.pi * 30.0 * H), [K * (run.dtheta[0, 0] - run.v[0, 0])]
    for difference in np.diff(run.tau[:, 0]) / H:
        expected.append(share * expected[-1] + (1 - share) * difference)
    assert np.allclose(1e9 * run.tau_m[:, 0], expected, rtol=1e-6, atol=1e-4)


def test_a_delay_moves_torques_by_whole_samples():
    """Of a law that does not read the state; the first torque acts until the second one comes."""
    elastic = one_joint()
    reference = el.reference(elastic, swing(1), duration=0.03)
    plain, late = (
        el.simulate(elastic, el.feedforward(elastic), reference, sample_time=H, dt=H, delay=k) for k in (0, 3)
    )
    assert np.abs(late.tau_m[3:] - plain.tau_m[:-3]).max() < 1e-12
    assert np.abs(late.tau_m[:3] - plain.tau_m[0]).max() < 1e-12


def test_memory_is_moved_when_the_law_runs_not_when_its_torque_acts():
    """An integrator of the motors' error, with memory_rate or as memory_next: the same run."""
    elastic = one_joint()
    ports = {n: ca.SX.sym(n) for n in ("q_ref", "v_ref", "q", "v", "theta", "dtheta", "memory")}
    error = ports["q_ref"] - ports["theta"]
    torque = 150 * error + 8 * (ports["v_ref"] - ports["dtheta"]) + 50 * ports["memory"]
    first = ca.Function("first", [ca.SX.sym("q")], [ca.DM(0.02)], ["q"], ["memory"])
    reference = el.reference(elastic, lambda t: 0.3 * (1 - ca.cos(4 * t)), duration=0.1)
    runs = []
    for name, x in (("memory_rate", error), ("memory_next", ports["memory"] + H * error)):
        f = ca.Function("law", [*ports.values()], [torque, x], [*ports], ["tau_m", name])
        law = Controller("law", elastic, f, 1, first)
        runs.append(el.simulate(elastic, law, reference, sample_time=H, dt=H, delay=2))
    assert np.abs(runs[0].states - runs[1].states).max() < 1e-11
    with pytest.raises(od.ShapeError, match="memory_next.*give sample_time"):
        el.simulate(elastic, law, reference)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"delay": 0.5}, "delay .whole samples. is 0.5, expected an integer"),
        ({"delay": -1}, "delay"),
        ({"encoder_bits": 0}, "encoder_bits of q is 0, expected an integer"),
        ({"encoder_bits": {"v": 17}}, "encoders"),
        ({"velocity_filter": 0.0}, "velocity_filter is 0"),
        ({"torque_noise": -0.1}, "torque_noise is"),
        ({"torque_noise": [0.1, 0.1, 0.1]}, "torque_noise: got 3 values, expected 1"),
        ({"torque_bias": np.nan}, "torque_bias is"),
    ],
)
def test_what_is_refused(options, words):
    elastic = one_joint()
    reference = el.reference(elastic, lambda t: 0.3 * t, duration=0.01)
    with pytest.raises((od.ShapeError, od.UnknownName), match=words):
        el.simulate(elastic, linear_law(elastic), reference, sample_time=H, **options)


def test_encoders_are_of_angles():
    b = od.RobotBuilder("cart")
    b.add_link("rail")
    b.add_body("cart", "prismatic", "rail", joint="slide", mass=2.0, axis=(1, 0, 0), inertia=0.1 * np.eye(3))
    cart = el.elastic_robot(b.build(), 300.0, motor_inertia=0.2)
    with pytest.raises(od.ModelError, match="encoder_bits are of angles, and slide move along lines; give noise="):
        sensor_effects("simulate", cart, encoder_bits=17)
    assert sensor_effects("simulate", cart, velocity_filter=100.0).differenced


def test_effects_are_for_sampled_laws():
    elastic = one_joint()
    reference = el.reference(elastic, lambda t: 0.3 * t, duration=0.01)
    with pytest.raises(od.ShapeError, match="delay, encoder_bits: for a sampled law.*give sample_time"):
        el.simulate(elastic, linear_law(elastic), reference, delay=1, encoder_bits=17)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_memory_of_the_next_sample_in_c(tmp_path):
    """A law that gives memory_next, here a sum of errors that forgets: the loop in C equals that of simulate."""
    elastic = one_joint()
    ports = {n: ca.SX.sym(n) for n in ("q_ref", "v_ref", "q", "v", "theta", "dtheta", "memory")}
    error = ports["q_ref"] - ports["theta"]
    torque = 150 * error + 8 * (ports["v_ref"] - ports["dtheta"]) + 5 * ports["memory"]
    f = ca.Function(
        "law", [*ports.values()], [torque, 0.9 * ports["memory"] + error], [*ports], ["tau_m", "memory_next"]
    )
    first = ca.Function("first", [ca.SX.sym("q")], [ca.DM(0.02)], ["q"], ["memory"])
    law = Controller("law", elastic, f, 1, first)
    reference = el.reference(elastic, lambda t: 0.3 * (1 - ca.cos(4 * t)), duration=0.05)
    made = el.generate_controller(law, tmp_path, reference=reference, sample_time=H, flags=("-O0",))
    run = el.simulate(elastic, law, reference, sample_time=H, dt=H)
    _, states, commands = made.loop(50)
    assert np.abs(states - run.states).max() < 1e-10
    assert np.abs(commands - run.tau_m).max() < 1e-9
