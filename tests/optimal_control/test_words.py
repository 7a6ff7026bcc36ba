"""Words of od.Problem beyond states, controls and limits: each on problems whose optimum is known."""

import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.starts import random_guess
from oc_dyn.study import suite

WAYS = [(m, s) for m in ("rk4", "collocation", "hermite_simpson") for s in ("ipopt", "fatrop")]
every_way = pytest.mark.parametrize("method, solver", WAYS)


def moved(nodes=10, duration=1.0, **more):
    """(problem, x, v, u) of a mass that is pushed, from rest."""
    ocp = od.Problem(nodes, duration, **more)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    return ocp, x, v, u


# -- variables ----------------------------------------------------------------------------------------------


def two_phases_with_a_mass():
    """x' = a u in two phases, x from 0 to 1 in 1 s at the least cost u^2 + a^2: u = 1 / a, 1 / a^2 + a^2 = 2 at 1."""
    ocp = od.Problem(4, 0.5)
    x, u, a = ocp.state("x"), ocp.control("u", guess=1), ocp.variable("a", lower=0.1, upper=5, guess=3)
    for phase in range(2):
        if phase:
            ocp.phase(6, 0.5)
        ocp.rate(x, a * u)
        ocp.minimize(integral=u**2)
    ocp.minimize(terminal=a**2)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    return ocp, a


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop", "sqpmethod"])
@pytest.mark.parametrize("method", ["rk4", "euler", "collocation", "trapezoidal", "hermite_simpson"])
def test_a_variable_has_one_value_in_all_phases(method, solver):
    ocp, a = two_phases_with_a_mass()
    found = ocp.solve(method=method, solver=solver)
    assert found.objective == pytest.approx(2, abs=1e-6)
    assert found["a"].shape == (11, 1)
    assert np.abs(found[a] - 1).max() < 1e-5
    assert np.ptp(found[a]) < 1e-9


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop", "sqpmethod"])
def test_a_variable_at_its_bound(solver):
    """A way d costs 6 d^2 + (d - 0.2)^2, least at 0.03: its lower bound decides."""
    ocp, x, v, u = moved()
    reach = ocp.variable("reach", 2, lower=[0.5, -1], upper=[0.7, 1])
    ocp.goal({x - reach[0]: 0, v: 0})
    ocp.minimize(integral=u**2 / 2, terminal=(reach[0] - 0.2) ** 2 + (reach[1] - 0.25) ** 2)
    found = ocp.solve(method="hermite_simpson", solver=solver)
    assert found.objective == pytest.approx(6 * 0.25 + 0.09, rel=1e-6)  # 6 d^2 for a way d
    assert np.abs(found[reach] - [0.5, 0.25]).max() < 1e-5


def test_a_variable_survives_pickling_and_may_be_used_on():
    ocp, _ = two_phases_with_a_mass()
    there = pickle.loads(pickle.dumps(ocp))
    x, a, u = (v.symbol for v in (*there.description.states, *there.description.controls))
    there.phase(3, 0.5)
    there.rate(x, a * u)
    there.minimize(integral=u**2)
    found = there.solve(method="rk4")  # half as fast for 1.5 s: u = 1 / (1.5 a)
    assert found.objective == pytest.approx(2 / np.sqrt(1.5), abs=1e-6)
    with pytest.raises(od.ShapeError, match="one value for the whole motion"):
        ocp.variable("b", guess=np.zeros((5, 1)))
    with pytest.raises(od.ShapeError, match="already"):
        ocp.variable("a")


# -- time ---------------------------------------------------------------------------------------------------


def time_in_phases(**more):
    """x' = u + sin t - 1 with u = 0, through 2 s in phases of 0.5 and 1.5 s."""
    ocp = od.Problem(4, 0.5, **more)
    x, u = ocp.state("x"), ocp.control("u")
    for phase in range(2):
        if phase:
            ocp.phase(8, 1.5)
        ocp.rate(x, u + ca.sin(ocp.time) - 1)
        ocp.minimize(integral=u**2)
    ocp.start({x: 0})
    return ocp, x


