"""Bernstein chains, free meshes, limits and sums within intervals, other meshes of a Problem: against known answers."""

import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import CheckWarning, LimitError, OrderError, ShapeError, SolveError, UnknownName

V, A, J, D = 1.0, 2.0, 20.0, 1.0
SHORTEST = D / V + V / A + A / J  # the seven phases of a motion at its limits


def fastest(nodes=12, mesh="uniform"):
    """Rest to rest over D under limits of velocity, acceleration and jerk."""
    bounds = {} if mesh == "uniform" else {"nominal": 1.7}
    ocp = od.Problem(nodes, (0.17, 6.8), mesh=mesh, **bounds)
    q, v, a, j = ocp.chain("q", 1, 3, bounds=[V, A, J], basis="bernstein")
    ocp.start({q: 0, v: 0, a: 0})
    ocp.goal({q: D, v: 0, a: 0})
    ocp.minimize(integral=1.0)
    return ocp.solve(check="off"), (q, v, a, j)


def test_uniform_mesh_is_slower_than_the_optimum_and_within_its_bounds_everywhere():
    found, (q, v, a, j) = fastest()
    assert SHORTEST < found.duration < 1.05 * SHORTEST
    assert found.check().ok()
    motion = found.trajectory([q, v, a, j]).sample(np.linspace(0, found.duration, 2001))
    for x, bound in ((motion.v, V), (motion.dv, A), (motion.d2v, J)):
        assert np.abs(x).max() < bound * (1 + 1e-6)


