"""Torques of a reference motion: their Coriolis matrix is admissible, and all options count as in inverse dynamics."""

import numpy as np
import pytest
from samples import ROBOTS, SMALL, build, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import OrderError
from oc_dyn.registry import get_method

QUANTITY = "slotine_li_torque"
CHOICES = {m: get_method(QUANTITY, m).coriolis for m in od.methods(QUANTITY)}
SOME = ["prismatic", "serial", "floating", "spherical", "mimic", "transform"]


def state(r, seed=3):
    return random_ports(od.function(r, QUANTITY, order=3), r, seed)


def at(f, x):
    found = f(**{n: x[n] for n in f.name_in()})
    return [np.array(found[n]) for n in f.name_out()]


@pytest.mark.few(40)
@pytest.mark.sample("newton_euler-christoffel-prismatic", "recursive_body-garofalo-prismatic")
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("method, choice", [(m, c) for m, found in CHOICES.items() for c in found])
def test_its_coriolis_matrix_is_admissible(method, choice, name):
    """Column by column of C, through unit reference velocities: dM/dt = C + C^T, and C is that of coriolis_matrix."""
    r = robot(name)
    x = state(r)
    f = od.function(r, QUANTITY, method=method, coriolis=choice).map(2 * r.nv + 1)
    units = np.hstack([np.eye(r.nv), np.zeros((r.nv, r.nv + 1))])
    reference = {"vr": units, "dvr": np.roll(units, r.nv, 1)}
    found = np.array(f(q=x["q"], v=x["v"], **reference)["tau"])
    g = found[:, -1:]
    C, M = found[:, : r.nv] - g, found[:, r.nv : 2 * r.nv] - g
    assert relative(g, at(od.function(r, "gravity"), x)[0]) < 1e-11
    expected, rate = at(od.function(r, "mass_matrix", order=1), x)
    assert relative(M, expected) < 1e-11
    assert relative(C + C.T, rate) < 1e-11
    assert relative(C, at(od.function(r, "coriolis_matrix", coriolis=choice), x)[0]) < 1e-11


@pytest.mark.few(8)
@pytest.mark.sample("small prismatic")
@pytest.mark.parametrize("name", [*SMALL, *ROBOTS])
def test_it_is_inverse_dynamics_of_the_own_motion(name):
    """With time derivatives, wrenches and friction, whatever the method."""
    r, options = robot(name), {"external_wrenches": True, "friction": True}
    f = od.function(r, "inverse_dynamics", order=1, **options)
    x = random_ports(f, r, 5)
    x |= {"vr": x["v"], "dvr": x["dv"], "d2vr": x["d2v"]}
    for method in od.methods(QUANTITY):
        found = at(od.function(r, QUANTITY, order=1, method=method, **options), x)
        for y, expected in zip(found, at(f, x), strict=True):
            assert relative(y, expected) < 1e-11, method


@pytest.mark.sample("prismatic")
@pytest.mark.parametrize("name", SOME)
def test_it_is_the_regressor_times_the_parameters(name):
    """Rotors, which have no columns there, apart; and parameters that are symbols are those."""
    r = robot(name)
    x, rotors = state(r), r.parameter_values(("armature",))
    for choice in ("christoffel", "garofalo"):
        expected = at(od.function(r, "slotine_li_regressor", coriolis=choice), x)[0] @ r.parameters
        tau = at(od.function(r, QUANTITY, coriolis=choice), x)[0].ravel()
        assert relative(tau, expected + rotors * x["dvr"].ravel()) < 1e-11
        parts = ("inertia", "armature")
        f = od.function(r, QUANTITY, coriolis=choice, parameters=parts)
        assert relative(at(f, {**x, "params": r.parameter_values(parts)})[0].ravel(), tau) < 1e-11
        heavier = at(f, {**x, "params": 2 * r.parameter_values(parts)})[0].ravel()
        assert relative(heavier, 2 * tau) < 1e-11


def test_a_law_with_it_dissipates():
    """s = v - vr: with tau - K s on the joints s^T M s / 2 changes at the rate -s^T K s, friction and all."""
    r = build(["revolute"] * 3, seed=4, armature=True)
    x = state(r, 6)
    s = x["v"] - x["vr"]
    tau = at(od.function(r, QUANTITY), x)[0] - 3.0 * s
    dv = at(od.function(r, "forward_dynamics"), {**x, "tau": tau})[0]
    M, dM = at(od.function(r, "mass_matrix", order=1), x)
    rate = s.T @ M @ (dv - x["dvr"]) + 0.5 * s.T @ dM @ s
    assert relative(rate, -3.0 * s.T @ s) < 1e-12


@pytest.mark.slow
def test_time_derivatives_are_those_of_a_motion():
    """By central differences along q (+) h v, all else a polynomial in time."""
    r = robot("small floating")
    x, h = state(r, 7), 1e-5
    f = od.function(r, QUANTITY)

    def tau(t):
        v = x["v"] + t * x["dv"]
        q = r.integrate(x["q"].ravel(), (t * x["v"] + t**2 / 2 * x["dv"]).ravel())
        reference = {"vr": x["vr"] + t * x["dvr"] + t**2 / 2 * x["d2vr"], "dvr": x["dvr"] + t * x["d2vr"]}
        return at(f, {"q": q, "v": v, **reference})[0]

    rate = at(od.function(r, QUANTITY, order=1), x)[1]
    assert relative((tau(h) - tau(-h)) / (2 * h), rate) < 1e-7


def test_it_takes_hardly_more_than_inverse_dynamics():
    panda = od.robots.panda()
    count = od.function(panda, QUANTITY).n_instructions()
    assert count <= 781
    assert count < 0.4 * od.function(panda, QUANTITY, method="ad").n_instructions()


def test_matrices_that_are_not_admissible_are_refused():
    with pytest.raises(OrderError, match="methods that can|not kumar_mueller"):
        od.function(robot("serial"), QUANTITY, coriolis="kumar_mueller")
    with pytest.raises(OrderError, match="recursive_body"):
        od.function(robot("serial"), QUANTITY, method="newton_euler", coriolis="garofalo")
