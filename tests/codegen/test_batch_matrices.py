"""od.batch of matrix Functions: the bits of the Function, whether it is expanded or not."""

import casadi as ca
import numpy as np
import pytest
from samples import robot

import oc_dyn as od
from oc_dyn.codegen.build import find_compiler
from oc_dyn.codegen.lanes import batch_source
from oc_dyn.study.random_programs import SPECIAL, one_by_one, same_bits

try:
    find_compiler()
except od.SolveError:
    pytest.skip("needs a C compiler", allow_module_level=True)

X, A, S = ca.MX.sym("x", 3), ca.MX.sym("A", 3, 3), ca.MX.sym("s")
ZEROS = ca.DM([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [0.0, 0.0, 0.0]])
CONSTANT = ca.MX(ZEROS)


def scalar_parts():
    """Functions that lose numbers when they are put together as formulas: a - a is 0, and 2*a/2 is a."""
    a, b = ca.SX.sym("a", 3), ca.SX.sym("b", 3)
    difference = ca.Function("difference", [a, b], [a - b, a * b, a / b, a + b])
    twice, half = ca.Function("twice", [a], [2 * a, -a]), ca.Function("half", [a], [a / 2, ca.sqrt(a)])
    return difference, twice, half


DIFFERENCE, TWICE, HALF = scalar_parts()
EXPANDED = {
    "zeros in a constant matrix": [CONSTANT @ X, X.T @ CONSTANT, ZEROS @ A],
    "elementwise zeros and ones": [X * CONSTANT[:, 0], X * 1.0, X * S, X + 0.0, -X + X, 0 / (X + S - S)],
    "powers": [X**2, X**3, X**-1, X**0.5, X**0, X**S, ca.sqrt(X**2), 1 / (1 / X), X / X],
    "products": [A @ X, A @ A, X @ X.T, ca.dot(X, X), ca.sumsqr(X), ca.bilin(A, X, X), ca.rank1(A, 2, X, X)],
    "norms": [ca.norm_2(X), ca.norm_fro(A), ca.norm_1(X), ca.norm_inf(X)],
    "sums": [ca.sum1(A), ca.sum2(A), ca.trace(A), ca.mac(A, A, A)],
    "moved": [ca.vertcat(X, S), A.T, ca.reshape(A, 1, 9), A[:2, 1:], ca.diagcat(X, A), ca.repmat(X, 1, 2)],
    "blocks": [ca.kron(X, A), ca.horzcat(*ca.horzsplit(A)[::-1]), ca.vec(A)],
    "sparse": [ca.MX(ca.Sparsity.lower(3), ca.MX.ones(6)) @ X, ca.tril(A) @ A, ca.diag(X) @ A, ca.densify(ca.diag(X))],
    "chosen": [ca.if_else(S > 0, X, X * X), ca.fmin(X, S), ca.fmax(X, S), ca.sign(X), X > S],
    "the same argument twice": list(DIFFERENCE(X, X)),
    "arguments that are constant": [*DIFFERENCE(X, 0), *DIFFERENCE(1, X)],
    "calls of calls": [*HALF(TWICE(X)[0]), TWICE(TWICE(X)[1])[1], *DIFFERENCE(TWICE(X)[1], X)],
}
KEPT = {
    "one of two is computed": [ca.if_else(S > 0, X, X * X, True)],
    "solved": [ca.solve(A, X)],
}


def points(seed=0, n=80):
    rng = np.random.default_rng(seed)
    out = [rng.normal(size=(3, n)), rng.normal(size=(3, 3 * n)), rng.normal(size=(1, n))]
    for x in out:
        half = x[:, : x.shape[1] // 2]
        half[...] = np.where(rng.random(half.shape) < 0.4, rng.choice([*SPECIAL, 2.0, 3.0], half.shape), half)
    return out


def compared(outputs, given, *flags):
    """{output: example of a difference} of od.batch and the Function itself."""
    f = ca.Function("f", [X, A, S], outputs)
    run = od.batch(f, flags=("-O1", "-ffp-contract=off", *flags), fallback=False)
    got = run(*given)
    got = got if isinstance(got, tuple) else (got,)
    want = one_by_one(f, given, given[0].shape[1])
    pairs = [(np.ascontiguousarray(x), np.ascontiguousarray(y)) for x, y in zip(got, want, strict=True)]
    return {str(y): (g[~same_bits(g, w)][0], w[~same_bits(g, w)][0]) for y, (g, w) in zip(outputs, pairs, strict=True)
            if not same_bits(g, w).all()}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OC_DYN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", EXPANDED)
def test_what_is_expanded_keeps_its_bits(name):
    """0 * NaN was 0, a - a too, and x**3 rounded once less."""
    assert "oc_dyn_one" not in batch_source(ca.Function("f", [X, A, S], EXPANDED[name]))
    assert compared(EXPANDED[name], points(), "-DOC_DYN_LANES=2") == {}


def test_determinants_keep_their_bits():
    """Where they are computed: CasADi fails at some that are infinite."""
    given = [np.random.default_rng(0).normal(size=(3, n)) for n in (20, 60)] + [np.ones((1, 20))]
    assert compared([ca.det(A), ca.det(A[:2, :2]) * X], given) == {}


def test_the_least_may_be_either_zero():
    given = points()
    given[0][:, :4] = [[0.0, -0.0, 0.0, -0.0], [-0.0, 0.0, np.nan, 0.0], [0.0, 0.0, -0.0, -0.0]]
    for pair in compared([ca.mmin(X), ca.mmax(X)], given).values():
        assert pair[0] == pair[1] == 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_expanded_keeps_its_bits(name):
    assert "oc_dyn_one" in batch_source(ca.Function("f", [X, A, S], KEPT[name]))
    assert compared(KEPT[name], points()) == {}


def test_symbols_of_others_are_simplified_as_before():
    """Also where expanding fails."""
    f = ca.Function("f", [X], [ca.rootfinder("r", "newton", root())(0.5, X[0])])
    batch_source_fails(f)
    x = ca.SX.sym("x")
    assert (x - x).is_zero()


def root():
    z, p = ca.MX.sym("z"), ca.MX.sym("p")
    return {"x": z, "p": p, "g": z**3 - p}


def batch_source_fails(f):
    with pytest.raises((od.ModelError, od.SolveError)):
        batch_source(f)


@pytest.mark.slow
def test_functions_of_robots_in_a_matrix_function():
    inner = od.function(robot("serial"), "mass_matrix")
    q = ca.MX.sym("q", 4)
    f = ca.Function("f", [q], [inner(q) @ q + inner(2 * q)[:, 0]])
    given = np.random.default_rng(0).normal(size=(4, 9))
    libm = od.batch(f, flags=("-O1", "-ffp-contract=off", "-DOC_DYN_LIBM"), fallback=False)
    assert libm.lanes > 1
    assert same_bits(np.ascontiguousarray(libm(given)), one_by_one(f, [given], 9)[0]).all()
