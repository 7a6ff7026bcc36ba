"""The clearance of whole motions: against closed forms, dense samples, and attacks on the bounds."""

import pickle

import casadi as ca
import numpy as np
import pytest
from among_shapes import arm, gantry, place, random_motion, sampled, trajectory
from samples import ROBOTS, build, robot

import oc_dyn as od
from oc_dyn.errors import CheckWarning, ModelError, ShapeError, SolveError, UnknownName
from oc_dyn.planning import certificate
from oc_dyn.planning.certificate import TOLERANCE, certify
from oc_dyn.planning.verdict import report_or_raise
from oc_dyn.scene import PORT
from oc_dyn.scene.shapes import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Polytope, Sphere

T = ca.SX.sym("t")


def line(way, duration=1.0, start=(0.0, 0.0, 0.0)):
    """Of the gantry, at constant velocity."""
    return trajectory(gantry(), [[start, np.array(way) / duration]], duration)


def half_turn(r=None, angle=np.pi, duration=1.0):
    """Of the arm, from rest to rest: angle (3 s^2 - 2 s^3)."""
    w = angle / duration
    return trajectory(r or arm(), [[[0.0], [0.0], [6 * w / duration], [-12 * w / duration**2]]], duration)


# -- motions whose clearance is known -------------------------------------------------------------------------------


def assert_near(found, clearance, time=None):
    """What is certified is below the clearance, what is met above it, both within the tolerance."""
    assert clearance - 1.01 * TOLERANCE <= found.certified <= clearance + 1e-12
    assert clearance - 1e-12 <= found.met <= clearance + 1.01 * TOLERANCE
    if time is not None:
        assert found.time == pytest.approx(time, abs=0.02)


def test_a_sphere_that_passes_a_sphere():
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("ball", Sphere(0.2), place([1.0, 0.35, 0]))
    found = certify(line([2.0, 0, 0]), scene)
    assert_near(found, 0.35 - 0.3, time=0.5)
    assert found.pair == ("tool", "ball")
    assert found.free


def test_a_capsule_that_swings_past_a_sphere():
    turned = place([0.5, 0, 0], np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]))  # its axis along the arm
    scene = od.Scene().attach("arm", "link", Capsule(0.05, 1.0), turned)
    scene = scene.add("ball", Sphere(0.1), place([0.3, 1.13, 0]))
    reach = np.hypot(0.3, 1.13)
    angle = np.arctan2(1.13, 0.3)
    s = np.roots([-2.0, 3.0, 0.0, -angle / np.pi])
    s = float(s[(s.real > 0) & (s.real < 1)].real[0])
    assert_near(certify(half_turn(), scene), reach - 1.0 - 0.15, time=s)


def test_a_swing_above_the_ground():
    scene = od.Scene().attach("tip", "tip", Sphere(0.1)).add("wall", HalfSpace((0, -1, 0), -1.25))  # y >= 1.25
    assert_near(certify(half_turn(), scene), 0.15, time=0.5)


def test_a_motion_along_a_wall_keeps_its_distance():
    scene = od.Scene().attach("tool", "link3", Capsule(0.05, 0.3)).add("floor", HalfSpace((0, 0, 1), -0.3))
    found = certify(line([5.0, 3.0, 0.0], duration=0.3), scene, clearance=0.1)
    assert_near(found, 0.1)
    assert found.met == pytest.approx(0.1, abs=1e-12)


def test_the_smallest_clearance_may_be_at_an_end():
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("ball", Sphere(0.1), place([3.0, 0, 0]))
    assert_near(certify(line([2.5, 0, 0]), scene), 0.3, time=1.0)
    assert_near(certify(line([-2.5, 0, 0], start=(2.5, 0, 0)), scene), 0.3, time=0.0)


def test_links_of_one_robot():
    r = build(["revolute", "revolute"], seed=1)
    motion = random_motion(r, 3)
    scene = od.Scene().attach("a", "link2", Sphere(0.1), place([0.7, 0, 0])).attach("b", "link0", Sphere(0.05))
    truth = sampled(motion, scene, 20001).min()
    found = certify(motion, scene)
    assert found.certified <= truth
    assert truth - found.certified < 2 * TOLERANCE


