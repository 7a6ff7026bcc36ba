"""initial= from another mesh, method or structure of phases: the same optimum in fewer iterations."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.initial import begin
from oc_dyn.optimal_control.solver import SAFER, SolverResult, first_success


def cart_pole(nodes, end=1.0):
    """p39 of the problems with known optima."""
    ocp = od.Problem(nodes, 2.0)
    x, angle = ocp.state("x", lower=-2, upper=2, guess=lambda s: s), ocp.state("angle", guess=lambda s: np.pi * s)
    v, w, force = ocp.state("v"), ocp.state("w"), ocp.control("force", lower=-20, upper=20)
    s, c, M, m, length, g = ca.sin(angle), ca.cos(angle), 1, 0.3, 0.5, 9.81
    ocp.rate(x, v)
    ocp.rate(angle, w)
    ocp.rate(v, (length * m * s * w**2 + force + m * g * c * s) / (M + m * s**2))
    ocp.rate(w, -(length * m * c * s * w**2 + force * c + (M + m) * g * s) / (length * (M + m * s**2)))
    ocp.start({x: 0, angle: 0, v: 0, w: 0})
    ocp.goal({x: end, angle: np.pi, v: 0, w: 0})
    ocp.minimize(integral=force**2)
    return ocp


def moon_landing(nodes, phases=2, height=1.0):
    """p30, in one phase or in two."""
    ocp = od.Problem(nodes, (0.05, 2.0))
    h, v = ocp.state("h", lower=0, guess=lambda s: 1 - s), ocp.state("v", guess=lambda s: -0.8 * (1 - s))
    m, thrust = ocp.state("m", guess=lambda s: 1 - 0.6 * s), ocp.control("thrust", lower=0, upper=1.227)
    for number in range(phases):
        if number:
            ocp.phase(nodes, (0.05, 2.0))
        ocp.rate(h, v)
        ocp.rate(v, thrust / m - 1)
        ocp.rate(m, -thrust / 2.349)
        ocp.minimize(integral=thrust)
    ocp.start({h: height, v: -0.783, m: 1})
    ocp.goal({h: 0, v: 0})
    return ocp


def rate_limited(nodes):
    """p08-like: in the least time with bounds of force and its rate."""
    ocp = od.Problem(nodes, (0.5, 5.0))
    x, v, a = ocp.state("x"), ocp.state("v", lower=-1, upper=1), ocp.state("a", lower=-2, upper=2)
    j = ocp.control("j", lower=-10, upper=10)
    for state, rate in ((x, v), (v, a), (a, j)):
        ocp.rate(state, rate)
    ocp.start({x: 0, v: 0, a: 0})
    ocp.goal({x: 1, v: 0, a: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp


CASES = {  # problem and method before, problem and method after, at most so many iterations as a share of cold ones
    "coarser": (lambda: cart_pole(100), "hermite_simpson", lambda: cart_pole(25), "hermite_simpson", 0.4),
    "finer": (lambda: cart_pole(25), "hermite_simpson", lambda: cart_pole(100), "hermite_simpson", 0.4),
    "another method": (lambda: cart_pole(30), "rk4", lambda: cart_pole(30), "collocation", 0.4),
    "controls at nodes": (lambda: cart_pole(40), "radau", lambda: cart_pole(40), "hermite_simpson", 0.4),
    "polynomial controls": (lambda: cart_pole(40), "hermite_simpson", lambda: cart_pole(20), "gauss", 0.4),
    "another end": (lambda: cart_pole(30), "hermite_simpson", lambda: cart_pole(30, 0.9), "hermite_simpson", 0.6),
    "another height": (lambda: moon_landing(20), "rk4", lambda: moon_landing(20, height=1.1), "rk4", 0.6),
    "phases of another mesh": (lambda: moon_landing(40), "rk4", lambda: moon_landing(10), "rk4", 0.4),
    "one phase to two": (lambda: moon_landing(40, 1), "rk4", lambda: moon_landing(20), "rk4", 0.6),
    "two phases to one": (lambda: moon_landing(20), "rk4", lambda: moon_landing(40, 1), "rk4", 0.6),
    "bounds that hold": (lambda: rate_limited(60), "rk4", lambda: rate_limited(30), "rk4", 0.8),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", CASES)
def test_a_warm_start_takes_fewer_iterations(case):
    before, its_method, after, method, share = CASES[case]
    initial = before().solve(method=its_method, check="off")
    cold = after().solve(method=method, check="off")
    warm = after().solve(method=method, check="off", initial=initial)
    assert warm.iterations <= share * cold.iterations
    # with two phases the switch is at a node, or within an interval: these are local optima of coarse meshes
    assert warm.objective == pytest.approx(cold.objective, rel=2e-5 if case == "another height" else 1e-6)


def test_from_itself_it_is_there_at_once():
    ocp = cart_pole(20)
    first = ocp.solve(check="off")
    for problem in (ocp, cart_pole(20)):  # the same program, and one that was made anew
        again = problem.solve(check="off", initial=first)
        assert again.iterations <= 2
        assert again.objective == pytest.approx(first.objective, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["fatrop", "sqpmethod"])
def test_other_solvers(solver):
    initial = moon_landing(20).solve(check="off")
    optimum = moon_landing(10).solve(check="off").objective
    # whether sqpmethod ends within 200 iterations from the plain guess depends on rounding
    cold = moon_landing(10).solve(check="off", solver=solver, raises=False)
    warm = moon_landing(10).solve(check="off", solver=solver, initial=initial)
    assert warm.iterations < cold.iterations
    assert warm.objective == pytest.approx(optimum, rel=1e-4)
    assert cold.objective == pytest.approx(optimum, rel=1e-3)


@pytest.mark.slow
def test_bases_of_chains():
    """From basis to basis and mesh to mesh: the guess is the motion itself, wherever it can be."""

    def problem(basis, nodes):
        ocp = od.Problem(nodes, 2.0)
        q, v, a = ocp.chain("q", 2, 2, bounds=[2.0, 5.0], basis=basis)
        ocp.start({q: 0, v: 0})
        ocp.goal({q: [1, 2], v: 0})
        ocp.minimize(integral=ca.sumsqr(a))
        return ocp

    bases = ("taylor", "bernstein", "b_spline")
    found = {basis: problem(basis, 20).solve(check="off") for basis in bases}
    for basis in bases:
        for other in bases:
            ocp = problem(basis, 13)
            made = ocp.transcribed("rk4")
            guess = made.guess(found[other])
            x, u, durations = made.values(guess)
            lower, upper = (made.bounds[k] for k in ("lbx", "ubx"))
            right = made.guess(ocp.solve(check="off"))
            tolerance = 0.06 if basis == "b_spline" else 0.02  # the meshes are coarse
            assert np.abs(guess - right).max() < tolerance * max(1, np.abs(right).max()) * (5 if made.nx > 4 else 1)
            assert durations == [2.0]


def test_what_has_other_names_is_told():
    ocp = cart_pole(10)
    spring = ocp.state("spring", guess=0.25)
    ocp.rate(spring, 0)
    first = cart_pole(10).solve(check="off")
    with pytest.warns(od.CheckWarning, match="initial has no spring of this problem"):
        z = ocp.transcribed("rk4").guess(first)
    x = ocp.transcribed("rk4").values(z)[0]
    assert x[:, -1] == pytest.approx(0.25)
    assert x[:, :4] == pytest.approx(first.x, abs=1e-9)
    with pytest.raises(od.ShapeError, match="nothing of this problem's h, v, m, thrust|nothing"):
        other = od.Problem(4, 1.0)
        y, f = other.state("y"), other.control("f")
        other.rate(y, f)
        other.solve(initial=first)


def test_controls_become_states_and_the_order_of_variables_does_not_matter():
    first = rate_limited(20).solve(check="off")
    ocp = od.Problem(20, (0.5, 5.0))
    v, x = ocp.state("v"), ocp.state("x")
    a = ocp.control("a", lower=-2, upper=2)
    ocp.rate(x, v)
    ocp.rate(v, a)
    made = ocp.transcribed("hermite_simpson")
    values, controls, (T,) = made.values(made.guess(first))
    assert T == pytest.approx(first.duration)
    assert values == pytest.approx(np.hstack([first["v"], first["x"]]), abs=1e-9)
    assert controls == pytest.approx(first["a"], abs=1e-9)


@pytest.mark.slow
def test_durations_stay_within_bounds():
    first = moon_landing(10).solve(check="off")
    ocp = od.Problem(10, (0.05, 0.5))
    h, thrust = ocp.state("h"), ocp.control("thrust")
    ocp.rate(h, thrust)
    ocp.phase(10, 3.0)
    ocp.rate(h, thrust)
    made = ocp.transcribed("rk4")
    durations = made.values(made.guess(first))[2]
    assert durations[0] == pytest.approx(np.clip(first.durations[0], 0.05, 0.5))
    assert durations[1] == 3.0


@pytest.mark.slow
def test_options_of_the_caller_win(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "oc_dyn.optimal_control.problem.first_success",
        lambda run, tries: seen.append(list(tries.values())[:-1]) or first_success(run, tries),
    )
    first = cart_pole(10).solve(check="off")
    cart_pole(12).solve(check="off", initial=first, solver_options={"mu_init": 0.1})
    cart_pole(12).solve(check="off", initial=first, solver_options={"ipopt.max_iter": 50})
    own, ours = seen[-2:]
    assert [t["mu_init"] for t in own] == [0.1]
    assert [t.get("mu_init") for t in ours] == [1e-4, None]
    assert all(t["max_iter"] == 50 for t in ours)


def test_a_start_that_fails_is_tried_with_plain_options():
    def result(success, status):
        none = np.zeros(0)
        return SolverResult(none, none, none, 0.0, status, success, 3, {})

    tried = []

    def run(inner):
        tried.append(inner)
        return result(inner == "plain", "Restoration_Failed")

    tries = {"warm start": "warm", "start": "plain", SAFER: "safe"}
    found = first_success(run, tries)
    assert (tried, found.iterations, found.success) == (["warm", "plain"], 6, True)
    assert found.tries == (("warm start", "Restoration_Failed", 3), ("start", "Restoration_Failed", 3))
    stopped = first_success(lambda inner: result(False, "Maximum_Iterations_Exceeded"), tries)
    assert stopped.iterations == 3


def test_an_iterate_that_is_no_number_is_told():
    first = cart_pole(10).solve(check="off")
    first.unknowns = first.unknowns * np.nan
    with pytest.warns(od.CheckWarning, match="not finite"):
        again = cart_pole(8).solve(check="off", initial=first)
    assert again.iterations == cart_pole(8).solve(check="off").iterations


def test_an_iterate_of_a_solver_that_was_stopped_is_gone_on_from_with_plain_options(monkeypatch):
    ocp, seen = cart_pole(20), []
    first = ocp.solve(check="off", raises=False, solver_options={"max_iter": 4})
    assert not first.success
    where = "oc_dyn.optimal_control.problem.first_success"
    monkeypatch.setattr(where, lambda run, tries: seen.append(list(tries)) or first_success(run, tries))
    right = ocp.solve(check="off").objective
    for problem in (ocp, cart_pole(25)):
        assert problem.solve(check="off", initial=first).objective == pytest.approx(right, rel=0.02)
    assert seen == 3 * [["start", SAFER]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "hermite_simpson", "radau"])
def test_multipliers_from_another_mesh_are_those_of_the_optimum_there(method):
    def bounded(nodes):
        ocp = od.Problem(nodes, 2.0)
        x, v, u = ocp.state("x"), ocp.state("v", scale=3.0), ocp.control("u", lower=-1.8, upper=1.8)
        ocp.rate(x, v)
        ocp.rate(v, u)
        ocp.limit(-0.93, v + u / 30, 0.93, name="mixed")
        ocp.start({x: 0, v: 0})
        ocp.goal({x: 1.3, v: 0})
        ocp.minimize(integral=u**2)
        return ocp

    first, right = (bounded(n).solve(method=method, check="off") for n in (60, 24))
    given, _ = begin(right.transcribed, first, {"p": right.parameters, **right.transcribed.bounds}, "ipopt", {})
    free = np.flatnonzero(right.bounds[0] < right.bounds[1])  # what is fixed has any multiplier
    lam_x, lam_g = given["lam_x0"][free], given["lam_g0"]
    rows = ~right.transcribed.assembly.dynamics
    for got, of in (
        (lam_x, right.multipliers[0][free]),
        (lam_g[rows], right.multipliers[1][rows]),
        (lam_g[~rows], right.multipliers[1][~rows]),
    ):
        sums, theirs = np.cumsum(got), np.cumsum(of)  # where a state touches its bound is a matter of an interval
        assert np.abs(sums - theirs).max() < 0.3 * np.abs(theirs).max() + 1e-5
    assert np.abs(right.multipliers[1][rows]).max() > 1e-2
