"""The flat map and its inverse: all methods agree, they undo each other, and equal what the equations of motion say."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import ARMS, S3, STIFFNESS, arm, planar_arm, random_ports, sigma_of, swing, three

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.drives import drive_torques
from oc_dyn.elastic.motor_side import elastic_torques
from oc_dyn.registry import get, get_method

QUANTITIES = od.quantities("elastic robot")
HIGHER = ("linear", "mixed", "direct")  # of which one order more is compared


def relative(a, b):
    """Largest difference, relative to the largest entry of the second (or to one)."""
    a, b = (np.ravel(x.full() if isinstance(x, ca.DM) else x) for x in (a, b))
    assert a.shape == b.shape
    return np.abs(a - b).max() / max(1.0, np.abs(b).max())


def functions(elastic, quantity, order):
    return [
        (m, od.function(elastic, quantity, order=order, method=m))
        for m in od.methods(quantity)
        if get_method(quantity, m).refusal(elastic, order) is None
    ]


@pytest.mark.few(18)
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", list(ARMS))
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_methods_agree(quantity, name):
    elastic = arm(name)
    if quantity == "elastic_link_motion" and elastic.coupling:
        with pytest.raises(od.OrderError, match="complete model"):
            od.function(elastic, quantity)
        return
    first_order = 1 if quantity == "elastic_link_motion" else 0
    for order in (
        (first_order, first_order + 1) if name in HIGHER and get(quantity).max_order is None else (first_order,)
    ):
        (first, reference), *others = functions(elastic, quantity, order)
        assert len(others) >= (1 if elastic.coupling else 2)
        for seed in (1, 2):
            ports = random_ports(reference, name, seed)
            expected = reference(**ports)
            assert all(np.isfinite(x.full()).all() for x in expected.values())
            for method, f in others:
                for port, value in f(**ports).items():
                    error = relative(value, expected[port])
                    assert error < 1e-9, f"{method} and {first} differ in {port}, order {order}, by {error:.1e}"


def test_every_kind_of_derivation_is_registered():
    methods = od.methods("elastic_flat_map")
    assert {"taylor", "recursive_body", "second_order_body", "second_order_closed_form", "closed_form", "ad"} <= set(
        methods
    )
    assert {get_method("elastic_flat_map", m).kind for m in methods} == {"analytic", "closed_form", "ad"}
    with pytest.raises(od.OrderError, match="complete model needs a higher order"):
        od.function(arm("complete"), "elastic_flat_map", method="second_order_body")
    with pytest.raises(od.OrderError, match="up to order 0"):
        od.function(arm("linear"), "elastic_flat_map", order=1, method="second_order_body")


def flat_state(name, seed, order=0):
    """(ports of a random motion, what the flat map makes of it)."""
    f = od.function(arm(name), "elastic_flat_map", order=order)
    ports = random_ports(f, name, seed)
    return ports, {k: x.full().ravel() for k, x in f(**ports).items()}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ARMS))
def test_the_robot_moves_as_the_flat_map_says(name):
    """The flat map's torques, put into the equations of motion at its state, give the accelerations it started from."""
    f = od.function(arm(name), "elastic_forward_dynamics")
    for seed in (3, 4):
        ports, flat = flat_state(name, seed)
        state = {**ports, **flat}
        found = f(**{n: state[n] for n in f.name_in()})
        assert relative(found["dv"], ports["dv"]) < 1e-9
        assert relative(found["d2theta"], flat["d2theta"]) < 1e-9
        if "d2sigma" in found:
            assert relative(found["d2sigma"], ports["d2sigma"]) < 1e-9


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ARMS))
def test_time_derivatives_of_the_flat_map(name):
    """dtheta, d2theta and dtau_m against differences of theta and tau_m along a polynomial motion."""
    f, low = (od.function(arm(name), "elastic_flat_map", order=k) for k in (1, 0))
    ports = random_ports(f, name, 5)
    h = 2e-4

    def along(t):
        jets = {"v": ["q", *(n for n in f.name_in() if n.endswith("v"))], "s": [n for n in f.name_in() if "sigma" in n]}
        moved = {}
        for names in jets.values():
            for k, port in enumerate(names):
                moved[port] = sum(ports[n] * t**i / np.prod(np.arange(1, i + 1)) for i, n in enumerate(names[k:]))
        return {k: x.full() for k, x in low(**{n: moved[n] for n in low.name_in()}).items()}

    now, values = f(**ports), {j: along(j * h) for j in (-2, -1, 1, 2)}
    for low_port, port in (("theta", "dtheta"), ("dtheta", "d2theta"), ("tau_m", "dtau_m")):
        difference = (8 * (values[1][low_port] - values[-1][low_port]) - values[2][low_port] + values[-2][low_port]) / (
            12 * h
        )
        assert relative(difference, now[port]) < 2e-6, port


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [n for n in ARMS if not n.startswith("complete")])
def test_the_state_tells_the_links_motion(name):
    """Forward dynamics of order 1 (2, given the motor torques) returns the derivatives that the flat map was given."""
    elastic = arm(name)
    ports, flat = flat_state(name, 6)
    tau = drive_torques(elastic, 2).call([ports[k] for k in ("q", "v", "dv", "d2v", "d3v")])
    theta = [ca.DM(flat[n]) for n in ("theta", "dtheta", "d2theta")]
    position = [ca.DM(ports[n]) for n in ("q", "v", "dv")]
    sigma = [ca.DM(ports[n]) for n in ("sigma", "dsigma", "d2sigma")] if "sigma" in ports else []
    springs = elastic_torques(elastic, position, theta, sigma)[0]
    tau = [x - y if elastic.across is not None else x for x, y in zip(tau, springs, strict=True)]
    rigid = {n: tau[k].full()[list(elastic.rigid)] for k, n in enumerate(("tau_rigid", "dtau_rigid", "d2tau_rigid"))}
    state = {**ports, **flat, **rigid}
    for order, expected in ((0, ("dv",)), (1, ("dv", "d2v")), (2, ("dv", "d2v", "d3v"))):
        for method in ("taylor", "ad_via_inverse"):
            f = od.function(elastic, "elastic_link_motion", order=order, method=method)
            found = f(**{n: state[n] for n in f.name_in()})
            assert set(found) == set(expected)
            for port in expected:
                bound = 1e-7 if port == "d3v" else 1e-9  # the former is a small difference of large torques
                assert relative(found[port], ports[port]) < bound, (method, port)
            if order < 2 and not elastic.rigid:
                assert "tau_m" not in f.name_in()  # the state alone


