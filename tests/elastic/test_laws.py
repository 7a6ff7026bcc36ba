"""Laws by passivity and by modes: exact along motions, exact at rest, poles as placed, and what they refuse."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, sigma_of, swing
from law_tools import at_rest, far_from, gravity, rest_of, robot

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.laws.gains import regulator
from oc_dyn.elastic.laws.gravity_gradient import gravity_gradient_bounds, gravity_torque_bounds
from oc_dyn.elastic.laws.modes import modes, modes_of
from oc_dyn.robots import planar_arm

TRACKING = {  # exact along motions
    "full_state_feedback": lambda e: el.full_state_feedback(e, 150.0, 15.0, inertia=0.1),
    "impedance": lambda e: el.impedance(e, 80.0, inertia=0.1, feedforward="flat"),
    "cartesian_impedance": lambda e: el.impedance(
        e, [5, 5, 5, 50, 50, 50], frame=e.links.bodies[-1].name, inertia=0.1, feedforward="flat", iterations=7
    ),
    "esp": lambda e: el.esp(e, 150.0, 15.0, 5.0),
    "esp_i": lambda e: el.esp_i(e, 100.0, 10.0, 10.0),
    "vsa_damping": lambda e: el.vsa_damping(e, 0.7),
}


def motion(e, name):
    """Reference over half a second."""
    if e.nv < 4:
        return el.reference(e, swing(e.nv), duration=0.5)
    q = rest_of(name)
    return el.reference(e, lambda t: ca.DM(q) + 0.1 * (1 - ca.cos(6 * t)), duration=0.15)


SLOW = [(name, n) for name in ("2r", "three", "panda") for n in TRACKING]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name, kind",
    [*(("single", n) for n in TRACKING), *(pytest.param(*x, marks=pytest.mark.slow) for x in SLOW)],
)
def test_motions_are_followed_exactly(name, kind):
    e = robot(name)
    law = TRACKING[kind](e)
    run = el.simulate(e, law, motion(e, name), rtol=1e-8)
    assert run.largest_error < 1e-9
    assert np.ptp(run.q_ref, axis=0).min() > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ["friction", "mixed", "nonlinear", "full_inertia"])
def test_full_state_feedback_of_every_robot(name):
    e = arm(name)
    law = el.full_state_feedback(e, 200.0, 20.0, inertia=0.1)
    assert el.simulate(e, law, el.reference(e, swing(e.nv), duration=0.5), rtol=1e-8).largest_error < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["esp", "esp_i", "impedance"])
def test_nonlinear_springs_are_followed_exactly(kind):
    e = arm("nonlinear")
    run = el.simulate(e, TRACKING[kind](e), el.reference(e, swing(3), duration=0.5), rtol=1e-8)
    assert run.largest_error < 1e-9


@pytest.mark.slow
def test_variable_stiffness_is_followed_exactly():
    e = arm("direct")
    reference = el.reference(e, swing(3), duration=0.5, sigma=sigma_of("direct"))
    law = el.vsa_damping(e, 0.7)
    assert el.simulate(e, law, reference, rtol=1e-8).largest_error < 1e-9
    assert el.simulate(e, law, reference, rtol=1e-7, start={"q": 0.01}).largest_error == pytest.approx(0.01, rel=0.2)


@pytest.mark.slow
def test_driven_stiffness_is_followed_exactly():
    """From an offset of sigma, which the drives make good by their poles."""
    e = el.elastic_robot(robot("2r").links, el.VariableSpring(), motor_inertia=0.3, stiffness_inertia=1e-3)
    reference = el.reference(e, swing(2), duration=0.4, sigma=lambda t: ca.vertcat(300 + 50 * ca.sin(t), 400))
    law = el.vsa_damping(e, 0.7, stiffness_poles=30.0)
    assert el.simulate(e, law, reference, rtol=1e-8).largest_error < 1e-9
    run = el.simulate(e, law, reference, rtol=1e-7, start={"sigma": 20.0})
    t = run.t[-1]
    assert run.sigma[-1, 1] - 400 == pytest.approx(20 * np.exp(-30 * t) * (1 + 30 * t), rel=1e-4)


@pytest.mark.slow
def test_a_joint_of_variable_stiffness():
    e = robot("vsa")
    reference = el.reference(e, swing(1), duration=0.5, sigma=lambda t: 200 + 100 * ca.sin(3 * t))
    law = el.vsa_damping(e, 0.7)
    assert el.simulate(e, law, reference, rtol=1e-8).largest_error < 1e-9
    run = el.simulate(e, law, reference, rtol=1e-6, start={"q": 0.1})
    assert np.abs(run.error[-1]).max() < 0.02


REGULATORS = {
    "online_gravity_pd": lambda e: el.online_gravity_pd(e, 400.0, 20.0),
    "full_state_feedback": lambda e: el.full_state_feedback(e, 150.0, 15.0, inertia=0.1, feedforward="gravity"),
    "impedance": lambda e: el.impedance(e, 80.0, inertia=0.1),
}


@pytest.mark.parametrize("name", ["single", *(pytest.param(n, marks=pytest.mark.slow) for n in ("2r", "damped"))])
@pytest.mark.parametrize("kind", REGULATORS)
def test_regulators_rest_where_they_are_told(name, kind):
    e = robot(name)
    q, law = rest_of(name), REGULATORS[kind](e)
    rates, loop = at_rest(e, law, q)
    assert np.abs(rates(loop.first_state(None)[: loop.plant.size]).full()).max() < 1e-8
    assert el.closed_loop_poles(e, law, q).real.max() < -0.3
    still = el.reference(e, lambda t: ca.DM(q), duration=1.0)
    run = el.simulate(e, law, still, start={"q": 0.1, "theta": 0.1}, rtol=1e-6)
    assert np.abs(run.error[-1]).max() < 0.7 * np.abs(run.error[0]).max()


@pytest.mark.slow
def test_rigid_joints_among_elastic_ones():
    e, q = arm("mixed"), np.array([0.3, -0.4, 0.5])
    for law in (el.online_gravity_pd(e, 400.0, 20.0), el.full_state_feedback(e, 150.0, 15.0, feedforward="gravity")):
        assert el.closed_loop_poles(e, law, q).real.max() < -0.1, law.name


# -- gravity's bounds ------------------------------------------------------------------------------------------------


def slopes(robot, count=80):
    """Largest |dg/dq|, entries and spectral norm, and |g|, over random positions."""
    q = ca.SX.sym("q", robot.nq)
    zero = ca.DM.zeros(robot.nv)
    g = od.function(robot, "inverse_dynamics")(q, zero, zero)
    f = ca.Function("f", [q], [g, ca.jacobian(g, q)])
    found = [[y.full() for y in f(robot.random_configuration(k))] for k in range(count)]
    return (np.max([np.abs(J) for _, J in found], axis=0), max(np.linalg.norm(J, 2) for _, J in found),
            np.max([np.abs(g).ravel() for g, _ in found], axis=0))  # fmt: skip


def _odd():
    """A prismatic joint in the middle, a screw, tilted gravity."""
    b = od.RobotBuilder("odd", gravity=(3.0, -2.0, -9.0))
    b.add_link("base")
    kinds = [("revolute", {}), ("prismatic", {"lower": -0.4, "upper": 0.2}), ("revolute", {})]
    kinds.append(("helical", {"pitch": 0.05, "lower": -2, "upper": 1}))
    for k, (kind, more) in enumerate(kinds):
        b.add_link(f"l{k}", 2.0, (0.1, 0.2, -0.1), 0.1 * np.eye(3))
        parent, axis = "base" if not k else f"l{k - 1}", (0.6, 0.8, 0) if k % 2 else (0, 0, 1)
        b.add_joint(f"j{k}", kind, parent, f"l{k}", axis=axis, xyz=(0.1, 0.0, 0.3), **more)
    return b.build()


@pytest.mark.parametrize("make", [od.robots.planar_2r, od.robots.panda, lambda: od.robots.tree(4), _odd])
def test_bounds_of_gravity(make):
    r = make()
    entries, norm, torques = slopes(r)
    assert np.all(entries <= gravity_gradient_bounds(r) * (1 + 1e-12) + 1e-12)
    assert np.all(torques <= gravity_torque_bounds(r) * (1 + 1e-12) + 1e-12)
    assert norm <= el.gravity_gradient_bound(r) < 2.5 * norm


def test_the_bound_is_reached_by_an_arm_that_hangs():
    r = od.robots.planar_2r()
    q = ca.SX.sym("q", 2)
    J = ca.Function("J", [q], [ca.jacobian(gravity(robot("2r"), q), q)])
    worst = max(np.linalg.norm(J([x, 0.0]).full(), 2) for x in np.linspace(-np.pi, np.pi, 201))
    assert el.gravity_gradient_bound(r) == pytest.approx(worst, rel=1e-3)
    assert el.gravity_gradient_bound(r.with_gravity([0, 0, 0])) == 0


# -- conditions -------------------------------------------------------------------------------------------------------


def test_gains_without_proof_are_refused_by_name():
    e = robot("2r")
    bound = el.gravity_gradient_bound(e.links)
    with pytest.raises(od.ModelError, match=r"motor shoulder: the smallest eigenvalue .* kp above") as caught:
        el.online_gravity_pd(e, 100.0, 10.0)
    needed = float(str(caught.value).split("kp above ")[1].split()[0])
    el.online_gravity_pd(e, {"shoulder": 1.01 * needed, "elbow": 1000.0}, 10.0)
    assert np.linalg.eigvalsh([[900, -900], [-900, 900 + needed]])[0] == pytest.approx(bound, rel=1e-2)
    assert el.online_gravity_pd(e, 100.0, 10.0, check=False).name == "online_gravity_pd"
    soft = el.elastic_robot(od.robots.planar_2r(), 80.0, motor_inertia=0.2)
    for make in (lambda: el.online_gravity_pd(soft, 1e4, 10.0), lambda: el.impedance(soft, 10.0),
                 lambda: el.full_state_feedback(soft, 100.0, 10.0)):  # fmt: skip
        with pytest.raises(od.ModelError, match=r"bound of \|dg/dq\|"):
            make()
    with pytest.raises(od.ModelError, match="as stiff as their springs"):
        el.impedance(e, 750.0)
    with pytest.raises(od.ModelError, match="shrinks errors to 1.3"):
        el.full_state_feedback(soft, 100.0, 10.0, check=False)


def test_dampers_and_rigid_joints_are_refused_by_name():
    with pytest.raises(od.ModelError, match="rigid: joint2"):
        el.esp(arm("mixed"), 1.0, 1.0, 1.0)
    with pytest.raises(od.ModelError, match=r"without damping, here joint1, joint2, joint3; take undamped\(\)"):
        el.esp(robot("damped"), 1.0, 1.0, 1.0)


@pytest.mark.slow
def test_robots_that_laws_cannot_have():
    for make, name, words in (
        (lambda e: el.esp(e, 1.0, 1.0, 1.0), "direct", "variable"),
        (lambda e: el.vsa_damping(e), "pairs", "a pair"),
        (lambda e: el.impedance(e, 1.0), "complete", "reduced model"),
        (lambda e: el.online_gravity_pd(e, 1.0, 1.0), "driven", "vsa_damping"),
    ):
        with pytest.raises(od.ModelError, match=words):
            make(arm(name))


def test_springs_that_cannot_hold_gravity():
    weak = el.NonlinearSpring(lambda z: 5 * ca.tanh(100 * z))
    e = el.elastic_robot(planar_arm(1), weak, motor_inertia=0.1)
    with pytest.raises(od.ModelError, match="joint joint1: gravity can ask for .* Nm of its spring"):
        el.online_gravity_pd(e, 400.0, 20.0)


def test_bad_numbers():
    e = robot("2r")
    for make, words in (
        (lambda: el.esp(e, 0.0, 1.0, 1.0), "motor_stiffness of shoulder, elbow is 0"),
        (lambda: el.esp(e, 1.0, 1.0, [1.0, -1.0]), "without negative"),
        (lambda: el.esp(e, 1.0, 1.0, [1.0, 0.0]), "positive eigenvalues"),
        (lambda: el.esp(e, 1.0, 1.0, [[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (lambda: el.full_state_feedback(e, 1.0, 1.0, inertia=-1.0), "above 0: shoulder, elbow"),
        (lambda: el.full_state_feedback(e, 1.0, 1.0, inertia={"wrist": 1.0}), "no motor 'wrist'"),
        (lambda: el.impedance(e, [1.0, 2.0, 3.0]), r"expected a finite number, \(2,\)"),
        (lambda: el.impedance(e, 1.0, frame="lower"), "rotations, then translations"),
        (lambda: el.vsa_damping(e, -0.1), "damping_ratio"),
        (lambda: el.joint_gains(e, 0.0), "expected one"),
        (lambda: el.joint_gains(e, 0.0, bandwidth=-1.0), "positive"),
        (lambda: el.joint_gains(e, 0.0, lqr={"q": -1.0}), "at least 0"),
    ):
        with pytest.raises(od.ShapeError, match=words):
            make()
    with pytest.raises(od.UnknownName):
        el.impedance(e, np.ones(6), frame="wrist")
    with pytest.raises(od.UnknownName):
        el.joint_gains(e, 0.0, lqr={"theta_dot": 1.0})


# -- gains and modes --------------------------------------------------------------------------------------------------


def test_poles_of_a_joint_are_placed():
    e = robot("one_weightless")
    wanted = np.array([-20.0, -25.0, -30.0 + 12.0j, -30.0 - 12.0j])
    gains = el.joint_gains(e, [0.2], poles=wanted)
    law = el.full_state_feedback(e, **gains, check=False)
    assert far_from(el.closed_loop_poles(e, law, [0.2]), wanted) < 1e-8
    with pytest.raises(od.ModelError, match="too fast or too slow for links that swing at"):
        el.joint_gains(e, [0.2], poles=500.0)


@pytest.mark.slow
def test_gains_of_least_cost():
    scipy = pytest.importorskip("scipy.linalg")
    rng = np.random.default_rng(0)
    A, B, Q = rng.normal(size=(4, 4)), rng.normal(size=(4, 1)), np.diag(rng.uniform(0.1, 2, 4))
    P = scipy.solve_continuous_are(A, B, Q, np.array([[0.3]]))
    assert regulator(A, B, Q, 0.3) == pytest.approx(B.T @ P / 0.3, rel=1e-8)
    e = robot("one_weightless")
    m, K, b = float(od.function(e.links, "mass_matrix")([0.0])), 200.0, 0.1
    A = np.array([[0, 1, 0, 0], [-K / m, 0, K / m, 0], [0, 0, 0, 1], [K / b, 0, -K / b, 0]])
    B, Q = np.array([[0], [0], [0], [1 / b]]), np.diag([1e4, 10.0, 0.0, 0.0])
    P = scipy.solve_continuous_are(A, B, Q, np.array([[1.0]]))
    poles = np.linalg.eigvals(A - B @ B.T @ P)
    law = el.full_state_feedback(e, **el.joint_gains(e, [0.0], lqr={"q": 1e4, "v": 10.0}), check=False)
    assert far_from(el.closed_loop_poles(e, law, [0.0]), poles) < 1e-6


def test_bandwidth_and_damping_ratio_of_stiff_joints():
    e = el.elastic_robot(robot("one_weightless").links, 1e7, motor_inertia=0.1)
    law = el.full_state_feedback(e, **el.joint_gains(e, [0.0], bandwidth=12.0, damping_ratio=0.5, inertia_ratio=2.0))
    slow = el.closed_loop_poles(e, law, [0.0])
    slow = slow[np.argsort(np.abs(slow))][:2]
    assert np.abs(slow) == pytest.approx(12.0, rel=1e-4)
    assert -slow.real / np.abs(slow) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(7, marks=pytest.mark.slow)])
def test_modes_by_rotations_and_their_damping(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, n))
    M, K = X @ X.T + 0.1 * np.eye(n), np.diag(rng.uniform(10, 1e4, n))
    m, k = ca.SX.sym("m", n, n), ca.SX.sym("k", n, n)
    Q, squares = (x.full() for x in ca.Function("f", [m, k], modes_of(m, k))(M, K))
    assert np.abs(Q @ Q.T - M).max() < 1e-12 * np.abs(M).max()
    assert np.abs(Q @ np.diag(squares.ravel()) @ Q.T - K).max() < 1e-12 * K.max()
    assert np.sort(squares.ravel()) == pytest.approx(modes(M, K)[1], rel=1e-10)
    D = el.modal_damping(M, K, 0.4)  # every pole of M x'' + D x' + K x has this damping ratio
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    poles = np.linalg.eigvals(A)
    assert -poles.real / np.abs(poles) == pytest.approx(0.4, rel=1e-9)


@pytest.mark.parametrize(
    "sigma", [[150.0, 900.0], *(pytest.param(x, marks=pytest.mark.slow) for x in ([150.0, 900.0, 300.0], [400.0] * 3))]
)
def test_poles_of_every_mode_at_any_stiffness(sigma):
    n = len(sigma)
    links = planar_arm(n).with_gravity([0, 0, 0])
    e = el.elastic_robot(links, el.VariableSpring(), motor_inertia=[0.5, 0.3, 0.2][:n])
    q, z, zm, c = rest_of("three")[:n], 0.4, 0.9, 2.5
    law = el.vsa_damping(e, z, motor_damping_ratio=zm, motor_ratio=c)
    w = np.sqrt(modes(od.function(links, "mass_matrix")(q).full(), np.diag(sigma))[1])
    wanted = np.concatenate([np.roots(np.polymul([1, 2 * z * x, x * x], [1, 2 * zm * c * x, (c * x) ** 2])) for x in w])
    found = el.closed_loop_poles(e, law, q, sigma=sigma)
    assert far_from(found, wanted) < 1e-7
