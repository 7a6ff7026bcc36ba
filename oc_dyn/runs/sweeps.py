"""od.sweep: one function, or planning problem, at many points, on all cores or many computers."""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import itertools
import json
import os
import pickle
import signal
import tempfile
import threading
import time
import types
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import casadi as ca
import numpy as np

from ..digest import digest, unwound, version
from ..elastic.model import ElasticRobot
from ..errors import ShapeError, SolveError
from ..files import write_bytes, write_csv
from ..interrupts import recorded
from ..model.robot import Robot
from ..numbers import shortened
from ..optimal_control.problem import Problem
from ..optimal_control.solution import Solution
from ..planning.samples import Samples
from ..planning.trajectory import Trajectory
from ..registry import _METHODS
from ..store import Store, aside
from ..types import Executor, StrPath
from ..validation import number

_TABLE = "sweep.csv"
_HEADER = ("key", "function", "version", "status", "seconds", "error", "point", "result")
_OLD = ("point", "key", "status", "seconds", "error", "result", "code")  # of 0.1, whose keys did not tell all
_OTHER_CODE = "other code"  # status of the SolveError of a worker whose function is not the one here
_STOPPING = signal.SIGINT, signal.SIGTERM
_KEPT = threading.local()  # in a thread of a worker: .function of the sweep .name, so that Functions which a robot
# keeps are built once, and no two threads solve one Problem at once; the name is of one call of sweep alone, so that
# what an earlier one did to its function cannot matter


@dataclass
class Sweep:
    """What came of a sweep, in the order of the grid. points: arguments. results: None where a point failed. errors:
    "Kind: message" of the exception, None where it did not. seconds: time that each took [s]."""

    points: list[dict[str, Any]]
    results: list[Any] = field(default_factory=list)
    errors: list[str | None] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def failed(self) -> list[int]:
        """Numbers of the points that failed."""
        return [k for k, error in enumerate(self.errors) if error is not None]

    def __str__(self) -> str:
        return f"Sweep of {len(self)} points, {len(self.failed)} failed, {sum(self.seconds):.3g} s of computing"


