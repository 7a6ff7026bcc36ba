"""Robots with elastic joints: models, the flat map, control, simulation, and control laws as C."""

from typing import TYPE_CHECKING

from . import by_ad, flat_map, forward_dynamics, link_motion  # registers the quantities
from .analysis.margins import Margins, margins
from .analysis.passivity import passivity_index
from .analysis.poles import closed_loop_poles
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
from .generate import FLAGS, GeneratedController, generate_controller
from .laboratory import EFFECTS, LaboratoryRow, LaboratoryTable, laboratory_table
from .laws.esp import esp, esp_i
from .laws.full_state import full_state_feedback
from .laws.gains import joint_gains
from .laws.gravity import online_gravity_pd
from .laws.gravity_gradient import gravity_gradient_bound
from .laws.impedance import impedance
from .laws.modes import modal_damping
from .laws.vsa_damping import vsa_damping
from .model import ElasticRobot
from .plan import ElasticPlan, outputs_along
from .planning import FlatMotion, flat_motion, plan_elastic
from .plant import Plant, plant, plant_rates
from .reference import Reference, reference, rest_to_rest
from .run import Run
from .simulate import simulate
from .springs import AntagonisticSprings, LinearSpring, NonlinearSpring, VariableSpring

if TYPE_CHECKING:  # what __getattr__ imports
    from .figures import animate_run as animate_run
    from .figures import plot_runs as plot_runs

__all__ = [
    "EFFECTS",
    "FLAGS",
    "AntagonisticSprings",
    "Controller",
    "ElasticPlan",
    "ElasticRobot",
    "FlatMotion",
    "GeneratedController",
    "LaboratoryRow",
    "LaboratoryTable",
    "LinearSpring",
    "Margins",
    "MotorMotion",
    "NonlinearSpring",
    "Plant",
    "Reference",
    "Run",
    "VariableSpring",
    "closed_loop_poles",
    "collocation_equations",
    "collocation_step",
    "computed_torque",
    "damped_motion",
    "elastic_robot",
    "esp",
    "esp_i",
    "feedback_linearization",
    "feedforward",
    "feedforward_pd",
    "flat_motion",
    "full_state_feedback",
    "generate_controller",
    "gravity_gradient_bound",
    "gravity_pd",
    "impedance",
    "joint_gains",
    "laboratory_table",
    "margins",
    "modal_damping",
    "motor_coupling",
    "online_gravity_pd",
    "outputs_along",
    "passivity_index",
    "plan_elastic",
    "plant",
    "plant_rates",
    "pole_gains",
    "reference",
    "rest_to_rest",
    "simulate",
    "vsa_damping",
]


if not TYPE_CHECKING:  # or checkers would take any name for one of these

    def __getattr__(name):
        """plot_runs and animate_run come when they are first asked for: few programs draw."""
        if name not in ("plot_runs", "animate_run"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import figures

        return getattr(figures, name)
