"""States on manifolds: known rotations and optima, orders of methods, norms, ends, phases, robots, what is refused."""

import pickle
import re
import warnings
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from samples import robot as sample

import oc_dyn as od
from oc_dyn.errors import LimitError, ShapeError
from oc_dyn.lie import so3
from oc_dyn.model import joints as jt
from oc_dyn.optimal_control import manifolds
from oc_dyn.optimal_control.integrators import METHODS, collocation
from oc_dyn.optimal_control.starts import random_guess

AXIS = np.array([1.0, 2.0, 2.0]) / 3
UNIT = np.array([1.0, 0.0, 0.0, 0.0])
TIGHT = {"tol": 1e-13, "constr_viol_tol": 1e-14, "acceptable_tol": 1e-12}


def flat(x):
    return np.array(ca.DM(x)).ravel()


def times(*quaternions):
    """Product of quaternions."""
    out = ca.DM(UNIT)
    for Q in quaternions:
        out = so3.quat_mul(out, ca.DM(Q))
    return flat(out)


def exp(w):
    return flat(so3.quat_exp(ca.DM(w)))


def angle(P, Q):
    """Angle [rad] between two orientations, whatever the signs of their quaternions."""
    return float(np.linalg.norm(flat(so3.quat_log(so3.quat_mul(so3.quat_conj(ca.DM(P)), ca.DM(Q))))))


def norms(found, name="o"):
    return np.linalg.norm(found[name][:, :4], axis=1)


def reorientation(nodes=10, T=2.0, theta=1.0, start=UNIT, sign=1.0, **more):
    """(problem, o, w, u): I = 1, from rest to rest about a fixed axis at the least integral of u'u/2, 6 theta^2 / T^3.
    Controls that are constant on intervals cost 1 / (1 - 1 / nodes^2) times that."""
    ocp = od.Problem(nodes, T, **more)
    o, w, u = ocp.state("o", manifold="unit_quaternion"), ocp.state("w", 3), ocp.control("u", 3)
    ocp.rate(o, w)
    ocp.rate(w, u)
    ocp.start({o: start, w: 0})
    ocp.goal({o: sign * times(start, exp(theta * AXIS)), w: 0})
    ocp.minimize(integral=ca.sumsqr(u) / 2)
    return ocp, o, w, u


# -- formulas ---------------------------------------------------------------------------------------------------

GROUPS = ("spherical", "planar", "free")


@pytest.mark.sample(2)
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.3, 0.999, 1.001, 2.5, 5.5])
@pytest.mark.parametrize("kind", GROUPS)
def test_steps_move_with_the_velocity(kind, size):
    """The rate of integrate(q, dv), by step_rate and by AD, is that of q with velocity v."""
    rng = np.random.default_rng(2)
    q = rng.normal(size=jt.NQ[kind])
    q[:4] /= np.linalg.norm(q[:4]) if kind in jt.QUATERNIONS else 1.0
    dv, v = rng.normal(size=jt.NV[kind]), rng.normal(size=jt.NV[kind])
    turn = slice(0, 1 if kind == "planar" else 3)
    dv[turn] *= size / np.linalg.norm(dv[turn])
    x = ca.SX.sym("x", dv.size)
    f = ca.Function("f", [x], [jt.integrate(kind, ca.DM(q), x)])
    moved = flat(f(dv))
    along = flat(f.jacobian()(dv, moved) @ ca.DM(jt.step_rate(kind, ca.DM(dv), ca.DM(v))))
    assert along == pytest.approx(flat(jt.rate(kind, ca.DM(moved), ca.DM(v))), abs=2e-13)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", GROUPS)
def test_second_derivatives_of_steps_are_finite_at_zero_and_smooth_where_series_end(kind):
    dv, v, lam = (ca.SX.sym(n, jt.NV[kind]) for n in ("dv", "v", "lam"))
    H = ca.Function("H", [dv, v, lam], [ca.hessian(ca.dot(lam, jt.step_rate(kind, dv, v)), dv)[0]])
    rng = np.random.default_rng(3)
    one, two, x = (rng.normal(size=jt.NV[kind]) for _ in range(3))
    x[: 1 if kind == "planar" else 3] /= np.linalg.norm(x[: 1 if kind == "planar" else 3])
    assert np.isfinite(H(0 * x, one, two).full()).all()
    below, above = (H(factor * x, one, two).full() for factor in (1 - 1e-10, 1 + 1e-10))
    assert np.abs(below - above).max() < 1e-8


