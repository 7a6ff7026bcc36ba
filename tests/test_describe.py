"""od.describe: what it says of shapes, methods and options is so, docstrings lead to it; dir(od) is what is public."""

import ast
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from samples import build, robot, scene

import oc_dyn as od
from oc_dyn.friction import SMOOTHING
from oc_dyn.ports import Size
from oc_dyn.registry import CORIOLIS, OPTIONS, choose, get, get_method

ROOT = Path(__file__).resolve().parents[1]
ROBOTS = ("small floating", "small prismatic")
NEEDED = {"frame": "link2", "representation": "spatial", "prescribed": ("joint1",), "scene": scene()}
CHOICES = {  # options with values that change ports
    "external_wrenches": True,
    "parameters": ("inertia", "armature"),
    "columns": ("inertia", "armature", "viscous"),
}
PORT = re.compile(r"^    (\w+)  +(\S.*?)  +\[(.+?)\]  +(\S.*)$", re.MULTILINE)


def described(text):
    """({input: (shape, unit)}, {output: ...}) of a description, without what further options would add."""
    arguments, results = text.split("\nResults\n")
    found = [re.split(r"\n\nFurther ", arguments)[0], results.split("\n\n")[0]]
    found = [re.sub(r"\n {8}(?=\S)", "  ", part) for part in found]  # where meanings stand below
    return [{name: (shape, unit) for name, shape, unit, _ in PORT.findall(part)} for part in found]


def size(shape, sizes):
    """(rows, columns) of a shape in words."""
    rows, _, columns = shape.partition(" x ")
    return eval(rows, {}, sizes), eval(columns or "1", {}, sizes)


def orders(quantity):
    return (0, 2) if get(quantity).max_order is None else (0,)


def settings(quantity):
    """Combinations of options that change ports, without those that must be given."""
    known = get(quantity).options
    yield {}
    yield from ({name: value} for name, value in CHOICES.items() if name in known)
    if {"external_wrenches", "parameters", "friction"} <= set(known):
        yield {"external_wrenches": True, "friction": True, "parameters": ("inertia", "armature", "viscous")}


def needed(quantity):
    return {name: value for name, value in NEEDED.items() if name in _required(quantity)}


def _required(quantity):
    known = get(quantity).options
    return known if "frame" in known else [x for x in ("prescribed", "scene") if x in known]


@pytest.mark.few(22)
@pytest.mark.sample("inverse_dynamics", "com")
@pytest.mark.parametrize("quantity", od.quantities("robot"))
def test_shapes_are_those_of_functions(quantity):
    for r in map(robot, ROBOTS):
        prescribed = r.joint("joint1").nv
        sizes = {"nq": r.nq, "nv": r.nv, "bodies": len(r.bodies), "prescribed": prescribed}
        sizes["pairs"] = len(NEEDED["scene"].pairs)
        for order in orders(quantity):
            for options in settings(quantity):
                if order and options.get("friction") and quantity == "forward_dynamics":
                    continue
                f = od.function(r, quantity, order=order, **options, **needed(quantity))
                symbolic = described(od.describe(quantity, order=order, **options))
                numeric = described(od.describe(quantity, r, order=order, **options, **needed(quantity)))
                for shown in (symbolic, numeric):
                    assert [list(x) for x in shown] == [f.name_in(), f.name_out()]
                    assert {n: size(x, sizes) for n, (x, _) in shown[0].items()} == {
                        n: f.size_in(n) for n in f.name_in()
                    }
                    assert {n: size(x, sizes) for n, (x, _) in shown[1].items()} == {
                        n: f.size_out(n) for n in f.name_out()
                    }
                assert not re.search(
                    "nq|nv|bodies|prescribed|pairs", " ".join(x for p in numeric for x, _ in p.values())
                )


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["rigid joint", "variable stiffness", "driven stiffness"])
@pytest.mark.parametrize("quantity", od.quantities("elastic robot"))
def test_shapes_of_elastic_robots(quantity, kind):
    springs = {"joint1": 100.0, "joint2": 50.0, "joint3": 80.0}
    if kind == "rigid joint":
        del springs["joint3"]
    else:
        springs["joint2"] = od.elastic.VariableSpring()
    inertia = {"stiffness_inertia": 0.01} if kind == "driven stiffness" else {}
    elastic = od.elastic.elastic_robot(od.robots.chain(3), springs, motor_inertia=0.1, **inertia)
    sizes = {"nq": 3, "nv": 3, "motors": 3, "elastic": 2 if kind == "rigid joint" else 3}
    sizes |= {"rigid": 1, "variable": 1}
    for order in orders(quantity):
        f = od.function(elastic, quantity, order=order)
        numeric = described(od.describe(quantity, elastic, order=order))
        symbolic = described(od.describe(quantity, order=order))
        assert [list(x) for x in numeric] == [f.name_in(), f.name_out()]
        for name in f.name_in():
            assert size(numeric[0][name][0], sizes) == size(symbolic[0][name][0], sizes) == f.size_in(name)
        for name in f.name_out():
            assert size(numeric[1][name][0], sizes) == size(symbolic[1][name][0], sizes) == f.size_out(name)


