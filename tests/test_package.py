"""The package as others get it: version, dependencies, contents of the wheel, what importing costs."""

import ast
import itertools
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import oc_dyn as od

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = _ROOT / "oc_dyn"
_MODULE_OF = {  # where a project and its module differ in name
    "urdf-parser-py": "urdf_parser_py",
    "PyYAML": "yaml",
    "pycollada": "collada",
    "pin": "pinocchio",
    "adam-robotics": "adam",
    "mim-solvers": "mim_solvers",
    "dask": "distributed",  # dask[distributed]
}
_BY_MATPLOTLIB = {"PIL", "mpl_toolkits"}  # it depends on the first and brings the second
_BY_DISTRIBUTED = {"dask"}  # whose settings are those of distributed


def _project():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    return tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _name(requirement):
    return re.match(r"[\w.-]+", requirement).group()


def test_version_is_said_once_and_explained():
    assert re.fullmatch(r"\d+\.\d+\.\d+", od.__version__)
    assert _project()["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "oc_dyn._version.__version__"}
    changes = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.*?)\]", changes, re.MULTILINE)[:2] == ["Unreleased", od.__version__]


@pytest.mark.slow
def test_dependencies_are_what_is_imported():
    imported = set()
    for path in _PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.partition(".")[0])
    needed = imported - set(sys.stdlib_module_names) - _BY_MATPLOTLIB - _BY_DISTRIBUTED - {"oc_dyn"}
    extras = {
        _MODULE_OF.get(n, n)
        for group in _project()["project"]["optional-dependencies"].values()
        for n in map(_name, group)
    }
    declared = {_MODULE_OF.get(n, n) for n in map(_name, _project()["project"]["dependencies"])}
    assert declared <= needed, "declared, but never imported"
    assert needed - declared <= extras, "imported, but not declared"


def in_a_new_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=_ROOT, check=True)
    return done.stdout.split()


HEAVY = ("matplotlib", "lxml", "yaml", "tqdm", "PIL", "dask", "distributed", "scipy", "email", "socket")
LAYERS = ("planning", "optimal_control", "elastic", "control", "identification", "design", "interop", "runs", "study")


@pytest.mark.slow
def test_import_leaves_heavy_modules_alone():
    """Those of others, and layers of this package above the quantities, which are most of it; so does a Function."""
    names = [*HEAVY, *(f"oc_dyn.{layer}" for layer in LAYERS), "oc_dyn.cli", "oc_dyn.demo"]
    way = "import oc_dyn; oc_dyn.function(oc_dyn.robots.planar_2r(), 'gravity')"
    assert in_a_new_process(f"import sys; {way}; print(*(m for m in {names} if m in sys.modules))") == []


def test_every_name_is_there_when_it_is_asked_for():
    """Each alone, before any other has been asked for, and what it is in the module that has it."""
    code = """
import importlib, sys, types
import oc_dyn as od
alone = {"Problem", "codegen", "elastic"}
for name in sorted({*dir(od), "planning", "optimal_control", "control", "runs", "description"}):
    own = [m for m in sys.modules if m.partition(".")[0] == "oc_dyn"]
    kept = {m: sys.modules.pop(m) for m in own} if name in alone else {}
    package = importlib.import_module("oc_dyn")
    x = getattr(package, name)
    assert getattr(package, name) is x, name
    home = package.__dict__.get("_LATER", {}).get(name, (None, None))
    assert home[1] is None or getattr(sys.modules[f"oc_dyn.{home[0]}"], home[1]) is x, name
    assert isinstance(x, types.ModuleType) or callable(x) or name == "__version__", name
    if kept:
        for m in [m for m in sys.modules if m.partition(".")[0] == "oc_dyn"]:
            del sys.modules[m]
        sys.modules.update(kept)
assert od.runs.script.script is od.script and od.planning.limits.Limits is od.Limits
from oc_dyn import *
assert callable(codegen) and callable(function) and callable(batch) and callable(compile)
print("done")
"""
    assert in_a_new_process(code) == ["done"]


