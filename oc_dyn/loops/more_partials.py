"""Robots with loops: partial derivatives of hybrid dynamics, second ones of inverse and forward dynamics.

Known rows p of the accelerations, the others f of the torques: with D = dtau_dx of inverse dynamics at the
accelerations that hybrid dynamics gives, and M the mass matrix,

    ddv_f_dx = -M_ff^-1 D_f,    dtau_p_dx = D_p + M_pf ddv_f_dx,    x = q, v;    for x = dv_p  D = M_.p

Second partials of inverse dynamics are AD of the first ones, along steps of the robot's own coordinates: of the chain
rule through the registered partials of the tree ("chain"), or of AD ("ad"). Those of forward dynamics follow from them.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..hybrid_dynamics import prescribed_rows
from .embedding import METHODS, WAYS, Embedded
from .partials import PARTIALS, Tangent, chosen

_BY = ("q", "v", "dv_p", "tau_f")


def _hybrid_names(of: str) -> list[str]:
    return [f"d{of}_d{x}" for x in _BY]


def _hybrid_by_ad(e: Embedded) -> dict[str, Any]:
    tangent, found, out = Tangent(e), WAYS["hybrid_dynamics"](e, None), {}
    for of in ("tau_p", "dv_f"):
        for x, name in zip(_BY, _hybrid_names(of), strict=True):
            out[name] = tangent.by(ca.SX(found[of]), None if x == "q" else e.ports[x])
    return out


def _hybrid_from_inverse(e: Embedded) -> dict[str, Any]:
    nv, p = e.robot.nv, list(prescribed_rows(e.robot, e.options))
    f = [k for k in range(nv) if k not in p]
    dv = WAYS["hybrid_dynamics"](e, None)["dv"]
    a = ca.SX.sym("dv", nv)
    ports = {k: x for k, x in e.ports.items() if k not in ("dv_p", "tau_f")} | {"dv": a}
    found = PARTIALS["tau", "chain"](Embedded(e.robot, 0, e.q, ports, e._function, e.options))
    by_q, by_v, M = ca.substitute([found["dtau_dq"], found["dtau_dv"], found["dtau_ddv"]], [a], [dv])
    pick = ca.DM.eye(nv)
    P, F = pick[p, :].reshape((len(p), nv)), pick[f, :].reshape((len(f), nv))  # no rows are rows, too
    D = ca.horzcat(by_q, by_v, M @ P.T)
    rates = ca.horzcat(-F @ D, ca.SX.eye(len(f)))
    if f:
        rates = ca.solve(F @ M @ F.T, rates)
    torques = ca.horzcat(P @ D, ca.SX(len(p), len(f))) + P @ M @ F.T @ rates
    ends = [0, nv, 2 * nv, 2 * nv + len(p), 2 * nv + nv]
    out: dict[str, Any] = {}
    for of, x in (("tau_p", torques), ("dv_f", rates)):
        out |= dict(zip(_hybrid_names(of), ca.horzsplit(x, ends), strict=True))
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
