"""Feedback linearisation of damped springs, of the complete model, and with integral action: poles as asked for."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import S3, arm, cubic, planar_arm, swing

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.closed_loop import ClosedLoop
from oc_dyn.elastic.dop853 import integrate


def damped(law=None, **more):
    """Two damped springs."""
    springs = [el.LinearSpring(400.0, 3.0), el.NonlinearSpring(law, 5.0) if law else el.LinearSpring(300.0, 5.0)]
    return el.elastic_robot(planar_arm(2), springs, motor_inertia=[0.3, 0.2], **more)


def nonlinear():
    """The same, one spring nonlinear."""
    return damped(cubic)


def partly_damped():
    """Damped, elastic alone, and rigid."""
    springs = {"joint1": el.LinearSpring(400.0, 3.0), "joint2": 300.0}
    return el.elastic_robot(planar_arm(3), springs, motor_inertia=[0.3, 0.2, 0.1])


def complete():
    return el.elastic_robot(planar_arm(2), [500, 300], motor_inertia=[0.3, 0.2], coupling=S3[:2, :2])


def resting(elastic, q):
    """(reference standing at q, closed-loop state there)."""
    reference = el.reference(elastic, lambda t: ca.DM(q) + 0 * t, duration=1.0)
    return reference


def closed_loop_poles(elastic, law, q, real=None):
    """Eigenvalues of the closed loop of robot and law, linearised at rest by AD of the simulated equations."""
    loop = ClosedLoop(real or elastic, law, resting(elastic, q), None)
    x = ca.MX.sym("x", loop.size)
    size = loop.plant.size + loop.memory
    slope = ca.jacobian(loop.rates()(0, x, ca.DM(0, 1)), x)[:size, :size]
    x0 = loop.first_state(None)
    rate = loop.rates()(0, x0, ca.DM(0, 1)).full().ravel()[:size]
    assert np.abs(rate).max() < 1e-6  # it rests
    return np.linalg.eigvals(ca.Function("slope", [x], [slope])(x0).full())


def same(found, expected, tolerance):
    """Whether two sets of numbers are the same."""
    rest = list(expected)
    for x in found:
        k = int(np.argmin(np.abs(np.array(rest) - x)))
        assert abs(rest.pop(k) - x) < tolerance, (found, expected)
    assert not rest


@pytest.mark.parametrize("make", [damped, pytest.param(nonlinear, marks=pytest.mark.slow)])
def test_damped_springs_have_the_poles_asked_for_and_those_of_their_dampers(make):
    """Order three, and one pole -phi' / D a joint: the dynamics that the law leaves."""
    e, q = make(), [0.3, -0.5]
    poles = [[-10, -13, -17], [-20 + 5j, -20 - 5j, -25]]
    law = el.feedback_linearization(e, poles)
    assert law.memory == 0
    assert el.linearization_order(e) == 3
    z = el.simulate(e, law, resting(e, q), duration=0.01).deflection[0]
    inner = [-400 / 3, -(300 + 9000 * z[1] ** 2 * (make is nonlinear)) / 5]
    same(closed_loop_poles(e, law, q), np.concatenate([np.ravel(poles), inner]), 1e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("make", [damped, partly_damped, pytest.param(nonlinear, marks=pytest.mark.slow)])
def test_damped_springs_are_followed_exactly(make):
    """From the reference's state, found by integration of the dampers' equation; and from elsewhere to it."""
    e = make()
    reference = el.reference(e, swing(e.nv), duration=0.4)
    law = el.feedback_linearization(e, 20.0)
    m = el.damped_motion(e, reference, dt=0.1)
    at = reference.at([0.0])
    start = np.concatenate([at["q"][:, 0], at["v"][:, 0], m.theta[0], m.dtheta[0]])
    assert el.simulate(e, law, reference, start=start, rtol=1e-12).largest_error < 1e-11
    assert el.simulate(e, law, reference, start=start, rtol=1e-9, method="idas").largest_error < 1e-7


def test_partly_damped_springs_have_the_poles_asked_for():
    e = partly_damped()
    law = el.feedback_linearization(e, [-10, -13, -17, -22])
    assert (law.memory, el.linearization_order(e)) == (3, 4)
    found = closed_loop_poles(e, law, [0.3, -0.5, 0.4])
    same(found, [*[-10, -13, -17, -22] * 3, -400 / 3], 2e-2)  # poles of multiplicity three


@pytest.mark.slow
def test_the_decay_of_an_offset_is_that_of_the_slowest_pole():
    e = damped()
    law = el.feedback_linearization(e, [[-4, -30, -40], [-6, -30, -40]])
    run = el.simulate(e, law, el.reference(e, swing(2), duration=1.5), rtol=1e-11, start={"q": 0.02})
    late = run.t > 0.6
    rates = [-np.polyfit(run.t[late], np.log(np.abs(run.error[late, k])), 1)[0] for k in (0, 1)]
    assert rates == pytest.approx([4, 6], rel=0.01)


def test_complete_model_has_the_poles_asked_for():
    e = complete()
    poles = [[-8, -10, -12, -14, -16, -18], [-9, -11, -13, -15, -17 + 3j, -17 - 3j]]
    law = el.feedback_linearization(e, poles)
    assert (law.memory, el.linearization_order(e)) == (4, 6)
    same(closed_loop_poles(e, law, [0.3, -0.5]), np.ravel(poles), 1e-4)


def lagrange_rates(x, u):
    """Rates of [q; v; theta; theta'] of the complete arm, from its Lagrangian alone, written out by hand and by AD."""
    y, dy = ca.SX.sym("y", 4), ca.SX.sym("dy", 4)  # q1, q2, theta1, theta2
    L, m, S, B, K = 0.4, 3.0, 0.02, [0.3, 0.2], [500.0, 300.0]
    one = ca.vertcat(ca.cos(y[0]), ca.sin(y[0]))
    two = ca.vertcat(ca.cos(y[0] + y[1]), ca.sin(y[0] + y[1]))
    centres = [L / 2 * one, L * one + L / 2 * two]
    T = sum(m / 2 * ca.sumsqr(ca.jtimes(c, y, dy)) for c in centres)
    T += m * L**2 / 24 * (dy[0] ** 2 + (dy[0] + dy[1]) ** 2)
    T += B[0] / 2 * dy[2] ** 2 + B[1] / 2 * dy[3] ** 2 + S * dy[0] * dy[3]  # the second motor sits on the first link
    V = sum(9.81 * m * c[1] for c in centres) + sum(K[i] / 2 * (y[2 + i] - y[i]) ** 2 for i in range(2))
    p = ca.gradient(T, dy)
    force = ca.SX.sym("force", 4)
    d2y = ca.solve(ca.jacobian(p, dy), force + ca.gradient(T - V, y) - ca.jtimes(p, y, dy))
    f = ca.Function("lagrange", [y, dy, force], [d2y])
    a = f(ca.vertcat(x[0:2], x[4:6]), ca.vertcat(x[2:4], x[6:8]), ca.vertcat(0, 0, u))
    return ca.vertcat(x[2:4], a[:2], x[6:8], a[2:])


@pytest.mark.slow
def test_complete_model_is_followed_exactly():
    """On the package's plant, and on one from the arm's Lagrangian that shares no code with it."""
    e = complete()
    reference = el.reference(e, swing(2), duration=0.6)
    law = el.feedback_linearization(e, 20.0)
    run = el.simulate(e, law, reference, rtol=1e-11)
    assert run.largest_error < 1e-11
    loop = ClosedLoop(e, law, reference, None)
    t, whole, none = ca.MX.sym("t"), ca.MX.sym("x", 8 + law.memory), ca.MX.sym("p", 0)
    u, memory_rate = loop.controls(loop.reference_at(t), whole[:8], whole[8:])
    f = ca.Function("rates", [t, whole, none], [ca.vertcat(lagrange_rates(whole[:8], u), memory_rate)])
    start = loop.first_state(None)[: 8 + law.memory]
    states, _ = integrate(f, np.array([0, 0.6]), start, (), 1e-11, 1e-13, ())
    assert np.abs(states[:2, -1] - reference.at([0.6])["q"][:, 0]).max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["complete", "complete_chain", "complete_nonlinear"])
