"""Laws of friction, hysteresis and play in the plant: equations by hand, energies, known loops, refusals."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, planar_arm, swing
from scipy.integrate import solve_ivp

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.torque_sensors import torque_sensors
from oc_dyn.robots import linkages

NONE = ca.DM(0, 1)
K, B = 500.0, 0.3
LAWS = {
    "stribeck": {"motors": el.Stribeck(2.0, 3.0, 0.2, damping=0.5, load=0.1)},
    "lugre": {"motors": {"joint1": el.LuGre(800.0, 5.0, 2.0, 3.0, 0.2, damping=0.4)}},
    "links": {"links": el.LuGre(500.0, 2.0, 1.0, 1.5, load=0.05)},
    "slip": {"springs": {"joint2": el.MaxwellSlip([(200.0, 1.0), (100.0, 2.0)])}},
    "bouc_wen": {"springs": el.BoucWen(300.0, beta=40.0, gamma=-10.0, n=1.5)},
    "play": {"springs": {"joint1": el.Backlash(0.02)}},
    "all": {
        "motors": [el.Stribeck(0.5, load=0.02), el.MaxwellSlip([(50.0, 0.3)])],
        "links": {"joint2": el.Stribeck(0.3)},
        "springs": {"joint1": [el.Backlash(0.01), el.BoucWen(100.0, 30.0)]},
    },
}


def real(name, base=None):
    model = base or el.elastic_robot(planar_arm(2), K, motor_inertia=B, link_damping=0.1, damping=0.5)
    return model.with_friction(laws=LAWS[name])


@pytest.mark.sample("all")
@pytest.mark.parametrize("name", LAWS)
def test_energy_that_laws_take_is_missing(name):
    """d/dt of all energies = put in - taken at random states, and what laws with memory take is never negative."""
    e = real(name)
    p = el.plant(e)
    x, u = ca.SX.sym("x", p.size), ca.SX.sym("u", p.controls)
    rate = ca.Function("r", [x, u], [ca.jtimes(ca.sum1(p.energies(x, NONE)), x, p.rates(x, u, NONE))])
    plain = el.plant(e.without_laws())
    rng = np.random.default_rng(3)
    for _ in range(4):
        at, tau = rng.normal(size=p.size), rng.normal(size=p.controls)
        at[8:] *= 1e-3  # bristles are short
        put_in, taken = p.powers(at, tau, NONE).full().ravel()
        assert float(rate(at, tau)) == pytest.approx(put_in - taken, rel=1e-9, abs=1e-8)
        assert taken >= float(plain.powers(at[:8], tau, NONE)[1]) - 1e-9


@pytest.mark.parametrize("kind", ["loop", "driven"])
def test_laws_on_loops_and_driven_stiffness(kind):
    """Energies again, where speeds of drives follow from loops, and where stiffness has drives of its own."""
    if kind == "loop":
        e = el.elastic_robot(linkages.four_bar(), 80.0, motor_inertia=0.1, actuated=["rocker"])
        laws = {"motors": el.LuGre(50.0, 1.0, 0.5, load=0.1), "links": el.Stribeck(0.2), "springs": el.Backlash(0.05)}
    else:
        e = arm("driven")
        laws = {"motors": el.Stribeck(0.5, load=0.1), "springs": el.BoucWen(30.0, 5.0)}
    e = e.with_friction(laws=laws)
    p = el.plant(e)
    x, u, given = ca.SX.sym("x", p.size), ca.SX.sym("u", p.controls), ca.DM(p.rates.size1_in(2), 1)
    rate = ca.Function("r", [x, u], [ca.jtimes(ca.sum1(p.energies(x, given)), x, p.rates(x, u, given))])
    rng = np.random.default_rng(5)
    at, tau = 0.1 * rng.normal(size=p.size), rng.normal(size=p.controls)
    at[0] -= 1.0 if kind == "loop" else 0.0
    at[p.parts.get("sigma", slice(0, 0))] += 400.0
    put_in, taken = p.powers(at, tau, given).full().ravel()
    assert float(rate(at, tau)) == pytest.approx(put_in - taken, rel=1e-8, abs=1e-8)
    assert taken > 0


@pytest.mark.sample("all")
@pytest.mark.parametrize("name", LAWS)
def test_the_residual_is_zero_at_the_rates(name):
    """Inverse dynamics with the laws, nothing solved for, against the accelerations; on the complete model, too."""
    S = [[0.0, 0.02], [0.0, 0.0]]
    for base in (None, el.elastic_robot(planar_arm(2), K, motor_inertia=B, coupling=S)):
        p = el.plant(real(name, base))
        rng = np.random.default_rng(4)
        at, tau = 0.3 * rng.normal(size=p.size), rng.normal(size=p.controls)
        dx = p.rates(at, tau, NONE).full().ravel()
        assert np.abs(p.residual(at, np.concatenate([dx[2:4], dx[6:8]]), tau, NONE).full()).max() < 1e-9


def test_lugre_and_play_of_one_joint_as_written_by_hand():
    """A pendulum with a motor, LuGre friction at the motor and play in the spring, integrated by scipy."""
    gap, soft, s0, s1, s2, Fc, Fs, vs = 0.02, 0.002, 900.0, 4.0, 0.3, 1.0, 1.6, 0.1
    model = el.elastic_robot(planar_arm(1), K, motor_inertia=B)
    e = model.with_friction(
        laws={"motors": el.LuGre(s0, s1, Fc, Fs, vs, damping=s2), "springs": el.Backlash(gap, soft)}
    )
    p = el.plant(e)
    inertia, weight = 3 * 0.4**2 / 3, 3 * 9.81 * 0.2

    def rates(t, x):
        q, v, theta, dtheta, h = x
        z = theta - q
        left = soft * (np.logaddexp(0, (z - gap / 2) / soft) - np.logaddexp(0, -(z + gap / 2) / soft))
        slope = 1 / (1 + np.exp(-(z - gap / 2) / soft)) + 1 / (1 + np.exp((z + gap / 2) / soft))
        spring = K * left * slope
        dh = dtheta - s0 * abs(dtheta) * h / (Fc + (Fs - Fc) * np.exp(-((dtheta / vs) ** 2)))
        rub = s0 * h + s1 * dh + s2 * dtheta
        dv = (spring - weight * np.cos(q)) / inertia
        return [v, dv, dtheta, (8 * np.sin(5 * t) - rub - spring) / B, dh]

    x0 = np.array([-1.5, 0.0, -1.5, 0.0, 0.0])
    for x in (x0, x0 + [0.1, 0.3, 0.2, -0.4, 1e-3]):
        u = 8 * np.sin(0.5)
        assert p.rates(x, u, NONE).full().ravel() == pytest.approx(rates(0.1, x), rel=1e-11, abs=1e-11)
    end = solve_ivp(rates, (0, 0.5), x0, rtol=1e-9, atol=1e-11, method="LSODA").y[:, -1]
    t, x, none = ca.MX.sym("t"), ca.MX.sym("x", 5), ca.MX.sym("p", 0)
    f = ca.Function("f", [t, x, none], [p.rates(x, 8 * ca.sin(5 * t), NONE)])
    found, _ = el.dop853.integrate(f, np.array([0.0, 0.5]), x0, (), 1e-9, 1e-11)
    assert found[:, -1] == pytest.approx(end, rel=1e-6, abs=1e-7)


def test_hysteresis_takes_the_area_of_its_loop():
    """Bouc-Wen with n = 1, gamma = 0: h -> 1 / beta; a round of amplitude a takes nearly 4 a stiffness / beta."""
    law = el.BoucWen(300.0, beta=2000.0)
    h, v = ca.SX.sym("h"), ca.SX.sym("v")
    torque, rate, stored = law.torque(v, h, 0)
    f = ca.Function("f", [h, v], [torque, rate, torque * v - ca.jtimes(stored, h, rate)])
    a, w = 0.05, 2 * np.pi

    def rates(t, x):
        speed = a * w * np.cos(w * t)
        tau, dh, power = (float(y) for y in f(x[0], speed))
        return [dh, power, tau * speed]

    x = solve_ivp(rates, (0, 3), [0.0, 0.0, 0.0], rtol=1e-7, atol=1e-10, max_step=0.02, dense_output=True)
    taken, work = x.sol(3)[1:] - x.sol(1)[1:]
    assert taken == pytest.approx(work, rel=1e-5)  # of whole rounds
    assert taken / 2 == pytest.approx(4 * a * 300 / 2000, rel=0.03)
    assert abs(x.sol(3)[0]) < 1 / 2000


def test_levels_of_stribecks_curve():
    law = el.Stribeck(2.0, 3.0, 0.1, damping=0.5, load=0.2, smoothing=1e-3)
    for speed, load, expected in (
        (1.0, 0.0, 2.5),
        (1.0, 10.0, 4.5),
        (-1.0, -10.0, -4.5),
        (0.02, 0.0, 2 + np.exp(-0.04) + 0.01),
    ):
        assert float(ca.DM(law.torque(ca.DM(speed), None, ca.DM(load))[0])) == pytest.approx(expected, rel=1e-3)
    bristles = el.LuGre(1e3, 1.0, 2.0, 3.0, 0.1, damping=0.5)
    settled = 2.0 / 1e3  # at a high speed
    torque, rate, _ = bristles.torque(ca.DM(1.0), ca.DM(settled), ca.DM(0))
    assert float(rate) == pytest.approx(0.0, abs=1e-9)
    assert float(torque) == pytest.approx(2.5, rel=1e-9)


def test_play_carries_nothing_within():
    law = el.Backlash(0.02, 1e-5)
    for z, left in ((0.0, 0.0), (0.009, 0.0), (-0.009, 0.0), (0.03, 0.02), (-0.03, -0.02)):
        assert float(ca.DM(law.left(ca.DM(z)))) == pytest.approx(left, abs=1e-9)


@pytest.mark.sample("all")
@pytest.mark.parametrize("name", ["lugre", "play", "all"])
def test_simulations_keep_the_balance_and_sensors_see_the_laws(name):
    model = el.elastic_robot(planar_arm(2), K, motor_inertia=B)
    e = real(name, model)
    reference = el.reference(model, swing(2), duration=0.3)
    run = el.simulate(e, el.feedforward_pd(model, 300.0, 30.0), reference, rtol=1e-8)
    assert 1e-6 < run.largest_error < 0.2
    assert np.abs(run.energy_balance).max() < 1e-5
    sensors = torque_sensors(e)
    p, k = el.plant(e), 10
    x, u = run.states[k], run.tau_m[k]
    dx, h = p.rates(x, u, NONE).full().ravel(), 1e-6
    ahead, behind = (sensors(x + s * dx, NONE)[0].full() for s in (h, -h))
    assert sensors(x, NONE)[1].full() == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-3)


def test_models_and_laws_refuse_them_by_name():
    e = real("lugre")
    for quantity in od.quantities("elastic robot"):
        with pytest.raises(od.ModelError, match="LuGre at joint1 are for simulation alone"):
            od.function(e, quantity)
    for law in (el.feedforward, lambda x: el.feedforward_pd(x, 1, 1), lambda x: el.gravity_pd(x, 1, 1)):
        with pytest.raises(od.ModelError, match="without_laws"):
            law(e)
    assert od.function(e.without_laws(), "elastic_forward_dynamics").n_out() == 2
    assert not e.undamped().effects
    assert "LuGre at joint1 of motors, in simulation alone" in str(e)
    assert e.with_errors(stiffness=0.1).effects == e.effects


@pytest.mark.parametrize(
    "laws, words",
    [
        ({"motors": 3.0}, "expected one of Stribeck"),
        ({"links": el.Backlash(0.1)}, "Backlash of 'joint1' is not for links"),
        ({"springs": el.Stribeck(1.0)}, "Stribeck of 'joint1' is not for springs"),
        ({"motors": {"joint2": el.Stribeck(1.0, load=0.1)}}, "the joint is rigid"),
    ],
)
def test_what_does_not_fit_is_refused(laws, words):
    mixed = arm("mixed")
    with pytest.raises(od.ModelError, match=words):
        mixed.with_friction(laws=laws)
    with pytest.raises(od.UnknownName, match="gears"):
        mixed.with_friction(laws={"gears": el.Stribeck(1.0)})
    with pytest.raises(od.UnknownName, match="elbow"):
        mixed.with_friction(laws={"motors": {"elbow": el.Stribeck(1.0)}})


@pytest.mark.parametrize(
    "make",
    [
        lambda: el.Stribeck(-1.0),
        lambda: el.Stribeck(1.0, speed=0.0),
        lambda: el.LuGre(0.0, 1.0, 1.0),
        lambda: el.MaxwellSlip([(1.0, -1.0)]),
        lambda: el.MaxwellSlip([(1.0, 1.0)], sharpness=0.5),
        lambda: el.BoucWen(1.0, 1.0, gamma=2.0),
        lambda: el.Backlash(0.0),
    ],
)
def test_numbers_of_laws_are_checked(make):
    with pytest.raises(od.ModelError, match="expected|beta"):
        make()
