"""Values of a Solution between its nodes: closed forms, an integration of their own, both sides of what jumps."""

import csv

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.integrators import METHODS, gauss, radau

NODAL = [m for m, step in METHODS.items() if getattr(step, "controls_are_states", False)]


def least_effort(nodes=7, **mesh):
    """From rest to rest over 1 m in 2 s with the least squared force: x = 3 s^2 - 2 s^3, s = t / 2."""
    ocp = od.Problem(nodes, 2.0, **mesh)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2)
    return ocp, x, v, u


def pendulum(nodes=10):
    ocp = od.Problem(nodes, 2.0)
    a, w, u = ocp.state("a"), ocp.state("w"), ocp.control("u", lower=-3, upper=3)
    ocp.rate(a, w)
    ocp.rate(w, u - 2 * ca.sin(a))
    ocp.start({a: 0, w: 0})
    ocp.goal({a: 1.5, w: 0})
    ocp.limit(-1.2, w, 1.2, name="=speed")
    ocp.minimize(integral=u**2)
    return ocp, a, w, u


def by_small_steps(f, y, times, parts=400):
    """y at the end of the times, by many classic Runge-Kutta steps."""
    h = (times[1] - times[0]) / parts
    for k in range(parts):
        t = times[0] + k * h
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(t + h, y + h * k3))
    return y


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["hermite_simpson", "gauss", "radau"])
def test_polynomials_of_the_method_are_the_closed_form(method):
    ocp, x, v, u = least_effort()
    solution = ocp.solve(method=method, check="off")
    t = np.linspace(0, 2, 173)
    exact = {x: 3 * (t / 2) ** 2 - 2 * (t / 2) ** 3, v: 1.5 * t - 0.75 * t**2, u: 1.5 - 1.5 * t}
    for symbol, values in exact.items():
        assert solution.sample(symbol, t)[:, 0] == pytest.approx(values, abs=2e-9)
    both = solution.sample(ca.vertcat(x * v, u + 1), t)
    assert both == pytest.approx(np.stack([exact[x] * exact[v], exact[u] + 1], 1), abs=1e-8)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_nodes_are_what_was_found(method):
    ocp, *symbols = pendulum()
    solution = ocp.solve(method=method, check="off")
    for symbol in symbols:
        found = solution[symbol]
        assert np.array_equal(solution.sample(symbol, solution.t[: len(found)])[:-1], found[:-1])
        assert solution.sample(symbol, solution.t[-1], side="before").shape == (1,)
    # a time that rounding has moved is that of the node: controls of intervals would be those of another one
    moved = solution.sample("u", np.nextafter(solution.t[1:-1], -1))
    assert np.array_equal(moved, solution["u"][1 : len(moved) + 1])


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation", "hermite_simpson", radau(4), gauss(2)], ids=str)
def test_states_between_nodes_are_those_of_an_integration(method):
    ocp, *_ = pendulum(20)
    solution = ocp.solve(method=method, check="off")
    t, k = solution.t, 7
    ends = np.array([t[k], t[k] + 0.37 * (t[k + 1] - t[k])])
    start = np.concatenate([solution.sample(name, t[k]) for name in ("a", "w")])

    def rates(time, y):
        return np.array([y[1], solution.sample("u", time)[0] - 2 * np.sin(y[0])])

    right = by_small_steps(rates, start, ends, parts=20)
    got = np.concatenate([solution.sample(name, ends[1]) for name in ("a", "w")])
    assert got == pytest.approx(right, abs=2e-5 if method in ("hermite_simpson", gauss(2)) else 2e-6)
    chord = start + 0.37 * (np.array([solution["a"][k + 1, 0], solution["w"][k + 1, 0]]) - start)
    assert np.abs(chord - right).max() > 2e-4  # a straight line would be seen


