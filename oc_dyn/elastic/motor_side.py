"""What acts on the motors and on the drives of stiffness, with time derivatives along a motion.

A jet is the list of a value and its time derivatives. z: {elastic joint number: one jet a motor}; sigma: jet of the
column of all of them.
"""

from itertools import pairwise

import casadi as ca

from ..errors import ModelError
from ..lie.time_derivatives import time_derivatives
from .drives import at_drives
from .friction import motor_friction as motor_friction


def deflections(elastic, q, theta):
    """{elastic joint number: [one jet a motor]} from the jets q of the links and theta, of the same length."""
    return _between(elastic, at_drives(elastic, q), theta)


def _between(elastic, position, theta):
    pairs = list(zip(theta, position, strict=True))
    return {
        e: [[x[m] - y[j.v if k else j.q] for k, (x, y) in enumerate(pairs)] for m in j.theta]
        for e, j in enumerate(elastic.joints)
    }


def elastic_torques(elastic, position, theta, sigma):
    """Derivatives 0.. of the torques of all springs (on the drives (drives,), taken from the motors (theta,)), along
    jets of one length: positions of the drives, theta, sigma; no damping."""
    z = _between(elastic, position, theta)
    motors = _own_torques(elastic, len(theta) - 1, z, sigma)
    links = [joint_torques(elastic, x) for x in motors]
    if elastic.across is None:
        return links, motors
    by_links, by_motors = elastic.across.slopes(position, theta)
    return [x - y for x, y in zip(links, by_links, strict=True)], [
        x + y for x, y in zip(motors, by_motors, strict=True)
    ]


def spring_torques(elastic, order, z, sigma):
    """Derivatives 0..order of the torques (theta,) that the springs take from their motors; no damping."""
    if elastic.across is not None:
        raise ModelError(
            elastic.name, ["it has springs across several joints, whose torques do not follow from deflections alone"]
        )
    return _own_torques(elastic, order, z, sigma)


def _own_torques(elastic, order, z, sigma):
    rows = [[] for _ in range(order + 1)]
    for e, j in enumerate(elastic.joints):
        for k, x in enumerate(
            _along(j, order, z[e], _sigma_of(j, sigma), lambda s, x, y: ca.vertcat(*s.torques(x, y)))
        ):
            rows[k].append(x)
    return [ca.vertcat(*x) for x in rows]


def joint_torques(elastic, motors, rigid=None):
    """(drives,) torque on each joint with a drive from the torques of the springs at their motors, and those of rigid
    joints in their order, by default zero."""
    rows = [ca.DM(1, 1)] * (len(elastic.drives) or elastic.nv)
    for k, v in enumerate(elastic.rigid if rigid is not None else ()):
        rows[v] = rigid[k]
    for j in elastic.joints:
        rows[j.v] = sum((motors[m] for m in j.theta[1:]), motors[j.theta[0]])
    return ca.vertcat(*rows)


def spring_damping(elastic, v, dtheta):
    """Torques (theta,) that the springs' dampers take from their motors; v: of the drives."""
    return ca.vertcat(*(j.spring.damping * (dtheta[m] - v[j.v]) for j in elastic.joints for m in j.theta))


def spring_energy(elastic, z, sigma):
    """Energy in all springs [J]; z, sigma: values, {joint number: [a motor]} and column."""
    return sum(
        j.spring.energy(z[e], sigma[j.sigma] if j.spring.adjusted else ca.DM(0, 1))
        for e, j in enumerate(elastic.joints)
    )


def sigma_forces(elastic, order, z, sigma):
    """Derivatives 0..order of the force on each coordinate sigma: the energy's derivative by it."""
    rows = [[] for _ in range(order + 1)]
    for e, j in enumerate(elastic.joints):
        if j.spring.adjusted:
            for k, x in enumerate(_along(j, order, z[e], _sigma_of(j, sigma), _by_sigma)):
                rows[k].append(x)
    return [ca.vertcat(*x) for x in rows]


def _by_sigma(spring, z, sigma):
    z_, s_ = [ca.SX.sym("z") for _ in z], ca.SX.sym("s")
    slope = ca.Function("slope", [*z_, s_], [ca.gradient(spring.energy(z_, s_), s_)])
    return slope(*z, sigma)


def _sigma_of(j, sigma):
    return [x[j.sigma] for x in sigma] if j.spring.adjusted else []


def _along(j, order, z, sigma, value):
    """Derivatives 0..order of value(spring, [z of each motor], sigma) along the jets z and sigma."""
    empty = ca.DM(0, 1)
    if not order:
        return [value(j.spring, [x[0] for x in z], sigma[0] if sigma else empty)]
    Z = [[ca.SX.sym("z") for _ in range(order + 1)] for _ in z]
    s = [ca.SX.sym("s") for _ in range(order + 1)] if sigma else []
    flow = [pair for x in [*Z, s] for pair in pairwise(x)]
    rates = time_derivatives(value(j.spring, [x[0] for x in Z], s[0] if s else empty), order, flow, cse=True)
    f = ca.Function("along", [x for jet in [*Z, s] for x in jet], rates)
    return f.call([x for jet in [*z, sigma] for x in jet[: order + 1]])


def at_motors(elastic, links, motors):
    """(tau_m,) rows: of rigid joints from the column links (drives,), of elastic ones from motors (theta,)."""
    rows = dict(zip(elastic.elastic_motors, ca.vertsplit(motors), strict=True))
    rows |= {m: links[v] for m, v in zip(elastic.rigid_motors, elastic.rigid, strict=True)}
    return ca.vertcat(*(rows[m] for m in range(len(elastic.motor_names))))


def carried_momentum(elastic, order, q, V):
    """Derivatives 1..order + 1 of S(q)^T v, what the coupling adds on the motors' side in derivatives 0..order."""
    n = elastic.nv
    x = [ca.SX.sym("x", n) for _ in range(order + 3)]
    rates = time_derivatives(elastic.coupling.momentum(x[0], x[1]), order + 1, list(pairwise(x)), cse=True)
    return ca.Function("carried", x, rates[1:]).call([q, *V[: order + 2]])
