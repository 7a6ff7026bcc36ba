"""Deflections of springs to 1e-12 over the whole range, by law, by inverse law and by potential, against mpmath."""

import casadi as ca
import mpmath as mp
import numpy as np
import pytest
from elastic_arms import planar_arm

import oc_dyn as od
from oc_dyn import elastic as el

EPS = float(np.finfo(float).eps)
KINDS = {  # law, its inverse and its slope in any precision, ends of its torques
    "sinh": (
        lambda z: 5 * ca.sinh(30 * z),
        lambda t: mp.asinh(t / 5) / 30,
        lambda z: 150 * mp.cosh(30 * z),
        (-1e5, 1e5),
    ),
    "exp": (
        lambda z: 5 * (ca.exp(30 * z) - 1),
        lambda t: mp.log1p(t / 5) / 30,
        lambda z: 150 * mp.exp(30 * z),
        (-5, 1e5),
    ),
    "tanh": (
        lambda z: 5 * ca.tanh(30 * z),
        lambda t: mp.atanh(t / 5) / 30,
        lambda z: 150 / mp.cosh(30 * z) ** 2,
        (-5, 5),
    ),
    "root": (
        lambda z: 40 * z / ca.sqrt(1 + 64 * z**2),
        lambda t: (t / 40) / mp.sqrt(1 - (t / 5) ** 2),
        lambda z: 40 / (1 + 64 * z * z) ** 1.5,
        (-5, 5),
    ),
}


def torques_of(ends):
    """All over the range, small ones, and as close to its ends as a billionth."""
    rng = np.random.default_rng(0)
    low, high = ends
    small = rng.choice([-1.0, 1.0], 60) * 10 ** rng.uniform(-9, np.log10(high), 60)
    close = [low + 10.0 ** -np.arange(10), high - 10.0 ** -np.arange(10)]
    all_ = np.concatenate([rng.uniform(low, high, 60), small, *close])
    return all_[(all_ > low) & (all_ < high)]


def found(spring, torques):
    tau = ca.SX.sym("tau")
    f = ca.Function("f", [tau], [spring.deflections([tau], [])[0][0]])
    return f.map(len(torques))(np.reshape(torques, (1, -1))).full().ravel()


@pytest.mark.sample("exp", "tanh")
@pytest.mark.parametrize("kind", KINDS)
def test_deflections_over_the_whole_reach(kind):
    """To 1e-12, and where the spring hardly rises as exactly as a rounding error of the torque tells it."""
    law, inverse, slope, ends = KINDS[kind]
    torques = torques_of(ends)
    for t, z in zip(torques, found(el.NonlinearSpring(law), torques), strict=True):
        exact = inverse(mp.mpf(float(t)))
        told = 8 * EPS * (abs(float(t)) + 5) / float(slope(exact))
        assert abs(float(mp.mpf(float(z)) - exact)) <= 1e-12 * (1e-3 + abs(float(exact))) + told, t


@pytest.mark.sample("tanh")
@pytest.mark.parametrize("kind", ["tanh", "exp"])
def test_torques_beyond_the_ends_are_refused_by_name(kind):
    law, _, _, (low, _) = KINDS[kind]
    spring = el.NonlinearSpring(law)
    for t in (low, low - 1e-9, low - 100):
        with pytest.raises(od.LimitError, match="NonlinearSpring: no deflection gives the torque"):
            spring.deflections([t], [])


@pytest.mark.slow
def test_antagonistic_pairs_over_the_whole_range():
    """5 (exp(30 z) - 1) and its mirror: e^(30 z_1), e^(-30 z_2) = half of (k / 150 +- tau / 5)."""
    pair = el.AntagonisticSprings(lambda z: 5 * (ca.exp(30 * z) - 1))
    rng = np.random.default_rng(1)
    torques = rng.choice([-1.0, 1.0], 200) * 10 ** rng.uniform(-6, 3, 200)
    least = 300 + 30 * np.abs(torques)  # one is slack there
    stiffness = least * (1 + 10 ** rng.uniform(-6, 2.5, 200))
    tau, k = ca.SX.sym("tau"), ca.SX.sym("k")
    f = ca.Function("f", [tau, k], [ca.vertcat(*(x[0] for x in pair.deflections([tau], [k])))])
    z = f.map(200)(torques.reshape(1, -1), stiffness.reshape(1, -1)).full()
    for t, s, (first, second) in zip(torques, stiffness, z.T, strict=True):
        up, down = ((mp.mpf(float(s)) / 150 + side * mp.mpf(float(t)) / 5) / 2 for side in (1, -1))
        assert abs(first - float(mp.log(up) / 30)) < 1e-12
        assert abs(second + float(mp.log(down) / 30)) < 1e-12
    with pytest.raises(od.LimitError, match="is at least 600"):
        pair.deflections([10.0], [599.0])


