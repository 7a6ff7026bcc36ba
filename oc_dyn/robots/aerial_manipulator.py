"""A multirotor with two arms of three revolute joints each: 12 degrees of freedom, floating base."""

from __future__ import annotations

import numpy as np

from ..lie import so3
from ..model.builder import RobotBuilder
from ..model.robot import Robot
from ..types import Array

PROPELLER_RADIUS = 0.40  # from the base's centre of mass to each propeller [m]
PROPELLER_TILT = np.radians(30.0)  # about the arm that carries it, sign alternating
DRAG_TO_THRUST = 0.016  # drag moment over thrust [m], sense alternating


def aerial_manipulator() -> Robot:
    """A hexarotor base (2.5 kg) that carries two parallel 3R arms below its centre of mass, seven bodies in all.

    At robot.neutral() all frames are parallel to the root frame and both arms hang straight down. The base's frame is
    at its centre of mass, its joint "root_joint" is free. Arms "left" (+y) and "right" (-y), joints <arm>_joint1 .. 3,
    links <arm>_link1 .. 3, frames <arm>_tool at their ends, propeller1 .. 6 on the base.
    Source: structure, Ali, Gabellieri, Franchi 2026, section 7. The values of its table of parameters could not be
    recovered, so these are ours: arms 0.12 m left and right of the centre and 0.08 m below it; links 0.25, 0.20 and
    0.15 m long and 0.35 kg each, with principal moments (1.5e-3, 1.5e-3, 1.2e-4) kg m^2 about their middles; joint
    axes x, y, y in either arm; base moments (0.04, 0.04, 0.07) kg m^2; propellers as in propellers(). Joint limits
    2 rad, 5 rad/s and 10 Nm.
    """
    b = RobotBuilder("aerial_manipulator")
    b.add_link("base", mass=2.5, inertia=np.diag([0.04, 0.04, 0.07]))
    for i, (R, p) in enumerate(propeller_poses(), start=1):
        b.add_frame(f"propeller{i}", "base", xyz=p, rotation=R)
    limits = {"lower": -2.0, "upper": 2.0, "velocity": 5.0, "effort": 10.0}
    for arm, side in (("left", 1.0), ("right", -1.0)):
        parent, xyz = "base", (0.0, 0.12 * side, -0.08)
        for i, (length, axis) in enumerate(((0.25, (1, 0, 0)), (0.20, (0, 1, 0)), (0.15, (0, 1, 0))), start=1):
            link = f"{arm}_link{i}"
            b.add_body(
                link,
                "revolute",
                parent,
                joint=f"{arm}_joint{i}",
                xyz=xyz,
                axis=axis,
                mass=0.35,
                com=(0.0, 0.0, -length / 2),
                inertia=np.diag([1.5e-3, 1.5e-3, 1.2e-4]),
                **limits,
            )
            parent, xyz = link, (0.0, 0.0, -length)
        b.add_frame(f"{arm}_tool", parent, xyz=xyz)
    return b.build(floating_base=True)


def propeller_poses() -> list[tuple[Array, Array]]:
    """Poses [(R, p)] of the six propellers in the base frame; each thrusts along its z.

    Propeller i stands at 60 (i - 1) degrees from x, 0.40 m from the centre in the plane of the base's centre of mass,
    and is tilted by +30 (odd i) or -30 degrees (even i) about the arm that carries it.
    """
    poses = []
    for i in range(6):
        around = np.array(so3.rot_z(i * np.pi / 3))
        tilt = PROPELLER_TILT * (-1) ** i
        poses.append((around @ np.array(so3.rot_x(tilt)), around @ np.array([PROPELLER_RADIUS, 0.0, 0.0])))
    return poses


def propellers() -> Array:
    """(6, 6) matrix from the six thrusts [N] to the wrench [moment; force] on the base, in and about its frame.

    Geometry as in propeller_poses. Drag adds a moment of -0.016 m (odd i) or +0.016 m (even i) times the thrust about
    the propeller's axis, which turns the base the same way as the tilted thrust does. The matrix is regular: the base
    can be given any wrench. Structure: Ali, Gabellieri, Franchi 2026, section 7; tilt, radius and drag are ours.
    """
    columns = []
    for i, (R, p) in enumerate(propeller_poses()):
        drag = -DRAG_TO_THRUST * (-1) ** i
        columns.append(np.concatenate([np.cross(p, R[:, 2]) + drag * R[:, 2], R[:, 2]]))
    return np.column_stack(columns)
