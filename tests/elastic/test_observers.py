"""Observers on exact models: each promise is measured against the exact solution of its error equation."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, planar_arm, swing, three

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
    ref = {n: np.zeros(flat.size1_in(n)) for n in flat.name_in()} | {"q": np.ravel(q)}
    sigma = {n: np.full(x.size, 400.0 * (n == "sigma")) for n, x in ref.items() if n.endswith("sigma")}
    out = flat(**{**ref, **sigma})
    theta = out["theta"].full().ravel()
    state = {"q": ref["q"], "v": np.zeros(elastic.nv), "theta": theta, "dtheta": np.zeros(theta.size), **sigma}
    return state, out["tau_m"].full().ravel()


def moving(tau):
    return lambda t: ca.DM(tau) + ca.vertcat(*(ca.sin((3 + k) * t) for k in range(len(tau))))


PUSH = np.array([1.5, -1.0, 0.7])
SLOW = pytest.mark.slow  # springs whose torques are inverted by iterations take a while to build
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


@pytest.mark.parametrize("name", ["friction", "mixed", pytest.param("complete", marks=SLOW)])
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


@pytest.mark.slow
@pytest.mark.parametrize("torque", ["springs", "measured"])
@pytest.mark.parametrize("name", ["friction", "mixed", pytest.param("nonlinear", marks=SLOW), "complete"])
def test_disturbances_at_motors_are_found_at_the_promised_rate(name, torque):
    elastic = arm(name)
    observer = el.disturbance_observer(elastic, [-30 + 20j, -30 - 20j], order=2, torque=torque)
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    push = PUSH[: len(elastic.elastic_motors)]
    t, _, seen = watched(elastic, observer, moving(tau), 0.4, start=start, motors=lambda t: ca.DM(push))
    # step response of (60 s + 1300) / (s^2 + 60 s + 1300)
    step = 1 - np.exp(-30 * t) * (np.cos(20 * t) - 1.5 * np.sin(20 * t))
    assert np.abs(seen["disturbance"] - np.outer(step, push)).max() < 1e-9


def _error_of(k0, k1, e0, t):
    """Solution of e1' = e2 - k1 e1, e2' = -k0 e1 by the matrix exponential."""
    w, V = np.linalg.eig(np.array([[-k1, 1], [-k0, 0]]))
    return np.array([(V @ (np.exp(w * x) * np.linalg.solve(V, e0 + 0j))).real for x in t])


def test_link_states_of_one_joint_are_found_at_the_promised_poles():
    elastic = el.elastic_robot(planar_arm(1), 300.0, motor_inertia=0.2)
    observer = el.link_state_observer(elastic, [-20 + 15j, -20 - 15j])
    start, tau = at_rest(elastic, [0.4])
    e0 = np.array([0.1, -0.5])
    memory = np.array([0.4, 0.0]) - e0
    t, x, seen = watched(elastic, observer, moving(tau), 0.4, start=start, memory=memory)
    exact = _error_of(625, 40, e0, t)
    assert np.abs(x["q"] - seen["q_hat"] - exact[:, :1]).max() < 1e-9
    assert np.abs(x["v"] - seen["v_hat"] - exact[:, 1:]).max() < 1e-9 * 15
    assert np.abs(x["v"]).max() > 0.1


def test_dampers_leave_the_poles_of_the_link_state_observer():
    """But for gravity, which changes over the distance D / K by which the damper moves what is seen."""
    links = planar_arm(1)
    q = np.array([0.4])
    elastic = el.elastic_robot(links, 300.0, damping=2.0, motor_inertia=0.2)
    slope = od.function(links, "inverse_dynamics", order=1)(q, 1, 0, 0)[1]  # of gravity
    observer = el.link_state_observer(elastic, [-20.0, -30.0])
    found = _memory_slope(observer, elastic, at_rest(elastic, q)[0])
    moved = float(slope) * 2 / 300 / float(od.function(links, "mass_matrix")(q))  # by y, D / K away per speed
    found[1, 1] -= moved
    assert np.sort(np.linalg.eigvals(found).real) == pytest.approx([-30, -20], rel=1e-9)


def _memory_slope(observer, elastic, state):
    """d memory_rate / d memory at a state, the memory at its true value."""
    x = ca.vertcat(*(ca.DM(state[n]) for n in plant(elastic).parts))
    tau, dtau = torque_sensors(elastic)(x, NONE)
    f = observer.function
    ports = {n: ca.MX.sym(n, f.size1_in(n)) for n in f.name_in()}
    slope = ca.Function("slope", list(ports.values()), [ca.jacobian(f(**ports)["memory_rate"], ports["memory"])])
    tau_m = at_rest(elastic, state["q"])[1]
    known = {**state, "tau": tau, "dtau": dtau, "tau_m": tau_m}
    known["memory"] = observer.first_memory(**{n: known[n] for n in observer.first_memory.name_in()})["memory"]
    return slope(*(known[n] for n in ports)).full()


def _partly_rigid():
    return el.elastic_robot(planar_arm(3), {"joint1": 500, "joint3": 300}, motor_inertia=0.3)


@pytest.mark.parametrize(
    "name",
    [
        "linear",
        "friction",
        "rigid",
        "complete_chain",
        pytest.param("nonlinear", marks=SLOW),
        pytest.param("driven", marks=SLOW),
    ],
)
def test_link_state_observers_have_the_poles_asked_for_at_rest(name):
    elastic = _partly_rigid() if name == "rigid" else arm(name)
    poles = [[-10, -14], [-20, -26], [-30 + 5j, -30 - 5j]]
    observer = el.link_state_observer(elastic, poles)
    state = at_rest(elastic, [0.3, -0.5, 0.8])[0]
    found = np.linalg.eigvals(_memory_slope(observer, elastic, state))
    assert np.sort_complex(found) == pytest.approx(np.sort_complex(np.ravel(poles)), abs=1e-6)


@pytest.mark.parametrize("name", ["friction", "mixed", "complete"])
def test_link_states_are_found_in_motion(name):
    elastic = arm(name)
    observer = el.link_state_observer(elastic, 60.0)
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    memory = np.concatenate([start["q"] + 0.05, start["v"]])
    t, x, seen = watched(elastic, observer, moving(tau), 0.6, start=start, memory=memory, rtol=1e-11)
    for real, hat in (("q", "q_hat"), ("v", "v_hat")):
        assert np.abs(x[real] - seen[hat])[-1].max() < 1e-9
    assert np.abs(x["q"] - seen["q_hat"])[0].max() > 0.04
    rate = np.polyfit(t[5:20], np.log(np.abs(x["q"] - seen["q_hat"]).max(axis=1)[5:20] / (1 + 60 * t[5:20])), 1)[0]
    assert -rate == pytest.approx(60, rel=0.15)  # Coriolis forces of the error


@pytest.mark.parametrize("order, left", [(1, 1 / 30), (2, 2 / 30)])
def test_velocity_filters_stay_behind_by_the_promised_share_of_the_acceleration(order, left):
    """Exact solution along q = a t^2 / 2: the error of the velocity is a g^-1 (2 a g^-1) less what has decayed."""
    elastic, a, g = arm("linear"), np.array([1.0, -2.0, 0.5]), 30.0
    observer = el.velocity_filter(elastic, g, order=order)
    t, m = ca.MX.sym("t"), ca.MX.sym("m", observer.memory)
    y = ca.DM(a) * t**2 / 2
    ports = {"q": y, "theta": 2 * y, "memory": m}
    f = ca.Function("f", [t, m, ca.MX.sym("p", 0)], [observer.function(**ports)["memory_rate"]])
    times = np.linspace(0, 1.0, 30)
    memory, _ = integrate(f, times, np.zeros(observer.memory), (), 1e-12, 1e-14, ())
    see = ca.Function("see", [t, m], [observer.function(**ports)[n] for n in observer.estimates]).map(times.size)
    assert observer.estimates == ("v_hat", "dtheta_hat")
    v, dtheta = (x.full().T for x in see(times.reshape(1, -1), memory))
    decay = np.exp(-g * times) * (1 if order == 1 else 1 + g * times / 2)
    exact = np.outer(times - left * (1 - decay), a)
    assert np.abs(v - exact).max() < 1e-9
    assert np.abs(dtheta - 2 * exact).max() < 1e-9


@pytest.mark.slow
def test_a_law_fed_by_observers_is_the_law_when_they_are_right():
    """Feedback linearisation without encoders at the links, started on the reference: the exact tracking stays."""
    elastic = three()
    reference = el.reference(elastic, swing(3), duration=0.5)
    law = el.feedback_linearization(elastic, 20.0)
    both = el.observed(law, el.link_state_observer(elastic, 80.0), el.momentum_observer(elastic, 50.0))
    assert [n for n in both.function.name_in() if not n.endswith("_ref")] == ["theta", "dtheta", "tau", "memory"]
    assert both.function.name_out() == ["tau_m", "q_hat", "v_hat", "external_torque", "memory_rate"]
    assert el.simulate(elastic, both, reference, rtol=1e-11).largest_error < 1e-10
    run = el.simulate(elastic, both, reference, rtol=1e-8, start={"q": 0.02})
    assert run.largest_error > 0.015
    assert np.abs(run.error[-1]).max() < 3e-3


@pytest.mark.slow
def test_compensation_of_observed_friction():
    """Friction that the law does not know is put back: the error falls with the observer's rate."""
    real = el.elastic_robot(planar_arm(2), 400.0, motor_inertia=0.3, motor_damping=4.0)
    model = el.elastic_robot(planar_arm(2), 400.0, motor_inertia=0.3)
    reference = el.reference(model, swing(2), duration=1.0)
    law = el.feedforward_pd(model, 200.0, 20.0)
    plain = el.simulate(real, law, reference, rtol=1e-7).largest_error
    errors = []
    for g in (50.0, 200.0):
        helped = el.observed(law, el.friction_observer(model, g), compensate="friction_torque")
        errors.append(el.simulate(real, helped, reference, rtol=1e-7).largest_error)
        lumped = el.observed(law, el.disturbance_observer(model, g), compensate="disturbance")
        assert el.simulate(real, lumped, reference, rtol=1e-7).largest_error == pytest.approx(errors[-1], rel=1e-3)
    assert errors[0] < plain / 4
    assert errors[1] < errors[0] / 3


