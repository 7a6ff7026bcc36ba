"""Motions along paths of robots with Coulomb friction: torques and their rates where joints turn round."""

import warnings

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.friction import SMOOTHING
from oc_dyn.planning.curves import spline
from oc_dyn.planning.path_turns import snapped, turns

WAY = [[0.0, 0.0], [0.6, 0.5], [1.1, 0.1], [1.7, 0.45]]  # the second joint turns three times


def pair(friction, axis=(0, 0, 1), **limits):
    """Two links, by default about the vertical: no gravity."""
    b = od.RobotBuilder("pair")
    b.add_link("base")
    given = {"lower": -3, "upper": 3, "velocity": 20, "acceleration": 60, "friction": friction, **limits}
    inertia = 0.01 * np.eye(3)
    for name, base in (("one", "base"), ("two", "one")):
        place = {} if base == "base" else {"xyz": (0.4, 0, 0)}
        b.add_body(name, "revolute", base, axis=axis, mass=1, com=(0.2, 0, 0), inertia=inertia, **place, **given)
    return b.build()


def torques(robot, motion, friction, dt=2e-5):
    """(tau, dtau) by inverse dynamics of a robot without friction, and friction by hand: its sign exact in tau."""
    s = motion.both_sides(dt)
    tau, rate = (np.array(x).T for x in od.function(robot, "inverse_dynamics", order=1)(s.q.T, s.v.T, s.dv.T, s.d2v.T))
    slope = friction / SMOOTHING / np.cosh(np.minimum(np.abs(s.v) / SMOOTHING, 300)) ** 2
    return tau + friction * np.sign(np.round(s.v, 9)), rate + slope * s.dv


@pytest.mark.parametrize(
    "friction, limit, continuity",
    [
        (1.0, 200, 2),
        pytest.param(0.5, 60, 2, marks=pytest.mark.slow),
        pytest.param(0.5, 150, 3, marks=pytest.mark.slow),
    ],
)
def test_the_rate_of_torque_is_kept_where_joints_turn(friction, limit, continuity):
    robot = pair(friction, effort=8, effort_rate=limit)
    motion = od.plan_along_path(robot, WAY[:1] + [[0.5, 0.4], [1.0, 0.1]], nodes=24, continuity=continuity, check="off")
    rate = np.abs(torques(robot, motion, friction)[1]).max() / limit
    assert rate < 1.0015
    assert rate > 0.98


@pytest.mark.slow
def test_torque_is_kept_on_both_sides_of_a_turn():
    """Where the second joint turns its friction jumps by twice its size, and its limit leaves room for that alone."""
    robot = pair(1.2, effort=2.6, acceleration=300)
    motion = od.plan_along_path(robot, WAY, nodes=40, check="raise")
    tau = np.abs(torques(robot, motion, 1.2)[0]).max() / 2.6
    assert tau < 1.0015
    assert tau > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 3, 4, 5])
def test_limits_hold_on_random_paths_with_friction(seed):
    rng = np.random.default_rng(seed)
    axis = ((0, 0, 1), (0, 1, 0))[seed % 2]
    robot = pair(rng.uniform(0.2, 1.0), axis, effort=12, effort_rate=rng.uniform(100, 400))
    way = np.cumsum(rng.uniform(-0.5, 0.5, (4, 2)), axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = od.plan_along_path(robot, way, nodes=40, continuity=2 + seed // 2 % 2)
    assert motion.check().worst < 1.001


def test_turns_are_where_a_joint_changes_its_direction():
    way = np.array(WAY)
    on = spline(way, np.linspace(0, 1, 4))
    found = turns(on, [0, 1])
    assert len(found) == 2
    assert np.abs(on.at(found, 2)[1][:, 1]).max() < 1e-9
    s = np.linspace(0, 1, 20001)
    slope = on.at(s, 2)[1][:, 1]
    assert np.sum(slope[:-1] * slope[1:] < 0) == 2
    assert turns(on, [0]).size == 0
    assert turns(on, []).size == 0


def test_nodes_move_to_turns_and_stay_in_order():
    places = np.linspace(0, 1, 11)
    moved = snapped(places, [0.02, 0.33, 0.36, 0.4999, 0.98], np.array([0.5]))
    assert np.all(np.diff(moved) > 0)
    assert {0.02, 0.33, 0.36, 0.98} <= set(moved)
    assert 0.5 in moved
    assert moved[[0, -1]].tolist() == [0.0, 1.0]
    full = snapped(np.array([0.0, 0.5, 1.0]), [0.2, 0.3], np.zeros(0))
    assert full.tolist() == [0.0, 0.2, 1.0]
