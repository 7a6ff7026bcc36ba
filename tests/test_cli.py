"""The command line: what it writes and prints, what it understands, and that every mistake gets one clear line."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from clones import clone

import oc_dyn as od
from oc_dyn import cli, demo
from oc_dyn.command_line import numbers_of

START = "0,-0.78,0,-2.36,0,1.57,0.78"
GOAL = "0.3 -0.5 0.1 -2.2 -0.1 1.7 0.5".split()
QUICK = ["--nodes", "8", "--ignore", "tau", "dtau"]
ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="a"><inertial><mass value="1"/><origin xyz="0.2 0 0"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><origin xyz="0.2 0 0"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="one" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="2" effort="20"/></joint>
  <joint name="two" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/><origin xyz="0.4 0 0"/>
    <limit lower="-2" upper="2" velocity="2" effort="10"/></joint>
</robot>
"""


def run(capsys, *words):
    """(status, stdout, stderr) of one command, in this process."""
    status = cli.main([str(w) for w in words])
    out, err = capsys.readouterr()
    return status, out, err


def refused(capsys, *words):
    """The one line on stderr of a command that must fail."""
    status, out, err = run(capsys, *words)
    assert status == 2
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


# -- list -----------------------------------------------------------------------------------------------------


def test_list_prints_the_table(capsys):
    assert run(capsys, "list") == (0, od.table() + "\n", "")
    assert run(capsys, "list", "--markdown") == (0, od.table(markdown=True) + "\n", "")
    assert run(capsys, "list", "--quiet") == (0, "", "")


def test_list_updates_the_table_of_a_file(capsys, tmp_path):
    path = tmp_path / "a.md"
    path.write_text("# A\n<!-- table -->\nold\n<!-- /table -->\nend\n")
    for _ in range(2):  # again changes nothing
        assert run(capsys, "list", "--update", path)[0] == 0
        assert path.read_text() == f"# A\n<!-- table -->\n{od.table(markdown=True)}\n<!-- /table -->\nend\n"
    path.write_text("# A\n<!-- table -->\n")
    assert "<!-- /table -->" in refused(capsys, "list", "--update", path)
    assert path.read_text() == "# A\n<!-- table -->\n"
    assert "nowhere.md" in refused(capsys, "list", "--update", tmp_path / "nowhere.md")


def test_describe_prints_the_text(capsys):
    assert run(capsys, "describe", "bias") == (0, od.describe("bias") + "\n", "")
    panda = od.robots.panda()
    told = run(capsys, "describe", "bias", "--order", "2", "--robot", "panda")
    assert told == (0, od.describe("bias", panda, order=2) + "\n", "")
    floating = run(capsys, "describe", "bias", "--robot", "panda", "--floating")[1]
    assert "    v  13  " in floating
    assert "did you mean" in refused(capsys, "describe", "biass")
    assert "elastic robot" in refused(capsys, "describe", "elastic_flat_map", "--robot", "panda")


