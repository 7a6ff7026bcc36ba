"""Laws of control as C: the same numbers as in Python, no allocation, and few instructions."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from elastic_arms import arm, sigma_of, swing, three

import oc_dyn as od
from oc_dyn import elastic as el

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
QUICK = ("-std=c99", "-O1", "-ffp-contract=off")


def points(law, count=20):
    rng = np.random.default_rng(0)
    return 0.3 * rng.normal(size=(count, law.function.nnz_in()))


def in_python(law, rows):
    ends = np.cumsum([law.function.size1_in(i) for i in range(law.function.n_in())])[:-1]
    return law.function.map(len(rows))(*np.split(rows.T, ends)).full().T


@pytest.mark.slow
def test_law_of_seven_joints(tmp_path):
    """Feedback linearisation of the Panda on springs: 5002 instructions, equal to the Python law to 1e-10."""
    panda = el.elastic_robot(od.robots.panda(), 7000.0, motor_inertia=0.3)
    law = el.feedback_linearization(panda, 20.0)
    made = el.generate_controller(law, tmp_path, flags=QUICK, measured_limits=None)
    rows = points(law)
    expected = in_python(law, rows)
    assert np.abs(made.values(rows) - expected).max() < 1e-10 * np.abs(expected).max()
    assert law.function.n_instructions() <= 5002
    assert made.seconds_per_step(1_000) > 0
    assert [p.name for p in made.sources] == ["feedback_linearization.c", "feedback_linearization_law.c"]
    with pytest.raises(od.ShapeError, match="without a reference"):
        made.loop(10)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["linear", "mixed", "driven"])
def test_loop_with_the_simulated_robot(name, tmp_path):
    """The harness runs the law against the robot as simulate does, memory and torque limits included."""
    elastic = arm(name)
    reference = el.reference(elastic, swing(3), duration=0.2, sigma=sigma_of(name))
    law = el.feedback_linearization(elastic, 20.0)
    limit = {"torque_limit": 15.0} if name == "mixed" else {}
    made = el.generate_controller(
        law, tmp_path, name="law", reference=reference, sample_time=2e-3, flags=QUICK, **limit
    )
    run = el.simulate(elastic, law, reference, sample_time=2e-3, dt=2e-3, **limit)
    t, states, commands = made.loop(100)
    assert np.allclose(t, run.t, atol=1e-12)
    assert t[-1] == pytest.approx(0.2)
    assert np.abs(states - run.states).max() < 1e-10 * np.abs(run.states).max()
    torques = commands[:, : len(elastic.motor_names)]
    assert np.abs(torques - run.tau_m).max() < 1e-10 * np.abs(run.tau_m).max()
    if limit:
        assert np.abs(torques).max() == 15.0


@pytest.mark.slow
def test_a_law_follows_a_planned_motion_in_c(tmp_path):
    elastic = three()
    path = el.rest_to_rest([0.1, 0.0, -0.2], [0.3, -0.1, 0.2], 0.2, hold=0.05)
    reference, law = el.reference(elastic, path), el.feedforward_pd(elastic, 200, 20)
    made = el.generate_controller(law, tmp_path, name="law", reference=reference, flags=QUICK)
    _, states, _ = made.loop(250)
    assert np.abs(states[-1, :3] - path.pieces[-1, 0]).max() < 5e-3
    run = el.simulate(elastic, law, reference, sample_time=1e-3, dt=1e-3)
    assert np.abs(states - run.states).max() < 1e-10


def test_no_allocation_no_hidden_state_no_warnings(tmp_path):
    law = el.feedback_linearization(arm("mixed"), 20.0)
    made = el.generate_controller(law, tmp_path, name="my_law", flags=QUICK)
    for path in made.sources:
        assert not re.search(r"\b(malloc|calloc|realloc|free|alloca)\b", path.read_text())
        command = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Werror", "-c", path.name, "-o", "part.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        if shutil.which("nm"):
            names = subprocess.run(
                ["nm", "-u", "part.o"], cwd=tmp_path, capture_output=True, text=True, check=True
            ).stdout
            assert set(names.split()) - {"U"} <= {
                "sin",
                "cos",
                "tanh",
                "sqrt",
                "my_law_law",
                "my_law_first",
                "memcpy",
                "memset",
                *_START,
            }
    header = (tmp_path / "my_law.h").read_text()
    assert "my_law_real tau_m[3];" in header
    assert "my_law_real memory[2];" in header
    assert made.inputs["q_ref"] == 3
    assert made.outputs == {"tau_m": 3}
    assert made.memory == 2


_START = ("_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail", "sincos")


def test_wrong_settings_are_refused(tmp_path):
    law = el.feedforward(arm("linear"))
    with pytest.raises(od.ShapeError, match="cannot name"):
        el.generate_controller(law, tmp_path, name="1st law")
    with pytest.raises(od.ShapeError, match="sample_time"):
        el.generate_controller(law, tmp_path, sample_time=0.0)
    with pytest.raises(od.ModelError, match="without a reference"):
        el.generate_controller(law, tmp_path, elastic=arm("linear"))
    with pytest.raises(od.SolveError, match="ended with status"):
        el.generate_controller(law, tmp_path, flags=("-std=nonsense",))
    made = el.generate_controller(law, tmp_path, compiler="no_such_compiler")
    assert made.program is None
    assert (tmp_path / "feedforward.c").exists()
    with pytest.raises(od.SolveError, match="not compiled"):
        made.values(np.zeros(27))
