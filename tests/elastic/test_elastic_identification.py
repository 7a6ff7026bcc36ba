"""Identification of elastic robots: exact without noise, intervals with it, what recordings do not tell, refusals."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import cubic

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.identification import estimate, excitation, filters
from oc_dyn.elastic.identification.equations import _sign, equations
from oc_dyn.elastic.identification.rows import rows, states
from oc_dyn.elastic.identification.unknowns import unknowns
from oc_dyn.errors import LimitError, ModelError, ShapeError, SolveError, UnknownName
from oc_dyn.robots import planar_arm

DT = 2e-3
WORDS = {"motor_damping": [1.0, 0.5], "motor_friction": [1.5, 0.8], "friction_smoothing": 0.5}


def arm(springs=(500.0, 300.0), motor_inertia=(0.3, 0.2), **more):
    return el.elastic_robot(planar_arm(2, 0.4, 3.0), list(springs), motor_inertia=motor_inertia, **{**WORDS, **more})


def guess(springs=(400.0, 360.0), **more):
    """A robot that knows little of arm()."""
    wrong = {"motor_damping": 0.2, "motor_friction": 0.1, "friction_smoothing": 0.5}
    return arm(springs, (0.2, 0.3), **{**wrong, **more})


def swing(t):
    return ca.vertcat(
        0.5 * ca.sin(3 * t) + 0.2 * ca.sin(11 * t) - 0.5,
        0.4 * ca.cos(4.1 * t) + 0.3 * ca.sin(7.3 * t) + 0.05 * ca.sin(21 * t),
    )


def exact(robot, motion=swing, duration=5.0, dt=DT, **more):
    """Recording without noise, by the flat map: no simulation is involved."""
    t = np.arange(0, duration, dt)
    at = el.reference(robot, motion, duration=duration).at(t)
    f = od.function(robot, "elastic_flat_map")
    out = f.map(t.size)(**{n: at[n] for n in f.name_in()})
    return el.Recording(dt, at["q"], out["theta"].full(), out["tau_m"].full(), held=False, **more)


def quantised(recording, bits, noise, seed):
    rng, step = np.random.default_rng(seed), 2 * np.pi / 2**bits
    q, theta = (step * np.round(x / step + rng.uniform(-0.5, 0.5, (len(x), 1))) for x in (recording.q, recording.theta))
    tau_m = recording.tau_m + noise * rng.normal(size=recording.tau_m.shape)
    return el.Recording(recording.dt, q, theta, tau_m, held=False)


def shaken(recording, deviation, seed):
    """The recording with white noise of its positions."""
    rng = np.random.default_rng(seed)
    q, theta = (x + deviation * rng.normal(size=x.shape) for x in (recording.q, recording.theta))
    return el.Recording(recording.dt, q, theta, recording.tau_m, held=False)


def true_of(found, robot):
    """Values that the parameters of an identification have in a robot."""
    u = unknowns(
        robot, None, found.equations.unknowns.links, motor_inertia=True, motor_friction=True, spring_damping=False,
        link_friction=False, transmission=None, known={}, motors=True, sensors=True, link_rows=True, offsets=False,
    )  # fmt: skip
    return np.array([u.start[u.names.index(name)] for name in found.names])


@pytest.fixture(scope="module")
def clean():
    return exact(arm())


# -- without noise -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "links", ["known", *(pytest.param(x, marks=pytest.mark.slow) for x in ("unused", "identified"))]
)
def test_exact_without_noise(clean, links):
    found = el.identify_elastic(guess(), clean, links=links)
    true = true_of(found, arm())
    assert found.values == pytest.approx(true, rel=1e-8, abs=1e-8)
    assert found.interval.max() < 1e-6
    assert found.predict(clean).error.max() < 1e-8


@pytest.mark.slow
def test_exact_with_everything_asked(clean):
    found = el.identify_elastic(
        guess(), clean, links="identified", spring_damping=True, link_friction=True, transmission="gear"
    )
    for name in found.names:
        kind = name.split()[0]
        if kind == "transmission":
            assert found.value(name) == pytest.approx(1, abs=1e-8)
        elif kind in ("spring_damping", "link_damping", "link_friction"):
            assert found.value(name) == pytest.approx(0, abs=1e-7)
    assert found.value("stiffness joint1") == pytest.approx(500, rel=1e-8)
    assert found.value("motor_inertia joint2") == pytest.approx(0.2, rel=1e-8)


@pytest.mark.parametrize("kind", ["gear", pytest.param("encoder", marks=pytest.mark.slow)])
def test_wrong_ratio_is_found(clean, kind):
    ratio = np.array([1.03, 0.98])[:, None]
    tau_m = clean.tau_m * ratio if kind == "gear" else clean.tau_m
    wrong = el.Recording(DT, clean.q, clean.theta / ratio, tau_m, held=False)
    found = el.identify_elastic(guess(), wrong, transmission=kind)
    for k, joint in enumerate(("joint1", "joint2")):
        assert found.value(f"transmission {joint}") == pytest.approx(ratio[k, 0], rel=1e-8)
        assert found.value(f"stiffness {joint}") == pytest.approx((500, 300)[k], rel=1e-7)
    gear = found.robot().gear
    assert np.allclose(np.diag(gear), 1 / ratio.ravel() if kind == "gear" else 1)


@pytest.mark.slow
def test_polynomial_and_given_basis():
    robot = arm([500.0, el.NonlinearSpring(cubic)])
    recording = exact(robot)
    found = el.identify_elastic(guess(), recording, springs={"joint2": 3})
    assert [found.value(f"stiffness joint2 ({k})") for k in (1, 2, 3)] == pytest.approx([300, 0, 3000], abs=1e-5)
    law = [lambda z: z, lambda z: z**3]
    found = el.identify_elastic(guess(), recording, springs={"joint2": law})
    assert found.value("stiffness joint2 (2)") == pytest.approx(3000, rel=1e-8)
    spring = found.robot().joints[1].spring
    assert float(spring.torques([ca.DM(0.05)], ca.DM(0, 1))[0]) == pytest.approx(cubic(0.05), rel=1e-8)


@pytest.mark.slow
def test_a_known_law_of_unknown_size():
    recording = exact(arm([500.0, el.NonlinearSpring(cubic)]))
    other = guess([400.0, el.NonlinearSpring(lambda z: 0.8 * cubic(z))])
    assert el.identify_elastic(other, recording).value("stiffness joint2") == pytest.approx(1.25, rel=1e-8)


@pytest.mark.slow
def test_full_inertia_and_rigid_joints():
    B = np.array([[0.3, 0.05], [0.05, 0.2]])
    robot = el.elastic_robot(planar_arm(2), 400.0, motor_inertia=B)
    other = el.elastic_robot(planar_arm(2), 300.0, motor_inertia=1.3 * B)
    found = el.identify_elastic(other, exact(robot))
    assert found.value("motor_inertia joint1, joint2") == pytest.approx(0.05, rel=1e-8)
    assert found.robot().motor_inertia == pytest.approx(B, rel=1e-8)
    words = {"motor_inertia": 0.3, **WORDS}
    robot = el.elastic_robot(planar_arm(2), {"joint1": 500.0}, **words)
    other = el.elastic_robot(planar_arm(2), {"joint1": 400.0}, **{**words, "motor_damping": 0, "motor_friction": 0})
    found = el.identify_elastic(other, exact(robot), links="identified")
    assert found.value("motor_friction joint2") == pytest.approx(0.8, rel=1e-8)
    assert found.value("stiffness joint1") == pytest.approx(500, rel=1e-8)


def test_torque_sensors_with_motors_held(clean):
    theta = np.broadcast_to(clean.theta[:, :1], clean.theta.shape)
    q = theta + 0.03 * np.sin(np.array([[9.0], [13.0]]) * DT * np.arange(theta.shape[1]))
    tau = np.array([[500.0], [300.0]]) * (theta - q) + np.array([[0.3], [-0.1]])
    held = el.Recording(DT, q, theta, tau=tau, by_hand=True)
    found = el.identify_elastic(guess(), held)
    assert found.names == ("stiffness joint1", "stiffness joint2")
    assert found.values == pytest.approx([500, 300], rel=1e-8)
    assert found.offsets[0, -2:] == pytest.approx([0.3, -0.1], rel=1e-8)
    assert np.isnan(found.offsets[0, :-2]).all()
    with pytest.raises(ShapeError, match="recording 0 has no equation"):
        el.identify_elastic(guess(), el.Recording(DT, q, theta, by_hand=True))


def test_friction_of_links_and_dampers_of_springs():
    """Torque sensors read phi + D z', links take it and their friction: by formulas of a pendulum alone."""
    t, K, D, d, f = DT * np.arange(2500), 200.0, 0.4, 0.7, 0.9
    robot = el.elastic_robot(planar_arm(1, 0.4, 3.0), 150.0, motor_inertia=0.1)
    q, v, dv = (a * np.sin(4 * t + p) + b * np.sin(13 * t + p) for a, b, p in (
        (0.6, 0.1, 0.0), (2.4, 1.3, np.pi / 2), (-9.6, -16.9, 0.0)))  # fmt: skip
    inverse = od.function(robot.links, "inverse_dynamics").map(t.size)
    pull = inverse(q[None], v[None], dv[None]).full()[0] + d * v + f * np.tanh(v / od.friction.SMOOTHING)
    z = 0.05 * np.sin(9 * t) + 0.01 * np.cos(31 * t)
    dz = 0.45 * np.cos(9 * t) - 0.31 * np.sin(31 * t)
    springs = el.Recording(DT, q[None], (q + z)[None], tau=(K * z + D * dz)[None], by_hand=True)
    found = el.identify_elastic(robot, springs, spring_damping=True)
    assert found.values == pytest.approx([K, D], rel=1e-8)
    # with a spring as stiff as this its damper plays no part: theta follows from the pull
    links = el.Recording(DT, q[None], (q + pull / K)[None])
    (joint,) = [j.name for j in robot.joints]
    found = el.identify_elastic(robot, links, link_friction=True, known={f"stiffness {joint}": K})
    assert found.value(f"link_damping {joint}") == pytest.approx(d, rel=0.01)
    assert found.value(f"link_friction {joint}") == pytest.approx(f, rel=0.01)


