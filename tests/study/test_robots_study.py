"""The study robots: what it finds in wheels, what it compares, what it says of what differs."""

import csv

import pytest

from oc_dyn import study
from oc_dyn.study import robots

HOPPER = """<mujoco><worldbody>
  <body name="a"><joint name="j" damping="2" stiffness="3"/><geom size="0.1" pos="0.2 0 0"/></body>
  </worldbody></mujoco>"""


def test_a_file_beside_mujoco(tmp_path):
    pytest.importorskip("mujoco")
    file = tmp_path / "hopper.xml"
    file.write_text(HOPPER)
    row = robots.measured(file)
    assert row["outcome"] == "loaded"
    assert float(row["torque difference"]) < 1e-13
    assert float(row["mass difference"]) < 1e-13
    file.write_text(HOPPER.replace("<geom", "<geo"))
    row = robots.measured(file)
    assert row["outcome"] == "refused"
    assert "MuJoCo" in row["reason"]


def test_what_differs_is_told():
    row = {"wheel": "w", "file": "f", "outcome": "loaded", "torque difference": "1e-3"}
    assert "DIFFERS: f: 1e-3" in robots.report([row])
    assert "DIFFERS" not in robots.report([{**row, "torque difference": "1e-12"}])


@pytest.mark.slow
def test_quick_run(tmp_path):
    if not robots.files_of("example-robot-data"):
        pytest.skip("no wheel of robots is installed")
    told = study.run("robots", tmp_path, quick=True, progress=False)
    with open(tmp_path / "robots.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 3
    assert all(row["outcome"] in ("loaded", "refused") for row in rows)
    assert "example-robot-data" in told
    assert (tmp_path / "manifest.json").exists()
