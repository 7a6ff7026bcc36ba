"""The elastic robot: links as before, and between each elastic joint and its motor a spring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, UnknownName
from ..model.read_only import ReadOnlyArrays
from ..model.robot import Body, Robot
from ..text import terminal
from ..types import Array, Named, Numbers
from .coupling import Coupling
from .effects import Effect
from .potentials import Potential
from .real import with_errors, with_friction
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
        M(q) q'' + n(q, q') = tau(theta - q, theta' - q') - friction(q'),    B theta'' + tau = tau_m - friction(theta')
    complete model: S(q) theta'' and S(q)^T q'' besides, with the terms of Coriolis that belong to them. A rigid joint
    has no row in theta; its row of tau_m drives the link itself.

    robot: as given. links: the same without what the motors carry; their joints' own friction does not count.
    motor_inertia B (theta, theta) [kg m^2 or kg]. gear (tau_m, tau_m): motor speeds = gear @ joint-side
    speeds. Of a robot with loops the rows of joints, and `rigid`, are those of `drives` where these are given.
    motor_damping, motor_friction, friction_smoothing: one per row of tau_m. link_damping [Nm s/rad, N s/m],
    link_friction [Nm, N], link_smoothing [rad/s, m/s]: on the links' side, one per velocity v. stiffness_inertia
    (sigma,): inertia of the drives of sigma, empty where sigma is prescribed. parallel, across: energies of springs
    beside the motors and across joints.
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
    link_damping: Array
    link_friction: Array
    link_smoothing: Array
    coupling: Coupling | None = None  # of the complete model
    parallel: Potential | None = None  # springs between links alone
    across: Potential | None = None  # springs between several joints and motors
    effects: tuple[Effect, ...] = ()  # laws of friction, hysteresis and play, which the plant alone knows
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
        """What is special about the links, for methods that cannot do it; "coupling" for the complete model and
        "across" for springs across joints."""
        own = {"coupling"} if self.coupling else set()
        return self.links.features | own | ({"across"} if self.across is not None else set())

    @property
    def motor_orders(self) -> tuple[int, ...]:
        """For each elastic joint the derivative of its theta that the motor torques need: 2 for the reduced model."""
        need = [2] * len(self.joints)
        if self.coupling:
            owner = {m: e for e, j in enumerate(self.joints) for m in j.theta}
            for e, joint in enumerate(self.joints):  # its row of the links hands on what its theta needs
                for m, more in self.coupling.needs[joint.v].items():
                    need[owner[m]] = max(need[owner[m]], need[e] + more)
        return tuple(need)

    @property
    def sigma_order(self) -> int:
        """The highest time derivative of sigma in the motor torques: 2, more in the complete model."""
        orders = zip(self.joints, self.motor_orders, strict=True)
        return max((need for j, need in orders if j.sigma is not None), default=2)

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

    def refuse_across(self, what: str) -> None:
        """Raise ModelError where springs act across joints, for what knows springs of one joint alone."""
        if self.across is not None:
            text = f"{what}: springs across several joints are not there; use feedforward_pd or another robot"
            raise ModelError(self.name, [text])

    def undamped(self) -> ElasticRobot:
        """The same robot without damping in its springs and laws for simulation alone; itself if it has none."""
        if self.effects:
            return self.without_laws().undamped()
        if not self.damped:
            return self
        return replace(self, joints=tuple(replace(j, spring=replace(j.spring, damping=0.0)) for j in self.joints))

    def without_laws(self) -> ElasticRobot:
        """The same robot without the laws of with_friction(laws=...): what laws of control and flat maps can know."""
        return replace(self, effects=()) if self.effects else self

    def with_errors(
        self, stiffness: float | Mapping[str, float] = 0.0, mass: float | Mapping[str, float] = 0.0,
        motor_inertia: float = 0.0, damping: float = 0.0, friction: float = 0.0,
    ) -> ElasticRobot:  # fmt: skip
        """The real robot of which this one is the model, by relative errors: 0.1 is 10 % more.

        stiffness: a number for all springs, or {joint: number} for joints' own; mass: of all inertial parameters of
        links, a number or {link: number}; motor_inertia: a number, for all motors, those of rigid joints (armature) and
        drives of sigma included; damping: of springs, motors and links, friction: of motors and links, numbers; laws
        of with_friction stay. All above -1. Raises ShapeError, UnknownName; ModelError where the kinetic energy of the
        complete model would not be positive. with_friction gives damping and friction that the model does not have.
        """
        return with_errors(self, stiffness, mass, motor_inertia, damping, friction)

    def with_friction(
        self, *, damping: Named | None = None, motor_damping: Named | None = None, motor_friction: Named | None = None,
        friction_smoothing: Named | None = None, link_damping: Named | None = None, link_friction: Named | None = None,
        link_smoothing: Named | None = None, laws: Mapping[str, Any] | None = None,
    ) -> ElasticRobot:  # fmt: skip
        """The same robot with other damping and friction, in the forms and units of elastic_robot; None: as it is.

        damping: of all springs, linear or not. laws: Stribeck, LuGre, MaxwellSlip, BoucWen, Backlash, for the real
        robot of a simulation alone, besides what else rubs: {"motors": {motor: law}, "links": {velocity: law},
        "springs": {joint: law}}, a law or a list of laws for each name, or a law alone for all. They replace those that
        are there; flat maps and laws of control refuse robots that have some. Raises ModelError listing every problem;
        UnknownName.
        """
        given = {
            "motor_damping": motor_damping, "motor_friction": motor_friction, "friction_smoothing": friction_smoothing,
            "link_damping": link_damping, "link_friction": link_friction, "link_smoothing": link_smoothing,
        }  # fmt: skip
        return with_friction(self, damping, given, laws)

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
        lines += [] if self.parallel is None else ["  parallel springs"]
        lines += [] if self.across is None else ["  springs across joints"]
        lines += [f"  {type(e.law).__name__} at {e.name} of {e.on}, in simulation alone" for e in self.effects]
        both = (("motor", self.motor_names, self.motor_damping, self.motor_friction),
                ("link", names, self.link_damping, self.link_friction))  # fmt: skip
        for side, rows, damping, friction in both:
            rub = zip(rows, damping, friction, strict=True)
            lines += [f"  {side} of {n}: damping {d:g}, Coulomb friction {f:g}" for n, d, f in rub if d or f]
        return "\n".join(map(terminal, lines))

    def __repr__(self) -> str:
        return f"<oc_dyn.ElasticRobot {self.name!r}: {len(self.joints)} elastic joints of {self.nv}>"


def columns(x: Any, rows: Any) -> Any:
    """Entries of a column vector, by their rows."""
    return ca.vertcat(*(x[k] for k in rows)) if len(rows) else ca.DM(0, 1)
