"""Problem.avoid: ways round obstacles of known length, moving ones, soft limits, phases, names, refusals."""

import pickle

import casadi as ca
import numpy as np
import pytest
from obstacles import TIP, at, ball, line, moved, point_robot, way_round
from samples import robot

import oc_dyn as od
from oc_dyn import shapes
from oc_dyn.derivatives import registered
from oc_dyn.optimal_control.avoid import distances
from oc_dyn.scene import PORT

RADIUS = 0.3 + TIP + 0.05  # of the disc, the tip and its margin
SOLVERS = ("ipopt", "fatrop", "sqpmethod", "uno")
WAYS = [(method, "ipopt") for method in ("rk4", "collocation", "hermite_simpson", "radau", "implicit", "trapezoidal")]


def shortest(nodes=30, start=(-1.0, 0.0), goal=(1.0, 0.0)):
    """(Problem, q, v): whose least cost is the square of the length of the way, in 1 s."""
    ocp = od.Problem(nodes, 1.0)
    between = np.array(goal) - start
    q = ocp.state("q", 2, guess=lambda s: start + between * s + [0, 0.8 * np.sin(np.pi * s)])
    v = ocp.control("v", 2)
    ocp.rate(q, v)
    ocp.start({q: list(start)})
    ocp.goal({q: list(goal)})
    ocp.minimize(integral=ca.sumsqr(v))
    return ocp, q, v


@pytest.mark.sample(2)
@pytest.mark.parametrize("method, solver", WAYS + [("rk4", s) for s in SOLVERS[1:]])
def test_the_shortest_way_round_a_disc(method, solver):
    ocp, q, _ = shortest()
    ocp.avoid(ball(margin=0.05), q, robot=point_robot())
    found = ocp.solve(method=method, solver=solver, check="off")
    assert np.sqrt(found.objective) == pytest.approx(way_round((-1, 0), (1, 0), RADIUS), rel=1e-3)
    assert np.linalg.norm(found[q], axis=1).min() > RADIUS - 1e-6


@pytest.mark.slow
def test_the_error_falls_with_the_square_of_the_intervals():
    errors = []
    for nodes in (16, 32, 64):
        ocp, q, _ = shortest(nodes)
        ocp.avoid(ball(margin=0.05), q, robot=point_robot())
        found = ocp.solve(check="off")
        errors.append(abs(np.sqrt(found.objective) - way_round((-1, 0), (1, 0), RADIUS)))
    assert errors[2] < errors[0] / 8


def test_clearance_is_kept_besides_margins_and_can_be_a_parameter():
    scene = ball(margin=0.05)
    ocp, q, _ = shortest()
    clearance = ocp.parameter("clearance")
    ocp.avoid(scene, q, clearance, robot=point_robot())
    for c in (0.0, 0.2):
        found = ocp.solve(parameters={clearance: c}, check="off")
        assert np.linalg.norm(found[q], axis=1).min() == pytest.approx(RADIUS + c, abs=1e-6)


def test_rows_are_named_after_the_pairs():
    scene = ball(margin=0.05).add("far", shapes.Sphere(0.1), at(0, -3))
    ocp, q, _ = shortest()
    d = ocp.avoid(scene, q, 0.01, robot=point_robot())
    assert d.shape == (2, 1)
    text = ocp.describe()
    assert "(tip - disc)" in text
    assert "(tip - far)" in text
    assert "0.06 <= distances(q)" in text
    found = ocp.solve(check="off")
    assert {r.name for r in found.check().rows if r.what == "limit"} == {"tip - disc", "tip - far"}
    ocp.bound("tip - disc", 0.2, np.inf)
    assert np.linalg.norm(ocp.solve(check="off")[q], axis=1).min() == pytest.approx(0.2 + 0.3 + TIP, abs=1e-6)


def test_a_start_in_collision_is_told_by_the_pair():
    ocp, q, _ = shortest(start=(-0.2, 0.0))
    ocp.avoid(ball(), q, robot=point_robot())
    with pytest.raises(od.SolveError, match="tip - disc") as failed:
        ocp.solve()
    assert failed.value.solution.worst_rows()[0].name == "tip - disc"
    assert failed.value.solution.worst_rows()[0].value == pytest.approx(0.2 - 0.3 - TIP, abs=1e-3)


def test_a_limit_can_be_soft():
    ocp, q, _ = shortest()
    ocp.avoid(ball(), q, robot=point_robot(), soft=(0, 1e2))
    found = ocp.solve(check="off")
    through = RADIUS - 0.05 - np.linalg.norm(found[q], axis=1)
    assert 0.01 < through.max() < 0.3
    assert found["tip - disc_slack"].max() == pytest.approx(through.max(), abs=1e-4)


