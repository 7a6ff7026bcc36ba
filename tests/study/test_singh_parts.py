"""Terms of the second partials of forward dynamics, their counts, crossovers and breakdown, and times of robots."""

import csv
import shutil

import casadi as ca
import numpy as np
import pytest
from tqdm import tqdm

import oc_dyn as od
from oc_dyn.study import singh_parts, singh_programs
from oc_dyn.study.operation_counts import operations
from oc_dyn.study.second_order import FORWARD, INVERSE

WAYS = [(term, way) for term, ways in singh_parts.TERMS.items() for way in ways if way not in singh_parts.COUNTED]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", singh_parts.KINDS)
@pytest.mark.parametrize("term, way", WAYS)
def test_ways_to_terms_agree(kind, term, way):
    model, at = singh_parts.terms_inputs(kind, 6)
    got, wanted = ([np.array(x) for x in singh_parts.valued(model, at, term, w)] for w in (way, singh_parts.REFERENCE))
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == (36, 6)
        assert np.abs(b).max() > 0.1
        assert np.abs(a - b).max() < singh_parts.AGREE * np.abs(b).max()


@pytest.mark.sample("tree")
@pytest.mark.parametrize("kind", singh_parts.KINDS)
def test_terms_make_the_second_partials_of_forward_dynamics(kind):
    """Put together they are what the method gives at the torques of the same motion."""
    model, at = singh_parts.terms_inputs(kind, 5)
    robot, rng = od.robots.by_name(f"{kind}:5"), np.random.default_rng(5)
    q, (v, dv) = robot.random_configuration(5), rng.normal(size=(2, 5))
    tau = od.function(robot, "inverse_dynamics").call([q, v, dv])[0]
    wanted = od.function(robot, FORWARD, method="ad_pure").call([q, v, tau])
    found = [*singh_parts.valued(model, at, "outer", "dtm"), *singh_parts.valued(model, at, "mass", "dtm_sparse")]
    for a, b in zip(found, wanted[:4], strict=True):
        a, b = np.array(a), np.array(b)
        assert np.abs(a - b).max() < 1e-9 * np.abs(b).max()


@pytest.mark.parametrize("kind", singh_parts.KINDS)
@pytest.mark.parametrize(
    "term, way", [("inner", "dtm"), ("inner", "dtm_sparse"), ("outer", "dtm_sparse"), ("mass", "dtm_sparse")]
)
def test_operations_of_products_are_those_written_out(kind, term, way):
    model, at = singh_parts.terms_inputs(kind, 4)
    f = singh_parts.term(model, at, term, way).expand()
    assert singh_parts.operations(model, at, term, way) == operations(f)


@pytest.mark.slow
def test_operations_of_what_is_shared_grow_by_the_same_for_each_column():
    model, _ = singh_parts.terms_inputs("tree", 5)
    for several in (singh_parts._several_mass_partials, singh_parts._several_solutions):
        one, two, three = (operations(several(model, k)) for k in (1, 2, 3))
        assert three - two == two - one < one
        assert singh_parts._shared(several, model, 3) == three


def test_operations_leave_out_copies():
    x = ca.SX.sym("x", 2)
    assert operations(ca.Function("f", [x], [ca.vertcat(x[0], 2.5), x[0] * x[1] + 1])) == 2


def test_crossover():
    sizes = [2, 4, 8, 16]
    assert singh_parts.crossover(sizes, [1, 1, 1, 1], [4, 2, 0.5, 0.1]) == pytest.approx(4 * np.sqrt(2))
    assert singh_parts.crossover(sizes, [1, 1, 1, 1], [0.5, 2, 2, 0.5]) == pytest.approx(8 * np.sqrt(2))
    assert singh_parts.crossover(sizes, [1, 2, 3, 4], [0.1] * 4) == 2
    assert singh_parts.crossover(sizes, [1, 2, 3, 4], [5, 1, 1, 4]) is None


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(singh_parts, "QUICK", (2, 3))
    monkeypatch.setattr(singh_parts, "MOST", {"interpreted": 3, "-O3 native": 2})
    monkeypatch.setattr(singh_parts, "KINDS", ("tree",))
    monkeypatch.setattr(singh_parts, "BREAKDOWN", {"composite": 3})
    monkeypatch.setattr(singh_parts, "COMPILED", {"composite": 2})