@pytest.mark.slow
def test_links_of_the_identified_robot(clean):
    found = el.identify_elastic(guess(), clean, links="identified")
    robot = found.robot()
    q, v, dv = np.random.default_rng(0).normal(size=(3, 2))
    f, g = (od.function(r.links, "inverse_dynamics") for r in (arm(), robot))
    assert g(q, v, dv) == pytest.approx(f(q, v, dv), rel=1e-4)
    assert robot.linear_stiffness() == pytest.approx([500, 300], rel=1e-8)


# -- with noise ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_against_least_squares_of_the_integrated_equation(clean):
    """Joint 2 by integrals of the raw samples, B theta' + d theta + .. = integral of tau_m: nothing is shared."""
    noisy = quantised(clean, 17, 0.05, seed=3)
    found = el.identify_elastic(guess(), noisy, links="unused")
    theta, q, tau = noisy.theta[1], noisy.q[1], noisy.tau_m[1]
    h, n = 10, theta.size  # differences over 20 samples
    middle = np.arange(h, n - h)
    speed = (theta[2 * h :] - theta[: -2 * h]) / (2 * h * DT)
    sliding = np.tanh(speed / 0.5)

    def integral(x):
        return np.concatenate([[0], np.cumsum(0.5 * DT * (x[1:] + x[:-1]))])

    W = [speed - speed[0], integral(speed), integral((theta - q)[middle]), integral(sliding), DT * np.arange(n - 2 * h)]
    x = np.linalg.lstsq(np.column_stack(W), integral(tau[middle]), rcond=None)[0]
    names = ("motor_inertia joint2", "motor_damping joint2", "stiffness joint2", "motor_friction joint2")
    assert [found.value(name) for name in names] == pytest.approx(x[:4], rel=0.03)
    error = found.values - true_of(found, arm())
    assert np.all(np.abs(error) < 2 * found.interval)


