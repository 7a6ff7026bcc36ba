"""Whether a planned motion is one of the elastic robot, and keeps its limits: looked at from outside.

The planned motor torques drive the robot's forward dynamics over each piece of the motion, from the planned state at
its start: Runge-Kutta of order 8, steps short for the springs' swings. Planning goes the other way, by inverse
dynamics and the springs' inverse, so what both agree on is no mistake of either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..function import function
from ..planning.report import Report, ReportRow
from ..types import Array, Indices
from .dop853 import _NODES, _STAGES, _WEIGHTS
from .model import ElasticRobot
from .plan_outputs import flat_outputs, jets_of
from .plant import plant
from .reachable import fastest

TOLERANCE = 1e-3  # of a limit, of the size of a motion
_PHASE, _LEAST, _MOST = 0.7, 2, 1200  # [rad] of a swing in a step; steps in a piece; steps in all
_MEANING = {"q": "link position", "v": "link speed", "theta": "motor position", "dtheta": "motor speed"}


@dataclass(frozen=True)
class ElasticReport(Report):
    """A Report with what springs and dynamics add.

    springs: a Row "spring_torque" a joint whose spring has a torque_range. defects: a Row a part of the state ("q",
    "v", "theta", "dtheta", ..): value is the largest distance between planned and integrated motion within a piece,
    limit the size of that part's motion, share their ratio. checked: (pieces that were integrated, all).
    """

    springs: tuple[ReportRow, ...] = ()
    defects: tuple[ReportRow, ...] = ()
    checked: tuple[int, int] = (0, 0)

    @property
    def worst(self) -> float:
        """Largest share of any limit: 1 is on the limit."""
        return max((row.share for row in (*self.rows, *self.springs)), default=0.0)

    def ok(self, tolerance: float = 0.005) -> bool:
        """Whether no limit is exceeded by more than this share of it, and no defect is above a thousandth."""
        return self.worst <= 1 + tolerance and all(row.share <= TOLERANCE for row in self.defects)

    def complaint(self, tolerance: float = TOLERANCE) -> str | None:
        """The worst of what is wrong, in a line; None if nothing is."""
        over = max((*self.rows, *self.springs), key=lambda r: r.share, default=None)
        off = max(self.defects, key=lambda r: r.share, default=None)
        if off is not None and off.share > TOLERANCE:
            return (
                f"the robot does not move as planned: {_MEANING.get(off.quantity, off.quantity)} of {off.joint!r} is "
                f"off by {off.value:.3g} at t = {off.time:.4g} s, {100 * off.share:.2g} % of its motion"
            )
        if over is None or over.share <= 1 + tolerance:
            return None
        if over.quantity == "clearance" and self.clearance:
            return self.clearance.complaint()
        return (
            f"{over.quantity} of {over.joint!r} is {over.value:.6g} at t = {over.time:.4g} s, "
            f"{100 * (over.share - 1):.2g} % over its limit {over.limit:.6g}"
        )

    def __str__(self) -> str:
        lines = [super().__str__()]
        lines += [f"spring torque of {r.joint}: {100 * r.share:.2f} % of {r.limit:.6g}" for r in self.springs]
        if self.defects:
            lines.append("defects: " + ", ".join(f"{r.quantity} {r.value:.1e} ({r.joint})" for r in self.defects))
            lines.append("integrated {} of {} pieces".format(*self.checked))
        return "\n".join(lines)


def spring_rows(elastic: ElasticRobot, found: dict[str, Array], t: Array) -> tuple[ReportRow, ...]:
    """Rows of the springs that have a torque_range; found: outputs of the flat map."""
    rows = []
    for j in elastic.joints:
        span = getattr(j.spring, "torque_range", None)
        if span is None or j.spring.adjusted:
            continue
        z = [found["deflection"][None, :, m] for m in j.theta]
        spring: Any = j.spring
        f = spring._made["torques"].map(len(t))
        torque = f(np.concatenate(z), np.zeros((f.size1_in(1), len(t)))).full().sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(torque >= 0, torque / max(span[1], 0.0), torque / min(span[0], -0.0))
        share = np.where(torque == 0, 0.0, np.where(np.isfinite(share), share, np.inf))
        k = int(np.argmax(share))
        limit = span[1] if torque[k] >= 0 else span[0]
        rows.append(ReportRow("spring_torque", float(share[k]), j.name, float(t[k]), float(torque[k]), float(limit)))
    return tuple(rows)


def defects(plan: Any, robot: ElasticRobot | None = None) -> tuple[tuple[ReportRow, ...], tuple[int, int]]:
    """((Row a part of the state), (pieces integrated, all)) of an ElasticPlan; see ElasticReport.

    robot: the ElasticRobot that the planned torques drive, default the one that was planned for.
    """
    elastic, motion = plan.elastic, plan.motion
    p = plant(robot or elastic)
    ends = planned(plan, np.arange(len(motion.pieces)), np.diff(motion.t))
    first = {n: x[:, 0] for n, x in planned(plan, np.zeros(1, int), np.zeros(1)).items()}
    speed = max(_rate(robot or elastic, first, ends.get("sigma")), 1e-9)
    count = int(np.clip(np.ceil(np.diff(motion.t).max() * speed / _PHASE), _LEAST, _MOST))
    every = max(1, int(np.ceil(len(motion.pieces) * count / _MOST)))
    chosen = np.arange(every // 2, len(motion.pieces), every)
    starts, h = motion.t[chosen], np.diff(motion.t)[chosen] / count
    rates = p.rates.map(len(chosen))
    nodes = [*_NODES[:12], 1.0]
    local = np.array([(i + c) * h for i in range(count) for c in nodes])  # (count * 13, pieces)
    known = planned(plan, np.tile(chosen, len(local)), local.ravel())
    known = {n: x.reshape(len(x), count, len(nodes), len(chosen)) for n, x in known.items()}
    controls = [known["tau_m"], *([known["tau_sigma"]] if "tau_sigma" in known else [])]
    state = np.concatenate([known[n] for n in p.parts])
    x, u = state[:, 0, 0], np.concatenate(controls)
    s = np.concatenate([known["sigma"], known["dsigma"]]) if p.rates.size1_in(2) else np.zeros((0, *u.shape[1:]))
    off = np.zeros((p.size, count, len(chosen)))
    for i in range(count):
        K: list[Any] = []
        for k, row in enumerate(({}, *_STAGES)):
            here = x + h * sum((c * K[j] for j, c in row.items()), np.zeros_like(x))
            K.append(rates(here, u[:, i, k], s[:, i, k]).full())
        x = x + h * sum(c * K[j] for j, c in _WEIGHTS.items())
        off[:, i] = np.abs(x - state[:, i, -1])
    rows = []
    for name, part in p.parts.items():
        miss = np.where(np.isnan(off[part]), np.inf, off[part])
        size = max(float(np.ptp(np.concatenate([ends[name], first[name][:, None]], axis=1), axis=1).max()), 1e-6)
        m, i, k = np.unravel_index(np.argmax(miss), miss.shape)
        joint = elastic.theta_names[m] if name in ("theta", "dtheta") else elastic.links.velocity_names[m]
        at = float(starts[k] + (i + 1) * h[k])
        rows.append(ReportRow(name, float(miss[m, i, k]) / size, joint, at, float(miss[m, i, k]), size))
    return tuple(rows), (len(chosen), len(motion.pieces))


def planned(plan: Any, which: Indices, local: Array) -> dict[str, Array]:
    """{port: (rows, K)} of the flat map of an ElasticPlan at times `local` (K,) [s] after the starts of pieces (K,)."""
    motion, sigma = plan.motion, jets_of(plan.sigma, 0)
    t = motion.t[which] + local
    samples = motion.on_pieces(which, local)
    z = plan.deflections and plan.deflections.at(t)
    jets = sigma(t) if sigma else []
    found = flat_outputs(plan.elastic, samples.derivatives, 0, jets, z)
    held = {"sigma" if not k else "d" * (k > 0) + "sigma": x for k, x in enumerate(jets[:2])}
    return {n: x.T for n, x in (found | held).items()}


def _rate(robot: ElasticRobot, first: dict[str, Array], sigma: Array | None) -> float:
    """Fastest rate [1/s]: the springs' swing at the start, with the largest stiffnesses, their dampers' decay, or the
    rise of motors' and links' friction."""
    x = {n: first[n] for n in ("q", "theta")}
    swing = fastest(robot, x, np.zeros(0) if sigma is None else sigma.max(axis=1))[0]
    rise = robot.motor_friction / robot.friction_smoothing + robot.motor_damping
    inertia = np.diag(robot.motor_inertia)
    light = np.diag(np.linalg.inv(function(robot.links, "mass_matrix")(x["q"]).full()))
    dampers = [j.spring.damping * (1 / inertia[m] + light[j.v]) for j in robot.joints for m in j.theta]
    links = robot.link_friction / robot.link_smoothing + robot.link_damping
    links[list(robot.rigid)] += rise[list(robot.rigid_motors)]
    motors = (rise[m] / b for m, b in zip(robot.elastic_motors, inertia, strict=True))
    return max(swing, *dampers, *(links * light), *motors)
