"""od.Problem and the stages under it: known optima, derivatives, all methods and solvers, refusals."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.assembly import Group, assemble
from oc_dyn.optimal_control.solver import _told
from oc_dyn.optimal_control.stages import kind
from oc_dyn.study import memory

CART_POLE = {25: 58.80543, 50: 58.80764, 100: 58.80767}  # integral of u^2 by Hermite-Simpson, Kelly 2017's swing-up


def cart_pole(nodes):
    """Swing-up of Kelly, SIAM Review 2017: m 1 and 0.3 kg, l 0.5 m, 2 s, 1 m, 20 N."""
    ocp = od.Problem(nodes, 2.0)
    q = ocp.state("q", 2, lower=[-2, -np.inf], upper=[2, np.inf], guess=lambda s: [s, np.pi * s])
    v, u = ocp.state("v", 2), ocp.control("u", lower=-20, upper=20)
    sin, cos, dq = ca.sin(q[1]), ca.cos(q[1]), v[1]
    ddx = (0.15 * sin * dq**2 + u + 0.3 * 9.81 * cos * sin) / (1 + 0.3 * sin**2)
    ddq = -(0.15 * cos * sin * dq**2 + u * cos + 1.3 * 9.81 * sin) / (0.5 + 0.15 * sin**2)
    ocp.rate(q, v)
    ocp.rate(v, ca.vertcat(ddx, ddq))
    ocp.start({q: 0, v: 0})
    ocp.goal({q: [1, np.pi], v: 0})
    ocp.minimize(integral=u**2)
    return ocp, q, v, u


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
@pytest.mark.parametrize("nodes", list(CART_POLE))
def test_cart_pole_has_the_known_optimum(nodes, solver):
    ocp, q, v, u = cart_pole(nodes)
    found = ocp.solve(method="hermite_simpson", solver=solver)
    assert abs(found.objective - CART_POLE[nodes]) < 6e-6
    assert found[q].shape == (nodes + 1, 2)
    assert found[u].shape == (nodes + 1, 1)
    assert np.abs(found[u]).max() <= 20 + 1e-6
    assert np.abs(found.t - np.linspace(0, 2, nodes + 1)).max() < 1e-12


@pytest.mark.slow
def test_results_do_not_depend_on_the_run():
    counts = {(f := cart_pole(25)[0].solve(method="hermite_simpson")).iterations for _ in range(6)}
    assert len(counts) == 1
    assert f.success


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation"])
def test_methods_converge_to_the_same_motion(method):
    """Controls constant on intervals: the cost falls towards the optimum of continuous ones with the square of h."""
    gaps = [cart_pole(n)[0].solve(method=method).objective - 58.80767 for n in (25, 50)]
    assert 0 < gaps[1] < 0.3 * gaps[0]


@pytest.mark.slow
def test_derivatives_are_those_of_ad():
    ocp, *_ = cart_pole(4)
    for method in ("hermite_simpson", "collocation", "rk4"):
        assembly = ocp.solve(method=method, raises=False, solver_options={"max_iter": 0}).transcribed.assembly
        _equal_to_ad(assembly)


def _equal_to_ad(assembly):
    x, p, f, g = (assembly.nlp[k] for k in ("x", "p", "f", "g"))
    lam_f, lam_g = assembly.parts["lam_f"], assembly.parts["lam_g"]
    H = ca.triu(ca.hessian(lam_f * f + ca.dot(lam_g, g), x)[0])
    expected = ca.Function("ad", [x, p, lam_f, lam_g], [ca.gradient(f, x), ca.jacobian(g, x), H])
    made = ca.Function("made", [x, p, lam_f, lam_g], [assembly.parts[k] for k in ("gradient", "jacobian", "exact")])
    rng = np.random.default_rng(0)
    at = [rng.normal(size=y.numel()) for y in (x, p, lam_f, lam_g)]
    for a, b in zip(made(*at), expected(*at), strict=True):
        assert np.abs(np.array(a) - np.array(b)).max() < 1e-9 * max(1, np.abs(np.array(b)).max())


def test_rows_that_are_left_out_and_several_kinds():
    a = kind(
        "a",
        2,
        1,
        lambda x, u, p, s: {"next": x * u + p, "rows": ca.vertcat(x[0] * u, x[1] ** 3), "cost": s * u**2},
        1,
        1,
    )
    b = kind("b", 2, 0, lambda x, u, p, s: {"rows": ca.sin(x), "residuals": x - p}, 1, 1)
    keep = np.array([[True, False], [False, True], [True, True]])
    assembly = assemble([Group(a, 3, keep), Group(b, 1)], n_p=1, n_s=1)
    assert assembly.size == (3 * 3 + 2, 3 * 2 + 4 + 2)
    _equal_to_ad(assembly)
    with pytest.raises(od.ShapeError, match="no stage is behind"):
        assemble([Group(a, 3)], n_p=1, n_s=1)


@pytest.mark.slow
def test_gauss_newton_finds_the_same():
    arm = od.robots.panda()
    q0, q1 = np.array([0, -0.8, 0, -2.4, 0, 1.6, 0.8]), np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.8, 0.6])
    found = {}
    for hessian in ("exact", "gauss_newton"):
        ocp = od.Problem(10, 0.4)
        q, v, dv = ocp.chain("q", 7, 2, guess=[lambda s: q0 + s * (q1 - q0), 0.0, 0.0])
        tau = od.function(arm, "inverse_dynamics", derivatives="analytic")(q, v, dv)
        ocp.limit(-1, tau / arm.limit("effort"), 1)
        ocp.start({q: q0, v: 0})
        ocp.minimize(squares=ca.vertcat(q - q1, 0.05 * tau / arm.limit("effort")))
        found[hessian] = ocp.solve(hessian=hessian)
    assert abs(found["gauss_newton"].objective - found["exact"].objective) < 1e-6


def test_limited_memory_finds_the_same():
    ocp, *_ = cart_pole(10)
    exact, limited = (ocp.solve(method="trapezoidal", hessian=h) for h in ("exact", "limited_memory"))
    assert limited.objective == pytest.approx(exact.objective, rel=1e-5)
    assert limited.iterations > exact.iterations


def test_chains_go_on_in_the_next_phase():
    """Two phases of half the nodes and time are the problem of one."""

    def solved(phases):
        ocp = od.Problem(20 // phases, 1.0 / phases)
        q, v, a, jerk = ocp.chain("q", 2, 3, guess=lambda s: s)
        for number in range(phases):
            if number:
                ocp.phase(20 // phases, 1.0 / phases)
            ocp.minimize(integral=ca.sumsqr(jerk))
        ocp.start({q: 0, v: 0, a: 0})
        ocp.goal({q: [1, -2], v: 0, a: 0})
        return ocp.solve(), q

    one, q1 = solved(1)
    two, q2 = solved(2)
    assert two.objective == pytest.approx(one.objective, rel=1e-9)
    assert np.abs(one[q1] - two[q2]).max() < 1e-9


def test_between_is_what_the_polynomial_of_the_trajectory_says():
    robot = od.robots.planar_2r()
    ocp = od.Problem(6, 1.2)
    x = ocp.chain("q", 2, 3, guess=lambda s: s)
    ocp.minimize(integral=ca.sumsqr(x[3]))
    ocp.start({x[0]: 0, x[1]: 0, x[2]: 0})
    ocp.goal({x[0]: [0.5, -1], x[1]: 0, x[2]: 0})
    found = ocp.solve()
    motion = found.trajectory(x, robot)
    assert motion.duration == pytest.approx(1.2)
    assert motion.continuity == 2
    inside = motion.sample(motion.t[:-1] + 0.3 * np.diff(motion.t))
    for mine, theirs in zip(ocp.between(x, 0.3)[:3], (inside.q, inside.v, inside.dv), strict=True):
        assert np.abs(found[mine] - theirs).max() < 1e-12
    with pytest.raises(od.ShapeError, match="2 coordinates for panda"):
        found.trajectory(x, od.robots.panda())
    plain = found.trajectory(x)  # of no robot
    assert np.array_equal(plain.pieces, motion.pieces)
    assert plain.joints == ("1", "2")
    assert max(plain.jumps().values()) < 1e-9
    assert plain.info["iterations"] == found.iterations
    assert plain.sample(0.1).q.shape == (13, 2)
    with pytest.raises(od.ModelError, match="torques need the robot"):
        _ = plain.tau


def test_free_time_phases_and_joins():
    """A mass brought to rest after 1 m, its velocity halved on the way: known times of bang-bang motions."""
    ocp = od.Problem(20, (0.1, 5.0))
    x, v, u = ocp.state("x", guess=lambda s: s), ocp.state("v", lower=-9, upper=9), ocp.control("u", lower=-1, upper=1)
    for last in (False, True):
        if last:
            ocp.phase(20, (0.1, 5.0))
        ocp.rate(x, v)
        ocp.rate(v, u)
        ocp.minimize(terminal=ocp.duration)
        if not last:
            ocp.join(v, v / 2)
            ocp.limit(-9, x, 1)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    found = ocp.solve()
    # up to V, down to w, which is halved, then to rest: 2 V - w / 2 in time, V^2 - 3/8 w^2 = 1; best with w = 2/3 V
    assert np.sqrt(10 / 3) - 1e-6 < found.duration < np.sqrt(10 / 3) + 1e-2
    assert found.duration == pytest.approx(sum(found.durations))


def test_warm_start_and_parameters():
    ocp = od.Problem(20, 1.0)
    x, v, u = ocp.chain("x", 1, 2)
    target = ocp.parameter("target")
    ocp.start({x: 0, v: 0})
    ocp.goal({x: target, v: 0})
    ocp.minimize(integral=u**2)
    first = ocp.solve(parameters={target: 1.0})
    again = ocp.solve(parameters={"target": 1.0}, initial=first)
    assert again.iterations <= first.iterations
    assert abs(again.objective - first.objective) < 1e-8
    assert abs(first[x][-1, 0] - 1) < 1e-8
    twice = ocp.solve(parameters={target: 2.0}, initial=first)
    assert twice.objective == pytest.approx(4 * first.objective, rel=1e-6)
    with pytest.raises(od.ShapeError, match="target"):
        ocp.solve()


def test_ends_can_be_changed_between_solutions():
    ocp = od.Problem(10, 1.0)
    x, v, u = ocp.chain("x", 1, 2)
    ocp.start({x: 0, v: 0})
    ocp.minimize(integral=u**2)
    costs = []
    for goal in (1.0, 2.0):
        ocp.goal({x: goal, v: 0})
        costs.append(ocp.solve().objective)
    assert costs[1] == pytest.approx(4 * costs[0], rel=1e-6)


def test_opti_finds_the_same():
    ocp, *_ = cart_pole(20)
    found = ocp.solve(method="hermite_simpson")
    made = found.transcribed
    opti = made.assembly.opti({**made.bounds, "x0": made.guess(None), "p": made.parameters({})})
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    assert opti.solve().value(opti.f) == pytest.approx(found.objective, rel=1e-6)


@pytest.mark.parametrize(
    "wrong, error, words",
    [
        (lambda o, q, v, u: o.rate(u, 0), od.UnknownName, "state of the problem"),
        (lambda o, q, v, u: o.rate(q, ca.MX.zeros(3)), od.ShapeError, "expected 2"),
        (lambda o, q, v, u: o.state("q", 2), od.ShapeError, "already"),
        (lambda o, q, v, u: o.limit(1, q, -1), od.LimitError, "above"),
        (lambda o, q, v, u: o.start({q: [5, 0]}), od.LimitError, "outside its bounds"),
        (lambda o, q, v, u: o.goal({u: 0}) or o.solve(), od.OrderError, "controls"),
        (lambda o, q, v, u: o.solve(method="magic"), od.UnknownName, "magic"),
        (lambda o, q, v, u: o.solve(hessian="none"), od.UnknownName, "none"),
        (lambda o, q, v, u: o.state("z") is None or o.solve(), od.OrderError, "'z'"),
        (lambda o, q, v, u: od.Problem(0, 1.0), od.ShapeError, "nodes"),
        (lambda o, q, v, u: od.Problem(5, -1.0), od.ShapeError, "duration"),
    ],
)
def test_mistakes_are_named(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong(*cart_pole(5))


def test_a_spline_and_taylor_coefficients_are_the_same_motions():
    """Both span the splines with equal knots: with bounds that do not bind, the same optimum."""
    found = {}
    for basis in ("taylor", "b_spline"):
        ocp = od.Problem(12, 1.5)
        q, dq, ddq, jerk = ocp.chain("q", 2, 3, basis=basis, guess=lambda s: [s, -s])
        ocp.start({q: [0, 0], dq: 0, ddq: 0})
        ocp.goal({q: [1, -1], dq: 0, ddq: 0})
        ocp.minimize(integral=ca.sumsqr(jerk))
        solution = ocp.solve()
        found[basis] = solution.objective, solution[q], solution[ddq]
    (a, *x), (b, *y) = found.values()
    assert a == pytest.approx(b, rel=1e-7)
    assert all(np.abs(i - j).max() < 1e-6 for i, j in zip(x, y, strict=True))


def test_bounds_of_a_spline_hold_between_nodes():
    ocp = od.Problem(15, (0.2, 5.0))
    q, dq, ddq, jerk = ocp.chain("q", 1, 3, basis="b_spline", bounds=(1.0, 4.0, 60.0), guess=lambda s: s)
    ocp.start({q: 0, dq: 0, ddq: 0})
    ocp.goal({q: 1, dq: 0, ddq: 0})
    ocp.minimize(terminal=ocp.duration)
    found = ocp.solve()
    h = found.duration / 15
    s = np.linspace(0, h, 20)[:, None]
    v = found[dq][:-1, 0] + found[ddq][:-1, 0] * s + found[jerk][:, 0] * s**2 / 2
    a = found[ddq][:-1, 0] + found[jerk][:, 0] * s
    assert np.abs(v).max() < 1 + 1e-6
    assert np.abs(a).max() < 4 + 1e-6
    assert np.abs(found[jerk]).max() < 60 + 1e-6
    assert found.duration > 1.0


def test_inverse_and_forward_transcription_are_the_same_problem():
    """By Hermite-Simpson exactly: accelerations and torques at the same points, each from the other."""
    arm, found = od.robots.planar_2r(), {}
    for transcription in ("inverse", "forward"):
        ocp = od.Problem(20, 0.4)
        q, v, dv, tau = ocp.rigid_body(arm, transcription, guess=lambda s: [s, -0.5 * s], scale=(1, 1, 10))
        ocp.start({q: [0, 0], v: 0})
        ocp.goal({q: [1, -0.5], v: 0})
        ocp.minimize(integral=ca.sumsqr(tau) / 100)
        solution = ocp.solve(method="hermite_simpson")
        found[transcription] = solution.objective, solution[dv], solution[tau]
    for a, b in zip(*found.values(), strict=True):
        assert np.allclose(a, b, rtol=1e-5, atol=1e-4)
    with pytest.raises(od.UnknownName, match="sideways"):
        od.Problem(3, 1.0).rigid_body(arm, "sideways")


def peak_of_a_problem(nodes, derivatives):
    """[MB], to be asked in a process of its own."""
    ocp = od.Problem(nodes, 1.0)
    q, v, dv, tau = ocp.rigid_body(od.robots.panda(), "forward", derivatives=derivatives, guess=0.3)
    ocp.minimize(integral=ca.sumsqr(tau))
    ocp.start({q: 0.3, v: 0})
    ocp.goal({q: 0.3 + 0.1 * np.arange(7) / 7, v: 0})
    found = ocp.solve(method="euler", solver_options={"max_iter": 3}, raises=False)
    assert found.iterations == 3
    return memory.peak()


@pytest.mark.slow
@pytest.mark.skipif(memory.peak() is None, reason="the system does not tell the peak of memory")
@pytest.mark.parametrize("derivatives", ["analytic", "ad"])
def test_memory_of_exact_hessians(derivatives):
    """Of forward dynamics as constraint: stages are differentiated once, so memory hardly grows with the nodes."""
    few, many = (memory.fresh(peak_of_a_problem, nodes=n, derivatives=derivatives) for n in (50, 200))
    assert few < 300  # [MB]
    assert many - few < 60


def test_options_are_told_apart_by_all_that_they_hold():
    """Long arrays and Functions of one name print alike; a Function that calls Python is its own kind each time."""
    x, one, other = ca.SX.sym("x"), np.zeros(5000), np.eye(1, 5000, 2500)[0]
    twins = [ca.Function("f", [x], [k * x]) for k in (1, 2)]
    for a, b in ((one, other), twins):
        assert repr({"option": a}) == repr({"option": b})
        assert _told({"option": a}) != _told({"option": b})
        assert _told({"option": a}) == _told({"option": a})
    assert _told({"option": len}) == _told({"option": len})
    doubled = _Doubled()
    several = doubled.mapaccum(2)  # what calls it cannot be digested
    assert _told({"option": several}) != _told({"option": several})


class _Doubled(ca.Callback):
    def __init__(self):
        super().__init__()
        self.construct("doubled", {})

    def eval(self, arguments):
        return [2 * arguments[0]]


def test_a_solution_answers_to_names():
    ocp, q, v, u = cart_pole(5)
    found = ocp.solve(check="off")
    assert np.array_equal(found["q"], found[q])
    assert np.array_equal(found["u"], found[u])
    with pytest.raises(od.UnknownName, match="'w'.*available: q, v, u"):
        found["w"]
    with pytest.raises(od.ShapeError, match="expected an expression"):
        found[ca.SX.sym("x")]