@pytest.mark.slow
def test_instruments_remove_the_bias_of_noisy_positions():
    """Positions with noise as large as the deflections: least squares is off by percents, the halves are not."""
    robot = arm(motor_friction=0.0)
    clean, K = exact(robot, duration=15.0), 300.0
    found, plain = [], []
    for seed in range(20):
        noisy = shaken(clean, 3e-2, seed)
        one = el.identify_elastic(robot, noisy, links="unused", motor_friction=False, motor_inertia=False)
        found.append(one.value("stiffness joint2") - K)
        eq = one.equations
        r = rows(eq, noisy, states(eq, noisy, halves=False)[0], eq.unknowns.start, one.bandwidth)
        k = r.used.index(1)  # motor of joint 2
        step = np.linalg.lstsq(r.J[k], (r.measured - r.modelled)[k], rcond=None)[0]
        plain.append(step[one.names.index("stiffness joint2")])
    print(np.mean(plain), np.mean(found), np.std(found))
    assert np.mean(plain) < -8.0
    assert abs(np.mean(found)) < 0.5 * abs(np.mean(plain))


@pytest.mark.slow
def test_intervals_hold():
    """A minute at 1 kHz, encoders of 17 bits, noise of 0.5 % of 60 and 25 Nm: a sample of the seeds of the problem."""
    robot = arm(friction_smoothing=od.friction.SMOOTHING)

    def motion(t):
        return ca.vertcat(
            -0.5 + 0.5 * ca.sin(1.343 * t) + 0.2 * ca.sin(8.367 * t + 1) + 0.03 * ca.sin(19.58 * t),
            0.4 * ca.cos(1.929 * t) + 0.3 * ca.sin(5.729 * t) + 0.05 * ca.sin(23.31 * t),
        )

    recording = exact(robot, motion, 60.0, 1e-3)
    inside = []
    for seed in range(10):
        noisy = quantised(recording, 17, np.array([[0.3], [0.125]]), seed)
        found = el.identify_elastic(guess(friction_smoothing=od.friction.SMOOTHING), noisy)
        error = found.values - true_of(found, robot)
        assert np.all(np.abs(error) < 0.01 * np.abs(true_of(found, robot)))
        inside.append(np.abs(error) <= found.interval)
    assert 0.85 <= np.mean(inside) <= 1.0  # 80 of them, of which neighbours depend on each other


