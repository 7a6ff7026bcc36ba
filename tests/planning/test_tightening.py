"""od.tighten: margins of limits, from what is exceeded between the points where they hold."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.planning.tightening import worst


def overshooting(margins, before):
    """A solution that reaches its bounds, and 10 % and 4 % more between the points."""
    rounds = 1 if before is None else before["rounds"] + 1
    return {"v": 1.1 * margins["v"], "tau": 1.04 * margins["tau"], "rounds": rounds}


def shares_of(result):
    return {"v": result["v"], "tau": result["tau"]}


def test_what_is_exceeded_is_tightened_until_it_is_not():
    start = {"v": np.ones(2), "tau": np.array([1.0, 0.9])}
    found = od.tighten(overshooting, shares_of, start, within=1.001, excess=1.0002)
    assert found.rounds == found.result["rounds"] == 2
    assert np.allclose(found.margins["v"], 1 / 1.1 / 1.0002)
    assert np.allclose(found.margins["tau"], [1 / 1.04 / 1.0002, 0.9])  # the second is within its limit
    assert worst(found.shares) <= 1.001
    assert np.array_equal(start["v"], [1, 1])


def test_margins_of_numbers_and_an_excess_from_below_the_bound():
    found = od.tighten(overshooting, shares_of, {"v": 1.0, "tau": 1.0}, within=1.05, above=1 / 1.01, excess=1.01)
    assert found.rounds == 2
    assert found.margins["v"] == pytest.approx(1 / 1.1 / 1.01)
    assert found.margins["tau"] == pytest.approx(1 / 1.04 / 1.01)


def test_the_last_result_after_all_rounds_with_the_margins_it_had():
    found = od.tighten(overshooting, shares_of, {"v": 1.0, "tau": 1.0}, within=0.5, rounds=3, excess=1.1)
    assert found.rounds == 3
    assert found.result["v"] == pytest.approx(1.1 * found.margins["v"])


def test_least_rounds_are_measured_ones():
    measured = iter([None, {"v": 0.9}, {"v": 0.9}, {"v": 0.9}])
    count = lambda margins, before: (before or 0) + 1  # noqa: E731
    found = od.tighten(count, lambda _: next(measured), {"v": 1.0}, within=1, least=2)
    assert found.result == found.rounds == 3
    assert found.margins == {"v": 1.0}


def test_nothing_measured_solves_again_with_the_same_margins():
    seen, measured = [], iter([{"v": 2.0}, None, {"v": 1.0}])

    def solve(margins, before):
        seen.append(float(margins["v"]))
        return len(seen)

    assert od.tighten(solve, lambda _: next(measured), {"v": 1.0}, within=1).result == 3
    assert seen == [1.0, 0.5, 0.5]


def test_no_more_result_ends_with_the_one_before():
    once = lambda margins, before: "first" if before is None else None  # noqa: E731
    found = od.tighten(once, lambda _: {"v": 2.0}, {"v": 1.0}, within=1)
    assert (found.result, found.rounds) == ("first", 1)
    assert found.shares == {"v": 2.0}


def test_what_cannot_be_tightened_is_named():
    def tightened(shares, **options):
        return od.tighten(lambda m, _: 0, lambda _: shares, {"v": 1.0, "tau": np.ones(2)}, within=1, **options)

    for rounds in (0, -1, 1.5):
        with pytest.raises(od.ShapeError, match="rounds"):
            tightened({"v": 1.0, "tau": 1.0}, rounds=rounds)
    for shares, words in (
        ({"v": 1.0}, "no share of 'tau'"),
        ({"v": 1.0, "tau": [0.5, np.nan]}, "'tau' is nan"),
        ({"v": 1.0, "tau": 1.0, "q": np.nan}, "'q' is nan"),
        ([1.0, 2.0], "measure gave"),
    ):
        with pytest.raises(od.ShapeError, match=words):
            tightened(shares)
