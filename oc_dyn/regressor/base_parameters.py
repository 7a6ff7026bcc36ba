"""Base parameters: the combinations of inertial parameters that joint torques depend on, and no more than those.

The rows of the regressor at all states span a space; its dimension is the number of base parameters. That space, and so
the orthogonal projector on it, belongs to the robot and not to the states drawn, which is what makes both the rank
and the choice of columns independent of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..function import function
from ..model.cache import cached
from ..model.read_only import ReadOnlyArrays
from ..model.robot import Robot, check_robot, checked_tolerance
from ..model.robot_function import RobotFunction
from ..numbers import as_floats
from ..subexpressions import merged
from ..types import Array, Numbers
from ..validation import count

TOLERANCE = 1e-9  # singular values below this part of the largest one are zero
_TIE = 1e-6  # columns whose remaining length differs by less than this part are equal: the first is taken


@dataclass(frozen=True, eq=False)
class BaseParameters(ReadOnlyArrays):
    """Base parameters of a robot: base = matrix @ parameters, regressor Y = Y[:, columns] @ matrix at every state.

    columns: which (rank,) columns of the regressor are kept; matrix (rank, 10 bodies), the unit matrix in those.
    singular_values: of the stacked regressor, its columns scaled to unit length, in falling order.
    """

    robot: Robot
    columns: tuple[int, ...]
    matrix: Array
    singular_values: Array

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.columns)

    @property
    def gap(self) -> tuple[float, float]:
        """(smallest singular value that counts, largest that does not); the second is 0 if all count."""
        s, r = self.singular_values, self.rank
        return float(s[r - 1]) if r else 0.0, float(s[r]) if r < s.size else 0.0

    @property
    def values(self) -> Array:
        """(rank,) base parameters of the robot's own parameters."""
        return self.of(self.robot.parameters)

    def of(self, parameters: Numbers) -> Array:
        """(rank,) base parameters of (10 bodies,) parameters; ShapeError for another size."""
        parameters, size = as_floats("base parameters: parameters", parameters), self.matrix.shape[1]
        if parameters.ndim not in (1, 2) or parameters.shape[0] != size:
            raise ShapeError(f"base parameters: parameters have shape {parameters.shape}, expected ({size},)")
        return self.matrix @ parameters

    @property
    def names(self) -> tuple[str, ...]:
        """What each base parameter is: the parameter kept and those that joined it, with their factors."""
        known = self.robot.parameter_names
        out = []
        for row, kept in zip(self.matrix, self.columns, strict=True):
            others = [k for k in np.flatnonzero(row) if k != kept]
            out.append(known[kept] + "".join(f" {row[k]:+.4g} {known[k]}" for k in others))
        return tuple(out)

    def regressor(self, order: int = 0, method: str | None = None) -> RobotFunction:
        """RobotFunction (q, v, dv, ...) -> Y, dY, ... (nv, rank) of the base parameters."""
        full = function(self.robot, "joint_torque_regressor", order=order, method=method)
        ports = [ca.SX.sym(n, *full.size_in(k)) for k, n in enumerate(full.name_in())]
        kept = [merged(ca.densify(Y[:, list(self.columns)])) for Y in full.call(ports)]
        base = ca.Function(f"base_regressor_{order}", ports, kept, full.name_in(), full.name_out())
        return full.with_base(base)


def base_parameters(robot: Robot, tolerance: float = TOLERANCE, seed: int = 0) -> BaseParameters:
    """BaseParameters of a robot.

    tolerance: relative to the largest singular value; the gap found is kept in the result. seed: of the states drawn.
    Raises ShapeError for a tolerance that is not from 0 to 1, ModelError where no gap separates what counts from what
    does not by a factor of at least 100.
    """
    check_robot("base_parameters", robot)
    tolerance = checked_tolerance("base_parameters: tolerance", tolerance)
    seed = count("base_parameters: seed", seed, most=None)
    # complete: these two alone decide what is drawn and what counts; arrays of the result cannot be written to
    return cached(robot, ("base_parameters", tolerance, seed), lambda: _base_parameters(robot, tolerance, seed))


def _base_parameters(robot: Robot, tolerance: float, seed: int) -> BaseParameters:
    Y = function(robot, "joint_torque_regressor")
    rng = np.random.default_rng(seed)
    size = 10 * len(robot.bodies)
    states = 30 + 3 * size // robot.nv
    q = np.column_stack([robot.random_configuration(int(s)) for s in rng.integers(0, 2**31, states)])
    v, dv = rng.normal(size=(2, robot.nv, states)) * np.array([1.0, 3.0])[:, None, None]
    rows = np.array(Y.map(states)(q, v, dv)).reshape(robot.nv, states, size).reshape(-1, size)
    length = np.linalg.norm(rows, axis=0)
    scale = np.where(length > 1e-12 * length.max(), length, 1.0)
    rows = np.where(length > 1e-12 * length.max(), rows, 0.0) / scale
    _, s, Vt = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(s > tolerance * s[0]))
    below = s[rank] if rank < s.size else 0.0
    if below * 100 > s[rank - 1]:
        problem = f"singular values {s[rank - 1]:.1e} and {below:.1e} of its regressor leave the rank open"
        raise ModelError(robot.name, [problem + "; give another tolerance"])
    # an orthonormal basis of the row space in true units: its Gram matrix is the projector
    basis = np.linalg.qr((Vt[:rank] * scale).T)[0].T
    columns = _independent(basis)
    matrix = np.linalg.solve(basis[:, columns], basis)
    matrix[np.abs(matrix) < 1e-9 * np.abs(matrix).max()] = 0.0
    matrix[:, columns] = np.eye(rank)
    return BaseParameters(robot, tuple(int(k) for k in columns), matrix, s)


def _independent(basis: Array) -> list[int]:
    """Columns of (rank, n) that make it square and well conditioned, in rising order: always the one with the longest
    remainder, the first of those that are equally long."""
    rest, columns = basis.copy(), []
    for _ in range(basis.shape[0]):
        length = np.linalg.norm(rest, axis=0)
        k = int(np.flatnonzero(length > (1 - _TIE) * length.max())[0])
        columns.append(k)
        unit = rest[:, k] / length[k]
        rest = rest - np.outer(unit, unit @ rest)
        rest[:, columns] = 0.0
    return sorted(columns)
