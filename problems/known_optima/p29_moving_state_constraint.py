"""State constraint that moves in time: a velocity stays below a parabola.

    minimise    integral of x1^2 + x2^2 + 0.005 u^2 over [0, 1]
    subject to  x1' = x2,  x2' = -x2 + u,  |u| <= 20,  x2 <= 8 (t - 1/2)^2 - 1/2,  (x1, x2)(0) = (0, -1)

Source: PSOPT, stc1 (0.169818); 0.1698206 by an independent Radau collocation.
"""

import numpy as np

import oc_dyn as od

SOURCE = "PSOPT stc1 0.169818"
METHOD, NODES, ASKED, TOLERANCE = "radau", 20, 1e-6, 1e-7
KNOWN, WITHIN = 0.1698206, 1e-7


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 1.0)
    a, b, u = ocp.state("x1"), ocp.state("x2"), ocp.control("u", lower=-20, upper=20)
    ocp.rate(a, b)
    ocp.rate(b, -b + u)
    ocp.limit(-np.inf, b, 8 * (ocp.time - 0.5) ** 2 - 0.5)
    ocp.start({a: 0, b: -1})
    ocp.minimize(integral=a**2 + b**2 + 0.005 * u**2)
    return ocp
