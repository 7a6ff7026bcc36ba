"""mim_solvers' CSQP in a Python of its own: its wheels need other versions than this one may have.

The environment variable OC_DYN_MIM_PYTHON names that Python. Its wheel finds Boost by LD_LIBRARY_PATH alone, which is
set here to where the wheel of Boost has it.
"""

import json
import os
import subprocess
from pathlib import Path

from ...errors import SolveError
from ...interrupts import command
from ...text import terminal

ENVIRONMENT = "OC_DYN_MIM_PYTHON"
MISSING = f"mim_solvers is not there: no {ENVIRONMENT}, the path of a Python that has it (pip install mim_solvers)"
LOOP = Path(__file__).with_name("peer_loop.py")
LIMIT = 900.0  # [s] for a process
LOOSE = {"termination_tolerance": 1e-4, "eps_abs": 1e-5, "eps_rel": 0.0, "max_qp_iters": 200}


def python():
    """Path of the Python that is named, or None. SolveError where it is none."""
    named = os.environ.get(ENVIRONMENT)
    if not named:
        return None
    if not Path(named).is_file():
        raise SolveError(f"{ENVIRONMENT}: {terminal(named)} is no file, expected the path of a Python with mim_solvers")
    return named


def loops(task):
    """{"versions", "path", "acceleration", "loops"} of a task, see peer_loop.py. SolveError with what it said."""
    path = python()
    lib = Path(path).parents[1] / "lib"
    found = [str(p) for p in sorted(lib.glob("python3*/site-packages/cmeel.prefix/lib"))]
    own = {"LD_LIBRARY_PATH": os.pathsep.join(found), "OMP_NUM_THREADS": "1"}
    kept = {k: x for k, x in os.environ.items() if not k.startswith(("PYTHON", "OC_DYN"))}
    try:
        done = command([path, str(LOOP)], json.dumps(task), timeout=LIMIT, env={**kept, **own})
    except subprocess.TimeoutExpired:
        raise SolveError(f"mim_solvers took more than {LIMIT:g} s") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        raise SolveError(f"mim_solvers ended with status {done.returncode}: {terminal(last[0])}")
    return json.loads(done.stdout.splitlines()[-1])
