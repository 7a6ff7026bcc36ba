"""The flat map: motors' motion and torques from that of the links, algebraically.

Link side   tau = inverse dynamics(q, v, dv, ..), friction and parallel springs, with all time derivatives needed;
springs     phi(theta - q, sigma) = tau, solved for theta and differentiated;
motor side  tau_m = B theta'' + (the springs' torques) + (the motors' friction).

For the reduced model tau_m needs tau'', so q up to q^(4); each of its derivatives one more. In the complete model the
motors' accelerations act on the links before them, so the joints are solved from the last to the first, each needing
two more derivatives of those after it: tau_m needs q up to q^(2(n + 1)). Sources: Spong 1987; De Luca and Lucibello
1998; De Luca and Book 2008, section 13.1; Palli, Melchiorri and De Luca 2008 for variable stiffness.

A free joint has no motor: its rows of the link side, tau_base, are zero for motions that are possible. Motion and
forces from outside determine everything else all the same.
"""

from itertools import pairwise

import casadi as ca

from ..errors import OrderError
from ..function import function
from ..lie.time_derivatives import time_derivatives
from ..model.cache import cached
from ..model.loops import LoopRobot
from ..ports import derivative_name, motion_ports, wrench_ports
from ..registry import choose, get_method, method, quantity
from .across import motor_jets
from .drives import at_drives, drive_torques
from .model import columns
from .motor_side import at_motors, carried_momentum, elastic_torques, motor_friction, sigma_forces
from .ports import admit_flat, column_ports, example, jet

QUANTITY = "elastic_flat_map"


def _inputs(elastic, order, options):
    ports = motion_ports(elastic.links, elastic.flat_order(order) - 1)
    ports += column_ports(elastic, "sigma", elastic.sigma_order + order) if elastic.sigma_names else []
    return ports + (wrench_ports(elastic.links, max(elastic.motor_orders) + order) if _pushed(elastic, options) else [])


def _pushed(elastic, options):
    """Whether wrenches from outside act; refused where methods cannot have them."""
    if options["external_wrenches"] and (elastic.coupling or isinstance(elastic.links, LoopRobot)):
        what = "the complete model" if elastic.coupling else "robots with loops"
        raise OrderError(f"elastic robot {elastic.name}: external_wrenches are not for {what}")
    return options["external_wrenches"]


def _outputs(elastic, order, options):
    ports = column_ports(elastic, "theta", 2 + order) + column_ports(elastic, "tau_m", order)
    ports += column_ports(elastic, "tau_base", order) if elastic.unactuated else []
    return ports + (column_ports(elastic, "tau_sigma", order) if elastic.stiffness_driven else [])


def _call(function, elastic, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(elastic.flat_order(order))]
    sigma = jet(ports, "sigma", elastic.sigma_order + order) if elastic.sigma_names else []
    wrenches = jet(ports, "w_ext", max(elastic.motor_orders) + order) if options["external_wrenches"] else []
    found = function(elastic, order, ports["q"], V, sigma, wrenches)
    return {derivative_name(name, k): x for name, xs in found.items() for k, x in enumerate(xs)}


quantity(
    name=QUANTITY,
    summary="motor positions and torques of an elastic robot, and their time derivatives, from the motion of its links",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("external_wrenches",),
    default=("taylor",),
    of="elastic robot",
    admit=admit_flat(QUANTITY),
    equation="tau = inverse dynamics(q, v, dv) + friction(v) + U'(q); phi(theta - q, sigma) = tau; "
    "tau_m = B theta'' + tau + friction(theta')",
    notes=(
        "Shown for the reduced model; the complete one needs derivatives of v up to robot.flat_order(order) - 1.",
        "sigma: where the stiffness is variable; tau_sigma: where sigma has drives (stiffness_inertia).",
        "tau_base: of robots with a free joint, zero where motion and wrenches fit together.",
    ),
    errors=("OrderError: springs that are damped",),
    example=example,
)


