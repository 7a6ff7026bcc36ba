"""Names, shapes and units of the ports that quantities share: q, v, dv, d2v, ...; tau, dtau, ...; w_ext."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .model.robot import Robot
from .registry import Port


class Size(int):
    """A number of rows or columns that knows what it counts: sums, differences and products keep it as their text.

    Size(7, "nv") is 7; str() of Size(7, "nv") * Size(7, "nv") is "nv*nv".
    """

    text: str

    def __new__(cls, value: int, text: str) -> Size:
        """The number `value`, called `text`."""
        size = super().__new__(cls, value)
        size.text = text
        return size

    def __str__(self) -> str:
        return self.text

    def __getnewargs__(self) -> Any:
        return int(self), self.text

    def __mul__(self, other: int) -> Size:
        return Size(int(self) * int(other), f"{_factor(self)}*{_factor(other)}")

    def __rmul__(self, other: int) -> Size:
        return Size(int(other) * int(self), f"{_factor(other)}*{_factor(self)}")

    def __add__(self, other: int) -> Size:
        return Size(int(self) + int(other), f"{self} + {other}")

    def __sub__(self, other: int) -> Size:
        return Size(int(self) - int(other), f"{self} - {_factor(other)}")


def _factor(x: object) -> str:
    return f"({x})" if " " in str(x) else str(x)


COUNTED = {  # what sizes count, for od.describe
    "nq": "coordinates, robot.nq",
    "nv": "velocities, robot.nv",
    "bodies": "moving bodies, robot.bodies",
    "prescribed": "velocities of the prescribed joints",
    "pairs": "pairs of shapes that must keep apart, scene.pairs",
    "moving": "shapes whose poses are given, scene.moving",
}


def nq(robot: Robot) -> Size:
    """Number of coordinates."""
    return Size(robot.nq, "nq")


def nv(robot: Robot) -> Size:
    """Number of velocities."""
    return Size(robot.nv, "nv")


def bodies(robot: Robot) -> Size:
    """Number of moving bodies."""
    return Size(len(robot.bodies), "bodies")


def parameters(robot: Robot, parts: Sequence[str]) -> Size:
    """Number of parameters of the parts named; see model/parameters."""
    tree = getattr(robot, "tree", robot)  # of a robot with loops: all joints have rotors and friction
    sizes = {"inertia": 10 * bodies(robot), "armature": nv(tree), "viscous": nv(tree)}
    first, *others = (sizes[x] for x in parts)
    return sum(others, first)


def derivative_name(name: str, k: int) -> str:
    """Name of the k-th time derivative of a port: v, dv, d2v, ..."""
    return name if k == 0 else f"d{name}" if k == 1 else f"d{k}{name}"


def derivative_unit(unit: str, k: int) -> str:
    """Unit of the k-th time derivative of what has this one, or these: of "rad/s, m/s" it is "rad/s2, m/s2"."""
    return ", ".join(_per_time(x, k) for x in unit.split(", "))


def _per_time(unit: str, k: int) -> str:
    base, slash, power = unit.partition("/s")
    k += int(power or 1) if slash else 0
    return base + (f"/s{k if k > 1 else ''}" if k else "")


def quotient_unit(of: str, *by: str) -> str:
    """Unit of a partial derivative: quotient_unit("Nm, N", "rad, m") is "(Nm, N)/(rad, m)"."""
    below = "".join(_bracketed(x) for x in by)
    return f"{_bracketed(of)}/{below if len(by) == 1 else f'({below})'}"


def _bracketed(unit: str) -> str:
    return f"({unit})" if " " in unit or "/" in unit else unit


def partial_ports(of: Sequence[tuple[Port, int]], by: Sequence[tuple[Port, int]]) -> list[Port]:
    """Ports of the partials of `of` by `by`, both lists of (Port, rows of its derivative)."""
    return [
        Port(
            f"d{y.name}_d{x.name}",
            (rows, columns),
            quotient_unit(y.unit, step_unit(x)),
            f"partial derivative of {y.name} by {step(x)}",
            y.rows,
        )
        for y, rows in of
        for x, columns in by
    ]


def step(port: Port) -> str:
    """What is varied for a derivative by a port, in words."""
    return "a step on the tangent space of q" if port.name == "q" else port.name


def step_unit(port: Port) -> str:
    """Unit of `step`."""
    return "rad, m" if port.name == "q" else port.unit


_ROWS = "of free, planar and spherical joints the {}, or rows of it, at the origin and in the axes of the body"
_TWIST_ROWS, WRENCH_ROWS = _ROWS.format("twist [angular; linear]"), _ROWS.format("wrench [moment; force]")
IN_FLUID = (  # a note of quantities that count it
    "In a fluid (RobotBuilder.add_link: added_inertia, drag, quadratic_drag) the added inertia is in M and C, not in "
    "g, and the drag, joint torques sum_b J_b^T (D V_b + d |V_b| V_b) of the links' twists V_b, is a term of its own."
)


def configuration_port(robot: Robot) -> Port:
    """q, the coordinates."""
    meaning = "coordinates; quaternions (w, x, y, z) count as normalised"
    return Port("q", (nq(robot), 1), "rad, m, 1", meaning, robot.coordinate_names)


def motion_ports(robot: Robot, order: int) -> list[Port]:
    """q, v and the time derivatives of v up to `order`."""
    velocities = _with_derivatives(robot, "v", "rad/s, m/s", f"joint velocities; {_TWIST_ROWS}", order)
    return [configuration_port(robot), *velocities]


def torque_ports(robot: Robot, order: int) -> list[Port]:
    """tau and its time derivatives up to `order`."""
    return _with_derivatives(robot, "tau", "Nm, N", f"joint torques; {WRENCH_ROWS}", order)


def _with_derivatives(robot: Robot, name: str, unit: str, meaning: str, order: int) -> list[Port]:
    """A port of the robot's velocities and those of its time derivatives."""
    return [
        Port(
            derivative_name(name, k),
            (nv(robot), 1),
            derivative_unit(unit, k),
            f"componentwise time derivative {k} of {name}" if k else meaning,
            robot.velocity_names,
        )
        for k in range(order + 1)
    ]


