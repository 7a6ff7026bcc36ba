"""Trajectories: polynomials, samples, torques by other means, reports, files, pictures."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import Limits, ModelError, ShapeError, Trajectory, UnknownName
from oc_dyn.planning.animate import stick_figure

A, B = [-1.2, 0.5], [-0.5, -0.8]


@pytest.fixture(scope="module")
def arm():
    return od.robots.planar_2r()


@pytest.fixture(scope="module")
def motion(arm):
    limits = Limits.of(arm).updated({n: {"dv": 20.0, "d2v": 200.0, "dtau": 2000.0} for n in arm.coordinate_names})
    return od.plan_point_to_point(arm, A, B, limits=limits, nodes=12)


@pytest.fixture(scope="module")
def jerky(arm):
    limits = Limits.of(arm).updated({n: {"dv": 20.0, "d2v": 200.0} for n in arm.coordinate_names})
    return od.plan_point_to_point(arm, A, B, limits=limits, nodes=12, continuity=2)


# -- evaluation -------------------------------------------------------------------------------------------------


def test_samples_are_the_polynomials(motion):
    t = np.linspace(0, motion.duration, 57)
    samples = motion.sample(t)
    for i in range(2):
        for k in range(len(motion.pieces)):
            inside = (t >= motion.t[k]) & (t < motion.t[k + 1])
            p = np.polynomial.Polynomial(motion.pieces[k, :, i] / [1, 1, 2, 6, 24])
            for d, name in enumerate(("q", "v", "dv", "d2v", "d3v")):
                expected = p.deriv(d)(t[inside] - motion.t[k]) if d else p(t[inside] - motion.t[k])
                assert np.allclose(getattr(samples, name)[inside, i], expected, rtol=1e-12, atol=1e-12)


def test_step_includes_the_end_and_derivatives_fit(motion):
    for dt in (1e-3, 0.0137, motion.duration / 7, motion.duration, 10.0):
        samples = motion.sample(dt)
        assert samples.t[0] == 0
        assert samples.t[-1] == motion.t[-1]
        assert np.all(np.diff(samples.t) > 0)
        assert np.all(np.diff(samples.t) <= dt * (1 + 1e-9))
        assert np.array_equal(samples.q[-1], motion.q[-1])
    # each derivative is that of the one before: a fine central difference inside the pieces
    h = 1e-5
    t = (motion.t[1:] + motion.t[:-1]) / 2
    before, at, after = motion.sample(t - h), motion.sample(t), motion.sample(t + h)
    for d in range(4):
        slope = (after.derivatives[d] - before.derivatives[d]) / (2 * h)
        assert np.allclose(slope, at.derivatives[d + 1], rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_jumps_are_right_continuous_and_seen_from_both_sides(jerky):
    t = jerky.t[5]
    assert np.array_equal(jerky.sample([t]).d2v[0], jerky.pieces[5, 3])
    assert np.array_equal(jerky.sample([t - 1e-9]).d2v[0], jerky.pieces[4, 3])
    assert np.array_equal(jerky.d2v[-1], jerky.pieces[-1, 3])  # at the end, the value before
    both = jerky.both_sides(0.05)
    here = both.d2v[both.t == t]
    assert np.array_equal(here[0], jerky.pieces[4, 3])
    assert np.array_equal(here[-1], jerky.pieces[5, 3])
    assert np.all(jerky.d3v == 0)


def test_times_outside_are_refused(motion):
    for bad in (0.0, -1.0, np.nan, [motion.duration + 0.1], [-0.1], []):
        with pytest.raises(ShapeError, match="sample"):
            motion.sample(bad)


def test_torques_agree_with_another_method_and_with_their_slope(arm, motion):
    samples = motion.sample(0.01)
    f = od.function(arm, "inverse_dynamics", method="recursive_body")
    tau = np.array(f(samples.q.T, samples.v.T, samples.dv.T)).T
    assert np.allclose(samples.tau, tau, rtol=1e-11, atol=1e-11)
    # the textbook double pendulum of two rods, by hand
    m, length, g = 10.0, 0.5, 9.81
    (q1, q2), (v1, v2), (a1, a2) = samples.q.T, samples.v.T, samples.dv.T
    rod, thin = m * length**2 / 3, m * length**2 / 2
    lateral = m * 0.01**2 / 4  # a rod of 20 mm diameter
    elbow = (rod + lateral) * (a1 + a2) + thin * (np.cos(q2) * a1 + np.sin(q2) * v1**2)
    elbow += m * g * length / 2 * np.cos(q1 + q2)
    shoulder = elbow + (rod + lateral + m * length**2) * a1
    shoulder += thin * (np.cos(q2) * (a1 + a2) - np.sin(q2) * (v1 + v2) ** 2) + 1.5 * m * g * length * np.cos(q1)
    assert np.allclose(samples.tau, np.column_stack([shoulder, elbow]), rtol=1e-6, atol=1e-6)

    h = 1e-6
    t = (motion.t[1:] + motion.t[:-1]) / 2
    slope = (motion.sample(t + h).tau - motion.sample(t - h).tau) / (2 * h)
    assert np.allclose(motion.sample(t).dtau, slope, rtol=1e-6, atol=1e-5 * np.abs(slope).max())


# -- reports ----------------------------------------------------------------------------------------------------


def test_report_finds_the_largest_share(motion):
    report = motion.check(dt=1e-3)
    assert report.ok()
    assert report.worst == max(r.share for r in report.rows)
    fine = motion.sample(1e-4)
    for row in report.rows:
        if row.quantity in ("v", "dv", "d2v", "tau", "dtau"):
            shares = np.abs(getattr(fine, row.quantity)) / getattr(motion.limits, row.quantity)
            assert row.share == pytest.approx(shares.max(), rel=1e-3)
            assert row.share == pytest.approx(abs(row.value) / abs(row.limit))
            i = motion.joints.index(row.joint)
            assert getattr(motion.sample([row.time]), row.quantity)[0, i] == pytest.approx(row.value, rel=1e-6)
    text = str(report)
    assert "velocity v" in text
    assert "elbow" in text
    assert "within all limits" in text
    assert "start and goal missed" in text


def test_report_against_other_limits(motion):
    tight = motion.limits.scaled(v=0.5)
    report = motion.check(limits=tight)
    assert report.worst == pytest.approx(2 * motion.check().shares["v"].max(), rel=1e-6)
    assert not report.ok()
    assert report.ok(tolerance=2.0)
    assert "limits exceeded" in str(report)
    for share, said in ((1.0006, "over a limit by 0.06 %, 0.5 % is tolerated"), (0.9994, "within all limits")):
        row = replace(report.rows[1], share=share)
        told = str(replace(report, rows=(row,), clearance=None)).splitlines()[-1]
        assert told.startswith(said)
    free = motion.check(limits=motion.limits.without("v", "tau"))
    assert "no limit" in str(free)
    one_sided = Limits(motion.joints, q=(-np.inf, -0.6))
    assert motion.check(limits=one_sided).worst == pytest.approx(1 + motion.q.max() + 0.6)


@pytest.mark.parametrize("rate", [-2.0, 2.0])
def test_limits_of_constants_are_those_of_their_side(rate):
    pieces = np.zeros((1, 4, 1))
    pieces[0, 1] = rate
    steady = Trajectory([0.0, 1.0], pieces, joints=("a",), units=("rad",), limits=Limits(("a",), v=(-4.0, 5.0)))
    (row,) = (r for r in steady.check().rows if r.quantity == "v")
    assert (row.value, row.limit) == (rate, 5.0 if rate > 0 else -4.0)
    assert row.share == pytest.approx(row.value / row.limit)


@pytest.mark.parametrize("q, limit", [((-np.inf, 1.0), 1.0), ((-1.0, np.inf), -1.0)])
def test_one_limit_of_a_joint_at_rest_is_told(q, limit):
    still = Trajectory([0.0, 1.0], np.zeros((1, 4, 1)), joints=("a",), units=("rad",), limits=Limits(("a",), q=q))
    (row,) = (r for r in still.check().rows if r.quantity == "q")
    assert (row.value, row.limit) == (0.0, limit)


def test_report_sees_a_jump_between_samples(arm):
    # a jerk impulse in a piece shorter than the sampling step, and a step of the velocity
    pieces = np.zeros((3, 4, 2))
    pieces[1, 3, 0] = 500.0
    pieces[2, :3, 0] = 500e-12 / 6, 500e-8 / 2, 500e-4
    pieces[2, 1, 1] = 0.25
    motion = Trajectory([0.0, 0.5, 0.5001, 1.0], pieces, joints=arm.coordinate_names, units=("rad", "rad"), robot=arm)
    report = motion.check(limits=Limits(arm.coordinate_names, d2v=(100.0, np.inf)), dt=1e-1)
    assert report.worst == pytest.approx(5.0)
    assert report.jumps["v"] == pytest.approx(0.25)


# -- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "npz", "json"])
@pytest.mark.parametrize("which", ["motion", "jerky"])
def test_files_keep_every_bit(request, arm, tmp_path, ending, which):
    motion = request.getfixturevalue(which)
    path = tmp_path / "Größe" / f"plän.{ending}"
    motion.save(path)
    loaded = Trajectory.load(path, arm)
    assert np.array_equal(loaded.pieces, motion.pieces)
    assert np.array_equal(loaded.t, motion.t)
    assert np.array_equal(loaded.tau, motion.tau)
    assert np.array_equal(loaded.dtau, motion.dtau)
    assert loaded.joints == motion.joints
    assert loaded.units == motion.units
    assert loaded.continuity == motion.continuity
    assert loaded.limits.as_dict() == motion.limits.as_dict()
    for key in ("objective_value", "iterations", "status", "solver", "rounds", "seconds"):
        assert loaded.info[key] == motion.info[key]
    assert np.array_equal(loaded.sample(1e-3).d2v, motion.sample(1e-3).d2v)
    assert np.array_equal(loaded.sample(1e-3).tau, motion.sample(1e-3).tau)
    assert str(loaded.check()) == str(motion.check())
    assert os.listdir(path.parent) == [path.name]  # nothing temporary is left

    sampled = tmp_path / f"samples.{ending}"
    motion.save(sampled, dt=1e-3)
    read = Trajectory.load(sampled)
    assert not isinstance(read, Trajectory)
    for name in ("t", "q", "v", "dv", "d2v", "tau", "dtau"):
        assert np.array_equal(getattr(read, name), getattr(motion.sample(1e-3), name))


def test_without_the_robot_the_torques_of_the_file_are_there(motion, tmp_path):
    motion.save(tmp_path / "x.npz")
    loaded = Trajectory.load(tmp_path / "x.npz")
    assert np.array_equal(loaded.tau, motion.tau)
    assert loaded.robot_name == "planar_2r"
    assert {r.quantity for r in loaded.check().rows} == {"q", "v", "dv", "d2v"}
    with pytest.raises(ModelError, match="load the file with robot"):
        print(loaded.sample(1e-2).tau)
    with pytest.raises(ModelError, match="load the file with robot"):
        loaded.animate(tmp_path / "x.gif")


def test_csv_has_names_and_metadata(motion, tmp_path):
    motion.save(tmp_path / "x.csv")
    lines = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()
    meta = json.loads(lines[0][2:])
    assert meta["robot"] == "planar_2r"
    assert meta["joints"] == ["shoulder", "elbow"]
    assert meta["units"] == ["rad", "rad"]
    assert meta["continuity"] == 3
    assert meta["version"] == od.__version__
    assert meta["info"]["status"] == "Solve_Succeeded"
    header = lines[1].split(",")
    assert header[:5] == ["t", "q.shoulder", "q.elbow", "v.shoulder", "v.elbow"]
    assert header[-4:] == ["tau.shoulder", "tau.elbow", "dtau.shoulder", "dtau.elbow"]
    assert len(lines) == 2 + len(motion.t)
    table = np.loadtxt(tmp_path / "x.csv", delimiter=",", skiprows=2)
    assert np.array_equal(table[:, 1:3], motion.q)


def test_names_that_need_quoting_survive(tmp_path):
    names = ('arm, "left"', "Gelenk Ä")
    motion = Trajectory([0.0, 1.0], np.ones((1, 4, 2)), joints=names, units=("rad", "m"))
    for ending in ("csv", "npz", "json"):
        motion.save(tmp_path / f"x.{ending}")
        loaded = Trajectory.load(tmp_path / f"x.{ending}")
        assert loaded.joints == names
        assert np.array_equal(loaded.pieces, motion.pieces)
        assert loaded.limits is None


def test_a_failed_write_leaves_the_old_file(motion, tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        motion.save(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.csv"]


def test_damaged_files_are_named_with_their_line(motion, arm, tmp_path):
    path = tmp_path / "x.csv"
    motion.save(path)
    good = path.read_text(encoding="utf-8").splitlines()

    def damaged(edit, words):
        lines = list(good)
        edit(lines)
        path.write_text("\n".join(lines), encoding="utf-8")
        with pytest.raises(ModelError, match=words):
            Trajectory.load(path)

    damaged(lambda x: x.pop(0), r"x.csv:1: expected the metadata")
    damaged(lambda x: x.__setitem__(0, "# {oops"), r"x.csv:1: its metadata")
    damaged(lambda x: x.__setitem__(1, x[1].replace("q.elbow", "q.knee")), r"x.csv:2: .*'q.knee'")
    damaged(lambda x: x.__setitem__(4, x[4].rsplit(",", 1)[0]), r"x.csv:5: 14 columns, expected 15")
    damaged(lambda x: x.__setitem__(4, "1e-3x" + x[4][x[4].index(",") :]), r"x.csv:5: column t: '1e-3x'")
    damaged(lambda x: x.__delitem__(slice(3, None)), "1 complete rows")
    (tmp_path / "x.json").write_text('{\n "meta": 1,,\n}')
    with pytest.raises(ModelError, match=r"x.json:2: not JSON"):
        Trajectory.load(tmp_path / "x.json")
    (tmp_path / "x.npz").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="x.npz: not an npz file"):
        Trajectory.load(tmp_path / "x.npz")
    with pytest.raises(UnknownName, match=r"\.csv, \.npz, \.json"):
        motion.save(tmp_path / "x.mat")
    with pytest.raises(FileNotFoundError):
        Trajectory.load(tmp_path / "absent.csv")
    motion.save(path)
    with pytest.raises(ModelError, match="joints shoulder, elbow, but double_pendulum_lookalike|but"):
        Trajectory.load(path, od.robots.panda())


# -- pictures ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_plot_shows_six_quantities_against_their_limits(motion, tmp_path):
    import matplotlib

    before = matplotlib.get_backend()
    figure = motion.plot(tmp_path / "new" / "plot.png")
    assert matplotlib.get_backend() == before
    assert (tmp_path / "new" / "plot.png").read_bytes().startswith(b"\x89PNG")
    axes = figure.axes
    assert [a.get_title() for a in axes] == [
        "position q", "velocity v", "acceleration dv", "jerk d2v", "torque tau", "torque rate dtau"
    ]  # fmt: skip
    for axis in axes:
        curves = [line for line in axis.lines if len(line.get_xdata()) > 2]
        assert len(curves) == 2
        assert max(np.abs(c.get_ydata()).max() for c in curves) <= 1.005
        assert sorted(line.get_ydata()[0] for line in axis.lines if len(line.get_xdata()) == 2) == [-1, 1]
        assert axis.get_xlim() == axes[0].get_xlim()
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["shoulder", "elbow"]
    physical = motion.plot(normalized=False)
    assert physical.axes[4].get_ylabel() == "[Nm]"
    assert physical.axes[2].get_ylabel() == "[rad/s²]"
    fastest = np.abs(motion.sample(1e-4).v[:, 0]).max()
    assert np.abs(physical.axes[1].lines[0].get_ydata()).max() == pytest.approx(fastest, rel=1e-4)
    motion.sample(1e-2).plot(tmp_path / "samples.pdf")
    assert (tmp_path / "samples.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_plot_without_limits_or_robot(tmp_path):
    motion = Trajectory([0.0, 1.0], np.ones((1, 4, 2)), joints=("a", "b"), units=("rad", "m"))
    figure = motion.plot(tmp_path / "x.png")
    assert figure.axes[1].get_ylabel() == "[rad/s, m/s]"
    assert figure.axes[4].texts[0].get_text() == "needs the robot"


def test_animation(motion, tmp_path):
    from PIL import Image

    motion.animate(tmp_path / "gif" / "x.gif", fps=10, size=(200, 160))
    with Image.open(tmp_path / "gif" / "x.gif") as image:
        assert image.size == (200, 160)
        assert image.n_frames == len(motion.sample(0.1))
    with pytest.raises(ShapeError, match="fps"):
        motion.animate(tmp_path / "x.gif", fps=0)


def test_stick_figure_joins_the_frames():
    for robot, tip in ((od.robots.planar_2r(), "tip"), (od.robots.panda(), None)):
        f, sticks = stick_figure(robot)
        q = robot.random_configuration(seed=4)
        points = np.array(f(q))
        for b in robot.bodies:
            p = np.array(od.function(robot, "frame_pose", frame=b.name)(q=q)["C"])[:3, 3]
            assert np.min(np.linalg.norm(points.T - p, axis=1)) < 1e-12
        if tip:
            p = np.array(od.function(robot, "frame_pose", frame=tip)(q=q)["C"])[:3, 3]
            assert np.allclose(points[:, -1], p, atol=1e-12)
        assert len(sticks) == points.shape[1] - 1
        assert {end for _, end in sticks} == set(range(1, points.shape[1]))


# -- other layouts ---------------------------------------------------------------------------------------------


def test_fields_of_a_ros_joint_trajectory(motion, tmp_path):
    motion.save(tmp_path / "ros.json", dt=0.013, layout="joint_trajectory")
    message = json.loads((tmp_path / "ros.json").read_text(encoding="utf-8"))
    assert set(message) == {"header", "joint_names", "points"}
    assert message["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    assert message["joint_names"] == list(motion.joints)
    fine = motion.sample(0.013)
    assert len(message["points"]) == len(fine)
    times = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in message["points"]]
    assert np.abs(np.array(times) - fine.t).max() < 1e-9
    assert np.all(np.diff(times) > 0)
    fields = {"positions": fine.q, "velocities": fine.v, "accelerations": fine.dv, "effort": fine.tau}
    for field, values in fields.items():
        assert np.array_equal([p[field] for p in message["points"]], values)
    with pytest.raises(od.UnknownName, match="layout"):
        motion.save(tmp_path / "x.json", layout="ros")
    with pytest.raises(od.UnknownName, match=".csv"):
        motion.save(tmp_path / "x.csv", layout="joint_trajectory")
    assert not (tmp_path / "x.csv").exists()


def test_animate_any_motion(tmp_path):
    robot = od.robots.quadruped()
    q = np.array([robot.integrate(robot.neutral(), 0.1 * k * np.ones(robot.nv)) for k in range(4)])
    from PIL import Image

    path = od.animate(robot, [0, 0.1, 0.2, 0.3], q, tmp_path / "x.gif", fps=10, size=(120, 120))
    with Image.open(path) as image:
        assert image.n_frames == 4
        assert image.size == (120, 120)
    with pytest.raises(od.ShapeError, match=r"expected \(3, 19\) for quadruped"):
        od.animate(robot, [0, 1, 2], q, tmp_path / "y.gif")


def test_used_is_the_largest_share_of_each_limit(motion):
    fine = motion.sample(1e-3)
    used = fine.utilization()
    assert set(used) == {"v", "dv", "d2v", "tau", "dtau"}
    for row in motion.check(dt=1e-3).rows:
        if row.quantity in used:
            assert used[row.quantity].max() == pytest.approx(row.share, rel=1e-2)


def test_limits_that_need_the_robot_are_not_passed_over(tmp_path):
    arm = od.robots.planar_2r()
    limits = od.Limits.of(arm)
    path = tmp_path / "plan.json"
    plan = od.plan_point_to_point(arm, [0, 0], [1, -0.5], nodes=10, limits=od.Limits(arm.coordinate_names, v=1, dv=5))
    plan.save(path)
    report = od.Trajectory.load(path, robot=arm).check(od.Limits(limits.joints, tau=50, v=2))
    assert report.unchecked == ()
    lost = od.Trajectory(plan.t, plan.pieces, joints=plan.joints, units=plan.units)
    report = lost.check(od.Limits(limits.joints, tau=50, v=2))
    assert report.unchecked == ("tau",)
    assert not report.ok()
    assert "not checked: tau" in str(report)
