"""What all figures have in common: colours that colour-blind readers tell apart, light and dark, text without TeX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Okabe and Ito, "Color Universal Design" (2008), without black and the yellow that white swallows; grey ends them
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
ON_DARK = ("#4A83F6", "#F1473C", "#45BE72", "#C16799", "#ECBE3C", "#A6D1F5", "#C5D4C6")  # about the same hues, lighter
LINES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "D", "^")
_INK, _PAPER = {False: "#000000", True: "#E4E6E8"}, {False: "#FFFFFF", True: "#15181B"}


@contextmanager
def styled(dark: bool = False) -> Iterator[None]:
    """Within it figures are made in the one style, on white or on dark; @styled() makes a function of it.

    Colours that nobody names, and C0, C1, ... are those of COLORS, more lines are dashed. Text is not read by TeX,
    whatever matplotlib's settings say: names of joints are not written for it, and an underscore would already end it.
    """
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    cycle = cycler(linestyle=list(LINES)) * cycler(color=list(ON_DARK if dark else COLORS))
    settings: Any = {"text.usetex": False, "svg.hashsalt": "oc_dyn", "axes.prop_cycle": cycle}
    if dark:
        ink = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
        settings |= dict.fromkeys(ink, _INK[True])
        settings |= dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), _PAPER[True])
        settings |= {"savefig.facecolor": "auto", "grid.color": "#6A6E72", "legend.edgecolor": "#6A6E72"}
    with rc_context(settings):
        yield


def ink() -> Any:
    """Colour of axes and limits in the style that is in force."""
    from matplotlib import rcParams

    return rcParams["axes.edgecolor"]


def color(i: int) -> str:
    """The i-th colour, from 0 on, on the background of the style that is in force."""
    from matplotlib import rcParams

    return (ON_DARK if rcParams["axes.facecolor"] == _PAPER[True] else COLORS)[i % len(COLORS)]


def mark(i: int) -> str:
    """The marker of the i-th curve, another one where colours begin again."""
    return MARKS[i // len(COLORS) % len(MARKS)]


def look(i: int, n: int, limited: bool = True) -> dict[str, Any]:
    """Colour and line of curve i of n; paler or dashed where it is not `limited`. Up to seven differ in colour, up to
    28 in the pair of colour and line; of more, hues go round, with light and dark and lines in turns."""
    if n <= len(COLORS):
        return {"color": color(i), "linestyle": "-" if limited else "--"}
    strength = {"alpha": 1.0 if limited else 0.45}
    if n <= len(COLORS) * len(LINES):
        return {"color": color(i), "linestyle": LINES[i // len(COLORS)], **strength}
    from colorsys import hls_to_rgb

    # neighbours differ in lightness, which everybody sees, and in their lines
    hue = hls_to_rgb(0.93 * i / n, (0.32, 0.52, 0.42)[i % 3], 0.85)
    return {"color": hue, "linestyle": LINES[i % 4], **strength}
