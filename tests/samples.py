"""Robots that the tests share: every kind of joint, chains, trees, fixed and floating bases, all generic."""

import importlib.metadata

import casadi as ca
import numpy as np
import pytest

from oc_dyn.lie import so3
from oc_dyn.model.builder import RobotBuilder
from oc_dyn.model.joints import KINDS, QUATERNIONS, WITHOUT_AXIS


def rotation(rng):
    """A uniformly random rotation matrix."""
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.linalg.det(Q))


def rolling(q):
    """Pose of an egg that rolls and steers: no axis of it stays in the body."""
    R = so3.rot_x(q[0]) @ so3.rot_y(0.3 * ca.sin(q[0]) + q[1]) @ so3.rot_z(q[0] * q[1])
    return R, ca.vertcat(0.1 * q[0] + 0.2 * q[1] ** 2, 0.3 * ca.cos(q[1]), 0.05 * q[0] * q[1])


def build(kinds, parents=None, seed=0, floating_base=False, armature=False, mimic=None, name="test"):
    """Robot with generic placements, axes and inertias: joint k moves link k, attached to link parents[k]."""
    rng = np.random.default_rng(seed)
    b = RobotBuilder(name)
    parents = parents or list(range(len(kinds)))
    for k in range(len(kinds) + 1):
        half = rng.uniform(0.05, 0.2, 3)
        R = rotation(rng)
        tensor = (
            R @ np.diag([half[1] ** 2 + half[2] ** 2, half[0] ** 2 + half[2] ** 2, half[0] ** 2 + half[1] ** 2]) @ R.T
        )
        mass = rng.uniform(0.5, 2)
        b.add_link(f"link{k}", mass=mass, com=rng.uniform(-0.2, 0.2, 3), inertia=mass * tensor)
    for k, kind in enumerate(kinds):
        b.add_joint(
            f"joint{k + 1}",
            kind,
            parent=f"link{parents[k]}",
            child=f"link{k + 1}",
            xyz=rng.uniform(-0.4, 0.4, 3),
            rotation=rotation(rng),
            **({} if kind in WITHOUT_AXIS else {"axis": rng.normal(size=3)}),
            **({"pitch": 0.13} if kind == "helical" else {}),
            **({"transform": rolling, "coordinates": 2} if kind == "transform" else {}),
            **({"armature": 0.1 * (k + 1)} if armature else {}),
            **({"mimic": mimic[k]} if mimic and k in mimic else {}),
        )
    return b.build(floating_base=floating_base)


ROBOTS = {
    "serial": lambda: build(["revolute"] * 4, seed=1, armature=True),
    "branching": lambda: build(["revolute", "revolute", "revolute", "continuous", "revolute"], [0, 1, 1, 3, 0], seed=2),
    "floating": lambda: build(["revolute", "revolute", "revolute"], [0, 1, 0], seed=3, floating_base=True),
    "prismatic": lambda: build(
        ["prismatic", "revolute", "prismatic", "prismatic"], [0, 1, 2, 1], seed=4, armature=True
    ),
    "spherical": lambda: build(["spherical", "revolute", "spherical"], [0, 1, 1], seed=5),
    "planar": lambda: build(["planar", "revolute", "planar"], [0, 1, 1], seed=6),
    "helical": lambda: build(["revolute", "helical", "helical"], [0, 1, 2], seed=7),
    "free": lambda: build(["revolute", "free", "revolute"], [0, 1, 2], seed=8),
    "cylindrical": lambda: build(["cylindrical", "revolute", "cylindrical"], [0, 1, 1], seed=10, armature=True),
    "universal": lambda: build(["universal", "universal", "revolute"], [0, 1, 1], seed=11),
    "mimic": lambda: build(
        ["revolute", "revolute", "prismatic", "revolute"],
        [0, 1, 2, 1],
        seed=9,
        armature=True,
        mimic={2: ("joint1", -0.5, 0.1), 3: ("joint2", 1.5, 0.2)},
    ),
}
ROBOTS["transform"] = lambda: build(["transform", "revolute", "transform"], [0, 1, 1], seed=12)
ROBOTS |= {  # of kinds that none of these has
    kind: lambda kind=kind: build([kind, "revolute", kind], [0, 1, 1], seed=13)
    for kind in KINDS
    if kind not in (*ROBOTS, "revolute", "continuous")
}
SMALL = {  # for what grows fast with the order
    "small serial": lambda: build(["revolute"] * 3, seed=21, armature=True),
    "small branching": lambda: build(["revolute", "revolute", "continuous"], [0, 1, 1], seed=22),
    "small floating": lambda: build(["revolute", "revolute"], [0, 0], seed=23, floating_base=True),
    "small prismatic": lambda: build(["prismatic", "revolute", "prismatic"], [0, 1, 1], seed=24, armature=True),
    "small spherical": lambda: build(["spherical", "revolute"], [0, 1], seed=25),
}
_BUILT = {}


