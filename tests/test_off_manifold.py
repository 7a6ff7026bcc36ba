"""Quaternions that are not of unit length: formulas take them for normalised, numbers are refused.

That all methods of all quantities agree there is part of test_agreement.
"""

import pickle

import casadi as ca
import numpy as np
import pytest
from samples import build, random_ports, relative, robot, scaled_quaternions

import oc_dyn as od
from oc_dyn.errors import ShapeError
from oc_dyn.lie import so3

NORMS = (0.9, 1.1)
JOINT = {"floating": "root_joint", "free": "joint2", "spherical": "joint1"}  # with a quaternion


def symbolic(f, x):
    """{output: numbers} of a Function called with symbols, which are not checked."""
    symbols = {name: ca.MX.sym(name, *f.size_in(name)) for name in f.name_in()}
    found = f(**symbols)
    g = ca.Function("g", list(symbols.values()), [found[n] for n in f.name_out()])
    return dict(zip(f.name_out(), g.call([ca.DM(x[n]) for n in f.name_in()]), strict=True))


def test_rotation_matrix_of_any_quaternion():
    """Against Rodrigues' formula of the quaternion's angle and axis; orthonormal at any length."""
    rng = np.random.default_rng(0)
    for length in (1e-3, 0.9, 1.0, 1.1, 1e3):
        Q = rng.normal(size=4)
        Q /= np.linalg.norm(Q)
        angle, axis = 2 * np.arctan2(np.linalg.norm(Q[1:]), Q[0]), Q[1:] / np.linalg.norm(Q[1:])
        K = np.array(so3.skew(axis))
        expected = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
        R = np.array(so3.quat_to_rot(ca.DM(length * Q)))
        assert np.abs(R - expected).max() < 1e-14
        assert np.abs(R.T @ R - np.eye(3)).max() < 1e-14


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", list(JOINT))
def test_derivatives_by_coordinates_are_those_of_the_normalised(name, norm):
    """Along the quaternion nothing changes; along the tangent space coordinates give the registered partials."""
    r = robot(name)
    f, partials = od.function(r, "inverse_dynamics"), od.function(r, "inverse_dynamics_partials")
    x = random_ports(f, r, 1)
    expected = np.array(partials(**x)["dtau_dq"])
    q, v = ca.MX.sym("q", r.nq), ca.MX.sym("v", r.nv)
    tau = f(q=q, v=x["v"], dv=x["dv"])["tau"]
    tangent = ca.jacobian(r.configuration_rate(q, v), v)
    by_q, basis = ca.Function("J", [q], [ca.jacobian(tau, q), tangent])(scaled_quaternions(r, x["q"], norm))
    assert relative(by_q @ basis, expected) < 1e-9
    radial = scaled_quaternions(r, x["q"], 2.0) - x["q"]  # what lengthens the quaternions
    assert np.abs(np.array(by_q @ radial)).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", list(JOINT))
def test_symbolic_calls_are_those_of_the_normalised(name, norm):
    r = robot(name)
    f = od.function(r, "inverse_dynamics", order=1)
    x = random_ports(f, r, 2)
    found = symbolic(f, {**x, "q": scaled_quaternions(r, x["q"], norm)})
    assert relative(found["dtau"], f(**x)["dtau"]) < 1e-12


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", list(JOINT))
def test_time_derivative_is_the_slope_along_steps_from_there(name, norm):
    """dtau against differences along integrate(q, t v) with symbols, whose quaternions keep their length."""
    r = robot(name)
    f = od.function(r, "inverse_dynamics", order=1, normalize=True)
    x = random_ports(f, r, 3)
    x["dv"], x["d2v"] = 0 * x["dv"], 0 * x["d2v"]  # velocity stays, so steps are along one twist
    q, h = scaled_quaternions(r, x["q"], norm), 1e-5
    ahead, behind = (f(**{**x, "q": r.integrate_function().normalizing()(q, s * h * x["v"])})["tau"] for s in (1, -1))
    assert relative((ahead - behind) / (2 * h), f(**{**x, "q": q})["dtau"]) < 1e-6


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", list(JOINT))
def test_steps_undo_differences(name, norm):
    r = robot(name)
    step = np.random.default_rng(0).uniform(-0.5, 0.5, r.nv)
    q0 = scaled_quaternions(r, r.random_configuration(0), norm)
    q1 = r.integrate_function().normalizing()(q0, step)
    assert relative(np.array(r.difference_function().normalizing()(q0, q1)).ravel(), step) < 1e-12
    assert relative(r.integrate(r.normalized(q0), step), r.normalized(np.array(q1).ravel())) < 1e-12


