"""Elastic robots on floating bases: model, flat map, contacts, where they are flat, what is off where they are not."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el


@pytest.fixture(scope="module")
def hopper():
    """A trunk on three legs of two joints: small, with all that a quadruped has."""
    b = od.RobotBuilder("hopper")
    b.add_link("trunk", mass=10.0, com=(0.0, 0.01, 0.05), inertia=np.diag([0.2, 0.3, 0.25]))
    for leg, x, y in (("a", 0.2, 0.0), ("b", -0.2, 0.2), ("c", -0.2, -0.2)):
        body = {"mass": 1.0, "com": (0, 0, -0.1), "inertia": np.diag([0.02, 0.02, 0.005])}
        b.add_body(f"{leg}1", "revolute", "trunk", joint=f"{leg}_hip", xyz=(x, y, 0), axis=(1, 0, 0), **body)
        b.add_body(f"{leg}2", "revolute", f"{leg}1", joint=f"{leg}_knee", xyz=(0, 0, -0.3), axis=(0, 1, 0), **body)
        b.add_frame(f"{leg}_foot", f"{leg}2", xyz=(0, 0, -0.3))
    return el.elastic_robot(b.build(floating_base=True), 300.0, motor_inertia=[0.05, 0.04, 0.03, 0.06, 0.05, 0.04])


FEET = ("a_foot", "b_foot", "c_foot")


def drawn(f, robot, seed=0):
    """{port: value} of a Function, at random."""
    rng = np.random.default_rng(seed)
    return {n: robot.random_configuration(seed) if n == "q" else rng.normal(size=f.size_in(n)) for n in f.name_in()}


def test_the_free_joint_has_no_motor(hopper):
    assert hopper.motor_names == tuple(f"{leg}_{joint}" for leg in "abc" for joint in ("hip", "knee"))
    assert hopper.unactuated == tuple(range(6))
    assert (hopper.nq, hopper.nv) == (13, 12)
    assert "root_joint.vz: no motor" in str(hopper)
    assert od.function(hopper, "elastic_flat_map").size_out("tau_base") == (6, 1)


def test_one_stiffness_per_joint_leaves_the_free_joint_out():
    robot = od.robots.quadruped()
    assert len(el.elastic_robot(robot, [300.0] * 12, motor_inertia=0.1).joints) == 12
    with pytest.raises(od.ModelError, match="expected one for each of the 12 joints"):
        el.elastic_robot(robot, [300.0] * 13, motor_inertia=0.1)
    mixed = el.elastic_robot(robot, {"LF_kfe": 300.0}, motor_inertia={"LF_kfe": 0.1})
    assert len(mixed.rigid) == 11
    assert len(mixed.motor_names) == 12


@pytest.mark.parametrize("method", ["taylor", "articulated_body", "motors_eliminated", "whole_matrix"])
def test_flat_map_and_forward_dynamics_are_inverse_on_a_free_base(hopper, method):
    flat = od.function(hopper, "elastic_flat_map", external_wrenches=True)
    given = drawn(flat, hopper.links)
    out = flat(**given)
    given["w_ext"] = given["w_ext"] + np.eye(7)[0] * np.array(out["tau_base"])  # what is missing acts on the trunk
    forward = od.function(hopper, "elastic_forward_dynamics", method=method, external_wrenches=True)
    ports = {**given, **{n: out[n] for n in ("theta", "dtheta", "tau_m")}}
    found = forward(**{n: ports[n] for n in forward.name_in()})
    assert np.abs(found["dv"] - given["dv"].reshape(-1, 1)).max() < 1e-10
    assert np.abs(found["d2theta"] - out["d2theta"]).max() < 1e-10


@pytest.mark.slow
def test_flat_map_by_ad_has_wrenches_too(hopper):
    by = [od.function(hopper, "elastic_flat_map", order=1, external_wrenches=True, method=m) for m in ("ad", "taylor")]
    given = drawn(by[0], hopper.links)
    for name, x in by[0](**given).items():
        assert np.allclose(x, by[1](**given)[name], rtol=1e-10, atol=1e-9), name


@pytest.mark.slow
def test_forces_from_the_flat_map_are_those_of_an_impulse_free_stance(hopper):
    """Motor torques of a motion with still feet make constrained dynamics give its accelerations and its forces."""
    robot, stance = hopper.links, el.stance_rates(hopper, FEET)
    q = robot.neutral()
    q[7:] = 0.1, 0.4, -0.2, 0.3, 0.2, -0.3
    J = np.array(ca.evalf(ca.jacobian(*_speeds(robot, FEET, q))))
    rng = np.random.default_rng(1)
    dv = rng.normal(size=12)
    dv -= np.linalg.pinv(J) @ (J @ dv)  # feet stay, from rest
    forces = el.contact_forces(hopper, FEET, order=0)
    wanted = np.zeros((3, 3))
    f = np.array(forces(q, np.zeros(12), dv, wanted))
    zero = np.zeros(12)
    flat = el.contact_flat_map(hopper, FEET)
    out = flat(q=q, v=zero, dv=dv, d2v=zero, d3v=zero, f=f)
    assert np.abs(out["tau_base"]).max() < 1e-10
    x = np.concatenate([q, zero, np.ravel(out["theta"]), np.ravel(out["dtheta"])])
    dx, _ = stance(x, out["tau_m"], [0, 0])
    assert np.abs(np.ravel(dx)[13:25] - dv).max() < 1e-9
    assert np.abs(np.ravel(dx)[31:] - np.ravel(out["d2theta"])).max() < 1e-9


def _speeds(robot, frames, q):
    v = ca.SX.sym("v", robot.nv)
    return ca.vec(od.contact_points(robot, frames)(ca.SX(ca.DM(q)), v)[1]), v


@pytest.mark.slow
def test_rates_of_forces_are_their_differences(hopper):
    forces = el.contact_forces(hopper, FEET)
    t, motion = _motion(hopper.links)
    wanted = _jet(ca.vertcat(*(ca.sin(k + t) for k in range(9))), t, 2)
    along = ca.Function("f", [t], forces.call([*motion, *(ca.reshape(x, 3, 3) for x in wanted)]))
    h = 1e-4
    low, here, high = ([np.array(x) for x in along(0.3 + d)] for d in (-h, 0, h))
    assert np.abs((high[0] - low[0]) / (2 * h) - here[1]).max() < 1e-5
    assert np.abs((high[1] - low[1]) / (2 * h) - here[2]).max() < 1e-4


def _jet(x, t, order):
    out = [x]
    for _ in range(order):
        out.append(ca.jacobian(out[-1], t))
    return out


def _motion(robot, order=3):
    """(t, [q, v, .., d3v]) of a smooth motion that turns the base about y."""
    t = ca.SX.sym("t")
    pitch, x, z = 0.2 * ca.sin(t), 0.1 * ca.sin(2 * t), 0.5 + 0.1 * ca.cos(t)
    joints = ca.vertcat(*(0.4 + 0.2 * ca.sin(t + k) for k in range(robot.nv - 6)))
    q = ca.vertcat(ca.cos(pitch / 2), 0, ca.sin(pitch / 2), 0, x, 0, z, joints)
    dx, dz, c, s = ca.jacobian(x, t), ca.jacobian(z, t), ca.cos(pitch), ca.sin(pitch)
    v = ca.vertcat(0, ca.jacobian(pitch, t), 0, c * dx - s * dz, 0, s * dx + c * dz, ca.jacobian(joints, t))
    return t, [q, *_jet(v, t, order)]


def test_it_is_flat_on_three_points_and_not_on_two(hopper):
    q = hopper.links.random_configuration(2)
    for frames, rank in ((FEET, 6), (FEET[:2], 5), (FEET[:1], 3), ((), 0)):
        found = el.flatness(hopper, frames, q)
        assert found.rank == rank
        assert found.flat == (rank == 6)
        assert found.internal == 3 * len(frames) - rank
        assert found.missing.shape == (6, 6 - rank)
    assert "bind the motion itself" in str(found)
    assert "3 internal" in str(el.flatness(hopper, FEET, q))


def test_what_two_feet_cannot_give_is_a_moment_about_their_line(hopper):
    q = hopper.links.random_configuration(3)
    missing = el.flatness(hopper, FEET[1:], q).missing[:, 0]
    p = np.array(od.contact_points(hopper.links, FEET[1:])(q, np.zeros(12))[0])
    R = np.array(od.function(hopper.links, "frame_pose", frame="trunk")(q=q)["R"])
    line = R.T @ (p[:, 1] - p[:, 0])
    arm = R.T @ (p[:, 0] - q[4:7])
    for force in np.eye(3):  # wrenches of both feet have no part along it
        assert abs(missing @ np.concatenate([np.cross(arm, force), force])) < 1e-12
    assert abs(np.linalg.norm(np.cross(missing[:3], line))) < 1e-6 + 10 * abs(missing[3:]).max()


def test_contacts_that_cannot_hold_any_motion_are_refused(hopper):
    with pytest.raises(od.ModelError, match="a_foot, b_foot give forces of rank 5"):
        el.contact_forces(hopper, FEET[:2])
    with pytest.raises(od.ModelError, match="no frame give forces of rank 0"):
        el.contact_forces(hopper, ())
    with pytest.raises(od.UnknownName, match="toe"):
        el.contact_flat_map(hopper, ("toe",))
    arm = el.elastic_robot(od.robots.planar_2r(), 100.0, motor_inertia=0.1)
    with pytest.raises(od.ModelError, match="stands on a fixed base"):
        el.flatness(arm, (), [0, 0])
    with pytest.raises(od.ModelError, match="it is for elastic robots"):
        el.flatness(hopper.links, (), [0] * 13)


def test_laws_and_references_of_floating_bases_are_refused(hopper):
    with pytest.raises(od.ModelError, match="joints of one coordinate alone"):
        el.feedforward_pd(hopper, 10.0, 1.0)
    with pytest.raises(od.ModelError, match="joints of one coordinate alone"):
        el.reference(hopper, lambda t: ca.vertcat(*[t] * 13), duration=1.0)


def test_the_complete_model_of_a_floating_base_is_refused_by_name():
    robot = od.robots.quadruped()
    with pytest.raises(od.ModelError, match="with_rotors"):
        el.elastic_robot(robot, 300.0, motor_inertia=0.1, coupling=np.zeros((18, 18)))


def test_in_free_fall_nothing_is_missing_and_momentum_stays(hopper):
    """The plant in flight: the centre of mass falls, the angular momentum stays, whatever the motors do."""
    p = el.plant(hopper)
    rng = np.random.default_rng(5)
    x = np.concatenate([hopper.links.random_configuration(1), rng.normal(size=12), rng.normal(size=12)])
    rates = np.ravel(p.rates(x, rng.normal(size=6), []))
    weight = hopper.links.total_mass * np.array(hopper.links.gravity)
    dh = od.function(hopper.links, "momentum", order=1)(q=x[:13], v=x[13:25], dv=rates[13:25])["dh"]
    com = np.ravel(od.function(hopper.links, "com")(q=x[:13])["c"])
    assert np.abs(np.ravel(dh) - np.concatenate([np.cross(com, weight), weight])).max() < 1e-10
