"""The study of batches, quick: its tables, and that no bit differs."""

import csv
import json

import pytest
import samples

from oc_dyn import study
from oc_dyn.codegen.build import find_compiler
from oc_dyn.errors import SolveError
from oc_dyn.study.peers.robots import FILES


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_batch_peers(tmp_path):
    try:
        find_compiler()
    except SolveError:
        pytest.skip("needs a C compiler")
    samples.example_robot(FILES["panda"][0])
    text = study.run("batch_peers", tmp_path, quick=True)
    (batch,) = rows(tmp_path / "batch.csv")
    assert int(batch["lanes"]) > 1
    assert float(batch["difference"]) < 1e-14
    assert [int(row["other bits"]) for row in rows(tmp_path / "programs.csv")] == [0] * 5
    accuracy = rows(tmp_path / "accuracy.csv")
    assert {row["function"] for row in accuracy} == {"sin", "cos", "tanh"}
    assert max(float(row["distance [ulp]"]) for row in accuracy) <= 4
    assert json.loads((tmp_path / "manifest.json").read_text())["points"] == [512, 512]
    assert "0 of" in text
