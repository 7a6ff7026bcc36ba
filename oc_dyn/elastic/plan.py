"""A planned motion of an elastic robot: what springs and motors do along it, and what it asks of each limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..files import write_csv
from ..planning.report import ReportRow
from ..planning.trajectory import Trajectory
from ..scene.scene import Scene
from ..text import terminal
from ..types import Array, StrPath
from .damped_along import DampedDeflections
from .electrical import MotorElectrics
from .model import ElasticRobot
from .plan_check import ElasticReport, defects, spring_rows
from .plan_outputs import OUTPUTS, deflections_along, flat_outputs, jets_of, known_order
from .plan_stiffness import StiffnessBounds


@dataclass(eq=False)
class ElasticPlan:
    """A planned motion of an elastic robot.

    motion: Trajectory of the links, with their limits. limits: {"motor_torque", "motor_torque_rate", "motor_speed",
    "deflection", "current", "voltage", "torque_speed": (n,)}, those that were given. objective: what was optimised: the
    time [s], the loss, an energy [J], or the speed that was asked for. sigma: stiffnesses held constant, or a
    Trajectory of them where they were planned, too, None where none varies. electrical: MotorElectrics that were given.
    periodic: whether the motion repeats itself. stiffness: bounds
    of planned stiffnesses. info: iterations, rounds, shares.
    """

    elastic: ElasticRobot
    motion: Trajectory
    limits: dict[str, Array]
    objective: float
    info: dict[str, Any]
    sigma: Array | Trajectory | None = None
    electrical: MotorElectrics | None = None
    periodic: bool = False
    stiffness: StiffnessBounds | None = None

    @property
    def duration(self) -> float:
        """Time from start to end [s]."""
        return self.motion.duration

    def sample(self, dt: float = 1e-3) -> dict[str, Array]:
        """{"t": (K,), "q", "v", ... of the links, "theta", "dtheta", "tau_m", "dtau_m", "deflection", and of planned
        stiffnesses "sigma", "dsigma": (K, n)} every dt [s]; with electrical data "current", "voltage", too."""
        samples = self.motion.sample(dt)
        found = {"t": samples.t, **self.outputs(samples.t, samples.derivatives)}
        if isinstance(self.sigma, Trajectory):
            jets = self.sigma.sample(samples.t).derivatives
            found |= {"sigma": jets[0], "dsigma": jets[1]}
        return found

    def outputs(self, t: Array, derivatives: list[Array] | None = None) -> dict[str, Array]:
        """Outputs of the flat map at times t (K,); derivatives: of the links there, by default of the motion."""
        derivatives = self.motion.sample(t).derivatives if derivatives is None else derivatives
        z = self.deflections
        return flat_outputs(
            self.elastic, derivatives, self._order, self._jets(t), None if z is None else z.at(t), self.electrical
        )

    @cached_property
    def deflections(self) -> DampedDeflections | None:
        """Deflections of the damped springs along the motion; None without dampers."""
        return deflections_along(self.elastic, self.motion, jets_of(self.sigma, self._order), self.periodic)

    def shares(self, dt: float = 1e-3) -> dict[str, float]:
        """{limit of motors and springs: largest share that is reached} along the motion, every dt [s]."""
        rows = self.check(dt, dynamics=False).rows
        return {name: row.share for name, output in OUTPUTS.items() for row in rows if row.quantity == output}

    def check(
        self, dt: float = 1e-3, *, dynamics: bool = True, robot: ElasticRobot | None = None,
        scene: Scene | None = None, clearance: float = 0.0,
    ) -> ElasticReport:  # fmt: skip
        """ElasticReport on every limit of links, motors and springs, every dt [s] and on both sides of the breakpoints,
        and on the motion itself.

        dynamics: whether the planned motor torques are integrated through the forward dynamics, piece by piece, and
        compared with the planned motion. robot: the ElasticRobot that they drive, with as many motors; default the one
        that was planned for. scene, clearance [m]: shapes that the links' motion keeps apart, as of Trajectory.check.
        """
        links = self.motion.check(dt=dt, scene=scene, clearance=clearance)
        samples = self.motion.both_sides(dt)
        found = self.outputs(samples.t, samples.derivatives)
        rows, shares = list(links.rows), dict(links.shares)
        for name, bound in self.limits.items():
            values = found[OUTPUTS[name]]
            share = np.where(np.isnan(values), np.inf, np.abs(values) / bound)
            shares[OUTPUTS[name]] = share.max(axis=0)
            if share.size:
                k, i = np.unravel_index(np.argmax(share), share.shape)
                value, at = float(values[k, i]), float(samples.t[k])
                limit = float(np.copysign(bound[i], value))
                output = OUTPUTS[name]
                rows.append(ReportRow(output, float(share[k, i]), self._names(output)[i], at, value, limit))
        if self.stiffness is not None and isinstance(self.sigma, Trajectory):
            rows += self.stiffness.rows(self.sigma, dt)
        springs = spring_rows(self.elastic, found, samples.t)
        of_motion, pieces = defects(self, robot) if dynamics else ((), (0, 0))
        facts = vars(links) | {"rows": tuple(rows), "shares": shares}
        return ElasticReport(**facts, springs=springs, defects=of_motion, checked=pieces)

    def save(self, path: StrPath, dt: float = 1e-3) -> None:
        """Write a CSV of the samples: a column a joint or motor, SI units. The file appears complete or not at all."""
        samples = self.sample(dt)
        samples.pop("torque_speed", None)  # shares, one a segment
        header, columns = ["t [s]"], [samples.pop("t")]
        for quantity, values in samples.items():
            header += [f"{quantity} {name}" for name in self._names(quantity)]
            columns += list(values.T)
        rows = ([repr(float(x)) for x in row] for row in zip(*columns, strict=True))
        write_csv(path, [list(map(terminal, header)), *rows])

    @property
    def _order(self) -> int:
        return known_order(self.elastic, self.motion)

    def _jets(self, t: Array) -> list[Array] | None:
        jets = jets_of(self.sigma, self._order)
        return None if jets is None else jets(t)

    def _names(self, quantity: str) -> tuple[str, ...]:
        elastic = self.elastic
        if quantity in ("theta", "dtheta", "d2theta", "deflection"):
            return elastic.theta_names
        if quantity in ("sigma", "dsigma", "tau_sigma"):
            return elastic.sigma_names
        if quantity == "torque_speed" and self.electrical is not None:
            return self.electrical.names(elastic, quantity)
        motors = ("tau_m", "dtau_m", "current", "voltage")
        return elastic.motor_names if quantity in motors else elastic.links.coordinate_names
