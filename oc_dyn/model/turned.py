"""A tree hung up at another link: joints on the way to it turned around."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ModelError, UnknownName
from .inertia import Inertia
from .robot import Joint

_AS_THEY_ARE = ("revolute", "continuous", "prismatic", "helical", "cylindrical")  # with the axis the other way round


def turned(
    source: str, links: Mapping[str, Inertia | None], joints: Sequence[Joint], root: Any
) -> tuple[dict[str, Inertia | None], list[Joint]]:
    """Links and joints of the same tree with the link `root` as its root.

    Joints between it and the old root have parent and child exchanged and the axis the other way round: so coordinates,
    limits, torques and what follows a joint stay as they are. Where such a joint moves its new child, an empty link
    named after the joint stands at its frame, to which the child is fixed: frames of links stay as written.
    Raises UnknownName; ModelError for joints on the way that have other coordinates seen from the child.
    """
    if not isinstance(root, str) or root not in links:
        raise UnknownName(f"link of {source}", root, links)
    by_child = {j.child: j for j in joints}
    way: dict[str, Joint] = {}
    link = root
    while link in by_child:
        way[by_child[link].name] = by_child[link]
        link = by_child[link].parent
    problems = [
        f"joint {j.name!r} ({j.kind}) is between root {root!r} and link {link!r}: turned around it has other "
        f"coordinates; take a root on the side of {j.parent!r}"
        for j in way.values()
        if j.kind not in (*_AS_THEY_ARE, "fixed")
    ]
    if problems:
        raise ModelError(source, problems)
    out, names = dict(links), {j.name for j in joints}
    new = []
    for j in joints:
        if j.name not in way:
            new.append(j)
            continue
        back = j.rotation.T, -j.rotation.T @ j.translation
        if j.kind == "fixed":
            new.append(replace(j, parent=j.child, child=j.parent, rotation=back[0], translation=back[1]))
            continue
        between, weld = _free_name(j.name, out), _free_name(f"{j.name}_to_{j.parent}", names)
        out[between] = None
        names.add(weld)
        new.append(  # its frame is that of the child
            replace(j, parent=j.child, child=between, axis=0.0 - j.axis, rotation=np.eye(3), translation=np.zeros(3))
        )
        new.append(Joint(weld, "fixed", between, j.parent, *back))
    return out, new


def _free_name(name: str, taken: Container[str]) -> str:
    k, found = 1, name
    while found in taken:
        k += 1
        found = f"{name}_{k}"
    return found
