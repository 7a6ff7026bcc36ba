"""The cache of compiled code: what is loaded is what this user wrote; and what happens where nothing can be."""

import gc
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import compiled_files as cache_of
from oc_dyn.codegen.build import checked_time_limit, find_compiler, library, loaded, opened, run
from oc_dyn.compiled_files import cache_folder

try:
    find_compiler()
except od.SolveError:
    pytest.skip("needs a C compiler", allow_module_level=True)
posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners as POSIX has them")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts and uids as Linux has them")
ROOT = Path(od.__file__).parents[1]
QUICK = ("-O0",)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("OC_DYN_CACHE", str(folder))
    monkeypatch.delenv("CC", raising=False)
    return folder


@pytest.fixture
def f():
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [ca.sin(x) * x[0]])


def values(f):
    return f([1, 2, 3]).full().ravel().tolist()


def command(folder, text):
    """A file that runs as a compiler."""
    path = folder / "my_cc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


# -- what is loaded is what was written -------------------------------------------------------------------------


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def zeroed(path):
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(bytes(path.stat().st_size - 4096))


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def emptied(path):
    path.write_bytes(b"")


def of_another(path):
    """A library that is whole, loads, and computes something else."""
    x = ca.SX.sym("x", 3)
    other = path.parent.parent / "other"
    od.compile(ca.Function("f", [x], [x]), flags=QUICK, cache=other)
    (found,) = other.iterdir()
    path.write_bytes(found.read_bytes())


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", [flipped, emptied, of_another])
def test_a_damaged_library_is_made_again(f, cache, damage):
    od.compile(f, flags=QUICK)
    (path,) = cache.iterdir()
    damage(path)
    with pytest.warns(od.ModelWarning, match="is not as it was written: its content is another; it is made again"):
        assert values(od.compile(f, flags=QUICK)) == values(f)


def test_a_library_that_is_removed_before_it_is_loaded_is_told_as_such(tmp_path):
    for load in (lambda path: loaded("f", path), opened):
        with pytest.raises(od.SolveError, match="was removed before it could be loaded; call again"):
            load(tmp_path / "f_123.so")


def test_a_library_that_another_process_removes_is_no_damaged_one(f, cache, monkeypatch):
    od.compile(f, flags=QUICK)
    (path,) = cache.iterdir()
    read = cache_of.own_content

    def removed_then_read(found):
        path.unlink(missing_ok=True)
        monkeypatch.undo()
        return read(found)

    monkeypatch.setattr(cache_of, "own_content", removed_then_read)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(od.compile(f, flags=QUICK, cache=cache)) == values(f)


@pytest.mark.parametrize("damage", [cut, pytest.param(zeroed, marks=pytest.mark.slow)])
def test_a_cut_library_is_made_again(f, cache, damage):
    """In a process of its own: loading it would end it with SIGBUS."""
    od.compile(f, flags=QUICK)
    (path,) = cache.iterdir()
    damage(path)
    code = (
        "import warnings, casadi as ca, oc_dyn as od\n"
        "warnings.simplefilter('always')\n"
        "x = ca.SX.sym('x', 3)\n"
        "f = ca.Function('f', [x], [ca.sin(x) * x[0]])\n"
        f"print(od.compile(f, flags={QUICK!r})([1, 2, 3]).full().ravel().tolist())\n"
        f"od.batch(f, flags={QUICK!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{values(f)}\n"), done.stderr
    assert done.stderr.count("is not as it was written: its content is another; it is made again") == 1


def test_a_library_damaged_while_it_is_loaded_gets_another_name(f, cache):
    """The loader knows libraries by their names: under the old one it would give the damaged one again."""
    od.compile(f, flags=QUICK)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.unlink()  # the one that is loaded stays as it is
    path.write_bytes(whole[:-1] + b"x")
    with pytest.warns(od.ModelWarning, match="it is made again"):
        again = od.compile(f, flags=QUICK)
    assert values(again) == values(f)
    assert path not in cache.iterdir()


def test_a_function_sent_to_another_process_checks_its_library(cache):
    g = od.compile(od.function(od.robots.planar_2r(), "inverse_dynamics"), flags=QUICK)
    sent = pickle.dumps(g)
    x = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    assert np.array_equal(pickle.loads(sent)(*x).full(), g(*x).full())
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(od.SolveError, match="is not as it was written.*compile the Function anew"):
        pickle.loads(sent)


def test_what_is_whole_is_not_compiled_again(f, cache, monkeypatch):
    path = library({"a.c": "int f(void) { return 1; }"}, QUICK)
    before = path.stat()
    assert library({"a.c": "int f(void) { return 1; }"}, QUICK) == path
    assert path.stat() == before


