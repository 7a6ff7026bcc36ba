"""Matrices of the equations of motion: what they must satisfy, whatever method makes them."""

from itertools import pairwise
from math import comb

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import OrderError
from oc_dyn.inverse_dynamics.system_matrices import SystemMatrices
from oc_dyn.lie.time_derivatives import time_derivatives
from oc_dyn.model.canonical import canonical
from oc_dyn.registry import get_method

ADMISSIBLE = [m for m in od.methods("coriolis_matrix") if get_method("coriolis_matrix", m).admissible]
NOT_ADMISSIBLE = "closed_form"
SOME = ["branching", "floating", "spherical", "planar", "mimic", "transform"]


def numbers(r, order, seed=0):
    """{port: random numbers} for q, v .. d{order}v."""
    f = od.function(r, "bias", order=order, method="ad")
    return random_ports(f, r, seed)


def evaluate(r, quantity, order, ports, method=None):
    """{port: array} of a quantity, in order; of the ports given it takes those it knows."""
    f = od.function(r, quantity, order=order, method=method)
    found = f(**{n: ports[n] for n in f.name_in()})
    return {k: np.array(found[k]) for k in f.name_out()}


def difference_from_skew(dM, C):
    return np.abs(dM - C - C.T).max() / max(1.0, np.abs(dM).max())


# -- Coriolis matrices ----------------------------------------------------------------------------------------


@pytest.mark.sample("serial", "helical")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_admissible_coriolis_matrices(name):
    """dM/dt - 2 C is skew, and so are its time derivatives."""
    r = robot(name)
    x = numbers(r, 2)
    M = evaluate(r, "mass_matrix", 2, x, "jacobian_sum")
    for method in ADMISSIBLE:
        if method == "composite":
            continue  # order 0 alone, below
        C = evaluate(r, "coriolis_matrix", 1, x, method)
        assert difference_from_skew(M["dM"], C["C"]) < 1e-12, method
        assert difference_from_skew(M["d2M"], C["dC"]) < 1e-12, method
    C = evaluate(r, "coriolis_matrix", 0, x, "composite")
    assert difference_from_skew(M["dM"], C["C"]) < 1e-12


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_coriolis_matrix_of_the_closed_form_is_not_admissible(name):
    """It is off by the symmetric sum over bodies of J^T (ad(V)^T M + M ad(V)) J."""
    r = robot(name)
    x = numbers(r, 1)
    C = evaluate(r, "coriolis_matrix", 0, x, NOT_ADMISSIBLE)["C"]
    dM = evaluate(r, "mass_matrix", 1, x, "jacobian_sum")["dM"]
    assert difference_from_skew(dM, C) > 1e-2
    if not r.features & {"spherical", "planar", "free", "transform"}:  # where J' = -A a J holds
        q, v = ca.SX(x["q"].ravel()), ca.SX(x["v"])
        s = SystemMatrices(canonical(r), q, [v])
        lost = s.J().T @ (s.b().T @ s.inertia + s.inertia @ s.b()) @ s.J()
        assert relative(ca.evalf(ca.densify(lost)), dM - C - C.T) < 1e-12


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_christoffel_symbols(name):
    """The one symmetric connection of the mass matrix: by composite bodies and by AD, entry by entry."""
    r = robot(name)
    x = numbers(r, 0)
    composite, ad = (evaluate(r, "coriolis_matrix", 0, x, m)["C"] for m in ("composite", "ad"))
    assert relative(composite, ad) < 1e-12


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_body_and_spatial_sums_are_the_same_matrix(name):
    r = robot(name)
    x = numbers(r, 1)
    body, spatial = (evaluate(r, "coriolis_matrix", 1, x, m) for m in ("jacobian_sum", "spatial_admissible"))
    assert relative(body["C"], spatial["C"]) < 1e-12
    assert relative(body["dC"], spatial["dC"]) < 1e-11


@pytest.mark.few(40)
@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("coriolis_matrix"))
@pytest.mark.parametrize("name", list(ROBOTS))
def test_coriolis_gravity_bias(name, method):
    """C v + g = h, which is the torque without acceleration; without velocity it is g."""
    r = robot(name)
    x = numbers(r, 0)
    C = evaluate(r, "coriolis_matrix", 0, x, method)["C"]
    inverse = od.function(r, "inverse_dynamics", method="recursive_spatial")
    held, moved = inverse(q=x["q"], v=0, dv=0)["tau"], inverse(q=x["q"], v=x["v"], dv=0)["tau"]
    for _, f in functions_of(r, "gravity", 0):
        assert relative(f(q=x["q"])["g"], held) < 1e-12
    for _, f in functions_of(r, "bias", 0):
        assert relative(f(q=x["q"], v=x["v"])["h"], moved) < 1e-12
        assert relative(C @ x["v"] + np.array(held), f(q=x["q"], v=x["v"])["h"]) < 1e-12


