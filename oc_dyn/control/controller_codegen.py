"""A predictive controller as C: an instance, its steps that look at their numbers, and the files around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..codegen.product import Facts, Field, c_numbers, fields_of, labelled, literal
from ..codegen.product_files import Product, files_of, finite_words
from ..codegen.source import REALS, c_source, prepared
from ..codegen.templates import filled
from ..text import c_comment
from ..types import Array
from .stepping import LARGEST, Given, step_made
from .unsolved import going_on

_RESULTS = [
    Field("objective", 1, words="of the solution", single=True),
    Field("violation", 1, words="largest of a scaled constraint", single=True),
    Field("iterations", 1, words="quadratic programs solved", single=True, type="int"),
]
LICENCES = {"osqp": (("osqp", "Apache-2.0"),), "daqp": (("daqp", "MIT"),)}  # of what has to be linked
TOLERANCE = {"double": 1e-6, "single": 1e-2}  # of the self-test: solvers carry differences of rounding on


def controller_texts(
    controller: Any, programs: Sequence[ca.Function] = (), *, measure: bool = False, **options: Any
) -> dict[str, str]:
    """{file: text} of a controller; options: arguments of controller_product. measure: as of files_of."""
    return files_of(controller_product(controller, programs, **options), measure)


def controller_product(
    controller: Any,
    programs: Sequence[ca.Function] = (),
    *,
    precision: str = "double",
    joints: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    points: Sequence[Mapping[str, Any]] | None = None,
) -> Product:
    """Product of a controller; programs: Functions that go into its C besides, for a loop."""
    given, expected, statuses = _recorded(controller, points, REALS[precision])
    controller = controller if precision == "double" else controller.of_floats()
    name, real = controller.name, REALS[precision]
    functions = [*_functions(controller), *programs]
    words = _words(controller, real)
    body = filled("mpc.c", __package__, **words)
    source = going_on(c_source(functions, name, precision=precision, integer="int", more=body), controller.qpsol)
    inputs, outputs, limits = _fields(controller, joints, units)
    return Product(
        name=name,
        precision=precision,
        facts=_facts(controller),
        status=filled("mpc_status.h", __package__, **words),
        structs=[(f"{name}_in", inputs), (f"{name}_out", [*outputs, *_RESULTS]), (f"{name}_parameters", limits)],
        members=_members(controller),
        instance="the plan and the parameters of the last good step, the bounds of its own, and room for the work",
        entries=filled("mpc_entries.h", __package__, **words) + _declared(functions, real),
        sources={f"{name}.c": source},
        given=given,
        expected=expected,
        statuses=statuses,
        ends=np.cumsum([*(x.count for x in outputs), 1]).tolist(),
        tolerance=TOLERANCE[precision],
        options=(controller.qpsol, precision, controller.bounds),
        calls=("step", "prepare", "feedback"),
        timed=True,
    )


def _fields(
    controller: Any, joints: Sequence[str] | None, units: Mapping[str, str] | None
) -> tuple[list[Field], list[Field], list[Field]]:
    """Members of the structs of inputs, outputs and bounds."""
    f, where = controller.function, "mpc: codegen"
    inputs = fields_of(f, "in", ("memory",))
    outputs = fields_of(f, "out", ("next_memory", "objective", "violation", "status", "iterations"))
    known = {x.name for x in (*inputs, *outputs)}
    inputs, outputs = (labelled(x, where, joints, units, known) for x in (inputs, outputs))
    limits = [
        Field(f"{x.name.rstrip('_')}_{side}", x.rows, x.columns, x.unit, x.labels, words)
        for side, words in (("lower", "never less, if above that of the generated code"), ("upper", "never more"))
        for x in outputs
    ]
    return inputs, outputs, limits


def _members(controller: Any) -> str:
    sizes, name = _sizes(controller), controller.name
    return "\n".join(
        [
            f"    {name}_real memory[{controller.start.size}];",
            f"    {name}_parameters parameters;",
            f"    {name}_real given[{max(1, _given(controller))}];",
            f"    {name}_real prepared[{controller.preparation.nnz_out(0)}];",
            f"    {name}_real found[{_total(controller)}];",
            f"    {name}_real w[{sizes['w'] + 1}];",
            f"    const {name}_real *arg[{sizes['arg'] + 1}];",
            f"    {name}_real *res[{sizes['res'] + 1}];",
            f"    {name}_int iw[{sizes['iw'] + 1}];",
            "    int status, ready;",
            f"    int {', '.join(f'{x}_mem' for x in _functions_by_use(controller))};",
        ]
    )


def _functions_by_use(controller: Any) -> dict[str, ca.Function]:
    """{use: Function} of those that the C calls; a step of one program is preparation and feedback."""
    whole = {} if controller.real_time else {"function": controller.function}
    feedback = prepared(controller.feedback, f"{controller.name}_feedback_qp", 0)
    halves = {"preparation": controller.preparation, "feedback": feedback}
    return {**whole, **halves, "fallback": controller.fallback}


def _functions(controller: Any) -> list[ca.Function]:
    return list(_functions_by_use(controller).values())


def _sizes(controller: Any) -> dict[str, int]:
    return {k: max(getattr(f, f"sz_{k}")() for f in _functions(controller)) for k in ("arg", "res", "iw", "w")}


def _given(controller: Any) -> int:
    f = controller.function
    return sum(f.nnz_in(i) for i in range(1, f.n_in()))


def _total(controller: Any) -> int:
    f = controller.function
    return sum(f.nnz_out(i) for i in range(f.n_out()))


def _facts(controller: Any) -> Facts:
    sizes, f = _sizes(controller), controller.function
    numbers = controller.start.size + 2 * sum(controller.outputs.values()) + _total(controller) + sizes["w"] + 1
    numbers += _given(controller) + controller.preparation.nnz_out(0)
    return Facts(
        title=f"{controller.name}: predictive controller with quadratic programs by {controller.qpsol}",
        sample_time=controller.sample_time,
        libraries=LICENCES.get(controller.qpsol, ()),
        numbers=numbers,
        integers=sizes["iw"] + 1 + 6,
        pointers=sizes["arg"] + sizes["res"] + 2,
        more={"Inputs": ", ".join(f.name_in()[1:]) or "none", "Outputs": ", ".join(controller.outputs)},
        allocates=bool(LICENCES.get(controller.qpsol, ())),
    )


def _words(controller: Any, real: str) -> dict[str, Any]:
    """What fills the templates."""
    f, name = controller.function, controller.name
    sizes = [f.nnz_in(i) for i in range(1, f.n_in())]
    starts = np.cumsum([0, *(f.nnz_out(i) for i in range(f.n_out()))])
    lower, upper = (np.concatenate([b[side] for b in controller.bounds.values()]) for side in (0, 1))
    at = dict(zip(controller.names, np.cumsum([0, *sizes]), strict=False))
    size = dict(zip(controller.names, sizes, strict=True))
    measured = [k for k in controller.measured if size[k]]
    rows = [
        f" *   {c_comment(k)}: {', '.join(f'{x:g} to {y:g}' for x, y in zip(*both, strict=True))}"
        for k, both in controller.bounds.items()
    ]
    external = bool(LICENCES.get(controller.qpsol, ()))
    return {
        "name": name,
        **finite_words(name, real),
        "all_finite": filled("all_finite.c", **finite_words(name, real)),
        "start": c_numbers(controller.start, real),
        "n_memory": controller.start.size,
        "lower": c_numbers(lower, real),
        "upper": c_numbers(upper, real),
        "n_bounded": lower.size,
        "bounds": "\n".join(rows),
        "largest": f"{LARGEST:g}".replace("+", "") + ("f" if real == "float" else ""),
        "n_in": sum(sizes),
        "known": controller.start.size - 1 - sum(sizes),
        "from_given": _pointers(controller.names, at, size, "  "),
        "seen": _pointers(controller.measured, at, size, "    "),
        "measured": ", ".join(f"{{{at[k]}, {size[k]}}}" for k in measured) or "{0, 0}",
        "n_measured": len(measured),
        "read": ", ".join(measured) or "nothing",
        "checkout": _checkout(controller, "incref", "checkout"),
        "step": _step(controller, _pointers(controller.names, at, size, "    ")),
        "places": "\n".join(f"  self->res[{i}] = self->found + {a};" for i, a in enumerate(starts[:-1])),
        "sent": _sent(controller, real),
        "memory_at": starts[f.index_out("next_memory")],
        "status_at": starts[f.index_out("status")],
        "release": _released(controller) if external else "",
        "more": _RELEASED.replace("NAME", name) if external else "",
    }


def _pointers(names: Sequence[str], at: Mapping[str, Any], size: Mapping[str, int], margin: str) -> str:
    """Lines that set the arguments behind the first, from x, the inputs one behind the other."""
    lines = [f"{margin}self->arg[{i}] = {f'x + {at[k]}' if size[k] else '0'};" for i, k in enumerate(names, 1)]
    return "\n".join(lines)


def _step(controller: Any, pointers: str) -> str:
    """What <name>_step does: preparation and feedback, or iterations until nothing changes."""
    name = controller.name
    if controller.real_time:
        return f"  {name}_prepare(self, in);\n  return {name}_feedback(self, in, out);\n"
    return f"""  const {name}_real *x = self->given;
  const int status = {name}_own_begun(self, in);
  int failed = 0;
  (void)x;
  if (!status) {{
    self->arg[0] = self->memory;
{pointers}
    {name}_own_places(self);
    failed = self->function_mem < 0 || {name}(self->arg, self->res, self->iw, self->w, self->function_mem);
  }}
  return {name}_own_done(self, status, failed, out);
