"""Second derivatives of products with multipliers: differences of the adjoint, symmetry, what the convention says."""

import numpy as np
import pytest
from samples import ROBOTS, random_ports, relative, robot

import oc_dyn as od

STEP = 1e-5


def stacked(f, x):
    """All outputs of a Function, below each other."""
    out = f(**x)
    return np.vstack([np.array(out[n]) for n in f.name_out()])


def slopes(r, f, x, names):
    """Central differences of the adjoint f by a step of q, of v, ...: (3nv, 3nv), rows the adjoint."""
    columns = []
    for name in names:
        for e in STEP * np.eye(r.nv):
            pair = []
            for s in (1, -1):
                value = r.integrate(x[name], s * e) if name == "q" else np.ravel(x[name]) + s * e
                pair.append(stacked(f, {**x, name: value}))
            columns.append((pair[0] - pair[1]) / (2 * STEP))
    return np.hstack(columns)


@pytest.mark.few(8)
@pytest.mark.sample("forward-names1-planar", "inverse-names0-helical")
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("quantity, names", [("inverse", ("q", "v", "dv")), ("forward", ("q", "v", "tau"))])
def test_hessian_is_slope_of_adjoint(quantity, names, name):
    """Differences of the adjoint apply one direction after the other: what commutes is the symmetric part."""
    r = robot(name)
    f = od.function(r, f"{quantity}_dynamics_adjoint", friction=True, external_wrenches=True)
    h = od.function(r, f"{quantity}_dynamics_lagrangian_hessian", friction=True, external_wrenches=True)
    assert h.name_in() == [*names, "lam", "w_ext"]
    assert h.size_out("H") == (3 * r.nv, 3 * r.nv)
    x = random_ports(f, r, 6)
    H = np.array(h(**x)["H"])
    assert np.array_equal(H, H.T)
    found = slopes(r, f, x, names)
    found[: r.nv, : r.nv] = 0.5 * (found[: r.nv, : r.nv] + found[: r.nv, : r.nv].T)
    assert relative(H, found) < 2e-5


def test_directions_of_one_joint_do_not_commute():
    """Of a spherical joint the two orders of differentiation differ, by the gradient along the bracket."""
    r = robot("spherical")
    f = od.function(r, "inverse_dynamics_adjoint")
    x = random_ports(f, r, 6)
    found = slopes(r, f, x, ("q",))[: r.nv]
    twist = (found - found.T)[:3, :3]
    gradient = np.array(f(**x)["adj_q"]).ravel()[:3]
    expected = np.array(
        [[0, -gradient[2], gradient[1]], [gradient[2], 0, -gradient[0]], [-gradient[1], gradient[0], 0]]
    )
    assert np.abs(expected).max() > 0.1
    assert min(relative(twist, expected), relative(twist, -expected)) < 1e-6


@pytest.mark.parametrize("name", ["floating", "spherical"])
def test_quadratic_model(name):
    """Of e, w, z -> lam' tau(q (+) e, v + w, dv + z): its error falls with the third power of the step."""
    r = robot(name)
    f = od.function(r, "inverse_dynamics")
    h, g = (od.function(r, f"inverse_dynamics_{x}") for x in ("lagrangian_hessian", "adjoint"))
    x = random_ports(h, r, 7)
    q, v, dv, lam = (np.ravel(x[n]) for n in ("q", "v", "dv", "lam"))
    step = np.random.default_rng(7).normal(size=3 * r.nv)
    gradient = stacked(g, x).ravel()
    H = np.array(h(**x)["H"])
    errors = []
    for t in (1e-2, 5e-3, 2.5e-3):
        e, w, z = np.split(t * step, 3)
        moved = lam @ np.array(f(q=r.integrate(q, e), v=v + w, dv=dv + z)["tau"]).ravel()
        here = lam @ np.array(f(q=q, v=v, dv=dv)["tau"]).ravel()
        errors.append(abs(moved - here - t * gradient @ step - 0.5 * t**2 * step @ H @ step))
    assert 6.5 < errors[0] / errors[1] < 9.5
    assert 6.5 < errors[1] / errors[2] < 9.5
