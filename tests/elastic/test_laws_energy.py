"""Laws by passivity: their storage functions, written down here anew, fall at exactly the rate of their dampers."""

import casadi as ca
import numpy as np
import pytest
from law_tools import (
    at_rest,
    balanced,
    falls_at,
    gravity,
    height,
    kinetic,
    parts_of,
    rest_of,
    robot,
    squared,
    states,
)

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.analysis.linear_loop import linear_loop

NAMES = ["2r", *(pytest.param(n, marks=pytest.mark.slow) for n in ("single", "three", "panda"))]


def check(e, law, q, energy, dampers, seed=0):
    """The rate of an energy is -dampers(x) at random states, and it is at rest where it should be."""
    rates, loop = at_rest(e, law, q)
    start = loop.first_state(None)[: loop.plant.size]
    assert np.abs(rates(start).full()).max() < 1e-8
    for x in states(e, seed, q):
        lost = dampers(x)
        assert falls_at(rates, energy, x) == pytest.approx(-lost, rel=1e-7, abs=1e-9)
        assert float(energy(ca.SX(ca.DM(x)))) > float(energy(ca.SX(ca.DM(start))))


@pytest.mark.parametrize("name", NAMES)
def test_online_gravity_pd(name):
    e, q_d = robot(name), rest_of(name)
    kp, kd = (3000.0, 40.0) if name == "panda" else (600.0, 30.0)
    law = el.online_gravity_pd(e, kp, kd)
    z = gravity(e, q_d) / e.linear_stiffness()

    def energy(x):
        q, _, theta, _ = parts_of(e, x)
        store = kinetic(e, x, e.motor_inertia) + squared(e.linear_stiffness(), theta - q)
        return store + height(e, q) - height(e, theta - z) + squared(np.full(e.nv, kp), theta - q_d - z)

    check(e, law, q_d, energy, lambda x: kd * np.sum(x[3 * e.nv :] ** 2))


@pytest.mark.parametrize("name", NAMES)
def test_full_state_feedback(name):
    e, q_d = robot(name), rest_of(name)
    kp, kd, Bs = 150.0, 12.0, 0.3 * np.diag(e.motor_inertia)
    law = el.full_state_feedback(e, kp, kd, inertia=Bs)
    held = q_d + gravity(e, q_d) / e.linear_stiffness()

    def energy(x):
        q, _, theta, _ = parts_of(e, x)
        K, bar = e.linear_stiffness(), balanced(e, theta, lambda y: gravity(e, y), q_d)
        store = kinetic(e, x, Bs) + squared(K, theta - q) + height(e, q)
        return store - height(e, bar) - squared(K, theta - bar) + squared(np.full(e.nv, kp), theta - held)

    check(e, law, q_d, energy, lambda x: kd * np.sum(x[3 * e.nv :] ** 2))


@pytest.mark.slow
def test_full_state_feedback_on_damped_springs():
    """The torque's rate is a damper on the motors alone: within its bound the energy never rises, beyond it may."""
    e, q_d = robot("damped"), rest_of("three")
    kd, D = 8.0, 2.0
    most = 2 * np.sqrt(kd * D)
    law = el.full_state_feedback(e, 200.0, kd, inertia=0.1, torque_rate=most, feedforward="gravity")
    held = q_d + gravity(e, q_d) / e.linear_stiffness()

    def energy(x):
        q, _, theta, _ = parts_of(e, x)
        K, bar = e.linear_stiffness(), balanced(e, theta, lambda y: gravity(e, y), q_d)
        store = kinetic(e, x, np.full(3, 0.1)) + squared(K, theta - q) + height(e, q)
        return store - height(e, bar) - squared(K, theta - bar) + squared(np.full(3, 200.0), theta - held)

    def dampers(x):
        rate = x[9:] - x[3:6]
        return kd * np.sum(x[9:] ** 2) + D * np.sum(rate**2) + most * np.sum(rate * x[9:])

    check(e, law, q_d, energy, dampers)
    with pytest.raises(od.ModelError, match=r"torque_rate of joint1 is 8.08 Nm s/rad; passivity is proven up to 8"):
        el.full_state_feedback(e, 200.0, kd, inertia=0.1, torque_rate=1.01 * most, feedforward="gravity")
    beyond = el.full_state_feedback(
        e, 200.0, kd, inertia=0.1, torque_rate=1.5 * most, feedforward="gravity", check=False
    )
    rates, x = at_rest(e, beyond, q_d)[0], np.concatenate([q_d, np.ones(3), q_d, 0.5 * np.ones(3)])
    x[9:] = np.sqrt(D / (kd + 1.5 * most)) * x[3:6]
    assert falls_at(rates, energy, x) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_joint_impedance(name):
    e, q_d = robot(name), rest_of(name)
    Kd, D, Bs = 60.0 * np.eye(e.nv) + 5.0, 9.0 * np.eye(e.nv), 0.4 * np.diag(e.motor_inertia)
    law = el.impedance(e, Kd, D, inertia=Bs)

    def energy(x):
        q, _, theta, _ = parts_of(e, x)
        K = e.linear_stiffness()
        bar = balanced(e, theta, lambda y: gravity(e, y) - ca.DM(Kd) @ (y - q_d), q_d, 40)
        motors = squared(K, theta - bar) + height(e, bar) - squared(Kd, bar - q_d)
        return kinetic(e, x, Bs) + squared(K, theta - q) + height(e, q) - motors

    check(e, law, q_d, energy, lambda x: x[3 * e.nv :] @ D @ x[3 * e.nv :])
    assert np.allclose(_felt(e, law, q_d), Kd, atol=1e-6)


