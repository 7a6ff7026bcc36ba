"""Robots, motions and laws of the study laboratory: laws are rows of one table."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Any

import casadi as ca
import numpy as np

from .. import elastic as el
from .. import robots
from ..function import function
from ..model.inertia import Inertia


@dataclass(frozen=True, eq=False)
class Setting:
    """A robot and its motion. bandwidth w [rad/s]: of motor loops, kp = B w^2 and kd = 2 B w, B the motors' inertia;
    pole [1/s]: of feedback linearisation, four per joint; torque_limit (motors,) [Nm]; substeps: of the robot."""

    elastic: el.ElasticRobot
    reference: el.Reference
    bandwidth: float
    pole: float
    torque_limit: tuple[float, ...]
    substeps: int = 1

    @property
    def gains(self) -> tuple[Any, Any]:
        """kp [Nm/rad] and kd [Nm s/rad] of motor loops."""
        inertia = np.diag(self.elastic.motor_inertia)
        return inertia * self.bandwidth**2, 2 * inertia * self.bandwidth

    @property
    def start(self) -> Any:
        """q at the start [rad]."""
        return self.reference.at([0.0])["q"].ravel()

    @property
    def springs(self) -> Any:
        """Stiffnesses [Nm/rad]."""
        return self.elastic.linear_stiffness()

    def link_damping(self, ratio: float) -> Any:
        """Matrix [Nm s/rad] that gives the links on their springs, at the start, this damping ratio in every mode."""
        inertia = function(self.elastic.links, "mass_matrix")(self.start).full()
        return el.modal_damping(inertia, np.diag(self.springs), ratio)


def arm_2r(friction=0.0, substeps=1):
    """Two rods of 0.4 m and 3 kg, upright, as in problems/sea_2r_tracking.py; 1.2 s, then 0.8 s of rest."""
    arm = el.elastic_robot(
        robots.planar_arm(2), (500.0, 300.0), motor_inertia=(0.3, 0.2), motor_friction=friction, friction_smoothing=5e-3
    )
    path = el.rest_to_rest((-0.6, 0.3), (0.7, -0.9), 1.2, continuity=arm.continuity("torque"), hold=0.8)
    return Setting(arm, el.reference(arm, path), 30.0, 40.0, (60.0, 30.0), substeps)


def panda():
    """The Panda with a load of 3 kg, as in problems/sea_arm_tracking.py; 1.4 s, then 0.6 s of rest."""
    load = Inertia.from_com(3.0, (0.0, 0.0, 0.08), np.diag((0.01, 0.01, 0.008)))
    links = robots.panda().with_payload("panda_link8", load, name="load")
    arm = el.elastic_robot(links, 7000.0, motor_inertia=(0.5, 0.5, 0.4, 0.4, 0.2, 0.2, 0.15))
    start, goal = (0.0, -pi / 4, 0.0, -3 * pi / 4, 0.0, pi / 2, pi / 4), (0.8, -0.2, -0.5, -1.6, 0.5, 2.1, 0.3)
    path = el.rest_to_rest(start, goal, 1.4, continuity=arm.continuity("torque"), hold=0.6)
    return Setting(arm, el.reference(arm, path), 80.0, 60.0, (87.0,) * 4 + (12.0,) * 3)


def vsa_joint():
    """A rod of 0.4 m and 3 kg on a spring of variable stiffness, from 300 to 600 Nm/rad and back, whose drive has
    0.01 kg m^2; 1.2 s, then 0.8 s of rest."""
    arm = el.elastic_robot(robots.planar_arm(1), el.VariableSpring(), motor_inertia=0.3, stiffness_inertia=0.01)
    path = el.rest_to_rest((-0.6,), (0.7,), 1.2, continuity=arm.continuity("torque"), hold=0.8)
    return Setting(arm, el.reference(arm, path, sigma=lambda t: 450 - 150 * ca.cos(pi * t)), 30.0, 40.0, (60.0,))


ROBOTS: dict[str, Callable[[], Setting]] = {
    "2R arm": arm_2r,
    "2R arm with Coulomb friction": lambda: arm_2r(friction=(6.0, 4.0), substeps=4),
    "Panda": panda,
    "VSA joint": vsa_joint,
}
_OBSERVER, _DISTURBANCE, _FRICTION = 300.0, 50.0, 150.0  # poles of observers [1/s]
_BARE, _RUBBING = ("2R arm", "Panda"), ("2R arm with Coulomb friction",)
_ARMS, _VARIABLE = (*_BARE, *_RUBBING), ("VSA joint",)


def linearizing(speed):
    """Builder of feedback linearisation that compensates friction at a speed."""
    return lambda s: el.feedback_linearization(s.elastic, s.pole, friction_speed=speed)


def halved(s):
    """Full-state feedback that makes the motors half as heavy, by torque feedback."""
    return el.full_state_feedback(s.elastic, *s.gains, inertia=np.diag(s.elastic.motor_inertia) / 2)


def soft(s):
    """Joint impedance that follows motions, at half the stiffness of the springs, all modes damped at 0.7."""
    return el.impedance(s.elastic, 0.5 * s.springs, at=s.start, feedforward="flat")


def held(s):
    """Cartesian impedance of the Panda's hand, 50 Nm/rad and 1000 N/m; 20 Nm/rad of each joint for what it leaves
    free."""
    stiffness = [50.0] * 3 + [1000.0] * 3
    return el.impedance(s.elastic, stiffness, frame="panda_link8", joint_stiffness=20.0, at=s.start, feedforward="flat")


def preserving(s):
    """ESP impedance at half the stiffness of the springs; links damped at 0.1, motors as in the motor loops."""
    return el.esp_i(s.elastic, 0.5 * s.springs, s.link_damping(0.1), s.gains[1])


def seen(s):
    """Feedback linearisation without encoders at the links."""
    law = el.feedback_linearization(s.elastic, s.pole)
    return el.observed(law, el.link_state_observer(s.elastic, _OBSERVER))


def countered(s):
    """Motor loops that counter what the motors meet besides the model."""
    observer = el.disturbance_observer(s.elastic, _DISTURBANCE, torque="measured")
    law = el.feedforward_pd(s.elastic, *s.gains)
    return el.observed(law, observer, compensate="disturbance", torque_limit=s.torque_limit)


def lubricated(s):
    """Motor loops without a model of friction, which an observer finds."""
    law = el.feedforward_pd(s.elastic, *s.gains, friction_speed="none")
    observer = el.friction_observer(s.elastic, _FRICTION)
    return el.observed(law, observer, compensate="friction_torque", torque_limit=s.torque_limit)


LAWS: dict[str, tuple[Callable[[Setting], el.Controller], tuple[str, ...]]] = {
    "feedforward": (lambda s: el.feedforward(s.elastic), _BARE),
    "feedforward_pd": (lambda s: el.feedforward_pd(s.elastic, *s.gains), (*_ARMS, *_VARIABLE)),
    "gravity_pd": (lambda s: el.gravity_pd(s.elastic, *s.gains), _ARMS),
    "computed_torque": (lambda s: el.computed_torque(s.elastic, *s.gains), _BARE),
    "online_gravity_pd": (lambda s: el.online_gravity_pd(s.elastic, *s.gains), _BARE),
    "full_state_feedback": (lambda s: el.full_state_feedback(s.elastic, *s.gains), _BARE),
    "full_state_feedback, half the motors' inertia": (halved, _BARE),
    "impedance, half the springs' stiffness": (soft, _BARE),
    "impedance of the hand": (held, ("Panda",)),
    "esp": (lambda s: el.esp(s.elastic, *s.gains, s.link_damping(0.1)), _BARE),
    "esp_i, half the springs' stiffness": (preserving, _BARE),
    "feedback_linearization": (linearizing("measured"), (*_ARMS, *_VARIABLE)),
    "feedback_linearization, poles at -20/s": (lambda s: el.feedback_linearization(s.elastic, 20.0), _BARE),
    "feedback_linearization, friction at the reference": (linearizing("reference"), _RUBBING),
    "feedback_linearization, integral": (lambda s: el.feedback_linearization(s.elastic, s.pole, integral=True), _BARE),
    "feedback_linearization, link_state_observer": (seen, _BARE),
    "vsa_damping": (lambda s: el.vsa_damping(s.elastic), _VARIABLE),
    "feedforward_pd, disturbance_observer": (countered, _ARMS),
    "feedforward_pd, friction_observer": (lubricated, _RUBBING),
    "feedback_linearization, no friction": (linearizing("none"), _RUBBING),
}