def test_link_motion_is_the_derivative_of_the_acceleration():
    """Order 1 by itself: the rate of change of dv along the motion of the full state."""
    elastic = arm("linear")
    one = od.function(elastic, "elastic_link_motion", order=1)
    rates = el.plant(elastic).rates
    rng = np.random.default_rng(0)
    x, u, h = rng.normal(size=12), rng.normal(size=3), 1e-6

    def dv(x):
        return rates(x, u, ca.DM(0, 1)).full().ravel()[3:6]

    dx = rates(x, u, ca.DM(0, 1)).full().ravel()
    found = one(*np.split(x, 4))
    assert relative(found[0], dv(x)) < 1e-12
    assert relative(found[1], (dv(x + h * dx) - dv(x - h * dx)) / (2 * h)) < 1e-7


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["linear", "friction", "complete"])
def test_torques_recovered_from_a_simulation(name):
    """tau_m = B theta'' + springs + friction + coupling, accelerations by differences of the simulated speeds."""
    elastic = arm(name)
    reference = el.reference(elastic, swing(3), duration=0.5)
    run = el.simulate(elastic, el.feedforward_pd(elastic, 200, 20), reference, dt=1e-3, rtol=1e-12)
    stencil = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    inside = slice(4, -4)
    rate = {
        k: sum(c * (np.roll(x, -j, 0) - np.roll(x, j, 0)) for j, c in stencil.items())[inside] / 1e-3
        for k, x in (("d2theta", run.dtheta), ("dv", run.v))
    }
    recovered = rate["d2theta"] @ elastic.motor_inertia + run.tau[inside]
    speed = run.dtheta[inside]
    recovered += speed * elastic.motor_damping + elastic.motor_friction * np.tanh(speed / 0.02)
    if elastic.coupling:
        recovered += rate["dv"] @ S3
    f = od.function(elastic, "elastic_flat_map")
    at = reference.at(run.t)
    flat = f(**{n: at[n] for n in f.name_in()})["tau_m"].full().T[inside]
    assert np.abs(recovered - flat).max() < 1e-6 * np.abs(flat).max()


