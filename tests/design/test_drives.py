"""Sensitivities by armature, gear, damping, springs: against robots built anew, AD, formulas; in reverse for many."""

import numpy as np
import pytest
from design.test_design import parameters_of, rebuilt, slopes
from samples import build, random_ports, relative, robot

import oc_dyn as od
from oc_dyn import design

QUANTITIES = {"inverse_dynamics": "dv", "forward_dynamics": "tau", "hybrid_dynamics": "tau_f"}


def drives_of(r):
    """Parameters of drives, one of several parts with a body's; joints with rotors have a gear as well."""
    names = [b.joint.name for b in r.bodies if b.joint.kind not in ("planar", "free")]
    out = [design.armature(names[0]), design.damping(names[-1]) + 0.5 * design.mass(r.bodies[0].name)]
    geared = [b.joint for b in r.bodies if b.joint.name in names and b.joint.armature]
    return out + [design.gear_ratio(j.name, j.armature / 100, 8.0) for j in geared[:1]]


def options_of(quantity, r):
    prescribed = {"prescribed": tuple(j.name for j in r.joints[::2])} if quantity == "hybrid_dynamics" else {}
    return {"friction": True, **prescribed}


@pytest.mark.few(5)
@pytest.mark.sample("inverse_dynamics-mimic")
@pytest.mark.parametrize(
    "quantity, name",
    [(q, n) for q in QUANTITIES for n in ("serial", "cylindrical", "spherical", "floating", "mimic")],
)
def test_sensitivities_of_drives(quantity, name):
    if name == "mimic" and quantity != "inverse_dynamics":
        pytest.skip("refused, as test_design says")
    r = robot(name)
    parameters, options = drives_of(r), options_of(quantity, r)
    f, g = (od.sensitivity(r, quantity, parameters, method=k, **options) for k in ("recursive_scalar", "ad"))
    x = random_ports(f, r, 1)
    x["p"] = p = np.abs(x["p"]) * 0.1
    found = f(**x)
    assert all(relative(found[n], y) < 1e-11 for n, y in g(**x).items())
    reverse = od.sensitivity(r, quantity, parameters, method="ad", adjoint=True, **options)
    lams = {n: y for n, y in random_ports(reverse, r, 4).items() if n.startswith("lam_")}
    still = {n: 0 * y if n.startswith("d") and n.endswith("_dp") else y for n, y in x.items()}
    right = sum(np.array(y).T @ lams[f"lam_{n[1:-3]}"] for n, y in f(**still).items() if n.endswith("_dp"))
    given = {n: y for n, y in x.items() if n in reverse.name_in()}
    assert relative(reverse(**given, **lams)["adj_p"], right) < 1e-9
    values = rebuilt(r, parameters, p.ravel(), quantity, options, x)
    outputs = [n for n in found if not n.endswith("_dp")]
    assert all(relative(found[n], values[n]) < 1e-11 for n in outputs)
    weights = np.random.default_rng(5).normal(size=len(parameters))
    expected = slopes(r, parameters, {**x, "p": p.ravel()}, weights, quantity, options)
    for n in outputs:
        assert relative(np.array(found[f"d{n}_dp"]) @ weights.reshape(-1, 1), expected[n]) < 1e-5, n


def test_torques_of_drives_are_what_they_say():
    r = robot("prismatic")
    parameters = [
        design.armature("joint2"),
        design.damping("joint1"),
        design.stiffness("joint3", 0.2),
        design.stiffness("joint3"),
    ]
    f = od.sensitivity(r, "inverse_dynamics", parameters, friction=True)
    x = {n: y for n, y in random_ports(f, r, 2).items() if n in ("q", "v", "dv")}
    p = np.array([0.3, 0.5, 40.0, 2.0])
    found, own = f(**x, p=p), od.function(r, "inverse_dynamics", friction=True)(**x)["tau"]
    q, v, dv = (np.ravel(x[n]) for n in ("q", "v", "dv"))
    right = np.array([[0, v[0], 0, 0], [dv[1], 0, 0, 0], [0, 0, q[2] - 0.2, q[2]], [0, 0, 0, 0]])
    assert relative(found["dtau_dp"], right) < 1e-12
    assert relative(np.array(found["tau"]).ravel() - np.array(own).ravel(), right @ p) < 1e-12


