"""Laws of control in closed loop: exact models to rounding, wrong ones as badly as they should."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from elastic_arms import S3, arm, planar_arm, sigma_of, swing, three

import oc_dyn as od
from oc_dyn import elastic as el

START = {"q": 0.05, "theta": 0.05}


def reference_of(elastic, duration=3.0, sigma=None):
    return el.reference(elastic, swing(elastic.nv, duration), duration=duration, sigma=sigma)


@pytest.fixture(scope="module")
def swinging():
    """(elastic robot, reference, its feedback linearisation, its feedforward with motor loops)."""
    e = three()
    return e, reference_of(e), el.feedback_linearization(e, 20.0), el.feedforward_pd(e, 200.0, 20.0)


@pytest.mark.slow
def test_exact_models_are_followed_to_rounding(swinging):
    e, reference, linearizing, feedforward = swinging
    assert el.simulate(e, linearizing, reference, rtol=1e-10).largest_error < 1e-12
    assert el.simulate(e, feedforward, reference, rtol=1e-10).largest_error < 1e-11


@pytest.mark.slow
def test_elasticity_ignored(swinging):
    e, reference, _, _ = swinging
    run = el.simulate(e, el.computed_torque(e, 200, 20), reference, rtol=1e-8)
    assert run.largest_error == pytest.approx(0.174, rel=0.01)
    run = el.simulate(e, el.gravity_pd(e, 200, 20), reference, rtol=1e-8)
    assert 0.05 < run.largest_error < 0.3


def _flipped(law):
    """The same law with the sign of the second torque derivative turned: tau_m less 2 B K^-1 tau''."""
    f, e = law.function, law.elastic
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    tau_m, K, B = f(**ports)["tau_m"], ca.DM(e.linear_stiffness()), ca.DM(e.motor_inertia)
    if "linearization" in law.name:
        q, v, theta, dtheta = (ports[n] for n in ("q", "v", "theta", "dtheta"))
        a = od.function(e, "elastic_link_motion")(q, v, theta, dtheta)
        second = K * (ca.solve(B, tau_m - K * (theta - q)) - a)  # theta'' = a + K^-1 tau''
    else:
        ref = [ports[f"{n}_ref"] for n in law.reference_names]
        second = od.function(e.links, "inverse_dynamics", order=2).call(ref)[2]
    wrong = tau_m - 2 * B @ (second / K)
    return replace(law, function=ca.Function("flipped", list(ports.values()), [wrong], list(ports), ["tau_m"]))


@pytest.mark.slow
def test_the_sign_of_the_second_torque_derivative_matters(swinging):
    e, reference, linearizing, feedforward = swinging
    for law in (linearizing, feedforward):
        try:
            error = el.simulate(e, _flipped(law), reference, rtol=1e-6, duration=1.0).largest_error
        except od.SolveError:  # it diverges
            error = np.inf
        right = el.simulate(e, law, reference, rtol=1e-6, duration=1.0).largest_error
        assert error > 1e-3 > 1e3 * right, law.name


@pytest.mark.slow
def test_offsets_decay_with_the_placed_poles():
    """One slow pole a joint, and a complex pair on the last; the fitted rates are theirs."""
    e = three()
    fast = [-20.0, -24.0, -28.0]
    law = el.feedback_linearization(e, [[-3.0, *fast], [-5.0, *fast], [-4.0 + 6.0j, -4.0 - 6.0j, -20.0, -24.0]])
    run = el.simulate(e, law, reference_of(e), rtol=1e-11, duration=2.5, start=START)
    late = run.t > 1.0
    t, error = run.t[late], run.error[late]
    rates = [-np.polyfit(t, np.log(np.abs(error[:, k])), 1)[0] for k in (0, 1)]
    assert rates == pytest.approx([3.0, 5.0], rel=0.02)
    envelope = np.column_stack([np.exp(-4 * t) * np.cos(6 * t), np.exp(-4 * t) * np.sin(6 * t)])
    rest = error[:, 2] - envelope @ np.linalg.lstsq(envelope, error[:, 2], rcond=None)[0]
    assert np.abs(rest).max() < 1e-3 * np.abs(error[:, 2]).max()


@pytest.mark.slow
def test_the_error_grows_linearly_with_that_of_the_stiffness(swinging):
    e, reference, linearizing, feedforward = swinging
    errors = np.array([0.005, 0.01, 0.02])
    found = {
        law.name: np.array(
            [el.simulate(e, law, reference, rtol=1e-7, stiffness_error=s, duration=2.5).largest_error for s in errors]
        )
        for law in (linearizing, feedforward)
    }
    for values in found.values():
        assert np.polyfit(np.log(errors), np.log(values), 1)[0] == pytest.approx(1.0, abs=0.05)
    ratio = found["feedback_linearization"] / found["feedforward_pd"]
    assert np.all((ratio > 8) & (ratio < 20))  # the one is ten times more tolerant
    tenth = el.simulate(e, linearizing, reference, rtol=1e-7, stiffness_error=0.1).largest_error
    assert tenth == pytest.approx(0.2175, rel=0.01)
    with pytest.raises(od.SolveError, match="feedback_linearization") as caught:
        el.simulate(e, linearizing, reference, rtol=1e-7, stiffness_error=-0.4)
    assert caught.value.trajectory.t[-1] < 1.0  # it diverges early; what there is of it is kept


@pytest.mark.few(4)
@pytest.mark.sample("friction")
@pytest.mark.parametrize("name", ["friction", "mixed", "nonlinear", "direct", "driven", "pairs", "mixed_kinds"])
def test_every_kind_of_spring_is_followed_exactly(name):
    elastic = arm(name)
    reference = reference_of(elastic, 1.0, sigma_of(name))
    law = el.feedback_linearization(elastic, 20.0)
    assert (law.memory > 0) == bool(elastic.rigid)
    assert el.simulate(elastic, law, reference, rtol=1e-9).largest_error < 1e-11
    offset = el.simulate(elastic, law, reference, rtol=1e-7, start={"q": 0.005})
    assert offset.largest_error > 0.004
    assert np.abs(offset.error[-1]).max() < 1e-3
    assert el.simulate(elastic, el.feedforward_pd(elastic, 200, 20), reference, rtol=1e-9).largest_error < 1e-10


@pytest.mark.slow
def test_the_law_gives_the_fourth_derivative_it_wants():
    """tau_m of the law, put back: d3v = d3v_ref + k3 e''' + .. + k0 e, at any state."""
    e = arm("linear")
    poles = np.array([[-3.0, -4.0, -5.0, -6.0]] * 3)
    law, k = el.feedback_linearization(e, poles), el.pole_gains(poles, 4, 3)
    assert k[0] == pytest.approx(np.poly(poles[0])[:0:-1])
    motion = od.function(e, "elastic_link_motion", order=2)
    rng = np.random.default_rng(0)
    ref, state = [rng.normal(size=3) for _ in range(5)], [rng.normal(size=3) for _ in range(4)]
    tau_m = law.function(*ref, *state)
    dv, d2v, d3v = (x.full().ravel() for x in motion(*state, tau_m))
    now = [state[0], state[1], dv, d2v]
    wanted = ref[4] + sum(k[:, i] * (ref[i] - now[i]) for i in range(4))
    assert np.abs(d3v - wanted).max() < 1e-9 * np.abs(wanted).max()


def test_complete_model_of_two_joints():
    """Feedforward from q to its sixth derivative is exact, that of the reduced model misses by 6e-4 rad."""
    whole = el.elastic_robot(planar_arm(2), [500, 300], motor_inertia=[0.3, 0.2], coupling=[[0, 0.02], [0, 0]])
    reduced = el.elastic_robot(planar_arm(2), [500, 300], motor_inertia=[0.3, 0.2])

    def q(t):
        return ca.vertcat(-0.6 + 0.5 * (1 - ca.cos(2 * t)), 0.3 + 0.6 * (1 - ca.cos(2.6 * t)))

    reference = el.reference(whole, q, duration=3.0)
    assert reference.function.name_out()[-1] == "d5v"
    assert el.simulate(whole, el.feedforward_pd(whole, 200, 20), reference).largest_error < 1e-10
    missed = el.simulate(whole, el.feedforward_pd(reduced, 200, 20), reference, rtol=1e-8).largest_error
    assert missed == pytest.approx(6.1e-4, rel=0.1)
    law = el.feedback_linearization(whole, 20.0)
    assert el.simulate(whole, law, reference, duration=1.0).largest_error < 1e-10


@pytest.mark.sample("complete")
@pytest.mark.parametrize("name", ["complete", "complete_chain"])
def test_complete_model_of_three_joints(name):
    """Order 2 (n + 1) = 8 of q, constant and configuration-dependent couplings."""
    e = arm(name)
    reference = reference_of(e, 1.0)
    assert reference.function.name_out()[-1] == "d7v"
    kp, kd = (200, 20) if name == "complete" else (50, 2)
    assert el.simulate(e, el.feedforward_pd(e, kp, kd), reference, rtol=1e-9).largest_error < 1e-10


@pytest.mark.slow
def test_damped_springs_are_followed_with_their_equation_integrated():
    springs = {"joint1": el.LinearSpring(500, 2.0), "joint2": el.NonlinearSpring(lambda z: 300 * z + 900 * z**3, 1.0)}
    e = el.elastic_robot(planar_arm(3), {**springs, "joint3": 300.0}, motor_inertia=0.3)
    reference = reference_of(e, 1.5)
    law = el.feedforward_pd(e, 200, 20, integrate_damping=True)
    assert law.memory == 2
    assert el.simulate(e, law, reference).largest_error < 1e-11
    left_out = el.simulate(e, el.feedforward_pd(e.undamped(), 200, 20), reference, rtol=1e-8).largest_error
    assert left_out > 1e-4


@pytest.mark.slow
def test_poles_and_gains_are_checked():
    e = arm("linear")
    for poles, words in (
        (-np.ones(3), "shape"),
        ([1.0, -2.0, -3.0, -4.0], "negative real"),
        ([-1j, -2, -3, -4], "real"),
    ):
        with pytest.raises(od.ShapeError, match=words):
            el.feedback_linearization(e, poles)
    with pytest.raises(od.ShapeError, match="pairs"):
        el.pole_gains([-1 + 1j, -2, -3, -4], 4, 1)
    with pytest.raises(od.ShapeError, match="kp: got .* expected 3 numbers"):
        el.feedforward_pd(e, [1.0, 2.0], 1.0)
    with pytest.raises(od.ShapeError, match="no motor 'elbow'"):
        el.feedforward_pd(e, {"elbow": 1.0}, 1.0)
    with pytest.raises(od.ModelError, match="two motors"):
        el.computed_torque(arm("pairs"), 1.0, 1.0)
    with pytest.raises(od.ModelError, match="drives of sigma"):
        el.gravity_pd(arm("driven"), 1.0, 1.0)


def test_methods_of_the_dynamics_can_be_chosen():
    e = arm("linear")
    one, other = (
        el.feedback_linearization(e, 20.0, inverse_dynamics=i, forward_dynamics=f)
        for i, f in (("taylor", "taylor"), ("second_order_body", "articulated_spatial"))
    )
    rng = np.random.default_rng(0)
    values = [rng.normal(size=3) for _ in range(9)]
    a, b = (x.function(*values).full() for x in (one, other))
    assert one.function.n_instructions() < other.function.n_instructions()
    assert np.abs(a - b).max() < 1e-9 * np.abs(a).max()


@pytest.mark.slow
def test_a_model_of_its_own_for_the_controller():
    """Errors of mass and motor inertia in the robot that is there; the law keeps its model."""
    e = three()
    reference, law = reference_of(e, 1.5), el.feedforward_pd(e, 200, 20)
    heavier = el.simulate(e, law, reference, rtol=1e-8, mass_error=0.05)
    same = el.simulate(e.with_errors(mass=0.05), law, reference, rtol=1e-8)
    assert 1e-3 < heavier.largest_error == same.largest_error
    with pytest.raises(od.ModelError, match="other motors"):
        el.simulate(arm("mixed_kinds"), law, reference)
    assert np.abs(S3).max() < 0.1
