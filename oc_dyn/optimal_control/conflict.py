"""What cannot hold together where the last iterate of a solve is infeasible.

Solvers leave the violation where it is cheapest to leave, which is rarely at what asks too much. The least violation of
the rows linearised at the iterate is a linear program; at its optimum the multipliers prove that no less is possible
(Farkas), and bounds and limits that have none take no part in that.
"""

import casadi as ca
import numpy as np

from .worst_rows import function_of

MOST = 20000  # unknowns and rows of programs that are looked at
_LEAST = 1e-6  # of the largest multiplier, that counts


def conflict(solution, program):
    """(least violation of the linearised rows, relative to scales; [text] of what is in its way, the strongest first),
    or None where it is not known."""
    n, m = program.x.size, program.g.size
    solver = next((s for s in ("highs", "clp") if ca.has_conic(s)), None)
    J = function_of(solution.transcribed, "jacobian")(solution.unknowns, solution.parameters)
    if solver is None or n + m > MOST or not m or not np.isfinite(J.nonzeros()).all():
        return None
    if not np.isfinite(program.x).all() or not np.isfinite(program.g).all():
        return None
    A = ca.horzcat(J, ca.DM.eye(m), -ca.DM.eye(m))
    given = {
        "g": np.concatenate([np.zeros(n), np.ones(2 * m)]), "a": A, "h": ca.DM(n + 2 * m, n + 2 * m),
        "lbx": np.concatenate([program.lbx - program.x, np.zeros(2 * m)]),
        "ubx": np.concatenate([program.ubx - program.x, np.full(2 * m, np.inf)]),
        "lba": program.lbg - program.g, "uba": program.ubg - program.g,
    }  # fmt: skip
    options = {"error_on_fail": False, "print_time": False}
    if solver == "highs":
        options["highs"] = {"output_flag": False, "time_limit": 10.0}
    try:
        lp = ca.conic("least_violation", solver, {"h": given["h"].sparsity(), "a": A.sparsity()}, options)
        found = lp(**given)
    except RuntimeError:
        return None
    if not lp.stats()["success"]:
        return None
    multipliers = [found["lam_x"].full().ravel()[:n], found["lam_a"].full().ravel()]
    return float(found["cost"]), _told(program, np.concatenate(multipliers))


def _told(program, multipliers):
    """[text] of the bounds and limits that have multipliers, dynamics left out."""
    n, names = program.x.size, program.names
    last = len(names.places) - 1
    groups = {}
    for i in np.flatnonzero(np.abs(multipliers) > _LEAST * np.abs(multipliers).max(initial=0.0)):
        label, stage = program.label(int(i))
        if i >= n and label.what in ("dynamics", "step", "join", "duration"):
            continue
        lower, upper = (program.lbx[i], program.ubx[i]) if i < n else (program.lbg[i - n], program.ubg[i - n])
        fixed = lower == upper
        what = label.what
        if what == "bound" and fixed:
            what = "start" if stage == 0 else "goal" if stage == last else what
        value = label.scale * (upper if multipliers[i] > 0 else lower) + label.offset
        key = what, label.name, "" if fixed else "at most" if multipliers[i] > 0 else "at least"
        weight, values, stages = groups.setdefault(key, [0.0, [], set()])
        groups[key] = [weight + abs(float(multipliers[i])), [*values, float(value)], stages | {stage}]
    last_told = {"start": 2, "goal": 2, "mesh": 1}  # what is fixed is what is wanted, the others are in its way
    order = sorted(groups, key=lambda k: (0 if k[2] and k[0] != "mesh" else last_told.get(k[0], 0), -groups[k][0]))
    return [_text(names, *key, *groups[key][1:]) for key in order]


def _text(names, what, name, side, values, stages):
    if name == "clock" and names.made.free_mesh:
        T = names.made.duration_numbers(0)[0]
        return f"the duration of the motion {side or '='} {values[0] * T:.6g}"
    if what in ("duration", "mesh"):
        name = f"the duration of {name}" if what == "duration" else f"the {name}"
    elif what in ("start", "goal", "at", "norm"):
        name = f"the {what} of {name}" if what != "at" else name
    elif what == "limit":
        name = f"the limit {name}"
    value = f"{values[0]:.6g}" if np.ptp(values) <= 1e-9 * max(1.0, abs(values[0])) else f"{min(values):.6g} and more"
    phases = sorted({names.phase_and_node(stage)[0] for stage in stages})
    where = ""
    if what not in ("start", "goal", "duration", "at", "norm"):
        number, node = names.phase_and_node(min(stages))
        where = f" at {len(stages)} nodes" if len(stages) > 1 else f" at node {node}"
        where += f" of phase {number}" if len(names.made.phases) > 1 and len(phases) == 1 else ""
    return f"{name} {side or '='} {value}{where}"
