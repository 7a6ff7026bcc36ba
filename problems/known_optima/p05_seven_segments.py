"""Seven segments: as the triple integrator, with velocity and acceleration bounded too.

    minimise    T
    subject to  x' = v,  v' = a,  a' = j,  |v| <= 1/2,  |a| <= 1,  |j| <= 4
                (x, v, a)(0) = (0, 0, 0),  (x, v, a)(T) = (1, 0, 0)

Optimum: every bound is reached: T = d / v + v / a + a / j. A Bernstein chain keeps its bounds
between nodes.
Source: closed form (textbook).
"""

import oc_dyn as od

SOURCE = "closed form"
METHOD, NODES, ASKED = "rk4", 8, 1e-6
KNOWN = 1 / 0.5 + 0.5 / 1 + 1 / 4


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.5, 10.0), mesh="free")
    x, v, a, _ = ocp.chain("x", 1, 3, bounds=[0.5, 1, 4], basis="bernstein")
    ocp.start({x: 0, v: 0, a: 0})
    ocp.goal({x: 1, v: 0, a: 0})
    ocp.minimize(integral=1)
    return ocp
