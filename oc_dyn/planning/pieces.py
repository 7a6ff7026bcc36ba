"""The optimisation problem of a point-to-point motion, stage by stage.

The motion has N pieces of equal length h = T / N, polynomials of degree c + 1, c times continuously differentiable.
Unknown in piece k are its Taylor coefficients x_j = q^(j) h^j / j! at its start, j = 0..c, and u = x_(c+1), which is
free in every piece: a chain of integrators. From piece to piece they obey Pascal's triangle, a constant linear map;
time enters the limits alone. h is one more state, equal in all pieces, so that no unknown couples all of them.
With a free mesh every piece has its own length instead, within bounds of the mean: switches of a motion at its limits
then fall on nodes. Coefficients are those of a piece of the nominal length there.

Limits of q, v, dv, d2v, d3v bound the Bernstein coefficients of each piece: they hold everywhere, not only at nodes.
Torque and torque rate are bounded at nodes, on both sides where they jump, and at points between them.

One kind of stage serves all pieces, or all but the last where the goal leaves derivatives free. Rows that only depend
on what is fixed at an end are left out: they cannot be changed, and a limit just met there would leave the solver no
room; they are checked before. What differs between tasks on one robot, positions, limits and scales, are parameters,
so the stages are built once a robot.
"""

from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

from ..function import function
from ..model.cache import cached
from ..optimal_control.assembly import Group, assemble
from ..optimal_control.polynomials import at, bernstein, lobatto, shift
from ..optimal_control.stages import kind
from .limits import QUANTITIES, velocity_bounds

MARGINS = ("tau", "dtau", "v_of_q")  # bounds that can be tightened, as they are held at points only
SHORTEST_PIECE, LONGEST_PIECE = 0.1, 4.0  # of a free mesh, in nominal lengths
_BOUNDED = QUANTITIES[1:]


@dataclass(frozen=True)
class Row:
    """A bounded row of a stage: of which quantity ("tie" for a derivative fixed at an end) and joint.

    fixed: numbers of derivatives at the (start, end) of the piece that it depends on alone, None where on others too.
    margin: number of the margin that shrinks it. side: of v_of_q, 1 the upper, -1 the lower bound. order: of a tie.
    place: number of the Bernstein coefficient, or point in the piece.
    """

    quantity: str
    joint: int
    fixed: tuple = (None, None)
    margin: int | None = None
    side: int = 0
    order: int = 0
    place: float = 0


