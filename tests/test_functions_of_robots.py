"""Functions that do not come from od.function check what they are given in the same way, and so do those that read
robots and motions."""

import pickle

import casadi as ca
import numpy as np
import pytest
from samples import build, relative, robot

import oc_dyn as od
from oc_dyn.identification import condition, exciting_motion, identify, is_physical, nearest_physical


def floating():
    return build(["revolute", "revolute"], seed=3, floating_base=True)


R = floating()
Q, V = R.random_configuration(1), np.random.default_rng(1).normal(size=R.nv)
TWICE = np.where(np.arange(R.nq) < 4, 2, 1) * Q
LINK = R.bodies[-1].name
FUNCTIONS = {  # and arguments that are right, the last one not a configuration but for the difference
    "contact_points": (lambda: od.contact_points(R, [LINK, LINK]), [Q, V]),
    "contact_wrenches": (lambda: od.contact_wrenches(R, [LINK, LINK]), [Q, np.ones((3, 2))]),
    "integrate": (R.integrate_function, [Q, V]),
    "difference": (R.difference_function, [Q, R.random_configuration(2)]),
    "base_regressor": (lambda: od.base_parameters(R).regressor(), [Q, V, V]),
}
ODD = {
    "one number": 1.0,
    "truth values": lambda x: np.full(np.shape(x), True),
    "masked": lambda x: np.ma.masked_array(x, np.ones(np.shape(x))),
    "text": "a",
    "none": None,
    "complex": lambda x: 1j * x,
    "short": lambda x: x[:-1],
    "list of symbols": [ca.SX.sym("x")] * 9,
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_value_of_a_port_is_refused(name, odd):
    make, right = FUNCTIONS[name]
    value = ODD[odd](right[-1]) if callable(ODD[odd]) else ODD[odd]
    port = make().name_in()[-1]
    with pytest.raises(od.ShapeError, match=f"port {port}"):
        make()(*right[:-1], value)


@pytest.mark.parametrize("wrong", [TWICE, 0 * Q], ids=["norm 2", "norm 0"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_quaternions_must_be_of_unit_length(name, wrong):
    make, right = FUNCTIONS[name]
    with pytest.raises(od.ShapeError, match="root_joint: the quaternion"):
        make()(wrong, *right[1:])


def test_a_second_configuration_is_checked_in_every_kind_of_call():
    f = R.difference_function()
    for call in (f, od.numpy_call(f), pickle.loads(pickle.dumps(f)), od.batch(f, fallback=True)):
        with pytest.raises(od.ShapeError, match="port q1: joint root_joint"):
            call(Q, TWICE)


def test_numbers_symbols_and_map_give_the_same():
    f, g = R.integrate_function(), R.difference_function()
    steps = np.column_stack([V, -V, 0.1 * V])
    want = np.column_stack([R.integrate(Q, v) for v in steps.T])
    assert relative(f(Q, steps).full(), want) < 1e-14
    assert relative(f.map(3)(np.column_stack([Q] * 3), steps).full(), want) < 1e-14
    q, v = ca.MX.sym("q", R.nq), ca.MX.sym("v", R.nv)
    assert relative(ca.Function("F", [q, v], [g(q, f(q, v))])(Q, 0.1 * V).full().ravel(), 0.1 * V) < 1e-12
    assert relative(f.normalizing()(TWICE, V).full()[4:].ravel(), R.integrate(Q, V)[4:]) < 1e-14
    assert R.integrate_function() is f  # built once, for it is asked for at every step of a problem


def test_base_regressor_gives_torques():
    base, dv = od.base_parameters(R), V[::-1]
    tau = od.function(R, "inverse_dynamics")(Q, V, dv)
    assert relative(base.regressor()(Q, V, dv).full() @ base.values, tau.full().ravel()) < 1e-10


def test_points_without_frames():
    assert od.contact_wrenches(R, [])(Q, np.zeros((3, 0))).shape == (6, len(R.bodies))
    assert not od.contact_wrenches(R, [])(Q, np.zeros((3, 0))).full().any()


def test_numbers_of_points_are_compared():
    f = od.function(robot("serial"), "inverse_dynamics")
    with pytest.raises(od.ShapeError, match="port q of 2, port v of 3 points"):
        f(np.zeros((4, 2)), np.zeros((4, 3)), 0)
    assert f(np.zeros((4, 2)), np.zeros((4, 1)), 0).shape == (4, 2)


@pytest.mark.parametrize("step", ["integrate", "difference", "configuration_rate"])
def test_two_kinds_of_symbols_in_one_step(step):
    r = robot("serial")
    with pytest.raises(od.ShapeError, match=f"{step}: q.* SX and MX"):
        getattr(r, step)(ca.SX.sym("a", 4), ca.MX.sym("b", 4))


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True])
def test_seeds(seed):
    for call in (R.random_configuration, lambda x: od.base_parameters(R, seed=x)):
        with pytest.raises(od.ShapeError, match="seed is .* expected an integer of at least 0"):
            call(seed)


NO_ROBOT = {
    "simulate": lambda x: od.simulate(x, [0], [0], np.zeros((3, 1)), 0.1),
    "motion_report": lambda x: od.motion_report(x, [0], [0], [0], [0]),
    "base_parameters": od.base_parameters,
    "contact_wrenches": lambda x: od.contact_wrenches(x, []),
    "contact_points": lambda x: od.contact_points(x, []),
    "identify": lambda x: identify(x, [[0]], [[0]], [[0]], [[0]]),
    "exciting_motion": exciting_motion,
    "condition": lambda x: condition(x, None),
    "inverse_kinematics": lambda x: od.inverse_kinematics(x, "tool", p=np.zeros(3)),
    "contact motion": lambda x: od.ContactMotion(x, (), [0, 1], [0], [0], [0], [0]),
    "rigid_body": lambda x: od.Problem(3, 1.0).rigid_body(x),
    "Limits.of": od.Limits.of,
    "planning": lambda x: od.plan_point_to_point(x, [0], [1]),
    "mass_matrix": lambda x: od.function(x, "mass_matrix"),
}


@pytest.mark.parametrize("what", NO_ROBOT)
def test_a_text_is_no_robot(what):
    with pytest.raises(od.ModelError, match=f"^{what}: robot is 'panda', expected a Robot"):
        NO_ROBOT[what]("panda")


# -- identification ---------------------------------------------------------------------------------------------


def samples(r, N=30):
    q = np.column_stack([r.random_configuration(k) for k in range(N)])
    v, dv = np.random.default_rng(0).normal(size=(2, r.nv, N))
    return {"q": q, "v": v, "dv": dv, "tau": od.function(r, "inverse_dynamics")(q, v, dv).full()}


WRONG = {
    "prior nan": ({"prior": np.full(R.parameters.size, np.nan)}, "prior has entries that are not finite"),
    "prior inf": ({"prior": np.where(np.arange(R.parameters.size) == 3, np.inf, 1)}, "not finite, of .*mz"),
    "friction": ({"friction": "no"}, "friction is 'no', expected True or False"),
    "confidence": ({"confidence": "a"}, "identify: confidence"),
    "sure": ({"confidence": 1}, "identify: confidence is 1, expected a number between 0 and 1"),
    "trust": ({"trust": "x"}, "identify: trust"),
    "norm 2": ({"q": np.column_stack([Q] * 29 + [TWICE])}, "identify: q: joint root_joint, column 29: .* norm 2"),
    "no samples": (dict.fromkeys(("v", "dv", "tau"), np.zeros((R.nv, 0))), r"shape \(8, 0\), expected .* one or more"),
}


@pytest.mark.parametrize("case", WRONG)
def test_identify_refuses(case):
    wrong, words = WRONG[case]
    with pytest.raises(od.ShapeError, match=words):
        identify(R, **{**samples(R), **wrong})


def test_predict_refuses_quaternions_of_other_length():
    given = samples(R)
    found = identify(R, **given)
    given.pop("tau")
    given["q"][:4, 7] *= 2
    with pytest.raises(od.ShapeError, match="predict: q: joint root_joint, column 7: .* norm 2"):
        found.predict(**given)


@pytest.mark.parametrize("x", [np.zeros(9), np.zeros((1, R.parameters.size)), 0.0], ids=["short", "row", "number"])
def test_base_parameters_of_another_size(x):
    with pytest.raises(od.ShapeError, match=rf"expected \({R.parameters.size},\)"):
        od.base_parameters(R).of(x)


@pytest.mark.parametrize("call", [is_physical, nearest_physical])
def test_no_body_is_made_of_what_is_no_number(call):
    with pytest.raises(od.ShapeError, match="entry 3 is not finite"):
        call(np.where(np.arange(10) == 3, np.nan, 1.0))


# -- motions ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fall():
    """R falls, turns and is pushed: times, q, v and efforts."""
    tau = np.ones((101, R.nv))
    q, v = od.simulate(R, Q, 0.3 * V, tau, 2e-3)
    return {"t": 2e-3 * np.arange(51), "q": R.normalized(q.T).T, "v": v, "tau": tau[:51]}


def test_the_sign_of_a_quaternion_is_no_difference(fall):
    flipped = fall["q"].copy()
    flipped[20:, :4] *= -1
    want, got = od.motion_report(R, **fall), od.motion_report(R, **{**fall, "q": flipped})
    assert max(want.values()) < 1e-6
    assert max(got.values()) < 1e-6


def test_a_turn_that_is_not_given_back_is_measured_as_one(fall):
    step = np.zeros(R.nv)
    step[:3] = 0.0, 1e-3, 0.0
    turned = fall["q"].copy()
    turned[-1] = R.integrate(turned[-1], step)
    report = od.motion_report(R, **{**fall, "q": turned})
    assert report["configuration given back by forward dynamics"] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"t": np.zeros(51)}, "t goes from 0 to 0, expected times that increase"),
        ({"t": -2e-3 * np.arange(51)}, "motion_report: t"),
        ({"t": np.full(51, np.nan)}, "motion_report: t"),
        ({"kinks": "abc"}, "motion_report: kinks"),
        ({"kinks": None}, "motion_report: kinks"),
        ({"q": np.vstack([Q] * 30 + [TWICE] * 21)}, "motion_report: q: joint root_joint, column 30: .* norm 2"),
    ],
)
def test_motion_report_refuses(fall, wrong, words):
    with pytest.raises(od.ShapeError, match=words):
        od.motion_report(R, **{**fall, **wrong})


@pytest.mark.parametrize("h", [0, -1e-3, np.nan, None])
def test_steps_are_positive(h):
    x, w = ca.SX.sym("x"), ca.SX.sym("w")
    with pytest.raises(od.ShapeError, match="simulate: h"):
        od.simulate(R, Q, V, np.zeros((3, R.nv)), h)
    with pytest.raises(od.ShapeError, match="rollout: h"):
        od.rollout(ca.Function("rate", [x, w], [w]), [0.0], np.zeros((3, 1)), h)