def test_margins_are_taken_off():
    scene = od.Scene().attach("tool", "link3", Sphere(0.1), margin=0.02)
    scene = scene.add("ball", Sphere(0.2), place([1.0, 0.35, 0]), margin=0.01)
    found = certify(line([2.0, 0, 0]), scene, clearance=0.03)
    assert_near(found, 0.35 - 0.3 - 0.03)
    assert not found.free
    assert not found.hit
    assert "0.03 m asked besides a margin of 0.03 m" in found.complaint()


def test_every_pair_below_the_clearance_is_told():
    scene = od.Scene().attach("tool", "link3", Sphere(0.1))
    for k, y in enumerate([0.25, 0.32, 0.5, 3.0]):
        scene = scene.add(f"ball{k}", Sphere(0.2), place([0.4 + 0.3 * k, y, 0]))
    found = certify(line([2.0, 0, 0]), scene, clearance=0.1)
    assert [x.pair[1] for x in found.short] == ["ball0", "ball1"]
    assert -0.05 - 1e-12 <= found.short[0].met <= -0.045
    assert found.short[0].certified <= -0.05
    assert found.short[1].met == pytest.approx(0.02, abs=2 * TOLERANCE)
    assert found.short[0].time == pytest.approx(0.2, abs=0.05)
    assert found.short[1].time == pytest.approx(0.35, abs=0.01)
    assert "'tool' and 'ball0' hit each other, 0.0" in found.complaint()
    assert "m deep at 0.2" in found.complaint()
    assert "; 1 other pair falls short, too" in found.complaint()


