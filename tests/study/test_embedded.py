"""The study of microcontrollers: what it leaves, with the compiler and the emulator and without."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from oc_dyn import cli
from oc_dyn.study import apart, cortex, embedded, embedded_sizes
from oc_dyn.study.apart import Told
from oc_dyn.study.cortex_cases import cases


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.skipif(not cortex.available(cortex.GCC, cortex.QEMU), reason="needs arm-none-eabi-gcc and qemu-arm")
@pytest.mark.parametrize("kind", ["function", "law", "player", "controller"])
def test_rows_of_every_kind(kind, tmp_path, monkeypatch):
    """Single precision on the processor is Python's double to its digits; the code is re-entrant, its stack bounded."""
    chosen = [x for x in cases(True) if x[0] == kind][: 1 if kind == "controller" else 4]
    monkeypatch.setattr(embedded, "cases", lambda quick: chosen)
    monkeypatch.setattr(embedded_sizes, "rows", lambda *_: [])
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
    report = embedded.run(tmp_path, quick=True, progress=False)
    assert "steps: nothing is measured" in report
    assert "sizes: nothing is measured" in report
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


EARLIER = """
#include "mpc.h"
static double found[5];
static int count = 1;
int mpc_step(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem) {
  found[mem] = w[0];
  res[0] = found;
  return count++ + (arg && iw);
}
"""
NOW = """
#include "mpc.h"
int mpc_step(mpc_t *c, const double *in) { c->w[0] = in[0]; return 0; }
"""
DECLARED = {
    EARLIER: "#define casadi_real double\n#define casadi_int long long\n",
    NOW: "typedef struct {\n double memory[3];\n double w[11];\n int status, ready;\n} mpc_t;\n",
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Folder of an earlier checkout, and the Told of both sides, whose C is known."""
    earlier = tmp_path / "earlier"
    (earlier / "oc_dyn").mkdir(parents=True)
    (earlier / "oc_dyn" / "__init__.py").write_text("")
    sizes = {"arg": 4, "res": 3, "iw": 6, "w": 10, "memory": 7}
    told = {apart.HERE: (NOW, True), earlier: (EARLIER, False)}

    def run(case, folder, cache, limit, fill=False):
        text, instance = told[folder]
        if text is None:
            return Told("more than 600 s", [], 600.0)
        Path(case.arguments["folder"], "mpc.c").write_text(text)
        Path(case.arguments["folder"], "mpc.h").write_text(DECLARED.get(text, DECLARED[NOW]))
        return Told("done", [{"part": "controller", "instance": instance, **sizes}], 1.0)

    monkeypatch.setattr(apart, "_run", run)
    monkeypatch.setattr(embedded, "cases", lambda quick: [])
    return earlier, told


@pytest.mark.slow
@pytest.mark.skipif(not cortex.available("gcc"), reason="needs gcc")
def test_sizes_beside_an_earlier_checkout(tmp_path, written, capsys):
    earlier, _ = written
    out = tmp_path / "out"
    words = ["study", "embedded", "--quick", "--quiet", "--out", str(out)]
    assert cli.main([*words, "--against", str(earlier)]) == 0
    with open(out / "sizes.csv", newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    processors = list(embedded_sizes.targets())
    turns = [(x, p, who) for x in embedded_sizes.PROGRAMS for p in processors for who in ("before", "now")]
    assert [(r["limited"], r["processor"], r["code"]) for r in rows] == turns
    for row in rows:
        pointers = 7 * (4 if row["processor"] == "Cortex-M7" else 8)
        held = {"before": (80, pointers + (pointers % 8) + 8 * (6 + 10 + 7)), "now": (88, 8 * 14 + 8)}[row["code"]]
        assert (int(row["work [B]"]), int(row["instance [B]"])) == held
        data, bss = {"before": ("4", "40"), "now": ("0", "0")}[row["code"]]
        assert (row["data [B]"], row["bss [B]"], row["status"]) == (data, bss, "done")
        assert int(row["text [B]"]) > 0
        assert int(row["stack [B]"]) >= 0
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["command"].endswith("--against earlier")
    assert [row["code"] for row in facts["sizes"]] == [row["code"] for row in rows]
    assert "gcc" in facts["tools"]
    assert cli.main([*words, "--against", str(tmp_path)]) == 2
    assert "has no folder oc_dyn" in capsys.readouterr().err


@pytest.mark.skipif(not cortex.available("gcc"), reason="needs gcc")
def test_sizes_of_what_does_not_end_or_compile(tmp_path, written):
    earlier, told = written
    told[earlier], told[apart.HERE] = (None, False), ("this is no C", True)
    rows = embedded_sizes.rows(earlier, quick=True, progress=False)
    assert {row[-1] for row in rows if row[1] == "before"} == {"more than 600 s"}
    assert all("error" in row[-1] and len(row) == len(embedded_sizes.FIELDS) for row in rows if row[1] == "now")
    assert "sizes, torques, before, " in embedded.run(tmp_path / "out", quick=True, progress=False, against=earlier)


@pytest.mark.slow
@pytest.mark.skipif(not cortex.available("gcc"), reason="needs gcc")
def test_sizes_of_the_same_code_are_the_same(tmp_path, monkeypatch):
    shutil.copytree(apart.HERE / "oc_dyn", tmp_path / "oc_dyn", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(embedded_sizes, "QUICK", 1)
    monkeypatch.setattr(embedded_sizes, "PROGRAMS", {"torques": False})
    rows = embedded_sizes.rows(apart.checkout(tmp_path), quick=True, progress=False)
    assert [row[-1] for row in rows] == ["done"] * 2 * len(embedded_sizes.targets())
    for before, now in zip(rows[::2], rows[1::2], strict=True):
        assert (before[0], *before[2:]) == (now[0], *now[2:])
        assert now[4:6] == (0, 0)
        assert now[7] > now[6] > 0
