"""Distances of pairs of shapes: values against numbers and coal, derivatives, degenerate places, refusals."""

import dataclasses
import itertools

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative, robot, rotation

import oc_dyn as od
from oc_dyn.lie.quick import quick
from oc_dyn.scene.closed_forms import has_closed_form
from oc_dyn.scene.distances import by_kind
from oc_dyn.scene.numeric import separation
from oc_dyn.scene.placed import Placed
from oc_dyn.scene.smooth_support import bound

s = od.shapes
CORNERS = np.random.default_rng(5).normal(size=(5, 3)) * 0.1
SHAPES = {
    "sphere": s.Sphere(0.1),
    "capsule": s.Capsule(0.05, 0.3),
    "box": s.Box(0.3, 0.2, 0.1),
    "cylinder": s.Cylinder(0.1, 0.3),
    "ellipsoid": s.Ellipsoid(0.3, 0.1, 0.05),
    "polytope": s.Polytope(CORNERS),
    "plate": s.Box(0.3, 0.2, 0.0),
    "half-space": s.HalfSpace((0.3, -0.2, 1.0), 0.05),
}
PAIRS = [x for x in itertools.combinations_with_replacement(SHAPES, 2) if x != ("half-space", "half-space")]
DERIVATIVES = ("distances_partials", "distances_adjoint", "distances_lagrangian_hessian")
BY_AD = [("capsule", "capsule"), ("capsule", "box"), ("ellipsoid", "half-space"), ("cylinder", "half-space")]


def pose(R, p):
    C = np.eye(4)
    C[:3, :3], C[:3, 3] = R, p
    return C


def random_poses(seed, near, far):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    offset = direction / np.linalg.norm(direction) * rng.uniform(near, far)
    return pose(rotation(rng), rng.normal(size=3) * 0.05), pose(rotation(rng), offset)


def free_body():
    """A body that is where q = (w, x, y, z, position) puts it, with its frame at the root for q = (1, 0, ..., 0)."""
    b = od.RobotBuilder("free")
    b.add_link("base")
    b.add_link("body", mass=1.0, inertia=np.eye(3))
    b.add_joint("joint", "free", "base", "body")
    return b.build()


FREE = free_body()
REST = np.array([1.0, 0, 0, 0, 0, 0, 0])


def pair(a, b, method=None, name="distances", pose_b=None, **options):
    """The Function of the distance of a on the free body and b, which is at the port poses, or at pose_b."""
    scene = od.Scene().attach("a", "body", a).add("b", b, od.scene.PORT if pose_b is None else pose_b)
    return od.function(FREE, name, scene=scene, method=method, **options)


def quaternion(C):
    """Coordinates of the free body at a pose."""
    R, w = C[:3, :3], np.sqrt(max(0.0, 1 + np.trace(C[:3, :3]))) / 2
    x = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w)
    return np.concatenate([[w], x, C[:3, 3]])


@pytest.mark.few(16)
@pytest.mark.sample(1)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_within_the_bound_and_never_above(kinds):
    a, b = (SHAPES[k] for k in kinds)
    f = pair(a, b, witnesses=True)
    most = 1e-12 if has_closed_form(a, b) else bound(a) + bound(b) + 1e-9
    for seed in range(6):
        A, B = random_poses(seed, 0.2, 0.8)
        d, n, _, _ = separation(a, A, b, B)
        found = f(q=quaternion(A), poses=B)
        assert float(found["d"]) <= d + 1e-12
        if d > 0:
            assert float(found["d"]) >= d - most
            assert n @ np.array(found["p_b"] - found["p_a"]).ravel() == pytest.approx(
                d, abs=2 * most + 1e-3 * most**0.5
            )


@pytest.mark.sample(4)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_numbers_certify_themselves(kinds):
    """The nearest points are in the shapes, and as far apart as the distance says."""
    a, b = (SHAPES[k] for k in kinds)
    many = [random_poses(seed, 0.2, 0.8) for seed in range(20)]
    A, B = (np.array(x) for x in zip(*many, strict=True))
    d, n, p_a, p_b = separation(a, A, b, B)
    apart = d > 0
    assert apart.any()
    assert np.abs(np.linalg.norm(p_b - p_a, axis=1) - d)[apart].max() < 1e-7
    assert np.allclose(np.linalg.norm(n, axis=1), 1)
    one = separation(a, A[0], b, B[0])
    assert one[0] == pytest.approx(d[0], abs=1e-10)
    swapped = separation(b, B, a, A)[0]
    assert np.abs(swapped - d)[apart].max() < 1e-9