def test_replay_of_records_is_the_sampled_observer():
    elastic = arm("friction")
    observer = el.momentum_observer(elastic, 50.0, torque="motor")
    start, tau = at_rest(elastic, [0.3, -0.5, 0.8])
    reference = el.reference(elastic, swing(3), duration=0.1)
    run = el.simulate(elastic, el.feedforward_pd(elastic, 100.0, 10.0), reference, dt=1e-4, rtol=1e-8)
    signals = {n: getattr(run, n) for n in observer.measured}
    found = observer.replay(signals, 1e-4)["external_torque"]
    assert found.shape == run.q.shape
    assert np.abs(found).max() < 0.02  # nothing pushes: what Euler steps of 0.1 ms leave
    with pytest.raises(od.ShapeError, match="the records lack tau_m"):
        observer.replay({n: x for n, x in signals.items() if n != "tau_m"}, 1e-4)
    with pytest.raises(od.ShapeError, match=r"v has shape \(3,\)"):
        observer.replay({**signals, "v": np.zeros(3)}, 1e-4)


def test_refusals():
    elastic = arm("linear")
    law = el.feedforward_pd(elastic, 100.0, 10.0)
    with pytest.raises(od.ShapeError, match="poles"):
        el.momentum_observer(elastic, [10.0, 10.0])
    with pytest.raises(od.ModelError, match="two motors"):
        el.link_state_observer(arm("pairs"), 20.0)
    with pytest.raises(od.ModelError, match="sigma is prescribed"):
        el.link_state_observer(arm("direct"), 20.0)
    with pytest.raises(od.ModelError, match="an elastic robot, got LoopRobot|an elastic robot, got Robot"):
        el.momentum_observer(planar_arm(2), 20.0)
    with pytest.raises(od.ModelError, match="external_torque, which is given before"):
        el.observed(law, el.momentum_observer(elastic, 10.0), el.momentum_observer(elastic, 20.0))
    with pytest.raises(od.UnknownName, match="friction_torque"):
        el.observed(law, el.momentum_observer(elastic, 10.0), compensate="friction_torque")
    with pytest.raises(od.ShapeError, match="no observer is given"):
        el.observed(law)
    with pytest.raises(od.ModelError, match="for .* with other motors"):
        el.observed(law, el.momentum_observer(el.elastic_robot(planar_arm(2), 10.0, motor_inertia=1.0), 10.0))
    with pytest.raises(od.ModelError, match="depends on tau_m"):
        el.observer("own", elastic, ["tau_m"], lambda p, m: {"x": p["tau_m"], "memory_rate": m}, 1)
    with pytest.raises(od.UnknownName, match="dtau"):
        el.observer("own", elastic, ["torque"], lambda p, m: {"x": m, "memory_rate": m}, 1)