def libraries(tmp_path, monkeypatch, *changes):
    """How many libraries come of one text under several circumstances."""
    found = set()
    for change in changes:
        with monkeypatch.context() as here:
            found.add(library({"a.c": "int f(void) { return 1; }"}, **(change(here) or {})).name.split("_")[2])
    return len(found)


def test_flags_texts_and_environment_are_in_the_key(tmp_path, monkeypatch):
    header = tmp_path / "own.h"

    def included(text):
        header.write_text(text)
        return {"flags": ("-include", str(header))}

    changes = (
        lambda here: {"flags": "-O0"},
        lambda here: {"flags": "-O1"},
        lambda here: {"flags": ("-O0", "-DX=1")},
        lambda here: {"flags": "-O0"} if here.setenv("C_INCLUDE_PATH", str(tmp_path)) is None else None,
        lambda here: included("#define X 1\nstatic inline int one(void) { return 1; }\n"),
        lambda here: included("#define X 1\nstatic inline int one(void) { return 2; }\n"),  # the same macros
    )
    assert libraries(tmp_path, monkeypatch, *changes) == len(changes)


@posix
def test_the_compiler_is_in_the_key(tmp_path, monkeypatch):
    """Another file under the name, which defines the same macros: an update of its package."""
    cc = find_compiler()[0]

    def updated(text):
        return {"compiler": command(tmp_path, f"{text}\nexec {cc} \"$@\"")}

    assert libraries(tmp_path, monkeypatch, lambda _: updated("# 1.0"), lambda _: updated("# 1.0.1")) == 2


def test_threads_that_compile_the_same_at_once(f, cache):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: od.compile(f, flags=QUICK), range(4)))
    assert [values(g) for g in made] == [values(f)] * 4
    assert len(list(cache.iterdir())) == 1


# -- folders and files that others could have written ---------------------------------------------------------------


@posix
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(f, cache, mode):
    cache.mkdir()
    cache.chmod(mode)
    with pytest.raises(od.ModelError, match=rf"cache: it is not used, as others can write to it \(mode {mode:o}\)"):
        od.compile(f, flags=QUICK)
    with pytest.warns(od.ModelWarning, match="not compiled: .*others can write to it"):
        assert od.compile(f, flags=QUICK, fallback=True) is f


@posix
def test_a_folder_that_everyone_can_move_away_is_refused(cache):
    (cache / "deeper" / "still").mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(od.ModelError, match="cache above it can be written to by everyone.*cache= or .OC_DYN_CACHE"):
        cache_folder(cache / "deeper" / "still")
    cache.chmod(0o1777)  # as /tmp is: only owners move what is theirs
    assert cache_folder(cache / "deeper" / "still") == (cache / "deeper" / "still").resolve()


@posix
def test_a_folder_of_another_user_is_refused(f, cache, monkeypatch):
    cache_folder()
    owner = os.geteuid()
    if owner == 0:
        os.chown(cache, 12345, -1)
        other = "uid 12345, not 0"
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        other = f"uid {owner}, not {owner + 1}"
    with pytest.raises(od.ModelError, match=f"it belongs to another user .{other}"):
        od.compile(f, flags=QUICK)


@posix
@pytest.mark.parametrize("mode", [0o666, 0o775])
def test_a_file_that_others_can_write_to_is_not_loaded(f, cache, mode):
    od.compile(f, flags=QUICK)
    (path,) = cache.iterdir()
    path.chmod(mode)
    with pytest.warns(od.ModelWarning, match=rf"others can write to it \(mode {mode:o}\); it is made again"):
        assert values(od.compile(f, flags=QUICK)) == values(f)
    (new,) = cache.iterdir()
    assert not new.stat().st_mode & 0o022


@posix
def test_a_link_in_the_cache_is_not_followed(f, cache, tmp_path):
    od.compile(f, flags=QUICK)
    (path,) = cache.iterdir()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(od.ModelWarning, match="it is made again"):
        assert values(od.compile(f, flags=QUICK)) == values(f)
    assert not any(x.is_symlink() for x in cache.iterdir())


@posix
def test_folder_and_files_are_the_users_alone(f, tmp_path):
    before = os.umask(0)
    try:
        od.compile(f, flags=QUICK, cache=tmp_path / "new" / "cache")
    finally:
        os.umask(before)
    places = [tmp_path / "new", tmp_path / "new" / "cache", *(tmp_path / "new" / "cache").iterdir()]
    assert [stat.S_IMODE(x.stat().st_mode) for x in places] == [0o700] * 3


