"""The study of microcontrollers: what it leaves, with the compiler and the emulator and without."""

import csv
import json

import pytest

from oc_dyn.study import cortex, embedded
from oc_dyn.study.cortex_cases import cases


@pytest.mark.slow
@pytest.mark.skipif(not cortex.available(cortex.GCC, cortex.QEMU), reason="needs arm-none-eabi-gcc and qemu-arm")
@pytest.mark.parametrize("kind", ["function", "law", "player", "controller"])
def test_rows_of_every_kind(kind, tmp_path, monkeypatch):
    """Single precision on the processor is Python's double to its digits; the code is re-entrant, its stack bounded."""
    chosen = [x for x in cases(True) if x[0] == kind][: 1 if kind == "controller" else 4]
    monkeypatch.setattr(embedded, "cases", lambda quick: chosen)
    report = embedded.run(tmp_path, quick=True, progress=False)
    with open(tmp_path / "embedded.csv", newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    assert [(r["what"], r["processor"]) for r in rows] == [(x[1], t) for x in chosen for t in cortex.TARGETS]
    for row in rows:
        assert (row["data [B]"], row["bss [B]"]) == ("0", "0")
        if kind == "controller":  # its programs are solved as far as floats can: what is just feasible may be relaxed
            assert row["statuses"] == "as in Python" or set(row["statuses"].split()) <= {"0", "4"}
            assert float(row["error"]) < 2e-2
        else:
            assert row["statuses"] == "as in Python"
            assert float(row["error"]) < 2e-5
        assert int(row["stack [B]"]) > 0
        assert row["what"] in report
    if kind in ("law", "player"):
        assert all(float(row["of 1 ms at 168 MHz"]) < 0.5 for row in rows if row["processor"] == "Cortex-M4F")
    assert json.loads((tmp_path / "manifest.json").read_text())["embedded"]


def test_without_the_compiler(tmp_path, monkeypatch):
    monkeypatch.setattr(cortex, "available", lambda *programs: False)
    assert "nothing is measured" in embedded.run(tmp_path, quick=True, progress=False)
    assert not (tmp_path / "embedded.csv").exists()
