"""Second partials of inverse dynamics by the algorithm IDSVA-SO, in the axes of the ground."""

import casadi as ca

from ..kinematics.recursive_body import local_poses
from ..lie.se3 import Ad, Ad_inv, ad, force_cross
from ..registry import method
from .tensor import Tensor

CANNOT = {"transform": "its motion subspace changes with its coordinates"}


@method(
    "inverse_dynamics_second_partials",
    "spatial_vector",
    kind="analytic",
    source="Singh et al. 2023, Algorithm 1 (IDSVA-SO)",
    cannot=CANNOT,
    regroup=True,
)
def spatial_vector(model, order, q, V, W=None):
    """[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]; see od.describe("inverse_dynamics_second_partials").

    Symbols:   x and x* of the paper are ad(v) and -ad(v)^T; f x-bar* is `force_cross`, B(I, v) is `coriolis` (both
               without the factor 1/2 of eq. 14, as in the listing); Sd, psi, psi2 are S', Psi', Psi''.
    Deviations: applied wrenches are taken off f, which line 10 leaves out; line 47 writes the torque of joint j with
               the index r, meant is t; mimic joints add to their master.
    Cost O(n depth^2).
    """
    forward = _forward_pass(model, q, V, W)
    return _backward_pass(model, *forward)


def _forward_pass(model, q, V, W):
    v, a = {0: ca.SX(6, 1)}, {0: ca.vertcat(0, 0, 0, -model.gravity)}  # 1
    poses, qd, qdd = local_poses(model, q), model.joint_v(V[0]), model.joint_v(V[1])
    applied = None if W is None else model.wrenches(W[0])
    S, Sd, psi, psi2, IC, BC, fC = {}, {}, {}, {}, {}, {}, {}
    for i in model.bodies:
        p = model.parent[i]
        S[i] = Ad(poses[i]) @ model.S[i]
        v[i] = v[p] + S[i] @ qd[i]  # 3
        a[i] = a[p] + S[i] @ qdd[i] + ad(v[i]) @ (S[i] @ qd[i])  # 4
        Sd[i] = ad(v[i]) @ S[i]  # 5
        psi[i] = ad(v[p]) @ S[i]  # 6
        psi2[i] = ad(a[p]) @ S[i] + ad(v[p]) @ psi[i]  # 7
        inward = Ad_inv(poses[i])
        IC[i] = inward.T @ model.M[i] @ inward  # 8
        BC[i] = coriolis(IC[i], v[i])  # 9
        fC[i] = IC[i] @ a[i] - ad(v[i]).T @ (IC[i] @ v[i])  # 10
        if applied is not None:
            fC[i] = fC[i] - inward.T @ applied[i]
    return S, Sd, psi, psi2, IC, BC, fC


def _backward_pass(model, S, Sd, psi, psi2, IC, BC, fC):  # as long as the listing, so that the two can be compared
    qq, vv, qv, dM = tensors = [Tensor(model) for _ in range(4)]
    for i in model.reversed_bodies:  # 12
        I, B = IC[i], BC[i]
        for p in range(S[i].shape[1]):
            s, sd, y, y2 = (x[i][:, p] for x in (S, Sd, psi, psi2))  # 14
            Bs, By = coriolis(I, s), coriolis(I, y)  # 15, 16
            A0 = force_cross(I @ s)  # 17
            A1 = -ad(s).T @ I - I @ ad(s)  # 18
            A2 = 2 * A0 - Bs  # 19
            A3 = By - ad(s).T @ B - B @ ad(s)  # 20
            A4 = force_cross(B.T @ s)  # 21
            A5 = force_cross(B @ y + I @ y2 - ad(s).T @ fC[i])  # 22
            A6 = -ad(s).T @ I + A0  # 23
            A7 = force_cross(B @ s + I @ (y + sd))  # 24
            for j in model.support(i)[::-1]:  # 26
                for t in range(S[j].shape[1]):
                    st, sdt, yt, y2t = (x[j][:, t] for x in (S, Sd, psi, psi2))  # 28
                    u1, u2 = A3.T @ st, A1.T @ st  # 29
                    u3 = A3 @ yt + A1 @ y2t + A5 @ st  # 30
                    u4, u5 = A6 @ st, A2 @ yt + A4 @ st  # 31
                    u6 = Bs @ yt + A7 @ st  # 32
                    u7 = A3 @ st + A1 @ (yt + sdt)  # 33
                    u8, u9 = A4 @ st - Bs.T @ yt, A0 @ st  # 34
                    u10, u11 = Bs @ st, Bs.T @ st  # 35
                    u12 = A1 @ st  # 36
                    for k in model.support(j)[::-1]:  # 38
                        for r in range(S[k].shape[1]):
                            sr, sdr, yr, y2r = (x[k][:, r] for x in (S, Sd, psi, psi2))  # 40, 41
                            ip, jt, kr = (i, p), (j, t), (k, r)
                            p1, p2 = _dot(u11, yr), _dot(u8, yr) + _dot(u9, y2r)  # 42, 43
                            qq.put(ip, jt, kr, p2)  # 44
                            qv.put(ip, kr, jt, -p1)
                            if j != i:
                                qq.put_both(jt, kr, ip, _dot(u1, yr) + _dot(u2, y2r))  # 46
                                qv.put(jt, ip, kr, _dot(u1, sr) + _dot(u2, sdr + yr))  # 47
                                qv.put(jt, kr, ip, p1)  # 48
                                vv.put_both(jt, kr, ip, _dot(u11, sr))  # 49
                                dM.put(kr, jt, ip, _dot(sr, u12))  # 50
                                if k != j:
                                    dM.put(jt, kr, ip, _dot(sr, u12))
                            if k != j:
                                qq.put(ip, kr, jt, p2)  # 53
                                qq.put(kr, ip, jt, _dot(sr, u3))
                                vv.put_both(ip, jt, kr, -_dot(u11, sr))  # 54
                                qv.put(ip, jt, kr, _dot(sr, u5) + _dot(u9, sdr + yr))  # 55
                                qv.put(kr, jt, ip, _dot(sr, u6))  # 56
                                dM.put(kr, ip, jt, _dot(sr, u9))  # 57
                                dM.put(ip, kr, jt, _dot(sr, u9))
                                if j != i:
                                    qq.put(kr, jt, ip, _dot(sr, u3))  # 59
                                    qv.put(kr, ip, jt, _dot(sr, u7))  # 60
                                    vv.put_both(kr, ip, jt, _dot(sr, u10))  # 61
                                else:
                                    vv.put(kr, jt, ip, _dot(sr, u4))  # 63
                            else:
                                vv.put(ip, jt, kr, -_dot(u2, sr))  # 66
        above = model.parent[i]
        if above:
            IC[above], BC[above], fC[above] = IC[above] + I, BC[above] + B, fC[above] + fC[i]  # 76, 77
    return [tuple(x.matrix() for x in tensors)]


def coriolis(I, v):
    """Twice the body Coriolis matrix B(I, v) of eq. 14."""
    return -ad(v).T @ I - I @ ad(v) + force_cross(I @ v)


def _dot(a, b):
    return (a.T @ b)[0]
