"""Solutions in files: the numbers that were found, as an npz of arrays and JSON; nothing of a file is run or trusted.

A file says which problem it is of by names, sizes, bounds and scales, and by the values of the objective and of all
rows of the program at the solution: a Problem that gives the same ones is the one that was solved, or as good.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from dataclasses import asdict, is_dataclass
from typing import Any

import casadi as ca
import numpy as np

from .._version import __version__
from ..errors import FileError, OrderError, ShapeError, UnknownName
from ..files import parsed_json, read_npz, write_bytes
from ..text import json_text
from . import integrators
from .program_names import ProgramNames
from .solver import SolverResult
from .worst_rows import function_of

_FORMAT = "oc_dyn solution 1"
_FAMILIES: dict[str, Any] = {
    name: x for name, x in vars(integrators).items() if is_dataclass(x) and hasattr(x, "with_degree")
}
_SCHEMES = ("legendre", "radau")
_SAME = 1e-8  # rows of the program that are the same but for rounding
_ARRAYS = {  # that a file has, besides bounds of limits; whether they are finite
    "t": True, "x": True, "u": True, "durations": True, "relative_lengths": True, "unknowns": True, "lam_x": True,
    "lam_g": True, "parameters": True, "lower": False, "upper": False, "rows": False, "objective": False,
}  # fmt: skip
_ENTRIES: dict[str, Any] = {  # of the metadata, and what they are
    "format": str, "versions": dict, "method": dict, "phases": list, "problem": dict, "limits": list, "status": str,
    "success": bool, "iterations": int, "seconds": dict, "local_optima": list, "rounds": list, "sha256": str,
}  # fmt: skip
_CHANGED = ("objective", "constraints")  # in an Opti: the entry "changed" of the metadata, which few files have


def save(solution, path):
    """Write a Solution; see Solution.save."""
    _check_ending(path)
    made, names = solution.transcribed, list(solution.limit_bounds)
    arrays = {
        **{name: getattr(solution, name) for name in ("t", "x", "u", "durations", "relative_lengths", "unknowns")},
        **dict(zip(("lam_x", "lam_g"), solution.multipliers, strict=True)),
        **dict(zip(("lower", "upper"), solution.bounds, strict=True)),
        "parameters": solution.parameters,
        "rows": _rows(made, solution.unknowns, solution.parameters),
        "objective": solution.objective,
    }
    for k, name in enumerate(names):
        arrays |= {f"limit_{k}": np.array(solution.limit_bounds[name])}
    arrays = {name: np.array(x, float) for name, x in arrays.items()}
    for name, finite in _ARRAYS.items():
        if finite and not np.isfinite(arrays[name]).all():
            raise ShapeError(f"save: {name} of the solution has numbers that are not finite, as its solver left them")
    meta = {
        "format": _FORMAT,
        "versions": {"oc_dyn": __version__, "casadi": ca.__version__, "python": platform.python_version()},
        "method": told_method(solution.method),
        "phases": _phases(solution.description),
        "problem": _facts(made),
        "limits": names,
        "status": solution.status,
        "success": bool(solution.success),
        "iterations": int(solution.iterations),
        "seconds": {str(k): float(x) for k, x in solution.seconds.items()},
        "local_optima": [[_or_none(f), str(status), int(n)] for f, status, n in solution.local_optima],
        "rounds": [{k: _or_none(x) for k, x in asdict(r).items()} for r in solution.rounds],
    }
    if changed := [what for what in _CHANGED if getattr(solution, f"{what}_changed")]:
        meta["changed"] = changed
    meta["sha256"] = _digest(meta, arrays)
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.array(json_text(meta)), **arrays)
    write_bytes(path, buffer.getvalue())


def load(path, problem, method, make, rounds):
    """What make(problem, transcribed, found, given) gives of a file that `save` wrote; see Problem.load. rounds: makes
    those of refinement from [{name: value}]."""
    _check_ending(path)
    source = os.fspath(path)
    meta, arrays = _read(source)
    if method is None:
        method = _method(source, meta["method"])
    problem = _on_mesh(source, problem, meta["phases"])
    made = problem.transcribed(method)
    limits = {name: tuple(arrays[f"limit_{k}"]) for k, name in enumerate(meta["limits"])}
    _check_facts(source, meta["problem"], _facts(made))
    _check_sizes(source, made, arrays)
    _check_limits(source, made, limits)
    _check_rows(source, made, arrays)
    found = SolverResult(
        arrays["unknowns"], arrays["lam_x"], arrays["lam_g"], float(arrays["objective"]), meta["status"],
        meta["success"], meta["iterations"], dict(meta["seconds"]),
    )  # fmt: skip
    given = {"p": arrays["parameters"], "lbx": arrays["lower"], "ubx": arrays["upper"]}
    solution = make(problem, made, found, given)
    solution.limit_bounds = limits
    for what in meta.get("changed", ()):
        setattr(solution, f"{what}_changed", True)
    if meta["local_optima"]:
        solution.local_optima = [(np.nan if f is None else f, s, n) for f, s, n in meta["local_optima"]]
    try:
        solution.rounds = rounds(meta["rounds"])
    except (TypeError, ValueError) as error:
        raise FileError(source, [f"its metadata: rounds: {error}"]) from None
    for name in ("t", "x", "u", "durations", "relative_lengths"):
        here, there = np.asarray(getattr(solution, name), float), arrays[name]
        if here.shape != there.shape or not np.allclose(here, there, rtol=1e-12, atol=1e-12):
            raise FileError(source, [f"its {name} are not those that its unknowns give in this problem"])
    return solution


def _check_ending(path):
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending != ".npz":
        raise UnknownName("file format of a solution", ending or os.fspath(path), (".npz",))


def _or_none(x):
    """x as JSON has it: None for numbers that are not finite."""
    if isinstance(x, tuple):
        return [int(y) for y in x]
    return x if isinstance(x, (str, int)) else float(x) if np.isfinite(x) else None


# -- what problem it is of ----------------------------------------------------------------------------------------


def told_method(method):
    """{"name"} of a method of integrators.METHODS, {"family", "arguments"} of another one that is made there, {} of a
    function of the caller's own."""
    name = next((name for name, x in integrators.METHODS.items() if x == method), None)
    if name is not None:
        return {"name": name}
    if type(method) in _FAMILIES.values():
        return {"family": type(method).__name__, "arguments": asdict(method)}
    return {}