def test_stiff_springs_come_to_the_rigid_robot():
    """tau_m -> inverse dynamics + B dv as K grows, like 1 / K."""
    a, B = planar_arm(3), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(1)
    motion = [rng.normal(size=3) for _ in range(5)]
    rigid = od.function(a, "inverse_dynamics")(*motion[:3]).full().ravel() + B * motion[2]
    factors = np.array([1.0, 1e1, 1e2, 1e3, 1e4])
    gaps = []
    for factor in factors:
        f = od.function(el.elastic_robot(a, factor * 400.0, motor_inertia=B), "elastic_flat_map")
        gaps.append(np.abs(f(*motion)[3].full().ravel() - rigid).max())
    assert np.polyfit(np.log(factors), np.log(gaps), 1)[0] == pytest.approx(-1, abs=0.01)
    assert gaps[-1] < 1e-3 * np.abs(rigid).max()


@pytest.mark.parametrize("name", ["nonlinear", "direct", "pairs", "mixed_kinds"])
def test_springs_carry_the_torque_they_were_solved_for(name):
    elastic = arm(name)
    ports, flat = flat_state(name, 7)
    tau = od.function(elastic.links, "inverse_dynamics")(*(ports[k] for k in ("q", "v", "dv"))).full().ravel()
    for j in elastic.joints:
        z = [float(flat["theta"][m] - ports["q"][j.q, 0]) for m in j.theta]
        sigma = ports["sigma"][j.sigma, 0] if j.sigma is not None else 0.0
        assert float(sum(j.spring.torques(z, sigma))) == pytest.approx(tau[j.v], rel=1e-10, abs=1e-10)
        if isinstance(j.spring, el.AntagonisticSprings):
            h = 1e-6
            sides = [float(sum(j.spring.torques([x + s * h for x in z], 0.0))) for s in (1, -1)]
            assert (sides[0] - sides[1]) / (2 * h) == pytest.approx(sigma, rel=1e-6)
            assert STIFFNESS[name] * 0.8 < sigma < STIFFNESS[name] * 1.2


def test_damped_springs_have_no_algebraic_flat_map():
    e = el.elastic_robot(planar_arm(2), 500.0, motor_inertia=0.2, damping={"joint2": 3.0})
    for quantity in ("elastic_flat_map", "elastic_link_motion"):
        with pytest.raises(od.OrderError, match=r"joint2 are damped.*damped_motion"):
            od.function(e, quantity)
    for law in (el.feedforward, lambda x: el.feedforward_pd(x, 1, 1)):
        with pytest.raises(od.OrderError, match="damped"):
            law(e)
    assert od.function(e.undamped(), "elastic_flat_map").n_out() == 4
    with pytest.raises(od.ModelError, match="complete model"):
        whole = el.elastic_robot(planar_arm(2), 500.0, motor_inertia=0.2, damping=3.0, coupling=S3[:2, :2])
        el.damped_motion(whole, el.reference(whole, swing(2), duration=1.0))


