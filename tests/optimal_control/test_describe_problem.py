"""Problem.describe(): the problem as mathematics, the same text every time; snapshots of problems with known optima."""

import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.expression_text import expression_text
from oc_dyn.study.suite import listed, load

SNAPSHOTS = {
    1: """
minimize
    T0 at the end
over
    state x
    state y
    state v
    control u, 0 <= u <= 3.14159
    duration T0 of phase 0, 0.3 <= T0 <= 3 s
subject to, on 10 intervals in 0.3 to 3 s (nominal 0.948683 s)
    x' = v*sin(u)
    y' = v*cos(u)
    v' = 9.8*cos(u)
at the start
    x = 0
    y = 0
    v = 0
at the goal
    x = 2
    y = 2
""",
    17: """
minimize
    integral of (x - cos(time))^2 + u^2
over
    state x
    state v
    variable x_first
    variable v_first
    state time
    control u
subject to, on 10 intervals in 6.28319 s
    x' = v
    v' = u
    time' = 1
at the start
    time = 0
    x = x_first
    v = v_first
at the goal
    x = x_first
    v = v_first
""",
    18: """
minimize
    5*(x^2 + v^2) at the end
over
    state x
    state v
    control u
subject to, in phase 0, 10 intervals in 1 s
    x' = v
    v' = u - 0.1*(1 + 2*x^2)*v
    -1 <= u <= 1
    -0.8 <= v
    1 <= 9*(x - 1)^2 + ((v - 0.4)/0.3)^2
subject to, in phase 1, 10 intervals in 1.9 s
    x' = v
    v' = u - 0.1*(1 + 2*x^2)*v
    -50 <= u <= 50
at the start
    x = 1
    v = 1
""",
    29: """
minimize
    integral of x1^2 + x2^2 + 0.005*u^2
over
    state x1
    state x2
    state time
    control u, -20 <= u <= 20
subject to, on 10 intervals in 1 s
    x1' = x2
    x2' = u - x2
    time' = 1
    x2 <= 8*(time - 0.5)^2 - 0.5
at the start
    x1 = 0
    x2 = -1
    time = 0
""",
}


TWO_PHASES = """
minimize
    integral over all phases of w^2
over
    state x
    state v
    state w
    control r, -4 <= r <= 4
    duration T0 of phase 0, 0.1 <= T0 <= 1.9 s
    duration T1 of phase 1, 0.1 <= T1 <= 1.9 s
subject to, in phase 0, 10 intervals in 0.1 to 1.9 s (nominal 0.43589 s)
    x' = v
    v' = w
    w' = r
subject to, in phase 1, 10 intervals in 0.1 to 1.9 s (nominal 0.43589 s)
    as in phase 0
at the start
    x = 0
    v = 0
    w = 0
at the goal
    x = 1
    v = 0
    T0 + T1 = 2
"""


@pytest.mark.parametrize("number", SNAPSHOTS)
def test_snapshots(number):
    assert load(listed()[number]).problem(10).describe() == SNAPSHOTS[number].strip()


def test_phases_that_are_alike():
    """Problem 8 in two phases."""
    ocp = od.Problem(10, (0.1, 1.9))
    x, v, w = ocp.state("x"), ocp.state("v"), ocp.state("w")
    r, time = ocp.control("r", lower=-4, upper=4), 0
    for number in range(2):
        if number:
            ocp.phase(10, (0.1, 1.9))
        for state, rate in ((x, v), (v, w), (w, r)):
            ocp.rate(state, rate)
        ocp.minimize(integral=w**2)
        time += ocp.duration
    ocp.start({x: 0, v: 0, w: 0})
    ocp.goal({x: 1, v: 0, time: 2})
    assert ocp.describe() == TWO_PHASES.strip()


@pytest.mark.parametrize("number", listed())
def test_all_known_optima_can_be_described(number):
    text = load(listed()[number]).problem(10).describe()
    assert text.startswith("minimize\n")
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.slow
def test_robots_chains_bodies_words():
    robot = od.robots.planar_chain(2) if hasattr(od.robots, "planar_chain") else od.robots.panda()
    ocp = od.Problem(10, (0.1, 3.0))
    q, v, dv, tau = ocp.rigid_body(robot)
    mass = ocp.parameter("mass")
    ocp.varying("wind", 2)
    s, *_ = ocp.chain("s", 1, 3, bounds=[1, None, 5])
    ocp.limit(-10, tau, 10, name="torque")
    ocp.limit(-1, s, mass, soft=(1, 2), name="way")
    ocp.limit(-2, s, 2, at=(0.5, 1), name="between")
    ocp.at({s: 0.3}, fraction=0.5)
    ocp.integral(v[0] ** 2, 0, 4, name="energy")
    ocp.minimize(maximum=tau[0], squares=0.1 * dv)
    ocp.join(v, -v)
    text = ocp.describe()
    for line in (
        "-10 <= tau <= 10   (torque)",
        "tau = inverse_dynamics(q, v, dv)",
        "s, d1s, d2s, d3s: each the rate of the one before, d3s constant on each interval",
        "-2 <= s <= 2   (between) at 0.5, 1 of each interval",
        "s = 0.3 at 0.5 of the intervals",
        "energy' = v[0]^2",
        "0 <= energy <= 4",
        "+ maximum at the end",
        "variable maximum",
        "tau[0] <= maximum   (maximum)",
        "control way_slack (2), 0 <= way_slack",
        "-1 <= s + way_slack[0]   (way)",
        "s - mass - way_slack[1] <= 0   (way)",
        "v becomes -v at the end of the phase",
        "mass",
        "wind (2) at every node",
    ):
        assert f"    {line}\n" in text + "\n", line


