"""Two phases (Schwartz): through an ellipse with little control, then to the origin with much.

    minimise    5 (x^2 + v^2) at 2.9
    subject to  x' = v,  v' = u - 0.1 (1 + 2 x^2) v,  (x, v)(0) = (1, 1)
                on [0, 1]:    |u| <= 1,  v >= -0.8,  1 - 9 (x - 1)^2 - ((v - 0.4) / 0.3)^2 <= 0
                on [1, 2.9]:  |u| <= 50

Optimum: 0, the origin can be reached.
Source: PSOPT, two-phase Schwartz problem (3e-16).
"""

import numpy as np

import oc_dyn as od

SOURCE = "PSOPT 3e-16"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-7
KNOWN = 0.0


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 1.0)
    x, v, u = ocp.state("x", guess=1.5), ocp.state("v", guess=lambda s: 1 - 2 * s), ocp.control("u")
    for number, bound in enumerate((1, 50)):
        if number:
            ocp.phase(nodes, 1.9)
        ocp.rate(x, v)
        ocp.rate(v, u - 0.1 * (1 + 2 * x**2) * v)
        ocp.limit(-bound, u, bound)
        if not number:
            ocp.limit(-0.8, v, np.inf)
            ocp.limit(1, 9 * (x - 1) ** 2 + ((v - 0.4) / 0.3) ** 2, np.inf)
    ocp.start({x: 1, v: 1})
    ocp.minimize(terminal=5 * (x**2 + v**2))
    return ocp
