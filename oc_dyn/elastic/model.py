"""The elastic robot: links as before, and between each elastic joint and its motor a spring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from .. import validation
from ..errors import ModelError, UnknownName
from ..model.inertia import Inertia
from ..model.loops import LoopRobot, close_tree
from ..model.read_only import ReadOnlyArrays
from ..model.robot import Body, Robot, assemble
from ..text import terminal
from ..types import Array, Numbers
from .coupling import Coupling
from .springs import LinearSpring, Spring


@dataclass(frozen=True, eq=False)
class ElasticJoint:
    """A joint with a spring: its name, its rows in q and v, its spring, its motors' rows in theta and tau_m; its row
    in sigma, None where the stiffness is not variable."""

    name: str
    q: int
    v: int
    spring: Spring
    theta: tuple[int, ...]
    tau: tuple[int, ...]
    sigma: int | None


@dataclass(frozen=True, eq=False)
class ElasticRobot(ReadOnlyArrays):
    """A robot with springs between motors and links; built by elastic_robot, printed as a table.

    Reduced model (Spong 1987), theta being the motor angles as seen at the joints, tau the springs' torques:
        M(q) q'' + n(q, q') = tau(theta - q, theta' - q'),    B theta'' + tau = tau_m - friction(theta')
    complete model: S(q) theta'' and S(q)^T q'' besides, with the terms of Coriolis that belong to them. A rigid joint
    has no row in theta; its row of tau_m drives the link itself.

    robot: as given. links: the same without what the motors carry; of friction only that of the motors counts.
    motor_inertia B (theta, theta) [kg m^2 or kg]. gear (tau_m, tau_m): motor speeds = gear @ joint-side
    speeds. Of a robot with loops the rows of joints, and `rigid`, are those of `drives` where these are given.
    motor_damping, motor_friction, friction_smoothing: one per row of tau_m. stiffness_inertia (sigma,): inertia
    of the drives of sigma, empty where sigma is prescribed.
    """

    robot: Robot
    links: Robot
    joints: tuple[ElasticJoint, ...]  # in the order of coordinates
    rigid: tuple[int, ...]  # rows of v that have no spring
    rigid_motors: tuple[int, ...]  # their rows of tau_m
    motor_names: tuple[str, ...]  # of tau_m
    motor_inertia: Array
    gear: Array
    motor_damping: Array
    motor_friction: Array
    stiffness_inertia: Array
    friction_smoothing: Array
    coupling: Coupling | None = None  # of the complete model
    drives: tuple[str, ...] = ()  # joints of the tree with the motors; () where these are at the links' coordinates
    unactuated: tuple[int, ...] = ()  # rows of v of a free joint, which no motor drives
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.robot.name

    @property
    def nq(self) -> int:
        """Number of coordinates q of the links."""
        return self.links.nq

    @property
    def nv(self) -> int:
        """Number of velocities v of the links."""
        return self.links.nv

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The links, as of Robot.bodies."""
        return self.links.bodies

    @property
    def elastic_motors(self) -> tuple[int, ...]:
        """Rows of tau_m, one per row of theta."""
        return tuple(m for j in self.joints for m in j.tau)

    @property
    def theta_names(self) -> tuple[str, ...]:
        """Names of the rows of theta: motors of the elastic joints."""
        return tuple(self.motor_names[m] for m in self.elastic_motors)

    @property
    def sigma_names(self) -> tuple[str, ...]:
        """Names of the rows of sigma: joints of variable stiffness."""
        return tuple(j.name for j in self.joints if j.sigma is not None)

    @property
    def adjusted(self) -> tuple[ElasticJoint, ...]:
        """Joints of variable stiffness whose sigma is a coordinate of the spring."""
        return tuple(j for j in self.joints if j.spring.adjusted)

    @property
    def stiffness_driven(self) -> bool:
        """Whether sigma has drives of its own, and rows in the state; else it is prescribed."""
        return self.stiffness_inertia.size > 0

    @property
    def damped(self) -> tuple[str, ...]:
        """Names of the joints whose spring is damped."""
        return tuple(j.name for j in self.joints if j.spring.damping)

    @property
    def features(self) -> frozenset[str]:
        """What is special about the links, for methods that cannot do it; and "coupling" for the complete model."""
        return self.links.features | ({"coupling"} if self.coupling else set())

    @property
    def motor_orders(self) -> tuple[int, ...]:
        """For each elastic joint the derivative of its theta that the motor torques need: 2 for the reduced model."""
        need = [2] * len(self.joints)
        if self.coupling:
            for i in range(len(self.joints)):  # row i of the links hands on what theta_i needs
                for j, more in self.coupling.needs[i].items():
                    need[j] = max(need[j], need[i] + more)
        return tuple(need)

    def flat_order(self, order: int = 0) -> int:
        """The highest time derivative of q in the motor torque's derivative of this order: 4 for the reduced model,
        up to 2 (n + 1) for the complete one."""
        return max(self.motor_orders) + 2 + order

    def continuity(self, of: str = "torque") -> int:
        """How many times q must be continuously differentiable for a bounded ("bounded torque") or continuous motor
        torque ("torque"), or one whose rate is bounded and continuous ("torque_rate")."""
        steps = {"bounded torque": -1, "torque": 0, "torque_rate": 1}
        if of not in steps:
            raise UnknownName("continuity of", of, steps)
        return self.flat_order() + steps[of]

    def rotor_torque(self, tau_m: Numbers) -> Array:
        """Torques at the rotors (tau_m,) from joint-side ones: gear^-T tau_m."""
        return np.linalg.solve(self.gear.T, np.asarray(tau_m, float))

    def rotor_speed(self, speed: Numbers) -> Array:
        """Rotor speeds (tau_m,) from joint-side ones: gear @ speed."""
        return self.gear @ np.asarray(speed, float)

    def linear_stiffness(self) -> Array:
        """(elastic joints,) stiffness [Nm/rad, N/m]; ModelError if a spring is not linear."""
        other = [j.name for j in self.joints if not isinstance(j.spring, LinearSpring)]
        if other:
            raise ModelError(self.name, [f"the springs of {', '.join(other)} are not linear"])
        return np.array([j.spring.stiffness for j in self.joints if isinstance(j.spring, LinearSpring)], float)

    def undamped(self) -> ElasticRobot:
        """The same robot without damping in its springs; itself if they have none."""
        if not self.damped:
            return self
        return replace(self, joints=tuple(replace(j, spring=replace(j.spring, damping=0.0)) for j in self.joints))

    def with_errors(
        self, stiffness: float | Mapping[str, float] = 0.0, mass: float | Mapping[str, float] = 0.0,
        motor_inertia: float = 0.0,
    ) -> ElasticRobot:  # fmt: skip
        """The real robot of which this one is the model, by relative errors: 0.1 is 10 % more.

        stiffness: a number, or {joint: number}; mass: of all inertial parameters of links, a number or {link: number};
        motor_inertia: a number. All above -1. Raises ShapeError, UnknownName; ModelError where the kinetic energy of
        the complete model would not be positive.
        """
        names = [j.name for j in self.joints]
        stiffness = _factors("stiffness", stiffness, names, f"elastic joint of {self.name}")
        factor = {**dict.fromkeys(names, 1.0), **stiffness}
        joints = tuple(replace(j, spring=j.spring.scaled(factor[j.name])) for j in self.joints)
        mass_of = _factors("mass", mass, list(self.links.description[0]), f"link of {self.name}")
        links = rebuilt(self.links, mass_of=mass_of)
        m = 1.0 + _error("motor_inertia", motor_inertia)
        real = replace(
            self,
            joints=joints,
            links=links,
            motor_inertia=m * self.motor_inertia,
            coupling=self.coupling and self.coupling.scaled(m),
        )
        if real.coupling:
            real.coupling.check_energy(real)
        return real

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_made": {}}

    def __str__(self) -> str:
        kind = "complete" if self.coupling else "reduced"
        lines = [f"elastic robot {self.name}: {self.nv} velocities, {len(self.joints)} elastic joints, {kind} model"]
        for j in self.joints:
            s = j.spring
            what = f"stiffness {s.stiffness:g}" if isinstance(s, LinearSpring) else type(s).__name__
            inertia = ", ".join(f"{self.motor_inertia[i, i]:g}" for i in j.theta)
            lines.append(f"  {j.name}: {what}, damping {s.damping:g}, motor inertia {inertia}")
        names = self.drives or self.links.velocity_names
        lines += [f"  {names[k]}: rigid" for k in self.rigid]
        lines += [f"  {names[k]}: no motor" for k in self.unactuated]
        return "\n".join(map(terminal, lines))

    def __repr__(self) -> str:
        return f"<oc_dyn.ElasticRobot {self.name!r}: {len(self.joints)} elastic joints of {self.nv}>"


