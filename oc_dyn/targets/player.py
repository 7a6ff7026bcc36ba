"""od.codegen_player: a planned motion as C99 that gives it with all its derivatives at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.build import TIME_LIMIT, Command, Flags
from ..codegen.disk import write_texts
from ..codegen.footprint import FLAGS as SMALL
from ..codegen.footprint import Footprint, footprint
from ..codegen.names import checked_c_name, field_name
from ..codegen.product import Facts, Field, c_numbers, literal
from ..codegen.product_files import Product, files_of, finite_words
from ..codegen.source import REALS, c_source, checked_precision, prepared
from ..codegen.templates import filled
from ..codegen.write import GeneratedCode
from ..errors import ShapeError
from ..optimal_control.polynomials import derivatives_at
from ..types import Array, StrPath
from ..validation import count, flag
from .played import Channel, Played, played

TOLERANCE = {"double": 1e-12, "single": 1e-4}  # of the self-test, relative to the largest value of the motion
_POINTS = 25  # of the self-test, and as many breakpoints
_MEMBER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MIDDLES = """/* Origins of the polynomials, from where they lose fewest digits. */
static const double middles[PIECES] = {
  %s};
"""
_STILL = """
/* No derivative of what is held. */
static void still(int orders, int size, %(name)s_real *const *out) {
  int d, i;
  for (d = 1; d < orders; ++d)
    for (i = 0; i < size; ++i) out[d][i] = 0;
}
"""


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

    def footprint(self, *, flags: Flags = SMALL, compiler: Command | None = None) -> Footprint:
        """Footprint of the player as gcc compiles it, for another machine as well: code, variables, stack."""
        entries = [f"{self.name}_{x}" for x in ("init", "reset", "step")]
        return footprint(self.sources, entries, flags=flags, compiler=compiler)


def codegen_player(
    motion: Any, folder: StrPath, *, name: str | None = None, torques: bool = False, derivatives: int | None = None,
    names: Iterable[str] | Mapping[str, str] | None = None, precision: str = "double", measure: bool = False,
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
    measure: whether gcc compiles it for what the header says on the stack; see footprint of what comes back.
    In C, `int <name>_step(<name>_t *self, const <name>_in *in, <name>_out *out)` takes any time in.t [s]. Before and
    after the motion its ends are held: positions stay, derivatives are zero, out.state tells. A NaN or infinite time
    returns status 2 and the outputs of the last good time. No heap, no static data that is written.
    Files: <name>.c, .h, .hpp for C++17, <name>_example.c, <name>_selftest.c, <name>_targets.cmake, CMakeLists.txt.
    Raises ShapeError for what is no such motion, names and options; ModelError for what cannot be written.
    """
    folder = Path(folder)
    name = checked_c_name("codegen_player", folder.resolve().name if name is None else name, "give another name=")
    product = player_product(
        "codegen_player", motion, name, torques=torques, derivatives=derivatives, names=names, precision=precision
    )
    texts = files_of(product, flag("codegen_player: measure", measure))
    write_texts("codegen_player", folder, texts)
    return GeneratedPlayer(
        name=name,
        folder=folder,
        sources=tuple(folder / x for x in product.sources),
        header=folder / f"{name}.h",
        files=tuple(folder / x for x in texts),
        outputs={x.name: x.count for x in product.structs[1][1] if not x.type},
    )


def player_product(
    where: str, motion: Any, name: str, *, torques: bool = False, derivatives: int | None = None, names: Any = None,
    precision: str = "double",
) -> Product:  # fmt: skip
    """Product of a motion; arguments and errors as of codegen_player."""
    real = REALS[checked_precision(where, precision)]
    if derivatives is not None:
        derivatives = count(f"{where}: derivatives", derivatives)
    plan = played(where, motion, flag(f"{where}: torques", torques), names, derivatives)
    outputs = _outputs(plan)
    _check(where, plan, real, outputs)
    f = None if plan.function is None else prepared(plan.function, f"{name}_outputs")
    body = _body(name, plan, f, real)
    source = f"/* {name}: {plan.title} */\n{body}" if f is None else _with_function(name, f, precision, body)
    times, expected, least = _stored(plan, outputs)
    start, end = (_exact(plan.t[k]) for k in (0, -1))
    return Product(
        name=name,
        precision=precision,
        facts=_facts(name, plan, f, real),
        status=filled("player_status.h", __package__, name=name, start=start, end=end),
        structs=[
            (f"{name}_in", [Field("t", 1, unit="s", words="the time", single=True)]),
            (f"{name}_out", [*outputs, Field("state", 1, words=f"one of enum {name}_state", single=True, type="int")]),
        ],
        members=_members(name, plan, f),
        instance="the last good time, the piece it was in, and room for the work",
        entries=filled("player_entries.h", __package__, name=name),
        sources={f"{name}.c": source},
        given=list(times[:, None]),
        expected=list(expected),
        statuses=[0] * len(times),
        ends=np.cumsum([x.count for x in outputs]).tolist(),
        tolerance=TOLERANCE[precision],
        wide=True,
        least=least,
    )


