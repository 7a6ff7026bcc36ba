"""What loops cost: four-bar linkages in a chain, by constraint embedding and by multipliers.

Each linkage, three links and a pin, stands on the coupler of the one before. Counted are CasADi instructions at closed
coordinates: of embedding, inverse dynamics and forward dynamics, by the mass matrix of the independent coordinates and
by articulated inertias of clusters; of multipliers, forward dynamics of the tree; and a step of Newton that closes all
loops. Exponents are slopes between the two longest chains. Times are of compiled C, beside Pinocchio's constraint
dynamics, whose time holds its call from Python, on the same chain with its pins held in the plane.
"""

from pathlib import Path

import casadi as ca
import numpy as np

from ..files import write_csv
from ..function import function
from ..loops.closing import newton_step
from ..loops.clusters import is_clustered
from ..loops.embedding import at_tree
from ..model.builder import RobotBuilder
from ..registry import get
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import apart
from .native import compiler, laps, times

LINKAGES = (1, 2, 4, 8, 16)
WAYS = ("inverse, embedding", "forward, mass matrix", "forward, clusters", "forward, multipliers", "step of Newton")
FIELDS = ("linkages", "bodies", *WAYS, "default of forward")
TIMED = ("linkages", "forward, embedding [us]", "forward, multipliers [us]", "Pinocchio [us]")
LARGEST = 20_000  # instructions: larger Functions are counted and not timed
CAPTIONS = {
    "loops.csv": "Instructions at closed coordinates of four-bar linkages in a chain; the last row has the slopes of "
    "their logarithms over the number of bodies, between the two longest chains.",
    "times.csv": "Times of compiled C at closed coordinates, and of Pinocchio's constraintDynamics with its call from "
    "Python; the least of several runs.",
    "loops.png": "Instructions over the number of bodies.",
}


def run(out, quick=False, progress=None):
    """Measure, write loops.csv, times.csv, loops.png and manifest.json to the folder `out`; returns the tables."""
    from .paper_figures import plot_series

    sizes, rows, timed = LINKAGES[:3] if quick else LINKAGES, [], []
    with bar(progress, len(sizes), "loops", " chains") as shown:
        for n in sizes:
            robot = linkages(n)
            counts = counted(robot)
            best = "clusters" if is_clustered(robot) else "mass matrix"
            rows.append((n, len(robot.bodies), *counts.values(), best))
            if compiler() and not quick:
                timed.append((n, *measured(robot)))
            shown.update()
    bodies = [row[1] for row in rows]
    slopes = [f"{slope(bodies, [row[k] for row in rows]):.2f}" for k in range(2, 2 + len(WAYS))]
    table = [FIELDS, *rows, ("slope", "", *slopes, "")]
    write_csv(Path(out) / "loops.csv", table)
    text = in_columns(table)
    if timed:
        write_csv(Path(out) / "times.csv", [TIMED, *timed])
        text += "\n\n" + in_columns([TIMED, *timed])
    lines = [(way, bodies, [row[2 + k] for row in rows], "-") for k, way in enumerate(WAYS)]
    plot_series([("four-bar linkages in a chain", "bodies", "instructions", "log", lines)], Path(out) / "loops.png", "")
    command = apart.typed("loops", out, quick)
    facts = {"slopes": dict(zip(WAYS, map(float, slopes), strict=True))}
    write_json(Path(out) / "manifest.json", manifest(command, **facts))
    return text


def linkages(count):
    """LoopRobot of so many four-bar linkages, each on the coupler of the one before; cranks have the motors."""
    b, start = RobotBuilder("linkages"), {}
    b.add_link("base")
    turn, on, at = {"axis": (0, 1, 0)}, "base", np.zeros(3)
    for k in range(1, count + 1):
        b.add_body(f"crank{k}", "revolute", on, joint=f"a{k}", xyz=at, **turn, **_rod(0.3))
        b.add_body(f"coupler{k}", "revolute", f"crank{k}", joint=f"b{k}", xyz=(0.3, 0, 0), **turn, **_rod(0.8))
        b.add_body(f"rocker{k}", "revolute", on, joint=f"c{k}", xyz=np.add(at, (0.7, 0, 0)), **turn, **_rod(0.6))
        ends = {"xyz_a": (0.8, 0, 0), "xyz_b": (0.6, 0, 0), "independent": (f"a{k}",)}
        b.close_loop(f"pin{k}", f"coupler{k}", f"rocker{k}", **ends, **turn)
        start |= {f"a{k}": -1.0, f"b{k}": 0.5, f"c{k}": -1.2}
        on, at = f"coupler{k}", np.array([0.9, 0.0, 0.1])
    return b.build(start=start)


