"""The command `oc-dyn demo`: a fast motion of the Panda, and its torques by a second method."""

from dataclasses import dataclass
from math import pi

import numpy as np

from .function import function
from .planning.point_to_point import plan_point_to_point
from .robots import panda

START = (0.0, -pi / 4, 0.0, -3 * pi / 4, 0.0, pi / 2, pi / 4)  # the vendor's ready pose [rad]
GOAL = (1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6)
DT = 1e-3  # the vendor's control period [s]
TASK = "The Panda from its ready pose to another, at rest at both ends, as fast as its vendor's limits allow."
_METHOD = "recursive_body"  # the planner uses another one


@dataclass(frozen=True)
class SecondOpinion:
    """Largest difference of torque [Nm] and torque rate [Nm/s] by another method, over all samples; largest values."""

    method: str
    samples: int
    tau_difference: float
    dtau_difference: float
    tau_largest: float
    dtau_largest: float

    def ok(self, tolerance=1e-9):
        """Whether both differ by no more than this fraction of the largest value."""
        return self.tau_difference <= tolerance * self.tau_largest and (
            self.dtau_difference <= tolerance * self.dtau_largest
        )

    def __str__(self):
        return (
            f"The same torques by the method {self.method!r}, at {self.samples} samples, differ by at most "
            f"{self.tau_difference:.1e} Nm, their rates by {self.dtau_difference:.1e} Nm/s."
        )


def plan(nodes=50, progress=None):
    """The Trajectory of the demo; nodes: pieces, progress: as in plan_point_to_point."""
    return plan_point_to_point(panda(), START, GOAL, continuity=3, nodes=nodes, progress=progress)


def second_opinion(trajectory, method=_METHOD):
    """Torques and their rates of a Trajectory, every millisecond, against another method of inverse dynamics."""
    s = trajectory.sample(DT)
    f = function(trajectory.robot, "inverse_dynamics", order=1, method=method)
    tau, dtau = (np.array(x).T for x in f(s.q.T, s.v.T, s.dv.T, s.d2v.T))
    return SecondOpinion(
        method,
        len(s),
        *(float(np.abs(x - y).max()) for x, y in ((tau, s.tau), (dtau, s.dtau))),
        *(float(np.abs(x).max()) for x in (tau, dtau)),
    )
