"""Why a solve failed, in words: what the solver's status means, and what of the problem is behind it."""

import numpy as np

from .conflict import conflict
from .not_finite import first_not_finite
from .worst_rows import NOTHING, active, gradients, program_of, worst_rows

_LIMIT = "it reached its limit of iterations"
_INFEASIBLE = "it found no point that keeps all rows, and none nearby that violates them less"
_NUMBERS = "a function of the problem or a derivative gave no finite number"
_SHORT = "it found no step that helps"
_UNTOLD = "it gave up and tells no reason"
_TIME = "the limit of time has passed"
_POINT = "it stopped at an acceptable point, less accurate than asked for"
_MEANING = {  # status: words; those of CasADi's own solvers and of ipopt by name
    "Maximum_Iterations_Exceeded": _LIMIT,
    "Infeasible_Problem_Detected": _INFEASIBLE,
    "Invalid_Number_Detected": _NUMBERS,
    "Restoration_Failed": "it lost its way to a feasible point: rows contradict each other there, or their derivatives",
    "Search_Direction_Becomes_Too_Small": _SHORT,
    "Diverging_Iterates": "the unknowns grow without bound: nothing in the cost or in bounds holds them back",
    "Error_In_Step_Computation": "its linear system could not be solved: rows that say the same, or bad scales",
    "Not_Enough_Degrees_Of_Freedom": "there are more equations than unknowns: too much is fixed",
    "Solved_To_Acceptable_Level": _POINT,
    "User_Requested_Stop": "it was stopped by a callback",
    "Maximum_CpuTime_Exceeded": _TIME,
    "Maximum_WallTime_Exceeded": _TIME,
    "time_limit": _TIME,
    "No_Feasible_Initialization": "it needs a guess that keeps all rows",
    "Non_Regular_Sensitivities": _NUMBERS,
    "SOLVER_RET_UNKNOWN": _UNTOLD,
    "SOLVER_RET_LIMITED": "it reached a limit of iterations or time",
    "SOLVER_RET_NAN": _NUMBERS,
    "SOLVER_RET_INFEASIBLE": _INFEASIBLE,
    "iteration limit": _LIMIT,
    "deadpoint": "it is stuck where no step helps",
    "Converged with infeasible stationary point": _INFEASIBLE,
    "Terminated with infeasible small step": f"{_SHORT}, and rows are violated",
    "Terminated with feasible small step": f"{_SHORT}, though all rows are kept",
    "Iteration limit": _LIMIT,
    "Time limit": _TIME,
    "Unbounded": "the cost falls without bound",
}
_STOPPED = (_LIMIT, _TIME, "it was stopped by a callback", "it reached a limit of iterations or time")
_FATROP = {  # the enumeration of its return flags; 1 also stands for all that its C interface does not tell
    "1": "it did not converge: the limit of iterations, or no step that helps",
    "2": _POINT,
    "3": _INFEASIBLE,
    "4": _SHORT,
    "5": "its linear system could not be solved: rows that say the same, or bad scales",
    "6": _UNTOLD,
}


def meaning(solver, status):
    """What the status of a solver means, or "" where nothing is known of it."""
    if solver == "fatrop" and str(status) in _FATROP:
        return _FATROP[str(status)]
    return _MEANING.get(str(status), "")


def explained(solution, solver, guess):
    """Text: why a solve failed and what of the problem is behind it. guess: unknowns that it began with."""
    parts = [f"the solver stopped with {solution.status!r} after {solution.iterations} iterations"]
    if words := meaning(solver, solution.status):
        parts[0] += f": {words}"
    program = program_of(solution)
    finite = bool(np.isfinite(solution.unknowns).all())
    numbers = [*solution.unknowns, *program.g]
    if found := _not_finite(solution, guess, finite) if _suspicious(solution.status, numbers) else "":
        parts.append(found)
    elif solution.status in ("Diverging_Iterates", "Unbounded"):
        parts.append(f"largest are {', '.join(_largest(program))}: give what they are of bounds, or a cost")
    elif rows := worst_rows(solution, 4):
        parts += _infeasible(solution, program, rows)
    else:
        parts += _not_optimal(solution, program)
    return "; ".join(parts) + "; its .solution has worst_rows() and check()"


def _suspicious(status, numbers):
    """Whether something that is no finite number may be why a solver stopped."""
    return not np.isfinite(numbers).all() or meaning("", status) in (_NUMBERS, _UNTOLD)


def _not_finite(solution, guess, finite):
    """Text: where something is no finite number, at the last iterate or at the guess; "" for nowhere."""
    for what, unknowns in [*([("last iterate", solution.unknowns)] if finite else []), ("guess", guess)]:
        if found := first_not_finite(solution, unknowns):
            return f"at the {what} {found}"
    return "" if finite else "the unknowns of the last iterate are no finite numbers, though all is finite at the guess"


def _infeasible(solution, program, rows):
    """[text] of what cannot hold together, and of the rows that are violated."""
    violated = f"violated most at the last iterate: {', '.join(map(str, rows[:3]))}"
    found = conflict(solution, program)
    if found is None:
        return [*_held(program), violated]
    least, in_the_way = found
    if least <= NOTHING * max(1, program.g.size) or least < 1e-3 * rows[0].violation:
        hint = "linearised there all rows can hold, so that the problem may be feasible: try another guess, more "
        return [*_held(program), violated, f"{hint}iterations or another solver"]
    stopped = meaning("", solution.status) in _STOPPED
    shown = ", ".join(in_the_way[:6]) + (f" and {len(in_the_way) - 6} more" if len(in_the_way) > 6 else "")
    if stopped:  # where no iterate was near a solution yet, that says little
        hint = "the problem may be feasible all the same: let it go on, or try another guess"
        return [f"linearised at the last iterate these are in each other's way: {shown}", violated, hint]
    return [f"these cannot hold together, as linearised at the last iterate: {shown}", violated]


def _held(program):
    """[text] of bounds that the iterate lies on."""
    found = [x for x in active(program) if 20 * x[3] >= x[4]][:3]
    told = [f"{name} at its {side} bound {value:.6g} ({k} of {n} places)" for name, side, value, k, n in found]
    return [f"on their bounds there: {', '.join(told)}"] if told else []


def _largest(program):
    """[text] of the unknowns that are largest."""
    found = {}
    for i in np.argsort(-np.abs(program.x)):
        label, stage = program.names.unknown(int(i))
        if label.name not in found and len(found) < 3:
            found[label.name] = f"{label.name} at node {program.names.phase_and_node(stage)[1]}"
            found[label.name] += f" ({program.x[i] * label.scale + label.offset:.3g})"
    return list(found.values())


def _not_optimal(solution, program):
    """[text] of an iterate that keeps all rows but is no optimum."""
    phases = len(solution.transcribed.phases)
    told = []
    for size, name, phase, node in gradients(solution, 3):
        of = f" of phase {phase}" if phases > 1 else ""
        told.append(f"{name} at node {node}{of} ({size:.2g})")
    if not told:
        return ["the last iterate keeps all rows"]
    return [f"the last iterate keeps all rows but is not optimal: the cost still falls along {', '.join(told)}"]
