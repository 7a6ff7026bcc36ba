"""Parallel springs and springs across joints, against equations written by hand, energies and closed forms."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, planar_arm, random_ports, swing, textbook_arm

import oc_dyn as od
from oc_dyn import elastic as el

NONE = ca.DM(0, 1)
K = np.array([[500.0, 60.0], [60.0, 300.0]])
B = np.array([0.4, 0.2])


def leg():
    """Two joints with a stiffness matrix, a biarticular spring of links and a parallel spring."""
    return el.elastic_robot(
        planar_arm(2), K, motor_inertia=B, parallel=lambda q: 25 * (q[0] + 0.7 * q[1] - 0.3) ** 2 + 5 * q[1] ** 2
    )


def by_hand(x, u):
    """Rates of the planar arm with links of 0.4 m and 3 kg, from its textbook equations."""
    q, v, theta, dtheta = np.split(x, 4)
    M, bias = textbook_arm(q, v)
    stretch = q[0] + 0.7 * q[1] - 0.3
    parallel = np.array([50 * stretch, 35 * stretch + 10 * q[1]])
    spring = K @ (theta - q)
    return np.concatenate([v, np.linalg.solve(M, spring - parallel - bias), dtheta, (u - spring) / B])


def test_rates_are_those_written_by_hand():
    p = el.plant(leg())
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, u = rng.normal(size=8), rng.normal(size=2)
        expected = by_hand(x, u)
        assert p.rates(x, u, NONE).full().ravel() == pytest.approx(expected, rel=1e-11, abs=1e-11)
        miss = p.residual(x, np.concatenate([expected[2:4], expected[6:]]), u, NONE).full()
        assert np.abs(miss).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.sample("parallel", "across_rigid")
@pytest.mark.parametrize("name", ["parallel", "matrix", "across", "across_rigid"])
def test_energy_is_kept(name):
    """d/dt of all energies = put in - taken."""
    e = arm(name)
    p = el.plant(e)
    x, u = ca.SX.sym("x", p.size), ca.SX.sym("u", p.controls)
    energy = ca.sum1(p.energies(x, NONE))
    rate = ca.Function("rate", [x, u], [ca.jtimes(energy, x, p.rates(x, u, NONE))])
    rng = np.random.default_rng(1)
    for _ in range(3):
        at, tau = rng.normal(size=p.size), rng.normal(size=p.controls)
        put_in, taken = p.powers(at, tau, NONE).full().ravel()
        assert float(rate(at, tau)) == pytest.approx(put_in - taken, rel=1e-9, abs=1e-8)


def test_the_flat_map_of_a_stiffness_matrix_is_linear():
    """theta = q + K^-1 (inverse dynamics + parallel torques), tau_m = B theta'' + what the springs take."""
    e = leg()
    f = od.function(e, "elastic_flat_map")
    ports = random_ports(f, "matrix", 2)
    flat = f(**ports)
    q = ports["q"].ravel()
    tau = od.function(e.links, "inverse_dynamics")(q, ports["v"], ports["dv"]).full().ravel()
    stretch = q[0] + 0.7 * q[1] - 0.3
    tau += [50 * stretch, 35 * stretch + 10 * q[1]]
    assert flat["theta"].full().ravel() == pytest.approx(q + np.linalg.solve(K, tau), rel=1e-12)
    assert flat["tau_m"].full().ravel() == pytest.approx(B * flat["d2theta"].full().ravel() + tau, rel=1e-11)


def test_springs_across_joints_give_the_torques_they_were_solved_for():
    """Slopes of the energy by differences, at the motors' positions of the flat map, are the torques of the links."""
    e = arm("across")
    f = od.function(e, "elastic_flat_map")
    ports = random_ports(f, "across", 3)
    theta = f(**ports)["theta"].full().ravel()
    q = ports["q"].ravel()
    tau = od.function(e.links, "inverse_dynamics")(q, ports["v"], ports["dv"]).full().ravel()
    tau += [0.0, 20.0 * (q[1] - 0.1), 0.0]

    def energy(q):
        own = 250 * (theta[0] - q[0]) ** 2 + 150 * (theta[2] - q[2]) ** 2
        z = theta[1] - 0.4 * q[0] - q[1]
        return own + 150 * z**2 + 400 * z**4 + 30 * (theta[0] - q[0] + theta[1] - q[1]) ** 2

    h = 1e-5
    for k in range(3):
        step = h * np.eye(3)[k]
        assert (energy(q - step) - energy(q + step)) / (2 * h) == pytest.approx(tau[k], rel=1e-7, abs=1e-6)


