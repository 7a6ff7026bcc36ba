"""Inertia of a rigid body: mass, centre of mass and tensor, and the forms algorithms want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..lie.so3 import skew
from ..numbers import are_sane, as_floats
from ..types import Array, Matrix, Numbers
from .fluid import Fluid
from .read_only import ReadOnlyArrays

PARAMETERS = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")  # of a body, in this order
_ROUNDING = 1e-6  # of the largest principal moment: files print few digits


def np_skew(p: Array) -> Array:
    """numpy matrix of the cross product."""
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])


def _finite(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Numpy array of this shape; ShapeError for anything else."""
    value = as_floats(f"Inertia: {name}", value)
    if value.shape != shape or not are_sane(value):
        expected = f"finite numbers of shape {shape}" if shape else "a finite number"
        raise ShapeError(f"Inertia: {name} is {value.tolist()}, expected {expected}")
    return value


def _symmetric(tensor: Array) -> Array:
    """The tensor (3, 3), equal to its transpose to rounding; ShapeError for another one."""
    off = np.abs(tensor - tensor.T)
    if off.max() > _ROUNDING * np.abs(tensor).max():
        i, j = np.unravel_index(np.argmax(off), off.shape)
        names = f"{'xyz'[i]}{'xyz'[j]} is {tensor[i, j]:g}, {'xyz'[j]}{'xyz'[i]} is {tensor[j, i]:g}"
        raise ShapeError(f"Inertia: tensor is not symmetric: {names}; give products of inertia in both halves")
    return 0.5 * (tensor + tensor.T)


def unphysical(mass: float, tensor: Array) -> str | None:
    """Why no body has this mass and this tensor (3, 3) about its centre of mass; None if one may.

    A body's mass and principal moments are not negative, and no moment exceeds the sum of the others; up to 1e-6 of
    the largest moment is rounding.
    """
    if mass < 0:
        return f"its mass {mass:g} kg is negative"
    a, b, c = np.linalg.eigvalsh(tensor)
    rounding = _ROUNDING * max(abs(a), abs(c))
    if a >= -rounding and a + b - c >= -rounding:
        return None
    why = "one is negative" if a < -rounding else "the largest exceeds the sum of the others"
    return f"no real body has its principal moments of inertia {a:.4g}, {b:.4g}, {c:.4g} kg m^2, {why}"


