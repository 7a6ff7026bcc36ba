"""Hybrid dynamics: between inverse and forward dynamics, whichever joints are prescribed."""

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, build, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName
from oc_dyn.hybrid_dynamics.known_rows import by_articulated, by_block
from oc_dyn.matrices.composite import composite
from oc_dyn.model.canonical import canonical
from oc_dyn.ports import derivative_name
from oc_dyn.registry import get_method

METHODS = od.methods("hybrid_dynamics")


def names(r):
    return [j.name for j in r.joints]


def able(r, method, order):
    return get_method("hybrid_dynamics", method).refusal(r, order) is None


def cases(robots):
    """(robot, method, order) of every method that can, at the order that is tried."""
    for name in robots:
        for method in METHODS:
            order = 0 if get_method("hybrid_dynamics", method).max_order == 0 else 1
            if able(robot(name), method, order):
                yield name, method, order


def motion(r, order, seed=0):
    """Ports of inverse dynamics of this order with random numbers, and the torques that go with them."""
    f = od.function(r, "inverse_dynamics", order=order, external_wrenches=True)
    x = random_ports(f, r, seed)
    return x, f(**x)


def rows(r, prescribed):
    chosen = [k for j in r.joints if j.name in prescribed for k in range(j.v_index, j.v_index + j.nv)]
    return chosen, [k for k in range(r.nv) if k not in chosen]


def ports_of(r, order, prescribed, x, tau):
    """Ports of hybrid dynamics from a motion and its torques."""
    known, others = rows(r, prescribed)
    out = {k: value for k, value in x.items() if k in ("q", "v") or "w_ext" in k}
    for k in range(order + 1):
        a, t = derivative_name("v", k + 1), derivative_name("tau", k)
        out[a + "_p"] = np.array(x[a]).ravel()[known]
        out[t + "_f"] = np.array(tau[t]).ravel()[others]
    return out


def check(r, order, prescribed, method, seed=0):
    x, tau = motion(r, order, seed)
    settings = {"method": method, "prescribed": tuple(prescribed), "external_wrenches": True}
    f = od.function(r, "hybrid_dynamics", order=order, **settings)
    got = f(**ports_of(r, order, prescribed, x, tau))
    known, others = rows(r, prescribed)
    for k in range(order + 1):
        a, t = derivative_name("v", k + 1), derivative_name("tau", k)
        assert relative(got[a], x[a]) < 1e-9, (method, a)
        assert relative(got[t], tau[t]) < 1e-9, (method, t)
        assert np.array_equal(np.array(got[a + "_f"]).ravel(), np.array(got[a]).ravel()[others])
        assert np.array_equal(np.array(got[t + "_p"]).ravel(), np.array(got[t]).ravel()[known])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name, method, order", list(cases(ROBOTS)))
def test_all_prescribed_is_inverse_dynamics(name, method, order):
    check(robot(name), order, names(robot(name)), method)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name, method, order", list(cases(ROBOTS)))