# -- no place, no compiler, no right ----------------------------------------------------------------------------------


def falls_back(f, words, **options):
    """One error of the toolkit's own with these words; with fallback the Function as it is, and a batch by map."""
    with pytest.raises((od.SolveError, od.ModelError), match=words):
        od.compile(f, **options)
    with pytest.warns(od.ModelWarning, match=words):
        assert od.compile(f, fallback=True, **options) is f
    with pytest.raises((od.SolveError, od.ModelError), match=words):
        od.batch(f, fallback=False, **options)
    with pytest.warns(od.ModelWarning, match=words):
        run_ = od.batch(f, **options)
    assert np.allclose(run_(np.ones((3, 5))), np.sin(1))


def test_no_home(f, monkeypatch):
    monkeypatch.delenv("OC_DYN_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    falls_back(f, "cache folder of this user: Could not determine home.*name another folder by cache= or .OC_DYN_CACHE")


@pytest.mark.slow
@linux
def test_a_user_without_name_and_home(tmp_path):
    """Told in one error, not in one of pathlib or pwd; with a folder named it works."""
    if os.geteuid():
        pytest.skip("needs the right to become another user")
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, 54321, 54321)
    code = (
        "import os, sys\n"
        "import casadi as ca, oc_dyn as od\n"
        "os.setgid(54321), os.setuid(54321)\n"
        "for name in ('HOME', 'XDG_CACHE_HOME', 'OC_DYN_CACHE', 'USER', 'LOGNAME'): os.environ.pop(name, None)\n"
        "x = ca.SX.sym('x')\n"
        "f = ca.Function('f', [x], [2 * x])\n"
        "try:\n"
        "    od.compile(f)\n"
        "except od.ModelError as error:\n"
        "    print(error)\n"
        "print(od.compile(f, fallback=True) is f, od.compile(f, cache='cache', fallback=True)(2))\n"
    )
    for place in (tmp_path, *tmp_path.parents[:3]):
        if not place.stat().st_mode & stat.S_IXOTH:
            place.chmod(place.stat().st_mode | stat.S_IXOTH)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=own, env=environment, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    said, worked = done.stdout.splitlines()
    assert said.startswith("cache folder of this user: Could not determine home directory"), done.stderr
    assert worked == "True 4"


def test_places_that_cannot_be(f, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("~nobody_of_this_name/cache", "a\0b", str(tmp_path / "file" / "cache")):
        with pytest.raises(od.ModelError, match="name another folder by cache= or .OC_DYN_CACHE"):
            od.compile(f, cache=place)
    with pytest.raises(od.ModelError, match="got a int, expected the path of a folder"):
        od.compile(f, cache=3)


def test_a_relative_folder_of_the_user_does_not_count(monkeypatch, tmp_path):
    monkeypatch.delenv("OC_DYN_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    if sys.platform.startswith("linux"):
        assert cache_folder() == (tmp_path / ".cache" / "oc_dyn").resolve()


@posix
@pytest.mark.parametrize(
    "text, words",
    [
        ("exit 1", "my_cc.* ended with status 1"),
        ("exit 0", "my_cc ended without an error, but wrote nothing"),
        ('[ "$1" = -O3 ] && for x; do [ "$last" = -o ] && echo nonsense > "$x"; last=$x; done', "cannot be loaded"),
        ('case "$*" in *-o*) sleep 60 & wait;; esac', "did not end within 0.5 s; give more by time_limit="),
        ("sleep 60", "did not end within 0.5 s"),
    ],
    ids=["fails", "writes nothing", "writes nonsense", "sleeps", "always sleeps"],
)
@pytest.mark.sample(1)
def test_compilers_that_do_not_compile(f, tmp_path, monkeypatch, text, words):
    monkeypatch.setenv("CC", command(tmp_path, text))
    begun = time.monotonic()
    falls_back(f, words, time_limit=0.5)
    assert time.monotonic() - begun < 30


def test_words_that_are_no_compiler(f, monkeypatch):
    falls_back(f, "no C compiler", compiler="a\0b")
    monkeypatch.setenv("CC", "cc 'unclosed")
    falls_back(f, "no C compiler.*CC.*quotation", flags=QUICK)
    monkeypatch.delenv("CC")
    falls_back(f, "cannot be run: embedded null", flags="-D\0")
    with pytest.raises(od.ShapeError, match="compiler is a int"):
        od.compile(f, compiler=3)
    for bad in (0, -1.0, "fast", True, float("nan"), float("inf")):
        with pytest.raises(od.ShapeError, match="time_limit is"):
            od.compile(f, time_limit=bad)
        with pytest.raises(od.ShapeError, match="time_limit is"):
            od.batch(f, time_limit=bad)


@posix
def test_limits_beyond_what_an_operating_system_counts(tmp_path):
    assert run([command(tmp_path, "echo done")], time_limit=1e10)[:2] == (0, "done\n")
    assert checked_time_limit("here", 10**400) == 2e6


@pytest.mark.slow
@posix
def test_what_a_compiler_has_started_ends_with_it(tmp_path):
    pid = tmp_path / "pid"
    with pytest.raises(od.SolveError) as caught:
        run([command(tmp_path, f"sleep 60 & echo $! > '{pid}'; wait")], time_limit=0.5)
    assert caught.value.status == "time_limit"
    for _ in range(100):  # until the system has cleared it away
        if not alive(int(pid.read_text())):
            return
        time.sleep(0.05)
    pytest.fail("the compiler's own process goes on")


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc").is_dir()
    return state != "Z"


@posix
@pytest.mark.parametrize("act", ["compile", pytest.param("batch", marks=pytest.mark.slow)])
def test_ctrl_c_ends_the_compiler(tmp_path, act):
    pid = tmp_path / "pid"
    text = f"case \"$*\" in *-o*) sleep 60 & echo $! > '{pid}.part'; mv '{pid}.part' '{pid}'; wait;; esac"
    code = f"import casadi as ca, oc_dyn as od; x = ca.SX.sym('x'); od.{act}(ca.Function('f', [x], [x]))"
    environment = {**os.environ, "CC": command(tmp_path, text)}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, stderr=-1, text=True)
    for _ in range(1000):
        if pid.exists():
            break
        time.sleep(0.03)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=40)
    assert time.monotonic() - begun < 10
    assert said.strip().endswith("KeyboardInterrupt")
    assert not alive(int(pid.read_text()))


