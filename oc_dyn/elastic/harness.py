"""The harness of a law in C: a program that runs the law with the simulated robot, times it, and gives its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..codegen.source import REALS, c_source, prepared
from ..codegen.templates import filled, header
from .closed_loop import ClosedLoop
from .control import Controller
from .dop853 import fixed_step
from .law_code import LawCode, tamed
from .torque_sensors import TORQUES, torque_sensors


def harness(code: LawCode, loop: ClosedLoop | None, substeps: int) -> dict[str, str]:
    """{file: text} of the program that runs the law, with the robot where there is a loop."""
    parts = _loop_functions(loop, code.controller, code.name, substeps) if loop else []
    text = filled("harness.c", __package__, **_harness_words(code, loop, parts))
    return {**(generated(f"{code.name}_loop", parts) if loop else {}), f"{code.name}_harness.c": text}


_NO_LOOP = """static int run_loop(long steps) {
    (void)steps;
    (void)start;
    (void)write_row;
    fprintf(stderr, "generated without a reference: no loop to run\\n");
    return 2;
}
"""


def _harness_words(code: LawCode, loop: ClosedLoop | None, functions: Sequence[ca.Function]) -> dict[str, Any]:
    """What fills the harness."""
    controller, name, memory = code.controller, code.name, code.controller.memory
    count = sum(x.count for x in code.inputs)
    rng = np.random.default_rng(0)
    words: dict[str, Any] = {
        "name": name,
        "in_real": "double" if code.wide else f"{name}_real",
        "inputs": count,
        "commands": sum(x.count for x in code.outputs),
        "memory": memory,
        "sample": ", ".join(f"{x:.3f}" for x in tamed(code, [rng.uniform(-0.5, 0.5, count)])[0]),
        "alone": "        self.known = 0;\n" if code.measured else "",
    }
    if loop is None:
        return {**words, "include_loop": "", "state": 1, "first_state": "0", "loop": _NO_LOOP}
    parts, known = loop.plant.parts, controller.function.name_in()
    copies = [f"        memcpy(in.{n}, x + {part.start}, sizeof in.{n});" for n, part in parts.items() if n in known]
    copies += _sensor_lines(name, known) if loop.measures_torques else []
    text = filled(
        "loop.c",
        __package__,
        name=name,
        NAME=name.upper(),
        **{k: max(1, *(getattr(f, f"sz_{k}")() for f in functions)) for k in ("arg", "res", "iw", "w")},
        whole=loop.size,
        controls=loop.plant.controls + memory,
        torques=loop.plant.controls,
        copies="\n".join(copies),
    )
    return {
        **words,
        "include_loop": f'#include "{name}_loop.h"\n',
        "state": loop.plant.size,
        "first_state": ", ".join(f"{x:.17g}" for x in loop.first_state(None)[: loop.plant.size]),
        "loop": text,
    }


def _sensor_lines(name: str, known: Sequence[str]) -> list[str]:
    """Lines of C that give the law what its torque sensors measure."""
    places = [f"res[{k}] = {f'in.{n}' if n in known else '0'};" for k, n in enumerate(TORQUES)]
    call = f"if ({name}_sensors(arg, res, iw, w, 0)) return 1;"
    return [f"        {line}" for line in ("arg[0] = &t;", "arg[1] = x;", *places, call)]


def _loop_functions(loop: ClosedLoop, controller: Controller, name: str, substeps: int) -> list[ca.Function]:
    """The reference as (t) -> inputs of the law, a sample time of the robot as (t, x, h, u) -> x_next, and, where the
    law reads torque sensors, these as (t, x) -> (tau, dtau)."""
    t = ca.MX.sym("t")
    ref = loop.reference_at(t)
    wanted = ca.vertcat(*(ref[n] for n in controller.reference_names))
    step = fixed_step(loop.held_rates(), substeps)
    arguments = [ca.MX.sym(n, *step.size_in(n)) for n in step.name_in()]
    functions = [
        ca.Function(f"{name}_reference", [t], [ca.densify(wanted)]),
        ca.Function(f"{name}_robot", arguments, [step(*arguments)]),
    ]
    if loop.measures_torques:
        x = ca.MX.sym("x", loop.plant.size)
        torques = torque_sensors(loop.elastic)(x, loop.sigma(ref))
        functions.append(ca.Function(f"{name}_sensors", [t, x], [*torques], ["t", "x"], [*TORQUES]))
    return functions


def generated(stem: str, functions: Sequence[ca.Function], precision: str = "double") -> dict[str, str]:
    """{file: text} of the C functions and their header."""
    written = [prepared(f, f.name(), parts=0) for f in functions]
    return {
        f"{stem}.c": c_source(written, stem, integer="int", precision=precision),
        f"{stem}.h": header(stem, functions, written, REALS[precision], integer="int"),
    }
