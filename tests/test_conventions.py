"""Conventions of docs/conventions.md, one test a line: what a line says is what numbers show."""

import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from samples import build, random_ports, relative
from samples import robot as sample

import oc_dyn as od
from oc_dyn.model.joints import GROUPS, KINDS

G = 9.81
LINES = {}  # bold beginning of a line -> its test


def line(*names):
    """Decorator: this test stands for the lines that begin with these words."""

    def register(test):
        LINES.update(dict.fromkeys(names, test))
        return test

    return register


def one(
    kind="revolute",
    axis=(0, 0, 1),
    base=False,
    mass=2.0,
    com=(0.5, 0.0, 0.0),
    tensor=(0.1, 0, 0, 0.2, 0, 0.3),
    **options,
):
    """A body called link on one joint called joint."""
    b = od.RobotBuilder("one")
    b.add_link("root")
    more = {} if kind in ("free", "spherical") else {"axis": axis}
    b.add_body("link", kind, "root", joint="joint", mass=mass, com=com, inertia=tensor, **more, **options)
    return b.build(floating_base=base)


def value(robot, quantity, port, order=0, options=None, **x):
    return od.function(robot, quantity, order=order, **(options or {}))(**x)[port].full()


def flat(x):
    """Numbers of casadi or numpy as a flat array."""
    return np.array(x, float).reshape(-1)


def rot(axis, angle):
    """Rotation about a unit axis, by Rodrigues' formula."""
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def test_every_line_of_the_page_has_a_test():
    text = (Path(__file__).parents[1] / "docs" / "conventions.md").read_text(encoding="utf-8")
    lines = re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE)
    assert len(lines) >= 10
    assert not set(lines) - set(LINES)


@line("Units")
def test_units_are_si():
    """1 kg at 1 m takes its weight in newtons, times metres."""
    r = one(axis=(0, -1, 0), mass=1.0, com=(1, 0, 0), tensor=None)
    assert value(r, "inverse_dynamics", "tau", q=0, v=0, dv=0) == pytest.approx(G)
    assert value(r, "inverse_dynamics", "tau", q=np.pi / 2, v=0, dv=0) == pytest.approx(0, abs=1e-12)  # radians
    units = {p.name: p.unit for p in [*od.ports(r, "inverse_dynamics")[0], *od.ports(r, "inverse_dynamics")[1]]}
    assert units["v"] == "rad/s, m/s"
    assert units["tau"] == "Nm, N"


@line("Twists")
def test_twists_and_wrenches_have_the_angular_part_first():
    r = sample("floating")
    w, u = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    q = r.neutral()
    v = np.r_[w, u, np.zeros(r.nv - 6)]
    V = value(r, "frame_twist", "V", options={"frame": "link0", "representation": "body"}, q=q, v=v).ravel()
    assert np.allclose(V, [*w, *u])
    still = dict(q=q, v=np.zeros(r.nv), dv=np.zeros(r.nv))
    hold = value(r, "inverse_dynamics", "tau", **still).ravel()[:6]
    assert np.allclose(hold[3:], [0, 0, r.total_mass * G])  # the force
    com = value(r, "com", "c", q=q).ravel()
    assert np.allclose(hold[:3], np.cross(com, hold[3:]))  # the moment


@line("Quaternions")
def test_quaternions_begin_with_the_real_part():
    r = one("spherical")
    assert np.array_equal(r.neutral(), [1, 0, 0, 0])
    assert r.coordinate_names[0] == "joint.qw"
    half = 0.4
    C = value(r, "frame_pose", "C", options={"frame": "link"}, q=[np.cos(half), 0, 0, np.sin(half)])
    assert np.allclose(C[:3, :3], rot([0, 0, 1], 2 * half))
    assert np.allclose(flat(od.interop.xyzw([1, 2, 3, 4])), [2, 3, 4, 1])
    longer = [2 * np.cos(half), 0, 0, 2 * np.sin(half)]
    f = od.function(r, "frame_pose", frame="link")
    assert np.allclose(f.map(1)(longer)[0], C)  # what numbers are refused for
    with pytest.raises(od.ShapeError, match="norm 2"):
        f(longer)


