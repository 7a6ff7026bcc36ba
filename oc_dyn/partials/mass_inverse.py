"""The inverse of the mass matrix."""

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..registry import method
from ..working_axes.assembly import assembled
from ..working_axes.frames import body_placements
from .implicit import inverse, mass_matrix, mass_solver


@method(
    "mass_matrix_inverse",
    "cholesky",
    kind="analytic",
    source="factors of the mass matrix from the tips to the base (Featherstone 2005); Singh et al. 2023, section VI",
    regroup=True,
)
def cholesky(model, q):
    """M^-1 (nv, nv); see od.describe("mass_matrix_inverse"). Cost O(n depth^2) beside the mass matrix."""
    return inverse(mass_solver(mass_matrix(model, q)), model.robot.nv)


@method(
    "mass_matrix_inverse",
    "articulated",
    kind="analytic",
    source="Carpentier 2018, analytical inverse of the joint space inertia matrix",
    cannot={"mimic": "its recursion needs joints that move independently"},
    regroup=True,
)
def articulated(model, q):
    """M^-1 (nv, nv); see od.describe("mass_matrix_inverse"). Cost O(n depth).

    Symbols: MA articulated inertia, U = MA S, D = S^T U, F[i] {joint: its columns of the wrench that passes body i},
    P[i] {joint: columns of the acceleration of body i}. Only joints j >= i in the upper half are followed.
    """
    S = {i: motion[0] for i, motion in model.subspaces(q, [], 0).items()}
    q = model.joint_q(q)
    frames = body_placements(model, q)
    MA, F = {i: ca.SX(model.M[i]) for i in model.bodies}, {i: {} for i in model.bodies}
    U, K, D, rows = {}, {}, {}, {}
    for i in model.reversed_bodies:
        U[i] = MA[i] @ S[i]
        D[i] = factor(S[i].T @ U[i] + model.rotor(i))
        K[i] = solve(D[i], U[i].T)
        rows[i] = {j: -solve(D[i], S[i].T @ wrench) for j, wrench in F[i].items()}
        rows[i][i] = solve(D[i], ca.DM.eye(S[i].shape[1]))
        p = model.parent[i]
        if not p:
            continue
        projected = MA[i] - U[i] @ K[i]
        moved = frames[i].articulated(projected[:3, :3], projected[:3, 3:], projected[3:, 3:])
        MA[p] = MA[p] + ca.blockcat([[moved[0], moved[1]], [moved[1].T, moved[2]]])
        for j, x in rows[i].items():
            wrench = U[i] @ x + F[i].get(j, ca.SX(6, x.shape[1]))
            F[p][j] = ca.vertcat(*frames[i].wrench(wrench[:3, :], wrench[3:, :]))
    P, blocks = {0: {}}, {}
    for i in model.bodies:
        P[i] = {}
        for j in (j for j in model.bodies if j >= i):
            above = P[model.parent[i]].get(j)
            x = rows[i].get(j)
            if above is not None:
                carried = ca.vertcat(*frames[i].twist(above[:3, :], above[3:, :]))
                x = -(K[i] @ carried) if x is None else x - K[i] @ carried
            if x is None:
                continue
            blocks[i, j] = x
            P[i][j] = S[i] @ x if above is None else carried + S[i] @ x
    return assembled(model, blocks, mirrored=True)
