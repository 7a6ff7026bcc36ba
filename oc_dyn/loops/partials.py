"""Partial derivatives of the dynamics of robots with loops, on the tangent space of their own coordinates.

A step e of those moves q of the tree along G e, so every derivative by e is one along the closed configurations, taken
at q of the tree: method "chain" has the registered partials and adjoint of the tree in G^T tau, and differentiates only
G and the velocities; method "ad" differentiates the embedded Function.
"""

from __future__ import annotations

from math import comb
from typing import Any

import casadi as ca

from ..forward_dynamics.mass_solver import factor_reversed, solve_reversed
from ..lie.jets import total
from ..lie.leibniz import product_derivative
from ..matrices.other_velocities import turned
from ..model.robot import tangent_map
from ..partials.order_by_order import solved_rows
from ..ports import derivative_name
from .embedding import METHODS, WAYS, Embedded, mass


class Tangent:
    """Derivatives of expressions by e, and by the ports of the motion."""

    def __init__(self, e: Embedded) -> None:
        self.q, self.along = e.q, tangent_map(e.robot.tree, e.q) @ ca.densify(e.G[0])

    def by_step(self, expression: Any) -> Any:
        """(rows, nv) derivative by e."""
        return ca.jtimes(ca.vec(expression), self.q, self.along)

    def by(self, expression: Any, x: Any) -> Any:
        """Derivative by e for x None, else by a symbol."""
        return self.by_step(expression) if x is None else ca.jacobian(ca.vec(expression), x)


def _motion(e: Embedded, of: str) -> list[tuple[str, Any]]:
    """[(name, symbol)] of what the quantity `of` depends on; None for the step."""
    if of == "tau":
        names = [derivative_name("v", k) for k in range(e.order + 2)]
    else:
        names = ["v", *(derivative_name("tau", k) for k in range(e.order + 1))]
    return [("q", None), *((n, e.ports[n]) for n in names)]


def _values(e: Embedded, of: str) -> list[Any]:
    """Derivatives of the torques, or accelerations, embedded."""
    if of == "tau":
        found = WAYS["inverse_dynamics"](e, None)
        return [found[derivative_name("tau", k)] for k in range(e.order + 1)]
    found = WAYS["forward_dynamics"](e, None)
    return [found[n] for n in _names(of, e.order)]


def _names(of: str, order: int) -> list[str]:
    return [derivative_name("tau", k) if of == "tau" else derivative_name("v", k + 1) for k in range(order + 1)]


def _by_ad(of: str):
    def way(e: Embedded) -> dict[str, Any]:
        tangent, out = Tangent(e), {}
        for k, (name, value) in enumerate(zip(_names(of, e.order), _values(e, of), strict=True)):
            for x, symbol in _motion(e, of)[: k + 3]:
                out[f"d{name}_d{x}"] = tangent.by(value, symbol)
        return out

    return way


def _chain(e: Embedded) -> dict[str, Any]:
    """Of inverse dynamics: G^T (tau_q G + tau_v v_x + tau_dv dv_x) + (G^T)_x tau, order by order."""
    tangent, out = Tangent(e), {}
    tau = e.jet(e.of_tree("inverse_dynamics"), "tau")
    of_tree = e.of_tree("inverse_dynamics_partials")
    held = [ca.SX.sym(f"t{k}", x.shape[0]) for k, x in enumerate(tau)]
    for k, name in enumerate(_names("tau", e.order)):
        from_G = product_derivative(turned(e.G), held, k)
        for x, symbol in _motion(e, "tau")[: k + 3]:
            moved = [None if symbol is not None else e.G[0], *(tangent.by(y, symbol) for y in e.v)]
            terms = [_substituted(tangent.by(from_G, symbol), held, tau)]
            for j in range(k + 1):
                inner = _along(of_tree, derivative_name("tau", k - j), moved, k - j)
                terms.append(comb(k, j) * (e.G[j].T @ inner))
            out[f"d{name}_d{x}"] = total(terms)
    return out


def _along(of_tree: dict[str, Any], name: str, moved: list[Any], order: int) -> Any:
    """Derivative of a torque of the tree, or one of its derivatives, along moved q, v, dv, ..."""
    ports = ["q", *(derivative_name("v", k) for k in range(order + 2))]
    return total([of_tree[f"d{name}_d{x}"] @ y for x, y in zip(ports, moved, strict=False) if y is not None])


