"""All studies in one command: what fails is told, what is done stays, and a run that was killed goes on."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clones import clone

import oc_dyn as od
from oc_dyn import cli, study
from oc_dyn.study import all_studies

STUBS = '''
"""Studies that leave a line in `runs`, beside this file, whenever they, or a point of theirs, run."""
import os, signal, time
from pathlib import Path
from oc_dyn.runs.points import fill
from oc_dyn.runs.stored_table import StoredTable

HERE = Path(__file__).parent
def note(what):
    with open(HERE / "runs", "a") as file:
        file.write(what + "\\n")
def end(out):
    out.mkdir(parents=True, exist_ok=True)
    (out / "manifest.json").write_text("{}")
def first(out, quick=False, progress=None):
    note(f"first {quick}")
    end(out)
def second(out, quick=False, progress=None):
    note("second")
    if (HERE / "wrong").exists():
        raise ValueError("it is wrong")
    if (HERE / "crash").exists():
        os.kill(os.getpid(), signal.SIGSEGV)
    if (HERE / "slow").exists():
        (HERE / "pid").write_text(str(os.getpid()))
        time.sleep(60)
    end(out)
def square(x):
    note(f"square {x}")
    if x == 3 and (HERE / "wrong").exists():
        raise ValueError("three")
    return {"y": x * x}
def points(out, quick=False, progress=None, executor="serial"):
    note(f"points {executor}")
    table, plan = StoredTable(out / "t.csv", ("x",), ("y",)), [{"x": k} for k in range(4)]
    rows = fill(table, plan, square, executor)
    table.close(plan)
    end(out)
    return str(rows)
'''


@pytest.fixture
def stubs(tmp_path, monkeypatch):
    """The folder of the module of STUBS, which are all studies; runs() has the lines that they left."""
    (tmp_path / "stub_studies.py").write_text(STUBS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(study, "STUDIES", {name: f"stub_studies:{name}" for name in ("first", "second")})
    monkeypatch.setattr(all_studies, "STUDIES", study.STUDIES)
    monkeypatch.setattr(all_studies, "NAMES", ("first", "second"))
    yield tmp_path
    sys.modules.pop("stub_studies", None)


@pytest.fixture
def here(stubs, monkeypatch):
    """The same, run in this process."""

    def measured(target, name, out, quick, executor):
        try:
            study.run(name, out, quick)
        except ValueError as error:
            return {"status": f"ValueError: {error}", "seconds": "1.0", "CPU": "1.0"}
        return {"status": "done", "seconds": "1.0", "CPU": "1.0"}

    monkeypatch.setattr(all_studies, "measured", measured)
    return stubs


def runs(folder):
    path = folder / "runs"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def table(out):
    with open(out / "all" / "studies.csv", newline="", encoding="utf-8") as file:
        return {row["study"]: row["status"] for row in csv.DictReader(file)}


def test_a_study_that_fails_is_told_and_runs_again_and_no_other_does(here, capsys):
    out = here / "out"
    (here / "wrong").touch()
    assert cli.main(["study", "all", "--out", str(out)]) == 1
    assert runs(here) == ["first False", "second"]
    told = capsys.readouterr().out
    assert "failed: second: ValueError: it is wrong" in told
    assert "1 of 2 studies are done" in told
    assert table(out) == {"first": "done", "second": "ValueError: it is wrong"}
    (here / "wrong").unlink()
    assert cli.main(["study", "all", "--out", str(out)]) == 0
    assert runs(here)[2:] == ["second"]
    assert "first: done before" in capsys.readouterr().out
    assert table(out) == {"first": "done", "second": "done"}
    assert cli.main(["study", "all", "--out", str(out), "--quiet"]) == 0
    assert len(runs(here)) == 3


def test_a_study_whose_results_are_gone_runs_again(here):
    out = here / "out"
    all_studies.run_all(out)
    (out / "first" / "manifest.json").unlink()
    all_studies.run_all(out)
    assert runs(here) == ["first False", "second", "first False"]


def test_quick_runs_are_no_full_ones(here):
    with clone(here / "clone") as quick:
        assert cli.main(["study", "all", "--quick", "--quiet"]) == 0
        assert table(quick) == {"first": "done", "second": "done"}
    all_studies.run_all(here / "out", quick=True)
    all_studies.run_all(here / "out")
    assert runs(here)[::2] == ["first True", "first True", "first False"]


def test_some_of_them_leave_the_rows_of_others(here):
    out = here / "out"
    all_studies.run_all(out, only="fir")
    assert table(out) == {"first": "done"}
    all_studies.run_all(out, only="sec")
    assert table(out) == {"first": "done", "second": "done"}
    assert runs(here) == ["first False", "second"]
    with pytest.raises(od.ShapeError, match="third"):
        all_studies.run_all(out, only="third")


def test_what_it_does_not_take_is_refused_before_anything_runs(here, capsys):
    for more in (["--against", "."], ["--report"], ["--executor", "threads:2"]):
        assert cli.main(["study", "all", "--out", str(here / "out"), *more]) == 2
    assert runs(here) == []


@pytest.mark.slow
def test_processes_that_fail_or_crash_leave_the_others_alone(stubs):
    out = stubs / "out"
    for what, status in (("wrong", "ValueError: it is wrong"), ("crash", "SIGSEGV")):
        (stubs / what).touch()
        _, failed = all_studies.run_all(out)
        (stubs / what).unlink()
        assert failed == ["second"]
        assert status in table(out)["second"]
    report, failed = all_studies.run_all(out)
    assert failed == []
    assert "2 of 2" in report
    assert runs(stubs) == ["first False", "second", "second", "second"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_goes_on_with_what_is_missing(stubs, number):
    code = f"""