@dataclass(frozen=True, eq=False)
class Inertia(ReadOnlyArrays):
    """Mass [kg], first moment of mass [kg m] and inertia tensor [kg m^2] about the frame's origin, in its axes.

    Raises ShapeError for other shapes, for a tensor that is not symmetric and for numbers that are not finite or above
    1e30.
    """

    mass: float
    moment: Array  # (3,) mass times centre of mass
    tensor: Array  # (3, 3) about the origin
    fluid: tuple[Fluid, ...] = ()  # what a fluid adds, apart from mass, moment and tensor

    def __post_init__(self) -> None:
        mass, moment = float(_finite("mass", self.mass, ())), _finite("moment", self.moment, (3,))
        self._keep(mass, moment, _symmetric(_finite("tensor", self.tensor, (3, 3))), self.fluid)

    def _keep(self, mass: float, moment: Array, tensor: Array, fluid: tuple[Fluid, ...] = ()) -> None:
        vars(self).update(mass=mass, moment=moment, tensor=tensor, fluid=fluid)
        super().__post_init__()

    @classmethod
    def computed(cls, mass: float, moment: Array, tensor: Array, fluid: tuple[Fluid, ...] = ()) -> Inertia:
        """Inertia from arrays that come out of others, taken as they are: rounding may be all that is left in them."""
        new = object.__new__(cls)
        new._keep(mass, moment, tensor, fluid)
        return new

    @staticmethod
    def zero() -> Inertia:
        """No mass."""
        return Inertia(0.0, np.zeros(3), np.zeros((3, 3)))

    @staticmethod
    def from_com(
        mass: float, com: Numbers = (0.0, 0.0, 0.0), tensor: Numbers = ((0, 0, 0), (0, 0, 0), (0, 0, 0))
    ) -> Inertia:
        """From mass [kg], centre of mass (3,) [m] and tensor (3, 3) [kg m^2] about the centre of mass.

        Raises ShapeError for other shapes, for a tensor that is not symmetric and for numbers that are not finite or
        above 1e30.
        """
        mass, com, tensor = _finite("mass", mass, ()), _finite("com", com, (3,)), _finite("tensor", tensor, (3, 3))
        tensor = _symmetric(tensor)
        S = np_skew(com)
        return Inertia.computed(float(mass), mass * com, tensor - mass * S @ S)

    @property
    def com(self) -> Array:
        """Centre of mass (3,) [m]; the origin for a body without mass."""
        return self.moment / self.mass if self.mass else np.zeros(3)

    @property
    def tensor_com(self) -> Array:
        """Tensor (3, 3) [kg m^2] about the centre of mass; zero where only rounding would be left, as of a point."""
        S = np_skew(self.com)
        tensor = self.tensor + self.mass * S @ S
        return tensor if np.abs(tensor).max() > 8 * np.finfo(float).eps * np.abs(self.tensor).max() else 0 * tensor

    @property
    def matrix(self) -> Array:
        """Spatial inertia (6, 6), angular first: [[tensor, skew(h)], [-skew(h), mass 1]], h the first moment."""
        H = np_skew(self.moment)
        return np.block([[self.tensor, H], [-H, self.mass * np.eye(3)]])

    @property
    def parameters(self) -> Array:
        """(10,) mass, moment x y z, tensor xx xy yy xz yz zz, the tensor about the origin."""
        T = self.tensor
        return np.array([self.mass, *self.moment, T[0, 0], T[0, 1], T[1, 1], T[0, 2], T[1, 2], T[2, 2]])

    def expressed_in(self, R: Array, p: Numbers) -> Inertia:
        """The same body seen from a frame in which this one has rotation R (3, 3) and origin p (3,) [m]."""
        p = np.asarray(p, float)
        h = R @ self.moment
        T = R @ self.tensor @ R.T
        P, H = np_skew(p), np_skew(h)
        # about the new origin, by the parallel-axis theorem for first moments that need not vanish
        fluid = tuple(x.expressed_in(R, p) for x in self.fluid)
        return Inertia.computed(self.mass, h + self.mass * p, T - P @ H - H @ P - self.mass * P @ P, fluid)

    def __add__(self, other: Inertia) -> Inertia:
        sums = self.mass + other.mass, self.moment + other.moment, self.tensor + other.tensor
        return Inertia.computed(*sums, self.fluid + other.fluid)

    def __sub__(self, other: Inertia) -> Inertia:
        left = self.mass - other.mass, self.moment - other.moment, self.tensor - other.tensor
        return Inertia.computed(*left, self.fluid)


@dataclass(frozen=True, eq=False)
class SymbolicInertia:
    """As Inertia, with casadi values: mass (1,), moment (3,), tensor (3, 3) about the frame's origin, in its axes."""

    mass: Any
    moment: Any
    tensor: Any

    @staticmethod
    def from_parameters(x: Any) -> SymbolicInertia:
        """From (10,) mass, moment x y z, tensor xx xy yy xz yz zz."""
        tensor = ca.blockcat([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
        return SymbolicInertia(x[0], x[1:4], tensor)

    @property
    def matrix(self) -> Any:
        """Spatial inertia (6, 6), angular first; see Inertia."""
        H = skew(self.moment)
        return ca.blockcat([[self.tensor, H], [-H, self.mass * ca.DM.eye(3)]])

    def expressed_in(self, R: Array, p: Any) -> SymbolicInertia:
        """The same body seen from a frame in which this one has rotation R (3, 3) and origin p (3,) [m]."""
        R, p = ca.sparsify(ca.DM(R)), ca.DM(p)
        h = R @ self.moment
        P, H = skew(ca.sparsify(p)), skew(h)
        T = R @ self.tensor @ R.T - P @ H - H @ P - self.mass * (P @ P)
        return SymbolicInertia(self.mass, h + self.mass * p, ca.triu2symm(ca.triu(T)))


def casadi_value(x: Any) -> Matrix:
    """A field of an Inertia or a SymbolicInertia as DM or SX."""
    return x if isinstance(x, (ca.SX, ca.MX, ca.DM)) else ca.DM(x)
