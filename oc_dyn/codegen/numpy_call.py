"""od.numpy_call: a Function as a plain call on numpy arrays, without the cost of casadi's matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError, SolveError
from ..model.quaternions import check_quaternions
from ..numbers import as_floats, shortened
from ..types import Array, Indices, Numbers

_Array, _float = np.ndarray, np.dtype(float)
_REFUSED = (TypeError, ValueError, NotImplementedError, BufferError)  # by a memoryview, of other memory than its own


def numpy_call(function: ca.Function) -> NumpyCall:
    """NumpyCall of a casadi.Function: run(q, v, dv) with numpy arrays in and out, a microsecond above the Function.

    The arrays of results belong to the call: the next one writes over them; copy what is to stay. A NumpyCall has one
    memory, and so is not safe to use from several threads at once: give each thread its own, run.copy().
    run.packed(x) takes all ports in one array and returns all results in a new one; it is quicker, and safe there.
    What comes out is not looked at: a singular mass matrix gives infinities, where the Function itself raises.
    Raises ModelError for what is no Function.
    """
    if not isinstance(function, ca.Function):
        raise ModelError("numpy_call", [f"got {type(function).__name__}, expected a casadi.Function"])
    return NumpyCall(function)


class NumpyCall:
    """A Function with arrays for its ports: a column of n rows is (n,), a matrix (rows, columns), both dense.

    run(*arrays), all ports by position, or run(**arrays), all by name: the array of the output, or a tuple of them.
    run.inputs, run.outputs: {port: array}, which may also be written and read in place; run.evaluate() then computes,
    and checks nothing. A call refuses quaternions that are not of unit length, and a q at which loops of a
    robot are open, as the Function does.
    """

    def __init__(self, function: ca.Function) -> None:
        self.function = function
        self._memory = memory = _Memory(function)
        self._spare: list[_Memory] = []  # of calls of `packed`: as many as there were at once
        self.inputs = {port.name: port.array for port in memory.ports}
        self.outputs = {port.name: port.array for port in memory.results}
        self._trigger = memory.trigger
        self._count = function.n_in()
        self._columns = all(x.ndim == 1 for x in self.inputs.values())
        self._views = [_view(x) for x in self.inputs.values()] if self._columns else []
        out = tuple(self.outputs.values())
        self._out = out[0] if len(out) == 1 else out

    def __call__(self, *args: Numbers, **ports: Numbers) -> Any:
        """The array of the output, or a tuple of them; see the class."""
        if ports or len(args) != self._count:
            args = self._in_order(args, ports)
        if self._columns:
            try:
                for view, given in zip(self._views, args):  # noqa: B905 (their numbers are equal)
                    if type(given) is not _Array:
                        raise TypeError
                    view[:] = given  # compares type of numbers and shape in one go
            except _REFUSED:
                self._set(args)
        else:
            self._set(args)
        if self._memory.plain:
            self._trigger()
            return self._out
        self._memory.check()
        return self.evaluate()

    def packed(self, x: Numbers, out: Array | None = None) -> Array:
        """All outputs one after another, (m,), from all ports one after another, x (n,); matrices by columns.

        As f(x) of solvers and integrators. out (m,): array of floats to write to and return, default a new one. Safe to
        call from several threads at once, and independent of run.inputs and run.outputs. Raises ShapeError.
        """
        try:
            memory = self._spare.pop()
        except IndexError:  # the first call, or all are in use by other threads
            memory = _Memory(self.function)
        try:
            if type(x) is not _Array:
                raise TypeError
            memory.view[:] = x
        except _REFUSED:
            memory.x[...] = self._converted("x", x, memory.x.shape)
        if memory.plain:
            memory.trigger()
        else:
            memory.check()
            memory.evaluate()
        if out is None:
            out = memory.y.copy()
        elif type(out) is _Array and out.dtype is _float and out.shape == memory.y.shape and out.flags.writeable:
            out[...] = memory.y
        else:
            self._write(memory.y, out)
        self._spare.append(memory)
        return out

    def evaluate(self) -> Any:
        """Compute on what is in run.inputs."""
        self._memory.evaluate()
        return self._out

    def copy(self) -> NumpyCall:
        """Another call of the same Function, with arrays of its own, for another thread; so do copies and pickles by
        Python, the latter where the Function can be pickled."""
        return NumpyCall(self.function)

    def __copy__(self) -> NumpyCall:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> NumpyCall:
        return self.copy()  # Functions do not change

    def __reduce__(self) -> tuple[Any, ...]:
        return NumpyCall, (pickled_function("numpy_call", self.function),)

    def _in_order(self, args: Sequence[Any], ports: Mapping[str, Any]) -> list[Any]:
        names = list(self.inputs)
        expected = ", ".join(f"{n}{x.shape}" for n, x in self.inputs.items())
        if args and ports:
            raise ShapeError(f"{self.function.name()}: give all ports by position or all by name, not both")
        if args or set(ports) != set(names):
            got = f"{len(args)} arrays" if args else ", ".join(ports) or "nothing"
            raise ShapeError(f"{self.function.name()}: got {got}, expected {expected}")
        return [ports[n] for n in names]

    def _set(self, args: Sequence[Any]) -> None:
        """Write numbers of any kind to the inputs."""
        for (name, own), given in zip(self.inputs.items(), args, strict=True):
            if type(given) is not _Array or given.dtype != _float or given.shape != own.shape:
                given = self._converted(f"port {name}", given, own.shape)
            own[...] = given

    def _converted(self, what: str, given: Any, shape: tuple[int, ...]) -> Array:
        given = as_floats(f"{self.function.name()}: {what}", given)
        if given.shape != shape:
            size = shape[0] if len(shape) == 1 else None
            if given.shape not in ((size, 1), () if size == 1 else None):
                raise ShapeError(f"{self.function.name()}: {what} got shape {given.shape}, expected {shape}")
            given = given.reshape(shape)
        return given

    def _write(self, y: Array, out: Any) -> None:
        if not isinstance(out, _Array) or out.dtype != _float or out.shape != y.shape or not out.flags.writeable:
            got = f"{out.dtype} of shape {out.shape}" if isinstance(out, _Array) else shortened(out)
            raise ShapeError(f"{self.function.name()}: out is {got}, expected a writeable array of floats {y.shape}")
        out[...] = y


def pickled_function(where: str, function: ca.Function) -> ca.Function:
    """The Function itself; ModelError if it cannot be pickled, such as one that calls Python."""
    try:
        function.__getstate__()
    except Exception as error:  # whatever CasADi or what it calls says
        said = " ".join(str(error).split())[-300:]
        raise ModelError(where, [f"{function.name()} cannot be pickled; make it in each process: {said}"]) from None
    return function


def _view(array: Any) -> Any:
    """memoryview of an array: quicker to assign to than the array, and only what is of its type and shape fits."""
    return memoryview(array)


class _Memory:
    """What a Function reads and writes: x and y, all ports and results one after another, dense and by columns."""

    def __init__(self, function: ca.Function) -> None:
        self.name = function.name()
        self._buffer: Any
        self.trigger: Any
        self._buffer, self.trigger = function.buffer()
        sparsities_in = [function.sparsity_in(i) for i in range(function.n_in())]
        sparsities_out = [function.sparsity_out(i) for i in range(function.n_out())]
        self.x, self.ports, self._x_places, self._x_nonzeros = _ports(function.name_in(), sparsities_in)
        self.y, self.results, self._y_places, self._y_nonzeros = _ports(function.name_out(), sparsities_out)
        self.view = _view(self.x)
        for i, port in enumerate(self.ports):
            self._buffer.set_arg(i, _view(port.nonzeros))
        for i, port in enumerate(self.results):
            self._buffer.set_res(i, _view(port.nonzeros))
        self._may_fail = not (function.is_a("SXFunction") or getattr(function, "straight_line", False))
        self._rotations, self._normalize = getattr(function, "rotations", ()), getattr(function, "normalize", False)
        turned, where = getattr(function, "configurations", ()), getattr(function, "where", str)
        self._turned = [(where(p.name), p.array) for p in self.ports if p.name in turned]
        known: Any = function  # a RobotFunction
        self._closed = None if getattr(function, "closes", None) is None else known.check_closed
        self._q = next((p.array for p in self.ports if p.name == "q"), None)
        dense = self._x_places is None and self._y_places is None
        self.plain = dense and not (self._turned or self._may_fail or self._closed is not None)  # trigger() is enough

    def check(self) -> None:
        """Refuse quaternions that are not of unit length, and a q at which loops are open."""
        for where, q in self._turned:
            check_quaternions(where, self._rotations, q, self._normalize)
        if self._closed is not None:
            self._closed(self._q)

    def evaluate(self) -> None:
        if self._x_places is not None:
            self._x_nonzeros[:] = self.x[self._x_places]
        self.trigger()
        if self._may_fail:
            status = self._buffer.ret()
            if status:
                raise SolveError(f"{self.name} failed with status {status}")
        if self._y_places is not None:
            self.y[self._y_places] = self._y_nonzeros


class _Port(NamedTuple):
    name: str
    array: Array  # its entries in its shape
    nonzeros: Array  # what casadi reads or writes, the same memory where the port is dense


def _ports(names: Sequence[str], sparsities: Sequence[ca.Sparsity]) -> tuple[Array, list[_Port], Indices | None, Array]:
    """All entries, dense and by columns; the ports, parts of them; which entries are those of sparse ports, None where
    all are dense; and these as casadi has them."""
    entries = np.zeros(sum(s.numel() for s in sparsities))
    nonzeros = np.zeros(sum(s.nnz() for s in sparsities if not s.is_dense()))
    ports, places, start, used = [], [], 0, 0
    for name, sparsity in zip(names, sparsities, strict=True):
        flat = own = entries[start : start + sparsity.numel()]
        if not sparsity.is_dense():
            own = nonzeros[used : used + sparsity.nnz()]
            places.append(start + np.array(sparsity.find(), int))
            used += sparsity.nnz()
        array = flat if sparsity.size2() == 1 else flat.reshape(sparsity.shape, order="F")
        ports.append(_Port(name, array, own))
        start += sparsity.numel()
    return entries, ports, np.concatenate(places) if places else None, nonzeros
