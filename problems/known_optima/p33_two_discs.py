"""Shortest path round two discs, at unit speed; several starts, as every way round has its own optimum.

    minimise    T
    subject to  x' = u1,  y' = u2,  u1^2 + u2^2 <= 1,  (x, y)(0) = (0, 0),  (x, y)(T) = (1.2, 1.6)
                (x - 0.4)^2 + (y - 0.5)^2 >= 0.1,  (x - 0.8)^2 + (y - 1.5)^2 >= 0.1

Optimum: two tangents to the first disc and an arc, clear of the second; others are 2.1378493, 2.5440279, 2.9218068.
Source: PSOPT, obstacle, with a cost.
"""

import casadi as ca
import numpy as np

import oc_dyn as od

SOURCE = "PSOPT obstacle"
METHOD, NODES, ASKED, TOLERANCE = "radau", 20, 1e-6, 1e-7
STARTS = 8  # the straight line, and others at random about it


def known():
    r, d, e = np.sqrt(0.1), np.sqrt(0.41), np.sqrt(1.85)  # radius, distances of its centre from start and goal
    angle = np.arctan2(1.1, 0.8) + np.arcsin(r / e) - np.arctan2(0.5, 0.4) + np.arcsin(r / d)
    return np.sqrt(d**2 - r**2) + np.sqrt(e**2 - r**2) + r * angle


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.5, 8.0))
    p, u = ocp.state("p", 2, guess=lambda s: [1.2 * s, 1.6 * s]), ocp.control("u", 2)
    ocp.rate(p, u)
    ocp.limit(0, ca.sumsqr(u), 1)
    for centre in ([0.4, 0.5], [0.8, 1.5]):
        ocp.limit(0.1, ca.sumsqr(p - centre), np.inf)
    ocp.start({p: [0, 0]})
    ocp.goal({p: [1.2, 1.6]})
    ocp.minimize(terminal=ocp.duration)
    return ocp
