"""The same six problems as Problems of this package, files of problems/known_optima, and what is common to all sides:
guesses and optima."""

import time

import numpy as np

from ...optimal_control.integrators import gauss, radau
from ..suite import listed, load

SCHEMES = {"gauss": gauss, "radau": radau}
VARIANTS = {6: {"limit": 1 / 9}, 10: {"duration": 100.0}}
NUMBERS = (1, 6, 10, 21, 38, 39)


def program(number, nodes):
    """The Problem of that number."""
    return load(listed()[number]).problem(nodes, **VARIANTS.get(number, {}))


def known(number):
    """Its optimum."""
    module = load(listed()[number])
    return float(module.known(**VARIANTS.get(number, {})) if hasattr(module, "known") else module.KNOWN)


def guess_of(number):
    """{"t": times, "x": rows of the states, "u": rows of the controls} that all sides begin with."""
    made = program(number, 20).transcribed("hermite_simpson")
    x, u, (T,) = made.values(made.guess(None))
    states = [i for v, rows in zip(made.states, made.state_rows, strict=True) if v.name != "time" for i in rows]
    return {"t": (T * np.linspace(0, 1, 21)).tolist(), "x": x.T[states].tolist(), "u": u.T.tolist()}


def solved(number, scheme, intervals, degree, times):
    """As those of the peers; the guess is the program's own."""
    out, ocp, method = {"seconds": []}, None, SCHEMES[scheme](degree)
    for _ in range(times):
        begun = time.perf_counter()
        ocp = ocp or program(number, intervals)
        found = ocp.solve(method=method, solver_options={"tol": 1e-10}, check="off", raises=False)
        out["seconds"].append(time.perf_counter() - begun)
    return out | {"objective": found.objective, "status": found.status}


def refined(number, scheme, tolerance, times):
    """The same from five intervals on, with tolerance= instead of a mesh that is given."""
    out, ocp = {"seconds": []}, None
    for _ in range(times):
        begun = time.perf_counter()
        ocp = ocp or program(number, 5)
        options = {"tol": 1e-10}
        found = ocp.solve(method=scheme, tolerance=tolerance, solver_options=options, check="off", raises=False)
        out["seconds"].append(time.perf_counter() - begun)
    return out | {"objective": found.objective, "status": found.status, "intervals": len(found.t) - 1}
