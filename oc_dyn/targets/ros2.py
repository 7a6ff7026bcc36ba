"""od.ros2_controller: a C++17 example in the shape of a controller of ros2_control, around generated C."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..codegen.disk import write_texts
from ..codegen.names import checked_c_name
from ..codegen.product import Field
from ..codegen.product_files import Product, files_of
from ..codegen.templates import filled
from ..control.mpc import PredictiveController
from ..errors import ShapeError, UnknownName
from ..numbers import shortened
from ..text import c_comment, c_string
from ..types import StrPath
from .fmu import product_of

# what ros2_control calls the interfaces of a joint that have these units
_STUB = "ros2_control_stub"
_STATES = {"q": "position", "v": "velocity", "theta": "motor_position", "dtheta": "motor_velocity"}
_COMMANDS = {"tau": "effort", "tau_m": "effort"}
_PART = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")


@dataclass(frozen=True)
class RosController:
    """What ros2_controller wrote. sources: C and C++ files to compile; stub: folder of the stand-in for the interface,
    for the include path where there is no ROS; states, commands: names of the interfaces, in order."""

    name: str
    folder: Path
    sources: tuple[Path, ...]
    stub: Path
    states: tuple[str, ...]
    commands: tuple[str, ...]


def ros2_controller(
    what: Any, folder: StrPath, *, name: str | None = None, states: Mapping[str, str] | None = None,
    commands: Mapping[str, str] | None = None, joints: Sequence[str] | None = None, period: float | None = None,
    **options: Any,
) -> RosController:  # fmt: skip
    """Write the C of a controller, and around it a C++17 class in the shape of ros2_control's, into `folder`.

    An example to start from: it is compiled against a stand-in for the interface, in ros2_control_stub/, and has not
    been run with ros2_control itself. Without that folder in the include path it takes the real headers.
    what: a controller of od.mpc, or an elastic.Controller. name: start of all symbols and files; default that of the
        controller. period [s] of a law, and options: those of the generator of its C.
    states: {input: interface}, as {"q_now": "position", "v_now": "velocity"}, read for every joint; default for inputs
        called q, v, q_now, v_now, theta and dtheta. commands: {output: interface}; default "effort" for tau and tau_m.
        All other inputs, as references and targets, are filled by the owner of the class through input().
    joints: names of the joints; default those of the robot where the controller has them.
    Files: those of the C, <name>_ros2.hpp, <name>_ros2.cpp, ros2_control_stub/.
    Raises UnknownName, ShapeError, ModelError.
    """
    own = getattr(what, "name", None)
    name = checked_c_name("ros2_controller", str(own) if name is None else name, "give another name=")
    if isinstance(what, PredictiveController):
        if name != what.name:
            raise ShapeError(
                f"ros2_controller: name is {name!r}, the controller's {what.name!r}; give od.mpc(name=...)"
            )
        options = {**options, "joints": joints}
    timed, product = product_of(what, name, period, options, "ros2_controller")
    if timed:
        raise ShapeError(f"ros2_controller: got {shortened(what)}, expected a controller or a law")
    given = [x for x in product.structs[0][1] if not x.type]
    found = [x for x in product.structs[1][1] if not x.type]
    read = _interfaces("states", states, given, _STATES, joints)
    written = _interfaces("commands", commands, found, _COMMANDS, joints)
    texts = files_of(product) | _class(product, given, read, written)
    stub = _stub()
    write_texts("ros2_controller", folder, texts)
    for file, text in stub.items():
        write_texts("ros2_controller", Path(folder, _STUB, file).parent, {Path(file).name: text})
    folder = Path(folder)
    return RosController(
        name=name,
        folder=folder,
        sources=(*(folder / x for x in product.sources), folder / f"{name}_ros2.cpp"),
        stub=folder / _STUB,
        states=tuple(x for _, _, x in read),
        commands=tuple(x for _, _, x in written),
    )


def _interfaces(
    where: str, chosen: Mapping[str, str] | None, fields: Sequence[Field], usual: Mapping[str, str],
    joints: Sequence[str] | None,
) -> list[tuple[str, int, str]]:  # fmt: skip
    """[(member, row, name of the interface)]."""
    known = {x.name: x for x in fields}
    if chosen is None:
        own = {n: usual.get(n.removesuffix("_now")) for n in known}
        chosen = {n: x for n, x in own.items() if x is not None}
    out = []
    for member, interface in chosen.items():
        if member not in known:
            raise UnknownName(f"ros2_controller: {where}: port", member, known)
        if not isinstance(interface, str) or not _PART.fullmatch(interface):
            problem = f"interface of {member} is {shortened(interface)}, expected a name as 'position'"
            raise ShapeError(f"ros2_controller: {where}: {problem}")
        x = known[member]
        rows = list(x.labels or joints or ())
        if len(rows) != x.count:
            problem = f"{member} has {x.count} numbers, and {len(rows)} joints are known; give joints=[...]"
            raise ShapeError(f"ros2_controller: {where}: {problem}")
        out += [(member, k, f"{row}/{interface}") for k, row in enumerate(rows)]
    if not out:
        raise ShapeError(f"ros2_controller: no {where}; give {where}={{port: interface}} of {', '.join(known)}")
    return out


def _class(
    product: Product, given: Sequence[Field], read: Sequence[tuple[str, int, str]],
    written: Sequence[tuple[str, int, str]],
) -> dict[str, str]:  # fmt: skip
    """{file: text} of the class."""
    name, real = product.name, "double" if product.wide else f"{product.name}_real"
    others = [x.name for x in given if x.name not in {m for m, _, _ in read}]
    members = {x.name: x for x in (*given, *product.structs[1][1])}
    reads = [
        f"  {_entry('in_', members[m], row)} = static_cast<{real}>(state_interfaces_[{k}].get_value());"
        for k, (m, row, _) in enumerate(read)
    ]
    writes = [
        f"  command_interfaces_[{k}].set_value(static_cast<double>({_entry('out_', members[m], row)}));"
        for k, (m, row, _) in enumerate(written)
    ]
    words = {
        "name": name,
        "name_space": f"{name}_ros2",
        "title": c_comment(product.facts.title),
        "states": c_comment(", ".join(x for _, _, x in read)),
        "commands": c_comment(", ".join(x for _, _, x in written)),
        "others": c_comment(", ".join(others) or "none"),
        "n_states": len(read),
        "n_commands": len(written),
        "state_names": "".join(f"    {c_string(x)},\n" for _, _, x in read),
        "command_names": "".join(f"    {c_string(x)},\n" for _, _, x in written),
        "reads": "\n".join(reads),
        "writes": "\n".join(writes),
    }
    return {f"{name}_ros2.{end}": filled(f"ros2.{end}", __package__, **words) for end in ("hpp", "cpp")}


def _entry(struct: str, x: Field, row: int) -> str:
    if x.single:
        return f"{struct}.{x.name}"
    return f"{struct}.{x.name}[{row}]" if x.columns == 1 else f"{struct}.{x.name}[{row // x.rows}][{row % x.rows}]"


def _stub() -> dict[str, str]:
    """{file: text} of the stand-in, under the names of the headers that it stands for."""
    text = filled("ros2_stub.hpp", __package__)
    return {
        "controller_interface/controller_interface.hpp": text,
        "pluginlib/class_list_macros.hpp": "// See controller_interface.hpp beside it.\n#pragma once\n",
    }
