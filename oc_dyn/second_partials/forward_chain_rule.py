"""Second partials of forward dynamics by the chain rule: every line of the articulated-body algorithm, twice."""

import casadi as ca

from ..lie.se3 import Ad_inv, ad
from ..registry import method
from .differences import LETTERS, numbered, placed
from .differentiated import Differentiated, bracket, turned_force
from .spatial_vector import CANNOT


@method(
    "forward_dynamics_second_partials",
    "chain_rule",
    kind="analytic",
    source="the articulated-body algorithm, line by line, as in Singh et al. 2023, section VII-A",
    cannot=CANNOT | {"mimic": "its recursion needs joints that move independently"},
    regroup=True,
    graph="mx",
)
def chain_rule(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials").

    Nothing is simplified but that zeros of the tree are left out; cost O(n^3).

    Symbols: V, A twist and acceleration, I, p articulated inertia and bias wrench, U = I S, D = S^T U.
    """
    nv, places = model.robot.nv, ca.Sparsity.dense(model.robot.nv**2, model.robot.nv)
    steps = {letters: numbered(model, *letters, places) for letters in LETTERS}
    leaf = _Leaf(model, {letters: found[0] for letters, found in steps.items()})
    joint_q, joint_v, torque = model.joint_q(q), model.joint_v(v), model.joint_v(T[0])
    applied = None if W is None else model.wrenches(W[0])
    Ad, V, bias, p, I = {}, {0: leaf.constant(ca.DM(6, 1))}, {}, {}, {}
    for i in model.bodies:
        Ad[i], speed = leaf.adjoint(i, joint_q[i]), leaf.linear("v", i, model.S[i], joint_v[i])
        V[i] = Ad[i] @ V[model.parent[i]] + speed
        bias[i] = bracket(V[i], speed)
        p[i] = turned_force(V[i], V[i].map(model.M[i]))
        if applied is not None:
            p[i] = p[i] - leaf.constant(applied[i])
        I[i] = leaf.constant(model.M[i])
    G, K, u = {}, {}, {}
    for i in model.reversed_bodies:
        S, above, own = leaf.constant(model.S[i]), model.parent[i], model.coordinates[i][3]
        U = I[i] @ S
        G[i] = (S.T @ U + leaf.constant(model.rotor(i))).inverse()
        u[i] = leaf.linear("x", i, ca.DM.eye(own), torque[i]) - S.T @ p[i]
        K[i] = U @ G[i]
        if above:
            passed = I[i] - K[i] @ U.T
            p[above] = p[above] + Ad[i].T @ (p[i] + passed @ bias[i] + K[i] @ u[i])
            I[above] = I[above] + Ad[i].T @ (passed @ Ad[i])
    A, dv = {0: leaf.constant(ca.vertcat(ca.DM(3, 1), -model.gravity))}, {}
    for i in model.bodies:
        carried = Ad[i] @ A[model.parent[i]] + bias[i]
        dv[i] = G[i] @ u[i] - K[i].T @ carried
        A[i] = carried + dv[i].map(model.S[i])
    rows = [dv[i] for i in sorted(model.bodies, key=lambda i: model.coordinates[i][2])]

    def stacked(kind, letters, columns):
        parts = (getattr(x, kind).get(letters, ca.MX(x.value.shape[0], columns)) for x in rows)
        return ca.densify(ca.vertcat(*parts))

    tensors = [
        placed(stacked("second", letters, len(pairs)), entries, places) for letters, (pairs, entries) in steps.items()
    ]
    return [(*tensors, stacked("first", "x", nv))]


class _Leaf:
    """What lines start from: constants, adjoints of joints, and terms that are linear in a coordinate."""

    def __init__(self, model, pairs):
        self.model, self.pairs = model, pairs

    def constant(self, value):
        """A value that depends on nothing."""
        return Differentiated(self.pairs, value)

    def linear(self, letter, i, matrix, x):
        """matrix x, x being what belongs to joint i of the vector called `letter`."""
        _, _, start, size = self.model.coordinates[i]
        columns = ca.horzcat(ca.DM(matrix.shape[0], start), matrix)
        columns = ca.horzcat(columns, ca.DM(matrix.shape[0], self.model.robot.nv - start - size))
        return Differentiated(self.pairs, matrix @ x, {letter: ca.sparsify(columns)})

    def adjoint(self, i, q):
        """Ad of body i against its parent: a step e of q along S_t turns it by -ad(S_t)."""
        model, (_, nq, start, size) = self.model, self.model.coordinates[i]
        x = ca.SX.sym("q", nq)
        Ad, turns = ca.sparsify(Ad_inv(model.placement(i, x))), [-ad(s) for s in ca.horzsplit(model.S[i], 1)]
        first = [turn @ Ad for turn in turns]
        second = [turn @ d for turn in turns for d in first]  # by the first step, then by the other
        outputs = [Ad, *(ca.horzcat(*(ca.vec(d) for d in part)) for part in (first, second))]
        value, first, second = ca.Function("adjoint", [x], outputs, {"cse": True}).call([ca.MX(q)])
        nv, pairs = model.robot.nv, self.pairs["q", "q"]
        end = start + size
        own = [c for c, (j, k) in enumerate(pairs) if start <= min(j, k) and max(j, k) < end]
        twice = [(pairs[c][0] - start) * size + pairs[c][1] - start for c in own]
        once = ca.DM.triplet(list(range(size)), list(range(start, end)), ca.DM.ones(size), size, nv)
        twice = ca.DM.triplet(twice, own, ca.DM.ones(len(own)), size * size, len(pairs))
        return Differentiated(self.pairs, value, {"q": first @ once}, {("q", "q"): second @ twice})
