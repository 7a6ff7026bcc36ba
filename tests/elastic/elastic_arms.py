"""Elastic robots that the tests share: every kind of spring, mixed, variable, and the complete model."""

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.robots import planar_arm


def three():
    """The arm of three joints that the closed-loop numbers belong to."""
    return el.elastic_robot(planar_arm(3), [500.0, 400.0, 300.0], motor_inertia=[0.5, 0.3, 0.2])


def swing(n, duration=3.0):
    """(t -> q) smooth motion of n joints that starts at rest."""
    start, reach, w = np.array([-0.8, 0.4, 0.5]), np.array([0.6, 0.5, 0.7]), np.array([2.0, 2.6, 3.2])
    return lambda t: start[:n] + reach[:n] * (1 - ca.cos(w[:n] * t))


def cubic(z):
    return 300 * z + 3000 * z**3


def exponential(z):
    return 20 * (ca.exp(8 * z) - 1)


def biarticular(q):
    return 40 * (q[0] + 0.8 * q[1] - 0.2) ** 2 + 5 * (1 - ca.cos(q[2]))


def tendons(q, theta):
    """Of motor 2 over joints 1 and 2, stiffening, and a soft one between motors 1 and 2."""
    z = theta[1] - 0.4 * q[0] - q[1]
    return 150 * z**2 + 400 * z**4 + 30 * (theta[0] - q[0] + theta[1] - q[1]) ** 2


def over_a_rigid_joint(q, theta):
    return 80 * (theta[1] - 0.5 * q[1] - q[2]) ** 2


S3 = np.array([[0.0, 0.02, 0.03], [0.0, 0.0, 0.02], [0.0, 0.0, 0.0]])
STIFFNESS = {
    "direct": 400.0,
    "driven": 400.0,
    "mixed_kinds": 600.0,
    "pairs": 900.0,
    "complete_variable": 600.0,
}  # of the variable ones


def _mixed_kinds(arm):
    springs = {"joint1": el.VariableSpring(), "joint3": el.AntagonisticSprings(exponential)}
    return el.elastic_robot(arm, springs, motor_inertia=0.3, motor_damping=0.1)


ARMS = {
    "linear": lambda: el.elastic_robot(od.robots.chain(3), [500, 400, 300], motor_inertia=[0.5, 0.3, 0.2]),
    "friction": lambda: el.elastic_robot(
        planar_arm(3), [500, 400, 300], motor_inertia=0.3, motor_damping=1.0, motor_friction=0.5
    ),
    "rubbing": lambda: el.elastic_robot(
        planar_arm(3),
        {"joint1": 500, "joint3": 300},
        motor_inertia=0.3,
        motor_damping=0.2,
        link_damping=[2.0, 1.0, 0.5],
        link_friction=[1.0, 0.5, 0.3],
        link_smoothing=[0.5, 0.8, 0.6],
    ),
    "parallel": lambda: el.elastic_robot(
        planar_arm(3), {"joint1": 500, "joint3": 300}, motor_inertia=0.3, parallel=biarticular, link_damping=0.4
    ),
    "matrix": lambda: el.elastic_robot(
        planar_arm(3), [[500, 60, 20], [60, 400, 50], [20, 50, 300]], motor_inertia=[0.5, 0.3, 0.2]
    ),
    "across": lambda: el.elastic_robot(
        planar_arm(3),
        {"joint1": 500, "joint2": 0, "joint3": 300},
        motor_inertia=0.3,
        across=tendons,
        parallel={"joint2": (20.0, 0.1)},
    ),
    "across_rigid": lambda: el.elastic_robot(
        planar_arm(3), {"joint1": 500, "joint3": 300}, motor_inertia=0.3, across=over_a_rigid_joint
    ),
    "full_inertia": lambda: el.elastic_robot(
        planar_arm(2), 400.0, rotor_inertia=5e-6, gear_ratio=[[100.0, 20.0], [0.0, 120.0]]
    ),
    "mixed": lambda: el.elastic_robot(
        planar_arm(3),
        {"joint1": 500, "joint3": 300},
        motor_inertia={"joint1": 0.5, "joint2": 0.3, "joint3": 0.2},
        motor_damping=1.0,
        motor_friction=0.5,
    ),
    "branching": lambda: el.elastic_robot(od.robots.tree(4), 300.0, motor_inertia=0.1),
    "nonlinear": lambda: el.elastic_robot(planar_arm(3), el.NonlinearSpring(cubic), motor_inertia=0.3),
    "direct": lambda: el.elastic_robot(planar_arm(3), el.VariableSpring(), motor_inertia=0.3),
    "driven": lambda: el.elastic_robot(
        planar_arm(3), el.VariableSpring(lambda z, s: s * (z + z**3)), motor_inertia=0.3, stiffness_inertia=1e-4
    ),
    "pairs": lambda: el.elastic_robot(planar_arm(2), el.AntagonisticSprings(exponential), motor_inertia=0.3),
    "mixed_kinds": lambda: _mixed_kinds(planar_arm(3)),
    "complete": lambda: el.elastic_robot(
        planar_arm(3), [500, 400, 300], motor_inertia=[0.5, 0.3, 0.2], coupling=S3, motor_damping=0.1
    ),
    "complete_mixed": lambda: el.elastic_robot(
        planar_arm(3), {"joint1": 500, "joint3": 300}, motor_inertia=[0.5, 0.3, 0.2], coupling=S3, link_damping=0.2
    ),
    "complete_rigid_first": lambda: _complete_rigid_first(),
    "complete_variable": lambda: el.elastic_robot(
        planar_arm(3),
        {"joint1": el.VariableSpring(), "joint2": 400.0, "joint3": el.AntagonisticSprings(exponential)},
        motor_inertia=0.3,
        coupling=[[0, 0.02, 0.01, 0.01], [0, 0, 0.02, 0.01], [0, 0, 0, 0]],
    ),
    "complete_geared": lambda: el.elastic_robot(
        planar_arm(3),
        {"joint1": 500, "joint3": 300},
        rotor_inertia=5e-6,
        gear_ratio=[[100.0, 20.0, 0.0], [0.0, 120.0, 10.0], [0.0, 0.0, 90.0]],
        coupling=S3,
    ),
    "complete_chain": lambda: _complete_chain(),
    "complete_nonlinear": lambda: el.elastic_robot(
        planar_arm(2), el.NonlinearSpring(cubic), motor_inertia=0.3, coupling=S3[:2, :2]
    ),
}


