"""Choice of the NLP solver: what this CasADi has, quiet options, checks before anything is built."""

import contextlib
import ctypes
import io
import os
import sys
import warnings
from dataclasses import dataclass, replace
from functools import cache

import casadi as ca
import numpy as np

from ..digest import digest
from ..errors import ModelWarning, ShapeError, SolveError, UnknownName
from ..interrupts import TIME_LIMIT, WatchedToo, iteration_watch, solver_run
from ..validation import one_of, options_of

_HAVE_OWN_OPTIONS = ("ipopt", "fatrop", "alpaqa", "uno", "sleqp", "bonmin")  # a dictionary of their own inside CasADi's
_OF_CASADI = {
    "expand", "postpone_expand", "jit", "compiler", "jit_options", "jit_cleanup", "jit_name", "jit_temp_suffix",
    "verbose", "print_time", "record_time", "detect_simple_bounds", "cache", "max_num_dir", "specific_options",
    "common_options", "calc_lam_x", "calc_lam_p", "calc_f", "calc_g", "bound_consistency", "min_lam", "dump", "dump_in",
    "dump_out", "dump_dir", "show_eval_warnings", "structure_detection", "iteration_callback",
    "iteration_callback_step", "iteration_callback_ignore_errors",
}  # fmt: skip
# mumps: to permute before scaling lets factors of fine meshes fill up, minutes and gigabytes in a step of 0.02 s; from
# 10 000 rows on it orders by itself in a way that takes twice the time of approximate minimum fill on programs that
# are stages in a row; and it takes ten times the memory it needs, whose clearing is half of the time on long horizons
_QUICK = {"mumps_permuting_scaling": 0, "mumps_pivot_order": 2, "mumps_mem_percent": 20}
_SAFE = {
    # what mumps chooses by itself
    "ipopt": {"mumps_permuting_scaling": 7, "mumps_pivot_order": 7, "mumps_pivtol": 1e-4},
    "fatrop": {"mu_init": 0.1, "delta_w0": 1e-4, "kappa_wplusem": 100.0},  # its own
}
NO_NUMBER = "Invalid_Number_Detected"
OUT_OF_ITERATIONS = "Maximum_Iterations_Exceeded"
_LOST = (  # statuses of ipopt that a matrix which was factored badly leads to, and the one of fatrop's failures
    "1",
    "Error_In_Step_Computation", "Internal_Error", NO_NUMBER, "Restoration_Failed",
    "Search_Direction_Becomes_Too_Small",
)  # fmt: skip
_QUIET = {  # options of CasADi, options of the solver
    "ipopt": (
        # steps that lead to no number are made shorter; each would print a line
        {"show_eval_warnings": False},
        # limits are kept exactly: ipopt would loosen them by 1e-8
        {"print_level": 0, "sb": "yes", "max_iter": 500, "bound_relax_factor": 0.0, **_QUICK},
    ),
    # it is stopped by an evaluation that fails, see Assembly.cache, which is not worth a warning
    "fatrop": ({"show_eval_warnings": False}, {"print_level": 0, "max_iter": 300}),
    "sqpmethod": (
        {
            "print_header": False, "print_iteration": False, "print_status": False, "max_iter": 200,
            "qpsol": "piqp", "qpsol_options": {"error_on_fail": False},
        },
        {},
    ),
    # its other presets, filtersqp and funnelsqp, are slow on more than a few hundred unknowns: results/suite_solvers
    "uno": ({}, {"preset": "ipopt", "logger": "SILENT", "max_iterations": 500}),
    "blocksqp": ({"linsol": "ldl", "print_header": False, "print_iteration": False, "max_iter": 500}, {}),
}  # fmt: skip
_SHARED = ("max_iter", "tol", "expand", "print_time", "iteration_callback", "iteration_callback_ignore_errors")
_WATCHED = ("fatrop", "ipopt", "sleqp", "sqpmethod", "uno")  # can be stopped: see Assembly.cache and iteration_watch
SAFER, INSTEAD = "safer options", "ipopt instead"  # names of tries
_LINEAR_SOLVERS = ("mumps", "spral", "ma27", "ma57", "ma77", "ma86", "ma97", "pardiso", "pardisomkl", "wsmp", "custom")


