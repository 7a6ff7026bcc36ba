"""Identities that hold whatever the implementation: energy, symmetry, inverses, time derivatives by differences."""

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, SMALL, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.registry import get_method

METHODS = [m for m in od.methods("inverse_dynamics")]


@pytest.mark.sample("serial", "helical")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_forward_after_inverse(name):
    r = robot(name)
    f = od.function(r, "inverse_dynamics", external_wrenches=True)
    ports = random_ports(f, r)
    tau = f(**ports)["tau"]
    for method, forward in functions_of(r, "forward_dynamics", 0, external_wrenches=True):
        dv = forward(q=ports["q"], v=ports["v"], tau=tau, w_ext=ports["w_ext"])["dv"]
        assert relative(dv, ports["dv"]) < 1e-10, method


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["taylor", "articulated_spatial", "closed_form", "ad_via_inverse"])
@pytest.mark.parametrize("name", list(SMALL))
def test_forward_after_inverse_at_every_order(name, method):
    r, order = robot(name), 5
    f = od.function(r, "inverse_dynamics", order=order)
    ports = random_ports(f, r)
    tau = f(**ports)
    back = od.function(r, "forward_dynamics", order=order, method=method)(q=ports["q"], v=ports["v"], **tau)
    for port, value in back.items():
        assert relative(value, ports[port]) < 1e-9, port


@pytest.mark.parametrize("name", list(ROBOTS))
def test_inverse_dynamics_is_affine_in_acceleration(name):
    r = robot(name)
    f = od.function(r, "inverse_dynamics")
    x = random_ports(f, r)
    M = np.array(od.function(r, "mass_matrix")(q=x["q"])["M"])
    h = np.array(f(q=x["q"], v=x["v"], dv=0)["tau"])
    assert relative(M @ x["dv"] + h, f(**x)["tau"]) < 1e-12
    assert np.array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0


def kinetic(r, q, v):
    M = np.array(od.function(r, "mass_matrix", method="jacobian_sum")(q=q)["M"])
    return 0.5 * v @ M @ v


def potential(r, q):
    """Gravity's potential from the poses of the bodies alone."""
    energy = 0.0
    for b in r.bodies:
        C = np.array(od.function(r, "frame_pose", frame=b.name)(q=q)["C"])
        energy -= b.inertia.mass * r.gravity @ (C[:3, :3] @ b.inertia.com + C[:3, 3])
    return energy


@pytest.mark.parametrize("name", list(ROBOTS))
def test_energy_rate_is_power(name):
    r = robot(name)
    rng = np.random.default_rng(3)
    q, v, dv = r.random_configuration(3), rng.normal(size=r.nv), rng.normal(size=r.nv)
    tau = np.array(od.function(r, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"]).ravel()
    h = 1e-5

    def energy(t):
        qt = r.integrate(q, t * v + 0.5 * t**2 * dv)  # to second order in t
        vt = v + t * dv
        return kinetic(r, qt, vt) + potential(r, qt)

    assert (energy(h) - energy(-h)) / (2 * h) == pytest.approx(tau @ v, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", list(ROBOTS))
def test_gravity_torque_is_gradient_of_potential(name):
    r = robot(name)
    q = r.random_configuration(5)
    g = np.array(od.function(r, "inverse_dynamics")(q=q, v=0, dv=0)["tau"]).ravel()
    h = 1e-6
    slope = [
        (potential(r, r.integrate(q, h * e)) - potential(r, r.integrate(q, -h * e))) / (2 * h) for e in np.eye(r.nv)
    ]
    assert relative(slope, g) < 1e-7


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["branching", "floating", "spherical", "mimic"])
def test_derivatives_are_time_derivatives(name, method):
    """Order k + 1 is the central difference of order k along a motion with the given derivatives."""
    r = robot(name)
    top = get_method("inverse_dynamics", method).max_order
    order = 2 if top is None else min(2, top)
    f = od.function(r, "inverse_dynamics", order=order, method=method)
    x = random_ports(f, r)
    V = [x[n].ravel() for n in f.name_in()[1:]]
    h = 1e-4

    def at(t, steps=8):
        # fine steps on the manifold along the velocity polynomial: fourth-order midpoint (Magnus) steps
        q = x["q"]
        for i in range(steps):
            a, b = t * i / steps, t * (i + 1) / steps
            q = r.integrate(q, (b - a) * _poly(V, 0.5 * (a + b)))
        return f(q, *[_poly(V[k:], t) for k in range(len(V))])

    ahead, behind, here = at(h), at(-h), f(x["q"], *V)
    for k in range(order):
        slope = (np.array(ahead[k]) - np.array(behind[k])) / (2 * h)
        assert relative(slope, here[k + 1]) < 1e-5


def _poly(derivatives, t):
    total, factor = np.zeros_like(derivatives[0]), 1.0
    for k, d in enumerate(derivatives):
        total = total + factor * d
        factor *= t / (k + 1)
    return total


def test_wrench_adds_minus_jacobian_transposed():
    """A vertical 10 N at the tip of a horizontal 1 m arm takes 10 Nm off the torque."""
    b = od.RobotBuilder("arm")
    b.add_link("base")
    b.add_link("arm", mass=0.0)
    b.add_joint("hinge", "revolute", parent="base", child="arm", axis=(0, -1, 0))
    b.add_link("tip", mass=1.0, inertia=np.eye(3) * 0.01)
    b.add_joint("weld", "fixed", parent="arm", child="tip", xyz=(1, 0, 0))
    r = b.build()
    f = od.function(r, "inverse_dynamics", external_wrenches=True)
    w = np.array([[0, -1 * 10.0, 0, 0, 0, 10.0]]).T  # force 10 N up at (1, 0, 0): moment p x f
    free, pushed = f(q=0, v=0, dv=0, w_ext=0)["tau"], f(q=0, v=0, dv=0, w_ext=w)["tau"]
    assert float(free) == pytest.approx(9.81)
    assert float(pushed - free) == pytest.approx(-10.0)


def test_same_numbers_for_every_type():
    r = robot("serial")
    f = od.function(r, "inverse_dynamics", order=1)
    x = random_ports(f, r)
    expected = np.array(f(**x)["tau"])
    assert relative(f(**{k: ca.DM(v) for k, v in x.items()})["tau"], expected) == 0
    assert relative(f(*[v.ravel().tolist() for v in x.values()])[0], expected) == 0
    for kind in (ca.SX, ca.MX):
        symbols = {k: kind.sym(k, *v.shape) if v.ndim == 2 else kind.sym(k, v.size) for k, v in x.items()}
        g = ca.Function("g", list(symbols.values()), [f(**symbols)["tau"]])
        assert relative(g(*x.values()), expected) < 1e-13
