"""Scenes that come with the package, for arms of the size of a Panda that stands at the origin, x ahead."""

from __future__ import annotations

from pathlib import Path

from ..validation import one_of
from .scene import Scene

_FOLDER = Path(__file__).parent
_NAMES = ("table", "shelf")


def examples() -> tuple[str, ...]:
    """Names that od.scene.example takes."""
    return _NAMES


def example(name: str) -> Scene:
    """An embedded scene of the world: "table", things on a table top at z = 0; "shelf", three boards with sides and a
    back at x from 0.45 to 0.8 m. Scene.of(robot).join(od.scene.example("shelf")) adds it to a robot's shapes."""
    return Scene.read(_FOLDER / f"example_{one_of('example of a scene', name, _NAMES)}.yaml")
