"""Robots with loops that the tests share, at seeded configurations."""

import functools

import casadi as ca
import numpy as np

import oc_dyn as od


@functools.cache
def linkage(name):
    """One of the package's, or of those below."""
    return globals()[name]() if name in globals() else getattr(od.robots, name)()


def geared():
    """Two coupled joints on an arm of three: no loop, a coordinate that is a function of another."""
    b = od.RobotBuilder("geared")
    b.add_link("base")
    rod = {"mass": 1.0, "com": (0.1, 0.02, 0), "inertia": (0.01, 0, 0, 0.02, 0, 0.02)}
    b.add_body("upper", "revolute", "base", joint="first", axis=(0, 1, 0), **rod)
    b.add_body("middle", "revolute", "upper", joint="second", xyz=(0.3, 0, 0), axis=(0, 0, 1), **rod)
    b.add_body("lower", "prismatic", "middle", joint="third", xyz=(0.2, 0, 0), axis=(1, 0, 0), **rod)
    b.couple("third", ("first", "second"), lambda x: 0.1 * ca.sin(x[0]) * x[1] + 0.05 * x[1] ** 2)
    return b.build()


def floating_four_bar():
    """A four-bar linkage whose ground link floats."""
    b = od.RobotBuilder("floating")
    b.add_link("frame", mass=2.0, com=(0.3, 0, 0.1), inertia=(0.1, 0.01, 0, 0.2, 0, 0.2))
    rod = {"mass": 0.5, "com": (0.2, 0.01, 0), "inertia": (1e-3, 0, 0, 0.02, 0, 0.02)}
    b.add_body("crank", "revolute", "frame", joint="a", axis=(0, 1, 0), **rod)
    b.add_body("coupler", "revolute", "crank", joint="b", xyz=(0.3, 0, 0), axis=(0, 1, 0), **rod)
    b.add_body("rocker", "revolute", "frame", joint="c", xyz=(0.7, 0, 0), axis=(0, 1, 0), **rod)
    b.close_loop("d", "coupler", "rocker", xyz_a=(0.8, 0, 0), xyz_b=(0.6, 0, 0), axis=(0, 1, 0), independent=("a",))
    return b.build(floating_base=True, start={"a": -1.0, "b": 0.5, "c": -1.2})


def floating_leg():
    """The leg with a linkage at its knee, its trunk floating."""
    return od.robots.knee_linkage_leg(floating_base=True)


def floating_humanoid():
    """The humanoid whose pelvis moves."""
    return od.robots.humanoid(floating_base=True)


BENNETT = {"a": 0.3, "b": 0.5, "alpha": 0.6, "beta": float(np.arcsin(np.sin(0.6) * 0.5 / 0.3))}


def bennett_builder():
    """RobotBuilder of Bennett's linkage: four hinges in space, lengths a, b and twists alpha, beta in turn, that turn
    all round; three rows of the five that its loop holds are independent, no three of them everywhere."""
    a, b, alpha, beta = BENNETT.values()

    def turned(angle):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])

    rod = {"mass": 1.0, "com": (0.1, 0.02, 0.01), "inertia": np.diag([0.01, 0.02, 0.015]), "axis": (0, 0, 1)}
    out = od.RobotBuilder("bennett")
    out.add_link("base")
    out.add_body("l1", "continuous", "base", joint="j1", **rod)
    out.add_body("l2", "continuous", "l1", joint="j2", xyz=(a, 0, 0), rpy=(alpha, 0, 0), **rod)
    out.add_body("l3", "continuous", "l2", joint="j3", xyz=(b, 0, 0), rpy=(beta, 0, 0), **rod)
    frames = {"xyz_a": (a, 0, 0), "rotation_a": turned(alpha), "xyz_b": (-b, 0, 0), "rotation_b": turned(beta).T}
    out.close_loop("hinge", "l3", "base", **frames, independent=("j1",))
    return out


def bennett():
    """Bennett's linkage."""
    return bennett_builder().build(start={"j1": 0.7, "j2": -2.0, "j3": 0.7})


def bennett_with_rocker():
    """Bennett's linkage whose second joint is the crank of a four-bar linkage on the first link, in the same block."""
    return _with_rocker(0.4, 0.3, {"j1": 0.7, "j2": -3.4, "j3": -0.7, "c": 2.5, "r": 2.0})


def bennett_with_parallelogram():
    """The same, the four-bar linkage a parallelogram."""
    q = 2 * np.arctan2(2.567 * np.cos(1.2), np.sin(1.2))
    return _with_rocker(0.35, 0.1, {"j1": 2.4, "j2": q, "j3": -2.4, "c": -q, "r": q})


def _with_rocker(coupler, rocker, start):
    b = bennett_builder()
    rod = {"mass": 0.5, "com": (0.1, 0, 0), "inertia": np.diag([1e-3] * 3), "axis": (0, 0, 1)}
    b.add_body("coupler", "continuous", "l2", joint="c", xyz=(0.1, 0, 0.1), **rod)
    turn = (BENNETT["alpha"], 0, 0)
    place = np.array([BENNETT["a"] + 0.35, -0.1 * np.sin(0.6), 0.1 * np.cos(0.6)])
    b.add_body("rocker", "continuous", "l1", joint="r", xyz=place, rpy=turn, **rod)
    b.close_loop("pin", "coupler", "rocker", xyz_a=(coupler, 0, 0), xyz_b=(rocker, 0, 0), axis=(0, 0, 1))
    return b.build(start=start)


def three_rods(name, second=0.3, ground=0.7):
    """RobotBuilder of a linkage that is still open: links a, b on a, and c beside it, each on a hinge about y."""
    b = od.RobotBuilder(name)
    b.add_link("base")
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": np.diag([1e-3] * 3), "axis": (0, 1, 0)}
    b.add_body("a", "revolute", "base", **rod)
    b.add_body("b", "revolute", "a", xyz=(second, 0, 0), **rod)
    b.add_body("c", "revolute", "base", xyz=(ground, 0, 0), **rod)
    return b


FIXED = ("four_bar", "six_bar", "slider_crank", "planar_3rrr", "differential_ankle", "knee_linkage_leg", "geared")
NAMES = (*FIXED, "bennett", "gough_stewart", "floating_four_bar", "floating_leg")
SMALL = ("four_bar", "geared")


def state(robot, order, seed=0):
    """(q, [v, dv, ...]) of the robot's own coordinates, closed."""
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng)
    return q, [rng.normal(size=robot.nv) for _ in range(order + 1)]


def all_of(robot, q, V):
    """(q of the tree, [v, dv, ...] of the tree, [G, dG, ...])."""
    found = [np.array(x) for x in od.function(robot, "loop_closure", order=len(V))(q, *V)]
    return found[0].ravel(), [x.ravel() for x in found[1 : 1 + len(V)]], found[1 + len(V) : 2 + 2 * len(V)]


def largest(x, y):
    """Largest difference, relative to the largest entry where that is above one."""
    x, y = np.array(x, float), np.array(y, float)
    return np.abs(x - y).max(initial=0.0) / max(1.0, np.abs(y).max(initial=0.0))
