"""A Problem as a casadi.Opti: the same program, the same optimum, and what a user adds to it."""

import contextlib
import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.study import suite

TIGHT = {"tol": 1e-9}


def numbers(value):
    return np.array(ca.DM(value))


def pushed(nodes=10, duration=1.0, **more):
    """(problem, x, v, u) of a mass pushed from rest to rest over a way of 1, at the least integral of u^2 / 2: 6."""
    ocp = od.Problem(nodes, duration, **more)
    x, v, u = ocp.state("x"), ocp.state("v", scale=2.0), ocp.control("u", scale=5.0)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2 / 2)
    return ocp, x, v, u


def of_suite(number):
    module = suite.load(suite.listed()[number])
    variant = getattr(module, "VARIANTS", ({},))[0]
    return module.problem(min(module.NODES, 40), **variant), module.METHOD


def bernstein(mesh="free"):
    ocp = od.Problem(6, (0.2, 5.0), mesh=mesh)
    q = ocp.chain("q", 2, 3, lower=-1, upper=2, bounds=(0.8, 2, 20), basis="bernstein")
    ocp.limit(-1.5, q[2][0] + q[1][1], 1.5, name="sum", at=(0.5,))
    ocp.start({q[0]: [0, 0], q[1]: 0, q[2]: 0})
    ocp.goal({q[0]: [1, 0.4], q[1]: 0, q[2]: 0})
    ocp.minimize(integral=1 + 0.1 * ca.sumsqr(q[2]))  # one optimum alone
    return ocp, "rk4"


def taylor():
    ocp = od.Problem(8, (0.2, 5.0))
    load = ocp.parameter("load")
    q, dq, ddq, jerk = ocp.chain("q", 2, 3, bounds=(0.8, 2, 20), scale=(1.0, 1.0, 5.0, 50.0))
    ocp.limit(-1, ddq * load, 1, name="force", at=(0, 1))
    ocp.start({q: [0, 0], dq: 0, ddq: 0})
    ocp.goal({q: [1, 0.4], dq: 0, ddq: 0})
    ocp.minimize(terminal=ocp.duration)
    return ocp, "rk4"


def spline():
    ocp = od.Problem(10, 2.0)
    q, dq, ddq, _ = ocp.chain("q", 1, 3, bounds=(None, 4, None), basis="b_spline")
    ocp.start({q: 0, dq: 0, ddq: 0})
    ocp.goal({q: 1})
    ocp.minimize(integral=ddq**2)
    return ocp, "rk4"


def arm():
    robot = od.robots.planar_2r()
    ocp = od.Problem(10, 1.0)
    q, v, dv, tau = ocp.rigid_body(robot)
    ocp.limit(-1, tau / 60, 1, name="effort")
    ocp.start({q: [0, 0], v: 0})
    ocp.goal({q: [0.8, -0.4], v: 0})
    ocp.minimize(squares=tau / 20)
    return ocp, "hermite_simpson"


def phases():
    """Two phases of free durations with a variable, a varying parameter and a jump."""
    ocp = od.Problem(5, (0.3, 2.0))
    x, u, a = ocp.state("x"), ocp.control("u", guess=1), ocp.variable("a", lower=0.1, upper=5, guess=3)
    w = ocp.varying("w")
    for number in range(2):
        if number:
            ocp.join(x, x + 0.1)
            ocp.phase(4, (0.3, 2.0))
        ocp.rate(x, a * u)
        ocp.limit(-3, u + w, 3, name="push")
        ocp.minimize(integral=u**2 + 1 + w**2)
    ocp.minimize(terminal=a**2)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    return ocp, "collocation"


def body():
    robot = od.robots.quadruped()
    at, feet = robot.neutral(), ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
    at[7:] = np.ravel([(0, hip, -2 * hip) for hip in (0.75, 0.75, -0.75, -0.75)])
    ocp, weight = od.Problem(2, 0.1), 9.81 * robot.total_mass
    made = ocp.contact_body(robot, feet, guess=[at, 0, 0, np.tile([0, 0, weight / 4], 4)], scale=(1, 5, 50, weight / 4))
    ocp.limit(0, made.tau[:6] / 10, 0)
    ocp.minimize(squares=ca.vertcat(made.tau[6:] / 150, 0.01 * made.dv))
    ocp.start({made.q: at, made.v: 0})
    ocp.goal({made.q[6]: at[6] - 0.01})
    return ocp, "euler"


