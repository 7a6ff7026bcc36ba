"""Integral that has a given value: energy to be spent.

    minimise    integral of x over [0, 1]
    subject to  x' = -sin x + u,  integral of u^2 = 10,  |u| <= 4,  x(0) = 1,  x(1) = 0

Source: PSOPT (-0.3755057); -0.3755038 by an independent Radau collocation.
"""

import casadi as ca

import oc_dyn as od

SOURCE = "PSOPT -0.3755057"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
KNOWN, WITHIN = -0.3755038, 5e-8


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 1.0)
    x, u = ocp.state("x", guess=lambda s: 1 - s), ocp.control("u", lower=-4, upper=4, guess=lambda s: 6 * s - 4)
    ocp.rate(x, -ca.sin(x) + u)
    ocp.integral(u**2, 10, 10, name="energy")
    ocp.start({x: 1})
    ocp.goal({x: 0})
    ocp.minimize(integral=x)
    return ocp
