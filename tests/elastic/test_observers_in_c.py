"""Laws with observers, and laws with memories, as C: estimates are outputs, a bad input gives safe torques."""

import shutil

import numpy as np
import pytest
from elastic_arms import S3, arm, planar_arm, swing

from oc_dyn import elastic as el

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
QUICK = ("-std=c99", "-O1", "-ffp-contract=off")


def observed_law():
    e = arm("linear")
    law = el.feedforward_pd(e, 100.0, 10.0)
    speeds = el.velocity_filter(e, 300.0, of="theta")
    links = el.link_state_observer(e, 80.0)
    contact = el.momentum_observer(e, 50.0, threshold=5.0)
    friction = el.friction_observer(e, 100.0)
    return el.observed(law, speeds, links, contact, friction, compensate="friction_torque", torque_limit=200.0)


LAWS = {
    "observed": observed_law,
    "damped": lambda: el.feedback_linearization(
        el.elastic_robot(planar_arm(2), 400.0, damping=2.0, motor_inertia=0.3), 15.0, integral=True
    ),
    "complete": lambda: el.feedback_linearization(
        el.elastic_robot(planar_arm(2), 400.0, motor_inertia=0.3, coupling=S3[:2, :2]), 15.0
    ),
}


def test_what_an_observed_law_reads_and_gives():
    law = observed_law()
    read = [n for n in law.function.name_in() if not n.endswith("_ref")]
    assert read == ["theta", "tau", "memory"]  # no speeds, no encoders at the links
    out = ("tau_m", "dtheta_hat", "q_hat", "v_hat", "external_torque", "collision", "friction_torque", "memory_rate")
    assert law.function.name_out() == [*out]
    assert law.memory == 3 + 6 + 3 + 3


@pytest.mark.sample("observed-double")
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", LAWS)
def test_law_in_c(name, precision, tmp_path):
    law = LAWS[name]()
    made = el.generate_controller(law, tmp_path, name="law", sample_time=1e-3, precision=precision, flags=QUICK)
    f = law.function
    rng = np.random.default_rng(0)
    rows = 0.3 * rng.normal(size=(10, sum(f.size1_in(i) for i in range(f.n_in()))))
    names = [*(n for n in f.name_in() if n != "memory"), "memory"]
    ends = np.cumsum([f.size1_in(n) for n in names])[:-1]
    out = f.map(10)(**dict(zip(names, np.split(rows.T, ends), strict=True)))
    expected = np.vstack([out[n].full() for n in made.outputs]).T
    assert list(made.outputs) == [n for n in f.name_out() if n != "memory_rate"]
    tolerance = 1e-10 if precision == "double" else 1e-3
    assert np.abs(made.values(rows) - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_loop_in_c(name, tmp_path):
    """Memory and estimates in the harness, as simulate has them."""
    law = LAWS[name]()
    reference = el.reference(law.elastic, swing(law.elastic.nv), duration=0.1)
    made = el.generate_controller(law, tmp_path, name="law", reference=reference, sample_time=1e-3, flags=QUICK)
    run = el.simulate(law.elastic, law, reference, sample_time=1e-3, dt=1e-3)
    _, states, commands = made.loop(100)
    assert np.abs(states - run.states).max() < 1e-9 * np.abs(run.states).max()
    motors = len(law.elastic.motor_names)
    assert np.abs(commands[:, :motors] - run.tau_m).max() < 1e-8 * np.abs(run.tau_m).max()


@pytest.mark.slow
def test_selftest_of_an_observed_law(tmp_path):
    """The self-test that comes with the C: three recorded steps, a bad input, its status and safe outputs."""
    import subprocess

    law = observed_law()
    el.generate_controller(law, tmp_path, name="law", sample_time=1e-3, torque_limit=200.0, safe_torque=1.0)
    sources = ["law.c", "law_law.c", "law_selftest.c"]
    subprocess.run(["gcc", *QUICK, "-o", "selftest", *sources, "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./selftest"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
