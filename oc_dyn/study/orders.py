"""How fast the errors of every transcription fall: orders of convergence, observed beside those that are expected.

Problems with known solutions. A rate: x' = -x log x from its start, without a control, to see the integration alone. A
smooth control: the linear hypersensitive problem in the coordinate x = exp(y), so that the dynamics are not linear. A
switch: a pendulum from rest to rest in least time, where the switch lies within one of equal intervals, or at the node
between two phases. A free mesh: a double integrator in least time on six intervals. Of chains of integrators the
effort, the integral of the square of the highest derivative, and a beam, that of q^2 + q''^2.
Errors are those at nodes, largest over these; "between": at the points of a method. An order is the slope of the
logarithms of the error over those of the interval, by least squares over the finest intervals whose errors are above
what solvers leave. Sources: Hairer, Norsett, Wanner, Solving ODEs I and II; Hager 2000 for controls.
"""

import functools
from pathlib import Path

import casadi as ca
import numpy as np

from ..files import write_csv
from ..optimal_control.integrators import chosen_method, gauss, implicit, order_of_cost, radau
from ..optimal_control.polynomials import hermite
from ..optimal_control.problem import Problem
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from . import apart

OPTIONS = {"tol": 1e-13, "max_iter": 300}
FLOOR = 5e-12  # what solvers leave
BOUNDED = 5e-10  # the same where bounds are active
EXACT = 1e-8
COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SWITCHED = (5, 7, 9, 11, 13, 15, 17, 19, 21, 25, 31, 41)
HALVES = (4, 6, 8, 12, 16, 24, 32, 48)
QUICK = ("rk4", "radau(2)", "gauss(2)")
T = 3.0  # [s] of the smooth problem
PUSH = 2.0  # largest control of the pendulum, over its weight

_IMPLICIT = {f"implicit({k})": implicit(k) for k in (1, 2, 3)}
WAYS = {  # {name: method}
    "euler": "euler",
    "rk4": "rk4",
    **_IMPLICIT,
    'implicit(2, scheme="gauss")': implicit(2, scheme="gauss"),
    "collocation": "collocation",
    "trapezoidal": "trapezoidal",
    "hermite_simpson": "hermite_simpson",
    **{f"radau({k})": radau(k) for k in range(1, 6)},
    **{f"gauss({k})": gauss(k) for k in range(1, 6)},
    "gauss(3, control_degree=1)": gauss(3, 1),
}
CHAINS = {  # {name: (basis, order)}
    f"{basis}, order {r}": (basis, r) for basis in ("taylor", "bernstein", "b_spline") for r in (2, 3, 4)
}
FIELDS = ("method", "unknowns", "problem", "error of", "expected", "observed", "intervals", "errors")
CAPTIONS = {
    "orders.csv": "unknowns: of an interval with n states and m controls; expected, observed: order of the error; "
    "intervals, errors: what it was observed from. Where errors are what the solver leaves from the first, none is.",
}


# -- problems --------------------------------------------------------------------------------------------------------


def rate(nodes):
    """(Problem, its states at times t as a function): x = exp(1.5 exp(-t))."""
    ocp = Problem(nodes, T)
    x = ocp.state("x", guess=2.0)
    ocp.rate(x, -x * ca.log(x))
    ocp.start({x: np.exp(1.5)})
    return ocp, lambda t: np.exp(1.5 * np.exp(-t))


def smooth(nodes):
    """(Problem, states, optimum): y' = -y + u, integral of (y^2 + u^2) / 2, y from 1.5 to 1, written in x = exp(y)."""
    s, decay = np.sqrt(2), np.exp(-np.sqrt(2) * T)
    a, b = np.linalg.solve([[1, decay], [decay, 1]], [1.5, 1])  # y = a exp(-s t) + b exp(s (t - T))
    slopes = s * (b * decay - a), s * (b - a * decay)
    optimum = (slopes[1] + 1 - 1.5 * (slopes[0] + 1.5)) / 2
    ocp = Problem(nodes, T)
    x, u = ocp.state("x", guess=2.7), ocp.control("u")
    ocp.rate(x, x * (u - ca.log(x)))
    ocp.start({x: np.exp(1.5)})
    ocp.goal({x: np.exp(1)})
    ocp.minimize(integral=(ca.log(x) ** 2 + u**2) / 2)
    return ocp, lambda t: np.exp(a * np.exp(-s * t) + b * np.exp(s * (t - T))), optimum


