"""od.Scene.of: shapes, names and pairs of robots."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import FileError, ModelError, ShapeError, UnknownName
from oc_dyn.scene.link_poses import link_poses
from oc_dyn.scene.sampling import configurations


def chain(*links, fixed=(), shape=("sphere", 0.1), xyz=(0.0, 0.0, 1.0)):
    """Links one above the other, 1 m apart, on revolute joints about x, or fixed ones."""
    b = od.RobotBuilder("chain")
    for k, link in enumerate(links):
        if k == 0:
            b.add_link(link)
        elif link in fixed:
            b.add_body(link, "fixed", links[k - 1], xyz=xyz)
        else:
            b.add_body(link, "revolute", links[k - 1], xyz=xyz, axis=(1, 0, 0), mass=1, inertia=np.eye(3))
        b.add_collision(link, shape)
    return b


def pairs(scene):
    return set(map(frozenset, scene.pairs))


def test_shapes_and_poses():
    b = chain("a", "b")
    b.add_collision("b", ("box", 1, 2, 3), xyz=(1, 2, 3))
    b.add_collision("b", ("ellipsoid", 1, 2, 3))
    b.add_collision("b", ("cylinder", 1, 2))
    b.add_collision("b", ("capsule", 1, 2))
    scene = od.Scene.of(b.build())
    s = od.shapes
    assert [x.shape for x in scene.items] == [
        s.Sphere(0.1), s.Sphere(0.1), s.Box(1, 2, 3), s.Ellipsoid(1, 2, 3), s.Cylinder(1, 2), s.Capsule(1, 2),
    ]  # fmt: skip
    assert np.array_equal(scene["b_1"].matrix[:3, 3], [1, 2, 3])
    assert scene["b_1"].link == "b"


def test_names():
    b = chain("a", "a_1", "c")
    for name in ("", "", "tool", "tool", "c", "a"):
        b.add_collision("a", ("sphere", 0.1), name=name)
    names = [x.name for x in od.Scene.of(b.build()).items]
    assert names == ["a", "a_1", "c", "a_2", "a_3", "tool", "tool_1", "c_1", "a_4"]


@pytest.mark.slow
def test_many_names_take_linear_time():
    b = chain("a")
    for _ in range(1500):
        b.add_collision("a", ("sphere", 0.1), name="x")
    assert od.Scene.of(b.build()).items[-1].name == "x_1499"


def test_adjacent_links_do_not_count():
    assert pairs(od.Scene.of(chain("a", "b", "c", "d").build())) == {frozenset(x) for x in ("ac", "ad", "bd")}


def test_fixed_joints_are_no_distance():
    scene = od.Scene.of(chain("a", "b", "c", "d", "e", fixed="bd").build())  # ab - cd - e
    assert pairs(scene) == {frozenset(x) for x in ("ae", "be")}
    assert "7 pairs do not count, adjacent links" not in scene.notes[0]
    assert "8 pairs do not count, adjacent links" in scene.notes[0]


def test_a_held_joint_does_not_make_links_adjacent():
    robot = chain("a", "b", "c", "d", "e").build()
    free, held = od.Scene.of(robot), od.Scene.of(robot.locked({"c_joint": 0.3}))
    assert pairs(free) - pairs(held) == set()
    both = od.Scene.of(robot.locked({"c_joint": 0.3, "d_joint": 0.1}))  # b, c and d do not move to each other
    assert pairs(free) - pairs(both) == {frozenset("bd")}


def test_floating_and_fixed_bases_have_the_same_pairs():
    b = chain("a", "b", "c")
    assert od.Scene.of(b.build()).pairs == od.Scene.of(b.build(floating_base=True)).pairs


def test_what_always_touches_does_not_count():
    b = chain("a", "b", "c", "d", xyz=(0, 0, 0.01))
    scene = od.Scene.of(b.build())
    assert scene.pairs == ()
    assert (
        "links that touch at all of 300 configurations within the limits (seed 0): a - c, a - d, b - d"
        in scene.notes[1]
    )
    assert len(od.Scene.of(b.build(), samples=0).pairs) == 3


def test_limits_decide_what_always_touches():
    b = od.RobotBuilder("r")
    b.add_link("a")
    b.add_body("b", "revolute", "a", axis=(1, 0, 0), mass=1, inertia=np.eye(3))
    b.add_body("c", "prismatic", "b", axis=(0, 0, 1), lower=0.0, upper=0.15, mass=1)
    for link in "ac":
        b.add_collision(link, ("sphere", 0.1))
    assert od.Scene.of(b.build()).pairs == ()
    b._joints["c_joint"] = od.model.robot.replace(b._joints["c_joint"], upper=0.25)
    assert od.Scene.of(b.build()).pairs == (("a", "c"),)


@pytest.mark.slow
def test_pairs_do_not_depend_on_the_seed_where_they_are_clear():
    robot = od.robots.humanoid()
    assert od.Scene.of(robot, seed=1).pairs == od.Scene.of(robot, seed=2).pairs


def test_links_on_the_ground_and_what_stands_there():
    scene = od.Scene.of(chain("a", "b").build())
    table = od.shapes.Box(1, 1, 1)
    assert scene.add("table", table).pairs == (("b", "table"),)
    assert set(scene.add("table", table, od.scene.PORT).pairs) == {("a", "table"), ("b", "table")}
    floating = od.Scene.of(chain("a", "b").build(floating_base=True))
    assert len(floating.add("table", table).pairs) == 2
    assert scene != floating


def test_a_robot_without_shapes():
    scene = od.Scene.of(od.robots.double_pendulum())
    assert len(scene) == 0
    assert "has no collision shapes" in scene.notes[0]


def test_what_the_reader_left_out_is_noted():
    shape = '<collision><geometry><sphere radius="-1"/></geometry></collision>'
    xml = f'<robot name="r"><link name="a">{shape}</link></robot>'
    with pytest.warns(od.ModelWarning):
        robot = od.load_urdf(xml)
    assert "line 1: link 'a', <collision>" in od.Scene.of(robot).notes[0]


@pytest.mark.parametrize(
    "arguments, error",
    [({"meshes": "hul"}, UnknownName), ({"samples": -1}, ShapeError), ({"seed": "x"}, ShapeError),
     ({"srdf": 5}, ShapeError), ({"packages": 5}, ShapeError), ({"packages": {"a": 5}}, ShapeError)],
)  # fmt: skip
def test_wrong_arguments(arguments, error):
    with pytest.raises(error):
        od.Scene.of(chain("a", "b").build(), **arguments)


def test_what_is_no_robot():
    with pytest.raises(ModelError, match=r"Scene\.of"):
        od.Scene.of(od.Scene())


# -- poses for sampling ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["panda", "quadruped", "humanoid", "aerial_manipulator"])
def test_poses_are_those_of_the_frames(name):
    robot = od.robots.by_name(name)
    q = configurations(robot, 3, 0)
    links = list(robot.frames)[-3:]
    poses = link_poses(robot, links, q)
    for link in links:
        f = od.function(robot, "frame_pose", frame=link)
        for k in range(3):
            assert np.allclose(poses[link][k], np.array(f(q=q[:, k])["C"]), atol=1e-12)


# -- semantic descriptions -------------------------------------------------------------------------------------------


def test_pairs_of_an_srdf(tmp_path):
    robot = chain("a", "b", "c", "d").build()
    path = tmp_path / "r.srdf"
    path.write_text(
        '<robot name="r"><group name="g"/><disable_collisions link1="d" link2="a" reason="Never"/>\n'
        '<disable_collisions link1="hand" link2="a"/></robot>'
    )
    scene = od.Scene.of(robot, srdf=path)
    assert pairs(scene) == {frozenset("ac"), frozenset("bd")}
    assert "1 pairs do not count, left out by the srdf: a - d" in scene.notes[2]
    assert "'hand' (line 2)" in scene.notes[1]
    assert od.Scene.of(robot, srdf=path.read_text()).pairs == scene.pairs
    assert od.Scene.of(robot, srdf=path.read_bytes()).pairs == scene.pairs


def test_links_that_an_srdf_disables_by_default():
    robot = chain("a", "b", "c", "d").build()
    text = '<robot><disable_default_collisions link="a"/><enable_collisions link1="c" link2="a"/></robot>'
    assert pairs(od.Scene.of(robot, srdf=text)) == {frozenset("ac"), frozenset("bd")}


@pytest.mark.parametrize(
    "text, words",
    [
        ('<robot>\n<disable_collisions link1="a"/></robot>', "line 2: <disable_collisions> has no link2"),
        ("<sdf/>", "a <sdf>, expected the <robot>"),
        ("<robot>", "not well-formed"),
        ("<", "not well-formed"),
        ('<!DOCTYPE r [<!ENTITY x "y">]><robot/>', "entities"),
        (b"\x00", "SRDF text"),
        ("", "is empty; a SRDF file"),
    ],
)
def test_wrong_srdf(text, words):
    with pytest.raises(FileError, match=words):
        od.Scene.of(chain("a", "b").build(), srdf=text)


def test_an_srdf_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        od.Scene.of(chain("a", "b").build(), srdf=tmp_path / "none.srdf")
