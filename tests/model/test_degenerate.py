"""Robots that no one can build, or that do not decide how they move: told with names, not by infinities."""

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, random_ports, relative
from samples import robot as sample

import oc_dyn as od
from oc_dyn.errors import ModelError, ModelWarning
from oc_dyn.model.canonical import canonical
from oc_dyn.model.massless import _mass_matrix

pytestmark = pytest.mark.filterwarnings("ignore:.*moves no inertia:oc_dyn.errors.ModelWarning")
ROD = {"mass": 1.0, "com": (0.1, 0.1, 0.0), "inertia": (0.1, 0, 0, 0.1, 0, 0.1)}
NEEDS_THE_INVERSE = (
    "forward_dynamics",
    "forward_dynamics_partials",
    "forward_dynamics_second_partials",
    "forward_dynamics_adjoint",
    "forward_dynamics_lagrangian_hessian",
    "mass_matrix_inverse",
)


def robot(*bodies, **options):
    """A robot called r of (name, kind, parent, options of add_body)."""
    b = od.RobotBuilder("r")
    b.add_link("base")
    for name, kind, parent, more in bodies:
        b.add_body(name, kind, parent, joint=f"to_{name}", **more)
    return b.build(**options)


def leaf(**tip):
    return robot(
        ("arm", "revolute", "base", ROD), ("tip", "revolute", "arm", {"xyz": (0.3, 0, 0), "axis": (0, 1, 0), **tip})
    )


