"""od.codegen: C99 sources of Functions in a folder, with header, CMake file, example and self-test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, SolveError
from ..types import Array, StrPath
from .build import (
    FLAGS,
    TIME_LIMIT,
    Command,
    Flags,
    checked_flags,
    checked_time_limit,
    find_compiler,
    library,
    loaded,
    run,
    run_compiler,
)
from .disk import write_texts
from .footprint import FLAGS as SMALL
from .footprint import Footprint, footprint, stack_of
from .names import check_apart, checked_c_name
from .product_files import classes, cmake_files
from .source import REALS, c_source, checked_functions, checked_precision, prepared
from .templates import example, header, selftest

TOLERANCE = {"double": 1e-10, "single": 1e-3}  # of the self-test: room for other compilers, and for fused operations


@dataclass(frozen=True)
class GeneratedCode:
    """What codegen wrote. sources: the .c files to compile into a program of one's own; header: their header; files:
    all that was written; functions: {name of the Function: name of the C function}."""

    name: str
    folder: Path
    sources: tuple[Path, ...]
    header: Path
    files: tuple[Path, ...]
    functions: dict[str, str]

    def test(
        self,
        *,
        flags: Flags = ("-std=c99", "-O2"),
        compiler: Command | None = None,
        tolerance: float | None = None,
        time_limit: float | None = TIME_LIMIT,
    ) -> str:
        """Compile the self-test and run it; returns what it prints, raises SolveError if it does not pass, or if the
        compiler or the test takes longer than time_limit [s]."""
        time_limit = checked_time_limit("test", time_limit)
        words, flags = find_compiler(compiler), checked_flags("test", flags)
        with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
            program = str(Path(place, "selftest"))
            sources = [x.name for x in self.sources] + [f"{self.name}_selftest.c"]
            run_compiler([*words, *flags, "-o", program, *sources, "-lm"], self.folder, time_limit)
            command = [program] + ([] if tolerance is None else [repr(float(tolerance))])
            status, out, err = run(command, time_limit=time_limit)
        if status:
            said = f"{out.strip()} {err.strip()}".strip()
            raise SolveError(f"{self.name}: the self-test did not pass: {said}", status=status)
        return out

    def footprint(self, *, flags: Flags = SMALL, compiler: Command | None = None) -> Footprint:
        """Footprint of the functions as gcc compiles them, for another machine as well: code, variables, stack."""
        return footprint(self.sources, list(self.functions.values()), flags=flags, compiler=compiler)

    def load(
        self,
        *,
        flags: Flags = FLAGS,
        compiler: Command | None = None,
        cache: StrPath | None = None,
        time_limit: float | None = TIME_LIMIT,
    ) -> dict[str, ca.Function]:
        """{name of the Function: casadi.Function} of the sources compiled, in double precision; see od.compile."""
        texts = {x.name: x.read_text(encoding="utf-8") for x in self.sources}
        if any("#define casadi_real float" in text for text in texts.values()):
            raise ShapeError(f"{self.name} is in single precision, which CasADi cannot load")
        path = library(texts, flags, compiler, cache, checked_time_limit("load", time_limit))
        return {name: loaded(c_name, path) for name, c_name in self.functions.items()}


def codegen(
    functions: ca.Function | Iterable[ca.Function],
    folder: StrPath,
    *,
    name: str | None = None,
    precision: str = "double",
    separate: bool = False,
    parts: int | None = None,
    points: Any = None,
    measure: bool = False,
) -> GeneratedCode:
    """Write Functions as C99 into `folder`, which is made; returns GeneratedCode, the record of what was written.

    functions: a casadi.Function, or several; friction and damping count only in those made with friction=True.
    name: of the files, and the start of every symbol, so that codes of several robots go into one program; default the
        name of the folder. The Function f becomes <name>_f.
    precision: "double", or "single" for float. separate: one .c file for each Function.
    parts: instructions after which long Functions are split, see split; 0 for never, None for where it pays.
    points: where the self-test compares: a list of {port: numbers} for every Function, or {Function's name: such a
        list}; default two random points.
    measure: whether gcc compiles them for what the header says on the stack; see footprint of what comes back.
    Files: <name>.c (or <name>_<f>.c for each), <name>.h, which also has structs of inputs and outputs and calls with
    them, <name>.hpp for C++17, <name>_example.c, <name>_selftest.c, <name>_targets.cmake, CMakeLists.txt. They take
    their place when all are complete; files of these names are replaced, others stay.
    In a program of one's own: `gcc main.c NAME.c -lm`, or in CMake the target of NAME_targets.cmake.
    Raises ModelError for what is not a Function, cannot be written as C, or a folder that cannot be written to;
    ShapeError for names and options.
    """
    given = checked_functions("codegen", functions)
    folder = Path(folder)
    name = checked_c_name("codegen", folder.resolve().name if name is None else name, "give another name=")
    real = REALS[checked_precision("codegen", precision)]
    c_names = _c_names(given, name)
    written = [prepared(f, n, parts) for f, n in zip(given, c_names, strict=True)]
    data = [_points(f, real, points) for f in given]

    texts = {f"{n}.c": [f] for n, f in zip(c_names, written, strict=True)} if separate else {f"{name}.c": written}
    sources = list(texts)
    texts = {file: c_source(fs, file[:-2], precision=precision) for file, fs in texts.items()}
    stack = stack_of(texts, c_names) if measure else ""
    programs = {
        f"{name}.h": header(name, given, written, real, texts=texts.values(), stack=stack),
        f"{name}.hpp": classes(name, written),
        f"{name}_example.c": example(name, written[0], data[0], real),
        f"{name}_selftest.c": selftest(name, written, data, real, TOLERANCE[precision]),
        **cmake_files(name, sources, [f"{name}.h", f"{name}.hpp"]),
    }
    names = [file.lower() for file in (*texts, *programs)]  # on some systems one file, whatever the case
    clash = [file for file in texts if names.count(file.lower()) > 1]
    if clash:
        raise ShapeError(f"codegen: {', '.join(clash)} would be written twice; name that Function differently")
    texts |= programs
    write_texts("codegen", folder, texts)
    return GeneratedCode(
        name=name,
        folder=folder,
        sources=tuple(folder / x for x in sources),
        header=folder / f"{name}.h",
        files=tuple(folder / x for x in texts),
        functions={f.name(): n for f, n in zip(given, c_names, strict=True)},
    )


def _c_names(given: list[ca.Function], name: str) -> list[str]:
    """Names of the C functions; ShapeError where two would be one."""
    c_names = [f.name() if f.name().startswith(f"{name}_") else f"{name}_{f.name()}" for f in given]
    for c_name in c_names:
        if c_names.count(c_name) > 1:
            twice = " and ".join(f.name() for f, n in zip(given, c_names, strict=True) if n == c_name)
            problem = f"{twice} would have one name, {c_name}"
            raise ShapeError(f"codegen: {problem}; give them names of their own, as od.function(..., name=...)")
    check_apart("codegen", c_names)
    return c_names


def _points(f: ca.Function, real: str, points: Any) -> list[tuple[list[Array], list[Array]]]:
    """[(inputs, outputs)] of the self-test: nonzeros of each port, the inputs rounded to the precision of the code."""
    if isinstance(points, dict):
        points = points.get(f.name())
    if points is not None:
        return [_at(f, [_given(f, i, point) for i in range(f.n_in())], real) for point in points]
    rng = np.random.default_rng(0)
    out: list[tuple[list[Array], list[Array]]] = []
    for left in range(20, 0, -1):
        point = _at(f, [rng.uniform(-1, 1, f.nnz_in(i)) for i in range(f.n_in())], real)
        if left <= 2 - len(out) or all(np.all(np.isfinite(x)) for x in point[1]):
            out.append(point)
        if len(out) == 2:
            break
    return out


def _given(f: ca.Function, i: int, point: Any) -> Array:
    if not isinstance(point, dict) or set(point) - set(f.name_in()):
        raise ShapeError(f"codegen: a point of {f.name()} is {point!r}, expected numbers by port: {f.name_in()}")
    value = ca.DM(point.get(f.name_in(i), 0))
    if value.is_scalar():
        value = ca.repmat(value, *f.size_in(i))
    if value.shape != tuple(f.size_in(i)):
        got = f"port {f.name_in(i)} got shape {value.shape}, expected {f.size_in(i)}"
        raise ShapeError(f"codegen: point of {f.name()}: {got}")
    return np.array(ca.project(value, f.sparsity_in(i)).nonzeros())


def _at(f: ca.Function, inputs: list[Array], real: str) -> tuple[list[Array], list[Array]]:
    inputs = [x.astype(np.float32).astype(float) if real == "float" else x for x in inputs]
    outputs = ca.Function.call(f, [ca.DM(f.sparsity_in(i), x) for i, x in enumerate(inputs)])
    outputs = [ca.project(x, f.sparsity_out(i)).nonzeros() for i, x in enumerate(outputs)]
    return inputs, [np.array(x, float) for x in outputs]
