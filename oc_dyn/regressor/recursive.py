"""Regressors by recursion: motion from the ground to the tips, the wrenches of unit parameters from tips to ground."""

from math import comb

import casadi as ca

from ..inverse_dynamics.taylor import Passes
from ..kinematics.reference_motion import reference_motion, to_parent
from ..lie import jets
from ..lie.jets import total
from ..lie.so3 import skew
from ..registry import method
from .columns import author_frames, newton_euler_columns, to_author, wrench_columns


@method(
    "joint_torque_regressor",
    "recursive",
    kind="analytic",
    source="Atkeson, An and Hollerbach 1986: Newton-Euler backward pass of unit parameters; Taylor coefficients: this "
    "toolkit",
)
def joint_torque_regressor(model, order, q, V):
    """Derivatives 0..order of Y (nv, 10 bodies); see od.describe("joint_torque_regressor"). Cost O(n depth order^2).

    The forward pass of inverse_dynamics/taylor gives the acceleration of each body's origin and its acceleration matrix
    as jets; the wrenches of unit parameters are linear in them and go down the path to the ground as jets too.
    """
    V = jets.from_derivatives(V)
    passes = Passes(model, q, V[0])
    for k in range(order + 1):
        passes.torque(V[k + 1])
    columns = []
    for _, i, (R, p) in author_frames(model):
        forces, moments = [], []
        for a, U in zip(passes.a[i], passes.U[i], strict=True):
            U = R @ U @ R.T
            f, n = newton_euler_columns(R @ a - U @ p, U)
            shifted = n - ca.horzcat(skew(p) @ f[:, 1:], ca.DM(3, 6))
            lever = -(skew(p) @ f[:, 0])
            forces.append(R.T @ f)
            moments.append(R.T @ ca.horzcat(lever, shifted))
        columns.append(_down(model, passes.joint, i, forces, moments, order))
    return [ca.horzcat(*x) for x in zip(*(jets.to_derivatives(c) for c in columns), strict=True)]


def _down(model, joint, i, f, n, order):
    """Jet of the joint torques (nv, 10) that hold jets of forces f (3, 4), moments n (3, 10) at body i."""
    force = {}
    while i:
        full = [ca.horzcat(x, ca.DM(3, 6)) for x in f]
        force[i] = [joint[i].force(n, full, k) for k in range(order + 1)]
        p = model.parent[i]
        if p:
            f = _outward(joint[i], f)
            arms = [jets.product_at(joint[i].p, f, k, lambda p, x: skew(p) @ x) for k in range(order + 1)]
            turned = _outward(joint[i], n)
            n = [x + ca.horzcat(y, ca.DM(3, 6)) for x, y in zip(turned, arms, strict=True)]
        i = p
    return [in_rows(model, {j: x[k] for j, x in force.items()}) for k in range(order + 1)]


def _outward(joint, jet):
    """Jet of columns of a body, in its parent's axes."""
    width = jet[0].shape[1]
    by_column = [[x[:, c] for x in jet] for c in range(width)]
    return [ca.horzcat(*(joint.outward_at(column, k) for column in by_column)) for k in range(len(jet))]


def in_rows(model, force):
    """(nv, m) from {body: rows (nv_i, m) of its joint}; mimic joints add to their master."""
    width = next(iter(force.values())).shape[1]
    rows = [ca.DM(1, width)] * model.robot.nv
    for i, x in force.items():
        _, _, first, size = model.coordinates[i]
        for a in range(size):
            rows[first + a] = rows[first + a] + model.rule[i][0] * x[a, :]
    return ca.vertcat(*rows)


@method(
    "slotine_li_regressor",
    "recursive",
    kind="analytic",
    source="after Yuan and Yuan 1995: recursion in body frames, unit parameters in the backward pass",
    coriolis=("christoffel", "garofalo"),
)
def slotine_li_regressor(model, order, q, V, Vr, coriolis):
    """Derivatives 0..order of Ys (nv, 10 bodies); see od.describe("slotine_li_regressor"). Cost O(n depth order^2).

    Equation:  W_k of wrench_columns with the rate Vr' + G for each body, with
               Vr_i = Ad Vr_p + S vr,  Ad' = -ad(S v) Ad, and down the path Ad^T W, whose rate is
               (Ad^T W)' = Ad^T (W' - ad(S v)^T W)
    """
    S, Ad, rates, twist, reference, G = reference_motion(model, order, q, V, Vr)
    columns = []
    for _, i, pose in author_frames(model):
        X = to_author(pose)
        own, seen = [X @ x for x in twist[i]], [X @ x for x in reference[i]]
        rate = [seen[k + 1] + X @ G[i][k] for k in range(order + 1)]
        W = [X.T @ wrench_columns(own, seen, rate, k, coriolis) for k in range(order + 1)]
        force = {}
        while i:
            force[i] = [
                total(comb(n, k) * (S[i][n - k].T @ W[k]) for k in range(n + 1) if S[i][n - k] is not None)
                for n in range(order + 1)
            ]
            W = to_parent(Ad[i], rates[i], W) if model.parent[i] else W
            i = model.parent[i]
        columns.append([in_rows(model, {j: x[k] for j, x in force.items()}) for k in range(order + 1)])
    return [ca.horzcat(*x) for x in zip(*columns, strict=True)]
