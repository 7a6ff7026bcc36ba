"""Motions from rest to rest as references: digits kept all the way, against mpmath; ends exact."""

import numpy as np
import pytest
from elastic_arms import planar_arm
from mpmath import mp, mpf

import oc_dyn as od
from oc_dyn import elastic as el

START, GOAL, T = 0.3, 1.1, 0.7


def reference_of(continuity, **more):
    n = (continuity - 2) // 2  # joints of the complete model that ask for about so much
    coupling = np.triu(np.full((n, n), 1e-3), 1)
    arm = el.elastic_robot(planar_arm(n), 300.0, motor_inertia=0.3, coupling=coupling)
    path = el.rest_to_rest([START] * n, [GOAL] * n, T, continuity=continuity, **more)
    return el.reference(arm, path, needs="bounded torque")


def exact(continuity, times):
    """(derivatives, times) of the polynomial, by its powers of t / T in 60 digits."""
    c = continuity
    with mp.workdps(60):
        share = [(-1) ** i * mp.binomial(c + i, i) * mp.binomial(2 * c + 1, c - i) for i in range(c + 1)]
        powers, rows = [mpf(0)] * (c + 1) + share, []
        for d in range(c + 1):
            size = (mpf(GOAL) - mpf(START)) / mpf(T) ** d
            shares = [mpf(x) / mpf(T) for x in times]
            rows.append([(d == 0) * mpf(START) + size * sum(a * s**k for k, a in enumerate(powers)) for s in shares])
            powers = [k * powers[k] for k in range(1, len(powers))]
        return np.array(rows, float)


@pytest.mark.parametrize("continuity", [4, 8, 12])
def test_no_digits_are_lost_on_the_way(continuity):
    times = np.linspace(0.0, T, 41)
    expected = exact(continuity, times)
    found = reference_of(continuity).at(times)
    got = np.array([x[0] for x in found.values()])
    n = min(len(got), len(expected))
    assert n >= continuity  # derivatives compared
    errors = np.abs(got[:n] - expected[:n]).max(axis=1) / np.abs(expected[:n]).max(axis=1)
    assert errors.max() < 1e-12


@pytest.mark.parametrize("more", [{}, {"wait": 0.3, "hold": 0.4}])
def test_both_ends_are_exact(more):
    reference = reference_of(12, **more)
    ends = np.array(reference.breaks)
    found = reference.at(ends)
    assert np.array_equal(found.pop("q")[0], np.where(ends < 0.5, START, GOAL))
    assert all(not found[name].any() for name in list(found)[:12])


@pytest.mark.parametrize(
    "change, text",
    [
        ({"duration": np.nan}, "duration"),
        ({"continuity": 4.5}, "continuity"),
        ({"wait": -1.0}, "wait"),
        ({"start": [np.nan]}, "nan"),
        ({"goal": ["a"]}, "goal"),
    ],
)
def test_what_is_no_motion_is_refused(change, text):
    with pytest.raises(od.ShapeError, match=f"rest_to_rest.*{text}"):
        el.rest_to_rest(**{"start": [0.0], "goal": [1.0], "duration": 1.0} | change)


@pytest.mark.slow
def test_the_integrator_is_not_held_up_by_lost_digits():
    """It took 16 000 steps where the torque was noise, at continuity 8."""
    coupling = np.triu(np.full((3, 3), 1e-3), 1)
    whole = el.elastic_robot(planar_arm(3), 300.0, motor_inertia=0.3, coupling=coupling)
    path = el.rest_to_rest([0.0] * 3, [0.5] * 3, 1.0, continuity=whole.continuity("torque"))
    run = el.simulate(whole, el.feedforward_pd(whole, 50.0, 5.0), el.reference(whole, path), rtol=1e-10)
    assert run.facts["steps"] < 500
