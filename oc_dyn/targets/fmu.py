"""od.fmu: controllers, laws and planned motions as units of FMI 3.0 for co-simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.build import TIME_LIMIT, Command, Flags
from ..codegen.names import checked_c_name
from ..codegen.product import Field, content_hash
from ..codegen.product_files import Product, files_of
from ..control.controller_codegen import controller_product
from ..control.mpc import PredictiveController
from ..elastic.control import Controller
from ..elastic.generate import law_code
from ..elastic.law_codegen import law_product
from ..errors import ModelError, ShapeError, UnknownName
from ..numbers import as_floats
from ..planning.trajectory import joint_units
from ..types import Numbers, StrPath
from ..validation import number
from .fmu_description import Variable, apart, names_of
from .fmu_file import Unit, write_unit
from .player import player_product


def fmu(
    what: Any, path: StrPath, *, name: str | None = None, period: float | None = None,
    start: Mapping[str, Numbers] | None = None, compiler: Command | None = None, flags: Flags = ("-O2",),
    time_limit: float | None = TIME_LIMIT, **options: Any,
) -> Path:  # fmt: skip
    """Write a unit of FMI 3.0 for co-simulation, a file *.fmu with a library for this machine and the C sources.

    what: a controller of od.mpc, an elastic.Controller, or a motion as of codegen_player. name: of the model and of all
        symbols; default that of the controller, or of the file. options: those of the generator of its C.
    period [s]: between steps of the law, which are made at times k * period from the start of the simulation on, with
        the inputs that were set last: at the start of a communication step that begins there. Outputs are those of the
        last step, zero before the first. Default that of the controller; of a motion, whose outputs are those at the
        end of the communication step, the size of a step that is suggested, default 1 ms.
    start: {input: value} that inputs have before they are set; default 0.
    Variables are single numbers, called q.joint1 or goal[2], inputs, outputs and tunable parameters, with units; the
    status of the last step is the output "status", 0 for ok: a NaN in an input gives a status and the outputs that are
    safe. Units can be instantiated many times, be reset, and save and restore their state.
    compiler, flags, time_limit [s]: as of od.compile. Returns the path.
    Raises ShapeError, UnknownName, ModelError; SolveError without a compiler.
    """
    path = Path(path)
    if path.suffix != ".fmu":
        raise ShapeError(f"fmu: the path is {str(path)!r}, expected one that ends with .fmu")
    period = None if period is None else number("fmu: period", period, above=0)
    timed, product = product_of(what, _name(what, path, name), period, options)
    period = period or product.facts.sample_time or (1e-3 if timed else None)
    if period is None:
        raise ShapeError(f"fmu: {product.name} has no sample time of its own; give period= [s]")
    if not timed and product.facts.libraries:
        needed = ", ".join(x for x, _ in product.facts.libraries)
        raise ModelError("fmu", [f"{product.name} needs the library {needed}, which a unit cannot bring along"])
    texts = files_of(product)
    needed = (*product.sources, *product.extra_headers, f"{product.name}.h")
    kept = {x: texts[x] for x in needed}
    token = content_hash([*kept.values()], period, sorted((k, np.ravel(v).tolist()) for k, v in (start or {}).items()))
    variables = apart(_variables(product, timed, start or {}, _coordinate_units(what)))
    unit = Unit(product.name, product.facts.title, kept, variables, period, timed, f"{{{token}}}")
    write_unit(unit, path, compiler=compiler, flags=flags, time_limit=time_limit)
    return path


def _name(what: Any, path: Path, name: str | None) -> str:
    own = what.name if isinstance(what, PredictiveController) else path.stem
    if name is not None and isinstance(what, PredictiveController) and name != own:
        raise ShapeError(f"fmu: name is {name!r}, but the controller is called {own!r}; give od.mpc(name=...)")
    return checked_c_name("fmu", own if name is None else name, "give another name=")


def product_of(
    what: Any, name: str, period: float | None, options: Mapping[str, Any], where: str = "fmu"
) -> tuple[bool, Product]:
    """(whether the outputs are those of a time, Product) of a controller, a law or a motion."""
    try:
        if isinstance(what, PredictiveController):
            return False, controller_product(what, **options)
        if isinstance(what, Controller):
            return False, law_product(*law_code(what, name, 1e-3 if period is None else period, **options))
        return True, player_product(where, what, name, **options)
    except TypeError as error:
        raise ShapeError(f"{where}: options {', '.join(options)}: {error}") from None


def _coordinate_units(what: Any) -> list[str]:
    """rad or m of each joint of a law's robot."""
    return list(joint_units(what.elastic.links)) if isinstance(what, Controller) else []


def _variables(
    product: Product, timed: bool, start: Mapping[str, Numbers], coordinates: Sequence[str]
) -> list[Variable]:
    structs = [x for _, x in product.structs]
    inputs = [] if timed else [x for x in structs[0] if not x.type]
    for name in start:
        if name not in [x.name for x in inputs]:
            raise UnknownName("fmu: start: input", name, [x.name for x in inputs])
    real = "WIDE" if product.wide else "REAL"
    groups = [(inputs, "in", real, "INPUT"), (structs[1], "out", "REAL", "OUTPUT")]
    groups += [(x, "self.parameters", "REAL", "PARAMETER") for x in structs[2:3]]
    out: list[Variable] = []
    for fields, where, kind, role in groups:
        for x in fields:
            values = start.get(x.name) if role == "INPUT" else None
            units = _units(x, coordinates)
            out += _of(product, x, f"{where}.{x.name}", "INTEGER" if x.type else kind, role, units, values)
    if timed:
        out = [replace(v, continuous=v.kind != "INTEGER") for v in out]
    status = Variable("status", "INTEGER", "OUTPUT", "offsetof(state, status)", words="of the last step, 0 for ok")
    return [*out, status]


def _units(x: Field, coordinates: Sequence[str]) -> list[str]:
    """Unit of every number of a member: those of "rad or m" by the joints, where it has a row for each of them."""
    if x.unit.count(", ") == x.count - 1:
        return x.unit.split(", ")
    if " or " not in x.unit:
        return [x.unit] * x.count
    turns, slides = x.unit.split(" or ")[:2]
    if len(set(coordinates)) == 1:
        coordinates = [coordinates[0]] * x.rows
    if len(coordinates) != x.rows:
        return [""] * x.count
    return [turns if c == "rad" else slides for c in coordinates] * x.columns


def _of(
    product: Product, x: Field, place: str, kind: str, role: str, units: Sequence[str], start: Numbers | None
) -> list[Variable]:
    size = {"REAL": f"{product.name}_real", "WIDE": "double", "INTEGER": "int32_t"}[kind]
    names = names_of(x.name, x.rows, x.columns, x.labels)
    values = np.zeros(x.count) if start is None else as_floats(f"fmu: start of {x.name}", start).ravel(order="F")
    if values.size not in (1, x.count):
        raise ShapeError(f"fmu: start of {x.name} has {values.size} numbers, expected {x.count}")
    values = np.broadcast_to(values, x.count)
    return [
        Variable(
            name=name,
            kind=kind,
            role=role,
            place=f"offsetof(state, {place})" + (f" + {k} * sizeof({size})" if k else ""),
            unit=units[k],
            words=x.words or (f"{x.name} of {x.labels[k % x.rows]}" if len(x.labels) == x.rows else ""),
            start=float(values[k]),
        )
        for k, name in enumerate(names)
    ]
