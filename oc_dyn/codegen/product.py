"""What all generated C has in common: structs of inputs, outputs, parameters and instances, and what is known of them.

An instance, <name>_t, holds all that the code writes: two of them share nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any

import casadi as ca
import numpy as np

from .._version import __version__
from ..errors import ShapeError, UnknownName
from ..text import c_comment, c_string
from ..types import Array
from .names import field_name

WIDTH = 116  # of comments, their margin left out
BYTES = {"double": 8, "float": 4}


@dataclass(frozen=True)
class Field:
    """A member of a struct: an array of rows, or of columns of rows; a number where `single` is set. size: of the
    port that it stands for, (rows, columns), and the number of its nonzeros. labels: what its rows are called."""

    name: str
    rows: int
    columns: int = 1
    unit: str = ""
    labels: tuple[str, ...] = ()
    words: str = ""
    single: bool = False
    type: str = ""  # "" for that of real numbers

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return self.rows * self.columns

    def declared(self, real: str) -> str:
        """Its line in a struct, behind a comment of what it is."""
        shape = "" if self.single else f"[{self.rows}]" if self.columns == 1 else f"[{self.columns}][{self.rows}]"
        told = " ".join(filter(None, [f"[{self.unit}]" if self.unit else "", self.words]))
        told = ": ".join(filter(None, [told, ", ".join(self.labels)]))
        comment = comment_lines(told, "    /* ", "     * ", " */\n") if told else ""
        return f"{comment}    {self.type or real} {self.name}{shape};"


@dataclass(frozen=True)
class Facts:
    """What the header says besides its names. libraries: (name, licence) of what has to be linked; allocates: whether
    they do; stack: words on it; numbers, integers, pointers: of an instance; more: lines of its own."""

    title: str
    sample_time: float | None = None
    libraries: tuple[tuple[str, str], ...] = ()
    allocates: bool = False
    stack: str = ""
    integers: int = 0
    numbers: int = 0
    pointers: int = 0
    more: Mapping[str, str] = field(default_factory=dict)


_C_LIBRARY = "the C library with its mathematical functions: -lm for gcc and clang"


def comment_lines(text: str, first: str, other: str, end: str) -> str:
    """A comment of several lines, each with its margin; what is in it stays in it."""
    lines = wrap(c_comment(text), WIDTH - len(first), break_on_hyphens=False) or [""]
    return "\n".join((other if k else first) + line for k, line in enumerate(lines)) + end


def fields_by_port(f: ca.Function, which: str) -> dict[str, Field]:
    """{port: member} for the inputs ("in") or outputs ("out") of a Function; ports without entries are left out.

    A sparse port is the array of its nonzeros.
    """
    names, sparsity = (f.name_in(), f.sparsity_in) if which == "in" else (f.name_out(), f.sparsity_out)
    out = {}
    for k, name in enumerate(names):
        shape = sparsity(k)
        if not shape.nnz():
            continue
        rows, columns = (shape.size1(), shape.size2()) if shape.is_dense() else (shape.nnz(), 1)
        rows, columns = (columns, 1) if rows == 1 else (rows, columns)
        words = "" if shape.is_dense() else f"nonzeros of a matrix of {shape.size1()} x {shape.size2()}"
        out[name] = Field(field_name(name), rows, columns, words=words)
    return out


def fields_of(f: ca.Function, which: str, without: Sequence[str] = ()) -> list[Field]:
    """Members for the ports of a Function, but for some."""
    return [x for name, x in fields_by_port(f, which).items() if name not in without]


def labelled(
    fields: Iterable[Field], where: str, joints: Sequence[str] | None, units: Mapping[str, str] | None, known: set[str]
) -> list[Field]:
    """Fields with units, and the names of joints at those that have a row for each. Raises UnknownName, ShapeError."""
    if isinstance(joints, str) or not all(isinstance(x, str) for x in joints or ()):
        raise ShapeError(f"{where}: joints is {joints!r}, expected their names in order")
    labels, units = tuple(joints or ()), dict(units or {})
    for name, unit in units.items():
        if field_name(name) not in known:
            raise UnknownName(f"{where}: units: port", name, sorted(known))
        if not isinstance(unit, str):
            raise ShapeError(f"{where}: unit of {name} is {unit!r}, expected a text, as 'rad'")
    at = {field_name(name): unit for name, unit in units.items()}
    return [
        replace(x, unit=at.get(x.name, x.unit), labels=labels if labels and x.rows == len(labels) else x.labels)
        for x in fields
    ]


def struct(name: str, fields: Sequence[Field], real: str) -> str:
    """typedef of a struct; C has no empty one."""
    lines = [x.declared(real) for x in fields] or ["    char nothing;"]
    return "\n".join(["typedef struct {", *lines, f"}} {name};"])


def content_hash(texts: Iterable[str], *options: Any) -> str:
    """16 digits that change with the generated text, which holds all numbers of the model, and with the options."""
    digest = hashlib.sha256(__version__.encode())
    for text in (*texts, repr(options)):
        digest.update(b"\0" + text.encode())
    return digest.hexdigest()[:16]


def facts_text(name: str, facts: Facts, hash_: str, real: str) -> str:
    """Lines of the comment at the top of a header."""
    rows = {
        "Written by": f"oc_dyn {__version__}, CasADi {ca.CasadiMeta.version()}",
        "Hash": f"{hash_}, of the code, with it of model and options",
        **({"Sample time": f"{facts.sample_time:g} s"} if facts.sample_time else {}),
        "Numbers": f"{real}, SI units where no other is named",
        **({"Memory": memory_text(name, facts, real)} if facts.numbers else {}),
        "Stack": facts.stack or "not measured; see footprint of what wrote this",
        "Libraries": "; ".join([*(f"{x}, licence {y}" for x, y in facts.libraries), _C_LIBRARY]),
        "Licence": "parts of CasADi's run-time library are in the code, under MIT-0; the rest is the user's",
        **facts.more,
    }
    return "\n".join(comment_lines(f"{what}: {text}", " * ", " *     ", "") for what, text in rows.items())


def memory_text(name: str, facts: Facts, real: str) -> str:
    """How large an instance is."""
    small, large = (BYTES[real] * facts.numbers + 4 * facts.integers + size * facts.pointers for size in (4, 8))
    said = f"{large} bytes where pointers have 64 bits, {small} where they have 32"
    return f"an instance, {name}_t, takes about {said}; code and constants come on top"


def macros(name: str, facts: Facts, hash_: str) -> str:
    """Constants of the header."""
    lines = [f"#define {name}_VERSION {c_string(__version__)}", f"#define {name}_HASH {c_string(hash_)}"]
    if facts.sample_time:
        lines.append(f"#define {name}_PERIOD {facts.sample_time:.17g} /* [s] between calls */")
    return "\n".join(lines)


def c_numbers(values: Any, real: str = "double") -> str:
    """Numbers as C literals, in lines of four; infinite ones are the largest that there are."""
    finite = np.finfo(np.float32 if real == "float" else float).max
    numbers: Array = np.clip(np.asarray(values, float).ravel(order="F"), -finite, finite)
    words = [literal(x, real) for x in numbers] or ["0"]
    return ",\n  ".join(", ".join(words[k : k + 4]) for k in range(0, len(words), 4))


def literal(x: float, real: str = "double") -> str:
    """A number as a C literal of its type."""
    if not np.isfinite(x):
        return "NAN" if np.isnan(x) else "INFINITY" if x > 0 else "-INFINITY"
    if real != "float":
        return f"{x:.17g}"
    text = f"{np.float32(x):.9g}"
    return text + ("f" if {"e", "."} & set(text) else ".f")
