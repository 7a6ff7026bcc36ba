"""Solution.check(): sees what a method does not, is right where a closed form is known, leaves right optima alone."""

import pickle
import warnings

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.assembly import SOLVERS
from oc_dyn.optimal_control.integrators import METHODS, Step

FAST = 10  # nodes
MOVING = [  # controls change within intervals
    m for m, s in METHODS.items() if getattr(s, "controls_are_states", False) or getattr(s, "control_degree", 0)
]


def double_integrator(nodes=FAST):
    """Rest to rest over 1 m in least time with |u| <= 1: two seconds."""
    ocp = od.Problem(nodes, (0.1, 10.0))
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp, x, v, u


def blind_simpson(dynamics, cost, x, u, h, symbol):
    """Hermite-Simpson whose controls at midpoints are seen by no bound."""
    step = METHODS["hermite_simpson"](dynamics, cost, x, u, h, symbol)
    # an unknown like a state, at a point that is no control's: nothing bounds it
    guesses = [("x", 1.0), ("u", 1.0), ("u", 1.0)]
    return Step(step.following, step.cost, step.extra, step.rows, guesses, step.u_next)


blind_simpson.controls_are_states, blind_simpson.order = True, 4


def rows(check, what):
    return {r.name: r for r in check.rows if r.what == what}


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_a_right_optimum_is_not_flagged(method):
    ocp, *_ = double_integrator()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ocp.solve(method=method, check="raise")


def test_an_optimum_that_is_none_is_flagged():
    ocp, *_ = double_integrator()
    solution = ocp.solve(method=blind_simpson, check="off")
    assert solution.duration < 1  # below the optimum of 2 s
    assert not solution.check().ok()
    with pytest.warns(od.errors.CheckWarning, match=r"Problem\.solve: defect of [xv] at"):
        ocp.solve(method=blind_simpson)
    with pytest.raises(od.SolveError, match="fails its check") as raised:
        ocp.solve(method=blind_simpson, check="raise")
    assert raised.value.status == "check"
    assert raised.value.solution.duration < 1


def test_defects_are_those_of_the_closed_form():
    """x' = -x from 1: a step of rk4 over h multiplies by 1 - h + h^2/2 - h^3/6 + h^4/24."""
    ocp = od.Problem(4, 2.0)
    x = ocp.state("x")
    ocp.rate(x, -x)
    ocp.start({x: 1})
    check = ocp.solve(check="off").check(tolerance=1e-6)
    h = 0.5
    factor = 1 - h + h**2 / 2 - h**3 / 6 + h**4 / 24
    assert check.defect == pytest.approx(abs(factor - np.exp(-h)), rel=1e-5)
    assert rows(check, "defect")["x"].time == pytest.approx(h)
    assert check.uncertainty < 1e-7


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_defects_shrink_with_the_order_of_the_method(method):
    """x' = cos(x) + u from 0 at a control that is fixed: the error of a step is of one order more."""
    defects = []
    for nodes in (8, 16):
        ocp = od.Problem(nodes, 4.0)
        x, u = ocp.state("x"), ocp.control("u", lower=0.3, upper=0.3)
        ocp.rate(x, ca.cos(x) + u)
        ocp.start({x: 0})
        defects.append(rows(ocp.solve(method=method, check="off").check(tolerance=1e-9), "defect")["x"].error)
    order = METHODS[method].order
    assert np.log2(defects[0] / defects[1]) == pytest.approx(order + 1, abs=0.8)


def test_the_objective_is_integrated_along_the_motion():
    """x' = u, integral of x^2 with u = 1 from 0 to 1: 1/3; Euler has the sum of left ends."""
    ocp = od.Problem(10, 1.0)
    x, u = ocp.state("x"), ocp.control("u", lower=1, upper=1)
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.minimize(integral=x**2, terminal=2 * x)
    solution = ocp.solve(method="euler")
    assert solution.objective == pytest.approx(2 + 0.285)
    assert solution.check().objective == pytest.approx(2 + 1 / 3, abs=1e-9)


