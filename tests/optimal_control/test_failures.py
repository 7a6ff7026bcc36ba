"""What a solve that fails says, what is refused before a solver runs, worst_rows() against values of the solution."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.failures import meaning
from oc_dyn.optimal_control.infeasible import first_contradiction
from oc_dyn.optimal_control.intervals import bounds_of
from oc_dyn.optimal_control.worst_rows import function_of, gradients, program_of

INFEASIBLE = "these cannot hold together"


def double_integrator(duration, nodes=8):
    """Rest to rest over 1 m with |u| <= 1, which takes two seconds."""
    ocp = od.Problem(nodes, duration)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2)
    return ocp, x, v, u


def message(ocp, **how):
    with pytest.raises(od.SolveError) as raised:
        ocp.solve(check="off", **how)
    return str(raised.value), raised.value


# -- worst rows ------------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop", "sqpmethod"])
def test_what_cannot_hold_together_is_named_first(solver):
    ocp, *_ = double_integrator(1.0)
    text, error = message(ocp, solver=solver)
    told = text[text.index(INFEASIBLE) :].split("; ")[0]
    assert "u at least -1 at 4 nodes, u at most 1 at" in told
    assert "the goal of x = 1" in told
    assert told.index("u at") < told.index("the start of x = 0")
    assert "dynamics" not in told
    assert error.solution.status == error.status
    assert error.violations == error.solution.worst_rows()


def test_a_limit_that_is_too_much_is_named_by_its_name():
    ocp, x, v, u = double_integrator(2.5)  # 2.94 s at 0.3 forwards and 1 backwards
    ocp.limit(-10, u + 0 * x, 0.3, name="push")
    text, _ = message(ocp)
    assert f"{INFEASIBLE}, as linearised at the last iterate: the limit push at most 0.3" in text


def test_limits_without_a_name_are_called_by_their_expression():
    ocp, x, v, u = double_integrator(3.0)
    ocp.limit(-10, u * ca.cos(x), 0.1)
    text, error = message(ocp)
    assert "the limit u*cos(x) at most 0.1" in text


def violation(values, lower, upper):
    return np.maximum(0, np.maximum(lower - values, values - upper))


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["rk4", "collocation", "hermite_simpson", "trapezoidal"])
def test_worst_rows_are_those_of_the_limits_evaluated_again(method):
    ocp, x, v, u = double_integrator((0.5, 1.2))
    ocp.limit(-5, 3 * x * v, 0.01, name="power")
    solution = ocp.solve(method=method, raises=False, check="off", solver_options={"max_iter": 4})
    rows = {(r.what, r.name): r for r in solution.worst_rows(50)}
    excess = violation(solution[3 * x * v][:, 0], -5, 0.01)
    row = rows["limit", "power"]
    if row.within:  # at a point of the method, where it is worse still
        assert row.violation > excess.max() / 5
        return
    assert row.violation == pytest.approx(excess.max() / 5, rel=1e-9)
    assert row.node == int(np.argmax(excess))
    assert row.time == solution.t[row.node]
    assert row.value == pytest.approx(solution[3 * x * v][row.node, 0])


def test_defects_are_those_of_a_step_computed_again():
    ocp, x, v, u = double_integrator(1.0)
    solution = ocp.solve(raises=False, check="off")
    h = np.diff(solution.t)
    end = solution["x"][:-1, 0] + h * solution["v"][:-1, 0] + h**2 / 2 * solution["u"][:, 0]
    defect = np.abs(solution["x"][1:, 0] - end)
    row = next(r for r in solution.worst_rows() if r.what == "dynamics" and r.name == "x")
    k = int(np.argmax(defect))
    assert row.violation == pytest.approx(defect[k])
    assert row.node == k
    assert row.value == pytest.approx(solution["x"][k + 1, 0])
    assert row.lower == pytest.approx(end[k])


def test_a_table_of_nothing_for_a_solution():
    solution = double_integrator(3.0)[0].solve()
    assert not solution.worst_rows()
    assert "no bound or row is violated" in str(solution.worst_rows())
    with pytest.raises(od.ShapeError, match="worst_rows: count"):
        solution.worst_rows(0)


def test_every_row_and_unknown_has_a_label():
    """All kinds of rows at once: the labels of a program, one for each of its numbers."""
    ocp = od.Problem(3, (0.5, 2.0))
    chain = ocp.chain("q", 2, 3, bounds=[5, None, 50])
    y, w, m = ocp.state("y", upper=3), ocp.control("w"), ocp.variable("m", lower=0)
    ocp.rate(y, w * m)
    ocp.limit(-1, chain[0] + chain[1], 1, name="sum", soft=(1, 1))
    ocp.limit(-1, chain[0], 1, at=0.5)
    ocp.at({y: 0.5}, fraction=1 / 3)
    ocp.join(y, 2 * y)
    ocp.phase(2, 1.0)
    ocp.rate(y, w)
    ocp.periodic(y)
    solution = ocp.solve(raises=False, check="off", solver_options={"max_iter": 1})
    program = program_of(solution)
    labels = [program.label(k) for k in range(program.x.size + program.g.size)]
    assert {label.what for label, _ in labels} >= {"bound", "dynamics", "step", "join", "limit", "at", "start", "goal"}
    stages = [stage for _, stage in labels[program.x.size :]]
    assert stages == sorted(stages)


def test_a_join_and_its_phase_are_named():
    ocp, x, v, u = double_integrator(1.0)
    ocp.join(v, -v)
    ocp.phase(4, 0.5)
    ocp.rate(x, v)
    ocp.rate(v, u)
    solution = ocp.solve(raises=False, check="off", solver_options={"max_iter": 0})
    solution.unknowns = solution.unknowns + 0.0
    stage = solution.transcribed.assembly.first[8]
    solution.unknowns[stage + 1] = 7.0  # v behind the join
    row = solution.worst_rows()[0]
    assert (row.what, row.name, row.phase, row.node, row.value) == ("join", "v", 0, 7, 7.0)
    assert "from node 7 to 8 of phase 0" in str(row)


def test_bernstein_chains_are_told_in_their_own_units():
    ocp = od.Problem(6, 1.0)
    q, *_ = chain = ocp.chain("q", 2, 3, bounds=[4, None, 1], basis="bernstein")
    ocp.start({q: [1, 2], chain[1]: 0, chain[2]: 0})
    ocp.goal({q: [2, 2], chain[1]: 0, chain[2]: 0})
    text, error = message(ocp)
    assert "d3q[0] at most 1" in text[text.index(INFEASIBLE) :]
    solution = error.solution
    solution.unknowns = solution.unknowns + 0.0
    solution.unknowns[0] += 1.0
    row = next(r for r in solution.worst_rows(20) if r.name == "q[0]" and r.what == "bound")
    assert row.lower == pytest.approx(1.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "radau"])
def test_states_on_manifolds(method):
    """Two radians in one second at one radian per second."""
    ocp = od.Problem(4, 1.0)
    q, w = ocp.state("q", 4, manifold="unit_quaternion"), ocp.control("w", 3, lower=-1, upper=1)
    ocp.rate(q, w)
    ocp.start({q: [1, 0, 0, 0]})
    ocp.goal({q: [np.cos(1), 0, 0, np.sin(1)]})
    ocp.minimize(integral=ca.sumsqr(w))
    text, error = message(ocp, method=method)
    assert INFEASIBLE in text
    assert ": w[2] at most 1 at 4 nodes" in text[text.index(INFEASIBLE) :].split(",")[1]
    program = program_of(error.solution)
    assert len({program.label(k)[0].name for k in range(program.x.size)}) >= 7


def test_the_duration_of_a_free_mesh_is_named_first():
    ocp = od.Problem(10, (0.1, 1.0), mesh="free")
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=1)
    text, _ = message(ocp)
    assert f"{INFEASIBLE}, as linearised at the last iterate: the duration of the motion at most 1, u at" in text


def test_phases_are_named():
    ocp = od.Problem(6, 1.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-5, upper=5)
    for number in range(2):
        if number:
            ocp.phase(6, (0.2, 1.0))
            ocp.limit(-0.2, v, 0.2, name="slow zone")
        ocp.rate(x, v)
        ocp.rate(v, u - ca.sin(x))
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 3, v: 0})
    text, _ = message(ocp)
    told = text[text.index(INFEASIBLE) :]
    assert "the limit slow zone at most 0.2 at" in told.split(",")[1]
    assert "of phase 1" in told.split(",")[1]
    assert "the duration of phase 1 at most 1" in told


def test_several_starts_that_all_fail_say_the_same():
    ocp, *_ = double_integrator(1.0)
    text, error = message(ocp, starts=2)
    assert INFEASIBLE in text
    assert len(error.solution.local_optima) == 2


# -- reasons ----------------------------------------------------------------------------------------------------


def test_statuses_in_words():
    assert "limit of iterations" in meaning("fatrop", "1")
    assert "no point that keeps all rows" in meaning("fatrop", 3)
    assert "limit of iterations" in meaning("ipopt", "Maximum_Iterations_Exceeded")
    assert meaning("ipopt", "1") == ""


def test_a_rate_that_is_no_number():
    ocp = od.Problem(10, 1.0)
    x, u = ocp.state("x", guess=lambda share: [3 - 2 * share]), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, u + ca.sqrt(x - 2))
    ocp.minimize(integral=u**2)
    text, _ = message(ocp)
    assert "the rate of x is nan at node 6: sqrt(x - 2) with x - 2 = -0.2" in text


def test_an_output_of_a_function_that_is_no_number():
    ocp = od.Problem(4, 1.0)
    x, u = ocp.state("x", 2), ocp.control("u")
    drag = ca.Function("drag", [x], [x[0] ** 2, ca.log(x[1] - 1)], ["x"], ["a", "b"], {"never_inline": True})
    ocp.rate(x, u * ca.vertcat(1, 1))
    ocp.limit(-1, drag(x)[1], 1, name="wet")
    text, _ = message(ocp)
    assert "the limit wet is nan at node 0: drag(x).b with x = [0, 0]" in text


def test_a_derivative_that_is_infinite():
    ocp = od.Problem(4, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.minimize(integral=u**2 + ca.sqrt(x))
    text, _ = message(ocp)
    assert "the derivative of the cost u^2 + sqrt(x) by x is inf at node 0, where x = 0" in text


@pytest.mark.sample(2)
@pytest.mark.parametrize("where", ["rate", "cost"])
def test_fatrop_is_not_asked_from_where_it_does_not_come_back(where):
    """It searches without an end where a derivative is infinite; a root of zero has one."""
    ocp = od.Problem(4, 1.0)
    x, u = ocp.state("x"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, u + (ca.sqrt(x) if where == "rate" else 0))
    ocp.start({x: 0})
    ocp.minimize(integral=u**2 + (ca.sqrt(x) if where == "cost" else 0))
    text, error = message(ocp, solver="fatrop")
    assert error.status == "Invalid_Number_Detected"
    assert "by x is inf at node 0, where x = 0" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_fatrop_comes_back_from_where_derivatives_overflow():
    """Its watchdog takes steps to where they do; steps of length 0.5 at -x^3 are unstable."""
    ocp = od.Problem(20, 10.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, -(x**3) + u)
    ocp.start({x: 1})
    ocp.goal({x: 1.5})
    ocp.minimize(integral=(x**2 + u**2) / 2)
    found = ocp.solve(method="rk4", solver="fatrop", check="off", raises=False)
    assert np.isfinite(found.unknowns).all()


def test_a_solver_that_was_stopped_does_not_tell_of_what_is_impossible():
    """The problem is feasible in 2 s; where a solver is stopped early, rows linearised there may contradict."""
    ocp = od.Problem(10, (0.2, 10.0))
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=2)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(terminal=ocp.duration)
    text, error = message(ocp, time_limit=1e-9)
    assert error.status == "time_limit"
    assert "in each other's way" in text
    assert "may be feasible" in text
    assert INFEASIBLE not in text


def test_feasible_but_not_optimal():
    ocp, x, v, u = double_integrator(3.0)
    ocp.minimize(terminal=0 * x, integral=ca.exp(3 * u))
    text, error = message(ocp, solver_options={"max_iter": 2})
    assert "not optimal: the cost still falls along" in text
    solution = error.solution
    made = solution.transcribed
    lam_x, lam_g = solution.multipliers
    gradient = function_of(made, "gradient")(solution.unknowns, solution.parameters).full().ravel()
    J = function_of(made, "jacobian")(solution.unknowns, solution.parameters).full()
    free = solution.bounds[0] < solution.bounds[1]
    assert gradients(solution)[0][0] == pytest.approx(np.abs(gradient + J.T @ lam_g + lam_x)[free].max())


def test_unknowns_that_grow_without_bound():
    ocp = od.Problem(5, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.minimize(integral=u)
    text, error = message(ocp)
    assert error.status == "Diverging_Iterates"
    assert "largest are" in text
    assert "u at node" in text


# -- refused at once ----------------------------------------------------------------------------------------------


def refused(ocp, **how):
    text, error = message(ocp, **how)
    assert error.status == "infeasible", text
    return text


def test_a_way_that_is_too_long_for_the_rate():
    ocp, x, v, u = double_integrator((0.1, 0.9))
    ocp.limit(-1, v, 1)
    assert "x cannot go from 0 at the start to 1 at the goal: with a rate from -1 to 1" in refused(ocp)
    assert not ocp.solve(raises=False, check="off").success


def test_just_reached_is_not_refused():
    ocp = od.Problem(5, (0.5, 2.0))
    x, u = ocp.state("x"), ocp.control("u", lower=-0.5, upper=0.5)
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    assert ocp.solve().duration == pytest.approx(2.0)


def test_limits_that_nothing_can_keep():
    for expression, what in (
        (lambda x, v: x**2 + 1, "the limit odd at all nodes lies between 1 and inf"),
        (lambda x, v: x + v, "the limit odd at the start is 0"),
        (lambda x, v: x * v, "the limit odd at the start is 0"),
    ):
        ocp, x, v, u = double_integrator(3.0)
        ocp.limit(0.1, expression(x, v), 0.5, name="odd")
        assert what in refused(ocp)


def test_a_goal_row_outside_bounds():
    ocp, x, v, u = double_integrator(3.0)
    a = ocp.state("a", lower=-1, upper=1)
    ocp.rate(a, u)
    ocp.goal({ca.sin(a) + 3: 1})
    assert "the row sin(a) + 3 of the goal" in refused(ocp).replace("3 + sin(a)", "sin(a) + 3")


def test_parameters_that_turn_bounds_around():
    ocp, x, v, u = double_integrator(3.0)
    width = ocp.parameter("width")
    y = ocp.state("y", lower=width, upper=2 * width)
    ocp.rate(y, 0 * u)
    assert ocp.solve(parameters={"width": 1.0}).success
    assert "y has to be at least -1 and at most -2" in refused(ocp, parameters={width: -1.0})


def test_bounds_changed_since_count():
    ocp, x, v, u = double_integrator(3.0)
    ocp.limit(-2, v, 2, name="speed")
    ocp.bound("speed", -0.2, 0.2)
    assert "with a rate from -0.2 to 0.2" in refused(ocp)


def test_integrals_and_chains():
    ocp, x, v, u = double_integrator(3.0)
    ocp.integral(u**2, 5, 7, name="energy")
    assert "energy cannot go from 0 at the start to 5 to 7" in refused(ocp)
    for basis, mesh in (("taylor", "uniform"), ("bernstein", "uniform"), ("bernstein", "free")):
        ocp = od.Problem(10, (0.5, 3.0), mesh=mesh, nominal=1.2)
        q, dq, _ = ocp.chain("q", 2, 2, bounds=[0.3, 8], basis=basis)
        ocp.start({q: 0, dq: 0})
        ocp.goal({q: [0.1, 1], dq: 0})
        ocp.minimize(integral=1)
        assert "q[1] cannot go from 0 at the start to 1 at the goal" in refused(ocp)


def drawn(seed, method):
    """A random problem with bounds, limits, ends and durations tight around a motion that its own stages make."""
    rng = np.random.default_rng(seed)
    n, phases, mass = int(rng.integers(1, 4)), int(rng.integers(1, 4)), float(rng.uniform(0.5, 2))
    A, B, kinds = rng.normal(size=(n, n)), rng.normal(size=n), rng.integers(0, 4, n)
    nodes, T = rng.integers(1, 6, phases).tolist(), rng.uniform(0.2, 2.0, phases)

    def built(tight):
        ocp = od.Problem(nodes[0], tight["T"][0] if tight else T[0])
        m, (low, high) = ocp.parameter("m"), tight["x"] if tight else (-np.inf, np.inf)
        x = ocp.state("x", n, lower=low, upper=high, scale=1.0)
        u = ocp.control("u", **(dict(zip(("lower", "upper"), tight["u"], strict=True)) if tight else {}), scale=1.0)
        for k in range(phases):
            if k:
                ocp.phase(nodes[k], tight["T"][k] if tight else T[k])
            line = ca.mtimes(ca.DM(A), x) + ca.DM(B) * u
            each = [[u, x[(i + 1) % n], line[i], ca.sin(x[i]) * u / m][kinds[i]] for i in range(n)]
            ocp.rate(x, ca.vertcat(*each))
            for name, (expression, _) in LIMITS.items() if tight else ():
                ocp.limit(tight[k, name][0], expression(x, u, m), tight[k, name][1], name=f"{name}{k}")
        return ocp, x

    loose, _ = built(None)
    made = loose.transcribed(method)
    p, own = made.parameters({"m": mass}), None
    own, states, controls = p[made.n_p :].reshape(-1, made.n_s), [rng.normal(size=n)], []
    for k, kind in enumerate(g.kind for g in made.assembly.groups[:-1] for _ in range(g.count)):
        controls.append(rng.uniform(-1, 1))
        z = np.append(states[-1], controls[-1])
        states.append(kind.value(z, p[: made.n_p], own[k])[0].full().ravel())
    states, controls = np.array(states), np.array(controls)
    if not np.abs(states).max() < 1e3:
        return None
    tight = {"x": (states.min(0), states.max(0)), "u": (controls.min(), controls.max())}
    tight["T"] = [(t * rng.uniform(0.5, 1), t * rng.uniform(1, 1.5)) if rng.random() < 0.5 else t for t in T]
    first = 0
    for k, count in enumerate(nodes):
        x, u = states[first : first + count], controls[first : first + count]
        first += count
        for name, (expression, controlled) in LIMITS.items():
            here = x if controlled or k < phases - 1 else np.vstack([x, states[-1:]])
            values = [float(ca.DM(expression(ca.DM(y), ca.DM(w), mass))) for y, w in zip(here, [*u, 0.0], strict=False)]
            tight[k, name] = min(values), max(values)
    ocp, x = built(tight)
    ocp.start({x: states[0]})
    ocp.goal({x: states[-1]})
    return ocp.transcribed(method), {"m": mass}


LIMITS = {  # expression, whether it reads the control
    "a": (lambda x, u, m: x[0] * u, True),
    "b": (lambda x, u, m: ca.sumsqr(x), False),
    "c": (lambda x, u, m: ca.sin(x[0]) + m, False),
    "d": (lambda x, u, m: u * m, True),
}


@pytest.mark.few(80)
@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 120))])
@pytest.mark.parametrize("method", ["rk4", "euler"])
def test_what_is_feasible_is_never_refused(seed, method):
    found = drawn(seed, method)
    if found is not None:
        assert first_contradiction(*found) == ""


def test_intervals_hold_all_values():
    rng, x = np.random.default_rng(0), ca.SX.sym("x", 3)
    a, b, c = ca.vertsplit(x)
    some = [a + b, a - b, a * b, a / (3 + b**2), a**2, a**3, a**4, -a, ca.sqrt(a**2 + 1), ca.sin(3 * a), ca.cos(a * 2),
            ca.exp(a), ca.log(b**2 + 0.1), ca.fabs(a), ca.fmin(a, b), ca.fmax(a, c), ca.if_else(a > b, a, c), 
            1 / (a + 9), ca.atan(a), ca.tanh(a * b), a * a, ca.cosh(a), ca.atan2(a, b), ca.tan(a), (a + 5) ** 1.5,
            ca.asin(a / 9)]  # fmt: skip
    f = ca.Function("f", [x], [ca.vertcat(*some)])
    for _ in range(50):
        ends = np.sort(rng.uniform(-4, 4, (3, 2)), axis=1)
        lower, upper = bounds_of(f, [(ends[:, 0], ends[:, 1])])[0]
        points = f(ends[:, :1] + np.diff(ends, axis=1) * rng.random((3, 200))).full()
        size = 1e-12 * np.maximum(1, np.abs(points))
        assert np.all(points >= lower[:, None] - size)
        assert np.all(points <= upper[:, None] + size)
    lower, upper = bounds_of(f, [(-np.ones(3), np.ones(3))])[0]
    assert (lower[0], upper[0], lower[4], upper[4]) == (-2, 2, 0, 1)


# -- scaling ------------------------------------------------------------------------------------------------------


def test_scaling_tells_what_is_off():
    ocp = od.Problem(10, 1000.0)
    x, u = ocp.state("height", guess=lambda share: [1e7 * share]), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, 1e5 * u)
    ocp.limit(-1e9, 1e6 * u, 1e9, name="heat")
    found = ocp.scaling()
    rows = {(r.what, r.name): r for r in found.rows}
    assert rows["state", "height"].ratio == pytest.approx(1e7)
    assert "give scale=1e+07" in rows["state", "height"].hint
    assert rows["limit", "heat"].gradient == pytest.approx(1e6)
    assert rows["dynamics", "height"].gradient == pytest.approx(1e5 * 100)
    assert rows["control", "u"].hint == ""
    assert "state height: values of about 1e+07" in str(found)


def test_scaling_at_a_solution():
    ocp, x, v, u = double_integrator(3.0)
    found = ocp.solve().scaling()
    assert not found.hints
    assert "nothing is off" in str(found)
    rows = {(r.what, r.name): r for r in found.rows}
    assert rows["state", "x"].typical == pytest.approx(1.0)
