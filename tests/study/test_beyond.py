"""The studies that no paper has: cheapest methods, what building costs, gradients, single precision."""

import csv
import json

import casadi as ca
import numpy as np
import pytest
from clones import clone

import oc_dyn as od
from oc_dyn import cli
from oc_dyn.runs.stored_table import StoredTable
from oc_dyn.study import functions, native, parts
from oc_dyn.study.beyond import build_costs, c_programs, cheapest, gradients, single_precision

compiles = pytest.mark.skipif(native.compiler() is None, reason="no C compiler")
PLACES = {  # quick runs small enough for a test
    "cheapest": (
        cheapest,
        {"QUICK": ((2,), range(3)), "KINDS": ("tree",), "TIMED": (2,), "QUANTITIES": ("inverse_dynamics",)},
    ),
    "build_costs": (build_costs, {"QUANTITIES": (("inverse_dynamics_partials", 0),)}),
    "gradients": (gradients, {"QUICK": (2,), "KINDS": ("chain",), "QUANTITIES": ("inverse_dynamics",), "NEAR": 1.0}),
    "single_precision": (single_precision, {}),
}

PARTS = {"cheapest": ", 2, 2", "gradients": "chain", "build_costs": "partials"}


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@compiles
@pytest.mark.parametrize("name", PLACES)
def test_quick_runs_write_what_they_say_and_go_on_where_they_were(name, tmp_path, monkeypatch, capsys):
    module, smaller = PLACES[name]
    for what, value in smaller.items():
        monkeypatch.setattr(module, what, value)
    if name == "build_costs":  # in this process
        monkeypatch.setattr(build_costs, "fresh", lambda f, **arguments: f(**arguments))
    if name == "single_precision":
        ways = {key: names[:1] for key, names in list(single_precision.WAYS.items())[::3]}
        monkeypatch.setattr(single_precision, "WAYS", ways)
    with clone(tmp_path / "clone") as quick:
        assert cli.main(["study", name, "--quick", "--quiet"]) == 0
        out = quick / name
        kept = {p.name for p in out.iterdir() if p.suffix in (".csv", ".png")}
        assert kept == set(module.CAPTIONS)
        facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        assert facts["command"].startswith(f"oc-dyn study {name} --quick")
        globals()[f"check_{name}"](out)
        before = {path.name: path.read_text() for path in out.glob("*.csv")}
        for what in ("_counted", "_timed", "_measured", "measured"):  # nothing is measured again
            monkeypatch.setattr(module, what, None, raising=False)
        assert cli.main(["study", name, "--quick", "--quiet"]) == 0
        assert {path.name: path.read_text() for path in out.glob("*.csv")} == before
        if name in PARTS:  # and what a part leaves out stays
            (out / "rows.sqlite").unlink()
            assert cli.main(["study", name, "--quick", "--quiet", "--only", PARTS[name]]) == 0
            assert {path.name: path.read_text() for path in out.glob("*.csv")} == before
            assert "--only" in json.loads((out / "manifest.json").read_text(encoding="utf-8"))["command"]
    capsys.readouterr()


def check_cheapest(out):
    rows = {(r["quantity"], int(r["order"])): r for r in read(out / "cheapest.csv")}
    assert set(rows) == {(q, r) for q in cheapest.QUANTITIES for r in range(3)}
    robot = od.robots.tree(2)
    for (quantity, order), row in rows.items():
        every = {
            m: od.function(robot, quantity, order=order, method=m).n_instructions()
            for m in cheapest.able({"quantity": quantity, "robot": "tree", "bodies": 2, "order": order})
        }
        groups = {g: [x for m, x in every.items() if cheapest.kind(quantity, m) == g] for g in ("ad", "analytic")}
        assert every[row["cheapest"]] == min(every.values())  # what was left out would not have won
        if order:
            assert float(row["ratio"]) == pytest.approx(min(groups["analytic"]) / min(groups["ad"]), abs=1e-3)
        else:
            assert row["AD"] == ""
        assert bool(row["fastest"]) == (order == 2)


def check_build_costs(out):
    rows = read(out / "costs.csv")
    pendulum = od.robots.double_pendulum()
    for row in rows:
        f = od.function(pendulum, row["quantity"], order=int(row["order"]), method=row["method"])
        assert int(row["instructions"]) == f.n_instructions()
        assert float(row["compile_seconds"]) > 0
        assert float(row["compile_mb"]) > 5
        assert float(row["interpreted microseconds"]) > float(row["microseconds"]) > 0
    assert {row["kind"] for row in rows} == {"ad", "analytic"}
    for row in read(out / "break_even.csv"):
        assert (row["verdict"] in ("from", "up to")) == bool(row["calls"])
        least = row["against"] == build_costs.LEAST and float(row["ready"]) > 1  # equal where set-ups are
        assert not least or row["verdict"] in ("from", "never", build_costs.SAME)


