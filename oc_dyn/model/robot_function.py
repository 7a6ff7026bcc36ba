"""RobotFunction: a casadi.Function of a robot that checks what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from ..compiled_files import require_whole
from ..errors import ModelError, ShapeError, UnknownName
from ..numbers import as_floats, shortened
from ..types import Array
from .quaternions import check_quaternions

_CONFIGURATIONS = ("q", "q0", "q1")  # ports whose quaternions are checked
_Array, _float, _MATRICES = np.ndarray, np.dtype(float), (ca.DM, ca.MX, ca.SX)
_SYMBOLS, _FLOATS = {ca.SX, ca.MX}, {float}
_NO_PORT = (-1, -1)  # no shape fits it
_NOTHING = (0,)  # the columns of arrays for no point
_FEW = 100  # entries that Python looks at as quickly as CasADi
_ABSURD = 1e9  # a result that is larger may come of a singular mass matrix, and is looked at


class RobotFunction(ca.Function):
    """A casadi.Function that checks what it is given and says which port and joint is meant.

    Behaves as its base class everywhere (map, Opti, code generation). Numbers may be numpy arrays (also flat or
    rows), lists or DM; symbols SX or MX; wrenches also {body: (6,)}. Several points stand side by side; of none, as
    (n, 0), there are no results, as (m, 0). Ports left out count as zero, as in CasADi, and so does a 0; any other
    scalar is refused unless the port has one row. NaN is taken, and comes out.
    Quaternions given as numbers must be of unit length, unless it was made with normalize=True. Of a robot with loops
    numbers at which these are open are refused. Neither is looked at in expressions, by what map, save and code
    generation make of it, which are CasADi's own.
    """

    def __init__(
        self,
        base: ca.Function,
        names: dict[str, tuple[str, ...]] | None = None,
        columns: dict[str, tuple[str, ...]] | None = None,
        twin: ca.Function | None = None,
        regular: Callable[[Array], None] | None = None,
        rotations: tuple[tuple[str, int], ...] = (),
        normalize: bool = False,
        facts: dict[str, tuple[str, tuple[str, ...]]] | None = None,
    ) -> None:
        super().__init__(base)
        self._names = names or {}  # rows of a port: what they are called
        self._columns = columns or {}  # columns of a port: bodies
        self.twin = twin  # the same without registered derivatives, where there are any
        self.library: str | None = None  # path of the machine code, where it is compiled
        self.regular = regular  # raises ModelError at a q whose mass matrix is singular; None where it does not matter
        self.rotations, self.normalize = rotations, normalize  # quaternions of a q: ((joint, first row), ...)
        self.facts = facts or {}  # {port: (unit, what its rows are called)}, for headers of C
        self.closes: Any = None  # (Function that looks whether loops close at a q, names of groups of loops)
        self._read_ports()

    def _read_ports(self) -> None:
        """What the checks ask of the ports, kept, for each question to CasADi takes a microsecond."""
        self._sizes = {name: self.size_in(i) for i, name in enumerate(self.name_in())}
        self._shapes = {n: (size, size[:1]) if size[0] and size[1] == 1 else (size,) for n, size in self._sizes.items()}
        self._few = all(self.nnz_out(i) <= _FEW for i in range(self.n_out()))
        self.configurations = tuple(x for x in _CONFIGURATIONS if x in self._sizes) if self.rotations else ()

    def with_base(self, base: ca.Function, twin: ca.Function | None = None) -> RobotFunction:
        """`base`, a Function of the same ports, checked and named like this one."""
        kept = self._names, self._columns, twin, self.regular, self.rotations, self.normalize, self.facts
        return RobotFunction(base, *kept).closing_by(self.closes)

    def closing_by(self, check: Any) -> RobotFunction:
        """This Function, which refuses a q that is numbers and at which loops do not close, or close in another mode.

        check: None for none, else (casadi.Function q -> off, mode; names of groups of loops), neither above zero where
        all is well."""
        self.closes = check
        return self

    def normalizing(self) -> RobotFunction:
        """The same Function, which takes quaternions of any length but zero for those of unit length."""
        kept = self._names, self._columns, self.twin, self.regular, self.rotations
        return RobotFunction(self, *kept, True, self.facts).closing_by(self.closes)

    def __call__(self, *args: Any, **ports: Any) -> Any:
        """As casadi.Function is called, its arguments checked; see the class."""
        if args and ports:
            raise ShapeError(f"{self.name()}: give all ports by position or all by name, not both")
        if args and len(args) != len(self._sizes):
            expected = f"expected {len(self._sizes)}: {self._signature()}"
            raise ShapeError(f"{self.name()}: got {len(args)} arguments, {expected}")
        given = dict(zip(self._sizes, args, strict=True)) if args else ports
        nothing = False
        for name, value in given.items():
            if not self._is_plain(name, value):
                given[name] = self._check(name, value)
                nothing = nothing or (0 in given[name].shape and 0 not in self._sizes[name])
        if not args and "params" in self._sizes and "params" not in given:
            own = "robot.parameter_values(parts), for the inertia alone robot.parameters"
            raise ShapeError(f"{self.name()}: port params is missing; the robot's own are {own}")
        symbols = _SYMBOLS & set(map(type, given.values()))
        if len(symbols) > 1:
            raise ShapeError(f"{self.name()}: got both SX and MX symbols; give one kind")
        for port in self.configurations:
            self._check_rotations(port, given.get(port))
        if self.closes is not None and not nothing:
            self.check_closed(given.get("q"))
        if nothing:
            return self._at_no_point(given, bool(args))
        try:
            found = super().__call__(*given.values()) if args else super().__call__(**given)
        except (NotImplementedError, RuntimeError):
            self._check_counts(given)  # only now, for casadi compares them anyway
            raise
        if self.regular is not None and not symbols:
            self._check_results(given, found, self.regular)
        return found

    def _is_plain(self, name: str, value: Any) -> bool:
        """Whether a value goes to CasADi as it is, without a second look: so do most, told in about a microsecond."""
        size, kind = self._sizes.get(name, _NO_PORT), type(value)
        if kind is _Array:
            shape = value.shape
            return value.dtype == _float and (
                shape in self._shapes.get(name, ()) or (shape[-1:] != _NOTHING and _fits(shape, size))
            )
        if kind in _MATRICES:  # any number of columns are points side by side
            if size[1] != 1:
                return value.size() == size
            rows, columns = value.size()
            return rows == size[0] and columns > 0
        if kind is list or kind is tuple:
            return (len(value),) in self._shapes.get(name, ()) and set(map(type, value)) == _FLOATS
        return (kind is int or kind is float) and not value and size is not _NO_PORT

    def _signature(self) -> str:
        return ", ".join(f"{n}{list(self.size_in(i))}" for i, n in enumerate(self.name_in()))

    def _check(self, name: str, value: Any) -> Any:
        if name not in self._sizes:
            raise UnknownName(f"port of {self.name()}", name, self.name_in())
        rows, columns = self._sizes[name]
        if isinstance(value, dict):
            value = self._by_body(name, value)
        if not isinstance(value, (ca.SX, ca.MX, ca.DM)):
            try:
                value = as_floats(f"{self.name()}: port {name}", value)
            except ShapeError as error:
                raise ShapeError(f"{error}, SX or MX") from None
            if value.ndim < 2:
                value = value.reshape(-1, 1) if columns == 1 or value.size == rows else value.reshape(1, -1)
        got = tuple(value.shape)
        if not (_fits(got, (rows, columns)) or _is_zero(value)):
            called = self._names.get(name)
            hint = f" for {', '.join(called)}" if called and len(called) <= 40 else ""
            hint += "; a single 0 stands for zeros, no other number for all rows" if got == (1, 1) else ""
            raise ShapeError(f"{self.name()}: port {name} got shape {got}, expected ({rows}, {columns}){hint}")
        return value

    def _check_results(self, given: dict[str, Any], found: Any, regular: Callable[[Array], None]) -> None:
        """Raise ModelError, naming joints, where numbers came out of a mass matrix that is singular at their q."""
        results = found.values() if isinstance(found, dict) else found if isinstance(found, (tuple, list)) else (found,)
        if self._few and all(isinstance(y, ca.DM) and sum(map(abs, y.nonzeros())) < _ABSURD for y in results):
            return  # so is every entry, and none is NaN
        if all(isinstance(y, ca.DM) and y.is_regular() and _largest(y) < _ABSURD for y in results):
            return
        numbers = {name: np.array(x, float) for name, x in given.items() if not isinstance(x, (ca.SX, ca.MX))}
        if len(numbers) < len(given) or not all(np.isfinite(x).all() for x in numbers.values()):
            return  # symbols; or NaN, which comes out as it went in
        q = numbers.get("q", np.zeros((1, 1)))
        q = np.repeat(q, self.size1_in("q")) if q.size == 1 else q  # a single 0 stands for zeros
        for point in q.reshape((self.size1_in("q"), -1), order="F").T:
            regular(point)

    def _at_no_point(self, given: dict[str, Any], by_position: bool) -> Any:
        """Results without columns; CasADi takes a matrix without columns for one of zeros."""
        self._check_counts(given, 0)
        kinds = set(map(type, given.values()))
        kind = next((k for k in (ca.MX, ca.SX) if k in kinds), ca.DM)
        found = {name: kind(self.size1_out(i), 0) for i, name in enumerate(self.name_out())}
        if not by_position:
            return found
        return next(iter(found.values())) if len(found) == 1 else tuple(found.values())

    def _check_counts(self, given: dict[str, Any], least: int = 2) -> None:
        """Raise ShapeError where ports are given for different numbers of points, one beside the other. least: number
        that is not taken for one point for all."""
        found = {}
        for name, value in given.items():
            (rows, columns), got = self._sizes[name], tuple(getattr(value, "shape", ()))
            count = got[1] // columns if rows and columns and len(got) == 2 and got[0] == rows else 1
            if count != 1 and count >= least:
                found[name] = count
        if len(set(found.values())) > 1:
            said = ", ".join(f"port {name} of {count}" for name, count in found.items())
            raise ShapeError(f"{self.name()}: got {said} points; give each of as many points, or of one")

    def _check_rotations(self, port: str, q: Any) -> None:
        """Refuse quaternions that are numbers and not of unit length."""
        if isinstance(q, (ca.SX, ca.MX)):
            return
        if q is None:
            problem = f"port {port} is missing, but zero is no rotation of joint {self.rotations[0][0]}"
            raise ShapeError(f"{self.name()}: {problem}; robot.neutral() is without displacement")
        q = np.array(q.elements()) if type(q) is ca.DM and q.is_column() else np.asarray(q, float)
        if not q.size:  # no point, no quaternion
            return
        if q.size == 1:
            q = np.full(self._sizes[port][0], q.item())
        elif 1 in q.shape:  # one configuration, for which the check is cheapest
            q = q.ravel()
        check_quaternions(self.where(port), self.rotations, q, self.normalize)

    def check_closed(self, q: Any, look: Callable[[Array], Any] | None = None) -> None:
        """Raise ModelError, naming loops, for a q, numbers (nq,) or (nq, N), at which loops are open, or assembled in
        another mode than the robot's home; where there are none, and for symbols, nothing is looked at. None counts as
        zero; NaN passes: what comes out of it is NaN. look: what computes off and mode, by default their Function."""
        if self.closes is None or isinstance(q, (ca.SX, ca.MX)):
            return
        check, names = self.closes
        rows = check.size1_in(0)
        q = np.zeros(rows) if q is None else np.asarray(q, float)
        q = np.full(rows, q.item()) if q.size == 1 else q  # a single 0 stands for zeros
        points = q.reshape((rows, -1), order="F")
        if not points.size:
            return
        off, mode = (np.array(x) for x in (look or check)(points))
        known = np.isfinite(points).all(axis=0)
        wrong = (~(off <= 0) | ~(mode <= 0)) & known
        if not wrong.any():
            return
        n = int(np.argmax(wrong.any(axis=0)))
        k = int(np.argmax(wrong[:, n]))
        at = f"{self.name()}: q" + (f", point {n}" if points.shape[1] > 1 else "")
        if off[k, n] <= 0:
            raise ModelError(at, [f"loops {names[k]} are there in another mode of assembly than at robot.home"])
        far = f"they stay open by {off[k, n] + 1:.3g} times what may be left"
        raise ModelError(at, [f"loops {names[k]} cannot be closed there, {far}"])

    def where(self, port: str) -> str:
        """How messages about a port of configurations begin; most Functions have one alone."""
        return self.name() if port == "q" else f"{self.name()}: port {port}"

    def _by_body(self, name: str, wrenches: dict[str, Any]) -> Any:
        """Matrix of wrenches from {body: (6,)}; bodies left out are free."""
        bodies = self._columns.get(name, ())
        for body in wrenches:
            if body not in bodies:
                raise UnknownName(f"column of port {name} of {self.name()}", body, bodies)
        given = {body: _as_column(f"{self.name()}: port {name}, body {body}", x) for body, x in wrenches.items()}
        for body, column in given.items():
            if column.numel() != 6:
                raise ShapeError(f"{self.name()}: port {name}, body {body}: got {column.numel()} entries, expected 6")
        if len(_SYMBOLS & set(map(type, given.values()))) > 1:
            raise ShapeError(f"{self.name()}: port {name} got both SX and MX symbols; give one kind")
        return ca.horzcat(*(given.get(body, ca.DM.zeros(6)) for body in bodies))

    def __getstate__(self) -> dict[str, Any]:
        kept: dict[str, Any] = {"names": self._names, "columns": self._columns, "library": self.library}
        kept |= {"rotations": (self.rotations, self.normalize), "closes": self.closes, "facts": self.facts}
        return {"base": super().__getstate__(), **kept}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.library = state.get("library")
        if self.library is not None:
            require_whole(self.library)
        super().__setstate__(state["base"])
        self._names, self._columns, self.twin, self.regular = state["names"], state["columns"], None, None
        self.rotations, self.normalize = state["rotations"]
        self.facts = state.get("facts", {})  # of earlier versions there are none
        self.closes = state.get("closes")
        self._read_ports()


def _fits(got: tuple[int, ...], size: tuple[int, int]) -> bool:
    """Whether a shape is that of a port, of its transposed column, or of several points side by side."""
    rows, columns = size
    if len(got) != 2:
        return False
    fills = got[1] % columns == 0 if columns else not got[1]
    return (got[0] == rows and fills) or (columns == 1 and got == (1, rows))


def _largest(matrix: ca.DM) -> float:
    return float(ca.mmax(ca.fabs(matrix))) if matrix.nnz() else 0.0


def _is_zero(value: Any) -> bool:
    """Whether an array or matrix is a single zero, which stands for a port of zeros."""
    if tuple(value.shape) != (1, 1):
        return False
    return not value[0, 0] if isinstance(value, np.ndarray) else value.is_zero()


def _as_column(where: str, x: Any) -> Any:
    if isinstance(x, (list, tuple)) and any(isinstance(y, (ca.SX, ca.MX, ca.DM)) for y in x):
        if len(_SYMBOLS & set(map(type, x))) > 1:
            raise ShapeError(f"{where} got both SX and MX symbols; give one kind")
        try:
            return ca.vertcat(*x)
        except (NotImplementedError, RuntimeError):  # None, or a row beside a column
            raise ShapeError(f"{where}: got {shortened(x)}, expected 6 numbers or symbols") from None
    return ca.vec(x) if isinstance(x, (ca.SX, ca.MX, ca.DM)) else ca.DM(as_floats(where, x).reshape(-1))
