"""Seven segments: as the triple integrator, with velocity and acceleration bounded too.

    minimise    T
    subject to  x' = v,  v' = a,  a' = j,  |v| <= 1/2,  |a| <= 1,  |j| <= 4
                (x, v, a)(0) = (0, 0, 0),  (x, v, a)(T) = (1, 0, 0)

Optimum: every bound is reached: T = d / v + v / a + a / j. Jerks are constant on intervals; 11 of them, or
22, meet the switches.
Source: closed form (textbook).
"""

import oc_dyn as od

SOURCE = "closed form"
METHOD, NODES, ASKED, TOLERANCE = "rk4", 11, 1e-6, 1e-7
KNOWN = 1 / 0.5 + 0.5 / 1 + 1 / 4
EXPLAINED = " (costates are not unique where a control switches at a node; by meshes it is less)"


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.5, 10.0))
    x, v = ocp.state("x", guess=lambda s: s), ocp.state("v", lower=-0.5, upper=0.5)
    a, j = ocp.state("a", lower=-1, upper=1), ocp.control("j", lower=-4, upper=4)
    for state, rate in ((x, v), (v, a), (a, j)):
        ocp.rate(state, rate)
    ocp.start({x: 0, v: 0, a: 0})
    ocp.goal({x: 1, v: 0, a: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp
