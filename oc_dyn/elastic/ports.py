"""Ports of the quantities of elastic robots, and the check that such a robot was given."""

from ..errors import ModelError, OrderError
from ..ports import derivative_name
from ..registry import Port
from .model import ElasticRobot


def admit(quantity):
    """Function that returns the elastic robot it is given; anything else is refused."""

    def check(robot):
        if not isinstance(robot, ElasticRobot):
            hint = "make one by od.elastic.elastic_robot"
            raise ModelError(quantity, [f"it is a quantity of an elastic robot, got {type(robot).__name__}; {hint}"])
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


def column_ports(elastic, name, order, first=0):
    """A column and its time derivatives `first`..order: theta, sigma, tau_m, tau_rigid or tau_sigma."""
    rows, unit, meaning = _COLUMNS[name]
    rows = rows(elastic)
    return [
        Port(
            derivative_name(name, k),
            (len(rows), 1),
            f"{unit}, per s{k if k > 1 else ''}" if k else unit,
            f"time derivative {k} of {name}" if k else meaning,
            rows,
        )
        for k in range(first, order + 1)
    ]


_COLUMNS = {
    "theta": (lambda e: e.theta_names, "rad, m", "positions of the motors of elastic joints, as seen at the joints"),
    "sigma": (
        lambda e: e.sigma_names,
        "by the law; Nm/rad, N/m",
        "coordinates of variable springs; stiffness of pairs",
    ),
    "tau_m": (lambda e: e.motor_names, "Nm, N", "motor torques, as seen at the joints; of rigid joints: joint torques"),
    "tau_rigid": (
        lambda e: tuple(e.links.velocity_names[k] for k in e.rigid),
        "Nm, N",
        "torques of the rigid joints, friction of their motors taken off",
    ),
    "tau_sigma": (lambda e: e.sigma_names, "by the law", "forces of the drives of sigma"),
}


def jet(ports, name, order):
    """[x, x', ..] up to `order` from {port: value}; [] where the robot has no such rows."""
    found = [ports.get(derivative_name(name, k)) for k in range(order + 1)]
    return [] if any(x is None for x in found) else found
