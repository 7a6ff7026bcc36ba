"""Integrators, energy, sampling: what the simulation is worth."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, planar_arm, sigma_of, swing, three

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.dop853 import fixed_step, integrate


def oscillator(w=3.0):
    t, x, p = ca.SX.sym("t"), ca.SX.sym("x", 2), ca.SX.sym("p", 0)
    return ca.Function("rates", [t, x, p], [ca.vertcat(x[1], -(w**2) * x[0])])


def test_explicit_integrator_meets_its_tolerance():
    times = np.linspace(0, 10, 51)
    for rtol in (1e-6, 1e-9, 1e-12):
        x, facts = integrate(oscillator(), times, [1.0, 0.0], rtol=rtol, atol=rtol)
        assert np.abs(x[0] - np.cos(3 * times)).max() < 100 * rtol
    assert facts["steps"] < 300
    assert facts["evaluations"] > 12 * facts["steps"]


def test_explicit_integrator_against_another():
    """SciPy's, if it is there: the same scheme, so the same steps."""
    scipy = pytest.importorskip("scipy.integrate")
    t, x, p = ca.SX.sym("t"), ca.SX.sym("x", 2), ca.SX.sym("p", 0)
    f = ca.Function("rates", [t, x, p], [ca.vertcat(x[1], -9 * ca.sin(x[0]) + ca.cos(3 * t))])
    times = np.linspace(0, 5, 101)
    ours, facts = integrate(f, times, [1.0, 0.0], rtol=1e-8, atol=1e-10)
    theirs = scipy.solve_ivp(
        lambda t, x: f(t, x, []).full().ravel(), (0, 5), [1.0, 0.0], "DOP853", times, rtol=1e-8, atol=1e-10
    )
    assert abs(theirs.nfev - facts["evaluations"]) < 20
    assert np.abs(ours - theirs.y).max() < 1e-12


def test_explicit_integrator_stops_at_breaks_and_says_when_it_cannot():
    t, x, p = ca.SX.sym("t"), ca.SX.sym("x"), ca.SX.sym("p", 0)
    jump = ca.Function("rates", [t, x, p], [ca.if_else(t < 0.5, 1.0, -1.0)])
    found, facts = integrate(jump, [0.0, 0.5, 1.0], [0.0], rtol=1e-10, atol=1e-10, breaks=(0.5,))
    assert found[0] == pytest.approx([0.0, 0.5, 0.0], abs=1e-9)
    blow_up = ca.Function("rates", [t, x, p], [x**2])
    with pytest.raises(od.SolveError, match="t = 1") as caught:
        integrate(blow_up, [0.0, 0.5, 2.0], [1.0])
    assert caught.value.trajectory[0, 1] == pytest.approx(2.0)
    with pytest.raises(od.SolveError, match="after 5 steps"):
        integrate(oscillator(), [0.0, 100.0], [1.0, 0.0], max_steps=5)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "scheme, degree, order",
    [("radau", 2, 3), ("radau", 3, 5), ("legendre", 2, 4), ("legendre", 3, 6), ("dop853", 12, 8)],
)
def test_order_of_the_fixed_step_integrators(scheme, degree, order):
    """On an elastic arm of two joints under constant torques, against tight tolerances."""
    elastic = el.elastic_robot(planar_arm(2), [50.0, 30.0], motor_inertia=0.3)
    rates = el.plant_rates(elastic)
    x0, u = np.array([0.3, -0.4, 0.5, 0.2, 0.5, -0.3, 0.0, 0.4]), np.array([8.0, 3.0])
    exact = integrate(rates, [0.0, 0.4], x0, u, rtol=1e-13, atol=1e-14)[0][:, -1]
    errors, counts = [], {3: (64, 128), 4: (64, 128), 5: (32, 64), 6: (32, 64), 8: (16, 32)}[order]
    for steps in counts:
        f = fixed_step(rates, steps) if scheme == "dop853" else el.collocation_step(rates, degree, scheme, steps)
        errors.append(np.abs(f(0.0, x0, 0.4, u).full().ravel() - exact).max())
    assert 1e-12 < errors[-1] < 1e-4
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