@line("Roll, pitch and yaw")
def test_roll_pitch_yaw_turn_about_fixed_axes():
    a, b, c = 0.3, -0.5, 0.7
    by_builder = one(rpy=(a, b, c)).bodies[0].rotation
    R = rot([0, 0, 1], c) @ rot([0, 1, 0], b) @ rot([1, 0, 0], a)
    assert np.allclose(by_builder, R)
    text = (
        f'<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><origin rpy="{a} {b} {c}"/>'
        '<parent link="a"/><child link="b"/></joint></robot>'
    )
    assert np.allclose(od.load_urdf(text).bodies[0].rotation, R)


@line("Poses")
def test_poses_take_points_of_the_frame_to_the_root():
    r = one("revolute", (0, 0, 1), xyz=(1, 2, 3))
    f = od.function(r, "frame_pose", frame="link")
    C = f(q=np.pi / 2)["C"].full()
    assert np.allclose(C @ [1, 0, 0, 1], [1, 3, 3, 1])
    assert np.allclose(f(q=0.3)["p"].full().ravel(), [1, 2, 3])


@line("Coordinates")
def test_coordinates_go_depth_first_in_the_order_of_the_file():
    b = od.RobotBuilder("r")
    for name in ("root", "left", "right", "hand"):
        b.add_link(name, mass=1.0)
    b.add_joint("z", "revolute", "left", "hand")
    b.add_joint("m", "revolute", "root", "left")
    b.add_joint("a", "revolute", "root", "right")
    r = b.build()
    assert r.coordinate_names == r.velocity_names == ("m", "z", "a")
    with pytest.raises(od.UnknownName):
        r.joint("mm")
    floating = b.build(floating_base=True)
    assert floating.coordinate_names[:8] == (*(f"root_joint.{x}" for x in ("qw", "qx", "qy", "qz", "x", "y", "z")), "m")


@line("Free joint")
def test_a_free_joint_has_body_twists():
    r = one("free")
    half = 0.4
    q = np.array([np.cos(half), 0, 0, np.sin(half), 1, 2, 3])
    rate = r.configuration_rate(q, [0, 0, 0, 1, 0, 0])  # along the body's own x
    assert np.allclose(rate[4:], rot([0, 0, 1], 2 * half)[:, 0])
    assert np.allclose(value(r, "frame_pose", "p", options={"frame": "link"}, q=q).ravel(), [1, 2, 3])
    # a body that turns at 1 rad/s and moves at 1 m/s along its own x goes in a circle: dv = 0, acceleration is not
    p2 = [r.integrate(q, t * np.array([0, 0, 1, 1, 0, 0]))[4:] for t in (-1e-3, 0, 1e-3)]
    assert np.linalg.norm(p2[0] - 2 * p2[1] + p2[2]) / 1e-6 == pytest.approx(1, rel=1e-3)
    assert (r.nq, r.nv) == (7, 6)


@line("Spherical joint")
def test_a_spherical_joint_has_the_angular_velocity_in_the_moved_frame():
    r = one("spherical")
    q, w, t = r.random_configuration(1), np.array([0.3, -0.2, 0.5]), 1e-6

    def R(x):
        return value(r, "frame_pose", "C", options={"frame": "link"}, q=x)[:3, :3]

    W = R(q).T @ (R(q + t * r.configuration_rate(q, w)) - R(q - t * r.configuration_rate(q, w))) / (2 * t)
    assert np.allclose([W[2, 1], W[0, 2], W[1, 0]], w, atol=1e-8)


@line("Planar joint")
def test_a_planar_joint_has_an_angle_a_position_and_a_body_twist():
    r = one("planar", (0, 0, 1))
    assert r.coordinate_names == ("joint.angle", "joint.x", "joint.y")
    assert r.velocity_names == ("joint.wz", "joint.vx", "joint.vy")
    assert np.allclose(r.configuration_rate([np.pi / 2, 1, 2], [3, 1, 0]), [3, 0, 1])


@line("Other joints")
def test_elsewhere_v_is_the_rate_of_q():
    r = build([kind for kind in KINDS if kind not in (*GROUPS, "transform")], seed=3)
    q, v = r.random_configuration(1), np.arange(1.0, r.nv + 1)
    assert np.array_equal(r.configuration_rate(q, v), v)
    assert np.allclose(r.integrate(q, v), q + v)
    assert one("continuous").nq == 1  # an angle, which may exceed pi


