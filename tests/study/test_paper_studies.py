"""The studies of the papers, quick: tables, figures, reports, and numbers that are those of Functions."""

import csv
import importlib.util
import json
import re

import numpy as np
import pytest
from clones import clone

import oc_dyn as od
from oc_dyn import cli, study
from oc_dyn.study import ali, functions, kumar_mueller, singh, singh_forward, singh_parts

OURS = ("kumar_mueller", "ali", "kim", "singh")


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    """Sizes at which all of this takes seconds."""
    ways = {m: 3 for m in ("composite", "compact", "spatial_vector", "finite_difference_2")}
    monkeypatch.setattr(singh, "MOST", {singh.INVERSE: ways, singh.FORWARD: {"composite": 3, "ad_pure": 3}})
    monkeypatch.setattr(singh, "QUICK", (2, 3))
    monkeypatch.setattr(singh_parts, "QUICK", (2,))
    monkeypatch.setattr(singh_forward, "QUICK", (2,))
    monkeypatch.setattr(singh_forward, "MOST", {m: 2 for m in ("spatial_vector", "chain_rule", "bicomplex")})
    monkeypatch.setattr(ali, "QUICK", (6, range(4), (6, 11)))


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_writes_tables_figures_manifest_and_report(name, tmp_path):
    with clone(tmp_path / "clone") as quick:
        told = study.run(name, quick=True, progress=False)
    out = quick / name
    names = {p.name for p in out.iterdir()}
    assert any(n.endswith(".csv") for n in names)
    assert any(n.endswith(".png") for n in names)
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["command"].startswith(f"oc-dyn study {name} --quick")
    assert len(told.splitlines()) > 10
    assert "report.html" not in names
    check_report(name, out, told)
    globals()[f"check_{name}"](out, told)  # in the same test: on two workers a study would run twice


def check_report(name, out, told):
    if importlib.util.find_spec("jinja2") is None:
        return
    study.write_page(name, out, told)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(list(out.glob("*.png"))) > 0
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", page)
    assert "http" not in re.sub(r"base64,[^\"']*", "", page)  # which has any four letters now and then
    assert told.splitlines()[3].strip() in page
    assert "&#34;command&#34;" in page
    rows = read(out / "instructions.csv") if (out / "instructions.csv").exists() else []
    assert page.count("<tr>") == sum(len(read(p)) + 1 for p in out.glob("*.csv"))
    assert all(f">{row['instructions']}</td>" in page for row in rows)