def _substituted(expression: Any, symbols: list[Any], values: list[Any]) -> Any:
    (out,) = ca.substitute([expression], symbols, values)
    return out


def _from_inverse(e: Embedded) -> dict[str, Any]:
    """Of forward dynamics, by those of inverse dynamics at the accelerations that it gives: -M^-1 of each."""
    values = _values(e, "dv")
    a = [ca.SX.sym(n, e.robot.nv) for n in _names("dv", e.order)]
    ports = {k: x for k, x in e.ports.items() if k not in _names("tau", e.order)}
    ports |= dict(zip(_names("dv", e.order), a, strict=True))
    inner = Embedded(e.robot, e.order, e.q, ports, e._function, e.options)
    found = _chain(inner)
    if e.order:
        return _order_by_order(e, found, a, values)
    (a,), (dv,) = a, values
    rows = [found["dtau_dq"], found["dtau_dv"], found["dtau_ddv"]]
    by_q, by_v, M = ca.substitute(rows, [a], [dv])
    solved = ca.solve(M, ca.horzcat(-by_q, -by_v, ca.SX.eye(e.robot.nv)))
    return dict(zip(("ddv_dq", "ddv_dv", "ddv_dtau"), ca.horzsplit(solved, e.robot.nv), strict=True))


def _order_by_order(e: Embedded, of_inverse: dict[str, Any], a: list[Any], values: list[Any]) -> dict[str, Any]:
    """The same at an order above 0: of_inverse at accelerations a, which have these values."""
    flat = ca.substitute(list(of_inverse.values()), a, values)
    found = dict(zip(of_inverse, flat, strict=True))
    xs = ["q", *(derivative_name("v", k) for k in range(e.order + 2))]
    R = [[found[f"d{tau}_d{x}"] for x in xs[: k + 3]] for k, tau in enumerate(_names("tau", e.order))]
    out: dict[str, Any] = {}
    for k, row in enumerate(solved_rows(R, found["dtau_ddv"], ())[0]):
        names = [x for x, _ in _motion(e, "dv")[: k + 3]]
        values = [*row[:2], *row[3 + k :]]  # no accelerations are given
        out |= {f"d{derivative_name('v', k + 1)}_d{x}": y for x, y in zip(names, values, strict=True)}
    return out


def _adjoint_of(found: dict[str, Any], e: Embedded, of: str) -> dict[str, Any]:
    """Gradient of the products with multipliers from partials."""
    out: dict[str, Any] = {}
    for k, name in enumerate(_names(of, e.order)):
        lam = e.ports["lam" if k == 0 else f"lam_{name}"]
        for x, _ in _motion(e, of):
            J = found.get(f"d{name}_d{x}")
            if J is not None:
                out[f"adj_{x}"] = out.get(f"adj_{x}", 0) + J.T @ lam
    return out


def _inverse_adjoint(e: Embedded) -> dict[str, Any]:
    """Of inverse dynamics, by one sweep backwards: the registered adjoint of the tree at multipliers mu = G lam, ...

    L = sum of mu_i^T tau^(i) of the tree, mu_i = sum_k comb(k, i) G^(k-i) lam_k. With the gradient of L by the tree's
    motion, and its torques, held, what is left to differentiate are G and the velocities.
    """
    n, tangent = e.order + 1, Tangent(e)
    lams = [e.ports["lam" if k == 0 else f"lam_{x}"] for k, x in enumerate(_names("tau", e.order))]
    mu = [total(comb(k, i) * (e.G[k - i] @ lams[k]) for k in range(i, n)) for i in range(n)]
    names = ["lam", *(f"lam_{x}" for x in _names("tau", e.order)[1:])]
    g = e.of_tree("inverse_dynamics_adjoint", **dict(zip(names, mu, strict=True)))
    tau = e.jet(e.of_tree("inverse_dynamics"), "tau")
    pairs = [(g[f"adj_{derivative_name('v', k)}"], x) for k, x in enumerate(e.v)] + list(zip(tau, mu, strict=True))
    held = [ca.SX.sym("held", x.shape[0]) for x, _ in pairs]
    rest = total(ca.dot(h, x) for h, (_, x) in zip(held, pairs, strict=True))
    motion = _motion(e, "tau")
    by = [ca.gradient(rest, e.q if symbol is None else symbol) for _, symbol in motion]
    by = ca.substitute(by, held, [ca.densify(x) for x, _ in pairs])
    by[0] = tangent.along.T @ by[0] + e.G[0].T @ g["adj_q"]
    return {f"adj_{x}": y for (x, _), y in zip(motion, by, strict=True)}


