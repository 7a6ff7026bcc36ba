"""Where points are computed: the same results everywhere, and none lost by a killed worker, a full disk or Ctrl-C."""

import concurrent.futures
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import points_of_tests as P
import pytest

import oc_dyn as od
from oc_dyn.errors import ShapeError, SolveError
from oc_dyn.executors import checked, completed
from oc_dyn.runs.points import fill
from oc_dyn.runs.stored_table import StoredTable
from oc_dyn.store import Store

ROOT = Path(__file__).resolve().parents[2]


def collected(*arguments, **options):
    with closing(completed(*arguments, **options)) as done:
        return {number: (result, error) for number, result, error in done}


# -- executors -----------------------------------------------------------------------------------------------------


def test_executors_are_named():
    assert checked("serial") == ("serial", None)
    assert checked("processes:3") == ("processes", 3)
    assert checked("dask:2") == ("dask", 2)
    for address in ("tcp://10.0.0.1:8786", "tls://scheduler.here:8786", "localhost:8786", "[::1]:8786", "inproc://1/2/3"):
        assert checked(f"dask:{address}") == ("dask", address)
    wrong = ["processes", "processes:0", "processes:x", "threads", "serial:2", None, 2]
    wrong += ["dask", "dask:", "dask:0", "dask:-2", "dask:x", "dask:2.5", "dask:2:3x", "dask:123456", "Dask:2"]
    for executor in wrong:
        with pytest.raises(ShapeError, match=r'"processes:N" or "dask:N"'):
            checked(executor)


