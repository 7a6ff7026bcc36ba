"""Overconstrained loops in space: Bennett's linkage, whose closed form is known, at all angles of its crank."""

import pickle

import casadi as ca
import numpy as np
import pytest
from loops.linkages import BENNETT, largest, linkage

import oc_dyn as od
from oc_dyn.lie.time_derivatives import time_derivatives
from oc_dyn.loops.closing import closing
from oc_dyn.loops.functions import closing_check
from oc_dyn.model.assembly import closing_blocks

ALL_ROUND = np.append(np.linspace(-3.1, 3.1, 31), 0.7)  # 0 is one of them: there the rows best near home are singular
HARD = (0.0, 1e-3, -0.3, -2.5)


def by_closed_form(q):
    """All joints: tan(j1 / 2) tan(j2 / 2) = sin((beta + alpha) / 2) / sin((beta - alpha) / 2), j3 = -j1."""
    alpha, beta = BENNETT["alpha"], BENNETT["beta"]
    share = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    return ca.vertcat(q, 2 * ca.atan2(share * ca.cos(q / 2), ca.sin(q / 2)), -q)


def apart(x, y):
    """Largest distance of angles, whole turns apart being the same."""
    x, y = (np.array(z, float).ravel() for z in (x, y))
    return np.abs(2 * np.sin((x - y) / 2)).max()


def test_all_joints_are_where_the_closed_form_says_all_round():
    f = od.function(linkage("bennett"), "loop_closure")
    found = [np.array(f(q)[0]) for q in ALL_ROUND]
    assert max(apart(x, by_closed_form(q)) for x, q in zip(found, ALL_ROUND, strict=True)) < 1e-12


def test_one_mode_goes_all_round():
    robot = linkage("bennett")
    modes = {robot.mode(np.array(by_closed_form(q)).ravel())["hinge"] for q in (-3.1, *HARD)}
    assert modes == set(robot.mode(robot.home).values())


@pytest.mark.slow
def test_a_motion_over_two_turns_is_closed_continuously():
    robot = linkage("bennett")
    q = robot.close(np.stack([np.linspace(0.7, 0.7 + 4 * np.pi, 200), *np.tile(robot.home[1:, None], 200)]))
    assert max(apart(x, by_closed_form(x[0])) for x in q.T) < 1e-9
    assert np.abs(np.diff(q)).max() < 0.2


@pytest.mark.parametrize("method", ["implicit", "ad"])
def test_motion_and_its_derivatives_are_those_of_the_closed_form(method):
    order, q = 3, ca.SX.sym("q")
    V = [ca.SX.sym(f"v{k}") for k in range(order + 1)]
    flow = [(q, V[0]), *((V[k], V[k + 1]) for k in range(order))]
    expected = ca.Function("hand", [q, *V[:order]], time_derivatives(by_closed_form(q), order, flow, cse=True)[1:])
    f = od.function(linkage("bennett"), "loop_closure", order=order, method=method)
    rates = (0.8, -0.4, 0.3)
    for at in HARD:
        assert max(largest(x, y) for x, y in zip(f(at, *rates)[1:4], expected(at, *rates), strict=True)) < 1e-9


def test_casadi_differentiates_twice_through_the_closing():
    f, q = od.function(linkage("bennett"), "loop_closure"), ca.MX.sym("q")
    x, y = ca.Function.call(f, [q])[0], by_closed_form(q)
    for at in HARD:
        found, expected = (
            ca.Function("d", [q], [ca.jacobian(z, q), ca.jacobian(ca.jacobian(z, q), q)])(at) for z in (x, y)
        )
        assert max(largest(a, b) for a, b in zip(found, expected, strict=True)) < 1e-9


@pytest.mark.parametrize("quantity", ["constrained_dynamics", "impact"])
def test_explicit_constraints_agree_with_embedding_where_a_choice_of_rows_is_singular(quantity):
    robot, tau = linkage("bennett"), np.array([1.0, 0.2, 0.3])
    forward, closure = od.function(robot, "forward_dynamics"), od.function(robot, "loop_closure", order=1)
    M, MG = od.function(robot.tree, "mass_matrix"), od.function(robot, "mass_matrix")
    for at in HARD:
        x, v, G = (y.full() for y in closure(at, 0.8)[:3])
        for method in ("delassus", "kkt"):
            f = od.function(robot, quantity, method=method)
            if quantity == "impact":
                before = np.array([1.0, 2.0, 3.0])
                found = f(x, before, 0)[0]
                expected = G @ np.linalg.solve(np.array(MG(at)), G.T @ np.array(M(x)) @ before)
            else:
                found, expected = f(x, v, tau)[0][0], forward(at, 0.8, G.T @ tau)
            assert largest(np.array(found).ravel(), np.array(expected).ravel()) < 1e-9


