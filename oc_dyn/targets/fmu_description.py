"""modelDescription.xml of a unit of FMI 3.0, and the variables in it: one for every number of a struct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as xml

from .._version import __version__
from ..text import terminal

# exponents of the base units of FMI 3.0
_BASE: dict[str, dict[str, int]] = {
    "1": {},
    "rad": {"rad": 1},
    "m": {"m": 1},
    "s": {"s": 1},
    "kg": {"kg": 1},
    "A": {"A": 1},
    "K": {"K": 1},
    "Hz": {"s": -1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "Nm": {"kg": 1, "m": 2, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CAUSALITY = {"INPUT": "input", "OUTPUT": "output", "PARAMETER": "parameter"}


@dataclass(frozen=True)
class Variable:
    """A number of a struct. kind: "REAL", "WIDE" for a double whatever the precision, or "INTEGER"; role: "INPUT",
    "OUTPUT" or "PARAMETER"; place: C expression of its offset; continuous: whether it changes between steps."""

    name: str
    kind: str
    role: str
    place: str
    unit: str = ""
    words: str = ""
    start: float = 0.0
    continuous: bool = False


def names_of(member: str, rows: int, columns: int, labels: Sequence[str]) -> list[str]:
    """Names of the numbers of a member, column by column, in the structured notation: q.joint1, or q[1] without labels
    that can be names."""
    if rows == columns == 1 and not labels:
        return [member]
    parts = [_part(x) for x in labels] if len(labels) == rows else []
    if parts and columns == 1 and None not in parts and len(set(parts)) == rows:
        return [f"{member}.{x}" for x in parts]
    if columns == 1:
        return [f"{member}[{i + 1}]" for i in range(rows)]
    return [f"{member}[{i + 1},{j + 1}]" for j in range(columns) for i in range(rows)]


def _part(label: str) -> str | None:
    """A label as part of a name: quoted where it is no identifier, None where it has characters beyond ASCII."""
    if _PLAIN.fullmatch(label):
        return label
    if not label.isascii() or not label.isprintable() or not label:
        return None
    return "'" + re.sub(r"(['\"\\])", r"\\\1", label) + "'"


def apart(variables: Iterable[Variable]) -> list[Variable]:
    """The variables with names that are no other's, and not that of the time."""
    taken, out = {"time"}, []
    for v in variables:
        name = v.name
        while name in taken:
            member, mark, rest = re.match(r"([A-Za-z0-9_]+)(.?)(.*)", name).groups()  # type: ignore[union-attr]
            name = f"{member}_{mark}{rest}"
        taken.add(name)
        out.append(Variable(**{**vars(v), "name": name}))
    return out


def exponents(unit: str) -> dict[str, int] | None:
    """{base unit: exponent} of a unit as rad, Nm/s or rad/s2; None for one that is not known."""
    out: dict[str, int] = {}
    for k, part in enumerate(unit.split("/")):
        for factor in re.split(r"[ *]", part):
            found = re.fullmatch(r"([A-Za-z]+|1)\^?(-?\d*)", factor.replace("²", "2").replace("³", "3"))
            if not found or found[1] not in _BASE:
                return None
            power = (-1 if k else 1) * int(found[2] or 1)
            for base, e in _BASE[found[1]].items():
                out[base] = out.get(base, 0) + e * power
    return {k: e for k, e in out.items() if e}


def model_description(name: str, token: str, title: str, variables: Sequence[Variable], period: float) -> str:
    """Text of the file. period [s]: between steps."""
    root = xml.Element("fmiModelDescription", fmiVersion="3.0", modelName=name, instantiationToken=token)
    root.set("description", terminal(title))
    root.set("generationTool", f"oc_dyn {__version__}")
    root.set("variableNamingConvention", "structured")
    unit = xml.SubElement(root, "CoSimulation", modelIdentifier=name, canHandleVariableCommunicationStepSize="true")
    unit.set("canGetAndSetFMUState", "true")
    unit.set("canSerializeFMUState", "true")
    unit.set("fixedInternalStepSize", repr(period))
    _units(root, variables)
    xml.SubElement(root, "DefaultExperiment", startTime="0", stepSize=repr(period))
    listed = xml.SubElement(root, "ModelVariables")
    time: dict[str, str] = {"name": "time", "valueReference": "0", "causality": "independent"}
    xml.SubElement(listed, "Float64", {**time, "variability": "continuous", "description": "time", "unit": "s"})
    structure = xml.SubElement(root, "ModelStructure")
    for reference, v in enumerate(variables, 1):
        xml.SubElement(listed, "Int32" if v.kind == "INTEGER" else "Float64", _attributes(reference, v))
        if v.role == "OUTPUT":
            xml.SubElement(structure, "Output", valueReference=str(reference))
    for reference, v in enumerate(variables, 1):  # known at the end of the initialization
        if v.continuous:
            xml.SubElement(structure, "InitialUnknown", valueReference=str(reference))
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _attributes(reference: int, v: Variable) -> dict[str, str]:
    out = {"name": v.name, "valueReference": str(reference), "causality": _CAUSALITY[v.role]}
    out["variability"] = "tunable" if v.role == "PARAMETER" else "continuous" if v.continuous else "discrete"
    if v.words:
        out["description"] = terminal(v.words)
    if v.kind != "INTEGER" and v.unit:
        out["unit"] = terminal(v.unit)
    if v.continuous:
        return out | {"initial": "calculated"}
    if v.role != "INPUT":
        out["initial"] = "exact"
    out["start"] = str(int(v.start)) if v.kind == "INTEGER" else repr(float(v.start))
    return out


def _units(root: Any, variables: Sequence[Variable]) -> None:
    definitions = xml.SubElement(root, "UnitDefinitions")
    for unit in dict.fromkeys(["s", *(terminal(v.unit) for v in variables if v.unit and v.kind != "INTEGER")]):
        element, base = xml.SubElement(definitions, "Unit", name=unit), exponents(unit)
        if base is not None:
            xml.SubElement(element, "BaseUnit", {k: str(e) for k, e in base.items()})


def build_description(name: str, sources: Sequence[str]) -> str:
    """Text of sources/buildDescription.xml."""
    root = xml.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = xml.SubElement(root, "BuildConfiguration", modelIdentifier=name)
    group = xml.SubElement(configuration, "SourceFileSet", language="C99")
    for source in sources:
        xml.SubElement(group, "SourceFile", name=source)
    xml.SubElement(configuration, "Library", name="m", external="true")
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"