@pytest.mark.parametrize("quantity", od.quantities())
def test_says_what_every_record_says(quantity):
    text, record = od.describe(quantity), get(quantity)
    assert text.startswith(f"{quantity}: {record.summary}\n")
    assert record.equation
    for name in record.options:
        assert f"\n    {name}={OPTIONS[name][0]!r}: " in text
    for name in od.methods(quantity):
        m = get_method(quantity, name)
        (line,) = re.findall(rf"^    {name}(?: \(default\))?  +(.*)$", text, re.MULTILINE)
        assert m.kind in line
        assert m.source in line
    units = [unit for part in described(text) for _, unit in part.values()]
    assert units
    assert all(units)
    assert text.isascii()
    assert max(map(len, text.split("\nMethods, ")[0].splitlines()[1:])) <= 120


@pytest.mark.parametrize("quantity", od.quantities())
def test_default_is_the_method_that_is_taken(quantity):
    r = od.robots.planar_2r() if get(quantity).of == "robot" else get(quantity).example(None)[0]
    for order in orders(quantity):
        (name,) = re.findall(r"^    (\w+) \(default\)", od.describe(quantity, order=order), re.MULTILINE)
        assert name == choose(quantity, r, order).name


def test_default_depends_on_order_and_options():
    assert "\n    composite (default)" in od.describe("mass_matrix")
    assert "\n    ad_taylor (default)" in od.describe("mass_matrix", order=1)
    (name,) = re.findall(r"(\w+) \(default\)", od.describe("coriolis_matrix", coriolis="kumar_mueller"))
    assert name == choose("coriolis_matrix", od.robots.planar_2r(), 0, coriolis="kumar_mueller").name == "closed_form"


def test_what_one_order_more_adds():
    assert "order 1 adds the arguments d2v and the results dtau." in od.describe("inverse_dynamics")
    assert "order 3 adds the arguments d4v and the results d3tau." in od.describe("inverse_dynamics", order=2)
    assert " adds " not in od.describe("inverse_dynamics_second_partials")


def test_options_are_named_with_what_they_do():
    text = od.describe("coriolis_matrix")
    assert all(f'"{name}"' in text for name in CORIOLIS)
    assert '"kumar_mueller"' not in od.describe("dynamic_matrices")
    assert f"tanh(v / {SMOOTHING:g})" in OPTIONS["friction"][1]
    frames, base = od.describe("frame_twist"), od.describe("inverse_dynamics")
    assert "it must be given" in frames
    assert "floating base" in base
    assert "floating base" not in frames


def test_ports_say_a_representation_that_is_asked_for():
    base = robot("small floating")
    assert "root_joint" not in od.describe("inverse_dynamics", base)
    seen = " ".join(od.describe("inverse_dynamics", base, representation="hybrid").split())
    assert "that of root_joint in root axes, at the body's origin" in seen


def test_errors_that_are_named_come():
    r = robot("small serial")
    assert "an order above 0" in od.describe("mass_matrix_inverse")
    with pytest.raises(od.OrderError):
        od.describe("mass_matrix_inverse", order=1)
    assert "ModelError: the moving bodies have no mass" in od.describe("com")
    b = od.RobotBuilder("light")
    b.add_link("base")
    b.add_body("link", "revolute", "base", axis=(0, 0, 1), armature=1.0)
    with pytest.raises(od.ModelError, match="no mass"):
        od.function(b.build(), "com")
    for quantity, options in (("frame_pose", {}), ("frame_twist", {"frame": "link2"})):
        assert "ShapeError" in od.describe(quantity)
        with pytest.raises(od.ShapeError, match="give"):
            od.function(r, quantity, **options)
    for options in ({"frame": "lnik2", "representation": "body"}, {"frame": "link2", "representation": "bdoy"}):
        with pytest.raises(od.UnknownName):
            od.function(r, "frame_twist", **options)
    with pytest.raises(od.UnknownName):
        od.function(r, "hybrid_dynamics_partials", prescribed=("jiont1",))
    assert "springs that are damped" in od.describe("elastic_flat_map")
    damped = od.elastic.elastic_robot(r, 100.0, damping=1.0, motor_inertia=None)
    with pytest.raises(od.OrderError, match="damped"):
        od.function(damped, "elastic_flat_map")


def test_singular_mass_matrices_are_named_where_they_matter():
    solving = {q for q in od.quantities("robot") if "the mass matrix is singular" in od.describe(q)}
    assert {"forward_dynamics", "hybrid_dynamics", "mass_matrix_inverse"} <= solving
    assert "inverse_dynamics" not in solving
    assert solving == {q for q in od.quantities("robot") if get(q).solves}


def test_unknown_names_have_near_ones():
    with pytest.raises(od.UnknownName, match="did you mean 'inverse_dynamics'"):
        od.describe("inverse_dynamic")
    with pytest.raises(od.UnknownName, match="did you mean 'friction'"):
        od.describe("inverse_dynamics", fricton=True)
    with pytest.raises(od.UnknownName):
        od.describe(3)
    with pytest.raises(od.ModelError, match="elastic robot"):
        od.describe("elastic_flat_map", robot("serial"))