def _factors(quantity: str, errors: float | Mapping[str, float], names: list[str], what: str) -> dict[str, float]:
    """{name: 1 + error}."""
    if not isinstance(errors, Mapping):
        error = _error(quantity, errors)
        return dict.fromkeys(names, 1.0 + error) if error else {}
    for name in errors:
        if name not in names:
            raise UnknownName(what, name, names)
    return {name: 1.0 + _error(f"{quantity} of {name}", x) for name, x in errors.items()}


def _error(quantity: str, value: float) -> float:
    """A relative error, above -1."""
    return validation.number(f"relative error of {quantity}", value, above=-1)


def rebuilt(
    robot: Robot,
    armature: Mapping[str, float] | None = None,
    mass_of: Mapping[str, float] | None = None,
) -> Robot:
    """The robot with other armatures {joint: value}, inertial parameters of links times factors {link: factor}."""
    if isinstance(robot, LoopRobot):
        tree = rebuilt(robot.tree, armature, mass_of)
        return robot if tree is robot.tree else close_tree(
            tree, robot.loops, robot.couplings, robot.independent, start=robot.home
        )  # fmt: skip
    links, raw, floating, held = robot.description
    armature, mass_of = armature or {}, mass_of or {}
    if all(robot.joint(n).armature == x for n, x in armature.items()) and not mass_of:
        return robot
    links = {name: x and _times(mass_of.get(name, 1.0), x) for name, x in links.items()}
    raw = tuple(replace(j, armature=armature[j.name]) if j.name in armature else j for j in raw)
    new = assemble(
        robot.name, links, raw, gravity=robot.gravity, floating_base=floating, lock=held, collisions=robot.collisions
    )
    own = {name: getattr(robot, name) for name in ("velocity_limits", "report", "snap_angles", "may_touch", "folder")}
    return replace(new, **own)


def _times(factor: float, inertia: Inertia) -> Inertia:
    return Inertia.computed(factor * inertia.mass, factor * inertia.moment, factor * inertia.tensor)


def columns(x: Any, rows: Any) -> Any:
    """Entries of a column vector, by their rows."""
    return ca.vertcat(*(x[k] for k in rows)) if len(rows) else ca.DM(0, 1)
