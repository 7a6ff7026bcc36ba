"""Cubic hypersensitive problem: what happens, happens at the ends; phases make a mesh that is finer there.

    minimise    integral of (x^2 + u^2) / 2 over [0, 50]
    subject to  x' = -x^3 + u,  x(0) = 1.5,  x(50) = 1

Source: PSOPT (1.330826); 1.330807 by an independent Radau collocation.
"""

import oc_dyn as od

SOURCE = "PSOPT 1.330826"
METHOD, NODES, ASKED = "hermite_simpson", 80, 1e-6
KNOWN = 1.330807


def problem(nodes=NODES):
    mesh = ((nodes, 1.5), (nodes, 8.5), (nodes // 2, 30.0), (nodes, 8.5), (nodes, 1.5))
    ocp = od.Problem(*mesh[0])
    x, u = ocp.state("x", guess=0.1), ocp.control("u")
    for number, part in enumerate(mesh):
        if number:
            ocp.phase(*part)
        ocp.rate(x, -(x**3) + u)
        ocp.minimize(integral=(x**2 + u**2) / 2)
    ocp.start({x: 1.5})
    ocp.goal({x: 1})
    return ocp
