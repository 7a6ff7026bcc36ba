"""Functions as C99 text: CasADi's generator, with every internal name static and long Functions in parts.

The texts that CasADi writes for parts are simplified: as the chain gives them all arguments, they need no test for null
pointers, which would cost a compiler most of its time; and they write results straight to their place.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable
from typing import Any

import casadi as ca

from ..errors import ModelError, ShapeError
from .split import LIMIT, MARK, split
from .templates import filled
from .tidy import in_single, tidied

SPLIT_ABOVE = 2000  # instructions; longer ones compile 1.3 to 10 times faster in parts, and run no slower
REALS = {"double": "double", "single": "float"}

_HELPER = re.compile(r"^(?=(?:void|int|casadi_real|casadi_int|const casadi_real ?\*) *casadi_\w+\()", re.MULTILINE)
_FUNCTION = re.compile(r"^/\* (\w+):.*?^}$", re.MULTILINE | re.DOTALL)
_PART = re.compile(rf"\w+{MARK}\d+")
_CALL = re.compile(  # of a part, and the outputs right behind it
    r"((?:  res\d+\[\d+\]=.*;\n)+)(  if \(casadi_f\d+\(.*\)\) return 1;\n)((?:  /\* #\d+: output.*\n  .*\n)+)"
)
_ANY_CALL = re.compile(r"((?:  (?:arg|res)\d+\[\d+\]=.*;\n)*)  if \((casadi_f\d+)\(.*\)\) return 1;\n")
_MISSING = re.compile(r"=(?!wr?\d+;|\(&w\d+\);|casadi_c\d+;)")  # an argument that may be a null pointer
_BARE = re.compile(r"^  (wr\d+) = (?!.*: casadi_zeros;$)", re.MULTILINE)  # a reference that may be one
_COPY = re.compile(r"  (?:if \(res\[\d+\]\) )?casadi_copy\((w\d+), \d+, (res\[\d+\])((?:\+\d+)?)\);\n")
_WRITE = re.compile(r"if \(res\[\d+\]!=0\) (res\[\d+\]\[\d+\]=)")
_READ = re.compile(r"arg\[\d+\]\? (arg\[\d+\]\[\d+\]) : 0")
_ERFINV = re.compile(r"(?<!\w)erfinv\(")  # which CasADi writes, and no C library has
_START = """/* C99 of CasADi Functions, written by oc_dyn with CasADi's generator */
#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-parameter" /* all functions have the same arguments, used or not */
#define CASADI_APART __attribute__((noinline)) static
#else
#define CASADI_APART static
#endif

