"""What an elastic robot is made of, and what is refused."""

import pickle

import casadi as ca
import numpy as np
import pytest
from elastic_arms import ARMS, S3, arm, planar_arm

import oc_dyn as od
from oc_dyn import elastic as el


def _motorised(armature=0.0):
    b = od.RobotBuilder("one")
    b.add_link("base")
    b.add_body("link", "revolute", "base", joint="hinge", mass=1.0, com=(0.3, 0, 0), armature=armature)
    return b.build()


def test_reflected_inertia_counts_once_and_by_the_square_of_the_ratio():
    e = el.elastic_robot(planar_arm(2), 500.0, rotor_inertia=5e-6, gear_ratio=100)
    assert np.allclose(e.motor_inertia, 0.05 * np.eye(2))
    N = np.array([[100.0, 20.0], [0.0, 120.0]])  # motor speeds = N joint speeds
    e = el.elastic_robot(planar_arm(2), 500.0, rotor_inertia=5e-6, gear_ratio=N)
    G = np.linalg.inv(N)
    assert np.allclose(e.motor_inertia, np.linalg.inv(G).T @ (5e-6 * np.eye(2)) @ np.linalg.inv(G))
    tau, speed = np.array([3.0, -1.0]), np.array([0.7, 0.2])
    assert e.rotor_torque(tau) @ e.rotor_speed(speed) == pytest.approx(tau @ speed)  # the gear loses no power


def test_an_armature_is_the_motors_and_is_not_counted_twice():
    with pytest.raises(od.ModelError, match="twice"):
        el.elastic_robot(_motorised(0.2), 100.0, motor_inertia=0.1)
    e = el.elastic_robot(_motorised(0.2), 100.0)
    assert e.motor_inertia == pytest.approx(0.2)
    assert float(od.function(e.links, "mass_matrix")(q=0)["M"]) == pytest.approx(0.09)  # without the rotor
    assert float(od.function(e.robot, "mass_matrix")(q=0)["M"]) == pytest.approx(0.29)
    # at a rigid joint it stays with the link
    two = el.elastic_robot(planar_arm(2), {"joint2": 300.0}, motor_inertia={"joint1": 0.4, "joint2": 0.2})
    M = [np.array(od.function(r, "mass_matrix")(q=[0.1, 0.2])["M"]) for r in (two.links, planar_arm(2))]
    assert np.allclose(M[0] - M[1], np.diag([0.4, 0.0]))
    assert (two.theta_names, two.motor_names, two.rigid) == (("joint2",), ("joint1", "joint2"), (0,))


def test_stiffness_is_read_in_every_form():
    a = planar_arm(2)
    for given in (500.0, [500.0, 500.0], {"joint1": 500.0, "joint2": 500.0}, el.LinearSpring(500.0)):
        assert np.array_equal(el.elastic_robot(a, given, motor_inertia=0.1).linear_stiffness(), [500.0, 500.0])
    for given in ([500.0, np.inf], {"joint1": 500.0}, {"joint1": 500.0, "joint2": np.inf}):
        assert el.elastic_robot(a, given, motor_inertia=0.1).rigid == (1,)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"stiffness": [500.0]}, "1 values"),
        ({"stiffness": -3.0}, "positive"),
        ({"stiffness": np.inf}, "no joint is elastic"),
        ({"motor_inertia": None}, "no motor inertia for joint1, joint2"),
        ({"motor_inertia": [0.1, 0.2, 0.3]}, "expected 2: joint1, joint2"),
        ({"motor_inertia": 0.0}, "must be positive"),
        ({"motor_inertia": [[0.1, 0.2], [0.0, 0.1]]}, "not symmetric"),
        ({"motor_inertia": [[0.1, 0.2], [0.2, 0.1]]}, "not positive definite"),
        ({"rotor_inertia": 1e-5}, "both given"),
        ({"motor_friction": -1.0}, "at least 0"),
        ({"damping": -1.0}, "at least 0"),
        ({"stiffness_inertia": 0.1}, "VariableSpring"),
        ({"coupling": S3}, r"expected \(2, 2\)"),
        ({"coupling": [[0, 0], [0.1, 0]]}, "strictly upper triangular"),
        ({"coupling": [[0, 5.0], [0, 0]]}, "kinetic energy is not positive"),
    ],
)
def test_wrong_numbers_are_refused_with_the_reason(options, words):
    with pytest.raises(od.ModelError, match=words):
        el.elastic_robot(planar_arm(2), **{"stiffness": 500.0, "motor_inertia": 0.1, **options})


def test_several_problems_come_at_once():
    with pytest.raises(od.ModelError) as caught:
        el.elastic_robot(planar_arm(2), 500.0, motor_inertia=[0.1], motor_damping=[1, 2, 3], motor_friction=-1.0)
    assert len(caught.value.problems) >= 2


def test_unknown_names_springs_of_free_joints_and_other_things_are_refused():
    a = planar_arm(2)
    with pytest.raises(od.UnknownName, match="joint1"):
        el.elastic_robot(a, {"joint9": 500.0}, motor_inertia=0.1)
    with pytest.raises(od.UnknownName, match="motor_inertia"):
        el.elastic_robot(a, 500.0, motor_inertia={"elbow": 0.1})
    with pytest.raises(od.UnknownName, match="root_joint"):
        el.elastic_robot(od.robots.aerial_manipulator(), {"root_joint": 500.0}, motor_inertia=0.1)
    with pytest.raises(od.ModelError, match="expected a Robot"):
        el.elastic_robot("panda", 500.0, motor_inertia=0.1)


