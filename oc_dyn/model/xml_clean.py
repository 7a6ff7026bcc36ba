"""A URDF document checked and reduced to what dynamics needs.

Out comes a plain document without optional parts: every link, its inertia, every joint with its origin and, where it
moves along one coordinate, axis, limits and dynamics. Shapes (xml_collisions.py), sensors, transmissions and all tags
nobody knows are gone. Everything wrong is noted with its line and reading goes on, so that one error can list it all.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from typing import TypeAlias

import numpy as np
from lxml import etree

from ..lie import so3
from ..numbers import HUGE
from .inertia import unphysical

MAX_PARTS = 10_000  # links and joints
TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_ONE_COORDINATE = ("revolute", "continuous", "prismatic")
_LINK_TAGS = ("inertial",)
_JOINT_TAGS = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic")
_LIMITS = ("lower", "upper", "effort", "velocity")
_MORE_LIMITS = ("acceleration", "deceleration", "jerk", "effort_rate")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")  # people put commas between numbers
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_MACRO = re.compile(r"\$[{(]")
_INF = math.inf

Finding: TypeAlias = tuple[int | None, str]  # line and sentence


class Findings:
    """What is wrong, doubtful or assumed, as (line, sentence). In strict mode what is doubtful is wrong."""

    def __init__(self, strict=False, offset=0, check_inertia=True):
        self.strict, self.offset, self.check_inertia = strict, offset, check_inertia
        self.problems, self.warnings, self.report = [], [], []
        self.unphysical = []  # of the report: inertias that no real body has, one warning for all
        self.shapes = []  # of the report: collision shapes that are left out, one warning for all
        self.complete = True  # every joint knows its links, so that the tree can be judged
        self.macro = None  # the first trace of xacro
        self._near = {}

    def line(self, e):
        """Line of an element in the file, None without one."""
        return None if e is None else (e.sourceline or 1) + self.offset

    def wrong(self, e, text):
        """Keep what makes the file unusable."""
        self.problems.append((self.line(e), text))

    def doubt(self, e, text, loud=True):
        """Keep what is doubtful, to be warned of if `loud`."""
        if self.strict:
            self.wrong(e, text)
        elif loud:
            self.warnings.append((self.line(e), text))
        self.note(e, text)

    def note(self, e, text):
        """Keep what the report tells."""
        self.report.append((self.line(e), text))

    def misspelt(self, name, known):
        """The known name that this unknown one was probably meant to be; None if it means something else."""
        if (name, known) not in self._near and len(self._near) < 1000:  # a hostile file may hold millions
            self._near[name, known] = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.85)
        return next(iter(self._near.get((name, known), [])), None)


def clean(root, name, f):
    """(XML bytes, extras, lines) of the root element; what was found goes into f.

    name: of the robot, if the document gives none. extras: for every joint the limits and the armature that plain
    URDF does not know. lines: {(tag, name): line numbers}.
    """
    out = etree.Element("robot", name=_text(root, "name") or name)
    if not _text(root, "name"):
        f.note(root, f"<robot> has no name; called {name!r}")
    extras, lines = [], {}
    if _tag(root) != "robot":
        f.wrong(root, f"the document is a <{_tag(root)}>, expected <robot>; only URDF is read")
        f.complete = False
        return etree.tostring(out), extras, lines
    _find_macro(root, f)
    for e in root.iterchildren(etree.Element):
        tag = _tag(e)
        if tag == "link":
            out.append(_link(e, f))
        elif tag == "joint":
            joint, extra = _joint(e, f)
            out.append(joint)
            extras.append(extra)
        else:
            _unknown_tag(e, "the robot", ("link", "joint"), f)
            continue
        lines.setdefault((tag, e.get("name")), []).append(f.line(e))
        if len(out) > MAX_PARTS:
            f.wrong(e, f"more than {MAX_PARTS} links and joints; this is no robot description")
            f.complete = False
            break
    for (tag, name), at in lines.items():
        if tag == "link" and name and len(at) > 1:
            f.problems.append((at[-1], f"link {name!r} is defined {len(at)} times (lines {_listed(at[:9])}); keep one"))
    return etree.tostring(out, encoding="utf-8"), extras, lines


# -- links ----------------------------------------------------------------------------------------------------


def _link(e, f):
    who, name = _named(e, f)
    out = etree.Element("link", name=name)
    inertial = _parts(e, who, _LINK_TAGS, f).get("inertial")
    if inertial is None:
        return out
    parts = _parts(inertial, who, ("origin", "mass", "inertia"), f)
    broken = len(f.problems)
    box = etree.SubElement(out, "inertial")
    _origin(box, parts.get("origin"), who, f)
    if "mass" in parts:
        _attributes(parts["mass"], who, ("value",), f)
        (mass,) = _numbers(parts["mass"], "value", who, f)
    else:
        f.wrong(inertial, f"{who}: <inertial> has no <mass>; add it, or leave <inertial> out for a massless link")
        mass = 0.0
    tensor = _tensor(parts.get("inertia"), inertial, who, f)
    if mass < 0 and f.check_inertia:
        f.wrong(parts["mass"], f'{who}, <mass value="{mass:g}">: a mass cannot be negative')
    elif len(f.problems) == broken:
        _check_body(mass, tensor, inertial, who, f)
    etree.SubElement(box, "mass", value=repr(mass))
    etree.SubElement(box, "inertia", {k: repr(v) for k, v in tensor.items()})
    return out


def _tensor(e, inertial, who, f):
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    if e is None:
        f.doubt(inertial, f"{who}: <inertial> has no <inertia>; taken as zero, a point mass")
        return dict.fromkeys(keys, 0.0)
    given = _attributes(e, who, keys, f)
    products = [k for k in keys if k not in given and k[1] != k[2]]
    if products:
        f.note(e, f"{who}: <inertia> has no {_listed(products)}; taken as 0")
    return {k: _numbers(e, k, who, f, default=None if k[1] == k[2] else [0.0])[0] for k in keys}


def _check_body(mass, t, inertial, who, f):
    """Tell an inertia that no body can have."""
    T = np.array([[t["ixx"], t["ixy"], t["ixz"]], [t["ixy"], t["iyy"], t["iyz"]], [t["ixz"], t["iyz"], t["izz"]]])
    scale = np.abs(T).max()
    if mass == 0 and scale > 0:
        f.doubt(inertial, f"{who}: its mass is zero, but its inertia is not; give it a mass or leave <inertial> out")
    why = unphysical(mass, T)
    if why and f.strict and f.check_inertia:
        f.wrong(inertial, f"{who}: {why}")
    elif why:
        f.note(inertial, f"{who}: {why}")
        f.unphysical.append(f.report[-1])


# -- joints ---------------------------------------------------------------------------------------------------


def _joint(e, f):
    who, name = _named(e, f)
    kind = _attributes(e, who, ("name", "type"), f, nearly=True).get("type")
    if kind not in TYPES:
        near = difflib.get_close_matches((kind or "").lower(), TYPES, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        got = f"{who} has no type" if not kind else f"{who}, {_quoted(e, 'type')}: there is no such type{hint}"
        f.wrong(e, f"{got}; URDF has {', '.join(TYPES)}")
        kind = "fixed"
    parts = _parts(e, who, _JOINT_TAGS, f)
    out = etree.Element("joint", name=name, type=kind)
    _origin(out, parts.get("origin"), who, f)
    for end in ("parent", "child"):
        etree.SubElement(out, end, link=_reference(e, parts.get(end), end, "link", who, f))
    extra = {}
    if kind in _ONE_COORDINATE or kind == "planar":
        _axis(out, e, parts.get("axis"), who, f)
    if kind in _ONE_COORDINATE:
        extra = _limits(out, e, parts.get("limit"), kind, who, f)
        extra["armature"] = _dynamics(out, parts.get("dynamics"), who, f)
    elif "dynamics" in parts and kind != "fixed":
        f.note(parts["dynamics"], f"{who}: <dynamics> of a {kind} joint is not used")
    if "mimic" in parts and kind != "fixed":
        mimic = parts["mimic"]
        _attributes(mimic, who, ("joint", "multiplier", "offset"), f)
        leader = _reference(e, mimic, "mimic", "joint", who, f)
        (multiplier,) = _numbers(mimic, "multiplier", who, f, default=[1.0])
        (offset,) = _numbers(mimic, "offset", who, f, default=[0.0])
        etree.SubElement(out, "mimic", joint=leader, multiplier=repr(multiplier), offset=repr(offset))
    return out, extra


def _reference(joint, e, tag, key, who, f):
    """Name of a link or a joint in an attribute of a child element."""
    name = None if e is None else _text(e, key)
    if name and _MACRO.search(name):
        f.macro = f.macro or (f.line(e), f'<{tag} {key}="{_short(name)}">')
    if not name:
        f.wrong(joint if e is None else e, f'{who}: no <{tag} {key}="...">; name the {key}')
        f.complete = False
    return name or ""


def _axis(out, joint, e, who, f):
    if e is None or not _attributes(e, who, ("xyz",), f):
        f.note(joint, f"{who}: no axis given; x taken, as URDF says")
    axis = _numbers(e, "xyz", who, f, 3, default=[1.0, 0.0, 0.0])
    etree.SubElement(out, "axis", xyz=" ".join(map(repr, axis)))


def _limits(out, joint, e, kind, who, f):
    """Write <limit>; what is missing is infinite, but one end of the range given alone makes the other 0."""
    given = {} if e is None else _attributes(e, who, _LIMITS + _MORE_LIMITS, f, nearly=True)
    wanted = _LIMITS if kind != "continuous" else _LIMITS[2:]
    value = {"lower": -_INF, "upper": _INF, "effort": _INF, "velocity": _INF}
    for k in wanted + _MORE_LIMITS:
        if k in given:
            (x,) = _numbers(e, k, who, f, default=[-_INF if k == "lower" else _INF], infinite=True)
            value[k] = x if abs(x) < HUGE else math.copysign(_INF, x)  # files write the largest number for no limit
    missing = [k for k in wanted if k not in given]
    if e is None and kind != "continuous":
        f.doubt(joint, f"{who}: no <limit>; all its limits are taken as infinite")
    elif e is not None and missing:
        _fill_limits(value, missing, e, who, f)
    if kind != "continuous" and value["lower"] == value["upper"]:
        f.note(e, f"{who}: its range is the one point {value['lower']:g}")
    slowing = value.pop("deceleration", _INF)
    if slowing < value.get("acceleration", _INF):
        f.note(e, f"{who}: deceleration {slowing:g}, below acceleration, limits both")
        value["acceleration"] = slowing
    etree.SubElement(out, "limit", {k: repr(value.pop(k)) for k in _LIMITS})
    return value


def _fill_limits(value, missing, e, who, f):
    """Limits that a <limit> does not give, into `value`."""
    ends = [k for k in missing if k in ("lower", "upper")]
    zero = ends if len(ends) == 1 else []
    value.update(dict.fromkeys(zero, 0.0))
    infinite = [k for k in missing if k not in zero]
    taken = [f"{zero[0]} is taken as 0, as URDF says"] if zero else []
    taken += [f"taken as infinite: {_listed(infinite)}"] if infinite else []
    f.doubt(e, f"{who}: <limit> has no {_listed(missing)}; {', '.join(taken)}")
    if zero and value["lower"] > value["upper"]:
        f.wrong(e, f"{who}: <limit> has no {zero[0]}, and 0 would leave no range; give lower and upper")
        value.update(lower=-_INF, upper=_INF)


def _dynamics(out, e, who, f):
    """Write <dynamics>; the armature comes back."""
    keys = ("damping", "friction", "armature")
    given = {} if e is None else _attributes(e, who, keys, f, nearly=True)
    value = {k: _numbers(e, k, who, f, default=[0.0])[0] if k in given else 0.0 for k in keys}
    for k in keys:
        if value[k] < 0:
            f.wrong(e, f'{who}, <dynamics {k}="{value[k]:g}">: expected a number of at least 0')
    armature = value.pop("armature")
    etree.SubElement(out, "dynamics", {k: repr(v) for k, v in value.items()})
    return armature


# -- elements and attributes ----------------------------------------------------------------------------------


def _origin(out, e, who, f):
    """Write <origin> with xyz and rpy; a quaternion (x, y, z, w), new in URDF 1.1, is turned into angles."""
    given = {} if e is None else _attributes(e, who, ("xyz", "rpy", "quat_xyzw"), f)
    xyz = _numbers(e, "xyz", who, f, 3, default=[0.0] * 3)
    rpy = _numbers(e, "rpy", who, f, 3, default=[0.0] * 3)
    if "quat_xyzw" in given:
        Q = _numbers(e, "quat_xyzw", who, f, 4, default=[0.0, 0.0, 0.0, 1.0])
        if "rpy" in given:
            f.wrong(e, f"{who}: <origin> has both rpy and quat_xyzw; keep one")
        if not 0.99 < math.hypot(*Q) < 1.01:
            f.wrong(e, f"{who}, {_quoted(e, 'quat_xyzw')}: its length is {math.hypot(*Q):g}, expected 1")
        else:
            x, y, z, w = Q
            rpy = [float(angle) for angle in so3.quat_to_rpy(np.array([w, x, y, z])).full().ravel()]
    etree.SubElement(out, "origin", xyz=" ".join(map(repr, xyz)), rpy=" ".join(map(repr, rpy)))


def _numbers(e, key, who, f, n=1, default=None, infinite=False):
    """n numbers of an attribute; the default where the attribute, or a sense in it, is missing."""
    text = None if e is None else _text(e, key)
    if text is None:
        if default is None:
            f.wrong(e, f"{who}: <{_tag(e)}> has no {key}")
        return default or [1.0] * n
    if _MACRO.search(text):
        f.macro = f.macro or (f.line(e), _quoted(e, key))
    tokens = text.split()
    faults = [fault for t in tokens[:10] if (fault := _fault(t, key, infinite))]
    apart = _SEPARATOR.split(text.strip())
    if faults and apart != tokens and n > 1 and len(apart) == n and all(map(_NUMBER.fullmatch, apart)):
        faults = ["numbers stand apart by blanks in URDF, not by commas or semicolons"]
    if not faults and len(tokens) != n:
        expected = "one number" if n == 1 else f"{n} numbers with blanks between them"
        faults = [f"got {len(tokens)} number(s), expected {expected}"]
    if faults:
        f.wrong(e, f"{who}, {_quoted(e, key)}: {'; '.join(faults)}")
        return default or [1.0] * n
    return [float(t) for t in tokens]


def _fault(token, key, infinite):
    """What is wrong with a number; None if nothing."""
    if _INFINITE.fullmatch(token) and infinite:
        outward = token.startswith("-") == (key == "lower")
        return None if outward else f"{token!r} leaves no room"
    if _NUMBER.fullmatch(token):
        size = abs(float(token))
        fits = math.isfinite(size) if infinite else size < HUGE
        return None if fits else f"{_short(token)!r} is too large"
    if _INFINITE.fullmatch(token) or token.lower().lstrip("+-") == "nan":
        return f"{token!r} is not a finite number"
    if "," in token:
        return f"{_short(token)!r} is not a number (decimal comma?); write a decimal point, and blanks between numbers"
    return f"{_short(token)!r} is not a number"


def _named(e, f):
    """("link 'arm'", "arm") of a link or joint."""
    tag, name = _tag(e), e.get("name")
    if name and _MACRO.search(name):
        f.macro = f.macro or (f.line(e), _quoted(e, "name"))
    if name:
        return f"{tag} {name!r}", name
    f.wrong(e, f"a {tag} has no name; give it one of its own")
    f.complete = False
    return f"the {tag} without a name", ""


def _parts(e, who, known, f):
    """{tag: child element} of the known ones, each at most once."""
    found, again = {}, Counter()
    for child in e.iterchildren(etree.Element):
        tag = _tag(child)
        if tag not in known:
            _unknown_tag(child, who, known, f)
        elif tag in found:
            again[tag] += 1
        else:
            found[tag] = child
    for tag, n in again.items():
        f.wrong(found[tag], f"{who} has {n + 1} <{tag}>; keep one")
    return found


def _unknown_tag(e, who, known, f):
    near = f.misspelt(_tag(e), known)
    if near:
        f.doubt(e, f"{who}: unknown tag <{_tag(e)}> is ignored; did you mean <{near}>?")


def _attributes(e, who, known, f, nearly=False):
    """{name: text} without namespaces. Unknown names are doubtful: all, or where others add to them, near ones."""
    given = {}
    for key in e.attrib:
        plain = key.rpartition("}")[2].rpartition(":")[2]
        if plain in known:
            given.setdefault(plain, _text(e, plain))
        elif ":" not in key and "}" not in key:
            near = f.misspelt(key, known)
            if near or not nearly:
                hint = f"did you mean {near}?" if near else f"known: {', '.join(known)}"
                f.doubt(e, f"{who}: unknown attribute {key!r} of <{_tag(e)}> is ignored; {hint}")
    return given


def _text(e, key):
    """Attribute by its plain name; one without a namespace goes first (Drake writes drake:acceleration)."""
    if key in e.attrib:
        return e.get(key)
    return next((e.get(k) for k in e.attrib if k.rpartition("}")[2].rpartition(":")[2] == key), None)


def _tag(e):
    plain = e.tag.rpartition("}")[2]
    return plain if e.prefix is None else f"{e.prefix}:{plain}"


def _find_macro(root, f):
    if f.macro is None:
        for e in root.iter(etree.Element):
            if e.tag.startswith("xacro:") or (e.prefix is not None and "xacro" in e.tag.partition("}")[0]):
                f.macro = (f.line(e), f"<{_tag(e)}>")
                return


def _quoted(e, key):
    return f'<{_tag(e)} {key}="{_short(_text(e, key))}">'


def _short(text):
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(things):
    return ", ".join(map(str, things))
