"""Files: complete or not there, in folders of any name, with clear words where writing is not allowed."""

import os
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import oc_dyn as od
from oc_dyn import cli
from oc_dyn.files import replacing, write_text
from oc_dyn.planning.trajectory import Trajectory
from oc_dyn.runs.stored_table import StoredTable

ROOT = Path(__file__).resolve().parents[1]
URDF = (
    '<robot name="r"><link name="base"/><link name="l"><inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" '
    'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="base"/>'
    '<child link="l"/><axis xyz="0 0 1"/><limit velocity="2" effort="20" acceleration="10" jerk="100"/></joint></robot>'
)
FOLDERS = ["plain", "with blanks", "Größe äöü", "机器人", "emoji 🤖", "quote ' and \"", "100% $HOME #1"]


def script(text, *arguments, **options):
    """A Python process that runs the text."""
    code = textwrap.dedent(text)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "r.urdf"
    path.write_text(URDF, encoding="utf-8")
    return od.plan_point_to_point(od.load_urdf(path), [0.0], [0.5], nodes=8)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_any_name(plan, tmp_path, name):
    if os.name == "nt" and '"' in name:
        pytest.skip("no such folder on Windows")
    folder = tmp_path / name
    folder.mkdir()
    robot = folder / f"{name[:4]} robot.urdf"
    robot.write_text(URDF, encoding="utf-8")
    assert od.load_urdf(robot).nv == od.load_urdf(str(robot)).nv == 1
    for ending in ("csv", "npz", "json", "png"):
        path = folder / f"{name[:4]} plan.{ending}"
        plan.plot(path) if ending == "png" else plan.save(path)
        assert path.stat().st_size > 100
        if ending != "png":
            assert Trajectory.load(path).joints == ("j",)
    od.Limits.of(od.load_urdf(robot)).write(folder / "limits é.json")
    assert od.Limits.read(folder / "limits é.json", od.load_urdf(robot)).v[0] == 2
    assert len(os.listdir(folder)) == 6


@pytest.mark.slow
def test_command_line_in_a_folder_of_any_name(tmp_path, capsys):
    folder = tmp_path / "mein Gerät 机"
    folder.mkdir()
    (folder / "r.urdf").write_text(URDF, encoding="utf-8")
    words = ["plan", str(folder / "r.urdf"), "--from=0", "--to=0.5", "--nodes", "8", "--out", str(folder / "aus gabe")]
    assert cli.main(words) == 0, capsys.readouterr().err
    assert any((folder / "aus gabe").iterdir())


def read_only(folder):
    """Whether the folder, made read-only, refuses writing: it does not where tests run as root."""
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        (folder / "probe").write_text("")
    except OSError:
        return True
    (folder / "probe").unlink()
    return False


def test_folder_that_is_read_only(plan, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "fixed"
    if not read_only(folder):  # the same from the system's mouth

        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied", str(folder))

        monkeypatch.setattr(Path, "write_bytes", refuse)
        monkeypatch.setattr(Path, "mkdir", refuse)
    try:
        for ending in ("csv", "npz", "json"):
            with pytest.raises(OSError, match="fixed"):
                plan.save(folder / f"p.{ending}")
        with pytest.raises(OSError, match="fixed"):
            write_text(folder / "x.txt", "x")
        (tmp_path / "r.urdf").write_text(URDF, encoding="utf-8")
        words = ["plan", str(tmp_path / "r.urdf"), "--from=0", "--to=0.5", "--nodes", "8", "--out", str(folder / "out")]
        assert cli.main(words) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
        assert "fixed" in line
        assert "internal error" not in line
        assert os.listdir(folder) == []
    finally:
        folder.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("stop", ["error", "KeyboardInterrupt"])
def test_a_write_that_is_stopped_leaves_the_old_file(tmp_path, stop):
    path = tmp_path / "x.csv"
    path.write_text("old")
    kind = {"error": RuntimeError, "KeyboardInterrupt": KeyboardInterrupt}[stop]
    with pytest.raises(kind), replacing(path) as part:
        part.write_text("half of the n")
        raise kind
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.csv"]


@pytest.mark.slow
def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    process = script(
        """
        import sys, time
        from oc_dyn.files import replacing
        with replacing(sys.argv[1]) as part:
            part.write_text("half of the n")
            print("writing", flush=True)
            time.sleep(60)
        """,
        path,
    )
    assert process.stdout.readline() == "writing\n"
    process.kill()
    process.communicate()
    assert path.read_text() == "old"


@pytest.mark.slow
def test_two_processes_that_write_one_table(tmp_path):
    path = tmp_path / "rows.csv"
    text = """
        import sys
        from oc_dyn.runs.stored_table import StoredTable
        rows = StoredTable(sys.argv[1], ["who", "k"], ["value"])
        for k in range(60):
            rows.add(who=sys.argv[2], k=k, value="x" * 2000)
        rows.close()
        """
    writers = [script(text, path, who) for who in ("a", "b")]
    while any(w.poll() is None for w in writers):  # a reader never sees half a table
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            assert lines[0] == "who,k,value,code"
            assert all(len(x.split(",")) == 4 for x in lines)
            assert all(len(x.split(",")[2]) == 2000 for x in lines[1:])
        time.sleep(0.005)  # leaves the cores to the writers
    for w in writers:
        _, err = w.communicate()
        assert w.returncode == 0, err
    assert sorted(os.listdir(tmp_path)) == ["rows.csv", "rows.sqlite"]
    rows = StoredTable(path, ["who", "k"], ["value"])
    assert [len([k for k in rows.found if k[0] == who]) for who in "ab"] == [60, 60]  # none has lost its own


def test_two_processes_that_save_one_plan(plan, tmp_path):
    source, path = tmp_path / "source.npz", tmp_path / "plan.csv"
    plan.save(source)
    text = """
        import sys
        from oc_dyn.planning.trajectory import Trajectory
        plan = Trajectory.load(sys.argv[1])
        for _ in range(40):
            plan.save(sys.argv[2])
        """
    writers = [script(text, source, path) for _ in range(2)]
    while any(w.poll() is None for w in writers):
        if path.exists():
            assert Trajectory.load(path).duration == plan.duration
        time.sleep(0.005)
    for w in writers:
        _, err = w.communicate()
        assert w.returncode == 0, err
    assert sorted(os.listdir(tmp_path)) == ["plan.csv", "source.npz"]