def test_bernstein_chains_and_free_meshes():
    ocp = od.Problem(6, (0.3, 3.0), mesh="free")
    q, dq, *_ = ocp.chain("q", 2, 3, lower=-3, upper=3, bounds=[2, None, [5, 6]], basis="bernstein")
    ocp.start({q: [0, 1], dq: 0})
    ocp.minimize(integral=1)
    text = ocp.describe()
    assert "chain q, d1q, d2q, d3q (2), a polynomial of degree 3 on each interval, -3 <= q <= 3, -2 <= d1q <= 2" in text
    assert "[-5, -6] <= d3q <= [5, 6]" in text
    assert "lengths of the intervals, 0.1 to 4 times" in text
    assert "    q = [0, 1]\n    d1q = 0" in text


def test_the_same_after_pickling_and_again():
    ocp = load(listed()[39]).problem(10)
    assert pickle.loads(pickle.dumps(ocp)).describe() == ocp.describe() == load(listed()[39]).problem(10).describe()


def test_states_on_manifolds():
    ocp = od.Problem(4, 1.0)
    q, w = ocp.state("q", 4, manifold="unit_quaternion"), ocp.control("w", 3, lower=-1, upper=1)
    ocp.rate(q, w)
    ocp.start({q: [0, 0, 0, 1]})
    ocp.goal({q: [1, 0, 0, 0]})
    text = ocp.describe()
    assert "state q (4), unit quaternion" in text
    assert "velocity of q = w" in text
    assert text.endswith("at the goal\n    q = [1, 0, 0, 0]")


def test_problems_that_are_reused():
    ocp = od.Problem(4, (0.5, 2.0), reusable=True)
    x = ocp.state("x")
    ocp.rate(x, 1)
    text = ocp.describe()
    assert "duration T0_nominal*T0_relative of phase 0, 0.5 <= T0_nominal*T0_relative <= 2 s" in text


def test_bounds_are_those_of_now():
    ocp = od.Problem(5, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.limit(-1, x, 1, name="wall")
    ocp.bound("wall", -2, 3)
    assert "-2 <= x <= 3   (wall)" in ocp.describe()


def test_texts_mean_the_expressions():
    """Read back by Python and evaluated, at random numbers."""
    rng = np.random.default_rng(0)
    x, u, A = ca.MX.sym("x", 3), ca.MX.sym("u"), ca.MX.sym("A", 2, 3)
    a, b = x[0], x[1]
    some = [
        a - (u - b), -(u * b) + 1, a / (u / b), (a + u) ** 3, -a - b, -(a - b), a * (-u), 1 / (a * u), (a / u) ** 2,
        2**u,
        (ca.DM([1, -1, 1]) * x)[1] - a, 2 * (a + b), -2 * u, ca.sin(a)[0],
        ca.vertcat(x, 2 * u)[3], ca.sumsqr(x), ca.sum1(x),
        (A @ x)[1], A[1, 2] * a,
        ca.fmax(a, 0) - ca.fmin(b, u), ca.sqrt(a**2) * ca.exp(-b), x[2] * x[2] ** 2, (x + 1)[1], ca.norm_2(x), -(a**2),
        (-a) ** 2, a * (b * u), a - b - u, a + (b - u), ca.if_else(a > 0, u, b), ca.atan2(a, b), ca.fabs(u), ca.tanh(u),
    ]  # fmt: skip
    names = {"sumsqr": lambda y: float(np.sum(y**2)), "norm": np.linalg.norm, "where": lambda c, y: y if c else 0.0}
    names |= {"abs": abs, "max": max, "min": min, "sum": np.sum, "atan2": np.arctan2}
    names |= {k: getattr(np, k) for k in ("sin", "exp", "sqrt", "tanh")} | {"not": None}
    for expression in some:
        text = expression_text(expression)
        for _ in range(3):
            given = rng.normal(size=3), float(rng.normal()), rng.normal(size=(2, 3))
            right = float(ca.Function("f", [x, u, A], [expression])(*given))
            read = eval(text.replace("^", "**").replace("not(", "1 - ("), names | dict(zip("xuA", given, strict=True)))
            assert read == pytest.approx(right) or (np.isnan(right) and np.isnan(read)), text


def test_long_expressions_are_told_by_what_they_read():
    x, u = ca.MX.sym("x"), ca.MX.sym("u")
    y = x
    for _ in range(60):
        y = ca.sin(y) + u * y
    assert expression_text(y) == "f(x, u)"


def test_a_mesh_of_unequal_intervals_is_told():
    ocp = od.Problem(2, 1.0, mesh=[0, 0.1, 1])
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    assert "on 2 intervals of unequal lengths in 1 s" in ocp.describe()