@pytest.mark.slow
def test_round_a_disc_that_moves_the_way_is_the_shortest_as_seen_from_it():
    start, speed = np.array([-0.3, 0.1]), np.array([0.6, -0.2])
    moving = ball(pose=line(start, speed))
    for t in (None, "own"):
        ocp, q, _ = shortest(60)
        clock = None
        if t:
            clock = ocp.state("clock")
            ocp.rate(clock, 1)
            ocp.start({clock: 0})
        ocp.avoid(moving, q, robot=point_robot(), t=clock)
        found = ocp.solve(check="off")
        seen = [np.array([-1, 0]) - start, np.array([1, 0]) - start - speed]
        # the integral of |u + w|^2, u the velocity as seen from the disc, w its own, whose product is known
        least = way_round(*seen, 0.3 + TIP) ** 2 + 2 * speed @ (seen[1] - seen[0]) + speed @ speed
        assert found.objective == pytest.approx(least, rel=1e-3)
        apart = np.linalg.norm(found[q] - start - speed * found.t[:, None], axis=1)
        assert apart.min() == pytest.approx(0.3 + TIP, abs=1e-6)


@pytest.mark.parametrize("form", ["named", "columns", "matrix"])
def test_poses_come_in_as_parameters(form):
    scene = ball(pose=PORT)
    ocp, q, _ = shortest()
    p = ocp.parameter("p", 3)
    C = moved(p)
    poses = {"named": {"disc": ca.vec(C)}, "columns": ca.vec(C), "matrix": C}[form]
    ocp.avoid(scene, q, robot=point_robot(), poses=poses)
    found = ocp.solve(parameters={p: [0.1, -0.2, 0]}, check="off")
    assert np.linalg.norm(found[q] - [0.1, -0.2], axis=1).min() == pytest.approx(0.3 + TIP, abs=1e-6)
    seen = np.array([[-1.1, 0.2], [0.9, 0.2]])
    assert np.sqrt(found.objective) == pytest.approx(way_round(*seen, 0.3 + TIP), rel=1e-3)


def test_poses_of_several_shapes_are_told_apart_by_name():
    scene = ball(pose=PORT).add("other", shapes.Sphere(0.2), PORT)
    ocp, q, _ = shortest()
    p, r = ocp.parameter("p", 3), ocp.parameter("r", 3)
    ocp.avoid(scene, q, robot=point_robot(), poses={"other": moved(r), "disc": moved(p)})
    found = ocp.solve(parameters={p: [0, -0.2, 0], r: [0.6, 0.25, 0]}, check="off")
    assert np.linalg.norm(found[q] - [0, -0.2], axis=1).min() > 0.3 + TIP - 1e-6
    assert np.linalg.norm(found[q] - [0.6, 0.25], axis=1).min() == pytest.approx(0.2 + TIP, abs=1e-6)


def test_what_is_carried_counts_from_its_phase_on():
    robot, alone = point_robot(), ball().add("load", shapes.Sphere(0.25), at(0, 1.5))
    carried = alone.attached("load", "point")
    ocp = od.Problem(20, 1.0)
    q = ocp.state("q", 2, guess=lambda s: np.array([2 * min(2 * s, 2 - 2 * s) - 1, 0.8]))
    v = ocp.control("v", 2)
    ocp.start({q: [-1, 0]})
    ocp.goal({q: [-1, 0]})
    for k, scene in enumerate((alone.without("load"), carried)):
        if k:
            ocp.phase(20, 1.0)
            ocp.at({q: [1, 0]}, fraction=0)
        ocp.rate(q, v)
        ocp.avoid(scene, q, robot=robot)
        ocp.minimize(integral=ca.sumsqr(v))
    found = ocp.solve(check="off")
    reach = np.linalg.norm(found[q], axis=1)
    assert reach[:20].min() == pytest.approx(0.3 + TIP, abs=1e-6)
    assert reach[20:].min() == pytest.approx(0.3 + 0.25, abs=1e-6)
    assert "load - disc" in ocp.describe() or "disc - load" in ocp.describe()


@pytest.mark.slow
def test_it_holds_within_intervals_of_a_chain():
    ocp = od.Problem(6, 1.0)
    q, _, ddq = ocp.chain("q", 2, 2, guess=lambda s: np.array([2 * s - 1, 0.8 * np.sin(np.pi * s)]))
    ocp.start({q: [-1, 0]})
    ocp.goal({q: [1, 0]})
    ocp.avoid(ball(), q, robot=point_robot(), at=(0, 0.25, 0.5, 0.75), last=1)
    ocp.minimize(integral=ca.sumsqr(ddq))
    found = ocp.solve(check="off")
    row = next(r for r in found.check().rows if r.name == "tip - disc")
    assert row.error < 0.01  # of 0.4, between four points of six intervals