def test_help_and_version(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    assert all(c in out for c in ("demo", "plan", "list"))
    status, out, _ = run(capsys, "plan", "--help")
    assert status == 0
    assert all(o in out for o in ("--from", "--continuity", "--limits", "panda"))
    assert run(capsys, "--version") == (0, f"oc-dyn {od.__version__}\n", "")


# -- plan -----------------------------------------------------------------------------------------------------


def test_plan_writes_what_it_says(capsys, tmp_path):
    out = tmp_path / "new" / "plan"
    status, text, err = run(capsys, "plan", "panda", f"--from={START}", "--to", *GOAL, *QUICK, "--out", out)
    assert (status, err) == (0, "")
    assert sorted(p.name for p in out.iterdir()) == [
        *("joint_trajectory.json", "manifest.json", "plan.csv", "plan.npz", "plan.png"),
    ]
    assert all(name in text for name in ("plan.csv", "plan.npz", "plan.png", "manifest.json"))
    assert "velocity v" in text
    assert "within all limits" in text

    plan = od.Trajectory.load(out / "plan.npz", robot=od.robots.panda())
    assert np.allclose(plan.q[0], numbers_of(START), atol=1e-9)
    assert np.allclose(plan.q[-1], np.array(GOAL, float), atol=1e-6)
    assert f"T = {plan.duration:.5g} s" in text
    sampled = od.Trajectory.load(out / "plan.csv")
    assert np.allclose(np.diff(sampled.t)[:-1], 1e-3)
    assert np.allclose(sampled.q, plan.sample(sampled.t).q, atol=1e-12)

    facts = json.loads((out / "manifest.json").read_text())
    assert facts["from"] == numbers_of(START)
    assert facts["to"] == [float(x) for x in GOAL]
    assert facts["plan"]["duration"] == pytest.approx(plan.duration)
    assert facts["plan"]["share_of_limits"]["v"] == pytest.approx(plan.check().rows[1].share)
    assert str(tmp_path) not in json.dumps(facts)


@pytest.mark.slow
def test_quiet_prints_nothing(capfd, tmp_path):
    words = ["plan", "panda", f"--from={START}", "--to", *GOAL, *QUICK, "--out", str(tmp_path), "--quiet"]
    assert cli.main(words) == 0
    assert tuple(capfd.readouterr()) == ("", "")  # nothing from the solver either
    assert (tmp_path / "plan.csv").exists()


@pytest.mark.slow
def test_plan_of_a_file_with_files_and_options(capsys, arm, tmp_path):
    (tmp_path / "q0.txt").write_text("[-0.5,\n 0.25]\n")
    (tmp_path / "limits.json").write_text(json.dumps({"one": {"dv": 3, "d2v": 50}, "two": {"dv": 4, "d2v": 50}}))
    words = ["plan", arm, "--from", tmp_path / "q0.txt", "--to", "0.5", "-.25", "--limits", tmp_path / "limits.json"]
    words += ["--nodes", "10", "--scale", "dv=0.5", "tau=0.9", "--scale", "v=0.4", "--out", tmp_path / "out"]
    status, _, err = run(capsys, *words)
    assert (status, err) == (0, "")
    plan = od.Trajectory.load(tmp_path / "out" / "plan.npz", robot=od.load_urdf(arm))
    assert np.allclose(plan.q[[0, -1]], [[-0.5, 0.25], [0.5, -0.25]], atol=1e-6)
    used = np.abs(plan.sample(1e-3).v).max(axis=0), np.abs(plan.sample(1e-3).dv).max(axis=0)
    assert used[0].max() == pytest.approx(0.8, rel=0.01) or used[1][0] == pytest.approx(1.5, rel=0.01)
    assert np.all(used[0] <= 0.8 * 1.001)
    assert np.all(used[1] <= np.array([1.5, 2.0]) * 1.001)


@pytest.mark.slow
def test_plan_with_unequal_limits(capsys, arm, tmp_path):
    words = ["plan", arm, "--from=-0.5,0", "--to", "0.5", "-.25", "--nodes", "10", "--continuity", "2", "--dv=-2:5"]
    status, _, err = run(capsys, *words, "--v", "3,2", "--out", tmp_path / "out")
    assert (status, err) == (0, "")
    plan = od.Trajectory.load(tmp_path / "out" / "plan.npz")
    assert [x.tolist() for x in plan.limits.bounds("dv")] == [[-2, -2], [5, 5]]
    assert plan.limits.v.tolist() == [3, 2]
    assert plan.both_sides(1e-3).dv[:, 0].min() == pytest.approx(-2, rel=1e-3)
    status, _, err = run(capsys, *words, "--tau=1:2:3", "--out", tmp_path / "out")
    assert status != 0
    assert "--tau: got '1:2:3', expected a number, or LOWER:UPPER" in err


@pytest.mark.slow
def test_plan_with_a_locked_joint_for_least_effort(capsys, arm, tmp_path):
    words = ["plan", arm, "--lock", "two=-0.5", "--from=0", "--to=1", "--objective", "effort", "--duration", "1.5"]
    status, _, err = run(capsys, *words, "--nodes", "8", "--continuity", "2", "--out", tmp_path / "out")
    assert (status, err) == (0, "")
    plan = od.Trajectory.load(tmp_path / "out" / "plan.npz")
    assert plan.q.shape[1] == 1
    assert plan.duration == pytest.approx(1.5)
    assert plan.continuity == 2


@pytest.mark.parametrize(
    "words, numbers",
    [
        (["--from", "0", "-0.78", "-1e-3"], [0, -0.78, -1e-3]),
        (["--from=0,-0.78,-.5"], [0, -0.78, -0.5]),
        (["--from", "-0.5,0,1"], [-0.5, 0, 1]),
        (["--from", "-0.5", ",", "-1"], [-0.5, -1]),
        (["--from", "[-1,", "2]"], [-1, 2]),
    ],
)
def test_numbers_may_be_negative_and_are_not_taken_for_options(words, numbers):
    options = cli._parser().parse_args(cli._with_vectors_joined(["plan", *words, "panda", "--to=1", "--out", "x"]))
    assert numbers_of(getattr(options, "from")) == numbers
    assert (options.robot, options.to, options.out) == ("panda", "1", "x")


def test_a_limit_takes_its_numbers_with_blanks_or_commas():
    for given in ("--dtau 400 600.5", "--dtau 400,600.5", "--dtau=400,600.5", "--dtau 400, 600.5"):
        words = ["plan", *given.split(), "arm", "--v", "2", "--dv=-2:5", "--out", "x"]
        options = cli._parser().parse_args(cli._with_vectors_joined(words))
        assert cli._sides("--dtau", options.dtau, 2) == [400, 600.5]
        assert (options.robot, options.v, options.dv) == ("arm", "2", "-2:5")


# -- mistakes -------------------------------------------------------------------------------------------------

PLAN = ["plan", "panda", f"--from={START}", "--to", *GOAL]


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "COMMAND"),
        (["dem"], "dem"),
        (["plan", "panda"], "--out"),
        (["plan", "panda", "--out", "o"], "--from is missing"),
        ([*PLAN], "--out"),
        ([*PLAN, "--out", "o", "--node", "3"], "--node"),
        ([*PLAN, "--out", "o", "--nodes", "0"], "at least 1"),
        ([*PLAN, "--out", "o", "--nodes", "many"], "invalid whole number value: 'many'"),
        ([*PLAN, "--out", "o", "--duration", "-1"], "positive"),
        ([*PLAN, "--out", "o", "--objective", "beauty"], "'time', 'effort'"),
        ([*PLAN, "--out", "o", "--scale", "v"], "NAME=NUMBER"),
        ([*PLAN, "--out", "o", "--scale", "v=fast"], "v=fast"),
        ([*PLAN, "--out", "o", "--scale", "vv=0.5"], "'vv'"),
        ([*PLAN, "--out", "o", "--ignore", "toque"], "'toque'"),
        ([*PLAN, "--out", "o", "--lock", "panda_joint=1"], "did you mean 'panda_joint"),
        ([*PLAN, "--out", "o", "--solver", "ipop"], "'ipopt'"),
        ([*PLAN, "--out", "o", "--continuity", "1"], "continuity"),
        ([*PLAN, "--out", "o", "--limits", "nowhere.json"], "nowhere.json"),
        (["plan", "pandas", f"--from={START}", "--to", *GOAL, "--out", "o"], "'panda'"),
        (["plan", "nowhere.urdf", "--from=0", "--to=1", "--out", "o"], "nowhere.urdf"),
        (["plan", "panda", "--from=0,1", "--to=1", "--out", "o"], "got 2 numbers, expected 7: panda_joint1"),
        (["plan", "panda", "--from", "nowhere.txt", "--to=1", "--out", "o"], "'nowhere.txt' is neither"),
        (["plan", "panda", "--from=0,0,0,0,0,0,0", "--to", *GOAL, "--out", "o"], "panda_joint4"),
        (["demo", "--nodes", "-3"], "--nodes"),
    ],
)
def test_one_line_and_status_2(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, *words)
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_degrees_are_recognised_and_advice_is_of_the_command_line(capsys, arm, tmp_path):
    words = ["plan", arm, "--from=0,0", "--out", tmp_path / "o"]
    line = refused(capsys, *words, "--to", 90, 0)
    assert "'one' is 90, outside its limits -2 to 2 rad (90 degrees are 1.571 rad); " in line
    assert "or leave it out by --ignore q\n" in line
    assert "degrees" not in refused(capsys, *words, "--to", 150, 0)  # outside in degrees, too
    line = refused(capsys, *words, "--via=0,-45", "--to=0,0")
    assert "outside its limits -2 to 2 rad (-45" in line
    bare = tmp_path / "bare.urdf"
    bare.write_text(ARM.replace('velocity="2" effort="20"', 'velocity="inf" effort="inf"'))
    line = refused(capsys, "plan", bare, "--from=0,0", "--to=1,0", "--out", tmp_path / "o")
    assert "give a limit (--v, --limits FILE), or --duration with --objective effort" in line


