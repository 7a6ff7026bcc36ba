"""Hostile names through every writer; the result is compiled, parsed or rendered by what it was written for."""

import csv
import html.parser
import io
import json
import re
import shutil
import subprocess
import warnings

import hostile
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn import text
from oc_dyn.files import write_csv
from oc_dyn.runs.manifest import manifest, write_json
from oc_dyn.runs.stored_table import StoredTable

SEEDS = [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 40))]
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?[\]}]*", re.IGNORECASE)
FORMULA = ("=", "+", "-", "@")
needs_gcc = pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="needs gcc and g++")
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")


def some(seed):
    """Names: one of each part for the first seed, random ones for the others."""
    return hostile.every_name() if seed == 0 else hostile.names(np.random.default_rng(seed), 30)


def motion(robot, rng):
    """A Trajectory of random cubic pieces."""
    n = robot.nq
    pieces = rng.normal(size=(3, 3, n))
    facts = {"joints": robot.coordinate_names, "units": ["rad"] * n, "robot": robot}
    return od.Trajectory(np.arange(4.0), pieces, **facts, limits=od.Limits.of(robot), info={"made": hostile.name(rng)})


def in_cells(line):
    """What a program that splits a line at one of the usual delimiters finds in it."""
    return [cell for delimiter in ",;\t|" for cell in line.split(delimiter)]


def is_formula(cell):
    return cell.startswith(FORMULA) and not NUMBER.fullmatch(cell)


# -- C and CMake --------------------------------------------------------------------------------------------------


