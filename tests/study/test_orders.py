"""Orders of convergence: what is observed is what is expected, and the documents tell what was observed."""

import csv
from pathlib import Path

import numpy as np
import pytest

from oc_dyn import cli
from oc_dyn.optimal_control.integrators import METHODS
from oc_dyn.study import orders

ROOT = Path(__file__).resolve().parents[2]


def read(folder):
    with open(folder / "orders.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def stands(row):
    """An order that is expected is there, or more; of controls on equal intervals with a switch, roughly."""
    if row["expected"] and row["observed"]:
        off = 0.35 if row["problem"] == "switch within an interval" else 0.25
        assert float(row["observed"]) > float(row["expected"]) * (1 - off / 2) - off / 2, row


@pytest.mark.slow
def test_quick_study(tmp_path, capsys):
    assert cli.main(["study", "orders", "--quick", "--out", str(tmp_path)]) == 0
    rows = read(tmp_path)
    assert {row["method"] for row in rows} == {*orders.QUICK, "taylor, order 2"}
    for row in rows:
        stands(row)
    assert orders.markdown(rows) in capsys.readouterr().out


def test_the_documents_tell_the_results():
    rows = read(ROOT / "results" / "orders")
    table = orders.markdown(rows)
    assert (ROOT / "results" / "orders" / "orders.md").read_text(encoding="utf-8") == table
    text = (ROOT / "docs" / "transcriptions.md").read_text(encoding="utf-8")
    _, told = text.split("see results/orders -->\n")
    assert told.split("<!-- end")[0] == table
    assert {row["method"] for row in rows} == {*orders.WAYS, *orders.CHAINS}
    for row in rows:
        stands(row)


def test_every_method_is_measured_and_documented():
    names = {name.split("(")[0] for name in orders.WAYS}
    text = (ROOT / "docs" / "transcriptions.md").read_text(encoding="utf-8")
    for name in METHODS:
        assert name in names
        assert f'`"{name}"`' in text


def test_a_slope_is_that_of_what_is_above_the_floor():
    n = np.array([4, 8, 16, 32, 64])
    assert orders.slope(n, 3.0 * n**-4.0) == pytest.approx(4)
    assert orders.slope(n, [1e-3, 1e-6, 1e-9, 1e-12, 1e-12]) == pytest.approx(np.log2(1000))
    assert np.isnan(orders.slope(n, [1e-12] * 5))
    assert np.isnan(orders.slope(n, [np.nan] * 5))


def test_the_least_time_of_the_pendulum_by_small_steps():
    """Full push to the switch and back, by steps of the classic Runge-Kutta method, ends at rest where it should."""
    total = orders.swing_time()
    push, count = orders.PUSH, 200
    switch_angle = (2 + push * np.pi) / 2 / push

    def after(state, u, t):
        h, y = t / count, np.array(state)
        for _ in range(count):
            slopes = [np.zeros(2)]
            for share in (0, 0.5, 0.5, 1):
                q, v = y + share * h * slopes[-1]
                slopes.append(np.array([v, u - np.sin(q)]))
            y = y + h / 6 * (slopes[1] + 2 * slopes[2] + 2 * slopes[3] + slopes[4])
        return y

    low, high = 0.0, total
    for _ in range(40):  # the time of the switch
        t = (low + high) / 2
        low, high = (t, high) if after((0.0, 0.0), push, t)[0] < switch_angle else (low, t)
    q, v = after(after((0.0, 0.0), push, t), -push, total - t)
    assert q == pytest.approx(np.pi, abs=1e-8)
    assert v == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_optima_of_chains(order):
    """Efforts from rest to rest over 1: 12, 720 and 100800 halves; the beam's optimum by a fine grid of differences."""
    _, optimum = orders.effort(4, "taylor", order)
    assert optimum == pytest.approx({2: 6.0, 3: 360.0, 4: 50400.0}[order])
    _, q, optimum = orders.beam(4, "taylor", order)
    t = np.linspace(0, 4, 4001)
    curvature = np.gradient(np.gradient(q(t), t, edge_order=2), t, edge_order=2)
    assert np.trapezoid(q(t) ** 2 + curvature**2, t) / 2 == pytest.approx(optimum, rel=1e-4)