def flat_map(inverse_dynamics, elastic, order, q, V, sigma, wrenches=(), derivatives="ad"):
    """{"theta": [theta .. d{2+order}theta], "tau_m": [..], "tau_base": [..], "tau_sigma": [..]}, by a method of inverse
    dynamics."""
    orders = [x + order for x in elastic.motor_orders]
    top = max(orders)
    torques = drive_torques(elastic, top, inverse_dynamics, derivatives, bool(wrenches))
    tau = torques.call([q, *V[: top + 2], *wrenches])
    position = at_drives(elastic, [q, *V[: max(top, order + 1)]])
    deflection, theta = {}, {}
    if elastic.across is not None:
        deflection, theta = _across(elastic, tau[: top + 1], position[: top + 1])
    for e in reversed(range(len(elastic.joints))) if elastic.across is None else ():
        j, need = elastic.joints[e], orders[e]
        torque = [tau[k][j.v] for k in range(need + 1)]
        if elastic.coupling:
            extra = _coupling_forces(elastic, j.v, need, q, V, theta)
            torque = [x + y for x, y in zip(torque, extra, strict=True)]
        s = [x[j.sigma] for x in sigma[: need + 1]] if j.sigma is not None else []
        deflection[e] = j.spring.deflections(torque, s)
        link = [x[j.v] if k else x[j.q] for k, x in enumerate(position[: need + 1])]
        theta[e] = [[z + x for z, x in zip(jet, link, strict=True)] for jet in deflection[e]]
    motors = [jet for e in range(len(elastic.joints)) for jet in theta[e]]
    out = {"theta": [ca.vertcat(*(jet[k] for jet in motors)) for k in range(3 + order)]}
    if elastic.coupling and elastic.rigid:
        tau = _on_rigid_joints(elastic, order, q, V, tau, theta)
    out["tau_m"] = _motor_torques(elastic, order, [q, *V], position, tau, out["theta"], sigma)
    if elastic.unactuated:
        out["tau_base"] = [columns(x, elastic.unactuated) for x in tau[: order + 1]]
    if elastic.stiffness_driven:
        out["tau_sigma"] = _sigma_torques(elastic, order, deflection, sigma)
    return out


def _across(elastic, torque, position):
    """({joint: [jet of deflection]}, {joint: [jet of theta]}) of springs across joints."""
    jets = motor_jets(elastic, torque, position)
    theta = {e: [[x[j.theta[0]] for x in jets]] for e, j in enumerate(elastic.joints)}
    deflection = {
        e: [[t - x[j.v if k else j.q] for k, (t, x) in enumerate(zip(theta[e][0], position, strict=True))]]
        for e, j in enumerate(elastic.joints)
    }
    return deflection, theta


def _coupling_forces(elastic, row, order, q, V, theta):
    """Derivatives 0..order of the coupling's part of the torque of a row of the links; theta: {joint: [jet]} of those
    after it."""
    zero = ca.DM(1, 1)
    motors = [
        theta[e][i] if e in theta else [zero] * (order + 3)
        for e, j in enumerate(elastic.joints)
        for i in range(len(j.theta))
    ]
    rates = [ca.vertcat(*(jet[k] if k < len(jet) else zero for jet in motors)) for k in range(1, order + 3)]
    flow = [q, *V[: order + 1]], rates
    sizes = elastic.nv, len(motors)
    symbols = [[ca.SX.sym("x", n) for _ in part] for n, part in zip(sizes, flow, strict=True)]
    pairs = [p for part in symbols for p in pairwise(part)]
    force = elastic.coupling.forces(symbols[0][0], symbols[0][1], symbols[1][0], symbols[1][1])[row]
    f = ca.Function("forces", [*symbols[0], *symbols[1]], time_derivatives(force, order, pairs, cse=True))
    return f.call([*flow[0], *flow[1]])


