"""Partials of inverse dynamics where a floating base is seen by its spatial or hybrid twist.

With w what the user gives and v(q, w) the body twists, the torques are Psi(q, v, tau(q, v)), where Psi turns the wrench
of the base. Steps of q are in the representation, too: those at whose rate w moves the base, so that along a motion the
rate of the torques is dtau_dq w + dtau_dv dw + ... Both maps are of the base alone, and AD differentiates them.
"""

import casadi as ca

from ..inverse_dynamics.taylor import taylor
from ..lie.jets import total
from ..lie.so3 import skew
from ..lie.twist_conversion import convert_columns, convert_twists, convert_wrenches
from ..ports import OF_MODEL, derivative_name
from ..registry import conversion, get


@conversion("inverse_dynamics_partials")
def _(seen, found):
    order, nv = seen.order, seen.model.robot.nv
    given = {k: x for k, x in seen.inner.items() if k not in OF_MODEL}
    torques = get("inverse_dynamics").call(taylor, seen.model, order, given, seen.options)
    tau = [torques[derivative_name("tau", k)] for k in range(order + 1)]
    blocks = [_blocks(seen.name, b, seen.velocities(), tau) for b in seen.bases]
    names = ["q", *(derivative_name("v", k) for k in range(order + 2))]

    def placed(key, diagonal):
        start = ca.SX.eye(nv) if diagonal else ca.SX(nv, nv)
        return seen.placed([x.get(key, ca.SX(6, 6)) for x in blocks], start)

    G = {(n, m): placed(("v", n, m), n == m) for n in range(order + 3) for m in range(order + 3)}
    out = {}
    for k in range(order + 1):
        tau_k = derivative_name("tau", k)
        turn = [placed(("tau", k, r), r == k) for r in range(k + 1)]
        rows = []
        for n, x in enumerate(names[: k + 3]):  # by body twists, and by a step in body axes
            parts = [A @ found.get(f"d{derivative_name('tau', r)}_d{x}", ca.SX(nv, nv)) for r, A in enumerate(turn)]
            rows.append(total(parts) + placed(("by", k, n), False))
        for m, x in enumerate(names[: k + 3]):
            out[f"d{tau_k}_d{x}"] = ca.sparsify(total(row @ G[n, m] for n, row in enumerate(rows)))
    return out


@conversion("mass_matrix_inverse")
def _(seen, found):
    A = seen.inverse()
    return {"Minv": A @ found["Minv"] @ A.T}


def _blocks(name, base, V, tau):
    """{key: (6, 6)} of a base: ("v", n, m) of its step and body twists, 0 the step, by those of the user; ("tau", k, r)
    and ("by", k, n) of derivative k of its wrench by derivative r of the body's, and by the body's step and twists."""
    own = slice(base.joint.v_index, base.joint.v_index + 6)
    orders = range(len(V))
    R, p = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    W, B, F = ([ca.SX.sym("x", 6) for _ in x] for x in (V, V, tau))
    pose = ca.vertcat(ca.vec(R), p)
    turned = [ca.vec(R @ skew(ca.DM.eye(3)[:, k])) for k in range(3)]
    step = ca.diagcat(ca.horzcat(*turned), R)  # of the pose, by one in body axes
    out = {("v", 0, 0): convert_columns(name, "body", (R, p), [], [ca.DM.eye(6)])[0]}
    for n, v in enumerate(convert_twists(name, "body", (R, p), W), 1):
        out["v", n, 0] = ca.jacobian(v, pose) @ step @ out["v", 0, 0]
        out |= {("v", n, m + 1): ca.jacobian(v, W[m]) for m in orders if m < n}
    for k, f in enumerate(convert_wrenches("body", name, (R, p), B, F)):
        out |= {("tau", k, r): ca.jacobian(f, F[r]) for r in range(k + 1)}
        out["by", k, 0] = ca.jacobian(f, pose) @ step
        out |= {("by", k, n + 1): ca.jacobian(f, B[n]) for n in range(k)}
    at = ca.Function("blocks", [R, p, *W, *B, *F], list(out.values()))
    values = at.call([ca.SX(x) for x in (*base.C, *base.twist, *(v[own] for v in V), *(t[own] for t in tau))])
    return dict(zip(out, (ca.sparsify(x) for x in values), strict=True))
