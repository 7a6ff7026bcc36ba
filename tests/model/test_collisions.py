"""Collision shapes of descriptions: what is read, kept by everything made of a robot, and never a reason to refuse."""

import pickle
import warnings

import numpy as np
import pytest
from urdf_files import quiet

import oc_dyn as od
from oc_dyn.digest import digest
from oc_dyn.elastic.real import rebuilt
from oc_dyn.errors import ModelError, ModelWarning, ShapeError, UnknownName
from oc_dyn.model.collision import capsule_between

BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def text(shapes, name="arm"):
    return f"""<robot name="r"><link name="base"/><link name="{name}">{BODY}{shapes}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="{name}"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def shape(inside, origin="", name=""):
    return f"<collision{name}>{origin}<geometry>{inside}</geometry></collision>"


@pytest.mark.parametrize(
    "inside, kind, sizes, mesh",
    [
        ('<sphere radius="0.2"/>', "sphere", (0.2,), ""),
        ('<box size="1 2 3"/>', "box", (1.0, 2.0, 3.0), ""),
        ('<cylinder radius="0.1" length="2"/>', "cylinder", (0.1, 2.0), ""),
        ('<capsule length="2" radius="0"/>', "capsule", (0.0, 2.0), ""),
        ('<mesh filename=" package://p/x.stl "/>', "mesh", (1.0, 1.0, 1.0), "package://p/x.stl"),
        ('<mesh filename="x.dae" scale="1 -1 0.001"/>', "mesh", (1.0, -1.0, 0.001), "x.dae"),
    ],
)
def test_every_kind(inside, kind, sizes, mesh):
    (found,) = quiet(text(shape(inside, name=' name="c"'))).collisions
    assert (found.name, found.link, found.kind, found.sizes, found.mesh) == ("c", "arm", kind, sizes, mesh)
    assert np.array_equal(found.matrix, np.eye(4))


def test_poses_in_the_frame_of_the_link():
    origin = '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>'
    (found,) = quiet(text(shape('<sphere radius="1"/>', origin))).collisions
    assert np.allclose(found.matrix, [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]], atol=1e-15)


def test_order_and_names():
    robot = quiet(text(shape('<sphere radius="1"/>') + shape('<sphere radius="2"/>', name=' name="b"')))
    assert [(x.name, x.sizes) for x in robot.collisions] == [("", (1.0,)), ("b", (2.0,))]


BAD = {
    "negative": ('<sphere radius="-1"/>', "negative"),
    "nan": ('<cylinder radius="nan" length="1"/>', "not a finite number"),
    "huge": ('<box size="1 1e40 1"/>', "too large"),
    "two numbers": ('<box size="1 2"/>', "expected 3 numbers"),
    "words": ('<sphere radius="big"/>', "not a number"),
    "xacro": ('<sphere radius="${r}"/>', "xacro"),
    "missing": ("<sphere/>", "has no radius"),
    "unknown": ('<cone radius="1"/>', "no shape <cone>"),
    "no file": ("<mesh/>", "no filename"),
    "long file": (f'<mesh filename="{"x" * 5000}"/>', "longer than"),
    "scale": ('<mesh filename="a.stl" scale="1"/>', "expected 3 numbers"),
    "two shapes": ('<sphere radius="1"/><sphere radius="2"/>', "2 shapes"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("strict", [False, True])
def test_what_cannot_be_used_is_left_out_and_told(case, strict):
    inside, words = BAD[case]
    good = shape('<sphere radius="1"/>')
    with pytest.warns(ModelWarning, match="this collision shape is left out") as told:
        robot = od.load_urdf(text("\n" + shape(inside) + good), strict=strict)
    assert [x.sizes for x in robot.collisions] == [(1.0,)]
    assert words in robot.report[0]
    assert robot.report[0].startswith("line 2: link 'arm', <collision>")
    assert len(told) == 1


def test_a_wrong_origin():
    with pytest.warns(ModelWarning, match="xyz"):
        assert od.load_urdf(text(shape('<sphere radius="1"/>', '<origin xyz="0 a 0"/>'))).collisions == ()


def test_a_misspelt_origin():
    with pytest.warns(ModelWarning, match="did you mean rpy"):
        found = od.load_urdf(text(shape('<sphere radius="1"/>', '<origin rpyy="0 0 0"/>')), strict=True).collisions
    assert len(found) == 1


def test_many_that_are_wrong_are_one_warning():
    with pytest.warns(ModelWarning, match="and 47 more") as told:
        robot = od.load_urdf(text(shape('<sphere radius="-1"/>') * 50))
    assert (len(told), len(robot.report)) == (1, 50)


def test_what_is_no_shape_is_silent():
    assert quiet(text('<collision/><collision><geometry/></collision><collision name="x"/>')).report == ()


def test_no_file_is_opened(tmp_path):
    robot = quiet(text(shape(f'<mesh filename="file://{tmp_path}/none.stl"/>')))
    assert robot.collisions[0].mesh.endswith("none.stl")


def test_they_are_bounded(monkeypatch):
    monkeypatch.setattr("oc_dyn.model.xml_collisions.MAX_PARTS", 3)
    with pytest.warns(ModelWarning, match="more than 3 collision shapes"):
        assert len(od.load_urdf(text(shape('<sphere radius="1"/>') * 9)).collisions) == 3


# -- what is made of a robot -----------------------------------------------------------------------------------------


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(text(shape('<sphere radius="1"/>') + shape('<mesh filename="a.stl"/>', name=' name="m"')))
    return od.load_urdf(path)


VARIANTS = {
    "locked": lambda r: r.locked({"j": 0.1}),
    "payload": lambda r: r.with_payload("arm", od.Inertia.from_com(1.0)),
    "no payload": lambda r: r.with_payload("arm", od.Inertia.from_com(1.0)).without_payload(),
    "frame": lambda r: r.with_frame("tip", "arm"),
    "gravity": lambda r: r.with_gravity((0, 0, 0)),
    "angles": lambda r: r.with_snapped_angles(),
    "pickle": lambda r: pickle.loads(pickle.dumps(r)),
    "armature": lambda r: rebuilt(r, armature={"j": 0.3}),
    "masses": lambda r: rebuilt(r, mass_of={"arm": 2.0}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_made_of_a_robot_keeps_them(robot, variant, tmp_path):
    new = VARIANTS[variant](robot)
    assert new.collisions == robot.collisions
    assert len(new.collisions) == 2
    assert new.folder == str(tmp_path)


def test_floating_and_held_when_read(robot, tmp_path):
    path = tmp_path / "r.urdf"
    assert od.load_urdf(path, floating_base=True).collisions == robot.collisions
    assert od.load_urdf(path, lock={"j": 0.3}).collisions == robot.collisions


def test_pairs_that_may_touch_are_kept():
    robot = od.robots.panda()
    assert robot.may_touch == (("panda_link5", "panda_link7"),)
    assert robot.locked({"panda_joint1": 0.0}).may_touch == robot.may_touch
    assert rebuilt(robot, armature={"panda_joint1": 0.3}).may_touch == robot.may_touch


def test_robots_that_were_pickled_before(robot):
    state = {k: x for k, x in robot.__getstate__().items() if k not in ("collisions", "may_touch", "folder")}
    old = od.Robot.__new__(od.Robot)
    old.__setstate__(state)
    assert (old.collisions, old.may_touch, old.folder) == ((), (), None)
    assert old.locked({"j": 0.1}).nq == 0


def test_digests_tell_shapes_apart_but_not_folders(robot, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "r.urdf").write_text((tmp_path / "r.urdf").read_text())
    assert digest(od.load_urdf(other / "r.urdf")) == digest(robot)
    (other / "r.urdf").write_text((tmp_path / "r.urdf").read_text().replace('radius="1"', 'radius="2"'))
    assert digest(od.load_urdf(other / "r.urdf")) != digest(robot)


# -- robots in code --------------------------------------------------------------------------------------------------


def builder():
    b = od.RobotBuilder("b")
    b.add_link("base")
    b.add_body("arm", "revolute", "base", mass=1.0, inertia=np.eye(3))
    return b


def test_the_builder_takes_shapes_and_plain_kinds():
    b = builder()
    b.add_collision("arm", od.shapes.Capsule(0.1, 0.5), name="c")
    b.add_collision("arm", ("box", 1, 2, 3), xyz=(1, 0, 0), rpy=(0, 0, np.pi / 2))
    b.add_collision("base", ("mesh", "a.stl"))
    b.add_collision("base", ("mesh", "a.stl", 1, 2, 3))
    b.add_collision("arm", od.shapes.Ellipsoid(1, 2, 3))
    found = b.build().collisions
    assert [(x.kind, x.sizes) for x in found] == [
        ("capsule", (0.1, 0.5)), ("box", (1.0, 2.0, 3.0)), ("mesh", (1.0, 1.0, 1.0)), ("mesh", (1.0, 2.0, 3.0)),
        ("ellipsoid", (1.0, 2.0, 3.0)),
    ]  # fmt: skip
    assert np.allclose(found[1].matrix[:3, 3], [1, 0, 0])
    assert np.allclose(found[1].matrix[:3, 0], [0, 1, 0])
    assert found[3].mesh == "a.stl"


def test_a_capsule_between_two_points():
    b = builder()
    b.add_collision("arm", **capsule_between((1, 2, 3), (1, 0, 3), 0.1))
    (x,) = b.build().collisions
    assert x.sizes == (0.1, 2.0)
    ends = [x.matrix[:3, 3] + s * x.matrix[:3, 2] for s in (-1, 1)]
    assert np.allclose(ends, [(1, 2, 3), (1, 0, 3)], atol=1e-15)


@pytest.mark.parametrize(
    "shape",
    [None, (), "sphere", ("sphere",), ("sphere", -1), ("sphere", np.nan), ("cone", 1), ("mesh",), ("mesh", 1),
     ("mesh", "", 1, 1, 1), ("box", 1, 2), ("sphere", "a"), od.shapes.HalfSpace((0, 0, 1)), od.shapes.Sphere, 5,
     od.shapes.Polytope(((0, 0, 0),)), (["sphere"], 1), ("sphere", None)],
)  # fmt: skip
def test_what_the_builder_refuses(shape):
    with pytest.raises(ShapeError, match="link 'arm': collision shape"):
        builder().add_collision("arm", shape)


def test_links_that_are_not_there():
    b = builder()
    b.add_collision("amr", ("sphere", 1))
    with pytest.raises(UnknownName, match="'arm'"):
        b.build()
    b = builder()
    b.let_touch("arm", "bse")
    with pytest.raises(UnknownName, match="'base'"):
        b.build()
    with pytest.raises(ModelError, match="expected its name"):
        builder().add_collision(None, ("sphere", 1))


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["panda", "fr3", "quadruped", "humanoid"])
def test_dynamics_do_not_know_of_them(name):
    robot = od.robots.by_name(name)
    links, joints, floating, _ = robot.description
    bare = od.model.robot.assemble(robot.name, links, joints, gravity=robot.gravity, floating_base=floating)
    assert robot.collisions
    assert bare.collisions == ()
    q = robot.random_configuration(0)
    v, dv = np.random.default_rng(0).normal(size=(2, robot.nv))
    one, two = (np.array(od.function(r, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"]) for r in (robot, bare))
    assert np.array_equal(one, two)


def test_reading_is_quiet_where_shapes_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        od.load_urdf(text(shape('<sphere radius="1"/>')), strict=True)
