"""An elastic robot as a rigid one whose rotors are bodies: what other libraries simulate.

Both models are exact for such a robot, each under its own assumption:
reduced    the kinetic energy of a rotor is that of its spin against its stator, B theta'^2 / 2: the turning of the link
           that carries it counts as if the rotor stood still in it. Rotors that stand on the ground have just that
           energy. Spong's assumption; it is off by terms of the order of one over the gear ratio.
complete   the rotor spins about its axis on the link before its joint, by `ratio` turns per turn of theta: energy
           J (a^T w + ratio theta')^2 / 2, w being the link's angular velocity. The link loses what the rotor's mass and
           tensor add to it, so that link and standing rotor together are the link as it was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..model.inertia import Inertia, unphysical
from ..model.loops import LoopRobot
from ..model.robot import Joint, Robot, assemble
from ..types import Array, Matrix
from ..validation import flag
from .coupling import motor_coupling
from .effects import effects_at
from .forward_dynamics import loaded_forces
from .model import ElasticRobot

GROUND = "ground"
_SHARE = 0.1  # of a link's mass that its rotors may have together; how much does not matter


@dataclass(frozen=True, eq=False)
class RotorRobot:
    """A rigid robot with the links of an elastic one and a rotor for each row of theta.

    robot: a Robot; the rotor of a motor is <motor>.rotor, body and joint. ratio (theta,): rotor angles per theta.
    carried: whether the rotors turn with the links. torques: casadi.Function (q, v, theta, dtheta, tau_m) ->
    (robot.nv,) generalised forces of springs, parallel ones included, their dampers, damping and friction of motors
    and links, laws without memory, and motors: with them the accelerations of `robot` are those of the elastic robot.
    """

    elastic: ElasticRobot
    robot: Robot
    ratio: Array
    carried: bool
    torques: ca.Function

    def state(self, q: Any, v: Any, theta: Any, dtheta: Any) -> tuple[Matrix, Matrix]:
        """(q, v) of the robot with rotors."""
        rows = _rows(self.elastic, self.robot)
        whole = ca.vertcat(q, ca.DM(self.ratio) * theta), ca.vertcat(v, ca.DM(self.ratio) * dtheta)
        return whole[0][rows[0]], whole[1][rows[1]]

    def parted(self, dv: Any) -> tuple[Matrix, Matrix]:
        """(dv of the links, d2theta) from accelerations of the robot with rotors."""
        n, rows = self.elastic.nv, np.argsort(_rows(self.elastic, self.robot)[1])
        dv = ca.vertcat(dv)[rows.tolist()]
        return dv[:n], dv[n:] / ca.DM(self.ratio)

    def mjcf(self) -> str:
        """MJCF for MuJoCo; the springs are tendons in it where they are linear. See rotor_models.mjcf."""
        from .rotor_models import mjcf

        return mjcf(self)

    def pinocchio(self) -> Any:
        """pinocchio.Model (of `pin`); it has no springs, `torques` gives their forces."""
        from .rotor_models import pinocchio_model

        return pinocchio_model(self.robot)


def with_rotors(elastic: ElasticRobot, *, carried: bool | None = None) -> RotorRobot:
    """RotorRobot of an elastic robot.

    carried: True: rotors turn on the links before their joints, by the gear ratio: the complete model; False: they
        stand on the ground: the reduced one; None: as the elastic robot has it. With True the reduced model's
        neglect can be measured, on floating bases too.
    Raises ModelError for loops, drives of stiffness, coordinates sigma, motors whose inertias are coupled, laws of
    friction with a memory, as bodies have none; for carried
    rotors besides for gears that mix motors, a coupling that is not that of motor_coupling, links lighter than their
    rotors.
    """
    if not isinstance(elastic, ElasticRobot):
        raise ShapeError(f"with_rotors: got {type(elastic).__name__}, expected an ElasticRobot")
    carried = elastic.coupling is not None if carried is None else flag("with_rotors: carried", carried)
    problems = _problems(elastic, carried)
    if problems:
        raise ModelError(elastic.name, problems)
    B = np.diag(elastic.motor_inertia)
    ratio = np.diag(elastic.gear)[list(elastic.elastic_motors)] if carried else np.ones(len(B))
    if elastic.coupling is not None:
        _check_coupling(elastic, carried, B / ratio, ratio)
    robot = _built(elastic, B / ratio**2, carried)
    return RotorRobot(elastic, robot, np.array(ratio), carried, _torques(elastic, robot, ratio))


def _problems(elastic: ElasticRobot, carried: bool) -> list[str]:
    problems = []
    if isinstance(elastic.links, LoopRobot):
        problems.append("with_rotors is for robots without loops")
    if elastic.links.mimics:
        problems.append(f"with_rotors: joint {elastic.links.mimics[0].name!r} follows another; rotors of such are open")
    if elastic.adjusted:
        problems.append(f"with_rotors: the stiffness of {elastic.adjusted[0].name} is a coordinate, which has no body")
    remembers = sorted({f"{type(e.law).__name__} at {e.name}" for e in elastic.effects if e.law.memory})
    if remembers:
        problems.append(f"with_rotors: {', '.join(remembers)} have a memory; take without_laws(), or laws without one")
    B, gear = elastic.motor_inertia, elastic.gear
    if np.any(B - np.diag(np.diag(B))):
        problems.append("with_rotors: inertias of motors are coupled; give one per motor")
    if carried and np.any(gear - np.diag(np.diag(gear))):
        problems.append("with_rotors: gears mix motors; give one ratio per motor")
    kinds = {j.name: j.kind for j in elastic.links.joints}
    sliding = [j.name for j in elastic.joints if kinds[j.name] not in ("revolute", "continuous")]
    if carried and sliding:
        problems.append(f"with_rotors: {sliding[0]} does not turn; carried rotors have axes parallel to their joints'")
    return problems


def _check_coupling(elastic: ElasticRobot, carried: bool, spin: Array, ratio: Array) -> None:
    """Refuse a coupling that is not that of rotors on the links before their joints. spin: J r."""
    if not carried:
        raise ModelError(elastic.name, ["with_rotors: the complete model has carried rotors; leave carried=False out"])
    assert elastic.coupling is not None
    expected = motor_coupling(elastic.links, spin / ratio, ratio)
    for seed in range(3):
        q = elastic.links.random_configuration(seed)
        S, own = np.array(elastic.coupling.matrix(q)), np.array(expected(q))
        if np.abs(S - own).max() > 1e-9 * max(np.abs(own).max(), 1e-12):
            text = "with_rotors: coupling is not that of rotors on axes parallel to their joints; see motor_coupling, "
            raise ModelError(elastic.name, [text + "and give elastic_robot the same rotor_inertia and gear_ratio"])


def _built(elastic: ElasticRobot, spin: Array, carried: bool) -> Robot:
    """Links, less what carried rotors add to them, and rotors with inertia `spin` about their axes."""
    bodies = elastic.links.bodies
    links: dict[str, Inertia | None] = {GROUND: None} | {b.name: b.inertia for b in bodies}
    names = [GROUND, *(b.name for b in bodies)]
    joints = [
        Joint(
            b.joint.name, b.joint.kind, names[b.parent], b.name, b.rotation, b.translation, b.joint.axis,
            pitch=b.joint.pitch, armature=b.joint.armature,
        )
        for b in bodies
    ]  # fmt: skip
    by_joint = {b.joint.name: b for b in bodies}
    owners = [by_joint[j.name] for j in elastic.joints for _ in j.theta]
    carriers = [names[b.parent] if carried else GROUND for b in owners]
    rotors, placed = {}, []
    for k, (b, carrier, name) in enumerate(zip(owners, carriers, elastic.theta_names, strict=True)):
        whole = links[carrier]
        mass, at = 1.0, np.zeros(3)
        if carrier != GROUND:  # at the centre of mass, where it takes least away from the tensor
            original = bodies[names.index(carrier) - 1].inertia
            mass, at = _SHARE * original.mass / carriers.count(carrier), original.moment / original.mass
            links[carrier] = _less(elastic, carrier, whole, mass, at, spin[k])
        rotors[f"{name}.rotor"] = Inertia.computed(mass, np.zeros(3), spin[k] * np.eye(3))
        axis = b.rotation @ b.joint.axis if b.joint.kind in ("revolute", "continuous") else np.array([0.0, 0.0, 1.0])
        placed.append(Joint(f"{name}.rotor", "continuous", carrier, f"{name}.rotor", translation=at, axis=axis))
    return assemble(
        f"{elastic.name} with rotors", links | rotors, joints + placed, gravity=elastic.links.gravity
    )  # fmt: skip


def _less(elastic: ElasticRobot, link: str, whole: Inertia | None, mass: float, at: Array, spin: float) -> Inertia:
    """The link without a rotor of this mass at its centre of mass, whose tensor is spin in all directions."""
    assert whole is not None
    square = np.dot(at, at) * np.eye(3) - np.outer(at, at)
    tensor = whole.tensor - mass * square - spin * np.eye(3)
    rest = Inertia.computed(whole.mass - mass, whole.moment - mass * at, tensor)
    com = rest.moment / rest.mass
    about = rest.tensor - rest.mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))
    problem = unphysical(rest.mass, about)
    if problem:
        text = f"with_rotors: link {link!r} has not the inertia to carry its rotors: without them {problem}"
        raise ModelError(elastic.name, [text + "; its inertia is to include them"])
    return rest


def _rows(elastic: ElasticRobot, robot: Robot) -> tuple[list[int], list[int]]:
    """For each coordinate, and each velocity, of the robot with rotors, where it stands in [links; rotors]."""
    own = {j.name: (j.q_index, j.v_index) for j in elastic.links.joints}
    own |= {f"{name}.rotor": (elastic.nq + k, elastic.nv + k) for k, name in enumerate(elastic.theta_names)}
    q = [own[j.name][0] + k for j in robot.joints for k in range(j.nq)]
    return q, [own[j.name][1] + k for j in robot.joints for k in range(j.nv)]


def _torques(elastic: ElasticRobot, robot: Robot, ratio: Array) -> ca.Function:
    sizes = {"q": elastic.nq, "v": elastic.nv, "theta": len(ratio), "dtheta": len(ratio)}
    sizes["tau_m"] = len(elastic.motor_names)
    x = {name: ca.SX.sym(name, n) for name, n in sizes.items()}
    at = x["q"], x["v"], x["theta"], x["dtheta"]
    extra = effects_at(elastic, *at, [], ca.SX(0, 1))
    link, motor = loaded_forces(elastic, *at, [], x["tau_m"] + extra.motors)
    tau = ca.densify(ca.vertcat(link + extra.links, motor / ca.DM(ratio)))[_rows(elastic, robot)[1]]
    return ca.Function("rotor_torques", list(x.values()), [tau], list(x), ["tau"])