@line("Steps")
def test_integrate_and_difference_are_inverse_and_have_the_size_of_v():
    r = sample("floating")
    q = r.random_configuration(1)
    step = np.linspace(-0.5, 0.5, r.nv)
    assert np.allclose(r.difference(q, r.integrate(q, step)), step)
    rate = (r.integrate(q, 1e-6 * step) - r.integrate(q, -1e-6 * step)) / 2e-6
    assert np.allclose(rate, r.configuration_rate(q, step), atol=1e-8)


@line("Ports")
def test_ports_are_derivatives_by_time_up_to_the_order():
    r = sample("floating")
    f = od.function(r, "inverse_dynamics", order=2)
    assert f.name_in() == ["q", "v", "dv", "d2v", "d3v"]
    assert f.name_out() == ["tau", "dtau", "d2tau"]
    x = random_ports(f, r)
    h = 1e-5

    def tau(t):
        v = x["v"] + t * x["dv"] + t**2 / 2 * x["d2v"]
        q = r.integrate(x["q"], (t * x["v"] + t**2 / 2 * x["dv"]).ravel())  # to first order, which is what counts
        return value(r, "inverse_dynamics", "tau", q=q, v=v, dv=x["dv"] + t * x["d2v"])

    assert relative((tau(h) - tau(-h)) / (2 * h), f(**x)["dtau"]) < 1e-6


@line("Signs")
def test_torque_holds_the_arm_up():
    r = one(axis=(0, -1, 0), mass=3.0, com=(0.5, 0, 0))  # lies along x, positive angles lift it
    hold = value(r, "inverse_dynamics", "tau", q=0, v=0, dv=0).item()
    assert hold == pytest.approx(3 * G * 0.5)
    assert value(r, "forward_dynamics", "dv", q=0, v=0, tau=hold) == pytest.approx(0, abs=1e-12)
    assert value(r, "forward_dynamics", "dv", q=0, v=0, tau=hold + 1).item() > 0


@line("Equations of motion")
def test_names_of_the_terms():
    r = sample("serial")
    x = random_ports(od.function(r, "inverse_dynamics"), r)
    q, v, dv = x["q"], x["v"], x["dv"]
    M, C = value(r, "mass_matrix", "M", q=q), value(r, "coriolis_matrix", "C", q=q, v=v)
    g, h = value(r, "gravity", "g", q=q), value(r, "bias", "h", q=q, v=v)
    assert relative(h, C @ v + g) < 1e-12
    assert relative(M @ dv + h, value(r, "inverse_dynamics", "tau", **x)) < 1e-12
    dM = value(r, "mass_matrix", "dM", order=1, q=q, v=v)
    assert relative(C + C.T, dM) < 1e-12
    assert np.array_equal(M, M.T)
    assert relative(value(r, "bias", "h", q=q, v=0 * v), g) < 1e-12  # nothing of gravity is in C
    assert not value(r, "coriolis_matrix", "C", q=q, v=0 * v).any()


@line("Fluids")
def test_what_a_fluid_does_is_in_the_terms_that_the_line_names():
    """A link on a slide along z, pushed by hand formulas; twists with angular parts first."""
    b = od.RobotBuilder("float")
    b.add_link("root")
    pushed = {"added_inertia": np.eye(6)[5] * 3.0, "drag": np.eye(6)[5] * 0.7, "quadratic_drag": np.eye(6)[5] * 0.4}
    b.add_body("link", "prismatic", "root", axis=(0, 0, 1), mass=2.0, joint="joint", **pushed)
    r, v = b.build(), -1.5
    assert float(od.function(r, "mass_matrix")(0)) == pytest.approx(2.0 + 3.0)
    assert float(od.function(r, "gravity")(0)) == pytest.approx(2.0 * G)
    assert float(od.function(r, "coriolis_matrix")(0, v)) == 0
    drag = 0.7 * v + 0.4 * abs(v) * v
    assert float(od.function(r, "bias")(0, v)) == pytest.approx(2.0 * G + drag)
    assert float(od.function(r, "inverse_dynamics")(0, v, 2.0)) == pytest.approx(5.0 * 2.0 + 2.0 * G + drag)
    with pytest.raises(od.OrderError, match="does not count what a fluid does"):
        od.function(r, "joint_torque_regressor")