@pytest.mark.few(16)
@pytest.mark.sample(2)
@pytest.mark.parametrize("kinds", [p for p in PAIRS if p != ("half-space",)], ids="-".join)
def test_numbers_against_coal(kinds):
    coal = pytest.importorskip("coal")
    a, b = (SHAPES[k] for k in kinds)
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    for seed in range(20):
        A, B = random_poses(seed, 0.2, 0.8)
        theirs = coal.distance(in_coal(a), transform(A), in_coal(b), transform(B), request, coal.DistanceResult())
        ours = separation(a, A, b, B)[0]
        if ours > 1e-6:  # that of coal below 0 fails for curved shapes
            assert ours == pytest.approx(theirs, abs=5e-8)


def transform(C):
    import coal

    return coal.Transform3s(C[:3, :3], C[:3, 3])


def in_coal(shape):
    import coal

    if isinstance(shape, s.Polytope):
        points = coal.StdVec_Vec3s()
        points.extend(list(shape.points))
        return coal.Convex.convexHull(points, False, "Qt")
    if isinstance(shape, s.HalfSpace):
        return coal.Halfspace(np.array(shape.normal), shape.offset)
    return getattr(coal, type(shape).__name__)(*(getattr(shape, x.name) for x in dataclasses.fields(shape)))


# -- derivatives ------------------------------------------------------------------------------------------------------


def on_links(a, b):
    """a on the last link and b on the first, and in the world."""
    rng = np.random.default_rng(3)
    scene = od.Scene().attach("a", "link4", a, pose(rotation(rng), [0.1, 0.1, 0.3]))
    scene = scene.attach("b", "link1", b, pose(rotation(rng), [-0.5, 0.1, 0.1]))
    return scene.add("c", b, pose(rotation(rng), [-0.5, -0.8, 0.6])).leave_out(("b", "c"))


@pytest.mark.few(12)
@pytest.mark.sample(1)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_derivatives_by_differences(kinds):
    r, scene = robot("serial"), on_links(*(SHAPES[k] for k in kinds))
    f, J, H = (od.function(r, x, scene=scene) for x in ("distances", DERIVATIVES[0], DERIVATIVES[2]))
    lam = np.array([0.7, -1.3])
    for seed in range(3):
        q = r.random_configuration(seed)
        if np.min(f(q=q)["d"]) < 0.01:
            continue
        steps = 1e-5 * np.eye(r.nv)
        slopes = np.column_stack([np.array(f(q=q + e)["d"] - f(q=q - e)["d"]).ravel() / 2e-5 for e in steps])
        assert relative(J(q=q)["dd_dq"], slopes) < 1e-8
        curved = [lam @ np.array(J(q=q + e)["dd_dq"] - J(q=q - e)["dd_dq"]) / 2e-5 for e in steps]
        assert relative(H(q=q, lam_d=lam)["H"], np.column_stack(curved)) < 1e-6


@pytest.mark.sample(1)
@pytest.mark.parametrize("kinds", BY_AD, ids="-".join)
def test_derivatives_by_ad(kinds):
    r, scene = robot("serial"), on_links(*(SHAPES[k] for k in kinds))
    for quantity in DERIVATIVES:
        ours, ad = (od.function(r, quantity, scene=scene, method=m) for m in ("by_kind", "ad"))
        for seed in range(3):
            ports = random_ports(ours, r, seed)
            (x,), (y,) = (list(f(**ports).values()) for f in (ours, ad))
            assert relative(x, y) < 1e-7