def sweep(
    function_or_problem: Callable[..., Any] | Problem,
    grid: dict[str, Any] | Iterable[dict[str, Any]], *, executor: str | Executor = "serial",
    out: StrPath | None = None, key: str | float | None = None, accept: str | Sequence[str] = (),
    retry: bool = False, time_limit: float | None = None, progress: bool | None = None,
) -> Sweep:  # fmt: skip
    """function(**point) at every point of a grid, as a Sweep; a point that fails is noted and does not end the others.

    function_or_problem: a function of a module, or partial(od.plan_point_to_point, robot), of functools. One that
    returns an od.Problem has it solved: its result is a dict of duration, objective, status, iterations, t and, by
    name, states and controls (arrays, a row for each node). An od.Problem itself is solved for parameters by name. A
    Problem, or Solution, that is sent to a worker, also as an argument, has symbols of its own there: go by names.
    grid: list of {argument: value}, or {argument: [values]} for all combinations, the last argument the fastest.
    executor: "serial", "processes:N", "dask:N", "dask:ADDRESS" or any concurrent.futures.Executor, see
    oc_dyn.executors. A script with processes needs `if __name__ == "__main__":`. Results do not depend on it: every
    point gets arguments of its own, so that a function may change them, as far as they can be pickled; robots and
    Functions are shared.
    out: file.csv or folder. Every result is written to a database, file.sqlite or sweep.sqlite in the folder, as soon
    as it is there; the table, and trajectories in the folder as KEY.npz, at the end or by od.export_sweep. The same
    sweep goes on where it was stopped, killed too; several may write to one file at once. A file, or a folder with
    anything in it, that is not of a sweep is refused and left as it is; a damaged database is set aside.
    A result is filed under what decides it: the function (code, constants, closure, defaults, the object it is bound
    to, the globals that its code names, all the way down; installed packages by version), or the expressions of a
    Problem; the point; and the version of oc_dyn, CasADi, NumPy and Python, never its place in the grid. Points that
    are the same are computed once: give a function of chance its seed. What files hold, the environment and what a
    function does to its own object are not seen: give such things as arguments, or in key.
    Results there are what JSON knows (numpy arrays come back as lists), a Solution as the dict above, or a Trajectory,
    with its robot if the function is given it, encloses it, or names it as a global, and else without.
    key: text or number that stands for the function where it cannot be digested, or is not to be; change it whenever
    the function gives other results.
    accept: what else may be taken from the database, which keeps all it ever got: "versions" for results of the same
    function by other versions, and functions as the column `function` of the table names them; the latest is taken.
    retry: run points again that failed before; those whose worker was lost always are.
    time_limit: seconds for the solvers of a point, which fails beyond it; with a longer one it is run again.
    progress: show a bar on stderr; default only on a terminal.
    Ctrl-C ends the sweep with KeyboardInterrupt, or what a handler of one's own raises, and SystemExit of a point ends
    it too; the points they stopped count neither as done nor as failed.
    Raises ShapeError for a grid, function or file that does not fit, and for what cannot be digested, SolveError where
    a worker has another version of the function, OSError where `out` cannot be written: what was done before is kept.
    """
    from ..executors import checked, completed, told  # multiprocessing and tqdm when they are first needed
    from .points import bar

    points = _points(grid)
    kind, _ = checked(executor)
    if time_limit is not None and number("sweep: time_limit", time_limit) <= 0:
        raise ShapeError(f"sweep: time_limit is {shortened(time_limit)}, expected a positive number of seconds")
    function = function_or_problem
    if isinstance(function, Problem):
        function = functools.partial(_solved_for, function)
    elif not callable(function):
        raise ShapeError(f"sweep: got {function!r}, expected a function or an od.Problem")
    accept = _names_of(accept)
    filed = None if out is None else _Filed(out, function, points, key, accept)
    with closing(filed) if filed else nullcontext():
        done: dict[int, Any] = {}
        missing, same = list(range(len(points))), {}
        if filed:
            same = filed.same
            done = {k: x for k, x in ((k, filed.read(k, retry, time_limit)) for k in filed.first) if x is not None}
            missing = [k for k in filed.first if k not in done]
        if kind == "serial":
            run, tasks = _run, [(function, points[k], time_limit) for k in missing]
        else:
            packed, name = _packed(function, kind), uuid.uuid4().hex
            expected = filed.function if filed and key is None else None
            run, tasks = _run_packed, [(packed, name, expected, points[k], time_limit) for k in missing]
        through = completed(run, tasks, executor, lambda number: f"point {missing[number]} of the sweep")
        with bar(progress, len(points), "sweep") as shown, recorded(*_STOPPING) as raised, closing(through) as found:
            shown.update(len(done))
            for place, outcome, error in found:
                if raised:  # also what a solver, or the point, has swallowed or made a failure of it
                    raise raised[0]
                if error is not None and getattr(error, "status", None) == _OTHER_CODE:
                    raise error
                k, status = missing[place], "lost"
                result, text, seconds, limited = outcome or (None, told(cast(Exception, error)), 0.0, False)
                if outcome is not None:
                    status = "done" if text is None else "failed"
                result, whose = _with_robot(result, function, points[k])
                done[k] = result, text, seconds
                if filed:
                    limit = time_limit if limited else None
                    done[k] = filed.write(k, status, result, text, seconds, whose, limit)
                shown.update()
        done |= {k: done[first] for k, first in same.items()}
        if filed:
            filed.export()
    columns = list(zip(*(done[k] for k in range(len(points))), strict=True)) or [(), (), ()]
    return Sweep(points, *(list(column) for column in columns))