def _forward_adjoint(e: Embedded) -> dict[str, Any]:
    """Of forward dynamics: that of inverse dynamics at its accelerations and at mu, M mu = lam, with the other sign."""
    if e.order:
        return _adjoint_of(_from_inverse(e), e, "dv")
    nv, (dv,) = e.robot.nv, _values(e, "dv")
    symbols = [ca.SX.sym("dv", nv), ca.SX.sym("lam", nv)]
    ports = {k: x for k, x in e.ports.items() if k != "tau"} | dict(zip(("dv", "lam"), symbols, strict=True))
    found = _inverse_adjoint(Embedded(e.robot, 0, e.q, ports, e._function, e.options))
    mu = solve_reversed(factor_reversed(mass(e, 0)[0]), e.ports["lam"])
    by_q, by_v = ca.substitute([found["adj_q"], found["adj_v"]], symbols, [dv, mu])
    return {"adj_q": -by_q, "adj_v": -by_v, "adj_tau": mu}


def _lagrangian(e: Embedded, of: str) -> Any:
    lams = [e.ports["lam" if k == 0 else f"lam_{n}"] for k, n in enumerate(_names(of, e.order))]
    return total([ca.dot(x, y) for x, y in zip(lams, _values(e, of), strict=True)])


def _adjoint_by_ad(of: str):
    def way(e: Embedded) -> dict[str, Any]:
        tangent, L = Tangent(e), _lagrangian(e, of)
        gradient = {"q": tangent.along.T @ ca.gradient(L, e.q)}
        gradient |= {x: ca.gradient(L, symbol) for x, symbol in _motion(e, of) if symbol is not None}
        return {f"adj_{x}": y for x, y in gradient.items()}

    return way


def _hessian(of: str, gradients: Any):
    """H from the derivatives of the gradient, one step after the other, its symmetric part."""

    def way(e: Embedded) -> dict[str, Any]:
        tangent, found = Tangent(e), gradients(e)
        xs = _motion(e, of)
        g = ca.vertcat(*(found[f"adj_{x}"] for x, _ in xs))
        H = ca.horzcat(*(tangent.by(g, symbol) for _, symbol in xs))
        return {"H": 0.5 * (H + H.T)}

    return way


PARTIALS = {
    ("tau", "chain"): _chain,
    ("dv", "chain"): _from_inverse,
    ("tau", "ad"): _by_ad("tau"),
    ("dv", "ad"): _by_ad("dv"),
}


def chosen(table: dict[str, Any]):
    """What embeds by a method of the table, by default its first."""

    def way(e: Embedded, method: str | None) -> dict[str, Any]:
        return table[method or next(iter(table))](e)

    return way


def _by_size(one: Any, more: Any):
    """What takes fewer instructions: of one independent velocity partials are gradients."""

    def way(e: Embedded) -> dict[str, Any]:
        return (one if e.robot.nv == 1 else more)(e)

    return way


for _of, _quantity, _adjoint in (
    ("tau", "inverse_dynamics", _inverse_adjoint),
    ("dv", "forward_dynamics", _forward_adjoint),
):
    _partials = {m: PARTIALS[_of, m] for m in ("chain", "ad")}

    def _adjoints(e: Embedded, of: str = _of, partials: Any = _partials["chain"]) -> dict[str, Any]:
        return _adjoint_of(partials(e), e, of)

    _of_ad, _default = _adjoint_by_ad(_of), _by_size(_adjoints, _adjoint)
    _tables = {
        "partials": _partials,
        "adjoint": {"chain": _default, "ad": _of_ad},
        "lagrangian_hessian": {"chain": _hessian(_of, _default), "ad": _hessian(_of, _of_ad)},
    }
    for _what, _table in _tables.items():
        WAYS[f"{_quantity}_{_what}"] = chosen(_table)
        METHODS[f"{_quantity}_{_what}"] = tuple(_table)
