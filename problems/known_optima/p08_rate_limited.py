"""Control with a bounded rate: a double integrator from rest to rest, whose control w starts at zero.

    minimise    integral of w^2 over [0, 2]
    subject to  x' = v,  v' = w,  w' = r,  |r| <= 4
                (x, v, w)(0) = (0, 0, 0),  (x, v)(2) = (1, 0)

Optimum: r = 4 at first, then constant: 24/13.
Source: PSOPT, control rate (1.846315).
"""

import oc_dyn as od

SOURCE = "PSOPT control_rate"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-7
KNOWN = 24 / 13


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 2.0)
    x, v, w = ocp.state("x"), ocp.state("v"), ocp.state("w")
    r = ocp.control("r", lower=-4, upper=4)
    for state, rate in ((x, v), (v, w), (w, r)):
        ocp.rate(state, rate)
    ocp.start({x: 0, v: 0, w: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=w**2)
    return ocp
