"""Goddard's rocket: the greatest height with a given fuel and drag: full thrust, a singular arc, none.

    maximise    h(T)
    subject to  h' = v,  v' = (F - 310 v^2 exp(-500 (h - 1))) / m - 1 / h^2,  m' = -2 F,  0 <= F <= 3.5
                (h, v, m)(0) = (1, 0, 1),  m(T) = 0.6

Source: COPS, rocket (1.01283); more digits by an independent Radau collocation.
"""

import casadi as ca

import oc_dyn as od

SOURCE = "COPS 1.01283"
METHOD, NODES, ASKED, TOLERANCE = "radau", 20, 1e-6, 1e-6
KNOWN, WITHIN = -1.012837, 5e-7  # of the cost that is minimised


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.05, 0.5))
    h = ocp.state("h", lower=1, guess=lambda s: 1 + 0.01 * s)
    v = ocp.state("v", lower=0, scale=0.1, guess=lambda s: 0.4 * s * (1 - s))
    m = ocp.state("m", lower=0.6, upper=1, guess=lambda s: 1 - 0.4 * s)
    thrust = ocp.control("thrust", lower=0, upper=3.5, guess=lambda s: 3.5 * (1 - s))
    ocp.rate(h, v)
    ocp.rate(v, (thrust - 310 * v**2 * ca.exp(-500 * (h - 1))) / m - 1 / h**2)
    ocp.rate(m, -2 * thrust)
    ocp.start({h: 1, v: 0, m: 1})
    ocp.goal({m: 0.6})
    ocp.minimize(terminal=-h)
    return ocp