def test_free_mesh_finds_the_optimum_exactly():
    found, (q, v, a, j) = fastest(mesh="free")
    assert found.duration == pytest.approx(SHORTEST, rel=1e-8)
    assert found.objective == pytest.approx(SHORTEST, rel=1e-8)
    assert np.diff(found.t) == pytest.approx(found.relative_lengths * 1.7 / 12)
    assert np.ptp(np.diff(found.t)) > 0.05
    assert found.check().ok()
    motion = found.trajectory([q, v, a, j])
    assert motion.duration == pytest.approx(SHORTEST, rel=1e-8)
    assert np.abs(motion.sample(np.linspace(0, motion.duration, 2001)).v).max() < V * (1 + 1e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("basis, method", [("taylor", "rk4"), ("bernstein", "rk4"),
                                               ("rates", "rk4"), ("rates", "euler"), ("rates", "collocation"),
                                               ("rates", "hermite_simpson")])  # fmt: skip
def test_free_mesh_is_for_any_method(basis, method):
    """Accelerated by up to A, braked by up to 2 A: the switch is at two thirds of the time, where no node is."""
    durations = {}
    for mesh in ("uniform", "free"):
        ocp = od.Problem(10, (0.1 * 1.5, 4 * 1.5), nominal=1.5, mesh=mesh)
        if basis == "rates":
            q, v, a = ocp.state("q"), ocp.state("v"), ocp.control("a", lower=-2 * A, upper=A)
            ocp.rate(q, v)
            ocp.rate(v, a)
        else:
            q, v, a = ocp.chain("q", 1, 2, basis=basis)
            ocp.limit(-2 * A, a, A)
        ocp.start({q: 0, v: 0})
        ocp.goal({q: D, v: 0})
        ocp.minimize(integral=1.0)
        found = ocp.solve(method=method, check="off", solver_options={"tol": 1e-9})
        durations[mesh] = found.duration
        assert found.check().ok() or method == "euler"
    best = np.sqrt(2 * D * 3 * A / (2 * A * A))
    if method == "euler":
        assert durations["free"] < durations["uniform"]
    elif method == "hermite_simpson":  # controls are quadratic, and pass the bounds of their three points a bit
        assert durations["free"] == pytest.approx(best, rel=0.01)
    else:
        assert durations["free"] == pytest.approx(best, rel=1e-7)
        assert durations["uniform"] > best * (1 + 1e-4)


def test_free_mesh_in_a_fixed_duration_keeps_it():
    durations = []
    for mesh in ("uniform", "free"):
        ocp = od.Problem(8, 2.0, mesh=mesh)
        q, v, a = ocp.chain("q", 1, 2, basis="bernstein")
        ocp.start({q: 0, v: 0})
        ocp.goal({q: 1, v: 0})
        ocp.minimize(integral=a**2)
        found = ocp.solve()
        durations.append(found.duration)
        best = 12 / 2.0**3  # of the cubic, which a piecewise constant acceleration comes near to
        assert best < found.objective < 1.02 * best
    assert durations == pytest.approx([2.0, 2.0], rel=1e-9)


def test_free_mesh_with_bounds_of_the_duration():
    ocp = od.Problem(6, (1.9, 2.5), mesh="free")
    q, v, a, _ = ocp.chain("q", 1, 3, bounds=[V, A, J], basis="bernstein")
    ocp.start({q: 0, v: 0, a: 0})
    ocp.goal({q: D, v: 0, a: 0})
    ocp.minimize(integral=1.0)
    assert ocp.solve().duration == pytest.approx(1.9, rel=1e-7)  # SHORTEST is less


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop", "sqpmethod"])
def test_ends_in_motion(solver):
    """Through both ends at 0.4: accelerated to the middle, v^2 = 0.4^2 + A D, then braked."""
    ocp = od.Problem(10, (0.3, 5.0))
    q, v, a = ocp.chain("q", 1, 2, bounds=[None, A], basis="bernstein")
    ocp.start({q: 0.5, v: 0.4})
    ocp.goal({q: 0.5 + D, v: 0.4})
    ocp.minimize(terminal=ocp.duration)
    found = ocp.solve(solver=solver)
    fastest = np.sqrt(0.4**2 + A * D)
    assert found.duration == pytest.approx(2 * (fastest - 0.4) / A, rel=1e-6)
    assert found["q"][0] == pytest.approx(0.5)
    assert found[v][[0, 5, 10], 0] == pytest.approx([0.4, fastest, 0.4], rel=1e-6)
    assert found["d2q"][:, 0] == pytest.approx([A] * 5 + [-A] * 5, rel=1e-4)


def test_bounds_of_the_position_hold_between_nodes():
    """Thrown upwards under a ceiling: a parabola's vertex within an interval may not pass it."""
    tops = {}
    for basis in ("bernstein", "taylor"):
        ocp = od.Problem(3, 1.0)
        q, v, a = ocp.chain("q", 1, 2, upper=0.2, basis=basis)
        ocp.start({q: 0, v: 1.0})
        ocp.goal({q: 0, v: -1.0})
        ocp.minimize(integral=a**2)
        found = ocp.solve(check="off")
        tops[basis] = found.trajectory([q, v, a]).sample(np.linspace(0, 1, 1001)).q.max()
    assert tops["taylor"] > 0.2 + 1e-3  # which is why
    assert tops["bernstein"] < 0.2 + 1e-7


@pytest.mark.slow
def test_limits_within_intervals_and_what_is_left_out():
    """sin(q) v at fractions: kept where it was asked for, and not where the ends decide it."""
    def solved(**where):
        ocp = od.Problem(5, 1.0)
        q, v, a = ocp.chain("q", 1, 2, basis="bernstein")
        ocp.start({q: 0, v: 0})
        ocp.goal({q: 1, v: 0})
        ocp.limit(-10, v, 1.3, name="speed", **where)
        ocp.minimize(integral=a**2)
        return ocp.solve(check="off"), v, q, a
    at = np.arange(0.0, 1.0, 0.25)
    found, v, q, a = solved(at=at)
    speed = found.trajectory([q, v, a]).sample((np.arange(5)[:, None] + at).ravel() / 5).v
    assert speed.max() == pytest.approx(1.3, rel=1e-6)
    assert solved(at=0.5, last=0.25)[0].objective == solved(at=(0.5,), last=(0.25,))[0].objective
    free, *_ = solved(at=(0.0,))
    assert free.objective < found.objective
    # one row for every fraction of every interval but the first start, which is fixed
    assert sum((rows >= 0).sum() for rows in found.transcribed.assembly.stage_rows) == 5 * 4 - 1
    last, *_ = solved(last=(0.5, 1.0))
    assert sum((rows >= 0).sum() for rows in last.transcribed.assembly.stage_rows) == 1
    assert any(r.name == "speed" and r.what == "limit" for r in free.check().rows)


def test_limits_within_intervals_of_a_taylor_chain():
    ocp = od.Problem(5, 1.0)
    q, v, a = ocp.chain("q", 1, 2)
    ocp.start({q: 0, v: 0})
    ocp.goal({q: 1, v: 0})
    ocp.limit(-10, v, 1.2, at=(0.25,), last=(0.5,))
    ocp.minimize(integral=a**2)
    found = ocp.solve(check="off")
    motion = found.trajectory([q, v, a])
    assert motion.sample((np.arange(5) + 0.25) / 5).v.max() == pytest.approx(1.2, rel=1e-6)
    assert found[v].max() > 1.2 + 1e-3  # nodes are not limited
    assert sum((rows >= 0).sum() for rows in found.transcribed.assembly.stage_rows) == 6


@pytest.mark.sample(2)
@pytest.mark.parametrize("mesh", ["uniform", "free"])
def test_lobatto_sums_and_means(mesh):
    """The integral of q^2 along q = t^2 on [0, 1], of degree 4, exact with 2 interior points; at rest at its ends there
    is nothing left to choose."""
    ocp = od.Problem(1, 1.0, mesh=mesh)
    q, v, a, b = ocp.chain("q", 1, 3, basis="bernstein")
    ocp.start({q: 0, v: 0, a: 2.0})
    ocp.goal({q: 1})
    ocp.minimize(integral=(q - q**2) / 1, points=2)
    ocp.minimize(mean=7.0 + b)
    found = ocp.solve(check="off")
    # the end counts at the start, where q - q^2 is the same, zero
    assert found.objective == pytest.approx(1 / 3 - 1 / 5 + 7.0, rel=1e-7)
    assert found.check().objective == pytest.approx(found.objective, rel=1e-7)


# -- durations of free meshes -----------------------------------------------------------------------------------


def reached(nodes=8, duration=(0.2, 5.0), bounds=(0.8, 2, 20), distance=1.0, mesh="free", **more):
    """A chain from rest to rest, without a cost."""
    ocp = od.Problem(nodes, duration, mesh=mesh, **more)
    chain = ocp.chain("q", 1, 3, bounds=bounds, basis="bernstein")
    ocp.start({x: 0 for x in chain[:-1]})
    ocp.goal({chain[0]: distance, chain[1]: 0, chain[2]: 0})
    return ocp, chain


def test_a_free_duration_of_a_free_mesh_has_no_symbol():
    """The seven phases of a motion at its limits take 1 / 0.8 + 0.8 / 2 + 2 / 20 = 1.75 s."""
    ocp, _ = reached()
    with pytest.raises(OrderError, match=r"minimize\(integral=1\).*ocp.time"):
        ocp.minimize(terminal=ocp.duration)
    for say in (lambda o: o.minimize(integral=1.0), lambda o: o.minimize(terminal=o.time)):
        ocp, _ = reached()
        say(ocp)
        assert ocp.solve(check="off").duration == pytest.approx(1.75, rel=1e-6)
    assert od.Problem(5, 2.0, mesh="free").duration == 2.0


@pytest.mark.slow
def test_a_nominal_duration_of_a_free_mesh_reaches_the_bounds():
    """3 m at 0.8 m/s take 4.25 s, of 5 s allowed: more than 4 times the geometric mean."""
    ocp, _ = reached(12, distance=3.0)
    ocp.minimize(integral=1.0)
    assert ocp.nominal == pytest.approx(5.0 / 4)
    with pytest.warns(CheckWarning, match=r"as long as a free mesh has them.*give nominal=4.4"):
        found = ocp.solve()
    assert 4.25 < found.duration < 4.45
    ocp, _ = reached(12, distance=3.0, nominal=4.4)
    ocp.minimize(integral=1.0)
    assert ocp.solve().duration == pytest.approx(4.25, rel=1e-5)
    ocp, _ = reached(12, distance=3.0, nominal=1.0)
    ocp.minimize(integral=1.0)
    with pytest.raises(SolveError, match=r"durations of 4 to 5 s are out of reach.*give nominal="):
        ocp.solve()
    assert od.Problem(3, (0.1, 100.0), mesh="free").nominal == pytest.approx(10**0.5)  # too far apart for any
    assert od.Problem(3, (0.2, 5.0)).nominal == pytest.approx(1.0)


# -- costs and limits within intervals of what is known there ----------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("basis", ["taylor", "bernstein"])
@pytest.mark.parametrize("points", [3, None])
def test_integrals_on_a_free_mesh_are_those_of_each_interval(basis, points):
    """The integral of v^2 is 1/2 at least, by Cauchy and Schwarz; the rule is exact for polynomials."""
    ocp = od.Problem(12, 2.0, mesh="free")
    q, v, a = ocp.chain("q", 1, 2, basis=basis)
    ocp.start({q: 0, v: 0})
    ocp.goal({q: 1, v: 0})
    ocp.minimize(integral=v**2 + 1e-4 * a**2, points=points)
    found = ocp.solve(check="off")
    assert 0.5 < found.objective < 0.52
    assert found.check().objective == pytest.approx(found.objective, rel=1e-9)


def test_integrals_and_squares_on_a_free_mesh_without_points():
    """The integral of a^2 is 12 D^2 / T^3 = 3/2 at least."""
    for cost in ("integral", "squares"):
        ocp, (_, _, a, _) = reached(6, 2.0, (2, 20, 200))
        ocp.minimize(**{cost: a**2 if cost == "integral" else np.sqrt(2) * a})
        found = ocp.solve(check="off")
        assert 1.5 < found.objective < 1.6
        assert found.check().objective == pytest.approx(found.objective, rel=1e-9)


def test_an_integral_of_a_chain_and_a_state_with_a_rate_is_refused_on_a_free_mesh():
    ocp, (q, *_) = reached(6, 2.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.minimize(integral=(x - q) ** 2)
    with pytest.raises(OrderError, match="chain or contact body and state 'x', which has a rate"):
        ocp.solve()


@pytest.mark.sample(2)
@pytest.mark.parametrize("basis", ["taylor", "bernstein"])
def test_rates_that_read_a_chain(basis):
    """Held over an interval: off by order 1, which the check tells, and refused on a free mesh."""
    def problem(nodes, mesh):
        ocp = od.Problem(nodes, 2.0, mesh=mesh)
        q, v, a = ocp.chain("q", 1, 2, basis=basis)
        ocp.start({q: 0, v: 0})
        ocp.goal({q: 1, v: 0})
        way = ocp.integral(q)
        ocp.minimize(integral=a**2)
        return ocp, way
    errors = []
    for nodes in (10, 20):
        ocp, way = problem(nodes, "uniform")
        with pytest.warns(CheckWarning, match="defect of integral"):
            errors.append(1 - ocp.solve()[way][-1, 0])  # by symmetry the integral is 1
    assert errors == pytest.approx([0.1, 0.05], rel=0.01)
    ocp, _ = problem(10, "free")
    with pytest.raises(OrderError, match="'integral' reads a chain"):
        ocp.solve()


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["hermite_simpson", "trapezoidal", "rk4"])
def test_what_is_not_known_within_an_interval_is_refused(method):
    def problem():
        ocp = od.Problem(4, (0.1, 5.0))
        x, u = ocp.state("x"), ocp.control("u", guess=0.1)
        ocp.rate(x, u)
        ocp.start({x: 0})
        ocp.goal({x: 1})
        ocp.minimize(terminal=ocp.duration)
        return ocp, x, u

    nodal = method != "rk4"
    for say in (lambda o, u: o.limit(-2, u, 2, at=(0, 0.5, 1)), lambda o, u: o.minimize(integral=u**2, points=2),
                lambda o, u: o.minimize(integral=u**2, points=0)):  # fmt: skip
        ocp, _, u = problem()
        say(ocp, u)
        if nodal:
            with pytest.raises(OrderError, match="control 'u', which this method has at nodes"):
                ocp.solve(method=method)
        else:
            assert ocp.solve(method=method).duration > 0.49
    for say in (lambda o, x: o.limit(-2, x, 2, at=(0.5,)), lambda o, x: o.limit(-2, x, 2, last=(1,)),
                lambda o, x: o.minimize(integral=x, points=1)):  # fmt: skip
        ocp, x, _ = problem()
        say(ocp, x)
        with pytest.raises(OrderError, match="state 'x', which has a rate"):
            ocp.solve(method=method)


@pytest.mark.slow
def test_time_and_contact_bodies_are_known_within_intervals():
    """A robot that moves by t along x: the integral of x^2 + t over [0, 1]."""
    robot = od.robots.quadruped()
    ocp = od.Problem(2, 1.0)
    body = ocp.contact_body(robot)
    ocp.limit(0, body.dv, 0)
    ocp.start({body.q: robot.neutral(), body.v: np.eye(robot.nv)[3]})
    ocp.minimize(integral=body.q[4] ** 2 + ocp.time, points=2)
    # the end counts at the start of the next interval: at the last end 0 for 2, of weight 1/12 in intervals of 1/2
    assert ocp.solve(check="off").objective == pytest.approx(1 / 3 + 1 / 2 - 2 / 12 / 2, rel=1e-7)


def test_bounds_change_without_building_anew():
    ocp = od.Problem(12, (0.17, 6.8))
    q, v, a, _ = ocp.chain("q", 1, 3, bounds=[V, A, J], basis="bernstein")
    ocp.start({q: 0, v: 0, a: 0})
    ocp.goal({q: D, v: 0, a: 0})
    ocp.limit(-9, v * q, 9, name="product", at=(0, 0.5))
    ocp.minimize(terminal=ocp.duration)
    first = ocp.solve(check="off")
    ocp.bound("d1q", -V / 2, V / 2)
    slow = ocp.solve(check="off", initial=first)
    assert slow.transcribed is first.transcribed
    assert slow["d1q"].max() == pytest.approx(V / 2, rel=1e-6)
    ocp.bound("product", -9, 0.25)
    slower = ocp.solve(check="off", initial=slow)
    assert slower[v * q].max() == pytest.approx(0.25, rel=1e-5)
    assert slower.duration > slow.duration > first.duration
    with pytest.raises(ShapeError, match="finite"):
        ocp.bound("product", -np.inf, 1)
    with pytest.raises(UnknownName, match="d1q"):
        ocp.bound("dq", -1, 1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["rk4", "collocation"])
def test_bounds_of_named_limits_change_everywhere_and_checks_go_by_those_of_the_solve(method):
    """At nodes, and at the points of a method."""
    ocp = od.Problem(6, 1.0)
    x, v = ocp.state("x"), ocp.state("v")
    u = ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.limit([-9, -9], ca.vertcat(v, x), [9, 9], name="both")
    ocp.minimize(integral=u**2)
    first = ocp.solve(method=method)
    assert first[v].max() == pytest.approx(1.5, rel=0.05)
    ocp.bound("both", [-9, -9], [1.2, 9])
    second = ocp.solve(method=method)
    assert second.transcribed is first.transcribed
    assert second[v].max() == pytest.approx(1.2, rel=1e-6)
    for found, upper in ((first, 9), (second, 1.2)):  # the first one, too, is told of as it was asked for
        row = next(r for r in found.check().rows if r.name == "both[0]")
        assert row.upper == upper
        assert row.error < 1e-6
    inner = [x for like, _, _, x in second.transcribed.inner(second.unknowns)[0] if like == "x"]
    assert all(x[:, 1].max() < 1.2 + 1e-6 for x in inner)


def test_bounds_of_rates_change_to_others_of_two_signs_and_to_zero():
    ocp = od.Problem(9, (0.17, 6.8))
    q, v, a = ocp.chain("q", 1, 2, bounds=[50.0, A], basis="bernstein")
    ocp.start({q: 0, v: 0})
    ocp.goal({q: D, v: 0})
    ocp.minimize(terminal=ocp.duration)
    ocp.bound("d2q", -2 * A, A)
    found = ocp.solve(check="off")
    assert found[a].min() == pytest.approx(-2 * A, rel=1e-6)
    assert found[a].max() == pytest.approx(A, rel=1e-6)
    assert found.duration == pytest.approx(np.sqrt(3 * D / A), rel=1e-6)  # the switch, at 2/3, is a node
    ocp.bound("d2q", -A, 0)
    ocp.start({v: 2.0})
    assert ocp.solve(check="off").duration == pytest.approx(2 * D / 2.0, rel=1e-5)  # braked from the first


def test_several_chains_with_ends_of_their_own():
    """One fixed in all, one to be as fast as it gets at the goal, and one moving at both ends."""
    ocp = od.Problem(8, (0.3, 5.0))
    x, dx, ddx = ocp.chain("x", 1, 2, bounds=[None, A], basis="bernstein")
    y, dy, ddy = ocp.chain("y", 1, 2, bounds=[None, A], basis="bernstein")
    z, dz, ddz, _ = ocp.chain("z", 2, 3, basis="bernstein")
    ocp.start({x: 0, dx: 0, y: 0, z: [0, 1], dz: [0.3, -0.2], ddz: 0})
    ocp.goal({x: D, dx: 0, y: 0, dy: 1.0, z: [1, 0], dz: [-0.1, 0.5]})
    ocp.minimize(terminal=ocp.duration)
    ocp.minimize(mean=1e-6 * ca.sumsqr(ocp.coefficients([z])[-1]) + 1e-6 * ddy**2)
    found = ocp.solve(check="off")
    assert found.duration == pytest.approx(2 * np.sqrt(D / A), rel=1e-4)
    for symbol, end, value in ((dx, 0, 0), (dx, -1, 0), (y, 0, 0), (y, -1, 0), (dy, -1, 1), (dz, 0, [0.3, -0.2]),
                               (dz, -1, [-0.1, 0.5]), (ddz, 0, 0), (z, -1, [1, 0])):  # fmt: skip
        assert found[symbol][end] == pytest.approx(value, abs=1e-7)


def test_another_mesh_shares_the_stages_and_numbers_are_its_own():
    ocp = od.Problem(8, 1.0, reusable=True)
    q, v, a = ocp.chain("q", 2, 2, bounds=[None, 50.0], basis="bernstein")
    ocp.start({q: 0, v: 0})
    ocp.goal({q: [1, 2], v: 0})
    ocp.minimize(integral=ca.sumsqr(a))
    first = ocp.solve()
    other = ocp.with_mesh(20, 2.0)
    other.goal({q: [2, 4]})
    found = other.solve()
    kinds = [[g.kind for g in x.transcribed.assembly.groups] for x in (first, found)]
    assert all(x is y for x, y in zip(*kinds, strict=True))
    assert len(found.t) == 21
    assert found.duration == pytest.approx(2.0, rel=1e-14)
    assert found.objective == pytest.approx(12 * (2**2 + 4**2) / 2.0**3, rel=0.01)
    assert ocp.solve().objective == first.objective  # as it was
    warm = other.solve(initial=first)
    assert warm.objective == pytest.approx(found.objective, rel=1e-7)


def by_rates(mesh, duration=(0.5, 3.0), **more):
    """A Problem from rest to rest in the least time, by rates."""
    ocp = od.Problem(8, duration, mesh=mesh, **more)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-2, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=1.0)
    return ocp, x, u