@pytest.mark.parametrize("name", ["2r", *(pytest.param(n, marks=pytest.mark.slow) for n in ("three", "panda"))])
def test_cartesian_impedance(name):
    e, q_d = robot(name), rest_of(name)
    tip, Bs = e.links.bodies[-1].name, 0.4 * np.diag(e.motor_inertia)
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    K = np.block([[turn @ np.diag([9.0, 2.0, 1.0]) @ turn.T, np.zeros((3, 3))],
                  [np.zeros((3, 3)), turn @ np.diag([70.0, 40.0, 50.0]) @ turn.T]])  # fmt: skip
    law = el.impedance(e, K, frame=tip, inertia=Bs, joint_stiffness=4.0, joint_damping=3.0, iterations=20)
    pose = od.function(e.links, "frame_pose", frame=tip)
    jacobian = od.function(e.links, "frame_jacobian", frame=tip, representation="hybrid")

    def spring(q):
        now, wanted = pose(q=q), pose(q=q_d)
        G = 0.5 * np.trace(K[:3, :3]) * np.eye(3) - K[:3, :3]
        turned = ca.trace(ca.DM(G) @ (ca.DM.eye(3) - now["R"] @ wanted["R"].T))
        return turned + squared(K[3:, 3:], now["p"] - wanted["p"]) + squared(np.full(e.nv, 4.0), q - q_d)

    y = ca.SX.sym("y", e.nv)
    pull = ca.Function("pull", [y], [ca.gradient(spring(y), y)])

    def bar_of(theta):
        return balanced(e, theta, lambda x: gravity(e, x) - pull(x), q_d, 40)

    def energy(x):
        q, _, theta, _ = parts_of(e, x)
        bar = bar_of(theta)
        motors = squared(e.linear_stiffness(), theta - bar) + height(e, bar) - spring(bar)
        return kinetic(e, x, Bs) + squared(e.linear_stiffness(), theta - q) + height(e, q) - motors

    t = ca.SX.sym("t", e.nv)
    bar = ca.Function("bar", [t], [bar_of(t)])

    def dampers(x):
        moved = x[3 * e.nv :]
        twist = jacobian(bar(x[2 * e.nv : 3 * e.nv])).full() @ moved
        return 3.0 * moved @ moved + twist @ law.gains["damping"] @ twist

    check(e, law, q_d, energy, dampers)
    J = jacobian(q_d).full()
    assert np.allclose(_felt(e, law, q_d), J.T @ K @ J + 4.0 * np.eye(e.nv), atol=1e-6)


def _felt(e, law, q_d):
    """Stiffness (v, v) that torques on the links meet at rest."""
    found = linear_loop(e, law, q_d, None)
    moved = -np.linalg.solve(found.closed(), found.E)[: e.nv]
    return np.linalg.inv(moved)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["esp", "esp_i"])
def test_elastic_structure_preserving(name, kind):
    """eta by its definition: the springs carry those of the new coordinates and the links' dampers and gravity."""
    e, q_d = robot(name), rest_of(name)
    K, D, Dm = e.linear_stiffness(), 6.0 * np.eye(e.nv) + 1.0, np.full(e.nv, 7.0)
    Km, Kq = (np.full(e.nv, 150.0), 0 * D) if kind == "esp" else (np.zeros(e.nv), 90.0 * np.eye(e.nv) + 2.0)
    law = el.esp(e, Km, Dm, D) if kind == "esp" else el.esp_i(e, Kq, D, Dm)

    def eta_of(x):
        q, v, theta, _ = parts_of(e, x)
        held = gravity(e, q) - ca.DM(D) @ v - ca.DM(Kq) @ (q - q_d)
        return theta - q - held / K + q - q_d

    x = ca.SX.sym("x", 4 * e.nv)
    slope, a = ca.Function("slope", [x], [ca.jacobian(eta_of(x), x)]), ca.SX.sym("a", e.nv)
    # eta' has the links' accelerations in it: those of the robot under its springs, law or not
    q, v, theta, _ = parts_of(e, x)
    dv = od.function(e.links, "forward_dynamics")(q, v, K * (theta - q))
    flow = ca.vertcat(v, dv, parts_of(e, x)[3], a)
    moving = ca.Function("moving", [x, a], [slope(x) @ flow])  # a does not count
    eta_rate = moving(x, 0)

    def energy(s):
        at = ca.Function("at", [x], [eta_of(x), eta_rate])
        eta, rate = at(s)
        q, v = parts_of(e, s)[:2]
        store = 0.5 * v.T @ od.function(e.links, "mass_matrix")(q) @ v + squared(e.motor_inertia, rate)
        return store + squared(K, eta - q + q_d) + squared(Km, eta) + squared(Kq, q - q_d)

    def dampers(s):
        rate = moving(s, 0).full().ravel()
        return s[e.nv : 2 * e.nv] @ D @ s[e.nv : 2 * e.nv] + rate @ (Dm * rate)

    check(e, law, q_d, energy, dampers)
