"""Names of generated code: headers in C++, two of everything in one program, and what is refused."""

import re
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from controllers import pendulum

import oc_dyn as od
from oc_dyn import elastic as el

pytestmark = pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="needs gcc and g++")


def law():
    return el.feedforward_pd(el.elastic_robot(od.robots.planar_2r(), 100.0, motor_inertia=0.1), 50, 5)


def functions(folder, name):
    r = od.robots.planar_2r()
    made = od.codegen([od.function(r, "com"), od.function(r, "mass_matrix")], folder, name=name)
    return [str(x) for x in made.sources], f"{name}_com_0(arg, res, iw, w, 0)"


def functions_apart(folder, name):
    r = od.robots.planar_2r()
    fs = [od.function(r, "com"), od.function(r, "mass_matrix")]
    made = od.codegen(fs, folder, name=name, separate=True, precision="double")
    return [str(x) for x in made.sources], f"{name}_com_0(arg, res, iw, w, 0)"


def controller(folder, name):
    reference = el.reference(law().elastic, el.rest_to_rest([0.1, 0.2], [0.2, 0.1], 0.5))
    made = el.generate_controller(law(), folder, name=name, reference=reference, compiler="none")
    loop = [str(x) for x in made.files if x.name == f"{name}_loop.c"]
    assert len(loop) == 1
    return [str(x) for x in made.sources] + loop, f"{name}_step(0, 0, 0)"


def predictive(folder, name):
    ocp, tau, plant, seen = pendulum(4)
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", name=name)
    files = control.codegen(folder, plant, seen, x=np.zeros(5), steps=2)
    return [str(files[0])], f"{name}_step(0, 0, 0)"


KINDS = {"functions": functions, "apart": functions_apart, "controller": controller, "predictive": predictive}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_two_in_one_program_in_c_and_in_cpp(kind, tmp_path):
    """Names that differ, be it in letter case alone, give code that links; every symbol starts with its name."""
    sources, calls, folders = [], [], []
    for name in ("arm", "Arm"):
        files, call = KINDS[kind](tmp_path / f"of_{name}", name)
        folders.append(f"-I{tmp_path / f'of_{name}'}")
        calls.append(call)
        for source in files:
            part = tmp_path / f"{len(sources)}.o"
            subprocess.run(["gcc", "-std=c99", "-O0", "-c", source, "-o", part], check=True)
            sources.append(part)
            found = subprocess.run(["nm", "-g", "--defined-only", part], capture_output=True, text=True, check=True)
            symbols = [line.split()[-1] for line in found.stdout.splitlines()]
            assert symbols
            assert all(s == name or s.startswith(f"{name}_") for s in symbols)
    lines = [f'#include "{name}.h"' for name in ("arm", "Arm")]
    lines += ["int main(int n, char **words) {", "    const double **arg = 0; double **res = 0, *w = 0;"]
    lines += ["    long long int *iw = 0; (void)words; (void)arg; (void)res; (void)w; (void)iw;"]
    lines += [f"    if (n > 1) return {' + '.join(calls)};", "    return 0;", "}", ""]
    (tmp_path / "main.c").write_text("\n".join(lines))
    shutil.copy(tmp_path / "main.c", tmp_path / "main.cpp")
    for compiler, file in (("gcc", "main.c"), ("g++", "main.cpp")):
        subprocess.run([compiler, *folders, "-o", "main", file, *sources, "-lm"], cwd=tmp_path, check=True)
        assert subprocess.run([tmp_path / "main"]).returncode == 0


