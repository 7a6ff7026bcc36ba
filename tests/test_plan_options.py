"""oc-dyn plan: tools, payloads, goals given as poses, velocities at the start, moving pictures."""

import json

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import cli, plan_options
from oc_dyn.lie import so3

START = [0.0, -0.78, 0.0, -2.36, 0.0, 1.57, 0.78]
QUICK = ["--nodes", "8", "--scale", "v=0.5", "dv=0.5", "--ignore", "dtau", "d2v"]


def pose(robot, frame, q):
    out = od.function(robot, "frame_pose", frame=frame)(q=q)
    return np.array(out["p"]).ravel(), np.array(out["R"])


def refused(capsys, *words):
    assert cli.main([str(w) for w in words]) == 2
    return capsys.readouterr().err


def test_a_payload_of_the_command_line_weighs_what_it_says():
    panda = od.robots.panda()
    tensor = np.array([[0.02, 0.001, 0.002], [0.001, 0.03, 0.003], [0.002, 0.003, 0.04]])
    words = ["panda_link7=1.5,0.01,0.02,0.1,0.02,0.001,0.002,0.03,0.003,0.04"]
    carrying = plan_options.equipped(panda, None, words)
    expected = panda.with_payload("panda_link7", od.Inertia.from_com(1.5, (0.01, 0.02, 0.1), tensor))
    given = {"q": START, "v": np.ones(7), "dv": np.ones(7)}
    tau = [np.array(od.function(r, "inverse_dynamics")(**given)["tau"]).ravel() for r in (carrying, expected, panda)]
    assert np.array_equal(tau[0], tau[1])
    assert np.abs(tau[0] - tau[2]).max() > 1


@pytest.mark.slow
def test_a_tool_is_a_frame_that_goals_are_of():
    panda = od.robots.panda()
    armed = plan_options.equipped(panda, "panda_link7=0,0,0.2,0.1,0.2,0.3", [])
    R = np.array(so3.rpy(0.1, 0.2, 0.3), float)
    (p, R0), (p_tool, R_tool) = pose(panda, "panda_link7", START), pose(armed, "tool", START)
    assert np.allclose(p_tool, p + R0 @ [0, 0, 0.2], atol=1e-14)
    assert np.allclose(R_tool, R0 @ R, atol=1e-14)
    target = p_tool + [0.05, -0.1, 0.02]
    goal, told = plan_options.goal_at(armed, ",".join(map(repr, target.tolist())), None, START)
    assert told == {"frame": "tool", "p": target.tolist()}
    assert np.allclose(pose(armed, "tool", goal)[0], target, atol=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("angles", [True, False])
def test_a_pose_of_angles_or_a_quaternion(angles):
    panda, turn = od.robots.panda(), (3.0, 0.1, 0.2)
    R = np.array(so3.rpy(*turn), float)
    values = turn if angles else od.interop.rotation_to_quaternion(R)
    text = ",".join(map(repr, [0.45, 0.1, 0.4, *map(float, values)]))
    goal, told = plan_options.goal_at(panda, text, "panda_link8", START)
    found = pose(panda, "panda_link8", goal)
    assert np.allclose(found[0], [0.45, 0.1, 0.4], atol=1e-9)
    assert np.allclose(found[1], R, atol=1e-9)
    assert np.allclose(told["R"], R, atol=1e-12)


def test_of_several_starts_the_nearest_solution_is_taken():
    arm = od.robots.planar_arm(2)
    p = pose(arm, arm.bodies[-1].name, [0.5, 1.0])[0]
    frame = arm.bodies[-1].name
    single = od.inverse_kinematics(arm, "tip", p=pose(arm, "tip", [0.5, 1.0])[0], q_start=[0.4, 0.8])
    several = od.inverse_kinematics(arm, "tip", p=pose(arm, "tip", [0.5, 1.0])[0], q_start=[0.4, 0.8], starts=10)
    assert np.allclose(several, [0.5, 1.0], atol=1e-8)
    assert np.linalg.norm(several - [0.4, 0.8]) <= np.linalg.norm(single - [0.4, 0.8]) + 1e-9
    assert np.allclose(pose(arm, frame, several)[0], p, atol=1e-9)


@pytest.mark.slow
def test_plan_to_a_pose_with_a_moving_start_a_payload_and_a_picture(capsys, tmp_path):
    words = ["plan", "panda", "--from", *START, "--to-pose", "0.45", "0.1", "0.4", "--payload", "panda_link7=1"]
    words += ["--tool", "panda_link7=0,0,0.2", "--start-velocity", "0.1", "0", "0", "-0.1", "0", "0", "0", "--gif"]
    assert cli.main([str(w) for w in [*words, *QUICK, "--out", tmp_path]]) == 0, capsys.readouterr().err
    facts = json.loads((tmp_path / "manifest.json").read_text())
    assert facts["to_pose"] == {"frame": "tool", "p": [0.45, 0.1, 0.4]}
    plan = od.Trajectory.load(tmp_path / "plan.npz")
    assert np.allclose(plan.v[0], [0.1, 0, 0, -0.1, 0, 0, 0], atol=1e-9)
    armed = od.robots.panda().with_frame("tool", "panda_link7", (0, 0, 0.2))
    assert np.allclose(pose(armed, "tool", plan.q[-1])[0], [0.45, 0.1, 0.4], atol=1e-6)
    assert (tmp_path / "plan.gif").read_bytes()[:4] == b"GIF8"
    assert (tmp_path / "joint_trajectory.json").exists()


def fork(*names):
    """Three bodies: two fingers of these names on a palm."""
    b = od.RobotBuilder("fork")
    b.add_link("base")
    b.add_body("palm", "revolute", "base", axis=(0, 0, 1), mass=1.0, com=(0.1, 0, 0))
    for name in names:
        b.add_body(name, "revolute", "palm", axis=(0, 0, 1), mass=1.0, com=(0.1, 0, 0), xyz=(0.2, 0, 0))
    return b.build()


def test_the_robots_own_links_may_be_called_payload():
    single = fork("payload_gripper")
    carrying = plan_options.equipped(single, None, ["payload_gripper=1", "palm=0.1"])
    _, told = plan_options.goal_at(carrying, "0,0.2,0", None, [0.0, 0.0], single)
    assert told["frame"] == "payload_gripper"
    double = fork("payload", "payload_2")
    assert "payload_3" in plan_options.equipped(double, None, ["palm=1"]).frames
    with pytest.raises(od.ShapeError, match="say which by --frame: .'payload', 'payload_2'"):
        plan_options.goal_at(double, "0,0.2,0", None, [0.0] * 3)


@pytest.mark.slow
def test_what_ends_a_path_is_in_its_manifest(capsys, tmp_path):
    words = ["plan", "panda", "--from", *START, "--via", *(x + 0.1 for x in START), "--to-pose", "0.45,0.1,0.4"]
    words += ["--nodes", "20", "--continuity", "2", "--quiet", "--out", tmp_path]
    assert cli.main([str(w) for w in words]) == 0, capsys.readouterr().err
    facts = json.loads((tmp_path / "manifest.json").read_text())
    assert facts["to_pose"] == {"frame": "panda_link8", "p": [0.45, 0.1, 0.4]}


def test_a_frame_goes_with_a_pose_alone(capsys, tmp_path):
    (tmp_path / "way.csv").write_text("0,0,0,-2,0,2,0\n0.1,0,0,-2,0,2,0\n")
    words = ["plan", "panda", "--path", tmp_path / "way.csv", "--frame", "panda_link8", "--out", tmp_path / "out"]
    assert "--frame is what --to-pose is of" in refused(capsys, *words)


def test_a_mistake_in_a_pose_is_told_once(capsys):
    assert refused(capsys, *PLAN, "--to-pose", "0.4,0.1").count("--to-pose") == 1


PLAN = ["plan", "panda", "--from", *START, "--out", "never_written"]


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "words, said",
    [
        (["--to-pose", "0.4", "0.1"], "got 2 numbers, expected 3, 6 or 7"),
        (["--to-pose", "0.4,0.1,0.4,1,1,0,0"], "norm 1.41421"),
        (["--to-pose", "5", "0", "0"], "cannot get there"),
        (["--to-pose", "0.4,0.1,0.4", "--to", *START], "give one of them"),
        (["--to-pose", "0.4,0.1,0.4", "--frame", "panda_lnk8"], "panda_link8"),
        (["--to-pose", "here"], "--to-pose"),
        (["--frame", "panda_link8", "--to", *START], "--frame is what --to-pose is of"),
        (["--to", *START, "--payload", "panda_link8=1,2"], "expected 1, 4 or 10"),
        (["--to", *START, "--payload", "hand=1"], "frame of panda"),
        (["--to", *START, "--payload", "3"], "NAME=NUMBER"),
        (["--to", *START, "--payload", "panda_link8=-1"], "--payload panda_link8: the mass is -1 kg"),
        (["--to", *START, "--payload", "panda_link8=1", "panda_link8=2"], "given twice"),
        (["--to", *START, "--tool", "panda_link8=1"], "expected 3, 6 or 7"),
        (["--to", *START, "--start-velocity", "1"], "got 1 numbers, expected 7"),
        (["--to", *START, "--via", *START, "--start-velocity", *START], "omit --start-velocity"),
        (["--to", *START, "--start-velocity", *[90] * 7], "v"),
    ],
)
def test_mistakes_are_named(capsys, words, said):
    assert said in refused(capsys, *PLAN, *words)