@pytest.mark.sample(2)
@pytest.mark.parametrize("basis", ["taylor", "bernstein", "b_spline"])
def test_chains_are_their_polynomials(basis):
    ocp = od.Problem(9, (0.5, 3.0))
    q, v, a = ocp.chain("q", 2, 2, bounds=[2.0, 5.0], basis=basis)
    ocp.start({q: 0, v: 0})
    ocp.goal({q: [1, 2], v: 0})
    ocp.minimize(integral=1.0 + 1e-3 * ca.sumsqr(a))
    solution = ocp.solve(check="off")
    t, share = solution.t, 0.3
    h = share * np.diff(t)[:, None]
    Q, V, A = (solution.sample(s, t[:-1] + h[:, 0]) for s in (q, v, a))
    q0, v0, a0 = (solution[s][:9] for s in (q, v, a))
    assert Q == pytest.approx(q0 + h * v0 + h**2 / 2 * a0, abs=1e-12)
    assert V == pytest.approx(v0 + h * a0, abs=1e-12)
    assert A == pytest.approx(a0, abs=1e-12)


@pytest.mark.slow
def test_both_sides_of_a_jump():
    ocp = od.Problem(4, 1.0)
    x, u = ocp.state("x"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, u)
    ocp.join(x, x + 5)
    ocp.phase(4, 1.0)
    ocp.rate(x, 2 * u)
    ocp.start({x: 0})
    ocp.goal({x: 7})
    ocp.minimize(integral=u**2)
    for method in ("rk4", "collocation", "hermite_simpson", "radau"):
        solution = ocp.solve(method=method, check="off")
        before, after = (solution.sample(x, 1.0, side=side)[0] for side in ("before", "after"))
        assert after - before == pytest.approx(5, abs=1e-7), method
        assert after == solution[x][4, 0]
        near = solution.sample(x, [1 - 1e-9, 1 + 1e-9])[:, 0]
        assert near == pytest.approx([before, after], abs=1e-7)


def test_a_mesh_of_unequal_and_of_free_intervals():
    at = [0, 0.05, 0.2, 0.3, 0.55, 0.9, 0.95, 1]
    ocp, x, *_ = least_effort(mesh=at)
    solution = ocp.solve(method="hermite_simpson", check="off")
    t = np.linspace(0, 2, 57)
    assert solution.sample(x, t)[:, 0] == pytest.approx(3 * (t / 2) ** 2 - 2 * (t / 2) ** 3, abs=1e-9)
    ocp = od.Problem(6, (0.5, 3.0), mesh="free")
    q, v, a = ocp.chain("q", 1, 2, bounds=[None, 2.0])
    ocp.start({q: 0, v: 0})
    ocp.goal({q: 1, v: 0})
    ocp.minimize(integral=1.0)
    solution = ocp.solve(check="off")
    T = np.sqrt(2.0)  # bang-bang, 2 m / s^2
    assert solution.sample(q, T / 4)[0] == pytest.approx((T / 4) ** 2, abs=1e-5)
    assert solution.sample(v, [T / 2])[0, 0] == pytest.approx(T, abs=1e-4)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "gauss", "hermite_simpson"])
def test_a_quaternion_stays_one(method):
    ocp = od.Problem(6, 1.0)
    o, w, u = ocp.state("o", 4, manifold="unit_quaternion"), ocp.state("w", 3), ocp.control("u", 3)
    ocp.rate(o, w)
    ocp.rate(w, u)
    half = 1.0
    ocp.start({o: [1, 0, 0, 0], w: 0})
    ocp.goal({o: [np.cos(half), 0.6 * np.sin(half), 0.8 * np.sin(half), 0], w: 0})
    ocp.minimize(integral=ca.sumsqr(u))
    solution = ocp.solve(method=method, check="off")
    t = np.linspace(0, 1, 41)
    values = solution.sample(o, t)
    assert np.linalg.norm(values, axis=1) == pytest.approx(1, abs=1e-7)
    a = half * (3 * t**2 - 2 * t**3)  # half the angle, about a fixed axis
    right = np.stack([np.cos(a), 0.6 * np.sin(a), 0.8 * np.sin(a), 0 * a], 1)
    assert np.abs((values * right).sum(1)) == pytest.approx(1, abs=2e-5)


