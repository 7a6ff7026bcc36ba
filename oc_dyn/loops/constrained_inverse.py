"""Inverse dynamics with constraint forces: torques of the motors and forces that go with a motion.

    M dv + h - J^T f = B tau,    f^T W f least,

in all coordinates of the tree. Rows without motors, A f = b with A = J_u^T, b the torques of the motion there, give the
forces: where they leave some open, those of least weighted sum of squares; where they are too many, those that leave
least of b, in sum of squares. Rows with motors then give the torques.
"""

from typing import Any

import casadi as ca
import numpy as np

from .. import robots
from ..errors import ModelError, ShapeError, UnknownName
from ..function import function
from ..lie import jets
from ..lie.jets import product_at, total
from ..model.assembly import independent_rows, rank_of
from ..model.cache import cached
from ..model.loops import LoopRobot
from ..ports import Size, derivative_name, derivative_unit, motion_ports, wrench_ports
from ..registry import Port, get, method, quantity
from ..time_methods import in_time
from .constrained import _FORCE, Given, _force_ports, row_names, tree_of
from .constrained_methods import combined, jacobian_as_written, jacobians_at_places
from .jets import RowJets

_NAME = "constrained_inverse_dynamics"


def _motor_rows(robot: Any, options: dict[str, Any]) -> tuple[list[int], list[int]]:
    """(rows of tree.v with motors, rows without)."""
    tree, names = tree_of(robot), options["actuated"]
    if names is None:
        names = robot.independent if isinstance(robot, LoopRobot) else [j.name for j in tree.joints]
        names = [n for n in names if tree.joint(n).kind != "free"]
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ShapeError(f"{_NAME}: no joint has a motor; name those that have, actuated=(joint, ...)")
    known = [j.name for j in tree.joints]
    for name in names:
        if name not in known:
            raise UnknownName(f"{_NAME}: joint of actuated", name, known)
    if len(set(names)) < len(names):
        raise ShapeError(f"{_NAME}: actuated is {options['actuated']!r}, expected names of joints, each once")
    own = [tree.joint(n) for n in known if n in names]
    rows = [k for j in own for k in range(j.v_index, j.v_index + j.nv)]
    rest = [k for k in range(tree.nv) if k not in rows]
    if not rest:
        problem = "all joints have motors, so a motion goes with any forces"
        raise ShapeError(f"{_NAME}: {problem}; name the joints with motors, actuated=(joint, ...)")
    return rows, rest


def _names(robot: Any, rows: list[int]) -> tuple[str, ...]:
    return tuple(tree_of(robot).velocity_names[k] for k in rows)


def _inputs(robot, order, options):
    tree, rows = tree_of(robot), row_names(robot, options)
    ports = motion_ports(tree, order + 1)
    ports += wrench_ports(tree, order) if options["external_wrenches"] else []
    if options["weighted"]:
        ports.append(
            Port("weights", (Size(len(rows), "rows"), 1), "1", "of the squares of the forces, above zero", rows)
        )
    return ports


def _outputs(robot, order, options):
    rows, rest = _motor_rows(robot, options)
    ports = _vectors("tau", rows, "motors", "torques of the motors", robot, order)
    ports += _force_ports(robot, order, options, "f", "N, Nm", _FORCE)
    return ports + _vectors(
        "residual", rest, "others", "torques of joints without motors that are missing", robot, order
    )


def _vectors(name, rows, counted, meaning, robot, order):
    shape, names = (Size(len(rows), counted), 1), _names(robot, rows)
    return [
        Port(
            derivative_name(name, k),
            shape,
            derivative_unit("Nm, N", k),
            f"time derivative {k} of {name}" if k else meaning,
            names,
        )
        for k in range(order + 1)
    ]


def _call(function, robot, order, ports, options):
    found = function(_Motion(robot, order, ports, options))
    return {derivative_name(name, k): x for name, jet in found.items() for k, x in enumerate(jet)}


class _Motion(Given):
    """As Given, with V (derivatives of v), the rows with motors and without, and weights; see _chosen."""

    def __init__(self, robot: Any, order: int, ports: dict[str, Any], options: dict[str, Any]) -> None:
        super().__init__(robot, order, ports, options)
        self.V = [ports[derivative_name("v", k)] for k in range(order + 2)]
        self.motors, self.others = _motor_rows(robot, options)
        self.weights = ports["weights"] if options["weighted"] else ca.DM.ones(self.count)
        key = (_NAME, self.contacts, tuple(self.motors))  # complete: loops and couplings are the robot's
        self.rows, self.columns = cached(robot, key, lambda: _chosen(self))