@cache
def solvers():
    """Names of the NLP solvers this CasADi has."""
    plugins = (p.split("::") for p in ca.CasadiMeta.plugins().split(";") if p.startswith("Nlpsol::"))
    return tuple(sorted(name for _, name in plugins if ca.has_nlpsol(name)))


def checked_options(name, options, free_time):
    """(options of CasADi, options of the solver) for an NLP solver, quiet unless told otherwise.

    options: flat, as "max_iter" or "ipopt.max_iter". free_time: whether the time is an unknown. Raises UnknownName for
    a solver or a linear solver that does not exist; one that cannot be loaded is replaced by mumps, with a warning.
    """
    one_of("NLP solver", name, solvers())
    options = options_of("solver_options", options)
    outer, inner = (dict(x) for x in _QUIET.get(name, ({}, {})))
    outer = {"print_time": False, "calc_lam_p": False, **outer}
    if name == "ipopt" and free_time:
        # on the Panda with the rate of torque at a tenth 35 iterations, against 25 to 260 with the monotone barrier,
        # and 3 to 20 from a solution whose bounds were tightened; in a fixed time the monotone one needs half as many
        inner["mu_strategy"] = "adaptive"
    if name == "fatrop" and free_time:
        # its own first barrier, 0.1, leads far away from a good guess: ten times the iterations on motions with limits
        # of torque, or no end; in a fixed time a small one leads to worse optima, of the acrobot for instance
        inner["mu_init"] = 1e-3
        # what it adds to a Hessian that is not convex begins smaller and grows in smaller steps, as it takes it back by
        # a third an iteration: on the Panda with the rate of torque at 0.3 and 400 nodes 48 iterations, against 218
        # that crawl. To take it back faster (kappa_wmin) has let it add without an end on a hanging chain; in a fixed
        # time its own are better: Schwartz's problem takes 10 iterations with them, and fails with these
        inner |= {"delta_w0": 1e-8, "kappa_wplusem": 8.0}
    known = _OF_CASADI | set(ca.nlpsol_options(name))
    for key, value in options.items():
        own = key.startswith(f"{name}.") or (name in _HAVE_OWN_OPTIONS and key not in known)
        (inner if own else outer)[key.removeprefix(f"{name}.")] = value
    if name == "ipopt" and "linear_solver" in inner:
        inner["linear_solver"] = _linear_solver(inner)
    return outer, inner


def safer(name, inner, asked):
    """{SAFER: options of the solver} for a second try, that takes longer and loses less: linear algebra of ipopt, the
    barrier and the regularisation that fatrop begins with by itself; {} where there are none. inner: as of
    checked_options. asked: the caller's own, which stay."""
    if name not in _SAFE or (name == "ipopt" and inner.get("linear_solver", "mumps") != "mumps"):
        return {}
    if name == "fatrop" and inner.get("mu_init", 0.1) == 0.1:  # it began with that
        return {}
    own = {str(key).removeprefix(f"{name}.") for key in asked or ()}
    safe = {key: value for key, value in _SAFE[name].items() if key not in own}
    return {SAFER: inner | safe} if safe else {}


def lost(found):
    """Whether a SolverResult is a failure that another barrier of fatrop, or a matrix that ipopt has factored badly,
    may have led to."""
    nowhere = found.status == NO_NUMBER and not found.iterations
    return not found.success and found.status in _LOST and not nowhere