UNDECIDED = {  # robot, what each problem says
    "massless leaf": (leaf, ["joint 'to_tip' moves no inertia"]),
    "point mass on the axis": (lambda: leaf(mass=2.0, com=(0, 0.1, 0)), ["joint 'to_tip' moves no inertia"]),
    "massless leaf behind a fixed joint": (
        lambda: robot(("arm", "revolute", "base", ROD), ("hand", "prismatic", "arm", {}), ("eye", "fixed", "hand", {})),
        ["joint 'to_hand' moves no inertia"],
    ),
    "two massless leaves": (
        lambda: robot(("arm", "revolute", "base", ROD), ("a", "revolute", "arm", {}), ("b", "prismatic", "arm", {})),
        ["joint 'to_a' moves no inertia", "joint 'to_b' moves no inertia"],
    ),
    "massless chain": (
        lambda: robot(("a", "revolute", "base", {}), ("b", "revolute", "a", {"xyz": (1, 0, 0)})),
        ["joint 'to_a' moves no inertia", "joint 'to_b' moves no inertia"],
    ),
    "two joints on one axis": (
        lambda: robot(("a", "revolute", "base", {}), ("b", "continuous", "a", {"xyz": (0, 0, 0.2), **ROD})),
        ["joints 'to_a', 'to_b' have a common motion that moves no inertia"],
    ),
    "two parallel slides": (
        lambda: robot(("a", "prismatic", "base", {}), ("b", "prismatic", "a", {"xyz": (1, 2, 3), **ROD})),
        ["joints 'to_a', 'to_b' have a common motion that moves no inertia"],
    ),
    "four hinges without masses between": (
        lambda: robot(
            ("l0", "revolute", "base", {}),
            *((f"l{k}", "revolute", f"l{k - 1}", {"xyz": (0.3, 0, 0), **(ROD if k == 3 else {})}) for k in (1, 2, 3)),
        ),
        ["joints 'to_l0', 'to_l1', 'to_l2', 'to_l3' have a common motion that moves no inertia"],
    ),
    "point mass on a ball joint": (
        lambda: robot(("ball", "spherical", "base", {"mass": 1.0, "com": (0.1, 0.1, 0)})),
        ["joint 'to_ball' has a direction that moves no inertia"],
    ),
    "massless base in the air": (
        lambda: robot(("arm", "revolute", "base", ROD), floating_base=True),
        ["joints 'root_joint', 'to_arm' have a common motion that moves no inertia"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDECIDED)
def test_forward_dynamics_names_the_joints_that_move_nothing(name):
    make, said = UNDECIDED[name]
    r = make()
    for quantity in NEEDS_THE_INVERSE:
        for method in (None, od.methods(quantity)[-1]):
            with pytest.raises(ModelError) as caught:
                od.function(r, quantity, method=method)
            assert f"{quantity} of r" in str(caught.value)
            assert "armature" in str(caught.value)
            assert len(caught.value.problems) == len(said)
            assert all(p.startswith(s) for p, s in zip(caught.value.problems, said, strict=True))


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_needs_no_inverse_goes_on(name):
    r = UNDECIDED[name][0]()
    f = od.function(r, "inverse_dynamics", order=1)
    x = random_ports(f, r)
    assert all(np.isfinite(y.full()).all() for y in f(**x).values())
    h = od.function(r, "hybrid_dynamics", prescribed=[j.name for j in r.joints])  # all their motions are given
    assert relative(h(q=x["q"], v=x["v"], dv_p=x["dv"])["tau"], f(**x)["tau"]) < 1e-12


def test_hybrid_dynamics_judges_the_joints_that_are_free():
    r = leaf()
    with pytest.raises(ModelError, match="'to_tip' moves no inertia"):
        od.function(r, "hybrid_dynamics", prescribed="to_arm")
    moved = od.function(r, "hybrid_dynamics", prescribed="to_tip")(q=[0.1, 0.2], v=[1, 1], dv_p=1, tau_f=1)
    assert np.isfinite(moved["dv"].full()).all()
    with pytest.raises(ModelError, match="'to_tip'"):
        od.function(r, "hybrid_dynamics_partials", prescribed="to_arm")


def test_the_cures_that_the_message_names():
    for r in (leaf(armature=0.01), leaf(mass=0.1, com=(0.01, 0, 0)), leaf().locked({"to_tip": 0.2})):
        f = od.function(r, "forward_dynamics")
        assert np.isfinite(f(**random_ports(f, r))["dv"].full()).all()


def test_such_a_robot_can_still_be_described():
    assert "to_tip" in str(leaf())
    (line,) = (x for x in leaf().canonical_report().splitlines() if "forward_dynamics" in x)
    assert line.split() == ["forward_dynamics", "none", "none", "none"]


def test_masses_that_are_symbols_may_be_given_later():
    r = leaf()
    f = od.function(r, "forward_dynamics", parameters=("inertia", "armature"))
    x = random_ports(f, r) | {"params": np.r_[r.parameters, 0.0, 0.01]}
    assert np.isfinite(f(**x)["dv"].full()).all()


def test_small_is_not_nothing():
    r = leaf(mass=1e-6, com=(1e-4, 0, 0), inertia=(1e-14, 0, 0, 1e-14, 0, 1e-14))  # a grain of sand
    assert np.isfinite(od.function(r, "forward_dynamics")(q=[0.1, 0.2], v=[1, 1], tau=[0, 0])["dv"].full()).all()


@pytest.mark.slow
def test_parallel_axes_and_massless_links_between_are_no_fault():
    parallel = robot(
        *((f"l{k}", "revolute", f"l{k - 1}" if k else "base", {"xyz": (0.3, 0, 0), **ROD}) for k in range(5))
    )
    wrist = robot(
        ("a", "revolute", "base", {"axis": (1, 0, 0)}),
        ("b", "revolute", "a", {"axis": (0, 1, 0)}),
        ("c", "revolute", "b", ROD),
    )
    for r in (parallel, wrist, od.robots.chain(40)):
        f = od.function(r, "forward_dynamics")
        x = random_ports(f, r)
        dv = f(**x)["dv"]
        assert relative(od.function(r, "inverse_dynamics")(q=x["q"], v=x["v"], dv=dv)["tau"], x["tau"]) < 1e-8


@pytest.mark.parametrize("name", ROBOTS)
def test_the_mass_matrix_it_is_judged_by(name):
    r = sample(name)
    q = r.random_configuration(3)
    assert relative(_mass_matrix(canonical(r), ca.DM(q)), od.function(r, "mass_matrix")(q)) < 1e-12


def test_impossible_inertias_are_told_and_go_on():
    with pytest.warns(ModelWarning, match="tip.*the largest exceeds the sum of the others"):
        r = leaf(mass=1.0, inertia=(1, 0, 0, 1, 0, 3))
    assert any("tip" in note for note in r.report)
    assert np.isfinite(od.function(r, "forward_dynamics")(q=[0, 0], v=[0, 0], tau=[1, 1])["dv"].full()).all()
