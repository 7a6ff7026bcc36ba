"""Generated C as a product: clean for every compiler, no heap, no recursion, instances that share nothing, CMake."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from products import KINDS, LANGUAGES, STRICT, built, command, controller, mixed_law

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.codegen.footprint import footprint

pytestmark = pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="needs gcc and g++")
CASES = [(kind, precision) for kind in KINDS for precision in ("double", "single")]
ENTRIES = {
    "functions": ["arm_inverse_dynamics_0", "arm_mass_matrix_0"],
    "law": ["arm_init", "arm_reset", "arm_start", "arm_step", "arm_step_or"],
    "predictive": ["arm_init", "arm_reset", "arm_step", "arm_prepare", "arm_feedback"],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(kind, precision) -> (folder, sources), written once."""
    made = {}

    def of(kind, precision):
        if (kind, precision) not in made:
            folder = tmp_path_factory.mktemp(f"{kind}_{precision}")
            made[kind, precision] = folder, KINDS[kind](folder, precision)
        return made[kind, precision]

    return of


@pytest.mark.few(9)
@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind, precision", CASES)
def test_no_compiler_has_anything_to_say(kind, precision, language, written):
    words = command(language)
    if words is None:
        pytest.skip(f"{language} is not here")
    folder, sources = written(kind, precision)
    for source in (*sources, "arm_example.c", "arm_selftest.c"):
        subprocess.run([*words, *STRICT, "-c", source, "-o", "part.o"], cwd=folder, check=True)