def test_bounds_between_nodes_are_seen():
    """A ball thrown up and caught, with a ceiling that it breaks between the two nodes."""
    ocp = od.Problem(1, 1.0)
    x, v = ocp.state("x", upper=0.1), ocp.state("v")
    ocp.limit(-np.inf, x, 0.2, name="ceiling")
    ocp.rate(x, v)
    ocp.rate(v, -8)
    ocp.start({x: 0})
    ocp.goal({x: 0})
    check = ocp.solve(check="off").check()  # 1 m high after half a second
    assert rows(check, "bound")["x"].error == pytest.approx((1 - 0.1) / 0.1)
    assert rows(check, "limit")["ceiling"].value == pytest.approx(1.0)
    assert rows(check, "limit")["ceiling"].time == pytest.approx(0.5)
    assert "limit ceiling at 0.5 s: 1, outside -inf to 0.2" in str(rows(check, "limit")["ceiling"])


def test_limits_are_seen_on_both_sides_of_a_jump():
    """|x + u| <= 1 holds at the starts of intervals; at their ends, with the same control, x has moved on."""
    ocp = od.Problem(1, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.limit(-1, x + u, 1)
    ocp.start({x: 0})
    ocp.minimize(terminal=-x)
    check = ocp.solve(check="off").check()
    assert rows(check, "limit")["x + u"].error == pytest.approx(1.0, abs=1e-6)  # u = 1 takes x to 1
    assert rows(check, "limit")["x + u"].time == pytest.approx(1.0)
    told = str(check).splitlines()
    assert told[0].startswith("not ok: limit x + u at 1 s: 2, outside -1 to 1")
    assert not told[0].endswith("tells all")
    assert told[1].startswith("what ")


def test_limits_without_names_are_called_by_what_they_limit():
    ocp = od.Problem(2, 1.0)
    x, u = ocp.state("x", 2), ocp.control("u", 2, lower=-1, upper=1)
    ocp.rate(x, u)
    ocp.limit(-9, x, 9)
    ocp.limit(-8, x, 8)  # called by its number, the first has the words
    ocp.limit(-9, ca.sin(x[0]) * ca.cos(x[1]) + ca.exp(x[0]) * u[0], 9)  # too long for a name
    ocp.limit(-9, u[0] - u[1], 9, name="apart")
    ocp.start({x: 0})
    ocp.minimize(terminal=x[0])
    check = ocp.solve(check="off").check()
    assert set(rows(check, "limit")) == {"x[0]", "x[1]", "1[0]", "1[1]", "2", "apart"}
    assert str(check).startswith("ok: all rows that count are within 0.001")


def test_a_join_and_its_phases():
    """A ball that bounces with half its speed: x falls from 1 m in sqrt(2/g)."""
    ocp = od.Problem(5, (0.1, 2.0))
    x, v = ocp.state("x"), ocp.state("v")
    for number in range(2):
        if number:
            ocp.phase(5, 0.3)
        ocp.rate(x, v)
        ocp.rate(v, -10)
        if not number:
            ocp.join(v, -0.5 * v)
            ocp.join(x, 0 * x)
    ocp.start({x: 1, v: 0})
    solution = ocp.solve(check="raise")
    solution.x = solution.x + np.eye(11)[5][:, None] * [0, 0.1]  # after the bounce
    assert rows(solution.check(), "join")["v"].error == pytest.approx(0.1 / np.abs(solution.x[:, 1]).max(), rel=1e-6)


def test_a_map_is_evaluated_again():
    ocp = od.Problem(10, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.next(x, x + 0.1 * u)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2)
    solution = ocp.solve(check="raise")
    assert solution.objective == pytest.approx(1.0)
    solution.x = solution.x + 0.01 * np.eye(11)[3][:, None]
    assert rows(solution.check(), "map")["x"].error == pytest.approx(0.01)


def test_chains_are_looked_at_between_nodes():
    """Rest to rest in three pieces of constant jerk: the speed is largest in the middle of the second, 9/4 m/s."""
    for basis in ("taylor", "b_spline"):
        ocp = od.Problem(3, 1.0)
        q, v, a, _ = ocp.chain("q", 1, 3, basis=basis)
        ocp.limit(-np.inf, v, 1.9, name="speed")
        ocp.start({q: 0, v: 0, a: 0})
        ocp.goal({q: 1, v: 0, a: 0})
        solution = ocp.solve(check="off")
        check = solution.check()
        assert rows(check, "limit")["speed"].value == pytest.approx(9 / 4), basis
        assert rows(check, "limit")["speed"].time == pytest.approx(0.5), basis
        assert not check.ok()


def test_arguments_are_named():
    ocp, *_ = double_integrator()
    with pytest.raises(od.UnknownName, match="check"):
        ocp.solve(check="loud")
    with pytest.raises(od.ShapeError, match="tolerance"):
        ocp.solve().check(tolerance=-1)


# -- one of everything, and what a problem is made of ---------------------------------------------------------------


@pytest.mark.few(30)
@pytest.mark.sample(2)
@pytest.mark.parametrize("nodes", [1, 7])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", METHODS)
def test_one_state_and_one_control(method, solver, nodes):
    """x' = u over one second, x from 0 to 1 with the least integral of u^2: u = 1."""
    ocp = od.Problem(nodes, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2)
    solution = ocp.solve(method=method, solver=solver, check="raise")
    assert solution.objective == pytest.approx(1)
    assert np.abs(solution[u] - 1).max() < 1e-4


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_one_state_without_controls(method):
    ocp = od.Problem(4, (0.5, 2.0))
    x = ocp.state("x")
    ocp.rate(x, 1)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    assert ocp.solve(method=method, check="raise").duration == pytest.approx(1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("nodes", [1, 5])
@pytest.mark.parametrize("method", [m for m in METHODS if m not in MOVING])
def test_one_state_that_is_a_map(method, nodes):
    ocp = od.Problem(nodes, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.next(x, x + u)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2)
    assert ocp.solve(method=method, check="raise").objective == pytest.approx(1 / nodes**2)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", MOVING)
def test_controls_of_maps_are_those_of_intervals(method):
    """With controls at nodes, or that change, a map would take one end of its interval and the cost all."""
    ocp = od.Problem(10, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.next(x, x + 0.1 * u)
    ocp.start({x: 0})
    with pytest.raises(od.OrderError, match="'x' is stepped by controls of intervals"):
        ocp.solve(method=method)


@pytest.mark.slow
def test_every_change_of_a_problem_is_seen():
    """Whatever is said after a solve counts in the next one, as in a problem that was written at once."""

    def base():
        ocp = od.Problem(5, 1.0)
        x, u = ocp.state("x"), ocp.control("u", lower=-3, upper=3)
        ocp.rate(x, u)
        ocp.start({x: 0})
        ocp.goal({x: (1, 5)})
        ocp.minimize(integral=u**2)
        return ocp, x, u

    def with_a_chain(ocp, x, u, **basis):
        q, _, a = ocp.chain("q", 1, 2, bounds=[None, 5], **basis)
        ocp.start({q: 1})
        ocp.minimize(integral=q**2 + a**2)

    def kept_apart(ocp, x, u):
        builder = od.RobotBuilder("slide")
        builder.add_link("base")
        builder.add_link("sledge", 1.0)
        builder.add_joint("x", "prismatic", "base", "sledge", axis=(1, 0, 0))
        scene = od.Scene().attach("tip", "sledge", od.shapes.Sphere(0.1))
        wall = np.eye(4)
        wall[0, 3] = -0.3
        ocp.start({x: 0.5})
        ocp.avoid(scene.add("wall", od.shapes.Sphere(0.1), wall), x, 0.05, robot=builder.build())

    changes = {
        "rate": lambda o, x, u: o.rate(x, 2 * u),
        "next": lambda o, x, u: o.next(x, x + 0.5 * u),
        "limit": lambda o, x, u: o.limit(-np.inf, u + x, 1.5),
        "start": lambda o, x, u: o.start({x: 0.5}),
        "goal": lambda o, x, u: o.goal({x: 2}),
        "goal row": lambda o, x, u: o.goal({x**2: (2, 9)}),
        "minimize": lambda o, x, u: o.minimize(integral=x),
        "squares": lambda o, x, u: o.minimize(squares=x - u),
        "terminal": lambda o, x, u: o.minimize(terminal=3 + x),
        "phase": lambda o, x, u: (o.phase(5, 1.0), o.rate(x, u), o.minimize(integral=2 * u**2)),
        "state": lambda o, x, u: (y := o.state("y"), o.rate(y, u), o.start({y: 0}), o.minimize(integral=y**2)),
        "control": lambda o, x, u: (w := o.control("w", lower=-1, upper=1), o.rate(x, u + w)),
        "join": lambda o, x, u: (o.join(x, x + 1), o.phase(5, 1.0), o.rate(x, u), o.minimize(integral=u**2)),
        "chain": with_a_chain,
        "bernstein": lambda o, x, u: with_a_chain(o, x, u, basis="bernstein"),
        "bound": lambda *of: (with_a_chain(*of, basis="bernstein"), of[0].solve(check="off"), of[0].bound("d2q", 0, 0)),
        "limit within": lambda o, x, u: o.limit(1.2, u, np.inf, at=(0,)),
        "mean": lambda o, x, u: o.minimize(mean=u),
        "sum": lambda o, x, u: o.minimize(integral=u, points=1),
        "variable": lambda o, x, u: (a := o.variable("a", lower=2), o.rate(x, a * u), o.minimize(terminal=a)),
        "time": lambda o, x, u: o.minimize(integral=o.time * u),
        "integral": lambda o, x, u: o.integral(x, 0.7, 2),
        "maximum": lambda o, x, u: o.minimize(maximum=u - x),
        "periodic": lambda o, x, u: o.periodic({x: 1.5}),
        "at": lambda o, x, u: o.at({x: 0.9}, fraction=0.4),
        "soft": lambda o, x, u: o.limit(1.2, u, np.inf, soft=(0.1, 0.2)),
        "avoid": kept_apart,
        "bound by a variable": lambda o, x, u: o.limit(o.variable("least", lower=1.2), u, np.inf),
    }
    plain = base()[0].solve(check="off").objective
    for what, change in changes.items():
        late, early = base(), base()
        late[0].solve(check="off")
        change(*late)
        change(*early)
        objective = late[0].solve(check="off").objective
        assert objective == pytest.approx(early[0].solve(check="off").objective, rel=1e-7), what
        assert abs(objective - plain) > 1e-3, what
    setters = {"state", "control", "parameter", "varying", "chain", "rigid_body", "contact_body", "phase", "rate"}
    setters |= {"next", "join", "limit", "start", "goal", "minimize", "bound"}
    setters |= {"variable", "time", "integral", "periodic", "at", "avoid"}
    others = {"as_described", "between", "description", "duration", "guess", "step", "solve", "transcribed"}
    others |= {"coefficients", "describe", "load", "opti", "solution", "nominal", "relative_step", "scaling"}
    others |= {"with_mesh"}
    assert {n for n in dir(od.Problem) if n[0] != "_"} == setters | others  # a new one is to be tried here


def test_a_solution_tells_of_the_problem_that_was_solved():
    ocp, x, v, u = double_integrator()
    solution = ocp.solve(check="raise")
    ocp.limit(-0.1, u, 0.1)
    ocp.rate(x, 5 * v)
    assert solution.check().ok()


@pytest.mark.slow
def test_the_acrobot_does_not_drive_its_passive_joint():
    """Two links, the first joint without a motor, rest to rest below: with the passive torque held at zero wherever the
    accelerations are free, no method finds a motion that another forbids."""
    builder = od.RobotBuilder("acrobot")
    builder.add_link("base")
    for k, parent in ((1, "base"), (2, "link1")):
        builder.add_link(f"link{k}", mass=1.0, com=[0, 0, -0.5], inertia=np.diag([0.08, 0.08, 0.001]))
        builder.add_joint(f"joint{k}", "revolute", parent, f"link{k}", axis=[0, 1, 0], xyz=[0, 0, -1.0 if k > 1 else 0])
    robot = builder.build()
    ocp = od.Problem(40, 2.0)
    q, v, dv, tau = ocp.rigid_body(robot)
    ocp.limit(0, tau[0], 0, name="passive")
    ocp.start({q: 0, v: 0})
    ocp.goal({q: [0.3, -0.6], v: 0})
    ocp.minimize(integral=tau[1] ** 2)
    simpson = ocp.solve(method="hermite_simpson", check="off")
    # an independent look: forward dynamics with the torque of the motor alone
    forward = od.function(robot, "forward_dynamics")
    at = simpson[q], simpson[v], simpson[tau] * [0, 1]
    accelerations = np.array(forward(*(ca.DM(x.T) for x in at))).T
    assert np.abs(accelerations - simpson[dv]).max() < 1e-6
    assert simpson.objective > 1.0
    assert rows(simpson.check(), "defect")["v[0]"].error < 1e-3
    assert rows(simpson.check(), "limit")["passive"].error < 0.1


def body_on_a_frame():
    builder = od.RobotBuilder("body")
    builder.add_link("world")
    builder.add_link("trunk", mass=2.0, inertia=np.diag([0.02, 0.03, 0.04]))
    builder.add_joint("float", "free", "world", "trunk")
    return builder.build()


@pytest.mark.slow
def test_a_contact_body_stays_on_its_manifold():
    """A start that is free but for being the end as well says nothing of the quaternion's norm."""
    robot = body_on_a_frame()
    ocp = od.Problem(8, 0.5)
    guess = np.array([0.9, 0.1, 0.2, -0.3, 0.0, 0.0, 1.0]) * 3
    body = ocp.contact_body(robot, ["trunk"], guess=[guess, 0.0, 0.0, 0.0])
    first = ocp.state("first", 7, guess=guess)
    ocp.next(first, first)
    ocp.start({body.q - first: 0})
    ocp.goal({body.q - first: 0})
    ocp.limit(0, body.tau, 0, name="balance")
    ocp.minimize(integral=ca.sumsqr(body.dv) + ca.sumsqr(body.v - np.array([0, 0, 0, 0, 0, 0.1])))
    solution = ocp.solve(check="off")
    norms = np.linalg.norm(solution[body.q][:, :4], axis=1)
    assert np.abs(norms - 1).max() < 1e-7
    assert rows(solution.check(), "norm")["quaternion q[0]"].error < 1e-7
    solution.x = np.hstack([1.1 * solution.x[:, :4], solution.x[:, 4:]])
    assert rows(solution.check(), "norm")["quaternion q[0]"].error == pytest.approx(0.1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("hessian", ["exact", "gauss_newton"])
@pytest.mark.parametrize("method", METHODS)
def test_squares_are_integrated_by_the_rule_of_the_method(method, hessian):
    """Half the sum of squares is the same cost whether it is said to be one or not; with x' = x + u neither end of an
    interval stands for the whole."""
    costs = {}
    for squares in (True, False):
        ocp = od.Problem(8, 2.0)
        x, u = ocp.state("x"), ocp.control("u")
        ocp.rate(x, x + u)
        ocp.start({x: 1})
        cost = {"squares": ca.vertcat(x, u)} if squares else {"integral": (x**2 + u**2) / 2}
        ocp.minimize(**cost)
        costs[squares] = ocp.solve(method=method, hessian=hessian if squares else "exact", check="off").objective
    assert costs[True] == pytest.approx(costs[False], rel=1e-6 if method != "euler" else 1e-5)


def thrown(nodes=1, upper=np.inf):
    """A ball thrown up and caught after a second, 1 m high in between."""
    ocp = od.Problem(nodes, 1.0)
    x, v = ocp.state("x", upper=upper), ocp.state("v")
    ocp.rate(x, v)
    ocp.rate(v, -8)
    ocp.start({x: 0})
    ocp.goal({x: 0})
    return ocp, x, v


def test_an_excess_is_measured_by_the_bound_that_is_broken():
    ocp, x, _ = thrown()
    ocp.limit([-1000.0, -np.inf], ca.vertcat(x, 1e-5 * x), [0.9, 0.0], name="wide")
    found = rows(ocp.solve(check="off").check(), "limit")
    assert found["wide[0]"].error == pytest.approx(0.1 / 0.9)
    assert found["wide[1]"].error == pytest.approx(1.0)  # by its own size, as the bound is 0


def test_states_of_any_size_have_defects_of_their_size():
    for size in (1e-3, 1e3):
        ocp = od.Problem(2, 4.0)
        x = ocp.state("x")
        ocp.rate(x, -x)
        ocp.start({x: size})
        assert 1e-3 < ocp.solve(check="off").check().worst < 1


def test_limits_with_values_that_vary_are_told_between_nodes_but_do_not_count():
    ocp, x, _ = thrown(nodes=3)
    top = ocp.varying("top")
    ocp.limit(-np.inf, x - top, 0, name="below")
    check = ocp.solve(check="off", parameters={"top": 0.9}).check()
    assert rows(check, "limit")["below"].error == 0
    assert rows(check, "rest")["below"].value == pytest.approx(0.1)
    assert check.ok()


def test_an_equation_and_a_limit_said_together():
    """Trapezoidal holds the equation at nodes; the bound beside it counts between them, too."""
    found = {}
    for together in (True, False):
        ocp, x, _ = thrown(nodes=2)
        w = ocp.control("w")
        for lower, of, upper in (
            [([1, -np.inf], ca.vertcat(w, x), [1, 0.7])] if together else [(1, w, 1), (-np.inf, x, 0.7)]
        ):
            ocp.limit(lower, of, upper)
        ocp.start({x: -0.4})
        found[together] = ocp.solve(method="trapezoidal", check="off", raises=False).check()
    assert found[True].worst == pytest.approx(found[False].worst)


@pytest.mark.slow
def test_fast_motions_within_an_interval_are_seen():
    """Two intervals of ten swings each, by a method that steps finely: nodes alone tell nothing of the swings."""

    def fine(dynamics, cost, x, u, h, symbol):
        for _ in range(200):
            step = METHODS["rk4"](dynamics, lambda y, w: ca.MX(0), x, u, h / 200, symbol)
            x = step.following
        return Step(x, ca.MX(0))

    fine.order = 4
    ocp = od.Problem(2, 2.0)
    x, v = ocp.state("x"), ocp.state("v")
    w = 20 * np.pi
    ocp.rate(x, v)
    ocp.rate(v, -(w**2) * x)
    ocp.limit(-np.inf, x, 0.2, name="swing")
    ocp.start({x: 0, v: w})
    check = ocp.solve(method=fine, check="off").check()
    assert rows(check, "limit")["swing"].value > 0.99


@pytest.mark.sample(2)
@pytest.mark.parametrize("fast", [1e2, 1e4, 1e6])
def test_stiff_dynamics_are_no_defect(fast):
    ocp = od.Problem(20, 1.0)
    x, z, u = ocp.state("x"), ocp.state("z"), ocp.control("u", lower=-2, upper=2)
    ocp.rate(x, u)
    ocp.rate(z, -fast * (z - x))
    ocp.start({x: 0, z: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check = ocp.solve(method="collocation", check="raise").check()
    assert check.uncertainty < 1e-4


def test_limits_of_a_phase_hold_at_its_end():
    for method in METHODS:
        ocp = od.Problem(3, 1.0)
        x, u = ocp.state("x"), ocp.control("u", lower=-5, upper=5)
        ocp.rate(x, u)
        ocp.limit(-np.inf, x, 1)
        ocp.phase(3, 1.0)
        ocp.rate(x, u)
        ocp.start({x: 0})
        ocp.minimize(terminal=-x)
        solution = ocp.solve(method=method, check="raise")
        assert solution[x][3, 0] == pytest.approx(1, abs=1e-6), method


def test_what_does_not_fit_is_named():
    ocp, x, v = thrown(nodes=2)
    old = ocp.solve(check="off")
    late = ocp.state("late")
    ocp.rate(late, 0)
    with pytest.raises(od.UnknownName, match="'late'"):
        old[late]
    with pytest.warns(od.CheckWarning, match="initial has no late of this problem"):
        ocp.solve(initial=old, check="off")
    other = od.Problem(2, 1.0)
    other.rate(other.state("y"), 0)
    with pytest.raises(od.ShapeError, match="initial: the solution has nothing of this problem's y"):
        other.solve(initial=old)
    with pytest.raises(ValueError, match="read-only"):
        old.x[0] = 1
    other, y, _ = thrown()
    more = other.state("pair", 2)
    with pytest.raises(od.ShapeError, match="for two rows may be their values or"):
        other.start({more: (0.0, 1.0)})
    spline = od.Problem(3, 1.0)
    spline.chain("q", 1, 2, basis="b_spline")
    with pytest.raises(od.OrderError, match="b_spline"):
        spline.phase(3, 1.0)


def test_a_warm_start_with_other_phases():
    def problem(phases):
        ocp = od.Problem(4, (0.5, 2.0))
        x, u = ocp.state("x"), ocp.control("u", lower=-1, upper=1)
        for number in range(phases):
            if number:
                ocp.phase(4, (0.5, 2.0))
            ocp.rate(x, u)
        ocp.start({x: 0})
        ocp.goal({x: 1})
        ocp.minimize(terminal=ocp.duration, integral=1e-3 * u**2)
        return ocp

    first = problem(1).solve(check="off")
    assert problem(2).solve(initial=first, check="off").success


def test_a_guess_is_copied():
    table = np.linspace(0, 1, 5)[:, None] * np.ones((1, 1))
    ocp = od.Problem(4, 1.0)
    x, u = ocp.state("x", guess=table), ocp.control("u")
    ocp.rate(x, u)
    before = ocp.solve(solver_options={"max_iter": 0}, raises=False, check="off").x
    table[:] = 7
    after = ocp.solve(solver_options={"max_iter": 0}, raises=False, check="off").x
    assert np.array_equal(before, after)


def test_a_summary_does_not_hide_what_does_not_count():
    ocp, *_ = double_integrator()
    check = ocp.solve(method="euler").check()
    assert check.ok()
    assert "those that do not count are off by up to 0.02" in check.summary()


def test_a_rate_is_not_spread_over_the_rows_of_a_state():
    ocp = od.Problem(2, 1.0)
    x, u = ocp.state("x", 2), ocp.control("u")
    with pytest.raises(od.ShapeError, match="rate, next or join of x: got 1 rows, expected 2"):
        ocp.rate(x, u)
    ocp.rate(x, 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("basis", ["taylor", "bernstein"])
def test_every_solution_is_judged_by_the_bounds_it_was_solved_with(basis):
    ocp = od.Problem(6, (0.2, 5))
    q, v, a, j = ocp.chain("q", 1, 3, bounds=(None, 2, 20), basis=basis)
    ocp.start({q: 0, v: 0, a: 0})
    ocp.goal({q: 1, v: 0, a: 0})
    ocp.limit(-9, v, 9, name="v")
    ocp.minimize(integral=1.0)
    free = ocp.solve(check="off")
    assert free.check().ok()
    ocp.bound("v", -0.4, 0.4)
    slow = ocp.solve(check="off")
    for solution, bound in ((free, 9), (slow, 0.4)) * 2:
        for found in (solution, pickle.loads(pickle.dumps(solution))):
            (row,) = (r for r in found.check().rows if (r.what, r.name) == ("limit", "v"))
            assert (row.lower, row.upper) == (-bound, bound)
            # the limit holds at nodes alone
            assert row.error == pytest.approx(max(0.0, row.value - bound) / bound)
    assert slow[v].max() < 0.4 + 1e-6


def slid(method, nodes=4, **more):
    """A cost that Simpson's rule, and any rule of few points, is far off for."""
    ocp = od.Problem(nodes, 1.0)
    x, u = ocp.state("x"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=1 + ca.sin(8 * np.pi * x) ** 2, **more)
    return ocp.solve(method=method, check="off")


@pytest.mark.sample(2)
@pytest.mark.parametrize("method, counts", [("hermite_simpson", True), ("trapezoidal", False), ("euler", False)])
def test_the_objective_is_compared_with_the_cost_along_the_motion(method, counts):
    solution = slid(method)  # all nodes and midpoints lie where the sine is zero: x = t
    check = solution.check()
    row = rows(check, "cost")["the objective"]
    assert solution.objective == pytest.approx(1.0, abs=1e-6)
    assert check.objective == pytest.approx(1.5, abs=1e-6)
    assert (row.value, row.lower, row.error) == pytest.approx((1.0, 1.5, 1 / 3), abs=1e-5)
    assert row.counts == counts
    assert check.ok() != counts
    assert ("cost of the objective at 1 s: 1, expected 1.5" in check.summary()) == counts
    assert "the objective" in str(check)
    assert slid(method, nodes=4, mean=1.0).check().ok()  # a mean is one of nodes


@pytest.mark.slow
def test_costs_that_the_method_integrates_well_leave_no_gap():
    for method in ("rk4", "collocation", "hermite_simpson"):
        assert slid(method, nodes=50).check().ok()
    tiny = od.Problem(4, 1.0)
    x = tiny.state("x")
    tiny.rate(x, -x)
    tiny.start({x: 1})
    tiny.minimize(integral=1e-9 * ca.sin(50 * x))
    assert rows(tiny.solve(check="off").check(), "cost")["the objective"].error == 0  # nothing but noise


@pytest.mark.sample(2)
@pytest.mark.parametrize("factor", [1.0, 1e-2, -1e3])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1.0])
def test_differences_are_measured_by_what_they_are_of(shift, factor):
    """A motion along a sine, which it leaves between nodes: by a share of its size, whatever is on both sides."""
    ocp = od.Problem(40, 1.0)
    x, v = ocp.state("x"), ocp.state("v")
    ocp.rate(x, v)
    ocp.rate(v, ocp.control("a", guess=lambda s: -81 * np.sin(9 * s)))
    ocp.start({x: 0})
    difference = x - ca.sin(9 * ocp.time)
    ends = sorted([factor * shift, factor * np.inf])
    ocp.limit(ends[0], factor * (difference + shift), ends[1], name="above")
    ocp.minimize(integral=difference + 1e-6 * ocp.description.controls[0].symbol ** 2)
    row = rows(ocp.solve(check="off").check(), "limit")["above"]
    excess = abs(row.value / factor - shift)
    assert 1e-5 < excess < 1e-2
    assert row.error == pytest.approx(excess, rel=0.05)
