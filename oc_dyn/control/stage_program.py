"""A quadratic program by its stages: which entries of J, H and bounds belong to which, and what is fixed or constant.

Stage k has unknowns z = (x, u) and rows of three kinds: the next state, x_next = A x + B u + c, equations that fix an
unknown of the first stage, such as what is measured, and limits lower <= C z <= upper, bounds of unknowns first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..types import Array
from .program import Program


@dataclass(frozen=True)
class Signature:
    """What stages of one form have in common.

    nz, n_next: numbers of unknowns and of next states. states, controls: which unknowns are given by the stage before,
    or fixed at the first, and which are found. jacobian: ((row, column, value or None), ...) of [A B; C], the rows of C
    without bounds; None where it is a number that changes. hessian: ((row, column), ...) of its upper triangle.
    bounded: unknowns with bounds. n_rows: rows of C behind them.
    """

    nz: int
    n_next: int
    states: tuple[int, ...]
    controls: tuple[int, ...]
    jacobian: tuple[tuple[int, int, float | None], ...]
    hessian: tuple[tuple[int, int], ...]
    bounded: tuple[int, ...]
    n_rows: int

    @property
    def n_limits(self) -> int:
        """Number of limits: bounds of unknowns, then rows."""
        return len(self.bounded) + self.n_rows

    @property
    def n_varying(self) -> int:
        """Number of entries of [A B; C] that are no constants."""
        return sum(value is None for *_, value in self.jacobian)


@dataclass(frozen=True, eq=False)
class Run:
    """`count` stages of one signature in a row: places (entries, count) of their entries in J.nz and in H.nz."""

    signature: Signature
    count: int
    J: Array
    H: Array


@dataclass(frozen=True, eq=False)
class StageProgram:
    """A Program by its stages.

    limits: places of the limits of all stages in [unknowns; rows]. dynamics: rows that are next states. fixed: places
    in [unknowns; rows] of what fixes unknowns of the first stage, and coefficients. above, below: which limits have an
    upper, a lower bound.
    """

    runs: list[Run]
    first: Array
    limits: Array
    dynamics: Array
    fixed: Array
    coefficients: Array
    above: Array
    below: Array


@dataclass(frozen=True)
class Shape:
    """Of a stage: nx states, n_next of the stage behind it, and the numbers of its rows among all rows."""

    nx: int
    n_next: int
    rows: tuple[int, ...]


def stage_program(made: Any, program: Program) -> StageProgram:
    """StageProgram of a transcribed Problem."""
    assembly, J = made.assembly, program.jac_fg.sparsity_out(3)
    kinds = [g.kind for g in assembly.groups for _ in range(g.count)]
    rows = [tuple(int(r) for r in some if r >= 0) for some in assembly.stage_rows]
    shapes = [Shape(of.nx, of.n_next, some) for of, some in zip(kinds, rows, strict=True)]
    H = program.hessian.sparsity_out(0)
    return by_shapes(shapes, assembly.first, J, H, program.bounds, _constants(assembly))


def by_shapes(
    shapes: list[Shape], first: Array, J: ca.Sparsity, H: ca.Sparsity, bounds: Any, constants: Any
) -> StageProgram:
    """StageProgram of stages whose unknowns begin at first. Rows are in the order of stages, next states before others.
    constants: {(row, column): value} of entries of J."""
    n, entries, second = H.size1(), _entries(J, constants), _second(H, first, H.size1())
    runs: list[Any] = []
    limits: list[int] = []
    of_next: list[int] = []
    known: dict[int, tuple[int, float]] = {}
    at = 0
    for k, shape in enumerate(shapes):
        z = np.arange(first[k], first[k + 1])
        dynamics = list(range(at, at + shape.n_next))
        at += shape.n_next + len(shape.rows)
        if k == 0:
            known = _fixed(z, shape.rows, entries, bounds, n)
        fixed = known if k == 0 else {}
        rows = [r for r in shape.rows if not _decided(entries[r], fixed, int(first[0]))]
        states = tuple(known) if k == 0 else tuple(range(shape.nx))
        controls = tuple(i for i in range(z.size) if i not in states)
        finite = np.isfinite(bounds["lbx"][z]) | np.isfinite(bounds["ubx"][z])
        bounded = tuple(int(i) for i in np.flatnonzero(finite) if i not in fixed)
        limits += [*z[list(bounded)], *(n + r for r in rows)]
        of_next += dynamics
        jacobian, J_places = _stage_jacobian(z, [*dynamics, *rows], entries)
        hessian, H_places = second[k]
        key = Signature(z.size, shape.n_next, states, controls, jacobian, hessian, bounded, len(rows))
        if k == 0 or key != runs[-1][0]:
            runs.append((key, [], []))
        runs[-1][1].append(J_places)
        runs[-1][2].append(H_places)
    built = [Run(key, len(a), _columns(a), _columns(b)) for key, a, b in runs]
    fixed_places = [p for p, _ in known.values()]
    columns: Any = [np.array(x, int) for x in (first, limits, of_next, fixed_places)]
    sides: Any = [np.isfinite(np.concatenate([bounds[k + "x"], bounds[k + "g"]]))[columns[1]] for k in ("ub", "lb")]
    coefficients = np.array([c for _, c in known.values()], float)
    return StageProgram(built, columns[0], columns[1], columns[2], columns[3], coefficients, sides[0], sides[1])


def _columns(places: list[list[int]]) -> Array:
    return np.array(places, int).T.reshape(len(places[0]), len(places))


def _constants(assembly: Any) -> dict[tuple[int, int], float]:
    """{(row, column): value} of the entries of J that are the same whatever the unknowns are."""
    out: dict[tuple[int, int], float] = {}
    at = k = 0
    known: dict[int, Any] = {}
    for group in assembly.groups:
        of = group.kind
        if id(of) not in known:
            known[id(of)] = _constant_entries(of.jacobian)
        for _ in range(group.count):
            rows = np.concatenate([at + np.arange(of.n_next), assembly.stage_rows[k]]).astype(int)
            at += of.n_next + int((assembly.stage_rows[k] >= 0).sum())
            for row, column, value in known[id(of)]:
                if rows[row] >= 0:
                    sign = -1.0 if row < of.n_next else 1.0
                    out[int(rows[row]), int(assembly.first[k] + column)] = sign * value
            if of.n_next:
                for i in range(of.n_next):
                    out[int(rows[i]), int(assembly.first[k + 1] + i)] = 1.0
            k += 1
    return out


def _constant_entries(jacobian: ca.Function) -> list[tuple[int, int, float]]:
    if not jacobian.is_a("SXFunction"):
        return []
    matrix = jacobian.call(jacobian.sx_in())[0]
    row, column = jacobian.sparsity_out(0).get_triplet()
    values: Any = (
        ca.SX(jacobian.sparsity_out(0), matrix.nz[:]).nonzeros() if matrix.nnz() == len(row) else matrix.nonzeros()
    )
    if len(values) != len(row):
        return []
    return [(i, j, float(v)) for i, j, v in zip(row, column, values, strict=True) if v.is_constant()]


def _entries(J: ca.Sparsity, constants: dict[tuple[int, int], float]) -> dict[int, list[tuple[int, int, float | None]]]:
    """{row: [(column, place in J.nz, value or None)]}."""
    out: dict[int, list[tuple[int, int, float | None]]] = {r: [] for r in range(J.size1())}
    for place, (row, column) in enumerate(zip(*J.get_triplet(), strict=True)):
        out[row].append((column, place, constants.get((row, column))))
    return out


def _second(H: ca.Sparsity, first: Array, n: int) -> list[tuple[tuple[tuple[int, int], ...], list[int]]]:
    """[(pattern of the upper triangle, places in H.nz)] of all stages."""
    stage = np.searchsorted(first, np.arange(n), side="right") - 1
    out: list[Any] = [([], []) for _ in range(len(first) - 1)]
    for place, (row, column) in enumerate(zip(*H.get_triplet(), strict=True)):
        if row <= column:
            k = stage[row]
            out[k][0].append((int(row - first[k]), int(column - first[k])))
            out[k][1].append(place)
    return [(tuple(a), b) for a, b in out]


def _fixed(z: Array, rows: Any, entries: Any, bounds: Any, n: int) -> dict[int, tuple[int, float]]:
    """{unknown of the first stage: (place in [unknowns; rows], coefficient)} that an equation alone determines."""
    out: dict[int, tuple[int, float]] = {}
    for i, j in enumerate(z):
        if bounds["lbx"][j] == bounds["ubx"][j]:
            out[i] = int(j), 1.0
    for r in rows:
        if bounds["lbg"][r] != bounds["ubg"][r] or len(entries[r]) != 1:
            continue
        column, _, value = entries[r][0]
        i = int(column - z[0])
        if value and 0 <= i < z.size and i not in out:
            out[i] = int(n + r), float(value)
    return dict(sorted(out.items()))


def _decided(row: Any, fixed: Any, first: int) -> bool:
    """Whether a row of the first stage depends on nothing but unknowns that are fixed: no step changes it."""
    return bool(fixed) and all(column - first in fixed for column, _, _ in row)


def _stage_jacobian(z: Array, rows: list[int], entries: Any) -> tuple[Any, list[int]]:
    """(pattern of [A B; C] with its constants, places in J.nz of the others); A and B have the sign of J."""
    pattern, places = [], []
    for i, r in enumerate(rows):
        for column, place, value in entries[r]:
            j = int(column - z[0])
            if 0 <= j < z.size:
                pattern.append((i, j, value))
                if value is None:
                    places.append(place)
    return tuple(pattern), places


def stage_ends(sizes: Any) -> list[int]:
    """Where blocks of these sizes begin and end."""
    return [0, *np.cumsum(sizes).tolist()]
