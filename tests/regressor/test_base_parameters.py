"""Base parameters: how many, that the choice does not depend on chance, and that nothing is lost."""

import numpy as np
import pytest
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.regressor.base_parameters import base_parameters


def test_panda_has_43():
    panda = od.robots.panda()
    first = base_parameters(panda)
    assert first.rank == 43
    assert first.matrix.shape == (43, 70)
    above, below = first.gap
    assert above > 1e10 * below
    for seed in range(1, 6):
        other = base_parameters(panda, seed=seed)
        assert other.columns == first.columns
        assert np.abs(other.matrix - first.matrix).max() < 1e-12
    # what the vendor's axis 1 can feel of link 1 is its spin about the vertical; nothing of its mass
    assert first.names[0] == "panda_link1.Izz +1 panda_link2.Iyy"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name, rank",
    [("floating", 31), ("spherical", 25), ("planar", 20), ("mimic", 21), ("transform", 27), ("prismatic", 8)],
)
def test_reduced_regressor(name, rank):
    """A floating base feels all 10 parameters of its body, every hinge beyond 7 more; a fixed slider its mass alone."""
    r = robot(name)
    base = base_parameters(r)
    assert base.rank == rank
    full, reduced = od.function(r, "joint_torque_regressor", order=1), base.regressor(order=1)
    x = random_ports(full, r, 1)
    for port, Y in full(**x).items():
        assert relative(np.array(reduced(**x)[port]) @ base.matrix, Y) < 1e-11
    assert np.array_equal(base.matrix[:, base.columns], np.eye(rank))
    assert relative(reduced(**x)["Y"] @ base.values, full(**x)["Y"] @ r.parameters) < 1e-12


def test_parameters_that_no_torque_shows():
    """Changes in the null space of the map leave all torques as they are."""
    panda = od.robots.panda()
    base = base_parameters(panda)
    null = np.linalg.svd(base.matrix)[2][base.rank :]
    f = od.function(panda, "inverse_dynamics", parameters="symbolic")
    x = random_ports(f, panda, 2)
    x["params"] = panda.parameters
    changed = {**x, "params": panda.parameters + np.arange(1, 28) @ null}
    assert relative(f(**changed)["tau"], f(**x)["tau"]) < 1e-12


@pytest.mark.parametrize("tolerance", [-1, 1, np.nan, np.inf, [1e-9, 1e-9], "1e-9", None, True])
def test_the_tolerance_is_a_number_from_0_to_1(tolerance):
    with pytest.raises(od.ShapeError, match="base_parameters: tolerance"):
        base_parameters(od.robots.chain(2), tolerance=tolerance)


@pytest.mark.parametrize("seed", [-1, 0.5, "a"])
def test_the_seed_is_a_count(seed):
    with pytest.raises(od.ShapeError, match="base_parameters: seed"):
        base_parameters(od.robots.chain(2), seed=seed)