def test_complete_models_of_the_tests_are_followed_exactly(name):
    """Three joints: order 8, 12 integrators; from an offset the error decays like its poles."""
    e = arm(name)
    reference = el.reference(e, swing(e.nv), duration=1.0)
    law = el.feedback_linearization(e, 20.0)
    assert law.memory == 2 * e.nv * (e.nv - 1)
    assert el.simulate(e, law, reference, rtol=1e-8).largest_error < 1e-9
    run = el.simulate(e, law, reference, rtol=1e-8, start={"theta": 1e-3})
    t = run.t[60:]
    order = el.linearization_order(e)
    envelope = np.column_stack([t**k * np.exp(-20 * t) for k in range(order)])
    rest = run.error[60:] - envelope @ np.linalg.lstsq(envelope, run.error[60:], rcond=None)[0]
    assert np.abs(rest).max() < 1e-5 * np.abs(run.error[60:]).max() + 1e-9


@pytest.mark.parametrize(
    "make", [partly_damped, *(pytest.param(x, marks=pytest.mark.slow) for x in (damped, complete))]
)
def test_integral_action_has_one_pole_more(make):
    e = make()
    order = el.linearization_order(e)
    law = el.feedback_linearization(e, 15.0, integral=True)
    assert law.gains["integral_gains"].shape == (e.nv, 1)
    assert law.gains["gains"].shape == (e.nv, order)
    found = closed_loop_poles(e, law, [0.3, -0.5, 0.4][: e.nv])
    near = found[np.abs(found + 15) < 3]
    assert len(near) == (order + 1) * e.nv
    assert np.mean(near) == pytest.approx(-15, abs=1e-4)  # each apart by rounding, as poles of multiplicity are


