"""Friction of all joints of robots with loops, any order: forward and hybrid dynamics undo inverse dynamics."""

import functools

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative

import oc_dyn as od

SLOW = pytest.mark.slow
ROD = {"mass": 0.5, "com": (0.2, 0.01, 0), "inertia": (1e-3, 0, 0, 0.02, 0, 0.02)}


@functools.cache
def rough(floating=False):
    """A four-bar linkage whose joints rub, each in its own way, and a slide whose position follows its crank."""
    b = od.RobotBuilder("rough")
    b.add_link("frame", mass=2.0, com=(0.3, 0, 0.1), inertia=(0.1, 0.01, 0, 0.2, 0, 0.2))
    hinge = {"axis": (0, 1, 0), **ROD}
    b.add_body("crank", "revolute", "frame", joint="a", damping=0.2, friction=0.3, **hinge)
    b.add_body("coupler", "revolute", "crank", joint="b", xyz=(0.3, 0, 0), damping=0.5, **hinge)
    b.add_body("rocker", "revolute", "frame", joint="c", xyz=(0.7, 0, 0), friction=0.4, **hinge)
    b.add_body("slide", "prismatic", "frame", joint="s", axis=(0, 0, 1), damping=0.7, friction=0.1, **ROD)
    b.add_body("hand", "revolute", "coupler", joint="h", xyz=(0.8, 0, 0), damping=0.1, friction=0.2, **hinge)
    b.close_loop("d", "coupler", "rocker", xyz_a=(0.8, 0, 0), xyz_b=(0.6, 0, 0), axis=(0, 1, 0), independent=("a",))
    b.couple("s", ("a",), lambda x: 0.1 * ca.sin(x[0]))
    return b.build(floating_base=floating, start={"a": -1.0, "b": 0.5, "c": -1.2})


def motion(r, order):
    """Ports of inverse dynamics with friction near where the robot was assembled, slow enough for friction to bend."""
    f = od.function(r, "inverse_dynamics", order=order, friction=True)
    x = random_ports(f, r, 5)
    rows = r.rows("q", r.independent)
    x["q"] = np.array(r.home).ravel()[rows]
    x["v"] = 0.03 * x["v"]
    tau = {k: np.array(y) for k, y in f(**x).items()}
    return x, tau


@pytest.mark.parametrize("order", [pytest.param(0, marks=SLOW), 1, pytest.param(2, marks=SLOW)])
@pytest.mark.parametrize("floating", [False, pytest.param(True, marks=SLOW)])
def test_forward_dynamics_undoes_inverse_dynamics(floating, order):
    r = rough(floating)
    x, tau = motion(r, order)
    found = od.function(r, "forward_dynamics", order=order, friction=True)(q=x["q"], v=x["v"], **tau)
    for port, value in found.items():
        assert relative(np.array(value), x[port]) < 1e-8, port
    without = od.function(r, "forward_dynamics", order=order)(q=x["q"], v=x["v"], **tau)
    assert all(relative(np.array(without[port]), x[port]) > 1e-3 for port in found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", [pytest.param(0, marks=SLOW), 1, pytest.param(2, marks=SLOW)])
@pytest.mark.parametrize("prescribed", [(), ("h",), ("a", "h")])
def test_hybrid_dynamics_belongs_to_inverse_dynamics(prescribed, order):
    r = rough()
    x, tau = motion(r, order)
    known = [k for k, j in enumerate(r.independent) if j in prescribed]
    others = [k for k in range(r.nv) if k not in known]
    given = {f"{p}_p": x[p][known] for p in x if p not in ("q", "v")} | {f"{p}_f": y[others] for p, y in tau.items()}
    found = od.function(r, "hybrid_dynamics", order=order, friction=True, prescribed=prescribed)(
        q=x["q"], v=x["v"], **given
    )
    for port, value in {**{p: x[p] for p in x if p not in ("q", "v")}, **tau}.items():
        assert relative(np.array(found[port]), value) < 1e-8, port


@SLOW
def test_registered_derivatives_are_its_own():
    r = rough()
    f = od.function(r, "forward_dynamics", order=1, friction=True, derivatives="analytic")
    x, tau = motion(r, 1)
    given = [x["q"], x["v"], tau["tau"], tau["dtau"]]
    symbols = [ca.MX.sym(n, *f.size_in(n)) for n in f.name_in()]
    J = [ca.Function("J", symbols, [ca.jacobian(ca.veccat(*ca.Function.call(g, symbols)), ca.veccat(*symbols))])(*given)
         for g in (f, f.twin)]  # fmt: skip
    assert relative(*map(np.array, J)) < 1e-8
