"""Inverse dynamics of any order by the spatial recursion of Ali et al.: nothing is carried from frame to frame."""

from math import comb

import casadi as ca

from ..kinematics.recursive_body import local_poses
from ..kinematics.recursive_spatial import forward_kinematics
from ..lie import se3
from ..lie.jets import total
from ..lie.leibniz import carry
from ..lie.so3 import skew
from ..model.inertia import casadi_value
from ..registry import method


@method("inverse_dynamics", "recursive_spatial", kind="analytic", source="Ali et al. 2026, Algorithms 1 and 2")
def recursive_spatial(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  tau_i^(k) = sum_r C(k,r) (S_i^(r))^T W_i^(k-r)
    Deviations: {0} is where the first body of a tree now is; trees on any base, joints of several coordinates, S that
               depends on them; the base wrench is the torque of a free joint. Of the inertias only the entries that
               change are computed.
    Cost O(n order^2).
    """
    S, Wd = joint_wrenches(model, order, q, V, W)
    tau = []
    for k in range(order + 1):
        dv = model.joint_v(V[k + 1])
        forces = {i: wrench_on_screw(S[i], Wd[i], k) + model.armature[i] * dv[i] for i in model.bodies}
        tau.append(model.stack(forces))
    return tau


def joint_wrenches(model, order, q, V, W=None, poses=local_poses):
    """Derivatives 0..order of the screws S[i] and of the wrenches Wd[i] that the joints transmit, in {0}: in root axes,
    about the point that local_poses tells, or about the root's origin with poses=body_poses.

    Equation:  W_i^(k) = Pi_i^(k+1) - M_i^(k) [0; g] - W_app,i^(k) + sum_c W_c^(k),  Pi_i = M_i V_i
    """
    C, S, Vd = forward_kinematics(model, order + 1, q, V, poses)
    applied = None if W is None else [model.wrenches(x) for x in W]
    Wd = {}
    for i in model.reversed_bodies:
        M = [spatial_inertia(model.inertia[i], C[i])]
        for _ in range(order + 1):
            M.append(next_inertia(M, Vd[i]))
        Wd[i] = [bias(model, M, Vd[i], k) + M[0] @ Vd[i][k + 1] for k in range(order + 1)]
        if applied is not None:
            rates = [-se3.ad(x).T for x in Vd[i][:order]]
            pushed = carry(se3.Ad_inv(C[i]).T, rates, [F[i] for F in applied])  # (67)-(70)
            Wd[i] = [x - y for x, y in zip(Wd[i], pushed, strict=True)]
        for c in model.children[i]:
            Wd[i] = [x + y for x, y in zip(Wd[i], Wd[c], strict=True)]
    return S, Wd


def spatial_inertia(inertia, C):
    """Inertia of a body, given in its frame, about and in the axes of {0}; C is its pose. -> (6, 6)."""  # (60)
    R, p = C
    h, P = R @ casadi_value(inertia.moment), skew(p)
    H = skew(h)
    T = R @ casadi_value(inertia.tensor) @ R.T - P @ H - H @ P - inertia.mass * (P @ P)
    return _inertia_matrix(0.5 * (T + T.T), h + inertia.mass * p, inertia.mass)


def next_inertia(M, V):
    """The next derivative of an inertia in {0} from M = [M, M', ...] and the twist V = [V, V', ...] of its body.

    Equation:  M^(k) = -sum_r C(k-1,r) (ad(V^(r))^T M^(k-1-r) + M^(k-1-r) ad(V^(r)))  (61)
    The mass is constant; for first moment h and tensor T the blocks say h' = w x h + m v and T' = -(G + G^T) with
    G = T skew(w) + skew(h) skew(v).
    """
    k, mass = len(M), M[0][5, 5]
    terms = [(comb(k - 1, r), M[k - 1 - r][:3, :3], _moment(M[k - 1 - r]), V[r][:3], V[r][3:]) for r in range(k)]
    G = total(c * (T @ skew(w) + skew(h) @ skew(v)) for c, T, h, w, v in terms)
    h = total(c * ca.cross(w, h) for c, _, h, w, _ in terms) + mass * V[k - 1][3:]
    return _inertia_matrix(-(G + G.T), h, 0)


def inertias(model, i, C, twists, order):
    """Derivatives 0..order of the inertia (6, 6) of body i in root axes, about the point that C is seen from."""
    M = [spatial_inertia(model.inertia[i], C[i])]
    for _ in range(order):
        M.append(next_inertia(M, twists[i]))
    return M


def _inertia_matrix(T, h, mass):
    H = skew(h)
    return ca.vertcat(ca.horzcat(T, H), ca.horzcat(-H, mass * ca.DM.eye(3)))


def _moment(M):
    return ca.vertcat(M[2, 4], M[0, 5], M[1, 3])


def bias(model, M, V, k):
    """Pi^(k+1) - M^(k) [0; g] of a body without the term of V^(k+1), which is not needed yet; (62)-(65)."""
    weight = M[k] @ ca.vertcat(0, 0, 0, model.gravity)
    return total(comb(k + 1, r) * (M[r] @ V[k + 1 - r]) for r in range(1, k + 2)) - weight


def wrench_on_screw(S, W, k):
    """Derivative k of S^T W."""
    return total(comb(k, r) * (S[r].T @ W[k - r]) for r in range(k + 1))
