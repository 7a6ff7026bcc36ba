"""Ports of the quantities of elastic robots, and the check that such a robot was given."""

from .. import robots
from ..errors import ModelError, OrderError
from ..ports import COUNTED, Size, derivative_name, derivative_unit
from ..registry import Port
from .build import elastic_robot
from .effects import refuse_effects
from .model import ElasticRobot
from .variable_springs import VariableSpring


def admit(quantity):
    """Function that returns the elastic robot it is given; anything else is refused."""

    def check(robot):
        if not isinstance(robot, ElasticRobot):
            hint = "make one by od.elastic.elastic_robot"
            raise ModelError(quantity, [f"it is a quantity of an elastic robot, got {type(robot).__name__}; {hint}"])
        refuse_effects(quantity, robot)
        return robot

    return check


def admit_flat(quantity):
    """As admit, but for robots whose link motion gives all else algebraically: without damping in the springs."""

    def check(robot):
        elastic = admit(quantity)(robot)
        if elastic.damped:
            raise OrderError(
                f"{quantity}: the springs of {', '.join(elastic.damped)} are damped, and then the motors' motion "
                "follows from the links' by a differential equation, not algebraically; od.elastic.damped_motion and "
                "feedforward_pd(integrate_damping=True) integrate it (it is stable), or take undamped() for the law of "
                "control and keep the damping in the simulation"
            )
        return elastic

    return check


def example(robot):
    """(robot, options) for od.describe: an arm with an elastic joint, one of variable stiffness and a rigid one."""
    if robot is None:
        springs = {"joint1": 100.0, "joint2": VariableSpring()}
        robot = elastic_robot(robots.chain(3), springs, motor_inertia=0.1, stiffness_inertia=0.01)
    return robot, {}


COUNTED.update(
    elastic="motors of elastic joints",
    variable="joints of variable stiffness",
    motors="motors, those of rigid joints included",
    rigid="rigid joints",
    unactuated="velocities of free joints, which no motor drives",
)


def column_ports(elastic, name, order, first=0):
    """A column and its time derivatives `first`..order: theta, sigma, tau_m, tau_rigid or tau_sigma."""
    rows, counted, unit, meaning = _COLUMNS[name]
    rows = rows(elastic)
    return [
        Port(
            derivative_name(name, k),
            (Size(len(rows), counted), 1),
            derivative_unit(unit, k),
            f"time derivative {k} of {name}" if k else meaning,
            rows,
        )
        for k in range(first, order + 1)
    ]


_COLUMNS = {  # names of its rows, what they are, unit, meaning
    "theta": (
        lambda e: e.theta_names,
        "elastic",
        "rad, m",
        "positions of the motors of elastic joints, as seen at the joints",
    ),
    "sigma": (
        lambda e: e.sigma_names,
        "variable",
        "Nm/rad, N/m",
        "stiffness of antagonistic pairs; of variable springs the coordinate of their law, in its unit",
    ),
    "tau_m": (
        lambda e: e.motor_names,
        "motors",
        "Nm, N",
        "motor torques, as seen at the joints; of rigid joints: joint torques",
    ),
    "tau_rigid": (
        lambda e: tuple((e.drives or e.links.velocity_names)[k] for k in e.rigid),
        "rigid",
        "Nm, N",
        "torques of the rigid joints, friction of their motors taken off",
    ),
    "tau_base": (
        lambda e: tuple(e.links.velocity_names[k] for k in e.unactuated),
        "unactuated",
        "Nm, N",
        "wrenches that free joints would have to give; a motion for which they are not zero is impossible",
    ),
    "tau_sigma": (lambda e: e.sigma_names, "variable", "J/(unit of sigma)", "forces of the drives of sigma"),
}


def jet(ports, name, order):
    """[x, x', ..] up to `order` from {port: value}; [] where the robot has no such rows."""
    found = [ports.get(derivative_name(name, k)) for k in range(order + 1)]
    return [] if any(x is None for x in found) else found
