"""Centroidal momentum matrix and its partials: against differences, and laws that hold along any motion."""

import numpy as np
import pytest
from samples import ROBOTS, build, random_ports, relative, robot

import oc_dyn as od

STEP = 1e-6
MATRIX, PARTIALS = "centroidal_momentum_matrix", "centroidal_momentum_matrix_partials"


def at(r, quantity, x, order=0, method=None):
    """{output: array} at the ports in x."""
    f = od.function(r, quantity, order=order, method=method)
    found = f(**{n: x[n] for n in f.name_in()})
    return {n: np.array(found[n]) for n in f.name_out()}


def state(r, seed=1):
    return random_ports(od.function(r, "momentum", order=3), r, seed)


@pytest.mark.sample("prismatic")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_it_is_the_momentum_about_the_root_moved_to_the_centre_of_mass(name):
    """With time derivatives, of which those of the centre of mass count too."""
    r = robot(name)
    x = state(r)
    A, com, about_root = at(r, MATRIX, x, 2), at(r, "com", x, 2), at(r, "momentum", x, 2)
    p, c = [y[3:].ravel() for y in about_root.values()], [y.ravel() for y in com.values()]
    arms = [
        np.cross(c[0], p[0]),
        np.cross(c[1], p[0]) + np.cross(c[0], p[1]),
        np.cross(c[2], p[0]) + 2 * np.cross(c[1], p[1]) + np.cross(c[0], p[2]),
    ]
    expected = [y.ravel() - [*arm, 0, 0, 0] for y, arm in zip(about_root.values(), arms, strict=True)]
    M, v = list(A.values()), [x["v"], x["dv"], x["d2v"]]
    assert relative(M[0] @ v[0], np.c_[expected[0]]) < 1e-12
    assert relative(M[0] @ v[1] + M[1] @ v[0], np.c_[expected[1]]) < 1e-11
    assert relative(M[0] @ v[2] + 2 * M[1] @ v[1] + M[2] @ v[0], np.c_[expected[2]]) < 1e-11
    J = at(r, "com_jacobian", x)["J"]
    assert relative(M[0][3:], r.total_mass * J) < 1e-12


def moved(r, x, name, e):
    return {**x, "q": r.integrate(x["q"].ravel(), e)} if name == "q" else {**x, name: x[name] + np.c_[e]}


@pytest.mark.sample("prismatic")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_partials_are_those_of_differences(name):
    """Of h = A v and its first two time derivatives, by all that they depend on."""
    r = robot(name)
    x = state(r, 2)

    def momenta(x):
        A = list(at(r, MATRIX, x, 2).values())
        v = [x["v"], x["dv"], x["d2v"]]
        return A[0] @ v[0], A[0] @ v[1] + A[1] @ v[0], A[0] @ v[2] + 2 * A[1] @ v[1] + A[2] @ v[0]

    found = at(r, PARTIALS, x, 2)
    for by in ("q", "v", "dv", "d2v"):
        ends = [(momenta(moved(r, x, by, e)), momenta(moved(r, x, by, -e))) for e in STEP * np.eye(r.nv)]
        for k, of in enumerate(("h", "dh", "d2h")):
            J = np.column_stack([(a[k] - b[k]) / (2 * STEP) for a, b in ends])
            assert relative(found.get(f"d{of}_d{by}", np.zeros((6, r.nv))), J) < 1e-7, (of, by)


def test_of_a_free_body_it_is_its_inertia_about_its_centre():
    b = od.RobotBuilder("brick")
    b.add_link("brick", mass=2.0, com=(0.1, 0.2, 0.3), inertia=np.diag([0.1, 0.2, 0.25]))  # about the centre
    r = b.build(floating_base=True)
    A = at(r, MATRIX, {"q": r.neutral()})["A"]
    expected = np.zeros((6, 6))
    expected[:3, :3] = np.diag([0.1, 0.2, 0.25])
    expected[3:, 3:] = 2.0 * np.eye(3)
    expected[3:, :3] = 2.0 * np.array([[0, 0.3, -0.2], [-0.3, 0, 0.1], [0.2, -0.1, 0]])
    assert relative(A, expected) < 1e-14


@pytest.mark.slow
def test_it_is_conserved_in_free_flight():
    """Without gravity and torques h does not change, and under gravity its angular part does not either."""
    r = robot("floating")
    x = state(r, 3)
    x["dv"] = np.array(od.function(r, "forward_dynamics")(q=x["q"], v=x["v"], tau=np.zeros(r.nv))["dv"])
    A = at(r, MATRIX, x, 1)
    rate = (A["A"] @ x["dv"] + A["dA"] @ x["v"]).ravel()
    assert relative(rate, [0, 0, 0, *(r.total_mass * r.gravity)]) < 1e-11


@pytest.mark.slow
def test_several_trees_share_one_centre():
    """One tree of a free body beside one that is fixed: as the sum over the bodies says."""
    b = od.RobotBuilder("two trees")
    b.add_link("base")
    b.add_body("arm", "revolute", "base", axis=(0, 0.6, 0.8), mass=1.5, com=(0.3, 0.1, 0), xyz=(1, 2, 3))
    b.add_body("ball", "free", "base", mass=0.7, com=(0.1, 0, 0.2), xyz=(-1, 0, 2))
    r = b.build()
    x = state(r, 4)
    found = [at(r, MATRIX, x, 2, m) for m in od.methods(MATRIX)]
    assert max(relative(y[k], found[0][k]) for y in found[1:] for k in y) < 1e-12
    found = [at(r, PARTIALS, x, 2, m) for m in od.methods(PARTIALS)]
    assert max(relative(y[k], found[0][k]) for y in found[1:] for k in y) < 1e-11


def test_robots_without_mass_are_refused():
    b = od.RobotBuilder("empty")
    b.add_link("base")
    b.add_link("tip")
    b.add_joint("joint", "revolute", parent="base", child="tip", axis=(0, 0, 1))
    for quantity in (MATRIX, PARTIALS):
        with pytest.raises(od.ModelError, match="no mass"):
            od.function(b.build(), quantity)


@pytest.mark.slow
def test_the_default_takes_the_fewest_instructions_of_a_floating_robot():
    r = build(["revolute"] * 4, [0, 1, 0, 3], seed=3, floating_base=True)
    for quantity in (MATRIX, PARTIALS):
        counts = {m: od.function(r, quantity, method=m).n_instructions() for m in od.methods(quantity)}
        assert min(counts, key=counts.get) == "composite", counts
