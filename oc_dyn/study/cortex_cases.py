"""What the study embedded compiles for Cortex-M: Functions, laws, players and predictive controllers, in float."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import casadi as ca
import numpy as np

from .. import elastic as el
from .. import robots
from ..codegen.product_files import files_of
from ..codegen.write import codegen
from ..control.controller_codegen import controller_product
from ..control.mpc import mpc
from ..elastic.generate import law_code
from ..elastic.law_codegen import law_product
from ..function import function
from ..optimal_control.problem import Problem
from ..planning.limits import Limits
from ..planning.trajectory import Trajectory, joint_units
from ..targets.player import player_product

HOME = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])  # of the Panda [rad]
JUMP = np.array([0.2, 0.1, -0.1, 0.2, 0.1, -0.2, 0.3])
FUNCTIONS = {"frame_pose": {"frame": "panda_link8"}, "inverse_dynamics": {}, "mass_matrix": {}, "forward_dynamics": {}}
LAWS = {
    "gravity_pd": lambda arm: el.gravity_pd(arm, 500.0, 20.0),
    "computed_torque": lambda arm: el.computed_torque(arm, 500.0, 20.0),
    "feedforward_pd": lambda arm: el.feedforward_pd(arm, 500.0, 20.0),
    "feedback_linearization": lambda arm: el.feedback_linearization(arm, 20.0),
}


@dataclass(frozen=True)
class Case:
    """C in a folder. header, sources: file names; name: start of the symbols; entry: what a step is called; given
    (K, n): inputs of steps, doubles where `wide`; expected (K, m): real numbers of the outputs in double precision, by
    Python; ends: where each output ends in them; least: what its errors are at least relative to; statuses: of the
    steps."""

    folder: Path
    header: str
    sources: tuple
    name: str
    entry: str
    given: np.ndarray
    expected: np.ndarray
    ends: tuple
    least: tuple
    statuses: tuple
    wide: bool


def cases(quick=False):
    """[(kind, what, function of a folder that makes the Case in it)]."""
    panda, flat = robots.panda(), robots.planar_2r()
    out = [("function", q, lambda f, q=q: of_function(f, panda, q, FUNCTIONS[q])) for q in FUNCTIONS]
    out += [("law", law, lambda f, law=law: of_law(f, LAWS[law](elastic_panda()))) for law in LAWS]
    out += [
        ("player", "links", lambda f: of_motion(f, to_and_fro(panda))),
        ("player", "links, torques", lambda f: of_motion(f, to_and_fro(panda), torques=True)),
        ("player", "links, motors", lambda f: of_motion(f, elastic_plan())),
        ("controller", "2R, N = 10", lambda f: of_controller(f, flat, np.zeros(2), np.full(2, 0.3), 10, 0.05)),
    ]
    for n in (5,) if quick else (10, 20):
        out.append(("controller", f"Panda, N = {n}", lambda f, n=n: of_controller(f, panda, HOME, JUMP, n, 0.02)))
    return out


def elastic_panda():
    """The Panda on springs."""
    return el.elastic_robot(robots.panda(), 7000.0, motor_inertia=0.3)


def to_and_fro(robot):
    """Trajectory from home to a goal and back, four times continuously differentiable."""
    there = el.rest_to_rest(HOME, HOME + 3 * JUMP, 1.5)
    back = el.rest_to_rest(HOME + 3 * JUMP, HOME, 1.5)
    t, pieces = np.append(there.t, 3.0), np.concatenate([there.pieces, back.pieces])
    return Trajectory(t, pieces, joints=robot.coordinate_names, units=joint_units(robot), robot=robot)


def elastic_plan():
    """The same motion with the motors that it takes."""
    arm = elastic_panda()
    return el.ElasticPlan(arm, to_and_fro(arm.links), {}, 3.0, {})


def of_function(folder, robot, quantity, options):
    """A quantity of a robot at random points."""
    f, rng = function(robot, quantity, **options), np.random.default_rng(0)
    starts = np.cumsum([0, *(f.numel_in(i) for i in range(f.n_in()))])
    given = rng.uniform(-1, 1, (3, starts[-1])).astype(np.float32).astype(float)
    rows = [[row[a:b].reshape(f.size_in(i), order="F") for i, (a, b) in _spans(starts)] for row in given]
    expected = [np.concatenate([x.full().ravel(order="F") for x in f.call([ca.DM(x) for x in row])]) for row in rows]
    code = codegen(f, folder, name="panda", precision="single")
    ends = tuple(np.cumsum([f.numel_out(i) for i in range(f.n_out())]).tolist())
    sources, (name,) = tuple(x.name for x in code.sources), code.functions.values()
    return Case(
        folder,
        "panda.h",
        sources,
        name,
        "evaluate",
        given,
        np.array(expected),
        ends,
        (0.0,) * len(ends),
        (0,) * 3,
        False,
    )


def _spans(starts):
    return enumerate(pairwise(starts))


def of_law(folder, law):
    """A law of an elastic robot."""
    code, texts = law_code(law, "law", 1e-3, 1e5, precision="single")
    return of_product(folder, law_product(code, texts))


def of_motion(folder, motion, **options):
    """A player."""
    return of_product(folder, player_product("embedded", motion, "move", precision="single", **options))


def of_controller(folder, robot, home, jump, nodes, h):
    """A predictive controller of positions by torques that moves a robot to a target."""
    n, limits = len(home), Limits.of(robot)
    holding = np.abs(function(robot, "inverse_dynamics")(home, np.zeros(n), np.zeros(n)).full()).max()
    most = np.where(np.isfinite(limits.tau), limits.tau, 2 * holding + 10)
    ocp = Problem(nodes, nodes * h)
    q, v, a = ocp.state("q", n, guess=home, scale=1), ocp.state("v", n), ocp.control("a", n)
    q_now, v_now, target = ocp.parameter("q_now", n), ocp.parameter("v_now", n), ocp.parameter("target", n)
    tau = function(robot, "inverse_dynamics", derivatives="analytic")(q, v, a)
    ocp.next(q, q + h * (v + h * a))
    ocp.next(v, v + h * a)
    ocp.limit(-1, tau / most, 1)
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=np.sqrt(2 / h) * ca.vertcat(q - target, v / 10, tau / most / 10))
    ocp.minimize(terminal=10 * ca.sumsqr(q - target) + ca.sumsqr(v))
    control = mpc(ocp, outputs={"tau": tau}, method="euler", output_bounds={"tau": (-most, most)}, iterations=1)
    points = [{"q_now": home + 1e-3 * k, "v_now": np.full(n, 0.01 * k), "target": home + jump} for k in range(3)]
    return of_product(folder, controller_product(control, precision="single", points=points))


def of_product(folder, product):
    """What is written about a product: its recorded steps."""
    for file, text in files_of(product).items():
        Path(folder, file).write_text(text, encoding="utf-8")
    rows = np.array(product.given), np.array(product.expected)
    least = tuple(np.broadcast_to(product.least, len(product.ends)))
    facts = product.name, "step", *rows, tuple(product.ends), least, tuple(product.statuses), product.wide
    return Case(folder, f"{product.name}.h", tuple(product.sources), *facts)
