"""The same six problems as Problems of this package, and what is common to all sides: statements, guesses, optima.

Those of one phase are the files of problems/known_optima; the others are written here on one phase, as the peers'.
"""

import time

import casadi as ca
import numpy as np

import oc_dyn as od

from ...optimal_control.integrators import gauss, radau
from ..suite import listed, load


def hypersensitive(nodes):
    """Problem 10."""
    ocp = od.Problem(nodes, 100.0)
    x, u = ocp.state("x", guess=0.1), ocp.control("u")
    ocp.rate(x, -x + u)
    ocp.start({x: 1.5})
    ocp.goal({x: 1})
    ocp.minimize(integral=(x**2 + u**2) / 2)
    return ocp


def goddard(nodes):
    """Problem 21."""
    ocp = od.Problem(nodes, (0.01, 0.9))
    h = ocp.state("h", lower=1, guess=lambda s: 1 + 0.01 * s)
    v = ocp.state("v", lower=0, scale=0.1, guess=lambda s: 0.4 * s * (1 - s))
    m = ocp.state("m", lower=0.6, upper=1, guess=lambda s: 1 - 0.4 * s)
    thrust = ocp.control("thrust", lower=0, upper=3.5, guess=lambda s: 3.5 * (1 - s))
    ocp.rate(h, v)
    ocp.rate(v, (thrust - 310 * v**2 * ca.exp(-500 * (h - 1))) / m - 1 / h**2)
    ocp.rate(m, -2 * thrust)
    ocp.start({h: 1, v: 0, m: 1})
    ocp.goal({m: 0.6})
    ocp.minimize(terminal=-h)
    return ocp


SCHEMES = {"gauss": gauss, "radau": radau}
OWN = {10: hypersensitive, 21: goddard}
VARIANTS = {6: {"limit": 1 / 9}}
KNOWN_OF = {10: {"duration": 100.0}, 6: {"limit": 1 / 9}}
NUMBERS = (1, 6, 10, 21, 38, 39)


def program(number, nodes):
    """The Problem of that number."""
    if number in OWN:
        return OWN[number](nodes)
    return load(listed()[number]).problem(nodes, **VARIANTS.get(number, {}))


def known(number):
    """Its optimum."""
    module = load(listed()[number])
    return float(module.known(**KNOWN_OF.get(number, {})) if hasattr(module, "known") else module.KNOWN)


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