@functools.cache
def swing_time():
    """Least time of the pendulum, by its energy: full push to the angle of the switch, and full push back.

    v^2 / 2 = PUSH q + cos q - 1 first, and PUSH (pi - q) + 1 + cos q behind it. Times are integrals of 1 / v, whose
    ends at rest are taken by q = s^2, by Gauss-Legendre quadrature.
    """
    switch = (2 + PUSH * np.pi) / 2 / PUSH
    nodes, weights = np.polynomial.legendre.leggauss(60)
    total = 0.0
    for reach, energy in (
        (switch, lambda d: PUSH * d - 2 * np.sin(d / 2) ** 2),
        (np.pi - switch, lambda d: PUSH * d + 2 * np.sin(d / 2) ** 2),
    ):  # d: way from rest
        s = np.sqrt(reach) * (nodes + 1) / 2
        total += np.sqrt(reach) / 2 * np.sum(weights * 2 * s / np.sqrt(2 * energy(s**2)))
    return float(total)


def swing(nodes, at_a_node):
    """(Problem, optimum) of a pendulum q'' = u - sin q from hanging to standing, at rest, |u| <= PUSH, in least time.

    at_a_node: in two phases of free durations, so that the switch is at a node; else on equal intervals.
    """
    optimum, phases = swing_time(), 2 if at_a_node else 1
    durations = (0.2 * optimum, 2 * optimum), optimum / phases
    ocp = Problem(nodes // phases, durations[0], nominal=durations[1])
    q = ocp.state("q", guess=lambda share: np.pi * share)
    v = ocp.state("v", scale=3.0, guess=lambda share: 4 * share * (1 - share))
    u = ocp.control("u", lower=-PUSH, upper=PUSH, guess=lambda share: PUSH if share < 0.5 else -PUSH)
    for number in range(phases):
        if number:
            ocp.phase(nodes // phases, durations[0], nominal=durations[1])
        ocp.rate(q, v)
        ocp.rate(v, u - ca.sin(q))
        ocp.minimize(integral=1)
    ocp.start({q: 0, v: 0})
    ocp.goal({q: np.pi, v: 0})
    return ocp, optimum


def integrator(nodes):
    """(Problem, optimum) of x'' = u, |u| <= 1, from rest to rest over 1 in least time, on a free mesh."""
    ocp = Problem(nodes, (0.5, 8.0), mesh="free", nominal=2.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=1)
    return ocp, 2.0


def effort(nodes, basis, order):
    """(Problem, optimum) of the integral of half the square of the highest derivative, over 1, from rest at 0 to rest
    at 1: q is a polynomial of degree 2 order - 1."""
    ocp = Problem(nodes, 1.0)
    chain = ocp.chain("q", 1, order, basis=basis)
    for where, value in ((ocp.start, 0), (ocp.goal, 1)):
        where({chain[0]: value, **dict.fromkeys(chain[1:-1], 0)})
    ocp.minimize(integral=chain[-1] ** 2 / 2)
    ends = [np.eye(order)[0] * value for value in (0, 1)]
    c = hermite(ends[0][:, None], ends[1][:, None], 1.0)[:, 0]
    highest = np.polynomial.Polynomial(c).deriv(order)
    return ocp, float((highest**2 / 2).integ()(1.0))


def beam(nodes, basis, order):
    """(Problem, q at times, optimum): integral of (q^2 + q''^2) / 2 over 4, from rest at 1 to rest at 1.

    Intervals are not quite equal: on equal ones minimize(points=) counts the end of an interval at its start, which is
    of order 1.
    """
    length = 4.0
    roots = np.exp(1j * np.pi * np.array([1, 3, 5, 7]) / 4)  # q'''' + q = 0
    rows = np.array([roots**d * np.exp(roots * t) for t in (0, length) for d in (0, 1)])
    c = np.linalg.solve(rows, np.array([1, 0, 1, 0], complex))
    ends = [[np.real(np.sum(c * roots**d * np.exp(roots * t))) for d in range(4)] for t in (0, length)]
    optimum = sum(sign * (q[1] * q[2] - q[0] * q[3]) for sign, q in zip((-1, 1), ends, strict=True)) / 2
    places = np.linspace(0, 1, nodes + 1)
    ocp = Problem(nodes, length, mesh=places + 0.02 * np.sin(2 * np.pi * places))
    q, dq, ddq, *_ = ocp.chain("q", 1, order, basis=basis)
    ocp.start({q: 1, dq: 0})
    ocp.goal({q: 1, dq: 0})
    ocp.minimize(integral=(q**2 + ddq**2) / 2, points=6)
    return ocp, lambda t: np.real(np.exp(np.outer(t, roots)) @ c), optimum


# -- what is measured ------------------------------------------------------------------------------------------------


def slope(counts, errors, floor=FLOOR, last=3):
    """Order that errors show: slope over the last ones above the floor; nan for fewer than two."""
    known = np.isfinite(errors)
    counts, errors = np.array(counts)[known], np.abs(np.array(errors)[known])
    below = np.flatnonzero(errors <= floor)
    kept = slice(None, below[0] if below.size else None)
    n, e = np.log(counts[kept][-last:]), np.log(errors[kept][-last:])
    return float(-np.polyfit(n, e, 1)[0]) if len(n) > 1 else np.nan


def solved(ocp, method, initial=None, **options):
    """Solution, or None where the solver fails."""
    how = {"solver_options": {**OPTIONS, **options}, "check": "off", "raises": False}
    solution = ocp.solve(method=method, initial=initial, **how)
    return solution if solution.success else None


def until_the_floor(counts, errors_at, least=4):
    """(counts, [errors]) until all errors are below the floor; at least so many."""
    done, table = [], []
    for nodes in counts:
        table.append(errors_at(nodes))
        done.append(nodes)
        errors = np.abs(table[-1])[np.isfinite(table[-1])]
        if len(done) >= least and errors.size and errors.max() < FLOOR:
            break
    return done, np.array(table).T


def between(solution, states):
    """Largest error at points within intervals; nan for methods without."""
    found = [np.nan]
    for like, share, rows, values in solution.transcribed.inner(solution.unknowns)[0]:
        if like == "x" and share < 1 and 0 in rows:
            times = solution.t[:-1] + share * np.diff(solution.t)
            found.append(np.abs(values[:, rows.index(0)] - states(times)).max())
    return np.nanmax(found) if len(found) > 1 else np.nan


def _of_rate(nodes, method):
    ocp, states = rate(nodes)
    solution = solved(ocp, method)
    return [np.nan if solution is None else np.abs(solution.x[:, 0] - states(solution.t)).max()]


def _of_smooth(nodes, method):
    ocp, states, optimum = smooth(nodes)
    solution = solved(ocp, method)
    if solution is None:
        return [np.nan] * 3
    at_nodes = np.abs(solution.x[:, 0] - states(solution.t)).max()
    return [solution.objective - optimum, at_nodes, between(solution, states)]


def _of_bounded(problem, method):
    """Polynomials start from the solution with constant controls: there are local optima with the switch in an interval
    next to the node, by a polynomial that goes from one bound to the other."""
    ocp, optimum = problem
    first = solved(ocp, radau(3, 0), tol=1e-12) if getattr(method, "control_degree", 0) else None
    solution = solved(ocp, method, initial=first, tol=1e-12)
    return [np.nan if solution is None else solution.objective - optimum]


def _of_effort(nodes, basis, order):
    ocp, optimum = effort(nodes, basis, order)
    solution = solved(ocp, "rk4", tol=1e-9)
    return [np.nan if solution is None else solution.objective / optimum - 1]


def _of_beam(nodes, basis, order):
    ocp, q, optimum = beam(nodes, basis, order)
    solution = solved(ocp, "rk4")
    if solution is None:
        return [np.nan] * 2
    values = solution["q"][:, 0]
    return [solution.objective - optimum, np.abs(values - q(solution.t[: len(values)])).max()]


def unknowns(method):
    """Text: how many unknowns an interval has, of n states and m controls."""
    count = {}
    for n, m in ((1, 1), (2, 1), (1, 2)):
        ocp = Problem(2, 1.0)
        x, _ = ocp.state("x", n), ocp.control("u", m)
        ocp.rate(x, 0 * x)
        kind = ocp.transcribed(method).groups[0].kind
        count[n, m] = kind.nx + kind.nu
    a, b = count[2, 1] - count[1, 1], count[1, 2] - count[1, 1]
    return " + ".join(name if k == 1 else f"{k} {name}" for k, name in ((a, "n"), (b, "m")) if k)


def measured(name):
    """[{field: value}] of a method."""
    method = chosen_method(WAYS[name])
    order, cost, size = method.order, order_of_cost(method), unknowns(method)
    degree = getattr(method, "control_degree", 0)
    inside = min(degree + 2, cost) if degree else None  # a polynomial of a control is off by h^(degree + 1)
    done, errors = until_the_floor(COUNTS, lambda n: _of_rate(n, method))
    rows = _rows(name, size, "rate", ("states",), (order,), done, errors)
    done, errors = until_the_floor(COUNTS, lambda n: _of_smooth(n, method))
    what = "objective", "states", "between"
    rows += _rows(name, size, "smooth control", what, (cost, cost, inside), done, errors)
    done, errors = until_the_floor(SWITCHED, lambda n: _of_bounded(swing(n, False), method), len(SWITCHED))
    problem = "switch within an interval"
    rows += _rows(name, size, problem, ("objective",), (min(order, 2),), done, errors, BOUNDED, len(done))
    done, errors = until_the_floor(HALVES, lambda n: _of_bounded(swing(n, True), method))
    expected = min(order, 2) if getattr(method, "controls_are_states", False) else order
    rows += _rows(name, size, "switch at a node", ("objective",), (expected,), done, errors, BOUNDED)
    errors = np.array([_of_bounded(integrator(6), method)])
    return rows + _rows(name, size, "free mesh", ("objective",), (None,), [6], errors, BOUNDED)


def measured_chain(name):
    """The same of a chain: a piece of degree r whose second derivative is off by h^(r - 1), costs by its square."""
    basis, order = CHAINS[name]
    done, errors = until_the_floor(COUNTS[2:], lambda n: _of_effort(n, basis, order))
    rows = _rows(name, "", "effort", ("objective",), (2,), done, errors)
    if basis != "taylor":  # the others are for intervals of equal length
        return rows
    done, errors = until_the_floor(COUNTS[2:], lambda n: _of_beam(n, basis, order))
    return rows + _rows(name, "", "beam", ("objective", "states"), (2 * (order - 1), None), done, errors)


def _rows(name, size, problem, what, expected, counts, errors, floor=FLOOR, last=3):
    rows = []
    for of, right, e in zip(what, expected, errors, strict=True):
        if np.isnan(e).all():
            continue
        seen = slope(counts, e, floor, last)
        text = "" if np.isnan(seen) else f"{seen:.1f}"
        values = name, size, problem, of, "" if right is None else right, text
        told = " ".join(f"{x:.1e}" for x in e)
        rows.append(dict(zip(FIELDS, (*values, " ".join(map(str, counts)), told), strict=True)))
    return rows


# -- tables ----------------------------------------------------------------------------------------------------------

COLUMNS = {  # heading: (problem, error of)
    "a rate": ("rate", "states"),
    "objective": ("smooth control", "objective"),
    "states": ("smooth control", "states"),
    "between": ("smooth control", "between"),
    "switch in an interval": ("switch within an interval", "objective"),
    "switch at a node": ("switch at a node", "objective"),
    "free mesh": ("free mesh", "objective"),
}
OF_CHAINS = {"effort": ("effort", "objective"), "beam": ("beam", "objective"), "its states": ("beam", "states")}


def markdown(rows):
    """Tables of the orders, as they stand in docs/transcriptions.md. rows: those of orders.csv."""
    found = {(r["method"], r["problem"], r["error of"]): r for r in rows}
    names = dict.fromkeys(r["method"] for r in rows)
    sizes = {r["method"]: r["unknowns"] for r in rows}
    methods = [name for name in names if name in WAYS]
    lines = [f"| method | unknowns | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name in methods:
        cells = [_cell(found.get((name, *of))) for of in COLUMNS.values()]
        lines.append(f"| `{name}` | {sizes[name]} | {' | '.join(cells)} |")
    lines += ["", f"| chain | {' | '.join(OF_CHAINS)} |", "|---" * (len(OF_CHAINS) + 1) + "|"]
    for name in names:
        if name in CHAINS:
            cells = [_cell(found.get((name, *of))) for of in OF_CHAINS.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row):
    """What was observed, with what is expected; the error where there is no order."""
    if row is None:
        return ""
    if not row["observed"]:
        last = abs(float(row["errors"].split()[-1]))
        return "exact" if last < EXACT else f"off by {last:.0e}"
    return f"{row['observed']} ({row['expected']})" if row["expected"] != "" else row["observed"]


def run(out, quick=False, progress=None):
    """Measure, and write orders.csv, orders.md and manifest.json to the folder `out`; returns the tables as a text.

    quick: three methods and a chain. progress: show a bar on stderr; default on a terminal only.
    """
    names = [*(QUICK if quick else WAYS), *(["taylor, order 2"] if quick else CHAINS)]
    rows = []
    with bar(progress, len(names), "orders", " methods") as shown:
        for name in names:
            shown.set_postfix_str(name)
            rows += measured(name) if name in WAYS else measured_chain(name)
            shown.update()
    write_csv(Path(out) / "orders.csv", [FIELDS, *([row[k] for k in FIELDS] for row in rows)])
    text = markdown(rows)
    (Path(out) / "orders.md").write_text(text, encoding="utf-8")
    command = apart.typed("orders", out, quick)
    write_json(Path(out) / "manifest.json", manifest(command, solver_options=OPTIONS, floor=FLOOR, rows=rows))
    return text
