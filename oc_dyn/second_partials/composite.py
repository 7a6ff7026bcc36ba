"""Second partials of inverse dynamics by sums over subtrees, in working axes, and few wrenches a pair of joints.

As in the algorithm of Singh et al. every entry is a product of a wrench, made by a joint i and a joint j above it, with
a screw of a joint k above both. What makes it short: the motion of joint i does to the torques above no more than its
Effect says, which is carried from joint to joint, and where it meets joint j the screw is a unit vector; the matrices
2 B need the angular half of what they act on only; and of the numbers that belong to three joints many are sums of
others, since dM/dq makes the Christoffel symbols of d2tau/dvdv, and d(M v)/dq its partials by q.
"""

import casadi as ca

from ..registry import method
from ..working_axes.fields import plus, turned_by
from .ground_motion import GroundTree
from .joint_effects import effect
from .path_screws import PathScrews
from .tensor import Tensor

CANNOT = {"transform": "its screw changes with its coordinates"}
SOURCE = "this toolkit: Singh et al. 2023, appendix C, on working axes with base parameters"


@method("inverse_dynamics_second_partials", "composite", kind="analytic", source=SOURCE, cannot=CANNOT, regroup=True)
def composite(model, order, q, V, W=None):
    """[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]; see od.describe("inverse_dynamics_second_partials"). Cost O(n
    depth^2).

    Joint k is above joint j, and j above joint i; one may be another. (i, p), (j, t), (k, r) are single coordinates.
    """
    trees = GroundTree(model, q, V[0], V[1], W and W[0])
    path, tensors = PathScrews(model, trees), [Tensor(model) for _ in range(4)]
    for i in model.reversed_bodies:
        sums, own = trees.sum(i), trees.screws[i]
        for p in range(own.size):
            screw = own.column(p)
            for j, projected, moved in path.climb(i, effect(sums, screw)):
                for t in range(trees.screws[j].size):
                    meeting = Meeting(moved, projected[j].screws.column(t))
                    if i == j:
                        meeting.join(sums, screw)
                    for k in model.support(j):
                        single = all(trees.screws[x].size == 1 for x in (i, j, k))
                        _enter(tensors, (i, p), (j, t), k, meeting, path.reader(projected, k, j), single)
    return [tuple(x.matrix() for x in tensors)]


class Meeting:
    """Wrenches that the Effect of a coordinate p of joint i makes where it meets the coordinate t of joint j: read by
    the screws of a joint k above, they give all second partials that the three have in common.

    Symbols:   u9, u11, ... are those of Algorithm 1, u12 = u9 + u11.
    """

    def __init__(self, effect, screw):
        s, change = effect.s, effect.change
        n, f = s.momentum()
        self.effect, self.screw, self.P = effect, screw, (0.5 * n, 0.5 * f)
        self.u9 = turned_by(screw.s, self.P)
        self.u11 = s.coriolis_transposed(screw.s), None
        self.u12 = self.u9[0] + self.u11[0], self.u9[1]
        self.u1 = change.coriolis_transposed(screw.s), None
        self.u8 = ca.cross(screw.s[0], effect.G) - s.coriolis_transposed(screw.psi), None
        self.twice = s.coriolis(screw.psi[0])
        self.u6 = plus(self.twice, turned_by(screw.s, effect.along_v))
        held = plus(change.coriolis(screw.psi[0]), s.inertia_change(screw.psi2))
        self.u3 = plus(held, turned_by(screw.s, effect.along_q))
        self.u7 = plus(change.coriolis(screw.s[0]), s.inertia_change(screw.rate))

    @property
    def u5(self):
        """Needed only where the torque by q_j and v_k is not a sum of others."""
        n, f = turned_by(self.screw.psi, self.P)
        return 2 * n - self.twice[0] + ca.cross(self.screw.s[0], self.effect.G), 2 * f - self.twice[1]

    def join(self, sums, screw):
        """The two coordinates belong to one joint; sums: of its subtree, screw: of coordinate p."""
        self.u4 = plus(turned_by(screw.s, sums.inertia(self.screw.s)), self.u9)


def _enter(tensors, i, j, k, meeting, reader, single):  # noqa: C901, the branches of Algorithm 1, in its order
    """Put in what i = (joint, coordinate), j and coordinates of joint k share; lines of Algorithm 1 on the right, whose
    branches these are."""
    qq, vv, qv, dM = tensors
    u = meeting
    other, above = j[0] != i[0], k != j[0]  # j is not i, k is not j
    s9, s11 = reader.s(u.u9), reader.s(u.u11)
    y11, z9 = reader.psi(u.u11), reader.psi2(u.u9)
    i_qq = reader.psi(u.u8) + z9
    if single:
        y9 = 2 * reader.psi(u.u9)
        y12 = y9 + 2 * y11
    else:
        y9, y12 = reader.rate(u.u9), reader.rate(u.u12)
    if other:
        j_qq = reader.psi(u.u1) + (z9 + reader.psi2(u.u11))
        j_qv = reader.s(u.u1) + y12
        s12 = s9 + s11
    if above:
        k_qq, k_qv = reader.s(u.u3), reader.s(u.u6)
        if other:
            k_vq = reader.s(u.u7)
        i_qv = k_qv - 2 * y11 + (j_qv - k_vq) if other and single else reader.s(u.u5) + y9
    for r in range(s9.shape[1]):
        at = k, r
        qq.put(i, j, at, i_qq[r])  # 44
        qv.put(i, at, j, -y11[r])
        if other:
            qq.put_both(j, at, i, j_qq[r])  # 46
            qv.put(j, i, at, j_qv[r])  # 47
            qv.put(j, at, i, y11[r])  # 48
            vv.put_both(j, at, i, s11[r])  # 49
            dM.put(at, j, i, s12[r])  # 50
        if above:
            qq.put(i, at, j, i_qq[r])  # 53
            qq.put(at, i, j, k_qq[r])
            vv.put_both(i, j, at, -s11[r])  # 54
            qv.put(i, j, at, i_qv[r])  # 55
            qv.put(at, j, i, k_qv[r])  # 56
            dM.put(at, i, j, s9[r])  # 57
            dM.put(i, at, j, s9[r])
        if above and other:
            dM.put(j, at, i, s12[r])  # 50
            qq.put(at, j, i, k_qq[r])  # 59
            qv.put(at, i, j, k_vq[r])  # 60
            vv.put_both(at, i, j, s9[r] + s12[r])  # 61
    if above and not other:
        both = reader.s(u.u4)
        for r in range(both.shape[1]):
            vv.put((k, r), j, i, both[r])  # 63
    if not above:
        own = reader.s(u.effect.s.inertia_change(u.screw.s))
        for r in range(own.shape[1]):
            vv.put(i, j, (k, r), -own[r])  # 66
