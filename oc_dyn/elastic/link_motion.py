"""The inverse of the flat map: time derivatives of the links' motion from the full state.

The springs' torques drive the links, so forward dynamics of order r gives dv .. d{r+1}v from the torques' derivatives
up to r; the motors' accelerations come from their torques. Feedback needs order 1, dv and d2v, which for elastic joints
follow from the state alone; order 2 adds d3v, given the motor torques. The torques of rigid joints are no part of the
state, so they and their derivatives are inputs from the start.
"""

import casadi as ca

from ..errors import OrderError
from ..ports import configuration_port, derivative_name, motion_ports
from ..registry import get_method, method, quantity
from .drives import accelerations, at_drives
from .motor_side import at_motors, elastic_torques, joint_torques, motor_friction
from .ports import admit_flat, column_ports, example, jet

QUANTITY = "elastic_link_motion"


def _admit(robot):
    elastic = admit_flat(QUANTITY)(robot)
    if elastic.coupling:
        raise OrderError(
            f"{QUANTITY}: in the complete model the links' accelerations depend on the motor torques at once, and the "
            "state alone does not tell them; use elastic_forward_dynamics, or the reduced model"
        )
    return elastic


def _inputs(elastic, order, options):
    ports = [configuration_port(elastic.links), motion_ports(elastic.links, 0)[1], *column_ports(elastic, "theta", 1)]
    if elastic.adjusted:
        ports += column_ports(elastic, "sigma", order)
    ports += column_ports(elastic, "tau_rigid", order) if elastic.rigid else []
    return ports + column_ports(elastic, "tau_m", order - 2)


def _outputs(elastic, order, options):
    return motion_ports(elastic.links, order + 1)[2:]


def _call(function, elastic, order, ports, options):
    sigma = jet(ports, "sigma", order) if elastic.adjusted else []
    rigid = jet(ports, "tau_rigid", order) if elastic.rigid else []
    tau_m = jet(ports, "tau_m", order - 2)
    theta = [ports["theta"], ports["dtheta"]]
    found = function(elastic, order, ports["q"], ports["v"], theta, sigma, rigid, tau_m)
    return {derivative_name("v", k + 1): x for k, x in enumerate(found)}


quantity(
    name=QUANTITY,
    summary="accelerations of an elastic robot's links and their time derivatives, from the full state",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    default=("taylor",),
    of="elastic robot",
    admit=_admit,
    equation="M(q) dv + C(q, v) v + g(q) + friction(v) + U'(q) = phi(theta - q, sigma) + tau_rigid and its time "
    "derivatives, with theta'' = B^-1 (tau_m - phi - friction(theta'))",
    notes=(
        "sigma: where the stiffness is a coordinate of variable springs; tau_rigid: where joints are rigid.",
        "tau_m and its derivatives come in from order 2 on: dv and d2v follow from the state alone.",
    ),
    errors=("OrderError: springs that are damped, or the complete model",),
    example=example,
)


def link_motion(forward_dynamics, elastic, order, q, v, theta, sigma, rigid, tau_m):
    """[dv .. d{order+1}v] by a method of forward dynamics.

    theta: [theta, dtheta]; sigma, rigid (torques of rigid joints), tau_m: jets. Order k of forward dynamics needs the
    springs' torques up to their k-th derivative, and from the second on these need theta'' = B^-1 (tau_m - springs -
    friction) and the dv found before.
    """
    theta, position, none = list(theta), [q, v], ca.DM(len(elastic.elastic_motors), 1)
    B_inverse = ca.inv(ca.DM(elastic.motor_inertia))
    for k in range(order + 1):
        if k > 1:
            theta.append(_motor_acceleration(elastic, k - 2, B_inverse, position, theta, sigma, tau_m))
        on_links, _ = elastic_torques(elastic, at_drives(elastic, position[: k + 1]), theta[: k + 1], sigma[: k + 1])
        torques = [x + joint_torques(elastic, none, rigid[i] if rigid else None) for i, x in enumerate(on_links)]
        found = accelerations(elastic, k, forward_dynamics).call([q, v, *torques])
        position.append(found[k])
    return found


def _motor_acceleration(elastic, k, B_inverse, position, theta, sigma, tau_m):
    """Derivative k of theta'', lower ones being known."""
    drives = at_drives(elastic, position[: k + 1])
    torque = _elastic_rows(elastic, tau_m[k]) - elastic_torques(elastic, drives, theta[: k + 1], sigma[: k + 1])[1][k]
    speeds = [at_motors(elastic, ca.DM(len(elastic.drives) or elastic.nv, 1), x) for x in theta[1 : k + 2]]
    return B_inverse @ (torque - _elastic_rows(elastic, motor_friction(elastic, speeds)[k]))


def _elastic_rows(elastic, tau_m):
    return ca.vertcat(*(tau_m[m] for m in elastic.elastic_motors))


def _register(name):
    """The same by one method of forward dynamics, under its name."""
    of = get_method("forward_dynamics", name)

    def by(elastic, order, q, v, theta, sigma, rigid, tau_m):
        return link_motion(name, elastic, order, q, v, theta, sigma, rigid, tau_m)

    by.__doc__ = f"Derivatives of the links' motion from forward dynamics by {name}; see link_motion.\n\n"
    by.__doc__ += f'Arguments and results: od.describe("{QUANTITY}").'
    source = f"De Luca and Book 2008, section 13.1, on forward_dynamics/{name}"
    method(QUANTITY, name, kind=of.kind, source=source, max_order=of.max_order, cannot=of.cannot, cse=of.cse)(by)


for _name in ("taylor", "articulated_spatial", "closed_form", "ad_jet_cse", "ad_via_inverse", "ad_taylor"):
    _register(_name)
