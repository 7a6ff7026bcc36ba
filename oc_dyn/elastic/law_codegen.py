"""A law in C: its files, from what is written about it."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from ..codegen.product import Facts
from ..codegen.product_files import Product, files_of
from ..codegen.templates import filled
from .law_code import LawCode, recorded
from .law_measured import measured_members
from .law_words import law_words

_TOLERANCE = {"double": 1e-9, "single": 1e-3}


def law_texts(code: LawCode, functions: dict[str, str], measure: bool) -> dict[str, str]:
    """{file: text} of a law, its example and self-test; functions: texts of the law's and their header."""
    return files_of(law_product(code, functions), measure)


def law_product(code: LawCode, functions: dict[str, str]) -> Product:
    """Product of a law; functions: texts of the law's and their header."""
    name, controller = code.name, code.controller
    given, expected, statuses = recorded(code)
    words = law_words(code)
    return Product(
        name=name,
        precision=code.precision,
        facts=_facts(code),
        status=filled("law_status.h", __package__, **words),
        structs=[
            (f"{name}_in", code.inputs),
            (f"{name}_out", [*code.outputs, code.flags]),
            (f"{name}_parameters", code.parameters),
        ],
        members=_members(code),
        instance="the memory of the law, parameters that may be changed between steps, and room for the work",
        entries=filled("law_entries.h", __package__, **words),
        sources={f"{name}.c": filled("law.c", __package__, **words), f"{name}_law.c": functions[f"{name}_law.c"]},
        given=given,
        expected=expected,
        statuses=statuses,
        ends=np.cumsum([x.count for x in code.outputs]).tolist(),
        tolerance=_TOLERANCE[code.precision],
        options=(code.sample_time, code.precision, sorted(controller.gains), bool(code.integrators)),
        wide=code.wide,
        extra_headers={f"{name}_law.h": functions[f"{name}_law.h"]},
        calls=("step", "start"),
    )


def _facts(code: LawCode) -> Facts:
    c, elastic = code.controller, code.controller.elastic
    sizes = _room(code)
    copied = sum(x.count for x in code.inputs) + len(code.differences) if code.wide else 0
    copied += len(code.measured.low) if code.measured else 0
    numbers = 2 * max(1, c.memory) + sum(x.count for x in code.parameters) + sizes["w"] + copied
    said = "none" if code.limit is None else ", ".join(f"{x:g}" for x in code.limit)
    more = {"Joints": ", ".join(elastic.links.velocity_names), "Motors": ", ".join(elastic.motor_names)}
    return Facts(
        title=code.title,
        sample_time=code.sample_time,
        numbers=numbers,
        integers=sizes["iw"] + 1 + (2 if code.measured else 0),
        pointers=sizes["arg"] + sizes["res"],
        more={**more, "Limit of torque": said},
    )


def _room(code: LawCode) -> dict[str, int]:
    functions = [code.law, *([code.first] if code.first else [])]
    return {k: max(1, *(getattr(f, f"sz_{k}")() for f in functions)) for k in ("arg", "res", "iw", "w")}


def _members(code: LawCode) -> str:
    name, sizes, memory = code.name, _room(code), max(1, code.controller.memory)
    copied = [f"    {name}_real {x.name}[{x.count}];" for x in code.inputs] if code.wide else []
    copied += [f"    {name}_real differences[{len(code.differences)}];"] if code.differences else []
    return "\n".join(
        [
            f"    {name}_real memory[{memory}];" + ("" if code.controller.memory else " /* this law has none */"),
            f"    {name}_real memory_next[{memory}];",
            f"    {name}_parameters parameters;",
            *copied,
            f"    {name}_real w[{sizes['w']}];",
            f"    const {name}_real *arg[{sizes['arg']}];",
            f"    {name}_real *res[{sizes['res']}];",
            f"    {name}_int iw[{sizes['iw']}];",
            "    int started;",
            *measured_members(code),
        ]
    )


def sizes(f: ca.Function, which: str, apart: Sequence[str]) -> dict[str, int]:
    """{port: size} of the inputs or outputs of a law, but for some."""
    names = f.name_in() if which == "in" else f.name_out()
    size = f.size1_in if which == "in" else f.size1_out
    return {n: size(n) for n in names if n not in apart}
