"""Loops and couplings of a URDF document, as URDF+ adds them: checked, with the lines on which they stand.

    <joint name="motor" type="revolute" independent="true"> ...
    <loop name="pin" type="revolute">
      <predecessor link="rod"> <origin xyz="0.6 0 0"/> </predecessor>
      <successor link="ram"> <origin xyz="0 0 0"/> </successor>
      <axis xyz="0 1 0"/>
    </loop>
    <coupling name="belt">
      <predecessor link="pulley"/> <successor link="shank"/> <ratio value="-2"/>
    </coupling>

Source: Chignoli et al. 2024, URDF+: an enhanced URDF for robots with kinematic loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lxml import etree

from .xml_clean import (
    Findings,
    _attributes,
    _axis,
    _named,
    _numbers,
    _origin,
    _parts,
    _quoted,
    _reference,
    _tag,
    _text,
)

MAX_LOOPS = 1000  # and couplings
KINDS = {  # of loops in URDF+: what closes them here
    "revolute": "revolute",
    "continuous": "revolute",
    "spherical": "position",
    "fixed": "weld",
    "prismatic": "prismatic",
    "planar": "planar",
}
_ENDS = ("predecessor", "successor")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class LoopElement:
    """kind: of loop_joints.KINDS. links: two. origins: (xyz, rpy) of frames in them. axis: (3,), in both."""

    name: str
    line: int | None
    kind: str
    links: tuple[str, str]
    origins: tuple[Any, Any]
    axis: tuple[float, ...]


@dataclass(frozen=True)
class CouplingElement:
    """The coordinate of the joint above the second link is ratio times that of the first one."""

    name: str
    line: int | None
    joints: tuple[str, str]
    ratio: float


@dataclass(frozen=True)
class Declared:
    """What a document says of loops."""

    loops: tuple[LoopElement, ...] = ()
    couplings: tuple[CouplingElement, ...] = ()
    independent: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.loops or self.couplings)


def declared_loops(root: Any, f: Findings) -> Declared:
    """Loops, couplings and joints said to be independent; what is wrong goes into f."""
    found: dict[str, list[Any]] = {"loop": [], "coupling": []}
    above: dict[str, list[str]] = {}
    links, independent = set(), []
    for e in root.iterchildren(etree.Element):
        if _tag(e) == "link":
            links.add(e.get("name"))
        elif _tag(e) == "joint":
            child = next((c for c in e.iterchildren(etree.Element) if _tag(c) == "child"), None)
            if child is not None:
                above.setdefault(_text(child, "link") or "", []).append(e.get("name") or "")
            if _is_independent(e, f):
                independent.append(e.get("name") or "")
        elif _tag(e) in found:
            found[_tag(e)].append(e)
    if sum(map(len, found.values())) > MAX_LOOPS:
        f.wrong(root, f"more than {MAX_LOOPS} loops and couplings; this is no robot description")
        return Declared()
    names: set[tuple[str, str]] = set()
    loops = [_loop(e, links, names, f) for e in found["loop"]]
    couplings = [_coupling(e, links, above, names, f) for e in found["coupling"]]
    if f.problems:
        return Declared()
    return Declared(tuple(loops), tuple(couplings), tuple(independent))


def _is_independent(e: Any, f: Findings) -> bool:
    text = _text(e, "independent")
    if text is None:
        return False
    value = _TRUTH.get(text.strip().lower())
    if value is None:
        f.wrong(e, f"joint {e.get('name')!r}, {_quoted(e, 'independent')}: expected true or false")
    return bool(value)


def _new(e: Any, names: set[tuple[str, str]], f: Findings) -> tuple[str, str]:
    who, name = _named(e, f)
    if name and (_tag(e), name) in names:
        f.wrong(e, f"{who} is defined more than once; give every {_tag(e)} its own name")
    names.add((_tag(e), name))
    return who, name


def _loop(e: Any, links: set[Any], names: set[tuple[str, str]], f: Findings) -> LoopElement:
    who, name = _new(e, names, f)
    kind = _attributes(e, who, ("name", "type"), f).get("type")
    if kind not in KINDS:
        got = f"{who}, {_quoted(e, 'type')}" if kind else f"{who} has no type"
        f.wrong(e, f"{got}: loops are {', '.join(KINDS)}")
    parts, box = _parts(e, who, (*_ENDS, "axis"), f), etree.Element("loop")
    for end in _ENDS:
        inner = {} if end not in parts else _parts(parts[end], who, ("origin",), f)
        _origin(box, inner.get("origin"), who, f)
    if kind in ("revolute", "continuous", "prismatic", "planar"):
        _axis(box, e, parts.get("axis"), who, f)
    first, second = ([_floats(x.get(k)) for k in ("xyz", "rpy")] for x in box.iterchildren("origin"))
    given = box.find("axis")
    axis = (0.0, 0.0, 1.0) if given is None else _floats(given.get("xyz"))
    if not any(axis):
        f.wrong(parts.get("axis"), f"{who}: its axis is zero, expected a direction")
    return LoopElement(
        name, f.line(e), KINDS.get(kind or "", "weld"), _ends(e, parts, who, links, f), (first, second), axis
    )


def _coupling(
    e: Any, links: set[Any], above: dict[str, list[str]], names: set[tuple[str, str]], f: Findings
) -> CouplingElement:
    who, name = _new(e, names, f)
    _attributes(e, who, ("name",), f, nearly=True)
    parts = _parts(e, who, (*_ENDS, "ratio"), f)
    ends = _ends(e, parts, who, links, f)
    ratio = 1.0
    if "ratio" in parts:
        (ratio,) = _numbers(parts["ratio"], "value", who, f)
    else:
        f.wrong(e, f'{who}: no <ratio value="...">; give the factor between the two joints')
    joints = []
    for link in ends:
        own = above.get(link, [])
        if link in links and len(own) != 1:
            f.wrong(e, f"{who}: link {link!r} hangs on {len(own)} joints, expected one, which is coupled")
        joints.append(own[0] if own else "")
    return CouplingElement(name, f.line(e), (joints[0], joints[1]), ratio)


def _ends(e: Any, parts: dict[str, Any], who: str, links: set[Any], f: Findings) -> tuple[str, str]:
    ends = [_reference(e, parts.get(end), end, "link", who, f) for end in _ENDS]
    for end, link in zip(_ENDS, ends, strict=True):
        if link and link not in links:
            f.wrong(parts[end], f"{who}, {_quoted(parts[end], 'link')}: there is no such link")
    if ends[0] and ends[0] == ends[1]:
        f.wrong(e, f"{who}: both of its links are {ends[0]!r}; a {_tag(e)} is between two")
    return ends[0], ends[1]


def _floats(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))
