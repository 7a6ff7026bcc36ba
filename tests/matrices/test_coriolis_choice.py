"""Which Coriolis matrix comes out: one default for every quantity, others by one option, and what each promises."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import OrderError, UnknownName
from oc_dyn.registry import CORIOLIS, get, get_method

SOME = ["serial", "floating", "spherical", "mimic", "transform"]
LARGE = pytest.param("floating", marks=pytest.mark.slow)  # takes long to build


@cache
def state(name):
    r = robot(name)
    rng = np.random.default_rng(7)
    return r.random_configuration(7), *rng.normal(size=(4, r.nv))


def coriolis(r, q, v, **which):
    return np.array(od.function(r, "coriolis_matrix", **which)(q=q, v=v)["C"])


def of(coriolis):
    """Methods of coriolis_matrix that give this one."""
    return [m for m in od.methods("coriolis_matrix") if coriolis in get_method("coriolis_matrix", m).coriolis]


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("coriolis_matrix"))
@pytest.mark.parametrize("name", list(ROBOTS))
def test_methods_are_admissible_where_they_say_so_and_only_there(name, method):
    """C + C^T against the time derivative of M."""
    r, (q, v, *_) = robot(name), state(name)
    dM = np.array(od.function(r, "mass_matrix", order=1)(q=q, v=v)["dM"])
    C = coriolis(r, q, v, method=method)
    error = relative(C + C.T, dM)
    if get_method("coriolis_matrix", method).admissible:
        assert error < 1e-11
    else:
        assert error > 1e-3


@pytest.mark.slow
def test_of_the_panda_as_the_readme_says():
    panda = od.robots.panda()
    q, v = panda.random_configuration(0), np.ones(7)
    dM = np.array(od.function(panda, "mass_matrix", order=1)(q=q, v=v)["dM"])
    off = {m: relative(*(lambda C: (C + C.T, dM))(coriolis(panda, q, v, method=m))) for m in CORIOLIS_METHODS}
    assert {m for m, x in off.items() if x > 1e-9} == {"closed_form"}
    assert off["closed_form"] > 0.01


CORIOLIS_METHODS = od.methods("coriolis_matrix")


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SOME)
def test_methods_of_one_choice_give_one_matrix(name):
    r, (q, v, *_) = robot(name), state(name)
    for choice in CORIOLIS:
        expected = coriolis(r, q, v, coriolis=choice)
        for method in of(choice):
            assert relative(coriolis(r, q, v, method=method), expected) < 1e-11, (choice, method)


@pytest.mark.parametrize("name", ["serial", "floating", "spherical"])
def test_choices_differ_in_the_matrix_and_not_in_the_torque(name):
    r, (q, v, *_) = robot(name), state(name)
    one = coriolis(r, q, v)
    for choice in ("garofalo", "kumar_mueller"):
        other = coriolis(r, q, v, coriolis=choice)
        assert relative(other, one) > 1e-3, choice
        assert relative(other @ v, one @ v) < 1e-12, choice


@pytest.mark.sample("eom_coefficients", "slotine_li_regressor", "dynamic_matrices")
@pytest.mark.parametrize("quantity", [q for q in od.quantities("robot") if "coriolis" in get(q).options])
def test_every_quantity_with_such_a_matrix_starts_from_christoffel(quantity):
    r = robot("serial")
    f, g = od.function(r, quantity), od.function(r, quantity, coriolis="christoffel")
    x = random_ports(f, r)
    got, expected = f(**x), g(**x)
    assert all(relative(got[k], expected[k]) == 0 for k in expected)
    other = od.function(r, quantity, coriolis="garofalo")(**x)
    assert any(relative(other[k], expected[k]) > 1e-6 for k in expected)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("matrix_partials"))
@pytest.mark.parametrize("choice", [None, "garofalo"])
@pytest.mark.parametrize("name", ["serial", LARGE, "spherical", "mimic", "transform"])
def test_partials_are_those_of_the_matrix(name, choice, method):
    """dC_dq and dC_dv of a choice, the default one included, by central differences of coriolis_matrix."""
    r, (q, v, *_) = robot(name), state(name)
    found = od.function(r, "matrix_partials", method=method, coriolis=choice)(q=q, v=v)
    h, n = 1e-5, r.nv
    by_q, by_v = np.zeros((n * n, n)), np.zeros((n * n, n))
    for k, e in enumerate(h * np.eye(n)):
        ends = [coriolis(r, r.integrate(q, x), v, coriolis=choice) for x in (e, -e)]
        by_q[:, k] = (ends[0] - ends[1]).ravel(order="F") / (2 * h)
        ends = [coriolis(r, q, v + x, coriolis=choice) for x in (e, -e)]
        by_v[:, k] = (ends[0] - ends[1]).ravel(order="F") / (2 * h)
    assert relative(found["dC_dq"], by_q) < 1e-7
    assert relative(found["dC_dv"], by_v) < 1e-8


@pytest.mark.sample(1)
@pytest.mark.parametrize("choice", [None, "garofalo"])
@pytest.mark.parametrize("name", ["serial", LARGE, "spherical", "mimic", "transform"])
def test_regressor_is_that_of_the_matrix(name, choice):
    """Ys theta = M dvr + C vr + g for vr that is not v; the armature left out."""
    r, (q, v, vr, dvr, _) = robot(name), state(name)
    M = np.array(od.function(r, "mass_matrix")(q=q)["M"]) - armature(r)
    g = np.array(od.function(r, "gravity")(q=q)["g"]).ravel()
    expected = M @ dvr + coriolis(r, q, v, coriolis=choice) @ vr + g
    for method in od.methods("slotine_li_regressor"):
        Ys = od.function(r, "slotine_li_regressor", method=method, coriolis=choice)(q=q, v=v, vr=vr, dvr=dvr)["Ys"]
        assert relative(np.array(Ys) @ r.parameters, expected) < 1e-12, method


def armature(r):
    """(nv, nv) what rotors add to the mass matrix; followers count with the square of their rule."""
    out = np.zeros(r.nv)
    for b in r.bodies:
        j, scale = b.joint, b.joint.mimic.multiplier if b.joint.mimic else 1.0
        out[j.v_index : j.v_index + j.nv] += scale**2 * j.armature
    return np.diag(out)


@pytest.mark.sample("serial-None", "serial-garofalo")
@pytest.mark.parametrize("choice", [None, "garofalo"])
@pytest.mark.parametrize("name", ["serial", LARGE, "transform"])
def test_parameter_partials_are_those_of_the_matrix(name, choice):
    """M, C and g are linear in the parameters."""
    r, (q, v, *_) = robot(name), state(name)
    for method in od.methods("matrix_parameter_partials"):
        found = od.function(r, "matrix_parameter_partials", method=method, coriolis=choice)(q=q, v=v)
        C = np.array(found["dC_dparams"]) @ r.parameters
        assert relative(C.reshape((r.nv, r.nv), order="F"), coriolis(r, q, v, coriolis=choice)) < 1e-12, method


@pytest.mark.parametrize("name", ["serial", "floating"])
def test_regressor_of_christoffel_at_higher_orders(name):
    """Its rate against differences along a motion at constant rates."""
    r, (q, v, vr, dvr, _) = robot(name), state(name)
    f = od.function(r, "slotine_li_regressor", order=1)
    at = {"v": v, "dv": 0 * v, "vr": vr, "dvr": dvr, "d2vr": 0 * v}
    h = 1e-5
    ends = [f(**{**at, "q": r.integrate(q, s * v), "vr": vr + s * dvr})["Ys"].full() for s in (h, -h)]
    assert relative((ends[0] - ends[1]) / (2 * h), f(**at, q=q)["dYs"].full()) < 1e-8


@pytest.mark.parametrize("quantity", od.quantities("robot"))
def test_methods_say_which_matrix_they_give(quantity):
    """The option and the fact go together, and the table and the ports show them."""
    told = [bool(get_method(quantity, m).coriolis) for m in od.methods(quantity)]
    assert all(told) if "coriolis" in get(quantity).options else not any(told)


def test_the_table_tells():
    rows = [x for x in od.table(markdown=True).splitlines() if x.startswith("| coriolis_matrix |")]
    told = {x.split("|")[2].split()[0]: "not admissible" not in x for x in rows}
    assert told == {m: m != "closed_form" for m in od.methods("coriolis_matrix")}
    meanings = {p.name: p.meaning for p in od.ports(robot("serial"), "matrix_partials")[1]}
    assert "Christoffel" in meanings["dC_dq"]
    assert "Christoffel" not in meanings["dM_dq"]
    other = {p.name: p.meaning for p in od.ports(robot("serial"), "matrix_partials", coriolis="garofalo")[1]}
    assert "Garofalo" in other["dC_dv"]


def test_what_cannot_be_had_is_refused():
    r = robot("serial")
    with pytest.raises(OrderError, match="composite gives the Coriolis matrix christoffel, not garofalo.*jacobian_sum"):
        od.function(r, "coriolis_matrix", method="composite", coriolis="garofalo")
    with pytest.raises(OrderError, match="kumar_mueller"):
        od.function(r, "slotine_li_regressor", coriolis="kumar_mueller")
    with pytest.raises(UnknownName, match="christoffel"):
        od.function(r, "matrix_partials", coriolis="christofel")


def test_symbols_keep_the_choice():
    r = robot("serial")
    q, v = ca.SX.sym("q", r.nq), ca.SX.sym("v", r.nv)
    C = od.function(r, "dynamic_matrices", coriolis="garofalo")(q=q, v=v)["C"]
    at = state("serial")[:2]
    assert relative(ca.Function("C", [q, v], [C])(*at), coriolis(r, *at, coriolis="garofalo")) < 1e-12
