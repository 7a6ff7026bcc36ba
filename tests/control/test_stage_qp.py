"""KKT residuals of random quadratic programs on stages, other solvers, and prices of limits that cannot be kept."""

import numpy as np
import pytest
from stage_qps import feasible

SHAPES = {  # (nx, nu, rows) of stages
    "plain": [(3, 2, 1), (2, 1, 0), (3, 3, 2), (1, 1, 1), (2, 0, 1)],
    "one stage": [(2, 2, 2)],
    "long": [(2, 1, 1)] * 12 + [(2, 0, 2)],
    "no rows": [(3, 2, 0)] * 4 + [(3, 0, 0)],
}


def check(p, found, tol=1e-8):
    z, lam = found[:2]
    stationary, violation, gap = p.residuals(z, lam)
    size = 1 + np.abs(lam).max()
    assert stationary < 10 * tol * size
    assert violation < tol * size
    assert gap < tol * size


@pytest.mark.few(10)
@pytest.mark.sample(1)
@pytest.mark.parametrize("case", ["limits", "free start", "rank 1", "unstable", "all bounded", "equations", "goal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_optima(shape, case):
    for seed in range(3):
        p = feasible(SHAPES[shape], case, seed)
        check(p, p.solved())


@pytest.mark.parametrize("solver", ["qrqp", "proxqp"])
def test_the_optimum_is_that_of_other_solvers(solver):
    p = feasible(SHAPES["plain"], "all bounded", 3)
    expected, solved = p.reference(solver)
    assert solved
    assert p.solved()[0] == pytest.approx(expected, abs=1e-7)


def test_a_warm_start_needs_one_factorisation():
    p = feasible(SHAPES["long"], "all bounded", 1)
    cold = p.solved()
    warm = p.solved(lam=cold[1])
    assert cold[4] > 2
    assert warm[4] == 1
    assert warm[0] == pytest.approx(cold[0], abs=1e-7)


@pytest.mark.slow
def test_rows_twice_and_rows_that_are_no_limit():
    p = feasible(SHAPES["plain"], "limits", 5)
    twice = p.repeated()
    check(p, p.solved())
    assert twice.solved()[0] == pytest.approx(p.solved()[0], abs=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_limits_that_cannot_be_kept_cost_their_price(seed):
    """The optimum of the program with slacks of its own for them, which another solver finds."""
    p = feasible(SHAPES["plain"], "all bounded", seed)
    rows = p.moved_apart(1.5)
    z, lam, error, beyond, *_ = p.solved(price=10.0)
    scale = max(np.abs(np.diag(p.H)).max(), np.abs(p.g).max())
    expected = p.with_slacks(10.0 * scale)
    assert beyond > 1e-3
    assert error < 1e-7
    assert np.abs(lam[rows]).max() <= 10.0 * scale * (1 + 1e-12)
    assert z == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_work_is_bounded_whatever_is_given():
    p = feasible(SHAPES["plain"], "limits", 0)
    for scale in (1e-6, 1e6, 1e9):
        p.g = scale * p.g
        found = p.solved(max_iter=7)
        assert found[5] <= 7
        assert np.all(np.isfinite(found[0]))
        p.g = p.g / scale
    p.lower[:], p.upper[:] = (
        np.where(np.isfinite(p.lower), p.lower * 1e9, p.lower),
        np.where(np.isfinite(p.upper), p.upper * 1e9, p.upper),
    )
    assert p.solved()[5] <= 40
