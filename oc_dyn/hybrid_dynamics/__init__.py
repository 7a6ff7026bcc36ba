"""Hybrid dynamics: some joints move as prescribed and their torques are wanted, at the others it is the reverse."""

import casadi as ca
import numpy as np

from .. import robots
from ..errors import UnknownName
from ..friction import with_friction
from ..ports import Size, configuration_port, derivative_name, motion_ports, nv, torque_ports, wrench_ports
from ..registry import Port, quantity


def prescribed_rows(robot, options):
    """Tuple of the indexes in v, ascending, of the joints named in the option `prescribed`."""
    names = options["prescribed"]
    names = (names,) if isinstance(names, str) or not np.iterable(names) else tuple(names)
    known = {j.name: j for j in robot.joints}
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise UnknownName(f"joint of {robot.name} with a coordinate of its own", name, known)
    chosen = [known[name] for name in dict.fromkeys(names)]
    return tuple(sorted(row for j in chosen for row in range(j.v_index, j.v_index + j.nv)))


def _inputs(robot, order, options):
    rows = prescribed_rows(robot, options)
    return [
        configuration_port(robot),
        motion_ports(robot, 0)[1],
        *_part(robot, _accelerations(robot, order), "p", rows),
        *_part(robot, torque_ports(robot, order), "f", _others(robot, rows)),
        *(wrench_ports(robot, order) if options["external_wrenches"] else []),
    ]


def _outputs(robot, order, options):
    rows = prescribed_rows(robot, options)
    return [
        *_part(robot, torque_ports(robot, order), "p", rows),
        *_part(robot, _accelerations(robot, order), "f", _others(robot, rows)),
        *_accelerations(robot, order),
        *torque_ports(robot, order),
    ]


def _accelerations(robot, order):
    return motion_ports(robot, order + 1)[2:]


def _others(robot, rows):
    return tuple(k for k in range(robot.nv) if k not in rows)


def _part(robot, ports, letter, rows):
    """Ports of the prescribed ("p") or free ("f") rows of `ports`."""
    which = "prescribed" if letter == "p" else "other"
    size = Size(len(rows), "prescribed") if letter == "p" else nv(robot) - Size(robot.nv - len(rows), "prescribed")
    names = tuple(robot.velocity_names[k] for k in rows)
    return [
        Port(f"{p.name}_{letter}", (size, 1), p.unit, f"rows of the {which} joints: {p.meaning}", names) for p in ports
    ]


def _call(function, model, order, ports, options):
    nv, rows = model.robot.nv, prescribed_rows(model.robot, options)
    others = _others(model.robot, rows)
    A = [spread(ports[derivative_name("v", k + 1) + "_p"], rows, nv) for k in range(order + 1)]
    T = [spread(ports[derivative_name("tau", k) + "_f"], others, nv) for k in range(order + 1)]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None

    def run(T):
        return function(model, order, ports["q"], ports["v"], A, T, rows, W)

    accelerations, torques = with_friction(model, ports["v"], T, run) if options["friction"] else run(T)
    out = {}
    for k in range(order + 1):
        a, tau = derivative_name("v", k + 1), derivative_name("tau", k)
        out[a] = accelerations[k]
        out[tau] = torques[k]
        out[a + "_f"] = _rows(accelerations[k], others)
        out[tau + "_p"] = _rows(torques[k], rows)
    return out


def example(robot):
    """(robot, options) for od.describe: the first joint is prescribed."""
    robot = robot or robots.planar_2r()
    return robot, {"prescribed": tuple(j.name for j in robot.joints[:1])}


def spread(x, rows, nv):
    """(nv,) with x in `rows` and zeros elsewhere."""
    place = {row: k for k, row in enumerate(rows)}
    return ca.vertcat(ca.DM.zeros(0, 1), *(x[place[row]] if row in place else 0 for row in range(nv)))


def _rows(x, rows):
    return x[list(rows)] if rows else ca.DM.zeros(0, 1)


quantity(
    name="hybrid_dynamics",
    summary="torques of the joints whose motion is prescribed and accelerations of the others, with time derivatives",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    solves=prescribed_rows,
    options=("prescribed", "external_wrenches", "friction", "representation", "parameters", "gravity"),
    base_ports=True,
    repeats=True,
    default=("taylor",),
    equation="M(q) dv + C(q, v) v + g(q) + friction(v) = tau + sum_b J_b(q)^T w_b, with dv = dv_p in the rows of the "
    "prescribed joints and tau = tau_f in the others; J_b the body Jacobian of body b and w_b its wrench, column b of "
    "w_ext",
    notes=("dv and tau have all rows, given and found.",),
    errors=("UnknownName: a prescribed joint that is not there, or has no coordinate of its own",),
    example=example,
)

from . import by_ad, hybrid_body, hybrid_spatial, taylor  # noqa: E402  registers the methods
