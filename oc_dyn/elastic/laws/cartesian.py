"""A spring between a frame of a robot and a pose that is wanted, as a potential of the links' position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...errors import ShapeError
from ...function import function
from ...model.robot import Robot
from ...numbers import are_sane
from ...types import Array
from .modes import modal_damping


@dataclass(frozen=True, eq=False)
class CartesianSpring:
    """V(q) = 1/2 p' K p + trace(G (1 - R R_ref')), in world axes: p, R position and rotation of the frame from those at
    q_ref, G = trace(Kr) / 2 - Kr.

    stiffness (6, 6): Kr of rotations, then K of translations; it is the Hessian of V at rest, in the frame's twist.
    V is least where the frame is as wanted, whatever Kr without negative eigenvalues.
    Source of the potential: Bullo and Murray, Proportional derivative control on the Euclidean group, ECC 1995.
    """

    robot: Robot
    frame: str
    stiffness: Array

    @classmethod
    def of(cls, name: str, robot: Robot, frame: str, stiffness: Any) -> CartesianSpring:
        """With the stiffness (6,) or (6, 6), checked."""
        robot.frame(frame)
        K = blocks(f"{name}: stiffness", stiffness)
        return cls(robot, frame, K)

    def jacobian(self, q: Any) -> Any:
        """(6, v) of the frame's twist, in world axes at the frame."""
        return function(self.robot, "frame_jacobian", frame=self.frame, representation="hybrid")(q)

    def force(self, q: Any, q_ref: Any) -> Any:
        """(v,) dV/dq."""
        now, wanted = (function(self.robot, "frame_pose", frame=self.frame)(q=x) for x in (q, q_ref))
        Kr, K = ca.DM(self.stiffness[:3, :3]), ca.DM(self.stiffness[3:, 3:])
        A = now["R"] @ wanted["R"].T @ (0.5 * ca.trace(Kr) * ca.DM.eye(3) - Kr)
        # V' = -trace(skew(w) A), A = R R_ref' G: w times the axial vector of A - A'
        moment = ca.vertcat(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1])
        return self.jacobian(q).T @ ca.vertcat(moment, K @ (now["p"] - wanted["p"]))

    def damping(self, given: Any, inertia: Array, at: Array, ratio: float) -> Array:
        """(6, 6) as given, or by double diagonalisation with the inertia (J M^-1 J')^-1 at a configuration.

        Where the frame cannot move, within a millionth of its largest mobility, nothing is damped.
        """
        if given is not None:
            return blocks("impedance: damping", given)
        J = self.jacobian(at).full()
        mobility = J @ np.linalg.solve(inertia, J.T)
        values, axes = np.linalg.eigh(mobility)
        free = values > 1e-6 * values[-1]
        Q = axes[:, free]
        own = np.diag(1 / values[free])
        return Q @ modal_damping(own, Q.T @ self.stiffness @ Q, ratio) @ Q.T


def blocks(what: str, value: Any) -> Array:
    """(6, 6) symmetric positive semidefinite matrix of two blocks from (6,) or (6, 6)."""
    try:
        K = np.asarray(value, float)
    except (TypeError, ValueError):
        K = np.full(0, np.nan)
    K = np.diag(K) if K.shape == (6,) else K
    if K.shape != (6, 6) or not are_sane(K):
        raise ShapeError(f"{what}: got {value!r}, expected (6,) or (6, 6) finite numbers: rotations, then translations")
    size = np.abs(K).max()
    if np.abs(K - K.T).max() > 1e-9 * size or np.linalg.eigvalsh(K)[0] < -1e-9 * size:
        raise ShapeError(f"{what}: got {K.tolist()}, expected a symmetric matrix without negative eigenvalues")
    if np.abs(K[:3, 3:]).max() > 0:
        raise ShapeError(f"{what}: rotations and translations are coupled, expected two blocks of 3 x 3")
    return 0.5 * (K + K.T)
