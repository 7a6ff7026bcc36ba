"""The study of waits: processes of their own, what becomes of those that fail, turns, rows, and what stays."""

import json
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import cli
from oc_dyn.study import apart, waits
from oc_dyn.study.apart import Case, Told
from oc_dyn.study.cases import builds, plans, timing
from oc_dyn.study.cases import calls as cases_of_calls
from oc_dyn.study.waits.lines import Line, lines
from oc_dyn.study.waits.tables import rows_of

CASES = """
import os, time
def good(x=1.0):
    yield {"part": "first", "value": x, "unit": "s", "cpu": x / 2, "told": os.environ["OC_DYN_CACHE"]}
    yield {"part": "again", "value": x / 4, "unit": "s", "cpu": x / 8, "told": ""}
def wrong():
    yield from good()
    raise TypeError("unexpected keyword at /home/someone/file.py")
def crash():
    yield next(good())
    os.kill(os.getpid(), 11)
def slow():
    yield next(good())
    time.sleep(60)
def where():
    import oc_dyn
    yield {"part": "place", "value": 0, "unit": "", "told": os.path.dirname(oc_dyn.__file__)}
"""


@pytest.fixture
def cases(tmp_path, monkeypatch):
    """A folder of cases of this module's."""
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "some.py").write_text(CASES)
    monkeypatch.setattr(apart, "CASES", folder)
    return folder


@pytest.fixture
def earlier(tmp_path):
    """Another checkout, whose package is empty."""
    folder = tmp_path / "earlier"
    (folder / "oc_dyn").mkdir(parents=True)
    (folder / "oc_dyn" / "__init__.py").write_text("")
    return folder


def told(**parts):
    """A Told of {part: seconds}."""
    rows = [{"part": k, "value": x, "unit": "s", "cpu": x / 2, "told": "T 1"} for k, x in parts.items()]
    return Told("done", rows, 1.0)


def test_processes_that_fail_keep_what_they_measured(cases):
    with apart.processes() as measure:
        found = {name: measure(Case("some", name)) for name in ("wrong", "crash")}
        unknown = measure(Case("some", "missing"))
    assert [len(x.parts) for x in found.values()] == [2, 1]
    assert found["wrong"].status == "TypeError: unexpected keyword at file.py"
    assert found["crash"].status == "ended by SIGSEGV"
    assert "missing" in unknown.status


@pytest.mark.slow
def test_a_process_that_takes_too_long_is_ended(cases):
    with apart.processes(limit=3.0) as measure:
        found = measure(Case("some", "slow"))
    assert found.status == "more than 3 s"
    assert [x["part"] for x in found.parts] == ["first"]
    assert found.seconds < 20


@pytest.mark.slow
def test_a_case_runs_in_the_checkout_that_is_asked_for(cases, earlier):
    with apart.processes() as measure:
        there, here = measure(Case("some", "where"), earlier), measure(Case("some", "where"))
    assert there.parts[0]["told"] == str(earlier / "oc_dyn")
    assert here.parts[0]["told"] == str(apart.HERE / "oc_dyn")


def test_caches_are_empty_or_kept(cases, earlier):
    with apart.processes() as measure:
        places = [measure(Case("some", "good")).parts[0]["told"] for _ in range(2)]
        kept = [measure(Case("some", "good", kept=True)).parts[0]["told"] for _ in range(2)]
        theirs = measure(Case("some", "good", kept=True), earlier).parts[0]["told"]
    assert places[0] != places[1]
    assert kept[0] == kept[1]
    assert theirs != kept[0]


def test_a_cache_is_filled_once_by_a_process_of_one_part(cases, monkeypatch):
    runs, run = [], apart._run

    def noted(case, folder, cache, limit, fill=False):
        found = run(case, folder, cache, limit, fill)
        runs.append((fill, len(found.parts)))
        return found

    monkeypatch.setattr(apart, "_run", noted)
    with apart.processes() as measure:
        for _ in range(2):
            measure(Case("some", "good", kept=True))
    assert runs == [(True, 1), (False, 2), (False, 2)]


def test_what_is_no_earlier_checkout_is_refused(tmp_path):
    with pytest.raises(od.ShapeError, match="has no folder oc_dyn"):
        apart.checkout(tmp_path)
    with pytest.raises(od.ShapeError, match="the checkout that runs"):
        apart.checkout(apart.HERE)
    assert apart.checkout(None) is None


def test_code_tells_other_checkouts_apart(earlier):
    before = apart.code(earlier)
    assert before != apart.code()
    (earlier / "oc_dyn" / "more.py").write_text("x = 1\n")
    assert apart.code(earlier) != before


# -- the table -----------------------------------------------------------------------------------------------------


