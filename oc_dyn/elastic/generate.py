"""Laws of control as C99: the complete law, a plain interface, and a harness that runs it against the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import casadi as ca
import numpy as np

from .. import validation
from ..codegen.build import Command, Flags, checked_flags, find_compiler, run_compiler
from ..codegen.differences import with_differences
from ..codegen.disk import write_texts
from ..codegen.footprint import FLAGS as SMALL
from ..codegen.footprint import Footprint, footprint
from ..codegen.names import checked_c_name
from ..codegen.source import checked_precision
from ..errors import ModelError, ShapeError, SolveError
from ..interrupts import command
from ..subexpressions import merged
from ..types import Array, Numbers, StrPath
from .closed_loop import ClosedLoop, torque_limits
from .control import Controller
from .harness import generated, harness
from .law_codegen import LawCode, law_texts, sizes
from .linear_errors import check_sample_time
from .measured_limits import measured_limits as limits_of
from .measured_limits import safe_torques
from .model import ElasticRobot
from .reference import Reference

FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")  # the last: the same roundings as on CasADi's virtual machine


@dataclass(frozen=True, eq=False)
class GeneratedController:
    """A law as C: its folder and files; sources: those to compile into one's own program; program: the compiled
    harness, None if no compiler was found; inputs, outputs, memory: {name: size} of the C structs."""

    name: str
    folder: Path
    sources: tuple[Path, ...]
    files: tuple[Path, ...]
    program: Path | None
    inputs: dict[str, int]
    outputs: dict[str, int]
    memory: int
    states: int

    def values(self, points: Numbers) -> Array:
        """(K, outputs) of the C law at K points (K, inputs + memory).

        SolveError with the law's status if it refuses one of them.
        """
        text = "\n".join(" ".join(f"{x:.17g}" for x in row) for row in np.atleast_2d(points))
        return _table(self._run(["values"], text))

    def loop(self, steps: int) -> tuple[Array, Array, Array]:
        """(t, states, commands), rows are samples: the C law with the simulated robot over so many sample times."""
        if not self.states:
            raise ShapeError(f"{self.name} was generated without a reference; there is no loop to run")
        rows = _table(self._run(["loop", str(int(steps))]))
        return rows[:, 0], rows[:, 1 : 1 + self.states], rows[:, 1 + self.states :]

    def seconds_per_step(self, calls: int = 100_000) -> float:
        """Mean time of a call of the law [s] over so many calls."""
        return float(self._run(["time", str(int(calls))]).split(",")[0]) / calls

    def footprint(self, *, flags: Flags = SMALL, compiler: Command | None = None) -> Footprint:
        """Footprint of the law as gcc compiles it, for another machine as well: code, variables, stack."""
        entries = [f"{self.name}_{x}" for x in ("init", "reset", "start", "step", "step_or")]
        return footprint(self.sources, entries, flags=flags, compiler=compiler)

    def _run(self, arguments: list[str], text: str | None = None) -> str:
        if self.program is None:
            raise SolveError(f"{self.name} is not compiled: no C compiler was found")
        done = command([str(self.program), *arguments], text)
        if done.returncode:
            raise SolveError(f"{self.name}: the harness ended with status {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def generate_controller(
    controller: Controller,
    folder: StrPath,
    *,
    name: str | None = None,
    sample_time: float = 1e-3,
    torque_limit: Numbers | None = None,
    safe_torque: Numbers = 0.0,
    reference: Reference | None = None,
    elastic: ElasticRobot | None = None,
    substeps: int = 1,
    compiler: str | None = None,
    flags: Sequence[str] = FLAGS,
    precision: str = "double",
    anti_windup: bool = True,
    measured_limits: str | Mapping[str, Any] | None = "robot",
    measure: bool = False,
) -> GeneratedController:
    """GeneratedController: the complete law of a Controller as C99 in `folder`, compiled if there is a compiler.

    name: of the C functions and files, the start of all their names; default that of the law. Controllers in one
        program, or one folder, need different ones. sample_time [s]: between calls; moves the law's memory.
    torque_limit: (motors,) or a number [Nm] at which motor torques saturate; <name>_out tells which are at it.
    safe_torque: (motors,) or a number [Nm], output of <name>_step if a number of its input, its memory or its result is
        NaN or infinite, whatever the flags of the compiler. It then returns a status other than 0, see <name>.h, and
        its memory stays as it was. <name>_step_or takes a safe output with every call.
    reference, elastic: a Reference and the real robot (default the controller's model), for the harness: it runs the
        law with the robot, integrated in `substeps` steps of order 8 per sample time, as simulate does.
    compiler: command of the C compiler; None for the first of $CC, cc, gcc and clang that exists. flags: its options.
    precision: "double", or "single": the law computes in float, on differences of its inputs that are formed in double.
    anti_windup: whether torques that the law integrates stay within torque_limit, as simulate has it.
    measured_limits: of what is measured: a sample beyond them is a wild one, which gives a status and the safe torque,
        as NaN does, and leaves the memory as it was. "robot": ranges of the joints, half as much wider at each end, 3
        times their speeds (100 rad/s where the robot says nothing), and, where torque limits are known, 5 times these
        for measured torques and, by their stiffness, for the deflections of linear springs; from one sample to the next
        a position moves by 0.01 rad more than at the largest speed, at most. {port: bound}: the same with bounds of
        one's own for |q|, |v|, |theta|, |dtheta|, |tau|, |dtau|, |sigma|, |dsigma| or |deflection|, numbers or one per
        row, None for none; speeds bound the steps. None: every finite sample is taken.
    measure: whether gcc compiles the law for what the header says on the stack; see footprint of what comes back.
    An instance, <name>_t, holds all that is written; gains, limits and safe torques are its parameters, which may be
    changed while it runs: limits can be narrowed, not widened.
    Files: <name>.h, <name>.c (interface), <name>_law.c, .h (the law), <name>.hpp (for C++17), <name>_example.c,
    <name>_selftest.c, <name>_targets.cmake, CMakeLists.txt, <name>_loop.c, .h (reference and robot, for the harness
    alone), <name>_harness.c, and the program <name>_harness.
    Raises ShapeError, ModelError; SolveError with the compiler's words if it refuses.
    """
    name, folder = controller.name if name is None else name, Path(folder)
    sample_time = validation.number("generate_controller: sample_time", sample_time, above=0)
    check_sample_time("generate_controller", sample_time, controller)
    _check_arguments(folder, name, reference, elastic)
    code, functions = law_code(
        controller, name, sample_time, torque_limit, safe_torque,
        precision=precision, anti_windup=anti_windup, measured=measured_limits,
    )  # fmt: skip
    loop = ClosedLoop(elastic or controller.elastic, controller, reference, None) if reference is not None else None
    texts = law_texts(code, functions, measure) | harness(code, loop, substeps)
    write_texts("generate_controller", folder, texts)
    sources = [f"{name}.c", f"{name}_law.c"]
    compiled = [*sources, f"{name}_harness.c"] + ([f"{name}_loop.c"] if loop else [])
    return GeneratedController(
        name=name,
        folder=folder,
        sources=tuple(folder / f for f in sources),
        files=tuple(folder / f for f in texts),
        program=_compile(folder, f"{name}_harness", compiled, compiler, flags),
        inputs=sizes(code.law, "in", ("memory", "differences", *controller.gains)),
        outputs=sizes(code.law, "out", ("memory_next",)),
        memory=controller.memory,
        states=loop.plant.size if loop else 0,
    )


def law_code(
    controller: Controller, name: str, sample_time: float = 1e-3, torque_limit: Numbers | None = None,
    safe_torque: Numbers = 0.0, *, precision: str = "double", anti_windup: bool = True, measured: Any = None,
) -> tuple[LawCode, dict[str, str]]:  # fmt: skip
    """(LawCode, {file: text} of the functions of the law); arguments and errors as of generate_controller."""
    limit = torque_limits(controller, torque_limit, "generate_controller")
    safe = safe_torques("generate_controller", controller, safe_torque, limit)
    checked_precision("generate_controller", precision)
    _refuse_no_numbers(controller)
    differences: list[tuple[int, int]] = []
    law = _law(controller, sample_time, f"{name}_law")
    if precision == "single":
        law, differences = with_differences(law, apart=("memory", *controller.gains))
    first = _first(controller, f"{name}_first") if controller.memory else None
    functions = generated(f"{name}_law", [law] + ([first] if first else []), precision)
    code = LawCode(controller, name, sample_time, law, first, limit, safe, precision, differences, anti_windup)
    code.measured = limits_of("generate_controller", controller, measured, sample_time, limit)
    return code, functions


def _refuse_no_numbers(controller: Controller) -> None:
    """ModelError for a law with a gain that is NaN or infinite, before anything is written."""
    for name, x in controller.gains.items():
        if not np.all(np.isfinite(x)):
            raise ModelError(
                "generate_controller", [f"{name} of {controller.name} is NaN or infinite; expected numbers"]
            )


def _check_arguments(
    folder: Path, name: str, reference: Reference | None, elastic: ElasticRobot | None,
) -> None:  # fmt: skip
    checked_c_name("generate_controller", name, "give another name=")
    if elastic is not None and reference is None:
        raise ModelError("generate_controller", ["a robot is given without a reference; give both or none"])
    _check_folder(folder, name)


def _check_folder(folder: Path, name: str) -> None:
    """Refuse to overwrite files of another controller: arm_law is also a part of the code of arm."""
    for part in ("law", "loop", "harness"):
        other = name.removesuffix(f"_{part}")
        if other != name and (folder / f"{other}.h").exists() and (folder / f"{name}.c").exists():
            problem = f"{name}.c in it belongs to the controller {other}; give another folder or another name="
            raise ModelError(f"generate_controller into {folder}", [problem])


def _law(controller: Controller, sample_time: float, name: str) -> ca.Function:
    """The law with its memory moved on, its gains inputs behind the others: .. -> tau_m [, tau_sigma] [, memory_next].

    Its torques are cut off outside, where it is known that they are numbers: fmin and fmax would make one of NaN.
    """
    f = controller.with_gains or controller.function
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    found = f(**ports)
    out = {n: found[n] for n in f.name_out()}  # torques first: a call sorts outputs by their names
    if "memory_rate" in out:
        out["memory_next"] = ports["memory"] + sample_time * out.pop("memory_rate")
    return ca.Function(name, list(ports.values()), merged(list(out.values())), list(ports), list(out))


def _first(controller: Controller, name: str) -> ca.Function:
    f = cast(ca.Function, controller.first_memory)
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    return ca.Function(name, list(ports.values()), [f(**ports)["memory"]], list(ports), ["memory"])


def _compile(folder: Path, program: str, sources: Any, compiler: str | None, flags: Sequence[str]) -> Path | None:
    """The compiled harness; None without a compiler."""
    try:
        words = find_compiler(compiler)
    except SolveError:
        return None
    run_compiler([*words, *checked_flags("compile", flags), "-o", program, *sources, "-lm"], folder)
    return folder / (f"{program}.exe" if (folder / f"{program}.exe").exists() else program)


def _table(text: str) -> Array:
    return np.array([[float(x) for x in line.split(",")] for line in text.splitlines() if line.strip()])
