"""Partial derivatives of dynamics with explicit constraints, by a step on the tangent space of q, by v and tau.

Accelerations a and forces f solve ID(q, v, a) - J^T f = tau, J a + dJ v = c. So for x = q, v, tau

    [M  -J^T] [a_x]   [tau_x - ID_x + (J^T f)_x]
    [J   0  ] [f_x] = [-(J a + dJ v)_x         ],

a and f held on the right; ID_x are the registered partials of inverse dynamics.
"""

from typing import Any

import casadi as ca

from ..function import function
from ..inverse_dynamics.taylor import Passes
from ..model.canonical import canonical
from ..model.robot import tangent_map
from ..ports import Size, quotient_unit
from ..registry import Port, get, method, quantity
from .constrained import Given, row_names, tree_of
from .constrained_methods import _Delassus, combination, combined
from .jets import RowJets

_BY = ("q", "v", "tau")
_UNITS = {"q": "rad, m", "v": "rad/s, m/s", "tau": "Nm, N"}
_OF = {"dv": "rad/s2, m/s2", "f": "N, Nm"}


def _sizes(robot, options):
    tree, rows = tree_of(robot), row_names(robot, options)
    return {"dv": (Size(tree.nv, "nv"), tree.velocity_names), "f": (Size(len(rows), "rows"), rows)}


def _inputs(robot, order, options):
    return get("constrained_dynamics").inputs(robot, 0, options)


def _with_multipliers(robot, order, options):
    given, sizes = _inputs(robot, order, options), _sizes(robot, options)
    lams = []
    for of, name in (("dv", "lam"), ("f", "lam_f")):
        size, rows = sizes[of]
        meaning = f"multipliers of {of}, such that the sum of products is a number"
        lams.append(Port(name, (size, 1), quotient_unit("1", _OF[of]), meaning, rows))
    return [*given[:3], *lams, *given[3:]]


def _outputs(robot, order, options):
    sizes, nv = _sizes(robot, options), Size(tree_of(robot).nv, "nv")
    return [
        Port(f"d{of}_d{by}", (sizes[of][0], nv), quotient_unit(_OF[of], _UNITS[by]), _meaning(of, by), sizes[of][1])
        for of in _OF
        for by in _BY
    ]


def _meaning(of, by):
    return f"partial derivative of {of} by {'a step on the tangent space of q' if by == 'q' else by}"


def _adjoint_outputs(robot, order, options):
    tree = tree_of(robot)
    size = Size(tree.nv, "nv"), 1
    return [
        Port(
            f"adj_{x}",
            size,
            quotient_unit("1", _UNITS[x]),
            f"gradient of lam' dv + lam_f' f by {x}",
            tree.velocity_names,
        )
        for x in _BY
    ]


def _hessian_outputs(robot, order, options):
    tree = tree_of(robot)
    size = 3 * Size(tree.nv, "nv")
    rows = tuple(f"{x} {y}" for x in _BY for y in tree.velocity_names)
    meaning = "second derivatives of lam' dv + lam_f' f by a step on the tangent space of q, by v, tau, in this order"
    return [Port("H", (size, size), "1/(units of row and column)", meaning, rows)]


def _call(function, robot, order, ports, options):
    return function(Given(robot, 0, ports, options), ports)


_FACTS: dict[str, Any] = {
    "call": _call,
    "options": ("contacts", "external_wrenches"),
    "max_order": 0,
    "of": "robot with constraints",
    "admit": get("constrained_dynamics").admit,
    "default": ("implicit",),
    "notes": get("constrained_dynamics").notes,
    "errors": get("constrained_dynamics").errors,
    "example": get("constrained_dynamics").example,
}

