"""Distances of convex shapes: 100000 random pairs of every two kinds, their derivatives, and what they cost.

Values of the quantity distances are compared with numbers that certify themselves (oc_dyn.scene.numeric) and, where it
is installed, with coal, whose tolerances are set to 1e-10. A distance above the true one would be unsafe. Shapes that
overlap are left out of the comparison, as coal is not exact there if they are curved.
"""

import itertools
from pathlib import Path

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..files import write_csv
from ..function import function
from ..model.builder import RobotBuilder
from ..robots import panda
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..scene import PORT, Scene
from ..scene import shapes as s
from ..scene.closed_forms import has_closed_form
from ..scene.numeric import separation
from ..scene.smooth_support import bound
from ..subexpressions import merged
from ..text import in_columns
from .apart import typed

SHAPES = {
    "sphere": s.Sphere(0.1),
    "capsule": s.Capsule(0.05, 0.3),
    "box": s.Box(0.3, 0.2, 0.1),
    "cylinder": s.Cylinder(0.1, 0.3),
    "ellipsoid": s.Ellipsoid(0.3, 0.1, 0.05),
    "polytope": s.Polytope(tuple(map(tuple, np.random.default_rng(5).normal(size=(12, 3)) * 0.1))),
    "half-space": s.HalfSpace((0.3, -0.2, 1.0), 0.05),
}
PAIRS = [x for x in itertools.combinations_with_replacement(SHAPES, 2) if x != ("half-space", "half-space")]
COUNT, QUICK = 100_000, 200
CERTIFIED = 2_000  # of them beside our own numbers, which take longer
SLOPES = 20  # of them with derivatives by differences
STEP = 1e-6
FIELDS = ("pair", "form", "pairs", "apart", "bound [m]", "largest below coal [m]", "largest above coal [m]")
FIELDS += ("largest below numbers [m]", "largest above numbers [m]", "numbers against coal [m]", "not finite")
FIELDS += ("gradient error", "Hessian error", "value", "gradient", "Hessian")
PANDA = ("what", "instructions", "of inverse_dynamics_partials")
CAPTIONS = {
    "distances.csv": "Differences of d from the true distance where shapes are apart, derivatives against central "
    "differences where shapes are 1 cm apart and more, and instructions of one pair between a free body and the world.",
    "panda.csv": "Instructions of the self-collision of the Panda: capsules on all links, and as spheres.",
}
DERIVATIVES = ("distances_partials", "distances_adjoint", "distances_lagrangian_hessian")


def run(out, quick=False, progress=None):
    """Measure, and write distances.csv, panda.csv and manifest.json to the folder `out`; returns the tables.

    quick: few pairs. progress: show a bar on stderr; default on a terminal only.
    """
    rows, count = [], QUICK if quick else COUNT
    with bar(progress, len(PAIRS), "distances", " kinds") as shown:
        for kinds in PAIRS:
            shown.set_postfix_str(" ".join(kinds))
            rows.append(measured(kinds, count))
            shown.update()
    counts = panda_rows()
    write_csv(Path(out) / "distances.csv", [FIELDS, *rows])
    write_csv(Path(out) / "panda.csv", [PANDA, *counts])
    command = typed("distances", out, quick)
    versions = {"coal": _coal().__version__ if _coal() else "not installed"}
    write_json(Path(out) / "manifest.json", manifest(command, pairs=count, seed=0, **versions))
    return "\n\n".join(map(in_columns, ([FIELDS, *rows], [PANDA, *counts])))


def free_body():
    """A body whose frame is where q = (quaternion, position) puts it."""
    b = RobotBuilder("free")
    b.add_link("base")
    b.add_link("body", mass=1.0, inertia=np.eye(3))
    b.add_joint("joint", "free", "base", "body")
    return b.build()


def drawn(count, seed=0):
    """(q (7, k), poses of b (k, 4, 4)): a turned and near the origin, b turned and 0.05 to 1 m away."""
    rng = np.random.default_rng(seed)
    turns = rng.normal(size=(2, count, 4))
    turns /= np.linalg.norm(turns, axis=2, keepdims=True)
    away = rng.normal(size=(count, 3))
    away *= rng.uniform(0.05, 1.0, (count, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    near = rng.normal(size=(count, 3)) * 0.02
    return np.hstack([turns[0], near]).T, poses(turns[1], away)


def poses(quaternions, positions):
    """(k, 4, 4) from unit quaternions (w, x, y, z) (k, 4) and positions (k, 3)."""
    w, x, y, z = quaternions.T
    out = np.zeros((len(w), 4, 4))
    out[:, :3, 0] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=1)
    out[:, :3, 1] = np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], axis=1)
    out[:, :3, 2] = np.cross(out[:, :3, 0], out[:, :3, 1])
    out[:, :3, 3], out[:, 3, 3] = positions, 1.0
    return out


def measured(kinds, count, seed=0):
    """A row of FIELDS."""
    a, b = (SHAPES[k] for k in kinds)
    body, scene = free_body(), Scene().attach("a", "body", a).add("b", b, PORT)
    f = function(body, "distances", scene=scene)
    J, A, H = (function(body, x, scene=scene) for x in DERIVATIVES)
    q, B = drawn(count, seed)
    d = np.array(ca.Function(f).map(count)(q, np.hstack(list(B)))).ravel()
    first = poses(q[:4].T, q[4:].T)
    some = min(count, CERTIFIED)
    numbers = separation(a, first[:some], b, B[:some])[0]
    theirs = by_coal(a, first, b, B)
    apart = (numbers if theirs is None else theirs) > 1e-6
    by_number = (numbers - d[:some])[numbers > 1e-6]
    cells = [0.0 if has_closed_form(a, b) else bound(a) + bound(b)]
    cells += ["", ""] if theirs is None else [(theirs - d)[apart].max(), (d - theirs)[apart].max()]
    cells += [by_number.max(), -by_number.min()]
    near = numbers > 1e-6
    cells.append("" if theirs is None else np.abs(numbers - theirs[:some])[near].max())
    errors = slopes(body, f, J, A, H, q, B, d)
    form = "closed" if has_closed_form(a, b) else "smooth_support"
    told = [f"{x:.1e}" if isinstance(x, float) else x for x in map(_plain, cells)]
    row = [" - ".join(kinds), form, count, int(apart.sum()), *told, int((~np.isfinite(d)).sum())]
    return [*row, *(f"{x:.1e}" for x in errors), *(x.n_instructions() for x in (f, J, H))]


