"""Radau and Gauss collocation: controls that are polynomials of their own degree, bounded everywhere."""

import itertools
import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import OrderError, ShapeError
from oc_dyn.optimal_control.integrators import METHODS, collocation, gauss, order_of_cost, radau
from oc_dyn.study import suite

EXACT = {"tol": 1e-11}
SCHEMES = [radau, gauss]
DENSE = np.linspace(0, 1, 41)


def known(number):
    return suite.load(suite.listed()[number])


def sampled(solution, phase=0):
    """Values of one control at DENSE shares of every interval (N, 41), from the unknowns, by numpy alone."""
    made = solution.transcribed
    shares = [0.0, *(share for like, share, *_ in made.inner(solution.unknowns)[phase] if like == "u")]
    values = [y[:, 0] for like, _, _, y in made.inner(solution.unknowns)[phase] if like == "u"]
    values = np.array([solution.u[: len(values[0]) if values else None, 0], *values])
    return np.polynomial.polynomial.polyval(DENSE, np.linalg.solve(np.vander(shares, increasing=True), values))


def swing(nodes, duration=(0.5, 10.0)):
    """A pendulum from rest to rest, by twice its weight at most: bang-bang, dynamics that no polynomial solves."""
    ocp = od.Problem(nodes, duration)
    q, v = ocp.state("q", guess=lambda s: np.pi * s), ocp.state("v", scale=3.0)
    u = ocp.control("u", lower=-2, upper=2)
    ocp.rate(q, v)
    ocp.rate(v, u - ca.sin(q))
    ocp.start({q: 0, v: 0})
    ocp.goal({q: np.pi, v: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp


@pytest.mark.sample(1)
@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_bryson_denham_has_its_optimum_on_few_intervals(scheme, degree):
    """On 9 and 12 intervals the motion reaches its ceiling at a node: a cubic, whose cost constant controls miss."""
    module = known(6)
    for nodes in (9, 12):
        solution = module.problem(nodes).solve(method=scheme(degree), solver_options=EXACT, check="off")
        integrated = solution.check().objective  # by an integration of its own
        if degree > 2:
            assert solution.objective == pytest.approx(4, abs=1e-8)
            assert integrated == pytest.approx(4, abs=1e-8)
        assert abs(solution.objective - 4) < 1e-2
        assert abs(module.problem(nodes).solve(method="collocation", check="off").objective - 4) > 5e-2


@pytest.mark.sample(2)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_bryson_denham_on_ten_intervals(scheme):
    """With nodes where the motion reaches its ceiling and leaves it the optimum is exact; on equal intervals, where it
    does so within one, what is missing is seen."""
    found = {}
    for mesh in ("uniform", np.concatenate([np.linspace(0, 1 / 3, 5), [0.5], np.linspace(2 / 3, 1, 5)])):
        ocp = od.Problem(10, 1.0, mesh=mesh)
        x, v, u = ocp.state("x", upper=1 / 9), ocp.state("v", guess=lambda s: 1 - 2 * s), ocp.control("u")
        ocp.rate(x, v)
        ocp.rate(v, u)
        ocp.start({x: 0, v: 1})
        ocp.goal({x: 0, v: -1})
        ocp.minimize(integral=u**2 / 2)
        found[isinstance(mesh, str)] = ocp.solve(method=scheme(3), solver_options=EXACT, check="off")
    assert found[False].objective == pytest.approx(4, abs=1e-8)
    assert found[False].check().objective == pytest.approx(4, abs=1e-8)
    assert found[True].objective == pytest.approx(4, abs=1e-3)
    assert found[True].check().worst > 1e-4


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "number, variant, nodes, within",
    [
        (7, {}, 3, 1e-9),
        (10, {"duration": 10.0}, 25, 1e-5),
        (11, {}, 4, 1e-7),
        (17, {}, 16, 2e-7),
        (18, {}, 8, 1e-9),
        (38, {}, 40, 1e-6),
    ],
)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_known_optima(scheme, number, variant, nodes, within):
    module = known(number)
    optimum = module.known(**variant) if hasattr(module, "known") else module.KNOWN
    solution = module.problem(nodes, **variant).solve(method=scheme(3), solver_options=EXACT, check="off")
    assert solution.objective == pytest.approx(optimum, abs=within)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("number, nodes, degree, within", [(28, 96, 5, 2e-6), (8, 16, 3, 1e-6), (31, 24, 4, 1e-8)])
def test_more_known_optima(number, nodes, degree, within, scheme):
    module = known(number)
    optimum = module.known() if hasattr(module, "known") else module.KNOWN
    solution = module.problem(nodes).solve(method=scheme(degree), solver_options=EXACT, check="off")
    if number == 8:  # its phases have lengths of their own, and local optima
        assert abs(solution.objective - optimum) < 1e-4
    else:
        assert solution.objective == pytest.approx(optimum, abs=within)


@pytest.mark.sample(3)
@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_bounds_of_controls_hold_everywhere(scheme, degree):
    """Bang-bang, with switches between nodes: polynomials through bounded values would leave the bounds there."""
    solution = swing(15).solve(method=scheme(degree), check="off")
    u = sampled(solution)
    assert u.shape == (15, DENSE.size)
    assert np.abs(u).max() < 2 + 1e-8
    assert np.abs(u).max() > 1.99
    assert np.ptp(u, axis=1).max() > 0.1  # in one interval at least they change
    assert np.abs(u[:, 0] - solution["u"][:, 0]).max() < 1e-12
    bound = next(r for r in solution.check().rows if r.what == "bound" and r.name == "u")
    assert bound.error < 1e-7


def test_a_polynomial_that_leaves_its_bounds_is_seen():
    """With coefficients 1.5, 4, 1.5 the values at the ends keep the bound and those between do not."""
    solution = swing(5).solve(method="gauss", check="off")
    made, unknowns = solution.transcribed, solution.unknowns.copy()
    own = made.nx + 1 + 3 * 2  # behind state, control, and states at points
    unknowns[own - 7] = unknowns[own + 1] = 1.5 / made.u_scale[0]
    unknowns[own] = 4 / made.u_scale[0]
    solution.unknowns = unknowns
    solution.x, solution.u, _ = made.values(unknowns)
    bound = next(r for r in solution.check().rows if r.what == "bound" and r.name == "u")
    assert bound.value == pytest.approx(1.5 / 4 + 4 / 2 + 1.5 / 4, rel=1e-3)
    assert not solution.check().ok()


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", [radau(4), gauss(4), gauss(5, 2)], ids=str)
def test_the_control_that_is_checked_is_the_one_that_was_transcribed(method):
    """x' = cos(x) + u from the polynomials of the solution, by many small steps of Euler's method, extrapolated."""
    ocp = od.Problem(6, 2.0)
    x, u = ocp.state("x"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, ca.cos(x) + u)
    ocp.start({x: 0})
    ocp.goal({x: 0.5})
    ocp.minimize(integral=x**2 + u**2 / 10)
    solution = ocp.solve(method=method, solver_options=EXACT)
    made = solution.transcribed
    inner = [(share, y[:, 0]) for like, share, _, y in made.inner(solution.unknowns)[0] if like == "u"]
    shares = [0.0, *(share for share, _ in inner)]
    values = np.array([solution["u"][:, 0], *(y for _, y in inner)])
    coefficients = np.linalg.solve(np.vander(shares, increasing=True), values)  # of the powers of the share

    def end(steps):
        y, h = solution.x[:-1, 0].copy(), 1 / 3 / steps
        for k in range(steps):
            y = y + h * (np.cos(y) + np.polynomial.polynomial.polyval(k / steps, coefficients))
        return y

    table = [end(2**k) for k in range(5, 12)]
    for order in range(1, 7):
        table = [b + (b - a) / (2**order - 1) for a, b in itertools.pairwise(table)]
    assert table[-1] == pytest.approx(solution.x[1:, 0], abs=1e-7)
    assert solution.check().defect < 1e-4
    assert solution.check(1e-9).objective == pytest.approx(solution.objective, rel=1e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("control_degree", [1, 2])
def test_equations_of_controls_hold_at_as_many_points_as_controls_have_coefficients(scheme, control_degree):
    """u + x = 0 leaves x' = -x: at nodes and points, equations would be more than there are unknowns."""
    ocp = od.Problem(8, 2.0)
    x, u, w = ocp.state("x"), ocp.control("u"), ocp.control("w", lower=-1, upper=1)
    ocp.rate(x, u)
    ocp.limit([0, -1], ca.vertcat(u + x, w - x), [0, 0.5], name="both")
    ocp.start({x: 1})
    ocp.minimize(integral=w**2)
    solution = ocp.solve(method=scheme(3, control_degree), solver_options=EXACT, check="off")
    assert solution["x"][-1, 0] == pytest.approx(np.exp(-2), abs=1e-5 if control_degree == 2 else 1e-3)
    rows = {r.name: r.error for r in solution.check().rows if r.what == "limit"}
    assert rows["both[0]"] < (1e-3 if control_degree == 2 else 2e-2)
    assert rows["both[1]"] < 1e-6
    ocp.bound("both", [0, -1], [0, 0.4])
    assert ocp.solve(method=scheme(3, control_degree), solver_options=EXACT, check="off").success


@pytest.mark.sample(2)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_limits_hold_at_points_and_at_both_ends(scheme):
    """Largest x(T) with x' = u, u <= 1 - t: limits with controls bind in all the interval, states at their points."""
    ocp = od.Problem(3, 1.0)
    x, u = ocp.state("x", upper=0.45), ocp.control("u", lower=-9, upper=9)
    ocp.rate(x, u)
    ocp.limit(-np.inf, u + ocp.time, 1, name="less and less")
    ocp.start({x: 0})
    ocp.minimize(integral=-x)
    solution = ocp.solve(method=scheme(3), solver_options=EXACT, check="off")  # the state is let loose between points
    u = sampled(solution)
    t = (np.arange(3)[:, None] + DENSE) / 3
    assert (u + t).max() < 1 + 1e-6
    inner = solution.transcribed.inner(solution.unknowns)[0]
    states = np.array([y[:, 0] for like, _, _, y in inner if like == "x"])
    assert states.shape == (3, 3)
    assert 0.44 < states.max() < 0.45 + 1e-8


@pytest.mark.sample(2)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_free_mesh_finds_switches(scheme):
    ocp = od.Problem(6, (0.1, 10.0), mesh="free", nominal=2.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=1)
    solution = ocp.solve(method=scheme(3), check="raise")
    assert solution.duration == pytest.approx(2, abs=1e-7)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_controls_may_jump_at_nodes_and_between_phases(scheme):
    solution = known(11).problem(4).solve(method=scheme(3), solver_options=EXACT)
    k = int(np.argmin(np.abs(solution.t - 0.75)))
    u = np.vstack([sampled(solution, 0), sampled(solution, 1)]) if len(solution.transcribed.phases) > 1 else None
    assert u[k - 1, -1] == pytest.approx(0.2009, abs=1e-3)
    assert solution["u"][k, 0] == pytest.approx(-0.7057, abs=1e-3)


def test_maps_that_read_controls_are_refused_unless_controls_are_constant():
    ocp = od.Problem(5, 1.0)
    q, _, ddq = ocp.chain("q", 1, 2)
    ocp.start({q: 0})
    ocp.goal({q: 1})
    ocp.minimize(integral=ddq**2)
    with pytest.raises(OrderError, match=r"changes? within intervals|that change within intervals.*control_degree=0"):
        ocp.solve(method="radau")
    constant = ocp.solve(method=radau(3, control_degree=0))
    assert constant.objective == pytest.approx(ocp.solve(method="rk4").objective, rel=1e-8)


def test_what_changes_within_intervals_is_not_known_there():
    ocp = od.Problem(5, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.limit(-1, u, 1, name="half way", at=0.5)
    with pytest.raises(OrderError, match="control 'u', which this method changes within intervals"):
        ocp.solve(method="gauss")


@pytest.mark.sample(2)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_methods_are_values(scheme):
    assert scheme(3) == METHODS[scheme.__name__]
    assert scheme(3, 1).with_degree(5) == scheme(5, 1)
    assert scheme(3).with_degree(5) == scheme(5)
    assert scheme(4, 2).with_degree(2) == scheme(2, 1)
    assert scheme(1).control_degree == 0
    assert collocation(4) == gauss(4, 0)
    assert pickle.loads(pickle.dumps(scheme(4))) == scheme(4)
    assert [scheme(k).order for k in (1, 3)] == ([1, 5] if scheme is radau else [2, 6])
    assert order_of_cost(scheme(3, 1)) == 4
    ocp = swing(4)
    assert ocp.transcribed(scheme(2)) is ocp.transcribed(scheme(2))
    for wrong in ((0,), (3, 3), (3, -1), (2.0,), (3, True)):
        with pytest.raises(ShapeError, match=r"(radau|gauss): (control_)?degree is"):
            scheme(*wrong)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", [radau(2), gauss(4, 2)], ids=str)
def test_solutions_are_sent(method):
    solution = swing(8).solve(method=method, check="off")
    other = pickle.loads(pickle.dumps(solution))
    assert other.method == method
    assert np.array_equal(other["u"], solution["u"])
    assert other["u"].shape == (8, 1)
    assert other.check().worst == pytest.approx(solution.check().worst, abs=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["radau", "gauss"])
def test_predictive_control(method):
    ocp = od.Problem(8, 1.0)
    now = ocp.parameter("now", 2)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u - 0.1 * v**3)
    ocp.start({x: now[0], v: now[1]})
    ocp.minimize(squares=ca.vertcat(x, v, 0.3 * u))
    controller = od.mpc(ocp, method=method)
    measured = np.array([1.0, 0.2])
    for _ in range(3):
        done = controller.step({"now": measured})
        found = ocp.solve(method=method, parameters={"now": measured}, check="off")
        assert done["objective"] == pytest.approx(found.objective, rel=1e-6)
        assert done["u"] == pytest.approx(found["u"][0], abs=1e-4)
        measured = found.x[1]


@pytest.mark.sample(1)
@pytest.mark.parametrize("degree", range(1, 6))
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rules_integrate_powers_as_far_as_their_order(scheme, degree):
    """x' = t^(p - 1) and that as a cost: 1 / p at the end of one interval, up to the order and no further."""
    method = scheme(degree)
    for p in {1, method.order, method.order + 1}:
        ocp = od.Problem(1, 1.0)
        x = ocp.state("x")
        ocp.rate(x, ocp.time ** (p - 1))
        ocp.start({x: 0})
        ocp.minimize(integral=ocp.time ** (p - 1) + 0 * x)
        solution = ocp.solve(method=method, solver_options=EXACT, check="off")
        right = p <= method.order
        assert (abs(solution.objective - 1 / p) < 1e-9) == right
        assert (abs(solution["x"][-1, 0] - 1 / p) < 1e-9) == right


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["radau", "gauss", "hermite_simpson", "trapezoidal"])
def test_a_mean_of_controls_that_change_within_intervals_is_refused(method):
    """They would be zero at the starts of intervals, at no cost."""
    ocp = od.Problem(6, 2.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.start({x: 1})
    ocp.minimize(mean=x**2 + u**2)
    with pytest.raises(OrderError, match="mean=.* reads controls at starts of intervals"):
        ocp.solve(method=method)
    assert ocp.solve(method=radau(2, control_degree=0)).success
