"""Ctrl-C and limits of time, and how they reach a solver.

    with od.deadline(10.0):            # seconds, for all that is solved inside
        motion = od.plan_point_to_point(robot, q_start, q_goal)

A solver is compiled code that takes an exception raised while it runs for an evaluation that failed, and goes on. So
what the handler of a signal raises meanwhile is stored, the solver is asked to stop at its next iteration, and the
exception is raised when it has returned. Handlers of one's own are called at once, and one that raises nothing stops
nothing. Signals reach the main thread alone, as always in Python; limits of time hold in every thread.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

import casadi as ca

from .errors import ShapeError, SolveError
from .validation import number

TIME_LIMIT = "time_limit"  # status of what a limit of time has stopped
LONGEST = 2e6  # [s] that command() waits, 23 days: an operating system counts milliseconds in 32 bits
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)]
_end: ContextVar[float] = ContextVar("end", default=math.inf)  # time.monotonic() at which all must be done
_building: ContextVar[bool] = ContextVar("building", default=False)  # whether the deadline stops it
_run: ContextVar[SolverRun | None] = ContextVar("run", default=None)  # of the solver that runs now
_commands: ContextVar[_Commands | None] = ContextVar("commands", default=None)  # [processes] that an interrupt ends


# -- limits of time --------------------------------------------------------------------------------------------------


@contextmanager
def deadline(seconds: float | None = None) -> Iterator[None]:
    """Within it, solvers stop after so many seconds, and what called them raises SolveError of status "time_limit".

    seconds: positive, or None for no limit. Of deadlines within each other the earliest counts. A solver stops at its
    next iteration; Problem.solve that raises stops while it builds the program, too, and its error has no solution
    then, and so do planners, whose errors have the motion that the solver would have begun with. Other work in Python
    between solvers, and solve(raises=False) while it builds, count but are not stopped. Raises ShapeError for what is
    no positive number.
    """
    end = math.inf
    if seconds is not None:
        if isinstance(seconds, bool) or not number("time limit [s]", seconds) > 0:
            raise ShapeError(f"time limit [s]: got {seconds!r}, expected a positive number, or None for no limit")
        end = time.monotonic() + float(seconds)
    token = _end.set(min(_end.get(), end))
    try:
        yield
    finally:
        _end.reset(token)


def expired() -> bool:
    """Whether the deadline has passed."""
    end = _end.get()
    return end < math.inf and time.monotonic() >= end


def seconds_left() -> float:
    """Until the deadline; infinite without one."""
    return _end.get() - time.monotonic()


def check_deadline(what: str, **last: Any) -> None:
    """Raise SolveError of status "time_limit" once the deadline has passed. last: its solution or trajectory so far."""
    if expired():
        raise SolveError(f"{what}: stopped by the limit of time", TIME_LIMIT, **last)


@contextmanager
def building(stops: bool = True) -> Iterator[None]:
    """Within it, check_building() raises once the deadline has passed: whoever calls can do without what is built."""
    token = _building.set(stops)
    try:
        yield
    finally:
        _building.reset(token)


def check_building() -> None:
    """Raise SolveError of status "time_limit" once the deadline has passed, within building()."""
    if _building.get():
        check_deadline("building the program")


# -- signals ---------------------------------------------------------------------------------------------------------


class _Pending:
    """What the handler of a signal raised in the main thread, and whether it has to wait."""

    watching, holding = False, False
    raised: BaseException | None = None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _listening(
    handle: Callable[..., None],
    signals: Sequence[int],
    default: Callable[..., Any] | None = None,
) -> Iterator[None]:
    """Within it, a signal calls handle(outer, number, frame), where `outer` is the handler that it had before, or
    `default` if that is given. Signals without a handler are left alone, and so are all outside the main thread."""
    before = {}
    if _in_main_thread():  # which alone may handle signals
        handlers = {s: signal.getsignal(s) for s in signals}
        before = {s: outer for s, outer in handlers.items() if default or callable(outer)}
    ours = {s: partial(handle, default or outer) for s, outer in before.items()}
    try:
        for s, handler in ours.items():
            signal.signal(s, handler)
        yield
    finally:
        for s, outer in before.items():
            if signal.getsignal(s) in (ours[s], outer):  # else it was changed within, to stay
                signal.signal(s, outer)


@contextmanager
def recorded(*signals: int, default: Callable[..., Any] | None = None) -> Iterator[list[BaseException]]:
    """The list of what the handlers of these signals raise within, including what is caught on the way, as by a solver
    that makes an error of its own of it. default: a handler to use instead of the present ones."""
    raised: list[BaseException] = []

    def record(outer: Any, number: int, frame: Any) -> None:
        try:
            outer(number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    with _listening(record, signals, default):
        yield raised


def _handle(outer: Any, number: int, frame: Any) -> None:
    try:
        outer(number, frame)
    except BaseException as error:
        if _Pending.watching:
            _Pending.raised = error
        if not _Pending.holding:
            raise


@contextmanager
def watched(hold: bool = False) -> Iterator[None]:
    """What the handler of a signal raises within, as KeyboardInterrupt for Ctrl-C, is raised at the end at the latest,
    even if compiled code made another exception of it, or none. hold: not before the end, while something must not be
    cut short; code that can stop asks stop_wanted()."""
    if not _in_main_thread():
        yield
        return
    around = _Pending.watching, _Pending.holding
    if not _Pending.watching:
        _Pending.raised = None
    try:
        _Pending.watching, _Pending.holding = True, _Pending.holding or hold
        with _listening(_handle, () if around[0] else _SIGNALS):
            try:
                yield
            finally:  # before the handlers are as they were: a signal from here on is as one from outside
                _Pending.watching, _Pending.holding = around
    finally:
        _Pending.watching, _Pending.holding = around
        error = _Pending.raised
        if error is not None:
            if not _Pending.holding:  # else a solver around this one has yet to hear of it
                _Pending.raised = None
            raise error


def stop_wanted() -> bool:
    """Whether a signal or the deadline asks what runs now to stop."""
    return expired() or (_Pending.raised is not None and _in_main_thread())


# -- solvers ---------------------------------------------------------------------------------------------------------


class SolverRun:
    """One run of a solver. timed_out: whether the deadline stopped it; lost: whether a derivative was no finite
    number, see derivative_watch."""

    def __init__(self, bar: Any = None) -> None:
        self.bar, self.stopped, self.timed_out, self.lost = bar, False, False, False

    def stops(self) -> bool:
        """Whether it has to stop now."""
        if not self.stopped and stop_wanted():
            self.stopped, self.timed_out = True, expired()
        return self.stopped


@contextmanager
def solver_run(bar: Any = None, stops: bool = True) -> Iterator[SolverRun]:
    """The SolverRun of a solver, at whose end is raised what a signal raised meanwhile. bar: moved at every iteration.
    stops: whether it looks at iteration_watch() or evaluation_watch(); one that does not is disturbed at once."""
    run = SolverRun(bar)
    token = _run.set(run)
    try:
        with watched(hold=stops):
            yield run
    finally:
        _run.reset(token)


class _Watch(ca.Callback):
    """Looks at the SolverRun of the solver that calls it. It knows no sizes, so that one serves all problems; arguments
    of an iteration are not handed over, which would take time."""

    def __init__(self, name: str, inputs: Sequence[str], outcome: Callable[..., float]) -> None:
        super().__init__()
        self._inputs, self._outcome = inputs, outcome
        self._sees = inputs == ["value"]  # whether the outcome depends on what it is given
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return 1

    def get_name_in(self, i: int) -> str:
        return self._inputs[i]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        if self._sees:
            return ca.Sparsity.dense(1, 1)
        return ca.Sparsity(1, 1) if self._inputs[i] == "at" else ca.Sparsity(0, 0)

    def has_eval_buffer(self) -> bool:
        return True  # a third of the time of eval

    def eval_buffer(self, given: Any, results: Any) -> int:
        if results[0] is not None:
            results[0].cast("d")[0] = self._outcome(_run.get(), *(x.cast("d")[0] for x in given if self._sees))
        return 0


@cache
def iteration_watch() -> ca.Callback:
    """The option iteration_callback of ca.nlpsol that stops a solver_run(): of ipopt, sqpmethod and others."""
    names = [ca.nlpsol_out(i) for i in range(ca.nlpsol_n_out())]
    return _Watch("iteration", names, _after_iteration)


class WatchedToo(ca.Callback):
    """A user's iteration_callback that does what iteration_watch() does, too."""

    def __init__(self, theirs: ca.Function) -> None:
        super().__init__()
        self._theirs = theirs
        self.construct("iteration", {})

    def get_n_in(self) -> int:
        """For CasADi: as many inputs as the solver's own callback."""
        return self._theirs.n_in()

    def get_n_out(self) -> int:
        """For CasADi: one output, whether to stop."""
        return 1

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """For CasADi: sparsities of the solver's own callback."""
        return self._theirs.sparsity_in(i)

    def eval(self, arguments: Any) -> list[float]:
        """For CasADi, after each iteration: [1] stops the solver, [0] lets it go on."""
        stops = float(self._theirs.call(arguments)[0])
        return [stops or _after_iteration(_run.get())]


