"""od.fmu: controllers, laws and planned motions as units of FMI 3.0 for co-simulation."""

from __future__ import annotations

from collections.abc import Mapping
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
from ..errors import ModelError, ShapeError, UnknownName
from ..numbers import as_floats
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
    timed, product = _product(what, _name(what, path, name), options)
    own = product.facts.sample_time or (1e-3 if timed else None)
    if period is None and own is None:
        raise ShapeError(f"fmu: {product.name} has no sample time of its own; give period= [s]")
    period = number("fmu: period", own if period is None else period, above=0)
    if not timed and product.facts.libraries:
        needed = ", ".join(x for x, _ in product.facts.libraries)
        raise ModelError("fmu", [f"{product.name} needs the library {needed}, which a unit cannot bring along"])
    texts = files_of(product)
    kept = {x: text for x, text in texts.items() if x in product.sources or x == f"{product.name}.h"}
    token = content_hash([*kept.values()], period, sorted((k, np.ravel(v).tolist()) for k, v in (start or {}).items()))
    variables = apart(_variables(product, timed, start or {}))
    unit = Unit(product.name, product.facts.title, kept, variables, period, timed, f"{{{token}}}")
    write_unit(unit, path, compiler=compiler, flags=flags, time_limit=time_limit)
    return path


def _name(what: Any, path: Path, name: str | None) -> str:
    own = what.name if isinstance(what, PredictiveController) else path.stem
    if name is not None and isinstance(what, PredictiveController) and name != own:
        raise ShapeError(f"fmu: name is {name!r}, but the controller is called {own!r}; give od.mpc(name=...)")
    return checked_c_name("fmu", own if name is None else name, "give another name=")


def _product(what: Any, name: str, options: Mapping[str, Any]) -> tuple[bool, Product]:
    """(whether the outputs are those of a time, Product)."""
    try:
        if isinstance(what, PredictiveController):
            return False, controller_product(what, **options)
        return True, player_product("fmu", what, name, **options)
    except TypeError as error:
        raise ShapeError(f"fmu: options {', '.join(options)}: {error}") from None


def _variables(product: Product, timed: bool, start: Mapping[str, Numbers]) -> list[Variable]:
    structs = [x for _, x in product.structs]
    inputs = [] if timed else [x for x in structs[0] if not x.type]
    for name in start:
        if name not in [x.name for x in inputs]:
            raise UnknownName("fmu: start: input", name, [x.name for x in inputs])
    real = "WIDE" if product.wide else "REAL"
    out = [v for x in inputs for v in _of(product, x, f"in.{x.name}", real, "INPUT", start.get(x.name))]
    for x in structs[1]:
        out += _of(product, x, f"out.{x.name}", "INTEGER" if x.type else "REAL", "OUTPUT")
    for x in structs[2] if len(structs) > 2 else ():
        out += _of(product, x, f"self.parameters.{x.name}", "REAL", "PARAMETER")
    if timed:
        out = [replace(v, continuous=v.kind != "INTEGER") for v in out]
    status = Variable("status", "INTEGER", "OUTPUT", "offsetof(state, status)", words="of the last step, 0 for ok")
    return [*out, status]


def _of(
    product: Product, x: Field, place: str, kind: str, role: str, start: Numbers | None = None
) -> list[Variable]:
    size = {"REAL": f"{product.name}_real", "WIDE": "double", "INTEGER": "int32_t"}[kind]
    names = names_of(x.name, x.rows, x.columns, x.labels)
    values = np.zeros(x.count) if start is None else as_floats(f"fmu: start of {x.name}", start).ravel(order="F")
    if values.size not in (1, x.count):
        raise ShapeError(f"fmu: start of {x.name} has {values.size} numbers, expected {x.count}")
    values = np.broadcast_to(values, x.count)
    units = x.unit.split(", ")
    units = units if len(units) == x.count else [x.unit] * x.count
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