@line("Coriolis matrix")
def test_the_default_is_that_of_christoffel_symbols():
    """Two links of point masses by hand; test_coriolis_choice has the others."""
    b = od.RobotBuilder("two")
    b.add_link("base")
    b.add_body("one", "revolute", "base", axis=(0, 0, 1), mass=1.0, com=(1, 0, 0), inertia=np.zeros((3, 3)))
    tip = {"mass": 1.0, "com": (1, 0, 0), "inertia": np.zeros((3, 3))}
    b.add_body("two", "revolute", "one", axis=(0, 0, 1), xyz=(1, 0, 0), **tip)
    r, (v1, v2), s = b.build(), (0.3, 0.8), -np.sin(0.7)
    expected = np.array([[s * v2, s * (v1 + v2)], [-s * v1, 0]])
    C = value(r, "coriolis_matrix", "C", q=[0.4, 0.7], v=[v1, v2])
    assert np.allclose(C, expected, atol=1e-14)
    Ys = value(r, "slotine_li_regressor", "Ys", q=[0.4, 0.7], v=[v1, v2], vr=[1, 0], dvr=[0, 0])
    g = value(r, "gravity", "g", q=[0.4, 0.7])
    assert np.allclose(Ys @ r.parameters - flat(g), expected[:, 0], atol=1e-14)


@line("Gravity")
def test_gravity_is_an_acceleration_in_the_root_frame():
    r = one(axis=(0, 0, 1), mass=1.0, com=(1, 0, 0))
    assert np.array_equal(r.gravity, [0, 0, -G])
    assert value(r, "gravity", "g", q=0.3) == pytest.approx(0)
    wall = r.with_gravity((0, -G, 0))  # mounted on a wall, y up
    assert value(wall, "gravity", "g", q=0) == pytest.approx(G)
    free = sample("floating")
    q = free.random_configuration(1)
    turned = free.integrate(q, np.r_[0.7, 0, 0, np.zeros(free.nv - 3)])
    for x in (q, turned):  # the root frame does not turn with the base
        p = value(free, "potential_energy", "U", q=x).item()
        assert p == pytest.approx(free.total_mass * G * value(free, "com", "c", q=x)[2].item())


@line("Energy")
def test_potential_energy_is_zero_at_the_root_and_gravity_is_its_gradient():
    r = one(axis=(0, -1, 0), mass=3.0, com=(0.5, 0, 0))
    U = od.function(r, "potential_energy")
    assert U(q=0)["U"] == pytest.approx(0)
    assert float(U(q=np.pi / 2)["U"]) == pytest.approx(3 * G * 0.5)
    slope = (float(U(q=0.4 + 1e-6)["U"]) - float(U(q=0.4 - 1e-6)["U"])) / 2e-6
    assert slope == pytest.approx(value(r, "gravity", "g", q=0.4).item(), rel=1e-8)
    T = value(r, "kinetic_energy", "T", q=0.4, v=2.0).item()
    assert T == pytest.approx(0.5 * value(r, "mass_matrix", "M", q=0.4).item() * 4)


@line("External wrenches")
def test_external_wrenches_act_on_bodies_in_the_axes_of_their_links():
    r = one(axis=(0, -1, 0), com=(1, 0, 0), mass=1.0)
    f = od.function(r, "inverse_dynamics", external_wrenches=True)
    q = np.pi / 2  # upright: the link's x is up
    push = f(q=q, v=0, dv=0, w_ext={"link": [0, 10, 0, 0, 0, 0]})["tau"]  # 10 Nm about the link's y
    assert float(push) == pytest.approx(10, abs=1e-9)  # a moment about -axis takes 10 Nm more of the drive
    force = f(q=0, v=0, dv=0, w_ext={"link": [0, 0, 0, 0, 0, 10]})["tau"]  # at the origin of the link's frame
    assert float(force) == pytest.approx(float(f(q=0, v=0, dv=0)["tau"]))
    n = np.cross([1, 0, 0], [0, 0, 10])  # the same force at the tip, 1 m out: it carries the weight and more
    lifted = f(q=0, v=0, dv=0, w_ext={"link": [*n, 0, 0, 10]})["tau"]
    assert float(lifted) == pytest.approx(G - 10)


