"""Derivatives of stages: those of AD of the same stage, in no more instructions than AD with cse takes."""

import importlib.util
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from obstacles import point_robot

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.optimal_control import stage_kinds, stages
from oc_dyn.optimal_control.registered_calls import unrolled
from oc_dyn.study.suite import listed, load

FOLDER = Path(__file__).resolve().parents[2] / "problems"
FUNCTIONS = ("value", "jacobian", "cost", "gradient", "hessian", "gauss_newton")
PANDA_LIMITS = {"v": 2.0, "dv": 10.0, "d2v": 500.0, "tau": 200.0, "dtau": 1000.0}


class Enough(BaseException):
    """All stages of a problem are built."""


def stages_of(run, monkeypatch):
    """Kinds of the stages that the first program of run() is made of; nothing is solved."""
    made, kind = [], stage_kinds.kind

    def recorded(name, *rest):
        made.append(kind(name, *rest))
        if name == "end":
            raise Enough
        return made[-1]

    monkeypatch.setattr(stage_kinds, "kind", recorded)
    with pytest.raises(Enough):
        run()
    monkeypatch.setattr(stage_kinds, "kind", kind)
    return made


def by_ad(kind):
    """{name: ([inputs], ways to write it, by AD)} of a kind's Jacobian and Hessian, what is twice in them merged."""
    z, p, s = kind.value.sx_in()
    following, rows = kind.value.call([z, p, s])
    cost, y = kind.cost.call([z, p, s])[0], ca.vertcat(following, rows)
    lam = kind.hessian.sx_in()[3:]
    gradient = ca.gradient(lam[0] * cost + ca.dot(lam[1], following) + ca.dot(lam[2], rows), z)
    reverse = {"helper_options": {"enable_forward": False}}
    J = [ca.jacobian(y, z, how) for how in ({}, reverse)]
    H = [ca.triu(ca.jacobian(gradient, z, how)) for how in ({}, reverse, {"symmetric": True})]
    return {"jacobian": ([z, p, s], list(map(ca.cse, J))), "hessian": ([z, p, s, *lam], list(map(ca.cse, H)))}


def check(kinds):
    assert kinds
    for kind in kinds:
        for f in (getattr(kind, name) for name in FUNCTIONS):
            assert f.is_a("SXFunction")
            assert not f.find_functions()  # whose instructions would not be counted
        for name, (inputs, ways) in by_ad(kind).items():
            f, counted = getattr(kind, name), [ca.Function("ad", inputs, [y]) for y in ways]
            assert f.n_instructions() <= min(g.n_instructions() for g in counted), (kind.name, name)
            assert_same(f, counted[0])


def assert_same(f, g, seed=0):
    """The same numbers at random points, to 1e-10 of the largest."""
    rng, finite = np.random.default_rng(seed), 0
    for _ in range(4):
        at = [rng.uniform(0.5, 1.5, f.size1_in(k)) for k in range(f.n_in())]
        for got, want in zip(f.call(at), g.call(at), strict=True):
            got, want = got.full(), want.full()
            if np.isfinite(want).all():
                finite += 1
                assert np.abs(got - want).max(initial=0) <= 1e-10 * max(1.0, np.abs(want).max(initial=0)), f.name()
    assert finite


# -- programs there are ----------------------------------------------------------------------------------------------


@pytest.mark.sample(6)
@pytest.mark.parametrize("number", sorted(listed()))
def test_known_optima(number):
    module = load(listed()[number])
    made = module.problem().transcribed(module.METHOD)
    check([g.kind for g in made.groups])


