"""oc_dyn: rigid-body dynamics with analytic derivatives of any kind as CasADi Functions, and planning on top."""

from . import starting  # noqa: I001, first: Ctrl-C while the command oc-dyn imports the rest
from importlib import import_module
from typing import TYPE_CHECKING

# the quantities register themselves; the table shows them in the order in which they are imported, those of elastic
# robots last
from . import inverse_dynamics, forward_dynamics, hybrid_dynamics, matrices, kinematics
from . import partials, second_partials
from . import regressor, matrix_partials, whole_body, scene
from . import loops
from . import registry, robots
from ._version import __version__
from . import _moved
from .codegen import batch, codegen, compile, numpy_call
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
from .model.builder import RobotBuilder
from .model.inertia import Inertia
from .model.robot import Robot
from .model.robot_function import RobotFunction
from .registry import methods, quantities, table
from .scene import shapes
from .scene.scene import Scene
from .taylor_mode import taylor_mode

if TYPE_CHECKING:  # what __getattr__ imports; these modules are most of the package, and few programs need them all
    from . import control as control
    from . import design as design
    from . import elastic as elastic
    from . import executors as executors
    from . import export as export
    from . import identification as identification
    from . import interop as interop
    from .citations import cite as cite
    from .control.mpc import mpc as mpc
    from .derivatives import check_derivatives as check_derivatives
    from .description import describe as describe
    from .design.sensitivity import sensitivity as sensitivity
    from .kinematics.contact import contact_points as contact_points
    from .kinematics.contact import contact_wrenches as contact_wrenches
    from .model.sdf import load_sdf as load_sdf
    from .model.sdf import sdf_springs as sdf_springs
    from .model.urdf import load_urdf as load_urdf
    from .optimal_control.contact_motion import ContactMotion as ContactMotion
    from .optimal_control.problem import Problem as Problem
    from .optimal_control.problem import load_solution as load_solution
    from .planning.animate import animate as animate
    from .planning.inverse_kinematics import inverse_kinematics as inverse_kinematics
    from .planning.limits import Limits as Limits
    from .planning.path import plan_along_path as plan_along_path
    from .planning.point_to_point import plan_point_to_point as plan_point_to_point
    from .planning.pose_path import pose_path as pose_path
    from .planning.rollout import motion_report as motion_report
    from .planning.rollout import rollout as rollout
    from .planning.rollout import simulate as simulate
    from .planning.tightening import tighten as tighten
    from .planning.trajectory import Trajectory as Trajectory
    from .planning.viewer.view import view as view
    from .regressor.base_parameters import base_parameters as base_parameters
    from .robot_check import check_robot as check_robot
    from .robots.load import load as load
    from .runs.script import script as script
    from .runs.sweeps import export_sweep as export_sweep
    from .runs.sweeps import sweep as sweep
    from .second_partials.tensor import as_tensor as as_tensor
    from .targets.fmu import fmu as fmu
    from .targets.player import codegen_player as codegen_player
    from .targets.ros2 import ros2_controller as ros2_controller

_LATER = {  # public, too, but imported when they are first asked for: module, name in it (None: the module itself)
    "ContactMotion": ("optimal_control.contact_motion", "ContactMotion"),
    "Limits": ("planning.limits", "Limits"),
    "Problem": ("optimal_control.problem", "Problem"),
    "Trajectory": ("planning.trajectory", "Trajectory"),
    "animate": ("planning.animate", "animate"),
    "as_tensor": ("second_partials.tensor", "as_tensor"),
    "base_parameters": ("regressor.base_parameters", "base_parameters"),
    "check_derivatives": ("derivatives", "check_derivatives"),
    "codegen_player": ("targets.player", "codegen_player"),
    "check_robot": ("robot_check", "check_robot"),
    "cite": ("citations", "cite"),
    "contact_points": ("kinematics.contact", "contact_points"),
    "contact_wrenches": ("kinematics.contact", "contact_wrenches"),
    "control": ("control", None),
    "describe": ("description", "describe"),
    "design": ("design", None),
    "elastic": ("elastic", None),
    "executors": ("executors", None),
    "export": ("export", None),
    "export_sweep": ("runs.sweeps", "export_sweep"),
    "fmu": ("targets.fmu", "fmu"),
    "identification": ("identification", None),
    "interop": ("interop", None),
    "inverse_kinematics": ("planning.inverse_kinematics", "inverse_kinematics"),
    "load": ("robots.load", "load"),
    "load_solution": ("optimal_control.problem", "load_solution"),
    "load_sdf": ("model.sdf", "load_sdf"),
    "load_urdf": ("model.urdf", "load_urdf"),
    "motion_report": ("planning.rollout", "motion_report"),
    "mpc": ("control.mpc", "mpc"),
    "plan_along_path": ("planning.path", "plan_along_path"),
    "plan_point_to_point": ("planning.point_to_point", "plan_point_to_point"),
    "pose_path": ("planning.pose_path", "pose_path"),
    "rollout": ("planning.rollout", "rollout"),
    "ros2_controller": ("targets.ros2", "ros2_controller"),
    "sdf_springs": ("model.sdf", "sdf_springs"),
    "script": ("runs.script", "script"),
    "sensitivity": ("design.sensitivity", "sensitivity"),
    "simulate": ("planning.rollout", "simulate"),
    "sweep": ("runs.sweeps", "sweep"),
    "tighten": ("planning.tightening", "tighten"),
    "view": ("planning.viewer.view", "view"),
}
_PACKAGES = ("description", "optimal_control", "planning", "runs")  # there without being imported, too

_moved.install()
registry.complete_by(lambda: import_module("oc_dyn.elastic"))

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
    "Scene",
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
    "check_robot",
    "cite",
    "codegen",
    "codegen_player",
    "compile",
    "contact_points",
    "contact_wrenches",
    "control",
    "deadline",
    "describe",
    "design",
    "elastic",
    "export",
    "export_sweep",
    "fmu",
    "function",
    "identification",
    "interop",
    "inverse_kinematics",
    "load",
    "load_sdf",
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
    "ros2_controller",
    "scene",
    "script",
    "sdf_springs",
    "sensitivity",
    "shapes",
    "simulate",
    "sweep",
    "table",
    "taylor_mode",
    "tighten",
    "view",
]
if not TYPE_CHECKING:  # or checkers would take any name for one of these

    def __getattr__(name):
        """What is imported when it is first asked for; see _LATER."""
        if name in _PACKAGES:
            for module in (x for x, _ in _LATER.values() if x.startswith(f"{name}.")):
                import_module(f"oc_dyn.{module}")
            return import_module(f"oc_dyn.{name}")
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _LATER[name]
        found = import_module(f"oc_dyn.{module}")
        globals()[name] = found = getattr(found, attribute) if attribute else found
        return found


def __dir__() -> list[str]:
    """The public names; submodules that are not among them are the package's own."""
    return sorted({*__all__, *_LATER})
