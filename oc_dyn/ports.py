"""Names and shapes of the ports that quantities share: q, v, dv, d2v, ...; tau, dtau, ...; w_ext."""

from .registry import Port


def derivative_name(name, k):
    """Name of the k-th time derivative of a port: v, dv, d2v, ..."""
    return name if k == 0 else f"d{name}" if k == 1 else f"d{k}{name}"


def configuration_port(robot):
    """q, the coordinates."""
    meaning = "coordinates; quaternions (w, x, y, z) count as normalised"
    return Port("q", (robot.nq, 1), "rad, m, 1", meaning, robot.coordinate_names)


def motion_ports(robot, order):
    """q, v and the time derivatives of v up to `order`."""
    ports = [configuration_port(robot)]
    for k in range(order + 1):
        unit = "rad/s, m/s" if k == 0 else f"rad/s{k + 1}, m/s{k + 1}"
        meaning = (
            "joint velocities; body twist [angular; linear] of a free joint" if k == 0 else f"time derivative {k} of v"
        )
        ports.append(Port(derivative_name("v", k), (robot.nv, 1), unit, meaning, robot.velocity_names))
    return ports


def torque_ports(robot, order):
    """tau and its time derivatives up to `order`."""
    return [
        Port(
            derivative_name("tau", k),
            (robot.nv, 1),
            "Nm, N" if k == 0 else f"Nm/s{k if k > 1 else ''}",
            "joint torques; wrench [moment; force] of a free joint, in its body"
            if k == 0
            else f"time derivative {k} of tau",
            robot.velocity_names,
        )
        for k in range(order + 1)
    ]


def wrench_ports(robot, order):
    """w_ext and its time derivatives up to `order`: one column a moving body."""
    return [
        Port(
            derivative_name("w_ext", k),
            (6, len(robot.bodies)),
            "Nm, N",
            "applied wrenches [moment; force], each at the origin and in the axes of its body"
            if k == 0
            else f"componentwise time derivative {k} of w_ext",
        )
        for k in range(order + 1)
    ]


def parameter_port(robot, parts):
    """params, the parameters of the parts named; see model/parameters."""
    units = {"inertia": "kg, kg m, kg m2", "armature": "kg m2, kg", "viscous": "Nm s/rad, N s/m"}
    meaning = {
        "inertia": "mass, moment, tensor about the body's origin, body after body",
        "armature": "inertia of the drive at each velocity",
        "viscous": "damping at each velocity",
    }
    said = "; ".join(meaning[x] for x in parts)
    unit = ", ".join(dict.fromkeys(u for x in parts for u in units[x].split(", ")))
    rows = robot.parameter_rows(parts)
    return Port("params", (len(rows), 1), unit, f"{said}; robot.parameter_values({parts}) are the robot's own", rows)
