"""Second derivatives of a Function at a point from its values around it: finite differences and the bicomplex step.

The Function is y = f(q, v, x[, W]), linear in x: dv of inverse, tau of forward dynamics. Graphs of
MX: it is called at many points at once, not written out. `places` says which entries of the tensors are wanted.
"""

import casadi as ca
import numpy as np

from ..model.robot import tangent_map
from .bicomplex import bicomplex_function
from .tensor import pairs

LETTERS = (("q", "q"), ("v", "v"), ("q", "v"), ("x", "q"))  # what the tensors are differentiated by, first and then


def from_values(f, model, q, v, x, W, step, places):
    """Tensors from values at points a `step` away along one direction or two; Singh et al. 2023, eqs. 55 and 56."""
    points, tensors = _Points(), []
    for a, b in LETTERS:
        steps, entries = numbered(model, a, b, places)
        columns = []
        for j, k in steps:
            if (a, j) == (b, k):
                column = {points.add((b, k, s)): 1 / step**2 for s in (1, -1)} | {points.add(): -2 / step**2}  # (55)
            else:
                signs = [(s, t) for s in (1, -1) for t in (1, -1)]
                column = {points.add((b, k, t), (a, j, s)): 0.25 * s * t / step**2 for s, t in signs}  # (56)
            columns.append(column)
        tensors.append((columns, entries))
    values = points.call(f, model, (q, v, x), W, step)
    return tuple(placed(values @ points.weights(columns), entries, places) for columns, entries in tensors)


def from_first_partials(first, model, q, v, x, W, step, places):
    """Tensors from a Function (q, v, x[, W]) -> (nv nv, 3), partials by q, v, x, a `step` away; eq. 57."""
    points, nv = _Points(), model.robot.nv
    weights = {}
    for letter in "qv":
        weights[letter] = [{points.add((letter, k, s)): 0.5 * s / step for s in (1, -1)} for k in range(nv)]  # (57)
    around = ca.horzsplit(points.call(first, model, (q, v, x), W, step), 3)
    by_q, by_v, by_x = (ca.horzcat(*(partials[:, k] for partials in around)) for k in range(3))
    along_q, along_v = (points.weights(weights[letter]) for letter in "qv")
    tensors = by_q @ along_q, by_v @ along_v, by_q @ along_v, by_x @ along_q
    return tuple(ca.project(tensor, places) for tensor in tensors)


def from_bicomplex(f, model, q, v, x, W, step, places, cut=lambda f: f):
    """Tensors from values a `step` away along two imaginary units: exact to rounding; eq. 54. cut: applied to the
    Function that is called."""
    inputs = [q, v, x, *(W or [])]
    symbols = [ca.SX.sym("x", *value.shape) for value in inputs]
    whole = ca.Function("f", [_stacked(symbols)], [f(*symbols)], {"cse": True})
    along, bend = _moves(model)(q)
    start, size = _stacked(inputs), sum(value.numel() for value in inputs)
    first, second, both, entries, count = [], [], [], [], []
    for a, b in LETTERS:
        steps, where = numbered(model, a, b, places)
        first.append(_moved(model, a, [j for j, _ in steps], along, size))
        second.append(_moved(model, b, [k for _, k in steps], along, size))
        both.append(_bent(model, steps, bend, size) if a == b == "q" else ca.MX(size, len(steps)))
        entries.append(where)
        count.append(len(steps))
    first, second, both = (ca.horzcat(*x) for x in (first, second, both))
    n = sum(count)
    moved = cut(bicomplex_function(whole)).map(n)(ca.repmat(start, 1, n), step * first, step * second, step**2 * both)
    parts = ca.horzsplit(moved[3] / step**2, [0, *np.cumsum(count).tolist()])  # (54)
    return tuple(placed(part, where, places) for part, where in zip(parts, entries, strict=True))


class _Points:
    """Points around (q, v, x): each is up to two steps (letter, coordinate, how many), the second of them from where
    the first one led; a point is kept once."""

    def __init__(self):
        self.points = {}  # its number by its steps, which are all that it is

    def add(self, *moves):
        """Number of a point."""
        return self.points.setdefault(moves, len(self.points))

    def weights(self, columns):
        """DM (points, len(columns)) from a list of {point: weight}."""
        entries = [(n, k, weight) for k, column in enumerate(columns) for n, weight in column.items()]
        rows, places, values = zip(*entries, strict=True)
        return ca.DM.triplet(rows, places, ca.DM(values), len(self.points), len(columns))

    def call(self, f, model, at, W, step):
        """Values of f at all points, side by side."""
        n = len(self.points)
        q, v, x = (ca.repmat(value, 1, n) for value in at)
        integrate = model.robot.integrate_function().map(n)
        for turn in range(2):
            moves = {m: moves[turn] for moves, m in self.points.items() if len(moves) > turn}
            dq, dv, dx = (step * self._steps(model, moves, letter) for letter in "qvx")
            q, v, x = integrate(q, dq), v + dv, x + dx
        return f.map(n)(q, v, x, *(ca.repmat(w, 1, n) for w in W or []))

    def _steps(self, model, moves, letter):
        entries = [(k, m, s) for m, (a, k, s) in moves.items() if a == letter]
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        return ca.DM.triplet(rows, columns, ca.DM(values), model.robot.nv, len(self.points))


def numbered(model, a, b, places):
    """([(j, k)], entries): the pairs of coordinates to differentiate by, and for every entry wanted its place in a
    matrix (nv, pairs)."""
    nv, number, entries = model.robot.nv, {}, []
    every = set(pairs(model, a, b))
    rows, columns = places.get_triplet()
    for row, k in zip(rows, columns, strict=True):
        i, j = row % nv, row // nv
        pair = (j, k) if (j, k) in every else (k, j)
        entries.append(i + nv * number.setdefault(pair, len(number)))
    return list(number), entries


def placed(values, entries, places):
    """The tensor from values (nv, pairs)."""
    return ca.MX(places, ca.vec(values)[entries])


def _stacked(values):
    return ca.vertcat(*(ca.vec(value) for value in values))


def _moves(model):
    """casadi.Function q -> (along, bend): what a step along k does to q (nq, nv), and what it does to the first of
    these (nq nv, nv)."""
    q = ca.SX.sym("q", model.robot.nq)
    along = tangent_map(model.robot, q)
    return ca.Function("moves", [q], [ca.densify(along), ca.densify(ca.jacobian(ca.vec(along), q) @ along)])


def _moved(model, letter, coordinates, along, size):
    """(size, len(coordinates)): how (q, v, x, ...) moves along coordinates of one letter."""
    nq, nv = model.robot.nq, model.robot.nv
    move = along if letter == "q" else ca.MX(ca.DM.eye(nv))
    start = {"q": 0, "v": nq, "x": nq + nv}[letter]
    rest = size - start - move.shape[0]
    return ca.vertcat(ca.MX(start, len(coordinates)), move[:, coordinates], ca.MX(rest, len(coordinates)))


def _bent(model, steps, bend, size):
    """(size, len(steps)) for pairs (j, k): how what a step along j does to q changes along k."""
    nq = model.robot.nq
    rows = [[c + nq * j + bend.shape[0] * k for c in range(nq)] for j, k in steps]
    picked = ca.reshape(ca.vec(bend)[[x for row in rows for x in row]], nq, len(steps))
    return ca.vertcat(picked, ca.MX(size - nq, len(steps)))