def _on_rigid_joints(elastic, order, q, V, tau, theta):
    """Derivatives 0..order of tau, and with it what carried motors ask of rigid joints."""
    more = {v: _coupling_forces(elastic, v, order, q, V, theta) for v in elastic.rigid}
    return [
        ca.vertcat(*(tau[k][v] + (more[v][k] if v in more else 0) for v in range(elastic.nv))) for k in range(order + 1)
    ]


def _motor_torques(elastic, order, position, drives, tau, theta, sigma):
    """Derivatives 0..order of the torques of all motors. position: [q, v, ...]; drives: [positions of the drives,
    velocities, ...]."""
    on_links, springs = elastic_torques(elastic, drives[: order + 1], theta[: order + 1], sigma)
    rigid = set(elastic.rigid)
    across = [ca.vertcat(*(x[k] if k in rigid else 0 for k in range(x.numel()))) for x in on_links]
    speeds = [at_motors(elastic, drives[k + 1], theta[k + 1]) for k in range(order + 1)]
    friction = motor_friction(elastic, speeds)
    inertial = [ca.DM(elastic.motor_inertia) @ theta[k + 2] + springs[k] for k in range(order + 1)]
    if elastic.coupling:
        carried = carried_momentum(elastic, order, position[0], position[1:])
        inertial = [x + y for x, y in zip(inertial, carried, strict=True)]
    return [at_motors(elastic, tau[k] - across[k], inertial[k]) + friction[k] for k in range(order + 1)]


def _sigma_torques(elastic, order, z, sigma):
    """Derivatives 0..order of the forces of the drives of sigma."""
    forces = sigma_forces(elastic, order, z, sigma)
    return [ca.DM(elastic.stiffness_inertia) * sigma[k + 2] + forces[k] for k in range(order + 1)]


def analytic_flat_map(elastic, order=0):
    """Function (q, v, .., sigma, ..) -> outputs of the flat map, an MX graph that calls inverse dynamics with its
    registered derivatives; all else is differentiated by AD. To be called inlined, so that they are seen."""
    plain = function(elastic, QUANTITY, order=order)
    # complete: the method is the default one, which follows from the robot and the order
    return cached(elastic, ("analytic_flat_map", order), lambda: _analytic(elastic, order, plain))


def _analytic(elastic, order, plain):
    symbols = [ca.MX.sym(name, *plain.size_in(name)) for name in plain.name_in()]
    count = elastic.flat_order(order)
    q, V, sigma = symbols[0], symbols[1 : 1 + count], symbols[1 + count :]
    method_name = choose(QUANTITY, elastic, order).name
    found = flat_map(method_name, elastic, order, q, V, sigma, derivatives="analytic")
    by_name = {derivative_name(name, k): x for name, xs in found.items() for k, x in enumerate(xs)}
    outputs = [ca.densify(by_name[name]) for name in plain.name_out()]
    return ca.Function(plain.name(), symbols, outputs, plain.name_in(), plain.name_out())


def _register(name):
    """The flat map by one method of inverse dynamics, under its name."""
    of = get_method("inverse_dynamics", name)
    only = " on reduced models alone" if of.max_order is not None else ""

    def by(elastic, order, q, V, sigma, wrenches):
        return flat_map(name, elastic, order, q, V, sigma, wrenches)

    by.__doc__ = f"Motor positions and torques from inverse dynamics by {name}{only}; see flat_map.\n\n"
    by.__doc__ += f'Arguments and results: od.describe("{QUANTITY}").'
    method(
        QUANTITY,
        name,
        kind=of.kind,
        source=f"flat map of the elastic joint on inverse_dynamics/{name}",
        max_order=None if of.max_order is None else of.max_order - 2,
        cannot=of.cannot
        | ({"coupling": "the complete model needs a higher order"} if of.max_order is not None else {}),
        cse=of.cse,
    )(by)


for _name in (
    *("taylor", "recursive_body", "recursive_spatial", "second_order_body"),
    *("second_order_closed_form", "closed_form", "ad_jet_cse"),
):
    _register(_name)