def test_rates_of_steps_to_thirty_digits():
    """The coefficients against x / 2 cot(x / 2) in long arithmetic."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    of = ca.SX.sym("s")
    f = ca.Function("f", [of], list(so3._cotangent_terms(of)))

    def exact(s):
        a = mpmath.sqrt(s) / 2
        return (1 - a * mpmath.cot(a)) / s

    for s in (1e-12, 1e-3, 0.5, 0.999, 1.001, 4.0, 30.0):
        value, slope = (float(y) for y in f(s))
        assert value == pytest.approx(float(exact(mpmath.mpf(s))), rel=2e-14)
        assert slope == pytest.approx(float(mpmath.diff(exact, mpmath.mpf(s))), rel=2e-12)


# -- known motions ----------------------------------------------------------------------------------------------

A, C, SPIN = 2.0, 3.0, np.array([0.7, -0.4, 1.1])  # moments of inertia of a symmetric top, body angular velocity


def top(nodes, T=2.0, start=UNIT):
    """A torque-free symmetric top; nothing is left to choose."""
    ocp = od.Problem(nodes, T)
    o, w, u = ocp.state("o", manifold="unit_quaternion", guess=start), ocp.state("w", 3, guess=SPIN), ocp.control("u")
    slope = (C - A) / A
    ocp.rate(o, w)
    ocp.rate(w, ca.vertcat(-slope * w[2] * w[1], slope * w[2] * w[0], 0))
    ocp.start({o: start, w: SPIN})
    ocp.minimize(integral=u**2)
    return ocp


def top_at(t, start=UNIT):
    """Precession about the angular momentum, spin about the axis: R = exp(t L / A) R0 exp(-t (C - A) / A w_3 e_3)."""
    momentum = flat(so3.quat_to_rot(ca.DM(start)) @ ca.DM(np.array([A, A, C]) * SPIN))
    return times(exp(t * momentum / A), start, exp([0, 0, -t * (C - A) / A * SPIN[2]]))


def turned_by(method, nodes, **options):
    """Largest angle between the top's orientation and the closed form at the nodes."""
    start = times(exp([0.3, -0.2, 0.5]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = top(nodes, start=start).solve(method=method, solver_options=TIGHT, **options)
    assert np.abs(norms(found) - 1).max() < 1e-14
    return max(angle(q, top_at(t, start)) for t, q in zip(found.t, found["o"], strict=True))


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", sorted(METHODS))
def test_methods_keep_their_order(method):
    order = METHODS[method].order
    coarse = 4 if order > 4 else 10
    errors = [turned_by(method, n) for n in (coarse, 2 * coarse)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 2])
def test_collocation_keeps_its_order(degree):
    errors = [turned_by(collocation(degree), n) for n in (10, 20)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2 * degree, abs=0.2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_constant_twist_is_a_screw_by_any_method(method):
    twist = np.array([0.4, -0.9, 0.3, 1.0, 0.2, -0.7])
    start = np.concatenate([exp([0.5, 0.1, -0.3]), [0.2, -0.4, 0.6]])
    ocp = od.Problem(3, 4.0)
    pose, u = ocp.state("pose", manifold="pose", guess=start), ocp.control("u")
    ocp.rate(pose, twist)
    ocp.start({pose: start})
    ocp.minimize(integral=u**2)
    found = ocp.solve(method=method, solver_options=TIGHT)
    for t, x in zip(found.t, found[pose], strict=True):
        right = flat(jt.integrate("free", ca.DM(start), ca.DM(t * twist)))
        assert np.abs(x - np.sign(x[:4] @ right[:4]) * np.r_[right[:4], np.zeros(3)] - np.r_[np.zeros(4), right[4:]]
                      ).max() < 1e-13  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", sorted(METHODS))
def test_methods_keep_their_order_on_poses(method):
    """The body of the top, whose centre is to move as it is told, so that its velocity in its own axes turns."""
    errors, order = [], METHODS[method].order
    coarse = 4 if order > 4 else 10
    for nodes in (coarse, 2 * coarse):
        ocp = od.Problem(nodes, 2.0)
        x, u, t = ocp.state("x", manifold="pose"), ocp.control("u"), ocp.time
        turn = (C - A) / A * SPIN[2]
        w = ca.vertcat(ca.cos(turn * t) * SPIN[0] - ca.sin(turn * t) * SPIN[1],
                       ca.sin(turn * t) * SPIN[0] + ca.cos(turn * t) * SPIN[1], SPIN[2])  # fmt: skip
        ocp.rate(x, ca.vertcat(w, so3.quat_to_rot(x[:4]).T @ ca.vertcat(ca.cos(t), 2 * t, -2 * ca.sin(2 * t))))
        ocp.start({x: [1, 0, 0, 0, 0, 0, 1]})
        ocp.minimize(integral=u**2)
        found = ocp.solve(method=method, solver_options=TIGHT, check="off")
        centre = np.stack([np.sin(found.t), found.t**2, np.cos(2 * found.t)], axis=1)
        turned = max(angle(q[:4], top_at(t)) for t, q in zip(found.t, found[x], strict=True))
        errors.append(max(turned, np.abs(found[x][:, 4:] - centre).max()))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.5)
    assert errors[1] < (0.2 if order == 1 else 0.01)


# -- known optima -----------------------------------------------------------------------------------------------


def by_trapezoids(nodes, T, theta):
    """The optimum of the scalar problem x'' = u by the trapezoidal rule: a small quadratic program in u."""
    h, weights = T / nodes, np.ones(nodes + 1)
    weights[[0, -1]] = 0.5
    rates = np.array([h * (np.eye(nodes + 1)[:k].sum(axis=0) + np.eye(nodes + 1)[1 : k + 1].sum(axis=0)) / 2
                      for k in range(nodes + 1)])  # fmt: skip
    rows = np.stack([rates[-1], h * weights @ rates])
    ends = np.array([0.0, theta])
    return ends @ np.linalg.solve(rows / (h * weights) @ rows.T, ends) / 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop", "sqpmethod"])
@pytest.mark.parametrize("method", ["rk4", "euler", "collocation", "trapezoidal", "hermite_simpson"])
def test_least_effort_from_rest_to_rest(method, solver):
    ocp, o, w, u = reorientation()
    found = ocp.solve(method=method, solver=solver, check="off")
    right = {"hermite_simpson": 0.75, "trapezoidal": by_trapezoids(10, 2.0, 1.0)}.get(method, 0.75 / (1 - 1 / 10**2))
    assert found.objective == pytest.approx(right, rel=1e-6)
    assert np.abs(norms(found) - 1).max() < 1e-14
    assert method == "euler" or angle(found[o][5], exp(0.5 * AXIS)) < 1e-5
    assert found.check().worst < 1e-3


@pytest.mark.sample(1)
@pytest.mark.parametrize("theta", [1e-3, 1.0, 3.1])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_either_sign_of_a_goal_is_the_same_rotation(sign, theta):
    found = reorientation(theta=theta, sign=sign)[0].solve(method="hermite_simpson")
    assert found.objective == pytest.approx(6 * theta**2 / 2.0**3, rel=1e-6)


def test_the_shorter_way_round_beyond_half_a_turn():
    """From a guess that turns neither way: 4 rad one way are 2 pi - 4 the other."""
    ocp, *_ = reorientation(theta=4.0)
    found = ocp.solve(method="hermite_simpson", starts=4)
    assert found.objective == pytest.approx(6 * (2 * np.pi - 4.0) ** 2 / 2.0**3, rel=1e-6)


@pytest.mark.slow
def test_the_world_frame_does_not_matter():
    """A body whose moments of inertia differ, in two world frames: the same torques."""
    found = []
    for start in (UNIT, exp([2.0, -1.0, 1.5])):
        ocp, o, w, u = reorientation(start=start, nodes=8)
        I = ca.DM([1.0, 2.0, 3.5])
        ocp.rate(w, (u - ca.cross(w, I * w)) / I)
        ocp.guess({o: start})
        found.append(ocp.solve(method="hermite_simpson"))
    assert found[1].objective == pytest.approx(found[0].objective, rel=1e-9)
    assert found[0]["u"] == pytest.approx(found[1]["u"], abs=1e-6)
    assert found[0].objective > 0.75 * 1.1  # it is none that turns about a fixed axis


@pytest.mark.slow
def test_the_same_as_four_rates_with_a_norm():
    """Written as an ODE of four numbers, whose norm drifts, on a fine mesh."""
    I = ca.DM([1.0, 2.0, 3.5])
    found = []
    for plain in (False, True):
        ocp = od.Problem(24, 2.0)
        o = ocp.state("o", 4, guess=UNIT) if plain else ocp.state("o", manifold="unit_quaternion")
        w, u = ocp.state("w", 3), ocp.control("u", 3)
        ocp.rate(o, so3.quat_rate(o, w) if plain else w)
        ocp.rate(w, (u - ca.cross(w, I * w)) / I)
        goal = exp(1.2 * AXIS)
        ocp.start({o: UNIT, w: 0})
        ocp.goal({w: 0})
        ocp.goal({o[1:] / o[0]: goal[1:] / goal[0]} if plain else {o: goal})
        ocp.minimize(integral=ca.sumsqr(u) / 2)
        found.append(ocp.solve(method="collocation"))
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-7)
    assert np.abs(found[0]["o"] - found[1]["o"]).max() < 1e-6


