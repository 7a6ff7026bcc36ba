"""The <collision> and <visual> elements of a URDF document.

Nothing in them makes a robot unreadable: what cannot be used is left out, and of collision shapes told with its line in
the report, and warned of. No file that they name is opened.
"""

import numpy as np
from lxml import etree

from ..lie import so3
from .collision import LEFT_OUT, SIZES, Collision, pose_rows
from .xml_clean import MAX_PARTS, Findings, _numbers, _origin, _quoted, _short, _tag, _text

_LONGEST = 4096  # of the path of a mesh
_GEOMETRY = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def shapes(root, f, tag="collision"):
    """Collision records of all links of a <robot> element, in the file's order; what is wrong goes into f.
    tag: of their elements, "visual" for what is shown alone."""
    found = []
    for link in root.iterchildren(etree.Element):
        name = link.get("name") if _tag(link) == "link" else None
        for e in link.iterchildren(etree.Element) if name else ():
            if _tag(e) != tag:
                continue
            if len(found) == MAX_PARTS:
                text = f"link {name!r}: more than {MAX_PARTS} {tag} shapes; those from here on are not read"
                _tell(tag, f, f.line(e), text)
                return tuple(found)
            shape = _record(e, tag, name, f)
            if shape is not None:
                found.append(shape)
    return tuple(found)


def _record(e, tag, link, f):
    """The record of one element, None where it cannot be used."""
    own = Findings(offset=f.offset)  # of this element alone: what is wrong in it does not make the file wrong
    own._near = f._near
    name = _text(e, "name") or ""
    who = f"link {link!r}, <{tag}{f' name={_short(name)!r}' if name else ''}>"
    parts = {_tag(child): child for child in reversed(list(e.iterchildren(etree.Element)))}
    geometry = parts.get("geometry")
    shapes = [] if geometry is None else list(geometry.iterchildren(etree.Element))
    if not shapes:  # an empty element describes nothing
        return None
    if len(shapes) > 1:
        own.wrong(shapes[1], f"{who}: <geometry> has {len(shapes)} shapes; give each a <{tag}> of its own")
    kind, sizes, mesh = _shape(shapes[0], who, own)
    place = etree.Element("collision")
    _origin(place, parts.get("origin"), who, own)
    if own.macro:
        own.problems.insert(0, (own.macro[0], f"{who}: {own.macro[1]} is an unexpanded xacro"))
    if tag == "collision":
        f.report.extend(own.report)
        f.warnings.extend(own.warnings)
    if own.problems:
        line, text = own.problems[0]
        more = f" (and {len(own.problems) - 1} more)" if len(own.problems) > 1 else ""
        _tell(tag, f, line, f"{text}{more}; {LEFT_OUT}")
        return None
    xyz, rpy = ([float(x) for x in place[0].get(key).split()] for key in ("xyz", "rpy"))
    R = np.array(so3.rpy(*rpy), float) if any(rpy) else np.eye(3)
    return Collision(name, link, kind, sizes, pose_rows(R, np.array(xyz)), mesh)


def _shape(e, who, own):
    """(kind, sizes, mesh) of the element in <geometry>."""
    kind = _tag(e)
    if kind == "mesh":
        path = _text(e, "filename") or ""
        if not path.strip() or len(path) > _LONGEST:
            fault = f"a filename longer than {_LONGEST} letters" if path.strip() else "no filename"
            own.wrong(e, f"{who}: <mesh> has {fault}")
        return kind, tuple(_numbers(e, "scale", who, own, 3, default=[1.0, 1.0, 1.0])), path.strip()
    if kind == "box":
        return kind, _lengths(e, "size", who, own, 3), ""
    if kind in _GEOMETRY:
        return kind, tuple(x for key in _GEOMETRY[kind] for x in _lengths(e, key, who, own)), ""
    known = ", ".join(k for k in SIZES if k != "ellipsoid")
    own.wrong(e, f"{who}: there is no shape <{_short(kind)}>; URDF has {known}")
    return kind, (), ""


def _lengths(e, key, who, own, n=1):
    values = _numbers(e, key, who, own, n)
    if min(values) < 0:
        own.wrong(e, f"{who}, {_quoted(e, key)}: a length cannot be negative")
    return tuple(values)


def _tell(tag, f, line, text):
    """Tell and warn of a collision shape; what is only seen changes no result."""
    if tag == "collision":
        f.report.append((line, text))
        f.shapes.append(f.report[-1])
