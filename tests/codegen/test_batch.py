"""od.batch on vectors: every instruction to the bit, arrays of every layout, and what it refuses."""

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, robot

import oc_dyn as od
from oc_dyn.codegen.build import FLAGS, find_compiler
from oc_dyn.codegen.lanes import WORDS, batch_source, lanes_source
from oc_dyn.codegen.split import split
from oc_dyn.study.random_programs import BINARY, SPECIAL, numbers, one_by_one, program, same_bits

try:
    find_compiler()
except od.SolveError:
    pytest.skip("needs a C compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(folder, monkeypatch):
    """One for all tests of this module: several compile the same."""
    monkeypatch.setenv("OC_DYN_CACHE", str(folder))


EXACT = ("-O1", "-ffp-contract=off")
X, Y = ca.SX.sym("x"), ca.SX.sym("y")
MATRIX = (  # what CasADi has for matrices alone
    "FIND LOW MAP MTIMES SOLVE TRANSPOSE DETERMINANT INVERSE DOT BILIN RANK1 HORZCAT VERTCAT DIAGCAT HORZSPLIT "
    "VERTSPLIT DIAGSPLIT RESHAPE SUBREF SUBASSIGN GETNONZEROS GETNONZEROS_PARAM ADDNONZEROS ADDNONZEROS_PARAM "
    "SETNONZEROS SETNONZEROS_PARAM PROJECT ASSERTION MONITOR NORM2 NORM1 NORMINF NORMF MMIN MMAX HORZREPMAT HORZREPSUM "
    "EINSTEIN BSPLINE CONVEXIFY SPARSITY_CAST LOGSUMEXP DUMP KRON KRON_CONTRACT"
).split()


def run_of(function, *flags, **options):
    return od.batch(function, flags=(*EXACT, *flags), fallback=False, **options)


def vectors():
    """Flags for vectors of two lanes, which every processor of this kind has."""
    return "-DOC_DYN_LANES=2"


def polynomial(rows=3, columns=1, outputs=2):
    x, y = ca.SX.sym("x", rows, columns), ca.SX.sym("y")
    values = [ca.vertcat(ca.sumsqr(x) * y, x[0] / 3, ca.fmin(x[-1], y)), ca.horzcat(x, x * y + 1)]
    return ca.Function("poly", [x, y], values[:outputs], ["x", "y"], ["a", "b"][:outputs])


# -- instructions ---------------------------------------------------------------------------------------------


def test_all_scalar_instructions_of_casadi_are_known():
    others = {"CONST", "INPUT", "OUTPUT", "PARAMETER", "CALL", "PRINTME", *MATRIX}
    names = {name.removeprefix("OP_") for name in dir(ca) if name.startswith("OP_")}
    assert {name for name in names - others if getattr(ca, f"OP_{name}") not in WORDS} == set()


def every_instruction():
    chosen = [(op, word) for op, word in WORDS.items() if word not in ("SIN", "COS", "TANH")]
    values = [ca.SX.binary(op, X, Y) if word in BINARY else ca.SX.unary(op, X) for op, word in chosen]
    return ca.Function("all", [X, Y], [ca.vertcat(*values)]), [word for _, word in chosen]


@pytest.mark.parametrize(
    "flags", [("-DOC_DYN_LANES=2",), *(pytest.param(x, marks=pytest.mark.slow) for x in ((), ("-march=native",)))]
)
def test_every_instruction_to_the_bit_on_every_kind_of_number(flags):
    f, words = every_instruction()
    v = [*SPECIAL, 0.3, -0.3, 0.7, -0.71, 0.99, 2, -2, 3, -3, 2.5, -2.5, 7.3, -7.3, 20, 710, -746, 1e-9, -1e300]
    points = np.array([x.ravel() for x in np.meshgrid(v, v)])
    got, (want,) = run_of(f, *flags)(*points[:, None]), one_by_one(f, points[:, None], points.shape[1])
    wrong = {word: points[:, ~row][:, :3].tolist() for word, row in zip(words, same_bits(got, want), strict=True)}
    assert {word: at for word, at in wrong.items() if at[0]} == {}


def test_without_vectors_the_numbers_are_the_same():
    f, words = every_instruction()
    points = np.random.default_rng(0).normal(size=(2, 1, 500))
    run = run_of(f, "-DOC_DYN_LANES=1")
    assert run.lanes == 1
    assert same_bits(run(*points), one_by_one(f, points, 500)[0]).all()


@pytest.mark.parametrize("flags", [(), pytest.param(("-march=native",), marks=pytest.mark.slow)])
def test_sines_are_as_good_as_those_of_the_library(flags):
    """Against long double, of angles near multiples of pi/2 too, and beyond what is reduced here."""
    run = run_of(ca.Function("f", [X], [ca.sin(X), ca.cos(X)]), *flags)
    rng = np.random.default_rng(0)
    quarters = rng.integers(-41_000, 41_000, 20_000) * (np.pi / 2)
    quarters += rng.integers(-3, 4, quarters.size) * np.spacing(quarters)
    wide = rng.uniform(-65536, 65536, 20_000)
    x = np.concatenate([rng.uniform(-7, 7, 20_000), quarters, wide, 10 ** rng.uniform(-300, 300, 5000)])
    exact = [g(x.astype(np.longdouble)) for g in (np.sin, np.cos)]
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("long double is no longer than double here")
    for got, want in zip(run(x[None]), exact, strict=True):
        assert np.max(np.abs(got[0] - want) / np.spacing(np.abs(want.astype(float)))) < 0.8
    s, c = run(np.array([[0.0, -0.0, np.inf, np.nan, -np.inf, 1e22]]))
    assert np.signbit(s[0, :2]).tolist() == [False, True]
    assert np.isnan(s[0, 2:5]).all()
    assert np.isnan(c[0, 2:5]).all()
    assert abs(s[0, 5] - np.sin(1e22)) < 1e-15


@pytest.mark.parametrize("flags", [(), pytest.param(("-march=native",), marks=pytest.mark.slow)])
def test_tanh_is_as_good_as_that_of_the_library(flags):
    run = run_of(ca.Function("f", [X], [ca.tanh(X)]), *flags)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1, 1, 20_000), rng.uniform(-25, 25, 20_000), 10 ** rng.uniform(-320, 300, 5000)])
    exact = np.tanh(x.astype(np.longdouble))
    assert np.max(np.abs(run(x[None])[0] - exact) / np.spacing(np.abs(exact.astype(float)))) < 2.4
    special = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan, 22, -23, 5e-324]])
    assert same_bits(run(special), np.array([[0.0, -0.0, 1, -1, np.nan, 1, -1, 5e-324]])).all()