def _chosen(given) -> tuple[list[int], list[int]]:
    """Rows of A that determine the others, and as many columns, where no constraint is in a singular position."""
    found = [J[:, given.others] for J in jacobians_at_places(given)]
    rank = max(map(rank_of, found))
    if not rank:
        problem = "constraints push no joint without a motor; name others in contacts, or in actuated"
        raise ModelError(given.tree.name, [problem])
    kept = [J for J in found if rank_of(J) == rank]
    return independent_rows(np.hstack([J.T for J in kept]), rank), independent_rows(np.hstack(kept), rank)


quantity(
    name=_NAME,
    summary="torques of the motors and constraint forces that go with a motion of a robot in contact, or with loops "
    "cut open, and their time derivatives",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("contacts", "actuated", "weighted", "external_wrenches"),
    default=("order_by_order",),
    of="robot with constraints",
    admit=get("constrained_dynamics").admit,
    equation="M(q) dv + C(q, v) v + g(q) = B tau + J(q)^T f + sum_b J_b^T w_b + N residual, |residual| least, then "
    "f^T diag(weights) f least; columns of B and N are unit vectors of joints with and without motors",
    notes=(
        "Of a robot with loops, the motion is that of robot.tree, all coordinates, as loop_closure gives it.",
        "residual is zero of a motion that the forces can make. It is not where constraints are too few to carry the "
        "joints without motors, such as of a body on two points, and the motion is another than they allow.",
        "A motion is not looked at: whether contacts are at rest, loops closed, forces within friction cones.",
    ),
    errors=(
        "ShapeError: there is no constraint, all joints have motors",
        "UnknownName: a frame or joint that is not there, another kind of contact",
        "ModelError: constraints that push no joint without a motor",
    ),
    meanings={
        "actuated": "names of the joints with motors, of the tree; by default all but free ones, of a robot with loops "
        "its independent ones but free ones",
        "weighted": "True: the port weights, of the squares of the forces; False: all of them one",
    },
    example=lambda robot: (robot, {}) if isinstance(robot, LoopRobot) else (robot or robots.four_bar(), {}),
)


@method(_NAME, "order_by_order", kind="analytic", source="this toolkit; order 0: Righetti et al. 2013")
def order_by_order(given):
    """{port: derivatives}: f = W^-1 A^T (A W^-1 A^T)^-1 b, of independent rows of A, coefficient by coefficient with
    one factorised matrix; see od.describe("constrained_inverse_dynamics")."""
    torques, A, pushed = _torques(given), [], []
    grown = RowJets(given.tree, given.loops, given.couplings, given.q, given.contacts)
    V = jets.from_derivatives(given.V)
    for k in range(given.order + 1):
        J = grown.next()
        A.append(J[:, given.others].T)
        pushed.append(J[:, given.motors].T)
        grown.push(V[k])
    b = [x[given.others] for x in torques]
    carried = b
    rows = [x[given.rows, :] for x in A]
    if len(given.rows) < len(given.others):
        columns = [x[:, given.columns] for x in A]
        if combined(given):  # no choice of columns stays independent
            columns = [product_at(A, [x.T for x in rows], k, _times) for k in range(len(b))]
        z = _solved(_grams(columns, 1), [product_at([x.T for x in columns], b, k, _times) for k in range(len(b))])
        carried = [product_at(columns, z, k, _times) for k in range(len(b))]
    inverse = 1 / given.weights
    y = _solved(_grams([x.T for x in rows], inverse), [x[given.rows] for x in carried])
    f = [inverse * product_at([x.T for x in rows], y, k, _times) for k in range(len(b))]
    tau = [torques[k][given.motors] - product_at(pushed, f, k, _times) for k in range(len(b))]
    left = [b[k] - product_at(A, f, k, _times) for k in range(len(b))]
    return {"tau": jets.to_derivatives(tau), "f": jets.to_derivatives(f), "residual": jets.to_derivatives(left)}


def _times(a, b):
    return a @ b