def test_samples_are_a_table_by_name():
    ocp, a, w, u = pendulum()
    solution = ocp.solve(method="hermite_simpson", check="off")
    samples = solution.resample(rate=100)
    assert samples.t == pytest.approx(np.linspace(0, 2, 201))
    assert list(samples) == ["a", "w", "u"]
    assert len(samples) == 3
    assert np.array_equal(dict(samples)["w"], samples[w])
    assert samples.limit("=speed") == pytest.approx(samples[w])
    assert solution.resample(rate=0.9).t == pytest.approx([0, 1 / 0.9, 2])
    assert solution.resample(times=[0.5]).t.tolist() == [0.5]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "how, words",
    [
        ({"rate": 0}, "rate"), ({"rate": np.nan}, "rate"), ({"rate": 1e12}, "more than"), ({"rate": "fast"}, "rate"),
        ({}, "times="), ({"rate": 1, "times": [0]}, "not both"), ({"times": [2.1]}, "from 0|goes from"),
        ({"times": [np.nan]}, "nan"), ({"times": [-1e-3]}, "-0.001"), ({"times": [[0.1, 0.2]]}, "shape"),
    ],
)  # fmt: skip
def test_times_that_are_none(how, words):
    solution = least_effort()[0].solve(check="off")
    with pytest.raises(od.ShapeError, match=words):
        solution.resample(**how)


def test_no_times_have_no_values():
    solution = least_effort()[0].solve(check="off")
    assert solution.sample("x", []).shape == (0, 1)
    assert solution.sample("u", []).shape == (0, 1)


def test_names_that_are_none():
    solution = least_effort()[0].solve(check="off")
    with pytest.raises(od.UnknownName, match="'y'"):
        solution.sample("y", 0.1)
    with pytest.raises(od.UnknownName, match="foreign"):
        solution.sample(ca.MX.sym("foreign"), 0.1)
    with pytest.raises(od.UnknownName, match="side"):
        solution.sample("x", 0.1, side="left")


def test_a_table_has_the_time_once(tmp_path):
    path, heads = tmp_path / "motion.csv", []
    for rate in (1.0, 2.0):
        ocp = od.Problem(3, 1.0)
        x, u = ocp.state("x"), ocp.control("u")
        clock = ocp.time if rate == 1 else ocp.state("time")
        ocp.rate(x, u + clock)
        if rate != 1:
            ocp.rate(clock, rate)
        ocp.start({x: 0})
        ocp.minimize(integral=u**2 + x**2)
        solution = ocp.solve(check="off")
        for how in ({}, {"rate": 5}):
            solution.to_csv(path, **how)
            heads.append(path.read_text().splitlines()[0])
    assert heads[:2] == ["time,x,u"] * 2
    assert all(sorted(head.split(",")) == ["t", "time", "u", "x"] for head in heads[2:])


def test_a_table_for_spreadsheets(tmp_path):
    ocp, *_ = pendulum()
    solution = ocp.solve(check="off")
    path = tmp_path / "motion.csv"
    solution.to_csv(path)
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["time", "a", "w", "u", "'=speed"]  # no formula
    assert len(rows) == 11
    table = [[float(x) if x else np.nan for x in row] for row in rows]
    assert np.array_equal(np.array(table)[:, 1], solution["a"][:, 0])
    assert rows[-1][3] == ""  # the control of intervals has ended
    assert np.array_equal(np.array(table)[:-1, 3], solution["u"][:, 0])
    solution.to_csv(path, rate=10)
    with open(path, newline="") as file:
        _, *rows = csv.reader(file)
    assert [float(row[0]) for row in rows] == pytest.approx(np.arange(21) / 10)
    assert [float(row[3]) for row in rows] == solution.resample(rate=10)["u"][:, 0].tolist()


