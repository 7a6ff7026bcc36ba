"""od.batch: a Function at many points at once, by a compiled loop of several points a step, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ModelWarning, ShapeError, SolveError, warn
from ..model.quaternions import check_quaternions
from ..types import Array, Numbers, StrPath
from .batch_arrays import checked_points, checked_results, new_results, number_of_points, ports
from .build import (
    FLAGS,
    REORDERING,
    TIME_LIMIT,
    Command,
    Flags,
    checked_flags,
    checked_time_limit,
    find_compiler,
    library,
    opened,
    processors,
)
from .compiled_loop import CompiledLoop
from .lanes import batch_source
from .source import checked_functions

NATIVE = (*FLAGS, "-march=native", "-ffp-contract=off")  # what is rounded twice stays so, as without -march=native

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

    threads: how many compute at a time, the one that calls among them; default the number of processors. executor: a
    concurrent.futures.Executor of threads to use instead of own ones (not of processes: memory is shared). Whatever it
    does not come to is computed by the thread that calls: its own jobs may call the Batch, and it may be closed.
    flags: of the compiler; default -O3 for this processor where the compiler can, without fused operations.
    compiler, cache, time_limit: as in od.compile.
    fallback: go on with Function.map, with a ModelWarning, where it cannot be compiled and loaded, see od.compile.

    Functions of scalar instructions, as those of od.function, and those of matrices and calls that can be written as
    such to the bit, take 8, 4 or 2 points a step, with AVX-512, AVX, SSE2 or NEON; others one. Their sin and cos are
    within 0.8 ulp of the exact numbers and 1 of the C library's, which takes over above 65536 rad; tanh within 2.4 and
    4. All else has the bits of the Function itself, with the default flags, but for which of 0.0 and -0.0 is the least
    or largest entry of a matrix.

    Raises ModelError for what is no Function, ShapeError, in a call also for quaternions that are not of unit length,
    and ModelError, naming point and loops, where those of a robot are open; without fallback SolveError and ModelError
    as od.compile.
    """
    (function,) = checked_functions("batch", function)
    if threads is None:
        threads = processors()
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise ShapeError(f"batch: threads is {threads!r}, expected a number of at least 1")
    if executor is not None and not hasattr(executor, "submit"):
        raise ModelError("batch", [f"executor is a {type(executor).__name__}, expected a concurrent.futures.Executor"])
    time_limit = checked_time_limit("batch", time_limit)
    flags = None if flags is None else checked_flags("batch", flags)
    text = batch_source(function)
    check = getattr(function, "closes", None)
    closed = None if check is None else batch(
        check[0], threads=threads, executor=executor, flags=flags, compiler=compiler, cache=cache, fallback=fallback,
        time_limit=time_limit,
    )  # fmt: skip
    try:
        library_ = opened(_library(text, flags, compiler, cache, time_limit))
    except (SolveError, ModelError) as error:
        if not fallback:
            raise
        warn(ModelWarning(f"not compiled, Function.map is used: {error}"))
        return Batch(function, _mapped(function, int(threads)), closed)
    return Batch(function, CompiledLoop(function, library_, int(threads), executor), closed)


def _library(text: str, flags: Flags | None, compiler: Command | None, *options: Any) -> Path:
    compiler = find_compiler(compiler)
    words = [*compiler, *(flags or ())]
    if REORDERING.intersection(words):
        text = f"#define OC_DYN_LIBM\n{text}"
    if flags is None:
        try:
            return library({"oc_dyn.c": text}, NATIVE, compiler, *options)
        except SolveError as error:
            if error.status == "time_limit":
                raise
            flags = FLAGS
    return library({"oc_dyn.c": text}, flags, compiler, *options)


class Batch:
    """run(*arrays), all ports by position, or run(**arrays), all by name, over N points: arrays (rows, N) of column
    ports and (rows, columns*N) of matrix ports; one point, also as (rows,), is taken for all. The result has the same
    form: an array, or a tuple of them, newly allocated, or `out`: arrays of floats of these shapes to write to.

    Arrays of floats are read and written where they are, whatever their strides. A point's result does not depend on
    the others, their number or the threads. Calls from several threads do not disturb each other, nor do processes
    that fork. After Ctrl-C, which takes milliseconds, nothing is written to `out` any more.
    lanes: how many points are computed together.
    """

    def __init__(self, function: ca.Function, compute: Compute, closed: Batch | None = None) -> None:
        self.function, self._compute = function, compute
        self.lanes: int = getattr(compute, "lanes", 1)
        self._inputs, self._outputs = ports(function)
        self._where, self._names = function.name(), [p.name for p in self._inputs]
        self._configurations = [self._names.index(name) for name in getattr(function, "configurations", ())]
        self._closed = closed  # off, mode of loops at a q, see RobotFunction.closing_by

    def __call__(self, *args: Numbers, out: Any = None, **named: Any) -> Any:
        """The output at all points, or a tuple of the outputs; see the class."""
        names, where = self._names, self._where
        if "out" in names and out is not None:
            named["out"], out = out, None
        if args and named:
            raise ShapeError(f"{where}: give all ports by position or all by name, not both")
        if len(args) != len(names) and set(named) != set(names):
            expected = ", ".join(f"{p.name}[{p.rows}, {p.columns}]" for p in self._inputs)
            got = f"{len(args)} arrays" if args or not named else ", ".join(named)
            raise ShapeError(f"{where}: got {got}, expected {expected}, with the points side by side")
        given = args or [named[name] for name in names]
        points = [checked_points(where, port, x) for port, x in zip(self._inputs, given, strict=True)]
        for k in self._configurations:
            f: Any = self.function
            check_quaternions(f.where(names[k]), f.rotations, points[k], f.normalize)
        n = number_of_points(where, self._inputs, points)
        if n and self._closed is not None:
            checked: Any = self.function
            checked.check_closed(points[names.index("q")], self._closed)
        if out is None:
            results = new_results(self._outputs, n)
        else:
            results = checked_results(where, self._outputs, n, out, points)
        if n:
            self._compute(points, results, n)
        return results[0] if len(results) == 1 else tuple(results)

    def __deepcopy__(self, memo: Any) -> Batch:
        return self  # it holds nothing that a call changes

    def __reduce__(self) -> Any:
        problem = "it cannot be pickled: make it by od.batch in each process, which finds it compiled"
        raise ModelError(f"Batch of {self._where}", [problem])

    def __copy__(self) -> Batch:
        return self


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