@pytest.mark.slow
def test_two_controllers_in_one_folder(tmp_path):
    """Each keeps its own harness."""
    flags = ("-std=c99", "-O0")
    soft, hard = (el.feedforward_pd(law().elastic, kp, 5) for kp in (10, 20))
    one, two = (el.generate_controller(x, tmp_path, name=n, flags=flags) for x, n in ((soft, "one"), (hard, "two")))
    row = 0.01 * np.arange(1.0, 1 + sum(one.inputs.values()))[None]
    for made, control in ((one, soft), (two, hard)):
        expected = control.function(*np.split(row[0], control.function.n_in())).full().ravel()
        assert made.values(row)[0] == pytest.approx(expected, rel=1e-12)
    el.generate_controller(law(), tmp_path, name="arm", compiler="none")
    with pytest.raises(od.ModelError, match="arm_law.c in it belongs to the controller arm"):
        el.generate_controller(law(), tmp_path, name="arm_law", compiler="none")
    assert el.generate_controller(law(), tmp_path / "other", name="arm_law", compiler="none").name == "arm_law"


TAKEN = {
    "main": "a name in the files that go with the code",
    "harness": "a name in the files that go with the code",
    "loop": "a name in the files that go with the code",
    "plant": "a name in the files that go with the code",
    "measured": "a name in the files that go with the code",
    "math": "a header of C",
    "Math": "a header of C",
    "tgmath": "a header of C",
    "pthread": "a header of the system",
    "double": "a keyword of C",
    "class": "a keyword of C[+][+]",
    "Template": "a keyword of C[+][+]",
    "printf": "a function or macro of C",
    "sinf": "a function or macro of C",
    "fmaxl": "a function or macro of C",
    "size_t": "a function or macro of C",
    "read": "a function of the system",
    "clean": "a name that CMake keeps",
    "m": "a library",
    "con": "a device of Windows",
    "LPT1": "a device of Windows",
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", TAKEN)
def test_names_that_are_taken(name, tmp_path):
    ocp = od.Problem(4, 0.4)
    x, v, _ = ocp.chain("x", 1, 2)
    ocp.start({x: 0, v: 0})
    ocp.minimize(integral=x**2)
    f = od.function(od.robots.planar_2r(), "com")
    for where, make in {
        "codegen": lambda: od.codegen(f, tmp_path, name=name),
        "generate_controller": lambda: el.generate_controller(law(), tmp_path, name=name),
        "mpc": lambda: od.mpc(ocp, hessian="exact", name=name),
    }.items():
        with pytest.raises(od.ShapeError, match=f"{where}: '{name}' is taken by C or CMake: it is {TAKEN[name]}"):
            make()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["arm", "robot", "model", "control", "law", "my_law", "controller", "panda_code", "x1"]
)
def test_names_that_are_free(name, tmp_path):
    f = od.function(od.robots.planar_2r(), "com")
    assert od.codegen(f, tmp_path, name=name).name == name


def test_all_that_the_headers_of_c_declare_is_taken():
    """Against the compiler: a variable of the name, behind the headers that generated code includes, is an error."""
    from oc_dyn.codegen.names import _RESERVED, _reserved

    headers = "".join(f"#include <{x}.h>\n" for x in ("math", "stdio", "stdlib", "string", "time", "float"))
    words = ["gcc", "-std=c99", "-E", "-x", "c", "-"]
    text = subprocess.run(words, input=headers, capture_output=True, text=True, check=True).stdout
    declared = set(re.findall(r"\b([a-z]\w*) \(", text)) - {"defined"}
    declared = {x for x in declared if "__" not in x and not x.startswith("_")}
    assert len(declared) > 200
    assert {x for x in declared if _reserved(x) is None} <= set()
    assert len(_RESERVED) > 5


def test_functions_that_clash_with_what_comes_with_others(tmp_path):
    x = ca.SX.sym("x")
    f, g = ca.Function("f", [x], [x]), ca.Function("f_work", [x], [x])
    with pytest.raises(od.ShapeError, match="arm_f_work would be a function, and belong to arm_f"):
        od.codegen([f, g], tmp_path, name="arm")
    with pytest.raises(od.ShapeError, match="would be written twice"):
        od.codegen([f, ca.Function("F", [x], [x])], tmp_path, name="arm", separate=True)
    assert list(tmp_path.iterdir()) == []