def _with_function(name: str, f: Any, precision: str, body: str) -> str:
    return c_source([f], name, precision=precision, integer="int", more=body)


def _outputs(plan: Played) -> list[Field]:
    """Members of the outputs, but for the state."""
    shown = [(n, c.unit(k), c.coordinates) for c in plan.channels for k, n in enumerate(c.names[: c.shown])]
    shown += [(c.name, c.unit, c.coordinates) for c in plan.computed]
    return [Field(n, len(rows), unit=unit, labels=rows) for n, unit, rows in shown]


def _check(where: str, plan: Played, real: str, outputs: list[Field]) -> None:
    """Refuse numbers and names that C cannot have."""
    for channel in plan.channels:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = _table_numbers(channel, plan.t, real).astype(np.float32 if real == "float" else float)
        if not np.all(np.isfinite(numbers)):
            piece = int(np.argwhere(~np.isfinite(numbers))[0][0])
            problem = f"a number of {channel.names[0]} in piece {piece} is not finite in {real}"
            raise ShapeError(f"{where}: {problem}; plan the motion anew, or leave that out")
    members = [x.name for x in outputs]
    for member in members:
        fits = members.count(member) == 1 and member != "state" and _MEMBER.fullmatch(member)
        if not fits or field_name(member) != member:
            others = ", ".join(x for x in members if x != member)
            problem = f"{member!r} cannot be a member of a struct in C beside {others}"
            raise ShapeError(f"{where}: {problem}; name it by names={{...: 'another_name'}}")


def _facts(name: str, plan: Played, f: Any, real: str) -> Facts:
    span = f"from {plan.t[0]:.6g} s to {plan.t[-1]:.6g} s in {len(plan.t) - 1} pieces, {plan.continuity}"
    constants = 8 * len(plan.t) + sum(c.pieces.size for c in plan.channels) * (4 if real == "float" else 8)
    work = 0 if f is None else f.sz_w() + 1
    return Facts(
        title=f"{name}: {plan.title}",
        numbers=sum(size for _, size in _inner(plan)) + work,
        integers=6 + (0 if f is None else f.sz_iw()),  # a double among them
        pointers=0,
        more={
            "Motion": span,
            "Coordinates": ", ".join(plan.channels[0].coordinates),
            "Constants": f"{constants} bytes",
        },
    )


def _exact(x: float) -> str:
    text = literal(float(x))
    return text if any(c in text for c in ".e") else f"{text}.0"


def _middles(t: Array) -> Array:
    return t[:-1] + np.diff(t) / 2


def _table_numbers(channel: Channel, t: Array, real: str) -> Array:
    """(M, orders, n): derivatives at the starts of the pieces, as Python has them; in single precision in their
    middles, where terms of high powers are smaller, which cancel each other."""
    if real != "float":
        return channel.pieces
    return derivatives_at(channel.pieces, _middles(t) - t[:-1], channel.pieces.shape[1]).transpose(1, 0, 2)


def _table(name: str, channel: Channel, t: Array, real: str) -> str:
    pieces = _table_numbers(channel, t, real)
    rows = ["{" + ", ".join(literal(x, real) for x in piece.ravel()) + "}" for piece in pieces]
    size = channel.pieces[0].size
    return f"static const {name}_real of_{channel.names[0]}[PIECES][{size}] = {{\n  " + ",\n  ".join(rows) + "};\n"


def _needed(plan: Played, channel: Channel) -> int:
    """Derivatives of a channel that are computed: those that come out, and those that the function takes."""
    taken = set() if plan.function is None else set(plan.function.name_in())
    return max([channel.shown, *(k + 1 for k, n in enumerate(channel.names) if n in taken)])


def _inner(plan: Played) -> list[tuple[str, int]]:
    """(name, size) of derivatives that are computed and do not come out."""
    return [(n, len(c.coordinates)) for c in plan.channels for n in c.names[c.shown : _needed(plan, c)]]


