"""The study of loops: embedding grows with the bodies, multipliers with more."""

import csv
import json

import pytest

from oc_dyn.study import load


@pytest.mark.slow
def test_loops(tmp_path):
    load("loops")(tmp_path, quick=True)
    with open(tmp_path / "loops.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["bodies"]) for row in rows[:-1]] == [3, 6, 12]
    assert all(int(row["inverse, embedding"]) < int(row["forward, multipliers"]) for row in rows[:-1])
    slopes = json.loads((tmp_path / "manifest.json").read_text())["slopes"]
    assert slopes["inverse, embedding"] < 1.15
    assert slopes["forward, clusters"] < slopes["forward, multipliers"]
    assert (tmp_path / "loops.png").exists()