def _method(source, told):
    name, family, arguments = told.get("name"), told.get("family"), told.get("arguments")
    if isinstance(name, str) and name in integrators.METHODS:
        return integrators.METHODS[name]
    plain = isinstance(arguments, dict) and all(type(x) is int or x in _SCHEMES for x in arguments.values())
    if plain and isinstance(family, str) and family in _FAMILIES:
        try:
            method = _FAMILIES[family](**arguments)
            if method.with_degree(method.degree) == method:  # what makes it checks its arguments
                return method
        except (TypeError, ValueError, AttributeError) as error:
            raise FileError(source, [f"its method {family}: {error}"]) from None
    if told:
        raise FileError(source, [f"its method {str(name or family)[:60]!r} is not known here"])
    raise FileError(source, ["it was solved by a function of the caller's own; give it, load(..., method=step)"])


def _phases(description):
    """[{"nodes", "shares": of the intervals where they differ}]."""
    return [
        {"nodes": phase.nodes, "shares": None if phase.shares is None else [float(x) for x in phase.shares]}
        for phase in description.phases
    ]


def _on_mesh(source, problem, phases):
    """The Problem, or it on the intervals of the file."""
    mine = _phases(problem.description)
    if len(phases) != len(mine):
        raise FileError(source, [f"it is of a problem with {len(phases)} phases, this one has {len(mine)}"])
    if phases == mine:
        return problem
    nodes, mesh = [], []
    for phase in phases:
        n, shares = phase.get("nodes"), phase.get("shares")
        if type(n) is not int or not 1 <= n <= 10**6:
            raise FileError(source, ["its metadata: phases has numbers of nodes that are none"])
        if shares is not None and not (isinstance(shares, list) and len(shares) == n and _positive(shares)):
            raise FileError(source, ["its metadata: phases has shares that are no lengths of its intervals"])
        nodes.append(n)
        mesh.append("uniform" if shares is None else np.append(np.cumsum([0.0, *shares[:-1]]), 1.0))
    try:
        return problem.with_mesh(nodes, mesh=mesh)
    except (OrderError, ShapeError) as error:
        raise FileError(source, [f"its mesh of {nodes} intervals cannot be that of this problem: {error}"]) from None


