"""Blocks of code named `math` as MathML, which browsers draw themselves: no script, no font, nothing fetched."""

import re

from latex2mathml.converter import convert

_ALIGNED = re.compile(r"^\s*\\begin\{aligned\}(.*)\\end\{aligned\}\s*$", re.DOTALL)


def mathml(source, *_args, **_kwargs):
    r"""A formula, or the lines of one that is `aligned`: lines end with \\, cells with &."""
    aligned = _ALIGNED.match(source)
    lines = aligned.group(1).split("\\\\") if aligned else [source]
    rows = "".join(_row(x.split("&") if aligned else [x]) for x in lines if x.strip())
    return f'<div class="formula"><math display="block"><mtable>{rows}</mtable></math></div>'


def _row(cells):
    sides = ["left"] if len(cells) == 1 else ["right", *["left"] * (len(cells) - 1)]
    return "<mtr>" + "".join(_cell(x, side) for x, side in zip(cells, sides, strict=True)) + "</mtr>"


def _cell(text, side):
    text = re.sub("'+", lambda m: "^{" + r"\prime" * len(m.group()) + "}", text.strip())
    inner = re.sub(r"^<math[^>]*>|</math>$", "", convert(text, display="block")) if text else ""
    return f'<mtd style="text-align: {side}; padding: 0.3em 0.15em"><mstyle displaystyle="true">{inner}</mstyle></mtd>'
