"""od.codegen_player: a planned motion as C99 that gives it with all its derivatives at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..codegen.build import TIME_LIMIT, Command, Flags
from ..codegen.disk import write_texts
from ..codegen.names import _reserved, checked_c_name
from ..codegen.source import REALS, c_source, checked_precision, prepared
from ..codegen.templates import filled
from ..codegen.write import GeneratedCode
from ..compiled_files import digest
from ..errors import ShapeError
from ..optimal_control.polynomials import derivatives_at
from ..text import c_comment, cmake
from ..types import Array, StrPath
from ..validation import count, flag
from .played import Channel, Played, played
from .templates import filled_here

TOLERANCE = {"double": 1e-12, "single": 1e-4}  # of the self-test, relative to the largest value of the motion
_POINTS = 25  # of the self-test, besides the breakpoints
_STILL = """
/* No derivative of what is held. */
static void still(int orders, int size, %(name)s_real *const *out) {
    int d, i;
    for (d = 1; d < orders; ++d)
        for (i = 0; i < size; ++i) out[d][i] = 0;
}
"""
_FINITE = """
static int finite_numbers(const %(name)s_real *x, int n) {
    int i;
    for (i = 0; i < n; ++i) {
        const double number = (double)x[i]; /* infinite where x is */
        if (!all_finite(&number, sizeof number)) return 0;
    }
    return 1;
}
"""
_MEMBER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class GeneratedPlayer:
    """What codegen_player wrote. sources: the .c files to compile into a program of one's own; header: their header;
    files: all that was written; outputs: {member of <name>_out: size}."""

    name: str
    folder: Path
    sources: tuple[Path, ...]
    header: Path
    files: tuple[Path, ...]
    outputs: dict[str, int]

    def test(
        self, *, flags: Flags = ("-std=c99", "-O2"), compiler: Command | None = None, tolerance: float | None = None,
        time_limit: float | None = TIME_LIMIT,
    ) -> str:  # fmt: skip
        """Compile the self-test and run it; returns what it prints, raises SolveError if it does not pass. Arguments
        as of GeneratedCode.test."""
        code = GeneratedCode(self.name, self.folder, self.sources, self.header, self.files, {})
        return code.test(flags=flags, compiler=compiler, tolerance=tolerance, time_limit=time_limit)


def codegen_player(
    motion: Any, folder: StrPath, *, name: str | None = None, torques: bool = False, derivatives: int | None = None,
    names: Iterable[str] | Mapping[str, str] | None = None, precision: str = "double",
) -> GeneratedPlayer:  # fmt: skip
    """Write a planned motion as C99 into `folder`, which is made; returns GeneratedPlayer, the record of it.

    motion: a Trajectory or a PathMotion, whose q and derivatives come out; an elastic.ElasticPlan, with theta, dtheta,
        tau_m, dtau_m where it is bounded, and deflection besides, by the flat map; or a Solution, as the polynomials
        of its method.
    name: of the files, and the start of every symbol; default the name of the folder.
    torques: of a Trajectory or PathMotion, whether tau and dtau come out, too [Nm or N, and per second].
    derivatives: so many of q come out, default all that are not zero; of every quantity of a Solution, default none.
    names: of a Solution, the states, controls and other names that come out, or {name: name in C}; default all.
    precision: "double", or "single" for float; time is a double in both, and only the time within a piece is rounded.
    In C, `int <name>_step(<name>_t *self, const <name>_in *in, <name>_out *out)` takes any time in.t [s]. Before and
    after the motion its ends are held: positions stay, derivatives are zero, out.state tells. A NaN or infinite time
    returns status 2 and the outputs of the last good time. No heap, no static data that is written.
    Files: <name>.c, .h, <name>_example.c, <name>_selftest.c, CMakeLists.txt, and <name>_outputs.c of computed outputs.
    Raises ShapeError for what is no such motion, names and options; ModelError for what cannot be written.
    """
    where = "codegen_player"
    folder = Path(folder)
    name = checked_c_name(where, folder.resolve().name if name is None else name, "give another name=")
    real = REALS[checked_precision(where, precision)]
    if derivatives is not None:
        derivatives = count(f"{where}: derivatives", derivatives)
    plan = played(where, motion, flag(f"{where}: torques", torques), names, derivatives)
    sizes = _sizes(plan)
    _check(where, plan, real)
    texts = _texts(name, plan, real, precision, sizes)
    write_texts(where, folder, texts)
    sources = [f for f in (f"{name}.c", f"{name}_outputs.c") if f in texts]
    return GeneratedPlayer(
        name=name,
        folder=folder,
        sources=tuple(folder / x for x in sources),
        header=folder / f"{name}.h",
        files=tuple(folder / x for x in texts),
        outputs=sizes,
    )


def _sizes(plan: Played) -> dict[str, int]:
    """{output: size}."""
    shown = [(n, c) for c in plan.channels for n in c.names[: c.shown]] + [(c.name, c) for c in plan.computed]
    return {n: len(c.coordinates) for n, c in shown}


def _check(where: str, plan: Played, real: str) -> None:
    """Refuse numbers and names that C cannot have."""
    for channel in plan.channels:
        with np.errstate(over="ignore"):
            numbers = channel.pieces.astype(np.float32 if real == "float" else float)
        if not np.all(np.isfinite(numbers)):
            piece = int(np.argwhere(~np.isfinite(numbers))[0][0])
            problem = f"a number of {channel.names[0]} in piece {piece} is not finite in {real}"
            raise ShapeError(f"{where}: {problem}; plan the motion anew, or leave that out")
    members = [n for c in plan.channels for n in c.names[: c.shown]] + [c.name for c in plan.computed]
    for member in members:
        fits = members.count(member) == 1 and member != "state" and _MEMBER.fullmatch(member)
        if not fits or ("keyword" in (_reserved(member) or "")):
            problem = (
                f"{member!r} cannot be a member of a struct in C beside {', '.join(x for x in members if x != member)}"
            )
            raise ShapeError(f"{where}: {problem}; name it by names={{...: 'another_name'}}")


def _texts(name: str, plan: Played, real: str, precision: str, sizes: Mapping[str, int]) -> dict[str, str]:
    """{file: text}."""
    f = None if plan.function is None else prepared(plan.function, f"{name}_outputs")
    texts = (
        {} if f is None else {f"{name}_outputs.c": c_source([f], f"{name}_outputs", precision=precision, integer="int")}
    )
    tables = "".join(_table(name, i, c, real) for i, c in enumerate(plan.channels))
    breakpoints = _rows([f"{x:.17g}" for x in plan.t])
    words: dict[str, Any] = {
        "name": name,
        "NAME": name.upper(),
        "title": c_comment(f"{name}: {plan.title}, in {real}"),
        "real": real,
        "pieces": len(plan.t) - 1,
        "continuity": plan.continuity,
        "start": f"{plan.t[0]:.6g}",
        "end": f"{plan.t[-1]:.6g}",
        "start_exact": _exact(plan.t[0]),
        "end_exact": _exact(plan.t[-1]),
        "version": __version__,
        "digest": digest([breakpoints, tables, *texts.values()]),
        "first": next(iter(sizes)),
        "first_size": next(iter(sizes.values())),
        "constants": 8 * len(plan.t) + sum(c.pieces.size for c in plan.channels) * (4 if real == "float" else 8),
        "instance": _instance(f, plan, real),
    }
    file = {
        f"{name}.h": filled_here("player.h", **words, **_declared(name, plan, f)),
        f"{name}.c": filled_here("player.c", **words, **_defined(name, plan, f, breakpoints, tables)),
        f"{name}_example.c": filled_here("player_example.c", **words),
        f"{name}_selftest.c": filled_here("player_selftest.c", **words, **_stored(plan, sizes, precision)),
    }
    listed = "\n  ".join(map(cmake, [f"{name}.c", *texts]))
    return file | texts | {"CMakeLists.txt": filled("CMakeLists.txt", name=name, sources=listed)}


def _exact(x: float) -> str:
    text = f"{x:.17g}"
    return text if any(c in text for c in ".en") else f"{text}.0"


def _literal(x: float, real: str) -> str:
    return f"{x:.9e}f" if real == "float" else f"{x:.17g}"


def _rows(words: list[str]) -> str:
    return ",\n    ".join(", ".join(words[k : k + 4]) for k in range(0, len(words), 4))


def _table(name: str, i: int, channel: Channel, real: str) -> str:
    rows = ["{" + ", ".join(_literal(x, real) for x in piece.ravel()) + "}" for piece in channel.pieces]
    size = channel.pieces[0].size
    return f"static const {name}_real of_{channel.names[0]}[PIECES][{size}] = {{\n    " + ",\n    ".join(rows) + "};\n"


def _needed(plan: Played, channel: Channel) -> int:
    """Derivatives of a channel that are computed: those that come out, and those that the function takes."""
    taken = set() if plan.function is None else set(plan.function.name_in())
    return max([channel.shown, *(k + 1 for k, n in enumerate(channel.names) if n in taken)])


def _inner(plan: Played) -> list[tuple[str, int]]:
    """(name, size) of derivatives that the function takes, and that do not come out."""
    return [
        (n, len(c.coordinates)) for c in plan.channels for n in c.names[c.shown : _needed(plan, c)]
    ]  # fmt: skip


def _instance(f: Any, plan: Played, real: str) -> int:
    numbers = sum(size for _, size in _inner(plan)) + (0 if f is None else f.sz_w())
    return 16 + numbers * (4 if real == "float" else 8) + (0 if f is None else 4 * f.sz_iw())


def _declared(name: str, plan: Played, f: Any) -> dict[str, str]:
    members = [(n, c.unit(k), c.coordinates) for c in plan.channels for k, n in enumerate(c.names[: c.shown])]
    members += [(c.name, c.unit, c.coordinates) for c in plan.computed]
    first = plan.channels[0].coordinates
    lines = []
    for n, unit, rows in members:
        told = "" if rows == first else ": " + ", ".join(rows)
        note = f"[{unit}]{told}" if unit else told[2:]
        lines.append(f"    {name}_real {n}[{len(rows)}];" + (f" /* {c_comment(note)} */" if note else ""))
    work = [f"    {name}_real inner_{n}[{size}];" for n, size in _inner(plan)]
    if f is not None:
        work += [f"    {name}_real w[{max(1, f.sz_w())}];", f"    {name}_int iw[{max(1, f.sz_iw())}];"]
    defines = [f"#define {name.upper()}_SIZE_{n} {len(rows)}" for n, _, rows in members]
    return {
        "outputs": "\n".join(lines),
        "work": "\n".join(work) or "    /* no work arrays */",
        "sizes": "\n".join(defines),
        "coordinates": c_comment(", ".join(first)),
    }


def _defined(name: str, plan: Played, f: Any, breakpoints: str, tables: str) -> dict[str, Any]:
    inner = {n for n, _ in _inner(plan)}
    lines = []
    for c in plan.channels:
        needed, first, size = _needed(plan, c), c.names[0], len(c.coordinates)
        places = ", ".join(f"self->inner_{n}" if n in inner else f"out->{n}" for n in c.names[:needed])
        lines += [
            "    {",
            f"        {name}_real *const places[] = {{{places}}};",
            f"        derivatives(of_{first}[self->piece], {c.pieces.shape[1]}, {needed}, {size}, s, places);",
        ]
        if needed > 1:
            lines += [
                f"        if (out->state != {name.upper()}_MOVING) still({needed}, {size}, places);",
            ]
        lines.append("    }")
    words = {"breakpoints": breakpoints, "tables": tables, "polynomials": "\n".join(lines)}
    words["most"] = max(c.pieces.shape[1] for c in plan.channels)
    words["all_finite"] = filled("all_finite.c")
    words["still"] = _STILL % {"name": name} if any(_needed(plan, c) > 1 for c in plan.channels) else ""
    if f is None:
        return words | {"declaration": "", "evaluate": "", "step_end": "    return status;"}
    return words | _calls(name, plan, f, inner)


def _calls(name: str, plan: Played, f: Any, inner: set[str]) -> dict[str, str]:
    """Text of the call of the function behind the polynomials."""
    arguments = [
        f"    arg[{i}] = {f'self->inner_{n}' if n in inner else f'out->{n}'};" for i, n in enumerate(f.name_in())
    ]
    results = [f"    res[{i}] = out->{n};" for i, n in enumerate(f.name_out())]
    sound = " ||\n        ".join(f"!finite_numbers(out->{n}, {f.numel_out(i)})" for i, n in enumerate(f.name_out()))
    zeros = [f"        memset(out->{n}, 0, sizeof out->{n});" for n in f.name_out()]
    evaluate = [
        _FINITE % {"name": name},
        "/* Outputs of the model at what the polynomials gave. */",
        f"static int evaluate({name}_t *self, {name}_out *out) {{",
        f"    const {name}_real *arg[{max(1, f.sz_arg())}];",
        f"    {name}_real *res[{max(1, f.sz_res())}];",
        *arguments,
        *results,
        f"    if ({name}_outputs(arg, res, self->iw, self->w, 0) ||\n        {sound}) {{",
        *zeros,
        f"        return {name.upper()}_FAILED;",
        "    }",
        f"    return {name.upper()}_OK;",
        "}",
        "",
    ]
    declaration = (
        f"int {name}_outputs(const {name}_real **arg, {name}_real **res, {name}_int *iw, {name}_real *w, int mem);\n"
    )
    end = f"    if (evaluate(self, out) && !status) status = {name.upper()}_FAILED;\n    return status;"
    return {"declaration": declaration, "evaluate": "\n".join(evaluate), "step_end": end}


def _stored(plan: Played, sizes: Mapping[str, int], precision: str) -> dict[str, Any]:
    """What the self-test compares with."""
    inside = np.random.default_rng(0).uniform(plan.t[0], plan.t[-1], _POINTS)
    nodes = plan.t[np.unique(np.linspace(0, len(plan.t) - 1, _POINTS).astype(int))]
    times = np.unique(np.concatenate([inside, nodes]))
    rows, scales = _expected(plan, sizes, times)
    copies = [f"    for (i = 0; i < {n}; ++i) *to++ = (double)out->{name}[i];" for name, n in sizes.items()]
    return {
        "points": len(times),
        "count": rows.shape[1],
        "times": _rows([f"{x:.17g}" for x in times]),
        "expected": ",\n    ".join("{" + ", ".join(f"{x:.17g}" for x in row) + "}" for row in rows),
        "scales": _rows([f"{x:.17g}" for x in scales]),
        "copies": "\n".join(copies),
        "tolerance": f"{TOLERANCE[precision]:g}",
    }


def _expected(plan: Played, sizes: Mapping[str, int], times: Array) -> tuple[Array, Array]:
    """(values (K, outputs) at times, largest size of each output along the motion)."""
    found = dict(plan.sample(times))
    for channel in plan.channels:  # derivatives of a Solution are those of its polynomials
        piece = np.clip(np.searchsorted(plan.t, times, side="right") - 1, 0, len(plan.t) - 2)
        own = derivatives_at(channel.pieces[piece], times - plan.t[piece], channel.shown)
        found = {n: own[k] for k, n in enumerate(channel.names[: channel.shown])} | found
    values = [found[n] for n in sizes]
    scales = [np.full(x.shape[1], max(np.abs(x).max(), 1e-300)) for x in values]
    return np.hstack(values), np.concatenate(scales)
