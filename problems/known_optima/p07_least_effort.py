"""Least effort: a double integrator from rest to rest in unit time.

    minimise    integral of u^2 / 2 over [0, 1]
    subject to  x' = v,  v' = u
                (x, v)(0) = (0, 0),  (x, v)(1) = (1, 0)

Optimum: x = 3 t^2 - 2 t^3, u = 6 - 12 t: 6.
Source: PSOPT, dqc.
"""

import oc_dyn as od

SOURCE = "PSOPT dqc"
METHOD, NODES, ASKED = "hermite_simpson", 8, 1e-6
KNOWN = 6.0


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 1.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2 / 2)
    return ocp