quantity(
    name="constrained_dynamics_partials",
    summary="partial derivatives of accelerations and constraint forces by configuration, velocities and torques",
    inputs=_inputs,
    outputs=_outputs,
    equation="ddv_dq = d dv(q (+) e, v, tau) / de at e = 0; ddv_dv, ddv_dtau; likewise df_dq, df_dv, df_dtau",
    **_FACTS,
)
quantity(
    name="constrained_dynamics_adjoint",
    summary="gradient of lam' dv + lam_f' f by configuration, velocities and torques",
    inputs=_with_multipliers,
    outputs=_adjoint_outputs,
    equation="adj_x = d (lam^T dv + lam_f^T f) / dx = ddv_dx^T lam + df_dx^T lam_f",
    **_FACTS,
)
quantity(
    name="constrained_dynamics_lagrangian_hessian",
    summary="second derivatives of lam' dv + lam_f' f: what an optimiser needs of dynamics in contact",
    inputs=_with_multipliers,
    outputs=_hessian_outputs,
    equation="H = d2 (lam^T dv + lam_f^T f) / dx2, x = (e, v, tau) at q (+) e, e = 0",
    **_FACTS,
)


class _Tangent:
    def __init__(self, given):
        self.given, self.rates = given, tangent_map(given.tree, given.q)

    def by_step(self, x):
        """(rows, nv) derivative by e."""
        return ca.jtimes(ca.vec(x), self.given.q, ca.densify(self.rates))

    def by(self, x, name):
        """Derivative by q (a step), v or tau."""
        symbols = {"v": self.given.v, "tau": self.given.T[0]}
        return self.by_step(x) if name == "q" else ca.jacobian(ca.vec(x), symbols[name])


def _solved(given):
    """(J, dJ, solver, dv, f, C) at order 0; C None, or combinations: then J, dJ are C^T J, C^T dJ, and forces C f."""
    rows = RowJets(given.tree, given.loops, given.couplings, given.q, given.contacts)
    J = rows.next()
    rows.push(given.v)
    dJ = rows.next()
    C = combination(given, J) if combined(given) else None
    if C is not None:
        J, dJ = C.T @ J, C.T @ dJ
    solve = _Delassus(given, J, None if C is None else list(range(J.shape[0])))
    passes = Passes(canonical(given.tree, True), given.q, given.v, given.W)
    a, f = solve(given.T[0] - passes.torque(), -dJ @ given.v)
    return J, dJ, solve, a, f, C


def _dynamics(given):
    """(dv, f)."""
    _, _, _, a, f, C = _solved(given)
    return a, f if C is None else C @ f


def _implicit(given):
    """{(of, by): value}."""
    J, dJ, solve, a, f, C = _solved(given)
    nv, held_a, held_f = given.tree.nv, ca.SX.sym("a", given.tree.nv), ca.SX.sym("f", J.shape[0])
    options = {"external_wrenches": True} if given.W is not None else {}
    tangent = _Tangent(given)
    partials = function(given.tree, "inverse_dynamics_partials", **options)
    values = {"q": given.q, "v": given.v, "dv": held_a, "w_ext": given.W[0] if given.W else None}
    of_tau = dict(zip(("q", "v"), ca.Function.call(partials, [values[n] for n in partials.name_in()])[:2], strict=True))
    pushed, closed = J.T @ held_f, J @ held_a + dJ @ given.v
    out = {}
    for x in _BY:
        if x == "tau":
            b, c = ca.SX.eye(nv), ca.SX(J.shape[0], nv)
        else:
            b, c = -of_tau[x] + tangent.by(pushed, x), -tangent.by(closed, x)
            b, c = ca.substitute([b, c], [held_a, held_f], [a, f])
        columns = [solve(ca.densify(b[:, k]), c[:, k]) for k in range(nv)]
        out["dv", x] = ca.horzcat(*(y for y, _ in columns))
        out["f", x] = ca.horzcat(*(y for _, y in columns))
        if C is not None:
            (turned,) = ca.substitute([tangent.by(C @ held_f, x)], [held_f], [f])
            out["f", x] = C @ out["f", x] + turned
    return out


def _by_ad(given):
    tangent = _Tangent(given)
    a, f = _dynamics(given)
    return {(of, x): tangent.by(y, x) for of, y in (("dv", a), ("f", f)) for x in _BY}


