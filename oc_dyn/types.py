"""Types of what public functions take and return; shapes and units stand in their docstrings.

An argument is Numbers or ExpressionLike, a result an Array, a Matrix of CasADi or an Expression, which is either. The
recursions of the algorithms carry no types: one text of them serves SX, MX and DM.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from concurrent.futures import Executor as Executor

    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from numpy.typing import ArrayLike as ArrayLike
else:  # a plain import of oc_dyn loads no module that it does not need
    ArrayLike = Axes = Executor = Figure = object

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Matrix: TypeAlias = ca.SX | ca.MX | ca.DM
Indices: TypeAlias = np.ndarray[Any, np.dtype[np.integer[Any]]]
Expression: TypeAlias = Matrix | Array
Numbers: TypeAlias = ArrayLike | ca.DM  # as_floats makes an Array of them
ExpressionLike: TypeAlias = Numbers | ca.SX | ca.MX
Named: TypeAlias = Numbers | Mapping[str, Any]  # a number for all, one each, or {name: number}
Guess: TypeAlias = Numbers | Callable[[float], Any]  # values, or a function of the share of the time passed
VelocityLimits: TypeAlias = Callable[[Any], tuple[Any, Any]]  # q -> (lower, upper), arrays or expressions as q is
StrPath: TypeAlias = str | os.PathLike[str]
Option: TypeAlias = Any  # value of an option of a quantity, of the kind that registry.OPTIONS says


class AnyRobot(Protocol):
    """What quantities are of: a Robot or an ElasticRobot."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def nq(self) -> int:
        """Number of coordinates."""

    @property
    def nv(self) -> int:
        """Number of velocities."""

    @property
    def features(self) -> frozenset[str]:
        """What is special about it, for methods that cannot do it."""
