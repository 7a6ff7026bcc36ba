"""od.batch: a Function at many points at once, by a compiled loop that takes several points a step, on several threads."""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ModelWarning, ShapeError, SolveError
from ..model.quaternions import check_quaternions
from ..numbers import as_floats
from ..types import Array, Numbers, StrPath
from .build import FLAGS, TIME_LIMIT, Command, Flags, checked_time_limit, library, opened, processors
from .lanes import batch_source
from .source import checked_functions

NATIVE = (*FLAGS, "-march=native")
_WORTH = 300_000  # instructions that are worth a thread: about 50 us

Compute = Callable[[list[Array], list[Array], int], None]  # of inputs, outputs to write to, the number of points


def batch(
    function: ca.Function,
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    flags: Flags | None = None,
    compiler: Command | None = None,
    cache: StrPath | None = None,
    fallback: bool = True,
    time_limit: float | None = TIME_LIMIT,
) -> Batch:
    """Batch of a casadi.Function: run(q, v, dv) with N points side by side, as Function.map, but compiled.

    threads: how many points are computed at a time; default the number of processors. executor: a
    concurrent.futures.Executor of threads to use instead of own ones (not of processes: memory is shared).
    flags: of the compiler; default -O3 -march=native, or -O3 where it does not know the latter.
    compiler, cache, time_limit: as in od.compile.
    fallback: go on with Function.map, with a ModelWarning, where it cannot be compiled and loaded, see od.compile.
    Raises ModelError for what is no Function, ShapeError, in a call also for quaternions that are not of unit length;
    without fallback SolveError and ModelError as od.compile.
    """
    (function,) = checked_functions("batch", function)
    if threads is None:
        threads = processors()
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise ShapeError(f"batch: threads is {threads!r}, expected a number of at least 1")
    if executor is not None and not hasattr(executor, "submit"):
        raise ModelError("batch", [f"executor is a {type(executor).__name__}, expected a concurrent.futures.Executor"])
    time_limit = checked_time_limit("batch", time_limit)
    text = batch_source(function)
    try:
        library_ = opened(_library(text, flags, compiler, cache, time_limit))
    except (SolveError, ModelError) as error:
        if not fallback:
            raise
        warnings.warn(ModelWarning(f"not compiled, Function.map is used: {error}"), stacklevel=2)
        return Batch(function, _mapped(function, int(threads)))
    return Batch(function, _Compiled(function, library_, int(threads), executor))


def _library(text: str, flags: Flags | None, *options: Any) -> Any:
    if flags is not None:
        return library({"oc_dyn.c": text}, flags, *options)
    try:
        return library({"oc_dyn.c": text}, NATIVE, *options)
    except SolveError as error:
        if error.status == "time_limit":
            raise
        return library({"oc_dyn.c": text}, FLAGS, *options)


class Batch:
    """run(*arrays), all ports by position, or run(**arrays), all by name, over N points: arrays (rows, N) of column
    ports and (rows, columns*N) of matrix ports; one point, also as (rows,), is taken for all. The result has the same
    form: an array, or a tuple of them, newly allocated, or `out`: arrays of floats of these shapes to write to.

    Arrays of floats are read and written where they are, whatever their strides. A point's result does not depend on
    the others, their number or the threads. Calls from several threads do not disturb each other.
    """

    def __init__(self, function: ca.Function, compute: Compute) -> None:
        self.function, self._compute = function, compute

    def __call__(self, *args: Numbers, out: Any = None, **ports: Any) -> Any:
        """The output at all points, or a tuple of the outputs; see the class."""
        f: Any = self.function
        names = f.name_in()
        if "out" in names and out is not None:
            ports["out"], out = out, None
        if args and ports:
            raise ShapeError(f"{f.name()}: give all ports by position or all by name, not both")
        if len(args) != len(names) and set(ports) != set(names):
            expected = ", ".join(f"{n}{list(f.size_in(n))}" for n in names)
            got = f"{len(args)} arrays" if args or not ports else ", ".join(ports)
            raise ShapeError(f"{f.name()}: got {got}, expected {expected}, with the points side by side")
        points = [_points(f, i, x) for i, x in enumerate(args or [ports[n] for n in names])]
        for port in getattr(f, "configurations", ()):
            check_quaternions(f.where(port), f.rotations, points[names.index(port)], f.normalize)
        counts = {n: _count(x, f.size2_in(i)) for i, (n, x) in enumerate(zip(names, points, strict=True))}
        n = max((c for c in counts.values() if c != 1), default=1) if all(counts.values()) else 0
        if any(c not in (1, n) for c in counts.values()):
            raise ShapeError(f"{f.name()}: the ports have different numbers of points: {counts}")
        results = _new_results(f, n) if out is None else _checked_results(f, n, out, points)
        if n:
            self._compute(points, results, n)
        return results[0] if len(results) == 1 else tuple(results)


def _points(f: ca.Function, i: int, given: Any) -> Array:
    """(rows, columns*points) of a port."""
    name, (rows, columns) = f.name_in(i), f.size_in(i)
    given = as_floats(f"{f.name()}: port {name}", given)
    shape = given.shape
    if given.ndim < 2:
        given = given.reshape(rows if given.size == rows else -1, 1)
    if given.ndim != 2 or given.shape[0] != rows or (columns and given.shape[1] % columns):
        wanted = f"({rows}, N)" if columns == 1 else f"({rows}, {columns} N)"
        raise ShapeError(f"{f.name()}: port {name} got shape {shape}, expected {wanted} for N points")
    return given if given.flags.aligned else given.copy()