@dataclass(eq=False)
class Transcription:
    """The problem and what is needed to talk about it in physical units.

    nodes: number of pieces N. scale (c + 2, m): x_j = scale_j times the unknown, m moving joints. step: length of a
    piece that the unknown 1 stands for. assembly: the nonlinear program. rows: [(stage, Row, number among the
    constraints)]. bounds: {lbx, ubx}.
    """

    task: object
    nodes: int
    scale: np.ndarray
    step: float
    mesh: str  # "fixed" step, "uniform" or "free"
    kinematic: bool
    assembly: object
    rows: list
    bounds: dict

    @property
    def free_time(self):
        return self.mesh != "fixed"

    def guess(self, derivatives, T):
        """Unknowns from derivatives (c + 2, N + 1, n) of q at equally spaced nodes of a motion of duration T."""
        c, m = self.task.continuity, self.task.moving
        h = T / self.nodes
        length = self.step if self.mesh == "free" else h
        x = np.array([derivatives[j][:, m] * length**j / factorial(j) for j in range(c + 1)])
        u = np.diff(x[c], axis=0) / (c + 1) * (length / h)
        x[0] -= self.task.start[0][m]
        x, u = x / self.scale[: c + 1, None], u / self.scale[c + 1]
        share = [h / self.step]
        rows = []
        for k in range(self.nodes + 1):
            rows += [x[:, k].ravel(), share if self.mesh == "uniform" else []]
            rows += [u[k], share if self.mesh == "free" else []] if k < self.nodes else []
        return np.concatenate(rows)

    def unpack(self, values):
        """(h (N,), x (N + 1, c + 1, n), u (N, n)): lengths of the pieces [s], derivatives 0..c of q at the nodes and
        the next one in the pieces."""
        c, moving, start, N = self.task.continuity, self.task.moving, self.task.start[0], self.nodes
        m = int(moving.sum())
        size, timed = m * (c + 1), self.mesh == "uniform"
        width = size + timed + m + (self.mesh == "free")
        table = np.append(values, np.zeros(width - size - timed)).reshape(N + 1, width)
        share = np.ones(N + 1)
        if self.free_time:
            share = table[:, size] if timed else np.append(table[:N, -1], 1.0)
        h = share * self.step
        length = np.full(N + 1, self.step) if self.mesh == "free" else h
        with np.errstate(all="ignore"):  # an iterate that failed may have no length
            to_rates = np.array([factorial(j) / length**j for j in range(c + 2)])
        x, u = np.zeros((N + 1, c + 1, len(start))), np.zeros((N, len(start)))
        x[:, :, moving] = (
            table[:, :size].reshape(N + 1, c + 1, m) * self.scale[: c + 1] * to_rates[: c + 1].T[:, :, None]
        )
        u[:, moving] = table[:-1, size + timed :][:, :m] * self.scale[c + 1] * to_rates[c + 1, :-1, None]
        x[:, 0] += start
        return h[:-1], x, u

    def parameters(self, margins):
        """Values of the parameters of the program; margins (3 n,): shares of the limits MARGINS that may be used."""
        task = self.task
        unit = [_unit(getattr(task.limits, k)) for k in _BOUNDED]
        rates = np.zeros((2, task.continuity, len(task.names)))
        for end, state in zip(rates, (task.start, task.goal), strict=True):
            end[: len(state) - 1] = state[1:]
        p = np.concatenate([task.start[0], self.scale.ravel(), [self.step], *unit, margins, rates.ravel()])
        return self.assembly.parameters(p, np.full(self.nodes + 1, 1 / self.nodes))

    def constraint_bounds(self, margins):
        """{lbg, ubg}: zero for the dynamics, one for limits, shrunk by the margins."""
        lower, upper = np.zeros((2, self.assembly.size[1]))
        limits = self.task.limits
        for _, row, number in self.rows:
            use = 1.0 if row.margin is None else margins[row.margin]
            if row.quantity == "q":
                lower[number], upper[number] = (bound[row.joint] for bound in limits.q)
            elif row.quantity == "v_of_q":
                lower[number], upper[number] = (-np.inf, 0.0) if row.side > 0 else (0.0, np.inf)
            elif row.quantity != "tie":
                lower[number], upper[number] = -use, use
        return {"lbg": lower, "ubg": upper}

    def carried(self, multipliers, other):
        """Multipliers of another problem with the same unknowns as multipliers of this one, zero where rows are new."""
        lam_x, lam_g = multipliers
        known = {(k, row): lam_g[number] for k, row, number in other.rows}
        out = np.zeros(self.assembly.size[1])
        out[self.assembly.dynamics] = lam_g[other.assembly.dynamics]
        for k, row, number in self.rows:
            out[number] = known.get((k, row), 0.0)
        return lam_x, out


def transcribe(
    task,
    *,
    nodes,
    interior,
    kinematic,
    mesh,
    smoothing,
    T,
    shortest,
    both_sides,
    derivatives="ad",
    compiler=None,
):
    """Transcription of a Task.

    interior: points between nodes where torque is bounded. kinematic: leave limits of torque out. mesh: "uniform" or
    "free" pieces, the time, which is near T and at least `shortest`, minimised; or "fixed" ones in the time T, the
    squared torque minimised. smoothing: weight of the mean square of u, scaled to about 1. both_sides: with c = 2,
    where the torque rate jumps at nodes, bound it on both sides, not on the one behind them alone. derivatives: of the
    dynamics, "ad" or "analytic". compiler: for the stage functions, [Functions] -> [Functions].
    """
    c, N = task.continuity, nodes
    tied = [mesh == "uniform" and bool(np.any(state[1:])) for state in (task.start, task.goal)]
    v_of_q = None if task.limits.v_of_q is None else velocity_bounds(task.limits).serialize()
    # complete: numbers of the task are parameters; what else a stage reads is which limits there are, whether friction
    # counts, and the bounds of v_of_q, whose text is in the key, as a function may change by what it refers to
    kept = (c, task.moving.tobytes(), _present(task.limits), interior, kinematic, mesh, smoothing, v_of_q)
    kept += (task.friction,)

    def stage(last):
        key = ("planning", *kept, both_sides, tied[0], last, derivatives, compiler)
        made = (task, interior, kinematic, mesh, smoothing, both_sides, tied[0], last, derivatives, compiler)
        return cached(task.robot, key, lambda: _piece(*made))

    last_differs = len(task.goal) <= c
    groups = [(*stage(False), N - last_differs), *([(*stage(True), 1)] if last_differs else [])]
    end, end_rows = cached(task.robot, ("planning", "end", *kept[:2], mesh), lambda: _end(task, mesh))
    stages = [rows for _, rows, count in groups for _ in range(count)]
    keep = [[_keeps(task, row, k, N, tied) for row in rows] for k, rows in enumerate([*stages, end_rows])]
    made, start = [], 0
    for of, rows, count in groups:
        made.append(Group(of, count, np.array(keep[start : start + count], bool).reshape(count, len(rows))))
        start += count
    made.append(Group(end, 1, np.array(keep[-1:], bool).reshape(1, len(end_rows))))
    assembly = assemble(made, n_p=sum(_sizes(task)), n_s=1)
    numbered = [
        (k, row, int(number))
        for k, (rows, numbers) in enumerate(zip([*stages, end_rows], assembly.stage_rows, strict=True))
        for row, number in zip(rows, numbers, strict=True)
        if number >= 0
    ]
    scale = _scale(task, N)
    bounds = _bounds(task, scale, N, T / N, mesh, tied, shortest / T)
    return Transcription(task, N, scale, T / N, mesh, kinematic, assembly, numbered, bounds)


