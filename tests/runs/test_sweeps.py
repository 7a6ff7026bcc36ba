"""Sweeps: no result of another function, none lost, nothing of others written over."""

import contextlib
import csv
import functools
import json
import multiprocessing
import os
import signal
import sqlite3
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import points_of_tests as P
import pytest

import oc_dyn as od
from oc_dyn.errors import ShapeError, SolveError
from oc_dyn.runs import sweeps
from oc_dyn.runs.stored_table import StoredTable
from oc_dyn.store import Store
from oc_dyn.study.sweeps import KINDS, killed, statements

GAIN = {"k": 1.0}
GRID = [{"x": float(x)} for x in range(6)]


def by_global(x):
    return GAIN["k"] * x


def double(x):
    return 2 * x


def motion(x):
    pieces = np.arange(6.0).reshape(2, 3, 1) + x
    return od.Trajectory(np.arange(3.0), pieces, joints=["j"], units=["rad"])


def plan_of(robot, other, x):
    return od.Trajectory([0, 1], np.full((1, 3, robot.nv), x), joints=robot.coordinate_names, units=["rad"] * 2,
                         robot=robot)  # fmt: skip


def plan_of_any(x, robot):
    return plan_of(robot, None, x)


def plan_within(config):
    return plan_of(config["robots"][0], None, config["x"])


def adds_in_place(q, k):
    q += k
    return float(q.sum())


class Scale:
    def __init__(self, gain):
        self._gain = gain

    def of(self, x):
        return self._gain * x


def scaled(gain, default=0.0):
    def f(x, more=default):
        return gain * x + more

    return f


def stored(path):
    with closing(Store(path)) as store:
        return store.rows()


def counted(monkeypatch):
    """List of the points that are computed from now on."""
    ran, run = [], sweeps._run
    monkeypatch.setattr(sweeps, "_run", lambda f, point, *more: (ran.append(point), run(f, point, *more))[1])
    return ran


# -- what a result is filed under --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one, other, factors",
    [
        (scaled(2.0), scaled(3.0), (2, 3)),
        (scaled(2.0), scaled(2.0, 1.0), (2, None)),
        (lambda x: 2 * x, lambda x: 3 * x, (2, 3)),
        (Scale(2.0).of, Scale(3.0).of, (2, 3)),
        (functools.partial(Scale.of, Scale(2.0)), functools.partial(Scale.of, Scale(3.0)), (2, 3)),
    ],
    ids=["closure", "default", "lambda", "private attribute", "partial"],
)
def test_no_number_of_another_function(tmp_path, one, other, factors):
    for f, factor in ((one, factors[0]), (other, factors[1]), (one, factors[0])):
        found = od.sweep(f, GRID, out=tmp_path / "s.csv").results
        assert found == [2 * p["x"] + 1 if factor is None else factor * p["x"] for p in GRID]
    assert len(stored(tmp_path / "s.sqlite")) == 2 * len(GRID)  # nothing is thrown away


def test_no_number_of_another_global(tmp_path, monkeypatch):
    assert od.sweep(by_global, GRID, out=tmp_path / "s.csv").results == [p["x"] for p in GRID]
    monkeypatch.setitem(GAIN, "k", 5.0)
    assert od.sweep(by_global, GRID, out=tmp_path / "s.csv").results == [5 * p["x"] for p in GRID]


def test_no_number_of_another_problem(tmp_path):
    def optimum(factor):
        ocp = P.sliding_mass(1.0, free=True)
        ocp.minimize(integral=(factor - 1) * ocp._controls[0].symbol ** 2)
        return od.sweep(ocp, [{"mass": 1.0}], out=tmp_path / "s").results[0]["objective"]

    assert optimum(3.0) == pytest.approx(3 * optimum(1.0), rel=1e-6)