@pytest.mark.slow
def test_noise_that_is_independent_gives_the_textbook_interval():
    """Known regressors and white noise: the deviation is that of least squares under the low-pass, by its kernel."""
    rng, N, dt = np.random.default_rng(1), 60000, 1e-3
    robot = el.elastic_robot(od.robots.chain(1), 100.0, motor_inertia=0.1)
    t = dt * np.arange(N)
    theta = 0.2 * np.sin(2 * np.pi * 1.3 * t)[None]
    tau = 100 * theta + 0.2 * rng.normal(size=theta.shape)
    recording = el.Recording(dt, np.zeros((1, N)), theta, tau=tau, by_hand=True)
    found = el.identify_elastic(robot, recording)
    # white noise of variance s^2 has the density s^2 dt; a slow regressor sees it as it is, low-passed or not
    deviation = 0.2 * np.sqrt(dt / (0.5 * 0.2**2 * N * dt))
    assert found.interval[0] / 1.96 == pytest.approx(deviation, rel=0.1)
    assert abs(found.values[0] - 100) < 4 * deviation


def test_mean_of_the_corrected_sign_is_that_of_the_true_speed():
    speed, a = ca.SX.sym("speed"), 0.1
    f = ca.Function("sign", [speed], [_sign(speed, a, 1.0)])
    x, w = np.polynomial.hermite_e.hermegauss(80)
    for true in (0.0, 0.3, 0.7, 1.5, 3.0):
        mean = sum(c * float(f(true + np.sqrt(a) * y)) for y, c in zip(x, w, strict=True)) / w.sum()
        plain = sum(c * np.tanh(true + np.sqrt(a) * y) for y, c in zip(x, w, strict=True)) / w.sum()
        assert abs(mean - np.tanh(true)) < 3e-3
        assert abs(mean - np.tanh(true)) <= 0.25 * abs(plain - np.tanh(true)) + 1e-15


def test_quantiles_of_student():
    for freedom, value in ((10, 2.228139), (30, 2.042272), (200, 1.971896)):  # tables
        assert estimate._quantile(0.975, freedom) == pytest.approx(value, rel=2e-4)


# -- what recordings do not tell -----------------------------------------------------------------------------------


def test_names_what_is_not_told(clean):
    still = el.Recording(DT, *(np.repeat(x[:, :1], 2500, axis=1) for x in (clean.q, clean.theta, clean.tau_m)))
    with pytest.raises(SolveError, match="motor_damping joint1"):
        el.identify_elastic(guess(), still)
    slow = exact(arm(), lambda t: ca.vertcat(0.3 * ca.sin(t), 0.4 * ca.cos(1.3 * t)))
    with pytest.raises(SolveError, match="motor_inertia"):
        el.identify_elastic(guess(), shaken(slow, 1e-3, 0), links="unused")