def test_rows():
    peers = dict.fromkeys(("Opti", "other"), Case("some", "good"))
    line = Line("a plan", Case("some", "good"), peers, aims={"first": 0.4})
    runs = {"before": [told(first=4.0, again=2.0), told(first=3.0, again=2.5)], "now": [told(first=1.0, again=0.5)] * 2}
    runs |= {"Opti": [told(first=7.0)], "other": [Told("ModuleNotFoundError: No module named 'other'", [], 0.1)]}
    first, again = rows_of(line, runs)
    assert (first["before"], first["before median"], first["now"]) == ("3", "3.5", "1")
    assert first["ratio"] == "0.333"  # of the least CPU of each: 0.5 over 1.5
    assert (first["aim"], again["aim"]) == ("0.4", "")
    assert first["peers"] == "Opti 7 (T 1); other: ModuleNotFoundError: No module named 'other'"
    assert again["peers"] == ""


def test_rows_of_what_did_not_end():
    line = Line("a plan", Case("some", "good"))
    slow = Told("more than 120 s", told(first=100.0).parts, 120.0)
    first, again = rows_of(line, {"before": [slow], "now": [told(first=1.0, again=0.5)]})
    assert first["before"] == "100"
    assert (again["before"], again["ratio"]) == ("more than 120 s", "")
    (row,) = rows_of(line, {"before": [Told("ended by SIGSEGV", [], 1.0)], "now": [Told("SolveError: no", [], 1.0)]})
    assert (row["before"], row["now"], row["ratio"]) == ("ended by SIGSEGV", "SolveError: no", "")


def test_counts_are_compared_by_themselves():
    counted = [{"part": "Hessian", "value": x, "unit": "instructions"} for x in (200, 50)]
    runs = {who: [Told("done", [part], 1.0)] for who, part in zip(("before", "now"), counted, strict=True)}
    (row,) = rows_of(Line("a stage", Case("some", "good")), runs)
    assert (row["before"], row["now"], row["ratio"], row["before CPU"]) == ("200", "50", "0.25", "")


def test_lines_have_names_of_their_own_and_cases_that_are_there():
    names = [line.name for line in lines()]
    assert len(set(names)) == len(names)
    for line in lines():
        for case in (line.case, *line.peers.values()):
            path = apart.CASES / f"{case.module}.py"
            assert f"def {case.name}(" in path.read_text(encoding="utf-8")
            json.dumps(case.arguments)


def test_only_some_lines():
    some = [Line(name, Case("some", "good")) for name in ("Panda, 20 nodes", "Panda, 50 nodes", "import")]
    assert [x.name for x in apart.chosen_of(some, "20 NODES; import")] == ["Panda, 20 nodes", "import"]
    assert [x.name for x in apart.chosen_of(some, "panda, 20 nodes")] == ["Panda, 20 nodes"]
    assert apart.chosen_of(some, None) == some
    sizes = ["tree 2", "time of tree 2", "tree 24"]
    assert apart.chosen_of(sizes, "tree 2", str) == ["tree 2"]  # a whole name
    assert apart.chosen_of(sizes, "tree", str) == sizes
    with pytest.raises(od.ShapeError, match="nothing has 'talos'"):
        apart.chosen_of(some, "talos")


@pytest.mark.slow
def test_the_functions_that_are_built_are_there_whatever_quantities_are_added():
    assert set(builds.QUANTITIES) <= set(od.quantities())
    made = list(builds.all_of(od, od.robots.planar_2r(), range(1)))
    assert len(made) == len({f.name() for f in made}) == len(builds.QUANTITIES) == 31


# -- the study -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small(cases, monkeypatch):
    """Two lines, of cases that take no time; what is asked for is noted."""
    lines = [Line("one", Case("some", "good"), {"peer": Case("some", "wrong")}), Line("two", Case("some", "crash"))]
    monkeypatch.setattr(waits, "lines", lambda: [replace(line, quick=True) for line in lines])
    asked = []

    def run(case, folder, *_, **__):
        asked.append((case.name, folder))
        return told(first=1.0)

    monkeypatch.setattr(apart, "_run", run)
    return asked


def test_checkouts_take_turns_and_what_is_known_is_not_measured_again(tmp_path, small, earlier):
    out = tmp_path / "out"
    assert "one" in waits.run(out, progress=False, against=earlier)
    sides = [folder for name, folder in small if name == "good"]
    assert sides == [earlier, apart.HERE] * 3
    assert {p.name for p in out.iterdir()} == {"runs.csv", "waits.csv", "manifest.json", "rows.sqlite"}
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["command"].endswith("--against earlier")
    asked = len(small)
    waits.run(out, progress=False, against=earlier)
    assert len(small) == asked


