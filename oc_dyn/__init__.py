"""oc_dyn: rigid-body dynamics with analytic derivatives of any kind as CasADi Functions, and planning on top."""

from . import inverse_dynamics, matrices, forward_dynamics, kinematics, registry  # noqa: I001  order of the table
from .function import function, ports
from .model.builder import RobotBuilder
from .model.robot import Robot
from .registry import methods, quantities, table
