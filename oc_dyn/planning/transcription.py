"""The optimisation problem of a point-to-point motion, as a casadi.Opti.

The motion has N pieces of equal length h = T / N, polynomials of degree c + 1, c times continuously differentiable.
Unknown in piece k are its Taylor coefficients x_j = q^(j) h^j / j! at its start, j = 0..c, and u = x_(c+1), which is
free in every piece: a chain of integrators. From piece to piece they obey Pascal's triangle, a constant linear map;
time enters the limits alone. h is one more state, equal in all pieces, so that no unknown couples all of them, and
unknowns and constraints are ordered piece by piece, which solvers for this structure (fatrop) need.

Limits of q, v, dv, d2v, d3v bound the Bernstein coefficients of each piece: they hold everywhere, not only at nodes.
Torque and torque rate are bounded at nodes, on both sides where they jump, and at points between them.
"""

from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

from .limits import QUANTITIES, velocity_bounds
from .polynomials import at, bernstein, lobatto, shift

MARGINS = ("tau", "dtau", "v_of_q")  # bounds that can be tightened, as they are held at points only


@dataclass(eq=False)
class Transcription:
    """The problem and what is needed to talk about it in physical units.

    nodes: number of pieces N. scale (c + 2, m): x_j = scale_j times the unknown, m moving joints. step: length of a
    piece that the unknown 1 stands for. margin: parameter (3 n,), shares of the limits MARGINS that may be used.
    """

    opti: ca.Opti
    task: object
    nodes: int
    scale: np.ndarray
    step: float
    margin: ca.MX
    free_time: bool
    kinematic: bool
    options: dict | None = None  # the solver is built with

    def guess(self, derivatives, T):
        """Unknowns from derivatives (c + 2, N + 1, n) of q at the nodes of a motion of duration T."""
        c, m = self.task.continuity, self.task.moving
        h = T / self.nodes
        x = np.array([derivatives[j][:, m] * h**j / factorial(j) for j in range(c + 1)])
        u = np.diff(x[c], axis=0) / (c + 1)
        x[0] -= self.task.start[0][m]
        x, u = x / self.scale[: c + 1, None], u / self.scale[c + 1]
        rows = []
        for k in range(self.nodes + 1):
            rows += [x[:, k].ravel(), [h / self.step] if self.free_time else []]
            rows += [u[k]] if k < self.nodes else []
        return np.concatenate(rows)

    def unpack(self, values):
        """(T, x (N + 1, c + 1, n), u (N, n)) in physical units from the unknowns."""
        c, m, start = self.task.continuity, self.task.moving, self.task.start[0]
        size = m.sum() * (c + 1)
        stage = size + self.free_time + m.sum()
        table = np.append(values, np.zeros(m.sum())).reshape(self.nodes + 1, stage)
        x = np.zeros((self.nodes + 1, c + 1, len(start)))
        u = np.zeros((self.nodes, len(start)))
        x[:, :, m] = table[:, :size].reshape(self.nodes + 1, c + 1, -1) * self.scale[: c + 1]
        u[:, m] = table[:-1, size + self.free_time :] * self.scale[c + 1]
        x[:, 0] += start
        T = table[-1, size] * self.step * self.nodes if self.free_time else self.step * self.nodes
        return T, x, u


