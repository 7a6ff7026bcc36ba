"""Meshes of shapes: where their files are, the points in them, and their triangles.

Nothing in a file is trusted: only regular files of bounded size are read, a path of a package does not leave it, and no
other file that a mesh names is opened.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from ..errors import FileError, ModelError
from ..files import read_bytes
from ..model.collision import Collision
from ..types import Array, Numbers, StrPath

MAX_BYTES = 100_000_000
MAX_POINTS = 2_000_000
MAX_SIZE = 1e4  # m
ENDINGS = ".stl", ".obj", ".ply", ".off", ".dae"
_ABOVE = 12  # folders above the robot's file in which packages are looked for


def points_of(mesh: Collision, folder: str | None, packages: Mapping[str, StrPath]) -> Array:
    """Points (n, 3) [m] of a mesh in the shape's frame, each once. Raises ModelError that says what to do."""
    path = found_path(mesh.mesh, folder, packages)
    points, _ = _parsed(path, scaled_by=mesh.sizes)
    return np.unique(points, axis=0)


def triangles_of(mesh: Collision, folder: str | None, packages: Mapping[str, StrPath]) -> tuple[Array, Array]:
    """Points (n, 3) [m] of a mesh in the shape's frame, each once, and triangles (m, 3) of their numbers, in the order
    of the file. Raises ModelError that says what to do."""
    path = found_path(mesh.mesh, folder, packages)
    points, faces = _parsed(path, scaled_by=mesh.sizes)
    if not len(faces) or faces.min() < 0 or faces.max() >= len(points):
        what = "no triangles" if not len(faces) else "triangles of points that it has not"
        raise FileError(path, [f"the mesh has {what}"])
    points, where = np.unique(points, axis=0, return_inverse=True)
    return points, where.reshape(-1)[faces]


def _parsed(path: Path, scaled_by: Numbers) -> tuple[Array, Array]:
    """(points (n, 3) [m], triangles (m, 3)) of a file, scaled."""
    if path.suffix.lower() not in ENDINGS:
        raise ModelError(path, [f"meshes end in {', '.join(ENDINGS)}"])
    try:
        data = read_bytes(path, MAX_BYTES)
    except OSError as error:
        raise ModelError(path, [error.strerror or str(error)]) from None
    points, faces = _as_in_file(path, data)
    points = points * np.array(scaled_by)
    if not len(points) or not np.abs(points).max() < MAX_SIZE:  # not so for NaN
        what = "no points" if not len(points) else f"points farther than {MAX_SIZE:g} m or that are no numbers"
        raise FileError(path, [f"the mesh has {what}"])
    return points, faces


def _as_in_file(path: Path, data: bytes) -> tuple[Array, Array]:
    """Points (n, 3) and triangles (m, 3) as in the file."""
    try:
        import scipy.spatial  # noqa: F401  # convex hulls need it
        import trimesh
    except ImportError as error:
        how = 'pip install "oc-dyn[meshes]", or give meshes="omit"'
        raise ModelError(
            path, [f"meshes are read by trimesh and scipy, and {error.name} is not installed; {how}"]
        ) from None
    if path.suffix.lower() == ".dae":
        _need_collada(path)
    try:
        read: Any = trimesh.load
        loaded: Any = read(io.BytesIO(data), file_type=path.suffix.lower()[1:], process=False, skip_materials=True)
        meshes = loaded.dump() if hasattr(loaded, "dump") else [loaded]
        points = [np.asarray(m.vertices, float).reshape(-1, 3) for m in meshes]
        faces = [np.asarray(getattr(m, "faces", ()), int).reshape(-1, 3) for m in meshes]  # clouds of points have none
    except Exception as error:  # of each format its own
        raise FileError(path, [f"not a mesh that can be read: {type(error).__name__}: {error}"[:300]]) from None
    first = np.cumsum([0, *(len(x) for x in points)])
    if first[-1] > MAX_POINTS:
        raise FileError(path, [f"the mesh has {first[-1]} points; {MAX_POINTS} are read at most"])
    shifted = [x + k for x, k in zip(faces, first, strict=False)]
    return np.vstack([np.zeros((0, 3)), *points]), np.vstack([np.zeros((0, 3), int), *shifted])


def _need_collada(path: Path) -> None:
    try:
        import collada  # noqa: F401
    except ImportError:
        raise ModelError(path, ["files of COLLADA are read by pycollada: pip install pycollada"]) from None


# -- paths ----------------------------------------------------------------------------------------------------------


def found_path(text: str, folder: str | None, packages: Mapping[str, StrPath]) -> Path:
    """The file that a path, file://, package:// or model:// address of a description means."""
    scheme, _, rest = text.partition("://")
    if not rest and "://" not in text:
        return _relative(text, folder)
    if scheme == "file":
        return Path(unquote(rest))
    if scheme not in ("package", "model"):
        raise ModelError(text, ["only files are read: a path, or an address that begins with package:// or file://"])
    name, _, inside = rest.partition("/")
    inside = os.path.normpath(inside)
    if not name or name in (".", "..") or os.path.isabs(inside) or inside.split(os.sep)[0] in ("..", "", "."):
        raise ModelError(text, ["names no file within a package"])
    places = [Path(packages[name])] if name in packages else _packages(name, folder)
    for place in places:
        if _exists(place / inside):
            return place / inside
    looked = f"; looked for in {', '.join(map(str, places[:3]))}" if places else ""
    how = f'give packages={{"{name}": folder}}, or meshes="omit"'
    raise ModelError(text, [f"the package {name!r}, or the file in it, is not found{looked}; {how}"])


def _relative(text: str, folder: str | None) -> Path:
    path = Path(text)
    if path.is_absolute():
        return path
    if folder is None:
        raise ModelError(text, ["a relative path in a robot that was not read from a file; load it from its file"])
    return Path(folder) / path


def _packages(name: str, folder: str | None) -> list[Path]:
    """Folders that may be the package: above the robot's file, beside those, and on $ROS_PACKAGE_PATH."""
    out = []
    if folder is not None:
        for place in (Path(folder), *Path(folder).parents[:_ABOVE]):
            out += [place] if place.name == name else []
            out.append(place / name)
    for entry in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        out += [Path(entry)] if Path(entry).name == name else []
        out.append(Path(entry) / name)
    return [x for x in dict.fromkeys(out) if _exists(x)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False