def scene(length=1.0):
    """A scene for robots with links link1 and link2, of pairs that every method can do; length: that of a metre."""
    import oc_dyn as od

    def at(x, y, z):
        C = np.eye(4)
        C[:3, 3] = length * np.array([x, y, z])
        return C

    out = od.Scene().attach("one", "link1", od.shapes.Sphere(0.1 * length), at(0.1, 0.2, 0.3))
    out = out.attach("two", "link2", od.shapes.Sphere(0.05 * length), at(-0.2, 0.1, 0.1))
    out = out.add("ball", od.shapes.Sphere(0.2 * length), at(1.0, 2.0, 3.0))
    return out.add("ground", od.shapes.HalfSpace((0.1, 0.2, 1.0), -3.0 * length))


def robot(name):
    """The shared robot of this name, built once."""
    if name not in _BUILT:
        _BUILT[name] = {**ROBOTS, **SMALL}[name]()
    return _BUILT[name]


def random_ports(function, robot, seed=0):
    """{port: numbers} for a Function of a robot; quaternions have unit length."""
    rng = np.random.default_rng(seed)
    out = {}
    for k, name in enumerate(function.name_in()):
        out[name] = rng.normal(size=function.size_in(k))
        if name == "q":
            out[name] = robot.random_configuration(seed)
    return out


def scaled_quaternions(robot, q, factor):
    """q (nq,) with its quaternions so many times as long."""
    q = np.array(q, float)
    for j in robot.joints:
        if j.kind in QUATERNIONS:
            q[j.q_index : j.q_index + 4] *= factor
    return q


def carried_far(robot, q, distance=1e4):
    """q (nq,) with the first bodies carried so far [m] along each axis that their joints allow."""
    q = np.array(q, float)
    for j in (b.joint for b in robot.bodies if b.parent == 0 and b.joint.mimic is None):
        first = {"free": 4, "planar": 1, "prismatic": 0}.get(j.kind, j.nq)
        q[j.q_index + first : j.q_index + j.nq] += distance
    return q


def relative(a, b):
    """Largest difference between two arrays, relative to the largest entry of the second (or to one)."""
    a, b = np.array(a, float), np.array(b, float)
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) if a.size else 0.0


def functions_of(robot, quantity, order, **options):
    """[(method name, Function)] of every method that can do this robot and order."""
    import oc_dyn as od
    from oc_dyn.registry import get_method

    return [
        (m, od.function(robot, quantity, order=order, method=m, **options))
        for m in od.methods(quantity)
        if get_method(quantity, m).refusal(robot, order) is None
    ]


def example_robot(path):
    """File of the wheel example-robot-data, by its path below "robots"; the test is skipped without the wheel."""
    try:
        files = importlib.metadata.files("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    for file in files:
        if str(file).endswith("/robots/" + path):
            return file.locate()
    raise FileNotFoundError(path)
