"""Torques, accelerations and their time derivatives to order 5 against the 50-digit arithmetic of fifty_digits.py."""

import pytest
from fifty_digits import ORDER, TIMES, case, digits, exact, relative
from mpmath import mpf

import oc_dyn as od
from oc_dyn.registry import get_method

__all__ = ["digits"]  # the fixture that sets 50 digits
ROBOTS = ("panda", "aerial_manipulator")


def analytic(robot, quantity, order):
    """[(method, Function)] of the methods that can; those by AD start from one of them and are compared elsewhere."""
    found = [get_method(quantity, m) for m in od.methods(quantity)]
    able = [m.name for m in found if m.kind != "ad" and m.refusal(robot, order) is None]
    return [(m, od.function(robot, quantity, order=order, method=m)) for m in able]


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics(name):
    cases = [case(name, t) for t in TIMES]
    for method, f in analytic(cases[0][0], "inverse_dynamics", ORDER):
        for _, q, V, tau in cases:
            for k, (got, expected) in enumerate(zip(f(q, *V), tau, strict=True)):
                assert relative(got.full().ravel(), expected) < 1e-11, (method, k)
                if name == "aerial_manipulator":  # the torques of the arms are small beside the base's wrench
                    assert relative(got.full()[6:, 0], expected[6:]) < 1e-11, (method, k)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_forward_dynamics(name):
    # an error of one derivative enters the one but next times gravity over the length of a link
    cases = [case(name, t) for t in TIMES]
    for method, f in analytic(cases[0][0], "forward_dynamics", ORDER):
        for _, q, V, tau in cases:
            for k, got in enumerate(f(q, V[0], *(x.astype(float) for x in tau))):
                assert relative(got.full().ravel(), exact(V[k + 1])) < (1e-11 if k < 2 else 2e-9), (method, k)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ROBOTS)
def test_reference_is_its_own_derivative(name):
    """Torques of 50 digits at two near times give the next derivative to 20 digits."""
    h = mpf(10) ** -12
    before, tau, after = (case(name, mpf(TIMES[0]) + d)[3] for d in (-h, 0, h))
    for k in range(ORDER):
        slope = (after[k] - before[k]) / (2 * h)
        assert max(abs(slope - tau[k + 1])) < mpf(10) ** -20 * max(abs(tau[k + 1])), k