def test_motors_off_tell_all_but_the_scale():
    """theta moves as q drives it, motors off: with the stiffness known, the rest is found."""
    dt, N, K, B, d, f = DT, 2000, 300.0, 0.2, 0.5, 0.8

    def q(t):
        return 0.5 * np.sin(5 * t) + 0.2 * np.sin(17 * t)

    def rates(t, x):
        return np.array([x[1], (K * (q(t) - x[0]) - d * x[1] - f * np.tanh(x[1] / 0.5)) / B])

    x, theta = np.zeros(2), []
    for k in range(N):
        theta.append(x[0])
        for h in range(2):  # RK4 by half steps
            t, s = (k + 0.5 * h) * dt, 0.5 * dt
            a = rates(t, x)
            b = rates(t + s / 2, x + s / 2 * a)
            c = rates(t + s / 2, x + s / 2 * b)
            x = x + s / 6 * (a + 2 * b + 2 * c + rates(t + s, x + s * c))
    robot = el.elastic_robot(od.robots.chain(1), 100.0, motor_inertia=0.1, friction_smoothing=0.5)
    recording = el.Recording(dt, q(dt * np.arange(N))[None], np.array([theta]), tau_m=0.0, by_hand=True)
    (name,) = [j.name for j in robot.joints]
    with pytest.raises(SolveError, match=rf"do not tell .*stiffness {name}.*from each other") as error:
        el.identify_elastic(robot, recording)
    assert "known={name: value}" in str(error.value)
    found = el.identify_elastic(robot, recording, known={f"stiffness {name}": K})
    words = ("motor_inertia", "motor_damping", "motor_friction")
    assert [found.value(f"{w} {name}") for w in words] == pytest.approx([B, d, f], rel=1e-5)


# -- filters -------------------------------------------------------------------------------------------------------


def test_derivatives_are_exact_in_the_pass_band():
    t = 1e-3 * np.arange(4000)
    x = np.sin(2 * np.pi * 40 * t + 0.3)[None]
    w, cut = 2 * np.pi * 40, filters.positions_margin()
    for half in (None, 0, 1):
        for k, y in enumerate(filters.derivatives(x, 1e-3, half)):
            exact = w**k * np.sin(w * t + 0.3 + 0.5 * np.pi * k)[cut : t.size - cut : 2]
            assert np.abs(y - exact[: y.shape[1]]).max() < 1e-9 * w**k
    speed = filters.speeds(x, 1e-3, np.array([0.1]), 1)
    assert np.abs(speed - w * np.cos(w * t + 0.3)[cut : t.size - cut : 2]).max() < 1e-8 * w


def test_halves_see_their_own_samples_alone():
    x = np.random.default_rng(0).normal(size=(1, 3000))
    y = x.copy()
    y[:, 1::2] += np.random.default_rng(1).normal(size=1500)
    assert np.array_equal(filters.derivatives(x, 1e-3, 0)[2], filters.derivatives(y, 1e-3, 0)[2])
    assert not np.allclose(filters.derivatives(x, 1e-3, 1)[2], filters.derivatives(y, 1e-3, 1)[2])


def test_held_torque_is_low_passed_as_its_integral():
    """At one time, against the integral of kernel times step function by quadrature in each step."""
    rng, dt, band = np.random.default_rng(0), 1e-3, 15.0
    x = rng.normal(size=1200)
    held = filters.low_passed(x[None], dt, band, 1, held=True)[0]
    points, weights = np.polynomial.legendre.leggauss(6)
    start = dt * np.arange(x.size)
    inside = start[:, None] + 0.5 * dt * (points + 1)
    for k in (0, 137):
        t = dt * (filters.low_pass_margin(dt, band) + k)
        # the Gaussian response exp(-(f / b)^2 / 2) is that of the kernel sqrt(2 pi) b exp(-(2 pi b t)^2 / 2)
        kernel = np.sqrt(2 * np.pi) * band * np.exp(-0.5 * (2 * np.pi * band * (t - inside)) ** 2)
        assert held[k] == pytest.approx(x @ (kernel @ weights) * 0.5 * dt, abs=1e-11)


@pytest.mark.parametrize("least", [7, 100, 2049, 60001])
def test_lengths_are_products_of_small_primes(least):
    n = filters._length(least)
    rest = n
    for p in (2, 3, 5):
        while rest % p == 0:
            rest //= p
    assert rest == 1
    assert least <= n <= 1.15 * least + 3


