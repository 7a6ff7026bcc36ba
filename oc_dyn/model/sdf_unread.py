"""What of an SDF file changes how a robot moves and is not read: sentences for the robot's report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TRUE = ("true", "1")
_OF_FLUIDS = re.compile("hydrodynamics|buoyancy|lift.?drag", re.IGNORECASE)


def unread_of_link(what: str, e: Any) -> Iterator[str]:
    """Of a <link>."""
    inertial = e.find("inertial")
    if inertial is not None and inertial.get("auto", "false") in _TRUE:
        yield f"{what}: its inertia from collision shapes (auto) is not computed; what <inertial> says counts"
    if _text(e, "gravity", "true") not in _TRUE:
        yield f"{what}: that gravity does not act on it is not read"
    if _text(e, "kinematic", "false") in _TRUE:
        yield f"{what}: that it is kinematic is not read"
    decay = e.find("velocity_decay")
    if decay is not None and any(_text(decay, x, "0").strip("0.") for x in ("linear", "angular")):
        yield f"{what}: its velocity_decay is not read"


def unread_of_joint(what: str, e: Any) -> Iterator[str]:
    """Of a <joint>."""
    for tag in ("axis", "axis2"):
        if e.find(f"{tag}/mimic") is not None:
            yield f"{what}: that its {tag} is to mimic another joint is not read; it moves by itself"


def unread_of_model(e: Any) -> Iterator[str]:
    """Of a <model>: what holds it, and plugins of fluids."""
    if _text(e, "static", "false") in _TRUE:
        yield "that the model is static is not read"
    for plugin in e.findall("plugin"):
        name = plugin.get("name") or plugin.get("filename") or ""
        if _OF_FLUIDS.search(f"{plugin.get('filename')} {name}"):
            yield f"plugin {name[:100]!r} is not read; added_inertia and drag of RobotBuilder.add_link are of fluids"


def _text(e: Any, tag: str, default: str) -> str:
    found = e.find(tag)
    return default if found is None else (found.text or default).strip().lower()
