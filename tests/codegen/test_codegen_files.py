"""od.codegen: C99 that gives the Functions' numbers, compiles without a warning, and lives with other such code."""

import re
import shutil
import subprocess
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from samples import build, random_ports, relative, robot, scene

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.codegen.build import find_compiler
from oc_dyn.registry import get, get_method

try:
    COMPILER = find_compiler()
except od.SolveError:
    COMPILER = None
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
STRICT = ("-std=c99", "-O0", "-pedantic", "-Wall", "-Wextra", "-Werror")
OPTIONS = {
    "frame_pose": {"frame": "link2"},
    "frame_twist": {"frame": "link2", "representation": "hybrid"},
    "frame_jacobian": {"frame": "link2", "representation": "spatial"},
    "frame_velocity_partials": {"frame": "link2", "representation": "hybrid"},
    "frame_acceleration_partials": {"frame": "link2", "representation": "body"},
}
OPTIONS |= {q: {"prescribed": ("joint1",)} for q in od.quantities("robot") if q.startswith("hybrid_dynamics")}
OPTIONS |= {quantity: {"scene": scene()} for quantity in od.quantities("robot") if quantity.startswith("distances")}


def functions_of_all(r, order, of="robot", every_method=False):
    """A Function of every quantity, or of every method of it, at this order or the highest below that it goes to."""
    out = []
    for quantity in od.quantities(of):
        for method in od.methods(quantity) if every_method else [None]:
            record = get_method(quantity, method) if method else None
            tops = [x.max_order for x in (get(quantity), record) if x is not None and x.max_order is not None]
            top = min([order, *tops])
            if record and record.refusal(r, top):
                continue
            name = f"{quantity}_{method or 'default'}"
            out.append(od.function(r, quantity, order=top, method=method, name=name, **OPTIONS.get(quantity, {})))
    assert out
    return out


def points_of(functions, r):
    return {f.name(): [random_ports(f, r, seed) for seed in (1, 2)] for f in functions}


def sanitized(tmp_path):
    """The flags of the sanitizers, if the compiler has them."""
    flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    (tmp_path / "nothing.c").write_text("int main(void) { return 0; }\n")
    command = [*COMPILER, *flags, "-o", "nothing", "nothing.c"]
    if subprocess.run(command, cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    return tuple(flags)


@pytest.mark.few(2)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    "name, order", [("small serial", 1), ("small floating", 0), ("mimic", 0), ("small spherical", 0)]
)
def test_every_quantity_in_c(name, order, tmp_path):
    """Stored points in the self-test, and new ones in the compiled Functions: equal to 1e-13."""
    r = robot(name)
    functions = functions_of_all(r, order)
    assert len(functions) == len(od.quantities("robot"))
    made = od.codegen(functions, tmp_path / "code", points=points_of(functions, r), parts=1000)
    assert made.test(flags=STRICT, tolerance=1e-13).endswith(f"all {len(functions)} passed\n")
    loaded = made.load(flags=("-O0",), cache=tmp_path / "cache")
    assert list(loaded) == [f.name() for f in functions]
    for f in functions:
        compiled, point = loaded[f.name()], random_ports(f, r, seed=3)
        assert compiled.name_in() == f.name_in()
        assert compiled.name_out() == f.name_out()
        for port, expected in f(**point).items():
            assert relative(compiled(**point)[port], expected) < 1e-13, (f.name(), port)


@pytest.mark.slow
@needs_compiler
def test_every_method_in_c_under_the_sanitizers(tmp_path):
    r = build(["revolute", "prismatic"], seed=31, armature=True)
    functions = functions_of_all(r, 0, every_method=True)
    assert len(functions) > 2 * len(od.quantities("robot"))
    made = od.codegen(functions, tmp_path / "code", points=points_of(functions, r), parts=1000)
    made.test(flags=("-std=c99", "-O0", *sanitized(tmp_path)), tolerance=1e-13)


@pytest.mark.slow
@needs_compiler
def test_every_quantity_of_elastic_robots(tmp_path):
    arm = el.elastic_robot(robot("small serial"), 100.0, motor_damping=0.5)
    functions = functions_of_all(arm, 0, of="elastic robot")
    made = od.codegen(functions, tmp_path / "code")
    made.test(flags=(*STRICT, *sanitized(tmp_path)), tolerance=1e-13)


