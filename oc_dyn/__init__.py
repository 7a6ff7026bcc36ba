"""oc_dyn: rigid-body dynamics with analytic derivatives of any kind as CasADi Functions, and planning on top."""

# the quantities register themselves, in the order in which the table shows them
from . import inverse_dynamics, forward_dynamics, matrices, kinematics  # noqa: I001
from . import interop, registry, robots
from .errors import LimitError, ModelError, ModelWarning, OrderError, ShapeError, SolveError, UnknownName
from .function import RobotFunction, function, ports
from .model.builder import RobotBuilder
from .model.inertia import Inertia
from .model.robot import Robot
from .model.urdf import load_urdf
from .registry import methods, quantities, table

__version__ = "0.1.0"