def uneven(method):
    """Free durations of two phases on meshes of unequal intervals."""
    ocp = od.Problem(4, (0.3, 2.0), mesh=[0, 0.1, 0.3, 0.7, 1])
    x, v, u = ocp.state("x"), ocp.state("v", scale=2.0), ocp.control("u", lower=-4, upper=4)
    for number in range(2):
        if number:
            ocp.phase(3, (0.3, 2.0), mesh=[0, 0.2, 0.4, 1])
        ocp.rate(x, v)
        ocp.rate(v, u - 0.3 * v * ca.fabs(v))
        ocp.minimize(integral=1 + u**2 / 20)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    return ocp, method


PARAMETERS = {"taylor": {"load": 0.9}, "phases": {"w": np.linspace(-0.2, 0.2, 10)[:, None]}}
KINDS = {
    "bernstein": bernstein,
    "bernstein uniform": lambda: bernstein("uniform"),
    "taylor": taylor,
    "spline": spline,
    "arm": arm,
    "phases": phases,
    "body": body,
    "reusable": lambda: (pushed(duration=(0.5, 1.0), reusable=True)[0], "rk4"),
    "uneven radau": lambda: uneven("radau"),
    "uneven gauss": lambda: uneven("gauss"),
    "uneven implicit": lambda: uneven("implicit"),
    **{f"suite {k}": (lambda k=k: of_suite(k)) for k in (1, 6, 11, 17, 21, 30, 33, 41, 43)},
}


@pytest.mark.sample("suite 17", "phases")
@pytest.mark.parametrize("kind", KINDS)
def test_opti_finds_what_solve_finds_in_as_many_iterations(kind):
    ocp, method = KINDS[kind]()
    how = {"method": method, "parameters": PARAMETERS.get(kind, {}), "solver_options": TIGHT}
    theirs = ocp.solve(**how, check="off")
    opti, symbols = ocp.opti(**how)
    sol = opti.solve()
    ours = ocp.solution(sol)
    assert ours.iterations == theirs.iterations
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-9, abs=1e-12)
    assert ours.unknowns == pytest.approx(theirs.unknowns, rel=1e-6, abs=1e-7)
    for mine, right in zip(ours.multipliers, theirs.multipliers, strict=True):
        assert mine == pytest.approx(right, rel=1e-4, abs=1e-5 * max(1.0, np.abs(right).max(initial=0)))
    assert (ours.success, ours.status) == (theirs.success, theirs.status)
    assert ours.check().ok() == theirs.check().ok()
    assert numbers(sol.value(symbols.t)).ravel() == pytest.approx(ours.t, abs=1e-9)
    assert [float(sol.value(ca.MX(T))) for T in symbols.durations] == pytest.approx(ours.durations)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_symbols_have_the_values_of_the_solution(kind):
    ocp, method = KINDS[kind]()
    opti, symbols = ocp.opti(method=method, parameters=PARAMETERS.get(kind, {}))
    sol = opti.solve()
    found = ocp.solution(sol)
    held = [v.name for k, v in enumerate(ocp.description.states) if all(k in p.held(ocp.description.states)
                                                                        for p in ocp.description.phases)]  # fmt: skip
    for v in (*ocp.description.states, *ocp.description.controls):
        right = found[v.name].T
        value = numbers(sol.value(symbols[v.name])).reshape(symbols[v.name].shape)
        assert value == pytest.approx(right[:, :1] if v.name in held else right, abs=1e-9)
        assert symbols[v.symbol].shape == symbols[v.name].shape
    for name, expression in ocp.description.named.items():
        value = numbers(sol.value(symbols[name])).reshape(symbols[name].shape)
        assert value == pytest.approx(found[expression].T, rel=1e-9, abs=1e-9)
    assert set(symbols) >= {v.name for v in ocp.description.states}
    assert len(symbols) == len(list(symbols))


def added_functions(opti):
    """The Functions that ipopt asks for, of the program of an Opti as it is now."""
    with contextlib.suppress(RuntimeError):  # whether it converges does not matter
        opti.solve_limited()
    return opti.advanced.casadi_solver