# -- excitation ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planned():
    limits = np.array([60.0, 25.0])
    return limits, el.exciting_motion(arm(), period=5.0, harmonics=6, torque_limit=limits, iterations=6)


@pytest.mark.slow
def test_exciting_motion_keeps_limits_and_begins_at_rest(planned):
    limits, motion = planned
    t = np.linspace(0, 5, 700)
    at = el.reference(arm(), motion, duration=5.0).at(t)
    assert at["q"] == pytest.approx(motion.sample(t)[0], abs=1e-12)
    for name in ("v", "dv", "d2v", "d3v"):
        assert np.abs(at[name][:, 0]).max() < 1e-9 * np.abs(at[name]).max()
    f = od.function(arm(), "elastic_flat_map")
    tau = f.map(t.size)(**{n: at[n] for n in f.name_in()})["tau_m"].full()
    assert np.all(np.abs(tau) <= limits[:, None])
    assert np.abs(at["v"]).max() <= 2.0


@pytest.mark.slow
def test_exciting_motion_is_more_informative_than_its_start(planned):
    limits, motion = planned
    start = el.exciting_motion(arm(), period=5.0, harmonics=6, torque_limit=limits, iterations=0)

    def volume(m):
        t = np.arange(0, 5, DT)
        recording = exact(arm(), m)
        found = el.identify_elastic(arm(), quantised(recording, 17, 0.02 * limits[:, None], 1))
        assert t.size == recording.q.shape[1]
        return np.linalg.slogdet(found.covariance)[1]

    assert volume(motion) < volume(start)


def test_gradient_of_the_information():
    robot = arm()
    eq = excitation._equations(robot, None, "known", False, False)
    limits = excitation._limits(robot, [60, 25], 0.05)
    design = excitation._Design(robot, eq, limits, 5.0, excitation._at_rest(5.0, 4))
    criterion, x = design.criterion(20), np.random.default_rng(0).normal(size=2 * len(design.free)) * 0.1
    slope = np.array(criterion.gradient(x)).ravel()
    for k in (0, 3, 7):
        e = np.zeros_like(x)
        e[k] = 1e-6
        assert slope[k] == pytest.approx((float(criterion(x + e)) - float(criterion(x - e))) / 2e-6, rel=1e-5, abs=1e-6)


# -- recordings and refusals ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_recording_of_a_run():
    robot = arm()
    reference = el.reference(robot, lambda t: ca.vertcat(0.3 * ca.sin(t), 0.2 * ca.cos(t)), duration=0.1)
    law = el.feedforward_pd(robot, 200.0, 20.0)
    run = el.simulate(robot, law, reference, sample_time=1e-3, dt=1e-3)
    x = el.recording(run, encoder_bits=12, torque_noise=[0.3, 0.0], sensor_noise=0.1, seed=4)
    assert x.held
    assert x.dt == pytest.approx(1e-3)
    step = 2 * np.pi / 2**12
    assert np.abs(x.q - run.q.T).max() <= step
    assert np.allclose(x.theta / step, np.round(x.theta / step))
    assert np.array_equal(x.tau_m[1], run.tau_m[:, 1])
    assert np.std(x.tau_m[0] - run.tau_m[:, 0]) == pytest.approx(0.3, rel=0.3)
    assert np.std(x.tau - run.tau.T) == pytest.approx(0.1, rel=0.3)
    assert not el.recording(el.simulate(robot, law, reference, dt=1e-3)).held
    with pytest.raises(ShapeError, match="simulate with dt=0.001"):
        el.recording(el.simulate(robot, law, reference, sample_time=1e-3, dt=2e-3))
    with pytest.raises(ShapeError, match="not equally far apart"):
        el.recording(el.simulate(robot, law, reference, dt=0.03))
    with pytest.raises(ShapeError, match="torque_noise"):
        el.recording(run, torque_noise=-1.0)