def _torques(given):
    """Coefficients of the torques that the motion takes without constraints (nv,)."""
    options = {"external_wrenches": True} if given.W is not None else {}
    f = function(given.tree, "inverse_dynamics", order=given.order, **options)
    values = {derivative_name("v", k): x for k, x in enumerate(given.V)} | {"q": given.q}
    values |= {derivative_name("w_ext", k): x for k, x in enumerate(given.W or [])}
    found = ca.Function.call(f, [values[n] for n in f.name_in()])
    return jets.from_derivatives(found[: given.order + 1])


def _grams(columns, weights):
    """Coefficients of X^T diag(weights) X."""
    size = columns[0].shape[0]
    weighted = [ca.diag(weights * ca.DM.ones(size)) @ x for x in columns]
    return [product_at([x.T for x in columns], weighted, k, _times) for k in range(len(columns))]


def _solved(D, b):
    """Coefficients of D^-1 b, D positive definite."""
    factors = ca.ldl(ca.densify(D[0]), False)
    out: list[Any] = []
    for k in range(len(b)):
        left = b[k] - total([ca.SX(*b[k].shape), *(D[j] @ out[k - j] for j in range(1, k + 1))])
        out.append(ca.ldl_solve(ca.densify(left), *factors))
    return out


def _by_columns(given, A, b, C):
    """Forces, A[:, C] of independent columns."""
    D = [k for k in range(given.count) if k not in C]
    Q, R = ca.qr(ca.densify(A[:, C]))
    first = ca.solve(R, Q.T @ b)
    forces = ca.SX(given.count, 1)
    forces[C] = first
    if D:
        T = ca.solve(R, Q.T @ A[:, D])
        weighted = T.T @ ca.diag(given.weights[C])
        second = ca.solve(weighted @ T + ca.diag(given.weights[D]), weighted @ first)
        forces[C], forces[D] = first - T @ second, second
    return forces


def _by_multipliers(given, A, b):
    """Forces where no choice of columns stays independent: W f = A^T y, A f = b in the rows that determine the others,
    b in the span of A."""
    rows, zero = A[given.rows, :], ca.SX(len(given.rows), len(given.rows))
    if len(given.rows) < len(given.others):
        Q, _ = ca.qr(ca.densify(A @ rows.T))
        b = Q @ (Q.T @ b)
    W = ca.diag(given.weights * ca.DM.ones(given.count))
    Q, R = ca.qr(ca.densify(ca.blockcat([[W, -rows.T], [rows, zero]])))
    return ca.solve(R, Q.T @ ca.vertcat(ca.SX(given.count, 1), b[given.rows]))[: given.count]


@in_time(_NAME, source="AD: forces of independent columns, and of those that press alone")
def ad(way, given):
    """As order_by_order, from other formulas: with f = (f_C, f_D), A_C of independent columns and A_D = A_C T, forces
    f_C = A_C^+ b - T f_D, f_D such that the sum of squares is least, of overconstrained loops with multipliers; J from
    poses as written. See
    od.describe("constrained_inverse_dynamics")."""
    tree, order = given.tree, given.order
    q, V = ca.SX.sym("q", tree.nq), [ca.SX.sym(f"v{k}", tree.nv) for k in range(order + 2)]
    W = None if given.W is None else [ca.SX.sym(f"W{k}", *given.W[0].shape) for k in range(order + 1)]
    J, _ = jacobian_as_written(given, q)
    f = function(tree, "inverse_dynamics", method="recursive_spatial", **({"external_wrenches": True} if W else {}))
    torques = ca.Function.call(f, [q, V[0], V[1], *([W[0]] if W else [])])[0]
    A, b, C = J[:, given.others].T, torques[given.others], given.columns
    forces = _by_multipliers(given, A, b) if combined(given) else _by_columns(given, A, b, C)
    found = ca.vertcat(torques[given.motors] - J[:, given.motors].T @ forces, forces, b - A @ forces)
    flow = [(q, tree.configuration_rate(q, V[0]))] + [(V[k], V[k + 1]) for k in range(order + 1)]
    flow += [(W[k], W[k + 1]) for k in range(order)] if W else []
    derivatives = way(ca.densify(found), order, flow)
    symbols, values = [q, *V, *(W or [])], [given.q, *given.V, *(given.W or [])]
    derivatives = ca.substitute(derivatives, symbols, values)
    ends = np.cumsum([0, len(given.motors), given.count, len(given.others)])
    names = zip(("tau", "f", "residual"), ends[:-1], ends[1:], strict=True)
    return {name: [x[int(a) : int(e)] for x in derivatives] for name, a, e in names}
