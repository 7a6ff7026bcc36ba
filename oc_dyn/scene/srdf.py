"""Pairs of links that a semantic robot description (SRDF) lets touch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..errors import FileError, ModelError, ShapeError
from ..model.robot import Robot
from ..numbers import shortened

MOST = 100_000  # elements that are read


def disabled_pairs(
    srdf: Any, robot: Robot, pairs: Iterable[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[str]]:
    """(those of the pairs of links that do not count, notes) by a file or its text: <disable_collisions link1 link2>,
    and <disable_default_collisions link> without <enable_collisions link1 link2>.

    Raises FileError for what is no SRDF, with line and attribute.
    """
    source, root, offset = _read(srdf)
    off: set[frozenset[str]] = set()
    on: set[frozenset[str]] = set()
    alone: set[str] = set()
    problems, unknown = [], {}
    for k, e in enumerate(root.iterchildren()):
        if k == MOST:
            problems.append(f"more than {MOST} elements")
            break
        keys = {
            "disable_collisions": ("link1", "link2"),
            "enable_collisions": ("link1", "link2"),
            "disable_default_collisions": ("link",),
        }.get(e.tag if isinstance(e.tag, str) else "")
        if keys is None:
            continue
        line, names = (e.sourceline or 1) + offset, [e.get(key) for key in keys]
        missing = [key for key, name in zip(keys, names, strict=True) if not name]
        if missing:
            problems.append(f'line {line}: <{e.tag}> has no {missing[0]}; write {missing[0]}="name of a link"')
            continue
        unknown.update({name: line for name in names if name not in robot.frames})
        if len(names) == 1:
            alone.add(names[0])
        else:
            (off if e.tag == "disable_collisions" else on).add(frozenset(names))
    if problems:
        raise FileError(source, problems)
    notes = []
    if unknown:
        shown = ", ".join(f"{name!r} (line {line})" for name, line in list(unknown.items())[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        notes.append(f"the srdf names links that {robot.name} does not have: {shown}{more}")
    out = []
    for pair in pairs:
        key = frozenset(pair)
        if key in off or (key not in on and key & alone):
            out.append(pair)
    return out, notes


def _read(srdf: Any) -> tuple[str, Any, int]:
    if not isinstance(srdf, (str, bytes, os.PathLike)):
        raise ShapeError(f"Scene.of: srdf is {shortened(srdf)}, expected a path or the text of an SRDF")
    from ..model.xml_read import read_xml  # brings lxml

    try:
        source, _, root, offset = read_xml(srdf, "SRDF")
    except ModelError as error:
        raise FileError(error.source, error.problems) from None
    if root.tag != "robot":
        raise FileError(source, [f"the document is a <{root.tag}>, expected the <robot> of an SRDF"])
    return source, root, offset
