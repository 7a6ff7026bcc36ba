"""Laws that do not go together, words that are none, callables that fail: clear errors; errors of all motors; work."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import planar_arm

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.plan_costs import drawn_power, powers
from oc_dyn.robots import linkages

MATRIX = [[500.0, 60.0], [60.0, 400.0]]


def two(**more):
    return el.elastic_robot(planar_arm(2), **{"stiffness": 500.0, "motor_inertia": 0.3, **more})


def rates(robot, x, u=(1.0, 2.0)):
    return np.ravel(el.plant(robot).rates(x, u, []))


# -- laws --------------------------------------------------------------------------------------------------------------


def test_one_play_for_a_spring():
    with pytest.raises(od.ModelError, match="joint1 has several Backlash laws; give one"):
        two().with_friction(laws={"springs": {"joint1": [el.Backlash(0.01), el.Backlash(0.01)]}})
    assert two().with_friction(laws={"springs": el.Backlash(0.01)}).effects[1].name == "joint2"


def test_play_of_springs_across_joints_is_refused():
    across = two(across=lambda q, theta: (theta[0] - q[1]) ** 2)
    for robot in (two(stiffness=MATRIX), across):
        with pytest.raises(od.ModelError, match="Backlash of 'joint1' is for a spring of one joint"):
            robot.with_friction(laws={"springs": {"joint1": el.Backlash(0.01)}})


@pytest.mark.parametrize("side", ["motors", "links"])
def test_load_in_play_is_zero_and_beyond_it_that_of_the_spring(side):
    """Friction in proportion to the load alone: level = load |tau|, by hand."""
    law, play = el.Stribeck(0.0, load=0.2, smoothing=1e-3), el.Backlash(0.02, 1e-4)
    plain = two().with_friction(laws={"springs": play})
    robot = two().with_friction(laws={side: law, "springs": play})
    M = np.array(od.function(robot.links, "mass_matrix")([0.0, 0.0])) if side == "links" else 0.3 * np.eye(2)
    rows = slice(2, 4) if side == "links" else slice(6, 8)
    for z, load in ((0.008, 0.0), (0.05, 500 * 0.04), (-0.05, -500 * 0.04)):
        x = np.array([0.0, 0.0, 1.0, 1.0, z, z, 1.0, 1.0])
        torque = M @ (rates(plain, x) - rates(robot, x))[rows]
        assert torque == pytest.approx(0.2 * abs(load) * np.ones(2), abs=1e-3)


def test_load_counts_springs_across_joints():
    law = el.Stribeck(0.0, load=0.2, smoothing=1e-3)
    z = np.array([0.03, -0.01])
    x = np.concatenate([[0.2, 0.1], [1.0, 1.0], [0.2, 0.1] + z, [1.0, 1.0]])
    robot = two(stiffness=MATRIX)
    torque = 0.3 * (rates(robot, x) - rates(robot.with_friction(laws={"motors": law}), x))[6:]
    assert torque == pytest.approx(0.2 * np.abs(MATRIX @ z), rel=1e-3)


def test_load_of_a_motor_is_its_own_springs():
    """Of a pair that pulls against itself the joint's torque is small, and those of the motors are not."""
    pair = el.AntagonisticSprings(lambda z: 20 * (ca.exp(8 * z) - 1))
    robot = el.elastic_robot(planar_arm(1), pair, motor_inertia=0.3)
    with_law = robot.with_friction(laws={"motors": el.Stribeck(0.0, load=0.2, smoothing=1e-3)})
    x = np.array([0.0, 0.0, 0.1, -0.1, 1.0, 1.0])
    taken = 0.3 * (np.ravel(el.plant(robot).rates(x, [0, 0], [0, 0])) - np.ravel(
        el.plant(with_law).rates(x, [0, 0], [0, 0])))[4:]  # fmt: skip
    assert taken == pytest.approx(0.2 * 20 * (np.exp(0.8) - 1) * np.ones(2), rel=1e-3)


@pytest.mark.parametrize("laws", [el.LuGre(1, 1, 1), [el.LuGre(1, 1, 1)], "motors", 3])
def test_laws_are_a_mapping(laws):
    with pytest.raises(od.ModelError, match="laws is .*, expected {side: law"):
        two().with_friction(laws=laws)