def export_sweep(out: StrPath, to: StrPath | None = None) -> Path:
    """Write all that the database of sweeps with this `out` keeps, of any function and version, as a table with the
    trajectories beside it, now: to the file.csv or folder `to`, by default `out` itself. Returns the path of the table.

    Raises ShapeError where there is no such database or `to` is not of a sweep, OSError as sweep does.
    """
    _, base = _files(out)
    if not base.exists():
        raise ShapeError(f"export_sweep: there is no {base}")
    table, _ = _files(out if to is None else to)
    with closing(Store(base, known=_is_ours(base.with_suffix(".csv")))) as store:
        _export(store.rows(), table, Path(out if to is None else to).suffix.lower() != ".csv")
    return table


def _points(grid):
    if isinstance(grid, dict):
        for name, values in grid.items():
            if isinstance(values, (str, bytes)) or not _is_iterable(values):
                raise ShapeError(f"sweep: grid: {name!r} is {shortened(values)}, expected a list of values")
        grid = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if not _is_iterable(grid):
        expected = "expected a list of {argument: value} or {argument: [values]}"
        raise ShapeError(f"sweep: grid is {shortened(grid)}, {expected}")
    points = list(grid)
    for k, point in enumerate(points):
        if not isinstance(point, dict) or not all(isinstance(name, str) for name in point):
            raise ShapeError(f"sweep: point {k} is {point!r}, expected {{argument: value}}")
        for name in point:
            if _plain_text(name) != name:
                raise ShapeError(f"sweep: point {k}: {name!r} is no name of an argument: it cannot be written as UTF-8")
    return points


def _is_iterable(x):
    try:
        iter(x)
    except TypeError:
        return False
    return True


def _names_of(accept):
    names = [accept] if isinstance(accept, str) else list(accept) if _is_iterable(accept) else [accept]
    if not all(isinstance(x, str) for x in names):
        expected = 'expected "versions", or functions as the table names them'
        raise ShapeError(f"sweep: accept is {shortened(accept)}, {expected}")
    return names


