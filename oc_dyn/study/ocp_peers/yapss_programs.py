"""Six problems with known optima, as YAPSS writes them: {number: program(intervals, degree) -> yapss.Problem}.

Statements are those of problems/known_optima, and guesses come from there.
"""

import math
import time

import yapss
from yapss.math import cos, exp, sin, sqrt


def _begun(name, intervals, degree, start, end, duration, states=3, **sizes):
    """A problem of one phase with its start fixed, and its end where it is not None."""
    ocp = yapss.Problem(name=name, nx=[states], nu=[1], **sizes)
    ocp.mesh.phase[0].collocation_points = intervals * (degree,)
    ocp.mesh.phase[0].fraction = intervals * (1 / intervals,)
    bounds = ocp.bounds.phase[0]
    bounds.initial_time.lower = bounds.initial_time.upper = 0.0
    bounds.final_time.lower, bounds.final_time.upper = duration
    bounds.initial_state.lower[:] = bounds.initial_state.upper[:] = start
    for i, x in enumerate(end):
        if x is not None:
            bounds.final_state.lower[i] = bounds.final_state.upper[i] = x
    ocp.derivatives.method, ocp.derivatives.order = "auto", "second"
    ocp.ipopt_options.print_level, ocp.ipopt_options.tol, ocp.ipopt_options.max_iter = 0, 1e-10, 500
    ocp.ipopt_options.sb = "yes"
    return ocp, bounds


def brachistochrone(intervals, degree):
    """Problem 1."""
    ocp, _ = _begun("brachistochrone", intervals, degree, (0, 0, 0), (2, 2, None), (0.3, 3.0))

    def objective(arg):
        arg.objective = arg.phase[0].final_time

    def continuous(arg):
        _, _, v = arg.phase[0].state
        (u,) = arg.phase[0].control
        arg.phase[0].dynamics[:] = v * sin(u), v * cos(u), 9.8 * cos(u)

    ocp.functions.objective, ocp.functions.continuous = objective, continuous
    return ocp


def bryson_denham(intervals, degree):
    """Problem 6."""
    ocp, bounds = _begun("bryson_denham", intervals, degree, (0, 1), (0, -1), (1.0, 1.0), 2, nq=[1])
    bounds.state.upper[0] = 1 / 9

    def objective(arg):
        arg.objective = arg.phase[0].integral[0]

    def continuous(arg):
        _, v = arg.phase[0].state
        (u,) = arg.phase[0].control
        arg.phase[0].dynamics[:] = v, u
        arg.phase[0].integrand[0] = u**2 / 2

    ocp.functions.objective, ocp.functions.continuous = objective, continuous
    return ocp


def hypersensitive(intervals, degree):
    """Problem 10."""
    ocp, _ = _begun("hypersensitive", intervals, degree, (1.5,), (1,), (100.0, 100.0), 1, nq=[1])

    def objective(arg):
        arg.objective = arg.phase[0].integral[0]

    def continuous(arg):
        (x,) = arg.phase[0].state
        (u,) = arg.phase[0].control
        arg.phase[0].dynamics[:] = (u - x,)
        arg.phase[0].integrand[0] = (x**2 + u**2) / 2

    ocp.functions.objective, ocp.functions.continuous = objective, continuous
    return ocp


def goddard(intervals, degree):
    """Problem 21."""
    ocp, bounds = _begun("goddard", intervals, degree, (1, 0, 1), (None, None, 0.6), (0.05, 0.5))
    bounds.control.lower[0], bounds.control.upper[0] = 0, 3.5
    bounds.state.lower[:], bounds.state.upper[2] = (1, 0, 0.6), 1

    def objective(arg):
        arg.objective = -arg.phase[0].final_state[0]

    def continuous(arg):
        h, v, m = arg.phase[0].state
        (u,) = arg.phase[0].control
        drag = 310 * v**2 * exp(-500 * (h - 1))
        arg.phase[0].dynamics[:] = v, (u - drag) / m - 1 / h**2, -2 * u

    ocp.functions.objective, ocp.functions.continuous = objective, continuous
    return ocp


def orbit_raising(intervals, degree):
    """Problem 38."""
    ocp, bounds = _begun("orbit", intervals, degree, (1, 0, 1), (None, 0, None), (3.32, 3.32), nd=1)
    bounds.control.lower[0], bounds.control.upper[0], bounds.state.lower[0] = -1, 8, 0.5
    ocp.bounds.discrete.lower[0] = ocp.bounds.discrete.upper[0] = 0

    def objective(arg):
        arg.objective = -arg.phase[0].final_state[0]

    def discrete(arg):
        r, _, vt = arg.phase[0].final_state
        arg.discrete[0] = vt - sqrt(1 / r)

    def continuous(arg):
        r, vr, vt = arg.phase[0].state
        (u,) = arg.phase[0].control
        a = 0.1405 / (1 - 0.0749 * arg.phase[0].time)
        arg.phase[0].dynamics[:] = vr, vt**2 / r - 1 / r**2 + a * sin(u), -vr * vt / r + a * cos(u)

    ocp.functions.objective, ocp.functions.continuous, ocp.functions.discrete = objective, continuous, discrete
    return ocp


def cart_pole(intervals, degree):
    """Problem 39."""
    ends = (0, 0, 0, 0), (1, math.pi, 0, 0)
    ocp, bounds = _begun("cart_pole", intervals, degree, *ends, (2.0, 2.0), 4, nq=[1])
    bounds.control.lower[0], bounds.control.upper[0] = -20, 20
    bounds.state.lower[0], bounds.state.upper[0] = -2, 2

    def objective(arg):
        arg.objective = arg.phase[0].integral[0]

    def continuous(arg):
        _, theta, dx, w = arg.phase[0].state
        (u,) = arg.phase[0].control
        s, c = sin(theta), cos(theta)
        lever = 1 + 0.3 * s**2
        a = (0.5 * 0.3 * s * w**2 + u + 0.3 * 9.81 * c * s) / lever
        b = -(0.5 * 0.3 * c * s * w**2 + u * c + 1.3 * 9.81 * s) / (0.5 * lever)
        arg.phase[0].dynamics[:] = dx, w, a, b
        arg.phase[0].integrand[0] = u**2

    ocp.functions.objective, ocp.functions.continuous = objective, continuous
    return ocp


PROGRAMS = {1: brachistochrone, 6: bryson_denham, 10: hypersensitive, 21: goddard, 38: orbit_raising, 39: cart_pole}


def solved(number, scheme, intervals, degree, guess, times):
    """{objective, seconds of each of so many solves, the first with all that is built, status}."""
    out = {"seconds": []}
    ocp = None
    for _ in range(times):
        begun = time.perf_counter()
        if ocp is None:
            ocp = PROGRAMS[number](intervals, degree)
            ocp.spectral_method = scheme
            start = ocp.guess.phase[0]
            start.time, start.state, start.control = guess["t"], guess["x"], guess["u"]
        found = ocp.solve()
        out["seconds"].append(time.perf_counter() - begun)
    status = str(found.nlp_info.ipopt_status_message)
    return out | {"objective": float(found.objective), "status": status}
