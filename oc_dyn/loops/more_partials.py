"""Robots with loops: partial derivatives of hybrid dynamics, second ones of inverse and forward dynamics.

Those of hybrid dynamics follow from those of inverse dynamics at the accelerations that it gives, as for trees.
Second partials of inverse dynamics are AD of the first ones, along steps of the robot's own coordinates: of the chain
rule through the registered partials of the tree ("chain"), or of AD ("ad"). Those of forward dynamics follow from them.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..hybrid_dynamics import prescribed_rows
from ..partials.order_by_order import solved_rows
from ..ports import derivative_name
from .embedding import METHODS, WAYS, Embedded
from .partials import PARTIALS, Tangent, chosen


def _arguments(order: int) -> list[str]:
    """What outputs of this order depend on."""
    given = [derivative_name("v", k + 1) + "_p" for k in range(order + 1)]
    return ["q", "v", *given, *(derivative_name("tau", k) + "_f" for k in range(order + 1))]


def _hybrid_by_ad(e: Embedded) -> dict[str, Any]:
    tangent, found, out = Tangent(e), WAYS["hybrid_dynamics"](e, None), {}
    for k in range(e.order + 1):
        for of in (derivative_name("tau", k) + "_p", derivative_name("v", k + 1) + "_f"):
            for x in _arguments(k):
                out[f"d{of}_d{x}"] = tangent.by(ca.SX(found[of]), None if x == "q" else e.ports[x])
    return out


def _hybrid_from_inverse(e: Embedded) -> dict[str, Any]:
    n, rows = e.order + 1, prescribed_rows(e.robot, e.options)
    others = [k for k in range(e.robot.nv) if k not in rows]
    names = [derivative_name("v", k + 1) for k in range(n)]
    found = WAYS["hybrid_dynamics"](e, None)
    a = [ca.SX.sym(x, e.robot.nv) for x in names]
    ports = {k: x for k, x in e.ports.items() if not k.endswith(("_p", "_f"))} | dict(zip(names, a, strict=True))
    of_inverse = PARTIALS["tau", "chain"](Embedded(e.robot, e.order, e.q, ports, e._function, e.options))
    flat = ca.substitute(list(of_inverse.values()), a, [found[x] for x in names])
    J = dict(zip(of_inverse, flat, strict=True))
    xs = ["q", "v", *names]
    R = [[J[f"d{derivative_name('tau', k)}_d{x}"] for x in xs[: k + 3]] for k in range(n)]
    out: dict[str, Any] = {}
    for k, (by_a, by_tau) in enumerate(zip(*solved_rows(R, J["dtau_ddv"], rows), strict=True)):
        for x, row, torque in zip(_arguments(k), by_a, by_tau, strict=True):
            out[f"d{names[k]}_f_d{x}"] = row[others, :] if others else ca.SX(0, row.shape[1])
            out[f"d{derivative_name('tau', k)}_p_d{x}"] = torque
    return out


def _second(of: str, method: str, first: Any = None):
    """Second partials of tau by q, v, dv, or of dv by q, v, tau: entry (i, j, k) at row i + nv j, column k. first: the
    first ones, if they are there."""
    by = "dv" if of == "tau" else "tau"
    last = "dM_dq" if of == "tau" else "dMinv_dq"

    def way(e: Embedded) -> dict[str, Any]:
        tangent, found = Tangent(e), first or PARTIALS[of, method](e)
        by_q, by_v, by_last = (found[f"d{of}_d{x}"] for x in ("q", "v", by))
        return {
            f"d2{of}_dqdq": tangent.by_step(by_q),
            f"d2{of}_dvdv": tangent.by(by_v, e.ports["v"]),
            f"d2{of}_dqdv": tangent.by(by_q, e.ports["v"]),
            last: tangent.by_step(by_last),
        }

    return way


def _forward_from_inverse(e: Embedded) -> dict[str, Any]:
    """By those of inverse dynamics at the accelerations a: M a_jk = -(tau_jk + M_k a_j + M_j a_k), j and k of q, v."""
    n, names = e.robot.nv, ("d2tau_dqdq", "d2tau_dvdv", "d2tau_dqdv", "dM_dq")
    dv, a = WAYS["forward_dynamics"](e, None)["dv"], ca.SX.sym("dv", e.robot.nv)
    ports = {k: x for k, x in e.ports.items() if k != "tau"} | {"dv": a}
    inner = Embedded(e.robot, 0, e.q, ports, e._function, e.options)
    found = PARTIALS["tau", "chain"](inner)
    second = _second("tau", "chain", found)(inner)
    values = [found["dtau_dq"], found["dtau_dv"], found["dtau_ddv"], *(second[x] for x in names)]
    by_q, by_v, M, qq, vv, qv, M_q = ca.substitute(values, [a], [dv])
    Minv = ca.solve(M, ca.SX.eye(n))
    a_q, a_v = -Minv @ by_q, -Minv @ by_v
    pages = [ca.reshape(x, n, n) for x in ca.horzsplit(M_q)]  # by q_k

    def across(k: int, columns: Any) -> Any:
        return ca.horzcat(*(page @ columns[:, k] for page in pages))

    def tensor(page: Any) -> Any:
        return ca.horzcat(*(ca.vec(-Minv @ page(k)) for k in range(n)))

    return {
        "d2dv_dqdq": tensor(lambda k: ca.reshape(qq[:, k], n, n) + pages[k] @ a_q + across(k, a_q)),
        "d2dv_dvdv": tensor(lambda k: ca.reshape(vv[:, k], n, n)),
        "d2dv_dqdv": tensor(lambda k: ca.reshape(qv[:, k], n, n) + across(k, a_v)),
        "dMinv_dq": tensor(lambda k: pages[k] @ Minv),
    }


_TABLES = {
    "hybrid_dynamics_partials": {"from_inverse": _hybrid_from_inverse, "ad": _hybrid_by_ad},
    "inverse_dynamics_second_partials": {m: _second("tau", m) for m in ("chain", "ad")},
    "forward_dynamics_second_partials": {"from_inverse": _forward_from_inverse, "ad": _second("dv", "ad")},
}
for _quantity, _table in _TABLES.items():
    WAYS[_quantity] = chosen(_table)
    METHODS[_quantity] = tuple(_table)
