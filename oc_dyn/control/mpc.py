"""od.mpc: model-predictive control, a Problem that is solved again and again from where the last solution left off.

ocp = od.Problem(nodes=20, duration=0.4)
q_now = ocp.parameter("q_now", 7)              # what is measured
...                                            # states, controls, limits, costs as for any Problem
control = od.mpc(ocp, outputs={"tau": tau})
tau = control.step({"q_now": q})["tau"]        # of the first node
control.codegen("controller")                  # the same as C
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, cast

import casadi as ca
import numpy as np

from .._moved import renamed
from ..codegen.build import Command, Flags, checked_flags, find_compiler, run, run_compiler
from ..codegen.disk import write_texts
from ..codegen.footprint import FLAGS as SMALL
from ..codegen.footprint import Footprint, footprint
from ..codegen.names import checked_c_name
from ..codegen.source import checked_precision
from ..errors import ModelError, ShapeError, SolveError, UnknownName
from ..interrupts import check_deadline, watched
from ..numbers import shortened
from ..optimal_control.problem import Problem
from ..types import Array, ExpressionLike, Numbers, StrPath
from ..validation import count, number, one_of, options_of
from ..validation import expression as expression_of
from .closed_loop import ClosedLoop, checked_loop, loop_of
from .closed_loop_codegen import is_of_another, named, program
from .controller_codegen import controller_texts
from .delay import delay_of
from .ports import check_ports
from .solver_choice import LIBRARIES, WITHOUT_C, solver_choice
from .status import Status
from .step_functions import StepFunctions, bounds_of
from .stepping import Given, Prepared, measured_numbers, prepared_made, reaction_made, step_made


def mpc(
    problem: Problem, *, outputs: Mapping[str, ExpressionLike] | None = None, method: str = "rk4",
    hessian: str = "gauss_newton", qpsol: str = "riccati", iterations: int = 10, shift: int | None = None,
    name: str = "mpc", solver_options: Mapping[str, Any] | None = None,
    output_bounds: Mapping[str, tuple[Numbers, Numbers]] | None = None, on_failure: str | ca.Function = "shifted",
    measured: Sequence[str] | None = None, delay: float = 0.0,
) -> PredictiveController:  # fmt: skip
    """PredictiveController of a Problem of fixed size: sequential quadratic programming, warm-started, bounded work.

    problem: its parameters are what is measured and what is wanted; the first node is the present. Durations are fixed.
    outputs: {name: expression} of the first node that step gives, by default all controls.
    method, hessian: as those of Problem.solve; "gauss_newton" needs the squares of minimize and is never indefinite.
    qpsol: "riccati", which makes use of the stages; "qrqp", for which they are one; "osqp" or "daqp", whose C needs
    headers and libraries of CasADi's wheel; "hpipm", which is for Python alone.
    iterations: quadratic programs solved in a step at most; fewer where the solution does not change any more. 1 is the
    real-time iteration: step is prepare, then react.
    shift: intervals that pass from one step to the next; the last solution is moved by as many. Default 1, or 0 where
    there is one interval, or unequal ones, of a mesh or of phases, which do not move into each other.
    name: of the C function and its files, the start of all their names; controllers in one program need different ones.
    output_bounds: {name: (lower, upper)}, which no output ever leaves; by default those of an output that is a control,
    none for other expressions: give the limits of torque here.
    on_failure: outputs where a step cannot be made: "shifted", those of the last good plan moved on; "zero"; or a
    casadi.Function of parameters, by their names, such as od.control.gravity and od.control.brake make.
    measured: names of the parameters of react, by default those that enter the rows of Problem.start.
    delay: [s] between a measurement and the moment when its output acts: the state that was measured is moved on by the
    model, under the controls in flight, and the first node is then. All controls have to be outputs: what was sent, as
    clipped or given by on_failure, is in flight. shift=1.

    Where limits cannot all be kept from what is measured, they give way, those of controls and outputs last, and status
    says so: what is beyond has a price that is high enough to keep whatever can be kept. Dynamics and equations do not
    give way. A quadratic program ends after 40 Newton steps of riccati, 50 iterations of qrqp, 200 of daqp, 4000 of
    osqp (solver_options: qpsol_options); where these three do not solve it, riccati does.
    Raises ShapeError, UnknownName, OrderError for what does not fit.
    """
    if not isinstance(problem, Problem):
        raise ShapeError(f"mpc: got {shortened(problem)}, expected an od.Problem")
    if problem.description.relative_length is not None:
        raise ShapeError("mpc: the problem has a free mesh, whose intervals have no fixed lengths; take mesh='uniform'")
    if problem.description.free_time:
        raise ShapeError("mpc: the problem has a free duration; give its phases fixed ones")
    one_of("solver of quadratic programs", qpsol, tuple(LIBRARIES))
    one_of("hessian of mpc", hessian, ("exact", "gauss_newton"))
    count("mpc: iterations", iterations, 1)
    solver_options = options_of("mpc: solver_options", solver_options)
    made = problem.transcribed(method)
    given = _checked_outputs(made, outputs)
    checked_c_name("mpc", name, "give another name=")
    check_ports(name, problem.description.parameter_names, list(given))
    bounds = bounds_of(given, made, options_of("mpc: output_bounds", output_bounds))
    if not isinstance(on_failure, ca.Function):
        one_of("mpc: on_failure", on_failure, ("shifted", "zero"))
    qp, most, options = solver_choice(qpsol, int(iterations), solver_options)
    shift = _checked_shift(made, shift)
    functions = StepFunctions(
        made, given, name, hessian, qp, most, options, shift, on_failure, measured,
        delay_of(made, delay, shift, given),
    )  # fmt: skip
    return PredictiveController(made, functions, bounds, qp[0], name, most)


def _checked_outputs(made: Any, outputs: Mapping[str, ExpressionLike] | None) -> dict[str, ca.MX]:
    if outputs is None:
        outputs = {v.name: v.symbol for v in made.controls}
    given = {k: expression_of(f"output {k!r}", x) for k, x in options_of("mpc: outputs", outputs).items()}
    if not given:
        raise ShapeError("mpc: there are no outputs; the problem has no controls, or outputs={} was given")
    for what, expression in given.items():
        made.check_known(f"symbol in output {what!r}", expression)
    return given


def _checked_shift(made: Any, shift: int | None) -> int:
    lengths = [T / phase.nodes for T, phase in zip(made.nominal_durations, made.phases, strict=True)]
    unequal = any(phase.shares is not None for phase in made.phases) or max(lengths) > (1 + 1e-9) * min(lengths)
    shift = (0 if unequal else min(1, made.total - 1)) if shift is None else shift
    if count("mpc: shift", shift) >= made.total:
        raise ShapeError(f"mpc: shift is {shift!r}, expected an integer from 0 to {made.total - 1}")
    if shift and unequal:
        raise ShapeError(
            "mpc: shift is for intervals of equal length, in all phases; take shift=0, or mesh='uniform' and phases "
            "whose intervals are as long as each other"
        )
    return int(shift)


class PredictiveController:
    """What od.mpc made.

    function: casadi.Function (memory, *parameters) -> (*outputs, next_memory, objective, violation, status,
    iterations), the solution alone. step, and <name>_step in C, look at its numbers and keep the bounds of the outputs.
    preparation: (memory, *parameters) -> prepared: all of a quadratic program that does not need `measured`, the names
    of what feedback takes. feedback: (prepared, *measured) -> as function.
    memory: where the next step starts, see step_functions; reset() forgets it.
    """

    def __init__(
        self, made: Any, functions: StepFunctions, bounds: dict[str, tuple[Array, Array]], qpsol: str, name: str,
        iterations: int,
    ) -> None:  # fmt: skip
        self.made, self.qpsol, self.name = made, qpsol, name
        self.names = made.description.parameter_names
        self.bounds = bounds
        self.outputs = {k: lower.size for k, (lower, _) in bounds.items()}
        self.function, self.fallback, self.start = functions.function, functions.fallback, functions.start
        length = made.duration_numbers(0)[0] / made.phases[0].nodes
        self.sample_time = functions.shift * length if functions.shift else None  # [s] from one step to the next
        self.preparation, self.feedback = functions.preparation, functions.feedback
        self.measured, self.real_time, self.functions = functions.measured, iterations == 1, functions
        self.reset()

    def reset(self) -> PredictiveController:
        """Back to the guesses of the problem."""
        self.memory = self.start.copy()
        self.prepared: Prepared | None = None
        return self

    def values(self, parameters: Mapping[Any, Numbers]) -> list[Array]:
        """[values of the parameters], in the order of function, from {symbol or name: value}."""
        made = self.made
        p = made.parameters(parameters)
        common = np.split(p[: made.n_p], np.cumsum([s.numel() for s in made.p])) if made.p else [np.zeros(0)]
        rows = np.split(p[made.n_p :].reshape(-1, made.n_s).T, np.cumsum([s.numel() for s in made.own]))
        return [*common[: len(made.description.parameters)], *rows[1:-1]]

    def step(self, parameters: Mapping[Any, Numbers]) -> dict[str, Any]:
        """{output: value (size,)} of the first node, with "status" (a Status, 0 is ok), "objective", "violation"
        (largest of a scaled constraint), "iterations" (quadratic programs), "seconds" and "timings" ({"preparation":
        s, "feedback": s}); the next step starts from this solution, or from the last good one moved on. Outputs are
        within their bounds whatever is given. With iterations=1 it is prepare, then react.

        Numbers that are NaN or infinite are measurements that failed, not mistakes: the status says so, and on_failure
        takes the last good ones in their place. Raises ShapeError for values that are missing or of another size.
        """
        if self.real_time:
            self.prepare(parameters)
            return self.react({k: v for k, v in self._named(parameters).items() if k in self.measured})
        given = self._given(parameters)
        begun = time.perf_counter()
        with watched(hold=True):  # its work is bounded: a signal waits for the end of the step
            found = step_made(self, given)
        self.prepared = None  # from a memory that is past
        return found | _timings(0.0, time.perf_counter() - begun)

    def prepare(self, parameters: Mapping[Any, Numbers]) -> PredictiveController:
        """Do all of the next step that does not need what is measured. parameters: all of them, those of `measured` as
        far as they are known: what else they enter than the rows of Problem.start takes them from here. Raises
        ShapeError."""
        given = self._given(parameters)
        begun = time.perf_counter()
        with watched(hold=True):
            self.prepared = prepared_made(self, given)
            self.prepared.seconds = time.perf_counter() - begun
        return self

    def react(self, measured: Mapping[Any, Numbers]) -> dict[str, Any]:
        """What step returns, for what is measured, by one quadratic program from what prepare left. Raises SolveError
        where nothing is prepared, or a step was made since: in C it is FALLBACK. Raises ShapeError, too."""
        prepared = self.prepared
        if prepared is None:
            raise SolveError("react: nothing is prepared; call prepare before each react")
        numbers, bad = measured_numbers(measured)
        given = Given(self._measured_values(numbers), self._wrong(self._measured_values, numbers, bad))
        begun = time.perf_counter()
        with watched(hold=True):
            found = reaction_made(self, prepared, given)
        self.prepared = None
        return found | _timings(prepared.seconds, time.perf_counter() - begun)

    def _given(self, parameters: Any) -> Given:
        """Values of all parameters, and which of their numbers are none."""
        numbers, bad = measured_numbers(parameters)
        return Given(self.values(numbers), self._wrong(self.values, numbers, bad))

    def _wrong(self, values: Any, numbers: Any, bad: Mapping[Any, Any]) -> list[Any] | None:
        """Which of the values of parameters are none."""
        if not bad:
            return None
        return [
            np.asarray(x) > 0 for x in values({k: bad.get(k, 0 * np.asarray(x, float)) for k, x in numbers.items()})
        ]

    def _named(self, parameters: Mapping[Any, Numbers]) -> dict[str, Numbers]:
        """{name: value} from {symbol or name: value}."""
        description = self.made.description
        names = [(name, s) for name, s in (*description.parameters, *description.varying)]
        found = {}
        for key, value in parameters.items():
            name = key if isinstance(key, str) else next((n for n, s in names if s is key), key)
            found[name] = value
        return found

    def _measured_values(self, measured: Any) -> list[Array]:
        """Values of what is measured, in the order of feedback."""
        known = self._named(options_of("react: measured", measured))
        for k in known:
            if k not in self.measured:
                raise UnknownName("react: measured parameter", k, self.measured)
        missing = [k for k in self.measured if k not in known]
        if missing:
            raise ShapeError(f"react: measured parameter {missing[0]!r} has no value")
        zeros = {k: 0.0 for k in self.names if k not in known}
        values = dict(zip(self.names, self.values({**zeros, **known}), strict=True))
        return [values[k] for k in self.measured]

    def closed_loop(
        self, plant: ca.Function, x: Numbers, steps: int, parameters: Mapping[Any, Numbers], measured: ca.Function,
    ) -> ClosedLoop | None:  # fmt: skip
        """ClosedLoop of so many steps: x_next = plant(x, *outputs), a casadi.Function, from x (nx,).

        measured: a casadi.Function x -> (*parameters), its outputs named like those parameters, (size, 1), or
        (size, N + 1) where they vary along the nodes: what is measured, and what is wanted if x holds the time.
        parameters: {name: value} of the others.
        A deadline that passes ends it, with the ClosedLoop so far as the trajectory of SolveError, and so does a
        measurement that is NaN.
        """
        plant, measured, x = self._checked("closed_loop", plant, measured, x)
        count("closed_loop: steps", steps)
        rows: list[tuple[Any, ...]] = []
        for _ in range(steps):
            check_deadline("closed_loop", trajectory=loop_of(rows))
            seen = dict(zip(measured.name_out(), measured.call([x]), strict=True))
            found = self.step({**parameters, **{k: np.array(v).T for k, v in seen.items()}})
            if found["status"] == Status.BAD_MEASUREMENT:
                said = f"step {len(rows)}: what is measured has a number that is NaN, infinite or beyond 1e12"
                raise SolveError(f"closed_loop: {said}", trajectory=loop_of(rows))
            u = [found[k] for k in self.outputs]
            rows.append((x, np.concatenate(u), *(found[k] for k in ("objective", "violation", "seconds", "status"))))
            x = np.array(plant.call([x, *u])[0]).ravel()
        return loop_of(rows)

    def closed_loop_in_c(
        self, plant: ca.Function, x: Numbers, steps: int, parameters: Mapping[Any, Numbers], measured: ca.Function,
        *, rate: float | None = None, flags: Sequence[str] = ("-O2",), folder: StrPath | None = None,
    ) -> ClosedLoop:  # fmt: skip
        """As closed_loop, from the memory as it is now, by a C program that is written, built and run without Python.

        rate [1/s], flags: see codegen and build. folder: where the files stay; by default none does.
        """
        self._checked("closed_loop_in_c", plant, measured, x)
        count("closed_loop_in_c: steps", steps, 1)
        with tempfile.TemporaryDirectory() as temporary:
            folder = temporary if folder is None else folder
            self.codegen(folder, plant, measured, parameters, x, steps, rate)
            self.build(folder, flags)
            return self.run_in_c(folder)

    def _checked(self, where: str, plant: Any, measured: Any, x: Any) -> tuple[ca.Function, ca.Function, Array]:
        sizes = {k: self.function.numel_in(k) for k in self.names}
        return checked_loop(where, plant, measured, x, self.outputs, sizes)

    def codegen(
        self, folder: StrPath, plant: ca.Function | None = None, measured: ca.Function | None = None,
        parameters: Mapping[Any, Numbers] | None = None, x: Numbers | None = None, steps: int = 0,
        rate: float | None = None, *, precision: str = "double", joints: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None, points: Sequence[Mapping[Any, Numbers]] | None = None,
        measure: bool = False,
    ) -> list[Path]:  # fmt: skip
        """Write the controller as C; with a plant, also loop.c, a program that closes the loop. Returns the files.

        <name>.c, <name>.h: an instance <name>_t holds all that is written; <name>_init, <name>_reset, <name>_step, and
        its halves <name>_prepare and <name>_feedback, which look at numbers as step, prepare and react do and return
        the status, see <name>.h. <name>.hpp is for C++17; <name>_example.c, <name>_selftest.c, <name>_targets.cmake and
        CMakeLists.txt go with them. All symbols start with the name.
        precision: "double", or "single" for float. joints: names of the joints in order, and units: {port: unit}, for
        the header. points: the steps of the self-test, a list of {parameter: value}; default two of the last step's.
        measure: whether gcc compiles it for what the header says on the stack; see footprint.
        The program prints a line a step, as ClosedLoop has it, at `rate` [1/s], or freely. Raises ModelError for a
        folder that cannot be written to, or holds the program of another controller, and for a solver of quadratic
        programs without C of its own; ShapeError, UnknownName for options.
        """
        if self.qpsol in WITHOUT_C:
            raise ModelError(f"mpc: codegen with qpsol={self.qpsol!r}", [f"{WITHOUT_C[self.qpsol]}; take 'riccati'"])
        folder, programs = Path(folder), []
        checked_precision("mpc: codegen", precision)
        if plant is not None:
            if precision != "double":
                raise ShapeError("mpc: codegen: the program of a loop is in double precision; leave out the plant")
            plant, measured, x = self._checked("codegen", plant, measured, x)
            count("codegen: steps", steps)
            if rate:  # 0 is as fast as it can, too
                number("codegen: rate", rate, above=0)
            programs += [named(plant, f"{self.name}_plant"), named(measured, f"{self.name}_measured")]
            self._check_program(folder)
        facts: Any = {"precision": precision, "joints": joints, "units": units, "points": points, "measure": measure}
        texts = controller_texts(self, programs, **facts)
        if plant is not None:
            seen = cast(ca.Function, measured).name_out()
            given = {**{k: 0.0 for k in seen}, **(parameters or {})}
            values = dict(zip(self.names, self.values(given), strict=True))
            loop = program(self, values, seen, x, steps, rate)
            texts = {**{f"{self.name}.{end}": texts[f"{self.name}.{end}"] for end in "ch"}, "loop.c": loop, **texts}
        write_texts("mpc", folder, texts)
        return [folder / file for file in texts]

    def of_floats(self) -> PredictiveController:
        """This controller, its quadratic programs solved as far as single precision can."""
        made, functions = copy(self), self.functions.of_floats()
        for k in ("function", "fallback", "preparation", "feedback"):
            setattr(made, k, getattr(functions, k))
        return made

    def _check_program(self, folder: StrPath) -> None:
        """ModelError if loop.c in a folder is not of this controller."""
        path = Path(folder, "loop.c")
        if path.exists() and is_of_another(self.name, path.read_text(encoding="utf-8", errors="replace")):
            problem = f"loop.c in it is not the program of the controller {self.name}; give another folder"
            raise ModelError(f"mpc: folder {folder}", [problem])

    def build(self, folder: StrPath, flags: Sequence[str] = ("-O2",), compiler: str | None = None) -> Path:
        """Path of the program that the files of codegen in a folder make."""
        folder, root = Path(folder), Path(ca.__file__).parent
        self._check_program(folder)
        words = [*find_compiler(compiler), *checked_flags("build", flags), "-o", "loop", "loop.c", f"{self.name}.c"]
        for library in LIBRARIES[self.qpsol]:
            words += [
                f"-I{root}/include",
                f"-I{root}/include/{library}",
                f"-L{root}",
                f"-Wl,-rpath,{root}",
                f"-l{library}",
            ]
        run_compiler([*words, "-lm"], folder)
        return folder / "loop"

    def footprint(self, folder: StrPath, *, flags: Flags = SMALL, compiler: Command | None = None) -> Footprint:
        """Footprint of the controller in a folder as gcc compiles it, for another machine as well."""
        entries = [f"{self.name}_{x}" for x in ("init", "reset", "step", "prepare", "feedback")]
        return footprint([Path(folder, f"{self.name}.c")], entries, flags=flags, compiler=compiler)

    def run_in_c(self, folder: StrPath, seconds: float = 600) -> ClosedLoop:
        """ClosedLoop that the program in a folder ran, without Python."""
        self._check_program(folder)
        program_ = Path(folder).resolve() / "loop"
        status, out, err = run([str(program_)], time_limit=seconds, env={})
        if status:
            raise SolveError(f"{program_} ended with status {status}: {err.strip()[:500]}")
        rows = np.array([[float(x) for x in line.split(",")] for line in out.split()])
        if not rows.size:
            raise SolveError(f"{program_} makes no step; give codegen steps= of at least 1")
        nu = sum(self.outputs.values())
        nx = rows.shape[1] - nu - 4
        return ClosedLoop(rows[:, :nx], rows[:, nx : nx + nu], *rows[:, nx + nu :].T)


def _timings(preparation: float, feedback: float) -> dict[str, Any]:
    return {"seconds": preparation + feedback, "timings": {"preparation": preparation, "feedback": feedback}}


__getattr__ = renamed(__name__, {"Controller": "PredictiveController", "Loop": "ClosedLoop"})
