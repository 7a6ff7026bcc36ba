"""Singular arc: a double integrator whose speed costs, as its time does.

    minimise    integral of (1 + v^2) / 2 over [0, T]
    subject to  x' = v,  v' = u,  |u| <= 1
                (x, v)(0) = (2, 0),  (x, v)(T) = (5, 0)

Optimum: u = 1 on [0, 1], 0 on [1, 3], -1 on [3, 4]: 10/3.
Source: PSOPT, singular_di.
"""

import oc_dyn as od

SOURCE = "PSOPT singular_di"
METHOD, NODES, ASKED, MESH = "rk4", 8, 1e-6, "free"
KNOWN = 10 / 3


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (1.0, 10.0))
    x, v = ocp.state("x", guess=lambda s: 2 + 3 * s), ocp.state("v", guess=0.8)
    u = ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 2, v: 0})
    ocp.goal({x: 5, v: 0})
    ocp.minimize(integral=(1 + v**2) / 2)
    return ocp