def test_two_links_by_hand():
    """Textbook formulas of a planar arm with two links, moving in the vertical plane x, z; q = 0 is along x."""
    m1, m2, l1, c1, c2, I1, I2 = 1.3, 0.7, 0.6, 0.25, 0.35, 0.02, 0.03
    b = od.RobotBuilder("two")
    b.add_link("base")
    turned = {"axis": (0, -1, 0)}
    b.add_body("one", "revolute", "base", mass=m1, com=(c1, 0, 0), inertia=np.eye(3) * I1, **turned)
    b.add_body("two", "revolute", "one", mass=m2, com=(c2, 0, 0), inertia=np.eye(3) * I2, xyz=(l1, 0, 0), **turned)
    r = b.build()
    (q1, q2), (v1, v2) = (0.4, -0.9), (1.1, 0.6)
    k = m2 * l1 * c2
    M11 = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2) + 2 * k * np.cos(q2)
    M12, M22 = I2 + m2 * c2**2 + k * np.cos(q2), I2 + m2 * c2**2
    s = -k * np.sin(q2)
    C = np.array([[s * v2, s * (v1 + v2)], [-s * v1, 0]])
    g2 = 9.81 * m2 * c2 * np.cos(q1 + q2)
    g = np.array([[9.81 * (m1 * c1 + m2 * l1) * np.cos(q1) + g2], [g2]])
    x = {"q": np.array([q1, q2]), "v": np.array([[v1], [v2]])}
    for m in od.methods("mass_matrix"):
        assert relative(evaluate(r, "mass_matrix", 0, x, m)["M"], [[M11, M12], [M12, M22]]) < 1e-14, m
    for m in ("composite", "ad", "ad_composite"):
        assert relative(evaluate(r, "coriolis_matrix", 0, x, m)["C"], C) < 1e-14, m
    for m in od.methods("coriolis_matrix"):
        assert relative(evaluate(r, "coriolis_matrix", 0, x, m)["C"] @ x["v"], C @ x["v"]) < 1e-14, m
    for m in od.methods("gravity"):
        assert relative(evaluate(r, "gravity", 0, x, m)["g"], g) < 1e-14, m
    for m in od.methods("bias"):
        assert relative(evaluate(r, "bias", 0, x, m)["h"], C @ x["v"] + g) < 1e-14, m


# -- time derivatives of the system matrices -------------------------------------------------------------------


def along(r, expression, order, q, V, values):
    """Arrays of derivatives 0..order of an expression along the motion, by AD."""
    flow = [(q, r.configuration_rate(q, V[0])), *pairwise(V)]
    derivatives = time_derivatives(ca.vec(ca.densify(expression)), order, flow, cse=True)
    f = ca.Function("f", [q, *V], derivatives)
    return [np.array(x).reshape(expression.shape, order="F") for x in f.call(values)]


@pytest.mark.sample("branching")
@pytest.mark.parametrize("name", SOME)
def test_derivatives_of_system_matrices(name):
    """A^(n) (39), J^(n) (41), V^(n) (42), M^(n) (43), C^(n) (44), (45), g^(n) (47) against AD along the motion."""
    r, order = robot(name), 2
    x = numbers(r, order + 1)
    values = [ca.DM(x[k]) for k in x]
    q, V = ca.SX.sym("q", r.nq), [ca.SX.sym("v", r.nv) for _ in range(order + 2)]
    s = SystemMatrices(canonical(r), q, V)
    for quantity in (s.A, s.U, s.a, s.J, s.V, s.b, s.M, s.block_coriolis, s.C, s.g):
        expected = along(r, quantity(0), order, q, V, values)
        f = ca.Function("f", [q, *V], [ca.densify(quantity(n)) for n in range(order + 1)])
        for n, got in enumerate(f.call(values)):
            assert relative(got, expected[n]) < 1e-11, (quantity.__name__, n)


@pytest.mark.parametrize("name", SOME)
def test_system_matrices_by_their_definition(name):
    """Blocks of A are adjoints between bodies on a path, and no entries elsewhere; A' = A a - A a A (27)."""
    r = robot(name)
    x = numbers(r, 1)
    model = canonical(r)
    q, v = ca.SX.sym("q", r.nq), ca.SX.sym("v", r.nv)
    s = SystemMatrices(model, q, [v])
    A = s.A()
    for i in model.bodies:
        for j in model.bodies:
            block = A[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j]
            assert (block.nnz() > 0) == (j in model.support(i))
    f = ca.Function("f", [q, v], [ca.densify(y) for y in (A, s.U(), s.A(1), A @ s.a() - A @ s.a() @ A)])
    A, U, A1, expected = (np.array(y) for y in f(x["q"], x["v"]))
    for i in model.bodies:
        for j in model.support(i):
            seen = np.linalg.solve(U[6 * j - 6 : 6 * j].T, U[6 * i - 6 : 6 * i].T).T  # U_i U_j^-1
            assert relative(A[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j], seen) < 1e-13
    assert relative(A1, expected) < 1e-13


