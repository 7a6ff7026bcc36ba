"""Capsules whose axes meet, are parallel or cross at small angles; numbers of shapes that are thin or overlap."""

import casadi as ca
import numpy as np
import pytest
from among_shapes import gantry, place

import oc_dyn as od
from oc_dyn.lie.quick import quick
from oc_dyn.scene.chains import ShapeMotion
from oc_dyn.scene.numeric import separation
from oc_dyn.scene.placed import Placed
from oc_dyn.scene.segments import between_segments
from oc_dyn.scene.smooth_support import bound, smooth_support

s = od.shapes
ROUND = [(s.Capsule(0.05, 1.0), s.Capsule(0.05, 0.6)), (s.Sphere(0.05), s.Capsule(0.05, 0.6))]


def turn(axis, angle):
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def slide(axis):
    """A body that slides along an axis."""
    b = od.RobotBuilder("slide")
    b.add_link("base")
    b.add_link("body", mass=1.0, inertia=np.eye(3))
    b.add_joint("joint", "prismatic", "base", "body", axis=axis)
    return b.build()


@pytest.mark.parametrize("axis", [(0, 0, 1), (1, 2, 2), (1, 0, 0)])
@pytest.mark.parametrize("pair", ROUND, ids=["capsules", "sphere"])
def test_a_shape_that_slides_along_the_axis_of_another(axis, pair):
    a, b = pair
    R = turn(np.cross([0, 0, 1], axis), np.arccos(axis[2] / np.linalg.norm(axis))) if axis != (0, 0, 1) else np.eye(3)
    scene = od.Scene().attach("a", "body", a, place([0, 0, 0], R)).add("b", b, place([0, 0, 0], R))
    r = slide(axis)
    f = od.function(r, "distances", scene=scene, witnesses=True)
    J, H = (od.function(r, f"distances_{x}", scene=scene) for x in ("partials", "lagrangian_hessian"))
    for q in (0.0, 0.05, -0.1):
        found = f(q=q)
        assert float(found["d"]) == pytest.approx(-0.1, abs=1e-12)
        assert abs(float(J(q=q)["dd_dq"])) < 1e-9
        assert abs(float(H(q=q, lam_d=1.0)["H"])) < 1e-6
        along = R[:, 2] @ np.array(found["p_a"] - found["p_b"])
        assert abs(float(along[0])) < 1e-9
        assert float(ca.norm_2(found["p_a"] - found["p_b"])) == pytest.approx(0.1)
        A, B = place(q * R[:, 2], R), place([0, 0, 0], R)
        d, n, p_a, _ = separation(a, A, b, B)
        assert d == pytest.approx(-0.1, abs=1e-12)
        assert abs(n @ R[:, 2]) < 1e-9
        assert np.linalg.norm(np.cross(p_a, R[:, 2])) == pytest.approx(0.05)  # on the tube


def test_second_derivatives_of_parallel_capsules_are_those_across():
    """Side by side at a distance x of axes d = hypot(x, y) - radii, whose second derivative by y is 1 / x."""
    capsule, C = s.Capsule(0.1, 1.0), place([0.5, 0, 0])
    scene = od.Scene().attach("a", "link3", capsule).add("b", capsule, C)
    H = np.array(od.function(gantry(), "distances_lagrangian_hessian", scene=scene)(q=np.zeros(3), lam_d=1.0)["H"])
    assert np.allclose(H, np.diag([0.0, 2.0, 0.0]), atol=1e-6)


@pytest.mark.parametrize("length", [1.0, 1e4])
@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-8, 3e-7, 9e-7, 1e-4])
def test_capsules_that_cross_at_a_small_angle(length, angle):
    """Axes cross at (1/3, -1/5) of the half lengths, so that d is minus the radii; and with a gap between them."""
    a = b = s.Capsule(0.05, length)
    for gap in (0.0, 0.03):
        R = turn([1, 0, 0], angle)
        p = length / 2 * (np.array([0, 0, 1 / 3]) + R[:, 2] / 5) + [gap, 0, 0]
        B, true = place(p, R), gap - 0.1
        d, n, _, _ = separation(a, np.eye(4), b, B)
        assert -1e-12 * length < d - true <= 1e-15 * length
        scene = od.Scene().attach("a", "link3", a).add("b", b, B)
        f = od.function(gantry(), "distances", scene=scene)
        assert abs(float(f(q=np.zeros(3))["d"]) - true) < 1e-12 * length
        still = np.zeros((1, 3, 3)), np.zeros((1, 3)), np.zeros(1), np.zeros(1)
        A, C = (ShapeMotion(x[None, :3, :3], x[None, :3, 3], *still) for x in (np.eye(4), B))
        planned, normal = between_segments(a, A, b, C)
        assert planned[0] == pytest.approx(d, abs=1e-15 * length)
        assert np.allclose(normal[0], n)


@pytest.mark.parametrize(
    "thin",
    [(s.Cylinder(0, 1), 2), (s.Box(0, 0, 1), 2), (s.Box(1, 0, 0), 0), (s.Ellipsoid(0, 0.5, 0), 1)],
    ids=lambda x: repr(x[0]),
)
def test_nearest_points_of_a_thin_shape(thin):
    shape, k = thin
    for beside in (1e-9, 1e-3):
        p = np.zeros(3)
        p[k], p[(k + 1) % 3] = 0.15, beside
        d, _, p_a, p_b = separation(shape, np.eye(4), s.Sphere(0), place(p))
        assert d == pytest.approx(beside, abs=1e-13)
        assert np.linalg.norm(p_b - p_a) == pytest.approx(beside, abs=1e-13)


def test_depth_of_boxes_and_no_warnings():
    """Boxes of one orientation overlap by their extents along the axis where that is least."""
    rng = np.random.default_rng(4)
    a, b = s.Box(0.3, 0.2, 0.1), s.Box(0.2, 0.3, 0.3)
    many = rng.uniform(-1, 1, (20, 3)) * [0.2, 0.2, 0.15]
    true = (np.abs(many) - [0.25, 0.25, 0.2]).max(axis=1)
    with np.errstate(all="raise", under="ignore"):
        d = separation(a, np.eye(4), b, np.array([place(x) for x in many]))[0]
    assert np.allclose(d, true, atol=1e-10)


@pytest.mark.sample(1)
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize(
    "a, b",
    [
        (s.Ellipsoid(0.1, 0.1, 0.4), s.Ellipsoid(0.1, 0.1, 0.4)),
        (s.Cylinder(0.05, 0.6), s.Cylinder(0.05, 0.6)),
        (s.Cylinder(0.3, 0.05), s.Cylinder(0.3, 0.05)),
        (s.Box(0.2, 0.2, 0.6), s.Ellipsoid(0.1, 0.1, 0.4)),
    ],
)
def test_coaxial_shapes_that_overlap_leave_the_axis(a, b, axis):
    """Along an axis of symmetry the overlap is stationary, but the largest: steps do not stay there."""
    c = ca.SX.sym("c", 3)
    ours, theirs = (Placed("", x, quick(ca.SX.eye(3)), quick(p)) for x, p in ((a, ca.SX.zeros(3)), (b, c)))
    f = ca.Function("d", [c], [smooth_support(ours, theirs)[0].d])
    for t in (1e-9, 0.01, 0.02):
        C = np.eye(4)
        C[axis, 3] = t
        depth = separation(a, np.eye(4), b, C)[0]
        assert depth - bound(a) - bound(b) - 1e-3 <= float(f(C[:3, 3])) <= depth + 1e-9
