"""Control with a bounded rate: a double integrator from rest to rest, whose control w starts at zero.

    minimise    integral of w^2 over [0, 2]
    subject to  x' = v,  v' = w,  w' = r,  |r| <= 4
                (x, v, w)(0) = (0, 0, 0),  (x, v)(2) = (1, 0)

Optimum: r = 4 at first, then constant: 24/13; two phases meet where r changes.
Source: PSOPT, control rate (1.846315).
"""

import oc_dyn as od

SOURCE = "PSOPT control_rate"
METHOD, NODES, ASKED = "rk4", 8, 1e-6
KNOWN = 24 / 13


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.1, 1.9))
    x, v, w = ocp.state("x"), ocp.state("v"), ocp.state("w")
    r, time = ocp.control("r", lower=-4, upper=4), 0
    for number in range(2):
        if number:
            ocp.phase(nodes, (0.1, 1.9))
        ocp.rate(x, v)
        ocp.rate(v, w)
        ocp.rate(w, r)
        ocp.minimize(integral=w**2)
        time += ocp.duration
    ocp.start({x: 0, v: 0, w: 0})
    ocp.goal({x: 1, v: 0, time: 2})
    return ocp