def _plain(x):
    return x if isinstance(x, str) else float(x)


def slopes(body, f, J, A, H, q, B, d):
    """(error of the gradient, error of the Hessian) against central differences, relative to the largest entry or 1."""
    worst = np.zeros(2)
    for k in np.flatnonzero(d > 0.01)[:SLOPES]:
        at, there = q[:, k], B[k]
        moved = [[body.integrate(at, sign * STEP * e) for sign in (1, -1)] for e in np.eye(6)]
        values = [[float(f(q=x, poses=there)["d"]) for x in pair] for pair in moved]
        gradients = [[np.array(A(q=x, poses=there, lam_d=1)["adj_q"]).ravel() for x in pair] for pair in moved]
        by_step = np.array([(x - y) / (2 * STEP) for x, y in values])
        curved = np.array([(x - y) / (2 * STEP) for x, y in gradients])
        ours = (
            (J(q=at, poses=there)["dd_dq"], by_step[None]),
            (H(q=at, poses=there, lam_d=1)["H"], (curved + curved.T) / 2),
        )
        worst = np.maximum(worst, [np.abs(np.array(x) - y).max() / max(1, np.abs(y).max()) for x, y in ours])
    return worst


def panda_scene(shape=None):
    """Capsules, or balls, on the links of the Panda and on its hand, of which 27 pairs can meet."""
    sizes = (
        (0.08, 0.10),
        (0.07, 0.2),
        (0.07, 0.2),
        (0.07, 0.15),
        (0.07, 0.15),
        (0.065, 0.25),
        (0.06, 0.1),
        (0.05, 0.15),
    )
    scene = Scene()
    for k, (radius, length) in enumerate(sizes):
        there = np.eye(4)
        there[2, 3] = 0.03 * k - 0.1
        own = s.Capsule(radius, length) if shape is None else s.Sphere(radius)
        scene = scene.attach(f"link{k}", f"panda_link{k}", own, there)
    across = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0.05], [0, 0, 0, 1]])
    scene = scene.attach("hand", "panda_link8", s.Capsule(0.05, 0.1) if shape is None else s.Sphere(0.05), across)
    near = [(f"link{k}", f"link{k + 1}") for k in range(7)]
    return scene.leave_out(*near, ("hand", "link7"), ("hand", "link6"))


def panda_rows():
    """Rows of PANDA."""
    robot = panda()
    against = function(robot, "inverse_dynamics_partials").n_instructions()
    rows = [("inverse_dynamics_partials", against, "1.00")]
    for name, scene in (("capsules", panda_scene()), ("balls", panda_scene("ball"))):
        found = [function(robot, x, scene=scene) for x in ("distances", *DERIVATIVES)]
        counts = {f.name().removesuffix("_0"): f.n_instructions() for f in found}
        counts["value, gradients and Hessian in one Function"] = together(robot, scene).n_instructions()
        rows += [(f"{len(scene.pairs)} pairs of {name}: {k}", x, f"{x / against:.2f}") for k, x in counts.items()]
    return rows


def together(robot, scene):
    """casadi.Function (q, lam_d) -> d, dd_dq, H in scalars, with what they share written once."""
    q, lam = ca.SX.sym("q", robot.nq), ca.SX.sym("lam_d", len(scene.pairs))
    f, J, _, H = (function(robot, x, scene=scene) for x in ("distances", *DERIVATIVES))
    outputs = [f(q=q)["d"], J(q=q)["dd_dq"], H(q=q, lam_d=lam)["H"]]
    return ca.Function("together", [q, lam], merged(outputs))


def by_coal(a, A, b, B):
    """(k,) distances by coal; None where it is not installed."""
    coal = _coal()
    if coal is None:
        return None
    request, first, second = coal.DistanceRequest(), in_coal(coal, a), in_coal(coal, b)
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    pairs = zip(*([coal.Transform3s(C[:3, :3], C[:3, 3]) for C in x] for x in (A, B)), strict=True)
    return np.array([coal.distance(first, x, second, y, request, coal.DistanceResult()) for x, y in pairs])


def _coal():
    try:
        import coal
    except ImportError:
        return None
    return coal


def in_coal(coal, shape):
    """The shape as one of coal's."""
    if isinstance(shape, s.Polytope):
        points = coal.StdVec_Vec3s()
        points.extend(list(shape.points))
        return coal.Convex.convexHull(points, False, "Qt")
    sizes = {
        s.Sphere: ("radius",),
        s.Capsule: ("radius", "length"),
        s.Box: ("x", "y", "z"),
        s.Cylinder: ("radius", "length"),
        s.Ellipsoid: ("a", "b", "c"),
    }
    if isinstance(shape, s.HalfSpace):
        return coal.Halfspace(np.array(shape.normal), shape.offset)
    if type(shape) not in sizes:
        raise ShapeError(f"study distances: no shape of coal for {shape!r}")
    return getattr(coal, type(shape).__name__)(*(getattr(shape, k) for k in sizes[type(shape)]))
