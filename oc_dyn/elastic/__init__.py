"""Robots with elastic joints: models, the flat map, control, simulation, and control laws as C."""

from typing import TYPE_CHECKING

from . import by_ad, flat_map, forward_dynamics, link_motion  # registers the quantities
from .build import elastic_robot
from .collocation import collocation_equations, collocation_step
from .control import (
    Controller,
    computed_torque,
    feedback_linearization,
    feedforward,
    feedforward_pd,
    gravity_pd,
    pole_gains,
)
from .coupling import motor_coupling
from .damping import MotorMotion, damped_motion
from .electrical import MotorElectrics
from .generate import FLAGS, GeneratedController, generate_controller
from .model import ElasticRobot
from .plan import ElasticPlan
from .plan_outputs import outputs_along
from .plan_stiffness import PlannedStiffness
from .planning import FlatMotion, flat_motion, plan_elastic
from .plant import Plant, plant, plant_rates
from .reference import Reference, reference, rest_to_rest
from .simulate import Run, simulate
from .springs import AntagonisticSprings, LinearSpring, NonlinearSpring, VariableSpring

if TYPE_CHECKING:  # what __getattr__ imports
    from .figures import animate_run as animate_run
    from .figures import plot_runs as plot_runs

__all__ = [
    "FLAGS",
    "AntagonisticSprings",
    "Controller",
    "ElasticPlan",
    "ElasticRobot",
    "FlatMotion",
    "GeneratedController",
    "LinearSpring",
    "MotorElectrics",
    "MotorMotion",
    "NonlinearSpring",
    "PlannedStiffness",
    "Plant",
    "Reference",
    "Run",
    "VariableSpring",
    "collocation_equations",
    "collocation_step",
    "computed_torque",
    "damped_motion",
    "elastic_robot",
    "feedback_linearization",
    "feedforward",
    "feedforward_pd",
    "flat_motion",
    "generate_controller",
    "gravity_pd",
    "motor_coupling",
    "outputs_along",
    "plan_elastic",
    "plant",
    "plant_rates",
    "pole_gains",
    "reference",
    "rest_to_rest",
    "simulate",
]


if not TYPE_CHECKING:  # or checkers would take any name for one of these

    def __getattr__(name):
        """plot_runs and animate_run come when they are first asked for: few programs draw."""
        if name not in ("plot_runs", "animate_run"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import figures

        return getattr(figures, name)
