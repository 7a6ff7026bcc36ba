"""Functions on the disk: what is loaded computes what was built, with its registered derivatives, or is built again."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
import zlib
from hashlib import sha256
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import digest
from oc_dyn import function_store as store
from oc_dyn.derivatives import registered, with_derivatives

posix = pytest.mark.skipif(os.name != "posix", reason="modes, owners and signals as POSIX has them")
ROOT = Path(od.__file__).parents[1]
MOTION = [0.1, -0.4], [0.3, 0.2], [0.5, -0.6]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "functions"
    monkeypatch.setenv(store.ENVIRONMENT, str(folder))
    monkeypatch.setattr(store, "SLOW", 0.0)
    return folder


@pytest.fixture
def built(monkeypatch):
    """Names of the Functions that are built, one after the other."""
    names, module = [], sys.modules["oc_dyn.function"]
    build = module._build

    def counted(*args):
        names.append(args[5])
        return build(*args)

    monkeypatch.setattr(module, "_build", counted)
    return names


def made(**options):
    return od.function(od.robots.planar_2r(), "inverse_dynamics", **options)


def values(f):
    return [x.full().tolist() for x in f.call([ca.DM(x) for x in MOTION])]


def files(folder):
    return sorted(folder.glob("*.functions"))


# -- what is loaded ---------------------------------------------------------------------------------------------


def test_a_function_is_built_once_for_equal_robots(built):
    first, again = made(), made()
    assert built == ["inverse_dynamics_0"]
    assert type(again) is od.RobotFunction
    assert (again.name_in(), again.name_out()) == (first.name_in(), first.name_out())
    assert again.n_instructions() == first.n_instructions()
    assert values(again) == values(first)
    with pytest.raises(od.ShapeError, match="port v got shape"):
        again([0, 0], [0, 0, 0], [0, 0])


@pytest.mark.parametrize(
    "options", [{"order": 1}, {"friction": True}, {"method": "closed_form"}, {"name": "f"}, {"external_wrenches": True}]
)
def test_what_decides_a_function_is_in_its_key(built, options):
    made()
    made(**options)
    assert len(built) == 2


def test_robots_that_differ_in_a_digit_have_functions_of_their_own(built):
    def arm(mass):
        b = od.RobotBuilder("arm")
        b.add_link("base")
        b.add_body("link", "revolute", "base", axis=(0, 1, 0), mass=mass, com=(0.3, 0, 0), inertia=np.eye(3))
        return od.function(b.build(), "inverse_dynamics")

    at = [0.2], [0.1], [0.3]
    light, heavy = arm(1.0), arm(1.0 + 1e-15)
    assert len(built) == 2
    assert float(light(*at)) != float(heavy(*at))


@pytest.mark.parametrize("version", ["casadi", "source"])
def test_other_versions_have_functions_of_their_own(built, monkeypatch, version):
    made()
    if version == "casadi":
        monkeypatch.setattr(ca.CasadiMeta, "version", lambda: "0.0")
    else:
        monkeypatch.setattr(store, "_source", lambda: "another")
    made()
    assert len(built) == 2


def test_source_that_changed_while_it_runs_stands_for_nothing(built, folder, monkeypatch):
    monkeypatch.setattr(store, "_STARTED", 0.0)
    monkeypatch.setattr(store, "_source", store._source.__wrapped__)
    assert store._source() is None
    made()
    assert not folder.exists() or not files(folder)


def test_a_change_of_the_source_changes_its_digest(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(store, "_PACKAGE", tmp_path)
    monkeypatch.setattr(store, "_STARTED", time.time() + 100)
    file, digests = tmp_path / "a" / "b.py", set()
    for text in ("x = 1", "x = 2"):
        file.write_text(text)
        os.utime(file, (1e9, 1e9))  # of the same size and time
        digests.add(store._source.__wrapped__())
    assert len(digests) == 2
    assert None not in digests


@posix
@pytest.mark.parametrize("when, none", [(1e9, True), (1e10, False)])
def test_times_that_were_set_say_nothing_of_the_source(tmp_path, monkeypatch, when, none):
    """A copy that keeps its times is new; a file from the future is not."""
    monkeypatch.setattr(store, "_PACKAGE", tmp_path)
    monkeypatch.setattr(store, "_STARTED", time.time() + (-100 if none else 100))
    (tmp_path / "b.py").write_text("x = 1")
    os.utime(tmp_path / "b.py", (when, when))
    assert (store._source.__wrapped__() is None) == none


@posix
def test_locks_of_editors_are_no_source(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_PACKAGE", tmp_path)
    monkeypatch.setattr(store, "_STARTED", time.time() + 100)
    (tmp_path / "b.py").write_text("x = 1")
    before = store._source.__wrapped__()
    os.symlink("me@host.1:2", tmp_path / ".#b.py")
    assert store._source.__wrapped__() == before is not None
    os.symlink("gone.py", tmp_path / "c.py")
    assert store._source.__wrapped__() is None


def test_functions_of_quick_builds_are_not_kept(folder, monkeypatch):
    monkeypatch.setattr(store, "SLOW", 1e6)
    made()
    assert not files(folder)


def test_checks_of_configurations_stay(built):
    def quadruped():
        return od.robots.quadruped()

    for _ in range(2):
        f = od.function(quadruped(), "mass_matrix")
        with pytest.raises(od.ShapeError, match="quaternion|norm"):
            f(np.ones(f.size1_in("q")))
    assert built.count("mass_matrix_0") == 1


def test_singular_mass_matrices_are_told_by_a_loaded_function(built):
    def point_at_the_tip():
        b = od.RobotBuilder("stretched")
        b.add_link("base")
        b.add_body("upper", "revolute", "base", axis=(0, 0, 1))
        b.add_body("lower", "revolute", "upper", axis=(0, 0, 1), xyz=(1, 0, 0), mass=1, com=(1, 0, 0))
        return od.function(b.build(), "forward_dynamics")

    for _ in range(2):
        with pytest.raises(od.ModelError, match="at q = "):
            point_at_the_tip()([0, 0], [1, 0], [0, 1])
    assert built == ["forward_dynamics_0"]


@pytest.mark.parametrize("method", ["compact", "bicomplex"])
def test_functions_that_call_functions(built, method):
    def second():
        return od.function(od.robots.planar_2r(), "inverse_dynamics_second_partials", method=method)

    first, count = second(), len(built)
    again = second()
    assert len(built) == count
    assert first.is_a("MXFunction")
    assert again.is_a("MXFunction")
    assert values(first) == values(again)


# -- registered derivatives -------------------------------------------------------------------------------------


def hessian_of(f):
    x = [ca.MX.sym(n, f.size1_in(n)) for n in f.name_in()]
    lam = ca.MX.sym("lam", f.size1_out(0))
    H = ca.hessian(ca.dot(lam, ca.Function(f)(*x)), ca.vertcat(*x))[0]
    return ca.Function("H", [*x, lam], [H])


def steps(f):
    """Instructions of a Function and of all that it calls, as often as it does."""
    calls = [f.instruction_MX(k).which_function() for k in range(f.n_instructions())
             if f.instruction_id(k) == ca.OP_CALL] if f.is_a("MXFunction") else []  # fmt: skip
    return f.n_instructions() + sum(map(steps, calls))


@pytest.mark.sample(1)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_hessians_use_the_registered_derivatives_of_a_loaded_function(built, quantity):
    def analytic():
        return od.function(od.robots.panda(), quantity, derivatives="analytic")

    first = analytic()
    count = len(built)
    again = analytic()
    assert len(built) == count
    assert again.n_instructions() == first.n_instructions()
    of_first, of_again = hessian_of(first), hessian_of(again)
    assert steps(of_again) == steps(of_first)
    called = {g.name() for g in of_again.find_functions()}
    assert f"jac_adj1_{first.name()}" in called
    at = np.random.default_rng(0).uniform(-1, 1, (4, 7))
    assert np.allclose(of_again(*at).full(), of_first(*at).full(), rtol=1e-12, atol=1e-12)
    assert max(od.check_derivatives(again).values()) < 1e-7
    assert again.twin.n_instructions() == first.twin.n_instructions()
    assert digest.digest(again) == digest.digest(first)  # what is kept under it, as results of sweeps, stays


def false_square():
    """x^2 whose registered derivatives are those of x^3, so that it shows who uses them."""
    x = ca.SX.sym("x")
    return with_derivatives(
        "square", [x], [x * x], {(0, 0): 3 * x * x}, lambda s: [3 * x * x * s[0]], lambda s: {(0, 0): 6 * x * s[0]},
        ["x"], ["y"],
    )  # fmt: skip


def test_false_derivatives_are_loaded_as_they_were_registered(folder):
    robot, ports = od.robots.planar_2r(), ([("x", (1, 1))], [("y", (1, 1))])
    for k in range(2):
        f = store.stored(robot, ("square",), ports, false_square if k == 0 else pytest.fail)
        x, lam = ca.MX.sym("x"), ca.MX.sym("lam")
        H, g = ca.hessian(lam * f(x), x)
        J = ca.jacobian(f(x), x)
        found = ca.Function("d", [x, lam], [f(x), J, g, H])(2.0, 5.0)
        assert [float(y) for y in found] == [4.0, 12.0, 60.0, 60.0]
        mapped = f.map(3)(ca.MX.ones(1, 3))
        assert ca.evalf(mapped).full().tolist() == [[1.0, 1.0, 1.0]]
        assert registered(f) is not None
    assert len(files(folder)) == 1


def test_a_loaded_function_is_written_again_with_its_derivatives(folder, tmp_path):
    robot, ports = od.robots.planar_2r(), ([("x", (1, 1))], [("y", (1, 1))])
    store.stored(robot, ("square",), ports, false_square)
    loaded = store.stored(robot, ("square",), ports, pytest.fail)
    for k in range(2):
        again = store.stored(robot, ("square",), ports, (lambda: loaded) if k == 0 else pytest.fail, tmp_path / "2")
        assert again.n_instructions() == false_square().n_instructions()
        assert float(again.reverse(1)(2, 4, 1)) == 12.0


def test_functions_that_call_one_with_registered_derivatives_are_not_kept(folder):
    x = ca.MX.sym("x")
    calls = ca.Function("calls", [x], [false_square()(x)], ["x"], ["y"])
    ports = [("x", (1, 1))], [("y", (1, 1))]
    for _ in range(2):
        found = store.stored(od.robots.planar_2r(), ("calls",), ports, lambda: calls)
        assert found is calls
    assert not files(folder)


def test_methods_of_others_are_not_kept(folder, monkeypatch):
    """Their code is not of this package, whose digest is in the key."""
    from oc_dyn import registry

    monkeypatch.setitem(registry._METHODS, "inverse_dynamics", dict(registry._METHODS["inverse_dynamics"]))

    @registry.method("inverse_dynamics", "mine", kind="analytic", source="none")
    def mine(model, order, q, V, W=None):
        return [V[0]]

    assert np.array_equal(made(method="mine")(*MOTION).full().ravel(), MOTION[1])
    assert not files(folder)


# -- files that are not as they should be -----------------------------------------------------------------------


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def foreign(path):
    path.write_bytes(b"not ours" * 100)


def of_another(path):
    """A whole file, of another Function, under this name."""
    od.function(od.robots.planar_2r(), "inverse_dynamics", friction=True)
    (other,) = set(files(path.parent)) - {path}
    os.replace(other, path)


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_link(path):
    os.rename(path, path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def of_all(path):
    path.chmod(0o666)


def signed(path, change):
    """A file whose digest is right, but whose content somebody has changed."""
    data = path.read_bytes()
    header, _, packed = data[len(store._HEAD) + 65 :].partition(b"\n")
    rest = change(json.loads(header), zlib.decompress(packed).decode())
    rest = json.dumps(rest[0]).encode() + b"\n" + zlib.compress(rest[1].encode())
    path.write_bytes(store._HEAD + sha256(rest).hexdigest().encode() + b"\n" + rest)


def packed(f):
    serializer = ca.StringSerializer()
    serializer.pack([f])
    return serializer.encode()


def another_function(path):
    """Of the same ports, which computes something else."""
    q, v, dv = (ca.SX.sym(n, 2) for n in ("q", "v", "dv"))
    text = packed(ca.Function("inverse_dynamics_0", [q, v, dv], [q + v], ["q", "v", "dv"], ["tau"]))
    signed(path, lambda facts, whole: (facts, text))


def other_ports(path):
    q = ca.SX.sym("q", 3)
    f = ca.Function("inverse_dynamics_0", [q], [q], ["q"], ["tau"])
    text = packed(f)
    fact = {"name": f.name(), "ports": store._ports(f), "values": store._values(f)}
    signed(path, lambda facts, whole: (facts | {"functions": [fact]}, text))


def no_functions(path):
    signed(path, lambda facts, whole: (facts | {"functions": []}, whole))


def no_text_of_casadi(path):
    signed(path, lambda facts, whole: (facts, "zzzz" * 20))


def no_list(path):
    f = ca.Function("f", [], [])
    signed(path, lambda facts, whole: (facts, f.serialize()))


DAMAGES = [cut, emptied, flipped, foreign, of_another, another_function, other_ports, no_functions, no_text_of_casadi]
DAMAGES += [no_list]
POSIX = [pytest.param(x, marks=posix) for x in (a_folder, a_link, a_pipe, of_all)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", [*DAMAGES, *POSIX])
def test_a_damaged_file_is_not_used(built, folder, damage):
    want = values(made())
    (path,) = files(folder)
    damage(path)
    before = len(built)
    with pytest.warns(od.ModelWarning, match="is not as it was written: .*; it is made again"):
        got = made()
    assert len(built) == before + 1
    assert values(got) == want
    if damage is not a_folder:  # which is left as it is
        made()
        assert len(built) == before + 1


@posix
def test_files_are_for_the_user_alone(folder):
    made()
    (path,) = files(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# -- off, elsewhere, nowhere ------------------------------------------------------------------------------------


def test_off_by_argument(built, folder):
    made(cache=False)
    made(cache=False)
    assert len(built) == 2
    assert not folder.exists()


def test_off_by_argument_holds_for_what_a_function_is_made_of(folder):
    made(derivatives="analytic", cache=False)
    assert not folder.exists()


@pytest.mark.parametrize("word", ["off", "0", "OFF", "false", "No", " off"])
def test_off_by_environment(built, monkeypatch, folder, word, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(store.ENVIRONMENT, word)
    made()
    made()
    assert len(built) == 2
    assert not folder.exists()
    assert not Path(word).exists()


def test_on_by_environment_is_the_usual_folder(built, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OC_DYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(store.ENVIRONMENT, "on")
    made()
    assert len(files(tmp_path / "cache" / "functions")) == 1
    assert not Path("on").exists()


def test_the_folder_of_compiled_code_has_one_for_functions(monkeypatch, tmp_path):
    monkeypatch.delenv(store.ENVIRONMENT)
    monkeypatch.setenv("OC_DYN_CACHE", str(tmp_path / "cache"))
    made()
    assert len(files(tmp_path / "cache" / "functions")) == 1


def test_a_folder_by_argument(built, tmp_path, folder):
    made(cache=tmp_path / "mine")
    made(cache=str(tmp_path / "mine"))
    assert built == ["inverse_dynamics_0"]
    assert not folder.exists()


@posix
def test_a_folder_of_others_is_refused(tmp_path, monkeypatch, built):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(od.ModelError, match="others can write to it"):
        made(cache=shared)
    monkeypatch.setenv(store.ENVIRONMENT, str(shared))
    with pytest.warns(od.ModelWarning, match="Functions are not kept on the disk: .*others can write to it") as told:
        [made() for _ in range(2)]
    assert len(told) == 1
    assert len(built) == 2
    assert not list(shared.iterdir())


def test_a_full_disk_is_no_error(folder, monkeypatch, built):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store.os, "replace", full)
        made()
    assert not list(folder.iterdir())
    made()
    assert len(built) == 2
    assert len(files(folder)) == 1


# -- size, several writers, ends in the middle ------------------------------------------------------------------


def test_the_least_recently_used_go_first(folder, monkeypatch, built):
    names = [f"f{k}" for k in range(4)]
    for k, name in enumerate(names[:3]):
        before = set(files(folder))
        made(name=name)
        (path,) = set(files(folder)) - before
        os.utime(path, (1000.0 + k, 1000.0 + k))
    made(name="f0")  # used again
    sizes = [x.stat().st_size for x in files(folder)]
    monkeypatch.setattr(store, "MOST", sum(sizes) + min(sizes) // 2)
    made(name="f3")
    monkeypatch.setattr(store, "MOST", 1e9)
    built.clear()
    for name in names:
        made(name=name)
    assert "f1" in built
    assert {"f0", "f3"}.isdisjoint(built)


def test_what_killed_processes_left_is_removed(folder):
    made()
    old, young = folder / "old.part", folder / "young.part"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1000.0, 1000.0))
    made(name="g")
    assert not old.exists()
    assert young.exists()  # another process may be writing it


def test_a_file_that_cannot_be_read_now_is_no_damaged_one(built, folder, monkeypatch):
    want = values(made())

    def too_many(path):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("error")
        patched.setattr(store, "own_content", too_many)
        assert values(made()) == want
    assert len(built) == 2
    made()
    assert len(built) == 2  # it is still there


def test_a_file_that_another_process_removes_is_no_damaged_one(built, folder, monkeypatch):
    want = values(made())
    (path,) = files(folder)
    read = store.own_content

    def removed_then_read(found):
        path.unlink()
        return read(found)

    monkeypatch.setattr(store, "own_content", removed_then_read)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(made()) == want
    assert len(built) == 2


WRITER = """
import sys, warnings
warnings.simplefilter("error")
import oc_dyn as od
from oc_dyn import function_store
function_store.SLOW = 0.0
for k in range(int(sys.argv[1])):
    f = od.function(od.robots.planar_2r(), "inverse_dynamics", name=f"f{k % 5}")
    g = od.function(od.robots.planar_2r(), "inverse_dynamics", name=f"f{k % 5}", cache=False)
    assert (f([1, 2], [3, 4], [5, 6]) - g([1, 2], [3, 4], [5, 6])).is_zero()
    if k % 7 == 0:
        for path in function_store._folder(None).glob("*.functions"):
            path.unlink(missing_ok=True)
    print(k, flush=True)
"""


@pytest.mark.slow
def test_several_processes_share_a_folder(folder):
    command = [sys.executable, "-c", WRITER, "60"]
    running = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) for _ in range(3)]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()


@posix
@pytest.mark.slow
def test_a_killed_writer_leaves_whole_files(folder):
    for delay in (0.0, 0.01, 0.02, 0.03, 0.05):
        with subprocess.Popen([sys.executable, "-c", WRITER, "100000"], cwd=ROOT, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
        done = subprocess.run([sys.executable, "-c", WRITER, "6"], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr  # warnings are errors there
