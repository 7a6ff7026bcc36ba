"""Writing files: several writers of one path, long names, full disks, disks of their own."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import oc_dyn as od
from oc_dyn.codegen.disk import write_texts
from oc_dyn.files import replacing, together, write_bytes, write_text
from oc_dyn.planning.trajectory import Trajectory

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def motion():
    return Trajectory([0.0, 1.0], [[[0.1], [0.2], [0.3], [0.4]]], joints=("j",), units=("rad",))


def test_threads_that_save_one_path(motion, tmp_path):
    path, failed, start = tmp_path / "plan.csv", [], threading.Barrier(8)

    def save():
        start.wait()
        try:
            for _ in range(20):
                motion.save(path)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=save) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert Trajectory.load(path).pieces.tolist() == motion.pieces.tolist()
    assert os.listdir(tmp_path) == ["plan.csv"]


@pytest.mark.skipif(os.name == "nt", reason="names may be as long on POSIX")
@pytest.mark.parametrize("ending", [".csv", ".npz", ".json", ".png"])
def test_names_as_long_as_the_system_allows(motion, tmp_path, ending):
    path = tmp_path / ("p" * (255 - len(ending)) + ending)
    motion.plot(path) if ending == ".png" else motion.save(path)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="names may be as long on POSIX")
def test_a_name_that_is_too_long_is_named(tmp_path):
    path = tmp_path / ("p" * 252 + ".csv")
    with pytest.raises(OSError) as caught:
        write_text(path, "x")
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path):
    """A limit of the size of files stops the write half-way, as a full disk does."""
    pytest.importorskip("resource")
    path = tmp_path / "table.csv"
    path.write_text("old")
    code = (
        "import resource, signal, sys\n"
        "from oc_dyn.files import write_bytes\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try:\n"
        "    write_bytes(sys.argv[1], bytes(200_000))\n"
        "except OSError as error:\n"
        "    print(error.errno, error.filename)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{errno.EFBIG} {path}\n", done.stderr
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")  # as a write has it: without a name


def test_every_file_of_the_toolkit_names_itself_on_a_full_disk(motion, tmp_path, monkeypatch):
    limits = od.Limits(("j",), v=1.0)
    monkeypatch.setattr(Path, "write_bytes", full)
    for path, write in (
        (tmp_path / "a.csv", motion.save), (tmp_path / "a.npz", motion.save), (tmp_path / "a.json", motion.save),
        (tmp_path / "limits.json", limits.write),
    ):  # fmt: skip
        with pytest.raises(OSError) as caught:
            write(path)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert os.listdir(tmp_path) == []


def test_an_error_of_another_file_keeps_its_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "x.csv"):
        (tmp_path / "absent.txt").open()
    assert caught.value.filename == str(tmp_path / "absent.txt")


@pytest.fixture
def mount(tmp_path, monkeypatch):
    """A folder that is a disk of its own: nothing can be moved into it from outside, nor can it be replaced."""
    folder = tmp_path / "disk"
    folder.mkdir()
    rename = os.replace

    def replace(source, target):
        inside = [folder in Path(x).parents for x in (source, target)]
        if inside[0] != inside[1] or folder in (Path(source), Path(target)):
            raise OSError(errno.EXDEV, "Invalid cross-device link", str(source), None, str(target))
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    return folder


def test_folders_of_files_on_a_disk_of_their_own(mount):
    write_texts("codegen", mount, {"a.c": "a", "a.h": "b"})
    assert sorted(os.listdir(mount)) == ["a.c", "a.h"]
    write_texts("codegen", mount / "new" / "arm", {"a.c": "c"})
    assert (mount / "new" / "arm" / "a.c").read_text() == "c"
    write_bytes(mount / "x.bin", b"x")
    assert sorted(os.listdir(mount)) == ["a.c", "a.h", "new", "x.bin"]


def test_code_on_a_disk_of_its_own(mount):
    made = od.codegen(od.function(od.robots.planar_2r(), "com"), mount)
    assert all(path.is_file() for path in made.files)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts as Linux has them")
def test_code_into_a_mount_point(tmp_path):
    (tmp_path / "disk").mkdir()
    code = "import sys, oc_dyn as od; od.codegen(od.function(od.robots.planar_2r(), 'com'), sys.argv[1])"
    shell = 'mount -t tmpfs none "$1" && "$2" -c "$3" "$1" && ls "$1"'
    command = ["unshare", "-Urm", "sh", "-c", shell, "sh", str(tmp_path / "disk"), sys.executable, code]
    try:
        able = subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "none", str(tmp_path)], capture_output=True)
    except OSError:
        pytest.skip("no unshare")
    if able.returncode:
        pytest.skip("no right to mount")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "disk.c" in done.stdout


def test_a_folder_in_the_way_of_a_file_changes_nothing(tmp_path):
    (tmp_path / "arm" / "b.c").mkdir(parents=True)
    (tmp_path / "arm" / "a.c").write_text("old")
    with pytest.raises(od.ModelError, match=r"b\.c.*give another folder"):
        write_texts("codegen", tmp_path / "arm", {"a.c": "new", "b.c": "new"})
    assert (tmp_path / "arm" / "a.c").read_text() == "old"
    assert sorted(os.listdir(tmp_path / "arm")) == ["a.c", "b.c"]


def test_a_folder_in_the_way_of_a_file_of_several_changes_nothing(tmp_path):
    (tmp_path / "b.csv").mkdir()
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(IsADirectoryError) as error, together(tmp_path) as part:
        (part / "a.csv").write_text("new")
        (part / "b.csv").write_text("new")
    assert error.value.filename == str(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv"]


def test_errors_of_files_that_take_their_places_together_name_those(tmp_path):
    with pytest.raises(FileNotFoundError) as error, together(tmp_path) as part:
        (part / "missing" / "a.csv").write_text("new")
    assert error.value.filename == str(tmp_path / "missing" / "a.csv")


def test_folders_that_were_made_for_nothing_go_again(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(od.ModelError, match="No space left on device.*give another folder"):
        write_texts("codegen", tmp_path / "new" / "arm", {"a.c": "a"})
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_the_code_of_a_controller_is_written_all_or_not_at_all(tmp_path, monkeypatch):
    ocp = od.Problem(nodes=2, duration=1.0)
    x, u = ocp.state("x", 2), ocp.control("u", 2)
    ocp.rate(x, u)
    ocp.minimize(squares=x, terminal=x[0] ** 2)
    ocp.start({x: ocp.parameter("now", 2)})
    controller = od.mpc(ocp)
    files = controller.codegen(tmp_path / "code")
    before = {path: path.read_bytes() for path in files}
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(od.ModelError, match="mpc into .*No space left"):
        controller.codegen(tmp_path / "code")
    assert {path: path.read_bytes() for path in (tmp_path / "code").iterdir()} == before


@pytest.mark.parametrize("there", [True, False])
def test_links_are_written_through(tmp_path, there):
    for name in ("one.csv", "two.csv"):
        if there:
            (tmp_path / name).write_text("old")
        try:
            (tmp_path / f"link_{name}").symlink_to(name)
        except OSError:
            pytest.skip("no right to make links")
    write_text(tmp_path / "link_one.csv", "new")
    write_texts("codegen", tmp_path, {"link_two.csv": "new"})
    for name in ("one.csv", "two.csv"):
        assert (tmp_path / f"link_{name}").is_symlink()
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_text() == "new"
