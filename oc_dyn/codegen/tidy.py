"""C text of CasADi made such that compilers have nothing to say: no function that is not called, no number taken for a
truth value, and in single precision no double."""

from __future__ import annotations

import re
from functools import partial

import numpy as np

_MATH = """
    sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp expm1 log log1p pow sqrt hypot fabs floor ceil
    fmod remainder copysign fmin fmax erf
""".split()
_CALLED = re.compile(rf"(?<![\w.])({'|'.join(_MATH)})(?=\()")
_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])", re.IGNORECASE)
_SMALLEST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
_CODE = re.compile(r"^ .*$", re.MULTILINE)
_WORD = r"([aw]\d+|c[rs]\[i\]|\*c[rs]\+\+|\(\*c[rs]\+\+\))"  # a number in the code of an operation
_NOT = re.compile(rf"\(! ?{_WORD} ?\)")
_PICKED = re.compile(rf"\({_WORD}\?")
_BOTH = re.compile(rf"\({_WORD}(&&|\|\|){_WORD}\)")
_NOTHING = re.compile(r"casadi_copy\([^,;]*, 0, [^;]*\);")  # of numbers that are none, at a place that may be none
_HELPER = re.compile(r"^static [^;{}=()]*?\b(casadi_\w+)\([^;{}]*\) \{\n(?:.*\n)*?\}\n", re.MULTILINE)
_PREFIXED = re.compile(r"^#define (casadi_\w+) CASADI_PREFIX\(\w+\)\n", re.MULTILINE)
_PRINTS = re.compile(r"\b\w*printf\b|\bva_\w+|\bFILE\b")


def tidied(text: str, precision: str) -> str:
    """The text of CasADi's generator with the same values, in double or single precision."""
    text = _BOTH.sub(r"(\1!=0\2\3!=0)", _PICKED.sub(r"(\1!=0?", _NOT.sub(r"(\1==0)", text)))
    text = _without_unused(_NOTHING.sub("casadi_copy(0, 0, 0);", text))
    if not _PRINTS.search(re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)):
        text = re.sub(r"^#include <(?:stdio|stdarg)\.h>\n", "", text, flags=re.MULTILINE)
    return in_single(text) if precision == "single" else text


def in_single(text: str) -> str:
    """Numbers and functions of <math.h> as those of float."""
    return _CODE.sub(lambda line: _NUMBER.sub(_of_float, line[0]), _CALLED.sub(r"\1f", text))


def _of_float(number: re.Match[str]) -> str:
    """A constant that float has: the smallest or the largest one where it is beyond them, so that what keeps a divisor
    from zero still does."""
    value = float(number[0])
    if 0 < value < _SMALLEST:
        return f"{_SMALLEST:.9g}f"
    return f"{min(value, _LARGEST):.9g}f" if value > _LARGEST else f"{number[0]}f"


def _without_unused(text: str) -> str:
    """Without the static functions that no other one calls, and the names of them."""
    while True:
        called: dict[str, int] = {}
        for name in re.findall(r"\bcasadi_\w+", text):
            called[name] = called.get(name, 0) + 1
        defined = set(_PREFIXED.findall(text))
        unused = {x[1] for x in _HELPER.finditer(text) if called[x[1]] == 1 + (x[1] in defined)}
        if not unused:
            return text
        for pattern in (_HELPER, _PREFIXED):
            text = pattern.sub(partial(_unless, unused), text)


def _unless(unused: set[str], found: re.Match[str]) -> str:
    return "" if found[1] in unused else found[0]
