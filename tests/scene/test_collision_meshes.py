"""Meshes of collision shapes: hulls and capsules contain them, files are found and not trusted."""

import sys

import numpy as np
import pytest
from urdf_files import example_robots

import oc_dyn as od
from oc_dyn.errors import ModelError
from oc_dyn.scene.meshes import found_path

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("scipy")
from scipy.optimize import linprog  # noqa: E402

from oc_dyn.scene.fitting import capsule_around, excess_of, hull_around  # noqa: E402


def clouds():
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(400, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    angle = np.linspace(0, 2 * np.pi, 101)[:-1]
    ring = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    return {
        "ball": 0.1 * ball,
        "egg": ball * [0.01, 0.1, 0.5] + [3, 2, 1],
        "tube": np.vstack([ring * [0.1, 0.1, 0], ring * [0.1, 0.1, 0] + [0, 0, 1]]),
        "cube": np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float),
        "uneven": rng.normal(size=(300, 3)) ** 3,
        "far": 1e-3 * ball + 100,
        "disc": ring,
        "line": np.outer(np.arange(60.0), [1, 2, 3]),
        "point": np.ones((3, 3)),
        "plate": np.vstack([ring, ring + [0, 0, 1e-6]]),
    }


CLOUDS = clouds()


def inside(points, corners):
    """Whether points are in the hull of corners, to 1e-9 of its size: by a linear program, not by the hull's faces."""
    size = float(np.ptp(corners, axis=0).max()) or 1.0
    for p in points:
        A = np.vstack([corners.T, np.ones(len(corners))])
        found = linprog(np.zeros(len(corners)), A_eq=A, b_eq=np.append(p, 1.0), bounds=(0, None))
        if found.status != 0:
            middle = corners.mean(axis=0)
            shrunk = middle + (p - middle) * (1 - 1e-7 * size / max(np.linalg.norm(p - middle), 1e-300))
            found = linprog(np.zeros(len(corners)), A_eq=A, b_eq=np.append(shrunk, 1.0), bounds=(0, None))
        if found.status != 0:
            return False
    return True


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("most", [8, 32])
def test_hulls_contain_all_points(name, most):
    points = CLOUDS[name]
    corners, excess = hull_around(points, most)
    assert len(corners) <= max(most, 8)
    assert inside(points[:: max(1, len(points) // 40)], corners)
    n = np.random.default_rng(1).normal(size=(500, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    sticks_out = (n @ corners.T).max(axis=1) - (n @ points.T).max(axis=1)
    scale = float(np.ptp(points, axis=0).max()) or 1.0
    assert sticks_out.min() >= -1e-9 * scale - 1e-13 * np.abs(points).max()
    assert sticks_out.max() <= excess + 1e-9 * scale + 1e-13 * np.abs(points).max()


def test_hulls_of_few_points_are_themselves():
    corners, excess = hull_around(np.vstack([CLOUDS["cube"], [[0.5, 0.5, 0.5]]]), 8)
    assert sorted(corners.tolist()) == sorted(CLOUDS["cube"].tolist())
    assert excess == 0.0


def test_more_corners_stick_out_less():
    excess = [hull_around(CLOUDS["ball"], most)[1] for most in (8, 16, 32, 64)]
    assert excess == sorted(excess, reverse=True)
    assert excess[2] < 0.02  # of a ball of 0.1 m


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CLOUDS)
def test_capsules_contain_all_points(name):
    points = CLOUDS[name]
    radius, length, T = capsule_around(points)
    assert np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-12)
    local = (points - T[:3, 3]) @ T[:3, :3]
    local[:, 2] -= np.clip(local[:, 2], -length / 2, length / 2)
    assert np.linalg.norm(local, axis=1).max() <= radius


@pytest.mark.slow
def test_the_capsule_of_a_capsule_is_found():
    rng = np.random.default_rng(0)
    n = rng.normal(size=(700, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    points = 0.05 * n + np.sign(n[:, 2:]) * [0, 0, 0.2]
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    radius, length, T = capsule_around(points @ Q.T + [1, 2, 3])
    assert radius == pytest.approx(0.05, abs=2e-3)
    assert length == pytest.approx(0.4, abs=6e-3)
    assert excess_of(radius, length, T, points @ Q.T + [1, 2, 3]) < 8e-3


# -- files ------------------------------------------------------------------------------------------------------------


def write_mesh(path, points=None):
    """Its points, as the file has them."""
    hull = trimesh.convex.convex_hull(CLOUDS["egg"] if points is None else points)
    path.parent.mkdir(parents=True, exist_ok=True)
    hull.export(path)
    return np.array(trimesh.load(path).vertices)


def robot(folder, filename, scale=None):
    scale = f' scale="{scale}"' if scale else ""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "r.urdf").write_text(
        '<robot name="r"><link name="a"><collision name="m"><origin xyz="1 0 0"/><geometry>'
        f'<mesh filename="{filename}"{scale}/></geometry></collision></link></robot>'
    )
    return od.load_urdf(folder / "r.urdf")


@pytest.mark.sample(1)
@pytest.mark.parametrize("ending", ["stl", "obj", "ply", "off"])
def test_meshes_of_all_formats(tmp_path, ending):
    points = write_mesh(tmp_path / f"m.{ending}")
    scene = od.Scene.of(robot(tmp_path, f"m.{ending}"))
    corners = scene["m"].shape.points
    assert 20 < len(corners) <= 32
    assert scene["m"].matrix[:3, 3].tolist() == [1, 0, 0]
    assert inside(points[::20], corners)
    assert "vertices contains the mesh and sticks out" in scene.notes[0]


def test_scales_mirror_and_shrink(tmp_path):
    write_mesh(tmp_path / "m.stl", CLOUDS["cube"])
    corners = od.Scene.of(robot(tmp_path, "m.stl", "1 -2 0.001"))["m"].shape.points
    assert corners.min(axis=0) == pytest.approx([0, -2, 0])
    assert corners.max(axis=0) == pytest.approx([1, 0, 0.001])


@pytest.mark.slow
def test_meshes_as_capsules(tmp_path):
    points = write_mesh(tmp_path / "m.stl")
    scene = od.Scene.of(robot(tmp_path, "m.stl"), meshes="capsule")
    capsule, T = scene["m"].shape, np.linalg.inv(np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    T = T @ scene["m"].matrix
    local = (points - T[:3, 3]) @ T[:3, :3]
    local[:, 2] -= np.clip(local[:, 2], -capsule.length / 2, capsule.length / 2)
    assert np.linalg.norm(local, axis=1).max() <= capsule.radius
    assert "m: a capsule of radius" in scene.notes[0]
    assert "sticks out of its convex hull by" in scene.notes[0]


def test_meshes_left_out(tmp_path):
    scene = od.Scene.of(robot(tmp_path, "none.stl"), meshes="omit")
    assert len(scene) == 0
    assert scene.notes[0] == "m: the mesh 'none.stl' is left out"


@pytest.mark.slow
def test_packages_are_found(tmp_path, monkeypatch):
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    write_mesh(tmp_path / "pkg" / "meshes" / "m.stl")
    within = robot(tmp_path / "pkg" / "urdf", "package://pkg/meshes/m.stl")
    beside = robot(tmp_path / "other" / "urdf", "package://pkg/meshes/m.stl")
    assert len(od.Scene.of(within)) == len(od.Scene.of(beside)) == 1
    assert len(od.Scene.of(robot(tmp_path / "pkg" / "urdf", "../meshes/m.stl"))) == 1
    assert len(od.Scene.of(robot(tmp_path / "x", f"file://{tmp_path}/pkg/meshes/m.stl"))) == 1
    far = robot(tmp_path / "far", "package://named/meshes/m.stl")
    with pytest.raises(ModelError, match="package 'named', or the file in it, is not found"):
        od.Scene.of(far)
    assert len(od.Scene.of(far, packages={"named": tmp_path / "pkg"})) == 1
    (tmp_path / "src").mkdir()
    (tmp_path / "pkg").rename(tmp_path / "src" / "named")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "src"))
    assert len(od.Scene.of(far)) == 1


@pytest.mark.parametrize(
    "address, words",
    [
        ("package://pkg/../../etc/passwd", "names no file within a package"),
        ("package://pkg//etc/passwd", "names no file within a package"),
        ("package://../x.stl", "names no file within a package"),
        ("package://pkg", "names no file within a package"),
        ("package:///x.stl", "names no file within a package"),
        ("http://example.org/x.stl", "only files are read"),
        ("ftp://x.stl", "only files are read"),
    ],
)
def test_addresses_that_lead_elsewhere(address, words):
    with pytest.raises(ModelError, match=words):
        found_path(address, "/tmp", {"pkg": "/tmp"})


def test_a_relative_path_without_a_file():
    shape = '<collision><geometry><mesh filename="m.stl"/></geometry></collision>'
    text = f'<robot name="r"><link name="a">{shape}</link></robot>'
    with pytest.raises(ModelError, match="that was not read from a file"):
        od.Scene.of(od.load_urdf(text))


BAD = {
    "empty": b"",
    "words": b"solid x\nfacet\nvertex a b c\n",
    "cut": b"\0" * 80 + (1000).to_bytes(4, "little") + b"\0" * 50,
    "counts": b"\0" * 80 + (2**32 - 1).to_bytes(4, "little") + b"\0" * 500,
    "noise": bytes(range(256)) * 40,
    "nan": b"\0" * 80 + (1).to_bytes(4, "little") + np.full(12, np.nan, "f4").tobytes() + b"\0\0",
    "far": b"\0" * 80 + (1).to_bytes(4, "little") + np.full(12, 1e9, "f4").tobytes() + b"\0\0",
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("ending", ["stl", "obj", "ply", "off"])
def test_files_that_are_no_meshes(tmp_path, kind, ending):
    (tmp_path / f"m.{ending}").write_bytes(BAD[kind])
    with pytest.raises(ModelError, match="m: "):
        od.Scene.of(robot(tmp_path, f"m.{ending}"))


def test_an_obj_does_not_open_other_files(tmp_path):
    write_mesh(tmp_path / "m.obj")
    text = (tmp_path / "m.obj").read_text()
    (tmp_path / "m.obj").write_text(f"mtllib /etc/passwd\nusemtl x\n{text}")
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    od.Scene.of(robot(tmp_path, "m.obj"))
    assert not [x for x in opened if "passwd" in x]


def test_what_is_too_large_is_not_read(tmp_path, monkeypatch):
    write_mesh(tmp_path / "m.stl")
    r = robot(tmp_path, "m.stl")
    monkeypatch.setattr("oc_dyn.scene.meshes.MAX_POINTS", 100)
    with pytest.raises(ModelError, match="100 are read at most"):
        od.Scene.of(r)
    monkeypatch.setattr("oc_dyn.scene.meshes.MAX_BYTES", 100)
    with pytest.raises(ModelError, match="larger than"):
        od.Scene.of(r)


def test_all_files_that_are_missing_are_told(tmp_path):
    shape = '<collision><geometry><mesh filename="{}"/></geometry></collision>'
    (tmp_path / "r.urdf").write_text(
        f'<robot name="r"><link name="a">{"".join(map(shape.format, ("x.stl", "y.jpg", ".")))}</link></robot>'
    )
    with pytest.raises(ModelError) as told:
        od.Scene.of(od.load_urdf(tmp_path / "r.urdf"))
    assert len(told.value.problems) == 3
    assert "x.stl: No such file" in told.value.problems[0]
    assert "y.jpg: meshes end in .stl" in told.value.problems[1]


def test_what_to_install_is_told(tmp_path, monkeypatch):
    write_mesh(tmp_path / "m.stl")
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ModelError, match=r"pip install \"oc-dyn\[meshes\]\""):
        od.Scene.of(robot(tmp_path, "m.stl"))


def test_collada_needs_a_package_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "m.dae").write_text("<COLLADA/>")
    monkeypatch.setitem(sys.modules, "collada", None)
    with pytest.raises(ModelError, match="pip install pycollada"):
        od.Scene.of(robot(tmp_path, "m.dae"))


# -- robots of the package, and of files ------------------------------------------------------------------------------


def panda_files():
    return [p for p in example_robots() if p.name == "panda.urdf"]


@pytest.mark.sample(1)
@pytest.mark.skipif(not panda_files(), reason="no example-robot-data")
@pytest.mark.parametrize("name", ["panda", "fr3"])
def test_capsules_of_the_panda_contain_the_links(name):
    scene = od.Scene.of(od.robots.by_name(name), samples=0)
    for k in range(8):
        mesh = trimesh.load(panda_files()[0].parents[1] / "meshes" / "collision" / f"link{k}.stl")
        item = scene[f"{name}_link{k}"]
        local = (np.array(mesh.vertices) - item.matrix[:3, 3]) @ item.matrix[:3, :3]
        local[:, 2] -= np.clip(local[:, 2], -item.shape.length / 2, item.shape.length / 2)
        reach = np.linalg.norm(local, axis=1).max()
        assert item.shape.radius - 0.003 < reach <= item.shape.radius


@pytest.mark.slow
@pytest.mark.skipif(not panda_files(), reason="no example-robot-data")
def test_a_robot_with_meshes():
    path = panda_files()[0]
    srdf = path.parents[1] / "srdf" / "panda.srdf"
    r = od.load_urdf(path)
    scene = od.Scene.of(r, srdf=srdf)
    assert len(scene) == len(r.collisions)
    assert len(scene.pairs) < len(od.Scene.of(r).pairs)
    assert all(len(x.shape.points) <= 32 for x in scene.items if isinstance(x.shape, od.shapes.Polytope))
