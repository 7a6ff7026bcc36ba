"""Maximum range (Bryson): the furthest way in 2 s to a given height, the direction of thrust being a unit vector.

    maximise    x(2)
    subject to  x' = v u1,  y' = v u2,  v' = 1/2 - u2,  u1^2 + u2^2 = 1
                (x, y, v)(0) = (0, 0, 0),  y(2) = 0.1

Source: PSOPT (1.712314); 1.71231487508 by an independent Radau collocation.
"""

import casadi as ca

import oc_dyn as od

SOURCE = "PSOPT 1.712314"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
KNOWN, WITHIN = -1.71231487508, 5e-12  # of the cost that is minimised


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 2.0)
    x, y, v = ocp.state("x", guess=lambda s: s), ocp.state("y"), ocp.state("v", guess=lambda s: s)
    u = ocp.control("u", 2, guess=[1, 0])
    ocp.rate(x, v * u[0])
    ocp.rate(y, v * u[1])
    ocp.rate(v, 0.5 - u[1])
    ocp.limit(1, ca.sumsqr(u), 1)
    ocp.start({x: 0, y: 0, v: 0})
    ocp.goal({y: 0.1})
    ocp.minimize(terminal=-x)
    return ocp
