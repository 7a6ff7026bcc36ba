"""Dynamics equal those of Pinocchio on real robots: arms, quadrupeds, humanoids, fixed and floating base."""

import warnings

import numpy as np
import pytest
from samples import example_robot

import oc_dyn as od

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-10
ROBOTS = {  # file, floating base
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "kinova": ("kinova_description/robots/kinova.urdf", False),
    "z1": ("z1_description/urdf/z1.urdf", False),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "icub": ("icub_description/robots/icub_reduced.urdf", True),
    "romeo": ("romeo_description/urdf/romeo_small.urdf", True),
    "talos arm": ("talos_data/robots/talos_left_arm.urdf", False),
    "tiago": ("tiago_description/robots/tiago_no_hand.urdf", False),
}


def load(name):
    path, floating = ROBOTS[name]
    path = example_robot(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.ModelWarning)
        robot = od.load_urdf(path, floating_base=floating)
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromUrdf(str(path), *root)
    return robot, model, od.interop.to_pinocchio(robot, model)


def worst(a, b):
    return np.abs(a - b).max() / max(1.0, np.abs(b).max())


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_dynamics_equal_pinocchio(name):
    robot, model, theirs = load(name)
    data = model.createData()
    rng = np.random.default_rng(0)
    functions = {
        quantity: od.function(robot, quantity) for quantity in ("inverse_dynamics", "forward_dynamics", "mass_matrix")
    }
    for seed in range(3):
        q = robot.random_configuration(seed)
        v, dv, tau = rng.normal(size=(3, robot.nv))
        Q, V, A = theirs.q(q), theirs.v(v), theirs.dv(dv)
        # from_tau and P' M P also join what a mimic joint takes to its master, which Pinocchio keeps apart
        got = np.array(functions["inverse_dynamics"](q=q, v=v, dv=dv)["tau"]).ravel()
        assert worst(got, theirs.from_tau(pin.rnea(model, data, Q, V, A), Q)) < TOLERANCE
        P = theirs.velocity_matrix(q)
        M = pin.crba(model, data, Q)
        M = P.T @ (np.triu(M) + np.triu(M, 1).T) @ P
        assert worst(np.array(functions["mass_matrix"](q=q)["M"]), M) < TOLERANCE
        got = np.array(functions["forward_dynamics"](q=q, v=v, tau=tau)["dv"]).ravel()
        if robot.mimics:
            want = np.linalg.solve(M, tau - theirs.from_tau(pin.nle(model, data, Q, V), Q))
        else:
            want = theirs.from_dv(pin.aba(model, data, Q, V, theirs.tau(tau)), V, Q)
        assert worst(got, want) < TOLERANCE