def transcribe(task, *, nodes, interior, kinematic, effort, smoothing, T, shortest):
    """Transcription of a Task.

    interior: points between nodes where torque is bounded. kinematic: leave limits of torque out. effort: minimise
    squared torque in the fixed time T instead of the time, which is near T and at least `shortest`. smoothing: weight
    of the mean square of u, scaled to about 1.
    """
    c, N, moving = task.continuity, nodes, task.moving
    m = int(moving.sum())
    opti = ca.Opti()
    margin = opti.parameter(len(MARGINS) * len(task.names))
    problem = Transcription(opti, task, N, _scale(task, N), T / N, margin, not effort, kinematic)

    X, H, U = [], [], []
    for k in range(N + 1):
        X.append(opti.variable(m * (c + 1)))
        H.append(ca.MX(1) if effort else opti.variable())
        U += [opti.variable(m)] if k < N else []
    path, cost = _path_rows(problem, X, H, U, interior, effort)
    P = shift(c + 1)[: c + 1] * problem.scale[None, :, 0] / problem.scale[: c + 1, :1]  # the joints' scales cancel
    step = ca.sparsify(ca.kron(ca.DM(P), ca.DM.eye(m)))
    following = ca.horzsplit(step @ ca.vertcat(ca.horzcat(*X[:-1]), ca.horzcat(*U)))
    lower, upper = ((bound[moving] - task.start[0][moving]) / problem.scale[0] for bound in task.limits.q)

    for k in range(N):
        opti.subject_to(X[k + 1] - following[k] == 0)
        if not effort:
            opti.subject_to(H[k + 1] - H[k] == 0)
        if k == 0:
            pinned = _pinned(problem, task.start, H[0])
            opti.subject_to(X[0][: pinned.numel()] == pinned)
            if not effort:
                opti.subject_to(opti.bounded(max(0.5 * shortest / T, 1e-4), H[0], 1e4))
        else:
            _bounded(opti, lower, X[k][:m], upper)
        _bounded(opti, *path[k])
    pinned = _pinned(problem, task.goal, H[N])
    opti.subject_to(X[N][: pinned.numel()] == pinned)
    objective = ca.sum2(cost) if effort else H[N]
    opti.minimize(objective + smoothing * ca.sumsqr(ca.horzcat(*U)) / (N * m) if smoothing else objective)
    return problem


def _scale(task, N):
    """(c + 2, m): size of the Taylor coefficients of a smooth motion from start to goal."""
    c = task.continuity
    reach = np.abs(task.distance[task.moving])
    reach = np.maximum(reach, 0.2 * reach.max(initial=0.0) or 0.1)
    orders = [(2 / N) ** j for j in range(c + 1)]  # as of a smooth step; what u changes in one piece is x_c
    orders.append(orders[c] / (c + 1))
    return np.array(orders)[:, None] * reach


def _pinned(problem, state, H):
    """What the first unknowns of a node are where q, v, dv, ... of `state` are fixed; free of H where it rests."""
    task, moving = problem.task, problem.task.moving
    out = []
    for j, x in enumerate(state):
        x = x[moving] - (task.start[0][moving] if j == 0 else 0.0)
        x = ca.sparsify(ca.DM(x / problem.scale[j] * problem.step**j / factorial(j)))
        out.append(x * H**j if j and x.nnz() else x)
    return ca.densify(ca.vertcat(*out))


def _bounded(opti, lower, g, upper):
    """lower <= g <= upper for the rows that have a bound."""
    lower, upper = ca.MX(lower), ca.MX(upper)
    if g.numel():
        opti.subject_to(opti.bounded(lower, g, upper))


def _path_rows(problem, X, H, U, interior, effort):
    """[(lower, rows, upper)] of the limits piece by piece, and the cost (1, N) of the pieces.

    One mapped Function serves all pieces but the first and the last, whose ends may be fixed.
    """
    N = problem.nodes
    path, costs = [], []
    groups = ([0], list(range(1, N - 1)), [N - 1])
    for group in groups:
        stage, lower, upper, margins = _stage(problem, group[0] == 0, group[-1] == N - 1, interior, effort)
        x, h, u = (ca.horzcat(*(V[k] for k in group)) for V in (X, H, U))
        rows, cost = stage.map(len(group))(x, h, u, ca.repmat(problem.margin, 1, len(group)))
        use = ca.vertcat(1, problem.margin)[margins]
        path += [(lower * use, column, upper * use) for column in ca.horzsplit(rows)]
        costs.append(cost)
    return path, ca.horzcat(*costs)