@pytest.mark.slow
def test_integral_action_leaves_no_error_of_a_constant_torque():
    """A robot of other masses stands still where it should; without the integral it does not."""
    e = damped()
    reference = resting(e, [0.3, -0.5])
    laws = [el.feedback_linearization(e, 15.0, integral=x) for x in (True, False)]
    options = {"rtol": 1e-6, "mass_error": 0.02, "duration": 1.0, "method": "cvodes"}
    final = [np.abs(el.simulate(e, law, reference, **options).error[-1]).max() for law in laws]
    assert final[0] < 2e-4
    assert final[1] > 10 * final[0]


@pytest.mark.slow
@pytest.mark.parametrize("make, error", [(damped, 2.2e-4), (partly_damped, 1.0e-3), (complete, 2.4e-3)])
def test_sampled_laws_are_off_in_proportion_to_the_sample_time(make, error):
    e = make()
    reference, law = el.reference(e, swing(e.nv), duration=1.0), el.feedback_linearization(e, 20.0)
    errors = [el.simulate(e, law, reference, sample_time=h).largest_error for h in (1e-3, 2.5e-4)]
    assert errors[0] == pytest.approx(error, rel=0.05)
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_poles_of_the_wrong_number_are_refused_with_the_right_one():
    with pytest.raises(od.ShapeError, match=r"expected a number, \(3,\) or \(2, 3\)"):
        el.feedback_linearization(damped(), [-10, -10, -10, -10])
    pairs = el.elastic_robot(planar_arm(1), el.AntagonisticSprings(lambda z: 20 * (ca.exp(8 * z) - 1), damping=1.0),
                             motor_inertia=0.3)  # fmt: skip
    with pytest.raises(od.ModelError, match="two motors"):
        el.feedback_linearization(pairs, 10.0)
    both = el.elastic_robot(planar_arm(2), 300.0, damping=1.0, motor_inertia=0.3, coupling=S3[:2, :2])
    with pytest.raises(od.ModelError, match="damped springs in the complete model"):
        el.feedback_linearization(both, 10.0)


@pytest.mark.parametrize("integrate", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_friction_of_the_feedforward_at_three_speeds(integrate):
    """ "reference" is the flat map; "measured" the same on the reference; "none" less exactly the friction."""
    e = damped(motor_friction=[0.5, 0.3], motor_damping=1.0) if integrate else arm("friction")
    laws = {s: el.feedforward_pd(e, 0.0, 0.0, integrate_damping=integrate, friction_speed=s)
            for s in ("reference", "measured", "none")}  # fmt: skip
    reference = el.reference(e, swing(e.nv), duration=0.6)
    ref = {f"{n}_ref": x[:, 0] for n, x in reference.at([0.3]).items()}
    tau = {}
    for s, law in laws.items():
        f = law.function
        ports = {n: ref.get(n, np.full(f.size1_in(n), 0.03)) for n in f.name_in()}
        ports["dtheta"] = np.array([0.2, -0.3, 0.1])[: e.nv]
        tau[s] = f(**ports)["tau_m"].full().ravel()
    speed = ports["dtheta"]
    friction = e.motor_damping * speed + e.motor_friction * np.tanh(speed / e.friction_smoothing)
    assert tau["measured"] - tau["none"] == pytest.approx(friction, abs=1e-12)
    undamped = od.function(e.undamped(), "elastic_flat_map")
    if not integrate:
        flat = undamped(**{n: ref[f"{n}_ref"] for n in undamped.name_in()})
        speed = flat["dtheta"].full().ravel()
        friction = e.motor_damping * speed + e.motor_friction * np.tanh(speed / e.friction_smoothing)
        assert tau["reference"] - tau["none"] == pytest.approx(friction, abs=1e-10)


def test_friction_is_smoothed_as_told():
    e = arm("friction")
    law = el.feedforward_pd(
        e, 0.0, 0.0, friction_speed="measured", friction_smoothing={"joint1": 1, "joint2": 2, "joint3": 4}
    )
    f = law.function
    ports = {n: np.zeros(f.size1_in(n)) for n in f.name_in()}
    at = [f(**{**ports, "dtheta": np.array([x, x, x])})["tau_m"].full().ravel() for x in (0.5, 0.0)]
    expected = 0.5 * np.tanh(0.5 / np.array([1, 2, 4])) + 1.0 * 0.5
    assert at[0] - at[1] == pytest.approx(expected, abs=1e-12)
    with pytest.raises(od.ShapeError, match="friction_smoothing"):
        el.feedforward_pd(e, 0.0, 0.0, friction_smoothing=0.0)
    with pytest.raises(od.UnknownName, match="friction_speed"):
        el.feedforward_pd(e, 0.0, 0.0, friction_speed="mine")
