"""Products of Lagrangian Hessians with a vector: those of Hessians, symmetric, cheaper than jtimes of the adjoint."""

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.forward_dynamics.mass_solver import articulated_cost, dense_cost
from oc_dyn.model.canonical import canonical

OPTIONS = {"external_wrenches": True, "friction": True}


@pytest.mark.few(10)
@pytest.mark.sample("0-forward-helical")
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("what", ["inverse", "forward"])
@pytest.mark.parametrize("order", [0, 1])
def test_it_is_the_hessian_times_the_vector(order, what, name):
    if order and name not in ("serial", "floating", "spherical"):
        pytest.skip("slow to build, and other tests compare the methods")
    r = robot(name)
    H = od.function(r, f"{what}_dynamics_lagrangian_hessian", order=order, **OPTIONS)
    x = random_ports(H, r, 3)
    z = np.random.default_rng(4).normal(size=(H.size1_out(0), 1))
    right = np.array(H(**x)["H"]) @ z
    for method, f in functions_of(r, f"{what}_dynamics_lagrangian_hessian_product", order, **OPTIONS):
        assert relative(f(**x, z=z)["Hz"], right) < 1e-9, method


@pytest.mark.sample("floating")
@pytest.mark.parametrize("name", ["floating", "planar", "mimic"])
def test_it_is_symmetric(name):
    r = robot(name)
    f = od.function(r, "inverse_dynamics_lagrangian_hessian_product")
    x, rng = random_ports(f, r, 5), np.random.default_rng(5)
    a, b = rng.normal(size=(2, f.size1_out(0)))
    at_a, at_b = (np.array(f(**{**x, "z": z})["Hz"]).ravel() for z in (a, b))
    assert b @ at_a == pytest.approx(a @ at_b, rel=1e-11)


@pytest.mark.slow
def test_recursion_takes_fewer_instructions_than_jtimes_of_the_adjoint():
    """12240 on the humanoid."""
    for name, most in (("humanoid", 11381), ("panda", 3379)):
        r = od.robots.by_name(name)
        f, g = (
            od.function(r, "inverse_dynamics_lagrangian_hessian_product", method=m)
            for m in ("composite", "ad_of_adjoint")
        )
        assert f.n_instructions() <= most
        assert f.n_instructions() <= 0.95 * g.n_instructions()


def test_conjugate_gradients_need_no_hessian():
    """Newton's step of a quadratic model of lam' tau + |step|^2 by v and dv, by products alone."""
    r = robot("serial")
    f = od.function(r, "inverse_dynamics_lagrangian_hessian_product")
    x = random_ports(f, r, 2)
    H = np.array(od.function(r, "inverse_dynamics_lagrangian_hessian")(**{n: y for n, y in x.items() if n != "z"})["H"])
    n, g = H.shape[0], np.ones(H.shape[0])

    def apply(z):
        return np.array(f(**{**x, "z": z})["Hz"]).ravel() + 1e3 * z

    step, rest = np.zeros(n), -g
    along = rest
    for _ in range(2 * n):
        image = apply(along)
        length = rest @ rest / (along @ image)
        step, new = step + length * along, rest - length * image
        rest, along = new, new + (new @ new) / (rest @ rest) * along
        if np.linalg.norm(rest) < 1e-14:
            break
    assert relative(step, np.linalg.solve(H + 1e3 * np.eye(n), -g)) < 1e-10


def test_robots_with_loops_are_refused_by_name():
    with pytest.raises(od.OrderError, match="inverse_dynamics_lagrangian_hessian_product is not there for robots with"):
        od.function(od.robots.four_bar(), "inverse_dynamics_lagrangian_hessian_product")


def test_casadi_differentiates_it():
    r = robot("serial")
    f = od.function(r, "inverse_dynamics_lagrangian_hessian_product")
    x = random_ports(f, r, 2)
    z = ca.SX.sym("z", 3 * r.nv)
    J = ca.Function("J", [z], [ca.jacobian(f(**{**x, "z": z})["Hz"], z)])(0)
    H = od.function(r, "inverse_dynamics_lagrangian_hessian")(**{n: y for n, y in x.items() if n != "z"})["H"]
    assert relative(J, H) < 1e-11


def test_the_short_name_is_that_of_inverse_dynamics():
    r = robot("serial")
    f, g = (od.function(r, f"{what}lagrangian_hessian_product") for what in ("", "inverse_dynamics_"))
    assert f is g
    assert od.methods("lagrangian_hessian_product") == od.methods("inverse_dynamics_lagrangian_hessian_product")
    assert "lagrangian_hessian_product" not in od.quantities()


@pytest.mark.slow
@pytest.mark.parametrize(
    "what, order, method",
    [("adjoint", 0, "composite"), ("adjoint", 1, "composite_along_motion"),
     ("lagrangian_hessian_product", 0, "ad_via_inverse")],
)  # fmt: skip
def test_derivatives_of_long_chains(what, order, method):
    """Where forward dynamics takes articulated inertias, so do gradients and products: beside AD of it."""
    r = od.robots.chain(11)
    assert dense_cost(canonical(r, True)) > articulated_cost(canonical(r, True))
    f, g = (od.function(r, f"forward_dynamics_{what}", order=order, method=m) for m in (method, "ad"))
    x = random_ports(f, r, 3)
    for port, wanted in g(**x).items():
        assert relative(f(**x)[port], wanted) < 1e-8, port
