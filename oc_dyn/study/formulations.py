"""Formulations of distances inside an optimiser: ours, separating planes, Minkowski sums of ellipsoids.

A body with six joints goes round an obstacle on the shortest way, in nodes: the sum of squared steps is least, ends are
given, and every node keeps a clearance. The same programs are solved by ipopt with exact Hessians, from the same ways:

    distances   the quantity with its analytic derivatives, an unknown less a distance each
    planes      a separating plane for every node as unknowns, corners on their sides of it (OBCA: Zhang, Liniger,
                Borrelli 2021, Optimization-Based Collision Avoidance; here with planes for its multipliers)
    outside     planes between the shapes where the last solution has them, as numbers; again until nothing changes
                (after arXiv 2505.11376)
    minkowski   the centre outside an ellipsoid around the Minkowski sum of two and of a ball of the clearance
                (Kurzhanski and Valyi 1997; exact boundaries: arXiv 2409.12007); of ellipsoids alone

Clearances are those of nodes, by numbers that certify themselves.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from ..files import write_csv
from ..function import function
from ..model.builder import RobotBuilder
from ..optimal_control.avoid import distances
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..scene import Scene, exact_distances
from ..scene import shapes as s
from ..scene.numeric import separation
from ..text import in_columns
from .apart import typed

CORNERS = tuple(map(tuple, np.random.default_rng(5).normal(size=(12, 3)) * 0.15))
PAIRS = {
    "box - box": (s.Box(0.3, 0.2, 0.1), s.Box(0.4, 0.4, 0.3)),
    "polytope - capsule": (s.Polytope(CORNERS), s.Capsule(0.1, 0.4)),
    "ellipsoid - ellipsoid": (s.Ellipsoid(0.2, 0.1, 0.05), s.Ellipsoid(0.3, 0.2, 0.15)),
}
SEEDS, NODES, CLEARANCE = 3, 15, 0.02
TURNS = 0.05  # weight of squared angles against squared lengths [m^2]
AGAIN, DONE = 50, 1e-4  # rounds with planes outside; change of the unknowns that ends them
FIELDS = ("pair", "formulation", "seed", "solved", "iterations", "rounds", "seconds", "building [s]", "cost")
FIELDS += ("clearance [m]", "unknowns", "rows")
CAPTIONS = {
    "formulations.csv": "Shortest ways round an obstacle with a clearance of 0.02 m at the nodes: iterations of ipopt, "
    "processor time of solving and of building, the cost, and the least distance at nodes by numbers."
}


@dataclass(frozen=True, eq=False)
class Case:
    """A pair of shapes with ends (2, 6) and a way (NODES, 6) to begin with."""

    pair: str
    a: s.Shape
    b: s.Shape
    way: np.ndarray


def run(out, quick=False, progress=None):
    """Measure, and write formulations.csv and manifest.json to the folder `out`; returns the table."""
    rows, seeds = [], 1 if quick else SEEDS
    with bar(progress, len(PAIRS) * seeds, "formulations", " programs") as shown:
        for pair in PAIRS:
            for seed in range(seeds):
                case = drawn(pair, seed)
                for name, solve in FORMS.items():
                    if name != "minkowski" or isinstance(case.a, s.Ellipsoid):
                        rows.append(measured(case, name, solve, seed))
                shown.update()
    write_csv(Path(out) / "formulations.csv", [FIELDS, *rows])
    command = typed("formulations", out, quick)
    write_json(Path(out) / "manifest.json", manifest(command, seeds=seeds, nodes=NODES, clearance=CLEARANCE))
    return in_columns([FIELDS, *rows])


def flyer():
    """A body on three prismatic joints and three revolute ones."""
    b, last = RobotBuilder("flyer"), "base"
    b.add_link("base")
    joints = [*(("prismatic", x) for x in np.eye(3)), *(("revolute", x) for x in np.eye(3)[::-1])]
    for k, (kind, axis) in enumerate(joints):
        link = "body" if k == 5 else f"link{k}"
        b.add_link(link, mass=1.0, inertia=np.eye(3))
        b.add_joint(f"joint{k}", kind, last, link, axis=tuple(axis))
        last = link
    return b.build()


def drawn(pair, seed):
    """Case of a seed: from one side of the obstacle to the other, turned, the way to begin with bent round it."""
    rng = np.random.default_rng(seed)
    ends = np.array([[-0.8, 0, 0, 0, 0, 0], [0.8, 0, 0, 0, 0, 0]]) + rng.uniform(-1, 1, (2, 6)) * [*[0.1] * 3, *[1] * 3]
    share = np.linspace(0, 1, NODES)[:, None]
    bend = rng.normal(size=2)
    way = ends[0] + share * (ends[1] - ends[0])
    way[:, 1:3] += np.sin(np.pi * share) * 0.5 * bend / np.linalg.norm(bend)
    return Case(pair, *PAIRS[pair], way)


def measured(case, name, solve, seed):
    """A row of FIELDS."""
    robot = flyer()
    scene = Scene().attach("a", "body", case.a).add("b", case.b)
    Q, found = solve(robot, scene, case)
    apart = float(exact_distances(robot, scene, Q).min())
    cost = float(_cost(Q.T))
    return (
        case.pair, name, seed, "yes" if found["solved"] else "no", found["iterations"], found["rounds"],
        f"{found['seconds']:.3f}", f"{found['building']:.2f}", f"{cost:.6f}", f"{apart:.6f}", found["unknowns"],
        found["rows"],
    )  # fmt: skip


# -- the program --------------------------------------------------------------------------------------------------


def _cost(Q):
    """Of nodes (6, NODES): squared steps, those of angles weighed."""
    steps = Q[:, 1:] - Q[:, :-1]
    return (NODES - 1) * (ca.sumsqr(steps[:3, :]) + TURNS * ca.sumsqr(steps[3:, :]))


class _Program:
    """min cost over nodes and what `more` there is, with rows g between bounds, solved by ipopt."""

    def __init__(self, case, g, lower, upper, Q, more=None, p=None):
        begun = time.process_time()
        self.case, self.Q, more = case, Q, ca.MX(0, 1) if more is None else more
        self.bounds = (np.broadcast_to(lower, g.numel()), np.broadcast_to(upper, g.numel()))
        x = ca.vertcat(ca.vec(Q), more)
        self.sizes = x.numel(), g.numel()
        nlp = {"x": x, "f": _cost(Q), "g": g} | ({} if p is None else {"p": p})
        quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "max_iter": 500}}
        self.solver = ca.nlpsol("way", "ipopt", nlp, quiet)
        self.building = time.process_time() - begun

    def solve(self, x0, p=None):
        """(unknowns, solved, iterations, seconds) from x0; the ends are kept."""
        lower, upper = (np.full(self.sizes[0], x) for x in (-np.inf, np.inf))
        fixed = [*range(6), *range(6 * (NODES - 1), 6 * NODES)]
        lower[fixed] = upper[fixed] = self.case.way.ravel()[fixed]
        given = {"x0": x0, "lbx": lower, "ubx": upper, "lbg": self.bounds[0], "ubg": self.bounds[1]}
        begun = time.process_time()
        found = self.solver(**given, **({} if p is None else {"p": p}))
        seconds, told = time.process_time() - begun, self.solver.stats()
        return np.array(found["x"]).ravel(), bool(told["success"]), told["iter_count"], seconds


def _once(program, x0, begun):
    x, solved, iterations, seconds = program.solve(x0)
    facts = {"solved": solved, "iterations": iterations, "rounds": 1, "seconds": seconds}
    facts |= {"building": begun + program.building, "unknowns": program.sizes[0], "rows": program.sizes[1]}
    return x[: 6 * NODES].reshape(NODES, 6), facts


def _nodes():
    return ca.MX.sym("Q", 6, NODES)


def by_distances(robot, scene, case):
    """(nodes (NODES, 6), facts) by the quantity."""
    begun, Q = time.process_time(), _nodes()
    d = distances(robot, scene).map(NODES)(Q)
    inner = ca.vec(d[:, 1:-1])
    return _once(_Program(case, inner, CLEARANCE, np.inf, Q), case.way.ravel(), time.process_time() - begun)


def _pose(robot):
    q = ca.SX.sym("q", 6)
    found = function(robot, "frame_pose", frame="body")(q=q)
    return ca.Function("pose", [q], [found["R"], found["p"]])


def _beyond(shape, R, p, n):
    """(k,) how far each corner of a shape reaches along n, its ball included; for ellipsoids the support function."""
    if isinstance(shape, s.Ellipsoid):
        m = ca.mtimes(R.T, n) * ca.DM([shape.a, shape.b, shape.c])
        return ca.dot(n, p) + ca.sqrt(ca.sumsqr(m) + 1e-16)
    if isinstance(shape, s.Capsule):
        corners, radius = np.array([[0, 0, -shape.length / 2], [0, 0, shape.length / 2]]), shape.radius
    elif isinstance(shape, s.Box):
        half = np.array([shape.x, shape.y, shape.z]) / 2
        corners, radius = np.array(np.meshgrid(*([-1, 1],) * 3)).reshape(3, -1).T * half, 0.0
    else:
        corners, radius = shape.points, 0.0
    return ca.mtimes(ca.DM(corners), ca.mtimes(R.T, n)) + ca.dot(n, p) + radius * ca.sqrt(ca.sumsqr(n) + 1e-16)


def _sides(robot, case):
    """Function (q, n, o) -> rows, at least 0, of a plane n . x = o, |n| <= 1, with a below it and b above it."""
    q, n, o = ca.SX.sym("q", 6), ca.SX.sym("n", 3), ca.SX.sym("o")
    R, p = _pose(robot)(q)
    below = o - _beyond(case.a, R, p, n)
    above = -_beyond(case.b, ca.DM.eye(3), ca.DM.zeros(3), -n) - o - CLEARANCE
    return ca.Function("sides", [q, n, o], [ca.vertcat(below, above)])


def _normals(robot, case, Q):
    """(normals (NODES, 3), offsets (NODES,)) of planes that touch b across the directions of least distance."""
    R, p = (np.array(x) for x in _pose(robot).map(NODES)(Q.T))
    C = np.tile(np.eye(4), (NODES, 1, 1))
    C[:, :3, :3], C[:, :3, 3] = R.reshape(3, NODES, 3).swapaxes(0, 1), p.T
    n = np.asarray(separation(case.a, C, case.b, np.tile(np.eye(4), (NODES, 1, 1)))[1])
    origin = ca.DM.eye(3), ca.DM.zeros(3)
    reach = np.array([float(ca.mmax(_beyond(case.b, *origin, ca.DM(-x)))) for x in n])
    return n, -reach - CLEARANCE


def by_planes(robot, scene, case):
    """(nodes, facts) with planes as unknowns."""
    begun, Q, planes = time.process_time(), _nodes(), ca.MX.sym("planes", 4, NODES)
    rows = _sides(robot, case).map(NODES)(Q, planes[:3, :], planes[3, :])[:, 1:-1]
    size = ca.sum1(planes[:3, :] ** 2)[1:-1]
    g = ca.vertcat(ca.vec(rows), ca.vec(size))
    lower = np.concatenate([np.zeros(rows.numel()), np.full(size.numel(), -np.inf)])
    upper = np.concatenate([np.full(rows.numel(), np.inf), np.ones(size.numel())])
    n, o = _normals(robot, case, case.way)
    x0 = np.concatenate([case.way.ravel(), np.column_stack([n, o]).ravel()])
    return _once(_Program(case, g, lower, upper, Q, ca.vec(planes)), x0, time.process_time() - begun)


def by_planes_outside(robot, scene, case):
    """(nodes, facts) with planes as numbers, found again between solves."""
    begun, Q, planes = time.process_time(), _nodes(), ca.MX.sym("planes", 4, NODES)
    rows = ca.vec(_sides(robot, case).map(NODES)(Q, planes[:3, :], planes[3, :])[:, 1:-1])
    program = _Program(case, rows, 0.0, np.inf, Q, p=ca.vec(planes))
    building, x, total = time.process_time() - begun, case.way.ravel(), np.zeros(2)
    rounds, change = 0, np.inf
    while rounds < AGAIN:
        begun = time.process_time()
        n, o = _normals(robot, case, x.reshape(NODES, 6))
        new, solved, iterations, _ = program.solve(x, np.column_stack([n, o]).ravel())
        rounds += 1
        total += iterations, time.process_time() - begun
        change, x = np.abs(new - x).max(), new
        if not solved or change < DONE:
            break
    facts = {"solved": solved and change < DONE, "iterations": int(total[0]), "rounds": rounds, "seconds": total[1]}
    facts |= {"building": building, "unknowns": program.sizes[0], "rows": program.sizes[1]}
    return x.reshape(NODES, 6), facts


def by_minkowski(robot, scene, case):
    """(nodes, facts) with an ellipsoid around the Minkowski sum of both and of a ball."""
    begun, Q, q = time.process_time(), _nodes(), ca.SX.sym("q", 6)
    R, p = _pose(robot)(q)
    own, other = (ca.DM(np.diag([x.a**2, x.b**2, x.c**2])) for x in (case.a, case.b))
    M = _around(_around(ca.mtimes([R, own, R.T]), other), CLEARANCE**2 * ca.DM.eye(3))
    outside = ca.Function("outside", [q], [ca.dot(p, ca.solve(M, p))])
    g = ca.vec(outside.map(NODES)(Q)[:, 1:-1])
    return _once(_Program(case, g, 1.0, np.inf, Q), case.way.ravel(), time.process_time() - begun)


def _around(A, B):
    """Matrix of the ellipsoid of least trace around the Minkowski sum of x' A^-1 x <= 1 and x' B^-1 x <= 1."""
    a, b = ca.sqrt(ca.trace(A)), ca.sqrt(ca.trace(B))
    return (a + b) * (A / a + B / b)


FORMS = {
    "distances": by_distances,
    "planes": by_planes,
    "outside": by_planes_outside,
    "minkowski": by_minkowski,
}
