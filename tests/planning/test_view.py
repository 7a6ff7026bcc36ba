"""od.view: surfaces, poses, what the page holds and refuses, and the page in a browser."""

import base64
import json
import re

import browser
import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.model.quaternions import quaternions
from oc_dyn.planning.viewer import surfaces

S = od.shapes
TETRAHEDRON = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))


def volume(points, faces):
    """Of a closed surface whose triangles look outward, by the divergence theorem."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    return np.einsum("ki,ki->", a, np.cross(b, c)) / 6


def contents(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.html, re.DOTALL).group(1)
    return json.loads(text)


def numbers(text, *shape):
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


ROUND = 0.04  # that flat triangles take from what is round


@pytest.mark.parametrize(
    "shape, wanted, share",
    [
        (S.Sphere(0.3), 4 / 3 * np.pi * 0.027, ROUND),
        (S.Ellipsoid(0.3, 0.2, 0.1), 4 / 3 * np.pi * 0.006, ROUND),
        (S.Capsule(0.1, 0.5), np.pi * 0.01 * 0.5 + 4 / 3 * np.pi * 0.001, ROUND),
        (S.Cylinder(0.1, 0.5), np.pi * 0.01 * 0.5, ROUND),
        (S.Box(0.1, 0.2, 0.3), 0.006, 1e-12),
        (S.Polytope(TETRAHEDRON), 1 / 6, 1e-12),
    ],
)
def test_surfaces_are_closed_and_look_outward(shape, wanted, share):
    points, faces = surfaces.triangles(shape)
    edges = [tuple(face[[i, (i + 1) % 3]]) for face in faces for i in range(3)]
    assert len(set(edges)) == len(edges)
    assert {(b, a) for a, b in edges} == set(edges)
    assert wanted * (1 - share) <= volume(points, faces) <= wanted * (1 + 1e-12)


def test_hulls_without_scipy_have_the_same_outside():
    points = np.random.default_rng(3).normal(size=(12, 3))
    found, faces = surfaces._hull_by_hand(points)
    assert volume(found, faces) == pytest.approx(volume(*surfaces.hull(points)), rel=1e-12)
    flat = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    assert len(surfaces.hull(flat)[1]) > 0  # drawn from both sides all the same


def test_half_space_is_a_square_of_its_plane():
    points, faces = surfaces.triangles(S.HalfSpace((0, 0, 2.0), 1.0), reach=3.0)
    assert np.allclose(points[:, 2], 0.5)
    assert np.allclose(np.ptp(points[:, :2], axis=0).max(), 6)
    assert len(faces) == 2


def test_poses_are_those_of_the_links():
    arm = od.robots.panda()
    t = np.linspace(0, 1, 7)
    q = np.array([arm.random_configuration(seed=1) * (1 - x) + arm.random_configuration(seed=2) * x for x in t])
    tool = np.array([[1.0, 0, 0, 0.1], [0, 1, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]])
    scene = od.Scene().attach("tool", "panda_link8", S.Sphere(0.1), tool).add("ball", S.Sphere(0.2), tool)
    (motion,) = contents(od.view(arm, (t, q), scene=scene, fps=1000))["motions"]
    assert motion["slots"] == 1
    assert np.allclose(numbers(motion["t"], -1), t)
    found = numbers(motion["poses"], 7, 4, 3).transpose(0, 2, 1)
    f = od.function(arm, "frame_pose", frame="panda_link8")
    for k, row in enumerate(q):
        x = f(q=row)
        C = np.block([[x["R"].full(), x["p"].full()], [np.zeros((1, 3)), np.ones((1, 1))]]) @ tool
        assert np.allclose(found[k], C[:3], atol=1e-6)
    (fixed,) = (part for part in motion["parts"] if part["slot"] < 0)
    assert np.allclose(np.reshape(fixed["pose"], (4, 4)).T, tool)


def test_shares_of_limits_are_those_of_the_motion():
    arm = od.robots.double_pendulum()
    limits = od.Limits.of(arm).updated({name: {"v": 2, "dv": 8} for name in arm.coordinate_names})
    plan = od.plan_point_to_point(arm, [0, 0], [1, -0.5], limits=limits, continuity=2, nodes=10)
    (motion,) = contents(od.view(arm, plan))["motions"]
    shares = {row["name"]: numbers(row["values"], -1) for row in motion["shares"]}
    assert shares["v"].max() <= 1 + 1e-6
    assert shares["dv"].max() == pytest.approx(1, abs=1e-3)
    for row in motion["shares"]:  # at the times they are of, not the largest until the next row
        at = numbers(row["t"], -1)
        assert set(numbers(motion["t"], -1)) <= set(at)
        wanted = plan.sample(np.clip(at.astype(float), 0, plan.duration)).utilization()[row["name"]]
        assert np.isinf(wanted).all() or np.allclose(shares[row["name"]], wanted, atol=2e-4)
    assert shares["v"][0] == 0
    assert numbers(motion["t"], -1)[-1] == pytest.approx(plan.duration, rel=1e-6)


def test_the_page_needs_nothing_and_nothing_leaves_its_place(tmp_path):
    arm = od.robots.double_pendulum()
    name = "</script><script>alert(1)</script>"
    page = od.view(arm, {name: [0.1, 0.2]}, path=tmp_path / "new" / "page.html", title=name)
    assert page.path.read_text(encoding="utf-8") == page.html
    assert page.html.count("<script") == 2
    assert contents(page)["motions"][0]["name"] == contents(page)["title"] == name
    assert not re.search(r"""(src|href)\s*=|@import|url\(|https?:""", page.html.replace("srcdoc", ""))
    assert page._repr_html_().startswith("<iframe")
    assert "<script" not in page._repr_html_()


@pytest.mark.parametrize("name", ["quadruped", "four_bar", "gough_stewart", "double_pendulum"])
def test_robots_at_home(name):
    data = contents(od.view(getattr(od.robots, name)()))
    assert data["motions"][0]["parts"]
    assert 0 < data["reach"] < 100


def cart_pole(com=(0, 0, -0.5), inertia=None):
    made = od.RobotBuilder("cart_pole")
    made.add_link("rail")
    made.add_link("cart", 1.0)
    made.add_link("pole", 0.3, com=com, inertia=inertia)
    made.add_joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0))
    made.add_joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0))
    return made.build()


def balls(page):
    """(K, balls, 3) places of what is drawn."""
    (motion,) = contents(page)["motions"]
    return numbers(motion["poses"], -1, motion["slots"], 4, 3)[..., 3, :]


@pytest.mark.filterwarnings("error")
def test_a_link_at_a_tip_is_drawn_to_where_its_inertia_says_that_it_ends():
    """A point mass ends at the mass, a slender rod at its end, a robot of no extent at home is drawn all the same."""
    t, q = [0, 1], np.array([[0.0, 0.0], [0.4, np.pi / 2]])
    rod = 0.3 * 1.0**2 / 12 * np.array([1, 0, 0, 1, 0, 0])
    for inertia, far in ((None, 0.5), (rod, 1.0)):
        found = balls(od.view(cart_pole(inertia=inertia), (t, q), fps=1000))
        assert np.isfinite(found).all()
        tip = np.array([[0, 0, -far], [0.4 - far, 0, 0]])
        assert np.abs(found - tip[:, None]).max(axis=(0, 2)).min() < 1e-6
        beads = np.abs(found - [[[0, 0, 0]], [[0.2, 0, 0]]]).max(axis=(0, 2))
        assert beads.min() < 1e-6  # half-way along the slide
    assert np.isfinite(balls(od.view(cart_pole(com=(0, 0, 0))))).all()


def test_tools_and_links_without_shapes_are_drawn_too():
    robot = cart_pole().with_frame("hook", "cart", (0, 0.2, 0)).with_frame("sight", "pole", (0.1, 0, 0))
    found = balls(od.view(robot, [0.3, 0.0]))[0]
    for wanted in ((0.3, 0.2, 0), (0.4, 0, 0), (0.3, 0, -0.5)):
        assert np.abs(found - wanted).max(axis=1).min() < 1e-6
    text = """<robot name="r"><link name="base"/>
      <link name="cart"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
      <link name="pole"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
        <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="x" type="prismatic"><parent link="base"/><child link="cart"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
      <joint name="y" type="continuous"><parent link="cart"/><child link="pole"/><axis xyz="0 1 0"/></joint></robot>"""
    half_shown = od.load_urdf(text)
    found = balls(od.view(half_shown, [0.0, 0.0]))[0]
    assert np.abs(found - [0, 0, -0.5]).max(axis=1).min() < 1e-6
    assert len(balls(od.view(half_shown, [0.0, 0.0], show="collision"))[0]) == 1


def test_loops_stay_closed():
    """The rods of a four-bar linkage, drawn as sticks, keep their lengths."""
    bar = od.robots.four_bar()
    t = np.linspace(0, 1, 9)
    q = bar.neutral() + 0.5 * t[:, None]
    (motion,) = contents(od.view(bar, (t, q), fps=1000))["motions"]
    places = numbers(motion["poses"], 9, motion["slots"], 4, 3)[..., 3, :]
    guess = np.tile(bar.home[:, None], (1, 9))
    guess[bar.rows("q", bar.independent)] = q.T
    closed = bar.close(guess)
    f = od.function(bar.tree, "frame_pose", frame=bar.tree.bodies[-1].name)
    tips = np.array([f(q=x)["p"].full().ravel() for x in closed.T])
    assert min(np.abs(places[:, k] - tips).max() for k in range(motion["slots"])) < 1e-5


@pytest.mark.parametrize(
    "motion, said",
    [
        (([0, 1], np.zeros((3, 2))), r"q of shape \(3, 2\) for 2 times"),
        (([1, 0], np.zeros((2, 2))), "times that do not fall"),
        ([0.0, np.nan], "finite numbers"),
        ({"calm": [0.0, 0.0, 0.0]}, "view: calm: got q of shape"),
        ({}, "without motions"),
    ],
)
def test_what_does_not_fit_is_named(motion, said):
    with pytest.raises(od.ShapeError, match=said):
        od.view(od.robots.double_pendulum(), motion)


@pytest.mark.parametrize(
    "quaternion, said", [([0] * 4, "is no rotation"), ([2, 0, 0, 0], "norm 2"), ([np.nan] * 4, "")]
)
def test_orientations_that_are_none(quaternion, said):
    robot = od.robots.quadruped()
    q = np.asarray(robot.neutral(), float).copy()
    (_, row), *_ = quaternions(robot)
    q[row : row + 4] = quaternion
    for motion in (q, ([0, 1], np.array([robot.neutral(), q]))):
        with pytest.raises(od.ShapeError, match=f"view: {robot.name}.*{said}"):
            od.view(robot, motion)


@pytest.mark.parametrize("what", [np.nan, 0.0, 2.0, -1.0])
def test_poses_that_are_none(what):
    robot, t = od.robots.double_pendulum(), ca.SX.sym("t")
    pose = np.eye(4)
    pose[:3, :3] *= what
    with pytest.raises(od.ShapeError, match="poses"):
        od.view(robot, [0.1, 0.2], scene=od.Scene().add("ball", S.Sphere(0.1), od.scene.PORT), poses=pose)
    made = ca.Function("pose", [t], [ca.DM(pose) + 0 * t])
    motion = ([0, 1], np.zeros((2, 2)))
    with pytest.raises(od.ShapeError, match="view: poses of ball: at 0 s it is .*no pose"):
        od.view(robot, motion, scene=od.Scene().add("ball", S.Sphere(0.1), made))


def test_the_place_of_the_page_is_a_file(tmp_path):
    robot = od.robots.double_pendulum()
    for path in ("", tmp_path, str(tmp_path), 3):
        with pytest.raises(od.ShapeError, match="view: path"):
            od.view(robot, path=path)
    assert od.view(robot, path=tmp_path / "new" / "a.html").path.read_text().startswith("<!")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):  # as plan.save
        od.view(robot, path=tmp_path / "file" / "more" / "a.html")


def test_scene_must_be_one():
    with pytest.raises(od.ShapeError, match="expected an od.Scene"):
        od.view(od.robots.double_pendulum(), scene="table")
    with pytest.raises(od.UnknownName, match="nowhere"):
        od.view(od.robots.double_pendulum(), scene=od.Scene().attach("tool", "nowhere", S.Sphere(0.1)))


FRAMES, SHOWN = "Number(document.body.dataset.frames)", 'document.getElementById("now").textContent'


@pytest.mark.slow
@pytest.mark.skipif(browser.found() is None, reason="no Chromium")
def test_browser_plays_it(tmp_path):
    """However slow the browser is: frames follow each other, time goes on, the robot is there and moves."""
    from matplotlib.image import imread

    arm = od.robots.panda()
    t = np.linspace(0, 1, 61)
    q = np.outer(1 - t, arm.random_configuration(seed=1)) + np.outer(t, arm.random_configuration(seed=2))
    page = od.view(arm, (t, q), path=tmp_path / "page.html")
    with browser.Browser(tmp_path, 800, 600) as chromium:
        chromium.open(page.path.as_uri())
        first = chromium.until(f"{FRAMES} > 3 && {SHOWN}")
        chromium.until(f"{FRAMES} > 6 && {SHOWN} !== {first!r}")
        chromium.value('document.getElementById("play").click()')
        pictures = []
        for time in (0.1, 0.9):
            seek = f'const x = document.getElementById("time"); x.value = {time}; x.dispatchEvent(new Event("input"))'
            chromium.value(f"{{{seek}}}")
            chromium.until(f'{SHOWN} === "{time:.3f} s"')
            chromium.picture(tmp_path / "page.png")
            pictures.append(imread(tmp_path / "page.png")[40:400, :, :3])
        standing = chromium.value(FRAMES)
        chromium.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert chromium.value(FRAMES) == standing  # paused
    assert chromium.complaints == []
    blue = [x[..., 2] > x[..., 0] + 0.15 for x in pictures]  # of the robot
    for x in blue:
        assert 0.01 < x.mean() < 0.6
    assert (blue[0] != blue[1]).mean() > 0.01
