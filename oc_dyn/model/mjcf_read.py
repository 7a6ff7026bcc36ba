"""MJCF documents without trust: includes and files of meshes stay in the folder, and what moves nothing is left away.

MuJoCo compiles what is left, with defaults, angles, ranges and inertias of shapes; it opens no file by itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree

from ..errors import ModelError
from ..files import read_bytes
from .xml_read import folder_of, read_xml

MAX_INCLUDES, MAX_DEPTH = 200, 10
MAX_MESHES, MAX_MESH_BYTES = 2000, 100_000_000
_IDLE = ("visual", "statistic", "sensor", "keyframe", "custom", "extension", "deformable")  # sections
_UNSEEN = ("texture", "material", "skin", "hfield", "light", "camera", "plugin", "flexcomp", "composite")
_LOOKS = ("material", "rgba", "texcoord")
_MESHES = (".stl", ".obj", ".msh", ".ply")


@dataclass
class MjcfFile:
    """source: for messages. stem: a name. root: the document with its includes in place. assets: {name: bytes} of
    meshes; files: {mesh: (path, scale)} as written. folder: of the file, None of a text. notes: what was left away."""

    source: str
    stem: str
    root: Any
    folder: str | None
    assets: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The document for MuJoCo."""
        return etree.tostring(self.root, encoding="unicode")


def read_mjcf(path_or_xml: str | bytes | os.PathLike[str]) -> MjcfFile:
    """See MjcfFile. Raises FileNotFoundError, ModelError."""
    source, stem, root, _ = read_xml(path_or_xml, "MJCF")
    if root.tag != "mujoco":
        raise ModelError(source, [f"the document is a <{root.tag}>; an MJCF file holds a <mujoco> element"])
    file = MjcfFile(source, stem, root, folder_of(path_or_xml))
    _include(file, root, file.folder, [0], 0)
    _reduce(file)
    _meshes(file)
    return file


def _include(file: MjcfFile, root: Any, folder: str | None, count: list[int], depth: int) -> None:
    """Put included documents in the places of their <include>."""
    for element in list(root.iter("include")):
        count[0] += 1
        name = element.get("file", "")
        if count[0] > MAX_INCLUDES or depth >= MAX_DEPTH:
            raise ModelError(file.source, [f"more than {MAX_INCLUDES} includes, or {MAX_DEPTH} in each other"])
        path = _inside(file, folder, name, f"<include file={name!r}>")
        _, _, inner, _ = read_xml(path, "MJCF")
        _include(file, inner, folder, count, depth + 1)
        parent, place = element.getparent(), element.getparent().index(element)
        parent.remove(element)
        for k, child in enumerate(list(inner)):
            parent.insert(place + k, child)


def _inside(file: MjcfFile, folder: str | None, name: str, what: str) -> Path:
    """Path of a file that the document names, in the folder of the document or below."""
    if folder is None:
        raise ModelError(file.source, [f"{what}: a text has no folder to look in; give the path of a file"])
    base = Path(folder).resolve()
    try:
        path = (base / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(file.source, [f"{what}: {error}"]) from None
    if not name or not path.is_relative_to(base):
        raise ModelError(file.source, [f"{what} leads out of the folder of the file, which is not followed"])
    if not path.is_file():
        raise ModelError(file.source, [f"{what}: there is no such file beside it"])
    return path


def _reduce(file: MjcfFile) -> None:
    root = file.root
    for section in [e for e in root if e.tag in _IDLE]:
        root.remove(section)
    for e in [e for e in root.iter() if e.tag in _UNSEEN]:
        if e.tag in ("flexcomp", "composite", "plugin"):
            file.notes.append(f"<{e.tag}> is not read")
        if e.getparent() is not None:
            e.getparent().remove(e)
    for e in root.iter():
        for name in _LOOKS:
            e.attrib.pop(name, None)
    for geom in [e for e in root.iter("geom") if e.get("type") == "hfield"]:
        geom.getparent().remove(geom)


def _meshes(file: MjcfFile) -> None:
    """Read the files of meshes; geoms of those that are not there go, where they count for nothing."""
    compiler = {k: x for e in file.root.iter("compiler") for k, x in e.attrib.items()}
    below = compiler.get("meshdir") or compiler.get("assetdir") or ""
    strip = compiler.get("strippath") == "true"
    for e in file.root.iter("compiler"):
        for name in ("meshdir", "assetdir", "texturedir", "strippath"):
            e.attrib.pop(name, None)
    default = _scale(next((e.get("scale") for e in file.root.iter("mesh") if e.getparent().tag == "default"), None))
    found = [e for e in file.root.iter("mesh") if e.getparent().tag == "asset" and e.get("file")]
    if len(found) > MAX_MESHES:
        raise ModelError(file.source, [f"it names {len(found)} meshes; {MAX_MESHES} at most are read"])
    for k, e in enumerate(found):
        written = e.get("file")
        stem, ending = os.path.splitext(os.path.basename(written.replace("\\", "/")))
        name = e.get("name") or stem
        e.set("name", name)
        place = os.path.join(below, os.path.basename(written) if strip else written)
        try:
            path = _inside(file, file.folder, place, f"mesh {name!r}")
            if ending.lower() not in _MESHES:
                known = ", ".join(_MESHES)
                raise ModelError(file.source, [f"mesh {name!r}: its file ends in {ending!r}; {known} are read"])
            data = read_bytes(path, MAX_MESH_BYTES)
        except (ModelError, OSError) as error:
            _without(file, e, name, error)
            continue
        own = f"mesh{k}{ending.lower()}"
        file.assets[own] = data
        e.set("file", own)
        file.files[name] = (place, _scale(e.get("scale")) if e.get("scale") else default)


def _scale(text: str | None) -> tuple[float, ...]:
    try:
        scale = tuple(float(x) for x in (text or "1 1 1").split())
    except ValueError:
        return (1.0, 1.0, 1.0)
    return scale if len(scale) == 3 else (1.0, 1.0, 1.0)


def _without(file: MjcfFile, mesh: Any, name: str, error: ModelError | OSError) -> None:
    """Leave a mesh away that cannot be read; ModelError where a body has its inertia from it."""
    mesh.getparent().remove(mesh)
    for geom in [e for e in file.root.iter("geom") if e.get("mesh") == name]:
        body = geom.getparent()
        if body.tag == "body" and body.find("inertial") is None:
            raise error if isinstance(error, ModelError) else ModelError(file.source, [f"mesh {name!r}: {error}"])
        body.remove(geom)
    told = error.problems[0] if isinstance(error, ModelError) else f"mesh {name!r}: {error.strerror}"
    file.notes.append(f"{told}; what is drawn by it is left out")