# -- stages ---------------------------------------------------------------------------------------------------


def _piece(task, interior, kinematic, mesh, smoothing, both_sides, tied, last, derivatives, compiler):
    """(Kind, rows) of a piece: of the last one, or of the others."""
    m = int(task.moving.sum())
    rows = []

    def build(x, u, p, s):
        rows.clear()
        values = []

        def bounded(value, row):
            values.append(value)
            rows.append(row)

        piece, effort = _Polynomial(task, x, u, p, mesh), mesh == "fixed"
        _hull_rows(task, piece, last, bounded)
        if task.limits.v_of_q is not None:
            _velocity_rows(task, piece, bounded)
        cost = piece.share * s if mesh == "free" else 0
        if effort or not kinematic:
            points = interior, last, both_sides
            cost = cost + _torque_rows(task, piece, points, not kinematic, effort, derivatives, bounded)
        if tied:
            _ties(task, piece, 0, bounded)
        if smoothing:
            cost = cost + smoothing * s * ca.sumsqr(u[:m]) / m
        return {"next": piece.following(), "rows": ca.vertcat(type(x)(0, 1), *values), "cost": cost}

    nx, nu = m * (task.continuity + 1) + (mesh == "uniform"), m + (mesh == "free")
    graph = "mx" if derivatives == "analytic" and not kinematic else "sx"
    made = kind("last_piece" if last else "piece", nx, nu, build, sum(_sizes(task)), 1, graph)
    return made.compiled(compiler) if compiler else made, tuple(rows)


def _end(task, mesh):
    """(Kind, rows) of the node at the goal: the time, and derivatives that are fixed there and depend on it."""
    m, rows = int(task.moving.sum()), []

    def build(x, u, p, s):
        values = []
        if mesh != "uniform":
            return {}
        _ties(task, _Polynomial(task, x, None, p, mesh), 1, lambda y, row: (values.append(y), rows.append(row)))
        return {"rows": ca.vertcat(*values), "cost": x[-1]}

    nx = m * (task.continuity + 1) + (mesh == "uniform")
    return kind("end", nx, 0, build, sum(_sizes(task)), 1), tuple(rows)