def test_what_knows_a_model_alone_refuses_laws():
    damped = two(damping=1.0)
    rough = damped.with_friction(laws={"motors": el.Stribeck(1.0)})
    still = el.reference(damped, lambda t: ca.SX([0.1, 0.2]), duration=1.0)
    ends = {"q_start": [0, 0], "q_goal": [1, 1], "motor_torque": 50.0}
    for name, make in {
        "damped_motion": lambda: el.damped_motion(rough, still),
        "planning arm_2r": lambda: el.plan_elastic(rough, **ends),
        "exciting_motion": lambda: el.exciting_motion(rough, period=5.0),
        "outputs_along": lambda: el.outputs_along(rough, None, [0.0]),
    }.items():
        with pytest.raises(od.ModelError, match=f"{name}: Stribeck at joint1.* for simulation alone"):
            make()


def test_checks_of_plans_step_as_fast_as_friction_of_links():
    """No mode of the linearised plant is faster than the rate by which a plan's check chooses its steps."""
    from oc_dyn.elastic.plan_check import _rate

    for words in ({"link_damping": 900.0}, {"stiffness": {"joint1": 500.0}, "motor_damping": [0.0, 900.0]}):
        robot = two(**words)
        p, m = el.plant(robot), len(robot.theta_names)
        x, u = ca.SX.sym("x", p.size), ca.SX.sym("u", p.controls)
        A = ca.Function("A", [x, u], [ca.jacobian(p.rates(x, u, []), x)])(np.zeros(p.size), np.zeros(p.controls))
        first = {"q": np.zeros(2), "theta": np.zeros(m)}
        fastest = np.abs(np.linalg.eigvals(A.full())).max()
        assert 0.5 * fastest < _rate(robot, first, None) < 10 * fastest


# -- errors of motors --------------------------------------------------------------------------------------------------


def test_errors_of_motors_are_those_of_all_motors():
    mixed = two(stiffness={"joint2": 300.0}, motor_inertia=[0.1, 0.2])
    real = mixed.with_errors(motor_inertia=0.25, mass={"link1": 0.1})
    assert real.links.joint("joint1").armature == pytest.approx(0.125)
    assert np.diag(real.motor_inertia) == pytest.approx([0.25])
    other = two(stiffness={"joint2": 300.0}, motor_inertia=[0.125, 0.25]).with_errors(mass={"link1": 0.1})
    x = np.array([0.1, 0.2, 1.0, 1.0, 0.3, 0.4])
    assert rates(real, x) == pytest.approx(rates(other, x), rel=1e-12)
    more = {"motor_inertia": 0.3, "stiffness_inertia": 2.0}
    driven = el.elastic_robot(planar_arm(1), el.VariableSpring(), **more)
    assert driven.with_errors(motor_inertia=-0.2).stiffness_inertia == pytest.approx([1.6])


def test_errors_of_motors_of_rigid_drives_in_loops():
    leg = linkages.knee_linkage_leg()
    robot = el.elastic_robot(leg, {"hip": 100.0}, actuated=("hip", "crank"), motor_inertia={"hip": 0.2})
    own = robot.links.tree.joint("crank").armature
    assert own == pytest.approx(2e-3)
    assert robot.with_errors(motor_inertia=0.5).links.tree.joint("crank").armature == pytest.approx(3e-3)
    assert robot.with_errors().links is robot.links


def test_errors_of_stiffness_by_joint_need_springs_of_the_joint():
    robot = two(stiffness=MATRIX)
    with pytest.raises(od.ModelError, match="joint1 has no spring of its own"):
        robot.with_errors(stiffness={"joint1": 0.1})
    q, theta = np.zeros(2), np.array([0.1, 0.2])
    stiffer = robot.with_errors(stiffness=0.1)
    assert float(stiffer.across.value(q, theta)) == pytest.approx(1.1 * float(robot.across.value(q, theta)))


# -- work at the rotors ------------------------------------------------------------------------------------------------