def test_report_escapes_what_it_shows(tmp_path):
    pytest.importorskip("jinja2")
    from oc_dyn.study.html import write_report

    (tmp_path / "manifest.json").write_text('{"command": "<b>&", "date": "today"}')
    (tmp_path / "t.csv").write_text("field,code\n<script>,x\n")
    write_report(tmp_path, "s", "a < b")
    page = (tmp_path / "report.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &lt; b" in page
    assert "<b>" not in page


def check_kumar_mueller(out, told):
    counts = {(r["method"], int(r["order"])): int(r["instructions"]) for r in read(out / "instructions.csv")}
    panda = od.robots.panda()
    for m, r in (("recursive_body", 2), ("taylor", 1)):
        assert counts[m, r] == od.function(panda, "inverse_dynamics", order=r, method=m).n_instructions()
    assert {m for m, _ in counts} == set(kumar_mueller.WAYS)
    models = {row["method"]: row for row in read(out / "models.csv")}
    assert set(models) == set(kumar_mueller.WAYS)
    for row in models.values():
        assert int(row[row["own"]]) == counts[row["method"], 2]
        assert int(row["base parameters"]) <= int(row["as written"])
    times = {row["method"]: row for row in read(out / "times.csv")}
    assert float(times["recursive_body"]["interpreted ratio"]) == 1.0
    assert all(float(times[m]["interpreted ratio"]) > 0 for m in ("closed_form", "taylor"))
    assert counts["closed_form", 2] > 1.5 * counts["recursive_body", 2]
    assert counts["taylor", 2] < 0.7 * counts["recursive_body", 2]
    assert counts["recursive_body_leibniz", 2] < 0.6 * counts["recursive_body", 2]
    assert counts["closed_form_vectors", 2] < counts["recursive_body_leibniz", 2]
    assert float(times["second_order_body"]["published ratio"]) == pytest.approx(24 / 117, abs=1e-3)
    for row in read(out / "agreement.csv"):
        ways = ("closed_form", "closed_form_vectors", "taylor", "ad_jet_cse", "ad_taylor")
        assert max(float(row[m]) for m in ways) < 1e-13
        assert row["order"] == "0" or float(row["numerical differentiation"]) < 1e-8


def test_motion_of_kumar_mueller_is_its_own_derivative():
    t, h = np.linspace(0, 5, 7), 1e-4
    before, at, after = (kumar_mueller.motion(t + x) for x in (-h, 0, h))
    for k in range(len(at) - 1):
        assert np.abs((after[k] - before[k]) / (2 * h) - at[k + 1]).max() < 1e-6 * np.abs(at[k + 1]).max()


def check_ali(out, told):
    for row in read(out / "own.csv"):
        if int(row["order"]):  # the recursion gains on AD of its own order 0
            assert int(row["recursion"]) < int(row["series"]) < int(row["as published"])
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["findings"]
    grow = {(f["over"], f["quantity"], f["method"]): f for f in facts}
    assert grow["order", "inverse_dynamics", "recursive_spatial"]["off_parabola"] < 1e-3
    assert grow["order", "inverse_dynamics", "ad_time"]["factor"] > 2.3
    assert grow["order", "inverse_dynamics", "ad_jet_cse"]["factor"] < 1.9  # less at each order
    assert 0.7 < grow["bodies", "inverse_dynamics", "taylor"]["power"] < 1.2
    wanted = ("forward_dynamics", "taylor", "2")
    (row,) = (r for r in read(out / "orders.csv") if (r["quantity"], r["method"], r["order"]) == wanted)
    f = functions.built("forward_dynamics", functions.branches(6), 2, "taylor")
    assert int(row["instructions"]) == f.n_instructions()
    for row in read(out / "times.csv"):
        assert float(row["low"]) <= float(row["ratio"]) <= float(row["high"])
        assert float(row["microseconds"]) > 0
        assert row["steady"] in ("yes", "no")
        assert row["method"] != ali.WAYS[row["quantity"]][0] or float(row["ratio"]) == 1.0


def test_branches():
    r = functions.branches(16)
    assert len(r.bodies) == 16
    assert r.nv == 21
    with pytest.raises(od.ShapeError, match="1 \\+ 5 k"):
        functions.branches(15)


def check_kim(out, told):
    rows = read(out / "costs.csv")
    assert max(float(r["error"]) for r in rows) < 1e-13
    of = {(r["quantity"], r["method"]): int(r["instructions"]) for r in rows}
    r = od.robots.double_pendulum()
    assert (
        of["hybrid_dynamics_partials", "recursive_scalar"]
        == functions.built("hybrid_dynamics_partials", r, 0, "recursive_scalar").n_instructions()
    )
    assert ("forward_dynamics_by_design", "ad") in of
    assert ("forward_dynamics_partials", "recursive_scalar_via_inverse") in of


def check_singh(out, told):
    slopes = {(r["quantity"], r["robot"], r["method"]): r for r in read(out / "slopes.csv")}
    assert slopes[singh.INVERSE, "tree", "spatial_vector"]["published A"] == "1.45"
    of = {(r["quantity"], r["robot"], r["method"], r["bodies"]): r for r in read(out / "sizes.csv")}
    f = od.function(od.robots.chain(3), singh.INVERSE, method="composite")
    a, b = (of[singh.INVERSE, "chain", "composite", n] for n in "23")
    assert int(b["instructions"]) == f.n_instructions()
    A = float(slopes[singh.INVERSE, "chain", "composite"]["A of instructions"])
    assert A == pytest.approx(np.log(f.n_instructions() / int(a["instructions"])) / np.log(1.5), abs=0.01)
    assert of[singh.INVERSE, "chain", "compact", "3"]["instructions"] == ""  # it calls Functions
    exact = [r for r in read(out / "forward.csv") if r["max_rel"] and not r["method"].startswith("finite")]
    assert {r["method"] for r in exact} == {"spatial_vector", "chain_rule"}
    assert all(float(r["max_rel"]) < 1e-12 for r in exact)
    assert {"forward.png", "terms.png", "programs.png", "singh.png"} <= {p.name for p in out.glob("*.png")}
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    crossed = facts["crossovers"]
    assert set(facts["parts"]) == set(singh.parts(quick=True))
    ways = {(row["term"], row["way"]) for row in crossed}
    assert ways == {(t, w) for t, ws in singh_parts.TERMS.items() for w in ws if w != singh_parts.REFERENCE}
    assert "All ways agree" in told
    assert "double_pendulum" in told
    assert "outer term" in told


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_executor_makes_no_difference_to_counts(tmp_path, capsys):
    counts = []
    for executor in ("processes:1", "serial"):
        out = tmp_path / executor.partition(":")[0]
        assert cli.main(["study", "kim", "--quick", "--executor", executor, "--out", str(out)]) == 0
        assert "written to" in capsys.readouterr().out
        counts.append([(r["quantity"], r["method"], r["instructions"], r["error"]) for r in read(out / "costs.csv")])
    assert counts[0] == counts[1]


def test_wrong_executors_are_told(capsys, tmp_path):
    assert cli.main(["study", "kim", "--executor", "threads", "--out", str(tmp_path / "x")]) == 2
    assert "processes:N" in capsys.readouterr().err
    assert cli.main(["study", "peers", "--quick", "--executor", "processes:2", "--out", str(tmp_path / "x")]) == 2
    assert "no executor" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_every_study_is_there():
    assert {"ali", "garofalo", "growth", "kim", "kumar_mueller", "matrices", "singh"} <= set(study.STUDIES)
    assert all(callable(study.load(name)) for name in study.STUDIES)
    assert study.load("garofalo") is study.load("matrices")
    assert study.folder("garofalo") == study.folder("matrices")


def test_what_is_not_steady_is_measured_again_and_the_calmest_is_taken(monkeypatch):
    monkeypatch.setattr(functions, "PAUSE", 0.0)
    calm, wild = np.ones((functions.ENOUGH, 2)), np.ones((functions.ENOUGH, 2))
    wild[::2] = 3.0
    wilder, few = wild**2, wild[:3]

    def measured(*runs):
        left = list(runs)
        rows, times = functions.steadied(lambda: left.pop(0), [0, 0])
        return {row["steady"] for row in rows}, times, len(left)

    steady, times, left = measured(wild, calm, wild)
    assert (steady, times is calm, left) == ({"yes"}, True, 1)
    steady, times, left = measured(wilder, wild, wilder, wilder)
    assert (steady, times is wild, left) == ({"no"}, True, 0)
    steady, times, left = measured(few, calm)
    assert (steady, times is few, left) == ({"no"}, True, 1)


def test_times_that_are_not_steady_are_told():
    """A machine that changes its speed for some rounds, and by other factors for other Functions."""
    even = np.tile([[2e-6, 1e-6]], (20, 1)) * (1 + 0.01 * np.arange(20)[:, None])
    a, b = functions.summary(even, [0, 0])
    assert (a["steady"], b["steady"], b["ratio"], b["microseconds"]) == ("yes", "yes", "0.5", "1.095")
    uneven = even.copy()
    uneven[:12] *= [0.4, 0.7]  # most rounds
    a, b = functions.summary(uneven, [0, 0])
    assert (a["steady"], b["steady"]) == ("no", "no")
    assert float(b["ratio"]) > 0.8
    assert functions.summary(even, [0, 1])[1]["ratio"] == "1"