@pytest.mark.slow
@pytest.mark.sample(1)
@every_way
def test_time_goes_on_through_phases(method, solver):
    ocp, x = time_in_phases()
    found = ocp.solve(method=method, solver=solver)
    assert np.abs(found["time"][:, 0] - found.t).max() < 1e-8
    assert found[x][-1, 0] == pytest.approx(1 - np.cos(2) - 2, abs=2e-5)
    late, x = time_in_phases(start_time=3.0)
    found = late.solve(method=method, solver=solver)
    assert found.t[[0, -1]] == pytest.approx([3, 5])
    assert found.duration == pytest.approx(2)
    assert found[x][-1, 0] == pytest.approx(np.cos(3) - np.cos(5) - 2, abs=2e-5)


@pytest.mark.sample(3)
@every_way
def test_a_free_start_is_found(method, solver):
    """Where 1 s of sin(t) - 1 leads highest: about pi / 2."""
    ocp = od.Problem(10, 1.0, start_time=(0.2, 3.0))
    x = ocp.state("x")
    ocp.rate(x, ca.sin(ocp.time) - 1)
    ocp.start({x: 0})
    ocp.minimize(terminal=-x)
    found = ocp.solve(method=method, solver=solver)
    assert found.objective == pytest.approx(1 - 2 * np.sin(0.5), abs=1e-6)
    assert found.t[0] == pytest.approx(np.pi / 2 - 0.5, abs=1e-4)
    there = pickle.loads(pickle.dumps(found))
    assert np.array_equal(there.t, found.t)
    assert there.problem.time.name() == "time"


def test_a_start_without_the_symbol():
    ocp, x, _, u = moved(start_time=-2.0)
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2)
    assert [v.name for v in ocp.description.states] == ["x", "v"]
    found = ocp.solve()
    assert found.t[[0, -1]] == pytest.approx([-2, -1])
    for wrong in ((2, 1), np.inf, (1, 2, 3), "now"):
        with pytest.raises(od.ShapeError, match="start_time"):
            od.Problem(3, 1.0, start_time=wrong)


def test_time_on_a_free_mesh_and_with_chains():
    ocp = od.Problem(8, (0.5, 4.0), mesh="free", nominal=2.0)
    q = ocp.chain("q", 1, 2, bounds=(None, 1.0), basis="bernstein")
    ocp.start({q[0]: 0, q[1]: 0})
    ocp.goal({q[0]: 1, q[1]: 0})
    ocp.minimize(terminal=ocp.time)
    found = ocp.solve(check="off")
    assert found.objective == pytest.approx(2, abs=1e-5)
    assert np.abs(found["time"][:, 0] - found.t).max() < 1e-7


# -- integrals, maxima --------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@every_way
def test_an_integral_that_is_given(method, solver):
    """Dido: the most area under a curve u of a given integral of u^2 = 2 over [0, 1]: u = sqrt(2), in two phases."""
    ocp = od.Problem(4, 0.5)
    x, u = ocp.state("x"), ocp.control("u", guess=0.5)
    energy = ocp.integral(u**2, 2, 2, name="energy")
    for phase in range(2):
        if phase:
            ocp.phase(4, 0.5)
            ocp.rate(energy, u**2)
        ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.minimize(terminal=-x)
    found = ocp.solve(method=method, solver=solver)
    assert found.objective == pytest.approx(-np.sqrt(2), abs=1e-6)
    assert found["energy"][-1, 0] == pytest.approx(2, abs=1e-8)
    assert np.abs(found["energy"][:, 0] - 2 * found.t).max() < 1e-3


@pytest.mark.sample(1)
@every_way
def test_an_integral_over_one_phase_alone(method, solver):
    """Effort of the second of three phases bounded by a parameter: x' = u, u^2 below p there and 1 in all elsewhere."""
    ocp = od.Problem(3, 1.0)
    x, u, p = ocp.state("x"), ocp.control("u", upper=1, guess=0.1), ocp.parameter("p")
    symbols = []
    for phase in range(3):
        if phase:
            ocp.phase(3, 1.0)
        if phase == 1:
            symbols.append(ocp.integral(ca.vertcat(u**2, u), None, ca.vertcat(p, 10)))
        ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.minimize(terminal=-x)
    found = pickle.loads(pickle.dumps(ocp)).solve(method=method, solver=solver, parameters={"p": 0.25})
    assert found.objective == pytest.approx(-2.5, abs=1e-5)
    assert np.abs(found["integral"][[0, 3, -1]] - [[0, 0], [0, 0], [0.25, 0.5]]).max() < 1e-4