def _positive(shares):
    return all(type(x) is float and 0 < x < 1 for x in shares) and abs(sum(shares) - 1) < 1e-9


def _facts(made):
    """{what the problem has: digest of its numbers}, those that decide what its unknowns mean and what is checked."""
    description, facts = made.description, {}
    for what, some in (("state", made.states), ("control", made.controls)):
        facts |= {f"{what} {v.name!r}": _short(v.size, v.lower, v.upper, v.scale, v.scaled) for v in some}
    for what, given in (("parameter", description.parameters), ("varying parameter", description.varying)):
        facts |= {f"{what} {name!r}": _short(symbol.numel()) for name, symbol in given}
    for k, duration in enumerate(made.durations):
        facts[f"the duration of phase {k}"] = _short(*made.duration_numbers(k), duration.free)
    for phase in made.phases:
        rows = [(r.name or f"number {i}", r, None) for i, r in enumerate(phase.rows)]
        rows += [(w.label[0], w.constraint, (w.share, w.last)) for w in phase.within]
        rows += [(r.name, r, (r.fraction, 0)) for r in phase.node_rows]
        for i, (name, r, place) in enumerate(rows):
            facts[f"limit {name!r} of phase {phase.number} (row {i})"] = _short(r.lower, r.upper, *(place or ()))
    for where in ("start", "goal"):
        for i, r in enumerate(getattr(description, f"{where}_rows")):
            facts[f"{where}, row {i}"] = _short(r.lower, r.upper)
    for c in description.bernstein:
        facts[f"chain {c.name!r}"] = _short(c.order, c.size)
    for where, names in description.fixed.items():
        facts[f"what is fixed at the {where}"] = _short(list(" ".join(sorted(names)).encode()))
    facts["a free mesh"] = _short(made.free_mesh)
    return facts


def _short(*numbers):
    found = hashlib.sha256()
    for x in numbers:
        x = np.asarray(x, "<f8")
        found.update(repr(x.shape).encode() + np.ascontiguousarray(x + 0.0).tobytes())
    return found.hexdigest()[:16]


def _check_facts(source, there, here):
    for name in there:
        if name not in here:
            raise FileError(source, [f"it is of a problem with {name}, which this one does not have"])
    for name in here:
        if name not in there:
            raise FileError(source, [f"this problem has {name}, which that of the file does not have"])
    for name, value in there.items():
        if value != here[name]:
            what = "" if name.startswith(("a free mesh", "what is")) else ": its size, bounds or scale"
            raise FileError(source, [f"{name}{what} in the file is not what it is in this problem"])


def _check_sizes(source, made, arrays):
    n, m = made.assembly.size
    p = made.assembly.nlp["p"].numel()
    sizes = {"unknowns": n, "lam_x": n, "lower": n, "upper": n, "lam_g": m, "parameters": p, "rows": m + 1}
    for name, size in sizes.items():
        if arrays[name].shape != (size,):
            raise FileError(source, [f"{name} has the shape {arrays[name].shape}, this problem's ({size},)"])


def _check_limits(source, made, limits):
    """FileError for bounds that a limit or chain of this name and size cannot have."""
    description, sizes = made.description, {}
    for phase in description.phases:
        for row in (*phase.rows, *phase.node_rows, *(w.constraint for w in phase.within)):
            sizes[row.name] = row.lower.size
    sizes |= {name: chain.size for chain in description.bernstein for name in chain.names}
    for name, (lower, upper) in limits.items():
        if lower.size != sizes.get(name, lower.size if name in made.numbers.bounds else -1):
            here = sizes.get(name, "none")
            raise FileError(source, [f"limit {name!r} has {lower.size} rows, in this problem {here}"])
        if np.any(lower > upper):
            raise FileError(source, [f"limit {name!r} has a lower bound above its upper one"])


def _rows(made, unknowns, parameters):
    """Objective and rows of the program."""
    parts = (function_of(made, what)(unknowns, parameters).full().ravel() for what in ("cost", "rows"))
    return np.concatenate([*parts])


def _check_rows(source, made, arrays):
    here, there = _rows(made, arrays["unknowns"], arrays["parameters"]), arrays["rows"]
    same = np.isclose(here, there, rtol=_SAME, atol=_SAME, equal_nan=True)
    if not same.all():
        k = int(np.argmin(same))
        name = "its objective" if k == 0 else _called(*ProgramNames(made).row(k - 1))
        told = f"{name} is {there[k]:.9g} at the solution in the file, {here[k]:.9g} in this problem"
        raise FileError(source, [f"it is of a problem with other equations: {told}"])