class _Polynomial:
    """A piece as casadi expressions: Taylor coefficients (n,) of all joints in physical units, length, parameters."""

    def __init__(self, task, x, u, p, mesh):
        c, n, m = task.continuity, len(task.names), int(task.moving.sum())
        parts = ca.vertsplit(p, np.cumsum([0, *_sizes(task)]).tolist())
        self.start, self.scale, self.step = parts[0], parts[1 : c + 3], parts[c + 3]
        self.unit = dict(zip(_BOUNDED, parts[c + 4 :], strict=False))
        self.margin = parts[c + 4 + len(_BOUNDED)]
        rates = parts[c + 5 + len(_BOUNDED) :]
        self.rates = rates[:c], rates[c:]  # at the start and the goal, by order from v on
        self.mesh, self.order = mesh, c + 1
        self.share = {
            "fixed": lambda: 1,
            "uniform": lambda: x[m * (c + 1)],
            "free": lambda: u[m] if u is not None else 1,
        }[mesh]()
        self.unknowns = [*ca.vertsplit(x[: m * (c + 1)], m), *([] if u is None else [u[:m]])]
        place = ca.DM(np.eye(n)[:, task.moving])
        self.taylor = [place @ (k * y) for k, y in zip(self.scale, self.unknowns, strict=False)]
        if mesh == "free":
            self.taylor = [y * self.share**j for j, y in enumerate(self.taylor)]
        self.taylor[0] = self.taylor[0] + self.start
        self.length = self.share * self.step

    def combined(self, weights, d):
        """The d-th derivative by time from weights of the Taylor coefficients."""
        terms = [weights[j] * self.taylor[j] for j in range(d, self.order + 1) if weights[j]]
        return sum(terms[1:], terms[0]) / self.length**d if d else sum(terms[1:], terms[0])

    def derivative(self, d, s):
        return self.combined(at(self.order, d, s), d)

    def following(self):
        """Unknown state of the piece behind it: Pascal's triangle; the joints' scales differ by common factors."""
        P = shift(self.order)
        rows = []
        for i in range(self.order):
            terms = [P[i, j] * (self.scale[j] / self.scale[i]) * self.unknowns[j] for j in range(i, self.order + 1)]
            if self.mesh == "free":
                terms = [y * self.share**k for k, y in enumerate(terms)]
            rows.append(sum(terms[1:], terms[0]))
        return ca.vertcat(*rows, *([self.share] if self.mesh == "uniform" else []))


def _hull_rows(task, piece, last, bounded):
    c, limits = task.continuity, task.limits
    for d, quantity in enumerate(QUANTITIES[: min(5, c + 2)]):
        limit = limits.q if d == 0 else getattr(limits, quantity)
        some = np.isfinite(limit[0]) | np.isfinite(limit[1]) if d == 0 else np.isfinite(limit)
        degree = c + 1 - d
        for i, weights in enumerate(bernstein(c + 1, d)):
            is_next_start, is_node = i == degree and d <= c and not last, d == 0 and i == 0
            if is_next_start or is_node:  # nodes are bounded as unknowns
                continue
            b = piece.combined(weights, d)
            for joint in np.flatnonzero(some & task.moving):
                value = b[int(joint)] if d == 0 else b[int(joint)] / piece.unit[quantity][int(joint)]
                bounded(value, Row(quantity, int(joint), (i + d, degree - i + d), place=i))


def _velocity_rows(task, piece, bounded):
    limits, n = task.limits, len(task.names)
    bounds = velocity_bounds(limits)
    use = piece.margin[2 * n :]
    for s in (0.0, 0.5):
        slowest, fastest = bounds(piece.derivative(0, s))
        v = piece.derivative(1, s)
        for joint in np.flatnonzero(task.moving):
            i = int(joint)
            for side, bound in ((1, fastest[i]), (-1, slowest[i])):
                value = (v[i] - use[i] * bound) / piece.unit["v"][i]
                bounded(value, Row("v_of_q", i, (0, None) if s == 0 else (None, None), 2 * n + i, side=side, place=s))


def _torque_rows(task, piece, points, limited, effort, derivatives, bounded):
    """Rows of torque and its rate at points of the piece; returns the integral of squared torque over the piece."""
    f = function(task.robot, "inverse_dynamics", order=1, derivatives=derivatives, friction=task.friction)
    limits, n = task.limits, len(task.names)
    unit = {"tau": piece.unit["tau"], "dtau": piece.unit["dtau"]}
    interior, last, both_sides = points
    cost = 0
    points, weights = lobatto(interior)
    for s, weight in zip(points, weights, strict=True):
        # the end is the start of the next piece, but for what jumps there; fixed ends have a torque that is fixed
        asked = {"tau": limited and s < 1, "dtau": limited and (s < 1 or last or both_sides)}
        asked = {k: x and np.isfinite(getattr(limits, k)).any() for k, x in asked.items()}
        summed = effort and s < 1
        if not (any(asked.values()) or summed):
            continue
        found = dict(zip(("tau", "dtau"), f(*(piece.derivative(d, s) for d in range(4))), strict=True))
        for margin, quantity in enumerate(("tau", "dtau")):
            if asked[quantity]:
                share, orders = found[quantity] / unit[quantity], 2 + margin
                fixed = (orders, None) if s == 0 else (None, orders) if s == 1 else (None, None)
                for joint in np.flatnonzero(np.isfinite(getattr(limits, quantity))):
                    bounded(
                        share[int(joint)], Row(quantity, int(joint), fixed, margin * n + int(joint), place=float(s))
                    )
        if summed:
            both = weights[0] + weights[-1] if s == 0 else weight
            cost = cost + both * piece.length * ca.sumsqr(found["tau"] / unit["tau"])
    return cost


