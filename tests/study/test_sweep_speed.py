"""Executors beside one another, in a small run."""

import csv
import json

import pytest

from oc_dyn import cli
from oc_dyn.study.sweep_speed import APART, HEAD, WAYS


@pytest.mark.slow
def test_quick_run(tmp_path, capsys):
    assert cli.main(["study", "sweep_speed", "--quick", "--out", str(tmp_path)]) == 0
    with open(tmp_path / "executors.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(HEAD)
    names = [row["executor"] for row in rows]
    assert names in ([*WAYS, APART], [*WAYS[:2], APART])  # Dask may not be installed
    assert [int(row["plans"]) for row in rows] == [4] * (len(names) - 1) + [8]
    serial, both = float(rows[0]["seconds"]), float(rows[-1]["seconds"])
    assert float(rows[-1]["speed-up"]) == pytest.approx(2 * serial / both, rel=0.02, abs=0.02)
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert [row["executor"] for row in facts["executors"]] == names
    assert all(name in capsys.readouterr().out for name in names[:1])
