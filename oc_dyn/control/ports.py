"""Names of the inputs and outputs of a controller, which its C has as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

import casadi as ca

from ..errors import ShapeError

_OWN = ("memory", "next_memory", "objective", "violation", "status", "iterations", "seconds")
_ADDED = re.compile(r"real|int|t|in|out|parameters|status|VERSION|HASH|PERIOD|(\w+_)?SZ_(ARG|RES|IW|W)")


def check_ports(controller: str, parameters: Sequence[str], outputs: Sequence[str]) -> None:
    """ShapeError for names that cannot be those of a C function's inputs and outputs, all different, beside the types
    and macros that start with the name of the controller."""
    known: dict[str, str] = {}
    bounds: dict[str, str] = {}
    for what, names in (("parameter", parameters), ("output", outputs)):
        for name in names:
            if not ca.Function.check_name(name):
                raise ShapeError(f"mpc: {what} {name!r} cannot name a port in C; give it a name of letters and digits")
            other = _taken(controller, name) or (f"the {known[name]} of this name" if name in known else "")
            if other:
                raise ShapeError(f"mpc: {what} {name!r} would be called like {other}; give it another name")
            known[name] = what
            stem = name.rstrip("_")
            if what == "output" and bounds.setdefault(stem, name) != name:
                said = f"bounds of outputs {bounds[stem]!r} and {name!r} would both be called {stem}_lower in C"
                raise ShapeError(f"mpc: {said}; give one of them another name")


def _taken(controller: str, name: str) -> str:
    """What a port would be called like, "" for nothing."""
    if name in _OWN:
        return "what every controller has"
    if name.lower().startswith("casadi_"):
        return "what CasADi's own code has"
    if name.startswith(f"{controller}_") and _ADDED.fullmatch(name.removeprefix(f"{controller}_")):
        return f"a type or macro of the controller {controller}"
    return ""
