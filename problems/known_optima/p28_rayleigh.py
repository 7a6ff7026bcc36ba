"""Rayleigh's oscillator (a tunnel diode) with a constraint of control and state.

    minimise    integral of u^2 + x1^2 over [0, 4.5]
    subject to  x1' = x2,  x2' = -x1 + x2 (1.4 - 0.14 x2^2) + 4 u,  u + x1 / 6 <= 0,  (x1, x2)(0) = (-5, -5)

Source: Betts (44.8044); 44.804445 by an independent Radau collocation.
"""

import numpy as np

import oc_dyn as od

SOURCE = "Betts 44.8044"
METHOD, NODES, ASKED, TOLERANCE = "radau", 20, 1e-6, 1e-6
KNOWN, WITHIN = 44.804445, 5e-7


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 4.5)
    a, b, u = ocp.state("x1", guess=-5), ocp.state("x2", guess=-5), ocp.control("u")
    ocp.rate(a, b)
    ocp.rate(b, -a + b * (1.4 - 0.14 * b**2) + 4 * u)
    ocp.limit(-np.inf, u + a / 6, 0)
    ocp.start({a: -5, b: -5})
    ocp.minimize(integral=u**2 + a**2)
    return ocp
