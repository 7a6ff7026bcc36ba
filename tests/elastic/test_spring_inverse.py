"""Springs by a law: the deflection for a torque is right wherever there is one, and named where there is none."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import planar_arm

import oc_dyn as od
from oc_dyn import elastic as el

LAWS = {
    "sinh": lambda z: 5 * ca.sinh(30 * z),
    "exp": lambda z: 5 * (ca.exp(30 * z) - 1),
    "cubic": lambda z: 300 * z + 3000 * z**3,
    "quintic": lambda z: z + 1e4 * z**5,
    "tanh": lambda z: 5 * ca.tanh(30 * z),
    "softening": lambda z: 100 * ca.atan(5 * z),
    "tan": lambda z: 30 * ca.tan(3 * z),
    "waves": lambda z: 1e3 * z + 99 * ca.sin(10 * z),  # nearly flat again and again: by bisection
    "backlash": lambda z: 1e-3 * z + 50 * (ca.log1p(ca.exp(200 * (z - 0.1))) - ca.log1p(ca.exp(-200 * (z + 0.1)))),
}


def deflections(spring, torques):
    tau = ca.SX.sym("tau")
    f = ca.Function("f", [tau], [spring.deflections([tau], [])[0][0]])
    return f.map(len(torques))(np.reshape(torques, (1, -1))).full().ravel()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "law, torque, expected",
    [
        ("sinh", 150.0, np.arcsinh(30.0) / 30),
        ("sinh", 300.0, np.arcsinh(60.0) / 30),
        ("exp", 500.0, np.log(101.0) / 30),
        ("tanh", -4.99, np.arctanh(-0.998) / 30),
    ],
)
def test_closed_forms(law, torque, expected):
    spring = el.NonlinearSpring(LAWS[law])
    assert float(spring.deflections([torque], [])[0][0]) == pytest.approx(expected, rel=1e-9)
    assert deflections(spring, [torque])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("law", LAWS)
def test_torques_are_given_all_over_the_reach(law):
    spring = el.NonlinearSpring(LAWS[law])
    low, high = (float(np.clip(x, -1e5, 1e5)) for x in spring.reach)
    rng = np.random.default_rng(0)
    torques = np.concatenate([rng.uniform(low, high, 300), rng.uniform(low, high, 300) * 10 ** rng.uniform(-6, 0, 300)])
    z = deflections(spring, torques)
    given = np.array([float(LAWS[law](x)) for x in z])
    assert np.abs(given - torques).max() < 1e-9 * max(abs(low), abs(high))


@pytest.mark.sample(1)
@pytest.mark.parametrize("law", LAWS)
def test_derivatives_agree_with_differences(law):
    """Of order one and two, by the linear equations of the jets and by AD through the iteration."""
    spring = el.NonlinearSpring(LAWS[law])
    t = ca.SX.sym("t")
    tau = 2.0 + 0.5 * ca.sin(t)
    jet = spring.deflections([tau, ca.jacobian(tau, t), ca.jacobian(ca.jacobian(tau, t), t)], [])[0]
    f = ca.Function("f", [t], [*jet, ca.jacobian(jet[0], t), ca.jacobian(ca.jacobian(jet[0], t), t)])
    h = 1e-3
    at = np.array([[float(x) for x in f(0.3 + k * h)] for k in (-2, -1, 0, 1, 2)])
    first = (at[0, 0] - 8 * at[1, 0] + 8 * at[3, 0] - at[4, 0]) / (12 * h)
    second = (-at[0, 0] + 16 * at[1, 0] - 30 * at[2, 0] + 16 * at[3, 0] - at[4, 0]) / (12 * h**2)
    assert at[2, 1] == pytest.approx(first, rel=1e-6)
    assert at[2, 2] == pytest.approx(second, rel=1e-4, abs=1e-8)
    assert at[2, 3] == pytest.approx(at[2, 1], rel=1e-9)
    assert at[2, 4] == pytest.approx(at[2, 2], rel=1e-6, abs=1e-10)


@pytest.mark.sample(1)
@pytest.mark.parametrize("law, torque", [("tanh", 7.0), ("tanh", -5.1), ("exp", -6.0), ("softening", 200.0)])
def test_torques_out_of_reach_are_named(law, torque):
    spring = el.NonlinearSpring(LAWS[law])
    with pytest.raises(od.LimitError, match=f"NonlinearSpring: no deflection gives the torque {torque:g}.*short of it"):
        spring.deflections([torque], [])
    assert np.isnan(deflections(spring, [torque])[0])


def test_a_range_that_the_law_does_not_reach_is_refused():
    with pytest.raises(od.ModelError, match="torque_range is -10 to 10, but the law, where it rises, reaches -5 to 5"):
        el.NonlinearSpring(LAWS["tanh"], torque_range=(-10, 10))
    with pytest.raises(od.ModelError, match="torque_range is \\(3, 1\\)"):
        el.NonlinearSpring(LAWS["sinh"], torque_range=(3, 1))
    assert el.NonlinearSpring(LAWS["sinh"], torque_range=(-500, 500)).torque_range == (-500, 500)


def test_polynomial_springs_cost_no_more_than_they_did():
    tau = ca.SX.sym("tau")
    f = ca.Function("f", [tau], [el.NonlinearSpring(LAWS["cubic"]).deflections([tau], [])[0][0]])
    assert f.n_instructions() <= 314  # 25 steps of Newton's method


@pytest.mark.slow
def test_variable_spring_at_any_stiffness():
    spring = el.VariableSpring(lambda z, s: s * ca.sinh(20 * z))
    for torque, sigma in ((300.0, 0.5), (-40.0, 20.0), (5.0, 900.0)):
        z = float(spring.deflections([torque], [sigma])[0][0])
        assert z == pytest.approx(np.arcsinh(torque / sigma) / 20, rel=1e-9)
    saturating = el.VariableSpring(lambda z, s: s * ca.tanh(20 * z))
    with pytest.raises(od.LimitError, match="torque 8 at sigma = 5.*-5 to 5"):
        saturating.deflections([8.0], [5.0])
    with pytest.raises(od.ModelError, match="at sigma = 5 the law"):
        el.VariableSpring(lambda z, s: s * ca.tanh(20 * z), torque_range=(-8, 8), sigma_range=(5, 20))


def test_pairs_find_both_deflections():
    pair = el.AntagonisticSprings(lambda z: 0.5 * (ca.exp(40 * z) - 1), guess=(0.05, -0.05))
    for torque, stiffness in ((5.0, 1000.0), (-100.0, 4800.0), (0.0, 40.0), (300.0, 1e5)):
        up, down = (stiffness / 20 + s * 2 * torque for s in (1, -1))  # e^(40 z_1), e^(-40 z_2) are half of these
        z = [float(x[0]) for x in pair.deflections([torque], [stiffness])]
        assert z == pytest.approx([np.log(up / 2) / 40, -np.log(down / 2) / 40], abs=1e-9)


@pytest.mark.slow
def test_stiffness_that_a_pair_cannot_have_is_named():
    """Of springs 20 (exp(8 z) - 1) the first slack, the second bearing all: 160 (1 + 51)."""
    pair = el.AntagonisticSprings(lambda z: 20 * (ca.exp(8 * z) - 1))
    with pytest.raises(od.LimitError, match=r"torque -1000 with the stiffness 500; .* is at least 8320$"):
        pair.deflections([-1000.0], [500.0])
    with pytest.raises(od.ModelError, match="no deflections give the torque"):
        el.AntagonisticSprings(lambda z: 20 * (ca.exp(8 * z) - 1), torque_range=(-50, 50), sigma_range=(200, 900))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "torque, stiffness, least",
    [(0.0, 10.0, 60), (0.0, 59.9999, 60), (10.0, 60.0001, 120), (10.0, 119.999, 120), (-10.0, 119.999, 120)],
)
def test_springs_of_a_pair_do_not_push(torque, stiffness, least):
    """5 (exp(6 z) - 1): 30 (exp(6 z_1) + exp(-6 z_2)), of which both are at least 1, and the bearing one 3 at 10 Nm."""
    pair = el.AntagonisticSprings(lambda z: 5 * (ca.exp(6 * z) - 1))
    with pytest.raises(od.LimitError, match=f"is at least {least}$"):
        pair.deflections([torque], [stiffness])


@pytest.mark.parametrize("torque", [0.0, 10.0, -10.0])
def test_pairs_are_found_down_to_where_one_is_slack(torque):
    pair = el.AntagonisticSprings(lambda z: 5 * (ca.exp(6 * z) - 1))
    stiffness = 60.0 + 6 * abs(torque) + 1e-3
    first, second = (float(x[0]) for x in pair.deflections([torque], [stiffness]))
    up, down = ((stiffness / 30 + s * torque / 5) / 2 for s in (1, -1))
    assert [first, second] == pytest.approx([np.log(up) / 6, -np.log(down) / 6], abs=1e-9)
    assert first > 0 > second


@pytest.mark.slow
def test_springs_that_pull_without_deflection_are_soft_at_will():
    """5 exp(6 z) pulls always, and its pair at 10 Nm has more than 60 Nm/rad."""
    pair = el.AntagonisticSprings(lambda z: 5 * ca.exp(6 * z))
    z = [float(x[0]) for x in pair.deflections([10.0], [60.0001])]
    assert z == pytest.approx([np.log(2.00000166666666) / 6, -np.log(1.66666666e-6) / 6], abs=1e-6)
    with pytest.raises(od.LimitError, match="is at least 60$"):
        pair.deflections([10.0], [59.9])


@pytest.mark.sample(1)
@pytest.mark.parametrize("torque", [19.999, 19.9999, 19.99999, -19.99999])
def test_torques_close_to_the_reach_are_found(torque):
    spring = el.NonlinearSpring(lambda z: 20 * ca.tanh(5 * z))
    z = float(spring.deflections([torque], [])[0][0])
    assert z == pytest.approx(np.arctanh(torque / 20) / 5, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "torque, error, text",
    [
        (20.0, od.LimitError, "torque 20; .* -20 to 20, never quite"),
        (-20.0000001, od.LimitError, r"torque -20.0000001; .* -20 to 20, short of it by 1e-07"),
        (np.nan, od.ShapeError, "the torque is nan, expected a finite number"),
        (np.inf, od.ShapeError, "the torque is inf, expected a finite number"),
    ],
)
def test_messages_tell_the_torque_from_the_reach(torque, error, text):
    with pytest.raises(error, match=text):
        el.NonlinearSpring(lambda z: 20 * ca.tanh(5 * z)).deflections([torque], [])


NO_SPRINGS = [
    lambda k: el.LinearSpring(k),
    lambda k: el.LinearSpring(300.0, damping=k if k != 0 else -1.0),
    lambda k: el.NonlinearSpring(LAWS["cubic"], factor=k),
    lambda k: el.AntagonisticSprings(LAWS["exp"], factor=k),
]


@pytest.mark.sample(12)
@pytest.mark.parametrize("k", [-5, 0, np.nan, np.inf, "a", True, None, np.ma.masked_array([3.0], [True])])
@pytest.mark.parametrize("make", NO_SPRINGS)
def test_numbers_of_springs_are_checked(make, k):
    with pytest.raises(od.ModelError, match="(stiffness|damping|factor) is .*, expected a finite number"):
        make(k)


def test_springs_that_push_away_are_refused():
    with pytest.raises(od.ModelError, match="the law falls"):
        el.NonlinearSpring(lambda z: -5 * z)
    with pytest.raises(od.ModelError, match="guess"):
        el.NonlinearSpring(LAWS["cubic"], guess=np.nan)


@pytest.mark.slow
def test_robots_name_the_joint():
    """The arm weighs 5.9 Nm when it lies flat, and the spring gives 5."""
    weak = el.elastic_robot(planar_arm(1), el.NonlinearSpring(LAWS["tanh"]), motor_inertia=0.3)
    with pytest.raises(od.LimitError, match="q_goal: .*joint 'joint1': NonlinearSpring.*torque 5.886"):
        el.plan_elastic(weak, [1.5], [0.0], motor_torque=60.0)
    reference = el.reference(weak, lambda t: 1.5 - 1.5 * t, duration=1.0)
    with pytest.raises(od.LimitError, match="reference cannot be followed.*joint 'joint1' at t = "):
        el.simulate(weak, el.feedforward(weak), reference, torque_limit=4.0)