def test_all_problems_of_a_file_in_one_line(capsys, tmp_path):
    bad = ARM.replace('<child link="b"/>', '<child link="bb"/>').replace(
        '<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>', 1
    )
    (tmp_path / "bad.urdf").write_text(bad)
    line = refused(capsys, "plan", tmp_path / "bad.urdf", "--from=0", "--to=1", "--out", tmp_path / "o")
    assert "bad.urdf" in line
    assert "'bb'" in line
    assert "'one'" in line


def test_wrong_files_of_numbers_and_limits(capsys, arm, tmp_path):
    (tmp_path / "q.txt").write_text("0 zero")
    line = refused(capsys, "plan", arm, "--from", tmp_path / "q.txt", "--to=0,0", "--out", tmp_path / "o")
    assert "q.txt" in line
    assert "'zero'" in line
    (tmp_path / "q.bin").write_bytes(b"\xff\xfe\x00")
    assert "q.bin" in refused(capsys, "plan", arm, "--from", tmp_path / "q.bin", "--to=0,0", "--out", tmp_path / "o")
    (tmp_path / "l.json").write_text('{"one": {"v": }}')
    words = ["plan", arm, "--from=0,0", "--to=1,1", "--limits", tmp_path / "l.json", "--out", tmp_path / "o"]
    assert "l.json:1" in refused(capsys, *words)
    assert "Is a directory" in refused(capsys, "plan", arm, "--from", tmp_path, "--to=0,0", "--out", tmp_path / "o")


