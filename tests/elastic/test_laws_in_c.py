"""The laws by passivity and by modes as C: the numbers of Python in double, near them in single precision."""

import shutil

import numpy as np
import pytest
from law_tools import robot

from oc_dyn import elastic as el

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
QUICK = ("-std=c99", "-O0", "-ffp-contract=off")
LAWS = {
    "online_gravity_pd": ("single", lambda e: el.online_gravity_pd(e, 400.0, 20.0)),
    "full_state_feedback": ("single", lambda e: el.full_state_feedback(e, 150.0, 15.0, inertia=0.05)),
    "torque_rate": (
        "2r",
        lambda e: el.full_state_feedback(e, 150.0, 15.0, torque_rate=1.0, check=False, gravity="reference"),
    ),
    "impedance": ("single", lambda e: el.impedance(e, 60.0, inertia=0.05)),
    "cartesian_impedance": (
        "2r",
        lambda e: el.impedance(e, [5, 5, 5, 50, 50, 50], frame="tip", inertia=0.1, iterations=6),
    ),
    "esp": ("single", lambda e: el.esp(e, 150.0, 15.0, 5.0)),
    "esp_i": ("2r", lambda e: el.esp_i(e, 100.0, 10.0, 10.0)),
    "vsa_damping": ("vsa", lambda e: el.vsa_damping(e, 0.7)),
    "vsa_damping_2r": ("2r", lambda e: el.vsa_damping(e, 0.7)),
}
FAST = ("full_state_feedback", "vsa_damping")


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [pytest.param(n, marks=[] if n in FAST else [pytest.mark.slow]) for n in LAWS])
def test_laws_in_c(kind, tmp_path):
    name, make = LAWS[kind]
    law = make(robot(name))
    rng = np.random.default_rng(0)
    rows = 0.3 * rng.normal(size=(5, law.function.nnz_in()))
    ends = np.cumsum([law.function.size1_in(i) for i in range(law.function.n_in())])[:-1]
    if "sigma_ref" in law.function.name_in():
        rows[:, np.append(0, ends)[law.function.index_in("sigma_ref")]] += 150.0
    expected = law.function.map(5)(*np.split(rows.T, ends)).full().T
    for precision, tolerance in (("double", 1e-11), ("single", 2e-4)):
        made = el.generate_controller(
            law, tmp_path / precision, name="law", flags=QUICK, precision=precision, measured_limits=None
        )
        assert np.abs(made.values(rows) - expected).max() < tolerance * np.abs(expected).max(), precision
        assert ("tau" in made.inputs) == ("tau" in law.function.name_in())
