"""What the tests of laws share: robots, closed loops at a reference at rest, and energies along them."""

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.closed_loop import ClosedLoop
from oc_dyn.robots import planar_arm

REST = np.array([0.3, -0.4, 0.5])
_BUILT = {}


def robot(name):
    """An elastic robot of this name, built once."""
    if name not in _BUILT:
        _BUILT[name] = _ROBOTS[name]()
    return _BUILT[name]


def _panda():
    return el.elastic_robot(od.robots.panda(), 7000.0, motor_inertia=[0.5, 0.5, 0.4, 0.4, 0.2, 0.2, 0.15])


_ROBOTS = {
    "single": lambda: el.elastic_robot(planar_arm(1), 200.0, motor_inertia=0.1),
    "2r": lambda: el.elastic_robot(od.robots.planar_2r(), [900.0, 700.0], motor_inertia=[0.3, 0.2]),
    "three": lambda: el.elastic_robot(planar_arm(3), [500.0, 400.0, 300.0], motor_inertia=[0.5, 0.3, 0.2]),
    "damped": lambda: el.elastic_robot(planar_arm(3), [500.0, 400.0, 300.0], damping=2.0, motor_inertia=0.3),
    "one_weightless": lambda: el.elastic_robot(planar_arm(1).with_gravity([0, 0, 0]), 200.0, motor_inertia=0.1),
    "vsa": lambda: el.elastic_robot(planar_arm(1), el.VariableSpring(), motor_inertia=0.1),
    "panda": _panda,
}


def rest_of(name):
    """A position (q,) of a robot above."""
    if name == "panda":
        return np.array([0.1, -0.5, 0.2, -2.0, 0.1, 1.6, 0.7])
    return REST[: robot(name).nv]


def at_rest(elastic, law, q, sigma=None):
    """casadi.Function x -> rates of robot and law [plant], the reference staying at q."""
    still = el.reference(law.elastic, lambda t: ca.DM(q), duration=1.0, sigma=sigma)
    loop = ClosedLoop(elastic, law, still, None)
    x = ca.MX.sym("x", loop.plant.size)
    rates = loop.rates()(0, ca.vertcat(x, ca.DM(loop.memory + 2, 1)), ca.DM(0, 1))
    return ca.Function("at_rest", [x], [rates[: loop.plant.size]]), loop


def parts_of(elastic, x):
    """q, v, theta, dtheta of a state."""
    return [x[part] for part in el.plant(elastic).parts.values()]


def falls_at(rates, energy, x):
    """Rate of an energy, a function of the state, along the closed loop at the numbers x."""
    s = ca.SX.sym("x", x.size)
    slope = ca.Function("slope", [s], [ca.jacobian(energy(s), s)])
    return float(slope(x) @ rates(x))


def kinetic(elastic, x, inertia):
    """Kinetic energy of links and motors of an inertia (theta,) or (theta, theta)."""
    q, v, _, dtheta = parts_of(elastic, x)
    B = ca.DM(np.diag(inertia) if np.ndim(inertia) == 1 else inertia)
    return 0.5 * v.T @ od.function(elastic.links, "mass_matrix")(q) @ v + 0.5 * dtheta.T @ B @ dtheta


def height(elastic, q):
    """Potential energy of the links."""
    return od.function(elastic.links, "potential_energy")(q)


def gravity(elastic, q):
    zero = ca.DM.zeros(elastic.nv)
    return od.function(elastic.links, "inverse_dynamics")(q, zero, zero)


def squared(K, x):
    """1/2 x' K x, K numbers or a matrix."""
    K = ca.DM(np.diag(K) if np.ndim(K) == 1 else K)
    return 0.5 * x.T @ K @ x


def balanced(elastic, theta, load, start, steps=20):
    """q with K (theta - q) = load(q), by plain iteration."""
    K, q = elastic.linear_stiffness(), ca.SX(ca.DM(start))
    for _ in range(steps):
        q = theta - load(q) / K
    return q


def states(elastic, seed, q, count=3):
    """States near rest at q."""
    rng, n = np.random.default_rng(seed), elastic.nv
    for _ in range(count):
        near = q + 0.2 * rng.normal(size=n)
        yield np.concatenate([near, rng.normal(size=n), near + 0.05 * rng.normal(size=n), rng.normal(size=n)])


def far_from(found, wanted):
    """Largest distance of poles from those wanted, each with its nearest that is left, of the size of the largest."""
    left, worst = list(found), 0.0
    assert len(found) == len(wanted)
    for x in wanted:
        k = int(np.argmin(np.abs(np.array(left) - x)))
        worst = max(worst, abs(left.pop(k) - x))
    return worst / np.abs(wanted).max()
