"""The embedded robots: geometry, parameters and limits against their sources, closed forms and another library."""

import importlib.metadata
import warnings

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import robots
from oc_dyn.errors import ShapeError, UnknownName

GRAVITY = 9.81


def pose(robot, q, frame):
    C = np.array(od.function(robot, "frame_pose", frame=frame)(q=q)["C"])
    return C[:3, :3], C[:3, 3]


def torque(robot, q, v=None, dv=None):
    zero = np.zeros(robot.nv)
    f = od.function(robot, "inverse_dynamics")
    return np.array(f(q=q, v=zero if v is None else v, dv=zero if dv is None else dv)["tau"]).ravel()


def mass_matrix(robot, q):
    return np.array(od.function(robot, "mass_matrix")(q=q)["M"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [*robots.names(), "chain:12", "tree:20"])
def test_every_robot_is_sound(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # inertia that no real body has would warn
        robot = robots.by_name(name)
    for body in robot.bodies:
        assert body.inertia.mass > 0
        moments = np.linalg.eigvalsh(body.inertia.tensor_com)
        assert moments[0] > 0
        assert moments[2] < moments[0] + moments[1]
    for seed in range(3):
        M = mass_matrix(robot, robot.random_configuration(seed))
        assert np.linalg.eigvalsh(0.5 * (M + M.T))[0] > 1e-5
    assert robot.name in str(robot)


def test_by_name():
    assert robots.by_name("panda").name == "panda"
    assert robots.by_name("tree:20").nv == 20
    for wrong in ("pnda", "panda:3", "tree:", "tree:0", "tree:x", "tree:-1"):
        with pytest.raises(UnknownName):
            robots.by_name(wrong)
    with pytest.raises(UnknownName, match="did you mean 'panda'"):
        robots.by_name("pandas")


# -- Panda ----------------------------------------------------------------------------------------------------


def test_panda_geometry_at_zero():
    R, p = pose(robots.panda(), np.zeros(7), "panda_link8")
    np.testing.assert_allclose(p, [0.088, 0, 0.333 + 0.316 + 0.384 - 0.107], atol=1e-14)
    np.testing.assert_allclose(R, np.diag([1.0, -1.0, -1.0]), atol=1e-14)


@pytest.mark.parametrize("make, prefix", [(robots.panda, "panda"), (robots.fr3, "fr3")])
def test_panda_frames_against_the_description_of_another_library(make, prefix):
    pin = pytest.importorskip("pinocchio")
    try:
        files = importlib.metadata.files("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    urdf = next(f for f in files if f.name == "panda.urdf").locate()
    model = pin.buildModelFromUrdf(str(urdf))
    data, robot = model.createData(), make()
    for seed in range(5):
        q = robot.random_configuration(seed)
        pin.framesForwardKinematics(model, data, np.concatenate([q, [0, 0]]))
        for i in range(9):
            theirs = data.oMf[model.getFrameId(f"panda_link{i}")]
            R, p = pose(robot, q, f"{prefix}_link{i}")
            np.testing.assert_allclose(R, theirs.rotation, atol=1e-9)
            np.testing.assert_allclose(p, theirs.translation, atol=1e-9)


# q = -(a/w) cos(w t), a published trajectory for this arm; torques from an independent program, tensors about the
# centre of mass
AMPLITUDE = np.array([2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5])
FREQUENCY = np.array(
    [
        1.7073873117335832,
        3.079992797637052,
        2.1084514453622774,
        3.5903916041026207,
        1.4183262544423447,
        2.285625793808507,
        5.927533308659986,
    ]
)
TORQUES_AT_1S = [
    (3.7806, 36.8123, -8.4197, -9.6742, -1.3106, 1.5764, 0.0017),
    (-16.0530, 82.4014, -0.8767, -37.3180, -4.4552, -4.8666, 0.1194),
    (-189.404, -180.875, 196.772, -72.037, 22.913, -42.777, 2.084),
    (145.65, -2259.91, 534.37, 785.78, 291.85, 132.25, -4.50),
]
ROUNDING = (5e-5, 5e-5, 5e-4, 5e-3)


def on_trajectory(t):
    """q and its derivatives of order 1 to 5."""
    a, w = AMPLITUDE, FREQUENCY
    out = {"q": -a / w * np.cos(w * t)}
    for k, name in enumerate(("v", "dv", "d2v", "d3v", "d4v")):
        out[name] = a * w**k * np.sin(w * t + k * np.pi / 2)
    return out


def test_panda_torques_and_their_rates_at_known_points():
    f = od.function(robots.panda(), "inverse_dynamics", order=3)
    out = f(**on_trajectory(1.0))
    for port, values, rounding in zip(("tau", "dtau", "d2tau", "d3tau"), TORQUES_AT_1S, ROUNDING, strict=True):
        np.testing.assert_allclose(np.array(out[port]).ravel(), values, atol=1.01 * rounding)
    start = f(**on_trajectory(0.0))  # the motion is even in time there
    assert np.abs(np.array(start["dtau"])).max() < 1e-10
    assert np.abs(np.array(start["d3tau"])).max() < 1e-8
    assert np.abs(np.array(start["tau"])).max() > 1


def test_panda_parameters_and_limits():
    robot = robots.panda()
    assert [j.name for j in robot.joints] == [f"panda_joint{i}" for i in range(1, 8)]
    assert robot.total_mass == pytest.approx(4.970684 + 0.646926 + 3.228604 + 3.587895 + 1.225946 + 1.666555 + 0.735522)
    last = robot.body("panda_link7").inertia
    np.testing.assert_allclose(last.com, [1.0517e-2, -4.252e-3, 6.1597e-2], atol=1e-15)
    np.testing.assert_allclose(last.tensor_com[0], [1.2516e-2, -4.28e-4, -1.196e-3], atol=1e-15)
    np.testing.assert_allclose(last.tensor_com[1:, 1:], [[1.0027e-2, -7.41e-4], [-7.41e-4, 4.815e-3]], atol=1e-15)
    for kind, values in robots.panda_limits().items():
        np.testing.assert_array_equal(robot.limit(kind), values)
    np.testing.assert_array_equal(robot.limit("effort"), [87] * 4 + [12] * 3)
    np.testing.assert_array_equal(robot.limit("jerk"), [7500, 3750, 5000, 6250, 7500, 10000, 10000])
    np.testing.assert_array_equal(robot.limit("effort_rate"), [1000] * 7)
    assert robot.velocity_limits is None


def test_panda_of_the_vendors_description():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = robots.panda("vendor")
    assert robot.total_mass == pytest.approx(2.7907 + 2.5420 + 2.2513 + 2.2037 + 2.2855 + 1.353 + 0.35973)
    link = robot.body("panda_link4").inertia
    np.testing.assert_allclose(link.com, [-0.05113, 0.05825, 0.01698], atol=1e-15)
    np.testing.assert_allclose(link.tensor_com[1], [-0.00339591957, 0.00649543136, -0.00181477884], atol=1e-15)
    np.testing.assert_array_equal(robot.limit("effort"), robots.panda().limit("effort"))
    with pytest.raises(UnknownName, match="did you mean 'vendor'"):
        robots.panda("vendors")


# -- FR3 ------------------------------------------------------------------------------------------------------


def test_fr3_velocity_limits_at_known_points():
    q = np.array([2.6, 0.0, 0.0, -1.5, 0.0, 2.0, 0.0])
    lower, upper = robots.fr3().velocity_limits(q)
    assert upper[0] == pytest.approx(min(2.62, max(0, -0.30 + np.sqrt(max(0, 12 * (2.7501 - 2.6))))))
    assert upper[0] == pytest.approx(1.04, abs=5e-3)
    np.testing.assert_allclose(upper[1:], [2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
    # joint 6, whose range is not symmetric: 1.4591 rad above its lower end
    assert lower[5] == pytest.approx(0.35 - np.sqrt(11 * (2.0 - 0.54092)))
    np.testing.assert_array_equal(lower[[0, 1, 2, 3, 4, 6]], [-2.62, -2.62, -2.62, -2.62, -5.26, -5.26])


def test_fr3_velocity_limits_vanish_at_the_ends_and_have_derivatives_everywhere():
    limits = robots.fr3_limits()
    q = ca.SX.sym("q", 7)
    lower, upper = robots.fr3_velocity_limits(q)
    slope = ca.Function("slope", [q], [ca.jacobian(ca.vertcat(lower, upper), q)])
    for t in np.linspace(-0.2, 1.2, 57):  # beyond the ends as well, where a solver may look
        at = limits["lower"] + t * (limits["upper"] - limits["lower"])
        low, up = robots.fr3_velocity_limits(at)
        assert np.all(low <= 0)
        assert np.all(up >= 0)
        assert np.all(up <= limits["velocity"])
        assert np.all(low >= -limits["velocity"])
        assert np.all(np.isfinite(np.array(slope(at))))
    np.testing.assert_array_equal(robots.fr3_velocity_limits(limits["upper"] + 0.01)[1], np.zeros(7))
    np.testing.assert_array_equal(robots.fr3_velocity_limits(limits["lower"] - 0.01)[0], np.zeros(7))


def test_fr3_velocity_limits_of_numbers_and_symbols_are_the_same():
    at = robots.fr3().random_configuration(3)
    numbers = np.concatenate(robots.fr3_velocity_limits(at))
    for kind in (ca.SX, ca.MX):
        q = kind.sym("q", 7)
        f = ca.Function("f", [q], [ca.vertcat(*robots.fr3_velocity_limits(q))])
        np.testing.assert_array_equal(np.array(f(at)).ravel(), numbers)
    assert isinstance(robots.fr3_velocity_limits(list(at))[0], np.ndarray)
    with pytest.raises(ShapeError, match="got 6 angles, expected 7"):
        robots.fr3_velocity_limits(np.zeros(6))


def test_fr3_box_holds_within_the_limits_that_depend_on_position():
    box = robots.fr3_limits(constant_limits=True)
    assert robots.fr3(constant_limits=True).velocity_limits is None
    np.testing.assert_array_equal(robots.fr3(constant_limits=True).limit("velocity"), box["velocity"])
    for edge in ("lower", "upper"):
        low, up = robots.fr3_velocity_limits(box[edge])
        assert np.all(up >= box["velocity"] - 2e-3)
        assert np.all(low <= -box["velocity"] + 2e-3)


def test_fr3_limits_survive_locking():
    robot = robots.fr3()
    q = robot.random_configuration(1)
    held = robot.locked({"fr3_joint2": q[1]}).locked({"fr3_joint6": q[5]})
    keep = [0, 2, 3, 4, 6]
    for side, full in zip(held.velocity_limits(q[keep]), robot.velocity_limits(q), strict=True):
        np.testing.assert_array_equal(side, full[keep])
    np.testing.assert_array_equal(held.limit("effort"), robot.limit("effort")[keep])


# -- aerial manipulator ---------------------------------------------------------------------------------------


def test_aerial_manipulator_structure():
    robot = robots.aerial_manipulator()
    assert (robot.nq, robot.nv, len(robot.bodies)) == (13, 12, 7)
    assert [b.parent for b in robot.bodies] == [0, 1, 2, 3, 1, 5, 6]
    assert robot.joints[0].kind == "free"
    for arm, side in (("left", 1), ("right", -1)):
        R, p = pose(robot, robot.neutral(), f"{arm}_tool")
        np.testing.assert_allclose(R, np.eye(3), atol=1e-15)
        np.testing.assert_allclose(p, [0, 0.12 * side, -0.08 - 0.25 - 0.20 - 0.15], atol=1e-15)


def test_hovering_takes_equal_thrusts():
    robot, W = robots.aerial_manipulator(), robots.propellers()
    thrusts = np.linalg.solve(W, torque(robot, robot.neutral())[:6])
    np.testing.assert_allclose(thrusts, robot.total_mass * GRAVITY / (6 * np.cos(np.radians(30))), rtol=1e-12)
    assert np.linalg.cond(W) < 10  # every wrench within reach


def test_propellers_against_the_wrench_of_each_at_its_frame():
    robot, W = robots.aerial_manipulator(), robots.propellers()
    for i in range(6):
        R, p = pose(robot, robot.neutral(), f"propeller{i + 1}")
        assert np.arccos(R[2, 2]) == pytest.approx(np.radians(30))
        assert np.arctan2(p[1], p[0]) % (2 * np.pi) == pytest.approx(i * np.pi / 3, abs=1e-12)
        axis, sense = R @ [0, 0, 1], -1 if i % 2 == 0 else 1
        np.testing.assert_allclose(W[3:, i], axis, atol=1e-12)
        np.testing.assert_allclose(W[:3, i], np.cross(p, axis) + 0.016 * sense * axis, atol=1e-12)
    turn = np.kron(np.eye(2), np.array([[-0.5, -np.sqrt(0.75), 0], [np.sqrt(0.75), -0.5, 0], [0, 0, 1]]))
    np.testing.assert_allclose(turn @ W, np.roll(W, -2, axis=1), atol=1e-12)  # a third of a turn maps it to itself


# -- arms of two joints against textbook formulas -------------------------------------------------------------


def two_links(q, v, dv, m, l, c, I, horizontal):
    """Torques of a planar arm of two equal links; q = 0 horizontal or hanging, positive away from gravity."""
    (q1, q2), (v1, v2) = q, v
    M12 = I + m * (c * c + l * c * np.cos(q2))
    M = np.array([[2 * I + m * (2 * c * c + l * l + 2 * l * c * np.cos(q2)), M12], [M12, I + m * c * c]])
    h = m * l * c * np.sin(q2)
    s = np.cos if horizontal else np.sin
    g2 = m * c * GRAVITY * s(q1 + q2)
    g = np.array([m * (c + l) * GRAVITY * s(q1) + g2, g2])
    return M @ dv + np.array([-h * (2 * v1 * v2 + v2 * v2), h * v1 * v1]) + g


@pytest.mark.parametrize(
    "make, m, l, radius, horizontal",
    [
        (robots.planar_2r, 10.0, 0.5, 0.01, True),
        (robots.double_pendulum, 1.0, 1.0, 0.01, False),
        (lambda: robots.planar_arm(2, 0.4, 3.0), 3.0, 0.4, 0.0, True),
    ],
)
def test_two_joint_arms(make, m, l, radius, horizontal):
    robot = make()
    I = m * (3 * radius**2 + l * l) / 12
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, dv = rng.normal(size=(3, 2))
        expected = two_links(q, v, dv, m, l, l / 2, I, horizontal)
        np.testing.assert_allclose(torque(robot, q, v, dv), expected, rtol=1e-12, atol=1e-12)
        q1, q12 = q[0], q[0] + q[1]
        x, z = (l * (np.cos(q1) + np.cos(q12)), l * (np.sin(q1) + np.sin(q12)))
        tip = [x, 0, z] if horizontal else [z, 0, -x]
        np.testing.assert_allclose(pose(robot, q, "tip")[1], tip, atol=1e-14)


def test_planar_arm_of_any_size():
    assert robots.planar_arm(1).nv == 1
    assert pose(robots.planar_arm(5, 0.3), np.zeros(5), "tip")[1] == pytest.approx([1.5, 0, 0])
    assert robots.planar_arm(name="thrower").name == "thrower"
    for wrong in (0, True, 1.5, "2"):
        with pytest.raises(ShapeError, match="planar_arm: got n ="):
            robots.planar_arm(wrong)


# -- chains and trees -----------------------------------------------------------------------------------------


def test_tree_fills_breadth_first():
    robot = robots.tree(9, branching=3)
    parent = {b.name: robot.bodies[b.parent - 1].name if b.parent else "base" for b in robot.bodies}
    assert parent == {
        **{"link1": "base", "link2": "link1", "link3": "link1", "link4": "link1"},
        **{"link5": "link2", "link6": "link2", "link7": "link2", "link8": "link3", "link9": "link3"},
    }
    assert [b.parent for b in robots.chain(5).bodies] == [0, 1, 2, 3, 4]


def test_chains_are_repeatable_and_nested():
    np.testing.assert_array_equal(robots.chain(6, seed=4).parameters, robots.chain(6, seed=4).parameters)
    np.testing.assert_array_equal(robots.chain(9, seed=4).parameters[:60], robots.chain(6, seed=4).parameters)
    assert np.all(robots.chain(6, seed=4).parameters != robots.chain(6, seed=5).parameters)
    np.testing.assert_array_equal(robots.tree(8, 1).parameters, robots.chain(8).parameters)
    for wrong in (0, -1, 2.5):
        with pytest.raises(ValueError, match="whole numbers"):
            robots.chain(wrong)
    with pytest.raises(ValueError, match="branching = 0"):
        robots.tree(4, 0)