def test_folder_that_cannot_be_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(od, "plan_point_to_point", lambda *_, **__: pytest.fail("planned before looking"))
    monkeypatch.setattr(demo, "plan", lambda *_, **__: pytest.fail("planned before looking"))
    (tmp_path / "file").write_text("")
    for words in (PLAN, ["demo"]):
        assert "file is a file" in refused(capsys, *words, "--out", tmp_path / "file" / "sub")
        with monkeypatch.context() as patch:
            patch.setattr(cli.os, "access", lambda *_: False)  # root may write anywhere
            assert "no right to write" in refused(capsys, *words, "--out", tmp_path / "sub")


def test_solver_that_fails(capsys, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise od.SolveError("ipopt stopped:\n  too many iterations", status="x")

    monkeypatch.setattr(od, "plan_point_to_point", fail)
    assert "ipopt stopped: too many iterations" in refused(capsys, *PLAN, "--out", tmp_path)


def test_motion_over_a_limit_is_told(capsys, tmp_path, monkeypatch):
    words = [*PLAN, *QUICK, "--out", tmp_path]
    real = od.plan_point_to_point

    def careless(robot, *ends, **options):
        plan = real(robot, *ends, **options)
        plan.limits = plan.limits.scaled(v=0.5)
        return plan

    monkeypatch.setattr(od, "plan_point_to_point", careless)
    status, _, err = run(capsys, *words)
    assert status == 1
    assert "exceeds a limit" in err
    assert err.count("\n") == 1


def test_interrupt_and_bugs(capsys, tmp_path, monkeypatch):
    for error, status, said in (
        (KeyboardInterrupt(), 130, "oc-dyn: stopped\n"),
        (RuntimeError("two\nlines"), 2, "internal error: RuntimeError: two lines"),
    ):

        def stop(*_, error=error, **__):
            raise error

        monkeypatch.setattr(od, "plan_point_to_point", stop)
        got, out, err = run(capsys, *PLAN, "--out", tmp_path)
        assert (got, out) == (status, "")
        assert said in err
        assert err.count("\n") == 1


def test_interrupt_that_a_solver_turns_into_an_error(capsys, tmp_path, monkeypatch):
    def solve(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise od.SolveError("the solver stopped") from None

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(od, "plan_point_to_point", solve)
    assert run(capsys, *PLAN, "--out", tmp_path) == (130, "", "oc-dyn: stopped\n")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_as_a_process(tmp_path):
    def call(*words):
        return subprocess.run(
            [sys.executable, "-m", "oc_dyn.cli", *words],
            capture_output=True,
            text=True,
            cwd=Path(cli.__file__).parents[1],
        )

    done = call("list")
    assert (done.returncode, done.stdout, done.stderr) == (0, od.table() + "\n", "")
    done = call("plan", "panda", "--from=1", "--to=1", "--out", str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


# -- demo -----------------------------------------------------------------------------------------------------


def test_demo(capsys, tmp_path):
    with clone(tmp_path / "clone") as quick:
        status, text, err = run(capsys, "demo", "--nodes", "12")
    out = quick / "demo"
    assert (status, err) == (0, "")
    names = ["demo.csv", "demo.gif", "demo.html", "demo.npz", "demo.png", "manifest.json"]
    assert sorted(p.name for p in out.iterdir()) == names
    assert (out / "demo.gif").read_bytes()[:4] == b"GIF8"
    assert all(name in text for name in names)
    assert "torque rate dtau" in text
    assert "'recursive_body'" in text
    assert "iterations" in text
    facts = json.loads((out / "manifest.json").read_text())
    assert facts["command"].startswith("oc-dyn demo --nodes 12")
    assert facts["second_method"]["samples"] == pytest.approx(1000 * facts["plan"]["duration"], abs=2)
    assert facts["second_method"]["dtau_difference"] < 1e-9 * facts["second_method"]["dtau_largest"]
    assert max(facts["plan"]["share_of_limits"].values()) == pytest.approx(1, abs=0.005)


@pytest.mark.slow
def test_second_opinion_notices_wrong_torques():
    plan = demo.plan(nodes=8, progress=False)
    assert demo.second_opinion(plan).ok()
    grid = plan.sample(demo.DT)
    wrong = demo.second_opinion(_Tampered(plan, grid))
    assert not wrong.ok()
    assert wrong.tau_difference == pytest.approx(0.01, rel=1e-6)


class _Tampered:
    """A motion whose torque is off by 0.01 Nm in one joint at one time."""

    def __init__(self, plan, grid):
        self.robot, self._grid = plan.robot, grid
        tau = np.array(grid.tau)
        tau[5, 3] += 0.01
        grid._torques = tau, grid.dtau

    def sample(self, _):
        return self._grid


def test_study_list_names_all_and_unknown_one_is_told(capsys):
    assert cli.main(["study", "list"]) == 0
    assert "growth" in capsys.readouterr().out.split()
    assert cli.main(["study", "grwth"]) == 2
    assert "did you mean 'growth'" in capsys.readouterr().err


# -- where it runs --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX, and its signals")
def test_closed_streams_are_no_error():
    command = f"'{sys.executable}' -m oc_dyn.cli list >&- <&-"
    found = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX, and its signals")
def test_ctrl_c_while_the_package_is_imported():
    """A module that the import comes across sends the signal, as if a user did."""
    text = (
        "import sys, runpy, os, signal, importlib.abc\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'oc_dyn.planning':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['/usr/bin/oc-dyn', 'list']\n"
        "from oc_dyn.cli import main\n"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (130, "oc-dyn: stopped\n")
