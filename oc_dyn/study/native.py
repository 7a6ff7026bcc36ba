"""Time of Functions as compiled C, without what a call from Python costs.

Times are those of the processor: what others do on the machine meanwhile counts by the caches alone.
"""

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import casadi as ca
import numpy as np

from ..codegen.source import c_source, prepared

_TIMER = """
double seconds_{name}(const double** arg, double** res, int calls) {{
  static long long int iw[{iw} + 1];
  static double w[{w} + 1];
  struct timespec start, end;
  int k;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  for (k = 0; k < calls; ++k) {name}(arg, res, iw, w, 0);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return ((end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec)) / calls;
}}
"""


def compiler():
    """Path of a C compiler, or None."""
    return shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")


def times(functions, ports, rounds=21, calls=40, flags=("-O2", "-march=native"), command=None, split=False):
    """(rounds, functions) seconds of a call of each Function, in runs of `calls` that alternate between them.

    The arguments are those of compiled_runs.
    """
    return in_turns(compiled_runs(functions, ports, flags, command, split), rounds, calls)


def compiled_runs(functions, ports, flags=("-O2", "-march=native"), command=None, split=False):
    """[calls -> seconds of one] of Functions as C.

    functions: casadi.Functions of different names. ports: {port: numbers}. command: that of the C compiler, default
    compiler(); one is needed. split: long ones as od.compile writes them, in parts.
    """
    functions = [prepared(f, f.name()) for f in functions] if split else functions
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "timed.c", Path(folder) / "timed.so"
        if split:
            text = c_source(functions, "timed")
        else:
            generator = ca.CodeGenerator("timed.c")
            for f in functions:
                generator.add(ca.Function(f))
            text = generator.dump()
        text += "".join(_TIMER.format(name=f.name(), iw=f.sz_iw(), w=f.sz_w()) for f in functions)
        source.write_text("#define _POSIX_C_SOURCE 199309L\n#include <time.h>\n" + text)
        subprocess.run([command or compiler(), *flags, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        loaded = ctypes.CDLL(str(library))
        return [_run(loaded, f, ports) for f in functions]


def _run(loaded, f, ports):
    pointer = ctypes.POINTER(ctypes.c_double)
    timer = getattr(loaded, f"seconds_{f.name()}")
    timer.restype = ctypes.c_double
    inputs = [np.ascontiguousarray(ports[name], float).ravel(order="F") for name in f.name_in()]
    results = [np.zeros(max(1, f.nnz_out(k))) for k in range(f.n_out())]
    arguments, out = (pointer * f.sz_arg())(), (pointer * f.sz_res())()
    for slots, arrays in ((arguments, inputs), (out, results)):
        for k, x in enumerate(arrays):
            slots[k] = x.ctypes.data_as(pointer)
    arguments.kept, out.kept = inputs, results  # the memory lives as long as what points to it
    return lambda calls: timer(arguments, out, calls)


def interpreted(functions, ports, rounds=21, calls=40):
    """(rounds, functions) seconds of a call of each Function by CasADi's virtual machine, in runs of `calls` that
    alternate between them; what a call from Python costs is within it. ports: {port: numbers}."""
    return in_turns(interpreted_runs(functions, ports), rounds, calls)


def interpreted_runs(functions, ports):
    """[calls -> seconds of one] of Functions by CasADi's virtual machine."""
    return [_lapped(buffered(f, ports)) for f in functions]


def laps(ways, rounds, calls):
    """(rounds, ways) seconds of a call of each, in runs of `calls` that alternate."""
    return in_turns(map(_lapped, ways), rounds, calls)


def in_turns(runs, rounds, calls):
    """(rounds, runs) seconds of runs, calls -> seconds of one, that alternate."""
    runs = list(runs)
    return np.array([[run(calls) for run in runs] for _ in range(rounds)])


def _lapped(way):
    """calls -> seconds of one, of a function without arguments."""

    def run(calls):
        start = time.thread_time()
        for _ in range(calls):
            way()
        return (time.thread_time() - start) / calls

    return run


def buffered(f, ports):
    """A call of a Function by CasADi's virtual machine, as a function without arguments. ports: {port: numbers}."""
    buffer, call = f.buffer()
    inputs = [np.ascontiguousarray(np.asarray(ports[name], float).ravel(order="F")) for name in f.name_in()]
    results = [np.zeros(max(1, f.nnz_out(k))) for k in range(f.n_out())]
    for k, x in enumerate(inputs):
        buffer.set_arg(k, memoryview(x))
    for k, x in enumerate(results):
        buffer.set_res(k, memoryview(x))

    def run(kept=(buffer, inputs, results)):  # the memory lives as long as what points to it
        call()

    return run
