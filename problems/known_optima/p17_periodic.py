"""Periodic motion that follows a cosine with little effort.

    minimise    integral of (x - cos t)^2 + u^2 over [0, 2 pi]
    subject to  x' = v,  v' = u,  x(0) = x(2 pi),  v(0) = v(2 pi)

Optimum: x = cos(t) / 2 (Euler-Lagrange: x'''' + x = cos t): pi / 2.
Source: closed form.
"""

import casadi as ca
import numpy as np

import oc_dyn as od

SOURCE = "closed form"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
KNOWN = np.pi / 2


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 2 * np.pi)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.periodic(x, v)
    ocp.minimize(integral=(x - ca.cos(ocp.time)) ** 2 + u**2)
    return ocp
