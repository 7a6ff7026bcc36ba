"""Trajectory.scaled_in_time: closed forms of one joint, gravity, friction, what is refused."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import CheckWarning, LimitError, ModelError, ShapeError, SolveError

G, MASS = 9.81, 2.0


def slider(gravity=0.0, **joint):
    """A body on an upright rail."""
    b = od.RobotBuilder("slider", gravity=(0, 0, -gravity))
    b.add_link("rail")
    b.add_body("car", "prismatic", "rail", joint="z", axis=(0, 0, 1), mass=MASS, **joint)
    return b.build()


def smooth(T=1.0, gravity=0.0, limits=None, **joint):
    """z = 10 s^3 - 15 s^4 + 6 s^5: peaks 15/8, 10/sqrt(3), 60 over T, T^2, T^3."""
    piece = [0, 0, 0, 60 / T**3, -360 / T**4, 720 / T**5]
    return od.Trajectory([0, T], np.array(piece)[None, :, None], joints=("z",), units=("m",),
                         robot=slider(gravity, **joint), limits=limits)  # fmt: skip


def limits(**given):
    return od.Limits(("z",), **given)


PEAKS = {"v": (1, 15 / 8), "dv": (2, 10 / np.sqrt(3)), "d2v": (3, 60.0)}


@pytest.mark.sample(2)
@pytest.mark.parametrize("quantity", PEAKS)
@pytest.mark.parametrize("limit", [0.7, 300.0])
def test_one_derivative(quantity, limit):
    """T = (peak / limit)^(1 / order): slower or faster."""
    order, peak = PEAKS[quantity]
    found = smooth(2.5).scaled_in_time(limits=limits(**{quantity: limit}))
    assert found.duration == pytest.approx((peak / limit) ** (1 / order), rel=1e-7)
    assert found.check().worst == pytest.approx(1, rel=1e-6)
    assert found.info["scaled_by"] == pytest.approx(found.duration / 2.5)


def test_it_is_the_same_way():
    motion = smooth(2.0)
    found = motion.scaled_in_time(3.0)
    assert found.duration == pytest.approx(3.0)
    s = np.linspace(0, 1, 21)
    assert found.sample(3 * s).q == pytest.approx(motion.sample(2 * s).q)
    for k in (1, 2, 3):
        assert found.sample(3 * s).derivatives[k] == pytest.approx(motion.sample(2 * s).derivatives[k] / 1.5**k)


def test_unequal_limits():
    """The side that binds first decides: here that of slowing down."""
    found = smooth().scaled_in_time(limits=limits(dv=(-2, 20)))
    assert found.duration == pytest.approx(np.sqrt(PEAKS["dv"][1] / 2), rel=1e-7)


@pytest.mark.slow
def test_torque_under_gravity():
    """tau = m g + m z''/k^2 <= limit: gravity does not scale."""
    top = MASS * G + 3.0
    found = smooth(0.4, G).scaled_in_time(limits=limits(tau=top))
    assert found.duration == pytest.approx(np.sqrt(MASS * PEAKS["dv"][1] / 3.0), rel=1e-6)
    assert found.check().worst == pytest.approx(1, abs=1e-7)
    below = smooth(0.4, G).scaled_in_time(limits=limits(tau=(-40.0, 1000.0)))
    assert below.duration == pytest.approx(np.sqrt(MASS * PEAKS["dv"][1] / (MASS * G + 40)), rel=1e-6)


@pytest.mark.slow
def test_rate_of_the_torque():
    found = smooth(0.4, G).scaled_in_time(limits=limits(dtau=30.0))
    assert found.duration == pytest.approx((MASS * 60 / 30) ** (1 / 3), rel=1e-6)


@pytest.mark.slow
def test_the_slower_of_two_limits():
    found = smooth(0.1, G).scaled_in_time(limits=limits(tau=MASS * G + 3.0, v=0.1))
    assert found.duration == pytest.approx(18.75, rel=1e-7)
    found = smooth(0.1, G).scaled_in_time(limits=limits(tau=MASS * G + 3.0, v=10))
    assert found.duration == pytest.approx(np.sqrt(MASS * PEAKS["dv"][1] / 3.0), rel=1e-6)


@pytest.mark.slow
def test_friction_keeps_its_part():
    """Damping falls with the speed, Coulomb friction does not."""
    motion = smooth(0.4, G, friction=4.0, damping=5.0)
    top = MASS * G + 4.0 + 3.0
    found = motion.scaled_in_time(limits=limits(tau=top))
    s = np.linspace(0, 1, 200001)
    v, a = 30 * s**2 * (1 - s) ** 2, 60 * s - 180 * s**2 + 120 * s**3
    T = found.duration
    most = (MASS * a / T**2 + 5.0 * v / T).max()
    assert most == pytest.approx(3.0, rel=1e-5)
    with pytest.raises(LimitError, match="gravity and friction alone take tau = 23.* over its limit 23,"):
        motion.scaled_in_time(limits=limits(tau=23.0))


@pytest.mark.slow
def test_velocities_that_depend_on_the_position():
    """|z'| <= 1 - z / 2."""
    bounds = limits(v_of_q=lambda q: ([q[0] / 2 - 1], [1 - q[0] / 2]))
    found = smooth(0.4).scaled_in_time(limits=bounds)
    s = np.linspace(0, 1, 200001)
    z, v = 10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 * (1 - s) ** 2
    assert found.duration == pytest.approx((v / (1 - z / 2)).max(), rel=1e-5)