def same_derivatives(opti, seed=0):
    """Values, gradient, Jacobian and Hessian of the program of an Opti against those that nlpsol makes by AD."""
    x, p = opti.x, opti.p
    ours = added_functions(opti)
    name, outer, inner = opti.program.solver
    plain = ca.nlpsol("plain", name, {"x": x, "p": p, "f": opti.f, "g": opti.g}, {**outer, name: inner})
    rng, guess = np.random.default_rng(seed), numbers(opti.debug.value(x, opti.initial())).reshape(-1, 1)
    for k in ("nlp_f", "nlp_g", "nlp_jac_g", "nlp_grad_f", "nlp_hess_l", "nlp_grad"):
        mine, theirs = ours.get_function(k), plain.get_function(k)
        assert mine.name_in() == theirs.name_in()
        given = [rng.uniform(0.3, 1, theirs.size_in(i)) for i in range(theirs.n_in())]
        given[0] = guess + 0.1 * given[0]
        for i, (a, b) in enumerate(zip(mine.call(given), theirs.call(given), strict=True)):
            if theirs.name_out(i) == "grad_gamma_p":
                continue  # is not asked for
            assert a.shape == b.shape
            assert np.allclose(np.array(a), np.array(b), rtol=1e-9, atol=1e-9), (k, theirs.name_out(i))


def extended(ocp, method, **more):
    """An Opti with two constraints, a variable, a parameter and another term of the objective added."""
    opti, symbols = ocp.opti(method=method, **more)
    state = symbols[ocp.description.states[0].name]
    y, q = opti.variable(2), opti.parameter()
    opti.set_value(q, 0.7)
    opti.set_initial(y, 0.5)
    opti.subject_to(ca.sumsqr(state[:, 2]) * y[0] <= 9 + q)  # not linear
    opti.subject_to(opti.bounded(-9, y[1] + ca.sin(state[0, 1]), 9))
    opti.subject_to(y[0] >= -2)  # bounds
    opti.subject_to(state[0, -2] <= 50)
    opti.minimize(opti.f + q * ca.sumsqr(y - 1) + 0.1 * ca.cos(state[0, -2]) * y[1])
    return opti, symbols


@pytest.mark.sample("bernstein", "suite 11", "suite 43")
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_what_was_added_are_those_of_ad(kind):
    ocp, method = KINDS[kind]()
    opti, _ = extended(ocp, method, parameters=PARAMETERS.get(kind, {}))
    assert "cache" not in opti.program.solver[1]
    same_derivatives(opti)


@pytest.mark.sample(1)
@pytest.mark.parametrize("change", ["nothing", "constraint", "objective", "no bounds", "twice"])
def test_derivatives_after_a_change(change):
    ocp, method = arm()
    opti, symbols = ocp.opti(method=method)
    if change == "constraint":
        opti.subject_to(symbols["tau"][0, 4] ** 2 <= 3)
    elif change == "objective":
        opti.minimize(ca.sumsqr(symbols["v"]) ** 2)
    elif change == "no bounds":  # of nlpsol: those of unknowns are rows then
        opti.solver("ipopt", {"print_time": False, "detect_simple_bounds": False}, {"print_level": 0, "sb": "yes"})
        opti.subject_to(symbols["q"][0, 3] <= 3)
    elif change == "twice":
        opti.solve()
        opti.subject_to(symbols["q"][0, 3] * symbols["q"][1, 3] <= 3)
        opti.solve()
        opti.minimize(2 * opti.f)
    same_derivatives(opti)


def called(opti):
    """Names of the Functions in the Hessian of the Lagrangian that a solve of an Opti has used."""
    return {f.name().split("_", 1)[-1] for f in added_functions(opti).get_function("nlp_hess_l").find_functions()}


@pytest.mark.slow
def test_derivatives_are_those_of_the_stages_unless_they_cannot():
    ocp, method = arm()
    opti, symbols = ocp.opti(method=method)
    of_stages = called(opti)
    assert "phase0_hessian" in of_stages
    opti.subject_to(symbols["q"][0, 3] * symbols["q"][1, 3] <= 3)
    opti.minimize(opti.f + symbols["v"][0, 4] ** 2)
    assert "phase0_hessian" in called(opti)
    opti.solver("ipopt", {"print_time": False, "expand": False}, {"print_level": 0, "sb": "yes"})
    assert "phase0_hessian" in called(opti)
    opti.minimize(symbols["v"][0, 4] ** 2)
    assert "phase0_hessian" in called(opti)
    kept = called(opti.copy())
    assert "phase0_hessian" in kept
    opti.subject_to()
    opti.subject_to(symbols["v"][0, 4] >= 1)
    assert "phase0_hessian" not in called(opti)


