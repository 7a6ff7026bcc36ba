"""Robot arm in spherical coordinates: rest to rest in least time, three bounded controls.

    minimise    T
    subject to  L r'' = u1,  I sin(p)^2 a'' = u2,  I p'' = u3,  I = ((L - r)^3 + r^3) / 3,  L = 5,  |u_i| <= 1
                rest at (r, a, p) = (4.5, 0, pi/4), rest at (4.5, 2 pi/3, pi/4)

Optimum: bang-bang in all three controls, 9.14091 here and 9.14138 on COPS's mesh.
Source: COPS, DYMOS (9.14138).
"""

import casadi as ca
import numpy as np

import oc_dyn as od

SOURCE = "COPS, DYMOS 9.14138"
METHOD, NODES, ASKED, TOLERANCE = "rk4", 20, 1e-4, 1e-6
KNOWN, WITHIN = 9.14091, 5e-6


def problem(nodes=NODES):
    ocp = od.Problem(nodes, (2.0, 30.0))
    first, last = np.array([4.5, 0, np.pi / 4]), np.array([4.5, 2 * np.pi / 3, np.pi / 4])
    q, v = ocp.state("q", 3, guess=lambda s: first + s * (last - first)), ocp.state("v", 3)
    u, r = ocp.control("u", 3, lower=-1, upper=1), q[0]
    inertia = ((5 - r) ** 3 + r**3) / 3
    ocp.rate(q, v)
    ocp.rate(v, u / ca.vertcat(5, inertia * ca.sin(q[2]) ** 2, inertia))
    ocp.start({q: first, v: 0})
    ocp.goal({q: last, v: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp
