"""Small robots of stated numbers, and chains and trees of any size for tests and scaling studies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..lie import so3
from ..model.builder import RobotBuilder
from ..model.robot import Robot
from ..types import Array

_MOST = 10_000  # bodies: more would take all memory long before they were of use


def double_pendulum() -> Robot:
    """Two equal rods on a vertical plane; q = 0 hangs straight down.

    Each rod: 1 m long, 1 kg, 20 mm in diameter, its centre of mass in the middle. Joints shoulder and elbow turn about
    -y: positive angles swing the rods from -z towards +x. Frame "tip" is the free end.
    """
    b = RobotBuilder("double_pendulum")
    b.add_link("base")
    rod: dict[str, Any] = {
        "mass": 1.0,
        "com": (0.0, 0.0, -0.5),
        "inertia": _rod(1.0, 1.0, 0.01, "z"),
        "axis": (0.0, -1.0, 0.0),
    }
    b.add_body("upper", "continuous", "base", joint="shoulder", **rod)
    b.add_body("lower", "continuous", "upper", joint="elbow", xyz=(0.0, 0.0, -1.0), **rod)
    b.add_frame("tip", "lower", xyz=(0.0, 0.0, -1.0))
    return b.build()


def planar_2r() -> Robot:
    """The textbook arm of two revolute joints in the vertical x-z plane; q = 0 lies straight along x.

    Each link: 0.5 m long, 10 kg, a slender rod (20 mm in diameter) with its centre of mass in the middle. Joints turn
    about -y, so that positive angles lift the arm. Position limits 170 degrees, velocity 3 rad/s, torque 150 and 60 Nm.
    Frame "tip" is the free end.
    """
    b = RobotBuilder("planar_2r")
    b.add_link("base")
    rod: dict[str, Any] = {
        "mass": 10.0,
        "com": (0.25, 0.0, 0.0),
        "inertia": _rod(10.0, 0.5, 0.01, "x"),
        "axis": (0.0, -1.0, 0.0),
    }
    rod |= {"lower": np.radians(-170), "upper": np.radians(170), "velocity": 3.0}
    b.add_body("upper", "revolute", "base", joint="shoulder", effort=150.0, **rod)
    b.add_body("lower", "revolute", "upper", joint="elbow", xyz=(0.5, 0.0, 0.0), effort=60.0, **rod)
    b.add_frame("tip", "lower", xyz=(0.5, 0.0, 0.0))
    return b.build()


def planar_arm(n: int = 2, length: float = 0.4, mass: float = 3.0, name: str | None = None) -> Robot:
    """n equal slender rods in a row in the vertical x-z plane; q = 0 lies straight along x.

    length [m], mass [kg]: of each rod, its centre of mass in the middle. Links link1 .. n; joints joint1 .. n turn
    about -y, so that positive angles lift the arm, and have no limits. Frame "tip" is the free end. Raises ShapeError.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= _MOST:
        raise ShapeError(f"planar_arm: got n = {n!r}, expected a whole number of 1 to {_MOST}")
    across = mass * length**2 / 12
    inertia = np.diag([1e-4, across, across])
    rod: dict[str, Any] = {"mass": mass, "com": (length / 2, 0, 0), "inertia": inertia, "axis": (0, -1, 0)}
    b = RobotBuilder(name or f"arm_{n}r")
    b.add_link("base")
    b.add_body("link1", "revolute", "base", joint="joint1", **rod)
    for i in range(2, n + 1):
        b.add_body(f"link{i}", "revolute", f"link{i - 1}", joint=f"joint{i}", xyz=(length, 0, 0), **rod)
    b.add_frame("tip", f"link{n}", xyz=(length, 0, 0))
    return b.build()


def chain(n: int = 7, seed: int = 0) -> Robot:
    """n revolute joints in a row, of generic geometry and inertia; see tree."""
    return _grow("chain", n, 1, seed)


def tree(n: int = 7, branching: int = 2, seed: int = 0) -> Robot:
    """n revolute joints, each body carrying up to `branching` others, filled breadth first.

    Joints joint1 .. n, links link1 .. n in that order of filling (coordinates are numbered depth first as ever), frame
    "tip" on the last. Joint frames are turned at random and lie 0.2 to 0.4 m from the one before, their axis is z;
    links weigh 0.5 to 2 kg. Limits: pi rad, 3 rad/s, 100 Nm. The same seed gives the same robot, and link i of a seed
    is the same in chains and trees of every size. Raises ShapeError for a size below 1.
    """
    return _grow("tree", n, branching, seed)


def _grow(name: str, n: int, branching: int, seed: int) -> Robot:
    if not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) and x >= 1 for x in (n, branching)):
        raise ShapeError(f"{name}: got n = {n!r}, branching = {branching!r}; expected whole numbers of at least 1")
    if n > _MOST:
        raise ShapeError(f"{name}: n is above {_MOST}, the most there can be")
    b = RobotBuilder(f"{name}_{n}" if branching == 1 else f"{name}_{n}_{branching}")
    b.add_link("base")
    for i in range(1, n + 1):
        rng = np.random.default_rng((int(seed), i))  # a body of its own stream: independent of n
        parent = (i - 1 + branching - 1) // branching if i > 1 else 0
        direction = rng.normal(size=3)
        b.add_body(
            f"link{i}",
            "revolute",
            f"link{parent}" if parent else "base",
            joint=f"joint{i}",
            xyz=rng.uniform(0.2, 0.4) * direction / np.linalg.norm(direction),
            rpy=rng.uniform(-np.pi, np.pi, 3),
            lower=-np.pi,
            upper=np.pi,
            velocity=3.0,
            effort=100.0,
            **_random_inertia(rng),
        )
    b.add_frame("tip", f"link{n}", xyz=(0.0, 0.0, 0.2))
    return b.build()


def _random_inertia(rng: np.random.Generator) -> dict[str, Any]:
    mass = rng.uniform(0.5, 2.0)
    spread = rng.uniform(0.03, 0.12, 3)  # root mean square extent of the mass along its principal axes [m]
    second = mass * spread**2
    R = np.array(so3.rpy(*rng.uniform(-np.pi, np.pi, 3)))
    # moments of inertia are sums of second moments of mass, which makes them those of a real body
    tensor = R @ np.diag(second.sum() - second) @ R.T
    return {"mass": mass, "com": rng.uniform(-0.15, 0.15, 3), "inertia": 0.5 * (tensor + tensor.T)}


def _rod(mass: float, length: float, radius: float, along: str) -> Array:
    """Tensor (3, 3) of a solid cylinder about its centre."""
    across = mass * (3 * radius**2 + length**2) / 12
    moments = {axis: across for axis in "xyz"} | {along: 0.5 * mass * radius**2}
    return np.diag([moments[axis] for axis in "xyz"])
