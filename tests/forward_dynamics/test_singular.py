"""Configurations at which a robot moves no inertia in some direction: told with the joints' names, in every method."""

import casadi as ca
import numpy as np
import pytest
from samples import relative

import oc_dyn as od
from oc_dyn.errors import ModelError

SOLVING = [x for x in od.quantities(of="robot") if od.registry.get(x).solves]


def stretchable():
    """Two joints and all the mass in a point at the tip: det M = sin(q2)^2, singular where the arm is stretched."""
    b = od.RobotBuilder("r")
    b.add_link("base")
    b.add_body("upper", "revolute", "base", joint="shoulder")
    b.add_body("lower", "revolute", "upper", joint="elbow", xyz=(1, 0, 0), mass=1.0, com=(1, 0, 0))
    return b.build()


@pytest.fixture(scope="module")
def arm():
    return stretchable()


def test_what_solves_with_the_mass_matrix():
    named = {x for x in od.quantities(of="robot") if x.startswith(("forward_dynamics", "hybrid_dynamics"))}
    assert set(SOLVING) == named | {"mass_matrix_inverse"}


@pytest.mark.parametrize("method", od.methods("forward_dynamics"))
@pytest.mark.parametrize(
    "elbow, joints",
    [
        (0.0, "joints 'shoulder', 'elbow' have a common motion"),
        (1e-9, "joints 'shoulder', 'elbow' have a common motion"),
        (np.pi, "joint 'shoulder'"),  # folded, the tip is on the shoulder's axis
        (-np.pi, "joint 'shoulder'"),
    ],
)
def test_forward_dynamics_where_an_arm_is_stretched_or_folded(arm, method, elbow, joints):
    f = od.function(arm, "forward_dynamics", method=method)
    with pytest.raises(ModelError, match=f"forward_dynamics of r: at q = .*{joints}.* no inertia"):
        f(q=[0.3, elbow], v=[0, 0], tau=[1, 1])
    with pytest.raises(ModelError, match=joints):
        f([0.3, elbow], [0, 0], [1, 1])


@pytest.mark.parametrize("quantity", [x for x in SOLVING if not x.startswith("hybrid")])
def test_all_that_solves_with_the_mass_matrix(arm, quantity):
    f = od.function(arm, quantity)
    ones = {name: np.ones(f.size_in(name)) for name in f.name_in()}
    with pytest.raises(ModelError, match=f"{quantity} of r: at q = .*'shoulder', 'elbow'"):
        f(**ones | {"q": [0.3, 0.0]})
    assert all(np.isfinite(y.full()).all() for y in f(**ones | {"q": [0.3, 0.5]}).values())


def test_bent_is_right(arm):
    """The tip moves as a free point mass: its acceleration is force over mass."""
    q = np.array([0.3, 1e-3])
    J = np.array(
        [[-np.sin(q[0]) - np.sin(q.sum()), -np.sin(q.sum())], [np.cos(q[0]) + np.cos(q.sum()), np.cos(q.sum())]]
    )
    force = np.array([0.2, -0.5])
    dv = od.function(arm, "forward_dynamics")(q=q, v=[0, 0], tau=J.T @ force)["dv"]
    assert relative(J @ dv.full().ravel(), force) < 1e-9


def test_a_joint_whose_motion_is_given_is_not_solved_for(arm):
    f = od.function(arm, "hybrid_dynamics", prescribed="elbow")
    assert float(f(q=[0.3, 0], v=[0, 0], dv_p=0, tau_f=1)["dv_f"]) == pytest.approx(0.25)  # a mass 2 m away


def test_one_point_of_several(arm):
    f = od.function(arm, "forward_dynamics")
    q = np.array([[0.3, 0.3], [0.5, 0.0]])
    with pytest.raises(ModelError, match=r"at q = \[0.3, 0. \]"):
        f(q=q, v=np.zeros((2, 2)), tau=np.ones((2, 2)))


def test_nan_and_symbols_go_through(arm):
    f = od.function(arm, "forward_dynamics")
    assert np.isnan(f(q=[0.3, 0.0], v=[0, 0], tau=[np.nan, 1])["dv"].full()).all()
    assert f(q=ca.SX([0.3, 0.0]), v=ca.SX.sym("v", 2), tau=[1, 1])["dv"].shape == (2, 1)


def test_large_numbers_are_no_fault(arm):
    dv = od.function(arm, "forward_dynamics")(q=[0, np.pi / 2], v=[0, 0], tau=[0, 1e12])["dv"].full().ravel()
    assert dv == pytest.approx([-1e12, 2e12])


def test_compiled_functions_tell_it_too(arm):
    f = od.compile(od.function(arm, "forward_dynamics"), fallback=True)
    with pytest.raises(ModelError, match="'shoulder', 'elbow'"):
        f(q=[0.3, 0.0], v=[0, 0], tau=[1, 1])
