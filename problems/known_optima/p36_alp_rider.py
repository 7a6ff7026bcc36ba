"""Alp rider: stiff dynamics above a ridge of four narrow peaks in time.

    minimise    integral of 100 |x|^2 + 0.01 |u|^2 over [0, 20]
    subject to  x1' = -10 x1 + u1 + u2,  x2' = -2 x2 + u1 + 2 u2
                x3' = -3 x3 + 5 x4 + u1 - u2,  x4' = 5 x3 - 3 x4 + u1 + 3 u2
                |x|^2 >= 3 p(t, 3, 12) + 3 p(t, 6, 10) + 3 p(t, 10, 6) + 8 p(t, 15, 4) + 0.01
                p(t, a, b) = exp(-b (t - a)^2),  x(0) = (2, 1, 2, 1),  x(20) = (2, 3, 1, -2)

Source: Betts (2030.856); 2032.15 with 400 intervals by an independent Radau collocation.
"""

import casadi as ca
import numpy as np

import oc_dyn as od

SOURCE = "Betts 2030.856"
METHOD, NODES, ASKED, TOLERANCE = "radau", 50, 1e-4, 1e-5
KNOWN, WITHIN = 2030.856, 5e-4
OPTIONS = {"tol": 1e-8}  # of the solver


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 20.0)
    x, u = ocp.state("x", 4, guess=[2, 1, 2, 1]), ocp.control("u", 2)
    peaks = sum(h * ca.exp(-b * (ocp.time - a) ** 2) for h, a, b in ((3, 3, 12), (3, 6, 10), (3, 10, 6), (8, 15, 4)))
    A = ca.DM([[-10, 0, 0, 0], [0, -2, 0, 0], [0, 0, -3, 5], [0, 0, 5, -3]])
    ocp.rate(x, A @ x + ca.DM([[1, 1], [1, 2], [1, -1], [1, 3]]) @ u)
    ocp.limit(0.01, ca.sumsqr(x) - peaks, np.inf)
    ocp.start({x: [2, 1, 2, 1]})
    ocp.goal({x: [2, 3, 1, -2]})
    ocp.minimize(integral=100 * ca.sumsqr(x) + 0.01 * ca.sumsqr(u))
    return ocp
