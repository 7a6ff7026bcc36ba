"""od.sweep: one function, or planning problem, at many points, on all cores or many computers."""

import functools
import hashlib
import inspect
import itertools
import json
import pickle
import time
from contextlib import closing
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

import numpy as np

from .errors import ShapeError, UnknownName
from .model.robot import Robot
from .planning.problem import Problem
from .planning.trajectory import Samples, Trajectory

_TABLE = "sweep.csv"
_KEPT = {}  # in a worker: the function by its digest, so that Functions which a robot keeps are built once


@dataclass
class Sweep:
    """What came of a sweep, in the order of the grid. points: arguments. results: None where a point failed. errors:
    "Kind: message" of the exception, None where it did not. seconds: time that each took [s]."""

    points: list
    results: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    seconds: list = field(default_factory=list)

    def __len__(self):
        return len(self.points)

    @property
    def failed(self):
        """Numbers of the points that failed."""
        return [k for k, error in enumerate(self.errors) if error is not None]

    def __str__(self):
        return f"Sweep of {len(self)} points, {len(self.failed)} failed, {sum(self.seconds):.3g} s of computing"


def sweep(function_or_problem, grid, *, executor="serial", out=None, retry=False, progress=None):
    """function(**point) at every point of a grid, as a Sweep; a point that fails is noted and does not end the others.

    function_or_problem: a function of a module, or partial(od.plan_point_to_point, robot), of functools. One that
    returns an od.Problem has it solved: its result is a dict of duration, objective, status, iterations, t and, by
    name, states and controls (arrays, a row for each node). An od.Problem itself is solved for parameters by name, here
    alone: it cannot be sent to other processes.
    grid: list of {argument: value}, or {argument: [values]} for all combinations, the last argument the fastest.
    executor: "serial", "processes:N", "dask:ADDRESS" or any concurrent.futures.Executor, see oc_dyn.executors. A script
    with processes needs `if __name__ == "__main__":`. Results do not depend on it.
    out: file.csv or folder, written after every point; the same sweep with the same code goes on where it was stopped.
    Results there are what JSON knows (numpy arrays come back as lists); a Trajectory needs a folder, where it is
    N.npz. retry: run points again that failed before; those whose worker was lost always are.
    progress: show a bar on stderr; default only on a terminal.
    Raises ShapeError for a grid or function that does not fit, OSError where `out` cannot be written: points that were
    done before are kept.
    """
    from .executors import checked, completed  # multiprocessing and tqdm when they are first needed
    from .study.points import bar

    points = _points(grid)
    kind, _ = checked(executor)
    function = function_or_problem
    if isinstance(function, Problem):
        if kind != "serial":
            raise ShapeError(
                "sweep: an od.Problem holds symbols and cannot be sent to other processes; "
                "give the function that makes it, with what varies as its arguments"
            )
        function = functools.partial(_solved_for, function)
    elif not callable(function):
        raise ShapeError(f"sweep: got {function!r}, expected a function or an od.Problem")
    store = None if out is None else _Store(Path(out), function, points)
    done, missing = {}, list(range(len(points)))
    if store:
        done = {k: x for k, x in ((k, store.read(k, function, retry)) for k in missing) if x is not None}
        missing = [k for k in missing if k not in done]
    if kind == "serial":
        run, tasks = _run, [(function, points[k]) for k in missing]
    else:
        packed = _packed(function, kind)
        digest = hashlib.sha256(packed).hexdigest()
        run, tasks = _run_packed, [(packed, digest, points[k]) for k in missing]
    through = completed(run, tasks, executor, lambda number: f"point {missing[number]} of the sweep")
    with bar(progress, len(points), "sweep") as shown, closing(through) as found:
        shown.update(len(done))
        for number, outcome, error in found:
            k, status = missing[number], "lost"
            result, text, seconds = outcome or (None, f"{type(error).__name__}: {error}", 0.0)
            if outcome is not None:
                status = "done" if text is None else "failed"
            result = _with_robot(result, function, points[k])
            if store:
                result = store.write(k, status, result, text, seconds)
            done[k] = result, text, seconds
            shown.update()
    if store:
        store.close()
    columns = list(zip(*(done[k] for k in range(len(points))), strict=True)) or [(), (), ()]
    return Sweep(points, *(list(column) for column in columns))


def _points(grid):
    if isinstance(grid, dict):
        grid = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    points = list(grid)
    for k, point in enumerate(points):
        if not isinstance(point, dict) or not all(isinstance(name, str) for name in point):
            raise ShapeError(f"sweep: point {k} is {point!r}, expected {{argument: value}}")
    return points


# -- one point ---------------------------------------------------------------------------------------------------


def _run(function, point):
    """(result, None or text of the exception, seconds)"""
    start = time.perf_counter()
    try:
        result, text = function(**point), None
        if isinstance(result, Problem):
            result = _plain_solution(result.solve())
    except Exception as error:
        result, text = None, f"{type(error).__name__}: {error}"
    return result, text, time.perf_counter() - start


def _run_packed(packed, digest, point):
    """The same in a worker. A robot of the function is not sent back with every result, but its place."""
    if digest not in _KEPT:
        _KEPT.clear()
        _KEPT[digest] = pickle.loads(packed)
    function = _KEPT[digest]
    result, text, seconds = _run(function, point)
    if isinstance(result, Samples):
        places = [k for k, x in enumerate(_given(function, point)) if x is result.robot and isinstance(x, Robot)]
        if places:
            result.robot = places[0]
    return result, text, seconds


