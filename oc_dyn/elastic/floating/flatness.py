"""Where an elastic robot on a floating base is flat: where its contacts can give any wrench on the base.

The outputs are the motion q(t) of the whole robot and the forces f(t) at its contacts, three or four and two times
differentiable. Of them theta and tau_m follow algebraically, whatever the phase. But they are not free: the rows of
the base, which no motor drives,

    h_base(q, v, dv) = G(q) f,    G = the base's rows of J(q)^T,

bind them. Where G has full rank, every motion has forces that satisfy these equations, found algebraically, and the
robot is flat: free outputs are the motion and 3 k - 6 internal forces. Where G lacks rank, as on two feet or in
flight, one equation of second order per missing rank binds the motion itself (the momentum about the line of the feet;
in flight that of the whole robot, which is not integrable): motions have to be found by integration or a planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError, ShapeError
from ...kinematics.contact import contact_points
from ...model.robot import Robot
from ...numbers import shortened
from ...types import Array, Numbers
from ..model import ElasticRobot

_RANK = 1e-9  # of the largest singular value, below which one counts as zero


@dataclass(frozen=True, eq=False)
class Flatness:
    """What contacts can do for a base at a configuration. rank: of G. singular_values (6,), largest first: forces per
    wrench at the base, moments per length. missing (6, 6 - rank): columns are wrenches [moment; force] at the base, in
    its axes, that no forces give. internal: how many forces do nothing to the base."""

    rank: int
    singular_values: Array
    missing: Array
    internal: int

    @property
    def flat(self) -> bool:
        """Whether any motion has forces that fit."""
        return self.rank == len(self.singular_values)

    def __str__(self) -> str:
        if self.flat:
            return f"flat: any motion of the robot has contact forces that fit, with {self.internal} internal ones free"
        n = len(self.singular_values) - self.rank
        return f"not flat: {n} of the base's equations bind the motion itself, as contacts give a rank of {self.rank}"


def flatness(elastic: ElasticRobot, contacts: Sequence[str], q: Numbers) -> Flatness:
    """Flatness of a robot with a free joint at q (nq,), frames `contacts` being held to the ground as points."""
    check_floating("flatness", elastic)
    contacts = contact_names("flatness", contacts)
    G = np.array(base_map(elastic, contacts)(_configuration(elastic, q)))
    U, s, _ = np.linalg.svd(G) if G.shape[1] else (np.eye(len(G)), np.zeros(0), None)
    s = np.concatenate([s, np.zeros(len(G) - len(s))])
    rank = int(np.sum(s > _RANK * max(s[0], 1e-300)))
    return Flatness(rank, s, U[:, rank:], G.shape[1] - rank)


def base_map(elastic: ElasticRobot, contacts: Sequence[str]) -> ca.Function:
    """casadi.Function q -> G (6, 3 k), the base's rows of J^T, of forces in root axes."""
    check_floating("base_map", elastic)
    q, v = ca.SX.sym("q", elastic.nq), ca.SX.sym("v", elastic.nv)
    dp = ca.vec(contact_points(elastic.links, tuple(contacts))(q, v)[1])
    G = ca.densify(ca.jacobian(dp, v)[:, list(elastic.unactuated)].T)
    return ca.Function("base_map", [q], [G], ["q"], ["G"])


def contact_names(what: str, contacts: Any) -> tuple[str, ...]:
    """Names of frames in contact, each once; ShapeError for anything else."""
    if not isinstance(contacts, (tuple, list)) or not all(isinstance(x, str) for x in contacts):
        raise ShapeError(f"{what}: contacts is {shortened(contacts)}, expected names of frames, () in flight")
    if len(set(contacts)) < len(contacts):
        raise ShapeError(f"{what}: contacts is {shortened(contacts)}, which names a frame twice")
    return tuple(contacts)


def check_floating(what: str, elastic: ElasticRobot) -> None:
    """Refuse what has no free joint, or is the complete model."""
    if not isinstance(elastic, ElasticRobot):
        hint = "make one by od.elastic.elastic_robot"
        raise ModelError(what, [f"it is for elastic robots, got {type(elastic).__name__}; {hint}"])
    if not elastic.unactuated:
        raise ModelError(elastic.name, [f"{what} is for robots with a free joint; this one stands on a fixed base"])


def check_full_rank(what: str, robot: Robot, elastic: ElasticRobot, contacts: Sequence[str]) -> None:
    """Refuse contacts that give no full rank at any configuration."""
    best = max((flatness(elastic, contacts, robot.random_configuration(k)) for k in range(3)), key=lambda x: x.rank)
    if not best.flat:
        text = f"{what}: contacts at {', '.join(contacts) or 'no frame'} give forces of rank {best.rank} to the base, "
        text += f"which has {len(best.singular_values)} equations: the robot is not flat there, its motion is bound by "
        text += "differential equations; plan it, or integrate it, and see od.elastic.motion_error for what is off"
        raise ModelError(elastic.name, [text])


def _configuration(elastic: ElasticRobot, q: Numbers) -> Array:
    return validation.numbers("flatness: q", q, elastic.nq)