@pytest.mark.slow
def test_the_shortest_way_of_a_pose_is_straight():
    """The least integral of (w'w + v'v) / 2: constant rotation, a straight line: (theta^2 + d^2) / (2 T)."""
    ocp = od.Problem(10, 2.0)
    x, V = ocp.state("x", manifold="pose"), ocp.control("V", 6)
    ocp.rate(x, V)
    ocp.start({x: [1, 0, 0, 0, 0, 0, 0]})
    ocp.goal({x: [*exp(1.5 * AXIS), 1.0, -2.0, 0.5]})
    ocp.minimize(integral=ca.sumsqr(V) / 2)
    found = ocp.solve(method="hermite_simpson")
    assert found.objective == pytest.approx((1.5**2 + 1 + 4 + 0.25) / 4, rel=1e-5)
    line = np.linspace(0, 1, 11)[:, None] * np.array([1.0, -2.0, 0.5])
    assert found[x][:, 4:] == pytest.approx(line, abs=1e-3)
    assert found.check().worst < 1e-3


# -- norms ------------------------------------------------------------------------------------------------------


@pytest.mark.sample("radau")
@pytest.mark.parametrize("method", ["radau", "gauss"])
def test_what_does_not_move_is_measured_by_what_does(method):
    """Along x by 1 m and about z: y is zero but for the error of the polynomials, a micrometre."""
    ocp = od.Problem(6, 1.0)
    o, w = ocp.state("o", manifold="pose"), ocp.control("w", 6)
    ocp.rate(o, w)
    ocp.start({o: [1, 0, 0, 0, 0, 0, 0]})
    ocp.goal({o: [np.cos(0.5), 0, 0, np.sin(0.5), 1, 0, 0]})
    ocp.minimize(integral=ca.sumsqr(w))
    found = ocp.solve(method=method, check="off")
    assert found.objective == pytest.approx(2, abs=1e-8)
    assert found.check(1e-5).ok()


def test_the_largest_sizes_of_what_turns_together():
    parts = ("free", 7, 6), ("planar", 3, 3), ("vector", 2, 2), ("spherical", 4, 3)
    sizes = np.array([1, 2, 3, 4, 5, 7, 6, 9, 2, 3, 1, 2, 1, 1, 8, 1.0])
    right = [4, 4, 4, 4, 7, 7, 7, 9, 3, 3, 1, 2, 8, 8, 8, 8]
    assert manifolds.Manifold(parts).largest(sizes).tolist() == right


