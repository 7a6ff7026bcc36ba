"""Solving M a + h = tau where some rows of a are known and the others of tau: by a factorised block of the mass
matrix, or by articulated inertias that pass joints of known motion on as they are."""

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..forward_dynamics.mass_solver import factor_tips_first, solve_tips_first
from ..kinematics.step import Step
from ..matrices.composite import composite


def known_rows(model, q, known):
    """Function (h, a, tau) -> (a, tau), all (nv,), that completes a and tau; what is given in rows that are not known
    does not count. Long chains and large trees take articulated inertias, cost O(n)."""
    if "mimic" in model.robot.features or _block_cost(model, known) < 150 * model.n:
        return by_block(composite(model, q), known)
    return by_articulated(model, q, known)


def _block_cost(model, known):
    """Instructions, roughly, of the mass matrix and the factors of its block, counted as in forward_dynamics."""
    cost = 40 * model.n
    for i in model.bodies:
        above = model.support(i)[:-1]
        cost += 16 * sum(model.coordinates[j][3] for j in above)
        if model.coordinates[i][2] not in known:
            free = sum(model.coordinates[j][3] for j in above if model.coordinates[j][2] not in known)
            cost += free * free + free
    return cost


def by_block(M, known):
    """As known_rows, by the factors of the block of M (nv, nv) that is not known."""
    nv, known = M.shape[0], list(known)
    wanted = [k for k in range(nv) if k not in known]
    factors = factor_tips_first(M[wanted, wanted]) if wanted else None

    def complete(h, a, tau):
        if known:
            h = h + M[:, known] @ a[known]
        x = solve_tips_first(factors, tau[wanted] - h[wanted]) if wanted else ca.DM.zeros(0, 1)
        if known and wanted:
            h = h + M[:, wanted] @ x
        place = {row: k for k, row in enumerate(wanted)}
        return (
            ca.vertcat(ca.DM.zeros(0, 1), *(x[place[k]] if k in place else a[k] for k in range(nv))),
            ca.vertcat(ca.DM.zeros(0, 1), *(tau[k] if k in place else h[k] for k in range(nv))),
        )

    return complete


def by_articulated(model, q, known):
    """As known_rows, by the recursion of Kim 2012, Table 4, without velocities; no mimic joints.

    Symbols: [[A, H], [H', B]] articulated inertia, U = inertia S, D = S^T U, n, f bias wrench, w, a motion.
    """
    q = model.joint_q(q)
    given = {i for i in model.bodies if model.coordinates[i][2] in known}
    step = {i: Step(model, i, q[i]) for i in model.bodies}
    S = {i: model.S[i] if model.S[i] is not None else model.subspace_function(i)(q[i]) for i in model.bodies}
    A, H, B = {}, {}, {}
    for i in model.bodies:
        A[i], H[i], B[i] = model.M[i][:3, :3], model.M[i][:3, 3:], model.M[i][3:, 3:]
    U, V, D = {}, {}, {}
    for i in model.tips_first:
        U[i] = A[i] @ S[i][:3, :] + H[i] @ S[i][3:, :], H[i].T @ S[i][:3, :] + B[i] @ S[i][3:, :]
        D[i] = S[i].T @ ca.vertcat(*U[i]) + model.armature[i] * ca.DM.eye(S[i].shape[1])
        passed = A[i], H[i], B[i]
        if i not in given:
            D[i] = factor(D[i])
            V[i] = [solve(D[i], x.T) for x in U[i]]
            (n, f), (vn, vf) = U[i], V[i]
            passed = A[i] - n @ vn, H[i] - n @ vf, B[i] - f @ vf
        p = model.parent[i]
        if p:
            A[p], H[p], B[p] = (x + y for x, y in zip((A[p], H[p], B[p]), step[i].articulated(*passed), strict=True))

    def complete(h, a, tau):
        torque, wanted, x = model.joint_v(tau), model.joint_v(tau - h), model.joint_v(a)
        h = model.joint_v(h)
        n, f = ({i: ca.DM.zeros(3) for i in model.bodies} for _ in range(2))
        for i in model.tips_first:
            p = model.parent[i]
            wanted[i] = wanted[i] - S[i].T @ ca.vertcat(n[i], f[i])
            if p and i in given:
                bias = step[i].wrench(n[i] + U[i][0] @ x[i], f[i] + U[i][1] @ x[i])
            elif p:
                bias = step[i].wrench(n[i] + V[i][0].T @ wanted[i], f[i] + V[i][1].T @ wanted[i])
            if p:
                n[p], f[p] = n[p] + bias[0], f[p] + bias[1]
        w, u = {0: ca.DM.zeros(3)}, {0: ca.DM.zeros(3)}
        for i in model.bodies:
            w[i], u[i] = step[i].twist(w[model.parent[i]], u[model.parent[i]])
            if i in given:
                carried = U[i][0].T @ w[i] + U[i][1].T @ u[i]
                torque[i] = h[i] + D[i] @ x[i] + carried + S[i].T @ ca.vertcat(n[i], f[i])
            else:
                x[i] = solve(D[i], wanted[i]) - V[i][0] @ w[i] - V[i][1] @ u[i]
            w[i], u[i] = w[i] + S[i][:3, :] @ x[i], u[i] + S[i][3:, :] @ x[i]
        return model.stack(x), model.stack(torque)

    return complete
