"""A Drawing as the text of an HTML page that plays it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from ...types import Array, Numbers
from .drawing import Drawing, Drawn, Part


def page_text(drawing: Drawing, title: str) -> str:
    """The page; nothing of its data can end the script element."""
    text = json.dumps(_data(drawing, title), allow_nan=False).replace("<", "\\u003c")
    here = Path(__file__).parent
    page, script = ((here / name).read_text(encoding="utf-8") for name in ("page.html", "page.js"))
    before, rest = page.split("/*DATA*/")
    middle, after = rest.split("/*SCRIPT*/")
    return before + text + middle + script + after


def _data(drawing: Drawing, title: str) -> dict[str, Any]:
    """All of it, for JSON."""
    low, high = drawing.low, drawing.high
    middle = (low + high) / 2
    return {
        "title": title,
        "surfaces": [{"points": _packed(p), "faces": _packed(faces, "<u4")} for p, faces in drawing.surfaces],
        "motions": [_motion(x) for x in drawing.motions],
        "middle": middle[:2].round(6).tolist(),
        "height": round(float(middle[2]), 6),
        "floor": round(min(float(low[2]), 0.0), 6),
        "reach": round(drawing.size, 6),
        "radius": round(max(float(np.linalg.norm(high - low)) / 2, 1e-2), 6),
    }


def _motion(x: Drawn) -> dict[str, Any]:
    return {
        "name": x.name,
        "color": x.color,
        "parts": [_part(part) for part in x.parts],
        "slots": x.poses.shape[1],
        "t": _packed(x.t),
        "poses": _packed(_by_columns(x.poses)[..., :3]),
        "shares": [{"name": k, "t": _packed(t), "values": _packed(y)} for k, (t, y) in x.shares.items()],
    }


def _part(x: Part) -> dict[str, Any]:
    out: dict[str, Any] = {"surface": x.surface, "slot": x.slot}
    if x.color is not None:
        out["color"] = x.color
    if x.pose is not None:
        out["pose"] = x.pose.T.ravel().round(6).tolist()
    return out


def _by_columns(poses: Array) -> Array:
    """Matrices (..., 4, 4) turned, as WebGL reads them."""
    return np.swapaxes(poses, -1, -2)


def _packed(values: Numbers, kind: str = "<f4") -> str:
    """Numbers as text, four bytes each, the lowest first."""
    return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode("ascii")