def test_forces_and_their_derivatives_agree_with_ad():
    robot = linkage("bennett")
    x, v = (np.array(y) for y in od.function(robot, "loop_closure", order=1)(0.0, 0.8)[:2])
    tau = np.array([[1.0, 0.2, 0.3], [2.0, 0.1, 0.0]])
    found, expected = (od.function(robot, "constrained_dynamics", order=1, method=m)(x, v, *tau) for m in ("kkt", "ad"))
    assert max(largest(a, b) for a, b in zip(found, expected, strict=True)) < 1e-9


@pytest.mark.parametrize("method", ["order_by_order", "ad"])
def test_torques_and_forces_carry_the_motion_where_a_choice_of_columns_is_singular(method):
    robot = linkage("bennett")
    x, v, dv = (np.array(y) for y in od.function(robot, "loop_closure", order=2)(0.0, 0.8, 0.3)[:3])
    tau, force, left = od.function(robot, "constrained_inverse_dynamics", method=method)(x, v, dv)
    assert largest(tau, od.function(robot, "inverse_dynamics")(0.0, 0.8, 0.3)) < 1e-10
    assert np.abs(np.array(left)).max() < 1e-10
    assert np.abs(np.array(force)).max() < 100


@pytest.mark.slow
def test_derivatives_with_multipliers_of_forces_agree_with_ad():
    robot, rng = linkage("bennett"), np.random.default_rng(0)
    x, v = (np.array(y) for y in od.function(robot, "loop_closure", order=1)(0.0, 0.8)[:2])
    tau, lam, lam_f = rng.normal(size=3), rng.normal(size=3), rng.normal(size=5)
    for what, more in (("partials", ()), ("adjoint", (lam, lam_f))):
        found, expected = (
            od.function(robot, f"constrained_dynamics_{what}", method=m)(x, v, tau, *more) for m in ("implicit", "ad")
        )
        assert max(largest(a, b) for a, b in zip(found, expected, strict=True)) < 1e-9


def test_modes_of_a_block_with_two_are_told_apart():
    robot = linkage("bennett_with_rocker")
    ((block,),) = (closing_blocks(robot),)
    assert not block.square
    home = robot.mode(robot.home)
    flipped = robot.close([0.7, robot.home[1], -0.7, 2.646, -2.137])  # mirrored in the line through the rocker's pin
    assert apart(flipped[3:], [2.646, -2.137]) < 1e-2
    assert robot.mode(flipped) != home
    f = od.function(robot, "loop_closure")
    assert all(robot.mode(np.array(f(q)[0])) == home for q in (-3.0, 0.0))
    followed = np.array(od.function(robot, "loop_closure", q_guess=True)(1.5, flipped)[0]).ravel()
    assert robot.mode(followed) != home


def test_a_way_through_a_singular_position_is_refused_as_another_mode():
    """A parallelogram whose links come into a line at j1 = 0 goes on as one, on the other side, or as an
    antiparallelogram, on the same."""
    robot = linkage("bennett_with_parallelogram")
    home = robot.mode(robot.home)
    off, mode = closing_check(robot)[0](-1.0)
    x = np.array(closing(robot)([-1.0], robot.home)[0]).ravel()
    as_before = apart(x[1], x[4]) < 1e-6
    assert float(off) < 0
    assert (float(mode) > 0) == as_before
    assert (robot.mode(x) != home) == as_before
    assert float(closing_check(robot)[0](1.0)[1]) < 0


def test_plane_linkages_keep_their_rows():
    for name in ("four_bar", "slider_crank"):
        assert all(b.square for b in closing_blocks(linkage(name)))


def test_functions_of_overconstrained_loops_survive_pickling():
    f = od.function(linkage("bennett"), "inverse_dynamics")
    assert float(pickle.loads(pickle.dumps(f))(-0.3, 1.0, 0.0)) == float(f(-0.3, 1.0, 0.0))


def test_power_is_the_rate_of_the_energies_all_round():
    robot = linkage("bennett")
    inverse = od.function(robot, "inverse_dynamics")
    kinetic, potential = od.function(robot, "kinetic_energy", order=1), od.function(robot, "potential_energy", order=1)
    for q in ALL_ROUND:
        rate = float(kinetic(q, 0.8, 0.3)[1] + potential(q, 0.8)[1])
        assert abs(0.8 * float(inverse(q, 0.8, 0.3)) - rate) < 1e-9 * max(1.0, abs(rate))