def test_none_prescribed_is_forward_dynamics(name, method, order):
    r = robot(name)
    forward = od.function(r, "forward_dynamics", order=order)
    x = random_ports(forward, r, 4)
    f = od.function(r, "hybrid_dynamics", order=order, method=method)
    got = f(**{k + "_f" if "tau" in k else k: value for k, value in x.items()})
    for port, value in forward(**x).items():
        assert relative(got[port], value) < 1e-9, port
        assert relative(got[port + "_f"], value) < 1e-9, port
    assert got["tau_p"].shape == (0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_two_joints_one_pushed_one_moved(method):
    """First joint without torque, second with unit acceleration: M a + h = tau."""
    b = od.RobotBuilder("two")
    b.add_link("base")
    tensor = np.diag([0.02, 0.03, 0.01])
    b.add_body("upper", "revolute", "base", joint="shoulder", mass=2.0, com=(0, 0, 0.2), inertia=tensor, axis=(0, 1, 0))
    b.add_body(
        "lower", "revolute", "upper", joint="elbow", mass=1.0, com=(0, 0.1, 0.2), xyz=(0, 0, 0.4), axis=(0, 1, 0)
    )
    r = b.build()
    q, v = [0.3, -0.7], [0.5, 1.1]
    got = od.function(r, "hybrid_dynamics", method=method, prescribed=("elbow",))(q=q, v=v, dv_p=1.0, tau_f=0.0)
    a, tau = np.array(got["dv"]).ravel(), np.array(got["tau"]).ravel()
    assert a[1] == 1.0
    assert tau[0] == 0.0
    M = np.array(od.function(r, "mass_matrix")(q=q)["M"])
    h = np.array(od.function(r, "inverse_dynamics")(q=q, v=v, dv=0)["tau"]).ravel()
    assert np.abs(M @ a + h - tau).max() < 1e-10
    assert abs(tau[1]) > 1e-3
    assert abs(a[0]) > 1e-3


@pytest.mark.sample("mimic-prescribed16")
@pytest.mark.parametrize(
    "name, prescribed",
    [
        ("branching", ["joint1"]),
        ("branching", ["joint2", "joint4"]),
        ("branching", ["joint3", "joint5"]),
        ("floating", ["root_joint"]),
        ("floating", ["joint1", "joint3"]),
        ("floating", ["root_joint", "joint2"]),
        ("spherical", ["joint1"]),
        ("spherical", ["joint3"]),
        ("planar", ["joint3", "joint2"]),
        ("free", ["joint2"]),
        ("cylindrical", ["joint3"]),
        ("universal", ["joint2"]),
        ("prismatic", ["joint2", "joint3"]),
        ("transform", ["joint1"]),
        ("transform", ["joint3"]),
        ("mimic", ["joint1"]),
        ("mimic", ["joint2"]),
    ],
)
def test_motion_and_torques_belong_together(name, prescribed):
    for _, method, order in cases([name]):
        check(robot(name), order, prescribed, method, seed=order + 1)


@pytest.mark.sample("hybrid_spatial")
@pytest.mark.parametrize("method", ["taylor", "hybrid_spatial", "ad_jet"])
def test_high_order(method):
    check(robot("floating"), 3, ["joint1"], method)


def test_base_moved_or_pushed():
    """What the base wrench does to a free base is undone by prescribing the motion that it makes, and back."""
    r = robot("floating")
    order = 1
    pushed = od.function(r, "hybrid_dynamics", order=order, prescribed=("joint1", "joint2", "joint3"))
    moved = od.function(r, "hybrid_dynamics", order=order, prescribed=("root_joint", "joint1", "joint2", "joint3"))
    assert pushed.size_in("tau_f") == (6, 1)
    assert moved.size_in("tau_f") == (0, 1)
    x = random_ports(pushed, r, 7)
    out = pushed(**x)
    back = moved(q=x["q"], v=x["v"], dv_p=out["dv"], d2v_p=out["d2v"])
    assert relative(back["tau_p"][:6], x["tau_f"]) < 1e-9
    assert relative(back["dtau_p"][:6], x["dtau_f"]) < 1e-9
    assert relative(back["tau_p"][6:], out["tau_p"]) < 1e-9


def test_ports():
    r = robot("floating")
    f = od.function(r, "hybrid_dynamics", order=1, prescribed=["joint3", "joint1"])
    assert f.name_in() == ["q", "v", "dv_p", "d2v_p", "tau_f", "dtau_f"]
    outputs = ["tau_p", "dtau_p", "dv_f", "d2v_f", "dv", "d2v", "tau", "dtau"]
    assert f.name_out() == outputs
    assert f.size_in("dv_p") == (2, 1)
    assert f.size_in("tau_f") == (7, 1)
    assert f.size_out("dv") == (9, 1)
    inputs, _ = od.ports(r, "hybrid_dynamics", 1, prescribed=["joint3", "joint1"])
    assert inputs[2].rows == ("joint1", "joint3")  # the order of the coordinates
    with pytest.raises(ShapeError, match=r"port dv_p got shape \(3, 1\), expected \(2, 1\) for joint1, joint3"):
        f(dv_p=[1, 2, 3])
    one = od.function(r, "hybrid_dynamics", prescribed="joint2")
    assert one.size_in("dv_p") == (1, 1)


def test_rows_of_prescribed_joints_are_in_the_order_of_coordinates():
    r = robot("serial")
    x, tau = motion(r, 0, 3)
    given = ports_of(r, 0, ["joint1", "joint3"], x, tau)
    settings = {"external_wrenches": True}
    a, b = (
        np.array(od.function(r, "hybrid_dynamics", prescribed=p, **settings)(**given)["tau"])
        for p in (("joint3", "joint1", "joint3"), {"joint1", "joint3"})
    )
    assert np.array_equal(a, b)
    assert relative(a, tau["tau"]) < 1e-9


def test_unknown_joints():
    with pytest.raises(UnknownName, match="'joint9'.*joint1"):
        od.function(robot("serial"), "hybrid_dynamics", prescribed=("joint9",))
    with pytest.raises(UnknownName, match="'joint3'.*joint1, joint2"):  # it follows joint1
        od.function(robot("mimic"), "hybrid_dynamics", prescribed=("joint3",))
    with pytest.raises(UnknownName, match="option of 'inverse_dynamics' 'prescribed'"):
        od.function(robot("serial"), "inverse_dynamics", prescribed=("joint1",))


def test_empty_ports_in_symbolic_calls_and_maps():
    r = robot("serial")
    f = od.function(r, "hybrid_dynamics")
    x = random_ports(f, r)
    expected = np.array(f(**x)["dv"])
    symbols = [ca.MX.sym(n, *f.size_in(n)) for n in f.name_in()]
    g = ca.Function("g", symbols, [f(*symbols)[f.index_out("dv")]])
    assert relative(g(*x.values()), expected) < 1e-13
    two = f.map(2)(**{n: np.hstack([np.reshape(v, (-1, 1))] * 2) for n, v in x.items()})["dv"]
    assert relative(two, np.hstack([expected] * 2)) < 1e-13


@pytest.mark.parametrize("name", ["branching", "floating"])
def test_derivative_is_that_of_lower_orders(name):
    """d/dt of dv_f and tau_p along the motion, by differences, with the given derivatives of the inputs."""
    r = robot(name)
    f = od.function(r, "hybrid_dynamics", order=1, prescribed=("joint2",), method="hybrid_spatial")
    f0 = od.function(r, "hybrid_dynamics", order=0, prescribed=("joint2",), method="hybrid_body")
    x = random_ports(f, r, 2)
    out = f(**x)
    v, dv, d2v = x["v"].ravel(), np.array(out["dv"]).ravel(), np.array(out["d2v"]).ravel()
    h = 1e-4

    def at(t):
        # fourth-order step on the manifold along the velocity polynomial
        steps, q = 8, x["q"]
        for i in range(steps):
            m = t * (i + 0.5) / steps
            q = r.integrate(q, t / steps * (v + m * dv + 0.5 * m * m * d2v))
        moved = {"q": q, "v": v + t * dv + 0.5 * t * t * d2v}
        return f0(**moved, dv_p=x["dv_p"] + t * x["d2v_p"], tau_f=x["tau_f"] + t * x["dtau_f"])

    ahead, behind = at(h), at(-h)
    assert relative((ahead["dv_f"] - behind["dv_f"]) / (2 * h), out["d2v_f"]) < 1e-5
    assert relative((ahead["tau_p"] - behind["tau_p"]) / (2 * h), out["dtau_p"]) < 1e-5


@pytest.mark.parametrize(
    "name, rows",
    [("floating", range(6)), ("prismatic", [1, 2]), ("spherical", [0, 1, 2]), ("planar", [3]), ("transform", [0, 1])],
)
def test_block_and_articulated_inertias_complete_alike(name, rows):
    r = robot(name)
    model, rng = canonical(r, regroup=True), np.random.default_rng(1)
    q = ca.DM(r.random_configuration(1))
    h, a, tau = (ca.DM(rng.normal(size=r.nv)) for _ in range(3))
    M = composite(model, q)
    rows = tuple(rows)
    for x, t in (by_block(M, rows)(h, a, tau), by_articulated(model, q, rows)(h, a, tau)):
        assert relative(M @ x + h, t) < 1e-12
        others = [k for k in range(r.nv) if k not in rows]
        assert relative(x[list(rows)], a[list(rows)]) == 0
        assert relative(t[others], tau[others]) == 0


@pytest.mark.slow
def test_long_chains_do_not_need_the_mass_matrix():
    """The default grows with the number of joints, not with its cube."""
    counts = []
    for n in (15, 30):
        r = build(["revolute"] * n, seed=n, armature=True)
        counts.append(od.function(r, "hybrid_dynamics", prescribed=("joint3",)).n_instructions())
    assert counts[1] < 2.5 * counts[0]
    check(build(["revolute"] * 14, seed=14, armature=True), 1, ["joint2", "joint9"], "taylor")


@pytest.mark.slow
def test_every_method_is_tried():
    assert {m for m, _ in functions_of(robot("floating"), "hybrid_dynamics", 0)} == set(METHODS)
