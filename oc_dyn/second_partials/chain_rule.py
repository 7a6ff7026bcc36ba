"""Second partials of inverse dynamics by the chain rule: every line of the recursion of Newton and Euler, twice."""

import casadi as ca

from ..lie.se3 import Ad_inv, ad
from ..registry import method
from .spatial_vector import CANNOT
from .tensor import Tensor

_SOURCE = "Lee et al. 2005 for inverse dynamics, as in Singh et al. 2023, section V-A"


@method("inverse_dynamics_second_partials", "chain_rule", kind="analytic", source=_SOURCE, cannot=CANNOT, regroup=True)
def chain_rule(model, order, q, V, W=None):
    """[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]; see od.describe("inverse_dynamics_second_partials"). Nothing is
    simplified; cost O(n^3).

    A variable is (letter, body, column of its joint), the letter q, v or a.
    """
    joint_q, qd, qdd = model.joint_q(q), model.joint_v(V[0]), model.joint_v(V[1])
    applied = None if W is None else model.wrenches(W[0])
    twist, acceleration, wrench, Ad = {}, {}, {}, {}
    twist[0], acceleration[0] = Twice(ca.SX(6, 1)), Twice(ca.vertcat(0, 0, 0, -model.gravity))
    for i in model.bodies:
        p, M = model.parent[i], model.M[i]
        Ad[i] = _adjoint(model, i, joint_q[i])
        speed, gain = _linear(model, "v", i, qd[i]), _linear(model, "a", i, qdd[i])
        twist[i] = Ad[i] @ twist[p] + speed
        acceleration[i] = Ad[i] @ acceleration[p] + gain + twist[i].map(ad) @ speed
        momentum = twist[i].map(lambda x, M=M: M @ x)
        wrench[i] = acceleration[i].map(lambda x, M=M: M @ x) + twist[i].map(lambda x: -ad(x).T) @ momentum
        if applied is not None:
            wrench[i] = wrench[i] + Twice(-applied[i])
    tensors = {letters: Tensor(model) for letters in (("q", "q"), ("v", "v"), ("q", "v"), ("a", "q"))}
    for i in model.reversed_bodies:
        _enter(tensors, i, wrench[i].map(lambda x, S=model.S[i]: S.T @ x))
        p = model.parent[i]
        if p:
            wrench[p] = wrench[p] + Ad[i].map(lambda x: x.T) @ wrench[i]
    return [tuple(x.matrix() for x in tensors.values())]


class Twice:
    """A matrix with its derivatives: first[x] by the variable x, second[x, y] by x, then by y."""

    def __init__(self, value, first=None, second=None):
        self.value, self.first, self.second = value, first or {}, second or {}

    def map(self, linear):
        """A linear function of it, applied to the value and all derivatives."""
        first, second = ({x: linear(d) for x, d in part.items()} for part in (self.first, self.second))
        return Twice(linear(self.value), first, second)

    def __add__(self, other):
        return Twice(self.value + other.value, _sum(self.first, other.first), _sum(self.second, other.second))

    def __matmul__(self, other):
        first = _sum(
            {x: d @ other.value for x, d in self.first.items()}, {x: self.value @ d for x, d in other.first.items()}
        )
        second = _sum(
            {xy: d @ other.value for xy, d in self.second.items()},
            {xy: self.value @ d for xy, d in other.second.items()},
        )
        for x, d in self.first.items():
            for y, e in other.first.items():
                for xy in {(x, y), (y, x)}:
                    if _wanted(*xy):
                        second[xy] = second[xy] + d @ e if xy in second else d @ e
                if x == y:
                    second[x, y] = second[x, y] + d @ e
        return Twice(self.value @ other.value, first, second)


def _sum(a, b):
    out = dict(a)
    for x, d in b.items():
        out[x] = out[x] + d if x in out else d
    return out


def _wanted(x, y):
    """Whether the second derivative by x, then y is kept: both orders for coordinates of one joint only."""
    (a, i, p), (b, j, t) = x, y
    if a == b == "q":
        return i == j or i > j
    return a + b in ("qv", "aq") or (a + b == "vv" and (i, p) >= (j, t))


def _adjoint(model, i, q):
    """Ad of body i against its parent with its derivatives by steps of q: E exp(S_t e) turns it by -ad(S_t)."""
    A, columns = Ad_inv(model.placement(i, q)), ca.horzsplit(model.S[i], 1)
    turn = [-ad(s) for s in columns]
    first = {("q", i, t): turn[t] @ A for t in range(len(turn))}
    second = {(x, y): turn[x[2]] @ first[y] for x in first for y in first}
    return Twice(A, first, second)


def _linear(model, letter, i, x):
    """S x with its derivatives by x."""
    columns = ca.horzsplit(model.S[i], 1)
    return Twice(model.S[i] @ x, {(letter, i, t): s for t, s in enumerate(columns)})


def _enter(tensors, i, force):
    """Put the second derivatives of the force of joint i into the tensors."""
    for (x, y), d in force.second.items():
        (a, *j), (b, *k) = x, y
        commute = a == b and (j[0] != k[0] or a == "v") and j != k
        for p in range(d.shape[0]):
            place = (i, p), tuple(j), tuple(k)
            (tensors[a, b].put_both if commute else tensors[a, b].put)(*place, d[p])
