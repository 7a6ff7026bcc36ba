"""Fuller's problem: bang-bang controls whose switches accumulate (chattering).

    minimise    integral of x^2 over [0, 5]
    subject to  x' = v,  v' = u,  |u| <= 1,  (x, v)(0) = (0, 1)

Optimum: u switches where x = -c v |v|, c^2 = (sqrt(33) - 1) / 24; from one switch to the next v shrinks by a factor r,
time by r and cost by r^5, so they are sums of geometric series. The motion comes to rest at 2.919932.
Source: PROPT, Singular Control 2; Fuller 1963.
"""

import numpy as np

import oc_dyn as od

SOURCE = "PROPT Singular Control 2"
METHOD, NODES, ASKED, TOLERANCE = "radau", 20, 1e-6, 1e-7


def known():
    c = np.sqrt((np.sqrt(33) - 1) / 24)
    r = np.sqrt((1 / 2 - c) / (1 / 2 + c))

    def cost(x, v, u, t):  # until t, with u constant
        return np.polyint(np.polymul([u / 2, v, x], [u / 2, v, x])) @ t ** np.arange(5, -1, -1)

    w = 1 / np.sqrt(1 + 2 * c)  # first switch at v = -w
    return cost(0, 1, -1, 1 + w) + cost(c * w**2, -w, 1, w + r * w) / (1 - r**5)


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 5.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 1})
    ocp.minimize(integral=x**2)
    return ocp