@posix
def test_where_one_fails_the_others_do_not_go_on(f, tmp_path):
    cc = find_compiler()[0]
    x = ca.SX.sym("x")
    fs = [f, ca.Function("slow", [x], [x])]
    text = f'grep -q "slow" oc_dyn.c 2>/dev/null && exec sleep 60\ncase "$*" in *-o*) exit 3;; esac\nexec {cc} "$@"'
    begun = time.monotonic()
    with pytest.raises(od.SolveError, match="ended with status 3"):
        od.compile(fs, compiler=command(tmp_path, text))
    assert time.monotonic() - begun < 30


@pytest.mark.slow
@linux
def test_a_disk_that_forbids_to_run_code(tmp_path):
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode:
        pytest.skip("no right to mount")
    (tmp_path / "disk").mkdir()
    code = (
        "import os, warnings, casadi as ca, numpy as np, oc_dyn as od\n"
        "warnings.simplefilter('ignore')\n"
        "x = ca.SX.sym('x')\n"
        "f = ca.Function('f', [x], [2 * x])\n"
        "for act in (lambda: od.compile(f), lambda: od.batch(f, fallback=False)):\n"
        "    try:\n"
        "        act()\n"
        "    except od.SolveError as error:\n"
        "        print('noexec' in str(error) and 'cache=' in str(error))\n"
        "print(od.compile(f, fallback=True) is f, od.batch(f)(np.ones((1, 4))).tolist())\n"
    )
    shell = 'mount -t tmpfs -o noexec,mode=700 none "$1" && OC_DYN_CACHE="$1" "$2" -c "$3"'
    command_ = ["unshare", "-Urm", "sh", "-c", shell, "sh", str(tmp_path / "disk"), sys.executable, code]
    done = subprocess.run(command_, cwd=ROOT, capture_output=True, text=True, timeout=60)
    if "mount" in done.stderr and done.returncode:
        pytest.skip("no right to mount")
    assert done.stdout == "True\nTrue\nTrue [[2.0, 2.0, 2.0, 2.0]]\n", done.stderr


def test_a_full_disk_is_told_with_the_folder(f, cache, monkeypatch):
    cache_folder()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(od.ModelError, match="cache folder .*cache: No space left on device.*cache= or"):
        od.compile(f, flags=QUICK)
    assert os.listdir(cache) == []


@pytest.mark.slow
@posix
def test_a_self_test_that_does_not_end(f, tmp_path):
    made = od.codegen(f, tmp_path / "code")
    program = tmp_path / "code" / "code_selftest.c"
    program.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    with pytest.raises(od.SolveError, match="did not end within"):
        made.test(flags=QUICK, time_limit=2.0)


def test_digests_tell_pieces_apart():
    assert cache_of.digest([["a", "b"], ["c"]]) != cache_of.digest([["a"], ["b", "c"]])