def test_a_limit_of_one_phase_is_blank_in_the_others(tmp_path):
    ocp = od.Problem(3, 1.0)
    x, u = ocp.state("x"), ocp.control("u", 2)
    ocp.rate(x, u[0] + u[1])
    ocp.limit(-9, u, 9, name="first")
    ocp.phase(2, 1.0)
    ocp.rate(x, u[0] - u[1])
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=ca.sumsqr(u))
    path = tmp_path / "motion.csv"
    ocp.solve(check="off").to_csv(path)
    head, *rows = path.read_text().splitlines()
    assert head == "time,x,u[0],u[1],first[0],first[1]"
    assert [row.endswith(",,") for row in rows] == [False, False, False, True, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures(ending, tmp_path):
    ocp, *_ = pendulum()
    solution = ocp.solve(method="trapezoidal", check="off")
    path = tmp_path / f"motion.{ending}"
    figure = solution.plot(path)
    assert path.stat().st_size > 5000
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles[:-1] == ["state a", "state w", "control u", "limit =speed"]
    assert "error" in titles[-1]
    bounds = [line for line in figure.axes[3].lines if line.is_dashed()]
    assert np.nanmax(bounds[-1].get_ydata()) == 1.2


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["motion", "motion.xyz"])
def test_figures_of_no_format(name, tmp_path):
    solution = least_effort()[0].solve(check="off")
    with pytest.raises(od.UnknownName, match="file format of a figure"):
        solution.plot(tmp_path / name)


@pytest.mark.slow
def test_figures_of_many_rows_and_phases():
    ocp = od.Problem(2, 1.0)
    x = [ocp.state(f"$x_{i}", scale=1) for i in range(16)]
    y, u = ocp.state("y", 9), ocp.control("u", 25)
    for number in range(2):
        if number:
            ocp.phase(2, 1.0)
        for i, one in enumerate(x):
            ocp.rate(one, u[i])
        ocp.rate(y, u[16:])
    ocp.start({y: 0} | dict.fromkeys(x, 0))
    ocp.goal({y: 1} | dict.fromkeys(x, 1))
    ocp.minimize(integral=ca.sumsqr(u))
    figure = ocp.solve(check="off").plot()
    lines = [len(axis.get_legend().texts) for axis in figure.axes if axis.get_legend()]
    assert max(lines) <= 7
    assert sum(lines) == 16 + 9 + 25
    assert any("phase 1" in text.get_text() for text in figure.axes[0].texts)


@pytest.mark.slow
def test_contact_bodies_move_on_the_manifold(tmp_path):
    robot = od.robots.quadruped()

    def falling():
        ocp = od.Problem(4, 0.4)
        body = ocp.contact_body(robot)
        turn = np.zeros(robot.nv)
        turn[:6] = 0.3, -0.5, 0.8, 0.1, 0.0, 0.2
        start = robot.integrate(robot.neutral(), np.zeros(robot.nv))
        ocp.start({body.q: start, body.v: 0})
        ocp.goal({body.v: turn})
        ocp.minimize(squares=body.dv / 10)
        return ocp, body

    ocp, body = falling()
    solution = ocp.solve(method="euler", check="off")
    k, share = 2, 0.37
    t = share * (solution.t[k + 1] - solution.t[k])
    q, v = (solution.sample(y, solution.t[k] + t) for y in (body.q, body.v))
    q0, v0, dv = (solution[y][k] for y in (body.q, body.v, body.dv))
    assert v == pytest.approx(v0 + t * dv, abs=1e-12)
    assert q == pytest.approx(robot.integrate(q0, t * v0 + t**2 / 2 * dv), abs=1e-12)
    rows = body_quaternion(robot)
    norms = np.linalg.norm(solution.sample(body.q, np.linspace(0, 0.4, 33))[:, rows], axis=1)
    assert norms == pytest.approx(1, abs=1e-8)
    solution.save(tmp_path / "a.npz")
    found = falling()[0].load(tmp_path / "a.npz")
    assert np.array_equal(found.x, solution.x)
    assert str(found.check()) == str(solution.check())


def body_quaternion(robot):
    i = next(j.q_index for j in robot.joints if j.nq > j.nv)
    return slice(i, i + 4)
