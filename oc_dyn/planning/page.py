"""plan.report: one HTML page of a motion, with limits, figures and the robot that moves; nothing is fetched."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..drawing import styled
from ..files import write_text
from ..text import terminal
from ..types import Figure, StrPath
from .figures import phase_plane, tool_path
from .plot import plot
from .quantities import BY_NAME
from .report import Report, ReportRow
from .viewer.view import view

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1e21; --paper: #fff; --line: #d3d7db; --over: #b3261e; --bar: #0072B2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e8; --paper: #15181b; --line: #3c4146; --over: #ff8a80; --bar: #4A83F6; }
}
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } .facts td { white-space: normal; }
.over { color: var(--over); font-weight: 600; }
meter { width: 6rem; } figure { margin: 0; } figure svg { width: 100%; height: auto; }
figure .dark { display: none; }
@media (prefers-color-scheme: dark) { figure .dark { display: block; } figure .light { display: none; } }
iframe { width: 100%; height: 34rem; border: 1px solid var(--line); }
@media print { iframe { display: none; } }
"""


def page(motion: Any, path: StrPath, scene: Any = None, frame: str | None = None, title: str | None = None) -> Path:
    """Write the page of a motion; see Motion.report."""
    asked = 0.0
    if scene is None and motion.scene is not None:
        scene, asked = motion.scene, motion.info.get("clearance", {}).get("asked", 0.0)
    told = motion.check(scene=scene, clearance=asked)
    name = motion.robot_name or "motion"
    title = f"Motion of {name}" if title is None else title
    drawn: list[tuple[str, Callable[[bool], Figure]]] = [
        ("Over time, as shares of the limits", lambda dark: plot(motion, None, True, scene, dark)),
        ("Phase plane", lambda dark: phase_plane(motion, None, dark)),
    ]
    if motion.robot is not None:
        drawn.append(("Way of the tool", lambda dark: tool_path(motion, None, frame, dark)))
    parts = [f"<h1>{_text(title)}</h1>", _facts(motion), "<h2>Limits</h2>", _table(told, motion), _verdict(told)]
    if motion.robot is not None:
        shown = view(motion.robot, motion, scene=scene, title=title).html
        parts.append(f'<h2>The motion</h2>\n<iframe title="robot" srcdoc="{html.escape(shown)}"></iframe>')
    for heading, draw in drawn:
        both = "".join(f'<div class="{k}">{_svg(draw, k == "dark")}</div>' for k in ("light", "dark"))
        parts.append(f"<h2>{_text(heading)}</h2>\n<figure>{both}</figure>")
    parts.append(f"<p><small>oc_dyn {__version__}</small></p>")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(parts)
    text = (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{_text(title)}</title>\n<style>{_STYLE}</style></head>\n'
    )
    path = Path(path)
    write_text(path, f"{text}<body>\n{body}\n</body></html>\n")
    return path


def _text(x: object) -> str:
    return html.escape(terminal(str(x)))


def _svg(draw: Callable[[bool], Figure], dark: bool) -> str:
    """A figure as an <svg> element: texts stay texts, and no date tells files apart."""
    from matplotlib import rc_context

    out = io.StringIO()
    figure = draw(dark)
    with styled(dark), rc_context({"svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _facts(motion: Any) -> str:
    rows = [("duration", f"{motion.duration:.6g} s"), ("joints", ", ".join(map(str, motion.joints)))]
    rows.append(("continuously differentiable", f"{motion.continuity} times"))
    if len(motion.t) > 1:
        rows.append(("pieces", str(len(motion.t) - 1)))
    for key in ("objective", "solver", "status", "iterations", "seconds"):
        if key in motion.info:
            value = motion.info[key]
            rows.append((key, f"{value:.4g}" if isinstance(value, float) else str(value)))
    cells = "".join(f'<tr><td>{_text(k)}</td><td class="text">{_text(x)}</td></tr>' for k, x in rows)
    return f'<div class="wide"><table class="facts">{cells}</table></div>'


def _table(report: Report, motion: Any) -> str:
    units = dict(zip(motion.joints, motion.units or (), strict=False))
    head = (
        '<tr><th>quantity</th><th>of limit</th><th></th><th class="text">joint</th><th>time [s]</th><th>value</th>'
        '<th>limit</th><th class="text">unit</th></tr>'
    )
    rows = "".join(_row(r, units.get(r.joint, "rad")) for r in report.rows)
    return f'<div class="wide"><table>{head}{rows}</table></div>'


def _row(r: ReportRow, unit: str) -> str:
    limited, over = np.isfinite(r.limit), r.share > 1.005
    share = f"{100 * r.share:.2f} %" if limited and np.isfinite(r.share) else "infinite" if limited else "no limit"
    bar = f'<meter min="0" max="1" value="{min(r.share, 1.0):.4f}"></meter>' if limited else ""
    q = BY_NAME[r.quantity]
    cells = [
        f"<td>{_text(f'{q.title} {r.quantity}')}</td>",
        f'<td class="over">{share}</td>' if over else f"<td>{share}</td>",
        f"<td>{bar}</td>", f'<td class="text">{_text(r.joint)}</td>',
        f"<td>{r.time:.4f}</td>", f"<td>{r.value:.6g}</td>",
        f"<td>{r.limit:.6g}</td>" if limited else "<td>-</td>", f'<td class="text">{_text(q.unit_of(unit))}</td>',
    ]  # fmt: skip
    return f"<tr>{''.join(cells)}</tr>"


def _verdict(report: Report) -> str:
    """The lines of the printed report below its table."""
    lines = str(report).splitlines()[1 + len(report.rows) :]
    return "".join(f"<p>{_text(line)}</p>" for line in lines)
