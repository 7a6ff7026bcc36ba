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
from .electrical import MotorElectrics
from .floating import (
    ContactRun,
    Flatness,
    MotionError,
    Phase,
    contact_flat_map,
    contact_forces,
    flatness,
    motion_error,
    simulate_contacts,
    stance_rates,
)
from .friction_laws import Backlash, BoucWen, LuGre, MaxwellSlip, Stribeck
from .generate import FLAGS, GeneratedController, generate_controller
from .identification import (
    ElasticIdentification,
    Prediction,
    Recording,
    exciting_motion,
    identify_elastic,
    recording,
)
from .laboratory import EFFECTS, LaboratoryRow, LaboratoryTable, laboratory_table
from .laws.esp import esp, esp_i
from .laws.full_state import full_state_feedback
from .laws.gains import joint_gains
from .laws.gravity import online_gravity_pd
from .laws.gravity_gradient import gravity_gradient_bound
from .laws.impedance import impedance
from .laws.modes import modal_damping
from .laws.vsa_damping import vsa_damping
from .linearization import linearization_order
from .model import ElasticRobot
from .observers import (
    Observer,
    disturbance_observer,
    friction_observer,
    link_state_observer,
    momentum_observer,
    observed,
    observer,
    velocity_filter,
)
from .plan import ElasticPlan
from .plan_outputs import outputs_along
from .plan_stiffness import PlannedStiffness
from .planning import FlatMotion, flat_motion, plan_elastic
from .plant import Plant, plant, plant_rates
from .reference import Reference, reference, rest_to_rest
from .rotors import RotorRobot, with_rotors
from .run import Run
from .simulate import simulate
from .springs import LinearSpring, NonlinearSpring
from .variable_springs import AntagonisticSprings, VariableSpring

if TYPE_CHECKING:  # what __getattr__ imports
    from .figures import animate_run as animate_run
    from .figures import plot_runs as plot_runs
    from .predictive import flat_states as flat_states
    from .predictive import nmpc as nmpc

__all__ = [
    "EFFECTS",
    "FLAGS",
    "AntagonisticSprings",
    "Backlash",
    "BoucWen",
    "ContactRun",
    "Controller",
    "ElasticIdentification",
    "ElasticPlan",
    "ElasticRobot",
    "FlatMotion",
    "Flatness",
    "GeneratedController",
    "LaboratoryRow",
    "LaboratoryTable",
    "LinearSpring",
    "LuGre",
    "Margins",
    "MaxwellSlip",
    "MotionError",
    "MotorElectrics",
    "MotorMotion",
    "NonlinearSpring",
    "Observer",
    "Phase",
    "PlannedStiffness",
    "Plant",
    "Prediction",
    "Recording",
    "Reference",
    "RotorRobot",
    "Run",
    "Stribeck",
    "VariableSpring",
    "closed_loop_poles",
    "collocation_equations",
    "collocation_step",
    "computed_torque",
    "contact_flat_map",
    "contact_forces",
    "damped_motion",
    "disturbance_observer",
    "elastic_robot",
    "esp",
    "esp_i",
    "exciting_motion",
    "feedback_linearization",
    "feedforward",
    "feedforward_pd",
    "flat_motion",
    "flatness",
    "friction_observer",
    "full_state_feedback",
    "generate_controller",
    "gravity_gradient_bound",
    "gravity_pd",
    "identify_elastic",
    "impedance",
    "joint_gains",
    "laboratory_table",
    "linearization_order",
    "link_state_observer",
    "margins",
    "modal_damping",
    "momentum_observer",
    "motion_error",
    "motor_coupling",
    "observed",
    "observer",
    "online_gravity_pd",
    "outputs_along",
    "passivity_index",
    "plan_elastic",
    "plant",
    "plant_rates",
    "pole_gains",
    "recording",
    "reference",
    "rest_to_rest",
    "simulate",
    "simulate_contacts",
    "stance_rates",
    "velocity_filter",
    "vsa_damping",
    "with_rotors",
]


_LATER = dict.fromkeys(("plot_runs", "animate_run"), "figures") | dict.fromkeys(("flat_states", "nmpc"), "predictive")


if not TYPE_CHECKING:  # or checkers would take any name for one of these

    def __getattr__(name):
        """plot_runs, nmpc and some others come when they are first asked for: few programs draw or predict."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
