"""Exceptions raised by oc_dyn; each message says where, what was got, what was expected, and what to do."""

from __future__ import annotations

import difflib
import os
import pickle
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from .text import terminal_lines


class _Portable:
    """Errors that come back from another process: pickled by text and fields, whatever their constructors take. What a
    message quotes of a file or a name is shown without control characters."""

    args: tuple[Any, ...]

    def __str__(self) -> str:
        return terminal_lines(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        # a field that cannot travel, as a solution with symbols, must not take the error's place
        fields = {k: x for k, x in vars(self).items() if _pickles(x)}
        fields |= dict.fromkeys(vars(self).keys() - fields.keys())
        return _restored, (type(self), tuple(x if _pickles(x) else str(x) for x in self.args), fields)

    def __copy__(self) -> Any:
        return _restored(type(self), self.args, vars(self))


def _restored(kind: type[Any], args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(fields)
    return error


def _pickles(x: object) -> bool:
    try:
        pickle.dumps(x)
    except Exception:  # pickle raises what the objects raise
        return False
    return True


class ModelError(_Portable, ValueError):
    """A robot description is wrong; lists every problem found, one per line, and keeps them in `problems`."""

    def __init__(self, source: object, problems: Iterable[str]) -> None:
        self.source = str(source)
        self.problems = tuple(problems)
        super().__init__(self.source, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return terminal_lines(f"{self.source}: {self.problems[0]}")
        lines = "\n".join(f"  - {p}" for p in self.problems)
        return terminal_lines(f"{self.source}: {len(self.problems)} problems\n{lines}")


class FileError(ModelError):
    """A file cannot be read: damaged, cut, too large, or not what it should be; `source` names it."""


class ModelWarning(_Portable, UserWarning):
    """A robot description is usable but says less than it should; see the message for what was assumed."""


class CheckWarning(_Portable, UserWarning):
    """A result was found, but its own check sees more than a small error in it; the message names the worst."""


class ShapeError(_Portable, ValueError):
    """An argument has the wrong shape or a port is unknown."""


class OrderError(_Portable, ValueError):
    """A method cannot do the order or the robot asked for."""


class UnknownName(_Portable, KeyError, ValueError):
    """A name (quantity, method, joint, frame, port) is not known; the message, kept as `message`, lists near ones, and
    may end with where there are `more`."""

    def __init__(self, what: str, name: object, known: Iterable[object], more: str = "") -> None:
        names = [str(k) for k in known]
        near = difflib.get_close_matches(str(name), names, n=3)
        hint = f"did you mean {', '.join(map(repr, near))}? " if near else ""
        shown = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
        self.message = f"no {what} {name!r}; {hint}available: {shown or 'none'}{more and '; '}{more}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return terminal_lines(self.message)


class LimitError(_Portable, ValueError):
    """A motion is impossible within the limits, found before solving; the message names joint and limit."""


class SolveError(_Portable, RuntimeError):
    """The solver failed; `status`, `violations` (worst first) and the last iterate are kept: `solution` of a Problem,
    `trajectory` of a planner. A limit of time that has passed is the status "time_limit", a result that does not stand
    its own check "check"."""

    def __init__(
        self,
        message: str,
        status: str | int | None = None,
        violations: Iterable[Any] = (),
        trajectory: Any = None,
        solution: Any = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.violations = tuple(violations)
        self.trajectory = trajectory
        self.solution = solution


ALL = (LimitError, ModelError, OrderError, ShapeError, SolveError, UnknownName)  # what is refused, as one except clause


# -- where warnings point to ------------------------------------------------------------------------------------------

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_CALLER: ContextVar[FrameType | None] = ContextVar("caller", default=None)  # in whose name other threads work


def warn(warning: Warning) -> None:
    """Show a warning at the line outside this package that has called it, however deep it comes from."""
    frame = _CALLER.get() or _outside()
    registry = frame.f_globals.setdefault("__warnings_registry__", {})
    where = frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
    warnings.warn_explicit(warning, None, *where, registry)


@contextmanager
def warning_here() -> Iterator[None]:
    """Within it, and in copies of this context, warn() points to the line that calls now, as for work in threads."""
    token = _CALLER.set(_CALLER.get() or _outside())
    try:
        yield
    finally:
        _CALLER.reset(token)


def _outside() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and (frame.f_code.co_filename.startswith(_PACKAGE) or _passes(frame)):
        frame = frame.f_back
    return frame


def _passes(frame: FrameType) -> bool:
    return frame.f_code.co_filename == contextmanager.__code__.co_filename
