"""A unit of FMI 3.0 as a file: its C, compiled for this machine, its description, and its sources."""

from __future__ import annotations

import ctypes
import io
import platform
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..codegen.build import TIME_LIMIT, Command, Flags, checked_flags, find_compiler, opened, run_compiler, suffix
from ..codegen.templates import filled
from ..errors import ModelError, SolveError
from ..files import write_bytes
from ..text import c_comment, c_string
from ..types import StrPath
from .fmu_description import Variable, build_description, model_description

_DATE = (2000, 1, 1, 0, 0, 0)  # of the files inside: the same unit gives the same bytes
_SAMPLED = """    { /* what is due from the last step on, before the end of this one */
        const double due = ceil((end - it->now.start) / PERIOD - SLACK) - it->now.steps;
        if (!(due <= MOST)) return refused(it, "a step that is too long");
        for (; it->now.steps < ceil((end - it->now.start) / PERIOD - SLACK); it->now.steps += 1.0)
            it->now.status = %s_step(&it->now.self, &it->now.in, &it->now.out);
    }"""
_TIMED = "    it->now.in.t = {0};\n    it->now.status = {1}_step(&it->now.self, &it->now.in, &it->now.out);"


@dataclass(frozen=True)
class Unit:
    """What becomes a file. texts: {file: text} of C, with headers; variables: numbers of <name>_in, <name>_out and of
    the instance; period [s]; timed: whether the input t is the time, and the outputs are those at the end of a step;
    token: changes with the code."""

    name: str
    title: str
    texts: Mapping[str, str]
    variables: Sequence[Variable]
    period: float
    timed: bool
    token: str


def write_unit(
    unit: Unit, path: StrPath, *, compiler: Command | None = None, flags: Flags = ("-O2",),
    time_limit: float | None = TIME_LIMIT,
) -> None:  # fmt: skip
    """Write a Unit as a file, complete or not at all; SolveError without a compiler, or where it refuses."""
    c_file = f"{unit.name}_fmu.c"
    texts = {**unit.texts, c_file: _interface(unit)}
    sources = [x for x in texts if x.endswith(".c")]
    binary, variables = _library(unit, texts, sources, compiler, flags, time_limit)
    inside: dict[str, bytes] = {
        "modelDescription.xml": model_description(unit.name, unit.token, unit.title, variables, unit.period).encode(),
        f"binaries/{system()}/{unit.name}{suffix()}": binary,
        "sources/buildDescription.xml": build_description(unit.name, sources).encode(),
        **{f"sources/{file}": text.encode() for file, text in texts.items()},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in inside.items():
            archive.writestr(zipfile.ZipInfo(file, _DATE), data, zipfile.ZIP_DEFLATED)
    try:
        write_bytes(path, packed.getvalue())
    except OSError as error:
        raise ModelError(f"fmu {path}", [f"{error.strerror or error}; give another path"]) from None


def system() -> str:
    """Name of this kind of machine in FMI 3.0, such as x86_64-linux."""
    machine = {"amd64": "x86_64", "arm64": "aarch64", "i686": "x86"}
    kind = platform.machine().lower()
    place = {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")
    return f"{machine.get(kind, kind)}-{place}"


def _interface(unit: Unit) -> str:
    """Text of <name>_fmu.c."""
    name = unit.name
    rows = [
        f"    {{{v.place}, {v.kind}, {v.role}}}, /* {k}: {c_comment(v.name)} */"
        for k, v in enumerate(unit.variables, 1)
    ]
    starts = [
        f"    *({_TYPES[v.kind].format(name)} *)((char *)s + variables[{k}].place) = {_number(v, name)};"
        for k, v in enumerate(unit.variables)
        if v.role == "INPUT" and v.start
    ]
    do_step = _TIMED.format("end", name) if unit.timed else _SAMPLED % name
    return filled(
        "fmu.c",
        __package__,
        name=name,
        token=c_string(unit.token),
        period=f"{unit.period:.17g}",
        variables="\n".join(rows),
        starts="\n".join(starts),
        first=_TIMED.format("it->now.start", name) if unit.timed else "",
        do_step=do_step,
    )


_TYPES = {"REAL": "{}_real", "WIDE": "double", "INTEGER": "int32_t"}


def _number(v: Variable, name: str) -> str:
    return f"({_TYPES[v.kind].format(name)}){v.start:.17g}"


def _library(
    unit: Unit, texts: Mapping[str, str], sources: Sequence[str], compiler: Command | None, flags: Flags,
    time_limit: float | None,
) -> tuple[bytes, list[Variable]]:  # fmt: skip
    """(bytes of the shared library, which shows the functions of the interface alone; variables with the values that
    parameters have in it)."""
    words, flags = find_compiler(compiler), checked_flags("fmu", flags)
    position = [] if sys.platform == "win32" else ["-fPIC", "-fvisibility=hidden"]
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
        for file, text in texts.items():
            Path(place, file).write_text(text, encoding="utf-8")
        program = f"{unit.name}{suffix()}"
        command = [
            *words,
            "-std=c99",
            *flags,
            "-ffp-contract=off",
            *position,
            "-shared",
            "-o",
            program,
            *sources,
            "-lm",
        ]
        run_compiler(command, place, time_limit)
        path = Path(place, program)
        return path.read_bytes(), _with_parameters(unit, path)


def _with_parameters(unit: Unit, path: Path) -> list[Variable]:
    """The variables, parameters with the values that they have in a new instance of the library."""
    at = [k for k, v in enumerate(unit.variables) if v.role == "PARAMETER"]
    if not at:
        return list(unit.variables)
    library = opened(path)
    library.fmi3InstantiateCoSimulation.restype = ctypes.c_void_p
    text, none = unit.token.encode(), ctypes.c_void_p(None)
    no = ctypes.c_bool(False)
    instance = ctypes.c_void_p(
        library.fmi3InstantiateCoSimulation(
            b"one", text, none, no, no, no, no, none, ctypes.c_size_t(0), none, none, none
        )
    )
    count = ctypes.c_size_t(len(at))
    references, values = (ctypes.c_uint32 * len(at))(*(k + 1 for k in at)), (ctypes.c_double * len(at))()
    status = library.fmi3GetFloat64(instance, references, count, values, count)
    library.fmi3FreeInstance(instance)
    if status:
        raise SolveError(f"fmu: {unit.name}: its parameters cannot be read", status=status)
    known = dict(zip(at, values, strict=True))
    return [replace(v, start=known.get(k, v.start)) for k, v in enumerate(unit.variables)]