def without_comments(path, folder, language="c"):
    """Text of the file itself as the preprocessor leaves it."""
    words = ["gcc" if language == "c" else "g++", *(["-std=c99"] if language == "c" else []), "-E", "-x", language]
    done = subprocess.run([*words, path.name], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def _check_files(files, folder):
    """Names are in comments of C alone, and end none of them."""
    for path in files:
        language = {".c": "c", ".h": "c", ".hpp": "c++", ".cpp": "c++"}.get(path.suffix)
        kept = without_comments(path, folder, language) if language else path.read_text(encoding="utf-8")
        assert hostile.MARK not in kept
        assert "evil" not in kept


@pytest.mark.few(10)
@needs_gcc
@pytest.mark.parametrize("seed", SEEDS)
def test_laws_in_c(seed, tmp_path):
    rng = np.random.default_rng(seed)
    robot = hostile.robot(rng)
    arm = el.elastic_robot(robot, 300.0, motor_inertia=0.2)
    made = el.generate_controller(el.gravity_pd(arm, 50, 5), tmp_path, name="arm", compiler="none")
    _check_files(made.files, tmp_path)
    assert hostile.MARK in (tmp_path / "arm.h").read_text(encoding="utf-8")  # it is told in the comment
    for source in made.sources:
        words = [
            "gcc",
            "-std=c99",
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Werror",
            "-fsyntax-only",
        ]
        subprocess.run([*words, source.name], cwd=tmp_path, check=True)
    (tmp_path / "main.cpp").write_text('#include "arm.h"\nint main() { return arm_safe.tau_m[0] != 0; }\n')
    subprocess.run(["g++", "-Wall", "-Werror", "-fsyntax-only", "main.cpp"], cwd=tmp_path, check=True)


@pytest.mark.few(10)
@needs_gcc
@pytest.mark.parametrize("seed", SEEDS)
def test_functions_in_c(seed, tmp_path):
    robot = hostile.robot(np.random.default_rng(seed))
    f = od.function(robot, "frame_pose", frame=list(robot.frames)[-1])
    made = od.codegen(f, tmp_path / "arm")
    _check_files(made.files, made.folder)
    sources = [x.name for x in made.files if x.suffix == ".c"]
    words = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Werror", "-fsyntax-only"]
    subprocess.run([*words, *sources], cwd=made.folder, check=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_names_of_code_are_refused(seed, tmp_path):
    law = el.feedforward(el.elastic_robot(od.robots.planar_2r(), 100.0, motor_inertia=0.1))
    f = od.function(law.elastic.links, "com")
    ocp = od.Problem(4, 0.4)
    x, v, _ = ocp.chain("x", 1, 2)
    ocp.start({x: 0, v: 0})
    ocp.minimize(integral=x**2)
    for name in some(seed):
        for make in (
            lambda name=name: el.generate_controller(law, tmp_path, name=name),
            lambda name=name: od.codegen(f, tmp_path, name=name),
            lambda name=name: od.mpc(ocp, hessian="exact", name=name),
        ):
            if re.fullmatch("[A-Za-z0-9]+", name):
                continue
            with pytest.raises(od.ShapeError, match="cannot name code") as refused:
                make()
            assert text.terminal(str(refused.value)) == str(refused.value)
    assert list(tmp_path.iterdir()) == []


@needs_gcc
@pytest.mark.parametrize("seed", SEEDS)
def test_c_comments_and_strings(seed, tmp_path):
    """All of them in one program, which prints the strings."""
    names = some(seed)
    lines = [f"/* {text.c_comment(x)} */ /*{text.c_comment(x)}*/" for x in names]
    lines += ["#include <stdio.h>", "int main(void) {"]
    lines += [f"    puts({text.c_string(x)});" for x in names]
    (tmp_path / "main.c").write_text("\n".join([*lines, "    return 0;", "}", ""]), encoding="utf-8")
    for words in (["gcc", "-std=c99", "-pedantic", "-Wall", "-Werror"], ["g++", "-x", "c++", "-Wall", "-Werror"]):
        subprocess.run([*words, "-o", "main", "main.c"], cwd=tmp_path, check=True)
        said = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout.decode("utf-8")
        assert said.split("\n")[:-1] == [text.terminal(x) for x in names]


@needs_cmake
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_cmake(seed, tmp_path):
    """Each is one argument, and stands for itself."""
    names = some(seed)
    lines = ["cmake_minimum_required(VERSION 3.10)", "set(HOME wrong)"]
    for k, name in enumerate(names):
        lines += [f"set(x {text.cmake(name)})", "list(LENGTH x n)", f'file(WRITE out{k} "${{n}}|${{x}}")']
    (tmp_path / "all.cmake").write_text("\n".join(lines), encoding="utf-8")
    subprocess.run(["cmake", "-P", "all.cmake"], cwd=tmp_path, check=True, capture_output=True)
    for k, name in enumerate(names):
        count, _, value = (tmp_path / f"out{k}").read_text(encoding="utf-8").partition("|")
        assert count == "1"
        assert value.replace("\\;", ";") == text.terminal(name)  # CMake keeps the backslash before a semicolon


# -- tables and JSON ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_trajectories_in_files(seed, tmp_path):
    rng = np.random.default_rng(seed)
    robot = hostile.robot(rng, 4)
    plan = motion(robot, rng)
    for kind in ("csv", "npz", "json"):
        plan.save(tmp_path / f"plan.{kind}")
        again = od.Trajectory.load(tmp_path / f"plan.{kind}")
        assert again.joints == plan.joints
        assert (again.robot_name, again.info["made"]) == (robot.name, plan.info["made"])
        assert np.array_equal(again.q, plan.q)
    lines = (tmp_path / "plan.csv").read_text(encoding="utf-8").split("\n")
    assert not any(is_formula(cell.strip()) for cell in in_cells(lines[0]))
    (header,) = csv.reader([lines[1]])
    assert len(header) == 1 + 4 * len(plan.joints) + 4  # t; q, v, dv, tau, dtau
    plan.save(tmp_path / "message.json", layout="joint_trajectory")
    message = json.loads((tmp_path / "message.json").read_text(encoding="utf-8"))
    assert message["joint_names"] == list(plan.joints)
    plan.limits.write(tmp_path / "limits.json")
    assert od.Limits.read(tmp_path / "limits.json", robot).as_dict() == plan.limits.as_dict()


def test_plans_of_elastic_robots(tmp_path):
    rng = np.random.default_rng(3)
    arm = el.elastic_robot(hostile.robot(rng), 300.0, motor_inertia=0.2)
    still = np.zeros((1, 6, 3))
    links = od.Trajectory(
        [0.0, 1.0], still, joints=arm.links.coordinate_names, units=["rad"] * 3, robot=arm.links, limits=None
    )
    plan = el.plan.ElasticPlan(arm, links, {}, 1.0, {})
    plan.save(tmp_path / "plan.csv", dt=0.5)
    with open(tmp_path / "plan.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    samples = plan.sample(0.5)
    assert len(header) == 1 + sum(x.shape[1] for k, x in samples.items() if k != "t")
    assert header[1:4] == [text.terminal(f"q {x}") for x in arm.links.coordinate_names]
    assert np.array(rows, float)[:, 0].tolist() == [0.0, 0.5, 1.0]


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", SEEDS)
def test_tables(seed, tmp_path):
    names = some(seed)
    write_csv(tmp_path / "a.csv", [["name", "number"], *([x, -1.5] for x in names)])
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        heading, *rows = csv.reader(file)
    assert [row[1] for row in rows] == ["-1.5"] * len(names)
    assert not any(is_formula(row[0]) for row in rows)
    assert [text.csv_text(row[0]) for row in rows] == [text.terminal_lines(x) for x in names]
    table = StoredTable(tmp_path / "b.csv", ("name",), ("value",), code="1")
    for x in names:
        table.add(name=x, value="-2")
    again = StoredTable(tmp_path / "b.csv", ("name",), ("value",), code="1")
    for x in names:
        shown = again.known(name=x)
        assert shown["value"] == "-2"


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", SEEDS)
def test_json(seed, tmp_path):
    names = some(seed)
    for written in (text.json_text(names), text.json_line(names), text.json_text({x: x for x in names}, indent=1)):
        found = json.loads(written.encode("utf-8"))
        assert list(found) == names
        assert all(c.isprintable() or c == "\n" for c in written)
    assert not any(is_formula(cell.strip()) for cell in in_cells(text.json_line(names)))
    write_json(tmp_path / "manifest.json", manifest(["oc-dyn", *names], names=names))
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert len(facts["names"]) == len(names)


# -- figures, HTML, terminal --------------------------------------------------------------------------------------


def shown(label):
    """What matplotlib draws of a label, and whether as a formula."""
    drawn, formula = label._preprocess_math(label.get_text())
    return drawn.strip(), bool(formula)


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_figures(seed, tmp_path):
    rng = np.random.default_rng(seed)
    robot = hostile.robot(rng, 4)
    plan = motion(robot, rng)
    plan.units = ["$\\frac{$", "rad", "m", "m"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        warnings.filterwarnings("ignore", message=".*font")
        figure = plan.plot(normalized=False)
        figure.savefig(io.BytesIO(), dpi=20)
        labels = figure.legends[0].get_texts()
        expected = text.told_apart(plan.joints, 40)
        assert [shown(x) for x in labels] == [(x.strip(), False) for x in expected]
        drawn, formula = shown(figure._suptitle)
        assert not formula
        assert drawn.count("$") == text.told_apart([f"{robot.name}: 3 s"], 80)[0].count("$")
        runs = {x: None for x in hostile.names(rng, 2)}
        arm = el.elastic_robot(od.robots.planar_2r(), 100.0, motor_inertia=0.1)
        law = el.feedforward(arm)
        reference = el.reference(arm, el.rest_to_rest([0.1, 0.2], [0.11, 0.19], 0.2))
        run = el.simulate(arm, law, reference, duration=0.02)
        figure = el.plot_runs(dict.fromkeys(runs, run), title=hostile.name(rng))
        figure.savefig(io.BytesIO(), dpi=20)
        labels = figure.axes[-1].get_legend().get_texts()
        assert [shown(x) for x in labels] == [(x.strip(), False) for x in text.told_apart(runs, 40)]


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_animations(seed, tmp_path):
    robot = hostile.robot(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        od.animate(robot, [0.0, 0.1], np.zeros((2, 3)), tmp_path / "a.gif", fps=10, size=(64, 64))
    assert (tmp_path / "a.gif").read_bytes()[:4] == b"GIF8"


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.attributes = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [k for k, _ in attrs]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", SEEDS)
def test_html(seed, tmp_path):
    pytest.importorskip("jinja2")
    from oc_dyn.study.html import write_report

    names = some(seed)
    write_json(tmp_path / "manifest.json", manifest(["oc-dyn", *names], names=names))
    write_csv(tmp_path / "a.csv", [["a", names[0]], *([x, "1"] for x in names)])
    (tmp_path / "a.png").write_bytes(b"")
    told = "\n".join(names)
    write_report(tmp_path, names[1], told, "\n\n".join(names), {"a.csv": names[2], "a.png": names[3]})
    page, written = Page(), (tmp_path / "report.html").read_bytes().decode("utf-8")
    page.feed(written)
    known = "html head meta title style body h1 h2 p nav a pre figure img figcaption div table thead tbody tr th td"
    assert page.tags == set(known.split())
    assert set(page.attributes) <= set("lang charset name content class id href alt src".split())
    assert all(c.isprintable() or c in "\n\t" for c in written)
    assert text.terminal_lines(told) in page.texts


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", SEEDS)
def test_terminal(seed):
    rng = np.random.default_rng(seed)
    robot = hostile.robot(rng, 4)
    plan = motion(robot, rng)
    arm = el.elastic_robot(robot, 300.0, motor_inertia=0.2)
    told = [str(robot), repr(robot), robot.canonical_report(), str(plan), repr(plan), str(plan.check(dt=0.5)), str(arm)]
    told += [repr(arm), repr(el.feedforward(arm)), od.table(), od.table(markdown=True)]
    names = list(robot.frames)
    for wrong in (
        lambda: robot.joint(names[0] + "x"),
        lambda: robot.frame("none"),
        lambda: od.function(robot, "frame_pose", frame="none"),
        lambda: od.function(robot, "com")(np.zeros(7)),
        lambda: od.Limits.of(robot).assert_within("start", q=9.0),
        lambda: od.load_urdf(hostile.name(rng).replace("<", "")),
        lambda: od.load_urdf("<robot name='\x1b'>"),
        lambda: od.ModelError(names[0], names).__str__() and od.robots.by_name(names[1]),
        lambda: robot.locked({names[2] + "x": 0}),
    ):
        with pytest.raises((ValueError, OSError)) as refused:
            wrong()
        told += [str(refused.value)] if not isinstance(refused.value, OSError) else []
    told += [str(x) for x in (od.ModelError(names[0], names), od.SolveError(names[0]), od.ModelWarning(names[0]))]
    for x in told:
        assert all(c.isprintable() or c in "\n\t" for c in x), x
        x.encode("utf-8")
