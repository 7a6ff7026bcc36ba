"""od.view shows what files of robots show: visual shapes and meshes where they are, others for missing ones."""

import base64
import json
import re
import struct
import sys

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.digest import digest
from oc_dyn.planning.viewer import looks, surfaces

TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
OUTWARD = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
URDF = """<robot name="arm"><link name="base"><visual><geometry><box size="0.2 0.2 0.1"/></geometry></visual></link>
<link name="tip"><visual><origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/><geometry>
<mesh filename="{file}" scale="0.1 {mirror}0.2 0.3"/></geometry></visual>
<collision><geometry><sphere radius="0.3"/></geometry></collision>
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="tip"/><origin xyz="0 0 1"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="5" velocity="4"/></joint></robot>"""


def stl(points, faces):
    """A binary STL file's bytes."""
    corners = [struct.pack("<12fH", 0, 0, 0, *points[face].ravel(), 0) for face in faces]
    return bytes(80) + struct.pack("<I", len(faces)) + b"".join(corners)


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("trimesh")
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "tip.stl").write_bytes(stl(TETRAHEDRON, OUTWARD))
    return tmp_path


def loaded(folder, file="meshes/tip.stl", mirror=""):
    (folder / "arm.urdf").write_text(URDF.format(file=file, mirror=mirror))
    return od.load(folder / "arm.urdf")


