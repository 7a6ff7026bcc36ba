"""Brachistochrone: the fastest slide from rest to a point 2 m away and 2 m below.

    minimise    T
    subject to  x' = v sin u,  y' = v cos u,  v' = g cos u,  g = 9.8 m/s^2
                (x, y, v)(0) = (0, 0, 0),  (x, y)(T) = (2, 2)

Optimum: on the cycloid x = R (a - sin a), y = R (1 - cos a) with T = a sqrt(R / g); x = y gives its last angle a.
Source: PSOPT, brac1 (J. Bernoulli 1696).
"""

import casadi as ca
import numpy as np

import oc_dyn as od

SOURCE = "PSOPT brac1"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8


def known():
    a = 2.4
    for _ in range(9):  # Newton for a - sin a = 1 - cos a
        a -= (a - np.sin(a) - 1 + np.cos(a)) / (1 - np.cos(a) - np.sin(a))
    return a * np.sqrt(2 / (1 - np.cos(a)) / 9.8)


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.3, 3.0))
    x, y, v = (ocp.state(n, guess=lambda s, k=k: k * s) for n, k in (("x", 2.0), ("y", 2.0), ("v", 6.0)))
    u = ocp.control("u", lower=0, upper=np.pi, guess=lambda s: 0.1 + 1.5 * s)
    ocp.rate(x, v * ca.sin(u))
    ocp.rate(y, v * ca.cos(u))
    ocp.rate(v, 9.8 * ca.cos(u))
    ocp.start({x: 0, y: 0, v: 0})
    ocp.goal({x: 2, y: 2})
    ocp.minimize(terminal=ocp.duration)
    return ocp
