"""The arrays of a batch: those that it reads, checked, and those that it writes to, new or given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..numbers import as_floats
from ..types import Array

_WORK = 100_000  # of numpy, to find out whether two arrays share an entry


class Port(NamedTuple):
    """An input or output of a Function, asked for once: CasADi takes a microsecond for each answer."""

    name: str
    rows: int
    columns: int
    dense: bool


def ports(function: ca.Function) -> tuple[list[Port], list[Port]]:
    """(inputs, outputs) of a Function."""
    inputs = [(function.name_in(i), function.sparsity_in(i)) for i in range(function.n_in())]
    outputs = [(function.name_out(i), function.sparsity_out(i)) for i in range(function.n_out())]
    found = [[Port(name, *s.shape, s.is_dense()) for name, s in side] for side in (inputs, outputs)]
    return found[0], found[1]


def checked_points(where: str, port: Port, given: Any) -> Array:
    """(rows, columns*points) of a port, the array itself if it is one of floats; ShapeError for another shape."""
    if type(given) is not np.ndarray or given.dtype != float:
        given = as_floats(f"{where}: port {port.name}", given)
    shape = given.shape
    if len(shape) < 2:
        given = given.reshape(port.rows if given.size == port.rows else -1, 1)
    if given.ndim != 2 or given.shape[0] != port.rows or (port.columns and given.shape[1] % port.columns):
        wanted = f"({port.rows}, N)" if port.columns == 1 else f"({port.rows}, {port.columns} N)"
        raise ShapeError(f"{where}: port {port.name} got shape {shape}, expected {wanted} for N points")
    return given if given.flags.aligned else given.copy()


def number_of_points(where: str, inputs: Sequence[Port], points: Sequence[Array]) -> int:
    """Of all ports together; ShapeError where they differ, but by one point for all."""
    counts = [x.shape[1] // p.columns if p.columns else 1 for p, x in zip(inputs, points, strict=True)]
    n = max((c for c in counts if c != 1), default=1) if all(counts) else 0
    if any(c not in (1, n) for c in counts):
        told = {p.name: c for p, c in zip(inputs, counts, strict=True)}
        raise ShapeError(f"{where}: the ports have different numbers of points: {told}")
    return n


def new_results(outputs: Sequence[Port], n: int) -> list[Array]:
    """Arrays to write to, a point's numbers side by side; zero where an output has none."""
    return [(np.empty if p.dense else np.zeros)((p.rows, p.columns * n), order="F") for p in outputs]


def checked_results(where: str, outputs: Sequence[Port], n: int, out: Any, points: Sequence[Array]) -> list[Array]:
    """The arrays `out` to write to, as new_results; ShapeError for what cannot be written to or is read, too."""
    results = [out] if isinstance(out, np.ndarray) else out
    if not isinstance(results, (list, tuple)) or len(results) != len(outputs):
        got = f"{len(results)} of them" if isinstance(results, (list, tuple)) else f"a {type(out).__name__}"
        raise ShapeError(f"{where}: out is {got}, expected {len(outputs)} numpy arrays of floats")
    for i, (port, x) in enumerate(zip(outputs, results, strict=True)):
        problem = _problem(x, (port.rows, port.columns * n))
        if not problem and (_folded(x) or any(_share(x, other) for other in (*points, *results[:i]))):
            problem = "shares memory with itself or another array of the call, expected one of its own"
        if problem:
            raise ShapeError(f"{where}: out for {port.name} {problem}")
    for port, x in zip(outputs, results, strict=True):
        if not port.dense:
            x[...] = 0
    return list(results)


def _problem(x: Any, shape: tuple[int, int]) -> str | None:
    if not isinstance(x, np.ndarray):
        return f"is a {type(x).__name__}, expected a numpy array of floats"
    if type(x) is not np.ndarray or x.dtype != float:
        kind = "" if type(x) is np.ndarray else f"{type(x).__name__} "
        return f"is a {kind}array of {x.dtype}, expected a plain one of {np.dtype(float)}"
    if x.shape != shape:
        return f"has shape {x.shape}, expected {shape}"
    if not x.flags.writeable:
        return "is read-only, expected an array that can be written to"
    return None if x.flags.aligned else "is not aligned in memory, expected an array of numpy's own"


def _share(x: Array, y: Array) -> bool:
    if not np.may_share_memory(x, y):
        return False
    try:
        return np.shares_memory(x, y, max_work=_WORK)  # type: ignore[arg-type]  # any number, numpy's stubs know two
    except RuntimeError:  # numpy's TooHardError
        return True


def _folded(x: Array) -> bool:
    """Whether several entries of a matrix are one in memory, as after as_strided or broadcasting."""
    axes = sorted((abs(stride), size) for stride, size in zip(x.strides, x.shape, strict=True) if size > 1)
    if not axes or x.size == 0:
        return False
    return axes[0][0] == 0 or (len(axes) > 1 and axes[1][0] < axes[0][0] * axes[0][1])
