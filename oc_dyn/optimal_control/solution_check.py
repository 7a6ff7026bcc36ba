"""Solution.check(): what a solution is worth, by an integration of its own that knows nothing of the method's.

Controls are those that were found, between points the polynomial of the method. From the states of every node the
dynamics are integrated to the next one (Gragg's modified midpoint rule, extrapolated to order 6, refined until its own
error does not matter), and every bound and limit is looked at on a dense grid of every interval, both ends included,
so on both sides of what jumps at nodes. States given by `next` are maps: they are evaluated again, and between nodes
known for chains and contact bodies alone.
"""

import numpy as np

from .check_functions import evaluated, low_order, phase_functions
from .check_phase import Part
from .check_rows import NOTHING, CheckRow, SolutionCheck, joined, outside


def check(solution, tolerance):
    """SolutionCheck of a Solution."""
    rows, costs, uncertainty = [], [], 0.0
    for part in parts_of(solution):
        found, own, error = part.check(tolerance)
        rows += found
        costs.append(own)
        uncertainty = max(uncertainty, error)
        solution._flows[part.phase.number] = part.flow
    rows += _at_ends(solution)
    costs = np.concatenate([*costs, terminal_costs(solution)])
    rows += _of_cost(solution, costs) if uncertainty <= tolerance and not solution.objective_changed else []
    worst = {}
    for row in rows:  # a bound that holds in several phases, or at points and nodes, is told once
        known = worst.get((row.what, row.name))
        if known is None or row.error > known.error or np.isnan(row.error):
            worst[row.what, row.name] = row
    order = sorted(worst.values(), key=lambda r: (not r.counts, -np.nan_to_num(r.error, nan=np.inf)))
    return SolutionCheck(tuple(order), float(costs.sum()), uncertainty, tolerance)


def parts_of(solution):
    """A Part for every phase of a Solution, one after the other."""
    made, constants = solution.transcribed, constants_of(solution)
    first, inner = 0, made.inner(solution.unknowns)
    bounds = tuple((name, *(side.tobytes() for side in both)) for name, both in solution.limit_bounds.items())
    for number, phase in enumerate(made.phases):
        key = number, bounds  # complete: of the phases of a transcription only bounds of limits change
        if key not in made.checks:
            made.checks[key] = phase_functions(made, phase, solution.limit_bounds)
        here = slice(first, first + phase.nodes)
        yield Part(solution, phase, made.checks[key], constants[:, here], inner[number], first)
        first += phase.nodes


def terminal_costs(solution):
    """(k,) costs of the end."""
    made, constants = solution.transcribed, constants_of(solution)
    f = _kept(made, "terminal", made.description.terminal)
    return f(solution.x[-1], _last(solution.u), constants[:, -1]).full().ravel()


def _of_cost(solution, costs):
    """The objective of the program against the costs of intervals and the end, as they are integrated; relative to
    the sum of their sizes."""
    made, found, right = solution.transcribed, solution.objective, float(costs.sum())
    counts = not low_order(made.method) and not any(phase.means for phase in made.phases)
    miss, size = abs(found - right), float(np.abs(costs).sum())
    error = miss / max(size, abs(found)) if miss > NOTHING else 0.0
    return [CheckRow("cost", "the objective", error, float(solution.t[-1]), found, right, right, counts)]


def _kept(made, what, expressions):
    """The same, made once for a transcription, whose expressions never change."""
    if what not in made.checks:
        made.checks[what] = evaluated(made, expressions, what)
    return made.checks[what]


def constants_of(solution):
    """(n, N + 1): free durations, parameters of the problem, parameters of every node."""
    made = solution.transcribed
    common = np.concatenate([solution.times, solution.parameters[: made.n_p]])
    own = solution.parameters[made.n_p :].reshape(-1, made.n_s).T
    relative = np.append(solution.relative_lengths, 1.0)[None] if made.free_mesh else np.zeros((0, own.shape[1]))
    return np.vstack([np.tile(common[:, None], (1, own.shape[1])), own, relative])


def _last(u):
    return u[-1] if len(u) else np.zeros(u.shape[1])


def _at_ends(solution):
    """Rows of start and goal, bounds of the last node and of the durations, norms of quaternions at the nodes."""
    made, rows = solution.transcribed, []
    constants, t = constants_of(solution), solution.t
    for what, k, some in (("start", 0, made.description.start_rows), ("goal", -1, made.description.goal_rows)):
        if some:
            u = solution.u[0] if k == 0 and len(solution.u) else _last(solution.u)
            values = _kept(made, what, [r.expression for r in some])(solution.x[k], u, constants[:, k]).full()
            names = [f"{r.name or f'row {i}'}[{j}]" for i, r in enumerate(some) for j in range(r.lower.size)]
            bounds = [joined(getattr(r, b) for r in some) for b in ("lower", "upper")]
            rows += outside(what, names, values, *bounds, t[[k]])
    first = 0
    for number, phase in enumerate(made.phases):
        for i, r in enumerate(phase.node_rows):
            k = first + phase.node(r.fraction)
            u = solution.u[k] if len(solution.u) else _last(solution.u)
            value = _kept(made, f"node_row_{number}_{i}", [r.expression])(solution.x[k], u, constants[:, k]).full()
            rows += outside("limit", [f"{r.name}[{j}]" for j in range(r.lower.size)], value, r.lower, r.upper, t[[k]])
        first += phase.nodes
    for what, k in (("start", 0), ("goal", -1)):
        lower, upper = (made.values(bounds)[0][k] for bounds in solution.bounds)
        rows += outside(what, made.state_names, solution.x[k][:, None], lower, upper, t[[k]])
    for number, (T, (_, (lower, upper), *_)) in enumerate(zip(solution.durations, made.durations, strict=True)):
        value = np.array([[T]])
        rows += outside("duration", [f"phase {number}"], value, np.array([lower]), np.array([upper]), t[-1:])
    bodies = [(body.q, body.quaternions) for body in made.description.bodies]
    on_manifolds = [(v.symbol, v.manifold.quaternions) for v in made.states if v.manifold is not None]
    for symbol, quaternions in (*bodies, *on_manifolds):
        place = next(r for v, r in zip(made.states, made.state_rows, strict=True) if v.symbol is symbol)
        for i in quaternions:
            norms = np.linalg.norm(solution.x[:, place[i : i + 4]], axis=1)[None]
            name = f"quaternion {made.state_names[place[i]]}"
            rows += outside("norm", [name], norms, np.ones(1), np.ones(1), t)
    return rows