@pytest.mark.sample(1)
@every_way
def test_goddard_by_the_fuel_that_is_burnt(method, solver):
    """Problem 21 with its mass as an integral with a bound: fuel that is left would not lift the rocket."""
    ocp = od.Problem(60, (0.05, 0.5))
    h, v = ocp.state("h", lower=1, guess=lambda s: 1 + 0.01 * s), ocp.state("v", lower=0, scale=0.1, guess=0.1)
    thrust = ocp.control("thrust", lower=0, upper=3.5, guess=lambda s: 3.5 * (1 - s))
    m = 1 - ocp.integral(2 * thrust, upper=0.4, name="burnt")
    ocp.rate(h, v)
    ocp.rate(v, (thrust - 310 * v**2 * ca.exp(-500 * (h - 1))) / m - 1 / h**2)
    ocp.start({h: 1, v: 0})
    ocp.minimize(terminal=-h)
    found = ocp.solve(method=method, solver=solver, check="off")
    assert found.objective == pytest.approx(-1.012837, abs=5e-6)
    assert found["burnt"][-1, 0] == pytest.approx(0.4, abs=1e-6)


@pytest.mark.sample(3)
@every_way
def test_the_least_largest_speed(method, solver):
    """1 m in 1 s with |a| <= 10, rest to rest: a trapezoid whose speed V keeps V - V^2 / 10 = 1."""
    ocp, x, v, u = moved(nodes=40)
    ocp.limit(-10, u, 10)
    ocp.goal({x: 1, v: 0})
    ocp.minimize(maximum=ca.vertcat(v, -v), integral=1e-7 * u**2)
    found = ocp.solve(method=method, solver=solver, check="off")
    best = 5 - np.sqrt(15)
    assert best - 1e-3 < found["maximum"][0, 0] < best + 1e-2  # speeds are straight between the nodes
    assert found[v].max() == pytest.approx(found["maximum"][0, 0], abs=1e-5)


def test_maxima_of_several_phases_are_added():
    ocp = od.Problem(2, 1.0)
    x, u = ocp.state("x"), ocp.control("u", lower=1)
    ocp.rate(x, u)
    ocp.minimize(maximum=x)
    ocp.phase(2, 1.0)
    ocp.rate(x, u)
    ocp.minimize(maximum=x)
    ocp.start({x: 0})
    found = ocp.solve()
    assert found["maximum"][0, 0] == pytest.approx(1, abs=1e-6)
    assert found["maximum_2"][0, 0] == pytest.approx(2, abs=1e-6)


