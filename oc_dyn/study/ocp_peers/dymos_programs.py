"""The same six problems for dymos: {number: Program}. Statements as in yapss_programs.py.

dymos has no solver of its own but SLSQP in its dependencies, without Hessians; ipopt, through pyOptSparse, has no
wheel. Models are explicit components whose partial derivatives are taken by complex step, which is exact.
"""

import math
import time
from dataclasses import dataclass, field

import dymos as dm
import numpy as np
import openmdao.api as om


@dataclass
class Program:
    """rates: {state: expression}; bounds: {name: (lower, upper)}; start, goal: {state: value}; cost: integrand, or
    ("time" or a state, sign) of the end; end_rows: {name: expression} that are zero at the end."""

    rates: dict
    controls: tuple
    duration: tuple
    start: dict
    goal: dict
    cost: object
    bounds: dict = field(default_factory=dict)
    end_rows: dict = field(default_factory=dict)


PROGRAMS = {
    1: Program(
        {"x": "v*sin(u)", "y": "v*cos(u)", "v": "9.8*cos(u)"}, ("u",), (0.3, 3.0),
        {"x": 0, "y": 0, "v": 0}, {"x": 2, "y": 2}, ("time", 1), {"u": (0, math.pi)},
    ),
    6: Program(
        {"x": "v", "v": "u"}, ("u",), (1.0, 1.0), {"x": 0, "v": 1}, {"x": 0, "v": -1}, "u**2/2",
        {"x": (None, 1 / 9)},
    ),
    10: Program({"x": "u-x"}, ("u",), (100.0, 100.0), {"x": 1.5}, {"x": 1}, "(x**2+u**2)/2"),
    21: Program(
        {"h": "v", "v": "(u-310*v**2*exp(-500*(h-1)))/m-1/h**2", "m": "-2*u"}, ("u",), (0.05, 0.5),
        {"h": 1, "v": 0, "m": 1}, {"m": 0.6}, ("h", -1),
        {"u": (0, 3.5), "h": (1, None), "v": (0, None), "m": (0.6, 1)},
    ),
    38: Program(
        {
            "r": "vr", "vr": "vt**2/r-1/r**2+0.1405/(1-0.0749*t)*sin(u)",
            "vt": "-vr*vt/r+0.1405/(1-0.0749*t)*cos(u)",
        },
        ("u",), (3.32, 3.32), {"r": 1, "vr": 0, "vt": 1}, {"vr": 0}, ("r", -1), {"u": (-1, 8), "r": (0.5, None)},
        {"circular": "vt-r**(-0.5)"},
    ),
    39: Program(
        {
            "x": "v", "angle": "w", "v": "(0.15*sin(angle)*w**2+u+2.943*cos(angle)*sin(angle))/(1+0.3*sin(angle)**2)",
            "w": "-(0.15*cos(angle)*sin(angle)*w**2+u*cos(angle)+12.753*sin(angle))/(0.5*(1+0.3*sin(angle)**2))",
        },
        ("u",), (2.0, 2.0), {"x": 0, "angle": 0, "v": 0, "w": 0}, {"x": 1, "angle": math.pi, "v": 0, "w": 0}, "u**2",
        {"u": (-20, 20), "x": (-2, 2)},
    ),
}  # fmt: skip


def _ode(program):
    """A class of components with the rates, the integrand and what is zero at the end as outputs."""
    expressions = [f"rate_{k}={e}" for k, e in program.rates.items()]
    expressions += [f"rate_cost={program.cost}"] if isinstance(program.cost, str) else []
    expressions += [f"{k}={e}" for k, e in program.end_rows.items()]
    names = {k: {"shape_by_conn": True} for k in (*program.rates, *program.controls, "t")}
    used = {k: v for k, v in names.items() if any(k in _words(e.split("=", 1)[1]) for e in expressions)}
    first = next(iter(used))
    outputs = {e.split("=")[0]: {"copy_shape": first} for e in expressions}

    class Ode(om.Group):
        def initialize(self):
            self.options.declare("num_nodes", types=int)

        def setup(self):
            shape = {k: {"shape": (self.options["num_nodes"],)} for k in (*used, *outputs)}
            self.add_subsystem("rates", om.ExecComp(expressions, has_diag_partials=True, **shape), promotes=["*"])

    return Ode, used


def _words(expression):
    for character in "*/+-().,":
        expression = expression.replace(character, " ")
    return expression.split()


def built(number, scheme, intervals, degree, guess):
    """(om.Problem ready to run, function that sets the guess)."""
    program = PROGRAMS[number]
    ode, used = _ode(program)
    problem = om.Problem(reports=False)
    problem.driver = om.ScipyOptimizeDriver(optimizer="SLSQP", tol=1e-9, maxiter=1000, disp=False)
    problem.driver.declare_coloring(show_summary=False, show_sparsity=False)
    trajectory = problem.model.add_subsystem("trajectory", dm.Trajectory())
    grid = getattr(dm, scheme)(num_segments=intervals, order=degree)
    phase = trajectory.add_phase("phase", dm.Phase(ode_class=ode, transcription=grid))
    fixed = program.duration[0] == program.duration[1]
    options = {"targets": ["t"]} if "t" in used else {}
    options |= {"fix_duration": True} if fixed else {"duration_bounds": program.duration}
    phase.set_time_options(fix_initial=True, **options)
    for name in program.rates:
        lower, upper = program.bounds.get(name, (None, None))
        phase.add_state(name, rate_source=f"rate_{name}", targets=[name] if name in used else None, fix_initial=True,
                        fix_final=name in program.goal, lower=lower, upper=upper)  # fmt: skip
    for name in program.controls:
        lower, upper = program.bounds.get(name, (None, None))
        phase.add_control(name, lower=lower, upper=upper, continuity=True, rate_continuity=False)
    for name in program.end_rows:
        phase.add_boundary_constraint(name, loc="final", equals=0)
    if isinstance(program.cost, str):
        phase.add_state("cost", rate_source="rate_cost", fix_initial=True)
        phase.add_objective("cost", loc="final")
    else:
        phase.add_objective(program.cost[0], loc="final", scaler=program.cost[1])
    problem.setup()

    def begin():
        t, points = np.array(guess["t"]), phase.interp
        phase.set_time_val(0.0, t[-1])
        for name, values in zip(program.rates, guess["x"], strict=True):
            values = np.array(values)
            values[0] = program.start[name]
            values[-1] = program.goal.get(name, values[-1])
            phase.set_state_val(name, points(name, ys=values, xs=t))
        if isinstance(program.cost, str):
            phase.set_state_val("cost", [0.0, 1.0])
        for name, values in zip(program.controls, guess["u"], strict=True):
            phase.set_control_val(name, points(name, ys=values, xs=t))

    return problem, begin


def solved(number, scheme, intervals, degree, guess, times):
    """{objective, seconds of each of so many solves, the first with all that is built, status}."""
    out, problem, program = {"seconds": []}, None, PROGRAMS[number]
    for _ in range(times):
        begun = time.perf_counter()
        if problem is None:
            problem, begin = built(number, scheme, intervals, degree, guess)
        begin()
        failed = not problem.run_driver().success
        out["seconds"].append(time.perf_counter() - begun)
    what, sign = ("cost", 1) if isinstance(program.cost, str) else program.cost
    what = "t" if what == "time" else what
    value = float(np.ravel(problem.get_val(f"trajectory.phase.timeseries.{'time' if what == 't' else what}"))[-1])
    return out | {"objective": sign * value, "status": "failed" if failed else "solved"}
