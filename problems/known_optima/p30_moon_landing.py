"""Moon landing with the least fuel: a fall, then full thrust.

    minimise    integral of F over [0, T]
    subject to  h' = v,  v' = F / m - 1,  m' = -F / 2.349,  0 <= F <= 1.227
                (h, v, m)(0) = (1, -0.783, 1),  (h, v)(T) = (0, 0)

Optimum: a fall for t1, then full thrust for t2. Speeds give t1 + t2 = 2.349 log(1 / m) - 0.783, heights then t2.
Source: PSOPT (1.4204), DYMOS (m(T) = 0.3953).
"""

import numpy as np

import oc_dyn as od

SOURCE = "PSOPT 1.4204"
METHOD, NODES, ASKED, TOLERANCE = "rk4", 10, 1e-6, 1e-7


def known():
    def height(t2):
        m = 1 - 1.227 / 2.349 * t2
        T = -2.349 * np.log(m) - 0.783
        return 1 - 0.783 * T - T**2 / 2 + 2.349**2 / 1.227 * (m * np.log(m) + 1 - m)

    t2 = 1.2
    for _ in range(9):  # Newton
        t2 -= 2e-6 * height(t2) / (height(t2 + 1e-6) - height(t2 - 1e-6))
    return 1.227 * t2


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (0.1, 4.0))
    h, v = ocp.state("h", lower=0, guess=lambda s: 1 - s), ocp.state("v", guess=lambda s: -0.8 * (1 - s))
    m, thrust = ocp.state("m", guess=lambda s: 1 - 0.6 * s), ocp.control("thrust", lower=0, upper=1.227)
    ocp.rate(h, v)
    ocp.rate(v, thrust / m - 1)
    ocp.rate(m, -thrust / 2.349)
    ocp.start({h: 1, v: -0.783, m: 1})
    ocp.goal({h: 0, v: 0})
    ocp.minimize(integral=thrust)
    return ocp