def test_what_cannot_be_digested_is_refused_with_a_way_out(tmp_path):
    lines = (x for x in "ab")

    def f(x):
        return [x, str(lines)[:1]]

    with pytest.raises(ShapeError, match=r"function f, its variable 'lines'.*give key="):
        od.sweep(f, GRID, out=tmp_path / "s.csv")
    assert od.sweep(f, GRID, out=tmp_path / "s.csv", key="f, 1").failed == []
    assert od.sweep(f, GRID).results[1] == [1.0, "<"]
    with pytest.raises(ShapeError, match="key is True"):
        od.sweep(f, GRID, out=tmp_path / "s.csv", key=True)
    with pytest.raises(ShapeError, match=r"point 0, \['x'\].*plain values"):
        od.sweep(double, [{"x": lines}], out=tmp_path / "t.csv")


def test_key_stands_for_the_function(tmp_path):
    od.sweep(scaled(2.0), GRID, out=tmp_path / "s.csv", key="mine")
    assert od.sweep(scaled(3.0), GRID, out=tmp_path / "s.csv", key="mine").results[1] == 2.0  # as the caller has it
    assert od.sweep(scaled(3.0), GRID, out=tmp_path / "s.csv", key="other").results[1] == 3.0


def test_place_in_the_grid_does_not_matter(tmp_path, monkeypatch):
    od.sweep(double, GRID, out=tmp_path / "s.csv")
    ran = counted(monkeypatch)
    grid = [{"x": 99.0}, *GRID[::-1], GRID[2]]
    found = od.sweep(double, grid, out=tmp_path / "s.csv")
    assert found.results == [2 * p["x"] for p in grid]
    assert ran == [{"x": 99.0}]


def test_other_versions_stay_and_are_used_when_asked_for(tmp_path, monkeypatch):
    od.sweep(double, GRID, out=tmp_path / "s.csv")
    old = {row["key"]: row["written"] for row in stored(tmp_path / "s.sqlite")}
    ran = counted(monkeypatch)
    monkeypatch.setattr(sweeps, "version", lambda: "another")
    assert od.sweep(double, GRID, out=tmp_path / "s.csv", accept="versions").results == [2 * p["x"] for p in GRID]
    assert ran == []
    od.sweep(double, GRID[:3], out=tmp_path / "s.csv")
    assert ran == GRID[:3]
    assert old.items() <= {row["key"]: row["written"] for row in stored(tmp_path / "s.sqlite")}.items()


def test_another_function_is_used_when_asked_for(tmp_path, monkeypatch):
    od.sweep(double, GRID, out=tmp_path / "s.csv")
    with open(tmp_path / "s.csv", newline="") as file:
        (name,) = {row["function"] for row in csv.DictReader(file)}
    ran = counted(monkeypatch)
    assert od.sweep(scaled(9.0), GRID, out=tmp_path / "s.csv", accept=[name]).results[3] == 6.0
    assert ran == []


@pytest.mark.slow
def test_worker_with_another_function_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setitem(GAIN, "k", 7.0)  # here alone: workers import this module anew
    with pytest.raises(SolveError, match="another in the worker"):
        od.sweep(by_global, GRID, out=tmp_path / "s.csv", executor="processes:1")
    assert stored(tmp_path / "s.sqlite") == []


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_point_that_changes_its_argument_changes_no_other(tmp_path, executor):
    grid = {"q": [np.zeros(2)], "k": [1.0, 2.0, 3.0]}
    with ThreadPoolExecutor(1) as pool:
        given = executor if executor == "serial" else pool
        found = od.sweep(adds_in_place, grid, executor=given, out=tmp_path / "s.csv")
    assert found.results == [2.0, 4.0, 6.0]
    assert [list(p["q"]) for p in found.points] == [[0.0, 0.0]] * 3
    assert od.sweep(adds_in_place, [{"q": np.zeros(2), "k": 2.0}], out=tmp_path / "s.csv").results == [4.0]


def test_arguments_that_cannot_be_copied_are_given_as_they_are():
    kept = []
    lines = (x for x in "ab")
    od.sweep(lambda a, b: kept.append((a, b)), [{"a": lines, "b": [1]}])
    assert kept[0][0] is lines


