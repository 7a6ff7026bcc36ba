"""Energies, momentum and centre of mass: physical laws that hold along any motion."""

from math import comb

import numpy as np
import pytest
from samples import ROBOTS, build, random_ports, relative, robot

import oc_dyn as od


def at(r, quantity, x, order=0, method=None):
    """Outputs of a quantity, in order, at the ports in x."""
    f = od.function(r, quantity, order=order, method=method)
    found = f(**{n: x[n] for n in f.name_in()})
    return [np.array(found[n]) for n in f.name_out()]


def state(r, seed=1):
    return random_ports(od.function(r, "bias", order=3), r, seed)


@pytest.mark.sample("serial", "helical")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_energy_rate_is_power(name):
    """dT + dU = v' tau, and the derivative of that."""
    r = robot(name)
    x = state(r)
    tau, dtau = at(r, "inverse_dynamics", x, 1)
    for kinetic, potential in zip(od.methods("kinetic_energy"), od.methods("potential_energy"), strict=True):
        T, U = at(r, "kinetic_energy", x, 2, kinetic), at(r, "potential_energy", x, 2, potential)
        assert relative(T[1] + U[1], x["v"].T @ tau) < 1e-12
        assert relative(T[2] + U[2], x["dv"].T @ tau + x["v"].T @ dtau) < 1e-11
    M = at(r, "mass_matrix", x)[0]
    assert relative(T[0], 0.5 * x["v"].T @ M @ x["v"]) < 1e-12


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_potential_is_weight_times_height(name):
    r = robot(name)
    x = state(r, 2)
    (com,), (U,) = at(r, "com", x), at(r, "potential_energy", x)
    assert relative(U, -r.total_mass * r.gravity @ com) < 1e-12
    (g,) = at(r, "gravity", x)
    for method in od.methods("com_jacobian"):
        (J,) = at(r, "com_jacobian", x, method=method)
        assert relative(-r.total_mass * J.T @ r.gravity, g.ravel()) < 1e-12  # remark 3 of Garofalo et al. 2013


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_momentum_and_centre_of_mass(name):
    """Linear momentum is mass times the velocity of the centre of mass, which its Jacobian gives; with derivatives."""
    r = robot(name)
    x = state(r, 3)
    com, momentum, J = at(r, "com", x, 3), at(r, "momentum", x, 2), at(r, "com_jacobian", x, 2)
    v = [x["v"], x["dv"], x["d2v"]]
    for k in range(3):
        assert relative(momentum[k][3:], r.total_mass * com[k + 1]) < 1e-11
        assert relative(sum(comb(k, n) * (J[k - n] @ v[n]) for n in range(k + 1)), com[k + 1]) < 1e-11


@pytest.mark.parametrize("method", od.methods("momentum"))
def test_momentum_changes_by_what_acts_from_outside(method):
    """Of a robot that floats: the wrench of its base joint and the weight, both about the root's origin."""
    r = robot("floating")
    x = state(r, 4)
    (tau,), (_, rate) = at(r, "inverse_dynamics", x), at(r, "momentum", x, 1, method)
    f = od.function(r, "frame_pose", frame=r.root)(q=x["q"])
    R, p = np.array(f["R"]), np.array(f["p"]).ravel()
    moment, force = R @ tau[:3, 0], R @ tau[3:6, 0]
    weight, com = r.total_mass * r.gravity, at(r, "com", x)[0].ravel()
    expected = [*(moment + np.cross(p, force) + np.cross(com, weight)), *(force + weight)]
    assert relative(rate.ravel(), expected) < 1e-12


def test_no_mass_no_centre():
    b = od.RobotBuilder("empty")
    b.add_link("base")
    b.add_link("tip")
    b.add_joint("joint", "revolute", parent="base", child="tip", axis=(0, 0, 1))
    r = b.build()
    with pytest.raises(od.ModelError, match="no mass"):
        od.function(r, "com")
    assert float(od.function(r, "kinetic_energy")(q=0, v=1)["T"]) == 0.0


def test_armature_counts_as_kinetic_energy():
    with_rotors, without = (build(["revolute"] * 2, seed=3, armature=a) for a in (True, False))
    x = {"q": [0.1, 0.2], "v": [1.0, 2.0]}
    energies = [float(od.function(r, "kinetic_energy")(**x)["T"]) for r in (with_rotors, without)]
    assert energies[0] - energies[1] == pytest.approx(0.5 * (0.1 * 1 + 0.2 * 4))