def ipopt_instead(name, status, asked, free_time):
    """(options of CasADi, options of ipopt) for ipopt in place of fatrop where that failed with a status: the caller's
    own limit of iterations and tolerance hold there, too. None where another solver was asked for, or where its time or
    the iterations that the caller gives it have run out."""
    own = {str(key).removeprefix(f"{name}."): value for key, value in (asked or {}).items()}
    ran_out = status in (None, TIME_LIMIT) or (status == OUT_OF_ITERATIONS and "max_iter" in own)
    if name != "fatrop" or ran_out:
        return None
    shared = {key: value for key, value in own.items() if key in _SHARED}
    if "tolerance" in own:
        shared["tol"] = own["tolerance"]
    return checked_options("ipopt", shared, free_time)


def first_success(run, tries):
    """SolverResult of run(inner=options) with the first of {name of a try: options} that succeeds, or the last one.

    Iterations of all are counted, and `tries` tells of each. One that runs out of iterations or time is the last one,
    and SAFER is for what is lost() alone.
    """
    iterations, told, found = 0, [], None
    for what, options in tries.items():
        if what == SAFER and not lost(found):
            break
        found = run(inner=options)
        iterations += found.iterations
        told.append((what, found.status, found.iterations))
        if found.success or found.status in (OUT_OF_ITERATIONS, TIME_LIMIT):
            break
    return replace(found, iterations=iterations, tries=tuple(told))


def and_then(found, run, options):
    """SolverResult of run(outer=, inner=options) after one that failed, with the tries and iterations of both."""
    outer, inner = options
    second = run(outer=outer, inner=inner)
    tries = (*found.tries, (INSTEAD, second.status, second.iterations))
    return replace(second, iterations=found.iterations + second.iterations, tries=tries)


@dataclass(frozen=True, eq=False)
class SolverResult:
    """What a solver came back with."""

    x: np.ndarray
    lam_x: np.ndarray
    lam_g: np.ndarray
    objective: float
    status: str
    success: bool
    iterations: int
    seconds: dict  # in the functions of the program, by name
    tries: tuple = ()  # (name, status, iterations) of each, see first_success


def solve(assembly, name, hessian, outer, inner, given, bar=None):
    """SolverResult of a run of an NLP solver on an Assembly.

    hessian: "exact", "gauss_newton" or "limited_memory". outer, inner: options as checked_options returns them. given:
    {x0, p, lbx, ubx, lbg, ubg, ...}. The solver is kept with the assembly. Raises SolveError if it refuses the problem.
    Ctrl-C and the deadline, see interrupts, stop ipopt, fatrop, sqpmethod, sleqp and uno at the next iteration; others
    end by themselves first. The status of what the deadline stopped is "time_limit".
    """
    options, inner = dict(outer), dict(inner)
    if hessian == "limited_memory":
        inner["hessian_approximation"] = "limited-memory"
    if inner:
        options[name] = inner
    theirs = options.pop("iteration_callback", None)
    # complete: an assembly never changes, and options count by all that they hold, long arrays and Functions too; a
    # callback is kept with its solver, so that no other one gets its hash
    key = (name, hessian, _told(options), theirs and theirs.__hash__())
    if name == "uno" and inner.get("logger") == "SILENT":
        _silence_uno()
    if name == "fatrop":
        structure = assembly.structure
        own = "structure_detection" in options
        options |= {"equality": structure["equality"]} if own else structure
    with solver_run(bar, stops=name in _WATCHED) as run:
        try:
            if key not in assembly.solvers:
                cache = assembly.cache(name, hessian) if "cache" not in options else options["cache"]
                watch = iteration_watch() if theirs is None else WatchedToo(theirs)
                options |= {"cache": cache, "iteration_callback": watch}
                assembly.solvers[key] = ca.nlpsol("planner", name, assembly.nlp, options), watch
            solver, _ = assembly.solvers[key]
            out = solver(**given)
            stats = solver.stats()
        except RuntimeError as error:
            if run.lost:  # it may end so where its own search for a feasible point fails, too
                return no_number(assembly, given["x0"])
            raise SolveError(refusal(name, error), TIME_LIMIT if run.timed_out else None) from None
        finally:
            if run.stopped or run.lost:  # fatrop fails from its first step on when it is called again after that
                assembly.solvers.pop(key, None)
    arrays = (np.array(out[k]).ravel() for k in ("x", "lam_x", "lam_g"))
    told = told_by(stats, run.timed_out)
    if name == "fatrop" and told[:2] == ("1", False) and told[2] >= inner.get("max_iter", np.inf):
        told = OUT_OF_ITERATIONS, *told[1:]  # as others say; it has one status for all failures
    if run.lost:
        told = NO_NUMBER, False, *told[2:]
    return SolverResult(*arrays, float(out["f"]), *told)