def test_what_comes_later_is_what_checkers_read():
    """The table of names, and the imports of a block that runs nowhere."""
    imported = {}
    for block in ast.parse((_PACKAGE / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
            for line in block.body:
                for alias in line.names:
                    assert alias.asname == alias.name  # or strict checkers do not see it from outside
                    home = (line.module, alias.name) if line.module else (alias.name, None)
                    imported[alias.name] = home
    assert imported == od._LATER
    assert set(od._LATER) - set(od.__all__) == {"executors", "load_urdf"}


@pytest.mark.slow
def test_elastic_quantities_are_found_before_anyone_has_asked_for_elastic_robots():
    code = """
import sys
import oc_dyn as od
print(*od.methods("inverse_dynamics"), "oc_dyn.elastic" in sys.modules)
print(od.registry.get("elastic_flat_map").of, "oc_dyn.elastic" in sys.modules)
print(*od.quantities())
"""
    words = in_a_new_process(code)
    known = [*od.methods("inverse_dynamics"), "False", "elastic", "robot", "True", *od.quantities()]
    assert words == known


@pytest.mark.slow
def test_pickles_load_where_nothing_is_imported(tmp_path):
    """Of classes in modules that are imported late."""
    arm = od.robots.planar_2r()
    things = [
        arm,
        od.Limits(arm.coordinate_names, v=2.0),
        od.elastic.elastic_robot(arm, 100.0, motor_inertia=0.1),
        od.OrderError("no"),
    ]
    (tmp_path / "things").write_bytes(pickle.dumps(things))
    code = f"import pickle; print(*(type(x).__name__ for x in pickle.load(open({str(tmp_path / 'things')!r}, 'rb'))))"
    assert in_a_new_process(code) == ["Robot", "Limits", "ElasticRobot", "OrderError"]


@pytest.mark.slow
def test_import_brings_nothing_that_others_wrote_but_casadi_and_numpy():
    code = "import sys, casadi, numpy; before = {*sys.modules}; import oc_dyn; print(*({*sys.modules} - before))"
    roots = {m.partition(".")[0] for m in in_a_new_process(code)}
    assert roots - sys.stdlib_module_names == {"oc_dyn"}
    assert roots & {"asyncio", "ctypes", "multiprocessing", "unittest", "http", "xml"} == set()


BUILT_ON_IMPORT = """
import casadi

built = []
for kind in (casadi.SX, casadi.MX, casadi.Function):
    def noted(self, *arguments, made=kind.__init__, name=kind.__name__, **options):
        built.append(name)
        return made(self, *arguments, **options)
    kind.__init__ = noted
for kind in (casadi.SX, casadi.MX):
    def symbol(*arguments, made=kind.sym, name=kind.__name__):
        built.append(name + ".sym")
        return made(*arguments)
    kind.sym = staticmethod(symbol)
for what in "import oc_dyn", "oc_dyn.function(oc_dyn.robots.planar_2r(), 'gravity')":
    exec(what)
    print(len(built))
"""


@pytest.mark.slow
def test_import_builds_no_expressions():
    run = [sys.executable, "-c", BUILT_ON_IMPORT]
    done = subprocess.run(run, capture_output=True, text=True, cwd=_ROOT, check=True)
    on_import, after = map(int, done.stdout.split())
    assert on_import == 0
    assert after > 0


def test_names_that_come_later_are_there():
    assert "load_urdf" in dir(od)
    assert callable(od.load_urdf)
    with pytest.raises(AttributeError, match="load_udrf"):
        od.load_udrf  # noqa: B018


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the tree; skips where pip cannot get the build tools."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "tree"
    shutil.copytree(_PACKAGE, copy / "oc_dyn", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(_ROOT / name, copy)
    for name in ("tests", "results", "problems"):  # must not get in
        (copy / name).mkdir()
        (copy / name / "__init__.py").write_text("")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "--retries=0",
        "--timeout=10",
        "-w",
        folder,
        copy,
    ]
    try:
        done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip("pip takes too long to get setuptools")
    if (
        done.returncode
        and "setuptools" in done.stderr
        and re.search("No matching distribution|Connection", done.stderr)
    ):
        pytest.skip("pip cannot get setuptools")
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_wheel_is_pure_and_complete(wheel, tmp_path):
    assert wheel.name == f"oc_dyn-{od.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = f"oc_dyn-{od.__version__}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        archive.extractall(tmp_path)
    files = {
        p.relative_to(_ROOT).as_posix() for p in _PACKAGE.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    }
    assert {n for n in names if not n.startswith(info)} == files
    assert f"{info}/licenses/LICENSE" in names
    assert "License-Expression: BSD-3-Clause" in metadata
    assert "Requires-Python: <3.15,>=3.10" in metadata
    assert entry_points.split() == ["[console_scripts]", "oc-dyn", "=", "oc_dyn.cli:main"]

    code = "import oc_dyn, pathlib; print(oc_dyn.__version__, pathlib.Path(oc_dyn.__file__).parent.name)"
    code += "; print(oc_dyn.function(oc_dyn.robots.panda(), 'inverse_dynamics').n_out())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    assert done.stdout.split() == [od.__version__, "oc_dyn", "1"], done.stderr


def test_contributing_names_the_layers_in_their_order():
    layers = _project()["tool"]["importlinter"]["contracts"][0]["layers"]
    names = [re.findall(r"\w+", layer) for layer in layers]
    contributing = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.search(r"^## The layers$.*?^```$(.*?)^```$", contributing, re.MULTILINE | re.DOTALL)[1]
    lines = [line.split("    ")[0] for line in shown.strip().splitlines()]
    places = {name: k for k, line in enumerate(lines) for name in re.findall(r"\w+", line)}
    assert places.keys() == {name for layer in names for name in layer}
    order = [sorted(places[name] for name in layer) for layer in names]
    assert all(above[-1] <= below[0] for above, below in itertools.pairwise(order))
