"""Types of what public functions take and return; shapes and units stand in their docstrings.

An argument is Numbers or ExpressionLike, a result an Array, a Matrix of CasADi or an Expression, which is either. The
recursions of the algorithms carry no types: one text of them serves SX, MX and DM.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
else:
    ArrayLike = object  # a plain import of oc_dyn loads no module of numpy that numpy itself does not

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Matrix: TypeAlias = ca.SX | ca.MX | ca.DM
Expression: TypeAlias = Matrix | Array
Numbers: TypeAlias = ArrayLike | ca.DM  # as_floats makes an Array of them
ExpressionLike: TypeAlias = Numbers | ca.SX | ca.MX
VelocityLimits: TypeAlias = Callable[[Any], tuple[Any, Any]]  # q -> (lower, upper), arrays or expressions as q is
StrPath: TypeAlias = str | os.PathLike[str]
