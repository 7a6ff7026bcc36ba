"""The flat map by automatic differentiation of its order-0 equations along the motion of the links."""

from itertools import pairwise

import casadi as ca

from ..time_methods import in_time
from .across import motor_jets
from .drives import closed, closed_state
from .flat_map import QUANTITY
from .model import columns
from .motor_side import at_motors, elastic_torques, motor_friction, sigma_forces


@in_time(QUANTITY, source="AD of theta(q, v, dv, sigma)")
def ad(way, elastic, order, q, V, sigma, wrenches):
    """Motor positions and torques with all time derivatives by AD: order-0 inverse dynamics is all that is called.

    Arguments and results: od.describe("elastic_flat_map").
    """
    V_ = [ca.SX.sym("v", *x.shape) for x in V]
    s_ = [ca.SX.sym("s", *x.shape) for x in sigma]
    w_ = [ca.SX.sym("w_ext", *x.shape) for x in wrenches]
    q_, rate, position, drive_speed, tau = closed_state(elastic, *V_[:2], w_[:1])
    flow = [(q_, rate), *pairwise(V_), *pairwise(s_), *((ca.vec(x), ca.vec(y)) for x, y in pairwise(w_))]

    def along(x, k):
        return way(ca.densify(ca.SX(x)), k, flow)

    theta, z = {}, {}
    if elastic.across is not None:
        found = motor_jets(elastic, [tau], [position])[0]
        theta = {e: [found[j.theta[0]]] for e, j in enumerate(elastic.joints)}
        z = {e: [[found[j.theta[0]] - position[j.q]]] for e, j in enumerate(elastic.joints)}
    for e in (
        reversed(range(len(elastic.joints))) if elastic.across is None else ()
    ):  # in the complete model those behind act on those before
        j = elastic.joints[e]
        torque = tau[j.v] + (_coupling_force(elastic, j.v, q_, V_, theta, along) if elastic.coupling else 0)
        z[e] = j.spring.deflections([torque], [s_[0][j.sigma]] if j.sigma is not None else [])
        theta[e] = [x[0] + position[j.q] for x in z[e]]
    found = along(ca.vertcat(*(x for e in range(len(elastic.joints)) for x in theta[e])), 2 + order)
    motors = [ca.SX.sym("theta", *x.shape) for x in found]  # symbols, so that what is known is not derived again
    flow += pairwise(motors)
    speed = at_motors(elastic, drive_speed, motors[1])
    on_links, on_motors = (x[0] for x in elastic_torques(elastic, [position], motors[:1], s_[:1]))
    inertial = ca.DM(elastic.motor_inertia) @ motors[2] + on_motors
    if elastic.coupling:
        inertial = inertial + along(elastic.coupling.momentum(q_, V_[0]), 1)[1]
    rigid = set(elastic.rigid)
    across = ca.vertcat(*(on_links[k] if k in rigid else 0 for k in range(on_links.numel())))
    if elastic.coupling and elastic.rigid:
        more = {v: _coupling_force(elastic, v, q_, V_, theta, along) for v in elastic.rigid}
        tau = tau + ca.vertcat(*(more.get(v, 0) for v in range(elastic.nv)))
    torques = at_motors(elastic, tau - across, inertial) + motor_friction(elastic, [speed])[0]
    out = {"theta": found, "tau_m": along(torques, order)}
    if elastic.unactuated:
        out["tau_base"] = along(columns(tau, elastic.unactuated), order)
    if elastic.stiffness_driven:
        drives = ca.DM(elastic.stiffness_inertia) * s_[2] + sigma_forces(elastic, 0, z, s_[:1])[0]
        out["tau_sigma"] = along(drives, order)
    symbols, values = [q_, *V_, *s_, *w_], [closed(elastic, q), *V, *sigma, *wrenches]
    positions = ca.Function("ad", symbols, found).call(values)
    return _put_in(out, [*symbols, *motors], [*values, *positions])


def _coupling_force(elastic, row, q, V, theta, along):
    still = [ca.DM(1, 1)] * 3
    jets = [
        along(theta[e][i], 2) if e in theta else still
        for e, j in enumerate(elastic.joints)
        for i in range(len(j.theta))
    ]
    first, second = (ca.vertcat(*(jet[k] for jet in jets)) for k in (1, 2))
    return elastic.coupling.forces(q, V[0], first, second)[row]


def _put_in(out, symbols, values):
    f = ca.Function("ad", symbols, [x for xs in out.values() for x in xs])
    found = iter(f.call(values))
    return {name: [next(found) for _ in xs] for name, xs in out.items()}