def reference_ports(robot: Robot, order: int) -> list[Port]:
    """vr and its time derivatives up to `order`."""
    return _with_derivatives(robot, "vr", "rad/s, m/s", f"reference velocities; {_TWIST_ROWS}", order)


def wrench_ports(robot: Robot, order: int) -> list[Port]:
    """w_ext and its time derivatives up to `order`: one column per moving body."""
    meaning = (
        "external wrenches [moment; force] on the bodies, one column each, at the origin and in the axes of its body"
    )
    return [
        Port(
            derivative_name("w_ext", k),
            (6, bodies(robot)),
            derivative_unit("Nm, N", k),
            f"componentwise time derivative {k} of w_ext" if k else meaning,
        )
        for k in range(order + 1)
    ]


PARAMETER_UNITS = {"inertia": "kg, kg m, kg m2", "armature": "kg m2, kg", "viscous": "Nm s/rad, N s/m"}


def parameter_unit(parts: Sequence[str]) -> str:
    """Units of the parameters of the parts named, each once."""
    return ", ".join(dict.fromkeys(u for x in parts for u in PARAMETER_UNITS[x].split(", ")))


def parameter_port(robot: Robot, parts: Sequence[str]) -> Port:
    """params, the parameters of the parts named; see model/parameters."""
    meaning = {
        "inertia": "mass, moment, tensor xx xy yy xz yz zz about the origin and in the axes of the body, for each body",
        "armature": "inertia of the drive at each velocity",
        "viscous": "damping at each velocity",
    }
    said = f"{'; '.join(meaning[x] for x in parts)}; robot.parameter_values({parts}) are the robot's own"
    rows = robot.parameter_rows(parts)
    return Port("params", (parameters(robot, parts), 1), parameter_unit(parts), said, rows)


OF_MODEL = ("params", "gravity")  # inputs that are a part of the model that methods read


def gravity_port() -> Port:
    """gravity, the acceleration of a body that falls."""
    return Port("gravity", (3, 1), "m/s2", "acceleration of gravity in the root frame; robot.gravity is its own")