@pytest.mark.sample("mimic")
@pytest.mark.parametrize(
    "name", ["serial", "branching", "floating", "spherical", "planar", "mimic", "universal", "transform"]
)
def test_capsules_on_all_links_of_a_robot(name):
    r = robot(name)
    scene = od.Scene().add("pole", s.Capsule(0.05, 2.0)).add("ground", s.HalfSpace((0, 0, 1), -1))
    for k, b in enumerate(r.bodies):
        scene = scene.attach(f"{k}", b.name, s.Capsule(0.05, 0.3), pose(np.eye(3), [0.1 * k, 0.1, 0]))
    for quantity in DERIVATIVES:
        ours, ad = (od.function(r, quantity, scene=scene, method=m) for m in (None, "ad"))
        for seed in range(4):
            ports = random_ports(ours, r, seed)
            (x,), (y,) = (list(f(**ports).values()) for f in (ours, ad))
            assert relative(x, y) < 1e-9


@pytest.mark.sample("capsule-box")
@pytest.mark.parametrize("method", [None, "smooth_support"])
def test_registered_derivatives_are_those_of_the_method(method):
    r, scene = robot("serial"), on_links(s.Capsule(0.05, 0.3), s.Sphere(0.2))
    f = od.function(r, "distances", scene=scene, derivatives="analytic", method=method)
    assert max(od.check_derivatives(f).values()) < 1e-7


def test_registered_derivatives_by_time():
    """By what moves an obstacle, derivatives are those of AD, besides the analytic ones by q."""
    t = ca.SX.sym("t")
    there = ca.Function(
        "there", [t], [ca.vertcat(ca.horzcat(ca.SX.eye(3), ca.vertcat(t, 2, 0)), ca.SX([[0, 0, 0, 1]]))]
    )
    scene = on_links(s.Capsule(0.05, 0.3), s.Capsule(0.1, 0.4)).add("car", s.Sphere(0.2), there)
    f = od.function(robot("serial"), "distances", scene=scene, derivatives="analytic")
    assert f.name_in() == ["q", "t"]
    assert max(od.check_derivatives(f).values()) < 1e-7


# -- places without a derivative ---------------------------------------------------------------------------------------

TILTED = pose(rotation(np.random.default_rng(1)), [0.2, 0.1, -0.1])
DEGENERATE = {
    "same place": np.eye(4),
    "along z": pose(np.eye(3), [0, 0, 0.2]),
    "far along z": pose(np.eye(3), [0, 0, 0.9]),
    "along x": pose(np.eye(3), [0.2, 0, 0]),
    "far along x": pose(np.eye(3), [0.9, 0, 0]),
    "upside down": pose(np.diag([1.0, -1, -1]), [0.3, 0, 0]),
    "across": pose(np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), [0.0, 0, 0]),
    "barely apart": pose(np.eye(3), [1e-13, 0, 0]),
    "tilted": TILTED,
}
POINTS = [s.Sphere(0), s.Capsule(0, 0), s.Box(0, 0, 0), s.Cylinder(0, 0), s.Ellipsoid(0, 0, 0), s.Polytope([[0, 0, 0]])]
FLAT = [
    s.Capsule(0, 0.3),
    s.Capsule(0.1, 0),
    s.Box(0.3, 0.2, 0),
    s.Box(0.3, 0, 0),
    s.Cylinder(0.1, 0),
    s.Cylinder(0, 0.1),
]
FLAT += [s.Ellipsoid(0.1, 0.2, 0), s.Ellipsoid(0.1, 0, 0), s.Polytope([[0, 0, 0], [0.1, 0, 0]])]
USUAL = [SHAPES[k] for k in ("sphere", "capsule", "box", "cylinder", "ellipsoid", "polytope", "half-space")]
ODD = [*itertools.combinations_with_replacement(USUAL[:-1], 2), *itertools.product([*POINTS, *FLAT], USUAL[1:3])]


def everything(a, b):
    """casadi.Function of the pose of b, a at the root, of all that a pair gives: d, n, points, and second derivatives
    by twists of either."""
    C = ca.SX.sym("C", 4, 4)
    first = Placed("a", a, ca.DM.eye(3), ca.DM.zeros(3))
    x, _ = by_kind(first, Placed("b", b, quick(C[:3, :3]), quick(C[:3, 3])))
    both = x.second(ca.SX(1), 0)
    twists = [(quick(ca.SX(w)), quick(ca.SX(v))) for w, v in ((e[:3], e[3:]) for e in np.eye(6))]
    products = [y for t in twists for side in both(*t) for y in side]
    return ca.Function("everything", [C], [x.d, ca.vertcat(x.n, x.point_a, x.point_b), ca.vertcat(*products)])


