"""Where the drives of an elastic robot sit: at the coordinates of its links, or, of robots with loops, at joints of the
tree, whose motion follows from the loops. Elsewhere rows of joints are those of the drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, UnknownName
from ..function import function
from ..loops.closing import closing
from ..loops.implicit import motion
from ..loops.joint_motion import joint_matrix, joint_motion
from ..model.assembly import rank_of
from ..model.loops import LoopRobot
from ..model.robot import Joint, Robot
from .coupling import rigid_rates
from .potentials import link_load, links_loaded
from .read_springs import ONE_COORDINATE


@dataclass(frozen=True, eq=False)
class DriveJoints:
    """What the readers of springs and motors see of a robot with loops: the joints that have drives, in their order,
    with their rows among the drives."""

    name: str
    joints: tuple[Joint, ...]
    tree: Robot

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the drives."""
        return tuple(j.name for j in self.joints)

    def joint(self, name: str) -> Joint:
        """A joint of the tree."""
        return self.tree.joint(name)


def drive_joints(robot: Robot, actuated: Sequence[str] | None, problems: list[str]) -> tuple[Any, tuple[str, ...]]:
    """(robot, or DriveJoints of it; names of the joints of the tree that have drives, () where these are the robot's
    own coordinates)."""
    if actuated is None:
        return robot, ()
    if not isinstance(robot, LoopRobot):
        raise ShapeError("elastic_robot: actuated is for robots with loops; drives of others are at all their joints")
    names = (actuated,) if isinstance(actuated, str) else actuated
    if not isinstance(names, (tuple, list)) or not all(isinstance(x, str) for x in names):
        raise ShapeError(f"elastic_robot: actuated is {actuated!r}, expected names of joints")
    names = tuple(names)
    fit = [j.name for j in robot.tree.joints if j.kind in ONE_COORDINATE]
    for name in names:
        if name not in fit:
            raise UnknownName(f"joint of {robot.name} that can have a drive (of one coordinate)", name, fit)
    if len(set(names)) < len(names):
        problems.append(f"actuated names {next(x for x in names if names.count(x) > 1)!r} twice")
    elif len(names) != robot.nv:
        problems.append(
            f"actuated names {len(names)} joints, but {robot.nv} velocities are independent: motor torques follow from "
            "a motion where there is one drive for each"
        )
    else:
        G = np.array(motion(robot, 0, 0)(robot.home))
        if rank_of(G[robot.rows("v", names), :]) < robot.nv:
            problems.append(f"drives at {', '.join(names)} do not move all of its {robot.nv} independent velocities")
    seen = tuple(replace(robot.tree.joint(name), q_index=k, v_index=k) for k, name in enumerate(names))
    return DriveJoints(robot.name, seen, robot.tree), names


def at_drives(elastic: Any, position: Sequence[Any]) -> list[Any]:
    """[x, x', ...] of the drives from [q, v, ...] of the links, columns of expressions."""
    if not elastic.drives:
        return list(position)
    return joint_motion(elastic.links, elastic.drives, len(position) - 1).call(list(position))[1:]


def speeds(elastic: Any, q: Any, v: Any) -> Any:
    """(drives,) velocities of the drives, from q and v of the links."""
    return at_drives(elastic, [q, v])[1] if elastic.drives else v


def generalised(elastic: Any, q: Any, torques: Any) -> Any:
    """(nv,) forces on the links' velocities of torques (drives,)."""
    return joint_matrix(elastic.links, elastic.drives)(q).T @ torques if elastic.drives else torques


def drive_torques(
    elastic: Any, order: int = 0, method: str | None = None, derivatives: str = "ad", external_wrenches: bool = False,
) -> ca.Function:  # fmt: skip
    """Inverse dynamics of the links with their friction and parallel springs, its torques those of the drives."""
    more: dict[str, Any] = {"actuated": elastic.drives} if elastic.drives else {}
    more |= {"external_wrenches": True} if external_wrenches else {}
    plain = function(
        elastic.links, "inverse_dynamics", order=order, method=method, derivatives=derivatives, **more,
    )  # fmt: skip
    if not (links_loaded(elastic) or _carries(elastic)):
        return plain
    key = ("drive_torques", order, method, derivatives, external_wrenches)
    return _kept(elastic, key, lambda: _with_taken(elastic, plain, order, derivatives))


