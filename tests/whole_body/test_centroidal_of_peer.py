"""Centroidal momentum matrix, its rate and the partials of the momentum equal those of Pinocchio on real robots."""

import numpy as np
import pytest
from test_external import ROBOTS, load, worst

import oc_dyn as od

pin = pytest.importorskip("pinocchio")


def at(r, quantity, x):
    """{output: array} of order 1 at the ports in x."""
    f = od.function(r, quantity, order=1)
    return {n: np.array(y) for n, y in f(**{n: x[n] for n in f.name_in()}).items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ROBOTS if n not in ("romeo", "icub")])
def test_equal_pinocchio(name):
    """ccrba, dccrba and computeCentroidalDynamicsDerivatives, whose twists are [linear; angular]."""
    r, model, theirs = load(name)
    data = model.createData()
    rng = np.random.default_rng(2)
    x = {"q": r.random_configuration(2)} | dict(zip(("v", "dv"), rng.normal(size=(2, r.nv)), strict=True))
    Q, V, A, P = theirs.q(x["q"]), theirs.v(x["v"]), theirs.dv(x["dv"]), theirs.velocity_matrix(x["q"])
    swapped = [3, 4, 5, 0, 1, 2]

    def ours(matrix):
        return matrix[swapped] @ P

    found = at(r, "centroidal_momentum_matrix", x)
    pin.dccrba(model, data, Q, V)
    assert worst(found["A"], ours(data.Ag)) < 1e-10
    assert worst(found["dA"], ours(data.dAg)) < 1e-10
    assert worst(found["A"], ours(pin.ccrba(model, data, Q, V))) < 1e-10
    partials = at(r, "centroidal_momentum_matrix_partials", x)
    of_h, of_rate, by_v, by_a = pin.computeCentroidalDynamicsDerivatives(model, data, Q, V, A)
    for name_, expected in (("dh_dq", of_h), ("ddh_dq", of_rate), ("ddh_dv", by_v), ("ddh_ddv", by_a)):
        assert worst(partials[name_], ours(expected)) < 1e-9, name_