def drawn(view):
    """[(triangles' points (m, 3, 3) in the root frame)] of the parts of the first motion, at its last row."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', view.html, re.DOTALL).group(1))
    (motion, *_), out = data["motions"], []
    poses = np.frombuffer(base64.b64decode(motion["poses"]), "<f4").reshape(-1, motion["slots"], 4, 3)[-1]
    for part in motion["parts"]:
        surface = data["surfaces"][part["surface"]]
        points = np.frombuffer(base64.b64decode(surface["points"]), "<f4").reshape(-1, 3)
        faces = np.frombuffer(base64.b64decode(surface["faces"]), "<u4").reshape(-1, 3)
        pose = poses[part["slot"]]
        out.append((points @ pose[:3] + pose[3])[faces])
    return out


def volume(corners):
    return np.einsum("ki,ki->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6


@pytest.mark.parametrize("mirror", ["", "-"])
def test_a_mesh_is_where_its_link_carries_it(folder, mirror):
    base, tip = drawn(od.view(loaded(folder, mirror=mirror), [np.pi / 2]))
    assert volume(base) == pytest.approx(0.004, rel=1e-5)
    assert volume(tip) == pytest.approx(0.1 * 0.2 * 0.3 / 6, rel=1e-5)  # mirrored ones look outward, too
    side = -0.2 if mirror else 0.2
    wanted = np.array([[0, 0.1, 1], [-0.1, 0.1, 1], [0, 0.1 - side, 1], [0, 0.1, 1.3]])  # two quarter turns about z
    assert np.allclose(sorted(map(tuple, np.unique(tip.reshape(-1, 3).round(5), axis=0))), sorted(map(tuple, wanted)))


def test_collision_shapes_stand_for_what_is_not_there(folder):
    robot = loaded(folder)
    assert [x.mesh for x in robot.visuals] == ["", "meshes/tip.stl"]
    (ball,) = drawn(od.view(robot, show="collision"))
    assert np.allclose(np.linalg.norm(ball - [0, 0, 1], axis=-1), 0.3, atol=1e-6)
    view = od.view(loaded(folder, file="meshes/none.stl"))
    _, ball = sorted(drawn(view), key=len)
    assert np.allclose(np.linalg.norm(ball - [0, 0, 1], axis=-1), 0.3, atol=1e-6)
    (note,) = view.notes
    assert "link 'tip'" in note
    assert "none.stl" in note
    with pytest.raises(od.UnknownName, match="view: show"):
        od.view(robot, show="everything")


def test_packages_are_where_they_are_said_to_be(folder):
    robot = loaded(folder, file="package://arm/tip.stl")
    assert "the package 'arm'" in od.view(robot).notes[0]
    view = od.view(robot, packages={"arm": folder / "meshes"})
    assert view.notes == ()
    assert len(drawn(view)[1]) == 4


def test_robots_made_of_it_look_the_same_and_looks_change_no_result(folder):
    other, robot = loaded(folder, file="meshes/none.stl"), loaded(folder)
    assert digest(robot) == digest(other)
    for new in (robot.locked({"j": 0.1}), robot.with_payload("tip", od.Inertia.zero()), robot.with_gravity([0, 0, 1])):
        assert new.visuals == robot.visuals
        assert od.view(new).notes == ()
    assert od.load(folder / "arm.urdf", root="tip").visuals == robot.visuals


def test_visual_shapes_that_cannot_be_used_change_nothing():
    robot = od.load(URDF.format(file="", mirror=""))
    assert robot.report == od.load(URDF.format(file="a.stl", mirror="")).report
    assert len(robot.visuals) == 1
    assert len(drawn(od.view(robot))) == 2  # the other link's collision shape stands for it


def test_fewer_triangles_are_near_the_surface():
    n = 60
    t, p = np.meshgrid(np.linspace(0, np.pi, n), np.linspace(0, 2 * np.pi, 2 * n), indexing="ij")
    ball = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], -1).reshape(-1, 3)
    k = (np.arange(n - 1)[:, None] * 2 * n + np.arange(2 * n - 1)).ravel()
    faces = np.vstack([np.c_[k, k + 2 * n, k + 2 * n + 1], np.c_[k, k + 2 * n + 1, k + 1]])
    points, fewer = surfaces.simplified(ball, faces, 3000)
    assert 1000 < len(fewer) <= 3000
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 0.02
    assert volume(points[fewer]) == pytest.approx(4 / 3 * np.pi, rel=0.02)
    assert surfaces.simplified(ball, faces, len(faces))[1] is faces


def test_large_meshes_are_made_coarser(folder, monkeypatch):
    monkeypatch.setattr(looks, "_MOST", 14)
    _, tip = drawn(od.view(loaded(folder)))
    assert len(tip) <= 14


MJCF = """<mujoco><compiler meshdir="meshes"/><asset><mesh name="tip" file="tip.stl" scale="0.1 0.2 0.3"/></asset>
<worldbody><body name="a" pos="0 0 1" euler="10 20 30"><joint name="j" axis="0 1 0"/><geom type="box" size="1 1 1"/>
<geom name="seen" type="mesh" mesh="tip" pos="0.1 0.2 0.3" euler="0 45 90" contype="0" conaffinity="0" group="2"/>
<geom type="sphere" size="0.1" group="3"/></body></worldbody></mujoco>"""


def test_meshes_of_mjcf_are_where_mujoco_draws_them(folder):
    mujoco = pytest.importorskip("mujoco")
    (folder / "a.xml").write_text(MJCF)
    robot = od.load(folder / "a.xml")
    assert [x.kind for x in robot.visuals] == ["box", "mesh"]  # not that of group 3
    assert [x.kind for x in robot.collisions] == ["box", "sphere"]
    _, tip = drawn(od.view(robot, [0.7]))
    model = mujoco.MjModel.from_xml_path(str(folder / "a.xml"))
    data = mujoco.MjData(model)
    data.qpos[:] = 0.7
    mujoco.mj_kinematics(model, data)
    k = model.geom("seen").id
    theirs = model.mesh_vert @ data.geom_xmat[k].reshape(3, 3).T + data.geom_xpos[k]
    ours = np.unique(tip.reshape(-1, 3).round(4), axis=0)
    assert np.allclose(sorted(map(tuple, ours)), sorted(map(tuple, np.unique(theirs.round(4), axis=0))), atol=2e-4)


def test_live_views_without_viser_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(od.ModelError, match=r'viser, which is not installed; pip install "oc-dyn\[live\]"'):
        od.view(od.robots.double_pendulum(), live=True)
    with pytest.raises(od.ShapeError, match="a live view writes no file"):
        od.view(od.robots.double_pendulum(), live=True, path="x.html")


@pytest.mark.slow
def test_a_live_view_is_served_and_moves_by_the_script():
    pytest.importorskip("viser")
    from urllib.request import urlopen

    arm = od.robots.double_pendulum()
    t = np.linspace(0, 1, 11)
    q = np.outer(t, [1.0, -0.5])
    with od.view(arm, (t, q), live=True) as shown:
        shown.pause()
        with urlopen(shown.url, timeout=20) as page:
            assert b"<html" in page.read(5000).lower()
        f = od.function(arm, "frame_pose", frame=arm.bodies[-1].name)
        handles = [handle for handle, _ in shown._moving[0]]
        for time, row in ((0.5, q[5]), (1.0, q[10]), (7.0, q[10])):
            shown.seek(time)
            tip = f(q=row)["p"].full().ravel()
            assert min(np.abs(np.array(x.position) - tip).max() for x in handles) < 1e-6
        assert shown.time == 1.0
        shown.play(speed=2.0)
        assert shown.playing
    assert "stopped" in repr(shown)
    shown.wait()  # returns
    with pytest.raises(OSError, match="refused"):
        urlopen(shown.url, timeout=5)
