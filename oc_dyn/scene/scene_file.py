"""Scenes as YAML files; docs/scenes.md is their schema.

Reading gives plain parts, of which Scene makes itself; writing takes them. Numbers are written with all digits, so that
what is read is what was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import yaml

from ..errors import FileError, ShapeError
from ..files import write_text
from ..lie import so3
from ..types import StrPath
from .shapes import KINDS, HalfSpace, Polytope, Shape, Sphere
from .yaml_nodes import Reader, compose

VERSION = 1
MOST = 2000  # shapes
MOST_PAIRS = 100_000
MOST_VERTICES = 10_000
_KINDS = {"half_space" if kind is HalfSpace else name: kind for name, kind in KINDS.items()}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_PLACE = ("link", "xyz", "rpy", "matrix", "pose", "margin")
_TOP = ("scene", "shapes", "left_out", "still", "notes", "touching")
_PORT = "port"


@dataclass
class Parts:
    """What a file says: (name, link or None, shape, matrix (4, 4) or PORT or None, margin) of shapes, and the rest."""

    shapes: list[tuple[str, str | None, Shape, Any, float]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    still: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    touching: list[tuple[str, str]] = field(default_factory=list)


# -- reading --------------------------------------------------------------------------------------------------------


def read_parts(path: StrPath) -> Parts:
    """Parts of a scene file. Raises FileError that lists all that is wrong, with lines and keys; OSError."""
    source, root = compose(path)
    if root is None:
        raise FileError(source, [f"is empty; a scene begins with 'scene: {VERSION}' and has shapes"])
    r, out = Reader(), Parts()
    top = r.mapping(root, "the file", _TOP)
    if top:
        version = r.number(top["scene"], "scene") if "scene" in top else None
        if version != VERSION:
            got = "no version" if "scene" not in top else f"version {top['scene'].value!s:.20}"
            r.wrong(top.get("scene", root), "scene", f"got {got}, expected 'scene: {VERSION}', the only one there is")
    shapes = r.mapping(top["shapes"], "shapes") if "shapes" in top else {}
    for k, (name, node) in enumerate(shapes.items()):
        if k == MOST:
            r.wrong(node, "shapes", f"more than {MOST} shapes")
            break
        _read_shape(r, name, node, out)
    for key, pairs in (("left_out", out.left_out), ("touching", out.touching)):
        if key in top:
            _read_pairs(r, key, top[key], pairs)
    _check_names(r, top, out)
    for key, into in (("still", out.still), ("notes", out.notes)):
        texts = [r.text(x, key, "text") for x in r.sequence(top[key], key, "a list of texts")] if key in top else []
        into.extend(x for x in texts if x is not None)
    if r.problems:
        more = [f"and {len(r.problems) - 50} more"] if len(r.problems) > 50 else []
        raise FileError(source, r.problems[:50] + more)
    return out


def _read_pairs(r: Reader, key: str, node: Any, out: list[tuple[str, str]]) -> None:
    rows = r.sequence(node, key, "a list of pairs [a, b]")
    if len(rows) > MOST_PAIRS:
        r.wrong(node, key, f"more than {MOST_PAIRS} pairs")
    for pair in rows[:MOST_PAIRS]:
        names = [r.text(x, key) for x in r.sequence(pair, key, "a pair [a, b] of names")]
        if len(names) != 2:
            r.wrong(pair, key, f"got {len(names)} names, expected a pair [a, b]")
        elif names[0] is not None and names[1] is not None:
            out.append((names[0], names[1]))


def _check_names(r: Reader, top: dict[str, Any], out: Parts) -> None:
    """Names of `touching` are of shapes in the file; those of `left_out` may be of links that a robot has."""
    known = {x[0] for x in out.shapes}
    unknown = {name for pair in out.touching for name in pair} - known
    if unknown and not r.problems:
        r.wrong(top["touching"], "touching", f"there is no shape {min(unknown)[:60]!r} in the file")


def _read_shape(r: Reader, name: str, node: Any, out: Parts) -> None:
    key, before = f"shapes.{name[:60]}", len(r.problems)
    parts = r.mapping(node, key, (*_KINDS, *_PLACE))
    kinds = [x for x in parts if x in _KINDS]
    if len(r.problems) == before and len(kinds) != 1:
        got = " and ".join(kinds) or "no shape"
        r.wrong(node, key, f"got {got}, expected one of {', '.join(_KINDS)}")
    if not name or "\0" in name:
        r.wrong(node, key, "got a name that is empty or has a NUL, expected text")
    shape = _shape(r, f"{key}.{kinds[0]}", kinds[0], parts[kinds[0]]) if len(kinds) == 1 else None
    link = r.text(parts["link"], f"{key}.link", "the name of a link") if "link" in parts else None
    pose = _pose(r, key, parts, "link" in parts)
    margin = r.number(parts["margin"], f"{key}.margin") if "margin" in parts else 0.0
    if margin is not None and margin < 0:
        r.wrong(parts["margin"], f"{key}.margin", f"got {margin:g}, expected at least 0 [m]")
    if len(r.problems) == before and shape is not None and margin is not None:
        out.shapes.append((name, link, shape, pose, margin))


def _shape(r: Reader, key: str, kind: str, node: Any) -> Shape | None:
    made, before = _KINDS[kind], len(r.problems)
    if made is Polytope:
        rows = r.sequence(node, key, "a list of vertices [x, y, z]")
        if len(rows) > MOST_VERTICES:
            r.wrong(node, key, f"got {len(rows)} vertices, expected {MOST_VERTICES} at most")
            return None
        values: dict[str, Any] = {"vertices": [r.numbers(x, key, 3) for x in rows]}
    elif isinstance(node, yaml.MappingNode):
        names = [f.name for f in fields(made)]
        given = r.mapping(node, key, names)
        missing = [x for x in names if x not in given and x != "offset"]
        if missing and len(r.problems) == before:
            r.wrong(node, key, f"it has no {', '.join(missing)}")
        values = {
            x: r.numbers(y, f"{key}.{x}", 3) if x == "normal" else r.number(y, f"{key}.{x}") for x, y in given.items()
        }
    else:
        names = [f.name for f in fields(made)]
        if made is HalfSpace:
            r.wrong(node, key, "expected {normal: [x, y, z], offset: number}")
            return None
        if made is Sphere and isinstance(node, yaml.ScalarNode):
            values = {"radius": r.number(node, key, "a radius [m]")}
        else:
            found = r.numbers(node, key, len(names))
            values = dict(zip(names, found or [], strict=False))
    if len(r.problems) > before:
        return None
    try:
        return made(**values)
    except ShapeError as error:
        r.wrong(node, key, str(error))
        return None


def _pose(r: Reader, key: str, parts: dict[str, Any], on_link: bool) -> Any:
    """Matrix (4, 4), PORT, or None for the identity."""
    ways = [x for x in ("matrix", "pose") if x in parts] + (["xyz and rpy"] if {"xyz", "rpy"} & set(parts) else [])
    if len(ways) > 1:
        r.wrong(parts[ways[0]], key, f"got {' and '.join(ways)}, expected one way of a pose")
        return None
    if "pose" in parts:
        if r.text(parts["pose"], f"{key}.pose", _PORT) not in (None, _PORT) or on_link:
            where = (
                "a shape on a link stands still on it: xyz, rpy or matrix" if on_link else f"'{_PORT}', or xyz and rpy"
            )
            r.wrong(parts["pose"], f"{key}.pose", f"got {parts['pose'].value!s:.60}, expected {where}")
        return _PORT
    if "matrix" in parts:
        return _matrix(r, f"{key}.matrix", parts["matrix"])
    xyz = r.numbers(parts["xyz"], f"{key}.xyz", 3) if "xyz" in parts else [0.0, 0.0, 0.0]
    rpy = r.numbers(parts["rpy"], f"{key}.rpy", 3) if "rpy" in parts else [0.0, 0.0, 0.0]
    if xyz is None or rpy is None:
        return None
    T = np.eye(4)
    T[:3, :3] = np.array(so3.rpy(*rpy), float) if any(rpy) else np.eye(3)
    T[:3, 3] = xyz
    return T


def _matrix(r: Reader, key: str, node: Any) -> Any:
    before = len(r.problems)
    rows_of = r.sequence(node, key, "3 or 4 rows of 4 numbers")
    if len(r.problems) == before and len(rows_of) not in (3, 4):
        r.wrong(node, key, f"got {len(rows_of)} rows, expected 3 or 4 of 4 numbers")
    found = [r.numbers(row, key, 4) for row in rows_of[:4]]
    if len(r.problems) > before:
        return None
    rows = found if len(found) == 4 else [*found, [0.0, 0.0, 0.0, 1.0]]
    return np.array(rows, float)


# -- writing --------------------------------------------------------------------------------------------------------


def write_parts(path: StrPath, parts: Parts) -> None:
    """Write a scene file in one step. Raises ShapeError for a pose that is a Function of the time."""
    for text in (*(x for row in parts.shapes for x in row[:2] if x), *parts.still, *parts.notes):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ShapeError(
                f"scene: {text!r} has the character {text[error.start]!r}, which no file can hold"
            ) from None
    shapes: dict[str, Any] = {}
    for name, link, shape, pose, margin in parts.shapes:
        entry: dict[str, Any] = {_NAMES[type(shape)]: _sizes(shape)}
        if link is not None:
            entry["link"] = link
        if isinstance(pose, str):
            entry["pose"] = _PORT
        elif not isinstance(pose, np.ndarray):
            raise ShapeError(f"scene: pose of {name!r} is a Function of the time, which no file holds; give numbers")
        elif pose[:3, :3].tolist() == np.eye(3).tolist():
            entry["xyz"] = pose[:3, 3].tolist()
        else:
            entry["matrix"] = pose[:3].tolist()
        if margin:
            entry["margin"] = margin
        shapes[name] = entry
    content: dict[str, Any] = {"scene": VERSION, "shapes": shapes}
    content |= {"left_out": [list(x) for x in parts.left_out]} if parts.left_out else {}
    content |= {"touching": [list(x) for x in parts.touching]} if parts.touching else {}
    content |= {"still": list(parts.still)} if parts.still else {}
    content |= {"notes": list(parts.notes)} if parts.notes else {}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=10**6, allow_unicode=True)
    write_text(path, text)


class _Dumper(yaml.SafeDumper):
    """Plain values, without anchors; texts with characters that do not print, some of which YAML folds, are escaped."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)


def _sizes(shape: Shape) -> Any:
    if isinstance(shape, Polytope):
        return [list(x) for x in shape.vertices]
    values = {f.name: getattr(shape, f.name) for f in fields(shape)}
    return {k: list(x) if isinstance(x, tuple) else x for k, x in values.items()}