def test_rows_of_one_unknown_stay_rows():
    """nlpsol would make bounds of them, and the program would be another one than solve's."""
    ocp, x, v, u = pushed()
    ocp.limit(-1, v, 1.6)
    theirs = ocp.solve(method="rk4", solver_options=TIGHT)
    opti, _ = ocp.opti(method="rk4", solver_options=TIGHT)
    ours = ocp.solution(opti.solve())
    made = theirs.transcribed.assembly
    simple = np.array(added_functions(opti).stats()["detect_simple_bounds_is_simple"])
    assert not simple[: made.size[1]].any()
    assert simple[made.size[1] :].all()
    assert ours.iterations == theirs.iterations
    assert ours.multipliers[1] == pytest.approx(theirs.multipliers[1], abs=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation", "trapezoidal"])
def test_an_active_constraint_is_as_a_limit_of_the_problem(method):
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti(method=method, solver_options=TIGHT)
    free = opti.solve()
    opti.subject_to(ca.vec(symbols[v]) <= 1.2)  # bounds
    opti.subject_to(ca.sumsqr(symbols["u"][:, 0]) <= 16)  # not linear
    found = ocp.solution(opti.solve())
    other, _, v, u = pushed()
    other.limit(-np.inf, v, 1.2)
    other.at({u**2: (-np.inf, 16)}, fraction=0)
    right = other.solve(method=method, solver_options=TIGHT)
    assert found.objective == pytest.approx(right.objective, rel=1e-7)
    assert found.objective > 1.05 * free.value(opti.f)
    assert found["v"].max() == pytest.approx(1.2, abs=1e-6)
    assert found.unknowns == pytest.approx(right.unknowns, abs=1e-4)
    assert found.check().ok()


def test_another_objective_and_more_of_it():
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti(method="hermite_simpson", solver_options=TIGHT)
    opti.minimize(opti.f + 10 * symbols[x][0, 5] ** 2)
    more = ocp.solution(opti.solve())
    halves = od.Problem(5, 0.5)
    x, v, u = halves.state("x"), halves.state("v"), halves.control("u")
    middle = halves.variable("middle")
    for number in range(2):
        if number:
            halves.phase(5, 0.5)
            halves.at({x - middle: 0}, fraction=0)
        halves.rate(x, v)
        halves.rate(v, u)
        halves.minimize(integral=u**2 / 2)
    halves.minimize(terminal=10 * middle**2)
    halves.start({x: 0, v: 0})
    halves.goal({x: 1, v: 0})
    right = halves.solve(method="hermite_simpson", solver_options=TIGHT)
    # said in the problem, as a variable that x has half way
    assert more.objective == pytest.approx(right.objective, rel=1e-6)
    assert more.objective_changed
    assert more.check().ok()  # costs of the problem are not compared with another objective
    opti.minimize(ca.sumsqr(symbols["v"] - 1))  # the problem's are gone
    other = ocp.solution(opti.solve())
    assert other.objective == pytest.approx(float(np.sum((other["v"] - 1) ** 2)), abs=1e-6)
    assert other.objective < 3


def test_what_a_changed_objective_leaves_of_the_estimates(tmp_path):
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti(method="hermite_simpson")
    opti.minimize(opti.f + 10 * symbols[x][0, 5] ** 2)
    found = ocp.solution(opti.solve())
    # what was added would count as an error of the integration
    assert np.isnan([found.error.objective, found.error.integration, *found.error.losses[0]]).all()
    assert np.isfinite(found.error.states)
    with pytest.raises(od.OrderError, match="objective were changed"):
        found.two_meshes()
    found.save(tmp_path / "found.npz")
    there = ocp.load(tmp_path / "found.npz")
    assert there.objective_changed
    assert not there.constraints_changed
    assert there.check().ok()


def test_constraints_that_were_added_are_remembered(tmp_path):
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti(method="hermite_simpson")
    assert not ocp.solution(opti.solve()).constraints_changed
    opti.subject_to(symbols[v] <= 1.2)
    found = ocp.solution(opti.solve())
    found.save(tmp_path / "found.npz")
    for solution in (found, ocp.load(tmp_path / "found.npz")):
        assert solution.constraints_changed
        with pytest.raises(od.OrderError, match="constraints were changed"):
            solution.two_meshes()


@pytest.mark.slow
def test_parameters_and_guesses_by_symbols():
    ocp, method = taylor()
    opti, symbols = ocp.opti(method=method, parameters={"load": 0.9}, solver_options=TIGHT)
    opti.set_value(symbols["load"], 2.0)
    opti.set_initial(symbols["q"], np.vstack([np.linspace(0, 1, 9), np.linspace(0, 0.4, 9)]))
    opti.set_initial(symbols[ocp.duration], 3.0)
    assert numbers(opti.debug.value(symbols["q"], opti.initial()))[0] == pytest.approx(np.linspace(0, 1, 9))
    found = ocp.solution(opti.solve())
    right = ocp.solve(method=method, parameters={"load": 2.0}, solver_options=TIGHT)
    assert found.objective == pytest.approx(right.objective, rel=1e-6)
    assert np.abs(found.parameters - right.parameters).max() == 0
    varying, method = phases()
    opti, symbols = varying.opti(method=method, parameters=PARAMETERS["phases"])
    assert symbols["w"].shape == (1, 10)
    assert symbols["a"].shape == (1, 1)
    opti.set_value(symbols["w"], 0.1)
    found = varying.solution(opti.solve())
    assert found.objective == pytest.approx(varying.solve(method=method, parameters={"w": 0.1}).objective, rel=1e-6)


@pytest.mark.slow
def test_limits_by_their_names():
    ocp, method = bernstein()
    opti, symbols = ocp.opti(method=method)
    sol = opti.solve()
    value = numbers(sol.value(symbols["sum"])).ravel()
    assert value.size == 6
    found = ocp.solution(sol)
    chain = found.trajectory([ocp.description.named[k] for k in ("q", "d1q", "d2q", "d3q")])
    _, v, a, _ = chain.sample((found.t[:-1] + found.t[1:]) / 2).derivatives[:4]
    assert value == pytest.approx(a[:, 0] + v[:, 1], abs=1e-9)
    ocp, method = phases()
    opti, symbols = ocp.opti(method=method, parameters=PARAMETERS["phases"])
    sol = opti.solve()
    assert numbers(sol.value(symbols["push"])).ravel() == pytest.approx(
        (ocp.solution(sol)["u"] + PARAMETERS["phases"]["w"][:-1]).ravel(), abs=1e-9
    )


def test_a_failed_solve_leads_back():
    ocp, method = of_suite(1)
    opti, symbols = ocp.opti(method=method, solver_options={"max_iter": 1})
    with pytest.raises(RuntimeError, match="Maximum_Iterations_Exceeded"):
        opti.solve()
    for one in (opti.debug, opti, opti.advanced):
        found = ocp.solution(one)
        assert (found.success, found.status, found.iterations) == (False, "Maximum_Iterations_Exceeded", 1)
    theirs = ocp.solve(method=method, solver_options={"max_iter": 1}, raises=False)
    assert found.unknowns == pytest.approx(theirs.unknowns)
    assert not found.check().ok()
    limited = ocp.solution(opti.solve_limited())
    assert limited.status == "Maximum_Iterations_Exceeded"


def test_limits_of_time_stop_it():
    ocp, *_ = pushed()
    opti, _ = ocp.opti()
    with od.deadline(1e-6), pytest.raises(RuntimeError, match="Solver failed"):
        opti.solve()
    assert ocp.solution(opti.debug).status == "time_limit"
    assert ocp.solution(opti.solve()).success


@pytest.mark.slow
def test_copies_are_changed_alone():
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti(method="hermite_simpson", solver_options=TIGHT)
    copy = opti.copy()
    copy.subject_to(ca.vec(symbols["v"]) <= 1.2)
    assert opti.solve().value(opti.f) == pytest.approx(6, rel=1e-6)
    tight = copy.solve().value(copy.f)
    assert tight > 6.1
    for one in (opti.advanced, opti.debug, opti.solve().opti):
        one.subject_to(ca.vec(symbols["v"]) <= 1.2)
        assert one.solve().value(one.f) == pytest.approx(tight, rel=1e-7)
    opti.subject_to(ca.vec(symbols["v"]) <= 1.2)
    assert opti.solve().value(opti.f) == pytest.approx(tight, rel=1e-7)
    same_derivatives(opti)
    opti.subject_to()  # none of the problem's is left: all by AD
    opti.minimize(ca.sumsqr(symbols["v"] - 1))
    assert opti.solve().value(opti.f) == pytest.approx(0, abs=1e-9)
    again, symbols = ocp.opti(method="hermite_simpson", solver_options=TIGHT)
    f = again.to_function("f", [again.x], [again.f])
    again.subject_to(ca.vec(symbols["v"]) <= 1.2)
    g = again.to_function("g", [again.x], [again.f])
    assert float(f(0)) == pytest.approx(6, rel=1e-6)
    assert float(g(0)) == pytest.approx(tight, rel=1e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["sqpmethod", "fatrop"])
def test_another_solver(solver):
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti()
    options = {"print_time": False}
    if solver == "sqpmethod":
        options |= {"qpsol": "qrqp", "print_header": False, "print_iteration": False, "print_status": False}
        options["qpsol_options"] = {"print_iter": False, "print_header": False, "print_info": False}
    opti.solver(solver, options, {"print_level": 0} if solver == "fatrop" else {})
    opti.subject_to(symbols["u"][0, 0] ** 2 <= 30)
    assert ocp.solution(opti.solve()).objective == pytest.approx(ocp.solve().objective, rel=1e-5)


def test_scaling_of_a_user_is_heeded():
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti(solver_options=TIGHT)
    try:
        opti.minimize(opti.f, 7.0)
    except (NotImplementedError, TypeError):
        pytest.skip("this CasADi scales nothing")
    assert opti.solve().value(opti.f) == pytest.approx(ocp.solve(solver_options=TIGHT).objective, rel=1e-6)


def test_callbacks_of_a_user_are_called():
    ocp, *_ = pushed()
    opti, symbols = ocp.opti()
    seen = []
    opti.callback(lambda i: seen.append((i, opti.debug.value(opti.f))))
    found = ocp.solution(opti.solve())
    assert len(seen) == found.iterations + 1
    assert found.objective == pytest.approx(ocp.solve().objective)


@pytest.mark.slow
def test_warm_start_and_another_hessian():
    ocp, method = of_suite(1)
    known = ocp.solve(method=method)
    opti, _ = ocp.opti(method=method, initial=known)
    assert ocp.solution(opti.solve()).iterations < known.iterations
    opti, _ = ocp.opti(method=method, hessian="limited_memory")
    again = ocp.solve(method=method, hessian="limited_memory")
    found = ocp.solution(opti.solve())
    assert found.iterations == again.iterations


@pytest.mark.sample(2)
@pytest.mark.parametrize("changed", [False, True])
def test_a_solution_can_be_sent_and_saved(changed, tmp_path):
    ocp, *_ = pushed()
    opti, symbols = ocp.opti(method="hermite_simpson")
    if changed:
        opti.minimize(opti.f + 10 * symbols["x"][0, 5] ** 2)
    found = ocp.solution(opti.solve())
    found.save(tmp_path / "found.npz")
    for there in (pickle.loads(pickle.dumps(found)), ocp.load(tmp_path / "found.npz")):
        assert np.abs(there["x"] - found["x"]).max() == 0
        assert there.objective == found.objective
        assert there.objective_changed is changed
        assert there.check().ok()
        estimated = bool(np.isfinite(there.error.objective))  # of the costs of the problem
        assert estimated is not changed


def test_what_is_refused():
    ocp, x, v, u = pushed()
    opti, symbols = ocp.opti()
    with pytest.raises(od.ShapeError, match="has not been solved yet"):
        ocp.solution(opti)
    sol = opti.solve()
    with pytest.raises(od.ShapeError, match="another Problem"):
        pushed()[0].solution(sol)
    for wrong in (3, ca.Opti(), None, ocp.solve()):
        with pytest.raises(od.ShapeError, match="solution: got .*expected what solve"):
            ocp.solution(wrong)
    with pytest.raises(od.UnknownName, match="symbol or limit of the problem"):
        symbols["y"]
    with pytest.raises(od.UnknownName, match="symbol of the problem"):
        symbols[ca.MX.sym("y")]
    with pytest.raises(od.UnknownName):
        ocp.opti(method="rk5")
    with pytest.raises(od.ShapeError, match="initial"):
        ocp.opti(initial=3)
    with pytest.raises(od.UnknownName, match="hessian"):
        ocp.opti(hessian="none")
    with pytest.raises(RuntimeError, match="declared outside of Opti"):
        opti.subject_to(x <= 1)  # a symbol of the problem, not of the Opti
    other, _ = taylor()
    with pytest.raises(od.ShapeError, match="has no value"):
        other.opti()