def _members(name: str, plan: Played, f: Any) -> str:
    """Text of the members of an instance."""
    lines = ["    double last; /* [s] */", "    int piece;"]
    lines += [f"    {name}_real inner_{n}[{size}];" for n, size in _inner(plan)]
    if f is not None:
        lines += [f"    {name}_real w[{f.sz_w() + 1}];", f"    int iw[{f.sz_iw() + 1}];"]
    return "\n".join(lines)


def _body(name: str, plan: Played, f: Any, real: str) -> str:
    """C behind the functions that CasADi writes."""
    inner = {n for n, _ in _inner(plan)}
    moving = any(_needed(plan, c) > 1 for c in plan.channels)
    own, time = finite_words(name, real), finite_words(name, "double") | {"all_finite": f"{name}_time_finite"}
    finite = [filled("all_finite.c", **time)]
    if f is not None:
        finite.append(filled("all_finite.c", **own))
    evaluate, end = ("", "  return status;") if f is None else _calls(name, f, inner, own["all_finite"])
    return filled(
        "player.c",
        __package__,
        name=name,
        all_finite="\n".join(finite),
        time_finite=f"{name}_time_finite",
        pieces=len(plan.t) - 1,
        breakpoints=c_numbers(plan.t),
        origins=_MIDDLES % c_numbers(_middles(plan.t)) if real == "float" else "",
        origin="middles" if real == "float" else "breakpoints",
        tables="".join(_table(name, c, plan.t, real) for c in plan.channels),
        most=max(c.pieces.shape[1] for c in plan.channels),
        still=_STILL % {"name": name} if moving else "",
        polynomials="\n".join(line for c in plan.channels for line in _polynomials(name, plan, c, inner)),
        evaluate=evaluate,
        step_end=end,
    )


def _polynomials(name: str, plan: Played, c: Channel, inner: set[str]) -> list[str]:
    """Lines that evaluate a channel."""
    needed, size = _needed(plan, c), len(c.coordinates)
    places = ", ".join(f"self->inner_{n}" if n in inner else f"out->{n}" for n in c.names[:needed])
    lines = [
        "  {",
        f"    {name}_real *const places[] = {{{places}}};",
        f"    derivatives(of_{c.names[0]}[self->piece], {c.pieces.shape[1]}, {needed}, {size}, s, places);",
    ]
    if needed > 1:
        lines.append(f"    if (out->state != {name}_MOVING) still({needed}, {size}, places);")
    return [*lines, "  }"]


def _calls(name: str, f: Any, inner: set[str], finite: str) -> tuple[str, str]:
    """Text of the function behind the polynomials, and of its call."""
    lines = [
        "",
        "/* Outputs of the model at what the polynomials gave. */",
        f"static int evaluate({name}_t *self, {name}_out *out) {{",
        f"  const {name}_real *arg[{f.sz_arg() + 1}];",
        f"  {name}_real *res[{f.sz_res() + 1}];",
        *(f"  arg[{i}] = {f'self->inner_{n}' if n in inner else f'out->{n}'};" for i, n in enumerate(f.name_in())),
        *(f"  res[{i}] = out->{n};" for i, n in enumerate(f.name_out())),
        f"  if (!{name}_outputs(arg, res, self->iw, self->w, 0)",
        *(f"      && {finite}(out->{n}, sizeof out->{n})" for n in f.name_out()),
        f"  ) return {name}_OK;",
        *(f"  memset(out->{n}, 0, sizeof out->{n});" for n in f.name_out()),
        f"  return {name}_FAILED;",
        "}",
        "",
    ]
    return "\n".join(lines), f"  if (evaluate(self, out) && !status) status = {name}_FAILED;\n  return status;"


def _stored(plan: Played, outputs: list[Field]) -> tuple[Array, Array, list[float]]:
    """(times (K,), outputs (K, n), largest size of each output) of the self-test."""
    inside = np.random.default_rng(0).uniform(plan.t[0], plan.t[-1], _POINTS)
    nodes = plan.t[np.unique(np.linspace(0, len(plan.t) - 1, _POINTS).astype(int))]
    times = np.unique(np.concatenate([inside, nodes]))
    found = dict(plan.sample(times))
    for channel in plan.channels:  # derivatives of a Solution are those of its polynomials
        piece = np.clip(np.searchsorted(plan.t, times, side="right") - 1, 0, len(plan.t) - 2)
        own = derivatives_at(channel.pieces[piece], times - plan.t[piece], channel.shown)
        found = {n: own[k] for k, n in enumerate(channel.names[: channel.shown])} | found
    values = [found[x.name] for x in outputs]
    return times, np.hstack(values), [max(float(np.abs(x).max()), 1e-300) for x in values]
