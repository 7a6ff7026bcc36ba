"""MJCF documents without trust: includes and files of meshes stay in the folder, and what moves nothing is left away.

MuJoCo compiles what is left, with defaults, angles, ranges and inertias of shapes; it opens no file by itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from ..errors import ModelError
from ..files import read_bytes
from .xml_read import folder_of, read_xml

MAX_INCLUDES, MAX_DEPTH = 200, 10
MAX_ELEMENTS = 10_000  # with all includes, and with the copies that <replicate> makes
MAX_ALL_BYTES = 50_000_000  # of all included files
MAX_NESTED = 300  # elements in each other, with includes
MAX_MESHES, MAX_MESH_BYTES, MAX_ALL_MESH_BYTES = 2000, 100_000_000, 1_000_000_000
MAX_MADE = 200_000  # vertices of meshes that MuJoCo makes itself
_IDLE = ("visual", "statistic", "sensor", "keyframe", "custom", "extension", "deformable", "size")  # sections
_UNSEEN = ("texture", "material", "skin", "hfield", "light", "camera", "plugin", "flexcomp", "composite")
_FOREIGN = ("model", "attach")
_LOOKS = ("material", "rgba", "texcoord", "user", "nsample", "delay", "interp")  # the last four take memory alone
_ROUND = ("hemisphere", "supersphere", "supertorus")  # meshes of a resolution in both directions
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
    _include(file, root, file.folder, _Count(), 0)
    _bound(file)
    _reduce(file)
    _meshes(file)
    return file


@dataclass
class _Count:
    """Of what has been read so far."""

    includes: int = 0
    elements: int = 0
    bytes: int = 0


def _include(file: MjcfFile, root: Any, folder: str | None, count: _Count, depth: int) -> None:
    """Put included documents in the places of their <include>."""
    elements = list(root.iter())
    count.elements += len(elements)
    if count.elements > MAX_ELEMENTS:
        raise ModelError(file.source, [f"with its includes it has more than {MAX_ELEMENTS} elements"])
    spaced = next((e.tag for e in elements if "{" in e.tag), None)
    if spaced is not None:  # MuJoCo knows no namespaces, and would take such an <include> for its own
        raise ModelError(file.source, [f"element {spaced!r} is in an XML namespace; MJCF has none"])
    for element in [e for e in elements if e.tag == "include"]:
        count.includes += 1
        name = element.get("file", "")
        if count.includes > MAX_INCLUDES or depth >= MAX_DEPTH:
            raise ModelError(file.source, [f"more than {MAX_INCLUDES} includes, or {MAX_DEPTH} in each other"])
        path = _inside(file, folder, name, f"<include file={name!r}>")
        count.bytes += path.stat().st_size
        if count.bytes > MAX_ALL_BYTES:
            raise ModelError(file.source, [f"its includes are larger than {MAX_ALL_BYTES / 1e6:g} MB together"])
        _, _, inner, _ = read_xml(path, "MJCF")
        _include(file, inner, folder, count, depth + 1)
        if element.getparent() is None:
            raise ModelError(file.source, [f"<include file={name!r}> is the whole document"])
        for child in list(inner):
            element.addprevious(child)
        element.getparent().remove(element)


def _bound(file: MjcfFile) -> None:
    """Raise ModelError where <replicate> or meshes that MuJoCo makes are too many."""
    inside: dict[Any, tuple[int, int]] = {None: (1, 0)}  # copies of what is in an element, and its depth
    total, made = 0, 0.0
    for e in file.root.iter():
        copies, depth = inside[e.getparent()]
        total += copies
        inside[e] = copies * (_count_of(file, e) if e.tag == "replicate" else 1), depth + 1
        if depth > MAX_NESTED:
            raise ModelError(file.source, [f"with its includes it has more than {MAX_NESTED} elements in each other"])
        if e.tag == "mesh" and e.get("builtin"):
            made += _vertices(e)
        if total > MAX_ELEMENTS:
            raise ModelError(file.source, [f"<replicate> would make more than {MAX_ELEMENTS} elements"])
    if not made <= MAX_MADE:
        raise ModelError(file.source, [f"meshes with builtin= would have more than {MAX_MADE} vertices"])


def _count_of(file: MjcfFile, e: Any) -> int:
    written = e.get("count", "")
    try:
        return max(int(written), 1)
    except ValueError:
        raise ModelError(file.source, [f"<replicate count={written[:40]!r}>: no whole number"]) from None


def _vertices(e: Any) -> float:
    """How many vertices, about, a mesh has that MuJoCo makes."""
    sizes = [max(abs(x), 1.0) for x in _numbers(e.get("params"))[:3]]
    of = sizes[:2] if e.get("builtin") in ("wedge", "plate") else sizes
    first = sizes[0] if sizes else 1.0
    return {**dict.fromkeys(_ROUND, 4 * first**2), "sphere": 4.0 ** min(first, 20), "cone": first}.get(
        e.get("builtin"), float(np.prod(of))
    )


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
        if e.tag in _FOREIGN:
            told = f"<{e.tag}> takes bodies from another document, which is not followed; put them into this file"
            raise ModelError(file.source, [f"{told}, as MuJoCo's mj_saveLastXML does"])
        named = e.tag == "mesh" and e.getparent().tag == "asset"
        for name in list(e.attrib):
            if name in _LOOKS or name == "content_type" or (name.startswith("file") and not (named and name == "file")):
                del e.attrib[name]
    for geom in [e for e in root.iter("geom") if e.get("type") == "hfield"]:
        geom.getparent().remove(geom)
    for e in list(root.iter("lengthrange")):  # found by simulations, as long as the file wishes
        e.getparent().remove(e)
    etree.SubElement(etree.SubElement(root, "compiler"), "lengthrange", mode="none")


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
    left = MAX_ALL_MESH_BYTES
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
            data = read_bytes(path, min(MAX_MESH_BYTES, left))
            left -= len(data)
        except (ModelError, OSError) as error:
            _without(file, e, name, error)
            continue
        own = f"mesh{k}{ending.lower()}"
        file.assets[own] = data
        e.set("file", own)
        file.files[name] = (place, _scale(e.get("scale")) if e.get("scale") else default)


def _numbers(text: str | None) -> list[float]:
    try:
        return [float(x) for x in (text or "").split()]
    except ValueError:
        return []


def _scale(text: str | None) -> tuple[float, ...]:
    scale = tuple(_numbers(text))
    return scale if len(scale) == 3 else (1.0, 1.0, 1.0)


def _without(file: MjcfFile, mesh: Any, name: str, error: ModelError | OSError) -> None:
    """Leave a mesh away that cannot be read; ModelError where a body has its inertia from it."""
    mesh.getparent().remove(mesh)
    always = any(e.get("inertiafromgeom") == "true" for e in file.root.iter("compiler"))
    for geom in [e for e in file.root.iter("geom") if e.get("mesh") == name]:
        body = geom.getparent()
        while body.tag in ("frame", "replicate"):
            body = body.getparent()
        if body.tag == "body" and (always or not _has_inertial(body)):
            raise error if isinstance(error, ModelError) else ModelError(file.source, [f"mesh {name!r}: {error}"])
        geom.getparent().remove(geom)
    told = error.problems[0] if isinstance(error, ModelError) else str(error.strerror)
    told = told if told.startswith("mesh") else f"mesh {name!r}: {told}"
    file.notes.append(f"{told}; what is drawn by it is left out")


def _has_inertial(body: Any) -> bool:
    """Whether a body has one, by itself or in frames of its own."""
    return any(e.tag == "inertial" or (e.tag in ("frame", "replicate") and _has_inertial(e)) for e in body)
