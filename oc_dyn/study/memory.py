"""Memory that a piece of work takes: it runs in a process of its own, which knows its peak."""

import json
import os
import subprocess
import sys

from ..errors import SolveError

_CHILD = """
import json, sys
from importlib import import_module
module, name, arguments = json.loads(sys.stdin.read())
print("\\n" + json.dumps(getattr(import_module(module), name)(**arguments)))
"""


def peak():
    """Largest resident memory of this process so far [MB]; None where the system does not tell."""
    try:  # Linux hands what resource tells on to the programs that a process starts
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 / 1e6 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def fresh(function, **arguments):
    """function(**arguments) in a new Python process.

    function: of a module; arguments and result: what JSON can carry. Raises SolveError with what the process said if
    it failed.
    """
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps([function.__module__, function.__qualname__, arguments]),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
    )
    if done.returncode:
        what = f"{function.__qualname__} in a process of its own"
        raise SolveError(f"{what} ended with status {done.returncode}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
