"""SX whose sums and products take a tenth of the time: CasADi's operators try whether their operands are numbers before
they find that they are SX, which takes longer than the operation. Expressions are the same."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..errors import ShapeError

_binary, _nonzero = ca.SX.binary, ca.SX.get_nz
_ADD, _SUB, _MUL = ca.OP_ADD, ca.OP_SUB, ca.OP_MUL
_CONSTANTS: dict[float, ca.SX] = {}


class QuickSX(ca.SX):
    """An SX, made by quick(); what is computed with it is one, too."""

    def __add__(self, other: Any) -> Any:
        return _result(_ADD, self, other, _sum)

    def __radd__(self, other: Any) -> Any:
        return _reflected(_ADD, self, other, _sum)

    def __sub__(self, other: Any) -> Any:
        return _result(_SUB, self, other, _difference)

    def __rsub__(self, other: Any) -> Any:
        return _reflected(_SUB, self, other, _difference)

    def __mul__(self, other: Any) -> Any:
        return _result(_MUL, self, other, _product)

    def __rmul__(self, other: Any) -> Any:
        return _reflected(_MUL, self, other, _product)

    def __neg__(self) -> Any:
        return quick(ca.SX.__neg__(self))

    def __matmul__(self, other: Any) -> Any:
        _check(other)
        return quick(ca.SX.__matmul__(self, other))

    def __rmatmul__(self, other: Any) -> Any:
        _check(other)
        return quick(ca.SX.__rmatmul__(self, other))

    def __getitem__(self, place: Any) -> Any:
        if self.is_dense():
            if type(place) is int:
                return quick(_nonzero(self, False, place))
            row, column = place if type(place) is tuple else (None, None)
            if type(row) is int and type(column) is int and row >= 0 <= column:
                rows = self.size1()
                if row < rows:
                    return quick(_nonzero(self, False, row + rows * column))
        return quick(ca.SX.__getitem__(self, place))

    @property
    def T(self) -> Any:
        """The transpose."""
        return quick(ca.transpose(self))


_sum, _difference, _product = ca.SX.__add__, ca.SX.__sub__, ca.SX.__mul__


def quick(x: Any) -> Any:
    """x, whose operators are quick from now on if it is an SX; anything else as it is."""
    if type(x) is ca.SX:
        x.__class__ = QuickSX
    return x


def filled(rows: int, columns: int, entries: list[Any]) -> ca.SX | None:
    """Matrix of scalars, column by column; None where one of them is none, or is structurally zero."""
    out = ca.SX.zeros(rows, columns)
    for k, x in enumerate(entries):
        if not isinstance(x, ca.SX) or x.nnz() != 1 or x.numel() != 1:
            return None
        out.set_nz(x, False, k)
    return quick(out)


def dense_entries(X: Any, count: int) -> list[Any] | None:
    """Entries of a matrix column by column, if there are `count` and none is structurally zero; else None."""
    return list(map(quick, X.nonzeros())) if type(X) is QuickSX and X.nnz() == count == X.numel() else None


def dot(a: Any, b: Any) -> Any:
    """a^T b of columns (n, i) and (n, j): (i, j)."""
    if type(a) is not QuickSX or type(b) is not QuickSX or not (a.is_column() and b.is_column()):
        return quick(a.T @ b)
    pairs: Any
    if a.is_dense() and b.is_dense():
        pairs = zip(a.nonzeros(), b.nonzeros(), strict=True)
    else:
        left = dict(zip(a.row(), a.nonzeros(), strict=True))
        pairs = ((left[row], y) for row, y in zip(b.row(), b.nonzeros(), strict=True) if row in left)
    total: Any = None
    for x, y in pairs:
        product = _binary(_MUL, x, y)
        total = product if total is None else _binary(_ADD, total, product)
    return quick(ca.SX(1, 1) if total is None else total)


def _result(kind, x, y, slow):
    if not isinstance(y, (ca.SX, ca.DM)):
        if type(y) is not float and type(y) is not int:
            _check(y)
            return slow(x, y)
        y = _constant(y)
    found = _binary(kind, x, y)
    found.__class__ = QuickSX
    return found


def _reflected(kind, x, y, slow):
    if not isinstance(y, (ca.SX, ca.DM)):
        if type(y) is not float and type(y) is not int:
            _check(y)
            return slow(y if hasattr(y, "shape") else ca.SX(y), x)
        y = _constant(y)
    found = _binary(kind, y, x)
    found.__class__ = QuickSX
    return found


def _check(y):
    if isinstance(y, ca.MX):
        raise ShapeError(
            f"scalar expressions (SX) and matrix expressions (MX, {y.shape[0]} x {y.shape[1]}) cannot be in one "
            "formula: take symbols of one kind, or put the SX part into a casadi.Function and call that with the MX"
        )


def _constant(number):
    found = _CONSTANTS.get(number)
    if found is None:
        found = ca.SX(number)
        if len(_CONSTANTS) < 100:
            _CONSTANTS[number] = found
    return found