# -- what is kept -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_trajectories_are_not_mixed_up(tmp_path):
    a, b = {"x": 1.0}, {"x": 2.0}
    mark = tmp_path / "stop"

    def stopped(x):
        if mark.exists() and x == 1.0:
            raise KeyboardInterrupt
        return motion(x)

    od.sweep(stopped, [a, b], out=tmp_path / "half")
    mark.write_text("")
    with contextlib.suppress(KeyboardInterrupt):
        od.sweep(stopped, [b, {"x": 3.0}, a], out=tmp_path / "half")
    mark.unlink()
    found = od.sweep(stopped, [a, b], out=tmp_path / "half").results
    assert [r.pieces[0, 0, 0] for r in found] == [1.0, 2.0]
    for grid in ([a, b], [b], [b, a], [a, b]):
        found = od.sweep(motion, grid, out=tmp_path / "s")
        assert [r.pieces[0, 0, 0] for r in found.results] == [p["x"] for p in grid]
    with open(tmp_path / "s" / "sweep.csv", newline="") as file:
        for row in csv.DictReader(file):
            kept = od.Trajectory.load(tmp_path / "s" / row["result"])
            assert kept.pieces[0, 0, 0] == json.loads(row["point"])["x"]


@pytest.mark.slow
def test_trajectory_gets_the_robot_it_is_of(tmp_path):
    one, other = od.robots.by_name("chain:2"), od.robots.by_name("chain:2")
    f = functools.partial(plan_of, other=other)
    for _ in range(2):
        (found,) = od.sweep(f, [{"robot": one, "x": 0.5}], out=tmp_path / "s").results
        assert found.robot is one


@pytest.mark.parametrize("how", ["in a list in a dict", "enclosed", "of no argument"])
def test_a_trajectory_has_the_same_robot_when_it_is_read(tmp_path, how):
    robot = od.robots.by_name("chain:2")
    f, point, expected = {
        "in a list in a dict": (plan_within, {"config": {"robots": [robot], "x": 0.5}}, robot),
        "enclosed": (lambda x: plan_of_any(x, robot), {"x": 0.5}, robot),
        "of no argument": (lambda x: plan_of_any(x, od.robots.by_name("chain:2")), {"x": 0.5}, None),
    }[how]
    for _ in range(2):
        (found,) = od.sweep(f, [point], out=tmp_path / "s").results
        assert found.robot is expected


class Stop(Exception):
    pass


def test_what_a_handler_of_ctrl_c_raises_ends_the_sweep(tmp_path):
    def f(x):
        if x == 3.0 and not (tmp_path / "done").exists():
            (tmp_path / "done").write_text("")
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
        return x

    def handler(*_):
        raise Stop

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(Stop):
            od.sweep(f, GRID, out=tmp_path / "s.csv")
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert [json.loads(r["result"]) for r in stored(tmp_path / "s.sqlite")] == [0.0, 1.0, 2.0]
    assert od.sweep(f, GRID, out=tmp_path / "s.csv").failed == []


def test_failures_whose_text_cannot_be_had_are_told_by_their_kind(tmp_path):
    class Mute(Exception):
        def __str__(self):
            return 1 / 0

    def f(x):
        raise Mute if x else ValueError("\ud800")

    found = od.sweep(f, [{"x": 0}, {"x": 1}], out=tmp_path / "s.csv", key="f").errors
    assert found[0] == "ValueError: \\ud800"
    assert found[1].startswith("Mute: its text cannot be had")