@pytest.mark.slow
def test_measured_tables(small, tmp_path):
    counts, clock = singh_parts.measure(tmp_path, True, "serial", tqdm(disable=True))
    shares = singh_parts.measure_shares(tmp_path, True, tqdm(disable=True))
    assert read(tmp_path / "terms.csv") == [
        {**row, "code": row.get("code", r["code"])} for row, r in zip(counts, read(tmp_path / "terms.csv"), strict=True)
    ]
    assert len(counts) == 2 * 9
    assert all(float(row["error"]) < singh_parts.AGREE for row in counts if row["error"])
    assert sum(row["error"] == "" for row in counts) == 2 * 4  # the reference, and what is counted only
    forms = {row["form"] for row in clock}
    assert forms == ({"interpreted", "-O3 native"} if singh_parts.compiler() else {"interpreted"})
    assert all(float(row["microseconds"]) > 0 for row in clock)
    assert all(row["ratio"] == "1" for row in clock if row["way"] == singh_parts.REFERENCE)
    of = [row for row in shares if row["bodies"] == "3"]
    assert [row["part"] for row in of] == list(singh_parts.PARTS)
    assert sum(float(row["share"]) for row in of) == pytest.approx(1, abs=1e-3)
    f = od.function(od.robots.tree(3), INVERSE, method="composite")
    assert int(of[1]["operations"]) == operations(f)
    assert of[0]["compiled share"] == ""  # beyond COMPILED
    times = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    singh_parts.measure(tmp_path, True, "serial", tqdm(disable=True))  # nothing is measured again
    singh_parts.measure_shares(tmp_path, True, tqdm(disable=True))
    assert times == {path: path.read_bytes() for path in tmp_path.glob("*.csv")}

    crossed = singh_parts.crossovers(counts, clock)
    told = "\n".join([*singh_parts.report_terms(counts, crossed), *singh_parts.report_shares(shares)])
    assert "All ways agree" in told
    assert "MORE" not in told
    worse = [{**row, "error": row["error"] and "1e-3"} for row in counts]
    assert "MORE THAN 1e-09" in "\n".join(singh_parts.report_terms(worse, crossed))
    assert len(singh_parts.panels(counts, clock, shares)) == 2 * (1 + len(forms)) + 1 + len(forms)


def test_ad_of_the_papers_first_partials():
    """What it is compared with is another way to the same tensors."""
    robot = od.robots.double_pendulum()
    q, (v, dv) = robot.random_configuration(1), np.random.default_rng(1).normal(size=(2, 2))
    f = singh_programs.made(INVERSE, "double_pendulum", singh_programs.THEIRS)
    wanted = od.function(robot, INVERSE, method="ad_pure")
    for a, b in zip(f.call([q, v, dv]), wanted.call([q, v, dv]), strict=True):
        assert np.abs(np.array(a - b)).max() < 1e-12


@pytest.mark.slow
def test_programs_of_robots(monkeypatch, tmp_path):
    monkeypatch.setattr(singh_programs, "COMPILERS", ("gcc", "no_such_compiler"))
    rows, every = singh_programs.measure(tmp_path, True, "double_pendulum", tqdm(disable=True))
    assert rows == every
    ways = {"interpreted", *(["gcc"] if shutil.which("gcc") else [])}
    assert {row["by"] for row in rows} == ways
    assert len(rows) == sum(map(len, singh_programs.WAYS.values())) * len(ways)
    of = {(row["quantity"], row["method"]): row for row in rows if row["by"] == "interpreted"}
    f = od.function(od.robots.double_pendulum(), FORWARD, method="composite")
    assert int(of[FORWARD, "composite"]["instructions"]) == f.n_instructions()
    assert of[INVERSE, "compact"]["instructions"] == of[FORWARD, "spatial_vector"]["instructions"] == ""
    assert of[INVERSE, "ad_symmetric"]["ratio"] == "1"
    counted = singh_programs.count(tmp_path, True, "double_pendulum", shown=tqdm(disable=True))
    counts = {(row["quantity"], row["method"]): row["instructions"] for row in counted}
    assert set(counts) == {(q, m) for q, ways in singh_programs.COUNTED.items() for m in ways}
    for key, row in of.items():
        assert key not in counts or row["instructions"] == counts[key]
    assert "instructions, and over" in singh_programs.report_counts(counted)[0]
    told = "\n".join(singh_programs.report(rows))
    assert "not installed: " in told
    assert "no_such_compiler" in told
    before = (tmp_path / "programs.csv").read_bytes()
    singh_programs.measure(tmp_path, True, "double_pendulum", tqdm(disable=True))
    assert (tmp_path / "programs.csv").read_bytes() == before
    singh_programs.plot(rows, tmp_path / "programs.png")
    assert (tmp_path / "programs.png").stat().st_size > 5000


def test_programs_without_a_compiler(monkeypatch):
    monkeypatch.setattr(singh_programs, "COMPILERS", ("no_such_compiler",))
    assert {keys["by"] for keys in singh_programs.plan(False)} == {"interpreted"}
    monkeypatch.setattr(singh_parts, "compiler", lambda: None)
    assert {keys["form"] for keys in singh_parts.plans(False)[1]} == {"interpreted"}