def test_work_counts_at_the_rotors_of_gears_that_mix_motors():
    """A differential: both joints' powers cancel, and so do not the motors'."""

    class Task:
        objective = "work"
        elastic = two(motor_inertia=None, rotor_inertia=1e-3, gear_ratio=[[10.0, 10.0], [10.0, -10.0]])

    tau_m, speed = np.array([[3.0, 1.0, 4.0], [-2.0, 5.0, 4.0]]), np.array([[1.0, -1.0, 1.0], [2.0, 0.5, -1.0]])
    N = np.array(Task.elastic.gear)
    at_rotors = np.linalg.solve(N.T, tau_m) * (N @ speed)
    found = np.array(drawn_power(Task, ca.DM(tau_m), ca.DM(speed)))
    assert found == pytest.approx(at_rotors, rel=1e-12)
    assert found.sum(axis=0) == pytest.approx((tau_m * speed).sum(axis=0), rel=1e-12)  # in all it is the same
    assert np.maximum(found, 0).sum() != pytest.approx(np.maximum(tau_m * speed, 0).sum(), rel=1e-3)
    outputs = {"tau_m": tau_m.T, "q": np.zeros((3, 2)), "v": np.zeros((3, 2)), "dtheta": speed.T}
    assert powers(Task, outputs).T == pytest.approx(at_rotors, rel=1e-12)


@pytest.mark.slow
def test_planned_work_is_that_of_the_rotors():
    N = np.array([[10.0, 10.0], [10.0, -10.0]])
    robot = two(motor_inertia=None, rotor_inertia=1e-3, gear_ratio=N)
    words = {"motor_torque": 100.0, "objective": "work", "duration": 0.8, "nodes": 16, "interior": 1}
    plan = el.plan_elastic(robot, [0, 0], [0.4, -0.9], **words)
    t = np.linspace(0, 0.8, 20001)
    out = plan.outputs(t)
    at_rotors = np.linalg.solve(N.T, out["tau_m"].T) * (N @ out["dtheta"].T)
    at_joints = out["tau_m"].T * out["dtheta"].T
    rotors, joints = (np.trapezoid(np.maximum(x, 0).sum(axis=0), t) for x in (at_rotors, at_joints))
    assert plan.objective == pytest.approx(rotors, rel=1e-3)
    assert abs(joints - rotors) > 0.2 * rotors


# -- words and callables -----------------------------------------------------------------------------------------------


def raising(error):
    def law(*arguments):
        raise error

    return law


@pytest.mark.parametrize(
    "make",
    [
        lambda: el.NonlinearSpring(None),
        lambda: el.VariableSpring(3),
        lambda: el.AntagonisticSprings(2.0),
        lambda: el.AntagonisticSprings(lambda z: ca.exp(z) - 1, 3),
        lambda: el.NonlinearSpring.from_potential("z"),
        lambda: el.NonlinearSpring.from_inverse(None),
    ],
)
def test_laws_of_springs_are_callable(make):
    with pytest.raises(od.ModelError, match="its law is .*, expected a casadi.Function or callable of"):
        make()


@pytest.mark.parametrize("error", [AttributeError("x"), KeyError("x"), ZeroDivisionError("x"), IndexError("x")])
def test_callables_that_fail_are_named(error):
    name = type(error).__name__
    for given in ("parallel", "across", "coupling"):
        with pytest.raises(od.ModelError, match=f"{given}: expected .*{name}"):
            two(**{given: raising(error)})
    for make in (el.NonlinearSpring, el.VariableSpring, el.NonlinearSpring.from_potential):
        with pytest.raises(od.ModelError, match=f"its law fails on .*{name}"):
            make(raising(error))


def test_friction_of_joints_is_a_word():
    for value in (np.array([1, 2]), [1, 2], 2.0):
        with pytest.raises(od.ModelError, match="joint_friction is .*, expected"):
            two(joint_friction=value)


def test_words_of_plans_are_checked():
    for given, words in (
        ({"say": 3}, "say is 3, expected a function"), ({"limits": 3}, "limits is 3, expected od.Limits"),
    ):  # fmt: skip
        with pytest.raises(od.ShapeError, match=words):
            el.plan_elastic(two(), [0, 0], [1, 1], motor_torque=50.0, **given)
    for word in ("objective", "solver"):
        with pytest.raises(od.errors.ALL, match=f"{word}.*array"):
            el.plan_elastic(two(), [0, 0], [1, 1], motor_torque=50.0, **{word: np.array([1, 2])})
    with pytest.raises(od.ShapeError, match="with_rotors: got Robot, expected an ElasticRobot"):
        el.with_rotors(planar_arm(2))
    with pytest.raises(od.ShapeError, match="with_rotors: carried is 3"):
        el.with_rotors(two(), carried=3)
    with pytest.raises(od.ShapeError, match="got Robot, expected an ElasticRobot"):
        el.plan_elastic(planar_arm(2), [0, 0], [1, 1], motor_torque=50.0)