"""


def _sent(controller: Any, real: str) -> str:
    """Lines that put the outputs among the controls in flight, over their scales."""
    scales = [literal(x, real) for x in controller.made.u_scale]
    rows = zip(controller.functions.sent, scales, strict=False)
    return "".join(f"  self->memory[{a}] = self->found[{b}] / {scale};\n" for (a, b), scale in rows)


def _checkout(controller: Any, counted: str, checked: str) -> str:
    lines = []
    for use, f in _functions_by_use(controller).items():
        lines += [f"  {f.name()}_{counted}();", f"  self->{use}_mem = {f.name()}_{checked}();"]
    return "\n".join(lines)


def _released(controller: Any) -> str:
    """A function that gives back what init took from a library."""
    name, lines = controller.name, []
    for use, f in _functions_by_use(controller).items():
        lines += [f"  if (self->{use}_mem >= 0) {f.name()}_release(self->{use}_mem);", f"  self->{use}_mem = -1;"]
        lines.append(f"  {f.name()}_decref();")
    return f"\nvoid {name}_release_instance({name}_t *self) {{\n" + "\n".join(lines) + "\n}\n"


_RELEASED = """
/* Gives back what init took from the library. Instances at a time: CASADI_MAX_NUM_THREADS, which is to be defined where
 * NAME.c is compiled; a step of an instance beyond them returns NAME_FALLBACK. */