@pytest.mark.parametrize("representation", ["spatial", "hybrid"])
def test_representations_take_the_normalised_base(representation):
    r = robot("floating")
    f = od.function(r, "inverse_dynamics", order=1, representation=representation, normalize=True)
    x = random_ports(f, r, 4)
    for norm in NORMS:
        found = f(**{**x, "q": scaled_quaternions(r, x["q"], norm)})
        assert relative(found["dtau"], f(**x)["dtau"]) < 1e-10, norm


@pytest.mark.parametrize("quantity", od.quantities("elastic robot"))
def test_elastic_quantities_take_the_normalised_quaternion(quantity):
    links = build(["spherical", "revolute"], seed=25)
    elastic = od.elastic.elastic_robot(links, stiffness={"joint2": 100}, motor_inertia={"joint2": 0.1})
    f = od.function(elastic, quantity, normalize=True)
    x = random_ports(f, links, 5)
    for norm in NORMS:
        found = f(**{**x, "q": scaled_quaternions(links, x["q"], norm)})
        for port, value in f(**x).items():
            assert relative(found[port], value) < 1e-10, (port, norm)


# -- numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [0.9, 1.1, 1 + 2e-6, 2.0])
@pytest.mark.parametrize("name", list(JOINT))
def test_numbers_off_the_manifold_are_refused(name, norm):
    r = robot(name)
    f = od.function(r, "mass_matrix")
    q = r.random_configuration(0)
    wrong = scaled_quaternions(r, q, norm)
    for given in (wrong, wrong.tolist(), ca.DM(wrong), wrong[None, :], np.column_stack([q, wrong])):
        with pytest.raises(ShapeError, match=rf"joint {JOINT[name]}.* has norm {norm:.9g}.*robot.normalized"):
            f(q=given)
    with pytest.raises(ShapeError, match=JOINT[name]):
        f(wrong)
    assert relative(f(q=scaled_quaternions(r, q, 1 + 5e-7))["M"], f(q=q)["M"]) < 1e-12


@pytest.mark.parametrize("normalize", [False, True])
def test_zero_is_no_rotation(normalize):
    r = robot("floating")
    f = od.function(r, "mass_matrix", normalize=normalize)
    for given in ({"q": 0}, {"q": np.zeros(r.nq)}, {"q": scaled_quaternions(r, r.neutral(), 1e-8)}):
        with pytest.raises(ShapeError, match="root_joint.* no rotation"):
            f(**given)
    with pytest.raises(ShapeError, match="port q is missing.*root_joint.*neutral"):
        f()


def test_option_normalize():
    r = robot("free")
    strict, free = od.function(r, "bias"), od.function(r, "bias", normalize=True)
    x = random_ports(strict, r)
    wrong = {**x, "q": scaled_quaternions(r, x["q"], 3.0)}
    assert relative(free(**wrong)["h"], strict(**x)["h"]) < 1e-12
    assert relative(strict(**{**x, "q": r.normalized(wrong["q"])})["h"], strict(**x)["h"]) < 1e-12
    with pytest.raises(ShapeError):  # the other one is still strict
        strict(**wrong)
    with pytest.raises(ShapeError, match="normalize is 1, expected True or False"):
        od.function(r, "bias", normalize=1)
    for f in (strict, free):
        again = pickle.loads(pickle.dumps(f))
        assert again.rotations == f.rotations == (("joint2", 1),)
        assert again.normalize is f.normalize


def test_normalized_of_many():
    r = robot("spherical")
    q = np.column_stack([r.random_configuration(k) for k in range(3)])
    longer = np.array(q)
    longer[:4] *= [0.3, 1.0, 7.0]
    kept = longer.copy()
    assert relative(r.normalized(longer), q) < 1e-15
    assert np.array_equal(longer, kept)
    with pytest.raises(ShapeError, match="column 1.*no rotation"):
        r.normalized(longer * [1, 0, 1])
    with pytest.raises(ShapeError, match="expected"):
        r.normalized(q[:-1])


