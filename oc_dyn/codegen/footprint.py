"""How large generated code is: sections of what gcc makes of it, and the stack that its entries need."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SolveError
from ..types import StrPath
from .build import Command, Flags, checked_flags, find_compiler, run, run_compiler

FLAGS = ("-std=c99", "-O2")
_NODE = re.compile(r'^node: \{ title: "([^"]*)" label: "[^"]*?(?:(\d+) bytes \((\w[^)]*)\))?"', re.MULTILINE)
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', re.MULTILINE)


@dataclass(frozen=True)
class Footprint:
    """Bytes of code and constants (text), of variables with a value (data), of those without one (bss). stack: {entry:
    bytes of its deepest chain of calls}, without what functions of libraries take; libraries: their names.
    recursive: functions that call themselves, directly or not; unbounded: those whose stack is not known."""

    text: int
    data: int
    bss: int
    stack: dict[str, int]
    libraries: tuple[str, ...]
    recursive: tuple[str, ...]
    unbounded: tuple[str, ...]

    def __str__(self) -> str:
        deepest = ", ".join(f"{name} {size}" for name, size in self.stack.items())
        return f"text {self.text}, data {self.data}, bss {self.bss} bytes; stack: {deepest} bytes"


def footprint(
    sources: Iterable[StrPath],
    entries: Sequence[str],
    *,
    flags: Flags = FLAGS,
    compiler: Command | None = None,
) -> Footprint:
    """Footprint of C sources, compiled by gcc, one for another machine as well. entries: functions that are called.

    Raises SolveError without a compiler that tells the stack of functions (-fcallgraph-info=su of gcc 10 or later).
    """
    words, options = find_compiler(compiler), checked_flags("footprint", flags)
    paths = [Path(x).resolve() for x in sources]
    graph, objects = "", []
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
        for k, path in enumerate(paths):
            part = Path(place, f"{k}.o")
            command = [*words, *options, "-fcallgraph-info=su", f"-I{path.parent}", "-c", "-o", str(part), str(path)]
            run_compiler(command, place)
            told = part.with_suffix(".ci")
            if not told.exists():
                raise SolveError(f"{words[0]} does not tell the stack of functions; take gcc 10 or later")
            graph += told.read_text(encoding="utf-8")
            objects.append(str(part))
        sections = _sections(words[0], objects, place)
    return _footprint(graph, entries, sections)


def _sections(compiler: str, objects: Sequence[str], place: str) -> dict[str, int]:
    """{text, data, bss} of object files, by the `size` that goes with the compiler."""
    prefix = re.match(r"(.*-)?(?:gcc|cc|g\+\+)(?:-[\d.]+)?$", Path(compiler).name)
    tool = f"{prefix[1] or ''}size" if prefix else "size"
    status, out, err = run([tool, *objects], place)
    if status:
        raise SolveError(f"{tool} ended with status {status}: {err.strip()[:500]}")
    rows = [[int(x) for x in line.split()[:3]] for line in out.splitlines()[1:]]
    return {name: sum(row[k] for row in rows) for k, name in enumerate(("text", "data", "bss"))}


def _footprint(graph: str, entries: Sequence[str], sections: Mapping[str, int]) -> Footprint:
    own = {name: int(size) for name, size, _ in _NODE.findall(graph) if size}
    unbounded = {name for name, size, kind in _NODE.findall(graph) if size and kind == "dynamic"}
    calls: dict[str, set[str]] = {}
    for source, target in _EDGE.findall(graph):
        calls.setdefault(source, set()).add(target)
    depth: dict[str, int] = {}
    recursive: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            recursive.update(above[above.index(name) :])
            return 0
        if name not in depth:
            depth[name] = own.get(name, 0) + max((visit(x, (*above, name)) for x in calls.get(name, ())), default=0)
        return depth[name]

    missing = [name for name in entries if name not in own]
    if missing:
        raise SolveError(f"footprint: there is no function {', '.join(missing)} in the code")
    stack = {name: visit(name, ()) for name in entries}
    reached = set(depth)
    return Footprint(
        stack=stack,
        libraries=tuple(sorted(reached - set(own))),
        recursive=tuple(sorted(recursive)),
        unbounded=tuple(sorted(unbounded & reached)),
        **sections,
    )


def stack_of(texts: Mapping[str, str], entries: Sequence[str]) -> str:
    """Words for a header on the stack of generated texts, their headers included."""
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
        for file, text in texts.items():
            Path(place, file).write_text(text, encoding="utf-8")
        found = footprint([Path(place, file) for file in texts if file.endswith(".c")], entries)
    parts = ", ".join(f"{name} {size}" for name, size in found.stack.items())
    return f"{parts} bytes, by gcc -O2 for the machine that wrote this, without functions of the C library"