void NAME_release_instance(NAME_t *self);
"""


def _declared(functions: Sequence[ca.Function], real: str) -> str:
    """Declarations of the Functions, with what the program of the loop asks of them."""
    out = []
    for f in functions:
        n, sizes = f.name(), {k: getattr(f, f"sz_{k}")() for k in ("arg", "res", "iw", "w")}
        out.append(f"int {n}(const {real} **arg, {real} **res, int *iw, {real} *w, int mem);")
        out += [f"#define {n}_SZ_{k.upper()} {size}" for k, size in sizes.items()]
        out.append(f"int {n}_work(int *sz_arg, int *sz_res, int *sz_iw, int *sz_w);")
        out += [f"int {n}_checkout(void);", f"void {n}_release(int mem);"]
        out += [f"void {n}_incref(void);", f"void {n}_decref(void);"]
    return "\n".join(out) + "\n"


def _recorded(
    controller: Any, points: Sequence[Mapping[str, Any]] | None, real: str
) -> tuple[list[Array], list[Array], list[int]]:
    """(inputs, outputs, statuses) of steps from the start: those of `points`, else two of the last step's numbers, or
    of small ones, of zeros where the problem has no solution for these."""
    if points is not None:
        return _steps(controller, [[np.asarray(v, float) for v in controller.values(point)] for point in points], real)
    f = controller.function
    shapes = [f.size_in(k) for k in range(1, f.n_in())]
    sizes = [f.numel_in(k) for k in range(1, f.n_in())]
    rng, known = np.random.default_rng(0), np.asarray(controller.memory, float)[-1 - sum(sizes) : -1]
    for numbers in (known, rng.uniform(-0.1, 0.1, sum(sizes)).round(3)):
        if np.any(numbers != 0) and np.all(np.isfinite(numbers)):
            parts = np.split(numbers, np.cumsum(sizes)[:-1]) if sizes else []
            values = [x.reshape(shape, order="F") for x, shape in zip(parts, shapes, strict=True)]
            recorded = _steps(controller, [values, values], real)
            if not any(recorded[2]):
                return recorded
    values = [np.zeros(shape) for shape in shapes]
    return _steps(controller, [values, values], real)


def _steps(controller: Any, points: Sequence[Sequence[Array]], real: str) -> tuple[list[Array], list[Array], list[int]]:
    """(inputs, outputs, statuses) of steps from the start; the controller stays as it is."""
    given: list[Array] = []
    expected: list[Array] = []
    statuses: list[int] = []
    kept, controller.memory = controller.memory, controller.start.copy()
    try:
        for values in points:
            given.append(np.concatenate([np.zeros(0), *(np.ravel(v, order="F") for v in values)]))
            rounded: Any = [np.asarray(v, np.float32).astype(float) if real == "float" else v for v in values]
            found = step_made(controller, Given(rounded))
            expected.append(np.concatenate([*(found[k] for k in controller.outputs), [found["objective"]]]))
            statuses.append(int(found["status"]))
    finally:
        controller.memory = kept
    return given, expected, statuses
