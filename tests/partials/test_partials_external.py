"""First partials equal those of Pinocchio on real robots."""

import numpy as np
import pytest
import test_external
from test_external import load, worst

import oc_dyn as od

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-9
MORE = {  # as test_external.ROBOTS
    "xarm7": ("xarm_description/urdf/xarm7.urdf", False),
    "bolt": ("bolt_description/robots/bolt.urdf", True),
    "flying arm": ("borinot_description/urdf/borinot_flying_arm_2.urdf", True),
    "quadrotor": ("hector_description/robots/quadrotor_base.urdf", True),
}
ROBOTS = [n for n in test_external.ROBOTS if n not in ("romeo", "icub")] + list(MORE)  # the two are large, like talos


@pytest.fixture
def read(monkeypatch):
    for name, facts in MORE.items():
        monkeypatch.setitem(test_external.ROBOTS, name, facts)
    return load


def mirrored(D):
    """The symmetric matrix of an upper triangle."""
    return np.triu(D) + np.triu(D, 1).T


def check(got, expected):
    for name, D in expected.items():
        assert worst(np.array(got[name]), D) < TOLERANCE, name


def states(robot, theirs):
    """q, v, dv, tau of ours, then q and v of theirs."""
    rng, q = np.random.default_rng(2), robot.random_configuration(2)
    v, dv, tau = rng.normal(size=(3, robot.nv))
    return q, v, dv, tau, theirs.q(q), theirs.v(v)


@pytest.mark.few(5)
@pytest.mark.sample("panda")
@pytest.mark.parametrize("name", ROBOTS)
def test_partials_of_inverse_dynamics_equal_pinocchio(name, read):
    robot, model, theirs = read(name)
    q, v, dv, _, Q, V = states(robot, theirs)
    # also with joints that follow others: their coordinates are linear in ours, so T joins torques and columns alike
    T, data = theirs.velocity_matrix(q), model.createData()  # kept: what comes back lies in it
    by_q, by_v, M = pin.computeRNEADerivatives(model, data, Q, V, theirs.dv(dv))
    expected = {"dtau_dq": T.T @ by_q @ T, "dtau_dv": T.T @ by_v @ T, "dtau_ddv": T.T @ mirrored(M) @ T}
    check(od.function(robot, "inverse_dynamics_partials")(q=q, v=v, dv=dv), expected)


@pytest.mark.few(5)
@pytest.mark.sample("panda")
@pytest.mark.parametrize("name", ROBOTS)
def test_partials_of_forward_dynamics_equal_pinocchio(name, read):
    robot, model, theirs = read(name)
    q, v, _, tau, Q, V = states(robot, theirs)
    T, data = theirs.velocity_matrix(q), model.createData()
    if robot.mimics:  # its forward dynamics knows none: at the same accelerations, tau stays if dv gives way
        dv = np.array(od.function(robot, "forward_dynamics")(q=q, v=v, tau=tau)["dv"]).ravel()
        by_q, by_v, M = pin.computeRNEADerivatives(model, data, Q, V, theirs.dv(dv))
        Minv = np.linalg.inv(T.T @ mirrored(M) @ T)
        by_q, by_v = (-Minv @ T.T @ D @ T for D in (by_q, by_v))
    else:
        by_q, by_v, Minv = pin.computeABADerivatives(model, data, Q, V, theirs.tau(tau))
        by_q, by_v, Minv = (T.T @ D @ T for D in (by_q, by_v, mirrored(Minv)))
    found = od.function(robot, "forward_dynamics_partials")(q=q, v=v, tau=tau)
    check(found, {"ddv_dq": by_q, "ddv_dv": by_v, "ddv_dtau": Minv})


@pytest.mark.slow
def test_enough_robots_are_compared(read):
    plain = [n for n in ROBOTS if not read(n)[0].mimics]
    assert len(plain) >= 10
    assert sum(read(n)[0].joints[0].kind == "free" for n in plain) >= 5