def _adjoint(given, ports):
    """With M mu + J^T nu = lam, -J mu = lam_f: adj_x = mu^T (tau - ID + J^T f)_x - nu^T (J a + dJ v)_x."""
    J, dJ, solve, a, f, C = _solved(given)
    mu, nu = solve(ports["lam"], -(ports["lam_f"] if C is None else C.T @ ports["lam_f"]))
    values = [a, f, mu, -nu]
    held = [ca.SX.sym(n, x.shape[0]) for n, x in zip(("a", "f", "mu", "nu"), values, strict=True)]
    a, f, mu, nu = held
    options = {"external_wrenches": True} if given.W is not None else {}
    adjoint = function(given.tree, "inverse_dynamics_adjoint", **options)
    ports_of = {"q": given.q, "v": given.v, "dv": a, "lam": mu, "w_ext": given.W[0] if given.W else None}
    adj_q, adj_v = ca.Function.call(adjoint, [ports_of[n] for n in adjoint.name_in()])[:2]
    L = ca.dot(mu, J.T @ f) - ca.dot(nu, J @ a + dJ @ given.v)
    L = L if C is None else L + ca.dot(ports["lam_f"], C @ f)
    by_q, by_v = _Tangent(given).rates.T @ ca.gradient(L, given.q), ca.gradient(L, given.v)
    found = ca.substitute([by_q - adj_q, by_v - adj_v], held, [ca.densify(x) for x in values])
    return {"adj_q": found[0], "adj_v": found[1], "adj_tau": values[2]}


def _adjoint_by_ad(given, ports):
    a, f = _dynamics(given)
    L = ca.dot(a, ports["lam"]) + ca.dot(f, ports["lam_f"])
    out = {"adj_q": _Tangent(given).rates.T @ ca.gradient(L, given.q), "adj_v": ca.gradient(L, given.v)}
    return out | {"adj_tau": ca.gradient(L, given.T[0])}


def _hessian(given, gradient):
    tangent = _Tangent(given)
    g = ca.vertcat(*(gradient[f"adj_{x}"] for x in _BY))
    H = ca.horzcat(*(tangent.by(g, x) for x in _BY))
    return {"H": 0.5 * (H + H.T)}


_SOURCE = "this toolkit; the implicit function theorem at the equations of constrained_dynamics"


@method("constrained_dynamics_partials", "implicit", kind="analytic", source=_SOURCE)
def partials_implicit(given, ports):
    """{port: value}; see od.describe("constrained_dynamics_partials")."""
    return {f"d{of}_d{x}": y for (of, x), y in _implicit(given).items()}


@method("constrained_dynamics_partials", "ad", kind="ad", source="AD of constrained_dynamics/delassus", cse=False)
def partials_ad(given, ports):
    """{port: value}; see od.describe("constrained_dynamics_partials")."""
    return {f"d{of}_d{x}": y for (of, x), y in _by_ad(given).items()}


@method("constrained_dynamics_adjoint", "implicit", kind="analytic", source=_SOURCE)
def adjoint_implicit(given, ports):
    """{port: value}; see od.describe("constrained_dynamics_adjoint")."""
    return _adjoint(given, ports)


@method("constrained_dynamics_adjoint", "ad", kind="ad", source="AD of constrained_dynamics/delassus", cse=False)
def adjoint_ad(given, ports):
    """{port: value}; see od.describe("constrained_dynamics_adjoint")."""
    return _adjoint_by_ad(given, ports)


@method(
    "constrained_dynamics_lagrangian_hessian", "implicit", kind="analytic", source=f"{_SOURCE}, differentiated by AD"
)
def hessian_implicit(given, ports):
    """{port: value}; see od.describe("constrained_dynamics_lagrangian_hessian")."""
    return _hessian(given, _adjoint(given, ports))


@method("constrained_dynamics_lagrangian_hessian", "ad", kind="ad", source="AD of AD", cse=False)
def hessian_ad(given, ports):
    """{port: value}; see od.describe("constrained_dynamics_lagrangian_hessian")."""
    return _hessian(given, _adjoint_by_ad(given, ports))