@pytest.mark.slow
def test_model_predictive_control_gives_way_to_what_comes():
    scene, robot, h = ball(0.2, pose=PORT), point_robot(), 0.1
    ocp = od.Problem(15, 15 * h)
    now, where = ocp.parameter("q_now", 2), ocp.parameter("where", 3)
    q, v = ocp.state("q", 2), ocp.control("v", 2, lower=-1, upper=1)
    ocp.rate(q, v)
    ocp.start({q: now})
    speed = ca.DM([-0.5, 0, 0])  # of what comes
    ocp.avoid(scene, q, 0.02, robot=robot, poses=moved(where + ocp.time * speed), soft=(50.0, 50.0))
    ocp.minimize(squares=ca.vertcat(3 * (q - ca.DM([1, 0])), 0.3 * v))
    control = od.mpc(ocp, outputs={"v": v}, method="euler", iterations=8)
    x, p, apart = np.array([-1.0, 0.02]), np.array([1.5, 0.0, 0.0]), []
    for _ in range(40):
        x = x + h * control.step({"q_now": x, "where": p})["v"]
        p = p + h * np.array([-0.5, 0, 0])
        apart.append(np.linalg.norm(x - p[:2]))
    assert min(apart) > 0.2 + TIP + 0.02 - 1e-3
    assert min(apart) < 0.2 + TIP + 0.05  # it met it
    assert x == pytest.approx([1, 0], abs=0.05)


def test_derivatives_are_analytic_where_they_can_be():
    f = distances(point_robot(), ball())
    assert registered(f) is not None
    floating, rolling = od.robots.quadruped(), robot("transform")
    scenes = [
        od.Scene().attach("foot", r.bodies[-1].name, shapes.Sphere(0.02)).add("ground", shapes.HalfSpace((0, 0, 1)))
        for r in (floating, rolling)
    ]
    assert registered(distances(floating, scenes[0])) is not None
    assert registered(distances(rolling, scenes[1])) is None


@pytest.mark.slow
def test_a_body_on_a_manifold_keeps_apart():
    b = od.RobotBuilder("drone", gravity=(0, 0, 0))
    b.add_link("body", 1.0, inertia=np.eye(3))
    robot = b.build(floating_base=True)
    scene = od.Scene().attach("arm", "body", shapes.Capsule(0.05, 0.6)).add("ball", shapes.Sphere(0.3))
    ocp = od.Problem(12, 1.0)
    q = ocp.state("q", manifold=robot, guess=lambda s: np.array([1, 0, 0, 0, 2 * s - 1, 0.6 * np.sin(np.pi * s), 0.1]))
    v = ocp.control("v", 6)
    ocp.rate(q, v)
    ocp.start({q: [1, 0, 0, 0, -1, 0, 0]})
    ocp.goal({q: [1, 0, 0, 0, 1, 0, 0]})
    ocp.avoid(scene, q, robot=robot)
    ocp.minimize(integral=ca.sumsqr(v))
    found = ocp.solve(check="off")
    d = od.function(robot, "distances", scene=scene, normalize=True)
    assert min(float(d(x)) for x in found[q]) == pytest.approx(0, abs=1e-6)


def test_problems_and_solutions_travel():
    ocp, q, _ = shortest()
    ocp.avoid(ball(), q, robot=point_robot())
    found = ocp.solve(check="off")
    there = pickle.loads(pickle.dumps(found))
    assert there.problem.solve(check="off").objective == pytest.approx(found.objective, rel=1e-6)
    assert there.problem.describe() == ocp.describe()


def test_the_robot_of_the_scene_is_the_default():
    scene = od.Scene(ball().items, robot=point_robot())
    assert scene == ball()
    assert scene.add("wall", shapes.HalfSpace((0, 1, 0), -1)).robot is scene.robot
    ocp, q, _ = shortest()
    ocp.avoid(scene, q)
    assert ocp.solve(check="off").success


@pytest.mark.parametrize(
    "given, error, text",
    [
        ({}, od.ShapeError, "give robot="),
        ({"scene": "table"}, od.ShapeError, "expected an od.Scene"),
        ({"robot": point_robot(), "scene": od.Scene()}, od.ShapeError, "no pair"),
        ({"robot": od.robots.planar_2r()}, od.UnknownName, "point"),
        ({"robot": point_robot(), "q": ca.MX(3, 1)}, od.ShapeError, "q has 3 values, expected the 2"),
        ({"robot": point_robot(), "poses": ca.MX(4, 4)}, od.ShapeError, "no shape of the scene"),
        ({"robot": point_robot(), "scene": ball(pose=PORT)}, od.ShapeError, "give poses= of disc"),
        ({"robot": point_robot(), "scene": ball(pose=PORT), "poses": ca.MX(4, 3)}, od.ShapeError, "expected 16"),
        ({"robot": point_robot(), "scene": ball(pose=PORT), "poses": {"cup": 1}}, od.ShapeError, "those of disc"),
        ({"robot": point_robot(), "scene": ball(pose=line((0, 0), (1, 0))), "t": ca.MX(2, 1)}, od.ShapeError, "t has"),
        ({"robot": point_robot(), "clearance": "wide"}, od.ShapeError, "clearance"),
        ({"robot": point_robot(), "method": "by_guess"}, od.UnknownName, "by_kind"),
    ],
)
def test_what_does_not_fit_is_refused(given, error, text):
    ocp, q, _ = shortest()
    given = {"scene": ball(), "q": q} | given
    with pytest.raises(error, match=text):
        ocp.avoid(given.pop("scene"), given.pop("q"), given.pop("clearance", 0.0), **given)
