"""A cleaned URDF document as objects: by urdf_parser_py where that is installed, else by what stands here.

xml_clean.py has read, checked and written the document anew, every number as Python prints it; both readers only take
it apart again, and give the same numbers. The package is on PyPI as source alone, which not every computer may build.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from lxml import etree

from ..types import Array

try:
    from urdf_parser_py.urdf import URDF
except ImportError:
    URDF = None


def parsed(xml: bytes) -> Any:
    """The robot of a cleaned document: name, links and joints, with the attributes of urdf_parser_py's objects."""
    return own(xml) if URDF is None else URDF.from_xml_string(xml)


def own(xml: bytes) -> Any:
    """As `parsed`, without urdf_parser_py."""
    root = etree.fromstring(xml, etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True))
    return SimpleNamespace(
        name=root.get("name"),
        links=[_link(e) for e in root.iterchildren("link")],
        joints=[_joint(e) for e in root.iterchildren("joint")],
    )


def _link(e: Any) -> Any:
    inertial = e.find("inertial")
    if inertial is None:
        return SimpleNamespace(name=e.get("name"), inertial=None)
    mass, tensor = float(inertial.find("mass").get("value")), _matrix(inertial.find("inertia"))
    inertia = SimpleNamespace(to_matrix=lambda: tensor)
    return SimpleNamespace(
        name=e.get("name"), inertial=SimpleNamespace(mass=mass, origin=_origin(inertial), inertia=inertia)
    )


def _matrix(e: Any) -> Array:
    xx, xy, xz, yy, yz, zz = (float(e.get(key)) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _joint(e: Any) -> Any:
    axis, mimic = e.find("axis"), e.find("mimic")
    rule = _values(mimic, "multiplier", "offset")
    if rule is not None:
        rule.joint = mimic.get("joint")
    return SimpleNamespace(
        name=e.get("name"),
        type=e.get("type"),
        parent=e.find("parent").get("link"),
        child=e.find("child").get("link"),
        origin=_origin(e),
        axis=None if axis is None else _three(axis, "xyz"),
        limit=_values(e.find("limit"), "lower", "upper", "effort", "velocity"),
        dynamics=_values(e.find("dynamics"), "damping", "friction"),
        mimic=rule,
    )


def _origin(e: Any) -> Any:
    origin = e.find("origin")
    return SimpleNamespace(xyz=_three(origin, "xyz"), rpy=_three(origin, "rpy"))


def _three(e: Any, key: str) -> list[float]:
    return [float(x) for x in e.get(key).split()]


def _values(e: Any, *keys: str) -> Any:
    return None if e is None else SimpleNamespace(**{key: float(e.get(key)) for key in keys})
