"""Robots and scenes among obstacles that tests share, with answers that are known."""

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import shapes

TIP = 0.1  # radius of the ball on the point


def point_robot():
    """A point in the plane on two prismatic joints."""
    b = od.RobotBuilder("point_robot", gravity=(0, 0, 0))
    b.add_link("base")
    b.add_link("sledge", 1.0)
    b.add_link("point", 1.0)
    limits = {"lower": -2, "upper": 2, "velocity": 1.0, "acceleration": 2.0, "effort": 10.0}
    b.add_joint("x", "prismatic", "base", "sledge", axis=(1, 0, 0), **limits)
    b.add_joint("y", "prismatic", "sledge", "point", axis=(0, 1, 0), **limits)
    return b.build()


def ball(radius=0.3, pose=None, margin=0.0, name="disc"):
    """Scene of the point robot with a ball at its tip and one in the world."""
    scene = od.Scene().attach("tip", "point", shapes.Sphere(TIP))
    return scene.add(name, shapes.Sphere(radius), pose, margin)


def at(*p):
    """Homogeneous matrix of a position."""
    C = np.eye(4)
    C[: len(p), 3] = p
    return C


def moved(p):
    """The same of an expression (3,)."""
    return ca.vertcat(ca.horzcat(ca.MX(ca.DM.eye(3)), p), ca.MX(ca.DM([[0, 0, 0, 1]])))


def line(start, speed):
    """Function of the time: the pose of what moves along a line."""
    t, C = ca.SX.sym("t"), ca.SX.eye(4)
    for i, (p, v) in enumerate(zip(start, speed, strict=True)):
        C[i, 3] = p + v * t
    return ca.Function("pose", [t], [C])


def way_round(a, b, radius):
    """Length of the shortest way from a to b (2,) round a disc about the origin: two tangents and an arc."""
    sizes = np.linalg.norm([a, b], axis=1)
    angle = np.arccos(np.dot(a, b) / sizes.prod())
    arc = angle - np.arccos(radius / sizes).sum()
    return float(np.sqrt(sizes**2 - radius**2).sum() + radius * max(arc, 0.0))