@pytest.mark.sample(1)
@pytest.mark.parametrize("iterations", [0, 1, 3])
@pytest.mark.parametrize("method", ["rk4", "collocation", "trapezoidal"])
def test_norms_are_one_far_from_convergence(method, iterations):
    ocp, o, w, u = reorientation(theta=2.5)
    rng = np.random.default_rng(iterations)
    ocp.guess({o: rng.normal(size=(11, 4)), w: rng.normal(size=(11, 3))})
    found = ocp.solve(method=method, raises=False, check="off", solver_options={"max_iter": iterations})
    assert not found.success
    assert np.abs(norms(found) - 1).max() < 1e-14


@pytest.mark.sample(1)
@pytest.mark.parametrize("length", [0.3, 1.0, 2.0])
def test_steps_keep_the_length_of_a_quaternion(length):
    """Stages at any unknowns, as a solver meets them on its way: intervals that turn by up to 4 rad."""
    ocp, o, w, u = reorientation()
    made = ocp.transcribed()
    kind, rng = made.groups[0].kind, np.random.default_rng(1)
    for _ in range(10):
        z = rng.normal(size=kind.nx + kind.nu) * np.repeat([1, 20.0], [4, kind.nx + kind.nu - 4])
        z[:4] *= length / np.linalg.norm(z[:4])
        following, _ = (flat(y) for y in kind.value(z, np.zeros(made.n_p), [0.1]))
        assert np.linalg.norm(following[:4]) == pytest.approx(length, rel=4e-16)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation", "radau", "hermite_simpson"])
def test_random_guesses_do_not_wind(method):
    """Random ones that are smooth in time lead to the two ways round, and to no further turns: by the vector part of
    the quaternion in the goal, or with steps as the guess turns, most of those of collocation do."""
    ocp, *_ = reorientation(theta=2.9)
    found = ocp.solve(method=method, starts=6, seed=1, check="off")
    ways = [x / found.objective for x, _, _ in found.local_optima]
    assert found.objective == pytest.approx(6 / 8 * 2.9**2, rel=0.02)
    assert all(min(abs(x - 1), abs(x / (2 * np.pi / 2.9 - 1) ** 2 - 1)) < 0.02 for x in ways)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scale", [1.0, 0.2, 4.0])
def test_distances_to_a_goal(scale):
    """4 tan(angle / 4) about the axis, either sign and any length being the same, finite from half a turn on."""
    f, m = manifolds.formula, manifolds.chosen("x", "unit_quaternion")
    goal = exp([0.3, -0.5, 0.2])
    for theta in (0.0, 1e-9, 1.0, 3.0):
        for sign in (1, -1):
            found = flat(f(m, "mismatch")(goal, sign * scale * times(goal, exp(theta * AXIS))))
            assert found == pytest.approx(4 * np.tan(theta / 4) * AXIS, rel=1e-12, abs=1e-15)
    half = flat(f(m, "mismatch")(goal, times(goal, np.r_[0.0, AXIS])))
    assert np.abs(half) == pytest.approx(4 * AXIS)
    J = f(m, "mismatch").jacobian()(goal, goal, np.zeros(3))[1].full()
    assert np.linalg.svd(J, compute_uv=False) == pytest.approx([2, 2, 2])


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation", "hermite_simpson"])
def test_hessians_are_exact_and_finite_where_no_interval_turns(method):
    """At the guess every step is zero: second derivatives against differences of the gradient."""
    ocp, *_ = reorientation(nodes=2)
    made = ocp.transcribed(method)
    kind, rng = made.groups[0].kind, np.random.default_rng(4)
    z = np.concatenate([UNIT, np.zeros(kind.nx + kind.nu - 4)])
    p, s = np.zeros(made.n_p), [0.5]
    lam = 1.0, rng.normal(size=kind.n_next), rng.normal(size=kind.ng)

    def gradient(z):
        J = kind.jacobian(z, p, s).full()
        return lam[0] * flat(kind.gradient(z, p, s)) + J.T @ np.concatenate(lam[1:])

    H = kind.hessian(z, p, s, *lam).full()
    H = np.triu(H) + np.triu(H, 1).T
    assert np.isfinite(H).all()
    d = 1e-5
    columns = [(gradient(z + d * e) - gradient(z - d * e)) / (2 * d) for e in np.eye(z.size)]
    assert H == pytest.approx(np.array(columns).T, abs=1e-8)


# -- ends, phases, what is free -----------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
@pytest.mark.parametrize("method", ["rk4", "hermite_simpson"])
def test_a_free_start(method, solver):
    """Only an axis is to point somewhere at the end, and the start is free: nothing moves."""
    ocp = od.Problem(6, 1.0)
    o, w, u = ocp.state("o", manifold="unit_quaternion", guess=exp([0.3, 0, 0])), ocp.state("w", 3), ocp.control("u", 3)
    ocp.rate(o, w)
    ocp.rate(w, u)
    up = np.array([0.0, 0.6, 0.8])
    ocp.goal({(so3.quat_to_rot(o) @ ca.DM([0, 0, 1]))[:2]: up[:2]})
    ocp.minimize(integral=(ca.sumsqr(u) + ca.sumsqr(w)) / 2)
    found = ocp.solve(method=method, solver=solver)
    assert found.objective == pytest.approx(0, abs=1e-9)
    assert np.linalg.norm(found.unknowns[:4]) == pytest.approx(1, abs=1e-7)
    assert flat(so3.quat_to_rot(ca.DM(found[o][-1])) @ ca.DM([0, 0, 1])) == pytest.approx(up, abs=1e-6)


