"""od.compile: Functions as machine code, loaded as Functions again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

import casadi as ca

from ..errors import ModelError, ModelWarning, ShapeError, SolveError, warn, warning_here
from ..interrupts import ending_commands
from ..model.robot_function import RobotFunction
from ..types import StrPath
from .build import (
    FLAGS,
    TIME_LIMIT,
    Command,
    Flags,
    checked_flags,
    checked_time_limit,
    find_compiler,
    library,
    loaded,
    processors,
)
from .source import c_source, checked_functions, prepared

Functions = TypeVar("Functions", ca.Function, Sequence[ca.Function])  # one, or several
_DERIVATIVES: dict[str, Callable[[ca.Function], ca.Function]] = {
    "jac": lambda f: f.jacobian(),
    "adj": lambda f: f.reverse(1),
    "jac_adj": lambda f: f.reverse(1).jacobian(),
}


def compile(
    functions: Functions,
    *,
    flags: Flags = FLAGS,
    compiler: Command | None = None,
    cache: StrPath | None = None,
    derivatives: str | ca.Function | Iterable[str | ca.Function] = (),
    parts: int | None = None,
    fallback: bool = False,
    time_limit: float | None = TIME_LIMIT,
) -> Functions:
    """Functions compiled with a C compiler: same names, ports and numbers, 20 to 100 times faster.

    functions: a casadi.Function, or a list of them; the result is one, or a list, in the same order. What od.function
        made keeps its checks of ports.
    flags: of the compiler, as ("-O3", "-march=native"). compiler: its command; default $CC, cc, gcc or clang.
    cache: folder for compiled libraries; default $OC_DYN_CACHE, or oc_dyn in the user's cache folder. What was compiled
        before, from the same text with the same flags, by the same compiler, is loaded from there, if it still is as it
        was written; a folder that others can write to is refused.
    derivatives: what CasADi is to find compiled when it differentiates: "jac", "adj" and "jac_adj" are made by AD
        ("jac" for Jacobians; "adj", "jac_adj" also for gradients and exact Hessians); or Functions of one's own for a
        single Function f, named jac_<f>, adj1_<f>, jac_adj1_<f> with the ports that CasADi asks for. Without them a
        compiled Function cannot be differentiated.
    parts: instructions after which long Functions are split, see split; 0 for never, None for where it pays.
    fallback: True gives the Functions back as they are, with a ModelWarning, where they cannot be compiled and loaded,
        whatever the reason: no compiler or one that fails, no folder for the cache, a disk that forbids to run code.
    time_limit [s]: of each run of the compiler, which is then stopped; None for none.
    Raises ModelError for what is not a Function or cannot be written as C, and for the cache folder; SolveError without
    a compiler, or if it fails, with what it says, or is not done within time_limit.
    """
    given = checked_functions("compile", functions)
    chosen = [_derivatives(f, derivatives, len(given)) for f in given]
    time_limit = checked_time_limit("compile", time_limit)
    flags = checked_flags("compile", flags)
    try:
        words = find_compiler(compiler)
    except SolveError as error:
        if not fallback:
            raise SolveError(f"{error}; or pass fallback=True to go on without") from None
        return _as_they_are(functions, given, error)

    texts = _texts(given, chosen, parts)
    try:
        paths = _libraries(texts, flags, words, cache, time_limit)
        made: Any = [_compiled(f, path) for f, path in zip(given, paths, strict=True)]
    except (SolveError, ModelError) as error:
        if not fallback:
            raise
        return _as_they_are(functions, given, error)
    return made[0] if isinstance(functions, ca.Function) else made


def _as_they_are(functions: Any, given: list[ca.Function], error: Exception) -> Any:
    warn(ModelWarning(f"not compiled: {error}"))
    return functions if isinstance(functions, ca.Function) else given


def _texts(functions: list[ca.Function], derivatives: list[list[ca.Function]], parts: int | None) -> list[str]:
    """C text of each Function with its derivatives."""
    groups = ([f, *more] for f, more in zip(functions, derivatives, strict=True))
    return [c_source([prepared(f, f.name(), parts) for f in group], "oc_dyn") for group in groups]


def _libraries(
    texts: list[str], flags: Flags, words: list[str], cache: StrPath | None, time_limit: float | None
) -> list[Path]:
    """Paths of the libraries of C texts, several compiled at a time; where one fails or this is interrupted, none goes
    on."""

    def built(text: str) -> Path:
        return library({"oc_dyn.c": text}, flags, words, cache, time_limit)

    with ThreadPoolExecutor(min(len(texts), processors())) as pool, ending_commands(), warning_here():
        jobs = [pool.submit(copy_context().run, built, text) for text in texts]
        try:
            return [job.result() for job in jobs]
        except BaseException:  # an error of one, or Ctrl-C: those that wait do not begin
            for job in jobs:
                job.cancel()
            raise


def _compiled(function: ca.Function, path: Path) -> ca.Function:
    made: Any = loaded(function.name(), path)
    if isinstance(function, RobotFunction):
        made = function.with_base(made)
        made.library = str(path)
    made.straight_line = function.is_a("SXFunction")  # it cannot fail: spares numpy_call to ask
    return made


def _derivatives(function: ca.Function, derivatives: Any, count: int) -> list[ca.Function]:
    """The derivative Functions that go into the library of a Function."""
    derivatives = [derivatives] if isinstance(derivatives, (str, ca.Function)) else list(derivatives)
    allowed = {f"{prefix}_{function.name()}" for prefix in ("jac", "fwd1", "adj1", "jac_adj1", "jac_fwd1")}
    out = {}
    for d in derivatives:
        if isinstance(d, ca.Function):
            if count > 1 and d.name() not in allowed:
                continue
        elif d in _DERIVATIVES:
            d = _DERIVATIVES[d](function)
        else:
            known = ", ".join(map(repr, _DERIVATIVES))
            raise ShapeError(f"compile: derivatives has {d!r}, expected {known}, or casadi.Functions")
        if d.name() not in allowed:
            problem = f"it is no derivative of {function.name()}; CasADi looks for {', '.join(sorted(allowed))}"
            raise ModelError(d.name(), [problem])
        out[d.name()] = d
    return list(out.values())
