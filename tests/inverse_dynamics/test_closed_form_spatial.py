"""Proposition 1 of Ali et al. 2026 in the paper's own velocities: the spatial twist of the base, S_1 the identity."""

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import OrderError
from oc_dyn.inverse_dynamics.spatial_system import SpatialSystem
from oc_dyn.kinematics.recursive_body import body_poses
from oc_dyn.lie import so3
from oc_dyn.lie.twist_conversion import body_from_spatial
from oc_dyn.model.canonical import canonical


@pytest.fixture(scope="module")
def case():
    """(system with S_1 = I, v and its derivatives, what representation="spatial" gives)."""
    r = robot("small floating")
    f = od.function(r, "inverse_dynamics", order=1, representation="spatial")
    x = random_ports(f, r, 6)
    V = [x[n].ravel() for n in ("v", "dv", "d2v")]
    C = so3.quat_to_rot(ca.DM(x["q"][:4])), ca.DM(x["q"][4:7])
    twists = body_from_spatial(C, [ca.DM(v[:6]) for v in V])
    body = [ca.vertcat(t, v[6:]) for t, v in zip(twists, V, strict=True)]
    system = SpatialSystem(canonical(r), ca.DM(x["q"]), body, 2, body_poses)
    for k, S in enumerate(system.S):
        S = ca.SX(S)
        S[:6, :6] = ca.SX.eye(6) if k == 0 else ca.SX(6, 6)
        system.S[k] = S

    def quantity(name, order=1, **options):
        g = od.function(r, name, order=order, representation="spatial", **options)
        return {k: y.full() for k, y in g(**{n: x[n] for n in g.name_in()}).items()}

    return system, V, quantity


def number(x):
    return ca.evalf(ca.SX(x)).full()


def test_equation_of_motion_and_its_rate(case):
    system, (v, dv, d2v), quantity = case
    expected = quantity("inverse_dynamics")
    M, K = number(system.mass()), number(system.bias_matrix())
    tau = M @ dv + K @ v + number(system.gravity()).ravel()
    assert relative(tau, expected["tau"].ravel()) < 1e-11
    rate = (number(system.mass_rate()) + K) @ dv + number(system.bias_matrix_rate()) @ v
    rate = M @ d2v + rate + number(system.gravity_rate()).ravel()
    assert relative(rate, expected["dtau"].ravel()) < 1e-11


@pytest.mark.slow
def test_matrices_are_those_with_spatial_representation(case):
    system, _, quantity = case
    M, C, g = (quantity(x) for x in ("mass_matrix", "coriolis_matrix", "gravity"))
    assert relative(number(system.mass()), M["M"]) < 1e-11
    assert relative(number(system.mass_rate()), M["dM"]) < 1e-11
    assert relative(number(system.gravity()), g["g"]) < 1e-11
    assert relative(number(system.gravity_rate()), g["dg"]) < 1e-11
    C = quantity("coriolis_matrix", coriolis="garofalo")
    assert relative(number(system.coriolis()), C["C"]) < 1e-11
    assert relative(number(system.coriolis_rate()), C["dC"]) < 1e-11


def test_lemma_1(case):
    """C of (21) is admissible, the matrix of (12) is not, and both have the same product with v."""
    system, (v, *_), _ = case
    C, K, rate = (number(x) for x in (system.coriolis(), system.bias_matrix(), system.mass_rate()))
    assert relative(C + C.T, rate) < 1e-11
    assert relative(K + K.T, rate) > 1e-3
    assert relative(C @ v, K @ v) < 1e-11


def test_orders_are_those_of_the_paper():
    with pytest.raises(OrderError, match="closed_form_spatial goes up to order 1"):
        od.function(robot("small floating"), "inverse_dynamics", order=2, method="closed_form_spatial")


def test_parents_matrix():
    """[i, j] of P is the identity for all j between i and the ground."""
    model = canonical(robot("branching"))
    system = SpatialSystem(model, ca.DM(robot("branching").nq, 1), [], 0)
    P = ca.DM(system.P).full()
    for i in model.bodies:
        for j in model.bodies:
            block = P[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j]
            assert np.array_equal(block, np.eye(6) * (j in model.support(i)))
