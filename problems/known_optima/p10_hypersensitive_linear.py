"""Linear hypersensitive problem: what happens, happens at the ends.

    minimise    integral of (x^2 + u^2) / 2 over [0, T],  T = 10 and T = 100
    subject to  x' = -x + u,  x(0) = 1.5,  x(T) = 1

Optimum: x'' = 2 x, and the cost is x (x' + x) / 2 at the end less that at the start.
Source: DYMOS, hypersensitive.
"""

import numpy as np

import oc_dyn as od

SOURCE = "DYMOS hypersensitive"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
VARIANTS = ({"duration": 10.0}, {"duration": 100.0})


def known(duration):
    s, decay = np.sqrt(2), np.exp(-np.sqrt(2) * duration)
    a, b = np.linalg.solve([[1, decay], [decay, 1]], [1.5, 1])  # x = a exp(-s t) + b exp(s (t - T))
    slopes = s * (b * decay - a), s * (b - a * decay)
    return (1 * (slopes[1] + 1) - 1.5 * (slopes[0] + 1.5)) / 2


def problem(nodes=NODES, duration=10.0):
    ocp = od.Problem(nodes, duration)
    x, u = ocp.state("x", guess=0.1), ocp.control("u")
    ocp.rate(x, -x + u)
    ocp.start({x: 1.5})
    ocp.goal({x: 1})
    ocp.minimize(integral=(x**2 + u**2) / 2)
    return ocp
