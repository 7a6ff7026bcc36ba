"""What identify_elastic found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ...errors import LimitError, UnknownName
from ...identification.estimate import consistent_parameters
from ...identification.physical import nearest_physical
from ...model.inertia import Inertia
from ...model.read_only import ReadOnlyArrays
from ...model.robot import Robot, assemble, kept
from ...text import terminal
from ...types import Array
from ..model import ElasticRobot
from ..springs import LinearSpring, NonlinearSpring, Spring
from .equations import Equations
from .recording import Recording, checked
from .rows import check_length, rows, states


@dataclass(frozen=True, eq=False)
class Prediction(ReadOnlyArrays):
    """Torques along a recording, low-passed: t (T,) [s]; names (E,): "motor joint1", "link joint1", "sensor joint1";
    measured, predicted (E, T) [Nm, N]: of motors the motor torque, of links with a spring its torque as found from its
    deflection and as found from the links' motion, of sensors what they read; their means are made the same, as zeros
    belong to a recording."""

    t: Array
    names: tuple[str, ...]
    measured: Array
    predicted: Array

    @property
    def error(self) -> Array:
        """(E,) rms error of the prediction over the rms of what was measured."""
        return np.sqrt(np.mean((self.predicted - self.measured) ** 2, axis=1) / np.mean(self.measured**2, axis=1))


@dataclass(frozen=True, eq=False)
class ElasticIdentification(ReadOnlyArrays):
    """Parameters of an elastic robot, printed as a table.

    equations: what they belong to. names, values, interval (p,): what was asked for, and half widths of the confidence
    intervals; covariance (p, p). x: all parameters, known ones included. condition: of the weighted rows, columns
    scaled. bandwidth [Hz]. noise: {"motor", "link", "sensor": rms torque that the equations leave}, NaN where unused.
    offsets (recordings, equations.names): by how much measured torques exceed modelled ones, NaN where unused.
    Units are those of the joint's torque [Nm, N] per rad or m, and s of them.
    """

    equations: Equations
    names: tuple[str, ...]
    values: Array
    interval: Array
    covariance: Array
    x: Array
    condition: float
    bandwidth: float
    noise: dict[str, Array]
    offsets: Array

    @property
    def elastic(self) -> ElasticRobot:
        """The robot that was given."""
        return self.equations.unknowns.elastic

    def value(self, name: str) -> float:
        """One parameter, identified or known."""
        known = self.equations.unknowns.names
        if name not in known:
            raise UnknownName("parameter of the elastic robot", name, known)
        return float(self.x[known.index(name)])

    def predict(self, recording: Recording) -> Prediction:
        """Prediction along a recording, such as one that was not used for the estimate."""
        recording = checked(self.elastic, recording)[0]
        check_length("predict", recording, self.bandwidth)
        r = rows(self.equations, recording, states(self.equations, recording, False)[0], self.x, self.bandwidth)
        names = tuple(f"{self.equations.kinds[k]} {self.equations.names[k]}" for k in r.used)
        t = r.start + r.step * np.arange(r.measured.shape[1])
        return Prediction(t, names, r.compared + r.measured - r.modelled, r.compared)

    def robot(self) -> ElasticRobot:
        """The identified robot. Frictions and dampings below zero, as noise may make them, become zero; base parameters
        become inertial parameters that bodies can have, near those of the robot given. LimitError for a stiffness or
        motor inertia that is not positive."""
        e, u = self.elastic, self.equations.unknowns
        B = np.array(u.motor_inertia(self.x))
        if np.linalg.eigvalsh(B).min() <= 0:
            raise LimitError(f"the identified motor inertia of {e.name} is not positive definite: {B.tolist()}")
        joints = tuple(replace(j, spring=self._spring(k)) for k, j in enumerate(e.joints))
        gear = np.array(e.gear)
        if u.transmission == "gear":
            gear[list(e.elastic_motors)] /= u.of(self.x, "transmission")[:, None]
        names = ("motor_damping", "motor_friction", "link_damping", "link_friction")
        rubbing = {n: np.maximum(u.of(self.x, n), 0.0) for n in names}
        links = e.links if u.base is None else self._links()
        return replace(e, joints=joints, motor_inertia=B, gear=gear, links=links, **rubbing)

    def _spring(self, k: int) -> Spring:
        e, u = self.elastic, self.equations.unknowns
        j, factors, basis = e.joints[k], self.x[list(u.spring_rows[k])], u.bases[k]
        damping = max(float(u.of(self.x, "spring_damping")[k]), 0.0)
        own = j.spring
        z = ca.SX.sym("z")
        linear = len(basis) == 1 and ca.is_equal(basis[0](z), z)
        slope = ca.Function(
            "slope", [z], [ca.gradient(sum((c * f(z) for c, f in zip(factors, basis, strict=True)), ca.SX(0)), z)]
        )
        at = float(getattr(own, "guess", 0.0))
        if not float(slope(at)) > 0:
            raise LimitError(
                f"the identified stiffness of joint {j.name} at the deflection {at:g} is {float(slope(at)):g}"
            )
        if linear:
            return LinearSpring(float(factors[0]), damping)
        return NonlinearSpring(lambda z: sum(c * f(z) for c, f in zip(factors, basis, strict=True)), damping, at)

    def _links(self) -> Robot:
        """The links with inertial parameters that have the identified base parameters, as nearly as bodies can."""
        u: Any = self.equations.unknowns
        row_of = {u.names.index(name): k for k, name in enumerate(self.names)}
        asked = [k for k, row in enumerate(u.rows["base"]) if row in row_of]
        mine = [row_of[u.rows["base"][k]] for k in asked]
        # values that were known weigh like the best of the others
        own = self.covariance[np.ix_(mine, mine)]
        cov = np.diag(np.full(u.base.rank, np.min(np.diag(own), initial=np.inf)))
        cov[np.ix_(asked, asked)] = own
        cov += np.eye(len(cov)) * (1e-6 * np.abs(u.of(self.x, "base")).max()) ** 2  # IPOPT needs some room
        scale = np.sqrt(np.diag(cov))
        R = np.linalg.cholesky(np.linalg.inv(cov / scale[:, None] / scale)).T / scale
        values = u.of(self.x, "base")
        links = self.elastic.links
        found, _, _ = consistent_parameters(u.base, R, R @ values, values, nearest_physical(links.parameters), 0.1)
        return _with_parameters(links, found)

    def __str__(self) -> str:
        lines = [f"{self.elastic.name}: {len(self.names)} parameters, condition number {self.condition:.3g}"]
        width = max(map(len, self.names))
        for name, value, half in zip(self.names, self.values, self.interval, strict=True):
            lines.append(f"  {name:{width}}  {value: .6g} +- {half:.2g}")
        return "\n".join(map(terminal, lines))


def _with_parameters(robot: Robot, parameters: Array) -> Robot:
    """The robot with other inertial parameters (10 bodies,): the difference goes to the links that carry the bodies."""
    links, raw, floating, held = robot.description
    change = dict(zip((b.name for b in robot.bodies), (parameters - robot.parameters).reshape(-1, 10), strict=True))
    links = {name: x if name not in change else _plus(x, change[name]) for name, x in links.items()}
    new = assemble(
        robot.name, links, raw, gravity=robot.gravity, floating_base=floating, lock=held, collisions=robot.collisions
    )
    return replace(new, **kept(robot))


def _plus(inertia: Inertia | None, change: Array) -> Inertia:
    m, h, t = change[0], change[1:4], change[4:]
    T = np.array([[t[0], t[1], t[3]], [t[1], t[2], t[4]], [t[3], t[4], t[5]]])
    if inertia is None:
        return Inertia.computed(m, h, T)
    return Inertia.computed(inertia.mass + m, inertia.moment + h, inertia.tensor + T)
