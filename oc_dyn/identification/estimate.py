"""Inertial parameters from samples of a motion and its torques: base parameters with their confidence intervals, and
full parameters that bodies can have and that explain the torques as well."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, SolveError
from ..friction import SMOOTHING
from ..interrupts import TIME_LIMIT, iteration_watch, solver_run
from ..model.canonical import canonical
from ..model.quaternions import check_quaternions, quaternions
from ..model.read_only import ReadOnlyArrays
from ..model.robot import Robot, check_robot
from ..numbers import HUGE, are_sane, as_floats
from ..regressor.base_parameters import BaseParameters, base_parameters
from ..types import Array, Numbers
from ..validation import flag, number
from ..working_axes.assembly import armatures
from .excitation import stacked
from .physical import coordinates, divergence, nearest_physical, parameters_of

_QUIET = 1e-3  # of a joint's rms torque: less noise than this is taken for this much, so that weights stay finite
_WEAK = 1e-7  # of the largest singular value of the scaled rows: below it a motion says nothing


@dataclass(frozen=True, eq=False)
class Identification(ReadOnlyArrays):
    """What identify() found.

    base: which base parameters. values, interval (rank,): weighted least squares and half widths of its confidence
    intervals. covariance (rank, rank). noise (nv,): standard deviation of the torques about the fit. parameters
    (10 bodies,): physically consistent, ready for the port params. damping, friction (nv,): viscous and Coulomb, zero
    unless asked for. physical_fit: how much more the squared error, in units of the noise, the parameters leave than
    least squares, divided by the number of base parameters; about 1 or less where they are compatible.
    """

    base: BaseParameters
    values: Array
    interval: Array
    covariance: Array
    noise: Array
    parameters: Array
    damping: Array
    friction: Array
    physical_fit: float

    def predict(self, q: Numbers, v: Numbers, dv: Numbers) -> Array:
        """(nv, samples) torques of the physically consistent parameters, armature and friction included."""
        q, v, dv = _motion("predict", self.base.robot, q, v, dv)
        W = stacked(self.base.regressor(), q, v, dv)
        tau = (W @ self.base.of(self.parameters)).reshape(q.shape[1], -1).T
        rotors = np.array(armatures(canonical(self.base.robot))).reshape(-1, 1)
        return tau + rotors * dv + self.damping[:, None] * v + self.friction[:, None] * np.tanh(v / SMOOTHING)


def identify(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    dv: Numbers,
    tau: Numbers,
    *,
    prior: Numbers | None = None,
    friction: bool = False,
    confidence: float = 0.95,
    trust: float = 0.1,
) -> Identification:
    """Identification from samples q (nq, N), v, dv, tau (nv, N), one per column.

    prior: (10 bodies,) parameters that decide where the samples do not, default the robot's own; they may be
    unphysical: they are first made physical. trust: weight of their distance against the squared error in units
    of the noise.
    friction: identify viscous and Coulomb friction of every joint too; otherwise tau must be without. Armature is
    known: that of the robot. confidence: of the intervals.
    Joints are weighted by the noise that a first fit leaves. Errors in q, v, dv are not accounted for: filter first.
    Raises ShapeError; SolveError where the motion does not tell all base parameters, or IPOPT fails.
    """
    check_robot("identify", robot)
    base = base_parameters(robot)
    q, v, dv, tau = _motion("identify", robot, q, v, dv, tau=tau)
    friction, trust = flag("identify: friction", friction), number("identify: trust", trust, above=0)
    confidence = number("identify: confidence", confidence, above=0)
    if confidence >= 1:
        raise ShapeError(f"identify: confidence is {confidence:g}, expected a number between 0 and 1")
    prior = robot.parameters if prior is None else as_floats("identify: prior", prior).ravel()
    if prior.shape != robot.parameters.shape:
        raise ShapeError(f"identify: prior has {prior.size} entries, expected {robot.parameters.size}")
    if not are_sane(prior):
        name = robot.parameter_names[int(np.flatnonzero(~(np.abs(prior) < HUGE))[0])]
        raise ShapeError(f"identify: prior has entries that are not finite, of {name} first; give a guess of each")

    W, y = _rows(robot, base, q, v, dv, tau, friction)
    _checked_excitation(base, W)
    nv = robot.nv
    weight = np.ones(nv)
    for _ in range(2):  # the second time with the noise of each joint that the first one found
        scale = np.tile(1 / weight, q.shape[1])
        R, z, x = _least_squares(W * scale[:, None], y * scale)
        residual = (y - W @ x).reshape(-1, nv)
        spare = max(1.0, residual.shape[0] - x.size / nv)
        noise = np.sqrt((residual**2).sum(axis=0) / spare)
        weight = np.maximum(noise, _QUIET * np.sqrt(np.mean(tau**2, axis=1)))
        weight = np.where(weight > 0, weight, 1.0)
    inverse = np.linalg.inv(R)
    covariance = inverse @ inverse.T
    half = NormalDist().inv_cdf(0.5 * (1 + confidence)) * np.sqrt(np.diag(covariance))
    parameters, rest, excess = consistent_parameters(base, R, z, x, nearest_physical(prior), trust)
    rank = base.rank
    damping, coulomb = (rest[:nv], rest[nv:]) if friction else (np.zeros(nv), np.zeros(nv))
    return Identification(
        base, x[:rank], half[:rank], covariance[:rank, :rank], noise, parameters, damping, coulomb, excess / rank
    )


def _motion(what: str, robot: Any, q: Any, v: Any, dv: Any, **more: Any) -> tuple[Array, ...]:
    """Samples of q, v, dv and more, as many of each, with quaternions of unit length."""
    given = {"q": (q, robot.nq), "v": (v, robot.nv), "dv": (dv, robot.nv)}
    given |= {name: (x, robot.nv) for name, x in more.items()}
    found = {name: _samples(f"{what}: {name}", x, rows) for name, (x, rows) in given.items()}
    if len({x.shape[1] for x in found.values()}) != 1:
        got = ", ".join(str(x.shape[1]) for x in found.values())
        raise ShapeError(f"{what}: {', '.join(found)} have {got} samples, expected as many of each")
    check_quaternions(f"{what}: q", quaternions(robot), found["q"])
    return tuple(found.values())


def _samples(name: str, x: Any, rows: int) -> Array:
    x = as_floats(name, x)
    if x.ndim != 2 or x.shape[0] != rows or not x.shape[1]:
        raise ShapeError(f"{name}: got shape {x.shape}, expected ({rows}, samples), one or more")
    if not np.all(np.isfinite(x)):
        raise ShapeError(f"{name}: has entries that are not finite; leave those samples out")
    return x


def _rows(
    robot: Robot, base: BaseParameters, q: Array, v: Array, dv: Array, tau: Array, friction: bool
) -> tuple[Array, Array]:
    """Rows of the regressor, sample after sample, and the torques that its parameters make."""
    W = stacked(base.regressor(), q, v, dv)
    y = (tau - np.array(armatures(canonical(robot))).reshape(-1, 1) * dv).T.ravel()
    if friction:
        nv, count = v.shape
        extra = np.zeros((count, nv, 2 * nv))
        for k in range(nv):
            extra[:, k, k], extra[:, k, nv + k] = v[k], np.tanh(v[k] / SMOOTHING)
        W = np.hstack([W, extra.reshape(count * nv, 2 * nv)])
    return W, y


def _checked_excitation(base: BaseParameters, W: Array) -> None:
    length = np.linalg.norm(W, axis=0)
    weak = length <= 1e-12 * length.max()
    if W.shape[0] < W.shape[1]:
        raise SolveError(f"identify: {W.shape[0]} rows for {W.shape[1]} unknowns; give more samples")
    _, s, Vt = np.linalg.svd(W / np.where(weak, 1.0, length), full_matrices=False)
    if weak.any() or s[-1] < _WEAK * s[0]:
        names = [*base.names, *(f"friction {k}" for k in range(W.shape[1] - base.rank))]
        share = np.where(weak, 1.0, np.abs(Vt[-1]))
        shown = [names[k].split()[0] for k in np.argsort(-share)[:3]]
        robot: Any = base.robot
        raise SolveError(
            f"identify: the motion does not tell all base parameters of {robot.name} apart, least of all "
            f"{', '.join(shown)}; see exciting_motion"
        )


def _least_squares(W: Array, y: Array) -> tuple[Array, Array, Array]:
    """(R, z, x): |W x - y|^2 = |R x - z|^2 + constant, and its minimum."""
    Q, R = np.linalg.qr(W)
    z = Q.T @ y
    return R, z, np.linalg.solve(R, z)


def consistent_parameters(
    base: BaseParameters, R: Array, z: Array, x: Array, prior: Array, trust: float
) -> tuple[Array, Array, float]:
    """(parameters, other unknowns, excess of the squared error): near the minimum x of |R x - z|^2, physical.

    Minimises |R x - z|^2 / 2 + trust * divergence(prior) over the log-Cholesky coordinates of all bodies, by IPOPT.
    """
    start = coordinates(prior)
    theta = ca.SX.sym("theta", start.size)
    rest = ca.SX.sym("rest", x.size - base.rank)
    unknown = ca.vertcat(ca.sparsify(ca.DM(base.matrix)) @ parameters_of(theta), rest)
    # R (x - x_min) keeps the numbers small where the noise is
    error = ca.DM(R) @ (unknown - ca.DM(x))
    f = 0.5 * ca.sumsqr(error) + trust * divergence(theta, prior)
    problem = {"x": ca.vertcat(theta, rest), "f": f}
    # rounding errors of the gradient grow with the curvature, which is the square of R
    tol = max(1e-8, 1e-15 * np.linalg.norm(R, 2) ** 2)
    stops = {"tol": tol, "acceptable_tol": 100 * tol, "max_iter": 500}
    options: dict[str, Any] = {"ipopt": {"print_level": 0, "sb": "yes", **stops}, "print_time": False}
    options["iteration_callback"] = iteration_watch()
    solver = ca.nlpsol("physical", "ipopt", problem, options)
    start_rest = np.maximum(x[base.rank :], 0.0)
    reach = np.concatenate([np.full(theta.shape[0], 50.0), np.full(rest.shape[0], np.inf)])
    low = np.concatenate([np.full(theta.shape[0], -50.0), np.zeros(rest.shape[0])])
    with solver_run() as run:
        found = solver(x0=np.concatenate([start, start_rest]), lbx=low, ubx=reach)
    if not solver.stats()["success"]:
        status = TIME_LIMIT if run.timed_out else solver.stats()["return_status"]
        raise SolveError(f"identify: IPOPT stopped with {status} on the physically consistent fit", status=status)
    out = np.array(found["x"]).ravel()
    parameters = np.array(ca.evalf(parameters_of(ca.DM(out[: start.size])))).ravel()
    rest = out[start.size :]
    excess = np.sum((R @ (np.concatenate([base.of(parameters), rest]) - x)) ** 2)
    return parameters, rest, float(excess)
