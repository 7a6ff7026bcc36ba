"""Samples of a motion: what limits, reports, figures and files read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..friction import counts
from ..function import function
from ..model.robot import Robot
from ..scene import Scene
from ..types import Array, Figure, Numbers, StrPath
from ..validation import flag
from . import storage
from .followers import check_samples
from .limits import Limits
from .quantities import BOUNDED, BY_NAME
from .report import share_of_rate


class Samples:
    """A motion on a grid of times. Rows are times, columns joints.

    t (K,) [s]; q, v, dv, d2v, d3v (K, n) [rad or m and their time derivatives]; tau, dtau (K, n) [Nm or N, and per
    second]: torques that the motion needs, gravity included, and the robot's friction unless friction=False (Coulomb
    friction smoothed, as in od.function). derivatives: list of q and as many of its derivatives as
    are known, at least four. At a time where a derivative jumps it is the value after the jump; at the last time, the
    value before.
    """

    def __init__(
        self, t: Numbers, derivatives: Sequence[Numbers] | None, *, joints: Sequence[str], units: Sequence[str],
        robot: Robot | None = None, limits: Limits | None = None, info: Mapping[str, Any] | None = None,
        torques: Sequence[Numbers] | None = None, continuity: int | None = None, friction: bool = True,
    ) -> None:  # fmt: skip
        self.t = read_only(t)
        self.derivatives = derivatives
        self.joints = tuple(joints)
        self.units = tuple(units)
        self.robot = robot
        self.limits = limits
        self.info = dict(info or {})
        self.continuity = continuity
        self.friction = friction
        self.robot_name = self.info.get("robot") if robot is None else robot.name
        self._torques = None if torques is None else tuple(read_only(x) for x in torques)

    @property
    def derivatives(self) -> list[Array]:
        """[q, v, dv, ...], each (K, n), on the grid."""
        return self._derivatives

    @derivatives.setter
    def derivatives(self, given: Sequence[Numbers] | None) -> None:
        self._derivatives = [] if given is None else [read_only(x) for x in given]

    @property
    def q(self) -> Array:
        """Positions (K, n) on the grid."""
        return self.derivatives[0]

    @property
    def v(self) -> Array:
        """Velocities (K, n) on the grid."""
        return self.derivatives[1]

    @property
    def dv(self) -> Array:
        """Accelerations (K, n) on the grid."""
        return self.derivatives[2]

    @property
    def d2v(self) -> Array:
        """Jerks (K, n) on the grid."""
        return self.derivatives[3]

    @property
    def d3v(self) -> Array:
        """Rates of the jerks (K, n) on the grid."""
        return self.derivatives[4]

    @property
    def tau(self) -> Array:
        """Torques (K, n) on the grid [Nm or N]."""
        return self._dynamics()[0]

    @property
    def dtau(self) -> Array:
        """Rates of the torques (K, n) on the grid."""
        return self._dynamics()[1]

    def _dynamics(self) -> tuple[Array, ...]:
        if self._torques is None:
            if self.robot is None:
                raise ModelError("trajectory", ["torques need the robot; load the file with robot=..."])
            check_samples("torques", self.robot, self.t, self.q)
            # kept as they are for good: what they are computed from cannot be written to
            self._torques = tuple(read_only(x) for x in torques(self.robot, self.derivatives, self.friction))
        return self._torques

    def __len__(self) -> int:
        return len(self.t)

    def slowed(self, k: float) -> Samples:
        """The same samples of a motion k times slower."""
        derivatives = [x / k**d for d, x in enumerate(self.derivatives)]
        return Samples(
            self.t * k, derivatives, joints=self.joints, units=self.units, robot=self.robot, limits=self.limits,
            info=self.info, continuity=self.continuity, friction=self.friction,
        )  # fmt: skip

    def utilization(self) -> dict[str, Array]:
        """{quantity: (K,) largest share over the joints of its limit} of v, dv, ..., tau, dtau, those that have one.

        Infinite where the motion is not smooth enough for a quantity to be one: d3v with continuity 2.
        """
        out = {}
        for name in BOUNDED:
            if self.limits is not None and self.limits.bounded(name).any():
                rough = self.continuity is not None and BY_NAME[name].order > self.continuity + 1
                share = share_of_rate(getattr(self, name), *self.limits.bounds(name)).max(axis=1)
                out[name] = np.full(len(self.t), np.inf) if rough else share
        return out

    def used(self) -> dict[str, Array]:
        """Deprecated name of utilization."""
        warnings.warn("used() of a motion is called utilization() now", DeprecationWarning, stacklevel=2)
        return self.utilization()

    def save(self, path: StrPath, dt: float | None = None, layout: str | None = None) -> None:
        """Write .csv, .npz or .json, by the ending of `path`; see Trajectory.load.

        The file holds the times (the breakpoints, or every dt [s] and the end), all derivatives, tau and dtau, names,
        units, limits and info; numbers are written so that reading gives the same ones. The folder is made, and the
        file appears complete or not at all. layout="joint_trajectory": .json with the fields of ROS's message
        trajectory_msgs/JointTrajectory instead, for other programs; load does not read it.
        """
        samples: Any = self
        storage.save(samples if dt is None else samples.sample(dt), path, layout)

    def plot(
        self, path: StrPath | None = None, normalized: bool = True, *, scene: Scene | None = None, dark: bool = False,
    ) -> Figure:  # fmt: skip
        """Six panels, q, v, dv, jerk, tau and dtau over time, against the limits; written to `path` if given.

        normalized: each joint divided by its limit, which is then at 1 and -1 (q: 1 is the upper, -1 the lower limit).
        scene: an od.Scene; two more panels then show the robot among its shapes at some times, and the distances of
        the pairs that come nearest over time. Needs the robot.
        dark: light lines on a dark ground. The ending of `path` tells the format, .png, .svg, .pdf.
        Returns the matplotlib Figure; needs no screen. Colours are ones that colour-blind readers tell apart.
        """
        from .plot import plot

        return plot(self, path, normalized, scene, flag("plot: dark", dark))

    def phase_plane(self, path: StrPath | None = None, *, dark: bool = False) -> Figure:
        """Velocity over position of each joint, with limits as lines; written to `path` if given. As plot."""
        from .figures import phase_plane

        return phase_plane(self, path, flag("phase_plane: dark", dark))

    def tool_path(self, path: StrPath | None = None, *, frame: str | None = None, dark: bool = False) -> Figure:
        """The way of a frame in the planes of the root frame [m], and its speed [m/s] over time; as plot.

        frame: default "tool", or the last link of the tree. Needs the robot. UnknownName for a frame that is not there.
        """
        from .figures import tool_path

        return tool_path(self, path, frame, flag("tool_path: dark", dark))


def read_only(x: Any) -> Array:
    """Array of floats, a copy that cannot be written to: what is computed from it once stays right."""
    x = np.array(x, float)
    x.flags.writeable = False
    return x


def torques(robot: Robot, derivatives: Sequence[Array], friction: bool = True) -> tuple[Array, Array]:
    """(tau, dtau), each (K, n), for rows of q, v, dv, d2v."""
    f = function(robot, "inverse_dynamics", order=1, friction=counts(robot, friction))
    tau, dtau = f(*(ca.DM(x.T) for x in derivatives[:4]))
    return np.array(tau).T, np.array(dtau).T
