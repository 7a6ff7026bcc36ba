"""Solving M x = b for many right-hand sides: by the factorised mass matrix, or by articulated inertias."""

import casadi as ca

from ..kinematics.step import Step
from ..matrices.composite import composite
from .articulated_body import factor, solve


def mass_solver(model, q):
    """Function b (nv,) -> x (nv,) with M(q) x = b. Long chains and large trees take articulated inertias, cost O(n);
    robots with few joints on a path, and mimic joints, the mass matrix, whose factors are sparse between branches."""
    if "mimic" in model.robot.features or dense_cost(model) < articulated_cost(model):
        factors = factor_tips_first(composite(model, q))
        return lambda b: solve_tips_first(factors, b)
    return articulated(model, q)


def factor_tips_first(M):
    """Factors of a mass matrix for solve_tips_first. From the tips to the base the factors of a branching robot
    have no entries where the mass matrix has none (Featherstone 2005)."""
    return ca.ldl(ca.sparsify(M[::-1, ::-1]), False)


def solve_tips_first(factors, b):
    """Solution of M x = b from factor_tips_first(M); b may have several columns."""
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


def articulated(model, q):
    """Function b (nv,) -> x (nv,) with M(q) x = b by articulated inertias; Featherstone 1983, without velocities.

    Symbols: [[A, H], [H', B]] articulated inertia, U = inertia S, D = S^T U, n, f bias wrench, w, a motion.
    """
    S = {i: motion[0] for i, motion in model.subspaces(q, [], 0).items()}
    q = model.joint_q(q)
    step = {i: Step(model, i, q[i]) for i in model.bodies}
    A, H, B = ({i: model.M[i][rows, columns] for i in model.bodies} for rows, columns in _BLOCKS)
    U, V, D = {}, {}, {}
    for i in model.tips_first:
        U[i] = A[i] @ S[i][:3, :] + H[i] @ S[i][3:, :], H[i].T @ S[i][:3, :] + B[i] @ S[i][3:, :]
        D[i] = factor(S[i].T @ ca.vertcat(*U[i]) + model.armature[i] * ca.DM.eye(S[i].shape[1]))
        V[i] = [solve(D[i], x.T) for x in U[i]]
        p = model.parent[i]
        if p:
            (n, f), (vn, vf) = U[i], V[i]
            moved = step[i].articulated(A[i] - n @ vn, H[i] - n @ vf, B[i] - f @ vf)
            A[p], H[p], B[p] = (x + y for x, y in zip((A[p], H[p], B[p]), moved, strict=True))

    def apply(b):
        b = model.joint_v(b)
        n, f = ({i: ca.DM.zeros(3) for i in model.bodies} for _ in range(2))
        w, a, u, x = {0: ca.DM.zeros(3)}, {0: ca.DM.zeros(3)}, {}, {}
        for i in model.tips_first:
            u[i] = b[i] - S[i].T @ ca.vertcat(n[i], f[i])
            p = model.parent[i]
            if p:
                bias = step[i].wrench(n[i] + V[i][0].T @ u[i], f[i] + V[i][1].T @ u[i])
                n[p], f[p] = n[p] + bias[0], f[p] + bias[1]
        for i in model.bodies:
            w[i], a[i] = step[i].twist(w[model.parent[i]], a[model.parent[i]])
            x[i] = solve(D[i], u[i]) - V[i][0] @ w[i] - V[i][1] @ a[i]
            w[i], a[i] = w[i] + S[i][:3, :] @ x[i], a[i] + S[i][3:, :] @ x[i]
        return model.stack(x)

    return apply


_BLOCKS = ((slice(0, 3), slice(0, 3)), (slice(0, 3), slice(3, 6)), (slice(3, 6), slice(3, 6)))