def test_a_robot_with_a_stiffness_matrix_follows():
    e = leg()
    reference = el.reference(e, swing(2), duration=0.4)
    run = el.simulate(e, el.feedforward_pd(e, 200.0, 20.0), reference, rtol=1e-10)
    assert run.largest_error < 1e-8
    assert np.abs(run.energy_balance).max() < 1e-6
    at = reference.at(run.t)
    tau = od.function(e.links, "inverse_dynamics")(at["q"], at["v"], at["dv"]).full().T
    stretch = at["q"][0] + 0.7 * at["q"][1] - 0.3
    tau += np.array([50 * stretch, 35 * stretch + 10 * at["q"][1]]).T
    assert np.abs(run.tau - tau).max() < 1e-5


def test_feedback_linearisation_with_parallel_springs_is_exact():
    e = el.elastic_robot(
        planar_arm(2), [500.0, 300.0], motor_inertia=B, parallel={"joint1": 30.0, "joint2": (20.0, 0.4)}
    )
    reference = el.reference(e, swing(2), duration=0.4)
    run = el.simulate(e, el.feedback_linearization(e, 20.0), reference, rtol=1e-10)
    assert run.largest_error < 1e-8
    assert np.abs(run.energy_balance).max() < 1e-6


def test_what_the_springs_cannot_give_is_not_a_number_and_named():
    saturating = el.elastic_robot(
        planar_arm(1), 0.0, motor_inertia=0.3, across=lambda q, theta: 0.2 * ca.log(ca.cosh(25 * (theta[0] - q[0])))
    )  # 5 Nm at most, and the arm weighs 5.9 when it lies flat
    f = od.function(saturating, "elastic_flat_map")
    assert np.isfinite(f(q=1.2)["theta"].full()).all()
    assert np.isnan(f(q=0.0)["theta"].full()).all()
    reference = el.reference(saturating, lambda t: 1.5 - 1.5 * t, duration=1.0)
    with pytest.raises(od.LimitError, match="joint 'joint1' at t = .*springs across joints"):
        el.simulate(saturating, el.feedforward(saturating), reference)


def test_laws_of_springs_of_one_joint_refuse_those_across():
    e = leg()
    with pytest.raises(od.ModelError, match="springs of one joint alone"):
        el.feedback_linearization(e, 20.0)
    with pytest.raises(od.ModelError, match="gravity_pd: springs across"):
        el.gravity_pd(e, 200.0, 20.0)
    softer = e.with_errors(stiffness=-0.2)
    q, theta = np.array([0.1, 0.2]), np.array([0.3, 0.1])
    assert float(softer.across.value(ca.DM(q), ca.DM(theta))) == pytest.approx(
        0.8 * float(e.across.value(ca.DM(q), ca.DM(theta)))
    )
    assert "springs across joints" in str(e)
    assert "parallel springs" in str(e)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"stiffness": [[500, 60], [50, 300]]}, "not symmetric"),
        ({"stiffness": [[500, 600], [600, 300]]}, "not positive definite"),
        ({"stiffness": np.eye(3)}, r"shape \(3, 3\), expected \(2, 2\)"),
        ({"stiffness": K, "across": lambda q, theta: q[0]}, "matrix and across"),
        ({"parallel": 3.0}, "parallel is 3.0"),
        ({"parallel": {"joint1": (1.0, 2.0, 3.0)}}, "'joint1' has"),
        ({"parallel": {"joint1": -1.0}}, "at least 0"),
        ({"parallel": lambda q: q}, r"parallel: got shape \(2, 1\)"),
        ({"parallel": lambda q: q[7]}, "parallel: expected energy"),
        ({"across": lambda q, theta: ca.log(theta[0])}, "slopes at zero"),
        ({"across": lambda q, theta: q[0], "coupling": [[0, 0.01], [0, 0]]}, "complete model"),
        ({"across": lambda q, theta: q[0], "stiffness": el.VariableSpring()}, "variable stiffness"),
    ],
)
def test_what_is_no_potential_is_refused(options, words):
    with pytest.raises(od.ModelError, match=words):
        el.elastic_robot(planar_arm(2), **{"stiffness": 500.0, "motor_inertia": 0.1, **options})


def test_unknown_joints_of_parallel_springs():
    with pytest.raises(od.UnknownName, match="elbow"):
        el.elastic_robot(planar_arm(2), 500.0, motor_inertia=0.1, parallel={"elbow": 3.0})