@pytest.mark.slow
def test_collocation_inside_an_optimisation():
    """The least torque squared that brings an elastic joint from rest to rest; its torques, integrated tightly."""
    K, N, T = 20.0, 16, 1.0
    elastic = el.elastic_robot(planar_arm(1), K, motor_inertia=0.2)
    rates = el.plant_rates(elastic)
    equations = el.collocation_equations(rates, 4)
    opti = ca.Opti()
    x, u = opti.variable(4, N + 1), opti.variable(1, N)
    gravity = od.function(elastic.links, "gravity")
    hold = [float(gravity(q)) for q in (0.0, 0.5)]
    for k in range(N):
        X = opti.variable(4, 4)
        defects, end = equations(k * T / N, x[:, k], X, T / N, u[k])
        opti.subject_to(ca.vec(defects) == 0)
        opti.subject_to(end == x[:, k + 1])
    opti.subject_to(x[:, 0] == [0.0, 0.0, hold[0] / K, 0.0])
    opti.subject_to(x[:, -1] == [0.5, 0.0, 0.5 + hold[1] / K, 0.0])
    opti.minimize(ca.sumsqr(u))
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    solution = opti.solve()
    states, torques = solution.value(x), np.ravel(solution.value(u))
    state = states[:, 0]
    for k in range(N):
        state = integrate(rates, [0.0, T / N], state, [torques[k]], rtol=1e-11, atol=1e-13)[0][:, -1]
    assert np.abs(state - states[:, -1]).max() < 1e-5
    step, s = el.collocation_step(rates, 3), ca.MX.sym("s", 4)
    J = ca.Function("J", [s], [ca.jacobian(step(0.0, s, 0.01, 1.0), s)])(states[:, 3]).full()
    h = 1e-6
    for k, e in enumerate(np.eye(4)):
        sides = [step(0.0, states[:, 3] + sign * h * e, 0.01, 1.0).full().ravel() for sign in (1, -1)]
        assert np.allclose(J[:, k], (sides[0] - sides[1]) / (2 * h), atol=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["friction", "mixed", "nonlinear", "direct", "driven", "pairs", "complete_chain"])
def test_energy_balances(name):
    """Energy gained is work put in less work taken, with every spring, friction, dampers, drives and couplings."""
    elastic = arm(name)
    reference = el.reference(elastic, swing(elastic.nv), duration=0.6, sigma=sigma_of(name))
    law = el.feedforward_pd(elastic, 50, 5)
    start = {"q": 0.02, "v": 0.3}
    run = el.simulate(elastic, law, reference, rtol=1e-11, start=start, torque_limit=None if name == "driven" else 40.0)
    assert np.ptp(run.energy) > 0.05
    assert np.abs(run.put_in).max() > 0.05
    assert np.abs(run.energy_balance).max() < 1e-8 * max(1.0, np.abs(run.put_in).max())
    assert np.all(np.diff(run.taken) >= -1e-12)
    assert (run.taken[-1] > 1e-4) == bool(elastic.motor_damping.any())


def test_dampers_take_energy():
    elastic = el.elastic_robot(planar_arm(2), 300.0, motor_inertia=0.2, damping=2.0)
    law = el.feedforward_pd(elastic.undamped(), 0.0, 0.0)
    reference = el.reference(elastic, lambda t: ca.DM([0.0, 0.0]), duration=1.0)
    run = el.simulate(elastic, law, reference, rtol=1e-11, start={"q": 0.1})
    assert np.abs(run.energy_balance).max() < 1e-9
    assert run.taken[-1] > 0.1


def test_energies_are_what_they_are_called():
    elastic, q, v = three(), np.array([0.3, -0.2, 0.4]), np.array([1.0, -0.5, 0.2])
    x = np.concatenate([q, v, q + 0.1, [0.3, 0.2, 0.1]])
    links, motors, springs, gravity = el.plant(elastic).energies(x, ca.DM(0, 1)).full().ravel()
    M = od.function(elastic.links, "mass_matrix")(q=q)["M"].full()
    assert links == pytest.approx(0.5 * v @ M @ v)
    assert motors == pytest.approx(0.5 * (0.5 * 0.09 + 0.3 * 0.04 + 0.2 * 0.01))
    assert springs == pytest.approx(0.5 * 0.01 * 1200)
    height = sum(np.sin(np.cumsum(q))[:i].sum() * 0.4 + 0.2 * np.sin(np.cumsum(q))[i] for i in range(3))
    assert gravity == pytest.approx(3.0 * 9.81 * height)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_stiff_springs_by_the_implicit_integrators(method):
    """1e5 Nm/rad on light links: the same motion as the explicit scheme, which has to take many steps."""
    elastic = el.elastic_robot(planar_arm(2, mass=0.5), 1e5, motor_inertia=0.1, motor_damping=0.5)
    reference = el.reference(elastic, swing(2), duration=0.3)
    law = el.feedforward_pd(elastic, 500, 10)
    one = el.simulate(elastic, law, reference, rtol=1e-9, method=method, start={"dtheta": 0.1})
    other = el.simulate(elastic, law, reference, rtol=1e-9, start={"dtheta": 0.1})
    assert other.facts["steps"] > 300
    assert np.abs(one.states - other.states).max() < 1e-4 * np.abs(other.states).max()
    assert np.abs(one.q - other.q).max() < 1e-7
    assert other.largest_error > 1e-4