def _after_iteration(run: SolverRun | None) -> int:
    if run is None:
        return 0
    if run.bar is not None:
        run.bar.update()
    return int(run.stops())


@cache
def evaluation_watch() -> ca.Callback:
    """Function at (1, 1) -> 0, or NaN once a solver_run() has to stop, to be added to what a solver evaluates: for
    those, as fatrop, that have no callback, and that take an exception for one more reason to try again."""
    return _Watch("evaluation", ["at"], lambda run: math.nan if run is not None and (run.stops() or run.lost) else 0.0)


@cache
def derivative_watch() -> ca.Callback:
    """Function (1, 1) -> 1 for a finite number, else 0, from where on evaluation_watch() stops the solver_run(): for
    those, as fatrop, that search without an end where a derivative is infinite."""
    return _Watch("derivative", ["value"], _finite)


def _finite(run: SolverRun | None, value: float) -> float:
    finite = math.isfinite(value)
    if run is not None and not finite:
        run.lost = True
    return float(finite)


# -- programs --------------------------------------------------------------------------------------------------------


class _Commands:
    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []
        self.ended = False


@contextmanager
def ending_commands() -> Iterator[None]:
    """What command() starts within, in this context and in copies of it, ends if an exception leaves."""
    commands = _Commands()
    token = _commands.set(commands)
    try:
        yield
    except BaseException:
        commands.ended = True  # none is started from here on
        for process in list(commands.running):
            _end_command(process)
        raise
    finally:
        _commands.reset(token)