def accelerations(elastic: Any, order: int = 0, method: str | None = None) -> ca.Function:
    """Forward dynamics of the links with their friction and parallel springs from the torques of the drives; with loops
    `method` counts for nothing."""
    if not links_loaded(elastic):
        return _frictionless(elastic, order, method)
    return _kept(elastic, ("accelerations", order, method), lambda: _less_taken(elastic, order, method))


def _carries(elastic: Any) -> bool:
    """Whether links carry motors of rigid joints, which are a part of their inertia."""
    return elastic.coupling is not None and elastic.coupling.on_links


def _kept(elastic: Any, key: tuple[Any, ...], make: Any) -> ca.Function:
    """What make() gave when it was first asked for: it depends on the robot and the key alone."""
    if key not in elastic._made:
        elastic._made[key] = make()
    return elastic._made[key]


def _frictionless(elastic: Any, order: int, method: str | None) -> ca.Function:
    more: dict[str, Any] = {"actuated": elastic.drives} if elastic.drives else {}
    method = None if isinstance(elastic.links, LoopRobot) else method
    return function(elastic.links, "forward_dynamics", order=order, method=method, **more)


def _symbols_of(f: ca.Function, derivatives: str = "ad") -> list[Any]:
    """Symbols of the graph that a Function is made of; of MX, where its own derivatives have to be seen."""
    made = ca.SX if f.is_a("SXFunction") and derivatives == "ad" else ca.MX
    return [made.sym(name, *f.size_in(name)) for name in f.name_in()]


def _with_taken(elastic: Any, plain: ca.Function, order: int, derivatives: str) -> ca.Function:
    """Inverse dynamics, and with it the torques that friction and parallel springs take from the links."""
    x = _symbols_of(plain, derivatives)
    motion = x[: order + 3]  # wrenches come behind
    taken = link_load(elastic, at_drives(elastic, motion[:-1]))
    if _carries(elastic):
        taken = [f + more for f, more in zip(taken, rigid_rates(elastic.coupling, motion), strict=True)]
    torques = [tau + f for tau, f in zip(plain.call(x), taken, strict=True)]
    return ca.Function(plain.name(), x, torques, plain.name_in(), plain.name_out())


def _less_taken(elastic: Any, order: int, method: str | None) -> ca.Function:
    """Forward dynamics with friction and parallel springs, whose derivatives depend on accelerations of lower
    orders."""
    plain = [_frictionless(elastic, k, method) for k in range(order + 1)]
    x = _symbols_of(plain[-1])
    position, effort = x[:2], []
    found: list[Any] = []
    for k, torque in enumerate(x[2:]):
        effort.append(torque - link_load(elastic, at_drives(elastic, [*position, *found]))[k])
        found = plain[k].call([*position, *effort])
    outputs = ca.cse(list(found)) if isinstance(x[0], ca.SX) else found
    return ca.Function(plain[-1].name(), x, outputs, plain[-1].name_in(), plain[-1].name_out())


def closed_state(elastic: Any, v: Any, dv: Any, wrenches: Sequence[Any] = ()) -> tuple[Any, ...]:
    """(x, dx, position, speed, torques): a symbol for all coordinates, closed where there are loops, its rate, and
    positions, velocities and torques (drives,) of the drives, expressions of it and of v and dv of the links.

    wrenches: [w_ext] of what acts from outside, () for nothing. Loops stay closed along dx, so that any time derivative
    is exact, and nothing of `closing` is differentiated.
    """
    links = elastic.links
    if not isinstance(links, LoopRobot):
        x = ca.SX.sym("q", links.nq)
        torques = drive_torques(elastic, external_wrenches=bool(wrenches)).call([x, v, dv, *wrenches])[0]
        return x, links.configuration_rate(x, v), x, v, torques
    tree, names = links.tree, elastic.drives or links.independent
    x, rows = ca.SX.sym("q_tree", tree.nq), links.rows("v", names)
    v_tree, dv_tree, G, _ = motion(links, 2, 1).call([x, v, dv])
    own = G.T @ function(tree, "inverse_dynamics")(x, v_tree, dv_tree)
    torques = ca.solve(ca.densify(G[rows, :].T), own) if elastic.drives else own
    position = x[links.rows("q", names)]
    torques = torques + link_load(elastic, [position, v_tree[rows]])[0] if links_loaded(elastic) else torques
    return x, tree.configuration_rate(x, v_tree), position, v_tree[rows], torques


def closed(elastic: Any, q: Any) -> Any:
    """All coordinates, from q of the links."""
    return closing(elastic.links)(q, elastic.links.home)[0] if isinstance(elastic.links, LoopRobot) else q