def no_number(assembly, x0):
    """SolverResult of fatrop where it meets what is no finite number and does not come back."""
    n, m = assembly.size
    return SolverResult(np.array(x0, float), np.zeros(n), np.zeros(m), np.nan, NO_NUMBER, False, 0, {})


def told_by(stats, timed_out):
    """(status, success, iterations, {function: seconds in it}) from the stats of a solver."""
    success = bool(stats.get("success", False))
    status = str(stats.get("return_status", stats.get("unified_return_status")))
    seconds = {k.removeprefix("t_wall_"): v for k, v in stats.items() if k.startswith("t_wall_")}
    return TIME_LIMIT if timed_out and not success else status, success, int(stats.get("iter_count", 0)), seconds


@cache
def _silence_uno():
    """Uno reads what it may print after it has told of fixed unknowns, and remembers it: let it read it now."""
    x = ca.MX.sym("x")
    ca.nlpsol("silent", "uno", {"x": x, "f": x**2}, {"print_time": False, "uno": {"logger": "SILENT"}})(x0=1)


def _told(options):
    """What tells options apart; of those that cannot be digested, as Functions that call Python, only themselves."""
    try:
        return digest(options, "solver_options")
    except ShapeError:
        return object()


def refusal(name, error):
    """Text: that a solver refused something, with what CasADi says of the reason."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    unknown = next((line for line in lines if "Unknown option" in line), None)  # suggestions follow it
    if unknown is None:
        return f"solver {name!r} refused the problem or an option: {lines[-1]}"
    near = next((line.split('"')[1] for line in lines if line.startswith('> "')), None)
    hint = f"; did you mean {near!r}?" if near else ""
    return f"solver {name!r} refused the problem or an option: unknown option {unknown.split()[-1]!r}{hint}"


def _linear_solver(options):
    asked = options["linear_solver"]
    if asked not in _LINEAR_SOLVERS:
        raise UnknownName("linear solver of ipopt", asked, _LINEAR_SOLVERS)
    if asked in ("mumps", "custom") or _loads(asked, options):
        return asked
    there = [x for x in _LINEAR_SOLVERS[:-1] if x == "mumps" or (x != asked and _loads(x, options))]
    warnings.warn(
        f"linear solver {asked!r} cannot be loaded, mumps is used; available: {', '.join(there)} "
        "(the option 'hsllib' or 'pardisolib' names a library of your own)",
        ModelWarning,
        stacklevel=4,
    )
    return "mumps"


def _loads(linear_solver, options):
    """Whether ipopt finds this linear solver. Trying one that is not there can crash ipopt, so libraries are tried."""
    if linear_solver.startswith("ma"):
        return _library(options.get("hsllib", "libhsl"))
    if linear_solver == "pardiso":
        return _library(options.get("pardisolib", "libpardiso"))
    x = ca.MX.sym("x")
    inner = {"print_level": 0, "sb": "yes", "linear_solver": linear_solver}
    with contextlib.redirect_stdout(io.StringIO()):  # ipopt explains its options at length
        try:
            trial = ca.nlpsol("trial", "ipopt", {"x": x, "f": (x - 1) ** 2}, {"print_time": False, "ipopt": inner})
            trial(x0=0)
        except RuntimeError:
            return False
        return bool(trial.stats()["success"])


def _library(name):
    """Whether a shared library can be loaded; without an ending, this system's is added."""
    endings = {"darwin": ".dylib", "win32": ".dll"}
    name = name if "." in os.path.basename(name) else name + endings.get(sys.platform, ".so")
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