def check_gradients(out):
    for row in read(out / "counts.csv"):
        assert float(row["difference"] or 0) < 1e-12, row
        assert (float(row["over function"]) == 1) == (row["product"] == gradients.FUNCTION)
    times = read(out / "times.csv")
    assert times[0]["ratio"] == "1"
    assert {row["product"] for row in times} == {gradients.FUNCTION, *gradients.PRODUCTS}


def check_single_precision(out):
    rows = read(out / "digits.csv")
    assert len(rows) == len(read(out / "times.csv")) == 3
    for row in rows:
        assert 0.0 <= float(row["lost"]) <= float(row["worst lost"]) < 4
        assert float(row["error"]) > single_precision.UNIT / 10


# -- the least of each kind --------------------------------------------------------------------------------------


def test_lower_bounds_are_those_of_smaller_cells():
    found = {
        ("q", "chain", 2, 1, "a"): {"instructions": "10"},
        ("q", "chain", 3, 0, "a"): {"instructions": "25"},
        ("q", "chain", 3, 2, "a"): {"instructions": ""},
        ("q", "tree", 2, 1, "a"): {"instructions": "99"},
        ("q", "chain", 2, 1, "b"): {"instructions": "98"},
    }
    assert cheapest.lower_bound(found, ("q", "chain", 3, 3), "a") == 25
    assert cheapest.lower_bound(found, ("q", "chain", 2, 1), "a") == 10
    assert cheapest.lower_bound(found, ("q", "chain", 2, 0), "a") == 0


def test_what_is_far_from_the_least_for_fewer_bodies_is_not_built():
    counts = {
        "taylor": "100",
        "recursive_body": "140",
        "recursive_spatial": "160",
        "closed_form": "",
        "ad_taylor": "300",
    }
    found = {("inverse_dynamics", "chain", 5, 2, m): {"instructions": n} for m, n in counts.items()}
    cell = ("inverse_dynamics", "chain", 10, 2)
    factors = {m: cheapest.far(found, cell, m) for m in counts}
    assert factors == {**dict(zip(counts, (1.0, 1.4, 1.6, np.inf), strict=False)), "ad_taylor": 1.0}
    assert cheapest.far(found, ("inverse_dynamics", "chain", 5, 2), "recursive_spatial") == 1
    assert "not near" in cheapest._counted({}, 0, 1, factors["recursive_spatial"])["note"]


def test_what_cannot_be_the_cheapest_is_not_built():
    keys = {"quantity": "none"}  # so that building would fail
    assert "11 instructions for less, 10 is" in cheapest._counted(keys, 11, 10)["note"]
    assert "more than" in cheapest._counted(keys, cheapest.MOST + 1, np.inf)["note"]


@pytest.mark.parametrize(
    "low, high, steady, told",
    [
        ("0.8", "0.9", "yes", "analytic"),
        ("1.1", "1.2", "yes", "ad"),
        ("0.9", "1.1", "yes", "none"),
        ("0.8", "0.9", "no", "not steady"),
    ],
)
def test_verdicts_of_times(low, high, steady, told):
    timed = {
        "taylor": {"low": low, "high": high, "steady": steady, "ratio": "1"},
        "ad_taylor": {"low": "1", "high": "1", "steady": "yes", "ratio": "1"},
    }
    assert cheapest.verdict(timed, "taylor", "ad_taylor") == told
    assert cheapest.verdict(timed, "taylor", "") == ""


def test_methods_of_equal_time_are_told_apart_by_their_instructions():
    rows = {
        "a": ("1", "0.99", "10"),
        "b": ("0.98", "0.97", "12"),
        "c": ("0.97", "0.96", "12"),
        "d": ("1.2", "1.1", "5"),
    }
    timed = {m: dict(zip(("ratio", "low", "instructions"), x, strict=True)) for m, x in rows.items()}
    assert cheapest.fastest(timed) == "b"
    timed["a"]["low"] = "0.96"
    assert cheapest.fastest(timed) == "a"


# -- break-even --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a, t, b, u", [(5.0, 0.3, 1.0, 0.7), (1.0, 0.7, 5.0, 0.3), (2.0, 0.1, 2.0, 0.1)])
def test_calls_after_which_a_way_has_paid(a, t, b, u):
    """Beside the sums themselves."""
    verdict, calls = build_costs.paid(a, t, b, u)
    less = [n for n in range(1000) if a + n * t < b + n * u]
    if verdict == "from":
        assert min(less) in (calls, calls + 1)  # at calls both may be equal
    elif verdict == "up to":
        assert max(less) in (calls, calls - 1)
    else:
        assert less == []


def test_ways_that_are_less_or_more_from_the_first_call_on():
    assert build_costs.paid(1.0, 0.1, 1.0, 0.2) == ("always", None)
    assert build_costs.paid(1.0, 0.1, 2.0, 0.1) == ("always", None)
    assert build_costs.paid(2.0, 0.2, 1.0, 0.1) == ("never", None)


# -- gradients ---------------------------------------------------------------------------------------------------


