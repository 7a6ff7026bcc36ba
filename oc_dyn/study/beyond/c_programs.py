"""Functions as C in double or single precision: what compiling takes, values at points, and times in turns.

Times are those of the processor: what others do on the machine meanwhile counts by the caches alone.
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...codegen.build import run
from ...codegen.source import c_source, prepared
from ...errors import SolveError
from ..native import compiler

FLAGS = ("-O2", "-march=native")
LIMIT = 300.0  # [s] of a run of the compiler
RUN = 2e-3  # [s] that a program runs before the next one takes its turn
CALLS = 5
_REALS = {"double": (ctypes.c_double, np.float64), "single": (ctypes.c_float, np.float32)}
_HEAD = "#define _POSIX_C_SOURCE 199309L\n#include <time.h>\n"
_TIMER = """
double seconds_{name}(const casadi_real** arg, casadi_real** res, casadi_int* iw, casadi_real* w, int calls) {{
  struct timespec start, end;
  int k;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  for (k = 0; k < calls; ++k) {name}(arg, res, iw, w, 0);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return ((end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec)) / calls;
}}
"""
# the largest memory of a program counts that of what started it, so this is a small one
_WATCHED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps([done.returncode, done.stderr[-2000:], used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 1e6]))
"""


@dataclass(frozen=True)
class Program:
    """A Function as a library of C.

    bytes: of its text. seconds, peak_mb: of the processor and of memory, that compiling takes. inputs: {port:
    entries}; outputs: entries of each; held: numbers in arg, res, iw and w.
    """

    name: str
    library: str
    precision: str
    bytes: int
    seconds: float
    peak_mb: float
    inputs: dict
    outputs: list
    held: list


def compiled(function, folder, precision="double", flags=FLAGS):
    """Program of a casadi.Function, in a folder; long ones in parts, as od.compile has them.

    precision: "double" or "single". Raises SolveError without a compiler, or where it fails or takes longer than LIMIT.
    """
    command = compiler()
    if command is None:
        raise SolveError("no C compiler was found: install gcc or clang")
    name, made = function.name(), prepared(function, function.name())
    text, stem = c_source([made], f"{name}_c", precision=precision), Path(folder) / f"{name}_{precision}"
    source, library = stem.with_suffix(".c"), stem.with_suffix(".so")
    source.write_text(_HEAD + text + _TIMER.format(name=name), encoding="utf-8")
    words = [command, *flags, "-shared", "-fPIC", source, "-o", library, "-lm"]
    _, out, said = run([sys.executable, "-I", "-S", "-c", _WATCHED, *map(str, words)], folder, LIMIT)
    status, said, seconds, peak_mb = json.loads(out) if out else (1, said, 0.0, 0.0)
    if status:
        raise SolveError(f"{name}: {command} ended with status {status}: {said}")
    inputs = {port: made.nnz_in(k) for k, port in enumerate(made.name_in())}
    outputs = [made.nnz_out(k) for k in range(made.n_out())]
    held = [made.sz_arg(), made.sz_res(), made.sz_iw(), made.sz_w()]
    return Program(name, str(library), precision, len(text.encode()), seconds, peak_mb, inputs, outputs, held)


class Loaded:
    """A Program in this process, and the memory that it reads and writes."""

    def __init__(self, program):
        real, kind = _REALS[program.precision]
        pointer = ctypes.POINTER(real)
        library = ctypes.CDLL(program.library)
        self._run, self._seconds = getattr(library, program.name), getattr(library, f"seconds_{program.name}")
        self._seconds.restype = ctypes.c_double
        arg, res, iw, w = program.held
        self.inputs = {port: np.zeros(max(1, n), kind) for port, n in program.inputs.items()}
        self.outputs = [np.zeros(max(1, n), kind) for n in program.outputs]
        self._kept = np.zeros(iw + 1, np.int64), np.zeros(w + 1, kind)
        slots = (pointer * (arg + 1))(), (pointer * (res + 1))()
        for places, arrays in zip(slots, (self.inputs.values(), self.outputs), strict=True):
            for k, x in enumerate(arrays):
                places[k] = x.ctypes.data_as(pointer)
        whole = self._kept[0].ctypes.data_as(ctypes.POINTER(ctypes.c_longlong))
        self._arguments = (*slots, whole, self._kept[1].ctypes.data_as(pointer))

    def give(self, ports):
        """Take the numbers {port: array} of the ports that the program has; rounded to its precision."""
        for port, x in self.inputs.items():
            x[:] = np.asarray(ports[port], float).ravel(order="F")

    def values(self, ports):
        """[entries of an output, in double] at ports."""
        self.give(ports)
        self._run(*self._arguments, 0)
        return [x.astype(float) for x in self.outputs]

    def seconds(self, calls):
        """Of a call, the mean of so many."""
        return self._seconds(*self._arguments, calls)


def turns(loaded, rounds):
    """(rounds, programs) seconds of a call of each Loaded, which take turns of about RUN seconds, of CALLS at least."""
    once = [min(x.seconds(2) for _ in range(5)) for x in loaded]  # a machine that stops meanwhile is not counted
    calls = [int(np.clip(RUN / max(t, 1e-9), CALLS, 100_000)) for t in once]
    return np.array([[x.seconds(n) for x, n in zip(loaded, calls, strict=True)] for _ in range(rounds)])


def calls_in_turns(ways, rounds):
    """The same of functions without arguments."""
    return turns([_Timed(way) for way in ways], rounds)


@dataclass(frozen=True)
class _Timed:
    way: Callable

    def seconds(self, calls):
        start = time.thread_time()
        for _ in range(calls):
            self.way()
        return (time.thread_time() - start) / calls