def _with_robot(result, function, point):
    if isinstance(result, Samples) and isinstance(result.robot, int):
        result.robot = _given(function, point)[result.robot]
    return result


def _given(function, point):
    """All arguments of a point, those that functools.partial keeps first."""
    kept = [*function.args, *function.keywords.values()] if isinstance(function, functools.partial) else []
    return [*kept, *point.values()]


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
    symbols = dict(problem._parameters)
    for name in values:
        if name not in symbols:
            raise UnknownName("parameter of the problem", name, symbols)
    return _plain_solution(problem.solve(parameters={symbols[name]: x for name, x in values.items()}))


def _plain_solution(found):
    out = {k: getattr(found, k) for k in ("duration", "objective", "status", "iterations", "t")}
    for what, values, variables in (
        ("states", found.x, found.transcribed.states),
        ("controls", found.u, found.transcribed.controls),
    ):
        ends = np.cumsum([0, *(v.size for v in variables)])
        out[what] = {v.name: values[:, a:b] for v, a, b in zip(variables, ends, ends[1:], strict=False)}
    return out


# -- what is kept on the disk ------------------------------------------------------------------------------------


class _Store:
    def __init__(self, path, function, points):
        from .study.rows import Rows, fingerprint

        self.folder = None if path.suffix.lower() == ".csv" else path
        if path.is_file() if self.folder else path.is_dir():
            found, expected = ("file", "folder, or a name in .csv") if self.folder else ("folder", "file")
            raise ShapeError(f"sweep: out={path} is a {found}, expected a {expected}")
        told = _told(function)
        self.keys = [{"point": k, "key": _digest(told + _told(point))} for k, point in enumerate(points)]
        table = path if self.folder is None else path / _TABLE
        self.table = Rows(table, ("point", "key"), ("status", "seconds", "error", "result"), fingerprint(("study",)))
        self.points = points
        self.table.begin()

    def read(self, k, function, retry):
        row = self.table.known(**self.keys[k])
        if row is None or row["status"] == "lost" or (retry and row["status"] == "failed"):
            return None
        result = json.loads(row["result"]) if row["result"] else None
        if isinstance(result, dict) and set(result) == {"trajectory"}:
            robots = [x for x in _given(function, self.points[k]) if isinstance(x, Robot)]
            try:
                result = Trajectory.load(self.folder / result["trajectory"], robot=robots[0] if robots else None)
            except OSError:
                return None  # gone: to be planned again
        self.table.add(**row)
        return result, row["error"] or None, float(row["seconds"])

    def write(self, k, status, result, text, seconds):
        """Keep a result; returns it as it will be read."""
        if isinstance(result, Samples):
            if self.folder is None:
                raise ShapeError(f"sweep: out={self.table.path}: trajectories do not fit in a table, give a folder")
            name = f"{k:0{len(str(len(self.keys)))}d}.npz"
            result.save(self.folder / name)
            kept = {"trajectory": name}
        else:
            try:
                kept = result = json.loads(json.dumps(result, default=_plain))
            except (TypeError, ValueError) as error:
                raise ShapeError(
                    f"sweep: the result of point {k} cannot be written: {error}; return numbers, texts, arrays, "
                    "lists or dicts of them, or a Trajectory"
                ) from None
        row = {"status": status, "seconds": f"{seconds:.6g}", "error": text or "", "result": json.dumps(kept)}
        self.table.add(**self.keys[k], **row)
        return result

    def close(self):
        self.table.close(self.keys)


def _plain(x):
    if isinstance(x, (np.ndarray, np.generic)):
        return x.tolist()
    if hasattr(x, "full"):  # casadi.DM
        return x.full().tolist()
    raise TypeError(f"{type(x).__name__} is not known to JSON")


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _told(x):
    """Text that is the same in every process for the same value: what is pickled is not, sets come in any order."""
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, (bool, int, float, str, bytes)):
        return repr(x)
    if isinstance(x, np.ndarray):
        return f"array({x.tolist()!r})"
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(_told, x))}]"
    if isinstance(x, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_told, x)))}}}"
    if isinstance(x, functools.partial):
        return f"partial({_told(x.func)}, {_told(x.args)}, {_told(x.keywords)})"
    if hasattr(x, "items"):
        return f"{{{', '.join(sorted(f'{_told(k)}: {_told(y)}' for k, y in x.items()))}}}"
    if is_dataclass(x) and not isinstance(x, type):
        return f"{type(x).__name__}({_told({f.name: getattr(x, f.name) for f in fields(x) if f.name[0] != '_'})})"
    if hasattr(x, "__qualname__"):
        try:
            source = inspect.getsource(x)
        except (OSError, TypeError):
            source = ""
        return f"{x.__module__}.{x.__qualname__} {source}"
    if hasattr(x, "full"):
        return f"DM({x.full().tolist()!r})"
    state = {k: y for k, y in vars(x).items() if k[0] != "_"} if hasattr(x, "__dict__") else repr(x)
    return f"{type(x).__name__}({_told(state)})"