def test_laws_without_a_slope_or_a_value_are_refused():
    with pytest.raises(od.ModelError, match="no slope"):
        el.NonlinearSpring(lambda z: z**3)
    assert el.NonlinearSpring(lambda z: z**3, guess=0.1).motors == ("",)
    with pytest.raises(od.ModelError, match="no finite number"):
        el.NonlinearSpring(lambda z: ca.log(-z))
    with pytest.raises(od.ModelError, match="no slope"):
        el.AntagonisticSprings(lambda z: 100 * z)  # linear springs: the stiffness cannot be varied


def test_quantities_say_what_they_are_of():
    e = arm("linear")
    with pytest.raises(od.ModelError, match="its attribute links"):
        od.function(e, "inverse_dynamics")
    assert od.function(e.links, "inverse_dynamics").n_out() == 1
    for quantity in od.quantities("elastic robot"):
        with pytest.raises(od.ModelError, match="elastic_robot"):
            od.function(e.robot, quantity)
        with pytest.raises(od.ModelError, match="elastic_robot"):
            od.ports(e.robot, quantity)
    assert not set(od.quantities("robot")) & set(od.quantities("elastic robot"))


def test_continuity_asked_for():
    assert [arm("linear").continuity(x) for x in ("bounded torque", "torque", "torque_rate")] == [3, 4, 5]
    for n in (1, 2, 3):
        S = np.triu(np.full((n, n), 0.01), 1)
        e = el.elastic_robot(planar_arm(n), 500.0, motor_inertia=0.3, coupling=S)
        assert e.flat_order() == (2 * (n + 1) if n > 1 else 4)
        assert e.continuity("torque") == e.flat_order()
    sparse = np.zeros((3, 3))
    sparse[0, 2] = 0.01  # motor 3 acts on joint 1 alone
    e = el.elastic_robot(planar_arm(3), 500.0, motor_inertia=0.3, coupling=sparse)
    assert e.flat_order() == 6
    assert e.motor_orders == (2, 2, 4)
    with pytest.raises(od.UnknownName):
        e.continuity("jerk")


def test_relative_errors_make_another_robot():
    e = arm("linear")
    other = e.with_errors(stiffness={"joint2": 0.1}, mass=-0.2, motor_inertia=0.5)
    assert np.allclose(other.linear_stiffness() / e.linear_stiffness(), [1.0, 1.1, 1.0])
    assert np.allclose(other.motor_inertia, 1.5 * e.motor_inertia)
    assert other.links.total_mass == pytest.approx(0.8 * e.links.total_mass)
    q = [0.3, -0.2, 0.5]
    M = [np.array(od.function(x.links, "mass_matrix")(q=q)["M"]) for x in (other, e)]
    assert np.allclose(M[0], 0.8 * M[1])
    with pytest.raises(od.UnknownName):
        e.with_errors(stiffness={"elbow": 0.1})


def test_motor_coupling_is_the_rotors_kinetic_energy():
    """Against the rotor's own: half J times the square of its spin, links' part taken off."""
    chain, J, ratio = od.robots.chain(3), 4e-6, 100.0
    S = el.motor_coupling(chain, J, ratio)
    rng = np.random.default_rng(0)
    q, v, dtheta = chain.random_configuration(1), rng.normal(size=3), rng.normal(size=3)
    energy = 0.0
    for b in chain.bodies:
        spin = ratio * dtheta[b.joint.v_index]
        carried = 0.0
        if b.parent:
            carrier = chain.bodies[b.parent - 1].name
            twist = (
                od.function(chain, "frame_twist", frame=carrier, representation="body")(q=q, v=v)["V"].full().ravel()
            )
            carried = b.rotation @ b.joint.axis @ twist[:3]
        energy += 0.5 * J * ((carried + spin) ** 2 - carried**2 - spin**2)
    assert v @ S(q).full() @ dtheta == pytest.approx(energy, rel=1e-12)
    assert np.abs(el.motor_coupling(planar_arm(3), J, ratio)(np.zeros(3)).full()[0]) == pytest.approx([0, 4e-4, 4e-4])


@pytest.mark.parametrize("name", ["linear", "mixed", "pairs", "complete"])
def test_prints_and_pickles(name):
    e = arm(name)
    assert all(j.name in str(e) for j in e.joints)
    assert "ElasticRobot" in repr(e)
    again = pickle.loads(pickle.dumps(e))
    assert np.array_equal(again.motor_inertia, e.motor_inertia)
    assert again.joints[0].name == e.joints[0].name
    with pytest.raises(AttributeError):
        e.gear = None
    with pytest.raises(ValueError):
        e.motor_inertia[0, 0] = 1.0


@pytest.mark.slow
def test_all_kinds_of_springs_are_there():
    assert {type(j.spring).__name__ for name in ARMS for j in arm(name).joints} == {
        *("LinearSpring", "NoSpring", "NonlinearSpring", "VariableSpring", "AntagonisticSprings")
    }