SHAPES = {
    "box": (Box(0.2, 0.1, 0.3), 0.05),
    "cylinder": (Cylinder(0.05, 0.3), 0.05),
    "ellipsoid": (Ellipsoid(0.2, 0.05, 0.1), 0.05),
    "polytope": (Polytope([[0.1, 0.05, 0], [-0.1, 0.05, 0], [0, -0.05, 0.1], [0, -0.05, -0.1]]), 0.05),
    "point": (Sphere(0.0), 0.0),
    "segment": (Capsule(0.0, 0.4), 0.0),
    "plate": (Box(0.5, 0.0, 0.5), 0.0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_any_shape_that_passes_a_box(name):
    shape, reach = SHAPES[name]  # along y
    scene = od.Scene().attach("tool", "link3", shape).add("box", Box(0.4, 0.2, 0.6), place([1.0, 0.45, 0]))
    assert_near(certify(line([2.0, 0, 0]), scene, clearance=0.1), 0.45 - 0.1 - reach)
    scene = od.Scene().attach("tool", "link3", shape).add("wall", HalfSpace((0, -1, 0), -0.45))
    assert_near(certify(line([2.0, 0, 0]), scene, clearance=0.1), 0.45 - reach)


# -- obstacles that move ----------------------------------------------------------------------------------------------


def test_an_obstacle_that_crosses_the_way():
    x = ca.SX(place())
    x[0, 3], x[1, 3] = 1.0, 2.0 - 2.0 * T  # meets the way of the tool, y = 0, at t = 1
    pose = ca.Function("pose", [T], [x])
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("cart", Sphere(0.1), pose)
    found = certify(line([2.0, 0, 0]), scene)  # the tool is there at t = 0.5
    # the difference is (2 t - 1, 2 t - 2): nearest at t = 0.75
    assert_near(found, np.hypot(0.5, 0.5) - 0.2, time=0.75)
    assert found.notes == ()


def test_the_time_of_an_obstacle_is_that_of_the_motion():
    x = ca.SX(place())
    x[1, 3] = T - 7.0
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("cart", Sphere(0.1), ca.Function("pose", [T], [x]))
    still = trajectory(gantry(), [np.zeros((3, 3))], duration=1.0, start=6.5)
    found = certify(still, scene)
    assert found.hit
    assert found.time == pytest.approx(7.0, abs=0.01)


def test_an_obstacle_that_turns():
    c, s = ca.cos(3 * T), ca.sin(3 * T)
    x = ca.blockcat([[c, -s, 0, c], [s, c, 0, s], [0, 0, 1, 0], [0, 0, 0, 1]])  # a point on a circle of radius 1
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("fan", Sphere(0.1), ca.Function("pose", [T], [x]))
    still = trajectory(gantry(), [[[0.0, 1.5, 0.0], [0, 0, 0]]], 1.0)
    assert_near(certify(still, scene), 0.3, time=np.pi / 6)


def test_a_half_space_that_moves():
    c, s = ca.cos(0.2 * T), ca.sin(0.2 * T)
    x = ca.blockcat([[c, 0, s, 0], [0, 1, 0, 0], [-s, 0, c, 0.1 * T], [0, 0, 0, 1]])
    scene = od.Scene().attach("tool", "link3", Sphere(0.1))
    scene = scene.add("deck", HalfSpace((0, 0, 1), 0.0), ca.Function("pose", [T], [x]))
    motion = line([0.0, 0, 0], start=(1.0, 0.0, 1.0))
    t = np.linspace(0, 1, 100001)
    truth = np.sin(0.2 * t) + np.cos(0.2 * t) * (1.0 - 0.1 * t) - 0.1
    assert_near(certify(motion, scene), truth.min())


def test_poses_that_are_not_smooth_are_told_of():
    x = ca.SX(place())
    x[1, 3] = 0.5 + ca.fabs(T - 0.5)
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("cart", Sphere(0.1), ca.Function("pose", [T], [x]))
    found = certify(line([0.0, 0, 0]), scene)
    assert found.met == pytest.approx(0.3, abs=1e-3)
    assert "'cart'" in found.notes[0]
    assert "not a proof" in found.notes[0]
    assert found.notes[0] in str(found)


# -- any robot --------------------------------------------------------------------------------------------------------


def spheres(r, seed, obstacles=3):
    """Scene of spheres on every body, and some in the world near where a motion may go; no neighbours."""
    rng = np.random.default_rng(seed)
    scene = od.Scene()
    for b in r.bodies:
        scene = scene.attach(b.name, b.name, Sphere(rng.uniform(0.01, 0.1)), place(rng.uniform(-0.3, 0.3, 3)))
    for k in range(obstacles):
        scene = scene.add(f"ball{k}", Sphere(rng.uniform(0.01, 0.1)), place(rng.uniform(-1, 1, 3)))
    return scene


@pytest.mark.parametrize("name", ["mimic", "floating", "prismatic"])
def test_the_certificate_is_never_above_dense_samples(name):
    assert_below_samples(robot(name), seeds=1, count=3001)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mimic", "floating", "prismatic", "spherical", "branching"])
def test_the_certificate_is_never_above_many_samples(name):
    assert_below_samples(robot(name), seeds=1, count=100_001)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(ROBOTS) - {"transform"}))
def test_the_certificate_is_never_above_samples_of_any_joint(name):
    assert_below_samples(robot(name), seeds=3, count=5001)


def assert_below_samples(r, seeds, count):
    """Of random motions and scenes."""
    for seed in range(seeds):
        motion, scene = random_motion(r, seed, size=3.0), spheres(r, seed)
        found = certify(motion, scene, clearance=-1.0)  # so that depths are told as exactly as distances
        truth = sampled(motion, scene, count).min(axis=1)
        for x, least in zip(found.pairs, truth, strict=True):
            assert x.certified <= least + 1e-12
        assert truth.min() - found.certified < (1e-4 if count > 1e5 else 1e-2)
        assert found.met - found.certified <= TOLERANCE * 1.01


@pytest.mark.few(8)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_random_robots(seed):
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["revolute", "prismatic", "helical", "spherical", "planar", "universal", "free"], 5).tolist()
    parents = [0, *(int(rng.integers(0, k + 1)) for k in range(1, 5))]
    r = build(kinds, parents, seed=seed, floating_base=bool(seed % 2) and "free" not in kinds)
    motion, scene = random_motion(r, seed, size=2.0), spheres(r, seed, 5)
    found = certify(motion, scene, clearance=0.02)
    truth = sampled(motion, scene, 20_001).min(axis=1)
    for x, least in zip(found.pairs, truth, strict=True):
        assert x.certified <= least + 1e-12
        assert (x.certified >= 0.02) or least < 0.02 + 1e-3