@pytest.mark.sample("forward_dynamics")
@pytest.mark.parametrize("quantity", list(QUANTITIES))
def test_springs_move_joints_as_torques_do(quantity):
    """A spring is a torque k (q - reference) against the drive, and moves with the motion."""
    r, k = robot("serial"), 30.0
    spring = design.stiffness("joint2", 0.4)
    options = {"prescribed": ("joint1",)} if quantity == "hybrid_dynamics" else {}
    f, g = (od.sensitivity(r, quantity, spring, method=m, **options) for m in ("recursive_scalar", "ad"))
    x = {**random_ports(f, r, 6), "p": k}
    found, twin, plain = f(**x), g(**x), od.function(r, quantity, **options)
    assert all(relative(found[n], twin[n]) < 1e-11 for n in twin)
    moved = {n: np.array(x[n], float) for n in plain.name_in()}
    force = k * (np.ravel(x["q"])[1] - 0.4)
    if quantity == "inverse_dynamics":
        expected = np.array(plain(**moved)["tau"]) + np.eye(r.nv)[:, [1]] * force
        assert relative(found["tau"], expected) < 1e-12
        return
    row = 1 if quantity == "forward_dynamics" else 0
    moved[QUANTITIES[quantity]].flat[row] -= force
    for n, y in plain(**moved).items():
        if n in twin:
            assert relative(found[n], y) < 1e-12, n


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("quantity", list(QUANTITIES))
@pytest.mark.parametrize("name", ["serial", "floating", "cylindrical"])
def test_adjoint_is_that_of_the_sensitivities(quantity, name):
    r = robot(name)
    parameters, options = parameters_of(r) + drives_of(r), options_of(quantity, r)
    options |= {"external_wrenches": True}
    forward = od.sensitivity(r, quantity, parameters, **options)
    x = random_ports(forward, r, 3)
    x["p"] = 0.05 * np.abs(x["p"])
    still = {n: y for n, y in x.items() if not n.endswith("_dp")}
    found = forward(**still)
    reverse, twin = (
        od.sensitivity(r, quantity, parameters, adjoint=True, method=m, **options) for m in ("ad", "recursive_scalar")
    )
    lams = {n: y for n, y in random_ports(reverse, r, 4).items() if n.startswith("lam_")}
    got, other = (f(**still, **lams) for f in (reverse, twin))
    right = sum(np.array(found[f"d{n[4:]}_dp"]).T @ y for n, y in lams.items())
    assert relative(got["adj_p"], right) < 1e-9
    assert got.keys() == other.keys()
    assert all(relative(got[n], y) < 1e-9 for n, y in other.items())
    moved = {n: x[f"d{n}_dp"] for n in reverse.name_in() if f"d{n}_dp" in x}  # what the motion's changes make besides
    along = sum(np.array(forward(**x)[f"d{n[4:]}_dp"]).T @ y for n, y in lams.items()) - right
    m = len(parameters)
    by_motion = [
        sum(np.sum(np.array(got[f"adj_{n}"]) * np.split(y, m, axis=1)[k]) for n, y in moved.items()) for k in range(m)
    ]
    assert relative(by_motion, along.ravel()) < 1e-9


@pytest.mark.slow
def test_one_reverse_sweep_does_not_grow_with_the_parameters():
    r = od.robots.chain(3)
    some = [design.mass(b.name) for b in r.bodies] + [design.armature(b.joint.name) for b in r.bodies]
    many = some + [design.inertial_parameter(b.name, k) for b in r.bodies for k in range(10)]
    few, all_ = (
        od.sensitivity(r, "inverse_dynamics", x, method="ad", adjoint=True).n_instructions() for x in (some, many)
    )
    forward = od.sensitivity(r, "inverse_dynamics", many).n_instructions()
    assert all_ < 1.5 * few
    assert 3 * all_ < forward


def test_changed_drives():
    r = build(["revolute", "prismatic"], seed=2, armature=True)
    changed = design.changed(r, {design.armature("joint1"): 0.3, design.damping("joint2"): 0.7})
    assert changed.joint("joint1").armature == pytest.approx(0.4)
    assert changed.joint("joint2").damping == pytest.approx(0.7)
    geared = design.changed(r, {design.gear_ratio("joint2", 0.002, 10.0): 5.0})
    assert geared.joint("joint2").armature == pytest.approx(0.002 * 15.0**2)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda r: design.changed(r, {design.armature("joint1"): -1.0}), od.ModelError, "armature would be -0.9"),
        (lambda r: design.changed(r, {design.stiffness("joint1"): 1.0}), od.ModelError, "no springs.*od.sensitivity"),
        (lambda r: design.gear_ratio("joint1", float("nan")), od.ShapeError, "finite number"),
        (lambda r: design.gear_ratio("joint1", -1e-9, 2.0), od.ShapeError, "rotor_inertia: got -1e-09.* at least 0"),
        (lambda r: design.stiffness("joint1", "soft"), od.ShapeError, "reference"),
        (lambda r: sense(r, design.gear_ratio("joint1", 1.0, 10.0)), od.ModelError, "above that of the joint, 0.1"),
        (lambda r: sense(r, design.damping("joint1")), od.ShapeError, "friction=True"),
        (lambda r: sense(r, design.armature("elbow")), od.UnknownName, "joint.*elbow"),
        (lambda r: sense(robot("planar"), design.armature("joint1")), od.ModelError, "planar: it has no drive"),
        (lambda r: sense(robot("spherical"), design.stiffness("joint1")), od.ModelError, "one coordinate"),
        (lambda r: sense(od.robots.four_bar(), design.mass("crank")), od.OrderError, "loops; take robot.tree"),
    ],
)
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make(robot("serial"))


def sense(r, parameter):
    return od.sensitivity(r, "inverse_dynamics", parameter)
