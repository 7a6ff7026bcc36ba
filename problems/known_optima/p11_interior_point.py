"""Value at an interior point: two phases, as the control jumps there.

    minimise    integral of x^2 + u^2 over [0, 1]
    subject to  x' = u,  x(0) = 1,  x(0.75) = 0.9,  x(1) = 0.75

Optimum: x'' = x on both sides, u jumps: each side costs ((x0^2 + x1^2) cosh T - 2 x0 x1) / sinh T.
Source: PSOPT, interior point problem.
"""

import numpy as np

import oc_dyn as od

SOURCE = "PSOPT"
METHOD, NODES, ASKED, TOLERANCE = "radau", 4, 1e-6, 1e-8


def known():
    sides = (0.75, 1, 0.9), (0.25, 0.9, 0.75)
    return sum(((a**2 + b**2) * np.cosh(T) - 2 * a * b) / np.sinh(T) for T, a, b in sides)


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 0.75)
    x, u = ocp.state("x", guess=0.9), ocp.control("u")
    for number in range(2):
        if number:
            ocp.phase(nodes, 0.25)
            ocp.at({x: 0.9}, fraction=0)
        ocp.rate(x, u)
        ocp.minimize(integral=x**2 + u**2)
    ocp.start({x: 1})
    ocp.goal({x: 0.75})
    return ocp