@pytest.mark.sample("cvodes-complete", "idas-mixed")
@pytest.mark.parametrize("name", ["mixed", "driven", "complete"])
@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_implicit_integrators_do_rigid_joints_couplings_and_drives(name, method):
    elastic = arm(name)
    reference = el.reference(elastic, swing(3), duration=0.5, sigma=sigma_of(name))
    law = el.feedforward_pd(elastic, 200, 20)
    assert el.simulate(elastic, law, reference, rtol=1e-9, method=method).largest_error < 1e-7


@pytest.mark.slow
def test_sampled_law_comes_to_the_continuous_one():
    elastic = three()
    reference, law = el.reference(elastic, swing(3), duration=0.5), el.feedforward_pd(elastic, 200, 20)
    errors = [el.simulate(elastic, law, reference, sample_time=h).largest_error for h in (4e-3, 2e-3, 1e-3)]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.2)
    runs = [
        el.simulate(elastic, law, reference, sample_time=5e-3, method=m) for m in ("dop853", "collocation", "cvodes")
    ]
    for run in runs[1:]:
        assert np.abs(run.q - runs[0].q).max() < 1e-6
    assert np.abs(runs[0].energy_balance).max() < 1e-9


@pytest.mark.slow
def test_torques_are_cut_off_and_noise_is_repeatable():
    elastic = three()
    reference, law = el.reference(elastic, swing(3), duration=0.4), el.feedforward_pd(elastic, 200, 20)
    free = el.simulate(elastic, law, reference, sample_time=2e-3)
    limit = 0.9 * np.abs(free.tau_m).max(axis=0)
    options = {"sample_time": 2e-3, "torque_limit": limit, "noise": {"theta": 1e-4, "dtheta": 1e-2}}
    one, same, other = (el.simulate(elastic, law, reference, seed=s, **options) for s in (1, 1, 2))
    assert np.array_equal(one.tau_m, same.tau_m)
    assert not np.array_equal(one.tau_m, other.tau_m)
    assert np.all(np.abs(one.tau_m) <= limit)
    assert np.any(np.abs(one.tau_m) == limit)
    assert one.largest_error > 2 * free.largest_error
    held = el.simulate(elastic, law, reference, torque_limit=limit, rtol=1e-6)
    assert np.abs(held.tau_m).max(axis=0) == pytest.approx(limit)


@pytest.mark.slow
def test_wrong_settings_are_refused():
    elastic = three()
    reference, law = el.reference(elastic, swing(3), duration=0.5), el.feedforward_pd(elastic, 200, 20)
    for options, error, words in (
        ({"method": "euler"}, od.UnknownName, "dop853"),
        ({"method": "idas", "sample_time": 1e-3}, od.UnknownName, "collocation"),
        ({"noise": {"q": 1.0}}, od.ShapeError, "sample_time"),
        ({"noise": {"qq": 1.0}, "sample_time": 1e-3}, od.UnknownName, "dtheta"),
        ({"sample_time": 0.3}, od.ShapeError, "multiple"),
        ({"start": {"x": 1.0}}, od.UnknownName, "theta"),
        ({"start": [1.0, 2.0]}, od.ShapeError, "expected 12"),
        ({"start": "there"}, od.ShapeError, '"reference"'),
        ({"torque_limit": -1.0}, od.ShapeError, "positive"),
        ({"duration": -1.0}, od.ShapeError, "duration"),
    ):
        with pytest.raises(error, match=words):
            el.simulate(elastic, law, reference, **options)
    with pytest.raises(od.ShapeError, match="lacks d4v, d5v"):
        two = el.elastic_robot(planar_arm(3), 500.0, motor_inertia=0.3, coupling=np.diag([0.01, 0.01], 1))
        el.simulate(two, el.feedforward_pd(two, 1, 1), reference)


@pytest.mark.slow
def test_pictures(tmp_path):
    elastic = arm("linear")
    reference = el.reference(elastic, swing(3), duration=0.5)
    run = el.simulate(elastic, el.feedforward_pd(elastic, 200, 20), reference, dt=0.02, rtol=1e-6)
    el.plot_runs({"one": run, "again": run}, tmp_path / "run.png")
    el.animate_run(elastic, run, tmp_path / "run.gif", fps=8, size=(200, 200))
    assert (tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "run.gif").read_bytes()[:3] == b"GIF"
    with pytest.raises(od.ShapeError):
        el.plot_runs({})
    with pytest.raises(od.ModelError, match="one motor"):
        el.animate_run(arm("pairs"), run, tmp_path / "pairs.gif")
