"""od.plan_along_path: known times, all limits between nodes, an independent program, refusals."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.planning.curves import spline
from oc_dyn.planning.path_motion import bell

HOME = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
AWAY = np.array([1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6])
VIA = (HOME + AWAY) / 2 + np.array([0.3, -0.4, 0.3, -0.3, 0.2, 0.2, 0.4])
WAY = np.vstack([HOME, VIA, AWAY])
AT = [0, 0.5, 1]
SECOND_ORDER = 1.20714  # [s] by TOPP-RA (toppra 0.6.10, 401 grid points), velocity and acceleration alone


@pytest.fixture(scope="module")
def panda():
    return od.robots.panda()


@pytest.mark.sample(1)
@pytest.mark.parametrize("nodes, ratio", [(50, 1.0197), (100, 1.0094), (200, 1.0044)])
def test_comes_to_the_time_of_the_second_order_optimum(panda, nodes, ratio):
    motion = od.plan_along_path(panda, WAY, at=AT, ignore=("q", "d2v", "tau", "dtau"), nodes=nodes)
    assert 1 < motion.duration / SECOND_ORDER < ratio
    assert motion.check(dt=2e-4).worst < 1.0015


@pytest.mark.slow
def test_all_limits_hold_between_nodes_and_the_torque_rate_costs_time(panda):
    times = []
    for share in (0.6, 0.2, 0.05):
        motion = od.plan_along_path(panda, WAY, at=AT, nodes=60, scale={"dtau": share})
        report = motion.check()
        assert report.ok(0.002)
        assert report.worst > 0.99
        assert max(report.jumps[k] for k in ("q", "v", "dv")) < 1e-6
        times.append(motion.duration)
    assert np.all(np.diff(times) > 0.01)


@pytest.mark.slow
def test_a_program_with_the_dynamics_in_it_finds_the_same(panda):
    """s(t) as a chain in time, equal intervals, torques by inverse dynamics at both ends of each."""
    limits, N, share = od.Limits.of(panda), 60, 0.1
    C, B, A = (ca.DM(x) for x in (WAY[0], -3 * WAY[0] + 4 * WAY[1] - WAY[2], 2 * WAY[0] - 4 * WAY[1] + 2 * WAY[2]))
    ocp = od.Problem(N, (0.2, 5.0))
    guess = [lambda z: z**3 * (10 - 15 * z + 6 * z * z), lambda z: 30 * z * z * (1 - z) ** 2 / 1.8, 0.0, 0.0]
    x = ocp.chain("s", 1, 3, guess=guess, scale=(1, 1, 5, 100))
    dynamics, h = od.function(panda, "inverse_dynamics", order=1, derivatives="analytic"), ocp.step
    a, b, c, top = x
    end = (a + h * b + h**2 / 2 * c + h**3 / 6 * top, b + h * c + h**2 / 2 * top, c + h * top)
    for s, ds, dds in ((a, b, c), end):
        slope = 2 * A * s + B
        v, dv, d2v = slope * ds, 2 * A * ds**2 + slope * dds, 6 * A * ds * dds + slope * top
        tau, dtau = dynamics((A * s + B) * s + C, v, dv, d2v)
        rows = [v / limits.v, dv / limits.dv, d2v / limits.d2v, tau / limits.tau, dtau / limits.dtau / share]
        ocp.limit(-1, ca.vertcat(*rows), 1)
    ocp.start(dict(zip(x, (0, 0, 0), strict=False)))
    ocp.goal(dict(zip(x, (1, 0, 0), strict=False)))
    ocp.minimize(terminal=ocp.duration)
    motion = od.plan_along_path(panda, WAY, at=AT, nodes=N, scale={"dtau": share})
    assert motion.duration == pytest.approx(ocp.solve().duration, rel=3e-3)


@pytest.mark.slow
def test_functions_and_many_way_points(panda):
    rng = np.random.default_rng(1)
    ts = np.linspace(0, 1, 9)[:, None]
    way = HOME + (AWAY - HOME) * ts + 0.05 * rng.normal(size=(9, 7))
    motion = od.plan_along_path(panda, way, continuity=3, nodes=50)
    report = motion.check()
    assert report.ok(0.005), str(report)
    assert max(report.jumps.values()) < 1e-4
    found = motion.sample(np.linspace(0, motion.duration, 4000)).q
    assert all(np.abs(found - w).max(axis=1).min() < 3e-3 for w in way)
    s = ca.SX.sym("s")
    curve = ca.Function("curve", [s], [HOME + 0.3 * ca.sin(3 * s) * ca.DM([1, 1, -1, 0.5, 0.2, 0.3, 1])])
    assert od.plan_along_path(panda, curve, continuity=2, nodes=40).check().ok(0.005)


@pytest.mark.slow
def test_derivatives_in_time_are_derivatives(panda):
    motion = od.plan_along_path(panda, WAY, continuity=3, nodes=30, ignore=("tau", "dtau"))
    t, h = np.linspace(0.05, motion.duration - 0.05, 40) + 1e-5, 1e-6
    low, high, at = (motion.sample(x).derivatives for x in (t - h, t + h, t))
    for k in range(4):
        assert np.abs((high[k] - low[k]) / (2 * h) - at[k + 1]).max() < 1e-4 * max(1, np.abs(at[k + 1]).max())


def test_bell_polynomials_are_those_of_faa_di_bruno():
    x = [2.0, 3.0, 5.0, 7.0]
    assert bell(4, x)[1:] == [[2], [3, 4], [5, 18, 8], [7, 3 * 9 + 4 * 2 * 5, 6 * 4 * 3, 16]]


@pytest.mark.parametrize("degree", [3, 5, 7])
def test_splines_pass_their_points_and_repeat_polynomials(degree):
    rng = np.random.default_rng(0)
    points, at = rng.normal(size=(12, 2)), np.concatenate([[0], np.cumsum(rng.uniform(0.5, 1, 11))])
    at /= at[-1]
    made = spline(points, at, degree)
    assert np.abs(made.at(at, 1)[0] - points).max() < 1e-9
    inner = made.knots
    for k in range(degree):
        before, after = made.at(inner, degree + 1, before=True)[k], made.at(inner, degree + 1)[k]
        assert np.abs(before - after).max() < 1e-6 * np.abs(after).max()
    p = np.polynomial.Polynomial(rng.normal(size=degree + 1))
    exact, x = spline(np.column_stack([p(at), p(at) ** 0 + at]), at, degree), np.linspace(0, 1, 50)
    assert np.abs(exact.at(x, 2)[:, :, 0] - [p(x), p.deriv()(x)]).max() < 1e-7


def test_files(panda, tmp_path):
    motion = od.plan_along_path(panda, WAY, nodes=20, ignore=("dtau",))
    for name in ("a.csv", "a.npz", "a.json"):
        motion.save(tmp_path / name, dt=0.01)
        again = od.Trajectory.load(tmp_path / name, panda)
        assert np.array_equal(again.dv, motion.sample(0.01).dv)
        assert np.array_equal(again.t, motion.sample(0.01).t)
    assert "along a path" in str(motion)


def bent(s):
    return HOME + 0.3 * ca.fabs(s - 0.4) * ca.DM.ones(7)


S = ca.SX.sym("s")


@pytest.mark.parametrize(
    "path, options, error, words",
    [
        (np.vstack([HOME, AWAY + [0, 0, 0, 5, 0, 0, 0]]), {}, od.LimitError, "panda_joint4.* way point 1, outside its"),
        (WAY[[0, 1, 1, 2]], {}, od.LimitError, "way points 1 and 2 are the same"),
        (np.vstack([WAY] * 2)[:6], {"continuity": 3, "degree": 3}, od.OrderError, "needs degree 5"),
        (ca.Function("f", [S], [bent(S)]), {}, od.OrderError, "derivative 1 jumps near s = 0.(399|401)"),
        (ca.Function("f", [S], [HOME + (S - 0.5) ** 3]), {}, od.LimitError, "does not change with s at s = 0.5"),
        (WAY, {"ignore": ("v", "dv", "d2v", "tau", "dtau")}, od.LimitError, "no limit bounds"),
        (WAY, {"scale": {"tau": 0.1}}, od.LimitError, "panda_joint2.*holding still"),
        (WAY, {"scale": {"dv": 0.0}}, od.LimitError, "limit 0 of dv"),
        (WAY[:, :6], {}, od.ShapeError, r"expected \(k, 7\)"),
        (WAY, {"at": [0, 1, 1]}, od.ShapeError, "rising"),
        (WAY, {"continuity": 1}, od.OrderError, "continuity"),
        (WAY, {"nodes": 3}, od.OrderError, "nodes"),
        (HOME + 1e-3 * np.arange(40)[:, None], {"nodes": 40}, od.OrderError, "40 nodes for"),
    ],
)
def test_impossible_paths_are_refused(panda, path, options, error, words):
    with pytest.raises(error, match=words):
        od.plan_along_path(panda, path, **options)


def run(words):
    from oc_dyn.cli import main

    return main([str(w) for w in words])


@pytest.mark.slow
def test_command_plans_along_a_file_and_through_points(tmp_path, capsys):
    file = tmp_path / "way.csv"
    file.write_text("shoulder,elbow\n0.1,0.2\n0.4,-0.3\n0.9,0.1\n")
    out = tmp_path / "a"
    limits = tmp_path / "limits.json"
    robot = od.robots.planar_2r()
    names = robot.coordinate_names
    limits.write_text("{" + ", ".join(f'"{n}": {{"v": 2.0, "dv": 8.0, "d2v": 200.0}}' for n in names) + "}")
    common = ["--limits", limits, "--continuity", 2, "--nodes", 40]
    assert run(["plan", "planar_2r", "--path", file, "--out", out, *common]) == 0
    assert {p.name for p in out.iterdir()} == {
        *("plan.csv", "plan.npz", "joint_trajectory.json", "plan.png", "manifest.json"),
    }
    along = od.Trajectory.load(out / "plan.csv", robot)
    assert np.abs(along.q[0] - [0.1, 0.2]).max() < 1e-9
    assert np.abs(along.q[-1] - [0.9, 0.1]).max() < 1e-9
    words = ["--from", 0.1, 0.2, "--via", 0.4, -0.3, "--to", 0.9, 0.1, "--out", tmp_path / "b"]
    assert run(["plan", "planar_2r", *words, *common]) == 0
    through = od.Trajectory.load(tmp_path / "b" / "plan.csv", robot)
    assert np.array_equal(through.q, along.q)
    capsys.readouterr()
    for wrong, said in (
        (["--path", file, "--via", "0,0"], "omit --from"),
        (["--from", "0,0", "--via", "0,1"], "--to is missing"),
        (["--to", "0,1"], "--from is missing"),
        (["--path", file, "--duration", "2"], "omit --objective"),
    ):
        assert run(["plan", "planar_2r", *wrong, "--out", tmp_path / "c", *common]) == 2
        assert said in capsys.readouterr().err
    file.write_text("0.1,0.2\n0.4\n")
    assert run(["plan", "planar_2r", "--path", file, "--out", tmp_path / "c", *common]) == 2
    assert "way.csv:2: got 1 numbers" in capsys.readouterr().err


def circle(panda, radius):
    """Function s -> (R, p): once round a circle from where the flange is at HOME, its direction kept."""
    at = od.function(panda, "frame_pose", frame="panda_link8")(q=HOME)
    angle = 2 * np.pi * S
    way = ca.vertcat(0, radius * (1 - ca.cos(angle)), radius * ca.sin(angle))
    return ca.Function("circle", [S], [ca.SX(ca.DM(at["R"])), ca.DM(at["p"]) + way])


@pytest.mark.slow
def test_a_frame_follows_a_path_of_poses(panda):
    pose = circle(panda, 0.12)
    way, at, degree = od.pose_path(panda, "panda_link8", pose, HOME + 0.02, tolerance=1e-5)
    motion = od.plan_along_path(panda, way, at=at, degree=degree, nodes=120, scale={"dtau": 0.3})
    assert motion.check().ok(0.005)
    fine = motion.sample(2e-3)
    seen = od.function(panda, "frame_pose", frame="panda_link8")
    for s, q in zip(motion.shares(fine.t)[0], fine.q, strict=True):
        R, p = (np.array(x) for x in pose(s))
        found = seen(q=q)
        assert np.abs(np.array(found["p"]) - p).max() < 1e-5
        assert np.abs(np.array(found["R"]) - R).max() < 2e-5


def test_poses_out_of_reach_are_refused(panda):
    with pytest.raises(od.LimitError, match="panda_link8.*(cannot get|singularity)"):
        od.pose_path(panda, "panda_link8", circle(panda, 0.8), HOME)
    with pytest.raises(od.ShapeError, match="R .3, 3. and p"):
        od.pose_path(panda, "panda_link8", ca.Function("f", [S], [S]), HOME)


def test_a_path_of_poses_refuses_reflections():
    s = ca.SX.sym("s")
    pose = ca.Function("mirror", [s], [ca.diag(ca.DM([1, 1, -1])), ca.vertcat(0.3, 0, 0.5)])
    panda = od.robots.panda()
    with pytest.raises(od.ShapeError, match="pose_path: R of mirror at s = 0 .*reflection"):
        od.pose_path(panda, "panda_link8", pose, panda.random_configuration(0))


@pytest.mark.slow
def test_the_second_path_of_a_kind_builds_nothing(monkeypatch):
    """Another path, other limits, as many nodes: the problem of the first plan serves it, with the same result."""
    way = np.array([[0.0, 0.0], [0.6, -0.4], [1.0, 0.3]])
    plans = []
    for robot in (od.robots.planar_2r(), od.robots.planar_2r()):
        limits = od.Limits(robot.coordinate_names, v=2.0, dv=9.0, d2v=90.0)
        if not plans:
            od.plan_along_path(robot, way, limits=limits, nodes=20)
            monkeypatch.setattr("oc_dyn.planning.path_problem._Template", None)
        plans.append(od.plan_along_path(robot, 1.3 * way, limits=limits.scaled(v=0.8), nodes=20))
        monkeypatch.undo()
    assert plans[0].duration == pytest.approx(plans[1].duration, rel=1e-9)