def _plain_text(text):
    """A text that can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


# -- one point ---------------------------------------------------------------------------------------------------


def _run(function, point, time_limit=None):
    """(result, None or text of the exception, seconds, whether the time was up)."""
    from ..executors import told

    point = _copied(point)
    start, limited = time.perf_counter(), False
    try:
        with _deadline(time_limit):
            result, text = function(**point), None
            if isinstance(result, Problem):
                result = _plain_solution(result.solve())
    except Exception as error:
        result, text = None, told(error)
        limited = time_limit is not None and getattr(error, "status", None) == "time_limit"
    return result, text, time.perf_counter() - start, limited


_SHARED = (
    Robot, ElasticRobot, ca.Function, ca.SX, ca.MX, type, types.FunctionType, types.BuiltinFunctionType,
    types.ModuleType,
)  # fmt: skip


class _Pickler(pickle.Pickler):
    """Leaves out what no function changes, or only what keeps it fast, and what lies in no module."""

    def __init__(self, file):
        super().__init__(file)
        self.shared = []

    def persistent_id(self, x):
        if not isinstance(x, _SHARED):
            return None
        self.shared.append(x)
        return len(self.shared) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, shared):
        super().__init__(file)
        self.shared = shared

    def persistent_load(self, number):
        x = self.shared[number]
        return type(x)(x) if type(x) in (ca.SX, ca.MX) else x  # of the same symbols


def _copied(x):
    """A point, as another process would get it, so that what a function changes in place stays its own."""
    if isinstance(x, (type(None), bool, int, float, complex, str, bytes)):
        return x
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(x)
        file.seek(0)
        return _Unpickler(file, pickler.shared).load()
    except Exception:  # an open file, a lock
        return {name: _copied(value) for name, value in x.items()} if type(x) is dict else x


def _deadline(seconds):
    if seconds is None:
        return nullcontext()
    from ..interrupts import deadline

    return deadline(seconds)


def _run_packed(packed, name, expected, point, time_limit):
    """The same in a worker. A robot of the function is not sent back with every result, but the argument it is."""
    function = getattr(_KEPT, "function", None)
    if function is None or _KEPT.name != name:
        function = pickle.loads(packed)
        if expected is not None and _function_digest(function) != expected:
            raise SolveError(
                "sweep: the function, or a global that it names, is another in the worker than here, so that its "
                "results cannot be filed: start workers anew after a change; give what is set at run time as an "
                "argument; or give key=",
                _OTHER_CODE,
            )
        _KEPT.name, _KEPT.function = name, function
    result, *rest = _run(function, point, time_limit)
    if isinstance(result, Samples):
        result.robot = _place_of(result.robot, function, point) or result.robot
    return result, *rest


def _with_robot(result, function, point):
    """(result, None or the place of its robot in what the function is given or holds), the robot in its place."""
    if not isinstance(result, Samples):
        return result, None
    if isinstance(result.robot, str):
        result.robot = _robots(function, point).get(result.robot)
    return result, _place_of(result.robot, function, point)


def _place_of(robot, function, point):
    return next((place for place, x in _robots(function, point).items() if x is robot), None)


def _robots(function, point):
    """{place: robot} of all in the arguments of a point, those that functools.partial keeps by position as "0", "1",
    ..., in lists and dicts of them, and in what the function is bound to, encloses, or names of its module."""
    function, args, keywords = unwound(function)
    found = {}
    _add_robots(found, {**{str(k): x for k, x in enumerate(args)}, **keywords, **point}, "", ())
    if isinstance(function, types.MethodType):
        _add_robots(found, getattr(function.__self__, "__dict__", {}), "self.", ())
        function = function.__func__
    if isinstance(function, types.FunctionType):
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # not set yet
                _add_robots(found, {name: cell.cell_contents}, "closure ", ())
        space = function.__globals__
        _add_robots(found, {k: space[k] for k in code.co_names if k in space}, "global ", ())
    return found


def _add_robots(found, holder, above, within):
    if id(holder) in within:
        return
    items = holder.items() if isinstance(holder, dict) else enumerate(holder)
    for k, x in items:
        place = f"{above}{k}" if not within else f"{above}[{k!r}]"
        if isinstance(x, Robot):
            found.setdefault(place, x)
        elif isinstance(x, (dict, list, tuple)) and len(x) < 1000:
            _add_robots(found, x, place, (*within, id(holder)))


def _packed(function, kind):
    try:
        if kind == "dask":  # whose workers do not know the script that this is
            from distributed.protocol.pickle import dumps

            return bytes(dumps(function))
        return pickle.dumps(function)
    except Exception as error:
        raise ShapeError(
            f"sweep: the function cannot be sent to another process: {error}; "
            "give a function of a module or functools.partial of one, not a lambda or a function within another"
        ) from None


def _solved_for(problem, **values):
    return _plain_solution(problem.solve(parameters=values))


def _plain_solution(found):
    out = {k: getattr(found, k) for k in ("duration", "objective", "status", "iterations", "t")}
    for what, values, variables in (
        ("states", found.x, found.description.states),
        ("controls", found.u, found.description.controls),
    ):
        ends = np.cumsum([0, *(v.size for v in variables)])
        out[what] = {v.name: values[:, a:b] for v, a, b in zip(variables, ends, ends[1:], strict=False)}
    return out


# -- what is kept on the disk ------------------------------------------------------------------------------------


class _Filed:
    """The database of a sweep, and under which key every point is in it."""

    def __init__(self, out, function, points, key, accept):
        self.table, base = _files(out)
        self.folder = Path(out).suffix.lower() != ".csv"
        self.called, self.points = function, points
        self.function = _function_digest(function) if key is None else _named(key)
        self.versions = "versions" in accept
        self.others = [self.function, *(x for x in accept if x != "versions")]
        known = {}
        self.places = [_point_digest(k, point, known) for k, point in enumerate(points)]
        told = ("\0".join((version(), self.function, place)) for place in self.places)
        self.keys = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in told]
        self.first = list({key: k for k, key in reversed(list(enumerate(self.keys)))}.values())[::-1]
        numbers = {self.keys[k]: k for k in self.first}
        self.same = {k: numbers[key] for k, key in enumerate(self.keys) if numbers[key] != k}
        self.taken = {}  # by number of the point: the key of the row that is its result
        self.store = Store(base, known=_is_ours(self.table))
        self.close = self.store.close

    def read(self, k, retry, time_limit):
        """(result, error, seconds) of a point that is to be taken as it is; None if it is to be computed."""
        row = self.store.read(self.keys[k])
        if row is None or row["status"] != "done":
            row = self._accepted(k) or row
        if row is None or row["status"] == "lost":
            return None
        note = json.loads(row["note"])
        if row["status"] == "failed":
            limit = note.get("time_limit")
            if retry or (limit is not None and (time_limit is None or time_limit > limit)):
                return None
        try:
            result = self._result(k, row, note)
        except (OSError, ValueError, LookupError) as error:  # of another version
            warnings.warn(f"{self.store.path}: point {k} cannot be read, it is computed again: {error}", stacklevel=3)
            return None
        self.taken[k] = row["key"]
        return result, row["error"] or None, row["seconds"]

    def _accepted(self, k):
        if not self.versions and len(self.others) == 1:
            return None
        marks = ", ".join("?" * len(self.others))
        where, given = f"point = ? AND status = 'done' AND function IN ({marks})", [self.places[k], *self.others]
        if not self.versions:
            where, given = f"{where} AND version = ?", [*given, version()]
        return max(self.store.rows(where, *given), key=lambda row: row["written"], default=None)

    def _result(self, k, row, note):
        if row["kind"] != "trajectory":
            return json.loads(row["result"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{row['key']}.npz"
            path.write_bytes(row["result"])
            return Trajectory.load(path, robot=_robots(self.called, self.points[k]).get(note.get("robot")))

    def write(self, k, status, result, text, seconds, whose, limit):
        """Keep what came of a point; returns (result, error, seconds) as they will be read."""
        kind, data = "json", None
        if isinstance(result, Samples):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{self.keys[k]}.npz"
                result.save(path)
                kind, data = "trajectory", path.read_bytes()
            if whose is None:  # it is not known when this is read, so that it must not be here
                result.robot = None
        else:
            result = _plain_solution(result) if isinstance(result, Solution) else result
            try:
                data = json.dumps(result, default=_plain)
                result = json.loads(data)
            except (TypeError, ValueError) as error:
                raise ShapeError(
                    f"sweep: the result of point {k} cannot be written: {error}; return numbers, texts, arrays, "
                    "lists or dicts of them, or a Trajectory"
                ) from None
        note = {name: x for name, x in (("robot", whose), ("time_limit", limit)) if x is not None}
        row = {
            "key": self.keys[k], "function": self.function, "version": version(), "point": self.places[k],
            "arguments": _arguments(self.points[k]), "status": status, "seconds": float(seconds),
            "error": _plain_text(text or ""), "kind": kind, "result": data, "note": json.dumps(note),
        }  # fmt: skip
        kept = self.store.write(row)
        self.taken[k] = row["key"]
        if kept["result"] != data:
            result = self._result(k, kept, json.loads(kept["note"]))  # another sweep has been faster
        return result, kept["error"] or None, kept["seconds"]

    def export(self):
        """The table of this sweep, in the order of the grid, and its trajectories."""
        rows = [self.store.read(self.taken[k]) for k in self.first]
        try:
            _export([row for row in rows if row is not None], self.table, self.folder)
        except OSError as error:
            text = f"{error.strerror or error}; all results are in {self.store.path.name}, start again or export_sweep"
            raise type(error)(error.errno, text, str(error.filename or self.table)) from error


def _export(rows, table, folder):
    if table.exists() and not _is_ours(table):
        name = aside(table, "other")
        warnings.warn(f"{table}: it is not what the sweep has written, and was set aside as {name.name}", stacklevel=4)
    lines = [_HEADER]
    for row in rows:
        told = row["result"]
        if row["kind"] == "trajectory":
            told = f"{row['key']}.npz"
            path = table.with_name(told)
            if folder and not (path.exists() and path.read_bytes() == row["result"]):
                write_bytes(path, row["result"])
        cells = (row[x] for x in ("key", "function", "version", "status"))
        lines.append((*cells, f"{row['seconds']:.6g}", row["error"], row["arguments"], told))
    write_csv(table, lines)


def _files(out):
    """(table, database) of out; raises ShapeError if it is not of a sweep."""
    try:
        path = Path(os.fspath(out))
        os.lstat(path)
    except (TypeError, ValueError):  # a NUL, a surrogate
        raise ShapeError(f"sweep: out is {shortened(out)}, expected the name of a file or folder") from None
    except OSError:  # as where it is yet to be made
        pass
    is_table = path.suffix.lower() == ".csv"
    if path.is_dir() if is_table else path.is_file():
        found, expected = ("folder", "file") if is_table else ("file", "folder, or a name in .csv")
        raise ShapeError(f"sweep: out={path} is a {found}, expected a {expected}")
    table = path if is_table else path / _TABLE
    base, ours = table.with_suffix(".sqlite"), _is_ours(table)
    if ours is None:
        raise ShapeError(
            f"sweep: out={path}: {table.name} is of a sweep by an earlier version of oc_dyn, whose results may be of "
            "another function; it is left as it is: give another name"
        )
    there = base.exists() or any(path.glob(f"{base.name}*") if not is_table and path.is_dir() else ())
    if table.exists() and not ours and not there:
        raise ShapeError(f"sweep: out={path}: {table.name} is not of a sweep, it is left as it is: give another name")
    if not is_table and path.is_dir() and not ours and not there and any(path.iterdir()):
        raise ShapeError(
            f"sweep: out={path} is a folder of other things, expected a new one, an empty one, or one of a sweep"
        )
    return table, base


def _is_ours(table):
    """Whether the head of a table is that of a sweep; None for one of an earlier version."""
    try:
        if not table.is_file():  # a pipe would be waited for
            return False
        with open(table, newline="", encoding="utf-8") as file:
            head = tuple(next(csv.reader(file), ()))
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return None if head == _OLD else head == _HEADER


def _function_digest(function):
    """Of a function, and of methods that were registered by others than oc_dyn, which it may ask for by name."""
    methods = [m for table in _METHODS.values() for m in table.values()]
    added = [m for m in methods if m.function.__module__.partition(".")[0] != "oc_dyn"]
    try:
        return digest((function, added) if added else function, "sweep: the function")
    except ShapeError as error:
        raise ShapeError(
            f"{error}, so that results cannot be filed under what made them; give key=, a text or number that you "
            "change whenever the function gives other results, or no out="
        ) from None


def _named(key):
    if isinstance(key, bool) or not isinstance(key, (str, int, float)) or key == "":
        raise ShapeError(f"sweep: key is {shortened(key)}, expected a text or a number")
    return f"key {key!r}"


def _point_digest(k, point, known):
    try:
        return digest({name: point[name] for name in sorted(point)}, f"sweep: point {k}", known)
    except ShapeError as error:
        raise ShapeError(f"{error}; give numbers, texts, arrays, robots or other plain values as arguments") from None


def _plain(x):
    if isinstance(x, (np.ndarray, np.generic)):
        return x.tolist()
    if hasattr(x, "full"):  # casadi.DM
        return x.full().tolist()
    raise TypeError(f"{type(x).__name__} is not known to JSON")


def _arguments(point):
    try:
        return json.dumps(point, default=_shown)
    except (TypeError, ValueError):  # dicts by other keys than texts
        return json.dumps({name: _shown(x) for name, x in point.items()})


def _shown(x):
    """What a reader of the table sees of an argument that is no number or text."""
    try:
        return _plain(x)
    except TypeError:
        return f"{type(x).__name__} {getattr(x, 'name', '')}".strip()
