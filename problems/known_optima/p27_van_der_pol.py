"""Van der Pol oscillator brought to rest by a bounded control.

    minimise    integral of x1^2 + x2^2 + u^2 over [0, 5]
    subject to  x1' = (1 - x2^2) x1 - x2 + u,  x2' = x1,  -0.3 <= u <= 1,  (x1, x2)(0) = (0, 1)

Source: PROPT (2.8672595); 2.867261 by an independent Radau collocation.
"""

import oc_dyn as od

SOURCE = "PROPT 2.8672595"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
KNOWN, WITHIN = 2.867261, 5e-7


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 5.0)
    a, b, u = ocp.state("x1"), ocp.state("x2", guess=1), ocp.control("u", lower=-0.3, upper=1)
    ocp.rate(a, (1 - b**2) * a - b + u)
    ocp.rate(b, a)
    ocp.start({a: 0, b: 1})
    ocp.minimize(integral=a**2 + b**2 + u**2)
    return ocp
