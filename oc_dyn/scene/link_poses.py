"""Where links are at many configurations, as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import casadi as ca
import numpy as np

from ..kinematics.recursive_body import body_poses, frame_in_body
from ..lie import se3
from ..model.cache import cached
from ..model.canonical import canonical
from ..model.robot import Robot
from ..types import Array


def link_poses(robot: Robot, links: Iterable[str], q: Array) -> dict[str, Array]:
    """{link: matrices (N, 4, 4) in the root frame} at configurations q (nq, N). Raises UnknownName."""
    names = tuple(links)
    f = cached(robot, ("link_poses", names), lambda: _poses_of_links(robot, names))
    found = np.array(f(q), float).T.reshape(q.shape[1], len(names), 4, 3)
    out = np.tile(np.eye(4), (len(names), q.shape[1], 1, 1))
    out[:, :, :3, :] = found.transpose(1, 0, 3, 2)
    return dict(zip(names, out, strict=True))


def _poses_of_links(robot: Robot, names: Sequence[str]) -> ca.Function:
    """Function q -> (12 links,): the first three rows of their matrices, column by column."""
    model, q = canonical(robot), ca.SX.sym("q", robot.nq)
    bodies, columns = body_poses(model, q), []
    for name in names:
        i, seen = frame_in_body(model, robot.frame(name))
        R, p = se3.compose(bodies[i], seen)
        columns.append(ca.vec(ca.horzcat(R, p)))
    return ca.Function("link_poses", [q], [ca.densify(ca.SX(ca.vertcat(ca.SX(0, 1), *columns)))])
