"""Bryson-Denham (Breakwell): least effort from velocity 1 to velocity -1 at the same place, below a ceiling l.

    minimise    integral of u^2 / 2 over [0, 1]
    subject to  x' = v,  v' = u,  x <= l
                (x, v)(0) = (0, 1),  (x, v)(1) = (0, -1)

Optimum: 4 / (9 l) for l <= 1/6, where the motion stays at the ceiling from 3 l to 1 - 3 l.
Source: PSOPT (Bryson-Denham, Breakwell), DYMOS; Bryson, Denham, Dreyfus 1963.
"""

import oc_dyn as od

SOURCE = "PSOPT, DYMOS"
METHOD, NODES, ASKED, TOLERANCE = "hermite_simpson", 10, 1e-6, 1e-7
VARIANTS = ({"limit": 1 / 9}, {"limit": 0.1})


def known(limit):
    return 4 / (9 * limit)


def problem(nodes=NODES, limit=1 / 9):
    ocp = od.Problem(nodes, 1.0)
    x, v, u = ocp.state("x", upper=limit), ocp.state("v", guess=lambda s: 1 - 2 * s), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 1})
    ocp.goal({x: 0, v: -1})
    ocp.minimize(integral=u**2 / 2)
    return ocp