def _count(points: Array, columns: int) -> int:
    return points.shape[1] // columns if columns else 1


def _new_results(f: ca.Function, n: int) -> list[Array]:
    shapes = [(f.size1_out(i), f.size2_out(i) * n) for i in range(f.n_out())]
    dense = [f.sparsity_out(i).is_dense() for i in range(f.n_out())]
    return [(np.empty if d else np.zeros)(shape, order="F") for d, shape in zip(dense, shapes, strict=True)]


def _checked_results(f: ca.Function, n: int, out: Any, points: Sequence[Array]) -> list[Array]:
    """The arrays to write to; zero where an output has none."""
    results = [out] if isinstance(out, np.ndarray) else out
    if not isinstance(results, (list, tuple)) or len(results) != f.n_out():
        got = f"{len(results)} of them" if isinstance(results, (list, tuple)) else f"a {type(out).__name__}"
        raise ShapeError(f"{f.name()}: out is {got}, expected {f.n_out()} arrays of floats")
    for i, x in enumerate(results):
        shape, where = (f.size1_out(i), f.size2_out(i) * n), f"{f.name()}: out for {f.name_out(i)}"
        if type(x) is not np.ndarray or x.dtype != float:
            kind = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"
            raise ShapeError(f"{where} is {kind}, expected a numpy array of {np.dtype(float)}")
        if x.shape != shape:
            raise ShapeError(f"{where} has shape {x.shape}, expected {shape}")
        if not x.flags.writeable or not x.flags.aligned:
            raise ShapeError(f"{where} is {'not aligned' if x.flags.writeable else 'read-only'}; give another array")
        if any(_overlap(x, other) for other in (*points, *results[:i])) or _folded(x):
            raise ShapeError(f"{where} shares memory with another array of the call; give one of its own")
        if not f.sparsity_out(i).is_dense():
            x[...] = 0
    return list(results)


def _overlap(x: Array, y: Array) -> bool:
    if not np.may_share_memory(x, y):
        return False
    try:
        return np.shares_memory(x, y, max_work=100_000)
    except np.exceptions.TooHardError if hasattr(np, "exceptions") else np.TooHardError:
        return True


def _folded(x: Array) -> bool:
    """Whether several entries of an array are one in memory."""
    (rows, columns), (down, across) = x.shape, map(abs, x.strides)
    inner, outer, size = (down, across, rows) if down <= across else (across, down, columns)
    return x.size > 1 and min(rows, columns) > 0 and (
        (inner == 0 and size > 1) or (min(rows, columns) > 1 and outer < inner * size)
    )


class _Compiled:
    """The loop over the points in a library, called without holding Python's lock."""

    def __init__(self, function: ca.Function, library_: ctypes.CDLL, threads: int, executor: Executor | None) -> None:
        pointer, number = ctypes.c_void_p, ctypes.c_longlong
        loop = library_.oc_dyn_points
        loop.argtypes, loop.restype = [pointer] * 3 + [number] * 2, ctypes.c_int
        self.loop, self.name, self.threads, self.executor = loop, function.name(), threads, executor
        self.lanes = int(library_.oc_dyn_lanes())
        self.least = max(1, _WORTH // max(1, function.n_instructions()))  # points that are worth a thread
        self.lock = threading.Lock()
        self.columns = [function.size2_in(i) for i in range(function.n_in())]
        self.columns += [function.size2_out(i) for i in range(function.n_out())]

    def __call__(self, points: list[Array], results: list[Array], n: int) -> None:
        arrays = [*points, *results]
        strides = []
        for x, columns in zip(arrays, self.columns, strict=True):
            down, across = x.strides
            strides += [down, across, across * columns if x.shape[1] != columns else 0]
        steps = np.array(strides, np.int64)
        addresses = np.array([x.ctypes.data for x in arrays], np.uintp)
        given = addresses.ctypes.data
        fixed = given, given + len(points) * addresses.itemsize, steps.ctypes.data

        blocks = -(-n // self.lanes)
        pieces = max(1, min(self.threads, n // self.least, blocks))
        if pieces == 1:
            status = self.loop(*fixed, 0, n)
        else:
            ends = [min(n, blocks * k // pieces * self.lanes) for k in range(pieces + 1)]
            waiting = [self._pool().submit(self.loop, *fixed, *x) for x in pairwise(ends)]
            status = max((x.result() for x in waiting), key=abs)
        if status == -1:
            raise MemoryError(f"{self.name}: no memory for a batch")
        if status:
            raise SolveError(f"{self.name} failed at one of the points, with status {status}")

    def _pool(self) -> Executor:
        with self.lock:
            if self.executor is None:
                self.executor = ThreadPoolExecutor(self.threads, thread_name_prefix=self.name)
        return self.executor


def _mapped(function: ca.Function, threads: int) -> Compute:
    """The same without a compiler: casadi's map, made for each number of points."""
    maps = {}  # by the number of points; the Function and the number of threads are those of this closure alone

    def compute(points: list[Array], results: list[Array], n: int) -> None:
        if n not in maps:
            several = threads > 1 and n > 1
            maps[n] = ca.Function.map(function, n, "thread", min(threads, n)) if several else function.map(n)
        given = [np.tile(x, n) if x.shape[1] == function.size2_in(i) else x for i, x in enumerate(points)]
        for result, x in zip(results, maps[n].call(given), strict=True):
            result[...] = x.full()

    return compute