def test_failed_points_stay_and_those_out_of_time_run_again(tmp_path, monkeypatch):
    class Interrupts(types.ModuleType):
        @staticmethod
        @contextlib.contextmanager
        def deadline(seconds):
            if seconds < 2:
                raise SolveError("time is up", "time_limit")
            yield

    monkeypatch.setitem(sys.modules, "oc_dyn.interrupts", Interrupts("interrupts"))
    out = tmp_path / "s.csv"
    first = od.sweep(double, GRID, out=out, time_limit=1.0)
    assert first.failed == list(range(6))
    assert first.errors[0] == "SolveError: time is up"
    ran = counted(monkeypatch)
    assert od.sweep(double, GRID, out=out, time_limit=0.5).failed == first.failed
    assert ran == []
    assert od.sweep(double, GRID[:3], out=out, time_limit=3.0).failed == []
    assert od.sweep(double, GRID, out=out).failed == []
    with pytest.raises(ShapeError, match="time_limit"):
        od.sweep(double, GRID, time_limit=0)


def test_swallowed_ctrl_c_ends_the_sweep_and_leaves_the_point_open(tmp_path):
    def f(x):
        if x == 3.0 and not (tmp_path / "done").exists():
            (tmp_path / "done").write_text("")
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            except KeyboardInterrupt:  # as solvers do
                raise RuntimeError("stopped") from None
        return x

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            od.sweep(f, GRID, out=tmp_path / "s.csv")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    rows = stored(tmp_path / "s.sqlite")
    assert [json.loads(r["result"]) for r in rows] == [0.0, 1.0, 2.0]
    assert {r["status"] for r in rows} == {"done"}
    assert od.sweep(f, GRID, out=tmp_path / "s.csv").results == [p["x"] for p in GRID]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_exits_of_a_point_go_out_of_the_sweep(tmp_path, error):
    stop = [True]

    def f(x):
        if x == 2.0 and stop:
            raise error
        return x

    with pytest.raises(error):
        od.sweep(f, GRID, out=tmp_path / "s.csv", key="f")
    stop.clear()
    assert len(stored(tmp_path / "s.sqlite")) == 2
    assert od.sweep(f, GRID, out=tmp_path / "s.csv", key="f").results == [p["x"] for p in GRID]


# -- files --------------------------------------------------------------------------------------------------------


def foreign(path, kind):
    """Files of others, by their names."""
    if kind == "csv":
        (path / "s.csv").write_text("name,mass\narm,3\n")
    elif kind == "sqlite":
        with closing(sqlite3.connect(path / "s.sqlite")) as connection:
            connection.execute("CREATE TABLE mine (x)")
    elif kind == "old csv":
        (path / "s.csv").write_text("point,key,status,seconds,error,result,code\n0,ab,done,1,,3.0,12\n")
    elif kind == "folder":
        (path / "thesis.txt").write_text("mine")
    elif kind == "old folder":
        (path / "sweep.csv").write_text("point,key,status,seconds,error,result,code\n0,ab,done,1,,3.0,12\n")
        (path / "0.npz").write_bytes(b"mine")
    return {p.name: p.read_bytes() for p in path.iterdir()}


@pytest.mark.parametrize("kind", ["csv", "sqlite", "old csv", "folder", "old folder"])
def test_files_of_others_are_refused_and_left_alone(tmp_path, kind):
    before = foreign(tmp_path, kind)
    out = tmp_path if "folder" in kind else tmp_path / "s.csv"
    name = {"sqlite": r"s\.sqlite", "old folder": r"sweep\.csv", "folder": tmp_path.name}.get(kind, r"s\.csv")
    with pytest.raises(ShapeError, match=name):
        od.sweep(double, GRID, out=out)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def link(path, to):
    try:
        path.symlink_to(to)
    except OSError:
        pytest.skip("no right to make links")


@pytest.mark.parametrize(
    "grid, more, words",
    [
        (None, {}, "grid is None"),
        (5, {}, "grid is 5"),
        ({"x": 3}, {}, "grid: 'x' is 3"),
        ({"x": "abc"}, {}, "grid: 'x' is 'abc'"),
        ([{"x": 1}, {"x\ud800": 1}], {}, "point 1: .* no name of an argument"),
        (GRID, {"accept": 5}, "accept is 5"),
        (GRID, {"accept": [5]}, r"accept is \[5\]"),
        (GRID, {"out": "d\0.csv"}, "out is"),
        (GRID, {"out": 5}, "out is 5"),
    ],
)
def test_what_is_no_grid_or_name_is_named(tmp_path, grid, more, words):
    with pytest.raises(ShapeError, match=words):
        od.sweep(double, grid, **{"out": tmp_path / "s.csv", **more})