def _called(label, node):
    """What a row of the program is called."""
    if label.share == 1.0:
        return f"the step of {label.name} on interval {node}"
    if label.what == "dynamics":
        return f"the equation of the method for {label.name} on interval {node}"
    name = repr(label.name) if label.what == "limit" else f"of {label.name}"
    return f"{label.what} {name} at node {node}"


# -- what is read -------------------------------------------------------------------------------------------------


def _read(source):
    """(metadata, arrays), every one of them what it should be."""
    arrays = read_npz(source, "solution")
    text = arrays.pop("meta", None)
    if text is None or text.ndim or text.dtype.kind != "U":
        raise FileError(source, ["it has no metadata; it was not written by Solution.save"])
    try:
        meta = parsed_json(source, str(text))
    except FileError as error:
        raise FileError(source, [f"its metadata cannot be read: {'; '.join(error.problems)}"]) from None
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise FileError(source, [f"its metadata is not that of {_FORMAT!r}; it was not written by Solution.save"])
    for key, kind in _ENTRIES.items():
        if type(meta.get(key)) is not kind:
            raise FileError(source, [f"its metadata: {key} is missing, or no {kind.__name__}"])
    _check_entries(source, meta)
    names = [*_ARRAYS, *(f"limit_{k}" for k in range(len(meta["limits"])))]
    for name in names:
        if name not in arrays or arrays[name].dtype.kind != "f":
            raise FileError(source, [f"table {name!r} is {'not made of numbers' if name in arrays else 'missing'}"])
    arrays = {name: np.array(arrays[name], float) for name in names}
    if meta["sha256"] != _digest(meta, arrays):
        raise FileError(source, ["its numbers or its metadata are not those that were written; take the file anew"])
    _check_arrays(source, arrays)
    return meta, arrays


def _check_arrays(source, arrays):
    """FileError for numbers that are none, and for shapes that no solution of any problem has."""
    for name, x in arrays.items():
        blank = name in ("objective", "rows")  # of a last iterate they may be no numbers
        if not (np.isfinite(x).all() if _ARRAYS.get(name) else blank or not np.isnan(x).any()):
            raise FileError(source, [f"table {name!r} has a number that is not finite"])
        if name.startswith("limit_") and (x.ndim != 2 or len(x) != 2):
            raise FileError(source, [f"table {name!r} has the shape {x.shape}, expected a lower and an upper row"])
    if arrays["objective"].shape != ():
        raise FileError(source, [f"table 'objective' has the shape {arrays['objective'].shape}, expected one number"])


def _check_entries(source, meta):
    """FileError for entries of the metadata that are not what `save` writes."""

    def refuse(what):
        raise FileError(source, [f"its metadata: {what}"])

    unknown = set(meta) - set(_ENTRIES) - {"changed"}
    if unknown:
        refuse(f"it has an entry {min(unknown)[:60]!r} that is not known")
    if not all(isinstance(x, dict) for x in meta["phases"]):
        refuse("phases is no list of objects")
    if not isinstance(changed := meta.get("changed", []), list) or not all(x in _CHANGED for x in changed):
        refuse("changed is no list of what an Opti may change")
    if not all(isinstance(x, str) for x in meta["limits"]) or len(set(meta["limits"])) != len(meta["limits"]):
        refuse("limits is no list of names, no two alike")
    if not all(isinstance(x, str) for x in meta["problem"].values()):
        refuse("problem is no list of digests")
    if not all(isinstance(x, float) for x in meta["seconds"].values()):
        refuse("seconds is no list of numbers")
    for x in meta["local_optima"]:
        kinds = [type(y) for y in x] if isinstance(x, list) else []
        if len(kinds) != 3 or kinds[0] not in (float, type(None)) or kinds[1:] != [str, int]:
            refuse("local_optima is no list of objectives, statuses and iterations")


def _digest(meta, arrays):
    """Of all that the file holds."""
    told = {k: x for k, x in meta.items() if k != "sha256"}
    found = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name in sorted(arrays):
        x = arrays[name]
        found.update(f"{name} {x.shape}".encode() + np.ascontiguousarray(x, "<f8").tobytes())
    return found.hexdigest()
