"""Quick SX: the same expressions as CasADi's own operators make, with fewer steps to them."""

import operator

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import subexpressions
from oc_dyn.errors import ShapeError
from oc_dyn.lie.quick import QuickSX, dense_entries, dot, filled, quick


def symbols():
    """Dense, sparse, scalar and structurally empty SX."""
    lower = ca.Sparsity.lower(3)
    return {
        "matrix": ca.SX.sym("A", 3, 3),
        "lower": ca.SX.sym("L", lower),
        "column": ca.SX.sym("x", 3),
        "holes": ca.SX(ca.Sparsity.triplet(3, 1, [0, 2], [0, 0]), ca.SX.sym("h", 2)),
        "row": ca.SX.sym("r", 1, 3),
        "scalar": ca.SX.sym("s"),
        "empty": ca.SX(3, 1),
        "zeros": ca.SX.zeros(3, 1),
    }


CONSTANTS = {
    "2": 2, "0": 0, "-0.0": -0.0, "0.5": 0.5, "nan": np.nan, "float64": np.float64(3.0),
    "DM": ca.DM([1, 0, 2]), "sparse": ca.sparsify(ca.DM([1, 0, 2])), "array": np.array([1.0, 0.0, 2.0]),
}  # fmt: skip
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "@": operator.matmul, "/": operator.truediv}


def same(a, b):
    """Whether two expressions have the same nonzeros, shape and steps."""
    a, b = ca.SX(a), ca.SX(b)
    return a.sparsity() == b.sparsity() and str(a) == str(b)


def outcome(f, *given):
    try:
        return f(*given)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("sign", OPERATORS)
def test_operators_make_the_same_expressions(sign):
    f, plain = OPERATORS[sign], symbols()
    copies = {name: quick(ca.SX(x)) for name, x in plain.items()}
    for a in plain:
        for b in plain:
            want = outcome(f, plain[a], plain[b])
            for x, y in ((copies[a], copies[b]), (plain[a], copies[b]), (copies[a], plain[b])):
                got = outcome(f, x, y)
                assert got is want if isinstance(want, type) else same(got, want), (a, sign, b)


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants(sign, constant):
    f, c = OPERATORS[sign], CONSTANTS[constant]
    for name, plain in symbols().items():
        fast = quick(ca.SX(plain))
        for want, got in ((outcome(f, plain, c), outcome(f, fast, c)), (outcome(f, c, plain), outcome(f, c, fast))):
            if isinstance(want, np.ndarray):
                continue  # numpy's own, entry by entry
            assert got is want if isinstance(want, type) else same(got, want), (name, sign, constant)


def test_signed_zeros_stay_apart():
    s = quick(ca.SX.sym("s"))
    for zero in (0.0, -0.0, 0.0):
        assert str(zero - s) == str(ca.SX(zero) - ca.SX(s))


def test_mx_is_none_of_them():
    s = quick(ca.SX.sym("s"))
    with pytest.raises(ShapeError, match="cannot be in one formula"):
        s + ca.MX.sym("m")
    assert type(quick(ca.MX.sym("m"))) is ca.MX


@pytest.mark.parametrize("name", ["matrix", "lower", "column", "holes", "row"])
def test_places(name):
    plain = symbols()[name]
    fast = quick(ca.SX(plain))
    rows, columns = plain.shape
    places = [0, -1, 2, slice(0, 2), (0, 0), (rows - 1, columns - 1), (-1, 0), (slice(None), 0), (0, slice(None))]
    places += [(rows, 0), (0, columns), 9, (np.int64(0), 0)]
    for place in places:
        want, got = outcome(lambda x, p=place: x[p], plain), outcome(lambda x, p=place: x[p], fast)
        assert got is want if isinstance(want, type) else same(got, want), place
    assert same(fast.T, plain.T)
    assert same(-fast, -plain)


@pytest.mark.parametrize("a", ["column", "holes", "empty", "zeros", "matrix"])
@pytest.mark.parametrize("b", ["column", "holes", "empty", "zeros", "matrix", "lower"])
def test_dot(a, b):
    x, y = symbols()[a], symbols()[b]
    want = x.T @ y
    assert same(dot(x, y), want)
    assert same(dot(quick(ca.SX(x)), quick(ca.SX(y))), want)


def test_entries_and_back():
    A = quick(ca.SX.sym("A", 3, 3))
    assert same(filled(3, 3, dense_entries(A, 9)), A)
    assert dense_entries(quick(symbols()["lower"]), 9) is None
    assert filled(2, 1, [ca.SX.sym("x"), ca.SX(1, 1)]) is None
    assert filled(2, 1, [ca.SX.sym("x"), 1.0]) is None


def test_what_is_computed_with_one_is_one():
    s, plain = quick(ca.SX.sym("s", 3)), ca.SX.sym("p", 3)
    for x in (s + plain, plain - s, 2 * s, s[0], s.T, -s, s.T @ s, ca.DM.eye(3) * s):
        assert type(x) is QuickSX or type(x) is ca.SX
    assert all(type(x) is QuickSX for x in (s + plain, plain - s, 2 * s, s[0], s.T, -s, s.T @ s))


@pytest.mark.slow
def test_building_looks_for_few_types(monkeypatch):
    """CasADi asks for the shape of every operand that it takes for a possible number first."""
    asked, shape = [0], ca.SX.shape

    def counted(self):
        asked[0] += 1
        return shape.fget(self)

    monkeypatch.setattr(ca.SX, "shape", property(counted))
    f = od.function(od.robots.panda(), "inverse_dynamics_second_partials")
    assert asked[0] < 1.2 * f.n_instructions()  # by CasADi's operators 4.1 times as many


def test_common_subexpressions_are_taken_out_once_at_low_orders(monkeypatch):
    calls, merge = [0], subexpressions._merged

    def counted(x):
        calls[0] += 1
        return merge(x)

    monkeypatch.setattr(subexpressions, "_merged", counted)
    od.function(od.robots.planar_2r(), "inverse_dynamics_lagrangian_hessian", order=3)
    assert calls[0] == 2  # of the partials, and of the result
    calls[0] = 0
    od.function(od.robots.planar_2r(), "inverse_dynamics_lagrangian_hessian", order=4)
    assert calls[0] == 3


@pytest.mark.parametrize("mixed", [lambda s, m: s + m, lambda s, m: m - s, lambda s, m: m * s, lambda s, m: s @ m])
def test_matrix_expressions_are_refused_in_our_words(mixed):
    with pytest.raises(ShapeError, match=r"SX.*MX, 2 x 3.*cannot be in one formula"):
        mixed(quick(ca.SX.sym("s", 2, 2)), ca.MX.sym("m", 2, 3))