@pytest.mark.sample(1)
@pytest.mark.parametrize("a, b", ODD, ids=lambda x: repr(x).replace(" ", "")[:40])
def test_never_nan(a, b):
    f = everything(a, b)
    for where, B in DEGENERATE.items():
        numbers = separation(a, np.eye(4), b, B)
        assert all(np.isfinite(x).all() for x in numbers), where
        found = [np.array(x) for x in f(B)]
        assert all(np.isfinite(x).all() for x in found), where
        assert np.linalg.norm(found[1][:3]) == pytest.approx(1, abs=1e-5)
        assert found[0].item() <= numbers[0] + 1e-9


@pytest.mark.parametrize("a, b", [("capsule", "capsule"), ("sphere", "capsule"), ("capsule", "box")])
def test_derivatives_are_never_nan(a, b):
    """Those of the quantities, too."""
    a, b = SHAPES[a], SHAPES[b]
    J, H = (pair(a, b, name=x) for x in (DERIVATIVES[0], DERIVATIVES[2]))
    for where, B in DEGENERATE.items():
        assert np.isfinite(np.array(J(q=REST, poses=B)["dd_dq"])).all(), where
        assert np.isfinite(np.array(H(q=REST, poses=B, lam_d=1.0)["H"])).all(), where


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", DEGENERATE)
def test_capsules_that_are_parallel_or_meet(where):
    B = DEGENERATE[where]
    f, a, b = pair(s.Capsule(0.05, 0.3), s.Capsule(0.04, 0.5)), s.Capsule(0.05, 0.3), s.Capsule(0.04, 0.5)
    ends = [np.array([0, 0, x]) for x in np.linspace(-0.15, 0.15, 301)]
    others = [B[:3, :3] @ [0, 0, x] + B[:3, 3] for x in np.linspace(-0.25, 0.25, 501)]
    least = min(np.linalg.norm(x - np.array(others), axis=1).min() for x in ends)
    assert float(f(q=REST, poses=B)["d"]) == pytest.approx(least - 0.09, abs=1e-5)
    assert separation(a, np.eye(4), b, B)[0] == pytest.approx(float(f(q=REST, poses=B)["d"]), abs=1e-12)


# -- ports and refusals ------------------------------------------------------------------------------------------


def test_order_of_pairs_and_witnesses():
    """Points belong to the shape they say, also where a half-space or a capsule comes first."""
    scene = od.Scene().attach("rod", "body", s.Capsule(0.1, 0.4)).add("ground", s.HalfSpace((0, 0, 1), -1))
    scene = scene.add("ball", s.Sphere(0.2), pose(np.eye(3), [1, 0, 0]))
    f = od.function(FREE, "distances", scene=scene, witnesses=True)
    assert scene.pairs == (("rod", "ground"), ("rod", "ball"))
    found = f(q=REST)
    assert np.allclose(found["d"], [[0.7], [0.7]])
    assert np.allclose(found["p_a"], np.array([[0, 0, -0.3], [0.1, 0, 0]]).T)
    assert np.allclose(found["p_b"], np.array([[0, 0, -1], [0.8, 0, 0]]).T)


