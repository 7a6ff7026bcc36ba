"""Shapes of a scene in pictures and animations: where they are, and nothing else changed."""

import casadi as ca
import numpy as np
import obstacles
import pytest
from PIL import Image

import oc_dyn as od
from oc_dyn import shapes
from oc_dyn.planning import scene_panels
from oc_dyn.planning.scene_lines import scene_lines
from oc_dyn.scene.poses import item_poses

T = np.array([0.0, 0.5, 1.0])
Q = np.array([[0.0, 0.0], [0.5, -0.2], [1.0, 0.3]])
NONE = np.empty((0, 3))


def lines(scene, poses=None, at=(0, 1, 2)):
    return scene_lines("draw", obstacles.point_robot(), scene, T, Q, poses, NONE, np.array(at))


def middle(x):
    """(K, 3) of the box about lines (K, k, 3)."""
    return (np.nanmin(x, axis=1) + np.nanmax(x, axis=1)) / 2


def test_shapes_on_links_move_with_them():
    around, box = lines(obstacles.ball(pose=obstacles.at(2.0, 0.0, 1.0)))
    assert middle(around.carried) == pytest.approx(np.column_stack([Q, np.zeros(3)]), abs=1e-12)
    assert middle(around.still[None])[0] == pytest.approx([2, 0, 1])
    assert around.moving.shape == (3, 0, 3)
    assert box[0] == pytest.approx([-obstacles.TIP, -0.3, -obstacles.TIP])
    assert box[1] == pytest.approx([2.3, 0.4, 1.3])


