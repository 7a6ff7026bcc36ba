"""od.numpy_call: a Function as a plain call on numpy arrays, without the cost of casadi's matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError, SolveError
from ..model.quaternions import check_quaternions
from ..numbers import as_floats
from ..types import Array, Numbers

_Array, _float = np.ndarray, np.dtype(float)


def numpy_call(function: ca.Function) -> NumpyCall:
    """NumpyCall of a casadi.Function: run(q, v, dv) with numpy arrays in and out, a microsecond above the Function.

    The arrays of results belong to the call: the next one writes over them; copy what is to stay. A NumpyCall has one
    memory, and so is not safe to use from several threads at once: give each thread its own, run.copy().
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
    and checks nothing. A call refuses quaternions that are not of unit length, as the Function does.
    """

    def __init__(self, function: ca.Function) -> None:
        self.function = function
        self._buffer: Any
        self._buffer, self._trigger = function.buffer()
        self._may_fail = not (function.is_a("SXFunction") or getattr(function, "straight_line", False))
        self._ports = [_Port(function.name_in(i), function.sparsity_in(i)) for i in range(function.n_in())]
        self._results = [_Port(function.name_out(i), function.sparsity_out(i)) for i in range(function.n_out())]
        for i, port in enumerate(self._ports):
            self._buffer.set_arg(i, memoryview(port.nonzeros))
        for i, port in enumerate(self._results):
            self._buffer.set_res(i, memoryview(port.nonzeros))
        self.inputs = {port.name: port.array for port in self._ports}
        self.outputs = {port.name: port.array for port in self._results}
        self._arrays = tuple(self.inputs.values())
        self._shapes = tuple(x.shape for x in self._arrays)
        self._sparse_in = [p for p in self._ports if p.places is not None]
        self._sparse_out = [p for p in self._results if p.places is not None]
        self._rotations, self._normalize = getattr(function, "rotations", ()), getattr(function, "normalize", False)
        ports = getattr(function, "configurations", ())
        where = getattr(function, "where", str)
        self._turned = [(where(port), self.inputs[port]) for port in ports]
        self._any_sparse = bool(self._sparse_in or self._sparse_out)
        out = tuple(self.outputs.values())
        self._out = out[0] if len(out) == 1 else out

    def __call__(self, *args: Numbers, **ports: Numbers) -> Any:
        """The array of the output, or a tuple of them; see the class."""
        if ports or len(args) != len(self._arrays):
            args = self._in_order(args, ports)
        for own, shape, given in zip(self._arrays, self._shapes, args):  # noqa: B905 (their numbers are equal)
            if type(given) is not _Array or given.dtype is not _float or given.shape != shape:
                given = self._converted(own, given)
            own[...] = given
        for where, q in self._turned:
            check_quaternions(where, self._rotations, q, self._normalize)
        if self._any_sparse:
            return self.evaluate()
        self._trigger()
        if self._may_fail:
            self._check()
        return self._out

    def evaluate(self) -> Any:
        """Compute on what is in run.inputs."""
        for port in self._sparse_in:
            port.nonzeros[:] = port.flat[port.places]
        self._trigger()
        if self._may_fail:
            self._check()
        for port in self._sparse_out:
            port.flat[port.places] = port.nonzeros
        return self._out

    def _check(self) -> None:
        status = self._buffer.ret()
        if status:
            raise SolveError(f"{self.function.name()} failed with status {status}")

    def copy(self) -> NumpyCall:
        """Another call of the same Function, with arrays of its own, for another thread."""
        return NumpyCall(self.function)

    def _in_order(self, args: Sequence[Any], ports: Mapping[str, Any]) -> list[Any]:
        names = list(self.inputs)
        expected = ", ".join(f"{n}{x.shape}" for n, x in self.inputs.items())
        if args and ports:
            raise ShapeError(f"{self.function.name()}: give all ports by position or all by name, not both")
        if args or set(ports) != set(names):
            got = f"{len(args)} arrays" if args else ", ".join(ports) or "nothing"
            raise ShapeError(f"{self.function.name()}: got {got}, expected {expected}")
        return [ports[n] for n in names]

    def _converted(self, own: Array, given: Any) -> Array:
        name = next(n for n, x in self.inputs.items() if x is own)
        given = as_floats(f"{self.function.name()}: port {name}", given)
        if given.shape != own.shape:
            column = own.ndim == 1 and given.shape in ((own.size, 1), () if own.size == 1 else None)
            if not column:
                problem = f"port {name} got shape {given.shape}, expected {own.shape}"
                raise ShapeError(f"{self.function.name()}: {problem}")
            given = given.reshape(own.shape)
        return given


class _Port:
    """Memory of a port: nonzeros as casadi has them, `flat` all entries by columns, `array` the same in its shape."""

    def __init__(self, name: str, sparsity: ca.Sparsity) -> None:
        self.name = name
        self.nonzeros: Any = np.zeros(sparsity.nnz())
        dense = sparsity.is_dense()
        self.places = None if dense else np.array(sparsity.find(), int)
        self.flat = self.nonzeros if dense else np.zeros(sparsity.numel())
        self.array = self.flat if sparsity.size2() == 1 else self.flat.reshape(sparsity.shape, order="F")