@pytest.mark.parametrize("flag", ["-ffast-math", pytest.param("-fassociative-math", marks=pytest.mark.slow)])
def test_flags_that_reorder_sums_do_not_ruin_sines(flag):
    x = np.random.default_rng(0).uniform(-1e4, 1e4, (1, 1000))
    run = od.batch(ca.Function("f", [X], [ca.sin(X)]), flags=("-O3", flag), fallback=False)
    assert np.max(np.abs(run(x) - np.sin(x))) < 1e-15


@pytest.mark.few(12)
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_to_the_bit(seed):
    f, n = program(seed), 1 + 3 * seed
    given = numbers(f, n, seed)
    got = run_of(f, "-DOC_DYN_LIBM", vectors(), threads=2)(*given)
    for x, want in zip(got if isinstance(got, tuple) else (got,), one_by_one(f, given, n), strict=True):
        assert x.shape == want.shape
        assert same_bits(x, want).all()


@pytest.mark.slow
def test_vectors_are_used_by_default():
    run = od.batch(polynomial(outputs=1), fallback=False)
    assert run.lanes > 1


@pytest.mark.slow
def test_a_compiler_that_does_not_know_this_processor_is_asked_without(tmp_path):
    words = tmp_path / "cc"
    words.write_text(f'#!/bin/sh\ncase "$*" in *-march=native*) exit 1;; esac\nexec {find_compiler()[0]} "$@"\n')
    words.chmod(0o755)
    run = od.batch(polynomial(outputs=1), compiler=str(words), fallback=False)
    assert run(np.ones((3, 1)), 2.0)[0, 0] == 6.0


@pytest.mark.slow
def test_a_compiler_of_cpp_does_as_well():
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    f, _ = every_instruction()
    points = np.random.default_rng(0).normal(size=(2, 1, 50))
    assert same_bits(run_of(f, compiler="g++")(*points), one_by_one(f, points, 50)[0]).all()


# -- long ones, and others than scalar programs ------------------------------------------------------------------


