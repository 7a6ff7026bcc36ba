"""The words that fill the templates of a law in C: checks of its numbers, limits of torque, memory, start."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen.names import field_name
from ..codegen.product import Field, c_numbers
from ..codegen.product_files import finite_words
from ..codegen.templates import filled
from ..text import c_comment
from ..types import Array
from .law_code import LawCode
from .law_measured import measured_words

_WINDUP = """
 * Torques that the law integrates stay within these limits, too: none runs on while its motor is at its limit."""


def law_words(code: LawCode) -> dict[str, Any]:
    """{placeholder: text} for the templates."""
    c, name, NAME, real = code.controller, code.name, code.name.upper(), code.real
    limit = np.full(code.motors, np.inf) if code.limit is None else code.limit
    safe = [code.safe if x.name == "tau_m" else np.zeros(x.count) for x in code.outputs]
    values = [*(x.ravel(order="F") for x in c.gains.values()), limit, code.safe]
    finite = filled("all_finite.c", **{**finite_words("", real), "all_finite": "all_finite"})
    if code.wide:
        finite += filled("all_finite.c", **{**finite_words("", "double"), "all_finite": "all_finite_in"})
    bad_memory = f"    if (!all_finite(self->memory, sizeof self->memory)) return {NAME}_BAD_MEMORY;\n"
    return {
        "name": name,
        "NAME": NAME,
        "title": c_comment(code.title),
        "sample_time": f"{code.sample_time:.17g}",
        "all_finite": finite,
        "finite_in": "all_finite_in" if code.wide else "all_finite",
        "safe": ", ".join(f"{{{c_numbers(x, real)}}}" for x in [*safe, np.zeros(0)]),
        "defaults": ", ".join(_braces(x, v, real) for x, v in zip(code.parameters, values, strict=True)),
        "limit": c_numbers(limit, real),
        "motors": code.motors,
        "integrators": _integrators(code),
        "windup": _WINDUP if code.integrators else "",
        "wide_check": _wide_check(code),
        "round": _round(code),
        "rounded": "    in_float(self, in);\n" if code.wide else "",
        **measured_words(code),
        "check_memory": bad_memory if c.memory else "",
        "arguments": "\n".join(_arguments(code)),
        "out_reals": sum(x.count for x in code.outputs),
        "moved": _moved(code),
        "start": _start(code),
    }


def _braces(x: Field, values: Array, real: str) -> str:
    """Initializer of a member, with inner braces for its columns."""
    columns = np.reshape(values, (x.columns, x.rows))
    parts = [f"{{{c_numbers(v, real)}}}" for v in columns]
    return parts[0] if x.columns == 1 else f"{{{', '.join(parts)}}}"


def _arguments(code: LawCode) -> list[str]:
    """Lines that set the pointers to arguments and results of the law."""
    own = {"memory": "self->memory", "differences": "self->differences"}
    kind = f"(const {code.name}_real *)"
    own |= {n: f"{kind}self->parameters.{field_name(n)}" for n in code.controller.gains}
    lines = []
    for i, n in enumerate(code.law.name_in()):
        place = own.get(n) or (f"self->{field_name(n)}" if code.wide else f"in->{field_name(n)}")
        lines.append(f"    self->arg[{i}] = {place if code.law.nnz_in(i) else '0'};")
    for i, n in enumerate(code.law.name_out()):
        lines.append(f"    self->res[{i}] = {'self->memory_next' if n == 'memory_next' else f'out->{n}'};")
    return lines


def _wide_check(code: LawCode) -> str:
    if not code.wide:
        return ""
    count = sum(x.count for x in code.inputs)
    return (
        f"    for (i = 0; i < {count}; ++i)\n"
        "        if (((const double *)in)[i] > (double)FLT_MAX || ((const double *)in)[i] < -(double)FLT_MAX)\n"
        f"            return {code.name.upper()}_BAD_INPUT;\n"
    )


def _round(code: LawCode) -> str:
    """A function that takes doubles to floats, differences of them first."""
    if not code.wide:
        return ""
    name, lines, tables = code.name, [], ""
    for x in code.inputs:
        lines.append(f"    for (i = 0; i < {x.count}; ++i) self->{x.name}[i] = ({name}_real)in->{x.name}[i];")
    if code.differences:
        n = len(code.differences)
        pairs = ", ".join(f"{{{a}, {b}}}" for a, b in code.differences)
        tables = f"    static const short pairs[{n}][2] = {{{pairs}}};\n    const double *x = (const double *)in;\n"
        lines.append(
            f"    for (i = 0; i < {n}; ++i) self->differences[i] = ({name}_real)(x[pairs[i][0]] - x[pairs[i][1]]);"
        )
    body = "\n".join(lines)
    return (
        "\n/* Inputs in single precision; what the law subtracts from each other, subtracted before it is rounded. */\n"
        f"static void in_float({name}_t *self, const {name}_in *in) {{\n{tables}    int i;\n{body}\n}}\n"
    )


def _integrators(code: LawCode) -> str:
    """A function that keeps integrated torques within their limits."""
    if not code.integrators:
        return ""
    name, n = code.name, len(code.integrators)
    rows = ", ".join(f"{{{a}, {b}, {m}}}" for a, b, m in code.integrators)
    return f"""
/* Integrated torques, their rates and their motors: none runs on beyond the limit of its motor. */
static void hold_back(const {name}_t *self, {name}_real *memory) {{
    static const short rows[{n}][3] = {{{rows}}};
    int i;
    for (i = 0; i < {n}; ++i) {{
        {name}_real *x = memory + rows[i][0], *rate = memory + rows[i][1];
        {name}_real limit = most[rows[i][2]];
        if (self->parameters.torque_limit[rows[i][2]] < limit) limit = self->parameters.torque_limit[rows[i][2]];
        if (*x >= limit) {{
            *x = limit;
            if (*rate > 0) *rate = 0;
        }}
        if (*x <= -limit) {{
            *x = -limit;
            if (*rate < 0) *rate = 0;
        }}
    }}
}}
"""


def _moved(code: LawCode) -> str:
    """Lines that update the memory."""
    if not code.controller.memory:
        return ""
    held = "    hold_back(self, self->memory_next);\n" if code.integrators else ""
    return (
        "    if (!all_finite(self->memory_next, sizeof self->memory_next)) return "
        f"{code.name.upper()}_BAD_OUTPUT;\n{held}"
        "    memcpy(self->memory, self->memory_next, sizeof self->memory);\n"
    )


def _start(code: LawCode) -> str:
    """Lines that initialize the memory."""
    if code.first is None:
        return ""
    f, NAME = code.first, code.name.upper()
    place = "self" if code.wide else "in"
    return "\n".join(
        [
            *(["    in_float(self, in);"] if code.wide else []),
            *(f"    self->arg[{i}] = {place}->{field_name(f'{n}_ref')};" for i, n in enumerate(f.name_in())),
            "    self->res[0] = self->memory;",
            f"    if ({f.name()}(self->arg, self->res, self->iw, self->w, 0)) status = {NAME}_FAILED;",
            "    if (!status && !all_finite(self->memory, sizeof self->memory)) status = " + f"{NAME}_BAD_OUTPUT;",
            "    if (status) {",
            "        memset(self->memory, 0, sizeof self->memory);",
            "        return status;",
            "    }",
            "",
        ]
    )
