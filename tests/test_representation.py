"""Option representation: a floating base seen by its spatial or hybrid twist, at every order."""

import casadi as ca
import numpy as np
import pytest
from samples import build, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName
from oc_dyn.inverse_dynamics.recursive_spatial import joint_wrenches
from oc_dyn.kinematics.recursive_body import body_poses
from oc_dyn.lie import se3, so3
from oc_dyn.lie import twist_conversion as tc
from oc_dyn.model.canonical import canonical
from oc_dyn.ports import derivative_name

OTHERS = ("spatial", "hybrid")
NOW = 0.15


def along_time(t, expressions, order):
    """[[e, e', ...], ...] at t = NOW by AD in time."""
    columns = []
    for e in expressions:
        out = [e]
        for _ in range(order):
            out.append(ca.jacobian(out[-1], t))
        columns.append(out)
    f = ca.Function("f", [t], [x for out in columns for x in out])
    values = iter(np.array(x).ravel() for x in f.call([ca.DM(NOW)]))
    return [[next(values) for _ in out] for out in columns]


class Flight:
    """Motion of the robot "floating" given in time: base by a quaternion and a position, joints by angles."""

    def __init__(self):
        self.t = t = ca.SX.sym("t")
        Q = ca.vertcat(1, 0.3 + 0.5 * t, t * t - 0.2, ca.sin(0.7 * t))
        Q = Q / ca.sqrt(ca.dot(Q, Q))
        p = ca.vertcat(0.3 + t, ca.cos(0.8 * t), 0.2 - t * t)
        angles = ca.vertcat(0.4 + t, ca.sin(1.3 * t), 0.7 * t * t)
        self.C = R, p = so3.quat_to_rot(Q), p
        turn = ca.jacobian(ca.vec(R), t).reshape((3, 3))
        path, rates = ca.jacobian(p, t), ca.jacobian(angles, t)
        W, B = turn @ R.T, R.T @ turn
        w, b = (ca.vertcat(x[2, 1], x[0, 2], x[1, 0]) for x in (W, B))
        self.q = ca.vertcat(Q, p, angles)
        self.v = {
            "body": ca.vertcat(b, R.T @ path, rates),
            "spatial": ca.vertcat(w, path - ca.cross(w, p), rates),
            "hybrid": ca.vertcat(w, path, rates),
        }

    def torque(self, r):
        """{representation: torques in time}, by inverse dynamics of order 0 in body axes."""
        v = self.v["body"]
        tau = od.function(r, "inverse_dynamics", method="taylor")(self.q, v, ca.jacobian(v, self.t))
        R, p = self.C
        n, f = R @ tau[:3], R @ tau[3:6]
        return {
            "body": tau,
            "hybrid": ca.vertcat(n, f, tau[6:]),
            "spatial": ca.vertcat(n + ca.cross(p, f), f, tau[6:]),
        }

    def values(self, r, name, order):
        """Numbers of all ports, by AD in time of definitions alone."""
        tau = self.torque(r)[name]
        q, v, tau = along_time(self.t, [self.q, self.v[name], tau], order + 1)
        out = {"q": q[0]}
        for k in range(order + 2):
            out[derivative_name("v", k)] = v[k]
        for k in range(order + 1):
            out[derivative_name("tau", k)] = tau[k]
        return out


@pytest.fixture(scope="module", params=("body", *OTHERS))
def flight(request):
    return request.param, Flight().values(robot("floating"), request.param, 3)


def check(f, values, tolerance=1e-9):
    got = f(**{k: values[k] for k in f.name_in()})
    for port, value in got.items():
        assert relative(np.array(value).ravel(), values[port]) < tolerance, port


@pytest.mark.sample(1)
def test_inverse_dynamics_is_that_of_the_definitions(flight):
    name, values = flight
    check(od.function(robot("floating"), "inverse_dynamics", order=3, representation=name), values)


@pytest.mark.sample("body-taylor")
@pytest.mark.parametrize("method", ["taylor", "articulated_spatial", "ad_jet_cse"])
def test_forward_dynamics_is_that_of_the_definitions(flight, method):
    """Here a conversion needs accelerations of lower orders, which the Function finds itself."""
    name, values = flight
    check(od.function(robot("floating"), "forward_dynamics", order=3, method=method, representation=name), values)


@pytest.mark.sample("hybrid-prescribed0", "body-prescribed1")
@pytest.mark.parametrize("prescribed", [("joint2",), ("root_joint", "joint1")])
def test_hybrid_dynamics_is_that_of_the_definitions(flight, prescribed):
    name, values = flight
    r, order = robot("floating"), 2
    f = od.function(r, "hybrid_dynamics", order=order, prescribed=prescribed, representation=name)
    chosen = [k for j in r.joints if j.name in prescribed for k in range(j.v_index, j.v_index + j.nv)]
    rest = [k for k in range(r.nv) if k not in chosen]
    parts = {f"{k}_{letter}": x[rows] for k, x in values.items() if k != "q" for letter, rows in
             (("p", chosen), ("f", rest))}  # fmt: skip
    check(f, {**values, **parts})


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", OTHERS)
def test_forward_after_inverse(name):
    r, order = robot("floating"), 2
    f = od.function(r, "inverse_dynamics", order=order, representation=name, external_wrenches=True)
    g = od.function(r, "forward_dynamics", order=order, representation=name, external_wrenches=True)
    x = random_ports(f, r, 3)
    back = g(q=x["q"], v=x["v"], **f(**x), **{k: value for k, value in x.items() if "w_ext" in k})
    for port, value in back.items():
        assert relative(value, x[port]) < 1e-8, port