# -- periodic motions ---------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@every_way
def test_a_periodic_motion(method, solver):
    """x follows cos t with effort u = x'': x = cos(t) / 2, in two phases that part a period unevenly."""
    ocp = od.Problem(20, 2.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    for phase in range(2):
        if phase:
            ocp.phase(40, 2 * np.pi - 2)
        ocp.rate(x, v)
        ocp.rate(v, u)
        ocp.minimize(integral=(x - ca.cos(ocp.time)) ** 2 + u**2)
    ocp.periodic(x, v)
    found = pickle.loads(pickle.dumps(ocp)).solve(method=method, solver=solver)
    assert found.objective == pytest.approx(np.pi / 2, abs=1e-5 if method == "hermite_simpson" else 5e-3)
    assert found["x"][0, 0] == pytest.approx(0.5, abs=3e-3)
    assert found["x"][-1, 0] == pytest.approx(found["x"][0, 0], abs=1e-8)


def test_a_shift_and_an_expression():
    """A step of 2 in x, the sum of x and v as it began: v = -2 less than at the start."""
    ocp = od.Problem(10, 1.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    far = ocp.parameter("far")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.periodic({x: far}, x + v)
    ocp.start({x: 0.3})
    ocp.minimize(integral=u**2)
    found = ocp.solve(method="hermite_simpson", parameters={far: 2.0})
    assert found[x][-1, 0] == pytest.approx(2.3)
    assert found[v][0, 0] - found[v][-1, 0] == pytest.approx(2)
    assert found.objective == pytest.approx(4, rel=1e-6)  # u = -2
    with pytest.raises(od.ShapeError, match="shift has 2 values"):
        ocp.periodic({x: [1, 2]})


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
def test_a_periodic_turn_of_a_body(solver):
    """A top that spins freely comes back by whole turns: with its quaternion's sign changed after one."""
    robot = od.robots.quadruped()
    ocp, at, spin = od.Problem(8, 1.0), robot.neutral(), 2 * np.pi

    def guess(share):
        q = np.array(at, float)
        i = next(j.q_index for j in robot.joints if j.nq > j.nv)
        q[i : i + 4] = [np.cos(spin * share / 2), 0, 0, np.sin(spin * share / 2)]
        return q

    body = ocp.contact_body(robot, (), guess=[guess, 0.0, 0.0, 0.0])
    ocp.minimize(squares=0.1 * body.dv)
    ocp.periodic(body.q, body.v)
    ocp.start({body.q: at, body.v[2]: spin})
    found = ocp.solve(method="euler", solver=solver, check="off")
    assert found.objective < 1e-10
    q = found[body.q]
    assert np.abs(q[-1, :4] + q[0, :4]).max() < 1e-6  # one turn: the other sign
    assert np.abs(q[4] - guess(0.5)).max() < 1e-5


# -- soft limits --------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@every_way
@pytest.mark.parametrize("weights, best", [((0.5, 1.0), 1.375), ((3.0, 0.0), 1.0), ((0.0, 3.0), 1.25)])
def test_a_soft_limit_on_a_control(method, solver, weights, best):
    """(u - 2)^2 + a s + b s^2 with u <= 1 + s: 2 (u - 2) + a + 2 b (u - 1) = 0, or u = 1 where a > 2."""
    ocp = od.Problem(3, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    slacks = []
    for phase in range(3):
        if phase:
            ocp.phase(2, 0.5)
        ocp.rate(x, u)
        ocp.minimize(integral=(u - 2) ** 2)
        if phase != 1:
            slacks.append(ocp.limit(-9, ca.vertcat(u, -u), [1, 9], soft=weights, name="calm"))
    ocp.start({x: 0})
    found = pickle.loads(pickle.dumps(ocp)).solve(method=method, solver=solver)
    assert slacks[0] is slacks[1]
    u, slack = found["u"][:, 0], found["calm_slack"]
    assert slack.shape == (len(u), 4)
    assert np.abs(u[:3] - best).max() < 1e-4
    assert u[3] == pytest.approx(2, abs=1e-4)
    assert np.abs(u[-2:] - best).max() < 1e-4
    assert np.abs(slack[:3, 2] - (best - 1)).max() < 1e-3
    assert np.abs(slack[3]).max() < 1e-3
    assert np.abs(slack[:, [0, 1, 3]]).max() < 1e-3


@pytest.mark.sample(3)
@every_way
def test_a_soft_limit_on_a_state(method, solver):
    """x' = u from 0, u^2 / 2 + a (1 - x): x = a (t - t^2 / 2), which costs a - a^2 / 6 in 1 s."""
    ocp = od.Problem(20, 1.0)
    x, u, a = ocp.state("x"), ocp.control("u"), 1.2
    slack = ocp.limit(1, x, np.inf, soft=(a, 0))
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.minimize(integral=u**2 / 2)
    found = ocp.solve(method=method, solver=solver, check="raise")
    off = 1e-6 if method == "hermite_simpson" else 0.05 * a * a / 4 + 1e-3  # slack is that of the intervals' starts
    assert found.objective == pytest.approx(a - a**2 / 6, abs=off)
    count = len(found[slack])
    assert np.abs(found["slack"][:, 0] - 1 + found[x][:count, 0]).max() < 1e-5


def test_soft_limits_with_gauss_newton_and_within_intervals():
    ocp = od.Problem(8, 1.0)
    q = ocp.chain("q", 1, 2)
    ocp.start({q[0]: 0, q[1]: 0})
    ocp.goal({q[0]: 1, q[1]: 0})
    slack = ocp.limit(-5, q[2], 5, soft=(0.5, 1), at=(0, 1), name="calm")
    ocp.minimize(squares=q[2])
    exact, other = (ocp.solve(hessian=h) for h in ("exact", "gauss_newton"))
    assert other.objective == pytest.approx(exact.objective, rel=1e-7)
    excess = np.maximum(np.abs(exact[q[2]][:, 0]) - 5, 0)
    assert excess.max() > 0.05
    assert np.abs(exact[slack].sum(axis=1) - excess).max() < 1e-5


def test_mistakes_with_soft_limits():
    ocp, x, _, u = moved()
    for soft in (1.0, (1,), (0, 0), (-1, 2), "much"):
        with pytest.raises(od.ShapeError, match="soft"):
            ocp.limit(0, x, 1, soft=soft)
    with pytest.raises(od.ShapeError, match="finite bound"):
        ocp.limit(-np.inf, x, np.inf, soft=(1, 1))
    ocp.limit(0, x, 1, soft=(1, 1), name="x")
    ocp.phase(2, 1.0)
    with pytest.raises(od.ShapeError, match="'x' has other bounds or weights"):
        ocp.limit(0, x, 1, soft=(1, 2), name="x")


# -- bounds that are expressions ----------------------------------------------------------------------------


@pytest.mark.sample(3)
@every_way
def test_bounds_by_parameters_and_variables(method, solver):
    """The largest effort in a rest-to-rest motion within [-w, p]: for -w the least one that serves, switching at s."""
    ocp, x, v, u = moved(nodes=20)
    p, w = ocp.parameter("p"), ocp.variable("w", lower=0, guess=5)
    ocp.limit(-w, u, p, name="effort")
    ocp.goal({x: 1, v: 0})
    ocp.minimize(terminal=w, integral=1e-6 * u**2)
    found = ocp.solve(method=method, solver=solver, parameters={"p": 4.0}, check="off")
    assert found["w"][0, 0] == pytest.approx(4, abs=1e-2 if method == "hermite_simpson" else 1e-4)
    more = ocp.solve(method=method, solver=solver, parameters={"p": 8.0}, check="off")
    # up at 8 for s, down at w for 1 - s: 8 s = w (1 - s), 8 s^2 / 2 + 8 s (1 - s) / 2 = 1
    assert more["w"][0, 0] == pytest.approx(8 / 3, abs=2e-2)
    assert found[u].max() < 4 + 1e-6


def test_bounds_of_several_rows_and_equations():
    ocp, x, v, u = moved()
    p = ocp.parameter("p", 2)
    ocp.limit(p, ca.vertcat(u, u), [np.inf, 7], name="both")
    ocp.minimize(integral=(u - ocp.varying("aim")) ** 2)
    aim = np.linspace(0, 9, 11)
    given = {"p": [1, 2], "aim": aim[:, None]}
    found = ocp.solve(parameters=given)
    assert np.abs(found[u][:, 0] - np.clip(aim[:-1], 2, 7)).max() < 1e-4
    ocp.bound("both", [0, 0, -np.inf, -np.inf], [np.inf, np.inf, np.inf, 6.5])
    assert ocp.solve(parameters=given)[u].max() == pytest.approx(6.5, abs=1e-4)
    ocp.limit(p[0], u, p[0])
    ocp.bound("both", [-1, -1, -np.inf, -np.inf], [np.inf, np.inf, np.inf, 7])
    assert np.abs(ocp.solve(parameters=given)[u] - 1).max() < 1e-8
    with pytest.raises(od.ShapeError, match="lower bound has 2 values, expected 1"):
        ocp.limit(p, u, 9)


# fatrop by Hermite-Simpson stops with status 1 here, though it does not where the bound of u is a number
@pytest.mark.sample(1)
@pytest.mark.parametrize("method, solver", [way for way in WAYS if way != ("hermite_simpson", "fatrop")])
def test_bounds_of_states_and_controls(method, solver):
    """x' = u <= p and x <= w, 2 s in two phases: straight up to w, and 2 (w - 1.5) - 1 + 0.01 w = 0."""
    ocp = od.Problem(4, 1.0)
    p, w = ocp.parameter("p"), ocp.variable("w", lower=0, guess=1)
    x, u = ocp.state("x", 2, lower=[-1, -2], upper=w), ocp.control("u", 2, lower=-p, upper=p)
    for phase in range(2):
        if phase:
            ocp.phase(4, 1.0)
        ocp.rate(x, u)
        ocp.minimize(integral=0.01 * ca.sumsqr(u))
    ocp.start({x: 0})
    ocp.minimize(terminal=(w - 1.5) ** 2 - x[0] + x[1])
    found = pickle.loads(pickle.dumps(ocp)).solve(method=method, solver=solver, parameters={"p": 3.0})
    assert found["w"][0, 0] == pytest.approx(4 / 2.01, abs=1e-4)
    assert np.abs(found["x"][-1] - [4 / 2.01, -2]).max() < 1e-4
    slow = ocp.solve(method=method, solver=solver, parameters={"p": 0.5})
    assert np.abs(slow[x][-1] - [1, -1]).max() < 1e-4
    with pytest.raises(od.ShapeError, match="bound has 2 values, expected 1"):
        ocp.state("y", lower=ca.vertcat(p, p))


# -- values at nodes ----------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@every_way
def test_a_value_on_the_way(method, solver):
    """x' = u, cost x^2 + u^2, x = 1, 0.9 and 0.75 at 0, 0.75 and 1: PSOPT's interior point problem."""
    ocp = od.Problem(40, 1.0)
    x, u = ocp.state("x", guess=0.9), ocp.control("u")
    ocp.rate(x, u)
    ocp.start({x: 1})
    ocp.at({x: 0.9}, fraction=0.75)
    ocp.goal({x: 0.75})
    ocp.minimize(integral=x**2 + u**2)
    there = pickle.loads(pickle.dumps(ocp))
    found = there.solve(method=method, solver=solver, check="off")
    assert found["x"][30, 0] == pytest.approx(0.9, abs=1e-8)
    # u jumps at the node, which controls at nodes cannot do
    assert found.objective == pytest.approx(0.920531441473, abs=2e-3 if method == "hermite_simpson" else 5e-5)
    rows = [row for row in found.check().rows if row.name == "value at 0.75[0]"]
    assert len(rows) == 1
    assert rows[0].error < 1e-8


@pytest.mark.sample(1)
@every_way
def test_values_at_nodes_of_several_phases(method, solver):
    ocp = od.Problem(4, 1.0, start_time=1.0)
    x, u, p = ocp.state("x", 2), ocp.control("u", 2), ocp.parameter("p")
    for phase in range(3):
        if phase:
            ocp.phase(4, 1.0)
        ocp.rate(x, u)
        ocp.minimize(integral=ca.sumsqr(u))
        ocp.at({x[0]: p + phase}, time=1.25 + phase)
        ocp.at({x: ([0, 2.0], [np.inf, 3])}, fraction=0.75)
    ocp.start({x: 0})
    found = ocp.solve(method=method, solver=solver, parameters={p: 1.0}, check="off")
    assert np.abs(found[x][1::4, 0] - [1, 2, 3]).max() < 1e-8
    assert found[x][3, 1] == pytest.approx(2, abs=1e-6)
    assert found[x][3::4, 1].min() > 2 - 1e-6
    assert found[x][0, 1] == pytest.approx(0, abs=1e-8)  # it does not hold there
    seen = [row for row in found.check().rows if row.name.startswith("value at")]
    assert len(seen) == 9
    assert max(row.error for row in seen) < 1e-6


def test_another_mesh_keeps_or_refuses_nodes():
    ocp, x, v, u = moved(nodes=4)
    ocp.at({x: 1}, fraction=0.5)
    ocp.minimize(integral=u**2)
    assert ocp.with_mesh(8).solve()[x][4, 0] == pytest.approx(1)
    assert ocp.solve()[x][2, 0] == pytest.approx(1)
    with pytest.raises(od.ShapeError, match=r"nearest fractions are 0.4 and 0.6"):
        ocp.with_mesh(5).solve()
    with pytest.raises(od.ShapeError, match=r"0.3 is no node .* nearest fractions are 0.25 and 0.5"):
        ocp.at({x: 1}, fraction=0.3)
    with pytest.raises(od.ShapeError, match="the goal"):
        ocp.at({x: 1}, fraction=1)
    with pytest.raises(od.ShapeError, match="one of them"):
        ocp.at({x: 1})
    free = od.Problem(4, (0.5, 1.0))
    with pytest.raises(od.OrderError, match="a duration is free"):
        free.at({free.state("x"): 1}, time=0.5)


# -- several starts -----------------------------------------------------------------------------------------


def round_a_disc(nodes=20):
    """Shortest path at unit speed from (0, 0) to (2, 0) round a disc of radius 0.5 about (1, 0.2), the guess above it:
    below, it is shorter."""
    ocp = od.Problem(nodes, (1.0, 8.0))
    p, u = ocp.state("p", 2, guess=lambda s: [2 * s, 3 * s * (1 - s)]), ocp.control("u", 2, guess=[1, 0])
    speed = ocp.variable("speed", lower=0.5, upper=1, guess=0.9)
    ocp.rate(p, u)
    ocp.limit(-np.inf, ca.sumsqr(u) - speed**2, 0)
    ocp.limit(0.25, ca.sumsqr(p - [1, 0.2]), np.inf)
    ocp.start({p: [0, 0]})
    ocp.goal({p: [2, 0]})
    ocp.minimize(terminal=ocp.duration)
    return ocp, p


def length_round_a_disc(side):
    """Two tangents and an arc; side: 1 above the disc, -1 below it."""
    distance, angle = np.hypot(1, 0.2), np.pi + side * 2 * np.arctan(0.2)  # of the centre, and there, to the ends
    return 2 * np.sqrt(distance**2 - 0.25) + 0.5 * (angle - 2 * np.arccos(0.5 / distance))


@pytest.mark.sample("collocation")
@pytest.mark.parametrize("method", ["hermite_simpson", "collocation"])
def test_several_starts_find_the_best(method):
    ocp, p = round_a_disc()
    alone = ocp.solve(method=method, check="off")
    assert alone[p][10, 1] > 0.5
    best = ocp.solve(method=method, check="off", starts=6, seed=1)
    assert best[p][10, 1] < 0
    assert best.objective == pytest.approx(length_round_a_disc(-1), abs=5e-3)
    assert alone.objective == pytest.approx(length_round_a_disc(1), abs=5e-3)
    optima = best.local_optima
    assert len(optima) == 6
    assert optima[0] == (alone.objective, alone.status, alone.iterations)
    assert min(objective for objective, *_ in optima) == best.objective
    assert best.local_optima == ocp.solve(method=method, check="off", starts=6, seed=1).local_optima
    assert best.local_optima[1:] != ocp.solve(method=method, check="off", starts=6, seed=2).local_optima[1:]
    assert alone.local_optima == ()
    again = ocp.solve(method=method, check="off")
    assert again.iterations == alone.iterations  # guesses are as they were


@pytest.mark.slow
def test_starts_on_processes():
    ocp, p = round_a_disc(10)
    here, there = (ocp.solve(starts=3, seed=1, check="off", executor=e) for e in ("serial", "processes:2"))
    assert np.allclose([x for x, *_ in here.local_optima], [x for x, *_ in there.local_optima], rtol=1e-9)
    assert np.abs(here[p] - there[p]).max() < 1e-6
    sent = pickle.loads(pickle.dumps(there))
    assert sent.local_optima == there.local_optima


def test_starts_that_all_fail():
    ocp, x, v, u = moved()
    m = ocp.parameter("m")
    ocp.limit(-1, u / m, 1)
    ocp.goal({x: 1, v: 0})
    with pytest.raises(od.SolveError, match="stopped with") as told:
        ocp.solve(starts=2, parameters={m: 1.0})
    assert len(told.value.solution.local_optima) == 2
    with pytest.raises(od.ShapeError, match="starts"):
        ocp.solve(starts=0, parameters={m: 1.0})
    ocp.minimize(integral=u**2)
    assert ocp.solve(starts=2, parameters={m: 9.0}, initial=ocp.solve(parameters={m: 9.0})).success


@pytest.mark.sample(2)
@pytest.mark.parametrize("basis", ["taylor", "b_spline", "bernstein"])
def test_starts_of_chains(basis):
    ocp = od.Problem(6, 1.0)
    q, *rest = ocp.chain("q", 2, 3, basis=basis)
    ocp.start({q: 0, rest[0]: 0})
    ocp.goal({q: 1, rest[0]: 0})
    ocp.minimize(integral=ca.sumsqr(rest[1]))
    found = ocp.solve(starts=3, check="off")
    assert np.allclose([x for x, *_ in found.local_optima], found.objective, rtol=1e-6)


def test_random_guesses_stay_within_bounds_and_leave_quaternions():
    robot = od.robots.quadruped()
    ocp = od.Problem(5, 1.0, start_time=(0, 1))
    ocp.contact_body(robot, ())
    ocp.variable("size", 2, lower=[-1, 0], upper=[1, np.inf])
    ocp.control("w", lower=-0.1, upper=0.3)
    made = ocp.transcribed("euler")
    one, other = (random_guess(ocp, made, np.random.default_rng(k)) for k in (1, 2))
    assert set(one) == {"q", "v", "dv", "size", "w"}
    assert np.abs(one["q"][:, :4] - [1, 0, 0, 0]).max() == 0
    assert np.ptp(one["q"][:, 4:], axis=0).min() > 0.01
    assert one["size"].shape == (2,)
    assert one["size"][1] >= 0
    assert one["w"].min() >= -0.1
    assert one["w"].max() <= 0.3
    assert np.abs(one["w"] - other["w"]).max() > 0.01


def test_starts_find_the_optima_of_the_two_discs():
    """Problem 33: four ways round, and the shortest is found from random guesses alone."""
    problem = suite.load(suite.listed()[33])
    found = problem.problem(40).solve(method="hermite_simpson", starts=8, seed=0, check="off")
    known = [2.1317223, 2.1378493, 2.5440279, 2.9218068]
    assert found.objective == pytest.approx(known[0], abs=1e-5)
    optima = [objective for objective, status, _ in found.local_optima if status == "Solve_Succeeded"]
    assert all(min(abs(x - y) for y in known) < 1e-4 for x in optima)
    assert len({round(x, 3) for x in optima[1:]}) > 1


# -- problems with known optima that these words say --------------------------------------------------------

# number: intervals, error of the cost with controls that are constant on intervals, and by Hermite-Simpson
KNOWN = {
    11: (20, 1e-4, 1e-8),  # value on the way
    16: (120, 3e-5, None),  # integral; the polynomials of a control without bounds cut the corner of a chain
    17: (40, 2e-3, 2e-6),  # periodic, time
    29: (60, 1e-4, 2e-6),  # limit that moves in time
    38: (40, 3e-4, 3e-6),  # rate that depends on time
    41: (60, 2e-4, 1e-6),  # integral
}


KNOWN_WAYS = [(n, m, s) for n in KNOWN for m, s in WAYS if m != "hermite_simpson" or KNOWN[n][2]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("number, method, solver", KNOWN_WAYS)
def test_known_optima_by_every_method(number, method, solver):
    module = suite.load(suite.listed()[number])
    nodes, constant, smooth = KNOWN[number]
    error = smooth if method == "hermite_simpson" else constant
    known = module.known() if hasattr(module, "known") else module.KNOWN
    found = module.problem(nodes).solve(method=method, solver=solver, check="off")
    assert found.objective == pytest.approx(known, abs=error)


def test_costs_and_symbols_that_are_none_of_the_problems_are_told():
    ocp = od.Problem(nodes=4, duration=1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u + ca.MX.sym("stray"))
    with pytest.raises(od.ShapeError, match="integral=, terminal="):
        ocp.minimize(u**2)
    ocp.minimize(integral=u**2)
    with pytest.raises(od.ShapeError, match="not this problem's: stray"):
        ocp.solve()


def test_a_solution_tells_its_outcome():
    ocp = od.Problem(nodes=4, duration=1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2)
    assert repr(ocp.solve()).startswith("<Solution: Solve_Succeeded, objective 1, 1 s, ")