def command(
    words: Sequence[str], given: str | None = None, timeout: float | None = None, **options: Any,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """subprocess.run of a program, text in and out, which Ctrl-C or a time-out ends with all programs it has started.

    given: text for its input. timeout [s]: subprocess.TimeoutExpired is raised after it. options: of Popen.
    """
    own: dict[str, Any] = {"start_new_session": True} if sys.platform != "win32" else {}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    pipes["stdin"] = subprocess.DEVNULL if given is None else subprocess.PIPE
    commands, process = _commands.get() or _Commands(), None
    try:
        with watched(hold=True):  # a signal waits until the process is known
            process = subprocess.Popen(words, **pipes, **own, **options)
            commands.running.append(process)
        if commands.ended:
            raise KeyboardInterrupt
        out, said = process.communicate(given, None if timeout is None else min(timeout, LONGEST))
    except BaseException:
        if process is not None:
            _end_command(process)
            _close_pipes(process)
        raise
    finally:
        if process in commands.running:
            commands.running.remove(process)
    return subprocess.CompletedProcess(words, process.returncode, out, said)


def _close_pipes(process: subprocess.Popen[str]) -> None:
    if sys.platform != "win32":  # there threads read them, which close them
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):  # what was not written yet has no reader any more
                    pipe.close()


def _end_command(process: subprocess.Popen[str]) -> None:
    """End a program and those it has started, and wait for it: compilers remove their temporary files on SIGTERM."""
    for patience in (0.5, 5.0):
        if process.poll() is not None:
            return
        if sys.platform == "win32":
            process.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM if patience < 1 else signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
