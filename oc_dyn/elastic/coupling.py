"""The complete model: inertial couplings between motors and links."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import casadi as ca
import numpy as np

from .. import validation
from ..errors import ModelError, ShapeError
from ..function import function
from ..lie.time_derivatives import time_derivatives
from ..model.robot import Robot
from ..numbers import are_sane, as_floats
from ..subexpressions import merged
from ..types import Numbers
from .callables import FAILURES, failure


@dataclass(frozen=True)
class Rows:
    """Which velocity each motor is at: columns (tau_m,) rows of v; elastic, rigid: motors (rows of tau_m) of theta, and
    those that drive links themselves."""

    nv: int
    columns: tuple[int, ...]
    elastic: tuple[int, ...]
    rigid: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Coupling:
    """Kinetic energy q'^T S(q) [theta'; v of rigid joints] of motors that are carried by the links before them.

    full: casadi.Function q -> S (v, tau_m); matrix: its columns of elastic joints, (v, theta). forces: casadi.Function
    (q, v, dtheta, d2theta) -> what these add on the link side, S theta'' + S' theta' - d(q'^T S theta')/dq; on the
    motors' side they add the time derivative of momentum(q, v) = S^T q'. needs: for each row of the links {theta: 1 or
    2}, the derivative of that theta in it. Columns of rigid joints, whose motors move with their links, are parts of
    the links: rigid_forces (q, v, dv), rigid_mass (q) and rigid_energy (q, v) are what they add there.
    """

    full: ca.Function
    rows: Rows
    matrix: ca.Function
    forces: ca.Function
    momentum: ca.Function
    needs: tuple[dict[int, int], ...]
    rigid_forces: ca.Function
    rigid_mass: ca.Function
    rigid_energy: ca.Function

    @staticmethod
    def of(rows: Rows, matrix: Any, problems: list[str]) -> Coupling | None:
        """From a matrix, a casadi.Function or a callable q -> S; None, with the problem noted, if it is not one."""
        n, motors = rows.nv, len(rows.elastic)
        q, v, dv = (ca.SX.sym(name, n) for name in ("q", "v", "dv"))
        dtheta, d2theta = (ca.SX.sym(name, motors) for name in ("dtheta", "d2theta"))
        S = _checked(rows, matrix, q, problems)
        if S is None:
            return None
        own = S[:, list(rows.elastic)] if rows.elastic else ca.SX(n, 0)
        momentum = own @ dtheta
        forces = own @ d2theta + ca.jtimes(momentum, q, v) - ca.gradient(ca.dot(v, momentum), q)
        forces = merged(ca.simplify(forces))
        needs = _needs(rows, forces, dtheta, d2theta, problems)
        if needs is None:
            return None
        moving = ca.SX(n, n)
        for m in rows.rigid:
            moving[:, rows.columns[m]] += S[:, m]
        energy = ca.dot(v, moving @ v)
        momenta = (moving + moving.T) @ v
        inertial = (moving + moving.T) @ dv + ca.jtimes(momenta, q, v) - ca.gradient(energy, q)
        return Coupling(
            ca.Function("coupling", [q], [S], ["q"], ["S"]),
            rows,
            ca.Function("coupling", [q], [own], ["q"], ["S"]),
            ca.Function("coupling_forces", [q, v, dtheta, d2theta], [forces]),
            ca.Function("coupling_momentum", [q, v], [own.T @ v]),
            needs,
            ca.Function("rigid_forces", [q, v, dv], [merged(ca.simplify(inertial))]),
            ca.Function("rigid_mass", [q], [moving + moving.T]),
            ca.Function("rigid_energy", [q, v], [energy]),
        )

    @property
    def on_links(self) -> bool:
        """Whether motors of rigid joints are among the carried ones."""
        return bool(self.rigid_mass.sparsity_out(0).nnz())

    def scaled(self, factor: float) -> Coupling:
        """The same coupling, S times a factor."""
        made = Coupling.of(self.rows, lambda q: factor * self.full(q), [])
        return cast(Coupling, made)  # a multiple of a matrix that was one

    def check_energy(self, elastic: Any) -> None:
        """Raise ModelError unless the kinetic energy of links and motors is positive at some configurations."""
        M = function(elastic.links, "mass_matrix")
        for seed in range(5):
            q = elastic.links.random_configuration(seed)
            S = np.array(self.matrix(q))
            links = np.array(M(q)) + np.array(self.rigid_mass(q))
            whole = np.block([[links, S], [S.T, elastic.motor_inertia]])
            if np.linalg.eigvalsh(whole).min() <= 0:
                text = (
                    "coupling: the kinetic energy is not positive; S is too large for these masses and motor inertias"
                )
                raise ModelError(elastic.name, [text])


def rigid_rates(coupling: Coupling, V: Any) -> list[Any]:
    """Derivatives 0.. of rigid_forces, two less than V = [q, v, dv, ..]."""
    order = len(V) - 3
    x = [ca.SX.sym("x", coupling.rows.nv) for _ in V]
    rates = time_derivatives(coupling.rigid_forces(*x[:3]), order, list(pairwise(x)), cse=True)
    return ca.Function("rigid", x, rates).call(list(V))


def _checked(rows: Rows, matrix: Any, q: Any, problems: list[str]) -> Any:
    """S as an expression of q; None, with the problem noted, if it is not one."""
    n, motors = rows.nv, len(rows.columns)
    try:
        S = matrix(q) if callable(matrix) else ca.DM(np.array(as_floats("coupling", matrix)))
        S = ca.sparsify(ca.SX(S[0] if callable(matrix) and isinstance(S, (tuple, list)) else S))
        at_zero = ca.Function("S", [q], [S])(0)
    except FAILURES as error:
        wanted = f"a matrix ({n}, {motors}) of numbers, or a function q -> S(q)"
        problems.append(f"coupling: expected {wanted}: {failure(error)}")
        return None
    if not at_zero.is_regular():
        problems.append("coupling: S has entries at q = 0 that are not finite")
        return None
    if S.shape != (n, motors):
        problems.append(f"coupling: S has shape {S.shape}, expected ({n}, {motors}): velocities, motors")
        return None
    rigid = {rows.columns[m] for m in rows.rigid}
    for i, m in zip(*S.sparsity().get_triplet(), strict=True):
        if int(i) >= rows.columns[int(m)] and int(i) not in rigid:
            problems.append(
                f"coupling: S has an entry in row {int(i) + 1}, column {int(m) + 1}, but must be strictly upper "
                "triangular: a motor is carried by the links before its joint alone"
            )
            return None
    return S


def _needs(
    rows: Rows, forces: Any, dtheta: Any, d2theta: Any, problems: list[str]
) -> tuple[dict[int, int], ...] | None:
    """For each row of the links {theta: its derivative}; None, with the problem noted, where S(q) is that of no arm."""
    first, second = (ca.jacobian_sparsity(forces, x) for x in (dtheta, d2theta))
    rigid = {rows.columns[m] for m in rows.rigid}
    needs = []
    for i in range(rows.nv):
        row = {j: 1 for j in range(len(rows.elastic)) if first.has_nz(i, j)}
        row |= {j: 2 for j in range(len(rows.elastic)) if second.has_nz(i, j)}
        needs.append(row)
        behind = [j for j in row if rows.columns[rows.elastic[j]] <= i]
        if behind and i not in rigid:
            problems.append(f"coupling: the force on joint {i + 1} depends on motor {min(behind) + 1}: S(q) of no arm")
            return None
    return tuple(needs)


def motor_coupling(robot: Robot, rotor_inertia: Numbers, gear_ratio: Numbers) -> ca.Function:
    """casadi.Function q -> S (v, theta) for motors whose stators stand on the link before the joint, turning about
    axes parallel to the joint's.

    rotor_inertia [kg m^2] about the rotor's axis, gear_ratio (rotor turns per joint turn, with sign): numbers, or one
    per joint. Equation: S_kj = J_j r_j a_j^T w_k, a_j the axis of joint j and w_k the angular velocity of the link
    before it at unit speed of joint k. The rotors' masses and their inertia without spin are taken as parts of those
    links.
    """
    n = robot.nv
    if any(j.nv != 1 or j.kind not in ("revolute", "continuous") for j in robot.joints) or robot.mimics:
        raise ModelError(robot.name, ["motor_coupling is for revolute joints alone"])
    named = (("rotor_inertia", rotor_inertia), ("gear_ratio", gear_ratio))
    J, r = (validation.numbers(f"motor_coupling: {name}", x, n) for name, x in named)
    if not (are_sane(J) and are_sane(r)):
        raise ShapeError(
            f"motor_coupling: rotor_inertia {J.tolist()}, gear_ratio {r.tolist()}, expected finite numbers"
        )
    q = ca.SX.sym("q", n)
    S: Any = [None] * n
    for b in robot.bodies:
        k = b.joint.v_index
        axis = b.rotation @ b.joint.axis  # in the frame of the body before
        if b.parent == 0:
            S[k] = ca.SX(n, 1)
            continue
        carrier = robot.bodies[b.parent - 1].name
        jacobian = function(robot, "frame_jacobian", frame=carrier, representation="body")(q=q)["J"]
        S[k] = ca.sparsify(J[k] * r[k] * (jacobian[:3, :].T @ ca.DM(axis)))
    S = ca.simplify(ca.horzcat(*S))
    return ca.Function("motor_coupling", [q], [_without_noise(S, q)], ["q"], ["S"])


def _without_noise(S: ca.SX, q: ca.SX) -> ca.SX:
    """S without the entries that are rounding errors, and with those that do not depend on q as numbers."""
    f = ca.Function("S", [q], [ca.densify(S)])
    rng = np.random.default_rng(0)
    samples = np.array([np.array(f(rng.uniform(-3, 3, q.numel()))) for _ in range(8)])
    scale = max(np.abs(samples).max(), 1e-300)
    rows = []
    for i in range(S.shape[0]):
        row = []
        for j in range(S.shape[1]):
            x = samples[:, i, j]
            if np.abs(x).max() < 1e-13 * scale:
                row.append(ca.SX(1, 1))
            elif np.ptp(x) < 1e-13 * scale:
                row.append(ca.SX(float(x[0])))
            else:
                row.append(S[i, j])
        rows.append(ca.horzcat(*row))
    return ca.sparsify(ca.vertcat(*rows))