def _stage(problem, first, last, interior, effort):
    """Limits of one piece: Function (x, h, u, margin) -> (rows, cost), bounds, and the margin of each row (0: none).

    Rows that only depend on what is fixed at an end are left out: they cannot be changed, and a limit just met there
    would leave the solver no room. They are checked before.
    """
    task, limits, c = problem.task, problem.task.limits, problem.task.continuity
    m, n = int(task.moving.sum()), len(task.names)
    x, h, u = ca.SX.sym("x", m * (c + 1)), ca.SX.sym("h"), ca.SX.sym("u", m)
    margin = ca.SX.sym("margin", len(MARGINS) * n)
    place = ca.DM(np.eye(n)[:, task.moving])
    taylor = [place @ (problem.scale[j] * y) for j, y in enumerate([*ca.vertsplit(x, m), u])]
    taylor[0] = taylor[0] + task.start[0]
    length = h * problem.step
    # orders up to these are fixed at the ends of this piece
    at_start = len(task.start) - 1 if first else -1
    at_end = len(task.goal) - 1 if last else -1
    rows, lower, upper, margins = [], [], [], []

    def limit(value, low, high, margin_index=None):
        used = np.isfinite(low) | np.isfinite(high)
        for i in np.flatnonzero(used):
            rows.append(value[int(i)])
            lower.append(low[i])
            upper.append(high[i])
            margins.append(0 if margin_index is None else 1 + margin_index * n + i)

    def derivative(d, s):
        weights = at(c + 1, d, s)
        return sum(taylor[j] * weights[j] for j in range(d, c + 2) if weights[j]) / length**d

    def share(value, bound, margin_index=None, only=None):
        bound = np.where(task.moving, bound, np.inf) if only is None else bound
        unit = np.where(np.isfinite(bound), bound, 1.0)
        ones = np.where(np.isfinite(bound), 1.0, np.inf)
        limit(value / unit, -ones, ones, margin_index)

    for d, quantity in enumerate(QUANTITIES[: min(5, c + 2)]):
        degree = c + 1 - d
        for i, weights in enumerate(bernstein(c + 1, d)):
            is_next_start = i == degree and d <= c and not last
            is_node = d == 0 and i == 0  # bounded as unknowns
            if is_next_start or is_node or i + d <= at_start or degree - i + d <= at_end:
                continue
            b = sum(taylor[j] * weights[j] for j in range(d, c + 2) if weights[j])
            if d == 0:
                free = np.where(task.moving, 0.0, np.inf)
                limit(b, limits.q[0] - free, limits.q[1] + free)
            else:
                share(b / length**d, getattr(limits, quantity))
    if limits.v_of_q is not None:
        bounds = velocity_bounds(limits)
        use = margin[2 * n :]
        for s in (0.0, 0.5):
            if s > 0 or not first:
                slowest, fastest = bounds(derivative(0, s))
                v = derivative(1, s)
                unit = np.where(np.isfinite(limits.v) & (limits.v > 0), limits.v, 1.0)
                free = np.where(task.moving, 0.0, np.inf)
                limit((v - use * fastest) / unit, np.full(n, -np.inf), free)
                limit((v - use * slowest) / unit, -free, np.full(n, np.inf))
    cost = ca.SX(0)
    if effort or not problem.kinematic:
        bounded = not problem.kinematic
        points, weights = lobatto(interior)
        for s, weight in zip(points, weights, strict=True):
            tau, dtau = task.dynamics(*(derivative(d, s) for d in range(4)))
            fixed = at_start if s == 0 else at_end if s == 1 else -1
            if bounded and fixed < 2 and (s < 1 or last):
                share(tau, limits.tau, 0, "all")
            if bounded and fixed < 3 and (s < 1 or last or c == 2):  # with c = 2 the rate jumps at nodes: both sides
                share(dtau, limits.dtau, 1, "all")
            if effort and (s < 1 or last):
                both = weights[0] + weights[-1] if s == 0 and not first else weight
                unit = effort_unit(limits)
                cost += both * length * ca.sumsqr(tau / unit)
    stage = ca.Function("limits", [x, h, u, margin], ca.cse([ca.vertcat(ca.SX(0, 1), *rows), cost]))
    return stage, ca.DM(lower), ca.DM(upper), margins


def effort_unit(limits):
    """(n,) what torque is measured in by the objective "effort": its limit, or 1 where there is none."""
    return np.where(np.isfinite(limits.tau), limits.tau, 1.0)
