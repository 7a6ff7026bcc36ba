"""The files around generated code that has instances: header in C and C++, example, self-test, CMake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from ..text import c_comment, cmake
from ..types import Array
from .footprint import stack_of
from .product import Facts, Field, c_numbers, content_hash, facts_text, literal, macros, struct
from .source import REALS
from .templates import filled


@dataclass(frozen=True)
class Product:
    """Generated code with instances. structs: (name, members) of its types, inputs and outputs first; members: of the
    instance, as text; entries: declarations; sources: {file: text} of its C. given, expected, statuses: inputs, outputs
    and status of each step of the self-test; ends: of its outputs; options: what the hash depends on besides the text.
    wide: whether inputs are doubles in single precision, too; before: a call between init and the first step;
    least: size below which the self-test takes errors as absolute, of all outputs or of each; calls: entries besides
    init; timed: whether there are prepare and feedback."""

    name: str
    precision: str
    facts: Facts
    status: str
    structs: Sequence[tuple[str, Sequence[Field]]]
    members: str
    instance: str
    entries: str
    sources: Mapping[str, str]
    given: Sequence[Array]
    expected: Sequence[Array]
    statuses: Sequence[int]
    ends: Sequence[int]
    tolerance: float
    options: Any = ()
    wide: bool = False
    before: str = ""
    least: float | Sequence[float] = 1e-6
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    calls: Sequence[str] = ("step",)
    timed: bool = False

    @property
    def in_real(self) -> str:
        """C type of the inputs."""
        return "double" if self.wide else REALS[self.precision]


def finite_words(name: str, real: str) -> dict[str, Any]:
    """What fills all_finite.c."""
    double = {"PREFIX": "DBL", "digits": 53, "exponents": 1024, "bits": 64, "unsigned": "unsigned long long"}
    single = {"PREFIX": "FLT", "digits": 24, "exponents": 128, "bits": 32, "unsigned": "unsigned int"}
    words = (
        {**single, "mantissa": 23, "mask": "0xff"} if real == "float" else {**double, "mantissa": 52, "mask": "0x7ff"}
    )
    return {**words, "all_finite": f"{name}_own_all_finite", "real": real}


def files_of(product: Product, measure: bool = False) -> dict[str, str]:
    """{file: text} of everything. measure: whether it is compiled, for what the header says on the stack."""
    name = product.name
    hash_ = content_hash(product.sources.values(), product.options)
    if measure:
        texts = {**product.sources, **product.extra_headers, f"{name}.h": _header(product, hash_)}
        stack = stack_of(texts, [f"{name}_{entry}" for entry in ("init", *product.calls)])
        product = replace(product, facts=replace(product.facts, stack=stack))
    return {
        **product.sources,
        **product.extra_headers,
        f"{name}.h": _header(product, hash_),
        f"{name}.hpp": filled("product.hpp", name=name, title=c_comment(product.facts.title), classes=_class(product)),
        f"{name}_example.c": _example(product),
        f"{name}_selftest.c": _selftest(product),
        **cmake_files(name, list(product.sources), [f"{name}.h", f"{name}.hpp", *product.extra_headers], product.facts),
    }


def cmake_files(
    name: str, sources: Sequence[str], headers: Sequence[str], facts: Facts | None = None
) -> dict[str, str]:
    """{file: text}: the targets of this code, and a list file that takes in all that is generated into a folder."""
    place = "${CMAKE_CURRENT_LIST_DIR}/"
    libraries = [f"target_link_libraries({name} PUBLIC {cmake(x)})\n" for x, _ in facts.libraries] if facts else []
    lines = [["\n  ".join(f'"{place}{x}"' for x in files)] for files in (sources, headers)]
    words = {"sources": lines[0][0], "headers": lines[1][0], "libraries": "".join(libraries)}
    return {
        f"{name}_targets.cmake": filled("targets.cmake", name=name, **words),
        "CMakeLists.txt": filled("CMakeLists.txt"),
    }


def _header(product: Product, hash_: str) -> str:
    name, real, facts = product.name, REALS[product.precision], product.facts
    types = {f"{name}_in": "double"} if product.wide else {}
    return filled(
        "product.h",
        name=name,
        real=real,
        title=c_comment(facts.title),
        facts=facts_text(name, facts, hash_, real),
        macros=macros(name, facts, hash_),
        allocated=" but by the library" if facts.allocates else "",
        status=product.status,
        structs="\n\n".join(struct(n, fields, types.get(n, f"{name}_real")) for n, fields in product.structs),
        members=product.members,
        instance=product.instance,
        entries=product.entries,
    )


_HALVES = """  int prepare(const input& in) noexcept { return ::NAME_prepare(&self_, &in); }
  int feedback(const input& in, output& out) noexcept { return ::NAME_feedback(&self_, &in, &out); }
