"""Poses that are Functions of the time, as content of a scene."""

from __future__ import annotations

import casadi as ca

from ..errors import ShapeError

_CODE = ("CallbackInternal", "FmuFunction")  # kinds whose code CasADi does not write
_FILE = "External"  # in the kinds that are compiled code: of these only the path


def checked_function(what: str, f: ca.Function) -> ca.Function:
    """f, if it takes the time (1, 1) to a matrix (4, 4) and what CasADi writes of it is all that it does, so that it
    can be compared, kept and sent to other processes. Raises ShapeError otherwise."""
    if (f.n_in(), f.n_out()) != (1, 1) or f.size_in(0) != (1, 1) or f.size_out(0) != (4, 4):
        raise ShapeError(f"{what} is {f}, expected a Function of the time, (1, 1) -> (4, 4)")
    for g in (f, *f.find_functions()):
        kind = g.class_name()
        if kind in _CODE or _FILE in kind:
            calls = "is" if g is f else f"calls {g.name()!r},"
            raise ShapeError(
                f"{what}: {f.name()!r} {calls} a {kind}, whose code is outside CasADi, so that scenes with another one "
                "could not be told apart; make it a Function of SX or MX symbols, or give the pose at a port: PORT"
            )
    try:
        f.serialize()
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ShapeError(
            f"{what}: {f.name()!r} cannot be written by CasADi ({reason}); make it a Function of SX or MX symbols"
        ) from None
    return f