"""
_END = """
#ifdef __cplusplus
} /* extern "C" */
#endif
"""


def checked_functions(where: str, functions: Any) -> list[ca.Function]:
    """The Functions as a list; ModelError for anything else, or one that is compiled already."""
    functions = [functions] if isinstance(functions, ca.Function) else functions
    try:
        functions = list(functions)
    except TypeError:
        functions = [functions]
    if not functions:
        raise ModelError(where, ["got no Function"])
    problems = [
        f"number {k} is a {type(f).__name__}, expected a casadi.Function, as od.function returns it"
        for k, f in enumerate(functions, 1)
        if not isinstance(f, ca.Function)
    ]
    if not problems:
        problems = [
            f"{f.name()} is compiled already; give the Function that it was made of"
            for f in functions
            if f.class_name().endswith("External")
        ]
    if problems:
        raise ModelError(where, problems)
    return functions


def checked_precision(where: str, precision: str) -> str:
    """The name of a precision in REALS; ShapeError for another one."""
    if precision not in REALS:
        raise ShapeError(f"{where}: precision is {precision!r}, expected one of {', '.join(map(repr, REALS))}")
    return precision


def prepared(function: ca.Function, name: str, parts: int | None = None) -> ca.Function:
    """The Function as it is written: called `name`, and in parts of so many instructions where it is long.

    parts: None: parts of LIMIT instructions above SPLIT_ABOVE; 0: one piece; a number: parts of so many.
    """
    if parts is None:
        long = function.is_a("SXFunction") and function.n_instructions() > SPLIT_ABOVE
        made = split(function, LIMIT) if long else function
    else:
        made = split(function, parts) if parts else function
    if made.name() == name:
        return made
    symbols: list[Any] = made.sx_in() if made.is_a("SXFunction") else made.mx_in()
    results: list[Any] = made.call(symbols, made.is_a("SXFunction") or made.is_a("MXFunction"), False)
    return ca.Function(name, symbols, results, made.name_in(), made.name_out())


def c_source(
    functions: Iterable[ca.Function],
    stem: str,
    *,
    precision: str = "double",
    integer: str = "long long int",
    more: str = "",
) -> str:
    """Text of <stem>.c, in which the Functions are external symbols of their names; all other symbols are static, or
    start with the stem. integer: the C type of integers. more: text to go behind them."""
    options = {"casadi_int": integer, "casadi_real": REALS[precision]}
    generator = ca.CodeGenerator(f"{stem}.c", options)
    for function in functions:
        try:
            generator.add(function)
        except RuntimeError as error:
            reason = str(error).splitlines()[0].rpartition("cpp:")[2]
            raise ModelError(function.name(), [f"CasADi cannot write it as C: {reason}"]) from None
    text = generator.dump()
    missing = re.search(r"^\s*#error (.*)$", text, re.MULTILINE)
    if missing:
        raise ModelError(", ".join(f.name() for f in functions), [f"CasADi cannot write it as C: {missing[1]}"])
    text = _HELPER.sub("static ", text)
    text, inverses = _ERFINV.subn("oc_dyn_erfinv(", text)
    # inlined into hundreds of calls, its loop costs a fifth of the time of functions that are made of short ones
    text = text.replace("static void casadi_copy(", "CASADI_APART void casadi_copy(")
    complete = _given_all(text)
    text = _FUNCTION.sub(lambda function: _simplified(function, complete), text)
    inverse = "#include <math.h>\n\n" + filled("erfinv.c") if inverses else ""
    if precision == "single":
        inverse = in_single(inverse).replace("double", "float")
    return _START + inverse + tidied(text, precision) + more + _END


def _given_all(text: str) -> set[str]:
    """Names of the functions that are given all arguments wherever they are called."""
    if _BARE.search(text):
        return set()
    named = Counter(re.findall(r"\bcasadi_f\d+(?=\()", text))
    calls: Counter[str] = Counter()
    for arguments, name in _ANY_CALL.findall(text):
        calls[name] += not _MISSING.search(arguments)
    return {name for name, n in calls.items() if named[name] == n + 1}  # and once where it stands


def _simplified(function: re.Match[str], complete: set[str]) -> str:
    text = function[0]
    name = re.search(r"^static int (casadi_f\d+)\(", text, re.MULTILINE)
    if _PART.fullmatch(function[1]) and name and name[1] in complete:
        return _READ.sub(r"\1", _WRITE.sub(r"\1", text)).replace("\nstatic int ", "\nCASADI_APART int ", 1)
    return _direct(text) if MARK in text else text


def _direct(text: str) -> str:
    """A chain whose parts write to the outputs, where they wrote to a vector that is copied there and read no more."""
    uses: dict[str, list[int]] = {}
    for found in re.finditer(r"\bw\d+\b", text):
        uses.setdefault(found[0], []).append(found.start())

    def once(vector: str, start: int, end: int) -> bool:
        """Whether its first use behind a place is within a range, and the next gives it to another part to fill."""
        k = bisect(uses[vector], start)
        later = uses[vector][k : k + 2]
        return later[0] < end and (len(later) == 1 or _fills(text, later[1]))

    def changed(call: re.Match[str]) -> str:
        places, run, outputs = call.groups()
        kept = ""
        for comment, line in re.findall(r"(  /\*.*\n)(  .*\n)", outputs):
            copy = _COPY.fullmatch(line)
            if copy and f"={copy[1]};\n" in places and once(copy[1], call.start(3), call.end()):
                there = f"{copy[2]} ? {copy[2]}{copy[3]} : {copy[1]}"
                places = places.replace(f"={copy[1]};\n", f"={there};\n")
            else:
                kept += comment + line
        return places + run + kept

    return _CALL.sub(changed, text)


def _fills(text: str, place: int) -> bool:
    """Whether the name at this place stands in a line that makes it a result of a call."""
    return re.fullmatch(r"  res\d+\[\d+\]=", text[text.rfind("\n", 0, place) + 1 : place]) is not None