def test_spatial_torque_is_the_wrench_of_the_spatial_recursion():
    """Without any conversion: the wrench that the first joint transmits, in {0}."""
    r, order = robot("floating"), 3
    f = od.function(r, "inverse_dynamics", order=order)
    x = random_ports(f, r, 5)
    model = canonical(r)
    V = [ca.DM(x[n]) for n in f.name_in()[1:]]
    _, W = joint_wrenches(model, order, ca.DM(x["q"]), V, poses=body_poses)
    C = so3.quat_to_rot(ca.DM(x["q"][:4])), ca.DM(x["q"][4:7])
    spatial = tc.spatial_from_body(C, [a[:6] for a in V])
    g = od.function(r, "inverse_dynamics", order=order, representation="spatial")
    got = g(x["q"], *(ca.vertcat(a, b[6:]) for a, b in zip(spatial, V, strict=True)))
    for k in range(order + 1):
        assert relative(got[k][:6], W[1][k]) < 1e-10


def test_base_on_a_turned_joint():
    """The pose of the base in the root frame counts, not that in its joint; a free joint further out stays as it is."""
    r = build(["free", "revolute", "free"], [0, 1, 2], seed=21)
    x = random_ports(od.function(r, "inverse_dynamics", order=1), r)
    body = od.function(r, "inverse_dynamics", order=1)(**x)
    C = od.function(r, "frame_pose", frame="link1")(q=x["q"])
    C = C["R"], C["p"]
    V = [ca.DM(x[k]) for k in ("v", "dv", "d2v")]
    twists = tc.convert_twists("body", "spatial", C, [a[:6] for a in V])
    given = {k: ca.vertcat(a, b[6:]) for k, a, b in zip(("v", "dv", "d2v"), twists, V, strict=True)}
    got = od.function(r, "inverse_dynamics", order=1, representation="spatial")(q=x["q"], **given)
    assert relative(got["tau"][:6], se3.Ad_inv(C).T @ body["tau"][:6]) < 1e-11
    for port in ("tau", "dtau"):
        assert relative(got[port][6:], body[port][6:]) < 1e-11


@pytest.mark.sample(1)
@pytest.mark.parametrize("carrier", [1, 2])
def test_two_floating_bases(carrier):
    """Every base on the root is converted, also when one is prescribed and the other pushed; a prescribed arm may
    stand on either."""
    r = build(["free", "free", "revolute"], [0, 0, carrier], seed=22)
    order = 2
    names = {"representation": "spatial"}
    f = od.function(r, "inverse_dynamics", order=order, **names)
    x = random_ports(f, r, 1)
    tau = f(**x)
    hybrid = od.function(r, "hybrid_dynamics", order=order, prescribed=("joint2", "joint3"), **names)
    place = {j.name: list(range(j.v_index, j.v_index + j.nv)) for j in r.joints}
    known, rest = sorted(place["joint2"] + place["joint3"]), place["joint1"]
    given = {"q": x["q"], "v": x["v"]}
    for k in range(order + 1):
        given[derivative_name("v", k + 1) + "_p"] = x[derivative_name("v", k + 1)][known]
        given[derivative_name("tau", k) + "_f"] = np.array(tau[derivative_name("tau", k)])[rest]
    out = hybrid(**given)
    for k in range(order + 1):
        assert relative(out[derivative_name("v", k + 1)], x[derivative_name("v", k + 1)]) < 1e-8
        assert relative(out[derivative_name("tau", k)], tau[derivative_name("tau", k)]) < 1e-8


def test_fixed_base_and_body_change_nothing():
    r = robot("branching")
    f, g = (od.function(r, "inverse_dynamics", order=1, representation=x) for x in ("spatial", "body"))
    x = random_ports(f, r)
    assert np.array_equal(np.array(f(**x)["dtau"]), np.array(g(**x)["dtau"]))
    r = robot("floating")
    f, g = od.function(r, "forward_dynamics", representation="body"), od.function(r, "forward_dynamics")
    x = random_ports(f, r)
    assert np.array_equal(np.array(f(**x)["dv"]), np.array(g(**x)["dv"]))


def test_power_does_not_depend_on_it():
    r = robot("floating")
    values = {name: Flight().values(r, name, 0) for name in ("body", *OTHERS)}
    powers = [
        values[name]["v"] @ np.array(
            od.function(r, "inverse_dynamics", representation=name)(
                q=values[name]["q"], v=values[name]["v"], dv=values[name]["dv"]
            )["tau"]
        ).ravel()
        for name in values
    ]  # fmt: skip
    assert powers[1] == pytest.approx(powers[0], rel=1e-10)
    assert powers[2] == pytest.approx(powers[0], rel=1e-10)


def test_ports_say_it():
    inputs, outputs = od.ports(robot("floating"), "forward_dynamics", 1, representation="spatial")
    for p in (*inputs[1:], *outputs):
        assert "root_joint in root axes, at the root's origin" in p.meaning
    assert "root axes" not in inputs[0].meaning
    inputs, _ = od.ports(robot("floating"), "forward_dynamics", 1)
    assert all("root axes" not in p.meaning for p in inputs)


def test_what_is_refused():
    with pytest.raises(UnknownName, match="'world'.*body, spatial, hybrid"):
        od.function(robot("floating"), "inverse_dynamics", representation="world")
    f = od.function(robot("floating"), "inverse_dynamics", representation="hybrid")
    with pytest.raises(ShapeError, match="port v got shape"):
        f(q=np.zeros(10), v=np.zeros(3), dv=np.zeros(9))
