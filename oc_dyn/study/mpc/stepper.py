"""A controller's C called step by step from Python, timed inside."""

import ctypes
from pathlib import Path

import numpy as np

from ...codegen.build import find_compiler
from ...errors import SolveError
from ...interrupts import command

_POINTER = ctypes.POINTER(ctypes.c_double)


class Stepper:
    """begin() makes its instance anew; step({parameter: value}) -> (outputs, status, seconds, violation, iterations).

    control: a PredictiveController, whose code is written to the folder and built there.
    """

    def __init__(self, control, folder, flags=("-O3", "-march=native")):
        self.control, folder = control, Path(folder)
        control.codegen(folder)
        name, outputs = control.name, sum(control.outputs.values())
        kinds = {"TYPE": "t", "INPUT": "in", "OUTPUT": "out", "INIT": "init", "STEP": "step"}
        lines = [f'#include "{name}.h"', *(f"#define {k} {name}_{x}" for k, x in kinds.items())]
        text = "\n".join([*lines, f"#define OUTPUTS {outputs}", ""])
        (folder / "settings.h").write_text(text, encoding="utf-8")
        library = folder / f"{name}.so"
        sources = [str(Path(__file__).with_name("stepper.c")), str(folder / f"{name}.c")]
        words = [*find_compiler(None), *flags, "-shared", "-fPIC", f"-I{folder}", "-o", str(library), *sources, "-lm"]
        done = command(words)
        if done.returncode:
            raise SolveError(f"{name}: it cannot be compiled: {' '.join(done.stderr.split())[:500]}")
        self._loaded = ctypes.CDLL(str(library))
        self._loaded.taken.restype, self._loaded.told.restype = ctypes.c_double, _POINTER
        self._out = np.zeros(outputs)
        self.begin()

    def begin(self):
        """Back to the guess."""
        self._loaded.begin()

    def step(self, parameters):
        """One step, see the class; numbers as they are, what varies (nodes, size)."""
        given = np.concatenate([np.asarray(parameters[k], float).ravel() for k in self.control.names])
        places = (x.ctypes.data_as(_POINTER) for x in (given, self._out))
        status = self._loaded.step(*places)
        told = self._loaded.told()
        return self._out.copy(), status, self._loaded.taken(), told[1], int(told[2])
