"""Catalyst mixing: two catalysts along a reactor; three phases for the one, both (a singular arc), the other.

    minimise    x1 + x2 - 1 at 1
    subject to  x1' = u (10 x2 - x1),  x2' = u (x1 - 10 x2) - (1 - u) x2,  0 <= u <= 1
                (x1, x2)(0) = (1, 0)

Source: COPS (-4.80556e-2); more digits by an independent Radau collocation.
"""

import oc_dyn as od

SOURCE = "COPS -0.0480556"
METHOD, NODES, ASKED = "rk4", 80, 1e-5
KNOWN = -0.04805563


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.05, 0.9))
    a, b, u = ocp.state("x1", guess=1), ocp.state("x2"), ocp.control("u", lower=0, upper=1)
    time = 0
    for number in range(3):
        if number:
            ocp.phase(nodes, (0.05, 0.9))
        ocp.rate(a, u * (10 * b - a))
        ocp.rate(b, u * (a - 10 * b) - (1 - u) * b)
        time += ocp.duration
    ocp.start({a: 1, b: 0})
    ocp.goal({time: 1})
    ocp.minimize(terminal=a + b - 1)
    return ocp