@pytest.mark.slow
def test_parts_hand_on_what_later_ones_read():
    f = od.function(robot("floating"), "inverse_dynamics")
    long, short = lanes_source(f, 10**9), lanes_source(f, 100)
    assert long.count("APART void oc_dyn_part") == 1
    assert short.count("APART void oc_dyn_part") > f.n_instructions() / 200
    assert "w[0] = " in short
    run = od.batch(split(f, 100), flags=EXACT, fallback=False)  # matrix Functions are expanded
    x = random_ports(f, robot("floating"))
    assert np.allclose(run(**x), f(**x)["tau"].full(), rtol=1e-13, atol=1e-13)


def test_places_are_used_again():
    f = od.function(robot("floating"), "inverse_dynamics_partials")
    text = lanes_source(f, 100)
    most = max(int(k) for k in re.findall(r"w\[(\d+)\] = ", text))
    assert most < 0.75 * text.count("  w[")


@pytest.mark.slow
def test_matrix_functions_are_expanded_where_that_loses_nothing():
    x = ca.MX.sym("x", 3)
    inner = od.function(robot("serial"), "mass_matrix")
    q = ca.MX.sym("q", 4)
    expanded = [ca.Function("f", [q], [ca.det(inner(q)[:2, :2]) * q]), ca.Function("g", [x], [x @ x.T @ x])]
    kept = [
        ca.Function("checked", [x], [x.attachAssert(x[0] > 0, "x is negative")]),
        ca.Function("many", [x], [ca.Function("s", [X], [ca.sin(X)]).map(10)(ca.repmat(x, 1, 10)[0, :])]),
        ca.Function("solved", [x], [ca.solve(ca.diag(x), x, "ldl")]),
        ca.Function("large", [x], [ca.det(ca.diag(ca.vertcat(*(x[k % 3] for k in range(12)))) + 1) * x]),
    ]
    for f in expanded:
        assert "oc_dyn_one" not in batch_source(f)
    for f in (*expanded, *kept[:3]):  # CasADi writes no C for determinants
        given = np.random.default_rng(0).uniform(0.5, 1, (f.size1_in(0), 9))
        assert np.allclose(od.batch(f, flags="-O1", fallback=False)(given), f.map(9)(given).full(), rtol=1e-13)
    for f in kept:
        assert "oc_dyn_one" in batch_source(f)
    with pytest.raises(od.SolveError, match="checked failed at one of the points"):
        od.batch(kept[0], flags="-O1", fallback=False)(-np.ones((3, 5)))


@pytest.mark.slow
def test_the_inverse_of_erf_is_there():
    """CasADi writes erfinv, which no C library has: loading the code ended the process."""
    f = ca.Function("f", [X], [ca.erfinv(X)])
    assert float(od.compile(f, flags="-O1")(0.3)) == float(f(0.3))
    wrapped = ca.MX.sym("x")
    h = ca.Function("h", [wrapped], [wrapped.attachAssert(wrapped < 2, "wide") + f(wrapped)])
    assert od.batch(h, flags="-O1", fallback=False)(0.3) == float(f(0.3)) + 0.3


# -- arrays -------------------------------------------------------------------------------------------------------


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "transposed": lambda x: np.array(x.T, order="C").T,
    "every second": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "shifted": lambda x: np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(float).reshape(x.shape),
    "big-endian": lambda x: x.astype(">f8"),
}


@pytest.fixture(scope="module")
def matrix_batch(folder):
    return {lanes: run_of(polynomial(5, 2), f"-DOC_DYN_LANES={lanes}", cache=folder, threads=1) for lanes in (2, 4)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_arrays(layout, lanes, matrix_batch):
    run, rng = matrix_batch[lanes], np.random.default_rng(0)
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 31, 64):
        x, y = rng.normal(size=(5, 2 * n)), rng.normal(size=(1, n))
        want = one_by_one(run.function, [x, y], n)
        before = [np.array(z) for z in (x, y)]
        for got, expected in zip(run(LAYOUTS[layout](x), LAYOUTS[layout](y)), want, strict=True):
            assert same_bits(np.ascontiguousarray(got), expected).all()
        assert np.array_equal(before[0], x)


def test_no_array_of_floats_is_copied(matrix_batch, monkeypatch):
    run, seen = matrix_batch[4], []
    monkeypatch.setattr(run, "_compute", lambda points, results, n: seen.extend(points))
    x, y = np.ones((10, 8)).T[::-1][:5, :4], np.ones((2, 1))[::2]
    run(x, y)
    assert [np.shares_memory(*pair) for pair in zip(seen, (x, y), strict=True)] == [True, True]