def test_long_slides_offset_frames_and_followers_of_large_multipliers():
    b = od.RobotBuilder("attack")
    for k in range(5):
        b.add_link(f"link{k}", mass=1.0, inertia=0.01 * np.eye(3))
    b.add_joint("slide", "prismatic", parent="link0", child="link1", xyz=[100.0, -50, 20], axis=[1, 1, 0])
    b.add_joint("turn", "revolute", parent="link1", child="link2", xyz=[3.0, 0, 0], axis=[0, 1, 1])
    b.add_joint("extend", "prismatic", parent="link2", child="link3", axis=[0, 0, 1])
    b.add_joint("spin", "revolute", parent="link3", child="link4", xyz=[0.2, 0, 0.1], axis=[0, 0, 1],
                mimic=("turn", -60.0, 0.3))  # fmt: skip
    r = b.build()
    scene = od.Scene().attach("far", "link4", Sphere(0.05), place([2.0, 1.0, -1.0]))
    scene = scene.attach("near", "link1", Sphere(0.3))
    motion = trajectory(r, [[[0.0, 0.0, 10.0], [5.0, 1.0, -12.0], [0, 0, 3.0], [1.0, -2.0, 0]]])
    truth = sampled(motion, scene, 10_001).min()
    found = certify(motion, scene)
    assert found.certified <= truth
    assert truth - found.certified < 1e-3
    assert found.met - found.certified <= TOLERANCE * 1.01


@pytest.mark.parametrize("wrong", ["turned", "random", "none"])
def test_wrong_normals_make_it_coarse_but_not_wrong(wrong, monkeypatch):
    rng = np.random.default_rng(0)

    def separation(a, A, b, B):
        d, n, *rest = right(a, A, b, B)
        bad = {"turned": n[:, [1, 2, 0]], "random": n + rng.normal(size=n.shape), "none": np.nan * n}[wrong]
        return d, bad / np.linalg.norm(bad, axis=1, keepdims=True), *rest

    right = certificate.separation
    scene = od.Scene().attach("tool", "link3", Box(0.2, 0.2, 0.2)).add("ball", Sphere(0.2), place([1.0, 0.35, 0]))
    monkeypatch.setattr(certificate, "separation", separation)
    monkeypatch.setattr(certificate, "_MOST", 20_000)
    found = certify(line([2.0, 0, 0]), scene)
    assert found.certified <= 0.05
    assert found.met == pytest.approx(0.05, abs=1e-2)


def test_the_search_ends_where_nothing_is_left_to_gain(monkeypatch):
    monkeypatch.setattr(certificate, "_MOST", 50)
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("ball", Sphere(0.2), place([1.0, 0.35, 0]))
    for k in range(5):
        scene = scene.add(f"other{k}", Sphere(0.2), place([1.0, 0.35, 0.001 * k]))
    found = certify(line([2.0, 0, 0]), scene)
    assert found.certified <= 0.05
    assert found.intervals < 500


def test_far_from_the_origin():
    r = arm(offset=(1e4, -1e4, 0))
    scene = od.Scene().attach("tip", "tip", Sphere(0.1)).add("ball", Sphere(0.1), place([1e4, -1e4 + 1.3, 0]))
    found = certify(half_turn(r), scene)
    assert found.certified == pytest.approx(0.1, abs=2 * TOLERANCE)


# -- motions along paths ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two():
    """A planar arm of two links."""
    b = od.RobotBuilder("two")
    for k in range(4):
        b.add_link(f"link{k}", mass=1.0, inertia=0.01 * np.eye(3))
    limit = {"velocity": 3.0, "effort": 50.0, "acceleration": 10.0, "jerk": 100.0}
    b.add_joint("joint1", "revolute", parent="link0", child="link1", axis=[0, 0, 1], **limit)
    b.add_joint("joint2", "revolute", parent="link1", child="link2", xyz=[0.5, 0, 0], axis=[0, 0, 1], **limit)
    b.add_joint("weld", "fixed", parent="link2", child="link3", xyz=[0.5, 0, 0])
    return b.build()


