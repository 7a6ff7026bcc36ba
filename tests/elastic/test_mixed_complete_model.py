"""The complete model with rigid, elastic and variable joints: Lagrange's equations by AD, energies, stiff limits."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import S3, STIFFNESS, arm, planar_arm, random_ports, sigma_of, swing

import oc_dyn as od
from oc_dyn import elastic as el

MIXED = ("complete_mixed", "complete_rigid_first", "complete_variable", "complete_geared")


def lagrange(e, S, B):
    """casadi.Function (q, v, theta, dtheta, dv, d2theta) -> generalised forces, from the kinetic energy alone."""
    n, m = e.nv, len(e.elastic_motors)
    q, v, dv = (ca.SX.sym(x, n) for x in ("q", "v", "dv"))
    theta, dtheta, d2theta = (ca.SX.sym(x, m) for x in ("theta", "dtheta", "d2theta"))
    speeds = {r: dtheta[k] for k, r in enumerate(e.elastic_motors)}
    speeds |= {r: v[k] for r, k in zip(e.rigid_motors, e.rigid, strict=True)}
    rotors = ca.vertcat(*(speeds[r] for r in range(len(e.motor_names))))
    M = od.function(e.robot, "mass_matrix")(q)
    kinetic = 0.5 * ca.dot(v, M @ v) + ca.dot(v, S(q) @ rotors) + 0.5 * ca.dot(rotors, ca.DM(B) @ rotors)
    x, dx, d2x = ca.vertcat(q, theta), ca.vertcat(v, dtheta), ca.vertcat(dv, d2theta)
    p = ca.gradient(kinetic, dx)
    inertial = ca.jtimes(p, x, dx) + ca.jtimes(p, dx, d2x) - ca.gradient(kinetic, x)
    gravity = od.function(e.robot, "inverse_dynamics")(q, 0 * v, 0 * v)
    forces = inertial + ca.vertcat(gravity, ca.SX(m, 1))
    return ca.Function("forces", [q, v, theta, dtheta, dv, d2theta], [forces])


CASES = {
    "complete_mixed": (lambda q: ca.DM(S3), np.diag([0.5, 0.3, 0.2])),
    "complete_geared": (
        lambda q: ca.DM(S3),
        (lambda N: 5e-6 * N.T @ N)(np.array([[100.0, 20.0, 0.0], [0.0, 120.0, 10.0], [0.0, 0.0, 90.0]])),
    ),
    "complete_rigid_first": (lambda q: el.motor_coupling(od.robots.chain(3), 4e-6, 100)(q), 4e-2 * np.eye(3)),
}


@pytest.mark.parametrize("name", CASES)
def test_accelerations_fulfil_lagranges_equations(name):
    e = arm(name)
    forces = lagrange(e, *CASES[name])
    f = od.function(e, "elastic_forward_dynamics")
    ports = random_ports(f, name, 1)
    found = f(**ports)
    given = forces(*(ports[n] for n in ("q", "v", "theta", "dtheta")), found["dv"], found["d2theta"]).full().ravel()
    q, theta, tau, v = (ports[n].ravel() for n in ("q", "theta", "tau_m", "v"))
    expected = np.concatenate([-e.link_damping * v, np.zeros(len(theta))])
    for j in e.joints:
        pull = j.spring.stiffness * (theta[j.theta[0]] - q[j.q])
        expected[j.v] += pull
        expected[e.nv + j.theta[0]] = tau[j.tau[0]] - pull
    for k, m in zip(e.rigid, e.rigid_motors, strict=True):
        expected[k] += tau[m]
    assert given == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", MIXED)
def test_energy_is_kept(name):
    e = arm(name)
    p = el.plant(e)
    x, u, given = ca.SX.sym("x", p.size), ca.SX.sym("u", p.controls), ca.SX.sym("s", p.rates.size1_in(2))
    half = given.numel() // 2
    moving = ca.vertcat(given[half:], ca.SX(half, 1))
    energy = ca.sum1(p.energies(x, given))
    rate = ca.jtimes(energy, x, p.rates(x, u, given)) + ca.jtimes(energy, given, moving)
    f = ca.Function("rate", [x, u, given], [rate])
    rng = np.random.default_rng(2)
    at, tau = 0.3 * rng.normal(size=p.size), rng.normal(size=p.controls)
    sigma = np.concatenate([np.full(half, STIFFNESS.get(name, 0.0)), rng.normal(size=half)])
    put_in, taken = p.powers(at, tau, sigma).full().ravel()
    assert float(f(at, tau, sigma)) == pytest.approx(put_in - taken, rel=1e-9, abs=1e-8)


def test_a_rigid_joint_is_the_limit_of_a_stiff_one():
    """The rigid joint's motor torque of the flat map against that of springs of 1e6 and 1e7: a tenth of the gap."""
    f = od.function(arm("complete_mixed"), "elastic_flat_map")
    ports = random_ports(f, "complete_mixed", 3)
    ports = {n: x if n in ("q", "v") else 0.1 * x for n, x in ports.items()}
    exact, gaps = f(**ports)["tau_m"].full().ravel(), []
    for stiffness in (1e6, 1e7):
        stiff = el.elastic_robot(
            planar_arm(3), [500, stiffness, 300], motor_inertia=[0.5, 0.3, 0.2], coupling=S3, link_damping=0.2
        )
        g = od.function(stiff, "elastic_flat_map")
        more = {n: np.zeros(3) for n in g.name_in() if n not in ports}
        gaps.append(np.abs(g(**ports, **more)["tau_m"].full().ravel() - exact).max() / np.abs(exact).max())
    assert gaps[1] == pytest.approx(0.1 * gaps[0], rel=0.05)
    assert gaps[1] < 1e-2


def test_orders_of_derivatives():
    e = arm("complete_variable")
    assert e.motor_orders == (2, 4, 6)
    assert e.sigma_order == 6
    assert "d6sigma" in od.function(e, "elastic_flat_map").name_in()
    assert arm("complete_mixed").motor_orders == (2, 4)  # joint 2 is rigid and hands nothing on
    assert arm("direct").sigma_order == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXED)
def test_the_flat_map_is_followed(name):
    e = arm(name)
    reference = el.reference(e, swing(3), duration=0.3, sigma=sigma_of(name))
    run = el.simulate(e, el.feedforward_pd(e, 100.0, 10.0), reference, rtol=1e-10)
    assert run.largest_error < 1e-7
    assert np.abs(run.energy_balance).max() < 1e-6


def test_what_is_no_coupling_of_these_joints_is_refused():
    with pytest.raises(od.ModelError, match=r"shape \(3, 3\), expected \(3, 4\): velocities, motors"):
        el.elastic_robot(
            planar_arm(3),
            {"joint1": 500.0, "joint3": el.AntagonisticSprings(lambda z: ca.exp(z))},
            motor_inertia=0.3,
            coupling=S3,
        )
    with pytest.raises(od.ModelError, match="row 3, column 1, but must be strictly upper"):
        el.elastic_robot(planar_arm(3), {"joint3": 500.0}, motor_inertia=0.3, coupling=0.1 * np.tri(3, k=-1))
    with pytest.raises(od.ModelError, match="complete model"):
        el.feedback_linearization(arm("complete_geared"), 20.0)