@pytest.mark.few(3)
@pytest.mark.sample("law-single")
@pytest.mark.parametrize("kind, precision", CASES)
def test_self_test_under_sanitizers(kind, precision, written):
    folder, sources = written(kind, precision)
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = built(folder, [*sources, "arm_selftest.c"], flags=flags, name="selftest")
    said = subprocess.run([program], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "passed" in said.stdout


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O3", "-march=native"), ("-O3", "-ffast-math"), ("-Os",)], ids=" ".join)
@pytest.mark.parametrize("kind, precision", CASES)
def test_self_test_with_other_flags(kind, precision, flags, written):
    folder, sources = written(kind, precision)
    objects = [f"{source[:-2]}.o" for source in sources]
    subprocess.run(["gcc", "-std=c99", *flags, "-c", *sources], cwd=folder, check=True)
    program = built(folder, [*objects, "arm_selftest.c"], name="selftest_2")
    tolerance = "1e-2" if precision == "single" else "1e-6"
    said = subprocess.run([program, tolerance], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.few(3)
@pytest.mark.sample("law-double")
@pytest.mark.parametrize("kind, precision", CASES)
def test_no_heap_no_recursion_no_variables(kind, precision, written):
    """The call graph that gcc tells: no entry reaches the heap or itself; nothing is written but what is given."""
    folder, sources = written(kind, precision)
    found = footprint([folder / x for x in sources], ENTRIES[kind])
    assert found.recursive == ()
    assert found.unbounded == ()
    assert found.bss == 0
    assert set(found.stack) == set(ENTRIES[kind])
    assert max(found.stack.values()) < 10_000
    allowed = "sin cos sincos tanh sqrt fmin fmax fabs memcpy memmove memset __stack_chk_fail"
    assert set(found.libraries) <= {x + end for x in allowed.split() for end in ("", "f")}
    if shutil.which("nm"):
        for source in sources:
            subprocess.run(["gcc", "-std=c99", "-O1", "-c", source, "-o", "part.o"], cwd=folder, check=True)
            lines = subprocess.run(["nm", "part.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
            assert not re.findall(r" [bBdDC] (\S+)", lines)


NO_HEAP = """#include <stddef.h>
#include <stdlib.h>
#include "arm.h"
void *__wrap_malloc(size_t n) { (void)n; abort(); }
void *__wrap_calloc(size_t n, size_t m) { (void)n; (void)m; abort(); }
void *__wrap_realloc(void *p, size_t n) { (void)p; (void)n; abort(); }
void __wrap_free(void *p) { (void)p; abort(); }
int main(void) {
  static arm_t self;
  static arm_in in;
  static arm_out out;
  int k, status = 0;
  arm_init(&self);
  for (k = 0; k < 20; ++k) status = arm_step(&self, k % 5 == 4 ? 0 : &in, &out);
  arm_reset(&self);
  return status > 4;
}
"""


@pytest.mark.sample("law")
@pytest.mark.parametrize("kind", ["law", "predictive"])
def test_a_heap_that_aborts_is_never_asked(kind, written):
    folder, sources = written(kind, "double")
    (folder / "main.c").write_text(NO_HEAP)
    wrapped = [f"-Wl,--wrap={x}" for x in ("malloc", "calloc", "realloc", "free")]
    program = built(folder, ["main.c", *sources], flags=wrapped, name="no_heap")
    assert subprocess.run([program]).returncode == 0


THREADS = """#include <pthread.h>
#include <string.h>
#include "arm.h"
static arm_t self[2];
static arm_in in[2];
static arm_out out[2][50];
static void *work(void *given) {
  const int which = *(int *)given;
  int k;
  arm_init(&self[which]);
  for (k = 0; k < 50; ++k) arm_step(&self[which], k % 10 == 9 ? 0 : &in[which], &out[which][k]);
  return 0;
}
int main(void) {
  pthread_t thread[2];
  int number[2] = {0, 1}, k;
  for (k = 0; k < 2; ++k)
    if (pthread_create(&thread[k], 0, work, &number[k])) return 2;
  for (k = 0; k < 2; ++k) pthread_join(thread[k], 0);
  return memcmp(out[0], out[1], sizeof out[0]) != 0;
}
"""


@pytest.mark.sample("law")
@pytest.mark.parametrize("kind", ["law", "predictive"])
def test_two_threads_with_two_instances(kind, written):
    """Under the thread sanitizer, which reports every number that two of them share."""
    folder, sources = written(kind, "double")
    (folder / "threads.c").write_text(THREADS)
    flags = ["-O1", "-g", "-fsanitize=thread", "-pthread"]
    (folder / "nothing.c").write_text("int main(void) { return 0; }\n")
    words = ["gcc", *flags, "-o", "nothing", "nothing.c"]
    if subprocess.run(words, cwd=folder).returncode or subprocess.run([folder / "nothing"]).returncode:
        pytest.skip("the thread sanitizer does not run here")
    program = built(folder, ["threads.c", *sources], flags=flags, name="threads")
    said = subprocess.run([program], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr


CPP = {
    "functions": """arm_mass_matrix_0_function f; decltype(f)::input in{}; decltype(f)::output out{};
        return f(in, out) || !(out.M[0][0] > 0);""",
    "law": "arm_controller c; decltype(c)::input in{}; decltype(c)::output out{}; c.reset(); return c.step(in, out);",
    "predictive": "arm_controller c; decltype(c)::input in{}; decltype(c)::output out{}; return c.step(in, out);",
}


@pytest.mark.sample("law-double")
@pytest.mark.parametrize("kind, precision", CASES)
def test_in_cpp(kind, precision, written):
    folder, sources = written(kind, precision)
    (folder / "main.cpp").write_text(f'#include "arm.hpp"\nusing namespace oc_dyn;\nint main() {{ {CPP[kind]} }}\n')
    objects = [f"{source[:-2]}.o" for source in sources]
    subprocess.run(["gcc", "-std=c99", "-c", *sources], cwd=folder, check=True)
    words = ["g++", "-std=c++17", *STRICT, "-o", "cpp", "main.cpp", *objects, "-lm"]
    subprocess.run(words, cwd=folder, check=True)
    assert subprocess.run([folder / "cpp"]).returncode == 0


USER = """cmake_minimum_required(VERSION 3.10)
project(user C)
find_package(arm REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE arm::arm)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize("kind", KINDS)
def test_cmake_builds_tests_installs_and_exports(kind, written, tmp_path):
    folder, _ = written(kind, "double")
    user = tmp_path / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(USER)
    (user / "user.c").write_text('#include "arm.h"\nint main(void) { return sizeof(arm_VERSION) < 2; }\n')
    build, place = tmp_path / "build", tmp_path / "installed"
    for words in (
        ["cmake", "-S", folder, "-B", build],
        ["cmake", "--build", build],
        ["cmake", "--install", build, "--prefix", place],
        ["cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={place}"],
        ["cmake", "--build", user / "build"],
        ["ctest", "--test-dir", build],
        [user / "build" / "user"],
        [build / "arm_example"],
    ):
        done = subprocess.run([str(x) for x in words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_two_products_in_one_folder_are_both_built(tmp_path):
    el.generate_controller(mixed_law(), tmp_path / "code", name="soft", compiler="none")
    controller().codegen(tmp_path / "code")
    build = tmp_path / "build"
    for words in (["cmake", "-S", tmp_path / "code", "-B", build], ["cmake", "--build", build]):
        subprocess.run([str(x) for x in words], capture_output=True, check=True)
    said = subprocess.run(["ctest", "--test-dir", str(build)], capture_output=True, text=True).stdout
    assert "100% tests passed, 0 tests failed out of 2" in said


def test_what_headers_say(tmp_path):
    panda = od.robots.planar_2r()
    one = od.codegen(od.function(panda, "mass_matrix"), tmp_path / "one", name="arm").header.read_text()
    two = od.codegen(od.function(panda, "mass_matrix"), tmp_path / "two", name="arm").header.read_text()
    heavy = panda.with_payload(panda.bodies[-1].name, od.Inertia.from_com(1.0, (0, 0, 0.1), np.eye(3) * 1e-3))
    other = od.codegen(od.function(heavy, "mass_matrix"), tmp_path / "three", name="arm").header.read_text()
    single = od.codegen(od.function(panda, "mass_matrix"), tmp_path / "four", name="arm", precision="single")
    hashes = [re.search(r'arm_HASH "(\w{16})"', x)[1] for x in (one, two, other, single.header.read_text())]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
    assert f'#define arm_VERSION "{od.__version__}"' in one
    for name in (j.name for j in panda.joints):
        assert name in one
    assert "[rad" in one
    assert "[kg m2" in one


@pytest.mark.slow
def test_footprint_names_what_is_not_there(tmp_path):
    made = od.codegen(od.function(od.robots.planar_2r(), "com"), tmp_path, name="arm")
    assert made.footprint().stack["arm_com_0"] > 0
    assert "stack: arm_com_0" in str(made.footprint())
    with pytest.raises(od.SolveError, match="there is no function arm_other"):
        footprint(made.sources, ["arm_other"])
    (tmp_path / "loop.c").write_text("int f(int n); int f(int n) { return n > 0 ? f(n - 1) + f(n / 2) : 1; }\n")
    assert footprint([tmp_path / "loop.c"], ["f"]).recursive == ("f",)
