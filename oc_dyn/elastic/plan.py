"""A planned motion of an elastic robot: what springs and motors do along it, and what it asks of each limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..files import write_csv
from ..function import function
from ..planning.report import ReportRow
from ..planning.trajectory import Trajectory
from ..scene.scene import Scene
from ..text import terminal
from ..types import Array, Numbers, StrPath
from .drives import at_drives
from .model import ElasticRobot
from .plan_check import ElasticReport, defects, spring_rows

OUTPUTS = {"motor_torque": "tau_m", "motor_torque_rate": "dtau_m", "motor_speed": "dtheta", "deflection": "deflection"}


@dataclass(eq=False)
class ElasticPlan:
    """A planned motion of an elastic robot.

    motion: Trajectory of the links, with their limits. limits: {"motor_torque", "motor_torque_rate", "motor_speed",
    "deflection": (n,)}, those that were given. objective: the time [s], or the loss. sigma: stiffnesses held constant,
    None where none varies. info: iterations, rounds, shares.
    """

    elastic: ElasticRobot
    motion: Trajectory
    limits: dict[str, Array]
    objective: float
    info: dict[str, Any]
    sigma: Array | None = None

    @property
    def duration(self) -> float:
        """Time from start to end [s]."""
        return self.motion.duration

    def sample(self, dt: float = 1e-3) -> dict[str, Array]:
        """{"t": (K,), "q", "v", ... of the links, "theta", "dtheta", "tau_m", "dtau_m", "deflection": (K, n)} every
        dt [s]."""
        samples = self.motion.sample(dt)
        return {"t": samples.t, **flat_outputs(self.elastic, samples.derivatives, self._order, self._jets(samples.t))}

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
        found = flat_outputs(self.elastic, samples.derivatives, self._order, self._jets(samples.t))
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
        springs = spring_rows(self.elastic, found, samples.t)
        of_motion, pieces = defects(self.elastic, self.motion, self.sigma, robot) if dynamics else ((), (0, 0))
        facts = vars(links) | {"rows": tuple(rows), "shares": shares}
        return ElasticReport(**facts, springs=springs, defects=of_motion, checked=pieces)

    def save(self, path: StrPath, dt: float = 1e-3) -> None:
        """Write a CSV of the samples: a column a joint or motor, SI units. The file appears complete or not at all."""
        samples = self.sample(dt)
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
        if self.sigma is None:
            return None
        return [np.tile(self.sigma, (len(t), 1))] + [np.zeros((len(t), len(self.sigma)))] * (2 + self._order)

    def _names(self, quantity: str) -> tuple[str, ...]:
        if quantity in ("theta", "dtheta", "deflection"):
            return self.elastic.theta_names
        return self.elastic.motor_names if quantity in ("tau_m", "dtau_m") else self.elastic.links.coordinate_names


def known_order(elastic: ElasticRobot, motion: Trajectory) -> int:
    """1 if the motor torque's rate is bounded along a Trajectory of the links, else 0."""
    return int(motion.continuity >= elastic.continuity("torque_rate") - 1)


def outputs_along(
    elastic: ElasticRobot, motion: Trajectory, t: Numbers, sigma: Sequence[Array] | None = None,
) -> dict[str, Array]:  # fmt: skip
    """Outputs of the flat map along a Trajectory of the links at times t (K,); sigma: [sigma, dsigma, ...] (K, n)."""
    derivatives = motion.sample(np.asarray(t, float)).derivatives
    return flat_outputs(elastic, derivatives, known_order(elastic, motion), sigma)


def flat_outputs(
    elastic: ElasticRobot, derivatives: Sequence[Array], order: int = 0, sigma: Sequence[Array] | None = None,
) -> dict[str, Array]:  # fmt: skip
    """{"q", "v", ..., "theta", "dtheta", "tau_m", "deflection": (K, n)}, with "dtau_m" at order 1, by the flat map.

    derivatives: [q, v, ...] (K, n), zero where they end. sigma: [sigma, dsigma, ...] (K, n) of robots that vary their
    stiffness.
    """
    flat = function(elastic, "elastic_flat_map", order=order)
    names = [n for n in flat.name_in() if "sigma" not in n]
    zeros = np.zeros_like(derivatives[0])
    given = {n: (derivatives[k] if k < len(derivatives) else zeros).T for k, n in enumerate(names)}
    given |= {n: x.T for n, x in zip([n for n in flat.name_in() if "sigma" in n], sigma or [], strict=False)}
    found = flat(**given)
    out = dict(zip(names, derivatives, strict=False))
    out |= {n: np.array(found[n]).T for n in ("theta", "dtheta", "tau_m", "dtau_m") if n in found}
    position = np.array(at_drives(elastic, [ca.DM(out["q"].T)])[0]).T
    out["deflection"] = out["theta"] - position[:, deflected(elastic)]
    return out


def deflected(elastic: ElasticRobot) -> list[int]:
    """Rows of q that the rows of theta belong to."""
    return [j.q for j in elastic.joints for _ in j.theta]