def _rod(length):
    about = length**3 / 12
    return {"mass": length, "com": (length / 2, 0.01, 0.0), "inertia": np.diag([1e-3, about, about])}


def counted(robot):
    """{way: instructions}."""
    ways = [
        embedded(robot, "inverse_dynamics"),
        *(embedded(robot, "forward_dynamics", way) for way in (False, True)),
        function(robot, "constrained_dynamics"),
        newton_step(robot, None),
    ]
    return {name: f.n_instructions() for name, f in zip(WAYS, ways, strict=True)}


def embedded(robot, quantity, by_clusters=None):
    """casadi.Function of a quantity of order 0 at closed coordinates; by_clusters: how it solves, None for the best."""
    record = get(quantity)
    options = {"external_wrenches": False, "friction": False, "parameters": None, "motors": None}
    options |= {"clustered": by_clusters}
    ports = record.inputs(robot, 0, options), record.outputs(robot, 0, options)
    return at_tree(robot, quantity, 0, None, *ports, options, function)


def slope(bodies, values):
    """Exponent of growth between the two longest chains."""
    (a, b), (x, y) = np.log(bodies[-2:]), np.log(values[-2:])
    return (y - x) / (b - a)


def measured(robot):
    """(time of forward dynamics by embedding, by multipliers, of Pinocchio), microseconds; "" for those not timed."""
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(2, robot.nv))
    G, at = (np.array(function(robot, "loop_closure")(robot.neutral())[k]) for k in (1, 0))
    embed = embedded(robot, "forward_dynamics")
    own = [ca.SX.sym(f"x{k}", *embed.size_in(k)) for k in range(3)]
    x = [ca.SX.sym(f"x{k}", robot.tree.nq if k == 0 else robot.tree.nv) for k in range(3)]
    explicit = function(robot, "constrained_dynamics")
    pair = [ca.Function("embedding", own, embed.call(own)), ca.Function("multipliers", x, explicit.call(x))]
    rows = robot.rows("v", robot.independent)
    torques = np.zeros(robot.tree.nv)
    torques[rows] = tau
    sets = [(at, v, tau), (at, G @ v, torques)]
    out = []
    for f, values in zip(pair, sets, strict=True):
        ports = {f"i{k}": y for k, y in enumerate(values)}
        small = f.n_instructions() < LARGEST
        out.append(f"{1e6 * np.min(times([f], ports)):.3g}" if small else "")
    return (*out, _pinocchio(robot, at, G @ v, torques))


def _pinocchio(robot, q, v, tau, calls=20):
    """Microseconds of constraintDynamics with the pins held in the plane; "" without Pinocchio."""
    try:
        import pinocchio as pin
    except ImportError:
        return ""
    if not hasattr(pin, "BaumgarteCorrectorParameters"):
        return ""
    model, number = pin.Model(), {0: 0}
    model.gravity.linear = np.array(robot.gravity)
    for b in robot.tree.bodies:
        place = pin.SE3(np.array(b.rotation), np.array(b.translation))
        axis = pin.JointModelRevoluteUnaligned(*b.joint.axis)
        number[b.index] = model.addJoint(number[b.parent], axis, place, b.joint.name)
        inertia = pin.Inertia(b.inertia.mass, np.array(b.inertia.com), np.array(b.inertia.tensor_com))
        model.appendBodyToJoint(number[b.index], inertia, pin.SE3.Identity())
    order = np.argsort([model.idx_vs[number[b.index]] for b in robot.tree.bodies])
    q, v, tau = (np.ravel(x)[order] for x in (q, v, tau))
    point, pins = pin.ContactType.CONTACT_3D, []
    for loop in robot.loops:
        ends = zip(
            loop.bodies, (loop.rotation_a, loop.rotation_b), (loop.translation_a, loop.translation_b), strict=True
        )
        frames = [y for body, R, p in ends for y in (number[body], pin.SE3(np.array(R), np.array(p)))]
        pins.append(pin.RigidConstraintModel(point, model, *frames, pin.LOCAL))
    data, states = model.createData(), [x.createData() for x in pins]
    settings = pin.ProximalSettings(1e-9, 1e-9, 1e-8, 20)
    pin.initConstraintDynamics(model, data, pins, states)
    found = laps([lambda: pin.constraintDynamics(model, data, q, v, tau, pins, states, settings)], 51, calls)
    return f"{1e6 * np.min(found):.3g}"
