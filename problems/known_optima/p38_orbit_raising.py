"""Orbit raising: the largest circular orbit that a small thrust reaches in a given time.

    maximise    r(T),  T = 3.32
    subject to  r' = vr,  vr' = vt^2 / r - 1 / r^2 + a sin u,  vt' = -vr vt / r + a cos u
                a = 0.1405 / (1 - 0.0749 t),  (r, vr, vt)(0) = (1, 0, 1),  vr(T) = 0,  vt(T) = sqrt(1 / r(T))

Source: YAPSS (1.5252777); 1.5252777007 by an independent Radau collocation; Bryson, Ho 1975.
"""

import casadi as ca

import oc_dyn as od

SOURCE = "YAPSS 1.5252777"
METHOD, NODES, ASKED, TOLERANCE = "radau", 10, 1e-6, 1e-8
KNOWN, WITHIN = -1.5252777007, 5e-11  # of the cost that is minimised


def problem(nodes=NODES):
    ocp = od.Problem(nodes, 3.32)
    r, vr, vt = ocp.state("r", lower=0.5, guess=lambda s: 1 + 0.5 * s), ocp.state("vr"), ocp.state("vt", guess=1)
    u = ocp.control("u", lower=-1, upper=8, scale=1, guess=lambda s: 1 if s < 0.5 else 5)
    a = 0.1405 / (1 - 0.0749 * ocp.time)
    ocp.rate(r, vr)
    ocp.rate(vr, vt**2 / r - 1 / r**2 + a * ca.sin(u))
    ocp.rate(vt, -vr * vt / r + a * ca.cos(u))
    ocp.start({r: 1, vr: 0, vt: 1})
    ocp.goal({vr: 0, vt - ca.sqrt(1 / r): 0})
    ocp.minimize(terminal=-r)
    return ocp