def test_a_nominal_duration_alone_is_taken_by_with_mesh():
    other = by_rates("uniform")[0].with_mesh(20, nominal=2.0)
    assert other.nominal == 2.0
    assert other.numbers.durations[0] == (2.0, 0.5, 3.0)
    assert other.solve(check="off").duration == pytest.approx(3**0.5, rel=5e-3)
    ocp = by_rates("uniform", reusable=True)[0]
    assert ocp.with_mesh(20, nominal=2.0).solve(check="off").duration == pytest.approx(3**0.5, rel=5e-3)
    assert by_rates("uniform")[0].with_mesh(20).numbers.durations[0] == ocp.numbers.durations[0]
    with pytest.raises(ShapeError, match="for a free duration"):
        od.Problem(5, 1.0).with_mesh(20, nominal=2.0)
    for duration, nominal in (((0.5, 3.0), None), ((0.1, 4.0), 1.0)):  # with a clock and without
        with pytest.raises(ShapeError, match="stay in proportion"):
            by_rates("free", duration, nominal=nominal, reusable=True)[0].with_mesh(20, nominal=2.0)


def test_guesses_that_are_tables_are_interpolated_by_with_mesh():
    ocp, x, u = by_rates("uniform")
    q = ocp.chain("q", 1, 2, basis="bernstein")
    ocp.start({q[0]: 0, q[1]: 0})
    line = np.linspace(0, 1, 9)[:, None]
    ocp.guess({x: line**2, u: np.ones((8, 1)), q[0]: [line, 1.0]})
    other = ocp.with_mesh(16)
    at = np.linspace(0, 1, 17)[:, None]
    assert other.numbers.guess["x"] == pytest.approx(np.interp(at, line[:, 0], line[:, 0] ** 2))
    assert other.numbers.guess["u"] == pytest.approx(np.ones((17, 1)))
    assert other.numbers.guess["q"][0] == pytest.approx(at)
    assert other.numbers.guess["q"][1] == 1.0
    assert len(other.solve(check="off").t) == 17
    assert ocp.numbers.guess["x"].shape == (9, 1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("basis", ["rates", "bernstein"])
def test_solutions_are_guesses_from_mesh_to_mesh(basis):
    found = {}
    for mesh in ("uniform", "free"):
        ocp = by_rates(mesh)[0] if basis == "rates" else reached(12, (0.5, 3.0), mesh=mesh)[0]
        if basis == "bernstein":
            ocp.minimize(integral=1.0)
        found[mesh] = ocp.solve(check="off")
    for mesh, other in (("uniform", "free"), ("free", "uniform")):
        made = found[mesh].transcribed
        x, u, durations = made.values(made.guess(found[other]))
        names = [v.name for v in made.states]
        assert ("clock" in names) == (mesh == "free")
        if mesh == "free":
            T = found["free"].problem.nominal
            assert x[:, 0] == pytest.approx(found["uniform"].t / T)
            assert np.diff(x[:, 0]) * len(u) == pytest.approx(made.relative_lengths(made.guess(found[other])))
        if basis == "rates":
            passed = np.cumsum([0, *made.relative_lengths(made.guess(found[other]))])
            times = found[other].t[0] + found[other].duration * passed / passed[-1]
            sampled = found[other].sample("x", np.clip(times, 0, found[other].t[-1]))[:, 0]
            assert x[:, names.index("x")] == pytest.approx(sampled, abs=1e-9)
        assert durations[0] == pytest.approx(found[other].duration, rel=1e-6)
        again = found[mesh].problem.solve(initial=found[other], check="off")
        assert again.duration == pytest.approx(found[mesh].duration, rel=1e-5)


def test_multipliers_are_carried_to_a_problem_with_more_rows():
    def solved(at, initial=None, **options):
        ocp = od.Problem(10, 1.0)
        q, v, a = ocp.chain("q", 1, 2, basis="bernstein")
        ocp.start({q: 0, v: 0})
        ocp.goal({q: 1, v: 0})
        ocp.limit(-10, v, 1.3, name="speed", at=at)
        ocp.minimize(integral=a**2)
        return ocp.solve(check="off")
    few, many = solved((0.0,)).transcribed, solved((0.0, 0.5))
    x, g = many.transcribed.carried(solved((0.0,)).multipliers, few)
    own = few._labelled()[4][("speed", 0.0)]
    theirs = many.transcribed._labelled()[4]
    assert g[theirs["speed", 0.0]] == solved((0.0,)).multipliers[1][own]
    assert g[theirs["speed", 0.5]] == 0
    assert g.size == many.multipliers[1].size


@pytest.mark.sample(2)
@pytest.mark.parametrize("mesh", ["uniform", "free"])
def test_problems_and_solutions_are_sent(mesh):
    found, (q, *_) = fastest(mesh=mesh)
    ocp = pickle.loads(pickle.dumps(found.problem))
    again = ocp.solve(check="off")
    assert again.duration == pytest.approx(found.duration, rel=1e-9)
    came = pickle.loads(pickle.dumps(found))
    assert came["q"] == pytest.approx(found[q])
    assert came.t == pytest.approx(found.t)


def test_predictive_control_of_a_bernstein_chain():
    ocp = od.Problem(10, 1.0)
    q, v, a = ocp.chain("q", 1, 2, bounds=[None, 5.0], basis="bernstein")
    now = ocp.parameter("now", 2)
    ocp.start({q: now[0], v: now[1]})
    ocp.minimize(squares=ca.vertcat(10 * q, v, 0.01 * a))
    free = od.Problem(10, 1.0, mesh="free")
    free.chain("q", 1, 2)
    with pytest.raises(ShapeError, match="mpc: the problem has a free mesh"):
        od.mpc(free)
    control = od.mpc(ocp, outputs={"a": a})
    assert control.step({"now": [1.0, 0.0]})["a"] == pytest.approx([-5.0], abs=1e-4)
    assert control.step({"now": [0.0, 0.0]})["a"] == pytest.approx([0.0], abs=1e-6)


def test_what_does_not_fit_is_told():
    ocp = od.Problem(5, 1.0)
    q, v, a = ocp.chain("q", 1, 2, basis="bernstein")
    with pytest.raises(OrderError, match="bernstein chain is for one phase"):
        ocp.phase(3, 1.0)
    with pytest.raises(OrderError, match="free mesh is for one phase"):
        od.Problem(5, 1.0, mesh="free").phase(3, 1.0)
    with pytest.raises(OrderError, match="equal times"):
        od.Problem(5, 1.0, mesh="free").chain("q", 1, 2, basis="b_spline")
    with pytest.raises(UnknownName, match="free"):
        od.Problem(5, 1.0, mesh="fre")
    for wrong in ((1.5,), -0.1, [np.nan], [[0.5]]):
        with pytest.raises(ShapeError, match="limit: at is .* from 0 to 1"):
            ocp.limit(0, q, 1, at=wrong)
        with pytest.raises(ShapeError, match="limit: last is .* from 0 to 1"):
            ocp.limit(0, q, 1, last=wrong)
    for wrong in ("start", (None,), {0.5}):
        with pytest.raises(ShapeError, match="limit: at"):
            ocp.limit(0, q, 1, at=wrong)
    with pytest.raises(ShapeError, match="name of a chain"):
        ocp.limit(0, q, 1, at=(0.5,), name="d1q")
    with pytest.raises(UnknownName, match="bernstein chain"):
        ocp.coefficients([a])
    with pytest.raises(ShapeError, match="reusable"):
        ocp.with_mesh(5, 2.0)
    with pytest.raises(ShapeError, match="nominal"):
        od.Problem(5, 1.0, nominal=2.0)
    ocp.start({q: 0})
    ocp.goal({v: 0})
    ocp.minimize(integral=a**2)
    with pytest.raises(OrderError, match="'d1q' is fixed, but 'q' is not"):
        ocp.solve()
    other = od.Problem(5, 1.0)
    q, *_ = other.chain("q", 1, 2, lower=-1, upper=1, basis="bernstein")
    with pytest.raises(LimitError, match="outside its bounds"):
        other.goal({q: 2.0})


@pytest.mark.sample(2)
@pytest.mark.parametrize("scale", [0, np.nan, -1.0, np.inf, [], [1.0, 1.0], [1, 2, 3, 4], np.ones(3), [0.0, 1, 1], "x"])
def test_scales_of_chains_that_do_not_fit(scale):
    ocp = od.Problem(5, 1.0)
    with pytest.raises(ShapeError, match="scale"):
        ocp.chain("q", 2, 2, scale=scale, basis="bernstein")
    ocp.chain("q", 2, 2, scale=np.ones(2), basis="bernstein")  # nothing is left of the others


@pytest.mark.sample(2)
@pytest.mark.parametrize("guess", [np.nan, [0, 0, 0, 0], [], [0, np.inf], np.full((6, 1), np.nan), "x"])
def test_guesses_of_chains_that_do_not_fit(guess):
    ocp = od.Problem(5, 1.0)
    with pytest.raises(ShapeError, match="guess"):
        ocp.chain("q", 1, 2, guess=guess, basis="bernstein")
    q, *_ = ocp.chain("q", 1, 2, basis="bernstein")
    with pytest.raises(ShapeError, match="guess"):
        ocp.guess({q: guess})
    ocp.guess({q: lambda share: np.nan})
    with pytest.raises(ShapeError, match="guess of q: .*finite"):
        ocp.solve()


def test_new_bounds_have_to_hold_what_ends_are_fixed_to():
    ocp = od.Problem(5, 1.0)
    q, v, _ = ocp.chain("q", 2, 2, lower=-1, upper=1, bounds=[9.0], basis="bernstein")
    ocp.start({q: [0, 0.5], v: 0})
    ocp.goal({q: 1, v: [0, 2]})
    for name, lower, upper, words in (
        ("q", -1, [1, 0.4], r"start: q\[1\] is 0.5, outside its bounds -1 to 0.4"),
        ("q", -1, 0.9, r"goal: q\[0\] is 1"),
        ("d1q", -1, 1, r"goal: d1q\[1\] is 2"),
    ):
        with pytest.raises(LimitError, match=words):
            ocp.bound(name, lower, upper)
    ocp.goal({q: 0.6, v: 0})
    ocp.bound("q", -1, 0.9)  # the refused ones have changed nothing
    ocp.minimize(integral=ca.sumsqr(q))
    assert ocp.solve(check="off")[q][-1] == pytest.approx([0.6, 0.6])