@posix
def test_fast_arithmetic_stays_in_the_library(f, tmp_path):
    """gcc's -ffast-math, given when it links, would round small numbers to zero in the whole process."""
    smallest = np.nextafter(0.0, 1.0)
    compiled = od.compile(f, flags=("-O2", "-ffast-math"), cache=tmp_path)
    assert np.array(compiled(0.5)).shape == np.array(f(0.5)).shape
    assert smallest * 1.0 > 0


@linux
@pytest.mark.slow
@pytest.mark.parametrize("option", ["-ffast-math", "-funsafe-math-optimizations", "-Ofast"])
def test_fast_arithmetic_in_the_command_stays_in_the_library_too(f, option, tmp_path, monkeypatch):
    """Only the flags were looked at; a script of one's own shows nothing at all."""
    wrapper = command(tmp_path, f'exec gcc "$@" {option}')
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    smallest, x = np.nextafter(0.0, 1.0), np.random.default_rng(0).uniform(-1e4, 1e4, (1, 100))
    angle = ca.SX.sym("x")
    sine = ca.Function("sine", [angle], [ca.sin(angle)])
    for words in (f"gcc {option}", ["gcc", option], wrapper):
        od.compile(f, flags=QUICK, compiler=words)
        assert smallest * 1.0 > 0
        run = od.batch(sine, compiler=words, fallback=False)
        assert smallest * 1.0 > 0
        assert np.max(np.abs(run(x) - np.sin(x))) < 1e-15
    monkeypatch.setenv("CC", f"gcc {option}")
    assert np.max(np.abs(od.batch(sine, fallback=False)(x) - np.sin(x))) < 1e-15
    assert smallest * 1.0 > 0


@linux
@pytest.mark.parametrize("way", ["command", "list", "script"])
def test_fast_arithmetic_in_the_command_does_not_reach_the_process(f, way, tmp_path):
    words = {"command": "cc -ffast-math", "list": ["cc", "-ffast-math"]}
    od.compile(f, flags=QUICK, compiler=words.get(way) or command(tmp_path, 'exec cc "$@" -ffast-math'))
    assert np.nextafter(0.0, 1.0) * 1.0 > 0


@posix
def test_files_of_options_in_the_command_count(f, tmp_path, cache):
    options = tmp_path / "options"
    for text in ("-DONE", "-DTWO"):
        options.write_text(text)
        od.compile(f, flags=QUICK, compiler=["cc", f"@{options}"])
    assert len([name for name in os.listdir(cache) if name.endswith(".so")]) == 2


@pytest.mark.parametrize("flags", [5, b"-O1", [1], None])
def test_what_is_no_flag(f, flags):
    for act in (od.compile, *([od.batch] if flags is not None else [])):
        with pytest.raises(od.ShapeError, match=f"{act.__name__}: flags is .*, expected a text or several"):
            act(f, flags=flags)


def here():
    """Line that calls this."""
    return sys._getframe(1).f_lineno


def test_warnings_point_to_the_line_of_the_call(f, cache, tmp_path, monkeypatch):
    lines = []
    od.compile(f, flags=QUICK)
    (path,) = (path for path in cache.iterdir() if path.is_file())
    with path.open("ab") as file:
        file.write(b"more")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        od.compile(f, flags=QUICK), lines.append(here())
        od.compile(f, compiler="nothing", fallback=True), lines.append(here())
        od.batch(f, compiler="nothing"), lines.append(here())
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("OC_DYN_FUNCTION_CACHE", str(tmp_path / "file"))
        od.function(od.robots.planar_2r(), "inverse_dynamics"), lines.append(here())
    assert [(w.filename, w.lineno) for w in told] == [(__file__, line) for line in lines]


@pytest.mark.slow
@posix
@pytest.mark.filterwarnings("error")
def test_a_compiler_that_is_ended_leaves_no_pipe_open(f, tmp_path):
    slow = command(tmp_path, "sleep 30")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(od.SolveError, match="did not end"):
            od.compile(f, compiler=slow, time_limit=0.1)
        gc.collect()
    assert [str(w.message) for w in told] == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("word", ["off", "0", " No ", "FALSE"])
def test_the_cache_of_compiled_code_cannot_be_off(f, word, monkeypatch, tmp_path):
    """It made a folder of that name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OC_DYN_CACHE", word)
    with pytest.raises(od.ModelError, match="OC_DYN_CACHE: it is .*needs a folder"):
        od.compile(f, flags=QUICK)
    assert od.compile(f, flags=QUICK, cache=tmp_path / "mine")(0.5).shape
    assert os.listdir(tmp_path) == ["mine"]