@line("Representations")
def test_the_same_twist_in_three_representations():
    """A hinge about z at x = 1; its link's frame at q = 0.5."""
    r = one(axis=(0, 0, 1), xyz=(1, 0, 0))
    J = {
        x: value(r, "frame_jacobian", "J", options={"frame": "link", "representation": x}, q=0.5).ravel()
        for x in ("body", "spatial", "hybrid")
    }
    assert np.allclose(J["body"], [0, 0, 1, 0, 0, 0])
    assert np.allclose(J["hybrid"], [0, 0, 1, 0, 0, 0])
    assert np.allclose(J["spatial"], [0, 0, 1, 0, -1, 0])  # of the point of the link that is at the root's origin
    with pytest.raises(od.ShapeError, match="representation"):
        od.function(r, "frame_jacobian", frame="link")  # none is taken silently


@line("Partial derivatives")
def test_partials_by_q_are_by_a_step_on_the_tangent_space():
    r = sample("floating")
    f = od.function(r, "inverse_dynamics_partials")
    x = random_ports(f, r)
    D = f(**x)["dtau_dq"].full()
    assert D.shape == (r.nv, r.nv)
    step = np.zeros(r.nv)
    for k in (0, 4, r.nv - 1):
        step[:] = 0
        step[k] = 1e-6
        a, b = (value(r, "inverse_dynamics", "tau", **{**x, "q": r.integrate(x["q"], s * step)}) for s in (1, -1))
        assert relative((a - b).ravel() / 2e-6, D[:, k]) < 1e-7


@line("Armature")
def test_a_rotor_counts_with_the_square_of_its_ratio_in_every_term():
    plain, geared = one(), one(rotor_inertia=1e-4, gear_ratio=100)
    for quantity, port, x in (
        ("mass_matrix", "M", dict(q=0.3)),
        ("inverse_dynamics", "tau", dict(q=0.3, v=0, dv=1)),
    ):
        assert value(geared, quantity, port, **x) - value(plain, quantity, port, **x) == pytest.approx(1.0)
    tau = value(geared, "inverse_dynamics", "tau", q=0.3, v=0.2, dv=0.7)
    assert value(geared, "forward_dynamics", "dv", q=0.3, v=0.2, tau=tau) == pytest.approx(0.7)


@line("Friction")
def test_friction_counts_where_it_is_asked_for():
    r = one(axis=(0, 0, 1), damping=0.7)
    x = dict(q=0.1, v=0.7, dv=0)
    off, on = (value(r, "inverse_dynamics", "tau", options={"friction": f}, **x) for f in (False, True))
    assert value(r, "inverse_dynamics", "tau", **x) == off
    assert on - off == pytest.approx(0.49)
    dv = value(r, "forward_dynamics", "dv", options={"friction": True}, q=0.1, v=0.7, tau=on)
    assert dv == pytest.approx(0, abs=1e-12)


@line("Mimic joints")
def test_a_mimic_joint_has_no_coordinate():
    r = sample("mimic")
    assert r.nv == 2
    assert len(r.mimics) == 2
    assert len(r.bodies) == 4
    follower = r.mimics[0]
    assert follower.q_index == r.joint(follower.mimic.joint).q_index


@line("Root link")
def test_the_root_link_counts_when_it_floats():
    b = od.RobotBuilder("r")
    b.add_link("root", mass=5.0)
    b.add_body("arm", "revolute", "root", mass=2.0)
    assert b.build().total_mass == 2
    assert b.build(floating_base=True).total_mass == 7


