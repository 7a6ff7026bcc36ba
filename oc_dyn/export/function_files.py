"""Functions of a robot as files of CasADi, with a manifest that says what their ports are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca

from .. import files
from .._version import __version__
from ..errors import FileError, ModelError, ShapeError
from ..function import checked_name, function
from ..model.robot import Robot, check_robot
from ..types import AnyRobot, StrPath
from ..validation import flag

MANIFEST = "manifest.json"
_FORMAT = "oc_dyn functions 1"
USUAL = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def functions(
    robot: AnyRobot, folder: StrPath, quantities: Sequence[str] | Mapping[str, Any] = USUAL, *, ode: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Write Functions of a robot to a folder, each as "<name>.casadi", and "manifest.json"; the manifest as a dict.

    quantities: names of quantities, or {name of the Function: quantity, or a dict of the arguments of od.function:
        {"tool": {"quantity": "frame_pose", "frame": "tool0", "order": 1}}}.
    ode: whether there is "ode", too: (x (nq + nv,), u (nv,)) -> xdot, x = [q; v] and u the torques, which is what
        rockit, acados and integrators take. Not for robots with loops.
    A file is read without this package: f = casadi.Function.load("model/inverse_dynamics.casadi"), f(q=q, v=v, dv=dv);
    or by load_functions(folder). CasADi reads what the same or an older version of it wrote. Registered derivatives do
    not survive, AD takes their place. For C see od.codegen.
    Raises UnknownName, ShapeError, OrderError as od.function does; OSError where the folder cannot be written.
    """
    ode = flag("export.functions: ode", ode)
    asked = _asked(quantities)
    made: dict[str, ca.Function] = {}
    made |= {name: function(robot, name=checked_name(name), **arguments) for name, arguments in asked.items()}
    if ode and isinstance(robot, Robot):
        if "ode" in made:
            raise ShapeError("export.functions: a Function is called 'ode'; give ode=False, or another name")
        made["ode"] = _ode(robot)
    manifest = {
        "format": _FORMAT, "robot": getattr(robot, "name", ""),
        "oc_dyn": __version__, "casadi": ca.CasadiMeta.version(),
        "coordinates": list(getattr(robot, "coordinate_names", ())),
        "velocities": list(getattr(robot, "velocity_names", ())),
        "functions": {name: _entry(name, f, asked.get(name)) for name, f in made.items()},
    }  # fmt: skip
    with files.together(folder) as part:
        for name, f in made.items():
            ca.Function(f).save(str(part / f"{name}.casadi"))
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        files.write_text(part / MANIFEST, text)
    return manifest


def load_functions(folder: StrPath) -> dict[str, ca.Function]:
    """{name: casadi.Function} of a folder that export.functions wrote.

    Raises FileError naming the file that is missing, is none, or has other ports than the manifest says.
    """
    path = Path(folder) / MANIFEST
    manifest = files.read_json(path)
    entries = manifest.get("functions") if isinstance(manifest, dict) and manifest.get("format") == _FORMAT else None
    if not isinstance(entries, dict):
        raise FileError(path, [f"is no manifest of functions: its format is to be {_FORMAT!r}"])
    out = {}
    for name, entry in entries.items():
        file = path.parent / f"{checked_name(name)}.casadi"
        files.read_bytes(file)  # whether there is a regular file of a sane size
        try:
            out[name] = ca.Function.load(str(file))
        except (RuntimeError, UnicodeDecodeError) as error:  # the second of an error whose text is of the file
            said = f"CasADi {ca.CasadiMeta.version()} cannot read it, it was written by {manifest.get('casadi')}"
            raise FileError(file, [f"{said}: {' '.join(str(error).split())[-200:]}"]) from None
        for side, names in (("inputs", out[name].name_in()), ("outputs", out[name].name_out())):
            if [x.get("name") for x in entry.get(side, [])] != names:
                raise FileError(file, [f"its {side} are {', '.join(names)}, which the manifest does not say"])
    return out


def _asked(quantities: Any) -> dict[str, dict[str, Any]]:
    """{name of a Function: arguments of od.function}."""
    if isinstance(quantities, str):
        quantities = (quantities,)
    if not isinstance(quantities, Mapping):
        quantities = {str(x): x for x in quantities}
    out = {}
    for name, what in quantities.items():
        arguments = dict(what) if isinstance(what, Mapping) else {"quantity": what}
        if "quantity" not in arguments:
            raise ShapeError(f"export.functions: {name!r} has no quantity; give {{'quantity': ..., ...}}")
        out[name] = arguments
    if not out:
        raise ShapeError("export.functions: no quantity is asked for; od.quantities() lists them")
    return out


def _ode(robot: Robot) -> ca.Function:
    """xdot = [dq/dt; forward dynamics]."""
    check_robot("export.functions", robot)
    if not robot.nv:
        raise ModelError(f"export.functions({robot.name})", ["it has no joint that moves; give ode=False"])
    x, u = ca.SX.sym("x", robot.nq + robot.nv), ca.SX.sym("u", robot.nv)
    q, v = x[: robot.nq], x[robot.nq :]
    dv = function(robot, "forward_dynamics")(q=q, v=v, tau=u)["dv"]
    rate: Any = robot.configuration_rate(q, v)
    return ca.Function("ode", [x, u], [ca.vertcat(rate, dv)], ["x", "u"], ["xdot"])


def _entry(name: str, f: ca.Function, arguments: dict[str, Any] | None) -> dict[str, Any]:
    """What the manifest says of a Function."""
    facts = getattr(f, "facts", {})

    def ports(names: list[str], size: Any) -> list[dict[str, Any]]:
        out = []
        for i, port in enumerate(names):
            unit, rows = facts.get(port, ("", ()))
            told = {"name": port, "shape": list(size(i)), "unit": unit, "rows": list(rows)}
            out.append({k: x for k, x in told.items() if x or k in ("name", "shape")})
        return out

    plain = (str, int, float, bool, type(None))
    told = {k: x if isinstance(x, plain) else str(x) for k, x in (arguments or {}).items()}
    entry: dict[str, Any] = {"file": f"{name}.casadi", **({"made_by": told} if told else {})}
    return {**entry, "inputs": ports(f.name_in(), f.size_in), "outputs": ports(f.name_out(), f.size_out)}