def test_nan_passes():
    """A place that is not known gives results that are not known."""
    r = robot("floating")
    assert np.isnan(np.array(od.function(r, "gravity")(q=np.full(r.nq, np.nan))["g"])).all()


def test_every_way_to_give_numbers():
    """Wherever numbers enter, the same refusal."""
    r = robot("floating")
    q, v = r.neutral(), np.zeros(r.nv)
    wrong = scaled_quaternions(r, q, 1.1)
    f = od.function(r, "bias")
    run, many = od.numpy_call(f), od.batch(f, fallback=True)
    pose = od.function(r, "frame_pose", frame="link1")
    body = od.Problem(3, 1.0)
    contact = body.contact_body(r)
    ways = {
        "numpy_call": lambda q: run(q, v),
        "numpy_call by name": lambda q: run(q=q, v=v),
        "batch": lambda q: many(np.column_stack([r.neutral(), q]), v),
        "integrate": lambda q: r.integrate(q, v),
        "difference": lambda q: r.difference(r.neutral(), q),
        "configuration_rate": lambda q: r.configuration_rate(q, v),
        "simulate": lambda q: od.simulate(r, q, v, np.zeros((3, r.nv)), 1e-3),
        "inverse_kinematics": lambda q: od.inverse_kinematics(
            r, "link1", p=np.array(pose(q=r.neutral())["p"]).ravel(), q_start=q
        ),
        "start of a contact body": lambda q: body.start({contact.q: q}),
        "goal of a contact body": lambda q: body.goal({contact.q: q}),
        "lock": lambda q: robot("spherical").locked({"joint1": q[:4]}),
    }
    for what, way in ways.items():
        way(q)
        with pytest.raises(ShapeError, match="has norm 1.1"):
            way(wrong)
            pytest.fail(what)


def test_contact_bodies_are_not_searched_from_zero_quaternions():
    r = robot("floating")
    od.Problem(3, 1.0).contact_body(r, guess=2 * r.neutral())
    for guess in (np.zeros(r.nq), np.zeros((4, r.nq)), [0.0, 0.0, 0.0, 0.0]):
        with pytest.raises(ShapeError, match="contact_body: guess of q: joint root_joint.*no rotation"):
            od.Problem(3, 1.0).contact_body(r, guess=guess)


def test_conversions_to_other_libraries():
    """Of both sides, and of velocities that are turned with q."""
    pytest.importorskip("pinocchio")
    import pinocchio

    b = od.RobotBuilder("ball")
    b.add_link("base")
    b.add_body("swing", "spherical", "base", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    b.add_body("float", "free", "base", mass=1.0, inertia=np.eye(3))
    r = b.build()
    model = pinocchio.Model()
    for j, kind in zip(r.joints, (pinocchio.JointModelSpherical(), pinocchio.JointModelFreeFlyer()), strict=True):
        model.addJoint(0, kind, pinocchio.SE3.Identity(), j.name)
    theirs = od.interop.to_pinocchio(r, model)
    q = r.random_configuration(0)
    assert relative(theirs.from_q(theirs.q(q)), q) < 1e-15
    for way, x in ((theirs.q, q), (theirs.from_q, theirs.q(q))):
        with pytest.raises(ShapeError, match="norm 1.1"):
            way(1.1 * x)


def test_turned_velocities_need_unit_quaternions():
    mujoco = pytest.importorskip("mujoco")
    b = od.RobotBuilder("box")
    b.add_link("base")
    b.add_body("body", "free", "base", mass=1.0, inertia=np.eye(3))
    r = b.build()
    xml = "<mujoco><worldbody><body><freejoint name='body'/><geom size='1'/></body></worldbody></mujoco>"
    theirs = od.interop.to_mujoco(r, mujoco.MjModel.from_xml_string(xml), names={r.joints[0].name: "body"})
    q, v = r.random_configuration(1), np.arange(6.0)
    for way, x in ((theirs.v, q), (theirs.from_v, theirs.q(q)), (theirs.tau, q)):
        way(v, q=x)
        with pytest.raises(ShapeError, match="norm 1.1"):
            way(v, q=1.1 * x)


def test_robots_without_quaternions_are_not_checked():
    f = od.function(robot("serial"), "bias")
    assert f.rotations == ()