def test_the_dampers_equation_is_integrated_when_asked():
    """D z' + K z = tau, against its residual by differences; the start is forgotten like exp(-t K / D)."""
    K, D = np.array([500.0, 300.0]), np.array([20.0, 15.0])
    springs = dict(zip(("joint1", "joint2"), (el.LinearSpring(k, d) for k, d in zip(K, D, strict=True)), strict=True))
    e = el.elastic_robot(planar_arm(2), springs, motor_inertia=0.2)
    reference = el.reference(e, swing(2), duration=1.0)
    motion = el.damped_motion(e, reference, dt=1e-3)
    at = reference.at(motion.t)
    tau = od.function(e.links, "inverse_dynamics")(at["q"], at["v"], at["dv"]).full().T
    z = motion.theta - at["q"].T
    rate = (8 * (z[3:-1] - z[1:-3]) - z[4:] + z[:-4]) / 12e-3
    assert np.abs(D * rate + K * z[2:-2] - tau[2:-2]).max() < 1e-6
    assert np.abs(0.2 * motion.d2theta + tau - motion.tau_m).max() < 1e-9
    moved = el.damped_motion(e, reference, dt=1e-3, deflection=z[0] + 0.01)
    late = np.searchsorted(motion.t, 0.3)
    assert np.allclose((moved.theta - motion.theta)[late], 0.01 * np.exp(-motion.t[late] * K / D), rtol=1e-6)


@pytest.mark.parametrize("needs, wanted", [("bounded torque", 3), ("torque", 4), ("torque_rate", 5)])
def test_motions_of_too_low_continuity_are_refused_with_the_order(needs, wanted):
    e = three()
    path = el.rest_to_rest([0.0, 0.0, 0.0], [0.5, -0.3, 0.2], 1.0, continuity=wanted - 1)
    with pytest.raises(od.OrderError, match=rf"is {wanted - 1} times .* needs {wanted}.*continuity={wanted}"):
        el.reference(e, path, needs=needs)
    smooth = el.rest_to_rest([0.0, 0.0, 0.0], [0.5, -0.3, 0.2], 1.0, continuity=wanted)
    assert el.reference(e, smooth, needs=needs).continuity == wanted


def test_continuity_is_what_the_torque_needs():
    """C4: the motor torque is continuous at the ends of a motion from rest, its rate not; C3: the torque jumps."""
    e = three()
    f = od.function(e, "elastic_flat_map", order=1)
    jumps = {}
    for c in (3, 4, 5):
        path = el.rest_to_rest([0.0, 0.0, 0.0], [0.5, -0.3, 0.2], 1.0, continuity=c, wait=0.5)
        reference = el.reference(e, path, needs="bounded torque", order=1)
        before, after = (f(**reference.at([0.5 + s * 1e-9])) for s in (-1, 1))
        jumps[c] = [np.abs(before[p].full() - after[p].full()).max() for p in ("tau_m", "dtau_m")]
    assert jumps[3][0] > 1
    assert jumps[4][0] < 1e-4
    assert jumps[5][0] < 1e-4
    assert jumps[4][1] > 10
    assert jumps[5][1] < 1e-2


def test_a_planned_trajectory_is_a_reference():
    e = three()
    path = el.rest_to_rest([0.1, 0.0, -0.2], [0.5, -0.3, 0.2], 1.0, hold=0.2)
    plan = od.Trajectory(path.t, path.pieces, joints=[j.name for j in e.joints], units=["rad"] * 3, robot=e.robot)
    reference = el.reference(e, plan)
    times = np.linspace(0.0, 1.2, 50)
    sampled = plan.sample(times)
    for port, values in zip(("q", "v", "dv", "d2v", "d3v"), sampled.derivatives, strict=False):
        assert np.allclose(reference.at(times)[port], values.T, atol=1e-9)
    assert reference.breaks == (0.0, 1.0, 1.2)
    assert reference.duration == 1.2
    with pytest.raises(od.ShapeError, match="3 joints"):
        el.reference(arm("branching"), plan)


def test_references_are_checked():
    with pytest.raises(od.ShapeError, match="duration"):
        el.reference(three(), swing(3))
    with pytest.raises(od.ShapeError, match="gives 2 values, expected 3"):
        el.reference(three(), swing(2), duration=1.0)
    with pytest.raises(od.ShapeError, match="stiffness of joint1, joint2"):
        el.reference(arm("pairs"), swing(2), duration=1.0)
    at = el.reference(arm("pairs"), swing(2), duration=1.0, sigma=sigma_of("pairs")).at([0.3])
    assert at["dsigma"][0, 0] == pytest.approx(90 * np.cos(0.3))