def test_a_frame_keeps_the_robot_as_it_is():
    panda = od.robots.panda()
    armed = panda.with_frame("tool", "panda_link8", (0, 0, 0.1))
    f, g = (od.function(r, "inverse_dynamics") for r in (panda, armed))
    assert f.n_instructions() == g.n_instructions()
    assert set(armed.frames) == {*panda.frames, "tool"}
    for bad, error in (
        (("panda_link8", "panda_link8"), od.ModelError),
        (("", "panda_link8"), od.ModelError),
        (("tool", "lnk8"), od.UnknownName),
        (("tool", "panda_link8", (0, 0)), od.ShapeError),
        (("tool", "panda_link8", (0, 0, 0), -np.eye(3)), od.ShapeError),
        (("tool", "panda_link8", (0, 0, np.nan)), od.ShapeError),
    ):
        with pytest.raises(error):
            panda.with_frame(*bad)


@pytest.mark.slow
def test_a_word_where_nothing_limits_accelerations(capsys, tmp_path):
    words = ["plan", "planar_2r", "--from=-1.2,0.5", "--to=-0.5,-0.8", "--nodes", "12", "--out", str(tmp_path)]
    assert cli.main(words) == 0
    assert "oc-dyn: note: plan_point_to_point: the robot has no limits of accelerations" in capsys.readouterr().err
    for more in (["--dv", "20"], ["--quiet"]):
        assert cli.main([*words, *more]) == 0
        assert "no limits" not in capsys.readouterr().err


_POST = "scene: 1\nshapes:\n  post:\n    capsule: {radius: 0.05, length: 0.5}\n    xyz: [0.45, 0.0, 0.3]\n"
_BALL = "  ball:\n    sphere: 0.1\n    link: panda_link8\n"


def test_scenes_come_from_a_file_with_the_shapes_of_the_robot(tmp_path):
    file, robot = tmp_path / "scene.yaml", od.robots.panda()
    file.write_text(_POST)
    among = plan_options.scene_of(robot, file, 0.01)
    assert among["scene"] == od.Scene.of(robot).join(od.Scene.read(file))
    assert among["clearance"] == 0.01
    file.write_text(_POST + _BALL)
    with_ball = plan_options.scene_of(robot, file, None)["scene"]
    assert with_ball == od.Scene.of(robot).join(od.Scene.read(file))
    assert ("panda_link0", "ball") in with_ball.pairs
    with_ball.write(file)
    assert plan_options.scene_of(robot, file, None)["scene"].pairs == with_ball.pairs
    assert plan_options.scene_of(robot, None, None) == {}
    with pytest.raises(od.ShapeError, match="--clearance"):
        plan_options.scene_of(robot, None, 0.01)
    bare = od.robots.planar_2r()
    file.write_text(_POST)
    with pytest.raises(od.ShapeError, match="no collision shapes"):
        plan_options.scene_of(bare, file, 0.01)


def test_the_command_refuses_an_end_in_collision_by_the_pair(tmp_path, capsys):
    file = tmp_path / "scene.yaml"
    file.write_text(_POST)
    q = "0 0 0 -1.8 0 1.8 0.7"
    given = ["plan", "panda", "--from", "-0.9 0.3 0 -1.8 0 2.1 0.7", "--to", q, "--scene", str(file)]
    assert cli.main([*given, "--clearance", "0.01", "--out", str(tmp_path / "out")]) != 0
    assert "q_goal is in collision: 'panda_link" in capsys.readouterr().err


def test_many_turns_of_a_joint_without_limits_get_a_note():
    b = od.RobotBuilder("spun")
    b.add_link("base")
    b.add_body("a", "continuous", "base", mass=1.0, com=(0.1, 0, 0))
    b.add_body("b", "prismatic", "a", mass=1.0)
    robot = b.build()
    told = plan_options.turned_far(robot, [90.0, 90.0])
    assert "is to be at 90 rad, 14.3 turns; 90 degrees are 1.571" in told
    assert plan_options.turned_far(robot, [6.3, 90.0]) is None
    assert plan_options.turned_far(od.robots.four_bar(), [0.1]) is None
    assert plan_options.turned_far(od.robots.panda(), [90.0] * 7) is None  # refused, it has limits