def _complete_chain():
    chain = od.robots.chain(3)
    S = el.motor_coupling(chain, 4e-6, 100)  # depends on q: the axes are not parallel
    return el.elastic_robot(chain, [500, 400, 300], rotor_inertia=4e-6, gear_ratio=100, coupling=S)


def _complete_rigid_first():
    chain = od.robots.chain(3)
    S = el.motor_coupling(chain, 4e-6, 100)
    return el.elastic_robot(chain, {"joint2": 400, "joint3": 300}, rotor_inertia=4e-6, gear_ratio=100, coupling=S)


_BUILT = {}


def arm(name):
    """The shared elastic robot of this name, built once."""
    if name not in _BUILT:
        _BUILT[name] = ARMS[name]()
    return _BUILT[name]


def sigma_of(name):
    """t -> sigma of the reference of a robot of variable stiffness; None for others."""
    if name not in STIFFNESS:
        return None
    n = len(arm(name).sigma_names)
    return lambda t: ca.vertcat(*(STIFFNESS[name] * (1 + 0.1 * (k + 1) * ca.sin(t)) for k in range(n)))


def random_ports(f, name, seed=0):
    """{port: numbers} for a Function of an elastic robot; stiffnesses are positive."""
    rng = np.random.default_rng(seed)
    ports = {port: rng.normal(size=f.size_in(port)) for port in f.name_in()}
    if "sigma" in ports:
        ports["sigma"] = STIFFNESS[name] * (1 + 0.1 * rng.uniform(-1, 1, ports["sigma"].shape))
    return ports


def textbook_arm(q, v):
    """(M, C v + g) of the planar arm with two links of 0.4 m and 3 kg, from its textbook equations."""
    m, length, half, inertia, g = 3.0, 0.4, 0.2, 3.0 * 0.4**2 / 12, 9.81
    c2, s2 = np.cos(q[1]), np.sin(q[1])
    last = m * half**2 + inertia
    both = last + m * length * half * c2
    M = np.array([[last + m * (length**2 + half**2 + 2 * length * half * c2) + inertia, both], [both, last]])
    h = m * length * half * s2
    bias = np.array([-h * (2 * v[0] * v[1] + v[1] ** 2), h * v[0] ** 2])
    weight = m * g * half * np.cos(q.sum())
    bias += np.array([m * g * (half + length) * np.cos(q[0]) + weight, weight])
    return M, bias
