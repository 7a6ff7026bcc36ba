"""oc_dyn: rigid-body dynamics with analytic derivatives of any kind as CasADi Functions, and planning on top."""

from . import starting  # noqa: I001, first: Ctrl-C while the command oc-dyn imports the rest
from importlib import import_module
from typing import TYPE_CHECKING

# the quantities register themselves; the table shows them in the order in which they are imported
from . import inverse_dynamics, forward_dynamics, hybrid_dynamics, matrices, kinematics
from . import partials, second_partials
from . import regressor, matrix_partials, whole_body
from . import elastic
from . import identification, interop, registry, robots
from ._version import __version__
from . import _moved
from .codegen import batch, codegen, compile, numpy_call
from .derivatives import check_derivatives
from .description import describe
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
from .function import function, ports
from .interrupts import deadline
from .kinematics.contact import contact_points, contact_wrenches
from .planning.inverse_kinematics import inverse_kinematics
from .model.builder import RobotBuilder
from .model.inertia import Inertia
from .model.robot import Robot
from .model.robot_function import RobotFunction
from . import design
from .design.sensitivity import sensitivity
from .planning.animate import animate
from .optimal_control.contact_motion import ContactMotion
from .planning.limits import Limits
from .control.mpc import mpc
from .planning.path import plan_along_path
from .planning.point_to_point import plan_point_to_point
from .planning.pose_path import pose_path
from .optimal_control.problem import Problem, load_solution
from .planning.rollout import motion_report, rollout, simulate
from .planning.tightening import tighten
from .planning.trajectory import Trajectory
from .registry import methods, quantities, table
from .regressor.base_parameters import base_parameters
from .second_partials.tensor import as_tensor
from .runs.script import script
from .runs.sweeps import export_sweep, sweep

_moved.install()

__all__ = [
    "CheckWarning",
    "ContactMotion",
    "FileError",
    "Inertia",
    "LimitError",
    "Limits",
    "ModelError",
    "ModelWarning",
    "OrderError",
    "Problem",
    "Robot",
    "RobotBuilder",
    "RobotFunction",
    "ShapeError",
    "SolveError",
    "Trajectory",
    "UnknownName",
    "__version__",
    "animate",
    "as_tensor",
    "base_parameters",
    "batch",
    "check_derivatives",
    "codegen",
    "compile",
    "contact_points",
    "contact_wrenches",
    "deadline",
    "describe",
    "design",
    "elastic",
    "export_sweep",
    "function",
    "identification",
    "interop",
    "inverse_kinematics",
    "load_solution",
    "methods",
    "motion_report",
    "mpc",
    "numpy_call",
    "plan_along_path",
    "plan_point_to_point",
    "ports",
    "pose_path",
    "quantities",
    "registry",
    "robots",
    "rollout",
    "script",
    "sensitivity",
    "simulate",
    "sweep",
    "table",
    "tighten",
]
if TYPE_CHECKING:  # what __getattr__ imports
    from . import executors as executors
    from .model.urdf import load_urdf as load_urdf

_LATER = {  # public, too, but imported when they are first asked for: module, name in it (None: the module itself)
    "executors": ("oc_dyn.executors", None),
    "load_urdf": ("oc_dyn.model.urdf", "load_urdf"),  # what reads XML takes a quarter of the time of the whole import
}


if not TYPE_CHECKING:  # or checkers would take any name for one of these

    def __getattr__(name):
        """What is imported when it is first asked for; see _LATER."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _LATER[name]
        found = import_module(module)
        globals()[name] = found = getattr(found, attribute) if attribute else found
        return found


def __dir__() -> list[str]:
    """The public names; submodules that are not among them are the package's own."""
    return sorted([*__all__, *_LATER])