def test_a_pose_in_the_frame_of_the_link_counts():
    C = obstacles.at(0.0, 0.5, 0.0)
    C[:3, :3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # its z axis along x of the link
    around, _ = lines(od.Scene().attach("rod", "point", shapes.Cylinder(0.1, 0.8), C))
    size = np.nanmax(around.carried, axis=1) - np.nanmin(around.carried, axis=1)
    assert size == pytest.approx(np.tile([0.8, 0.2, 0.2], (3, 1)))
    assert middle(around.carried) == pytest.approx(np.column_stack([Q + [0, 0.5], np.zeros(3)]), abs=1e-12)


def test_obstacles_are_where_they_are_at_the_time():
    around, _ = lines(obstacles.ball(pose=obstacles.line((1, 0, 0), (0, 2, -1))), at=(2, 0))
    assert middle(around.moving) == pytest.approx(np.array([[1, 2, -1], [1, 0, 0]]), abs=1e-12)
    assert len(around.still) == 0


def test_poses_that_are_given_count():
    scene = obstacles.ball(pose=od.scene.PORT).add("other", shapes.Sphere(0.1), od.scene.PORT)
    poses = np.array([np.hstack([obstacles.at(k, 0, 0), obstacles.at(0, 5, -k)]) for k in range(3)])
    around, _ = lines(scene, poses, at=(1, 2))
    half = around.moving.shape[1] // 2
    assert middle(around.moving[:, :half]) == pytest.approx(np.array([[1, 0, 0], [2, 0, 0]]), abs=1e-12)
    assert middle(around.moving[:, half:]) == pytest.approx(np.array([[0, 5, -1], [0, 5, -2]]), abs=1e-12)
    still, _ = lines(scene, poses[1])
    assert middle(still.moving[:, :half]) == pytest.approx(np.tile([1, 0, 0], (3, 1)), abs=1e-12)


def test_ground_does_not_make_the_picture_larger():
    scene = obstacles.ball(pose=obstacles.at(2.0, 0.0, 1.0))
    ground = scene.add("ground", shapes.HalfSpace((0, 0, 1), -0.5))
    around, box = lines(ground)
    assert box == pytest.approx(lines(scene)[1])
    drawn = around.still[np.abs(around.still[:, 2] + 0.5) < 1e-12]
    reach = np.diff(box, axis=0).max() / 2
    assert drawn[:, 0].max() == pytest.approx(box[:, 0].mean() + reach)


@pytest.mark.parametrize(
    "poses, scene, said",
    [
        (None, obstacles.ball(pose=od.scene.PORT), "draw: poses of disc come in at a port"),
        (np.eye(4)[None].repeat(2, 0), obstacles.ball(pose=od.scene.PORT), r"expected finite numbers \(3, 4, 4\)"),
        (np.full((4, 4), np.nan), obstacles.ball(pose=od.scene.PORT), "expected finite numbers"),
        (np.eye(4), obstacles.ball(), "of no shape"),
        (None, "table", "scene is 'table', expected an od.Scene"),
    ],
)
def test_what_does_not_fit_is_refused(poses, scene, said):
    with pytest.raises(od.ShapeError, match=said):
        lines(scene, poses)


def test_links_that_there_are_not_are_named():
    with pytest.raises(od.UnknownName, match="elbow"):
        lines(od.Scene().attach("x", "elbow", shapes.Sphere(0.1)))


def frames(path):
    with Image.open(path) as image:
        out = []
        for k in range(image.n_frames):
            image.seek(k)
            out.append(np.asarray(image.convert("RGB")).astype(int))
    return out


def orange(picture):
    """(k, 2) rows and columns of what is drawn as moving."""
    return np.argwhere(picture[..., 0] - picture[..., 2] > 50)


def green(picture):
    """The same of what is carried."""
    return np.argwhere(picture[..., 1] - np.maximum(picture[..., 0], picture[..., 2]) > 15)


@pytest.mark.slow
def test_animations_draw_them(tmp_path):
    robot = obstacles.point_robot()
    scene = obstacles.ball(pose=obstacles.line((0, 0, 0), (0, 0, 2)))
    plain, drawn = (
        frames(od.animate(robot, T, Q, tmp_path / f"{k}.gif", fps=2, size=(200, 200), **more))
        for k, more in enumerate(({}, {"scene": scene}))
    )
    assert len(plain) == len(drawn) == 3
    assert not any(len(orange(x)) for x in plain)
    rows = [orange(x)[:, 0].mean() for x in drawn]
    assert rows[0] - 20 > rows[1] > rows[2] + 20  # it rises
    columns = [green(x)[:, 1].mean() for x in drawn]
    assert np.ptp(columns) > 10


def test_animations_of_poses_that_are_given(tmp_path):
    robot, scene = obstacles.point_robot(), obstacles.ball(pose=od.scene.PORT)
    poses = np.array([obstacles.at(0, 0, 2 * t) for t in T])
    port = od.animate(robot, T, Q, tmp_path / "a.gif", fps=2, size=(200, 200), scene=scene, poses=poses)
    timed = obstacles.ball(pose=obstacles.line((0, 0, 0), (0, 0, 2)))
    other = od.animate(robot, T, Q, tmp_path / "b.gif", fps=2, size=(200, 200), scene=timed)
    assert port.read_bytes() == other.read_bytes()
    with pytest.raises(od.ShapeError, match="but no scene"):
        od.animate(robot, T, Q, tmp_path / "c.gif", poses=poses)
    assert not (tmp_path / "c.gif").exists()


@pytest.fixture(scope="module")
def motion():
    return od.plan_point_to_point(obstacles.point_robot(), [-1, 0], [1, 0.2], nodes=8, check="off", progress=False)


@pytest.mark.slow
def test_trajectories_hand_the_scene_on(motion, tmp_path):
    scene = obstacles.ball(pose=obstacles.at(0, -1))
    plain = motion.animate(tmp_path / "a.gif", fps=4, size=(120, 120)).read_bytes()
    assert motion.animate(tmp_path / "b.gif", fps=4, size=(120, 120), scene=scene).read_bytes() != plain
    assert motion.animate(tmp_path / "c.gif", fps=4, size=(120, 120), scene=None).read_bytes() == plain


@pytest.mark.slow
def test_plots_show_the_robot_and_what_is_nearest(motion, tmp_path):
    scene = obstacles.ball(pose=obstacles.at(0, -1), margin=0.05)
    figure = motion.plot(tmp_path / "x.png", scene=scene)
    robot, apart = figure.axes[-2:]
    assert robot.name == "3d"
    assert len(robot.lines) == 2 + 5  # standing and carried shapes; the robot at five times
    line = apart.lines[0]
    assert line.get_label() == "tip - disc"
    t, d = line.get_data()
    p = motion.sample(t).q
    assert d == pytest.approx(np.linalg.norm(p - [0, -1], axis=1) - 0.3 - obstacles.TIP - 0.05, abs=1e-9)
    plain = motion.plot()
    assert len(figure.axes) == len(plain.axes) + 2
    for a, b in zip(plain.axes, figure.axes, strict=False):
        assert a.get_title() == b.get_title()
        assert all((x.get_xydata() == y.get_xydata()).all() for x, y in zip(a.lines, b.lines, strict=True))


@pytest.mark.slow
def test_plots_of_scenes_without_pairs_and_of_motions_without_robots(motion):
    alone = od.Scene().add("disc", shapes.Sphere(0.3))
    assert motion.plot(scene=alone).axes[-1].texts[0].get_text() == "no pairs"
    bare = od.Trajectory([0.0, 1.0], np.ones((1, 4, 2)), joints=("a", "b"), units=("rad", "m"))
    with pytest.raises(od.ModelError, match="plot needs the robot"):
        bare.plot(scene=alone)
    with pytest.raises(od.ShapeError, match="plot: poses of disc come in at a port"):
        motion.plot(scene=obstacles.ball(pose=od.scene.PORT))


def test_nearest_pairs_are_those_of_all_distances():
    """Against the quantity, whose values of spheres are exact."""
    rng, robot = np.random.default_rng(5), obstacles.point_robot()
    scene = od.Scene().attach("tip", "point", shapes.Sphere(0.1))
    for k in range(12):
        scene = scene.add(f"s{k}", shapes.Sphere(rng.uniform(0, 0.3)), obstacles.at(*rng.normal(size=3)), 0.01 * k)
    q = rng.normal(size=(20, 2))
    d = np.array(od.function(robot, "distances", scene=scene).map(20)(q.T)).T - scene.margins
    C = item_poses("plot", robot, scene, scene.items, np.zeros(20), q, None)
    found = scene_panels._nearest(scene, C, 4)
    order = np.argsort(d.min(axis=0))[:4]
    assert [name for name, _ in found] == [" - ".join(scene.pairs[k]) for k in order]
    assert np.array([x for _, x in found]) == pytest.approx(d[:, order].T, abs=1e-9)


def test_functions_of_the_time_in_mx_are_drawn():
    t = ca.MX.sym("t")
    pose = ca.Function("pose", [t], [obstacles.moved(ca.vertcat(t, 0, 0))])
    around, _ = lines(obstacles.ball(pose=pose))
    assert middle(around.moving)[:, 0] == pytest.approx(T)
