"""od.batch: a Function at many points at once, by a compiled loop on several threads."""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Callable
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
from .source import c_source, checked_functions, prepared

_LEAST = 32  # columns that are worth a thread
_LOOP = """
CASADI_SYMBOL_EXPORT int @_columns(const casadi_real** in, const casadi_int* in_step, casadi_real** out,
    const casadi_int* out_step, casadi_int first, casadi_int last, const casadi_real** arg, casadi_real** res,
    casadi_int* iw, casadi_real* w) {
  casadi_int i, k;
  int status = 0, mem = @_checkout();
  if (mem < 0) return 1;
  for (k = first; k < last && !status; ++k) {
    for (i = 0; i < @_n_in(); ++i) arg[i] = in[i] + k*in_step[i];
    for (i = 0; i < @_n_out(); ++i) res[i] = out[i] + k*out_step[i];
    status = @(arg, res, iw, w, mem);
  }
  @_release(mem);
  return status;
}
"""


def batch(
    function: ca.Function,
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    flags: Flags = FLAGS,
    compiler: Command | None = None,
    cache: StrPath | None = None,
    fallback: bool = True,
    time_limit: float | None = TIME_LIMIT,
) -> Batch:
    """Batch of a casadi.Function: run(q, v, dv) with N points side by side, as Function.map, but compiled.

    threads: how many points are computed at a time; default the number of processors. executor: a
    concurrent.futures.Executor of threads to use instead of own ones (not of processes: memory is shared).
    flags, compiler, cache, time_limit: as in od.compile.
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
    name = function.name()
    time_limit = checked_time_limit("batch", time_limit)
    written = prepared(function, name)
    text = c_source([written], "oc_dyn", more=_LOOP.replace("@", name))
    try:
        library_ = opened(library({"oc_dyn.c": text}, flags, compiler, cache, time_limit))
    except (SolveError, ModelError) as error:
        if not fallback:
            raise
        warnings.warn(ModelWarning(f"not compiled, Function.map is used: {error}"), stacklevel=2)
        return Batch(function, _mapped(function, int(threads)))
    return Batch(function, _Compiled(written, library_, int(threads), executor))


class Batch:
    """run(*arrays), all ports by position, or run(**arrays), all by name, over N points: arrays (rows, N) of column
    ports and (rows, columns*N) of matrix ports; one point, also as (rows,), is taken for all. The result has the same
    form: an array, or a tuple of them, newly allocated. Calls from several threads do not disturb each other."""

    def __init__(self, function: ca.Function, compute: Callable[[list[Array], int], list[Array]]) -> None:
        self.function, self._compute = function, compute

    def __call__(self, *args: Numbers, **ports: Numbers) -> Any:
        """The output at all points, or a tuple of the outputs; see the class."""
        f: Any = self.function
        names = f.name_in()
        if args and ports:
            raise ShapeError(f"{f.name()}: give all ports by position or all by name, not both")
        if len(args) != len(names) and set(ports) != set(names):
            expected = ", ".join(f"{n}{list(f.size_in(n))}" for n in names)
            got = f"{len(args)} arrays" if args or not ports else ", ".join(ports)
            raise ShapeError(f"{f.name()}: got {got}, expected {expected}, with the points side by side")
        given = args or [ports[n] for n in names]
        points = [_points(f, i, x) for i, x in enumerate(given)]
        for port in getattr(f, "configurations", ()):
            check_quaternions(f.where(port), f.rotations, points[names.index(port)], f.normalize)
        counts = {n: x.shape[1] for n, x in zip(names, points, strict=True)}
        n = max((c for c in counts.values() if c != 1), default=1) if all(counts.values()) else 0
        if any(c not in (1, n) for c in counts.values()):
            raise ShapeError(f"{f.name()}: the ports have different numbers of points: {counts}")
        results = self._compute(points, n)
        shaped = tuple(x.reshape((f.size1_out(i), -1), order="F") for i, x in enumerate(results))
        return shaped[0] if len(shaped) == 1 else shaped


def _points(f: ca.Function, i: int, given: Any) -> Array:
    """(entries of the port, points), a column a point."""
    name, (rows, columns) = f.name_in(i), f.size_in(i)
    given = as_floats(f"{f.name()}: port {name}", given)
    shape = given.shape
    if given.ndim < 2:
        given = given.reshape(rows if given.size == rows else -1, 1)
    if given.ndim != 2 or given.shape[0] != rows or (columns and given.shape[1] % columns):
        wanted = f"({rows}, N)" if columns == 1 else f"({rows}, {columns} N)"
        raise ShapeError(f"{f.name()}: port {name} got shape {shape}, expected {wanted} for N points")
    return np.asfortranarray(given).reshape((rows * columns, given.shape[1] // columns if columns else 1), order="F")


def _places(sparsity: ca.Sparsity) -> np.ndarray[Any, np.dtype[np.int_]] | None:
    return None if sparsity.is_dense() else np.array(sparsity.find(), int)


class _Compiled:
    """The loop over the points in a library, called without holding Python's lock."""

    def __init__(self, function: ca.Function, library_: ctypes.CDLL, threads: int, executor: Executor | None) -> None:
        loop = getattr(library_, f"{function.name()}_columns")
        pointer, number = ctypes.c_void_p, ctypes.c_longlong
        loop.argtypes, loop.restype = [pointer] * 4 + [number] * 2 + [pointer] * 4, ctypes.c_int
        self.loop, self.name, self.threads, self.executor = loop, function.name(), threads, executor
        self.lock = threading.Lock()
        self.sizes = [max(1, function.sz_arg()), max(1, function.sz_res()), max(1, function.sz_iw())]
        self.numbers = max(1, function.sz_w())
        self.inputs = [_places(function.sparsity_in(i)) for i in range(function.n_in())]
        self.outputs = [function.sparsity_out(i) for i in range(function.n_out())]

    def __call__(self, points: list[Array], n: int) -> list[Array]:
        given = [x if p is None else np.asfortranarray(x[p]) for x, p in zip(points, self.inputs, strict=True)]
        results = [np.empty((s.nnz(), n), order="F") for s in self.outputs]
        steps = [
            np.array([x.shape[0] if many else 0 for x, many in columns], np.int64)
            for columns in ([(x, x.shape[1] == n) for x in given], [(x, True) for x in results])
        ]
        addresses = [np.array([x.ctypes.data for x in xs], np.uintp) for xs in (given, results)]
        fixed = [x.ctypes.data for pair in zip(addresses, steps, strict=True) for x in pair]

        def run(first: int, last: int) -> int:
            work = [np.empty(size, np.int64) for size in self.sizes] + [np.empty(self.numbers)]
            return self.loop(*fixed, first, last, *(x.ctypes.data for x in work))

        pieces = max(1, min(self.threads, n // _LEAST))
        ends = [n * k // pieces for k in range(pieces + 1)]
        if pieces == 1:
            status = run(0, n)
        else:
            waiting = [self._pool().submit(run, *x) for x in pairwise(ends)]
            status = max(x.result() for x in waiting)
        if status:
            raise SolveError(f"{self.name} failed at one of the points, with status {status}")
        return [_dense(x, s) for x, s in zip(results, self.outputs, strict=True)]

    def _pool(self) -> Executor:
        with self.lock:
            if self.executor is None:
                self.executor = ThreadPoolExecutor(self.threads, thread_name_prefix=self.name)
        return self.executor


def _dense(nonzeros: Array, sparsity: ca.Sparsity) -> Array:
    if sparsity.is_dense():
        return nonzeros
    out = np.zeros((sparsity.numel(), nonzeros.shape[1]), order="F")
    out[np.array(sparsity.find(), int)] = nonzeros
    return out


def _mapped(function: ca.Function, threads: int) -> Callable[[list[Array], int], list[Array]]:
    """The same without a compiler: casadi's map, made for each number of points."""
    maps = {}  # by the number of points; the Function and the number of threads are those of this closure alone

    def compute(points: list[Array], n: int) -> list[Array]:
        if n not in maps:
            several = threads > 1 and n > 1
            maps[n] = ca.Function.map(function, n, "thread", min(threads, n)) if several else function.map(n)
        given = [np.repeat(x, n, axis=1) if x.shape[1] != n else x for x in points]
        given = [x.reshape((function.size1_in(i), -1), order="F") for i, x in enumerate(given)]
        results = maps[n].call(given)
        shapes = [function.numel_out(i) for i in range(function.n_out())]
        return [x.full().reshape((size, n), order="F") for x, size in zip(results, shapes, strict=True)]

    return compute
