"""Laws of control as C99: the complete law, a plain interface, and a harness that runs it against the simulation."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

import casadi as ca
import numpy as np

from ..codegen.build import find_compiler, run_compiler
from ..codegen.disk import write_texts
from ..codegen.source import c_source, prepared
from ..codegen.texts import header
from ..errors import ModelError, ShapeError, SolveError
from ..function import checked_name
from ..interrupts import command
from .closed_loop import Loop, torque_limits
from .dop853 import fixed_step

FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")  # the last: the same roundings as on CasADi's virtual machine


@dataclass(frozen=True, eq=False)
class GeneratedController:
    """A law as C. folder and files of it; sources: those to compile into a program of one's own; program: the compiled
    harness, None where no compiler was found; inputs, outputs, memory: {name: size} of the C structs."""

    name: str
    folder: Path
    sources: tuple
    files: tuple
    program: Path | None
    inputs: dict
    outputs: dict
    memory: int
    states: int

    def values(self, points):
        """(K, outputs) what the C law gives at K points (K, inputs + memory)."""
        text = "\n".join(" ".join(f"{x:.17g}" for x in row) for row in np.atleast_2d(points))
        return _table(self._run(["values"], text))

    def loop(self, steps):
        """(t, states, commands), rows are samples: the C law against the simulated robot over so many sample times."""
        if not self.states:
            raise ShapeError(f"{self.name} was generated without a reference; there is no loop to run")
        rows = _table(self._run(["loop", str(int(steps))]))
        return rows[:, 0], rows[:, 1 : 1 + self.states], rows[:, 1 + self.states :]

    def seconds_per_step(self, calls=100_000):
        """Seconds a call of the law takes, on average over so many."""
        return float(self._run(["time", str(int(calls))]).split(",")[0]) / calls

    def _run(self, arguments, text=None):
        if self.program is None:
            raise SolveError(f"{self.name} is not compiled: no C compiler was found")
        done = command([str(self.program), *arguments], text)
        if done.returncode:
            raise SolveError(f"{self.name}: the harness ended with status {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def generate_controller(
    controller,
    folder,
    *,
    name=None,
    sample_time=1e-3,
    torque_limit=None,
    reference=None,
    elastic=None,
    substeps=1,
    compiler=None,
    flags=FLAGS,
):
    """GeneratedController: the complete law of a Controller as C99 in `folder`, compiled if there is a compiler.

    name: of the C functions and files; default that of the law. sample_time [s]: between calls; moves the law's memory.
    torque_limit: (motors,) or a number [Nm], where motor torques are cut off.
    reference, elastic: a Reference and the robot that is there (default the controller's model), for the harness: it
        runs the law against the robot, integrated in `substeps` steps of order 8 a sample time, as simulate does.
    compiler: command of the C compiler; None for $CC, cc, gcc or clang, whichever is there. flags: its options.
    Files: <name>.h, <name>.c (interface, static work arrays), <name>_law.c, .h (the law), <name>_loop.c, .h (reference
    and robot, for the harness alone), harness.c, and the program harness.
    Raises ShapeError, ModelError; SolveError with the compiler's words if it refuses.
    """
    name = controller.name if name is None else name
    checked_name(name)
    if not (np.isfinite(sample_time) and sample_time > 0):
        raise ShapeError(f"generate_controller: sample_time is {sample_time!r}, expected a positive number of seconds")
    if elastic is not None and reference is None:
        raise ModelError("generate_controller", ["a robot is given without a reference; give both or none"])
    folder = Path(folder)
    law = _law(controller, sample_time, torque_limits(controller, torque_limit), f"{name}_law")
    functions = [law] + ([_first(controller, f"{name}_first")] if controller.memory else [])
    texts = _generated(f"{name}_law", functions)
    loop, parts = None, []
    if reference is not None:
        loop = Loop(elastic or controller.elastic, controller, reference, None)
        parts = _loop_functions(loop, controller, name, substeps)
        texts |= _generated(f"{name}_loop", parts)
    words = _words(controller, name, sample_time, law, functions[1:])
    words |= _loop_words(controller, name, loop, parts)
    for file, template in {f"{name}.h": "law.h.in", f"{name}.c": "law.c.in", "harness.c": "harness.c.in"}.items():
        texts[file] = Template((files(__package__) / template).read_text(encoding="utf-8")).substitute(words)
    write_texts("generate_controller", folder, texts)
    sources = [f"{name}.c", f"{name}_law.c"]
    compiled = [*sources, "harness.c"] + ([f"{name}_loop.c"] if loop else [])
    return GeneratedController(
        name=name,
        folder=folder,
        sources=tuple(folder / f for f in sources),
        files=tuple(folder / f for f in texts),
        program=_compile(folder, compiled, compiler, flags),
        inputs=_sizes(law, "in", "memory"),
        outputs=_sizes(law, "out", "memory_next"),
        memory=controller.memory,
        states=loop.plant.size if loop else 0,
    )


def _law(controller, sample_time, limit, name):
    """The law with its torques cut off and its memory moved on: .. -> tau_m [, tau_sigma] [, memory_next]."""
    f = controller.function
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    out = f(**ports)
    if limit is not None:
        out["tau_m"] = ca.fmax(-limit, ca.fmin(limit, out["tau_m"]))
    if controller.memory:
        out["memory_next"] = ports["memory"] + sample_time * out.pop("memory_rate")
    return ca.Function(name, list(ports.values()), ca.cse(list(out.values())), list(ports), list(out))


def _first(controller, name):
    f = controller.first_memory
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    return ca.Function(name, list(ports.values()), [f(**ports)["memory"]], list(ports), ["memory"])


def _loop_functions(loop, controller, name, substeps):
    """The reference as (t) -> inputs of the law, and a sample time of the robot as (t, x, h, u) -> x_next."""
    t = ca.MX.sym("t")
    ref = loop.reference_at(t)
    wanted = ca.vertcat(*(ref[n] for n in controller.reference_names))
    step = fixed_step(loop.held_rates(), substeps)
    arguments = [ca.MX.sym(n, *step.size_in(n)) for n in step.name_in()]
    return [
        ca.Function(f"{name}_reference", [t], [ca.densify(wanted)]),
        ca.Function(f"{name}_robot", arguments, [step(*arguments)]),
    ]


def _generated(stem, functions):
    """{file: text} of the C functions and their header."""
    written = [prepared(f, f.name(), parts=0) for f in functions]
    return {
        f"{stem}.c": c_source(written, stem, integer="int"),
        f"{stem}.h": header(stem, functions, written, integer="int"),
    }


def _sizes(f, which, apart):
    names = f.name_in() if which == "in" else f.name_out()
    size = f.size1_in if which == "in" else f.size1_out
    return {n: size(n) for n in names if n != apart}


def _words(controller, name, sample_time, law, first):
    """What the templates leave open."""
    inputs, outputs = _sizes(law, "in", "memory"), _sizes(law, "out", "memory_next")
    arguments = [f"    arg[{i}] = {'memory->x' if n == 'memory' else f'in->{n}'};" for i, n in enumerate(law.name_in())]
    memory = controller.memory
    step = [
        *([f"    double memory_next[{memory}];"] if memory else []),
        *arguments,
        *(
            f"    res[{i}] = {'memory_next' if n == 'memory_next' else f'out->{n}'};"
            for i, n in enumerate(law.name_out())
        ),
        f"    if ({name}_law(arg, res, iw, w, 0)) return 1;",
        "    memcpy(memory->x, memory_next, sizeof memory_next);" if memory else "    (void)memory;",
        "    return 0;",
    ]
    start = ["    (void)in;", "    (void)memory;", "    return 0;"]
    if memory:
        f = first[0]
        start = [
            f"    static const double *arg[{f.sz_arg()}];",
            f"    static double *res[{f.sz_res()}];",
            f"    static int iw[{max(1, f.sz_iw())}];",
            f"    static double w[{max(1, f.sz_w())}];",
            *(f"    arg[{i}] = in->{n}_ref;" for i, n in enumerate(f.name_in())),
            "    res[0] = memory->x;",
            f"    return {name}_first(arg, res, iw, w, 0);",
        ]
    rng = np.random.default_rng(0)
    return {
        "name": name,
        "NAME": name.upper(),
        "title": f"{controller.name} of {controller.elastic.name}, {law.n_instructions()} operations a step",
        "sample_time": f"{sample_time:.17g}",
        "inputs": "\n".join(f"    double {n}[{k}];" for n, k in inputs.items()),
        "outputs": "\n".join(f"    double {n}[{k}];" for n, k in outputs.items()),
        "memory": f"    double x[{max(1, memory)}];" + ("" if memory else " /* this law has none */"),
        **{f"law_{k}": max(1, getattr(law, f"sz_{k}")()) for k in ("arg", "res", "iw", "w")},
        "step": "\n".join(["    " + line.strip() for line in step]),
        "start": "\n".join(start),
        "sample": ", ".join(f"{x:.3f}" for x in rng.uniform(-0.5, 0.5, sum(inputs.values()))),
        "read_memory": _READ_MEMORY.format(memory=memory) if memory else "        (void)memory;",
    }


_READ_MEMORY = """        for (i = 0; i < {memory}; ++i)
            if (scanf("%lf", memory.x + i) != 1) return 1;"""

_NO_LOOP = """static int run_loop(long steps) {
    (void)steps;
    (void)start;
    (void)write_row;
    fprintf(stderr, "generated without a reference: no loop to run\\n");
    return 2;
}
"""


def _loop_words(controller, name, loop, functions):
    if loop is None:
        return {"include_loop": "", "state": 1, "first_state": "0", "loop": _NO_LOOP}
    parts, known = loop.plant.parts, controller.function.name_in()
    copies = [f"        memcpy(in.{n}, x + {part.start}, sizeof in.{n});" for n, part in parts.items() if n in known]
    text = (files(__package__) / "loop.c.in").read_text(encoding="utf-8")
    words = {
        "name": name,
        "NAME": name.upper(),
        **{k: max(1, *(getattr(f, f"sz_{k}")() for f in functions)) for k in ("arg", "res", "iw", "w")},
        "whole": loop.size,
        "controls": loop.plant.controls + controller.memory,
        "copies": "\n".join(copies),
    }
    return {
        "include_loop": f'#include "{name}_loop.h"\n',
        "state": loop.plant.size,
        "first_state": ", ".join(f"{x:.17g}" for x in loop.first_state(None)[: loop.plant.size]),
        "loop": Template(text).substitute(words),
    }


def _compile(folder, sources, compiler, flags):
    """The compiled harness; None without a compiler."""
    try:
        words = find_compiler(compiler)
    except SolveError:
        return None
    run_compiler([*words, *flags, "-o", "harness", *sources, "-lm"], folder)
    return folder / ("harness.exe" if (folder / "harness.exe").exists() else "harness")


def _table(text):
    return np.array([[float(x) for x in line.split(",")] for line in text.splitlines() if line.strip()])