@pytest.mark.slow
def test_ends_as_parameters():
    ocp = od.Problem(10, 2.0)
    o, w, u = ocp.state("o", manifold="unit_quaternion"), ocp.state("w", 3), ocp.control("u", 3)
    a, b = ocp.parameter("a", 4), ocp.parameter("b", 4)
    ocp.rate(o, w)
    ocp.rate(w, u)
    ocp.start({o: a, w: 0})
    ocp.goal({o: b, w: 0})
    ocp.minimize(integral=ca.sumsqr(u) / 2)
    start = exp([0.4, 0.1, -0.3])
    for sign in (1, -1, 3):  # of any length
        found = ocp.solve(parameters={a: start, b: sign * times(start, exp(AXIS))})
        assert found.objective == pytest.approx(0.75 / (1 - 1 / 100), rel=1e-6)
        assert angle(found[o][0], start) < 1e-7


@pytest.mark.sample(1)
@pytest.mark.parametrize("what", ["numbers", "parameters", "free", "rows"])
def test_rows_are_independent_at_the_optimum(what):
    """So multipliers are determined: what is active has full rank, with ends of every kind."""
    ocp, start = od.Problem(5, 1.0), exp([0.4, 0.1, -0.3])
    o, w, u = ocp.state("o", manifold="unit_quaternion", guess=start), ocp.state("w", 3), ocp.control("u", 3)
    ocp.rate(o, w)
    ocp.rate(w, u)
    a = ocp.parameter("a", 4)
    ocp.start({o[0]: start[0], o[1:]: start[1:]} if what == "rows" else {"numbers": {o: start}, "parameters": {o: a}}
              .get(what, {so3.quat_to_rot(o)[2, 0]: 0.1}))  # fmt: skip
    ocp.goal({o: a if what == "parameters" else times(start, exp(AXIS)), w: 0})
    ocp.minimize(integral=(ca.sumsqr(u) + ca.sumsqr(w)) / 2)
    found = ocp.solve(parameters={a: start})
    made, n = found.transcribed, len(found.unknowns)
    nlp = made.assembly.nlp
    J = ca.Function("J", [nlp["x"], nlp["p"]], [ca.jacobian(nlp["g"], nlp["x"])])(found.unknowns, found.parameters)
    fixed = np.flatnonzero(found.bounds[0] == found.bounds[1])
    active = np.vstack([J.full(), np.eye(n)[fixed]])
    sizes = np.linalg.svd(active, compute_uv=False)
    assert len(active) <= n
    assert sizes[-1] > 1e-3
    assert np.abs(found.multipliers[1]).max() < 1e3


@pytest.mark.slow
def test_numbers_of_ends_are_read_at_every_solve():
    ocp, o, w, u = reorientation()
    ocp.solve()
    made = ocp.transcribed()
    ocp.goal({o: exp(0.5 * AXIS)})
    assert ocp.transcribed() is made
    found = ocp.solve()
    assert found.objective == pytest.approx(0.75 / 4 / (1 - 1 / 100), rel=1e-6)
    assert angle(found[o][-1], exp(0.5 * AXIS)) < 1e-7


def test_a_value_at_a_node():
    """Half the way is to be done at a third of the time."""
    ocp, o, w, u = reorientation(nodes=12)
    ocp.at({o: -exp(0.5 * AXIS)}, fraction=1 / 3)
    found = ocp.solve(method="collocation")
    assert angle(found[o][4], exp(0.5 * AXIS)) < 1e-7
    assert found.objective > 0.76


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation", "hermite_simpson"])
def test_phases_and_joins(method):
    """Two phases, the second one in another body frame, as after a tool change: the same motion."""
    turn, ocp = exp([0.0, 0.0, np.pi / 2]), od.Problem(5, 1.0)
    o, w, u = ocp.state("o", manifold="unit_quaternion"), ocp.state("w", 3), ocp.control("u", 3)
    for phase in range(2):
        if phase:
            ocp.join(o, so3.quat_mul(o, ca.DM(turn)))
            ocp.join(w, so3.quat_to_rot(ca.DM(turn)).T @ w)
            ocp.phase(5, 1.0)
        ocp.rate(o, w)
        ocp.rate(w, u)
        ocp.minimize(integral=ca.sumsqr(u) / 2)
    ocp.start({o: UNIT, w: 0})
    ocp.goal({o: times(exp(AXIS), turn), w: 0})
    found = ocp.solve(method=method)
    right = 0.75 if method == "hermite_simpson" else 0.75 / (1 - 1 / 100)
    assert found.objective == pytest.approx(right, rel=1e-6)
    assert found.check().worst < 1e-6


@pytest.mark.slow
def test_a_free_duration_and_a_free_mesh():
    """The least of T + integral of u'u / 2: 6 theta^2 / T^3 + T is least at T^4 = 18 theta^2."""
    best = 18**0.25
    for more in ({}, {"mesh": "free"}):
        ocp, o, w, u = reorientation(T=(1.0, 4.0), **more)
        ocp.minimize(integral=1)
        found = ocp.solve(method="hermite_simpson")
        assert found.duration == pytest.approx(best, rel=1e-3)
        assert found.objective == pytest.approx(6 / best**3 + best, rel=1e-6)


