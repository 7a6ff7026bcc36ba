"""Shapes as lines: on the shape, and as many as it has."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import shapes
from oc_dyn.scene.numeric import support
from oc_dyn.scene.outlines import edges, joined, outline

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
TILTED = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
BOUNDED = [
    shapes.Sphere(0.3), shapes.Capsule(0.1, 0.4), shapes.Box(0.2, 0.3, 0.4), shapes.Cylinder(0.2, 0.5),
    shapes.Ellipsoid(0.1, 0.2, 0.3), shapes.Polytope(CUBE @ TILTED.T),
]  # fmt: skip


def points_of(shape):
    lines = outline(shape)
    return lines[~np.isnan(lines).any(axis=1)]


@pytest.mark.parametrize("shape", BOUNDED, ids=lambda x: type(x).__name__)
def test_lines_are_within_the_shape_and_touch_its_ends(shape):
    points = points_of(shape)
    rng = np.random.default_rng(1)
    n = rng.normal(size=(200, 3))
    n = np.concatenate([np.eye(3), -np.eye(3), n / np.linalg.norm(n, axis=1)[:, None]])
    h = support(shape, np.broadcast_to(np.eye(4), (len(n), 4, 4)), n)[0]
    reached = (points @ n.T).max(axis=0)
    assert (reached <= h + 1e-12).all()
    assert reached[:6] == pytest.approx(h[:6], abs=1e-12)
    size = shape.radius_about_origin
    assert (h - reached).max() < 0.3 * size  # and round shapes are not cut off


@pytest.mark.parametrize(
    "shape, inside",
    [
        (shapes.Sphere(0.3), lambda x: np.linalg.norm(x, axis=1) / 0.3),
        (shapes.Ellipsoid(0.1, 0.2, 0.3), lambda x: np.linalg.norm(x / [0.1, 0.2, 0.3], axis=1)),
        (shapes.Box(0.2, 0.3, 0.4), lambda x: np.abs(x / [0.1, 0.15, 0.2]).max(axis=1)),
        (
            shapes.Capsule(0.1, 0.4),
            lambda x: np.linalg.norm(x - np.clip(x, [0, 0, -0.2], [0, 0, 0.2]), axis=1) / 0.1,
        ),
    ],
    ids=("sphere", "ellipsoid", "box", "capsule"),
)
def test_lines_are_on_the_surface(shape, inside):
    assert inside(points_of(shape)) == pytest.approx(1.0, abs=1e-12)


def test_edges_of_solids():
    assert len(edges(CUBE)) == 12
    assert all(np.abs(CUBE[a] - CUBE[b]).sum() == 2 for a, b in edges(CUBE))  # no diagonals
    turned = CUBE @ TILTED.T
    assert edges(turned) == edges(CUBE)
    inner = np.concatenate([CUBE, [[0, 0, 0], [0, 0, 1.0], [0, 1.0, 1.0]]])  # within, on a face, on an edge
    assert edges(inner) == edges(CUBE)
    assert len(edges(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]))) == 6
    assert len(edges(np.concatenate([np.eye(3), -np.eye(3)]))) == 12


def test_edges_of_many_points_obey_euler():
    x = np.random.default_rng(3).normal(size=(30, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    assert len(edges(x)) == 3 * 30 - 6  # of a hull of triangles that has all of them as corners
    many = np.random.default_rng(4).normal(size=(500, 3))
    used = {k for pair in edges(many) for k in pair}
    assert len(edges(many)) == 3 * len(used) - 6
    assert len(used) <= 32


def test_edges_of_flat_ones_lines_and_points():
    square = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [0.5, 0.5, 1]], float)
    assert edges(square) == [(0, 1), (0, 3), (1, 2), (2, 3)]
    assert edges(np.array([[0, 0, 0], [2, 2, 2], [1, 1, 1.0]])) == [(0, 1)]
    assert edges(np.array([[1, 2, 3.0]])) == []
    assert outline(shapes.Polytope([[1, 2, 3]])).shape == (0, 3)


@pytest.mark.parametrize("normal", [(0, 0, 1), (1, 2, -3)])
def test_a_half_space_is_a_grid_of_its_plane(normal):
    plane = shapes.HalfSpace(normal, 0.7)
    center = np.array([3.0, -1.0, 2.0])
    points = outline(plane, center, 0.5)
    points = points[~np.isnan(points).any(axis=1)]
    assert points @ plane.normal == pytest.approx(plane.offset, abs=1e-12)
    foot = center + (plane.offset - center @ plane.normal) * np.array(plane.normal)
    assert np.linalg.norm(points - foot, axis=1).max() == pytest.approx(0.5 * 2**0.5)
    assert points.mean(axis=0) == pytest.approx(foot)


def test_sizes_of_zero_draw_no_nan_in_lines():
    for shape in (shapes.Sphere(0), shapes.Capsule(0, 1), shapes.Box(1, 0, 0), shapes.Cylinder(0, 0)):
        assert np.isfinite(points_of(shape)).all()
        assert len(points_of(shape))


def test_others_are_refused():
    with pytest.raises(od.ShapeError, match="none of the shapes"):
        outline("box")
    assert joined([]).shape == (0, 3)