@pytest.mark.sample("exp")
@pytest.mark.parametrize("kind", ["sinh", "exp", "tanh"])
def test_springs_by_their_inverse(kind):
    """The same deflections without a search, the same torques by one; derivatives along a motion."""
    law, inverse, _, _ = KINDS[kind]
    spelled = {
        "sinh": lambda t: ca.asinh(t / 5) / 30,
        "exp": lambda t: ca.log1p(t / 5) / 30,
        "tanh": lambda t: ca.atanh(t / 5) / 30,
    }[kind]
    spring, twin = el.NonlinearSpring.from_inverse(spelled), el.NonlinearSpring(law)
    torques = np.array([-4.999, -3.0, -1e-6, 0.0, 0.2, 2.0, 4.99])
    assert found(spring, torques) == pytest.approx([float(inverse(t)) for t in torques], rel=1e-14, abs=1e-18)
    z = np.linspace(-0.08, 0.08, 9)
    for x in z:
        expected = float(twin.torques([ca.DM(x)], None)[0])
        assert float(spring.torques([ca.DM(x)], None)[0]) == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert float(spring.energy([ca.DM(0.05)], None)) == pytest.approx(
        float(twin.energy([ca.DM(0.05)], None)), rel=1e-12
    )
    jet = [ca.DM(x) for x in (2.0, 3.0, -1.0, 4.0)]
    for a, b in zip(spring.deflections(jet, [])[0], twin.deflections(jet, [])[0], strict=True):
        assert float(a) == pytest.approx(float(b), rel=1e-11)
    doubled = spring.scaled(2.0)
    assert float(doubled.deflections([4.0], [])[0][0]) == pytest.approx(float(inverse(2.0)), rel=1e-14)


def test_springs_by_their_potential():
    """150 z^2 + 750 z^4: the energy itself, and the law 300 z + 3000 z^3."""
    spring = el.NonlinearSpring.from_potential(lambda z: 7 + 150 * z**2 + 750 * z**4, damping=2.0)
    assert float(spring.energy([ca.DM(0.3)], None)) == pytest.approx(150 * 0.09 + 750 * 0.0081, rel=1e-14)
    assert float(spring.torques([ca.DM(0.3)], None)[0]) == pytest.approx(90 + 81, rel=1e-14)
    assert float(spring.deflections([171.0], [])[0][0]) == pytest.approx(0.3, rel=1e-13)
    assert float(spring.scaled(2.0).energy([ca.DM(0.3)], None)) == pytest.approx(2 * (13.5 + 6.075), rel=1e-14)
    assert spring.damping == 2.0


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: el.NonlinearSpring.from_inverse(lambda t: -t), "inverse_law: does not rise"),
        (lambda: el.NonlinearSpring.from_inverse(lambda t: ca.log(t)), "inverse_law: gives no finite number"),
        (lambda: el.NonlinearSpring.from_potential(lambda z: ca.vertcat(z, z)), "potential: gives shape"),
        (lambda: el.NonlinearSpring.from_potential(lambda z: -(z**2)), "the law falls"),
    ],
)
def test_what_is_no_spring_is_refused(make, words):
    with pytest.raises(od.ModelError, match=words):
        make()


@pytest.mark.slow
def test_energy_of_a_saturating_spring_far_out():
    """5 / 30 log cosh(30 z), where the law is a step for the eyes of one quadrature."""
    spring = el.NonlinearSpring(KINDS["tanh"][0])
    for z in (0.01, 0.3, 2.0):
        exact = 5 / 30 * float(mp.log(mp.cosh(30 * z)))
        assert float(spring.energy([ca.DM(z)], None)) == pytest.approx(exact, rel=1e-11)


@pytest.mark.sample("from_inverse")
@pytest.mark.parametrize("make", ["from_inverse", "from_potential"])
def test_robots_with_such_springs_move_as_the_flat_map_says(make):
    springs = {
        "from_inverse": lambda: el.NonlinearSpring.from_inverse(lambda t: ca.asinh(t / 5) / 30),
        "from_potential": lambda: el.NonlinearSpring.from_potential(lambda z: 150 * z**2 + 750 * z**4),
    }
    e = el.elastic_robot(planar_arm(2), springs[make](), motor_inertia=0.3)
    f, g = od.function(e, "elastic_flat_map"), od.function(e, "elastic_forward_dynamics")
    rng = np.random.default_rng(2)
    ports = {n: rng.normal(size=2) for n in f.name_in()}
    state = {**ports, **f(**ports)}
    moved = g(**{n: state[n] for n in g.name_in()})
    assert moved["dv"].full().ravel() == pytest.approx(ports["dv"], rel=1e-9)
    assert moved["d2theta"].full().ravel() == pytest.approx(state["d2theta"].full().ravel(), rel=1e-9)
