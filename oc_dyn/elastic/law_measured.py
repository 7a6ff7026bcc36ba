"""The words of a law in C that look at its measurements."""

from __future__ import annotations

from ..codegen.product import c_numbers
from .law_code import LawCode, measured_places

_MOST_SAMPLES = 30000  # counted since the last good one, an int of any machine


def measured_members(code: LawCode) -> list[str]:
    """Members of the instance."""
    if code.measured is None:
        return []
    return [
        f"    {_real(code)} last[{len(code.measured.low)}]; /* measurements of the last good sample */",
        "    int known;",
        "    int samples; /* since then */",
    ]


def measured_words(code: LawCode) -> dict[str, str]:
    """{placeholder: text} of law.c.in."""
    if code.measured is None:
        return dict.fromkeys(("measured", "count_sample", "check_measured", "forget"), "")
    limits, name, real = code.measured, code.name, _real(code)
    places, n = measured_places(code), len(code.measured.low)
    tables = {"lowest": limits.low, "highest": limits.high, "each_sample": limits.step, "grain": limits.grain}
    lines = [f"static const short places[{n}] = {{{', '.join(map(str, places))}}};"]
    lines += [f"static const {real} {what}[{n}] = {{{c_numbers(x, real)}}};" for what, x in tables.items()]
    apart = ""
    if len(limits.pairs):
        pairs = ", ".join(f"{{{places[a]}, {places[b]}}}" for a, b in limits.pairs)
        lines.append(f"static const short joined[{len(limits.pairs)}][2] = {{{pairs}}};")
        lines.append(f"static const {real} deflected[{len(limits.pairs)}] = {{{c_numbers(limits.deflection, real)}}};")
        apart = f"""
    for (i = 0; i < {len(limits.pairs)}; ++i) {{
        const {real} z = x[joined[i][0]] - x[joined[i][1]];
        if (z > deflected[i] || z < -deflected[i]) return 1;
    }}"""
    text = "\n".join(lines)
    return {
        "measured": f"""
/* Measured numbers: their places in the input, bounds, steps from one sample to the next; deflections of springs. */
{text}

/* Whether a measured number cannot be; else all are kept for the next sample. */
static int is_wild({name}_t *self, const {name}_in *in) {{
    const {real} *x = (const {real} *)in;
    int i;
    for (i = 0; i < {n}; ++i) {{
        const {real} y = x[places[i]], moved = y - self->last[i];
        const {real} most = each_sample[i] * ({real})self->samples + grain[i];
        if (y < lowest[i] || y > highest[i]) return 1;
        if (self->known && (moved > most || moved < -most)) return 1;
    }}{apart}
    for (i = 0; i < {n}; ++i) self->last[i] = x[places[i]];
    self->known = 1;
    self->samples = 0;
    return 0;
}}
""",
        "count_sample": f"    if (self->samples < {_MOST_SAMPLES}) ++self->samples;\n",
        "check_measured": f"    if (is_wild(self, in)) return {name.upper()}_BAD_MEASUREMENT;\n",
        "forget": "    self->known = 0;\n    self->samples = 0;\n",
    }


def _real(code: LawCode) -> str:
    return "double" if code.wide else f"{code.name}_real"
