"""Block matrices of the whole robot in body-fixed twists, and their time derivatives, after Kumar and Mueller 2021.

The twists of all n bodies, one above the other, are V = J v with J = A X. Block (i, j) of A takes twists from body j
to body i where j is on the path to i, and is empty elsewhere: a tree has a sparser A than a chain. X holds the joint
screws, a the brackets ad(X_i v_i) of the joint twists, b those of the body twists, M the inertias.
"""

from functools import wraps
from math import comb

import casadi as ca

from ..lie.jets import total
from ..lie.se3 import Ad_inv, ad
from ..working_axes.assembly import armatures, in_columns
from .fluid import drag


def _kept(equation):
    """Every derivative is made once; the higher ones are built from those kept."""

    @wraps(equation)
    def lookup(self, n=0):
        key = equation.__name__, n  # complete: model and q stay, and of V only what no lower order reads is added
        if key not in self._known:
            self._known[key] = equation(self, n)
        return self._known[key]

    return lookup


class SystemMatrices:
    """Derivatives of the system matrices along a motion, each a method of the order n: A(2) is the second derivative.

    model: canonical robot. q (nq,). V: list [v, dv, ...] of the robot's velocities (nv,) and their derivatives; it
    may grow while lower orders are in use. Columns of X, J, M and C belong to the robot's velocities, so that a mimic
    joint adds to the column of its master.
    Symbols: the paper's M is inertia here where it is the block-diagonal one, and M() the mass matrix; its C is
    block_coriolis() and C(). U holds the adjoints from the ground to the bodies.
    Deviations: trees; several columns to a joint. Then a X is not zero and J' = -A a J (24) fails, while (27), (39)
    and, since a X v = 0, the product C v hold as printed. Transform joints: X has derivatives. (40) needs the
    derivatives of the joint velocities, one order above what it prints. Gravity: V_0' is minus the acceleration of
    gravity, and U starts with the adjoint of the first body, which (33) and (47) leave out where they print I.
    """

    def __init__(self, model, q, V):
        self.model, self.q, self.v = model, q, V
        self.rigid = ca.diagcat(*model.M[1:])  # (29)
        self.inertia = ca.diagcat(*map(model.inertia_in_fluid, model.bodies)) if model.fluid else self.rigid
        self._known, self._top = {}, -1  # what is kept; the order that the screws are known to
        joint_q = model.joint_q(q)
        self.step = {i: ca.sparsify(Ad_inv(model.placement(i, joint_q[i]))) for i in model.bodies}  # from the parent

    def A_times(self, x):
        """A x (6 bodies,) of x (6 bodies,), from body to body: the blocks of A are not made."""
        out, x = {0: ca.DM(6, 1)}, ca.vertsplit(x, 6)
        for i in self.model.bodies:
            out[i] = self.step[i] @ out[self.model.parent[i]] + x[i - 1]
        return ca.vertcat(*(out[i] for i in self.model.bodies))

    def A_transposed_times(self, y):
        """A^T y (6 bodies,) of y (6 bodies,), likewise."""
        out, y = {}, ca.vertsplit(y, 6)
        for i in self.model.reversed_bodies:
            out[i] = total([y[i - 1], *(self.step[c].T @ out[c] for c in self.model.children[i])])
        return ca.vertcat(*(out[i] for i in self.model.bodies))

    @_kept
    def X(self, n=0):
        """(6 bodies, nv) joint screws; their derivatives are zero but for transform joints."""
        if n > self._top:
            self._top = max(n, len(self.v))
            self._screws = self.model.subspaces(self.q, self.v, self._top)
        return ca.vertcat(*(in_columns(self.model, i, self._screws[i][n]) for i in self.model.bodies))

    @_kept
    def a(self, n=0):
        """diag(ad(X_i v_i)), (25), (40)."""
        return self.brackets(total(comb(n, k) * (self.X(n - k) @ self.v[k]) for k in range(n + 1)))

    @_kept
    def A(self, n=0):
        """(6 bodies, 6 bodies) adjoints between bodies."""
        if n:
            return self._recursion(self.A, n) + self._along_columns(n)  # (39)
        A, none = {}, [ca.DM(6, 6)] * self.model.n
        for i in self.model.bodies:
            p = self.model.parent[i]
            above = self.step[i] @ A[p] if p else ca.horzcat(*none)
            A[i] = above + ca.horzcat(*none[: i - 1], ca.DM.eye(6), *none[i:])
        return ca.vertcat(*(A[i] for i in self.model.bodies))  # (23)

    @_kept
    def U(self, n=0):
        """(6 bodies, 6) adjoints from the ground to the bodies: the column of A that belongs to the ground, whose
        bracket is zero."""
        if n:
            return self._recursion(self.U, n)
        U = {0: ca.DM.eye(6)}
        for i in self.model.bodies:
            U[i] = self.step[i] @ U[self.model.parent[i]]
        return ca.vertcat(*(U[i] for i in self.model.bodies))  # (33)

    def _recursion(self, B, n):
        """The second sum of (39), for columns B of A."""
        return -total(
            comb(n - 1, k) * (self.A(n - 1 - k) @ total(comb(k, j) * (self.a(k - j) @ B(j)) for j in range(k + 1)))
            for k in range(n)
        )

    def _along_columns(self, n):
        """The first sum of (39)."""
        return total(comb(n - 1, k) * (self.A(n - 1 - k) @ self.a(k)) for k in range(n))

    @_kept
    def J(self, n=0):
        """(6 bodies, nv) system Jacobian, (22), (41)."""
        return total(comb(n, k) * (self.A(n - k) @ self.X(k)) for k in range(n + 1))

    @_kept
    def V(self, n=0):
        """(6 bodies,) system twist, (21), (42)."""
        return total(comb(n, k) * (self.J(n - k) @ self.v[k]) for k in range(n + 1))

    @_kept
    def b(self, n=0):
        """diag(ad(V_i)), (31), (46)."""
        return self.brackets(self.V(n))

    def brackets(self, twists):
        """(6 bodies, 6 bodies) block-diagonal matrix of the ad of stacked twists."""
        return ca.diagcat(*(ca.sparsify(ad(twists[6 * k : 6 * k + 6])) for k in range(self.model.n)))

    @_kept
    def M(self, n=0):
        """(nv, nv) mass matrix; rotor inertias add to its diagonal. (28), (43)."""
        M = total(comb(n, k) * (self.J(n - k).T @ (self.inertia @ self.J(k))) for k in range(n + 1))
        return M + ca.diag(armatures(self.model)) if n == 0 else M

    @_kept
    def block_coriolis(self, n=0):
        """(6 bodies, 6 bodies), (30), (45)."""
        Aa = total(comb(n, k) * (self.A(n - k) @ self.a(k)) for k in range(n + 1))
        return -(self.inertia @ Aa) - self.b(n).T @ self.inertia

    @_kept
    def C(self, n=0):
        """(nv, nv) Coriolis matrix J^T C J, (28), (44); where X is not constant, + J^T M A X'."""
        inner = []
        for k in range(n + 1):
            term = total(comb(k, j) * (self.block_coriolis(k - j) @ self.J(j)) for j in range(k + 1))
            for j in range(k + 1):
                rate = self.X(k - j + 1)
                if rate.nnz():
                    term = term + comb(k, j) * (self.inertia @ (self.A(j) @ rate))
            inner.append(term)
        return total(comb(n, k) * (self.J(n - k).T @ inner[k]) for k in range(n + 1))

    @_kept
    def drag(self, n=0):
        """(nv,) torques against the drag of a fluid, which no matrix is multiplied with: nothing of the source."""
        twists = [self.V(k) for k in range(n + 1)]
        return total(comb(n, k) * (self.J(n - k).T @ self.drag_wrenches(twists[: k + 1])) for k in range(n + 1))

    def drag_wrenches(self, twists):
        """(6 bodies,) highest derivative of the wrenches of drag at system twists [V, V', ...]."""
        order, twists = len(twists) - 1, [ca.vertsplit(V, 6) for V in twists]
        by_body = (
            total([ca.SX(6, 1), *(drag(x, [V[i - 1] for V in twists], order) for x in self.model.fluid[i])])
            for i in self.model.bodies
        )
        return ca.vertcat(*by_body)

    @_kept
    def g(self, n=0):
        """(nv,) torques that hold the robot against gravity, (32), (47)."""
        ground = ca.vertcat(0, 0, 0, -self.model.gravity)  # V_0'
        return total(comb(n, k) * (self.J(n - k).T @ (self.rigid @ (self.U(k) @ ground))) for k in range(n + 1))
