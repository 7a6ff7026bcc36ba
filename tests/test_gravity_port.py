"""Option gravity=True: gravity is an input, of every method of the quantities with it, and for loops."""

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import UnknownName
from oc_dyn.registry import get, get_method

QUANTITIES = [q for q in od.quantities("robot") if "gravity" in get(q).options]
OPTIONS = {q: {"prescribed": ("joint1",)} for q in QUANTITIES if "hybrid" in q}
GAMMA = np.array([0.7, -3.1, 5.2])
ROBOTS = ("small floating", "small prismatic", "transform", "mimic")


def value(f, x, gravity=GAMMA):
    return f(**{**x, **({"gravity": gravity} if "gravity" in f.name_in() else {})})


def test_quantities():
    assert {"inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "bias", "gravity", "dynamic_matrices",
            "potential_energy", "inverse_dynamics_partials", "forward_dynamics_partials", "hybrid_dynamics_partials",
            "inverse_dynamics_lagrangian_hessian"} <= set(QUANTITIES)  # fmt: skip


@pytest.mark.few(16)
@pytest.mark.sample("gravity-mimic", "hybrid_dynamics-small prismatic")
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_method_is_that_of_a_robot_with_this_gravity(quantity, name):
    """With recursions and AD alike, at order 1 where they do it."""
    r, options = robot(name), OPTIONS.get(quantity, {})
    other = r.with_gravity(GAMMA)
    tried = 0
    for method in od.methods(quantity):
        tops = [x for x in (get(quantity).max_order, get_method(quantity, method).max_order, 1) if x is not None]
        order = min(tops)
        if get_method(quantity, method).refusal(r, order):
            continue
        if get_method(quantity, method).graph == "mx":
            with pytest.raises(od.OrderError, match=f"{method} cannot take gravity as an input: it (calls|makes)"):
                od.function(r, quantity, order=order, method=method, gravity=True, **options)
            continue
        f = od.function(r, quantity, order=order, method=method, gravity=True, **options)
        g = od.function(other, quantity, order=order, method=method, **options)
        x = random_ports(g, r, 3)
        assert f.size_in("gravity") == (3, 1)
        for port, expected in value(g, x).items():
            assert relative(value(f, x)[port], expected) < 1e-9, (method, port)
        tried += 1
    assert tried >= 2


@pytest.mark.sample("inverse_dynamics-small floating", "potential_energy-mimic")
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics", "bias", "gravity", "potential_energy"])
def test_derivative_by_gravity(quantity, name):
    """Of CasADi against central differences, exact as all is affine in gravity, and against the mass and the Jacobian
    of its centre: tau and h change by -m J^T, the energy by -m c^T, dv by M^-1 m J^T."""
    r = robot(name)
    f = od.function(r, quantity, gravity=True)
    x = random_ports(f, r, 5)
    symbols = [ca.MX.sym(n, *f.size_in(n)) for n in f.name_in()]
    y = ca.Function.call(f, symbols)[0]
    J = ca.Function("J", symbols, [ca.jacobian(y, symbols[-1])])(*(x[n] for n in f.name_in())).full()
    ends = [[f(**{**x, "gravity": GAMMA + s * e})[f.name_out()[0]].full() for s in (1, -1)] for e in np.eye(3)]
    assert relative(J, np.column_stack([(a - b) / 2 for a, b in ends])) < 1e-10
    moving = sum(p[0] for p in r.parameters.reshape(-1, 10))
    by_tau = -moving * od.function(r, "com_jacobian")(q=x["q"])["J"].full().T
    expected = {
        "potential_energy": lambda: -moving * od.function(r, "com")(q=x["q"])["c"].full().T,
        "forward_dynamics": lambda: -np.linalg.solve(od.function(r, "mass_matrix")(q=x["q"])["M"].full(), by_tau),
    }.get(quantity, lambda: by_tau)()
    assert relative(J, expected) < 1e-9


@pytest.mark.sample(1)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_with_analytic_derivatives(quantity):
    f = od.function(robot("small serial"), quantity, gravity=True, derivatives="analytic")
    assert max(od.check_derivatives(f, points=1).values()) < 1e-7


@pytest.mark.sample(1)
@pytest.mark.parametrize("seen", ["hybrid", "spatial"])
def test_with_other_options(seen):
    r = robot("small floating")
    options = {"representation": seen, "parameters": ("inertia", "armature"), "external_wrenches": True}
    f = od.function(r, "inverse_dynamics", gravity=True, **options)
    g = od.function(r.with_gravity(GAMMA), "inverse_dynamics", **options)
    assert f.name_in()[-2:] == ["params", "gravity"]
    x = random_ports(g, r, 2)
    assert relative(value(f, x)["tau"], g(**x)["tau"]) < 1e-11


@pytest.mark.parametrize("method", ["ad_jet", "ad_jet_cse", "ad_via_inverse", "ad_taylor"])
def test_parameters_are_symbols_for_these_too(method):
    r = robot("small serial")
    f = od.function(r, "forward_dynamics", order=1, method=method, parameters="symbolic")
    x = random_ports(f, r, 1) | {"params": r.parameters}
    g = od.function(r, "forward_dynamics", order=1)
    assert relative(f(**x)["d2v"], g(**{n: x[n] for n in g.name_in()})["d2v"]) < 1e-10


LOOPS = ("inverse_dynamics", "forward_dynamics", "bias", "gravity", "potential_energy", "inverse_dynamics_partials")


@pytest.mark.sample("inverse_dynamics", "forward_dynamics")
@pytest.mark.parametrize("quantity", LOOPS)
def test_of_robots_with_loops(quantity):
    r = od.robots.four_bar()
    f, g = od.function(r, quantity, gravity=True), od.function(r.with_gravity(GAMMA), quantity)
    rng = np.random.default_rng(0)
    x = {n: rng.normal(size=g.size_in(n)) for n in g.name_in()}
    x["q"] = np.array(r.home)[list(r.rows("q", r.independent))]
    for port, expected in g(**x).items():
        assert relative(value(f, x)[port], expected) < 1e-10, port


def test_of_what_does_not_know_gravity():
    with pytest.raises(UnknownName, match="option of 'mass_matrix'.*'gravity'"):
        od.function(robot("small serial"), "mass_matrix", gravity=True)
    with pytest.raises(od.errors.ShapeError, match="gravity is 9.81, expected True or False"):
        od.function(robot("small serial"), "gravity", gravity=9.81)