@line("Inertial parameters")
def test_parameters_are_about_the_frame_and_inputs_about_the_centre_of_mass():
    r = one(mass=2.0, com=(0.5, 0, 0), tensor=(0.1, 0.01, 0.02, 0.2, 0.03, 0.25))  # xx, xy, xz, yy, yz, zz as in URDF
    expected = [2, 1, 0, 0, 0.1, 0.01, 0.2 + 0.5, 0.02, 0.03, 0.25 + 0.5]  # xx, xy, yy, xz, yz, zz
    assert np.allclose(r.parameters, expected)
    assert r.parameter_names[-6:] == tuple(f"link.{x}" for x in ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"))
    x = dict(q=0.3, v=0.4, dv=0.5)
    Y = value(r, "joint_torque_regressor", "Y", **x)
    assert np.allclose(Y @ r.parameters, value(r, "inverse_dynamics", "tau", **x).ravel())


@line("Limits")
def test_limits_that_are_not_given_are_infinite():
    r = one("revolute", lower=-1.0)
    assert r.limit("lower") == -1
    assert all(np.isinf(r.limit(k)) for k in ("upper", "velocity", "effort", "jerk"))


@line("Other libraries")
def test_conversions_go_there_and_back():
    x = np.arange(1.0, 7.0)
    assert np.allclose(flat(od.interop.linear_first(x)), [4, 5, 6, 1, 2, 3])
    assert np.allclose(flat(od.interop.wxyz(od.interop.xyzw([1, 2, 3, 4]))), [1, 2, 3, 4])
    pin = pytest.importorskip("pinocchio")
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = (
        f'<robot name="r"><link name="a">{body}</link><link name="b">{body}</link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    robot = od.load_urdf(text, floating_base=True)
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    to = od.interop.to_pinocchio(robot, model)
    q = robot.random_configuration(1)
    theirs = flat(to.q(q))
    assert np.allclose(theirs[:7], [*q[4:7], *q[1:4], q[0]])
    assert np.allclose(theirs[7:], [np.cos(q[7]), np.sin(q[7])])
    assert np.allclose(robot.difference(q, flat(to.from_q(theirs))), 0, atol=1e-12)
    v = np.arange(1.0, 8.0)
    assert np.allclose(flat(to.v(v, q=q)), [4, 5, 6, 1, 2, 3, 7])


@line("Numbers and symbols")
def test_one_function_takes_numbers_and_symbols():
    r = one()
    f = od.function(r, "mass_matrix")
    q = ca.SX.sym("q")
    expected = f(0.3)
    for x in (0.3, [0.3], np.array([[0.3]]), ca.DM(0.3)):
        assert f(x) == expected
    assert ca.Function("M", [q], [f(q)])(0.3) == pytest.approx(float(expected))
    y = ca.MX.sym("q")
    assert ca.Function("M", [y], [f(y)])(0.3) == pytest.approx(float(expected))


@line("Inertias that no body has")
def test_inertias_that_no_body_has_are_told():
    with pytest.warns(od.ModelWarning, match="link 'link': no real body has"):
        one(tensor=(0.1, 0, 0, 0.1, 0, 0.3))
    with pytest.raises(od.ModelError, match="link 'link'"):
        one(tensor=(0.1, 0, 0, 0.1, 0, -0.3), com=(0, 0, 0))
    b = od.RobotBuilder("one", check_inertia=False)
    b.add_link("root")
    b.add_body("link", "revolute", "root", joint="joint", axis=(0, 0, 1), mass=1.0, inertia=(0.1, 0, 0, 0.1, 0, -0.3))
    assert b.build().nv == 1


@line("Rounded numbers")
def test_rotations_are_rounded_unless_asked_not_to_be():
    """A quarter turn that is off by 4e-10: by default it is one."""
    for angle, snap, rounded in ((np.pi / 2 + 4e-10, None, True), (np.pi / 2 + 4e-10, 0, False), (1.5708, None, False)):
        b = od.RobotBuilder("turned")
        b.add_link("root")
        b.add_body("link", "revolute", "root", joint="joint", axis=(0, 0, 1), rpy=(angle, 0, 0), mass=1.0)
        r = b.build() if snap is None else b.build().with_snapped_angles(snap)
        R = np.abs(value(r, "frame_pose", "R", options={"frame": "link"}, q=0))
        assert bool(np.any((R > 0) & (R < 1e-5))) == (not rounded)
        assert np.abs(R - np.abs(rot(np.array([1.0, 0, 0]), angle))).max() < 1e-9


@line("Singular mass matrices")
def test_singular_mass_matrices_are_named():
    """Two links, all the mass in a point at the tip: M is singular where the arm is stretched, and there alone."""
    b = od.RobotBuilder("thin")
    b.add_link("root")
    b.add_body("upper", "revolute", "root", joint="shoulder", axis=(0, 1, 0))
    b.add_body("lower", "revolute", "upper", joint="elbow", axis=(0, 1, 0), xyz=(1, 0, 0), mass=1.0, com=(1, 0, 0))
    r = b.build()
    f = od.function(r, "forward_dynamics")
    assert np.isfinite(flat(f([0.1, 1.0], 0, 0))).all()
    with pytest.raises(od.ModelError, match="elbow"):
        f([0.1, 0.0], 0, 0)
