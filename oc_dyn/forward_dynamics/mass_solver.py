"""Solving M x = b for many right-hand sides: by the factorised mass matrix, or by articulated inertias."""

import casadi as ca

from ..matrices.whole_mass import whole_mass
from ..working_axes.frames import body_placements
from .articulated_body import factor, solve


def mass_solver(model, q):
    """Function b (nv,) -> x (nv,) with M(q) x = b. Long chains and large trees take articulated inertias, cost O(n);
    robots with few joints on a path, and mimic joints, the mass matrix, whose factors are sparse between branches."""
    if model.fluid or "mimic" in model.robot.features or dense_cost(model) < articulated_cost(model):
        factors = factor_reversed(whole_mass(model, q))
        return lambda b: solve_reversed(factors, b)
    return articulated(model, q)


def articulated(model, q):
    """As mass_solver, by articulated inertias."""
    complete, zero = by_articulated(model, q, ()), ca.DM.zeros(model.robot.nv)
    return lambda b: complete(zero, zero, b)[0]


def factor_reversed(M):
    """Factors of a mass matrix for solve_reversed. From the tips to the base the factors of a branching robot
    have no entries where the mass matrix has none (Featherstone 2005). The lower half of M is read: derivatives that
    make it may leave zeros in one half that are not seen to be such in the other."""
    reversed_ = ca.sparsify(M[::-1, ::-1])
    return ca.ldl(ca.triu2symm(ca.triu(reversed_)), False)


def solve_reversed(factors, b):
    """Solution of M x = b from factor_reversed(M); b may have several columns."""
    return ca.ldl_solve(ca.densify(b[::-1, :]), *factors)[::-1, :]


def dense_cost(model):
    """Instructions, roughly, of the mass matrix by composite bodies and its factors: counted on arms and legged
    robots, 16 for every pair of body and ancestor and the multiplications of the factors."""
    depth = [_depth(model, i) for i in model.bodies]
    return 40 * model.n + sum(16 * d + d * d + d for d in depth)


def articulated_cost(model):
    """Instructions, roughly, of articulated inertias."""
    return 150 * model.n


def _depth(model, i):
    """Velocities of the joints on the path above body i."""
    return sum(model.coordinates[j][3] for j in model.support(i)[:-1])


def by_articulated(model, q, known):
    """Function (h, a, tau) -> (a, tau), all (nv,), that completes M a + h = tau where the rows `known` of a are given
    and the others of tau: by the recursion of Kim 2012, Table 4, without velocities; no mimic joints. Cost O(n).

    Symbols: [[A, H], [H', B]] articulated inertia, U = inertia S, D = S^T U, n, f bias wrench, w, a motion.
    """
    q = model.joint_q(q)
    known_bodies = {i for i in model.bodies if model.coordinates[i][2] in known}
    frames = body_placements(model, q)
    S = {i: model.S[i] if model.S[i] is not None else model.subspace_function(i)(q[i]) for i in model.bodies}
    A, H, B = {}, {}, {}
    for i in model.bodies:
        A[i], H[i], B[i] = model.M[i][:3, :3], model.M[i][:3, 3:], model.M[i][3:, 3:]
    U, V, D = {}, {}, {}
    for i in model.reversed_bodies:
        U[i] = A[i] @ S[i][:3, :] + H[i] @ S[i][3:, :], H[i].T @ S[i][:3, :] + B[i] @ S[i][3:, :]
        D[i] = S[i].T @ ca.vertcat(*U[i]) + model.rotor(i)
        passed = A[i], H[i], B[i]
        if i not in known_bodies:
            D[i] = factor(D[i])
            V[i] = [solve(D[i], x.T) for x in U[i]]
            (n, f), (vn, vf) = U[i], V[i]
            passed = A[i] - n @ vn, H[i] - n @ vf, B[i] - f @ vf
        p = model.parent[i]
        if p:
            A[p], H[p], B[p] = (x + y for x, y in zip((A[p], H[p], B[p]), frames[i].articulated(*passed), strict=True))

    def complete(h, a, tau):
        torque, wanted, x = model.joint_v(tau), model.joint_v(tau - h), model.joint_v(a)
        h = model.joint_v(h)
        n, f = ({i: ca.DM.zeros(3) for i in model.bodies} for _ in range(2))
        for i in model.reversed_bodies:
            p = model.parent[i]
            wanted[i] = wanted[i] - S[i].T @ ca.vertcat(n[i], f[i])
            if p and i in known_bodies:
                bias = frames[i].wrench(n[i] + U[i][0] @ x[i], f[i] + U[i][1] @ x[i])
            elif p:
                bias = frames[i].wrench(n[i] + V[i][0].T @ wanted[i], f[i] + V[i][1].T @ wanted[i])
            if p:
                n[p], f[p] = n[p] + bias[0], f[p] + bias[1]
        w, u = {0: ca.DM.zeros(3)}, {0: ca.DM.zeros(3)}
        for i in model.bodies:
            w[i], u[i] = frames[i].twist(w[model.parent[i]], u[model.parent[i]])
            if i in known_bodies:
                carried = U[i][0].T @ w[i] + U[i][1].T @ u[i]
                torque[i] = h[i] + D[i] @ x[i] + carried + S[i].T @ ca.vertcat(n[i], f[i])
            else:
                x[i] = solve(D[i], wanted[i]) - V[i][0] @ w[i] - V[i][1] @ u[i]
            w[i], u[i] = w[i] + S[i][:3, :] @ x[i], u[i] + S[i][3:, :] @ x[i]
        return model.stack(x), model.stack(torque)

    return complete
