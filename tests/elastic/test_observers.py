"""Observers on exact models: each promise is measured against the exact solution of its error equation."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, planar_arm, swing, three
from elastic_arms import exponential as exponential

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.dop853 import integrate
from oc_dyn.elastic.plant import plant
from oc_dyn.elastic.torque_sensors import torque_sensors

NONE = ca.DM(0, 1)


def watched(elastic, observer, controls, duration, *, start, memory=None, links=None, motors=None, rtol=1e-12):
    """(t, {port: (K, n)}, estimates) of a robot with torques `controls(t)` and an observer beside it.

    links, motors: t -> torques on links (v,) and at motors (theta,) that the model does not know, put into the
    equations of motion by the mass matrix, apart from the observer's own formulas.
    """
    p = plant(elastic)
    t, whole, none = ca.MX.sym("t"), ca.MX.sym("x", p.size + observer.memory), ca.MX.sym("p", 0)
    x, m = whole[: p.size], whole[p.size :]
    s = {n: x[part] for n, part in p.parts.items()}
    u = controls(t)
    tau, dtau = torque_sensors(elastic)(x, NONE)
    ports = {**s, "tau": tau, "dtau": dtau, "tau_m": u, "memory": m}
    out = observer.function(**{n: ports[n] for n in observer.function.name_in()})
    n, k = elastic.nv, len(elastic.elastic_motors)
    extra = ca.vertcat(links(t) if links else ca.DM.zeros(n), motors(t) if motors else ca.DM.zeros(k))
    M = ca.MX(n + k, n + k)
    M[:n, :n], M[n:, n:] = od.function(elastic.links, "mass_matrix")(s["q"]), ca.DM(elastic.motor_inertia)
    if elastic.coupling:
        M[:n, n:] = elastic.coupling.matrix(s["q"])
        M[n:, :n] = M[:n, n:].T
    more = ca.solve(M, extra)
    zeros = ca.DM.zeros
    push = ca.vertcat(zeros(n), more[:n], zeros(k), more[n:], zeros(p.size - 2 * n - 2 * k))
    rate = ca.vertcat(p.rates(x, u, NONE) + push, out["memory_rate"])
    f = ca.Function("rates", [t, whole, none], [rate])
    state0 = {name: ca.DM(start[name]) for name in p.parts}
    x0 = ca.vertcat(*state0.values())
    if memory is None:
        tau0, dtau0 = torque_sensors(elastic)(x0, NONE)
        known = {**state0, "tau": tau0, "dtau": dtau0}
        memory = observer.first_memory(**{n: known[n] for n in observer.first_memory.name_in()})["memory"]
    times = np.linspace(0, duration, 41)
    states, _ = integrate(f, times, np.concatenate([np.ravel(x0), np.ravel(memory)]), (), rtol, rtol / 100, ())
    names = list(observer.estimates)
    see = ca.Function("see", [t, whole], [out[e] for e in names] + [ports[n] for n in s]).map(times.size)
    found = [y.full().T for y in see(times.reshape(1, -1), states)]
    return times, dict(zip(s, found[len(names) :], strict=True)), dict(zip(names, found, strict=False))


def at_rest(elastic, q):
    """{q, v, theta, dtheta} at rest under gravity, by the flat map."""
    flat = od.function(elastic.undamped(), "elastic_flat_map")
    ref = {n: np.zeros(flat.size1_in(n)) for n in flat.name_in()} | {"q": np.array(q, float)}
    out = flat(**ref)
    n = elastic.nv
    theta = out["theta"].full().ravel()
    return {"q": ref["q"], "v": np.zeros(n), "theta": theta, "dtheta": np.zeros(theta.size)}, out["tau_m"].full().ravel()


def moving(tau):
    return lambda t: ca.DM(tau) + ca.vertcat(*(ca.sin((3 + k) * t) for k in range(len(tau))))


PUSH = np.array([1.5, -1.0, 0.7])
KINDS = ["linear", "friction", "mixed", "nonlinear", "complete", "complete_chain"]


@pytest.mark.sample("friction", "complete_chain")
@pytest.mark.parametrize("torque", ["measured", "motor"])
@pytest.mark.parametrize("name", KINDS)
def test_external_torques_are_found_at_the_promised_rate(name, torque):
    """r' = g (tau_ext - r): a constant torque gives 1 - exp(-g t), to the integrator's error, in any motion."""
    elastic = arm(name)
    rates = np.array([15.0, 20.0, 30.0])
    observer = el.momentum_observer(elastic, -rates, torque=torque)
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    t, x, seen = watched(elastic, observer, moving(tau), 0.4, start=start, links=lambda t: ca.DM(PUSH))
    exact = PUSH * (1 - np.exp(-np.outer(t, rates)))
    assert np.abs(x["v"]).max() > 0.1  # it moves
    assert np.abs(seen["external_torque"] - exact).max() < 1e-9


def test_second_order_follows_ramps_and_first_order_stays_behind_by_their_slope():
    elastic = arm("friction")
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    ramp = lambda t: ca.DM(PUSH) * t  # noqa: E731
    one, two = (el.momentum_observer(elastic, 40.0, order=k) for k in (1, 2))
    found = [watched(elastic, o, moving(tau), 0.8, start=start, links=ramp) for o in (one, two)]
    lag = [PUSH * x[0][-1] - x[2]["external_torque"][-1] for x in found]
    assert lag[0] == pytest.approx(PUSH / 40, rel=1e-9)
    assert np.abs(lag[1]).max() < 1e-9


def test_collisions_are_told_above_the_threshold():
    elastic = arm("linear")
    observer = el.momentum_observer(elastic, 50.0, threshold=[1.4, 5, 5])
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    push = lambda t: ca.if_else(t > 0.2, ca.DM(PUSH), 0)  # noqa: E731
    t, _, seen = watched(elastic, observer, moving(tau), 0.4, start=start, links=push, rtol=1e-6)
    expected = (t > 0.2) & (1.5 * (1 - np.exp(-50 * (t - 0.2))) > 1.4)
    assert np.array_equal(seen["collision"].ravel() > 0, expected)
    assert 0 < expected.sum() < len(t)


@pytest.mark.parametrize("name", ["friction", "mixed", "complete"])
def test_friction_is_found_at_the_promised_rate(name):
    """r' = g (friction - r), integrated apart along the motion: friction of the motors as the plant has it."""
    elastic = arm(name)
    k = len(elastic.joints)
    observer = el.friction_observer(elastic, 200.0)
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    extra = np.array([0.6, -0.4, 0.3])[:k]
    t, x, seen = watched(elastic, observer, moving(tau), 0.6, start=start, motors=lambda t: -ca.DM(extra))
    rows = list(elastic.elastic_motors)
    coulomb = elastic.motor_friction[rows] * np.tanh(x["dtheta"] / elastic.friction_smoothing[rows])
    friction = extra + elastic.motor_damping[rows] * x["dtheta"] + coulomb
    late = t > 0.1
    lag = np.abs(np.gradient(friction, t, axis=0)[late]).max() / 200  # that of a ramp
    assert np.abs(seen["friction_torque"] - friction)[late].max() < 1.5 * lag + 1e-9
    assert np.abs(friction[late]).max() > 3 * lag


@pytest.mark.parametrize("torque", ["springs", "measured"])
@pytest.mark.parametrize("name", ["friction", "mixed", "nonlinear", "complete"])
def test_disturbances_at_motors_are_found_at_the_promised_rate(name, torque):
    elastic = arm(name)
    observer = el.disturbance_observer(elastic, [-30 + 20j, -30 - 20j], order=2, torque=torque)
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    push = PUSH[: len(elastic.elastic_motors)]
    t, _, seen = watched(elastic, observer, moving(tau), 0.4, start=start, motors=lambda t: ca.DM(push))
    # step response of (60 s + 1300) / (s^2 + 60 s + 1300)
    step = 1 - np.exp(-30 * t) * (np.cos(20 * t) - 1.5 * np.sin(20 * t))
    assert np.abs(seen["disturbance"] - np.outer(step, push)).max() < 1e-9