@pytest.mark.parametrize(
    "kind, words", [("folder", "it is a folder"), ("pipe", "it is a pipe"), ("link", "whose folder is not there")]
)
def test_databases_that_are_no_files_are_named(tmp_path, kind, words):
    base = tmp_path / "s.sqlite"
    if kind == "pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    {"folder": os.mkdir, "pipe": os.mkfifo, "link": lambda p: link(p, tmp_path / "nowhere" / "x")}[kind](base)
    with pytest.raises(ShapeError, match=rf"s\.sqlite: .*{words}"):
        od.sweep(double, GRID, out=tmp_path / "s.csv")


def test_a_database_of_other_columns_is_named_and_left_alone(tmp_path):
    od.sweep(double, GRID, out=tmp_path / "s.csv")
    base = tmp_path / "s.sqlite"
    with closing(sqlite3.connect(base, isolation_level=None)) as connection:
        connection.execute("DROP TABLE results")
        connection.execute("CREATE TABLE results (key, point)")
    before = base.read_bytes()
    with pytest.raises(ShapeError, match=r"s\.sqlite: its table results has no function, .*give another name"):
        od.sweep(double, GRID, out=tmp_path / "s.csv")
    assert base.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_place_of_the_table_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "s.csv")
    with pytest.raises(ShapeError, match="not of a sweep"):
        od.sweep(double, GRID, out=tmp_path / "s.csv")


def test_links_are_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    for name in ("s.csv", "s.sqlite"):
        link(tmp_path / name, tmp_path / "real" / name)
    od.sweep(double, GRID, out=tmp_path / "s.csv")
    assert (tmp_path / "s.csv").is_symlink()
    assert (tmp_path / "real" / "s.csv").read_text().startswith("key,")
    real = tmp_path / "real" / "s.sqlite"
    real.write_bytes(cut(real.read_bytes()))
    with pytest.warns(UserWarning, match="damaged"):
        assert od.sweep(double, GRID, out=tmp_path / "s.csv").failed == []
    assert (tmp_path / "s.sqlite").is_symlink()
    assert len(stored(real)) == len(GRID)