def test_other_numbers_are_converted(matrix_batch):
    run = matrix_batch[4]
    x = np.arange(20).reshape(5, 4)
    want = run(x.astype(float), 2.0)
    for given in (x, x.astype(np.float32), x.tolist(), ca.DM(x)):
        for got, expected in zip(run(given, [2]), want, strict=True):
            assert np.array_equal(got, expected)
    for wrong in (x + 1j, x > 3, np.ma.masked_array(x, x > 3)):
        with pytest.raises(od.ShapeError, match="port x"):
            run(wrong, 2.0)


def test_no_points_one_point_and_one_for_all(matrix_batch):
    run = matrix_batch[4]
    a, b = run(np.zeros((5, 0)), 1.0)
    assert (a.shape, b.shape) == ((3, 0), (5, 0))
    x, y = np.random.default_rng(0).normal(size=(5, 2)), np.random.default_rng(1).normal(size=(1, 11))
    want = one_by_one(run.function, [np.tile(x, 11), y], 11)
    for got, expected in zip(run(x, y), want, strict=True):
        assert same_bits(np.ascontiguousarray(got), expected).all()
    assert run(x, y[0, 0])[0].shape == (3, 1)


@pytest.mark.slow
def test_a_point_does_not_depend_on_its_neighbours():
    """Where angles are too wide for our sine, the others of the same vector keep ours."""
    run = run_of(ca.Function("f", [X], [ca.sin(X) + ca.cos(3 * X)]), "-DOC_DYN_LANES=4")
    x = np.random.default_rng(0).uniform(-9, 9, (1, 40))
    alone = run(x)
    mixed = np.stack([x, np.full_like(x, 1e9), np.full_like(x, np.nan)], 2).reshape(1, -1)
    assert same_bits(np.ascontiguousarray(run(mixed)[:, ::3]), np.ascontiguousarray(alone)).all()
    for n in range(1, 10):
        assert same_bits(np.ascontiguousarray(run(x[:, :n])), np.ascontiguousarray(alone[:, :n])).all()


def test_sparse_ports_and_empty_ones():
    x = ca.SX.sym("x", ca.Sparsity.lower(3))
    nothing = ca.SX.sym("e", 0, 1)
    outputs = [ca.SX(ca.Sparsity.diag(3), ca.diag(x) * 2), ca.SX(2, 2), ca.SX(0, 1), ca.sum1(x)]
    f = ca.Function("sparse", [x, nothing], outputs)
    run = run_of(f, vectors())
    given = np.random.default_rng(0).normal(size=(3, 3 * 7))
    results = run(given, np.zeros((0, 1)))
    for got, want in zip(results, one_by_one(f, [given, np.zeros((0, 7))], 7), strict=True):
        assert got.shape == want.shape
        assert np.array_equal(got, want)
    for old in results:
        old[...] = 9.0
    again = run(given, np.zeros((0, 1)), out=list(results))
    assert [x is y for x, y in zip(again, results, strict=True)] == [True] * 4
    assert np.array_equal(again[0], one_by_one(f, [given, np.zeros((0, 7))], 7)[0])


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_runs_of_sparse_ports_in_every_layout(lanes):
    """Columns that end where the next one begins, holes, single entries; entries side by side and apart."""
    rng, n = np.random.default_rng(0), 2 * lanes + 3
    patterns = [np.ones((7, 4)), rng.random((9, 5)) < 0.6, np.eye(6), np.tri(5)]
    patterns[0][:, 0] = 0
    x = [ca.SX.sym("x", ca.sparsify(ca.DM(np.array(p, float))).sparsity()) for p in patterns]
    f = ca.Function("runs", x, [2 * y for y in x])
    run = run_of(f, f"-DOC_DYN_LANES={lanes}")
    shapes = [(p.shape[0], p.shape[1] * n) for p in patterns]
    given = [rng.normal(size=shape) for shape in shapes]
    wanted = [2 * y * np.tile(p, n) for y, p in zip(given, patterns, strict=True)]
    for lay in (np.asfortranarray, np.ascontiguousarray, lambda y: np.repeat(np.repeat(y, 2, 0), 2, 1)[::2, ::2]):
        out = [lay(np.full(shape, 9.0)) for shape in shapes]
        run(*map(lay, given), out=out)
        assert all(np.array_equal(a, b) for a, b in zip(out, wanted, strict=True))