@pytest.mark.slow
def test_results_and_errors_in_any_executor():
    points = [(1.0,), (4.0,), (-1.0,), ("x",)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for executor in ("serial", "processes:2", pool):
            found = collected(P.root, points, executor)
            assert [found[k][0] for k in range(4)] == [1.0, 2.0, None, None]
            assert isinstance(found[2][1], ValueError)
            assert isinstance(found[3][1], TypeError)
            assert "-1.0" in str(found[2][1])
        assert pool.submit(P.root, 9.0).result() == 3.0  # left as it was


@pytest.mark.slow
def test_points_may_be_added_while_results_are_taken():
    for executor in ("serial", "processes:1"):
        points, found = [(16.0,)], []
        with closing(completed(P.root, points, executor)) as done:
            for _, result, _ in done:
                found.append(result)
                if result > 2:
                    points.append((result,))
        assert found == [4.0, 2.0]


@pytest.mark.slow
def test_exception_that_cannot_travel_does_not_end_the_pool():
    found = collected(P.unknown, [("a",), ("b",)], "processes:1")
    for number, name in enumerate("ab"):
        assert isinstance(found[number][1], Exception)
        assert f"'{name}'" in str(found[number][1])


@pytest.mark.slow
def test_point_of_a_killed_worker_runs_again(tmp_path):
    points = [(k, str(tmp_path), 3) for k in range(6)]
    found = collected(P.killed_once, points, "processes:2")
    assert {k: result for k, (result, _) in found.items()} == {k: k * k for k in range(6)}
    assert (tmp_path / "3").exists()  # so it was killed


@pytest.mark.slow
def test_point_that_kills_every_worker_is_given_up_and_named():
    found = collected(P.killer, [(k,) for k in range(5)], "processes:2", name=lambda k: f"arm of {k} bodies")
    assert {k for k, (_, error) in found.items() if error is not None} == {2}
    assert isinstance(found[2][1], SolveError)
    assert "arm of 2 bodies" in str(found[2][1])
    assert [found[k][0] for k in (0, 1, 3, 4)] == [0, 1, 9, 16]


@pytest.mark.slow
def test_workers_use_one_thread_each(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert collected(P.environment, [("OMP_NUM_THREADS",)], "processes:1")[0][0] == "1"
    assert "OMP_NUM_THREADS" not in os.environ
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert collected(P.environment, [("OMP_NUM_THREADS",)], "processes:1")[0][0] == "2"


# -- rows of a study -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fill_goes_on_where_it_was_and_keeps_what_is_done(tmp_path):
    plan = [{"x": float(x)} for x in (4, 9, -1, 16)]
    table = StoredTable(tmp_path / "t.csv", ("x",), ("y",))
    with pytest.raises(ValueError, match=r"-1\.0"):
        fill(table, plan, P.row_of_root)
    again = StoredTable(tmp_path / "t.csv", ("x",), ("y",))
    assert again.known(x=4.0)["y"] == "2.0"
    assert again.known(x=9.0)
    assert again.known(x=16.0) is None
    rows = fill(again, [plan[3], plan[1], plan[0]], P.not_of_nine, "processes:1")
    again.close([plan[3], plan[1], plan[0]])
    assert [row["y"] for row in rows] == ["4.0", "3.0", "2.0"]  # 9 was not asked for again
    lines = (tmp_path / "t.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ["16.0", "9.0", "4.0"]


def test_output_that_cannot_be_written_is_noticed_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"t\.csv|file"):
        table = StoredTable(tmp_path / "file" / "t.csv", ("x",), ("y",))
        fill(table, [{"x": 1}], P.killer)  # which would end this process
    with pytest.raises(OSError):
        od.sweep(P.killer, [{"number": 2}], out=tmp_path / "file" / "more")


FULL = """
import resource, signal, sys
import points_of_tests as P
import oc_dyn as od
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))
od.sweep(P.long_text, [{"x": x} for x in range(40)], out=sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_full_disk_keeps_what_is_done(tmp_path):
    out = tmp_path / "s.csv"
    done = run_python(FULL, str(out))
    assert done.returncode == 1
    assert "s.sqlite" in done.stderr
    assert "kept" in done.stderr
    kept = {row["key"]: row["written"] for row in stored(out)}
    assert 2 < len(kept) < 40
    found = od.sweep(P.long_text, [{"x": x} for x in range(40)], out=out)  # and goes on
    assert found.results == [P.long_text(x) for x in range(40)]
    assert kept.items() <= {row["key"]: row["written"] for row in stored(out)}.items()  # not computed again


STOPPED = """
import sys
import points_of_tests as P
import oc_dyn as od
if __name__ == "__main__":
    od.sweep(P.slow, [{"x": x} for x in range(40)], executor=sys.argv[2], out=sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
@pytest.mark.sample("processes:2")
@pytest.mark.parametrize("executor", ["serial", "processes:2", "dask:2"])
def test_ctrl_c_and_kill_leave_what_is_done(tmp_path, executor):
    out, script = tmp_path / "s.csv", tmp_path / "stopped.py"
    script.write_text(STOPPED)
    for how in (signal.SIGINT, signal.SIGKILL):
        before = len(stored(out))
        process = subprocess.Popen(
            [sys.executable, script, out, executor],
            env=environment(),
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it is ignored in background jobs
        )
        wait_until(lambda before=before: len(stored(out)) >= before + 3)
        os.kill(process.pid, how)
        process.wait(timeout=10)
        assert process.returncode != 0
        wait_until(lambda process=process: not group_lives(process.pid))  # its workers are gone too
        process.stderr.close()
    assert 6 <= len(stored(out)) < 40
    assert {row["status"] for row in stored(out)} == {"done"}
    found = od.sweep(P.slow, [{"x": x} for x in range(40)], out=out)
    assert found.results == list(range(40))
    assert sum(x > 0.04 for x in found.seconds) == 40  # those of before are the noted ones
    assert len(out.read_text().splitlines()) == 41


# -- sweeps --------------------------------------------------------------------------------------------------------


def grid_of(robot, count):
    q = robot.random_configuration
    return [{"q_start": q(k), "q_goal": q(k + 50)} for k in range(count)]


@pytest.mark.slow
def test_sweep_of_plans_is_the_same_everywhere_and_goes_on(tmp_path):
    panda = od.robots.panda()
    plan = functools.partial(od.plan_point_to_point, panda, nodes=10)
    grid = grid_of(panda, 4)
    grid[2]["q_goal"] = np.full(7, 10.0)  # out of range
    serial = od.sweep(plan, grid)
    assert serial.failed == [2]
    assert serial.errors[2].startswith("LimitError")
    assert serial.results[2] is None
    apart = od.sweep(plan, grid, executor="processes:2", out=tmp_path / "plans")
    names = {p.name for p in (tmp_path / "plans").iterdir()}
    keys = {row["key"] for row in stored(tmp_path / "plans" / "sweep.csv") if row["status"] == "done"}
    assert len(keys) == 3
    assert names == {"sweep.csv", "sweep.sqlite", *(f"{key}.npz" for key in keys)}
    refused = functools.partial(plan)
    again = od.sweep(refused, grid, out=tmp_path / "plans")
    for other in (apart, again):
        assert other.errors == serial.errors
        for k in (0, 1, 3):
            assert np.array_equal(other.results[k].pieces, serial.results[k].pieces)
            assert np.array_equal(other.results[k].t, serial.results[k].t)
            assert other.results[k].robot is panda
    assert again.seconds[0] == pytest.approx(apart.seconds[0], rel=1e-5)  # not planned again


def test_sweep_over_combinations_and_what_is_kept(tmp_path):
    out = tmp_path / "s.csv"
    found = od.sweep(P.sum_of, {"a": [1, 2], "b": [10.0, np.float64(20.0)]}, out=out)
    assert [r["sum"] for r in found.results] == [11.0, 21.0, 12.0, 22.0]
    assert found.results[0]["both"] == [1, 10.0]  # as it is read
    again = od.sweep(P.sum_of, {"a": [1, 2], "b": [10.0, 20.0]}, out=out)
    assert again.seconds == pytest.approx(found.seconds, rel=1e-5)  # so it is what was kept
    failed = od.sweep(P.fails_without_file, [{"path": str(tmp_path / "there")}], out=tmp_path / "f.csv")
    assert failed.failed == [0]
    (tmp_path / "there").write_text("")
    assert od.sweep(P.fails_without_file, failed.points, out=tmp_path / "f.csv").failed == [0]
    assert od.sweep(P.fails_without_file, failed.points, out=tmp_path / "f.csv", retry=True).failed == []


@pytest.mark.slow
def test_sweep_of_a_problem():
    by_maker = od.sweep(P.sliding_mass, {"mass": [1.0, 2.0]}, executor="processes:1")
    assert by_maker.failed == []
    assert by_maker.results[0]["states"]["x"].shape == (11, 2)
    problem = P.sliding_mass(1.0, free=True)
    here = od.sweep(problem, [{"mass": 1.0}, {"mass": 2.0}])
    for a, b in zip(by_maker.results, here.results, strict=True):
        assert a["objective"] == pytest.approx(b["objective"], rel=1e-9)
    assert here.results[1]["objective"] == pytest.approx(4 * here.results[0]["objective"], rel=1e-6)
    assert "weight" in od.sweep(problem, [{"weight": 1.0}]).errors[0]
    there = od.sweep(problem, [{"mass": 1.0}, {"mass": 2.0}], executor="processes:1")
    assert [r["objective"] for r in there.results] == pytest.approx([r["objective"] for r in here.results], rel=1e-12)


def test_what_cannot_be_swept_is_told(tmp_path):
    with pytest.raises(ShapeError, match="function of a module"):
        od.sweep(lambda x: x, [{"x": 1}], executor="processes:1")
    with pytest.raises(ShapeError, match="argument: value"):
        od.sweep(P.root, [1.0, 2.0])
    with pytest.raises(ShapeError, match="expected a function"):
        od.sweep("plan", [])
    with pytest.raises(ShapeError, match="cannot be written"):
        od.sweep(P.an_object, [{}], out=tmp_path / "s.csv")
    with pytest.raises(ShapeError, match="folder"):
        od.sweep(P.root, [{"x": 1.0}], out=Path(__file__))
    assert len(od.sweep(P.root, [])) == 0


# -- Dask ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_dask_starts_workers_of_one_thread_and_leaves_nothing(monkeypatch, tmp_path):
    pytest.importorskip("distributed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # which Dask changes
    before, threads = dict(os.environ), {x.name for x in threading.enumerate()}
    points = [(1.0,), (4.0,), (-1.0,), ("x",)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a port that is taken
        found = collected(P.root, points, "dask:2")
    assert [found[k][0] for k in range(4)] == [1.0, 2.0, None, None]
    assert isinstance(found[2][1], ValueError)
    assert isinstance(found[3][1], TypeError)
    told = [result for result, _ in collected(P.worker, [(0.2,)] * 8, "dask:2").values()]
    assert len({process for process, *_ in told}) == 2
    assert len({(process, thread) for process, thread, _ in told}) == 2
    assert {variable for *_, variable in told} == {"1"}
    assert dict(os.environ) == before
    assert not any(alive(process) for process, *_ in told)
    assert not {x.name for x in threading.enumerate() if "IO loop" in x.name or "Nanny" in x.name} - threads
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_dask_starts_nothing_for_nothing():
    pytest.importorskip("distributed")
    assert collected(P.root, [], "dask:2") == {}
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_dask_ends_its_workers_when_results_are_not_taken():
    pytest.importorskip("distributed")
    with closing(completed(P.worker, [(0.0,), (60.0,), (60.0,)], "dask:2")) as done:
        _, (process, *_), _ = next(done)
        start = time.perf_counter()
    assert time.perf_counter() - start < 30
    assert not alive(process)
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_dask_runs_points_of_killed_workers_again_and_gives_up_those_that_kill(tmp_path):
    pytest.importorskip("distributed")
    found = collected(P.killed_once, [(k, str(tmp_path), 3) for k in range(6)], "dask:2")
    assert {k: result for k, (result, _) in found.items()} == {k: k * k for k in range(6)}
    assert (tmp_path / "3").exists()
    found = collected(P.killer, [(k,) for k in range(5)], "dask:2", name=lambda k: f"arm of {k} bodies")
    assert {k for k, (_, error) in found.items() if error is not None} == {2}
    assert isinstance(found[2][1], SolveError)
    assert "arm of 2 bodies: its worker process ended 3 times" in str(found[2][1])
    assert [found[k][0] for k in (0, 1, 3, 4)] == [0, 1, 9, 16]


UNGUARDED = """
import points_of_tests as P
from oc_dyn.executors import completed
print(list(completed(P.root, [(1.0,)], "dask:1")))
"""


@pytest.mark.slow
def test_dask_in_a_script_without_guard_is_told(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "script.py").write_text(UNGUARDED)
    command = [sys.executable, tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    assert done.returncode == 1
    assert "SolveError: executor dask:1: no workers" in done.stderr
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_sweep_by_dask_is_that_of_processes(tmp_path):
    pytest.importorskip("distributed")
    panda = od.robots.panda()
    plan, grid = functools.partial(od.plan_point_to_point, panda, nodes=10), grid_of(panda, 3)
    apart, serial = od.sweep(plan, grid, executor="dask:2", out=tmp_path / "plans"), od.sweep(plan, grid)
    assert apart.failed == [] == serial.failed
    for a, b in zip(apart.results, serial.results, strict=True):
        assert np.array_equal(a.pieces, b.pieces)
        assert a.robot is panda
    again = od.sweep(plan, grid, executor="dask:2", out=tmp_path / "plans")  # nothing is left to do
    assert again.seconds == pytest.approx(apart.seconds, rel=1e-5)


@pytest.mark.slow
def test_dask_loses_nothing_when_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    panda = od.robots.panda()
    plan, grid = functools.partial(od.plan_point_to_point, panda, nodes=10), grid_of(panda, 3)
    with distributed.LocalCluster(**settings) as cluster:
        address = f"dask:{cluster.scheduler_address}"
        found = collected(P.killed_once, [(k, str(tmp_path), 3) for k in range(6)], address)
        assert {k: result for k, (result, _) in found.items()} == {k: k * k for k in range(6)}
        assert (tmp_path / "3").exists()
        masses, problem = {"mass": [1.0, 2.0]}, P.sliding_mass(1.0, free=True)
        optima = [[r["objective"] for r in od.sweep(problem, masses, executor=x).results] for x in (address, "serial")]
        assert optima[0] == pytest.approx(optima[1], rel=1e-12)
        apart, serial = od.sweep(plan, grid, executor=address), od.sweep(plan, grid)
        assert apart.failed == [] == serial.failed
        for a, b in zip(apart.results, serial.results, strict=True):
            assert np.array_equal(a.pieces, b.pieces)
            assert a.robot is panda


@pytest.mark.slow
def test_dask_without_scheduler_is_told():
    pytest.importorskip("distributed")
    with pytest.raises(SolveError, match="no scheduler"):
        collected(P.root, [(1.0,)], "dask:nonsense://x")


@pytest.mark.parametrize("where", ["tcp://127.0.0.1:1", "2"])
def test_dask_that_is_not_installed_is_told(monkeypatch, where):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SolveError, match=r"oc-dyn\[distributed\]"):
        collected(P.root, [(1.0,)], f"dask:{where}")


# -- helpers -------------------------------------------------------------------------------------------------------


def stored(table):
    """Rows of the database beside a table of a sweep."""
    if not table.with_suffix(".sqlite").exists():
        return []
    with closing(Store(table.with_suffix(".sqlite"))) as store:
        return store.rows()


def environment():
    paths = [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def run_python(code, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=False)


def wait_until(is_so, seconds=20):
    end = time.perf_counter() + seconds
    while not is_so():
        assert time.perf_counter() < end, "waited in vain"
        time.sleep(0.05)


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