def test_a_plan_cannot_be_scaled_faster():
    arm = od.robots.double_pendulum()
    own = od.Limits(arm.coordinate_names, v=3.0, dv=20.0, d2v=200.0, tau=(-100, 120))
    plan = od.plan_point_to_point(arm, [-1, 0.5], [1, -0.5], limits=own, nodes=20, continuity=2)
    assert plan.scaled_in_time().duration == pytest.approx(plan.duration, rel=1e-5)
    half = plan.scaled_in_time(limits=own.scaled(dv=0.25))
    assert half.duration <= 2 * plan.duration * (1 + 1e-9)
    assert half.check().worst == pytest.approx(1, abs=1e-6)
    assert max(half.check().ends.values()) < 1e-8
    assert half.limits.dv.tolist() == [5, 5]


@pytest.mark.slow
def test_a_panda_with_its_torque_rates():
    arm = od.robots.panda()
    ready = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    plan = od.plan_point_to_point(arm, ready, ready + 0.4, nodes=20, scale={"tau": 0.8})
    for factor in (0.5, 0.2):
        own = plan.limits.scaled(dtau=factor)
        slow = plan.scaled_in_time(limits=own)
        assert slow.check().worst == pytest.approx(1, abs=1e-6)
        assert plan.stretched(slow.duration / plan.duration * (1 - 1e-6)).check(own).worst > 1


def test_what_cannot_be_scaled_is_refused():
    words = "gravity and friction alone take tau = 19.62 of joint 'z' .* over its limit 19,"
    with pytest.raises(LimitError, match=words):
        smooth(1, G).scaled_in_time(limits=limits(tau=19.0))
    moving = od.Trajectory([0, 1], [[[0.0], [0.5], [-0.5]]], joints=("z",), units=("m",), limits=limits(v=1.0))
    with pytest.raises(LimitError, match="joint 'z' has the velocity 0.5 at the start, which another duration would"):
        moving.scaled_in_time(2.0)
    with pytest.raises(ShapeError, match="the trajectory has no limits; give a duration, or limits"):
        smooth().scaled_in_time()
    with pytest.raises(LimitError, match="no limit bounds the time"):
        smooth().scaled_in_time(limits=limits(q=(-1, 2)))
    with pytest.raises(LimitError, match="has v on the side where its limit is 0"):
        smooth().scaled_in_time(limits=limits(v=(-1, 0)))
    jumps = od.Trajectory([0, 1, 2], [[[0.0], [0], [1]], [[0.5], [1], [-1]]], joints=("z",), units=("m",))
    with pytest.raises(LimitError, match="d2v of joint 'z' is infinite at 1 s, however slow the motion; lift its"):
        jumps.scaled_in_time(limits=limits(d2v=10.0, v=1))
    with pytest.raises(ModelError, match="limits of tau need the robot"):
        jumps.scaled_in_time(limits=limits(tau=10.0, v=1))
    with pytest.raises(ShapeError, match="duration"):
        smooth().scaled_in_time(-1.0)


def test_a_duration_that_is_too_short_is_told():
    motion = smooth(limits=limits(v=1.0))
    with pytest.warns(CheckWarning, match="scaled_in_time: v of joint 'z' is 3.75 .* give a longer duration"):
        motion.scaled_in_time(0.5)
    with pytest.raises(SolveError):
        motion.scaled_in_time(0.5, check="raise")
    assert motion.scaled_in_time(0.5, check="off").duration == pytest.approx(0.5)


def test_positions_outside_their_limits_are_refused():
    """However slow it is, the way is the same."""
    with pytest.raises(LimitError, match="'z' is at 1 at 1 s, outside its limits 0 to 0.5, however slow"):
        smooth().scaled_in_time(limits=limits(q=(0, 0.5), v=1.0))
    assert smooth().scaled_in_time(limits=limits(q=(0, 1), v=1.0)).duration == pytest.approx(15 / 8)
