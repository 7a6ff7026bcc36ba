"""A controller's C called step by step from Python, its processor time taken inside."""

import ctypes
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...codegen.build import find_compiler
from ...errors import SolveError

_POINTER = ctypes.POINTER(ctypes.c_double)


@dataclass(frozen=True)
class Step:
    """outputs, status, seconds of the processor, those of the feedback, objective, violation, iterations."""

    outputs: np.ndarray
    status: int
    seconds: float
    feedback: float
    objective: float
    violation: float
    iterations: float


class Stepper:
    """begin() makes its instance anew, step makes one step.

    control: a PredictiveController, whose code is written to the folder; build compiles it there.
    """

    def __init__(self, control, folder, flags):
        self.control, folder = control, Path(folder)
        control.codegen(folder)
        name, outputs = control.name, sum(control.outputs.values())
        kinds = {"TYPE": "t", "INPUT": "in", "OUTPUT": "out", "INIT": "init", "STEP": "step"}
        if control.real_time:
            kinds |= {"PREPARE": "prepare", "FEEDBACK": "feedback"}
        lines = [f'#include "{name}.h"', *(f"#define {k} {name}_{x}" for k, x in kinds.items())]
        text = "\n".join([*lines, f"#define OUTPUTS {outputs}", ""])
        (folder / "settings.h").write_text(text, encoding="utf-8")
        self._folder, self._flags, self._out = folder, flags, np.zeros(outputs)

    def build(self):
        """Compile it; returns itself. Several may be built at a time."""
        folder, name = self._folder, self.control.name
        library = folder / f"{name}.so"
        sources = [str(Path(__file__).with_name("stepper.c")), str(folder / f"{name}.c")]
        words = [*find_compiler(None), *self._flags, "-shared", "-fPIC", f"-I{folder}", "-o", str(library), *sources]
        done = subprocess.run([*words, "-lm"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SolveError(f"{name}: it cannot be compiled: {' '.join(done.stderr.split())[:500]}")
        self._loaded = ctypes.CDLL(str(library))
        self._loaded.taken.restype = self._loaded.told.restype = _POINTER
        self.begin()
        return self

    def begin(self):
        """Back to the guess."""
        self._loaded.begin()

    def step(self, parameters, phases=False):
        """Step of a step, numbers as they are, what varies (nodes, size).

        phases: prepared and fed back by two calls, for which what is measured is known at the first one, too.
        """
        given = np.concatenate([np.asarray(parameters[k], float).ravel() for k in self.control.names])
        places = (x.ctypes.data_as(_POINTER) for x in (given, self._out))
        status = (self._loaded.phases if phases else self._loaded.step)(*places)
        told, taken = self._loaded.told(), self._loaded.taken()
        return Step(self._out.copy(), status, taken[0], taken[1], *told[:3])


def built(steppers, at_once=4):
    """The same Steppers, built, so many at a time."""
    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(Stepper.build, steppers))
