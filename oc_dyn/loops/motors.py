"""Torques of motors at joints of the tree, from and to generalised forces: option actuated.

tau = G_a^T tau_a, G_a the rows of G of the joints with motors. Of more motors than independent velocities, tau_a are
those with the least tau_a^T W tau_a; tau_a = W^-1 G_a x, (G_a^T W^-1 G_a) x = tau, order by order with one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..lie.jets import product_at
from ..lie.leibniz import product_derivative
from ..model.assembly import rank_of
from ..model.loops import LoopRobot
from ..registry import Port
from .implicit import motion

_OF = ("inverse_dynamics", "forward_dynamics")


@dataclass(frozen=True)
class Motors:
    """rows: of the tree's velocities; names: of these; weighted: whether the port weights is there."""

    rows: tuple[int, ...]
    names: tuple[str, ...]
    weighted: bool

    @staticmethod
    def of(robot: LoopRobot, quantity: str, own: dict[str, Any]) -> Motors | None:
        """Of the options actuated and weighted; None without."""
        joints, weighted = own.get("actuated"), own.get("weighted", False)
        if joints is None:
            if weighted:
                raise ShapeError(f"{quantity}: weighted is of motors; give actuated=(joint, ...)")
            return None
        if quantity not in _OF:
            raise ShapeError(f"{quantity}: actuated is an option of {' and '.join(_OF)} alone")
        if not isinstance(weighted, bool) or (weighted and quantity != "inverse_dynamics"):
            raise ShapeError(f"{quantity}: weighted is {weighted!r}, expected True or False, of inverse_dynamics alone")
        joints = (joints,) if isinstance(joints, str) else tuple(joints) if isinstance(joints, (tuple, list)) else ()
        if not joints or len(set(joints)) < len(joints):
            raise ShapeError(f"{quantity}: actuated is {own['actuated']!r}, expected names of joints, each once")
        rows = tuple(robot.rows("v", joints))
        names = tuple(robot.tree.velocity_names[k] for k in rows)
        if quantity == "inverse_dynamics":
            _check_enough(robot, rows, names)
        return Motors(rows, names, weighted)

    def ports(self, both: tuple[list[Port], list[Port]]) -> tuple[list[Port], list[Port]]:
        """The ports with tau of the motors, and that of the weights."""
        inputs, outputs = ([self._port(p) for p in some] for some in both)
        if self.weighted:
            meaning = "weights of the squares of the torques, above zero"
            inputs = [*inputs, Port("weights", (len(self.rows), 1), "1", meaning, self.names)]
        return inputs, outputs

    def _port(self, p: Port) -> Port:
        if p.name.lstrip("d0123456789") != "tau":
            return p
        return replace(p, shape=(len(self.rows), 1), rows=self.names, meaning=p.meaning.replace("joint", "motor", 1))

    def forces(self, G: list[Any], T: list[Any], k: int) -> Any:
        """Coefficient k of G_a^T tau_a, lists of Taylor coefficients."""
        return product_at([x[list(self.rows), :].T for x in G[: k + 1]], T, k, lambda N, t: N @ t)

    def torques(self, G: list[Any], tau: list[Any], weights: Any) -> list[Any]:
        """Derivatives of tau_a from those of G and of tau."""
        N = [x[list(self.rows), :].T for x in G]
        square = len(self.rows) == N[0].shape[0]
        W = ca.SX.eye(len(self.rows)) if weights is None else ca.diag(1 / weights)
        right = None if square else [W @ x.T for x in N]
        A = N if right is None else [product_derivative(N, right, k) for k in range(len(tau))]
        Q, R = ca.qr(ca.densify(A[0]))
        x: list[Any] = []
        for k in range(len(tau)):
            b = tau[k]
            for j in range(1, k + 1):
                b = b - comb(k, j) * (A[j] @ x[k - j])
            x.append(ca.solve(R, Q.T @ b))
        return x if right is None else [product_derivative(right, x, k) for k in range(len(tau))]


def _check_enough(robot: LoopRobot, rows: tuple[int, ...], names: tuple[str, ...]) -> None:
    G = np.array(motion(robot, 0, 0)(robot.home))
    rank = rank_of(G[list(rows), :])
    if rank < robot.nv:
        problem = f"motors at {', '.join(names) or 'no joint'} move {rank} of its {robot.nv} independent velocities"
        raise ModelError(robot.name, [f"{problem} at home; name more joints in actuated"])
