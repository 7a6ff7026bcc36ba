"""Driven linkages over ten seconds: the work of the drives is what the energies gain."""

import casadi as ca
import numpy as np
import pytest
from loops.linkages import linkage

import oc_dyn as od
from oc_dyn.elastic.dop853 import integrate


@pytest.mark.sample("four_bar")
@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "knee_linkage_leg"])
def test_work_is_energy_gained(name):
    robot = linkage(name)
    n = robot.nv
    t, x = ca.MX.sym("t"), ca.MX.sym("x", 2 * n + 1)
    q, v = x[:n], x[n : 2 * n]
    held = ca.DM(robot.neutral())
    tau = 3 * ca.sin(2 * t) - 0.5 * v if name != "knee_linkage_leg" else -8 * (q - held) - v + ca.sin(3 * t)
    dv = od.function(robot, "forward_dynamics")(q, v, tau)
    rhs = ca.Function("rhs", [t, x, ca.MX.sym("p", 0)], [ca.vertcat(v, dv, ca.dot(tau, v))])
    start = np.concatenate([robot.neutral(), np.full(n, 0.3), [0.0]])
    states, _ = integrate(rhs, [0.0, 10.0], start, rtol=1e-11, atol=1e-12)
    kinetic, potential = (od.function(robot, f"{k}_energy") for k in ("kinetic", "potential"))
    energy = [float(kinetic(y[:n], y[n : 2 * n]) + potential(y[:n])) for y in states.T]
    scale = max(abs(e) for e in (*energy, states[-1, -1]))
    assert abs(energy[1] - energy[0] - states[-1, -1]) < 1e-8 * scale
    residual = np.array(od.function(robot, "loop_closure")(states[:n, -1])[-1])
    assert np.abs(residual).max() < 1e-9
