"""Cubic hypersensitive problem: what happens, happens at the ends.

    minimise    integral of (x^2 + u^2) / 2 over [0, 50]
    subject to  x' = -x^3 + u,  x(0) = 1.5,  x(50) = 1

Source: PSOPT (1.330826); 1.330807 by an independent Radau collocation.
"""

import oc_dyn as od

SOURCE = "PSOPT 1.330826"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
KNOWN, WITHIN = 1.330807, 5e-7


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 50.0)
    x, u = ocp.state("x", guess=0.1), ocp.control("u")
    ocp.rate(x, -(x**3) + u)
    ocp.start({x: 1.5})
    ocp.goal({x: 1})
    ocp.minimize(integral=(x**2 + u**2) / 2)
    return ocp