@pytest.mark.sample(1)
@pytest.mark.parametrize("other", [s.Sphere(0.05), s.Capsule(0.05, 0.3)], ids=["sphere", "capsule"])
@pytest.mark.parametrize("swapped", [False, True])
def test_round_shapes_beside_and_in_a_box_are_exact(other, swapped):
    """Against numbers by other formulas, overlaps included; aligned shapes too. The way along n parts deep shapes."""
    box, rng = s.Box(0.3, 0.2, 0.1), np.random.default_rng(2)
    a, b = (box, other) if swapped else (other, box)
    scene = od.Scene().attach("a", "body", a).add("b", b)
    f = od.function(FREE, "distances", scene=scene, witnesses=True)
    met = 0
    for k in range(300):
        R = np.eye(3)[:, [1, 2, 0]] if k % 5 == 0 else rotation(rng)
        C = pose(R, rng.normal(size=3) * 0.15)
        d, n, *_ = separation(a, C, b, np.eye(4))
        found = {x: np.array(y).ravel() for x, y in f(q=quaternion(C)).items()}
        assert abs(found["d"][0] - d) < 1e-9
        assert abs(n @ (found["p_b"] - found["p_a"]) - d) < 1e-9
        if d < -0.06:
            met += 1
            moved = pose(R, C[:3, 3] + (d - 1e-6) * n)  # parted along n, by no more than the depth
            assert separation(a, moved, b, np.eye(4))[0] > 0
            part = pose(R, C[:3, 3] + 0.9 * d * n)
            assert separation(a, part, b, np.eye(4))[0] < 0
    assert met > 5


def test_derivatives_in_a_box_by_differences():
    """Where a capsule is deep in a box, between two ways out."""
    r, scene = robot("serial"), on_links(s.Capsule(0.05, 0.3), s.Box(1.0, 0.8, 0.9))
    f, J = (od.function(r, x, scene=scene) for x in ("distances", DERIVATIVES[0]))
    deep = 0
    for seed in range(40):
        q = r.random_configuration(seed)
        d, steps = np.array(f(q=q)["d"]).ravel(), 1e-6 * np.eye(r.nv)
        slopes = np.column_stack([np.array(f(q=q + e)["d"] - f(q=q - e)["d"]).ravel() / 2e-6 for e in steps])
        rows = d < -0.06
        deep += rows.sum()
        assert np.allclose(np.array(J(q=q)["dd_dq"])[rows], slopes[rows], atol=1e-7)
    assert deep > 3


def test_margins_do_not_count():
    scene = (
        od.Scene().attach("a", "body", s.Sphere(0.1), margin=0.05).add("b", s.Sphere(0.1), pose(np.eye(3), [1, 0, 0]))
    )
    assert float(od.function(FREE, "distances", scene=scene)(q=REST)["d"]) == pytest.approx(0.8)


def test_no_pairs():
    scene = od.Scene().add("a", s.Sphere(0.1))
    r = robot("serial")
    assert od.function(r, "distances", scene=scene).size_out("d") == (0, 1)
    assert od.function(r, "distances_partials", scene=scene).size_out("dd_dq") == (0, r.nv)
    assert np.array_equal(
        od.function(r, "distances_lagrangian_hessian", scene=scene)(q=np.zeros(r.nq))["H"], 0 * np.eye(r.nv)
    )


def test_a_method_names_the_pair_that_it_cannot_do():
    scene = od.Scene().attach("tool", "body", s.Box(1, 1, 1)).add("can", s.Cylinder(0.1, 0.2))
    with pytest.raises(od.ShapeError, match="no closed form for 'tool', a Box, and 'can', a Cylinder"):
        od.function(FREE, "distances", scene=scene, method="closed_forms")


def test_refused():
    with pytest.raises(od.ShapeError, match=r"'a' and 'b' are both half-spaces.*leave_out\(\('a', 'b'\)\)"):
        pair(s.HalfSpace((0, 0, 1)), s.HalfSpace((0, 0, 1)))
    scene = od.Scene().attach("a", "hand", s.Sphere(0.1)).add("b", s.Sphere(0.1))
    with pytest.raises(od.UnknownName, match="hand"):
        od.function(FREE, "distances", scene=scene)
    with pytest.raises(od.ShapeError, match="expected an od.Scene"):
        od.function(FREE, "distances")
    with pytest.raises(od.ShapeError, match="two half-spaces"):
        separation(s.HalfSpace((0, 0, 1)), np.eye(4), s.HalfSpace((0, 0, 1)), np.eye(4))
    with pytest.raises(od.ShapeError, match="pose_b: got shape"):
        separation(s.Sphere(1), np.eye(4), s.Sphere(1), np.eye(3))
    with pytest.raises(od.ShapeError, match="2 poses of a and 3 of b"):
        separation(s.Sphere(1), np.array([np.eye(4)] * 2), s.Sphere(1), np.array([np.eye(4)] * 3))
