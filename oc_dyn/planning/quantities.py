"""The quantities of a motion, each written down once: limits, reports, figures, files, the command line read this."""

from __future__ import annotations

from dataclasses import dataclass

from ..ports import derivative_name


@dataclass(frozen=True)
class Quantity:
    """name: as attributes and files have it. title: in words. order: of the time derivative of q that it belongs to, so
    that it is a number where a motion is so often differentiable. unit: with {0} for that of the coordinate, rad or m,
    and {1} for that of its torque or force. of_robot: name of the limit in Robot.limit. dynamic: whether it takes the
    dynamics of the robot. usual: whether it is told of where it has no limit."""

    name: str
    title: str
    order: int
    unit: str
    of_robot: str | None = None
    dynamic: bool = False
    usual: bool = True

    def unit_of(self, coordinate: str) -> str:
        """The unit, for a coordinate in rad or m."""
        return self.unit.format(coordinate, "N" if coordinate == "m" else "Nm")


TABLE = (
    Quantity("q", "position", 0, "{0}"),
    Quantity("v", "velocity", 1, "{0}/s", "velocity"),
    Quantity("dv", "acceleration", 2, "{0}/s²", "acceleration"),
    Quantity("d2v", "jerk", 3, "{0}/s³", "jerk"),
    Quantity("d3v", "snap", 4, "{0}/s⁴", usual=False),
    Quantity("tau", "torque", 2, "{1}", "effort", dynamic=True),
    Quantity("dtau", "torque rate", 3, "{1}/s", "effort_rate", dynamic=True),
)
# what else a report has rows of: velocities within bounds that depend on the position, outputs of elastic robots,
# distances of shapes
OTHERS = (
    Quantity("v_of_q", "velocity at position", 1, "{0}/s"),
    Quantity("tau_m", "motor torque", 4, "{1}", dynamic=True),
    Quantity("dtau_m", "motor torque rate", 5, "{1}/s", dynamic=True),
    Quantity("dtheta", "motor speed", 3, "{0}/s", dynamic=True),
    Quantity("deflection", "spring", 2, "{0}", dynamic=True),
    Quantity("current", "motor", 4, "A", dynamic=True),
    Quantity("voltage", "motor", 4, "V", dynamic=True),
    Quantity("torque_speed", "motor", 4, "", dynamic=True),
    Quantity("sigma", "stiffness", 0, ""),
    Quantity("dsigma", "stiffness rate", 1, ""),
    Quantity("clearance", "smallest", 0, "m"),
)
BY_NAME = {x.name: x for x in (*TABLE, *OTHERS)}
QUANTITIES = tuple(x.name for x in TABLE)  # that Limits has arrays of
BOUNDED = QUANTITIES[1:]  # between minus their limit and their limit
KINEMATIC = tuple(x.name for x in TABLE if not x.dynamic)  # q and its derivatives, by order
RATES = KINEMATIC[1:]
DYNAMIC = tuple(x.name for x in TABLE if x.dynamic)
DRAWN = tuple(x.name for x in TABLE if x.usual)
ORDERS = len(KINEMATIC)  # q, v, dv, d2v, d3v can always be asked for


def order_name(k: int) -> str:
    """Name of the k-th time derivative of q: q, v, dv, d2v, ..."""
    return "q" if k == 0 else derivative_name("v", k - 1)
