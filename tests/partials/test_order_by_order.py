"""Partials, adjoints, Lagrangian Hessians of forward and hybrid dynamics of any order: slopes, inverses, friction."""

import numpy as np
import pytest
from partials.test_first_partials import difference
from samples import ROBOTS, functions_of, random_ports, relative, robot

import oc_dyn as od

OPTIONS = {"external_wrenches": True, "friction": True}
PRESCRIBED = {"forward_dynamics": {}, "hybrid_dynamics": {"prescribed": ("joint1", "joint2")}}


def rough(name):
    """The robot, its joints with friction."""
    b = od.RobotBuilder("rough")
    b.add_link("link0", mass=2.0, inertia=np.eye(3))
    kinds = {"rough": ("revolute", "prismatic", "revolute"), "rough ball": ("spherical", "revolute")}[name]
    for k, kind in enumerate(kinds, 1):
        axis = {} if kind == "spherical" else {"axis": (0.3 * k, 1.0, -0.2 * k)}
        inertia = np.diag([0.1, 0.2, 0.15])
        b.add_body(
            f"link{k}", kind, f"link{k - 1}", joint=f"joint{k}", xyz=(0.1, 0.2 * k, 0.3), mass=1.0 + k,
            com=(0.1, 0.05, 0.02 * k), inertia=inertia, damping=0.3 * k, friction=0.02 * k, **axis,
        )  # fmt: skip
    return b.build()


def jacobian(found, rows, columns, sizes):
    """Matrix of the partials of `rows` by `columns`; sizes: {name: how many}, missing partials are zero."""
    zero = lambda y, x: np.zeros((sizes[y], sizes[x]))  # noqa: E731
    return np.block([[np.array(found.get(f"d{y}_d{x}", zero(y, x))) for x in columns] for y in rows])


@pytest.mark.sample("floating")
@pytest.mark.parametrize("name", ["serial", "floating", "spherical", "mimic", "transform", "planar"])
def test_those_of_forward_and_inverse_dynamics_are_inverse(name):
    """(q, v, dv, d2v) -> (q, v, tau, dtau) and back."""
    r, order = robot(name), 1
    forward = od.function(r, "forward_dynamics", order=order)
    x = random_ports(forward, r, 5)
    y = forward(**x)
    of_forward = od.function(r, "forward_dynamics_partials", order=order)(**x)
    of_inverse = od.function(r, "inverse_dynamics_partials", order=order)(q=x["q"], v=x["v"], **y)
    names, sizes = ("tau", "dtau"), dict.fromkeys(("q", "v", "dv", "d2v", "tau", "dtau"), r.nv)
    eye, zero = np.eye(2 * r.nv), np.zeros((2 * r.nv, 2 * r.nv))
    there = np.block([[eye, zero], [jacobian(of_inverse, names, ("q", "v", "dv", "d2v"), sizes)]])
    back = np.block([[eye, zero], [jacobian(of_forward, ("dv", "d2v"), ("q", "v", *names), sizes)]])
    assert relative(there @ back, np.eye(4 * r.nv)) < 1e-9


@pytest.mark.sample("hybrid_dynamics-spherical")
@pytest.mark.parametrize("name", ["serial", "floating", "spherical", "mimic"])
@pytest.mark.parametrize("quantity", list(PRESCRIBED))
def test_partials_are_slopes(quantity, name):
    r, order = robot(name), 2
    given = {"prescribed": [j.name for j in r.joints[1::2]]} if quantity == "hybrid_dynamics" else {}
    options = {"external_wrenches": True, **given}
    f, g = (od.function(r, q, order=order, **options) for q in (quantity, f"{quantity}_partials"))
    ports = random_ports(f, r, 3)
    found = g(**ports)
    for port, value in found.items():
        out, x = port[1:].split("_d", 1)
        assert relative(value, difference(r, f, ports, x, out)) < 1e-5, port
    assert {"dd3v_dd2tau", "dd2tau_p_dd3v_p"} & set(found)


@pytest.mark.sample("hybrid_dynamics-rough ball")
@pytest.mark.parametrize("name", ["rough", "rough ball"])
@pytest.mark.parametrize("quantity", list(PRESCRIBED))
def test_methods_agree_with_wrenches_and_friction(quantity, name):
    r, options = rough(name), {**OPTIONS, **PRESCRIBED[quantity]}
    if name == "rough ball":
        options |= {"prescribed": ("joint2",)} if quantity == "hybrid_dynamics" else {}
    for kind in ("partials", "adjoint", "lagrangian_hessian"):
        (_, reference), *others = functions_of(r, f"{quantity}_{kind}", 1, **options)
        ports = random_ports(reference, r, 2)
        expected = reference(**ports)
        assert others
        for method, f in others:
            for port, value in f(**ports).items():
                assert relative(value, expected[port]) < 1e-9, (kind, method, port)
        without = od.function(r, f"{quantity}_{kind}", order=1, **{**options, "friction": False})(**ports)
        assert any(relative(without[n], expected[n]) > 1e-3 for n in expected)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("hybrid_dynamics_partials"))
