"""Cart-pole swing-up with the least squared force; a point mass on a massless rod, which hangs down at angle 0.

    minimise    integral of F^2 over [0, 2]
    subject to  x'' = (l m s w^2 + F + m g c s) / (M + m s^2)
                a'' = -(l m c s w^2 + F c + (M + m) g s) / (l (M + m s^2)),  s = sin a, c = cos a, w = a'
                M = 1, m = 0.3, l = 0.5, g = 9.81,  |x| <= 2,  |F| <= 20,  rest at (0, 0), rest at (1, pi)

Source: Kelly 2017, DYMOS; 58.80766747 by an independent Radau collocation.
"""

import casadi as ca
import numpy as np

import oc_dyn as od

SOURCE = "Kelly 2017"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
KNOWN, WITHIN = 58.80766747, 1e-8


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 2.0)
    x, angle = ocp.state("x", lower=-2, upper=2, guess=lambda s: s), ocp.state("angle", guess=lambda s: np.pi * s)
    v, w, force = ocp.state("v"), ocp.state("w"), ocp.control("force", lower=-20, upper=20)
    s, c, M, m, l, g = ca.sin(angle), ca.cos(angle), 1, 0.3, 0.5, 9.81
    ocp.rate(x, v)
    ocp.rate(angle, w)
    ocp.rate(v, (l * m * s * w**2 + force + m * g * c * s) / (M + m * s**2))
    ocp.rate(w, -(l * m * c * s * w**2 + force * c + (M + m) * g * s) / (l * (M + m * s**2)))
    ocp.start({x: 0, angle: 0, v: 0, w: 0})
    ocp.goal({x: 1, angle: np.pi, v: 0, w: 0})
    ocp.minimize(integral=force**2)
    return ocp
