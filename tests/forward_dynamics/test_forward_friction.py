"""Friction of forward dynamics above order 0: a function of v, so that its rates follow from the accelerations."""

import numpy as np
import pytest
from samples import random_ports, relative

import oc_dyn as od


def rough(kinds, **options):
    """A chain whose joints have damping and, all but the first, Coulomb friction."""
    b, rng = od.RobotBuilder("rough"), np.random.default_rng(4)
    b.add_link("link0", 2.0, (0, 0, 0.1), (0.2, 0, 0, 0.3, 0, 0.4))
    for k, kind in enumerate(kinds):
        b.add_body(
            f"link{k + 1}", kind, f"link{k}", mass=1.0 + k, com=rng.normal(size=3) / 5,
            inertia=(0.2, 0.01, 0.02, 0.25, 0.03, 0.3), xyz=rng.normal(size=3) / 3, damping=0.3 + 0.2 * k,
            friction=0.4 * k, **({} if kind == "spherical" else {"axis": rng.normal(size=3)}),
        )  # fmt: skip
    return b.build(**options)


BUILT = {
    "chain": rough(["revolute", "prismatic", "revolute"]),
    "floating": rough(["revolute", "revolute"], floating_base=True),
    "spherical": rough(["revolute", "spherical"]),
}


def motion(r, order, **options):
    """Ports of inverse dynamics with friction and what comes out, velocities near those where friction bends."""
    f = od.function(r, "inverse_dynamics", order=order, friction=True, **options)
    x = random_ports(f, r, 5)
    x["v"] = 0.03 * x["v"]
    return x, {k: np.array(y) for k, y in f(**x).items()}


@pytest.mark.sample("taylor-chain", "articulated_spatial-floating")
@pytest.mark.parametrize("name", list(BUILT))
@pytest.mark.parametrize("method", od.methods("forward_dynamics"))
def test_it_undoes_inverse_dynamics(method, name):
    r = BUILT[name]
    order = 2 if od.registry.get_method("forward_dynamics", method).refusal(r, 2) is None else 0
    x, tau = motion(r, order)
    f = od.function(r, "forward_dynamics", order=order, method=method, friction=True)
    for port, value in f(q=x["q"], v=x["v"], **tau).items():
        assert relative(np.array(value), x[port]) < 1e-8, port


def test_with_wrenches_another_damping_and_representation():
    r = BUILT["floating"]
    damping = 2.0 * r.parameter_values("viscous")
    options = {"external_wrenches": True, "representation": "hybrid", "parameters": "viscous", "gravity": True}
    g = od.function(r, "inverse_dynamics", order=1, friction=True, **options)
    x = random_ports(g, r, 5) | {"params": damping, "gravity": [1.0, 2.0, -3.0]}
    f = od.function(r, "forward_dynamics", order=1, friction=True, **options)
    values = {**x, **g(**x)}
    for port, value in f(**{n: values[n] for n in f.name_in()}).items():
        assert relative(np.array(value), x[port]) < 1e-9, port


def test_it_is_hybrid_dynamics_with_nothing_prescribed():
    r = BUILT["chain"]
    x, tau = motion(r, 1)
    f = od.function(r, "forward_dynamics", order=1, friction=True)
    other = od.function(r, "hybrid_dynamics", order=1, friction=True, prescribed=())
    inputs = {"q": x["q"], "v": x["v"]}
    found = f(**inputs, **tau)
    expected = other(**inputs, tau_f=tau["tau"], dtau_f=tau["dtau"], dv_p=np.zeros(0), d2v_p=np.zeros(0))
    for port, value in found.items():
        assert relative(np.array(value), np.array(expected[port])) < 1e-11, port


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BUILT))
def test_registered_derivatives_are_its_own(name):
    f = od.function(BUILT[name], "forward_dynamics", order=1, friction=True, derivatives="analytic")
    assert max(od.check_derivatives(f, points=1).values()) < 1e-6