@pytest.mark.slow
def test_a_limit_of_the_rotation_holds():
    """A pointing axis stays 0.3 rad away from a direction on the way."""
    ocp, o, w, u = reorientation(nodes=12, theta=2.0)
    view = so3.quat_to_rot(o) @ ca.DM([1, 0, 0])
    avoid = flat(so3.quat_to_rot(ca.DM(exp(1.0 * AXIS))) @ ca.DM([1, 0, 0]))
    ocp.limit(-1, ca.dot(view, ca.DM(avoid)), np.cos(0.3), name="keep away")
    ocp.guess({o: lambda share: times(exp(2 * share * AXIS), exp(np.sin(np.pi * share) * np.array([0.2, 0, 0.1])))})
    found = ocp.solve(method="collocation", check="off")
    towards = found[ca.dot(view, ca.DM(avoid))]
    assert towards.max() <= np.cos(0.3) + 1e-7
    assert found.objective > 6 * 4 / 8 * 1.001


# -- periodic motions -----------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("method", ["rk4", "hermite_simpson"])
def test_a_spin_is_periodic_with_either_sign(method, turns):
    """Whole turns about an axis: after an odd number of them the quaternion has the other sign."""
    ocp = od.Problem(8 * turns, 2.0)
    o, w, u = ocp.state("o", manifold="unit_quaternion"), ocp.state("w", 3), ocp.control("u", 3)
    ocp.rate(o, w)
    ocp.rate(w, u)
    rate = 2 * np.pi * turns / 2.0
    ocp.guess({w: [0, 0, rate], o: lambda share: exp([0, 0, 2 * np.pi * turns * share])})
    ocp.integral(w[2], 2 * np.pi * turns, 2 * np.pi * turns)
    ocp.periodic(o, w)
    ocp.start({(so3.quat_to_rot(o) @ ca.DM([0, 0, 1]))[:2]: 0, o[1] - o[2]: 0, o[3]: 0})
    ocp.minimize(integral=ca.sumsqr(u) / 2)
    found = ocp.solve(method=method)
    assert found.objective == pytest.approx(0, abs=1e-8)
    assert found[w] == pytest.approx(np.tile([0, 0, rate], (8 * turns + 1, 1)), abs=1e-5)
    assert found[o][0] @ found[o][-1] == pytest.approx((-1.0) ** turns, abs=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("start", [True, False])
def test_periodic_up_to_a_turn(start):
    """The least integral of w'w / 2 over 1 s that ends 3.5 rad on about the body's axis: 3.5^2 / 2."""
    ocp = od.Problem(6, 1.0)
    o, w = ocp.state("o", manifold="unit_quaternion"), ocp.control("w", 3)
    ocp.rate(o, w)
    ocp.periodic({o: 3.5 * AXIS})
    if start:
        ocp.start({o: exp([0.1, 0.2, 0.3])})
    ocp.minimize(integral=ca.sumsqr(w) / 2)
    ocp.guess({w: 3.0 * AXIS, o: lambda share: times(exp([0.1, 0.2, 0.3]), exp(3.5 * share * AXIS))})
    found = ocp.solve()
    assert found.objective == pytest.approx(3.5**2 / 2, rel=1e-7)
    assert angle(found[o][-1], times(found[o][0], exp(3.5 * AXIS))) < 1e-7


# -- guesses ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_guesses_are_normalised_and_alike_in_sign():
    ocp, o, w, u = reorientation(nodes=4)
    table = np.array([(-1) ** k * (k + 1) * exp(0.25 * k * AXIS) for k in range(5)])
    ocp.guess({o: -table})
    x = ocp.transcribed().values(ocp.transcribed().guess(None))[0][:, :4]
    assert x == pytest.approx(np.array([exp(0.25 * k * AXIS) for k in range(5)]), abs=1e-14)
    for method in ("collocation", "trapezoidal"):
        made = ocp.transcribed(method)
        for like, share, _, values in made.inner(made.guess(None))[0]:
            if like == "x":
                right = [exp((k + share) / 4 * AXIS) for k in range(4)]
                assert values[:, :4] == pytest.approx(np.array(right), abs=1e-3)


@pytest.mark.slow
def test_guesses_that_are_functions_of_any_sign():
    ocp, o, w, u = reorientation()
    ocp.guess({o: lambda share: (-1.0) ** round(10 * share) * exp(share * AXIS)})
    assert ocp.solve().objective == pytest.approx(0.75 / (1 - 1 / 100), rel=1e-6)


@pytest.mark.slow
def test_another_mesh_and_a_solution_to_start_from():
    ocp, o, w, u = reorientation(nodes=5)
    ocp.guess({o: np.array([exp(0.2 * k * AXIS) * (-1) ** k for k in range(6)])})
    finer = ocp.with_mesh(20)
    made = finer.transcribed()
    x = made.values(made.guess(None))[0][:, :4]
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-14
    assert max(angle(x[k], exp(0.05 * k * AXIS)) for k in range(21)) < 1e-3
    coarse = ocp.solve(method="collocation")
    found = finer.solve(method="collocation", initial=coarse)
    assert found.objective == pytest.approx(0.75 / (1 - 1 / 400), rel=1e-6)
    assert finer.solve(method="collocation", initial=found).iterations <= found.iterations


def test_random_guesses_are_unit():
    ocp, o, w, u = reorientation()
    made = ocp.transcribed()
    tables = [random_guess(ocp, made, np.random.default_rng(k))["o"] for k in range(3)]
    for table in tables:
        assert np.abs(np.linalg.norm(table, axis=1) - 1).max() < 1e-14
        assert table[[0]] == pytest.approx(UNIT[None], abs=1e-12)
    assert np.abs(tables[1] - tables[2]).max() > 0.1


def test_problems_and_solutions_are_pickled():
    ocp, *_ = reorientation()
    found = ocp.solve()
    again, same = pickle.loads(pickle.dumps((ocp, found)))
    assert again.solve().objective == pytest.approx(found.objective, rel=1e-10)
    assert np.array_equal(same["o"], found["o"])
    assert same.check().worst == pytest.approx(found.check().worst, abs=1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation", "radau", "hermite_simpson"])
def test_samples_are_unit_and_on_the_motion(method, tmp_path):
    found = top(6).solve(method=method, check="off")
    t = np.linspace(0, 2.0, 33)
    sampled = found.sample("o", t)
    assert np.abs(np.linalg.norm(sampled, axis=1) - 1).max() < 1e-14
    assert max(angle(q, top_at(s)) for q, s in zip(sampled, t, strict=True)) < 2e-3
    found.save(tmp_path / "top.npz")
    assert np.array_equal(top(6).load(tmp_path / "top.npz")["o"], found["o"])


@pytest.mark.slow
def test_meshes_are_refined_until_the_top_is_right():
    found = top(4).solve(method="collocation", tolerance=1e-7)
    assert found.error.states < 1e-6
    assert max(angle(q, top_at(t)) for q, t in zip(found["o"], found.t, strict=True)) < 1e-6


# -- robots -------------------------------------------------------------------------------------------------------


def moved(name, transcription, nodes=6, T=1.0, seed=3):
    robot, rng = sample(name), np.random.default_rng(seed)
    q0 = robot.random_configuration(seed)
    q1 = robot.integrate(q0, 0.4 * rng.normal(size=robot.nv))
    ocp = od.Problem(nodes, T)
    q, v, dv, tau = ocp.rigid_body(robot, transcription, guess=q0)
    ocp.start({q: q0, v: 0})
    ocp.goal({q: q1, v: 0})
    ocp.minimize(integral=ca.sumsqr(dv) / 2)
    return robot, ocp, q1


@pytest.mark.few(7)
@pytest.mark.sample("small floating-inverse-hermite_simpson")
@pytest.mark.parametrize("method", ["rk4", "collocation", "hermite_simpson"])
@pytest.mark.parametrize("transcription", ["inverse", "forward"])
@pytest.mark.parametrize("name", ["small floating", "small spherical", "planar"])
def test_robots_on_joints_of_any_kind(name, transcription, method):
    robot, ocp, q1 = moved(name, transcription)
    found = ocp.solve(method=method, check="off")
    assert np.abs(robot.difference(found["q"][-1], q1)).max() < 1e-6
    torques = od.function(robot, "inverse_dynamics", normalize=True)
    right = torques(found["q"][:-1].T, found["v"][:-1].T, found["dv"][: len(found.t) - 1].T).full().T
    assert found["tau"][: len(right)] == pytest.approx(right, abs=1e-8)
    assert found.check().worst < (3e-2 if (transcription, method) == ("forward", "rk4") else 3e-3)
    for i in ocp.description.states[0].manifold.quaternions:
        assert np.abs(np.linalg.norm(found["q"][:, i : i + 4], axis=1) - 1).max() < 1e-14


@pytest.mark.slow
def test_a_robot_whose_motion_is_periodic():
    """A floating robot that turns about itself and comes back: nothing moves at the least cost but what the shift asks
    for, the free joint by its step, the others not at all."""
    robot = sample("small floating")
    q0, shift = robot.random_configuration(3), np.array([0, 0, 0.5, 0.2, 0, 0, 0, 0])
    ocp = od.Problem(4, 1.0)
    q, v = ocp.state("q", manifold=robot, guess=q0), ocp.control("v", robot.nv)
    ocp.rate(q, v)
    ocp.start({q: q0})
    ocp.periodic({q: shift})
    ocp.minimize(integral=ca.sumsqr(v) / 2)
    found = ocp.solve(method="hermite_simpson")
    assert np.abs(robot.difference(found[q][-1], robot.integrate(q0, shift))).max() < 1e-7
    # straight on, which no body that turns does on its screw: chord of the screw's arc
    chord = 0.2 * np.sin(0.25) / 0.25
    assert found.objective == pytest.approx((0.5**2 + chord**2) / 2, rel=1e-6)


@pytest.mark.slow
def test_a_floating_base_moves_as_a_contact_body_without_contacts():
    """Accelerations that are constant on intervals, the same mesh: steps of a contact body are of order 2, so the
    difference of the optima is divided by four when intervals are halved."""
    robot = sample("small floating")
    q0, rng = robot.random_configuration(3), np.random.default_rng(3)
    q1 = robot.integrate(q0, 0.6 * rng.normal(size=robot.nv))
    differences = []
    for nodes in (8, 16, 32):
        objectives = []
        for contact in (False, True):
            ocp = od.Problem(nodes, 1.0)
            if contact:
                body = ocp.contact_body(robot, guess=q0)
                q, v, dv, tau = body.q, body.v, body.dv, body.tau
            else:
                q, v, dv, tau = ocp.rigid_body(robot, guess=q0)
            ocp.start({q: q0, v: 0})
            ocp.goal({q: q1, v: 0})
            ocp.minimize(mean=ca.sumsqr(tau / 10) + ca.sumsqr(dv))
            objectives.append(ocp.solve(method="rk4", check="off").objective)
        differences.append(objectives[0] - objectives[1])
    assert abs(differences[2]) < 2e-3 * objectives[0]
    assert differences[0] / differences[1] == pytest.approx(4, abs=0.8)
    assert differences[1] / differences[2] == pytest.approx(4, abs=0.4)


# -- what is refused ------------------------------------------------------------------------------------------------


def refused():
    ocp = od.Problem(4, 1.0)
    o, x = ocp.state("o", manifold="unit_quaternion"), ocp.state("x", manifold="pose")
    return ocp, o, x


REFUSED = {
    "no such manifold": (lambda ocp, o, x: ocp.state("y", manifold="quaternion"), "unit_quaternion"),
    "no robot": (lambda ocp, o, x: ocp.state("y", manifold=3), "robot"),
    "another size": (lambda ocp, o, x: ocp.state("y", 3, manifold="pose"), "its manifold has 7 rows"),
    "bounds of a quaternion": (lambda ocp, o, x: ocp.state("y", manifold="pose", lower=-1), "rows 0 to 3 are a quat"),
    "bounds by expressions": (lambda ocp, o, x: ocp.state("y", manifold="pose", lower=ocp.parameter("p")), "use limit"),
    "a guess that is zero": (lambda ocp, o, x: ocp.state("y", manifold="pose", guess=np.zeros(7)), "norm 0"),
    "a later guess": (lambda ocp, o, x: ocp.guess({o: 0}), "norm 0"),
    "a guess of another size": (lambda ocp, o, x: ocp.guess({o: np.ones((5, 3))}), r"expected \(4,\)"),
    "a start that is no rotation": (lambda ocp, o, x: ocp.start({o: [1, 1, 0, 0]}), "start of o.*norm 1.41"),
    "a goal that is no rotation": (lambda ocp, o, x: ocp.goal({x: np.zeros(7)}), "goal of x.*norm 0"),
    "a goal of another size": (lambda ocp, o, x: ocp.goal({o: np.ones(3)}), "goal of o"),
    "bounds of an end": (lambda ocp, o, x: ocp.goal({o: (UNIT - 0.1, UNIT + 0.1)}), "bounds a quaternion of 'o'"),
    "a value at a node": (lambda ocp, o, x: ocp.at({o: [2, 0, 0, 0]}, fraction=0.5), "norm 2"),
    "a rate of four": (lambda ocp, o, x: ocp.rate(o, ca.MX(4, 1)), "got 4 rows, expected 3, the velocity"),
    "a join of three": (lambda ocp, o, x: ocp.join(o, ca.MX(3, 1)), "got 3 rows, expected 4"),
    "a shift of four": (lambda ocp, o, x: ocp.periodic({o: UNIT}), "shift has 4 values, expected 3"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, message = REFUSED[what]
    with pytest.raises((ShapeError, LimitError, od.errors.UnknownName, od.errors.ModelError), match=message):
        call(*refused())


@pytest.mark.slow
def test_bounds_of_positions_and_pairs_that_leave_quaternions_alone():
    ocp = od.Problem(6, 1.0)
    free = np.full(4, np.inf)
    x, V = ocp.state("x", manifold="pose", lower=[*-free, -1, -1, 0], upper=[*free, 1, 1, 0.5]), ocp.control("V", 6)
    ocp.rate(x, V)
    ocp.start({x: [1, 0, 0, 0, 0, 0, 0]})
    ocp.goal({x: ([*-free, 0.9, 0.9, 0.2], [*free, 2, 2, 0.4])})
    ocp.minimize(integral=ca.sumsqr(V) / 2)
    found = ocp.solve(method="hermite_simpson")
    assert found[x][-1][4:] == pytest.approx([0.9, 0.9, 0.2], abs=1e-6)
    assert found.objective == pytest.approx((2 * 0.81 + 0.04) / 2, rel=1e-6)
    with pytest.raises(LimitError, match=r"goal: x\[6\] is 0.7, outside its bounds"):
        ocp.goal({x: [1, 0, 0, 0, 0, 0, 0.7]})


# -- what is there already ------------------------------------------------------------------------------------------


def test_programs_without_manifolds_take_no_more_than_they_did():
    """Numbers of instructions of stages (value, jacobian, hessian) of problems whose states are plain."""
    ocp = od.Problem(4, (0.5, 2.0))
    x, u, a = ocp.state("x"), ocp.control("u"), ocp.variable("a", lower=0.1)
    ocp.rate(x, a * u)
    ocp.phase(3, (0.1, 1.0))
    ocp.rate(x, a * u + ca.sin(x))
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2)
    ocp.join(x, 2 * x)
    ocp.limit(-1, u * x, 1)
    was = {
        "rk4": [(21, 24, 22), (22, 28, 24), (41, 78, 250), (42, 80, 251), (0, 0, 0)],
        "collocation": [(66, 57, 21), (67, 61, 21), (78, 85, 88), (79, 85, 88), (0, 0, 0)],
        "hermite_simpson": [(37, 63, 47), (39, 62, 47), (49, 120, 216), (50, 120, 216), (4, 4, 2)],
    }
    for method, right in was.items():
        kinds = [g.kind for g in ocp.transcribed(method).groups]
        assert [tuple(f.n_instructions() for f in (k.value, k.jacobian, k.hessian)) for k in kinds] == right


def test_names_of_manifolds():
    assert manifolds.chosen("x", "pose").size == 7
    floating = manifolds.of_robot(sample("small floating"))
    assert floating.parts == (("free", 7, 6), ("vector", 2, 2))
    assert floating.quaternions == [0]


@pytest.mark.slow
def test_the_example_of_the_documentation_runs():
    text = (Path(__file__).parents[2] / "docs" / "manifold-states.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(block, "manifold-states.md", "exec"), names)
    assert names["found"].check().worst < 1e-3
    assert angle(names["found"]["o"][-1], [0.5, 0.5, 0.5, 0.5]) < 1e-7
