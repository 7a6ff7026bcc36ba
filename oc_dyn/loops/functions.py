"""od.function for robots with loops: q of the tree is put in as the loops close it."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..derivatives import analytic, without_registered
from ..errors import ShapeError, UnknownName
from ..function import check_analytic, embedded_by, function
from ..model.assembly import closing_blocks, tolerances
from ..model.cache import cached
from ..model.closure import residual, row_owners
from ..model.loops import LoopRobot
from ..model.quaternions import quaternions
from ..model.robot_function import RobotFunction
from ..registry import Port, Quantity, get, methods
from .closing import closing, followed, guess_port, tree_q
from .embedding import METHODS, at_tree, way_of
from .motors import Motors

_REFUSED = ("representation",)


def of_loops(
    robot: LoopRobot, record: Quantity, order: int, method: str | None, name: str, derivatives: str,
    options: tuple[dict[str, Any], dict[str, Any]], ports: tuple[list[Port], list[Port]],
) -> RobotFunction:  # fmt: skip
    """RobotFunction of a quantity of a tree in the robot's own coordinates; see od.function. options: those of the
    quantity, those of robots with loops."""
    settings, own = options
    way_of(record.name)
    method = _checked_method(record, method)
    for key in _REFUSED:
        if settings.get(key) is not None and key in record.options and "frame" not in record.options:
            raise ShapeError(f"{record.name}: {key} is not there for robots with loops; leave it out")
    if derivatives == "analytic":
        return _analytic(robot, record, order, method, name, settings, own)
    if derivatives != "ad":
        raise UnknownName("kind of derivatives", derivatives, ("ad", "analytic"))
    motors = Motors.of(robot, record.name, own)
    inputs, outputs = motors.ports(ports) if motors else ports
    inner = at_tree(robot, record.name, order, method, inputs, outputs, {**settings, "motors": motors}, function)
    guess = [guess_port(robot)] if _flag(record.name, own, "q_guess") else []
    symbols = {p.name: ca.MX.sym(p.name, *p.shape) for p in [*inputs, *guess]}
    q, _ = closing(robot)(symbols["q"], symbols.get("q_guess", robot.home))
    found = inner.call([q, *(symbols[p.name] for p in inputs if p.name != "q")])
    base = ca.Function(name, list(symbols.values()), found, list(symbols), [p.name for p in outputs])
    rows = {p.name: p.rows for p in inputs if p.rows}
    bodies = tuple(b.name for b in robot.bodies)
    columns = {p.name: bodies for p in inputs if p.name.endswith("w_ext")}
    made = RobotFunction(base, rows, columns, rotations=quaternions(robot))
    return made if guess else made.closing_by(closing_check(robot))


def _analytic(robot, record, order, method, name, settings, own):
    """The Function with registered derivatives, in which closing the loops is a call that is not differentiated."""
    check_analytic(record, settings | {k: x for k, x in own.items() if k != "q_guess"})
    plain = function(robot, record.name, order=order, method=method, name=name, **settings, **own)
    kept = {k: x for k, x in settings.items() if k in get(f"{record.name}_adjoint").options}
    kept |= {"q_guess": own.get("q_guess", False)}
    base = analytic(robot, record.name, order, plain, kept, function, constant=("q_guess",))
    return plain.with_base(base, twin=plain.with_base(without_registered(base)))


def _flag(what: str, own: dict[str, Any], key: str) -> bool:
    value = own.get(key, False)
    if not isinstance(value, bool):
        raise ShapeError(f"{what}: {key} is {value!r}, expected True or False")
    return value


def _checked_method(record: Quantity, method: str | None) -> str | None:
    """A method of the tree's quantity, or of the way by which it is solved for; None for the default."""
    if method is None:
        return None
    known = METHODS.get(record.name) or methods(record.name)
    if method not in known:
        raise UnknownName(f"method of {record.name!r} for robots with loops", method, known)
    return method


def closing_check(robot: LoopRobot) -> tuple[ca.Function, tuple[str, ...]]:
    """(casadi.Function q (nq,) -> off, mode, names of groups of loops): for each group the largest residual over what
    it may be, less 1, and what is positive where it is not assembled as robot.home; all is well where neither is above
    zero."""
    return cached(robot, ("closing check",), lambda: _closing_check(robot))


def _closing_check(robot: LoopRobot) -> tuple[ca.Function, tuple[str, ...]]:
    y, x = ca.MX.sym("q", robot.nq), ca.SX.sym("q", robot.tree.nq)
    r, J, side = residual(robot)(x)
    owners, allowed, blocks = row_owners(robot), ca.DM(tolerances(robot)), closing_blocks(robot)
    sides = {loop.name: side[k] for k, loop in enumerate(robot.loops)}
    out, names = [], []
    for b in blocks:
        rows = [k for k, n in enumerate(owners) if n in b.names]
        off = ca.norm_inf(r[rows] / allowed[rows]) - 1
        turned = [-s for n, s in sides.items() if n in b.names and not s.is_constant()]
        det = ca.SX(1)
        if b.square:
            det = ca.det(J[b.rows, b.columns])
            det = det / float(ca.Function("det", [x], [det])(robot.home))
        out.append(ca.vertcat(off, -det, *turned))
        names.append(", ".join(b.names))
    at = ca.Function("at", [x], [ca.horzcat(*(ca.mmax(o[1:]) for o in out)).T, ca.vertcat(*(o[0] for o in out))])
    q, _ = closing(robot)(y, robot.home)
    mode, off = at(q)
    if not all(b.square for b in blocks):
        mode = ca.fmax(mode, _turned_on_the_way(robot, y))
    return ca.Function("closes", [y], [off, mode], ["q"], ["off", "mode"]), tuple(names)


def _turned_on_the_way(robot: LoopRobot, y: Any) -> Any:
    """(blocks,) 1 where a block that is not square is on another side of its singular positions at y than at home: the
    columns of its Jacobian turned round an odd number of times on the way; -1 where not, and for those that are."""
    x, before = (ca.SX.sym(name, robot.tree.nq) for name in ("q", "before"))
    J, J0 = (residual(robot)(z)[1] for z in (x, before))
    pairs = [(J[b.rows, b.columns], J0[b.rows, b.columns], b.square) for b in closing_blocks(robot)]
    signs = ca.vertcat(*(ca.SX(1) if square else ca.sign(ca.det(A.T @ B)) for A, B, square in pairs))
    turn = ca.Function("turn", [x, before], [ca.densify(signs)])
    at, out = ca.MX(ca.DM(robot.home)), ca.MX(ca.DM.ones(len(pairs)))
    for own, d in followed(robot, y, ca.MX(ca.DM(robot.home))):
        there = tree_q(robot, own, d)
        out, at = out * turn(there, at), there
    return -out


embedded_by(of_loops, closing_check)