def _ties(task, piece, end, bounded):
    """Rows that are zero where derivatives are as fixed at an end; the unknowns stand for them times powers of h."""
    moving = [int(i) for i in np.flatnonzero(task.moving)]
    for j in range(1, task.continuity + 1):
        there = piece.rates[end][j - 1][moving] * piece.length**j / factorial(j) / piece.scale[j]
        for k, i in enumerate(moving):
            bounded(piece.unknowns[j][k] - there[k], Row("tie", i, (None, None), order=j))


# -- numbers --------------------------------------------------------------------------------------------------


def _keeps(task, row, k, N, tied):
    """Whether a row of stage k is a constraint."""
    if row.quantity == "tie":
        start = k == 0
        return tied[0 if start else 1] and (start or k == N) and row.order < len(task.start if start else task.goal)
    at_start = len(task.start) - 1 if k == 0 else -1
    at_end = len(task.goal) - 1 if k == N - 1 else -1
    return not any(x is not None and x <= known for x, known in zip(row.fixed, (at_start, at_end), strict=True))


def _sizes(task):
    """Sizes of the parameters, as Transcription.parameters puts them together."""
    c, n, m = task.continuity, len(task.names), int(task.moving.sum())
    return [n, *[m] * (c + 2), 1, *[n] * len(_BOUNDED), n * len(MARGINS), *[n] * (2 * c)]


def _present(limits):
    """Which limits there are: rows are built for those alone."""
    return np.isfinite([*limits.q, *(getattr(limits, k) for k in _BOUNDED)]).tobytes()


def _unit(limit):
    """(n,) what a quantity is measured in: its limit, or 1 where there is none."""
    return np.where(np.isfinite(limit) & (limit > 0), limit, 1.0)


def effort_unit(limits):
    """(n,) what torque is measured in by the objective "effort": its limit, or 1 where there is none."""
    return _unit(limits.tau)


def _scale(task, N):
    """(c + 2, m): size of the Taylor coefficients of a smooth motion from start to goal."""
    c = task.continuity
    reach = np.abs(task.distance[task.moving])
    reach = np.maximum(reach, 0.2 * reach.max(initial=0.0) or 0.1)
    orders = [(2 / N) ** j for j in range(c + 1)]  # as of a smooth step; what u changes in one piece is x_c
    orders.append(orders[c] / (c + 1))
    return np.array(orders)[:, None] * reach


def _bounds(task, scale, N, step, mesh, tied, shortest):
    """{lbx, ubx}: positions of the nodes within their limits, both ends as fixed, the time positive."""
    c, moving, origin = task.continuity, task.moving, task.start[0]
    m = int(moving.sum())
    size = m * (c + 1) + (mesh != "fixed") + m
    lower, upper = np.full((N + 1, size), -np.inf), np.full((N + 1, size), np.inf)
    lower[1:N, :m], upper[1:N, :m] = (((bound - origin)[moving] / scale[0]) for bound in task.limits.q)
    for k, state, is_tied in ((0, task.start, tied[0]), (N, task.goal, tied[1])):
        for j, value in enumerate(state[: 1 if is_tied else None]):
            x = (value - (origin if j == 0 else 0.0))[moving] * step**j / factorial(j) / scale[j]
            lower[k, j * m : (j + 1) * m] = upper[k, j * m : (j + 1) * m] = x
    if mesh == "uniform":
        lower[0, m * (c + 1)], upper[0, m * (c + 1)] = max(0.5 * shortest, 1e-4), 1e4
    if mesh == "free":
        lower[:, -1], upper[:, -1] = SHORTEST_PIECE, LONGEST_PIECE
    left_out = size - m * (c + 1) - (mesh == "uniform")
    return {"lbx": lower.ravel()[:-left_out], "ubx": upper.ravel()[:-left_out]}
