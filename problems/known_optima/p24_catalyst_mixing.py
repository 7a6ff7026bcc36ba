"""Catalyst mixing: two catalysts along a reactor: the one, both (a singular arc), the other.

    minimise    x1 + x2 - 1 at 1
    subject to  x1' = u (10 x2 - x1),  x2' = u (x1 - 10 x2) - (1 - u) x2,  0 <= u <= 1
                (x1, x2)(0) = (1, 0)

Optimum: u = 1, then a constant, then 0: least over the constant and both times, by matrix exponentials.
Source: COPS (-4.80556e-2).
"""

import oc_dyn as od

SOURCE = "COPS -0.0480556"
METHOD, NODES, ASKED, TOLERANCE = "radau", 20, 1e-5, 1e-7
KNOWN = -0.048055685861


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 1.0)
    a, b, u = ocp.state("x1", guess=1), ocp.state("x2"), ocp.control("u", lower=0, upper=1)
    ocp.rate(a, u * (10 * b - a))
    ocp.rate(b, u * (a - 10 * b) - (1 - u) * b)
    ocp.start({a: 1, b: 0})
    ocp.minimize(terminal=a + b - 1)
    return ocp