@pytest.mark.sample("inverse_dynamics-gradient")
@pytest.mark.parametrize("product", gradients.PRODUCTS)
@pytest.mark.parametrize("quantity", gradients.QUANTITIES)
def test_ways_agree(quantity, product):
    """All of them, forms of AD that are no registered methods included; in an order of their own."""
    robot = od.robots.tree(3)
    made = [gradients.made(quantity, robot, product, way) for way in gradients.ways(quantity, product)]
    ports = functions.random_ports(robot, made)
    first, *others = (np.vstack([np.array(x).reshape(-1, 1) for x in f(**ports).values()]) for f in made)
    assert len(others) >= 2
    for x in others:
        assert np.allclose(x, first, rtol=1e-10, atol=1e-10)


def test_what_the_table_has_of_the_rest_stays(tmp_path):
    path, every = tmp_path / "t.csv", [{"robot": x, "bodies": n} for x in "ab" for n in (1, 2)]
    table = StoredTable(path, ("robot", "bodies", "way"), ("y",), code="older")
    for point in every:
        table.add(**point, way="w", y=7)
    table.close()
    again, part = StoredTable(path, ("robot", "bodies", "way"), ("y",)), parts.chosen(every, "b, 2")
    kept = parts.others(again, part, every)
    assert [(row["robot"], row["bodies"]) for row in kept] == [("a", "1"), ("a", "2"), ("b", "1")]
    again.add(robot="b", bodies=2, way="w", y=8)
    parts.close(again, kept, [point | {"way": "w"} for point in every])
    assert [row["robot"] + row["bodies"] + row["y"] for row in read(path)] == ["a17", "a27", "b17", "b28"]
    with pytest.raises(od.ShapeError, match="nothing has 'none' in its name"):
        parts.chosen(every, "none")


def test_sizes_to_expect():
    assert gradients.expected([], 5) == 0
    assert gradients.expected([(2, 10)], 4) == pytest.approx(80)
    assert gradients.expected([(2, 10), (4, 40)], 8) == pytest.approx(160)


def test_what_is_timed():
    rows = [
        {"product": p, "way": w, "instructions": n}
        for p, w, n in (
            (gradients.FUNCTION, "function", "100"),
            (gradients.GRADIENT, "a", "200"),
            (gradients.GRADIENT, "b", "301"),
            (gradients.HESSIAN, "a", str(gradients.COMPILED + 1)),
        )
    ]
    assert [(row["product"], row["way"]) for row in gradients.compared(rows)] == [
        (gradients.FUNCTION, "function"),
        (gradients.GRADIENT, "a"),
    ]
    assert gradients.compared(rows[:1]) == []


# -- programs ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@compiles
def test_programs_compute_in_their_precision(tmp_path):
    """Beside NumPy's numbers of the same precision."""
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y")
    f = ca.Function("f", [x, y], [x * y + 0.1, ca.sqrt(y)], ["x", "y"], ["a", "b"])
    at = {"x": np.array([0.3, 1e-3, 7e4]), "y": np.array([1.7])}
    for precision, real in (("double", np.float64), ("single", np.float32)):
        program = c_programs.compiled(f, tmp_path, precision, flags=("-O1", "-ffp-contract=off"))
        loaded = c_programs.Loaded(program)
        a, b = loaded.values(at)
        given = {k: v.astype(real) for k, v in at.items()}
        assert (a == given["x"] * given["y"] + real(0.1)).all()
        assert (b == np.sqrt(given["y"])).all()
        assert program.bytes > 500
        assert program.peak_mb > 5
        seconds = c_programs.turns([loaded, loaded], 2)
        assert seconds.shape == (2, 2)
        assert (seconds > 0).all()


@compiles
def test_a_compiler_that_fails_is_told(tmp_path):
    f = ca.Function("f", [ca.SX.sym("x")], [1], ["x"], ["y"])
    with pytest.raises(od.SolveError, match="f: .* ended with status 1: .*no-such-flag"):
        c_programs.compiled(f, tmp_path, flags=("--no-such-flag",))


def test_digits_that_are_lost():
    exact = [np.array([1.0, -2.0]), np.zeros(2), np.array([100.0])]
    got = [np.array([1.0, -2.002]), np.ones(2), np.array([100.01])]
    assert single_precision.error(got, exact) == pytest.approx(1e-3)
    assert single_precision.lost(2.0**-24) == 0
    assert single_precision.lost(2.0**-14) == pytest.approx(3.01, abs=0.01)


def test_states_are_numbers_of_single_precision_and_torques_those_of_motions():
    robot = od.robots.double_pendulum()
    f = od.function(robot, "forward_dynamics", order=1)
    for state in single_precision.states_of(robot, f, 2):
        assert set(state) == {"q", "v", "tau", "dtau"}
        assert all((x == x.astype(np.float32)).all() for x in state.values())
        assert all(np.abs(x).max() < 20 for x in f(**state).values() for x in (np.array(x),))
