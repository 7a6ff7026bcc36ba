"""First partials equal those of Pinocchio on real robots."""

import numpy as np
import pytest
from test_external import ROBOTS, load, worst

import oc_dyn as od

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-9


@pytest.mark.parametrize("name", [n for n in ROBOTS if n not in ("romeo", "icub")])  # large, and like the others
def test_partials_equal_pinocchio(name):
    robot, model, theirs = load(name)
    data, rng = model.createData(), np.random.default_rng(2)
    q = robot.random_configuration(2)
    v, dv, tau = rng.normal(size=(3, robot.nv))
    Q, V = theirs.q(q), theirs.v(v)
    T = theirs.velocity_matrix(q)
    # also with joints that follow others: their coordinates are linear in ours, so T joins torques and columns alike
    expected = pin.computeRNEADerivatives(model, data, Q, V, theirs.dv(dv))
    found = od.function(robot, "inverse_dynamics_partials")(q=q, v=v, dv=dv)
    for x, D in zip(("q", "v", "dv"), expected, strict=True):
        D = np.triu(D) + np.triu(D, 1).T if x == "dv" else D
        assert worst(np.array(found[f"dtau_d{x}"]), T.T @ D @ T) < TOLERANCE, x
    if robot.mimics or robot.nv > 20:  # forward dynamics of a follower is another; large robots are like the others
        return
    expected = pin.computeABADerivatives(model, data, Q, V, theirs.tau(tau))
    found = od.function(robot, "forward_dynamics_partials")(q=q, v=v, tau=tau)
    for x, D in zip(("q", "v", "tau"), expected, strict=True):
        D = np.triu(D) + np.triu(D, 1).T if x == "tau" else D
        assert worst(np.array(found[f"ddv_d{x}"]), T.T @ D @ T) < TOLERANCE, x