def test_friction_in_partials_of_order_zero(method):
    r, options = rough("rough"), {"friction": True, "prescribed": ("joint1", "joint2")}
    f = od.function(r, "hybrid_dynamics", **options)
    ports = random_ports(f, r, 3)
    found = od.function(r, "hybrid_dynamics_partials", method=method, **options)(**ports)
    for out in ("tau_p", "dv_f"):
        assert relative(found[f"d{out}_dv"], difference(r, f, ports, "v", out)) < 1e-5


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("hybrid_dynamics_second_partials"))
def test_friction_and_wrenches_in_second_partials(method):
    r, options = rough("rough"), {**OPTIONS, "prescribed": ("joint2",)}
    f = od.function(r, "hybrid_dynamics_partials", **options)
    ports = random_ports(f, r, 3)
    found = od.function(r, "hybrid_dynamics_second_partials", method=method, **options)(**ports)
    for out in ("tau_p", "dv_f"):
        columns = []
        for e in 1e-6 * np.eye(r.nv):
            ends = (np.array(f(**{**ports, "v": ports["v"] + s * e[:, None]})[f"d{out}_dv"]) for s in (1, -1))
            columns.append(np.subtract(*ends).ravel(order="F") / 2e-6)
        assert relative(found[f"d2{out}_dvdv"], np.array(columns).T) < 1e-5


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["rough", "rough ball"])
@pytest.mark.parametrize("method", od.methods("hybrid_dynamics"))
def test_friction_of_hybrid_dynamics_is_that_of_inverse_dynamics(method, name):
    """What it finds is a motion and torques that inverse dynamics with friction has, too."""
    r = rough(name)
    order = 0 if method == "hybrid_body" else 2
    prescribed = ("joint1",) if name == "rough ball" else ("joint1", "joint3")
    f = od.function(r, "hybrid_dynamics", order=order, method=method, friction=True, prescribed=prescribed)
    ports = random_ports(f, r, 4)
    found = f(**ports)
    motion = {n: x for n, x in found.items() if n in ("dv", "d2v", "d3v")}
    torques = od.function(r, "inverse_dynamics", order=order, friction=True)(q=ports["q"], v=ports["v"], **motion)
    for port, value in torques.items():
        assert relative(found[port], value) < 1e-9, port
    free = [k for k in range(r.nv) if r.velocity_names[k].partition(".")[0] not in prescribed]
    assert np.array_equal(np.array(found["tau"])[free], ports["tau_f"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("hybrid_dynamics"))
def test_parameters_of_hybrid_dynamics_are_those_of_the_robot(method):
    r, parts = rough("rough"), ("inertia", "armature", "viscous")
    options = {"method": method, "prescribed": ("joint2",), "friction": True}
    f = od.function(r, "hybrid_dynamics", parameters=parts, **options)
    ports = {n: x for n, x in random_ports(f, r, 6).items() if n != "params"}
    own = od.function(r, "hybrid_dynamics", **options)(**ports)
    found = f(**ports, params=r.parameter_values(parts))
    twice = f(**ports, params=2 * r.parameter_values(parts))
    for port, value in own.items():
        assert relative(found[port], value) < 1e-9, port
    assert relative(twice["dv_f"], own["dv_f"]) > 1e-3


@pytest.mark.sample("serial")
@pytest.mark.parametrize("name", ["serial", "mimic"])
def test_casadi_takes_them(name):
    f = od.function(robot(name), "forward_dynamics", order=1, derivatives="analytic")
    assert max(od.check_derivatives(f, points=1).values()) < 1e-9


@pytest.mark.sample("spherical")
@pytest.mark.parametrize("name", [n for n in ROBOTS if n != "transform"])
def test_hybrid_dynamics_of_free_joints_is_forward_dynamics(name):
    r = robot(name)
    for kind in ("adjoint", "lagrangian_hessian"):
        f, g = (od.function(r, f"{q}_dynamics_{kind}") for q in ("forward", "hybrid"))
        x = random_ports(f, r, 7)
        y = g(q=x["q"], v=x["v"], tau_f=x["tau"], lam_dv_f=x["lam"], dv_p=[], lam_tau_p=[])
        for a, b in zip(f(**x).values(), (v for n, v in y.items() if n != "adj_dv_p"), strict=True):
            assert relative(b, a) < 1e-9


def test_structural_zeros_of_branches():
    """Where the root is fixed, one branch does not move with the coordinates of another."""
    r = robot("branching")
    f = od.function(r, "forward_dynamics_partials", order=1)
    assert f.sparsity_out("dd2v_dq").nnz() < r.nv**2