def test_results_go_to_arrays_that_are_given(matrix_batch):
    run, rng = matrix_batch[4], np.random.default_rng(0)
    x, y = rng.normal(size=(5, 26)), rng.normal(size=(1, 13))
    want = run(x, y)
    for make in (np.empty, lambda shape: np.empty(shape, order="F"), lambda s: np.empty((s[0], 2 * s[1]))[:, ::2]):
        out = [make((3, 13)), make((5, 4 * 13))]
        assert run(x=x, y=y, out=out)[0] is out[0]
        assert all(np.array_equal(a, b) for a, b in zip(out, want, strict=True))


def bad_outs():
    a, b = np.empty((3, 4)), np.empty((5, 16))
    fixed = np.empty((3, 4))
    fixed.flags.writeable = False
    folded = np.lib.stride_tricks.as_strided(np.empty(12), (3, 4), (8, 8))
    apart = np.zeros(12 * 8 + 1, np.uint8)[1:].view(float).reshape(3, 4)
    return {
        "expected 2 numpy arrays": a,
        "1 of them": [a],
        "a dict": {},
        "out for a is a list": [a.tolist(), b],
        "array of float32": [a.astype(np.float32), b],
        r"shape \(4, 3\), expected \(3, 4\)": [a.T, b],
        "read-only": [fixed, b],
        "not aligned": [apart, b],
        "shares memory": [folded, b],
        "MaskedArray": [np.ma.masked_array(a), b],
    }


@pytest.mark.parametrize("words", bad_outs())
def test_what_cannot_be_written_to_is_refused(words, matrix_batch):
    with pytest.raises(od.ShapeError, match=words):
        matrix_batch[4](np.zeros((5, 8)), 1.0, out=bad_outs()[words])


def test_results_do_not_overlap_what_is_read(matrix_batch):
    run, memory = matrix_batch[4], np.zeros((8, 16))
    for a in (memory[:3, :4], memory[4:7, 4:8]):
        with pytest.raises(od.ShapeError, match="out for a shares memory"):
            run(memory[:5, :8], 1.0, out=[a, np.empty((5, 16))])
    with pytest.raises(od.ShapeError, match="out for b shares memory"):
        run(np.zeros((5, 8)), 1.0, out=[memory[:3, :4], memory[:5]])
    beside = np.zeros((8, 8), order="F")  # columns in turn, no entry of both
    assert run(beside[:5], 1.0, out=[beside[5:, :4], np.empty((5, 16))])[0][1, 0] == 0.0


def test_a_port_may_be_called_out():
    f = ca.Function("f", [X], [2 * X], ["out"], ["y"])
    run = run_of(f)
    assert run(out=3.0) == 6.0
    assert run(3.0) == 6.0


# -- threads ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_give_the_same_bits():
    f = od.function(robot("floating"), "inverse_dynamics_second_partials")
    n = 8 * (600_000 // f.n_instructions())
    points = random_ports(f, robot("floating"))
    rng = np.random.default_rng(0)
    given = {k: np.tile(np.reshape(x, (-1, 1)), n) for k, x in points.items()}
    given["v"] = rng.normal(size=given["v"].shape)
    alone = run_of(f, threads=1)(**given)
    shared = run_of(f, threads=3)
    for got, want in zip(shared(**given), alone, strict=True):
        assert np.array_equal(got, want)
    assert shared._compute.pools  # it was worth threads


@pytest.mark.slow
def test_several_batches_at_once_do_not_disturb_each_other():
    fs = [ca.Function(f"f{k}", [X, Y], [ca.vertcat(ca.sin(X) * k, X + Y)]) for k in range(3)]
    pool = ThreadPoolExecutor(2)
    runs = [run_of(f, executor=pool) for f in fs]
    x = np.random.default_rng(0).normal(size=(1, 200_000))
    want = [run(x, 1.0) for run in runs]
    wrong = []

    def repeat(k):
        for _ in range(5):
            if not np.array_equal(runs[k % 3](x, 1.0), want[k % 3]):
                wrong.append(k)

    threads = [threading.Thread(target=repeat, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.shutdown()
    assert wrong == []


def test_default_flags_start_from_those_of_compile():
    from oc_dyn.codegen.batch import NATIVE

    assert NATIVE[: len(FLAGS)] == FLAGS