def test_names_of_robots_are_shown_on_one_line():
    b = od.RobotBuilder("a\x1b[31m\nb")
    b.add_link("base")
    b.add_body("link", "revolute", "base", axis=(0, 0, 1), mass=1.0, com=(1, 0, 0))
    assert "Arguments of a\\x1b[31m\\nb at order 0\n" in od.describe("bias", b.build())


def test_related_quantities_are_named():
    assert "Derivatives: inverse_dynamics_partials, inverse_dynamics_adjoint" in od.describe("inverse_dynamics")
    assert "Derivatives" not in od.describe("com_jacobian")


# -- sizes ------------------------------------------------------------------------------------------------------


def test_sizes_keep_the_text_of_what_is_done_with_them():
    n, m = Size(7, "nv"), Size(2, "prescribed")
    for found, value, text in (
        (n * n, 49, "nv*nv"),
        (3 * n, 21, "3*nv"),
        (n - m, 5, "nv - prescribed"),
        (n + m, 9, "nv + prescribed"),
        (2 * (n - m), 10, "2*(nv - prescribed)"),
        (n - (n - m), 2, "nv - (nv - prescribed)"),
    ):
        assert found == value
        assert str(found) == text
        assert eval(text, {"nv": 7, "prescribed": 2}) == value
    back = pickle.loads(pickle.dumps(n))
    assert (back, str(back)) == (7, "nv")


# -- docstrings -------------------------------------------------------------------------------------------------


def test_docstrings_of_methods_lead_to_their_own_quantity():
    lost = []
    for quantity in od.quantities():
        for name in od.methods(quantity):
            m = get_method(quantity, name)
            led = re.findall(r'od\.describe\("(\w+)"\)', m.function.__doc__ or "")
            if quantity not in led or not m.source:
                lost.append((quantity, name, led))
    assert lost == []


def test_no_docstring_leads_nowhere():
    for path in (ROOT / "oc_dyn").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "see the quantity" not in text, path
        assert set(re.findall(r'od\.describe\("(\w+)"\)', text)) <= set(od.quantities()), path


# -- public names -----------------------------------------------------------------------------------------------

MODULES = set("control design elastic executors export identification interop registry robots scene shapes".split())
PUBLIC = MODULES | set(
    "CheckWarning ContactMotion FileError Inertia LimitError Limits ModelError ModelWarning OrderError Problem "
    "Robot RobotBuilder RobotFunction Scene ShapeError SolveError Trajectory UnknownName __version__ animate "
    "as_tensor base_parameters batch check_derivatives check_robot cite codegen codegen_player compile "
    "contact_points "
    "contact_wrenches deadline describe export_sweep fmu function inverse_kinematics load load_sdf load_solution "
    "load_urdf methods "
    "motion_report mpc numpy_call plan_along_path plan_point_to_point ports pose_path quantities rollout "
    "ros2_controller script sdf_springs sensitivity simulate sweep table taylor_mode tighten view".split()
)


def test_dir_shows_the_public_names_alone():
    assert set(dir(od)) == PUBLIC
    assert set(od.__all__) == PUBLIC - {"executors", "load_urdf"}
    assert {n for n in dir(od) if type(getattr(od, n)).__name__ == "module"} == MODULES
    undocumented = [n for n in PUBLIC - {"__version__"} if not (getattr(od, n).__doc__ or "").strip()]
    assert undocumented == []


@pytest.mark.slow
def test_names_that_come_later_are_not_imported_before():
    code = (
        "import sys, oc_dyn as od\n"
        "later = ['oc_dyn.executors', 'oc_dyn.model.urdf']\n"
        "print([m for m in later if m in sys.modules])\n"
        "from oc_dyn import executors, load_urdf\n"
        "print(od.executors is executors, od.load_urdf is load_urdf, [m in sys.modules for m in later])\n"
        "from oc_dyn import *\n"
        "print(plan_point_to_point is od.plan_point_to_point)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines() == ["[]", "True True [True, True]", "True"]


def _code():
    """Texts of Python that use the package as its users do."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        yield page.name, "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for folder in ("problems", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_name_that_is_used_is_there():
    used = set()
    for source, text in _code():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "oc_dyn":
                used |= {(alias.name, source) for alias in node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "od":
                used.add((node.attr, source))
    assert len(used) > 100
    wrong = {"load_udrf"}  # of a test that it is refused
    absent = []
    for name in sorted({name for name, _ in used} - wrong):
        try:
            exec(f"from oc_dyn import {name}", {})
        except ImportError:
            absent.append(name)
    assert absent == []
    scripts = {name for name, source in used if not source.startswith("tests")}
    assert scripts <= PUBLIC


def test_od_ports_and_od_describe_say_the_same():
    r = build(["revolute", "prismatic"], seed=1)
    inputs, outputs = od.ports(r, "inverse_dynamics", 1, external_wrenches=True)
    shown = described(od.describe("inverse_dynamics", r, order=1, external_wrenches=True))
    for records, part in zip((inputs, outputs), shown, strict=True):
        assert {p.name: p.unit for p in records} == {name: unit for name, (_, unit) in part.items()}
