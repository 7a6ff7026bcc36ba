"""The package as others get it: version, dependencies, contents of the wheel, what importing costs."""

import ast
import itertools
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
    "pin": "pinocchio",
    "adam-robotics": "adam",
    "dask": "distributed",  # dask[distributed]
}
_BY_MATPLOTLIB = {"PIL", "mpl_toolkits"}  # it depends on the first and brings the second


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


def test_dependencies_are_what_is_imported():
    imported = set()
    for path in _PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.partition(".")[0])
    needed = imported - set(sys.stdlib_module_names) - _BY_MATPLOTLIB - {"oc_dyn"}
    extras = {
        _MODULE_OF.get(n, n)
        for group in _project()["project"]["optional-dependencies"].values()
        for n in map(_name, group)
    }
    declared = {_MODULE_OF.get(n, n) for n in map(_name, _project()["project"]["dependencies"])}
    assert declared <= needed, "declared, but never imported"
    assert needed - declared <= extras, "imported, but not declared"


def test_import_leaves_heavy_modules_alone():
    code = "import sys, oc_dyn; print(*(m for m in ('matplotlib', 'lxml', 'yaml', 'tqdm', 'PIL') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=_ROOT, check=True)
    assert done.stdout.split() == []


def test_import_brings_nothing_that_others_wrote_but_casadi_and_numpy():
    code = "import sys, casadi, numpy; before = {*sys.modules}; import oc_dyn; print(*({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=_ROOT, check=True)
    roots = {m.partition(".")[0] for m in done.stdout.split()}
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
    assert "Requires-Python: <3.14,>=3.10" in metadata
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