WAY = [[0.0, 0.0], [0.5, 0.8], [1.2, 0.3], [1.0, -0.5]]
PATHS = {
    "spline": (WAY, {}),
    "stop": (WAY, {"stops": [2]}),
    "function": (ca.Function("path", [T], [ca.vertcat(ca.sin(2 * T), T - T**2)]), {}),
    "stop on a function": (ca.Function("path", [T], [ca.vertcat(ca.sin(2 * T), T - T**2)]), {"stops": [0.4]}),
}


@pytest.mark.parametrize("name", ["stop", *(pytest.param(x, marks=pytest.mark.slow) for x in PATHS if x != "stop")])
def test_motions_along_paths(two, name):
    path, options = PATHS[name]
    motion = od.plan_along_path(two, path, nodes=12, continuity=2, **options)
    scene = od.Scene().attach("hand", "link3", Sphere(0.05)).attach("elbow", "link2", Sphere(0.05))
    scene = scene.add("ball", Sphere(0.1), place([0.3, 0.75, 0.1]))
    truth = sampled(motion, scene, 20001).min()
    found = certify(motion, scene)
    assert found.notes == ()
    assert found.certified <= truth + 1e-12
    assert truth - found.certified < 5e-5
    assert motion.check(scene=scene).clearance == found


def test_a_path_without_intervals_is_told_of(two):
    path = ca.Function("path", [T], [ca.vertcat(T, ca.erf(T))])
    motion = od.plan_along_path(two, path, nodes=12, continuity=2)
    found = certify(motion, od.Scene().attach("hand", "link3", Sphere(0.05)).add("ball", Sphere(0.1), place([0, 0, 1])))
    assert "path" in found.notes[0]


# -- reports ----------------------------------------------------------------------------------------------------------


def test_the_check_has_a_row():
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("ball", Sphere(0.2), place([1.0, 0.35, 0]))
    motion = line([2.0, 0, 0])
    report = motion.check(scene=scene, clearance=0.025)
    row = report.rows[-1]
    assert (row.quantity, row.joint, row.limit) == ("clearance", "tool - ball", 0.025)
    assert row.value == pytest.approx(0.05, abs=2 * TOLERANCE)
    assert row.share == pytest.approx(0.5, abs=1e-3)
    assert report.ok()
    assert "smallest clearance" in str(report)
    assert "clearance certified" in str(report)
    assert motion.check().clearance is None
    assert pickle.loads(pickle.dumps(report.clearance)) == report.clearance


def test_a_hit_makes_the_check_speak():
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("ball", Sphere(0.2), place([1.0, 0.29, 0]))
    motion = line([2.0, 0, 0])
    report = motion.check(scene=scene)
    assert not report.ok()
    assert report.worst == pytest.approx(11, abs=1.1)  # 10 mm deep
    assert "  over" in str(report)
    assert "clearance not certified" in str(report)
    with pytest.raises(SolveError, match="'tool' and 'ball' hit each other, 0.0.* m deep at 0.* s; move it"):
        report_or_raise("plan", report, "raise", "move it")
    with pytest.warns(CheckWarning, match="hit each other"):
        report_or_raise("plan", report, "warn", "move it")


@pytest.mark.parametrize("asked, share", [(0.06, 11.0), (0.05, 1.01), (0.04, 0.8)])
def test_what_is_short_of_the_clearance(asked, share):
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("ball", Sphere(0.2), place([1.0, 0.35, 0]))
    report = line([2.0, 0, 0]).check(scene=scene, clearance=asked)
    assert report.worst == pytest.approx(share, abs=0.02)
    if asked > 0.05:
        with pytest.raises(SolveError, match="clearance of 'tool' and 'ball' is 0.05.* m at 0.5.* s, 0.06 m asked"):
            report_or_raise("plan", report, "raise", "move it")


