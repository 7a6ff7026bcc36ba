"""oc_dyn: rigid-body dynamics with analytic derivatives of any kind as CasADi Functions, and planning on top."""

from . import starting  # noqa: I001, first: Ctrl-C while the command oc-dyn imports the rest

# the quantities register themselves, in the order in which the table shows them
from . import inverse_dynamics, forward_dynamics, hybrid_dynamics, matrices, kinematics  # noqa: I001
from . import partials, second_partials
from . import regressor, matrix_partials, whole_body
from . import elastic
from . import identification, interop, registry, robots
from ._version import __version__
from .codegen import batch, codegen, compile, numpy_call
from .derivatives import check_derivatives
from .errors import (
    CheckWarning,
    FileError,
    LimitError,
    ModelError,
    ModelWarning,
    OrderError,
    ShapeError,
    SolveError,
    UnknownName,
)
from .function import RobotFunction, function, ports
from .interrupts import deadline
from .kinematics.contact import contact_points, contact_wrenches
from .planning.inverse_kinematics import inverse_kinematics
from .model.builder import RobotBuilder
from .model.inertia import Inertia
from .model.robot import Robot
from . import design
from .design.sensitivity import sensitivity
from .planning.animate import animate
from .optimal_control.contact_motion import ContactMotion
from .planning.limits import Limits
from .control.mpc import mpc
from .planning.path import plan_along_path
from .planning.point_to_point import plan_point_to_point
from .planning.pose_path import pose_path
from .optimal_control.problem import Problem
from .planning.rollout import motion_report, rollout, simulate
from .planning.tightening import tighten
from .planning.trajectory import Trajectory
from .registry import methods, quantities, table
from .regressor.base_parameters import base_parameters
from .second_partials.tensor import as_tensor
from .runs.script import script
from .runs.sweeps import export_sweep, sweep




def __getattr__(name):
    """load_urdf comes when it is first asked for: what reads XML takes a quarter of the time of the whole import."""
    if name != "load_urdf":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .model.urdf import load_urdf

    globals()[name] = load_urdf
    return load_urdf


def __dir__():
    return sorted({*globals(), "load_urdf"})