def test_what_did_not_end_is_not_tried_again(earlier):
    asked = []

    def one(line, who, number, case, folder=None):
        asked.append((who, number))
        return Told("more than 120 s", [], 120.0) if folder else told(first=1.0)

    found = waits.measured(Line("a plan", Case("some", "good")), earlier, one)
    assert asked == [("before", 0), ("now", 0), ("now", 1), ("now", 2)]
    assert [len(x) for x in found.values()] == [1, 3]


def test_what_was_measured_before_ctrl_c_stays(tmp_path, small, monkeypatch):
    whole = apart._run

    def stopped(case, *rest):
        if case.name == "crash":
            raise KeyboardInterrupt
        return whole(case, *rest)

    monkeypatch.setattr(apart, "_run", stopped)
    with pytest.raises(KeyboardInterrupt):
        waits.run(tmp_path, progress=False)
    assert "one,now,2,done" in (tmp_path / "runs.csv").read_text(encoding="utf-8")
    monkeypatch.setattr(apart, "_run", whole)
    asked = len(small)
    waits.run(tmp_path, progress=False)
    assert {name for name, _ in small[asked:]} == {"crash"}


def test_lines_that_are_left_out_stay_in_both_tables(tmp_path, small, monkeypatch):
    waits.run(tmp_path, progress=False)
    before = {name: (tmp_path / name).read_text(encoding="utf-8") for name in ("runs.csv", "waits.csv")}
    monkeypatch.setattr(apart, "code", lambda against=None: "later code")
    assert "one" not in waits.run(tmp_path, progress=False, only="two")
    after = {name: (tmp_path / name).read_text(encoding="utf-8") for name in before}
    assert after["waits.csv"] == before["waits.csv"]
    rows = {
        name: text.splitlines()[1:] for name, text in ((k, x["runs.csv"]) for k, x in (("a", before), ("b", after)))
    }
    assert {x for x in rows["a"] if x.startswith("one")} == {x for x in rows["b"] if x.startswith("one")}
    assert all("later code" in x for x in rows["b"] if x.startswith("two"))


def test_the_command_takes_what_the_study_takes(tmp_path, small, earlier, capsys):
    words = ["study", "waits", "--quick", "--quiet", "--out", str(tmp_path / "new")]
    assert cli.main([*words, "--against", str(earlier), "--only", "two"]) == 0
    assert {name for name, _ in small} == {"crash"}
    assert cli.main(["study", "orders", "--only", "two", "--out", str(tmp_path)]) == 2
    assert "it takes no only" in capsys.readouterr().err


@pytest.mark.slow
def test_quick_study(tmp_path, capsys):
    words = ["study", "waits", "--quick", "--only", "ready;import", "--out", str(tmp_path)]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "Panda, ready, torque rate 0.3, 20 nodes" in shown
    rows = (tmp_path / "waits.csv").read_text(encoding="utf-8")
    assert "T 1.032370 s" in rows


def test_parts_of_calls():
    calls = []
    row = timing.one("a sample", lambda: calls.append(1), 5, rounds=3, unit="ns", samples=10)
    assert len(calls) == 16  # one before the rounds
    assert (row["part"], row["unit"]) == ("a sample", "ns")
    assert 0 <= row["cpu"]
    assert 0 < row["value"]


def test_a_batch_is_compared_with_calls():
    f = od.function(od.robots.planar_2r(), "inverse_dynamics", order=1)
    given = cases_of_calls.arguments(f, 3)
    calls = [f(*(x[:, k] for x in given)) for k in range(3)]
    found = tuple(np.hstack([np.array(c[i]) for c in calls]) for i in range(2))
    assert cases_of_calls.largest_difference(found, calls) == 0
    found[1][0, 2] += 1e-3
    right = 1e-3 / np.abs(found[1]).max()
    assert cases_of_calls.largest_difference(found, calls) == pytest.approx(right, rel=1e-2)


def test_hessians_of_stages_are_counted_beside_ad():
    ocp = od.Problem(3, 1.0)
    x, u = ocp.state("x", 2), ocp.control("u")
    ocp.rate(x, ca.vertcat(x[1], u - ca.sin(x[0])))
    ocp.minimize(integral=u**2)
    asked, options = plans.problem_of(lambda: ocp.solve(method="rk4"))
    assert (asked, options) == (ocp, {"method": "rk4"})
    rows = {row["part"]: row["value"] for row in plans.stage_counts(asked, "rk4")}
    kind = max((g.kind for g in ocp.transcribed("rk4").assembly.groups), key=lambda k: k.hessian.n_instructions())
    assert rows["Hessian"] == kind.hessian.n_instructions()
    f, given = plans.hessian_by_ad(kind), [np.full(kind.hessian.size_in(k), 0.3 + k) for k in range(6)]
    assert np.allclose(np.array(f(*given)), np.array(kind.hessian(*given)), rtol=1e-12, atol=1e-12)
    assert ocp.solve(check="off").success  # as it was