def cut(data):
    return data[: len(data) // 2]


def garbled(data):
    k = len(data) // 2
    return data[:k] + bytes(255 - x for x in data[k : k + 1500]) + data[k + 1500 :]


@pytest.mark.sample(1)
@pytest.mark.parametrize("harm", [cut, garbled, lambda data: b"\0" * len(data), lambda data: b"x"])
def test_damaged_database_is_set_aside_and_no_row_of_it_is_wrong(tmp_path, harm):
    grid = [{"x": float(x)} for x in range(60)]
    od.sweep(motion, grid, out=tmp_path / "s")
    base = tmp_path / "s" / "sweep.sqlite"
    data = harm(base.read_bytes())
    base.write_bytes(data)
    with pytest.warns(UserWarning, match="damaged"):
        found = od.sweep(motion, grid, out=tmp_path / "s")
    assert [r.pieces[0, 0, 0] for r in found.results] == [p["x"] for p in grid]
    assert len(stored(base)) == 60


def table_of(path, rows=300):
    """The bytes of a Store of so many rows."""
    with closing(Store(path)) as store:
        for k in range(rows):
            store.write({"key": str(k), "status": "done", "result": "x" * 100})
    return path.read_bytes()


def test_rows_of_a_damaged_database_that_are_whole_are_kept(tmp_path):
    """Though it ends early, so that its list of tables does not fit it."""
    data = table_of(tmp_path / "whole.sqlite")
    (tmp_path / "s.sqlite").write_bytes(data[: 9 * len(data) // 10])
    with pytest.warns(UserWarning, match="set aside"), closing(Store(tmp_path / "s.sqlite", known=True)) as store:
        assert len(store.rows()) > 200


def opened_at_once(path, start, told):
    start.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with closing(Store(path)) as store:
                told.put(len(store.rows()))
        except Exception as error:
            told.put(repr(error))


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="starts processes by fork")
def test_processes_that_find_a_damaged_database_set_it_aside_once(tmp_path):
    data, fork = table_of(tmp_path / "whole.sqlite"), multiprocessing.get_context("fork")
    for k in range(12):
        path = tmp_path / f"{k}" / "s.sqlite"
        path.parent.mkdir()
        path.write_bytes(garbled(data) if k % 2 else data[: 2 * len(data) // 3])
        start, told = fork.Barrier(4), fork.Queue()
        processes = [fork.Process(target=opened_at_once, args=(path, start, told)) for _ in range(4)]
        for process in processes:
            process.start()
        found = [told.get(timeout=60) for _ in processes]
        for process in processes:
            process.join()
        assert len(set(found)) == 1, found
        assert isinstance(found[0], int)
        assert {p.name for p in path.parent.iterdir()} == {"s.sqlite", "s.sqlite.damaged-1"}


def test_changed_row_is_computed_again(tmp_path, monkeypatch):
    od.sweep(double, GRID, out=tmp_path / "s.csv")
    with closing(sqlite3.connect(tmp_path / "s.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE results SET result = '7.0' WHERE result = '4.0'")
    ran = counted(monkeypatch)
    with pytest.warns(UserWarning, match="1 damaged row") as told:
        found = od.sweep(double, GRID, out=tmp_path / "s.csv")
    assert len(told) == 1
    assert found.results == [2 * p["x"] for p in GRID]
    assert ran == [{"x": 2.0}]


def test_tables_and_trajectories_are_written_anew(tmp_path):
    od.sweep(motion, GRID, out=tmp_path / "s")
    table, *_ = tmp_path.glob("s/*.csv")
    one = min(tmp_path.glob("s/*.npz"))
    whole = table.read_bytes(), one.read_bytes()
    one.write_bytes(cut(one.read_bytes()))
    table.write_text("garbled")
    with pytest.warns(UserWarning, match="set aside as sweep.csv.other-1"):
        od.sweep(motion, GRID, out=tmp_path / "s")
    assert (table.read_bytes(), one.read_bytes()) == whole
    assert (tmp_path / "s" / "sweep.csv.other-1").read_text() == "garbled"


def test_table_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def full(path, rows):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sweeps, "write_csv", full)
    with pytest.raises(OSError, match=r"No space left.*s\.sqlite.*s\.csv"):
        od.sweep(double, GRID, out=tmp_path / "s.csv")
    assert len(stored(tmp_path / "s.sqlite")) == len(GRID)


def test_two_sweeps_at_once(tmp_path):
    """The second begins in the middle of the first, and takes what is there."""
    out, grid, ran = tmp_path / "s", [{"x": float(x)} for x in range(8)], []

    def f(x):
        ran.append(x)
        if len(ran) == 4:
            assert [r.pieces[0, 0, 0] for r in od.sweep(f, grid[::-1], out=out, key="f").results] == [*range(8)][::-1]
        return motion(x)

    found = od.sweep(f, grid, out=out, key="f")
    assert [r.pieces[0, 0, 0] for r in found.results] == [*range(8)]
    assert len(stored(out / "sweep.sqlite")) == 8


def test_export_on_request(tmp_path):
    out = tmp_path / "s"
    od.sweep(motion, GRID[:2], out=out)
    od.sweep(double, GRID[:3], out=out)
    table = od.export_sweep(out, tmp_path / "all")
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert len({row["function"] for row in rows}) == 2
    assert len(list((tmp_path / "all").glob("*.npz"))) == 2
    with pytest.raises(ShapeError, match="no .*nothing"):
        od.export_sweep(tmp_path / "nothing")


@pytest.mark.slow
def test_work_is_linear_in_the_points(tmp_path):
    def asked(n, name):
        return statements(lambda: od.sweep(double, [{"x": float(x)} for x in range(n)], out=tmp_path / name))

    few, many = asked(30, "few.csv"), asked(120, "many.csv")
    assert many - few == 3 * (few - asked(0, "none.csv"))
    assert asked(120, "many.csv") < many / 2  # and fewer where all is done


# -- rows of studies ----------------------------------------------------------------------------------------------


def test_rows_of_other_code_and_other_plans_are_kept(tmp_path):
    path = tmp_path / "t.csv"
    for code in ("one", "two"):
        table = StoredTable(path, ("x",), ("y",), code)
        table.add(x=1, y=code)
        table.close()
    smaller = StoredTable(path, ("x",), ("y",), "one")
    assert smaller.known(x=1)["y"] == "one"
    smaller.close([])
    assert StoredTable(path, ("x",), ("y",), "two").known(x=1)["y"] == "two"


def test_rows_of_a_quick_run_are_not_those_of_a_full_one(tmp_path):
    StoredTable(tmp_path / "t.csv", ("x",), ("y",), quick=True).add(x=1, y=2)
    assert StoredTable(tmp_path / "t.csv", ("x",), ("y",)).known(x=1) is None


def test_tables_of_others_are_refused_and_earlier_ones_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,mass\n1,2\n")
    with pytest.raises(ShapeError, match=r"t\.csv"):
        StoredTable(path, ("x",), ("y",))
    path.write_text("x,y,code\n1,2,abc\n3,4,a")  # the last one is cut
    table = StoredTable(path, ("x",), ("y",), "a")
    assert table.found == {}
    table.add(x=1, y=5)
    table.close()
    kept = [json.loads(row["result"]) for row in stored(tmp_path / "rows.sqlite")]
    assert {"x": "1", "y": "2", "code": "abc"} in kept
    assert path.read_text().startswith("x,y,code\n1,5,a ")


def test_a_table_that_came_alone_is_used_where_it_is_whole(tmp_path):
    path = tmp_path / "t.csv"
    table = StoredTable(path, ("x",), ("y",))
    for x in range(3):
        table.add(x=x, y=x * x + 10)
    table.close()
    (tmp_path / "rows.sqlite").unlink()
    path.write_text(path.read_text().replace("1,11,", "1,17,")[:-3])  # one number is another, the last row is cut
    again = StoredTable(path, ("x",), ("y",))
    assert {row["x"]: row["y"] for row in again.found.values()} == {"0": "10"}


# -- kills --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kills, seed", [(1, 5), pytest.param(4, 6, marks=pytest.mark.slow)])
def test_killed_sweeps_are_right_and_complete(kills, seed):
    rows = killed(kills, seed=seed)
    assert [(row["wrong"], row["lost"]) for row in rows] == [(0, 0)] * kills


@pytest.mark.slow
def test_sweeps_that_are_killed_in_many_ways_are_right_and_complete():
    rows = killed(8, seed=11)
    assert {row["kind"] for row in rows} <= set(KINDS)
    assert len(rows) == 8
    assert sum(row["wrong"] + row["lost"] for row in rows) == 0
    assert max(row["rows after"] for row in rows) > 12


@pytest.mark.slow
def test_sweep_of_two_thousand_points(tmp_path):
    few, many = (
        statements(lambda n=n: od.sweep(double, [{"x": float(x)} for x in range(n)], out=tmp_path / f"{n}.csv"))
        for n in (500, 2000)
    )
    assert many / few == pytest.approx(4, rel=0.01)


def optimum_of(ocp, name, mass):
    found = ocp.solve(parameters={"mass": mass})
    return found[name][:, 0].tolist() + [found.objective]


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", ["processes", "threads"])
def test_a_problem_is_solved_everywhere_for_its_parameters(where):
    ocp, grid = P.sliding_mass(1.0, free=True), {"mass": [0.5, 1.0, 2.0, 4.0]}
    here = od.sweep(ocp, grid)
    with ThreadPoolExecutor(3) if where == "threads" else contextlib.nullcontext("processes:2") as executor:
        there = od.sweep(ocp, grid, executor=executor)
    assert there.errors == [None] * 4
    for a, b in zip(here.results, there.results, strict=True):
        assert b["objective"] == pytest.approx(a["objective"], rel=1e-12)
        assert b["iterations"] == a["iterations"]
        assert np.allclose(b["states"]["x"], a["states"]["x"], rtol=0, atol=1e-10)
    assert [r["objective"] for r in here.results] == pytest.approx([m**2 * here.results[1]["objective"]
                                                                    for m in grid["mass"]], rel=1e-6)  # fmt: skip


@pytest.mark.slow
def test_problems_are_arguments_of_points_and_of_functions(tmp_path):
    ocp, heavy = P.sliding_mass(1.0, free=True), P.sliding_mass(1.0, free=True)
    heavy.minimize(integral=1.0)
    points = [{"ocp": x, "name": "x", "mass": m} for x in (ocp, heavy) for m in (1.0, 2.0)]
    here = od.sweep(optimum_of, points, out=tmp_path / "s")
    there = od.sweep(optimum_of, points, out=tmp_path / "t", executor="processes:2")
    assert there.failed == []
    assert np.allclose(there.results, here.results, rtol=0, atol=1e-9)
    again = od.sweep(functools.partial(optimum_of, ocp, "x"), {"mass": [1.0, 2.0]}, executor="processes:2")
    assert np.allclose(again.results, here.results[:2], rtol=0, atol=1e-9)
    assert len(stored(tmp_path / "t" / "sweep.sqlite")) == 4
    point = {"ocp": P.sliding_mass(1.0, free=True), "name": "x", "mass": 2.0}
    taken = od.sweep(optimum_of, [point], out=tmp_path / "t")
    assert taken.results == [there.results[1]]  # written again, it is the same problem: nothing was computed


def test_a_problem_in_a_closure_is_filed_by_what_it_holds(tmp_path):
    def solved(ocp):
        return lambda mass: ocp.solve(parameters={"mass": mass}).objective

    heavy = P.sliding_mass(1.0, free=True)
    heavy.minimize(integral=1.0)
    both = [od.sweep(solved(ocp), [{"mass": 1.0}], out=tmp_path / "s.csv").results[0]
            for ocp in (P.sliding_mass(1.0, free=True), heavy)]  # fmt: skip
    assert both[1] == pytest.approx(both[0] + 1, rel=1e-9)
    assert od.sweep(solved(P.sliding_mass(1.0, free=True)), [{"mass": 1.0}], out=tmp_path / "s.csv").results == both[:1]
    assert len(stored(tmp_path / "s.sqlite")) == 2


def solved_for(ocp, mass):
    return ocp.solve(parameters={"mass": mass})


@pytest.mark.sample(1)
@pytest.mark.parametrize("executor", ["serial", "processes:2"])
def test_solutions_are_kept_as_those_of_problems(tmp_path, executor):
    ocp, grid = P.sliding_mass(1.0, free=True), {"mass": [1.0, 2.0]}
    expected = od.sweep(ocp, grid, out=tmp_path / "problem").results
    function = functools.partial(solved_for, ocp)
    for _ in range(2):  # computed, then read
        found = od.sweep(function, grid, out=tmp_path / "s", executor=executor).results
        for a, b in zip(found, expected, strict=True):
            assert a.keys() == b.keys()
            assert a["objective"] == pytest.approx(b["objective"], rel=1e-12)
            assert np.allclose(a["states"]["x"], b["states"]["x"], rtol=0, atol=1e-10)
