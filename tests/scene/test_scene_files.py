"""Scenes as files: what is written comes back, what is wrong is told with line and key, hostile files end soon."""

import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import yaml
from effort import counting
from hostile import every_name

import oc_dyn as od
from oc_dyn.errors import FileError, ShapeError, UnknownName
from oc_dyn.scene import PORT

s = od.shapes


def turned(seed=0):
    """A pose with all digits in use."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Q * np.linalg.det(Q), (0.1, 1 / 3, -1e-17)
    return T


def everything():
    rng = np.random.default_rng(1)
    return (
        od.Scene()
        .add("ball", s.Sphere(1 / 3), margin=0.01)
        .add("ground", s.HalfSpace(rng.normal(size=3), 0.3))
        .attach("tool", "hand", s.Capsule(0.1, 1e-5), turned())
        .attach("box", "hand", s.Box(0.1, 0.2, 0.0), np.eye(4))
        .add("tin", s.Cylinder(1e-20, 5.0), turned(3))
        .add("egg", s.Ellipsoid(0.1, 0.2, 0.3), PORT)
        .add("rock", s.Polytope(rng.normal(size=(9, 3))), turned(5), margin=1e-3)
        .leave_out(("tool", "ball"), ("hand", "tin"))
    )


def read(tmp_path, text):
    path = tmp_path / "scene.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return od.Scene.read(path)


def test_what_is_written_comes_back(tmp_path):
    scene = everything()
    scene.write(tmp_path / "a.yaml")
    again = od.Scene.read(tmp_path / "a.yaml")
    assert again == scene
    assert again.key == scene.key
    assert again.pairs == scene.pairs
    again.write(tmp_path / "b.yaml")
    assert (tmp_path / "a.yaml").read_bytes() == (tmp_path / "b.yaml").read_bytes()


@pytest.mark.parametrize("seed", range(20))
def test_half_spaces_come_back_to_the_last_digit(tmp_path, seed):
    scene = od.Scene().add("g", s.HalfSpace(np.random.default_rng(seed).normal(size=3), 1 / 7))
    scene.write(tmp_path / "a.yaml")
    assert od.Scene.read(tmp_path / "a.yaml").items == scene.items


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["panda", "humanoid", "quadruped"])
def test_scenes_of_robots_come_back(tmp_path, name):
    scene = od.Scene.of(od.robots.by_name(name))
    scene.write(tmp_path / "a.yaml")
    again = od.Scene.read(tmp_path / "a.yaml")
    assert (again, again.notes, again.pairs) == (scene, scene.notes, scene.pairs)


def test_names_of_all_kinds_come_back(tmp_path):
    names = [n for n in every_name() if not set("\0\ud800\udc80") & set(n)] + [
        "1",
        "0.5",
        "true",
        "null",
        "~",
        "<<",
        "=",
        "2001-01-01",
        "- a",
    ]
    scene = od.Scene(notes=tuple(names))
    for name in names:
        scene = scene.attach(name, name, s.Sphere(0.1))
    scene = scene.leave_out(names[:2], names[5:7])
    scene.write(tmp_path / "a.yaml")
    again = od.Scene.read(tmp_path / "a.yaml")
    assert again == scene
    assert again.notes == scene.notes


def test_names_that_no_file_can_hold(tmp_path):
    with pytest.raises(ShapeError, match="which no file can hold"):
        od.Scene().add("a\ud800", s.Sphere(1)).write(tmp_path / "a.yaml")


def test_an_empty_scene(tmp_path):
    od.Scene().write(tmp_path / "a.yaml")
    assert od.Scene.read(tmp_path / "a.yaml") == od.Scene()


def test_a_pose_that_moves_by_itself_is_not_written(tmp_path):
    t = ca.SX.sym("t")
    scene = od.Scene().add("a", s.Sphere(1), ca.Function("f", [t], [ca.SX.eye(4)]))
    with pytest.raises(ShapeError, match="pose of 'a' is a Function of the time"):
        scene.write(tmp_path / "a.yaml")
    assert list(tmp_path.iterdir()) == []


HAND = """
scene: 1
shapes:
  table: {box: [1, 2, 3e-2], xyz: [0, 0, .5], rpy: [0, 0, 1.5707963267948966], margin: 0.02}
  tool: {capsule: {radius: 0.1, length: 1}, link: hand}
  cup: {cylinder: [0.04, 0.1], pose: port}
  ball: {sphere: {radius: 1e-1}}
  dot: {sphere: 0, matrix: [[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]}
  ground: {half_space: {normal: [0, 0, 2]}}
  egg: {ellipsoid: [1, 2, 3]}
  rock: {polytope: [[0, 0, 0], [1, 0, 0], [0, 1, 0]]}
left_out:
  - [tool, table]
"""


def test_what_people_write(tmp_path):
    scene = read(tmp_path, HAND)
    assert [x.shape for x in scene.items] == [
        s.Box(1, 2, 0.03), s.Capsule(0.1, 1), s.Cylinder(0.04, 0.1), s.Sphere(0.1), s.Sphere(0), s.HalfSpace((0, 0, 1)),
        s.Ellipsoid(1, 2, 3), s.Polytope(((0, 0, 0), (1, 0, 0), (0, 1, 0))),
    ]  # fmt: skip
    assert np.allclose(scene["table"].matrix, [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]], atol=1e-15)
    assert scene["table"].margin == 0.02
    assert scene["tool"].link == "hand"
    assert scene.moving == ("cup",)
    assert scene["dot"].matrix[:3, 3].tolist() == [1, 2, 3]
    assert scene.left_out == {frozenset(("tool", "table"))}


WRONG = {
    "box: [1, 2]": "line 3, shapes.a.box: got 2 values, expected 3 finite numbers",
    "box: [1, 2, x]": "line 3, shapes.a.box: got 'x', expected a finite number",
    "box: [1, 2, .nan]": "got '.nan'",
    "box: [1, 2, 1e999]": "got '1e999'",
    "box: [1, 2, 1e31]": "got '1e31'",
    "box: [1, 2, '3']": "got '3'",
    "box: [1, 2, 0x10]": "got '0x10'",
    "box: [1, 2, 1_000]": "got '1_000'",
    "box: [1, 2, -3]": "line 3, shapes.a.box: Box: z is",
    "box: [1, 2, [3]]": "got a list of 1, expected a finite number",
    "box: {x: 1, y: 2}": "shapes.a.box: it has no z",
    "box: {x: 1, y: 2, zz: 3}": "there is no key 'zz'; did you mean z?",
    "box: 1": "got '1', expected 3 finite numbers",
    "box: ": "got nothing",
    "bx: [1, 2, 3]": "line 3, shapes.a: there is no key 'bx'; did you mean box? known: sphere",
    "sphere: [1, 2]": "got 2 values, expected 1 finite",
    "sphere: big": "got 'big', expected a radius",
    "half_space: [0, 0, 1]": "expected {normal: [x, y, z], offset: number}",
    "half_space: {normal: [0, 0, 0]}": "not all zero",
    "polytope: []": "expected finite numbers of shape (n, 3)",
    "polytope: [[1, 2]]": "got 2 values, expected 3",
    "polytope: 1": "expected a list of vertices",
    "link: hand": "got no shape, expected one of sphere, capsule",
    "{sphere: 1, box: [1, 1, 1]}": "got sphere and box, expected one of",
    "{sphere: 1, xyz: [1, 2]}": "shapes.a.xyz: got 2 values",
    "{sphere: 1, rpy: 1}": "shapes.a.rpy: got '1'",
    "{sphere: 1, xyz: [1, 2, 3], pose: port}": "got pose and xyz and rpy, expected one way",
    "{sphere: 1, pose: prt}": "shapes.a.pose: got prt, expected 'port', or xyz and rpy",
    "{sphere: 1, pose: port, link: hand}": "a shape on a link stands still on it",
    "{sphere: 1, matrix: [[1, 0, 0, 0]]}": "got 1 rows, expected 3 or 4",
    "{sphere: 1, matrix: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0]]}": "is no pose",
    "{sphere: 1, margin: -1}": "shapes.a.margin: got -1, expected at least 0",
    "{sphere: 1, link: }": "shapes.a.link: got nothing, expected the name of a link",
    "{sphere: 1, link: [a]}": "got a list of 1, expected the name of a link",
    "[1]": "line 3, shapes.a: got a list of 1, expected keys and values",
    "{sphere: 1, sphere: 2}": "'sphere' is there twice",
    "{sphere: !!python/object:os.system x}": "the tag tag:yaml.org,2002:python/object:os.system",
    "{sphere: !rnd 1}": "the tag !rnd",
    "{[1]: 2}": "as a key, expected a name",
    "&x {sphere: 1}\n  b: *x": "line 4: *x is an alias",
    "{sphere: 1": "line",
    "{? {a: [[[[[[[[1]]]]]]]]} : 1}": "line 3: nested too deeply",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_shape(tmp_path, text):
    inline = text.startswith(("{", "[", "&")) or "\n" in text
    with pytest.raises(FileError) as told:
        read(tmp_path, f"scene: 1\nshapes:\n  a: {text if inline else '{' + text + '}'}\n")
    assert WRONG[text] in str(told.value)
    assert "scene.yaml" in str(told.value)


FILES = {
    "": "is empty",
    "# nothing\n": "is empty",
    "5": "line 1, the file: got '5', expected keys and values",
    "shapes: {}": "line 1, scene: got no version, expected 'scene: 1'",
    "scene: 2": "line 1, scene: got version 2, expected 'scene: 1'",
    "scene: [1]": "line 1, scene: got a list",
    "scene: 1\nshape: {}": "line 2, the file: there is no key 'shape'; did you mean shapes?",
    "scene: 1\nshapes: 3": "line 2, shapes: got '3'",
    "scene: 1\nshapes: {a: {sphere: 1}, a: {sphere: 1}}": "'a' is there twice",
    "scene: 1\nshapes: {'': {sphere: 1}}": "a name that is empty",
    'scene: 1\nshapes: {"a\\0": {sphere: 1}}': "NUL",
    "scene: 1\nleft_out: {a: b}": "line 2, left_out: got keys and values",
    "scene: 1\nleft_out: [[a]]": "got 1 names, expected a pair [a, b]",
    "scene: 1\nleft_out: [[a, [b]]]": "got a list of 1",
    "scene: 1\nstill: a": "line 2, still: got 'a', expected a list of texts",
    "scene: 1\nnotes: [[]]": "line 2, notes: got a list of 0",
    "scene: 1\n---\nscene: 1": "line 2: a second document",
    "\tscene: 1": "line 1: not YAML",
    "a: b: c": "line 1: not YAML",
    "scene: \x01": "not YAML",
    b"\xff\xfe\x00": "not UTF-8",
    b"scene: \xe9": "not UTF-8",
    "%YAML 3.0\n--- 1": "line 1",
}


@pytest.mark.parametrize("text", FILES, ids=str)
def test_what_is_wrong_with_a_file(tmp_path, text):
    with pytest.raises(FileError) as told:
        read(tmp_path, text)
    assert FILES[text] in str(told.value)


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    with pytest.raises(FileError) as told:
        read(tmp_path, "scene: 1\nshapes:\n  a: {box: 1}\n  b: {sphere: -1}\n  c: {cone: 1}\n")
    assert [x.partition(",")[0] for x in told.value.problems] == ["line 3", "line 4", "line 5"]


def test_very_much_that_is_wrong_is_cut(tmp_path):
    rows = "".join(f"  a{k}: {{box: 1}}\n" for k in range(900))
    with pytest.raises(FileError) as told:
        read(tmp_path, "scene: 1\nshapes:\n" + rows)
    assert told.value.problems[-1] == "and 850 more"


BOMBS = {
    "aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + k)}: &{chr(98 + k)} [{','.join([f'*{chr(97 + k)}'] * 9)}]\n" for k in range(9)
    ),
    "deep": "[" * 100_000,
    "deep block": "\n".join(" " * k + "- " for k in range(2000)),
    "wide": "scene: 1\nleft_out: [" + "[a, b], " * 50_000 + "]",
    "long name": "scene: 1\nshapes: {" + "x" * 1_000_000 + ": 1}",
    "digits": "scene: " + "9" * 1_000_000,
    "many keys": "scene: 1\n" + "".join(f"k{k}: 1\n" for k in range(5000)),
    "many shapes": "scene: 1\nshapes:\n" + "".join(f"  k{k}: {{sphere: 1}}\n" for k in range(3000)),
    "tags": "!!python/object/apply:os.system ['exit 1']",
    "merge": "scene: 1\nshapes:\n  a:\n    <<: {sphere: 1}\n",
    "own": "a: &a [*a]",
}  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k == "wide")) for k in BOMBS])
def test_hostile_files(tmp_path, kind):
    with counting() as calls:
        try:
            scene = read(tmp_path, BOMBS[kind])
        except FileError as error:
            assert len(str(error)) < 20_000
        else:
            assert kind == "wide"
            assert len(scene.left_out) == 1
    assert calls() < 3_000_000


def test_files_that_are_too_large_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("oc_dyn.scene.yaml_nodes.MAX_BYTES", 100)
    with pytest.raises(FileError, match="larger than"):
        read(tmp_path, "#" * 101)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        od.Scene.read(tmp_path / "none.yaml")
    with pytest.raises(IsADirectoryError):
        od.Scene.read(tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_a_scene_or_one_error(tmp_path, seed):
    rng, text = np.random.default_rng(seed), HAND.encode()
    for _ in range(60):
        at, length = int(rng.integers(len(text))), int(rng.integers(1, 20))
        kind = rng.integers(3)
        piece = [b"", bytes(rng.integers(256, size=3).astype("u1").tolist()), text[at : at + length] * 2][kind]
        try:
            scene = read(tmp_path, text[:at] + piece + text[at + length :])
        except FileError as error:
            assert error.problems
        else:
            assert isinstance(scene.pairs, tuple)


def test_what_is_written_is_plain_yaml(tmp_path):
    everything().write(tmp_path / "a.yaml")
    content = yaml.safe_load((tmp_path / "a.yaml").read_text())
    assert list(content["shapes"]) == [x.name for x in everything().items]
    assert content["shapes"]["ball"] == {"sphere": {"radius": 1 / 3}, "xyz": [0.0, 0.0, 0.0], "margin": 0.01}


# -- joined, and of the package -------------------------------------------------------------------------------------


def test_examples_of_the_page_run(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "scenes.md").read_text(encoding="utf-8")
    code, file = (re.search(f"```{kind}\n(.*?)```", page, re.S)[1] for kind in ("python", "yaml"))
    exec(code, {})
    assert [x.name for x in read(tmp_path, file).items] == ["table", "tool", "cup", "floor"]


def test_scenes_are_joined():
    a = od.Scene().attach("x", "hand", s.Sphere(1)).add("y", s.Sphere(1)).leave_out(("x", "y"))
    b = od.Scene().add("z", s.Sphere(1))
    both = a.join(b)
    assert [x.name for x in both.items] == ["x", "y", "z"]
    assert both.pairs == (("x", "z"),)
    with pytest.raises(ShapeError, match="both scenes have a shape 'x'"):
        a.join(a)
    with pytest.raises(ShapeError, match="expected a Scene"):
        a.join("b")


def test_examples_leave_the_ready_arm_alone():
    robot = od.robots.panda()
    for name in od.scene.examples():
        scene = od.Scene.of(robot).join(od.scene.example(name))
        assert len(scene.items) > 12
        assert not any("link0" in a and scene[b].link is None for a, b in scene.pairs)


def test_examples_that_are_not_there():
    with pytest.raises(UnknownName, match="shelf"):
        od.scene.example("shelve")
