"""The files around generated code: header, example, self-test, CMakeLists.txt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from string import Template
from typing import Any

import casadi as ca
import numpy as np

from ..text import c_comment, c_string
from .names import field_name
from .product import BYTES, Facts, Field, content_hash, facts_text, fields_by_port, macros, struct

INTEGER = "long long int"


def filled(template: str, package: str | None = None, /, **words: object) -> str:
    """Text of a template of a package, by default this one, with its words filled in."""
    return Template((files(package or __package__) / f"{template}.in").read_text(encoding="utf-8")).substitute(words)


_INSTANCES = """ *
 * Or by instances: f_init(&instance) once, then f_evaluate(&instance, &in, &out) with the structs f_in and f_out.
"""


def header(
    name: str,
    given: Sequence[ca.Function],
    written: Sequence[ca.Function],
    real: str = "double",
    integer: str = INTEGER,
    texts: Iterable[str] | None = None,
    stack: str = "",
) -> str:
    """Header of the C functions `written`, which are the Functions `given` under other names, or in parts.

    texts: the C of the functions, for a header with facts, and with instances of them; None for one without.
    stack: words on it."""
    declarations = []
    for f, w in zip(given, written, strict=True):
        sizes = {x: getattr(w, f"sz_{x}")() for x in ("arg", "res", "iw", "w")}
        more = {"inputs": _ports(f, "in"), "outputs": _ports(f, "out"), "instructions": f.n_instructions()}
        declarations.append(filled("function.h", f=w.name(), real=real, integer=integer, **sizes, **more))
        if texts is not None:
            declarations.append(_instance(f, w, real, integer))
    title = f"{name}: {len(given)} function{'s' * (len(given) > 1)} as C99, in {real}"
    facts = Facts(title=title, stack=stack)
    hash_ = "" if texts is None else content_hash(texts, real)
    more = {
        "facts": "" if texts is None else f"{facts_text(name, facts, hash_, real)}\n *\n",
        "macros": "" if texts is None else f"\n{macros(name, facts, hash_)}\n",
        "instances": "" if texts is None else _INSTANCES,
    }
    words = {"real": real, "integer": integer, "declarations": "".join(declarations), **more}
    return filled("header.h", title=c_comment(title), name=name, **words)


def _instance(f: ca.Function, written: ca.Function, real: str, integer: str) -> str:
    """Structs of a Function, and calls with them."""
    name, sizes = written.name(), {x: getattr(written, f"sz_{x}")() for x in ("arg", "res", "iw", "w")}
    structs, lines = [], []
    for which in ("in", "out"):
        fields = [_known(f, port, x) for port, x in fields_by_port(f, which).items()]
        structs.append(struct(f"{name}_{which}", fields, real))
        names, nnz = (f.name_in(), f.nnz_in) if which == "in" else (f.name_out(), f.nnz_out)
        kind, target = (f"const {real}", "arg") if which == "in" else (real, "res")
        lines.append(
            "".join(
                f"    self->{target}[{k}] = {f'({kind} *){which}->{field_name(n)}' if nnz(k) else '0'};\n"
                for k, n in enumerate(names)
            )
            or f"    (void){which};\n"
        )
    bytes_ = sum(sizes[k] * s for k, s in (("arg", 8), ("res", 8), ("iw", 8 if "long" in integer else 4)))
    bytes_ += sizes["w"] * BYTES[real]
    return filled(
        "function_instance.h",
        f=name,
        real=real,
        integer=integer,
        structs="\n\n".join(structs),
        memory=f"about {bytes_} bytes where pointers have 64 bits",
        given=lines[0],
        found=lines[1],
        **{x: max(1, size) for x, size in sizes.items()},
    )


def _known(f: ca.Function, port: str, x: Field) -> Field:
    """A member with the unit and the names of rows of its port, where the Function knows them."""
    unit, rows = getattr(f, "facts", {}).get(port, ("", ()))
    return replace(x, unit=unit, labels=tuple(rows) if len(rows) == x.rows else ())


def _ports(f: ca.Function, which: str) -> str:
    names, sparsity = (f.name_in(), f.sparsity_in) if which == "in" else (f.name_out(), f.sparsity_out)
    return ",\n *          ".join(f"{c_comment(n)} {_shape(sparsity(i))}" for i, n in enumerate(names)) or "nothing"


def _shape(sparsity: ca.Sparsity) -> str:
    shape = f"({sparsity.size1()}, {sparsity.size2()})"
    return shape if sparsity.is_dense() else f"{shape} with {sparsity.nnz()} nonzeros"


def example(name: str, f: ca.Function, points: Sequence[Any], real: str) -> str:
    """Program that calls the C function f at the first of its points."""
    ins = [(f"in_{n}", points[0][0][i]) for i, n in enumerate(f.name_in())]
    outs = [(f"out_{n}", f.nnz_out(i)) for i, n in enumerate(f.name_out())]
    return filled(
        "example.c",
        f=f.name(),
        header=f"{name}.h",
        real=real,
        integer=INTEGER,
        inputs="\n".join(f"    static const {real} {n}[] = {_array(x, real)};" for n, x in ins),
        outputs="\n".join(f"    static {real} {n}[{max(1, size)}];" for n, size in outs),
        arg=", ".join(n for n, _ in ins) or "0",
        res=", ".join(n for n, _ in outs) or "0",
        prints="\n".join(f"    print({c_string(n[4:])}, {n}, {size});" for n, size in outs),
    )


def selftest(name: str, written: Sequence[ca.Function], data: Sequence[Any], real: str, tolerance: float) -> str:
    """Program that compares the C functions with the stored points of each, [(inputs, outputs)]."""
    arrays, checks = [], []
    for f, points in zip(written, data, strict=True):
        n = f.name()
        sizes = [[f.nnz_in(i) for i in range(f.n_in())] + [-1], [f.nnz_out(i) for i in range(f.n_out())] + [-1]]
        for which, size in zip(("n_in", "n_out"), sizes, strict=True):
            arrays.append(f"static const int {n}_{which}_of[] = {{{', '.join(map(str, size))}}};")
        for which, k in (("in", 0), ("out", 1)):
            numbers = np.concatenate([np.zeros(0), *(x for point in points for x in point[k])])
            arrays.append(f"static const {real} {n}_{which}_at[] = {_array(numbers, real)};")
        checks.append(
            f"    mem = {n}_checkout();\n"
            f"    failed += check({c_string(n)}, {n}, mem, {len(points)}, {n}_n_in_of, {n}_in_at, "
            f"{n}_n_out_of, {n}_out_at, tolerance);\n"
            f"    {n}_release(mem);"
        )
    return filled(
        "selftest.c",
        name=name,
        tolerance=f"{tolerance:g}",
        real=real,
        integer=INTEGER,
        **{x: max(1, *(getattr(f, f"sz_{x}")() for f in written)) for x in ("arg", "res", "iw", "w")},
        out=max(1, *(f.nnz_out() for f in written)),
        data="\n" + "\n".join(arrays) + "\n",
        checks="\n".join(checks),
        count=len(written),
    )


def _array(numbers: Any, real: str) -> str:
    words = [_literal(x, real) for x in numbers] or ["0"]
    lines = [", ".join(words[k : k + 4]) for k in range(0, len(words), 4)]
    return "{\n    " + ",\n    ".join(lines) + "}"


def _literal(x: float, real: str) -> str:
    if not np.isfinite(x):
        return "NAN" if np.isnan(x) else "INFINITY" if x > 0 else "-INFINITY"
    return f"{x:.9e}f" if real == "float" else f"{x:.17g}"