import sys
sys.path.insert(0, {str(stubs)!r})
from oc_dyn import cli, study
from oc_dyn.study import all_studies
study.STUDIES = all_studies.STUDIES = {study.STUDIES!r}
all_studies.NAMES = tuple(study.STUDIES)
sys.exit(cli.main(["study", "all", "--out", {str(stubs / "out")!r}]))
"""
    (stubs / "slow").touch()
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}) as process:
        try:
            _wait(lambda: (stubs / "pid").exists() and (stubs / "pid").read_text())
            process.send_signal(number)
            assert process.wait(20) == (130 if number == signal.SIGINT else -number)
        finally:
            process.kill()
    pid = int((stubs / "pid").read_text())
    _wait(lambda: _gone(pid))  # the study ends with what has started it
    (stubs / "slow").unlink()
    assert all_studies.run_all(stubs / "out")[1] == []
    assert runs(stubs) == ["first False", "second", "second"]


def _wait(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _gone(pid):
    try:
        state = Path(f"/proc/{pid}/stat")
        if state.exists():
            return state.read_text().rpartition(")")[2].split()[0] == "Z"
        os.kill(pid, 0)
    except (ProcessLookupError, FileNotFoundError):
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes:2", "dask:2"])
def test_points_that_are_done_stay_whatever_computes_the_rest(stubs, executor, monkeypatch):
    if executor.startswith("dask"):
        pytest.importorskip("distributed")
    monkeypatch.setattr(study, "STUDIES", {"points": "stub_studies:points", "first": "stub_studies:first"})
    monkeypatch.setattr(all_studies, "STUDIES", study.STUDIES)
    monkeypatch.setattr(all_studies, "NAMES", tuple(study.STUDIES))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(p or os.getcwd() for p in sys.path))
    out = stubs / "out"
    (stubs / "wrong").touch()
    assert all_studies.run_all(out)[1] == ["points"]  # after three of four points
    (stubs / "wrong").unlink()
    assert all_studies.run_all(out, executor=executor)[1] == []
    lines = runs(stubs)
    assert lines[:6] == ["points serial", *(f"square {k}" for k in range(4)), "first False"]
    assert lines[6:] == [f"points {executor}", "square 3"]
    with open(out / "points" / "t.csv", newline="", encoding="utf-8") as file:
        assert [row["y"] for row in csv.DictReader(file)] == ["0", "1", "4", "9"]