def test_refuses_bad_recordings(clean):
    def tried(**more):
        words = {"dt": DT, "q": clean.q, "theta": clean.theta, "tau_m": clean.tau_m, **more}
        return el.identify_elastic(guess(), el.Recording(**words))

    with pytest.raises(ShapeError, match=r"recording 0: q: got shape \(2500, 2\), expected \(2, samples\)"):
        tried(q=clean.q.T)
    with pytest.raises(ShapeError, match=r"theta: got shape \(2, 2499\), expected \(2, 2500\)"):
        tried(theta=clean.theta[:, 1:])
    bad = clean.q.copy()
    bad[0, 7] = np.nan
    with pytest.raises(ShapeError, match="q: sample 7 is not finite"):
        tried(q=bad)
    with pytest.raises(ShapeError, match="dt"):
        tried(dt=0.0)
    with pytest.raises(ShapeError, match="expected at least"):
        tried(q=clean.q[:, :300], theta=clean.theta[:, :300], tau_m=0.0)
    with pytest.raises(ShapeError, match="expected a Recording"):
        el.identify_elastic(guess(), [])
    with pytest.raises(ShapeError, match="expected an ElasticRobot"):
        el.identify_elastic(planar_arm(2), clean)


def test_refuses_bad_options(clean):
    with pytest.raises(ShapeError, match="at most 8.33 Hz"):
        el.identify_elastic(guess(), clean, bandwidth=20.0)
    with pytest.raises(UnknownName, match="use of the links"):
        el.identify_elastic(guess(), clean, links="all")
    with pytest.raises(UnknownName, match="stiffness joint1"):
        el.identify_elastic(guess(), clean, known={"stifness joint1": 500})
    with pytest.raises(UnknownName, match="joint1"):
        el.identify_elastic(guess(), clean, springs={"join1": 3})
    with pytest.raises(ShapeError, match="degree of a polynomial"):
        el.identify_elastic(guess(), clean, springs="cubic")
    with pytest.raises(ShapeError, match="between 0 and 1"):
        el.identify_elastic(guess(), clean, confidence=1.5)
    with pytest.raises(ShapeError, match="True or False"):
        el.identify_elastic(guess(), clean, spring_damping=1)


def test_refuses_robots_that_it_cannot_identify(clean):
    variable = el.elastic_robot(planar_arm(2), el.VariableSpring(), motor_inertia=0.3)
    with pytest.raises(ModelError, match="at constant stiffness"):
        el.identify_elastic(variable, clean)
    S = [[0.0, 0.02], [0.0, 0.0]]
    with pytest.raises(ModelError, match="leave coupling out"):
        el.identify_elastic(arm(coupling=S), clean)
    with pytest.raises(ModelError, match="no joint is elastic"):
        el.identify_elastic(el.elastic_robot(planar_arm(2), np.inf), clean)


def test_identified_robot_must_be_possible(clean):
    wrong = el.Recording(DT, clean.q, clean.theta, -clean.tau_m, held=False)
    found = el.identify_elastic(guess(), wrong, links="unused")
    assert found.value("stiffness joint1") == pytest.approx(-500, rel=1e-8)
    with pytest.raises(LimitError, match="not positive"):
        found.robot()
    with pytest.raises(UnknownName):
        found.value("stiffness joint3")
    assert "stiffness joint1" in str(found)


@pytest.mark.slow
def test_refuses_exciting_motions_that_cannot_be():
    with pytest.raises(LimitError, match="higher limits of torque"):
        el.exciting_motion(arm(), torque_limit=1.0, harmonics=3)
    with pytest.raises(ShapeError, match="positive numbers"):
        el.exciting_motion(arm(), torque_limit=-1.0)
    with pytest.raises(ShapeError, match="harmonics"):
        el.exciting_motion(arm(), harmonics=2)


def test_equations_hold_where_the_plant_says_so():
    """At any state and torque, accelerations of the plant leave no residual in equations of other origin."""
    robot = arm()
    u = unknowns(
        robot, None, "identified", motor_inertia=True, motor_friction=True, spring_damping=True, link_friction=True,
        transmission=None, known={}, motors=True, sensors=True, link_rows=True, offsets=False,
    )  # fmt: skip
    eq, p = equations(u), el.plant(robot)
    rng = np.random.default_rng(2)
    x, tau = 0.3 * rng.normal(size=p.size), rng.normal(size=2)
    dx = p.rates(x, tau, np.zeros(0)).full().ravel()
    q, v, theta, dtheta = (x[p.parts[n]] for n in ("q", "v", "theta", "dtheta"))
    dv, d2theta = dx[p.parts["v"]], dx[p.parts["dtheta"]]
    out = eq.model(q, v, dv, theta, dtheta, d2theta, np.append(v, dtheta), np.zeros(4), u.start)[0].full().ravel()
    assert out[:4] == pytest.approx([*tau, 0, 0], abs=1e-11)
    assert out[4:] == pytest.approx([500, 300] * (theta - q), rel=1e-12)