@pytest.mark.few(4)
@pytest.mark.sample("cart_pole_swing_up")
@pytest.mark.parametrize(
    "name",
    [
        *("aerial_manipulator_tracking", "cart_pole_swing_up", "opti_flat_sea_motion", "opti_panda_torque_rate"),
        *("panda_nmpc", "panda_path_following", "panda_pick_and_place", "panda_point_to_point", "quadruped_jump"),
        *("sea_throw", "vsa_stiffness_plan"),
    ],
)
def test_problems(name, monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    check(stages_of(lambda: module.main(["--quick", "--quiet", "--out", str(tmp_path)]), monkeypatch))


def elastic(n, springs=None, **more):
    arm = od.robots.planar_arm(n)
    return el.elastic_robot(arm, springs or [500, 300, 200][:n], motor_inertia=[0.3, 0.2, 0.1][:n], **more)


def elastic_plan(arm, **options):
    n = arm.nv
    given = {"motor_torque": 300.0, "nodes": 12, **options}
    return lambda: el.plan_elastic(
        arm, [-0.6, 0.3, 0.1, -1.2, 0, 1.5, 0][:n], [0.7, -0.9, 0.4, -1, 0.5, 1, 1][:n], **given
    )


def panda_plan(**options):
    panda = od.robots.panda()
    at, to = [0, -0.5, 0, -2, 0, 1.6, 0], [0.5, 0, 0.3, -1.5, 0.2, 1.8, 0.4]
    names = panda.coordinate_names
    return lambda: od.plan_point_to_point(panda, at, to, limits=od.Limits(names, **PANDA_LIMITS), **options)


def cubic(z):
    return 300 * z + 3000 * z**3


PLANS = {
    "one joint": lambda: elastic_plan(elastic(1)),
    "two joints": lambda: elastic_plan(elastic(2), motor_speed=4.0, deflection=0.3),
    "two joints, rate": lambda: elastic_plan(elastic(2), motor_torque_rate=3000.0, interior=0),
    "two joints, AD": lambda: elastic_plan(elastic(2), derivatives="ad"),
    "three joints": lambda: elastic_plan(elastic(3), deflection=0.5),
    "three joints, rate": lambda: elastic_plan(elastic(3), motor_torque_rate=3000.0),
    "nonlinear springs": lambda: elastic_plan(elastic(2, el.NonlinearSpring(cubic))),
    "complete model": lambda: elastic_plan(elastic(2, coupling=[[0, 0.02], [0, 0]])),
    "least loss": lambda: elastic_plan(elastic(2), objective="energy", duration=1.0),
    "variable stiffness": lambda: elastic_plan(elastic(2, el.VariableSpring()), sigma=[500, 300]),
    "elastic Panda": lambda: elastic_plan(
        el.elastic_robot(od.robots.panda(), 5e3, motor_inertia=0.5), interior=1, derivatives="analytic"
    ),
    "Panda, kinematic": lambda: panda_plan(continuity=3, solver_options={"max_iter": 500}),  # joints not apart
    "Panda, torque": lambda: panda_plan(continuity=3, objective="effort", duration=2.0),
    "Panda, points": lambda: panda_plan(continuity=3, objective="effort", duration=2.0, interior=2),
}


@pytest.mark.few(6)
@pytest.mark.sample("two joints")
@pytest.mark.parametrize("name", PLANS)
def test_plans(name, monkeypatch):
    check(stages_of(PLANS[name](), monkeypatch))


# -- another way to the same -----------------------------------------------------------------------------------------


def rigid(transcription):
    ocp = od.Problem(4, (0.5, 2.0))
    q, v, dv, tau = ocp.rigid_body(
        od.robots.panda() if transcription == "forward" else od.robots.chain(3), transcription
    )
    ocp.limit(-1, tau / 50, 1)
    ocp.minimize(integral=ca.sumsqr(tau), squares=ca.vertcat(tau / 10, dv))
    ocp.goal({v: 0})
    return ocp


def contacts():
    robot = od.robots.quadruped()
    ocp = od.Problem(4, 0.3)
    body = ocp.contact_body(robot, ("LF_foot", "RH_foot"), guess=[robot.neutral(), 0, 0, 0])
    ocp.limit(0, body.tau[:6], 0)
    ocp.limit(0, body.next()[3], 0)
    ocp.minimize(squares=ca.vertcat(body.tau[6:] / 150, 0.01 * body.dv))
    return ocp


@pytest.mark.slow
@pytest.mark.parametrize("what", ["inverse", "forward", "contacts"])
def test_graphs_give_the_same(what, monkeypatch):
    """All Functions, against derivatives of the MX graph."""

    def made():
        ocp, method = (contacts(), "euler") if what == "contacts" else (rigid(what), "rk4")
        return [g.kind for g in ocp.transcribed(method).groups]

    here = made()
    monkeypatch.setattr(stages, "unrolled", lambda f: None)
    for one, other in zip(here, made(), strict=True):
        for name in FUNCTIONS:
            assert_same(getattr(one, name), getattr(other, name))


def test_derivatives_of_ones_own_are_kept():
    """A Jacobian registered by the caller, though it is none of the function's instructions."""
    x, out = ca.SX.sym("x"), ca.SX(1, 1)
    own = ca.Function("jac_step", [x, out], [ca.SX(7)])
    step = ca.Function("step", [x], [ca.floor(x)], {"custom_jacobian": own, "jac_penalty": 0, "never_inline": True})
    (z,) = symbols = [ca.MX.sym("z")]
    assert unrolled(ca.Function("f", symbols, [step(z)])) is None
    kind = stages.kind("stage", 1, 0, lambda x, u, p, s: {"next": step(x)}, graph="mx")
    assert float(kind.jacobian(0.3, [], [])) == 7


def test_a_jacobian_that_casadi_keeps_is_none_of_ones_own():
    x, z = ca.SX.sym("x"), ca.MX.sym("z")
    plain = ca.Function("plain", [x], [ca.sin(x) * x])
    kept = plain.jacobian()
    assert kept.name() in plain.cache()
    assert unrolled(ca.Function("f", [z], [plain(z)])) is not None


def test_what_has_no_scalar_form_is_differentiated_as_a_graph():
    table = ca.interpolant("table", "bspline", [[0, 1, 2, 3, 4]], [0, 1, 4, 9, 16])
    z = ca.MX.sym("z")
    assert unrolled(ca.Function("f", [z], [table(z)])) is None
    kind = stages.kind("stage", 1, 0, lambda x, u, p, s: {"next": table(x), "residuals": x}, graph="mx")
    assert float(kind.jacobian(1.5, [], [])) == pytest.approx(3.0, rel=1e-6)
    assert float(kind.hessian(1.5, [], [], 1, 2, [])) == pytest.approx(1 + 2 * 2.0, rel=1e-6)


@pytest.mark.slow
def test_calls_inside_other_functions_are_found():
    """Registered derivatives are used wherever the call is, and one with the same arguments is made once."""
    panda = od.robots.panda()
    f = od.function(panda, "inverse_dynamics", derivatives="analytic")
    x = [ca.MX.sym(n, 7) for n in f.name_in()]
    inner = ca.Function("inner", x, [2 * f(*x)])
    outer = ca.Function("outer", x, [inner(*x) + 1, f(*x)])
    found = unrolled(outer)
    assert [c.name for c in found.calls] == [f.name()]
    written = ca.Function("written", found.inputs, found.put_in(found.outputs))
    assert_same(written, outer)


@pytest.mark.slow
def test_joints_of_any_kind_by_the_graph(monkeypatch):
    """A robot on a manifold, whose steps are calls with structural zeros."""

    def made():
        ocp = od.Problem(4, 1.0)
        q, v, _, tau = ocp.rigid_body(od.robots.quadruped(), "inverse")
        ocp.minimize(integral=ca.sumsqr(tau))
        return [g.kind for g in ocp.transcribed("hermite_simpson").groups]

    here = made()
    monkeypatch.setattr(stages, "unrolled", lambda f: None)
    for one, other in zip(here, made(), strict=True):
        for name in FUNCTIONS:
            assert_same(getattr(one, name), getattr(other, name))


def test_equal_stages_are_derived_once(monkeypatch):
    derived, derivatives = [], stages.derivatives
    monkeypatch.setattr(stages, "derivatives", lambda *given: derived.append(1) or derivatives(*given))
    monkeypatch.setattr(stages, "_made", {})

    def made(name, factor):
        return stages.kind(name, 2, 1, lambda x, u, p, s: {"next": x + factor * ca.sin(u) * x, "cost": ca.sumsqr(u)})

    at = [[1, 2, 3], [], [], 1, [1, 1]]
    first, equal, other = made("first", 1.0), made("equal", 1.0), made("other", 1.0 + 1e-15)
    assert len(derived) == 2  # constants count in full
    assert (equal.hessian.name(), other.hessian.name()) == ("equal_hessian", "other_hessian")
    assert str(first.hessian(*at, [])) == str(equal.hessian(*at, []))
    for k in range(2 * stages._MOST):
        made("more", 2.0 + k)
    assert len(stages._made) == stages._MOST


def test_results_that_are_arguments_as_they_are():
    """A body of 1 kg in the end of a chain without gravity: an input is a result of the dynamics."""
    builder = od.RobotBuilder("slide", gravity=(0, 0, 0))
    builder.add_link("base")
    builder.add_link("sledge", 1.0)
    builder.add_joint("x", "prismatic", "base", "sledge", axis=(1, 0, 0), lower=-2, upper=2, velocity=1, acceleration=2)
    dynamics = od.function(builder.build(), "inverse_dynamics", derivatives="analytic")
    z = ca.MX.sym("z", 3)
    stage = unrolled(ca.Function("stage", [z], [dynamics(*ca.vertsplit(z))]))
    (tau,) = stage.put_in(stage.outputs)
    assert float(ca.Function("tau", stage.inputs, [tau])([0.1, 0.2, 0.3])) == 0.3


def test_least_effort_of_linear_dynamics():
    motion = od.plan_point_to_point(point_robot(), [-1, 0], [1, 0], objective="effort", duration=4.0, progress=False)
    assert motion.duration == 4.0
    assert motion.sample(np.array([2.0])).q[0] == pytest.approx([0, 0], abs=1e-6)


def test_distances_that_are_coordinates():
    robot = point_robot()
    scene = od.Scene().attach("tip", "point", od.shapes.Sphere(0.1)).add("floor", od.shapes.HalfSpace((0, 1, 0), -0.1))
    ocp = od.Problem(20, 1.0)
    q, v = ocp.state("q", 2), ocp.control("v", 2)
    ocp.rate(q, v)
    ocp.start({q: [-1, 0.01]})
    ocp.goal({q: [1, 0.01]})
    ocp.minimize(integral=ca.sumsqr(v))
    ocp.avoid(scene, q, robot=robot)
    assert ocp.solve().objective == pytest.approx(4.0)