def test_a_scene_without_pairs():
    found = certify(line([1.0, 0, 0]), od.Scene().attach("tool", "link3", Sphere(0.1)))
    assert found.free
    assert found.certified == np.inf
    assert found.pair is None
    assert line([1.0, 0, 0]).check(scene=od.Scene()).ok()
    assert "no pairs" in str(found)


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_what_cannot_be_certified_is_refused():
    motion, scene = line([1.0, 0, 0]), od.Scene().attach("tool", "link3", Sphere(0.1))
    with pytest.raises(ShapeError, match="'cup' comes in at a port"):
        certify(motion, scene.add("cup", Sphere(0.1), PORT))
    with pytest.raises(ShapeError, match="half-spaces, which meet"):
        plate = scene.attach("plate", "link2", HalfSpace((0, 0, 1)))
        certify(motion, plate.add("floor", HalfSpace((0, 0, 1))))
    with pytest.raises(UnknownName, match="link33"):
        certify(motion, od.Scene().attach("tool", "link33", Sphere(0.1)).add("ball", Sphere(0.1)))
    with pytest.raises(ShapeError, match="expected an od.Scene"):
        certify(motion, "scene.yaml")
    with pytest.raises(ShapeError, match="clearance"):
        motion.check(scene=scene, clearance="near")
    with pytest.raises(ShapeError, match="give scene="):
        motion.check(clearance=0.02)
    bare = trajectory(gantry(), [[[0.0, 0, 0], [0.0, 0, 0]]])
    bare.robot = None
    with pytest.raises(ModelError, match="load the file with robot="):
        certify(bare, scene)


def test_a_pose_that_is_none():
    x = ca.SX(place())
    x[0, 0] = 1 + T
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("cart", Sphere(0.1), ca.Function("pose", [T], [x]))
    with pytest.raises(ShapeError, match="'cart' at t = .* is no pose"):
        certify(line([1.0, 0, 0]), scene)


# -- on the clearance ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("short, kept", [(0.0, True), (1e-17, True), (1e-9, True), (5e-7, True), (3e-6, False)])
def test_a_motion_on_the_clearance_keeps_it(short, kept):
    scene = od.Scene().attach("tool", "link3", Sphere(0.1)).add("floor", HalfSpace((0, 0, 1), -0.12 + short))
    motion = trajectory(gantry(), [[(0.0, 0, 0), (1.0, 0.5, 0), (1.0, 0, 0)]], 1.0)  # along it
    found = certify(motion, scene, clearance=0.02)
    assert found.met - found.certified < 2e-7 or not kept
    assert found.free is kept
    assert not found.hit
    checked = motion.check(scene=scene, clearance=0.02)
    assert (checked.worst <= 1 + 1e-3) is kept
    assert ("clearance certified" in str(found)) is kept


def test_a_box_that_slides_on_a_box_does_not_hit_it():
    scene = od.Scene().attach("tool", "link3", Box(0.2, 0.3, 0.2)).add("table", Box(3, 3, 0.4), place([0, 0, -0.3]))
    found = certify(line([1.0, 0.3, 0.0]), scene)
    assert found.met == pytest.approx(0, abs=1e-9)
    assert found.free
    assert not found.hit
    assert not found.complaint()
    deeper = certify(line([1.0, 0.3, 0.0], start=(0, 0, -1e-4)), scene)
    assert deeper.hit
    assert not deeper.free


@pytest.mark.parametrize("name", ["spherical", "floating"])
def test_a_quaternion_that_passes_0_is_told_of(name):
    r = robot(name)
    j = next(x for x in r.joints if x.kind in ("spherical", "free"))
    q = r.neutral()
    rate = np.zeros(r.nq)
    rate[j.q_index] = -2.0
    q[j.q_index : j.q_index + 4] = 1, 0, 0, 0
    scene = od.Scene().attach("body", r.bodies[-1].name, Sphere(0.1)).add("ball", Sphere(0.1), place([5.0, 0, 0]))
    with pytest.raises(ShapeError, match=rf"quaternion of joint '{j.name}' is \[.*at t = 0.5 s.*keep away from 0"):
        certify(trajectory(r, [[q, rate]], 1.0), scene)
