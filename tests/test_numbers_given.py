"""Numbers that users give: what is no array of real numbers is refused wherever it enters, never turned into one."""

from decimal import Decimal
from fractions import Fraction

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import interop
from oc_dyn.errors import ShapeError
from oc_dyn.numbers import as_floats

ODD = {
    "masked": np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "masked, no mask": np.ma.array([1.0, 2.0, 3.0]),
    "list of masked": [np.ma.masked, 1.0, 2.0],
    "complex": np.array([1, 2, 3j]),
    "complex without imaginary part": np.array([1, 2, 3 + 0j]),
    "text": ["1", "2", "3"],
    "array of text": np.array(["1", "2", "3"]),
    "truth values": np.array([True, False, True]),
    "list with a truth value": [1.0, True, 2.0],
    "None among numbers": [1.0, None, 2.0],
    "objects": np.array([1.0, None, "2"], object),
    "dates": np.array(["2020-01-01"] * 3, "datetime64[D]"),
    "spans of time": np.array([1, 2, 3], "timedelta64[s]"),
    "symbols in a list": [ca.SX.sym("x"), 1.0, 2.0],
}
ZERO = np.zeros(3)


@pytest.fixture(scope="module")
def robot():
    return od.robots.chain(3)


@pytest.fixture(scope="module")
def wrenches(robot):
    return od.function(robot, "inverse_dynamics", external_wrenches=True)


PLACES = {
    "port by name": lambda r, f, x: f(q=x, v=ZERO, dv=ZERO),
    "port by position": lambda r, f, x: f(ZERO, x, ZERO, 0),
    "wrench of a body": lambda r, f, x: f(q=ZERO, w_ext={"link1": x}),
    "numpy_call": lambda r, f, x: od.numpy_call(od.function(r, "inverse_dynamics"))(x, ZERO, ZERO),
    "integrate": lambda r, f, x: r.integrate(ZERO, x),
    "lock": lambda r, f, x: r.locked({"joint1": x[1:2]}),
    "gravity": lambda r, f, x: r.with_gravity(x),
    "inertia": lambda r, f, x: od.Inertia.from_com(1.0, x),
    "builder": lambda r, f, x: od.RobotBuilder("r", gravity=x),
    "limits": lambda r, f, x: od.Limits(("a", "b", "c"), v=x),
    "plan": lambda r, f, x: od.plan_point_to_point(r, ZERO, x),
    "Problem": lambda r, f, x: od.Problem(nodes=2, duration=1.0).state("x", 3, lower=x),
    "base parameters": lambda r, f, x: od.base_parameters(r).of(x),
    "physical": lambda r, f, x: od.identification.is_physical(x),
}


@pytest.mark.parametrize("kind", ODD)
def test_no_numbers(kind):
    with pytest.raises(ShapeError, match="^here: got .*expected (real )?numbers"):
        as_floats("here", ODD[kind])


@pytest.mark.parametrize("place", PLACES)
def test_masks_are_refused_wherever_numbers_enter(robot, wrenches, place):
    with pytest.raises(ShapeError, match="without a mask"):
        PLACES[place](robot, wrenches, ODD["masked"])


@pytest.mark.parametrize("place", PLACES)
def test_complex_numbers_are_refused_wherever_numbers_enter(robot, wrenches, place):
    with pytest.raises(ShapeError, match="real numbers"):
        PLACES[place](robot, wrenches, np.asarray(ODD["complex"]))


@pytest.mark.parametrize(
    "given, floats",
    [
        (3, 3.0),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3.0),
        (range(3), [0.0, 1.0, 2.0]),
        ([Fraction(1, 2), Decimal("1.5")], [0.5, 1.5]),
        (np.array([Fraction(1, 2), 2], object), [0.5, 2.0]),
        (ca.DM([1, 2]), [[1.0], [2.0]]),
        (np.arange(6).reshape(2, 3)[:, ::-1], [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]),
        ([], []),
    ],
)
def test_numbers(given, floats):
    found = as_floats("here", given)
    assert found.dtype == float
    assert found.tolist() == floats


def test_nan_is_a_number():
    assert np.isnan(as_floats("here", [np.nan, 1.0])).tolist() == [True, False]


def test_nan_comes_out_of_a_function_as_it_went_in(robot):
    tau = od.function(robot, "inverse_dynamics")(q=[np.nan, 0, 0], v=ZERO, dv=ZERO)["tau"]
    assert np.isnan(tau.full()).any()


# -- one number for many --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "five", [5, 5.0, [5], np.array(5.0), np.nan, ca.DM(5), ca.SX(5), ca.SX.sym("x"), ca.MX.sym("x")]
)
@pytest.mark.parametrize("way", ["name", "position", "compiled"])
def test_one_number_is_not_spread_over_the_rows(robot, way, five):
    f = od.function(robot, "inverse_dynamics")
    f = od.compile(f, fallback=True) if way == "compiled" else f
    with pytest.raises(ShapeError, match=r"port v got shape \(1, 1\), expected \(3, 1\) for joint1.*single 0"):
        f(0, five, 0) if way == "position" else f(q=0, v=five, dv=0)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, [0], np.zeros(1), np.array(0), ca.DM(0), ca.SX(0), ca.MX(0)])
def test_a_single_zero_stands_for_zeros(robot, zero):
    f = od.function(robot, "inverse_dynamics")
    q = np.array([0.1, 0.2, 0.3])
    named, placed = f(q=q, v=zero, dv=zero)["tau"], f(q, zero, zero)
    expected = f(q=q, v=ZERO, dv=ZERO)["tau"].full()
    assert np.array_equal(ca.evalf(named).full(), expected)
    assert np.array_equal(ca.evalf(placed).full(), expected)


def test_a_number_is_enough_for_one_row():
    f = od.function(od.robots.chain(1), "inverse_dynamics")
    assert f(q=0.3, v=1, dv=2)["tau"].full() == f(q=[0.3], v=[1], dv=[2])["tau"].full()


def test_one_number_is_no_matrix_of_wrenches(wrenches):
    with pytest.raises(ShapeError, match=r"port w_ext got shape \(1, 1\), expected \(6, 3\)"):
        wrenches(q=ZERO, w_ext=1.0)


def test_numpy_call_and_batch_take_no_single_number(robot):
    f = od.function(robot, "inverse_dynamics")
    with pytest.raises(ShapeError, match="port v"):
        od.numpy_call(f)(ZERO, 5.0, ZERO)
    with pytest.raises(ShapeError, match="port v"):
        od.batch(f)(ZERO, 5.0, ZERO)


def test_arrays_that_lie_the_wrong_way(robot):
    f = od.function(robot, "inverse_dynamics")
    with pytest.raises(ShapeError, match=r"got shape \(4, 3\), expected \(3, 1\)"):
        f(q=np.zeros((4, 3)), v=ZERO, dv=ZERO)  # points go side by side, not one below the other
    assert f(q=np.zeros((3, 4)), v=0, dv=0)["tau"].shape == (3, 4)


def test_conversions_to_other_libraries_check_too():
    with pytest.raises(ShapeError, match="without a mask"):
        interop.rotation_to_quaternion(np.ma.array(np.eye(3), mask=np.eye(3)))