"""


def _class(product: Product) -> str:
    name = product.name
    halves = _HALVES.replace("NAME", name) if product.timed else ""
    return f"""
/// An instance of {name}; a copy goes on from where this one is.
class {name}_controller {{
 public:
  using input = ::{name}_in;
  using output = ::{name}_out;

  {name}_controller() noexcept {{ ::{name}_init(&self_); }}
  void reset() noexcept {{ ::{name}_reset(&self_); }}
  int step(const input& in, output& out) noexcept {{ return ::{name}_step(&self_, &in, &out); }}
{halves}  ::{name}_t& c() noexcept {{ return self_; }}  ///< with the parameters that may be changed

 private:
  ::{name}_t self_;
}};
"""


def classes(name: str, written: Sequence[ca.Function]) -> str:
    """C++ header of Functions, a class for each."""
    texts = []
    for f in written:
        n = f.name()
        texts.append(f"""
/// A call of {n}, with its own room.
class {n}_function {{
 public:
  using input = ::{n}_in;
  using output = ::{n}_out;

  {n}_function() noexcept {{ ::{n}_init(&self_); }}
  int operator()(const input& in, output& out) noexcept {{ return ::{n}_evaluate(&self_, &in, &out); }}

 private:
  ::{n}_t self_;
}};
""")
    return filled("product.hpp", name=name, title=f"Functions of {name}", classes="".join(texts))


def _example(product: Product) -> str:
    inputs, outputs = product.structs[0][1], product.structs[1][1]
    lines, at = [], 0
    for x in inputs:
        numbers = product.given[0][at : at + x.count]
        target = f"({product.in_real} *){'&' * x.single}in.{x.name}"
        lines += [
            f"    {{\n        static const {product.in_real} values[] = {{{c_numbers(numbers, product.in_real)}}};",
            f"        for (i = 0; i < {x.count}; ++i) ({target})[i] = values[i];\n    }}",
        ]
        at += x.count
    prints = []
    for x in outputs:
        if x.type:
            kind = f'    printf("{x.name}: %d\\n", (int)out.{x.name});'
            prints.append(kind if x.single else f'    printf("{x.name}: %d ..\\n", (int)out.{x.name}[0]);')
        else:
            where = f"&out.{x.name}" if x.single else f"(const {product.name}_real *)out.{x.name}"
            prints.append(f'    print("{x.name}", {where}, {x.count});')
    return filled(
        "product_example.c",
        name=product.name,
        fill="\n".join(lines),
        before=product.before,
        prints="\n".join(prints),
        i=", i" if inputs else "",
    )


def _selftest(product: Product) -> str:
    in_real = product.in_real
    rows = [[literal(x, in_real) for x in row] for row in product.given]
    wanted = [[literal(x) for x in row] for row in product.expected]
    return filled(
        "product_selftest.c",
        name=product.name,
        steps=len(rows),
        inputs=len(rows[0]),
        outputs=len(wanted[0]),
        in_real=in_real,
        given=_table([[*row, "0"] for row in rows]),
        expected=_table(wanted),
        statuses=", ".join(map(str, product.statuses)),
        ends=", ".join(map(str, [*product.ends, 0])),
        tolerance=f"{product.tolerance:g}",
        least=", ".join(f"{x:g}" for x in np.broadcast_to(product.least, len(product.ends))),
        before=product.before,
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [",\n     ".join(", ".join(row[k : k + 4]) for k in range(0, len(row), 4)) for row in rows]
    return ",\n    ".join(f"{{{line}}}" for line in lines)