@pytest.mark.parametrize("name", ["branching", "spherical"])
def test_rate_of_the_system_jacobian(name):
    """J' = -A a J (24) is for joints of one velocity; on the velocities themselves it acts right for all."""
    r = robot(name)
    x = numbers(r, 0)
    q, v = ca.SX(x["q"].ravel()), ca.SX(x["v"])
    s = SystemMatrices(canonical(r), q, [v])
    printed, right = (np.array(ca.evalf(ca.densify(y))) for y in (-s.A() @ s.a() @ s.J(), s.J(1)))
    assert relative(printed @ x["v"], right @ x["v"]) < 1e-13
    assert (relative(printed, right) < 1e-13) == (name == "branching")


# -- coefficients of the differentiated equations of motion ---------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("eom_coefficients"))
@pytest.mark.parametrize("name", ["floating", "spherical", "mimic", "transform"])
def test_coefficients_give_the_derivative_of_the_torque(name, method):
    """tau^(n) - g^(n) = sum_k P_k q^(k) (37)."""
    r = robot(name)
    for n in (0, 1 if name == "transform" else 2):
        x = numbers(r, n + 1)
        P = evaluate(r, "eom_coefficients", n, x, method)
        assert list(P) == [f"P{k}" for k in range(1, n + 3)]
        V = [x[k] for k in x if k != "q"]
        left = evaluate(r, "inverse_dynamics", n, x)[od.ports(r, "inverse_dynamics", n)[1][n].name]
        left = left - evaluate(r, "gravity", n, x)[od.ports(r, "gravity", n)[1][n].name]
        assert relative(sum(P[f"P{k}"] @ V[k - 1] for k in range(1, n + 3)), left) < 1e-11


@pytest.mark.sample("closed_form-closed_form")
@pytest.mark.parametrize("method, coriolis", [("closed_form", "closed_form"), ("jacobian_sum", "jacobian_sum")])
def test_each_coefficient(method, coriolis):
    """P_k of order 2 is 2 M' + C and so on (36), with M and C of the same method differentiated by AD."""
    r = robot("floating")
    n, x = 2, numbers(robot("floating"), 2)
    values = [ca.DM(x[k]) for k in x]
    q, V = ca.SX.sym("q", r.nq), [ca.SX.sym("v", r.nv) for _ in range(n + 1)]
    M = along(r, od.function(r, "mass_matrix")(q=q)["M"], n, q, V, values)
    C = along(r, od.function(r, "coriolis_matrix", method=coriolis)(q=q, v=V[0])["C"], n, q, V, values)
    P = evaluate(r, "eom_coefficients", n, x, method)
    expected = {"P1": C[2], "P2": M[2] + 2 * C[1], "P3": 2 * M[1] + C[0], "P4": M[0]}
    for k, value in expected.items():
        assert relative(P[k], value) < 1e-12, k


# -- the equations of motion in closed form ----------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["floating", "free", "serial"])
@pytest.mark.parametrize("method", ["spatial_admissible", "closed_form"])
def test_equations_of_motion_and_their_derivative(name, method):
    """Orders 0 and 1 from the recursions, collected (Ali et al. 2026, Proposition 1), and order 2:
    tau = M v' + C v + g,  tau' = M v'' + (M' + C) v' + C' v + g', and so on by Leibniz."""
    r = robot(name)
    x = numbers(r, 3)
    v, dv, d2v, d3v = (x[k] for k in ("v", "dv", "d2v", "d3v"))
    M, dM, d2M = evaluate(r, "mass_matrix", 2, x, "closed_form").values()
    C, dC, d2C = evaluate(r, "coriolis_matrix", 2, x, method).values()
    g, dg, d2g = evaluate(r, "gravity", 2, x, "jacobian_sum").values()
    tau = evaluate(r, "inverse_dynamics", 2, x, "recursive_spatial")
    assert relative(M @ dv + C @ v + g, tau["tau"]) < 1e-12
    assert relative(M @ d2v + (dM + C) @ dv + dC @ v + dg, tau["dtau"]) < 1e-12
    last = M @ d3v + (2 * dM + C) @ d2v + (d2M + 2 * dC) @ dv + d2C @ v + d2g
    assert relative(last, tau["d2tau"]) < 1e-11


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("bias"))
def test_derivatives_of_the_bias(method):
    """h^(n) = sum_k C(n,k) C^(n-k) v^(k) + g^(n)."""
    r, top = robot("floating"), get_method("bias", method).max_order
    x = numbers(r, 2)
    C = list(evaluate(r, "coriolis_matrix", 2, x, "spatial_admissible").values())
    g = list(evaluate(r, "gravity", 2, x, "closed_form").values())
    v = [x[k] for k in x if k != "q"]
    for n, h in enumerate(evaluate(r, "bias", 2 if top is None else min(2, top), x, method).values()):
        assert relative(sum(comb(n, k) * C[n - k] @ v[k] for k in range(n + 1)) + g[n], h) < 1e-12


@pytest.mark.parametrize("method", ["second_order_body", "second_order_closed_form"])
def test_methods_written_out_stop_at_order_two(method):
    with pytest.raises(OrderError, match="up to order 2, got order 3"):
        od.function(robot("serial"), "inverse_dynamics", order=3, method=method)
    with pytest.raises(OrderError, match="transform"):
        od.function(robot("transform"), "inverse_dynamics", order=1, method=method)
