"""What joint friction adds to derivatives: nothing but where the option friction=True asks for it."""

from dataclasses import dataclass

import casadi as ca

from ..friction import friction_torques


@dataclass(frozen=True)
class FrictionTerms:
    """torque (nv,) that friction takes; damping (nv, nv), its Jacobian by v; curvature(lam): Hessian of lam' torque."""

    torque: object
    damping: object
    curvature: object


def friction_terms(robot, v, asked):
    """FrictionTerms at velocities v (nv,); all zero unless `asked`."""
    nv = robot.nv
    if not asked:
        return FrictionTerms(ca.SX(nv, 1), ca.SX(nv, nv), lambda lam: ca.SX(nv, nv))
    x = ca.SX.sym("v", nv)
    torque = friction_torques(robot, [x])[0]
    damping = ca.jacobian(torque, x)
    values = ca.Function("friction", [x], [torque, damping])(v)

    def curvature(lam):
        mu = ca.SX.sym("mu", nv)
        return ca.Function("curvature", [x, mu], [ca.jacobian(damping.T @ mu, x)])(v, lam)

    return FrictionTerms(*values, curvature)


def friction_partials(robot, V):
    """Jacobians of the friction torques' derivatives 0.. by each of V = [v, dv, ...]: one list of (nv, nv) for each."""
    x = [ca.SX.sym("v", robot.nv) for _ in V]
    blocks = [[ca.jacobian(r, s) for s in x] for r in friction_torques(robot, x)]
    return [ca.Function("friction", x, row).call(V) for row in blocks]


def friction_curvature(robot, V, lams):
    """{(i, j): (nv, nv)}, i <= j: second derivatives of the sum of lam_k' times the k-th derivative of the friction
    torque, by the arguments i, j of V = [v, dv, ...]."""
    x, mu = ([ca.SX.sym("x", robot.nv) for _ in V] for _ in range(2))
    y = sum(ca.dot(m, r) for m, r in zip(mu, friction_torques(robot, x), strict=True))
    places = [(i, j) for j in range(len(V)) for i in range(j + 1)]
    blocks = [ca.jacobian(ca.gradient(y, x[i]), x[j]) for i, j in places]
    return dict(zip(places, ca.Function("curvature", [*x, *mu], blocks).call([*V, *lams]), strict=True))
