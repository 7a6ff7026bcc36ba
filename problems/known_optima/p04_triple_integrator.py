"""Triple integrator: rest to rest over a distance of 1 in least time with bounded jerk.

    minimise    T
    subject to  x' = v,  v' = a,  a' = j,  |j| <= 1
                (x, v, a)(0) = (0, 0, 0),  (x, v, a)(T) = (1, 0, 0)

Optimum: j = 1, -1, 1 for 1/4, 1/2, 1/4 of the time: T^3 = 32.
Source: closed form (textbook).
"""

import oc_dyn as od

SOURCE = "closed form"
METHOD, NODES, ASKED, MESH = "rk4", 4, 1e-6, "free"
KNOWN = 32 ** (1 / 3)


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.5, 10.0))
    x, v, a = ocp.state("x", guess=lambda s: s), ocp.state("v"), ocp.state("a")
    j = ocp.control("j", lower=-1, upper=1)
    for state, rate in ((x, v), (v, a), (a, j)):
        ocp.rate(state, rate)
    ocp.start({x: 0, v: 0, a: 0})
    ocp.goal({x: 1, v: 0, a: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp
