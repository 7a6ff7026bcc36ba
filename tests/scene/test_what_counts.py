"""Which pairs of a scene count: what is attached to a robot's links, and names of pairs that are left out."""

import re
from pathlib import Path

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import plan_options, shapes
from oc_dyn.errors import FileError, UnknownName

ACROSS = np.array([[0, 0, 1.0, -0.15], [0, 1, 0, 0], [-1, 0, 0, 0.05], [0, 0, 0, 1]])  # z to x


@pytest.fixture(scope="module")
def panda():
    return od.robots.panda()


@pytest.fixture(scope="module")
def arm(panda):
    return od.Scene.of(panda)


def against(scene, name):
    return {a if b == name else b for a, b in scene.pairs if name in (a, b)}


def test_a_tool_counts_against_links_whose_own_shapes_may_touch(panda, arm):
    """A long tool across the last link goes through link 5 when joint 7 turns."""
    scene = arm.attach("tool", "panda_link7", shapes.Capsule(0.03, 0.3), ACROSS)
    links = {x.link for x in arm.items}
    assert {scene[x].link for x in against(scene, "tool")} == links - {"panda_link6", "panda_link7"} - {
        x for x in links if panda.frame(x).body == panda.frame("panda_link7").body
    }
    assert "panda_link5" in {scene[x].link for x in against(scene, "tool")}
    assert [x for x in scene.pairs if "tool" not in x] == list(arm.pairs)


@pytest.mark.slow
def test_a_motion_that_takes_a_tool_through_a_link_is_not_certified(panda, arm):
    scene = arm.attach("tool", "panda_link7", shapes.Capsule(0.03, 0.3), ACROSS)
    q = np.array([0, -0.4, 0, -2.2, 0, 1.9, 0.0])
    start, goal = q.copy(), q.copy()
    start[6], goal[6] = -2.7, 2.7
    motion = od.plan_point_to_point(panda, start, goal, progress=False, continuity=2, nodes=16, check="off")
    found = motion.clearance(scene)
    worst = min(x.met for x in found.pairs if "tool" in x.pair)
    assert worst < -0.02
    assert any(x.hit and set(x.pair) == {"tool", scene_name(scene, "panda_link5")} for x in found.pairs)


def scene_name(scene, link):
    return next(x.name for x in scene.items if x.link == link)


def test_links_fixed_to_each_other_are_one_for_what_is_attached(panda, arm):
    scene = arm.attach("tool", "panda_link8", shapes.Capsule(0.03, 0.1))
    assert not {"panda_link7", "panda_link6"} & {scene[x].link for x in against(scene, "tool")}
    moved = arm.add("tool", shapes.Sphere(0.03)).attached("tool", "panda_link8")
    assert against(moved, "tool") == against(scene, "tool")
    joined = od.Scene().attach("tool", "panda_link8", shapes.Sphere(0.03)).join(arm)
    assert against(joined, "tool") == against(scene, "tool")


def test_what_is_fixed_to_the_root_stands_still():
    b = od.RobotBuilder("r")
    b.add_link("base")
    b.add_body("plate", "fixed", "base", xyz=(0, 0, 0.1))
    b.add_body("a", "revolute", "base", xyz=(0, 0, 1), axis=(1, 0, 0), mass=1, inertia=np.eye(3))
    b.add_body("b", "revolute", "a", xyz=(0, 0, 1), axis=(1, 0, 0), mass=1, inertia=np.eye(3))
    for link in ("a", "b"):
        b.add_collision(link, ("sphere", 0.1))
    scene = od.Scene.of(b.build()).attach("box", "plate", shapes.Box(1, 1, 0.1)).add("ball", shapes.Sphere(0.1))
    assert against(scene, "box") == {"b"}


def test_a_shape_that_moves_to_another_link_counts_again():
    b = od.RobotBuilder("chain")
    b.add_link("a")
    for link, parent in (("b", "a"), ("c", "b"), ("d", "c")):
        b.add_body(link, "revolute", parent, xyz=(0, 0, 0.01), axis=(1, 0, 0), mass=1, inertia=np.eye(3))
    for link in "abcd":
        b.add_collision(link, ("sphere", 0.1))
    scene = od.Scene.of(b.build())
    assert scene.pairs == ()
    assert against(scene.attached("d", "d"), "d") == {"a", "b"}
    assert against(scene.without("d").attach("d", "d", shapes.Sphere(0.1)), "d") == {"a", "b"}


def test_a_scene_of_a_robot_is_read_as_it_was_written(arm, tmp_path):
    arm.write(tmp_path / "arm.yaml")
    read = od.Scene.read(tmp_path / "arm.yaml")
    assert read == arm
    assert read.pairs == arm.pairs
    assert read != od.Scene(arm.items, arm.left_out, still=arm.still)


def written(tmp_path, text):
    file = tmp_path / "scene.yaml"
    file.write_text(text)
    return file


_TOOL = "scene: 1\nshapes:\n  tool: {sphere: 0.05, link: panda_link8}\nleft_out: [[tool, NAME]]\n"


@pytest.mark.parametrize("name", ["tool", "panda_link8", "panda_link4"])
def test_names_that_are_left_out_may_be_those_of_the_robot(tmp_path, arm, name):
    arm.join(od.Scene.read(written(tmp_path, _TOOL.replace("NAME", name))))


def test_a_misspelt_name_that_is_left_out_is_refused(tmp_path, arm, panda):
    file = written(tmp_path, _TOOL.replace("NAME", "panda_lnik4"))
    scene = od.Scene.read(file)
    for meets in (
        lambda: arm.join(scene),
        lambda: plan_options.scene_of(panda, file, None),
        lambda: od.inverse_kinematics(
            panda, "panda_link8", p=[0.4, 0, 0.5], q_start=np.zeros(7), scene=scene.add("b", shapes.Sphere(0.1))
        ),
    ):
        with pytest.raises(UnknownName, match="panda_lnik4"):
            meets()
    with pytest.raises(FileError, match="no shape 'panda_link4' in the file"):
        od.Scene.read(written(tmp_path, _TOOL.replace("left_out", "touching").replace("NAME", "panda_link4")))


@pytest.mark.parametrize("text, told", [
    ("scene: 1\nshapes:\n  !!python/object:os.system a: {sphere: 1}", "python/object:os.system"),
    ("scene: 1\n!!python/name:os.system shapes: {}", "python/name:os.system"),
    ("scene: 1\nshapes: !!python/tuple [a]", "python/tuple"),
    ("scene: 1\nshapes:\n  a: !!python/object:os.system {sphere: 1}", "python/object:os.system"),
    ("scene: 1\nshapes:\n  a: {sphere: 1, matrix: [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1],[9,9,9,9]]}", "got 5 rows"),
])  # fmt: skip
def test_files_with_more_than_they_may_hold(tmp_path, text, told):
    with pytest.raises(FileError, match=told):
        od.Scene.read(written(tmp_path, text))


@pytest.mark.slow
def test_the_example_of_the_documentation_can_be_planned_in(tmp_path, arm, panda):
    text = (Path(__file__).parents[2] / "docs" / "scenes.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    scene = arm.join(od.Scene.read(written(tmp_path, example)))
    start, goal = [-0.9, -0.3, 0, -1.8, 0, 1.6, 0.7], [0.9, -0.3, 0, -1.8, 0, 1.6, 0.7]
    motion = od.plan_point_to_point(
        panda, start, goal, scene=scene, continuity=2, nodes=16, progress=False, check="off", clearance=0.01
    )
    assert motion.check(scene=scene, clearance=0.01).clearance.free
