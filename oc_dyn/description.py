"""od.describe: what a quantity is, what it takes and gives, and which methods compute it, as a text.

Shapes, units, frames and names come from the Port records, orders and sources from those of quantity and methods.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import robots
from .function import ports
from .ports import COUNTED
from .registry import OPTIONS, Port, Quantity, choose, get, method_rows, orders, quantities
from .text import in_columns, terminal
from .types import AnyRobot, Option

_WIDTH = 100
_LEAST = 30  # characters of a column of text
_ADD_PORTS = {"external_wrenches": True, "parameters": "symbolic", "gravity": True}  # and values with which they do


def describe(quantity: str, robot: AnyRobot | None = None, order: int = 0, **options: Option) -> str:
    """Text on a quantity: equation, arguments and results (shape, unit, meaning, frame), options, errors, methods.

    robot: shapes are its numbers; without one they are symbolic: nq, nv, "6 x bodies". order, options: as for
    od.function; of options that must be given one possible value is shown where they are not.
    Raises UnknownName for a quantity or option that is not there; OrderError, ShapeError and ModelError as od.ports.
    """
    record = get(quantity)
    quantity = record.name
    example, needed = _example(record, robot)
    options = {**needed, **options}
    inputs, outputs = ports(example, quantity, order, **options)
    shown = _Shown(symbolic=robot is None)
    whose = f" of {terminal(robot.name)}" if robot is not None else ""
    said = ", ".join(f"{name}={terminal(repr(value))}" for name, value in options.items())
    at = f"{whose} at order {order}{', with ' if said else ''}{said}"
    parts = [
        f"{quantity}: {record.summary}",
        "\n".join(_wrapped(record.equation, "    ", "    ")),
        f"Arguments{at}\n{shown.ports(inputs)}",
        *_added(shown, record, example, order, options, inputs),
        f"Results\n{shown.ports(outputs)}",
        shown.legend(),
        _section("Notes", [*_per_order(record, example, order, options, inputs, outputs), *record.notes]),
        _section("Options", [_option(record, name) for name in record.options]),
        _section("Errors", _errors(record)),
        _methods(record, example, order, options),
        _related(record),
    ]
    return "\n\n".join(part for part in parts if part)


def _example(record: Quantity, robot: Any) -> tuple[Any, dict[str, Any]]:
    """(robot, options) that ports are shown for."""
    if record.example is None:
        return robot or robots.planar_2r(), {}
    example, options = record.example(robot)
    return example, {name: value for name, value in options.items() if name in record.options}


class _Shown:
    """Ports as lines; what sizes are called is noted for a legend."""

    def __init__(self, symbolic: bool) -> None:
        self.symbolic = symbolic
        self.sizes: set[str] = set()

    def ports(self, records: Sequence[Port]) -> str:
        """A line per port: name, shape, unit, meaning."""
        rows = [(p.name, self.shape(p), f"[{p.unit}]", p.meaning) for p in records]
        if not rows:
            return "    none"
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        if _WIDTH - sum(widths) - 10 < _LEAST:  # what it means goes below
            heads = in_columns([row[:3] for row in rows]).splitlines()
            told = (_wrapped(terminal(row[3]), " " * 8, " " * 8) for row in rows)
            return "\n".join(x for head, lines in zip(heads, told, strict=True) for x in (f"    {head}", *lines))
        return textwrap.indent(in_columns([x for row in rows for x in _folded(row, widths)]), "    ")

    def shape(self, port: Port) -> str:
        """Rows, or rows x columns where there is more than one."""
        sizes = [str(x) if self.symbolic else str(int(x)) for x in port.shape]
        self.sizes.update(*(x.replace("*", " ").split() for x in sizes))
        return sizes[0] if port.shape[1] == 1 and sizes[1] == "1" else " x ".join(sizes)

    def legend(self) -> str:
        """What the names of sizes mean."""
        said = [f"{name}: {meaning}" for name, meaning in COUNTED.items() if name in self.sizes]
        return "\n".join(_wrapped("; ".join(said))) if said else ""


def _folded(row: tuple[str, ...], widths: Sequence[int]) -> list[tuple[str, ...]]:
    """The row, with its last cell folded onto rows of its own."""
    lines = textwrap.wrap(terminal(row[-1]), _WIDTH - sum(widths) - 10) or [""]
    return [(*row[:-1], lines[0]), *(("", "", "", line) for line in lines[1:])]


def _added(
    shown: _Shown, record: Quantity, example: Any, order: int, options: dict[str, Any], inputs: Sequence[Port],
) -> Iterator[str]:  # fmt: skip
    """Sections of the arguments that options add."""
    there = {p.name for p in inputs}
    for name, value in _ADD_PORTS.items():
        if name in record.options and name not in options:
            more = [p for p in ports(example, record.name, order, **{**options, name: value})[0] if p.name not in there]
            yield f"Further arguments with {name}={value!r}\n{shown.ports(more)}"


def _per_order(
    record: Quantity, example: Any, order: int, options: dict[str, Any], inputs: Sequence[Port],
    outputs: Sequence[Port],
) -> Iterator[str]:  # fmt: skip
    """What one order more adds."""
    if record.max_order is not None:
        return
    more = ports(example, record.name, order + 1, **options)
    told = []
    for what, now, then in zip(("arguments", "results"), (inputs, outputs), more, strict=True):
        names = [p.name for p in then if p.name not in {x.name for x in now}]
        told += [f"{what} {', '.join(names)}"] if names else []
    yield f"Results of lower orders are included; order {order + 1} adds the {' and the '.join(told)}."


def _option(record: Quantity, name: str) -> str:
    default, meaning = OPTIONS[name]
    return f"{name}={default!r}: {record.meanings.get(name, meaning)}"


def _errors(record: Quantity) -> Iterator[str]:
    """What is refused, as far as it depends on the quantity."""
    top = "" if record.max_order is None else f"an order above {record.max_order}, or "
    yield f"OrderError: {top}a method is named that cannot do the order or the robot"
    if record.of == "robot" and "frame" not in record.options:
        yield "ModelError: a robot without moving joints"
    if record.of != "robot":
        yield f"ModelError: a robot that is no {record.of}"
    if record.solves:
        yield "ModelError: the mass matrix is singular, everywhere or at a q given in numbers; the joints are named"
    yield from record.errors


def _methods(record: Quantity, example: Any, order: int, options: dict[str, Any]) -> str:
    """Table of the methods, the one that is taken at this order marked."""
    taken = choose(record.name, example, order, coriolis=options.get("coriolis")).name
    table = in_columns([("name", "orders", "kind", "source"), *method_rows(record.name, taken)])
    heading = f"Methods, orders {orders(record.name)}; the default is what is taken at order {order}"
    return f"{heading}\n{textwrap.indent(table, '    ')}"


def _related(record: Quantity) -> str:
    """Names of quantities that hold derivatives of this one."""
    names = [x for x in quantities() if x.startswith(f"{record.name}_")]
    return "\n".join(_wrapped(f"Derivatives: {', '.join(names)}")) if names else ""


def _section(title: str, sentences: Iterable[str]) -> str:
    lines = [line for sentence in sentences for line in _wrapped(sentence, "    ", "        ")]
    return "\n".join([title, *lines]) if lines else ""


def _wrapped(text: str, first: str = "", then: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=then, break_long_words=False)
