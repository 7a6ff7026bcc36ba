"""Partials by external wrenches: against differences, of every order, and what they say of pushes on the bodies."""

import numpy as np
import pytest
from samples import ROBOTS, SMALL, random_ports, relative, robot

import oc_dyn as od

INVERSE, FORWARD = "inverse_dynamics_wrench_partials", "forward_dynamics_wrench_partials"
STEP = 1e-6


def at(f, x):
    found = f(**{n: x[n] for n in f.name_in()})
    return {n: np.array(found[n]) for n in f.name_out()}


def differences(f, x, by):
    """{output: its derivatives by a port, in casadi's order}."""
    columns = []
    for k in range(x[by].size):
        e = np.zeros(x[by].size)
        e[k] = STEP
        e = e.reshape(x[by].shape, order="F")
        ends = [at(f, {**x, by: x[by] + sign * e}) for sign in (1, -1)]
        columns.append({n: (ends[0][n] - ends[1][n]) / (2 * STEP) for n in ends[0]})
    return {n: np.hstack([c[n] for c in columns]) for n in columns[0]}


@pytest.mark.sample("prismatic")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_of_torques_they_are_those_of_differences(name):
    r = robot(name)
    f = od.function(r, "inverse_dynamics", order=2, external_wrenches=True)
    x = random_ports(f, r, 2)
    for method in od.methods(INVERSE):
        found = at(od.function(r, INVERSE, order=2, method=method), x)
        for by in ("w_ext", "dw_ext", "d2w_ext"):
            for of, J in differences(f, x, by).items():
                expected = found.get(f"d{of}_d{by}", np.zeros(J.shape))
                assert relative(expected, J) < 1e-7, (method, of, by)


@pytest.mark.sample("small prismatic")
@pytest.mark.parametrize("name", [*SMALL, "mimic", "transform"])
def test_of_accelerations_they_are_those_of_differences(name):
    """Of dv and d2v, which dv changes too."""
    r = robot(name)
    f = od.function(r, "forward_dynamics", order=1, external_wrenches=True)
    x = random_ports(f, r, 2)
    for method in od.methods(FORWARD):
        found = at(od.function(r, FORWARD, order=1, method=method), x)
        for by in ("w_ext", "dw_ext"):
            for of, J in differences(f, x, by).items():
                expected = found.get(f"d{of}_d{by}", np.zeros(J.shape))
                assert relative(expected, J) < 1e-6, (method, of, by)


def test_pushes_add_up():
    """Torques are linear in the wrenches, given by the names of bodies as well."""
    r = robot("floating")
    f = od.function(r, "inverse_dynamics", external_wrenches=True)
    x = random_ports(f, r, 3)
    free = at(od.function(r, "inverse_dynamics"), x)["tau"]
    J = at(od.function(r, INVERSE), x)["dtau_dw_ext"]
    assert relative(at(f, x)["tau"] - free, J @ x["w_ext"].ravel(order="F")[:, None]) < 1e-12
    one = np.array(f(**{**x, "w_ext": {"link2": x["w_ext"][:, 1]}})["tau"])
    names = [b.name for b in r.bodies]
    k = 6 * names.index("link2")
    assert relative(one - free, J[:, k : k + 6] @ x["w_ext"][:, 1:2]) < 1e-12


def test_bodies_do_not_push_joints_beyond_them():
    J = od.function(robot("serial"), INVERSE).sparsity_out(0)
    rows, columns = J.get_triplet()
    assert all(row <= column // 6 for row, column in zip(rows, columns, strict=True))


def test_accelerations_are_those_of_the_torques_that_wrenches_make():
    r = robot("small branching")
    x = random_ports(od.function(r, FORWARD), r, 4)
    by_tau = at(od.function(r, "forward_dynamics_partials"), x)["ddv_dtau"]
    found = at(od.function(r, FORWARD), x)["ddv_dw_ext"]
    assert relative(found, -by_tau @ at(od.function(r, INVERSE), x)["dtau_dw_ext"]) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("method", od.methods(FORWARD))
def test_friction_counts_for_what_follows(method):
    """dv changes v: damping takes from d2v what a push adds to dv."""
    b = od.RobotBuilder("rough")
    b.add_link("base")
    b.add_body("link", "prismatic", "base", axis=(0, 0, 1), mass=2.0, damping=0.7)
    b.add_body("next", "revolute", "link", axis=(0, 1, 0), mass=1.0, com=(1, 0, 0), damping=0.3)
    r = b.build()
    f = od.function(r, FORWARD, order=1, method=method, friction=True)
    x = random_ports(f, r, 5)
    found, plain = at(f, x), at(od.function(r, FORWARD, order=1, method=method), x)
    assert relative(found["ddv_dw_ext"], plain["ddv_dw_ext"]) < 1e-12
    M = at(od.function(r, "mass_matrix"), x)["M"]
    lost = np.linalg.solve(M, np.diag([0.7, 0.3]) @ plain["ddv_dw_ext"])
    assert relative(plain["dd2v_dw_ext"] - found["dd2v_dw_ext"], lost) < 1e-11


def test_of_a_robot_without_mass_they_are_refused():
    b = od.RobotBuilder("light")
    b.add_link("base")
    b.add_body("link", "revolute", "base", axis=(0, 0, 1))
    with pytest.warns(od.ModelWarning):
        r = b.build()
    assert od.function(r, INVERSE)(q=0.3).keys() == {"dtau_dw_ext"}
    with pytest.raises(od.ModelError, match="mass|inertia"):
        od.function(r, FORWARD)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda", "aerial_manipulator"])
def test_the_default_takes_the_fewest_instructions(name):
    r = od.robots.by_name(name)
    counts = {m: od.function(r, FORWARD, method=m).n_instructions() for m in od.methods(FORWARD)}
    assert od.function(r, FORWARD).n_instructions() == min(counts.values()), counts
