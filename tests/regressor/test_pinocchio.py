"""Regressors, Coriolis torques, energies and centre of mass equal those of Pinocchio on real robots."""

import numpy as np
import pytest
from test_external import ROBOTS, load, worst

import oc_dyn as od

pin = pytest.importorskip("pinocchio")
TOLERANCE = 1e-10
NAMES = [n for n in ROBOTS if n not in ("romeo", "icub")]  # two less: large, and like the others


def columns(robot, model):
    """Columns of Pinocchio's regressor in our order: bodies by the names of their joints."""
    bodies = [model.getJointId(b.joint.name) - 1 for b in robot.bodies]
    return np.concatenate([np.arange(10 * k, 10 * k + 10) for k in bodies])


@pytest.mark.sample("panda")
@pytest.mark.parametrize("name", NAMES)
def test_equal_pinocchio(name):
    robot, model, theirs = load(name)
    data = model.createData()
    rng = np.random.default_rng(1)
    q = robot.random_configuration(1)
    v, dv = rng.normal(size=(2, robot.nv))
    Q, V, A = theirs.q(q), theirs.v(v), theirs.dv(dv)
    P = theirs.velocity_matrix(q)

    def ours(quantity, method=None):
        f = od.function(robot, quantity, method=method)
        return np.array(f(**{n: {"q": q, "v": v, "dv": dv}[n] for n in f.name_in()})[f.name_out()[0]])

    # P' joins what a mimic joint takes to its master
    if all(model.existJointName(b.joint.name) for b in robot.bodies):
        Y = P.T @ pin.computeJointTorqueRegressor(model, data, Q, V, A)[:, columns(robot, model)]
        assert worst(ours("joint_torque_regressor"), Y) < TOLERANCE
    M = pin.crba(model, data, Q)
    assert worst(ours("mass_matrix"), P.T @ (np.triu(M) + np.triu(M, 1).T) @ P) < TOLERANCE
    Cv = theirs.from_tau(pin.computeCoriolisMatrix(model, data, Q, V) @ V, Q)
    assert worst(ours("coriolis_matrix") @ v, Cv) < TOLERANCE
    assert worst(ours("com").ravel(), pin.centerOfMass(model, data, Q)) < TOLERANCE
    J = pin.jacobianCenterOfMass(model, data, Q) @ P
    for method in od.methods("com_jacobian"):
        assert worst(ours("com_jacobian", method), J) < TOLERANCE
    assert float(ours("kinetic_energy").item()) == pytest.approx(pin.computeKineticEnergy(model, data, Q, V), rel=1e-10)
    pin.ccrba(model, data, Q, V)
    h = data.hg
    about_root = np.concatenate([h.angular + np.cross(data.com[0], h.linear), h.linear])
    assert worst(ours("momentum").ravel(), about_root) < TOLERANCE
