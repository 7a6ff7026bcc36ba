"""Double integrator: rest to rest over a distance of 1 in least time.

    minimise    T
    subject to  x' = v,  v' = u,  |u| <= 1
                (x, v)(0) = (0, 0),  (x, v)(T) = (1, 0)

Optimum: u = 1, then u = -1, each for half the time: T = 2 sqrt(1).
Source: closed form (textbook).
"""

import oc_dyn as od

SOURCE = "closed form"
METHOD, NODES, ASKED, MESH = "rk4", 4, 1e-6, "free"
KNOWN = 2.0


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.5, 10.0))
    x, v, u = ocp.state("x", guess=lambda s: s), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp
