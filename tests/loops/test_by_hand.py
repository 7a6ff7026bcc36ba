"""Robots with loops against Lagrange's equations of the first kind, written out here: the energies of the bodies from
their poses, what closes the loops from the points and axes that meet, derivatives along the motion by AD."""

from math import comb

import casadi as ca
import numpy as np
import pytest
from loops.linkages import FIXED, all_of, largest, linkage, state

import oc_dyn as od
from oc_dyn.lie.time_derivatives import time_derivatives
from oc_dyn.model.closure import body_poses

ORDERS = dict.fromkeys(FIXED, 5) | {"planar_3rrr": 3, "differential_ankle": 3}  # 5 takes minutes


def energies(tree, q, v):
    """(kinetic, potential) energy from poses and their rates."""
    T, U = 0, 0
    for (R, p), b in zip(body_poses(tree, q)[1:], tree.bodies, strict=True):
        m, h = b.inertia.mass, ca.DM(b.inertia.moment)
        dR, dp = ca.reshape(ca.jtimes(ca.vec(R), q, v), 3, 3), ca.jtimes(p, q, v)
        W = R.T @ dR
        w = ca.vertcat(W[2, 1], W[0, 2], W[1, 0])
        T += 0.5 * m * ca.sumsqr(dp) + ca.dot(dp, dR @ h) + 0.5 * w.T @ ca.DM(b.inertia.tensor) @ w
        T += 0.5 * b.joint.armature * ca.sumsqr(v[b.joint.v_index])
        U -= ca.dot(ca.DM(tree.gravity), m * p + R @ h)
    return T, U


def conditions(robot, q):
    """Points that meet and, for hinges, axes that stay parallel, of each loop; coordinates of couplings."""
    poses, rows = body_poses(robot.tree, q), []
    for loop in robot.loops:
        ends = []
        for body, R0, p0 in (
            (loop.bodies[0], loop.rotation_a, loop.translation_a),
            (loop.bodies[1], loop.rotation_b, loop.translation_b),
        ):
            R, p = poses[body]
            ends.append((R @ ca.DM(R0), p + R @ ca.DM(p0)))
        (Ra, pa), (Rb, pb) = ends
        gap = pb - pa
        if robot.name in ("four_bar", "six_bar", "slider_crank", "knee_linkage_leg"):
            rows += [gap[0], gap[2]]  # in the plane they move in
        elif robot.name == "planar_3rrr":
            rows += [gap[0], gap[1]]
        else:
            rows.append(gap)
    for c in robot.couplings:
        x = ca.vertcat(*(q[robot.tree.joint(n).q_index] for n in c.of))
        rows.append(q[robot.tree.joint(c.joint).q_index] - c.function(x))
    return ca.vertcat(*rows)


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", FIXED)
def test_accelerations_and_their_derivatives(name):
    robot, order = linkage(name), ORDERS[name]
    tree = robot.tree
    q, v, T = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv), [ca.SX.sym(f"T{k}", tree.nv) for k in range(order + 2)]
    kinetic, potential = energies(tree, q, v)
    momentum = ca.gradient(kinetic, v)
    M, J = ca.jacobian(momentum, v), ca.jacobian(conditions(robot, q), q)
    h = ca.jtimes(momentum, q, v) - ca.gradient(kinetic - potential, q)
    n = J.shape[0]
    found = ca.solve(
        ca.densify(ca.blockcat([[M, J.T], [J, ca.SX(n, n)]])), ca.vertcat(T[0] - h, -ca.jtimes(J @ v, q, v))
    )[: tree.nv]
    flow = [(q, v), (v, found), *((T[k], T[k + 1]) for k in range(order + 1))]
    hand = ca.Function("hand", [q, v, *T[: order + 1]], time_derivatives(found, order, flow, cse=True))
    own, V = state(robot, 0, seed=4)
    x, rates, _ = all_of(robot, own, V)
    rng = np.random.default_rng(5)
    given = [rng.normal(size=tree.nv) for _ in range(order + 1)]
    expected = [np.array(a).ravel() for a in hand.call([x, rates[0], *given])]
    explicit = od.function(robot, "constrained_dynamics", order=order)(x, rates[0], *given)[: order + 1]
    scale = [max(1.0, np.abs(a).max()) for a in expected]
    assert (
        max(largest(np.array(a).ravel() / s, b / s) for a, b, s in zip(explicit, expected, scale, strict=True)) < 1e-8
    )
    rows = robot.rows("v", robot.independent)
    _, _, G = all_of(robot, own, [V[0], *(a[rows] for a in expected[:-1])])
    tau = [sum(comb(k, j) * G[j].T @ given[k - j] for j in range(k + 1)) for k in range(order + 1)]
    embedded = od.function(robot, "forward_dynamics", order=order).call([own, V[0], *tau])
    assert (
        max(largest(np.array(a).ravel() / s, b[rows] / s) for a, b, s in zip(embedded, expected, scale, strict=True))
        < 1e-8
    )
    torques = od.function(robot, "inverse_dynamics", order=order).call([own, V[0], *(a[rows] for a in expected)])
    scale = [max(1.0, np.abs(a).max()) for a in tau]
    assert max(largest(np.array(a).ravel() / s, b / s) for a, b, s in zip(torques, tau, scale, strict=True)) < 1e-8