def ours(r, **more):
    return [od.function(r, "inverse_dynamics", **more), od.function(r, "mass_matrix"), od.function(r, "com")]


PROGRAM = """#include <stdio.h>
#include "panda.h"
#include "arm.h"
int main(void) {
    static double q[7] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}, M[49], w[1 + panda_mass_matrix_0_SZ_W];
    static float qf[4] = {0.1f, 0.2f, 0.3f, 0.4f}, Mf[16], wf[1 + arm_mass_matrix_0_SZ_W];
    static long long int iw[1 + panda_mass_matrix_0_SZ_IW + arm_mass_matrix_0_SZ_IW];
    const double *arg[panda_mass_matrix_0_SZ_ARG] = {q};
    const float *argf[arm_mass_matrix_0_SZ_ARG] = {qf};
    double *res[panda_mass_matrix_0_SZ_RES] = {M};
    float *resf[arm_mass_matrix_0_SZ_RES] = {Mf};
    int i;
    if (panda_mass_matrix_0(arg, res, iw, w, 0) || arm_mass_matrix_0(argf, resf, iw, wf, 0)) return 1;
    for (i = 0; i < 49; ++i) printf("%.17g ", M[i]);
    for (i = 0; i < 16; ++i) printf("%.9g ", (double)Mf[i]);
    return 0;
}
"""


@pytest.mark.slow
@needs_compiler
def test_two_robots_in_one_program(tmp_path):
    """One in double precision, in parts, the other in single precision: no symbol and no type is mixed up."""
    panda, arm = od.robots.panda(), robot("serial")
    made = [
        od.codegen(ours(panda), tmp_path / "panda", parts=200),
        od.codegen(ours(arm), tmp_path / "x", name="arm", precision="single", separate=True),
    ]
    (tmp_path / "main.c").write_text(PROGRAM)
    sources = [str(path) for code in made for path in code.sources]
    assert len(sources) == 4
    folders = [f"-I{code.folder}" for code in made]
    subprocess.run([*COMPILER, *STRICT, *folders, "-o", "main", "main.c", *sources, "-lm"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    numbers = np.array(said.split(), float)
    expected = od.function(panda, "mass_matrix")(np.linspace(0.1, 0.7, 7)).full()
    assert relative(numbers[:49].reshape(7, 7), expected) < 1e-13
    expected = od.function(arm, "mass_matrix")(np.linspace(0.1, 0.4, 4)).full()
    assert relative(numbers[49:].reshape(4, 4), expected) < 1e-5
    if shutil.which("nm"):
        for code in made:
            for source in code.sources:
                subprocess.run([*COMPILER, "-c", source, "-o", "one.o"], cwd=tmp_path, check=True)
                command = ["nm", "-g", "--defined-only", "one.o"]
                lines = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
                symbols = [line.split()[-1].lstrip("_") for line in lines.splitlines()]
                assert symbols
                assert all(s.startswith(f"{code.name}_") for s in symbols)


@pytest.mark.slow
@needs_compiler
def test_single_precision(tmp_path):
    made = od.codegen(ours(od.robots.panda(), order=2), tmp_path / "panda", precision="single", parts=500)
    errors = [float(x) for x in re.findall(r"largest error (\S+)", made.test(flags=STRICT))]
    assert len(errors) == 3
    assert all(0 < x < 1e-5 for x in errors)
    assert not re.search(r"\bdouble\b", made.sources[0].read_text())
    with pytest.raises(od.SolveError, match="did not pass.*inverse_dynamics_2"):
        made.test(tolerance=1e-12)
    with pytest.raises(od.ShapeError, match="single precision"):
        made.load()


@pytest.mark.slow
@needs_compiler
def test_example_and_cmake(tmp_path):
    made = od.codegen(ours(od.robots.planar_2r()), tmp_path / "arm")
    ends = ["c", "h", "hpp"]
    names = [f"arm.{end}" for end in ends] + ["arm_example.c", "arm_selftest.c", "arm_targets.cmake", "CMakeLists.txt"]
    assert [path.name for path in made.files] == names
    assert made.header.name == "arm.h"
    assert sorted(path.name for path in made.folder.iterdir()) == sorted(names)
    program = tmp_path / "example"
    command = [*COMPILER, *STRICT, "-o", program, made.sources[0], made.folder / "arm_example.c", "-lm"]
    subprocess.run(command, check=True)
    assert re.fullmatch(r"tau: \S+ \S+\n", subprocess.run([program], capture_output=True, text=True).stdout)
    assert " *     in:  q (2, 1),\n *          v (2, 1),\n" in made.header.read_text()
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not here")
    build = str(tmp_path / "build")
    for command in (["cmake", "-S", str(made.folder), "-B", build], ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["ctest"], cwd=build, capture_output=True, text=True)
    assert done.returncode == 0
    assert "100% tests passed" in done.stdout


class Python(ca.Callback):
    def __init__(self):
        super().__init__()
        self.construct("from_python", {})

    def eval(self, arg):
        return [arg[0]]


def test_wrong_input_is_refused(tmp_path):
    r, x = od.robots.planar_2r(), ca.SX.sym("x")
    f, g = od.function(r, "com"), od.function(r, "mass_matrix")
    with pytest.raises(od.ShapeError, match="com_0 and com_0 would have one name, arm_com_0"):
        od.codegen([f, g, f], tmp_path / "arm")
    for wrong in (r, [f, "com"], "com"):
        with pytest.raises(od.ModelError, match="expected a casadi.Function"):
            od.codegen(wrong, tmp_path / "arm")
    with pytest.raises(od.ModelError, match="no Function"):
        od.codegen([], tmp_path / "arm")
    for name in ("1arm", "my-arm", "a__b", "arm_", "roboter ä", "", 3):
        with pytest.raises(od.ShapeError, match="cannot start names in C"):
            od.codegen(f, tmp_path / "arm", name=name)
    for name in ("math", "test", "m"):
        with pytest.raises(od.ShapeError, match="taken by C or CMake"):
            od.codegen(f, tmp_path / name)
    with pytest.raises(od.ShapeError, match="'half'.*'double', 'single'"):
        od.codegen(f, tmp_path / "arm", precision="half")
    clash = ca.Function("selftest", [x], [x])
    with pytest.raises(od.ShapeError, match="arm_selftest.c would be written twice"):
        od.codegen(clash, tmp_path / "arm", separate=True)
    point = {"q": [1, 2, 3]}
    with pytest.raises(od.ShapeError, match=r"port q got shape \(3, 1\), expected \(2, 1\)"):
        od.codegen(f, tmp_path / "arm", points=[point])
    with pytest.raises(od.ShapeError, match="expected numbers by port"):
        od.codegen(f, tmp_path / "arm", points=[{"p": 0}])
    python, m = Python(), ca.MX.sym("m")
    with pytest.raises(od.ModelError, match="cannot write it as C"):
        od.codegen(ca.Function("calls", [m], [python(m)]), tmp_path / "arm")
    assert list(tmp_path.iterdir()) == []


def test_files_are_replaced_all_or_not_at_all(tmp_path, monkeypatch):
    folder, f = tmp_path / "arm", od.function(od.robots.planar_2r(), "com")
    made = od.codegen(f, folder)
    (folder / "mine.txt").write_text("stays")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    again = od.codegen([f, od.function(od.robots.planar_2r(), "mass_matrix")], folder)
    assert "arm_mass_matrix_0" in again.header.read_text()
    assert (folder / "mine.txt").read_text() == "stays"
    od.codegen(f, folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before

    write, count = Path.write_text, iter(range(100))

    def full_disk(path, *args, **kwargs):
        if next(count) == 2:
            raise OSError(28, "No space left on device", str(path))
        return write(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(od.ModelError, match="No space left on device.*give another folder"):
        od.codegen(od.function(od.robots.planar_2r(), "mass_matrix"), folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["arm"]
    assert made.folder == folder
    monkeypatch.undo()
    with pytest.raises(od.ModelError, match="mine.txt.*give another folder"):
        od.codegen(f, folder / "mine.txt" / "arm")


def test_header_and_help_say_how_to_link(tmp_path):
    code = od.codegen(od.function(od.robots.planar_2r(), "mass_matrix"), tmp_path / "arm")
    assert re.search(r"Libraries: the C library .*-lm", (code.folder / "arm.h").read_text())
    assert "gcc main.c NAME.c -lm" in od.codegen.__doc__
